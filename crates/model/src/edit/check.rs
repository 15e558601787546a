//! The proof: what was written is read as if for the first time, and compared with what was
//! wanted.
//!
//! [`ExpectedResult`] is taken from the old session and the plan before anything is written; the old
//! session need not be kept until the new one is read.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::ops::Range;

use foldhash::{HashMap, HashMapExt, HashSet};

use super::copy_identity::CopyIdentity;
use super::plan::{BlockChange, EditPlan};
use crate::bitset::BitSet;
use crate::entry::LineKind;
use crate::fault::FaultKind;
use crate::id::Id;
use crate::session::{EntryRecord, Index, Session};
use crate::view::check::{by_client, faults};
use crate::view::client_profile::ClientProfile;
use crate::view::messages;

/// What the new session must be like.
#[derive(Clone, Debug)]
pub struct ExpectedResult {
    lines: Vec<ExpectedLine>,
    /// Prints of the blocks of all of them; none for blocks that may say something else.
    prints: Vec<Option<NonZeroU64>>,
    /// Faults of lines that have an id, and of those that have none.
    named: HashSet<(FaultKind, Id)>,
    nameless: BTreeMap<FaultKind, usize>,
    /// Kinds with so many faults that they are only counted.
    counted: BTreeMap<FaultKind, usize>,
    clients: Vec<ExpectedClient>,
}

/// A line of the conversation: its id, and its blocks in [`ExpectedResult::prints`].
#[derive(Clone, Debug)]
struct ExpectedLine {
    id: Option<Id>,
    blocks: Range<Index>,
}

/// What a client made of the old session.
#[derive(Clone, Debug)]
struct ExpectedClient {
    profile: ClientProfile,
    resumes: bool,
    /// In the order in which they were said.
    lost: Vec<Id>,
}

/// Something that is not as it was wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditProblem {
    /// What was looked at: [`FAULTS`], [`CONVERSATION`], [`NOTHING`] or the name of a client.
    pub about: Cow<'static, str>,
    /// What is wrong, for a person.
    pub what: String,
}

/// Faults that the source did not have.
pub const FAULTS: &str = "faults";

/// That something is left of the conversation.
pub const NOTHING: &str = "rest";

/// What the model is told.
pub const CONVERSATION: &str = "conversation";

impl ExpectedResult {
    /// What a plan wants of a session.
    pub fn of(
        session: &Session,
        plan: &EditPlan,
        identity: Option<&CopyIdentity>,
    ) -> ExpectedResult {
        let name = |id: &Id| identity.map_or_else(|| id.clone(), |identity| identity.line(id));
        let live = live_lines(session, ClientProfile::Strict, plan.end);
        let mut prints = Vec::new();
        let lines = live
            .into_iter()
            .filter(|&at| !plan.is_dropped(at) && is_spoken(&session.records[at as usize]))
            .map(|at| ExpectedLine {
                id: session.records[at as usize].uuid.as_ref().map(&name),
                blocks: add_prints(session, plan, at, &mut prints),
            })
            .collect();
        let (named, nameless, counted) = faults_of(session, &name);
        ExpectedResult {
            lines,
            prints,
            named,
            nameless,
            counted,
            clients: clients(
                session,
                ClientProfile::that_matter(session),
                plan.end,
                &name,
            ),
        }
    }

    /// Lines of the conversation that begin or end it otherwise: a summary in place of what
    /// stood before the line with this id.
    pub fn summarised(&mut self, before: &Id, instead: impl IntoIterator<Item = Id>) {
        let from = self
            .lines
            .iter()
            .position(|line| line.id.as_ref() == Some(before));
        let instead: Vec<Id> = instead.into_iter().collect();
        // Who did not see what follows does not see what stands before it.
        for client in self
            .clients
            .iter_mut()
            .filter(|it| it.lost.contains(before))
        {
            client.lost.extend(instead.iter().cloned());
        }
        let end = self.prints.len() as Index;
        self.prints.extend(instead.iter().map(|_| None));
        let instead = instead.into_iter().zip(end..).map(|(id, at)| ExpectedLine {
            id: Some(id),
            blocks: at..at + 1,
        });
        self.lines.splice(..from.unwrap_or(0), instead);
    }

