//! Which lines are live for a client, in the order it reads them.

use std::collections::{HashMap, HashSet};

use crate::block::BlockKind;
use crate::entry::{Kind, Parent};
use crate::graph::{self, Links, Missing};
use crate::session::{Index, Record, Role, Session};
use crate::view::messages::Outcome;
use crate::view::profile::{Circle, Leaf, Rules};

pub(super) fn chain(session: &Session, rules: &Rules) -> Outcome {
    let missing = if rules.heals {
        Missing::Heal
    } else {
        Missing::Cut
    };
    let takes = |record: &Record| takes(record, rules);
    let mut links = graph::link(session, takes, missing, rules.heals);
    if rules.circle == Circle::Heals {
        graph::cut_cycles(&mut links);
    }
    let Some(leaf) = leaf(session, &links, rules) else {
        return Outcome::None;
    };
    let mut lines = Vec::new();
    let mut seen = HashSet::new();
    let mut next = Some(leaf);
    while let Some(at) = next {
        if !seen.insert(at) {
            if rules.circle == Circle::Hangs {
                return Outcome::Hangs;
            }
            break;
        }
        lines.push(at);
        next = links.parent[at as usize].filter(|_| !is_boundary(session, at));
    }
    lines.reverse();
    if rules.preserved {
        preserve(session, &mut lines);
    }
    if rules.siblings {
        lines = with_siblings(session, &links, lines);
    }
    Outcome::Lines(lines)
}

fn takes(record: &Record, rules: &Rules) -> bool {
    if record.refused && !rules.strict {
        return false;
    }
    if graph::is_nameless(record) {
        return rules.strict;
    }
    record.in_chain()
        && match record.kind {
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

/// Whether the walk ends here: everything before was summarised.
fn is_boundary(session: &Session, at: Index) -> bool {
    matches!(&session.records[at as usize].kind, Kind::CompactBoundary(boundary) if !boundary.micro)
}

fn leaf(session: &Session, links: &Links, rules: &Rules) -> Option<Index> {
    let own_thread = |record: &Record| session.role() == Role::Agent || !record.sidechain;
    let candidates = links.order.iter().copied().filter(|&at| {
        let record = &session.records[at as usize];
        own_thread(record) && record.kind != Kind::Progress
    });
    match rules.leaf {
        Leaf::FileOrder => {
            let last = candidates.last()?;
            let leaf = named_leaf(session, links, last).unwrap_or(last);
            let timed = session.records[leaf as usize].at.is_some();
            (timed || !rules.needs_time).then_some(leaf)
        }
        Leaf::Newest => {
            let mut best: Option<Index> = None;
            for at in candidates.filter(|&at| !is_attachment(session, at)) {
                let newer = best.is_none_or(|best| {
                    session.records[at as usize].at > session.records[best as usize].at
                });
                if newer {
                    best = Some(at);
                }
            }
            best
        }
    }
}

fn is_attachment(session: &Session, at: Index) -> bool {
    matches!(
        session.records[at as usize].kind,
        Kind::Attachment | Kind::QueuedCommand { .. }
    )
}

/// The leaf that `last-prompt` names, where it counts.
fn named_leaf(session: &Session, links: &Links, last: Index) -> Option<Index> {
    let (leaf, explicit) = session.last_prompt.as_ref()?;
    let named = session.find(leaf.as_ref()?)?;
    if !links.order.contains(&named) {
        return None;
    }
    let descends = links.ancestors(last).any(|at| at == named);
    (*explicit || !descends).then_some(named)
}

/// Puts lines back that the compaction kept, behind the line it names.
fn preserve(session: &Session, lines: &mut Vec<Index>) {
    let first = lines.first().map(|&at| &session.records[at as usize].kind);
    let Some(Kind::CompactBoundary(boundary)) = first else {
        return;
    };
    let kept: Vec<Index> = boundary
        .preserved
        .iter()
        .filter_map(|id| session.find(id))
        .collect();
    let anchor = boundary.anchor.as_ref().and_then(|id| session.find(id));
    let place = lines.iter().position(|&at| Some(at) == anchor);
    if let (Some(place), true) = (
        place,
        !kept.is_empty() && kept.len() == boundary.preserved.len(),
    ) {
        lines.splice(place + 1..place + 1, kept);
    }
}

/// Brings back what parallel calls left beside the walk: all lines of each message on it, and
/// the results of their calls.
fn with_siblings(session: &Session, links: &Links, lines: Vec<Index>) -> Vec<Index> {
    let results = results_by_call(session, links);
    let on_walk: HashSet<Index> = lines.iter().copied().collect();
    let in_chain: HashSet<Index> = links.order.iter().copied().collect();
    let mut placed: HashSet<Index> = HashSet::new();
    let mut done: HashSet<Index> = HashSet::new();
    let mut out = Vec::with_capacity(lines.len());
    for at in lines {
        if let Some(message) = session.records[at as usize].message
            && done.insert(message)
        {
            let family = family(session, message, &in_chain, &results);
            if family.iter().any(|line| !on_walk.contains(line)) {
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
fn family(
    session: &Session,
    message: Index,
    in_chain: &HashSet<Index>,
    results: &HashMap<&str, Vec<Index>>,
) -> Vec<Index> {
    let message = &session.messages[message as usize];
    if message.id.is_none() {
        return message.records.clone();
    }
    let own = message
        .records
        .iter()
        .copied()
        .filter(|at| in_chain.contains(at));
    let mut lines: Vec<Index> = own.collect();
    let mut answers = Vec::new();
    for &at in &lines {
        for block in session.blocks_of(&session.records[at as usize]) {
            if let (BlockKind::ToolUse, Some(id)) = (block.kind, &block.id) {
                answers.extend(results.get(&**id).into_iter().flatten().copied());
            }
        }
    }
    answers.sort_unstable();
    answers.dedup();
    lines.extend(answers);
    lines
}

fn results_by_call<'a>(session: &'a Session, links: &Links) -> HashMap<&'a str, Vec<Index>> {
    let mut results: HashMap<&str, Vec<Index>> = HashMap::new();
    for &at in &links.order {
        let record = &session.records[at as usize];
        if record.parent == Parent::Null {
            continue;
        }
        for block in session.blocks_of(record) {
            if let (BlockKind::ToolResult, Some(id)) = (block.kind, &block.id) {
                results.entry(id).or_default().push(at);
            }
        }
    }
    results
}
