//! What is true of a tree on disk, as whoever generated it wrote it down.
//!
//! Reads the `truth.json` of our own generator and the `manifest.json` of the
//! outside one into the same few tables.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::ops::AddAssign;
use std::path::Path;

use serde_json::Value;
use unspool_testkit::home::slug;

/// Tokens, with both kinds of cache writes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

/// Tokens by group, for one way to group.
pub struct Group {
    /// What to ask `usage` for.
    pub args: &'static [&'static str],
    /// The keys of its rows.
    pub keys: &'static [&'static str],
    pub rows: BTreeMap<Vec<String>, Tokens>,
}

/// A text to find, and where it stands: files relative to the config directory, and lines.
pub struct Needle {
    pub kind: String,
    pub text: String,
    pub places: Vec<(String, u64)>,
}

/// What is true of a tree.
pub struct Expected {
    pub messages: u64,
    pub total: Tokens,
    pub groups: Vec<Group>,
    /// What usual mistakes would report.
    pub mistakes: Vec<(String, Tokens)>,
    pub needles: Vec<Needle>,
}

const DAY_MODEL: (&[&str], &[&str]) = (&["day", "--by", "model"], &["day", "model"]);
const DAY: (&[&str], &[&str]) = (&["day"], &["day"]);
const MODEL: (&[&str], &[&str]) = (&["model"], &["model"]);
const PROJECT: (&[&str], &[&str]) = (&["project"], &["project"]);

impl Expected {
    /// Reads it from the folder that has `.claude` in it.
    pub fn read(home: &Path) -> Result<Expected, String> {
        for (name, read) in [
            ("truth.json", of_ours as fn(&Value) -> Expected),
            ("manifest.json", of_outside),
        ] {
            let path = home.join(name);
            if let Ok(text) = fs::read_to_string(&path) {
                let value = serde_json::from_str(&text)
                    .map_err(|error| format!("{}: {error}", path.display()))?;
                return Ok(read(&value));
            }
        }
        Err(format!(
            "{} has neither truth.json nor manifest.json",
            home.display()
        ))
    }

    /// The needle to measure with: plain letters, in a prompt.
    pub fn plain_needle(&self) -> Option<&Needle> {
        let is_plain = |needle: &&Needle| needle.text.bytes().all(|b| b.is_ascii_alphanumeric());
        self.needles.iter().find(is_plain)
    }
}

fn group(
    (args, keys): (&'static [&'static str], &'static [&'static str]),
    rows: impl IntoIterator<Item = (Vec<String>, Tokens)>,
) -> Group {
    let mut sums: BTreeMap<Vec<String>, Tokens> = BTreeMap::new();
    for (key, tokens) in rows {
        *sums.entry(key).or_default() += tokens;
    }
    // What the client said itself has no tokens and no row.
    sums.retain(|_, tokens| tokens.total() > 0);
    Group {
        args,
        keys,
        rows: sums,
    }
}

fn of_ours(truth: &Value) -> Expected {
    let named = |list: &'static str, key: &'static str| {
        let row = move |row: &Value| (vec![text(&row[key])], Tokens::of_ours(&row["usage"]));
        items(&truth[list]).iter().map(row)
    };
    let days = || {
        items(&truth["days"]).iter().map(|row| {
            let key = [text(&row["day"]), text(&row["model"])];
            (key, Tokens::of_ours(&row["usage"]))
        })
    };
    let groups = vec![
        group(DAY_MODEL, days().map(|(key, tokens)| (key.into(), tokens))),
        group(DAY, days().map(|([day, _], tokens)| (vec![day], tokens))),
        group(MODEL, named("models", "model")),
        group(
            PROJECT,
            named("projects", "cwd").map(|(key, tokens)| (vec![slug(&key[0])], tokens)),
        ),
    ];
    let mistake = |row: &Value| (text(&row["mistake"]), Tokens::of_ours(row));
    let needle = |row: &Value| Needle {
        kind: text(&row["kind"]),
        text: text(&row["text"]),
        places: vec![(text(&row["path"]), number(&row["line"]))],
    };
    Expected {
        messages: number(&truth["messages"]),
        total: Tokens::of_ours(&truth["usage"]),
        groups,
        mistakes: items(&truth["mistakes"])
            .iter()
            .map(mistake)
            // One-hour writes are the same tokens here; only their price differs.
            .filter(|(name, _)| !name.starts_with("one-hour"))
            .collect(),
        needles: items(&truth["needles"]).iter().map(needle).collect(),
    }
}

