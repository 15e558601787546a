//! The browser in a terminal of its own: what it shows, what it obeys, what it leaves behind.
#![cfg(unix)]

use std::time::{Duration, Instant};

use unspool_testkit::attacks;

use crate::tty::{PATIENCE, Terminal};
use crate::{ID, home, home_with_session};

#[test]
fn the_browser_lists_searches_opens_and_leaves_the_terminal_as_it_was() {
    let home = home_with_session();
    let mut terminal = Terminal::start(&home, 24, 80, &[]);
    terminal.shows("fix it");
    terminal.shows("1 session");
    terminal.press("wel");
    terminal.shows("in conversations");
    terminal.press("\r");
    terminal.shows("fix it");
    terminal.press("?");
    terminal.shows("find in the session");
    terminal.press("?");
    terminal.press("\x1b");
    terminal.shows("❯ wel");
    terminal.press("\x1b");
    terminal.shows("type to search");
    terminal.press("q");
    assert_eq!(terminal.ends(), 0);
    terminal.is_as_before();
}

#[test]
fn it_opens_on_the_latest_session_of_the_directory() {
    let home = home();
    let here = home.work_dir().canonicalize().unwrap();
    home.session(
        here.to_str().unwrap(),
        ID,
        "you: what is here\nclaude: nothing but us",
    );
    let mut terminal = Terminal::start(&home, 24, 100, &[]);
    terminal.shows("nothing but us");
    // What is written meanwhile is shown at once.
    let path = home.session(
        here.to_str().unwrap(),
        ID,
        "you: what is here\nclaude: nothing but us\nyou: and now\nclaude: something new",
    );
    assert!(path.exists());
    terminal.shows("something new");
    terminal.press("\x03");
    assert_eq!(terminal.ends(), 0);
    terminal.is_as_before();
}

#[test]
fn without_sessions_it_shows_the_demo_and_says_so() {
    let mut home = home();
    home.set("CLAUDE_CONFIG_DIR", "");
    let mut terminal = Terminal::start(&home, 24, 80, &[]);
    terminal.shows("bundled demo");
    terminal.shows("5 sessions");
    terminal.press("q");
    assert_eq!(terminal.ends(), 0);
    terminal.is_as_before();
}

#[test]
fn a_signal_to_end_leaves_the_terminal_as_it_was() {
    let home = home_with_session();
    for (signal, args) in ["-TERM", "-HUP", "-INT"]
        .into_iter()
        .flat_map(|signal| [(signal, &[][..]), (signal, &["watch"][..])])
    {
        let mut terminal = Terminal::start(&home, 24, 80, args);
        terminal.shows("1 session");
        terminal.signal(signal);
        terminal.ends();
        terminal.is_as_before();
    }
}

#[test]
fn a_mistake_of_ours_is_told_on_a_terminal_that_is_as_it_was() {
    let mut home = home_with_session();
    home.set("UNSPOOL_FAIL_AT_FRAME", "3");
    let mut terminal = Terminal::start(&home, 24, 80, &[]);
    assert_eq!(terminal.ends(), 101);
    terminal.shows("a failure that was asked for");
    terminal.is_as_before();
}

#[test]
fn it_can_be_put_to_sleep_and_called_back() {
    let home = home_with_session();
    let mut terminal = Terminal::start(&home, 24, 80, &[]);
    terminal.shows("1 session");
    terminal.press("\x1a");
    let start = Instant::now();
    while !terminal.is_stopped() {
        assert!(start.elapsed() < PATIENCE, "it does not sleep");
        std::thread::sleep(Duration::from_millis(20));
    }
    terminal.is_as_before();
    terminal.signal("-CONT");
    terminal.shows("1 session");
    assert!(terminal.said.lock().unwrap().0.screen().alternate_screen());
    terminal.press("q");
    assert_eq!(terminal.ends(), 0);
    terminal.is_as_before();
}

