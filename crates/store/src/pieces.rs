//! A file as pieces of whole lines, through buffers that are used again.
//!
//! Everything that reads a transcript from front to back takes it from here: the fold
//! ([`crate::read`]), the scans ([`crate::scan`]) and what writes it anew
//! ([`crate::rewrite`]).

use std::fs::File;
use std::io;

use memchr::{memchr, memrchr};

use crate::open;

/// The start of the first line that begins at `from` or later.
pub(crate) fn line_start(file: &File, from: u64, size: u64) -> io::Result<u64> {
    if from == 0 {
        return Ok(0);
    }
    let mut at = from - 1;
    let mut buffer = [0; 64 << 10];
    while at < size {
        let read = open::read_at(file, &mut buffer, at)?;
        if let Some(found) = memchr(b'\n', &buffer[..read]) {
            return Ok(at + found as u64 + 1);
        }
        if read == 0 {
            break;
        }
        at += read as u64;
    }
    Ok(size)
}

/// Bytes in a buffer that is used again and again.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    /// Only ever grows, so that it is not filled with zeros for each piece.
    pub(crate) buffer: Vec<u8>,
    /// Where the bytes begin in it.
    start: usize,
    pub(crate) len: usize,
}

/// Bytes that a processor moves at once.
const STRIDE: usize = 64;

impl Piece {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.start + self.len]
    }

    /// Empties it, with room for `held` bytes and for `want` more that stand at `at` in their file.
    ///
    /// Those are put where their place in memory is like that in the file, counted in strides.
    /// Some processors take more than three times as long to copy a page to an address that is
    /// a few bytes further in its page, which is where a fresh buffer lies.
    fn clear(&mut self, held: usize, want: usize, at: u64) {
        self.len = 0;
        self.start = 0;
        self.room(STRIDE + held + want);
        let stride = STRIDE as u64;
        let place = (self.buffer.as_ptr().addr() + held) as u64 % stride;
        self.start = ((at % stride + stride - place) % stride) as usize;
    }

    /// Empties it, and gives back what is more than this.
    pub(crate) fn shrink(&mut self, most: usize) {
        (self.start, self.len) = (0, 0);
        self.buffer.truncate(most);
        self.buffer.shrink_to(most);
    }

    fn add(&mut self, bytes: &[u8]) {
        self.room(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    fn room(&mut self, want: usize) -> &mut [u8] {
        let end = self.start + self.len;
        if self.buffer.len() < end + want {
            self.buffer.resize(end + want, 0);
        }
        &mut self.buffer[end..end + want]
    }
}

/// A file cut at newlines.
pub(crate) struct Pieces<'a> {
    file: &'a File,
    /// Where the next bytes are read.
    at: u64,
    /// Where the file ended when it was opened.
    size: u64,
    step: usize,
    /// A line that goes on behind that end is not read on.
    ends_there: bool,
    /// The start of a line whose end was not in the last piece.
    carry: Vec<u8>,
}

