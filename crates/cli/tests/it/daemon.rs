//! The daemon and those who ask it, as processes on machines of their own.
#![cfg(unix)]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use unspool_testkit::home::Home;
use unspool_testkit::script;
use unspool_testkit::wait::{LONG, wait_until};

use crate::home;
use crate::tty::Terminal;

const CWD: &str = "/home/dev/x";
const ID: &str = "5e551000-0000-4000-8000-00000000000a";

/// A daemon that does not outlive its test.
struct Daemon<'a> {
    home: &'a Home,
    pid: i64,
}

impl<'a> Daemon<'a> {
    fn start(home: &'a Home) -> Daemon<'a> {
        let output = home.output(&["daemon", "start", "--json"]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{error}");
        let row: Value = serde_json::from_slice(&output.stdout).unwrap();
        let pid = row["pid"].as_i64().unwrap();
        Daemon { home, pid }
    }

    fn lives(&self) -> bool {
        // One that has ended but was not collected is gone too.
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }

    fn kill(&self) {
        let mut kill = std::process::Command::new("kill");
        let done = kill.args(["-9", &self.pid.to_string()]).status();
        assert!(done.unwrap().success());
        wait_until("the daemon is dead", || !self.lives());
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        self.home.output(&["daemon", "stop", "--quiet"]);
    }
}

fn run(home: &Home, args: &[&str]) -> (i32, String, String) {
    let output = home.output(args);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().unwrap_or(-1);
    (code, text(&output.stdout), text(&output.stderr))
}

fn with_session() -> (Home, PathBuf) {
    let home = home();
    let script = "(at=2026-01-05T11:59:50.000Z) you: fix it\nclaude: looking [Bash make]";
    let path = home.session(CWD, ID, script);
    (home, path)
}

fn status(home: &Home) -> Value {
    let (code, out, error) = run(home, &["status", "--json"]);
    assert_eq!(code, 0, "{error}");
    serde_json::from_str(&out).unwrap()
}

/// An event as the client gives it to a hook.
fn hook(home: &Home, event: &Value) {
    let mut child = home
        .command()
        .arg("hook")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(event.to_string().as_bytes()).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

fn asks(path: &Path) -> Value {
    json!({
        "session_id": ID, "transcript_path": path, "cwd": CWD,
        "hook_event_name": "PermissionRequest", "tool_name": "Bash",
        "tool_input": {"command": "make"},
    })
}

#[test]
fn there_is_one_daemon_and_stop_really_stops_it() {
    let (home, _) = with_session();
    assert_eq!(run(&home, &["daemon", "status"]).0, 1);
    assert_eq!(run(&home, &["daemon", "stop"]).0, 1);
    let daemon = Daemon::start(&home);
    assert!(daemon.lives());
    let pid = daemon.pid.to_string();
    for args in [["daemon", "start"], ["daemon", "run"]] {
        let (code, _, error) = run(&home, &args);
        assert_eq!(code, 2, "{error}");
        assert!(error.contains(&format!("process {pid}")), "{error}");
    }
    let (code, out, _) = run(&home, &["daemon", "status"]);
    assert_eq!(code, 0);
    assert!(out.contains(&pid) && out.contains("1 session"), "{out}");
    let socket = home.unspool_dir().join("daemon.sock");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(mode(&home.unspool_dir()), 0o700);
    let (code, _, error) = run(&home, &["daemon", "stop"]);
    assert_eq!(code, 0, "{error}");
    wait_until("it is gone", || !daemon.lives());
    assert!(!socket.exists());
    assert_eq!(run(&home, &["daemon", "status"]).0, 1);
}

#[test]
fn connections_that_say_nothing_do_not_keep_the_daemon_from_its_owner() {
    let (home, _) = with_session();
    let daemon = Daemon::start(&home);
    let socket = home.unspool_dir().join("daemon.sock");
    let connect = |_| std::os::unix::net::UnixStream::connect(&socket).unwrap();
    let silent: Vec<_> = (0..300).map(connect).collect();
    let (code, out, error) = run(&home, &["daemon", "status"]);
    assert_eq!(code, 0, "{error}");
    assert!(out.contains(&daemon.pid.to_string()), "{out}");
    assert_eq!(run(&home, &["daemon", "stop"]).0, 0);
    drop(silent);
}

#[test]
fn one_that_was_killed_is_in_nobodys_way() {
    let (home, _) = with_session();
    let first = Daemon::start(&home);
    first.kill();
    assert!(home.unspool_dir().join("daemon.sock").exists());
    // Its last thread may outlive it by a moment.
    wait_until("nobody holds its lock", || {
        run(&home, &["daemon", "status"]).0 == 1
    });
    assert_eq!(run(&home, &["ls"]).0, 0);
    assert_eq!(status(&home)["working"], 1);
    let second = Daemon::start(&home);
    assert_ne!(first.pid, second.pid);
    assert_eq!(run(&home, &["daemon", "status"]).0, 0);
}

#[test]
fn a_hook_is_seen_at_once_and_commands_say_the_same_with_and_without_a_daemon() {
    let (home, path) = with_session();
    home.agent(CWD, ID, "a0000001", "you: look\nclaude: found");
    let (without, _) = (run(&home, &["ls", "--json"]).1, status(&home));
    let daemon = Daemon::start(&home);
    let scanned = || {
        let (_, out, _) = run(&home, &["daemon", "status", "--json"]);
        serde_json::from_str::<Value>(&out).is_ok_and(|row| row["scanned"] == true)
    };
    wait_until("all files are looked at", scanned);
    assert_eq!(run(&home, &["ls", "--json"]).1, without);
    assert_eq!(status(&home)["working"], 1);
    hook(&home, &asks(&path));
    wait_until("the hook is heard", || status(&home)["need_you"] == 1);
    let waits = status(&home);
    assert_eq!(waits["line"], "1 needs you");
    assert_eq!(waits["first"]["id"], ID);
    assert_eq!(waits["first"]["what"], "Bash make");
    let with = run(&home, &["ls", "--json"]).1;
    drop(daemon);
    assert_eq!(status(&home)["need_you"], 1);
    assert_eq!(run(&home, &["ls", "--json"]).1, with);
}

#[test]
fn a_daemon_of_other_folders_is_not_asked() {
    let (home, _) = with_session();
    let other = home.path().join("other");
    let folder = other.join("projects/-home-dev-y");
    fs::create_dir_all(&folder).unwrap();
    let script = "(cwd=/home/dev/y, session=y)\nyou: else\nclaude: yes";
    fs::write(folder.join("y.jsonl"), script::jsonl(script)).unwrap();
    let _daemon = Daemon::start(&home);
    let (code, out, _) = run(
        &home,
        &["ls", "--json", "--claude-dir", other.to_str().unwrap()],
    );
    assert_eq!(code, 0);
    assert!(out.contains("/home/dev/y") && !out.contains(ID), "{out}");
}

/// `watch --json`, and what it prints.
struct Watched {
    child: Child,
    lines: mpsc::Receiver<Value>,
}

impl Watched {
    fn start(home: &Home) -> Watched {
        let mut child = home
            .command()
            .args(["watch", "--json"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).unwrap());
            }
        });
        Watched { child, lines }
    }

