//! Lists all sessions, newest first: `cargo run --example list CONFIG_DIR…`

use std::path::PathBuf;
use std::time::Instant;

use unspool_store::each;
use unspool_store::project::project;
use unspool_store::read::Reader;
use unspool_store::resolve::newest_first;
use unspool_store::{Role, find};

struct Row {
    project: String,
    title: String,
    turns: usize,
    messages: usize,
    tokens: u64,
}

fn main() {
    let configs: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let start = Instant::now();
    let found = find(&configs);
    let walked = start.elapsed();
    let reader = Reader::default();
    let files = newest_first(&found);
    let rows = each::map(
        &files,
        reader.threads,
        |file| file.bytes,
        |file| {
            let session = reader.read(&file.path, Role::Main)?.session;
            Ok::<_, unspool_store::Error>(session.is_conversation().then(|| Row {
                project: project(&session, &file.folder).to_owned(),
                title: session.title(&Default::default()).unwrap_or_default(),
                turns: session.turns.len(),
                messages: session.messages.len(),
                tokens: session.usage().output,
            }))
        },
    );
    let agents = each::map(
        &found.agents,
        reader.threads,
        |file| file.bytes,
        |file| {
            reader
                .read(&file.path, Role::Agent)
                .map(|loaded| loaded.session.usage().output)
        },
    );
    let folded = start.elapsed();
    for (file, row) in files.iter().zip(&rows) {
        match row {
            Ok(Some(row)) => println!(
                "{:.8}  {:4} turns  {:5} messages  {:8} out  {}  {:.40}",
                file.id,
                row.turns,
                row.messages,
                row.tokens,
                row.project,
                row.title.lines().next().unwrap_or_default()
            ),
            Ok(None) => {}
            Err(error) => eprintln!("{}", error.warning(&file.path)),
        }
    }
    for warning in &found.warnings {
        eprintln!("{warning}");
    }
    let spent: u64 = agents.iter().flatten().sum();
    eprintln!(
        "{} sessions, {} files of agents ({spent} tokens out), {} others; walk {walked:.1?}, all {folded:.1?}",
        rows.len(),
        agents.len(),
        found.others.len()
    );
}
