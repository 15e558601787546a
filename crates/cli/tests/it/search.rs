//! `search` from outside: rows, exit codes, what narrows it, and what opens a hit.

use serde_json::Value;
use unspool_testkit::home::Home;

use crate::{ID, home, home_with_session};

fn rows(home: &Home, args: &[&str]) -> Vec<Value> {
    let mut all = vec!["search", "--json"];
    all.extend(args);
    let output = home.output(&all);
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        output.status.code(),
        Some(i32::from(rows.is_empty())),
        "{args:?}"
    );
    rows
}

/// `where line` of each hit.
fn places(rows: &[Value]) -> Vec<String> {
    rows.iter()
        .map(|row| format!("{} {}", row["where"].as_str().unwrap(), row["line"]))
        .collect()
}

#[test]
fn a_hit_says_everything_about_itself() {
    let home = home_with_session();
    let rows = rows(&home, &["fn main"]);
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!(row["session"], ID);
    assert_eq!(row["where"], "result");
    assert!(
        row["path"]
            .as_str()
            .unwrap()
            .ends_with(&format!("{ID}.jsonl"))
    );
    assert!(row["uuid"].is_string() && row["at"].is_string());
    assert_eq!(row["agent"], Value::Null);
    assert_eq!(row["project"], "/home/dev/x");
    assert!(row["snippet"].as_str().unwrap().contains("fn main() {}"));
    assert!(row["matches"].as_u64().unwrap() >= 1);
    let path = row["path"].as_str().unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let line = text
        .lines()
        .nth(row["line"].as_u64().unwrap() as usize - 1)
        .unwrap();
    assert!(line.contains("fn main() {}"));
    assert!(line.contains(row["uuid"].as_str().unwrap()));
}