fn of_outside(manifest: &Value) -> Expected {
    let named = |name: &str| {
        let row = |(key, value): (&String, &Value)| (vec![key.clone()], Tokens::of_outside(value));
        fields(&manifest[name]).map(row).collect::<Vec<_>>()
    };
    let mut days = Vec::new();
    for (day, models) in fields(&manifest["tokens_by_day_model"]) {
        for (model, value) in fields(models) {
            days.push((vec![day.clone(), model.clone()], Tokens::of_outside(value)));
        }
    }
    let needle = |(kind, value): (&String, &Value)| Needle {
        kind: kind.clone(),
        text: text(&value["text"]),
        places: items(&value["hits"])
            .iter()
            .map(|hit| {
                let path = format!("projects/{}", text(&hit["file"]));
                (path, number(&hit["line"]))
            })
            .collect(),
    };
    Expected {
        messages: number(&manifest["unique_messages"]),
        total: Tokens::of_outside(&manifest["tokens_true"]),
        groups: vec![
            group(DAY_MODEL, days),
            group(DAY, named("tokens_by_day")),
            group(MODEL, named("tokens_by_model")),
            group(PROJECT, named("tokens_by_project")),
        ],
        mistakes: fields(&manifest["tokens_wrong"])
            .map(|(name, value)| (name.replace('_', " "), Tokens::of_outside(value)))
            .collect(),
        needles: fields(&manifest["needles"]).map(needle).collect(),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

impl Tokens {
    /// From a row or a usage object of ours.
    pub fn of_ours(value: &Value) -> Tokens {
        Tokens {
            input: number(&value["input"]),
            output: number(&value["output"]),
            cache_read: number(&value["cache_read"]),
            cache_write: number(&value["cache_write_5m"]) + number(&value["cache_write_1h"]),
        }
    }

    fn of_outside(value: &Value) -> Tokens {
        Tokens {
            input: number(&value["input"]),
            output: number(&value["output"]),
            cache_read: number(&value["cache_read"]),
            cache_write: number(&value["cache_creation"]),
        }
    }

    /// All of them.
    pub fn total(self) -> u64 {
        self.input + self.output + self.cache_read + self.cache_write
    }

    /// How far these are from the truth, in words.
    pub fn deviation(self, truth: Tokens) -> String {
        if self == truth {
            return "exact".into();
        }
        let percent = |a: u64, b: u64| (a as f64 / b.max(1) as f64 - 1.0) * 100.0;
        format!(
            "output {:+.2} %, all {:+.2} %",
            percent(self.output, truth.output),
            percent(self.total(), truth.total())
        )
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Tokens) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "in {} out {} read {} write {}",
            self.input, self.output, self.cache_read, self.cache_write
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_kinds_of_truth_are_read_into_the_same_tables() {
        let ours = of_ours(&json!({
            "messages": 2,
            "usage": {"input": 1, "output": 2, "cache_read": 3, "cache_write_5m": 4, "cache_write_1h": 5},
            "days": [{"day": "2026-01-01", "model": "m", "usage": {"input": 1}}],
            "models": [{"model": "m", "usage": {"input": 1}}],
            "projects": [{"cwd": "/a/b", "usage": {"input": 1}}],
            "mistakes": [{"mistake": "x", "input": 9}],
            "needles": [{"kind": "k", "text": "t", "path": "projects/p", "line": 3}],
        }));
        let outside = of_outside(&json!({
            "unique_messages": 2,
            "tokens_true": {"input": 1, "output": 2, "cache_read": 3, "cache_creation": 9, "total": 15},
            "tokens_by_day_model": {"2026-01-01": {"m": {"input": 1}, "<synthetic>": {"input": 0}}},
            "tokens_by_day": {"2026-01-01": {"input": 1}},
            "tokens_by_model": {"m": {"input": 1}, "<synthetic>": {"input": 0}},
            "tokens_by_project": {"-a-b": {"input": 1}},
            "tokens_wrong": {"x": {"input": 9}},
            "needles": {"k": {"text": "t", "hits": [{"file": "p", "line": 3}]}},
        }));
        assert_eq!(ours.total, outside.total);
        assert_eq!(ours.messages, outside.messages);
        for (left, right) in ours.groups.iter().zip(&outside.groups) {
            assert_eq!(left.args, right.args);
            assert_eq!(left.rows, right.rows, "{:?}", left.args);
            assert_eq!(left.rows.len(), 1);
        }
        assert_eq!(ours.mistakes, outside.mistakes);
        assert_eq!(ours.needles[0].places, outside.needles[0].places);
    }

    #[test]
    fn a_deviation_is_told_in_percent() {
        let tokens = |output| Tokens {
            output,
            ..Tokens::default()
        };
        assert_eq!(tokens(5).deviation(tokens(5)), "exact");
        assert_eq!(
            tokens(98).deviation(tokens(100)),
            "output -2.00 %, all -2.00 %"
        );
    }
}
