//! A dry run says what the real one then says, of every command that changes something, and
//! leaves every file as it was.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use unspool_testkit::home::{Home, slug};

use super::{ID, home_with_session};

const CWD: &str = "/home/dev/x";
const OTHER: &str = "5e551000-0000-4000-8000-000000000002";

/// A token as GitHub makes them, put together here so that nobody finds one in this file.
fn token() -> String {
    format!("ghp{}{}", "_0aZ9bY8cX7dW6eV5", "fU4gT3hS2iR1jQ0kP9lO8")
}

/// A machine with two sessions that nobody works on, with secrets and files beside them.
fn machine() -> Home {
    let home = home_with_session();
    let token = token();
    home.session(
        CWD,
        OTHER,
        &format!("(at=2026-02-01T10:00:00.000Z) you: and {token}\nclaude: done with {token}"),
    );
    let beside = format!(".claude/projects/{}/{OTHER}", slug(CWD));
    home.write(
        format!("{beside}/tool-results/toolu_1.txt"),
        format!("{token}\n"),
    );
    home.write(format!("{beside}/subagents/agent-a0000002.meta.json"), "{}");
    home.write(format!(".claude/file-history/{OTHER}/abc@v1"), &token);
    home.write(format!(".claude/todos/{OTHER}-agent-{OTHER}.json"), "[]");
    home.write(format!(".claude/session-env/{ID}/env"), "A=1");
    let index = format!(".claude/projects/{}/sessions-index.json", slug(CWD));
    home.write(
        index,
        format!(r#"{{"version":1,"entries":[{{"sessionId":"{ID}","summary":"old"}}]}}"#),
    );
    home.agent(
        CWD,
        OTHER,
        "a0000002",
        &format!("you: {token}\nclaude: found"),
    );
    for id in [ID, OTHER] {
        rest(&path(&home, id));
    }
    home
}

fn path(home: &Home, id: &str) -> PathBuf {
    let folder = home.claude_dir().join("projects").join(slug(CWD));
    folder.join(format!("{id}.jsonl"))
}

/// Makes a file old enough that nobody works on it.
fn rest(path: &Path) {
    let file = fs::File::options().append(true).open(path).unwrap();
    let hour = std::time::Duration::from_secs(3600);
    file.set_modified(std::time::SystemTime::now() - hour)
        .unwrap();
}

fn break_it(home: &Home) {
    let file = path(home, ID);
    let text = fs::read_to_string(&file).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.insert(2, "null");
    let text = lines.join("\n");
    fs::write(&file, &text[..text.len() - 30]).unwrap();
    rest(&file);
}

fn tree(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => all.extend(tree(&path)),
            false => drop(all.insert(path.clone(), fs::read(&path).unwrap())),
        }
    }
    all
}

