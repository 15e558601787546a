//! No command lets anything but our own colours and cursor movements reach a terminal.
//!
//! Every command of the help runs in a real terminal, on sessions in which every text holds
//! every control character and the sequences that terminals obey. A command that is added
//! without a row here fails the test.
#![cfg(unix)]

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;

use serde_json::json;
use unspool_testkit::home::Home;

use crate::terminal::{ID, machine, poison};
use crate::tty::Terminal;

/// How a run ends.
#[derive(Clone, Copy)]
enum Ends {
    /// By itself.
    Itself,
    /// By a signal, once this is on the screen.
    Signal(&'static str),
}
use Ends::{Itself, Signal};

/// Sessions that are whole, with titles that are not.
/// What is in the trash.
const DELETED: &str = "e5ca9e00-0000-4000-8000-00000000000d";
const SECOND: &str = "e5ca9e00-0000-4000-8000-000000000002";
const THIRD: &str = "e5ca9e00-0000-4000-8000-000000000003";

/// What is tried of each command.
const RUNS: &[(&str, &[&str], Ends)] = &[
    ("ls", &["--all", "--agents"], Itself),
    ("ls", &["--json"], Itself),
    (
        "show",
        &[ID, "--thinking", "--agents", "--tools", "full"],
        Itself,
    ),
    ("show", &[ID, "--raw"], Itself),
    ("show", &[ID, "--json"], Itself),
    ("turns", &[ID, "--calls"], Itself),
    ("turns", &[ID, "--json"], Itself),
    ("info", &[ID], Itself),
    ("info", &[ID, "--json"], Itself),
    ("messages", &[ID], Itself),
    ("tree", &[ID], Itself),
    ("tree", &[ID, "--json"], Itself),
    ("agents", &[ID], Itself),
    ("agents", &[ID, "--json"], Itself),
    ("files", &[ID], Itself),
    ("files", &[ID, "--json"], Itself),
    (
        "restore",
        &["/home/dev/x/note.txt", "--at", "-1", "--session", ID],
        Itself,
    ),
    ("context", &[ID], Itself),
    ("check", &["--all"], Itself),
    ("check", &["--all", "--json"], Itself),
    ("scan", &["--all"], Itself),
    ("scan", &["--all", "--sarif"], Itself),
    ("clone", &[ID, "--dry-run"], Itself),
    ("clone", &[SECOND, "--json"], Itself),
    ("repair", &[ID, "--dry-run"], Itself),
    ("merge", &[SECOND, THIRD, "--dry-run"], Itself),
    ("redact", &[ID, "--dry-run"], Itself),
    ("export", &[ID, "--to", "md"], Itself),
    ("export", &[ID, "--to", "txt"], Itself),
    ("export", &[ID, "--to", "json"], Itself),
    ("export", &[ID, "--to", "jsonl"], Itself),
    ("export", &[ID, "--to", "messages", "-o", "-"], Itself),
    ("send", &[ID, "--to", "otlp", "--dry-run"], Itself),
    ("send", &[ID, "--to", "otlp", "--dry-run", "--json"], Itself),
    ("search", &["word"], Itself),
    ("search", &["word", "--json"], Itself),
    ("usage", &["--by", "model"], Itself),
    ("usage", &["--by", "model", "--json"], Itself),
    ("prices", &[], Itself),
    ("move", &["/home/dev/x", ".", "--dry-run"], Itself),
    ("sql", &["SELECT * FROM sessions"], Itself),
    ("sql", &["SELECT * FROM calls", "--json"], Itself),
    ("sql", &["SELECT * FROM calls", "--csv"], Itself),
    ("sql", &["SELECT * FROM calls", "--excel"], Itself),
    ("index", &["status"], Itself),
    ("hook", &["status"], Itself),
    ("chat", &["-p", "hi"], Itself),
    ("serve", &["--port", "0"], Signal("127.0.0.1")),
    ("status", &[], Itself),
    ("status", &["--json"], Itself),
    ("watch", &[], Signal("word")),
    ("watch", &["--json"], Signal("word")),
    ("daemon", &["status"], Itself),
    (
        "rename",
        &[SECOND, "new\u{9b}31m\u{202e}\u{1b}]0;x\u{7}"],
        Itself,
    ),
    (
        "tag",
        &[SECOND, "seen\u{9b}31m\u{202e}\u{1b}]0;x\u{7}"],
        Itself,
    ),
    ("delete", &[SECOND, "--dry-run"], Itself),
    ("archive", &[SECOND], Itself),
    ("archive", &["--list", "--json"], Itself),
    ("undo", &["--list"], Itself),
    ("log", &[], Itself),
    ("log", &["--json"], Itself),
    ("schema", &["session"], Itself),
    ("delete", &["--list"], Itself),
    ("delete", &["--list", "--json"], Itself),
];

/// Data of the transcript that has to be seen: what shows nothing is harmless, too.
const SHOWN: &[&str] = &[
    "show", "messages", "restore", "export", "sql", "search", "turns",
];

fn hostile() -> Home {
    let mut home = machine();
    for id in [SECOND, THIRD, DELETED] {
        let title = json!({"type": "custom-title", "customTitle": poison(), "sessionId": id});
        let path = home.session("/home/dev/x", id, "you: word\nclaude: word");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}{title}\n")).unwrap();
    }
    home.set("PAGER", "cat")
        .set("LANG", &poison().replace('\0', ""));
    home.run(&["delete", DELETED]);
    home
}

