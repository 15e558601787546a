//! Opening transcripts without being caught by what else may have their names, and reading
//! single places of them again.
//!
//! A pipe would block us, a device may do anything, a folder cannot be read: only regular
//! files are opened, whatever stands behind a symbolic link.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use unspool_model::edit::redact::Redactor;
use unspool_model::entry::DecodedLine;
use unspool_model::json::Span;
use unspool_model::log::TranscriptSource;

use crate::error::StoreError;

/// Opens a regular file that was found in a walk; never blocks.
pub fn open(path: &Path) -> Result<(File, Metadata), StoreError> {
    let file = options()
        .open(path)
        .map_err(|why| StoreError::io(path, why))?;
    // It may have been exchanged since it was found.
    let metadata = file.metadata().map_err(|why| StoreError::io(path, why))?;
    let metadata = regular(path, metadata)?;
    Ok((file, metadata))
}

/// Looks whether a path that somebody named is a regular file, without opening it: opening
/// some devices already does something.
pub fn stat_regular_file(path: &Path) -> Result<Metadata, StoreError> {
    regular(
        path,
        fs::metadata(path).map_err(|why| StoreError::io(path, why))?,
    )
}

fn regular(path: &Path, metadata: Metadata) -> Result<Metadata, StoreError> {
    if metadata.is_file() {
        return Ok(metadata);
    }
    Err(StoreError::NotAFile {
        path: path.into(),
        what: kind_of(metadata.file_type()),
    })
}

/// What something is that is not a regular file, with its article.
pub fn kind_of(kind: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return "a pipe";
        }
        if kind.is_socket() {
            return "a socket";
        }
        if kind.is_char_device() || kind.is_block_device() {
            return "a device";
        }
    }
    if kind.is_dir() {
        "a folder"
    } else {
        "something else"
    }
}

#[cfg(unix)]
fn options() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const NONBLOCK: i32 = 0o4000;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const NONBLOCK: i32 = 0x4;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(NONBLOCK);
    options
}

#[cfg(not(unix))]
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    options
}

/// Reads at a place without moving any cursor; fewer bytes only at the end of the file.
pub fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match read_once(file, &mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

#[cfg(unix)]
fn read_once(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_once(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

/// Why a file cannot be read on.
pub(crate) fn became_shorter() -> io::Error {
    io::Error::other("the file was truncated while it was read")
}

/// Copies `len` bytes from `offset` on, through a window. Fails if they are no longer there.
pub fn copy_range(file: &File, offset: u64, len: u64, out: &mut dyn io::Write) -> io::Result<()> {
    let mut window = vec![0; 1 << 20];
    let mut left = len;
    while left > 0 {
        let want = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(window.len());
        let read = read_at(file, &mut window[..want], offset + (len - left))?;
        if read == 0 {
            return Err(became_shorter());
        }
        out.write_all(&window[..read])?;
        left -= read as u64;
    }
    Ok(())
}

/// The first place at `at` or later that is not in a hole of the file, or `at` where the system
/// does not say. A hole reads as zeros: no line begins or ends in it.
pub(crate) fn behind_hole(file: &File, at: u64) -> u64 {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    {
        use rustix::fs::SeekFrom;
        match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(data) => data.max(at),
            // There is nothing but a hole up to the end.
            Err(rustix::io::Errno::NXIO) => file.metadata().map_or(at, |it| it.len().max(at)),
            Err(_) => at,
        }
    }
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    {
        let _ = file;
        at
    }
}

/// Whether nothing but a hole is known to stand in `start..end` of a file.
pub fn is_hole(file: &File, start: u64, end: u64) -> bool {
    start < end && behind_hole(file, start) >= end
}

/// What the system says about a file without opening it. When it says the same again, the
/// file is as it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileStamp {
    /// The file on its disk; zero where the system does not say.
    pub identity: u64,
    /// Its size in bytes.
    pub size: u64,
    /// When it was last written, in nanoseconds since 1970.
    pub modified: i64,
}

impl FileStamp {
    /// The stamp in what the system said.
    pub fn of(metadata: &Metadata) -> FileStamp {
        FileStamp {
            identity: identity(metadata),
            size: metadata.len(),
            modified: nanoseconds(metadata),
        }
    }
}

/// When a file was last written, in milliseconds since 1970.
pub fn modified(metadata: &Metadata) -> i64 {
    // Towards zero, as always: a time before 1970 is a mistake anyway.
    nanoseconds(metadata) / 1_000_000
}

/// When a file was made, in milliseconds since 1970, where the disk knows.
pub fn made(metadata: &Metadata) -> Option<i64> {
    let made = metadata.created().ok()?;
    let made = made.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(made.as_millis()).ok()
}

fn nanoseconds(metadata: &Metadata) -> i64 {
    let Ok(time) = metadata.modified() else {
        return 0;
    };
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_nanos()).unwrap_or(i64::MAX),
    }
}

