//! Folders and calls where the system has no handles of folders: by paths, as careful as they
//! allow. Folders cannot be synced there, and the system guards who may write.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{DiskCall, DiskMetadata, FileKind, call};
use crate::open::FileStamp;

/// A folder, by its path.
#[derive(Debug)]
pub(crate) struct OpenFolder {
    path: PathBuf,
}

impl OpenFolder {
    /// A folder that is there.
    pub fn open(path: &Path) -> io::Result<OpenFolder> {
        call(DiskCall::Open, || fs::read_dir(path).map(drop))?;
        Ok(OpenFolder { path: path.into() })
    }

    /// The same folder once more.
    pub fn again(&self) -> io::Result<OpenFolder> {
        Ok(OpenFolder {
            path: self.path.clone(),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder below with this name, not through a link.
    pub fn below(&self, name: &OsStr) -> io::Result<OpenFolder> {
        match self.look(name)?.map(|look| look.kind) {
            Some(FileKind::Folder) => OpenFolder::open(&self.path.join(name)),
            Some(_) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Makes a folder.
    pub fn make(&self, name: &OsStr) -> io::Result<()> {
        call(DiskCall::Make, || fs::create_dir(self.path.join(name)))
    }

    /// A new file.
    pub fn create(&self, name: &OsStr) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        call(DiskCall::Open, || options.open(self.path.join(name)))
    }

    /// A file that is there, to read.
    pub fn read(&self, name: &OsStr) -> io::Result<File> {
        self.existing(name, OpenOptions::new().read(true))
    }

    /// A file that is there, to add to its end.
    pub fn append(&self, name: &OsStr) -> io::Result<File> {
        self.existing(name, OpenOptions::new().read(true).append(true))
    }

    /// A file that is there, to change.
    pub fn change(&self, name: &OsStr) -> io::Result<File> {
        self.existing(name, OpenOptions::new().read(true).write(true))
    }

    fn existing(&self, name: &OsStr, options: &OpenOptions) -> io::Result<File> {
        match self.look(name)?.map(|look| look.kind) {
            Some(FileKind::File) => call(DiskCall::Open, || options.open(self.path.join(name))),
            Some(_) => Err(io::Error::other("not a file")),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// What stands under a name; a link is a link.
    pub fn look(&self, name: &OsStr) -> io::Result<Option<DiskMetadata>> {
        let metadata = call(DiskCall::Look, || {
            fs::symlink_metadata(self.path.join(name))
        });
        let metadata = match metadata {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let kind = metadata.file_type();
        Ok(Some(DiskMetadata {
            kind: if kind.is_symlink() {
                FileKind::Link
            } else if kind.is_dir() {
                FileKind::Folder
            } else if kind.is_file() {
                FileKind::File
            } else {
                FileKind::Else
            },
            stamp: FileStamp::of(&metadata),
            mode: 0,
        }))
    }

    /// Gives a file another name in place of whatever has it.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        call(DiskCall::Rename, || {
            fs::rename(self.path.join(from), self.path.join(to))
        })
    }

    /// Gives a file or folder another name that must be free.
    pub fn rename_new(&self, from: &OsStr, folder: &OpenFolder, to: &OsStr) -> io::Result<()> {
        let (from, to) = (self.path.join(from), folder.path.join(to));
        if fs::symlink_metadata(&to).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if fs::symlink_metadata(&from)?.is_file() {
            // A link cannot replace anything.
            call(DiskCall::Link, || fs::hard_link(&from, &to))?;
            return call(DiskCall::Remove, || fs::remove_file(&from));
        }
        call(DiskCall::Rename, || fs::rename(&from, &to))
    }

    /// Removes a file.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        call(DiskCall::Remove, || fs::remove_file(self.path.join(name)))
    }

    /// Removes a folder that is empty.
    pub fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        call(DiskCall::Remove, || fs::remove_dir(self.path.join(name)))
    }

    /// Folders cannot be waited for here.
    pub fn sync(&self) -> io::Result<()> {
        call(DiskCall::Sync, || io::Result::Ok(()))
    }

    /// The names in it.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let entries = call(DiskCall::Open, || fs::read_dir(&self.path))?;
        entries.map(|entry| Ok(entry?.file_name())).collect()
    }

    /// Who may write is up to the system here.
    pub fn distrust(&self) -> io::Result<Option<&'static str>> {
        Ok(None)
    }
}

/// Permissions come from the folder here.
pub(crate) fn copy_file_attributes(_: &File, _: &File) -> io::Result<()> {
    Ok(())
}
