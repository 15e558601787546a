//! Following a file against a model of a few lines: what was written is handed out, once.

use std::fs;
use std::io::Write;
use std::path::Path;

use unspool_model::session::{Session, TranscriptRole};
use unspool_store::follow::{FileCursor, TranscriptTail};
use unspool_store::read::{SessionReader, TrailingBytes};

use crate::kit::{Dice, Home, reply, user};

fn append(path: &Path, text: &str) {
    let mut file = fs::File::options()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// The file as the model knows it, and how much of it was handed out.
#[derive(Default)]
struct Model {
    text: String,
    handed: usize,
}

impl Model {
    fn due(&mut self) -> Vec<String> {
        let end = self.text.rfind('\n').map_or(0, |at| at + 1);
        let due = self.text[self.handed..end]
            .lines()
            .map(str::to_owned)
            .collect();
        self.handed = end;
        due
    }
}

#[test]
fn whatever_happens_to_the_file_each_line_is_handed_out_once() {
    // 182 rewrites the file under a long line that had not ended.
    for seed in (1..40).chain([182]) {
        let home = Home::new();
        let path = home.write("-p/s.jsonl", "");
        let mut dice = Dice(seed * 7919);
        let mut model = Model::default();
        let mut tail = TranscriptTail::new(&path);
        for step in 0..120 {
            let line = format!("{step} {}", "日x".repeat(dice.below(600)));
            match dice.below(10) {
                0..=2 => change(&path, &mut model, &format!("{line}\n")),
                3 => change(&path, &mut model, &line),
                4 => change(&path, &mut model, &format!("{line}\n{line}\n{line}")),
                5 => change(&path, &mut model, "\n"),
                6 => anew(&path, &mut model, &format!("new {line}\n"), Anew::InPlace),
                7 => anew(&path, &mut model, &format!("new {line}\n"), Anew::Renamed),
                8 => tail = TranscriptTail::resume(&path, tail.cursor()),
                _ => {}
            }
            if dice.below(3) > 0 {
                let mut lines = Vec::new();
                let take = |line: unspool_model::log::Line<'_>| {
                    lines.push(String::from_utf8(line.bytes.to_vec()).unwrap());
                };
                let polled = tail.poll(take).unwrap();
                assert_eq!(polled.lines as usize, lines.len());
                assert_eq!(lines, model.due(), "seed {seed} step {step}");
                assert_eq!(tail.cursor().offset as usize, model.handed);
            }
        }
    }
}

fn change(path: &Path, model: &mut Model, text: &str) {
    append(path, text);
    model.text += text;
}

enum Anew {
    InPlace,
    Renamed,
}

/// The file is written anew: cut and refilled, or another one put in its place.
fn anew(path: &Path, model: &mut Model, text: &str, how: Anew) {
    match how {
        Anew::InPlace => fs::write(path, text).unwrap(),
        Anew::Renamed => {
            let other = path.with_extension("new");
            fs::write(&other, text).unwrap();
            fs::rename(other, path).unwrap();
        }
    }
    *model = Model {
        text: text.to_owned(),
        handed: 0,
    };
}

#[test]
fn a_file_may_come_late_and_go() {
    let home = Home::new();
    let path = home.path().join("late.jsonl");
    let mut tail = TranscriptTail::new(&path);
    assert_eq!(tail.poll(|_| ()).unwrap().lines, 0);
    append(&path, "a\nb");
    assert_eq!(tail.poll(|_| ()).unwrap().lines, 1);
    fs::remove_file(&path).unwrap();
    assert_eq!(tail.poll(|_| ()).unwrap().lines, 0);
    append(&path, "other\n");
    let polled = tail.poll(|_| ()).unwrap();
    assert_eq!((polled.lines, polled.restarted), (1, true));
}

#[test]
fn a_cursor_of_another_file_starts_from_the_top() {
    let home = Home::new();
    let path = home.write("-p/s.jsonl", "a\nb\n");
    let stale = FileCursor {
        offset: 2,
        lines: 1,
        ..FileCursor::default()
    };
    let polled = TranscriptTail::resume(&path, stale).poll(|_| ()).unwrap();
    assert_eq!((polled.lines, polled.restarted), (2, true));
}

#[test]
fn reading_and_then_following_gives_the_session_of_the_whole_file() {
    let home = Home::new();
    let torn = user("s", "/p", "two");
    let (start, rest) = torn.split_at(30);
    let path = home.write("-p/s.jsonl", user("s", "/p", "one") + &reply("r1") + start);
    let reader = SessionReader {
        ending: TrailingBytes::Growing,
        ..SessionReader::default()
    };
    let mut loaded = reader.read(&path, TranscriptRole::Main).unwrap();
    let mut tail = TranscriptTail::after(&loaded).unwrap();
    append(&path, rest);
    append(&path, &reply("r2"));
    let session = &mut loaded.session;
    tail.poll(|line| {
        session.push(&line);
    })
    .unwrap();
    let whole: Session = SessionReader::default()
        .read(&path, TranscriptRole::Main)
        .unwrap()
        .session;
    let places = |session: &Session| -> Vec<_> {
        session
            .records
            .iter()
            .map(|record| (record.line, record.offset))
            .collect()
    };
    assert_eq!(places(session), places(&whole));
    assert_eq!((session.turns.len(), session.faults.len()), (2, 0));
}

#[test]
fn lines_that_are_added_are_masked_like_those_that_were_read() {
    use unspool_model::edit::redact::Redactor;
    use unspool_model::log::TranscriptSource;
    use unspool_model::secrets::SecretFinder;
    let home = Home::new();
    let secret = "sk-ant-api03-Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4-AAAAAA";
    // Ids are never masked, so the secret stands in the text alone.
    let line = |text: &str| {
        let said = format!(r#""content":"{secret} "#);
        user("s", "/p", text).replace(r#""content":""#, &said)
    };
    let path = home.write("-p/s.jsonl", line("first"));
    let mask: &'static Redactor = Box::leak(Box::new(Redactor::masking(
        SecretFinder::standard().clone(),
    )));
    let reader = SessionReader {
        ending: TrailingBytes::Growing,
        mask: Some(mask),
        ..SessionReader::default()
    };
    let mut loaded = reader.read(&path, TranscriptRole::Main).unwrap();
    let mut tail = TranscriptTail::after(&loaded).unwrap();
    append(&path, &line("second"));
    let mut lines = Vec::new();
    tail.poll(|line| lines.push((line.number, line.offset, line.bytes.to_vec())))
        .unwrap();
    for (number, offset, bytes) in &lines {
        let line = unspool_model::log::Line {
            number: *number,
            offset: *offset,
            bytes,
            omitted: 0,
            ended: true,
        };
        loaded.push(&line, &reader);
    }
    let whole = reader.read(&path, TranscriptRole::Main).unwrap();
    let texts = |loaded: &unspool_store::read::LoadedSession| -> Vec<String> {
        let records = loaded.session.records.iter();
        let bytes = records.map(|record| loaded.source.bytes(record.offset, record.len()).unwrap());
        bytes
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .collect()
    };
    assert_eq!(texts(&loaded), texts(&whole));
    assert_eq!(texts(&loaded).len(), 2);
    assert!(!texts(&loaded).concat().contains(secret));
    assert_eq!((loaded.bytes, loaded.lines), (whole.bytes, whole.lines));
}
