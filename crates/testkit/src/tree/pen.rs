//! Writes the lines of one transcript, quickly: pieces are copied into a buffer
//! that goes to the file now and then. Knows the envelope of a line and nothing
//! of what lines are about.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::moment;
use crate::random::Random;

/// The text of a uuid.
pub type Uuid = [u8; 36];

/// A random uuid of version 4.
pub fn uuid(random: &mut Random) -> Uuid {
    let mut text = *b"00000000-0000-4000-a000-000000000000";
    let (mut bits, mut left) = (random.next(), 16);
    for (place, byte) in text.iter_mut().enumerate() {
        if matches!(place, 8 | 13 | 14 | 18 | 19 | 23) {
            continue;
        }
        if left == 0 {
            (bits, left) = (random.next(), 16);
        }
        *byte = b"0123456789abcdef"[(bits & 15) as usize];
        (bits, left) = (bits >> 4, left - 1);
    }
    text
}

/// A uuid as text.
pub fn text(uuid: &Uuid) -> String {
    String::from_utf8_lossy(uuid).into_owned()
}

/// The fields that every line of a thread repeats, and where its next line hangs.
#[derive(Clone, Default)]
pub struct Thread {
    /// From `"isSidechain"` to `"gitBranch"`, ready to copy.
    pub envelope: Vec<u8>,
    /// The line the next one hangs on.
    pub last: Option<Uuid>,
}

/// How the file is kept while it is written.
#[derive(Clone, Copy, PartialEq)]
pub enum Keep {
    /// Everything stays in the buffer until the end, to be read back.
    All,
    /// What was written is forgotten.
    Nothing,
}

/// A transcript being written.
pub struct Pen {
    file: File,
    keep: Keep,
    /// What is not in the file yet.
    pub buffer: Vec<u8>,
    /// The thread that is being written.
    pub thread: Thread,
    /// Finished lines.
    pub lines: u64,
    flushed: u64,
}

impl Pen {
    /// Starts a file, with the folders on the way.
    pub fn create(path: &Path, thread: Thread, keep: Keep) -> io::Result<Pen> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        Ok(Pen {
            file: File::create_new(path)?,
            keep,
            buffer: Vec::new(),
            thread,
            lines: 0,
            flushed: 0,
        })
    }

    /// The size of the file so far.
    pub fn bytes(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// How much of the file has left the buffer.
    pub fn flushed(&self) -> u64 {
        self.flushed
    }

    /// Copies pieces of a line.
    pub fn put(&mut self, pieces: &[&[u8]]) {
        for piece in pieces {
            self.buffer.extend_from_slice(piece);
        }
    }

    /// Writes a number.
    pub fn number(&mut self, value: u64) {
        // Writing to a vector cannot fail.
        let _ = write!(self.buffer, "{value}");
    }

    /// Writes a time with its quotes.
    pub fn time(&mut self, now: u64) {
        let mut time = [0; 24];
        moment::write(now, &mut time);
        self.put(&[b"\"", &time, b"\""]);
    }

    /// Begins a line that hangs on `parent`.
    pub fn open(&mut self, parent: Option<Uuid>) {
        match parent {
            Some(parent) => self.put(&[b"{\"parentUuid\":\"", &parent, b"\","]),
            None => self.put(&[b"{\"parentUuid\":null,"]),
        }
        self.buffer.extend_from_slice(&self.thread.envelope);
    }

    /// Ends a line of the chain: its uuid, its time, and `rest` before the brace.
    pub fn close(&mut self, uuid: Uuid, now: u64, rest: &[&[u8]]) -> io::Result<()> {
        self.put(&[b",\"uuid\":\"", &uuid, b"\",\"timestamp\":"]);
        self.time(now);
        self.put(rest);
        self.thread.last = Some(uuid);
        self.put(&[b"}"]);
        self.end_line()
    }

    /// Ends a line of any kind.
    pub fn end_line(&mut self) -> io::Result<()> {
        self.buffer.push(b'\n');
        self.lines += 1;
        let is_full = self.buffer.len() > 1 << 20;
        if is_full && self.keep == Keep::Nothing {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Finishes the file and gives it the time of its last line.
    pub fn finish(&mut self, now: u64) -> io::Result<()> {
        self.flush()?;
        self.file
            .set_modified(SystemTime::UNIX_EPOCH + Duration::from_millis(now))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.buffer)?;
        self.flushed += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}
