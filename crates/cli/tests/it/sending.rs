//! `send`: every turn once, whole, under the right session, whatever the receiver does.

use std::fs;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use unspool_testkit::home::Home;
use unspool_testkit::script;
use unspool_testkit::sink::{Answer, Door, PUBLIC, SECRET, Sink, Span};

use crate::{ID, home, home_with_session};

const CWD: &str = "/home/dev/x";
const SEND: [&str; 4] = ["send", "--all", "--to", "langfuse"];

/// Lets a home send to a receiver.
fn connect(home: &mut Home, sink: &Sink) {
    home.set("LANGFUSE_PUBLIC_KEY", PUBLIC)
        .set("LANGFUSE_SECRET_KEY", SECRET)
        .set("LANGFUSE_BASE_URL", &sink.url())
        .set("UNSPOOL_RETRY_SECONDS", "1");
}

fn ready(sink: &Sink) -> Home {
    let mut home = home_with_session();
    connect(&mut home, sink);
    home
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// Sends and expects it to go well.
fn send(home: &Home, args: &[&str]) -> String {
    let output = home.output(args);
    assert!(output.status.success(), "{}", said(&output));
    said(&output)
}

/// Sends and expects it to fail.
fn fails(home: &Home, args: &[&str]) -> String {
    let output = home.output(args);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    said(&output)
}

fn names(spans: &[Span]) -> Vec<&str> {
    spans.iter().map(|span| span.name.as_str()).collect()
}

#[test]
fn a_session_arrives_whole_and_nothing_is_wrong_with_it() {
    let sink = Sink::langfuse();
    let home = ready(&sink);
    let told = send(&home, &SEND);
    assert!(told.contains("2 turns with"), "{told}");
    assert_eq!(sink.faults(), [""; 0]);
    let roots = sink.roots();
    assert_eq!(names(&roots), ["Turn 1", "Turn 2"]);
    assert!(roots.iter().all(|root| root.text("session.id") == ID));
    let spans = sink.spans();
    for name in ["Read", "Task", "Edit"] {
        assert!(names(&spans).contains(&name), "{name}");
    }
    let known = |id: &str| spans.iter().any(|span| span.id == id);
    assert!(
        spans
            .iter()
            .all(|it| it.parent.is_empty() || known(&it.parent))
    );
}

/// Lines that go on where a file ends, with ids that begin with this.
fn after(file: &str, more: &str, ids: &str) -> String {
    let uuid = file.rsplit("\"uuid\":\"").next().unwrap().split('"').next();
    let more = String::from_utf8(script::jsonl(more)).unwrap();
    let more = more.replace("00000000-0000-4000-8000", &format!("{ids}-0000-4000-8000"));
    let root = "\"parentUuid\":null";
    assert!(more.contains(root), "{more}");
    more.replacen(root, &format!("\"parentUuid\":\"{}\"", uuid.unwrap()), 1)
}

#[test]
fn what_was_taken_is_not_sent_again_and_what_is_new_is() {
    let sink = Sink::langfuse();
    let home = ready(&sink);
    send(&home, &SEND);
    let requests = sink.requests();
    let told = send(&home, &SEND);
    assert!(
        told.contains("nothing new to send; 2 turns already sent"),
        "{told}"
    );
    assert_eq!(sink.requests(), requests);
    let path = home
        .claude_dir()
        .join(format!("projects/-home-dev-x/{ID}.jsonl"));
    let more = format!(
        "(cwd={CWD}, session={ID})\n(at=2026-01-05T11:00:00.000Z) you: more\n(id=msg_new) claude: yes\n"
    );
    let text = fs::read_to_string(&path).unwrap();
    let more = after(&text, &more, "11111111");
    fs::write(&path, text + &more).unwrap();
    let told = send(&home, &SEND);
    assert!(told.contains("1 turn with"), "{told}");
    assert!(sink.spans().iter().all(|span| span.times == 1));
    // All of it once more, on request.
    send(&home, &["send", "--all", "--to", "langfuse", "--full"]);
    assert!(sink.spans().iter().all(|span| span.times == 2));
}

#[test]
fn another_receiver_gets_everything() {
    let (one, two) = (Sink::langfuse(), Sink::otlp());
    let mut home = ready(&one);
    home.set("OTEL_EXPORTER_OTLP_ENDPOINT", &two.url());
    send(&home, &SEND);
    send(&home, &["send", "--all", "--to", "otlp"]);
    assert_eq!(two.faults(), [""; 0]);
    assert_eq!(one.spans().len(), two.spans().len());
}

const PART: &str = "you: fix it\nclaude: looking [Read a]\n";
const REST: &str = "result: Read a b\nclaude: done\n";

#[test]
fn a_turn_that_goes_on_waits_and_is_then_sent_once_and_whole() {
    let sink = Sink::langfuse();
    let mut home = home();
    connect(&mut home, &sink);
    home.session(CWD, ID, PART);
    let told = send(&home, &SEND);
    assert!(told.contains("1 turn unfinished"), "{told}");
    assert_eq!(sink.requests(), 0);
    home.session(CWD, ID, &format!("{PART}{REST}"));
    send(&home, &SEND);
    let spans = sink.spans();
    assert_eq!(spans.iter().filter(|it| it.name == "Read").count(), 1);
    assert!(spans.iter().all(|span| span.times == 1));
    assert!(
        sink.roots()[0]
            .text("langfuse.observation.output")
            .contains("done")
    );
}

#[test]
fn lines_that_come_late_are_sent_under_the_same_ids() {
    let sink = Sink::langfuse();
    let mut home = home();
    connect(&mut home, &sink);
    home.session(CWD, ID, &format!("{PART}{REST}"));
    send(&home, &SEND);
    let before = sink.spans();
    home.session(
        CWD,
        ID,
        &format!("{PART}{REST}claude: and one more thing\n"),
    );
    send(&home, &SEND);
    let after = sink.spans();
    assert_eq!(sink.roots().len(), 1);
    assert_eq!(after.len(), before.len() + 1);
    assert!(
        sink.roots()[0]
            .text("langfuse.observation.output")
            .contains("one more thing")
    );
}

#[test]
fn how_long_a_turn_took_belongs_to_that_turn_however_late_it_is_written() {
    let sink = Sink::langfuse();
    let mut home = home();
    connect(&mut home, &sink);
    let first = "you: one\nclaude: yes\n";
    home.session(CWD, ID, first);
    send(&home, &SEND);
    let second = "duration: 90602\nyou: two\nclaude: yes\n";
    home.session(CWD, ID, &format!("{first}{second}"));
    send(&home, &SEND);
    let took: Vec<u64> = sink
        .roots()
        .iter()
        .map(|root| (root.end - root.start) / 1_000_000)
        .collect();
    assert_eq!(took[0], 90_602);
    assert!(took[1] < 60_000, "{took:?}");
}

#[test]
fn a_receiver_that_is_down_gets_it_later_without_loss_and_without_double() {
    let down = Sink::scripted(|_| {
        let soon = vec![("retry-after-ms", "50".to_owned())];
        Answer::Fail("503 Service Unavailable", soon, "closed".into())
    });
    let mut home = ready(&down);
    let told = fails(&home, &SEND);
    assert!(told.contains("Langfuse answered 503: closed"), "{told}");
    assert!(told.contains("nothing is lost"), "{told}");
    assert!(down.requests() > 2);
    assert_eq!(down.spans().len(), 0);
    let up = Sink::langfuse();
    home.set("LANGFUSE_BASE_URL", &up.url());
    send(&home, &SEND);
    assert_eq!(up.roots().len(), 2);
    assert!(up.spans().iter().all(|span| span.times == 1));
}

#[test]
fn an_answer_that_never_arrives_makes_no_second_trace() {
    let cut = AtomicUsize::new(0);
    let sink = Sink::scripted(move |_| match cut.fetch_add(1, Ordering::SeqCst) {
        0 => Answer::TakeAndHangUp,
        1 => Answer::HangUp,
        _ => Answer::Late(Duration::from_millis(50), Box::new(Answer::Take)),
    });
    let mut home = ready(&sink);
    home.set("UNSPOOL_RETRY_SECONDS", "20");
    send(&home, &SEND);
    assert_eq!(names(&sink.roots()), ["Turn 1", "Turn 2"]);
    assert!(sink.spans().iter().all(|span| span.times == 2));
}

#[test]
fn what_is_too_large_is_sent_in_parts() {
    let sink = Sink::scripted(|request| match request.spans.len() {
        0..=2 => Answer::Take,
        _ => Answer::Fail("413 Payload Too Large", vec![], "no".into()),
    });
    let home = ready(&sink);
    send(&home, &SEND);
    assert_eq!(names(&sink.roots()), ["Turn 1", "Turn 2"]);
    assert!(sink.spans().iter().all(|span| span.times == 1));
}

#[test]
fn a_span_that_is_refused_is_named_and_the_rest_arrives() {
    let sink = Sink::scripted(
        |request| match request.spans.iter().any(|it| it.name == "Edit") {
            true => Answer::Fail("400 Bad Request", vec![], "no edits here".into()),
            false => Answer::Take,
        },
    );
    let home = ready(&sink);
    let told = send(&home, &SEND);
    assert!(
        told.contains("rejected: span ") && told.contains("no edits here"),
        "{told}"
    );
    assert!(names(&sink.spans()).contains(&"Read"));
    assert!(!names(&sink.spans()).contains(&"Edit"));
    // It is not tried for ever.
    let requests = sink.requests();
    send(&home, &SEND);
    assert_eq!(sink.requests(), requests);
}

#[test]
fn spans_that_a_receiver_drops_are_told() {
    for most in [false, true] {
        let sink = Sink::scripted(move |_| match most {
            true => Answer::TakeMost("too odd".into()),
            false => Answer::TakeWithout(2, "too odd".into()),
        });
        let home = ready(&sink);
        let told = send(&home, &SEND);
        assert!(
            told.contains("rejected: ") && told.contains("too odd"),
            "{told}"
        );
        assert_eq!(sink.requests(), 1);
    }
}

#[test]
fn what_a_receiver_takes_nothing_of_is_not_sent() {
    let answers: [fn() -> Answer; 2] = [
        || Answer::Fail("400 Bad Request", vec![], "not today".into()),
        || Answer::TakeWithout(1_000, "not today".into()),
    ];
    for answer in answers {
        let open = Arc::new(AtomicBool::new(false));
        let door = Arc::clone(&open);
        let sink = Sink::scripted(move |_| match door.load(Ordering::Relaxed) {
            true => Answer::Take,
            false => answer(),
        });
        let mut home = home();
        home.session(CWD, ID, "you: hello\nclaude: hi\n");
        connect(&mut home, &sink);
        let told = fails(&home, &SEND);
        assert!(told.contains("not today"), "{told}");
        open.store(true, Ordering::Relaxed);
        let told = send(&home, &SEND);
        assert!(told.contains("1 turn with 2 spans"), "{told}");
        assert!(send(&home, &SEND).contains("nothing new"));
    }
}

#[test]
fn bad_configuration_says_what_to_set_and_nothing_counts_as_sent() {
    let sink = Sink::langfuse();
    let mut home = home_with_session();
    let told = fails(&home, &SEND);
    assert!(
        told.contains("LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY are not set"),
        "{told}"
    );
    connect(&mut home, &sink);
    home.set("LANGFUSE_SECRET_KEY", "sk-lf-of-somebody-else");
    let told = fails(&home, &SEND);
    assert!(told.contains("rejected the keys (401)"), "{told}");
    assert!(
        told.contains("set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"),
        "{told}"
    );
    assert_eq!(told.matches("(401)").count(), 1, "{told}");
    home.set("LANGFUSE_SECRET_KEY", SECRET);
    let bases = [
        (
            format!("{}/deeper", sink.url()),
            "does not accept traces (404)",
        ),
        (sink.url().replace("http", "https"), "TLS error"),
        (
            "http://no-such-host.invalid".to_owned(),
            "cannot resolve host",
        ),
        ("ftp://x".to_owned(), "is not a URL"),
    ];
    for (base, reason) in bases {
        home.set("LANGFUSE_BASE_URL", &base);
        let told = fails(&home, &SEND);
        assert!(told.contains(reason), "{base}: {told}");
        assert!(told.contains("LANGFUSE_BASE_URL"), "{base}: {told}");
    }
    let page = Sink::scripted(|_| Answer::Page);
    home.set("LANGFUSE_BASE_URL", &page.url());
    let told = fails(&home, &SEND);
    assert!(told.contains("with a web page"), "{told}");
    assert_eq!(sink.spans().len(), 0);
    home.set("LANGFUSE_BASE_URL", &sink.url());
    send(&home, &SEND);
    assert_eq!(sink.roots().len(), 2);
}

#[test]
fn a_header_of_ones_own_opens_any_receiver() {
    let door = Door::Otlp(Some(("api-key".into(), "a b".into())));
    let sink = Sink::start(door, |_| Answer::Take);
    let mut home = home_with_session();
    home.set(
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        &format!("{}/v1/traces", sink.url()),
    )
    .set("UNSPOOL_RETRY_SECONDS", "1");
    let to = ["send", "--all", "--to", "otlp"];
    let told = fails(&home, &to);
    assert!(told.contains("OTEL_EXPORTER_OTLP_HEADERS"), "{told}");
    home.set("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b")
        .set("OTEL_EXPORTER_OTLP_COMPRESSION", "none");
    send(&home, &to);
    assert_eq!(sink.roots().len(), 2);
}

/// A fork of [`ID`]: the same lines under another session, and one turn more.
fn fork(home: &Home) -> &'static str {
    const FORK: &str = "f0000000-0000-4000-8000-000000000002";
    let folder = home.claude_dir().join("projects/-home-dev-x");
    let text = fs::read_to_string(folder.join(format!("{ID}.jsonl"))).unwrap();
    let more = "(at=+1h) you: more\n(id=msg_fork) claude: yes\n";
    let more = format!("(cwd={CWD}, session={FORK}, at=2026-01-06T00:00:00.000Z)\n{more}");
    let copy = text.replace(ID, FORK) + &after(&text, &more, "22222222");
    fs::write(folder.join(format!("{FORK}.jsonl")), copy).unwrap();
    FORK
}

