//! The table people read and the fixtures that tests read.

use super::compare::Row;
use super::options::{self, Options};
use super::record;
use super::{Problem, cases, chat, edited, probes};
use std::ops::Range;
use std::path::PathBuf;
use unspool_testkit::conformance::observation::write_fixture;
use unspool_testkit::conformance::{misses, mutations};

/// Prints the table and the names of the misses.
pub fn print(rows: &[Row]) {
    println!("{}", table(rows));
    for row in rows {
        for miss in &row.misses {
            println!("{} {}: {}", row.version, miss.case, reason(row, &miss.case));
        }
    }
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| version | sessions | equal | edited copies | equal | share |\n|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let (compared, equal) = row.total();
        let share = 100.0 * equal as f64 / compared.max(1) as f64;
        text += &format!(
            "| {} | {} | {} | {} | {} | {share:.1} % |\n",
            row.version, row.sessions.0, row.sessions.1, row.edits.0, row.edits.1
        );
    }
    text
}

fn reason(row: &Row, case: &str) -> &'static str {
    misses::reason(&row.version, case).unwrap_or("not explained yet")
}

/// Writes the table into the documentation.
pub fn write_docs(rows: &[Row]) -> Result<(), Problem> {
    let mut text = include_str!("preamble.md").to_owned();
    text += "\n## Result\n\n";
    text += &table(rows);
    text += "\n## Misses\n\n";
    for row in rows {
        for miss in &row.misses {
            let why = reason(row, &miss.case);
            text += &format!(
                "- {} `{}` ({}): {why}.\n",
                row.version, miss.case, miss.what
            );
        }
    }
    if rows.iter().all(|row| row.misses.is_empty()) {
        text += "None.\n";
    }
    text += "\n## Edited copies\n\n| name | what is changed |\n|---|---|\n";
    for mutation in mutations::all() {
        text += &format!("| {} | {} |\n", mutation.name, mutation.what);
    }
    // The other parts of the page are of runs of their own.
    let page = std::fs::read_to_string(page()).unwrap_or_default();
    for heading in [probes::HEADING, edited::HEADING, chat::HEADING, RECEIVERS] {
        if let Some(place) = section(&page, heading) {
            text = with_section(&text, heading, &page[place]);
        }
    }
    std::fs::create_dir_all(options::root().join("docs"))?;
    Ok(std::fs::write(self::page(), text)?)
}

/// The part of the page about those who receive traces.
const RECEIVERS: &str = "## Receivers of traces";

/// The page that people read.
fn page() -> PathBuf {
    options::root().join("docs/conformance.md")
}

/// Writes one part of the page and leaves the rest as it is.
pub fn put_section(heading: &str, section: &str) -> Result<(), Problem> {
    let page = std::fs::read_to_string(page())?;
    Ok(std::fs::write(
        self::page(),
        with_section(&page, heading, section),
    )?)
}

/// The page with this part, where it was or else before the list of edited copies.
fn with_section(page: &str, heading: &str, text: &str) -> String {
    let last = || page.find("## Edited copies").unwrap_or(page.len());
    let place = section(page, heading).unwrap_or_else(|| last()..last());
    let (before, after) = (&page[..place.start], &page[place.end..]);
    format!("{before}{}\n\n{after}", text.trim_end())
}

/// Where a part stands: from its heading to the next one.
fn section(page: &str, heading: &str) -> Option<Range<usize>> {
    let start = page.find(heading)?;
    let inner = start + heading.len();
    let end = page[inner..]
        .find("\n## ")
        .map_or(page.len(), |at| inner + at + 1);
    Some(start..end)
}

/// Writes what was seen, without the requests themselves.
pub fn write_fixtures(options: &Options) -> Result<(), Problem> {
    std::fs::create_dir_all(options::root().join("tests/conformance"))?;
    for version in &options.versions {
        let cases = cases::of(options, version)?;
        let seen = cases
            .iter()
            .filter_map(|case| record::load(options, version, case));
        let seen: Vec<_> = seen.collect();
        std::fs::write(record::fixture_path(version), write_fixture(version, &seen))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_page_is_put_in_its_place_and_replaced_there() {
        let page = "# P\n\n## Result\n\na\n\n## Edited copies\n\nb\n";
        let first = with_section(page, "## New", "## New\n\none\n");
        assert_eq!(
            first,
            "# P\n\n## Result\n\na\n\n## New\n\none\n\n## Edited copies\n\nb\n"
        );
        let second = with_section(&first, "## New", "## New\n\ntwo\n");
        assert_eq!(second, first.replace("one", "two"));
    }
}
