//! Control codes in every text of a session, shown by every reading command on a terminal.
//!
//! What a terminal gets may hold line ends, our own colours and the codes that move the cursor,
//! nothing else: no title is set, no link or clipboard is written, no text changes direction.

use std::io::Read;
use std::path::Path;

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use serde_json::json;
use unspool_testkit::home::Home;

use super::AttackLog;

const ID: &str = "c0de0000-0000-4000-8000-000000000001";

/// Sequences that act on a careless terminal.
fn sequences() -> Vec<String> {
    let mut all: Vec<String> = [
        "\u{1b}]0;pwned\u{7}",
        "\u{1b}]8;;http://evil.example\u{1b}\\link\u{1b}]8;;\u{1b}\\",
        "\u{1b}]52;c;cHduZWQ=\u{7}",
        "\u{1b}]1337;File=inline=1:AAAA\u{7}",
        "\u{1b}[2J\u{1b}[H",
        "\u{1b}[8m hidden \u{1b}[28m",
        "\u{1b}[6n",
        "\u{1b}c",
        "\u{1b}P$qm\u{1b}\\",
        "\u{1b}_apc\u{1b}\\",
        "\u{1b}^pm\u{1b}\\",
        "\u{1b}Xsos\u{1b}\\",
        "\u{9b}2J",
        "\u{9d}0;pwned\u{9c}",
        "\u{90}dcs\u{9c}",
        "\u{7f}\u{7f}\u{8}\u{8}",
        "a\rb",
        "\u{202e}reversed\u{202c}",
        "\u{2066}isolated\u{2069}",
        "\u{200b}\u{200e}\u{200f}\u{2060}\u{feff}",
        "\u{e}shift\u{f}",
    ]
    .map(str::to_owned)
    .to_vec();
    all.extend(
        (0..0xa0u32)
            .filter_map(char::from_u32)
            .filter(|c| c.is_control())
            .map(String::from),
    );
    all
}

/// Commands that show what a session says.
const COMMANDS: &[&[&str]] = &[
    &["ls"],
    &["ls", "--json"],
    &["show", ID],
    &["show", ID, "--json"],
    &["show", ID, "--raw"],
    &["show", ID, "--thinking", "--tools", "full"],
    &["turns", ID],
    &["turns", ID, "--calls", "--json"],
    &["info", ID],
    &["info", ID, "--json"],
    &["messages", ID],
    &["tree", ID],
    &["tree", ID, "--json"],
    &["agents", ID],
    &["files", ID],
    &["files", ID, "--json"],
    &["context", ID],
    &["context", ID, "--json"],
    &["check", ID],
    &["check", "--all", "--json"],
    &["search", "pwned"],
    &["search", "pwned", "--json"],
    &["usage"],
    &["usage", "project"],
    &["usage", "session", "--json"],
    &["sql", "SELECT * FROM sessions"],
    &["sql", "SELECT * FROM turns", "--json"],
    &["sql", "SELECT * FROM messages", "--csv"],
    &["scan", "--all"],
    &["status"],
    &["export", ID, "--to", "md", "-o", "-"],
    &["export", ID, "--to", "txt", "-o", "-"],
    &["export", ID, "--to", "json", "-o", "-"],
    &["export", ID, "--to", "jsonl", "-o", "-"],
    &["export", ID, "--to", "html", "-o", "-"],
    &[
        "restore",
        "/home/dev/x/a\u{1b}]0;pwned\u{7}.rs",
        "--at",
        "1",
    ],
    &["clone", ID, "--dry-run"],
    &["redact", ID, "--dry-run"],
    &["repair", ID, "--dry-run"],
    &["log"],
    &["rename", ID, "\u{1b}]0;pwned\u{7}", "--help"],
    &["show", "\u{1b}]0;pwned\u{7}"],
    &["\u{1b}]0;pwned\u{7}"],
    &["ls", "--\u{9b}2Jpwned"],
    &["ls", "--since", "\u{202e}\u{7f}"],
];

pub fn run(program: &Path, log: &mut AttackLog) -> Result<(), String> {
    let mut home = Home::new(program);
    home.set("TERM", "xterm-256color")
        .set("PAGER", "cat")
        .set("UNSPOOL_PAGER", "cat");
    home.transcript("/home/dev/x", ID, transcript());
    for command in COMMANDS {
        let said = on_a_terminal(&home, command)?;
        let wrong = foreign_codes(&said);
        log.held(wrong.is_empty(), || {
            format!(
                "`{}` printed {}",
                command.join(" ").escape_debug(),
                wrong.join(", ")
            )
        });
    }
    Ok(())
}

