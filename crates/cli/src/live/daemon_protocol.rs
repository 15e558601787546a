//! What goes over the socket of the daemon: one JSON object per line.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_live::{LiveChange, LiveChangeKind};
use unspool_show::wire::session::SessionJson;

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DaemonRequest {
    /// `sessions`, `watch`, `health` or `stop`.
    pub ask: String,
    /// The config folders the one who asks means; empty: whatever the daemon looks at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dirs: Vec<PathBuf>,
    /// Only sessions in which something goes on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub active: bool,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonRefusal {
    /// Why.
    pub error: String,
}

/// What stands between the rows and the changes after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotEnd {
    /// The number of the last change in the rows.
    pub at: u64,
    /// Whether all files were looked at.
    pub scanned: bool,
}

/// A change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DaemonChange<R> {
    /// Its number.
    pub news: u64,
    /// A session as it is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<R>,
    /// The state it was in, if that was another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_status: Option<String>,
    /// Whether lines were added.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub grown: bool,
    /// The id of a session that is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<String>,
    /// All files were looked at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scanned: bool,
}

impl<'a> From<&'a LiveChange> for DaemonChange<&'a SessionJson> {
    fn from(news: &'a LiveChange) -> DaemonChange<&'a SessionJson> {
        let mut change = DaemonChange {
            news: news.id,
            session: None,
            previous_status: None,
            grown: false,
            removed: None,
            scanned: false,
        };
        match &news.what {
            LiveChangeKind::Session { row, before, grown } => {
                change.session = Some(&**row);
                change.previous_status = before.clone();
                change.grown = *grown;
            }
            LiveChangeKind::Removed { id } => change.removed = Some(id.clone()),
            LiveChangeKind::Scanned => change.scanned = true,
        }
        change
    }
}

impl DaemonChange<SessionJson> {
    /// The change itself.
    pub fn news(self) -> Option<LiveChange> {
        let what = match (self.session, self.removed) {
            (Some(row), _) => LiveChangeKind::Session {
                row: Arc::new(row),
                before: self.previous_status,
                grown: self.grown,
            },
            (None, Some(id)) => LiveChangeKind::Removed { id },
            (None, None) if self.scanned => LiveChangeKind::Scanned,
            (None, None) => return None,
        };
        Some(LiveChange {
            id: self.news,
            what,
        })
    }
}

/// Whether something goes on in a session, as its state says.
pub fn is_active(row: &SessionJson) -> bool {
    !matches!(row.status.as_str(), "idle" | "ended")
}