/// What tells a file from another one in its place; zero where the system does not say.
pub fn identity(metadata: &Metadata) -> u64 {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        metadata.dev().rotate_left(40) ^ metadata.ino()
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        0
    }
}

/// A transcript whose lines are read again from disk when somebody looks at them.
///
/// Keeps the file open, so that it can be read even after it was deleted or replaced.
#[derive(Debug)]
pub struct FileSource {
    path: PathBuf,
    file: Option<File>,
    identity: u64,
    masked: MaskedObjects,
}

/// Lines that are not shown as they stand in the file.
#[derive(Debug, Default)]
pub(crate) struct MaskedObjects {
    /// By where the object begins and how long it is.
    objects: HashMap<(u64, usize), MaskedObject>,
}

/// An object that is not shown as it stands in the file.
#[derive(Debug)]
enum MaskedObject {
    /// What is shown.
    Held(Vec<u8>),
    /// The same, made again from its line when somebody looks.
    Again {
        line: u64,
        length: usize,
        span: Span,
        redactor: &'static Redactor,
    },
}

/// A line without its secrets.
#[derive(Debug)]
pub(crate) struct MaskedLine {
    /// The line.
    pub(crate) bytes: Vec<u8>,
    /// How long it is in the file.
    pub(crate) length: usize,
    /// What took the secrets out.
    pub(crate) redactor: &'static Redactor,
}

/// The longest object that is held without its secrets.
const HELD: usize = 256 << 10;

impl MaskedObjects {
    /// Keeps the objects of a line that begins at `offset`.
    pub(crate) fn keep(&mut self, offset: u64, masked: &MaskedLine, decoded: &DecodedLine) {
        for span in decoded.entries.iter().map(|entry| entry.span) {
            let place = (offset + span.start as u64, span.len);
            let object = match span.len > HELD {
                true => MaskedObject::Again {
                    line: offset,
                    length: masked.length,
                    span,
                    redactor: masked.redactor,
                },
                false => MaskedObject::Held(span.of(&masked.bytes).to_vec()),
            };
            self.objects.insert(place, object);
        }
    }
}

impl FileSource {
    pub(crate) fn new(path: &Path, file: File, metadata: &Metadata) -> FileSource {
        FileSource {
            path: path.into(),
            file: Some(file),
            identity: identity(metadata),
            masked: MaskedObjects::default(),
        }
    }

    /// The same file, in which some lines are not shown as they stand there.
    pub(crate) fn masked(self, masked: MaskedObjects) -> FileSource {
        FileSource { masked, ..self }
    }

    /// Keeps a further line that is not shown as it stands in the file.
    pub(crate) fn keep(&mut self, offset: u64, masked: &MaskedLine, decoded: &DecodedLine) {
        self.masked.keep(offset, masked, decoded);
    }

    /// Where it is, or was.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Closes the file and opens it again for each look, as long as it is the same one. For
    /// those who hold hundreds of sessions: a process may have some thousand files open.
    pub fn release(&mut self) {
        self.file = None;
    }

    /// Copies `len` bytes from `offset` on; fails if they are no longer there.
    pub fn copy(&self, offset: u64, len: u64, out: &mut dyn io::Write) -> io::Result<()> {
        self.with_file(|file| copy_range(file, offset, len, out))
    }

    /// How many lines end before `offset`: what to add to the line numbers of a session
    /// that was read from there.
    pub fn lines_before(&self, offset: u64) -> Result<u32, StoreError> {
        self.with_file(|file| count_lines(file, 0, offset))
            .map(|lines| u32::try_from(lines).unwrap_or(u32::MAX))
            .map_err(|why| StoreError::io(&self.path, why))
    }

