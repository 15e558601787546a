//! The proof: what was written is read as if for the first time, and compared with what was
//! wanted.
//!
//! [`Wanted`] is taken from the old session and the plan before anything is written; the old
//! session need not be kept until the new one is read.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::ops::Range;

use foldhash::{HashMap, HashMapExt, HashSet};

use super::identity::Identity;
use super::plan::{BlockChange, Plan};
use crate::entry::Kind;
use crate::fault::FaultKind;
use crate::id::Id;
use crate::marks::Marks;
use crate::session::{Index, Record, Session};
use crate::view::check::{by_client, faults};
use crate::view::messages;
use crate::view::profile::Profile;

/// What the new session must be like.
#[derive(Clone, Debug)]
pub struct Wanted {
    lines: Vec<Spoken>,
    /// Prints of the blocks of all of them; none for blocks that may say something else.
    prints: Vec<Option<NonZeroU64>>,
    /// Faults of lines that have an id, and of those that have none.
    named: HashSet<(FaultKind, Id)>,
    nameless: BTreeMap<FaultKind, usize>,
    clients: Vec<Client>,
}

/// A line of the conversation: its id, and its blocks in [`Wanted::prints`].
#[derive(Clone, Debug)]
struct Spoken {
    id: Option<Id>,
    blocks: Range<Index>,
}

/// What a client made of the old session.
#[derive(Clone, Debug)]
struct Client {
    profile: Profile,
    resumes: bool,
    lost: HashSet<Id>,
}

/// Something that is not as it was wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What was looked at: [`FAULTS`], [`CONVERSATION`], [`NOTHING`] or the name of a client.
    pub about: &'static str,
    /// What is wrong, for a person.
    pub what: String,
}

/// Faults that the source did not have.
pub const FAULTS: &str = "faults";

/// That something is left of the conversation.
pub const NOTHING: &str = "rest";

/// What the model is told.
pub const CONVERSATION: &str = "conversation";

impl Wanted {
    /// What a plan wants of a session.
    pub fn of(session: &Session, plan: &Plan, identity: Option<&Identity>) -> Wanted {
        let name = |id: &Id| identity.map_or_else(|| id.clone(), |identity| identity.line(id));
        let live = live_lines(session, Profile::Strict, plan.end);
        let mut prints = Vec::new();
        let lines = live
            .into_iter()
            .filter(|&at| !plan.is_dropped(at) && is_spoken(&session.records[at as usize]))
            .map(|at| Spoken {
                id: session.records[at as usize].uuid.as_ref().map(&name),
                blocks: add_prints(session, plan, at, &mut prints),
            })
            .collect();
        let (named, nameless) = faults_of(session, &name);
        Wanted {
            lines,
            prints,
            named,
            nameless,
            clients: clients(session, plan.end, &name),
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
        let instead = instead.into_iter().zip(end..).map(|(id, at)| Spoken {
            id: Some(id),
            blocks: at..at + 1,
        });
        self.lines.splice(..from.unwrap_or(0), instead);
    }

    /// Lets these lines say something else: they were changed in a way that no plan knows. Of
    /// lines without an id, one cannot be told from another.
    pub fn excuse<'a>(&mut self, ids: impl IntoIterator<Item = &'a Option<Id>>) {
        let ids: HashSet<&Option<Id>> = ids.into_iter().collect();
        for line in self.lines.iter().filter(|line| ids.contains(&line.id)) {
            self.prints[places(&line.blocks)].fill(None);
        }
    }

    /// How many lines of the conversation each client loses already, by its name.
    pub fn lost_before(&self) -> Vec<(&'static str, bool, usize)> {
        let clients = self.clients.iter();
        clients
            .map(|client| (client.profile.name(), client.resumes, client.lost.len()))
            .collect()
    }

    /// Faults that the source had and that may stay: how many of each kind, for a person.
    pub fn known_faults(&self) -> BTreeMap<FaultKind, usize> {
        let mut all = self.nameless.clone();
        for (kind, _) in &self.named {
            *all.entry(*kind).or_default() += 1;
        }
        all
    }

