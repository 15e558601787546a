//! Paths as bytes, exactly: a name need not be text. A path that holds a token is not kept: a
//! path that stands for it is.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use unspool_model::secrets::SecretFinder;

/// The path that a path is kept under: itself, or one without the tokens in its names that is
/// still different from all others.
pub fn path_without_tokens(path: &Path) -> Cow<'_, Path> {
    let text = path.to_string_lossy();
    match SecretFinder::forms().mask(&text) {
        Cow::Borrowed(_) => Cow::Borrowed(path),
        Cow::Owned(masked) => {
            let mut hasher = DefaultHasher::new();
            path.hash(&mut hasher);
            Cow::Owned(format!("{masked}#{:016x}", hasher.finish()).into())
        }
    }
}

/// The bytes of a path; `None` where a name can neither be text nor bytes.
#[cfg(unix)]
pub fn bytes(path: &Path) -> Option<&[u8]> {
    Some(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()))
}

/// The path of some bytes.
#[cfg(unix)]
pub fn from_bytes(bytes: &[u8]) -> Option<PathBuf> {
    let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(bytes);
    Some(name.into())
}

/// The bytes of a path; `None` where a name can neither be text nor bytes.
#[cfg(not(unix))]
pub fn bytes(path: &Path) -> Option<&[u8]> {
    path.to_str().map(str::as_bytes)
}

/// The path of some bytes.
#[cfg(not(unix))]
pub fn from_bytes(bytes: &[u8]) -> Option<PathBuf> {
    std::str::from_utf8(bytes).ok().map(PathBuf::from)
}
