//! Branches, forks and resumes: where a conversation parted.
//!
//! Parallel calls and notes branch the file without branching the conversation; only prompts,
//! compactions and the ends of branches are nodes here.

use std::collections::HashMap;

use crate::entry::{self, LineKind};
use crate::graph::{self, ParentLinks};
use crate::id::Id;
use crate::log::TranscriptSource;
use crate::session::{EntryRecord, Index, Session};
use crate::time::Time;
use crate::view::turns;

/// One node.
#[derive(Clone, Debug)]
pub struct TreeRow {
    /// Its number, from 1; other sessions have a number too.
    pub id: usize,
    /// The line, or the session for `fork` and `session`.
    pub uuid: String,
    /// `session`, `prompt`, `command`, …, `compaction`; of other sessions the name of a [`SessionRelation`].
    pub kind: &'static str,
    /// The node it follows.
    pub parent: Option<usize>,
    /// On the branch that goes on.
    pub live: bool,
    /// When.
    pub at: Option<Time>,
    /// What a person recognises it by.
    pub label: String,
    /// The line, 0 for sessions.
    pub line: u32,
}

/// How another session is related to this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionRelation {
    /// Both hold the same lines.
    Fork,
    /// This one was forked from it.
    Origin,
    /// This one goes on from it, in a file of its own: a plan was handed over.
    Before,
    /// It goes on from this one.
    After,
}

impl SessionRelation {
    fn name(self) -> &'static str {
        match self {
            SessionRelation::Fork => "fork",
            SessionRelation::Origin => "origin",
            SessionRelation::Before => "before",
            SessionRelation::After => "after",
        }
    }
}

/// Another session that shares lines with this one, or goes on from it.
#[derive(Clone, Debug)]
pub struct RelatedSession {
    /// How.
    pub kin: SessionRelation,
    /// Its id.
    pub session: String,
    /// The last line both have; where one goes on from the other, the line it follows.
    pub last_shared: Id,
    /// How many lines both have.
    pub shared: usize,
    /// Its first time.
    pub first: Option<Time>,
    /// Its title.
    pub title: String,
}

/// Which of the lines of `session` stand in `other` too: the last one and how many.
pub fn shared_with(session: &Session, other: &Session) -> Option<(Id, usize)> {
    let shared = session.records.iter().filter(|record| {
        record.in_chain()
            && record
                .uuid
                .as_ref()
                .is_some_and(|id| other.find(id).is_some())
    });
    let mut count = 0;
    let mut last = None;
    for record in shared {
        count += 1;
        last = record.uuid.clone();
    }
    last.map(|last| (last, count))
}

/// The line in another file that a session goes on from: its first link names a parent that it
/// does not hold. The client writes that when a plan is accepted and goes on in a new session.
pub fn goes_on_from(session: &Session) -> Option<&Id> {
    let mut links = session.records.iter();
    let first = links.find(|record| record.in_chain() && record.thread == 0)?;
    let parent = session.parent_of(first)?;
    session.find(parent).is_none().then_some(parent)
}

/// How another session is related to this one, whose id is `name`; nothing if it is not.
pub fn session_relation(
    session: &Session,
    name: &str,
    other: &Session,
    other_name: &str,
) -> Option<(SessionRelation, Id, usize)> {
    if let Some((last, count)) = shared_with(session, other) {
        let is_origin = |from: &Id| from.to_string() == other_name;
        let origin = session.forked_from.as_ref().is_some_and(is_origin);
        let kin = if origin {
            SessionRelation::Origin
        } else {
            SessionRelation::Fork
        };
        return Some((kin, last, count));
    }
    if name == other_name {
        return None;
    }
    if let Some(from) = goes_on_from(session).filter(|from| other.find(from).is_some()) {
        return Some((SessionRelation::Before, from.clone(), 0));
    }
    let from = goes_on_from(other).filter(|from| session.find(from).is_some())?;
    Some((SessionRelation::After, from.clone(), 0))
}

/// The tree of a session; `name` is its id.
pub fn tree(
    session: &Session,
    source: &dyn TranscriptSource,
    name: &str,
    relatives: &[RelatedSession],
) -> Vec<TreeRow> {
    let links = graph::links(session);
    let live = graph::live(session, &links);
    let mut rows = vec![TreeRow {
        id: 1,
        uuid: name.to_owned(),
        kind: "session",
        parent: None,
        live: true,
        at: session.first,
        label: session.title(&HashMap::new()).unwrap_or_default(),
        line: 0,
    }];
    let nodes = place(session, &links);
    for &at in links.order.iter() {
        let record = &session.records[at as usize];
        let Some(kind) = node_kind(record).filter(|_| record.thread == 0) else {
            continue;
        };
        let parent = above(session, &links, &nodes, at);
        rows.push(TreeRow {
            id: nodes[&at],
            uuid: record
                .uuid
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            kind,
            parent: Some(parent),
            live: live.contains(at),
            at: record.at(),
            label: label(session, source, record),
            line: record.line,
        });
    }
    for relative in relatives {
        let id = rows.len() + 1;
        if relative.kin == SessionRelation::Before {
            rows[0].parent = rows[0].parent.or(Some(id));
        }
        let shared = session.find(&relative.last_shared);
        let parent = shared.map_or(1, |at| {
            nodes
                .get(&at)
                .copied()
                .unwrap_or_else(|| above(session, &links, &nodes, at))
        });
        rows.push(TreeRow {
            id,
            uuid: relative.session.clone(),
            kind: relative.kin.name(),
            parent: (relative.kin != SessionRelation::Before).then_some(parent),
            live: false,
            at: relative.first,
            label: match relative.kin {
                SessionRelation::Fork | SessionRelation::Origin => {
                    format!("{} ({} lines shared)", relative.title, relative.shared)
                }
                SessionRelation::Before | SessionRelation::After => relative.title.clone(),
            },
            line: 0,
        });
    }
    rows
}

/// The number of each node.
fn place(session: &Session, links: &ParentLinks) -> HashMap<Index, usize> {
    let nodes = links.order.iter().filter(|&&at| {
        let record = &session.records[at as usize];
        record.thread == 0 && node_kind(record).is_some()
    });
    nodes
        .enumerate()
        .map(|(position, &at)| (at, position + 2))
        .collect()
}

fn node_kind(record: &EntryRecord) -> Option<&'static str> {
    match record.kind {
        LineKind::User if record.input.opens_turn() => Some(record.input.name()),
        LineKind::CompactBoundary => Some("compaction"),
        _ => None,
    }
}

/// The nearest node above a line; a compaction follows what it summarises.
fn above(
    session: &Session,
    links: &ParentLinks,
    nodes: &HashMap<Index, usize>,
    at: Index,
) -> usize {
    let mut left = links.order.len() + 1;
    let mut here = at;
    while left > 0 {
        left -= 1;
        let logical = || session.find(session.logical_parent(here)?);
        let Some(parent) = links.above(here).or_else(logical) else {
            return 1;
        };
        if let Some(&node) = nodes.get(&parent) {
            return node;
        }
        here = parent;
    }
    1
}

fn label(session: &Session, source: &dyn TranscriptSource, record: &EntryRecord) -> String {
    if let Some(boundary) = session.boundary_of(record) {
        let tokens = |tokens: Option<u64>| {
            tokens.map_or_else(|| "?".to_owned(), |tokens| tokens.to_string())
        };
        return format!(
            "{} → {} tokens",
            tokens(boundary.before),
            tokens(boundary.after)
        );
    }
    entry::clip(
        &crate::block::one_line(&turns::prompt(session, source, record)),
        120,
    )
}
