//! What the lines mean, taken in one line at a time.
//!
//! There is one fold: a file that is read at once, a file that grows and a file read in
//! pieces by several threads all end up in [`Session::push`] or [`Session::take`]. A session
//! keeps heads, places and totals; texts and payloads stay in the file and are opened when
//! somebody looks, so a session of a gigabyte takes some tens of megabytes. Views
//! ([`crate::view`]) are pure functions of it.

mod few;
mod fold;
mod part;
mod pool;

use std::collections::BTreeMap;
use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use foldhash::{HashMap, HashSet, HashSetExt};
use hashbrown::HashTable;

use crate::entry::failure::Failure;
use crate::entry::{self, Decoded, Kind, TitleSource};
use crate::fault::{Fault, FaultKind};
use crate::id::Id;
use crate::input::{Input, InputKinds};
use crate::log::{Line, Log, Source};
use crate::marks::{Marks, Slots};
use crate::tally::Tally;
use crate::time::Time;
use crate::usage::{Terms, Usage};

pub use few::Few;
pub use part::Part;
use pool::{Pool, Slot, Texts};

/// Index into [`Session::records`], [`Session::messages`] and so on.
pub type Index = u32;

/// What kind of file the lines come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// A session; lines marked as sidechain belong to sub-agents.
    #[default]
    Main,
    /// A sub-agent's own file: all its lines are one conversation.
    Agent,
}

/// The parent a record names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// The line has no such field.
    Absent,
    /// `null`: the line is a root.
    Null,
    /// This record, or one that stands in its place.
    At(Index),
    /// A line that was not seen before; [`Session::parent_of`] knows its id.
    Named(Index),
}

/// One object of the file: what it is and where it stands.
///
/// There is one for every line, so each byte counts: what most lines do not have is kept in
/// the smallest way, behind a method.
#[derive(Clone, Debug)]
pub struct Record {
    /// Where the object begins in the file.
    pub offset: u64,
    /// The id of the line.
    pub uuid: Option<Id>,
    /// What it is.
    pub kind: Kind,
    when: i64,
    up: Up,
    /// Its pieces of content in [`Session::blocks`].
    pub blocks: std::ops::Range<Index>,
    /// Line number, from 1.
    pub line: u32,
    length: u32,
    /// Its label in [`Session::labels`].
    pub label: Index,
    /// Its thread; 0 is the file's own conversation.
    pub thread: Index,
    reply: Slot,
    /// The model of a reply, the permission mode of anything else.
    voice: Slot,
    group: Index,
    traits: Traits,
    /// What a user line is.
    pub input: Input,
    /// Kinds of input on a user line.
    pub input_kinds: InputKinds,
    /// Marked as belonging to a sub-agent.
    pub sidechain: bool,
    /// Written by the program for the model.
    pub meta: bool,
    /// An API error in the form of a reply.
    pub api_error: bool,
    /// A later line has the same uuid and stands in its place.
    pub duplicate: bool,
}

/// A [`Link`] in four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Up(u32);

impl From<Link> for Up {
    fn from(link: Link) -> Up {
        Up(match link {
            Link::Absent => 0,
            Link::Null => 1,
            Link::At(at) => 2 + 2 * at,
            Link::Named(stray) => 3 + 2 * stray,
        })
    }
}

/// What few lines are, a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Traits(u8);

impl Traits {
    const TROUBLE: u8 = 1;
    const REFUSED: u8 = 2;
    const GLUED: u8 = 4;
    const UNTYPED: u8 = 8;
    const NOTIFIES: u8 = 16;

    fn new(all: [(u8, bool); 5]) -> Traits {
        let set = all.into_iter().filter(|(_, is)| *is);
        Traits(set.fold(0, |sum, (bit, _)| sum | bit))
    }

    fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

/// No time at all: nobody wrote lines before the universe began.
const NEVER: i64 = i64::MIN;

impl Record {
    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// Whether it has no bytes; no object has none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// When it was written.
    pub fn at(&self) -> Option<Time> {
        (self.when != NEVER).then_some(Time(self.when))
    }

    /// The parent it names.
    pub fn parent(&self) -> Link {
        match self.up.0 {
            0 => Link::Absent,
            1 => Link::Null,
            at if at % 2 == 0 => Link::At(at / 2 - 1),
            stray => Link::Named(stray / 2 - 1),
        }
    }

    /// Hooks failed or blocked.
    pub fn is_trouble(&self) -> bool {
        self.traits.has(Traits::TROUBLE)
    }

    /// A client would not get to see this line: it is not strictly JSON.
    pub fn is_refused(&self) -> bool {
        self.traits.has(Traits::REFUSED)
    }

    /// It shares its line with another object.
    pub fn is_glued(&self) -> bool {
        self.traits.has(Traits::GLUED)
    }

    /// It has no `type`; clients pass over it.
    pub fn is_untyped(&self) -> bool {
        self.traits.has(Traits::UNTYPED)
    }

    /// It tells the model about a task in the background.
    pub fn notifies(&self) -> bool {
        self.traits.has(Traits::NOTIFIES)
    }

    /// Its message, if it is part of a reply.
    pub fn message(&self) -> Option<Index> {
        self.reply.get()
    }

    /// The permission mode it was typed in, in [`Session::names`].
    pub fn permission_mode(&self) -> Option<Index> {
        self.voice.get().filter(|_| self.kind != Kind::Assistant)
    }

    /// The model of a reply, in [`Session::names`].
    pub fn model(&self) -> Option<Index> {
        self.voice.get().filter(|_| self.kind == Kind::Assistant)
    }

    /// Whether it takes part in the chain of parents.
    pub fn in_chain(&self) -> bool {
        self.uuid.is_some() && !self.duplicate
    }

    /// Who speaks, as the API names it; `None` for lines nobody says.
    pub fn role(&self) -> Option<&'static str> {
        match self.kind {
            Kind::User => Some("user"),
            Kind::Assistant => Some("assistant"),
            _ => None,
        }
    }

    /// Whether it is a prompt, a result or a piece of a reply.
    pub fn is_conversation(&self) -> bool {
        matches!(self.kind, Kind::User | Kind::Assistant)
    }
}

/// One API message: its lines merged.
#[derive(Clone, Debug)]
pub struct Message {
    name: Slot,
    /// The thread it belongs to.
    pub thread: Index,
    /// Its lines in file order.
    pub records: Few,
    /// The model, in [`Session::names`].
    pub model: Option<Index>,
    /// Its tokens, once.
    pub usage: Usage,
    /// What else decides its price.
    pub terms: Terms,
    /// Whether any line said how many tokens it took.
    pub has_usage: bool,
    /// Why the model stopped, in [`Session::names`].
    pub stop: Option<Index>,
    /// Written by the client itself.
    pub synthetic: bool,
    /// Time of its first line.
    pub first: Option<Time>,
    /// Time of its last line.
    pub last: Option<Time>,
}

/// One tool call with its result.
#[derive(Clone, Debug)]
pub struct Call {
    name: Slot,
    /// The tool, in [`Session::names`].
    pub tool: Index,
    about: Slot,
    /// The line that made it.
    pub record: Index,
    /// Its block.
    pub block: Index,
    /// Its result.
    pub result: Option<CallResult>,
    /// The sub-agent it started.
    pub agent: Option<Box<str>>,
    /// The result only says that something was started in the background.
    pub launched: bool,
}

/// A result that looks for its call.
#[derive(Clone, Debug)]
struct Answer {
    record: Index,
    block: Index,
    agent: Option<Box<str>>,
    launched: bool,
    task: Option<Box<str>>,
    over: bool,
}

