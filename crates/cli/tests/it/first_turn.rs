//! What was said before the first prompt is turn 0, wherever turns are told.

use serde_json::Value;
use unspool_testkit::home::Home;

use crate::home;

const WORK: &str = "5e551000-0000-4000-8000-0000000000a0";

fn json(home: &Home, args: &[&str]) -> Vec<Value> {
    let mut all = args.to_vec();
    all.push("--json");
    let text = String::from_utf8(home.output(&all).stdout).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
    rows.collect()
}

/// A session that a program began: a call and a reply, then a prompt.
fn begun() -> Home {
    let home = home();
    let line = |kind: &str, n: u32, parent: &str, message: &str| {
        format!(
            r#"{{"type":"{kind}","uuid":"u{n}","parentUuid":{parent},"isSidechain":false,"cwd":"/home/dev/x","sessionId":"{WORK}","version":"2.1.200","timestamp":"2026-01-05T10:00:0{n}.000Z","message":{message}}}"#
        )
    };
    let said = |id: &str, content: &str| {
        format!(
            r#"{{"id":"{id}","role":"assistant","model":"claude-sonnet-4-5","content":[{content}],"usage":{{"input_tokens":10,"output_tokens":5}}}}"#
        )
    };
    let call = r#"{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"/a"}}"#;
    let result =
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}"#;
    let text = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    let lines = [
        line("assistant", 1, "null", &said("m1", call)),
        line("user", 2, "\"u1\"", result),
        line("assistant", 3, "\"u2\"", &said("m2", &text("worked alone"))),
        line(
            "user",
            4,
            "\"u3\"",
            r#"{"role":"user","content":"and now?"}"#,
        ),
        line("assistant", 5, "\"u4\"", &said("m3", &text("done"))),
    ];
    home.write(
        format!(".claude/projects/-home-dev-x/{WORK}.jsonl"),
        lines.join("\n") + "\n",
    );
    home
}

#[test]
fn work_before_the_first_prompt_is_turn_0_everywhere() {
    let home = begun();
    let turns = json(&home, &["turns", "5e55"]);
    let told: Vec<_> = turns
        .iter()
        .map(|row| {
            (
                row["n"].as_u64(),
                row["prompt"].as_str(),
                row["calls"].as_array().unwrap().len(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [(Some(0), Some(""), 1), (Some(1), Some("and now?"), 0)]
    );
    assert_eq!(turns[0]["reply"], "worked alone");
    let listed = &json(&home, &["ls"])[0];
    assert_eq!(listed["turns"], 2);
    let sum = |field: &str| -> u64 {
        turns
            .iter()
            .map(|row| row["usage"][field].as_u64().unwrap())
            .sum()
    };
    assert_eq!(listed["usage"]["output"], sum("output"));
    let counted = json(
        &home,
        &["sql", "select n, calls, output from turns order by n"],
    );
    assert_eq!(
        (&counted[0]["n"], &counted[0]["calls"], counted.len()),
        (&0.into(), &1.into(), 2)
    );
    let of_calls = json(&home, &["sql", "select turn from calls"]);
    assert_eq!(of_calls[0]["turn"], 0);
    let of_sessions = json(&home, &["sql", "select turns from sessions"]);
    assert_eq!(of_sessions[0]["turns"], 2);
    let blocks = json(&home, &["show", "5e55"]);
    let of: Vec<_> = blocks.iter().map(|row| row["turn"].as_u64()).collect();
    assert_eq!(of, [0, 0, 0, 1, 1].map(Some));
    assert_eq!(json(&home, &["show", "5e55", "--turn", "0"]).len(), 3);
    assert_eq!(json(&home, &["show", "5e55", "--turn", "1"]).len(), 2);
    let shown = home.run(&["show", "5e55", "--turn", "0"]);
    assert!(
        shown.contains("worked alone") && !shown.contains("done"),
        "{shown}"
    );
    let page = home.run(&["export", "5e55", "--to", "md"]);
    assert!(
        page.contains("## Turn 0") && page.contains("## Turn 1"),
        "{page}"
    );
    let sent = json(&home, &["send", "5e55", "--to", "otlp", "--dry-run"]);
    assert!(!sent.is_empty());
}

#[test]
fn a_session_that_begins_with_a_prompt_has_no_turn_0() {
    let home = crate::home_with_session();
    assert_eq!(json(&home, &["turns", "5e55"])[0]["n"], 1);
    assert!(
        home.run(&["show", "5e55", "--turn", "0"])
            .contains("no such turn")
    );
}
