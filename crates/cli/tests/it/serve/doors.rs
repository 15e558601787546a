//! Who is let in, and what strangers, liars and crowds get.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use super::{Answered, Server, answered};
use crate::{ID, home, home_with_session};

fn refused(answer: &Answered) -> bool {
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    answer.status == 403 && !text.contains(ID) && answer.json()["error"].is_string()
}

#[test]
fn the_page_needs_no_token_and_holds_no_data() {
    let home = home_with_session();
    let server = Server::start(&home, &[]);
    assert!(server.token.len() >= 22);
    for path in ["/", "/usage", &format!("/s/{ID}/t/3"), "/search?q=x"] {
        let answer = server.ask("GET", path, &[], "");
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(
            answer.header("content-type"),
            Some("text/html; charset=utf-8")
        );
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert!(!String::from_utf8_lossy(&answer.body).contains(&server.token));
    }
    assert_eq!(server.ask("GET", "/assets/none.js", &[], "").status, 404);
    assert_eq!(server.ask("POST", "/", &[], "").status, 405);
}

#[test]
fn strangers_are_refused_before_any_work() {
    let home = home_with_session();
    let server = Server::start(&home, &[]);
    let (port, bearer) = (server.port, server.bearer());
    let hosts = [
        "evil.com".to_owned(),
        format!("evil.com:{port}"),
        format!("127.0.0.1.evil.com:{port}"),
        format!("localhost.:{port}"),
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        "[::1]".to_owned(),
        format!("127.0.0.1:{}", port.wrapping_add(1)),
        format!("0.0.0.0:{port}"),
        String::new(),
    ];
    for host in &hosts {
        for path in ["/api/sessions", "/", "/api/login", "/assets/x"] {
            let headers = [("host", host.as_str()), ("authorization", &bearer)];
            let answer = server.ask("GET", path, &headers, "");
            assert!(refused(&answer), "{host} {path}: {}", answer.status);
        }
    }
    let twice = format!(
        "GET /api/sessions HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nhost: 127.0.0.1:{port}\r\nauthorization: {bearer}\r\nconnection: close\r\n\r\n"
    );
    assert!(matches!(server.raw(&twice).status, 400 | 403));
    let old = format!("GET /api/sessions HTTP/1.0\r\nauthorization: {bearer}\r\n\r\n");
    assert!(refused(&server.raw(&old)));
    for origin in [
        "null",
        "http://evil.com",
        &format!("http://localhost:{port}"),
        "file://",
    ] {
        let headers = [("origin", origin), ("authorization", bearer.as_str())];
        let answer = server.ask("GET", "/api/sessions", &headers, "");
        assert!(refused(&answer), "{origin}");
        assert!(answer.header("access-control-allow-origin").is_none());
        let answer = server.ask("OPTIONS", "/api/sessions", &headers, "");
        assert_eq!(answer.status, 403);
    }
    let own = format!("http://127.0.0.1:{port}");
    let headers = [("origin", own.as_str()), ("authorization", &bearer)];
    assert_eq!(server.ask("GET", "/api/sessions", &headers, "").status, 200);
    let named = format!("localhost:{port}");
    let headers = [("host", named.as_str()), ("authorization", &bearer)];
    assert_eq!(server.ask("GET", "/api/sessions", &headers, "").status, 200);
    let upgrade = [("upgrade", "websocket"), ("authorization", bearer.as_str())];
    assert!(refused(&server.ask("GET", "/api/events", &upgrade, "")));
}

#[test]
fn data_needs_the_token() {
    let home = home_with_session();
    let server = Server::start(&home, &[]);
    let paths = [
        "/api/sessions".to_owned(),
        format!("/api/sessions/{ID}"),
        format!("/api/sessions?token={}", server.token),
        format!("/api/sessions?access_token={}", server.token),
        "/api/events".to_owned(),
        "/api/health".to_owned(),
        "/api/openapi.json".to_owned(),
        "/api/nowhere".to_owned(),
    ];
    for path in &paths {
        assert!(refused(&server.ask("GET", path, &[], "")), "{path}");
    }
    for wrong in [
        "Bearer x",
        "Bearer",
        "Basic x",
        &format!("Bearer {}x", server.token),
    ] {
        let answer = server.ask("GET", "/api/sessions", &[("authorization", wrong)], "");
        assert!(refused(&answer), "{wrong}");
    }
    assert!(refused(&server.ask("POST", "/api/hook", &[], "{}")));
}

