//! `index`: what the search index holds; building and dropping it.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use clap::{Args, Subcommand};
use unspool_index::text_index::{IndexProgress, IndexRunEnd, IndexStage, IndexStatus, TextIndex};
use unspool_show::format;
use unspool_show::table::{TableColumn, TextTable};
use unspool_show::wire::index::{IndexRow, StageRow};
use unspool_store::find::FoundSessionFiles;
use unspool_store::read_folder;

use crate::background_indexing;
use crate::command_context::CommandContext;
use crate::failure::CommandFailure;
use crate::progress_bar::ProgressBar;

/// Arguments of `index`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unspool index                show what is indexed
  unspool index build          index everything now
  unspool index drop           delete the index and all other caches

`search --ranked` builds the index when needed: prompts, replies, titles, commands and paths
first, thinking and tool results in the background; tool results stored in separate files are not
indexed. The index stores words and positions, not text, and skips secrets. It is safe to delete.
UNSPOOL_NO_BACKGROUND=1 disables building in the background.")]
pub struct IndexArgs {
    /// What to do [default: status]
    #[command(subcommand)]
    pub action: Option<IndexAction>,
}

/// What to do with the index.
#[derive(Debug, Subcommand)]
pub enum IndexAction {
    /// Show what is indexed and what is pending
    Status,
    /// Index everything now
    Build {
        /// Build it as the background process
        #[arg(long, hide = true)]
        background: bool,
    },
    /// Delete the index and all other caches
    Drop,
}

/// The folder of our caches in which the index is.
const KIND: &str = "search";

/// Everything in our cache folder that is made again from transcripts.
const CACHES: [&str; 3] = [KIND, "sql", "usage.db"];

/// Does it.
pub fn run(world: &CommandContext, args: &IndexArgs) -> Result<(), CommandFailure> {
    match args.action {
        None | Some(IndexAction::Status) => status(world),
        Some(IndexAction::Build { background: false }) => build(world),
        Some(IndexAction::Build { background: true }) => build_unseen(world),
        Some(IndexAction::Drop) => drop_all(world),
    }
}

/// Opens the index.
pub fn open(world: &CommandContext) -> Result<TextIndex, CommandFailure> {
    told(world, TextIndex::open(&world.shelf(KIND)))
}

/// Makes a damaged index anew.
pub fn renew(world: &CommandContext, text: TextIndex) -> Result<TextIndex, CommandFailure> {
    told(world, text.renew(&world.shelf(KIND)))
}

fn told(
    world: &CommandContext,
    opened: Result<(TextIndex, Option<unspool_index::CacheNotice>), unspool_index::CacheError>,
) -> Result<TextIndex, CommandFailure> {
    let (text, notice) = opened.map_err(|error| {
        CommandFailure::failed(error).hint("`unspool search` without `--ranked` needs no index")
    })?;
    if let Some(notice) = notice {
        world.ui.warn(&notice.to_string());
    }
    Ok(text)
}

fn status(world: &CommandContext) -> Result<(), CommandFailure> {
    let found = found(world)?;
    let mut text = open(world)?;
    let mut status = text.status(&found);
    if status
        .as_ref()
        .is_err_and(unspool_index::CacheError::is_damaged)
    {
        text = renew(world, text)?;
        status = text.status(&found);
    }
    let status = status.map_err(CommandFailure::failed)?;
    let path = text.path().display().to_string();
    let mut out = world.ui.out();
    if world.ui.json {
        world.ui.row(&mut out, &row(&status, path))?;
        return Ok(out.flush()?);
    }
    writeln!(out, "{path}  {}", format::bytes(status.size))?;
    let mut table = TextTable::new(vec![
        TableColumn::fixed("indexed"),
        TableColumn::number("done"),
        TableColumn::number("text"),
        TableColumn::number("pending"),
        TableColumn::number("files"),
    ]);
    for (stage, name) in [
        (
            IndexStage::Dialogue,
            "prompts, replies, titles, commands, paths",
        ),
        (IndexStage::Rest, "thinking, tool inputs and results"),
    ] {
        let at = stage as usize;
        let done = status.bytes.saturating_sub(status.behind[at]);
        table.row([
            name.to_owned(),
            format!("{} %", done * 100 / status.bytes.max(1)),
            format::bytes(status.text[at]),
            format::bytes(status.behind[at]),
            status.behind_files[at].to_string(),
        ]);
    }
    table.write(&mut out, &world.ui.style())?;
    Ok(out.flush()?)
}

fn row(status: &IndexStatus, path: String) -> IndexRow {
    let stage = |stage: IndexStage| StageRow {
        text: status.text[stage as usize],
        behind: status.behind[stage as usize],
        behind_files: status.behind_files[stage as usize],
    };
    IndexRow {
        path,
        size: status.size,
        files: status.files,
        bytes: status.bytes,
        dialogue: stage(IndexStage::Dialogue),
        rest: stage(IndexStage::Rest),
    }
}

