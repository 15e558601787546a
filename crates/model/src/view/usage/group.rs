//! Sums of counted messages by day, session, model and so on.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::Counted;
use super::period::{self, WINDOW};
use crate::price::{Cost, Prices};
use crate::spent::Spending;
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
pub struct Books<'a> {
    /// What each file says.
    pub files: &'a [&'a Spending],
    /// Where each file belongs.
    pub places: &'a [Place],
    /// The messages that count.
    pub counted: &'a [Counted],
    /// What they cost.
    pub prices: &'a Prices,
    /// The zone that days are of.
    pub zone: &'a TimeZone,
}

/// Into how many steps a group's stretch of time is cut.
const STEPS: usize = 12;

impl Books<'_> {
    /// Sums of the messages that `wanted` lets through, by these keys, in their order.
    pub fn group(&self, per: &[Per], wanted: impl Fn(&Counted) -> bool) -> Vec<Row> {
        let taken: Vec<u32> = (0u32..)
            .zip(self.counted)
            .filter(|(_, one)| wanted(one))
            .map(|(at, _)| at)
            .collect();
        let blocks = self.blocks(per, &taken);
        let range = self.range(&taken);
        let mut rows: BTreeMap<Vec<Key>, Sum> = BTreeMap::new();
        for (nth, &at) in taken.iter().enumerate() {
            let one = &self.counted[at as usize];
            let block = blocks.as_ref().and_then(|blocks| blocks[nth]);
            let key = |per: &Per| self.key(*per, one, block);
            let keys: Vec<Key> = per.iter().map(key).collect();
            let step = per
                .first()
                .and_then(|per| self.step(*per, one, block, range));
            let sum = rows.entry(keys).or_default();
            self.add(sum, at, one, step);
        }
        rows.into_iter().collect()
    }

    /// The sum of all that `wanted` lets through.
    pub fn total(&self, wanted: impl Fn(&Counted) -> bool) -> Sum {
        let rows = self.group(&[], wanted);
        rows.into_iter()
            .next()
            .map(|(_, sum)| sum)
            .unwrap_or_default()
    }

    fn add(&self, sum: &mut Sum, at: u32, one: &Counted, step: Option<usize>) {
        sum.messages += 1;
        sum.usage += one.usage;
        match one.cost(self.files, self.prices) {
            Some(cost) => sum.known_cost += cost,
            None => sum.unpriced += 1,
        }
        sum.floors += u64::from(one.floor(self.files).is_some());
        if let Some(model) = one.model(self.files)
            && !sum.models.contains(model)
        {
            sum.models.insert(model.to_owned());
        }
        if let Some(time) = one.at {
            sum.first = Some(sum.first.map_or(time, |first| first.min(time)));
            sum.last = sum.last.max(Some(time));
        }
        if let Some(step) = step {
            sum.shape.resize(STEPS, 0);
            sum.shape[step.min(STEPS - 1)] += one.usage.total();
        }
        sum.members.push(at);
    }

    fn key(&self, per: Per, one: &Counted, block: Option<Time>) -> Key {
        let place = &self.places[one.file as usize];
        let day = || one.at.map(|at| period::day(at, self.zone));
        match per {
            Per::Day => Key::Date(day()),
            Per::Week => Key::Date(day().map(period::week)),
            Per::Month => Key::Date(day().map(period::month)),
            Per::Block => Key::Block(block),
            Per::Session => Key::Text(place.session.clone()),
            Per::Project => Key::Text(Some(place.project.clone())),
            Per::Model => Key::Text(one.model(self.files).map(str::to_owned)),
            Per::Agent => Key::Text(self.agent(one)),
        }
    }

    /// The sub-agent that a message belongs to.
    pub fn agent(&self, one: &Counted) -> Option<String> {
        let own = self.places[one.file as usize].agent.clone();
        let inside = one.spent(self.files).marks;
        // Old clients wrote sub-agents into the session's own file.
        own.or_else(|| (inside.sidechain || inside.copy).then(String::new))
    }

    fn blocks(&self, per: &[Per], taken: &[u32]) -> Option<Vec<Option<Time>>> {
        per.contains(&Per::Block).then(|| {
            let times: Vec<Option<Time>> = taken
                .iter()
                .map(|&at| self.counted[at as usize].at)
                .collect();
            let known: Vec<Time> = times.iter().copied().flatten().collect();
            let mut starts = period::windows(&known).into_iter();
            times
                .iter()
                .map(|time| time.and_then(|_| starts.next()))
                .collect()
        })
    }

    fn range(&self, taken: &[u32]) -> Option<(Time, Time)> {
        let times = || taken.iter().filter_map(|&at| self.counted[at as usize].at);
        times().min().zip(times().max())
    }

    /// In which step of its group's stretch of time a message falls.
    fn step(
        &self,
        per: Per,
        one: &Counted,
        block: Option<Time>,
        range: Option<(Time, Time)>,
    ) -> Option<usize> {
        let at = one.at?;
        let share = |start: i64, length: i64| {
            let into = at.0.saturating_sub(start).max(0);
            (i128::from(into) * STEPS as i128 / i128::from(length.max(1))) as usize
        };
        let local = || self.zone.to_datetime(at.timestamp());
        let hour = |days: i64| {
            let now = local();
            (days * 24 + i64::from(now.hour())) as usize
        };
        Some(match per {
            Per::Day => hour(0) * STEPS / 24,
            Per::Week => {
                let date = local().date();
                let days = period::week(date)
                    .until(date)
                    .map_or(0, |span| span.get_days());
                hour(i64::from(days)) * STEPS / (7 * 24)
            }
            Per::Month => {
                let date = local().date();
                hour(i64::from(date.day()) - 1) * STEPS
                    / (usize::from(date.days_in_month() as u8) * 24)
            }
            Per::Block => share(block?.0, WINDOW),
            Per::Session | Per::Project | Per::Model | Per::Agent => {
                let (first, last) = range?;
                share(first.0, last.0 - first.0 + 1)
            }
        })
    }
}
