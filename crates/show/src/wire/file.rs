//! Rows of `files` and `context`.

use schemars::JsonSchema;
use serde::Serialize;
use unspool_model::view::context::{CategoryRow, ContextItemRow};
use unspool_model::view::files::FileRow as File;

/// A file that a session read or changed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FileJson {
    /// Its path, as in tool inputs.
    pub path: String,
    /// Number of reads.
    pub reads: usize,
    /// Number of whole-file writes.
    pub writes: usize,
    /// Number of edits.
    pub edits: usize,
    /// Lines added.
    pub added: usize,
    /// Lines removed.
    pub removed: usize,
    /// Number of the client's backups of it.
    pub versions: usize,
}

impl From<&File> for FileJson {
    fn from(file: &File) -> FileJson {
        FileJson {
            path: file.path.clone(),
            reads: file.reads,
            writes: file.writes,
            edits: file.edits,
            added: file.added,
            removed: file.removed,
            versions: file.versions,
        }
    }
}

/// A part of the context: a category, or one of its largest blocks.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ContextRow {
    /// What it is, such as `prompts` or `results Read`.
    pub category: String,
    /// Tokens.
    pub tokens: u64,
    /// Share of the context, from 0 to 1.
    pub share: f64,
    /// The option of `clone` that would free it.
    pub freed_by: Option<String>,
    /// Label of a block; only for blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The line of a block; only for blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The id of that line; only for blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
}

impl From<&CategoryRow> for ContextRow {
    fn from(row: &CategoryRow) -> ContextRow {
        ContextRow {
            category: row.category.clone(),
            tokens: row.tokens,
            share: rounded(row.share),
            freed_by: row.freed_by.map(str::to_owned),
            label: None,
            line: None,
            uuid: None,
        }
    }
}

impl From<&ContextItemRow> for ContextRow {
    fn from(row: &ContextItemRow) -> ContextRow {
        ContextRow {
            category: row.category.clone(),
            tokens: row.tokens,
            share: rounded(row.share),
            freed_by: None,
            label: Some(row.label.clone()),
            line: Some(row.line),
            uuid: Some(row.uuid.clone()),
        }
    }
}

fn rounded(share: f64) -> f64 {
    (share * 10_000.0).round() / 10_000.0
}
