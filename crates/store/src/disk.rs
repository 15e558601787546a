//! The system calls that change something on disk, each relative to a folder that is held open.
//!
//! A path can lead elsewhere from one moment to the next; a folder that is open cannot. Symbolic
//! links are never followed here, new files are for nobody else to read from the moment they
//! exist, and an interrupted call is made again. Every call passes [`fault`], so that tests can
//! make any of them fail. Does not know what is written, or why.

mod fail_points;
#[cfg(not(unix))]
mod portable;
#[cfg(unix)]
mod unix;

#[cfg(test)]
pub(crate) use fail_points::test;

#[cfg(not(unix))]
pub(crate) use portable::{OpenFolder, copy_file_attributes};
#[cfg(unix)]
pub(crate) use unix::{OpenFolder, copy_file_attributes};

use std::fs::File;
use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use twox_hash::XxHash3_128;

use crate::open::FileStamp;

/// What stands under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    File,
    Folder,
    Link,
    Else,
}

/// What the system says about a name in a folder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskMetadata {
    pub kind: FileKind,
    pub stamp: FileStamp,
    pub mode: u32,
}

/// Kinds of calls, for tests that make them fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskCall {
    Open,
    Make,
    Write,
    Sync,
    Rename,
    Link,
    Remove,
    Cut,
    Dress,
    Look,
}

/// Makes a call, and again for as long as it is interrupted.
fn call<T, E: Into<io::Error>>(
    what: DiskCall,
    mut job: impl FnMut() -> Result<T, E>,
) -> io::Result<T> {
    loop {
        match fail_points::at(what).and_then(|()| job().map_err(Into::into)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Waits until a file is on disk.
pub(crate) fn sync(file: &File) -> io::Result<()> {
    call(DiskCall::Sync, || file.sync_all())
}

/// Cuts a file off.
pub(crate) fn cut(file: &File, size: u64) -> io::Result<()> {
    call(DiskCall::Cut, || file.set_len(size))
}

/// One call that writes; says how much it wrote.
pub(crate) fn write_once(mut file: &File, bytes: &[u8]) -> io::Result<usize> {
    loop {
        let most = fail_points::most(DiskCall::Write, bytes.len());
        match most.and_then(|most| file.write(&bytes[..most])) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Gives a file the time of its last change.
pub(crate) fn set_modified(file: &File, nanoseconds: i64) -> io::Result<()> {
    let span = Duration::from_nanos(nanoseconds.unsigned_abs());
    let time = if nanoseconds < 0 {
        UNIX_EPOCH - span
    } else {
        UNIX_EPOCH + span
    };
    call(DiskCall::Dress, || file.set_modified(time))
}

/// A file that is being written: buffered, and hashed on the way.
pub(crate) struct HashingWriter<'a> {
    file: &'a File,
    buffer: Vec<u8>,
    hash: XxHash3_128,
    size: u64,
}

/// So much is written at once.
const BUFFER: usize = 256 << 10;

impl<'a> HashingWriter<'a> {
    pub fn new(file: &'a File) -> HashingWriter<'a> {
        HashingWriter {
            file,
            buffer: Vec::new(),
            hash: XxHash3_128::new(),
            size: 0,
        }
    }

    /// How much was written, and its hash.
    pub fn finish(mut self) -> io::Result<(u64, u128)> {
        self.flush()?;
        Ok((self.size, self.hash.finish_128()))
    }

    fn through(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.hash.write(bytes);
        self.size += bytes.len() as u64;
        while !bytes.is_empty() {
            match write_once(self.file, bytes)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                wrote => bytes = &bytes[wrote..],
            }
        }
        Ok(())
    }
}

impl Write for HashingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + bytes.len() > BUFFER {
            self.flush()?;
        }
        if bytes.len() >= BUFFER {
            self.through(bytes)?;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let written = self.through(&buffer);
        buffer.clear();
        self.buffer = buffer;
        written
    }
}
