//! What the lines mean, taken in one line at a time.
//!
//! There is one fold: a file that is read at once, a file that grows and a file read in
//! pieces by several threads all end up in [`Session::push`] or [`Session::take`]. A session
//! keeps heads, places and totals; texts and payloads stay in the file and are opened when
//! somebody looks, so a session of a gigabyte takes some tens of megabytes. Views
//! ([`crate::view`]) are pure functions of it.

mod block_record;
mod entry_record;
mod fold;
mod goal;
mod interner;
mod short_list;

use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;
use foldhash::{HashMap, HashSet, HashSetExt};
use hashbrown::HashTable;

use crate::bitset::{BitSet, NumberMap};
use crate::entry::failure::ApiFailure;
use crate::entry::{
    self, ClueSource, CompactBoundary, DecodedLine, LineDetail, LineKind, TitleSource,
};
use crate::fault::{Fault, FaultKind, FaultList};
use crate::id::Id;
#[cfg(doc)]
use crate::known_names;
use crate::log::{Line, Log, TranscriptSource};
use crate::text_counts::TextCounts;
use crate::time::Time;
use crate::title;
use crate::usage::{PricingTerms, Usage};

pub use block_record::BlockRecord;
pub use entry_record::EntryRecord;
pub use fold::TurnFinder;
use interner::{OptionalIndex, TextArena, TextInterner};
pub use short_list::ShortIndexList;

/// Index into [`Session::records`], [`Session::messages`] and so on.
pub type Index = u32;

/// What kind of file the lines come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TranscriptRole {
    /// A session; lines marked as sidechain belong to sub-agents.
    #[default]
    Main,
    /// A sub-agent's own file: all its lines are one conversation.
    Agent,
}

/// The start of a file says little about one that is more than so many times as long.
const MOST_ROOM: f64 = 1000.0;

/// What is kept of the lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineRetention {
    /// Everything that a view may ask for.
    #[default]
    All,
    /// What an edit asks for. What messages cost, what calls are about and what progress lines
    /// repeat of sub-agents is not kept.
    Structure,
}

/// The parent a record names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParentLink {
    /// The line has no such field.
    Absent,
    /// `null`: the line is a root.
    Null,
    /// This record, or one that stands in its place.
    At(Index),
    /// A line that was not seen before; [`Session::parent_of`] knows its id.
    Named(Index),
}

/// One API message: its lines merged.
#[derive(Clone, Debug)]
pub struct Message {
    name: OptionalIndex,
    /// The thread it belongs to.
    pub thread: Index,
    /// Its lines in file order.
    pub records: ShortIndexList,
    model: OptionalIndex,
    stop: OptionalIndex,
    spent: OptionalIndex,
    /// Written by the client itself.
    pub synthetic: bool,
    first: i64,
    last: i64,
}

impl Message {
    /// The model, in [`Session::names`].
    pub fn model(&self) -> Option<Index> {
        self.model.get()
    }

    /// Why the model stopped, in [`Session::names`].
    pub fn stop(&self) -> Option<Index> {
        self.stop.get()
    }

    /// Whether any line said how many tokens it took.
    pub fn has_usage(&self) -> bool {
        self.spent.get().is_some()
    }

    /// Time of its first line.
    pub fn first(&self) -> Option<Time> {
        entry_record::time(self.first)
    }

    /// Time of its last line.
    pub fn last(&self) -> Option<Time> {
        entry_record::time(self.last)
    }
}

/// One tool call with its result.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// The tool, in [`Session::names`].
    pub tool: Index,
    /// The line that made it.
    pub record: Index,
    /// Its block, which has its id.
    pub block: Index,
    /// Its result.
    pub result: Option<ToolCallResult>,
    agent: OptionalIndex,
    /// The result only says that something was started in the background.
    pub launched: bool,
}

/// A result that looks for its call.
#[derive(Clone, Debug)]
struct UnmatchedResult {
    record: Index,
    block: Index,
    agent: Option<Arc<str>>,
    launched: bool,
    task: Option<Arc<str>>,
    run: Option<Arc<str>>,
    over: bool,
}

/// The result of a call.
#[derive(Clone, Debug)]
pub struct ToolCallResult {
    /// The line that holds it.
    pub record: Index,
    /// Its block.
    pub block: Index,
    /// The call failed.
    pub is_error: bool,
}

