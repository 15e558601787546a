//! `prices`: what models cost.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use unspool_model::price::{ModelPrice, PriceFactor, PriceOrigin, Prices, TokenRate, TokenRates};
use unspool_show::format;
use unspool_show::table::{TableColumn, TextTable};
use unspool_show::wire::price::{PriceChangeRow, PriceRow};

use crate::price_sources;
use unspool_store::own_file;

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// Arguments of `prices`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  unspool prices
  unspool prices us.anthropic.claude-opus-4-6-v1
  unspool prices opus --json
  unspool prices update --from model_prices_and_context_window.json

To override prices, put them into `prices-override.json` in unspool's config folder
($UNSPOOL_HOME, else ~/.config/unspool), in dollars per million tokens:

  {\"models\": {\"claude-opus-4-6\": {\"input\": 4, \"output\": 20, \"cache_read\": 0.4,
    \"cache_write_5m\": 5, \"cache_write_1h\": 8}}}

`input` and `output` are required. Optional: `batch` and `long` (the same fields; `long` also has
`above`, the input tokens from which it applies), `web_search` (dollars per search), `fast` and
`us` (factors) and `limit` (context window in tokens). A row replaces the whole row of the same
name. Precedence: overrides, then prices of `update`, then bundled prices.")]
pub struct PricesArgs {
    /// What to do [default: list prices]
    #[command(subcommand)]
    pub command: Option<PricesCommand>,

    /// Model name as in transcripts, or part of one
    pub model: Option<String>,
}

/// What else can be done with prices.
#[derive(Debug, Subcommand)]
pub enum PricesCommand {
    /// Update the price table from a file
    Update(PricesUpdateArgs),
}

/// Arguments of `prices update`.
#[derive(Debug, Args)]
#[command(
    after_help = "FILE is LiteLLM's `model_prices_and_context_window.json`, or a table in
unspool's own format (see `unspool prices --help`). Nothing is downloaded. Models that are missing
from the new table keep their last price, with its date and source.

A LiteLLM row without cache prices sets the prices of input and output. If these are unchanged,
the model keeps its cache prices; otherwise they become unknown. Unused rows (aliases, other
providers, no token price) are counted."
)]
pub struct PricesUpdateArgs {
    /// File with the new price table
    #[arg(long, value_name = "FILE")]
    pub from: PathBuf,
}

/// Lists prices, or takes in new ones.
pub fn run(world: &CommandContext, args: &PricesArgs) -> Result<(), CommandFailure> {
    if let Some(PricesCommand::Update(args)) = &args.command {
        return update(world, &args.from);
    }
    let prices = world.checked_prices()?;
    let mut out = world.ui.out();
    let shown = match &args.model {
        None => list(world, &mut out, ordered(prices.rows()))?,
        Some(model) => match prices.find(model) {
            Some(price) => {
                one(world, &mut out, model, price)?;
                vec![price]
            }
            None => {
                let named = prices.rows().filter(|price| price.name.contains(model));
                let named = ordered(named);
                if named.is_empty() || model.is_empty() {
                    let file = price_sources::overrides(&world.own);
                    return Err(
                        CommandFailure::nothing(format!("no price for `{model}`")).hint(format!(
                            "list models with `unspool prices`, or add it to {}",
                            file.display()
                        )),
                    );
                }
                list(world, &mut out, named)?
            }
        },
    };
    out.flush()?;
    if !world.ui.json {
        world.ui.note(&origin(world, &shown));
    }
    Ok(())
}

/// The maker's own names before those of clouds, which repeat them.
fn ordered<'a>(rows: impl Iterator<Item = &'a ModelPrice>) -> Vec<&'a ModelPrice> {
    let mut rows: Vec<&ModelPrice> = rows.collect();
    let cloud = |name: &str| name.contains(['/', '.']);
    rows.sort_by_key(|price| cloud(&price.name));
    rows
}

fn list<'a>(
    world: &CommandContext,
    out: &mut dyn Write,
    rows: Vec<&'a ModelPrice>,
) -> Result<Vec<&'a ModelPrice>, CommandFailure> {
    if world.ui.json {
        for price in &rows {
            world.ui.row(out, &PriceRow::new(&price.name, price))?;
        }
        return Ok(rows);
    }
    let mut table = table();
    for price in &rows {
        standard(&mut table, price);
    }
    table.write(out, &world.ui.style())?;
    Ok(rows)
}

