//! What all sessions are doing at this moment, and what changes.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::session::SessionRow;

/// What is going on, in a few numbers: `unspool status`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StatusRow {
    /// The same in words, as it is printed without `--json`.
    pub line: String,
    /// Sessions that cannot go on without you: a permission, a question, an error.
    pub need_you: usize,
    /// Sessions that are done and wait for the next prompt.
    pub your_turn: usize,
    /// Sessions at work.
    pub working: usize,
    /// Sub-agents at work.
    pub agents_working: usize,
    /// The session that has needed you the longest, else the one whose turn it is yours.
    pub first: Option<NeedRow>,
}

/// A session that waits for you.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NeedRow {
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
    /// For what.
    pub what: Option<String>,
}

/// A session that changed: `unspool watch --json`, after the rows as they were.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ChangeRow<'a> {
    /// `session`: it is new, has grown, or is in another state.
    pub event: &'static str,
    /// As it is now.
    #[serde(flatten)]
    pub session: &'a SessionRow,
    /// The state it was in; null if it is the same.
    pub previous_status: Option<String>,
    /// Whether lines were added, not only time passed.
    pub grown: bool,
}

/// A session that is gone: `unspool watch --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RemovedRow {
    /// `removed`.
    pub event: &'static str,
    /// Its id.
    pub id: String,
}

/// A daemon that runs: `unspool daemon status`, and what it says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DaemonRow {
    /// Its process.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// Where its dashboard is.
    pub link: Option<String>,
    /// Since when it runs.
    pub since: String,
    /// How many sessions it follows.
    pub sessions: usize,
    /// Whether it has looked at all files.
    pub scanned: bool,
    /// The config folders it looks at.
    pub dirs: Vec<PathBuf>,
    /// Its log.
    pub log: PathBuf,
    /// What people should know about how it looks; mostly nothing.
    pub notes: Vec<String>,
}
