//! `cargo xtask backfill DIR [otlp|langfuse]`: what it costs to send everything in a config folder.
//!
//! The receiver is our own, on loopback, and takes everything unseen, so that the figures are
//! those of the sender.

use std::path::{Path, PathBuf};

use unspool_testkit::sink::{Answer, Door, PUBLIC, SECRET, Sink};

use crate::{Outcome, bench, measure};

/// Runs it three times, each with an empty ledger.
pub fn run(args: &[String]) -> Outcome {
    let usage = "usage: cargo xtask backfill DIR [otlp|langfuse]";
    let (dir, to) = match args {
        [dir] => (dir, "langfuse"),
        [dir, to] => (dir, to.as_str()),
        _ => return Err(usage.into()),
    };
    let program = bench::build()?;
    let bytes = size(Path::new(dir));
    for _ in 0..3 {
        let sink = Sink::start(Door::Blind, |_| Answer::Take);
        let scratch = std::env::temp_dir().join(format!("unspool-backfill-{}", std::process::id()));
        let url = PathBuf::from(sink.url());
        let variables: [(&str, &Path); 7] = [
            ("HOME", &scratch),
            ("UNSPOOL_HOME", &scratch),
            ("CLAUDE_CONFIG_DIR", Path::new(dir)),
            ("LANGFUSE_PUBLIC_KEY", Path::new(PUBLIC)),
            ("LANGFUSE_SECRET_KEY", Path::new(SECRET)),
            ("LANGFUSE_BASE_URL", &url),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &url),
        ];
        let cost = measure::cost(&program, &["send", "--all", "--to", to], &variables);
        // Left-overs in the temporary folder harm nobody.
        let _ = std::fs::remove_dir_all(&scratch);
        let cost = cost?;
        if cost.status != 0 {
            return Err(format!("the sender ended with {}", cost.status));
        }
        println!(
            "{:.0} MB to {to}: {:.1} s, {:.1} s of processors, {:.0} MB of memory, {} requests with {:.0} MB",
            bytes as f64 / 1e6,
            cost.wall,
            cost.cpu,
            cost.peak,
            sink.requests(),
            sink.bytes().0 as f64 / 1e6,
        );
    }
    Ok(())
}

/// The bytes of all transcripts below a folder.
fn size(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()),
        Ok(metadata) if entry.path().extension().is_some_and(|it| it == "jsonl") => metadata.len(),
        _ => 0,
    });
    sizes.sum()
}
