//! The way from a line to its ancestors, as a client goes it.

use crate::bitset::BitSet;
use crate::session::Index;
use crate::view::client_profile::CycleRule;
use crate::view::messages::client_lines::ClientLines;

/// A line that follows a lost parent is joined to the newest line before it, if that is not
/// older than this.
const HEAL_MS: u64 = 5_000;

/// A walk up the parents: no line is met twice.
pub(super) struct AncestorWalk<'l, 'a> {
    lines: &'l ClientLines<'a>,
    seen: BitSet,
    /// Which lines are left, by time; made when the first parent is lost.
    free: Option<FreePositions>,
}

impl<'l, 'a> AncestorWalk<'l, 'a> {
    pub(super) fn new(lines: &'l ClientLines<'a>) -> AncestorWalk<'l, 'a> {
        AncestorWalk {
            lines,
            seen: BitSet::default(),
            free: None,
        }
    }

    /// Comes to a line; false if it was there before.
    pub(super) fn enter(&mut self, at: Index) -> bool {
        if let (Some(free), Some(place)) = (&mut self.free, place(self.lines, at)) {
            free.take(place);
        }
        self.seen.insert(at)
    }

    /// Whether the parent was met already.
    pub(super) fn closes_circle(&self, at: Index) -> bool {
        let parent = self.lines.parent(at);
        parent.is_some_and(|parent| self.seen.contains(parent))
    }

    /// Where to go on from a line that was entered.
    pub(super) fn parent(&mut self, at: Index) -> Option<Index> {
        let rules = self.lines.rules;
        self.lines.named(at)?;
        match self.lines.parent(at) {
            Some(parent) if !self.seen.contains(parent) => Some(parent),
            Some(_) if rules.circle != CycleRule::Heals => None,
            _ if rules.heals => self.heal(at),
            _ => None,
        }
    }

    /// The newest line that is not newer, the first in the file of equal ones.
    fn heal(&mut self, at: Index) -> Option<Index> {
        let by_time = self.lines.by_time();
        let own = self.lines.record(at).at()?;
        let free = self.free.get_or_insert_with(|| {
            let mut free = FreePositions::new(by_time.len());
            for at in self.seen.iter() {
                place(self.lines, at)
                    .into_iter()
                    .for_each(|place| free.take(place));
            }
            free
        });
        let time = |&at: &Index| self.lines.record(at).at();
        let end = by_time.partition_point(|at| time(at) <= Some(own));
        let newest = time(&by_time[free.last_before(end)?]);
        let start = by_time.partition_point(|at| time(at) < newest);
        let first = by_time[free.first_from(start)?];
        (own.since(time(&first)?) <= HEAL_MS).then_some(first)
    }
}

/// Where the line stands among all lines by time.
fn place(lines: &ClientLines<'_>, at: Index) -> Option<usize> {
    let key = |at: Index| (lines.record(at).at(), at);
    let by_time = lines.by_time();
    by_time
        .binary_search_by_key(&key(at), |&other| key(other))
        .ok()
}

/// Places of which some are taken; finds the nearest free one without a search.
struct FreePositions {
    /// One more than the nearest free place at or before this one, or a place on the way.
    before: Vec<u32>,
    /// The nearest free place at or behind this one, or a place on the way.
    behind: Vec<u32>,
}

impl FreePositions {
    fn new(count: usize) -> FreePositions {
        let all = 0..=count as u32;
        FreePositions {
            before: all.clone().collect(),
            behind: all.collect(),
        }
    }

    fn take(&mut self, place: usize) {
        self.before[place + 1] = place as u32;
        self.behind[place] = place as u32 + 1;
    }

    /// The last free place before `end`.
    fn last_before(&mut self, end: usize) -> Option<usize> {
        root(&mut self.before, end).checked_sub(1)
    }

    /// The first free place from `start` on.
    fn first_from(&mut self, start: usize) -> Option<usize> {
        let found = root(&mut self.behind, start);
        (found + 1 < self.behind.len()).then_some(found)
    }
}

/// Follows the links to their end, and shortens them for the next time.
fn root(links: &mut [u32], mut at: usize) -> usize {
    while links[at] as usize != at {
        links[at] = links[links[at] as usize];
        at = links[at] as usize;
    }
    at
}
