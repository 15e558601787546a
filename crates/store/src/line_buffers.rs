//! A file as pieces of whole lines, through buffers that are used again.
//!
//! Everything that reads a transcript from front to back takes it from here: the fold
//! ([`crate::read`]), the scans ([`crate::scan`]) and what writes it anew
//! ([`crate::rewrite`]).
//!
//! A line that is too long to be held is passed over: only its place and its length are told.

use std::fs::File;
use std::io;

use memchr::{memchr, memrchr};
use unspool_model::log::{LONGEST_LINE, Line};

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
        at = open::behind_hole(file, at + read as u64);
    }
    Ok(size)
}

/// A line that is too long to be held: where it stands, and nothing of what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OversizedLine {
    /// Where it begins in the file.
    pub offset: u64,
    /// How many bytes it has, without its newline.
    pub length: u64,
    /// Whether a newline followed.
    pub ended: bool,
}

impl OversizedLine {
    /// The line without its bytes.
    pub(crate) fn line(self, number: u32) -> Line<'static> {
        Line {
            number,
            offset: self.offset,
            bytes: &[],
            omitted: self.length,
            ended: self.ended,
        }
    }

    /// Where the next line begins, or would begin.
    pub fn end(&self) -> u64 {
        self.offset + self.length + u64::from(self.ended)
    }
}

/// What comes next in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextLines {
    /// Whole lines, which are in the piece; the offset of the first.
    Lines(u64),
    /// A line that was passed over.
    Passed(OversizedLine),
}

/// Bytes in a buffer that is used again and again.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    /// Only ever grows, so that it is not filled with zeros for each piece.
    pub(crate) buffer: Vec<u8>,
    /// Where the bytes begin in it.
    start: usize,
    pub(crate) len: usize,
}

/// Bytes that a processor moves at once.
const STRIDE: usize = 64;

impl LineBuffer {
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
            if self.buffer.capacity() < end + want {
                // Twice as much, but not far beyond the longest line there is.
                let much = (2 * self.buffer.len()).min(LONGEST_LINE + LARGE_STEP);
                let more = much.max(end + want) - self.buffer.len();
                self.buffer.reserve_exact(more);
            }
            self.buffer.resize(end + want, 0);
        }
        &mut self.buffer[end..end + want]
    }
}

/// How much is read at once of a line that is longer than a piece. What stands behind such a
/// line is read with it, and held twice.
const LARGE_STEP: usize = 1 << 20;

/// Where the next newline stands at `from` or later, or where the file ends, but not behind
/// `until`; and whether there is a newline.
fn newline(file: &File, from: u64, until: u64) -> io::Result<(u64, bool)> {
    let mut at = from;
    let mut buffer = vec![0; LARGE_STEP];
    loop {
        at = open::behind_hole(file, at).min(until);
        let left = usize::try_from(until - at).unwrap_or(usize::MAX);
        let want = left.min(buffer.len());
        let read = open::read_at(file, &mut buffer[..want], at)?;
        if read == 0 {
            return Ok((at, false));
        }
        if let Some(found) = memchr(b'\n', &buffer[..read]) {
            return Ok((at + found as u64, true));
        }
        at += read as u64;
    }
}

/// A file cut at newlines.
pub(crate) struct LineBufferReader<'a> {
    file: &'a File,
    /// Where the next bytes are read.
    at: u64,
    /// Where the file ended when it was opened.
    size: u64,
    step: usize,
    /// A line that goes on behind that end is not read on.
    ends_there: bool,
    /// Longer lines are passed over.
    longest: usize,
    /// The start of a line whose end was not in the last piece.
    carry: Vec<u8>,
}

impl<'a> LineBufferReader<'a> {
    /// The lines that begin in `start..size`; a line begins at `start`.
    pub(crate) fn new(file: &'a File, start: u64, size: u64, step: usize) -> LineBufferReader<'a> {
        LineBufferReader {
            file,
            at: start,
            size,
            step: step.max(1),
            ends_there: false,
            longest: LONGEST_LINE,
            carry: Vec::new(),
        }
    }

    /// The same, and nothing that stands behind.
    pub(crate) fn within(
        file: &'a File,
        start: u64,
        end: u64,
        step: usize,
    ) -> LineBufferReader<'a> {
        LineBufferReader {
            ends_there: true,
            ..LineBufferReader::new(file, start, end, step)
        }
    }

