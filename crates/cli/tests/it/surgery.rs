//! `repair`, `merge`, `redact` and `clone --summary` as people and scripts see them.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use unspool_testkit::home::{Home, slug};
use unspool_testkit::script;

use super::{ID, home, home_with_session};

const CWD: &str = "/home/dev/x";
const OTHER: &str = "5e551000-0000-4000-8000-000000000002";

fn path(home: &Home, id: &str) -> PathBuf {
    let folder = home.claude_dir().join("projects").join(slug(CWD));
    folder.join(format!("{id}.jsonl"))
}

fn answer(home: &Home, args: &[&str]) -> Value {
    let output = home.output(args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The texts that a client would send on resume.
fn sent(home: &Home, session: &str) -> Vec<String> {
    let messages = answer(home, &["messages", session]);
    let blocks = messages.as_array().unwrap().iter();
    let blocks = blocks.flat_map(|message| message["content"].as_array().unwrap().clone());
    blocks
        .filter_map(|block| Some(block["text"].as_str()?.to_owned()))
        .collect()
}

/// Makes a session old enough that nobody works on it.
fn rest(path: &PathBuf) {
    let file = fs::File::options().append(true).open(path).unwrap();
    let hour = std::time::Duration::from_secs(3600);
    let then = std::time::SystemTime::now() - hour;
    file.set_modified(then).unwrap();
}

#[test]
fn a_damaged_session_is_mended_in_place_and_undone() {
    let home = home_with_session();
    let file = path(&home, ID);
    let whole = fs::read_to_string(&file).unwrap();
    let mut lines: Vec<&str> = whole.lines().collect();
    lines.insert(2, "null");
    let broken = lines.join("\n");
    let broken = &broken[..broken.len() - 30];
    fs::write(&file, broken).unwrap();
    rest(&file);
    let dry = answer(&home, &["repair", ID, "--in-place", "--dry-run", "--json"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), broken);
    let done = answer(&home, &["repair", ID, "--in-place", "--json"]);
    assert_eq!(dry["mended"], done["mended"]);
    assert!(done["mended"].as_array().unwrap().len() >= 2);
    assert_eq!(done["session"], ID);
    let mended = fs::read_to_string(&file).unwrap();
    assert!(mended.ends_with('\n') && !mended.contains("null\n"));
    let check = home.output(&["check", ID, "--json"]);
    assert_eq!(check.status.code(), Some(0));
    home.run(&["undo"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), broken);
}

#[test]
fn a_session_that_somebody_works_on_is_mended_only_as_a_copy() {
    let home = home_with_session();
    let file = path(&home, ID);
    let mut bytes = fs::read(&file).unwrap();
    bytes.extend_from_slice(b"null\n");
    fs::write(&file, &bytes).unwrap();
    let pid = std::process::id();
    let running = format!(r#"{{"pid":{pid},"sessionId":"{ID}","status":"busy"}}"#);
    home.write(format!(".claude/sessions/{pid}.json"), running);
    let refused = home.output(&["repair", ID, "--in-place"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("in use") && said.contains("Hint"), "{said}");
    assert_eq!(fs::read(&file).unwrap(), bytes);
    let copy = answer(&home, &["repair", ID, "--json"]);
    assert_ne!(copy["session"], ID);
    assert_eq!(
        sent(&home, copy["session"].as_str().unwrap()),
        sent(&home, ID)
    );
}

#[test]
fn a_healthy_session_needs_no_repair() {
    let home = home();
    home.session(
        CWD,
        ID,
        "you: hi\nclaude: looking [Read a.rs]\nresult: Read a.rs ok\nclaude: hello",
    );
    let before = fs::read(path(&home, ID)).unwrap();
    let output = home.output(&["repair", ID]);
    assert!(output.status.success() && output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing to repair"));
    assert_eq!(fs::read(path(&home, ID)).unwrap(), before);
}

#[test]
fn merged_sessions_say_what_each_said_in_turn() {
    let home = home_with_session();
    let later = "(at=2026-02-01T10:00:00.000Z) you: and now this\nclaude: done too";
    home.session(CWD, OTHER, later);
    let result = answer(&home, &["merge", ID, OTHER, "--json"]);
    let new = result["session"].as_str().unwrap();
    let mut both = sent(&home, ID);
    both.extend(sent(&home, OTHER));
    assert_eq!(sent(&home, new), both);
    assert_eq!(result["sources"], serde_json::json!([ID, OTHER]));
    home.run(&["undo"]);
    assert!(!path(&home, new).exists());
}

#[test]
fn a_copy_in_a_project_that_was_not_there_can_be_undone() {
    let home = home_with_session();
    let target = home.path().join("elsewhere");
    std::fs::create_dir(&target).unwrap();
    let projects = home.claude_dir().join("projects");
    let before = std::fs::read_dir(&projects).unwrap().count();
    let result = answer(
        &home,
        &["clone", ID, "--cwd", target.to_str().unwrap(), "--json"],
    );
    let path = std::path::PathBuf::from(result["path"].as_str().unwrap());
    assert!(path.exists());
    let undone = home.output(&["undo"]);
    assert!(undone.status.success(), "{undone:?}");
    assert!(!path.exists());
    assert_eq!(std::fs::read_dir(&projects).unwrap().count(), before);
}

#[cfg(unix)]
#[test]
fn a_copy_goes_into_a_project_whose_folder_is_a_link() {
    let home = home_with_session();
    let (target, real) = (home.path().join("elsewhere"), home.path().join("real"));
    fs::create_dir(&target).unwrap();
    fs::create_dir(&real).unwrap();
    let folder = slug(target.canonicalize().unwrap().to_str().unwrap());
    let folder = home.claude_dir().join("projects").join(folder);
    std::os::unix::fs::symlink(&real, &folder).unwrap();
    let args = ["clone", ID, "--cwd", target.to_str().unwrap(), "--json"];
    answer(&home, &args);
    assert!(fs::read_dir(&real).unwrap().count() > 0);
    assert!(home.output(&["undo"]).status.success());
    assert_eq!(fs::read_dir(&real).unwrap().count(), 0);
}

#[test]
fn a_session_that_changed_directories_moves_with_all_of_them() {
    let home = home();
    let text = script::jsonl(
        "(cwd=/home/dev/x/sub) you: one\nclaude: two\n(cwd=/home/dev/x) you: three\nclaude: four\n",
    );
    home.transcript("/home/dev/x", ID, text);
    let target = home.path().join("elsewhere");
    std::fs::create_dir(&target).unwrap();
    let result = answer(
        &home,
        &["clone", ID, "--cwd", target.to_str().unwrap(), "--json"],
    );
    let text = std::fs::read_to_string(result["path"].as_str().unwrap()).unwrap();
    assert!(!text.contains("/home/dev/x"), "{text}");
    assert!(text.contains("elsewhere/sub\""), "{text}");
}

#[test]
fn an_empty_summary_or_title_is_no_summary_and_no_title() {
    let home = home_with_session();
    for args in [
        &["--summary", "2", "--summary-text", " "][..],
        &["--title", ""],
    ] {
        let output = home.output(&[&["clone", ID][..], args].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("is empty"), "{said}");
    }
}

#[test]
fn a_preset_and_a_share_can_be_asked_for_together() {
    let home = home_with_session();
    let args = [
        "clone",
        ID,
        "--preset",
        "default",
        "--strip-tools",
        "100",
        "--json",
    ];
    assert!(answer(&home, &args)["calls"]["removed"].as_u64() > Some(0));
}

#[test]
fn a_summary_stands_for_what_was_before_a_turn() {
    let home = home_with_session();
    let args = [
        "clone",
        ID,
        "--summary",
        "2",
        "--summary-text",
        "It was fixed.",
        "--json",
    ];
    let result = answer(&home, &args);
    let said = sent(&home, result["session"].as_str().unwrap());
    let said: Vec<&str> = said.iter().map(|text| text.trim_end()).collect();
    assert!(said[0].ends_with("\n\nIt was fixed."), "{said:?}");
    assert_eq!(said[1..], ["thanks", "welcome"]);
    let missing = home.output(&["clone", ID, "--summary", "9", "--summary-text", "x"]);
    assert_eq!(missing.status.code(), Some(2));
}

#[test]
fn a_redacted_copy_has_no_secret_and_the_source_keeps_it() {
    let home = home();
    let token = format!("ghp{}{}", "_0aZ9bY8cX7dW6eV5", "fU4gT3hS2iR1jQ0kP9lO8");
    let script = format!("you: push with {token}\nclaude: pushed with {token}");
    home.session(CWD, ID, &script);
    let result = answer(&home, &["redact", ID, "--json"]);
    assert!(result["redactions"].as_u64().unwrap() >= 2);
    let copy = fs::read_to_string(result["path"].as_str().unwrap()).unwrap();
    assert!(!copy.contains(&token));
    assert!(copy.matches("[REDACTED:github-pat:").count() >= 2);
    assert!(!copy.contains("ghp_"), "the title is made of the prompt");
    assert!(
        fs::read_to_string(path(&home, ID))
            .unwrap()
            .contains(&token)
    );
}

#[test]
fn lines_without_ids_are_redacted_as_well() {
    let home = home();
    let token = format!("ghp{}{}", "_0aZ9bY8cX7dW6eV5", "fU4gT3hS2iR1jQ0kP9lO8");
    let line = |role: &str, at: u32| {
        format!(
            r#"{{"type":"{role}","sessionId":"{ID}","timestamp":"2026-01-01T10:00:0{at}.000Z","message":{{"role":"{role}","content":[{{"type":"text","text":"use {token}"}}]}}}}"#
        )
    };
    let text = format!("{}\n{}\n", line("user", 0), line("assistant", 1));
    let folder = format!(".claude/projects/{}", slug(CWD));
    let file = home.write(format!("{folder}/{ID}.jsonl"), text);
    rest(&file);
    for args in [
        &["redact", ID, "--json"][..],
        &["redact", ID, "--in-place", "--json"],
    ] {
        let result = answer(&home, args);
        let text = fs::read_to_string(result["path"].as_str().unwrap()).unwrap();
        assert_eq!(text.matches(&token).count(), 0, "{args:?}");
    }
}

#[test]
fn a_redacted_copy_has_no_part_of_a_secret_in_its_title() {
    let home = home();
    let token = format!("ghp{}{}", "_0aZ9bY8cX7dW6eV5", "fU4gT3hS2iR1jQ0kP9lO8");
    let script = format!("you: look into it and push the branch with {token}\nclaude: done");
    home.session(CWD, ID, &script);
    let result = answer(&home, &["clone", ID, "--redact", "--json"]);
    let copy = fs::read_to_string(result["path"].as_str().unwrap()).unwrap();
    assert!(copy.contains("Clone: look into it"), "{copy}");
    assert!(!copy.contains("ghp_"), "{copy}");
}
