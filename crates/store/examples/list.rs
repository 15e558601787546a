//! Lists the sessions of config folders, newest first: `cargo run --example list CONFIG_DIR…`

use std::path::PathBuf;

use unspool_store::parallel;
use unspool_store::project::project;
use unspool_store::read::SessionReader;
use unspool_store::resolve::newest_first;
use unspool_store::{TranscriptRole, find};

fn main() {
    let configs: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let found = find(&configs);
    let reader = SessionReader::default();
    let files = newest_first(&found);
    // Largest files first, on all cores; results come back in the order of `files`.
    let sessions = parallel::map(
        &files,
        reader.threads,
        |file| file.bytes,
        |file| reader.read(&file.path, TranscriptRole::Main),
    );
    for (file, loaded) in files.iter().zip(&sessions) {
        match loaded {
            Ok(loaded) if loaded.session.is_used() => println!(
                "{:.8}  {:4} turns  {:8} tokens out  {}",
                file.id,
                loaded.session.turns.len(),
                loaded.session.usage().output,
                project(&loaded.session, &file.folder),
            ),
            Ok(_) => {}
            Err(error) => eprintln!("{error}"),
        }
    }
    for warning in &found.warnings {
        eprintln!("{warning}");
    }
}