#[test]
fn places_narrow_the_search_and_unknown_ones_are_refused() {
    let home = home_with_session();
    let all = rows(&home, &["look"]);
    let mut names: Vec<&str> = all
        .iter()
        .map(|row| row["where"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names, ["prompt", "reply", "tool"]);
    for name in names {
        let only = rows(&home, &["look", "--in", name]);
        assert!(only.iter().all(|row| row["where"] == name) && !only.is_empty());
    }
    let both = rows(&home, &["look", "--in", "reply,tool"]);
    assert!(both.iter().all(|row| row["where"] != "prompt") && both.len() > 1);
    assert!(rows(&home, &["look", "--in", "title"]).is_empty());
    let wrong = home.output(&["search", "look", "--in", "nowhere"]);
    assert_eq!(wrong.status.code(), Some(2));
    let said = String::from_utf8(wrong.stderr).unwrap();
    assert!(said.contains("prompt,reply,thinking,tool,result"), "{said}");
}

#[test]
fn sub_agents_and_outputs_in_files_of_their_own_are_searched() {
    let home = home_with_session();
    let agent = rows(&home, &["found", "--in", "reply"]);
    assert_eq!(
        (agent.len(), agent[0]["agent"].as_str()),
        (1, Some("a0000001"))
    );
    assert_eq!(agent[0]["session"], ID);
    home.write(
        format!(".claude/projects/-home-dev-x/{ID}/tool-results/t1.txt"),
        "one\ntwo \u{1b}[31mspil\u{1b}[0mled\n",
    );
    let output = rows(&home, &["spilled"]);
    assert_eq!(places(&output), ["result 2"]);
    assert_eq!(output[0]["session"], ID);
    assert!(
        output[0]["path"]
            .as_str()
            .unwrap()
            .ends_with("tool-results/t1.txt")
    );
    assert_eq!(places(&rows(&home, &["one\ntwo"])), ["result 1"]);
    assert!(rows(&home, &["spilled", "--in", "prompt"]).is_empty());
}

#[test]
fn text_is_found_however_it_is_written() {
    let home = home();
    let line = |content: &str| {
        format!(
            "{{\"type\":\"user\",\"uuid\":\"u\",\"timestamp\":\"2026-01-03T00:00:00.000Z\",\"cwd\":\"/p\",\"message\":{{\"role\":\"user\",\"content\":\"{content}\"}}}}\n"
        )
    };
    let texts = [
        r#"the \"velvet hammer\" clause"#,
        r"C:\\Users\\petra",
        r"\u017dlu\u0165ou\u010dk\u00fd",
        r"cri\u001b[31mmson",
        r"amber\nviolet",
        "猫头鹰",
    ];
    let all: String = texts.iter().map(|text| line(text)).collect();
    home.transcript("/p", ID, all);
    let queries = [
        "the \"velvet hammer\" clause",
        r"c:\users\petra",
        "žluťoučký",
        "crimson",
        "amber\nviolet",
        "猫头鹰",
    ];
    for (at, query) in queries.iter().enumerate() {
        let found = rows(&home, &[query]);
        assert_eq!(places(&found), [format!("prompt {}", at + 1)], "{query}");
        let snippet = found[0]["snippet"].as_str().unwrap().to_lowercase();
        assert!(snippet.contains(&query.to_lowercase()), "{snippet}");
    }
    assert!(rows(&home, &["velvet hammer\" clausen"]).is_empty());
}

#[test]
fn capitals_projects_sessions_and_times_narrow_it() {
    let home = home_with_session();
    assert_eq!(rows(&home, &["FIX IT"]).len(), 0);
    assert_eq!(
        rows(&home, &["FIX IT", "--ignore-case", "--in", "prompt"]).len(),
        1
    );
    assert_eq!(
        rows(&home, &["fix it", "--case-sensitive", "--in", "prompt"]).len(),
        1
    );
    assert_eq!(
        rows(&home, &["fix it", "--project", "X", "--in", "prompt"]).len(),
        1
    );
    assert_eq!(rows(&home, &["fix it", "--project", "other"]).len(), 0);
    assert_eq!(
        rows(&home, &["fix it", "--session", ID, "--in", "prompt"]).len(),
        1
    );
    let at = rows(&home, &["fix it", "--in", "prompt"])[0]["at"].clone();
    let at = at.as_str().unwrap();
    assert_eq!(
        rows(&home, &["fix it", "--in", "prompt", "--since", at]).len(),
        1
    );
    assert_eq!(
        rows(&home, &["fix it", "--in", "prompt", "--until", at]).len(),
        0
    );
    // As everywhere, a day counts to its end.
    let until = |day: &str| rows(&home, &["fix it", "--in", "prompt", "--until", day]).len();
    assert_eq!(until(&at[..10]), 1);
    assert_eq!(until("2020-01-01"), 0);
    let bad = home.output(&["search", "x", "--since", "soon"]);
    assert_eq!(bad.status.code(), Some(2));
    assert!(
        String::from_utf8(bad.stderr)
            .unwrap()
            .contains("2026-01-03")
    );
}

#[test]
fn paths_that_calls_touched_are_found_alone() {
    let home = home_with_session();
    let paths = rows(&home, &["a.rs", "--files"]);
    assert!(paths.len() >= 2 && paths.iter().all(|row| row["where"] == "tool"));
    assert!(rows(&home, &["look", "--files"]).is_empty());
}

#[test]
fn expressions_are_matched_and_bad_ones_say_where() {
    let home = home_with_session();
    assert_eq!(
        rows(&home, &["--regex", r"^fix\s+\w\w$", "--in", "prompt"]).len(),
        1
    );
    let bad = home.output(&["search", "--regex", "fix(it"]);
    assert_eq!(bad.status.code(), Some(2));
    let said = String::from_utf8(bad.stderr).unwrap();
    assert!(said.contains("unclosed group at character 4"), "{said}");
    assert!(said.contains("\n  fix(it\n     ^\n"), "{said}");
    let empty = home.output(&["search", ""]);
    assert_eq!(empty.status.code(), Some(2));
    assert!(
        String::from_utf8(empty.stderr)
            .unwrap()
            .contains("the query is empty")
    );
}

#[test]
fn nothing_found_is_code_one_with_a_hint_and_limits_hold() {
    let home = home_with_session();
    let none = home.output(&["search", "Nowhere"]);
    assert_eq!((none.status.code(), none.stdout.len()), (Some(1), 0));
    let said = String::from_utf8(none.stderr).unwrap();
    assert!(said.contains("nothing found for `Nowhere`") && said.contains("--ignore-case"));
    let all = rows(&home, &["o"]).len();
    assert!(all > 4);
    assert_eq!(rows(&home, &["o", "--limit", "3"]).len(), 3);
    let few = home.output(&["search", "o", "--limit", "3"]);
    let said = String::from_utf8(few.stderr).unwrap();
    assert!(said.contains(&format!("{} more", all - 3)), "{said}");
    let shown = String::from_utf8(few.stdout).unwrap();
    let hits = shown.lines().filter(|line| line.contains(" line "));
    assert_eq!(hits.count(), 3, "{shown}");
}

#[test]
fn people_see_hits_by_session_and_how_to_open_them() {
    let home = home_with_session();
    let output = home.output(&["search", "fn main"]);
    let shown = String::from_utf8(output.stdout).unwrap();
    let mut lines = shown.lines();
    let head = lines.next().unwrap();
    assert!(head.starts_with("5e551000") && head.contains(" x ") && head.contains("fix it"));
    let hit = lines.next().unwrap();
    assert!(hit.starts_with("  line ") && hit.contains(" result ") && hit.contains("fn main() {}"));
    let hint = String::from_utf8(output.stderr).unwrap();
    let (_, command) = hint.split_once('`').unwrap();
    let (command, _) = command.split_once('`').unwrap();
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let opened = home.run(&words);
    assert!(
        opened.contains("▶ line ") && opened.contains("fn main() {}"),
        "{opened}"
    );
    assert!(
        opened.contains("fix it") && !opened.contains("thanks"),
        "{opened}"
    );
}

#[test]
fn lines_around_a_match_are_shown_below_it() {
    let home = home();
    let text =
        r#"{"type":"user","uuid":"u","message":{"role":"user","content":"one\ntwo\nthree\nfour"}}"#;
    home.transcript("/p", ID, format!("{text}\n"));
    let shown = home.run(&["search", "two", "-C", "1"]);
    assert!(
        shown.contains("\n    one\n    two\n    three\n") && !shown.contains("\n    four"),
        "{shown}"
    );
}

#[test]
fn a_hit_in_a_sub_agent_opens_too_and_lines_can_be_seen_raw() {
    let home = home_with_session();
    let hit = &rows(&home, &["found", "--in", "reply"])[0];
    let line = hit["line"].to_string();
    let opened = home.run(&["show", "agent-a0000001", "--line", &line]);
    assert!(
        opened.contains(&format!("▶ line {line}")) && opened.contains("found"),
        "{opened}"
    );
    let raw = home.run(&["show", ID, "--line", "1", "--raw"]);
    assert!(raw.starts_with('{') && raw.contains("fix it") && raw.lines().count() == 1);
    let blocks = home.run(&["show", ID, "--line", "1", "--json"]);
    assert!(blocks.lines().all(|row| row.contains("\"line\":1,")) && !blocks.is_empty());
    let none = home.output(&["show", ID, "--line", "9999"]);
    assert_eq!(none.status.code(), Some(1));
}

#[test]
fn text_from_transcripts_cannot_reach_the_terminal() {
    let home = home();
    let text = r#"{"type":"user","uuid":"u","message":{"role":"user","content":"a \u001b]0;title\u0007needle \u202e\u0007x"}}"#;
    home.transcript("/p", ID, format!("{text}\n"));
    let shown = home.run(&["search", "needle"]);
    let bad = shown.chars().find(|c| c.is_control() && *c != '\n');
    assert_eq!(bad, None, "{shown:?}");
    assert!(!shown.contains('\u{202e}'));
}

#[test]
fn a_hit_in_a_file_of_its_own_opens_in_a_pager() {
    let home = home_with_session();
    let file = format!(".claude/projects/-home-dev-x/{ID}/tool-results/it's t1.txt");
    home.write(&file, "one\ntwo spilled\n");
    let output = home.output(&["search", "spilled"]);
    let told = String::from_utf8(output.stderr).unwrap();
    let (_, hint) = told.split_once("(here the first) with `").unwrap();
    let (command, _) = hint.split_once('`').unwrap();
    assert!(command.starts_with("less +2 "), "{command}");
    #[cfg(unix)]
    {
        // The path is one argument for a shell.
        let shown = command.replace("less +2", "cat");
        let shell = std::process::Command::new("sh")
            .args(["-c", &shown])
            .output();
        assert_eq!(shell.unwrap().stdout, b"one\ntwo spilled\n");
    }
}

#[test]
fn a_mistyped_option_is_not_the_query() {
    let home = home();
    let line = "{\"type\":\"user\",\"uuid\":\"u\",\"cwd\":\"/p\",\"message\":{\"role\":\"user\",\"content\":\"run -x --regx foo\"}}\n";
    home.transcript("/p", ID, line);
    let wrong = home.output(&["search", "--regx", "foo"]);
    assert_eq!(wrong.status.code(), Some(2));
    let told = String::from_utf8(wrong.stderr).unwrap();
    assert!(told.contains("unexpected argument '--regx'"), "{told}");
    assert!(told.contains("'--regex'"), "{told}");
    let told = home.run(&["search", "--no-verify", "foo"]);
    assert!(told.contains("'-- --no-verify'"), "{told}");
    for query in [&["-x"][..], &["--regx"], &["--", "--regx"], &["--", "-x"]] {
        assert_eq!(rows(&home, query).len(), 1, "{query:?}");
    }
    let none = home.run(&["search", "--regexp"]);
    assert!(none.contains("`unspool search --help`"), "{none}");
}
