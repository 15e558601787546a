//! However a file is cut and whoever decodes it, the session is the same.

use std::fs;

use unspool_model::log::{Log, TranscriptSource};
use unspool_model::session::{Session, TranscriptRole};
use unspool_store::read::{SessionReader, TrailingBytes};
use unspool_store::{StoreError, read, read_end};

use crate::kit::{Dice, Home, reply, transcript, user};

/// Everything that a cut could change.
fn facts(session: &Session) -> String {
    let records: Vec<_> = session
        .records
        .iter()
        .zip(session.turns_by_record())
        .map(|(record, turn)| {
            (
                record.line,
                record.offset,
                record.len(),
                record.uuid.clone(),
                record.thread,
                turn,
            )
        })
        .collect();
    let turns: Vec<_> = session.turns.iter().map(|turn| turn.record).collect();
    let messages: Vec<_> = session
        .messages
        .iter()
        .map(|message| {
            (
                session.message_id(message),
                session.usage_of(message),
                message.records.clone(),
            )
        })
        .collect();
    format!(
        "{records:?}\n{turns:?}\n{messages:?}\n{:?}\n{:?}\n{:?} {}",
        session.calls,
        session.faults,
        session.labels.texts(),
        session.blank_lines
    )
}

fn forced(piece: usize, threads: usize) -> SessionReader {
    SessionReader {
        piece,
        alone: 0,
        threads,
        ..SessionReader::default()
    }
}

#[test]
fn any_piece_size_and_number_of_threads_gives_the_same_session() {
    let home = Home::new();
    let mut dice = Dice(0x5eed);
    for round in 0..12 {
        let bytes = transcript(&mut dice, 1 + round * 15);
        let whole = facts(&Session::from_log(
            &Log::new(bytes.clone()),
            TranscriptRole::Main,
        ));
        let path = home.write("-p/s.jsonl", &bytes);
        for piece in [1, 7, 64, 300, 1 << 20] {
            for threads in [1, 2, 3] {
                let loaded = forced(piece, threads)
                    .read(&path, TranscriptRole::Main)
                    .unwrap();
                assert_eq!(facts(&loaded.session), whole, "{piece} {threads}");
                assert_eq!(loaded.bytes, bytes.len() as u64);
            }
        }
    }
}

#[test]
fn a_line_longer_than_many_pieces_is_read() {
    let home = Home::new();
    let long = "x".repeat(300_000);
    let text = user("s", "/p", &long) + &reply("short");
    let path = home.write("-p/s.jsonl", &text);
    for threads in [1, 2] {
        let loaded = forced(1000, threads)
            .read(&path, TranscriptRole::Main)
            .unwrap();
        assert_eq!((loaded.session.turns.len(), loaded.lines), (1, 2));
        let record = &loaded.session.records[0];
        let bytes = loaded.source.bytes(record.offset, record.len()).unwrap();
        assert_eq!(bytes.len(), text.lines().next().unwrap().len());
    }
}

#[test]
fn an_empty_file_is_an_empty_session() {
    let home = Home::new();
    let path = home.write("-p/s.jsonl", "");
    let loaded = read(&path, TranscriptRole::Main).unwrap();
    assert_eq!((loaded.session.records.len(), loaded.bytes), (0, 0));
    assert!(read_end(&path, TranscriptRole::Main, 3, 100).is_ok());
}

#[test]
fn a_growing_line_is_left_to_those_who_follow() {
    let home = Home::new();
    let text = user("s", "/p", "one") + "{\"type\":\"mode\"}";
    let path = home.write("-p/s.jsonl", &text);
    for threads in [1, 2] {
        let growing = SessionReader {
            ending: TrailingBytes::Growing,
            ..forced(9, threads)
        };
        let loaded = growing.read(&path, TranscriptRole::Main).unwrap();
        assert_eq!(loaded.session.records.len(), 1);
        assert_eq!((loaded.bytes, loaded.lines), (text.len() as u64 - 15, 1));
        assert!(loaded.session.faults.is_empty());
        let all = forced(9, threads)
            .read(&path, TranscriptRole::Main)
            .unwrap();
        assert_eq!(all.session.records.len(), 2);
    }
}

