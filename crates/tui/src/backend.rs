//! What the browser needs done by those who know how: searching, copying, writing documents.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use unspool_show::wire::edit::EditResult;
use unspool_show::wire::hit::HitRow;

/// Does what commands do. Called on threads of their own.
pub trait BrowserBackend: Send + Sync + 'static {
    /// Finds text in everything, newest sessions first, until `each` has enough.
    fn search(
        &self,
        query: &str,
        each: &mut dyn FnMut(HitRow) -> ControlFlow<()>,
    ) -> Result<(), String>;

    /// Makes a copy of a session, or says what it would be.
    fn trim(&self, path: &Path, preset: Option<&str>, dry_run: bool) -> Result<EditResult, String>;

    /// Writes a document of a session; where it is.
    fn export(&self, path: &Path, format: &str) -> Result<PathBuf, String>;
}
