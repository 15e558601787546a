//! Several sessions become one: their conversations one after the other.
//!
//! Decided here, and why:
//! - Of each session only the branch that goes on is taken; rewound branches would be taken
//!   for it by clients that go on from the newest line.
//! - Each conversation is written as one chain, and begins behind the last line of the one
//!   before it.
//! - A line that two sessions share (a fork copies lines with their ids) stands once, where it
//!   stands first. An id that means something else elsewhere gets a new one: of lines, calls
//!   and messages.
//! - A compaction in a later session would cut off the sessions before it, so that its
//!   boundary goes, and what it had cut off already goes too; its summary stays as what was
//!   said. The first session keeps its compactions and all before them.
//! - Times stay, but for lines that would be older than those before them: clients before
//!   2.1.200 go on from the newest line.
//! - `last-prompt` and progress lines go: both can lead a client elsewhere than to the end.
//! - A call that still ran at the end of any but the last session gets a result that says
//!   that it was lost.

use foldhash::{HashMap, HashSet, HashSetExt};

use super::check::{CONVERSATION, EditProblem, FAULTS};
use super::copy_identity::{CopyIdentity, made};
use super::inserted_lines::{self, LineEnvelope, LineStamp};
use super::plan::{EditPlan, PlanSettings};
use super::relink;
use super::repair::{NO_RESULT, clients};
use super::{EditError, LossKind};
use crate::block::BlockKind;
use crate::entry::LineKind;
use crate::fault::FaultKind;
use crate::graph;
use crate::id::Id;
use crate::log::TranscriptSource;
use crate::session::{Index, Session, TranscriptRole};
use crate::time::Time;
use crate::title;
use crate::view::check::faults;
use crate::view::client_profile::ClientProfile;
use crate::view::messages;

/// A session to be merged, and where its bytes are.
#[derive(Clone, Copy)]
pub struct MergeSource<'a> {
    /// What it means.
    pub session: &'a Session,
    /// Its file.
    pub source: &'a dyn TranscriptSource,
    /// Ids that its lines may call it by.
    pub id: &'a str,
}

/// What becomes of one session.
#[derive(Clone, Debug)]
pub struct MergePart {
    /// What becomes of its lines; complete, not to be settled.
    pub plan: EditPlan,
    /// Whose lines they are now.
    pub identity: CopyIdentity,
    /// Its number among those that were given.
    pub number: usize,
}

/// How sessions become one: write the parts one behind the other, each with a
/// [`LineRewriter`](super::LineRewriter) of its own.
#[derive(Clone, Debug)]
pub struct SessionMerge {
    /// The sessions, in the order they are written.
    pub parts: Vec<MergePart>,
    /// What was left out or changed, for a person.
    pub notes: Vec<String>,
    spoken: Vec<Id>,
    faults: HashMap<FaultKind, usize>,
}

