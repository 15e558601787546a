//! The shape of a conversation: which items each turn has, before their texts are read.
//!
//! Made once for a session, it tells how long the list of all items is and which turn holds
//! which of them; any range can then be had by reading only the turns it touches. The shape is
//! that of the items themselves: the same walk makes both, and a test holds them together.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::nested_agents::thread_key;
use super::thread_walk::{ConversationFacts, ThreadPart, ThreadWalk};
use super::{AgentTranscripts, ItemBody, TranscriptItem};
use crate::log::TranscriptSource;
use crate::session::{Index, Session};
use crate::view::turn_selection::TurnSelection;
use crate::view::turns::{ThreadEnds, TurnRow};

/// What an item is, roughly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemClass {
    /// The head of a turn.
    Turn,
    /// What a person typed.
    Prompt,
    /// What the model said.
    Reply,
    /// What the model thought.
    Thinking,
    /// A tool call.
    Call,
    /// The context was compacted, or what that left.
    Compaction,
    /// Something that happened to the conversation: an interrupt, an error, a command.
    Mark,
    /// Lines beside the conversation.
    Note,
}

impl ItemClass {
    /// The class of an item.
    pub fn of(body: &ItemBody) -> ItemClass {
        match body {
            ItemBody::Turn(_) => ItemClass::Turn,
            ItemBody::Prompt(_) => ItemClass::Prompt,
            ItemBody::Reply { .. } => ItemClass::Reply,
            ItemBody::Thinking { .. } => ItemClass::Thinking,
            ItemBody::Call(_) => ItemClass::Call,
            ItemBody::Compaction { .. } | ItemBody::Summary { .. } => ItemClass::Compaction,
            ItemBody::Queued { .. }
            | ItemBody::Interrupt { .. }
            | ItemBody::ApiError { .. }
            | ItemBody::Command { .. }
            | ItemBody::Notice { .. } => ItemClass::Mark,
            ItemBody::Orphan { .. }
            | ItemBody::Hook(_)
            | ItemBody::Notes(_)
            | ItemBody::Unknown { .. }
            | ItemBody::Fault { .. } => ItemClass::Note,
        }
    }
}

/// An item without its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutlineEntry {
    /// The line it stands on.
    pub line: u32,
    /// What it is.
    pub class: ItemClass,
    /// The place in its turn of the line that makes it.
    place: u32,
    /// Whether reading can begin at that line: it adds nothing to the items before.
    clean: bool,
}

/// What is known of a session once, for all its threads.
#[derive(Clone)]
pub struct OutlineBase(Arc<ConversationFacts>);

impl OutlineBase {
    /// Goes through the lines of a session, without their texts.
    pub fn of(session: &Session) -> OutlineBase {
        OutlineBase(Arc::new(ConversationFacts::of(session)))
    }

    /// The turns of the session's own conversation, without their texts.
    pub fn turns(&self) -> &[TurnRow] {
        &self.0.rows
    }

    /// How far each thread went.
    pub fn course(&self) -> &ThreadEnds {
        &self.0.course
    }
}

/// The shape of a thread's conversation.
pub struct TranscriptOutline {
    base: OutlineBase,
    thread: Index,
    parts: Vec<ThreadPart>,
    /// Where each part begins in `entries`, and where the last one ends.
    starts: Vec<usize>,
    entries: Vec<OutlineEntry>,
    /// Lines of hooks that say what was said before.
    repeats: HashSet<u32>,
}

impl TranscriptOutline {
    /// The shape of a thread; 0 is the session's own conversation.
    pub fn of(
        session: &Session,
        source: &dyn TranscriptSource,
        base: &OutlineBase,
        thread: Index,
    ) -> TranscriptOutline {
        let agents = HashMap::new();
        let mut walk = ThreadWalk::again(session, source, &agents, thread, &base.0);
        walk.lean = true;
        let parts = walk.picked(&TurnSelection::default());
        let mut starts = vec![0];
        let mut entries = Vec::new();
        let mut repeats = HashSet::new();
        for part in &parts {
            let mut made = 0;
            walk.slice(*part, 0..usize::MAX, |place, before, items| {
                for (at, item) in items.all.iter().enumerate().skip(made) {
                    entries.push(OutlineEntry {
                        line: item.line,
                        class: ItemClass::of(&item.body),
                        place: place as u32,
                        clean: at == before && !items.joined,
                    });
                }
                made = items.all.len();
                repeats.extend(items.repeats.last());
            });
            starts.push(entries.len());
        }
        TranscriptOutline {
            base: base.clone(),
            thread,
            parts,
            starts,
            entries,
            repeats,
        }
    }

    /// What is known of the session.
    pub fn base(&self) -> &OutlineBase {
        &self.base
    }

    /// The thread it is of; 0 is the session's own conversation.
    pub fn thread(&self) -> Index {
        self.thread
    }

    /// All items, without their texts.
    pub fn entries(&self) -> &[OutlineEntry] {
        &self.entries
    }

    /// How many parts there are: turns, and what stands before the first one.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The number of the turn that a part is; 0 for what stands before the first one.
    pub fn turn(&self, part: usize) -> usize {
        match self.parts[part] {
            ThreadPart::Before => 0,
            ThreadPart::Turn(at) => at + 1,
        }
    }

    /// The part that is this turn.
    pub fn part(&self, turn: usize) -> Option<usize> {
        (0..self.parts.len()).find(|&part| self.turn(part) == turn)
    }

    /// Where the items of a part stand among all.
    pub fn range(&self, part: usize) -> Range<usize> {
        self.starts[part]..self.starts[part + 1]
    }

    /// The part that holds an item.
    pub fn part_at(&self, entry: usize) -> usize {
        self.starts
            .partition_point(|&start| start <= entry)
            .saturating_sub(1)
    }

    /// Items with their texts, given by their places among all; they must be of one part.
    /// Sub-agents are named, not opened. Of a long turn only the lines around are read.
    pub fn items(
        &self,
        session: &Session,
        source: &dyn TranscriptSource,
        agents: &AgentTranscripts<'_>,
        wanted: Range<usize>,
    ) -> Vec<TranscriptItem> {
        let part = self.part_at(wanted.start);
        let range = self.range(part);
        let wanted = wanted.start..wanted.end.min(range.end);
        let clean = |at: &usize| self.entries[*at].clean;
        let begin = (range.start..=wanted.start).rev().find(clean);
        let from = begin.map_or(0, |begin| self.entries[begin].place as usize);
        // The head of a turn belongs to its first line.
        let begin = begin.filter(|_| from > 0).unwrap_or(range.start);
        // What follows the last one may still be part of it, until the next one begins.
        let to = match wanted.end < range.end {
            true => self.entries[wanted.end].place as usize + 1,
            false => usize::MAX,
        };
        let mut walk = ThreadWalk::again(session, source, agents, self.thread, &self.base.0);
        walk.repeats = Some(&self.repeats);
        let items = walk.slice(self.parts[part], from..to, |_, _, _| ());
        let items = items.into_iter().skip(wanted.start - begin);
        items.take(wanted.len()).collect()
    }
}

/// The thread of a session's own file that a sub-agent's [`super::TranscriptAgent::key`] or id names.
pub fn thread(session: &Session, key: &str) -> Option<Index> {
    let threads = (1..session.threads.len() as Index).zip(session.threads.iter().skip(1));
    let named = |thread: &crate::session::Thread| thread.agent.as_deref() == Some(key);
    let mut named = threads.filter(|(at, thread)| named(thread) || thread_key(session, *at) == key);
    named.next().map(|(at, _)| at)
}