/// The result of a call.
#[derive(Clone, Debug)]
pub struct CallResult {
    /// The line that holds it.
    pub record: Index,
    /// Its block.
    pub block: Index,
    /// The call failed.
    pub is_error: bool,
}

/// Something that goes on in the background: an agent, or a command.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its id.
    pub id: Box<str>,
    /// The call that started it.
    pub call: Index,
    /// Whether it is a sub-agent.
    pub agent: bool,
    /// When it was started.
    pub since: Option<Time>,
    /// Whether the file says that it is over.
    pub over: bool,
}

/// A conversation within the file: its own, or that of a sub-agent.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// The sub-agent's id, if its lines name one.
    pub agent: Option<Box<str>>,
    /// Its first line.
    pub root: Option<Index>,
    /// Its number of turns.
    pub turns: u32,
    group: Option<Index>,
}

/// A turn: opened by a person's act.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The line that opened it.
    pub record: Index,
    /// The thread it belongs to.
    pub thread: Index,
}

/// A title and who gave it.
#[derive(Clone, Debug)]
struct Title {
    source: TitleSource,
    text: String,
}

/// Lines that belong to one turn, whichever that turns out to be.
///
/// A line whose parent has not been seen yet (2.1.45 writes replies before their prompt)
/// gets a group of its own, which is linked to its parent's when that arrives.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    turn: Option<Index>,
    link: Option<Index>,
}

/// What a push altered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The records it added.
    pub records: std::ops::Range<Index>,
    /// It opened a turn.
    pub turn_opened: bool,
    /// It said that a turn is over.
    pub turn_closed: bool,
    /// How many faults it found.
    pub faults: usize,
}

/// What a transcript means.
#[derive(Clone, Debug, Default)]
pub struct Session {
    role: Role,
    /// Every object of the file, in file order.
    pub records: Vec<Record>,
    /// Pieces of content of all records.
    pub blocks: Vec<Part>,
    /// Replies.
    pub messages: Vec<Message>,
    /// Tool calls.
    pub calls: Vec<Call>,
    /// Conversations; the first is the file's own.
    pub threads: Vec<Thread>,
    /// Turns of all threads, in file order.
    pub turns: Vec<Turn>,
    /// Copies of sub-agents' messages in progress lines.
    pub copies: Vec<Message>,
    /// The call during which each of them was written.
    pub copy_calls: Vec<Option<Box<str>>>,
    /// Kinds of line met, and how many of each.
    pub labels: Tally,
    /// Lines that were blank.
    pub blank_lines: u32,
    /// What was wrong with single lines.
    pub faults: Vec<Fault>,
    /// Types and fields never seen before, with the versions that wrote them.
    pub unknown: BTreeMap<String, BTreeMap<String, u32>>,
    /// Versions of the client that wrote lines, in the order they appear.
    pub versions: Tally,
    /// Models, in the order they appear.
    pub models: Tally,
    /// Working directories, in the order they appear.
    pub cwds: Tally,
    /// Pull requests.
    pub pr_links: Tally,
    /// The last branch of git.
    pub branch: Option<String>,
    /// The three words that name the session.
    pub slug: Option<String>,
    /// The last permission mode.
    pub permission_mode: Option<String>,
    /// How the client was started.
    pub entrypoint: Option<String>,
    /// The session it was forked from, if a line says.
    pub forked_from: Option<Id>,
    /// The first `sessionId` on a line.
    pub first_session_id: Option<Id>,
    /// The earliest time on a line.
    pub first: Option<Time>,
    /// The latest time on a line.
    pub last: Option<Time>,
    /// The first prompt, up to 500 characters.
    pub goal: Option<String>,
    /// The last visible text of a reply, up to 500 characters.
    pub recent_output: Option<String>,
    /// What a person typed last, up to 500 characters.
    pub recent_prompt: Option<String>,
    /// The last failure of the API in its own conversation, and the record that tells it.
    pub failure: Option<(Index, Failure)>,
    /// What was started in the background of its own conversation.
    pub tasks: Vec<Task>,
    /// The sub-agent whose file it is, if its lines say.
    pub agent: Option<Box<str>>,
    /// Where the conversation goes on from, as the last `last-prompt` line says.
    pub last_prompt: Option<(Option<Id>, bool)>,
    /// Interned names: tools, models, stop reasons, permission modes.
    pub names: Tally,
    summaries: Vec<(String, Option<Id>)>,
    titles: Vec<Title>,
    goal_is_prompt: bool,
    /// Where each id stands, by the record that has it.
    ids: HashTable<Index>,
    hasher: RandomState,
    /// Ids of calls and messages.
    pool: Pool,
    /// What calls are about.
    subjects: Texts,
    /// Ids that lines name before they are seen, if they ever are.
    strays: Vec<Id>,
    /// The lines that compactions follow, by their records.
    logicals: HashMap<Index, Id>,
    message_ids: Slots,
    copy_ids: HashMap<Index, Index>,
    call_ids: Slots,
    thread_ids: HashMap<Box<str>, Index>,
    /// Messages with many lines, and what they called.
    crowded: Marks,
    call_prints: HashSet<(Index, u64)>,
    task_ids: HashMap<Box<str>, Index>,
    early_results: HashMap<Option<Index>, Vec<Answer>>,
    groups: Vec<Group>,
    waiting: HashMap<Id, Vec<Index>>,
    version: Option<Index>,
}

