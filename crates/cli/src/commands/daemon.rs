//! `daemon`: one process that follows all sessions, for everybody who asks.

mod install;
#[cfg(unix)]
mod run;

use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::world::World;

/// Arguments of `daemon`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unspool daemon start      follow all sessions in the background, and say where the dashboard is
  unspool daemon status     whether it runs, and how it is
  unspool daemon stop
  unspool daemon install    start it with every login

Optional: `ls`, `status`, `watch` and the hook use it if it is running and work without it.")]
pub struct DaemonArgs {
    /// What to do
    #[command(subcommand)]
    pub action: Action,
}

/// What to do with the daemon.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Start it in the background
    Start,
    /// Stop it
    Stop,
    /// Show whether it is running, and its health
    Status,
    /// Install a service that starts it at login
    Install,
    /// Run in the foreground (for systemd and launchd)
    Run,
}

/// Does it.
pub fn run(world: World, args: &DaemonArgs) -> Result<(), Failure> {
    if world.demo.is_some() {
        return Err(Failure::failed("the demo has no daemon")
            .hint("look at it with `unspool --demo watch`"));
    }
    if let Action::Install = args.action {
        return install::run(&world);
    }
    #[cfg(unix)]
    match args.action {
        Action::Start => run::start(&world),
        Action::Stop => run::stop(&world),
        Action::Status => run::status(&world),
        Action::Install => Ok(()),
        Action::Run => run::be(world),
    }
    #[cfg(not(unix))]
    Err(Failure::failed("there is no daemon on this system")
        .hint("`unspool serve` and `unspool watch` do the same in the foreground"))
}
