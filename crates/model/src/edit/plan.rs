//! What becomes of each line.

use std::borrow::Cow;
use std::collections::BTreeMap;

use foldhash::{HashMap, HashMapExt};

use super::copy_identity::CopyIdentity;
use super::edit_loss::LossCounts;
use super::replacement_map::ReplacementMap;
use super::truncate::TextTruncation;
use super::{EditLoss, LossKind};
use super::{inserted_lines, relink};
use crate::bitset::BitSet;
use crate::entry::LineKind;
use crate::id::Id;
use crate::session::{EntryRecord, Index, Session};
use crate::time::Time;
use crate::title;
use crate::token_estimate;
use crate::view::client_profile::ClientProfile;
use crate::view::messages;

/// What becomes of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockChange {
    /// It goes.
    Remove,
    /// Its texts are made shorter.
    Cut(TextTruncation),
    /// It says something else.
    Say(Box<str>),
}

/// What becomes of `toolUseResult`, the copy of a result that only the screen uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResultCopyChange {
    Remove,
    Cut(TextTruncation),
}

/// What becomes of a line that stays.
#[derive(Clone, Debug, Default)]
pub(super) struct LineChange {
    /// By the number of the block in the session.
    pub(super) blocks: BTreeMap<Index, BlockChange>,
    pub(super) copy: Option<ResultCopyChange>,
    /// The message lost its calls.
    pub(super) ends_turn: bool,
    /// Another parent; `Some(None)`: none.
    pub(super) parent: Option<Option<Id>>,
    /// The name of that parent is the one it has in the new file.
    pub(super) parent_named: bool,
    pub(super) time: Option<Time>,
    /// It is no line of a sub-agent, whatever it says.
    pub(super) own: bool,
    /// To how many percent its texts were shortened.
    pub(super) mark: Option<u8>,
}

/// How the plan is made whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanSettings {
    /// Parallel results stay a tree, and equal times stay equal.
    pub keep_tree: bool,
}

/// What was done, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanCounts {
    /// Calls that are no longer there, also those of turns that go.
    pub calls_removed: u64,
    /// Calls that are cut short, alone or with their results.
    pub calls_truncated: u64,
    /// Blocks of thinking that go.
    pub thinking_removed: u64,
    /// Lines whose texts were written shorter by a model.
    pub texts_shortened: u64,
}

/// What becomes of each line of a session, by record.
#[derive(Clone, Debug)]
pub struct EditPlan {
    dropped: BitSet,
    /// Blocks that go. There may be as many as lines, so that they are no changes of lines.
    removed: BitSet,
    /// Records whose copy of a result for the screen goes.
    copyless: BitSet,
    /// Records of messages that lost their calls.
    callless: BitSet,
    /// What else becomes of lines that stay.
    pub(super) changes: HashMap<Index, LineChange>,
    /// Lines to be put in front of a record; behind the last one under the number of records.
    pub(super) inserted: BTreeMap<Index, Vec<String>>,
    /// Lines whose ids go, and which line stands for them now.
    pub(super) redirect: ReplacementMap,
    /// The same for the backups of files, which belong to a turn.
    pub(super) history: ReplacementMap,
    /// What was done; counted when the plan is made whole.
    pub counts: PlanCounts,
    /// The line the conversation is to go on from, if it is another one than before.
    pub(super) end: Option<Index>,
    /// The line that says where to go on, if there is one, and what it has to say.
    pub(super) note: Option<(Option<Index>, Id)>,
    losses: LossCounts,
    live: BitSet,
    /// What our own rules would send.
    sent: BitSet,
}

impl EditPlan {
    /// A plan that changes nothing.
    pub fn new(session: &Session) -> EditPlan {
        let links = crate::graph::links(session);
        let sent = messages::live_lines(session, ClientProfile::Strict);
        EditPlan {
            dropped: BitSet::default(),
            removed: BitSet::default(),
            copyless: BitSet::default(),
            callless: BitSet::default(),
            changes: HashMap::new(),
            inserted: BTreeMap::new(),
            redirect: ReplacementMap::default(),
            history: ReplacementMap::default(),
            counts: PlanCounts::default(),
            end: None,
            note: None,
            losses: LossCounts::default(),
            live: crate::graph::live(session, &links),
            sent: sent.into_iter().collect(),
        }
    }

