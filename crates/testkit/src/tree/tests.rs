//! The truth of a tree, against a slow and simple reading of its files.

mod counts;
mod needles;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::*;

/// Every transcript below a folder.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path
            .extension()
            .is_some_and(|extension| extension == "jsonl")
        {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn values(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let finished = text.rfind('\n').map_or("", |end| &text[..end]);
    finished
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn usage(line: &Value) -> Usage {
    let usage = &line["message"]["usage"];
    let get = |name: &str| usage[name].as_u64().unwrap_or(0);
    let split = |name: &str| usage["cache_creation"][name].as_u64();
    let hour = split("ephemeral_1h_input_tokens").unwrap_or(0);
    Usage {
        input: get("input_tokens"),
        output: get("output_tokens"),
        cache_read: get("cache_read_input_tokens"),
        // Without a split everything is written for five minutes.
        cache_write_5m: get("cache_creation_input_tokens") - hour,
        cache_write_1h: hour,
    }
}

/// The usage of messages, each once with the largest numbers.
fn total(lines: &[Value]) -> (u64, Usage) {
    let mut messages: BTreeMap<String, Usage> = BTreeMap::new();
    for line in lines {
        let message = &line["message"];
        if line["type"] != "assistant" || message["model"] == "<synthetic>" {
            continue;
        }
        let entry = messages
            .entry(message["id"].as_str().unwrap().to_owned())
            .or_default();
        *entry = entry.max(usage(line));
    }
    let mut sum = Usage::default();
    messages.values().for_each(|usage| sum += *usage);
    (messages.len() as u64, sum)
}

fn tool_blocks(lines: &[Value], kind: &str) -> u64 {
    let blocks = lines
        .iter()
        .filter_map(|line| line["message"]["content"].as_array())
        .flatten();
    blocks.filter(|block| block["type"] == kind).count() as u64
}

fn tree() -> (tempfile::TempDir, Truth) {
    let dir = tempfile::tempdir().unwrap();
    let truth = generate(dir.path(), &Options::small()).unwrap();
    (dir, truth)
}

#[test]
fn the_truth_of_the_whole_tree_is_what_a_reading_finds() {
    let (dir, truth) = tree();
    let files = files(dir.path());
    assert_eq!(
        files.len() as u64,
        truth.sessions.len() as u64 + truth.agent_files + truth.junk_files
    );
    assert_eq!(
        files
            .iter()
            .map(|path| fs::metadata(path).unwrap().len())
            .sum::<u64>(),
        truth.bytes
    );
    let lines: Vec<Value> = files.iter().flat_map(|path| values(path)).collect();
    assert_eq!(total(&lines), (truth.messages, truth.usage));
    assert!(
        (3_500_000..7_000_000).contains(&truth.bytes),
        "{}",
        truth.bytes
    );
}

#[test]
fn the_truth_of_each_session_is_what_a_reading_finds() {
    let (dir, truth) = tree();
    for session in &truth.sessions {
        let all = values(&dir.path().join(&session.path));
        assert_eq!(all.len() as u64, session.lines);
        let main: Vec<Value> = all
            .iter()
            .filter(|line| line["isSidechain"] != true)
            .cloned()
            .collect();
        assert_eq!(
            total(&main),
            (session.messages, session.usage),
            "{}",
            session.path
        );
        assert_eq!(tool_blocks(&main, "tool_use"), session.calls);
        assert_eq!(tool_blocks(&main, "tool_result"), session.results);
        let boundaries = main
            .iter()
            .filter(|line| line["subtype"] == "compact_boundary")
            .count();
        assert_eq!(boundaries as u64, session.compactions);
        let prompts: Vec<&Value> = main
            .iter()
            .filter(|line| line.get("permissionMode").is_some())
            .collect();
        assert_eq!(prompts[0]["message"]["content"], session.first_prompt);
        let acts = main.iter().filter(|line| {
            let text = line["message"]["content"].as_str().unwrap_or_default();
            line.get("permissionMode").is_some()
                || text.starts_with("<command-name>")
                || text.starts_with("<bash-input>")
        });
        assert_eq!(acts.count() as u64, session.turns);
    }
}

#[test]
fn every_parent_stands_before_its_child_and_ids_belong_to_the_file() {
    let (dir, truth) = tree();
    for session in &truth.sessions {
        let mut seen = BTreeSet::new();
        for line in values(&dir.path().join(&session.path)) {
            assert!(
                line["sessionId"].as_str().is_none_or(|id| id == session.id),
                "{line}"
            );
            assert!(
                line["parentUuid"]
                    .as_str()
                    .is_none_or(|parent| seen.contains(parent)),
                "{line}"
            );
            if let Some(uuid) = line["uuid"].as_str() {
                assert!(seen.insert(uuid.to_owned()));
            }
        }
    }
}

#[test]
fn a_small_tree_has_one_of_everything() {
    let (dir, truth) = tree();
    let count = |test: fn(&SessionTruth) -> bool| {
        truth
            .sessions
            .iter()
            .filter(|session| test(session))
            .count()
    };
    assert!(count(|s| s.torn == 1) > 0 && count(|s| s.compactions > 0) > 0);
    assert!(count(|s| s.resumed_from.is_some()) > 0 && count(|s| s.live_turns < s.turns) > 0);
    assert!(count(|s| s.title.is_some()) > 0 && count(|s| s.title.is_none()) > 0);
    for version in ["2.1", "2.0", "1.0"] {
        assert!(
            truth
                .sessions
                .iter()
                .any(|s| s.version.starts_with(version) && s.agents > 0),
            "{version}"
        );
    }
    assert!(truth.junk_files > 0);
    let is_side = |path: &PathBuf| {
        path.parent()
            .is_some_and(|folder| folder.ends_with("subagents"))
    };
    assert!(files(dir.path()).iter().any(is_side));
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let ((a, truth), (b, again)) = (tree(), tree());
    assert_eq!(truth, again);
    for (left, right) in files(a.path()).iter().zip(files(b.path())) {
        assert_eq!(fs::read(left).unwrap(), fs::read(right).unwrap());
    }
}

#[test]
fn a_single_session_is_compacted_near_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let truth = generate(dir.path(), &Options::single(2_000_000)).unwrap();
    assert_eq!((truth.sessions.len(), truth.agent_files), (1, 0));
    let text = fs::read_to_string(dir.path().join(&truth.sessions[0].path)).unwrap();
    let boundary = text.rfind("compact_boundary").unwrap();
    let after = text.len() - boundary;
    assert!((10_000..250_000).contains(&after), "{after}");
    assert!(text[boundary..].matches("permissionMode").count() > 1);
}