    /// Lets these lines say something else: they were changed in a way that no plan knows. Of
    /// lines without an id, one cannot be told from another.
    pub fn allow_changed_lines<'a>(&mut self, ids: impl IntoIterator<Item = &'a Option<Id>>) {
        let ids: HashSet<&Option<Id>> = ids.into_iter().collect();
        for line in self.lines.iter().filter(|line| ids.contains(&line.id)) {
            self.prints[places(&line.blocks)].fill(None);
        }
    }

    /// How many lines of the conversation each client loses already, by its name.
    pub fn lost_before(&self) -> Vec<(String, bool, usize)> {
        let clients = self.clients.iter();
        clients
            .map(|client| (client.profile.name(), client.resumes, client.lost.len()))
            .collect()
    }

    /// Faults that the source had and that may stay: how many of each kind, for a person.
    pub fn known_faults(&self) -> BTreeMap<FaultKind, usize> {
        sums(&self.named, &self.nameless, &self.counted)
    }

    /// Whether nothing would be left of a conversation that was there.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.clients.iter().any(|client| client.resumes)
    }

    /// What is not as it was wanted; nothing if all is well.
    pub fn compare(&self, after: &Session) -> Vec<EditProblem> {
        if self.is_empty() {
            let what = "the conversation would be empty";
            return vec![EditProblem::new(NOTHING, what.to_owned())];
        }
        let mut problems = Vec::new();
        self.compare_faults(after, &mut problems);
        self.compare_lines(after, &mut problems);
        self.compare_clients(after, &mut problems);
        problems
    }

    fn compare_faults(&self, after: &Session, problems: &mut Vec<EditProblem>) {
        let (named, nameless, counted) = faults_of(after, &Id::clone);
        let is_counted =
            |kind: &FaultKind| self.counted.contains_key(kind) || counted.contains_key(kind);
        let mut new: Vec<_> = named.difference(&self.named).collect();
        new.retain(|(kind, _)| !is_counted(kind));
        new.sort_unstable_by_key(|(kind, id)| (*kind, id.to_string()));
        for (kind, id) in new {
            let fault = kind.name();
            problems.push(EditProblem::new(
                FAULTS,
                format!("the line {id} would have a new fault: {fault}"),
            ));
        }
        let (all_before, all) = (self.known_faults(), sums(&named, &nameless, &counted));
        let (many, few): (Vec<_>, Vec<_>) = all.into_iter().partition(|(kind, _)| is_counted(kind));
        let few = few.into_iter().filter_map(|(kind, _)| {
            let before = self.nameless.get(&kind).copied().unwrap_or(0);
            Some((kind, *nameless.get(&kind)?, before))
        });
        let many = many.into_iter().map(|(kind, count)| {
            let before = all_before.get(&kind).copied().unwrap_or(0);
            (kind, count, before)
        });
        for (kind, count, before) in few.chain(many) {
            if count > before {
                let more = count - before;
                let fault = kind.name();
                problems.push(EditProblem::new(
                    FAULTS,
                    format!("{more} new faults of the kind {fault}"),
                ));
            }
        }
    }

    fn compare_lines(&self, after: &Session, problems: &mut Vec<EditProblem>) {
        let live = messages::live_lines(after, ClientProfile::Strict);
        let live: Vec<Index> = live
            .into_iter()
            .filter(|&at| is_spoken(&after.records[at as usize]))
            .collect();
        if live.len() != self.lines.len() {
            problems.push(EditProblem::new(
                CONVERSATION,
                format!(
                    "the conversation would have {} lines instead of {}",
                    live.len(),
                    self.lines.len()
                ),
            ));
        }
        for (&at, wanted) in live.iter().zip(&self.lines) {
            let record = &after.records[at as usize];
            if let Some(problem) = wanted.differs(self, after, record) {
                problems.push(problem);
                return;
            }
        }
    }

    fn compare_clients(&self, after: &Session, problems: &mut Vec<EditProblem>) {
        let asked = self.clients.iter().map(|client| client.profile).collect();
        let now = clients(after, asked, None, &Id::clone);
        for (before, now) in self.clients.iter().zip(now) {
            let name = now.profile.name();
            if before.resumes && !now.resumes {
                problems.push(EditProblem::new(
                    name.clone(),
                    format!("{name} could no longer resume it"),
                ));
            }
            let known: HashSet<&Id> = before.lost.iter().collect();
            if let Some(id) = now.lost.iter().find(|id| !known.contains(id)) {
                let what = format!("{name} would lose the line {id}");
                problems.push(EditProblem::new(name, what));
            }
        }
    }
}

