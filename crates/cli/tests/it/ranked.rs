//! `search --ranked` and `index`, as a person and a script see them.

use std::path::Path;

use expect_test::expect;
use serde_json::Value;
use unspool_index::db::{self, DatabaseSchema};

use crate::{ID, home_with_session};

fn rows(text: &str) -> Vec<Value> {
    let rows = text.lines().take_while(|line| line.starts_with('{'));
    rows.map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn the_first_ranked_search_indexes_dialogue_and_says_what_is_missing() {
    let home = home_with_session();
    let text = home.run(&["search", "--ranked", "fix"]);
    expect![[r#"
        5e551000  2h  x  fix it
          line 1     prompt   fix it
        --- stderr
        show a hit (here the first) with `unspool show 5e551000 --line 1`
        thinking and tool results of 9.7 kB in 2 files are not indexed yet (0 % done; finish with `unspool index build`)
    "#]].assert_eq(&text);
    // What is not indexed yet may be what was looked for.
    let text = home.run(&["search", "--ranked", "main"]);
    assert!(text.contains("the index is incomplete"), "{text}");
    assert!(text.ends_with("--- status 1\n"), "{text}");
}

#[test]
fn after_a_build_results_are_found_and_nothing_is_missing() {
    let home = home_with_session();
    let built = home.run(&["index", "build"]);
    assert!(built.contains("indexed "), "{built}");
    let text = home.run(&["search", "--ranked", "main", "--json"]);
    assert!(!text.contains("stderr"), "{text}");
    let rows = rows(&text);
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!(row["session"], ID);
    assert_eq!(row["where"], "result");
    assert_eq!(row["title"], "fix it");
    assert_eq!(row["project"], "/home/dev/x");
    assert!(row["snippet"].as_str().unwrap().contains("fn main()"));
    assert!(row["score"].is_number() && row["line"].is_number());
    for field in ["path", "uuid", "at"] {
        assert!(row[field].is_string(), "{field}: {row}");
    }
}

#[test]
fn the_status_tells_what_is_behind_and_dropping_deletes_all_caches() {
    let home = home_with_session();
    let before = &rows(&home.run(&["index", "--json"]))[0];
    assert_eq!(before["dialogue"]["behind"], before["bytes"]);
    home.run(&["index", "build"]);
    let after = &rows(&home.run(&["index", "status", "--json"]))[0];
    for stage in ["dialogue", "rest"] {
        assert_eq!(after[stage]["behind"], 0);
        assert_eq!(after[stage]["behind_files"], 0);
        assert!(after[stage]["text"].as_u64().unwrap() > 0);
    }
    let path = after["path"]
        .as_str()
        .unwrap()
        .replace("$HOME", &home.path().to_string_lossy());
    assert!(std::path::Path::new(&path).exists());
    let dropped = home.run(&["index", "drop"]);
    assert!(dropped.contains("deleted "), "{dropped}");
    assert!(!std::path::Path::new(&path).exists());
    // It is a cache: nothing is lost.
    let text = home.run(&["search", "--ranked", "fix", "--json"]);
    assert_eq!(rows(&text).len(), 1);
}

#[test]
fn a_wrong_query_says_which_forms_there_are() {
    let home = home_with_session();
    let cases = [
        ("", "the query is empty"),
        ("-it", "only excludes"),
        ("fix \"it", "is not closed"),
        ("error:x", "unknown filter `error:`"),
        ("fix since:soon", "`soon` is not a time"),
        ("...", "contains no word to search for"),
    ];
    for (query, said) in cases {
        let text = home.run(&["search", "--ranked", "--", query]);
        assert!(text.contains(said), "{query}: {text}");
        assert!(text.contains("Hint: "), "{query}: {text}");
        assert!(text.ends_with("--- status 2\n"), "{query}: {text}");
    }
    let text = home.run(&["search", "--ranked", "--regex", "fix"]);
    assert!(text.contains("cannot be used with"), "{text}");
}

#[test]
fn filters_and_options_mean_the_same() {
    let home = home_with_session();
    home.run(&["index", "build"]);
    let count = |args: &[&str]| {
        let mut all = vec!["search", "--ranked", "--json"];
        all.extend_from_slice(args);
        rows(&home.run(&all)).len()
    };
    assert_eq!(count(&["fix project:x"]), 1);
    assert_eq!(count(&["fix", "--project", "x"]), 1);
    assert_eq!(count(&["fix", "--project", "elsewhere"]), 0);
    assert_eq!(count(&["fix since:1h"]), 0);
    assert_eq!(count(&["fix", "--since", "30d"]), 1);
    assert_eq!(count(&["found", "--in", "reply"]), 1);
    assert!(count(&["found"]) > 1);
    assert_eq!(count(&["found", "--limit", "1"]), 1);
}

#[test]
fn a_damaged_index_is_made_anew_with_one_remark() {
    let home = home_with_session();
    home.run(&["index", "build"]);
    let row = &rows(&home.run(&["index", "--json"]))[0];
    let path = row["path"]
        .as_str()
        .unwrap()
        .replace("$HOME", &home.path().to_string_lossy());
    for end in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{path}{end}"));
    }
    std::fs::write(&path, b"no database").unwrap();
    let text = home.run(&["search", "--ranked", "fix"]);
    assert!(text.contains("moved to"), "{text}");
    assert!(text.contains("fix it"), "{text}");
}

/// Moves what was written from the log to where it can be damaged.
fn settle(path: &Path) {
    let schema = DatabaseSchema {
        name: unspool_index::text_index::NAME,
        version: 2,
        sql: "",
    };
    let opened = db::open(path.parent().unwrap(), &schema).unwrap();
    assert_eq!(opened.notice, None, "the index has another version now");
    let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
    opened.connection.query_row(sql, [], |_| Ok(())).unwrap();
}

#[test]
fn wherever_the_index_is_damaged_it_is_told_in_one_line_and_mended() {
    const PAGE: usize = 8192;
    let home = home_with_session();
    home.run(&["index", "build"]);
    let row = &rows(&home.run(&["index", "--json"]))[0];
    let path = row["path"].as_str().unwrap();
    let path = path.replace("$HOME", &home.path().to_string_lossy());
    settle(Path::new(&path));
    let whole = std::fs::read(&path).unwrap();
    let pages = whole.len() / PAGE;
    let mut remarks = 0;
    // Each page alone, and all but the first.
    for page in 0..=pages {
        let mut bytes = whole.clone();
        let damaged = if page == pages {
            1..pages
        } else {
            page..page + 1
        };
        for page in damaged {
            bytes[page * PAGE..][..512].fill(0xA5);
        }
        for end in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{path}{end}"));
        }
        std::fs::write(&path, bytes).unwrap();
        let text = home.run(&["search", "--ranked", "fix"]);
        assert!(text.contains("prompt   fix it"), "page {page}: {text}");
        assert!(!text.contains("Error"), "page {page}: {text}");
        let told = text.matches("moved to").count();
        let again = home.run(&["search", "--ranked", "fix"]);
        assert!(!again.contains("moved to"), "page {page}: {again}");
        // A page that was not needed may be met now, but then it was not told before.
        let built = home.run(&["index", "build"]);
        assert!(!built.contains("Error"), "page {page}: {built}");
        let told = told + built.matches("moved to").count();
        assert!(told <= 1, "page {page}: {text}{built}");
        assert!(
            told == 1 || (1..pages).contains(&page),
            "page {page}: {text}"
        );
        remarks += told;
    }
    assert!(remarks > 4, "{remarks} of {pages}");
}

#[test]
fn a_day_counts_to_its_end() {
    let home = home_with_session();
    let found = &rows(&home.run(&["search", "--ranked", "fix", "--json"]))[0];
    let day = &found["at"].as_str().unwrap()[..10];
    let text = home.run(&["search", "--ranked", "fix", "--json", "--until", day]);
    assert_eq!(rows(&text).len(), 1, "{text}");
}
