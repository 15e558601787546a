//! Commands, skills and agents of a trusted project: they grant nothing that the rules of the person do not.
#![cfg(unix)]

use serde_json::json;
use unspool_testkit::home::Home;
use unspool_testkit::model::{Answer, Model, call};

use crate::chat::{command, err};
use crate::home;

/// A project that somebody trusts; what the closure adds came later, as with `git pull`.
fn pulled(files: &[(&str, String)]) -> Home {
    let home = home();
    home.write("project/.git/HEAD", "ref: refs/heads/main\n");
    home.write("project/.claude/settings.json", "{\"model\": \"sonnet\"}");
    let model = Model::playing(vec![]).unwrap();
    let output = command(&home, &model, &["--trust", "hi"]).output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    for (name, text) in files {
        home.write(format!("project/{name}"), text);
    }
    home
}

const GRANT: &str = "---\nname: x\ndescription: d\nallowed-tools: Bash, Write\n---\n";

#[test]
fn a_command_that_was_pulled_runs_nothing_and_allows_nothing_by_its_own_word() {
    let ran = format!("{GRANT}!`touch ran`");
    let home = pulled(&[
        (".claude/commands/runs.md", ran),
        (".claude/commands/says.md", format!("{GRANT}do it")),
    ]);
    let model = Model::playing(vec![]).unwrap();
    command(&home, &model, &["/runs"]).output().unwrap();
    assert!(!home.work_dir().join("ran").exists());
    let touch = call("toolu_1", "Bash", json!({"command": "touch called"}));
    let model = Model::playing(vec![Answer::blocks(&[touch])]).unwrap();
    command(&home, &model, &["/says"]).output().unwrap();
    assert_eq!(model.requests().len(), 2);
    assert!(!home.work_dir().join("called").exists());
}

#[test]
fn a_command_of_the_project_runs_what_the_rules_of_the_person_allow() {
    let ran = format!("{GRANT}!`touch ran`");
    let home = pulled(&[(".claude/commands/runs.md", ran)]);
    let model = Model::playing(vec![]).unwrap();
    let args = ["--allowedTools", "Bash(touch:*)", "--", "/runs"];
    let output = command(&home, &model, &args).output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    assert!(home.work_dir().join("ran").exists());
}

#[test]
fn a_skill_that_was_pulled_runs_nothing_when_the_model_calls_it() {
    let ran = format!("{GRANT}!`touch ran`");
    let home = pulled(&[(".claude/skills/x/SKILL.md", ran)]);
    let skill = call("toolu_1", "Skill", json!({"skill": "x"}));
    let model = Model::playing(vec![Answer::blocks(&[skill])]).unwrap();
    command(&home, &model, &["hi"]).output().unwrap();
    assert_eq!(model.requests().len(), 2);
    assert!(!home.work_dir().join("ran").exists());
}

#[test]
fn an_agent_that_was_pulled_does_not_widen_the_mode() {
    for (mode, started) in [
        ("acceptEdits", "default"),
        ("bypassPermissions", "default"),
        ("acceptEdits", "plan"),
        ("default", "plan"),
    ] {
        let text = format!("---\nname: x\ndescription: d\npermissionMode: {mode}\n---\ndo it");
        let home = pulled(&[(".claude/agents/x.md", text)]);
        let file = home.work_dir().join("written");
        let input = json!({"description": "d", "prompt": "p", "subagent_type": "x"});
        let write = json!({"file_path": file, "content": "x"});
        let model = Model::playing(vec![
            Answer::blocks(&[call("toolu_1", "Agent", input)]),
            Answer::blocks(&[call("toolu_2", "Write", write)]),
        ])
        .unwrap();
        // A rule allows it, but a plan is only made.
        let mut args = vec!["--permission-mode", started];
        if started == "plan" {
            args.extend(["--allowedTools", "Edit"]);
        }
        args.extend(["--", "hi"]);
        command(&home, &model, &args).output().unwrap();
        assert!(model.requests().len() > 2, "{mode} in {started}");
        assert!(!file.exists(), "{mode} in {started}");
    }
}
