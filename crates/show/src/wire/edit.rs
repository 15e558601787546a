//! What an edit did, or would do.

use schemars::JsonSchema;
use serde::Serialize;

/// The result of `clone`, `repair`, `redact` and their like.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct EditResult {
    /// What was done, such as `clone`.
    pub operation: String,
    /// The session it was done to.
    pub source: String,
    /// All of them, where there were several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// The session that came out: a new one, or the same if it was edited in place.
    pub session: String,
    /// Its file.
    pub path: String,
    /// The command that goes on with it.
    pub resume: String,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whether nothing was written because nobody asked for more.
    pub dry_run: bool,
    /// The number to undo it by; absent if nothing was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<u64>,
    /// Lines of the transcript.
    pub lines: LineCounts,
    /// Bytes of the transcript.
    pub bytes: Amounts,
    /// About how many tokens the conversation takes.
    pub tokens: Amounts,
    /// Tool calls.
    pub calls: CallCounts,
    /// Blocks of thinking that went.
    pub thinking_removed: u64,
    /// Secrets that were replaced, in all files.
    pub redactions: u64,
    /// Files beside the transcript that were carried along.
    pub side_files: u64,
    /// What was mended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mended: Vec<MendedRow>,
    /// What the model will no longer see.
    pub lost: Vec<LostRow>,
    /// What was looked at before anything was written.
    pub checks: Vec<CheckRow>,
}

/// Lines of a transcript.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct LineCounts {
    /// Lines that say what they said; they may belong to another session now.
    pub kept: u64,
    /// Lines in which something else was changed.
    pub changed: u64,
    /// Lines that went.
    pub dropped: u64,
    /// Lines that were added.
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
    /// Calls that went with their results.
    pub removed: u64,
    /// Calls that were cut short, or their results.
    pub truncated: u64,
}

/// Something that the model will no longer see.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LostRow {
    /// What, in words.
    pub what: String,
    /// About how many tokens that is.
    pub tokens: u64,
}

/// Something that was looked at.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CheckRow {
    /// What, in a word.
    pub name: String,
    /// Whether it is as it should be.
    pub ok: bool,
    /// What was found.
    pub detail: String,
}

/// Something that was broken.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MendedRow {
    /// The line it stood in, before.
    pub line: u32,
    /// What was broken, in a word.
    pub kind: String,
    /// What was done about it, and why.
    pub what: String,
}

/// A session that moved to another directory, or would.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct MoveRow {
    /// The session.
    pub session: String,
    /// The directory it was started in.
    pub from: String,
    /// The directory it goes on in.
    pub to: String,
    /// Its new file.
    pub path: String,
    /// Its lines, sub-agents' too: `changed` are those that name another directory now.
    pub lines: LineCounts,
    /// Files beside the transcript that moved along.
    pub side_files: u64,
    /// Whether nothing was written because nobody asked for more.
    pub dry_run: bool,
    /// The number to undo it by; absent if nothing was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<u64>,
}
