//! Which recordings a client version is tried on.

use super::transcript::Transcript;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The client versions that are tried on recordings: one of each era, and the newest two.
pub const PROFILES: [&str; 6] = [
    "2.0.50", "2.1.45", "2.1.100", "2.1.200", "2.1.325", "2.1.327",
];

/// The recorded versions whose files a client version is given.
pub fn recordings(version: &str) -> &'static [&'static str] {
    match version {
        "2.0.50" => &["2.0.42", "2.0.76"],
        "2.1.45" => &["2.1.29"],
        "2.1.100" => &["2.1.100"],
        "2.1.200" => &["2.1.325", "2.1.100"],
        "2.1.325" => &["2.1.325"],
        _ => &["2.1.327"],
    }
}

/// The recording that the edits start from: a few turns with a bit of everything.
pub fn base(corpus: &Path, version: &str) -> Option<PathBuf> {
    let scenario = corpus.join(recordings(version).first()?).join("s20_base");
    sessions_of(&scenario).into_iter().next()
}

/// All main sessions recorded for a version, by name.
pub fn sessions(corpus: &Path, version: &str) -> Vec<PathBuf> {
    let scenarios = recordings(version)
        .iter()
        .flat_map(|recorded| entries(&corpus.join(recorded)));
    scenarios
        .flat_map(|scenario| sessions_of(&scenario))
        .collect()
}

/// The longest session of a scenario, recorded in the era of a version.
pub fn longest(corpus: &Path, version: &str, scenario: &str) -> Option<PathBuf> {
    let recorded = recordings(version).first()?;
    let sessions = sessions_of(&corpus.join(recorded).join(scenario));
    let length = |file: &PathBuf| std::fs::metadata(file).map_or(0, |file| file.len());
    sessions.into_iter().max_by_key(length)
}

fn sessions_of(scenario: &Path) -> Vec<PathBuf> {
    let projects = entries(&scenario.join("projects"));
    let files = projects.iter().flat_map(|project| entries(project));
    files.filter(|file| is_session(file)).collect()
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let found = std::fs::read_dir(dir).into_iter().flatten();
    let mut paths: Vec<_> = found.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// A file of its own with at least one prompt or answer in it.
fn is_session(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let text = std::fs::read_to_string(file).unwrap_or_default();
    name.ends_with(".jsonl")
        && !name.starts_with("agent-")
        && (text.contains("\"type\":\"user\"") || text.contains("\"type\":\"assistant\""))
}

/// Reads a recording and gives each stored reminder a text of its own.
///
/// The recordings hold a stub for all of them; with a number in it one can
/// see which are sent again, and where.
pub fn load(file: &Path) -> std::io::Result<Transcript> {
    let mut transcript = Transcript::parse(&std::fs::read_to_string(file)?);
    for (number, value) in transcript.values_mut().enumerate() {
        let kind = value["attachment"]["type"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let Some(Value::Array(rendered)) = value.get_mut("rendered") else {
            continue;
        };
        for (part, item) in rendered.iter_mut().enumerate() {
            let text =
                format!("<system-reminder>\nstored {kind} {number}.{part}\n</system-reminder>");
            if item.get("content").is_some() {
                item["content"] = text.into();
            }
        }
    }
    Ok(transcript)
}