fn found(world: &CommandContext) -> Result<FoundSessionFiles, CommandFailure> {
    let found = world.walked()?;
    if found.sessions.is_empty() && found.agents.is_empty() {
        return Err(world.no_sessions());
    }
    Ok(found)
}

/// How long to wait for others who write: they take turns of less than a second.
const PATIENCE: Duration = Duration::from_secs(10);

fn build(world: &CommandContext) -> Result<(), CommandFailure> {
    let found = found(world)?;
    let mut text = open(world)?;
    let mut ended = run_stages(world, &mut text, &found);
    if ended
        .as_ref()
        .is_err_and(unspool_index::CacheError::is_damaged)
    {
        text = renew(world, text)?;
        ended = run_stages(world, &mut text, &found);
    }
    if ended.map_err(CommandFailure::failed)? == IndexRunEnd::Busy {
        return Err(
            CommandFailure::failed("another unspool process is writing the index")
                .hint("try again when it is done"),
        );
    }
    let status = text.status(&found).map_err(CommandFailure::failed)?;
    world.ui.note(&format!(
        "indexed {} of text in {}; index size {}",
        format::bytes(status.text.iter().sum()),
        format::count(status.files, "file"),
        format::bytes(status.size)
    ));
    Ok(())
}

fn run_stages(
    world: &CommandContext,
    text: &mut TextIndex,
    found: &FoundSessionFiles,
) -> Result<IndexRunEnd, unspool_index::CacheError> {
    text.be_patient(PATIENCE)?;
    let mut bar = ProgressBar::new(&world.ui, "indexing dialogue");
    let mut show = |at: IndexProgress| {
        bar.show(at.done, at.all);
        true
    };
    match text.refresh_dialogue(found, &mut show)? {
        IndexRunEnd::UpToDate => {}
        other => return Ok(other),
    }
    drop(bar);
    let mut bar = ProgressBar::new(&world.ui, "indexing the rest");
    text.build_rest(found, &mut |at| {
        bar.show(at.done, at.all);
        true
    })
}

/// Rests between two transactions, so that others get their turn.
const REST: Duration = Duration::from_millis(20);

/// What is written while it works is read, too, so often at most.
const ROUNDS: usize = 20;

/// In the background: one at a time, says nothing, ends when there is nothing left to do.
fn build_unseen(world: &CommandContext) -> Result<(), CommandFailure> {
    let folder = world.shelf(KIND);
    let Some(_claim) = background_indexing::claim(&folder) else {
        return Ok(());
    };
    let (mut text, _) = TextIndex::open(&folder).map_err(CommandFailure::failed)?;
    text.be_patient(PATIENCE).map_err(CommandFailure::failed)?;
    for _ in 0..ROUNDS {
        let found = found(world)?;
        let status = text.status(&found).map_err(CommandFailure::failed)?;
        // A file that cannot be read stays behind for ever.
        if status.behind == [0, 0] {
            break;
        }
        let mut rest = |_: IndexProgress| {
            std::thread::sleep(REST);
            // Somebody may have dropped the index while we fill it.
            folder.join(unspool_index::text_index::NAME).exists()
        };
        let dialogue = text.refresh_dialogue(&found, &mut rest);
        if dialogue.map_err(CommandFailure::failed)? == IndexRunEnd::Stopped {
            break;
        }
        let done = text.build_rest(&found, &mut rest);
        if done.map_err(CommandFailure::failed)? == IndexRunEnd::Stopped {
            break;
        }
    }
    Ok(())
}

/// Drops everything that can be made again.
pub fn drop_all(world: &CommandContext) -> Result<(), CommandFailure> {
    let mut freed = 0;
    for name in CACHES {
        for end in ["", "-wal", "-shm", "-journal", ".aside", ".lock"] {
            let path = world.own.cache.join(format!("{name}{end}"));
            freed += size(&path);
            remove(&path).map_err(|why| {
                CommandFailure::failed(format!("cannot delete `{}`: {why}", path.display()))
            })?;
        }
    }
    world.ui.note(&format!(
        "deleted {} of caches; they are rebuilt when needed",
        format::bytes(freed)
    ));
    Ok(())
}

/// The bytes of a file, or of all files in a folder of ours.
fn size(path: &Path) -> u64 {
    let Ok(entries) = read_folder::entries(path) else {
        return fs::symlink_metadata(path).map_or(0, |metadata| metadata.len());
    };
    entries.flatten().map(|entry| size(&entry.path())).sum()
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => read_folder::remove_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
