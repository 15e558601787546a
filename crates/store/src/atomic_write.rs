//! Writing files whole or not at all.
//!
//! A new file is written under a temporary name in its folder, waits until it is on disk, and
//! only then gets its name; an existing one is replaced in the same way if it is still as it was
//! when it was read. All of it happens relative to folders that were opened once (see
//! [`WriteRoots`]), so that a symbolic link put in the way does not lead anywhere. What can be undone
//! is written through [`crate::journal`], which is built on this.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_128;

use crate::disk::{self, DiskMetadata, FileKind, HashingWriter, OpenFolder};
use crate::error::StoreError;
use crate::open::FileStamp;

/// What tells whether a file is still as we left it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentHash {
    /// Its size in bytes.
    pub size: u64,
    /// The hash of its content, in hexadecimal.
    pub hash: String,
}

impl ContentHash {
    /// The mark of everything a reader gives.
    pub fn of(mut reader: impl Read) -> io::Result<ContentHash> {
        let (mut hash, mut size) = (XxHash3_128::new(), 0);
        let mut buffer = vec![0; 256 << 10];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => {
                    hash.write(&buffer[..read]);
                    size += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(ContentHash::new(size, hash.finish_128()))
    }

    fn new(size: u64, hash: u128) -> ContentHash {
        ContentHash {
            size,
            hash: format!("{hash:032x}"),
        }
    }
}

/// Whether a file that is replaced keeps the time of its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModifiedTimePolicy {
    /// As it was: for edits that do not make it newer to those who sort by time.
    Keep,
    /// The time of writing.
    Now,
}

/// Folders below which we may write, opened once.
#[derive(Debug)]
pub struct WriteRoots {
    /// Each with its path as it was given.
    roots: Vec<(PathBuf, OpenFolder)>,
}

impl WriteRoots {
    /// Opens the folders; those that are not there do not count.
    pub fn open<P: AsRef<Path>>(
        roots: impl IntoIterator<Item = P>,
    ) -> Result<WriteRoots, StoreError> {
        let mut open = Vec::new();
        for root in roots {
            let path = absolute(root.as_ref())?;
            match OpenFolder::open(&path) {
                Ok(folder) => open.push((path, folder)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(StoreError::unwritable("open", &path, error)),
            }
        }
        // The nearest root counts.
        open.sort_by_key(|(path, _)| std::cmp::Reverse(path.components().count()));
        Ok(WriteRoots { roots: open })
    }

    /// The place of a file whose folder is there.
    pub(crate) fn place(&self, path: &Path) -> Result<FileInFolder, StoreError> {
        self.place_in(path, |folder, name, _| folder.below(name))
    }

    /// The place of a file; makes the folders on the way. `making` hears of each before.
    pub(crate) fn place_made(
        &self,
        path: &Path,
        mut making: impl FnMut(&Path) -> io::Result<()>,
    ) -> Result<FileInFolder, StoreError> {
        self.place_in(path, |folder, name, path| match folder.below(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                making(path)?;
                match folder.make(name) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                        return Err(error);
                    }
                    _ => folder.sync()?,
                }
                folder.below(name)
            }
            other => other,
        })
    }

    fn place_in(
        &self,
        path: &Path,
        mut below: impl FnMut(&OpenFolder, &OsStr, &Path) -> io::Result<OpenFolder>,
    ) -> Result<FileInFolder, StoreError> {
        let path = absolute(path)?;
        let (root, within) = self.within(&path)?;
        let mut names: Vec<&OsStr> = Vec::new();
        for part in within.components() {
            match part {
                Component::Normal(name) => names.push(name),
                _ => return Err(outside(&path)),
            }
        }
        let name = names.pop().ok_or_else(|| outside(&path))?;
        let mut folder = root
            .again()
            .map_err(|error| StoreError::unwritable("open", root.path(), error))?;
        for name in names {
            let next = folder.path().join(name);
            folder = below(&folder, name, &next).map_err(|error| not_a_folder(&next, error))?;
        }
        trusted(&folder)?;
        Ok(FileInFolder {
            name: name.to_owned(),
            folder,
            path,
        })
    }

    fn within<'a>(&self, path: &'a Path) -> Result<(&OpenFolder, &'a Path), StoreError> {
        let inside = |(root, folder)| -> Option<(&OpenFolder, &Path)> {
            Some((folder, path.strip_prefix(root).ok()?))
        };
        let mut roots = self.roots.iter().map(|(root, folder)| (root, folder));
        roots.find_map(inside).ok_or_else(|| outside(path))
    }
}

fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    std::path::absolute(path).map_err(|error| StoreError::unwritable("find", path, error))
}

fn outside(path: &Path) -> StoreError {
    StoreError::refused(
        format!("refusing to write to `{}`", path.display()),
        "use a file in a Claude Code config directory",
    )
}

fn not_a_folder(path: &Path, error: io::Error) -> StoreError {
    // What the system says to a link depends on the system.
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_symlink() => StoreError::refused(
            format!(
                "`{}` is a symlink: refusing to write through it",
                path.display()
            ),
            "use the symlink's target path",
        ),
        _ => StoreError::unwritable("open", path, error),
    }
}

/// Refuses a folder in which others may exchange what we write.
fn trusted(folder: &OpenFolder) -> Result<(), StoreError> {
    let why = folder
        .distrust()
        .map_err(|error| StoreError::unwritable("access", folder.path(), error))?;
    match why {
        None => Ok(()),
        Some(why) => Err(StoreError::refused(
            format!(
                "`{}` {why}: refusing to write to it",
                folder.path().display()
            ),
            "take ownership and remove write access with `chown` and `chmod go-w`",
        )),
    }
}

/// A name in a folder that is open.
#[derive(Debug)]
pub(crate) struct FileInFolder {
    pub folder: OpenFolder,
    pub name: OsString,
    pub path: PathBuf,
}

/// What was added to the end of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendedRange {
    /// The size before, or where what others had added in between ends.
    pub before: u64,
    /// The size after.
    pub after: u64,
}

impl FileInFolder {
    /// What stands there; a link or anything but a file is refused.
    pub fn file(&self) -> Result<Option<DiskMetadata>, StoreError> {
        let Some(look) = self.look()? else {
            return Ok(None);
        };
        let what = match look.kind {
            FileKind::File => return Ok(Some(look)),
            FileKind::Link => "a symlink",
            FileKind::Folder => "a folder",
            FileKind::Else => "not a regular file",
        };
        Err(StoreError::refused(
            format!(
                "`{}` is {what}: refusing to write to it",
                self.path.display()
            ),
            "use the file itself",
        ))
    }

    /// What stands there, whatever it is.
    pub fn look(&self) -> Result<Option<DiskMetadata>, StoreError> {
        let look = self.folder.look(&self.name);
        look.map_err(|error| StoreError::unwritable("access", &self.path, error))
    }

    /// Opens the file that stands there.
    pub fn read(&self) -> Result<File, StoreError> {
        if self.file()?.is_none() {
            return Err(StoreError::MissingFile {
                path: self.path.clone(),
            });
        }
        let opened = self.folder.read(&self.name);
        opened.map_err(|error| StoreError::unwritable("open", &self.path, error))
    }

    /// The mark of the file that stands there.
    pub fn mark(&self) -> Result<Option<ContentHash>, StoreError> {
        if self.file()?.is_none() {
            return Ok(None);
        }
        let mark = ContentHash::of(self.read()?);
        mark.map(Some)
            .map_err(|error| StoreError::io(&self.path, error))
    }

    /// Writes a new file under a temporary name in the same folder, until it is on disk.
    pub fn stage(
        &self,
        temp: &OsStr,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
        finish: impl FnOnce(&File) -> io::Result<()>,
    ) -> Result<ContentHash, StoreError> {
        let written = self.fill(temp, fill, finish);
        if written.is_err() {
            let _ = self.folder.remove(temp);
        }
        written.map_err(|error| StoreError::unwritable("write", &self.path, error))
    }

    fn fill(
        &self,
        temp: &OsStr,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
        finish: impl FnOnce(&File) -> io::Result<()>,
    ) -> io::Result<ContentHash> {
        let file = self.folder.create(temp)?;
        let mut sink = HashingWriter::new(&file);
        fill(&mut sink)?;
        let (size, hash) = sink.finish()?;
        finish(&file)?;
        disk::sync(&file)?;
        Ok(ContentHash::new(size, hash))
    }

    /// Gives a staged file its name, which must be free.
    pub fn publish(&self, temp: &OsStr) -> Result<(), StoreError> {
        let named = self.folder.rename_new(temp, &self.folder, &self.name);
        named.map_err(|error| StoreError::unwritable("write", &self.path, error))
    }

