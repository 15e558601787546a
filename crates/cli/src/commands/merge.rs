//! `merge`: several sessions become one.

use std::ffi::OsString;

use clap::Args;

use crate::command_context::CommandContext;
use crate::edit_options;
use crate::failure::CommandFailure;
use crate::session_edit::{self, EditRequest};

/// Arguments of `merge`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unspool merge 2f72 91ab             one session: 2f72 followed by 91ab
  unspool merge 2f72 91ab --by-time   the one that began earlier comes first
  unspool merge 2f72 91ab --dry-run   show what would be written

Uses the live branch of each session. Lines that occur in several sessions are written once.")]
pub struct MergeArgs {
    /// Sessions to merge, in order
    #[arg(required = true, num_args = 2.., value_name = "SESSION")]
    pub sessions: Vec<OsString>,

    /// Order by time of the first line
    #[arg(long)]
    pub by_time: bool,

    /// Title of the merged session [default: the title of the first, marked as merged]
    #[arg(long, value_name = "T")]
    pub title: Option<String>,

    /// Show what would be done, and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Merges sessions.
pub fn run(world: &CommandContext, args: &MergeArgs) -> Result<(), CommandFailure> {
    let sessions = args.sessions.iter();
    let all = sessions.map(|session| world.choose(Some(session)));
    let all = all.collect::<Result<Vec<_>, _>>()?;
    let order = EditRequest {
        operation: "merge",
        words: format!("{} sessions in one", all.len()),
        options: edit_options::typed(),
        title: args.title.clone(),
        dry_run: args.dry_run,
        ..EditRequest::default()
    };
    let result = session_edit::merge(world, all, &order, args.by_time)?;
    session_edit::print_result(world, &result)
}
