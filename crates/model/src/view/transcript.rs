//! The conversation as a person reads it: turn by turn, each call once with its result.
//!
//! Plain data. Texts are read from the [`TranscriptSource`] only for the turns that were picked, one
//! turn at a time, so the last turn of a gigabyte is there at once. Nothing here decides how
//! things look, and nothing is cut.

mod call_progress;
mod items;
pub(crate) mod line_text;
mod nested_agents;
pub mod outline;
mod thread_walk;

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::block::BlockKind;
use crate::log::TranscriptSource;
use crate::session::{Index, Session};
use crate::time::Time;
use crate::user_input::{InputKinds, UserInput};
use crate::view::tool_outcome::{FileChange, ToolCallOutcome};
use crate::view::turn_selection::TurnSelection;
use crate::view::turns::CallStatus;
use crate::view::workflow::WorkflowRun;
pub use nested_agents::run_agent_words;

/// One thing that was said or done.
#[derive(Clone, Debug)]
pub struct TranscriptItem {
    /// The line it stands on.
    pub line: u32,
    /// When.
    pub at: Option<Time>,
    /// What.
    pub body: ItemBody,
}

/// What a [`TranscriptItem`] is.
#[derive(Clone, Debug)]
pub enum ItemBody {
    /// A turn begins.
    Turn(TurnHead),
    /// What a person typed.
    Prompt(TranscriptPrompt),
    /// What the model said.
    Reply {
        /// In Markdown.
        text: String,
        /// By which model.
        model: Option<String>,
    },
    /// What the model thought.
    Thinking {
        /// The text; empty if only its signature was written.
        text: String,
        /// How many characters.
        chars: usize,
    },
    /// A tool call.
    Call(Box<TranscriptCall>),
    /// The result of a call that is not in the file.
    Orphan {
        /// The call it names.
        call: String,
        /// Its text.
        text: String,
        /// It reports a failure.
        is_error: bool,
    },
    /// A prompt typed while the model worked.
    Queued {
        /// The prompt.
        text: String,
    },
    /// A person stopped the model.
    Interrupt {
        /// At a tool call.
        tool: bool,
    },
    /// The context was compacted.
    Compaction {
        /// Only old tool results were cleared.
        micro: bool,
        /// `manual` or `auto`.
        trigger: Option<String>,
        /// Tokens before.
        before: Option<u64>,
        /// Tokens after.
        after: Option<u64>,
    },
    /// What a compaction left of the conversation.
    Summary {
        /// The summary.
        text: String,
    },
    /// The API failed.
    ApiError {
        /// What it said.
        text: String,
        /// Which attempt, of how many.
        attempt: Option<(u64, u64)>,
    },
    /// A hook failed or blocked.
    Hook(FailedHook),
    /// A command that ran in the client, or its output.
    Command {
        /// As it was typed; `None` if this is only output.
        command: Option<String>,
        /// What it printed.
        output: String,
        /// It printed to stderr.
        is_error: bool,
    },
    /// Something a program told the model, such as a finished background task.
    Notice {
        /// In a few words.
        text: String,
    },
    /// Lines beside the conversation, folded.
    Notes(Vec<TranscriptNote>),
    /// A kind of line never seen before.
    Unknown {
        /// Its type.
        label: String,
    },
    /// A line that could not be read.
    Fault {
        /// What is wrong.
        detail: String,
    },
}

/// Lines of one kind that stand beside the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptNote {
    /// What they are.
    pub label: String,
    /// How many.
    pub count: u32,
    /// Whether they tell or do something, as attachments and hooks do; the others only keep
    /// books.
    pub matters: bool,
    /// What they say; empty unless [`whole`] was asked for.
    pub text: String,
}

/// An image or a document, with its data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadedMedia {
    /// `image` or `document`.
    pub kind: String,
    /// Such as `image/png`; empty if nothing says.
    pub media_type: String,
    /// In base64; empty if it stands elsewhere.
    pub data: String,
    /// Where it stands, if not here.
    pub place: Option<String>,
}

/// The head of a turn.
#[derive(Clone, Debug)]
pub struct TurnHead {
    /// Its number, from 1; negative where it is counted from the end.
    pub n: i64,
    /// What opened it.
    pub kind: UserInput,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// Whether it is on the branch the session goes on from.
    pub live: bool,
}

/// What a person typed.
#[derive(Clone, Debug)]
pub struct TranscriptPrompt {
    /// The text, without the wrappers of editors.
    pub text: String,
    /// What sort of prompt.
    pub kind: UserInput,
    /// What it is made of.
    pub kinds: InputKinds,
    /// How many images and documents came with it.
    pub images: usize,
    /// These images and documents; empty unless [`whole`] was asked for.
    pub media: Vec<LoadedMedia>,
    /// The permission mode it was typed in.
    pub permission_mode: Option<String>,
}

