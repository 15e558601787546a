//! The rows of `usage`, as a table and for machines.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::Write;

use jiff::civil::Date;
use unspool_model::price::{Cost, Prices, UnpricedReason};
use unspool_model::time::Time;
use unspool_model::view::usage::group::{GroupBy, GroupKey, GroupRow, GroupSources, GroupSum};
use unspool_model::view::usage::period::WINDOW;
use unspool_model::view::usage::{CountedMessage, version_numbers};
use unspool_show::format;
use unspool_show::sparkline::spark;
use unspool_show::style::{StyledLine, TextStyle};
use unspool_show::table::{TableColumn, TextTable};
use unspool_show::wire::usage::UsageSum;
use unspool_store::project;

use super::{UsageAccount, UsageArgs, UsageFilter, UsageGroupArg};
use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// Writes the rows that were asked for.
pub fn write(
    world: &CommandContext,
    args: &UsageArgs,
    account: &UsageAccount<'_>,
    prices: &Prices,
    filter: &UsageFilter,
    out: &mut dyn Write,
) -> Result<Vec<String>, CommandFailure> {
    let books = account.books(prices, world);
    let per = keys(args);
    let wanted = |one: &CountedMessage| filter.lets(one, &account.places);
    let rows = rows(args, account, &books, filter);
    if rows.is_empty() {
        return Err(CommandFailure::nothing("no message matches")
            .hint("widen `--since`, `--until` or `--project`; `unspool ls` lists all sessions"));
    }
    if world.ui.json {
        for row in &rows {
            let row = wire(world, account, &per, row);
            world.ui.row(out, &row)?;
        }
        return Ok(Vec::new());
    }
    let total = books.total(&rows);
    table(world, account, &per, &rows, &total).write(out, &world.ui.style())?;
    Ok(remarks(account, &books, &total, wanted))
}

/// The rows, in their order.
pub fn rows(
    args: &UsageArgs,
    account: &UsageAccount<'_>,
    books: &GroupSources<'_>,
    filter: &UsageFilter,
) -> Vec<GroupRow> {
    let mut rows = books.group(&keys(args), |one: &CountedMessage| {
        filter.lets(one, &account.places)
    });
    sort(args.per, &mut rows);
    rows
}

/// What the rows are told apart by, in the order of the columns.
pub fn keys(args: &UsageArgs) -> Vec<GroupBy> {
    let mut keys = vec![args.per.per()];
    for by in args.by.iter().map(|by| by.per()) {
        if !keys.contains(&by) {
            keys.push(by);
        }
    }
    if args.own {
        keys.push(GroupBy::Agent);
    }
    keys
}

/// Times run downwards, so that the latest stands above the prompt; names go by their cost.
fn sort(per: UsageGroupArg, rows: &mut [GroupRow]) {
    match per {
        UsageGroupArg::Day | UsageGroupArg::Week | UsageGroupArg::Month | UsageGroupArg::Block => {}
        UsageGroupArg::Session => rows.sort_by_key(|(_, sum)| sum.last),
        UsageGroupArg::Project | UsageGroupArg::Model | UsageGroupArg::Speed => {
            rows.sort_by_key(|(_, sum)| (sum.cost.known, sum.usage.total()));
        }
    }
}

