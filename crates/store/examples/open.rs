//! Times opening a session, its end and the whole: `cargo run --example open FILE.jsonl`

use std::path::Path;
use std::time::Instant;

use unspool_store::{Error, Role, read, read_end};

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).unwrap_or_default();
    let path = Path::new(&path);
    let start = Instant::now();
    let end = read_end(path, Role::Main, 10, 64 << 20)?;
    println!(
        "end: {} turns, {} of {} bytes in {:.1?}",
        end.session.turns.len(),
        end.bytes - end.start,
        end.bytes,
        start.elapsed()
    );
    let start = Instant::now();
    let before = end.source.lines_before(end.start)?;
    println!("{before} lines before, counted in {:.1?}", start.elapsed());
    let start = Instant::now();
    let all = read(path, Role::Main)?;
    println!(
        "all: {} turns, {} lines in {:.1?}",
        all.session.turns.len(),
        all.lines,
        start.elapsed()
    );
    Ok(())
}
