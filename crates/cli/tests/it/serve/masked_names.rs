//! Tokens in names of directories, branches, models, tools and agents: no address answers with one,
//! no event carries one, and `watch` prints none.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

use super::Server;
use crate::ID;
use crate::secret_names::{named, token};

/// Every address that is described and read with GET, with the session and its parts filled in.
fn addresses(server: &Server) -> Vec<String> {
    let described = server.get("/api/openapi.json").json();
    let paths = described["paths"].as_object().unwrap();
    paths
        .iter()
        .filter(|(_, methods)| methods.get("get").is_some())
        .map(|(path, _)| {
            let path = path.replace("{id}", ID).replace("{k}", "0");
            let path = ["{n}", "{i}", "{line}"]
                .iter()
                .fold(path, |path, name| path.replace(name, "1"));
            match path.rsplit('/').next() {
                Some("search") => format!("{path}?q=walrus"),
                Some("find") => format!("{path}?q=walrus"),
                Some("usage") => format!("{path}?by=project"),
                Some("export") => format!("{path}?format=md"),
                Some("events") => format!("{path}?quick=1"),
                _ => path,
            }
        })
        .collect()
}

#[test]
fn no_address_answers_with_a_token_of_a_name() {
    let home = named();
    let secret = &token()[..30];
    let server = Server::start(&home, &[]);
    let addresses = addresses(&server);
    let (mut answered, mut masked) = (0, 0);
    for path in &addresses {
        if path.starts_with("/api/events") {
            continue;
        }
        let answer = server.get(path);
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(!text.contains(secret), "{path}: {text}");
        assert!(!answer.head.contains(secret), "{path}: {}", answer.head);
        answered += usize::from(answer.status == 200);
        masked += usize::from(text.contains("[REDACTED:"));
    }
    assert!(answered >= 14, "{answered} of {addresses:?}");
    assert!(masked >= 8, "{masked} of {addresses:?} name anything");
}

#[test]
fn no_event_carries_a_token_of_a_name() {
    let home = named();
    let secret = &token()[..30];
    let server = Server::start(&home, &[]);
    let mut stream = server.connect();
    let head = format!(
        "GET /api/events HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nauthorization: {}\r\n\r\n",
        server.port,
        server.bearer()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let path = home
        .claude_dir()
        .join(format!("projects/-home-dev-{}/{ID}.jsonl", token()));
    let line = format!(
        r#"{{"type":"custom-title","customTitle":"another {} end","sessionId":"{ID}"}}"#,
        token()
    );
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    writeln!(file, "{line}").unwrap();
    let mut heard = Vec::new();
    let mut part = [0; 4096];
    // The grown session comes as a row with its new title.
    while !String::from_utf8_lossy(&heard).contains("another ") {
        let read = stream.read(&mut part).unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&heard));
        heard.extend_from_slice(&part[..read]);
    }
    let heard = String::from_utf8_lossy(&heard).into_owned();
    assert!(!heard.contains(secret), "{heard}");
    assert!(heard.contains("[REDACTED:"), "{heard}");
}

#[test]
fn watch_prints_no_token_of_a_name() {
    let home = named();
    let mut child = home
        .command()
        .args(["watch", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut row = String::new();
    let out = child.stdout.take().unwrap();
    BufReader::new(out).read_line(&mut row).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(row.contains(ID) && row.contains("[REDACTED:"), "{row}");
    assert!(!row.contains(&token()[..30]), "{row}");
}
