//! What a command wrote: its beginning and its end in memory, the rest in a file, and of what
//! is more than that only the amount.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What is kept of the beginning: as many characters as the model may be told, each of at most
/// four bytes.
const HEAD: usize = 4 * crate::tools::bash::SHOWN;

/// What is kept of the end.
const TAIL: usize = 64 << 10;

/// A file of output grows no further.
pub const FILE: u64 = 100 << 20;

/// Where output goes.
#[derive(Debug)]
pub struct CommandOutput {
    head: Vec<u8>,
    /// At most twice what is kept, so that old bytes are dropped seldom.
    tail: Vec<u8>,
    total: u64,
    lines: u64,
    path: PathBuf,
    file: Option<File>,
    saved: u64,
    fault: Option<io::Error>,
    closed: bool,
}

impl CommandOutput {
    /// Output whose file will be there, once it is needed.
    pub fn new(path: PathBuf) -> CommandOutput {
        CommandOutput {
            head: Vec::new(),
            tail: Vec::new(),
            total: 0,
            lines: 0,
            path,
            file: None,
            saved: 0,
            fault: None,
            closed: false,
        }
    }

    /// From now on everything is in the file as well.
    pub fn to_file(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            let mut file = private(&self.path)?;
            file.write_all(&self.head)?;
            self.saved = self.head.len() as u64;
            self.file = Some(file);
        }
        Ok(())
    }

    /// Takes what came.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.closed {
            return;
        }
        self.total += bytes.len() as u64;
        self.lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        // Before the head is full the file is made from it.
        if self.file.is_none() && self.fault.is_none() && self.total > HEAD as u64 / 4 {
            self.fault = self.to_file().err();
        }
        self.save(bytes);
        let room = HEAD - self.head.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let end = &bytes[bytes.len().saturating_sub(TAIL)..];
        if self.tail.len() + end.len() > 2 * TAIL {
            let keep = TAIL.min(self.tail.len());
            self.tail.drain(..self.tail.len() - keep);
        }
        self.tail.extend_from_slice(end);
    }

    fn save(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else { return };
        let room = usize::try_from(FILE - self.saved).unwrap_or(usize::MAX);
        let part = &bytes[..bytes.len().min(room)];
        match file.write_all(part) {
            Ok(()) => self.saved += part.len() as u64,
            // A full disk must not end the command.
            Err(error) => {
                self.fault = Some(error);
                self.file = None;
            }
        }
    }

    /// Nothing more is wanted.
    pub fn close(&mut self) {
        self.closed = true;
        self.file = None;
    }

    /// How many bytes came.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many lines ended.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// How many bytes are in the file.
    pub fn saved(&self) -> u64 {
        self.saved
    }

    /// Where the file is, if there is one.
    pub fn path(&self) -> Option<&Path> {
        (self.saved > 0 || self.file.is_some()).then_some(&*self.path)
    }

    /// Why not everything could be saved.
    pub fn fault(&self) -> Option<&io::Error> {
        self.fault.as_ref()
    }

    /// All of it, if it is no more than what is kept of the beginning.
    pub fn whole(&self) -> Option<String> {
        (self.total as usize <= self.head.len())
            .then(|| String::from_utf8_lossy(&self.head).into_owned())
    }

    /// The beginning, at most so many characters.
    pub fn head(&self, chars: usize) -> String {
        let bytes = &self.head[..self.head.len().min(4 * chars)];
        String::from_utf8_lossy(bytes).chars().take(chars).collect()
    }

    /// The end, at most so many characters.
    pub fn tail(&self, chars: usize) -> String {
        let keep = self.tail.len().min(4 * chars);
        let mut bytes = &self.tail[self.tail.len() - keep..];
        // Not in the middle of a character.
        let broken = bytes.iter().take_while(|byte| **byte & 0xc0 == 0x80);
        let broken = broken.count().min(3);
        if (keep as u64) < self.total {
            bytes = &bytes[broken..];
        }
        let text = String::from_utf8_lossy(bytes);
        let skip = text.chars().count().saturating_sub(chars);
        text.chars().skip(skip).collect()
    }

    /// What came after the first `from` bytes, and how many of them are no longer in memory.
    pub fn since(&self, from: u64) -> (u64, String) {
        let new = self.total.saturating_sub(from);
        let keep = self
            .tail
            .len()
            .min(usize::try_from(new).unwrap_or(usize::MAX));
        let bytes = &self.tail[self.tail.len() - keep..];
        (
            new - keep as u64,
            String::from_utf8_lossy(bytes).into_owned(),
        )
    }

    /// Forgets the file: nobody was told of it.
    pub fn remove_file(&mut self) {
        if self.path().is_some() {
            self.file = None;
            self.saved = 0;
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A new file that only we can read, in folders that only we can read.
fn private(path: &Path) -> io::Result<File> {
    let mut folders = DirBuilder::new();
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    if let Some(folder) = path.parent() {
        folders.recursive(true).create(folder)?;
    }
    options.write(true).create_new(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output() -> (tempfile::TempDir, CommandOutput) {
        let folder = tempfile::tempdir().unwrap();
        let output = CommandOutput::new(folder.path().join("deep/out.txt"));
        (folder, output)
    }

    #[test]
    fn little_output_needs_no_file() {
        let (_folder, mut output) = output();
        output.push(b"one\ntwo\n");
        assert_eq!(output.whole().as_deref(), Some("one\ntwo\n"));
        assert_eq!((output.path(), output.lines()), (None, 2));
    }

    #[test]
    fn much_output_is_in_a_file_from_its_first_byte() {
        let (_folder, mut output) = output();
        let mut all: Vec<u8> = Vec::new();
        for at in 0..50_000 {
            let line = format!("line {at}\n");
            output.push(line.as_bytes());
            all.extend(line.as_bytes());
        }
        assert_eq!(output.whole(), None);
        assert!(output.head(10).starts_with("line 0\nlin"));
        assert_eq!(output.tail(6), "49999\n");
        assert_eq!(std::fs::read(output.path().unwrap()).unwrap(), all);
        assert_eq!(output.saved(), output.total());
    }

    #[test]
    fn a_file_grows_no_further_than_its_limit_and_the_rest_is_counted() {
        let (_folder, mut output) = output();
        let piece = vec![b'x'; 10 << 20];
        for _ in 0..12 {
            output.push(&piece);
        }
        assert_eq!((output.total(), output.saved()), (120 << 20, FILE));
        assert_eq!(output.path().unwrap().metadata().unwrap().len(), FILE);
    }

    #[test]
    fn the_end_is_not_cut_inside_a_character() {
        let (_folder, mut output) = output();
        output.push("äöü€".repeat(20_000).as_bytes());
        assert_eq!(output.tail(5), "€äöü€");
        assert!(!output.tail(20_000).contains('\u{fffd}'));
    }
}
