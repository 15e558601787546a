//! What happens next: events in, effects out, and nothing else.
//!
//! The machine has no clock, no files and no threads. What was said is in the transcript; here
//! is only what the transcript does not tell: what is on its way, what waits, how often
//! something was tried. After every event the lines it asked for are a conversation that can be
//! sent, or one that is mended when it is read: a kill between two effects loses no word that
//! was written.

mod calls;
mod event;

use std::collections::VecDeque;

use serde_json::{Value, json};
use unspool_model::entry_writer::{NewEntry, PreservedTail, ReplyBlock};
use unspool_model::token_estimate;

use crate::api::client::{StreamItem, StreamedHeader, is_too_long};
use crate::api::{ApiError, StreamedBlock, StreamedMessage};
use crate::tool::ToolCallRequest;
use calls::TurnCall;

pub use calls::AT_ONCE;
pub use event::{
    SubmittedPrompt, TurnContinueReason, TurnEffect, TurnEndReason, TurnEnding, TurnEvent,
    TurnHalt, TurnLimits,
};

/// So often an answer that was cut is taken up again.
const CONTINUES: u32 = 3;
/// So often a summary may be needed again at once, before it makes no sense to make another.
const COMPACTIONS: u32 = 2;
/// A summary that lasts for so many answers was worth it.
const LASTING: u32 = 5;

/// What the model is told about calls that somebody did not let run.
pub const REJECTED: &str = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed.";
const CUT: &str = "API Error: Server error mid-response. The response above may be incomplete.";
const RESUME: &str = "Your answer reached its token limit and was cut off there. Continue exactly where it ended, without repeating or summing up; take smaller steps from now on.";
const GO_ON: &str =
    "The connection broke off in the middle of your answer. Continue exactly where it ended.";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TurnPhase {
    #[default]
    Idle,
    /// The model speaks.
    Asking,
    /// Calls run.
    Running,
    /// Calls were told to stop.
    Stopping,
    /// A summary is made.
    Compacting,
    /// Somebody may want it to go on.
    Closing,
}

/// What is on its way.
#[derive(Debug)]
pub struct TurnStateMachine {
    /// What it may do.
    pub limits: TurnLimits,
    /// As much was spent as may be.
    pub spent: bool,
    /// Tokens in the context, as far as known.
    pub filled: u64,
    reads: fn(&ToolCallRequest) -> bool,
    phase: TurnPhase,
    queue: VecDeque<SubmittedPrompt>,
    next: Option<SubmittedPrompt>,
    calls: Vec<TurnCall>,
    held: Option<(StreamedBlock, StreamedHeader)>,
    head: Option<StreamedHeader>,
    partial: String,
    prompt: Option<String>,
    asked: String,
    text: String,
    turns: u32,
    continued: u32,
    /// Summaries that did not last, one after the other.
    compactions: u32,
    /// How often the model was asked with room left, since the last summary.
    lasted: u32,
    /// Lines that come when all results are there.
    later: Vec<NewEntry>,
    halt: TurnHalt,
    closed_before: bool,
}

impl TurnStateMachine {
    /// A machine at rest. `reads` says which calls may run side by side.
    pub fn new(limits: TurnLimits, reads: fn(&ToolCallRequest) -> bool) -> TurnStateMachine {
        TurnStateMachine {
            limits,
            spent: false,
            filled: 0,
            reads,
            phase: TurnPhase::Idle,
            queue: VecDeque::new(),
            next: None,
            calls: Vec::new(),
            held: None,
            head: None,
            partial: String::new(),
            prompt: None,
            asked: String::new(),
            text: String::new(),
            turns: 0,
            continued: 0,
            compactions: 0,
            lasted: 0,
            later: Vec::new(),
            halt: TurnHalt::No,
            closed_before: false,
        }
    }

    /// Whether nothing is on its way.
    pub fn is_idle(&self) -> bool {
        self.phase == TurnPhase::Idle
    }

    /// How many prompts wait.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// What was asked last.
    pub fn asked(&self) -> &str {
        &self.asked
    }

