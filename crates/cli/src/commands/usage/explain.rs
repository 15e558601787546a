//! How a row of `usage` came about: files, messages, what was dropped, and prices.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::path::Path;

use unspool_model::price::{Cost, PriceOrigin, Prices, TokenRate};
use unspool_model::view::cost::CostSum;
use unspool_model::view::usage::group::{GroupBy, GroupKey, GroupRow, GroupSources};
use unspool_model::view::usage::{self, CountOutcome, CountedMessage, period};
use unspool_show::format;
use unspool_show::table::{TableColumn, TextTable};
use unspool_show::wire::usage::UsageTrace;
use unspool_store::open::line_numbers;
use unspool_store::project;

use super::report::{keys, label, name, short_model};
use super::{UsageAccount, UsageArgs, UsageFilter};
use crate::command_context::CommandContext;
use crate::failure::CommandFailure;
use crate::time_input;

/// A message of a file, and what became of it.
struct TracedMessage<'a> {
    file: usize,
    message: u32,
    fate: CountOutcome,
    one: Option<&'a CountedMessage>,
}

/// Writes how the row came about that somebody named.
pub fn write(
    world: &CommandContext,
    args: &UsageArgs,
    account: &UsageAccount<'_>,
    prices: &Prices,
    filter: &UsageFilter,
    wanted: &str,
    out: &mut dyn Write,
) -> Result<(), CommandFailure> {
    let books = account.books(prices, world).with_members();
    let per = keys(args);
    let rows = books.group(&per, |one| filter.lets(one, &account.places));
    let fitting: Vec<&GroupRow> = rows
        .iter()
        .filter(|row| is_named(world, account, &per, row, wanted))
        .collect();
    if fitting.is_empty() {
        let some: Vec<String> = rows
            .iter()
            .rev()
            .take(5)
            .map(|(keys, _)| name(per[0], &keys[0]))
            .collect();
        return Err(
            CommandFailure::nothing(format!("no row `{wanted}`")).hint(format!(
                "use a row name from `unspool usage`, such as {}",
                some.join(", ")
            )),
        );
    }
    let several: BTreeSet<&GroupKey> = fitting.iter().map(|(keys, _)| &keys[0]).collect();
    if per[0] == GroupBy::Session && several.len() > 1 {
        let ids: Vec<String> = several.iter().map(|key| name(per[0], key)).collect();
        return Err(CommandFailure::failed(format!(
            "`{wanted}` is ambiguous: it matches {} sessions",
            ids.len()
        ))
        .hint(format!("use more characters of one: {}", ids.join(", "))));
    }
    let mut is_member = vec![false; account.ledger.counted.len()];
    let members = fitting.iter().flat_map(|(_, sum)| &sum.members);
    members.for_each(|&at| is_member[at as usize] = true);
    let traces = traces(account, &is_member, &fitting);
    if world.ui.json {
        return rows_out(world, account, &books, prices, &traces, out);
    }
    for row in &fitting {
        headline(&per, row, out)?;
    }
    files(account, &traces).write(out, &world.ui.style())?;
    writeln!(out)?;
    priced(account, &books, prices, &traces).write(out, &world.ui.style())?;
    writeln!(out)?;
    for line in dropped(&traces, account) {
        writeln!(out, "{line}")?;
    }
    let dates = dates(account, prices, &traces);
    writeln!(out, "{dates}; one row per message with `--json`.")?;
    Ok(())
}

/// Of when the prices are that were used.
fn dates(account: &UsageAccount<'_>, prices: &Prices, traces: &[TracedMessage<'_>]) -> String {
    let counted = traces
        .iter()
        .filter(|trace| trace.fate == CountOutcome::Counted);
    let dates: BTreeSet<&str> = counted
        .filter_map(|trace| prices.find(account.ledger.model(trace.one?)?))
        .map(|price| match (price.origin, &*price.date) {
            (PriceOrigin::Override, "") => "your overrides",
            (_, "") => "unknown date",
            (_, date) => date,
        })
        .collect();
    if dates.is_empty() {
        return "No prices used".to_owned();
    }
    let dates: Vec<&str> = dates.into_iter().collect();
    format!("Prices of {}", dates.join(" and "))
}

