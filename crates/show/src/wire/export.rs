//! What `export` wrote.

use schemars::JsonSchema;
use serde::Serialize;

/// A file that was written.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExportRow {
    /// The session; `index` for the index of a folder.
    pub session: String,
    /// The file.
    pub path: String,
    /// Its format.
    pub format: String,
    /// Its size.
    pub bytes: u64,
}
