//! Who follows whom once lines are gone, so that every client reads the same conversation.

use foldhash::{HashMap, HashMapExt};

use super::plan::{EditPlan, PlanSettings};
use crate::bitset::{BitSet, NumberMap};
use crate::entry::{LineDetail, LineKind};
use crate::graph::{self, ParentLinks};
use crate::id::Id;
use crate::session::{EntryRecord, Index, Session};
use crate::time::Time;
use crate::view::client_profile::ClientProfile;
use crate::view::messages;

/// Points whatever named a line that goes to one that stays, and makes the live branch read
/// alike in every client.
pub(super) fn relink(plan: &mut EditPlan, session: &Session, settings: PlanSettings) {
    let links = graph::links(session);
    let mut up = KeptAncestors::new(session, &links);
    for &at in links.order.iter() {
        if !plan.is_dropped(at) {
            adopt(plan, session, &links, &mut up, at);
        }
    }
    redirect(plan, session, &mut up);
    let trees = match settings.keep_tree {
        true => UnorderedMessages::All,
        false => straighten(plan, session, &links, &mut up),
    };
    let leaf = leaf(plan, session, &links);
    let strayed = leaf.is_some_and(|leaf| steer(plan, session, &links, leaf, &trees));
    let before = graph::live_leaf(session, &links);
    let lost = before.is_some_and(|before| plan.is_dropped(before));
    // A line that was made the end must be the newest, whatever the clock said.
    let made_end = plan.end.is_some() || strayed && lost;
    let parts = made_end || !settings.keep_tree || newest_goes(plan, session, &links);
    if let Some(leaf) = leaf.filter(|_| parts) {
        part_ties(plan, session, &links, leaf, made_end);
    }
}

/// Whether the newest line goes, so that another one becomes the newest.
fn newest_goes(plan: &EditPlan, session: &Session, links: &ParentLinks) -> bool {
    let own = links
        .order
        .iter()
        .map(|&at| (at, &session.records[at as usize]));
    let own = own.filter(|(_, record)| record.thread == 0);
    let newest = own.max_by_key(|(_, record)| record.at());
    newest.is_some_and(|(at, _)| plan.is_dropped(at))
}

/// Says where to go on if the lines that stay would not say it themselves; whether they would
/// without help is said too.
fn steer(
    plan: &mut EditPlan,
    session: &Session,
    links: &ParentLinks,
    leaf: Index,
    trees: &UnorderedMessages,
) -> bool {
    let wanted = parents(plan, session, links);
    let own = |at: &Index| {
        let record = &session.records[*at as usize];
        let hangs = matches!(record.kind, LineKind::Progress | LineKind::Unknown);
        record.thread == 0 && !hangs && !plan.is_dropped(*at)
    };
    let Some(last) = links.order.iter().rev().copied().find(own) else {
        return false;
    };
    // An explicit note counts until the next line of the chain.
    let note = last_note(plan, session);
    let note = note.map(|(at, leaf, explicit)| (at, leaf, explicit && last < at));
    let named = note.and_then(|(_, leaf, explicit)| {
        let leaf = match plan.redirect.get(session, leaf?) {
            Some(other) => other?,
            None => leaf?,
        };
        Some((session.find(leaf).filter(own)?, explicit))
    });
    // Where the lines stay a tree, what a client makes of it stays too.
    let goes_on = |named| match trees {
        UnorderedMessages::All => graph::goes_on(session, &wanted, named, last),
        _ => graph::leads_to(session, &wanted, named, last),
    };
    let found = match named {
        Some((named, explicit)) if explicit || !goes_on(named) => named,
        _ => last,
    };
    // What only hangs below the last thing said is no other end.
    let said = |at: Index| {
        let spoken = |at: &Index| session.records[*at as usize].is_conversation();
        wanted.ancestors(at).find(spoken)
    };
    let families = MessageOfLine::new(session);
    let family = |at: Index| families.of(session, at);
    // Of calls and results in one order, all but the last would leave some behind; of a tree,
    // each of them brings the others along, and another one would bring them in another order.
    let mates = family(found).is_some() && family(found) == family(leaf);
    let same = mates && family(found).is_some_and(|family| trees.has(family))
        || wanted.ancestors(found).any(|at| at == leaf) && said(found) == said(leaf);
    if found == leaf || same {
        return false;
    }
    let note = note.map(|note| note.0);
    if let Some(at) = note.filter(|&at| at < last) {
        // It would count no longer: a new one at the end takes its place.
        plan.drop(at);
    }
    plan.note = session.records[leaf as usize]
        .uuid
        .clone()
        .map(|id| (note.filter(|&at| last < at), id));
    true
}