#[test]
fn a_forked_copy_makes_no_second_trace() {
    let sink = Sink::langfuse();
    let home = ready(&sink);
    let forked = fork(&home);
    let told = send(&home, &SEND);
    assert!(
        told.contains("2 turns copied from an older session"),
        "{told}"
    );
    let roots = sink.roots();
    let sessions: Vec<&str> = roots.iter().map(|root| root.text("session.id")).collect();
    assert_eq!(sessions, [ID, ID, forked]);
}

#[test]
fn a_copy_that_is_sent_alone_leaves_its_old_turns_to_the_older_session() {
    let sink = Sink::langfuse();
    let home = ready(&sink);
    let forked = fork(&home);
    send(&home, &["send", forked, "--to", "langfuse"]);
    let roots = sink.roots();
    let sessions: Vec<&str> = roots.iter().map(|root| root.text("session.id")).collect();
    assert_eq!(sessions, [ID, ID, forked]);
    // The older one has the sub-agent too, which the copy does not: the same traces grow.
    let told = send(&home, &["send", ID, "--to", "langfuse"]);
    assert!(told.contains("1 turn with"), "{told}");
    assert_eq!(sink.roots().len(), 3);
    assert!(send(&home, &SEND).contains("nothing new"));
}

#[test]
fn a_copy_of_ours_is_younger_than_a_session_that_went_on() {
    let (first, second) = (
        "you: hello\nclaude: hi\n",
        "(at=+1h) you: more\nclaude: yes\n",
    );
    for all in [true, false] {
        let sink = Sink::langfuse();
        let mut home = home();
        connect(&mut home, &sink);
        home.session(CWD, ID, first);
        assert!(home.output(&["clone", ID]).status.success());
        home.session(CWD, ID, &format!("{first}{second}"));
        match all {
            true => send(&home, &SEND),
            false => send(&home, &["send", ID, "--to", "langfuse"]),
        };
        let roots = sink.roots();
        let sessions: Vec<&str> = roots.iter().map(|root| root.text("session.id")).collect();
        assert_eq!(sessions, [ID, ID]);
    }
}