/// A tool call with its result.
#[derive(Clone, Debug, Default)]
pub struct TranscriptCall {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// What was done, in a word or two.
    pub verb: String,
    /// What it is about; paths below the working directory are shortened.
    pub subject: Option<String>,
    /// The whole input.
    pub input: Value,
    /// How it ended.
    pub status: CallStatus,
    /// From call to result.
    pub duration_ms: Option<u64>,
    /// The text of the result; of a running call, the last it printed.
    pub text: String,
    /// How many images the result holds.
    pub images: usize,
    /// Where they stand: the line, and how many of its images come before; see [`pictures`].
    pub pictures: Option<(u32, usize)>,
    /// These images; empty unless [`whole`] was asked for.
    pub media: Vec<LoadedMedia>,
    /// The structured result, or null; without copies of files where [`whole`] was asked for.
    pub meta: Value,
    /// What came of it.
    pub outcome: ToolCallOutcome,
    /// How it changed a file.
    pub change: Option<FileChange>,
    /// The sub-agent it started.
    pub agent: Option<TranscriptAgent>,
}

/// A sub-agent under its call.
#[derive(Clone, Debug)]
pub struct TranscriptAgent {
    /// Its id, if it has one.
    pub id: Option<String>,
    /// Tells it from all others of the session, see [`loose`].
    pub key: String,
    /// How many calls its transcript holds.
    pub calls: u64,
    /// Its conversation; empty unless it was picked.
    pub items: Vec<TranscriptItem>,
    /// The workflow run, where the call started one: the conversation is that of all its
    /// sub-agents, one behind the other.
    pub run: Option<Box<WorkflowRun>>,
}

impl TranscriptAgent {
    /// Whose conversations stand here, as [`loose`] calls them.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let of_run = self.run.iter().flat_map(|run| &run.agents);
        let of_run = of_run.map(|agent| &*agent.agent);
        std::iter::once(&*self.key).chain(of_run)
    }
}

/// A hook that failed or blocked.
#[derive(Clone, Debug, Default)]
pub struct FailedHook {
    /// The event, such as `Stop` or `PreToolUse:Bash`.
    pub event: String,
    /// Its command.
    pub command: Option<String>,
    /// It kept something from happening; otherwise it only failed.
    pub blocked: bool,
    /// What it printed.
    pub output: String,
}

/// A sub-agent's own file, with its texts.
#[derive(Clone, Copy)]
pub struct AgentTranscript<'a> {
    /// What it means.
    pub session: &'a Session,
    /// Where its texts are.
    pub source: &'a dyn TranscriptSource,
    /// The call that started it, if that is known.
    pub call: Option<&'a str>,
    /// The workflow run it belongs to.
    pub run: Option<&'a WorkflowRun>,
}

impl<'a> AgentTranscript<'a> {
    /// A file of which nothing else is known.
    pub fn new(session: &'a Session, source: &'a dyn TranscriptSource) -> AgentTranscript<'a> {
        AgentTranscript {
            session,
            source,
            call: None,
            run: None,
        }
    }
}

/// The files of sub-agents by agent id.
pub type AgentTranscripts<'a> = HashMap<String, AgentTranscript<'a>>;

/// The whole conversation, as far as it was picked.
pub fn transcript(
    session: &Session,
    source: &dyn TranscriptSource,
    agents: &AgentTranscripts<'_>,
    pick: &TurnSelection,
) -> Vec<TranscriptItem> {
    parts(session, source, agents, pick).flatten().collect()
}

/// The same, one turn at a time: for sessions too large to hold all their texts.
pub fn parts<'a>(
    session: &'a Session,
    source: &'a dyn TranscriptSource,
    agents: &'a AgentTranscripts<'a>,
    pick: &'a TurnSelection,
) -> impl Iterator<Item = Vec<TranscriptItem>> + 'a {
    let walk = thread_walk::ThreadWalk::new(session, source, agents, pick.agents);
    let picked = walk.picked(pick);
    picked.into_iter().map(move |turn| walk.turn(turn))
}

/// A conversation to look into at any place, again and again: for screens.
///
/// What holds for all of it is found out once; after that a look costs what it shows.
pub struct TranscriptReader<'a> {
    walk: thread_walk::ThreadWalk<'a>,
    parts: Vec<thread_walk::ThreadPart>,
}

/// A turn of a [`TranscriptReader`], or what stands before the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnExtent {
    /// Its number among the turns, from 1; 0 for what stands before them.
    pub turn: usize,
    /// How many lines of the file it has.
    pub lines: usize,
}

impl<'a> TranscriptReader<'a> {
    /// The file's own conversation.
    pub fn new(
        session: &'a Session,
        source: &'a dyn TranscriptSource,
        agents: &'a AgentTranscripts<'a>,
    ) -> Self {
        TranscriptReader::of(thread_walk::ThreadWalk::new(session, source, agents, false))
    }

