//! Rows of `hook install`, `hook uninstall` and `hook status`.

use schemars::JsonSchema;
use serde::Serialize;

/// What was done to the settings of the client.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HookEditRow {
    /// The number for `undo`; null when nothing was written.
    pub n: Option<u64>,
    /// Whose settings: user, project or local.
    pub scope: String,
    /// The settings file.
    pub path: String,
    /// Events for which the hook was added.
    pub added: Vec<String>,
    /// Events for which its command was brought up to date.
    pub updated: Vec<String>,
    /// Events for which it was taken out.
    pub removed: Vec<String>,
    /// The command that the client runs.
    pub command: Option<String>,
}

/// The hook in one settings file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HookRow {
    /// Whose settings: user, project or local.
    pub scope: String,
    /// The settings file.
    pub path: String,
    /// Whether there is such a file.
    pub exists: bool,
    /// Whether the hook is in it, for any event.
    pub installed: bool,
    /// Whether it is there for all events that sending needs.
    pub export: bool,
    /// Whether it is there for the events that tell what a session does.
    pub live: bool,
    /// The events for which it is there.
    pub events: Vec<String>,
    /// The command that the client runs.
    pub command: Option<String>,
    /// Whether the program of the command is there.
    pub program_found: Option<bool>,
    /// Commands of others that send to Langfuse as well.
    pub other_exporters: Vec<String>,
    /// Whether these settings keep every hook from running.
    pub disabled: bool,
    /// Why the file could not be read.
    pub error: Option<String>,
    /// Whether sessions would be sent; the same in every row.
    pub sending: HookSendingRow,
    /// The last event of any session; the same in every row.
    pub last_event: Option<HookEventRow>,
    /// The last line of the log; the same in every row.
    pub last_log: Option<String>,
    /// Where the log is.
    pub log: String,
}

/// Whether the hook would send sessions.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct HookSendingRow {
    /// Whether it would.
    pub ready: bool,
    /// Whether `TRACE_TO_LANGFUSE` is `true`.
    pub wanted: bool,
    /// Where to, or what is missing, in words.
    pub why: String,
}

/// An event that the client told us.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HookEventRow {
    /// When.
    pub at: String,
    /// The session.
    pub session: String,
    /// What happened.
    pub event: String,
    /// The tool it is about.
    pub tool: Option<String>,
    /// What the call is about.
    pub subject: Option<String>,
    /// What a notification says.
    pub message: Option<String>,
    /// The directory the client works in.
    pub cwd: Option<String>,
}