/// The numbers of the sessions by the time of their first lines.
pub fn by_time(parts: &[MergeSource<'_>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|&at| parts[at].session.first);
    order
}

/// Plans one session, with the id `session` and this title, of several in the order given.
pub fn plan(
    parts: &[MergeSource<'_>],
    session: &str,
    title: &str,
) -> Result<SessionMerge, EditError> {
    if parts.len() < 2 {
        return Err(EditError::new(
            "a merge needs at least two sessions".to_owned(),
        ));
    }
    for part in parts {
        check(part)?;
    }
    let mut join = MergeState::default();
    let last = parts.len() - 1;
    let mut merged = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let mut plan = join.part(part, number == 0, number == last, session);
        if number == last {
            join.end(part, &mut plan, session, title);
        }
        merged.push(MergePart { number, ..plan });
    }
    Ok(SessionMerge {
        parts: merged,
        notes: join.notes,
        spoken: join.spoken,
        faults: join.faults,
    })
}

/// Damage that is not merged: the lines could not be told apart.
const REPAIR_FIRST: &[FaultKind] = &[
    FaultKind::Glued,
    FaultKind::DuplicateUuid,
    FaultKind::MissingParent,
    FaultKind::Cycle,
    FaultKind::CallWithoutResult,
    FaultKind::ResultWithoutCall,
    FaultKind::DuplicateCall,
    FaultKind::ControlCharacter,
    FaultKind::BadTime,
];

fn check(part: &MergeSource<'_>) -> Result<(), EditError> {
    let id = part.id;
    if part.session.role() == TranscriptRole::Agent || !part.session.is_conversation() {
        return Err(EditError::new(format!("{id} is not a conversation")));
    }
    let all = faults(part.session);
    let bad = all.iter().find(|fault| REPAIR_FIRST.contains(&fault.kind));
    let bad = bad.map(|fault| (fault.line, fault.kind));
    let null = all.null_line().map(|line| (line, FaultKind::NotAnObject));
    if let Some((line, kind)) = bad.into_iter().chain(null).min() {
        let kind = kind.name();
        let why = format!("{id} is damaged on line {line} ({kind}); repair it first");
        return Err(EditError::new(why));
    }
    Ok(())
}

/// What is known of the sessions that were taken in so far.
#[derive(Default)]
struct MergeState {
    notes: Vec<String>,
    spoken: Vec<Id>,
    faults: HashMap<FaultKind, usize>,
    /// Lines, and what tells whether another one is the same.
    lines: HashMap<Id, LineFingerprint>,
    calls: HashSet<Box<str>>,
    answered: HashSet<Box<str>>,
    messages: HashSet<Box<str>>,
    /// The last line, and the newest time.
    leaf: Option<Id>,
    newest: Option<Time>,
    fresh: u64,
}

/// What two copies of a line have in common: a fork changes the session, and may write a
/// string as a list.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LineFingerprint {
    label: String,
    at: Option<Time>,
    message: Option<Box<str>>,
    blocks: Vec<BlockKind>,
}

impl MergeState {
    fn part(
        &mut self,
        part: &MergeSource<'_>,
        first: bool,
        last: bool,
        session: &str,
    ) -> MergePart {
        let mut plan = EditPlan::new(part.session);
        let mut identity = CopyIdentity::new(session, [part.id.to_owned()]);
        for (kind, count) in faults(part.session).counts() {
            *self.faults.entry(*kind).or_default() += count;
        }
        let live = messages::live_lines(part.session, ClientProfile::Strict);
        let shared = self.shared(part.session, &live);
        self.rename(part.session, &shared, &mut identity);
        let kept = self.choose(part, first, &live, &shared, &mut plan);
        self.point(part.session, &shared, &mut plan);
        self.chain(part, &kept, first, &identity, &mut plan);
        if !last {
            self.close(part, &kept, &identity, &mut plan);
        }
        self.remember(part.session, &plan, &identity);
        MergePart {
            plan,
            identity,
            number: 0,
        }
    }

    /// Lines that an earlier session has too.
    fn shared(&self, session: &Session, live: &[Index]) -> HashSet<Index> {
        let same = |at: &Index| {
            let id = session.records[*at as usize].uuid.as_ref();
            let known = id.and_then(|id| self.lines.get(id));
            known.is_some_and(|known| *known == print(session, *at))
        };
        live.iter().copied().filter(same).collect()
    }

    /// New ids for those that mean something else in an earlier session.
    fn rename(&mut self, session: &Session, shared: &HashSet<Index>, identity: &mut CopyIdentity) {
        for (at, record) in session.records.iter().enumerate() {
            if shared.contains(&(at as Index)) {
                continue;
            }
            if let Some(id) = record
                .uuid
                .as_ref()
                .filter(|id| self.lines.contains_key(id))
            {
                let new = self.fresh_id(session, id);
                identity.taken.lines.insert(id.clone(), new);
            }
            let message = record.message().map(|at| &session.messages[at as usize]);
            let begun = |at: &Index| shared.contains(at);
            let own = message.filter(|message| !message.records.iter().any(begun));
            if let Some(id) = own.and_then(|own| session.message_id(own))
                && self.messages.contains(id)
            {
                let new = self.fresh_id(session, &Id::new(id)).to_string();
                let new = format!("msg_{}", new.replace('-', ""));
                identity
                    .taken
                    .messages
                    .entry(id.into())
                    .or_insert_with(|| new.into());
            }
        }
        for call in &session.calls {
            let id = session.call_id(call);
            if !shared.contains(&call.record) && self.calls.contains(id) {
                let new = self.fresh_id(session, &Id::new(id)).to_string();
                let new = format!("toolu_{}", new.replace('-', ""));
                identity
                    .taken
                    .calls
                    .entry(id.into())
                    .or_insert_with(|| new.into());
            }
        }
        let taken = &identity.taken;
        let count = taken.lines.len() + taken.calls.len() + taken.messages.len();
        if count > 0 {
            self.notes
                .push(format!("{count} duplicate ids were replaced"));
        }
    }

