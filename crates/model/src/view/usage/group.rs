//! Sums of counted messages by day, session, model and so on.

use std::collections::BTreeSet;

use foldhash::HashMap;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

use super::period::{self, WINDOW};
use super::{Counted, Ledger, is_unfinished};
use crate::price::{Cost, Price, Prices};
use crate::tally::Tally;
use crate::time::Time;
use crate::usage::Usage;

/// What to sum up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// The local day of the first line.
    Day,
    /// The week from Monday to Sunday.
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
}

/// What the messages of a group have in common. `None`: it is not known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A day, or the first day of a week or month.
    Date(Option<Date>),
    /// The start of a window.
    Block(Option<Time>),
    /// A session, project or model.
    Text(Option<String>),
}

/// Where a file belongs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Its session.
    pub session: Option<String>,
    /// The sub-agent whose file it is.
    pub agent: Option<String>,
    /// Its project.
    pub project: String,
}

/// The sum of a group.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    /// How many messages.
    pub messages: u64,
    /// Their tokens.
    pub usage: Usage,
    /// What those cost whose price is known.
    pub known_cost: Cost,
    /// How many have no price.
    pub unpriced: u64,
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
    /// The counted messages, by their number.
    pub members: Vec<u32>,
}

impl Sum {
    /// What they cost; unknown if any of them is.
    pub fn cost(&self) -> Option<Cost> {
        (self.unpriced == 0).then_some(self.known_cost)
    }
}

/// A row: what its messages have in common, and their sum.
pub type Row = (Vec<Key>, Sum);

/// Everything that groups are made of.
///
/// Names are given numbers once, so that a message is grouped by comparing numbers.
pub struct Books<'a> {
    ledger: &'a Ledger,
    zone: &'a TimeZone,
    names: Tally,
    /// What each file has in common with others.
    tags: Vec<Tags>,
    /// The price of each model of the ledger.
    prices: Vec<Option<&'a Price>>,
    /// Of each version of the ledger, whether its output may be unfinished.
    unfinished: Vec<bool>,
}

/// The numbers of a file's names.
struct Tags {
    session: i64,
    project: i64,
    agent: i64,
}

/// What has no name.
const NONE: i64 = -1;

/// A sub-agent inside its session's file, which has no name of its own.
const INSIDE: i64 = -2;

/// The numbers of what a message is grouped by; there are eight ways.
type Numbers = [i64; 8];

/// Into how many steps a group's stretch of time is cut.
const STEPS: usize = 12;

