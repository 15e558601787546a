//! The conversation as one chain that every client reads alike, and its end where every
//! client looks for it.

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

use super::RepairedFault;
use super::repair_plan::RepairPlanner;
use crate::bitset::NumberLists;
use crate::block::BlockKind;
use crate::edit::copy_identity::made;
use crate::edit::inserted_lines::{self, LineEnvelope, LineStamp};
use crate::edit::relink;
use crate::entry::LineKind;
use crate::graph::{self, ParentLinks};
use crate::id::Id;
use crate::session::{Index, Session, TranscriptRole};
use crate::time::Time;

/// What a call says that never got a result.
pub const NO_RESULT: &str = "[unspool repair: the result of this call is not in the transcript; \
     it was interrupted, or its result was lost. Whether it took effect is not known.]";

/// A line of the conversation: one that is there, or a result of ours.
struct ChainLine {
    id: Id,
    record: Option<Index>,
    answers: Option<(Index, Index)>,
}

/// The conversation in order, of lines that are links for every client.
pub(super) struct ConversationChain {
    links: Vec<ChainLine>,
    /// Where each line stands.
    places: HashMap<Index, usize>,
}

impl ConversationChain {
    pub(super) fn of(mender: &mut RepairPlanner<'_>) -> ConversationChain {
        drop_boundaries(mender);
        let skipped = preserved(mender.session, &mender.links, &mender.live);
        let mut links = Vec::new();
        for &at in &mender.live {
            let record = mender.record(at);
            let stays = !mender.plan.is_dropped(at) && !skipped.contains(&at);
            let Some(id) = record
                .uuid
                .clone()
                .filter(|_| stays && !record.is_duplicate())
            else {
                continue;
            };
            if record.kind.is_link() {
                links.push(ChainLine {
                    id,
                    record: Some(at),
                    answers: None,
                });
            }
        }
        let mut chain = ConversationChain {
            links,
            places: HashMap::new(),
        };
        chain.index();
        chain.answer(mender);
        chain.index();
        chain
    }

    fn index(&mut self) {
        let records = self.links.iter().map(|link| link.record);
        self.places = records
            .zip(0..)
            .filter_map(|(at, n)| Some((at?, n)))
            .collect();
    }

    /// The last line of the chain that is in the file.
    fn last(&self) -> Option<Index> {
        self.links.iter().rev().find_map(|link| link.record)
    }

    /// Calls without results get one: in the chain behind their message, elsewhere beside it.
    fn answer(&mut self, mender: &mut RepairPlanner<'_>) {
        let session = mender.session;
        let end = self.last().unwrap_or(session.records.len() as Index);
        let unanswered = std::mem::take(&mut mender.unanswered);
        let mut unanswered: Vec<_> = unanswered
            .into_iter()
            .filter(|&(at, block)| !mender.plan.is_removed(at, block))
            .collect();
        unanswered.sort_unstable();
        let mut added: HashMap<usize, Vec<ChainLine>> = HashMap::new();
        for call in unanswered {
            let id = new_id(mender, call);
            if let Some(&place) = self.places.get(&call.0) {
                let place = self.behind(mender, place, mender.record(call.0).message());
                added.entry(place).or_default().push(ChainLine {
                    id,
                    record: None,
                    answers: Some(call),
                });
            } else if let Some(parent) = mender.record(call.0).uuid.clone() {
                let time = mender.time(call.0).unwrap_or(Time(0));
                let line = result(mender, call, &id, &parent, time);
                mender.plan.insert((call.0 + 1).min(end), line);
            }
        }
        let links = std::mem::take(&mut self.links);
        for (place, link) in links.into_iter().enumerate() {
            self.links.push(link);
            self.links
                .extend(added.remove(&place).into_iter().flatten());
        }
    }

    /// The place of the last line of a message and its results, from one of them on.
    fn behind(&self, mender: &RepairPlanner<'_>, place: usize, message: Option<Index>) -> usize {
        let own = |link: &&ChainLine| {
            let record = link.record.map(|at| mender.record(at));
            record.is_some_and(|record| record.message().is_some() && record.message() == message)
        };
        place + self.links[place + 1..].iter().take_while(own).count()
    }

