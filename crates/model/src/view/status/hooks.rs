//! What hooks told, one event after the other.
//!
//! Each event says what happens at its moment. A request for permission holds until its own call
//! is answered, by a later event or by a line: calls run side by side, and what one of them does
//! says nothing about another. Events of sub-agents say nothing about the session itself, except
//! that somebody must allow something.

use std::collections::{HashMap, HashSet};

use super::{
    HookSignal, RegistryState, RegistryStatus, SessionState, StatusFinding, StatusSignals,
    StatusSource, WaitReason, asks, resets,
};
use crate::entry::LineKind;
use crate::entry::failure::LimitReset;
use crate::hook_events::{HookEvent, RunningTask};
use crate::session::{EntryRecord, Session};
use crate::time::Time;
use crate::user_input::UserInput;

/// What hooks told in the end.
#[derive(Clone, Debug, Default)]
pub(super) struct HookFindings {
    /// About the session itself.
    pub found: Option<StatusFinding>,
    /// Calls that came to an end.
    pub answered: HashSet<String>,
    /// When the last turn began or ended.
    pub turn: Option<Time>,
    /// Whether the client lives, if that can be seen.
    pub alive: Option<bool>,
    /// The last event of all.
    pub last: Option<Time>,
    /// What a sub-agent waits for.
    pub agent_wait: Option<PendingRequest>,
    /// Sub-agents that began or ended, and when.
    pub agents: HashMap<String, (Time, bool)>,
    /// What ran in the background when the session last stopped.
    pub running: Option<(Time, Vec<RunningTask>)>,
}

/// A person is asked for something.
#[derive(Clone, Debug)]
pub(super) struct PendingRequest {
    pub at: Time,
    pub state: SessionState,
    pub waits: WaitReason,
}

/// One conversation while its events are told: the session's, or that of a sub-agent.
#[derive(Default)]
struct HookConversation {
    state: Option<(SessionState, Time)>,
    /// What a person is asked for.
    waits: Vec<PendingRequest>,
    /// Calls that began and did not end.
    open: Vec<OpenHookCall>,
    by_itself: bool,
    error: Option<String>,
    resets: Option<LimitReset>,
}

struct OpenHookCall {
    call: Option<String>,
    tool: Option<String>,
    subject: Option<String>,
}

/// Takes in all events.
pub(super) fn hear(
    session: &Session,
    agents: &[&Session],
    signals: &StatusSignals,
) -> HookFindings {
    let mut heard = HookFindings::default();
    let mut own = HookConversation::default();
    let mut others: HashMap<&str, HookConversation> = HashMap::new();
    let mut order: Vec<&HookSignal> = signals.hooks.iter().collect();
    // Hooks that run side by side note their events in any order.
    order.sort_by_key(|signal| signal.at);
    for HookSignal { at, event } in order {
        heard.last = heard.last.max(Some(*at));
        heard.note(*at, event);
        if event.name == "Notification" {
            // It may be about the next request: those that lines have answered are over.
            own.waits.retain(|wait| !is_settled(session, wait));
        }
        match event
            .agent
            .as_deref()
            .or_else(|| sender(session, agents, event))
        {
            Some(agent) => others.entry(agent).or_default().take(*at, event),
            None => own.take(*at, event),
        }
        if matches!(event.name.as_str(), "SessionEnd" | "SessionStart") && event.agent.is_none() {
            others.clear();
        }
    }
    let by_agent = |wait: &PendingRequest| agents.iter().any(|agent| is_answered(agent, wait));
    own.waits
        .retain(|wait| !is_settled(session, wait) && !by_agent(wait));
    let talks = others.into_iter();
    let waits = talks.flat_map(|(id, talk)| talk.waits.into_iter().map(move |wait| (id, wait)));
    let open = waits.filter(|(id, wait)| {
        let file = agents
            .iter()
            .find(|agent| agent.agent.as_deref() == Some(id));
        let answered = file.is_some_and(|file| is_settled(file, wait));
        !answered && !heard.is_left(session, id, wait.at) && !is_past(signals, wait.at)
    });
    heard.agent_wait = open.max_by_key(|(_, wait)| wait.at).map(|(id, mut wait)| {
        wait.waits.agent = Some(id.to_owned());
        wait
    });
    heard.found = own.found(signals);
    heard.alive = signals
        .alive()
        .filter(|alive| *alive || !is_reopened(signals));
    heard
}

