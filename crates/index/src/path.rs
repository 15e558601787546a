//! Paths as bytes, exactly: a name need not be text.

use std::path::{Path, PathBuf};

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