/// One model, with everything that is known about it.
fn one(
    world: &CommandContext,
    out: &mut dyn Write,
    model: &str,
    price: &ModelPrice,
) -> Result<(), CommandFailure> {
    if world.ui.json {
        return world.ui.row(out, &PriceRow::new(model, price));
    }
    let mut table = table();
    standard(&mut table, price);
    let mut line =
        |title: &str, rates: &TokenRates| rate_row(&mut table, title, rates, String::new());
    if let Some(batch) = &price.batch {
        line("  batch API", batch);
    }
    if let Some(fast) = price.fast {
        line("  fast mode", &times(&price.rates, fast));
    }
    if let Some(us) = price.us {
        line("  US-only inference", &times(&price.rates, us));
    }
    table.write(out, &world.ui.style())?;
    if let Some(search) = price.web_search {
        writeln!(out, "  ${} for each web search", dollars(search, 12))?;
    }
    if model != price.name {
        let note = format!("`{model}` uses the price of `{}`.", price.name);
        world.ui.note(&note);
    }
    Ok(())
}

fn table() -> TextTable {
    TextTable::new(vec![
        TableColumn::flexible("model", 20),
        TableColumn::number("input"),
        TableColumn::number("output"),
        TableColumn::number("read"),
        TableColumn::number("5m"),
        TableColumn::number("1h"),
        TableColumn::number("context").optional(),
    ])
}

/// The row of a model, and a second one if long input costs more.
fn standard(table: &mut TextTable, price: &ModelPrice) {
    let limit = price.limit.map_or_else(String::new, whole);
    rate_row(table, &price.name, &price.rates, limit);
    if let Some(long) = &price.long {
        let title = format!("  above {} tokens", whole(long.above));
        rate_row(table, &title, &long.rates, String::new());
    }
}

fn rate_row(table: &mut TextTable, title: &str, rates: &TokenRates, limit: String) {
    let cell =
        |rate: Option<TokenRate>| rate.map_or_else(|| "–".to_owned(), |rate| dollars(rate.0, 6));
    table.row([
        title.to_owned(),
        cell(rates.input),
        cell(rates.output),
        cell(rates.cache_read),
        cell(rates.cache_write_5m),
        cell(rates.cache_write_1h),
        limit,
    ]);
}

/// `200k`, `1M`: limits are round numbers.
fn whole(tokens: u64) -> String {
    format::tokens(tokens).replacen(".0", "", 1)
}

/// Units of 10^-`places` as dollars: two places, more where it takes more to be exact.
fn dollars(units: u64, places: usize) -> String {
    let digits = format!("{units:0>width$}", width = places + 1);
    let (whole, part) = digits.split_at(digits.len() - places);
    format!("{whole}.{:0<2}", part.trim_end_matches('0'))
}

fn times(rates: &TokenRates, factor: PriceFactor) -> TokenRates {
    let by = |rate: Option<TokenRate>| {
        rate.map(|rate| TokenRate(rate.0.saturating_mul(factor.0) / PriceFactor::ONE.0))
    };
    TokenRates {
        input: by(rates.input),
        output: by(rates.output),
        cache_read: by(rates.cache_read),
        cache_write_5m: by(rates.cache_write_5m),
        cache_write_1h: by(rates.cache_write_1h),
    }
}

/// Where these prices are from.
fn origin(world: &CommandContext, rows: &[&ModelPrice]) -> String {
    let mut counts: BTreeMap<(bool, &str, &str), u64> = BTreeMap::new();
    for price in rows {
        let from = match price.origin {
            PriceOrigin::Override => (true, "", ""),
            PriceOrigin::Bundled | PriceOrigin::Updated => (false, &*price.date, &*price.source),
        };
        *counts.entry(from).or_default() += 1;
    }
    let own = price_sources::overrides(&world.own);
    let told = counts.into_iter().map(|((is_own, date, source), count)| {
        let models = format::count(count, "model");
        match (is_own, date) {
            (true, _) => format!("{models} from {}", own.display()),
            (false, "") => format!("{models} from {source}"),
            (false, date) => format!("{models} as of {date} from {source}"),
        }
    });
    format!(
        "Dollars per million tokens (read: cache read; 5m, 1h: cache write): {}.",
        told.collect::<Vec<_>>().join("; ")
    )
}

/// Takes in a table from a file and says what is different.
fn update(world: &CommandContext, from: &Path) -> Result<(), CommandFailure> {
    let name = from.display();
    let text = std::fs::read_to_string(from)
        .map_err(|error| CommandFailure::failed(format!("{name}: {error}")))?;
    let read = Prices::parse(&text).map_err(|error| {
        CommandFailure::failed(format!("{name}: {error}")).hint(
            "use LiteLLM's price table or unspool's own format; see `unspool prices update --help`",
        )
    })?;
    if read.rows().len() == 0 {
        return Err(CommandFailure::failed(format!("{name}: no models found")));
    }
    let taken = price_sources::taken_in(&world.own);
    let before = Prices::bundled().merged(taken.clone());
    let fresh = dated(world, &read, from);
    let fresh = if read.is_litellm() {
        before.renewal(&fresh)
    } else {
        fresh
    };
    let table = taken.merged(fresh.clone());
    let path = price_sources::updated(&world.own);
    own_file::replace(&path, table.to_json().as_bytes())
        .map_err(|error| CommandFailure::failed(format!("{}: {error}", path.display())))?;
    let changes = changes(&before, &read, &fresh);
    say(world, &changes)?;
    let count = |change: &str| changes.iter().filter(|row| row.change == change).count();
    world.ui.note(&format!(
        "{}: {}, {} new, {} changed, {} gone (they keep their last price).",
        path.display(),
        format::count(fresh.rows().len() as u64, "model"),
        count("new"),
        count("changed"),
        count("gone"),
    ));
    unused(world, &before.merged(fresh).unused(&read));
    Ok(())
}