    /// The first line may belong to a message whose results stand before it, and so follow
    /// what will come behind it. Then it follows nothing: one chain has no room for both.
    fn begin(&self, mender: &mut RepairPlanner<'_>) {
        let Some(first) = self.links.first().and_then(|link| link.record) else {
            return;
        };
        let above = |&at: &Index| mender.session.find(mender.parent(at)?);
        let ancestors = std::iter::successors(above(&first), above);
        let mut ancestors = ancestors.take(mender.session.records.len());
        if !ancestors.any(|at| self.places.contains_key(&at)) {
            return;
        }
        mender.plan.set_parent(first, None);
        // What was said about its parent is no longer so.
        let line = mender.record(first).line;
        let other = |done: &RepairedFault| {
            done.line != line || !matches!(done.kind, "missing_parent" | "cycle")
        };
        mender.mended.retain(other);
        let what = "broke a parent cycle; the conversation now begins here";
        mender.note(first, "cycle", what);
    }

    /// Lets each line follow the one before it.
    pub(super) fn link(&self, mender: &mut RepairPlanner<'_>) {
        self.begin(mender);
        let end = self.last();
        let mut before: Option<&ChainLine> = None;
        for (nth, link) in self.links.iter().enumerate() {
            let Some(parent) = before.replace(link) else {
                continue;
            };
            match (link.record, link.answers) {
                (Some(at), _) if mender.parent(at) != Some(&parent.id) => {
                    mender.plan.set_parent(at, Some(parent.id.clone()));
                    self.note(mender, at, parent);
                }
                (None, Some(call)) => {
                    let time = self.time_between(mender, nth);
                    let line = result(mender, call, &link.id, &parent.id, time);
                    let last = self.links[..nth].iter().rev().find_map(|it| it.record);
                    let file = last.unwrap_or(call.0) + 1;
                    mender.plan.insert(file.min(end.unwrap_or(file)), line);
                }
                _ => {}
            }
        }
    }

    fn note(&self, mender: &mut RepairPlanner<'_>, at: Index, parent: &ChainLine) {
        if mender.broken.contains(&at) {
            return;
        }
        let Some(before) = parent.record else { return };
        let line = mender.record(before).line;
        let is_result = |at: Index| {
            let mut blocks = mender.session.blocks_of(mender.record(at)).iter();
            blocks.any(|block| matches!(block.kind, BlockKind::ToolResult | BlockKind::ToolUse))
        };
        let (kind, why) = if is_result(before) || is_result(at) {
            (
                "parallel_results",
                "clients before 2.1.100 lose parallel calls otherwise",
            )
        } else {
            (
                "broken_chain",
                "some clients lose the lines before it otherwise",
            )
        };
        mender.note(at, kind, format!("set its parent to line {line}: {why}"));
    }

    fn time_between(&self, mender: &RepairPlanner<'_>, nth: usize) -> Time {
        let time = |link: &ChainLine| mender.time(link.record?);
        let before = self.links[..nth]
            .iter()
            .rev()
            .find_map(time)
            .unwrap_or(Time(0));
        let behind = self.links[nth..].iter().find_map(time);
        match behind {
            Some(behind) if behind.0 > before.0 + 1 => Time(before.0 + 1),
            _ => before,
        }
    }

    /// The place of the last line that says something.
    fn said(&self, mender: &RepairPlanner<'_>) -> Option<usize> {
        let said = |link: &ChainLine| {
            link.record
                .is_some_and(|at| mender.record(at).is_conversation())
        };
        self.links.iter().rposition(said)
    }

    /// No client goes on from a line that is marked as a sub-agent's.
    pub(super) fn own(&self, mender: &mut RepairPlanner<'_>) {
        let last = self.said(mender).and_then(|said| self.links[said].record);
        let Some(at) = last.filter(|&at| mender.record(at).is_sidechain()) else {
            return;
        };
        if mender.session.role() == TranscriptRole::Main {
            mender.plan.entry(at).own = true;
            let what = "removed the sub-agent mark from the last line of the conversation";
            mender.note(at, "sidechain", what);
        }
    }

