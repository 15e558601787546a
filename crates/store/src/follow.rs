//! Follows a transcript that is being written.
//!
//! Hands out each line once, when its newline has arrived. Does not watch for changes: who
//! follows calls [`TranscriptTail::poll`] now and then. Does not know what a line means.
//!
//! A place in a file is a [`FileCursor`]: what the file looked like, and an offset. A path is
//! only a hint. When the file was replaced, cut or written anew, following begins again at
//! its top and says so.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use unspool_model::log::{Line, LineSplitter};

use crate::error::StoreError;
use crate::open;
use crate::read::LoadedSession;

/// A place in a file, to go on from later or after a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCursor {
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
pub struct PollResult {
    /// How many lines were handed out.
    pub lines: u32,
    /// Whether they begin again at the top of a file, because it is another one now.
    pub restarted: bool,
}

/// Follows one file.
#[derive(Debug)]
pub struct TranscriptTail {
    path: PathBuf,
    cursor: FileCursor,
    splitter: LineSplitter,
    prints: CursorBytes,
    /// Where the next bytes are read: behind the cursor by a line that has not ended.
    read: u64,
    buffer: Vec<u8>,
}

impl TranscriptTail {
    /// Follows a file from its top; it need not exist yet.
    pub fn new(path: &Path) -> TranscriptTail {
        TranscriptTail::resume(path, FileCursor::default())
    }

    /// Goes on from a cursor, if the file is still the one it belongs to.
    pub fn resume(path: &Path, cursor: FileCursor) -> TranscriptTail {
        TranscriptTail {
            path: path.into(),
            cursor,
            splitter: LineSplitter::starting_at(cursor.lines, cursor.offset),
            prints: CursorBytes::default(),
            read: cursor.offset,
            buffer: Vec::new(),
        }
    }

    /// Goes on where a read ended that left a growing line alone (`Ending::Growing`).
    ///
    /// Line numbers go on too; they count from where the read began.
    pub fn after(loaded: &LoadedSession) -> Result<TranscriptTail, StoreError> {
        let path = loaded.source.path();
        let cursor = loaded.source.with_file(|file| {
            let prints = CursorBytes::read(file, loaded.bytes)?;
            let identity = open::identity(&file.metadata()?);
            Ok(prints.cursor(identity, loaded.bytes, loaded.lines))
        });
        let cursor = cursor.map_err(|why| StoreError::io(path, why))?;
        Ok(TranscriptTail::resume(path, cursor))
    }

    /// The place behind the last line that was handed out.
    pub fn cursor(&self) -> FileCursor {
        self.cursor
    }

    /// Hands out the lines that have ended since the last poll.
    ///
    /// A file that is not there has no new lines; when one appears, it is read from its top.
    pub fn poll(&mut self, mut each: impl FnMut(Line<'_>)) -> Result<PollResult, StoreError> {
        let (file, metadata) = match open::open(&self.path) {
            Ok(opened) => opened,
            Err(StoreError::MissingFile { .. }) => return Ok(PollResult::default()),
            Err(error) => return Err(error),
        };
        // Size and time are not asked whether there is news: a file that is written anew
        // within a tick of its clock may have both as before.
        let polled = self.advance(&file, &metadata, &mut each);
        polled.map_err(|why| StoreError::io(&self.path, why))
    }

    fn advance(
        &mut self,
        file: &File,
        metadata: &Metadata,
        each: &mut impl FnMut(Line<'_>),
    ) -> io::Result<PollResult> {
        let restarted = !self.fits(file, metadata)?;
        if restarted {
            *self = TranscriptTail::new(&self.path);
        }
        let lines = self.take(file, metadata.len(), each)?;
        let FileCursor {
            offset, lines: all, ..
        } = self.cursor;
        let identity = open::identity(metadata);
        self.cursor = self.prints.cursor(identity, offset, all);
        Ok(PollResult { lines, restarted })
    }

    /// Whether this is still the file of the cursor, and its bytes are still those.
    fn fits(&mut self, file: &File, metadata: &Metadata) -> io::Result<bool> {
        if self.read == 0 {
            return Ok(true);
        }
        if metadata.len() < self.read {
            return Ok(false);
        }
        let FileCursor { offset, lines, .. } = self.cursor;
        let prints = CursorBytes::read(file, offset)?;
        let now = prints.cursor(open::identity(metadata), offset, lines);
        let fits = now == self.cursor && self.partial_fits(file)?;
        self.prints = prints;
        Ok(fits)
    }

    /// Whether both ends of the unended line are still as they were read.
    fn partial_fits(&self, file: &File) -> io::Result<bool> {
        let Some(tail) = self.splitter.tail() else {
            return Ok(true);
        };
        let first = &tail.bytes[..tail.bytes.len().min(PRINT as usize)];
        let (start, last) = last_bytes(tail.bytes);
        for (known, at) in [(first, tail.offset), (last, tail.offset + start)] {
            let mut now = vec![0; known.len()];
            let read = open::read_at(file, &mut now, at)?;
            if now[..read] != *known {
                return Ok(false);
            }
        }
        Ok(true)
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
            let (cursor, prints) = (&mut self.cursor, &mut self.prints);
            let mut passed = false;
            self.splitter.feed(&self.buffer[..read], |line| {
                cursor.offset = line.end();
                cursor.lines = line.number;
                passed |= line.is_omitted();
                prints.add(line.bytes);
                each(line);
            });
            self.read += read as u64;
            if passed {
                // Nobody has its last bytes any more.
                self.prints = CursorBytes::read(file, self.cursor.offset)?;
            }
            if self.splitter.is_omitting() {
                let data = open::behind_hole(file, self.read).min(size);
                self.splitter.pass(data.saturating_sub(self.read));
                self.read = self.read.max(data);
            }
        }
        Ok(self.cursor.lines - before)
    }
}

const STEP: usize = 256 << 10;

fn last_bytes(bytes: &[u8]) -> (u64, &[u8]) {
    let start = bytes.len().saturating_sub(PRINT as usize);
    (start as u64, &bytes[start..])
}

/// The bytes that a cursor remembers by their hash.
///
/// Taken from what was handed out, not read again afterwards: the file may have changed in
/// between, and the cursor would vouch for bytes that nobody has seen.
#[derive(Debug, Default)]
pub struct CursorBytes {
    head: Vec<u8>,
    last: Vec<u8>,
}

impl CursorBytes {
    /// Those of the file as it is now.
    pub fn read(file: &File, offset: u64) -> io::Result<CursorBytes> {
        let len = offset.min(PRINT);
        let bytes = |at: u64| {
            let mut bytes = vec![0; len as usize];
            let read = open::read_at(file, &mut bytes, at)?;
            bytes.truncate(read);
            Ok::<_, io::Error>(bytes)
        };
        Ok(CursorBytes {
            head: bytes(0)?,
            last: bytes(offset - len)?,
        })
    }

    /// Takes in a line that was handed out.
    fn add(&mut self, line: &[u8]) {
        let room = (PRINT as usize).saturating_sub(self.head.len());
        self.head.extend(line.iter().chain(b"\n").take(room));
        self.last.extend_from_slice(last_bytes(line).1);
        self.last.push(b'\n');
        let over = self.last.len().saturating_sub(PRINT as usize);
        self.last.drain(..over);
    }

    /// The cursor that remembers them.
    pub fn cursor(&self, identity: u64, offset: u64, lines: u32) -> FileCursor {
        FileCursor {
            identity,
            head: hash(&self.head),
            last: hash(&self.last),
            offset,
            lines,
        }
    }
}

/// FNV-1a, which stays the same in all our versions.
fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
