//! What only the HTTP API tells.

use schemars::JsonSchema;
use serde::Serialize;
use unspool_model::view::commits::GitCommit;

use crate::wire::file::FileJson;
use crate::wire::graph::AgentJson;
use crate::wire::item::{ItemJson, ToolRow};
use crate::wire::session::SessionJson;
use crate::wire::turn::TurnJson;

/// Server health.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HealthRow {
    /// Always true.
    pub ok: bool,
    /// The version of this program.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// Number of sessions it knows.
    pub sessions: usize,
    /// Whether all files have been scanned.
    pub scanned: bool,
    /// Uptime.
    pub uptime_ms: u64,
}

/// A turn with its items.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TurnDetailRow {
    /// The turn.
    #[serde(flatten)]
    pub row: TurnJson,
    /// Index of its head in the list of all items.
    pub first_item: usize,
    /// Its items; absent where turns are only listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<ItemJson>>,
}

/// The end of a branch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BranchRow {
    /// Its last line: what `branch=` takes.
    pub uuid: String,
    /// Its label: the last prompt.
    pub label: String,
    /// Time of the last prompt.
    pub at: Option<String>,
    /// Whether it is the live branch.
    pub live: bool,
}

/// A commit made in a session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CommitRow {
    /// The turn it was made in.
    pub turn: usize,
    /// The call that made it.
    pub call: String,
    /// When.
    pub at: Option<String>,
    /// Its hash.
    pub hash: String,
    /// The branch; empty if git did not say.
    pub branch: String,
    /// The first line of its message.
    pub title: String,
}

impl From<&GitCommit> for CommitRow {
    fn from(commit: &GitCommit) -> CommitRow {
        CommitRow {
            turn: commit.turn,
            call: commit.call.clone(),
            at: commit.at.map(|at| at.to_string()),
            hash: commit.hash.clone(),
            branch: commit.branch.clone(),
            title: commit.title.clone(),
        }
    }
}

/// A session with everything except its conversation.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DetailRow {
    /// Its row, as in the list.
    #[serde(flatten)]
    pub row: SessionJson,
    /// The command that resumes it.
    pub resume: String,
    /// The command that resumes it in `unspool chat`.
    pub chat: String,
    /// How many items its conversation has.
    pub items: usize,
    /// Its sub-agents.
    pub agents_list: Vec<AgentJson>,
    /// The files it read and changed.
    pub files: Vec<FileJson>,
    /// The ends of its branches, the live one first.
    pub branches: Vec<BranchRow>,
    /// The commits made in it.
    pub commits: Vec<CommitRow>,
    /// Its tools, the most used first.
    pub tools: Vec<ToolRow>,
}
