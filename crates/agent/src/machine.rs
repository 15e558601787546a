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
use unspool_model::tokens;
use unspool_model::write::{Entry, Reply, Tail};

use crate::api::client::{Head, Item, is_too_long};
use crate::api::{Block, Message, Trouble};
use crate::tool::Call;
use calls::Slot;

pub use calls::AT_ONCE;
pub use event::{Effect, Ending, Event, Halt, Limits, Prompt, Reason, Why};

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
enum Phase {
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
pub struct Machine {
    /// What it may do.
    pub limits: Limits,
    /// As much was spent as may be.
    pub spent: bool,
    /// Tokens in the context, as far as known.
    pub filled: u64,
    reads: fn(&Call) -> bool,
    phase: Phase,
    queue: VecDeque<Prompt>,
    next: Option<Prompt>,
    calls: Vec<Slot>,
    held: Option<(Block, Head)>,
    head: Option<Head>,
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
    later: Vec<Entry>,
    halt: Halt,
    closed_before: bool,
}

impl Machine {
    /// A machine at rest. `reads` says which calls may run side by side.
    pub fn new(limits: Limits, reads: fn(&Call) -> bool) -> Machine {
        Machine {
            limits,
            spent: false,
            filled: 0,
            reads,
            phase: Phase::Idle,
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
            halt: Halt::No,
            closed_before: false,
        }
    }

