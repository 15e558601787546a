//! Nothing in a transcript speaks to the terminal.
//!
//! A session in which every text, title, tool, path, model and even the folder
//! names hold every control byte and the sequences that terminals obey, through
//! every command: what comes out holds no control character but line ends and
//! tabs, and with colours only our own (SGR).

use serde_json::{Value, json};
use unspool_testkit::home::Home;

use crate::home;

pub const ID: &str = "e5ca9e00-0000-4000-8000-000000000001";

/// Every character that a terminal might obey: C0, DEL, C1, direction, zero width, tags.
pub fn poison() -> String {
    let controls: String = (0..0xa0u32)
        .filter_map(char::from_u32)
        .filter(|c| c.is_control())
        .collect();
    let sequences = "\x1b[2J\x1b[31mred\x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x1b]52;c;aGk=\x07\x1bPq#0\x1b\\\x1b_x\x1b\\\u{9b}2J\u{9d}0;t\u{9c}\x1b[987;654H\x1b[?1337h\x1b[8m\x1b]1337;File=:eA==\x07\x1b^x\x1b\\\x1bXx\x1b\\\x1bc";
    let direction = "\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}\u{200e}\u{200f}\u{61c}\u{200b}\u{2060}\u{feff}\u{e0041}\u{ad}";
    format!("word{controls}{sequences}{direction}\r\rend")
}

fn lines() -> Vec<Value> {
    let bad = poison();
    let line = |n: usize, rest: Value| {
        let mut line = json!({
            "uuid": format!("00000000-0000-4000-8000-0000000000{n:02}"),
            "parentUuid": (n > 1).then(|| format!("00000000-0000-4000-8000-0000000000{:02}", n - 1)),
            "sessionId": ID, "isSidechain": false, "cwd": format!("/home/{bad}"), "version": format!("2.1.45{bad}"),
            "gitBranch": bad, "slug": bad, "permissionMode": bad, "entrypoint": bad,
            "timestamp": format!("2026-01-05T10:00:{n:02}.000Z"),
        });
        line.as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        line
    };
    let reply = |n: usize, block: Value| {
        line(
            n,
            json!({"type": "assistant", "message": {"id": format!("m{n}"), "role": "assistant", "model": bad,
            "content": [block], "stop_reason": bad, "usage": {"input_tokens": 9, "output_tokens": 9}}}),
        )
    };
    let call = |n: usize, id: &str, name: &str, input: Value| {
        reply(
            n,
            json!({"type": "tool_use", "id": id, "name": name, "input": input}),
        )
    };
    let result = |n: usize, id: &str, error: bool| {
        line(
            n,
            json!({"type": "user", "toolUseResult": {"stdout": bad, "stderr": bad, "filePath": bad},
            "message": {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": id, "content": bad, "is_error": error}]}}),
        )
    };
    vec![
        json!({"type": "custom-title", "customTitle": bad, "sessionId": ID}),
        json!({"type": "summary", "summary": bad, "leafUuid": bad}),
        json!({"type": "queue-operation", "operation": "enqueue", "content": bad, "timestamp": "2026-01-05T10:00:00.000Z"}),
        json!({"type": "pr-link", "prNumber": 1, "prUrl": bad, "prRepository": bad, "sessionId": ID, "timestamp": "2026-01-05T10:00:00.000Z"}),
        line(
            1,
            json!({"type": "user", "message": {"role": "user", "content": bad}}),
        ),
        reply(
            2,
            json!({"type": "thinking", "thinking": bad, "signature": bad}),
        ),
        reply(
            3,
            json!({"type": "text", "text": format!("# {bad}\n`{bad}`\n```{bad}\n{bad}\n```\n| {bad} |\n|---|\n[{bad}](http://{bad})")}),
        ),
        call(
            4,
            "t1",
            "Edit",
            json!({"file_path": bad, "old_string": bad, "new_string": format!("x{bad}")}),
        ),
        result(5, "t1", false),
        call(6, "t2", "Bash", json!({"command": bad, "description": bad})),
        result(7, "t2", true),
        call(8, &format!("t3{bad}"), &bad, json!({bad.clone(): bad})),
        result(9, &format!("t4{bad}"), true),
        call(
            10,
            "t5",
            "Task",
            json!({"description": bad, "prompt": bad, "subagent_type": bad}),
        ),
        line(
            11,
            json!({"type": "system", "subtype": bad, "content": bad, "level": bad}),
        ),
        line(
            12,
            json!({"type": "system", "subtype": "compact_boundary", "content": bad, "compactMetadata": {"trigger": bad, "preTokens": 1}}),
        ),
        line(
            13,
            json!({"type": "user", "isCompactSummary": true, "message": {"role": "user", "content": bad}}),
        ),
        line(
            14,
            json!({"type": "user", "message": {"role": "user", "content": format!("<command-name>{bad}</command-name><command-args>{bad}</command-args>")}}),
        ),
        line(
            15,
            json!({"type": "system", "subtype": "local_command", "content": format!("<local-command-stdout>{bad}</local-command-stdout>")}),
        ),
        line(
            16,
            json!({"type": "system", "subtype": "api_error", "error": {"message": bad}, "retryAttempt": 1, "maxRetries": 2}),
        ),
        line(
            17,
            json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": bad}}),
        ),
        line(
            18,
            json!({"type": "attachment", "attachment": {"type": "hook_blocking_error", "hookName": bad, "blockingError": {"blockingError": bad}}}),
        ),
        line(19, json!({"type": bad, bad.clone(): bad})),
        line(
            20,
            json!({"type": "user", "message": {"role": "user", "content": [{"type": bad, bad.clone(): bad}, {"type": "text", "text": bad}]}}),
        ),
        line(
            21,
            json!({"type": "assistant", "isApiErrorMessage": true, "error": bad, "message": {"id": "m21", "role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": bad}]}}),
        ),
        line(
            22,
            json!({"type": "user", "message": {"role": "user", "content": "write it"}}),
        ),
        call(
            23,
            "t6",
            "Write",
            json!({"file_path": "/home/dev/x/note.txt", "content": bad}),
        ),
        result(24, "t6", false),
    ]
}

pub fn machine() -> Home {
    let home = home();
    let mut text: String = lines().iter().map(|line| format!("{line}\n")).collect();
    // Also as raw bytes, which are no JSON.
    text.push_str(&format!(
        "{{\"type\":\"user\",\"x\":\"{}\"\n",
        poison().replace('\n', "")
    ));
    let mut bytes = text.into_bytes();
    bytes.extend((0u8..=255).filter(|byte| *byte != b'\n'));
    bytes.push(b'\n');
    home.transcript("/home/dev/x", ID, &bytes);
    let folder = format!(".claude/projects/-home-dev-x/{ID}/subagents");
    let agent: String = lines()
        .iter()
        .skip(4)
        .map(|line| format!("{line}\n"))
        .collect();
    home.write(format!("{folder}/agent-a1.jsonl"), agent);
    let meta = json!({"agentType": poison(), "description": poison(), "toolUseId": "t5"});
    home.write(format!("{folder}/agent-a1.meta.json"), meta.to_string());
    home
}

const COMMANDS: &[&[&str]] = &[
    &[],
    &["ls"],
    &["ls", "--all", "--agents"],
    &["show", ID, "--thinking", "--agents", "--tools", "full"],
    &["show", ID, "--thinking", "--tools", "short"],
    &["show", ID, "--tools", "none"],
    &["turns", ID],
    &["turns", ID, "--calls"],
    &["info", ID],
    &["tree", ID],
    &["agents", ID],
    &["files", ID],
    &["context", ID],
    &["check", ID],
    &["check", "--all"],
    &["--verbose", "ls"],
];

/// What a terminal would obey in the text, beside line ends and tabs.
fn obeyed(text: &str) -> Vec<char> {
    let direction = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}');
    text.chars()
        .filter(|c| (c.is_control() && !matches!(c, '\n' | '\t')) || direction(*c))
        .collect()
}

