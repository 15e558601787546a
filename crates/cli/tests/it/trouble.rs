//! `chat` when something is wrong: one clear message, the conversation kept, a way on.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use unspool_testkit::home::Home;
use unspool_testkit::model::{Answer, Model, call};

use crate::chat::{command, err, fine, lines, out, program, transcripts};
use crate::home;
use crate::tty::Terminal;

fn bad_key() -> Answer {
    Answer::fails(
        "401 Unauthorized",
        "authentication_error",
        "invalid x-api-key",
    )
}

fn no_model() -> Answer {
    Answer::fails("404 Not Found", "not_found_error", "model: no-such-model")
}

/// One error and one hint, and no more.
fn told(output: &Output) -> String {
    let told = err(output);
    assert_eq!(told.matches("Error: ").count(), 1, "{told}");
    assert_eq!(told.matches("Hint: ").count(), 1, "{told}");
    told
}

#[test]
fn a_bad_key_a_wrong_model_and_no_network_say_what_to_do_and_keep_the_conversation() {
    let cases = [
        (bad_key(), "ANTHROPIC_API_KEY"),
        (no_model(), "--model"),
        (Answer::text("never asked"), "ANTHROPIC_BASE_URL"),
    ];
    for (answer, way) in cases {
        let home = home();
        let nowhere = way == "ANTHROPIC_BASE_URL";
        let model = Model::playing(if nowhere { vec![] } else { vec![answer] }).unwrap();
        let mut first = command(&home, &model, &["my question"]);
        if nowhere {
            first.env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9");
        }
        let output = first.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let told = told(&output);
        assert!(told.contains(way) && told.contains("--resume"), "{told}");
        let output = command(&home, &model, &["--continue", "again"])
            .output()
            .unwrap();
        assert_eq!(out(&output), "done\n", "{}", err(&output));
        let sent = model.requests().last().unwrap().body.to_string();
        assert!(sent.contains("my question"), "{sent}");
        fine(&model);
    }
}

#[test]
fn on_a_terminal_the_same_is_said_and_the_conversation_goes_on_there() {
    let home = home();
    let model = Model::playing(vec![bad_key(), no_model(), Answer::text("here I am")]).unwrap();
    let mut terminal = Terminal::of(&program(&home, &model), 24, 80);
    terminal.shows("asks before edits");
    terminal.press("hi\r");
    let screen = terminal.shows("invalid x-api-key");
    assert!(screen.contains("ANTHROPIC_API_KEY"), "{screen}");
    terminal.press("again\r");
    terminal.shows("/model");
    terminal.press("/model opus\r");
    terminal.shows("claude-opus");
    terminal.press("once more\r");
    terminal.shows("here I am");
    terminal.press("\x04");
    assert_eq!(terminal.ends(), 0);
    fine(&model);
}

#[test]
fn on_a_terminal_no_network_is_said_and_asked_again() {
    let home = home();
    let model = Model::playing(vec![]).unwrap();
    let mut command = program(&home, &model);
    command
        .env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
        .env("CLAUDE_CODE_MAX_RETRIES", "1");
    let mut terminal = Terminal::of(&command, 24, 80);
    terminal.shows("asks before edits");
    terminal.press("hi\r");
    terminal.shows("cannot reach");
    let screen = terminal.until("prompt", |screen| !screen.contains("esc to interrupt"));
    assert!(screen.contains("ANTHROPIC_BASE_URL"), "{screen}");
    terminal.press("\x04");
    assert_eq!(terminal.ends(), 0);
    terminal.is_as_before();
}

/// The same command where no file may grow beyond so many blocks of 512 bytes, as on a full
/// disk.
fn with_little_room(command: &Command, blocks: u32) -> Command {
    let mut narrow = Command::new("sh");
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    narrow.arg("-c").arg(script);
    narrow.arg(command.get_program()).args(command.get_args());
    narrow.env_clear();
    for (name, value) in command.get_envs() {
        narrow.env(name, value.unwrap_or_default());
    }
    narrow.current_dir(command.get_current_dir().unwrap());
    narrow
}

