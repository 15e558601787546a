//! What all sessions are doing at this moment, and what changes.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::session::SessionJson;

/// A summary of running sessions: `unspool status`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StatusRow {
    /// The same as text, as printed without `--json`.
    pub line: String,
    /// Sessions that need you: a permission, a question, an error.
    pub need_you: usize,
    /// Sessions that wait for your next prompt.
    pub your_turn: usize,
    /// Sessions that are working.
    pub working: usize,
    /// Sub-agents that are working.
    pub agents_working: usize,
    /// The session that has needed you the longest, else the one that waits longest for a prompt.
    pub first: Option<WaitingSessionRow>,
}

/// A session that waits for you.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WaitingSessionRow {
    /// The session.
    pub id: String,
    /// Its title.
    pub title: Option<String>,
    /// Its project.
    pub project: String,
    /// Its state.
    pub status: String,
    /// Since when.
    pub since: Option<String>,
    /// What it waits for.
    pub what: Option<String>,
}

/// A session that changed: `unspool watch --json`, after the initial rows.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SessionChangeRow<'a> {
    /// `session`: it is new, has grown, or changed its state.
    pub event: &'static str,
    /// Its current row.
    #[serde(flatten)]
    pub session: &'a SessionJson,
    /// Its previous state; null if unchanged.
    pub previous_status: Option<String>,
    /// Whether lines were added, not only time passed.
    pub grown: bool,
}

/// A session that was removed: `unspool watch --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RemovedRow {
    /// `removed`.
    pub event: &'static str,
    /// Its id.
    pub id: String,
}

/// The state of the running daemon: `unspool daemon status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DaemonRow {
    /// Its process.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// Link to its dashboard.
    pub link: Option<String>,
    /// Since when it runs.
    pub since: String,
    /// How many sessions it follows.
    pub sessions: usize,
    /// Whether it has scanned all files.
    pub scanned: bool,
    /// The config directories it follows.
    pub dirs: Vec<PathBuf>,
    /// Its log.
    pub log: PathBuf,
    /// Warnings about how it follows files; usually empty.
    pub notes: Vec<String>,
}
