//! What may be typed. The doc comments are the help.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use unspool_show::terminal_writer;

use crate::commands;
use crate::ui::{self, ColorChoice};

/// Read, search, show, edit, export, watch and continue Claude Code sessions
///
/// Without a command, opens the session browser on a terminal; lists all sessions when piped.
#[derive(Debug, Parser)]
#[command(name = "unspool", version, max_term_width = 100)]
#[command(after_help = "Examples:
  unspool                      browse sessions, starting with the latest of this directory
  unspool ls                   list sessions, newest first
  unspool show                 read the latest session of this directory
  unspool show 2f72 --turn -1  read the last turn of a session
  unspool turns @2 --json      the turns of the second latest session, for scripts
  unspool check --all          find broken sessions
  unspool --demo show          try it on the bundled recordings

SESSION is the start of a session id (4 or more characters), a title in quotes, a path to a
.jsonl file, @ for the latest session of this directory or @N for the N-th latest.
Exit codes: 0 done, 1 nothing found, 2 failed; `check` and `scan`: 0 clean, 1 found something.")]
pub struct CliArgs {
    /// What to do
    #[command(subcommand)]
    pub command: Option<Command>,
    /// What holds for every command
    #[command(flatten)]
    pub global: GlobalArgs,
}

/// Options of every command.
#[derive(Debug, Args)]
pub struct GlobalArgs {
    /// Claude Code's config directory (can be repeated) [default: $CLAUDE_CONFIG_DIR, else ~/.claude and ~/.config/claude]
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        help_heading = "Global options"
    )]
    pub claude_dir: Vec<PathBuf>,

    /// Print JSON Lines: one object per row
    #[arg(long, global = true, help_heading = "Global options")]
    pub json: bool,

    /// Use the bundled demo sessions
    #[arg(long, global = true, help_heading = "Global options")]
    pub demo: bool,

    /// Client version to emulate: any version, or `strict` [default: the newest known]
    #[arg(long, global = true, value_name = "V", help_heading = "Global options")]
    pub claude_version: Option<String>,

    /// Time zone to show times in, such as `Europe/Berlin` [default: local]
    #[arg(
        long,
        global = true,
        value_name = "ZONE",
        help_heading = "Global options"
    )]
    pub timezone: Option<String>,

    /// When to use colours
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Global options"
    )]
    pub color: ColorChoice,

    /// Show keys, tokens and passwords instead of masking them
    #[arg(long, global = true, help_heading = "Global options")]
    pub reveal: bool,

    /// Print only data and errors
    #[arg(long, short, global = true, help_heading = "Global options")]
    pub quiet: bool,

    /// Print more detail
    #[arg(long, short, global = true, help_heading = "Global options")]
    pub verbose: bool,
}

/// Every command, in the order of the help.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List sessions, newest first
    Ls(commands::ls::LsArgs),
    /// Print the conversation of a session
    Show(commands::show::ShowArgs),
    /// List the turns of a session
    Turns(commands::turns::TurnsArgs),
    /// Show facts about a session: size, lines, versions, models
    Info(commands::info::InfoArgs),
    /// Print the API messages that resuming would send
    Messages(commands::messages::MessagesArgs),
    /// Show branches, forks and resumes of a session
    Tree(commands::tree::TreeArgs),
    /// List the sub-agents of a session
    Agents(commands::agents::AgentsArgs),
    /// List the files a session read and changed
    Files(commands::files::FilesArgs),
    /// Restore a file as it was after a turn
    Restore(commands::restore::RestoreArgs),
    /// Show what fills the context window
    Context(commands::context::ContextArgs),
    /// Check sessions for faults, and which client versions can resume them
    Check(commands::check::CheckArgs),
    /// Scan for keys, tokens and passwords
    Scan(commands::scan::ScanArgs),
    /// Copy a session, whole or trimmed
    Clone(commands::clone::CloneArgs),
    /// Repair a damaged session
    Repair(commands::repair::RepairArgs),
    /// Merge several sessions into one
    Merge(commands::merge::MergeArgs),
    /// Remove keys, tokens and passwords from a session
    Redact(commands::redact::RedactArgs),
    /// Export sessions as HTML, Markdown, text or JSON
    Export(commands::export::ExportArgs),
    /// Send turns to Langfuse or any OTLP backend
    Send(commands::send::SendArgs),
    /// Search the full text of all sessions
    Search(commands::search::SearchArgs),
    /// Count tokens and cost
    Usage(commands::usage::UsageArgs),
    /// List model prices
    Prices(commands::prices::PricesArgs),
    /// Move a directory's sessions to its new path
    Move(commands::move_sessions::MoveArgs),
    /// Query all sessions with SQL
    Sql(commands::sql::SqlArgs),
    /// Show, build or drop the search index
    Index(commands::index::IndexArgs),
    /// Claude Code hook: send and track running sessions
    Hook(commands::hook::HookArgs),
    /// Chat with the model in a session that Claude Code can resume
    Chat(commands::chat::ChatArgs),
    /// Serve a live dashboard of all sessions
    Serve(commands::serve::ServeArgs),
    /// Print a one-line summary of running sessions
    Status(commands::status::StatusArgs),
    /// Watch all sessions live
    Watch(commands::watch::WatchArgs),
    /// Run the background daemon that follows all sessions
    Daemon(commands::daemon::DaemonArgs),
    /// Rename a session
    Rename(commands::rename::RenameArgs),
    /// Tag a session, or remove its tag
    Tag(commands::tag::TagArgs),
    /// Move sessions to the trash (undoable)
    Delete(commands::delete::DeleteArgs),
    /// Archive sessions as compressed copies, and restore them
    Archive(commands::archive::ArchiveArgs),
    /// Undo the latest edit, or edit number N
    Undo(commands::undo::UndoArgs),
    /// List edits made to sessions
    Log(commands::log::LogArgs),
    /// Print the JSON Schemas of `--json` rows
    Schema(commands::schema::SchemaArgs),
}

