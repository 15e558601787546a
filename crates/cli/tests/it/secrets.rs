//! Secrets: no reading command prints one unless asked to; `scan` finds them all.

use serde_json::Value;
use unspool_testkit::home::Home;

use crate::{ID, home};

/// A token as GitHub makes them, put together here so that nobody finds one in this file.
fn token(fill: char) -> String {
    let body: String = ["x7Qa9ZpLm2", "Rt4VbN8cKd", "3Wf6HsJy1T", "g5Ue0i"].concat();
    format!("ghp_{}", body.replace('a', &fill.to_string()))
}

const VALUE: &str = "plain words of my vault";

/// A machine whose session has secrets wherever a command might take text from.
fn leaky() -> Home {
    let mut home = home();
    home.set("VAULT_PASSPHRASE", VALUE);
    let token = token('b');
    home.session(
        "/home/dev/x",
        ID,
        &format!(
            "
            you:    push with {token} and {VALUE}
            think:  {token} is a token, {VALUE} a value
            claude: I use {token} [Bash echo {token}] [Read {token}.rs] [Task look at {token}]
            result: Bash echo {token} {token} and {VALUE}
            result: Read {token}.rs {token}
            result: Task look at {token} found {token}
            claude: [Write /home/dev/x/{token}.txt]
            result: Write /home/dev/x/{token}.txt ok {token}
            claude: done with {token} and {VALUE}
            "
        ),
    );
    home.agent(
        "/home/dev/x",
        ID,
        "a0000001",
        &format!("you: look at {token}\nclaude: found {token}"),
    );
    let folder = format!(".claude/projects/-home-dev-x/{ID}");
    home.write(
        format!("{folder}/subagents/agent-a0000001.meta.json"),
        format!(r#"{{"agentType":"Explore","description":"look at {token}"}}"#),
    );
    home.write(
        format!("{folder}/tool-results/t1.txt"),
        format!("a\nb {token}\n"),
    );
    home.write(
        format!(".claude/file-history/{ID}/abc@v1"),
        format!("KEY={token}\n"),
    );
    home.write(
        ".claude/history.jsonl",
        format!(
            "{{\"display\":\"push {token}\",\"project\":\"/home/dev/x\",\"sessionId\":\"{ID}\"}}\n{{\"display\":\"other {token}\",\"sessionId\":\"other\"}}\n"
        ),
    );
    home
}

fn run(home: &Home, args: &[&str]) -> (String, Option<i32>) {
    let output = home.output(args);
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8(text).unwrap(), output.status.code())
}

/// Every command that shows something of a session, and whether it has texts of the session.
const COMMANDS: &[(&[&str], bool)] = &[
    (&["ls"], true),
    (&["ls", "--agents", "--all"], true),
    (&["show", ID], true),
    (
        &["show", ID, "--tools", "full", "--thinking", "--agents"],
        true,
    ),
    (&["show", ID, "--turn", "-1"], true),
    (&["show", ID, "--line", "2"], true),
    (&["show", ID, "--raw"], true),
    (&["show", ID, "--raw", "--turn", "1"], true),
    (&["show", ID, "--raw", "--line", "1"], true),
    (&["turns", ID], true),
    (&["turns", ID, "--calls"], true),
    (&["info", ID], false),
    (&["messages", ID], true),
    (&["export", ID, "--to", "html"], true),
    (&["export", ID, "--to", "md"], true),
    (&["export", ID, "--to", "txt"], true),
    (&["export", ID, "--to", "json"], true),
    (&["export", ID, "--to", "jsonl"], true),
    (&["export", ID, "--to", "messages"], true),
    (&["tree", ID], true),
    (&["agents", ID], true),
    (&["files", ID], true),
    (&["context", ID], true),
    (&["check", ID], false),
    (&["check", "--all"], false),
    (&["search", "push"], true),
    (&["usage"], false),
    (&["scan", ID], true),
    (&["scan", "--all"], true),
];

