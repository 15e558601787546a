//! Bytes to lines, and back to the same bytes.
//!
//! A [`Line`] is its bytes and the place where they began. [`Splitter`] makes lines of bytes
//! however they arrive, so a file that is read at once and one that is followed while it
//! grows give the same lines. [`Log`] is a whole file in memory; files too large for that are
//! read piece by piece through [`Source`]. Nothing here knows what a line means.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

/// One line without its newline, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Counts from 1, as editors do.
    pub number: u32,
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// The bytes up to, not including, the newline.
    pub bytes: &'a [u8],
    /// Whether a newline followed. Without one the line may still be growing.
    pub ended: bool,
}

/// Cuts bytes into lines, in whatever pieces they come.
#[derive(Clone, Debug, Default)]
pub struct Splitter {
    partial: Vec<u8>,
    number: u32,
    offset: u64,
}

impl Splitter {
    /// A splitter for bytes that begin in mid-file, behind `number` lines and `offset` bytes.
    pub fn starting_at(number: u32, offset: u64) -> Splitter {
        Splitter {
            partial: Vec::new(),
            number,
            offset,
        }
    }

    /// Takes the next bytes and hands out each line that is now complete.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(Line<'_>)) {
        let mut rest = bytes;
        if !self.partial.is_empty() {
            let Some(end) = memchr(b'\n', rest) else {
                self.partial.extend_from_slice(rest);
                return;
            };
            self.partial.extend_from_slice(&rest[..end]);
            let line = std::mem::take(&mut self.partial);
            each(self.next(&line, true));
            rest = &rest[end + 1..];
        }
        let mut start = 0;
        for end in memchr_iter(b'\n', rest) {
            each(self.next(&rest[start..end], true));
            start = end + 1;
        }
        self.partial.extend_from_slice(&rest[start..]);
    }

    /// What stands behind the last newline: no line yet, unless the writer forgot to end it.
    pub fn tail(&self) -> Option<Line<'_>> {
        (!self.partial.is_empty()).then_some(Line {
            number: self.number + 1,
            offset: self.offset,
            bytes: &self.partial,
            ended: false,
        })
    }

    fn next<'a>(&mut self, bytes: &'a [u8], ended: bool) -> Line<'a> {
        self.number += 1;
        let line = Line {
            number: self.number,
            offset: self.offset,
            bytes,
            ended,
        };
        self.offset += bytes.len() as u64 + 1;
        line
    }
}

/// Where the bytes of a transcript can be read again when somebody looks at them, from any
/// thread.
pub trait Source: Sync {
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

impl Source for Log {
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
        let mut splitter = Splitter::default();
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
        let mut splitter = Splitter::default();
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