#[test]
fn a_full_disk_ends_the_turn_and_what_was_written_is_gone_on_with() {
    let home = home();
    let long = "much to say ".repeat(2000);
    let model = Model::playing(vec![Answer::text(&long), Answer::text("now there is room")]);
    let model = model.unwrap();
    let full = command(&home, &model, &["my question"]);
    let output = with_little_room(&full, 16).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    let told = told(&output);
    let file = transcripts(&home).remove(0);
    assert!(told.contains(&file.display().to_string()), "{told}");
    let output = command(&home, &model, &["--continue", "again"])
        .output()
        .unwrap();
    assert_eq!(out(&output), "now there is room\n", "{}", err(&output));
    let sent = model.requests().last().unwrap().body.to_string();
    assert!(sent.contains("my question"), "{sent}");
    fine(&model);
}

#[test]
fn a_full_disk_on_a_terminal_gives_the_prompt_back() {
    let home = home();
    let long = "much to say ".repeat(2000);
    let model = Model::playing(vec![Answer::text(&long), Answer::text("short")]).unwrap();
    let full = with_little_room(&program(&home, &model), 16);
    let mut terminal = Terminal::of(&full, 24, 80);
    terminal.shows("asks before edits");
    terminal.press("my question\r");
    terminal.shows("cannot write the session");
    terminal.until("prompt", |screen| !screen.contains("esc to interrupt"));
    terminal.press("\x04");
    assert_eq!(terminal.ends(), 0);
    terminal.is_as_before();
    fine(&model);
}

/// A folder in which nobody may write, not even root.
fn read_only(home: &Home) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let folder = home.path().join("closed");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o555)).unwrap();
    match std::fs::write(folder.join("x"), "") {
        Ok(()) => PathBuf::from("/sys"),
        Err(_) => folder,
    }
}

#[test]
fn in_a_project_that_cannot_be_written_one_can_still_talk() {
    let home = home();
    let folder = read_only(&home);
    let path = folder.join("new.txt").display().to_string();
    let write = call(
        "toolu_1",
        "Write",
        json!({"file_path": path, "content": "x"}),
    );
    let model = Model::playing(vec![Answer::blocks(&[write]), Answer::text("it is closed")]);
    let model = model.unwrap();
    let mut chat = program(&home, &model);
    chat.args(["--permission-mode", "acceptEdits"]);
    chat.current_dir(&folder);
    let mut terminal = Terminal::of(&chat, 24, 80);
    terminal.shows("accept edits on");
    terminal.press("write it\r");
    terminal.shows("it is closed");
    let result = lines(&home)
        .into_iter()
        .find(|line| line.get("toolUseResult").is_some());
    let result = result.unwrap();
    assert_eq!(
        result["message"]["content"][0]["is_error"], true,
        "{result}"
    );
    terminal.press("#remember this\r");
    let screen = terminal.shows("CLAUDE.md");
    assert!(!screen.contains("added to"), "{screen}");
    terminal.press("\x04");
    assert_eq!(terminal.ends(), 0);
    fine(&model);
}

