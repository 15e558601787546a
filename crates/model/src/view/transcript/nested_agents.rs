//! Which conversation belongs under which call that started a sub-agent.
//!
//! By the id in the call's result, by the call that is known to have started the file (see
//! [`crate::view::agents::agent_origins`]), or, for lines inside the session's own file (1.0) that name
//! nobody, by the prompt.

use serde_json::Value;

use super::line_text::text_of;
use super::thread_walk::ThreadWalk;
use super::{AgentTranscript, ItemBody, TranscriptAgent, TranscriptItem};
use crate::session::{Index, Session, ToolCall};
use crate::user_input::readable;
use crate::view::workflow::{WorkflowAgent, WorkflowRun};

/// Deepest nesting shown; files that name each other in a circle end here.
const DEPTH: usize = 5;

/// Tells a thread of a file from the sub-agents that have files of their own.
pub(super) fn thread_key(session: &Session, thread: Index) -> String {
    let root = session.threads[thread as usize].root;
    let id = root.and_then(|root| session.records[root as usize].uuid.as_ref());
    match id {
        Some(id) => format!("{thread}:{id}"),
        None => format!("{thread}:"),
    }
}

impl<'a> ThreadWalk<'a> {
    /// The sub-agent of a call, with its conversation if that was asked for.
    pub(super) fn agent(&self, call: &ToolCall, input: &Value) -> Option<TranscriptAgent> {
        if let Some((id, file)) = self.agent_file(call) {
            let inner = || ThreadWalk::new(file.session, file.source, self.agents, true);
            return Some(TranscriptAgent {
                key: id.clone(),
                id: Some(id),
                calls: file.session.calls.len() as u64,
                items: self.nested(inner),
                run: None,
            });
        }
        let thread = self.inline_thread(call, input)?;
        let own = |call: &&ToolCall| self.session.records[call.record as usize].thread == thread;
        let inner = || self.in_thread(thread);
        Some(TranscriptAgent {
            id: self.session.agent_of(call).map(str::to_owned),
            key: thread_key(self.session, thread),
            calls: self.session.calls.iter().filter(own).count() as u64,
            items: self.nested(inner),
            run: None,
        })
    }

    /// The sub-agents of the workflow run that a call started, one behind the other.
    pub(super) fn run(&self, call: &ToolCall) -> Option<TranscriptAgent> {
        let id = self.session.call_id(call);
        let files = self.agents.values();
        let run = files
            .filter(|file| file.call == Some(id))
            .find_map(|file| file.run)?;
        let files: Vec<(&WorkflowAgent, &AgentTranscript<'a>)> = run
            .agents
            .iter()
            .filter_map(|agent| Some((agent, self.agents.get(&agent.agent)?)))
            .collect();
        let mut items = Vec::new();
        for (agent, file) in files.iter().filter(|_| self.open_agents) {
            items.push(TranscriptItem {
                line: self.session.records[call.record as usize].line,
                at: file.session.first,
                body: ItemBody::Notice {
                    text: run_agent_words(agent),
                },
            });
            items.extend(
                self.nested(|| ThreadWalk::new(file.session, file.source, self.agents, true)),
            );
        }
        let calls = files
            .iter()
            .map(|(_, file)| file.session.calls.len() as u64);
        Some(TranscriptAgent {
            id: None,
            key: run.id.clone(),
            calls: calls.sum(),
            items,
            run: Some(Box::new(WorkflowRun::clone(run))),
        })
    }

    fn nested(&self, inner: impl FnOnce() -> ThreadWalk<'a>) -> Vec<super::TranscriptItem> {
        if !self.open_agents || self.depth >= DEPTH {
            return Vec::new();
        }
        let mut inner = inner().below(self.depth + 1);
        inner.whole = self.whole;
        inner.all()
    }

    fn agent_file(&self, call: &ToolCall) -> Option<(String, &'a AgentTranscript<'a>)> {
        let named = self.session.agent_of(call);
        let by_id = named.and_then(|id| self.agents.get_key_value(id));
        let by_call = || {
            let starts = |(_, file): &(&String, &AgentTranscript<'_>)| {
                file.call == Some(self.session.call_id(call))
            };
            // Any of them would do; this one is the same each time.
            self.agents.iter().filter(starts).min_by_key(|(id, _)| *id)
        };
        let (id, file) = by_id.or_else(by_call)?;
        // A file is never its own sub-agent.
        (!std::ptr::eq(file.session, self.session)).then(|| (id.clone(), file))
    }

    /// The thread within this file that the call started.
    fn inline_thread(&self, call: &ToolCall, input: &Value) -> Option<Index> {
        let session = self.session;
        let threads = session.threads.iter().enumerate().skip(1);
        if let Some(agent) = session.agent_of(call) {
            let named = threads
                .clone()
                .find(|(_, thread)| thread.agent.as_deref() == Some(agent));
            if let Some((at, _)) = named {
                return Some(at as Index);
            }
        }
        let end = call
            .result
            .as_ref()
            .map_or(Index::MAX, |result| result.record);
        let inside = |root: Index| root > call.record && root < end;
        let prompt = input["prompt"].as_str().unwrap_or_default();
        let nameless = threads.filter(|(_, thread)| thread.agent.is_none());
        let candidates: Vec<(Index, Index)> = nameless
            .filter_map(|(at, thread)| Some((at as Index, thread.root?)))
            .filter(|&(_, root)| inside(root))
            .collect();
        let same =
            |root: Index| readable(&text_of(session, self.source, root)) == prompt.trim_end();
        let by_prompt = candidates.iter().find(|&&(_, root)| same(root));
        let only = (candidates.len() == 1).then(|| &candidates[0]);
        by_prompt.or(only).map(|&(at, _)| at)
    }
}

/// What a workflow says of one of its sub-agents: `Verify · tests: done`.
pub fn run_agent_words(agent: &WorkflowAgent) -> String {
    let label = agent.label.as_deref().unwrap_or(&agent.agent);
    let name = match agent.phase.as_deref() {
        Some(phase) => format!("{phase} · {label}"),
        None => label.to_owned(),
    };
    match agent.state.as_deref() {
        Some(state) => format!("{name}: {state}"),
        None => name,
    }
}