#[test]
fn a_login_gives_a_cookie_that_scripts_cannot_read() {
    let home = home_with_session();
    let server = Server::start(&home, &[]);
    let own = format!("http://127.0.0.1:{}", server.port);
    let origin = ("origin", own.as_str());
    let wrong = server.ask("POST", "/api/login", &[origin], r#"{"token":"wrong"}"#);
    assert!(refused(&wrong));
    let body = format!(r#"{{"token":"{}"}}"#, server.token);
    let foreign = server.ask(
        "POST",
        "/api/login",
        &[("origin", "http://evil.com")],
        &body,
    );
    assert!(refused(&foreign));
    let answer = server.ask("POST", "/api/login", &[origin], &body);
    assert_eq!(answer.status, 204);
    let cookie = answer.header("set-cookie").unwrap().to_owned();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    assert!(!cookie.contains(&server.token));
    let pair = cookie.split(';').next().unwrap();
    let with = [("cookie", pair)];
    assert_eq!(server.ask("GET", "/api/sessions", &with, "").status, 200);
    // A page elsewhere cannot make the browser change something.
    let event = r#"{"hook_event_name":"Stop","session_id":"x"}"#;
    assert!(refused(&server.ask("POST", "/api/hook", &with, event)));
    let told = server.ask("POST", "/api/hook", &[with[0], origin], event);
    assert_eq!(told.status, 204);
    let left = server.ask("POST", "/api/logout", &[with[0], origin], "");
    assert_eq!(left.status, 204);
    assert!(refused(&server.ask("GET", "/api/sessions", &with, "")));
    let tries = (0..40).map(|_| {
        server
            .ask("POST", "/api/login", &[], r#"{"token":"x"}"#)
            .status
    });
    assert!(tries.filter(|status| *status == 429).count() > 10);
}

#[test]
fn ids_are_looked_up_and_lead_nowhere_else() {
    let home = home_with_session();
    home.write("secret.jsonl", "{\"type\":\"user\"}\n");
    home.write(".claude/settings.jsonl", "{\"type\":\"user\"}\n");
    let server = Server::start(&home, &[]);
    let long = "a".repeat(5000);
    let full = home
        .path()
        .join("secret")
        .display()
        .to_string()
        .replace('/', "%2f");
    let ids = [
        "..%2f..%2fsecret",
        "%2e%2e%2f%2e%2e%2fsecret",
        "..%5c..%5csecret",
        "..%252f..%252fsecret",
        "%00",
        &format!("{ID}%00"),
        &format!("{ID}.jsonl"),
        &format!("..%2f-home-dev-x%2f{ID}"),
        &full,
        "settings",
        ".",
        "..",
        "%2e%2e",
        "5e551000-0000-4000-8000-000000000009",
        "not-an-id!",
        "%ff%fe",
        &long,
    ];
    for id in ids {
        for rest in [
            "",
            "/turns",
            "/items",
            "/raw/1",
            "/images/1/0",
            "/export?to=jsonl",
            "/context",
            "/trim",
        ] {
            let answer = server.get(&format!("/api/sessions/{id}{rest}"));
            let fits = matches!(answer.status, 400 | 404 | 414 | 431);
            assert!(fits, "{id}{rest}: {}", answer.status);
            let utf8 = !id.contains("%ff");
            if utf8 && id.len() < 100 {
                assert_eq!(answer.status, 404, "{id}{rest}");
            }
        }
    }
    for path in [
        "/..%2f..%2fetc/passwd",
        "/%2e%2e/x",
        "/assets/../../Cargo.toml",
        "/a%00b",
        "/\\x",
    ] {
        let answer = server.ask("GET", path, &[], "");
        assert!(
            matches!(answer.status, 400 | 404),
            "{path}: {}",
            answer.status
        );
    }
    for path in [
        "/turns/x",
        "/turns/99",
        "/items/-1",
        "/items/999999",
        "/raw/0",
        "/images/1/x",
    ] {
        let answer = server.get(&format!("/api/sessions/{ID}{path}"));
        assert_eq!(answer.status, 404, "{path}");
    }
    assert_eq!(
        server
            .get(&format!("/api/sessions/{ID}/items?from=x"))
            .status,
        400
    );
    assert_eq!(
        server
            .get(&format!("/api/sessions/{ID}/items?level=x"))
            .status,
        400
    );
}

#[test]
fn large_bodies_are_not_read() {
    let home = home();
    let server = Server::start(&home, &[]);
    let head = format!(
        "POST /api/hook HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nauthorization: {}\r\ncontent-length: 1073741824\r\nconnection: close\r\n\r\n",
        server.port,
        server.bearer()
    );
    // Waiting for it would end in 408.
    assert_eq!(server.raw(&head).status, 413);
    // One that does not say how large it is.
    let mut stream = server.connect();
    let head = head.replace("content-length: 1073741824", "transfer-encoding: chunked");
    stream.write_all(head.as_bytes()).unwrap();
    let part = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    for _ in 0..64 {
        if stream.write_all(part.as_bytes()).is_err() {
            break;
        }
    }
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    assert_eq!(answered(&all).status, 413);
}

#[test]
fn those_who_never_finish_a_request_are_let_go_and_hold_up_nobody() {
    let home = home_with_session();
    let server = Server::start(&home, &[]);
    let mut slow: Vec<_> = (0..200).map(|_| server.connect()).collect();
    for stream in &mut slow {
        stream
            .write_all(b"GET /api/sessions HTTP/1.1\r\nhost: 127")
            .unwrap();
    }
    let began = Instant::now();
    assert_eq!(server.rows("/api/sessions").len(), 1);
    // They are let go after ten seconds; who was answered before did not wait for that.
    if began.elapsed() < Duration::from_secs(8) {
        let stream = slow.last().unwrap();
        stream.set_nonblocking(true).unwrap();
        let waits = stream.peek(&mut [0]).unwrap_err();
        assert_eq!(waits.kind(), std::io::ErrorKind::WouldBlock);
        stream.set_nonblocking(false).unwrap();
    }
    for stream in &mut slow {
        // The end or a reset, not our own patience.
        let rest = stream.read_to_end(&mut Vec::new());
        let patience = rest.is_err_and(|why| why.kind() == std::io::ErrorKind::WouldBlock);
        assert!(!patience, "it was not let go");
    }
}

#[test]
fn a_crowd_of_ten_thousand_is_bounded_and_leaves_the_server_whole() {
    let home = home_with_session();
    let server = Server::start(&home, &[]);
    // More than are let in at once, but not as many as our own files may be.
    const HELD: usize = 700;
    let mut crowd = std::collections::VecDeque::new();
    let mut came = 0;
    let began = Instant::now();
    while came < 10_000 {
        assert!(
            began.elapsed() < Duration::from_secs(300),
            "only {came} came"
        );
        if crowd.len() >= HELD {
            crowd.pop_front();
        }
        // Who is turned away at once comes again.
        match std::net::TcpStream::connect(("127.0.0.1", server.port)) {
            Ok(stream) => {
                came += 1;
                crowd.push_back(stream);
            }
            Err(_) => {
                crowd.clear();
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
    #[cfg(target_os = "linux")]
    {
        let files = std::fs::read_dir(format!("/proc/{}/fd", server.child.id()));
        let files = files.unwrap().count();
        assert!(files < 800, "{files} files are open");
    }
    drop(crowd);
    let began = Instant::now();
    loop {
        let answer = server.get("/api/sessions");
        if answer.status == 200 {
            break;
        }
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "it does not come back"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}
