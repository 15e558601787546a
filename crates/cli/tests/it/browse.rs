//! The browser in a terminal of its own: what it shows, what it obeys, what it leaves behind.
#![cfg(unix)]

use std::io::{Read, Write};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use unspool_testkit::attacks;
use unspool_testkit::home::Home;

use crate::{ID, home, home_with_session};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program in a terminal.
pub struct Terminal {
    master: Box<dyn MasterPty + Send>,
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    said: Arc<Mutex<(vt100::Parser, Vec<u8>)>>,
}

impl Terminal {
    pub fn start(home: &Home, rows: u16, cols: u16, args: &[&str]) -> Terminal {
        let size = PtySize {
            rows,
            cols,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pair = native_pty_system().openpty(size).unwrap();
        let command = home.command();
        let mut builder = CommandBuilder::new(command.get_program());
        builder.env_clear();
        for (name, value) in command.get_envs() {
            builder.env(name, value.unwrap_or_default());
        }
        builder.env("TERM", "xterm-256color");
        builder.env_remove("COLUMNS");
        builder.cwd(command.get_current_dir().unwrap());
        builder.args(args);
        let child = pair.slave.spawn_command(builder).unwrap();
        drop(pair.slave);
        let said = Arc::new(Mutex::new((vt100::Parser::new(rows, cols, 0), Vec::new())));
        let mut from = pair.master.try_clone_reader().unwrap();
        let heard = Arc::clone(&said);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read) = from.read(&mut bytes) {
                if read == 0 {
                    break;
                }
                let mut heard = heard.lock().unwrap();
                heard.0.process(&bytes[..read]);
                heard.1.extend_from_slice(&bytes[..read]);
            }
        });
        Terminal {
            keys: pair.master.take_writer().unwrap(),
            master: pair.master,
            child,
            said,
        }
    }

    fn screen(&self) -> String {
        self.said.lock().unwrap().0.screen().contents()
    }

    fn bytes(&self) -> Vec<u8> {
        self.said.lock().unwrap().1.clone()
    }

    /// Waits until the screen is as wanted.
    fn until(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let screen = self.screen();
            if wanted(&screen) {
                return screen;
            }
            assert!(start.elapsed() < PATIENCE, "no {what} on\n{screen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn shows(&self, text: &str) -> String {
        self.until(text, |screen| screen.contains(text))
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    fn signal(&self, name: &str) {
        let id = self.child.process_id().unwrap().to_string();
        let sent = Command::new("kill").args([name, &id]).status().unwrap();
        assert!(sent.success());
    }

    /// The names of its threads.
    #[cfg(target_os = "linux")]
    pub fn threads(&self) -> Vec<String> {
        let id = self.child.process_id().unwrap();
        let tasks = std::fs::read_dir(format!("/proc/{id}/task")).unwrap();
        let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
        let names = tasks.flatten().filter_map(|task| name(task).ok());
        names.map(|name| name.trim().to_owned()).collect()
    }

    /// Whether the program is stopped, as a shell would see it.
    fn is_stopped(&self) -> bool {
        let id = self.child.process_id().unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        stat.rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('T'))
    }

    pub fn ends(&mut self) -> u32 {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                // What it said last may still be on its way.
                std::thread::sleep(Duration::from_millis(100));
                return status.exit_code();
            }
            assert!(start.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Nothing of the browser is left in the terminal.
    fn is_as_before(&self) {
        let said = self.said.lock().unwrap();
        let screen = said.0.screen();
        assert!(!screen.alternate_screen(), "the other screen");
        assert!(!screen.bracketed_paste(), "paste");
        assert!(!screen.hide_cursor(), "cursor");
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        // Echo and lines, as a shell has them.
        let modes = self.master.get_termios().unwrap().local_flags.bits();
        assert_eq!(modes & 0o12, 0o12, "raw mode");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_browser_lists_searches_opens_and_leaves_the_terminal_as_it_was() {
    let home = home_with_session();
    let mut terminal = Terminal::start(&home, 24, 80, &[]);
    terminal.shows("fix it");
    terminal.shows("1 session");
    terminal.press("wel");
    terminal.shows("in what was said and done");
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
    terminal.shows("this is a demo");
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
