//! A transcript through a pen, from file to file, on all cores.
//!
//! Only as far as the session was read: what others add meanwhile belongs to the next copy.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use unspool_model::edit::{LineRewriter, RewriteCounts};
use unspool_model::log::{Line, LineSplitter};

use crate::line_buffers::{LineBuffer, LineBufferReader, NextLines, OversizedLine};
use crate::parallel;
use crate::read::LoadedSession;
use crate::{long_lines, open};

/// How many bytes are read at once.
const STEP: usize = 1 << 18;

/// A chunk of more bytes than this goes alone through the threads.
const LARGE: usize = 4 << 20;

/// What else is done to a line before it is written: gets it without its newline, and gives
/// what stands there instead. Lines come in any order.
pub type FinalLineEdit<'a> = &'a (dyn Fn(&[u8]) -> Option<Vec<u8>> + Sync);

/// Writes the lines of a session as the pen wants them; `polish` has the last word.
pub fn rewrite(
    loaded: &LoadedSession,
    pen: LineRewriter<'_>,
    polish: FinalLineEdit<'_>,
    out: &mut dyn Write,
) -> io::Result<RewriteCounts> {
    rewrite_on(parallel::threads(), loaded, pen, polish, out)
}

/// The same on so many threads, for those who write several sessions at once.
pub fn rewrite_on(
    threads: usize,
    loaded: &LoadedSession,
    pen: LineRewriter<'_>,
    polish: FinalLineEdit<'_>,
    out: &mut dyn Write,
) -> io::Result<RewriteCounts> {
    let spare = SpareBuffers::default();
    loaded.source.with_file(|file| {
        let chunks = LineChunks::new(loaded, file, STEP, &spare);
        rewrite_chunks(chunks, pen, polish, out, threads)
    })
}

/// Several chunks at once, each by a pen of its own; written in order.
fn rewrite_chunks(
    mut chunks: LineChunks<'_>,
    mut pen: LineRewriter<'_>,
    polish: FinalLineEdit<'_>,
    out: &mut dyn Write,
    threads: usize,
) -> io::Result<RewriteCounts> {
    let mut sum = RewriteCounts::default();
    let file = chunks.pieces.file();
    let mut write = |draft: RewrittenChunk| {
        sum += draft.written();
        if let Some(line) = draft.passed {
            let replaced = long_lines::rewrite(file, &line, polish, out)?;
            if replaced.windows > 0 {
                sum.kept -= 1;
                sum.changed += 1;
                sum.after = sum.after + replaced.bytes - line.length;
            }
            return out.write_all(b"\n");
        }
        out.write_all(&draft.bytes)
    };
    let spare = chunks.spare;
    let draft = |chunk: LineChunk| {
        let draft = RewrittenChunk::new(&pen, &chunk, polish);
        spare.put(chunk.piece);
        draft
    };
    parallel::in_order_by_size(
        threads,
        || chunks.next(),
        LineChunk::is_large,
        draft,
        &mut write,
    )?;
    let mut last = RewrittenChunk::default();
    last.written = pen.end(&mut last.bytes);
    last.polish(0, 0, polish);
    write(last)?;
    Ok(sum)
}

/// Whole lines of the file, of which the last one may lack its newline; or one line that is too
/// long to be held.
struct LineChunk {
    piece: LineBuffer,
    passed: Option<OversizedLine>,
    /// Where they begin.
    offset: u64,
    /// How many lines stand before them.
    lines: u32,
}

impl LineChunk {
    /// Whether it takes much memory.
    fn is_large(&self) -> bool {
        self.piece.len > LARGE
    }

    fn lines(&self, mut each: impl FnMut(&Line<'_>)) {
        if let Some(passed) = self.passed {
            return each(&passed.line(self.lines + 1));
        }
        let mut splitter = LineSplitter::starting_at(self.lines, self.offset);
        splitter.feed(self.piece.bytes(), |line| each(&line));
        if let Some(tail) = splitter.tail() {
            each(&tail);
        }
    }
}

/// Memory for further chunks.
#[derive(Default)]
struct SpareBuffers(Mutex<Vec<LineBuffer>>);

impl SpareBuffers {
    fn pieces(&self) -> MutexGuard<'_, Vec<LineBuffer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, piece: LineBuffer) {
        if piece.buffer.len() <= 2 * STEP {
            self.pieces().push(piece);
        }
    }
}

/// The file as chunks of whole lines, as far as the session was read.
struct LineChunks<'a> {
    pieces: LineBufferReader<'a>,
    spare: &'a SpareBuffers,
    /// How far it was read.
    end: u64,
    /// Where the next chunk begins, and how many lines stand before it.
    at: u64,
    lines: u32,
}

impl<'a> LineChunks<'a> {
    fn new(
        loaded: &LoadedSession,
        file: &'a File,
        step: usize,
        spare: &'a SpareBuffers,
    ) -> LineChunks<'a> {
        LineChunks {
            pieces: LineBufferReader::within(file, loaded.start, loaded.bytes, step),
            spare,
            end: loaded.bytes,
            at: loaded.start,
            lines: 0,
        }
    }

    fn next(&mut self) -> io::Result<Option<LineChunk>> {
        let mut piece = self.spare.pieces().pop().unwrap_or_default();
        let lines = self.lines;
        let offset = match self.pieces.next(&mut piece)? {
            Some(NextLines::Lines(offset)) => offset,
            Some(NextLines::Passed(line)) => {
                piece.shrink(STEP);
                self.lines += 1;
                self.at = line.end();
                return Ok(Some(LineChunk {
                    piece,
                    passed: Some(line),
                    offset: line.offset,
                    lines,
                }));
            }
            None => {
                return match self.at == self.end {
                    true => Ok(None),
                    false => Err(open::became_shorter()),
                };
            }
        };
        self.lines += memchr::memchr_iter(b'\n', piece.bytes()).count() as u32;
        self.at = offset + piece.len as u64;
        Ok(Some(LineChunk {
            piece,
            passed: None,
            offset,
            lines,
        }))
    }
}

