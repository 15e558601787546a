//! `cargo xtask prices`: makes the table of prices that comes with the program.
//!
//! Takes LiteLLM's `model_prices_and_context_window_backup.json` of the newest release and
//! of earlier ones, newest first. The newest says what models cost; the earlier ones add
//! what it no longer lists.

use std::fs;
use std::path::Path;

use unspool_model::price::{ModelPrice, Prices};

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
    let mut table = read(newest)?;
    for path in earlier {
        table = read(path)?.renewed(&table);
    }
    // A Claude model without a price of the cache is from before clients used it.
    let is_used =
        |row: &&ModelPrice| row.rates.cache_read.is_some() || !row.name.contains("claude");
    let rows = table.rows().filter(is_used);
    let table = Prices::new(date, source, rows.cloned());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/model/data/prices.json");
    fs::write(&path, table.to_json()).map_err(|error| format!("{}: {error}", path.display()))?;
    eprintln!("{}: {} models", path.display(), table.rows().len());
    Ok(())
}

fn read(path: &String) -> Result<Prices, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    Prices::parse(&text).map_err(|error| format!("{path}: {error}"))
}