    /// The conversation of a sub-agent inside the same file.
    pub fn thread(&self, thread: Index) -> TranscriptReader<'a> {
        TranscriptReader::of(self.walk.in_thread(thread))
    }

    fn of(walk: thread_walk::ThreadWalk<'a>) -> TranscriptReader<'a> {
        let mut parts = walk.picked(&TurnSelection::default());
        // What stands before the first turn is mostly bookkeeping.
        parts.retain(|part| {
            matches!(part, thread_walk::ThreadPart::Turn(_)) || walk.says_something(*part)
        });
        TranscriptReader { walk, parts }
    }

    /// Its turns in file order.
    pub fn turn_extents(&self) -> impl Iterator<Item = TurnExtent> + '_ {
        self.parts.iter().map(|part| TurnExtent {
            turn: match part {
                thread_walk::ThreadPart::Before => 0,
                thread_walk::ThreadPart::Turn(at) => at + 1,
            },
            lines: self.walk.lines_of(*part).len(),
        })
    }

    /// The records of a turn, in the order in which they are shown.
    pub fn records(&self, stretch: usize) -> &[Index] {
        let part = self.parts.get(stretch);
        part.map_or(&[], |part| self.walk.lines_of(*part))
    }

    /// What some of its lines say, counted from the start of the turn.
    pub fn items(&self, stretch: usize, lines: std::ops::Range<usize>) -> Vec<TranscriptItem> {
        let part = self.parts.get(stretch);
        part.map_or_else(Vec::new, |part| self.walk.slice(*part, lines, |_, _, _| ()))
    }

    /// What a call started, if it is a conversation of this file or beside it. A workflow run is
    /// many.
    pub fn started(&self, call: &TranscriptAgent) -> Option<AgentLocation> {
        if let Some(id) = &call.id
            && self.walk.agents.contains_key(id)
        {
            return Some(AgentLocation::File(id.clone()));
        }
        let (thread, _) = call.key.split_once(':')?;
        thread.parse().ok().map(AgentLocation::Thread)
    }
}

/// Where the conversation of a sub-agent stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AgentLocation {
    /// In the file of the agent with this id.
    File(String),
    /// In the same file, as this thread.
    Thread(Index),
}

/// A whole conversation, each turn made when it is asked for, in any order and on any thread:
/// sub-agents are open, images have their data, and notes their texts.
pub struct TranscriptTurns<'a> {
    walk: thread_walk::ThreadWalk<'a>,
    parts: Vec<thread_walk::ThreadPart>,
}

impl TranscriptTurns<'_> {
    /// How many there are, with what stands before the first.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// What was said and done in one of them.
    pub fn turn(&self, at: usize) -> Vec<TranscriptItem> {
        let part = self.parts.get(at);
        part.map_or_else(Vec::new, |part| self.walk.turn(*part))
    }
}

/// Everything.
pub fn whole<'a>(
    session: &'a Session,
    source: &'a dyn TranscriptSource,
    agents: &'a AgentTranscripts<'a>,
) -> TranscriptTurns<'a> {
    let walk = thread_walk::ThreadWalk::new(session, source, agents, true).whole();
    let parts = walk.picked(&TurnSelection::default());
    TranscriptTurns { walk, parts }
}

/// The conversations of sub-agents that stand under no call, with their names. `shown` are the
/// keys of those that do (see [`TranscriptAgent`]).
pub fn loose<'a>(
    session: &'a Session,
    source: &'a dyn TranscriptSource,
    agents: &'a AgentTranscripts<'a>,
    shown: &'a HashSet<String>,
) -> impl Iterator<Item = (String, Vec<TranscriptItem>)> + 'a {
    let mut names: Vec<&String> = agents.keys().collect();
    names.sort();
    let files = names.into_iter().filter(|name| !shown.contains(*name));
    let files = files.filter_map(|name| Some((name, agents.get(name)?)));
    let files = files.filter(|(_, file)| !std::ptr::eq(file.session, session));
    let files = files.map(|(name, file)| {
        let walk = thread_walk::ThreadWalk::new(file.session, file.source, agents, true).whole();
        (name.clone(), walk.below(1).all())
    });
    let threads = (1..session.threads.len() as u32)
        .filter(|thread| !shown.contains(&nested_agents::thread_key(session, *thread)));
    let own = OnceCell::new();
    let threads = threads.map(move |thread| {
        let new = || thread_walk::ThreadWalk::new(session, source, agents, true).whole();
        let walk: &thread_walk::ThreadWalk<'a> = own.get_or_init(new);
        let name = crate::view::agents::thread_name(session, thread);
        (name, walk.in_thread(thread).below(1).all())
    });
    files.chain(threads)
}

/// The images and documents that stand on a line, in their order: those of a prompt, or those
/// of results.
pub fn pictures(session: &Session, source: &dyn TranscriptSource, line: u32) -> Vec<LoadedMedia> {
    let from = session.records.partition_point(|record| record.line < line);
    let records = session.records[from..].iter();
    let mut all = Vec::new();
    for record in records.take_while(|record| record.line == line) {
        let bytes = session.bytes_of(source, record);
        for block in session.blocks_of(record) {
            match block.kind {
                BlockKind::Image | BlockKind::Document => {
                    all.push(line_text::media(&crate::json::value(
                        block.span().of(&bytes),
                    )));
                }
                BlockKind::ToolResult => {
                    all.extend(
                        line_text::content_with(block.body().of(&bytes), line_text::media).1,
                    );
                }
                _ => {}
            }
        }
    }
    all
}

/// The text of a result: a string, or a list of blocks.
pub(crate) fn result_text(raw: &[u8]) -> String {
    line_text::content(raw).0
}