    fn wait(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + LONG;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let row = self.lines.recv_timeout(left).expect("it comes in time");
            if wanted(&row) {
                return row;
            }
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn watch_tells_rows_and_then_changes_with_and_without_a_daemon() {
    for daemon in [false, true] {
        let (home, path) = with_session();
        let _daemon = daemon.then(|| Daemon::start(&home));
        let watched = Watched::start(&home);
        let row = watched.wait(|row| row["id"] == ID);
        assert_eq!(row["status"], "working");
        let more = "(at=2026-01-05T11:59:50.000Z) you: fix it\nclaude: looking [Bash make]\nresult: Bash make fine\nclaude: done";
        let script = format!("(cwd={CWD}, session={ID})\n{more}");
        let text = script::jsonl(&script);
        let rest = &text[fs::metadata(&path).unwrap().len() as usize..];
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(rest).unwrap();
        let row = watched.wait(|row| row["recent_output"] == "done");
        assert_eq!(
            (&row["event"], &row["grown"]),
            (&json!("session"), &json!(true))
        );
        fs::remove_file(&path).unwrap();
        let row = watched.wait(|row| row["event"] == "removed");
        assert_eq!(row["id"], ID);
    }
}

#[test]
fn watch_goes_on_when_the_daemon_stops() {
    let (home, path) = with_session();
    let daemon = Daemon::start(&home);
    let watched = Watched::start(&home);
    watched.wait(|row| row["id"] == ID);
    drop(daemon);
    hook(&home, &asks(&path));
    let row = watched.wait(|row| row["status"] == "waiting_for_approval");
    assert_eq!(row["previous_status"], "working");
}

#[test]
fn install_writes_a_unit_for_nobody_else() {
    let home = home();
    let (code, out, error) = run(&home, &["daemon", "install"]);
    assert_eq!(code, 0, "{error}");
    let path = Path::new(out.trim());
    assert!(path.starts_with(home.path()), "{out}");
    let mode = fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains("daemon") && text.contains(home.unspool_dir().to_str().unwrap()));
    assert!(error.contains("Enable it with"), "{error}");
}

#[test]
fn a_wait_is_told_to_an_address_once() {
    let (home, path) = with_session();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/told", listener.local_addr().unwrap());
    home.write(
        ".unspool/config.toml",
        format!("[notify]\nwebhook = \"{address}\"\n"),
    );
    fs::set_permissions(home.unspool_dir(), fs::Permissions::from_mode(0o700)).unwrap();
    let (sender, told) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = BufReader::new(stream);
            let (mut line, mut length) = (String::new(), 0);
            while stream.read_line(&mut line).is_ok_and(|read| read > 2) {
                if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = text.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            let answer = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
            stream.get_mut().write_all(answer).unwrap();
            let _ = sender.send(serde_json::from_slice::<Value>(&body).unwrap());
        }
    });
    let first = Daemon::start(&home);
    wait_until("it is known", || status(&home)["working"] == 1);
    hook(&home, &asks(&path));
    let message = told.recv_timeout(LONG).unwrap();
    assert_eq!(message["session"]["id"], ID);
    assert_eq!(message["session"]["status"], "waiting_for_approval");
    assert_eq!(message["text"], "x needs permission: Bash make");
    hook(&home, &asks(&path));
    drop(first);
    let _second = Daemon::start(&home);
    wait_until("it waits still", || status(&home)["need_you"] == 1);
    assert!(told.recv_timeout(Duration::from_secs(2)).is_err());
}