fn rows(home: &Home, args: &[&str]) -> Vec<Value> {
    let output = home.output(args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// What is the same for both: new ids are chosen anew each time, only what was done has a number,
/// and the first redaction makes the key of all placeholders, which a dry run does not.
fn comparable(mut row: Value) -> Value {
    let session = row["session"].as_str().unwrap_or_default().to_owned();
    let fields = row.as_object_mut().unwrap();
    for name in ["dry_run", "undo", "n"] {
        fields.remove(name);
    }
    if [ID, OTHER].contains(&session.as_str()) {
        return row;
    }
    let text = row.to_string().replace(&session, "NEW");
    let mut parts = text.split("[REDACTED:");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (placeholder, rest) = part.split_once(']').unwrap();
        let (rule, hash) = placeholder.split_once(':').unwrap();
        assert_eq!(hash.len(), 6, "{placeholder}");
        text.push_str(&format!("[REDACTED:{rule}]{rest}"));
    }
    serde_json::from_str(&text).unwrap()
}

/// Runs a command dry and then for real, and compares what both say; what the real one said.
fn both(home: &Home, args: &[&str]) -> Vec<Value> {
    let before = tree(home.path());
    let mut dry_args = args.to_vec();
    dry_args.extend(["--json", "--dry-run"]);
    let dry = rows(home, &dry_args);
    assert_eq!(tree(home.path()), before, "{args:?} wrote something");
    let mut wet_args = args.to_vec();
    wet_args.push("--json");
    let wet = rows(home, &wet_args);
    assert_ne!(tree(home.path()), before, "{args:?} wrote nothing");
    assert!(!wet.is_empty(), "{args:?}");
    for row in &dry {
        assert_eq!(row["dry_run"], true, "{args:?}");
    }
    for row in &wet {
        assert_ne!(row["dry_run"], true, "{args:?}");
    }
    let comparable = |rows: &[Value]| rows.iter().cloned().map(comparable).collect::<Vec<_>>();
    assert_eq!(comparable(&dry), comparable(&wet), "{args:?}");
    wet
}

#[test]
fn of_clone() {
    let home = machine();
    both(&home, &["clone", ID]);
    both(&home, &["clone", ID, "--preset", "extreme", "--new-uuids"]);
    both(&home, &["clone", ID, "--until", "1", "--slim"]);
    both(&home, &["clone", OTHER, "--redact"]);
    both(
        &home,
        &[
            "clone",
            ID,
            "--summary",
            "2",
            "--summary-text",
            "it was fixed",
        ],
    );
}

#[test]
fn of_repair() {
    let home = machine();
    break_it(&home);
    let copy = both(&home, &["repair", ID]).remove(0);
    assert_ne!(copy["session"], ID, "a copy is another session");
    assert_eq!(copy["source"], ID);
    let text = fs::read(copy["path"].as_str().unwrap()).unwrap();
    assert_eq!(copy["bytes"]["after"], text.len());
    let same = both(&home, &["repair", ID, "--in-place"]).remove(0);
    assert_eq!(
        (&same["session"], &same["source"]),
        (&ID.into(), &ID.into())
    );
    let text = fs::read(path(&home, ID)).unwrap();
    assert_eq!(same["bytes"]["after"], text.len());
}

/// What was looked at in the transcript.
fn proved(row: &Value) -> Vec<&Value> {
    let checks = row["checks"].as_array().unwrap().iter();
    checks.filter(|check| check["name"] != "secrets").collect()
}

#[test]
fn of_redact() {
    let home = machine();
    let copy = both(&home, &["redact", OTHER]).remove(0);
    let done = both(&home, &["redact", OTHER, "--in-place"]).remove(0);
    assert_eq!(done["side_files"], 3);
    assert_eq!(
        proved(&done),
        proved(&copy),
        "in place it is proved as a copy is"
    );
    assert!(proved(&done).len() > 5);
    let home = machine();
    both(&home, &["redact", "--all", "--in-place"]);
}

#[test]
fn of_merge() {
    let home = machine();
    let done = both(&home, &["merge", ID, OTHER]).remove(0);
    assert!(done["side_files"].as_u64().unwrap() > 3);
}

#[test]
fn of_move() {
    let home = machine();
    both(&home, &["move", CWD, "/home/dev/y"]);
}

#[test]
fn of_rename() {
    let home = machine();
    both(&home, &["rename", ID, "another"]);
}

#[test]
fn of_tag() {
    let home = machine();
    both(&home, &["tag", ID, "seen"]);
    both(&home, &["tag", ID, "--remove"]);
}

#[test]
fn of_delete() {
    let home = machine();
    let gone = both(&home, &["delete", OTHER]).remove(0);
    assert!(gone["files"].as_array().unwrap().len() > 4, "{gone}");
    both(&home, &["delete", "--empty"]);
}

#[test]
fn of_archive() {
    let home = machine();
    both(&home, &["archive", ID]);
    both(&home, &["archive", "--all", "--remove"]);
    both(&home, &["archive", "--restore", ID]);
}
