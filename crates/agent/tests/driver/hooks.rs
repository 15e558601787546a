//! Hooks: stopped while they run, and what they are given.

use std::path::Path;

use serde_json::json;
use unspool_agent::driver::{SessionCommand, SessionNotice};
use unspool_agent::permission::PermissionMode;
use unspool_agent::state_machine::TurnEndReason;
use unspool_testkit::model::{Answer as Said, Model, call};

use unspool_testkit::wait::wait_until;

use crate::desk::Desk;

/// A hook that hangs, and notes its process, until a file `go` is there.
const HANGS: &str = "cd \"$CLAUDE_PROJECT_DIR\"; [ -e go ] && exit 0; trap '' TERM; echo $$ > pid.tmp; mv pid.tmp pid; sleep 300 & wait; sleep 300";

fn hanging(event: &str) -> String {
    json!({"hooks": {event: [{"hooks": [{"type": "command", "command": HANGS}]}]}}).to_string()
}

fn lives(pid: &str) -> bool {
    // A process that has ended and was not waited for yet does nothing any more.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim();
    !state.is_empty() && !state.starts_with('Z')
}

/// Waits for the hook, stops the session, and sees the hook gone.
fn stop_in_hook(desk: &Desk) {
    let pid = desk.file("pid");
    wait_until("the hook runs", || pid.exists());
    let text = std::fs::read_to_string(&pid).unwrap();
    desk.handle.send(SessionCommand::Interrupt);
    wait_until("the hook is gone", || !lives(text.trim()));
}

#[test]
fn a_prompt_is_given_back_when_its_hook_is_stopped() {
    let model = Model::playing(vec![]).unwrap();
    let desk = Desk::with(&model, &hanging("UserPromptSubmit"), |_| ());
    desk.say("one");
    stop_in_hook(&desk);
    let ending = desk.ended();
    assert_eq!(ending.why, TurnEndReason::Interrupted);
    let unsaid: Vec<String> = ending.unsaid.iter().map(|prompt| prompt.text()).collect();
    assert_eq!(unsaid, ["one"]);
    assert_eq!(model.requests().len(), 0);
    std::fs::write(desk.file("go"), "").unwrap();
    desk.say("two");
    assert_eq!(desk.ended().text, "done");
    let sent = model.requests()[0].body["messages"].to_string();
    assert!(sent.contains("two") && !sent.contains("one"), "{sent}");
    assert_eq!(model.refusals(), [""; 0]);
}

#[test]
fn what_is_said_while_a_session_opens_waits_and_can_be_taken_back() {
    let model = Model::playing(vec![]).unwrap();
    let desk = Desk::with(&model, &hanging("SessionStart"), |_| ());
    desk.say("one");
    desk.until(|notice| matches!(notice, SessionNotice::Queued(1)));
    stop_in_hook(&desk);
    let ending = desk.ended();
    assert_eq!(ending.why, TurnEndReason::Interrupted);
    assert_eq!(ending.unsaid.len(), 1);
    desk.say("two");
    assert_eq!(desk.ended().text, "done");
    assert_eq!(model.refusals(), [""; 0]);
}

#[test]
fn stopping_ends_hooks_of_every_moment_and_the_conversation_goes_on() {
    for event in ["PreToolUse", "PostToolUse", "PermissionRequest", "Stop"] {
        let touch = call("toolu_1", "Bash", json!({"command": "touch x"}));
        let first = match event {
            "Stop" => Said::text("said"),
            _ => Said::blocks(&[touch]),
        };
        let model = Model::playing(vec![first]).unwrap();
        let desk = Desk::with(&model, &hanging(event), |_| ());
        if event != "PermissionRequest" {
            desk.handle
                .send(SessionCommand::Mode(PermissionMode::Bypass));
        }
        desk.say("one");
        stop_in_hook(&desk);
        assert_eq!(desk.ended().why, TurnEndReason::Interrupted, "{event}");
        std::fs::write(desk.file("go"), "").unwrap();
        desk.say("two");
        assert_eq!(desk.ended().text, "done", "{event}");
        assert_eq!(model.refusals(), [""; 0], "{event}");
    }
}

