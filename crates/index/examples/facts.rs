//! How long it takes to open and load the facts of many files.
//!
//! `cargo run --release -p unspool-index --example facts -- [FILES] [BYTES]`

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use unspool_index::facts::FileFactCache;
use unspool_index::file_mark::ReadMark;

fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let files = numbers.next().transpose()?.unwrap_or(1141);
    let bytes = numbers.next().transpose()?.unwrap_or(2048);
    let dir = tempfile::tempdir()?;
    let row = |n: usize| {
        let path = format!("/home/somebody/.claude/projects/-home-somebody-work/{n:036}.jsonl");
        (
            PathBuf::from(path),
            ReadMark::default(),
            vec![n as u8; bytes],
        )
    };
    let rows: Vec<_> = (0..files).map(row).collect();
    let at = Instant::now();
    FileFactCache::open(dir.path(), 1)?.0.save(&rows, &[])?;
    println!("first save   {:?}", at.elapsed());
    for _ in 0..10 {
        let at = Instant::now();
        let (mut facts, _) = FileFactCache::open(dir.path(), 1)?;
        let opened = at.elapsed();
        let mut known = Vec::new();
        facts.each(|path, _, bytes| known.push((path, bytes.to_vec())))?;
        let loaded = at.elapsed();
        facts.save(&rows[..1], &[])?;
        let saved = at.elapsed();
        drop((facts, known));
        println!(
            "open {opened:?}, load {:?}, save one {:?}, close {:?}",
            loaded - opened,
            saved - loaded,
            at.elapsed() - saved
        );
    }
    Ok(())
}
