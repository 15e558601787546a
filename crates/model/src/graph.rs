//! Who follows whom: parents, healed where the file is broken.
//!
//! Parents may stand later in the file than their children, nowhere at all, or in a circle.
//! Every line still gets one place. What a client makes of the same lines is in
//! [`crate::view::messages`], which uses the same two steps with that client's rules.

use std::cell::OnceCell;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

use crate::bitset::{BitSet, NumberMap};
use crate::block::BlockKind;
use crate::entry::LineKind;
use crate::session::{EntryRecord, Index, ParentLink, Session};

/// Links between lines. `order` lists the lines of the chain as they stand in the file.
#[derive(Clone, Debug)]
pub struct ParentLinks {
    /// The lines of the chain, in file order.
    pub order: Arc<Vec<Index>>,
    parent: NumberMap,
    /// Lines whose named parent is nowhere.
    pub missing: Vec<Index>,
    /// Lines at which a circle was cut.
    pub cycles: Vec<Index>,
}

impl ParentLinks {
    /// The parent of a record; `None` for roots and lines outside the chain.
    pub fn above(&self, record: Index) -> Option<Index> {
        self.parent.get(record)
    }

    /// Gives a record another parent.
    pub(crate) fn set(&mut self, record: Index, parent: Option<Index>) {
        self.parent.put(record, parent);
    }

    /// The line and its ancestors, nearest first. Ends also on a circle that was left.
    pub fn ancestors(&self, from: Index) -> impl Iterator<Item = Index> {
        let mut next = Some(from);
        let mut left = self.order.len();
        std::iter::from_fn(move || {
            let here = next.filter(|_| left > 0)?;
            left -= 1;
            next = self.above(here);
            Some(here)
        })
    }
}

/// The links as we read them: every line with an id is a link, a missing parent is healed by
/// the line before it in the file, a circle is cut. Conversation lines without an id follow the
/// line before them.
pub fn links(session: &Session) -> ParentLinks {
    let mut links = linked(session);
    cut_cycles(&mut links);
    links
}

/// A prompt or reply without an id, as some tools write them.
pub fn is_nameless(record: &EntryRecord) -> bool {
    record.uuid.is_none() && record.is_conversation()
}

fn linked(session: &Session) -> ParentLinks {
    let records = &session.records;
    let takes = |record: &EntryRecord| record.in_chain() || is_nameless(record);
    let mut order = Vec::with_capacity(records.len());
    order.extend(
        (0..)
            .zip(records)
            .filter_map(|(at, record)| takes(record).then_some(at)),
    );
    let mut links = ParentLinks {
        order: Arc::new(order),
        parent: NumberMap::default(),
        missing: Vec::new(),
        cycles: Vec::new(),
    };
    links.parent.make_room(|_| records.len());
    let mut last: Option<Index> = None;
    for &at in links.order.iter() {
        let record = &records[at as usize];
        let known = session.parent_at(record);
        let parent = match known.filter(|&parent| takes(&records[parent as usize])) {
            Some(parent) => Some(parent),
            None if session.parent_of(record).is_some() => {
                links.missing.push(at);
                last
            }
            None if is_nameless(record) && record.parent() == ParentLink::Absent => last,
            None => None,
        };
        links.parent.put(at, parent);
        last = Some(at);
    }
    links
}

/// Cuts every circle at the line whose parent comes later in the file; that line follows the
/// one before it instead, or nothing if that would close a circle again.
pub fn cut_cycles(links: &mut ParentLinks) {
    // Most files have no circle, and need no places.
    let place: OnceCell<NumberMap> = OnceCell::new();
    let place = |links: &ParentLinks, at: Index| {
        let places = || links.order.iter().copied().zip(0..).collect();
        place.get_or_init(places).get(at).unwrap_or(0)
    };
    let mut settled = BitSet::default();
    let mut cut_once = HashSet::new();
    for nth in 0..links.order.len() {
        let start = links.order[nth];
        while let Some(circle) = circle_from(links, start, &mut settled) {
            let later = |&at: &Index| {
                let above = links.above(at);
                above.is_some_and(|above| place(links, above) >= place(links, at))
            };
            let cut = circle
                .iter()
                .copied()
                .filter(later)
                .min_by_key(|&at| place(links, at));
            let cut = cut.unwrap_or(circle[0]);
            let before = place(links, cut).checked_sub(1);
            let before = before.map(|at| links.order[at as usize]);
            let first = cut_once.insert(cut);
            let joins = |before: &Index| first && leads_away(links, *before, cut, &settled);
            let before = before.filter(joins);
            links.set(cut, before);
            links.cycles.push(cut);
        }
    }
}

