//! The program asked, and its answers held against what is true.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use unspool_testkit::home::slug;

use super::expected::{Expected, Group, Needle, Tokens};

/// One comparison.
pub struct Finding {
    /// What was compared.
    pub what: String,
    /// What came of it.
    pub detail: String,
    pub is_right: bool,
}

/// The program on a machine with one tree.
pub struct Asked<'a> {
    pub program: &'a Path,
    /// The folder with `.claude` in it.
    pub home: &'a Path,
    /// Where the program may keep things.
    pub own: &'a Path,
}

impl Asked<'_> {
    /// The rows it prints; none if it found nothing.
    pub fn rows(&self, args: &[&str]) -> Result<Vec<Value>, String> {
        let output = Command::new(self.program)
            .args(args)
            .arg("--json")
            .env("HOME", self.own)
            .env("UNSPOOL_HOME", self.own)
            .env("CLAUDE_CONFIG_DIR", self.claude())
            .env("TZ", "UTC")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{}: {error}", self.program.display()))?;
        if !matches!(output.status.code(), Some(0 | 1)) {
            let stderr = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}: {}", args.join(" "), stderr.trim()));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        text.lines()
            .map(|line| serde_json::from_str(line).map_err(|error| format!("{line}: {error}")))
            .collect()
    }

    fn claude(&self) -> PathBuf {
        self.home.join(".claude")
    }

    /// Every total, and that none is what a usual mistake gives.
    pub fn usage(&self, expected: &Expected) -> Result<Vec<Finding>, String> {
        let mut findings = Vec::new();
        for group in &expected.groups {
            findings.push(self.group(group)?);
        }
        let rows = self.rows(&["usage", "day", "--by", "model"])?;
        let messages: u64 = rows.iter().filter_map(|row| row["messages"].as_u64()).sum();
        findings.push(Finding {
            what: "messages".into(),
            detail: format!("{messages} of {}", expected.messages),
            is_right: messages == expected.messages,
        });
        let total = sum(&rows);
        findings.push(Finding {
            what: "total".into(),
            detail: format!("{total} ({})", total.deviation(expected.total)),
            is_right: total == expected.total,
        });
        for (name, wrong) in &expected.mistakes {
            let is_telling = *wrong != expected.total;
            let would_be = wrong.deviation(expected.total);
            findings.push(Finding {
                what: format!("not: {name}"),
                detail: if is_telling {
                    format!("would be {would_be}")
                } else {
                    "makes no difference in this tree".into()
                },
                is_right: total != *wrong || !is_telling,
            });
        }
        Ok(findings)
    }

    /// The tokens of everything.
    pub fn total(&self, more: &[&str]) -> Result<Tokens, String> {
        let args = [&["usage", "day", "--by", "model"], more].concat();
        Ok(sum(&self.rows(&args)?))
    }

    fn group(&self, group: &Group) -> Result<Finding, String> {
        let rows = self.rows(&[&["usage"], group.args].concat())?;
        let mut ours: BTreeMap<Vec<String>, Tokens> = BTreeMap::new();
        for row in &rows {
            let key = group.keys.iter().map(|key| name(row, key)).collect();
            *ours.entry(key).or_default() += Tokens::of_ours(row);
        }
        ours.retain(|_, tokens| tokens.total() > 0);
        let differs = |key: &&Vec<String>| ours.get(*key) != group.rows.get(*key);
        let wrong: Vec<&Vec<String>> = ours
            .keys()
            .filter(differs)
            .chain(group.rows.keys().filter(|key| !ours.contains_key(*key)))
            .collect();
        let mut detail = format!("{} rows", group.rows.len());
        if let Some(key) = wrong.first() {
            let text = |tokens: Option<&Tokens>| tokens.map_or("no row".into(), Tokens::to_string);
            detail = format!(
                "{} of {detail} differ, first {}: {} instead of {}",
                wrong.len(),
                key.join(" "),
                text(ours.get(*key)),
                text(group.rows.get(*key))
            );
        }
        Ok(Finding {
            what: format!("by {}", group.keys.join(" and ")),
            detail,
            is_right: wrong.is_empty(),
        })
    }

    /// Every needle at every place, and nothing for a text that is not there.
    pub fn needles(&self, expected: &Expected) -> Result<Vec<Finding>, String> {
        let mut findings = Vec::new();
        for needle in &expected.needles {
            findings.push(self.needle(needle)?);
        }
        let rows = self.rows(&["search", "zzyzx-is-not-there"])?;
        findings.push(Finding {
            what: "a text that is not there".into(),
            detail: format!("{} hits", rows.len()),
            is_right: rows.is_empty(),
        });
        Ok(findings)
    }

    fn needle(&self, needle: &Needle) -> Result<Finding, String> {
        let rows = self.rows(&["search", &needle.text])?;
        let claude = self.claude();
        let is_hit = |(path, line): &&(String, u64)| {
            let path = claude.join(path);
            rows.iter().any(|row| {
                row["line"].as_u64() == Some(*line)
                    && row["path"].as_str().map(Path::new) == Some(&path)
            })
        };
        let found = needle.places.iter().filter(is_hit).count();
        let places: Vec<String> = rows
            .iter()
            .map(|row| format!("{}:{}", name(row, "path"), row["line"]))
            .collect();
        let is_right = found == needle.places.len() && found > 0;
        let detail = if is_right {
            format!("{} hits", rows.len())
        } else {
            format!(
                "{found} of {}; hits: {}",
                needle.places.len(),
                places.join(", ")
            )
        };
        Ok(Finding {
            what: format!("needle: {}", needle.kind),
            detail,
            is_right,
        })
    }
}

fn sum(rows: &[Value]) -> Tokens {
    let mut total = Tokens::default();
    rows.iter().for_each(|row| total += Tokens::of_ours(row));
    total
}

/// The key of a row; projects by the name of their folder, which both truths know.
fn name(row: &Value, key: &str) -> String {
    let text = row[key].as_str().unwrap_or_default();
    if key == "project" {
        slug(text)
    } else {
        text.to_owned()
    }
}