impl<'a> Books<'a> {
    /// The books of this ledger, whose files belong to these places, at these prices, with
    /// days of this zone.
    pub fn new(
        ledger: &'a Ledger,
        places: &[Place],
        prices: &'a Prices,
        zone: &'a TimeZone,
    ) -> Books<'a> {
        let mut names = Tally::default();
        let mut number = |name: Option<&str>| name.map_or(NONE, |name| i64::from(names.add(name)));
        let tags = places.iter().map(|place| Tags {
            session: number(place.session.as_deref()),
            project: number(Some(&place.project)),
            agent: number(place.agent.as_deref()),
        });
        let (models, versions) = (ledger.models.iter(), ledger.versions.iter());
        Books {
            ledger,
            zone,
            tags: tags.collect(),
            names,
            prices: models.map(|(model, _)| prices.find(model)).collect(),
            unfinished: versions
                .map(|(version, _)| is_unfinished(version))
                .collect(),
        }
    }

    /// Sums of the messages that `wanted` lets through, by these keys, in their order.
    pub fn group(&self, per: &[Per], wanted: impl Fn(&Counted) -> bool) -> Vec<Row> {
        let taken: Vec<u32> = (0u32..)
            .zip(&self.ledger.counted)
            .filter(|(_, one)| wanted(one))
            .map(|(at, _)| at)
            .collect();
        let blocks = per.contains(&Per::Block).then(|| self.blocks());
        let range = self.range(&taken);
        let mut known: HashMap<Numbers, usize> = HashMap::default();
        let mut rows: Vec<Row> = Vec::new();
        let mut models: Vec<Vec<u32>> = Vec::new();
        for &at in &taken {
            let one = &self.ledger.counted[at as usize];
            let block = blocks.as_ref().and_then(|blocks| blocks[at as usize]);
            let moment = one
                .at()
                .map(|at| (at, self.zone.to_datetime(at.timestamp())));
            let mut numbers = [0; 8];
            for (slot, per) in numbers.iter_mut().zip(per) {
                *slot = self.number(*per, one, moment, block);
            }
            let row = *known.entry(numbers).or_insert_with(|| {
                let keys = per.iter().zip(numbers);
                let keys = keys.map(|(per, number)| self.key(*per, number)).collect();
                rows.push((keys, Sum::default()));
                models.push(Vec::new());
                rows.len() - 1
            });
            let step = per.first().and_then(|per| step(*per, moment, block, range));
            self.add(&mut rows[row].1, at, step);
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
    pub fn total(&self, rows: &[Row]) -> Sum {
        let mut total = Sum::default();
        for (_, sum) in rows {
            total.messages += sum.messages;
            total.usage += sum.usage;
            total.known_cost += sum.known_cost;
            total.unpriced += sum.unpriced;
            total.floors += sum.floors;
            total.models.extend(sum.models.iter().cloned());
            total.first = match (total.first, sum.first) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
            total.last = total.last.max(sum.last);
            total.members.extend_from_slice(&sum.members);
        }
        total
    }

    /// What a message costs, if its model has a price for all of it.
    pub fn cost(&self, one: &Counted) -> Option<Cost> {
        let price = self.prices.get(one.model()? as usize).copied().flatten()?;
        price.charge(one.usage(), one.terms()).ok()
    }

    /// Whether the output of a message may be more than was written.
    pub fn is_floor(&self, one: &Counted) -> bool {
        let version = one.version().filter(|_| !one.stopped());
        version.is_some_and(|version| self.unfinished.get(version as usize) == Some(&true))
    }

    fn add(&self, sum: &mut Sum, at: u32, step: Option<usize>) {
        let one = &self.ledger.counted[at as usize];
        sum.messages += 1;
        sum.usage += one.usage();
        match self.cost(one) {
            Some(cost) => sum.known_cost += cost,
            None => sum.unpriced += 1,
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
        sum.members.push(at);
    }

    fn number(
        &self,
        per: Per,
        one: &Counted,
        moment: Option<(Time, DateTime)>,
        block: Option<Time>,
    ) -> i64 {
        let tags = &self.tags[one.file as usize];
        let day =
            |first: fn(Date) -> Date| moment.map_or(NONE, |(_, local)| packed(first(local.date())));
        match per {
            Per::Day => day(|day| day),
            Per::Week => day(period::week),
            Per::Month => day(period::month),
            // No message was sent in 1969.
            Per::Block => block.map_or(NONE, |start| start.0),
            Per::Session => tags.session,
            Per::Project => tags.project,
            Per::Model => one.model().map_or(NONE, i64::from),
            Per::Agent => {
                let inside = one.marks();
                match tags.agent {
                    // Old clients wrote sub-agents into the session's own file.
                    NONE if inside.sidechain || inside.copy => INSIDE,
                    agent => agent,
                }
            }
        }
    }

    /// What a number stands for.
    fn key(&self, per: Per, number: i64) -> Key {
        match per {
            Per::Day | Per::Week | Per::Month => Key::Date(unpacked(number)),
            Per::Block => Key::Block((number != NONE).then_some(Time(number))),
            Per::Session | Per::Project | Per::Model | Per::Agent => Key::Text(match number {
                NONE => None,
                INSIDE => Some(String::new()),
                model if per == Per::Model => Some(self.ledger.models.get(model as u32).to_owned()),
                number => Some(self.names.get(number as u32).to_owned()),
            }),
        }
    }

    /// The window of each message. Which ones there are depends on all messages, also on
    /// those that nobody asks about.
    fn blocks(&self) -> Vec<Option<Time>> {
        let times = || self.ledger.counted.iter().map(Counted::at);
        let known: Vec<Time> = times().flatten().collect();
        let mut starts = period::windows(&known).into_iter();
        times()
            .map(|time| time.and_then(|_| starts.next()))
            .collect()
    }

    fn range(&self, taken: &[u32]) -> Option<(Time, Time)> {
        let times = || {
            taken
                .iter()
                .filter_map(|&at| self.ledger.counted[at as usize].at())
        };
        times().min().zip(times().max())
    }
}

/// In which step of its group's stretch of time a message falls.
fn step(
    per: Per,
    moment: Option<(Time, DateTime)>,
    block: Option<Time>,
    range: Option<(Time, Time)>,
) -> Option<usize> {
    let (at, local) = moment?;
    let share = |start: i64, length: i64| {
        let into = at.0.saturating_sub(start).max(0);
        (i128::from(into) * STEPS as i128 / i128::from(length.max(1))) as usize
    };
    let hours = |days: i64| (days * 24 + i64::from(local.hour())) as usize;
    Some(match per {
        Per::Day => hours(0) * STEPS / 24,
        Per::Week => {
            let days = i64::from(local.date().weekday().to_monday_zero_offset());
            hours(days) * STEPS / (7 * 24)
        }
        Per::Month => {
            let date = local.date();
            let days = i64::from(date.day()) - 1;
            hours(days) * STEPS / (usize::from(date.days_in_month().unsigned_abs()) * 24)
        }
        Per::Block => share(block?.0, WINDOW),
        Per::Session | Per::Project | Per::Model | Per::Agent => {
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
