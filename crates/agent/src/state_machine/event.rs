//! What can happen to the machine, and what it wants done.

use serde_json::Value;
use unspool_model::entry_writer::{NewEntry, PreservedTail};

use crate::api::ApiError;
use crate::api::client::StreamItem;
use crate::tool::{ToolCallRequest, ToolOutcome};

/// Something that was said to the session.
#[derive(Clone, Debug, PartialEq)]
pub struct SubmittedPrompt {
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

impl SubmittedPrompt {
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
pub enum TurnEvent {
    /// Somebody said something.
    Submit(SubmittedPrompt),
    /// The model said something, or failed to.
    Item(StreamItem),
    /// A call has ended.
    Ran {
        /// Which.
        call: String,
        /// What came of it.
        outcome: ToolOutcome,
        /// Whether the turn ends with it.
        halt: TurnHalt,
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
        /// What stays said behind it, and its tokens.
        kept: Option<(PreservedTail, u64)>,
    },
    /// There is none.
    NotCompacted(String),
    /// Whoever is asked before a turn ends has spoken: a reason to go on, or none.
    MayStop(Option<TurnContinueReason>),
}

/// Why a turn does not end yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnContinueReason {
    /// A hook wants more.
    Hook(String),
    /// Something in the background has ended, and nobody would hear of it later.
    News(Vec<String>),
}

/// Whether a turn ends with a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TurnHalt {
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
pub enum TurnEffect {
    /// This becomes a line.
    Append(NewEntry),
    /// The model is asked, with what the lines say.
    Ask,
    /// The model is not listened to any more.
    Hush,
    /// A call is made: checked, allowed, run.
    Run(ToolCallRequest),
    /// All calls are told to stop.
    StopCalls,
    /// [`TurnEvent::Deadline`] comes shortly.
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
    End(TurnEnding),
    /// How many wait.
    Queued(usize),
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnEnding {
    /// Why.
    pub why: TurnEndReason,
    /// What the model said last.
    pub text: String,
    /// How often the model was asked.
    pub turns: u32,
    /// What waited and was not said any more.
    pub unsaid: Vec<SubmittedPrompt>,
}

/// Why a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnEndReason {
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
    Failed(ApiError),
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
pub struct TurnLimits {
    /// How often the model is asked in one turn.
    pub turns: Option<u32>,
    /// Tokens that fit into the model's context.
    pub window: u64,
    /// Whether it makes room by itself.
    pub compacts: bool,
}

impl TurnLimits {
    /// So full the context may be: behind it there is room for a summary and its answer.
    pub fn full(&self) -> u64 {
        self.window - (self.window / 5).min(33_000)
    }
}
