//! `move`: the sessions of a directory that is elsewhere now.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use unspool_show::format;
use unspool_show::table::{TableColumn, TextTable};
use unspool_show::wire::edit::{LineCounts, MoveRow};
use unspool_store::journal::JournalTask;
use unspool_store::move_sessions::{self, SessionMove, SessionMoveResult};
use unspool_store::owned_files::OwnedFiles;
use unspool_store::session_in_use::InUseSessions;
use unspool_store::{FoundSessionFiles, project};

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// Arguments of `move`.
#[derive(Debug, Args)]
#[command(after_help = "\
The directory itself is not touched: move it before or after. Moves the sessions started in it
or below it, with their sub-agents and side files, the client's session lists and its prompt
history. `unspool undo` reverts all of it.")]
pub struct MoveArgs {
    /// Old path of the directory
    pub old: PathBuf,

    /// New path of the directory
    pub new: PathBuf,

    /// Show what would be moved, and move nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Moves sessions.
pub fn run(world: &CommandContext, args: &MoveArgs) -> Result<(), CommandFailure> {
    let from = names(&args.old)?;
    let to = real(&args.new)?;
    if from.iter().any(|from| project::same_path(from, &to)) {
        let what = format!("`{}` and `{to}` are the same directory", args.old.display());
        return Err(CommandFailure::failed(what).hint("pass the old path, then the new path"));
    }
    let found = world.found()?;
    let (movers, warnings) = move_sessions::session_moves(&found, &from, &to);
    for warning in &warnings {
        world.ui.warn(&warning.to_string());
    }
    if movers.is_empty() {
        let what = format!(
            "no session was started in `{}` or below",
            args.old.display()
        );
        return Err(
            CommandFailure::nothing(what).hint("list the directories with `unspool ls --all`")
        );
    }
    refuse(world, &movers)?;
    let (moved, undo) = match args.dry_run {
        true => (outlook(&found, &movers)?, None),
        false => {
            let (moved, number) = carry_out(world, args, &found, &movers)?;
            (moved, Some(number))
        }
    };
    tell(world, &movers, &moved, undo)
}

/// The names of the old directory: as it was typed, and as it really is if it is still there.
fn names(path: &Path) -> Result<Vec<String>, CommandFailure> {
    let mut all = vec![text(&absolute(path)?)?];
    if let Ok(real) = fs::canonicalize(path) {
        all.push(text(&real)?);
    }
    all.dedup();
    Ok(all)
}

/// The real path of a directory, as far as it is there yet: the client names folders by it.
fn real(path: &Path) -> Result<String, CommandFailure> {
    let path = absolute(path)?;
    if path.exists() && !path.is_dir() {
        let what = format!("`{}` is not a directory", path.display());
        return Err(CommandFailure::failed(what)
            .hint("pass the directory that the sessions should move to"));
    }
    for above in path.ancestors() {
        if let Ok(real) = fs::canonicalize(above) {
            let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
            let whole = match rest == Path::new("") {
                true => real,
                false => real.join(rest),
            };
            return text(&whole);
        }
    }
    text(&path)
}

fn absolute(path: &Path) -> Result<PathBuf, CommandFailure> {
    let absolute = std::path::absolute(path);
    absolute.map_err(|error| CommandFailure::failed(format!("`{}`: {error}", path.display())))
}

fn text(path: &Path) -> Result<String, CommandFailure> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| CommandFailure::failed(format!("`{}` is not UTF-8", path.display())))
}

/// Nothing is moved under the feet of somebody, and nothing is overwritten.
fn refuse(world: &CommandContext, movers: &[SessionMove]) -> Result<(), CommandFailure> {
    let live = InUseSessions::look(&world.dirs, world.now().0);
    for mover in movers {
        if let Some(why) = live.why(&mover.file) {
            let what = format!("the session {} is in use: {why}", mover.file.id);
            return Err(
                CommandFailure::failed(what).hint("close the session first; nothing was moved")
            );
        }
        let target = mover.target();
        if target.symlink_metadata().is_ok() {
            let what = format!("`{}` already exists", target.display());
            return Err(
                CommandFailure::failed(what).hint("move it out of the way; nothing was moved")
            );
        }
    }
    Ok(())
}

fn outlook(
    found: &FoundSessionFiles,
    movers: &[SessionMove],
) -> Result<Vec<SessionMoveResult>, CommandFailure> {
    let owned = OwnedFiles::new(found);
    let all = movers
        .iter()
        .map(|mover| move_sessions::preview_move(&owned, mover));
    Ok(all.collect::<Result<_, _>>()?)
}

fn carry_out(
    world: &CommandContext,
    args: &MoveArgs,
    found: &FoundSessionFiles,
    movers: &[SessionMove],
) -> Result<(Vec<SessionMoveResult>, u64), CommandFailure> {
    // Not their folders, which may be gone then.
    let mut roots: Vec<PathBuf> = movers
        .iter()
        .flat_map(|mover| {
            [
                mover.file.config.to_path_buf(),
                mover.file.config.join("projects"),
            ]
        })
        .collect();
    roots.sort();
    roots.dedup();
    let (old, new) = (args.old.display(), args.new.display());
    let mut work = world.begin(JournalTask {
        at: world.now().0,
        operation: "move".to_owned(),
        words: format!("move {old} {new}"),
        sources: movers.iter().map(|mover| mover.file.id.clone()).collect(),
        roots,
        ..JournalTask::default()
    })?;
    let (moved, notes) = move_sessions::stage_moves(&mut work, found, movers)?;
    let number = work.commit()?;
    for note in notes {
        world.ui.warn(&note);
    }
    Ok((moved, number))
}

fn tell(
    world: &CommandContext,
    movers: &[SessionMove],
    moved: &[SessionMoveResult],
    undo: Option<u64>,
) -> Result<(), CommandFailure> {
    let mut out = world.ui.out();
    let mut table = TextTable::new(vec![
        TableColumn::fixed("session"),
        TableColumn::path("from", 16),
        TableColumn::path("to", 16),
        TableColumn::number("lines"),
        TableColumn::number("files").optional(),
    ]);
    for (mover, moved) in movers.iter().zip(moved) {
        if world.ui.json {
            world.ui.row(&mut out, &row(mover, moved, undo))?;
            continue;
        }
        table.row([
            mover.file.id.chars().take(8).collect(),
            mover.from.clone(),
            mover.to.clone(),
            format::grouped(moved.changed),
            format::grouped(moved.files),
        ]);
    }
    if !world.ui.json {
        table.write(&mut out, &world.ui.style())?;
    }
    out.flush()?;
    let many = format::count(movers.len() as u64, "session");
    match undo {
        Some(number) => {
            let what = format!("moved {many}; undo with `unspool undo {number}`");
            world.ui.note(&what);
        }
        None => world
            .ui
            .note(&format!("would move {many}; dry run: nothing was written")),
    }
    Ok(())
}

fn row(mover: &SessionMove, moved: &SessionMoveResult, undo: Option<u64>) -> MoveRow {
    MoveRow {
        session: mover.file.id.clone(),
        from: mover.from.clone(),
        to: mover.to.clone(),
        path: mover.target().display().to_string(),
        lines: LineCounts {
            kept: moved.kept,
            changed: moved.changed,
            ..LineCounts::default()
        },
        side_files: moved.files,
        dry_run: undo.is_none(),
        undo,
    }
}