/// What becomes of a chunk.
#[derive(Default)]
struct RewrittenChunk {
    bytes: Vec<u8>,
    /// The line that is copied as it is, in place of these bytes.
    passed: Option<OversizedLine>,
    /// What the pen did.
    written: RewriteCounts,
    /// How many lines that the pen kept were polished.
    polished: u64,
    /// How many bytes polishing added, and how many it took.
    added: u64,
    taken: u64,
}

impl RewrittenChunk {
    fn new(pen: &LineRewriter<'_>, chunk: &LineChunk, polish: FinalLineEdit<'_>) -> RewrittenChunk {
        let mut pen = pen.from_line(chunk.lines + 1);
        let mut draft = RewrittenChunk {
            bytes: Vec::with_capacity(chunk.piece.len + chunk.piece.len / 16),
            passed: chunk.passed,
            ..RewrittenChunk::default()
        };
        chunk.lines(|line| {
            let (start, before) = (draft.bytes.len(), pen.written().kept);
            pen.line(line, &mut draft.bytes);
            draft.polish(start, pen.written().kept - before, polish);
        });
        draft.written = pen.written();
        draft
    }

    /// Polishes what became of a line, from `start` on; whether the pen kept it.
    fn polish(&mut self, start: usize, kept: u64, polish: FinalLineEdit<'_>) {
        // The last line is that of the file, those in front of it were put in.
        let mut changed = false;
        let mut at = start;
        while at < self.bytes.len() {
            let rest = &self.bytes[at..];
            let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let new = polish(&rest[..len]);
            changed = new.is_some();
            let mut end = at + len;
            if let Some(new) = new {
                self.taken += len as u64;
                self.added += new.len() as u64;
                self.bytes.splice(at..end, new.iter().copied());
                end = at + new.len();
            }
            at = end + 1;
        }
        self.polished += if changed { kept } else { 0 };
    }

    fn written(&self) -> RewriteCounts {
        RewriteCounts {
            after: self.written.after + self.added - self.taken,
            kept: self.written.kept - self.polished,
            changed: self.written.changed + self.polished,
            ..self.written
        }
    }
}

/// Hands out the lines of a session in order, as far as it was read, with what `look` makes of
/// each on any core. The last one may lack its newline.
pub fn map_lines_in_order<T: Send>(
    loaded: &LoadedSession,
    look: impl Fn(&Line<'_>) -> T + Sync,
    mut take: impl FnMut(&Line<'_>, T),
) -> io::Result<()> {
    let spare = SpareBuffers::default();
    let look = |chunk: LineChunk| {
        let mut all = Vec::new();
        chunk.lines(|line| all.push(look(line)));
        (chunk, all)
    };
    let take = |(chunk, looked): (LineChunk, Vec<T>)| {
        let mut looked = looked.into_iter();
        chunk.lines(|line| {
            if let Some(looked) = looked.next() {
                take(line, looked);
            }
        });
        spare.put(chunk.piece);
        Ok(())
    };
    loaded.source.with_file(|file| {
        let mut chunks = LineChunks::new(loaded, file, STEP, &spare);
        let next = || chunks.next();
        parallel::in_order_by_size(parallel::threads(), next, LineChunk::is_large, look, take)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use unspool_model::edit::EditPlan;
    use unspool_model::session::TranscriptRole;

    /// Lines of very different lengths, a glued one, one that is no JSON, and a torn end.
    fn session() -> Vec<u8> {
        let mut text = String::new();
        for at in 0..60 {
            let long = "x".repeat(at * 37 % 400);
            text += &format!(
                r#"{{"type":"user","uuid":"u{at}","parentUuid":null,"sessionId":"s","message":{{"role":"user","content":"{long}"}}}}"#
            );
            text += if at % 7 == 3 { "" } else { "\n" };
            text += if at % 11 == 5 {
                "no line at all\n\n"
            } else {
                ""
            };
        }
        (text + "{\"type\":\"us").into_bytes()
    }

    #[test]
    fn however_the_file_is_cut_the_same_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        std::fs::write(&path, session()).unwrap();
        let loaded = crate::read::read(&path, TranscriptRole::Main).unwrap();
        let mut plan = EditPlan::new(&loaded.session);
        plan.drop(4);
        plan.insert(0, r#"{"type":"summary","summary":"x"}"#.to_owned());
        plan.insert(30, r#"{"type":"summary","summary":"secret"}"#.to_owned());
        let (file, _) = crate::open::open(&path).unwrap();
        let spare = SpareBuffers::default();
        let write = |step: usize, threads: usize| {
            let mut out = Vec::new();
            let pen = LineRewriter::new(&loaded.session, &plan, None);
            let polish = |line: &[u8]| {
                let hit = memchr::memmem::find(line, b"secret").is_some()
                    || memchr::memmem::find(line, b"\"u17\"").is_some();
                hit.then(|| b"{}".to_vec())
            };
            let chunks = LineChunks::new(&loaded, &file, step, &spare);
            let written = rewrite_chunks(chunks, pen, &polish, &mut out, threads).unwrap();
            assert_eq!(written.after, out.len() as u64);
            assert_eq!(written.before, loaded.bytes);
            (written, out)
        };
        let whole = write(1 << 20, 1);
        assert!(whole.0.added == 2 && whole.0.changed > 0 && whole.0.dropped > 0);
        for step in [1, 7, 100, 1000, 4096] {
            assert_eq!(write(step, 3), whole, "{step}");
        }
    }
}