    fn fresh_id(&mut self, session: &Session, old: &Id) -> Id {
        loop {
            self.fresh += 1;
            let id = made(0x3e26e ^ self.fresh, old);
            if session.find(&id).is_none() && !self.lines.contains_key(&id) {
                return id;
            }
        }
    }

    /// Which lines stay; the answer is the conversation, in order.
    fn choose(
        &mut self,
        part: &MergeSource<'_>,
        first: bool,
        live: &[Index],
        shared: &HashSet<Index>,
        plan: &mut EditPlan,
    ) -> Vec<Index> {
        let session = part.session;
        let spoken: HashSet<Index> = live.iter().copied().collect();
        let (mut branches, mut doubled, mut cut) = (0, 0, 0);
        for (at, record) in session.records.iter().enumerate() {
            let at = at as Index;
            let chain = record.kind.is_link() || record.uuid.is_some();
            let goes = match record.kind {
                LineKind::LastPrompt | LineKind::Title | LineKind::Progress => true,
                _ if !chain || record.thread != 0 && !spoken.contains(&at) => false,
                kind if kind.compacts() && !first => {
                    cut += u32::from(kind.is_boundary() && spoken.contains(&at));
                    kind.is_boundary() || !spoken.contains(&at)
                }
                _ if shared.contains(&at) => {
                    doubled += u32::from(record.is_conversation());
                    true
                }
                _ if spoken.contains(&at) => self.is_answered(session, at, shared),
                // What a compaction of the first session cut off stays before it.
                _ => {
                    let stays = first && plan.is_live(at);
                    if !stays && record.is_conversation() {
                        branches += 1;
                        plan.lose(session, at, LossKind::Branches, &[]);
                    }
                    !stays
                }
            };
            if goes {
                plan.drop(at);
            }
        }
        self.tell(part.id, branches, doubled, cut);
        for &at in live {
            drop_unasked(session, at, shared, plan);
        }
        let stays = |at: &Index| !plan.is_dropped(*at);
        live.iter().copied().filter(stays).collect()
    }

    /// A result of a shared call that an earlier session has the result of.
    fn is_answered(&self, session: &Session, at: Index, shared: &HashSet<Index>) -> bool {
        let blocks = session.blocks_of(&session.records[at as usize]);
        let answered = |id: &str| {
            let call = session.find_call(id).map(|at| &session.calls[at as usize]);
            call.is_some_and(|call| shared.contains(&call.record)) && self.answered.contains(id)
        };
        let gone = |block: &crate::session::BlockRecord| {
            block.kind == BlockKind::ToolResult && session.id_of(block).is_some_and(answered)
        };
        !blocks.is_empty() && blocks.iter().all(gone)
    }

    fn tell(&mut self, id: &str, branches: u32, doubled: u32, cut: u32) {
        if branches > 0 {
            let what = "lines of abandoned branches or before a compaction are not included";
            self.notes.push(format!("{id}: {branches} {what}"));
        }
        if doubled > 0 {
            let what = "lines shared with an earlier session are written once";
            self.notes.push(format!("{id}: {doubled} {what}"));
        }
        if cut > 0 {
            let what =
                "its compaction boundary is not included: it would hide everything before it";
            self.notes.push(format!("{id}: {what}"));
        }
    }

    /// What names a line that goes names another one; what names a shared line still does.
    fn point(&self, session: &Session, shared: &HashSet<Index>, plan: &mut EditPlan) {
        relink::relink(plan, session, PlanSettings { keep_tree: true });
        let ids = shared.iter().map(|&at| &session.records[at as usize].uuid);
        for at in ids.filter_map(|id| session.find(id.as_ref()?)) {
            plan.redirect.forget(at);
            plan.history.forget(at);
        }
        // What a compaction kept behind a summary that was left is not kept behind another line.
        for record in &session.records {
            let boundary = session.boundary_of(record);
            if let Some(anchor) = boundary.and_then(|boundary| boundary.anchor.as_ref())
                && let Some(at) = session.find(anchor).filter(|&at| plan.is_dropped(at))
                && !shared.contains(&at)
            {
                plan.redirect.set(at, None);
            }
        }
    }

