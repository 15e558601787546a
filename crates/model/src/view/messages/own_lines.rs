//! Which lines are live by our own rules: nothing that belongs to the conversation is lost.

use crate::bitset::{BitSet, NumberLists};
use crate::block::BlockKind;
use crate::graph::{self, ParentLinks};
use crate::session::{Index, Session};
use crate::view::messages::LiveLines;

pub(super) fn chain(session: &Session) -> LiveLines {
    let links = graph::links(session);
    match graph::live_leaf(session, &links) {
        Some(leaf) => from(session, &links, leaf),
        None => LiveLines::None,
    }
}

/// What is read when the conversation goes on from `leaf`.
pub(super) fn from(session: &Session, links: &ParentLinks, leaf: Index) -> LiveLines {
    let mut lines = Vec::new();
    let mut said = false;
    let mut next = Some(leaf);
    while let Some(at) = next {
        lines.push(at);
        let record = &session.records[at as usize];
        said |= record.is_conversation();
        let boundary = record.kind.is_boundary();
        if boundary && said {
            break;
        }
        // A compaction that left no summary has nothing to say instead of what it dropped.
        let before = || {
            session
                .find(session.logical_parent(at)?)
                .filter(|&parent| parent < at)
        };
        let above = || {
            links.order[..links.order.partition_point(|&line| line < at)]
                .last()
                .copied()
        };
        next = links
            .above(at)
            .or_else(|| boundary.then(|| before().or_else(above)).flatten());
        if lines.len() > links.order.len() {
            break;
        }
    }
    lines.reverse();
    preserve(session, links, &mut lines);
    LiveLines::Lines(with_siblings(session, links, lines))
}

/// Puts lines back that the compaction kept, behind the line it names.
fn preserve(session: &Session, links: &ParentLinks, lines: &mut Vec<Index>) {
    let first = lines.first().map(|&at| &session.records[at as usize]);
    let Some(boundary) = first.and_then(|first| session.boundary_of(first)) else {
        return;
    };
    let present: BitSet = lines.iter().copied().collect();
    let mut kept: Vec<Index> = boundary
        .preserved
        .iter()
        .filter_map(|id| session.find(id))
        .collect();
    if let (true, Some((head, tail))) = (kept.is_empty(), &boundary.segment) {
        kept = segment(links, session.find(head), session.find(tail));
    }
    kept.retain(|&at| !present.contains(at));
    let anchor = boundary.anchor.as_ref().and_then(|id| session.find(id));
    if let Some(place) = lines.iter().position(|&at| Some(at) == anchor) {
        lines.splice(place + 1..place + 1, kept);
    }
}

/// The lines from `head` to `tail`; none if the one does not lead to the other.
fn segment(links: &ParentLinks, head: Option<Index>, tail: Option<Index>) -> Vec<Index> {
    let Some(tail) = tail else { return Vec::new() };
    let mut lines = Vec::new();
    for at in links.ancestors(tail) {
        lines.push(at);
        if Some(at) == head {
            lines.reverse();
            return lines;
        }
    }
    Vec::new()
}

/// Brings back what parallel calls left beside the walk: all lines of each message on it, and
/// the results of their calls.
fn with_siblings(session: &Session, links: &ParentLinks, lines: Vec<Index>) -> Vec<Index> {
    let mut results = ResultLines::of(session, links);
    let on_walk: BitSet = lines.iter().copied().collect();
    let (mut placed, mut done) = (BitSet::default(), BitSet::default());
    let mut out = Vec::with_capacity(lines.len());
    for at in lines {
        if let Some(message) = session.records[at as usize].message()
            && done.insert(message)
        {
            let family = family(session, message, &mut results);
            if family.iter().any(|&line| !on_walk.contains(line)) {
                out.extend(family.into_iter().filter(|&line| placed.insert(line)));
            }
        }
        if placed.insert(at) {
            out.push(at);
        }
    }
    out
}

/// The lines of a message and the results of its calls, in file order each.
fn family(session: &Session, message: Index, results: &mut ResultLines) -> Vec<Index> {
    let mut lines = session.messages[message as usize].records.to_vec();
    let mut answers = Vec::new();
    for &at in &lines {
        for block in session.blocks_of(&session.records[at as usize]) {
            if let (BlockKind::ToolUse, Some(id)) = (block.kind, block.key()) {
                // The first call with an id takes its results.
                answers.extend(results.take(id));
            }
        }
    }
    answers.sort_unstable();
    answers.dedup();
    lines.extend(answers);
    lines
}

/// Lines with results, by the ids of their calls.
struct ResultLines {
    lines: NumberLists,
    taken: BitSet,
}

impl ResultLines {
    fn of(session: &Session, links: &ParentLinks) -> ResultLines {
        let lines = links.order.iter().flat_map(|&at| {
            let blocks = session.blocks_of(&session.records[at as usize]).iter();
            let results = blocks.filter(|block| block.kind == BlockKind::ToolResult);
            results.filter_map(move |block| Some((block.key()?, at)))
        });
        ResultLines {
            lines: lines.collect(),
            taken: BitSet::default(),
        }
    }

    /// The results of a call, for the first who asks.
    fn take(&mut self, call: Index) -> impl Iterator<Item = Index> + '_ {
        let first = self.taken.insert(call);
        let lines = first.then(|| self.lines.get(call));
        lines.into_iter().flatten()
    }
}