/// The text without the sequences that only set colours.
fn without_colours(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("\x1b[") {
        out.push_str(before);
        let digits = behind
            .find(|c: char| !c.is_ascii_digit() && c != ';')
            .unwrap_or(behind.len());
        if behind[digits..].starts_with('m') {
            rest = &behind[digits + 1..];
        } else {
            out.push('\x1b');
            rest = behind;
        }
    }
    out.push_str(rest);
    out
}

fn check(colour: &str, clean: impl Fn(&str) -> String) {
    let home = machine();
    for command in COMMANDS {
        let output = home.output(&[command, &["--color", colour][..]].concat());
        assert!(
            matches!(output.status.code(), Some(0 | 1)),
            "{command:?}: {output:?}"
        );
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.lines().count() > 1, "{command:?}: {output:?}");
        if command.contains(&"show") {
            assert!(said.contains("word") && said.contains("end"), "{said}");
        }
        for bytes in [&output.stdout, &output.stderr] {
            let text =
                std::str::from_utf8(bytes).unwrap_or_else(|_| panic!("{command:?} prints bytes"));
            let bad = obeyed(&clean(text));
            let line = text.lines().find(|line| !obeyed(&clean(line)).is_empty());
            assert!(
                bad.is_empty(),
                "{command:?} prints {bad:?}, first in {line:?}"
            );
        }
    }
}

#[test]
fn no_control_character_of_a_transcript_reaches_the_terminal() {
    check("never", str::to_owned);
}

#[test]
fn with_colours_only_colours_reach_the_terminal() {
    check("always", without_colours);
}

#[test]
fn an_error_does_not_print_what_it_was_given() {
    let home = machine();
    let odd = format!("\x1b[31m{}", poison().replace('\0', ""));
    for args in [
        vec!["show", &odd],
        vec!["ls", "--claude-dir", &odd],
        vec!["ls", "--timezone", &odd],
        vec!["messages", ID, "--claude-version", &odd],
        vec!["restore", &odd, "--at", "1", "--session", ID],
    ] {
        let output = home.output(&args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(obeyed(&stderr), [] as [char; 0], "{}: {stderr:?}", args[0]);
        assert!(
            matches!(output.status.code(), Some(1 | 2)),
            "{}: {stderr:?}",
            args[0]
        );
    }
}

#[test]
fn the_poison_holds_what_it_says() {
    let poison = poison();
    assert!(
        ('\0'..='\u{9f}')
            .filter(|c| c.is_control())
            .all(|c| poison.contains(c))
    );
    assert_eq!(
        obeyed(&without_colours("a\x1b[1;31mb\x1b[0m\tc\n")),
        [] as [char; 0]
    );
    assert_eq!(obeyed(&without_colours("\x1b[2J\u{9b}")).len(), 2);
}