/// Whether walking up from a line soon comes to one that is known to lead to a root. If not,
/// it may lead back to `cut`, and a new circle is worse than a new root.
fn leads_away(links: &ParentLinks, from: Index, cut: Index, settled: &BitSet) -> bool {
    let mut next = Some(from);
    for _ in 0..STEPS {
        match next {
            None => return true,
            Some(at) if settled.contains(at) => return true,
            Some(at) if at == cut => return false,
            Some(at) => next = links.above(at),
        }
    }
    false
}

/// How far to look; without a limit, a file of circles would take quadratic time.
const STEPS: usize = 64;

/// Whether walking up from any line would never end.
pub fn has_cycle(links: &ParentLinks) -> bool {
    let mut settled = BitSet::default();
    links
        .order
        .iter()
        .any(|&start| circle_from(links, start, &mut settled).is_some())
}

/// The circle that walking up from `start` runs into; marks what leads to a root.
fn circle_from(links: &ParentLinks, start: Index, settled: &mut BitSet) -> Option<Vec<Index>> {
    // Nearly always the line above stands before it in the file and was looked at.
    let above = links.above(start);
    if above.is_none_or(|above| settled.contains(above)) {
        settled.insert(start);
        return None;
    }
    let mut path = Vec::new();
    let mut on_path: HashMap<Index, usize> = HashMap::new();
    let mut next = Some(start);
    while let Some(at) = next.filter(|&at| !settled.contains(at)) {
        if let Some(&first) = on_path.get(&at) {
            return Some(path.split_off(first));
        }
        on_path.insert(at, path.len());
        path.push(at);
        next = links.above(at);
    }
    settled.extend(path);
    None
}

/// The line the conversation goes on from, and what leads to it.
///
/// 2.1.200 and later: the last line of the chain, unless the last `last-prompt` names another
/// branch. That rule holds for older files too as long as they are read in file order.
pub fn live_leaf(session: &Session, links: &ParentLinks) -> Option<Index> {
    let own = |at: &&Index| {
        let record = &session.records[**at as usize];
        record.thread == 0 && !matches!(record.kind, LineKind::Progress | LineKind::Unknown)
    };
    let last = last_that_speaks(session, links, own)?;
    let Some((leaf, explicit)) = &session.last_prompt else {
        return Some(last);
    };
    let Some(leaf) = leaf else {
        // Everything was taken back.
        return (!*explicit).then_some(last);
    };
    let Some(named) = session
        .find(leaf)
        .filter(|&at| session.records[at as usize].thread == 0)
    else {
        return Some(last);
    };
    Some(match !*explicit && goes_on(session, links, named, last) {
        true => last,
        false => named,
    })
}

/// Whether a line, or one that belongs to the same calls, leads to another.
pub(crate) fn goes_on(session: &Session, links: &ParentLinks, line: Index, to: Index) -> bool {
    leads_to(session, links, line, to) || {
        let family = family(session, line);
        links.ancestors(to).any(|above| family.contains(above))
    }
}