/// The sub-agent whose call an event is about: clients before 2.1.45 do not say it.
fn sender<'a>(session: &Session, agents: &[&'a Session], event: &HookEvent) -> Option<&'a str> {
    let call = event.call.as_deref()?;
    if session.find_call(call).is_some() {
        return None;
    }
    let mut agents = agents.iter();
    let agent = agents.find(|agent| agent.find_call(call).is_some())?;
    agent.agent.as_deref()
}

/// Whether a client began with the session after the one whose note is left.
fn is_reopened(signals: &StatusSignals) -> bool {
    let RegistryState::Entry(entry) = &signals.registry else {
        return false;
    };
    let begins = |signal: &&HookSignal| {
        let event = &signal.event;
        event.is_begin() && event.agent.is_none() && event.reason.as_deref() != Some("compact")
    };
    let begun = signals.hooks.iter().filter(begins);
    begun.map(|signal| Some(signal.at)).max() > Some(entry.since)
}

/// Whether the registry says that nothing is asked any more.
fn is_past(signals: &StatusSignals, then: Time) -> bool {
    let RegistryState::Entry(entry) = &signals.registry else {
        return false;
    };
    let goes_on = entry
        .says
        .is_some_and(|says| says != RegistryStatus::Waiting);
    goes_on && entry.since > Some(then)
}

impl HookFindings {
    /// Whether the session went on without its sub-agent, or that is over.
    fn is_left(&self, session: &Session, agent: &str, then: Time) -> bool {
        match session.find_task(agent) {
            Some(task) => task.over,
            None => self.turn > Some(then) || moved_on(session, then),
        }
    }

    /// What an event says about calls, turns and sub-agents, whoever it is about.
    fn note(&mut self, at: Time, event: &HookEvent) {
        match event.name.as_str() {
            "PostToolUse" | "PostToolUseFailure" | "PermissionDenied" => {
                self.answered.extend(event.call.clone());
            }
            "SubagentStart" | "SubagentStop" => {
                if let Some(agent) = &event.agent {
                    let begins = event.name == "SubagentStart";
                    self.agents.insert(agent.clone(), (at, begins));
                }
            }
            "UserPromptSubmit" | "Stop" | "StopFailure" | "SessionStart" | "SessionEnd"
                if event.agent.is_none() =>
            {
                self.turn = Some(at);
                if let Some(running) = &event.running {
                    self.running = Some((at, running.clone()));
                }
            }
            _ => {}
        }
    }
}

impl HookConversation {
    fn take(&mut self, at: Time, event: &HookEvent) {
        match event.name.as_str() {
            "UserPromptSubmit" => self.restart(SessionState::Working, at),
            "PreToolUse" => {
                self.open.push(OpenHookCall {
                    call: event.call.clone(),
                    tool: event.tool.clone(),
                    subject: event.subject.clone(),
                });
                self.state = Some((SessionState::Working, at));
                if event
                    .tool
                    .as_deref()
                    .is_some_and(|tool| asks(tool).is_some())
                {
                    self.ask(at, event);
                }
            }
            "PermissionRequest" => self.ask(at, event),
            "PostToolUse" | "PostToolUseFailure" | "PermissionDenied" => {
                self.answer(event);
                self.state = Some((SessionState::Working, at));
            }
            "Elicitation" => self.asked(at, SessionState::WaitingForInput, event),
            "ElicitationResult" => self.elicited(at),
            "Notification" => self.notify(at, event),
            "Stop" | "SubagentStop" => self.restart(SessionState::WaitingForInput, at),
            "StopFailure" => {
                self.restart(SessionState::Error, at);
                // What the client shows says more than what the API said.
                let text = event.said.as_ref().or(event.message.as_ref());
                let text = text.or(event.error.as_ref()).cloned();
                self.resets = text.as_deref().and_then(LimitReset::read);
                self.error = text;
            }
            "PreCompact" => {
                self.by_itself = event.reason.as_deref() == Some("auto");
                self.state = Some((SessionState::Compacting, at));
            }
            "SubagentStart" => self.restart(SessionState::Working, at),
            "PostCompact" => self.compacted(at),
            "SessionStart" if event.reason.as_deref() == Some("compact") => self.compacted(at),
            "SessionStart" => self.restart(SessionState::WaitingForInput, at),
            "SessionEnd" => self.restart(SessionState::Ended, at),
            _ => {}
        }
    }