    /// Lets the conversation go on from another line.
    pub(super) fn go_on_from(&mut self, session: &Session, end: Index) {
        let sent = messages::lines_from(session, ClientProfile::Strict, end);
        self.sent = sent.into_iter().collect();
        self.end = Some(end);
    }

    /// Whether a record is on the branch that goes on.
    pub fn is_live(&self, record: Index) -> bool {
        self.live.contains(record)
    }

    /// Whether the model would get to see a record: not if it was rewound or summarised.
    pub fn is_sent(&self, record: Index) -> bool {
        self.sent.contains(record)
    }

    /// Whether a record goes.
    pub fn is_dropped(&self, record: Index) -> bool {
        self.dropped.contains(record)
    }

    /// Records that go, in order.
    pub(super) fn dropped(&self) -> impl Iterator<Item = Index> {
        self.dropped.iter()
    }

    /// Lets a record go.
    pub fn drop(&mut self, record: Index) {
        self.dropped.insert(record);
    }

    /// Whether a block goes, with its line or without.
    pub fn is_removed(&self, record: Index, block: Index) -> bool {
        self.is_dropped(record) || self.removed.contains(block)
    }

    /// What becomes of a block, if anything.
    pub fn change(&self, record: Index, block: Index) -> Option<&BlockChange> {
        if self.removed.contains(block) {
            return Some(&BlockChange::Remove);
        }
        self.changes.get(&record)?.blocks.get(&block)
    }

    /// Lets a block go.
    pub fn remove_block(&mut self, _record: Index, block: Index) {
        self.removed.insert(block);
    }

    /// Makes the texts of a block shorter, unless it goes anyway.
    pub fn cut_block(&mut self, record: Index, block: Index, cutter: TextTruncation) {
        if !self.is_removed(record, block) {
            let change = self.changes.entry(record).or_default();
            change.blocks.insert(block, BlockChange::Cut(cutter));
        }
    }

    /// Lets a block of text say something else, unless it goes anyway.
    pub fn say(&mut self, record: Index, block: Index, text: &str) {
        if !self.is_removed(record, block) {
            let change = self.changes.entry(record).or_default();
            change.blocks.insert(block, BlockChange::Say(text.into()));
        }
    }

    /// Lets the copy of a result for the screen go.
    pub fn remove_copy(&mut self, record: Index) {
        self.copyless.insert(record);
    }

    /// Makes the texts of the copy of a result for the screen shorter.
    pub fn cut_copy(&mut self, record: Index, cutter: TextTruncation) {
        if !self.copyless.contains(record) {
            let change = self.changes.entry(record).or_default();
            change.copy = change.copy.or(Some(ResultCopyChange::Cut(cutter)));
        }
    }

    /// Lets a record say that its message ends the turn: it lost its calls.
    pub(super) fn end_turn(&mut self, record: Index) {
        self.callless.insert(record);
    }

    /// Marks a record as shortened to so many percent.
    pub(super) fn mark(&mut self, record: Index, percent: u8) {
        self.changes.entry(record).or_default().mark = Some(percent);
    }

    /// Takes away what says where to go on, except for the last of them, and that too if lines of
    /// the conversation follow it: in a copy only the end says where to go on. Call it before the
    /// plan is made whole, which says it anew where it must be said.
    pub fn note_at_end_only(&mut self, session: &Session) {
        let all = || (0..).zip(&session.records);
        let is_note = |record: &EntryRecord| record.kind == LineKind::LastPrompt;
        let notes = all().filter(|(_, record)| is_note(record));
        let last = notes.clone().max_by_key(|(_, record)| record.offset);
        let chain = all().filter(|(_, record)| record.in_chain());
        let end = chain.map(|(_, record)| record.offset).max();
        let stays = last.filter(|(_, record)| end.is_none_or(|end| end < record.offset));
        let stays = stays.map(|(at, _)| at);
        for (at, _) in notes.filter(|(at, _)| Some(*at) != stays) {
            self.drop(at);
        }
    }