    pub(crate) fn with_file<T>(&self, job: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        if let Some(file) = &self.file {
            return job(file);
        }
        let (file, metadata) = open(&self.path).map_err(io::Error::other)?;
        if identity(&metadata) != self.identity {
            return Err(io::ErrorKind::NotFound.into());
        }
        job(&file)
    }
}

/// More bytes than nearly all lines have.
const MUCH: usize = 1 << 20;

impl TranscriptSource for FileSource {
    fn bytes(&self, offset: u64, len: usize) -> Option<Cow<'_, [u8]>> {
        match self.masked.objects.get(&(offset, len)) {
            Some(MaskedObject::Held(bytes)) => return Some(Cow::Borrowed(bytes)),
            Some(MaskedObject::Again {
                line,
                length,
                span,
                redactor,
            }) => {
                let line = self.in_file(*line, *length)?;
                let masked = redactor.line(&line)?;
                return Some(Cow::Owned(span.of(&masked.bytes).to_vec()));
            }
            None => {}
        }
        self.in_file(offset, len).map(Cow::Owned)
    }
}

impl FileSource {
    /// Bytes as they stand in the file; `None` if they are no longer there.
    fn in_file(&self, offset: u64, len: usize) -> Option<Vec<u8>> {
        self.with_file(|file| {
            // Asked before much memory is taken: the file may have shrunk.
            if len > MUCH && offset.saturating_add(len as u64) > file.metadata()?.len() {
                return Ok(None);
            }
            let mut bytes = vec![0; len];
            let read = read_at(file, &mut bytes, offset)?;
            Ok((read == len).then_some(bytes))
        })
        .ok()?
    }
}

/// The numbers of the lines that begin at these places, which rise; the file is read once.
pub fn line_numbers(file: &File, places: &[u64]) -> io::Result<Vec<u32>> {
    let (mut at, mut lines) = (0, 0);
    let number = |&place: &u64| {
        lines += count_lines(file, at, place)?;
        at = place;
        Ok(u32::try_from(lines + 1).unwrap_or(u32::MAX))
    };
    places.iter().map(number).collect()
}

/// How many newlines stand in `start..end`.
pub(crate) fn count_lines(file: &File, start: u64, end: u64) -> io::Result<u64> {
    let largest = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
    let mut buffer = vec![0; largest.min(256 << 10)];
    let (mut at, mut lines) = (start, 0);
    while at < end {
        let want = usize::try_from(end - at)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let read = read_at(file, &mut buffer[..want], at)?;
        if read == 0 {
            break;
        }
        let newlines = memchr::memchr_iter(b'\n', &buffer[..read]).count() as u64;
        lines += newlines;
        at += read as u64;
        if newlines == 0 {
            at = behind_hole(file, at);
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_gone_are_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        fs::write(&path, "one\ntwo\n").unwrap();
        let (file, metadata) = open(&path).unwrap();
        let source = FileSource::new(&path, file, &metadata);
        assert_eq!(source.bytes(4, 3).as_deref(), Some(&b"two"[..]));
        assert_eq!(source.bytes(4, 5), None);
        assert_eq!(source.bytes(u64::MAX, 5), None);
        assert_eq!(source.lines_before(4).unwrap(), 1);
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(3)
            .unwrap();
        assert_eq!(source.bytes(4, 3), None);
    }

    #[test]
    fn a_deleted_file_can_still_be_looked_into_unless_released() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        fs::write(&path, "one\ntwo\n").unwrap();
        let (file, metadata) = open(&path).unwrap();
        let mut source = FileSource::new(&path, file, &metadata);
        fs::rename(&path, dir.path().join("b")).unwrap();
        assert_eq!(source.bytes(0, 3).as_deref(), Some(&b"one"[..]));
        source.release();
        assert_eq!(source.bytes(0, 3), None);
        fs::write(&path, "else\n").unwrap();
        assert_eq!(source.bytes(0, 3), None, "another file in its place");
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_refused_and_does_not_block() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jsonl");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let error = open(&path).unwrap_err();
        assert!(error.to_string().ends_with("is a pipe, not a file"));
    }

    #[test]
    fn a_folder_with_the_name_of_a_transcript_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let error = open(dir.path()).unwrap_err();
        assert!(error.to_string().ends_with("is a folder, not a file"));
        let error = open(&dir.path().join("none.jsonl")).unwrap_err();
        assert!(matches!(error, StoreError::MissingFile { .. }));
    }
}
