//! The index of a folder of documents.

use std::io;

use unspool_model::time::Time;

use super::{DocumentFormat, DocumentOptions, html, markdown};
use crate::format;
use crate::wire::session::SessionJson;

/// The name of the index, for formats that have one.
pub fn name(format: DocumentFormat) -> Option<&'static str> {
    match format {
        DocumentFormat::Html => Some("index.html"),
        DocumentFormat::Markdown => Some("index.md"),
        DocumentFormat::Text
        | DocumentFormat::Json
        | DocumentFormat::Jsonl
        | DocumentFormat::Messages => None,
    }
}

/// Writes the index: files and what they hold, in the order given.
pub fn write(
    out: &mut dyn io::Write,
    rows: &[(String, SessionJson)],
    format: DocumentFormat,
    options: &DocumentOptions,
) -> io::Result<()> {
    match format {
        DocumentFormat::Html => html::index(out, rows, options),
        DocumentFormat::Markdown => markdown::index(out, rows, options),
        DocumentFormat::Text
        | DocumentFormat::Json
        | DocumentFormat::Jsonl
        | DocumentFormat::Messages => Ok(()),
    }
}

/// What an index says about a session.
pub(crate) fn facts(row: &SessionJson, options: &DocumentOptions) -> Vec<String> {
    let time = |text: &Option<String>| text.as_deref().and_then(Time::parse);
    let mut facts = Vec::new();
    facts.extend(time(&row.first).map(|at| format::moment(at, &options.zone)));
    facts.push(row.cwd.clone().unwrap_or_else(|| row.project.clone()));
    facts.push(format::count(row.turns as u64, "turn"));
    facts.push(format::count(row.calls as u64, "call"));
    facts.extend(row.model.clone());
    facts.extend(cost(row));
    facts.retain(|fact| !fact.is_empty());
    facts
}

/// What a session cost, if it cost anything.
pub(crate) fn cost(row: &SessionJson) -> Option<String> {
    let any = row.cost_usd.or(row.cost_usd_known)? > 0.0 || row.unpriced_messages > 0;
    let told = || format::cost_told(row.cost_usd, row.cost_usd_known, row.unpriced_messages);
    any.then(told)
}

/// What all sessions of an index come to.
pub(crate) fn sum(rows: &[(String, SessionJson)]) -> String {
    let known = rows.iter().filter_map(|(_, row)| row.cost_usd_known);
    let known: f64 = known.sum();
    let unpriced: u64 = rows.iter().map(|(_, row)| row.unpriced_messages).sum();
    let turns: usize = rows.iter().map(|(_, row)| row.turns).sum();
    let mut facts = vec![
        format::count(rows.len() as u64, "session"),
        format::count(turns as u64, "turn"),
    ];
    if known > 0.0 || unpriced > 0 {
        let whole = (unpriced == 0).then_some(known);
        facts.push(format::cost_told(whole, Some(known), unpriced));
    }
    facts.join(" · ")
}
