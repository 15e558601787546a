//! `daemon`: one process that follows all sessions, for everybody who asks.

mod install;
#[cfg(unix)]
mod run;

use clap::{Args, Subcommand};

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// Arguments of `daemon`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unspool daemon start      follow all sessions in the background, and print the dashboard's link
  unspool daemon status     show whether it is running, and its health
  unspool daemon stop
  unspool daemon install    install a service that starts it at login

Optional: `ls`, `status`, `watch` and the hook use it if it is running and work without it.")]
pub struct DaemonArgs {
    /// What to do
    #[command(subcommand)]
    pub action: DaemonAction,
}

/// What to do with the daemon.
#[derive(Debug, Subcommand)]
pub enum DaemonAction {
    /// Start the daemon in the background
    Start,
    /// Stop the daemon
    Stop,
    /// Show whether the daemon is running, and its health
    Status,
    /// Install a service that starts the daemon at login
    Install,
    /// Run in the foreground (for systemd and launchd)
    Run,
}

/// Does it.
pub fn run(world: CommandContext, args: &DaemonArgs) -> Result<(), CommandFailure> {
    if world.demo.is_some() {
        return Err(
            CommandFailure::failed("the daemon does not support `--demo`")
                .hint("use `unspool --demo watch`"),
        );
    }
    if let DaemonAction::Install = args.action {
        return install::run(&world);
    }
    #[cfg(unix)]
    match args.action {
        DaemonAction::Start => run::start(&world),
        DaemonAction::Stop => run::stop(&world),
        DaemonAction::Status => run::status(&world),
        DaemonAction::Install => Ok(()),
        DaemonAction::Run => run::run_foreground(world),
    }
    #[cfg(not(unix))]
    Err(
        CommandFailure::failed("the daemon is not supported on this system")
            .hint("`unspool serve` and `unspool watch` do the same in the foreground"),
    )
}
