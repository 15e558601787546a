//! Which call started which sub-agent.
//!
//! Clients wrote it down in many ways, and no way alone finds them all. In the order in which
//! they are believed: the structured result of the call, the side file of the sub-agent, lines of
//! progress, notifications, the text of the result, the workflow run, the name of a teammate; and
//! last the same prompt, where only one call and one sub-agent have it.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use super::{SubAgentSession, is_agent_call};
use crate::agent_kind::AgentKind;
use crate::entry::ClueSource;
use crate::log::TranscriptSource;
use crate::session::{Index, Session};
use crate::tool;
use crate::view::transcript::result_text;
use crate::view::workflow::WorkflowRun;
use crate::view::{files, turns};

/// Who made the call that started a sub-agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AgentOrigin {
    /// The sub-agent that made it, by its place among the files; `None` for the session.
    pub maker: Option<usize>,
    /// The call, in the maker's file.
    pub call: Index,
}

/// The calls that started sub-agents and workflow runs, where they can be found.
#[derive(Clone, Debug, Default)]
pub struct AgentOrigins {
    /// Of each file.
    pub files: Vec<Option<AgentOrigin>>,
    /// Of each run.
    pub runs: Vec<Option<AgentOrigin>>,
}

/// Everybody who may have started a sub-agent.
struct AgentCallers<'a> {
    main: &'a Session,
    source: &'a dyn TranscriptSource,
    files: &'a [SubAgentSession<'a>],
    /// The call by its id, in files of sub-agents; made when a side file names one of those.
    by_id: OnceCell<HashMap<&'a str, AgentOrigin>>,
}