    /// Whether nothing is on its way.
    pub fn is_idle(&self) -> bool {
        self.phase == Phase::Idle
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
    pub fn step(&mut self, event: Event) -> Vec<Effect> {
        let mut todo = Vec::new();
        match event {
            Event::Submit(prompt) => self.submitted(prompt, &mut todo),
            Event::Item(item) if self.phase == Phase::Asking => self.heard(item, &mut todo),
            Event::Item(_) => {}
            Event::Ran {
                call,
                outcome,
                halt,
            } => self.ran(&call, outcome, halt, &mut todo),
            Event::Interrupt => self.interrupted(&mut todo),
            Event::Deadline if self.phase == Phase::Stopping => self.stopped(&mut todo),
            Event::Deadline => {}
            Event::Compact { words } if self.phase == Phase::Idle => {
                self.phase = Phase::Compacting;
                self.turns = 0;
                let trigger = "manual";
                todo.push(Effect::Compact { trigger, words });
            }
            Event::Compact { .. } => {}
            Event::Compacted {
                text,
                before,
                ms,
                kept,
            } if self.phase == Phase::Compacting => {
                self.compacted(text, before, ms, kept, &mut todo);
            }
            Event::Compacted { .. } => {}
            Event::NotCompacted(why) if self.phase == Phase::Compacting => {
                match self.next.take() {
                    // There may still be room for it.
                    Some(prompt) => self.begin(prompt, &mut todo),
                    None if self.turns > 0 => {
                        self.say_failed(
                            &format!("The conversation could not be compacted: {why}"),
                            &mut todo,
                        );
                        self.end(Why::NotCompacted(why), &mut todo);
                    }
                    None => self.end(Why::NotCompacted(why), &mut todo),
                }
            }
            Event::NotCompacted(_) => {}
            Event::MayStop(reason) if self.phase == Phase::Closing => match reason {
                Some(Reason::Hook(reason)) => {
                    self.closed_before = true;
                    todo.push(self.meta(format!("Stop hook feedback:\n{reason}")));
                    self.ask(&mut todo);
                }
                Some(Reason::News(texts)) => {
                    todo.extend(
                        texts
                            .into_iter()
                            .map(|text| self.meta(text))
                            .collect::<Vec<_>>(),
                    );
                    self.ask(&mut todo);
                }
                None => self.end(Why::Done, &mut todo),
            },
            Event::MayStop(_) => {}
        }
        todo
    }

    fn submitted(&mut self, prompt: Prompt, todo: &mut Vec<Effect>) {
        if self.phase != Phase::Idle {
            todo.push(Effect::Append(Entry::Queue {
                operation: "enqueue",
                content: Some(prompt.text()),
            }));
            self.queue.push_back(prompt);
            todo.push(Effect::Queued(self.queue.len()));
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

    fn begin(&mut self, prompt: Prompt, todo: &mut Vec<Effect>) {
        self.say(prompt, todo);
        self.ask(todo);
    }

    /// Writes down what somebody said.
    fn say(&mut self, prompt: Prompt, todo: &mut Vec<Effect>) {
        self.asked = prompt.text();
        self.prompt = Some(prompt.id.clone());
        self.filled += tokens::of_text(&self.asked);
        todo.push(Effect::Append(Entry::Prompt {
            content: prompt.content,
            id: prompt.id,
            mode: prompt.mode,
            source: prompt.source,
        }));
        for text in prompt.context {
            todo.push(self.meta(text));
        }
    }

    fn meta(&self, text: String) -> Effect {
        Effect::Append(Entry::Meta {
            content: json!([{"type": "text", "text": text}]),
            id: self.prompt.clone(),
            call: None,
        })
    }

    /// Asks the model, unless something stands against it.
    fn ask(&mut self, todo: &mut Vec<Effect>) {
        if self.limits.turns.is_some_and(|most| self.turns >= most) {
            return self.end(Why::MaxTurns, todo);
        }
        if self.spent {
            return self.end(Why::Budget, todo);
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
        self.phase = Phase::Asking;
        self.held = None;
        self.head = None;
        self.partial.clear();
        self.calls.clear();
        self.halt = Halt::No;
        todo.push(Effect::Ask);
    }

    fn compact(&mut self, todo: &mut Vec<Effect>) {
        self.phase = Phase::Compacting;
        self.compactions += 1;
        self.lasted = 0;
        todo.push(Effect::Compact {
            trigger: "auto",
            words: None,
        });
    }

    fn compacted(
        &mut self,
        text: String,
        before: u64,
        ms: u64,
        kept: Option<(Tail, u64)>,
        todo: &mut Vec<Effect>,
    ) {
        let auto = self.next.is_some() || self.turns > 0;
        let (kept, stays) = kept.unzip();
        let after = tokens::of_text(&text) + stays.unwrap_or(0);
        self.filled = after;
        let trigger = if auto { "auto" } else { "manual" };
        todo.push(Effect::Append(Entry::Boundary {
            trigger: trigger.to_owned(),
            before,
            after,
            ms,
            follows: None,
            kept: kept.clone(),
        }));
        todo.push(Effect::Append(Entry::Summary {
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
            None => self.end(Why::Compacted, todo),
        }
    }

    fn heard(&mut self, item: Item, todo: &mut Vec<Effect>) {
        match item {
            Item::Raw(_) | Item::Thinking(_) => {}
            Item::Began(head) => self.head = Some(head),
            Item::Text(text) => self.partial.push_str(&text),
            Item::Block(block, head) => {
                self.partial.clear();
                self.put_held(None, todo);
                self.held = Some((block, head));
            }
            Item::Retry {
                trouble,
                tries,
                most,
                wait,
            } => {
                self.partial.clear();
                todo.push(Effect::Append(Entry::Retry {
                    status: trouble.status(),
                    message: trouble.message,
                    request: trouble.request.map(String::from),
                    wait: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                    attempt: tries,
                    most,
                }));
            }
            Item::Ended(message, _) => self.answered(message, todo),
            Item::Cut(trouble) => self.cut(trouble, todo),
            Item::Failed(trouble) if self.held.is_some() || !self.calls.is_empty() => {
                self.cut(trouble, todo);
            }
            Item::Failed(trouble)
                if is_too_long(&trouble)
                    && self.limits.compacts
                    && self.compactions < COMPACTIONS =>
            {
                self.compact(todo);
            }
            Item::Failed(trouble) => {
                self.say_failed_as(kind(&trouble), &api_error(&trouble), todo);
                self.end(Why::Failed(trouble), todo);
            }
        }
    }

    fn say_failed(&self, text: &str, todo: &mut Vec<Effect>) {
        self.say_failed_as("unknown", text, todo);
    }

    fn say_failed_as(&self, kind: &str, text: &str, todo: &mut Vec<Effect>) {
        todo.push(Effect::Append(Entry::Synthetic {
            text: text.to_owned(),
            error: Some(kind.to_owned()),
            message: String::new(),
            request: None,
        }));
    }

    /// Writes the block that was held back until more was known.
    fn put_held(&mut self, message: Option<&Message>, todo: &mut Vec<Effect>) {
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
        todo.push(Effect::Append(Entry::Reply(Reply {
            message: head.id,
            request: head.request,
            model: head.model,
            block: block.json,
            stop: message.and_then(|message| message.stop.clone()),
            sequence: message.and_then(|message| message.sequence.clone()),
            usage: message.map_or(head.usage, |message| Value::Object(message.usage.clone())),
        })));
    }

    fn answered(&mut self, message: Message, todo: &mut Vec<Effect>) {
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
            self.phase = Phase::Running;
            return self.run_more(todo);
        }
        match stop.as_str() {
            "max_tokens" if self.continued >= CONTINUES => {
                self.say_failed(
                    "The response was truncated at its token limit several times in a row.",
                    todo,
                );
                self.end(Why::TooLong, todo);
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
                self.end(Why::TooLong, todo);
            }
            "pause_turn" if self.continued < CONTINUES => {
                self.continued += 1;
                todo.push(self.meta("Continue.".to_owned()));
                self.ask(todo);
            }
            "refusal" => {
                self.say_failed("The model declined to answer this. Rephrase the request, or rewind to before it.", todo);
                self.end(Why::Refused(message.details), todo);
            }
            _ => self.close(todo),
        }
    }

    fn close(&mut self, todo: &mut Vec<Effect>) {
        self.phase = Phase::Closing;
        todo.push(Effect::Closing {
            text: self.text.clone(),
            again: self.closed_before,
        });
    }

    fn cut(&mut self, trouble: Trouble, todo: &mut Vec<Effect>) {
        self.put_held(None, todo);
        self.say_failed(CUT, todo);
        if !self.calls.is_empty() {
            self.phase = Phase::Running;
            return self.run_more(todo);
        }
        if self.continued >= CONTINUES {
            return self.end(Why::Failed(trouble), todo);
        }
        self.continued += 1;
        todo.push(self.meta(GO_ON.to_owned()));
        self.ask(todo);
    }

    /// What was typed in the meantime is said now.
    fn take_queue(&mut self, todo: &mut Vec<Effect>) {
        while let Some(prompt) = self.queue.pop_front() {
            todo.push(Effect::Append(Entry::Queue {
                operation: "dequeue",
                content: None,
            }));
            self.say(prompt, todo);
            todo.push(Effect::Queued(self.queue.len()));
        }
    }

    fn interrupted(&mut self, todo: &mut Vec<Effect>) {
        match self.phase {
            Phase::Idle | Phase::Stopping => {}
            Phase::Asking => {
                todo.push(Effect::Hush);
                self.put_held(None, todo);
                self.put_partial(todo);
                let called = !self.calls.is_empty();
                self.reject(todo);
                self.mark(called, todo);
            }
            Phase::Running => {
                self.phase = Phase::Stopping;
                todo.push(Effect::StopCalls);
                todo.push(Effect::Soon);
            }
            Phase::Compacting if self.turns == 0 && self.next.is_none() => {
                // Nothing was said, so nothing was cut short.
                todo.push(Effect::Hush);
                self.end(Why::Interrupted, todo);
            }
            Phase::Compacting | Phase::Closing => {
                todo.push(Effect::Hush);
                if let Some(prompt) = self.next.take() {
                    self.say(prompt, todo);
                }
                self.mark(false, todo);
            }
        }
    }

    /// What somebody saw of a text that did not end.
    fn put_partial(&mut self, todo: &mut Vec<Effect>) {
        let text = std::mem::take(&mut self.partial);
        let Some(head) = self.head.take().filter(|_| !text.trim().is_empty()) else {
            return;
        };
        self.text = text.trim_end().to_owned();
        todo.push(Effect::Append(Entry::Reply(Reply {
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
    fn stopped(&mut self, todo: &mut Vec<Effect>) {
        self.reject(todo);
        let later = std::mem::take(&mut self.later);
        todo.extend(later.into_iter().map(Effect::Append));
        self.mark(true, todo);
    }

    fn mark(&mut self, tool: bool, todo: &mut Vec<Effect>) {
        todo.push(Effect::Append(Entry::Interrupt {
            tool,
            id: self.prompt.clone(),
        }));
        self.end(Why::Interrupted, todo);
    }

    fn end(&mut self, why: Why, todo: &mut Vec<Effect>) {
        self.phase = Phase::Idle;
        self.calls.clear();
        self.halt = Halt::No;
        let unsaid: Vec<Prompt> = match why {
            Why::Done | Why::Compacted => Vec::new(),
            _ => self.queue.drain(..).collect(),
        };
        if !unsaid.is_empty() {
            let operation = "popAll";
            let content = None;
            todo.push(Effect::Append(Entry::Queue { operation, content }));
        }
        let ending = Ending {
            why,
            text: std::mem::take(&mut self.text),
            turns: self.turns,
            unsaid,
        };
        todo.push(Effect::End(ending));
        if let Some(prompt) = self.queue.pop_front() {
            todo.push(Effect::Append(Entry::Queue {
                operation: "dequeue",
                content: None,
            }));
            todo.push(Effect::Queued(self.queue.len()));
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
fn kind(trouble: &Trouble) -> &'static str {
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
pub fn api_error(trouble: &Trouble) -> String {
    match trouble.status() {
        Some(status) => format!("API Error: {status} {}", trouble.message),
        None => format!("API Error: {}", trouble.message),
    }
}

#[cfg(test)]
mod tests;