    /// Lets each line follow the one before it, later than that.
    fn chain(
        &mut self,
        part: &MergeSource<'_>,
        kept: &[Index],
        first: bool,
        identity: &CopyIdentity,
        plan: &mut EditPlan,
    ) {
        let session = part.session;
        let begins = |at: Index| session.records[at as usize].kind.compacts();
        // What the first session's compaction kept is put back by name.
        let links = graph::links(session);
        let named = match first {
            true => super::repair::preserved(session, &links, kept),
            false => HashSet::new(),
        };
        let mut before = self.leaf.clone();
        let mut joint = true;
        for &at in kept {
            let record = &session.records[at as usize];
            let Some(id) = record.uuid.clone() else {
                continue;
            };
            if record.is_conversation() {
                self.spoken.push(identity.line(&id));
            }
            if named.contains(&at) || !record.kind.is_link() {
                continue;
            }
            let planned = plan
                .changes
                .get(&at)
                .is_some_and(|change| change.parent.is_some());
            // The name may be that of another line here.
            let other = |id: &Id| joint && identity.taken.lines.contains_key(id);
            let planned = planned || before.as_ref().is_some_and(other);
            let same = !planned && before.is_some() && before.as_ref() == session.parent_of(record);
            if !same && !(first && (before.is_none() || begins(at))) {
                let parent = match &before {
                    // A line of an earlier session may have an id that is another's here.
                    before if joint => before.clone(),
                    before => before.as_ref().map(|id| identity.line(id)),
                };
                plan.set_parent(at, parent);
                plan.entry(at).parent_named = true;
            }
            if let Some(newest) = self.newest.filter(|_| !first) {
                let time = record.at().filter(|&time| time > newest);
                if time.is_none() {
                    plan.set_time(at, Time(newest.0 + 1));
                }
                self.newest = Some(time.unwrap_or(Time(newest.0 + 1)));
            }
            before = Some(id);
            joint = false;
        }
        self.leaf = before
            .filter(|_| !joint)
            .map(|id| identity.line(&id))
            .or(self.leaf.take());
        if first {
            let own = session.records.iter().enumerate();
            let own = own.filter(|(at, record)| {
                record.kind.is_link() && !record.is_sidechain() && !plan.is_dropped(*at as Index)
            });
            self.newest = own.filter_map(|(_, record)| record.at()).max();
        }
    }

    /// Calls that still ran get a result, now that the conversation goes on behind them.
    fn close(
        &mut self,
        part: &MergeSource<'_>,
        kept: &[Index],
        identity: &CopyIdentity,
        plan: &mut EditPlan,
    ) {
        let session = part.session;
        let spoken: HashSet<Index> = kept.iter().copied().collect();
        let open = session.calls.iter().filter(|call| {
            let local = session.blocks[call.block as usize].kind == BlockKind::ToolUse;
            local && call.result.is_none() && spoken.contains(&call.record)
        });
        let open: Vec<_> = open.collect();
        let end = session.records.len() as Index;
        for call in open {
            let record = &session.records[call.record as usize];
            let (Some(parent), Some(own)) = (self.leaf.clone(), record.uuid.as_ref()) else {
                continue;
            };
            let id = self.fresh_id(session, own);
            let time = Time(self.newest.or(record.at()).unwrap_or(Time(0)).0 + 1);
            self.newest = Some(time);
            let envelope = LineEnvelope::of(&session.bytes_of(part.source, record));
            let stamp = LineStamp { uuid: &id, time };
            let call = session.call_id(call);
            let name = identity.taken.calls.get(call).map_or(call, |name| name);
            let source = identity.line(own);
            let line =
                inserted_lines::tool_result(&envelope, stamp, &parent, (name, &source), NO_RESULT);
            plan.insert(end, line);
            self.answered.insert(name.into());
            self.spoken.push(id.clone());
            self.lines.insert(
                id.clone(),
                LineFingerprint {
                    label: "user".into(),
                    at: Some(time),
                    message: None,
                    blocks: Vec::new(),
                },
            );
            self.leaf = Some(id);
        }
    }

