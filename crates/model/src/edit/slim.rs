//! Bookkeeping that no client sends, and that nobody misses.
//!
//! What is kept: everything a client reads on resume (the last title, mode and leaf), what
//! rewinding needs, what says where the work went (pull requests, worktrees), and prompts that
//! stand nowhere else. Lines that could not be read are left to repair. A circle of parents, on
//! which old clients hang, is cut where we cut it when we read.

use foldhash::{HashMap, HashMapExt, HashSet};

use super::EditPlan;
use crate::entry::{LineDetail, LineKind, TitleSource};
use crate::graph::{self, ParentLinks};
use crate::id::Id;
use crate::session::{EntryRecord, Index, Session};
use crate::view::prompt_queue;

/// Why a kind of line may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlimRule {
    /// Nobody reads it again.
    Goes,
    /// Only the last one counts.
    LastStays,
    /// Only what nothing follows goes: to some clients it is a link of the chain.
    GoesIfNothingFollows,
    /// Goes unless it holds a prompt that stands nowhere else.
    PromptsStay,
}

/// The kinds of line that may go. All others stay.
const RULES: &[(&str, SlimRule)] = &[
    ("agent-name", SlimRule::LastStays),
    ("ai-title", SlimRule::LastStays),
    ("api-request", SlimRule::Goes),
    ("api-request-blob", SlimRule::Goes),
    ("api-request-shape", SlimRule::Goes),
    ("atis-latch", SlimRule::Goes),
    ("attachment/deferred_tools_record", SlimRule::Goes),
    ("attachment/prompt_snapshot", SlimRule::Goes),
    ("cost-state", SlimRule::LastStays),
    ("custom-title", SlimRule::LastStays),
    ("last-prompt", SlimRule::LastStays),
    ("mode", SlimRule::LastStays),
    ("permission-mode", SlimRule::LastStays),
    ("progress", SlimRule::GoesIfNothingFollows),
    ("progress/agent_progress", SlimRule::GoesIfNothingFollows),
    ("progress/bash_progress", SlimRule::GoesIfNothingFollows),
    ("progress/hook_progress", SlimRule::GoesIfNothingFollows),
    ("progress/mcp_progress", SlimRule::GoesIfNothingFollows),
    ("progress/query_update", SlimRule::GoesIfNothingFollows),
    (
        "progress/search_results_received",
        SlimRule::GoesIfNothingFollows,
    ),
    ("progress/waiting_for_task", SlimRule::GoesIfNothingFollows),
    ("queue-operation", SlimRule::PromptsStay),
    ("queue-operation/dequeue", SlimRule::PromptsStay),
    ("queue-operation/enqueue", SlimRule::PromptsStay),
    ("queue-operation/popAll", SlimRule::PromptsStay),
    ("queue-operation/remove", SlimRule::PromptsStay),
    ("tag", SlimRule::LastStays),
    ("tools-used", SlimRule::Goes),
];

fn rule(label: &str) -> Option<SlimRule> {
    let at = RULES.binary_search_by_key(&label, |(label, _)| label);
    at.ok().map(|at| RULES[at].1)
}

/// Whether a line only tells about the requests of its turn.
pub(super) fn is_of_turn(session: &Session, record: &EntryRecord) -> bool {
    rule(session.label_of(record)) == Some(SlimRule::Goes)
}

/// Lets bookkeeping go. What any client would send stays as it is.
pub fn slim(session: &Session, plan: &mut EditPlan) {
    let links = graph::links(session);
    let followed = followed(session, plan, &links);
    let prompts = prompts(session);
    let ending = ending_notes(session);
    let mut later: HashMap<(&str, bool), Index> = HashMap::new();
    for (at, record) in session.records.iter().enumerate().rev() {
        let (at, label) = (at as Index, session.label_of(record));
        if plan.is_dropped(at) {
            continue;
        }
        let goes = match rule(label) {
            None => false,
            Some(SlimRule::Goes) => !ending.contains(&at),
            // An empty title does not undo the one before.
            Some(SlimRule::LastStays) => later.insert((label, says(session, record)), at).is_some(),
            Some(SlimRule::GoesIfNothingFollows) => !followed.contains(&at),
            Some(SlimRule::PromptsStay) => !prompts.contains(&at),
        };
        if goes {
            plan.drop(at);
        }
    }
    for &at in &links.cycles {
        let mut above = links.ancestors(at).skip(1);
        let above = above.find(|&above| !plan.is_dropped(above));
        let above = above.map(|above| session.records[above as usize].uuid.clone());
        // Nobody can follow a line without an id: that is left to repair.
        if above != Some(None) {
            plan.set_parent(at, above.flatten());
        }
    }
}