    /// The same, which passes over lines of more than so many bytes.
    pub(crate) fn holding(self, longest: usize) -> LineBufferReader<'a> {
        LineBufferReader { longest, ..self }
    }

    /// The file.
    pub(crate) fn file(&self) -> &'a File {
        self.file
    }

    /// Fills `piece` with the next whole lines, or passes over one line that is too long; `None`
    /// at the end. Only the last piece may end without a newline.
    pub(crate) fn next(&mut self, piece: &mut LineBuffer) -> io::Result<Option<NextLines>> {
        let start = self.at - self.carry.len() as u64;
        piece.clear(self.carry.len(), self.step(self.carry.len()), self.at);
        piece.add(&self.carry);
        self.carry.clear();
        loop {
            let had = piece.len;
            if self.more(piece)? == 0 {
                return Ok((had > 0).then_some(NextLines::Lines(start)));
            }
            if let Some(last) = memrchr(b'\n', &piece.bytes()[had..]) {
                let end = had + last + 1;
                self.carry.extend_from_slice(&piece.bytes()[end..]);
                piece.len = end;
                return Ok(Some(NextLines::Lines(start)));
            }
            if piece.len > self.longest {
                piece.shrink(self.step);
                return self.pass(start).map(|line| Some(NextLines::Passed(line)));
            }
        }
    }

    /// Passes over the rest of the line that began at `start`.
    fn pass(&mut self, start: u64) -> io::Result<OversizedLine> {
        let until = match self.ends_there {
            true => self.size,
            false => u64::MAX,
        };
        let (end, ended) = newline(self.file, self.at, until)?;
        self.at = end + u64::from(ended);
        Ok(OversizedLine {
            offset: start,
            length: end - start,
            ended,
        })
    }

    /// Adds bytes, up to a step of them.
    fn more(&mut self, piece: &mut LineBuffer) -> io::Result<usize> {
        if self.at >= self.size {
            return self.rest_of_line(piece);
        }
        self.add(piece, self.step(piece.len))
    }

    /// How much to read behind so many bytes that belong to the same line.
    fn step(&self, held: usize) -> usize {
        let left = usize::try_from(self.size.saturating_sub(self.at)).unwrap_or(usize::MAX);
        // One byte more tells that a line is too long.
        let room = (self.longest + 1).saturating_sub(held);
        // A line longer than a step is read in larger ones.
        let step = match held > self.step {
            true => self.step.max(LARGE_STEP),
            false => self.step,
        };
        step.min(room).min(left)
    }

    /// A line that was cut by the end the file once had, if it has grown since.
    fn rest_of_line(&mut self, piece: &mut LineBuffer) -> io::Result<usize> {
        let had = piece.len;
        if had == 0 || self.ends_there {
            return Ok(0);
        }
        let room = (self.longest + 1).saturating_sub(had);
        let read = self.add(piece, self.step.min(room))?;
        let Some(end) = memchr(b'\n', &piece.bytes()[had..]) else {
            return Ok(read);
        };
        piece.len = had + end + 1;
        self.at = self.at - read as u64 + end as u64 + 1;
        Ok(end + 1)
    }

    fn add(&mut self, piece: &mut LineBuffer, want: usize) -> io::Result<usize> {
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
        let mut pieces = LineBufferReader::new(&file, 0, text.len() as u64, step);
        let mut piece = LineBuffer::default();
        let (mut all, mut alike) = (Vec::new(), Vec::new());
        while let Some(next) = pieces.next(&mut piece).unwrap() {
            let NextLines::Lines(offset) = next else {
                panic!("{next:?}");
            };
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
        let read = |mut pieces: LineBufferReader<'_>| {
            let (mut piece, mut all) = (LineBuffer::default(), Vec::new());
            while pieces.next(&mut piece).unwrap().is_some() {
                all.extend_from_slice(piece.bytes());
            }
            all
        };
        assert_eq!(read(LineBufferReader::new(&file, 0, 6, 4)), b"one\ntwo\n");
        assert_eq!(read(LineBufferReader::within(&file, 0, 6, 4)), b"one\ntw");
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_never_held() {
        let long = "l".repeat(5_000);
        let text = format!("one\n{long}\ntwo\n{}\nfour\n{long}", "f".repeat(500));
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        for step in [1, 7, 64, 499, 500, 501, 4096] {
            let mut pieces = LineBufferReader::new(&file, 0, text.len() as u64, step).holding(500);
            let (mut piece, mut held, mut passed) = (LineBuffer::default(), Vec::new(), Vec::new());
            let mut at = 0;
            while let Some(next) = pieces.next(&mut piece).unwrap() {
                match next {
                    NextLines::Lines(offset) => {
                        assert_eq!(offset, at);
                        held.extend_from_slice(piece.bytes());
                        at += piece.len as u64;
                    }
                    NextLines::Passed(line) => {
                        assert_eq!(line.offset, at);
                        passed.push((line.length, line.ended));
                        at = line.end();
                    }
                }
                assert!(
                    piece.buffer.len() <= 2 * (STRIDE + 501 + step),
                    "step {step}"
                );
            }
            assert_eq!(at, text.len() as u64);
            let rest = format!("one\ntwo\n{}\nfour\n", "f".repeat(500));
            assert_eq!(held, rest.as_bytes(), "step {step}");
            assert_eq!(passed, [(5_000, true), (5_000, false)], "step {step}");
        }
    }

    #[test]
    fn a_hole_is_passed_over_to_the_line_behind_it() {
        let file = tempfile::tempfile().unwrap();
        let (hole, size) = (3 << 20, (3 << 20) + 8);
        file.set_len(hole).unwrap();
        let mut end = &file;
        std::io::Seek::seek(&mut end, std::io::SeekFrom::End(0)).unwrap();
        end.write_all(b"x\nafter\n").unwrap();
        let mut pieces = LineBufferReader::new(&file, 0, size, 4096).holding(1 << 20);
        let mut piece = LineBuffer::default();
        let passed = OversizedLine {
            offset: 0,
            length: hole + 1,
            ended: true,
        };
        assert_eq!(
            pieces.next(&mut piece).unwrap(),
            Some(NextLines::Passed(passed))
        );
        let next = pieces.next(&mut piece).unwrap();
        assert_eq!(next, Some(NextLines::Lines(hole + 2)));
        assert_eq!(piece.bytes(), b"after\n");
        assert_eq!(line_start(&file, 5, size).unwrap(), hole + 2);
        assert_eq!(line_start(&file, 5, 1 << 20).unwrap(), 1 << 20);
    }

    #[test]
    fn a_line_longer_than_a_step_comes_whole() {
        let text = format!("{}\nshort\n{}", "a".repeat(10_000), "b".repeat(3_000));
        for step in [1, 7, 64, 100, 4096] {
            assert_eq!(read(&text, step).0, text.as_bytes(), "step {step}");
        }
    }
}
