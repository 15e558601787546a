//! Changes of a transcript that mean nothing to the SDK, each for one way in which it reads
//! otherwise than the client.
//!
//! What the SDK does is known from its documentation and from trying it: it keeps lines of
//! five types that have a uuid, goes on from the last line in the file that nothing follows,
//! walks `parentUuid` as far as it leads, and puts parallel calls back.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::listing::millis;

/// One change, and the name of the difference it takes away.
pub struct Step {
    /// As in `docs/differential.md`.
    pub name: &'static str,
    change: Change,
}

type Change = fn(&mut Vec<Value>);

/// Every reason, in the order in which the changes are made.
pub const REASONS: &[Step] = &[
    Step {
        name: "other_lines",
        change: drop_other_lines,
    },
    Step {
        name: "last_prompt",
        change: drop_last_prompts,
    },
    Step {
        name: "duplicate_uuid",
        change: drop_earlier_copies,
    },
    Step {
        name: "no_timestamp",
        change: |lines| fill_in_times(lines),
    },
    Step {
        name: "missing_parent",
        change: |lines| cut_at_missing_parents(lines),
    },
    Step {
        name: "boundary_with_parent",
        change: |lines| hide_boundaries(lines),
    },
    Step {
        name: "preserved",
        change: |lines| drop_preserved(lines),
    },
    Step {
        name: "cycle",
        change: |lines| cut_circle(lines),
    },
    Step {
        name: "leaf",
        change: name_leaf,
    },
];

/// The bytes after these steps.
pub fn apply(bytes: &[u8], steps: &[&Step]) -> Vec<u8> {
    let mut lines = parse(bytes);
    for step in steps {
        (step.change)(&mut lines);
    }
    lines
        .iter()
        .flat_map(|line| format!("{line}\n").into_bytes())
        .collect()
}

/// The steps that change anything in this file.
pub fn useful(bytes: &[u8]) -> Vec<&'static Step> {
    let mut lines = parse(bytes);
    let mut steps = Vec::new();
    for step in REASONS {
        let before = lines.clone();
        (step.change)(&mut lines);
        if lines != before {
            steps.push(step);
        }
    }
    steps
}

/// The bytes after all of them.
pub fn all(bytes: &[u8]) -> Vec<u8> {
    apply(bytes, &REASONS.iter().collect::<Vec<_>>())
}

/// The lines as the SDK's parser sees them; what it cannot read is a string.
pub fn parse(bytes: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n");
    let lines = text.split('\n').filter(|line| !line.trim().is_empty());
    lines
        .map(|line| {
            let whole = serde_json::from_str(line);
            // Half surrogate pairs are letters to Python.
            let mended = || serde_json::from_str(&line.replace("\\ud", "\\u0"));
            whole
                .or_else(|_| mended())
                .unwrap_or_else(|_| Value::String(line.to_owned()))
        })
        .collect()
}

/// A field that is a string.
pub fn text<'a>(line: &'a Value, field: &str) -> Option<&'a str> {
    line.get(field).and_then(Value::as_str)
}

fn parent(line: &Value) -> Option<&str> {
    text(line, "parentUuid").filter(|parent| !parent.is_empty())
}

fn is_kept(line: &Value) -> bool {
    let kinds = ["user", "assistant", "progress", "system", "attachment"];
    text(line, "type").is_some_and(|kind| kinds.contains(&kind)) && text(line, "uuid").is_some()
}

/// Lines that the SDK passes over, but for `last-prompt`.
fn drop_other_lines(lines: &mut Vec<Value>) {
    lines.retain(|line| is_kept(line) || text(line, "type") == Some("last-prompt"));
}

fn drop_last_prompts(lines: &mut Vec<Value>) {
    lines.retain(|line| text(line, "type") != Some("last-prompt"));
}

/// The later of two lines with one uuid counts, in its own place; but the line that the
/// conversation goes on from is the first of them that is not hidden.
fn drop_earlier_copies(lines: &mut Vec<Value>) {
    let leaf = leaf(lines).map(|leaf| lines[leaf].clone());
    let mut seen = HashSet::new();
    lines.reverse();
    lines.retain(|line| !is_kept(line) || seen.insert(text(line, "uuid").map(str::to_owned)));
    lines.reverse();
    let Some(leaf) = leaf else { return };
    for line in lines.iter_mut().filter(|line| is_kept(line)) {
        if line["uuid"] == leaf["uuid"] {
            *line = leaf.clone();
        }
    }
}

/// A line that the conversation does not go on from if it can be helped.
fn is_hidden(line: &Value) -> bool {
    let is_set = |field: &&str| match line.get(*field) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(_) => true,
    };
    ["isSidechain", "teamName", "isMeta"].iter().any(is_set)
}

