//! Sub-agents of a session: in its file (1.0) and in files of their own.

pub mod agent_origins;

use std::collections::{HashMap, HashSet};

use crate::agent_kind::AgentKind;
use crate::entry;
use crate::log::TranscriptSource;
use crate::session::{Index, Session, Thread, ToolCall};
use crate::tool;
use crate::view::files;
use crate::view::status::{RunningWork, background_work};
use crate::view::turns::{self, CallStatus, ThreadEnds};
use crate::view::workflow::{WorkflowAgent, WorkflowRun};
use agent_origins::{AgentOrigin, AgentOrigins};

/// A sub-agent's own file, as the store found it.
#[derive(Clone)]
pub struct SubAgentSession<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its lines.
    pub session: &'a Session,
    /// Where its texts are; without them only ids tell which call started it.
    pub source: Option<&'a dyn TranscriptSource>,
    /// `agentType` of its `.meta.json`.
    pub kind: Option<&'a str>,
    /// `description` of its `.meta.json`.
    pub description: Option<&'a str>,
    /// `toolUseId` of its `.meta.json`.
    pub call: Option<&'a str>,
    /// The workflow run in whose folder it stands.
    pub run: Option<&'a str>,
}

impl<'a> SubAgentSession<'a> {
    /// A file of which nothing else is known.
    pub fn new(id: &'a str, session: &'a Session) -> SubAgentSession<'a> {
        SubAgentSession {
            id,
            session,
            source: None,
            kind: None,
            description: None,
            call: None,
            run: None,
        }
    }
}

/// One sub-agent. What it used is told by [`usage_by_agent`].
///
/// [`usage_by_agent`]: crate::view::session_usage::usage_by_agent
#[derive(Clone, Debug)]
pub struct AgentRow {
    /// Its id; empty for the nameless ones of 1.0.
    pub agent: String,
    /// What it is: a sub-agent, or something the client did for itself.
    pub role: AgentKind,
    /// What a workflow or a team calls it.
    pub name: Option<String>,
    /// Its phase in a workflow run.
    pub phase: Option<String>,
    /// What the workflow run says of it, or what is said of the run.
    pub state: Option<String>,
    /// The team it belongs to.
    pub team: Option<String>,
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
    /// The last thing it said.
    pub recent_output: Option<String>,
    /// Its place in the list of files; `None` for those inside the session's file.
    pub file: Option<usize>,
    /// Its thread, for those inside the session's file.
    pub thread: Option<Index>,
}

