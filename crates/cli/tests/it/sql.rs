//! `sql`: answers in three forms, mistakes that say where, and nothing that writes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Output, Stdio};

use expect_test::{expect, expect_file};
use serde_json::Value;
use unspool_testkit::home::Home;

use crate::{ID, home, home_with_session};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn failed(home: &Home, query: &str) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = home.output(&["sql", query]);
    assert_eq!(status.code(), Some(2), "{query}");
    assert!(stdout.is_empty(), "{query}");
    text(&stderr)
}

#[test]
fn an_answer_is_a_table_json_or_csv() {
    let home = home_with_session();
    let query = "SELECT name, status, subject, NULL AS none FROM calls ORDER BY line, name";
    expect![[r#"
        name  status  subject  none
        Read  ok      a.rs
        Task  ok      look
        Edit  error   a.rs
    "#]]
    .assert_eq(&home.run(&["sql", query]));
    expect![[r#"
        {"name":"Read","status":"ok","subject":"a.rs","none":null}
        {"name":"Task","status":"ok","subject":"look","none":null}
        {"name":"Edit","status":"error","subject":"a.rs","none":null}
    "#]]
    .assert_eq(&home.run(&["sql", "--json", query]));
    let csv = home.run(&["sql", "--csv", query]);
    assert_eq!(csv.lines().nth(1), Some("Read,ok,a.rs,"));
}

#[test]
fn every_view_knows_the_session_and_its_sub_agent() {
    let home = home_with_session();
    let one = |query: &str| -> Value {
        let out = home.run(&["sql", "--json", query]);
        serde_json::from_str(&out).unwrap()
    };
    let row = one("SELECT id, project, turns, calls, agents FROM sessions");
    let expected = serde_json::json!({
        "id": ID, "project": "/home/dev/x", "turns": 2, "calls": 3, "agents": 1
    });
    assert_eq!(row, expected);
    let row = one("SELECT session, n, prompt, reply FROM turns WHERE agent = 'a0000001'");
    let expected = serde_json::json!({"session": ID, "n": 1, "prompt": "look", "reply": "found"});
    assert_eq!(row, expected);
    let row = one("SELECT path, edits, reads FROM files");
    assert_eq!(row["path"], "a.rs");
    let row = one("SELECT count(*) AS n, count(DISTINCT session) AS s FROM usage");
    assert_eq!(row["s"], 1);
    let row =
        one("SELECT sum(role = 'user') AS said, sum(kind = 'reply') AS replies FROM messages");
    assert!(row["said"].as_i64() > Some(4) && row["replies"].as_i64() > Some(4));
}

#[test]
fn usage_knows_the_day() {
    let home = home_with_session();
    let query = "SELECT count(*) AS n, sum(day = substr(at, 1, 10)) AS same FROM usage";
    let row: Value = serde_json::from_str(&home.run(&["sql", "--json", query])).unwrap();
    assert!(row["n"].as_i64() > Some(0));
    assert_eq!(row["n"], row["same"]);
}

#[test]
fn an_answer_without_end_is_printed_as_it_comes_and_ends_with_its_reader() {
    let home = home_with_session();
    let query = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c";
    let mut child = home
        .command()
        .args(["sql", query])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap().trim().to_owned();
    assert_eq!([next(), next(), next()], ["x", "1", "2"]);
    drop(lines);
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), text(&output.stderr)),
        (Some(0), String::new())
    );
}

#[test]
fn a_mistake_says_what_and_where() {
    let home = home_with_session();
    expect![[r#"
        Error: no such column: titel
          SELECT id, titel FROM sessions
                     ^
        Hint: see the views and their columns with `unspool sql --schema`
    "#]]
    .assert_eq(&failed(&home, "SELECT id, titel FROM sessions"));
    expect![[r#"
        Error: the query is not read-only
        Hint: only SELECT is allowed: the tables are generated from transcripts
    "#]]
    .assert_eq(&failed(&home, "DELETE FROM sessions"));
    assert!(failed(&home, "SELECT 1; SELECT 2").contains("several statements"));
    assert!(failed(&home, "").contains("the query is empty"));
    assert!(
        !home.unspool_dir().join("usage.db").exists(),
        "nothing was read for it"
    );
}

#[test]
fn no_rows_are_an_answer_too() {
    let home = home_with_session();
    let query = "SELECT id FROM sessions WHERE id = 'none'";
    assert_eq!(home.run(&["sql", "--json", query]), "");
    assert_eq!(home.run(&["sql", query]).trim(), "id");
    assert_eq!(home.run(&["sql", "--csv", query]), "id\r\n");
}

#[test]
fn a_query_may_come_from_standard_input() {
    let home = home_with_session();
    let mut child = home
        .command()
        .args(["sql", "--json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(b"SELECT count(*) AS n\nFROM sessions;\n")
        .unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(text(&output.stdout), "{\"n\":1}\n");
}

#[test]
fn without_a_place_for_the_tables_everything_is_read() {
    let mut home = home_with_session();
    let file = home.write("file", "");
    home.set("UNSPOOL_HOME", &file.display().to_string());
    let output = home.output(&["sql", "--json", "SELECT count(*) AS n FROM sessions"]);
    assert_eq!(text(&output.stdout), "{\"n\":1}\n");
    assert!(output.status.success());
    assert!(text(&output.stderr).contains("reading all sessions without it"));
}

#[test]
fn a_damaged_cache_is_told_once_and_made_anew() {
    let home = home_with_session();
    let query = ["sql", "--json", "SELECT count(*) AS n FROM sessions"];
    home.run(&query);
    let folders = std::fs::read_dir(home.unspool_dir().join("sql")).unwrap();
    let folder = folders.map(|entry| entry.unwrap().path()).next().unwrap();
    std::fs::write(folder.join("tables.db"), "noise".repeat(4000)).unwrap();
    let _ = std::fs::remove_file(folder.join("tables.db-wal"));
    let output = home.output(&query);
    assert_eq!(text(&output.stdout), "{\"n\":1}\n");
    let stderr = text(&output.stderr);
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains("is damaged"), "{stderr}");
    assert_eq!(text(&home.output(&query).stderr), "");
}

#[test]
fn other_config_folders_have_tables_of_their_own() {
    let home = home_with_session();
    let other = home.path().join("other");
    let session = other.join("projects/-p/s.jsonl");
    std::fs::create_dir_all(session.parent().unwrap()).unwrap();
    std::fs::write(
        &session,
        unspool_testkit::script::jsonl("you: hi\nclaude: hello"),
    )
    .unwrap();
    let query = "SELECT id FROM sessions";
    let there = [
        "sql",
        "--json",
        query,
        "--claude-dir",
        other.to_str().unwrap(),
    ];
    let here = home.run(&["sql", "--json", query]);
    assert_eq!(home.run(&there), "{\"id\":\"s\"}\n");
    assert_eq!(home.run(&["sql", "--json", query]), here);
}

#[test]
fn the_demo_can_be_asked_and_leaves_nothing() {
    let home = home();
    let out = home.run(&[
        "--demo",
        "sql",
        "--json",
        "SELECT count(*) > 0 AS some FROM turns",
    ]);
    assert_eq!(out, "{\"some\":1}\n");
    assert!(!home.unspool_dir().join("sql").exists());
}

#[test]
fn the_schema_is_as_it_was() {
    let home = home();
    expect_file!["sql.txt"].assert_eq(&home.run(&["sql", "--schema"]));
    for line in home.run(&["sql", "--schema", "--json"]).lines() {
        let view: Value = serde_json::from_str(line).unwrap();
        assert!(view["columns"][0]["type"].is_string());
    }
}

#[test]
fn the_page_about_sql_names_every_column() {
    let page = include_str!("../../../../docs/sql.md");
    for line in home().run(&["sql", "--schema", "--json"]).lines() {
        let view: Value = serde_json::from_str(line).unwrap();
        let name = view["view"].as_str().unwrap();
        let (_, section) = page.split_once(&format!("### {name}\n")).unwrap();
        let section = section.split("\n### ").next().unwrap();
        for column in view["columns"].as_array().unwrap() {
            let (name, kind) = (&column["name"], &column["type"]);
            let about = column["about"].as_str().unwrap();
            let row = format!(
                "| `{}` | {} | {about} |",
                name.as_str().unwrap(),
                kind.as_str().unwrap()
            );
            assert!(section.contains(&row), "the page lacks: {row}");
        }
    }
}
