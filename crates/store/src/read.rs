//! A file on disk to a session, at the speed of the machine.
//!
//! The file is cut at newlines into pieces of a quarter of a megabyte, which go through reused
//! buffers. A small file is folded as it is read; of a large one, several threads decode
//! pieces while this one folds them in order, with few pieces in flight, so a file of any
//! size takes little memory. A line may be longer than a piece; while a long one is on its
//! way, nothing else is read. A line that is too long to be held
//! ([`unspool_model::log::LONGEST_LINE`]) is passed over and becomes a fault.
//!
//! What counts is what the file held when it was opened. If that ended within a line and
//! the rest has arrived since, the line is read to its end; later lines wait for the next
//! read. A file that shrinks meanwhile ends where it ends; one that vanishes is read on.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use memchr::{memchr_iter, memrchr};
use unspool_model::edit::redact::Redactor;
use unspool_model::entry::{self, DecodedLine};
use unspool_model::log::{LONGEST_LINE, Line, LineSplitter};
use unspool_model::session::{LineRetention, Session, TranscriptRole};

use crate::error::StoreError;
use crate::line_buffers::{LineBuffer, LineBufferReader, NextLines, OversizedLine, line_start};
use crate::open::{self, FileSource, MaskedLine, MaskedObjects};
use crate::parallel;

/// A session and where its bytes are.
#[derive(Debug)]
pub struct LoadedSession {
    /// What the lines mean.
    pub session: Session,
    /// Where texts and payloads are read from.
    pub source: FileSource,
    /// Where reading ended: the size of the file, unless it shrank.
    pub bytes: u64,
    /// How many lines ended, of those that were read.
    pub lines: u32,
    /// Where reading began: 0 unless only the end was read. Line numbers count from there;
    /// [`FileSource::lines_before`] says what to add.
    pub start: u64,
}

impl LoadedSession {
    fn new(folded: FoldedRange, start: u64, source: FileSource) -> LoadedSession {
        LoadedSession {
            session: folded.session,
            source: source.masked(folded.masked),
            bytes: folded.end.max(start),
            lines: folded.lines,
            start,
        }
    }

    /// Whether only the end of the file was read.
    pub fn is_partial(&self) -> bool {
        self.start > 0
    }

    /// Takes in a line that was added since, as `reader` would have read it.
    pub fn push(&mut self, line: &Line<'_>, reader: &SessionReader) {
        self.lines = line.number;
        self.bytes = line.end();
        if line.is_omitted() {
            self.session.push(line);
            return;
        }
        let masked = reader.masked(line.bytes);
        let bytes = masked.as_ref().map_or(line.bytes, |masked| &masked.bytes);
        let decoded = entry::decode(bytes);
        if let Some(masked) = &masked {
            self.source.keep(line.offset, masked, &decoded);
        }
        self.session
            .take(line.number, line.offset, bytes.len() as u64, decoded);
    }
}

/// Reads a whole file.
pub fn read(path: &Path, role: TranscriptRole) -> Result<LoadedSession, StoreError> {
    SessionReader::default().read(path, role)
}

/// Reads only the start of a file: the lines that begin in its first `bytes` bytes.
pub fn read_start(
    path: &Path,
    role: TranscriptRole,
    bytes: u64,
) -> Result<LoadedSession, StoreError> {
    SessionReader::default().read_start(path, role, bytes)
}

/// Reads only the end of a file: its last `turns` turns, which begin within its last
/// `at_most` bytes, else as much as that.
pub fn read_end(
    path: &Path,
    role: TranscriptRole,
    turns: usize,
    at_most: u64,
) -> Result<LoadedSession, StoreError> {
    SessionReader::default().read_end(path, role, turns, at_most)
}