    /// Puts a staged file in the place of the one that must still be as it was.
    pub fn swap(&self, temp: &OsStr, stamp: FileStamp) -> Result<(), StoreError> {
        self.unchanged(stamp)?;
        let renamed = self.folder.rename(temp, &self.name);
        renamed.map_err(|error| StoreError::unwritable("replace", &self.path, error))
    }

    /// Refuses a file that is not as it was when it was read.
    pub fn unchanged(&self, stamp: FileStamp) -> Result<(), StoreError> {
        match self.file()? {
            Some(look) if look.stamp == stamp => Ok(()),
            Some(_) => Err(changed(&self.path)),
            None => Err(StoreError::MissingFile {
                path: self.path.clone(),
            }),
        }
    }

    /// Adds to the end of a file in one call; on a line of its own if the file does not end with
    /// one.
    pub fn append(&self, bytes: &[u8]) -> Result<AppendedRange, StoreError> {
        self.file()?.ok_or_else(|| StoreError::MissingFile {
            path: self.path.clone(),
        })?;
        let added = self.folder.append(&self.name).and_then(|file| {
            let added = add(&file, bytes)?;
            disk::sync(&file)?;
            Ok(added)
        });
        added.map_err(|error| StoreError::unwritable("add to", &self.path, error))
    }

    /// Removes the file.
    pub fn remove(&self) -> Result<(), StoreError> {
        let removed = self.folder.remove(&self.name);
        removed.map_err(|error| StoreError::unwritable("remove", &self.path, error))
    }

    /// Waits until the folder is on disk.
    pub fn sync(&self) -> Result<(), StoreError> {
        let synced = self.folder.sync();
        synced.map_err(|error| StoreError::unwritable("write", self.folder.path(), error))
    }
}

pub(crate) fn changed(path: &Path) -> StoreError {
    StoreError::refused(
        format!(
            "`{}` was changed by another program during the edit",
            path.display()
        ),
        "wait until no program writes to it, then retry",
    )
}

fn add(mut file: &File, bytes: &[u8]) -> io::Result<AppendedRange> {
    let mut line = Vec::with_capacity(bytes.len() + 1);
    if !bytes.starts_with(b"\n") && !ends_with_newline(file)? {
        line.push(b'\n');
    }
    line.extend_from_slice(bytes);
    let wrote = disk::write_once(file, &line)?;
    // Others may add to it as well: where ours went is only known afterwards.
    let after = file.stream_position()?;
    let before = after - wrote as u64;
    match complete(file, &line[wrote..]) {
        Ok(()) => Ok(AppendedRange {
            before,
            after: before + line.len() as u64,
        }),
        Err(error) => {
            take_back(file, before, &line)?;
            Err(error)
        }
    }
}

fn complete(file: &File, mut rest: &[u8]) -> io::Result<()> {
    while !rest.is_empty() {
        match disk::write_once(file, rest)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            wrote => rest = &rest[wrote..],
        }
    }
    Ok(())
}

/// Removes half a line of ours from the end, unless somebody wrote behind it.
fn take_back(file: &File, before: u64, line: &[u8]) -> io::Result<()> {
    let mut tail = vec![0; line.len() + 1];
    let read = crate::open::read_at(file, &mut tail, before)?;
    if read <= line.len() && line.starts_with(&tail[..read]) {
        disk::cut(file, before)?;
    }
    Ok(())
}

fn ends_with_newline(mut file: &File) -> io::Result<bool> {
    let size = file.seek(SeekFrom::End(0))?;
    let mut last = [b'\n'];
    if size > 0 {
        crate::open::read_at(file, &mut last, size - 1)?;
    }
    Ok(last == [b'\n'])
}

/// Something no other process has, to name temporary files by.
pub(crate) fn token() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

/// Writes a new file whole or not at all, below a folder that is there; for files that need no
/// undo. Makes the folders on the way.
pub fn create(
    ground: &WriteRoots,
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<ContentHash, StoreError> {
    let place = ground.place_made(path, |_| Ok(()))?;
    if place.look()?.is_some() {
        return Err(exists(&place.path));
    }
    let temp = OsString::from(format!(".unspool-{}.tmp", token()));
    let mark = place.stage(&temp, fill, |_| Ok(()))?;
    if let Err(error) = place.publish(&temp) {
        let _ = place.folder.remove(&temp);
        return Err(error);
    }
    place.sync()?;
    Ok(mark)
}

pub(crate) fn exists(path: &Path) -> StoreError {
    StoreError::refused(
        format!(
            "`{}` already exists: refusing to overwrite it",
            path.display()
        ),
        "move or remove the existing file first",
    )
}
