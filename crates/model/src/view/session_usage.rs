//! What a session used: tokens and cost of every message of its files, each counted once.
//!
//! This is the one answer for lists, tables, turns, pages and documents. It counts by the same
//! [`UsageLedger`] as `usage` does, over the files of one session: its own, those of its sub-agents,
//! and those of the client's own helpers, which compact, suggest prompts and warm up.

use std::collections::HashMap;
use std::ops::AddAssign;

use super::agents::{AgentRow, StartingCalls};
use super::cost::CostSum;
use super::usage::{CountedMessage, LedgerPrices, UsageLedger, is_counted};
use crate::file_usage::FileUsage;
use crate::price::Prices;
use crate::session::{Index, Message, Session, TranscriptRole};
use crate::time::Time;
use crate::usage::Usage;
use crate::view::turns::{self, TurnRow};

/// A session with all files that tell what it used.
#[derive(Clone, Copy, Debug)]
pub struct SessionFiles<'a> {
    /// Its own.
    pub session: &'a Session,
    /// Those of its sub-agents.
    pub agents: &'a [&'a Session],
    /// Those of the client's own helpers.
    pub helpers: &'a [&'a FileUsage],
}

impl<'a> SessionFiles<'a> {
    /// A session of which nothing else is known.
    pub fn alone(session: &'a Session) -> SessionFiles<'a> {
        SessionFiles {
            session,
            agents: &[],
            helpers: &[],
        }
    }
}

/// What some messages used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageTotal {
    /// How many messages.
    pub messages: u64,
    /// Their tokens.
    pub usage: Usage,
    /// What they cost.
    pub cost: CostSum,
}

impl AddAssign for UsageTotal {
    fn add_assign(&mut self, other: UsageTotal) {
        self.messages += other.messages;
        self.usage += other.usage;
        self.cost += other.cost;
    }
}

/// What a session used, by whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionUsage {
    /// Its own conversation.
    pub own: UsageTotal,
    /// Its sub-agents.
    pub agents: UsageTotal,
    /// The client's own helpers.
    pub client: UsageTotal,
}

impl SessionUsage {
    /// All of it.
    pub fn all(&self) -> UsageTotal {
        let mut all = self.own;
        all += self.agents;
        all += self.client;
        all
    }

    /// Whether nothing was used.
    pub fn is_empty(&self) -> bool {
        self.all().messages == 0
    }

    fn of(&mut self, user: UsageOwner) -> &mut UsageTotal {
        match user {
            UsageOwner::Own => &mut self.own,
            UsageOwner::Agent => &mut self.agents,
            UsageOwner::Client => &mut self.client,
        }
    }
}

impl AddAssign for SessionUsage {
    fn add_assign(&mut self, other: SessionUsage) {
        self.own += other.own;
        self.agents += other.agents;
        self.client += other.client;
    }
}

/// Who used the tokens of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UsageOwner {
    Own,
    Agent,
    Client,
}

/// What a session used.
pub fn session_usage(files: &SessionFiles<'_>, prices: &Prices) -> SessionUsage {
    UsageCounter::new(files, prices).sum(|_| true)
}

/// What messages used that began at `since` or later.
pub fn usage_since(files: &SessionFiles<'_>, prices: &Prices, since: Time) -> SessionUsage {
    let is_late = |time: Option<Time>| time.is_some_and(|time| time >= since);
    let sessions = std::iter::once(&files.session).chain(files.agents);
    let any = sessions.map(|session| session.last).any(is_late)
        || files.helpers.iter().map(|helper| helper.last).any(is_late);
    // Most sessions were quiet for long.
    match any {
        true => UsageCounter::new(files, prices).sum(|one| is_late(one.at())),
        false => SessionUsage::default(),
    }
}

