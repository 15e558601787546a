//! Where a session can be cut in two, so that its end can be understood without its start.
//!
//! Whoever has dealt with the first turns of a long session and comes back for what was added
//! need not read them again: the end, read alone, tells of its turns what the whole file does,
//! and nothing in it changes a turn before. Both are so only if no line of the end names one of
//! the start, but for the one prompt that follows it. This is asked twice: where to cut
//! ([`last`]), and later whether what was added still stands alone ([`SplitPoint::joins`]).

use crate::bitset::BitSet;
use crate::entry::LineKind;
use crate::graph;
use crate::id::Id;
use crate::session::{EntryRecord, Index, ParentLink, Session};
use crate::view::{prompt_queue, turns};

/// A place between two turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitPoint {
    /// How many turns stand before it.
    pub turns: usize,
    /// Where the first line behind it begins in the file.
    pub offset: u64,
    /// How many lines stand before it.
    pub lines: u32,
    /// The line that the first prompt behind it follows.
    pub follows: Option<Id>,
    /// The title that the lines before it gave the session.
    pub title: Option<String>,
    /// Whether a line before it holds a prompt that was typed while the model worked: the same
    /// words would not be told twice.
    pub attached: bool,
    /// Lines that those before it name and that are nowhere: should one come, it would change
    /// what was told.
    pub awaited: Vec<Id>,
}

/// Where more lines than this are missing, nothing is cut.
const MISSING: usize = 100;

/// So many turns at the end are tried.
const TRIED: usize = 4;

/// The last place with a whole turn behind it where a session can be cut, of those with at
/// most so many turns before it.
pub fn last(session: &Session, at_most: usize) -> Option<SplitPoint> {
    // 1.0 wrote the lines of sub-agents between those of the session.
    if session.threads.len() > 1 {
        return None;
    }
    let most = at_most.min(session.turns.len().saturating_sub(1));
    let places = turns::places(session);
    let live = graph::live(session, &graph::links(session));
    let tried = (1..=most).rev().take(TRIED);
    let mut seams = tried.filter_map(|turns| seam(session, &places, &live, turns));
    seams.next()
}

fn seam(
    session: &Session,
    places: &[Option<Index>],
    live: &BitSet,
    turns: usize,
) -> Option<SplitPoint> {
    let is_behind = |place: &Option<Index>| place.is_some_and(|place| place as usize >= turns);
    let first = places.iter().position(is_behind)?;
    let line = session.records[first].line;
    let ends = |before: &EntryRecord| before.line < line;
    let is_clean = first > 0
        && ends(&session.records[first - 1])
        && places[first..].iter().all(is_behind)
        && !prompt_queue::is_waiting(session, first as Index);
    // Nothing stands on both sides.
    let side = |record: Index| record as usize >= first;
    let is_parted = session.messages.iter().any(|message| {
        let mut sides = message.records.iter().map(|&record| side(record));
        let one = sides.next();
        sides.any(|other| Some(other) != one)
    });
    let opener = session.turns.get(turns)?.record as usize;
    if !is_clean || is_parted || !live.contains(opener as Index) {
        return None;
    }
    let seam = SplitPoint {
        turns,
        offset: session.records[first].offset,
        lines: line - 1,
        follows: session.parent_of(&session.records[opener]).cloned(),
        title: session.given_title().map(str::to_owned),
        attached: session.records[..first].iter().any(is_attached),
        awaited: awaited(session, first),
    };
    let mut results = session.orphan_results().into_iter();
    if seam.awaited.len() > MISSING || results.any(|(record, _)| !side(record)) {
        return None;
    }
    let known = |id: &Id| session.find(id).filter(|&at| side(at));
    let stands = LinesAfterSplit {
        session,
        first,
        opener,
        seam: &seam,
    };
    stands.alone(known).then_some(seam)
}

/// What the first lines name and is nowhere.
fn awaited(session: &Session, first: usize) -> Vec<Id> {
    let records = (0..).zip(&session.records[..first]);
    let named = records.flat_map(|(at, record)| {
        [session.parent_of(record), session.logical_parent(at)]
            .into_iter()
            .flatten()
    });
    let leaf = session
        .last_prompt
        .iter()
        .filter_map(|(leaf, _)| leaf.as_ref());
    let lost = named.chain(leaf).filter(|id| session.find(id).is_none());
    let mut lost: Vec<Id> = lost.cloned().collect();
    lost.dedup();
    lost
}