/// Which call started each sub-agent.
pub fn links(
    main: &Session,
    source: &dyn TranscriptSource,
    files: &[SubAgentSession<'_>],
    runs: &[WorkflowRun],
) -> AgentOrigins {
    let makers = AgentCallers {
        main,
        source,
        files,
        by_id: OnceCell::new(),
    };
    let by_result = makers.by_result();
    let by_clue = makers.by_clue();
    let run_calls: Vec<Option<AgentOrigin>> = runs
        .iter()
        .map(|run| makers.of_run(run, &by_clue))
        .collect();
    let by_run: HashMap<&str, AgentOrigin> = runs
        .iter()
        .zip(&run_calls)
        .filter_map(|(run, origin)| Some((&*run.id, (*origin)?)))
        .collect();
    let not_itself = |at: usize| move |origin: &AgentOrigin| origin.maker != Some(at);
    let mut links = AgentOrigins {
        files: Vec::with_capacity(files.len()),
        runs: run_calls,
    };
    for (at, file) in files.iter().enumerate() {
        let result = || by_result.get(file.id).copied().filter(not_itself(at));
        let note = || makers.call(file.call?).filter(not_itself(at));
        let clue = || {
            let (_, origin) = by_clue.get(file.id)?;
            // A call that names its sub-agent has started no other.
            Some(*origin).filter(|origin| makers.fits(*origin, file.id) && not_itself(at)(origin))
        };
        let run = || by_run.get(file.run?).copied();
        let helper = AgentKind::of_id(file.id).is_helper();
        let found = || result().or_else(note).or_else(clue).or_else(run);
        links.files.push(if helper { None } else { found() });
    }
    makers.by_name(&mut links);
    makers.by_prompt(&mut links);
    links
}

impl<'a> AgentCallers<'a> {
    fn session(&self, maker: Option<usize>) -> &'a Session {
        maker.map_or(self.main, |at| self.files[at].session)
    }

    fn source(&self, maker: Option<usize>) -> Option<&'a dyn TranscriptSource> {
        match maker {
            None => Some(self.source),
            Some(at) => self.files[at].source,
        }
    }

    /// The session, then each sub-agent. What the client's own helpers hold is copied.
    fn all(&self) -> impl Iterator<Item = (Option<usize>, &'a Session)> + '_ {
        let files = self.files.iter().enumerate();
        let files = files.filter(|(_, file)| !AgentKind::of_id(file.id).is_helper());
        let files = files.map(|(at, file)| (Some(at), file.session));
        std::iter::once((None, self.main)).chain(files)
    }

    /// Sub-agents that structured results name, those of calls that start sub-agents first: other
    /// tools name the sub-agent they are about.
    fn by_result(&self) -> HashMap<&'a str, AgentOrigin> {
        let mut known: HashMap<&'a str, (bool, AgentOrigin)> = HashMap::new();
        for (maker, session) in self.all() {
            for (call, one) in (0..).zip(&session.calls) {
                let Some(agent) = session.agent_of(one) else {
                    continue;
                };
                let starts = is_agent_call(session, call);
                let origin = AgentOrigin { maker, call };
                let is_better = |known: &(bool, AgentOrigin)| starts && !known.0;
                if known.get(agent).is_none_or(is_better) {
                    known.insert(agent, (starts, origin));
                }
            }
        }
        let known = known.into_iter();
        known.map(|(agent, (_, origin))| (agent, origin)).collect()
    }

    /// Sub-agents and tasks that other lines name with their calls.
    fn by_clue(&self) -> HashMap<&'a str, (ClueSource, AgentOrigin)> {
        let mut known: HashMap<&'a str, (ClueSource, AgentOrigin)> = HashMap::new();
        for (maker, session) in self.all() {
            for (agent, from, call) in session.agent_clues() {
                let own = session
                    .find_call(call)
                    .map(|call| AgentOrigin { maker, call });
                // A session also tells of what its sub-agents start.
                let Some(origin) = own.or_else(|| self.call(call)) else {
                    continue;
                };
                if known.get(agent).is_none_or(|(best, _)| from < *best) {
                    known.insert(agent, (from, origin));
                }
            }
        }
        known
    }

    /// The call with this id.
    fn call(&self, id: &str) -> Option<AgentOrigin> {
        if let Some(call) = self.main.find_call(id) {
            return Some(AgentOrigin { maker: None, call });
        }
        let by_id = self.by_id.get_or_init(|| {
            let inner = self.all().filter(|(maker, _)| maker.is_some());
            let calls = inner.flat_map(|(maker, session)| {
                let calls = (0..).zip(&session.calls);
                calls.map(move |(call, one)| (session.call_id(one), AgentOrigin { maker, call }))
            });
            calls.collect()
        });
        by_id.get(id).copied()
    }

    /// Whether a call may have started this sub-agent: it names no other.
    fn fits(&self, origin: AgentOrigin, agent: &str) -> bool {
        let session = self.session(origin.maker);
        let named = session.agent_of(&session.calls[origin.call as usize]);
        named.is_none_or(|named| named == agent)
    }

    /// The call that started a run: its result names it, else a notification names its task, else
    /// the text of the result does.
    fn of_run(
        &self,
        run: &WorkflowRun,
        by_clue: &HashMap<&'a str, (ClueSource, AgentOrigin)>,
    ) -> Option<AgentOrigin> {
        let named = || {
            self.all().find_map(|(maker, session)| {
                let call = session.call_of_run(&run.id)?;
                Some(AgentOrigin { maker, call })
            })
        };
        let told = || {
            let task = run.task.as_deref()?;
            by_clue.get(task).map(|(_, origin)| *origin)
        };
        let written = || {
            self.all().find_map(|(maker, session)| {
                let source = self.source(maker)?;
                let calls = 0..session.calls.len() as Index;
                let mut calls = calls.filter(|&call| {
                    tool::is_workflow(session.text(session.calls[call as usize].tool))
                });
                let call = calls.find(|&call| says(session, source, call).contains(&*run.id))?;
                Some(AgentOrigin { maker, call })
            })
        };
        named().or_else(told).or_else(written)
    }

    /// Teammates are called by name.
    fn by_name(&self, links: &mut AgentOrigins) {
        let mut wanted: HashMap<&str, usize> = HashMap::new();
        for (at, file) in self.files.iter().enumerate() {
            if let (None, Some(member)) = (links.files[at], file.session.member.as_deref()) {
                wanted.insert(member, at);
            }
        }
        if wanted.is_empty() {
            return;
        }
        for (origin, input) in self.unanswered(links) {
            if let Some(at) = input["name"].as_str().and_then(|name| wanted.remove(name)) {
                links.files[at] = Some(origin);
            }
        }
    }

    /// The last way: only one call and one sub-agent have the same prompt.
    fn by_prompt(&self, links: &mut AgentOrigins) {
        let mut asked: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, file) in self.files.iter().enumerate() {
            let helper = AgentKind::of_id(file.id).is_helper();
            if links.files[at].is_none()
                && !helper
                && let Some(prompt) = file.source.and_then(|source| prompt(file.session, source))
            {
                asked.entry(prompt).or_default().push(at);
            }
        }
        if asked.is_empty() {
            return;
        }
        let mut calls: HashMap<String, Vec<AgentOrigin>> = HashMap::new();
        for (origin, input) in self.unanswered(links) {
            let prompt = input["prompt"].as_str().unwrap_or_default().trim();
            if asked.contains_key(prompt) {
                calls.entry(prompt.to_owned()).or_default().push(origin);
            }
        }
        for (prompt, origins) in calls {
            if let ([origin], [at]) = (&origins[..], &asked[&prompt][..])
                && origin.maker != Some(*at)
            {
                links.files[*at] = Some(*origin);
            }
        }
    }

    /// Calls that start sub-agents and of which no sub-agent is known, with their inputs.
    fn unanswered(&self, links: &AgentOrigins) -> Vec<(AgentOrigin, serde_json::Value)> {
        let taken: HashSet<AgentOrigin> = links.files.iter().flatten().copied().collect();
        let mut all = Vec::new();
        for (maker, session) in self.all() {
            let Some(source) = self.source(maker) else {
                continue;
            };
            for call in 0..session.calls.len() as Index {
                let origin = AgentOrigin { maker, call };
                if is_agent_call(session, call) && !taken.contains(&origin) {
                    let call = &session.calls[call as usize];
                    all.push((origin, files::input(session, source, call)));
                }
            }
        }
        all
    }
}

/// What a sub-agent was asked first.
fn prompt(session: &Session, source: &dyn TranscriptSource) -> Option<String> {
    let opens = session.turns.iter().find(|turn| turn.thread == 0)?;
    let record = &session.records[opens.record as usize];
    let prompt = turns::prompt(session, source, record);
    Some(prompt.trim().to_owned()).filter(|prompt| !prompt.is_empty())
}

/// The text of the result of a call.
fn says(session: &Session, source: &dyn TranscriptSource, call: Index) -> String {
    let Some(result) = &session.calls[call as usize].result else {
        return String::new();
    };
    let bytes = session.bytes_of(source, &session.records[result.record as usize]);
    result_text(session.blocks[result.block as usize].body().of(&bytes))
}
