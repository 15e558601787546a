//! `search` against the needles of generated trees: each at its file and line, and
//! nothing that is not there.

use serde_json::Value;
use unspool_testkit::home::Home;
use unspool_testkit::tree::{Needle, Truth};

use crate::counting::{machine, rows};

/// What a hit must say for `--in` to find it; other places have names of their own.
const PLACES: &[&str] = &["prompt", "reply", "thinking", "tool", "result"];

fn check_needle(home: &Home, needle: &Needle) {
    let hits = rows(home, &["search", &needle.text]);
    let kind = needle.kind;
    let hit = match &hits[..] {
        [hit] => hit,
        _ => panic!("{kind}: {} hits: {hits:?}", hits.len()),
    };
    let path = home.claude_dir().join(&needle.path);
    assert_eq!(
        hit["path"],
        path.to_string_lossy().as_ref(),
        "{kind}: {hit}"
    );
    assert_eq!(hit["line"], needle.line, "{kind}: {hit}");
    assert_eq!(hit["session"], needle.session.as_str(), "{kind}: {hit}");
    assert_eq!(
        hit["uuid"].as_str(),
        needle.uuid.as_deref(),
        "{kind}: {hit}"
    );
    let place = hit["where"].as_str();
    if PLACES.contains(&needle.place) {
        assert_eq!(place, Some(needle.place), "{kind}: {hit}");
    } else {
        assert!(place.is_some(), "{kind}: {hit}");
    }
    let snippet = hit["snippet"].as_str().unwrap_or_default();
    let first = needle.text.split(['\n', '"', '\\']).next().unwrap();
    assert!(snippet.contains(first), "{kind}: {hit}");
}

fn check_absent(home: &Home, truth: &Truth) {
    let id = &truth.sessions[0].id;
    // Whatever stands in the files but is no text of theirs: keys, punctuation, escapes.
    let absent = [
        "zzyzxnotthere",
        "marigoldspindle4418",
        "\"stop_reason\":null",
        "normalizedMessages",
        "\\u001b[31m",
        &format!("\"sessionId\":\"{id}\""),
        "外星人的望远镜",
    ];
    for text in absent {
        let output = home.output(&["search", text, "--json"]);
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}: {stdout}{stderr}");
        assert!(output.stdout.is_empty(), "{text}: {stdout}");
    }
}

#[test]
fn every_needle_is_found_at_its_file_and_line_and_nothing_else_is() {
    for (seed, sessions, bytes) in [(31, 8, 300_000), (32, 15, 800_000), (33, 25, 1_500_000)] {
        let (home, truth) = machine(seed, sessions, bytes);
        assert_eq!(truth.needles.len(), 19);
        for needle in &truth.needles {
            check_needle(&home, needle);
        }
        check_absent(&home, &truth);
    }
}

#[test]
fn a_hit_opens_with_show() {
    let (home, truth) = machine(34, 8, 300_000);
    let reply = truth.needles.iter().find(|needle| needle.kind == "reply");
    let needle = reply.unwrap();
    let hits = rows(&home, &["search", &needle.text]);
    let session = hits[0]["session"].as_str().unwrap();
    let shown = rows(&home, &["show", session]);
    let is_it = |row: &&Value| row["uuid"].as_str() == needle.uuid.as_deref();
    let row = shown.iter().find(is_it).unwrap();
    assert!(row["text"].as_str().unwrap().contains(&needle.text));
}