    /// A turn began or ended: nothing of the one before is left.
    fn restart(&mut self, state: SessionState, at: Time) {
        *self = HookConversation {
            state: Some((state, at)),
            ..HookConversation::default()
        };
    }

    fn compacted(&mut self, at: Time) {
        let state = if self.by_itself {
            SessionState::Working
        } else {
            SessionState::WaitingForInput
        };
        self.state = Some((state, at));
    }

    /// A call must be allowed, or asks by itself.
    fn ask(&mut self, at: Time, event: &HookEvent) {
        let same = |open: &&OpenHookCall| open.tool == event.tool && open.subject == event.subject;
        // Requests do not name their call; the event before them does.
        let call = event.call.clone().or_else(|| {
            let open = self.open.iter().rev().find(same)?;
            open.call.clone()
        });
        let tool = event.tool.as_deref().unwrap_or_default();
        let wait = PendingRequest {
            at,
            state: asks(tool).unwrap_or(SessionState::WaitingForApproval),
            waits: WaitReason {
                tool: event.tool.clone(),
                subject: event.subject.clone(),
                call,
                ..WaitReason::default()
            },
        };
        let same = |other: &&mut PendingRequest| match (&other.waits.call, &wait.waits.call) {
            (Some(one), Some(other)) => one == other,
            _ => other.waits.tool == wait.waits.tool && other.waits.subject == wait.waits.subject,
        };
        match self.waits.iter_mut().find(same) {
            Some(known) if known.waits.call.is_some() => {}
            Some(known) => *known = wait,
            None => self.waits.push(wait),
        }
        self.state = Some((SessionState::Working, at));
    }

    /// Something is asked that belongs to no call.
    fn asked(&mut self, at: Time, state: SessionState, event: &HookEvent) {
        self.waits.push(PendingRequest {
            at,
            state,
            waits: WaitReason {
                question: event.message.clone(),
                ..WaitReason::default()
            },
        });
    }

    fn elicited(&mut self, at: Time) {
        self.waits.retain(|wait| wait.waits.tool.is_some());
        self.state = Some((SessionState::Working, at));
    }

    /// A call came to an end: its own request is over, no other.
    fn answer(&mut self, event: &HookEvent) {
        let is = |call: &Option<String>, tool: &Option<String>, subject: &Option<String>| match (
            call,
            &event.call,
        ) {
            (Some(one), Some(other)) => one == other,
            _ => *tool == event.tool && *subject == event.subject,
        };
        self.open
            .retain(|open| !is(&open.call, &open.tool, &open.subject));
        self.waits.retain(|wait| {
            let waits = &wait.waits;
            waits.tool.is_none() && wait.state == SessionState::WaitingForInput
                || !is(&waits.call, &waits.tool, &waits.subject)
        });
        // Where it was not said which call must be allowed, it was one of those that are open.
        if self.open.is_empty() {
            let nameless = |wait: &PendingRequest| wait.waits.tool.is_none();
            self.waits
                .retain(|wait| !(nameless(wait) && wait.state == SessionState::WaitingForApproval));
        }
    }

    fn notify(&mut self, at: Time, event: &HookEvent) {
        let message = event.message.as_deref().unwrap_or_default();
        // Clients before 2.0.45 only say it in words.
        let kind = event.notification.as_deref().unwrap_or_else(|| {
            if message.contains("permission") {
                "permission_prompt"
            } else if message.contains("waiting for your input") {
                "idle_prompt"
            } else {
                ""
            }
        });
        match kind {
            "permission_prompt" if self.waits.is_empty() => self.permission(at, event),
            "elicitation_dialog" if self.waits.iter().all(|wait| wait.waits.tool.is_some()) => {
                self.asked(at, SessionState::WaitingForInput, event);
            }
            "elicitation_complete" | "elicitation_response" => self.elicited(at),
            "idle_prompt" if self.waits.is_empty() => {
                let resting = |(state, _): (SessionState, Time)| {
                    matches!(
                        state,
                        SessionState::WaitingForInput | SessionState::Error | SessionState::Ended
                    )
                };
                if !self.state.is_some_and(resting) {
                    self.state = Some((SessionState::WaitingForInput, at));
                }
            }
            _ => {}
        }
    }

