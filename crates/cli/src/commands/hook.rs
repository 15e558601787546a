//! `hook`: what the client runs at each event, and how it comes to do so.
//!
//! The client waits for a hook and obeys what it prints and how it ends, so `unspool hook` says
//! nothing, is done in some milliseconds and always ends well: it notes the event, tells the
//! daemon if one runs, and leaves sending to a process of its own. What goes wrong is in the log.

pub mod detached_process;
mod event_intake;
mod hook_command;
mod hook_files;
mod hook_log;
mod hook_settings;
mod install;
mod notify_daemon;
mod status;
mod stdin_reader;
mod worker;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::panic;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::args::GlobalArgs;
use crate::command_context::CommandContext;
use crate::commands;
use crate::failure::CommandFailure;
use crate::ui;
use hook_files::HookFiles;

/// Arguments of `hook`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  unspool hook install          send each turn to Langfuse when it ends
  unspool hook install --live   also track the state of each session live
  unspool hook status           show what is installed, and the last events
  unspool hook uninstall        remove the hook

Without a subcommand it reads one hook event from standard input, as Claude Code passes it. It
prints nothing, returns immediately and exits with 0 unless --strict is given; a background
process does the work and logs to `hook.log` in unspool's data folder. Sessions are sent only if
TRACE_TO_LANGFUSE is `true` and LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY are set."
)]
pub struct HookArgs {
    /// What to do [default: read an event from standard input]
    #[command(subcommand)]
    pub action: Option<HookAction>,

    /// Exit with 1 if an event could not be recorded or delivered
    #[arg(long)]
    pub strict: bool,

    /// Run the job described in this file
    #[arg(long, hide = true, value_name = "FILE")]
    pub worker: Option<PathBuf>,
}

/// What to do about the hook.
#[derive(Debug, Subcommand)]
pub enum HookAction {
    /// Install the hook in Claude Code's settings
    Install(install::HookInstallArgs),
    /// Remove the hook from the settings
    Uninstall(install::HookUninstallArgs),
    /// Show where the hook is installed, whether it sends, and its last events
    Status(status::HookStatusArgs),
}

/// Which settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HookSettingsScope {
    /// Your settings for all projects: settings.json in the config folder
    User,
    /// Shared settings of this project: .claude/settings.json
    Project,
    /// Your settings for this project: .claude/settings.local.json
    Local,
}

impl HookSettingsScope {
    const ALL: [HookSettingsScope; 3] = [
        HookSettingsScope::User,
        HookSettingsScope::Project,
        HookSettingsScope::Local,
    ];

    /// Its name in rows and options.
    fn name(self) -> &'static str {
        match self {
            HookSettingsScope::User => "user",
            HookSettingsScope::Project => "project",
            HookSettingsScope::Local => "local",
        }
    }
}

/// Does what a person asked about the hook.
pub fn run(world: &CommandContext, action: &HookAction) -> Result<(), CommandFailure> {
    match action {
        HookAction::Install(args) => install::install(world, args),
        HookAction::Uninstall(args) => install::uninstall(world, args),
        HookAction::Status(args) => status::run(world, args),
    }
}

/// Takes an event from the client, or does the work behind one. Never says anything.
pub fn run_hook(global: &GlobalArgs, args: &HookArgs) -> Result<(), CommandFailure> {
    if args.worker.is_none() && io::stdin().is_terminal() {
        ui::say("unspool hook reads an event on standard input; see `unspool hook --help`");
        return Ok(());
    }
    // What panics is a fault of ours, not of the client that waits.
    panic::set_hook(Box::new(|_| {}));
    let Some(own) = commands::find_app_dirs()
        .ok()
        .filter(|own| own.check().is_ok())
    else {
        // There is no place of ours where this could be said.
        return match args.strict {
            true => Err(CommandFailure::Found),
            false => Ok(()),
        };
    };
    let desk = HookFiles::new(own);
    let done = panic::catch_unwind(panic::AssertUnwindSafe(|| match &args.worker {
        Some(file) => worker::run(&desk, global, file),
        None => event_intake::take(&desk, io::stdin()),
    }));
    let done = done.unwrap_or_else(|why| Err(format!("internal error: {}", said(&*why))));
    if let Err(why) = &done {
        desk.log.error(why);
    }
    match done {
        // Never 2, by which a hook stops the client.
        Err(_) if args.strict => Err(CommandFailure::Found),
        _ => Ok(()),
    }
}

fn said(why: &dyn std::any::Any) -> String {
    let text = why.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| why.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown".to_owned())
}

/// Whether these arguments are those of a hook, even if something about them is wrong: a client
/// must never be stopped by a flag that this version does not know.
pub fn is_event(arguments: impl Iterator<Item = OsString>) -> bool {
    let mut words = arguments.skip(1);
    let mut word = || words.find(|word| !word.as_encoded_bytes().starts_with(b"-"));
    if word().is_none_or(|first| first != "hook") {
        return false;
    }
    let action = word();
    action.is_none_or(|action| {
        !["install", "uninstall", "status", "help"]
            .iter()
            .any(|it| action == *it)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_is_known_by_its_arguments_whatever_else_is_said() {
        let is = |text: &str| is_event(text.split(' ').map(OsString::from));
        assert!(is("unspool hook"));
        assert!(is("unspool --quiet hook --brand-new"));
        assert!(is("unspool hook Stop"));
        assert!(!is("unspool hook install --scope"));
        assert!(!is("unspool hook help"));
        assert!(!is("unspool ls hook"));
        assert!(!is("unspool"));
    }
}