/// The commands of the help, by what people want. Every command stands in one group.
const COMMAND_GROUPS: &[(&str, &[&str])] = &[
    (
        "Read sessions",
        &[
            "ls", "show", "turns", "info", "agents", "files", "tree", "context", "messages",
        ],
    ),
    ("Find", &["search", "sql", "check", "scan", "restore"]),
    ("Tokens and cost", &["usage", "prices"]),
    (
        "Edit",
        &[
            "clone", "repair", "merge", "redact", "rename", "tag", "move", "archive", "delete",
            "undo", "log",
        ],
    ),
    ("Export", &["export", "send"]),
    ("Live", &["status", "watch", "serve", "daemon"]),
    ("Chat", &["chat"]),
    ("Set up", &["hook", "index", "schema", "help"]),
];

/// The command line, with its commands in groups.
fn command() -> clap::Command {
    let mut command = CliArgs::command();
    // Adds `help`, which is listed as well.
    command.build();
    let groups = command_groups(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\x1b[1;4mOptions:\x1b[0m\n{{options}}{{after-help}}"
    ))
}

/// The groups as they stand in the help.
fn command_groups(command: &clap::Command) -> String {
    let mut text = String::new();
    for (heading, names) in COMMAND_GROUPS {
        text.push_str(&format!("\x1b[1;4m{heading}:\x1b[0m\n"));
        for name in *names {
            let found = command.find_subcommand(name);
            let about = found.and_then(|found| found.get_about());
            let about = about.map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  \x1b[1m{name:<9}\x1b[0m {about}\n"));
        }
        text.push('\n');
    }
    text
}

/// What was typed, or ends the program with what is wrong about it.
pub fn read() -> CliArgs {
    let typed = command().try_get_matches();
    let parsed = typed.and_then(|matches| CliArgs::from_arg_matches(&matches));
    parsed.unwrap_or_else(|wrong| {
        // A client would take the exit code of a mistake for an order to stop.
        if wrong.use_stderr()
            && commands::hook::is_event(std::env::args_os())
            && let Ok(hook) = CliArgs::try_parse_from(["unspool", "hook"])
        {
            return hook;
        }
        if wrong.kind() == ErrorKind::UnknownArgument
            && let Err(mistyped) = strict().try_get_matches()
        {
            end(&mistyped, strict());
        }
        end(&wrong, command())
    })
}

/// Ends the program with what clap has to say: help, the version, or what is wrong.
fn end(said: &clap::Error, command: clap::Command) -> ! {
    let told = match said.use_stderr() {
        true => tell_wrong(said, command),
        false => tell_help(said),
    };
    let code = match told {
        // Help that nobody got; a reader that is gone need not know.
        Err(why) if !said.use_stderr() && why.kind() != io::ErrorKind::BrokenPipe => {
            ui::say(&format!("Error: {why}"));
            2
        }
        _ => said.exit_code(),
    };
    std::process::exit(code)
}

fn tell_help(help: &clap::Error) -> io::Result<()> {
    let mut out = ui::styled();
    match ui::is_terminal() && ui::colors_are_wanted() {
        true => write!(out, "{}", help.render().ansi())?,
        false => write!(out, "{}", help.render())?,
    }
    out.flush()
}

/// Says what is wrong. The words that clap quotes may hold anything, so they are read once more
/// with everything escaped that a terminal would obey: what is left of it are clap's own colours.
fn tell_wrong(wrong: &clap::Error, command: clap::Command) -> io::Result<()> {
    let escaped = |word: OsString| terminal_writer::escaped(&word.to_string_lossy());
    let words = std::env::args_os().map(escaped);
    let again = command.try_get_matches_from(words).err();
    let again = again.filter(|again| again.kind() == wrong.kind());
    let mut stderr = ui::styled_stderr();
    let colors = io::stderr().is_terminal() && ui::colors_are_wanted();
    match again.map(|again| again.render()) {
        Some(told) if colors => write!(stderr, "{}", told.ansi())?,
        Some(told) => write!(stderr, "{told}")?,
        None => {
            let plain = wrong.render().to_string();
            write!(stderr, "{}", terminal_writer::escaped(&plain))?;
        }
    }
    stderr.flush()
}

/// A query may begin with a dash, so a mistyped option in front of it is taken for the query,
/// and the query for one argument too many. Read without that, the option is what is wrong.
fn strict() -> clap::Command {
    CliArgs::command().mut_subcommand("search", |search| {
        search.mut_arg("query", |query| query.allow_hyphen_values(false))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_stands_in_one_group_of_the_help() {
        let mut listed: Vec<&str> = COMMAND_GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        listed.sort_unstable();
        let mut command = CliArgs::command();
        command.build();
        let mut names: Vec<&str> = command
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        names.sort_unstable();
        assert_eq!(listed, names);
    }
}
