//! Whether the person wants it, once it is known what it takes.

use std::io::{self, BufRead, IsTerminal, Write};

use unspool_show::clean;

use super::cost_estimate::CompressEstimate;
use super::{CompressOptions, CompressProvider};
use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// Goes on if the person agreed, agrees now, or named a command and is not there to be asked.
/// Says once that texts leave this machine.
pub fn ask(
    world: &CommandContext,
    options: &CompressOptions,
    estimate: &CompressEstimate,
) -> Result<(), CommandFailure> {
    if let CompressProvider::Model { base, .. } = &options.who {
        // What can be told without asking is told without asking.
        options.who.provider().map_err(super::stopped)?;
        world
            .ui
            .note(&format!("these texts will be sent to {}", host(base)));
    }
    let is_there = io::stdin().is_terminal() && io::stderr().is_terminal();
    match (&options.who, is_there) {
        _ if options.yes => Ok(()),
        (_, true) => agree(world, options, estimate),
        (CompressProvider::Command(_), false) => Ok(()),
        (CompressProvider::Model { name, .. }, false) => {
            let what =
                format!("sending texts to {name} needs confirmation, but this is not a terminal");
            Err(CommandFailure::failed(what)
                .hint("confirm with `--yes`, or use `--dry-run` for an estimate"))
        }
    }
}

fn agree(
    world: &CommandContext,
    options: &CompressOptions,
    estimate: &CompressEstimate,
) -> Result<(), CommandFailure> {
    // Who wants no remarks was not told yet what is asked.
    let what = match world.ui.quiet {
        true => format!("{}. ", estimate.words(world, &options.who)),
        false => String::new(),
    };
    let mut stderr = io::stderr().lock();
    write!(stderr, "{}Continue? [y/N] ", clean::text(&what))?;
    stderr.flush()?;
    discard_typed_ahead();
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(CommandFailure::failed(
            "cancelled; nothing was sent or written",
        )),
    }
}

/// Forgets what was typed before the question stood there: it is no answer to it.
fn discard_typed_ahead() {
    #[cfg(unix)]
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
}

/// The address without what may be secret in it.
fn host(base: &str) -> String {
    let (scheme, rest) = base.split_once("://").unwrap_or(("https", base));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let host = rest[..end].rsplit('@').next().unwrap_or_default();
    clean::text(&format!("{scheme}://{host}")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_passwords() {
        assert_eq!(
            host("https://me:secret@example.com/v1?k=1"),
            "https://example.com"
        );
        assert_eq!(host("http://127.0.0.1:80"), "http://127.0.0.1:80");
    }
}