/// Says which rows of the file make no difference to any price.
fn unused(world: &CommandContext, names: &[&str]) {
    let some = names.iter().take(3).copied().collect::<Vec<_>>().join(", ");
    let more = match names.len().saturating_sub(3) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    match names.len() {
        0 => {}
        1 => {
            let note = format!("ignored 1 row of a Claude model: {some}.");
            world.ui.note(&note);
        }
        count => {
            let note = format!("ignored {count} rows of Claude models: {some}{more}.");
            world.ui.note(&note);
        }
    }
}

/// The table with a day and a source, where it says neither.
fn dated(world: &CommandContext, table: &Prices, from: &Path) -> Prices {
    let either = |own: &str, other: String| match own {
        "" => other,
        own => own.to_owned(),
    };
    let name = from.file_name().unwrap_or_default().to_string_lossy();
    let date = either(table.date(), format::day(world.now(), world.ui.zone()));
    let source = either(table.source(), name.into_owned());
    Prices::new(&date, &source, table.rows().cloned())
}

/// What the rows of a file change; those it does not have at all are gone.
fn changes(before: &Prices, read: &Prices, fresh: &Prices) -> Vec<PriceChangeRow> {
    let row = |change: &str, old: Option<&ModelPrice>, new: Option<&ModelPrice>| {
        let name = new.or(old).map(|price| price.name.clone());
        PriceChangeRow {
            change: change.to_owned(),
            model: name.unwrap_or_default(),
            before: old.map(|price| PriceRow::new(&price.name, price)),
            after: new.map(|price| PriceRow::new(&price.name, price)),
        }
    };
    let same = |a: &ModelPrice, b: &ModelPrice| {
        let b = ModelPrice {
            origin: a.origin,
            date: a.date.clone(),
            source: a.source.clone(),
            ..b.clone()
        };
        *a == b
    };
    let mut rows = Vec::new();
    for new in fresh.rows() {
        match before.row(&new.name) {
            None => rows.push(row("new", None, Some(new))),
            Some(old) if !same(old, new) => rows.push(row("changed", Some(old), Some(new))),
            Some(_) => {}
        }
    }
    let gone = before.rows().filter(|old| read.row(&old.name).is_none());
    rows.extend(gone.map(|old| row("gone", Some(old), None)));
    rows
}

fn say(world: &CommandContext, changes: &[PriceChangeRow]) -> Result<(), CommandFailure> {
    let mut out = world.ui.out();
    if world.ui.json {
        for row in changes {
            world.ui.row(&mut out, row)?;
        }
        return Ok(out.flush()?);
    }
    let mut table = TextTable::new(vec![
        TableColumn::fixed("change"),
        TableColumn::flexible("model", 20),
        TableColumn::number("input"),
        TableColumn::number("output"),
        TableColumn::flexible("before", 10),
    ]);
    let cell = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.2}"));
    for row in changes {
        let now = row.after.as_ref().or(row.before.as_ref());
        let old = row.before.as_ref().filter(|_| row.after.is_some());
        table.row([
            row.change.clone(),
            row.model.clone(),
            cell(now.and_then(|price| price.input)),
            cell(now.and_then(|price| price.output)),
            old.zip(row.after.as_ref())
                .map_or_else(String::new, |(old, new)| difference(old, new)),
        ]);
    }
    if !changes.is_empty() {
        table.write(&mut out, &world.ui.style())?;
    }
    Ok(out.flush()?)
}

/// What of a price was different, in words.
fn difference(old: &PriceRow, new: &PriceRow) -> String {
    let mut parts = Vec::new();
    let mut part = |name: &str, old: Option<f64>, new: Option<f64>| {
        if old != new {
            let old = old.map_or_else(|| "unknown".to_owned(), |old| old.to_string());
            parts.push(format!("{name} {old}"));
        }
    };
    part("input", old.input, new.input);
    part("output", old.output, new.output);
    part("read", old.cache_read, new.cache_read);
    part("5m write", old.cache_write_5m, new.cache_write_5m);
    part("1h write", old.cache_write_1h, new.cache_write_1h);
    part("search", old.web_search, new.web_search);
    part("fast", old.fast, new.fast);
    part("US", old.us, new.us);
    let limit = |row: &PriceRow| row.context_limit.map(|limit| limit as f64);
    part("context", limit(old), limit(new));
    if parts.is_empty() {
        parts.push("batch or long-context price".to_owned());
    }
    parts.join(", ")
}
