//! `undo`: takes back what an editing command did.

use std::io::Write;
use std::path::Path;

use clap::Args;
use unspool_show::clean;
use unspool_show::wire::log::UndoRow;
use unspool_store::StoreError;
use unspool_store::journal::{UndoOptions, UndoPreview};
use unspool_store::session_in_use::InUseSessions;

use crate::command_context::CommandContext;
use crate::commands::log;
use crate::failure::CommandFailure;

/// Arguments of `undo`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unspool undo --list      list edits, newest first
  unspool undo             undo the latest edit
  unspool undo 7 --dry-run show what undoing edit 7 would do

A file that changed since the edit is left alone; with --force it is moved aside, never deleted.
An undo is itself an edit: undo it to redo. Previous versions are kept for 30 days, and those of
the last 50 edits regardless of age.")]
pub struct UndoArgs {
    /// Number of the edit [default: the latest one not yet undone]
    #[arg(value_name = "N")]
    pub number: Option<u64>,

    /// List edits, newest first
    #[arg(long, conflicts_with_all = ["number", "force", "dry_run"])]
    pub list: bool,

    /// Undo even if files changed since; changed files are moved aside
    #[arg(long)]
    pub force: bool,

    /// Show what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Undoes an edit.
pub fn run(world: &CommandContext, args: &UndoArgs) -> Result<(), CommandFailure> {
    let journal = world.journal();
    for note in journal.recover()? {
        world.ui.note(&note);
    }
    if args.list {
        return list(world);
    }
    let now = world.now().0;
    let live = InUseSessions::look(&world.dirs, now);
    let how = UndoOptions {
        at: now,
        force: args.force,
        // What we wrote ourselves a moment ago is not in use for that.
        in_use: &|path: &Path| live.holder(path),
    };
    if args.dry_run {
        let outlook = journal.preview_undo(args.number, &how).map_err(unknown)?;
        show(world, None, &outlook)?;
        return match outlook.refused.is_empty() {
            true => Ok(()),
            false => Err(CommandFailure::failed(format!(
                "cannot undo {}: {}",
                outlook.entry.number, outlook.refused[0]
            ))),
        };
    }
    let (number, outlook) = journal.undo(args.number, &how).map_err(unknown)?;
    show(world, Some(number), &outlook)?;
    world.ui.note(&format!("redo with `unspool undo {number}`"));
    Ok(())
}

/// What is not known can be looked up.
fn unknown(error: StoreError) -> CommandFailure {
    let is_unknown = error.is_not_found();
    let failure = CommandFailure::from(error);
    if is_unknown {
        return failure.hint("list edits with `unspool undo --list`");
    }
    failure
}

fn list(world: &CommandContext) -> Result<(), CommandFailure> {
    let mut list = world.journal().list()?;
    list.reverse();
    if list.is_empty() {
        return Err(CommandFailure::nothing("there is nothing to undo"));
    }
    let mut out = world.ui.out();
    if world.ui.json {
        for one in &list {
            world.ui.row(&mut out, &log::row(one))?;
        }
    } else {
        log::table(world, &list).write(&mut out, &world.ui.style())?;
    }
    Ok(out.flush()?)
}

fn show(
    world: &CommandContext,
    number: Option<u64>,
    outlook: &UndoPreview,
) -> Result<(), CommandFailure> {
    let mut out = world.ui.out();
    let entry = &outlook.entry;
    if world.ui.json {
        let row = UndoRow {
            n: number,
            undoes: entry.number,
            words: entry.task.words.clone(),
            steps: outlook.words.clone(),
            refused: outlook.refused.clone(),
        };
        world.ui.row(&mut out, &row)?;
        return Ok(out.flush()?);
    }
    let verb = if number.is_some() {
        "undone"
    } else {
        "would undo"
    };
    writeln!(
        out,
        "{verb} {}: {}",
        entry.number,
        clean::line(&entry.task.words)
    )?;
    for words in &outlook.words {
        writeln!(out, "  {}", clean::line(words))?;
    }
    for why in outlook.refused.iter().filter(|_| number.is_none()) {
        writeln!(out, "  refused: {}", clean::line(why))?;
    }
    Ok(out.flush()?)
}
