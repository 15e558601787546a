//! Rows of `search`.

use schemars::JsonSchema;
use serde::Serialize;

/// A line in which something was found; one row for each kind of text on it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HitRow {
    /// The session.
    pub session: String,
    /// The file the line stands in.
    pub path: String,
    /// The line in that file, from 1.
    pub line: u64,
    /// The id of the line; null where it has none.
    pub uuid: Option<String>,
    /// `prompt`, `reply`, `thinking`, `tool` (what a tool was given), `result` (what it said),
    /// `progress`, `title` or `other`.
    pub r#where: String,
    /// When it was written.
    pub at: Option<String>,
    /// The first match with the text around it.
    pub snippet: String,
    /// How often it matches there.
    pub matches: u32,
    /// The sub-agent that the line belongs to.
    pub agent: Option<String>,
    /// The project of the session.
    pub project: String,
    /// How well it fits: larger is better. Only with `--ranked`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The title of the session. Only with `--ranked`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}
