//! What goes on beside the conversation: sub-agents, and commands in the background.

use std::collections::{HashMap, HashSet};

use super::hooks::{self, HookFindings};
use super::{IDLE_MS, SessionState, SessionStatus, StatusSignals, status, transcript};
use crate::block::BlockKind;
use crate::entry::LineKind;
use crate::session::{Session, TaskRecord, ToolCall};
use crate::time::Time;
use crate::tool;

/// The sub-agents and commands of a session that are at work.
#[derive(Clone, Debug, Default)]
pub struct RunningWork {
    /// Calls of sub-agents that the conversation waits for.
    open: HashSet<String>,
    /// Since when it waits for them.
    since: Option<Time>,
    /// Sub-agents that are known to be done; all of them only where somebody asks for one.
    done: HashSet<String>,
    /// Sub-agents in the background, with the calls that sent them.
    agents: HashMap<String, String>,
    /// Commands in the background.
    tasks: usize,
}

impl RunningWork {
    /// Who is at work at `now`.
    pub fn of(
        session: &Session,
        agents: &[&Session],
        signals: &StatusSignals,
        now: Time,
    ) -> RunningWork {
        let heard = hooks::hear(session, agents, signals);
        let mut crew = RunningWork::from(session, agents, &heard, now);
        let finished = session
            .calls
            .iter()
            .filter(|call| call.result.is_some() && !call.launched)
            .filter_map(|call| session.agent_of(call))
            .filter(|agent| !crew.agents.contains_key(*agent));
        crew.done.extend(finished.map(str::to_owned));
        crew
    }

    pub(super) fn from(
        session: &Session,
        agents: &[&Session],
        heard: &HookFindings,
        now: Time,
    ) -> RunningWork {
        let open = open_agents(session);
        let since = open
            .iter()
            .filter_map(|call| session.records[call.record as usize].at());
        let mut crew = RunningWork {
            since: since.min(),
            open: open
                .iter()
                .map(|call| session.call_id(call).to_owned())
                .collect(),
            ..RunningWork::default()
        };
        let files: HashMap<&str, &Session> = agents
            .iter()
            .filter_map(|agent| Some((agent.agent.as_deref()?, *agent)))
            .collect();
        // Ids are used again when an agent is sent on; the last one counts.
        let is_last = |task: &&TaskRecord| {
            let last = session.find_task(&task.id);
            last.is_some_and(|last| std::ptr::eq(last, *task))
        };
        for task in session.tasks.iter().filter(is_last) {
            let file = files.get(&*task.id).copied();
            let last = session.last.max(heard.last);
            let last = last.max(file.and_then(|file| file.last));
            let fresh = last.is_some_and(|last| now.since(last) < IDLE_MS);
            let runs = heard.alive.unwrap_or(fresh) && !is_over(task, file, heard);
            match (runs, task.agent) {
                (true, true) => {
                    let call = session.call_id(&session.calls[task.call as usize]);
                    crew.agents.insert(task.id.to_string(), call.to_owned());
                }
                (true, false) => crew.tasks += 1,
                (false, true) => drop(crew.done.insert(task.id.to_string())),
                (false, false) => {}
            }
        }
        crew
    }

    /// How many sub-agents the conversation waits for.
    pub fn foreground(&self) -> usize {
        self.open.len()
    }

    /// How many sub-agents work in the background.
    pub fn background(&self) -> usize {
        self.agents.len()
    }

    /// How many commands run in the background.
    pub fn tasks(&self) -> usize {
        self.tasks
    }

    /// Whether the sub-agent that this call sent is at work.
    pub fn has_call(&self, call: &str) -> bool {
        self.open.contains(call) || self.agents.values().any(|sent| sent == call)
    }

    /// What one of the sub-agents is doing, by its own file.
    pub fn status(&self, agent: &Session, signals: &StatusSignals, now: Time) -> SessionStatus {
        let id = agent.agent.as_deref().unwrap_or_default();
        let mut status = status(agent, &signals.of_agent(id), now);
        let sent = self.since.is_some() && agent.last >= self.since && !self.done.contains(id);
        if status.state != SessionState::Idle && !self.agents.contains_key(id) && !sent {
            // Whoever sent it goes on without it.
            status.state = SessionState::Idle;
            status.since = agent.last;
            (status.waits, status.error, status.resets) = (None, None, None);
        }
        status
    }
}

/// Calls of the last message that sent sub-agents and have no result yet.
fn open_agents(session: &Session) -> Vec<&ToolCall> {
    let Some(last) = transcript::pending(session) else {
        return Vec::new();
    };
    let record = session.calls[last as usize].record;
    let message = session.records[record as usize].message();
    let of_last = |call: &&ToolCall| session.records[call.record as usize].message() == message;
    let calls = session.calls.iter().rev().take_while(of_last);
    calls
        .filter(|call| call.result.is_none() && tool::is_agent(session.text(call.tool)))
        .collect()
}

/// Whether something that was started in the background is over.
fn is_over(task: &TaskRecord, file: Option<&Session>, heard: &HookFindings) -> bool {
    if task.over {
        return true;
    }
    if let Some((at, begins)) = heard.agents.get(&*task.id)
        && Some(*at) >= task.since
    {
        return !begins;
    }
    if let Some((at, running)) = &heard.running
        && Some(*at) >= task.since
    {
        return !running.iter().any(|one| one.id == *task.id);
    }
    file.is_some_and(|file| file.last >= task.since && is_done(file))
}

/// Whether the last thing an agent wrote is an answer.
pub(in crate::view) fn is_done(session: &Session) -> bool {
    let last = session
        .records
        .iter()
        .rev()
        .find(|record| record.is_conversation());
    last.is_some_and(|record| {
        let blocks = session.blocks_of(record);
        record.kind == LineKind::Assistant
            && blocks
                .iter()
                .any(|block| block.kind == BlockKind::Text && !block.blank)
    })
}
