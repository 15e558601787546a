//! Tests: the owner gets an answer, whatever strangers on the same machine do to the port.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::RunningServer;
use crate::load_tests::{server, server_on};

/// The owner is answered within this time, however busy the machine that runs the tests is.
const BOUND: Duration = Duration::from_secs(10);

/// Connections that send these bytes and then nothing. Each stays open on our side.
fn strangers(running: &RunningServer, count: usize, bytes: &str) -> Vec<TcpStream> {
    let connect = |_| {
        let mut stream = TcpStream::connect(("127.0.0.1", running.port)).unwrap();
        // Who was sent away already cannot be written to.
        let _ = stream.write_all(bytes.as_bytes());
        stream
    };
    (0..count).map(connect).collect()
}

/// The answer to one request; empty if there was none in time.
fn ask(running: &RunningServer, request: &str, limit: Duration) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", running.port)).unwrap();
    stream.set_read_timeout(Some(limit)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    // A reset or our own limit leaves what came before it.
    let _ = stream.read_to_string(&mut answer);
    answer
}

fn with_token(running: &RunningServer) -> String {
    format!(
        "GET /api/health HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n",
        running.port,
        running.keys.token()
    )
}

fn owner_is_answered(running: &RunningServer) {
    let began = Instant::now();
    let answer = ask(running, &with_token(running), BOUND);
    assert!(
        answer.starts_with("HTTP/1.1 200"),
        "{answer:?} after {:?}",
        began.elapsed()
    );
}

#[test]
fn six_hundred_half_open_connections_do_not_shut_the_owner_out() {
    let (running, _hub) = server();
    let _half = strangers(&running, 600, "GET / HTTP/1.1\r\nhost: 127");
    owner_is_answered(&running);
}

#[test]
fn two_thousand_half_open_connections_do_not_shut_the_owner_out() {
    let (running, _hub) = server();
    let _half = strangers(&running, 2000, "");
    owner_is_answered(&running);
}

#[test]
fn slow_bodies_do_not_shut_the_owner_out() {
    let (running, _hub) = server();
    let head = format!(
        "POST /api/login HTTP/1.1\r\nhost: 127.0.0.1:{}\r\ncontent-length: 200\r\n\r\n{{",
        running.port
    );
    let _slow = strangers(&running, 700, &head);
    owner_is_answered(&running);
}

#[test]
fn those_who_ask_for_the_page_and_do_not_read_it_do_not_shut_the_owner_out() {
    let (running, _hub) = server();
    let one = format!("GET / HTTP/1.1\r\nhost: 127.0.0.1:{}\r\n\r\n", running.port);
    // Many requests at once, none of whose answers is read.
    let _deaf = strangers(&running, 700, &one.repeat(200));
    owner_is_answered(&running);
}

#[test]
fn garbage_and_endless_headers_are_refused_and_do_not_shut_the_owner_out() {
    let (running, _hub) = server();
    let _garbage = strangers(&running, 300, "\u{0}\u{1}\u{2} not HTTP at all\r\n\r\n");
    let long = format!("GET / HTTP/1.1\r\nx: {}", "a".repeat(300_000));
    let _long = strangers(&running, 300, &long);
    let many: String = (0..2000).map(|n| format!("h{n}: x\r\n")).collect();
    let many = format!(
        "GET / HTTP/1.1\r\nhost: 127.0.0.1:{}\r\n{many}\r\n",
        running.port
    );
    let answer = ask(&running, &many, Duration::from_secs(30));
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer:?}");
    owner_is_answered(&running);
}

#[test]
fn whoever_showed_the_token_stays_while_strangers_come_and_go() {
    let (running, hub) = server();
    let mut events = crate::load_tests::listen(&running);
    for _ in 0..4 {
        let _half = strangers(&running, 700, "GET / HTTP/1.1\r\nhost: 127");
        owner_is_answered(&running);
    }
    hub.changed(&crate::load_tests::row("after", 1), None, true);
    let told = crate::load_tests::until(&mut events, "data: {\"session\"");
    assert!(told.is_some_and(|line| line.contains("\"after\"")));
}

#[test]
fn a_half_open_connection_is_closed_soon() {
    let (running, _hub) = server();
    let mut half = strangers(&running, 1, "GET / HTTP/1.1\r\nhost: 127");
    half[0].set_read_timeout(Some(3 * BOUND)).unwrap();
    let ended = half[0].read_to_end(&mut Vec::new());
    // The end or a reset, not our own patience.
    let patience = ended.is_err_and(|why| why.kind() == std::io::ErrorKind::WouldBlock);
    assert!(!patience, "it is still open");
}

#[test]
fn the_old_protocol_is_answered_once_and_closed() {
    let (running, _hub) = server();
    let old = with_token(&running)
        .replace("HTTP/1.1", "HTTP/1.0")
        .replace("connection: close\r\n", "");
    let answer = ask(&running, &old, Duration::from_secs(30));
    assert!(answer.starts_with("HTTP/1.0 200"), "{answer:?}");
}

#[test]
fn a_port_that_somebody_else_has_on_the_other_address_is_not_used() {
    let Ok(other) = std::net::TcpListener::bind("[::1]:0") else {
        return; // No IPv6 here, so nobody has the port there.
    };
    let port = other.local_addr().unwrap().port();
    let (running, _hub) = server_on(port);
    assert_ne!(running.port, port);
    owner_is_answered(&running);
}

#[test]
fn as_many_streams_as_are_allowed_leave_room_for_questions() {
    let (running, _hub) = server();
    let ask_for_events = with_token(&running)
        .replace("/api/health", "/api/events")
        .replace("connection: close\r\n", "");
    // More than may listen; the others are told so and closed.
    let (mut streams, mut heads) = (Vec::new(), Vec::new());
    for _ in 0..450 {
        let mut stream = strangers(&running, 1, &ask_for_events).remove(0);
        stream.set_read_timeout(Some(BOUND)).unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        heads.push(String::from_utf8_lossy(&head).into_owned());
        streams.push(stream);
    }
    let listen = heads.iter().filter(|head| *head == "HTTP/1.1 200").count();
    let later = heads.iter().filter(|head| *head == "HTTP/1.1 503").count();
    assert!(listen >= 100 && later >= 100, "{listen} and {later}");
    assert_eq!(listen + later, streams.len());
    owner_is_answered(&running);
    let _half = strangers(&running, 600, "GET / HTTP/1.1\r\nhost: 127");
    owner_is_answered(&running);
}