impl Session {
    /// A session without lines.
    pub fn new(role: Role) -> Session {
        Session {
            role,
            threads: vec![Thread::default()],
            ..Session::default()
        }
    }

    /// The session of a whole file.
    pub fn from_log(log: &Log, role: Role) -> Session {
        let mut session = Session::new(role);
        for line in log.lines() {
            if line.ended {
                session.push(&line);
            } else {
                session.push_tail(&line);
            }
        }
        session
    }

    /// Takes in the next line and says what it changed.
    ///
    /// Never fails: a line that makes no sense becomes a [`Fault`].
    pub fn push(&mut self, line: &Line<'_>) -> Change {
        self.take(
            line.number,
            line.offset,
            line.bytes.len(),
            entry::decode(line.bytes),
        )
    }

    /// Takes in what stands behind the last newline, when no more is to be expected.
    ///
    /// A whole object counts as a line; anything else is a torn tail.
    pub fn push_tail(&mut self, line: &Line<'_>) -> Change {
        let decoded = entry::decode(line.bytes);
        let torn = decoded
            .faults
            .iter()
            .any(|(kind, _)| *kind == FaultKind::Unreadable);
        if torn {
            let why = "the file ends inside this line; its writer was cut off".to_owned();
            self.faults.push(Fault {
                line: line.number,
                kind: FaultKind::TornTail,
                detail: why,
            });
            return Change {
                faults: 1,
                ..Change::default()
            };
        }
        let mut change = self.take(line.number, line.offset, line.bytes.len(), decoded);
        if change.records.start < change.records.end {
            let why = "the last line does not end with a newline".to_owned();
            self.faults.push(Fault {
                line: line.number,
                kind: FaultKind::NoFinalNewline,
                detail: why,
            });
            change.faults += 1;
        }
        change
    }

    /// Takes in a line that was decoded elsewhere, for instance by another thread.
    pub fn take(&mut self, line: u32, offset: u64, len: usize, decoded: Decoded) -> Change {
        let first = self.records.len() as Index;
        let turns = self.turns.len();
        let mut change = Change {
            faults: decoded.faults.len(),
            ..Change::default()
        };
        if decoded.entries.is_empty() && decoded.faults.is_empty() && len > 0 || len == 0 {
            self.blank_lines += 1;
        }
        let refused = decoded
            .faults
            .iter()
            .any(|(kind, _)| *kind == FaultKind::ControlCharacter);
        for (kind, detail) in decoded.faults {
            self.faults.push(Fault { line, kind, detail });
        }
        let glued = decoded.entries.len() > 1;
        for mut entry in decoded.entries {
            change.turn_closed |=
                matches!(entry.kind, Kind::TurnDuration(_) | Kind::StopHookSummary);
            self.enter(line, offset, (refused, glued), &mut entry);
        }
        change.turn_opened = self.turns.len() > turns;
        change.records = first..self.records.len() as Index;
        change
    }
}

