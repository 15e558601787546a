//! `cargo xtask generate`: a made-up config directory on disk, with its truth.
//!
//! Writes `DIR/.claude/projects/…` and `DIR/truth.json`. Point a program at it
//! with `HOME=DIR CLAUDE_CONFIG_DIR=DIR/.claude TZ=UTC`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use unspool_testkit::tree::{self, Options};

use crate::Outcome;

const USAGE: &str = "usage: cargo xtask generate --size s|m|l|many|single:1G --out DIR [--seed N]";

/// Reads the arguments and writes the tree.
pub fn run(args: &[String]) -> Outcome {
    let (mut options, mut out, mut seed) = (None, None, None);
    for pair in args.chunks(2) {
        match pair {
            [flag, value] if flag == "--size" => options = Some(size(value)?),
            [flag, value] if flag == "--out" => out = Some(PathBuf::from(value)),
            [flag, value] if flag == "--seed" => seed = value.parse().ok(),
            _ => return Err(USAGE.into()),
        }
    }
    let (Some(mut options), Some(out)) = (options, out) else {
        return Err(USAGE.into());
    };
    options.seed = seed.unwrap_or(options.seed);
    write(&out, &options)
}

/// Writes a tree and its truth into an empty place.
pub fn write(out: &Path, options: &Options) -> Outcome {
    let claude = out.join(".claude");
    if claude.exists() {
        return Err(format!("{} is already there", claude.display()));
    }
    let failed = |error: std::io::Error| format!("{}: {error}", out.display());
    fs::create_dir_all(&claude).map_err(failed)?;
    let start = Instant::now();
    let truth = tree::generate(&claude, options).map_err(failed)?;
    let seconds = start.elapsed().as_secs_f64();
    fs::write(out.join("truth.json"), format!("{:#}\n", truth.to_json())).map_err(failed)?;
    eprintln!(
        "{}: {} sessions, {} sub-agents, {} lines, {} messages, {} turns, {:.1} MB in {seconds:.2} s ({:.0} MB/s)",
        out.display(),
        truth.sessions.len(),
        truth.agent_files,
        truth.lines,
        truth.messages,
        truth.turns,
        truth.bytes as f64 / 1e6,
        truth.bytes as f64 / 1e6 / seconds,
    );
    Ok(())
}

/// The options that a name stands for.
pub fn size(name: &str) -> Result<Options, String> {
    match name {
        "s" => Ok(Options::small()),
        "m" => Ok(Options::medium()),
        "l" => Ok(Options::large()),
        "many" => Ok(Options::many()),
        _ => name
            .strip_prefix("single:")
            .and_then(bytes)
            .map(Options::single)
            .ok_or_else(|| format!("`{name}` is no size; {USAGE}")),
    }
}

/// `1G`, `100M`, `64k` or a plain number, in decimal units.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_decimal_units() {
        assert_eq!(bytes("1G"), Some(1_000_000_000));
        assert_eq!(bytes("64k"), Some(64_000));
        assert_eq!(bytes("7"), Some(7));
        assert_eq!(bytes("1X"), None);
        assert_eq!(bytes("G"), None);
    }
}
