//! The lines of a file in the making: most are those of the old file, some are new.

use std::borrow::Cow;

use super::Written;
use crate::edit::{Pen, Plan};
use crate::log::{Line, Source};
use crate::session::{Role, Session};

/// Lines in order. Those that did not change stay in the old file and are read there.
#[derive(Clone, Debug, Default)]
pub(super) struct Sheet {
    pub(super) pieces: Vec<Piece>,
    /// Where each line begins.
    starts: Vec<u64>,
}

/// One line.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// The line of the old file it comes from; 0 for a new one.
    pub(super) line: u32,
    pub(super) body: Body,
    /// It is that line, to the last byte.
    pub(super) whole: bool,
}

/// What a line says.
#[derive(Clone, Debug)]
pub(super) enum Body {
    /// Bytes of the old file.
    Kept { offset: u64, len: usize },
    /// Other bytes.
    New(Box<[u8]>),
}

impl Sheet {
    pub(super) fn new(pieces: Vec<Piece>) -> Sheet {
        let mut at = 0;
        let starts = pieces.iter().map(|piece| {
            let start = at;
            at += piece.len() as u64 + 1;
            start
        });
        let starts = starts.collect();
        Sheet { pieces, starts }
    }

    /// Hands out each line.
    pub(super) fn each(&self, source: &dyn Source, mut each: impl FnMut(&Line<'_>)) {
        for (at, piece) in self.pieces.iter().enumerate() {
            let bytes = piece.bytes(source);
            each(&Line {
                number: at as u32 + 1,
                offset: self.starts[at],
                bytes: &bytes,
                ended: true,
            });
        }
    }

    /// What the lines mean.
    pub(super) fn session(&self, source: &dyn Source, role: Role) -> Session {
        let mut session = Session::new(role);
        self.each(source, |line| {
            session.push(line);
        });
        session
    }

    /// The lines as a plan wants them; `None` if it changes none.
    pub(super) fn rewritten(
        &self,
        source: &dyn Source,
        session: &Session,
        plan: &Plan,
    ) -> Option<Sheet> {
        let mut pen = Pen::new(session, plan, None);
        let (mut pieces, mut out) = (Vec::with_capacity(self.pieces.len()), Vec::new());
        let mut changed = false;
        let mut added = 0;
        let mut at = 0;
        self.each(source, |line| {
            out.clear();
            pen.line(line, &mut out);
            let new = pen.written().added - added;
            added += new;
            changed |= new > 0;
            let old = &self.pieces[at];
            at += 1;
            let mut lines = out.split_inclusive(|&byte| byte == b'\n');
            pieces.extend(lines.by_ref().take(new as usize).map(Piece::new));
            match lines.next() {
                Some(own) if own[..own.len() - 1] == *line.bytes => pieces.push(old.clone()),
                Some(own) => {
                    changed = true;
                    pieces.push(Piece {
                        line: old.line,
                        ..Piece::new(own)
                    });
                }
                None => changed = true,
            }
        });
        out.clear();
        pen.end(&mut out);
        changed |= !out.is_empty();
        let lines = out.split_inclusive(|&byte| byte == b'\n');
        pieces.extend(lines.map(Piece::new));
        changed.then(|| Sheet::new(pieces))
    }

    /// What became of how many lines, of `count` that there were.
    pub(super) fn written(&self, count: u64, before: u64) -> Written {
        let mut written = Written {
            before,
            after: self.pieces.iter().map(|piece| piece.len() as u64 + 1).sum(),
            ..Written::default()
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

impl Piece {
    fn new(line: &[u8]) -> Piece {
        let bytes = line.strip_suffix(b"\n").unwrap_or(line);
        Piece {
            line: 0,
            body: Body::New(bytes.into()),
            whole: false,
        }
    }

    fn len(&self) -> usize {
        match &self.body {
            Body::Kept { len, .. } => *len,
            Body::New(bytes) => bytes.len(),
        }
    }

    fn bytes<'a>(&'a self, source: &'a dyn Source) -> Cow<'a, [u8]> {
        match &self.body {
            Body::Kept { offset, len } => source.bytes(*offset, *len).unwrap_or_default(),
            Body::New(bytes) => Cow::Borrowed(bytes),
        }
    }
}

/// The lines as something that can be read again.
pub(super) struct View<'a> {
    pub(super) sheet: &'a Sheet,
    pub(super) source: &'a dyn Source,
}

impl Source for View<'_> {
    fn bytes(&self, offset: u64, len: usize) -> Option<Cow<'_, [u8]>> {
        let at = self.sheet.starts.partition_point(|&start| start <= offset);
        let at = at.checked_sub(1)?;
        let from = usize::try_from(offset - self.sheet.starts[at]).ok()?;
        match &self.sheet.pieces.get(at)?.body {
            Body::Kept { offset, len: whole } => {
                let inside = from.checked_add(len)? <= *whole;
                inside.then(|| self.source.bytes(offset + from as u64, len))?
            }
            Body::New(bytes) => bytes.get(from..from.checked_add(len)?).map(Cow::Borrowed),
        }
    }
}