/// How to read. The result is the same for all settings but the last three.
#[derive(Clone, Copy, Debug)]
pub struct SessionReader {
    /// About how many bytes to read at once.
    pub piece: usize,
    /// Files up to this size are read by one thread.
    pub alone: u64,
    /// How many threads decode the pieces of a larger file.
    pub threads: usize,
    /// How many bytes of the end to look at first.
    pub window: u64,
    /// What to do with bytes behind the last newline.
    pub ending: TrailingBytes,
    /// What takes the secrets out of each line before anybody sees it. Records keep the
    /// places of the file, and their bytes are those without secrets: for screens only.
    pub mask: Option<&'static Redactor>,
    /// What is kept of the lines.
    pub keeps: LineRetention,
    /// Lines of more than so many bytes are passed over. Everything but a test leaves it at
    /// [`LONGEST_LINE`].
    pub longest: usize,
}

/// What bytes behind the last newline are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrailingBytes {
    /// All there is: a line that was not ended, or a torn one.
    #[default]
    Final,
    /// A line that is being written; somebody follows the file from here on.
    Growing,
}

impl Default for SessionReader {
    fn default() -> SessionReader {
        SessionReader {
            piece: 1 << 18,
            alone: 8 << 20,
            threads: parallel::threads(),
            window: 1 << 20,
            ending: TrailingBytes::Final,
            mask: None,
            keeps: LineRetention::All,
            longest: LONGEST_LINE,
        }
    }
}

impl SessionReader {
    /// Reads what is to be edited.
    pub fn to_edit() -> SessionReader {
        SessionReader {
            keeps: LineRetention::Structure,
            ..SessionReader::default()
        }
    }

    /// Reads a whole file.
    pub fn read(&self, path: &Path, role: TranscriptRole) -> Result<LoadedSession, StoreError> {
        self.read_start(path, role, u64::MAX)
    }

    /// Reads the start of a file, see [`read_start`].
    pub fn read_start(
        &self,
        path: &Path,
        role: TranscriptRole,
        bytes: u64,
    ) -> Result<LoadedSession, StoreError> {
        let (file, metadata) = open::open(path)?;
        let folded = self.fold(&file, 0, metadata.len().min(bytes), role);
        let folded = folded.map_err(|why| StoreError::io(path, why))?;
        let source = FileSource::new(path, file, &metadata);
        Ok(LoadedSession::new(folded, 0, source))
    }

    /// Reads a file from the line on that begins at `start`.
    pub fn read_from(
        &self,
        path: &Path,
        role: TranscriptRole,
        start: u64,
    ) -> Result<LoadedSession, StoreError> {
        let (file, metadata) = open::open(path)?;
        let folded = self.fold(&file, start, metadata.len(), role);
        let folded = folded.map_err(|why| StoreError::io(path, why))?;
        let source = FileSource::new(path, file, &metadata);
        Ok(LoadedSession::new(folded, start, source))
    }

    /// Reads the end of a file, see [`read_end`].
    pub fn read_end(
        &self,
        path: &Path,
        role: TranscriptRole,
        turns: usize,
        at_most: u64,
    ) -> Result<LoadedSession, StoreError> {
        let (file, metadata) = open::open(path)?;
        let folded = self.fold_end(&file, metadata.len(), role, turns, at_most);
        let (folded, start) = folded.map_err(|why| StoreError::io(path, why))?;
        let source = FileSource::new(path, file, &metadata);
        Ok(LoadedSession::new(folded, start, source))
    }

    fn fold_end(
        &self,
        file: &File,
        size: u64,
        role: TranscriptRole,
        turns: usize,
        at_most: u64,
    ) -> io::Result<(FoldedRange, u64)> {
        let mut window = self.window.max(1);
        loop {
            window = window.min(at_most.max(1));
            let start = line_start(file, size.saturating_sub(window), size)?;
            let folded = self.fold(file, start, size, role)?;
            match first_of_last(&folded.session, turns.max(1)) {
                Some(first) if first > start => {
                    return Ok((self.fold(file, first, size, role)?, first));
                }
                None if start > 0 && window < at_most => window = window.saturating_mul(4),
                _ => return Ok((folded, start)),
            }
        }
    }

    /// A line without its secrets, if it has any and they are to be masked.
    fn masked(&self, line: &[u8]) -> Option<MaskedLine> {
        let redactor = self.mask?;
        redactor.line(line).map(|redacted| MaskedLine {
            bytes: redacted.bytes,
            length: line.len(),
            redactor,
        })
    }

