//! Folders and calls as Unix has them.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, Dir, FileType, Gid, Mode, OFlags, RenameFlags, Stat, Uid};
use rustix::io::Errno;

use crate::disk::{DiskCall, DiskMetadata, FileKind, call};
use crate::open::FileStamp;

/// A folder that is held open.
#[derive(Debug)]
pub(crate) struct OpenFolder {
    handle: OwnedFd,
    path: PathBuf,
}

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);
const FILE: OFlags = OFlags::NOFOLLOW
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK);

impl OpenFolder {
    /// Opens a folder by its path; links on the way are followed this once.
    pub fn open(path: &Path) -> io::Result<OpenFolder> {
        let handle = call(DiskCall::Open, || fs::open(path, FOLDER, Mode::empty()))?;
        Ok(OpenFolder {
            handle,
            path: path.into(),
        })
    }

    /// The same folder once more, by its handle and not by its path.
    pub fn again(&self) -> io::Result<OpenFolder> {
        Ok(OpenFolder {
            handle: self.handle.try_clone()?,
            path: self.path.clone(),
        })
    }

    /// Where it was when it was opened: for messages only.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder below with this name, not through a link.
    pub fn below(&self, name: &OsStr) -> io::Result<OpenFolder> {
        let flags = FOLDER | OFlags::NOFOLLOW;
        let handle = call(DiskCall::Open, || {
            fs::openat(&self.handle, name, flags, Mode::empty())
        })?;
        Ok(OpenFolder {
            handle,
            path: self.path.join(name),
        })
    }

    /// Makes a folder for nobody else.
    pub fn make(&self, name: &OsStr) -> io::Result<()> {
        call(DiskCall::Make, || {
            fs::mkdirat(&self.handle, name, Mode::RWXU)
        })
    }

    /// A new file for nobody else to read.
    pub fn create(&self, name: &OsStr) -> io::Result<File> {
        let flags = FILE | OFlags::CREATE | OFlags::EXCL | OFlags::RDWR;
        let mode = Mode::RUSR | Mode::WUSR;
        call(DiskCall::Open, || {
            fs::openat(&self.handle, name, flags, mode).map(File::from)
        })
    }

    /// A file that is there, to read.
    pub fn read(&self, name: &OsStr) -> io::Result<File> {
        self.existing(name, OFlags::RDONLY)
    }

    /// A file that is there, to add to its end.
    pub fn append(&self, name: &OsStr) -> io::Result<File> {
        self.existing(name, OFlags::RDWR | OFlags::APPEND)
    }

    /// A file that is there, to change.
    pub fn change(&self, name: &OsStr) -> io::Result<File> {
        self.existing(name, OFlags::RDWR)
    }

    fn existing(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        call(DiskCall::Open, || {
            fs::openat(&self.handle, name, FILE | flags, Mode::empty()).map(File::from)
        })
    }

    /// What stands under a name; a link is a link.
    pub fn look(&self, name: &OsStr) -> io::Result<Option<DiskMetadata>> {
        let stat = call(DiskCall::Look, || {
            fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW)
        });
        match stat {
            Ok(stat) => Ok(Some(look(&stat))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives a file another name in place of whatever has it.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        call(DiskCall::Rename, || {
            fs::renameat(&self.handle, from, &self.handle, to)
        })
    }

    /// Gives a file or folder another name that must be free.
    pub fn rename_new(&self, from: &OsStr, folder: &OpenFolder, to: &OsStr) -> io::Result<()> {
        let renamed = call(DiskCall::Rename, || {
            fs::renameat_with(
                &self.handle,
                from,
                &folder.handle,
                to,
                RenameFlags::NOREPLACE,
            )
        });
        match renamed {
            Err(error) if is_unknown(&error) => self.link_and_remove(from, folder, to),
            other => other,
        }
    }

    /// For file systems that cannot rename without replacing: a link cannot replace either.
    fn link_and_remove(&self, from: &OsStr, folder: &OpenFolder, to: &OsStr) -> io::Result<()> {
        if self
            .look(from)?
            .is_some_and(|look| look.kind == FileKind::Folder)
        {
            // Folders have no links; an empty one in the way is all that could be replaced.
            return match folder.look(to)? {
                Some(_) => Err(io::ErrorKind::AlreadyExists.into()),
                None => call(DiskCall::Rename, || {
                    fs::renameat(&self.handle, from, &folder.handle, to)
                }),
            };
        }
        call(DiskCall::Link, || {
            fs::linkat(&self.handle, from, &folder.handle, to, AtFlags::empty())
        })?;
        self.remove(from)
    }

    /// Removes a file.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        call(DiskCall::Remove, || {
            fs::unlinkat(&self.handle, name, AtFlags::empty())
        })
    }

    /// Removes a folder that is empty.
    pub fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        call(DiskCall::Remove, || {
            fs::unlinkat(&self.handle, name, AtFlags::REMOVEDIR)
        })
    }

    /// Waits until the names in it are on disk. Some file systems cannot, and need not.
    pub fn sync(&self) -> io::Result<()> {
        let synced = call(DiskCall::Sync, || fs::fsync(&self.handle));
        match synced {
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => Ok(()),
            other => other,
        }
    }

    /// The names in it.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in call(DiskCall::Open, || Dir::read_from(&self.handle))? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Why we do not write here, if others may exchange what we write.
    pub fn distrust(&self) -> io::Result<Option<&'static str>> {
        let stat = call(DiskCall::Look, || fs::fstat(&self.handle))?;
        Ok(suspect(&stat, rustix::process::geteuid()))
    }
}