/// The names in the groups of commands.
fn commands(home: &Home) -> Vec<String> {
    let help = home.run(&["--help"]);
    let (_, list) = help.split_once("Read sessions:\n").unwrap();
    let (list, _) = list.split_once("\nOptions:\n").unwrap();
    let lines = list.lines().filter(|line| line.starts_with("  "));
    let names = lines.filter(|line| !line.starts_with("   "));
    let names = names.map(|line| line.split_whitespace().next().unwrap().to_owned());
    names.filter(|name| name != "help").collect()
}

fn run(home: &Home, args: &[&OsStr], ends: Ends) -> (Vec<u8>, u32) {
    let mut command = home.command();
    command.args(args);
    let mut terminal = Terminal::of(&command, 40, 200);
    if let Signal(text) = ends {
        terminal.shows(text);
        terminal.signal("-TERM");
    }
    let code = terminal.ends();
    (terminal.bytes(), code)
}

/// What a terminal would obey, beside line ends, progress bars and, in colour, our own colours.
fn foreign(bytes: &[u8], colors: bool) -> Vec<String> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return vec!["bytes that are no text".to_owned()];
    };
    let text = text
        .replace("\r\r\n", "\n")
        .replace("\r\n", "\n")
        .replace("\r\x1b[K", "");
    let mut found = Vec::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(is_obeyed) {
        let here = &rest[at..];
        rest = match own(here, colors) {
            Some(length) => &here[length..],
            None => {
                found.push(here.chars().take(12).collect());
                &here[here.chars().next().unwrap().len_utf8()..]
            }
        };
    }
    found
}

fn is_obeyed(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
}

/// The length of a sequence that only sets colours of ours.
fn own(text: &str, colors: bool) -> Option<usize> {
    let codes = text.strip_prefix("\x1b[").filter(|_| colors)?;
    let end = codes.find('m')?;
    let is_own = |code: &str| match code.parse::<u8>() {
        Ok(code) => matches!(code, 0..=4 | 9 | 30..=37 | 90..=97),
        Err(_) => code.is_empty(),
    };
    codes[..end].split(';').all(is_own).then_some(end + 3)
}

#[test]
fn every_command_is_tried() {
    let home = hostile();
    let names = commands(&home);
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        assert!(
            RUNS.iter().any(|(run, ..)| *run == name),
            "`{name}` is not tried on a terminal"
        );
    }
}

