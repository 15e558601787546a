//! `usage`: tokens and cost, each message once.

mod explain;
mod report;

use std::collections::HashMap;
use std::io::Write;
use std::time::Duration;

use clap::{Args, ValueEnum};
use jiff::civil::Weekday;
use unspool_index::usage_cache::UsageCache;
use unspool_model::file_usage::FileUsage;
use unspool_model::price::Prices;
use unspool_model::time::Time;
use unspool_model::view::usage::group::{FileOwners, GroupBy, GroupSources};
use unspool_model::view::usage::{CountedMessage, UsageLedger};
use unspool_show::wire::usage::UsageSum;
use unspool_store::project;
use unspool_store::token_scan::{TokenScanFile, places};

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;
use crate::time_input;

/// Arguments of `usage`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unspool usage                        tokens and cost per day
  unspool usage month --by model       per month and model
  unspool usage session --since 7d     sessions of the last week, with context fill
  unspool usage block --live           the current five-hour window, refreshed
  unspool usage day --explain today    how a number was computed
  unspool usage --json | jq -s 'map(.cost_usd) | add'

A message counts once, on the day of its first line, however many lines and files repeat it.
A fork has only what is new in it here; `unspool ls` shows all that stands in it.
Sub-agents count in their session. Prices are those of `unspool prices`; where some messages
have none, a row shows what the others cost (`≥ $1.20`), and `cost_usd` is null, never 0.")]
pub struct UsageArgs {
    /// Group by
    #[arg(value_enum, default_value = "day")]
    pub per: UsageGroupArg,

    /// Only messages since this time, such as `7d`, `24h`, `today` or `2026-01-03`
    #[arg(long, value_name = "T")]
    pub since: Option<String>,

    /// Only messages until this time (a date includes that whole day)
    #[arg(long, value_name = "T")]
    pub until: Option<String>,

    /// Also group by
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    pub by: Vec<UsageGroupArg>,

    /// First day of the week
    #[arg(long, value_enum, value_name = "DAY", default_value = "monday")]
    pub start_of_week: WeekStart,

    /// Only this project (name, directory, or part of one)
    #[arg(long, value_name = "P")]
    pub project: Option<String>,

    /// List sub-agents separately from their sessions
    #[arg(long)]
    pub own: bool,

    /// Explain how a row was computed, given its day, session, project or model
    #[arg(long, value_name = "ROW")]
    pub explain: Option<String>,

    /// Keep refreshing until interrupted
    #[arg(long, conflicts_with = "explain")]
    pub live: bool,

    /// Ignore the cache and read every file again
    #[arg(long)]
    pub no_cache: bool,
}

/// What usage can be summed up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UsageGroupArg {
    /// Days in the local time zone, or in `--timezone`
    #[value(alias = "daily")]
    Day,
    /// Weeks, from Monday or `--start-of-week`
    #[value(alias = "weekly")]
    Week,
    /// Months
    #[value(alias = "monthly")]
    Month,
    /// Sessions, sub-agents included
    #[value(alias = "sessions")]
    Session,
    /// Projects
    #[value(alias = "projects")]
    Project,
    /// Models
    #[value(alias = "models")]
    Model,
    /// Five-hour windows, as used by plan limits
    #[value(alias = "blocks")]
    Block,
    /// Fast and standard mode
    Speed,
}

/// A day that weeks can begin with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum WeekStart {
    /// Monday (ISO 8601)
    #[default]
    Monday,
    /// Tuesday
    Tuesday,
    /// Wednesday
    Wednesday,
    /// Thursday
    Thursday,
    /// Friday
    Friday,
    /// Saturday
    Saturday,
    /// Sunday (North America)
    Sunday,
}

impl WeekStart {
    fn weekday(self) -> Weekday {
        match self {
            WeekStart::Monday => Weekday::Monday,
            WeekStart::Tuesday => Weekday::Tuesday,
            WeekStart::Wednesday => Weekday::Wednesday,
            WeekStart::Thursday => Weekday::Thursday,
            WeekStart::Friday => Weekday::Friday,
            WeekStart::Saturday => Weekday::Saturday,
            WeekStart::Sunday => Weekday::Sunday,
        }
    }
}

impl UsageGroupArg {
    fn per(self) -> GroupBy {
        match self {
            UsageGroupArg::Day => GroupBy::Day,
            UsageGroupArg::Week => GroupBy::Week,
            UsageGroupArg::Month => GroupBy::Month,
            UsageGroupArg::Session => GroupBy::Session,
            UsageGroupArg::Project => GroupBy::Project,
            UsageGroupArg::Model => GroupBy::Model,
            UsageGroupArg::Block => GroupBy::Block,
            UsageGroupArg::Speed => GroupBy::Speed,
        }
    }
}

/// The messages that count, and everything about them that rows are made of.
pub struct UsageAccount<'a> {
    /// Every file.
    pub sources: &'a [TokenScanFile],
    /// What each says; nothing unless a row is to be explained.
    pub files: Vec<&'a FileUsage>,
    /// Where each belongs.
    pub places: FileOwners,
    /// The messages that count.
    pub ledger: &'a UsageLedger,
    /// The file of each session itself; none unless rows are about sessions.
    mains: HashMap<String, u32>,
    prices: &'a Prices,
    /// The day that weeks begin with.
    pub week_start: Weekday,
}