/// A stretch of time may also be called by a day in it, a session by the start of its id, and
/// anything as the table calls it.
fn is_named(
    world: &CommandContext,
    account: &UsageAccount<'_>,
    per: &[GroupBy],
    (keys, _): &GroupRow,
    wanted: &str,
) -> bool {
    let (per, key) = (per[0], &keys[0]);
    let called = name(per, key);
    if wanted.is_empty() {
        return false;
    }
    if called == wanted || label(world, per, key, 8).trim_end_matches(" (now)") == wanted {
        return true;
    }
    let day = || {
        let time = time_input::parse(wanted, world.now(), world.ui.zone()).ok()?;
        Some(period::day(time, world.ui.zone()))
    };
    match (per, key) {
        (GroupBy::Day, GroupKey::Date(Some(date))) => day() == Some(*date),
        (GroupBy::Week, GroupKey::Date(Some(date))) => {
            day().map(|day| period::week(day, account.week_start)) == Some(*date)
        }
        (GroupBy::Month, GroupKey::Date(Some(date))) => day().map(period::month) == Some(*date),
        (GroupBy::Session, _) => wanted.len() >= 4 && called.starts_with(wanted),
        (GroupBy::Project, _) => project::project_matches(&called, wanted),
        (GroupBy::Model, _) => called.contains(wanted),
        _ => false,
    }
}

/// What became of the row's messages, and of those of its sessions that do not count.
fn traces<'a>(
    account: &'a UsageAccount<'_>,
    is_member: &[bool],
    rows: &[&GroupRow],
) -> Vec<TracedMessage<'a>> {
    let mut touched = vec![false; account.files.len()];
    let members = rows.iter().flat_map(|(_, sum)| &sum.members);
    members.for_each(|&at| touched[account.ledger.counted[at].file as usize] = true);
    let between = |at| {
        let in_row = |(_, sum): &&&GroupRow| sum.first <= at && at <= sum.last;
        rows.iter().any(|row| in_row(&row))
    };
    let all = usage::count_outcomes(&account.files, account.ledger);
    let wanted = all
        .into_iter()
        .filter(|&(file, message, fate, of)| match of {
            Some(of) => is_member[of as usize],
            // What the client wrote belongs to no row; it is told where it stands.
            None => {
                let spent = &account.files[file as usize].messages[message as usize];
                fate == CountOutcome::Synthetic && touched[file as usize] && between(spent.at)
            }
        });
    wanted
        .map(|(file, message, fate, of)| TracedMessage {
            file: file as usize,
            message,
            fate,
            one: of.map(|of| &account.ledger.counted[of]),
        })
        .collect()
}