/// The sub-agents and workflow runs of a session, each below the one that started it.
pub fn agents(
    session: &Session,
    source: &dyn TranscriptSource,
    files: &[SubAgentSession<'_>],
    runs: &[WorkflowRun],
) -> Vec<AgentRow> {
    let mut rows: Vec<AgentRow> = Vec::new();
    rows.extend(inside(session, source));
    let links = agent_origins::links(session, source, files, runs);
    let beside = AgentRowBuilder::new(session, source, files, runs, &links);
    rows.extend((0..runs.len()).map(|run| beside.run(run)));
    rows.extend((0..files.len()).map(|file| beside.file(file)));
    rows.extend(gone(session, source, &rows));
    nest(rows)
}

/// Says which of them are at work, now that it is known who is: one that has no result and is
/// not at work was left behind.
pub fn mark_running(rows: &mut [AgentRow], crew: &RunningWork) {
    let mut working: HashSet<String> = HashSet::new();
    for row in rows {
        if row.role.is_helper() || row.role == AgentKind::Workflow {
            continue;
        }
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

/// The session of another member of a team, whose status is known; `lead` is what the lead of a team
/// is called.
pub fn teammate_row(session: &Session, id: &str, lead: &str, status: &'static str) -> AgentRow {
    let goal = session.goal.as_deref();
    AgentRow {
        agent: id.to_owned(),
        role: AgentKind::Teammate,
        name: Some(session.member.as_deref().unwrap_or(lead).to_owned()),
        phase: None,
        state: None,
        team: session.team.as_deref().map(str::to_owned),
        kind: None,
        description: goal.map(|goal| entry::clip(&crate::block::one_line(goal), entry::HEAD)),
        call: None,
        parent: None,
        depth: 1,
        status,
        turns: session.turns.iter().filter(|turn| turn.thread == 0).count(),
        calls: session.calls.len(),
        recent_output: session.recent_output.clone(),
        file: None,
        thread: None,
    }
}

/// Sub-agents of which only the call is left: their files were purged, or never written.
fn gone(session: &Session, source: &dyn TranscriptSource, rows: &[AgentRow]) -> Vec<AgentRow> {
    let known: HashSet<&str> = rows.iter().filter_map(|row| row.call.as_deref()).collect();
    let course = ThreadEnds::of(session);
    let calls = (0..session.calls.len() as Index).filter(|&call| is_agent_call(session, call));
    let calls = calls.map(|call| &session.calls[call as usize]);
    let agents: HashSet<&str> = rows.iter().map(|row| &*row.agent).collect();
    // One that was sent on has two calls and one file.
    let is_there = |call: &ToolCall| {
        let agent = session.agent_of(call);
        agent.is_some_and(|agent| agents.contains(agent))
    };
    let lost = calls.filter(|call| !known.contains(session.call_id(call)) && !is_there(call));
    lost.map(|call| AgentRow {
        agent: session.agent_of(call).unwrap_or_default().to_owned(),
        role: AgentKind::SubAgent,
        name: None,
        phase: None,
        state: None,
        team: None,
        kind: sent_kind(session, source, call),
        description: session.subject(call).map(str::to_owned),
        call: Some(session.call_id(call).to_owned()),
        parent: None,
        depth: 1,
        status: status(course.status(session, call)),
        turns: 0,
        calls: 0,
        recent_output: None,
        file: None,
        thread: None,
    })
    .collect()
}

/// Sub-agents whose lines stand in the session's own file, as 1.0 wrote them.
fn inside(session: &Session, source: &dyn TranscriptSource) -> Vec<AgentRow> {
    let course = ThreadEnds::of(session);
    let mut output: Vec<Option<Index>> = vec![None; session.threads.len()];
    for (at, message) in session
        .messages
        .iter()
        .enumerate()
        .filter(|(_, message)| !message.synthetic)
    {
        output[message.thread as usize] = Some(at as Index);
    }
    let mut calls = vec![0; session.threads.len()];
    for call in &session.calls {
        calls[session.records[call.record as usize].thread as usize] += 1;
    }
    let mut rows = Vec::new();
    let starts: HashMap<Index, Index> = thread_calls(session, source).into_iter().collect();
    for (index, thread) in session.threads.iter().enumerate().skip(1) {
        let call = starts.get(&(index as Index));
        let call = call.map(|&call| &session.calls[call as usize]);
        let said =
            output[index].map(|at| turns::said(session, source, &session.messages[at as usize]));
        rows.push(AgentRow {
            agent: thread_name(session, index as Index),
            role: AgentKind::SubAgent,
            name: None,
            phase: None,
            state: None,
            team: None,
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
            recent_output: said
                .filter(|said| !said.is_empty())
                .map(|said| entry::clip(&said, entry::HEAD)),
            file: None,
            thread: Some(index as Index),
        });
    }
    rows
}

/// The threads inside the file of which the call is known that started them.
pub fn thread_calls(session: &Session, source: &dyn TranscriptSource) -> Vec<(Index, Index)> {
    if session.threads.len() < 2 {
        return Vec::new();
    }
    let senders: Vec<Index> = (0..session.calls.len() as Index)
        .filter(|&call| is_agent_call(session, call))
        .collect();
    let mut taken: HashSet<Index> = HashSet::new();
    let mut all = Vec::new();
    for (index, thread) in session.threads.iter().enumerate().skip(1) {
        if let Some(call) = starting_call(session, source, thread, &senders, &taken) {
            taken.insert(call);
            all.push((index as Index, call));
        }
    }
    all
}

/// By which calls of the session itself its sub-agents were begun, directly or by way of other
/// sub-agents.
#[derive(Clone, Debug, Default)]
pub struct StartingCalls {
    /// Of each file; `None` where that is not known.
    pub files: Vec<Option<Index>>,
    /// Of the threads inside the session's file: thread and call.
    pub threads: Vec<(Index, Index)>,
}

/// By which calls of the session itself these files and the threads inside it were begun.
pub fn starting_calls(
    session: &Session,
    source: &dyn TranscriptSource,
    files: &[SubAgentSession<'_>],
    runs: &[WorkflowRun],
) -> StartingCalls {
    let links = agent_origins::links(session, source, files, runs);
    let by_run: HashMap<&str, AgentOrigin> = runs
        .iter()
        .zip(&links.runs)
        .filter_map(|(run, origin)| Some((run, (*origin)?)))
        .flat_map(|(run, origin)| run.agents.iter().map(move |one| (&*one.agent, origin)))
        .collect();
    let origin = |file: usize| match by_run.get(files[file].id) {
        Some(origin) => Some(*origin),
        None => links.files[file],
    };
    let own_call = |mut file: usize| {
        // Files may name each other in a circle.
        for _ in 0..=files.len() {
            match origin(file)? {
                AgentOrigin { maker: None, call } => return Some(call),
                AgentOrigin {
                    maker: Some(maker), ..
                } => file = maker,
            }
        }
        None
    };
    StartingCalls {
        files: (0..files.len()).map(own_call).collect(),
        threads: thread_calls(session, source),
    }
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
fn sent_kind(session: &Session, source: &dyn TranscriptSource, call: &ToolCall) -> Option<String> {
    let input = files::input(session, source, call);
    input["subagent_type"].as_str().map(str::to_owned)
}

/// The call during which the thread began: the one that names it, else one with its prompt, else
/// the first that no other thread took.
fn starting_call(
    session: &Session,
    source: &dyn TranscriptSource,
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
    if let Some(named) = senders.iter().copied().find(named) {
        return Some(named);
    }
    let free: Vec<Index> = senders.iter().copied().filter(during).collect();
    if free.len() < 2 {
        return free.first().copied();
    }
    let asked = turns::prompt(session, source, &session.records[root as usize]);
    let same = |at: &&Index| {
        let input = files::input(session, source, call_of(**at));
        let prompt = input["prompt"].as_str().unwrap_or_default();
        !prompt.is_empty() && prompt.trim() == asked.trim()
    };
    free.iter().find(same).or(free.first()).copied()
}

fn status(status: CallStatus) -> &'static str {
    match status {
        CallStatus::Ok => "completed",
        CallStatus::Error => "failed",
        CallStatus::Missing => "lost",
        CallStatus::Running => "running",
    }
}

/// What has files of its own.
struct AgentRowBuilder<'a> {
    session: &'a Session,
    source: &'a dyn TranscriptSource,
    files: &'a [SubAgentSession<'a>],
    runs: &'a [WorkflowRun],
    links: &'a AgentOrigins,
    course: ThreadEnds,
    /// How the conversations of the files go on.
    courses: Vec<ThreadEnds>,
    /// What runs say of their sub-agents.
    told: HashMap<&'a str, (&'a WorkflowRun, &'a WorkflowAgent)>,
}

impl<'a> AgentRowBuilder<'a> {
    fn new(
        session: &'a Session,
        source: &'a dyn TranscriptSource,
        files: &'a [SubAgentSession<'a>],
        runs: &'a [WorkflowRun],
        links: &'a AgentOrigins,
    ) -> AgentRowBuilder<'a> {
        let told = runs.iter().flat_map(|run| {
            let agents = run.agents.iter();
            agents.map(move |agent| (&*agent.agent, (run, agent)))
        });
        AgentRowBuilder {
            session,
            source,
            files,
            runs,
            links,
            course: ThreadEnds::of(session),
            courses: files
                .iter()
                .map(|file| ThreadEnds::of(file.session))
                .collect(),
            told: told.collect(),
        }
    }

    /// The file and the course of whoever made a call.
    fn maker(
        &self,
        origin: AgentOrigin,
    ) -> (&'a Session, &ThreadEnds, Option<&'a dyn TranscriptSource>) {
        match origin.maker {
            None => (self.session, &self.course, Some(self.source)),
            Some(at) => {
                let file = &self.files[at];
                (file.session, &self.courses[at], file.source)
            }
        }
    }

    fn call(&self, origin: AgentOrigin) -> (&'a Session, &'a ToolCall) {
        let (session, _, _) = self.maker(origin);
        (session, &session.calls[origin.call as usize])
    }

    fn call_id(&self, origin: AgentOrigin) -> String {
        let (session, call) = self.call(origin);
        session.call_id(call).to_owned()
    }

    /// A workflow run.
    fn run(&self, at: usize) -> AgentRow {
        let run = &self.runs[at];
        let origin = self.links.runs[at];
        let status = match run.status.as_deref() {
            Some("completed") => "completed",
            Some("failed") => "failed",
            _ if run.is_over() => "lost",
            _ => origin.map_or("unknown", |origin| {
                let (session, course, _) = self.maker(origin);
                let call = &session.calls[origin.call as usize];
                match course.status(session, call) {
                    // Its result says only that it began.
                    CallStatus::Ok => "running",
                    other => status(other),
                }
            }),
        };
        let about = origin.and_then(|origin| {
            let (session, call) = self.call(origin);
            session.subject(call).map(str::to_owned)
        });
        AgentRow {
            agent: run.id.clone(),
            role: AgentKind::Run,
            name: run.name.clone().or(about),
            phase: (!run.phases.is_empty()).then(|| run.phases.join(", ")),
            state: run.status.clone(),
            team: None,
            kind: None,
            description: run.error.clone().or(run.summary.clone()),
            call: origin.map(|origin| self.call_id(origin)),
            parent: self.parent(origin),
            depth: 1,
            status,
            turns: 0,
            calls: 0,
            recent_output: None,
            file: None,
            thread: None,
        }
    }

    fn parent(&self, origin: Option<AgentOrigin>) -> Option<String> {
        let maker = origin?.maker?;
        Some(self.files[maker].id.to_owned())
    }

    /// A sub-agent with a file of its own, or a helper of the client.
    fn file(&self, at: usize) -> AgentRow {
        let file = &self.files[at];
        let origin = self.links.files[at];
        let told = self.told.get(file.id);
        let run = told.map(|(run, _)| &*run.id).or(file.run);
        let role = match file.session.agent_kind() {
            _ if run.is_some() => AgentKind::Workflow,
            // Whoever was sent by a call is no helper, however little it said.
            AgentKind::WarmUp if origin.is_some() => AgentKind::SubAgent,
            kind => match AgentKind::of_id(file.id) {
                AgentKind::SubAgent => kind,
                named => named,
            },
        };
        let state = told.and_then(|(_, agent)| agent.state.clone());
        let about = origin.and_then(|origin| {
            let (session, call) = self.call(origin);
            session.subject(call).map(str::to_owned)
        });
        // What a run is about says nothing of its sub-agents.
        let about = about.filter(|_| run.is_none());
        let name = told.and_then(|(_, agent)| agent.label.clone());
        let member = file.session.member.as_deref().map(str::to_owned);
        AgentRow {
            agent: file.id.to_owned(),
            role,
            name: name.or(member),
            phase: told.and_then(|(_, agent)| agent.phase.clone()),
            team: file.session.team.as_deref().map(str::to_owned),
            kind: file.kind.map(str::to_owned).or_else(|| self.sent(origin)),
            description: self.description(file, about, role),
            call: origin
                .map(|origin| self.call_id(origin))
                .or(file.call.map(str::to_owned)),
            parent: match run.filter(|run| self.runs.iter().any(|known| known.id == **run)) {
                Some(run) => Some(run.to_owned()),
                None => self.parent(origin),
            },
            depth: 1,
            status: self.status(file, origin, role, state.as_deref()),
            state,
            turns: file.session.turns.len(),
            calls: file.session.calls.len(),
            recent_output: file.session.recent_output.clone(),
            file: Some(at),
            thread: None,
        }
    }

    /// What it was sent for.
    fn description(
        &self,
        file: &SubAgentSession<'_>,
        about: Option<String>,
        role: AgentKind,
    ) -> Option<String> {
        let noted = file.description.map(str::to_owned).or(about);
        noted.or_else(|| match role {
            AgentKind::SubAgent => None,
            AgentKind::Run | AgentKind::Workflow | AgentKind::Teammate => {
                let goal = file.session.goal.as_deref()?;
                Some(entry::clip(&crate::block::one_line(goal), entry::HEAD))
            }
            // What was asked on the side is what was asked last.
            AgentKind::SideQuestion => {
                let asked = file.session.recent_prompt.as_deref()?;
                Some(entry::clip(&crate::block::one_line(asked), entry::HEAD))
            }
            helper => Some(helper.words().to_owned()),
        })
    }

    /// The kind of agent that the call asked for.
    fn sent(&self, origin: Option<AgentOrigin>) -> Option<String> {
        let origin = origin?;
        let (session, _, source) = self.maker(origin);
        sent_kind(session, source?, &session.calls[origin.call as usize])
    }

    fn status(
        &self,
        file: &SubAgentSession<'_>,
        origin: Option<AgentOrigin>,
        role: AgentKind,
        state: Option<&str>,
    ) -> &'static str {
        if role == AgentKind::Workflow || role.is_helper() {
            let done = background_work::is_done(file.session);
            return match state {
                Some("done" | "completed") => "completed",
                Some("error" | "failed") => "failed",
                _ if done => "completed",
                Some("running" | "queued" | "started") if !self.is_over(file) => "running",
                Some(_) => "lost",
                None => "unknown",
            };
        }
        let Some(origin) = origin else {
            return "unknown";
        };
        let (session, course, _) = self.maker(origin);
        let call = &session.calls[origin.call as usize];
        match call.launched && !background_work::is_done(file.session) {
            true => "running",
            false => status(course.status(session, call)),
        }
    }

    /// Whether the run of a sub-agent is over.
    fn is_over(&self, file: &SubAgentSession<'_>) -> bool {
        let told = self.told.get(file.id);
        told.is_some_and(|(run, _)| run.is_over())
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
