//! `cargo xtask prices`: makes the table of prices that comes with the program.
//!
//! Takes LiteLLM's `model_prices_and_context_window_backup.json` of the newest release and
//! of earlier ones. The newest says what models cost; the earlier ones add what it no longer
//! lists: models that are retired, and terms that were withdrawn. Sessions of those days are
//! still there, and cost what they cost.

use std::fs;
use std::path::Path;

use unspool_model::price::{Price, Prices, Rate, Rates};

use crate::Outcome;

const USAGE: &str =
    "usage: cargo xtask prices --date YYYY-MM-DD --source TEXT NEWEST.json EARLIER.json…";

/// Reads the tables and writes `crates/model/data/prices.json`.
pub fn run(args: &[String]) -> Outcome {
    let [date_flag, date, source_flag, source, newest, earlier @ ..] = args else {
        return Err(USAGE.into());
    };
    if date_flag != "--date" || source_flag != "--source" {
        return Err(USAGE.into());
    }
    let newest = read(newest)?;
    let mut rows: Vec<Price> = newest
        .rows()
        .filter(|row| is_wanted(row))
        .cloned()
        .collect();
    for path in earlier {
        for old in read(path)?.rows().filter(|row| is_own(&row.name)) {
            match rows.iter_mut().find(|row| row.name == old.name) {
                Some(row) => withdrawn(row, old),
                None if is_alias(&old.name) => {}
                None => rows.push(retired(old, &newest)),
            }
        }
    }
    let search = rows.iter().find_map(|row| row.web_search);
    for row in rows.iter_mut().filter(|row| is_own(&row.name)) {
        // The search is a tool with one price; the table says it for most models only.
        row.web_search = row.web_search.or(search);
    }
    let all = Prices::new(date, source, rows);
    let own = Prices::new("", "", all.rows().filter(|row| is_own(&row.name)).cloned());
    // Rows of clouds for models that the maker never had are slips of the table.
    let kept = all.rows().filter(|row| {
        is_own(&row.name) || (own.find(&row.name).is_some() && !is_covered(row, &all))
    });
    let table = Prices::new(date, source, kept.cloned());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/model/data/prices.json");
    fs::write(&path, table.to_json()).map_err(|error| format!("{}: {error}", path.display()))?;
    eprintln!("{} of {} rows", table.rows().len(), all.rows().len());
    Ok(())
}

fn read(path: &String) -> Result<Prices, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    Prices::parse(&text).map_err(|error| format!("{path}: {error}"))
}

/// The maker's own name of a model.
fn is_own(name: &str) -> bool {
    name.starts_with("claude-") && !name.contains([':', '/'])
}

/// Names of the maker and of the clouds that clients know. A row without a price of the
/// cache is from before clients used it.
fn is_wanted(row: &Price) -> bool {
    let cloud = ["vertex_ai/", "azure_ai/"];
    let named = !row.name.contains('/') || cloud.iter().any(|cloud| row.name.starts_with(cloud));
    named && row.rates.cache_read.is_some()
}

/// Second names, which finding a price sees through; some had a wrong price.
fn is_alias(name: &str) -> bool {
    name.ends_with("-latest") || name.starts_with("claude-4-")
}

/// Adds terms that the newest table has dropped for a model it still lists.
fn withdrawn(row: &mut Price, old: &Price) {
    row.fast = row.fast.or(old.fast);
    // No long input any more; a session that has it was charged by the old tier.
    let short = |above: u64| row.limit.is_some_and(|limit| limit <= above);
    if row.long.is_none() && old.long.is_some_and(|long| short(long.above)) {
        row.long = old.long;
    }
}

/// A row for a model that the newest table lists for other providers, or not at all.
fn retired(old: &Price, newest: &Prices) -> Price {
    let mut row = old.clone();
    // Some had the price of another model for one-hour writes, which are twice the input.
    let twice = |input: Rate| Rate(input.0 * 2);
    row.rates.cache_write_1h = row
        .rates
        .cache_write_1h
        .filter(|&rate| row.rates.input.map(twice) == Some(rate));
    if let (Some(long), Some(_)) = (&mut row.long, row.rates.cache_write_1h) {
        let input = long.rates.input;
        long.rates.cache_write_1h = long.rates.cache_write_1h.or(input.map(twice));
    }
    let limit = newest.find(&row.name).and_then(|other| other.limit);
    row.limit = limit.or(row.limit);
    row
}

/// Whether the rest of the table gives the same answers for this name.
fn is_covered(row: &Price, all: &Prices) -> bool {
    let rest = all.rows().filter(|other| other.name != row.name).cloned();
    let rest = Prices::new("", "", rest);
    let Some(found) = rest.find(&row.name) else {
        return false;
    };
    let says = |own: Option<Rate>, other: Option<Rate>| own.is_none() || own == other;
    let same = |own: &Rates, other: &Rates| {
        says(own.input, other.input)
            && says(own.output, other.output)
            && says(own.cache_read, other.cache_read)
            && says(own.cache_write_5m, other.cache_write_5m)
            && says(own.cache_write_1h, other.cache_write_1h)
    };
    let long = match (&row.long, &found.long) {
        (None, None) => true,
        (None, Some(long)) => row.limit.is_some_and(|limit| limit <= long.above),
        (Some(own), Some(other)) => own.above == other.above && same(&own.rates, &other.rates),
        (Some(_), None) => false,
    };
    long && same(&row.rates, &found.rates) && row.limit == found.limit
}