impl EditProblem {
    fn new(about: impl Into<Cow<'static, str>>, what: String) -> EditProblem {
        EditProblem {
            about: about.into(),
            what,
        }
    }
}

impl ExpectedLine {
    fn differs(
        &self,
        wanted: &ExpectedResult,
        after: &Session,
        record: &EntryRecord,
    ) -> Option<EditProblem> {
        if self.id != record.uuid {
            let name = |id: &Option<Id>| {
                id.as_ref()
                    .map_or_else(|| "a line without an id".to_owned(), ToString::to_string)
            };
            return Some(EditProblem::new(
                CONVERSATION,
                format!(
                    "{} would be in the place of {}",
                    name(&record.uuid),
                    name(&self.id)
                ),
            ));
        }
        let blocks = after.blocks_of(record);
        let prints = &wanted.prints[places(&self.blocks)];
        let same = blocks.len() == prints.len()
            && blocks
                .iter()
                .zip(prints)
                .all(|(block, print)| print.is_none() || *print == kept(block.print));
        let line = record.line;
        (!same).then(|| {
            EditProblem::new(
                CONVERSATION,
                format!("line {line} would have a different text"),
            )
        })
    }
}

/// The names of the clients that a result is held against.
pub fn clients_of(result: &Session) -> Vec<String> {
    let clients = ClientProfile::that_matter(result).into_iter();
    clients.map(ClientProfile::name).collect()
}

/// Whether a line says something to the model.
fn is_spoken(record: &EntryRecord) -> bool {
    record.is_conversation() || matches!(record.kind, LineKind::QueuedCommand)
}

/// Adds the prints of the blocks of a line that stay, and says where.
fn add_prints(
    session: &Session,
    plan: &EditPlan,
    at: Index,
    prints: &mut Vec<Option<NonZeroU64>>,
) -> Range<Index> {
    let start = prints.len() as Index;
    let blocks = session.records[at as usize].blocks.clone();
    prints.extend(blocks.filter_map(|block| match plan.change(at, block) {
        Some(BlockChange::Remove) => None,
        Some(BlockChange::Cut(_) | BlockChange::Say(_)) => Some(None),
        None => Some(kept(session.blocks[block as usize].print)),
    }));
    start..prints.len() as Index
}

/// The print of a block that stays as it is; of all prints, two look alike.
fn kept(print: u64) -> Option<NonZeroU64> {
    NonZeroU64::new(print.max(1))
}

fn places(blocks: &Range<Index>) -> Range<usize> {
    blocks.start as usize..blocks.end as usize
}

/// Faults of lines with an id, numbers of those without, and of those that are only counted.
type FaultSets = (
    HashSet<(FaultKind, Id)>,
    BTreeMap<FaultKind, usize>,
    BTreeMap<FaultKind, usize>,
);

/// How many faults there are of each kind.
fn sums(
    named: &HashSet<(FaultKind, Id)>,
    nameless: &BTreeMap<FaultKind, usize>,
    counted: &BTreeMap<FaultKind, usize>,
) -> BTreeMap<FaultKind, usize> {
    let mut all = nameless.clone();
    for (kind, _) in named {
        *all.entry(*kind).or_default() += 1;
    }
    all.extend(counted);
    all
}

