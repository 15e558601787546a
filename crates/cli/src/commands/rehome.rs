//! `move`: the sessions of a directory that is elsewhere now.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use unspool_show::amount;
use unspool_show::table::{Column, Table};
use unspool_show::wire::edit::{LineCounts, MoveRow};
use unspool_store::journal::Task;
use unspool_store::live::Live;
use unspool_store::owned::OwnedFiles;
use unspool_store::rehome::{self, Moved, Mover};
use unspool_store::{Found, project};

use crate::failure::Failure;
use crate::world::World;

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
pub fn run(world: &World, args: &MoveArgs) -> Result<(), Failure> {
    let from = names(&args.old)?;
    let to = real(&args.new)?;
    if from.iter().any(|from| project::same_path(from, &to)) {
        let what = format!("`{}` and `{to}` are the same directory", args.old.display());
        return Err(Failure::failed(what).hint("pass the old path, then the new path"));
    }
    let found = world.found()?;
    let (movers, warnings) = rehome::movers(&found, &from, &to);
    for warning in &warnings {
        world.ui.warn(&warning.to_string());
    }
    if movers.is_empty() {
        let what = format!(
            "no session was started in `{}` or below",
            args.old.display()
        );
        return Err(Failure::nothing(what).hint("list the directories with `unspool ls --all`"));
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
fn names(path: &Path) -> Result<Vec<String>, Failure> {
    let mut all = vec![text(&absolute(path)?)?];
    if let Ok(real) = fs::canonicalize(path) {
        all.push(text(&real)?);
    }
    all.dedup();
    Ok(all)
}

/// The real path of a directory, as far as it is there yet: the client names folders by it.
fn real(path: &Path) -> Result<String, Failure> {
    let path = absolute(path)?;
    if path.exists() && !path.is_dir() {
        let what = format!("`{}` is not a directory", path.display());
        return Err(
            Failure::failed(what).hint("pass the directory that the sessions should move to")
        );
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

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    let absolute = std::path::absolute(path);
    absolute.map_err(|error| Failure::failed(format!("`{}`: {error}", path.display())))
}

fn text(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Failure::failed(format!("`{}` is not UTF-8", path.display())))
}

/// Nothing is moved under the feet of somebody, and nothing is overwritten.
fn refuse(world: &World, movers: &[Mover]) -> Result<(), Failure> {
    let live = Live::look(&world.dirs, world.now().0);
    for mover in movers {
        if let Some(why) = live.why(&mover.file) {
            let what = format!("the session {} is in use: {why}", mover.file.id);
            return Err(Failure::failed(what).hint("close the session first; nothing was moved"));
        }
        let target = mover.target();
        if target.symlink_metadata().is_ok() {
            let what = format!("`{}` already exists", target.display());
            return Err(Failure::failed(what).hint("move it out of the way; nothing was moved"));
        }
    }
    Ok(())
}

fn outlook(found: &Found, movers: &[Mover]) -> Result<Vec<Moved>, Failure> {
    let owned = OwnedFiles::new(found);
    let all = movers.iter().map(|mover| rehome::outlook(&owned, mover));
    Ok(all.collect::<Result<_, _>>()?)
}

fn carry_out(
    world: &World,
    args: &MoveArgs,
    found: &Found,
    movers: &[Mover],
) -> Result<(Vec<Moved>, u64), Failure> {
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
    let mut work = world.begin(Task {
        at: world.now().0,
        operation: "move".to_owned(),
        words: format!("move {old} {new}"),
        sources: movers.iter().map(|mover| mover.file.id.clone()).collect(),
        roots,
        ..Task::default()
    })?;
    let (moved, notes) = rehome::stage(&mut work, found, movers)?;
    let number = work.commit()?;
    for note in notes {
        world.ui.warn(&note);
    }
    Ok((moved, number))
}

fn tell(
    world: &World,
    movers: &[Mover],
    moved: &[Moved],
    undo: Option<u64>,
) -> Result<(), Failure> {
    let mut out = world.ui.out();
    let mut table = Table::new(vec![
        Column::fixed("session"),
        Column::path("from", 16),
        Column::path("to", 16),
        Column::number("lines"),
        Column::number("files").optional(),
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
            amount::grouped(moved.changed),
            amount::grouped(moved.files),
        ]);
    }
    if !world.ui.json {
        table.write(&mut out, &world.ui.style())?;
    }
    out.flush()?;
    let many = amount::count(movers.len() as u64, "session");
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

fn row(mover: &Mover, moved: &Moved, undo: Option<u64>) -> MoveRow {
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
