//! What the lines mean, taken in one line at a time.
//!
//! There is one fold: a file that is read at once, a file that grows and a file read in
//! pieces by several threads all end up in [`Session::push`] or [`Session::take`]. A session
//! keeps heads, places and totals; texts and payloads stay in the file and are opened when
//! somebody looks, so a session of a gigabyte takes some tens of megabytes. Views
//! ([`crate::view`]) are pure functions of it.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashSet, HashSetExt};

use crate::block::{Block, BlockKind};
use crate::entry::{self, Decoded, Entry, Kind, MessageHead, Parent, TitleSource};
use crate::fault::{Fault, FaultKind};
use crate::id::Id;
use crate::input::{Input, InputKinds};
use crate::log::{Line, Log, Source};
use crate::tally::Tally;
use crate::time::Time;
use crate::usage::Usage;

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

/// One object of the file: what it is and where it stands.
#[derive(Clone, Debug)]
pub struct Record {
    /// Line number, from 1.
    pub line: u32,
    /// Where the object begins in the file.
    pub offset: u64,
    /// Its length in bytes.
    pub len: usize,
    /// What it is.
    pub kind: Kind,
    /// Its label in [`Session::labels`].
    pub label: Index,
    /// The id of the line.
    pub uuid: Option<Id>,
    /// The parent it names.
    pub parent: Parent,
    /// The line a compaction follows.
    pub logical_parent: Option<Id>,
    /// When it was written.
    pub at: Option<Time>,
    /// Its thread; 0 is the file's own conversation.
    pub thread: Index,
    /// Its message, if it is part of a reply.
    pub message: Option<Index>,
    /// Its pieces of content in [`Session::blocks`].
    pub blocks: std::ops::Range<Index>,
    /// What a user line is.
    pub input: Input,
    /// Kinds of input on a user line.
    pub input_kinds: InputKinds,
    /// The permission mode it was typed in.
    pub permission_mode: Option<Index>,
    /// Marked as belonging to a sub-agent.
    pub sidechain: bool,
    /// Written by the program for the model.
    pub meta: bool,
    /// An API error in the form of a reply.
    pub api_error: bool,
    /// Hooks failed or blocked.
    pub trouble: bool,
    /// A client would not get to see this line: it is not strictly JSON.
    pub refused: bool,
    /// It shares its line with another object.
    pub glued: bool,
    /// It has no `type`; clients pass over it.
    pub untyped: bool,
    /// The model it names, in [`Session::names`].
    pub model: Option<Index>,
    /// It tells the model about a task in the background.
    pub notifies: bool,
    /// A later line has the same uuid and counts in this place.
    pub replaced_by: Option<Index>,
    /// An earlier line has the same uuid; this one only replaces it.
    pub duplicate: bool,
    group: Index,
}