/// The last line that says where to go on, with what it says. A later compaction forgets it.
pub(super) fn last_note<'a>(
    plan: &EditPlan,
    session: &'a Session,
) -> Option<(Index, Option<&'a Id>, bool)> {
    let ends = |(at, record): &(usize, &EntryRecord)| {
        record.kind.is_boundary() && record.thread == 0 && !plan.is_dropped(*at as Index)
    };
    let all = session.records.iter().enumerate().rev();
    let all = all.take_while(|line| !ends(line));
    let mut notes = all.filter_map(|(at, record)| match session.detail_of(record)? {
        LineDetail::LastPrompt { leaf, explicit } => Some((at as Index, leaf.as_ref(), *explicit)),
        _ => None,
    });
    notes.find(|(at, leaf, _)| {
        // A note that names nothing which stays is not written.
        let gone = leaf.is_some_and(|leaf| plan.redirect.get(session, leaf) == Some(None));
        !plan.is_dropped(*at) && !gone
    })
}

/// The links as they will be.
fn parents(plan: &EditPlan, session: &Session, links: &ParentLinks) -> ParentLinks {
    let mut wanted = links.clone();
    for (&at, change) in &plan.changes {
        if let Some(parent) = &change.parent {
            wanted.set(at, parent.as_ref().and_then(|id| session.find(id)));
        }
    }
    wanted
}

/// The nearest ancestor that stays, remembered, so that long stretches cost nothing twice.
pub(super) struct KeptAncestors<'a> {
    session: &'a Session,
    links: &'a ParentLinks,
    known: NumberMap,
    /// Lines above which none stays.
    topmost: BitSet,
}

impl<'a> KeptAncestors<'a> {
    pub(super) fn new(session: &'a Session, links: &'a ParentLinks) -> KeptAncestors<'a> {
        KeptAncestors {
            session,
            links,
            known: NumberMap::default(),
            topmost: BitSet::default(),
        }
    }

    /// The nearest line above that stays.
    pub(super) fn above(&mut self, plan: &EditPlan, at: Index) -> Option<Index> {
        let above = self.nearest(plan, at);
        self.beside(plan, at, above).or(above)
    }

    /// What is left of the message that a line followed, where that is not above it: the next
    /// prompt may follow a block that goes, and the clients send all blocks of a message.
    fn beside(&self, plan: &EditPlan, at: Index, above: Option<Index>) -> Option<Index> {
        let record = |at: Index| &self.session.records[at as usize];
        let parent = self
            .links
            .above(at)
            .filter(|&parent| plan.is_dropped(parent))?;
        let message = record(parent).message()?;
        let has = |at: Index| record(at).message() == Some(message);
        if has(at) || above.is_some_and(has) {
            return None;
        }
        let lines = self.session.messages[message as usize].records.iter();
        let mut left = lines.rev().copied().filter(|&line| !plan.is_dropped(line));
        // Far enough up: what is before both stands above neither.
        let start = self.session.messages[message as usize].records.first();
        let start = start.map_or(at, |&first| first.min(at));
        let follows = |line: Index| {
            let mut up = self
                .links
                .ancestors(line)
                .take_while(|&above| above >= start);
            up.any(|above| above == at)
        };
        left.find(|&line| !follows(line))
    }

    fn nearest(&mut self, plan: &EditPlan, at: Index) -> Option<Index> {
        let mut path = Vec::new();
        let mut next = self.links.above(at);
        let found = loop {
            match next {
                Some(here) if !plan.is_dropped(here) => break Some(here),
                Some(here) => {
                    let known = self.known.get(here);
                    if known.is_some() || self.topmost.contains(here) {
                        break known;
                    }
                    path.push(here);
                    next = self.links.above(here);
                }
                None => break None,
            }
        };
        match found {
            Some(found) => path.iter().for_each(|&here| self.known.set(here, found)),
            None => self.topmost.extend(path),
        }
        found
    }

    pub(super) fn id(&self, at: Option<Index>) -> Option<Id> {
        at.and_then(|at| self.session.records[at as usize].uuid.clone())
    }
}