/// The lines of the message that a result answers, and all results of its calls:
/// who follows one of them follows all.
fn family(session: &Session, line: Index) -> BitSet {
    let record = &session.records[line as usize];
    let answers = || {
        let blocks = session.blocks_of(record).iter();
        let mut results = blocks.filter(|block| block.kind == BlockKind::ToolResult);
        let call = session.find_call(session.id_of(results.next()?)?)?;
        session.records[session.calls[call as usize].record as usize].message()
    };
    let Some(message) = answers() else {
        return BitSet::default();
    };
    let lines = &session.messages[message as usize].records;
    let mut family: BitSet = lines.iter().copied().collect();
    let calls = session.calls.iter();
    let own = calls.filter(|call| session.records[call.record as usize].message() == Some(message));
    family.extend(own.filter_map(|call| Some(call.result.as_ref()?.record)));
    family
}

/// The last of these lines, without those at the end that lead to no prompt or reply; the very
/// last one if all are like that.
fn last_that_speaks(
    session: &Session,
    links: &ParentLinks,
    own: impl Fn(&&Index) -> bool,
) -> Option<Index> {
    let mut silent = BitSet::default();
    let mut candidates = links.order.iter().rev().filter(own).copied().peekable();
    let last = *candidates.peek()?;
    let speaks = candidates.find(|&from| {
        let mut next = Some(from);
        while let Some(at) = next.filter(|&at| silent.insert(at)) {
            if session.records[at as usize].is_conversation() {
                return true;
            }
            next = links.above(at).or_else(|| before(session, links, at));
        }
        false
    });
    Some(speaks.unwrap_or(last))
}

/// Whether a line follows another. A compaction ends the walk: what stands before it is reached by
/// going back only.
pub(crate) fn leads_to(session: &Session, links: &ParentLinks, line: Index, to: Index) -> bool {
    let mut next = Some(to);
    let mut left = links.order.len() + 1;
    while let Some(at) = next.filter(|_| left > 0) {
        if at == line {
            return true;
        }
        left -= 1;
        next = links
            .above(at)
            .filter(|_| !session.records[at as usize].kind.is_boundary());
    }
    false
}

/// Marks every record on the live branch: the leaf's ancestors (through compactions), the
/// siblings of parallel calls and their results, and lines that only hang beside them.
pub fn live(session: &Session, links: &ParentLinks) -> BitSet {
    branch(session, links, live_leaf(session, links))
}

/// The same for any branch, given its last line.
pub fn branch(session: &Session, links: &ParentLinks, leaf: Option<Index>) -> BitSet {
    let mut live = BitSet::default();
    let mut next = leaf;
    while let Some(at) = next {
        if !live.insert(at) {
            break;
        }
        next = links.above(at).or_else(|| before(session, links, at));
    }
    for message in &session.messages {
        if message.records.iter().any(|&at| live.contains(at)) {
            live.extend(message.records.iter().copied());
        }
    }
    for call in &session.calls {
        if let Some(result) = call.result.as_ref().filter(|_| live.contains(call.record)) {
            live.insert(result.record);
        }
    }
    hang_beside(session, links, &mut live);
    live
}

/// The line a compaction follows. 2.1.29 names one that it never wrote: then the line before.
pub(crate) fn before(session: &Session, links: &ParentLinks, at: Index) -> Option<Index> {
    let named = session.find(session.logical_parent(at)?);
    named
        .or_else(|| line_before(session, links, at, |_| true))
        .filter(|&parent| parent != at)
}

/// The nearest line of the same thread before a line of the file, of those that stay.
pub(crate) fn line_before(
    session: &Session,
    links: &ParentLinks,
    at: Index,
    stays: impl Fn(Index) -> bool,
) -> Option<Index> {
    let thread = |at: Index| session.records[at as usize].thread;
    let place = links.order.partition_point(|&line| line < at);
    let mut above = links.order[..place].iter().rev().copied();
    above.find(|&line| thread(line) == thread(at) && stays(line))
}

/// Progress and notes that hang on a live line are live; so is what follows only them.
fn hang_beside(session: &Session, links: &ParentLinks, live: &mut BitSet) {
    for &at in links.order.iter() {
        let record = &session.records[at as usize];
        let beside = !record.is_conversation() && !record.kind.compacts();
        let parent = links.above(at);
        if beside && parent.is_none_or(|parent| live.contains(parent)) {
            live.insert(at);
        }
    }
}