/// Something that goes on in the background: an agent, or a command.
#[derive(Clone, Debug)]
pub struct TaskRecord {
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

/// Lines that belong to one turn, whichever that turns out to be.
///
/// A line whose parent has not been seen yet (2.1.45 writes replies before their prompt)
/// gets a group of its own, which is linked to its parent's when that arrives.
#[derive(Clone, Copy, Debug, Default)]
struct TurnGroup {
    turn: Option<Index>,
    link: Option<Index>,
}

/// A line that was not decoded because of its size, and where its bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongLine {
    /// Line number, from 1.
    pub line: u32,
    /// Where it begins in the file.
    pub offset: u64,
    /// Its length in bytes, without its newline.
    pub len: u64,
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
    role: TranscriptRole,
    keeps: LineRetention,
    /// Every object of the file, in file order.
    pub records: Vec<EntryRecord>,
    /// Pieces of content of all records.
    pub blocks: Vec<BlockRecord>,
    /// Replies.
    pub messages: Vec<Message>,
    /// Tool calls.
    pub calls: Vec<ToolCall>,
    /// Conversations; the first is the file's own.
    pub threads: Vec<Thread>,
    /// Turns of all threads, in file order.
    pub turns: Vec<Turn>,
    /// Copies of sub-agents' messages in progress lines.
    pub copies: Vec<Message>,
    /// The call during which each of them was written.
    pub copy_calls: Vec<Option<Box<str>>>,
    /// Kinds of line met, and how many of each.
    pub labels: TextCounts,
    /// Lines that were blank.
    pub blank_lines: u32,
    /// What was wrong with single lines.
    pub faults: FaultList,
    /// Lines with a time that is none.
    pub(crate) bad_times: BitSet,
    /// Lines that were not decoded because of their size, in file order.
    pub long_lines: Vec<LongLine>,
    /// Types and fields never seen before, with the versions that wrote them. Of more than a
    /// thousand, the rest is counted under [`known_names::OTHERS`].
    pub unknown: BTreeMap<String, BTreeMap<String, u32>>,
    /// Versions of the client that wrote lines, in the order they appear.
    pub versions: TextCounts,
    /// Models, in the order they appear.
    pub models: TextCounts,
    /// Working directories, in the order they appear.
    pub cwds: TextCounts,
    /// Pull requests.
    pub pr_links: TextCounts,
    /// The last branch of git.
    pub branch: Option<String>,
    /// The three words that name the session.
    pub slug: Option<String>,
    /// The last permission mode.
    pub permission_mode: Option<String>,
    /// How the client was started.
    pub entrypoint: Option<String>,
    /// The last tag, empty where it was taken off again; see [`Session::tag`].
    pub(crate) tag: Option<String>,
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
    pub failure: Option<(Index, ApiFailure)>,
    /// What was started in the background of its own conversation.
    pub tasks: Vec<TaskRecord>,
    /// The sub-agent whose file it is, if its lines say.
    pub agent: Option<Box<str>>,
    /// The team its lines belong to.
    pub team: Option<Box<str>>,
    /// The name of the teammate whose lines they are; a team's lead has none.
    pub member: Option<Box<str>>,
    /// What kind of process wrote it, such as `bg` for one in the background.
    pub process: Option<Box<str>>,
    /// Where the conversation goes on from, as the last `last-prompt` line says, and whether in
    /// any case: an explicit one counts so until the next line of the chain. A compaction forgets it.
    pub last_prompt: Option<(Option<Id>, bool)>,
    /// The model has ended the conversation; clients do not resume it.
    pub ended_by_model: bool,
    /// Interned names: tools, models, stop reasons, permission modes.
    pub names: TextCounts,
    summaries: Vec<(String, Option<Id>)>,
    /// What lines of some kinds say beside what they are.
    details: Vec<LineDetail>,
    /// The titles among them.
    titles: Vec<Index>,
    /// What messages cost.
    spent: Vec<(Usage, PricingTerms)>,
    /// Sub-agents that calls started.
    agents: TextArena,
    goal_weight: goal::PromptWeight,
    /// The heading of the plan it was begun with, if it stands behind the goal.
    goal_heading: Option<Box<str>>,
    /// What the client said in place of replies.
    failure_texts: Vec<Box<str>>,
    /// The calls that started sub-agents, as lines beside the results say.
    clues: HashMap<Box<str>, (ClueSource, Box<str>)>,
    /// Workflow runs, by the calls that started them.
    runs: HashMap<Box<str>, Index>,
    /// A line says which session it was forked from.
    tells_origin: bool,
    /// Where each id stands, by the record that has it.
    ids: HashTable<Index>,
    hasher: RandomState,
    /// Ids of calls and messages.
    pool: TextInterner,
    /// What calls are about.
    subjects: TextArena,
    /// Ids that lines name before they are seen, if they ever are.
    strays: Vec<Id>,
    /// The lines that compactions follow, by their records.
    logicals: HashMap<Index, Id>,
    message_ids: NumberMap,
    copy_ids: HashMap<Index, Index>,
    call_ids: NumberMap,
    thread_ids: HashMap<Box<str>, Index>,
    /// Messages with many lines, and what they called.
    crowded: BitSet,
    call_prints: HashSet<(Index, u64)>,
    task_ids: HashMap<Box<str>, Index>,
    early_results: HashMap<Option<Index>, Vec<UnmatchedResult>>,
    groups: Vec<TurnGroup>,
    waiting: HashMap<Id, Vec<Index>>,
    version: Option<Index>,
}