/// A session with every sequence in every text that a command shows.
fn transcript() -> Vec<u8> {
    let mut lines = Vec::new();
    let mut parent = serde_json::Value::Null;
    let mut add = |mut line: serde_json::Value| {
        let uuid = format!("{:08x}-0000-4000-8000-000000000002", lines.len());
        line["uuid"] = json!(uuid);
        line["parentUuid"] = parent.clone();
        line["timestamp"] = json!("2026-01-05T11:00:00.000Z");
        line["sessionId"] = json!(ID);
        parent = json!(uuid);
        lines.push(line.to_string());
    };
    for (number, bad) in sequences().iter().enumerate() {
        let text = format!("pwned {bad} pwned");
        let call = format!("toolu_{number}");
        let cwd = format!("/home/dev/x{bad}");
        let common = json!({"cwd": cwd, "gitBranch": text, "version": "2.1.325", "slug": text});
        let with = |extra: serde_json::Value| {
            let mut line = common.clone();
            for (key, value) in extra.as_object().into_iter().flatten() {
                line[key] = value.clone();
            }
            line
        };
        add(with(
            json!({"type": "user", "message": {"role": "user", "content": text}}),
        ));
        add(with(json!({"type": "assistant", "message": {
            "id": format!("msg_{number}"), "type": "message", "role": "assistant",
            "model": format!("claude-{bad}"),
            "content": [
                {"type": "thinking", "thinking": text, "signature": "x"},
                {"type": "text", "text": text},
                {"type": "tool_use", "id": call, "name": format!("Bash{bad}"),
                 "input": {"command": text, "file_path": format!("/home/dev/x/a{bad}.rs"), "description": text}},
            ],
            "usage": {"input_tokens": 1, "output_tokens": 1}}})));
        add(with(
            json!({"type": "user", "message": {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": number % 2 == 0}]},
            "toolUseResult": {"stdout": text, "stderr": text, "filePath": format!("/home/dev/x/a{bad}.rs")}}),
        ));
        add(with(
            json!({"type": "system", "subtype": "informational", "content": text, "level": "info"}),
        ));
    }
    let text = "pwned \u{1b}]0;pwned\u{7}\u{9b}2J\u{202e}";
    lines.push(json!({"type": "summary", "summary": text, "leafUuid": "x"}).to_string());
    lines.push(json!({"type": "custom-title", "customTitle": text, "sessionId": ID}).to_string());
    lines.push(json!({"type": format!("new{text}"), "sessionId": ID}).to_string());
    (lines.join("\n") + "\n").into_bytes()
}

/// What a command writes to a terminal of its own.
fn on_a_terminal(home: &Home, args: &[&str]) -> Result<Vec<u8>, String> {
    let told = |error: &dyn std::fmt::Display| error.to_string();
    let size = PtySize {
        rows: 50,
        cols: 120,
        pixel_width: 0,
        pixel_height: 0,
    };
    let pair = native_pty_system()
        .openpty(size)
        .map_err(|error| told(&error))?;
    let command = home.command();
    let mut builder = CommandBuilder::new(command.get_program());
    builder.env_clear();
    for (name, value) in command.get_envs() {
        builder.env(name, value.unwrap_or_default());
    }
    builder.cwd(command.get_current_dir().unwrap_or(Path::new(".")));
    builder.args(args);
    let mut child = pair
        .slave
        .spawn_command(builder)
        .map_err(|error| told(&error))?;
    drop(pair.slave);
    let mut reader = pair
        .master
        .try_clone_reader()
        .map_err(|error| told(&error))?;
    let mut said = Vec::new();
    // The end of a terminal is an error on Linux.
    let _ = reader.read_to_end(&mut said);
    child.wait().map_err(|error| told(&error))?;
    Ok(said)
}

/// The codes in an output that are not ours.
fn foreign_codes(said: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(said);
    let mut wrong = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let is_fine = match c {
            '\n' | '\t' => true,
            // The terminal itself ends lines so.
            '\r' => matches!(rest.peek(), Some('\n' | '\r')),
            '\u{1b}' => own_code(&mut rest),
            _ => !c.is_control() && !is_formatting(c),
        };
        if !is_fine {
            wrong.push(format!("U+{:04X}", c as u32));
        }
    }
    wrong.dedup();
    wrong.truncate(5);
    wrong
}

/// Whether what follows an escape is a colour or a movement of the cursor.
fn own_code(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    if rest.next() != Some('[') {
        return false;
    }
    for c in rest.by_ref() {
        match c {
            '0'..='9' | ';' | '?' => {}
            'm' | 'K' => return true,
            _ => return false,
        }
    }
    false
}

/// Characters that turn or hide text.
fn is_formatting(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{061c}'
        | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
