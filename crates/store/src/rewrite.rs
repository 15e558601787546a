//! A transcript through a pen, from file to file, on all cores.
//!
//! Only as far as the session was read: what others add meanwhile belongs to the next copy.

use std::io::{self, Write};

use unspool_model::edit::{Pen, Written};
use unspool_model::log::{Line, Source, Splitter};

use crate::each;
use crate::read::Loaded;

/// How many bytes are read at once.
const STEP: u64 = 1 << 18;

/// What else is done to a line before it is written: gets it without its newline, and gives
/// what stands there instead. Lines come in any order.
pub type Polish<'a> = &'a (dyn Fn(&[u8]) -> Option<Vec<u8>> + Sync);

/// Writes the lines of a session as the pen wants them; `polish` has the last word.
pub fn rewrite(
    loaded: &Loaded,
    pen: Pen<'_>,
    polish: Polish<'_>,
    out: &mut dyn Write,
) -> io::Result<Written> {
    let chunks = Chunks::new(loaded, STEP);
    rewrite_chunks(chunks, pen, polish, out, each::threads())
}

/// Several chunks at once, each by a pen of its own; written in order.
fn rewrite_chunks(
    mut chunks: Chunks<'_>,
    mut pen: Pen<'_>,
    polish: Polish<'_>,
    out: &mut dyn Write,
    threads: usize,
) -> io::Result<Written> {
    let mut sum = Written::default();
    let mut write = |draft: Draft| {
        sum += draft.written();
        out.write_all(&draft.bytes)
    };
    let draft = |chunk: Chunk| Draft::new(&pen, &chunk, polish);
    each::in_order(threads, || chunks.next(), draft, &mut write)?;
    let mut last = Draft::default();
    last.written = pen.end(&mut last.bytes);
    last.polish(0, 0, polish);
    write(last)?;
    Ok(sum)
}

/// Whole lines of the file; the last one may lack its newline.
struct Chunk {
    bytes: Vec<u8>,
    /// Where they begin.
    offset: u64,
    /// How many lines stand before them.
    lines: u32,
}

impl Chunk {
    fn lines(&self, mut each: impl FnMut(&Line<'_>)) {
        let mut splitter = Splitter::starting_at(self.lines, self.offset);
        splitter.feed(&self.bytes, |line| each(&line));
        if let Some(tail) = splitter.tail() {
            each(&tail);
        }
    }
}

/// The file as chunks of whole lines, as far as the session was read.
struct Chunks<'a> {
    loaded: &'a Loaded,
    step: u64,
    /// Up to where the file was read, and what was read and not handed out.
    at: u64,
    rest: Vec<u8>,
    lines: u32,
}

impl<'a> Chunks<'a> {
    fn new(loaded: &'a Loaded, step: u64) -> Chunks<'a> {
        Chunks {
            loaded,
            step,
            at: loaded.start,
            rest: Vec::new(),
            lines: 0,
        }
    }

    fn next(&mut self) -> io::Result<Option<Chunk>> {
        let offset = self.at - self.rest.len() as u64;
        let mut bytes = std::mem::take(&mut self.rest);
        while self.at < self.loaded.bytes {
            let len = (self.loaded.bytes - self.at).min(self.step);
            let read = self.loaded.source.bytes(self.at, len as usize);
            let read = read.ok_or_else(gone)?;
            let before = bytes.len();
            if before == 0 {
                bytes.reserve_exact(read.len());
            }
            bytes.extend_from_slice(&read);
            self.at += len;
            if let Some(end) = memchr::memrchr(b'\n', &bytes[before..]) {
                self.rest = bytes.split_off(before + end + 1);
                break;
            }
        }
        let lines = self.lines;
        self.lines += memchr::memchr_iter(b'\n', &bytes).count() as u32;
        Ok((!bytes.is_empty()).then_some(Chunk {
            bytes,
            offset,
            lines,
        }))
    }
}

/// What becomes of a chunk.
#[derive(Default)]
struct Draft {
    bytes: Vec<u8>,
    /// What the pen did.
    written: Written,
    /// How many lines that the pen kept were polished.
    polished: u64,
    /// How many bytes polishing added, and how many it took.
    added: u64,
    taken: u64,
}

impl Draft {
    fn new(pen: &Pen<'_>, chunk: &Chunk, polish: Polish<'_>) -> Draft {
        let mut pen = pen.from_line(chunk.lines + 1);
        let mut draft = Draft::default();
        chunk.lines(|line| {
            let (start, before) = (draft.bytes.len(), pen.written().kept);
            pen.line(line, &mut draft.bytes);
            draft.polish(start, pen.written().kept - before, polish);
        });
        draft.written = pen.written();
        draft
    }

    /// Polishes what became of a line, from `start` on; whether the pen kept it.
    fn polish(&mut self, start: usize, kept: u64, polish: Polish<'_>) {
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

    fn written(&self) -> Written {
        Written {
            after: self.written.after + self.added - self.taken,
            kept: self.written.kept - self.polished,
            changed: self.written.changed + self.polished,
            ..self.written
        }
    }
}

/// Hands out the lines of a session in order, as far as it was read, with what `look` makes of
/// each on any core. The last one may lack its newline.
pub fn looked<T: Send>(
    loaded: &Loaded,
    look: impl Fn(&Line<'_>) -> T + Sync,
    mut take: impl FnMut(&Line<'_>, T),
) -> io::Result<()> {
    let mut chunks = Chunks::new(loaded, STEP);
    let look = |chunk: Chunk| {
        let mut all = Vec::new();
        chunk.lines(|line| all.push(look(line)));
        (chunk, all)
    };
    each::in_order(
        each::threads(),
        || chunks.next(),
        look,
        |(chunk, looked)| {
            let mut looked = looked.into_iter();
            chunk.lines(|line| {
                if let Some(looked) = looked.next() {
                    take(line, looked);
                }
            });
            Ok(())
        },
    )
}

fn gone() -> io::Error {
    io::Error::other("the file became shorter while it was read")
}

#[cfg(test)]
mod tests {
    use super::*;
    use unspool_model::edit::Plan;
    use unspool_model::session::Role;

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
        let loaded = crate::read::read(&path, Role::Main).unwrap();
        let mut plan = Plan::new(&loaded.session);
        plan.drop(4);
        plan.insert(0, r#"{"type":"summary","summary":"x"}"#.to_owned());
        plan.insert(30, r#"{"type":"summary","summary":"secret"}"#.to_owned());
        let write = |step: u64, threads: usize| {
            let mut out = Vec::new();
            let pen = Pen::new(&loaded.session, &plan, None);
            let polish = |line: &[u8]| {
                let hit = memchr::memmem::find(line, b"secret").is_some()
                    || memchr::memmem::find(line, b"\"u17\"").is_some();
                hit.then(|| b"{}".to_vec())
            };
            let chunks = Chunks::new(&loaded, step);
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