fn rows_out(
    world: &CommandContext,
    account: &UsageAccount<'_>,
    books: &GroupSources<'_>,
    prices: &Prices,
    traces: &[TracedMessage<'_>],
    out: &mut dyn Write,
) -> Result<(), CommandFailure> {
    let lines = lines(account, traces);
    for (trace, line) in traces.iter().zip(lines) {
        let spending = account.files[trace.file];
        let spent = &spending.messages[trace.message as usize];
        let place = account.places.get(trace.file as u32);
        let counts = trace.one.filter(|_| trace.fate == CountOutcome::Counted);
        // Where it counts, with what other files say about it.
        let usage = counts.map_or(spent.usage, |one| one.usage());
        let model = spending.model(spent);
        let row = UsageTrace {
            message: spending.id(spent).to_owned(),
            fate: trace.fate.name().to_owned(),
            path: account.sources[trace.file].path.display().to_string(),
            line,
            lines: spent.lines,
            session: place.session.map(str::to_owned),
            agent: place.agent.map(str::to_owned),
            at: spent.at.map(|at| at.to_string()),
            model: model.map(str::to_owned),
            version: spending.version(spent).map(str::to_owned),
            input: usage.input,
            output: usage.output,
            cache_read: usage.cache_read,
            cache_write_5m: usage.cache_write_5m,
            cache_write_1h: usage.cache_write_1h,
            floor: counts.is_some_and(|one| account.ledger.floor(one).is_some()),
            price: model
                .and_then(|model| prices.find(model))
                .map(|price| price.name.clone()),
            cost_usd: counts
                .and_then(|one| books.cost(one))
                .map(|cost| cost.usd()),
        };
        world.ui.row(out, &row)?;
    }
    Ok(())
}

/// The number of the line that each message begins with; each file is read once.
fn lines(account: &UsageAccount<'_>, traces: &[TracedMessage<'_>]) -> Vec<u32> {
    let mut offsets: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    let offset = |trace: &TracedMessage<'_>| {
        account.files[trace.file].messages[trace.message as usize].offset
    };
    for trace in traces {
        offsets.entry(trace.file).or_default().push(offset(trace));
    }
    let mut known: BTreeMap<(usize, u64), u32> = BTreeMap::new();
    for (file, mut places) in offsets {
        places.sort_unstable();
        places.dedup();
        let numbers = numbers(&account.sources[file].path, &places);
        known.extend(
            places
                .into_iter()
                .zip(numbers)
                .map(|(place, line)| ((file, place), line)),
        );
    }
    let line = |trace: &TracedMessage<'_>| known.get(&(trace.file, offset(trace))).copied();
    traces
        .iter()
        .map(|trace| line(trace).unwrap_or(0))
        .collect()
}

/// A file that is gone meanwhile has no lines.
fn numbers(path: &Path, places: &[u64]) -> Vec<u32> {
    let read = File::open(path).and_then(|file| line_numbers(&file, places));
    read.unwrap_or_else(|_| vec![0; places.len()])
}

fn headline(
    per: &[GroupBy],
    (keys, sum): &GroupRow,
    out: &mut dyn Write,
) -> Result<(), CommandFailure> {
    let names: Vec<String> = per
        .iter()
        .zip(keys)
        .map(|(per, key)| name(*per, key))
        .collect();
    let cost = match (sum.cost.total(), sum.cost.known) {
        (None, Cost(0)) => "unknown cost".to_owned(),
        (whole, known) => {
            format::cost_told(whole.map(Cost::usd), Some(known.usd()), sum.cost.unpriced)
        }
    };
    let usage = sum.usage;
    writeln!(
        out,
        "{}: {}, {cost}\n  input {}  output {}  cache read {}  cache write 5m {}  1h {}\n",
        unspool_show::clean::text(&names.join(" · ")),
        format::count(sum.messages, "message"),
        format::grouped(usage.input),
        format::grouped(usage.output),
        format::grouped(usage.cache_read),
        format::grouped(usage.cache_write_5m),
        format::grouped(usage.cache_write_1h),
    )?;
    Ok(())
}

/// Files, with how much of each counts and how much does not.
fn files(account: &UsageAccount<'_>, traces: &[TracedMessage<'_>]) -> TextTable {
    let mut table = TextTable::new(vec![
        TableColumn::path("file", 24),
        TableColumn::number("counted"),
        TableColumn::number("lines"),
        TableColumn::number("in older files"),
        TableColumn::number("copies"),
    ]);
    let mut per_file: BTreeMap<usize, [u64; 4]> = BTreeMap::new();
    for trace in traces
        .iter()
        .filter(|trace| trace.fate != CountOutcome::Synthetic)
    {
        let spent = &account.files[trace.file].messages[trace.message as usize];
        let row = per_file.entry(trace.file).or_default();
        match trace.fate {
            CountOutcome::Counted => row[0] += 1,
            CountOutcome::Elsewhere => row[2] += 1,
            CountOutcome::Copy => row[3] += 1,
            CountOutcome::Synthetic => {}
        }
        row[1] += u64::from(spent.lines);
    }
    for (file, counts) in per_file {
        let path = account.sources[file].path.display().to_string();
        table.row(std::iter::once(path).chain(counts.iter().map(|count| format::grouped(*count))));
    }
    table
}