impl Session {
    /// A session without lines.
    pub fn new(role: TranscriptRole) -> Session {
        Session::keeping(role, LineRetention::All)
    }

    /// The same, of which only so much is kept.
    pub fn keeping(role: TranscriptRole, keeps: LineRetention) -> Session {
        Session {
            role,
            keeps,
            threads: vec![Thread::default()],
            ..Session::default()
        }
    }

    /// Makes room for so many times as many lines as there are, if more of the same kind are to
    /// come. What grows step by step is moved at each step, and leaves holes behind. Room that
    /// cannot be had is done without.
    pub fn make_room(&mut self, times: f64) {
        fn grow<T>(list: &mut Vec<T>, times: f64) {
            let _ = list.try_reserve_exact(more(list.len(), times));
        }
        fn more(len: usize, times: f64) -> usize {
            (len as f64 * (times - 1.0).clamp(0.0, MOST_ROOM)) as usize
        }
        grow(&mut self.records, times);
        grow(&mut self.blocks, times);
        grow(&mut self.messages, times);
        grow(&mut self.calls, times);
        grow(&mut self.spent, times);
        grow(&mut self.details, times);
        self.pool.make_room(|len| more(len, times));
        self.subjects.make_room(|len| more(len, times));
        self.message_ids.make_room(|len| more(len, times));
        self.call_ids.make_room(|len| more(len, times));
    }