#[test]
fn resuming_runs_the_client_and_comes_back() {
    let mut home = home();
    let here = home.work_dir();
    home.session(here.to_str().unwrap(), ID, "you: hi\nclaude: hello");
    let client = home.write(
        "bin/claude",
        "#!/bin/sh\necho \"CLIENT $* in $PWD\"\nread line\necho \"got $line\"\n",
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&client, mode).unwrap();
    let path = format!("{}:/usr/bin:/bin", client.parent().unwrap().display());
    home.set("PATH", &path);
    let mut terminal = Terminal::start(&home, 24, 200, &[]);
    terminal.shows("hello");
    terminal.press("r");
    let screen = terminal.shows("CLIENT --resume");
    assert!(
        screen.contains(ID) && screen.contains("project"),
        "{screen}"
    );
    assert!(!terminal.said.lock().unwrap().0.screen().alternate_screen());
    // Keys are the client's now; a signal to it does not end us.
    terminal.signal("-INT");
    terminal.press("quit\r");
    terminal.until("browser", |screen| screen.contains("hello"));
    terminal.press("q");
    assert_eq!(terminal.ends(), 0);
    terminal.is_as_before();
}

/// What a terminal is told beside text: each sequence, shortened to what kind it is.
fn told(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut all = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(char) = rest.next() {
        match char {
            '\u{1b}' => {
                let mut sequence = String::new();
                let kind = rest.next().unwrap_or(' ');
                sequence.push(kind);
                if kind == '[' {
                    let mut parameters = String::new();
                    while let Some(&next) = rest.peek() {
                        rest.next();
                        if ('@'..='~').contains(&next) {
                            if parameters.starts_with('?') {
                                sequence.push_str(&parameters);
                            }
                            sequence.push(next);
                            break;
                        }
                        parameters.push(next);
                    }
                }
                all.push(sequence);
            }
            '\r' | '\n' => {}
            char if char.is_control() => all.push(format!("{char:?}")),
            _ => {}
        }
    }
    all.sort();
    all.dedup();
    all
}

#[test]
fn a_hostile_transcript_says_nothing_to_the_terminal() {
    let home = home();
    let poison = "\\u001b]0;pwned\\u0007\\u001b[2J\\u009b31m\\u001bPq#0\\u001b\\\\\\u001b]52;c;aGk=\\u0007\\u202e";
    let mut lines = attacks::transcript();
    let more = format!(
        r#"{{"type":"user","uuid":"ffffffff-0000-4000-8000-000000000001","parentUuid":null,"sessionId":"{id}","timestamp":"2026-11-15T12:00:00.000Z","isSidechain":false,"cwd":{cwd:?},"gitBranch":"{poison}","message":{{"role":"user","content":"last {poison} words"}}}}
"#,
        id = attacks::id(),
        cwd = "/home/dev/x",
    );
    lines.extend_from_slice(more.as_bytes());
    let title = format!(
        r#"{{"type":"custom-title","customTitle":"{poison} title","sessionId":"{}"}}
"#,
        attacks::id()
    );
    lines.extend_from_slice(title.as_bytes());
    home.transcript("/home/dev/x", attacks::id(), &lines);
    let mut terminal = Terminal::start(&home, 40, 120, &["--color", "always"]);
    terminal.shows("1 session");
    terminal.press("\r");
    terminal.shows("words");
    for keys in ["T", "t", "a", "g", " ", " ", " ", "G", "b", "k", "k", "o"] {
        terminal.press(keys);
        std::thread::sleep(Duration::from_millis(150));
    }
    terminal.press("\x1b");
    for keys in ["f", "u", "c", "\x1b"] {
        terminal.press(keys);
        std::thread::sleep(Duration::from_millis(150));
    }
    terminal.press("q");
    assert_eq!(terminal.ends(), 0);
    terminal.is_as_before();
    let ours = [
        "[?1000h", "[?1000l", "[?1002h", "[?1002l", "[?1003h", "[?1003l", "[?1006h", "[?1006l",
        "[?1015h", "[?1015l", "[?1049h", "[?1049l", "[?2004h", "[?2004l", "[?2026h", "[?2026l",
        "[?25h", "[?25l", "[H", "[J", "[m",
    ];
    let all = told(&terminal.bytes());
    let foreign: Vec<&String> = all
        .iter()
        .filter(|sequence| !ours.contains(&sequence.as_str()))
        .collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    assert!(all.contains(&"[m".to_owned()), "colours: {all:?}");
}

#[test]
fn what_is_told_to_a_terminal_is_recognised() {
    let bytes = "a\u{1b}[1;31mb\u{1b}]0;x\u{7}\u{1b}[?25l\u{9b}".as_bytes();
    assert_eq!(told(bytes), ["'\\u{7}'", "'\\u{9b}'", "[?25l", "[m", "]"]);
}
