//! Glob and Grep.

use std::fs::File;
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::host::{Session, text};

fn tree() -> Session {
    let session = Session::new();
    let files = [
        ("README.md", "# Demo\n\nalpha line\nbeta line\n"),
        ("src/main.py", "def main():\n    print('alpha')\n"),
        (
            "src/deep/b.rs",
            "fn alpha() {}\nfn Alpha() {}\nlet x = alpha + alpha;\n",
        ),
        (".hidden/c.txt", "alpha\n"),
        (".git/config", "alpha\n"),
        (".gitignore", "ignored.txt\n"),
        ("ignored.txt", "alpha\n"),
    ];
    let now = SystemTime::now();
    for (at, (name, content)) in files.iter().enumerate() {
        let path = session.write(name, content);
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(now - Duration::from_secs(1000 - 10 * at as u64))
            .unwrap();
    }
    session
}

#[test]
fn files_are_found_by_their_names_oldest_first() {
    let session = tree();
    let outcome = session.call("Glob", json!({"pattern": "**/*.{md,rs,py}"}));
    assert_eq!(text(&outcome), "README.md\nsrc/main.py\nsrc/deep/b.rs");
    assert_eq!(outcome.result["numFiles"], 3);
    assert_eq!(outcome.result["totalMatches"], 3);
    assert_eq!(outcome.result["countIsComplete"], true);
    let keys: Vec<&String> = outcome.result.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "filenames",
            "durationMs",
            "numFiles",
            "truncated",
            "totalMatches",
            "countIsComplete"
        ]
    );
    let outcome = session.call("Glob", json!({"pattern": "*.txt"}));
    assert_eq!(text(&outcome), ".hidden/c.txt\nignored.txt");
    let outcome = session.call("Glob", json!({"pattern": "*.rs", "path": "src"}));
    assert_eq!(text(&outcome), "src/deep/b.rs");
    let absolute = session.path("src/*.py");
    assert_eq!(
        text(&session.call("Glob", json!({"pattern": absolute}))),
        "src/main.py"
    );
    assert_eq!(
        text(&session.call("Glob", json!({"pattern": "*.nope"}))),
        "No files found"
    );
    let outcome = session.call("Glob", json!({"pattern": "*", "path": "nowhere"}));
    assert!(text(&outcome).contains("Directory does not exist"));
}

#[test]
fn a_hundred_files_are_listed_and_the_rest_counted() {
    let session = Session::new();
    for at in 0..130 {
        session.write(&format!("f{at:03}"), "");
    }
    let outcome = session.call("Glob", json!({"pattern": "f*"}));
    assert_eq!(outcome.result["numFiles"], 100);
    assert_eq!(outcome.result["totalMatches"], 130);
    assert_eq!(outcome.result["truncated"], true);
    assert!(text(&outcome).contains("Results are truncated"));
}

fn grep(session: &Session, more: serde_json::Value) -> String {
    let mut input = json!({"pattern": "alpha"});
    for (key, value) in more.as_object().unwrap() {
        input[key] = value.clone();
    }
    text(&session.call("Grep", input)).to_owned()
}

#[test]
fn files_with_matches_are_listed_newest_first_and_without_what_git_ignores() {
    let session = tree();
    assert_eq!(
        grep(&session, json!({})),
        "Found 4 files\n.hidden/c.txt\nsrc/deep/b.rs\nsrc/main.py\nREADME.md"
    );
    assert_eq!(
        grep(&session, json!({"glob": "*.md"})),
        "Found 1 file\nREADME.md"
    );
    assert_eq!(
        grep(&session, json!({"type": "rust"})),
        "Found 1 file\nsrc/deep/b.rs"
    );
    assert_eq!(grep(&session, json!({"pattern": "zzz"})), "No files found");
    assert_eq!(
        grep(&session, json!({"head_limit": 1, "offset": 1})),
        "Found 4 files (showing 1, from offset 1)\nsrc/deep/b.rs"
    );
    let outcome = session.call("Grep", json!({"pattern": "alpha", "glob": "*.md"}));
    assert_eq!(
        outcome.result,
        json!({"mode": "files_with_matches", "filenames": ["README.md"], "numFiles": 1, "totalFiles": 1})
    );
}