/// A row for machines.
pub fn wire(
    world: &CommandContext,
    account: &UsageAccount<'_>,
    per: &[GroupBy],
    (keys, sum): &GroupRow,
) -> UsageSum {
    let usage = sum.usage;
    let one = (sum.models.len() == 1).then(|| sum.models.first().cloned());
    let time = |time: Option<Time>| time.map(|time| time.to_string());
    let mut row = UsageSum {
        model: one.flatten(),
        models: sum.models.iter().cloned().collect(),
        messages: sum.messages,
        input: usage.input,
        output: usage.output,
        cache_read: usage.cache_read,
        cache_write_5m: usage.cache_write_5m,
        cache_write_1h: usage.cache_write_1h,
        total: usage.total(),
        cost_usd: sum.cost.total().map(Cost::usd),
        cost_usd_known: sum.cost.known.usd(),
        unpriced_messages: sum.cost.unpriced,
        fast_messages: sum.fast,
        fast_cost_usd: sum.fast_cost.total().map(Cost::usd),
        fast_cost_usd_known: sum.fast_cost.known.usd(),
        floor_messages: sum.floors,
        first: time(sum.first),
        last: time(sum.last),
        ..UsageSum::default()
    };
    let by_session = per.contains(&GroupBy::Session);
    for (per, key) in per.iter().zip(keys) {
        match (per, key) {
            (GroupBy::Day, key) => row.day = Some(name(*per, key)),
            (GroupBy::Week, key) => row.week = Some(name(*per, key)),
            (GroupBy::Month, key) => row.month = Some(name(*per, key)),
            (GroupBy::Block, GroupKey::Block(start)) => {
                row.block = time(*start);
                row.block_end = time(start.map(|start| Time(start.0 + WINDOW)));
                row.active = start.map(|start| world.now().0 < start.0 + WINDOW);
            }
            (GroupBy::Session, GroupKey::Text(session)) => name_session(account, session, &mut row),
            (GroupBy::Speed, GroupKey::Text(speed)) => row.speed.clone_from(speed),
            (GroupBy::Project, GroupKey::Text(project)) => row.project.clone_from(project),
            (GroupBy::Agent, GroupKey::Text(agent)) => {
                row.is_subagent = Some(agent.is_some());
                row.agent = agent.clone().filter(|_| by_session);
                if agent.is_some() {
                    // The context is that of the session itself.
                    (row.context_tokens, row.context_limit) = (None, None);
                }
            }
            _ => {}
        }
    }
    row
}

/// A session's file, project and context.
fn name_session(account: &UsageAccount<'_>, session: &Option<String>, row: &mut UsageSum) {
    row.session = Some(session.clone().unwrap_or_default());
    let Some(at) = account.main(session.as_deref()) else {
        return;
    };
    row.path = Some(account.sources[at as usize].path.display().to_string());
    row.project = Some(account.places.get(at).project.to_owned());
    if let Some((tokens, limit)) = account.context(at) {
        row.context_tokens = Some(tokens);
        row.context_limit = limit;
    }
}

/// How a row calls what its messages have in common.
pub fn name(per: GroupBy, key: &GroupKey) -> String {
    let date = |date: &Option<Date>, form: &str| {
        date.map_or_else(
            || "unknown".to_owned(),
            |date| date.strftime(form).to_string(),
        )
    };
    match key {
        GroupKey::Date(day) if per == GroupBy::Month => date(day, "%Y-%m"),
        GroupKey::Date(day) => date(day, "%Y-%m-%d"),
        GroupKey::Block(start) => {
            start.map_or_else(|| "unknown".to_owned(), |start| start.to_string())
        }
        GroupKey::Text(text) => text.clone().unwrap_or_else(|| "unknown".to_owned()),
    }
}

fn heading(per: GroupBy) -> &'static str {
    match per {
        GroupBy::Day => "day",
        GroupBy::Week => "week from",
        GroupBy::Month => "month",
        GroupBy::Session => "session",
        GroupBy::Project => "project",
        GroupBy::Model => "model",
        GroupBy::Block => "window from",
        GroupBy::Agent => "sub-agent",
        GroupBy::Speed => "speed",
    }
}

/// From how many columns on there is room for the names of models.
const WIDE: usize = 110;

/// From how many columns on there is room for bars beside a session's context.
const BARS: usize = 96;

