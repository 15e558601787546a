//! Events as they come, and again for those who were away.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Server;
use crate::{ID, home_with_session};

/// Somebody who listens.
struct Listener {
    lines: BufReader<TcpStream>,
}

#[derive(Debug)]
struct Event {
    id: String,
    name: String,
    data: Value,
}

impl Listener {
    fn new(server: &Server, path: &str, last: Option<&str>) -> Listener {
        let mut stream = server.connect();
        let last = last.map(|id| format!("last-event-id: {id}\r\n"));
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nauthorization: {}\r\n{}\r\n",
            server.port,
            server.bearer(),
            last.unwrap_or_default()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert!(line.contains("200"), "{line}");
        while line != "\r\n" {
            line.clear();
            lines.read_line(&mut line).unwrap();
        }
        Listener { lines }
    }

    /// The next event; sizes of parts and comments are passed over.
    fn next(&mut self) -> Event {
        let (mut id, mut name) = (String::new(), String::new());
        let began = Instant::now();
        loop {
            // Beats keep the line open for ever.
            assert!(began.elapsed() < Duration::from_secs(60), "nothing comes");
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "it ended");
            let line = line.trim_end();
            if let Some(text) = line.strip_prefix("id: ") {
                id = text.to_owned();
            } else if let Some(text) = line.strip_prefix("event: ") {
                name = text.to_owned();
            } else if let Some(text) = line.strip_prefix("data: ") {
                let data = serde_json::from_str(text).unwrap();
                return Event { id, name, data };
            }
        }
    }

    fn until(&mut self, fits: impl Fn(&Event) -> bool) -> Event {
        let began = Instant::now();
        loop {
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "it does not come"
            );
            let event = self.next();
            if fits(&event) {
                return event;
            }
        }
    }
}

fn say(home: &unspool_testkit::home::Home, n: usize) {
    let path = home
        .claude_dir()
        .join(format!("projects/-home-dev-x/{ID}.jsonl"));
    let line = json!({
        "type": "user", "uuid": format!("99999999-0000-4000-8000-{n:012}"), "sessionId": ID,
        "timestamp": "2026-01-05T11:59:00.000Z", "cwd": "/home/dev/x", "version": "2.1.0",
        "message": { "role": "user", "content": format!("prompt {n}") },
    });
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

#[test]
fn first_comes_everything_then_each_change_and_later_what_was_missed() {
    let home = home_with_session();
    let server = Server::start(&home, &[]);
    let mut one = Listener::new(&server, "/api/events", None);
    let first = one.next();
    assert_eq!(first.name, "snapshot");
    assert_eq!(first.data, json!(server.rows("/api/sessions")));
    say(&home, 1);
    let grown = one.until(|event| event.name == "session" && event.data["grown"] == true);
    assert_eq!(grown.data["session"]["id"], ID);
    assert_eq!(grown.data["session"]["turns"], 3);
    // Somebody who was away since the first event gets the same change, and no snapshot.
    let mut two = Listener::new(&server, "/api/events", Some(&first.id));
    let again = two.until(|event| event.id == grown.id);
    assert_eq!(again.data, grown.data);
    // Whoever comes with a number of another process gets everything.
    for stale in ["1", "99999999999999999999", "x"] {
        let mut three = Listener::new(&server, "/api/events", Some(stale));
        assert_eq!(three.next().name, "snapshot", "{stale}");
    }
    say(&home, 2);
    for listener in [&mut one, &mut two] {
        let event = listener.until(|event| event.data["session"]["turns"] == 4);
        assert_eq!(event.name, "session");
    }
}

#[test]
fn one_session_can_be_listened_to() {
    let home = home_with_session();
    let other = "5e551000-0000-4000-8000-000000000002";
    home.session("/home/dev/y", other, "you: other\nclaude: yes");
    let server = Server::start(&home, &[]);
    let mut listener = Listener::new(&server, &format!("/api/events?session={other}"), None);
    let first = listener.next();
    assert_eq!(first.data.as_array().unwrap().len(), 1);
    assert_eq!(first.data[0]["id"], other);
    say(&home, 1);
    std::fs::remove_file(
        home.claude_dir()
            .join(format!("projects/-home-dev-y/{other}.jsonl")),
    )
    .unwrap();
    let gone = listener.until(|event| event.name != "scanned");
    assert_eq!(gone.name, "removed");
    assert_eq!(gone.data["id"], other);
}

#[test]
fn what_a_hook_tells_is_an_event() {
    let home = home_with_session();
    let server = Server::start(&home, &[]);
    let mut listener = Listener::new(&server, "/api/events", None);
    assert_eq!(listener.next().name, "snapshot");
    let event = json!({
        "hook_event_name": "PermissionRequest", "session_id": ID, "tool_name": "Bash",
        "tool_input": { "command": "rm -rf build" },
    });
    let bearer = server.bearer();
    let told = server.ask(
        "POST",
        "/api/hook",
        &[("authorization", &bearer)],
        &event.to_string(),
    );
    assert_eq!(told.status, 204);
    let changed = listener.until(|event| event.name == "session");
    assert_eq!(changed.data["session"]["status"], "waiting_for_approval");
    assert_eq!(changed.data["session"]["status_from"], "hook");
    let wrong = server.ask("POST", "/api/hook", &[("authorization", &bearer)], "{}");
    assert_eq!(wrong.status, 400);
}