    fn remember(&mut self, session: &Session, plan: &EditPlan, identity: &CopyIdentity) {
        for (at, record) in session.records.iter().enumerate() {
            if plan.is_dropped(at as Index) {
                continue;
            }
            if let Some(id) = &record.uuid {
                let own = print(session, at as Index);
                self.lines.entry(identity.line(id)).or_insert(own);
            }
            let message = record
                .message()
                .and_then(|at| session.message_id(&session.messages[at as usize]))
                .map(Box::from);
            self.messages.extend(message);
            for block in session.blocks_of(record) {
                match block.kind {
                    BlockKind::ToolUse => self.calls.extend(session.id_of(block).map(Box::from)),
                    BlockKind::ToolResult => {
                        self.answered.extend(session.id_of(block).map(Box::from))
                    }
                    _ => {}
                }
            }
        }
    }

    /// What stands behind all lines: where the conversation goes on from, and the title.
    fn end(&mut self, part: &MergeSource<'_>, merged: &mut MergePart, session: &str, title: &str) {
        let (plan, identity) = (&mut merged.plan, &merged.identity);
        let end = part.session.records.len() as Index;
        let own = part.session.records.iter().enumerate().rev();
        let mut own = own.filter(|(at, record)| {
            record.kind.is_link() && !record.is_sidechain() && !plan.is_dropped(*at as Index)
        });
        let last = own.next().and_then(|(_, record)| record.uuid.as_ref());
        let last = last.map(|id| identity.line(id));
        if let Some(leaf) = self.leaf.clone().filter(|leaf| Some(leaf) != last.as_ref()) {
            plan.insert(end, inserted_lines::last_prompt(session, &leaf, false));
        }
        plan.insert(end, title::line(session, title));
    }
}

/// Results whose calls went with what a compaction cut off are not sent.
fn drop_unasked(session: &Session, at: Index, shared: &HashSet<Index>, plan: &mut EditPlan) {
    let blocks = session.records[at as usize].blocks.clone();
    for place in blocks.clone() {
        let block = &session.blocks[place as usize];
        let call = session.id_of(block).and_then(|id| session.find_call(id));
        let call = call.map(|call| session.calls[call as usize].record);
        let gone = call.is_some_and(|call| plan.is_dropped(call) && !shared.contains(&call));
        if block.kind == BlockKind::ToolResult && gone {
            plan.remove_block(at, place);
        }
    }
    if !blocks.is_empty() && blocks.clone().all(|block| plan.is_removed(at, block)) {
        plan.drop(at);
    }
}

fn print(session: &Session, at: Index) -> LineFingerprint {
    let record = &session.records[at as usize];
    let message = record
        .message()
        .and_then(|at| session.message_id(&session.messages[at as usize]))
        .map(Box::from);
    LineFingerprint {
        label: session.label_of(record).to_owned(),
        at: record.at(),
        message,
        blocks: session
            .blocks_of(record)
            .iter()
            .map(|block| block.kind)
            .collect(),
    }
}

impl SessionMerge {
    /// What is not as it was wanted: the conversation is that of the parts, one behind the
    /// other, no fault is new, and every client resumes it whole.
    pub fn compare(&self, after: &Session) -> Vec<EditProblem> {
        let mut problems = Vec::new();
        for (kind, count) in faults(after).counts() {
            if *count > self.faults.get(kind).copied().unwrap_or(0) {
                let what = format!("new faults of the kind {}", kind.name());
                problems.push(EditProblem {
                    about: FAULTS.into(),
                    what,
                });
            }
        }
        let live = messages::live_lines(after, ClientProfile::Strict);
        let said = live.iter().map(|&at| &after.records[at as usize]);
        let said: Vec<Id> = said
            .filter(|record| record.is_conversation())
            .filter_map(|record| record.uuid.clone())
            .collect();
        if said != self.spoken {
            let place = said
                .iter()
                .zip(&self.spoken)
                .position(|(now, wanted)| now != wanted);
            let what = format!(
                "the conversation would have {} lines instead of {}, with a difference at {place:?}",
                said.len(),
                self.spoken.len()
            );
            problems.push(EditProblem {
                about: CONVERSATION.into(),
                what,
            });
        }
        problems.extend(clients(after));
        problems
    }
}
