//! Every count of the truth, and every usual mistake made on purpose.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::{files, generate, tree, usage, values};
use crate::tree::{Count, Options, Truth, Usage};

/// A line of the model, wherever it stands.
struct Line {
    file: usize,
    id: String,
    model: String,
    day: String,
    usage: Usage,
    web_searches: u64,
    is_floor: bool,
    has_request: bool,
    is_in_agent_file: bool,
    is_copy: bool,
}

fn lines(dir: &Path) -> Vec<Line> {
    let mut all = Vec::new();
    for (file, path) in files(dir).iter().enumerate() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for value in values(path) {
            let is_copy = value["data"]["type"] == "agent_progress";
            let inner = if is_copy {
                &value["data"]["message"]
            } else {
                &value
            };
            let message = &inner["message"];
            if inner["type"] != "assistant" || message["model"] == "<synthetic>" {
                continue;
            }
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let patch = value["version"].as_str().unwrap().strip_prefix("2.1.");
            let patch = patch.and_then(|patch| patch.parse::<u32>().ok());
            all.push(Line {
                file,
                id: text(&message["id"]),
                model: text(&message["model"]),
                day: text(&inner["timestamp"])[..10].to_owned(),
                usage: usage(inner),
                web_searches: message["usage"]["server_tool_use"]["web_search_requests"]
                    .as_u64()
                    .unwrap_or(0),
                is_floor: patch.is_some_and(|patch| (11..=58).contains(&patch)),
                has_request: inner.get("requestId").is_some(),
                is_in_agent_file: name.starts_with("agent-"),
                is_copy,
            });
        }
    }
    all
}

/// The largest numbers of the lines with the same key, summed.
fn once<K: Ord>(lines: &[&Line], key: impl Fn(&Line) -> K) -> Usage {
    let mut largest: BTreeMap<K, Usage> = BTreeMap::new();
    for line in lines {
        let entry = largest.entry(key(line)).or_default();
        *entry = entry.max(line.usage);
    }
    sum(largest.into_values())
}

fn sum(all: impl Iterator<Item = Usage>) -> Usage {
    let mut sum = Usage::default();
    all.for_each(|usage| sum += usage);
    sum
}

fn mistake(truth: &Truth, start: &str) -> Usage {
    let found = truth.mistakes.iter().find(|m| m.name.starts_with(start));
    found.unwrap_or_else(|| panic!("{start}")).usage
}

fn check_mistakes(dir: &Path, truth: &Truth) {
    let lines = lines(dir);
    let own: Vec<&Line> = lines.iter().filter(|line| !line.is_copy).collect();
    let id = |line: &Line| line.id.clone();
    assert_eq!(once(&own, id), truth.usage);

    let every = sum(own.iter().map(|line| line.usage));
    assert_eq!(every, mistake(truth, "every line is summed"));
    let with_copies = sum(lines.iter().map(|line| line.usage));
    assert_eq!(
        with_copies,
        mistake(truth, "every line is summed, agent_progress")
    );

    let mut seen = BTreeSet::new();
    let first = own.iter().filter(|line| seen.insert(&line.id));
    assert_eq!(
        sum(first.map(|line| line.usage)),
        mistake(truth, "the first line")
    );

    let main: Vec<&Line> = own
        .iter()
        .copied()
        .filter(|line| !line.is_in_agent_file)
        .collect();
    assert_eq!(once(&main, id), mistake(truth, "files of sub-agents"));
    assert_eq!(
        once(&own, |line| (line.file, line.id.clone())),
        mistake(truth, "messages are counted once per file")
    );

    let copied: BTreeSet<&String> = lines
        .iter()
        .filter(|line| line.is_copy)
        .map(|line| &line.id)
        .collect();
    let preferred: Vec<&Line> = lines
        .iter()
        .filter(|line| line.is_copy || !copied.contains(&line.id))
        .collect();
    assert_eq!(once(&preferred, id), mistake(truth, "agent_progress wins"));

    let named: Vec<&Line> = own
        .iter()
        .copied()
        .filter(|line| line.has_request)
        .collect();
    let mut bare = sum(own
        .iter()
        .filter(|line| !line.has_request)
        .map(|line| line.usage));
    bare += once(&named, id);
    assert_eq!(bare, mistake(truth, "messages without a request"));
}

fn check_counts(dir: &Path, truth: &Truth) {
    let lines = lines(dir);
    let mut messages: BTreeMap<&str, (&Line, Usage)> = BTreeMap::new();
    for line in lines.iter().filter(|line| !line.is_copy) {
        let entry = messages.entry(&line.id).or_insert((line, Usage::default()));
        entry.1 = entry.1.max(line.usage);
    }
    let mut days: BTreeMap<(String, String), Count> = BTreeMap::new();
    for (line, usage) in messages.values() {
        *days
            .entry((line.day.clone(), line.model.clone()))
            .or_default() += Count {
            messages: 1,
            usage: *usage,
            web_searches: line.web_searches,
            floor_messages: u64::from(line.is_floor),
        };
    }
    assert_eq!(days, truth.days);
    let total = |counts: &mut dyn Iterator<Item = &Count>| {
        let mut sum = Count::default();
        counts.for_each(|count| sum += *count);
        sum
    };
    let all = total(&mut truth.days.values());
    assert_eq!(all, total(&mut truth.models.values()));
    assert_eq!(all, total(&mut truth.projects.values()));
    let parts = truth
        .sessions
        .iter()
        .flat_map(|session| [&session.counted, &session.counted_agents]);
    assert_eq!(all, total(&mut parts.into_iter()));
    assert_eq!((all.messages, all.usage), (truth.messages, truth.usage));
}

#[test]
fn counts_and_mistakes_are_what_a_reading_finds_whatever_the_seed() {
    for seed in [1, 2, 3] {
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            seed,
            target_bytes: 2_000_000 * seed,
            sessions: 20 * seed as usize,
            ..Options::small()
        };
        let truth = generate(dir.path(), &options).unwrap();
        check_mistakes(dir.path(), &truth);
        check_counts(dir.path(), &truth);
        for mistake in &truth.mistakes {
            assert_ne!(mistake.usage, truth.usage, "{}", mistake.name);
        }
    }
}

#[test]
fn a_tree_has_all_that_makes_counting_hard() {
    let (dir, truth) = tree();
    let lines = lines(dir.path());
    let total = |pick: fn(&Count) -> u64| truth.days.values().map(pick).sum::<u64>();
    assert!(total(|count| count.web_searches) > 0);
    assert!(total(|count| count.floor_messages) > 0);
    assert!(total(|count| count.floor_messages) < truth.messages);
    assert!(total(|count| count.usage.cache_write_1h) > 0);
    assert!(lines.iter().any(|line| !line.has_request));
    // A clock that goes back, and one that is a year ahead.
    let skewed = truth.sessions.iter().filter(|session| {
        let lines = values(&dir.path().join(&session.path));
        let times: Vec<&str> = lines
            .iter()
            .filter_map(|line| line["timestamp"].as_str())
            .collect();
        let goes_back = times.windows(2).any(|pair| pair[1][..13] < pair[0][..13]);
        goes_back && times.iter().any(|time| time.starts_with("2027"))
    });
    assert!(skewed.count() > 0);
    // The same message under two session ids, and twice in one file.
    let name = |path: &std::path::PathBuf| path.to_string_lossy().contains("agent-acompact-");
    assert!(files(dir.path()).iter().any(name));
    let mut places: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for line in lines.iter().filter(|line| !line.is_in_agent_file) {
        places.entry(&line.id).or_default().insert(line.file);
    }
    assert!(places.values().any(|files| files.len() > 1));
}
