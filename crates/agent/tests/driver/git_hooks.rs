//! Hooks of git: they run in a command that a person says yes to, not in one that a rule allows.

use std::os::unix::fs::PermissionsExt;
use std::process::Command as Program;

use serde_json::json;
use unspool_agent::driver::{QuestionAnswer, SessionCommand, SessionNotice};
use unspool_testkit::model::{Answer as Said, Model, call};

use crate::desk::Desk;

/// A repository with a hook that leaves a file behind; `None` if there is no git here.
fn repository(desk: &Desk) -> Option<std::path::PathBuf> {
    let mark = desk.file("../ran");
    let git = |words: &[&str]| {
        let status = Program::new("git")
            .args(words)
            .current_dir(desk.file(""))
            .status();
        status.is_ok_and(|status| status.success())
    };
    if !git(&["init", "-q", "."]) {
        return None;
    }
    assert!(git(&["config", "user.name", "x"]) && git(&["config", "user.email", "x@y"]));
    let hook = desk.file(".git/hooks/pre-commit");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, format!("#!/bin/sh\ntouch '{}'\n", mark.display())).unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    Some(mark)
}

#[test]
fn a_hook_of_git_runs_after_a_yes_and_not_after_a_rule() {
    let commit =
        |id: &str, command: &str| Said::blocks(&[call(id, "Bash", json!({ "command": command }))]);
    let model = Model::playing(vec![
        commit("toolu_1", "git commit -q --allow-empty -m one"),
        Said::text("first"),
        commit(
            "toolu_2",
            "git -c user.name=y commit -q --allow-empty -m two",
        ),
        Said::text("second"),
    ])
    .unwrap();
    let rules = json!({"permissions": {"allow": ["Bash(git commit:*)"]}}).to_string();
    let desk = Desk::with(&model, &rules, |_| ());
    let Some(mark) = repository(&desk) else {
        return;
    };
    desk.say("commit");
    assert_eq!(desk.ended().text, "first");
    assert!(!mark.exists());
    desk.say("again");
    let asked = desk.until(|notice| matches!(notice, SessionNotice::Ask { .. }));
    let Some(SessionNotice::Ask { ask, .. }) = asked.last() else {
        panic!("{asked:?}");
    };
    let answer = QuestionAnswer::Yes;
    desk.handle
        .send(SessionCommand::Answer { ask: *ask, answer });
    assert_eq!(desk.ended().text, "second");
    assert!(mark.exists());
}
