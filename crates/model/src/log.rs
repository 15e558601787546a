//! Bytes to lines, and back to the same bytes.
//!
//! A [`Line`] is its bytes and the place where they began. [`LineSplitter`] makes lines of bytes
//! however they arrive, so a file that is read at once and one that is followed while it
//! grows give the same lines. [`Log`] is a whole file in memory; files too large for that are
//! read piece by piece through [`TranscriptSource`]. Nothing here knows what a line means.
//!
//! A line longer than [`LONGEST_LINE`] is never held: whoever cuts lines counts its bytes and
//! passes them over. It still has its number and its place, and the next line is read.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

/// How many bytes a line may have to be held in memory and decoded: 64 MB of text and what
/// stands around it. Lines of real sessions stay far below: the longest hold a few images.
pub const LONGEST_LINE: usize = 65 << 20;

/// One line without its newline, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Counts from 1, as editors do.
    pub number: u32,
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// The bytes up to, not including, the newline; none of a line that is too long.
    pub bytes: &'a [u8],
    /// How many bytes were passed over because the line is longer than [`LONGEST_LINE`]; 0 for
    /// every other line.
    pub omitted: u64,
    /// Whether a newline followed. Without one the line may still be growing.
    pub ended: bool,
}

impl Line<'_> {
    /// How many bytes it has in the file, without its newline.
    pub fn length(&self) -> u64 {
        self.bytes.len() as u64 + self.omitted
    }

    /// Where the next line begins, or would begin.
    pub fn end(&self) -> u64 {
        self.offset + self.length() + u64::from(self.ended)
    }

    /// Whether its bytes were passed over.
    pub fn is_omitted(&self) -> bool {
        self.omitted > 0
    }
}

/// Cuts bytes into lines, in whatever pieces they come.
#[derive(Clone, Debug)]
pub struct LineSplitter {
    /// The start of a line that has not ended.
    partial: Vec<u8>,
    /// How long that line is, once it is too long to be held.
    omitted: u64,
    number: u32,
    offset: u64,
    longest: usize,
}

impl Default for LineSplitter {
    fn default() -> LineSplitter {
        LineSplitter::starting_at(0, 0)
    }
}

impl LineSplitter {
    /// A splitter for bytes that begin in mid-file, behind `number` lines and `offset` bytes.
    pub fn starting_at(number: u32, offset: u64) -> LineSplitter {
        LineSplitter {
            partial: Vec::new(),
            omitted: 0,
            number,
            offset,
            longest: LONGEST_LINE,
        }
    }

    /// The same, which holds lines of up to so many bytes.
    #[must_use]
    pub fn holding(self, longest: usize) -> LineSplitter {
        LineSplitter { longest, ..self }
    }

    /// Takes the next bytes and hands out each line that is now complete.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(Line<'_>)) {
        let mut rest = bytes;
        if !self.partial.is_empty() || self.omitted > 0 {
            let Some(end) = memchr(b'\n', rest) else {
                self.hold(rest);
                return;
            };
            self.hold(&rest[..end]);
            let line = std::mem::take(&mut self.partial);
            let omitted = std::mem::take(&mut self.omitted);
            each(self.next(&line, omitted));
            rest = &rest[end + 1..];
        }
        let mut start = 0;
        for end in memchr_iter(b'\n', rest) {
            let line = &rest[start..end];
            if line.len() > self.longest {
                each(self.next(&[], line.len() as u64));
            } else {
                each(self.next(line, 0));
            }
            start = end + 1;
        }
        self.hold(&rest[start..]);
    }

    /// Whether it is inside a line that is too long. Then [`LineSplitter::pass`] may stand for bytes
    /// without a newline.
    pub fn is_omitting(&self) -> bool {
        self.omitted > 0
    }

    /// Passes over so many bytes of a line that is too long, none of which is a newline.
    pub fn pass(&mut self, bytes: u64) {
        self.omitted += bytes;
    }

    /// Adds to the line that has not ended.
    fn hold(&mut self, bytes: &[u8]) {
        if self.omitted > 0 {
            self.omitted += bytes.len() as u64;
        } else if self.partial.len() + bytes.len() > self.longest {
            self.omitted = (self.partial.len() + bytes.len()) as u64;
            self.partial = Vec::new();
        } else {
            self.partial.extend_from_slice(bytes);
        }
    }

    /// What stands behind the last newline: no line yet, unless the writer forgot to end it.
    pub fn tail(&self) -> Option<Line<'_>> {
        (!self.partial.is_empty() || self.omitted > 0).then_some(Line {
            number: self.number + 1,
            offset: self.offset,
            bytes: &self.partial,
            omitted: self.omitted,
            ended: false,
        })
    }

    fn next<'a>(&mut self, bytes: &'a [u8], omitted: u64) -> Line<'a> {
        self.number += 1;
        let line = Line {
            number: self.number,
            offset: self.offset,
            bytes,
            omitted,
            ended: true,
        };
        self.offset = line.end();
        line
    }
}