#[test]
fn no_command_lets_a_transcript_speak_to_the_terminal() {
    let home = hostile();
    for (name, args, ends) in RUNS {
        let drawn = *name == "watch" && args.is_empty();
        for color in ["never", "always"] {
            let words = [*name, "--color", color]
                .into_iter()
                .chain(args.iter().copied());
            let words: Vec<&OsStr> = words.map(OsStr::new).collect();
            let (bytes, code) = run(&home, &words, *ends);
            let text = String::from_utf8_lossy(&bytes);
            assert!(
                matches!(ends, Signal(_)) || code <= 2,
                "{words:?} ended with {code}: {text}"
            );
            if !matches!(*name, "chat" | "send" | "daemon") {
                assert!(
                    !text.contains("Usage:") && !text.contains("Error:"),
                    "{words:?}: {text}"
                );
            }
            if SHOWN.contains(name) {
                assert!(text.contains("word"), "{words:?}: {text}");
            }
            let text = if drawn {
                undrawn(&text)
            } else {
                text.into_owned()
            };
            let found = foreign(text.as_bytes(), color == "always" || drawn);
            assert!(found.is_empty(), "{words:?} lets through {found:?}");
        }
    }
}

/// A screen without the sequences that draw it; those of the transcripts name other places.
fn undrawn(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("\x1b[") {
        out.push_str(before);
        let end = behind
            .find(|c: char| !c.is_ascii_digit() && !";?".contains(c))
            .unwrap_or(behind.len());
        let ours = behind[end..].starts_with(['H', 'K', 'J', 'h', 'l'])
            && !behind[..end].contains("987")
            && !behind[..end].contains("1337");
        match ours {
            true => rest = &behind[end + 1..],
            false => {
                out.push_str("\x1b[");
                rest = behind;
            }
        }
    }
    out + rest
}

#[test]
fn the_browser_draws_only_what_it_was_told_to() {
    let home = hostile();
    let mut terminal = Terminal::start(&home, 40, 120, &[]);
    terminal.shows("word");
    terminal.press("\r");
    terminal.until("a session", |screen| {
        screen.contains("word") && screen.contains("Edit Bash")
    });
    terminal.signal("-TERM");
    terminal.ends();
    let bytes = terminal.bytes();
    let text = std::str::from_utf8(&bytes).unwrap();
    for sign in [
        "987;654", "?1337h", "\x1b[8m", "\x1b]", "\x1bP", "\x1b_", "\x1b^", "\x1bX", "\x1bc",
        "\u{9b}", "\u{9d}", "\u{202e}", "\u{7f}",
    ] {
        assert!(!text.contains(sign), "the browser draws {sign:?}");
    }
}

#[test]
fn an_argument_that_is_wrong_is_told_harmlessly() {
    let home = hostile();
    let sequences = "--\x1b]0;pwned\x07\u{9b}31m\x1b[8m\u{202e}\u{7f}\rx";
    let mut bytes = sequences.as_bytes().to_vec();
    bytes.extend([0xff, 0x9b]);
    let odd = [OsString::from(sequences), OsString::from_vec(bytes)];
    for name in commands(&home).iter().map(OsStr::new) {
        for odd in &odd {
            let (bytes, code) = run(&home, &[name, odd], Itself);
            let found = foreign(&bytes, false);
            assert!(found.is_empty(), "{name:?} lets through {found:?}");
            assert!(code <= 2, "{name:?} ended with {code}");
        }
    }
    let (bytes, code) = run(&home, &[OsStr::new(sequences)], Itself);
    assert_eq!(code, 2);
    let told = String::from_utf8(bytes).unwrap();
    assert!(
        told.contains("\\u001b]0;pwned\\u0007\\u009b31m"),
        "{told:?}"
    );
}

#[test]
fn rows_on_a_terminal_mean_what_rows_in_a_pipe_mean() {
    let home = hostile();
    let args = ["messages", ID];
    let piped = home.output(&args).stdout;
    let words = args.map(OsStr::new);
    let (shown, _) = run(&home, &words, Itself);
    assert_ne!(piped, shown);
    let read = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).unwrap();
    assert_eq!(read(&piped), read(&shown));
}

#[test]
fn a_restored_file_is_exact_in_a_pipe() {
    let home = hostile();
    let args = [
        "restore",
        "/home/dev/x/note.txt",
        "--at",
        "-1",
        "--session",
        ID,
    ];
    assert_eq!(home.output(&args).stdout, poison().into_bytes());
    let (shown, _) = run(&home, &args.map(OsStr::new), Itself);
    let shown = String::from_utf8(shown).unwrap();
    assert!(
        shown.contains("\\u001b[987;654H") && shown.contains("\\u009b2J"),
        "{shown:?}"
    );
}
