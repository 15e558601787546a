//! Sums of counted messages by day, session, model and so on.

use std::collections::BTreeSet;

use foldhash::HashMap;
use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::TimeZone;

use super::period::{self, WINDOW};
use super::{CountedMessage, LedgerPrices, UsageLedger, is_unfinished};
use crate::price::{Cost, Prices};
use crate::text_counts::TextCounts;
use crate::time::Time;
use crate::usage::Usage;
use crate::view::cost::CostSum;

/// What to sum up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupBy {
    /// The local day of the first line.
    Day,
    /// The week, from Monday or another day on.
    Week,
    /// The month.
    Month,
    /// The session, sub-agents included.
    Session,
    /// The project.
    Project,
    /// The model.
    Model,
    /// The windows of five hours that the plans' limits go by.
    Block,
    /// The session or sub-agent itself.
    Agent,
    /// The fast mode and the usual one.
    Speed,
}

impl GroupBy {
    /// Whether its groups are stretches of time.
    fn is_time(self) -> bool {
        match self {
            GroupBy::Day | GroupBy::Week | GroupBy::Month | GroupBy::Block => true,
            GroupBy::Session
            | GroupBy::Project
            | GroupBy::Model
            | GroupBy::Agent
            | GroupBy::Speed => false,
        }
    }
}

/// What the messages of a group have in common. `None`: it is not known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupKey {
    /// A day, or the first day of a week or month.
    Date(Option<Date>),
    /// The start of a window.
    Block(Option<Time>),
    /// A session, project or model.
    Text(Option<String>),
}

/// Where a file belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FileOwner<'a> {
    /// Its session.
    pub session: Option<&'a str>,
    /// The sub-agent whose file it is.
    pub agent: Option<&'a str>,
    /// Its project.
    pub project: &'a str,
}

/// Where each file belongs.
///
/// Names are given numbers once, so that files share them, and a message is grouped by
/// comparing numbers.
#[derive(Clone, Debug, Default)]
pub struct FileOwners {
    names: TextCounts,
    files: Vec<FileOwnerIds>,
}

/// The numbers of a file's names.
#[derive(Clone, Debug)]
struct FileOwnerIds {
    session: Option<u32>,
    agent: Option<u32>,
    project: u32,
}

impl FileOwners {
    /// Adds the place of the next file.
    pub fn push(&mut self, place: FileOwner<'_>) {
        let tags = FileOwnerIds {
            session: place.session.map(|session| self.names.add(session)),
            agent: place.agent.map(|agent| self.names.add(agent)),
            project: self.names.add(place.project),
        };
        self.files.push(tags);
    }

    /// The place of the file with this number.
    pub fn get(&self, file: u32) -> FileOwner<'_> {
        let Some(tags) = self.files.get(file as usize) else {
            return FileOwner::default();
        };
        FileOwner {
            session: tags.session.map(|session| self.names.get(session)),
            agent: tags.agent.map(|agent| self.names.get(agent)),
            project: self.names.get(tags.project),
        }
    }

    /// The place of each file, in their order.
    pub fn iter(&self) -> impl Iterator<Item = FileOwner<'_>> {
        (0..self.files.len() as u32).map(|file| self.get(file))
    }
}

impl<'a> FromIterator<FileOwner<'a>> for FileOwners {
    fn from_iter<I: IntoIterator<Item = FileOwner<'a>>>(all: I) -> FileOwners {
        let mut places = FileOwners::default();
        all.into_iter().for_each(|place| places.push(place));
        places
    }
}

/// The sum of a group.
#[derive(Clone, Debug, Default)]
pub struct GroupSum {
    /// How many messages.
    pub messages: u64,
    /// Their tokens.
    pub usage: Usage,
    /// What they cost, as far as prices are known.
    pub cost: CostSum,
    /// How many were answered in the fast mode.
    pub fast: u64,
    /// What those cost.
    pub fast_cost: CostSum,
    /// How many have an output that may be more than was written.
    pub floors: u64,
    /// Their models.
    pub models: BTreeSet<String>,
    /// The time of the first.
    pub first: Option<Time>,
    /// The time of the last.
    pub last: Option<Time>,
    /// Tokens over time, in equal steps of the group's own stretch of time.
    pub shape: Vec<u64>,
    /// The counted messages, by their number, if [`GroupSources::with_members`].
    pub members: Vec<u32>,
}

/// A row: what its messages have in common, and their sum.
pub type GroupRow = (Vec<GroupKey>, GroupSum);

/// Everything that groups are made of.
pub struct GroupSources<'a> {
    ledger: &'a UsageLedger,
    zone: &'a TimeZone,
    places: &'a FileOwners,
    /// The price of each model of the ledger.
    prices: LedgerPrices<'a>,
    /// Of each version of the ledger, whether its output may be unfinished.
    unfinished: Vec<bool>,
    /// Whether sums name their messages.
    members: bool,
    /// The day that weeks begin with.
    week_start: Weekday,
}