/// A line whose parent goes follows the nearest one above that stays.
fn adopt(
    plan: &mut EditPlan,
    session: &Session,
    links: &ParentLinks,
    up: &mut KeptAncestors<'_>,
    at: Index,
) {
    let record = &session.records[at as usize];
    let Some(parent) = links.above(at) else {
        return;
    };
    // A parent that is not in the file is a fault of the source, and stays one.
    let named = session.parent_at(record);
    if named == Some(parent) && plan.is_dropped(parent) {
        let above = up.above(plan, at);
        plan.set_parent(at, up.id(above));
    }
}

/// For everything else that names a line: which one stands for it now.
fn redirect(plan: &mut EditPlan, session: &Session, up: &mut KeptAncestors<'_>) {
    let turns = session.turn_finder();
    let turn_of = |at: usize| turns.of(&session.records[at]);
    let dropped =
        |plan: &EditPlan, at: usize| plan.is_dropped(at as Index) && session.records[at].in_chain();
    let mut later: HashMap<Index, Index> = HashMap::new();
    for at in (0..session.records.len()).rev() {
        let turn = turn_of(at);
        if dropped(plan, at) {
            let above = up.above(plan, at as Index);
            let same = above.filter(|&above| turn_of(above as usize) == turn);
            let same = same.or_else(|| later.get(&turn?).copied());
            plan.redirect.set(at as Index, above);
            plan.history.set(at as Index, same);
        } else if let (Some(turn), true) = (turn, session.records[at].in_chain()) {
            later.insert(turn, at as Index);
        }
    }
}

impl EditPlan {
    /// The nearest line that stays, before or behind one that goes.
    pub(super) fn neighbour(&self, session: &Session, id: &Id, towards: i64) -> Option<Id> {
        let mut at = i64::from(session.find(id)?);
        loop {
            at += towards;
            let record = session.records.get(usize::try_from(at).ok()?)?;
            // Not all clients find what is no link of their chain.
            let hangs = matches!(record.kind, LineKind::Progress | LineKind::Unknown);
            let stays = !hangs && !self.is_dropped(at as Index);
            if record.in_chain() && record.thread == 0 && stays {
                return record.uuid.clone();
            }
        }
    }
}

/// Messages whose calls and results were not given one order.
enum UnorderedMessages {
    All,
    Some(BitSet),
}

impl UnorderedMessages {
    fn has(&self, family: Index) -> bool {
        match self {
            UnorderedMessages::All => true,
            UnorderedMessages::Some(families) => families.contains(family),
        }
    }
}

