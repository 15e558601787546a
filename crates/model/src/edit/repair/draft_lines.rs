//! The lines of a file in the making: most are those of the old file, some are new.

use std::borrow::Cow;
use std::ops::Range;

use super::RewriteCounts;
use crate::edit::{EditPlan, LineRewriter};
use crate::json::{self, Span};
use crate::log::{LONGEST_LINE, Line, TranscriptSource};
use crate::session::{LineRetention, Session, TranscriptRole};

/// Lines in order. Those that did not change stay in the old file and are read there.
#[derive(Clone, Debug, Default)]
pub(super) struct DraftLines {
    pub(super) pieces: Vec<DraftLine>,
    /// Where each line begins.
    starts: Vec<u64>,
}

/// One line.
#[derive(Clone, Debug)]
pub(super) struct DraftLine {
    /// The line of the old file it comes from; 0 for a new one.
    pub(super) line: u32,
    pub(super) body: DraftLineBody,
    /// It is that line, to the last byte.
    pub(super) whole: bool,
}

/// What a line says.
#[derive(Clone, Debug)]
pub(super) enum DraftLineBody {
    /// Bytes of the old file.
    Kept { offset: u64, len: usize },
    /// The same with other bytes in some places.
    Spliced(Box<SplicedBytes>),
    /// Other bytes.
    New(Box<[u8]>),
}

/// Bytes of the old file, and what stands in some places of them instead.
#[derive(Clone, Debug)]
pub(super) struct SplicedBytes {
    offset: u64,
    len: usize,
    edits: Vec<(Span, Vec<u8>)>,
    /// How many bytes there are now.
    now: usize,
}

impl DraftLines {
    pub(super) fn new(pieces: Vec<DraftLine>) -> DraftLines {
        let mut at = 0;
        let starts = pieces.iter().map(|piece| {
            let start = at;
            at += piece.len() as u64 + 1;
            start
        });
        let starts = starts.collect();
        DraftLines { pieces, starts }
    }

    /// Hands out each line.
    pub(super) fn each(&self, source: &dyn TranscriptSource, mut each: impl FnMut(&Line<'_>)) {
        let mut window = SourceWindow::new(source);
        for (at, piece) in self.pieces.iter().enumerate() {
            let (bytes, omitted) = match piece.len() > LONGEST_LINE {
                true => (Cow::Borrowed(&[][..]), piece.len() as u64),
                false => (piece.bytes(&mut window), 0),
            };
            each(&Line {
                number: at as u32 + 1,
                offset: self.starts[at],
                bytes: &bytes,
                omitted,
                ended: true,
            });
        }
    }

    /// What the lines mean.
    pub(super) fn session(&self, source: &dyn TranscriptSource, role: TranscriptRole) -> Session {
        let mut session = Session::keeping(role, LineRetention::Structure);
        self.each(source, |line| {
            session.push(line);
        });
        session
    }

    /// The lines as a plan wants them; `None` if it changes none.
    pub(super) fn rewritten(
        &self,
        source: &dyn TranscriptSource,
        session: &Session,
        plan: &EditPlan,
    ) -> Option<DraftLines> {
        let mut pen = LineRewriter::new(session, plan, None);
        let (mut pieces, mut out) = (Vec::with_capacity(self.pieces.len()), Vec::new());
        let mut changed = false;
        let mut added = 0;
        let mut at = 0;
        let mut window = SourceWindow::new(source);
        self.each(source, |line| {
            out.clear();
            pen.line(line, &mut out);
            let new = pen.written().added - added;
            added += new;
            changed |= new > 0;
            let old = &self.pieces[at];
            at += 1;
            if line.is_omitted() {
                return pieces.push(old.clone());
            }
            let mut lines = out.split_inclusive(|&byte| byte == b'\n');
            pieces.extend(lines.by_ref().take(new as usize).map(DraftLine::new));
            match lines.next() {
                Some(own) if own[..own.len() - 1] == *line.bytes => pieces.push(old.clone()),
                Some(own) => {
                    changed = true;
                    pieces.push(old.saying(&own[..own.len() - 1], &mut window));
                }
                None => changed = true,
            }
        });
        out.clear();
        pen.end(&mut out);
        changed |= !out.is_empty();
        let lines = out.split_inclusive(|&byte| byte == b'\n');
        pieces.extend(lines.map(DraftLine::new));
        changed.then(|| DraftLines::new(pieces))
    }

    /// What became of how many lines, of `count` that there were.
    pub(super) fn written(&self, count: u64, before: u64) -> RewriteCounts {
        let mut written = RewriteCounts {
            before,
            after: self.pieces.iter().map(|piece| piece.len() as u64 + 1).sum(),
            ..RewriteCounts::default()
        };
        let mut touched: Vec<u32> = Vec::new();
        for piece in &self.pieces {
            match (piece.line, piece.whole) {
                (0, _) => written.added += 1,
                (_, true) => written.kept += 1,
                (line, false) => touched.push(line),
            }
        }
        touched.sort_unstable();
        touched.dedup();
        written.changed = touched.len() as u64;
        written.dropped = count.saturating_sub(written.kept + written.changed);
        written
    }

    /// The line of the old file that a line comes from, or one before it.
    pub(super) fn origin(&self, number: u32) -> u32 {
        let end = (number as usize).min(self.pieces.len());
        let lines = self.pieces[..end].iter().rev().map(|piece| piece.line);
        lines.into_iter().find(|&line| line > 0).unwrap_or(1)
    }
}

impl DraftLine {
    /// A line of the old file, as it is there; it gets a newline if it had none.
    pub(super) fn kept(line: &Line<'_>) -> DraftLine {
        DraftLine {
            line: line.number,
            body: DraftLineBody::Kept {
                offset: line.offset,
                len: usize::try_from(line.length()).unwrap_or(usize::MAX),
            },
            whole: line.ended,
        }
    }