impl<'a> Pieces<'a> {
    /// The lines that begin in `start..size`; a line begins at `start`.
    pub(crate) fn new(file: &'a File, start: u64, size: u64, step: usize) -> Pieces<'a> {
        Pieces {
            file,
            at: start,
            size,
            step: step.max(1),
            ends_there: false,
            carry: Vec::new(),
        }
    }

    /// The same, and nothing that stands behind.
    pub(crate) fn within(file: &'a File, start: u64, end: u64, step: usize) -> Pieces<'a> {
        Pieces {
            ends_there: true,
            ..Pieces::new(file, start, end, step)
        }
    }

    /// Fills `piece` with the next whole lines and gives the offset of the first; `None`
    /// at the end. Only the last piece may end without a newline.
    pub(crate) fn next(&mut self, piece: &mut Piece) -> io::Result<Option<u64>> {
        let start = self.at - self.carry.len() as u64;
        piece.clear(self.carry.len(), self.step(self.carry.len()), self.at);
        piece.add(&self.carry);
        self.carry.clear();
        loop {
            let had = piece.len;
            if self.more(piece)? == 0 {
                return Ok((had > 0).then_some(start));
            }
            if let Some(last) = memrchr(b'\n', &piece.bytes()[had..]) {
                let end = had + last + 1;
                self.carry.extend_from_slice(&piece.bytes()[end..]);
                piece.len = end;
                return Ok(Some(start));
            }
        }
    }

    /// Adds bytes, up to a step of them.
    fn more(&mut self, piece: &mut Piece) -> io::Result<usize> {
        if self.at >= self.size {
            return self.rest_of_line(piece);
        }
        self.add(piece, self.step(piece.len))
    }

    /// How much to read behind so many bytes that belong to the same line.
    fn step(&self, held: usize) -> usize {
        let left = usize::try_from(self.size.saturating_sub(self.at)).unwrap_or(usize::MAX);
        // A line longer than a step is read in ever larger ones.
        self.step.max(held).min(left)
    }

    /// A line that was cut by the end the file once had, if it has grown since.
    fn rest_of_line(&mut self, piece: &mut Piece) -> io::Result<usize> {
        let had = piece.len;
        if had == 0 || self.ends_there {
            return Ok(0);
        }
        let read = self.add(piece, self.step)?;
        let Some(end) = memchr(b'\n', &piece.bytes()[had..]) else {
            return Ok(read);
        };
        piece.len = had + end + 1;
        self.at = self.at - read as u64 + end as u64 + 1;
        Ok(end + 1)
    }

    fn add(&mut self, piece: &mut Piece, want: usize) -> io::Result<usize> {
        let read = open::read_at(self.file, piece.room(want), self.at)?;
        piece.len += read;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// The pieces of a file of such lines, and whether each lay in memory as it does in the file.
    fn read(text: &str, step: usize) -> (Vec<u8>, Vec<bool>) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let mut pieces = Pieces::new(&file, 0, text.len() as u64, step);
        let mut piece = Piece::default();
        let (mut all, mut alike) = (Vec::new(), Vec::new());
        while let Some(offset) = pieces.next(&mut piece).unwrap() {
            assert_eq!(offset, all.len() as u64);
            let place = piece.bytes().as_ptr().addr() as u64;
            alike.push(place % STRIDE as u64 == offset % STRIDE as u64);
            all.extend_from_slice(piece.bytes());
        }
        (all, alike)
    }

    #[test]
    fn pieces_lie_in_memory_as_they_do_in_their_file() {
        let text: String = (0..5_000).map(|n| "y".repeat(n % 83) + "\n").collect();
        for step in [4096, 5000, 64 << 10] {
            let (all, alike) = read(&text, step);
            assert_eq!(all, text.as_bytes());
            assert!(
                alike.len() > 2 && alike.iter().all(|alike| *alike),
                "{alike:?}"
            );
        }
    }

    #[test]
    fn a_line_that_goes_on_behind_the_end_is_read_on_unless_nothing_may_be() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"one\ntwo\nthree\n").unwrap();
        let read = |mut pieces: Pieces<'_>| {
            let (mut piece, mut all) = (Piece::default(), Vec::new());
            while pieces.next(&mut piece).unwrap().is_some() {
                all.extend_from_slice(piece.bytes());
            }
            all
        };
        assert_eq!(read(Pieces::new(&file, 0, 6, 4)), b"one\ntwo\n");
        assert_eq!(read(Pieces::within(&file, 0, 6, 4)), b"one\ntw");
    }

    #[test]
    fn a_line_longer_than_a_step_comes_whole() {
        let text = format!("{}\nshort\n{}", "a".repeat(10_000), "b".repeat(3_000));
        for step in [1, 7, 64, 100, 4096] {
            assert_eq!(read(&text, step).0, text.as_bytes(), "step {step}");
        }
    }
}
