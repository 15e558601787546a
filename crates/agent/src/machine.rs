//! What happens next: events in, effects out, and nothing else.
//!
//! The machine has no clock, no files and no threads. What was said is in the transcript; here
//! is only what the transcript does not tell: what is on its way, what waits, how often
//! something was tried. After every event the lines it asked for are a conversation that can be
//! sent, or one that is mended when it is read: a kill between two effects loses no word that
//! was written.

use std::collections::VecDeque;

use serde_json::{Value, json};
use unspool_model::tokens;
use unspool_model::write::{Entry, Reply};

use crate::api::client::{Head, Item, is_too_long};
use crate::api::{Block, Message, Trouble};
use crate::tool::{Call, Content, Outcome};

/// So many calls that only read run at once.
pub const AT_ONCE: usize = 10;
/// So often an answer that was cut is taken up again.
const CONTINUES: u32 = 3;
/// So often one turn is compacted.
const COMPACTIONS: u32 = 2;

/// What the model is told about calls that somebody did not let run.
pub const REJECTED: &str = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed.";
const REJECTED_RESULT: &str = "User rejected tool use";
const CUT: &str = "API Error: Server error mid-response. The response above may be incomplete.";
const RESUME: &str = "Your answer reached its token limit and was cut off there. Continue exactly where it ended, without repeating or summing up; take smaller steps from now on.";
const GO_ON: &str =
    "The connection broke off in the middle of your answer. Continue exactly where it ended.";

/// Something that was said to the session.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    /// A text, or a list of blocks.
    pub content: Value,
    /// An id of its own.
    pub id: String,
    /// The permission mode it was said in.
    pub mode: Option<String>,
    /// Where it comes from: `typed`, `sdk`.
    pub source: Option<String>,
    /// Texts that hooks and commands add, for the model alone.
    pub context: Vec<String>,
}

impl Prompt {
    /// What it says, as text.
    pub fn text(&self) -> String {
        match &self.content {
            Value::String(text) => text.clone(),
            Value::Array(blocks) => {
                let texts = blocks.iter().filter_map(|block| block["text"].as_str());
                texts.collect::<Vec<_>>().join("\n")
            }
            _ => String::new(),
        }
    }
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// Somebody said something.
    Submit(Prompt),
    /// The model said something, or failed to.
    Item(Item),
    /// A call has ended.
    Ran {
        /// Which.
        call: String,
        /// What came of it.
        outcome: Outcome,
        /// Whether the turn ends with it.
        halt: Halt,
    },
    /// Somebody wants it to stop.
    Interrupt,
    /// Calls that were told to stop had their time.
    Deadline,
    /// Somebody wants a summary in place of the conversation.
    Compact {
        /// What it should be about.
        words: Option<String>,
    },
    /// There is a summary.
    Compacted {
        /// What it says.
        text: String,
        /// Tokens before.
        before: u64,
        /// How long it took.
        ms: u64,
    },
    /// There is none.
    NotCompacted(String),
    /// Whoever is asked before a turn ends has spoken: a reason to go on, or none.
    MayStop(Option<String>),
}

/// Whether a turn ends with a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Halt {
    /// It goes on.
    #[default]
    No,
    /// Somebody said no, and nothing more.
    Rejected,
    /// A hook wants it to end, and says why.
    Told(String),
}

/// What is to be done.
#[derive(Clone, Debug)]
pub enum Effect {
    /// This becomes a line.
    Append(Entry),
    /// The model is asked, with what the lines say.
    Ask,
    /// The model is not listened to any more.
    Hush,
    /// A call is made: checked, allowed, run.
    Run(Call),
    /// All calls are told to stop.
    StopCalls,
    /// [`Event::Deadline`] comes shortly.
    Soon,
    /// A summary is made.
    Compact {
        /// `manual` or `auto`.
        trigger: &'static str,
        /// What it should be about.
        words: Option<String>,
    },
    /// Those who are asked before a turn ends are asked.
    Closing {
        /// What the model said last.
        text: String,
        /// Whether they kept it going already.
        again: bool,
    },
    /// The turn is over.
    End(Ending),
    /// How many wait.
    Queued(usize),
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// Why.
    pub why: Why,
    /// What the model said last.
    pub text: String,
    /// How often the model was asked.
    pub turns: u32,
    /// What waited and was not said any more.
    pub unsaid: Vec<Prompt>,
}

