//! `repair`: a damaged session made whole, as a copy or in place.

use std::ffi::OsString;

use clap::Args;

use crate::command_context::CommandContext;
use crate::edit_options;
use crate::failure::CommandFailure;
use crate::session_edit::{self, EditRequest};

/// Arguments of `repair`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unspool repair 2f72 --dry-run    list the faults and how they would be repaired
  unspool repair 2f72              write a repaired copy that every client can resume
  unspool repair 2f72 --in-place   repair the session itself; `unspool undo` reverts it

Repairs truncated and concatenated lines, missing and circular parents, tool calls without
results and results without calls, duplicate ids, empty texts, lone surrogates, a missing final
newline, parallel results that some clients lose, and an API error at the end that blocks
resuming. Lines without faults are kept byte for byte.")]
pub struct RepairArgs {
    /// Start of a session id, a title, a path, or `@` for the latest
    pub session: Option<OsString>,

    /// Edit the session itself, unless it is in use
    #[arg(long)]
    pub in_place: bool,

    /// Show what would be done, and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Mends a session.
pub fn run(world: &CommandContext, args: &RepairArgs) -> Result<(), CommandFailure> {
    let chosen = world.choose(args.session.as_deref())?;
    let order = EditRequest {
        operation: "repair",
        words: "repaired".to_owned(),
        options: edit_options::typed(),
        dry_run: args.dry_run,
        ..EditRequest::default()
    };
    match session_edit::repair(world, chosen, &order, args.in_place)? {
        Some(result) => session_edit::print_result(world, &result),
        None => {
            world.ui.note("nothing to repair");
            Ok(())
        }
    }
}
