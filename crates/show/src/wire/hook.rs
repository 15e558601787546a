//! Rows of `hook install`, `hook uninstall` and `hook status`.

use schemars::JsonSchema;
use serde::Serialize;

/// A change of the client's settings.
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
    /// Events for which its command was updated.
    pub updated: Vec<String>,
    /// Events for which it was removed.
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
    /// Whether the file exists.
    pub exists: bool,
    /// Whether the hook is in it, for any event.
    pub installed: bool,
    /// Whether it is installed for all events that sending needs.
    pub export: bool,
    /// Whether it is installed for the events that track session state.
    pub live: bool,
    /// The events for which it is installed.
    pub events: Vec<String>,
    /// The command that the client runs.
    pub command: Option<String>,
    /// Whether the program of the command exists.
    pub program_found: Option<bool>,
    /// Other commands that also send to Langfuse.
    pub other_exporters: Vec<String>,
    /// Whether these settings disable all hooks.
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
    /// Whether it is ready to send.
    pub ready: bool,
    /// Whether `TRACE_TO_LANGFUSE` is `true`.
    pub wanted: bool,
    /// Where it sends to, or what is missing.
    pub why: String,
}

/// A recorded hook event.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HookEventRow {
    /// When.
    pub at: String,
    /// The session.
    pub session: String,
    /// Name of the event.
    pub event: String,
    /// The tool it is about.
    pub tool: Option<String>,
    /// Subject of the call.
    pub subject: Option<String>,
    /// Text of a notification.
    pub message: Option<String>,
    /// The directory the client works in.
    pub cwd: Option<String>,
}
