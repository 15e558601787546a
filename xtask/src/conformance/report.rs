//! The table people read and the fixtures that tests read.

use super::compare::Row;
use super::options::{self, Options};
use super::record;
use super::{Problem, cases, misses};
use unspool_testkit::conformance::mutations;
use unspool_testkit::conformance::observation::write_fixture;

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
    let path = options::root().join("docs/conformance.md");
    std::fs::create_dir_all(options::root().join("docs"))?;
    Ok(std::fs::write(path, text)?)
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