#[test]
fn the_browser_shows_what_the_daemon_knows_and_goes_on_when_it_stops() {
    let (home, path) = with_session();
    let daemon = Daemon::start(&home);
    wait_until("it is known", || status(&home)["working"] == 1);
    let mut terminal = Terminal::start(&home, 24, 80, &[]);
    terminal.shows("fix it");
    // One who asks the daemon does not look at files himself: the loop has a name.
    #[cfg(target_os = "linux")]
    assert!(!terminal.threads().contains(&"live".to_owned()));
    let name = |title: &str| {
        let line = script::jsonl(&format!("(cwd={CWD}, session={ID})\ntitle: {title}"));
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(&line).unwrap();
    };
    name("A name for it");
    terminal.shows("A name for it");
    drop(daemon);
    name("Another name");
    terminal.shows("Another name");
    #[cfg(target_os = "linux")]
    assert!(terminal.threads().contains(&"live".to_owned()));
    terminal.press("q");
    terminal.ends();
}

/// What is said in a session goes to the desktop as words, whatever it looks like.
#[cfg(target_os = "linux")]
#[test]
fn hostile_text_stays_one_word_on_the_way_to_the_desktop() {
    let home = home();
    let script = "(at=2026-01-05T11:59:50.000Z) you: fix it\nclaude: looking [Bash make]";
    let path = home.session(CWD, ID, script);
    home.write(".unspool/config.toml", "[notify]\ndesktop = true\n");
    fs::set_permissions(home.unspool_dir(), fs::Permissions::from_mode(0o700)).unwrap();
    let (programs, record) = crate::serve::recorder(&home, "notify-send");
    let mut child = home
        .command()
        .args(["serve", "--port", "0"])
        .env("PATH", programs)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut link = String::new();
    let out = child.stdout.take().unwrap();
    BufReader::new(out).read_line(&mut link).unwrap();
    let (place, token) = link.trim_end().split_once("/#token=").unwrap();
    let client = unspool_net::client().no_proxy().build().unwrap();
    let ask = |path: &str| {
        let asked = client.get(format!("{place}{path}")).bearer_auth(token);
        asked.send().unwrap().json::<Value>().unwrap()
    };
    wait_until("all files were looked at", || {
        ask("/api/health")["scanned"] == true
    });
    let trap = home.path().join("trapped");
    let hostile = format!(
        "--urgency=critical; touch '{0}' \"$(touch {0})\" `touch {0}` | <b>bold</b> \x1b[31m & more",
        trap.display()
    );
    let event = json!({
        "session_id": ID, "transcript_path": path, "cwd": CWD,
        "hook_event_name": "PermissionRequest", "tool_name": "Bash",
        "tool_input": {"command": hostile},
    });
    let told = client.post(format!("{place}/api/hook")).bearer_auth(token);
    assert_eq!(told.body(event.to_string()).send().unwrap().status(), 204);
    wait_until("it is told", || record.exists());
    let _ = child.kill();
    let _ = child.wait();
    let words = fs::read_to_string(&record).unwrap();
    let words: Vec<&str> = words.strip_suffix('\0').unwrap().split('\0').collect();
    assert_eq!(words.len(), 4, "{words:?}");
    assert_eq!(
        words[..3],
        ["--app-name=unspool", "--", "x needs permission"]
    );
    assert!(
        words[3].starts_with("Bash --urgency=critical; touch "),
        "{words:?}"
    );
    assert!(words[3].contains("&lt;b&gt;bold&lt;/b&gt;"), "{words:?}");
    assert!(!words[3].contains('\x1b'), "{words:?}");
    assert!(!trap.exists(), "what was said was run");
}
