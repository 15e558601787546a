//! One object of the file, in as few bytes as it takes: there is one for every line, and a
//! session may have half a million of them.

use super::interner::OptionalIndex;
use super::{Index, ParentLink};
use crate::entry::{Entry, LineKind};
use crate::id::Id;
use crate::time::Time;
use crate::user_input::{InputKinds, UserInput};

/// One object of the file: what it is and where it stands.
#[derive(Clone, Debug)]
pub struct EntryRecord {
    /// The id of the line.
    pub uuid: Option<Id>,
    /// Where the object begins in the file.
    pub offset: u64,
    when: i64,
    /// Its pieces of content in [`Session::blocks`](super::Session::blocks).
    pub blocks: std::ops::Range<Index>,
    /// Line number, from 1.
    pub line: u32,
    length: u32,
    up: PackedParent,
    /// Its thread; 0 is the file's own conversation.
    pub thread: Index,
    pub(super) group: Index,
    /// The message of a reply, the detail of anything else.
    pub(super) aside: OptionalIndex,
    label: u16,
    /// The model of a reply, the permission mode of anything else: names from 1, 0 is none.
    voice: u16,
    traits: RecordTraits,
    /// What it is.
    pub kind: LineKind,
    /// What a user line is.
    pub input: UserInput,
}

/// What the fold knows about an object before it becomes a record.
pub(super) struct RecordContext {
    pub(super) line: u32,
    /// Where the line begins in the file.
    pub(super) offset: u64,
    pub(super) blocks: std::ops::Range<Index>,
    pub(super) parent: ParentLink,
    pub(super) thread: Index,
    pub(super) group: Index,
    pub(super) detail: OptionalIndex,
    pub(super) label: u16,
    /// The model of a reply, the permission mode of anything else.
    pub(super) voice: Option<Index>,
    pub(super) refused: bool,
    pub(super) glued: bool,
    pub(super) behind: bool,
    pub(super) duplicate: bool,
}

/// A [`ParentLink`] in four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PackedParent(u32);

impl From<ParentLink> for PackedParent {
    fn from(link: ParentLink) -> PackedParent {
        PackedParent(match link {
            ParentLink::Absent => 0,
            ParentLink::Null => 1,
            ParentLink::At(at) => 2 + 2 * at,
            ParentLink::Named(stray) => 3 + 2 * stray,
        })
    }
}

/// What some lines are, a bit for each; the last six are kinds of input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RecordTraits(u16);

impl RecordTraits {
    const TROUBLE: u16 = 1;
    const REFUSED: u16 = 2;
    const GLUED: u16 = 4;
    const UNTYPED: u16 = 8;
    const NOTIFIES: u16 = 16;
    const SIDECHAIN: u16 = 32;
    const API_ERROR: u16 = 64;
    const DUPLICATE: u16 = 128;
    const META: u16 = 256;
    const BEHIND: u16 = 512;
    const KINDS: u32 = 10;

    fn set(&mut self, bit: u16, is: bool) {
        match is {
            true => self.0 |= bit,
            false => self.0 &= !bit,
        }
    }

    fn has(self, bit: u16) -> bool {
        self.0 & bit != 0
    }
}

/// No time at all: nobody wrote lines before the universe began.
pub(super) const NEVER: i64 = i64::MIN;

/// The time that a number stands for.
pub(super) fn time(when: i64) -> Option<Time> {
    (when != NEVER).then_some(Time(when))
}

