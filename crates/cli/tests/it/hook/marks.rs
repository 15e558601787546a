//! A long session is read on from a mark before which everything was sent, and whole where
//! anything is not as it was.

use std::fs;

use serde_json::json;
use unspool_testkit::home::Home;
use unspool_testkit::script;
use unspool_testkit::sink::Sink;

use unspool_testkit::wait::wait_until;

use super::{assert_silent, connected_home, event, is_done, log, tell, transcript};

/// Turns that are long enough to be worth a mark.
fn talk(turns: std::ops::RangeInclusive<usize>) -> String {
    let long = "some words ".repeat(12_000);
    let turn = |n| format!("(name=p{n}) you: ask {n} {long}\n(name=r{n}) claude: word{n}\n");
    turns.map(turn).collect()
}

fn write(home: &Home, text: &str) {
    fs::write(transcript(home), script::jsonl(text)).unwrap();
}

/// The client tells of something, and it is dealt with.
fn happens(home: &Home, name: &str) {
    let told = event(home, name, json!({}));
    assert_silent(&tell(home, &["hook"], told.as_bytes()));
    wait_until("it is dealt with", || is_done(home));
}

fn marks(home: &Home) -> Vec<String> {
    let files = fs::read_dir(home.unspool_dir().join("sent/marks"));
    let files = files.into_iter().flatten().flatten();
    files
        .map(|file| fs::read_to_string(file.path()).unwrap())
        .collect()
}

/// How often each turn arrived.
fn times(sink: &Sink) -> Vec<usize> {
    let roots = sink.roots();
    roots.iter().map(|root| root.times).collect()
}

#[test]
fn what_stands_before_the_mark_is_looked_at_again_only_when_the_session_ends() {
    let sink = Sink::langfuse();
    let home = connected_home(&sink);
    write(&home, &talk(1..=3));
    happens(&home, "Stop");
    assert_eq!(times(&sink), [1, 1, 1], "{}", log(&home));
    assert_eq!(marks(&home).len(), 1);
    assert!(
        marks(&home)[0].contains("\"turns\":2"),
        "{:?}",
        marks(&home)
    );
    // Far from the ends of what was read, which no client does: who reads it sees it.
    let more = talk(1..=4).replace("word1", "ward1");
    write(&home, &more);
    happens(&home, "Stop");
    assert_eq!(times(&sink), [1, 1, 1, 1], "{}", log(&home));
    assert!(log(&home).contains("1 turn and 2 spans sent, 3 already sent"));
    assert!(
        marks(&home)[0].contains("\"turns\":3"),
        "{:?}",
        marks(&home)
    );
    let fourth = sink.roots()[3].clone();
    assert_eq!(fourth.name, "Turn 4");
    happens(&home, "SessionEnd");
    assert_eq!(times(&sink), [2, 1, 1, 1], "{}", log(&home));
    assert_eq!(sink.faults(), [""; 0]);
}

#[test]
fn a_session_that_goes_back_behind_the_mark_is_read_whole() {
    let sink = Sink::langfuse();
    let home = connected_home(&sink);
    write(&home, &talk(1..=3));
    happens(&home, "Stop");
    let back = talk(1..=3) + "(parent=r1) you: other\nclaude: yes\n";
    write(&home, &back);
    happens(&home, "Stop");
    // The second and the third are told again: they were taken back.
    assert_eq!(times(&sink), [1, 2, 2, 1], "{}", log(&home));
    assert_eq!(sink.faults(), [""; 0]);
}

#[test]
fn a_mark_without_its_ledger_or_for_another_file_means_nothing() {
    let sink = Sink::langfuse();
    let home = connected_home(&sink);
    write(&home, &talk(1..=3));
    happens(&home, "Stop");
    fs::remove_file(home.unspool_dir().join("sent/ledger")).unwrap();
    happens(&home, "Stop");
    assert_eq!(times(&sink), [2, 2, 2], "{}", log(&home));
    // Another conversation in its place.
    write(&home, &talk(5..=9));
    happens(&home, "Stop");
    let roots = sink.roots();
    let said = |n: usize| {
        let word = format!("word{n}");
        let output = "langfuse.observation.output";
        roots.iter().any(|root| root.text(output).contains(&word))
    };
    assert!((5..=9).all(said), "{}", log(&home));
}
