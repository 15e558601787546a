//! However the bytes are cut into pieces, the session is the same.

use std::path::Path;

use unspool_model::log::{LineSplitter, Log};
use unspool_model::session::{Session, TranscriptRole};

/// All that a session says, as text.
fn digest(session: &Session) -> String {
    let mut out = Vec::new();
    let turn_of = session.turns_by_record();
    for (at, record) in session.records.iter().enumerate() {
        out.push(format!(
            "{} {} {} {} {:?} {:?} {:?} {:?} {}",
            record.line,
            record.offset,
            record.len(),
            session.label_of(record),
            record.uuid,
            record.thread,
            turn_of[at],
            record.message(),
            record.input.name(),
        ));
    }
    for message in &session.messages {
        out.push(format!(
            "{:?} {:?} {:?}",
            session.message_id(message),
            message.records,
            session.usage_of(message)
        ));
    }
    for call in &session.calls {
        let result = call
            .result
            .as_ref()
            .map(|result| (result.record, result.is_error));
        out.push(format!(
            "{} {} {result:?}",
            session.call_id(call),
            session.text(call.tool)
        ));
    }
    out.push(format!("{:?}", session.faults));
    out.push(format!("{:?} {:?}", session.goal, session.recent_output));
    out.push(format!("{:?} {:?}", session.branch, session.models.texts()));
    out.push(format!("{:?} {}", session.usage(), session.blank_lines));
    out.join("\n")
}

fn in_pieces<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Session {
    let mut splitter = LineSplitter::default();
    let mut session = Session::new(TranscriptRole::Main);
    for piece in pieces {
        splitter.feed(piece, |line| {
            session.push(&line);
        });
    }
    if let Some(tail) = splitter.tail() {
        session.push_tail(&tail);
    }
    session
}

/// All examples one behind the other, with damage in between.
fn everything() -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/seeds");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    paths.sort();
    let mut bytes = Vec::new();
    for (at, path) in paths.iter().enumerate() {
        bytes.extend(std::fs::read(path).unwrap());
        if at % 5 == 0 {
            bytes.extend("{\"broken\": \"日本\n\r\n".bytes());
        }
    }
    bytes.extend("{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"世".bytes());
    bytes
}

fn at_once(bytes: &[u8]) -> String {
    digest(&Session::from_log(&Log::new(bytes), TranscriptRole::Main))
}

#[test]
fn byte_by_byte_gives_the_same_session() {
    let bytes = everything();
    assert_eq!(digest(&in_pieces(bytes.chunks(1))), at_once(&bytes));
}

#[test]
fn pieces_of_any_fixed_size_give_the_same_session() {
    let bytes = everything();
    let wanted = at_once(&bytes);
    for size in [2, 3, 7, 64, 1_000, 4_096, bytes.len()] {
        assert_eq!(digest(&in_pieces(bytes.chunks(size))), wanted, "{size}");
    }
}

#[test]
fn pieces_of_random_sizes_give_the_same_session() {
    let bytes = everything();
    let wanted = at_once(&bytes);
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: usize| {
        // xorshift: the same cuts on every run.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    for round in 0..50 {
        let mut cuts: Vec<usize> = (0..40).map(|_| random(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]);
        assert_eq!(digest(&in_pieces(pieces)), wanted, "round {round}");
    }
}

#[test]
fn every_place_to_stop_and_go_on_counts_tokens_once() {
    let usage = |n: u32, output: u32| {
        format!(
            r#"{{"type":"assistant","uuid":"a{n}","message":{{"id":"m","role":"assistant","content":"{n}","usage":{{"input_tokens":10,"output_tokens":{output},"cache_creation_input_tokens":150000}}}}}}"#
        )
    };
    let snapshot = r#"{"type":"file-history-snapshot","messageId":"x","snapshot":{}}"#;
    let text = format!(
        "{snapshot}\n{}\n{snapshot}\n{}\n{}\n",
        usage(1, 1),
        usage(2, 1),
        usage(3, 90)
    );
    let bytes = text.as_bytes();
    for cut in 0..=bytes.len() {
        let session = in_pieces([&bytes[..cut], &bytes[cut..]].into_iter());
        let total = session.usage();
        assert_eq!(
            (total.input, total.output, total.cache_write_5m),
            (10, 90, 150_000),
            "cut at {cut}"
        );
    }
}

#[test]
fn lines_pushed_one_by_one_say_what_they_changed() {
    let log = Log::new(
        "{\"type\":\"user\",\"content\":\"x\"}\nbad\n{\"type\":\"system\",\"subtype\":\"turn_duration\",\"durationMs\":1}\n",
    );
    let mut session = Session::new(TranscriptRole::Main);
    let changes: Vec<_> = log
        .lines()
        .map(|line| {
            let change = session.push(&line);
            (
                change.records.len(),
                change.turn_opened,
                change.turn_closed,
                change.faults,
            )
        })
        .collect();
    assert_eq!(
        changes,
        [
            (1, true, false, 0),
            (0, false, false, 1),
            (1, false, true, 0)
        ]
    );
}