/// Gives the lines of parallel calls one order: a chain without branches is the one form
/// that every client reads whole. Says which of them stay a tree.
fn straighten(
    plan: &mut EditPlan,
    session: &Session,
    links: &ParentLinks,
    up: &mut KeptAncestors<'_>,
) -> UnorderedMessages {
    let live = match plan.end {
        Some(end) => messages::lines_from(session, ClientProfile::Strict, end),
        None => messages::live_lines(session, ClientProfile::Strict),
    };
    // What stands before a compaction and is still sent is sent for another reason than that
    // something follows it: it was kept, or belongs to a message that was written again.
    let start = live
        .first()
        .copied()
        .filter(|&first| session.records[first as usize].kind.is_boundary());
    let live: Vec<Index> = live
        .into_iter()
        .filter(|&at| !plan.is_dropped(at) && session.records[at as usize].in_chain())
        .filter(|&at| start.is_none_or(|start| start <= at))
        .collect();
    let place: NumberMap = live.iter().copied().zip(0..).collect();
    let families = MessageOfLine::new(session);
    // What a compaction kept is named by its first and last line, and must stay between them.
    let kept = named(plan, session);
    let kept = kept.iter();
    let mut kept: BitSet = kept.filter_map(|at| families.of(session, at)).collect();
    kept.extend(families.forked(plan, session, links, &live));
    kept.extend(families.broken(session, links));
    kept.extend(families.newest(session, &live));
    let mut used = BitSet::default();
    let last = live.last().copied();
    let walk = last.into_iter().flat_map(|last| links.ancestors(last));
    let on_walk: BitSet = walk.collect();
    let mut wishes: Vec<(Index, Index)> = Vec::new();
    for (nth, pair) in live.windows(2).enumerate() {
        let (before, at) = (pair[0], pair[1]);
        let Some(path) = path_to(plan, up, at, &place) else {
            return UnorderedMessages::All;
        };
        let Some(&found) = path.last().filter(|&&here| place.get(here).is_some()) else {
            continue;
        };
        let below = &path[..path.len() - 1];
        let lowest = *below
            .last()
            .filter(|&&last| !used.contains(last))
            .unwrap_or(&at);
        used.extend(below.iter().copied());
        // What a tool or a hook wrote between two calls of which one stands beside the walk is not
        // sent, and not every client knows such lines: it stays beside them.
        let bypassed = below.len() > 1 && !on_walk.contains(at);
        let lowest = if bypassed { at } else { lowest };
        if found == before && !bypassed {
            continue;
        }
        // Only calls and results of one message stand beside the walk; all else is where it
        // belongs.
        let family = families.of(session, before);
        let is_family = |at: &Index| families.of(session, *at) == family;
        let between = match place.get(found).unwrap_or_default() as usize {
            above if above <= nth => &live[above + 1..=nth],
            below => &live[nth + 1..=below],
        };
        let may_move = family.is_some_and(|family| !kept.contains(family));
        if may_move && between.iter().all(is_family) {
            wishes.push((lowest, before));
        }
    }
    if !is_chain(plan, session, links, &wishes) {
        return UnorderedMessages::All;
    }
    let before: Vec<_> = wishes
        .iter()
        .map(|(at, _)| (*at, plan.changes.get(at).cloned()))
        .collect();
    for (at, parent) in wishes {
        plan.set_parent(at, session.records[parent as usize].uuid.clone());
    }
    if !says_the_same(plan, session, links, &live, start) {
        for (at, change) in before {
            match change {
                Some(change) => drop(plan.changes.insert(at, change)),
                None => drop(plan.changes.remove(&at)),
            }
        }
        return UnorderedMessages::All;
    }
    UnorderedMessages::Some(kept)
}

/// A line and the lines above it that stay, up to one that `place` knows.
fn path_to(
    plan: &EditPlan,
    up: &mut KeptAncestors<'_>,
    at: Index,
    place: &NumberMap,
) -> Option<Vec<Index>> {
    let mut path = vec![at];
    while let Some(here) = up.above(plan, path[path.len() - 1]) {
        path.push(here);
        if place.get(here).is_some() {
            break;
        }
        if path.len() > up.links.order.len() {
            return None;
        }
    }
    Some(path)
}