impl Record {
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
    /// The id its lines share; `None` if the line had none and stands alone.
    pub id: Option<Box<str>>,
    /// The thread it belongs to.
    pub thread: Index,
    /// Its lines in file order.
    pub records: Vec<Index>,
    /// The model, in [`Session::names`].
    pub model: Option<Index>,
    /// Its tokens, once.
    pub usage: Usage,
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
    /// The id that its result names.
    pub id: Box<str>,
    /// The tool, in [`Session::names`].
    pub tool: Index,
    /// What it is about.
    pub subject: Option<Box<str>>,
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
    pub blocks: Vec<Block>,
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
    /// Where the conversation goes on from, as the last `last-prompt` line says.
    pub last_prompt: Option<(Option<Id>, bool)>,
    /// Interned names: tools, models, stop reasons, permission modes.
    pub names: Tally,
    summaries: Vec<(String, Option<Id>)>,
    titles: Vec<Title>,
    goal_is_prompt: bool,
    ids: HashMap<Id, Index>,
    message_ids: HashMap<Box<str>, Index>,
    copy_ids: HashMap<Box<str>, Index>,
    call_ids: HashMap<Box<str>, Index>,
    thread_ids: HashMap<Box<str>, Index>,
    call_prints: HashSet<(Index, u64)>,
    early_results: HashMap<Box<str>, Vec<Answer>>,
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
        for entry in decoded.entries {
            change.turn_closed |=
                matches!(entry.kind, Kind::TurnDuration(_) | Kind::StopHookSummary);
            self.enter(line, offset, (refused, glued), entry);
        }
        change.turn_opened = self.turns.len() > turns;
        change.records = first..self.records.len() as Index;
        change
    }

    fn enter(&mut self, line: u32, offset: u64, (refused, glued): (bool, bool), mut entry: Entry) {
        self.note(&mut entry);
        if entry.input == Input::Command && self.answers_a_call(&entry) {
            // 2.0.42 writes the skill that the model called like a typed command.
            entry.input = Input::Meta;
        }
        let index = self.records.len() as Index;
        let twin = entry.uuid.as_ref().and_then(|id| self.ids.get(id).copied());
        let thread = self.thread_of(&entry, index);
        let group = self.group_of(&entry, thread, twin.is_some(), index);
        let start = self.blocks.len() as Index;
        self.blocks.append(&mut entry.blocks);
        let label = self.labels.add(&entry.label);
        let permission_mode = entry
            .permission_mode
            .as_deref()
            .map(|mode| self.names.add(mode));
        let record = Record {
            line,
            offset: offset + entry.span.start as u64,
            len: entry.span.len,
            label,
            uuid: entry.uuid.clone(),
            parent: std::mem::take(&mut entry.parent),
            logical_parent: entry.logical_parent.take(),
            at: entry.at,
            thread,
            message: None,
            blocks: start..self.blocks.len() as Index,
            input: entry.input,
            input_kinds: entry.input_kinds,
            permission_mode,
            sidechain: entry.sidechain,
            meta: entry.meta,
            api_error: entry.api_error,
            trouble: entry.trouble,
            refused,
            glued,
            untyped: entry.untyped,
            model: entry
                .message
                .model
                .as_deref()
                .map(|model| self.names.add(model)),
            notifies: entry.origin.as_deref() == Some("task-notification"),
            replaced_by: None,
            duplicate: twin.is_some(),
            group,
            kind: std::mem::replace(&mut entry.kind, Kind::Unknown),
        };
        self.relocate_blocks(&record, entry.span.start);
        self.records.push(record);
        match twin {
            Some(twin) => self.replace(twin, index, &entry),
            None => self.settle(index, entry),
        }
    }

    /// Spans of blocks count from the start of the line; from here on from the record's.
    fn relocate_blocks(&mut self, record: &Record, start: usize) {
        if start == 0 {
            return;
        }
        for block in &mut self.blocks[record.blocks.start as usize..] {
            block.span.start -= start.min(block.span.start);
            block.body.start -= start.min(block.body.start);
        }
    }

    /// A later line with the same uuid counts in the place of the earlier one: they change
    /// places, and the earlier one is kept as the duplicate.
    fn replace(&mut self, twin: Index, index: Index, entry: &Entry) {
        let (line, first) = (
            self.records[index as usize].line,
            self.records[twin as usize].line,
        );
        let detail = format!("line {first} has the same uuid");
        self.faults.push(Fault {
            line,
            kind: FaultKind::DuplicateUuid,
            detail,
        });
        self.move_calls(twin, index);
        self.records.swap(twin as usize, index as usize);
        let (before, behind) = self.records.split_at_mut(index as usize);
        let (now, old) = (&mut before[twin as usize], &mut behind[0]);
        std::mem::swap(&mut now.group, &mut old.group);
        std::mem::swap(&mut now.thread, &mut old.thread);
        (now.duplicate, old.duplicate) = (false, true);
        now.message = old.message;
        if let Some(at) = now.message {
            self.messages[at as usize].add(&entry.message, None, None, entry.at);
        }
        self.pair(twin, entry);
        self.describe(twin, entry.head.clone());
    }

    /// Calls and results of a line go with its bytes.
    fn move_calls(&mut self, from: Index, to: Index) {
        for at in self.records[from as usize].blocks.clone() {
            let id = self.blocks[at as usize].id.as_ref();
            let Some(&call) = id.and_then(|id| self.call_ids.get(id)) else {
                continue;
            };
            let call = &mut self.calls[call as usize];
            if call.block == at {
                call.record = to;
            }
            if let Some(result) = call.result.as_mut().filter(|result| result.block == at) {
                result.record = to;
            }
        }
    }

    /// Places a new record among messages, calls and turns.
    fn settle(&mut self, index: Index, mut entry: Entry) {
        if let Some(id) = entry.uuid.take() {
            for group in self.waiting.remove(&id).unwrap_or_default() {
                self.link(group, self.records[index as usize].group);
            }
            self.ids.insert(id, index);
        }
        if self.records[index as usize].kind == Kind::Assistant {
            self.merge(index, &entry.message);
        }
        self.pair(index, &entry);
        if let Some(copy) = &entry.copy {
            self.copy(copy, entry.at);
        }
        self.describe(index, entry.head);
    }

    /// Facts about the session as a whole that any line may carry.
    fn note(&mut self, entry: &mut Entry) {
        if let Some(at) = entry.at {
            self.first = Some(self.first.map_or(at, |first| first.min(at)));
            self.last = Some(self.last.map_or(at, |last| last.max(at)));
        }
        if let Some(version) = entry.version.take() {
            self.version = Some(self.versions.add(&version));
        }
        for what in std::mem::take(&mut entry.unknown) {
            // Lines without a version were written by the one before.
            let version = self
                .version
                .map_or("?", |at| self.versions.get(at))
                .to_owned();
            *self
                .unknown
                .entry(what)
                .or_default()
                .entry(version)
                .or_default() += 1;
        }
        if let Some(cwd) = entry.cwd.take() {
            self.cwds.add(&cwd);
        }
        let own = self.role == Role::Agent || !entry.sidechain;
        if own {
            self.note_own(entry);
        }
    }

    fn note_own(&mut self, entry: &mut Entry) {
        let keep = |slot: &mut Option<String>, value: &mut Option<Box<str>>| {
            if let Some(value) = value.take() {
                *slot = Some(value.into());
            }
        };
        keep(&mut self.branch, &mut entry.branch);
        keep(&mut self.slug, &mut entry.slug);
        keep(&mut self.entrypoint, &mut entry.entrypoint);
        if let Some(mode) = &entry.permission_mode {
            self.permission_mode = Some(mode.to_string());
        }
        if self.first_session_id.is_none() {
            self.first_session_id = entry.session.clone();
        }
        if entry.forked_from.is_some() {
            self.forked_from = entry.forked_from.take();
        }
        match &mut entry.kind {
            Kind::Summary { text, leaf } => {
                self.summaries.push((std::mem::take(text), leaf.take()))
            }
            Kind::Title { source, text } => {
                self.titles.push(Title {
                    source: *source,
                    text: std::mem::take(text),
                });
            }
            Kind::PrLink { url } => drop(self.pr_links.add(url)),
            Kind::LastPrompt { leaf, explicit } => {
                self.last_prompt = Some((leaf.clone(), *explicit))
            }
            _ => {}
        }
    }

    fn answers_a_call(&self, entry: &Entry) -> bool {
        let parent = entry.parent.id().and_then(|id| self.ids.get(id));
        parent.is_some_and(|&at| self.records[at as usize].input == Input::Results)
    }

    fn thread_of(&mut self, entry: &Entry, index: Index) -> Index {
        if self.role == Role::Agent || !entry.sidechain {
            return 0;
        }
        if let Some(agent) = &entry.agent {
            if let Some(&thread) = self.thread_ids.get(agent) {
                return thread;
            }
            let thread = self.new_thread(index);
            self.threads[thread as usize].agent = Some(agent.clone());
            self.thread_ids.insert(agent.clone(), thread);
            return thread;
        }
        // 1.0 wrote the lines of sub-agents between those of the session, without a name.
        let parent = entry.parent.id().and_then(|id| self.ids.get(id));
        match parent.map(|&at| self.records[at as usize].thread) {
            Some(thread) if thread > 0 => thread,
            _ => self.new_thread(index),
        }
    }

    fn new_thread(&mut self, root: Index) -> Index {
        self.threads.push(Thread {
            root: Some(root),
            ..Thread::default()
        });
        self.threads.len() as Index - 1
    }

    /// Which turn the line belongs to, as a group; opens the turn if it opens one.
    fn group_of(&mut self, entry: &Entry, thread: Index, duplicate: bool, index: Index) -> Index {
        let opens = entry.input.opens_turn() && entry.kind == Kind::User && !duplicate;
        if opens {
            let turn = self.turns.len() as Index;
            self.turns.push(Turn {
                record: index,
                thread,
            });
            let group = self.new_group(Some(turn));
            let own = &mut self.threads[thread as usize];
            own.turns += 1;
            own.group = Some(group);
            return group;
        }
        let current = self.threads[thread as usize].group;
        let parent = entry.parent.id();
        let known = parent
            .and_then(|id| self.ids.get(id))
            .map(|&at| &self.records[at as usize]);
        match (known, parent, current) {
            (Some(known), _, _) if known.thread == thread => known.group,
            (None, Some(parent), _) if entry.uuid.is_some() => {
                let parent = parent.clone();
                let group = self.new_group(current.and_then(|group| self.turn_of_group(group)));
                self.waiting.entry(parent).or_default().push(group);
                group
            }
            (_, _, Some(current)) => current,
            _ => {
                let group = self.new_group(None);
                self.threads[thread as usize].group = Some(group);
                group
            }
        }
    }

    fn new_group(&mut self, turn: Option<Index>) -> Index {
        self.groups.push(Group { turn, link: None });
        self.groups.len() as Index - 1
    }

    fn link(&mut self, group: Index, to: Index) {
        // A cycle of parents must not become a cycle of groups.
        if self.root_group(to) != group {
            self.groups[group as usize].link = Some(to);
        }
    }

    fn root_group(&self, mut group: Index) -> Index {
        while let Some(next) = self.groups[group as usize].link {
            group = next;
        }
        group
    }

    fn turn_of_group(&self, group: Index) -> Option<Index> {
        self.groups[self.root_group(group) as usize].turn
    }

    /// The turn that each record belongs to, by record.
    pub fn turns_by_record(&self) -> Vec<Option<Index>> {
        let mut known: Vec<Option<Option<Index>>> = vec![None; self.groups.len()];
        let mut path = Vec::new();
        for group in 0..self.groups.len() {
            let mut at = group;
            let turn = loop {
                if let Some(turn) = known[at] {
                    break turn;
                }
                path.push(at);
                match self.groups[at].link {
                    Some(next) => at = next as usize,
                    None => break self.groups[at].turn,
                }
            };
            for at in path.drain(..) {
                known[at] = Some(turn);
            }
        }
        self.records
            .iter()
            .map(|record| known[record.group as usize].flatten())
            .collect()
    }

    /// Adds a line to its message.
    fn merge(&mut self, index: Index, head: &MessageHead) {
        let known = head
            .id
            .as_ref()
            .and_then(|id| self.message_ids.get(id).copied());
        let at = known.unwrap_or_else(|| {
            let thread = self.records[index as usize].thread;
            self.messages.push(Message::new(head.id.clone(), thread));
            let at = self.messages.len() as Index - 1;
            if let Some(id) = &head.id {
                self.message_ids.insert(id.clone(), at);
            }
            at
        });
        let model = head.model.as_deref().map(|model| self.names.add(model));
        let stop = head.stop.as_deref().map(|stop| self.names.add(stop));
        let synthetic = head.model.as_deref() == Some("<synthetic>");
        if let Some(model) = head.model.as_deref().filter(|_| !synthetic) {
            self.models.add(model);
        }
        let record = &mut self.records[index as usize];
        record.message = Some(at);
        let message = &mut self.messages[at as usize];
        message.add(head, model, stop, record.at);
        message.synthetic = synthetic;
        message.records.push(index);
    }

    /// Keeps a message that a progress line repeats from a sub-agent's file.
    fn copy(&mut self, head: &MessageHead, at: Option<Time>) {
        let known = head
            .id
            .as_ref()
            .and_then(|id| self.copy_ids.get(id).copied());
        let index = known.unwrap_or_else(|| {
            self.copies.push(Message::new(head.id.clone(), 0));
            let index = self.copies.len() as Index - 1;
            if let Some(id) = &head.id {
                self.copy_ids.insert(id.clone(), index);
            }
            index
        });
        let model = head.model.as_deref().map(|model| self.names.add(model));
        self.copies[index as usize].add(head, model, None, at);
    }

    /// Pairs calls with results, whichever comes first.
    fn pair(&mut self, index: Index, entry: &Entry) {
        for at in self.records[index as usize].blocks.clone() {
            match self.blocks[at as usize].kind {
                BlockKind::ToolUse | BlockKind::ServerToolUse => self.call(index, at),
                BlockKind::ToolResult => {
                    let launched = entry.result_status.as_deref() == Some("async_launched");
                    let agent = entry.result_agent.clone();
                    self.result(Answer {
                        record: index,
                        block: at,
                        agent,
                        launched,
                    });
                }
                _ => {}
            }
        }
    }

    fn call(&mut self, record: Index, at: Index) {
        let block = &self.blocks[at as usize];
        let (id, subject, print) = (block.id.clone(), block.subject.clone(), block.print);
        let tool = self.names.add(block.tool.as_deref().unwrap_or_default());
        let (line, message) = {
            let record = &self.records[record as usize];
            (record.line, record.message)
        };
        // History that was written again calls nothing.
        if message.is_some_and(|message| !self.call_prints.insert((message, print))) {
            return;
        }
        let call = Call {
            id: id.clone().unwrap_or_default(),
            tool,
            subject,
            record,
            block: at,
            result: None,
            agent: None,
            launched: false,
        };
        self.calls.push(call);
        let Some(id) = id else { return };
        let earlier = self
            .call_ids
            .insert(id.clone(), self.calls.len() as Index - 1);
        if earlier.is_some() {
            let detail = format!("an earlier call has the id {id} too");
            self.faults.push(Fault {
                line,
                kind: FaultKind::DuplicateCall,
                detail,
            });
        }
        for answer in self.early_results.remove(&id).unwrap_or_default() {
            self.result(answer);
        }
    }

    fn result(&mut self, answer: Answer) {
        let block = &self.blocks[answer.block as usize];
        let is_error = block.is_error;
        let id = block.id.clone();
        let Some(&call) = id.as_ref().and_then(|id| self.call_ids.get(id)) else {
            self.early_results
                .entry(id.unwrap_or_default())
                .or_default()
                .push(answer);
            return;
        };
        let record = &self.records[answer.record as usize];
        let (line, uuid) = (record.line, record.uuid.clone());
        let call = &mut self.calls[call as usize];
        // A line that is written again under its uuid answers nothing new.
        let same =
            |given: &CallResult| uuid.is_some() && self.records[given.record as usize].uuid == uuid;
        if call.result.as_ref().is_none_or(same) {
            call.result = Some(CallResult {
                record: answer.record,
                block: answer.block,
                is_error,
            });
            call.agent = answer.agent.or_else(|| call.agent.take());
            call.launched = answer.launched;
        } else {
            let detail = format!("an earlier result answers the call {} too", call.id);
            self.faults.push(Fault {
                line,
                kind: FaultKind::DuplicateCall,
                detail,
            });
        }
    }

    /// The first prompt and the last reply, for lists.
    fn describe(&mut self, index: Index, head: Option<String>) {
        let record = &self.records[index as usize];
        if record.thread != 0 {
            return;
        }
        if let Kind::PermissionMode(mode) = &record.kind {
            self.permission_mode = Some(mode.clone());
        }
        let Some(head) = head else { return };
        match record.kind {
            Kind::User => {
                // A command such as /clear says less about a session than its first prompt.
                let prompt = matches!(record.input, Input::Prompt | Input::Plan);
                if self.goal.is_none() || (prompt && !self.goal_is_prompt) {
                    self.goal = Some(head);
                    self.goal_is_prompt = prompt;
                }
            }
            Kind::Assistant => {
                let message = record.message.map(|at| &self.messages[at as usize]);
                let real = !record.api_error && message.is_some_and(|message| !message.synthetic);
                if real {
                    self.recent_output = Some(head);
                }
            }
            _ => {}
        }
    }
}