#[test]
fn no_reading_command_prints_a_secret_and_each_does_when_asked_to() {
    let home = leaky();
    let token = token('b');
    for (args, has_text) in COMMANDS {
        for json in [false, true] {
            let mut args = args.to_vec();
            args.extend(json.then_some("--json"));
            let (text, code) = run(&home, &args);
            assert!(matches!(code, Some(0 | 1)), "{args:?}: {text}");
            for secret in [&token[..], VALUE] {
                assert!(!text.contains(secret), "{args:?} prints {secret}: {text}");
            }
            assert!(
                !text.contains(&token[..12]),
                "{args:?} prints a half: {text}"
            );
            args.push("--reveal");
            let (text, _) = run(&home, &args);
            // A table may have no room for a whole token.
            let shown = text.contains(&token) || (!json && text.contains(&token[..12]));
            assert_eq!(shown, *has_text, "{args:?} with --reveal: {text}");
        }
    }
}

#[test]
fn sarif_is_masked_and_names_rules_and_places() {
    let home = leaky();
    let output = home.output(&["scan", ID, "--sarif"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains(&token('b')[..12]) && !text.contains(VALUE));
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["version"], "2.1.0");
    let results = document["runs"][0]["results"].as_array().unwrap();
    assert!(results.iter().any(|one| one["ruleId"] == "github-pat"));
    assert!(
        results
            .iter()
            .any(|one| one["ruleId"] == "VAULT_PASSPHRASE")
    );
}

#[test]
fn scan_names_every_file_and_line() {
    let home = leaky();
    let output = home.output(&["scan", ID, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let rows: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let at = |end: &str| -> Vec<&Value> {
        let is_there = |row: &&Value| row["path"].as_str().unwrap().ends_with(end);
        rows.iter().filter(is_there).collect()
    };
    assert_eq!(at("t1.txt")[0]["line"], 2);
    assert_eq!(at("t1.txt")[0]["column"], 3);
    assert_eq!(at("t1.txt")[0]["where"], "result");
    assert_eq!(at("abc@v1")[0]["where"], "file");
    assert_eq!(at("abc@v1")[0]["column"], 5);
    // Of the prompts of all sessions only those of this one.
    assert_eq!(at("history.jsonl").len(), 1);
    assert_eq!(at("history.jsonl")[0]["session"], ID);
    assert!(
        at("agent-a0000001.jsonl")
            .iter()
            .all(|row| row["agent"] == "a0000001")
    );
    assert_eq!(at("agent-a0000001.jsonl").len(), 2);
    let first = &at(&format!("{ID}.jsonl"))[0];
    assert_eq!(
        (&first["line"], &first["where"]),
        (&Value::from(1), &Value::from("prompt"))
    );
    assert_eq!(first["rule"], "github-pat");
    let hash = first["hash"].as_str().unwrap();
    let snippet = first["snippet"].as_str().unwrap();
    assert!(
        snippet.contains(&format!("[REDACTED:github-pat:{hash}]")),
        "{snippet}"
    );
    let same = rows.iter().filter(|row| row["rule"] == "github-pat");
    assert!(same.clone().count() > 10 && same.clone().all(|row| row["hash"] == hash));
    let all = home.output(&["scan", "--all", "--json"]);
    let all = String::from_utf8(all.stdout).unwrap();
    assert_eq!(all.lines().count(), rows.len() + 1);
}

#[test]
fn a_machine_without_secrets_is_clean() {
    let home = crate::home_with_session();
    let (text, code) = run(&home, &["scan", "--all"]);
    assert_eq!(code, Some(0), "{text}");
    let (text, code) = run(&home, &["scan", "nonesuch"]);
    assert_eq!(code, Some(1), "{text}");
}

/// Makes all files of the machine an hour older than its clock, so that nothing is in use.
fn age(home: &Home) {
    let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_767_600_000);
    let mut folders = vec![home.claude_dir()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let file = std::fs::File::options().append(true).open(&path);
                file.unwrap().set_modified(then).unwrap();
            }
        }
    }
}

fn transcript(home: &Home) -> String {
    let path = format!(".claude/projects/-home-dev-x/{ID}.jsonl");
    std::fs::read_to_string(home.path().join(path)).unwrap()
}