    /// What to do about an event.
    pub fn step(&mut self, event: TurnEvent) -> Vec<TurnEffect> {
        let mut todo = Vec::new();
        match event {
            TurnEvent::Submit(prompt) => self.submitted(prompt, &mut todo),
            TurnEvent::Item(item) if self.phase == TurnPhase::Asking => self.heard(item, &mut todo),
            TurnEvent::Item(_) => {}
            TurnEvent::Ran {
                call,
                outcome,
                halt,
            } => self.ran(&call, outcome, halt, &mut todo),
            TurnEvent::Interrupt => self.interrupted(&mut todo),
            TurnEvent::Deadline if self.phase == TurnPhase::Stopping => self.stopped(&mut todo),
            TurnEvent::Deadline => {}
            TurnEvent::Compact { words } if self.phase == TurnPhase::Idle => {
                self.phase = TurnPhase::Compacting;
                self.turns = 0;
                let trigger = "manual";
                todo.push(TurnEffect::Compact { trigger, words });
            }
            TurnEvent::Compact { .. } => {}
            TurnEvent::Compacted {
                text,
                before,
                ms,
                kept,
            } if self.phase == TurnPhase::Compacting => {
                self.compacted(text, before, ms, kept, &mut todo);
            }
            TurnEvent::Compacted { .. } => {}
            TurnEvent::NotCompacted(why) if self.phase == TurnPhase::Compacting => {
                match self.next.take() {
                    // There may still be room for it.
                    Some(prompt) => self.begin(prompt, &mut todo),
                    None if self.turns > 0 => {
                        self.say_failed(
                            &format!("The conversation could not be compacted: {why}"),
                            &mut todo,
                        );
                        self.end(TurnEndReason::NotCompacted(why), &mut todo);
                    }
                    None => self.end(TurnEndReason::NotCompacted(why), &mut todo),
                }
            }
            TurnEvent::NotCompacted(_) => {}
            TurnEvent::MayStop(reason) if self.phase == TurnPhase::Closing => match reason {
                Some(TurnContinueReason::Hook(reason)) => {
                    self.closed_before = true;
                    todo.push(self.meta(format!("Stop hook feedback:\n{reason}")));
                    self.ask(&mut todo);
                }
                Some(TurnContinueReason::News(texts)) => {
                    todo.extend(
                        texts
                            .into_iter()
                            .map(|text| self.meta(text))
                            .collect::<Vec<_>>(),
                    );
                    self.ask(&mut todo);
                }
                None => self.end(TurnEndReason::Done, &mut todo),
            },
            TurnEvent::MayStop(_) => {}
        }
        todo
    }

    fn submitted(&mut self, prompt: SubmittedPrompt, todo: &mut Vec<TurnEffect>) {
        if self.phase != TurnPhase::Idle {
            todo.push(TurnEffect::Append(NewEntry::Queue {
                operation: "enqueue",
                content: Some(prompt.text()),
            }));
            self.queue.push_back(prompt);
            todo.push(TurnEffect::Queued(self.queue.len()));
            return;
        }
        self.turns = 0;
        self.compactions = 0;
        self.continued = 0;
        self.closed_before = false;
        self.text.clear();
        if self.limits.compacts && self.filled >= self.limits.full() {
            // The prompt comes behind the summary, so that it is not summed up.
            self.next = Some(prompt);
            self.compact(todo);
            return;
        }
        self.begin(prompt, todo);
    }

    fn begin(&mut self, prompt: SubmittedPrompt, todo: &mut Vec<TurnEffect>) {
        self.say(prompt, todo);
        self.ask(todo);
    }

    /// Writes down what somebody said.
    fn say(&mut self, prompt: SubmittedPrompt, todo: &mut Vec<TurnEffect>) {
        self.asked = prompt.text();
        self.prompt = Some(prompt.id.clone());
        self.filled += token_estimate::of_text(&self.asked);
        todo.push(TurnEffect::Append(NewEntry::Prompt {
            content: prompt.content,
            id: prompt.id,
            mode: prompt.mode,
            source: prompt.source,
        }));
        for text in prompt.context {
            todo.push(self.meta(text));
        }
    }

    fn meta(&self, text: String) -> TurnEffect {
        TurnEffect::Append(NewEntry::Meta {
            content: json!([{"type": "text", "text": text}]),
            id: self.prompt.clone(),
            call: None,
        })
    }

