//! Secrets in files: `cargo run --release --example secrets -- FILE…`.
//!
//! Transcripts are read line by line, as `redact` does; other files are text. Says which rule
//! found what where, and how fast it was. To judge rules by: the secrets are shown.

use std::time::{Duration, Instant};

use unspool_model::edit::redact::Redactor;
use unspool_model::log::Log;
use unspool_model::secrets::SecretFinder;

fn main() -> std::io::Result<()> {
    let start = Instant::now();
    let redactor = Redactor::new(SecretFinder::standard().clone(), [0; 32]);
    println!("ready in {:?}", start.elapsed());
    let (mut bytes, mut time) = (0, Duration::ZERO);
    for path in std::env::args().skip(1) {
        let log = Log::new(std::fs::read(&path)?);
        let text = log.as_bytes();
        let start = Instant::now();
        let places = if path.ends_with(".jsonl") {
            let lines = log.lines();
            lines.flat_map(|line| redactor.places(line.bytes)).collect()
        } else {
            redactor.places_of_text(text)
        };
        time += start.elapsed();
        bytes += text.len();
        for place in places {
            println!("{path}: {}: {:?}", place.rule, place.secret);
        }
    }
    let speed = bytes as f64 / 1e6 / time.as_secs_f64();
    println!("{bytes} bytes in {time:?}: {speed:.0} MB/s");
    Ok(())
}
