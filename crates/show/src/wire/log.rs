//! Rows of `log`, `undo`, `rename` and `archive`.

use schemars::JsonSchema;
use serde::Serialize;

/// An amount before and after.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct AmountChangeRow {
    /// Before.
    pub before: u64,
    /// After.
    pub after: u64,
}

/// An edit made to sessions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LogRow {
    /// Its number, for `undo`.
    pub n: u64,
    /// When.
    pub at: String,
    /// The command.
    pub operation: String,
    /// Description of the edit.
    pub words: String,
    /// The (first) source session.
    pub source: Option<String>,
    /// All source sessions.
    pub sources: Vec<String>,
    /// The resulting session; the source if it was edited in place.
    pub session: Option<String>,
    /// The transcript that was written.
    pub path: Option<String>,
    /// Options as they were typed.
    pub options: Vec<String>,
    /// Lines before and after, if known.
    pub lines: Option<AmountChangeRow>,
    /// Bytes before and after, if known.
    pub bytes: Option<AmountChangeRow>,
    /// Tokens before and after, if known.
    pub tokens: Option<AmountChangeRow>,
    /// The number of the edit that it undoes.
    pub undoes: Option<u64>,
    /// Whether it was undone.
    pub undone: bool,
    /// The number of the edit that undid it.
    pub undone_by: Option<u64>,
}

/// The result of an undo, or its dry run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct UndoRow {
    /// The number of this undo, which can itself be undone; null in a dry run.
    pub n: Option<u64>,
    /// The number of the edit that is undone.
    pub undoes: u64,
    /// Description of that edit.
    pub words: String,
    /// The steps of the undo.
    pub steps: Vec<String>,
    /// Why it is refused.
    pub refused: Vec<String>,
}

/// A session with a new title.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TitleRow {
    /// The number for `undo`; null when nothing was done.
    pub n: Option<u64>,
    /// Whether this was a dry run: nothing was written.
    pub dry_run: bool,
    /// The session.
    pub session: String,
    /// Its file.
    pub path: String,
    /// The new title.
    pub title: String,
    /// The previous title.
    pub before: Option<String>,
}

/// A session whose tag was set or removed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TagRow {
    /// The number for `undo`; null when nothing was done.
    pub n: Option<u64>,
    /// Whether this was a dry run: nothing was written.
    pub dry_run: bool,
    /// The session.
    pub session: String,
    /// Its file.
    pub path: String,
    /// The tag; null if it was removed.
    pub tag: Option<String>,
    /// The previous tag.
    pub before: Option<String>,
}

/// A session that was deleted, or is in the trash.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeleteRow {
    /// The number for `undo`; null when nothing was done.
    pub n: Option<u64>,
    /// Whether this was a dry run: nothing was deleted.
    pub dry_run: bool,
    /// The session.
    pub session: String,
    /// Where its transcript was.
    pub path: String,
    /// Its title.
    pub title: Option<String>,
    /// When it was deleted.
    pub at: Option<String>,
    /// All deleted files.
    pub files: Vec<String>,
    /// Their total size.
    pub bytes: u64,
    /// Whether it was also removed from the trash.
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
    /// Number of files.
    pub files: usize,
    /// Bytes of the files.
    pub bytes: u64,
    /// Bytes of the archive.
    pub packed: u64,
    /// Whether the originals were removed.
    pub removed: bool,
    /// Whether this was a dry run: nothing was written.
    pub dry_run: bool,
    /// The number for `undo`, where something can be undone.
    pub n: Option<u64>,
}

/// A deleted session, as known from the prompt history.
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
    /// Whether it is in an archive.
    pub archived: bool,
    /// What was typed, in order.
    pub prompts: Vec<PurgedPrompt>,
}

/// A prompt of a deleted session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PurgedPrompt {
    /// When.
    pub at: Option<String>,
    /// What was typed.
    pub text: String,
    /// What was pasted.
    pub pasted: Vec<String>,
}
