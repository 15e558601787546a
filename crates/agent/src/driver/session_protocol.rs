//! What goes in and out of a session: what somebody wants, and what a front end is told.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::RunUsage;
use crate::permission::explain::CommandPartFinding;
use crate::permission::{PermissionMode, PermissionPolicy};
use crate::settings::RuleKind;
use crate::state_machine::TurnEnding;
use crate::tool::{ToolCallRequest, ToolOutcome};
use crate::transcript_writer::ColdSession;

/// What somebody wants.
#[derive(Clone, Debug)]
pub enum SessionCommand {
    /// Says something: begins a turn, or waits until the model can hear it.
    Submit {
        /// A text, or a list of blocks.
        content: Value,
        /// Texts for the model alone, such as what a slash command stands for.
        context: Vec<String>,
    },
    /// Stops what is going on.
    Interrupt,
    /// Answers [`SessionNotice::Ask`].
    Answer {
        /// Which question.
        ask: u64,
        /// What is answered.
        answer: QuestionAnswer,
    },
    /// From now on in this mode.
    Mode(PermissionMode),
    /// From now on with these rules, and those of the session.
    Rules(Box<PermissionPolicy>),
    /// From now on with these rules as well, in this session alone.
    Also(RuleKind, Vec<String>),
    /// From now on these folders belong to the session as well.
    Folders(Vec<PathBuf>),
    /// From now on with this model, or the newest of this family.
    Model(String),
    /// Makes a summary of the conversation and goes on from that.
    Compact {
        /// What it should be about.
        words: Option<String>,
    },
    /// Goes back to before a prompt.
    Rewind {
        /// The id of its line.
        prompt: String,
        /// Files become what they were.
        files: bool,
        /// The conversation goes on from there.
        conversation: bool,
    },
    /// Runs a command of the person's own, without the model.
    Shell(String),
    /// Names the session.
    Title(String),
    /// Writes down a command that the front end answered itself, and its answer.
    Local {
        /// Such as `/model`.
        command: String,
        /// What was printed.
        output: String,
    },
    /// Ends the session when nothing is on its way any more.
    Close,
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq)]
pub enum QuestionAnswer {
    /// This once.
    Yes,
    /// And whatever these rules match, in this session.
    Always(Vec<String>),
    /// Not, and why; without a reason the turn ends.
    No(Option<String>),
    /// Another input than the model gave, and yes.
    Changed(Value),
    /// What was asked for, such as the answers to a questionnaire.
    Value(Value),
}

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum QuestionKind {
    /// Whether a call may run, why that is asked, and the rules that would save the question.
    Permission {
        /// Why.
        why: String,
        /// The rules.
        always: Vec<String>,
        /// Every command that a shell command runs, and what the rules say about each.
        parts: Vec<CommandPartFinding>,
    },
    /// The questions of AskUserQuestion.
    Question,
    /// The plan of ExitPlanMode.
    Plan,
}

/// A sub-agent that asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskingAgent {
    /// Its id.
    pub id: String,
    /// Its kind, such as `general-purpose`.
    pub kind: String,
    /// What it works on.
    pub description: String,
}

/// What a front end is told.
#[derive(Clone, Debug)]
pub enum SessionNotice {
    /// A line was written.
    Line {
        /// Its text.
        json: String,
        /// Its id.
        uuid: String,
        /// The sub-agent's call, if it is in the file of one.
        agent: Option<String>,
    },
    /// An event of the API, as it came.
    Raw(Value),
    /// More text of the model.
    Text(String),
    /// More thinking.
    Thinking(String),
    /// What was said since the last line does not count: it is asked again.
    Retry {
        /// How many tries failed.
        tries: u32,
        /// How many may.
        most: u32,
        /// When it is tried again.
        wait: Duration,
        /// The status, if there was an answer.
        status: Option<u16>,
        /// What kind of error.
        error: String,
        /// What was said.
        message: String,
    },
    /// A request goes out.
    Asking,
    /// An answer has ended: tokens in the context, and all that was spent.
    Usage {
        /// Tokens in the context.
        filled: u64,
        /// Tokens that fit.
        window: u64,
        /// What this run took.
        spent: RunUsage,
    },
    /// A call begins.
    CallBegan(ToolCallRequest),
    /// Something goes on in a call.
    Progress {
        /// The call.
        call: String,
        /// What.
        data: Value,
    },
    /// A call has ended.
    CallEnded {
        /// The call.
        call: ToolCallRequest,
        /// What came of it.
        outcome: ToolOutcome,
    },
    /// A call was refused.
    Denied {
        /// The call.
        call: ToolCallRequest,
        /// Why.
        why: String,
        /// Whether somebody was asked and said no.
        asked: bool,
    },
    /// Somebody has to answer.
    Ask {
        /// The number of the question.
        ask: u64,
        /// The call it is about.
        call: ToolCallRequest,
        /// What is asked.
        what: QuestionKind,
        /// The sub-agent that asks, if it is not the session itself.
        agent: Option<AskingAgent>,
    },
    /// Nobody waits for the answer to a question any more: its call was interrupted.
    Withdrawn {
        /// The number of the question.
        ask: u64,
    },
    /// How many prompts wait.
    Queued(usize),
    /// A summary is being made.
    Compacting {
        /// By itself, or because somebody wanted it.
        auto: bool,
    },
    /// The mode changed.
    Mode(PermissionMode),
    /// The model changed.
    Model(String),
    /// Files, the conversation or both are as they were before a prompt.
    Rewound {
        /// What the prompt said.
        prompt: String,
        /// Files were brought back.
        files: bool,
        /// The conversation stands there now.
        conversation: bool,
    },
    /// The first notice of a session that is gone on with after a long pause, if it is large: what
    /// is said next makes the API read all of it anew, at the full price. A front end says so and
    /// offers [`SessionCommand::Compact`], which costs one such reading and makes all later ones small.
    Cold(ColdSession),
    /// Something to know.
    Warn(String),
    /// A turn is over.
    Ended {
        /// How.
        ending: TurnEnding,
        /// How long it took.
        time: Duration,
    },
    /// The transcript cannot be written: the turn ended there.
    Unwritten {
        /// Why.
        why: String,
        /// What to do about it.
        hint: String,
    },
    /// The session is closed.
    Closed,
}