    /// Clients before 2.1.200 go on from the newest line, so that the end must be it.
    pub(super) fn newest(&self, mender: &mut RepairPlanner<'_>) {
        let Some(said) = self.said(mender) else {
            return;
        };
        let children = children(mender);
        let solid = self.tail(mender, said, &children, LineKind::is_link);
        let own: Vec<Index> = self.candidates(mender);
        // The oldest do not see beyond `progress` lines, then they are links, then passed through.
        let ends_well = |counts: bool, passes: bool| {
            let knows = |kind: LineKind| passes && kind == LineKind::Progress || kind.is_link();
            let good = self.tail(mender, said, &children, knows);
            let counts = |at: &&Index| counts || mender.record(**at).kind != LineKind::Progress;
            let newest = own.iter().filter(counts).copied().reduce(|best, at| {
                let (now, then) = (mender.time(at), mender.time(best));
                if now > then { at } else { best }
            });
            newest.is_none_or(|at| good.contains(&at))
        };
        if ends_well(false, false) && ends_well(true, true) && ends_well(false, true) {
            return;
        }
        let others = own.iter().filter(|at| !solid.contains(at));
        let Some(mut newest) = others.filter_map(|&at| mender.time(at)).max() else {
            return;
        };
        let records = self.links[said..].iter().filter_map(|link| link.record);
        for at in records.collect::<Vec<_>>() {
            if mender.time(at) <= Some(newest) {
                newest = Time(newest.0 + 1);
                mender.set_time(at, newest);
                let what = "gave it the newest timestamp: clients before 2.1.200 resume from there";
                mender.note(at, "not_newest", what);
            } else {
                newest = mender.time(at).unwrap_or(newest);
            }
        }
    }

    /// Lines that clients may go on from, in the order of the file.
    fn candidates(&self, mender: &RepairPlanner<'_>) -> Vec<Index> {
        let agent = mender.session.role() == TranscriptRole::Agent;
        let own = |at: &Index| {
            let record = mender.record(*at);
            let linked = record.kind.is_link() || record.kind == LineKind::Progress;
            let freed = mender.plan.changes.get(at).is_some_and(|change| change.own);
            linked && (agent || !record.is_sidechain() || freed) && !mender.plan.is_dropped(*at)
        };
        mender.links.order.iter().copied().filter(own).collect()
    }

    /// Lines from which the whole conversation is read: its end, and what follows that.
    /// Lines of other kinds than those that `knows` chooses lead nowhere.
    fn tail(
        &self,
        mender: &RepairPlanner<'_>,
        said: usize,
        children: &NumberLists,
        knows: impl Fn(LineKind) -> bool,
    ) -> HashSet<Index> {
        let mut good: HashSet<Index> = HashSet::new();
        good.extend(self.links[said..].iter().filter_map(|link| link.record));
        let mut next: Vec<Index> = good.iter().copied().collect();
        while let Some(at) = next.pop() {
            for child in children.get(at) {
                if knows(mender.record(child).kind) && good.insert(child) {
                    next.push(child);
                }
            }
        }
        good
    }