    /// Asks the model, unless something stands against it.
    fn ask(&mut self, todo: &mut Vec<TurnEffect>) {
        if self.limits.turns.is_some_and(|most| self.turns >= most) {
            return self.end(TurnEndReason::MaxTurns, todo);
        }
        if self.spent {
            return self.end(TurnEndReason::Budget, todo);
        }
        let full = self.limits.compacts && self.filled >= self.limits.full();
        if full && self.turns > 0 && self.compactions < COMPACTIONS {
            return self.compact(todo);
        }
        self.turns += 1;
        if !full {
            self.lasted += 1;
        }
        if self.lasted > LASTING {
            self.compactions = 0;
        }
        self.phase = TurnPhase::Asking;
        self.held = None;
        self.head = None;
        self.partial.clear();
        self.calls.clear();
        self.halt = TurnHalt::No;
        todo.push(TurnEffect::Ask);
    }

    fn compact(&mut self, todo: &mut Vec<TurnEffect>) {
        self.phase = TurnPhase::Compacting;
        self.compactions += 1;
        self.lasted = 0;
        todo.push(TurnEffect::Compact {
            trigger: "auto",
            words: None,
        });
    }

    fn compacted(
        &mut self,
        text: String,
        before: u64,
        ms: u64,
        kept: Option<(PreservedTail, u64)>,
        todo: &mut Vec<TurnEffect>,
    ) {
        let auto = self.next.is_some() || self.turns > 0;
        let (kept, stays) = kept.unzip();
        let after = token_estimate::of_text(&text) + stays.unwrap_or(0);
        self.filled = after;
        let trigger = if auto { "auto" } else { "manual" };
        todo.push(TurnEffect::Append(NewEntry::Boundary {
            trigger: trigger.to_owned(),
            before,
            after,
            ms,
            follows: None,
            kept: kept.clone(),
        }));
        todo.push(TurnEffect::Append(NewEntry::Summary {
            text,
            id: self.prompt.clone(),
            uuid: kept.map(|kept| kept.anchor),
        }));
        match self.next.take() {
            Some(prompt) => self.begin(prompt, todo),
            None if self.turns > 0 => {
                // The question that failed is asked again, and does not count twice.
                self.turns = self.turns.saturating_sub(1);
                let words = format!(
                    "The conversation so far was replaced by the summary above. Go on with the work it describes. What was asked last:\n\n{}",
                    self.asked
                );
                todo.push(self.meta(words));
                self.ask(todo);
            }
            None => self.end(TurnEndReason::Compacted, todo),
        }
    }

    fn heard(&mut self, item: StreamItem, todo: &mut Vec<TurnEffect>) {
        match item {
            StreamItem::Raw(_) | StreamItem::Thinking(_) => {}
            StreamItem::Began(head) => self.head = Some(head),
            StreamItem::Text(text) => self.partial.push_str(&text),
            StreamItem::Block(block, head) => {
                self.partial.clear();
                self.put_held(None, todo);
                self.held = Some((block, head));
            }
            StreamItem::Retry {
                trouble,
                tries,
                most,
                wait,
            } => {
                self.partial.clear();
                todo.push(TurnEffect::Append(NewEntry::Retry {
                    status: trouble.status(),
                    message: trouble.message,
                    request: trouble.request.map(String::from),
                    wait: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                    attempt: tries,
                    most,
                }));
            }
            StreamItem::Ended(message, _) => self.answered(message, todo),
            StreamItem::Cut(trouble) => self.cut(trouble, todo),
            StreamItem::Failed(trouble) if self.held.is_some() || !self.calls.is_empty() => {
                self.cut(trouble, todo);
            }
            StreamItem::Failed(trouble)
                if is_too_long(&trouble)
                    && self.limits.compacts
                    && self.compactions < COMPACTIONS =>
            {
                self.compact(todo);
            }
            StreamItem::Failed(trouble) => {
                self.say_failed_as(kind(&trouble), &api_error(&trouble), todo);
                self.end(TurnEndReason::Failed(trouble), todo);
            }
        }
    }

    fn say_failed(&self, text: &str, todo: &mut Vec<TurnEffect>) {
        self.say_failed_as("unknown", text, todo);
    }

