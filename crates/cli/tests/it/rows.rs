//! The rows for scripts: one JSON object per line, with at least these fields.

use serde_json::Value;

use crate::{ID, home_with_session};

/// Commands and the fields that every row has.
const FIELDS: &[(&[&str], &[&str])] = &[
    (
        &["ls"],
        &[
            "id",
            "path",
            "project",
            "cwd",
            "title",
            "goal",
            "recent_output",
            "status",
            "status_from",
            "status_since",
            "status_sure",
            "question",
            "error",
            "resets",
            "agents_working",
            "tasks_running",
            "last_prompt",
            "pending_tool",
            "turns",
            "messages",
            "calls",
            "agents",
            "is_subagent",
            "first",
            "last",
            "model",
            "models",
            "version",
            "versions",
            "git_branch",
            "slug",
            "permission_mode",
            "entrypoint",
            "pr_links",
            "compactions",
            "bytes",
            "usage",
            "cost_usd",
            "context_tokens",
            "context_limit",
            "parent",
            "forked_from",
        ],
    ),
    (&["ls", "--agents"], &["id", "is_subagent", "parent"]),
    (
        &["show", ID],
        &[
            "turn", "thread", "line", "uuid", "parent", "role", "type", "at",
        ],
    ),
    (
        &["info", ID],
        &[
            "session",
            "path",
            "lines",
            "types",
            "unknown",
            "versions",
            "stop_reasons",
            "blocks",
            "tools",
            "faults",
            "side_files",
        ],
    ),
    (
        &["turns", ID],
        &[
            "n",
            "uuid",
            "kind",
            "round",
            "input_kinds",
            "permission_mode",
            "prompt",
            "at",
            "ended",
            "duration_ms",
            "messages",
            "message_ids",
            "calls",
            "agents",
            "reply",
            "interrupted",
            "compacted",
            "usage",
            "cost_usd",
        ],
    ),
    (
        &["prices"],
        &[
            "model",
            "name",
            "input",
            "output",
            "cache_read",
            "cache_write_5m",
            "cache_write_1h",
            "long",
            "batch",
            "web_search",
            "fast",
            "us",
            "context_limit",
            "origin",
        ],
    ),
    (
        &["turns", ID, "--calls"],
        &[
            "id",
            "uuid",
            "result_uuid",
            "name",
            "subject",
            "status",
            "duration_ms",
            "input",
            "result",
            "is_error",
            "result_meta",
        ],
    ),
    (
        &["tree", ID],
        &["id", "uuid", "kind", "parent", "live", "at", "label"],
    ),
    (
        &["agents", ID],
        &[
            "agent",
            "type",
            "description",
            "call",
            "status",
            "turns",
            "usage",
        ],
    ),
    (
        &["files", ID],
        &[
            "path", "reads", "writes", "edits", "added", "removed", "versions",
        ],
    ),
    (&["context", ID], &["category", "tokens", "share"]),
];

#[test]
fn rows_have_their_fields_and_are_one_object_per_line() {
    let home = home_with_session();
    for (command, fields) in FIELDS {
        let rows = rows(&home, command);
        assert!(!rows.is_empty(), "{command:?}");
        for row in &rows {
            let row = row
                .as_object()
                .unwrap_or_else(|| panic!("{command:?}: {row}"));
            for field in *fields {
                assert!(
                    row.contains_key(*field),
                    "{command:?} lacks {field}: {row:?}"
                );
            }
        }
    }
}

fn rows(home: &unspool_testkit::home::Home, command: &[&str]) -> Vec<Value> {
    let output = home.output(&[command, &["--json"]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{command:?}: {stderr}");
    assert_eq!(stderr, "", "{command:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn rows_of_the_conversation_hold_what_their_type_says() {
    let home = home_with_session();
    let rows = rows(&home, &["show", ID]);
    for (kind, fields) in [
        ("text", &["text"][..]),
        ("thinking", &["text"]),
        ("tool_use", &["name", "input"]),
        ("tool_result", &["tool_use_id", "content", "is_error"]),
    ] {
        let row = rows
            .iter()
            .find(|row| row["type"] == kind)
            .unwrap_or_else(|| panic!("no {kind}"));
        for field in fields {
            assert!(row.get(*field).is_some(), "{kind} lacks {field}: {row}");
        }
    }
}

#[test]
fn calls_of_a_turn_hold_their_fields() {
    let home = home_with_session();
    let rows = rows(&home, &["turns", ID]);
    let calls = rows[0]["calls"].as_array().unwrap();
    assert_eq!(calls.len(), 3);
    for field in [
        "id",
        "uuid",
        "result_uuid",
        "name",
        "subject",
        "status",
        "duration_ms",
    ] {
        assert!(
            calls.iter().all(|call| call.get(field).is_some()),
            "{field}: {calls:?}"
        );
    }
    let statuses: Vec<_> = calls
        .iter()
        .map(|call| call["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["ok", "ok", "error"]);
}

#[test]
fn usage_has_its_five_numbers_and_an_unknown_price_is_null() {
    let home = home_with_session();
    for (command, costs) in [
        (&["ls"][..], true),
        (&["turns", ID], true),
        (&["agents", ID], false),
    ] {
        let row = rows(&home, command).remove(0);
        for field in [
            "input",
            "output",
            "cache_read",
            "cache_write_5m",
            "cache_write_1h",
        ] {
            assert!(row["usage"][field].is_u64(), "{command:?} {field}: {row}");
        }
        assert!(!costs || row["cost_usd"] != 0, "{command:?}: {row}");
    }
}

#[test]
fn times_are_utc_with_milliseconds() {
    let home = home_with_session();
    let row = rows(&home, &["ls"]).remove(0);
    for field in ["first", "last", "status_since"] {
        let time = row[field].as_str().unwrap();
        assert!(
            time.len() == 24 && time.ends_with('Z') && &time[19..20] == ".",
            "{field}: {time}"
        );
    }
}

#[test]
fn the_last_row_of_a_check_says_whether_the_session_can_be_resumed() {
    let home = home_with_session();
    let id = "fa170000-0000-4000-8000-000000000001";
    home.session(
        "/home/dev/x",
        id,
        "you: a\nclaude: b [Read c]\nyou: d\nclaude: e",
    );
    let output = home.output(&["check", id, "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (last, faults) = rows.split_last().unwrap();
    assert!(
        last["resumable"].is_boolean() && last["session"] == id,
        "{last}"
    );
    assert_eq!(faults.len(), 1, "{text}");
    for field in ["session", "line", "kind", "detail"] {
        assert!(faults[0].get(field).is_some(), "{field}: {text}");
    }
}

#[test]
fn every_row_is_described_by_its_schema() {
    let home = home_with_session();
    let output = home.output(&["schema"]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    for field in FIELDS.iter().flat_map(|(_, fields)| *fields) {
        assert!(
            text.contains(&format!("\"{field}\"")),
            "no schema names {field}"
        );
    }
}
