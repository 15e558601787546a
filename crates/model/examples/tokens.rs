//! Reads sessions and totals their tokens: `cargo run --example tokens FILE…`

use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};

fn main() -> std::io::Result<()> {
    for path in std::env::args().skip(1) {
        let log = Log::new(std::fs::read(&path)?);
        let session = Session::from_log(&log, TranscriptRole::Main);
        let usage = session.usage();
        println!(
            "{path}: {} turns, {} messages, {} tokens in, {} out, {} faults",
            session.turns.len(),
            session.messages.len(),
            usage.context(),
            usage.output,
            session.faults.found()
        );
    }
    Ok(())
}