    fn say_failed_as(&self, kind: &str, text: &str, todo: &mut Vec<TurnEffect>) {
        todo.push(TurnEffect::Append(NewEntry::Synthetic {
            text: text.to_owned(),
            error: Some(kind.to_owned()),
            message: String::new(),
            request: None,
        }));
    }

    /// Writes the block that was held back until more was known.
    fn put_held(&mut self, message: Option<&StreamedMessage>, todo: &mut Vec<TurnEffect>) {
        let Some((block, head)) = self.held.take() else {
            return;
        };
        match block.kind() {
            "text" => {
                let said = block.json["text"].as_str().unwrap_or_default();
                // The API never takes it back.
                if said.trim().is_empty() {
                    return;
                }
                self.text = said.to_owned();
            }
            "tool_use" => self.note_call(&block),
            _ => {}
        }
        todo.push(TurnEffect::Append(NewEntry::Reply(ReplyBlock {
            message: head.id,
            request: head.request,
            model: head.model,
            block: block.json,
            stop: message.and_then(|message| message.stop.clone()),
            sequence: message.and_then(|message| message.sequence.clone()),
            usage: message.map_or(head.usage, |message| Value::Object(message.usage.clone())),
        })));
    }

    fn answered(&mut self, message: StreamedMessage, todo: &mut Vec<TurnEffect>) {
        let stop = message.stop.clone().unwrap_or_default();
        let short = matches!(
            stop.as_str(),
            "max_tokens" | "model_context_window_exceeded"
        );
        // The last call of an answer that was cut is cut, too, even if it can be read.
        if short
            && self
                .held
                .as_ref()
                .is_some_and(|(block, _)| block.kind() == "tool_use")
        {
            self.held = None;
        }
        self.put_held(Some(&message), todo);
        self.filled = context(&message.usage);
        if !self.calls.is_empty() {
            self.phase = TurnPhase::Running;
            return self.run_more(todo);
        }
        match stop.as_str() {
            "max_tokens" if self.continued >= CONTINUES => {
                self.say_failed(
                    "The response was truncated at its token limit several times in a row.",
                    todo,
                );
                self.end(TurnEndReason::TooLong, todo);
            }
            "max_tokens" => {
                self.continued += 1;
                todo.push(self.meta(RESUME.to_owned()));
                self.ask(todo);
            }
            "model_context_window_exceeded" => {
                if self.limits.compacts && self.compactions < COMPACTIONS {
                    return self.compact(todo);
                }
                self.say_failed("The conversation exceeds the model's context window.", todo);
                self.end(TurnEndReason::TooLong, todo);
            }
            "pause_turn" if self.continued < CONTINUES => {
                self.continued += 1;
                todo.push(self.meta("Continue.".to_owned()));
                self.ask(todo);
            }
            "refusal" => {
                self.say_failed("The model declined to answer this. Rephrase the request, or rewind to before it.", todo);
                self.end(TurnEndReason::Refused(message.details), todo);
            }
            _ => self.close(todo),
        }
    }

    fn close(&mut self, todo: &mut Vec<TurnEffect>) {
        self.phase = TurnPhase::Closing;
        todo.push(TurnEffect::Closing {
            text: self.text.clone(),
            again: self.closed_before,
        });
    }

    fn cut(&mut self, trouble: ApiError, todo: &mut Vec<TurnEffect>) {
        self.put_held(None, todo);
        self.say_failed(CUT, todo);
        if !self.calls.is_empty() {
            self.phase = TurnPhase::Running;
            return self.run_more(todo);
        }
        if self.continued >= CONTINUES {
            return self.end(TurnEndReason::Failed(trouble), todo);
        }
        self.continued += 1;
        todo.push(self.meta(GO_ON.to_owned()));
        self.ask(todo);
    }

    /// What was typed in the meantime is said now.
    fn take_queue(&mut self, todo: &mut Vec<TurnEffect>) {
        while let Some(prompt) = self.queue.pop_front() {
            todo.push(TurnEffect::Append(NewEntry::Queue {
                operation: "dequeue",
                content: None,
            }));
            self.say(prompt, todo);
            todo.push(TurnEffect::Queued(self.queue.len()));
        }
    }