    /// Clients from 2.1.200 on go on from the last line or from one that a line names; both
    /// must lead to the whole conversation.
    pub(super) fn lead(&self, mender: &mut RepairPlanner<'_>) {
        let Some(said) = self.said(mender) else {
            return;
        };
        // These clients bring back the other lines of a message.
        let message = self.links[said]
            .record
            .and_then(|at| mender.record(at).message());
        let same = |link: &&ChainLine| {
            let own = link.record.and_then(|at| mender.record(at).message());
            own.is_some() && own == message
        };
        let beside = self.links[..said].iter().rev().take_while(same).count();
        let good = self.tail(mender, said - beside, &children(mender), |_| true);
        let own = self.candidates(mender);
        let is_client = |at: &&Index| mender.record(**at).kind != LineKind::Progress;
        let clients = own.iter().rev().find(is_client).copied();
        let ours = mender.links.order.iter().rev().copied().find(|&at| {
            let record = mender.record(at);
            let passed = matches!(record.kind, LineKind::Progress | LineKind::Unknown);
            record.thread == 0 && !passed && !mender.plan.is_dropped(at)
        });
        let (named, explicit) = self.named(mender);
        let goes_on = |last: Option<Index>, named: Option<Index>| {
            let last = last?;
            match named {
                Some(named) if explicit || !self.leads(mender, last, named) => Some(named),
                _ => Some(last),
            }
        };
        let linked = named.filter(|&at| mender.record(at).kind.is_link());
        let threaded = named.filter(|&at| mender.record(at).thread == 0);
        let fine = |at: Option<Index>| at.is_none_or(|at| good.contains(&at));
        if fine(goes_on(clients, linked)) && fine(goes_on(ours, threaded)) {
            return;
        }
        let Some(leaf) = self.last() else { return };
        let Some(id) = mender.record(leaf).uuid.clone() else {
            return;
        };
        let session = mender.session.first_session_id.as_ref();
        let session = session.map(ToString::to_string).unwrap_or_default();
        let end = mender.session.records.len() as Index;
        let follows = |last: Option<Index>| {
            last.is_some_and(|last| last != leaf && self.leads(mender, last, leaf))
        };
        let explicit = explicit || follows(clients) || follows(ours);
        // What the plan would say was the end before the lines were brought in order.
        mender.plan.note = None;
        mender
            .plan
            .insert(end, inserted_lines::last_prompt(&session, &id, explicit));
        let what = "added a line that marks where the conversation resumes";
        mender.note(leaf, "not_last", what);
    }

    /// The line that the last `last-prompt` will name, and whether it counts in any case.
    fn named(&self, mender: &RepairPlanner<'_>) -> (Option<Index>, bool) {
        let session = mender.session;
        if let Some((_, leaf)) = &mender.plan.note {
            return (session.find(leaf), true);
        }
        // Not what the session says: a compaction that is taken out forgets nothing.
        let Some((_, leaf, _)) = relink::last_note(&mender.plan, session) else {
            return (None, false);
        };
        let explicit = session.last_prompt.as_ref().is_some_and(|said| said.1);
        let leaf = leaf.and_then(|leaf| mender.named(leaf));
        (leaf.and_then(|leaf| session.find(leaf)), explicit)
    }

    /// Whether walking up from one line comes to another. A compaction ends the walk.
    fn leads(&self, mender: &RepairPlanner<'_>, from: Index, to: Index) -> bool {
        let find = |id: &Id| mender.session.find(id);
        let mut next = Some(from);
        for _ in 0..=mender.session.records.len() {
            match next {
                Some(at) if at == to => return true,
                Some(at) if mender.record(at).kind.is_boundary() => return false,
                Some(at) => {
                    next = mender
                        .parent(at)
                        .and_then(|id| find(id).or_else(|| self.before_new(id)));
                }
                None => return false,
            }
        }
        false
    }

    /// The line before a result of ours.
    fn before_new(&self, id: &Id) -> Option<Index> {
        let place = self.links.iter().position(|link| link.id == *id)?;
        self.links[..place]
            .iter()
            .rev()
            .find_map(|link| link.record)
    }
}

/// A compaction that no summary follows has nothing to say instead of what it cuts off.
fn drop_boundaries(mender: &mut RepairPlanner<'_>) {
    let live = mender.live.clone();
    let kept = preserved(mender.session, &mender.links, &live);
    for &at in live.iter().skip(1).filter(|at| !kept.contains(at)) {
        if mender.record(at).kind.is_boundary() && !mender.plan.is_dropped(at) {
            mender.plan.drop(at);
            let named = mender.record(at).uuid.is_some();
            let above = live.iter().take_while(|&&other| other != at).copied();
            let above = above.filter(|&at| !mender.plan.is_dropped(at)).last();
            let above = above.filter(|&at| mender.record(at).uuid.is_some());
            if named {
                mender.plan.redirect.set(at, above);
                mender.plan.history.set(at, above);
            }
            let what = "removed a compaction without a summary: it would hide everything before it";
            mender.note(at, "no_summary", what);
        }
    }
    adopt(mender);
}

