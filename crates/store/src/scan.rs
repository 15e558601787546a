//! All files at once, for questions that need little of each line.
//!
//! Files are cut into parts of some megabytes, so that one large session keeps all cores
//! busy. A part is read in pieces of whole lines; who scans looks for a mark in the piece
//! and opens only the lines that have it. No rule about sessions is in here.

use std::cell::RefCell;
use std::fs::File;
use std::io;

use crate::line_buffers::{LineBuffer, LineBufferReader, NextLines, line_start};

pub use crate::line_buffers::OversizedLine;

/// A stretch of a file: the lines that begin in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePart {
    /// Which file, by its place in the list that was cut.
    pub file: usize,
    /// Its first byte.
    pub start: u64,
    /// Behind its last byte.
    pub end: u64,
}

/// How large a part is.
pub const PART: u64 = 8 << 20;

const PIECE: usize = 256 << 10;

/// Of a buffer that one very long line has made larger than this, this much is kept.
const KEPT: usize = 512 << 10;

/// Cuts stretches of files into parts, in order. Each stretch is where to begin, which is
/// the start of a line, and where the file ended when somebody looked.
pub fn parts(stretches: impl IntoIterator<Item = (u64, u64)>) -> Vec<FilePart> {
    let mut all = Vec::new();
    for (file, (start, end)) in stretches.into_iter().enumerate() {
        let mut at = start;
        while at < end {
            let next = end.min(at + PART);
            all.push(FilePart {
                file,
                start: at,
                end: next,
            });
            at = next;
        }
    }
    all
}

thread_local! {
    static BUFFER: RefCell<LineBuffer> = RefCell::default();
}

/// What a part holds, one after the other.
#[derive(Clone, Copy, Debug)]
pub enum ScannedLines<'a> {
    /// Many lines at once, and the offset of the first.
    Lines(u64, &'a [u8]),
    /// A line that is too long to be held.
    Passed(OversizedLine),
}

impl FilePart {
    /// Hands out the lines that begin in this part. Only at the end of the file the last one
    /// may be without its newline. Gives the offset behind the last byte that was handed out.
    pub fn read(&self, file: &File, mut each: impl FnMut(ScannedLines<'_>)) -> io::Result<u64> {
        let start = line_start(file, self.start, self.end)?;
        let mut end = start;
        let mut piece = BUFFER.take();
        let mut pieces = LineBufferReader::new(file, start, self.end, PIECE);
        while let Some(next) = pieces.next(&mut piece)? {
            match next {
                NextLines::Lines(offset) => {
                    each(ScannedLines::Lines(offset, piece.bytes()));
                    end = offset + piece.bytes().len() as u64;
                }
                NextLines::Passed(line) => {
                    each(ScannedLines::Passed(line));
                    end = line.end();
                }
            }
        }
        piece.shrink(KEPT);
        BUFFER.set(piece);
        Ok(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn every_line_is_in_exactly_one_part() {
        let mut file = tempfile::tempfile().unwrap();
        let lines: Vec<String> = (0..300).map(|n| "x".repeat(n * 7 % 90)).collect();
        let text = lines.join("\n");
        file.write_all(text.as_bytes()).unwrap();
        for step in [1, 5, 64, 1000, 1 << 20] {
            let mut seen = Vec::new();
            let mut start = 0;
            while start < text.len() as u64 {
                let end = (start + step).min(text.len() as u64);
                let part = FilePart {
                    file: 0,
                    start,
                    end,
                };
                part.read(&file, |stretch| {
                    let ScannedLines::Lines(offset, bytes) = stretch else {
                        panic!("{stretch:?}");
                    };
                    assert_eq!(offset, seen.len() as u64);
                    seen.extend_from_slice(bytes);
                })
                .unwrap();
                start = end;
            }
            assert_eq!(seen, text.as_bytes(), "step {step}");
        }
    }

    #[test]
    fn parts_cover_every_stretch_once() {
        let all = parts([(0, 0), (5, 6), (3, PART * 2 + 3)]);
        let ends: Vec<_> = all.iter().map(|part| (part.file, part.start)).collect();
        assert_eq!(ends, [(1, 5), (2, 3), (2, 3 + PART)]);
    }
}
