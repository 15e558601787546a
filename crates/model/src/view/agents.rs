//! Sub-agents of a session: in its file (1.0) and in files of their own.

use std::collections::{HashMap, HashSet};

use crate::entry;
use crate::log::Source;
use crate::price::{Cost, Prices};
use crate::session::{Call, Index, Message, Session, Thread};
use crate::tool;
use crate::usage::Usage;
use crate::view::status::{Crew, work};
use crate::view::turns::{self, CallStatus, Course};
use crate::view::{cost, files};

/// A sub-agent's own file, as the store found it.
#[derive(Clone, Debug)]
pub struct AgentFile<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its lines.
    pub session: &'a Session,
    /// `agentType` of its `.meta.json`.
    pub kind: Option<&'a str>,
    /// `description` of its `.meta.json`.
    pub description: Option<&'a str>,
    /// `toolUseId` of its `.meta.json`.
    pub call: Option<&'a str>,
}

/// One sub-agent.
#[derive(Clone, Debug)]
pub struct AgentRow {
    /// Its id; empty for the nameless ones of 1.0.
    pub agent: String,
    /// What kind of agent.
    pub kind: Option<String>,
    /// What it was sent for.
    pub description: Option<String>,
    /// The call that started it.
    pub call: Option<String>,
    /// The agent whose call it was; `None` for the session itself.
    pub parent: Option<String>,
    /// How deep it is nested, from 1.
    pub depth: usize,
    /// What became of it.
    pub status: &'static str,
    /// Its turns.
    pub turns: usize,
    /// Its calls.
    pub calls: usize,
    /// Its tokens.
    pub usage: Usage,
    /// The last thing it said.
    pub recent_output: Option<String>,
    /// Its place in the list of files; `None` for those inside the session's file.
    pub file: Option<usize>,
    /// Its thread, for those inside the session's file.
    pub thread: Option<Index>,
}