    /// The session of a whole file.
    pub fn from_log(log: &Log, role: TranscriptRole) -> Session {
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
            line.length(),
            entry::decode_line(line),
        )
    }

    /// Takes in what stands behind the last newline, when no more is to be expected.
    ///
    /// A whole object counts as a line; anything else is a torn tail.
    pub fn push_tail(&mut self, line: &Line<'_>) -> Change {
        let decoded = entry::decode_line(line);
        if decoded.has(FaultKind::Unreadable) {
            let why = "the file ends inside this line: it was truncated".to_owned();
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
        let mut change = self.take(line.number, line.offset, line.length(), decoded);
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
    pub fn take(&mut self, line: u32, offset: u64, len: u64, decoded: DecodedLine) -> Change {
        let first = self.records.len() as Index;
        let turns = self.turns.len();
        let mut change = Change {
            faults: decoded.faults.len(),
            ..Change::default()
        };
        if decoded.entries.is_empty() && decoded.faults.is_empty() && len > 0 || len == 0 {
            self.blank_lines += 1;
        }
        let refused = decoded.has(FaultKind::ControlCharacter);
        for (kind, detail) in decoded.faults {
            if kind == FaultKind::TooLong {
                self.long_lines.push(LongLine { line, offset, len });
            }
            if kind == FaultKind::BadTime {
                self.bad_times.insert(line);
            }
            self.faults.push(Fault { line, kind, detail });
        }
        let glued = decoded.entries.len() > 1;
        for (nth, mut entry) in decoded.entries.into_iter().enumerate() {
            let shared = fold::ObjectFlags {
                refused,
                glued,
                behind: nth > 0,
            };
            change.turn_closed |= matches!(
                entry.kind,
                LineKind::TurnDuration | LineKind::StopHookSummary
            );
            self.enter(line, offset, shared, &mut entry);
        }
        change.turn_opened = self.turns.len() > turns;
        change.records = first..self.records.len() as Index;
        change
    }
}

/// What a session says when asked.
impl Session {
    /// Main session or sub-agent's file.
    pub fn role(&self) -> TranscriptRole {
        self.role
    }

    /// The record with this id.
    pub fn find(&self, id: &Id) -> Option<Index> {
        let same = |&at: &Index| self.records[at as usize].uuid.as_ref() == Some(id);
        self.ids.find(self.hasher.hash_one(id), same).copied()
    }

    /// All ids of lines.
    pub fn ids(&self) -> impl Iterator<Item = &Id> {
        let chain = self.records.iter().filter(|record| !record.is_duplicate());
        chain.filter_map(|record| record.uuid.as_ref())
    }

    /// The id of the parent that a record names.
    pub fn parent_of(&self, record: &EntryRecord) -> Option<&Id> {
        match record.parent() {
            ParentLink::Absent | ParentLink::Null => None,
            ParentLink::At(at) => self.records[at as usize].uuid.as_ref(),
            ParentLink::Named(stray) => self.strays.get(stray as usize),
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
    pub fn parent_at(&self, record: &EntryRecord) -> Option<Index> {
        match record.parent() {
            // Who was there when the line came is still found under its id, or changed places
            // with who is.
            ParentLink::At(at) if !self.records[at as usize].is_duplicate() => Some(at),
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
    pub fn call_id(&self, call: &ToolCall) -> &str {
        self.id_of(&self.blocks[call.block as usize]).unwrap_or("")
    }

    /// The sub-agent that a call started.
    pub fn agent_of(&self, call: &ToolCall) -> Option<&str> {
        call.agent.get().map(|agent| self.agents.get(agent))
    }

    /// The sub-agents that lines beside the results name with the ids of their calls, which may
    /// stand in another file, and where they do.
    pub fn agent_clues(&self) -> impl Iterator<Item = (&str, ClueSource, &str)> {
        let clues = self.clues.iter();
        clues.map(|(agent, (from, call))| (&**agent, *from, &**call))
    }

    /// Whether a call started the sub-agent with this id, as the lines of this file say.
    pub fn names_agent(&self, agent: &str) -> bool {
        let mut calls = self.calls.iter();
        self.clues.contains_key(agent) || calls.any(|call| self.agent_of(call) == Some(agent))
    }

    /// The call that started a workflow run, as its result says.
    pub fn call_of_run(&self, run: &str) -> Option<Index> {
        self.runs.get(run).copied()
    }

    /// What was last started in the background under this id.
    pub fn find_task(&self, id: &str) -> Option<&TaskRecord> {
        let at = *self.task_ids.get(id)?;
        self.tasks.get(at as usize)
    }

    /// What a call is about.
    pub fn subject(&self, call: &ToolCall) -> Option<&str> {
        self.subject_of(&self.blocks[call.block as usize])
    }

    /// The id that a block of a call or a result has.
    pub fn id_of(&self, part: &BlockRecord) -> Option<&str> {
        part.key().map(|name| self.pool.get(name))
    }

    /// The tool of a call; the `type` of a block nobody has described.
    pub fn tool_of(&self, part: &BlockRecord) -> Option<&str> {
        part.tool().map(|tool| self.names.get(tool))
    }

    /// The `type` that a block was written with.
    pub fn type_of<'a>(&'a self, part: &BlockRecord) -> &'a str {
        match part.kind.name() {
            Some(name) => name,
            None => self.tool_of(part).unwrap_or("?"),
        }
    }

    /// What a block of a call is about, on one line.
    pub fn subject_of(&self, part: &BlockRecord) -> Option<&str> {
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
    pub fn label_of(&self, record: &EntryRecord) -> &str {
        self.labels.get(record.label())
    }

    /// What a record says beside what it is, if it is of a kind that does.
    pub fn detail_of(&self, record: &EntryRecord) -> Option<&LineDetail> {
        self.details.get(record.detail()? as usize)
    }

    /// What a record says about a compaction, if it tells of one.
    pub fn boundary_of(&self, record: &EntryRecord) -> Option<&CompactBoundary> {
        match self.detail_of(record)? {
            LineDetail::Boundary(boundary) => Some(boundary),
            _ => None,
        }
    }

    /// Tokens of a message, once.
    pub fn usage_of(&self, message: &Message) -> Usage {
        self.spent_on(message).0
    }

    /// What else decides the price of a message.
    pub fn terms_of(&self, message: &Message) -> PricingTerms {
        self.spent_on(message).1
    }

    fn spent_on(&self, message: &Message) -> (Usage, PricingTerms) {
        let spent = message.spent.get().map(|at| self.spent[at as usize]);
        spent.unwrap_or_default()
    }

    /// The content blocks of a record.
    pub fn blocks_of(&self, record: &EntryRecord) -> &[BlockRecord] {
        &self.blocks[record.blocks.start as usize..record.blocks.end as usize]
    }

    /// The bytes of a record, read again.
    pub fn bytes_of<'a>(
        &self,
        source: &'a dyn TranscriptSource,
        record: &EntryRecord,
    ) -> std::borrow::Cow<'a, [u8]> {
        source
            .bytes(record.offset, record.len())
            .unwrap_or_default()
    }

    /// Its tag, if somebody gave it one and did not take it off.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref().filter(|tag| !tag.is_empty())
    }

    /// Whether it has lines of a conversation, by a person, a model, or a program in the name of
    /// either.
    pub fn is_conversation(&self) -> bool {
        self.records.iter().any(EntryRecord::is_conversation)
    }

    /// Whether a person typed something or a model answered: what is listed as a session.
    pub fn is_used(&self) -> bool {
        self.turns.iter().any(|turn| turn.thread == 0)
            || self.messages.iter().any(|message| !message.synthetic)
    }

    /// The title that its own lines give it, if any do.
    pub fn given_title(&self) -> Option<&str> {
        let own = || {
            let mut summaries = self.summaries.iter().rev();
            summaries.find(|(text, leaf)| {
                self.is_title(text) && leaf.as_ref().is_some_and(|leaf| self.find(leaf).is_some())
            })
        };
        let mut sources = TitleSource::ALL.into_iter();
        sources
            .find_map(|source| self.titled_by(source))
            .or_else(|| own().map(|(text, _)| text.as_str()))
    }

    /// The last title from this source. An empty one takes back those before it; what a program
    /// wrote because something failed never was one.
    fn titled_by(&self, wanted: TitleSource) -> Option<&str> {
        let titles = self
            .titles
            .iter()
            .rev()
            .map(|&at| &self.details[at as usize]);
        let mut titles = titles.filter_map(|detail| match detail {
            LineDetail::Title { source, text } if *source == wanted => Some(text.as_str()),
            _ => None,
        });
        let meant = |text: &&str| {
            // An empty one is none, and takes back those before it.
            wanted == TitleSource::Custom || text.trim().is_empty() || self.is_title(text)
        };
        titles.find(meant).filter(|text| !text.trim().is_empty())
    }

    /// The title that it has without other files: a given one, else what it was begun with.
    pub fn own_title(&self) -> Option<&str> {
        let goal = || self.goal.as_deref().map(title::of_prompt);
        let begun = || self.goal_heading.as_deref().or_else(goal);
        self.given_title().or_else(begun)
    }

    /// The title, if anything gave it one. `foreign` are titles that other files give to ids.
    pub fn title(&self, foreign: &std::collections::HashMap<Id, String>) -> Option<String> {
        if let Some(title) = self.given_title() {
            return Some(title.to_owned());
        }
        let given = foreign.iter().find(|(leaf, _)| self.find(leaf).is_some());
        given
            .map(|(_, text)| text.clone())
            .or_else(|| self.own_title().map(str::to_owned))
    }

    /// Titles that this file gives to lines of other files.
    pub fn foreign_titles(&self) -> impl Iterator<Item = (&Id, &str)> {
        self.summaries.iter().filter_map(|(text, leaf)| {
            let is_foreign = |leaf: &&Id| self.find(leaf).is_none() && self.is_title(text);
            let leaf = leaf.as_ref().filter(is_foreign)?;
            Some((leaf, text.as_str()))
        })
    }

    /// Tokens of all its messages, each counted once; what the client wrote counts nothing.
    pub fn usage(&self) -> Usage {
        self.messages
            .iter()
            .filter(|message| !message.synthetic)
            .map(|message| self.usage_of(message))
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