    /// Gives a record another parent.
    pub fn set_parent(&mut self, record: Index, parent: Option<Id>) {
        self.changes.entry(record).or_default().parent = Some(parent);
    }

    /// Gives a record another time.
    pub fn set_time(&mut self, record: Index, time: Time) {
        self.changes.entry(record).or_default().time = Some(time);
    }

    /// Puts a line in front of a record; behind all of them if there is no such record.
    pub fn insert(&mut self, before: Index, line: String) {
        self.inserted.entry(before).or_default().push(line);
    }

    /// Puts in a title for old clients in front, and one for new clients at the end, where it
    /// counts. The plan must be settled.
    pub fn add_titles(&mut self, session: &Session, identity: &CopyIdentity, title: &str) {
        let links = crate::graph::links(session);
        let leaf = relink::leaf(self, session, &links);
        let leaf = leaf.and_then(|at| session.records[at as usize].uuid.as_ref());
        if let Some(leaf) = leaf {
            self.insert(
                0,
                inserted_lines::summary(title, &identity.line(leaf).to_string()),
            );
        }
        let end = session.records.len() as Index;
        self.insert(end, title::line(&identity.session, title));
    }

    /// Notes what the model will no longer see. What it would not have seen is no loss.
    pub fn lose(&mut self, session: &Session, record: Index, loss: LossKind, blocks: &[Index]) {
        if self.is_sent(record) {
            let sum = blocks
                .iter()
                .map(|&at| token_estimate::of_block(&session.blocks[at as usize]))
                .sum();
            self.losses.add(loss, 1, sum);
        }
    }

    /// The same where the tokens are known otherwise.
    pub fn lose_tokens(&mut self, loss: LossKind, count: u64, tokens: u64) {
        self.losses.add(loss, count, tokens);
    }

    /// What the model will no longer see.
    pub fn lost(&self) -> Vec<EditLoss> {
        self.losses.list()
    }

    pub(super) fn losses(&self) -> &LossCounts {
        &self.losses
    }

    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        let sets = [&self.dropped, &self.removed, &self.copyless, &self.callless];
        sets.iter().all(|set| set.is_empty()) && self.changes.is_empty() && self.inserted.is_empty()
    }

    /// Whether a pen would write every line as it is.
    pub(super) fn is_idle(&self) -> bool {
        self.is_empty() && self.note.is_none()
    }

    /// Whether something becomes of a record or a block of it.
    pub(super) fn is_touched(&self, session: &Session, record: Index) -> bool {
        let mut blocks = session.records[record as usize].blocks.clone();
        self.is_dropped(record)
            || self.copyless.contains(record)
            || self.callless.contains(record)
            || blocks.any(|block| self.removed.contains(block))
            || self.changes.contains_key(&record)
    }

    /// Everything that becomes of a line that stays.
    pub(super) fn whole_change(
        &self,
        session: &Session,
        record: Index,
    ) -> Option<Cow<'_, LineChange>> {
        let known = self.changes.get(&record);
        let blocks = session.records[record as usize].blocks.clone();
        let goes = |block: &Index| self.removed.contains(*block);
        let marked = self.copyless.contains(record) || self.callless.contains(record);
        if !marked && !blocks.clone().any(|block| goes(&block)) {
            return known.map(Cow::Borrowed);
        }
        let mut change = known.cloned().unwrap_or_default();
        let removed = blocks.filter(goes);
        let removed = removed.map(|block| (block, BlockChange::Remove));
        change.blocks.extend(removed);
        if self.copyless.contains(record) {
            change.copy = Some(ResultCopyChange::Remove);
        }
        change.ends_turn = self.callless.contains(record);
        Some(Cow::Owned(change))
    }

    /// Forgets what becomes of lines that go anyway.
    pub(super) fn forget_dropped(&mut self) {
        self.changes.retain(|at, _| !self.dropped.contains(*at));
        self.changes.shrink_to_fit();
    }

    pub(super) fn entry(&mut self, record: Index) -> &mut LineChange {
        self.changes.entry(record).or_default()
    }
}