    /// Folds the lines that begin in `start..size`.
    fn fold(
        &self,
        file: &File,
        start: u64,
        size: u64,
        role: TranscriptRole,
    ) -> io::Result<FoldedRange> {
        let pieces = LineBufferReader::new(file, start, size, self.piece).holding(self.longest);
        if size.saturating_sub(start) <= self.alone || self.threads < 2 {
            return fold_alone(pieces, role, self);
        }
        fold_together(pieces, (start, size - start), role, self)
    }
}

/// Where the first of the last `turns` turns begins, if there are as many.
fn first_of_last(session: &Session, turns: usize) -> Option<u64> {
    let mut own = session.turns.iter().rev().filter(|turn| turn.thread == 0);
    let turn = own.nth(turns - 1)?;
    // The record may stand behind another one on its line.
    let line = session.records[turn.record as usize].line;
    let at = session.records.partition_point(|record| record.line < line);
    session.records.get(at).map(|record| record.offset)
}

/// What a fold of a range of the file gives.
struct FoldedRange {
    session: Session,
    /// Behind the last byte that was taken in.
    end: u64,
    /// How many lines ended.
    lines: u32,
    /// Lines that lost a secret.
    masked: MaskedObjects,
}

impl FoldedRange {
    fn new(role: TranscriptRole, reader: &SessionReader) -> FoldedRange {
        FoldedRange {
            session: Session::keeping(role, reader.keeps),
            end: 0,
            lines: 0,
            masked: MaskedObjects::default(),
        }
    }

    /// Takes in a line that somebody decoded; what it was without its secrets, if it had any.
    fn take(&mut self, offset: u64, len: usize, decoded: DecodedLine, masked: Option<MaskedLine>) {
        if let Some(masked) = masked {
            self.masked.keep(offset, &masked, &decoded);
        }
        self.lines += 1;
        self.session.take(self.lines, offset, len as u64, decoded);
    }

    /// Takes in a line that was passed over.
    fn pass(&mut self, passed: OversizedLine, reader: &SessionReader) {
        self.end = passed.end();
        let line = passed.line(self.lines + 1);
        match passed.ended {
            true => {
                self.lines += 1;
                self.session.push(&line);
            }
            false => self.finish(Some(&line), reader),
        }
    }

    /// Takes in what stands behind the last newline, or leaves it to a later read.
    fn finish(&mut self, tail: Option<&Line<'_>>, reader: &SessionReader) {
        match (tail, reader.ending) {
            (Some(tail), TrailingBytes::Final) if tail.is_omitted() => {
                self.session.push_tail(tail);
            }
            (Some(tail), TrailingBytes::Final) => match reader.masked(tail.bytes) {
                Some(masked) => {
                    let decoded = entry::decode(&masked.bytes);
                    self.masked.keep(tail.offset, &masked, &decoded);
                    let bytes = masked.bytes.as_slice();
                    self.session.push_tail(&Line { bytes, ..*tail });
                }
                None => {
                    self.session.push_tail(tail);
                }
            },
            (Some(tail), TrailingBytes::Growing) => self.end = tail.offset,
            (None, _) => {}
        }
    }
}

thread_local! {
    static PIECE: RefCell<LineBuffer> = RefCell::default();
}

/// A buffer that one very long line has made larger than this is not kept.
const KEPT: usize = 8 << 20;

/// A piece of more bytes than this goes alone through the threads.
const LARGE: usize = 4 << 20;