#[test]
fn a_broken_settings_file_is_named_with_its_line_and_nothing_begins() {
    let broken = "{\n  \"permissions\": {\n    \"deny\": [\"Bash\" \"Edit\"]\n  }\n}\n";
    for place in [
        ".claude/settings.json",
        "project/.claude/settings.json",
        "project/.claude/settings.local.json",
    ] {
        let home = home();
        let file = home.write(place, broken);
        let model = Model::playing(vec![]).unwrap();
        let output = command(&home, &model, &["hi"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let told = told(&output);
        let line = format!("{}:3:", file.display());
        assert!(told.contains(&line), "{told}");
        assert_eq!(model.requests().len(), 0);
        let mut terminal = Terminal::of(&program(&home, &model), 24, 200);
        terminal.shows(&line);
        terminal.shows("fix or remove");
        assert_eq!(terminal.ends(), 2);
        terminal.is_as_before();
        // Mended, it begins.
        std::fs::write(&file, "{}").unwrap();
        let output = command(&home, &model, &["hi"]).output().unwrap();
        assert_eq!(out(&output), "done\n", "{}", err(&output));
    }
}

#[test]
fn settings_that_break_while_one_talks_keep_the_conversation() {
    let home = home();
    let model = Model::playing(vec![Answer::text("an answer")]).unwrap();
    let mut terminal = Terminal::of(&program(&home, &model), 24, 200);
    terminal.shows("asks before edits");
    terminal.press("hi\r");
    terminal.shows("an answer");
    let file = home.write(".claude/settings.json", "{\n  broken\n");
    terminal.press("/permissions allow Bash(ls:*)\r");
    let screen = terminal.shows(&format!("{}:2:", file.display()));
    assert!(!screen.contains("added to"), "{screen}");
    std::fs::write(&file, "{}").unwrap();
    terminal.press("still here?\r");
    terminal.shows("done");
    terminal.press("\x04");
    assert_eq!(terminal.ends(), 0);
    fine(&model);
}

/// Runs a command under strace, if that is there and allowed: what it traced.
pub fn traced(command: &Command, calls: &str) -> Option<(Output, String)> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace");
    let works = Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "true"])
        .output();
    if !works.is_ok_and(|output| output.status.success()) {
        eprintln!("NOT RUN: strace is not there, or tracing is not allowed here");
        return None;
    }
    let mut traced = Command::new("strace");
    traced
        .args([
            "-f",
            "-qq",
            "-s",
            "300",
            "-e",
            &format!("trace={calls}"),
            "-o",
        ])
        .arg(&file)
        .arg(command.get_program())
        .args(command.get_args());
    traced.env_clear();
    for (name, value) in command.get_envs() {
        traced.env(name, value.unwrap_or_default());
    }
    traced.current_dir(command.get_current_dir().unwrap());
    let output = traced.stdin(std::process::Stdio::null()).output().unwrap();
    let trace = std::fs::read_to_string(&file).unwrap();
    Some((output, trace))
}

#[test]
fn durable_waits_for_the_disk_after_every_line() {
    for durable in [true, false] {
        let home = home();
        let model = Model::playing(vec![Answer::text("an answer")]).unwrap();
        let mut chat = command(&home, &model, &["hi"]);
        if durable {
            chat.arg("--durable");
        }
        let Some((output, trace)) = traced(&chat, "fsync,fdatasync") else {
            return;
        };
        assert_eq!(out(&output), "an answer\n", "{}", err(&output));
        let waits = trace.lines().filter(|line| line.contains("sync(")).count();
        let written = lines(&home).len();
        match durable {
            true => assert!(waits >= written, "{waits} of {written}\n{trace}"),
            false => assert_eq!(waits, 0, "{trace}"),
        }
    }
}

#[test]
fn the_sandbox_stops_a_write_outside_or_says_that_it_cannot() {
    let outside = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside-the-sandbox");
    let free = [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()];
    if free.iter().any(|free| outside.starts_with(free)) {
        println!("not tested: everything is inside in {}", outside.display());
        return;
    }
    let run = |sandbox: bool| {
        let _ = std::fs::remove_file(&outside);
        let home = home();
        let script = format!("touch {}; touch inside", outside.display());
        home.write("project/do.sh", script);
        let bash = json!({"command": "sh do.sh", "description": "x"});
        let bash = call("toolu_1", "Bash", bash);
        let model = Model::playing(vec![Answer::blocks(&[bash])]).unwrap();
        let mut chat = command(&home, &model, &["--allowedTools", "Bash", "hi"]);
        if sandbox {
            chat.arg("--sandbox");
        }
        let output = chat.output().unwrap();
        assert_eq!(out(&output), "done\n", "{}", err(&output));
        let result: Vec<Value> = lines(&home);
        let result = result
            .into_iter()
            .find(|line| line.get("toolUseResult").is_some());
        assert!(home.work_dir().join("inside").exists(), "{result:?}");
        err(&output)
    };
    run(false);
    assert!(outside.exists(), "without a sandbox it can be written");
    let told = run(true);
    match told.contains("sandbox unavailable") {
        true => assert!(outside.exists(), "{told}"),
        false => assert!(!outside.exists(), "{told}"),
    }
    let _ = std::fs::remove_file(&outside);
}