/// The lines at which an explicit `last-prompt` ceases to count in any case: without them it
/// would count again.
fn ending_notes(session: &Session) -> HashSet<Index> {
    let mut ending = HashSet::default();
    let mut counts = false;
    for (at, record) in session.records.iter().enumerate() {
        if let Some(LineDetail::LastPrompt { explicit, .. }) = session.detail_of(record) {
            counts = *explicit;
        } else if counts && record.thread == 0 && record.in_chain() && record.kind.is_link() {
            let passed = record.kind == LineKind::Progress;
            counts = passed;
            ending.extend((!passed).then_some(at as Index));
        }
    }
    ending
}

fn says(session: &Session, record: &EntryRecord) -> bool {
    match session.detail_of(record) {
        // An empty one of a person takes back those before it.
        Some(LineDetail::Title { text, source }) => {
            *source == TitleSource::Custom || !text.trim().is_empty()
        }
        _ => true,
    }
}

/// Lines that something else than progress follows, and those a client may go on from.
fn followed(session: &Session, plan: &EditPlan, links: &ParentLinks) -> HashSet<Index> {
    let mut followed: HashSet<Index> = HashSet::default();
    let mut ends = named(session);
    ends.extend(newest(session, links));
    for &at in links.order.iter() {
        let is_progress = session.records[at as usize].kind == LineKind::Progress;
        if is_progress && !ends.contains(&at) || plan.is_dropped(at) {
            continue;
        }
        let mut next = Some(at).filter(|_| is_progress);
        next = next.or(links.above(at));
        while let Some(above) = next.filter(|&above| followed.insert(above)) {
            next = links.above(above);
        }
    }
    followed
}

/// Lines that others name: where to go on, and what a compaction kept.
fn named(session: &Session) -> HashSet<Index> {
    let leaf = session.last_prompt.iter().flat_map(|(leaf, _)| leaf);
    let mut ids: Vec<&Id> = leaf.collect();
    ids.extend(session.logical_parents());
    for record in &session.records {
        if let Some(boundary) = session.boundary_of(record) {
            ids.extend(&boundary.preserved);
            ids.extend(
                boundary
                    .segment
                    .iter()
                    .flat_map(|(head, tail)| [head, tail]),
            );
        }
    }
    ids.into_iter().filter_map(|id| session.find(id)).collect()
}

/// The line that clients of the time of progress lines would go on from.
fn newest(session: &Session, links: &ParentLinks) -> Option<Index> {
    let candidate = |at: &&Index| {
        let record = &session.records[**at as usize];
        !record.is_sidechain() && record.at().is_some()
    };
    let all = links.order.iter().filter(candidate).copied();
    all.reduce(|best, at| {
        match session.records[at as usize].at() > session.records[best as usize].at() {
            true => at,
            false => best,
        }
    })
}

/// Lines of the queue that hold a prompt which stands nowhere else: the one it was taken from
/// the queue by, and the one that put it there.
fn prompts(session: &Session) -> HashSet<Index> {
    let taken: HashMap<Index, String> =
        prompt_queue::typed_meanwhile(session).into_iter().collect();
    let texts: HashSet<&str> = taken.values().map(String::as_str).collect();
    let all = session.records.iter().enumerate();
    let keeps = all.filter(|(at, record)| match session.detail_of(record) {
        Some(LineDetail::Queue { text, .. }) => {
            let text = text.as_deref().map(prompt_queue::typed);
            taken.contains_key(&(*at as Index)) || text.is_some_and(|text| texts.contains(text))
        }
        _ => false,
    });
    keeps.map(|(at, _)| at as Index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_are_sorted_and_about_known_kinds() {
        assert!(RULES.is_sorted_by_key(|(label, _)| label));
        for (label, _) in RULES {
            assert!(crate::known_names::label(label).is_some(), "{label}");
        }
    }
}
