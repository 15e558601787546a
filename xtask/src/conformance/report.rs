//! The table people read and the fixtures that tests read.

use super::compare::Row;
use super::options::{self, Options};
use super::record;
use super::{Problem, cases};
use unspool_testkit::conformance::observation::write_fixture;

/// Prints the table.
pub fn print(rows: &[Row]) {
    println!("{}", table(rows));
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| version | sessions | equal | edited copies | equal | share |\n|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let compared = row.sessions.0 + row.edits.0;
        let equal = row.sessions.1 + row.edits.1;
        let share = 100.0 * equal as f64 / compared.max(1) as f64;
        text += &format!(
            "| {} | {} | {} | {} | {} | {share:.1} % |\n",
            row.version, row.sessions.0, row.sessions.1, row.edits.0, row.edits.1
        );
    }
    text
}

/// Writes the table into the documentation.
pub fn write_docs(_options: &Options, _rows: &[Row]) -> Result<(), Problem> {
    Ok(())
}

/// Writes what was seen, without the requests themselves.
pub fn write_fixtures(options: &Options) -> Result<(), Problem> {
    let dir = options::root().join("tests/conformance");
    std::fs::create_dir_all(&dir)?;
    for version in &options.versions {
        let cases = cases::of(options, version)?;
        let seen = cases
            .iter()
            .filter_map(|case| record::load(options, version, case));
        let seen: Vec<_> = seen.collect();
        std::fs::write(
            dir.join(format!("{version}.json")),
            write_fixture(version, &seen),
        )?;
    }
    Ok(())
}
