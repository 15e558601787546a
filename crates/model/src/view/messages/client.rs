//! Which lines are live for a client, in the order it reads them.
//!
//! Found by giving the real clients edited files and reading what they sent
//! (`docs/conformance.md`); oddities are theirs.

use std::collections::{HashMap, HashSet};

use crate::block::BlockKind;
use crate::entry::{Kind, Parent};
use crate::id::Id;
use crate::session::{Index, Record, Role, Session};
use crate::time::Time;
use crate::view::messages::{Outcome, own};
use crate::view::profile::{Circle, Leaf, Rules};

/// A line that follows a lost parent is joined to the newest line before it, if that is not
/// older than this.
const HEAL_MS: u64 = 5_000;

pub(super) fn chain(session: &Session, rules: &Rules) -> Outcome {
    let lines = Lines::of(session, rules);
    let Some(leaf) = lines.leaf() else {
        return if rules.starts_empty {
            Outcome::Lines(Vec::new())
        } else {
            Outcome::None
        };
    };
    let mut walk = Vec::new();
    let mut seen: HashSet<Index> = HashSet::new();
    let mut next = Some(leaf);
    while let Some(at) = next {
        seen.insert(at);
        walk.push(at);
        if own::is_boundary(session, lines.content(at)) {
            break;
        }
        if rules.circle == Circle::Hangs
            && lines
                .named_parent(at)
                .is_some_and(|parent| seen.contains(&parent))
        {
            return Outcome::Hangs;
        }
        next = lines.parent(at, &seen);
    }
    walk.reverse();
    if rules.siblings {
        walk = lines.with_siblings(walk);
    }
    if rules.preserved {
        lines.preserve(&mut walk);
    }
    let walk: Vec<Index> = walk.into_iter().map(|at| lines.content(at)).collect();
    let breaks = rules.brittle
        && walk
            .iter()
            .any(|&at| is_brittle(session, &session.records[at as usize]));
    if breaks {
        Outcome::None
    } else {
        Outcome::Lines(walk)
    }
}

/// A reply that is one string, or a prompt without content.
fn is_brittle(session: &Session, record: &Record) -> bool {
    let blocks = session.blocks_of(record);
    match record.kind {
        Kind::Assistant => blocks
            .first()
            .is_some_and(|block| block.kind == BlockKind::Text && block.span == block.body),
        Kind::User => blocks.is_empty(),
        _ => false,
    }
}

/// The lines as a client holds them: by uuid, the last one with a uuid in the first's place.
struct Lines<'a> {
    session: &'a Session,
    rules: &'a Rules,
    order: Vec<Index>,
    taken: Vec<bool>,
    /// Lines that are passed through to their own parents.
    bridged: HashMap<&'a Id, &'a Parent>,
    /// By time, then by place; for healing.
    by_time: Vec<(Time, Index)>,
    /// Lines without an id are one line: the last of them, in the place of the first.
    nameless: Option<(Index, Index)>,
}