/// Whether walking up from any line still ends if these lines get these parents.
fn is_chain(
    plan: &EditPlan,
    session: &Session,
    links: &ParentLinks,
    wishes: &[(Index, Index)],
) -> bool {
    let mut wanted = parents(plan, session, links);
    for &(at, parent) in wishes {
        wanted.set(at, Some(parent));
    }
    !graph::has_cycle(&wanted)
}

/// Whether the conversation still has the lines that it should have, in their order.
fn says_the_same(
    plan: &EditPlan,
    session: &Session,
    links: &ParentLinks,
    live: &[Index],
    start: Option<Index>,
) -> bool {
    let Some(end) = leaf(plan, session, links) else {
        return true;
    };
    let says = |at: &Index| {
        let record = &session.records[*at as usize];
        let spoken = record.is_conversation() || record.kind == LineKind::QueuedCommand;
        spoken && !plan.is_dropped(*at) && start.is_none_or(|start| start <= *at)
    };
    let wanted = parents(plan, session, links);
    let now = messages::lines_by(session, &wanted, end).into_iter();
    now.filter(says).eq(live.iter().copied().filter(says))
}

/// Which message a line belongs to: its own, or the one whose call it answers.
struct MessageOfLine(NumberMap);

impl MessageOfLine {
    fn new(session: &Session) -> MessageOfLine {
        let answers = session.calls.iter().filter_map(|call| {
            let message = session.records[call.record as usize].message()?;
            Some((call.result.as_ref()?.record, message))
        });
        MessageOfLine(answers.collect())
    }

    fn of(&self, session: &Session, at: Index) -> Option<Index> {
        let own = session.records[at as usize].message();
        own.or_else(|| self.0.get(at))
    }

    /// Messages within which another branch begins. To clients that find all calls of a message
    /// by themselves, one order would hide those behind the fork from it.
    fn forked<'a>(
        &'a self,
        plan: &'a EditPlan,
        session: &'a Session,
        links: &'a ParentLinks,
        live: &[Index],
    ) -> impl Iterator<Item = Index> + 'a {
        let families = live.iter().copied();
        let last: NumberMap = families
            .filter_map(|at| Some((self.of(session, at)?, at)))
            .collect();
        let on_walk: BitSet = live.iter().copied().collect();
        links.order.iter().filter_map(move |&at| {
            let parent = links.above(at)?;
            let family = self.of(session, parent)?;
            let own = self.of(session, at) == Some(family);
            let stays = !plan.is_dropped(at) && session.records[at as usize].is_conversation();
            let inside = last.get(family).is_some_and(|last| last != parent);
            (stays && inside && !own && !on_walk.contains(at)).then_some(family)
        })
    }

    /// Messages in which a line names a parent that is not there, or none. Clients find such a
    /// line by other means, each by its own, and an order for the rest would hide it from some.
    fn broken<'a>(
        &'a self,
        session: &'a Session,
        links: &'a ParentLinks,
    ) -> impl Iterator<Item = Index> + 'a {
        let mut known = BitSet::default();
        links.order.iter().filter_map(move |&at| {
            let family = self.of(session, at)?;
            let first = known.insert(family);
            let found = session.parent_at(&session.records[at as usize]);
            let whole = found.is_some() && found == links.above(at);
            (!first && !whole).then_some(family)
        })
    }

    /// Messages with a line that is newer than the last one. Clients that go on from the newest
    /// line find the rest of its message beside it, but nothing that follows it.
    fn newest<'a>(
        &'a self,
        session: &'a Session,
        live: &'a [Index],
    ) -> impl Iterator<Item = Index> + 'a {
        let time = |at: &Index| session.records[*at as usize].at();
        let newest = live.iter().filter_map(time).max();
        let last = live.iter().rev().find_map(time);
        let late = live
            .iter()
            .filter(move |at| newest > last && time(at) == newest);
        late.filter_map(|&at| self.of(session, at))
    }
}