/// The sub-agents of a session, each below the one that started it.
pub fn agents(session: &Session, source: &dyn Source, files: &[AgentFile<'_>]) -> Vec<AgentRow> {
    let mut rows: Vec<AgentRow> = Vec::new();
    rows.extend(inside(session, source));
    let makers = Makers::of(session, files);
    rows.extend(
        files
            .iter()
            .enumerate()
            .map(|(index, file)| beside(&makers, source, index, file)),
    );
    rows.extend(gone(session, source, &rows));
    nest(rows)
}

/// Says which of them are at work, now that it is known who is: one that has no result and is
/// not at work was left behind.
pub fn settle(rows: &mut [AgentRow], crew: &Crew) {
    let mut working: HashSet<String> = HashSet::new();
    for row in rows {
        let sent = row.call.as_deref().is_some_and(|call| crew.has_call(call));
        let works = match &row.parent {
            None => sent,
            // Rows stand below those who sent them.
            Some(parent) => row.status == "running" && working.contains(parent),
        };
        if works {
            row.status = "running";
            working.insert(row.agent.clone());
        } else if row.status == "running" {
            row.status = "lost";
        }
    }
}

/// What a sub-agent cost; `None` where only its call is left, or a model has no price.
pub fn cost(
    session: &Session,
    files: &[AgentFile<'_>],
    row: &AgentRow,
    prices: &Prices,
) -> Option<Cost> {
    if let Some(file) = row.file.and_then(|at| files.get(at)) {
        return cost::cost(file.session, &file.session.messages, prices);
    }
    let thread = row.thread?;
    let own = |message: &&Message| message.thread == thread;
    cost::cost(session, session.messages.iter().filter(own), prices)
}

/// Sub-agents of which only the call is left: their files were purged, or never written.
fn gone(session: &Session, source: &dyn Source, rows: &[AgentRow]) -> Vec<AgentRow> {
    let known: HashSet<&str> = rows.iter().filter_map(|row| row.call.as_deref()).collect();
    let course = Course::of(session);
    let calls = (0..session.calls.len() as Index).filter(|&call| is_agent_call(session, call));
    let calls = calls.map(|call| &session.calls[call as usize]);
    let lost = calls.filter(|call| !known.contains(session.call_id(call)));
    lost.map(|call| AgentRow {
        agent: session.agent_of(call).unwrap_or_default().to_owned(),
        kind: sent_kind(session, source, call),
        description: session.subject(call).map(str::to_owned),
        call: Some(session.call_id(call).to_owned()),
        parent: None,
        depth: 1,
        status: status(course.status(session, call)),
        turns: 0,
        calls: 0,
        usage: Usage::default(),
        recent_output: None,
        file: None,
        thread: None,
    })
    .collect()
}

/// Sub-agents whose lines stand in the session's own file, as 1.0 wrote them.
fn inside(session: &Session, source: &dyn Source) -> Vec<AgentRow> {
    let course = Course::of(session);
    let mut usage = vec![Usage::default(); session.threads.len()];
    let mut output: Vec<Option<Index>> = vec![None; session.threads.len()];
    for (at, message) in session
        .messages
        .iter()
        .enumerate()
        .filter(|(_, message)| !message.synthetic)
    {
        usage[message.thread as usize] += session.usage_of(message);
        output[message.thread as usize] = Some(at as Index);
    }
    let mut calls = vec![0; session.threads.len()];
    for call in &session.calls {
        calls[session.records[call.record as usize].thread as usize] += 1;
    }
    let senders: Vec<Index> = (0..session.calls.len() as Index)
        .filter(|&call| is_agent_call(session, call))
        .collect();
    let mut taken: HashSet<Index> = HashSet::new();
    let mut rows = Vec::new();
    for (index, thread) in session.threads.iter().enumerate().skip(1) {
        let call = starting_call(session, thread, &senders, &taken);
        taken.extend(call);
        let call = call.map(|call| &session.calls[call as usize]);
        let said =
            output[index].map(|at| turns::said(session, source, &session.messages[at as usize]));
        rows.push(AgentRow {
            agent: thread_name(session, index as Index),
            kind: call.and_then(|call| sent_kind(session, source, call)),
            description: call
                .and_then(|call| session.subject(call))
                .map(str::to_owned),
            call: call.map(|call| session.call_id(call).to_owned()),
            parent: None,
            depth: 1,
            status: call.map_or("unknown", |call| status(course.status(session, call))),
            turns: thread.turns as usize,
            calls: calls[index],
            usage: usage[index],
            recent_output: said
                .filter(|said| !said.is_empty())
                .map(|said| entry::clip(&said, entry::HEAD)),
            file: None,
            thread: Some(index as Index),
        });
    }
    rows
}

/// What a sub-agent inside the file is called: its own id, else that of its first line.
pub fn thread_name(session: &Session, thread: Index) -> String {
    let thread = &session.threads[thread as usize];
    let root = || {
        session.records[thread.root? as usize]
            .uuid
            .as_ref()
            .map(ToString::to_string)
    };
    thread
        .agent
        .as_deref()
        .map(str::to_owned)
        .or_else(root)
        .unwrap_or_default()
}

/// The kind of agent that a call asked for.
fn sent_kind(session: &Session, source: &dyn Source, call: &Call) -> Option<String> {
    let input = files::input(session, source, call);
    input["subagent_type"].as_str().map(str::to_owned)
}

/// The call during which the thread began: the one that names it, else the first that no
/// other thread took.
fn starting_call(
    session: &Session,
    thread: &Thread,
    senders: &[Index],
    taken: &HashSet<Index>,
) -> Option<Index> {
    let root = thread.root?;
    let call_of = |at: Index| &session.calls[at as usize];
    let agent = thread.agent.as_deref();
    let named = |&at: &Index| agent.is_some() && session.agent_of(call_of(at)) == agent;
    let during = |&at: &Index| {
        let call = call_of(at);
        let end = call
            .result
            .as_ref()
            .map_or(Index::MAX, |result| result.record);
        call.record < root && root < end && !taken.contains(&at)
    };
    senders
        .iter()
        .copied()
        .find(|at| named(at))
        .or_else(|| senders.iter().copied().find(|at| during(at)))
}

fn status(status: CallStatus) -> &'static str {
    match status {
        CallStatus::Ok => "completed",
        CallStatus::Error => "failed",
        CallStatus::Missing => "lost",
        CallStatus::Running => "running",
    }
}

/// Everyone who may have started a sub-agent: the session, then each sub-agent.
struct Makers<'a> {
    all: Vec<(&'a Session, Option<&'a str>, Course)>,
    /// The maker and call that a tool result named for an agent.
    by_agent: HashMap<&'a str, (usize, Index)>,
}

