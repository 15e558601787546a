//! `move`: everything about a directory's sessions is where the directory is now.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use unspool_store::journal::{Journal, UndoOptions};
use unspool_testkit::home::{Home, slug};

use crate::home;

const ONE: &str = "5e551000-0000-4000-8000-000000000001";
const TWO: &str = "5e551000-0000-4000-8000-000000000002";
const OTHER: &str = "5e551000-0000-4000-8000-00000000000f";

/// Every file below a folder, but for our own.
fn tree(folder: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                all.insert(name, fs::read_to_string(path).unwrap());
            }
        }
    }
    all
}

/// Two sessions of one directory, one below it with a sub-agent, and one elsewhere.
fn machine() -> Home {
    let home = home();
    home.session(
        "/w/old",
        ONE,
        "you: look in /w/old\nclaude: on it [Read /w/old/a.rs]\nresult: Read /w/old/a.rs ok\n(cwd=/w/old/src) you: more\nclaude: done",
    );
    home.session("/w/old/lib", TWO, "you: b\nclaude: c");
    home.agent("/w/old/lib", TWO, "a1234567", "agent: do\nclaude: did");
    home.session("/w/older", OTHER, "you: x\nclaude: y");
    let folder = format!(".claude/projects/{}", slug("/w/old"));
    home.write(format!("{folder}/{ONE}/tool-results/t1.txt"), "long");
    // A sub-agent as clients before 2.1.29 keep it.
    let agent = |session: &str| {
        let script =
            format!("(cwd=/w/old, session={session}, agent=abcd1234)\nagent: do\nclaude: did");
        unspool_testkit::script::jsonl(&script)
    };
    home.write(format!("{folder}/agent-abcd1234.jsonl"), agent(ONE));
    home.write(format!("{folder}/memory/MEMORY.md"), "remember");
    home.write(format!(".claude/file-history/{ONE}/x@v1"), "backup");
    let list = serde_json::json!({"version": 1, "entries": [
        {"sessionId": ONE, "fullPath": "x", "projectPath": "/w/old", "summary": "s"},
        {"sessionId": "gone", "fullPath": "x", "projectPath": "/w/old"},
    ], "originalPath": "/w/old"});
    home.write(format!("{folder}/sessions-index.json"), list.to_string());
    home.write(
        ".claude/history.jsonl",
        concat!(
            r#"{"display":"one","timestamp":1,"project":"/w/old","sessionId":"s"}"#,
            "\nnot JSON\n",
            r#"{"display":"two","n":1e3,"project":"/w/older"}"#,
            "\n",
            r#"{"display":"/w/old","project":"/w/old/lib"}"#,
            "\n"
        ),
    );
    home
}

fn rows(home: &Home, args: &[&str]) -> Vec<Value> {
    let output = home.output(args);
    let text = String::from_utf8(output.stdout).unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
    let row = |line: &str| serde_json::from_str(line).unwrap();
    text.lines().map(row).collect()
}

#[test]
fn sessions_and_all_that_belongs_to_them_move() {
    let home = machine();
    let before = tree(&home.claude_dir());
    let rows = rows(&home, &["move", "/w/old", "/n/new", "--json"]);
    let short: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row["session"].as_str().unwrap(),
                row["from"].as_str().unwrap(),
                row["to"].as_str().unwrap(),
                row["lines"]["changed"].as_u64().unwrap(),
                row["side_files"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        short,
        [
            (ONE, "/w/old", "/n/new", 8, 2),
            (TWO, "/w/old/lib", "/n/new/lib", 4, 2)
        ]
    );
    let after = tree(&home.claude_dir());
    let mut expected: Vec<String> = before
        .keys()
        .map(|name| {
            let old = format!("projects/{}", slug("/w/old"));
            match name.strip_prefix(&old) {
                Some(rest) if !rest.starts_with("er") => format!("projects/-n-new{rest}"),
                _ => name.clone(),
            }
        })
        .collect();
    expected.sort();
    assert_eq!(after.keys().cloned().collect::<Vec<_>>(), expected);
    for (name, text) in &after {
        let old = name.replace("projects/-n-new", "projects/-w-old");
        let old = before.get(&old).unwrap_or_else(|| &before[name]);
        if name.ends_with(".jsonl") && name.contains("-n-new") {
            // Nothing but the directory differs: neither texts nor calls.
            let cwd = old.replace("\"cwd\":\"/w/old", "\"cwd\":\"/n/new");
            assert_eq!(*text, cwd, "{name}");
            assert_ne!(text, old, "{name}");
        } else if !name.ends_with("sessions-index.json") && name != "history.jsonl" {
            assert_eq!(text, old, "{name}");
        }
    }
    let old = before["history.jsonl"].replace("\"project\":\"/w/old\"", "\"project\":\"/n/new\"");
    let old = old.replace("\"project\":\"/w/old/lib\"", "\"project\":\"/n/new/lib\"");
    assert_eq!(after["history.jsonl"], old);
    let list: Value = serde_json::from_str(&after["projects/-n-new/sessions-index.json"]).unwrap();
    assert_eq!(list["originalPath"], "/n/new");
    assert_eq!(list["entries"][0]["projectPath"], "/n/new");
    assert_eq!(list["entries"][0]["summary"], "s");
    let path = list["entries"][0]["fullPath"].as_str().unwrap();
    assert!(Path::new(path).is_file(), "{path}");
    assert_eq!(list["entries"][1]["sessionId"], "gone");
    assert!(!home.claude_dir().join("projects/-w-old").exists());
    assert!(!home.claude_dir().join("projects/-w-old-lib").exists());
}

