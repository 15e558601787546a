//! Rows of `index`.

use schemars::JsonSchema;
use serde::Serialize;

/// What the search index covers, and what is pending.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct IndexRow {
    /// The file of the index.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// Number of transcripts.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Prompts, replies, titles, commands and paths.
    pub dialogue: StageRow,
    /// Thinking, tool inputs and results.
    pub rest: StageRow,
}

/// One of the two stages of the index.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StageRow {
    /// Bytes of text that are indexed.
    pub text: u64,
    /// Bytes of transcripts that are not read yet.
    pub behind: u64,
    /// Number of transcripts with such bytes.
    pub behind_files: u64,
}