fn fold_alone(
    mut pieces: LineBufferReader<'_>,
    role: TranscriptRole,
    reader: &SessionReader,
) -> io::Result<FoldedRange> {
    let mut piece = PIECE.take();
    let mut folded = FoldedRange::new(role, reader);
    while let Some(next) = pieces.next(&mut piece)? {
        let offset = match next {
            NextLines::Lines(offset) => offset,
            NextLines::Passed(line) => {
                folded.pass(line, reader);
                continue;
            }
        };
        folded.end = offset + piece.len as u64;
        let mut splitter = LineSplitter::starting_at(folded.lines, offset);
        splitter.feed(piece.bytes(), |line| {
            let masked = reader.masked(line.bytes);
            let bytes = masked.as_ref().map_or(line.bytes, |masked| &masked.bytes);
            folded.take(line.offset, bytes.len(), entry::decode(bytes), masked);
        });
        folded.finish(splitter.tail().as_ref(), reader);
    }
    if piece.buffer.len() <= KEPT {
        PIECE.set(piece);
    }
    Ok(folded)
}

/// How many bytes tell how many lines the rest of a file has, and how much more room than that
/// is made: room that nobody enters takes no memory.
const SAMPLE: u64 = 4 << 20;
const ROOM: f64 = 1.25;

/// A piece on its way to be decoded and back. Its memory is used again.
#[derive(Default)]
struct DecodeJob {
    offset: u64,
    piece: LineBuffer,
    /// The line that was passed over, in place of a piece.
    passed: Option<OversizedLine>,
    /// Where each line began, how long it was and what it held.
    lines: Vec<(u64, usize, DecodedLine, Option<MaskedLine>)>,
}

/// Reads and decodes on several threads and folds on this one, in order.
fn fold_together(
    mut pieces: LineBufferReader<'_>,
    (start, all): (u64, u64),
    role: TranscriptRole,
    reader: &SessionReader,
) -> io::Result<FoldedRange> {
    let spare: Mutex<Vec<DecodeJob>> = Mutex::default();
    let spares = || spare.lock().unwrap_or_else(PoisonError::into_inner);
    let next = || {
        let mut job = spares().pop().unwrap_or_default();
        let next = pieces.next(&mut job.piece)?;
        Ok(next.map(|next| match next {
            NextLines::Lines(offset) => DecodeJob { offset, ..job },
            NextLines::Passed(line) => {
                job.piece.shrink(reader.piece);
                let passed = Some(line);
                DecodeJob { passed, ..job }
            }
        }))
    };
    let is_large = |job: &DecodeJob| job.piece.len > LARGE;
    let mut folded = FoldedRange::new(role, reader);
    let mut roomy = false;
    let decode = |job| decode(job, reader);
    parallel::in_order_by_size(
        reader.threads,
        next,
        is_large,
        decode,
        |mut job: DecodeJob| {
            take(&mut folded, &mut job, reader);
            let done = folded.end.saturating_sub(start);
            if !roomy && done >= SAMPLE {
                roomy = true;
                folded.session.make_room(ROOM * all as f64 / done as f64);
            }
            if job.piece.buffer.len() <= KEPT {
                spares().push(job);
            }
            Ok::<(), io::Error>(())
        },
    )?;
    Ok(folded)
}

fn decode(mut job: DecodeJob, reader: &SessionReader) -> DecodeJob {
    let mut start = 0;
    for end in memchr_iter(b'\n', job.piece.bytes()) {
        let line = &job.piece.bytes()[start..end];
        let masked = reader.masked(line);
        let line = masked.as_ref().map_or(line, |masked| &masked.bytes);
        let (decoded, len) = (entry::decode(line), line.len());
        job.lines
            .push((job.offset + start as u64, len, decoded, masked));
        start = end + 1;
    }
    job
}

/// Folds a decoded piece.
fn take(folded: &mut FoldedRange, job: &mut DecodeJob, reader: &SessionReader) {
    if let Some(line) = job.passed.take() {
        return folded.pass(line, reader);
    }
    let bytes = job.piece.bytes();
    folded.end = job.offset + bytes.len() as u64;
    for (offset, len, decoded, masked) in job.lines.drain(..) {
        folded.take(offset, len, decoded, masked);
    }
    let last = memrchr(b'\n', bytes).map_or(0, |at| at + 1);
    let tail = Line {
        number: folded.lines + 1,
        offset: job.offset + last as u64,
        bytes: &bytes[last..],
        omitted: 0,
        ended: false,
    };
    folded.finish((!tail.bytes.is_empty()).then_some(&tail), reader);
}
