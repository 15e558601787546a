//! `messages`: what a client would send on resume.

use std::ffi::OsString;
use std::io::Write;

use clap::Args;
use unspool_model::view::messages::{self, ResumeResult};

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// Arguments of `messages`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unspool messages 2f72
  unspool messages 2f72 --claude-version 2.1.45   what an older client would send
  unspool messages 2f72 --claude-version strict   messages that the API always accepts
  unspool messages 2f72 --reveal                  with secrets

Keys, tokens and passwords are masked; use --reveal to get exactly what the client would send.")]
pub struct MessagesArgs {
    /// Start of a session id, a title, a path, or `@` for the latest [default: @]
    pub session: Option<OsString>,
}

/// Prints the array.
pub fn run(world: &CommandContext, args: &MessagesArgs) -> Result<(), CommandFailure> {
    let chosen = world.view(args.session.as_deref())?;
    let main = &chosen.family.main;
    match messages::messages(&main.session, &main.source, world.profile) {
        ResumeResult::Messages(all) => {
            let mut out = world.ui.data();
            writeln!(out, "{}", messages::to_json(&all))?;
            Ok(out.flush()?)
        }
        ResumeResult::NoConversation => {
            let client = world.profile.name();
            Err(CommandFailure::nothing(format!(
                "Claude Code {client} would find no conversation in {}",
                chosen.path()
            ))
            .hint("see why with `unspool check`"))
        }
        ResumeResult::Hangs => {
            let client = world.profile.name();
            Err(CommandFailure::failed(format!(
                "Claude Code {client} would hang: circular parents in {}",
                chosen.path()
            ))
            .hint("see where with `unspool check`"))
        }
    }
}
