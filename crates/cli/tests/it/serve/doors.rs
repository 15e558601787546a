//! Who is let in, and what strangers, liars and crowds get.

use std::io::{Read, Write};

use super::{Answered, Server, answered};
use crate::{ID, home, home_with_session};

/// Whether it was refused and told nothing.
fn refused(answer: &Answered) -> bool {
    refused_with(403, answer)
}

/// The same for somebody who has shown no token.
fn unproven(answer: &Answered) -> bool {
    refused_with(403, answer) && answer.header("www-authenticate") == Some("Bearer")
}

fn refused_with(status: u16, answer: &Answered) -> bool {
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    answer.status == status && !text.contains(ID) && answer.json()["error"].is_string()
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
        assert!(unproven(&server.ask("GET", path, &[], "")), "{path}");
    }
    for wrong in [
        "Bearer x",
        "Bearer",
        "Basic x",
        &format!("Bearer {}x", server.token),
    ] {
        let answer = server.ask("GET", "/api/sessions", &[("authorization", wrong)], "");
        assert!(unproven(&answer), "{wrong}");
    }
    assert!(unproven(&server.ask("POST", "/api/hook", &[], "{}")));
}

fn login(server: &Server, headers: &[(&str, &str)], token: &str) -> Answered {
    let body = format!(r#"{{"token":"{token}"}}"#);
    server.ask("POST", "/api/login", headers, &body)
}

#[test]
fn a_login_gives_a_key_for_a_header_and_no_cookie() {
    let home = home_with_session();
    let server = Server::start(&home, &[]);
    let own = format!("http://127.0.0.1:{}", server.port);
    let origin = ("origin", own.as_str());
    assert!(refused(&login(&server, &[origin], "wrong")));
    for foreign in [
        ("origin", "http://evil.com"),
        ("sec-fetch-site", "cross-site"),
    ] {
        assert!(refused(&login(&server, &[foreign], &server.token)));
    }
    let answer = login(&server, &[origin], &server.token);
    assert_eq!(answer.status, 200);
    assert!(answer.header("set-cookie").is_none(), "{}", answer.head);
    let key = answer.json()["token"].as_str().unwrap().to_owned();
    assert_ne!(key, server.token);
    let bearer = format!("Bearer {key}");
    let with = [("authorization", bearer.as_str())];
    assert_eq!(server.ask("GET", "/api/sessions", &with, "").status, 200);
    // As a cookie, which a browser sends to every server on this machine, it opens nothing.
    for name in [&format!("unspool-{}", server.port), "unspool", "token"] {
        for secret in [&key, &server.token] {
            let cookie = format!("{name}={secret}");
            let with = [("cookie", cookie.as_str()), origin];
            let asked = server.ask("GET", "/api/sessions", &with, "");
            assert!(unproven(&asked), "{cookie}");
            assert!(unproven(&server.ask("POST", "/api/hook", &with, "{}")));
        }
    }
    // The end of a login is the end of its key, and of no other.
    let other = login(&server, &[origin], &server.token).json()["token"].clone();
    let left = server.ask("POST", "/api/logout", &with, "");
    assert_eq!(left.status, 204);
    assert!(left.header("set-cookie").is_none());
    assert!(unproven(&server.ask("GET", "/api/sessions", &with, "")));
    let other = format!("Bearer {}", other.as_str().unwrap());
    let with = [("authorization", other.as_str())];
    assert_eq!(server.ask("GET", "/api/sessions", &with, "").status, 200);
    assert_eq!(server.get("/api/sessions").status, 200);
}

#[test]
fn wrong_logins_are_slowed_down_and_never_lock_out_the_right_token() {
    let home = home_with_session();
    let server = Server::start(&home, &[]);
    let tries: Vec<u16> = (0..60).map(|_| login(&server, &[], "x").status).collect();
    assert_eq!(tries[..10], [403; 10]);
    assert!(tries.iter().filter(|status| **status == 429).count() > 10);
    assert_eq!(login(&server, &[], &server.token).status, 200);
    assert_eq!(server.get("/api/sessions").status, 200);
    assert_eq!(login(&server, &[], "x").status, 429);
}

#[test]
fn no_answer_with_data_is_kept_by_a_browser_or_given_to_another_page() {
    let home = home_with_session();
    let server = Server::start(&home, &[]);
    for path in [
        "/api/sessions".to_owned(),
        format!("/api/sessions/{ID}/items"),
        format!("/api/sessions/{ID}/export?to=md"),
        format!("/api/sessions/{ID}/images/1/0"),
        "/api/nowhere".to_owned(),
    ] {
        for answer in [server.get(&path), server.ask("GET", &path, &[], "")] {
            for (name, value) in [
                ("cache-control", "no-store"),
                ("referrer-policy", "no-referrer"),
                ("x-content-type-options", "nosniff"),
                ("cross-origin-resource-policy", "same-origin"),
                ("cross-origin-opener-policy", "same-origin"),
                ("x-frame-options", "DENY"),
            ] {
                assert_eq!(answer.header(name), Some(value), "{path}");
            }
            assert!(answer.header("access-control-allow-origin").is_none());
            assert!(answer.header("set-cookie").is_none());
        }
    }
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
    assert_eq!(server.rows("/api/sessions").len(), 1);
    for stream in &mut slow {
        // The end or a reset, not our own patience.
        let rest = stream.read_to_end(&mut Vec::new());
        let patience = rest.is_err_and(|why| why.kind() == std::io::ErrorKind::WouldBlock);
        assert!(!patience, "it was not let go");
    }
}

#[test]
fn a_crowd_of_ten_thousand_is_bounded_and_the_owner_gets_in() {
    let home = home_with_session();
    let server = Server::start(&home, &[]);
    // More than are let in at once, but not as many as our own files may be.
    const HELD: usize = 700;
    let mut crowd = std::collections::VecDeque::new();
    for came in 0..10_000 {
        if crowd.len() >= HELD {
            crowd.pop_front();
        }
        crowd.push_back(server.connect());
        if came % 1000 == 999 {
            assert_eq!(server.get("/api/sessions").status, 200, "after {came}");
        }
    }
    #[cfg(target_os = "linux")]
    {
        let files = std::fs::read_dir(format!("/proc/{}/fd", server.child.id()));
        let files = files.unwrap().count();
        assert!(files < 800, "{files} files are open");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn where_few_files_may_be_open_the_owner_gets_in_as_well() {
    let home = home_with_session();
    let program = home.command();
    let mut shell = std::process::Command::new("sh");
    let set = program.get_envs();
    let set = set.filter_map(|(name, value)| Some((name, value?)));
    shell.env_clear().envs(set);
    shell.args(["-c", "ulimit -n 96 && exec \"$0\" \"$@\""]);
    shell.arg(program.get_program());
    let server = Server::started(shell, &[]);
    let crowd: Vec<_> = (0..600).map(|_| server.connect()).collect();
    assert_eq!(server.get("/api/sessions").status, 200);
    let files = std::fs::read_dir(format!("/proc/{}/fd", server.child.id()));
    assert!(files.unwrap().count() < 96);
    drop(crowd);
}
