//! What can stop us, and what only deserves a remark.
//!
//! A [`StoreError`] ends what was asked; a [`FileWarning`] is about one file among many and goes to
//! stderr while the others are read. What is wrong inside a file is neither: it is a fault
//! of the session.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A folder that was named is not there.
    #[error("no such directory: `{}`", path.display())]
    MissingDir {
        /// The folder.
        path: PathBuf,
    },
    /// A file that was named is not there.
    #[error("no such file: `{}`", path.display())]
    MissingFile {
        /// The file.
        path: PathBuf,
    },
    /// We may not read it.
    #[error("no permission to read `{}`", path.display())]
    Denied {
        /// The file or folder.
        path: PathBuf,
    },
    /// It has the name of a transcript but is something else.
    #[error("`{}` is {what}, not a file", path.display())]
    NotAFile {
        /// What was named.
        path: PathBuf,
        /// What it is, with its article.
        what: &'static str,
    },
    /// The system failed.
    #[error("cannot read `{}`: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system failed while something was written.
    #[error("cannot {doing} `{}`: {}", path.display(), IoErrorText(source))]
    Unwritable {
        /// What was tried, as a verb.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// We do not write there, or not now, for a reason of our own.
    #[error("{what}")]
    Refused {
        /// The whole sentence, with the file.
        what: String,
        /// What to do next.
        hint: &'static str,
    },
    /// No session is meant by this.
    #[error("{what}")]
    NotFound {
        /// The whole sentence.
        what: String,
    },
    /// Several sessions are meant by this.
    #[error("`{argument}` is ambiguous: it matches {} sessions{}", candidates.len(), CandidateList(candidates))]
    Ambiguous {
        /// What was asked for.
        argument: String,
        /// The sessions, newest first.
        candidates: Vec<SessionCandidate>,
    },
}

impl StoreError {
    /// What the system's error means for this path.
    pub fn io(path: &Path, source: io::Error) -> StoreError {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => StoreError::MissingFile { path },
            io::ErrorKind::PermissionDenied => StoreError::Denied { path },
            _ => StoreError::Io { path, source },
        }
    }

    /// What the system's error means for a file that was to be written.
    pub fn unwritable(doing: &'static str, path: &Path, source: io::Error) -> StoreError {
        StoreError::Unwritable {
            doing,
            path: path.into(),
            source,
        }
    }

    /// A refusal of our own.
    pub fn refused(what: impl Into<String>, hint: &'static str) -> StoreError {
        StoreError::Refused {
            what: what.into(),
            hint,
        }
    }

    /// The same as a remark about one file among many.
    pub fn warning(&self, path: &Path) -> FileWarning {
        let why = match self {
            StoreError::MissingDir { .. } | StoreError::MissingFile { .. } => {
                "no longer exists".to_owned()
            }
            StoreError::Denied { .. } => "no permission to read it".to_owned(),
            StoreError::NotAFile { what, .. } => format!("{what}, not a file"),
            StoreError::Io { source, .. } => source.to_string(),
            StoreError::Unwritable { .. }
            | StoreError::Refused { .. }
            | StoreError::NotFound { .. }
            | StoreError::Ambiguous { .. } => self.to_string(),
        };
        FileWarning {
            path: path.into(),
            why,
        }
    }

    /// Whether there simply is no such session, as opposed to something that failed.
    pub fn is_not_found(&self) -> bool {
        matches!(self, StoreError::NotFound { .. })
    }

    /// What to do next, if there is something to do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            StoreError::MissingDir { .. } => {
                Some("use the directory that contains `projects`, usually `~/.claude`")
            }
            StoreError::Denied { .. } => Some("check its owner and permissions"),
            StoreError::NotFound { .. } | StoreError::MissingFile { .. } => {
                Some("list sessions with `unspool ls`")
            }
            StoreError::Ambiguous { candidates, .. } if repeats(candidates) => {
                Some("use the path of the transcript")
            }
            StoreError::Ambiguous { .. } => Some("use more characters of the id"),
            StoreError::NotAFile { .. } => {
                Some("use a `.jsonl` file, or the start of a session id")
            }
            StoreError::Unwritable { source, .. } => what_next(source),
            StoreError::Refused { hint, .. } => Some(hint),
            StoreError::Io { .. } => None,
        }
    }
}

