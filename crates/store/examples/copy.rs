//! Writes a copy of a session under another id: `cargo run --example copy FROM.jsonl TO.jsonl`
//!
//! Only the field `sessionId` of each line changes; all other bytes stay as they are. The
//! copy appears at once and whole, or not at all, and only its owner may read it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use unspool_model::json;
use unspool_model::log::Log;

fn main() -> io::Result<()> {
    let args: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [from, to] = &args[..] else {
        return Err(io::Error::other("usage: copy FROM.jsonl TO.jsonl"));
    };
    let id = to.file_stem().unwrap_or_default().to_string_lossy();
    let id = json::quoted(&id);
    let log = Log::new(fs::read(from)?);
    let copy = log.edited(|line| {
        let has_one = json::find(line.bytes, &["sessionId"]).is_some();
        let edited = has_one.then(|| json::with_field(line.bytes, "sessionId", &id));
        Some(edited.flatten().map_or(line.bytes.into(), Into::into))
    });
    write_new(to, copy.as_bytes())?;
    println!("{} lines", copy.lines().count());
    Ok(())
}

/// Writes beside the place and links it there, which fails if something is there already.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension(format!("{}.tmp", std::process::id()));
    let mut file = private(&beside)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    let placed = written.and_then(|()| fs::hard_link(&beside, path));
    fs::remove_file(&beside)?;
    placed
}

fn private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
