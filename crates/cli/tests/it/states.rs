//! What sessions are doing, as `ls` says it: with hooks, with the registry, with neither.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};
use unspool_testkit::home::Home;

use crate::{ID, home};

/// A machine on which a session began to work at 12:00:00 and it is a little later.
fn working(seconds: u32) -> Home {
    let mut home = home();
    home.session(
        "/home/dev/x",
        ID,
        "
        (at=2026-01-05T12:00:00.000Z) you: fix it
        claude: let me see [Bash cargo test]
        ",
    );
    later(&mut home, seconds);
    home
}

/// It is so many seconds past twelve.
fn later(home: &mut Home, seconds: u32) {
    let now = format!("2026-01-05T12:{:02}:{:02}.000Z", seconds / 60, seconds % 60);
    home.set("UNSPOOL_NOW", &now);
}

fn hook(home: &Home, name: &str, more: Value) {
    let mut event = json!({"session_id": ID, "cwd": "/home/dev/x", "hook_event_name": name});
    let fields = event.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    let mut child = home
        .command()
        .arg("hook")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(event.to_string().as_bytes()).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
}

fn registry(home: &Home, pid: u32, status: &str, at: &str) {
    let at = at.parse::<jiff::Timestamp>().unwrap().as_millisecond();
    let text = json!({"pid": pid, "sessionId": ID, "status": status, "statusUpdatedAt": at});
    let path = home.claude_dir().join(format!("sessions/{pid}.json"));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text.to_string()).unwrap();
}

fn row(home: &Home) -> Value {
    let text = home.run(&["ls", "--json"]);
    serde_json::from_str(text.lines().next().unwrap()).unwrap()
}

fn state(home: &Home) -> (String, String, bool) {
    let row = row(home);
    let text = |name: &str| row[name].as_str().unwrap().to_owned();
    (
        text("status"),
        text("status_from"),
        row["status_sure"].as_bool().unwrap(),
    )
}

fn is(state: (String, String, bool), status: &str, from: &str, sure: bool) {
    assert_eq!(state, (status.to_owned(), from.to_owned(), sure));
}

#[test]
fn without_hooks_the_lines_tell_what_they_can() {
    let mut home = working(10);
    is(state(&home), "working", "transcript", false);
    assert_eq!(row(&home)["pending_tool"]["subject"], "cargo test");
    assert_eq!(row(&home)["last_prompt"], "fix it");
    later(&mut home, 600);
    is(state(&home), "idle", "transcript", false);
}

#[test]
fn a_request_for_permission_is_seen_at_once_and_for_hours() {
    let mut home = working(5);
    let call = json!({"tool_name": "Bash", "tool_input": {"command": "cargo test"}});
    hook(&home, "PermissionRequest", call);
    is(state(&home), "waiting_for_approval", "hook", true);
    let table = home.run(&["ls"]);
    assert!(table.contains("needs you"), "{table}");
    later(&mut home, 3_500);
    is(state(&home), "waiting_for_approval", "hook", true);
    assert_eq!(row(&home)["pending_tool"]["name"], "Bash");
    hook(&home, "SessionEnd", json!({"reason": "other"}));
    is(state(&home), "ended", "hook", true);
    let ended = home.run(&["ls", "--status", "ended", "--json"]);
    assert_eq!(ended.lines().count(), 1);
}

#[test]
fn a_failure_says_until_when_it_lasts() {
    let home = working(5);
    let why = "You've hit your limit · resets 3pm (UTC)";
    hook(
        &home,
        "StopFailure",
        json!({"error": "rate_limit", "last_assistant_message": why}),
    );
    let row = row(&home);
    assert_eq!(row["status"], "error");
    assert_eq!(row["error"], why);
    assert_eq!(row["resets"], "2026-01-05T15:00:00.000Z");
}

#[test]
#[cfg(target_os = "linux")]
fn the_registry_counts_while_its_process_lives() {
    let home = working(20);
    // This very process lives.
    registry(&home, std::process::id(), "busy", "2026-01-05T12:00:00Z");
    is(state(&home), "working", "registry", true);
    registry(&home, std::process::id(), "waiting", "2026-01-05T12:00:10Z");
    is(state(&home), "waiting_for_approval", "registry", true);
    assert_eq!(row(&home)["pending_tool"]["subject"], "cargo test");
    let path = format!("sessions/{}.json", std::process::id());
    std::fs::remove_file(home.claude_dir().join(path)).unwrap();
    registry(&home, 4_000_000, "busy", "2026-01-05T12:00:00Z");
    is(state(&home), "ended", "process", true);
}

#[test]
fn secrets_in_what_is_asked_and_in_what_failed_are_masked() {
    let home = working(5);
    let secret = format!("sk-ant-api03-{}AA", "x1".repeat(46));
    hook(
        &home,
        "StopFailure",
        json!({"error": "unknown", "error_details": format!("bad key {secret}")}),
    );
    let text = home.run(&["ls", "--json"]);
    assert!(text.contains("bad key"), "{text}");
    assert!(!text.contains(&secret), "{text}");
}

#[test]
fn an_unknown_state_names_those_there_are() {
    let output = working(5).output(&["ls", "--status", "sleeping"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("compacting, error or ended"), "{said}");
}
