//! Some lines of a text, however long it is.

use std::io::{self, BufRead};

use twox_hash::XxHash3_128;

use crate::stop::StopSignal;

/// Which lines are wanted.
#[derive(Debug)]
pub struct WantedLines {
    /// The first, counted from 1.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// How many bytes at most.
    pub most: usize,
}

/// The lines.
#[derive(Debug)]
pub struct FileLines {
    /// The lines with newlines between them.
    pub text: String,
    /// How many they are.
    pub count: u64,
    /// How many lines there are in all; what follows the last newline is one. An empty text has
    /// none.
    pub total: u64,
    /// The bytes the wanted lines take.
    pub size: u64,
    /// Whether that is too much; then the text is not all of them.
    pub is_over: bool,
    /// The hash of everything.
    pub hash: u128,
}

impl FileLines {
    /// Reads all there is, keeps what is wanted.
    pub fn of(
        mut reader: impl BufRead,
        wish: &WantedLines,
        stop: &StopSignal,
    ) -> io::Result<FileLines> {
        let mut picked = LineCollector::new(wish);
        let mut hash = XxHash3_128::new();
        let mut first = true;
        loop {
            let bytes = match reader.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if bytes.is_empty() || stop.is_told() {
                break;
            }
            hash.write(bytes);
            let text = match first {
                true => bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes),
                false => bytes,
            };
            first = false;
            picked.take(text);
            let read = bytes.len();
            reader.consume(read);
        }
        Ok(picked.page(hash.finish_128()))
    }

    /// The lines with their numbers.
    pub fn numbered(&self, first: u64) -> String {
        let mut out = String::with_capacity(self.text.len() + 8 * self.count as usize);
        for (at, line) in self.text.split('\n').enumerate() {
            if at > 0 {
                out.push('\n');
            }
            out += &(first + at as u64).to_string();
            out.push('\t');
            out += line;
        }
        out
    }

    /// Keeps whole lines of at most so many bytes, but at least a part of the first.
    pub fn shorten(&mut self, most: usize) {
        let end = self.text.floor_char_boundary(most.min(self.text.len()));
        let line = self.text[..end].rfind('\n').filter(|at| *at > 0);
        self.text.truncate(line.unwrap_or(end));
        self.count = self.text.split('\n').count() as u64;
    }
}

struct LineCollector<'a> {
    wish: &'a WantedLines,
    /// The line that is being read.
    line: u64,
    bytes: Vec<u8>,
    size: u64,
    any: bool,
}

impl LineCollector<'_> {
    fn new(wish: &WantedLines) -> LineCollector<'_> {
        LineCollector {
            wish,
            line: 1,
            bytes: Vec::new(),
            size: 0,
            any: false,
        }
    }

    fn take(&mut self, mut bytes: &[u8]) {
        self.any |= !bytes.is_empty();
        while !bytes.is_empty() {
            let end = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1);
            let (piece, rest) = bytes.split_at(end);
            if self.line >= self.wish.first && self.line - self.wish.first < self.wish.count {
                self.size += piece.len() as u64;
                let room = self.wish.most.saturating_sub(self.bytes.len());
                self.bytes.extend(&piece[..piece.len().min(room)]);
            }
            self.line += u64::from(piece.last() == Some(&b'\n'));
            bytes = rest;
        }
    }

    fn page(self, hash: u128) -> FileLines {
        let total = if self.any { self.line } else { 0 };
        let left = (total + 1).saturating_sub(self.wish.first);
        let count = left.min(self.wish.count);
        let mut text = String::from_utf8_lossy(&self.bytes).into_owned();
        if text.contains('\r') {
            text = text.replace("\r\n", "\n");
        }
        // The newline behind the last line that is wanted is not part of it; the last line of all
        // has none.
        if self.wish.first + count <= total && text.ends_with('\n') {
            text.pop();
        }
        FileLines {
            is_over: self.size > self.wish.most as u64,
            size: self.size,
            text,
            count,
            total,
            hash,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str, first: u64, count: u64) -> FileLines {
        let wish = WantedLines {
            first,
            count,
            most: 1000,
        };
        FileLines::of(text.as_bytes(), &wish, &StopSignal::new()).unwrap()
    }

    #[test]
    fn what_follows_the_last_newline_is_a_line() {
        let page = page("a\nb\n", 1, u64::MAX);
        assert_eq!((page.count, page.total, &*page.text), (3, 3, "a\nb\n"));
        assert_eq!(page.numbered(1), "1\ta\n2\tb\n3\t");
    }

    #[test]
    fn a_part_has_no_newline_behind_it() {
        assert_eq!(page("a\nb\nc\nd", 2, 2).numbered(2), "2\tb\n3\tc");
        assert_eq!(page("a\nb\nc\nd", 4, 9).numbered(4), "4\td");
        assert_eq!(page("a\nb", 3, 1).count, 0);
        assert_eq!(page("", 1, 1).total, 0);
        assert_eq!(page("a\n\nb", 2, 1).numbered(2), "2\t");
    }

    #[test]
    fn the_same_is_read_however_it_comes() {
        let text = "one\r\ntwo€\n\n\nfive\n".repeat(50);
        let whole = page(&text, 7, 20);
        let wish = WantedLines {
            first: 7,
            count: 20,
            most: 1000,
        };
        let pieces = io::BufReader::with_capacity(1, text.as_bytes());
        let other = FileLines::of(pieces, &wish, &StopSignal::new()).unwrap();
        assert_eq!((&whole.text, whole.total), (&other.text, other.total));
        assert_eq!(whole.hash, crate::file::hash(text.as_bytes()));
    }

    #[test]
    fn too_much_is_noticed_and_not_kept() {
        let text = "x".repeat(5000);
        let page = page(&text, 1, 1);
        assert!(page.is_over && page.text.len() <= 1000 && page.size == 5000);
    }
}
