//! Shows a session as it is being written: `cargo run --example follow FILE.jsonl [POLLS]`
//!
//! Without a number of polls it follows until it is interrupted.

use std::path::Path;
use std::time::Duration;

use unspool_store::follow::TranscriptTail;
use unspool_store::read::{SessionReader, TrailingBytes};
use unspool_store::{StoreError, TranscriptRole};

fn main() -> Result<(), StoreError> {
    let mut args = std::env::args().skip(1);
    let path = args.next().unwrap_or_default();
    let polls = args.next().and_then(|polls| polls.parse::<u64>().ok());
    let reader = SessionReader {
        ending: TrailingBytes::Growing,
        ..SessionReader::default()
    };
    let mut loaded = reader.read(Path::new(&path), TranscriptRole::Main)?;
    println!("{} turns so far", loaded.session.turns.len());
    let mut tail = TranscriptTail::after(&loaded)?;
    let session = &mut loaded.session;
    let mut poll = 0;
    while polls.is_none_or(|polls| poll < polls) {
        let polled = tail.poll(|line| {
            let change = session.push(&line);
            for at in change.records {
                let record = &session.records[at as usize];
                println!("line {}: {}", record.line, session.label_of(record));
            }
        })?;
        if polled.restarted {
            println!("the file was written anew");
        }
        poll += 1;
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
