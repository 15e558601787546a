//! Adds lines to a transcript, each with one write, so that a kill leaves whole lines.
//!
//! The file may be somebody else's, too: what stands in it stays, and if its last line has no
//! newline one is written first, so that ours is not glued to it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::StoreError;
use crate::open;
use crate::own_file;

/// A transcript that lines are added to.
#[derive(Debug)]
pub struct TranscriptAppender {
    path: PathBuf,
    file: File,
    durable: bool,
}

impl TranscriptAppender {
    /// Opens a transcript, or begins one that only its owner can read.
    ///
    /// `durable` waits for the disk after each line.
    pub fn open(path: &Path, durable: bool) -> Result<TranscriptAppender, StoreError> {
        let failed = |source| StoreError::unwritable("write to", path, source);
        if let Some(folder) = path.parent() {
            make_folders(folder)
                .map_err(|source| StoreError::unwritable("create", folder, source))?;
        }
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        let file = options.open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(StoreError::NotAFile {
                path: path.to_owned(),
                what: "something else",
            });
        }
        Ok(TranscriptAppender {
            path: path.to_owned(),
            file,
            durable,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line. When this returns, the line is in the file.
    pub fn add(&mut self, line: &str) -> Result<(), StoreError> {
        let written = self.write(line);
        written.map_err(|source| StoreError::unwritable("write to", &self.path, source))
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(line.len() + 2);
        if self.is_torn()? {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        let mut left = bytes.as_slice();
        // One write takes it all, unless the disk is full or a signal comes in between.
        while !left.is_empty() {
            match self.file.write(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => left = &left[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.durable {
            self.file.sync_data()?;
        }
        Ok(())
    }

    /// Whether the file ends without a newline.
    fn is_torn(&self) -> io::Result<bool> {
        let size = self.file.metadata()?.len();
        if size == 0 {
            return Ok(false);
        }
        let mut last = [0];
        let read = open::read_at(&self.file, &mut last, size - 1)?;
        Ok(read == 1 && last[0] != b'\n')
    }
}

/// Makes folders that only their owner can look into.
pub fn make_folders(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(folder)
}

/// Writes a small file that only its owner can read, in place of a file that was there.
pub fn put(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    own_file::replace_unsynced(path, bytes)
        .map_err(|source| StoreError::unwritable("write", path, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_added_and_nothing_before_them_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/s.jsonl");
        TranscriptAppender::open(&path, true)
            .unwrap()
            .add("{\"a\":1}")
            .unwrap();
        TranscriptAppender::open(&path, false)
            .unwrap()
            .add("{\"b\":2}")
            .unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "{\"a\":1}\n{\"b\":2}\n"
        );
    }

    #[test]
    fn a_torn_last_line_stays_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        std::fs::write(&path, "{\"a\":1}\n{\"to").unwrap();
        let mut appender = TranscriptAppender::open(&path, false).unwrap();
        appender.add("{\"b\":2}").unwrap();
        appender.add("{\"c\":3}").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "{\"a\":1}\n{\"to\n{\"b\":2}\n{\"c\":3}\n");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p/s.jsonl");
        TranscriptAppender::open(&path, false).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(&folder.path().join("p")), 0o700);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_told_with_the_name_of_the_file() {
        let full = Path::new("/dev/full");
        if !full.exists() {
            return;
        }
        let file = OpenOptions::new().append(true).open(full).unwrap();
        let mut appender = TranscriptAppender {
            path: "s.jsonl".into(),
            file,
            durable: false,
        };
        let error = appender.add("{}").unwrap_err().to_string();
        assert!(
            error.contains("s.jsonl") && error.contains("no space"),
            "{error}"
        );
    }
}