impl<'a> Lines<'a> {
    fn of(session: &'a Session, rules: &'a Rules) -> Lines<'a> {
        let mut lines = Lines {
            session,
            rules,
            order: Vec::new(),
            taken: vec![false; session.records.len()],
            bridged: HashMap::new(),
            by_time: Vec::new(),
            nameless: None,
        };
        for (at, record) in session.records.iter().enumerate() {
            lines.add(at as Index, record);
        }
        if rules.heals {
            let timed = lines
                .order
                .iter()
                .filter_map(|&at| Some((lines.record(at).at?, at)));
            lines.by_time = timed.collect();
            lines.by_time.sort_unstable();
        }
        lines
    }

    fn add(&mut self, at: Index, record: &'a Record) {
        let linked = is_link(&record.kind, self.rules);
        let glued = record.glued && !self.rules.reads_glued;
        if record.refused || record.duplicate || record.untyped || glued {
            return;
        }
        match &record.uuid {
            Some(id) if !linked => {
                if self.rules.heals {
                    self.bridged.insert(id, &record.parent);
                }
                return;
            }
            Some(_) => {}
            None if !self.rules.takes_nameless || !linked || record.kind == Kind::Progress => {
                return;
            }
            None => match &mut self.nameless {
                Some((_, last)) => {
                    *last = at;
                    return;
                }
                None => self.nameless = Some((at, at)),
            },
        }
        self.taken[at as usize] = true;
        self.order.push(at);
    }

    /// The line that counts in this place.
    fn content(&self, at: Index) -> Index {
        match self.nameless {
            Some((first, last)) if first == at => last,
            _ => self.session.records[at as usize].replaced_by.unwrap_or(at),
        }
    }

    fn record(&self, at: Index) -> &'a Record {
        &self.session.records[self.content(at) as usize]
    }

    /// The parent the line names, through lines that are passed over.
    fn named(&self, at: Index) -> Option<&'a Id> {
        let mut id = self.record(at).parent.id()?;
        let mut left = self.bridged.len() + 1;
        while let Some(next) = self.bridged.get(id).filter(|_| left > 0) {
            left -= 1;
            id = next.id()?;
        }
        Some(id)
    }

    fn named_parent(&self, at: Index) -> Option<Index> {
        self.session
            .find(self.named(at)?)
            .filter(|&parent| self.taken[parent as usize])
    }

    fn parent(&self, at: Index, seen: &HashSet<Index>) -> Option<Index> {
        self.named(at)?;
        let known = self
            .named_parent(at)
            .filter(|parent| !seen.contains(parent));
        known.or_else(|| self.heal(at, seen))
    }

    /// The newest line that is not newer, the first in the file of equal ones.
    fn heal(&self, at: Index, seen: &HashSet<Index>) -> Option<Index> {
        if !self.rules.heals {
            return None;
        }
        let own = self.record(at).at?;
        let end = self.by_time.partition_point(|(time, _)| *time <= own);
        let free = |place: &&(Time, Index)| place.1 != at && !seen.contains(&place.1);
        let newest = self.by_time[..end].iter().rev().find(free)?.0;
        let start = self.by_time.partition_point(|(time, _)| *time < newest);
        let first = self.by_time[start..end].iter().find(free)?.1;
        (own.since(newest) <= HEAL_MS).then_some(first)
    }

    fn leaf(&self) -> Option<Index> {
        let own = |at: &Index| self.session.role() == Role::Agent || !self.record(*at).sidechain;
        let mut candidates = self.order.iter().copied().filter(own);
        match self.rules.leaf {
            Leaf::FileOrder => {
                let last = self.newest_below(candidates.next_back()?);
                let leaf = self.named_leaf(last).unwrap_or(last);
                self.record(leaf).at.map(|_| leaf)
            }
            Leaf::Newest => {
                let mut best: Option<Index> = None;
                for at in candidates.filter(|&at| self.may_be_newest(at)) {
                    // No time is neither newer nor older than any other.
                    let newer = |best: Index| {
                        self.record(at)
                            .at
                            .zip(self.record(best).at)
                            .is_some_and(|(at, best)| at > best)
                    };
                    if best.is_none_or(newer) {
                        best = Some(at);
                    }
                }
                best
            }
        }
    }

    fn may_be_newest(&self, at: Index) -> bool {
        let attachment = matches!(
            self.record(at).kind,
            Kind::Attachment | Kind::QueuedCommand { .. }
        );
        !attachment || self.rules.heals
    }

    /// In a file in disorder the last line may have descendants; the newest of them counts.
    fn newest_below(&self, last: Index) -> Index {
        let mut children: HashMap<Index, Vec<Index>> = HashMap::new();
        for &at in &self.order {
            if let Some(parent) = self.named_parent(at) {
                children.entry(parent).or_default().push(at);
            }
        }
        let mut below: HashSet<Index> = HashSet::new();
        let mut stack: Vec<Index> = children.get(&last).cloned().unwrap_or_default();
        while let Some(at) = stack.pop() {
            if at == last {
                return last; // A circle.
            }
            if below.insert(at) {
                stack.extend(children.get(&at).into_iter().flatten());
            }
        }
        let own = below
            .into_iter()
            .chain([last])
            .filter(|&at| !self.record(at).sidechain);
        own.max_by_key(|&at| (self.record(at).at, at))
            .unwrap_or(last)
    }

    /// The leaf that `last-prompt` names, where it counts.
    fn named_leaf(&self, last: Index) -> Option<Index> {
        let (leaf, explicit) = self.session.last_prompt.as_ref()?;
        let named = self
            .session
            .find(leaf.as_ref()?)
            .filter(|&at| self.taken[at as usize])?;
        let mut seen = HashSet::new();
        let mut next = Some(last);
        while let Some(at) = next {
            if at == named && !explicit {
                return None;
            }
            if !seen.insert(at) {
                break;
            }
            let logical = || {
                self.session
                    .find(self.record(at).logical_parent.as_ref()?)
                    .filter(|&at| self.taken[at as usize])
            };
            next = self.parent(at, &seen).or_else(logical);
        }
        Some(named)
    }

    /// Inserts what parallel calls left beside the walk, each before the first line of the
    /// walk that stands later in the file.
    fn with_siblings(&self, walk: Vec<Index>) -> Vec<Index> {
        let mut present: HashSet<Index> = walk.iter().copied().collect();
        let results = self.results_by_call_line();
        let mut done: HashSet<Index> = HashSet::new();
        let mut before: HashMap<usize, Vec<Index>> = HashMap::new();
        for (place, &at) in walk.iter().enumerate() {
            let Some(message) = self
                .record(at)
                .message
                .filter(|&message| done.insert(message))
            else {
                continue;
            };
            let family = self.family(message, &results);
            for &beside in &family {
                if present.insert(beside) {
                    let stops =
                        |&other: &Index| other > beside || family.binary_search(&other).is_err();
                    let later = walk[place + 1..].iter().position(stops);
                    let target = later.map_or(walk.len(), |later| place + 1 + later);
                    before.entry(target).or_default().push(beside);
                }
            }
        }
        let mut out = Vec::with_capacity(present.len());
        for place in 0..=walk.len() {
            let mut inserted = before.remove(&place).unwrap_or_default();
            inserted.sort_unstable();
            out.extend(inserted);
            out.extend(walk.get(place));
        }
        out
    }

    /// The lines of a message and the results that follow them.
    fn family(&self, message: Index, results: &HashMap<Index, Vec<Index>>) -> Vec<Index> {
        let message = &self.session.messages[message as usize];
        if message.id.is_none() {
            return Vec::new();
        }
        let own = message
            .records
            .iter()
            .copied()
            .filter(|&at| self.taken[at as usize]);
        let mut lines: Vec<Index> = own.collect();
        let answers: Vec<Index> = lines
            .iter()
            .filter_map(|at| results.get(at))
            .flatten()
            .copied()
            .collect();
        lines.extend(answers);
        lines.sort_unstable();
        lines
    }

    fn results_by_call_line(&self) -> HashMap<Index, Vec<Index>> {
        let mut results: HashMap<Index, Vec<Index>> = HashMap::new();
        for &at in &self.order {
            let record = self.record(at);
            let blocks = self.session.blocks_of(record);
            if record.kind == Kind::User
                && blocks
                    .iter()
                    .any(|block| block.kind == BlockKind::ToolResult)
                && let Some(parent) = record.parent.id().and_then(|id| self.session.find(id))
            {
                results.entry(parent).or_default().push(at);
            }
        }
        results
    }

    /// Puts lines back that the compaction kept, behind the line it names.
    fn preserve(&self, walk: &mut Vec<Index>) {
        let first = walk.first().map(|&at| &self.record(at).kind);
        let Some(Kind::CompactBoundary(boundary)) = first else {
            return;
        };
        let find = |id: &Id| self.session.find(id).filter(|&at| self.taken[at as usize]);
        let mut kept: Vec<Index> = boundary.preserved.iter().filter_map(find).collect();
        if kept.len() != boundary.preserved.len() {
            return;
        }
        if let (true, Some((head, tail))) = (kept.is_empty(), &boundary.segment) {
            kept = self.segment(find(head), find(tail));
        }
        let anchor = boundary.anchor.as_ref().and_then(find);
        if let Some(place) = walk.iter().position(|&at| Some(at) == anchor) {
            let present: HashSet<Index> = walk.iter().copied().collect();
            kept.retain(|at| !present.contains(at));
            walk.splice(place + 1..place + 1, kept);
        }
    }

    /// The lines from `head` to `tail`; none if the one does not lead to the other.
    fn segment(&self, head: Option<Index>, tail: Option<Index>) -> Vec<Index> {
        let mut lines = Vec::new();
        let mut seen = HashSet::new();
        let mut next = tail;
        while let Some(at) = next {
            seen.insert(at);
            lines.push(at);
            if Some(at) == head {
                lines.reverse();
                return lines;
            }
            next = self.parent(at, &seen);
        }
        Vec::new()
    }
}

/// Whether lines of this kind are links of the client's chain.
fn is_link(kind: &Kind, rules: &Rules) -> bool {
    match kind {
        Kind::User
        | Kind::Assistant
        | Kind::CompactBoundary(_)
        | Kind::TurnDuration(_)
        | Kind::StopHookSummary
        | Kind::LocalCommand
        | Kind::ApiError
        | Kind::System
        | Kind::Attachment
        | Kind::QueuedCommand { .. } => true,
        Kind::Progress => rules.progress,
        Kind::Queue { .. }
        | Kind::Summary { .. }
        | Kind::Title { .. }
        | Kind::LastPrompt { .. }
        | Kind::PermissionMode(_)
        | Kind::PrLink { .. }
        | Kind::FileHistory
        | Kind::Bookkeeping
        | Kind::Unknown => false,
    }
}