    fn new(line: &[u8]) -> DraftLine {
        let bytes = line.strip_suffix(b"\n").unwrap_or(line);
        DraftLine {
            line: 0,
            body: DraftLineBody::New(bytes.into()),
            whole: false,
        }
    }

    fn len(&self) -> usize {
        match &self.body {
            DraftLineBody::Kept { len, .. } => *len,
            DraftLineBody::Spliced(spliced) => spliced.now,
            DraftLineBody::New(bytes) => bytes.len(),
        }
    }

    fn bytes<'a>(&'a self, window: &'a mut SourceWindow<'_>) -> Cow<'a, [u8]> {
        match &self.body {
            DraftLineBody::Kept { offset, len } => Cow::Borrowed(window.bytes(*offset, *len)),
            DraftLineBody::Spliced(spliced) => {
                let old = window.bytes(spliced.offset, spliced.len);
                Cow::Owned(json::splice(old, &spliced.edits))
            }
            DraftLineBody::New(bytes) => Cow::Borrowed(bytes),
        }
    }

    /// The same line, saying something else. What it has in common with the old file is not
    /// held.
    fn saying(&self, new: &[u8], window: &mut SourceWindow<'_>) -> DraftLine {
        let from = match &self.body {
            DraftLineBody::Kept { offset, len } => Some((*offset, *len)),
            DraftLineBody::Spliced(spliced) => Some((spliced.offset, spliced.len)),
            DraftLineBody::New(_) => None,
        };
        let spliced = from.and_then(|(offset, len)| {
            let edits = edits(window.bytes(offset, len), new)?;
            let now = new.len();
            Some(Box::new(SplicedBytes {
                offset,
                len,
                edits,
                now,
            }))
        });
        DraftLine {
            line: self.line,
            body: spliced.map_or_else(|| DraftLineBody::New(new.into()), DraftLineBody::Spliced),
            whole: false,
        }
    }
}

/// What makes one text of another, if it is much less than that text. An id in place of
/// another, or a time, is as long as what it replaces, so that texts of one length are compared
/// byte by byte.
fn edits(old: &[u8], new: &[u8]) -> Option<Vec<(Span, Vec<u8>)>> {
    let spans = match old.len() == new.len() {
        true => differences(old, new),
        false => {
            let pairs = old.iter().zip(new);
            let start = pairs.take_while(|(one, other)| one == other).count();
            let ends = old[start..].iter().rev().zip(new[start..].iter().rev());
            let end = ends.take_while(|(one, other)| one == other).count();
            vec![(start, old.len() - end, new.len() - end)]
        }
    };
    let held: usize = spans.iter().map(|(start, _, end)| end - start).sum();
    (held + spans.len() * OVERHEAD < new.len()).then(|| {
        let edit = |(start, old, end): (usize, usize, usize)| {
            (Span::new(start, old), new[start..end].to_vec())
        };
        spans.into_iter().map(edit).collect()
    })
}

/// Where two texts of one length differ: from where, and up to where in both.
fn differences(old: &[u8], new: &[u8]) -> Vec<(usize, usize, usize)> {
    let mut spans: Vec<(usize, usize, usize)> = Vec::new();
    let pairs = old.iter().zip(new).enumerate();
    for (at, _) in pairs.filter(|(_, (one, other))| one != other) {
        match spans.last_mut().filter(|last| at - last.1 < OVERHEAD) {
            Some(last) => (last.1, last.2) = (at + 1, at + 1),
            None => spans.push((at, at + 1, at + 1)),
        }
    }
    spans
}

/// About what it takes to note that something stands somewhere else.
const OVERHEAD: usize = 40;

