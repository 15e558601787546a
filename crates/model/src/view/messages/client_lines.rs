//! Which lines are live for a client, in the order it reads them.
//!
//! Found by giving the real clients edited files and reading what they sent
//! (`docs/conformance.md`); oddities are theirs.

use std::cell::OnceCell;

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

use crate::bitset::{BitSet, NumberLists};
use crate::block::BlockKind;
use crate::entry::LineKind;
use crate::id::Id;
use crate::session::{EntryRecord, Index, Session, TranscriptRole};
use crate::view::client_profile::{
    ClientRules, CycleRule, EmptyStartRule, GluedLineRule, LastPromptRule, LeafRule, NullLineRule,
    PreservedRule, SiblingsRule, SilentEndRule,
};
use crate::view::messages::LiveLines;
use crate::view::messages::ancestor_walk::AncestorWalk;
use crate::view::messages::parallel_calls;

pub(super) fn chain(session: &Session, rules: &ClientRules, leaf: Option<Index>) -> LiveLines {
    if rules.stays_ended && session.ended_by_model {
        return LiveLines::None;
    }
    let null = session.faults.null_line();
    if null.is_some() && rules.null_line == NullLineRule::Fails {
        return LiveLines::None;
    }
    let end = null.filter(|_| rules.null_line == NullLineRule::EndsFile);
    let lines = ClientLines::of(session, rules, end.unwrap_or(u32::MAX));
    match leaf.map_or_else(|| lines.start(), ResumeStart::From) {
        ResumeStart::From(leaf) => lines.from(leaf),
        ResumeStart::Empty => LiveLines::Lines(Vec::new()),
        ResumeStart::Nothing => match rules.starts_empty {
            EmptyStartRule::Always => LiveLines::Lines(Vec::new()),
            EmptyStartRule::WithTitle if session.given_title().is_some() => {
                LiveLines::Lines(Vec::new())
            }
            EmptyStartRule::WithTitle | EmptyStartRule::Never => LiveLines::None,
        },
    }
}

/// Where a conversation goes on from.
enum ResumeStart {
    /// From this line.
    From(Index),
    /// Nothing is left of it.
    Empty,
    /// There is no line to go on from.
    Nothing,
}

/// The lines as a client holds them: by uuid, the last one with a uuid in the first's place.
pub(super) struct ClientLines<'a> {
    pub(super) session: &'a Session,
    pub(super) rules: &'a ClientRules,
    pub(super) order: Vec<Index>,
    by_time: OnceCell<Vec<Index>>,
    taken: BitSet,
    /// Lines that are passed through, and where they lead.
    bridged: HashMap<&'a Id, Option<&'a Id>>,
    /// Lines without an id are one line: the last of them, in the place of the first.
    nameless: Option<(Index, Index)>,
}