#[test]
fn lines_are_given_as_ripgrep_writes_them() {
    let session = tree();
    let content = |more: serde_json::Value| {
        let mut input = json!({"output_mode": "content", "path": "src"});
        for (key, value) in more.as_object().unwrap() {
            input[key] = value.clone();
        }
        grep(&session, input)
    };
    assert_eq!(
        content(json!({})),
        "src/deep/b.rs:1:fn alpha() {}\nsrc/deep/b.rs:3:let x = alpha + alpha;\nsrc/main.py:2:    print('alpha')"
    );
    assert_eq!(
        content(json!({"-n": false, "glob": "*.py"})),
        "src/main.py:    print('alpha')"
    );
    assert_eq!(
        content(json!({"-C": 1, "glob": "*.py"})),
        "src/main.py-1-def main():\nsrc/main.py:2:    print('alpha')"
    );
    assert_eq!(
        content(json!({"-A": 1, "pattern": "main|fn Alpha"})),
        "src/deep/b.rs:2:fn Alpha() {}\nsrc/deep/b.rs-3-let x = alpha + alpha;\n--\nsrc/main.py:1:def main():\nsrc/main.py-2-    print('alpha')"
    );
    assert_eq!(
        content(json!({"-o": true, "glob": "*.rs"})).lines().count(),
        3
    );
    assert_eq!(
        content(json!({"-i": true, "glob": "*.rs"})).lines().count(),
        3
    );
    assert_eq!(
        content(json!({"path": "src/main.py"})),
        "2:    print('alpha')"
    );
    assert_eq!(content(json!({"pattern": "zzz"})), "No matches found");
    assert_eq!(
        content(json!({"head_limit": 1})),
        "src/deep/b.rs:1:fn alpha() {}\n\n[There are more lines: go on with offset 1]"
    );
    assert_eq!(
        content(json!({"offset": 2})),
        "src/main.py:2:    print('alpha')"
    );
    assert_eq!(
        content(json!({"pattern": "main.*\\n.*alpha", "multiline": true})),
        "src/main.py:1:def main():\nsrc/main.py:2:    print('alpha')"
    );
    assert!(content(json!({"pattern": "a("})).contains("Invalid regular expression"));
    assert!(content(json!({"type": "nope"})).contains("Unknown file type"));
}

#[test]
fn matches_are_counted_several_on_a_line_too() {
    let session = tree();
    assert_eq!(
        grep(&session, json!({"output_mode": "count", "path": "src"})),
        "src/deep/b.rs:3\nsrc/main.py:1\n\nFound 4 total occurrences across 2 files."
    );
}

#[test]
fn long_lines_binary_files_and_long_results_are_cut() {
    let session = Session::new();
    session.write("long.txt", format!("alpha {}\n", "x".repeat(600)));
    session.write("bin.dat", b"alpha\0alpha\n");
    let found = grep(&session, json!({"output_mode": "content"}));
    assert_eq!(found, "long.txt:1:[Omitted long matching line]");
    session.write("many.txt", "alpha line of some length\n".repeat(20_000));
    let outcome = session.call(
        "Grep",
        json!({"pattern": "alpha", "output_mode": "content", "path": "many.txt", "head_limit": 0}),
    );
    assert!(text(&outcome).len() < 300_000 && text(&outcome).contains("go on with offset"));
    let outcome = session.call(
        "Grep",
        json!({"pattern": "alpha", "output_mode": "content", "path": "many.txt"}),
    );
    assert_eq!(outcome.result["numLines"], 250);
}

#[test]
fn files_that_are_hidden_from_the_model_are_not_found() {
    let session = Session::new();
    session.write("secret.txt", "alpha\n");
    session.write("open.txt", "alpha\n");
    assert_eq!(grep(&session, json!({})), "Found 1 file\nopen.txt");
    assert_eq!(
        grep(&session, json!({"output_mode": "content"})),
        "open.txt:1:alpha"
    );
    assert_eq!(
        text(&session.call("Glob", json!({"pattern": "*.txt"}))),
        "open.txt"
    );
}
