//! `delete`: takes sessions away into our trash, from which they can be brought back.
//!
//! The trash is the copies that the journal keeps of what an edit removes: they go when they are
//! old, as those of other edits, or when somebody empties it.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use unspool_model::block::one_line;
use unspool_model::time::Time;
use unspool_show::table::{TableColumn, TextTable};
use unspool_show::wire::log::DeleteRow;
use unspool_show::{clean, format};
use unspool_store::archive::{self, PromptCounts, RemovalLeftovers};
use unspool_store::find::{self, SessionFile};
use unspool_store::journal::{self, JournalStep, JournalTask, ListedJournalEntry};
use unspool_store::owned_files::OwnedFiles;
use unspool_store::resolve::SessionTarget;
use unspool_store::session_in_use::InUseSessions;
use unspool_store::{TranscriptRole, read};

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;
use crate::session_removal;
use crate::time_input;

/// Arguments of `delete`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unspool delete 2f72 --dry-run     list the files that would be deleted
  unspool delete 2f72 && unspool undo
  unspool delete --list             list the trash, newest last
  unspool delete --empty --older-than 7d

Deletes the transcript and every file that belongs only to this session: sub-agents, tool
results, file backups and lists. Either all of them are deleted or none. The trash keeps copies
for 30 days, and those of the last 50 edits regardless of age; `unspool undo N` restores a session.
Its prompts stay in the client's history.jsonl; turns that were sent stay where they were sent.")]
pub struct DeleteArgs {
    /// Start of a session id, a title, a path, or `@` for the latest
    #[arg(required_unless_present_any = ["list", "empty"])]
    pub sessions: Vec<OsString>,

    /// List what is in the trash
    #[arg(long, conflicts_with_all = ["sessions", "empty", "dry_run"])]
    pub list: bool,

    /// Empty the trash (not undoable)
    #[arg(long, conflicts_with = "sessions")]
    pub empty: bool,

    /// Only sessions deleted before this time: `7d`, `2026-01-03`
    #[arg(long, value_name = "T", conflicts_with = "sessions")]
    pub older_than: Option<String>,