/// Models, with the price that each was counted at.
fn priced(
    account: &UsageAccount<'_>,
    books: &GroupSources<'_>,
    prices: &Prices,
    traces: &[TracedMessage<'_>],
) -> TextTable {
    let mut table = TextTable::new(vec![
        TableColumn::flexible("model", 12),
        TableColumn::number("messages"),
        TableColumn::flexible("price", 12),
        TableColumn::number("in"),
        TableColumn::number("out"),
        TableColumn::number("read"),
        TableColumn::number("write 5m"),
        TableColumn::number("write 1h"),
        TableColumn::number("cost"),
    ]);
    let counted = traces
        .iter()
        .filter(|trace| trace.fate == CountOutcome::Counted);
    let mut models: BTreeMap<&str, Vec<&CountedMessage>> = BTreeMap::new();
    for one in counted.filter_map(|trace| trace.one) {
        models
            .entry(account.ledger.model(one).unwrap_or("unknown"))
            .or_default()
            .push(one);
    }
    for (model, ones) in models {
        let mut cost = CostSum::default();
        for one in ones.iter() {
            cost += CostSum::of(books.cost(one));
        }
        let cost = format::cost_sum(cost);
        let price = prices.find(model);
        let rates = price.map(|price| &price.rates);
        let rate = |rate: Option<TokenRate>| {
            rate.map_or_else(|| "?".to_owned(), |rate| format!("{}", rate.per_million()))
        };
        table.row([
            short_model(model).to_owned(),
            format::grouped(ones.len() as u64),
            price.map_or_else(|| "unknown".to_owned(), |price| price.name.clone()),
            rate(rates.and_then(|rates| rates.input)),
            rate(rates.and_then(|rates| rates.output)),
            rate(rates.and_then(|rates| rates.cache_read)),
            rate(rates.and_then(|rates| rates.cache_write_5m)),
            rate(rates.and_then(|rates| rates.cache_write_1h)),
            cost,
        ]);
    }
    table
}

/// In words, what was not counted and why.
fn dropped(traces: &[TracedMessage<'_>], account: &UsageAccount<'_>) -> Vec<String> {
    let many = |fate: CountOutcome| traces.iter().filter(|trace| trace.fate == fate).count() as u64;
    let counted = traces
        .iter()
        .filter(|trace| trace.fate == CountOutcome::Counted);
    let ones: Vec<&CountedMessage> = counted.filter_map(|trace| trace.one).collect();
    let told = traces.iter().filter(|trace| trace.one.is_some());
    let lines = told.map(|trace| {
        let spent = &account.files[trace.file].messages[trace.message as usize];
        u64::from(spent.lines)
    });
    let lines: u64 = lines.sum();
    let floors = ones
        .iter()
        .filter(|one| account.ledger.floor(one).is_some())
        .count() as u64;
    let once = format!(
        "{} report the tokens of {}; each message counts once, with the highest number of its lines.",
        format::count(lines, "line"),
        format::count(ones.len() as u64, "message")
    );
    let reasons = [
        (
            CountOutcome::Elsewhere,
            "message in a resumed or forked session is counted in an older file",
            "messages in resumed or forked sessions are counted in an older file",
        ),
        (
            CountOutcome::Copy,
            "message in a progress line is counted in the sub-agent's own file",
            "messages in progress lines are counted in the sub-agents' own files",
        ),
        (
            CountOutcome::Synthetic,
            "message was written by the client and costs nothing",
            "messages were written by the client and cost nothing",
        ),
    ];
    let mut all = vec![once];
    for (fate, one, several) in reasons {
        match many(fate) {
            0 => {}
            1 => all.push(format!("1 {one}.")),
            count => all.push(format!("{} {several}.", format::grouped(count))),
        }
    }
    if floors > 0 {
        all.push(format!(
            "The output of {} is a lower bound: their client did not record the final count.",
            format::grouped(floors)
        ));
    }
    all
}
