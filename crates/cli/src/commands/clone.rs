//! `clone`: a new session made of an old one, whole or trimmed.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use unspool_show::wire::edit::EditResult;

use crate::command_context::{ChosenSession, CommandContext};
use crate::edit_options::{self, EditOptions};
use crate::failure::CommandFailure;
use crate::session_edit::{self, EditRequest};

/// Arguments of `clone`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unspool clone @ --preset default            a smaller copy of the latest session, ready to resume
  unspool clone 2f72 --preset heavy --dry-run  what that would keep, drop and free
  unspool clone 2f72 --until 12                the session as it was after turn 12
  unspool clone 2f72 --slim                    without bookkeeping lines; all messages stay the same
  unspool clone 2f72 --results-over 20000      large results keep their start and end
  unspool clone 2f72 --cwd ~/other/project     in another project
  unspool clone 2f72 --compress 0-50:35 --with 'claude -p \"$UNSPOOL_PROMPT\"'
                                               shorten the older half to 35 %

The source is never changed. A copy that would not resume, or would change more than was asked,
is not written. Sub-agents, tool results, file backups, todos and tasks are copied, too.
Presets (number of last turns that keep their tool calls / percentage of those truncated):
  default 20/50 %   aggressive 10/50 %   heavy 10/80 %   extreme 0
Your own: in config.toml, `[presets.mine]` with `keep = 15` and `truncate = 30`.")]
pub struct CloneArgs {
    /// Start of a session id, a title, a path, or `@` for the latest
    pub session: Option<OsString>,

    /// What to keep and what to trim
    #[command(flatten)]
    pub trims: TrimArgs,

    /// Put the copy into this directory's project, so that it can be resumed there
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,

    /// Title of the copy [default: the title of the source, marked as a clone]
    #[arg(long, value_name = "T")]
    pub title: Option<String>,

    /// Generate a new uuid for every line
    #[arg(long)]
    pub new_uuids: bool,

    /// Don't linearize parallel tool results
    #[arg(long)]
    pub keep_tree: bool,

    /// Show what would be done, and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Everything that can be taken from a session.
#[derive(Debug, Default, Args)]
pub struct TrimArgs {
    /// Trim tool calls by preset: default, aggressive, heavy, extreme, or your own
    #[arg(long, value_name = "NAME", help_heading = "Tools")]
    pub preset: Option<String>,

    /// Keep tool calls of the last N turns that have any; remove older ones
    #[arg(long, value_name = "N", help_heading = "Tools")]
    pub keep_tools: Option<usize>,

    /// Truncate tool calls in this percentage of the kept turns, oldest first
    #[arg(long, value_name = "PCT", value_parser = clap::value_parser!(u8).range(0..=100), help_heading = "Tools")]
    pub truncate_tools: Option<u8>,

    /// Strip tool calls from this percentage of turns, oldest first
    #[arg(long, value_name = "PCT", value_parser = clap::value_parser!(u8).range(0..=100), help_heading = "Tools")]
    pub strip_tools: Option<u8>,

