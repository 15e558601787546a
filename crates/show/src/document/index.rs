//! The index of a folder of documents.

use std::io;

use unspool_model::time::Time;

use super::{Format, Options, html, markdown};
use crate::amount;
use crate::wire::session::SessionRow;

/// The name of the index, for formats that have one.
pub fn name(format: Format) -> Option<&'static str> {
    match format {
        Format::Html => Some("index.html"),
        Format::Markdown => Some("index.md"),
        Format::Text | Format::Json | Format::Jsonl | Format::Messages => None,
    }
}

/// Writes the index: files and what they hold, in the order given.
pub fn write(
    out: &mut dyn io::Write,
    rows: &[(String, SessionRow)],
    format: Format,
    options: &Options,
) -> io::Result<()> {
    match format {
        Format::Html => html::index(out, rows, options),
        Format::Markdown => markdown::index(out, rows, options),
        Format::Text | Format::Json | Format::Jsonl | Format::Messages => Ok(()),
    }
}

/// What an index says about a session.
pub(crate) fn facts(row: &SessionRow, options: &Options) -> Vec<String> {
    let time = |text: &Option<String>| text.as_deref().and_then(Time::parse);
    let mut facts = Vec::new();
    facts.extend(time(&row.first).map(|at| amount::moment(at, &options.zone)));
    facts.push(row.cwd.clone().unwrap_or_else(|| row.project.clone()));
    facts.push(amount::count(row.turns as u64, "turn"));
    facts.push(amount::count(row.calls as u64, "call"));
    facts.extend(row.model.clone());
    facts.extend(cost(row));
    facts.retain(|fact| !fact.is_empty());
    facts
}

/// What a session cost, if it cost anything.
pub(crate) fn cost(row: &SessionRow) -> Option<String> {
    let any = row.cost_usd.or(row.cost_usd_known)? > 0.0 || row.unpriced_messages > 0;
    let told = || amount::cost_told(row.cost_usd, row.cost_usd_known, row.unpriced_messages);
    any.then(told)
}

/// What all sessions of an index come to.
pub(crate) fn sum(rows: &[(String, SessionRow)]) -> String {
    let known = rows.iter().filter_map(|(_, row)| row.cost_usd_known);
    let known: f64 = known.sum();
    let unpriced: u64 = rows.iter().map(|(_, row)| row.unpriced_messages).sum();
    let turns: usize = rows.iter().map(|(_, row)| row.turns).sum();
    let mut facts = vec![
        amount::count(rows.len() as u64, "session"),
        amount::count(turns as u64, "turn"),
    ];
    if known > 0.0 || unpriced > 0 {
        let whole = (unpriced == 0).then_some(known);
        facts.push(amount::cost_told(whole, Some(known), unpriced));
    }
    facts.join(" · ")
}