/// The old file from front to back, some lines at a time. A line that stands elsewhere is read
/// alone; if the next one follows it, reading goes on there.
struct SourceWindow<'a> {
    source: &'a dyn TranscriptSource,
    start: u64,
    bytes: Cow<'a, [u8]>,
    /// What was read alone, and where the line behind it begins.
    alone: Cow<'a, [u8]>,
    behind: u64,
}

/// How much is read at once.
const WINDOW: usize = 1 << 18;

impl<'a> SourceWindow<'a> {
    fn new(source: &'a dyn TranscriptSource) -> SourceWindow<'a> {
        SourceWindow {
            source,
            start: 0,
            bytes: Cow::Borrowed(&[]),
            alone: Cow::Borrowed(&[]),
            behind: 0,
        }
    }

    /// Bytes of the file; none if it became shorter.
    fn bytes(&mut self, offset: u64, len: usize) -> &[u8] {
        if let Some(place) = self.place(offset, len) {
            return &self.bytes[place];
        }
        let end = self.start + self.bytes.len() as u64;
        let goes_on = (self.start..=end + 1).contains(&offset) || offset == self.behind;
        let wide = || self.source.bytes(offset, len.max(WINDOW));
        match goes_on.then(wide).flatten() {
            Some(bytes) => {
                (self.start, self.bytes) = (offset, bytes);
                &self.bytes[..len]
            }
            None => {
                self.behind = offset + len as u64 + 1;
                self.alone = self.source.bytes(offset, len).unwrap_or_default();
                &self.alone
            }
        }
    }

    /// Where some bytes are, if they were read.
    fn place(&self, offset: u64, len: usize) -> Option<Range<usize>> {
        let from = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        let to = from.checked_add(len)?;
        (to <= self.bytes.len()).then_some(from..to)
    }
}

/// The lines as something that can be read again.
pub(super) struct DraftSource<'a> {
    pub(super) sheet: &'a DraftLines,
    pub(super) source: &'a dyn TranscriptSource,
}

impl TranscriptSource for DraftSource<'_> {
    fn bytes(&self, offset: u64, len: usize) -> Option<Cow<'_, [u8]>> {
        let at = self.sheet.starts.partition_point(|&start| start <= offset);
        let at = at.checked_sub(1)?;
        let from = usize::try_from(offset - self.sheet.starts[at]).ok()?;
        match &self.sheet.pieces.get(at)?.body {
            DraftLineBody::Kept { offset, len: whole } => {
                let inside = from.checked_add(len)? <= *whole;
                inside.then(|| self.source.bytes(offset + from as u64, len))?
            }
            DraftLineBody::Spliced(spliced) => {
                let old = self.source.bytes(spliced.offset, spliced.len)?;
                let new = json::splice(&old, &spliced.edits);
                Some(Cow::Owned(new.get(from..from.checked_add(len)?)?.to_vec()))
            }
            DraftLineBody::New(bytes) => bytes.get(from..from.checked_add(len)?).map(Cow::Borrowed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_text_has_in_common_with_the_old_one_is_not_held() {
        let long = "x".repeat(900);
        let line = |parent: &str, time: &str| format!("{{{parent}{long}{time}}}").into_bytes();
        let old = line("2f723639-cb3c-465d-8642-02ad42cb3466", "10:00:00");
        for (new, count) in [
            (line("9a723639-cb3c-465d-8642-02ad42cb3400", "10:00:01"), 2),
            (line("null", "10:00:00"), 1),
            (line("", "10:00:00"), 1),
            (old.clone(), 0),
        ] {
            let edits = edits(&old, &new).unwrap();
            let held: usize = edits.iter().map(|(_, new)| new.len()).sum();
            assert_eq!((edits.len(), held < 40), (count, true));
            assert_eq!(json::splice(&old, &edits), new);
        }
        assert_eq!(edits(b"one", b"two"), None);
        assert_eq!(edits(&old, "y".repeat(old.len()).as_bytes()), None);
        // Nothing is counted twice where what follows is what went before.
        let (short, longer) = ("ab".repeat(300), "ab".repeat(301));
        let edits = edits(short.as_bytes(), longer.as_bytes()).unwrap();
        assert_eq!(json::splice(short.as_bytes(), &edits), longer.as_bytes());
    }

    #[test]
    fn a_window_gives_any_bytes_in_any_order() {
        let bytes: Vec<u8> = (0..3 * WINDOW).map(|at| (at % 251) as u8).collect();
        let log = crate::log::Log::new(bytes.clone());
        let mut window = SourceWindow::new(&log);
        for (offset, len) in [
            (0, 5),
            (WINDOW - 1, 3),
            (7, 2 * WINDOW),
            (3 * WINDOW - 9, 9),
            (1, 1),
        ] {
            assert_eq!(
                window.bytes(offset as u64, len),
                &bytes[offset..offset + len]
            );
        }
        assert!(window.bytes(3 * WINDOW as u64 - 9, 10).is_empty());
    }
}
