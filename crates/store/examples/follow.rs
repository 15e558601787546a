//! Shows a session as it is being written: `cargo run --example follow FILE.jsonl [POLLS]`
//!
//! Without a number of polls it follows until it is interrupted.

use std::path::Path;
use std::time::Duration;

use unspool_store::follow::Tail;
use unspool_store::read::{Ending, Reader};
use unspool_store::{Error, Role};

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let path = args.next().unwrap_or_default();
    let polls = args.next().and_then(|polls| polls.parse::<u64>().ok());
    let reader = Reader {
        ending: Ending::Growing,
        ..Reader::default()
    };
    let mut loaded = reader.read(Path::new(&path), Role::Main)?;
    println!("{} turns so far", loaded.session.turns.len());
    let mut tail = Tail::after(&loaded)?;
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
