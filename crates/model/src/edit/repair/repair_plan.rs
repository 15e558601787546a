//! What is wrong with what the lines say together, and the plan that mends it.

use foldhash::{HashMap, HashMapExt, HashSet};

use super::RepairedFault;
use super::chain::ConversationChain;
use crate::block::BlockKind;
use crate::edit::relink::KeptAncestors;
use crate::edit::{EditPlan, LossKind, PlanSettings};
use crate::graph::{self, ParentLinks};
use crate::id::Id;
use crate::log::TranscriptSource;
use crate::refused_content::{self, ContentSender, RefusalReason};
use crate::session::{EntryRecord, Index, Session};
use crate::time::Time;
use crate::view::check;
use crate::view::client_profile::ClientProfile;
use crate::view::messages;

/// Plans what makes a session whole whose lines can all be read, and says what it does.
///
/// This is one round: call it again on what was written, until it has nothing to say.
pub fn plan(session: &Session, source: &dyn TranscriptSource) -> (EditPlan, Vec<RepairedFault>) {
    let mut mender = RepairPlanner::new(session, source);
    mender.words();
    mender.calls();
    mender.tail();
    mender.thoughts();
    mender
        .plan
        .repair_paired_references(session, PlanSettings { keep_tree: true });
    mender.parents();
    mender.times();
    let chain = ConversationChain::of(&mut mender);
    chain.link(&mut mender);
    chain.own(&mut mender);
    chain.newest(&mut mender);
    chain.lead(&mut mender);
    (mender.plan, mender.mended)
}

/// A plan in the making.
pub(super) struct RepairPlanner<'a> {
    pub(super) session: &'a Session,
    pub(super) source: &'a dyn TranscriptSource,
    pub(super) plan: EditPlan,
    pub(super) mended: Vec<RepairedFault>,
    pub(super) links: ParentLinks,
    /// Lines whose parents are nowhere or their own descendants.
    pub(super) broken: HashSet<Index>,
    /// The conversation as we read it, in order.
    pub(super) live: Vec<Index>,
    /// Calls that get a result of ours: their records and blocks.
    pub(super) unanswered: Vec<(Index, Index)>,
    /// Times that lines get.
    pub(super) times: HashMap<Index, Time>,
}

