//! The rows of `usage`, as a table and for machines.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::Write;

use jiff::civil::Date;
use unspool_model::price::{Cost, Prices, Unpriced};
use unspool_model::time::Time;
use unspool_model::view::usage::group::{Books, Key, Per, Row, Sum};
use unspool_model::view::usage::period::WINDOW;
use unspool_model::view::usage::{Counted, version_numbers};
use unspool_show::amount;
use unspool_show::spark::spark;
use unspool_show::style::{Line, Paint};
use unspool_show::table::{Column, Table};
use unspool_show::wire::usage::UsageSum;
use unspool_store::project;

use super::{Account, Filter, Grouping, UsageArgs};
use crate::failure::Failure;
use crate::world::World;

/// Writes the rows that were asked for.
pub fn write(
    world: &World,
    args: &UsageArgs,
    account: &Account<'_>,
    prices: &Prices,
    filter: &Filter,
    out: &mut dyn Write,
) -> Result<Vec<String>, Failure> {
    let books = account.books(prices, world);
    let per = keys(args);
    let wanted = |one: &Counted| filter.lets(one, &account.places);
    let rows = rows(args, account, &books, filter);
    if rows.is_empty() {
        return Err(Failure::nothing("no message matches")
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
    account: &Account<'_>,
    books: &Books<'_>,
    filter: &Filter,
) -> Vec<Row> {
    let mut rows = books.group(&keys(args), |one: &Counted| {
        filter.lets(one, &account.places)
    });
    sort(args.per, &mut rows);
    rows
}

/// What the rows are told apart by, in the order of the columns.
pub fn keys(args: &UsageArgs) -> Vec<Per> {
    let mut keys = vec![args.per.per()];
    for by in args.by.iter().map(|by| by.per()) {
        if !keys.contains(&by) {
            keys.push(by);
        }
    }
    if args.own {
        keys.push(Per::Agent);
    }
    keys
}

/// Times run downwards, so that the latest stands above the prompt; names go by their cost.
fn sort(per: Grouping, rows: &mut [Row]) {
    match per {
        Grouping::Day | Grouping::Week | Grouping::Month | Grouping::Block => {}
        Grouping::Session => rows.sort_by_key(|(_, sum)| sum.last),
        Grouping::Project | Grouping::Model | Grouping::Speed => {
            rows.sort_by_key(|(_, sum)| (sum.cost.known, sum.usage.total()));
        }
    }
}

/// A row for machines.
pub fn wire(world: &World, account: &Account<'_>, per: &[Per], (keys, sum): &Row) -> UsageSum {
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
    let by_session = per.contains(&Per::Session);
    for (per, key) in per.iter().zip(keys) {
        match (per, key) {
            (Per::Day, key) => row.day = Some(name(*per, key)),
            (Per::Week, key) => row.week = Some(name(*per, key)),
            (Per::Month, key) => row.month = Some(name(*per, key)),
            (Per::Block, Key::Block(start)) => {
                row.block = time(*start);
                row.block_end = time(start.map(|start| Time(start.0 + WINDOW)));
                row.active = start.map(|start| world.now().0 < start.0 + WINDOW);
            }
            (Per::Session, Key::Text(session)) => name_session(account, session, &mut row),
            (Per::Speed, Key::Text(speed)) => row.speed.clone_from(speed),
            (Per::Project, Key::Text(project)) => row.project.clone_from(project),
            (Per::Agent, Key::Text(agent)) => {
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
fn name_session(account: &Account<'_>, session: &Option<String>, row: &mut UsageSum) {
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
pub fn name(per: Per, key: &Key) -> String {
    let date = |date: &Option<Date>, form: &str| {
        date.map_or_else(
            || "unknown".to_owned(),
            |date| date.strftime(form).to_string(),
        )
    };
    match key {
        Key::Date(day) if per == Per::Month => date(day, "%Y-%m"),
        Key::Date(day) => date(day, "%Y-%m-%d"),
        Key::Block(start) => start.map_or_else(|| "unknown".to_owned(), |start| start.to_string()),
        Key::Text(text) => text.clone().unwrap_or_else(|| "unknown".to_owned()),
    }
}

fn heading(per: Per) -> &'static str {
    match per {
        Per::Day => "day",
        Per::Week => "week from",
        Per::Month => "month",
        Per::Session => "session",
        Per::Project => "project",
        Per::Model => "model",
        Per::Block => "window from",
        Per::Agent => "sub-agent",
        Per::Speed => "speed",
    }
}

/// From how many columns on there is room for the names of models.
const WIDE: usize = 110;

/// From how many columns on there is room for bars beside a session's context.
const BARS: usize = 96;

fn table(world: &World, account: &Account<'_>, per: &[Per], rows: &[Row], total: &Sum) -> Table {
    let session = per.contains(&Per::Session);
    let width = world.ui.style().width;
    // The numbers come first; names of models take what a wide terminal has left.
    let with_models = !per.contains(&Per::Model) && width >= WIDE;
    let mut columns: Vec<Column> = per
        .iter()
        .map(|per| match per {
            Per::Project => Column::path(heading(*per), 12),
            Per::Model => Column::flexible(heading(*per), 10),
            _ => Column::fixed(heading(*per)),
        })
        .collect();
    if session {
        columns.push(Column::flexible("project", 8));
        columns.push(Column::number("context"));
    }
    if with_models {
        columns.push(Column::flexible("models", 8));
    }
    for title in ["msgs", "input", "output", "cached", "to cache", "cost"] {
        columns.push(Column::number(title));
    }
    // How much is missing from a cost stands beside it.
    let unpriced = total.cost.unpriced > 0;
    if unpriced {
        columns.push(Column::number("unpriced"));
    }
    let bars = !session || width >= BARS;
    if bars {
        columns.push(Column::fixed(""));
    }
    let mut table = Table::new(columns);
    let shown = id_length(per, rows);
    for (keys, sum) in rows {
        let names = per.iter().zip(keys);
        let mut cells: Vec<Line> = names
            .map(|(per, key)| plain(&label(world, *per, key, shown)))
            .collect();
        if session {
            let at = per.iter().position(|per| *per == Per::Session);
            let key = at.and_then(|at| match &keys[at] {
                Key::Text(text) => text.as_deref(),
                _ => None,
            });
            let is_agent = per
                .iter()
                .zip(keys)
                .any(|(per, key)| *per == Per::Agent && *key != Key::Text(None));
            cells.extend(session_cells(account, key, is_agent));
        }
        if with_models {
            cells.push(Line::of(Paint::DIM, &models(sum)));
        }
        cells.extend(numbers(sum).map(|cell| plain(&cell)));
        if unpriced {
            let count = Some(sum.cost.unpriced).filter(|&count| count > 0);
            cells.push(plain(&count.map_or_else(String::new, amount::grouped)));
        }
        if bars {
            cells.push(Line::of(Paint::DIM, &spark(&sum.shape)));
        }
        table.rows.push(cells);
    }
    let names = per.iter().enumerate();
    let mut cells: Vec<Line> = names
        .map(|(nth, _)| Line::of(Paint::BOLD, if nth == 0 { "total" } else { "" }))
        .collect();
    let empty = usize::from(session) * 2 + usize::from(with_models);
    cells.extend(std::iter::repeat_n(plain(""), empty));
    cells.extend(numbers(total).map(|cell| Line::of(Paint::BOLD, &cell)));
    if unpriced {
        let count = amount::grouped(total.cost.unpriced);
        cells.push(Line::of(Paint::BOLD, &count));
    }
    table.rows.push(cells);
    table
}

fn plain(text: &str) -> Line {
    Line::of(Paint::PLAIN, text)
}

/// How many characters of the ids of sessions tell them apart.
fn id_length(per: &[Per], rows: &[Row]) -> usize {
    let Some(at) = per.iter().position(|per| *per == Per::Session) else {
        return 8;
    };
    let ids = rows.iter().filter_map(|(keys, _)| match &keys[at] {
        Key::Text(Some(id)) => Some(id.as_str()),
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
pub fn label(world: &World, per: Per, key: &Key, shown: usize) -> String {
    match (per, key) {
        (Per::Session, Key::Text(Some(id))) => id.get(..shown).unwrap_or(id).to_owned(),
        (Per::Project, Key::Text(Some(path))) => project::project_name(path).to_owned(),
        (Per::Model, Key::Text(Some(model))) => short_model(model).to_owned(),
        (Per::Agent, Key::Text(None)) => "-".to_owned(),
        (Per::Agent, Key::Text(Some(id))) if id.is_empty() => "inside".to_owned(),
        (Per::Block, Key::Block(Some(start))) => {
            let local = world.ui.zone().to_datetime(start.timestamp());
            let open = world.now().0 < start.0 + WINDOW;
            local.strftime("%Y-%m-%d %H:%M").to_string() + if open { " (now)" } else { "" }
        }
        _ => name(per, key),
    }
}

/// A session's project, and how full its own context is.
fn session_cells(account: &Account<'_>, session: Option<&str>, is_agent: bool) -> [Line; 2] {
    let Some(at) = account.main(session) else {
        return [plain(""), plain("")];
    };
    let project = project::project_name(account.places.get(at).project);
    let context = account.context(at).filter(|_| !is_agent);
    let context = context.map_or_else(String::new, |(tokens, limit)| {
        amount::fullness(tokens, limit)
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

fn models(sum: &Sum) -> String {
    let names: Vec<&str> = sum.models.iter().map(|model| short_model(model)).collect();
    names.join(" ")
}

fn numbers(sum: &Sum) -> [String; 6] {
    let usage = sum.usage;
    let writes = usage.cache_write_5m.saturating_add(usage.cache_write_1h);
    [
        amount::grouped(sum.messages),
        amount::tokens(usage.input),
        amount::tokens(usage.output),
        amount::tokens(usage.cache_read),
        amount::tokens(writes),
        amount::cost_sum(sum.cost),
    ]
}

/// The model of a message without a price, and which of its prices is missing if others are known.
fn unpriced<'a>(account: &'a Account<'_>, one: &Counted) -> Cow<'a, str> {
    let Some(model) = account.ledger.model(one) else {
        return Cow::Borrowed("unnamed model");
    };
    match account.prices.charge(model, one.usage(), one.terms()) {
        Err(Unpriced::Part(part)) => Cow::Owned(format!("{model}: {part}")),
        _ => Cow::Borrowed(model),
    }
}

/// What to know about the numbers.
fn remarks(
    account: &Account<'_>,
    books: &Books<'_>,
    total: &Sum,
    wanted: impl Fn(&Counted) -> bool,
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
            amount::grouped(total.cost.unpriced),
            amount::count(total.messages, "message"),
            unknown.join(", "),
            amount::dollars(total.cost.known.usd()),
        ));
    }
    if total.fast > 0 {
        all.push(format!(
            "{} of {} in fast mode, {}; list them separately with `--by speed`",
            amount::grouped(total.fast),
            amount::count(total.messages, "message"),
            amount::cost_sum(total.fast_cost),
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
            amount::count(total.floors, "message"),
        ));
    }
    all
}