/// What a session says when asked.
impl Session {
    /// Main session or sub-agent's file.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The record with this id.
    pub fn find(&self, id: &Id) -> Option<Index> {
        let same = |&at: &Index| self.records[at as usize].uuid.as_ref() == Some(id);
        self.ids.find(self.hasher.hash_one(id), same).copied()
    }

    /// All ids of lines.
    pub fn ids(&self) -> impl Iterator<Item = &Id> {
        let chain = self.records.iter().filter(|record| !record.duplicate);
        chain.filter_map(|record| record.uuid.as_ref())
    }

    /// The id of the parent that a record names.
    pub fn parent_of(&self, record: &Record) -> Option<&Id> {
        match record.parent() {
            Link::Absent | Link::Null => None,
            Link::At(at) => self.records[at as usize].uuid.as_ref(),
            Link::Named(stray) => self.strays.get(stray as usize),
        }
    }

    /// The line that a record follows through a compaction.
    pub fn logical_parent(&self, record: Index) -> Option<&Id> {
        self.logicals.get(&record)
    }

    /// All lines that others follow through a compaction.
    pub fn logical_parents(&self) -> impl Iterator<Item = &Id> {
        self.logicals.values()
    }

    /// Where the parent stands that a record names, if it stands anywhere.
    pub fn parent_at(&self, record: &Record) -> Option<Index> {
        match record.parent() {
            // Who was there when the line came is still found under its id, or changed places
            // with who is.
            Link::At(at) if !self.records[at as usize].duplicate => Some(at),
            _ => self.find(self.parent_of(record)?),
        }
    }

    /// The message with this id.
    pub fn find_message(&self, id: &str) -> Option<Index> {
        self.message_ids.get(self.pool.find(id)?)
    }

    /// The id that the lines of a message share; `None` if the line had none and stands alone.
    pub fn message_id(&self, message: &Message) -> Option<&str> {
        message.name.get().map(|name| self.pool.get(name))
    }

    /// The call with this id; the last one where ids repeat.
    pub fn find_call(&self, id: &str) -> Option<Index> {
        self.call_ids.get(self.pool.find(id)?)
    }

    /// The id of a call, which its result names.
    pub fn call_id(&self, call: &Call) -> &str {
        call.name.get().map_or("", |name| self.pool.get(name))
    }

    /// What was last started in the background under this id.
    pub fn find_task(&self, id: &str) -> Option<&Task> {
        let at = *self.task_ids.get(id)?;
        self.tasks.get(at as usize)
    }

    /// What a call is about.
    pub fn subject(&self, call: &Call) -> Option<&str> {
        call.about.get().map(|about| self.subjects.get(about))
    }

    /// The id that a block of a call or a result has.
    pub fn id_of(&self, part: &Part) -> Option<&str> {
        part.key().map(|name| self.pool.get(name))
    }

    /// The tool of a call; the `type` of a block nobody has described.
    pub fn tool_of(&self, part: &Part) -> Option<&str> {
        part.tool().map(|tool| self.names.get(tool))
    }