/// Lines that a compaction names as those it kept. Whether they are still sent is another
/// question, see `repair::preserved`; here their names must stay true.
fn named(plan: &EditPlan, session: &Session) -> BitSet {
    let mut all = BitSet::default();
    let records = (0..).zip(&session.records);
    for (_, record) in records.filter(|(at, _)| !plan.is_dropped(*at)) {
        if let Some(boundary) = session.boundary_of(record) {
            all.extend(boundary.preserved.iter().filter_map(|id| session.find(id)));
            let ends = boundary
                .segment
                .iter()
                .flat_map(|(head, tail)| [head, tail]);
            all.extend(ends.filter_map(|id| session.find(id)));
        }
    }
    all
}

/// The last line must be the newest: of two with one time, clients before 2.1.200 take the
/// earlier one and lose the other.
fn part_ties(
    plan: &mut EditPlan,
    session: &Session,
    links: &ParentLinks,
    leaf: Index,
    made_end: bool,
) {
    let kept = |at: &Index| !plan.is_dropped(*at) && session.records[*at as usize].thread == 0;
    let mut tail: Vec<Index> = Vec::new();
    for at in links.ancestors(leaf).filter(kept) {
        tail.push(at);
        // Clients differ in whether they go on from what follows it.
        if session.records[at as usize].is_conversation() {
            break;
        }
    }
    tail.reverse();
    let mut inside: BitSet = tail.iter().copied().collect();
    // Notes that hang below the end lead to it, however new they are.
    let wanted = parents(plan, session, links);
    let mut below = BitSet::from_iter([leaf]);
    for &at in links.order.iter().filter(|at| kept(at)) {
        let hangs = wanted.above(at).is_some_and(|above| below.contains(above));
        let spoken = session.records[at as usize].is_conversation();
        if hangs && !spoken && below.insert(at) && inside.insert(at) {
            tail.push(at);
        }
    }
    let others = links
        .order
        .iter()
        .filter(|at| kept(at) && !inside.contains(**at));
    let mut newest = others
        .filter_map(|&at| session.records[at as usize].at())
        .max();
    let mut moves = made_end;
    for at in tail {
        let Some(time) = session.records[at as usize].at() else {
            continue;
        };
        let mut now = time;
        let late = newest.filter(|newest| *newest == time || moves && *newest > time);
        if let Some(newest) = late {
            now = Time(newest.0 + 1);
            plan.set_time(at, now);
            // What follows it must not become older than it.
            moves = true;
        }
        newest = newest.max(Some(now));
    }
}

/// The line the conversation goes on from, of those that stay: where parallel calls were
/// given one order, the last of them.
pub(super) fn leaf(plan: &EditPlan, session: &Session, links: &ParentLinks) -> Option<Index> {
    let live = plan.end.or_else(|| graph::live_leaf(session, links))?;
    let wanted = parents(plan, session, links);
    let families = MessageOfLine::new(session);
    // If it goes, the last of what is left of its message.
    let mate = |at: &Index| {
        let own = families.of(session, live);
        own.is_some() && families.of(session, *at) == own && !plan.is_dropped(*at)
    };
    let mates = links.order.iter().rev().copied();
    let left = Some(live).filter(|&live| !plan.is_dropped(live));
    let left = left.or_else(|| mates.clone().find(mate));
    let leaf = left.or_else(|| links.ancestors(live).find(|&at| !plan.is_dropped(at)))?;
    let family = families.of(session, leaf);
    let below = |at: &Index| {
        let stays = !plan.is_dropped(*at) && session.records[*at as usize].in_chain();
        stays && family.is_some() && families.of(session, *at) == family
    };
    let members = links.order.iter().rev().copied().filter(below);
    let mut members = members.filter(|&at| wanted.ancestors(at).any(|above| above == leaf));
    Some(members.next().unwrap_or(leaf))
}