    /// Whether stripped calls are removed or truncated
    #[arg(
        long,
        value_enum,
        default_value = "remove",
        requires = "strip_tools",
        help_heading = "Tools"
    )]
    pub mode: StripMode,

    /// Truncate only results larger than N bytes
    #[arg(long, value_name = "BYTES", help_heading = "Tools")]
    pub results_over: Option<usize>,

    /// Strip thinking: all of it, or from this percentage of turns, oldest first
    #[arg(long, value_name = "PCT", num_args = 0..=1, require_equals = true, default_missing_value = "100", value_parser = clap::value_parser!(u8).range(0..=100), help_heading = "Texts")]
    pub strip_thinking: Option<u8>,

    /// Drop bookkeeping lines that clients never send to the model
    #[arg(long, help_heading = "Texts")]
    pub slim: bool,

    /// Replace keys, tokens and passwords with placeholders
    #[arg(long, help_heading = "Texts")]
    pub redact: bool,

    /// Keep only these turns, such as `3`, `2..5`, `-3..`
    #[arg(
        long,
        value_name = "R",
        allow_hyphen_values = true,
        help_heading = "Turns"
    )]
    pub turns: Option<String>,

    /// Keep everything up to and including this turn, or up to the line with this id
    #[arg(
        long,
        value_name = "TURN",
        allow_hyphen_values = true,
        help_heading = "Turns"
    )]
    pub until: Option<String>,

    /// Drop this turn (can be repeated)
    #[arg(
        long,
        value_name = "N",
        allow_hyphen_values = true,
        help_heading = "Turns"
    )]
    pub drop_turn: Vec<String>,

    /// Keep only the branch that ends at the line with this uuid
    #[arg(long, value_name = "UUID", help_heading = "Turns")]
    pub branch: Option<String>,

    /// Shorten replies with a model: percentage range of turns, and percentage of text to keep (can be repeated)
    #[arg(long, value_name = "START-END:TARGET", help_heading = "Compression")]
    pub compress: Vec<String>,

    /// Replace everything before this turn with a summary
    #[arg(
        long,
        value_name = "TURN",
        allow_hyphen_values = true,
        help_heading = "Compression"
    )]
    pub summary: Option<String>,

    /// Use this summary instead of asking a model for one
    #[arg(
        long,
        value_name = "TEXT",
        requires = "summary",
        help_heading = "Compression"
    )]
    pub summary_text: Option<String>,

    /// Command that shortens a text: text on stdin, prompt in $UNSPOOL_PROMPT, result on stdout [default: Messages API]
    #[arg(long, value_name = "CMD", help_heading = "Compression")]
    pub with: Option<String>,

    /// Also shorten prompts
    #[arg(long, requires = "compress", help_heading = "Compression")]
    pub include_user: bool,

    /// Model that shortens or summarizes
    #[arg(long, value_name = "M", help_heading = "Compression")]
    pub model: Option<String>,

    /// Send texts to the API without asking
    #[arg(long, help_heading = "Compression")]
    pub yes: bool,
}

/// What becomes of stripped calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum StripMode {
    /// Remove calls with their results
    #[default]
    Remove,
    /// Keep only their first lines
    Truncate,
}

/// What a copy trimmed as a preset says would be; nothing is written.
pub fn preview(
    world: &CommandContext,
    chosen: ChosenSession,
    preset: &str,
) -> Result<EditResult, CommandFailure> {
    let trims = TrimArgs {
        preset: Some(preset.to_owned()),
        ..TrimArgs::default()
    };
    let wishes = EditOptions::new(world, &trims)?.dry(true);
    let order = EditRequest {
        operation: "clone",
        words: wishes.words(),
        dry_run: true,
        ..EditRequest::default()
    };
    let mut result = session_edit::copy(world, chosen, &order, &wishes)?;
    world.mask_in(&mut result.title);
    Ok(result)
}

/// Makes the copy.
pub fn run(world: &CommandContext, args: &CloneArgs) -> Result<(), CommandFailure> {
    let wishes = EditOptions::new(world, &args.trims)?.dry(args.dry_run);
    if args
        .title
        .as_ref()
        .is_some_and(|title| title.trim().is_empty())
    {
        return Err(CommandFailure::failed("the title is empty").hint("pass a non-empty title"));
    }
    let chosen = world.choose(args.session.as_deref())?;
    let order = EditRequest {
        operation: "clone",
        words: wishes.words(),
        options: edit_options::typed(),
        title: args.title.clone(),
        cwd: args.cwd.clone(),
        new_uuids: args.new_uuids,
        keep_tree: args.keep_tree,
        dry_run: args.dry_run,
    };
    let result = session_edit::copy(world, chosen, &order, &wishes)?;
    session_edit::print_result(world, &result)
}

/// Makes a copy by a preset, or a whole one, or says what it would be: for screens.
pub fn by_preset(
    world: &CommandContext,
    session: &OsStr,
    preset: Option<&str>,
    dry_run: bool,
) -> Result<EditResult, CommandFailure> {
    let trims = TrimArgs {
        preset: preset.map(str::to_owned),
        ..TrimArgs::default()
    };
    let wishes = EditOptions::new(world, &trims)?.dry(dry_run);
    let options = preset.map(|preset| vec!["--preset".to_owned(), preset.to_owned()]);
    let order = EditRequest {
        operation: "clone",
        words: wishes.words(),
        options: options.unwrap_or_default(),
        dry_run,
        ..EditRequest::default()
    };
    session_edit::copy(world, world.choose(Some(session))?, &order, &wishes)
}