/// What each turn of the session's own conversation used, sub-agents and helpers included, by
/// the number of the turn; with the number 0, what was used before the first one. The sum is what
/// the session used: where no turn can be told for what came before, the first one has it.
///
/// `calls` tells by which calls of the session its sub-agents were begun, as far as that is
/// known. What no call began counts in the turn that it was written in.
pub fn usage_by_turn(
    files: &SessionFiles<'_>,
    calls: &StartingCalls,
    turns: &[TurnRow],
    prices: &Prices,
) -> Vec<SessionUsage> {
    let count = UsageCounter::new(files, prices);
    let session = files.session;
    let turn_of = TurnLookup::new(session, calls, turns);
    let last = turns.iter().map(|turn| turn.n).max().unwrap_or(0);
    let mut sums = vec![SessionUsage::default(); last + 1];
    let mut add = |at: Option<u32>, turn: usize, file: usize, copy: bool| {
        let Some(one) = at.map(|at| &count.ledger.counted[at]) else {
            return;
        };
        if one.file as usize == file && one.marks().copy == copy {
            count.add(&mut sums[turn], one);
        }
    };
    for message in session.messages.iter().filter(|one| is_counted(one)) {
        let first = message.records.first().copied();
        let turn = match message.thread {
            0 => first.map_or(0, |record| turn_of.record(record)),
            thread => turn_of.thread(thread, message.first()),
        };
        add(count.ledger.find_message(session, message), turn, 0, false);
    }
    for (copy, call) in session.copies.iter().zip(&session.copy_calls) {
        let call = call.as_deref().and_then(|call| session.find_call(call));
        let turn = call.map_or_else(|| turn_of.time(copy.first()), |call| turn_of.call(call));
        add(count.ledger.find_message(session, copy), turn, 0, true);
    }
    for (nth, agent) in files.agents.iter().enumerate() {
        let call = calls.files.get(nth).copied().flatten();
        let by_call = call.map(|call| turn_of.call(call));
        let own = agent.messages.iter().map(|message| (message, false));
        let copies = agent.copies.iter().map(|message| (message, true));
        for (message, copy) in own.chain(copies).filter(|(one, _)| is_counted(one)) {
            let turn = by_call.unwrap_or_else(|| turn_of.time(message.first()));
            add(
                count.ledger.find_message(agent, message),
                turn,
                nth + 1,
                copy,
            );
        }
    }
    for (nth, helper) in files.helpers.iter().enumerate() {
        let file = 1 + files.agents.len() + nth;
        for spent in helper.messages.iter().filter(|one| !one.marks.synthetic) {
            let at = count.ledger.find(helper.id(spent));
            add(at, turn_of.time(spent.at), file, spent.marks.copy);
        }
    }
    let untold = last > 0 && turns.iter().all(|turn| turn.n > 0);
    if untold && !sums[0].is_empty() {
        let before = std::mem::take(&mut sums[0]);
        sums[1] += before;
    }
    sums
}

/// What each of a session's files used, each message in the one file it counts in: the session's
/// own first, then those of its sub-agents, then those of the client's own helpers.
pub fn usage_by_file(files: &SessionFiles<'_>, prices: &Prices) -> Vec<UsageTotal> {
    UsageCounter::new(files, prices).by_file()
}

/// What a session used by the names of models, in the order they appear.
pub fn usage_by_model(files: &SessionFiles<'_>, prices: &Prices) -> Vec<(String, UsageTotal)> {
    let count = UsageCounter::new(files, prices);
    let names = count.ledger.models.iter().map(|(name, _)| name.to_owned());
    let mut sums: Vec<(String, UsageTotal)> =
        names.map(|name| (name, UsageTotal::default())).collect();
    let mut nameless = UsageTotal::default();
    for one in count.ledger.counted.iter() {
        let sum = one.model().map(|model| &mut sums[model as usize].1);
        *sum.unwrap_or(&mut nameless) += count.used(one);
    }
    sums.push(("?".to_owned(), nameless));
    sums.retain(|(_, used)| used.messages > 0);
    sums
}

/// What each of these sub-agents and helpers used; `None` where only the call is left of one.
///
/// A message counts in one row, whoever repeats it: a compaction and a forked sub-agent begin
/// with the conversation of their session. `place` tells where the file of a row is among the
/// sub-agents, or behind them among the helpers.
pub fn usage_by_agent(
    files: &SessionFiles<'_>,
    rows: &[AgentRow],
    place: impl Fn(usize) -> usize,
    prices: &Prices,
) -> Vec<Option<UsageTotal>> {
    let count = UsageCounter::new(files, prices);
    let by_file = count.by_file();
    let session = files.session;
    let mut threads = vec![UsageTotal::default(); session.threads.len()];
    let counted = |message: &Message, copy: bool| {
        let at = count.ledger.find_message(session, message)?;
        let one = &count.ledger.counted[at];
        (one.file == 0 && one.marks().copy == copy).then(|| count.used(one))
    };
    for message in session.messages.iter().filter(|one| is_counted(one)) {
        if let Some(used) = counted(message, false) {
            threads[message.thread as usize] += used;
        }
    }
    // What progress lines tell of sub-agents whose own files do not.
    let mut copies: HashMap<&str, UsageTotal> = HashMap::new();
    for (copy, call) in session.copies.iter().zip(&session.copy_calls) {
        if let Some((call, used)) = call.as_deref().zip(counted(copy, true)) {
            *copies.entry(call).or_default() += used;
        }
    }
    let row_used = |row: &AgentRow| {
        let file = row.file.and_then(|at| by_file.get(1 + place(at))).copied();
        let thread = row.thread.and_then(|at| threads.get(at as usize)).copied();
        // Two rows of one call must not both have it.
        let copies = row.call.as_deref().and_then(|call| copies.remove(call));
        let parts = [file, thread, copies].into_iter().flatten();
        parts.reduce(|mut sum, part| {
            sum += part;
            sum
        })
    };
    rows.iter().map(row_used).collect()
}

