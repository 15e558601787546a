//! What the lines of a transcript say about the state.
//!
//! A call on disk usually runs; only calls that ask a person by themselves wait for one. The
//! last physical line is not the state: bookkeeping follows it.

use super::{
    SessionState, StatusFinding, StatusSignals, StatusSource, WaitReason, asks, is_from, resets,
};
use crate::block::BlockKind;
use crate::entry::LineKind;
use crate::session::{EntryRecord, Index, Session, ToolCall};
use crate::time::Time;
use crate::user_input::UserInput;

/// What the lines say, at the time of the last one that says something.
pub(super) fn found(session: &Session, signals: &StatusSignals) -> StatusFinding {
    let Some(last) = last_event(session) else {
        return StatusFinding::new(SessionState::Idle, session.last, StatusSource::Transcript);
    };
    let since = last.at().or(session.last);
    let pending = pending(session);
    let Some(call) = pending.map(|at| &session.calls[at as usize]) else {
        let (state, sure) = after(session, last);
        let mut found = StatusFinding::new(state, since, StatusSource::Transcript);
        found.sure = sure;
        if state == SessionState::Error || last.kind == LineKind::ApiError {
            failed(session, signals, &mut found);
        }
        return found;
    };
    let tool = session.text(call.tool);
    let asks = asks(tool);
    StatusFinding {
        // Nothing in the file tells a call that runs from one that must be allowed.
        sure: asks.is_some() || is_free(session),
        sticks: asks.is_some(),
        pending,
        waits: asks.map(|_| WaitReason {
            tool: Some(tool.to_owned()),
            subject: session.subject(call).map(str::to_owned),
            call: Some(session.call_id(call).to_owned()),
            ..WaitReason::default()
        }),
        ..StatusFinding::new(
            asks.unwrap_or(SessionState::Working),
            since,
            StatusSource::Transcript,
        )
    }
}

/// Whether nothing has to be allowed.
fn is_free(session: &Session) -> bool {
    session.permission_mode.as_deref() == Some("bypassPermissions")
}

fn failed(session: &Session, signals: &StatusSignals, found: &mut StatusFinding) {
    let Some((record, failure)) = &session.failure else {
        return;
    };
    let text = match failure.attempt {
        Some((attempt, of)) => format!("{} (attempt {attempt} of {of})", failure.text),
        None => failure.text.clone(),
    };
    found.error = Some(text).filter(|text| !text.is_empty());
    let at = session.records[*record as usize].at();
    found.resets = resets(failure.resets.as_ref(), at.or(found.since), signals);
}

