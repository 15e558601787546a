//! What the older cloners test of themselves, asked of `clone` from outside. What they test of
//! single steps is asked of those steps; `docs/seeds.md` says where.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use unspool_testkit::home::{Home, slug};

use super::{ID, home, home_with_session};

const CWD: &str = "/home/dev/x";

fn folder(home: &Home) -> PathBuf {
    home.claude_dir().join("projects").join(slug(CWD))
}

fn cloned(home: &Home, args: &[&str]) -> Value {
    let mut all = vec!["clone", ID, "--json"];
    all.extend(args);
    let output = home.output(&all);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn copy_of(result: &Value) -> Vec<Value> {
    lines(Path::new(result["path"].as_str().unwrap()))
}

fn turns(home: &Home, session: &str) -> usize {
    let output = home.output(&["turns", session, "--json"]);
    String::from_utf8(output.stdout).unwrap().lines().count()
}

/// Four turns, each with thinking, a call and an answer; with notes of the work between them.
fn four() -> Home {
    let home = home();
    let notes = format!(
        concat!(
            r#"raw: {{"type":"queue-operation","operation":"enqueue","timestamp":"2026-01-03T10:00:00.000Z","sessionId":"{id}","content":"x"}}"#,
            "\n",
            r#"raw: {{"type":"file-history-snapshot","messageId":"m","snapshot":{{"messageId":"m","trackedFileBackups":{{}},"timestamp":"2026-01-03T10:00:00.000Z"}},"isSnapshotUpdate":false}}"#,
            "\n"
        ),
        id = ID
    );
    let turn = |n: u32| {
        format!(
            "you: ask {n}\nthink: about {n}\nclaude: look [Read {n}.rs]\nresult: Read {n}.rs ok\nclaude: done {n}\n"
        )
    };
    let script: String = (1..=4).map(turn).collect();
    home.session(CWD, ID, &(script + &notes));
    home
}

#[test]
fn a_clone_with_nothing_removed_keeps_all_turns_and_writes_a_block_of_lineage() {
    let home = four();
    home.write(".claude/clone-lineage.log", "");
    let result = cloned(&home, &[]);
    let new = result["session"].as_str().unwrap();
    assert_eq!((turns(&home, ID), turns(&home, new)), (4, 4));
    assert_eq!(result["calls"], json!({"removed": 0, "truncated": 0}));
    let log = fs::read_to_string(home.claude_dir().join("clone-lineage.log")).unwrap();
    assert!(log.contains(&format!("TARGET: {new}")), "{log}");
    assert!(log.contains(&format!("SOURCE: {ID}")), "{log}");
    assert!(
        log.ends_with("OPTIONS: toolRemoval=0% thinkingRemoval=0%\n---\n"),
        "{log}"
    );
}

#[test]
fn every_parent_of_a_clone_is_in_it() {
    let home = four();
    for args in [
        &["--strip-tools", "100", "--strip-thinking"][..],
        &["--strip-tools", "50", "--strip-thinking=75"],
        &["--strip-tools", "75", "--mode", "truncate"],
        &["--preset", "extreme", "--new-uuids"],
        &["--turns", "2..3", "--slim"],
    ] {
        let copy = copy_of(&cloned(&home, args));
        let ids: HashSet<&str> = copy
            .iter()
            .filter_map(|line| line["uuid"].as_str())
            .collect();
        let parents = copy.iter().filter_map(|line| line["parentUuid"].as_str());
        assert!(ids.len() > 4, "{args:?}");
        for parent in parents {
            assert!(ids.contains(parent), "{args:?}: {parent}");
        }
    }
}

#[test]
fn shares_of_tools_and_of_thinking_are_counted_each_for_itself() {
    let home = four();
    let result = cloned(&home, &["--strip-tools", "50", "--strip-thinking=75"]);
    assert_eq!(result["calls"]["removed"], 2);
    assert_eq!(result["thinking_removed"], 3);
}

#[test]
fn notes_of_the_work_survive_and_carry_the_new_id() {
    let home = four();
    let result = cloned(&home, &["--strip-tools", "100"]);
    let copy = copy_of(&result);
    let of = |kind: &str| copy.iter().find(|line| line["type"] == kind).unwrap();
    assert_eq!(of("queue-operation")["sessionId"], result["session"]);
    // Its line has no session of its own, and is not given one.
    assert!(of("file-history-snapshot").get("sessionId").is_none());
}

#[test]
fn the_first_line_of_a_clone_is_its_title_and_names_a_line_of_it() {
    let home = four();
    for args in [
        &[][..],
        &["--new-uuids"],
        &["--until", "2"],
        &["--title", "my own"],
    ] {
        let copy = copy_of(&cloned(&home, args));
        let title = if args.contains(&"--title") {
            "my own"
        } else {
            "Clone: ask 1"
        };
        assert_eq!(copy[0]["type"], "summary", "{args:?}");
        assert_eq!(copy[0]["summary"], title, "{args:?}");
        let last = copy.iter().rev().find_map(|line| line["uuid"].as_str());
        assert_eq!(copy[0]["leafUuid"].as_str(), last, "{args:?}");
    }
}

#[test]
fn ids_that_are_none_find_nothing_and_lead_nowhere() {
    let home = home_with_session();
    home.write("secret.jsonl", "{\"type\":\"user\"}\n");
    let before = fs::read_dir(folder(&home)).unwrap().count();
    for (id, code) in [
        ("not-a-uuid", 1),
        ("ffffffff-0000-4000-8000-000000000000", 1),
        ("../../../secret", 1),
        ("..", 1),
        ("", 1),
        ("../../../../secret.jsonl", 2),
        ("/no/such/file.jsonl", 2),
    ] {
        let output = home.output(&["clone", id]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{id}: {said}");
        assert!(
            said.contains("Error: ") && said.contains("Hint: "),
            "{id}: {said}"
        );
    }
    assert_eq!(fs::read_dir(folder(&home)).unwrap().count(), before);
}

#[test]
fn files_without_a_conversation_are_refused_by_name() {
    let home = home();
    let folder = format!(".claude/projects/{}", slug(CWD));
    let queue = format!(
        r#"{{"type":"queue-operation","operation":"enqueue","timestamp":"2026-01-03T10:00:00.000Z","sessionId":"{ID}","content":"x"}}"#
    );
    for text in [
        format!("{queue}\n"),
        "corrupt {\n".to_owned(),
        String::new(),
    ] {
        home.write(format!("{folder}/{ID}.jsonl"), &text);
        let output = home.output(&["clone", &format!("{folder}/{ID}.jsonl")]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}: {said}");
        assert!(said.contains(ID) && said.contains("Hint: "), "{said}");
        // One that is asked for by its id is no session at all.
        let output = home.output(&["clone", ID]);
        assert!(!output.status.success());
    }
}

#[test]
fn a_sub_agent_is_found_by_its_id_and_cloned_with_its_session() {
    let home = home_with_session();
    let output = home.output(&["clone", "a0000001"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("the session that the sub-agent belongs to"),
        "{said}"
    );
}

#[test]
fn an_option_never_swallows_the_next_one() {
    let home = home_with_session();
    for args in [
        &["--strip-tools", "--json"][..],
        &["--preset", "--json"],
        &["--compress", "--slim"],
    ] {
        let mut all = vec!["clone", ID];
        all.extend(args);
        let output = home.output(&all);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty());
    }
    // This one may stand alone.
    let result = cloned(&home, &["--strip-thinking", "--slim"]);
    assert_eq!(result["thinking_removed"], 1);
}

#[test]
fn a_preset_can_be_overridden() {
    let home = four();
    let result = cloned(&home, &["--preset", "extreme", "--keep-tools", "3"]);
    assert_eq!(result["calls"], json!({"removed": 1, "truncated": 0}));
    let args = [
        "--preset",
        "default",
        "--keep-tools",
        "4",
        "--truncate-tools",
        "100",
    ];
    let result = cloned(&home, &args);
    assert_eq!(result["calls"]["removed"], 0);
}

mod index {
    use super::*;

    fn index(home: &Home, entries: &Value) -> PathBuf {
        let path = format!(".claude/projects/{}/sessions-index.json", slug(CWD));
        let list = json!({"version": 1, "entries": entries, "originalPath": CWD, "new": [1]});
        home.write(path, list.to_string())
    }

    fn entries(path: &Path) -> Vec<Value> {
        let list: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        assert_eq!(list["new"], json!([1]), "what we do not know stays");
        list["entries"].as_array().unwrap().clone()
    }

    #[test]
    fn a_clone_is_put_on_the_list_of_its_project_as_the_client_does() {
        let home = four();
        let path = index(&home, &json!([]));
        let result = cloned(&home, &["--until", "2", "--title", "half"]);
        let entry = entries(&path).remove(0);
        assert_eq!(
            entry,
            json!({
                "sessionId": result["session"],
                "fullPath": result["path"],
                "fileMtime": 1_767_614_400_000_u64,
                "firstPrompt": "ask 1",
                "summary": "half",
                "messageCount": 12,
                "created": "2026-01-05T12:00:00.000Z",
                "modified": "2026-01-05T12:00:00.000Z",
                "projectPath": CWD,
                "isSidechain": false,
            })
        );
    }

    #[test]
    fn others_stay_on_the_list_and_what_the_source_had_is_kept() {
        let home = four();
        let other = json!({"sessionId": "other", "b": 1, "a": 2});
        let source = json!({"sessionId": ID, "gitBranch": "main", "firstPrompt": "old"});
        let path = index(&home, &json!([other, source]));
        let before = fs::read(&path).unwrap();
        let result = cloned(&home, &[]);
        let after = entries(&path);
        assert_eq!(after[..2], [other, source]);
        assert_eq!(after[2]["sessionId"], result["session"]);
        assert_eq!(after[2]["gitBranch"], "main");
        assert_eq!(after[2]["firstPrompt"], "ask 1");
        home.run(&["undo"]);
        assert_eq!(fs::read(&path).unwrap(), before, "undo is the backup");
    }

    #[test]
    fn a_clone_in_another_project_is_on_that_list_alone() {
        let home = four();
        let path = index(&home, &json!([{"sessionId": ID, "projectPath": CWD}]));
        let before = fs::read(&path).unwrap();
        let there = home.path().join("there");
        fs::create_dir(&there).unwrap();
        let real = fs::canonicalize(&there).unwrap().display().to_string();
        let list = json!({"version": 1, "entries": [], "originalPath": real, "new": [1]});
        let other = format!(".claude/projects/{}/sessions-index.json", slug(&real));
        let other = home.write(other, list.to_string());
        cloned(&home, &["--cwd", &real]);
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(entries(&other)[0]["projectPath"], real.as_str());
    }

    #[test]
    fn nothing_that_was_redacted_stands_on_the_list() {
        let home = home();
        let token = format!("ghp{}{}", "_0aZ9bY8cX7dW6eV5", "fU4gT3hS2iR1jQ0kP9lO8");
        home.session(CWD, ID, &format!("you: push {token}\nclaude: done"));
        let path = index(&home, &json!([]));
        cloned(&home, &["--redact"]);
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            !text.contains(&token) && text.contains("[REDACTED:"),
            "{text}"
        );
    }

    #[test]
    fn no_list_is_made_where_the_client_keeps_none() {
        let home = four();
        cloned(&home, &[]);
        assert!(!folder(&home).join("sessions-index.json").exists());
    }
}
