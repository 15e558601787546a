//! What a session is doing, as far as its transcript tells.
//!
//! A call on disk usually runs; only calls that ask a person by themselves wait for one. The
//! last physical line is not the state: bookkeeping follows it. Time turns a quiet session
//! idle, but never one that waits for an answer to a question.

use crate::entry::Kind;
use crate::input::Input;
use crate::session::{Call, Index, Record, Session};
use crate::time::Time;

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// The model or a tool is at work.
    Working,
    /// A person must allow something.
    WaitingForApproval,
    /// The person's turn.
    WaitingForInput,
    /// Nothing happens.
    Idle,
    /// The API failed.
    Error,
}

impl State {
    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            State::Working => "working",
            State::WaitingForApproval => "waiting_for_approval",
            State::WaitingForInput => "waiting_for_input",
            State::Idle => "idle",
            State::Error => "error",
        }
    }

    /// The state with this name.
    pub fn named(name: &str) -> Option<State> {
        [
            State::Working,
            State::WaitingForApproval,
            State::WaitingForInput,
            State::Idle,
            State::Error,
        ]
        .into_iter()
        .find(|state| state.name() == name)
    }
}

/// A state, since when, and what it waits for.
#[derive(Clone, Debug)]
pub struct Status {
    /// The state.
    pub state: State,
    /// Since when.
    pub since: Option<Time>,
    /// The last call without a result, as an index of calls, while it may run.
    pub pending: Option<Index>,
}

/// A session without lines for this long is idle.
pub const IDLE_MS: u64 = 5 * 60 * 1_000;

/// What the session is doing at `now`.
pub fn status(session: &Session, now: Time) -> Status {
    let Some(last) = last_event(session) else {
        return Status {
            state: State::Idle,
            since: session.last,
            pending: None,
        };
    };
    let pending = pending(session);
    let asks = pending.map(|call| asks(session, &session.calls[call as usize]));
    let state = match asks {
        Some(Some(state)) => state,
        Some(None) => State::Working,
        None => after(session, last),
    };
    let since = last.at().or(session.last);
    let quiet = session
        .last
        .or(since)
        .is_none_or(|last| now.since(last) >= IDLE_MS);
    let waits_for_person = matches!(asks, Some(Some(_)));
    if quiet && !waits_for_person && state != State::Idle {
        let since = session
            .last
            .map(|last| Time(last.0.saturating_add(IDLE_MS as i64)));
        return Status {
            state: State::Idle,
            since,
            pending,
        };
    }
    Status {
        state,
        since,
        pending,
    }
}

/// The last line that says something about the state.
fn last_event(session: &Session) -> Option<&Record> {
    let last = last_in_file(session)?;
    if !last.input.opens_turn() || last.uuid.is_none() {
        return Some(last);
    }
    // 2.1.45 may write the answer before the prompt.
    let answers = |record: &&Record| {
        record.kind == Kind::Assistant && session.parent_of(record) == last.uuid.as_ref()
    };
    Some(
        session
            .records
            .iter()
            .rev()
            .take(64)
            .find(answers)
            .unwrap_or(last),
    )
}

fn last_in_file(session: &Session) -> Option<&Record> {
    session.records.iter().rev().find(|record| {
        record.thread == 0
            && !record.duplicate
            && matches!(
                record.kind,
                Kind::User
                    | Kind::Assistant
                    | Kind::TurnDuration(_)
                    | Kind::StopHookSummary
                    | Kind::ApiError
                    | Kind::CompactBoundary(_)
                    | Kind::LocalCommand
            )
    })
}

/// The last call without a result, if nothing came after it that settles it.
fn pending(session: &Session) -> Option<Index> {
    let own = |call: &Call| session.records[call.record as usize].thread == 0;
    let mut calls = session
        .calls
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, call)| own(call));
    let last_message = session
        .messages
        .iter()
        .rposition(|message| message.thread == 0)? as Index;
    let open = calls.find(|(_, call)| {
        let record = &session.records[call.record as usize];
        call.result.is_none() && record.message() == Some(last_message)
    });
    let (index, call) = open?;
    let settled = session.records[call.record as usize + 1..]
        .iter()
        .any(|record| {
            let ends = matches!(record.input, Input::Interrupt) || record.input.opens_turn();
            record.thread == 0 && record.kind == Kind::User && ends
        });
    (!settled).then_some(index as Index)
}

/// Calls that wait for a person by themselves.
fn asks(session: &Session, call: &Call) -> Option<State> {
    match session.text(call.tool) {
        "AskUserQuestion" => Some(State::WaitingForInput),
        "ExitPlanMode" => Some(State::WaitingForApproval),
        _ => None,
    }
}

/// The state behind the last line, when no call is open.
fn after(session: &Session, last: &Record) -> State {
    match &last.kind {
        Kind::TurnDuration(_) | Kind::StopHookSummary | Kind::LocalCommand => {
            State::WaitingForInput
        }
        Kind::CompactBoundary(_) => State::Working,
        Kind::ApiError => State::Error,
        Kind::Assistant if last.api_error => State::Error,
        Kind::Assistant => {
            let message = last.message().map(|at| &session.messages[at as usize]);
            let stop = message
                .and_then(|message| message.stop)
                .map(|stop| session.text(stop));
            let synthetic = message.is_some_and(|message| message.synthetic);
            // From 2.1.105 on every line of a message says why it stopped: its call follows.
            let speaks = synthetic || (has_text(session, last) && stop != Some("tool_use"));
            if speaks {
                State::WaitingForInput
            } else {
                State::Working
            }
        }
        Kind::User => match last.input {
            Input::Machine if last.notifies() => State::Working,
            Input::Summary if compacted_by_itself(session) => State::Working,
            Input::Interrupt | Input::Machine | Input::Summary => State::WaitingForInput,
            Input::Shell | Input::Memory => State::WaitingForInput,
            Input::Prompt | Input::Command | Input::Plan | Input::Results | Input::Meta => {
                State::Working
            }
        },
        _ => State::Idle,
    }
}

/// Whether the last compaction came in the middle of a turn, which then goes on.
fn compacted_by_itself(session: &Session) -> bool {
    let last = session
        .records
        .iter()
        .rev()
        .find_map(|record| match &record.kind {
            Kind::CompactBoundary(boundary) => boundary.trigger.as_deref(),
            _ => None,
        });
    last == Some("auto")
}

fn has_text(session: &Session, record: &Record) -> bool {
    use crate::block::BlockKind;
    session
        .blocks_of(record)
        .iter()
        .any(|block| block.kind == BlockKind::Text && !block.blank)
}
