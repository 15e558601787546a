//! Calls of a turn: which run side by side, and what came of them.

use serde_json::{Value, json};
use unspool_model::tokens;
use unspool_model::write::Entry;

use super::{Effect, Halt, Machine, Phase, REJECTED, Why};
use crate::api::Block;
use crate::tool::{Call, Content, Outcome};

/// So many calls that only read run at once.
pub const AT_ONCE: usize = 10;
const REJECTED_RESULT: &str = "User rejected tool use";

#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) call: Call,
    pub(super) state: State,
    /// Whether others may run beside it.
    pub(super) reads: bool,
    /// What came of it, before it was run.
    pub(super) known: Option<Outcome>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Waiting,
    Running,
    Done,
}

impl Machine {
    pub(super) fn note_call(&mut self, block: &Block) {
        let field = |name: &str| block.json[name].as_str().unwrap_or_default().to_owned();
        let call = Call {
            id: field("id"),
            name: field("name"),
            input: block.json["input"].clone(),
        };
        let twice = self.calls.iter().any(|slot| slot.call.id == call.id);
        if call.id.is_empty() || twice {
            return;
        }
        let known = block.broken.as_ref().map(|raw| {
            let mut outcome = Outcome::failed(json!({"INVALID_JSON": raw}).to_string());
            outcome.result = Value::from("Error: the input of the call is no JSON object");
            outcome
        });
        self.calls.push(Slot {
            reads: (self.reads)(&call),
            call,
            state: State::Waiting,
            known,
        });
    }

    /// Starts what may start now: calls that only read side by side, others one by one.
    pub(super) fn run_more(&mut self, todo: &mut Vec<Effect>) {
        loop {
            let running = self
                .calls
                .iter()
                .filter(|slot| slot.state == State::Running);
            let (count, alone) = running.fold((0, false), |(count, alone), slot| {
                (count + 1, alone || !slot.reads)
            });
            let Some(next) = self
                .calls
                .iter_mut()
                .find(|slot| slot.state == State::Waiting)
            else {
                break;
            };
            if alone || count >= AT_ONCE || (count > 0 && !next.reads) {
                break;
            }
            next.state = State::Running;
            let call = next.call.clone();
            match next.known.take() {
                Some(outcome) => drop(self.done(&call.id, outcome, todo)),
                None => todo.push(Effect::Run(call)),
            }
        }
        if self.calls.iter().all(|slot| slot.state == State::Done) {
            self.all_ran(todo);
        }
    }

    /// Writes what came of a call; false if nobody waits for it.
    pub(super) fn done(&mut self, id: &str, outcome: Outcome, todo: &mut Vec<Effect>) -> bool {
        let open = self
            .calls
            .iter_mut()
            .find(|slot| slot.call.id == id && slot.state != State::Done);
        let Some(slot) = open else { return false };
        slot.state = State::Done;
        self.filled += match &outcome.content {
            Content::Text(text) => tokens::of_text(text),
            Content::Blocks(blocks) => blocks.iter().map(block_tokens).sum(),
        };
        let content = match outcome.content {
            Content::Text(text) => Value::String(text),
            Content::Blocks(blocks) => Value::Array(blocks),
        };
        todo.push(Effect::Append(Entry::Result {
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

    pub(super) fn ran(&mut self, call: &str, outcome: Outcome, halt: Halt, todo: &mut Vec<Effect>) {
        if !matches!(self.phase, Phase::Running | Phase::Stopping) {
            return;
        }
        if !self.done(call, outcome, todo) {
            return;
        }
        match halt {
            Halt::No => {}
            Halt::Rejected if self.phase == Phase::Running => {
                self.halt = Halt::Rejected;
                self.phase = Phase::Stopping;
                todo.push(Effect::StopCalls);
                todo.push(Effect::Soon);
            }
            told => self.halt = told,
        }
        let running = self.calls.iter().any(|slot| slot.state == State::Running);
        match self.phase {
            Phase::Stopping if !running => self.stopped(todo),
            Phase::Stopping => {}
            _ => self.run_more(todo),
        }
    }

    /// All results are there.
    pub(super) fn all_ran(&mut self, todo: &mut Vec<Effect>) {
        let later = std::mem::take(&mut self.later);
        todo.extend(later.into_iter().map(Effect::Append));
        self.calls.clear();
        if let Halt::Told(why) = std::mem::take(&mut self.halt) {
            return self.end(Why::Hook(why), todo);
        }
        self.take_queue(todo);
        self.continued = 0;
        self.ask(todo);
    }

    /// Whatever has no result yet gets one that says why.
    pub(super) fn reject(&mut self, todo: &mut Vec<Effect>) {
        let open = self
            .calls
            .iter_mut()
            .filter(|slot| slot.state != State::Done);
        for slot in open {
            slot.state = State::Done;
            todo.push(Effect::Append(Entry::Result {
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
        self.later.push(Entry::Meta {
            content: json!([{"type": "text", "text": text}]),
            id: self.prompt.clone(),
            call,
        });
    }
}

fn block_tokens(block: &Value) -> u64 {
    match block["text"].as_str() {
        Some(text) => tokens::of_text(text),
        // An image is never much more.
        None => 1_600,
    }
}