/// Where the bytes of a transcript can be read again when somebody looks at them, from any
/// thread.
pub trait TranscriptSource: Sync {
    /// `len` bytes from `offset`; `None` if they are no longer there.
    fn bytes(&self, offset: u64, len: usize) -> Option<Cow<'_, [u8]>>;
}

/// A transcript in memory.
#[derive(Clone, Debug, Default)]
pub struct Log {
    bytes: Vec<u8>,
}

impl Log {
    /// Takes the bytes of a file.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Log {
        Log {
            bytes: bytes.into(),
        }
    }

    /// The bytes, exactly as they came.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Every line in order; the last one may lack its newline.
    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        let mut number = 0;
        let mut at = 0;
        std::iter::from_fn(move || {
            let rest = self.bytes.get(at..).filter(|rest| !rest.is_empty())?;
            let end = memchr(b'\n', rest);
            let bytes = &rest[..end.unwrap_or(rest.len())];
            number += 1;
            let line = Line {
                number,
                offset: at as u64,
                bytes,
                omitted: 0,
                ended: end.is_some(),
            };
            at += bytes.len() + 1;
            Some(line)
        })
    }

    /// A copy in which each line is what `edit` makes of it; `None` drops it, and lines that
    /// are returned as they came keep every byte, line ends included.
    pub fn edited<'a>(&'a self, mut edit: impl FnMut(&Line<'a>) -> Option<Cow<'a, [u8]>>) -> Log {
        let mut out = Vec::with_capacity(self.bytes.len());
        for line in self.lines() {
            let Some(bytes) = edit(&line) else { continue };
            out.extend_from_slice(&bytes);
            if line.ended {
                out.push(b'\n');
            }
        }
        Log { bytes: out }
    }
}

impl TranscriptSource for Log {
    fn bytes(&self, offset: u64, len: usize) -> Option<Cow<'_, [u8]>> {
        let start = usize::try_from(offset).ok()?;
        self.bytes
            .get(start..start.checked_add(len)?)
            .map(Cow::Borrowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(pieces: &[&[u8]]) -> Vec<(u32, u64, Vec<u8>)> {
        let mut splitter = LineSplitter::default();
        let mut lines = Vec::new();
        for piece in pieces {
            splitter.feed(piece, |line| {
                lines.push((line.number, line.offset, line.bytes.to_vec()))
            });
        }
        lines.extend(
            splitter
                .tail()
                .map(|line| (line.number, line.offset, line.bytes.to_vec())),
        );
        lines
    }

    #[test]
    fn any_cutting_of_the_bytes_gives_the_same_lines() {
        let bytes = "{\"a\":1}\r\n\n{\"ü\":\"日\"}\ntorn".as_bytes();
        let whole: Vec<_> = Log::new(bytes)
            .lines()
            .map(|line| (line.number, line.offset, line.bytes.to_vec()))
            .collect();
        assert_eq!(whole.len(), 4);
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(split(&pieces), whole);
            }
        }
    }

    #[test]
    fn any_cutting_of_the_bytes_passes_over_the_same_lines() {
        let bytes = b"short\na line that is longer\nfitting\n\nand a tail that is longer";
        let split = |pieces: &[&[u8]]| {
            let mut splitter = LineSplitter::default().holding(7);
            let mut lines = Vec::new();
            let mut keep = |line: Line<'_>| {
                assert!(line.bytes.is_empty() || !line.is_omitted());
                lines.push((line.offset, line.bytes.to_vec(), line.omitted, line.ended));
            };
            for piece in pieces {
                splitter.feed(piece, &mut keep);
                assert!(splitter.partial.len() <= 7);
            }
            keep(splitter.tail().unwrap());
            lines
        };
        let whole = split(&[bytes]);
        let lengths: Vec<_> = whole.iter().map(|line| (line.0, line.2)).collect();
        assert_eq!(lengths, [(0, 0), (6, 21), (28, 0), (36, 0), (37, 25)]);
        assert_eq!(whole[2].1, b"fitting");
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(split(&pieces), whole);
            }
        }
    }

    #[test]
    fn an_edit_that_changes_nothing_gives_the_same_bytes() {
        for bytes in ["", "\n", "a\nb", "a\r\nb\n", "\u{feff}{}\n\n\nx"] {
            let log = Log::new(bytes);
            assert_eq!(
                log.edited(|line| Some(line.bytes.into())).as_bytes(),
                bytes.as_bytes()
            );
        }
    }

    #[test]
    fn a_line_without_a_newline_is_not_handed_out_early() {
        let mut splitter = LineSplitter::default();
        let mut lines = 0;
        splitter.feed(b"{\"a\":", |_| lines += 1);
        assert_eq!(
            (lines, splitter.tail().map(|line| line.ended)),
            (0, Some(false))
        );
        splitter.feed(b"1}\n", |_| lines += 1);
        assert_eq!((lines, splitter.tail()), (1, None));
    }
}