fn faults_of(session: &Session, name: &dyn Fn(&Id) -> Id) -> FaultSets {
    let (mut named, mut nameless, mut counted) = FaultSets::default();
    let all = faults(session);
    let more = all.all_left_out();
    counted.extend(more.map(|(kind, _)| (kind, all.counts()[&kind])));
    // Records do not stand in the order of their lines: one that is written again takes the
    // place of the first.
    let mut ids: HashMap<u32, Option<&Id>> = HashMap::new();
    ids.extend(all.iter().map(|fault| (fault.line, None)));
    for record in &session.records {
        if let Some(id @ None) = ids.get_mut(&record.line) {
            *id = record.uuid.as_ref();
        }
    }
    for fault in all {
        // Where a copy ends is what was asked for.
        if counted.contains_key(&fault.kind) || fault.kind == FaultKind::ErrorTail {
            continue;
        }
        match ids.get(&fault.line).copied().flatten() {
            Some(id) => drop(named.insert((fault.kind, name(id)))),
            None => *nameless.entry(fault.kind).or_default() += 1,
        }
    }
    (named, nameless, counted)
}

/// What each client loses of the conversation, as it goes on from `end`.
fn clients(
    session: &Session,
    asked: Vec<ClientProfile>,
    end: Option<Index>,
    name: &dyn Fn(&Id) -> Id,
) -> Vec<ExpectedClient> {
    let whole = live_lines(session, ClientProfile::Strict, end);
    let all = by_client(session, asked);
    all.map(|(client, mut sent)| {
        if let Some(end) = end {
            sent = messages::lines_from(session, client.profile, end);
        }
        let sent: BitSet = sent.into_iter().collect();
        let lost = whole.iter().filter(|&&at| !sent.contains(at));
        let lost = lost.map(|&at| &session.records[at as usize]);
        ExpectedClient {
            profile: client.profile,
            resumes: client.resumes,
            lost: lost
                .filter(|record| record.is_conversation())
                .filter_map(|record| record.uuid.as_ref().map(name))
                .collect(),
        }
    })
    .collect()
}

fn live_lines(session: &Session, profile: ClientProfile, end: Option<Index>) -> Vec<Index> {
    match end {
        Some(end) => messages::lines_from(session, profile, end),
        None => messages::live_lines(session, profile),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Log;
    use crate::session::TranscriptRole;

    /// Lines whose parents stand nowhere.
    fn orphans(numbers: Range<u32>) -> Session {
        let lines = numbers.map(|n| {
            format!(
                r#"{{"type":"user","uuid":"u{n}","parentUuid":"p{n}","message":{{"role":"user","content":"x"}}}}"#
            ) + "\n"
        });
        Session::from_log(&Log::new(lines.collect::<String>()), TranscriptRole::Main)
    }

    #[test]
    fn of_very_many_faults_none_is_new_if_there_are_no_more_than_before() {
        let new = |before: Range<u32>, after: Range<u32>| {
            let before = orphans(before);
            let wanted = ExpectedResult::of(&before, &EditPlan::new(&before), None);
            let problems = wanted.compare(&orphans(after)).into_iter();
            let about_faults = problems.filter(|problem| problem.about == FAULTS);
            about_faults.map(|problem| problem.what).collect::<Vec<_>>()
        };
        assert_eq!(new(0..1_500, 0..1_500), [""; 0]);
        // Those that were beyond the first thousand are now among them.
        assert_eq!(new(0..1_500, 600..1_500), [""; 0]);
        assert_eq!(new(0..1_500, 200..1_500), [""; 0]);
        let more = "10 new faults of the kind missing_parent";
        assert_eq!(new(0..1_500, 0..1_510), [more]);
        let more = "1100 new faults of the kind missing_parent";
        assert_eq!(new(0..400, 0..1_500), [more]);
        assert_eq!(new(0..4, 1..5).len(), 1);
    }
}
