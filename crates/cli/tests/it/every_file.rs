//! Files that are no sessions, or hardly: which are listed, and what is said about them.

use serde_json::Value;
use unspool_testkit::home::Home;

use crate::{ID, home_with_session};

fn json(home: &Home, args: &[&str]) -> Vec<Value> {
    let mut all = args.to_vec();
    all.push("--json");
    let text = String::from_utf8(home.output(&all).stdout).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
    rows.collect()
}

fn file(home: &Home, last: &str, lines: &[&str]) {
    let path =
        format!(".claude/projects/-home-dev-x/5e551000-0000-4000-8000-00000000000{last}.jsonl");
    home.write(path, lines.join("\n") + "\n");
}

const CAVEAT: &str = r#"{"type":"user","uuid":"a","parentUuid":null,"isMeta":true,"sessionId":"s","message":{"role":"user","content":"Caveat: x"}}"#;

#[test]
fn files_in_which_nobody_typed_and_nobody_answered_are_listed_only_with_all() {
    let home = home_with_session();
    file(
        &home,
        "7",
        &[r#"{"type":"summary","summary":"A title","leafUuid":"elsewhere"}"#],
    );
    file(
        &home,
        "8",
        &[
            r#"{"type":"queue-operation","operation":"enqueue","content":"hi","timestamp":"2026-01-05T10:00:00.000Z","sessionId":"s"}"#,
        ],
    );
    file(
        &home,
        "9",
        &[r#"{"type":"custom-title","customTitle":"Mine","sessionId":"s"}"#],
    );
    file(&home, "a", &[CAVEAT]);
    file(&home, "b", &["not json"]);
    let listed = json(&home, &["ls"]);
    assert_eq!((listed.len(), &listed[0]["id"]), (1, &ID.into()));
    assert_eq!(json(&home, &["sql", "select id from sessions"]).len(), 1);
    let all = json(&home, &["ls", "--all"]);
    let why = |last: &str| {
        let row = all
            .iter()
            .find(|row| row["id"].as_str().unwrap().ends_with(last));
        row.unwrap_or_else(|| panic!("{last}"))["not_a_session"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert!(why("07").contains("summary") && why("08").contains("queue-operation"));
    assert!(why("09").contains("custom-title") && why("0a").contains("user"));
    assert!(why("0b").contains("unreadable"), "{}", why("0b"));
    assert_eq!(why("01"), "");
}

#[test]
fn a_text_that_was_spread_into_keys_is_one_line_of_drift() {
    let home = home_with_session();
    let spread: Vec<String> = (0..14_000).map(|n| format!(r#""{n}":"x""#)).collect();
    let line = format!(
        r#"{{"type":"user","uuid":"a","parentUuid":null,"sessionId":"s","version":"1.0.50","message":{{{}}}}}"#,
        spread.join(",")
    );
    file(&home, "7", &[&line]);
    let path = home
        .claude_dir()
        .join("projects/-home-dev-x/5e551000-0000-4000-8000-000000000007.jsonl");
    let told = home.run(&["info", path.to_str().unwrap()]);
    assert_eq!(told.matches("(unknown;").count(), 1, "{told}");
    let told = home.run(&["check", "--all"]);
    assert!(told.matches("(unknown;").count() <= 1, "{told}");
}

#[test]
fn every_session_is_checked_for_every_client_that_wrote_one() {
    let home = home_with_session();
    let says = |id: &str, version: &str| {
        format!(
            r#"{{"type":"user","uuid":"{id}","parentUuid":null,"sessionId":"s","version":"{version}","timestamp":"2026-01-01T10:00:00.000Z","message":{{"role":"user","content":"hi"}}}}"#
        )
    };
    file(&home, "1", &[&says("a", "2.1.45")]);
    file(&home, "2", &[&says("b", "2.1.150")]);
    let one = home.run(&["check", "5e551000-0000-4000-8000-000000000001", "--json"]);
    let row: serde_json::Value = serde_json::from_str(one.lines().last().unwrap()).unwrap();
    for version in ["2.0.50", "2.1.45", "2.1.150", "2.1.327"] {
        assert!(row["clients"][version].is_object(), "{version}: {row}");
    }
    let all = home.output(&["check", "--all"]);
    let all = String::from_utf8(all.stdout).unwrap();
    let told = all.lines().find(|line| line.contains("asked:")).unwrap();
    assert!(
        told.contains("2.1.45, ") && told.contains("2.1.150, "),
        "{told}"
    );
}