#[test]
fn a_cut_anywhere_in_the_last_lines_loses_no_earlier_line() {
    let home = Home::new();
    let text = user("s", "/p", "one") + &reply("日本") + &user("s", "/p", "two");
    let start = text.find('\n').unwrap() + 1;
    for cut in start..=text.len() {
        let path = home.write("-p/s.jsonl", &text.as_bytes()[..cut]);
        let loaded = forced(50, 2).read(&path, TranscriptRole::Main).unwrap();
        let ended = text.as_bytes()[..cut]
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count();
        let whole_line = text.as_bytes().get(cut) == Some(&b'\n');
        let records = loaded.session.records.len();
        assert_eq!(records, ended + usize::from(whole_line), "cut at {cut}");
        let at_end = text.as_bytes()[cut - 1] == b'\n';
        assert_eq!(
            loaded.session.faults.len(),
            usize::from(!at_end),
            "cut at {cut}"
        );
    }
}

#[test]
fn the_end_of_a_file_holds_its_last_turns_at_their_right_places() {
    let home = Home::new();
    let mut text = String::new();
    for turn in 0..50 {
        text += &user("s", "/p", &format!("turn {turn}"));
        for at in 0..5 {
            text += &reply(&format!("{turn}.{at}"));
        }
    }
    let path = home.write("-p/s.jsonl", &text);
    let all = read(&path, TranscriptRole::Main).unwrap();
    for window in [1, 100, 1000, 5000, 1 << 20] {
        let reader = SessionReader {
            window,
            ..SessionReader::default()
        };
        for turns in [1, 2, 7, 50] {
            let end = reader
                .read_end(&path, TranscriptRole::Main, turns, u64::MAX)
                .unwrap();
            assert_eq!(end.session.turns.len(), turns, "{window}");
            assert_eq!(end.is_partial(), turns < 50);
            let first = &end.session.records[0];
            let same = all
                .session
                .records
                .iter()
                .find(|record| record.offset == first.offset);
            let before = end.source.lines_before(end.start).unwrap();
            assert_eq!(same.unwrap().line, first.line + before);
            assert_eq!(same.unwrap().uuid, first.uuid);
        }
        let end = reader
            .read_end(&path, TranscriptRole::Main, 1000, u64::MAX)
            .unwrap();
        assert_eq!((end.start, end.session.turns.len()), (0, 50));
    }
    let little = read_end(&path, TranscriptRole::Main, 1000, 3000).unwrap();
    assert!(little.start >= text.len() as u64 - 3000 && !little.session.records.is_empty());
}

#[test]
fn a_file_that_shrinks_ends_where_it_ends_and_one_that_is_gone_says_so() {
    let home = Home::new();
    let path = home.write("-p/s.jsonl", user("s", "/p", "one") + &reply("two"));
    let loaded = read(&path, TranscriptRole::Main).unwrap();
    let last = loaded.session.records[1].clone();
    fs::write(&path, "x\n").unwrap();
    assert_eq!(loaded.source.bytes(last.offset, last.len()), None);
    fs::remove_file(&path).unwrap();
    let error = read(&path, TranscriptRole::Main).unwrap_err();
    assert!(matches!(error, StoreError::MissingFile { .. }));
}

#[test]
fn a_file_that_changes_all_the_time_is_read_without_harm() {
    let home = Home::new();
    let line = user("s", "/p", "one");
    let path = home.write("-p/s.jsonl", line.repeat(50));
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut dice = Dice(9);
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                fs::write(&path, line.repeat(dice.below(200))).unwrap();
            }
        });
        for _ in 0..100 {
            let loaded = forced(500, 2).read(&path, TranscriptRole::Main).unwrap();
            assert!(loaded.session.records.len() < 200);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
