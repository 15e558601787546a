//! Follows a transcript that is being written.
//!
//! Hands out each line once, when its newline has arrived. Does not watch for changes: who
//! follows calls [`Tail::poll`] now and then. Does not know what a line means.
//!
//! A place in a file is a [`Cursor`]: what the file looked like, and an offset. A path is
//! only a hint. When the file was replaced, cut or written anew, following begins again at
//! its top and says so.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use unspool_model::log::{Line, Splitter};

use crate::error::Error;
use crate::open;
use crate::read::Loaded;

/// A place in a file, to go on from later or after a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The file on its disk; zero where the system does not say.
    pub identity: u64,
    /// A hash of the first bytes, up to [`PRINT`] of them and never beyond `offset`.
    pub head: u64,
    /// A hash of the bytes before `offset`, as many.
    pub last: u64,
    /// Behind the last line that was handed out.
    pub offset: u64,
    /// How many lines that were.
    pub lines: u32,
}

/// How many bytes of a file are remembered by their hash.
pub const PRINT: u64 = 1024;

/// What a poll found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// How many lines were handed out.
    pub lines: u32,
    /// Whether they begin again at the top of a file, because it is another one now.
    pub restarted: bool,
}

/// Follows one file.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    cursor: Cursor,
    splitter: Splitter,
    /// Where the next bytes are read: behind the cursor by a line that has not ended.
    read: u64,
    buffer: Vec<u8>,
}

impl Tail {
    /// Follows a file from its top; it need not exist yet.
    pub fn new(path: &Path) -> Tail {
        Tail::resume(path, Cursor::default())
    }

    /// Goes on from a cursor, if the file is still the one it belongs to.
    pub fn resume(path: &Path, cursor: Cursor) -> Tail {
        Tail {
            path: path.into(),
            cursor,
            splitter: Splitter::starting_at(cursor.lines, cursor.offset),
            read: cursor.offset,
            buffer: Vec::new(),
        }
    }

    /// Goes on where a read ended that left a growing line alone (`Ending::Growing`).
    ///
    /// Line numbers go on too; they count from where the read began.
    pub fn after(loaded: &Loaded) -> Result<Tail, Error> {
        let path = loaded.source.path();
        let (file, metadata) = open::open(path)?;
        let cursor = cursor_at(&file, &metadata, loaded.bytes, loaded.lines);
        let cursor = cursor.map_err(|why| Error::io(path, why))?;
        Ok(Tail::resume(path, cursor))
    }

    /// The place behind the last line that was handed out.
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// Hands out the lines that have ended since the last poll.
    ///
    /// A file that is not there has no new lines; when one appears, it is read from its top.
    pub fn poll(&mut self, mut each: impl FnMut(Line<'_>)) -> Result<Polled, Error> {
        let (file, metadata) = match open::open(&self.path) {
            Ok(opened) => opened,
            Err(Error::MissingFile { .. }) => return Ok(Polled::default()),
            Err(error) => return Err(error),
        };
        // Size and time are not asked whether there is news: a file that is written anew
        // within a tick of its clock may have both as before.
        let polled = self.advance(&file, &metadata, &mut each);
        polled.map_err(|why| Error::io(&self.path, why))
    }

    fn advance(
        &mut self,
        file: &File,
        metadata: &Metadata,
        each: &mut impl FnMut(Line<'_>),
    ) -> io::Result<Polled> {
        let restarted = !self.fits(file, metadata)?;
        if restarted {
            self.cursor = Cursor::default();
            self.splitter = Splitter::default();
            self.read = 0;
        }
        let lines = self.take(file, metadata.len(), each)?;
        self.cursor = cursor_at(file, metadata, self.cursor.offset, self.cursor.lines)?;
        Ok(Polled { lines, restarted })
    }

    /// Whether this is still the file of the cursor, and its bytes are still those.
    fn fits(&self, file: &File, metadata: &Metadata) -> io::Result<bool> {
        let cursor = &self.cursor;
        if cursor.offset == 0 && self.read == 0 {
            return Ok(true);
        }
        if metadata.len() < self.read || open::identity(metadata) != cursor.identity {
            return Ok(false);
        }
        let now = cursor_at(file, metadata, cursor.offset, cursor.lines)?;
        Ok(now == *cursor && self.partial_fits(file)?)
    }

    /// Whether the end of the unended line is still as it was read.
    fn partial_fits(&self, file: &File) -> io::Result<bool> {
        let Some(tail) = self.splitter.tail() else {
            return Ok(true);
        };
        let (start, known) = last_bytes(tail.bytes);
        let mut now = vec![0; known.len()];
        let read = open::read_at(file, &mut now, tail.offset + start)?;
        Ok(read == now.len() && now == known)
    }

    /// Reads up to the size the file had when it was opened.
    fn take(&mut self, file: &File, size: u64, each: &mut impl FnMut(Line<'_>)) -> io::Result<u32> {
        let before = self.cursor.lines;
        self.buffer.resize(STEP, 0);
        while self.read < size {
            let left = usize::try_from(size - self.read).unwrap_or(usize::MAX);
            let want = left.min(STEP);
            let read = open::read_at(file, &mut self.buffer[..want], self.read)?;
            if read == 0 {
                break;
            }
            let cursor = &mut self.cursor;
            self.splitter.feed(&self.buffer[..read], |line| {
                cursor.offset = line.offset + line.bytes.len() as u64 + 1;
                cursor.lines = line.number;
                each(line);
            });
            self.read += read as u64;
        }
        Ok(self.cursor.lines - before)
    }
}

const STEP: usize = 256 << 10;

fn last_bytes(bytes: &[u8]) -> (u64, &[u8]) {
    let start = bytes.len().saturating_sub(PRINT as usize);
    (start as u64, &bytes[start..])
}

fn cursor_at(file: &File, metadata: &Metadata, offset: u64, lines: u32) -> io::Result<Cursor> {
    let len = offset.min(PRINT);
    Ok(Cursor {
        identity: open::identity(metadata),
        head: print(file, 0, len)?,
        last: print(file, offset - len, len)?,
        offset,
        lines,
    })
}

/// A hash of some bytes (FNV-1a, which stays the same in all our versions).
fn print(file: &File, offset: u64, len: u64) -> io::Result<u64> {
    let mut bytes = [0; PRINT as usize];
    let bytes = &mut bytes[..len as usize];
    let read = open::read_at(file, bytes, offset)?;
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    Ok(bytes[..read].iter().fold(0xcbf2_9ce4_8422_2325, step))
}
