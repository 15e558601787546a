//! The arguments of `chat`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::chat_output::ChatOutputFormat;
use crate::commands::browse::is_screen;

/// Arguments of `chat`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  unspool chat                                     start a chat in this directory
  unspool chat -p \"what does this project do?\"      print one answer and exit
  git diff | unspool chat -p \"review this\"          prompt with piped input
  unspool chat -p --continue \"and the tests?\"       continue the latest session here
  unspool chat -p --resume 2f72 \"go on\"             resume any session, also Claude Code's
  unspool chat -p --output-format json \"…\"          for scripts: answer, usage and cost

The session is an ordinary transcript: `unspool show`, `unspool ls` and `claude --resume` read it.
Set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN; ANTHROPIC_BASE_URL to use a gateway.
Exit codes: 0 done, 1 no answer, 2 failed to start, 130 interrupted, 143 terminated.")]
pub struct ChatArgs {
    /// Prompt; piped standard input is added to it
    pub prompt: Option<String>,

    /// Print one answer and exit
    #[arg(short, long)]
    pub print: bool,

    /// Output format
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        default_value = "text",
        help_heading = "Input and output"
    )]
    pub output_format: ChatOutputFormat,

    /// Input format: text, or one JSON object per line
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        default_value = "text",
        help_heading = "Input and output"
    )]
    pub input_format: ChatInputFormat,

    /// Include partial messages as they arrive (with stream-json)
    #[arg(long, help_heading = "Input and output")]
    pub include_partial_messages: bool,

    /// Tool that answers permission prompts: `stdio` asks over the stream
    #[arg(long, value_name = "WHO", help_heading = "Input and output")]
    pub permission_prompt_tool: Option<String>,

    /// Resume this session
    #[arg(long, short, value_name = "SESSION", help_heading = "Session")]
    pub resume: Option<OsString>,

    /// Continue the latest session of this directory
    #[arg(
        long = "continue",
        short = 'c',
        conflicts_with = "resume",
        help_heading = "Session"
    )]
    pub go_on: bool,

    /// Continue in a copy instead of the session itself (with --resume or --continue)
    #[arg(long, help_heading = "Session")]
    pub fork_session: bool,

    /// Use this uuid as the id of the new session
    #[arg(long, value_name = "ID", help_heading = "Session")]
    pub session_id: Option<String>,

    /// With `-p`: do not save the session
    #[arg(long, requires = "print", help_heading = "Session")]
    pub no_session_persistence: bool,

    /// fsync after every line
    #[arg(long, help_heading = "Session")]
    pub durable: bool,

    /// Also write prompts to Claude Code's prompt history
    #[arg(long, help_heading = "Session")]
    pub history: bool,

    /// Model, or a family such as `opus` [default: that of the session, $ANTHROPIC_MODEL, the newest Sonnet]
    #[arg(long, value_name = "MODEL", help_heading = "Model")]
    pub model: Option<String>,

    /// Reasoning effort: low, medium, high, xhigh, max
    #[arg(long, value_name = "LEVEL", help_heading = "Model")]
    pub effort: Option<String>,

    /// Thinking budget in tokens, for models that take one
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub max_thinking_tokens: Option<u64>,

    /// Text to append to the system prompt
    #[arg(long, value_name = "TEXT", help_heading = "Model")]
    pub append_system_prompt: Option<String>,

    /// Skip CLAUDE.md, hooks, commands, agents and MCP servers, except those given as options
    #[arg(long, help_heading = "Session")]
    pub bare: bool,

    /// Stop after N model requests
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub max_turns: Option<u32>,

    /// Stop after spending this many dollars
    #[arg(long, value_name = "USD", help_heading = "Limits")]
    pub max_budget_usd: Option<f64>,

    /// Tools and calls to allow, such as `Read` or `Bash(git *)`
    #[arg(
        long = "allowedTools",
        alias = "allowed-tools",
        value_name = "RULES",
        help_heading = "Permissions"
    )]
    pub allowed_tools: Vec<String>,

    /// Tools and calls to deny
    #[arg(
        long = "disallowedTools",
        alias = "disallowed-tools",
        value_name = "RULES",
        help_heading = "Permissions"
    )]
    pub disallowed_tools: Vec<String>,

    /// Permission mode: default, acceptEdits, plan, dontAsk or bypassPermissions
    #[arg(long, value_name = "MODE", help_heading = "Permissions")]
    pub permission_mode: Option<String>,

    /// MCP servers: a file, or inline JSON (can be repeated)
    #[arg(long, value_name = "FILE", help_heading = "Tools")]
    pub mcp_config: Vec<String>,

    /// Use only the MCP servers of `--mcp-config`
    #[arg(long, help_heading = "Tools")]
    pub strict_mcp_config: bool,

    /// Additional settings: a file, or inline JSON
    #[arg(long, value_name = "FILE", help_heading = "Permissions")]
    pub settings: Option<String>,

    /// Trust this folder: its settings may run hooks and allow tools
    #[arg(long, help_heading = "Permissions")]
    pub trust: bool,

    /// Sandbox: commands may write only in this folder
    #[arg(long, help_heading = "Permissions")]
    pub sandbox: bool,

    /// Show whether a command would be allowed, and by which rule
    #[arg(long, value_name = "CMD", help_heading = "Permissions")]
    pub explain_permission: Option<String>,

    /// Additional working directory (can be repeated)
    #[arg(long, value_name = "DIR", help_heading = "Permissions")]
    pub add_dir: Vec<PathBuf>,
}

impl ChatArgs {
    /// Whether nobody sits there to talk.
    pub(super) fn is_alone(&self) -> bool {
        self.print || !is_screen() || self.input_format != ChatInputFormat::Text
    }
}

/// How prompts come in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ChatInputFormat {
    /// Plain text
    #[default]
    Text,
    /// One JSON object per line
    StreamJson,
}