fn is_attached(record: &EntryRecord) -> bool {
    record.kind == LineKind::QueuedCommand
}

impl SplitPoint {
    /// Whether what was read behind the place, alone, tells what the whole session would: about
    /// its own turns, and that those before are as they were.
    pub fn joins(&self, rest: &Session) -> bool {
        let Some(opener) = rest.turns.first() else {
            return false;
        };
        let is_whole = !self.awaited.iter().any(|id| rest.find(id).is_some())
            && rest.threads.len() == 1
            && turns::places(rest).iter().all(Option::is_some)
            && rest.orphan_results().is_empty()
            && !rest.records.iter().any(|record| record.is_duplicate());
        let stands = LinesAfterSplit {
            session: rest,
            first: 0,
            opener: opener.record as usize,
            seam: self,
        };
        is_whole && stands.alone(|id| rest.find(id))
    }
}

/// The lines of a session from one on.
struct LinesAfterSplit<'a> {
    session: &'a Session,
    first: usize,
    /// The prompt that follows what stands before.
    opener: usize,
    seam: &'a SplitPoint,
}

impl LinesAfterSplit<'_> {
    /// Whether they name nothing that stands before, but for the opener. `known` finds the
    /// lines among them.
    fn alone(&self, known: impl Fn(&Id) -> Option<Index>) -> bool {
        let records = self.session.records.iter().enumerate().skip(self.first);
        let mut records = records.map(|(at, record)| (at == self.opener, record));
        records.all(|(opens, record)| self.is_own(opens, record, &known))
            && self.calls_are_own()
            && self.goes_on_here(&known)
            && self.repeats_nothing()
    }

    /// Whether a line hangs on one of its own side.
    fn is_own(
        &self,
        opens: bool,
        record: &EntryRecord,
        known: &impl Fn(&Id) -> Option<Index>,
    ) -> bool {
        let session = self.session;
        match &record.kind {
            // What a compaction follows, and what it leaves of turns before it.
            LineKind::CompactBoundary | LineKind::Unknown => return false,
            // Another title is told with every turn.
            LineKind::Title | LineKind::Summary => {
                return session.given_title() == self.seam.title.as_deref();
            }
            _ => {}
        }
        if opens {
            return session.parent_of(record) == self.seam.follows.as_ref()
                && record.parent() != ParentLink::Absent;
        }
        match record.parent() {
            ParentLink::Absent => !record.is_conversation(),
            ParentLink::Null => false,
            ParentLink::At(_) | ParentLink::Named(_) => {
                session.parent_of(record).and_then(known).is_some()
            }
        }
    }

    /// Whether every call has its result on its own side, and every copy of a message of a
    /// sub-agent the call that started it.
    fn calls_are_own(&self) -> bool {
        let session = self.session;
        let side = |record: Index| record as usize >= self.first;
        let mut calls = session.calls.iter();
        let is_whole = calls.all(|call| {
            let result = call.result.as_ref();
            result.is_none_or(|result| side(result.record) == side(call.record))
        });
        let mut copies = session.copy_calls.iter();
        is_whole
            && (self.first > 0
                || copies.all(|call| {
                    let call = call.as_deref();
                    call.is_some_and(|call| session.find_call(call).is_some())
                }))
    }

    /// Whether the session goes on from a line of this side.
    fn goes_on_here(&self, known: &impl Fn(&Id) -> Option<Index>) -> bool {
        match &self.session.last_prompt {
            Some((Some(leaf), explicit)) => {
                let follows = || !explicit && self.seam.follows.as_ref() == Some(leaf);
                // When this was cut, everything was there to be looked at.
                self.first > 0 || known(leaf).is_some() || follows()
            }
            _ => true,
        }
    }

    /// Whether no prompt that was typed meanwhile may be one that was told before.
    fn repeats_nothing(&self) -> bool {
        let typed = prompt_queue::typed_meanwhile(self.session);
        let mut records = typed
            .iter()
            .filter(|(at, _)| *at as usize >= self.first)
            .map(|(at, _)| &self.session.records[*at as usize]);
        !self.seam.attached || records.all(is_attached)
    }
}