impl EntryRecord {
    pub(super) fn new(entry: &mut Entry, place: RecordContext) -> EntryRecord {
        let mut traits = RecordTraits(u16::from(entry.input_kinds.bits()) << RecordTraits::KINDS);
        for (bit, is) in [
            (RecordTraits::TROUBLE, entry.trouble),
            (RecordTraits::REFUSED, place.refused),
            (RecordTraits::GLUED, place.glued),
            (RecordTraits::BEHIND, place.behind),
            (RecordTraits::UNTYPED, entry.untyped),
            (
                RecordTraits::NOTIFIES,
                entry.origin.as_deref() == Some("task-notification"),
            ),
            (RecordTraits::SIDECHAIN, entry.sidechain),
            (RecordTraits::API_ERROR, entry.api_error),
            (RecordTraits::DUPLICATE, place.duplicate),
            (RecordTraits::META, entry.meta),
        ] {
            traits.set(bit, is);
        }
        let voice = place.voice.and_then(|name| u16::try_from(name + 1).ok());
        EntryRecord {
            uuid: entry.uuid.take(),
            offset: place.offset + entry.span.start as u64,
            when: entry.at.map_or(NEVER, |at| at.0),
            blocks: place.blocks,
            line: place.line,
            length: u32::try_from(entry.span.len).unwrap_or(u32::MAX),
            up: place.parent.into(),
            thread: place.thread,
            group: place.group,
            aside: place.detail,
            label: place.label,
            voice: voice.unwrap_or(0),
            traits,
            kind: entry.kind,
            input: entry.input,
        }
    }

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
        time(self.when)
    }

    /// The parent it names.
    pub fn parent(&self) -> ParentLink {
        match self.up.0 {
            0 => ParentLink::Absent,
            1 => ParentLink::Null,
            at if at % 2 == 0 => ParentLink::At(at / 2 - 1),
            stray => ParentLink::Named(stray / 2 - 1),
        }
    }

    /// Its label in [`Session::labels`](super::Session::labels).
    pub fn label(&self) -> Index {
        Index::from(self.label)
    }

    /// Kinds of input on a user line.
    pub fn input_kinds(&self) -> InputKinds {
        InputKinds::of_bits((self.traits.0 >> RecordTraits::KINDS) as u8)
    }

    /// Marked as belonging to a sub-agent.
    pub fn is_sidechain(&self) -> bool {
        self.traits.has(RecordTraits::SIDECHAIN)
    }

    /// Written by the program for the model.
    pub fn is_meta(&self) -> bool {
        self.traits.has(RecordTraits::META)
    }

    /// An API error in the form of a reply.
    pub fn is_api_error(&self) -> bool {
        self.traits.has(RecordTraits::API_ERROR)
    }

    /// A later line has the same uuid and stands in its place.
    pub fn is_duplicate(&self) -> bool {
        self.traits.has(RecordTraits::DUPLICATE)
    }

    pub(super) fn set_duplicate(&mut self, is: bool) {
        self.traits.set(RecordTraits::DUPLICATE, is);
    }

    /// Hooks failed or blocked.
    pub fn is_trouble(&self) -> bool {
        self.traits.has(RecordTraits::TROUBLE)
    }

    /// A client would not get to see this line: it is not strictly JSON.
    pub fn is_refused(&self) -> bool {
        self.traits.has(RecordTraits::REFUSED)
    }

    /// It shares its line with another object.
    pub fn is_glued(&self) -> bool {
        self.traits.has(RecordTraits::GLUED)
    }

    /// It stands on its line behind another object.
    pub fn is_behind(&self) -> bool {
        self.traits.has(RecordTraits::BEHIND)
    }

    /// It has no `type`; clients pass over it.
    pub fn is_untyped(&self) -> bool {
        self.traits.has(RecordTraits::UNTYPED)
    }

    /// It tells the model about a task in the background.
    pub fn notifies(&self) -> bool {
        self.traits.has(RecordTraits::NOTIFIES)
    }

    /// Its message, if it is part of a reply.
    pub fn message(&self) -> Option<Index> {
        self.aside
            .get()
            .filter(|_| self.kind == LineKind::Assistant)
    }

    pub(super) fn detail(&self) -> Option<Index> {
        self.aside
            .get()
            .filter(|_| self.kind != LineKind::Assistant)
    }

    fn voice(&self) -> Option<Index> {
        self.voice.checked_sub(1).map(Index::from)
    }

    /// The permission mode it was typed in, in [`Session::names`](super::Session::names).
    pub fn permission_mode(&self) -> Option<Index> {
        self.voice().filter(|_| self.kind != LineKind::Assistant)
    }

    /// The model of a reply, in [`Session::names`](super::Session::names).
    pub fn model(&self) -> Option<Index> {
        self.voice().filter(|_| self.kind == LineKind::Assistant)
    }

    /// Whether it takes part in the chain of parents.
    pub fn in_chain(&self) -> bool {
        self.uuid.is_some() && !self.is_duplicate()
    }

    /// Who speaks, as the API names it; `None` for lines nobody says.
    pub fn role(&self) -> Option<&'static str> {
        match self.kind {
            LineKind::User => Some("user"),
            LineKind::Assistant => Some("assistant"),
            _ => None,
        }
    }

    /// Whether it is a prompt, a result or a piece of a reply.
    pub fn is_conversation(&self) -> bool {
        matches!(self.kind, LineKind::User | LineKind::Assistant)
    }
}