#[test]
fn undoing_brings_every_byte_back() {
    let home = machine();
    let before = tree(&home.claude_dir());
    let rows = rows(&home, &["move", "/w/old", "/n/new", "--json"]);
    let number = rows[0]["undo"].as_u64().unwrap();
    assert_ne!(tree(&home.claude_dir()), before);
    let journal = Journal::open(&home.unspool_dir().join("undo"));
    let how = UndoOptions {
        at: 0,
        force: false,
        in_use: &|_| None,
    };
    journal.undo(Some(number), &how).unwrap();
    assert_eq!(tree(&home.claude_dir()), before);
}

#[test]
fn the_same_sessions_are_listed_in_their_new_directory() {
    let home = machine();
    home.run(&["move", "/w/old", "/n/new"]);
    let all = rows(&home, &["ls", "--all", "--json"]);
    let at = |id: &str| {
        let row = all.iter().find(|row| row["id"] == id).unwrap();
        (row["cwd"].clone(), row["agents"].clone())
    };
    assert_eq!(at(ONE).0, "/n/new");
    assert_eq!(at(TWO), ("/n/new/lib".into(), 1.into()));
    assert_eq!(at(OTHER).0, "/w/older");
}

#[test]
fn a_dry_run_writes_nothing_and_says_the_same() {
    let home = machine();
    let before = tree(home.path());
    let mut dry = rows(&home, &["move", "/w/old", "/n/new", "--json", "--dry-run"]);
    assert_eq!(tree(home.path()), before);
    let mut done = rows(&home, &["move", "/w/old", "/n/new", "--json"]);
    for row in dry.iter_mut().chain(&mut done) {
        let row = row.as_object_mut().unwrap();
        row.remove("dry_run");
        row.remove("undo");
    }
    assert_eq!(dry, done);
}

#[test]
fn a_person_reads_a_table() {
    let home = machine();
    let said = home.run(&["move", "/w/old", "/n/new", "--dry-run"]);
    expect_test::expect![[r#"
        session   from        to          lines  files
        5e551000  /w/old      /n/new          8      2
        5e551000  /w/old/lib  /n/new/lib      4      2
        --- stderr
        would move 2 sessions; dry run: nothing was written
    "#]]
    .assert_eq(&said);
}

#[test]
fn nothing_to_move_is_said_and_nothing_is_overwritten() {
    let home = machine();
    let output = home.output(&["move", "/nowhere", "/n/new"]);
    assert_eq!(output.status.code(), Some(1));
    let same = home.output(&["move", "/w/old", "/w/old/"]);
    assert_eq!(same.status.code(), Some(2));
    let there = home.session("/n/new/lib", TWO, "you: mine");
    let before = tree(&home.claude_dir());
    let output = home.output(&["move", "/w/old", "/n/new"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains(&there.display().to_string()), "{error}");
    assert_eq!(tree(&home.claude_dir()), before);
}

#[test]
fn a_session_in_use_is_not_moved_nor_is_any_other() {
    let mut home = machine();
    home.set("UNSPOOL_NOW", "");
    // Written to a moment ago.
    let before = tree(&home.claude_dir());
    let output = home.output(&["move", "/w/old", "/n/new"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("is in use"), "{error}");
    assert_eq!(tree(&home.claude_dir()), before);
}

#[cfg(unix)]
#[test]
fn directories_are_known_by_their_real_paths() {
    let home = home();
    let base = fs::canonicalize(home.path()).unwrap();
    fs::create_dir_all(base.join("real/old")).unwrap();
    std::os::unix::fs::symlink(base.join("real"), base.join("link")).unwrap();
    let old = base.join("real/old").display().to_string();
    home.session(&old, ONE, "you: a\nclaude: b");
    let link = |name: &str| base.join("link").join(name).display().to_string();
    let rows = rows(&home, &["move", &link("old"), &link("new"), "--json"]);
    let new = base.join("real/new").display().to_string();
    assert_eq!(rows[0]["to"], new);
    let file = format!("projects/{}/{ONE}.jsonl", slug(&new));
    assert!(home.claude_dir().join(file).is_file());
}

#[test]
fn only_what_is_alone_in_its_folder_moves_with_the_folder() {
    let home = machine();
    // Another directory whose folder has the same name.
    home.transcript(
        "/w/old",
        OTHER,
        unspool_testkit::script::jsonl("(cwd=/w-old)\nyou: q\nclaude: r"),
    );
    home.run(&["move", "/w/old", "/n/new"]);
    let projects = home.claude_dir().join("projects");
    assert!(projects.join(format!("-w-old/{OTHER}.jsonl")).is_file());
    assert!(projects.join("-w-old/memory/MEMORY.md").is_file());
    assert!(projects.join(format!("-n-new/{ONE}.jsonl")).is_file());
    let list = |folder: &str| {
        let text = fs::read_to_string(projects.join(folder).join("sessions-index.json")).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        value["entries"].as_array().unwrap().len()
    };
    assert_eq!((list("-w-old"), list("-n-new")), (1, 1));
}