    /// The `type` that a block was written with.
    pub fn type_of<'a>(&'a self, part: &Part) -> &'a str {
        match part.kind.name() {
            Some(name) => name,
            None => self.tool_of(part).unwrap_or("?"),
        }
    }

    /// What a block of a call is about, on one line.
    pub fn subject_of(&self, part: &Part) -> Option<&str> {
        part.about().map(|about| self.subjects.get(about))
    }

    /// Results whose calls are not in the file: their records and blocks.
    pub fn orphan_results(&self) -> Vec<(Index, Index)> {
        let answers = self.early_results.values().flatten();
        let mut all: Vec<_> = answers
            .map(|answer| (answer.record, answer.block))
            .collect();
        all.sort_unstable();
        all
    }

    /// An interned name.
    pub fn text(&self, name: Index) -> &str {
        self.names.get(name)
    }

    /// The label of a record, such as `system/turn_duration`.
    pub fn label_of(&self, record: &Record) -> &str {
        self.labels.get(record.label)
    }

    /// The content blocks of a record.
    pub fn blocks_of(&self, record: &Record) -> &[Part] {
        &self.blocks[record.blocks.start as usize..record.blocks.end as usize]
    }

    /// The bytes of a record, read again.
    pub fn bytes_of<'a>(
        &self,
        source: &'a dyn Source,
        record: &Record,
    ) -> std::borrow::Cow<'a, [u8]> {
        source
            .bytes(record.offset, record.len())
            .unwrap_or_default()
    }

    /// Whether it is a conversation: it has a line by a person or a model.
    pub fn is_conversation(&self) -> bool {
        self.records.iter().any(Record::is_conversation)
    }

    /// The title that its own lines give it, if any do.
    pub fn given_title(&self) -> Option<&str> {
        let mut best: Option<&Title> = None;
        for title in self
            .titles
            .iter()
            .filter(|title| !title.text.trim().is_empty())
        {
            if best.is_none_or(|best| title.source >= best.source) {
                best = Some(title);
            }
        }
        let own = || {
            let mut summaries = self.summaries.iter().rev();
            summaries.find(|(text, leaf)| {
                !text.is_empty() && leaf.as_ref().is_some_and(|leaf| self.find(leaf).is_some())
            })
        };
        best.map(|title| title.text.as_str())
            .or_else(|| own().map(|(text, _)| text.as_str()))
    }

    /// The title, if anything gave it one. `foreign` are titles that other files give to ids.
    pub fn title(&self, foreign: &std::collections::HashMap<Id, String>) -> Option<String> {
        if let Some(title) = self.given_title() {
            return Some(title.to_owned());
        }
        let given = foreign.iter().find(|(leaf, _)| self.find(leaf).is_some());
        given
            .map(|(_, text)| text.clone())
            .or_else(|| self.goal.clone())
    }

    /// Titles that this file gives to lines of other files.
    pub fn foreign_titles(&self) -> impl Iterator<Item = (&Id, &str)> {
        self.summaries.iter().filter_map(|(text, leaf)| {
            let leaf = leaf.as_ref().filter(|leaf| self.find(leaf).is_none())?;
            Some((leaf, text.as_str()))
        })
    }

    /// Tokens of all its messages, each counted once; what the client wrote counts nothing.
    pub fn usage(&self) -> Usage {
        self.messages
            .iter()
            .filter(|message| !message.synthetic)
            .map(|message| message.usage)
            .sum()
    }

    /// The pieces of a message in file order, as records and blocks; pieces that were written
    /// again with re-written history stand once.
    pub fn content(&self, message: &Message) -> Vec<(Index, Index)> {
        let mut seen = HashSet::new();
        let mut out = Vec::new();
        for &record in &message.records {
            let blocks = self.records[record as usize].blocks.clone();
            let print = |block: Index| self.blocks[block as usize].print;
            // Equal pieces on one line were said twice; on two lines they were written twice.
            out.extend(
                blocks
                    .clone()
                    .filter(|&block| !seen.contains(&print(block)))
                    .map(|block| (record, block)),
            );
            seen.extend(blocks.map(print));
        }
        out
    }

    /// Number of lines that held something.
    pub fn lines(&self) -> u32 {
        self.records.last().map_or(0, |record| record.line)
    }
}