/// Lines that follow one that went follow the one that stands for it.
fn adopt(mender: &mut RepairPlanner<'_>) {
    let order = mender.links.order.clone();
    for &at in order.iter() {
        let parent = mender
            .parent(at)
            .and_then(|id| mender.plan.redirect.get(mender.session, id));
        if let (Some(parent), false) = (parent, mender.plan.is_dropped(at)) {
            mender.plan.set_parent(at, parent.cloned());
        }
    }
}

/// The lines that will follow each line.
fn children(mender: &RepairPlanner<'_>) -> NumberLists {
    let order = mender.links.order.iter().copied();
    let stays = order.filter(|&at| !mender.plan.is_dropped(at));
    let above = stays.filter_map(|at| Some((mender.session.find(mender.parent(at)?)?, at)));
    above.collect()
}

/// Lines that the compaction at the start kept: they are put back by name, not by parents, so
/// that clients before 2.1.200 do not know of them.
pub(in crate::edit) fn preserved(
    session: &Session,
    links: &ParentLinks,
    live: &[Index],
) -> HashSet<Index> {
    let is_boundary = |at: &Index| session.records[*at as usize].kind.compacts();
    if !live.first().is_some_and(is_boundary) {
        return HashSet::new();
    }
    let mut walk: HashSet<Index> = HashSet::new();
    let leaf = graph::live_leaf(session, links);
    let mut next = leaf;
    // A compaction at the end may also be the beginning, of lines that stand before it.
    let begins = |at: Index| Some(&at) == live.first() && Some(at) != leaf;
    while let Some(at) = next.filter(|&at| walk.insert(at) && !begins(at)) {
        // A compaction without a summary is passed.
        let before = || {
            session
                .find(session.logical_parent(at)?)
                .filter(|&it| it < at)
        };
        let above = || {
            links.order[..links.order.partition_point(|&it| it < at)]
                .last()
                .copied()
        };
        let passed = || is_boundary(&at).then(|| before().or_else(above)).flatten();
        next = links.above(at).or_else(passed);
    }
    let message = |at: Index| session.records[at as usize].message();
    let calls = session.calls.iter().filter_map(|call| {
        let answer = call.result.as_ref()?.record;
        Some((answer, message(call.record)?))
    });
    let answers: HashMap<Index, Index> = calls.collect();
    let family = |at: Index| message(at).or_else(|| answers.get(&at).copied());
    let walked: HashSet<Index> = walk.iter().filter_map(|&at| message(at)).collect();
    let kept = live.iter().copied().filter(|at| !walk.contains(at));
    kept.filter(|&at| family(at).is_none_or(|message| !walked.contains(&message)))
        .collect()
}

fn new_id(mender: &RepairPlanner<'_>, (at, block): (Index, Index)) -> Id {
    let call = &mender.session.blocks[block as usize];
    let call = mender.session.id_of(call).unwrap_or_default();
    let own = mender
        .record(at)
        .uuid
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    let mut seed = 0x5e11;
    loop {
        let id = made(seed, &Id::new(&format!("{call} {own}")));
        if mender.session.find(&id).is_none() {
            return id;
        }
        seed += 1;
    }
}

fn result(
    mender: &RepairPlanner<'_>,
    (at, block): (Index, Index),
    id: &Id,
    parent: &Id,
    time: Time,
) -> String {
    let record = mender.record(at);
    let bytes = mender.session.bytes_of(mender.source, record);
    let call = &mender.session.blocks[block as usize];
    let call = mender.session.id_of(call).unwrap_or_default();
    let own = record.uuid.clone().unwrap_or_else(|| parent.clone());
    let stamp = LineStamp { uuid: id, time };
    inserted_lines::tool_result(
        &LineEnvelope::of(&bytes),
        stamp,
        parent,
        (call, &own),
        NO_RESULT,
    )
}