fn table(
    world: &CommandContext,
    account: &UsageAccount<'_>,
    per: &[GroupBy],
    rows: &[GroupRow],
    total: &GroupSum,
) -> TextTable {
    let session = per.contains(&GroupBy::Session);
    let width = world.ui.style().width;
    // The numbers come first; names of models take what a wide terminal has left.
    let with_models = !per.contains(&GroupBy::Model) && width >= WIDE;
    let mut columns: Vec<TableColumn> = per
        .iter()
        .map(|per| match per {
            GroupBy::Project => TableColumn::path(heading(*per), 12),
            GroupBy::Model => TableColumn::flexible(heading(*per), 10),
            _ => TableColumn::fixed(heading(*per)),
        })
        .collect();
    if session {
        columns.push(TableColumn::flexible("project", 8));
        columns.push(TableColumn::number("context"));
    }
    if with_models {
        columns.push(TableColumn::flexible("models", 8));
    }
    for title in ["msgs", "input", "output", "cached", "to cache", "cost"] {
        columns.push(TableColumn::number(title));
    }
    // How much is missing from a cost stands beside it.
    let unpriced = total.cost.unpriced > 0;
    if unpriced {
        columns.push(TableColumn::number("unpriced"));
    }
    let bars = !session || width >= BARS;
    if bars {
        columns.push(TableColumn::fixed(""));
    }
    let mut table = TextTable::new(columns);
    let shown = id_length(per, rows);
    for (keys, sum) in rows {
        let names = per.iter().zip(keys);
        let mut cells: Vec<StyledLine> = names
            .map(|(per, key)| plain(&label(world, *per, key, shown)))
            .collect();
        if session {
            let at = per.iter().position(|per| *per == GroupBy::Session);
            let key = at.and_then(|at| match &keys[at] {
                GroupKey::Text(text) => text.as_deref(),
                _ => None,
            });
            let is_agent = per
                .iter()
                .zip(keys)
                .any(|(per, key)| *per == GroupBy::Agent && *key != GroupKey::Text(None));
            cells.extend(session_cells(account, key, is_agent));
        }
        if with_models {
            cells.push(StyledLine::of(TextStyle::DIM, &models(sum)));
        }
        cells.extend(numbers(sum).map(|cell| plain(&cell)));
        if unpriced {
            let count = Some(sum.cost.unpriced).filter(|&count| count > 0);
            cells.push(plain(&count.map_or_else(String::new, format::grouped)));
        }
        if bars {
            cells.push(StyledLine::of(TextStyle::DIM, &spark(&sum.shape)));
        }
        table.rows.push(cells);
    }
    let names = per.iter().enumerate();
    let mut cells: Vec<StyledLine> = names
        .map(|(nth, _)| StyledLine::of(TextStyle::BOLD, if nth == 0 { "total" } else { "" }))
        .collect();
    let empty = usize::from(session) * 2 + usize::from(with_models);
    cells.extend(std::iter::repeat_n(plain(""), empty));
    cells.extend(numbers(total).map(|cell| StyledLine::of(TextStyle::BOLD, &cell)));
    if unpriced {
        let count = format::grouped(total.cost.unpriced);
        cells.push(StyledLine::of(TextStyle::BOLD, &count));
    }
    table.rows.push(cells);
    table
}

fn plain(text: &str) -> StyledLine {
    StyledLine::of(TextStyle::PLAIN, text)
}

/// How many characters of the ids of sessions tell them apart.
fn id_length(per: &[GroupBy], rows: &[GroupRow]) -> usize {
    let Some(at) = per.iter().position(|per| *per == GroupBy::Session) else {
        return 8;
    };
    let ids = rows.iter().filter_map(|(keys, _)| match &keys[at] {
        GroupKey::Text(Some(id)) => Some(id.as_str()),
        _ => None,
    });
    let ids: HashSet<&str> = ids.collect();
    let tells_apart = |length: &usize| {
        let starts = ids.iter().map(|id| id.get(..*length).unwrap_or(id));
        starts.collect::<HashSet<_>>().len() == ids.len()
    };
    [8, 13, 18, 23, 36]
        .into_iter()
        .find(tells_apart)
        .unwrap_or(usize::MAX)
}

/// What a row is called in the table.
pub fn label(world: &CommandContext, per: GroupBy, key: &GroupKey, shown: usize) -> String {
    match (per, key) {
        (GroupBy::Session, GroupKey::Text(Some(id))) => id.get(..shown).unwrap_or(id).to_owned(),
        (GroupBy::Project, GroupKey::Text(Some(path))) => project::project_name(path).to_owned(),
        (GroupBy::Model, GroupKey::Text(Some(model))) => short_model(model).to_owned(),
        (GroupBy::Agent, GroupKey::Text(None)) => "-".to_owned(),
        (GroupBy::Agent, GroupKey::Text(Some(id))) if id.is_empty() => "inside".to_owned(),
        (GroupBy::Block, GroupKey::Block(Some(start))) => {
            let local = world.ui.zone().to_datetime(start.timestamp());
            let open = world.now().0 < start.0 + WINDOW;
            local.strftime("%Y-%m-%d %H:%M").to_string() + if open { " (now)" } else { "" }
        }
        _ => name(per, key),
    }
}