#[test]
fn a_hook_before_a_summary_can_be_stopped() {
    let model = Model::playing(vec![Said::text("hello")]).unwrap();
    let desk = Desk::with(&model, &hanging("PreCompact"), |_| ());
    desk.say("one");
    desk.ended();
    desk.handle.send(SessionCommand::Compact { words: None });
    stop_in_hook(&desk);
    assert_eq!(desk.ended().why, TurnEndReason::Interrupted);
    desk.say("two");
    assert_eq!(desk.ended().text, "done");
    assert_eq!(model.refusals(), [""; 0]);
}

#[test]
fn prompts_wait_their_turn_behind_a_hook() {
    let settings = json!({"hooks": {"UserPromptSubmit": [{"hooks": [
        {"type": "command", "command": "read line; case $line in *'\"first\"'*) while [ ! -e \"$CLAUDE_PROJECT_DIR/go\" ]; do sleep 0.01; done;; esac; echo heard"}]}]}});
    let model = Model::playing(vec![]).unwrap();
    let desk = Desk::with(&model, &settings.to_string(), |_| ());
    desk.say("first");
    desk.say("second");
    desk.until(|notice| matches!(notice, SessionNotice::Queued(1)));
    std::fs::write(desk.file("go"), "").unwrap();
    desk.ended();
    desk.ended();
    let requests = model.requests();
    let sent = requests.last().unwrap().body["messages"].to_string();
    let place = |words: &str| {
        sent.find(words)
            .unwrap_or_else(|| panic!("{words}: {sent}"))
    };
    assert!(place("first") < place("second"), "{sent}");
    assert_eq!(sent.matches("UserPromptSubmit hook: heard").count(), 2);
    assert_eq!(model.refusals(), [""; 0]);
}

#[test]
fn hooks_hear_that_somebody_is_waited_for() {
    let settings = json!({"hooks": {"Notification": [{"matcher": "permission_prompt", "hooks": [
        {"type": "command", "command": "cat > \"$CLAUDE_PROJECT_DIR/told.tmp\"; cd \"$CLAUDE_PROJECT_DIR\"; mv told.tmp told"}]}]}});
    let touch = call("toolu_1", "Bash", json!({"command": "touch x"}));
    let model = Model::playing(vec![Said::blocks(&[touch])]).unwrap();
    let desk = Desk::with(&model, &settings.to_string(), |_| ());
    desk.say("one");
    desk.until(|notice| matches!(notice, SessionNotice::Ask { .. }));
    let told = desk.file("told");
    wait_until("the hook heard of it", || told.exists());
    let told: serde_json::Value = serde_json::from_str(&read(&told)).unwrap();
    assert_eq!(told["hook_event_name"], "Notification");
    assert_eq!(told["notification_type"], "permission_prompt");
    assert!(told["message"].as_str().unwrap().contains("Bash"));
    desk.handle.send(SessionCommand::Interrupt);
    desk.ended();
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn variables_of_the_settings_reach_commands_and_hooks() {
    let settings = json!({
        "env": {"COLOUR": "blue", "NUMBER": 7, "": "x", "A=B": "y"},
        "hooks": {"Stop": [{"hooks": [
            {"type": "command", "command": "printf '%s' \"$COLOUR\" > \"$CLAUDE_PROJECT_DIR/hook\""}]}]},
    });
    let printed = json!({"command": "printf '%s %s' \"$COLOUR\" \"$NUMBER\" > shell"});
    let model = Model::playing(vec![Said::blocks(&[call("toolu_1", "Bash", printed)])]).unwrap();
    let desk = Desk::with(&model, &settings.to_string(), |_| ());
    desk.handle
        .send(SessionCommand::Mode(PermissionMode::Bypass));
    desk.say("go");
    desk.ended();
    assert_eq!(read(&desk.file("shell")), "blue 7");
    assert_eq!(read(&desk.file("hook")), "blue");
}