/// What has no name.
const NONE: i64 = -1;

/// A sub-agent inside its session's file, which has no name of its own.
const INSIDE: i64 = -2;

/// The numbers of what a message is grouped by; there are nine ways.
type GroupNumbers = [i64; 9];

/// Into how many steps a group's stretch of time is cut.
const STEPS: usize = 12;

impl<'a> GroupSources<'a> {
    /// The books of this ledger, whose files belong to these places, at these prices, with
    /// days of this zone.
    pub fn new(
        ledger: &'a UsageLedger,
        places: &'a FileOwners,
        prices: &'a Prices,
        zone: &'a TimeZone,
    ) -> GroupSources<'a> {
        let versions = ledger.versions.iter();
        GroupSources {
            ledger,
            zone,
            places,
            prices: ledger.prices(prices),
            unfinished: versions
                .map(|(version, _)| is_unfinished(version))
                .collect(),
            members: false,
            week_start: Weekday::Monday,
        }
    }

    /// The same, with weeks that begin on this day.
    pub fn with_week_start(self, week_start: Weekday) -> GroupSources<'a> {
        GroupSources { week_start, ..self }
    }

    /// The same, with sums that name their messages.
    pub fn with_members(self) -> GroupSources<'a> {
        GroupSources {
            members: true,
            ..self
        }
    }

    /// Sums of the messages that `wanted` lets through, by these keys, in their order.
    pub fn group(
        &self,
        per: &[GroupBy],
        wanted: impl Fn(&CountedMessage) -> bool,
    ) -> Vec<GroupRow> {
        let taken = || {
            let all = (0u32..).zip(self.ledger.counted.iter());
            all.filter(|(_, one)| wanted(one))
        };
        let blocks = per.contains(&GroupBy::Block).then(|| self.blocks());
        let is_name = |per: &&GroupBy| !per.is_time();
        let named = per.first().filter(is_name);
        let range = named.and_then(|_| range(taken().filter_map(|(_, one)| one.at())));
        let mut known: HashMap<GroupNumbers, usize> = HashMap::default();
        let mut rows: Vec<GroupRow> = Vec::new();
        let mut models: Vec<Vec<u32>> = Vec::new();
        for (at, one) in taken() {
            let block = blocks.as_ref().and_then(|blocks| blocks[at as usize]);
            let moment = one
                .at()
                .map(|at| (at, self.zone.to_datetime(at.timestamp())));
            let mut numbers = [0; 9];
            for (slot, per) in numbers.iter_mut().zip(per) {
                *slot = self.number(*per, one, moment, block);
            }
            let row = *known.entry(numbers).or_insert_with(|| {
                let keys = per.iter().zip(numbers);
                let keys = keys.map(|(per, number)| self.key(*per, number)).collect();
                rows.push((keys, GroupSum::default()));
                models.push(Vec::new());
                rows.len() - 1
            });
            let step = per
                .first()
                .and_then(|per| step(*per, moment, block, range, self.week_start));
            let sum = &mut rows[row].1;
            self.add(sum, one, step);
            if self.members {
                sum.members.push(at);
            }
            if let Some(model) = one.model()
                && !models[row].contains(&model)
            {
                models[row].push(model);
            }
        }
        for (row, models) in rows.iter_mut().zip(models) {
            let names = models
                .iter()
                .map(|model| self.ledger.models.get(*model).to_owned());
            row.1.models = names.collect();
        }
        rows.sort_by(|(one, _), (other, _)| one.cmp(other));
        rows
    }

    /// The sum of these rows.
    pub fn total(&self, rows: &[GroupRow]) -> GroupSum {
        let mut total = GroupSum::default();
        for (_, sum) in rows {
            total.messages += sum.messages;
            total.usage += sum.usage;
            total.cost += sum.cost;
            total.fast += sum.fast;
            total.fast_cost += sum.fast_cost;
            total.floors += sum.floors;
            total.models.extend(sum.models.iter().cloned());
            total.first = match (total.first, sum.first) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
            total.last = total.last.max(sum.last);
        }
        total
    }

    /// What a message costs, if its model has a price for all of it.
    pub fn cost(&self, one: &CountedMessage) -> Option<Cost> {
        self.ledger.charge(one, &self.prices)
    }

    /// Whether the output of a message may be more than was written.
    pub fn is_floor(&self, one: &CountedMessage) -> bool {
        let version = one.version().filter(|_| !one.stopped());
        version.is_some_and(|version| self.unfinished.get(version as usize) == Some(&true))
    }

    fn add(&self, sum: &mut GroupSum, one: &CountedMessage, step: Option<usize>) {
        sum.messages += 1;
        sum.usage += one.usage();
        let cost = CostSum::of(self.cost(one));
        sum.cost += cost;
        if one.terms().fast {
            sum.fast += 1;
            sum.fast_cost += cost;
        }
        sum.floors += u64::from(self.is_floor(one));
        if let Some(time) = one.at() {
            sum.first = Some(sum.first.map_or(time, |first| first.min(time)));
            sum.last = sum.last.max(Some(time));
        }
        if let Some(step) = step {
            sum.shape.resize(STEPS, 0);
            sum.shape[step.min(STEPS - 1)] += one.usage().total();
        }
    }

    fn number(
        &self,
        per: GroupBy,
        one: &CountedMessage,
        moment: Option<(Time, DateTime)>,
        block: Option<Time>,
    ) -> i64 {
        let tags = &self.places.files[one.file as usize];
        let name = |number: Option<u32>| number.map_or(NONE, i64::from);
        let day =
            |first: fn(Date) -> Date| moment.map_or(NONE, |(_, local)| packed(first(local.date())));
        match per {
            GroupBy::Day => day(|day| day),
            GroupBy::Week => moment.map_or(NONE, |(_, local)| {
                packed(period::week(local.date(), self.week_start))
            }),
            GroupBy::Month => day(period::month),
            // No message was sent in 1969.
            GroupBy::Block => block.map_or(NONE, |start| start.0),
            GroupBy::Session => name(tags.session),
            GroupBy::Project => name(Some(tags.project)),
            GroupBy::Model => name(one.model()),
            GroupBy::Speed => i64::from(one.terms().fast),
            GroupBy::Agent => {
                let inside = one.marks();
                match name(tags.agent) {
                    // Old clients wrote sub-agents into the session's own file.
                    NONE if inside.sidechain || inside.copy => INSIDE,
                    agent => agent,
                }
            }
        }
    }

    /// What a number stands for.
    fn key(&self, per: GroupBy, number: i64) -> GroupKey {
        match per {
            GroupBy::Day | GroupBy::Week | GroupBy::Month => GroupKey::Date(unpacked(number)),
            GroupBy::Block => GroupKey::Block((number != NONE).then_some(Time(number))),
            GroupBy::Speed => GroupKey::Text(Some(
                if number == 1 { "fast" } else { "standard" }.to_owned(),
            )),
            GroupBy::Session | GroupBy::Project | GroupBy::Model | GroupBy::Agent => {
                GroupKey::Text(match number {
                    NONE => None,
                    INSIDE => Some(String::new()),
                    model if per == GroupBy::Model => {
                        Some(self.ledger.models.get(model as u32).to_owned())
                    }
                    number => Some(self.places.names.get(number as u32).to_owned()),
                })
            }
        }
    }

    /// The window of each message. Which ones there are depends on all messages, also on
    /// those that nobody asks about.
    fn blocks(&self) -> Vec<Option<Time>> {
        let times = || self.ledger.counted.iter().map(CountedMessage::at);
        let known: Vec<Time> = times().flatten().collect();
        let mut starts = period::windows(&known).into_iter();
        times()
            .map(|time| time.and_then(|_| starts.next()))
            .collect()
    }
}