impl<'a> Makers<'a> {
    fn of(main: &'a Session, files: &[AgentFile<'a>]) -> Makers<'a> {
        let sessions = std::iter::once((main, None))
            .chain(files.iter().map(|file| (file.session, Some(file.id))));
        let all: Vec<_> = sessions
            .map(|(session, id)| (session, id, Course::of(session)))
            .collect();
        let mut by_agent = HashMap::new();
        for (maker, (session, id, _)) in all.iter().enumerate() {
            for (index, call) in session.calls.iter().enumerate() {
                if let Some(agent) = session.agent_of(call).filter(|agent| Some(*agent) != *id) {
                    by_agent.entry(agent).or_insert((maker, index as Index));
                }
            }
        }
        Makers { all, by_agent }
    }

    /// Who started the agent, and with which call.
    fn origin(&self, file: &AgentFile<'_>) -> Option<(usize, Index)> {
        let named = file.call.and_then(|call| {
            let makers = self
                .all
                .iter()
                .enumerate()
                .filter(|(_, (_, id, _))| *id != Some(file.id));
            makers
                .filter_map(|(maker, (session, _, _))| Some((maker, session.find_call(call)?)))
                .next()
        });
        named.or_else(|| self.by_agent.get(file.id).copied())
    }
}

fn beside(
    makers: &Makers<'_>,
    source: &dyn Source,
    index: usize,
    file: &AgentFile<'_>,
) -> AgentRow {
    let origin = makers
        .origin(file)
        .map(|(maker, call)| (&makers.all[maker], call));
    let state = origin.map_or("unknown", |((session, _, course), call)| {
        let call = &session.calls[call as usize];
        let runs = call.launched && !work::is_done(file.session);
        if runs {
            "running"
        } else {
            status(course.status(session, call))
        }
    });
    // Only the bytes of the session itself are at hand.
    let sent = || {
        let ((session, None, _), call) = origin? else {
            return None;
        };
        sent_kind(session, source, &session.calls[call as usize])
    };
    let about =
        origin.and_then(|((session, _, _), at)| session.subject(&session.calls[at as usize]));
    let id = origin.map(|((session, _, _), at)| session.call_id(&session.calls[at as usize]));
    AgentRow {
        agent: file.id.to_owned(),
        kind: file.kind.map(str::to_owned).or_else(sent),
        description: file.description.or(about).map(str::to_owned),
        call: id.or(file.call).map(str::to_owned),
        parent: origin.and_then(|((_, id, _), _)| *id).map(str::to_owned),
        depth: 1,
        status: state,
        turns: file.session.turns.len(),
        calls: file.session.calls.len(),
        usage: file.session.usage(),
        recent_output: file.session.recent_output.clone(),
        file: Some(index),
        thread: None,
    }
}

/// Orders rows so that each stands below its parent, and says how deep.
fn nest(rows: Vec<AgentRow>) -> Vec<AgentRow> {
    let mut children: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        if let Some(parent) = &row.parent {
            children.entry(parent.clone()).or_default().push(at);
        }
    }
    // Roots first; what hangs in a circle of parents has none and comes last.
    let (mut order, circle): (Vec<usize>, Vec<usize>) =
        (0..rows.len()).partition(|&at| rows[at].parent.is_none());
    order.extend(circle);
    let mut rest: Vec<Option<AgentRow>> = rows.into_iter().map(Some).collect();
    let mut out = Vec::with_capacity(rest.len());
    for root in order {
        let mut stack = vec![(root, 1)];
        while let Some((at, depth)) = stack.pop() {
            let Some(mut row) = rest[at].take() else {
                continue;
            };
            row.depth = depth;
            let below = children.get(&row.agent).into_iter().flatten().rev();
            stack.extend(below.map(|&child| (child, depth + 1)));
            out.push(row);
        }
    }
    out
}

/// Calls that start sub-agents.
pub fn is_agent_call(session: &Session, call: Index) -> bool {
    tool::is_agent(session.text(session.calls[call as usize].tool))
}