/// Whether the SDK finds no line to go on from, as each is followed by another.
pub fn has_no_end(bytes: &[u8]) -> bool {
    let lines = parse(bytes);
    lines.iter().any(is_kept) && leaf(&lines).is_none()
}

/// Times are only looked at to order parallel results.
fn fill_in_times(lines: &mut [Value]) {
    let mut last = "2026-01-01T00:00:00.000Z".to_owned();
    for line in lines.iter_mut().filter(|line| is_kept(line)) {
        match text(line, "timestamp").filter(|time| millis(time).is_some()) {
            Some(time) => last = time.to_owned(),
            None => line["timestamp"] = json!(last),
        }
    }
}

/// Where a parent is not to be found, the conversation begins.
fn cut_at_missing_parents(lines: &mut [Value]) {
    let known: HashSet<String> = lines
        .iter()
        .filter(|line| is_kept(line))
        .filter_map(|line| text(line, "uuid").map(str::to_owned))
        .collect();
    for line in lines.iter_mut() {
        if parent(line).is_some_and(|parent| !known.contains(parent)) {
            line["parentUuid"] = Value::Null;
        }
    }
}

/// A boundary is a line like any other; only its missing parent ends the walk.
fn hide_boundaries(lines: &mut [Value]) {
    for line in lines.iter_mut() {
        if text(line, "subtype") == Some("compact_boundary") && parent(line).is_some() {
            line["subtype"] = json!("informational");
        }
    }
}

/// What a compaction preserved is not put back.
fn drop_preserved(lines: &mut [Value]) {
    for line in lines.iter_mut() {
        if let Some(Value::Object(metadata)) = line.get_mut("compactMetadata") {
            metadata.remove("preservedMessages");
            metadata.remove("preservedSegment");
        }
    }
}

/// The walk ends at the first line it meets again.
fn cut_circle(lines: &mut [Value]) {
    let Some(leaf) = leaf(lines) else { return };
    let by_uuid = by_uuid(lines);
    let mut seen = HashSet::from([leaf]);
    let mut at = leaf;
    while let Some(&next) = parent(&lines[at]).and_then(|parent| by_uuid.get(parent)) {
        if !seen.insert(next) {
            lines[at]["parentUuid"] = Value::Null;
            return;
        }
        at = next;
    }
}

/// It goes on from the last line that nothing follows.
fn name_leaf(lines: &mut Vec<Value>) {
    if let Some(leaf) = leaf(lines) {
        let uuid = lines[leaf]["uuid"].clone();
        lines.push(json!({"type": "last-prompt", "leafUuid": uuid, "explicit": true}));
    }
}

/// The last line of each uuid.
pub fn by_uuid(lines: &[Value]) -> HashMap<String, usize> {
    let kept = lines.iter().enumerate().filter(|(_, line)| is_kept(line));
    kept.filter_map(|(at, line)| Some((text(line, "uuid")?.to_owned(), at)))
        .collect()
}

/// The line that the SDK goes on from: of those that nothing follows, the last in the file.
fn leaf(lines: &[Value]) -> Option<usize> {
    let by_uuid = by_uuid(lines);
    let place = |line: &Value| {
        text(line, "uuid")
            .and_then(|uuid| by_uuid.get(uuid))
            .copied()
    };
    let kept = lines.iter().filter(|line| is_kept(line));
    let followed: HashSet<&str> = kept.filter_map(parent).collect();
    let mut said: Vec<usize> = Vec::new();
    for (end, line) in lines.iter().enumerate().filter(|(_, line)| is_kept(line)) {
        let mut seen = HashSet::new();
        let is_end = text(line, "uuid").is_some_and(|uuid| !followed.contains(uuid));
        let mut at = is_end.then_some(end);
        while let Some(here) = at.filter(|here| seen.insert(*here)) {
            if matches!(text(&lines[here], "type"), Some("user" | "assistant")) {
                said.push(here);
                break;
            }
            at = parent(&lines[here])
                .and_then(|uuid| by_uuid.get(uuid))
                .copied();
        }
    }
    // Copies share the place of the last one; the first of them is taken.
    let last = |said: &mut dyn Iterator<Item = usize>| {
        said.fold(None, |best: Option<usize>, here| {
            let later = best.is_none_or(|best| place(&lines[here]) > place(&lines[best]));
            if later { Some(here) } else { best }
        })
    };
    let shown = last(&mut said.iter().copied().filter(|at| !is_hidden(&lines[*at])));
    shown.or_else(|| last(&mut said.iter().copied()))
}