impl Message {
    fn new(id: Option<Box<str>>, thread: Index) -> Message {
        Message {
            id,
            thread,
            records: Vec::new(),
            model: None,
            usage: Usage::default(),
            has_usage: false,
            stop: None,
            synthetic: false,
            first: None,
            last: None,
        }
    }

    fn add(
        &mut self,
        head: &MessageHead,
        model: Option<Index>,
        stop: Option<Index>,
        at: Option<Time>,
    ) {
        self.model = model.or(self.model);
        self.stop = stop.or(self.stop);
        // The lines of one message repeat its usage, so take it; never add it.
        if let Some(usage) = head.usage {
            self.usage = self.usage.max(usage);
            self.has_usage = true;
        }
        self.first = self.first.or(at);
        self.last = self.last.max(at);
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
        self.ids.get(id).copied()
    }

    /// All ids of lines.
    pub fn ids(&self) -> impl Iterator<Item = &Id> {
        self.ids.keys()
    }

    /// The line that counts in the place of this one: a later line with its uuid, or itself.
    pub fn current(&self, at: Index) -> &Record {
        let record = &self.records[at as usize];
        record
            .replaced_by
            .map_or(record, |later| &self.records[later as usize])
    }

    /// The message with this id.
    pub fn find_message(&self, id: &str) -> Option<Index> {
        self.message_ids.get(id).copied()
    }

    /// The call with this id; the last one where ids repeat.
    pub fn find_call(&self, id: &str) -> Option<Index> {
        self.call_ids.get(id).copied()
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
    pub fn blocks_of(&self, record: &Record) -> &[Block] {
        &self.blocks[record.blocks.start as usize..record.blocks.end as usize]
    }

    /// The bytes of a record, read again.
    pub fn bytes_of<'a>(
        &self,
        source: &'a dyn Source,
        record: &Record,
    ) -> std::borrow::Cow<'a, [u8]> {
        source.bytes(record.offset, record.len).unwrap_or_default()
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
                !text.is_empty()
                    && leaf
                        .as_ref()
                        .is_some_and(|leaf| self.ids.contains_key(leaf))
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
        let given = foreign.iter().find(|(leaf, _)| self.ids.contains_key(leaf));
        given
            .map(|(_, text)| text.clone())
            .or_else(|| self.goal.clone())
    }

    /// Titles that this file gives to lines of other files.
    pub fn foreign_titles(&self) -> impl Iterator<Item = (&Id, &str)> {
        self.summaries.iter().filter_map(|(text, leaf)| {
            let leaf = leaf.as_ref().filter(|leaf| !self.ids.contains_key(leaf))?;
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