/// A session's project, and how full its own context is.
fn session_cells(
    account: &UsageAccount<'_>,
    session: Option<&str>,
    is_agent: bool,
) -> [StyledLine; 2] {
    let Some(at) = account.main(session) else {
        return [plain(""), plain("")];
    };
    let project = project::project_name(account.places.get(at).project);
    let context = account.context(at).filter(|_| !is_agent);
    let context = context.map_or_else(String::new, |(tokens, limit)| {
        format::fullness(tokens, limit)
    });
    [plain(project), plain(&context)]
}

/// `claude-opus-4-5-20251101` is known as `opus-4-5`.
pub fn short_model(model: &str) -> &str {
    let name = model.strip_prefix("claude-").unwrap_or(model);
    match name.rsplit_once('-') {
        Some((start, date))
            if date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            start
        }
        _ => name,
    }
}

fn models(sum: &GroupSum) -> String {
    let names: Vec<&str> = sum.models.iter().map(|model| short_model(model)).collect();
    names.join(" ")
}

fn numbers(sum: &GroupSum) -> [String; 6] {
    let usage = sum.usage;
    let writes = usage.cache_write_5m.saturating_add(usage.cache_write_1h);
    [
        format::grouped(sum.messages),
        format::tokens(usage.input),
        format::tokens(usage.output),
        format::tokens(usage.cache_read),
        format::tokens(writes),
        format::cost_sum(sum.cost),
    ]
}

/// The model of a message without a price, and which of its prices is missing if others are known.
fn unpriced<'a>(account: &'a UsageAccount<'_>, one: &CountedMessage) -> Cow<'a, str> {
    let Some(model) = account.ledger.model(one) else {
        return Cow::Borrowed("unnamed model");
    };
    match account.prices.charge(model, one.usage(), one.terms()) {
        Err(UnpricedReason::Part(part)) => Cow::Owned(format!("{model}: {part}")),
        _ => Cow::Borrowed(model),
    }
}

/// What to know about the numbers.
fn remarks(
    account: &UsageAccount<'_>,
    books: &GroupSources<'_>,
    total: &GroupSum,
    wanted: impl Fn(&CountedMessage) -> bool,
) -> Vec<String> {
    let mut all = Vec::new();
    let members = || account.ledger.counted.iter().filter(|one| wanted(one));
    if total.cost.unpriced > 0 {
        let mut unknown: Vec<Cow<'_, str>> = members()
            .filter(|one| books.cost(one).is_none())
            .map(|one| unpriced(account, one))
            .collect();
        unknown.sort_unstable();
        unknown.dedup();
        all.push(format!(
            "{} of {} have no known price ({}); the others cost {}. To add prices, see `unspool prices --help`.",
            format::grouped(total.cost.unpriced),
            format::count(total.messages, "message"),
            unknown.join(", "),
            format::dollars(total.cost.known.usd()),
        ));
    }
    if total.fast > 0 {
        all.push(format!(
            "{} of {} in fast mode, {}; list them separately with `--by speed`",
            format::grouped(total.fast),
            format::count(total.messages, "message"),
            format::cost_sum(total.fast_cost),
        ));
    }
    if total.floors > 0 {
        let mut versions: Vec<&str> = members()
            .filter(|one| books.is_floor(one))
            .filter_map(|one| account.ledger.floor(one))
            .collect();
        versions.sort_unstable_by_key(|version| version_numbers(version));
        versions.dedup();
        let range = match (versions.first(), versions.last()) {
            (Some(first), Some(last)) if first != last => format!("{first}–{last}"),
            (Some(only), _) => (*only).to_owned(),
            _ => String::new(),
        };
        all.push(format!(
            "output of {} is a lower bound: written by {range}",
            format::count(total.floors, "message"),
        ));
    }
    all
}
