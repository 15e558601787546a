//! Writes a table of prices in our own format.

use std::fmt::Write;

use super::{ModelPrice, Prices, TokenRates};

/// The table, one line per model, so that two versions of it can be compared.
pub fn json(prices: &Prices) -> String {
    let mut out = String::from("{\n");
    for (key, value) in [("date", prices.date()), ("source", prices.source())] {
        if !value.is_empty() {
            let _ = writeln!(out, "\"{key}\": {},", text(value));
        }
    }
    out.push_str("\"models\": {");
    for (at, price) in prices.rows().enumerate() {
        out.push_str(if at == 0 { "\n" } else { ",\n" });
        let _ = write!(out, "{}: {}", text(&price.name), row(price, prices));
    }
    out.push_str("\n}}\n");
    out
}

fn text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn row(price: &ModelPrice, table: &Prices) -> String {
    let mut fields = rates(&price.rates);
    if let Some(long) = &price.long {
        let mut inner = vec![format!("\"above\":{}", long.above)];
        inner.extend(rates(&long.rates));
        inner.extend(long.batch.as_ref().map(batch));
        fields.push(format!("\"long\":{{{}}}", inner.join(",")));
    }
    fields.extend(price.batch.as_ref().map(batch));
    let mut number = |key: &str, value: Option<String>| {
        fields.extend(value.map(|value| format!("\"{key}\":{value}")));
    };
    number("web_search", price.web_search.map(|each| decimal(each, 12)));
    number("fast", price.fast.map(|factor| decimal(factor.0, 6)));
    number("us", price.us.map(|factor| decimal(factor.0, 6)));
    number("limit", price.limit.map(|limit| limit.to_string()));
    // Most rows came with the table.
    let from = |own: &str, table: &str| (own != table).then(|| text(own));
    number("date", from(&price.date, table.date()));
    number("source", from(&price.source, table.source()));
    format!("{{{}}}", fields.join(","))
}

fn batch(part: &TokenRates) -> String {
    format!("\"batch\":{{{}}}", rates(part).join(","))
}

fn rates(rates: &TokenRates) -> Vec<String> {
    let named = [
        ("input", rates.input),
        ("output", rates.output),
        ("cache_read", rates.cache_read),
        ("cache_write_5m", rates.cache_write_5m),
        ("cache_write_1h", rates.cache_write_1h),
    ];
    named
        .into_iter()
        .filter_map(|(key, rate)| Some(format!("\"{key}\":{}", decimal(rate?.0, 6))))
        .collect()
}

/// `units` of 10^-`places`, written without rounding.
fn decimal(units: u64, places: usize) -> String {
    let digits = format!("{units:0>width$}", width = places + 1);
    let (whole, part) = digits.split_at(digits.len() - places);
    let part = part.trim_end_matches('0');
    if part.is_empty() {
        whole.to_owned()
    } else {
        format!("{whole}.{part}")
    }
}