/// The messages of a session's files, each once, with their prices.
struct UsageCounter<'a> {
    ledger: UsageLedger,
    prices: LedgerPrices<'a>,
    role: TranscriptRole,
    agents: usize,
}

impl<'a> UsageCounter<'a> {
    fn new(files: &SessionFiles<'_>, prices: &'a Prices) -> UsageCounter<'a> {
        let mut ledger = UsageLedger::default();
        let sessions = std::iter::once(&files.session).chain(files.agents);
        for (file, session) in (0..).zip(sessions) {
            ledger.add_session(file, session);
        }
        for (file, helper) in (1 + files.agents.len() as u32..).zip(files.helpers) {
            ledger.add(file, helper);
        }
        UsageCounter {
            prices: ledger.prices(prices),
            ledger,
            role: files.session.role(),
            agents: files.agents.len(),
        }
    }

    fn sum(&self, wanted: impl Fn(&CountedMessage) -> bool) -> SessionUsage {
        let mut sum = SessionUsage::default();
        for one in self.ledger.counted.iter().filter(|one| wanted(one)) {
            self.add(&mut sum, one);
        }
        sum
    }

    fn add(&self, sum: &mut SessionUsage, one: &CountedMessage) {
        *sum.of(self.user(one)) += self.used(one);
    }

    /// What counts in each file.
    fn by_file(&self) -> Vec<UsageTotal> {
        let mut sums = vec![UsageTotal::default(); self.ledger.files.len()];
        for one in self.ledger.counted.iter() {
            sums[one.file as usize] += self.used(one);
        }
        sums
    }

    fn used(&self, one: &CountedMessage) -> UsageTotal {
        UsageTotal {
            messages: 1,
            usage: one.usage(),
            cost: CostSum::of(self.ledger.charge(one, &self.prices)),
        }
    }

    fn user(&self, one: &CountedMessage) -> UsageOwner {
        let marks = one.marks();
        match one.file as usize {
            // All lines of a sub-agent's own file are marked.
            0 if marks.copy || marks.sidechain && self.role == TranscriptRole::Main => {
                UsageOwner::Agent
            }
            0 => UsageOwner::Own,
            file if file <= self.agents => UsageOwner::Agent,
            _ => UsageOwner::Client,
        }
    }
}

/// Finds the turn that something belongs to: 0 is before the first one.
struct TurnLookup<'a> {
    session: &'a Session,
    /// The turn of each record of the session's own conversation.
    places: Vec<Option<Index>>,
    /// The turn in which each thread inside the file began.
    threads: Vec<Option<usize>>,
    /// When each turn began, in the order of these times.
    times: Vec<(Time, usize)>,
}

impl<'a> TurnLookup<'a> {
    fn new(session: &'a Session, calls: &StartingCalls, turns: &[TurnRow]) -> TurnLookup<'a> {
        let times = turns.iter().filter(|turn| turn.n > 0);
        let mut times: Vec<(Time, usize)> =
            times.filter_map(|turn| Some((turn.at?, turn.n))).collect();
        times.sort_unstable();
        let mut turn_of = TurnLookup {
            session,
            places: turns::places(session),
            threads: vec![None; session.threads.len()],
            times,
        };
        for &(thread, call) in &calls.threads {
            let turn = turn_of.call(call);
            if let Some(slot) = turn_of.threads.get_mut(thread as usize) {
                *slot = Some(turn);
            }
        }
        turn_of
    }

    fn record(&self, record: Index) -> usize {
        let place = self.places.get(record as usize).copied().flatten();
        place.map_or(0, |place| place as usize + 1)
    }

    fn call(&self, call: Index) -> usize {
        let record = self.session.calls[call as usize].record;
        match self.session.records[record as usize].thread {
            0 => self.record(record),
            // A sub-agent inside the file sent another one.
            _ => self.time(self.session.records[record as usize].at()),
        }
    }

    fn thread(&self, thread: Index, at: Option<Time>) -> usize {
        let known = self.threads.get(thread as usize).copied().flatten();
        known.unwrap_or_else(|| self.time(at))
    }

    fn time(&self, at: Option<Time>) -> usize {
        let Some(at) = at else { return 0 };
        let after = self.times.partition_point(|(began, _)| *began <= at);
        after.checked_sub(1).map_or(0, |nth| self.times[nth].1)
    }
}