impl<'a> ClientLines<'a> {
    fn of(session: &'a Session, rules: &'a ClientRules, end: u32) -> ClientLines<'a> {
        let mut lines = ClientLines {
            session,
            rules,
            order: Vec::new(),
            by_time: OnceCell::new(),
            taken: BitSet::default(),
            bridged: HashMap::new(),
            nameless: None,
        };
        let mut bridges: HashMap<&Id, Option<&Id>> = HashMap::new();
        for (at, record) in session.records.iter().enumerate() {
            if record.line >= end {
                continue;
            }
            lines.add(at as Index, record, &mut bridges);
        }
        if rules.heals {
            lines.bridged = ends_of(&bridges);
        }
        lines
    }

    /// The lines that have a time, by it, then by place: for healing, which few sessions need.
    pub(super) fn by_time(&self) -> &[Index] {
        self.by_time.get_or_init(|| {
            let timed = |at: &&Index| self.record(**at).at().is_some();
            let mut by_time = Vec::with_capacity(self.order.len());
            by_time.extend(self.order.iter().filter(timed));
            by_time.sort_unstable_by_key(|&at| (self.record(at).at(), at));
            by_time
        })
    }

    fn add(
        &mut self,
        at: Index,
        record: &'a EntryRecord,
        bridges: &mut HashMap<&'a Id, Option<&'a Id>>,
    ) {
        let linked = match record.kind {
            LineKind::Progress => self.rules.progress,
            _ => record.kind.is_link(),
        };
        let passed_over = match self.rules.glued {
            GluedLineRule::Skipped => record.is_glued(),
            GluedLineRule::First => record.is_behind(),
            GluedLineRule::All => false,
        };
        if record.is_refused() || record.is_duplicate() || record.is_untyped() || passed_over {
            return;
        }
        match (&record.uuid, &mut self.nameless) {
            // A line of any other type is not there at all: who follows it has a lost parent.
            (Some(id), _) if record.kind == LineKind::Progress && !linked => {
                bridges.insert(id, self.session.parent_of(record));
                return;
            }
            _ if !linked => return,
            (Some(_), _) => {}
            (None, _) if record.kind == LineKind::Progress => return,
            (None, Some((_, last))) => {
                *last = at;
                return;
            }
            (None, nameless) => *nameless = Some((at, at)),
        }
        self.taken.insert(at);
        self.order.push(at);
    }

    /// The line that counts in this place.
    fn content(&self, at: Index) -> Index {
        match self.nameless {
            Some((first, last)) if first == at => last,
            _ => at,
        }
    }

    pub(super) fn record(&self, at: Index) -> &'a EntryRecord {
        &self.session.records[self.content(at) as usize]
    }

    /// The parent the line names, through lines that are passed over.
    pub(super) fn named(&self, at: Index) -> Option<&'a Id> {
        let id = self.session.parent_of(self.record(at))?;
        self.bridged.get(id).copied().unwrap_or(Some(id))
    }

    /// The line above in the chain, if the one that the line names is in it.
    pub(super) fn parent(&self, at: Index) -> Option<Index> {
        match self.bridged.is_empty() {
            true => self.followed(self.record(at)),
            false => self.find(self.named(at)?),
        }
    }

    /// The line of the chain that a record names as its parent itself.
    pub(super) fn followed(&self, record: &EntryRecord) -> Option<Index> {
        let above = self.session.parent_at(record);
        above.filter(|&above| self.taken.contains(above))
    }

    pub(super) fn find(&self, id: &Id) -> Option<Index> {
        self.session.find(id).filter(|&at| self.taken.contains(at))
    }

    /// A user line with a result in it.
    pub(super) fn is_result(&self, at: Index) -> bool {
        let record = self.record(at);
        let mut blocks = self.session.blocks_of(record).iter();
        record.kind == LineKind::User && blocks.any(|block| block.kind == BlockKind::ToolResult)
    }

    /// What is read when the conversation goes on from `leaf`.
    fn from(&self, leaf: Index) -> LiveLines {
        let mut walk = AncestorWalk::new(self);
        let mut chain = Vec::new();
        let mut next = Some(leaf);
        while let Some(at) = next {
            walk.enter(at);
            chain.push(at);
            if self.session.records[self.content(at) as usize]
                .kind
                .is_boundary()
            {
                break;
            }
            if self.rules.circle == CycleRule::Hangs && walk.closes_circle(at) {
                return LiveLines::Hangs;
            }
            next = walk.parent(at);
        }
        chain.reverse();
        if self.rules.siblings != SiblingsRule::Lost {
            match parallel_calls::restored(self, chain) {
                Some(whole) => chain = whole,
                None => return LiveLines::None,
            }
        }
        if self.rules.preserved != PreservedRule::Lost {
            self.preserve(&mut chain);
        }
        LiveLines::Lines(chain.into_iter().map(|at| self.content(at)).collect())
    }

    fn start(&self) -> ResumeStart {
        let candidates = self.order.iter().copied().filter(|&at| self.is_own(at));
        let leaf = match self.rules.leaf {
            LeafRule::Newest => self.newest(candidates),
            LeafRule::NewestTimed => {
                self.newest(candidates.filter(|&at| self.record(at).at().is_some()))
            }
            LeafRule::LastChildless | LeafRule::LastLine | LeafRule::LastBranch => {
                return self.last_start();
            }
        };
        leaf.map_or(ResumeStart::Nothing, ResumeStart::From)
    }

    /// Goes on from the last line, or from where `last-prompt` says.
    fn last_start(&self) -> ResumeStart {
        let Some(last) = self.last_that_speaks() else {
            return ResumeStart::Nothing;
        };
        let leaf = match self.said_start(last) {
            Some(ResumeStart::From(leaf)) => leaf,
            Some(other) => return other,
            None => self.tip(last),
        };
        match self.record(leaf).at() {
            Some(_) => ResumeStart::From(leaf),
            None => ResumeStart::Nothing,
        }
    }

    /// The last line, without those at the end that lead to no prompt or reply.
    fn last_that_speaks(&self) -> Option<Index> {
        let mut order = self.order.clone();
        // A line that was written again stands where it was, but is the last that was written.
        order.sort_by_key(|&at| self.record(at).line);
        let parents: BitSet = match self.rules.leaf {
            LeafRule::LastChildless => order.iter().filter_map(|&at| self.parent(at)).collect(),
            _ => BitSet::default(),
        };
        let candidates = order.into_iter().rev().filter(|&at| !parents.contains(at));
        let mut candidates = candidates.filter(|&at| self.is_own(at)).peekable();
        let last = *candidates.peek()?;
        if self.rules.silent_end == SilentEndRule::Leaf {
            return Some(last);
        }
        let mut silent = BitSet::default();
        for from in candidates {
            let mut walk = AncestorWalk::new(self);
            let mut next = Some(from);
            while let Some(at) = next.filter(|&at| silent.insert(at)) {
                let record = self.record(at);
                if record.is_conversation() {
                    return Some(from);
                }
                walk.enter(at);
                next = match record.kind.is_boundary() {
                    true => None,
                    false => walk.parent(at),
                };
            }
        }
        (self.rules.silent_end == SilentEndRule::SkippedIfOthers).then_some(last)
    }

    fn is_own(&self, at: Index) -> bool {
        self.session.role() == TranscriptRole::Agent || !self.record(at).is_sidechain()
    }

    fn newest(&self, candidates: impl Iterator<Item = Index>) -> Option<Index> {
        candidates.reduce(|best, at| {
            let times = self.record(at).at().zip(self.record(best).at());
            if times.is_some_and(|(at, best)| at > best) {
                at
            } else {
                best
            }
        })
    }

    /// In a file in disorder the last line may have descendants; the newest of them counts.
    fn tip(&self, last: Index) -> Index {
        if self.rules.leaf != LeafRule::LastBranch {
            return last;
        }
        let lines = self.order.iter().copied();
        let children: NumberLists = lines
            .filter_map(|at| Some((self.parent(at)?, at)))
            .collect();
        let mut below = BitSet::default();
        let mut stack: Vec<Index> = children.get(last).collect();
        while let Some(at) = stack.pop() {
            if at == last {
                return last; // A circle.
            }
            if below.insert(at) {
                stack.extend(children.get(at));
            }
        }
        let own = below.iter().filter(|&at| self.is_own(at));
        own.chain([last])
            .max_by_key(|&at| (self.record(at).at(), at))
            .unwrap_or(last)
    }

    /// Where `last-prompt` says to go on, where it counts.
    fn said_start(&self, last: Index) -> Option<ResumeStart> {
        let says = self.rules.last_prompt;
        let said = self.session.last_prompt.as_ref();
        let (leaf, explicit) = said.filter(|_| says != LastPromptRule::Ignored)?;
        let explicit = *explicit && says >= LastPromptRule::Explicit;
        let Some(leaf) = leaf else {
            return (explicit && says == LastPromptRule::Nowhere).then_some(ResumeStart::Empty);
        };
        let named = self.find(leaf)?;
        if !explicit && self.rules.siblings_are_one && self.brings_along(last, named) {
            return None;
        }
        let mut walk = AncestorWalk::new(self);
        let mut next = Some(last).filter(|_| !explicit);
        while let Some(at) = next.filter(|&at| walk.enter(at)) {
            if at == named {
                return None;
            }
            next = walk.parent(at);
        }
        Some(ResumeStart::From(named))
    }

    /// Whether a line comes back beside what leads to the last one.
    fn brings_along(&self, last: Index, line: Index) -> bool {
        let mut family = parallel_calls::family(self, line);
        family.retain(|&at| at != line);
        if family.is_empty() {
            return false;
        }
        let family: BitSet = family.into_iter().collect();
        let mut walk = AncestorWalk::new(self);
        let mut next = Some(last);
        while let Some(at) = next.filter(|&at| walk.enter(at)) {
            if family.contains(at) {
                return true;
            }
            next = walk.parent(at);
        }
        false
    }

    /// Puts lines back that the compaction kept, behind the line it names.
    fn preserve(&self, chain: &mut Vec<Index>) {
        let first = chain.first().map(|&at| self.record(at));
        let Some(boundary) = first.and_then(|first| self.session.boundary_of(first)) else {
            return;
        };
        let listed = boundary.preserved.iter();
        let lists = self.rules.preserved == PreservedRule::ListOrSegment && listed.len() > 0;
        let mut kept: Vec<Index> = match &boundary.segment {
            _ if lists => listed.filter_map(|id| self.find(id)).collect(),
            Some((head, tail)) => self.segment(self.find(head), self.find(tail)),
            None => Vec::new(),
        };
        if lists && kept.len() < boundary.preserved.len() {
            return;
        }
        let anchor = boundary.anchor.as_ref().and_then(|id| self.find(id));
        if let Some(place) = chain.iter().position(|&at| Some(at) == anchor) {
            let present: BitSet = chain.iter().copied().collect();
            kept.retain(|&at| !present.contains(at));
            chain.splice(place + 1..place + 1, kept);
        }
    }

    /// The lines from `head` to `tail`; none if the one does not lead to the other.
    fn segment(&self, head: Option<Index>, tail: Option<Index>) -> Vec<Index> {
        let mut lines = Vec::new();
        let mut walk = AncestorWalk::new(self);
        let mut next = tail;
        while let Some(at) = next {
            walk.enter(at);
            lines.push(at);
            if Some(at) == head {
                lines.reverse();
                return lines;
            }
            next = walk.parent(at);
        }
        Vec::new()
    }
}

/// For each line that is passed through, the first line behind it that is not.
///
/// A circle of such lines leads to one of its own, which is nowhere in the chain.
fn ends_of<'a>(bridges: &HashMap<&'a Id, Option<&'a Id>>) -> HashMap<&'a Id, Option<&'a Id>> {
    let mut ends: HashMap<&Id, Option<&Id>> = HashMap::with_capacity(bridges.len());
    for &from in bridges.keys() {
        let mut path = Vec::new();
        let mut passed = HashSet::new();
        let mut at = Some(from);
        let end = loop {
            let Some(id) = at else { break None };
            if let Some(&known) = ends.get(id) {
                break known;
            }
            let Some(parent) = bridges.get(id).filter(|_| passed.insert(id)) else {
                break Some(id);
            };
            path.push(id);
            at = *parent;
        };
        ends.extend(path.into_iter().map(|id| (id, end)));
    }
    ends
}
