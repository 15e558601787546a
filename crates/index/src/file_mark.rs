//! What is new in a transcript since we last looked.
//!
//! A [`ReadMark`] says how a file was and up to where it was read: always the end of a line.
//! When device, inode, size and time are as before, the file is not even opened. When it
//! grew, the bytes before the mark are compared by their hashes, at most two kilobytes, and
//! reading goes on there. Anything else is another file and is read from its top.
//!
//! Bytes behind the last newline may be half a line and are never covered by a mark: who
//! wants them reads them again each time.

use std::fs::File;
use std::io;
use std::path::Path;

use unspool_store::StoreError;
use unspool_store::follow::{CursorBytes, FileCursor};
use unspool_store::open::{self, FileStamp};

/// How a file was when we read it, and up to where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadMark {
    /// The place behind the last whole line, and the hashes of the bytes before it.
    pub cursor: FileCursor,
    /// How large the file was; more than the offset if its last line had not ended.
    pub size: u64,
    /// When it was last written, in nanoseconds since 1970.
    pub modified: i64,
}

/// What a file is to one who has a mark of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkComparison {
    /// As it was.
    Same,
    /// Longer than it was: to be read on at the offset if [`ReadMark::holds`].
    Grew,
    /// Another file, or written anew: to be read from its top.
    Other,
}

/// What a file is now, judged without opening it.
pub fn compare(mark: &ReadMark, stamp: &FileStamp) -> MarkComparison {
    if *stamp == mark.stamp() {
        MarkComparison::Same
    } else if stamp.identity == mark.cursor.identity && stamp.size > mark.size {
        MarkComparison::Grew
    } else {
        // Also one that was written again without growing: only its ends are remembered,
        // and the change may be between them.
        MarkComparison::Other
    }
}

impl ReadMark {
    /// Marks the end of the last line that ends before `stamp.size`.
    ///
    /// Taken before the file is read, and read up to `cursor.offset` only, a mark never
    /// vouches for bytes that nobody has seen: what changes later changes the stamp or the
    /// hashes. Lines are not counted; who knows how many they are sets `cursor.lines`.
    pub fn take(file: &File, stamp: FileStamp) -> io::Result<ReadMark> {
        ReadMark::take_after(file, stamp, 0)
    }

    /// The same for one who knows that a line ends at `start`.
    fn take_after(file: &File, stamp: FileStamp, start: u64) -> io::Result<ReadMark> {
        let offset = last_line_end(file, start, stamp.size)?;
        let cursor = CursorBytes::read(file, offset)?.cursor(stamp.identity, offset, 0);
        Ok(ReadMark {
            cursor,
            size: stamp.size,
            modified: stamp.modified,
        })
    }

    /// What the system said about the file.
    pub fn stamp(&self) -> FileStamp {
        FileStamp {
            identity: self.cursor.identity,
            size: self.size,
            modified: self.modified,
        }
    }

    /// Behind the last whole line.
    pub fn offset(&self) -> u64 {
        self.cursor.offset
    }

    /// Whether the bytes before the offset are still those that were read.
    pub fn holds(&self, file: &File) -> io::Result<bool> {
        let FileCursor {
            identity,
            offset,
            lines,
            ..
        } = self.cursor;
        Ok(CursorBytes::read(file, offset)?.cursor(identity, offset, lines) == self.cursor)
    }
}

/// A file that is to be read on, or anew.
#[derive(Debug)]
pub struct UnreadFile {
    /// The file. It may have grown beyond `mark` already; that is for the next time.
    pub file: File,
    /// Where to begin: the offset of the old mark, or 0.
    pub start: u64,
    /// How many lines end before `start`, if the old mark knew.
    pub lines: u32,
    /// What to keep once the lines between `start` and its offset are read.
    pub mark: ReadMark,
}

impl UnreadFile {
    /// Whether what was kept about this file still counts.
    pub fn goes_on(&self) -> bool {
        self.start > 0
    }
}

/// Opens a file and finds out from where it is to be read.
pub fn open_unread(path: &Path, known: Option<&ReadMark>) -> Result<UnreadFile, StoreError> {
    let (file, metadata) = open::open(path)?;
    let run = || -> io::Result<_> {
        let stamp = FileStamp::of(&metadata);
        let old = match known.filter(|mark| compare(mark, &stamp) != MarkComparison::Other) {
            Some(mark) if mark.holds(&file)? => mark.cursor,
            _ => FileCursor::default(),
        };
        Ok((old, ReadMark::take_after(&file, stamp, old.offset)?))
    };
    let (old, mark) = run().map_err(|why| StoreError::io(path, why))?;
    Ok(UnreadFile {
        file,
        start: old.offset,
        lines: old.lines,
        mark,
    })
}

const STEP: u64 = 16 << 10;

/// Behind the last newline between two offsets; `start` if there is none.
fn last_line_end(file: &File, start: u64, end: u64) -> io::Result<u64> {
    // Most files end with a whole line, so that one byte tells.
    let mut step = 1;
    let mut buffer = Vec::new();
    let mut end = end;
    while end > start {
        let from = end.saturating_sub(step).max(start);
        // Holes are passed in ever larger steps, and what stands before them is come up to in
        // ever smaller ones.
        if step > 1 && open::is_hole(file, from, end) {
            end = from;
            step = step.saturating_mul(2);
            continue;
        }
        if step > STEP {
            step /= 2;
            continue;
        }
        buffer.resize((end - from) as usize, 0);
        let read = open::read_at(file, &mut buffer, from)?;
        if let Some(at) = memchr::memrchr(b'\n', &buffer[..read]) {
            return Ok(from + at as u64 + 1);
        }
        end = from;
        step = STEP;
    }
    Ok(start)
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom, Write};

    use super::*;

    /// A file with words at these places, and holes between them.
    fn sparse(words: &[(u64, &[u8])], size: u64) -> File {
        let mut file = tempfile::tempfile().unwrap();
        for (at, word) in words {
            file.seek(SeekFrom::Start(*at)).unwrap();
            file.write_all(word).unwrap();
        }
        file.set_len(size).unwrap();
        file
    }

    #[test]
    fn the_last_newline_is_found_between_holes() {
        for at in [0, 1, 16_383, 16_384, 100_000, 1 << 20, (3 << 20) + 17] {
            let file = sparse(&[(0, b"x"), (at, b"\nbehind"), (5 << 20, b"more")], 9 << 20);
            assert_eq!(last_line_end(&file, 0, 9 << 20).unwrap(), at + 1);
            assert_eq!(last_line_end(&file, at + 1, 9 << 20).unwrap(), at + 1);
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_hole_of_gigabytes_is_not_read() {
        let reads = || {
            let told = std::fs::read_to_string("/proc/thread-self/io").unwrap_or_default();
            let reads = told.lines().find_map(|line| line.strip_prefix("syscr: "));
            reads.map_or(0, |count| count.parse::<u64>().unwrap())
        };
        let file = sparse(&[(5, b"\n")], 4 << 30);
        let before = reads();
        assert_eq!(last_line_end(&file, 0, 4 << 30).unwrap(), 6);
        assert!(reads() - before < 100, "{} reads", reads() - before);
    }
}