    /// Whether nothing would be left of a conversation that was there.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.clients.iter().any(|client| client.resumes)
    }

    /// What is not as it was wanted; nothing if all is well.
    pub fn compare(&self, after: &Session) -> Vec<Problem> {
        if self.is_empty() {
            let what = "nothing would be left of the conversation";
            return vec![Problem::new(NOTHING, what.to_owned())];
        }
        let mut problems = Vec::new();
        self.compare_faults(after, &mut problems);
        self.compare_lines(after, &mut problems);
        self.compare_clients(after, &mut problems);
        problems
    }

    fn compare_faults(&self, after: &Session, problems: &mut Vec<Problem>) {
        let (named, nameless) = faults_of(after, &Id::clone);
        for (kind, id) in named.difference(&self.named) {
            let fault = kind.name();
            problems.push(Problem::new(
                FAULTS,
                format!("the line {id} would have a new fault: {fault}"),
            ));
        }
        for (kind, count) in nameless {
            let before = self.nameless.get(&kind).copied().unwrap_or(0);
            if count > before {
                let more = count - before;
                let fault = kind.name();
                problems.push(Problem::new(
                    FAULTS,
                    format!("{more} new faults of the kind {fault}"),
                ));
            }
        }
    }

    fn compare_lines(&self, after: &Session, problems: &mut Vec<Problem>) {
        let live = messages::live_lines(after, Profile::Strict);
        let live: Vec<Index> = live
            .into_iter()
            .filter(|&at| is_spoken(&after.records[at as usize]))
            .collect();
        if live.len() != self.lines.len() {
            problems.push(Problem::new(
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

    fn compare_clients(&self, after: &Session, problems: &mut Vec<Problem>) {
        for (before, now) in self.clients.iter().zip(clients(after, None, &Id::clone)) {
            let name = now.profile.name();
            if before.resumes && !now.resumes {
                problems.push(Problem::new(
                    name,
                    format!("{name} could no longer resume it"),
                ));
            }
            if let Some(id) = now.lost.difference(&before.lost).next() {
                problems.push(Problem::new(
                    name,
                    format!("{name} would lose the line {id}"),
                ));
            }
        }
    }
}

impl Problem {
    fn new(about: &'static str, what: String) -> Problem {
        Problem { about, what }
    }
}

impl Spoken {
    fn differs(&self, wanted: &Wanted, after: &Session, record: &Record) -> Option<Problem> {
        if self.id != record.uuid {
            let name = |id: &Option<Id>| {
                id.as_ref()
                    .map_or_else(|| "a line without an id".to_owned(), ToString::to_string)
            };
            return Some(Problem::new(
                CONVERSATION,
                format!(
                    "{} would stand where {} belongs",
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
            Problem::new(
                CONVERSATION,
                format!("line {line} would say something else"),
            )
        })
    }
}

/// The names of all clients that a result is held against.
pub fn clients_known() -> impl Iterator<Item = &'static str> {
    let all = Profile::ALL.into_iter();
    all.filter(|profile| *profile != Profile::Strict)
        .map(Profile::name)
}

/// Whether a line says something to the model.
fn is_spoken(record: &Record) -> bool {
    record.is_conversation() || matches!(record.kind, Kind::QueuedCommand)
}

/// Adds the prints of the blocks of a line that stay, and says where.
fn add_prints(
    session: &Session,
    plan: &Plan,
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

type Faults = (HashSet<(FaultKind, Id)>, BTreeMap<FaultKind, usize>);

fn faults_of(session: &Session, name: &dyn Fn(&Id) -> Id) -> Faults {
    let (mut named, mut nameless) = Faults::default();
    let all = faults(session);
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
        match ids.get(&fault.line).copied().flatten() {
            Some(id) => drop(named.insert((fault.kind, name(id)))),
            None => *nameless.entry(fault.kind).or_default() += 1,
        }
    }
    (named, nameless)
}

/// What each client loses of the conversation, as it goes on from `end`.
fn clients(session: &Session, end: Option<Index>, name: &dyn Fn(&Id) -> Id) -> Vec<Client> {
    let whole = live_lines(session, Profile::Strict, end);
    let all = by_client(session);
    all.map(|(client, mut sent)| {
        if let Some(end) = end {
            sent = messages::lines_from(session, client.profile, end);
        }
        let sent: Marks = sent.into_iter().collect();
        let lost = whole.iter().filter(|&&at| !sent.contains(at));
        let lost = lost.map(|&at| &session.records[at as usize]);
        Client {
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

fn live_lines(session: &Session, profile: Profile, end: Option<Index>) -> Vec<Index> {
    match end {
        Some(end) => messages::lines_from(session, profile, end),
        None => messages::live_lines(session, profile),
    }
}
