//! `list_sessions` and `unspool ls --json`, field by field.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use unspool_testkit::home::Home;

use super::{Case, Counts, Said, text};

/// Compares the two lists.
pub fn compare(home: &Home, cases: &[Case], said: &Said) -> Result<(Counts, Vec<String>), String> {
    let output = home.output(&["ls", "--json"]);
    let mut ours: HashMap<String, Value> = HashMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let row: Value = serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?;
        ours.insert(text(&row, "id"), row);
    }
    let mut counts = Counts::new();
    let mut strange = Vec::new();
    for case in cases {
        let (row, info) = (ours.get(&case.id), said.listed.get(&case.id));
        let reasons = match (row, info) {
            (None, None) => Vec::new(),
            (Some(row), Some(info)) => fields(row, info, case),
            (Some(row), None) => vec![unlisted_by_them(row, case)],
            (None, Some(info)) => vec![unlisted_by_us(info, case)],
        };
        if reasons.is_empty() {
            *counts.entry("").or_default() += 1;
        }
        for reason in reasons {
            match reason {
                Ok(reason) => *counts.entry(reason).or_default() += 1,
                Err(what) => strange.push(format!("{}: {what}", case.name)),
            }
        }
    }
    Ok((counts, strange))
}

type Reason = Result<&'static str, String>;

fn objects(case: &Case) -> Vec<Value> {
    let text = String::from_utf8_lossy(&case.bytes);
    let lines = text.lines().map(|line| line.replace("\\ud", "\\u0"));
    lines
        .filter_map(|line| serde_json::from_str(&line).ok())
        .collect()
}

/// Left out there: nothing to name the session by, or a first line of a sub-agent.
fn unlisted_by_them(row: &Value, case: &Case) -> Reason {
    let first = case
        .bytes
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    if String::from_utf8_lossy(first).contains("\"isSidechain\":true") {
        return Ok("list_first_line_sidechain");
    }
    let prompts = objects(case).iter().any(is_plain_prompt);
    if !prompts {
        return Ok("list_without_prompt");
    }
    Err(format!("only we list it: {row}"))
}

/// A line that the SDK would take for a first prompt.
fn is_plain_prompt(line: &Value) -> bool {
    let raw = line.to_string();
    line["type"] == "user"
        && line["isMeta"] != true
        && line["isCompactSummary"] != true
        && !raw.contains("\"tool_result\"")
        // A mark that somebody stopped the model is no prompt there, as it is none here.
        && !raw.contains("[Request interrupted by user")
}

/// Left out here: no line of a conversation in it, or nothing that a person typed or a model said.
fn unlisted_by_us(info: &Value, case: &Case) -> Reason {
    let lines = objects(case);
    let is_said = |line: &Value| line["type"] == "user" || line["type"] == "assistant";
    if !lines.iter().any(is_said) {
        return Ok("list_without_conversation");
    }
    // A line under a uuid that stood before is a copy of that line here.
    let mut seen = HashSet::new();
    let is_first = |line: &&Value| {
        line["uuid"]
            .as_str()
            .is_none_or(|uuid| seen.insert(uuid.to_owned()))
    };
    match lines.iter().filter(is_first).any(is_spoken) {
        true => Err(format!("only they list it: {info}")),
        false => Ok("list_nobody_spoke"),
    }
}

/// A reply, or a prompt that is no sub-agent's and no note for the screen.
fn is_spoken(line: &Value) -> bool {
    let is_own = line["isSidechain"] != true && line["isVisibleInTranscriptOnly"] != true;
    line["type"] == "assistant" || is_own && is_plain_prompt(line)
}

fn fields(row: &Value, info: &Value, case: &Case) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if row["bytes"] != info["file_size"] {
        reasons.push(Err(format!(
            "bytes {} and {}",
            row["bytes"], info["file_size"]
        )));
    }
    if row["cwd"] != info["cwd"] {
        reasons.push(values(case, "cwd", row, info, "cwd").map(|()| "list_cwd_changed"));
    }
    if row["git_branch"] != info["git_branch"] {
        let told = values(case, "gitBranch", row, info, "git_branch");
        reasons.push(told.map(|()| "list_branch_changed"));
    }
    let created = info["created_at"].as_i64();
    if created != row["first"].as_str().and_then(millis) {
        reasons.push(first_time(row, created, case));
    }
    let title = info["custom_title"].as_str();
    if title.is_some() && title != row["title"].as_str() {
        reasons.push(Err(format!(
            "title {} and {}",
            row["title"], info["custom_title"]
        )));
    }
    reasons
}

/// Both values stand in the file: one side took the first, the other the last.
fn values(case: &Case, field: &str, row: &Value, info: &Value, name: &str) -> Result<(), String> {
    let objects = objects(case);
    let stands =
        |value: &Value| value.is_null() || objects.iter().any(|line| line[field] == *value);
    if stands(&row[name]) && stands(&info[name]) {
        Ok(())
    } else {
        Err(format!("{name} {} and {}", row[name], info[name]))
    }
}

/// We take the earliest time; the SDK the first in the text, whatever it belongs to.
fn first_time(row: &Value, created: Option<i64>, case: &Case) -> Reason {
    let text = String::from_utf8_lossy(&case.bytes);
    let first = text
        .split_once("\"timestamp\":\"")
        .and_then(|(_, behind)| behind.split_once('"'))
        .map(|(time, _)| time);
    if first.and_then(millis) == created {
        Ok("list_first_time")
    } else {
        Err(format!("first {} and {created:?}, {first:?}", row["first"]))
    }
}

/// A time in milliseconds.
pub fn millis(time: &str) -> Option<i64> {
    unspool_model::time::Time::parse(time).map(|time| time.0)
}