/// What helps against an error of the system.
fn what_next(source: &io::Error) -> Option<&'static str> {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some("free disk space, then retry")
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            Some("remount the file system read-write, or use another directory")
        }
        io::ErrorKind::PermissionDenied => Some("check the owner and permissions of the directory"),
        io::ErrorKind::CrossesDevices => Some("both paths must be on the same file system"),
        io::ErrorKind::AlreadyExists => Some("move or remove the existing file first"),
        io::ErrorKind::NotFound => Some("it was removed in the meantime: retry"),
        _ => None,
    }
}

/// What the system said, in words where it has a number for it.
struct IoErrorText<'a>(&'a io::Error);

impl fmt::Display for IoErrorText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self.0.kind() {
            io::ErrorKind::StorageFull => "no space left on the disk",
            io::ErrorKind::QuotaExceeded => "disk quota exceeded",
            io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only",
            io::ErrorKind::PermissionDenied => "permission denied",
            io::ErrorKind::AlreadyExists => "it already exists",
            io::ErrorKind::NotFound => "it does not exist",
            _ => return write!(f, "{}", self.0),
        };
        f.write_str(words)
    }
}

/// A session that an ambiguous argument may mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionCandidate {
    /// Its id.
    pub id: String,
    /// Its title or first prompt, as far as the start of the file tells.
    pub title: Option<String>,
    /// When its file was last written, in milliseconds since 1970.
    pub modified: i64,
    /// Its file.
    pub path: PathBuf,
}

/// Candidates below each other, each on a line.
struct CandidateList<'a>(&'a [SessionCandidate]);

/// Whether an id stands among them twice, as with a copy in another config folder.
fn repeats(candidates: &[SessionCandidate]) -> bool {
    let ids: HashSet<_> = candidates.iter().map(|candidate| &candidate.id).collect();
    ids.len() < candidates.len()
}

/// So many candidates help; more do not.
const LISTED: usize = 10;

impl fmt::Display for CandidateList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for candidate in self.0.iter().take(LISTED) {
            let title = candidate.title.as_deref().unwrap_or_default();
            let line = title.lines().next().unwrap_or_default();
            let short: String = line.chars().take(60).collect();
            write!(f, "\n  {}  {short}", candidate.id)?;
            if repeats(self.0) {
                write!(f, "  ({})", candidate.path.display())?;
            }
        }
        match self.0.len().saturating_sub(LISTED) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

/// A file or folder that was passed over, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileWarning {
    /// Which one.
    pub path: PathBuf,
    /// Why, in a few words.
    pub why: String,
}

impl fmt::Display for FileWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "skipped `{}`: {}", self.path.display(), self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ambiguous_argument_lists_its_candidates() {
        let candidate = |id: &str| SessionCandidate {
            id: id.into(),
            title: Some("fix it\nnow".into()),
            modified: 0,
            path: PathBuf::new(),
        };
        let error = StoreError::Ambiguous {
            argument: "ab".into(),
            candidates: vec![candidate("ab1"), candidate("ab2")],
        };
        assert_eq!(
            error.to_string(),
            "`ab` is ambiguous: it matches 2 sessions\n  ab1  fix it\n  ab2  fix it"
        );
        assert_eq!(error.hint(), Some("use more characters of the id"));
        let twice = StoreError::Ambiguous {
            argument: "ab1".into(),
            candidates: vec![candidate("ab1"), candidate("ab1")],
        };
        assert_eq!(twice.hint(), Some("use the path of the transcript"));
    }
}
