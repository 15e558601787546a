//! What may be typed. The doc comments are the help.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand};
use unspool_show::terminal_writer;

use crate::commands;
use crate::ui::{self, Color};

/// Read, search, show, edit, export, watch and continue Claude Code sessions
///
/// Without a command, opens the browser on a terminal, and lists all sessions elsewhere.
#[derive(Debug, Parser)]
#[command(name = "unspool", version, max_term_width = 100)]
#[command(after_help = "Examples:
  unspool                      browse: the latest session of this directory, or all
  unspool ls                   list sessions, newest first
  unspool show                 read the latest session of this directory
  unspool show 2f72 --turn -1  read the last turn of a session
  unspool turns @2 --json      the turns of the second latest session, for scripts
  unspool check --all          find broken sessions
  unspool --demo show          try it on the bundled recordings

SESSION is the start of a session id (4 or more characters), a title in quotes, a path to a
.jsonl file, @ for the latest session of this directory or @N for the N-th latest.
Exit codes: 0 done, 1 nothing found, 2 failed; `check` is a test: 1 means it found something.")]
pub struct Arguments {
    /// What to do
    #[command(subcommand)]
    pub command: Option<Command>,
    /// What holds for every command
    #[command(flatten)]
    pub global: Global,
}

/// Options of every command.
#[derive(Debug, Args)]
pub struct Global {
    /// A config folder of Claude Code (can be repeated) [default: $CLAUDE_CONFIG_DIR, else ~/.claude and ~/.config/claude]
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        help_heading = "Global options"
    )]
    pub claude_dir: Vec<PathBuf>,

    /// Print rows for machines: one JSON object per line
    #[arg(long, global = true, help_heading = "Global options")]
    pub json: bool,

    /// Use the recordings that are bundled in the program
    #[arg(long, global = true, help_heading = "Global options")]
    pub demo: bool,

    /// Whose reading rules apply where client versions differ: a version, or `strict` [default: the newest known]
    #[arg(long, global = true, value_name = "V", help_heading = "Global options")]
    pub claude_version: Option<String>,

    /// The zone that times are shown in, such as `Europe/Berlin` [default: the machine's]
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
    pub color: Color,

    /// Show keys, tokens and passwords that are masked otherwise
    #[arg(long, global = true, help_heading = "Global options")]
    pub reveal: bool,

    /// Say nothing but data and errors
    #[arg(long, short, global = true, help_heading = "Global options")]
    pub quiet: bool,

    /// Say more
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
    /// Take the inventory of a session
    Info(commands::info::InfoArgs),
    /// Print the messages a client would send on resume
    Messages(commands::messages::MessagesArgs),
    /// Show branches, forks and resumes of a session
    Tree(commands::tree::TreeArgs),
    /// List the sub-agents of a session
    Agents(commands::agents::AgentsArgs),
    /// List the files a session read and changed
    Files(commands::files::FilesArgs),
    /// Get a file back as it was after a turn
    Restore(commands::restore::RestoreArgs),
    /// Show what fills the context of a session
    Context(commands::context::ContextArgs),
    /// Find faults, and say which client versions can resume
    Check(commands::check::CheckArgs),
    /// Find keys, tokens and passwords
    Scan(commands::scan::ScanArgs),
    /// Make a new session of an old one, whole or trimmed
    Clone(commands::clone::CloneArgs),
    /// Mend a damaged session
    Repair(commands::repair::RepairArgs),
    /// Make one session of several
    Merge(commands::merge::MergeArgs),
    /// Take keys, tokens and passwords out of a session
    Redact(commands::redact::RedactArgs),
    /// Write sessions as pages, Markdown, text or JSON
    Export(commands::export::ExportArgs),
    /// Send turns to Langfuse or any receiver of OTLP
    Send(commands::send::SendArgs),
    /// Find text in everything that was said and done
    Search(commands::search::SearchArgs),
    /// Count tokens and cost
    Usage(commands::usage::UsageArgs),
    /// List what models cost
    Prices(commands::prices::PricesArgs),
    /// Take the sessions of a directory along to where it is now
    Move(commands::rehome::MoveArgs),
    /// Ask all sessions in SQL
    Sql(commands::sql::SqlArgs),
    /// Show, build or drop the search index
    Index(commands::index::IndexArgs),
    /// Take an event from Claude Code; send and show sessions while they run
    Hook(commands::hook::HookArgs),
    /// Talk to the model, in a session that Claude Code can resume
    Chat(commands::chat::ChatArgs),
    /// Show all sessions in a browser, live
    Serve(commands::serve::ServeArgs),
    /// Say what is going on, on one line
    Status(commands::status::StatusArgs),
    /// Follow all sessions on a live board
    Watch(commands::watch::WatchArgs),
    /// Follow all sessions in the background
    Daemon(commands::daemon::DaemonArgs),
    /// Give a session another title
    Rename(commands::rename::RenameArgs),
    /// Keep compressed copies of sessions, and get them back
    Archive(commands::archive::ArchiveArgs),
    /// Undo the last edit, or any other
    Undo(commands::undo::UndoArgs),
    /// List what was done to sessions
    Log(commands::log::LogArgs),
    /// Print the JSON Schemas of our rows
    Schema(commands::schema::SchemaArgs),
}

/// What was typed, or ends the program with what is wrong about it.
pub fn read() -> Arguments {
    Arguments::try_parse().unwrap_or_else(|wrong| {
        // A client would take the exit code of a mistake for an order to stop.
        if wrong.use_stderr()
            && commands::hook::is_event(std::env::args_os())
            && let Ok(hook) = Arguments::try_parse_from(["unspool", "hook"])
        {
            return hook;
        }
        if wrong.kind() == ErrorKind::UnknownArgument
            && let Err(mistyped) = strict().try_get_matches()
        {
            end(&mistyped, strict());
        }
        end(&wrong, Arguments::command())
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
    Arguments::command().mut_subcommand("search", |search| {
        search.mut_arg("query", |query| query.allow_hyphen_values(false))
    })
}
