//! Calls of a turn: which run side by side, and what came of them.

use serde_json::{Value, json};
use unspool_model::entry_writer::NewEntry;
use unspool_model::token_estimate;

use super::{REJECTED, TurnEffect, TurnEndReason, TurnHalt, TurnPhase, TurnStateMachine};
use crate::api::StreamedBlock;
use crate::tool::{ToolCallRequest, ToolContent, ToolOutcome};

/// So many calls that only read run at once.
pub const AT_ONCE: usize = 10;
const REJECTED_RESULT: &str = "User rejected tool use";

#[derive(Clone, Debug)]
pub(super) struct TurnCall {
    pub(super) call: ToolCallRequest,
    pub(super) state: TurnCallState,
    /// Whether others may run beside it.
    pub(super) reads: bool,
    /// What came of it, before it was run.
    pub(super) known: Option<ToolOutcome>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnCallState {
    Waiting,
    Running,
    Done,
}

impl TurnStateMachine {
    pub(super) fn note_call(&mut self, block: &StreamedBlock) {
        let field = |name: &str| block.json[name].as_str().unwrap_or_default().to_owned();
        let call = ToolCallRequest {
            id: field("id"),
            name: field("name"),
            input: block.json["input"].clone(),
        };
        let twice = self.calls.iter().any(|slot| slot.call.id == call.id);
        if call.id.is_empty() || twice {
            return;
        }
        let known = block.broken.as_ref().map(|raw| {
            let mut outcome = ToolOutcome::failed(json!({"INVALID_JSON": raw}).to_string());
            outcome.result = Value::from("Error: the input of the call is no JSON object");
            outcome
        });
        self.calls.push(TurnCall {
            reads: (self.reads)(&call),
            call,
            state: TurnCallState::Waiting,
            known,
        });
    }

    /// Starts what may start now: calls that only read side by side, others one by one.
    pub(super) fn run_more(&mut self, todo: &mut Vec<TurnEffect>) {
        loop {
            let running = self
                .calls
                .iter()
                .filter(|slot| slot.state == TurnCallState::Running);
            let (count, alone) = running.fold((0, false), |(count, alone), slot| {
                (count + 1, alone || !slot.reads)
            });
            let Some(next) = self
                .calls
                .iter_mut()
                .find(|slot| slot.state == TurnCallState::Waiting)
            else {
                break;
            };
            if alone || count >= AT_ONCE || (count > 0 && !next.reads) {
                break;
            }
            next.state = TurnCallState::Running;
            let call = next.call.clone();
            match next.known.take() {
                Some(outcome) => drop(self.done(&call.id, outcome, todo)),
                None => todo.push(TurnEffect::Run(call)),
            }
        }
        if self
            .calls
            .iter()
            .all(|slot| slot.state == TurnCallState::Done)
        {
            self.all_ran(todo);
        }
    }

    /// Writes what came of a call; false if nobody waits for it.
    pub(super) fn done(
        &mut self,
        id: &str,
        outcome: ToolOutcome,
        todo: &mut Vec<TurnEffect>,
    ) -> bool {
        let open = self
            .calls
            .iter_mut()
            .find(|slot| slot.call.id == id && slot.state != TurnCallState::Done);
        let Some(slot) = open else { return false };
        slot.state = TurnCallState::Done;
        self.filled += match &outcome.content {
            ToolContent::Text(text) => token_estimate::of_text(text),
            ToolContent::Blocks(blocks) => blocks.iter().map(block_tokens).sum(),
        };
        let content = match outcome.content {
            ToolContent::Text(text) => Value::String(text),
            ToolContent::Blocks(blocks) => Value::Array(blocks),
        };
        todo.push(TurnEffect::Append(NewEntry::Result {
            call: id.to_owned(),
            content,
            is_error: outcome.is_error,
            result: outcome.result,
            source: None,
            id: self.prompt.clone(),
            denial: None,
        }));
        true
    }

    pub(super) fn ran(
        &mut self,
        call: &str,
        outcome: ToolOutcome,
        halt: TurnHalt,
        todo: &mut Vec<TurnEffect>,
    ) {
        if !matches!(self.phase, TurnPhase::Running | TurnPhase::Stopping) {
            return;
        }
        if !self.done(call, outcome, todo) {
            return;
        }
        match halt {
            TurnHalt::No => {}
            TurnHalt::Rejected if self.phase == TurnPhase::Running => {
                self.halt = TurnHalt::Rejected;
                self.phase = TurnPhase::Stopping;
                todo.push(TurnEffect::StopCalls);
                todo.push(TurnEffect::Soon);
            }
            told => self.halt = told,
        }
        let running = self
            .calls
            .iter()
            .any(|slot| slot.state == TurnCallState::Running);
        match self.phase {
            TurnPhase::Stopping if !running => self.stopped(todo),
            TurnPhase::Stopping => {}
            _ => self.run_more(todo),
        }
    }

    /// All results are there.
    pub(super) fn all_ran(&mut self, todo: &mut Vec<TurnEffect>) {
        let later = std::mem::take(&mut self.later);
        todo.extend(later.into_iter().map(TurnEffect::Append));
        self.calls.clear();
        if let TurnHalt::Told(why) = std::mem::take(&mut self.halt) {
            return self.end(TurnEndReason::Hook(why), todo);
        }
        self.take_queue(todo);
        self.continued = 0;
        self.ask(todo);
    }

    /// Whatever has no result yet gets one that says why.
    pub(super) fn reject(&mut self, todo: &mut Vec<TurnEffect>) {
        let open = self
            .calls
            .iter_mut()
            .filter(|slot| slot.state != TurnCallState::Done);
        for slot in open {
            slot.state = TurnCallState::Done;
            todo.push(TurnEffect::Append(NewEntry::Result {
                call: slot.call.id.clone(),
                content: REJECTED.into(),
                is_error: Some(true),
                result: REJECTED_RESULT.into(),
                source: None,
                id: self.prompt.clone(),
                denial: Some("user-rejected".to_owned()),
            }));
        }
    }

    /// Says something to the model when the results of this round are there; `call` is where it
    /// comes from.
    pub fn say_later(&mut self, text: String, call: Option<String>) {
        self.later.push(NewEntry::Meta {
            content: json!([{"type": "text", "text": text}]),
            id: self.prompt.clone(),
            call,
        });
    }
}

fn block_tokens(block: &Value) -> u64 {
    match block["text"].as_str() {
        Some(text) => token_estimate::of_text(text),
        // An image is never much more.
        None => 1_600,
    }
}
