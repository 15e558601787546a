//! What goes over the socket of the daemon: one JSON object per line.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_live::{News, What};
use unspool_show::wire::session::SessionRow;

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ask {
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
pub struct Refusal {
    /// Why.
    pub error: String,
}

/// What stands between the rows and the changes after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The number of the last change in the rows.
    pub at: u64,
    /// Whether all files were looked at.
    pub scanned: bool,
}

/// A change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Change<R> {
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

impl<'a> From<&'a News> for Change<&'a SessionRow> {
    fn from(news: &'a News) -> Change<&'a SessionRow> {
        let mut change = Change {
            news: news.id,
            session: None,
            previous_status: None,
            grown: false,
            removed: None,
            scanned: false,
        };
        match &news.what {
            What::Session { row, before, grown } => {
                change.session = Some(&**row);
                change.previous_status = before.clone();
                change.grown = *grown;
            }
            What::Removed { id } => change.removed = Some(id.clone()),
            What::Scanned => change.scanned = true,
        }
        change
    }
}

impl Change<SessionRow> {
    /// The change itself.
    pub fn news(self) -> Option<News> {
        let what = match (self.session, self.removed) {
            (Some(row), _) => What::Session {
                row: Arc::new(row),
                before: self.previous_status,
                grown: self.grown,
            },
            (None, Some(id)) => What::Removed { id },
            (None, None) if self.scanned => What::Scanned,
            (None, None) => return None,
        };
        Some(News {
            id: self.news,
            what,
        })
    }
}

/// Whether something goes on in a session, as its state says.
pub fn is_active(row: &SessionRow) -> bool {
    !matches!(row.status.as_str(), "idle" | "ended")
}