/// The last line that says something about the state.
fn last_event(session: &Session) -> Option<&EntryRecord> {
    let last = last_in_file(session)?;
    if !last.input.opens_turn() || last.uuid.is_none() {
        return Some(last);
    }
    // 2.1.45 may write the answer before the prompt.
    let answers = |record: &&EntryRecord| {
        record.kind == LineKind::Assistant && session.parent_of(record) == last.uuid.as_ref()
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

fn last_in_file(session: &Session) -> Option<&EntryRecord> {
    session.records.iter().rev().find(|record| {
        record.thread == 0
            && !record.is_duplicate()
            && matches!(
                record.kind,
                LineKind::User
                    | LineKind::Assistant
                    | LineKind::TurnDuration
                    | LineKind::StopHookSummary
                    | LineKind::ApiError
                    | LineKind::CompactBoundary
                    | LineKind::MicroBoundary
                    | LineKind::LocalCommand
            )
    })
}

/// The last call without a result, if nothing came after it that settles it.
pub(super) fn pending(session: &Session) -> Option<Index> {
    let last_message = session
        .messages
        .iter()
        .rposition(|message| message.thread == 0)? as Index;
    let first = *session.messages[last_message as usize].records.first()?;
    let of_last = |call: &ToolCall| {
        let record = &session.records[call.record as usize];
        record.thread == 0 && record.message() == Some(last_message)
    };
    let (index, call) = session
        .calls
        .iter()
        .enumerate()
        .rev()
        // Calls of earlier messages need not be looked at, however many there are.
        .take_while(|(_, call)| call.record >= first)
        .find(|(_, call)| call.result.is_none() && of_last(call))?;
    let settles = |record: &EntryRecord| {
        let own = record.thread == 0 && !record.is_duplicate();
        own && match record.kind {
            LineKind::User => {
                matches!(record.input, UserInput::Interrupt) || record.input.opens_turn()
            }
            LineKind::TurnDuration | LineKind::StopHookSummary => true,
            _ => false,
        }
    };
    let settled = session.records[call.record as usize + 1..]
        .iter()
        .any(settles);
    (!settled).then_some(index as Index)
}

/// The state behind the last line when no call is open, and whether that is certain.
fn after(session: &Session, last: &EntryRecord) -> (SessionState, bool) {
    let state = match last.kind {
        LineKind::TurnDuration | LineKind::StopHookSummary | LineKind::LocalCommand => {
            SessionState::WaitingForInput
        }
        LineKind::CompactBoundary | LineKind::MicroBoundary => {
            let boundary = session.boundary_of(last);
            match boundary.and_then(|boundary| boundary.trigger.as_deref()) {
                Some("manual") => SessionState::WaitingForInput,
                _ => SessionState::Working,
            }
        }
        // The client tries again by itself: nobody is needed until it gives up.
        LineKind::ApiError if is_tried_again(session) => SessionState::Working,
        LineKind::ApiError => SessionState::Error,
        LineKind::Assistant if last.is_api_error() => SessionState::Error,
        LineKind::Assistant => return spoken(session, last),
        LineKind::User => match last.input {
            UserInput::Machine if last.notifies() => SessionState::Working,
            UserInput::Summary if compacted_by_itself(session) => SessionState::Working,
            UserInput::Interrupt | UserInput::Machine | UserInput::Summary => {
                SessionState::WaitingForInput
            }
            UserInput::Shell | UserInput::Memory => SessionState::WaitingForInput,
            UserInput::Prompt
            | UserInput::Command
            | UserInput::Plan
            | UserInput::Results
            | UserInput::Meta => SessionState::Working,
        },
        _ => SessionState::Idle,
    };
    (state, true)
}

/// Whether the last failure is one that the client does not leave at that.
fn is_tried_again(session: &Session) -> bool {
    let failure = session.failure.as_ref();
    failure.is_some_and(|(_, failure)| failure.attempt.is_some())
}

/// From this version on, the last line of a whole message always says why it stopped.
const TOLD_STOPS: [u32; 3] = [2, 1, 59];

/// The state behind a piece of a reply.
fn spoken(session: &Session, last: &EntryRecord) -> (SessionState, bool) {
    let message = last.message().map(|at| &session.messages[at as usize]);
    let stop = message
        .and_then(|message| message.stop())
        .map(|stop| session.text(stop));
    let synthetic = message.is_some_and(|message| message.synthetic);
    // From 2.1.105 on every line of a message says why it stopped: its call follows.
    let speaks = synthetic || (has_text(session, last) && stop != Some("tool_use"));
    if speaks && stop.is_none() && !synthetic && is_from(session, TOLD_STOPS) {
        // The reply goes on, or was cut; what cut it is told by the next line.
        (SessionState::Working, true)
    } else if speaks {
        // Many versions never say why a message stopped: then a call may follow.
        (
            SessionState::WaitingForInput,
            synthetic || stop == Some("end_turn"),
        )
    } else {
        (SessionState::Working, true)
    }
}

/// Whether the last compaction came in the middle of a turn, which then goes on.
fn compacted_by_itself(session: &Session) -> bool {
    let last = session
        .records
        .iter()
        .rev()
        .find_map(|record| session.boundary_of(record)?.trigger.as_deref());
    last == Some("auto")
}

fn has_text(session: &Session, record: &EntryRecord) -> bool {
    session
        .blocks_of(record)
        .iter()
        .any(|block| block.kind == BlockKind::Text && !block.blank)
}

/// Whether a compaction was noted since then.
pub(super) fn compacted_since(session: &Session, then: Option<Time>) -> bool {
    let recent = session.records.iter().rev().take(200);
    let mut boundaries = recent.filter(|record| record.kind.is_boundary());
    boundaries.any(|record| record.at() >= then)
}