    /// Show what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// What works of ours are noted as.
const OPERATION: &str = "delete";

/// Most characters of a title in what is noted.
const TITLE: usize = 80;

/// Deletes sessions, or looks after the trash.
pub fn run(world: &CommandContext, args: &DeleteArgs) -> Result<(), CommandFailure> {
    if args.list {
        return list(world, args);
    }
    if args.empty {
        return empty(world, args);
    }
    let wanted = wanted(world, args)?;
    let mut rows = Vec::new();
    for (file, files, _) in &wanted {
        rows.push(delete(world, file, files, args.dry_run)?);
    }
    show(world, &rows)?;
    for (file, _, remains) in &wanted {
        session_removal::tell_remains(world, file, remains);
    }
    Ok(())
}

/// A session, its files, and what stays of it.
type Wanted = (SessionFile, Vec<PathBuf>, RemovalLeftovers);

/// The sessions with their files. Nothing is begun while one of them is in use.
fn wanted(world: &CommandContext, args: &DeleteArgs) -> Result<Vec<Wanted>, CommandFailure> {
    let live = InUseSessions::look(&world.dirs, world.now().0);
    let mut wanted: Vec<Wanted> = Vec::new();
    let mut prompts = PromptCounts::default();
    for session in &args.sessions {
        let SessionTarget::Session(file) = world.target(Some(session))? else {
            return Err(
                CommandFailure::failed("sub-agents cannot be deleted on their own")
                    .hint("delete the session that the sub-agent belongs to"),
            );
        };
        if let Some(why) = live.why(&file) {
            return Err(
                CommandFailure::failed(format!("{} is in use: {why}", file.id))
                    .hint("close the session first"),
            );
        }
        let owned = OwnedFiles::new(&find::find_beside_transcript(&file.path));
        let files = archive::files(&owned, &file);
        if !wanted.iter().any(|(known, ..)| known.path == file.path) {
            let remains = RemovalLeftovers::of(&owned, &file, &files, &mut prompts);
            wanted.push((file, files, remains));
        }
    }
    Ok(wanted)
}

fn delete(
    world: &CommandContext,
    file: &SessionFile,
    files: &[PathBuf],
    dry_run: bool,
) -> Result<DeleteRow, CommandFailure> {
    let title = read(&file.path, TranscriptRole::Main)
        .ok()
        .and_then(|read| read.session.own_title().map(one_line));
    let mut shown: Option<String> = title.map(|title| title.chars().take(TITLE).collect());
    world.mask_in(&mut shown);
    let sizes = files.iter().filter_map(|path| path.metadata().ok());
    let mut row = DeleteRow {
        n: None,
        dry_run,
        session: file.id.clone(),
        path: file.path.display().to_string(),
        title: shown,
        at: Some(world.now().to_string()),
        files: files
            .iter()
            .map(|path| path.display().to_string())
            .collect(),
        bytes: sizes.map(|about| about.len()).sum(),
        emptied: false,
    };
    if dry_run {
        return Ok(row);
    }
    let short: String = file.id.chars().take(8).collect();
    let named = row.title.as_ref().map(|title| format!(" “{title}”"));
    let mut work = world.begin(JournalTask {
        at: world.now().0,
        operation: OPERATION.to_owned(),
        words: format!("delete {short}{}", named.unwrap_or_default()),
        sources: vec![file.id.clone()],
        path: Some(file.path.clone()),
        roots: journal::roots(file),
        ..JournalTask::default()
    })?;
    session_removal::remove(&mut work, file, files)?;
    row.n = Some(work.commit()?);
    Ok(row)
}

/// What is in the trash, the oldest first.
fn trash(
    world: &CommandContext,
    args: &DeleteArgs,
) -> Result<Vec<ListedJournalEntry>, CommandFailure> {
    let before = args.older_than.as_ref();
    let before = before.map(|text| time_input::parse(text, world.now(), world.ui.zone()));
    let before = before.transpose()?;
    let mut list = world.journal().list()?;
    list.retain(|one| {
        let is_old = before.is_none_or(|before| one.entry.task.at < before.0);
        let is_ours = one.entry.task.operation == OPERATION && one.entry.undoes.is_none();
        is_ours && is_old && one.undone_by.is_none() && !one.entry.pruned
    });
    Ok(list)
}

fn row(one: &ListedJournalEntry) -> DeleteRow {
    let (entry, task) = (&one.entry, &one.entry.task);
    let removed = entry.steps.iter().filter_map(|step| match step {
        JournalStep::Removed { path, before } => Some((path, before.mark.size)),
        _ => None,
    });
    let title = task.words.split_once('“').map(|(_, title)| title);
    DeleteRow {
        n: Some(entry.number),
        dry_run: false,
        session: task.sources.first().cloned().unwrap_or_default(),
        path: task
            .path
            .as_ref()
            .map_or_else(String::new, |path| path.display().to_string()),
        title: title.map(|title| title.trim_end_matches('”').to_owned()),
        at: Some(Time(task.at).to_string()),
        files: removed
            .clone()
            .map(|(path, _)| path.display().to_string())
            .collect(),
        bytes: removed.map(|(_, size)| size).sum(),
        emptied: false,
    }
}

fn list(world: &CommandContext, args: &DeleteArgs) -> Result<(), CommandFailure> {
    let rows: Vec<DeleteRow> = trash(world, args)?.iter().map(row).collect();
    if rows.is_empty() {
        return Err(CommandFailure::nothing("the trash is empty"));
    }
    let mut out = world.ui.out();
    if world.ui.json {
        for row in &rows {
            world.ui.row(&mut out, row)?;
        }
        return Ok(out.flush()?);
    }
    let mut table = TextTable::new(vec![
        TableColumn::number("n"),
        TableColumn::fixed("deleted"),
        TableColumn::fixed("session"),
        TableColumn::flexible("title", 16),
        TableColumn::number("files"),
        TableColumn::number("size"),
    ]);
    for row in rows {
        let at = row.at.as_deref().and_then(Time::parse);
        table.row([
            row.n.map_or_else(String::new, |n| n.to_string()),
            at.map_or_else(String::new, |at| format::moment(at, world.ui.zone())),
            row.session.chars().take(8).collect(),
            row.title.unwrap_or_default(),
            row.files.len().to_string(),
            format::bytes(row.bytes),
        ]);
    }
    table.write(&mut out, &world.ui.style())?;
    out.flush()?;
    world.ui.note("restore one with `unspool undo N`");
    Ok(())
}

fn empty(world: &CommandContext, args: &DeleteArgs) -> Result<(), CommandFailure> {
    let trash = trash(world, args)?;
    if trash.is_empty() {
        return Err(CommandFailure::nothing(
            "the trash contains nothing to remove",
        ));
    }
    if !args.dry_run {
        let numbers: Vec<u64> = trash.iter().map(|one| one.entry.number).collect();
        world.journal().forget(&numbers)?;
    }
    let rows = trash.iter().map(|one| DeleteRow {
        dry_run: args.dry_run,
        emptied: true,
        ..row(one)
    });
    show(world, &rows.collect::<Vec<_>>())
}

fn show(world: &CommandContext, rows: &[DeleteRow]) -> Result<(), CommandFailure> {
    let mut out = world.ui.out();
    for row in rows {
        if world.ui.json {
            world.ui.row(&mut out, row)?;
            continue;
        }
        let title = row
            .title
            .as_deref()
            .map_or_else(String::new, |title| format!(" “{title}”"));
        let said = match (row.dry_run, row.emptied) {
            (true, true) => "would be deleted permanently",
            (true, false) => "would be deleted",
            (false, true) => "is deleted permanently",
            (false, false) => "is deleted",
        };
        writeln!(
            out,
            "{}{} {said}: {}, {}",
            clean::line(&row.session),
            clean::line(&title),
            format::count(row.files.len() as u64, "file"),
            format::bytes(row.bytes)
        )?;
        for file in row.files.iter().filter(|_| row.dry_run) {
            writeln!(out, "  {}", clean::line(file))?;
        }
    }
    out.flush()?;
    match rows.iter().filter(|row| !row.emptied).find_map(|row| row.n) {
        _ if rows.iter().any(|row| row.dry_run) => world.ui.note("dry run: nothing was deleted"),
        Some(number) => world.ui.note(&format!("undo with `unspool undo {number}`")),
        None => {}
    }
    Ok(())
}