#[test]
fn a_copy_whose_first_reply_comes_late_is_no_older_for_that() {
    let sink = Sink::langfuse();
    let mut home = home();
    connect(&mut home, &sink);
    home.session(
        CWD,
        ID,
        &format!("you: {}\nclaude: hi\n", "long ".repeat(6_000)),
    );
    let folder = home.claude_dir().join("projects/-home-dev-x");
    let text = fs::read_to_string(folder.join(format!("{ID}.jsonl"))).unwrap();
    // The same lines and a long turn more, as a client that says nothing of it writes them.
    let copy = "0f000000-0000-4000-8000-000000000002";
    let more = format!(
        "you: {}\n(id=msg_copy) claude: yes\n",
        "more ".repeat(20_000)
    );
    let more = format!("(cwd={CWD}, session={copy}, at=2026-01-06T00:00:00.000Z)\n{more}");
    let lines = text.replace(ID, copy) + &after(&text, &more, "22222222");
    fs::write(folder.join(format!("{copy}.jsonl")), lines).unwrap();
    send(&home, &SEND);
    let roots = sink.roots();
    let sessions: Vec<&str> = roots.iter().map(|root| root.text("session.id")).collect();
    assert_eq!(sessions, [ID, copy]);
}

#[test]
fn turns_of_an_older_exporter_are_not_sent_again() {
    let sink = Sink::langfuse();
    let home = ready(&sink);
    let path = home
        .claude_dir()
        .join(format!("projects/-home-dev-x/{ID}.jsonl"));
    let lines = fs::read_to_string(path).unwrap();
    let second = lines
        .lines()
        .position(|line| line.contains("\"thanks\""))
        .unwrap();
    let state =
        format!(r#"{{"{ID}":{{"last_line":{second},"turn_count":1,"updated":"x"}},"bad":[]}}"#);
    home.write(".claude/state/cc-langfuse_state.json", state);
    let told = send(&home, &SEND);
    assert!(told.contains("1 turn already sent"), "{told}");
    assert_eq!(names(&sink.roots()), ["Turn 2"]);
    // Read once: what it says later is not ours.
    home.write(".claude/state/cc-langfuse_state.json", "{}");
    assert!(send(&home, &SEND).contains("2 turns already sent"));
}

#[test]
fn two_at_once_send_nothing_twice() {
    let sink = Sink::scripted(|_| Answer::Late(Duration::from_millis(300), Box::new(Answer::Take)));
    let home = ready(&sink);
    let start = || {
        let mut command = home.command();
        command
            .args(SEND)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let both = [start(), start(), start()];
    for child in both {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
    }
    assert_eq!(sink.roots().len(), 2);
    assert!(sink.spans().iter().all(|span| span.times == 1));
}

#[test]
fn secrets_stay_here_unless_somebody_lets_them_go() {
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    for (args, leaves) in [
        (&SEND[..], false),
        (&["send", "--all", "--to", "langfuse", "--no-redact"], true),
    ] {
        let sink = Sink::langfuse();
        let mut home = home();
        connect(&mut home, &sink);
        home.session(CWD, ID, &format!("you: use {token}\nclaude: ok\n"));
        send(&home, args);
        let all = format!("{:?}", sink.spans());
        assert_eq!(all.contains(&token), leaves);
    }
}

#[test]
fn a_dry_run_shows_the_tree_and_sends_nothing() {
    let sink = Sink::langfuse();
    let home = ready(&sink);
    let shown = home.run(&["send", ID, "--to", "langfuse", "--dry-run"]);
    for part in ["Turn 1", "Read", "would be sent"] {
        assert!(shown.contains(part), "{shown}");
    }
    let rows = home.output(&["send", ID, "--to", "langfuse", "--dry-run", "--json"]);
    let rows = String::from_utf8(rows.stdout).unwrap();
    let kinds: Vec<bool> = rows
        .lines()
        .map(|row| row.contains(r#""kind":"tool""#))
        .collect();
    assert_eq!(kinds.iter().filter(|tool| **tool).count(), 3);
    assert_eq!(sink.requests(), 0);
    assert!(!home.unspool_dir().join("sent/ledger").exists());
}

/// The sessions of the turns that a dry run would send.
fn would_send(home: &Home, session: &str) -> Vec<String> {
    let output = home.output(&["send", session, "--to", "langfuse", "--dry-run", "--json"]);
    let rows = String::from_utf8(output.stdout).unwrap();
    let rows = rows.lines().map(serde_json::from_str::<serde_json::Value>);
    let rows = rows
        .map(Result::unwrap)
        .filter(|row| row["parent"].is_null());
    rows.map(|row| row["session"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_dry_run_names_the_sessions_that_a_run_would() {
    let sink = Sink::langfuse();
    let home = ready(&sink);
    let forked = fork(&home);
    let told = would_send(&home, forked);
    send(&home, &["send", forked, "--to", "langfuse"]);
    let roots = sink.roots();
    let came: Vec<&str> = roots.iter().map(|root| root.text("session.id")).collect();
    assert_eq!(told, came);
}

#[test]
fn a_dry_run_knows_what_an_older_exporter_sent_and_notes_nothing() {
    let sink = Sink::langfuse();
    let home = ready(&sink);
    let state = format!(r#"{{"{ID}":{{"last_line":100000,"turn_count":2,"updated":"x"}}}}"#);
    home.write(".claude/state/cc-langfuse_state.json", state);
    assert!(would_send(&home, ID).is_empty());
    assert!(!home.unspool_dir().join("sent/ledger").exists());
}

#[test]
fn a_summary_for_machines() {
    let sink = Sink::langfuse();
    let home = ready(&sink);
    let output = home.output(&["send", ID, "--to", "langfuse", "--json"]);
    let row = String::from_utf8(output.stdout).unwrap();
    assert!(row.starts_with(r#"{"sessions":1,"turns":2,"#), "{row}");
    assert_eq!(row.lines().count(), 1);
}

#[cfg(unix)]
#[test]
fn a_sender_that_is_killed_again_and_again_sends_every_turn_once_and_whole() {
    use unspool_testkit::soak::{self, Plan};
    let more = std::env::var("UNSPOOL_CASES").ok();
    let kills = more.and_then(|text| text.parse().ok()).unwrap_or(100);
    let plan = Plan {
        kills,
        lines: kills * if kills > 100 { 100 } else { 15 },
        sessions: if kills > 100 { 20 } else { 5 },
        seed: 7,
    };
    let report = soak::run(env!("CARGO_BIN_EXE_unspool").as_ref(), plan).unwrap();
    println!("{report:?}");
    assert_eq!(report.kills, kills);
    assert!(report.turns > kills, "{report:?}");
}
