//! What an edit did, or would do.

use schemars::JsonSchema;
use serde::Serialize;

/// The result of `clone`, `repair`, `redact` and other edits.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct EditResult {
    /// The operation, such as `clone`.
    pub operation: String,
    /// The source session.
    pub source: String,
    /// All source sessions, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// The resulting session: a new one, or the source if it was edited in place.
    pub session: String,
    /// Its file.
    pub path: String,
    /// The command that resumes it.
    pub resume: String,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whether this was a dry run: nothing was written.
    pub dry_run: bool,
    /// The number for `undo`; absent if nothing was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<u64>,
    /// Lines of the transcript.
    pub lines: LineCounts,
    /// Bytes of the transcript.
    pub bytes: Amounts,
    /// Estimated tokens of the conversation.
    pub tokens: Amounts,
    /// Tool calls.
    pub calls: CallCounts,
    /// Blocks of thinking that were removed.
    pub thinking_removed: u64,
    /// Number of secrets replaced, in all files.
    pub redactions: u64,
    /// Number of side files copied.
    pub side_files: u64,
    /// Faults that were repaired.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mended: Vec<MendedRow>,
    /// What the model will no longer see.
    pub lost: Vec<LostRow>,
    /// Checks that ran before anything was written.
    pub checks: Vec<CheckRow>,
}

/// Lines of a transcript.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct LineCounts {
    /// Lines kept with the same content (their session id may have changed).
    pub kept: u64,
    /// Lines whose content was changed.
    pub changed: u64,
    /// Lines dropped.
    pub dropped: u64,
    /// Lines added.
    pub added: u64,
}

/// An amount before and after.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct Amounts {
    /// Before.
    pub before: u64,
    /// After.
    pub after: u64,
}

/// Tool calls.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct CallCounts {
    /// Calls removed with their results.
    pub removed: u64,
    /// Calls or results that were truncated.
    pub truncated: u64,
}

/// Something that the model will no longer see.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LostRow {
    /// Description.
    pub what: String,
    /// Estimated tokens.
    pub tokens: u64,
}

/// A check.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CheckRow {
    /// Name of the check.
    pub name: String,
    /// Whether it passed.
    pub ok: bool,
    /// Details of the result.
    pub detail: String,
}

/// A repaired fault.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MendedRow {
    /// Its line in the source.
    pub line: u32,
    /// Kind of fault.
    pub kind: String,
    /// How it was repaired, and why.
    pub what: String,
}

/// A session that was or would be moved to another directory.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct MoveRow {
    /// The session.
    pub session: String,
    /// The directory it was started in.
    pub from: String,
    /// Its new directory.
    pub to: String,
    /// Its new file.
    pub path: String,
    /// Its lines, including sub-agents: `changed` are those whose directory changed.
    pub lines: LineCounts,
    /// Number of side files moved.
    pub side_files: u64,
    /// Whether this was a dry run: nothing was written.
    pub dry_run: bool,
    /// The number for `undo`; absent if nothing was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<u64>,
}
