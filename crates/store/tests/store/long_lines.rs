//! Lines that are too long to be held: read past, followed past, and never lost.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use unspool_model::log::LONGEST_LINE;
use unspool_model::session::{LongLine, Session, TranscriptRole};
use unspool_store::follow::TranscriptTail;
use unspool_store::read::SessionReader;

fn prompt(text: &str) -> String {
    format!(r#"{{"type":"user","message":{{"role":"user","content":"{text}"}}}}"#) + "\n"
}

/// The line, the kind and the words of a fault.
type ToldFault = (u32, &'static str, String);

fn read(path: &Path, reader: SessionReader) -> (Vec<ToldFault>, Vec<LongLine>, usize) {
    let session = reader.read(path, TranscriptRole::Main).unwrap().session;
    let faults = session.faults.into_iter();
    let faults = faults.map(|fault| (fault.line, fault.kind.name(), fault.detail));
    (faults.collect(), session.long_lines, session.records.len())
}

#[test]
fn however_the_file_is_cut_the_same_lines_are_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let long = prompt(&"long ".repeat(500));
    let text = [
        prompt("one"),
        long.clone(),
        prompt("two"),
        long.clone(),
        long.clone(),
    ]
    .concat();
    let text = text + &prompt("three") + long.trim_end();
    std::fs::write(&path, &text).unwrap();
    let reader = |piece, threads, alone| SessionReader {
        piece,
        threads,
        alone,
        longest: 1000,
        ..SessionReader::default()
    };
    let whole = read(&path, reader(1 << 20, 1, u64::MAX));
    assert_eq!(whole.2, 3);
    let numbers: Vec<_> = whole.1.iter().map(|line| line.line).collect();
    assert_eq!(numbers, [2, 4, 5, 7]);
    assert_eq!(whole.1[0].offset, prompt("one").len() as u64);
    assert_eq!(whole.1[0].len, long.len() as u64 - 1);
    assert_eq!(whole.0.len(), 4, "{:?}", whole.0);
    for piece in [1, 7, 60, 999, 1000, 1001, 5000] {
        for (threads, alone) in [(1, u64::MAX), (3, 0)] {
            assert_eq!(
                read(&path, reader(piece, threads, alone)),
                whole,
                "{piece} {threads}"
            );
        }
    }
}

#[test]
fn a_file_that_is_followed_goes_on_behind_a_line_that_is_too_long() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let mut file = File::create(&path).unwrap();
    let mut tail = TranscriptTail::new(&path);
    let mut session = Session::new(TranscriptRole::Main);
    let poll = |tail: &mut TranscriptTail, session: &mut Session| {
        let polled = tail.poll(|line| {
            session.push(&line);
        });
        let polled = polled.unwrap();
        assert!(!polled.restarted);
        polled.lines
    };
    file.write_all(prompt("one").as_bytes()).unwrap();
    file.seek(SeekFrom::Current(LONGEST_LINE as i64)).unwrap();
    file.write_all(b"x").unwrap();
    assert_eq!(poll(&mut tail, &mut session), 1);
    file.seek(SeekFrom::Current(1 << 30)).unwrap();
    file.write_all(b"y").unwrap();
    assert_eq!(poll(&mut tail, &mut session), 0);
    file.write_all(b"z\n").unwrap();
    assert_eq!(poll(&mut tail, &mut session), 1);
    file.write_all(prompt("two").as_bytes()).unwrap();
    assert_eq!(poll(&mut tail, &mut session), 1);
    assert_eq!(poll(&mut tail, &mut session), 0);
    assert_eq!(session.records.len(), 2);
    let len = LONGEST_LINE as u64 + (1 << 30) + 3;
    let offset = prompt("one").len() as u64;
    assert_eq!(
        session.long_lines,
        [LongLine {
            line: 2,
            offset,
            len
        }]
    );
    let again = read(&path, SessionReader::default());
    assert_eq!((again.1, again.2), (session.long_lines, 2));
}