    /// Something must be allowed, and only the words of the notification may say what.
    fn permission(&mut self, at: Time, event: &HookEvent) {
        let message = event.message.as_deref().unwrap_or_default();
        let named = |open: &&OpenHookCall| {
            let tool = open.tool.as_deref();
            tool.is_some_and(|tool| {
                message
                    .split(|c: char| !c.is_alphanumeric() && c != '_')
                    .any(|word| word == tool)
            })
        };
        let open = self.open.iter().rev().find(named);
        let open = open.or_else(|| self.open.last().filter(|_| self.open.len() == 1));
        let waits = match open {
            Some(open) => WaitReason {
                tool: open.tool.clone(),
                subject: open.subject.clone(),
                call: open.call.clone(),
                ..WaitReason::default()
            },
            None => WaitReason {
                question: event.message.clone(),
                ..WaitReason::default()
            },
        };
        let asks = waits.tool.as_deref().and_then(asks);
        self.waits.push(PendingRequest {
            at,
            state: asks.unwrap_or(SessionState::WaitingForApproval),
            waits,
        });
    }

    fn found(self, signals: &StatusSignals) -> Option<StatusFinding> {
        if let Some(wait) = self.waits.into_iter().next_back() {
            return Some(StatusFinding {
                sticks: true,
                waits: Some(wait.waits),
                ..StatusFinding::new(wait.state, Some(wait.at), StatusSource::Hook)
            });
        }
        let (state, at) = self.state?;
        Some(StatusFinding {
            error: self.error,
            resets: resets(self.resets.as_ref(), Some(at), signals),
            ..StatusFinding::new(state, Some(at), StatusSource::Hook)
        })
    }
}

/// Whether the lines say that what was asked for is no longer open.
fn is_settled(session: &Session, wait: &PendingRequest) -> bool {
    is_answered(session, wait) || moved_on(session, wait.at)
}

/// Whether the very call has a result.
fn is_answered(session: &Session, wait: &PendingRequest) -> bool {
    match wait.waits.call.as_deref() {
        Some(call) => {
            let at = session.find_call(call);
            at.is_some_and(|at| session.calls[at as usize].result.is_some())
        }
        None => answered_since(session, wait),
    }
}

/// Whether a call of which only tool and subject are known has a result since it was asked.
fn answered_since(session: &Session, wait: &PendingRequest) -> bool {
    let since = |record: &EntryRecord| record.at().is_some_and(|at| at >= wait.at);
    let recent = session.calls.iter().rev().take(200);
    let mut answered = recent.filter(|call| {
        let result = call.result.as_ref();
        result.is_some_and(|result| since(&session.records[result.record as usize]))
    });
    answered.any(|call| match &wait.waits.tool {
        Some(tool) => {
            session.text(call.tool) == tool
                && session.subject(call) == wait.waits.subject.as_deref()
        }
        None => wait.state == SessionState::WaitingForApproval,
    })
}

/// Whether a new turn began since then, or the one of then was interrupted.
fn moved_on(session: &Session, then: Time) -> bool {
    let own = |record: &&EntryRecord| record.thread == 0 && !record.is_duplicate();
    session
        .records
        .iter()
        .rev()
        .filter(own)
        .take_while(|record| record.at().is_none_or(|at| at > then))
        .any(|record| {
            let acts = record.input.opens_turn() || record.input == UserInput::Interrupt;
            let ends = matches!(
                record.kind,
                LineKind::TurnDuration | LineKind::StopHookSummary
            );
            record.at().is_some() && (record.kind == LineKind::User && acts || ends)
        })
}
