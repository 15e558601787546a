//! A transcript through a pen, from file to file.
//!
//! Only as far as the session was read: what others add meanwhile belongs to the next copy.

use std::io::{self, Write};

use unspool_model::edit::{Pen, Written};
use unspool_model::log::{Line, Source, Splitter};

use crate::read::Loaded;

/// How many bytes are read at once.
const STEP: u64 = 1 << 20;

/// What else is done to a line before it is written: gets it without its newline, and gives
/// what stands there instead.
pub type Polish<'a> = &'a mut dyn FnMut(&[u8]) -> Option<Vec<u8>>;

/// Writes the lines of a session as the pen wants them; `polish` has the last word.
pub fn rewrite(
    loaded: &Loaded,
    mut pen: Pen<'_>,
    polish: Polish<'_>,
    out: &mut dyn Write,
) -> io::Result<Written> {
    let mut buffer = Vec::with_capacity(2 * STEP as usize);
    let mut failed = None;
    let mut polished = Written::default();
    lines(loaded, |line| {
        if failed.is_some() {
            return;
        }
        let (start, before) = (buffer.len(), pen.written());
        pen.line(line, &mut buffer);
        if polish_from(&mut buffer, start, polish, &mut polished) {
            polished.changed += pen.written().kept - before.kept;
        }
        if buffer.len() >= STEP as usize {
            failed = out.write_all(&buffer).err();
            buffer.clear();
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    let start = buffer.len();
    let mut written = pen.end(&mut buffer);
    polish_from(&mut buffer, start, polish, &mut polished);
    out.write_all(&buffer)?;
    written.kept -= polished.changed;
    written.changed += polished.changed;
    written.after = written.after + polished.after - polished.before;
    Ok(written)
}

/// Polishes the lines that were just added: the last one is that of the file, those in front
/// of it were put in. Says whether the last one changed.
fn polish_from(
    buffer: &mut Vec<u8>,
    start: usize,
    polish: &mut dyn FnMut(&[u8]) -> Option<Vec<u8>>,
    sum: &mut Written,
) -> bool {
    let mut at = start;
    let mut changed = false;
    while at < buffer.len() {
        let end = memchr::memchr(b'\n', &buffer[at..]).map_or(buffer.len(), |end| at + end);
        let new = polish(&buffer[at..end]);
        changed = new.is_some();
        let len = new.as_ref().map_or(end - at, Vec::len);
        if let Some(new) = new {
            sum.before += (end - at) as u64;
            sum.after += len as u64;
            buffer.splice(at..end, new);
        }
        at += len + 1;
    }
    changed
}

/// Hands out the lines of a session, as far as it was read; the last one may lack its newline.
pub fn lines(loaded: &Loaded, mut each: impl FnMut(&Line<'_>)) -> io::Result<()> {
    let mut splitter = Splitter::default();
    let mut at = loaded.start;
    while at < loaded.bytes {
        let len = (loaded.bytes - at).min(STEP);
        let bytes = loaded.source.bytes(at, len as usize).ok_or_else(gone)?;
        splitter.feed(&bytes, |line| each(&line));
        at += len;
    }
    if let Some(tail) = splitter.tail() {
        each(&tail);
    }
    Ok(())
}

fn gone() -> io::Error {
    io::Error::other("the file became shorter while it was read")
}
