//! The part of `docs/conformance.md` that is about edited sessions.

use super::super::{Problem, report};
use super::judge::{Miss, Row};
use super::operations::{ALL, SOURCE};
use unspool_testkit::conformance::misses;

/// The heading of the part.
pub const HEADING: &str = "## What the program makes of sessions";

/// The table and what is wrong.
pub fn text(rows: &[Row]) -> String {
    let mut text = table(rows);
    text += "\n";
    for row in rows {
        for miss in &row.misses {
            let Miss { trial, what, wrong } = miss;
            let why = misses::reason(&row.version, trial).unwrap_or("not explained yet");
            text += &format!("- {} `{trial}` ({what}): {wrong}; {why}.\n", row.version);
        }
    }
    if rows.iter().all(|row| row.misses.is_empty()) {
        text += "No miss.\n";
    }
    text
}

/// Good results of all, by operation and version.
fn table(rows: &[Row]) -> String {
    let mut names = vec![SOURCE];
    for operation in ALL {
        if !names.contains(&operation.name) {
            names.push(operation.name);
        }
    }
    let versions: Vec<&str> = rows.iter().map(|row| row.version.as_str()).collect();
    let mut text = format!("| operation | {} |\n|---|", versions.join(" | "));
    text += &"---|".repeat(rows.len());
    text += "\n";
    for name in names {
        let cells = rows.iter().map(|row| cell(row.counts.get(name)));
        text += &format!("| {name} | {} |\n", cells.collect::<Vec<_>>().join(" | "));
    }
    let totals = rows.iter().map(|row| cell(Some(&row.total())));
    text += &format!("| all | {} |\n", totals.collect::<Vec<_>>().join(" | "));
    text
}

fn cell(count: Option<&(usize, usize)>) -> String {
    count.map_or("–".to_owned(), |(tried, good)| format!("{good}/{tried}"))
}

/// Writes the part into the page and leaves the rest of it as it is.
pub fn write(rows: &[Row]) -> Result<(), Problem> {
    let section = format!(
        "{HEADING}\n\n{}\n{}",
        include_str!("preamble.md"),
        text(rows)
    );
    report::put_section(HEADING, &section)
}