impl<'a> UsageAccount<'a> {
    fn of(spendings: &'a UsageCache, args: &UsageArgs, prices: &'a Prices) -> UsageAccount<'a> {
        let per = report::keys(args);
        let (sources, ledger) = (spendings.sources(), spendings.ledger());
        let places = places(sources, ledger);
        let by_session = per.contains(&GroupBy::Session);
        let mains = (0..).zip(places.iter()).filter(|_| by_session);
        let mains = mains.filter(|(_, place)| place.agent.is_none());
        let named = mains.filter_map(|(at, place)| Some((place.session?, at)));
        let mut mains: HashMap<String, u32> = HashMap::new();
        for (session, at) in named {
            // Sessions come before stray files whose lines name the same one.
            mains.entry(session.to_owned()).or_insert(at);
        }
        UsageAccount {
            mains,
            sources,
            files: spendings.files(),
            places,
            ledger,
            prices,
            week_start: args.start_of_week.weekday(),
        }
    }

    /// How full the context of a session's file is.
    pub fn context(&self, at: u32) -> Option<(u64, Option<u64>)> {
        self.ledger.context(at, self.prices)
    }

    /// The file of a session itself.
    pub fn main(&self, session: Option<&str>) -> Option<u32> {
        session.and_then(|id| self.mains.get(id).copied())
    }

    /// The same, to be grouped.
    pub fn books<'b>(&'b self, prices: &'b Prices, world: &'b CommandContext) -> GroupSources<'b> {
        let books = GroupSources::new(self.ledger, &self.places, prices, world.ui.zone());
        books.with_week_start(self.week_start)
    }
}

/// Which messages are wanted.
pub struct UsageFilter {
    since: Option<Time>,
    until: Option<Time>,
    project: Option<String>,
}

impl UsageFilter {
    fn new(world: &CommandContext, args: &UsageArgs) -> Result<UsageFilter, CommandFailure> {
        let (now, zone) = (world.now(), world.ui.zone());
        let since = args.since.as_deref();
        let until = args.until.as_deref();
        let filter = UsageFilter {
            since: since
                .map(|text| time_input::parse(text, now, zone))
                .transpose()?,
            until: until
                .map(|text| time_input::end(text, now, zone))
                .transpose()?,
            project: args.project.clone(),
        };
        match (filter.since, filter.until) {
            (Some(since), Some(until)) if since >= until => {
                Err(CommandFailure::failed("`--since` must be before `--until`"))
            }
            _ => Ok(filter),
        }
    }

    fn lets(&self, one: &CountedMessage, places: &FileOwners) -> bool {
        let after = self
            .since
            .is_none_or(|since| one.at().is_some_and(|at| at >= since));
        let before = self
            .until
            .is_none_or(|until| one.at().is_some_and(|at| at < until));
        let project = places.get(one.file).project;
        let fits = self
            .project
            .as_ref()
            .is_none_or(|wanted| project::project_matches(project, wanted));
        after && before && fits
    }
}

/// The rows that were asked for, of what is known and of what is new.
pub fn rows(
    world: &CommandContext,
    args: &UsageArgs,
    spendings: &mut UsageCache,
) -> Result<Vec<UsageSum>, CommandFailure> {
    let filter = UsageFilter::new(world, args)?;
    spendings.update(world.walked()?);
    let prices = world.prices();
    let account = UsageAccount::of(spendings, args, &prices);
    let rows = report::rows(args, &account, &account.books(&prices, world), &filter);
    let row = |row| report::wire(world, &account, &report::keys(args), row);
    Ok(rows.iter().map(row).collect())
}

/// How often `--live` looks.
const PAUSE: Duration = Duration::from_secs(2);

/// Sums up.
pub fn run(world: &CommandContext, args: &UsageArgs) -> Result<(), CommandFailure> {
    let filter = UsageFilter::new(world, args)?;
    let prices = world.prices();
    let cache = (!args.no_cache && world.demo.is_none()).then_some(world.own.cache.as_path());
    let mut spendings = UsageCache::open(cache, args.live || args.explain.is_some());
    let mut shown = Vec::new();
    loop {
        let found = world.walked()?;
        if found.sessions.is_empty() && found.agents.is_empty() && found.others.is_empty() {
            return Err(world.no_sessions());
        }
        spendings.update(found);
        for note in spendings.notes() {
            world.ui.warn(&note);
        }
        let account = UsageAccount::of(&spendings, args, &prices);
        if !args.live {
            let mut out = world.ui.out();
            let remarks = write(world, args, &account, &prices, &filter, &mut out)?;
            out.flush()?;
            remarks.iter().for_each(|remark| world.ui.note(remark));
            return Ok(());
        }
        let mut out = Vec::new();
        let remarks = write(world, args, &account, &prices, &filter, &mut out)?;
        if out != shown {
            show_again(world, &out)?;
            remarks.iter().for_each(|remark| world.ui.note(remark));
            shown = out;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Writes what was asked for, and says what there is to remark.
fn write(
    world: &CommandContext,
    args: &UsageArgs,
    account: &UsageAccount<'_>,
    prices: &Prices,
    filter: &UsageFilter,
    out: &mut dyn Write,
) -> Result<Vec<String>, CommandFailure> {
    match &args.explain {
        Some(row) => {
            explain::write(world, args, account, prices, filter, row, out)?;
            Ok(Vec::new())
        }
        None => report::write(world, args, account, prices, filter, out),
    }
}

/// Shows what `--live` found in the place of what it showed before.
fn show_again(world: &CommandContext, text: &[u8]) -> Result<(), CommandFailure> {
    if !world.ui.json {
        world.ui.clear()?;
    }
    let mut out = world.ui.out();
    out.write_all(text)?;
    Ok(out.flush()?)
}
