//! Takes in a newer table that LiteLLM publishes, without losing what it no longer lists.
//!
//! That table has what can be bought today. Sessions of models that are retired, and of
//! terms that were withdrawn, are still there, and cost what they cost.

use super::other_makers;
use super::{ModelPrice, Prices, TokenRate, TokenRates};

/// The rows of the newer table that are of use, with what only the earlier one has.
pub fn renewed(newest: &Prices, earlier: &Prices) -> Prices {
    trimmed(joined(newest, earlier), &Prices::default())
}

/// The rows of the newer table alone, as they are with what only the earlier one has.
pub fn renewal(newest: &Prices, earlier: &Prices) -> Prices {
    // A cloud's row that is now as the maker's must still take the place of one that was not.
    let all = trimmed(joined(newest, earlier), earlier);
    let fresh = all.rows().filter(|row| newest.row(&row.name).is_some());
    Prices::gathered(all.date(), all.source(), fresh.cloned())
}

/// Names of rows that a table which took in the newer one gives no answer by.
pub fn unused<'a>(newest: &'a Prices, table: &Prices) -> Vec<&'a str> {
    let taken = |row: &ModelPrice| is_wanted(row) && table.row(&row.name).is_some();
    let told = |row: &ModelPrice| {
        table
            .find(&row.name)
            .is_some_and(|own| is_covered(row, own))
    };
    let rows = newest.rows().filter(|row| !taken(row) && !told(row));
    let mut names: Vec<&str> = rows.map(|row| &*row.name).collect();
    names.extend(newest.priceless.iter().map(String::as_str));
    names.sort_unstable();
    names
}

fn joined(newest: &Prices, earlier: &Prices) -> Prices {
    let wanted = newest.rows().filter(|row| is_wanted(row));
    let mut rows: Vec<ModelPrice> = wanted.cloned().collect();
    for row in &mut rows {
        if let Some(old) = earlier.row(&row.name).filter(|_| is_bare(row)) {
            unsaid(row, old);
        }
    }
    for old in earlier.rows().filter(|row| is_own(&row.name)) {
        match rows.iter_mut().find(|row| row.name == old.name) {
            Some(row) => withdrawn(row, old),
            None if is_alias(&old.name) => {}
            None => rows.push(retired(old, newest)),
        }
    }
    let search = rows
        .iter()
        .filter(|row| is_claude(&row.name))
        .find_map(|row| row.web_search);
    for row in rows.iter_mut().filter(|row| is_claude(&row.name)) {
        // The search is a tool with one price; the table says it for most models only.
        row.web_search = row.web_search.or(search);
    }
    Prices::gathered(newest.date(), newest.source(), rows)
}

/// Without rows of clouds that say the same as the maker's, or are of models the maker
/// never had, but for those that are listed already.
fn trimmed(all: Prices, listed: &Prices) -> Prices {
    let own = all.rows().filter(|row| is_own(&row.name)).cloned();
    let own = Prices::gathered("", "", own);
    let adds = |row: &&ModelPrice| {
        let differs = || own.find(&row.name).is_some_and(|own| !is_covered(row, own));
        listed.row(&row.name).is_some() || differs()
    };
    let kept = all
        .rows()
        .filter(|row| is_own(&row.name) || adds(row))
        .cloned();
    Prices::gathered(all.date(), all.source(), kept)
}

/// A maker's own name of a model.
fn is_own(name: &str) -> bool {
    is_claude(name) || other_makers::is_own(name)
}

/// Anthropic's own name of a model.
fn is_claude(name: &str) -> bool {
    name.starts_with("claude-") && !name.contains([':', '/'])
}

/// Names of the maker and of the clouds that clients know.
fn is_wanted(row: &ModelPrice) -> bool {
    let cloud = ["vertex_ai/", "azure_ai/"];
    let named = !row.name.contains('/') || cloud.iter().any(|cloud| row.name.starts_with(cloud));
    named && !is_alias(&row.name)
}

/// A row that says of tokens what comes in and goes out costs, and no more.
fn is_bare(row: &ModelPrice) -> bool {
    row.rates.cache_read.is_none() && row.rates.cache_write_5m.is_none()
}

/// Adds what a bare row leaves out. Prices of the cache are in proportion to that of input,
/// so where input costs something else, the earlier ones are of another price list.
fn unsaid(row: &mut ModelPrice, old: &ModelPrice) {
    row.limit = row.limit.or(old.limit);
    row.fast = row.fast.or(old.fast);
    row.us = row.us.or(old.us);
    row.web_search = row.web_search.or(old.web_search);
    if (row.rates.input, row.rates.output) == (old.rates.input, old.rates.output) {
        row.rates = old.rates;
        row.long = row.long.or(old.long);
        row.batch = row.batch.or(old.batch);
    }
}

/// Second names, which finding a price sees through; some had a wrong price.
fn is_alias(name: &str) -> bool {
    name.ends_with("-latest") || name.starts_with("claude-4-")
}

/// Adds terms that the newer table has dropped for a model it still lists.
fn withdrawn(row: &mut ModelPrice, old: &ModelPrice) {
    row.fast = row.fast.or(old.fast);
    if row.rates.input != old.rates.input && is_bare(row) {
        return;
    }
    // No long input any more; a session that has it was charged by the old tier.
    let short = |above: u64| row.limit.is_some_and(|limit| limit <= above);
    if row.long.is_none() && old.long.is_some_and(|long| short(long.above)) {
        row.long = old.long;
    }
}

/// A row for a model that the newer table lists for other providers, or not at all.
fn retired(old: &ModelPrice, newest: &Prices) -> ModelPrice {
    let mut row = old.clone();
    // Some had the price of another model for one-hour writes, which are twice the input.
    let twice = |input: TokenRate| TokenRate(input.0.saturating_mul(2));
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

/// Whether the maker's row says everything that a cloud's row says.
fn is_covered(row: &ModelPrice, own: &ModelPrice) -> bool {
    let says = |row: Option<TokenRate>, own: Option<TokenRate>| row.is_none() || row == own;
    let same = |row: &TokenRates, own: &TokenRates| {
        says(row.input, own.input)
            && says(row.output, own.output)
            && says(row.cache_read, own.cache_read)
            && says(row.cache_write_5m, own.cache_write_5m)
            && says(row.cache_write_1h, own.cache_write_1h)
    };
    let long = match (&row.long, &own.long) {
        (None, None) => true,
        (None, Some(long)) => row.limit.map_or(is_bare(row), |limit| limit <= long.above),
        (Some(row), Some(own)) => row.above == own.above && same(&row.rates, &own.rates),
        (Some(_), None) => false,
    };
    let limit = row.limit.is_none() || row.limit == own.limit;
    long && limit && same(&row.rates, &own.rates)
}
