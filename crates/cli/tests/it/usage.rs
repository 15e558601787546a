//! `usage` as people and scripts see it.

use std::fs;

use expect_test::expect;
use serde_json::Value;

use unspool_testkit::home::Home;

use super::{ID, home};

/// A machine with one session of four messages and a sub-agent of one.
fn home_with_session() -> Home {
    let home = super::home_with_session();
    let agent = "you: look\n(id=msg_agent) claude: found";
    home.agent("/home/dev/x", ID, "a0000001", agent);
    home
}

fn rows(text: &[u8]) -> Vec<Value> {
    let lines = std::str::from_utf8(text).unwrap().lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_day_is_a_row_and_the_total_stands_last() {
    let home = home_with_session();
    expect![[r#"
        day         msgs  input  output  cached  to cache    cost
        2026-01-05     5     50     100    5.0k         0  <$0.01       █
        total          5     50     100    5.0k         0  <$0.01
    "#]]
    .assert_eq(&home.run(&["usage"]));
}

#[test]
fn sub_agents_count_in_their_session_unless_told_apart() {
    let home = home_with_session();
    let together = rows(&home.output(&["usage", "session", "--json"]).stdout);
    assert_eq!(together.len(), 1);
    assert_eq!(together[0]["session"], ID);
    assert_eq!(together[0]["context_tokens"], 1010);
    assert_eq!(together[0]["context_limit"], 200_000);
    let apart = rows(&home.output(&["usage", "session", "--own", "--json"]).stdout);
    let of = |is_agent: bool| {
        let row = apart
            .iter()
            .find(|row| row["is_subagent"] == is_agent)
            .unwrap();
        (row["agent"].as_str(), row["messages"].as_u64().unwrap())
    };
    assert_eq!((of(false), of(true)), ((None, 4), (Some("a0000001"), 1)));
    assert_eq!(together[0]["messages"], 5);
}

#[test]
fn a_model_without_a_price_has_no_cost_and_never_a_guessed_one() {
    let home = home();
    home.session(
        "/x",
        ID,
        "you: a\n(model=claude-strange-9) claude: b\nclaude: c",
    );
    let output = home.output(&["usage", "model", "--json"]);
    let rows = rows(&output.stdout);
    let strange = rows
        .iter()
        .find(|row| row["model"] == "claude-strange-9")
        .unwrap();
    assert_eq!(strange["cost_usd"], Value::Null);
    assert_eq!(strange["unpriced_messages"], 1);
    let text = home.run(&["usage"]);
    assert!(text.contains("  ≥ $0.00         1"), "{text}");
    assert!(
        text.contains("1 of 2 messages have no known price (claude-strange-9)"),
        "{text}"
    );
}

#[test]
fn a_day_given_as_the_end_counts_to_its_end() {
    let home = home();
    home.session(
        "/x",
        ID,
        "(at=2026-01-03T10:00:00.000Z) you: a\n(at=2026-01-03T23:59:59.000Z) claude: b\n(at=2026-01-04T00:00:00.000Z) claude: c",
    );
    let count = |args: &[&str]| {
        let mut all = vec!["usage", "--json"];
        all.extend(args);
        let rows = rows(&home.output(&all).stdout);
        rows.iter()
            .map(|row| row["messages"].as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!(count(&[]), 2);
    assert_eq!(count(&["--until", "2026-01-03"]), 1);
    assert_eq!(count(&["--since", "2026-01-04"]), 1);
    assert_eq!(count(&["--until", "2026-01-03T23:59:59Z"]), 0);
}

#[test]
fn versions_that_never_wrote_the_output_are_named() {
    let home = home();
    home.session("/x", ID, "(version=2.1.29)\nyou: a\nclaude: b");
    let seen = home.run(&["usage"]);
    assert!(
        seen.contains("output of 1 message is a lower bound: written by 2.1.29"),
        "{seen}"
    );
}

#[test]
fn a_row_can_be_explained_down_to_the_line() {
    let home = home_with_session();
    let text = home.run(&["usage", "--explain", "2026-01-05"]);
    assert!(text.starts_with("2026-01-05: 5 messages, "), "{text}");
    assert!(text.contains("agent-a0000001.jsonl"), "{text}");
    let traces = rows(
        &home
            .output(&["usage", "--explain", "today", "--json"])
            .stdout,
    );
    assert_eq!(traces.len(), 5);
    assert!(traces.iter().all(|trace| trace["fate"] == "counted"));
    assert!(
        traces
            .iter()
            .all(|trace| trace["line"].as_u64().unwrap() > 0)
    );
    let session = rows(
        &home
            .output(&["usage", "session", "--explain", "5e55", "--json"])
            .stdout,
    );
    assert_eq!(session.len(), 5);
    let output = home.output(&["usage", "--explain", "2020-01-01"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_resumed_copy_counts_once_and_in_the_session_it_comes_from() {
    let home = home();
    let first = "you: a\n(id=msg_a) claude: b";
    home.session("/x", "aaaaaaaa-0000-4000-8000-000000000001", first);
    let resumed = format!("{first}\nyou: c\n(id=msg_c) claude: d");
    home.session("/x", "bbbbbbbb-0000-4000-8000-000000000002", &resumed);
    let rows = rows(&home.output(&["usage", "session", "--json"]).stdout);
    let messages: Vec<_> = rows
        .iter()
        .map(|row| row["messages"].as_u64().unwrap())
        .collect();
    assert_eq!(messages, [1, 1]);
    let text = home.run(&["usage", "--explain", "today"]);
    assert!(
        text.contains("1 message in a resumed or forked session is counted in an older file."),
        "{text}"
    );
}

#[test]
fn what_cannot_be_meant_is_told_with_what_can() {
    let home = home_with_session();
    expect![[r#"
        --- stderr
        Error: `soon` is not a time
        Hint: use `7d`, `24h`, `2026-01-03`, `today` or `2026-01-03T15:00:00Z`
        --- status 2
    "#]]
    .assert_eq(&home.run(&["usage", "--since", "soon"]));
    let text = home.run(&["usage", "--since", "2026-01-05", "--until", "2026-01-04"]);
    assert!(
        text.contains("`--since` must be before `--until`"),
        "{text}"
    );
    let text = home.run(&["usage", "--since", "2026-02-01"]);
    assert!(
        text.contains("no message matches") && text.contains("status 1"),
        "{text}"
    );
}

#[test]
fn a_row_is_explained_by_any_name_it_has() {
    let home = home_with_session();
    for (per, names) in [
        ("week", ["today", "2026-01-05"]),
        ("month", ["2026-01", "2026-01-31"]),
        ("session", [ID, "5e551000"]),
        ("project", ["x", "/home/dev/x"]),
        ("model", ["sonnet-4-5", "claude-sonnet-4-5-20250929"]),
    ] {
        for name in names {
            let output = home.output(&["usage", per, "--explain", name, "--json"]);
            assert_eq!(rows(&output.stdout).len(), 5, "{per} {name}");
        }
        let output = home.output(&["usage", per, "--explain", ""]);
        assert_eq!(output.status.code(), Some(1), "{per}");
    }
    let start = rows(&home.output(&["usage", "block", "--json"]).stdout)[0]["block"].clone();
    let table = start.as_str().unwrap()[..16].replace('T', " ");
    for name in [start.as_str().unwrap(), &table] {
        let output = home.output(&["usage", "block", "--explain", name]);
        assert!(output.status.success(), "{name}");
    }
}

#[test]
fn a_start_that_two_sessions_share_is_not_explained_but_told() {
    let home = home();
    for (nth, id) in ["1", "2"].iter().enumerate() {
        let script = format!("you: a\n(id=msg_{nth}) claude: b");
        home.session(
            "/x",
            &format!("22222222-0000-4000-8000-00000000000{id}"),
            &script,
        );
    }
    let text = home.run(&["usage", "session", "--explain", "22222222"]);
    assert!(text.contains("matches 2 sessions"), "{text}");
    let table = home.run(&["usage", "session"]);
    assert!(
        table.contains("22222222-0000-4000-8000-000000000001"),
        "{table}"
    );
}

#[test]
fn windows_of_five_hours_say_whether_they_are_open() {
    let home = home();
    home.session(
        "/x",
        ID,
        "(at=2026-01-05T01:20:00.000Z) you: a\nclaude: b\n(at=2026-01-05T11:40:00.000Z) claude: c",
    );
    let rows = rows(&home.output(&["usage", "block", "--json"]).stdout);
    let row = |nth: usize| {
        (
            rows[nth]["block"].as_str().unwrap(),
            rows[nth]["active"].as_bool().unwrap(),
        )
    };
    assert_eq!(row(0), ("2026-01-05T01:00:00.000Z", false));
    assert_eq!(row(1), ("2026-01-05T11:00:00.000Z", true));
    assert_eq!(rows[1]["block_end"], "2026-01-05T16:00:00.000Z");
}

#[test]
fn weeks_begin_on_the_day_that_is_asked_for() {
    let home = home();
    home.session(
        "/x",
        ID,
        "(at=2026-01-11T10:00:00.000Z) you: a\n(usage=1/2/0/0/0) claude: b\n",
    );
    let week = |args: &[&str]| {
        let all = [&["usage", "week", "--json"], args].concat();
        rows(&home.output(&all).stdout)[0]["week"].clone()
    };
    // The eleventh is a Sunday.
    assert_eq!(week(&[]), "2026-01-05");
    assert_eq!(week(&["--start-of-week", "sunday"]), "2026-01-11");
    assert_eq!(week(&["--start-of-week", "saturday"]), "2026-01-10");
}

/// A reply as a bare line, with more fields of its usage and of the line.
fn line(id: &str, model: &str, usage: &str, more: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"u{id}","sessionId":"{ID}","cwd":"/x","timestamp":"2026-01-05T10:00:00.000Z"{more},"message":{{"id":"{id}","role":"assistant","model":"{model}","content":[{{"type":"text","text":"x"}}],"usage":{{"input_tokens":1000000,"output_tokens":0{usage}}}}}}}"#
    ) + "\n"
}

#[test]
fn the_fast_mode_is_told_apart() {
    let home = home();
    let lines = line("a", "claude-opus-4-6", "", "")
        + &line("b", "claude-opus-4-6", r#","speed":"fast""#, "");
    home.transcript("/x", ID, lines);
    let all = rows(&home.output(&["usage", "model", "--json"]).stdout);
    assert_eq!(all.len(), 1);
    assert_eq!(
        (&all[0]["messages"], &all[0]["fast_messages"]),
        (&2.into(), &1.into())
    );
    let apart = rows(
        &home
            .output(&["usage", "model", "--by", "speed", "--json"])
            .stdout,
    );
    let of = |speed: &str| apart.iter().find(|row| row["speed"] == speed).unwrap();
    assert_eq!(of("fast")["cost_usd"], all[0]["fast_cost_usd"]);
    let cost = |speed: &str| of(speed)["cost_usd"].as_f64().unwrap();
    assert!(cost("fast") > cost("standard"));
}

#[test]
fn what_an_old_client_said_of_the_cost_counts_where_no_price_is_known() {
    let home = home();
    home.transcript(
        "/x",
        ID,
        line("a", "nobody-knows-1", "", r#","costUSD":0.25"#),
    );
    for args in [
        &["usage", "session", "--json"][..],
        &["ls", "--json"],
        &["turns", ID, "--json"],
        &["sql", "SELECT cost_usd FROM usage", "--json"],
        &["sql", "SELECT cost_usd FROM sessions", "--json"],
    ] {
        assert_eq!(
            rows(&home.output(args).stdout)[0]["cost_usd"],
            0.25,
            "{args:?}"
        );
    }
}

#[test]
fn a_limit_of_ones_own_counts_everywhere() {
    let home = home_with_session();
    home.write(
        ".unspool/prices-override.json",
        r#"{"models": {"claude-sonnet-4-5-20250929": {"input": 1, "output": 2, "limit": 77000}}}"#,
    );
    for args in [
        &["usage", "session", "--json"][..],
        &["ls", "--json"],
        &["sql", "SELECT context_limit FROM sessions", "--json"],
    ] {
        assert_eq!(
            rows(&home.output(args).stdout)[0]["context_limit"],
            77_000,
            "{args:?}"
        );
    }
}

#[test]
fn a_config_folder_may_be_named_by_its_projects() {
    let mut home = home_with_session();
    let projects = home.claude_dir().join("projects");
    home.set("CLAUDE_CONFIG_DIR", projects.to_str().unwrap());
    assert_eq!(rows(&home.output(&["ls", "--json"]).stdout)[0]["id"], ID);
    assert_eq!(
        rows(&home.output(&["usage", "--json"]).stdout)[0]["messages"],
        5
    );
}

#[test]
fn a_stray_file_that_names_a_session_does_not_stand_for_it() {
    let home = home();
    home.session("/home/dev/x", ID, "you: a\n(usage=10/20/0/0/0) claude: b\n");
    let projects = home.claude_dir().join("projects/-home-dev-x");
    let own = projects.join(format!("{ID}.jsonl"));
    let text = fs::read_to_string(&own).unwrap();
    let stray = text.replace("\"input_tokens\":10", "\"input_tokens\":9999");
    assert_ne!(stray, text);
    fs::create_dir_all(projects.join("subagents")).unwrap();
    fs::write(projects.join("subagents/notes.jsonl"), stray).unwrap();
    let output = home.output(&["usage", "session", "--json"]);
    let row = rows(&output.stdout).remove(0);
    assert_eq!(row["path"], own.display().to_string(), "{row}");
    assert!(row["context_tokens"].as_u64().unwrap() < 100, "{row}");
}
