//! Rows of `scan`.

use schemars::JsonSchema;
use serde::Serialize;

/// A secret in a file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SecretRow {
    /// The session; empty where nobody knows.
    pub session: String,
    /// The file.
    pub path: String,
    /// The line in that file, from 1.
    pub line: u64,
    /// The character of the line that it begins with, from 1.
    pub column: u64,
    /// The character behind its last.
    pub end_column: u64,
    /// `prompt`, `reply`, `thinking`, `tool`, `result`, `progress`, `title`, `file` (a file as
    /// it was before it was changed) or `other`.
    pub r#where: String,
    /// Which rule found it, or the variable of the environment that has this value.
    pub rule: String,
    /// Its placeholder with the text around it.
    pub snippet: String,
    /// The hash in its placeholder: the same for the same secret.
    pub hash: String,
    /// The secret itself. Only with `--reveal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The sub-agent that the file belongs to.
    pub agent: Option<String>,
}
