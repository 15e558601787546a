//! Rows of `scan`.

use schemars::JsonSchema;
use serde::Serialize;

/// A secret in a file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SecretRow {
    /// The session; empty if unknown.
    pub session: String,
    /// The file.
    pub path: String,
    /// The line in that file, from 1.
    pub line: u64,
    /// The column of its first character, from 1.
    pub column: u64,
    /// The column after its last character.
    pub end_column: u64,
    /// `prompt`, `reply`, `thinking`, `tool`, `result`, `progress`, `title`, `file` (a file
    /// backup) or `other`.
    pub r#where: String,
    /// The rule that found it, or the environment variable that has this value.
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
