//! Rows of `log`, `undo`, `rename` and `archive`.

use schemars::JsonSchema;
use serde::Serialize;

/// An amount before and after.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ChangeRow {
    /// Before.
    pub before: u64,
    /// After.
    pub after: u64,
}

/// Something that was done to sessions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LogRow {
    /// Its number, for `undo`.
    pub n: u64,
    /// When.
    pub at: String,
    /// The command.
    pub operation: String,
    /// What was asked, in words.
    pub words: String,
    /// The session it was done to, the first of them.
    pub source: Option<String>,
    /// All sessions it was done to.
    pub sources: Vec<String>,
    /// The session that came out of it; the source where it was edited in place.
    pub session: Option<String>,
    /// The transcript that was written.
    pub path: Option<String>,
    /// Options as they were typed.
    pub options: Vec<String>,
    /// Lines before and after, if known.
    pub lines: Option<ChangeRow>,
    /// Bytes before and after, if known.
    pub bytes: Option<ChangeRow>,
    /// Tokens before and after, if known.
    pub tokens: Option<ChangeRow>,
    /// The number of what it undoes.
    pub undoes: Option<u64>,
    /// Whether it was undone.
    pub undone: bool,
    /// The number of what undid it.
    pub undone_by: Option<u64>,
}

/// What undoing did, or would do.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct UndoRow {
    /// The number of the undoing, which can be undone in turn; null when nothing was done.
    pub n: Option<u64>,
    /// The number of what is undone.
    pub undoes: u64,
    /// What that was, in words.
    pub words: String,
    /// What is done, step by step.
    pub steps: Vec<String>,
    /// Why it cannot be done.
    pub refused: Vec<String>,
}

/// A session with a new title.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TitleRow {
    /// The number for `undo`; null when nothing was done.
    pub n: Option<u64>,
    /// Whether nothing was written because nobody asked for more.
    pub dry_run: bool,
    /// The session.
    pub session: String,
    /// Its file.
    pub path: String,
    /// The new title.
    pub title: String,
    /// The title it had.
    pub before: Option<String>,
}

/// A session with another tag, or without one.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TagRow {
    /// The number for `undo`; null when nothing was done.
    pub n: Option<u64>,
    /// Whether nothing was written because nobody asked for more.
    pub dry_run: bool,
    /// The session.
    pub session: String,
    /// Its file.
    pub path: String,
    /// The tag; null where it was taken off.
    pub tag: Option<String>,
    /// The tag it had.
    pub before: Option<String>,
}

/// A session that was deleted, or is in the trash.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeleteRow {
    /// The number for `undo`; null when nothing was done.
    pub n: Option<u64>,
    /// Whether nothing was removed because nobody asked for more.
    pub dry_run: bool,
    /// The session.
    pub session: String,
    /// Where its transcript was.
    pub path: String,
    /// Its title.
    pub title: Option<String>,
    /// When it was deleted.
    pub at: Option<String>,
    /// All files that went.
    pub files: Vec<String>,
    /// Their size together.
    pub bytes: u64,
    /// Whether it is gone from the trash as well.
    pub emptied: bool,
}

/// A session that was archived.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ArchiveRow {
    /// The archive.
    pub id: String,
    /// The session in it.
    pub session: String,
    /// The title of the session.
    pub title: Option<String>,
    /// When it was archived.
    pub at: String,
    /// Where the transcript was.
    pub path: String,
    /// The folder of the archive.
    pub archive: String,
    /// How many files it holds.
    pub files: usize,
    /// Bytes of the files.
    pub bytes: u64,
    /// Bytes of the archive.
    pub packed: u64,
    /// Whether the originals were removed.
    pub removed: bool,
    /// Whether nothing was written because nobody asked for more.
    pub dry_run: bool,
    /// The number for `undo`, where something can be undone.
    pub n: Option<u64>,
}

/// A session that is gone, as far as its prompts are remembered.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PurgedRow {
    /// The session.
    pub session: String,
    /// Its directory.
    pub project: Option<String>,
    /// The first prompt.
    pub first: Option<String>,
    /// The last prompt.
    pub last: Option<String>,
    /// Whether an archive holds it.
    pub archived: bool,
    /// What was typed, in order.
    pub prompts: Vec<PurgedPrompt>,
}

/// A prompt of a session that is gone.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PurgedPrompt {
    /// When.
    pub at: Option<String>,
    /// What was typed.
    pub text: String,
    /// What was pasted.
    pub pasted: Vec<String>,
}
