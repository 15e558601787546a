//! A conversation in pieces: what the screen asks a book for, and what it gets.
//!
//! A conversation is a list of turns. A turn is cut into parts of some hundred lines of the
//! file, so that a turn of a whole day is not laid out at once. A part that was laid out is a
//! [`TurnPage`].

use std::collections::BTreeSet;
use std::ops::Range;

use unspool_model::time::Time;
use unspool_model::user_input::UserInput;
use unspool_model::view::transcript::AgentLocation;
use unspool_show::{StyledLine, ToolDetail};

/// Lines of the file that make a part.
pub const PART: usize = 200;

/// Which conversation of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ConversationId {
    /// The session's own.
    Main,
    /// That of a sub-agent.
    Agent(AgentLocation),
}

/// How a page is laid out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageOptions {
    /// Columns.
    pub width: usize,
    /// How much of tools.
    pub tools: ToolDetail,
    /// With thinking.
    pub thinking: bool,
    /// Lines of the file whose blocks are shown whole.
    pub open: BTreeSet<u32>,
}

/// A turn on one line, without what was said in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnOutline {
    /// Its number from 1, negative from the end; 0 for what stands before the first.
    pub n: i64,
    /// Where it begins in the file.
    pub offset: u64,
    /// What opened it.
    pub kind: UserInput,
    /// When.
    pub at: Option<Time>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// On the branch that goes on.
    pub live: bool,
    /// Nothing more is to be expected.
    pub over: bool,
    /// The person stopped it.
    pub interrupted: bool,
    /// The context was compacted meanwhile.
    pub compacted: bool,
    /// Its tools and how often each was called.
    pub tools: Vec<(String, u32)>,
    /// Calls that failed.
    pub failed: u32,
    /// Sub-agents it started.
    pub agents: u32,
    /// Lines of the file.
    pub lines: usize,
    /// Its parts.
    pub parts: usize,
}

/// What was asked and answered in a turn, each on a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnExcerpt {
    /// The prompt.
    pub prompt: String,
    /// The last thing the model said.
    pub reply: String,
}

/// A part of a turn, laid out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnPage {
    /// Its lines.
    pub rows: Vec<StyledLine>,
    /// What they show, from top to bottom.
    pub blocks: Vec<PageBlock>,
}

/// What can be pointed at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageBlock {
    /// Its rows on the page.
    pub rows: Range<usize>,
    /// The line of the file it begins at.
    pub line: u32,
    /// Which of the part's items it is.
    pub item: usize,
    /// It can be shown in full.
    pub opens: bool,
    /// The sub-agent it started, and what that is called.
    pub agent: Option<(AgentLocation, String)>,
}

/// Which pages are wanted now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// Of which conversation.
    pub of: ConversationId,
    /// Laid out how.
    pub look: PageOptions,
    /// Turns whose heads are wanted.
    pub heads: Vec<usize>,
    /// Parts by turn and number.
    pub parts: Vec<(usize, usize)>,
}

/// Something beside a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SidePanelKind {
    /// What fills the context.
    Context,
    /// Tokens and cost.
    Usage,
    /// Files.
    Files,
}

impl SidePanelKind {
    /// What stands above it.
    pub fn title(self) -> &'static str {
        match self {
            SidePanelKind::Context => "context",
            SidePanelKind::Usage => "tokens and cost",
            SidePanelKind::Files => "files",
        }
    }
}

/// What a book is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum LoaderRequest {
    /// These pages; earlier wishes that are not repeated are void.
    Pages(PageRequest),
    /// The turns of another conversation.
    Enter(ConversationId),
    /// Whether there is more by now.
    Grow,
    /// Text in a conversation.
    Find {
        /// Answers bear this number.
        number: u64,
        /// In which.
        of: ConversationId,
        /// What.
        query: String,
    },
    /// Where a line of the file is shown.
    Locate {
        /// The answer bears this number.
        number: u64,
        /// In which conversation.
        of: ConversationId,
        /// The line.
        line: u32,
    },
    /// Something beside the conversation.
    Side {
        /// What.
        side: SidePanelKind,
        /// Of which conversation.
        of: ConversationId,
        /// Columns.
        width: usize,
    },
    /// The text of a block, to be copied.
    Text {
        /// Of which conversation.
        of: ConversationId,
        /// Its turn.
        turn: usize,
        /// Its part.
        part: usize,
        /// Which of the part's items.
        item: usize,
    },
    /// The line of the file behind a block.
    Raw {
        /// Of which conversation.
        of: ConversationId,
        /// The line.
        line: u32,
        /// Columns.
        width: usize,
    },
}

/// What is known about a session as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionFacts {
    /// Its title.
    pub title: Option<String>,
    /// Where it runs.
    pub cwd: Option<String>,
    /// Its branch of git.
    pub branch: Option<String>,
    /// The model of the last reply.
    pub model: Option<String>,
    /// Tokens in the context.
    pub context: Option<(u64, Option<u64>)>,
    /// Lines that could not be read.
    pub faults: usize,
}

/// A place that a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindHit {
    /// The turn.
    pub turn: usize,
    /// Its part.
    pub part: usize,
    /// The line of the block that shows it.
    pub line: u32,
    /// It is in what the model thought.
    pub thinking: bool,
}

/// What a book tells.
#[derive(Clone, Debug, PartialEq)]
pub enum LoaderEvent {
    /// The turns of a conversation, as they are now.
    Turns {
        /// Of which.
        of: ConversationId,
        /// All of them.
        turns: Vec<TurnOutline>,
        /// Only the end was read so far.
        partial: bool,
        /// Counts how often the file was read on.
        revision: u64,
        /// What is known about the session.
        facts: SessionFacts,
    },
    /// A head.
    Head {
        /// Of which conversation.
        of: ConversationId,
        /// As of when.
        revision: u64,
        /// The turn.
        turn: usize,
        /// The head.
        head: TurnExcerpt,
    },
    /// A page.
    Page {
        /// Of which conversation.
        of: ConversationId,
        /// As of when.
        revision: u64,
        /// The turn.
        turn: usize,
        /// The part.
        part: usize,
        /// How it is laid out.
        look: PageOptions,
        /// The page.
        page: TurnPage,
    },
    /// What was found so far.
    Found {
        /// The number of the question.
        number: u64,
        /// The next hits.
        hits: Vec<FindHit>,
        /// Whether that was all.
        done: bool,
    },
    /// Something beside the conversation.
    Side {
        /// What.
        side: SidePanelKind,
        /// Of which conversation.
        of: ConversationId,
        /// Its lines.
        lines: Vec<StyledLine>,
    },
    /// The text of a block.
    Text(String),
    /// The line of a file.
    Raw {
        /// Its number.
        line: u32,
        /// Laid out.
        lines: Vec<StyledLine>,
    },
    /// It cannot be read.
    Failed(String),
}