impl<'a> RepairPlanner<'a> {
    fn new(session: &'a Session, source: &'a dyn TranscriptSource) -> RepairPlanner<'a> {
        let links = graph::links(session);
        RepairPlanner {
            session,
            source,
            plan: EditPlan::new(session),
            mended: Vec::new(),
            broken: links.missing.iter().chain(&links.cycles).copied().collect(),
            links,
            live: messages::live_lines(session, ClientProfile::Strict),
            unanswered: Vec::new(),
            times: HashMap::new(),
        }
    }

    pub(super) fn record(&self, at: Index) -> &'a EntryRecord {
        &self.session.records[at as usize]
    }

    pub(super) fn note(&mut self, at: Index, kind: &'static str, what: impl Into<String>) {
        let line = self.record(at).line;
        self.mended.push(RepairedFault::new(line, kind, what));
    }

    /// The parent a line will have.
    pub(super) fn parent(&self, at: Index) -> Option<&Id> {
        let planned = self.plan.changes.get(&at).and_then(|it| it.parent.as_ref());
        match planned {
            Some(parent) => parent.as_ref(),
            None => self.session.parent_of(self.record(at)),
        }
    }

    /// The id that will stand where another is named, if any will.
    pub(super) fn named<'b>(&'b self, id: &'b Id) -> Option<&'b Id> {
        let now = self.plan.redirect.get(self.session, id);
        now.unwrap_or(Some(id))
    }

    /// The time a line will have.
    pub(super) fn time(&self, at: Index) -> Option<Time> {
        self.times.get(&at).copied().or(self.record(at).at())
    }

    pub(super) fn set_time(&mut self, at: Index, time: Time) {
        self.times.insert(at, time);
        self.plan.set_time(at, time);
    }

    /// What the API refuses and no line could be mended for by itself: texts without a visible
    /// character, lines that say nothing, thinking that is not signed.
    fn words(&mut self) {
        let mut sender = ContentSender::new(self.session, ClientProfile::NEWEST);
        for refused in refused_content::in_session(self.session) {
            let at = refused.record;
            let text = |block: Index| self.session.blocks[block as usize].kind == BlockKind::Text;
            match (refused.refusal, refused.block) {
                (RefusalReason::EmptyMessage, _) => {
                    self.plan.drop(at);
                    self.note(at, "empty_message", "removed a line without content");
                }
                (RefusalReason::EmptyText, Some(block)) if text(block) => {
                    self.plan.remove_block(at, block);
                    let what = "removed an empty text: the API rejects it";
                    self.note(at, "empty_text", what);
                }
                (RefusalReason::UnsignedThinking, Some(block)) if !sender.is_foreign() => {
                    self.plan.remove_block(at, block);
                    self.plan.counts.thinking_removed += 1;
                    self.plan
                        .lose(self.session, at, LossKind::Thinking, &[block]);
                    let what = "removed thinking without a signature: the API rejects it";
                    self.note(at, "unsigned_thinking", what);
                }
                // Names, inputs and contents were mended line by line; calls go with their
                // results, and thinking that is left alone goes last.
                _ => {}
            }
        }
    }

    /// What the client itself said at the end: that a request failed, or nothing was asked.
    fn tail(&mut self) {
        let said = |mender: &RepairPlanner<'_>, at: Index| {
            let record = mender.record(at);
            let blocks = record.blocks.clone();
            record.is_conversation()
                && !mender.plan.is_dropped(at)
                && !blocks
                    .clone()
                    .all(|block| mender.plan.is_removed(at, block))
        };
        let spoken: Vec<Index> = self
            .live
            .iter()
            .copied()
            .filter(|&at| said(self, at))
            .collect();
        for &at in check::clients_own_end(self.session, &spoken) {
            self.plan.drop(at);
            let what = match self.record(at).is_api_error() {
                true => "removed an API error at the end: the conversation resumes before it",
                false => "removed a synthetic reply of the client at the end",
            };
            self.note(at, "error_tail", what);
        }
    }

    /// Messages of which only thinking is there.
    fn thoughts(&mut self) {
        for message in &self.session.messages {
            let lines = message.records.iter();
            let blocks = lines.flat_map(|&at| {
                let blocks = self.record(at).blocks.clone();
                blocks.map(move |block| (at, block))
            });
            let left: Vec<(Index, Index)> = blocks
                .filter(|&(at, block)| !self.plan.is_removed(at, block))
                .collect();
            let thinks = |block: Index| self.session.blocks[block as usize].kind.is_thinking();
            if !left.iter().all(|&(_, block)| thinks(block)) {
                continue;
            }
            for (at, block) in left {
                self.plan.remove_block(at, block);
                self.plan.counts.thinking_removed += 1;
                self.plan
                    .lose(self.session, at, LossKind::Thinking, &[block]);
                let what = "removed thinking that is not followed by text: the API rejects it";
                self.note(at, "thinking_alone", what);
            }
        }
    }

    /// Parents that are nowhere, and circles.
    fn parents(&mut self) {
        let links = self.links.clone();
        let mut up = KeptAncestors::new(self.session, &links);
        let missing = links.missing.iter().map(|&at| (at, false));
        let mut cycles = links.cycles.clone();
        cycles.sort_unstable();
        cycles.dedup();
        let all: Vec<(Index, bool)> = missing
            .chain(cycles.into_iter().map(|at| (at, true)))
            .collect();
        for (at, circle) in all {
            if self.plan.is_dropped(at) || self.record(at).uuid.is_none() {
                continue;
            }
            let begins = self.record(at).kind.compacts();
            let above = up.above(&self.plan, at).filter(|_| !begins);
            let parent = up.id(above);
            let follows = above.map_or_else(
                || "the conversation now begins here".to_owned(),
                |above| format!("its parent is now line {}", self.record(above).line),
            );
            let (kind, what) = match circle {
                true => ("cycle", format!("broke a parent cycle; {follows}")),
                false => (
                    "missing_parent",
                    format!("its parent was missing; {follows}"),
                ),
            };
            self.plan.set_parent(at, parent);
            self.note(at, kind, what);
        }
    }
}
