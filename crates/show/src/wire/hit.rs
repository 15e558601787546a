//! Rows of `search`.

use schemars::JsonSchema;
use serde::Serialize;

/// A matching line; one row per kind of text on it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HitRow {
    /// The session.
    pub session: String,
    /// The file of the line.
    pub path: String,
    /// The line in that file, from 1.
    pub line: u64,
    /// The id of the line; null where it has none.
    pub uuid: Option<String>,
    /// `prompt`, `reply`, `thinking`, `tool` (tool input), `result` (tool result),
    /// `progress`, `title` or `other`.
    pub r#where: String,
    /// When it was written.
    pub at: Option<String>,
    /// The first match with the text around it.
    pub snippet: String,
    /// Number of matches.
    pub matches: u32,
    /// The sub-agent that the line belongs to.
    pub agent: Option<String>,
    /// The project of the session.
    pub project: String,
    /// Relevance: higher is better. Only with `--ranked`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The title of the session. Only with `--ranked`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}