#[cfg(unix)]
#[test]
fn a_note_behind_a_link_is_named_and_does_not_keep_the_rest_from_being_redacted() {
    let home = leaky();
    home.write(format!("real/{ID}-agent-{ID}.json"), token('b'));
    let link = home.claude_dir().join("todos");
    std::os::unix::fs::symlink(home.path().join("real"), link).unwrap();
    age(&home);
    let (text, code) = run(&home, &["redact", ID, "--in-place"]);
    // What was asked for is not all done.
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("it is behind a symlink"), "{text}");
    assert!(!transcript(&home).contains(&token('b')));
}

#[test]
fn redacting_in_place_takes_every_secret_out_and_touches_nothing_else() {
    let home = leaky();
    let notes = [
        format!("todos/{ID}-agent-{ID}.json"),
        format!("tasks/{ID}/1.json"),
        format!("session-env/{ID}/env.sh"),
    ];
    for note in &notes {
        home.write(format!(".claude/{note}"), format!("[\"{}\"]", token('b')));
    }
    age(&home);
    let before = transcript(&home);
    let (text, code) = run(&home, &["redact", ID, "--in-place", "--dry-run"]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(transcript(&home), before);
    let output = home.output(&["redact", ID, "--in-place", "--json"]);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["session"], ID);
    assert!(result["undo"].is_u64());
    assert_eq!(result["side_files"], 8);
    for note in &notes {
        let text = std::fs::read_to_string(home.claude_dir().join(note)).unwrap();
        assert!(
            text.starts_with("[\"[REDACTED:github-pat:"),
            "{note}: {text}"
        );
    }
    assert_eq!(result["lines"]["dropped"], 0);
    let after = transcript(&home);
    let hashes = after.matches("[REDACTED:github-pat:").count();
    assert!(hashes > 5 && !after.contains(&token('b')) && !after.contains(VALUE));
    // Put back, the placeholders give the file as it was.
    let hash = |rule: &str| {
        let start = after.find(&format!("[REDACTED:{rule}:")).unwrap();
        let end = start + after[start..].find(']').unwrap() + 1;
        after[start..end].to_owned()
    };
    let back = after
        .replace(&hash("github-pat"), &token('b'))
        .replace(&hash("VAULT_PASSPHRASE"), VALUE);
    assert_eq!(back, before);
    let (text, code) = run(&home, &["scan", ID]);
    assert_eq!(code, Some(0), "{text}");
    let prompts = std::fs::read_to_string(home.claude_dir().join("history.jsonl")).unwrap();
    assert!(prompts.lines().next().unwrap().contains("[REDACTED:"));
    assert!(prompts.lines().nth(1).unwrap().contains(&token('b')));
    // Once more there is nothing to do.
    let (text, code) = run(&home, &["redact", ID, "--in-place"]);
    assert_eq!(code, Some(1), "{text}");
    // And everywhere: the prompt of the other session is left.
    let (text, code) = run(&home, &["redact", "--all", "--in-place"]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(run(&home, &["scan", "--all"]).1, Some(0));
}

#[test]
fn the_list_of_the_client_loses_the_secrets_of_the_session_and_nothing_else() {
    let home = leaky();
    let token = token('b');
    let entry = |id: &str| {
        let texts = format!(r#""firstPrompt" : "push {token}", "summary":"on\n{token}""#);
        let ways = format!(r#""fullPath":"/p/{token}","messageCount":4.0 "#);
        format!("{{ {texts} ,\n\"sessionId\":\"{id}\", {ways}}}")
    };
    let (other, own) = (entry("other"), entry(ID));
    let list = format!("{{\"version\":1, \"entries\":[{other},\n{own}] ,\"x\":2.0}}\n");
    let path = ".claude/projects/-home-dev-x/sessions-index.json";
    home.write(path, &list);
    age(&home);
    let read = || std::fs::read_to_string(home.path().join(path)).unwrap();
    let rows = String::from_utf8(home.output(&["scan", ID, "--json"]).stdout).unwrap();
    let named = rows.lines().filter(|row| row.contains("sessions-index"));
    assert_eq!(named.count(), 2, "{rows}");
    let (text, code) = run(&home, &["redact", ID, "--in-place"]);
    assert_eq!(code, Some(0), "{text}");
    let after = read();
    let start = after.find("[REDACTED:").unwrap();
    let placeholder = &after[start..start + after[start..].find(']').unwrap() + 1];
    assert_eq!(after.matches(placeholder).count(), 2);
    assert!(after.contains(&other) && after.contains(&format!("/p/{token}\"")));
    assert_eq!(after.replace(placeholder, &token), list);
    assert_eq!(run(&home, &["scan", ID]).1, Some(0));
    // Taken back, it is what it was; with all sessions, the other one loses them too.
    let (text, code) = run(&home, &["undo"]);
    assert_eq!((code, read()), (Some(0), list), "{text}");
    age(&home);
    let (text, code) = run(&home, &["redact", "--all", "--in-place"]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(read().matches(placeholder).count(), 4);
    assert_eq!(run(&home, &["scan", "--all"]).1, Some(0));
}

#[test]
fn a_session_in_use_is_not_redacted_in_place() {
    let home = leaky();
    age(&home);
    let me = std::process::id();
    home.write(
        format!(".claude/sessions/{me}.json"),
        format!(r#"{{"pid":{me},"sessionId":"{ID}"}}"#),
    );
    let before = transcript(&home);
    let (text, code) = run(&home, &["redact", ID, "--in-place"]);
    assert_eq!(code, Some(2), "{text}");
    assert_eq!(transcript(&home), before);
}

/// A second session, older than the clock, whose prompt says this.
fn other_session(home: &Home, last: &str, before: &str, prompt: &str) -> std::path::PathBuf {
    let id = format!("5e551000-0000-4000-8000-0000000000{last}");
    let path = home.session("/home/dev/x", &id, &format!("you: {prompt}\nclaude: ok"));
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{before}{text}")).unwrap();
    path
}

#[test]
fn a_file_that_begins_with_a_byte_order_mark_loses_its_secrets() {
    let home = home();
    let path = other_session(&home, "11", "\u{feff}", &token('b'));
    age(&home);
    let (text, code) = run(&home, &["redact", "--all", "--in-place"]);
    assert_eq!(code, Some(0), "{text}");
    let now = std::fs::read_to_string(path).unwrap();
    assert!(now.starts_with('\u{feff}') && !now.contains(&token('b')));
}

#[cfg(unix)]
#[test]
fn one_session_that_cannot_be_redacted_does_not_keep_the_others_from_it() {
    let home = home();
    let bad = other_session(&home, "11", "", &token('b'));
    let good = other_session(&home, "12", "", &token('b'));
    // Nothing is written through a link.
    let moved = home.path().join("elsewhere.jsonl");
    std::fs::rename(&bad, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &bad).unwrap();
    age(&home);
    let (text, code) = run(&home, &["redact", "--all", "--in-place"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains(&bad.display().to_string()), "{text}");
    assert!(text.contains("could not be changed"), "{text}");
    assert!(!text.contains("no secrets in"), "{text}");
    let secret = |path| std::fs::read_to_string(path).unwrap().contains(&token('b'));
    assert!(secret(&moved) && !secret(&good), "{text}");
}

#[test]
fn nobody_says_that_there_are_no_secrets_where_a_session_was_left_out() {
    let home = home();
    let path = other_session(&home, "11", "", &token('b'));
    let other = other_session(&home, "12", "", "hello");
    age(&home);
    let me = std::process::id();
    let in_use = |id: &std::path::Path| {
        let id = id.file_stem().unwrap().to_string_lossy().into_owned();
        let entry = format!(r#"{{"pid":{me},"sessionId":"{id}"}}"#);
        home.write(format!(".claude/sessions/{me}.json"), entry);
    };
    in_use(&path);
    let (text, code) = run(&home, &["redact", "--all", "--in-place"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("1 session with secrets in use"), "{text}");
    assert!(!text.contains("no secrets in"), "{text}");
    // One in use that holds none does not matter.
    std::fs::remove_file(&path).unwrap();
    in_use(&other);
    let (text, code) = run(&home, &["redact", "--all", "--in-place"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("no secrets in"), "{text}");
}