/// Why a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// The model was done.
    Done,
    /// Somebody stopped it.
    Interrupted,
    /// The model was asked as often as it may be.
    MaxTurns,
    /// As much was spent as may be.
    Budget,
    /// The model does not want to.
    Refused(Value),
    /// The API failed.
    Failed(Trouble),
    /// A hook ended it.
    Hook(String),
    /// The answer did not fit, again and again.
    TooLong,
    /// The conversation was replaced by a summary.
    Compacted,
    /// It was to be, and could not.
    NotCompacted(String),
}

/// What the machine may do.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How often the model is asked in one turn.
    pub turns: Option<u32>,
    /// Tokens that fit into the model's context.
    pub window: u64,
    /// Whether it makes room by itself.
    pub compacts: bool,
}

impl Limits {
    /// So full the context may be: behind it there is room for a summary and its answer.
    pub fn full(&self) -> u64 {
        self.window - (self.window / 5).min(33_000)
    }
}

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

#[derive(Clone, Debug)]
struct Slot {
    call: Call,
    state: State,
    /// Whether others may run beside it.
    reads: bool,
    /// What came of it, before it was run.
    known: Option<Outcome>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Done,
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
    compactions: u32,
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
            later: Vec::new(),
            halt: Halt::No,
            closed_before: false,
        }
    }

    /// Whether nothing is on its way.
    pub fn is_idle(&self) -> bool {
        self.phase == Phase::Idle
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
            Event::Compacted { text, before, ms } if self.phase == Phase::Compacting => {
                self.compacted(text, before, ms, &mut todo);
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
                Some(reason) => {
                    self.closed_before = true;
                    todo.push(self.meta(format!("Stop hook feedback:\n{reason}")));
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
        todo.push(Effect::Compact {
            trigger: "auto",
            words: None,
        });
    }

    fn compacted(&mut self, text: String, before: u64, ms: u64, todo: &mut Vec<Effect>) {
        let auto = self.next.is_some() || self.turns > 0;
        let after = tokens::of_text(&text);
        self.filled = after;
        let trigger = if auto { "auto" } else { "manual" };
        todo.push(Effect::Append(Entry::Boundary {
            trigger: trigger.to_owned(),
            before,
            after,
            ms,
            follows: None,
        }));
        todo.push(Effect::Append(Entry::Summary {
            text,
            id: self.prompt.clone(),
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
                self.say_failed(&api_error(&trouble), todo);
                self.end(Why::Failed(trouble), todo);
            }
        }
    }

    fn say_failed(&self, text: &str, todo: &mut Vec<Effect>) {
        todo.push(Effect::Append(Entry::Synthetic {
            text: text.to_owned(),
            error: Some("unknown".to_owned()),
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

    fn note_call(&mut self, block: &Block) {
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
                    "The answer was cut off at its token limit several times in a row.",
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
                self.say_failed("The conversation fills the context of the model.", todo);
                self.end(Why::TooLong, todo);
            }
            "pause_turn" if self.continued < CONTINUES => {
                self.continued += 1;
                todo.push(self.meta("Continue.".to_owned()));
                self.ask(todo);
            }
            "refusal" => {
                self.say_failed("The model declined to answer this. Rephrase the request, or go back before it.", todo);
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

    /// Starts what may start now: calls that only read side by side, others one by one.
    fn run_more(&mut self, todo: &mut Vec<Effect>) {
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
    fn done(&mut self, id: &str, outcome: Outcome, todo: &mut Vec<Effect>) -> bool {
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

    fn ran(&mut self, call: &str, outcome: Outcome, halt: Halt, todo: &mut Vec<Effect>) {
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
    fn all_ran(&mut self, todo: &mut Vec<Effect>) {
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

    /// Whatever has no result yet gets one that says why.
    fn reject(&mut self, todo: &mut Vec<Effect>) {
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

/// The words of a failure, as users of the original know them.
pub fn api_error(trouble: &Trouble) -> String {
    match trouble.status() {
        Some(status) => format!("API Error: {status} {}", trouble.message),
        None => format!("API Error: {}", trouble.message),
    }
}

#[cfg(test)]
mod tests;
