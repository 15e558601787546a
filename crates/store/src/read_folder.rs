//! What stands in a folder.
//!
//! Like [`std::fs::read_dir`], which ends the program where the system fails to close the folder,
//! as a disk behind a network may. That is no reason to end: everything was read by then.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Something in a folder.
#[derive(Debug)]
pub struct FolderEntry {
    folder: Arc<Path>,
    name: OsString,
    kind: FolderEntryKind,
}

/// What something in a folder is; a link is a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderEntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A pipe, a socket or a device.
    Other,
    /// The disk does not say before it is asked about the entry alone.
    Unknown,
}

impl FolderEntryKind {
    fn of(metadata: &Metadata) -> FolderEntryKind {
        match () {
            () if metadata.is_file() => FolderEntryKind::File,
            () if metadata.is_dir() => FolderEntryKind::Folder,
            () if metadata.is_symlink() => FolderEntryKind::Link,
            () => FolderEntryKind::Other,
        }
    }

    /// Whether it is a regular file.
    pub fn is_file(self) -> bool {
        self == FolderEntryKind::File
    }

    /// Whether it is a folder.
    pub fn is_dir(self) -> bool {
        self == FolderEntryKind::Folder
    }

    /// Whether it is a symbolic link.
    pub fn is_symlink(self) -> bool {
        self == FolderEntryKind::Link
    }
}

impl FolderEntry {
    /// Its name.
    pub fn file_name(&self) -> OsString {
        self.name.clone()
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// What it is.
    pub fn file_type(&self) -> io::Result<FolderEntryKind> {
        match self.kind {
            FolderEntryKind::Unknown => Ok(FolderEntryKind::of(&self.metadata()?)),
            kind => Ok(kind),
        }
    }

    /// What the system says about it; a link is a link.
    pub fn metadata(&self) -> io::Result<Metadata> {
        fs::symlink_metadata(self.path())
    }
}

/// What stands in a folder, one after the other.
pub fn entries(folder: impl AsRef<Path>) -> io::Result<FolderEntries> {
    let folder = folder.as_ref();
    Ok(FolderEntries {
        dir: system::open(folder)?,
        folder: folder.into(),
    })
}

/// See [`entries`].
pub struct FolderEntries {
    dir: system::Dir,
    folder: Arc<Path>,
}

impl Iterator for FolderEntries {
    type Item = io::Result<FolderEntry>;

    fn next(&mut self) -> Option<io::Result<FolderEntry>> {
        let next = system::next(&mut self.dir)?;
        Some(next.map(|(name, kind)| FolderEntry {
            folder: Arc::clone(&self.folder),
            name,
            kind,
        }))
    }
}

/// Removes a folder with all that is in it. Links are removed, not followed.
pub fn remove_all(folder: &Path) -> io::Result<()> {
    for entry in entries(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => remove_all(&entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    fs::remove_dir(folder)
}

#[cfg(unix)]
mod system {
    use std::ffi::{OsStr, OsString};
    use std::io;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    pub use rustix::fs::Dir;
    use rustix::fs::{FileType, Mode, OFlags};

    use super::FolderEntryKind;

    pub fn open(folder: &Path) -> io::Result<Dir> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        loop {
            match rustix::fs::open(folder, flags, Mode::empty()) {
                Err(rustix::io::Errno::INTR) => {}
                opened => return Ok(Dir::new(opened?)?),
            }
        }
    }

    pub fn next(dir: &mut Dir) -> Option<io::Result<(OsString, FolderEntryKind)>> {
        loop {
            let entry = match dir.read()? {
                Ok(entry) => entry,
                Err(error) => return Some(Err(error.into())),
            };
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                let kind = match entry.file_type() {
                    FileType::RegularFile => FolderEntryKind::File,
                    FileType::Directory => FolderEntryKind::Folder,
                    FileType::Symlink => FolderEntryKind::Link,
                    FileType::Unknown => FolderEntryKind::Unknown,
                    _ => FolderEntryKind::Other,
                };
                return Some(Ok((name.to_owned(), kind)));
            }
        }
    }
}

#[cfg(not(unix))]
mod system {
    use std::ffi::OsString;
    use std::fs;
    use std::io;
    use std::path::Path;

    use super::FolderEntryKind;

    pub type Dir = fs::ReadDir;

    pub fn open(folder: &Path) -> io::Result<Dir> {
        fs::read_dir(folder)
    }

    pub fn next(dir: &mut Dir) -> Option<io::Result<(OsString, FolderEntryKind)>> {
        let entry = dir.next()?;
        Some(entry.map(|entry| (entry.file_name(), FolderEntryKind::Unknown)))
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn everything_in_a_folder_is_named_once_with_what_it_is() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        fs::create_dir(dir.path().join("folder")).unwrap();
        symlink("folder", dir.path().join("link")).unwrap();
        let mut all: Vec<_> = entries(dir.path())
            .unwrap()
            .map(|entry| entry.map(|entry| (entry.file_name(), entry.file_type().unwrap())))
            .collect::<io::Result<_>>()
            .unwrap();
        all.sort_by(|one, other| one.0.cmp(&other.0));
        assert_eq!(
            all,
            [
                ("file".into(), FolderEntryKind::File),
                ("folder".into(), FolderEntryKind::Folder),
                ("link".into(), FolderEntryKind::Link),
            ]
        );
        let missing = entries(dir.path().join("none")).err().unwrap();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert!(entries(dir.path().join("file")).is_err());
    }

    #[test]
    fn a_folder_goes_with_all_in_it_and_what_links_lead_to_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (outside, folder) = (dir.path().join("outside"), dir.path().join("folder"));
        fs::create_dir_all(folder.join("deep")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "").unwrap();
        fs::write(folder.join("deep/file"), "").unwrap();
        symlink(&outside, folder.join("link")).unwrap();
        remove_all(&folder).unwrap();
        assert!(!folder.exists() && outside.join("kept").exists());
    }
}