    fn interrupted(&mut self, todo: &mut Vec<TurnEffect>) {
        match self.phase {
            TurnPhase::Idle | TurnPhase::Stopping => {}
            TurnPhase::Asking => {
                todo.push(TurnEffect::Hush);
                self.put_held(None, todo);
                self.put_partial(todo);
                let called = !self.calls.is_empty();
                self.reject(todo);
                self.mark(called, todo);
            }
            TurnPhase::Running => {
                self.phase = TurnPhase::Stopping;
                todo.push(TurnEffect::StopCalls);
                todo.push(TurnEffect::Soon);
            }
            TurnPhase::Compacting if self.turns == 0 && self.next.is_none() => {
                // Nothing was said, so nothing was cut short.
                todo.push(TurnEffect::Hush);
                self.end(TurnEndReason::Interrupted, todo);
            }
            TurnPhase::Compacting | TurnPhase::Closing => {
                todo.push(TurnEffect::Hush);
                if let Some(prompt) = self.next.take() {
                    self.say(prompt, todo);
                }
                self.mark(false, todo);
            }
        }
    }

    /// What somebody saw of a text that did not end.
    fn put_partial(&mut self, todo: &mut Vec<TurnEffect>) {
        let text = std::mem::take(&mut self.partial);
        let Some(head) = self.head.take().filter(|_| !text.trim().is_empty()) else {
            return;
        };
        self.text = text.trim_end().to_owned();
        todo.push(TurnEffect::Append(NewEntry::Reply(ReplyBlock {
            message: head.id,
            request: head.request,
            model: head.model,
            block: json!({"type": "text", "text": self.text}),
            stop: None,
            sequence: None,
            usage: head.usage,
        })));
    }

    /// Calls have stopped, or had their time.
    fn stopped(&mut self, todo: &mut Vec<TurnEffect>) {
        self.reject(todo);
        let later = std::mem::take(&mut self.later);
        todo.extend(later.into_iter().map(TurnEffect::Append));
        self.mark(true, todo);
    }

    fn mark(&mut self, tool: bool, todo: &mut Vec<TurnEffect>) {
        todo.push(TurnEffect::Append(NewEntry::Interrupt {
            tool,
            id: self.prompt.clone(),
        }));
        self.end(TurnEndReason::Interrupted, todo);
    }

    fn end(&mut self, why: TurnEndReason, todo: &mut Vec<TurnEffect>) {
        self.phase = TurnPhase::Idle;
        self.calls.clear();
        self.halt = TurnHalt::No;
        let unsaid: Vec<SubmittedPrompt> = match why {
            TurnEndReason::Done | TurnEndReason::Compacted => Vec::new(),
            _ => self.queue.drain(..).collect(),
        };
        if !unsaid.is_empty() {
            let operation = "popAll";
            let content = None;
            todo.push(TurnEffect::Append(NewEntry::Queue { operation, content }));
        }
        let ending = TurnEnding {
            why,
            text: std::mem::take(&mut self.text),
            turns: self.turns,
            unsaid,
        };
        todo.push(TurnEffect::End(ending));
        if let Some(prompt) = self.queue.pop_front() {
            todo.push(TurnEffect::Append(NewEntry::Queue {
                operation: "dequeue",
                content: None,
            }));
            todo.push(TurnEffect::Queued(self.queue.len()));
            self.submitted(prompt, todo);
        }
    }
}

/// What fills the context after an answer.
pub fn context(usage: &serde_json::Map<String, Value>) -> u64 {
    let names = [
        "input_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
        "output_tokens",
    ];
    let counts = names.iter().filter_map(|name| usage.get(*name)?.as_u64());
    counts.sum()
}

/// What kind of failure it is, in the words that lines of the original use.
fn kind(trouble: &ApiError) -> &'static str {
    match trouble.status() {
        Some(400 | 413) => "invalid_request",
        Some(401 | 403) => "authentication_failed",
        Some(402) => "billing_error",
        Some(429) => "rate_limit",
        Some(500..) => "server_error",
        _ => "unknown",
    }
}

/// The words of a failure, as users of the original know them.
pub fn api_error(trouble: &ApiError) -> String {
    match trouble.status() {
        Some(status) => format!("API Error: {status} {}", trouble.message),
        None => format!("API Error: {}", trouble.message),
    }
}

#[cfg(test)]
mod tests;