fn suspect(stat: &Stat, me: Uid) -> Option<&'static str> {
    let mode = Mode::from_raw_mode(stat.st_mode);
    let sticky = mode.contains(Mode::SVTX);
    let ours = stat.st_uid == me.as_raw();
    // Where everybody may write but nobody may take away, as in `/tmp`.
    let shared = stat.st_uid == 0 && sticky;
    // A group that has the number of its user is that user alone, on systems where new folders
    // are open to it.
    let group_is_me = stat.st_gid == stat.st_uid;
    if !ours && !shared {
        return Some("belongs to another user");
    }
    if sticky {
        return None;
    }
    if mode.contains(Mode::WOTH) {
        return Some("is world-writable");
    }
    (mode.contains(Mode::WGRP) && !group_is_me).then_some("is group-writable")
}

/// What file systems say that do not know how to rename without replacing.
fn is_unknown(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    [Errno::INVAL, Errno::NOSYS, Errno::NOTSUP]
        .iter()
        .any(|errno| code == Some(errno.raw_os_error()))
}

// The types of these numbers differ between systems.
#[allow(clippy::unnecessary_cast)]
fn look(stat: &Stat) -> DiskMetadata {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Folder,
        FileType::Symlink => FileKind::Link,
        _ => FileKind::Else,
    };
    let seconds = stat.st_mtime as i64;
    let modified = seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(stat.st_mtime_nsec as i64);
    DiskMetadata {
        kind,
        stamp: FileStamp {
            identity: (stat.st_dev as u64).rotate_left(40) ^ stat.st_ino as u64,
            size: stat.st_size as u64,
            modified,
        },
        mode: stat.st_mode as u32 & 0o7777,
    }
}

/// Gives a new file the owner, extended attributes and permissions of another, as far as the
/// system lets us; only permissions must be right.
pub(crate) fn copy_file_attributes(new: &File, like: &File) -> io::Result<()> {
    let (old, made) = (fs::fstat(like)?, fs::fstat(new)?);
    if (old.st_uid, old.st_gid) != (made.st_uid, made.st_gid) {
        let owner = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
        // Only the administrator may give files away.
        let _ = call(DiskCall::Dress, || {
            fs::fchown(new, Some(owner.0), Some(owner.1))
        });
    }
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    attributes(new, like);
    let mode = Mode::from_raw_mode(old.st_mode) & Mode::from_raw_mode(0o7777);
    call(DiskCall::Dress, || fs::fchmod(new, mode))
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn attributes(new: &File, like: &File) {
    let mut names = vec![0_u8; 64 << 10];
    let Ok(length) = fs::flistxattr(like, names.as_mut_slice()) else {
        return;
    };
    for name in names[..length].split(|byte| *byte == 0) {
        let mut value = vec![0_u8; 64 << 10];
        let name = OsStr::from_bytes(name);
        if name.is_empty() {
            continue;
        }
        if let Ok(length) = fs::fgetxattr(like, name, value.as_mut_slice()) {
            // Some belong to the system and cannot be set.
            let _ = fs::fsetxattr(new, name, &value[..length], fs::XattrFlags::empty());
        }
    }
}
