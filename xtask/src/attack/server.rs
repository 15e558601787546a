//! The dashboard's server: foreign hosts and origins, wrong tokens, connections that never end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use unspool_testkit::home::Home;

use super::AttackLog;

const ID: &str = "5e4e0000-0000-4000-8000-000000000001";

/// Half-open connections at once.
const HALF_OPEN: usize = 600;

pub fn run(program: &Path, log: &mut AttackLog) -> Result<(), String> {
    let home = Home::new(program);
    home.session("/home/dev/x", ID, "you: hello\nclaude: an answer");
    let server = Server::start(&home)?;
    let right = format!("Authorization: Bearer {}\r\n", server.token);
    let own = format!("127.0.0.1:{}", server.port);
    let get = |host: &str, path: &str, headers: &str| {
        server.ask(&format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n"
        ))
    };
    log.held(get(&own, "/api/sessions", &right) == Some(200), || {
        "the owner is not answered".into()
    });

    let port = server.port;
    let hosts = [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        format!("localhost.evil.example:{port}"),
        format!("localhost.:{port}"),
        "127.0.0.1:1".to_owned(),
        String::new(),
        format!("127.0.0.1@evil.example:{port}"),
        format!("0.0.0.0:{port}"),
        format!("2130706433:{port}"),
        format!("127.1:{port}"),
        format!("[::1]:{port}"),
    ];
    // An address in digits that is the one it came in at stays an answer: no DNS can forge it.
    for host in &hosts {
        let code = get(host, "/api/sessions", &right);
        log.held(code != Some(200), || format!("Host `{host}` is answered"));
    }
    for origin in [
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        "https://localhost",
    ] {
        let headers = format!("{right}Origin: {origin}\r\n");
        let code = get(&own, "/api/sessions", &headers);
        log.held(code != Some(200), || {
            format!("Origin `{origin}` is answered")
        });
    }
    // No token, a wrong one, and the places where none is taken from.
    let cookie = format!(
        "Cookie: unspool={0}; token={0}; session={0}\r\n",
        server.token
    );
    let query = format!("/api/sessions?token={}", server.token);
    for (what, path, headers) in [
        ("no token", "/api/sessions", ""),
        ("a cookie", "/api/sessions", cookie.as_str()),
        ("a token in the address", query.as_str(), ""),
    ] {
        let code = get(&own, path, headers);
        log.held(code != Some(200), || format!("{what} is enough"));
    }
    for _ in 0..50 {
        get(&own, "/api/sessions", "Authorization: Bearer wrong\r\n");
    }
    log.held(get(&own, "/api/sessions", &right) == Some(200), || {
        "wrong tokens lock the right one out".into()
    });
    for path in [
        "/api/sessions/..%2f..%2fetc%2fpasswd",
        "/api/sessions/%2e%2e",
        "/../../etc/passwd",
        "/api/sessions/%00",
    ] {
        let code = get(&own, path, &right);
        log.held(matches!(code, Some(400..=404)), || {
            format!("{path}: {code:?}")
        });
    }
    let mut held_open = Vec::new();
    for number in 0..HALF_OPEN {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
            break;
        };
        if number % 2 == 0 {
            let _ = stream.write_all(b"GET /api/sessions HTTP/1.1\r\nHost: ");
        }
        held_open.push(stream);
    }
    for _ in 0..20 {
        log.held(get(&own, "/api/sessions", &right) == Some(200), || {
            format!(
                "{} half-open connections close the server to its owner",
                held_open.len()
            )
        });
    }
    Ok(())
}

/// The program, serving.
struct Server {
    child: Child,
    port: u16,
    token: String,
}

impl Server {
    fn start(home: &Home) -> Result<Server, String> {
        let mut child = home
            .command()
            .args(["serve", "--port", "0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut line = String::new();
        let out = child.stdout.take().ok_or("no output")?;
        BufReader::new(out)
            .read_line(&mut line)
            .map_err(|error| error.to_string())?;
        let parts = line
            .trim()
            .strip_prefix("http://127.0.0.1:")
            .and_then(|rest| rest.split_once("/#token="));
        let (port, token) = parts.ok_or_else(|| format!("no link: {line}"))?;
        let port = port.parse().map_err(|_| format!("no port: {line}"))?;
        Ok(Server {
            child,
            port,
            token: token.to_owned(),
        })
    }

    /// The status of an answer; nothing if there is none in ten seconds.
    fn ask(&self, request: &str) -> Option<u16> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .ok()?;
        stream.write_all(request.as_bytes()).ok()?;
        let mut head = [0; 12];
        stream.read_exact(&mut head).ok()?;
        std::str::from_utf8(&head)
            .ok()?
            .split_whitespace()
            .nth(1)?
            .parse()
            .ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
