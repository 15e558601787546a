//! The table that comes of it.

use std::fs;

use crate::measure::Cost;

/// A line of the table.
pub struct Row {
    pub name: String,
    /// What it cost, or why it did not run; nothing for a comparison of others.
    pub cost: Option<Result<Cost, String>>,
    /// Targets in words and whether each is met.
    pub targets: Vec<(String, bool)>,
    /// Others in words.
    pub against: String,
}

impl Row {
    /// Whether every target is met.
    pub fn is_met(&self) -> bool {
        self.targets.iter().all(|(_, is_met)| *is_met)
    }
}

/// The table as Markdown.
pub fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| what | wall | processor | peak | target | | beside it |\n|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let (wall, cpu, peak) = match &row.cost {
            Some(Ok(cost)) => (
                seconds(cost.wall),
                seconds(cost.cpu),
                format!("{:.0} MB", cost.peak),
            ),
            Some(Err(reason)) => (reason.clone(), String::new(), String::new()),
            None => Default::default(),
        };
        let targets: Vec<&str> = row.targets.iter().map(|(text, _)| text.as_str()).collect();
        let verdict = match (row.targets.is_empty(), row.is_met()) {
            (true, _) => "",
            (_, true) => "ok",
            (_, false) => "MISS",
        };
        text.push_str(&format!(
            "| {} | {wall} | {cpu} | {peak} | {} | {verdict} | {} |\n",
            row.name,
            targets.join(", "),
            row.against
        ));
    }
    text
}

/// What stands around our part of the page. Everything else in it is written by hand.
const BEGIN: &str = "<!-- bench: begin -->\n";
const END: &str = "<!-- bench: end -->\n";

/// The page with a new table; what was written by hand stays as it is.
pub fn document(before: &str, table: &str) -> String {
    let new = format!("{BEGIN}{}{END}", part(table));
    let marked = before.split_once(END);
    let marked = marked.and_then(|(head, tail)| Some((head.rsplit_once(BEGIN)?.0, tail)));
    match marked {
        Some((head, tail)) => format!("{head}{new}{tail}"),
        // A page without marks keeps all it has.
        None if !before.trim().is_empty() => format!("{}\n\n{new}", before.trim_end()),
        None => format!("# Performance\n\n{new}"),
    }
}

/// The table, and how it came about.
fn part(table: &str) -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let system = std::env::consts::OS;
    format!(
        "Measured by `cargo xtask bench`, which replaces this part of the page with \
         `--write docs/performance.md`.\n\nGenerated trees, files in the page cache; no cache of ours unless \
         a line says so; best of several runs (memory: the largest), ours and the others' in turn. {cores} cores, \
         {system}, {}. Compare the ratios: the seconds belong to that machine.\n\n{table}",
        processor()
    )
}

fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or("processor unknown", |(_, name)| name)
        .to_owned()
}

/// A time as people read it.
pub fn seconds(value: f64) -> String {
    if value < 0.1 {
        format!("{:.1} ms", value * 1000.0)
    } else {
        format!("{value:.2} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_table_leaves_alone_what_was_written_by_hand() {
        let first = document("", "| old |\n");
        assert!(first.starts_with("# Performance\n"), "{first}");
        let page = format!("{first}\n## Editing\n\nBy hand.\n");
        let second = document(&page, "| new |\n");
        assert!(second.contains("| new |") && !second.contains("| old |"));
        assert!(second.ends_with(&format!("{END}\n## Editing\n\nBy hand.\n")));
        assert_eq!(document(&second, "| new |\n"), second);
        let unmarked = document("# Performance\n\nBy hand.\n", "| new |\n");
        assert!(unmarked.starts_with("# Performance\n\nBy hand.\n\n<!--"));
        // A mark that was not closed is no place to cut.
        let torn = document(&format!("{BEGIN}By hand.\n"), "| new |\n");
        let torn = document(&torn, "| newer |\n");
        assert!(
            torn.contains("By hand.") && torn.contains("| newer |"),
            "{torn}"
        );
    }

    #[test]
    fn one_missed_target_is_a_miss() {
        let row = |targets: &[bool]| Row {
            name: "x".into(),
            cost: None,
            targets: targets.iter().map(|is_met| ("t".into(), *is_met)).collect(),
            against: String::new(),
        };
        let text = table(&[row(&[true, false]), row(&[true]), row(&[])]);
        let verdicts: Vec<&str> = text
            .lines()
            .skip(2)
            .filter_map(|line| line.split(" | ").nth(5))
            .collect();
        assert_eq!(verdicts, ["MISS", "ok", ""], "{text}");
    }
}
