//! Why a cache could not be used. None of it is a reason to stop: the transcripts are there.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Why a cache could not be used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// Its folder or file cannot be made or written.
    #[error("cannot write the cache `{}`: {source}", path.display())]
    Place {
        /// The folder or file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process holds it for longer than we want to wait.
    #[error("the cache `{}` is in use", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// Its bytes make no sense.
    #[error("the cache `{}` is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// Anything else.
    #[error("cannot use the cache `{}`: {source}", path.display())]
    Sql {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}

impl CacheError {
    /// What SQLite's error means for this file.
    pub fn sql(path: &Path, source: rusqlite::Error) -> CacheError {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => CacheError::Busy { path },
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                CacheError::Damaged { path }
            }
            Some(ErrorCode::DiskFull) => CacheError::Place {
                path,
                source: io::ErrorKind::StorageFull.into(),
            },
            Some(ErrorCode::ReadOnly) => CacheError::Place {
                path,
                source: io::ErrorKind::ReadOnlyFilesystem.into(),
            },
            _ => CacheError::Sql { path, source },
        }
    }

    pub(crate) fn place(path: &Path, source: io::Error) -> CacheError {
        CacheError::Place {
            path: path.into(),
            source,
        }
    }

    /// Whether somebody else was in the way, which is nothing to tell about.
    pub fn is_busy(&self) -> bool {
        matches!(self, CacheError::Busy { .. })
    }

    /// Whether the file was not there to be opened, though it was a moment ago.
    pub fn is_gone(&self) -> bool {
        match self {
            CacheError::Sql { source, path } => {
                let code = source.sqlite_error_code();
                code == Some(rusqlite::ErrorCode::CannotOpen)
                    && path.parent().is_some_and(std::path::Path::is_dir)
            }
            _ => false,
        }
    }

    /// Whether the file is to be set aside: see [`crate::db::renew`].
    pub fn is_damaged(&self) -> bool {
        matches!(self, CacheError::Damaged { .. })
    }
}