/// The first and the last of these times.
fn range(times: impl Iterator<Item = Time>) -> Option<(Time, Time)> {
    times.fold(None, |range, at| {
        let (first, last) = range.unwrap_or((at, at));
        Some((first.min(at), last.max(at)))
    })
}

/// In which step of its group's stretch of time a message falls.
fn step(
    per: GroupBy,
    moment: Option<(Time, DateTime)>,
    block: Option<Time>,
    range: Option<(Time, Time)>,
    week_start: Weekday,
) -> Option<usize> {
    let (at, local) = moment?;
    let share = |start: i64, length: i64| {
        let into = at.0.saturating_sub(start).max(0);
        (i128::from(into) * STEPS as i128 / i128::from(length.max(1))) as usize
    };
    let hours = |days: i64| (days * 24 + i64::from(local.hour())) as usize;
    Some(match per {
        GroupBy::Day => hours(0) * STEPS / 24,
        GroupBy::Week => {
            let days = i64::from(local.date().weekday().since(week_start));
            hours(days) * STEPS / (7 * 24)
        }
        GroupBy::Month => {
            let date = local.date();
            let days = i64::from(date.day()) - 1;
            hours(days) * STEPS / (usize::from(date.days_in_month().unsigned_abs()) * 24)
        }
        GroupBy::Block => share(block?.0, WINDOW),
        GroupBy::Session | GroupBy::Project | GroupBy::Model | GroupBy::Agent | GroupBy::Speed => {
            let (first, last) = range?;
            share(first.0, last.0 - first.0 + 1)
        }
    })
}

/// A date as a number that sorts like it.
fn packed(date: Date) -> i64 {
    let (year, month, day) = (date.year(), date.month(), date.day());
    (i64::from(year) + 10_000) * 10_000 + i64::from(month) * 100 + i64::from(day)
}

fn unpacked(number: i64) -> Option<Date> {
    let year = i16::try_from(number / 10_000 - 10_000).ok()?;
    let (month, day) = (number / 100 % 100, number % 100);
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}
