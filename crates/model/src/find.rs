//! Finding text: what was asked for, matched against the decoded texts of lines.
//!
//! Decoding a gigabyte takes seconds, finding bytes in it tenths of one. So a query has two
//! forms: one for decoded text, which decides, and one for lines as they stand in the file,
//! which only says where to look. The second is made from the first by writing every
//! character as JSON may write it, and can only find too much. What no such form can show,
//! because a string holds `\uXXXX` or is cut by colours, is decoded in any case.

mod query;
mod snippet;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use memchr::{memchr, memchr2, memmem, memrchr};
use regex::bytes::Regex;

use crate::entry::Entry;
use crate::json;
use crate::secrets::SecretFinder;
use crate::text::{self, ESCAPE, LineText, TextKind};

pub use query::{CaseMode, QueryError, TextQuery};
pub use snippet::{MatchSnippet, masked_snippet, snippet};

/// Which texts are looked at.
#[derive(Clone, Debug, Default)]
pub struct SearchScope {
    /// Only in these places; empty for all.
    pub places: Vec<TextKind>,
    /// Only paths of files that calls touched.
    pub paths: bool,
    /// How many lines of text to show around a match.
    pub around: usize,
    /// Show secrets as they are. Matching never minds them.
    pub reveal: bool,
    /// What is secret, if it is more than the rules everybody uses.
    pub secrets: Option<SecretFinder>,
}

impl SearchScope {
    /// Whether a text is to be looked at.
    pub fn takes(&self, text: &LineText<'_>) -> bool {
        let here = self.places.is_empty() || self.places.contains(&text.place);
        here && (!self.paths || text.is_path())
    }

    /// What is shown of a match.
    fn shown(&self, text: &str, range: Range<usize>) -> MatchSnippet {
        if self.reveal {
            snippet(text, range, self.around)
        } else {
            let secrets = self.secrets.as_ref().unwrap_or(SecretFinder::standard());
            masked_snippet(secrets, text, range, self.around)
        }
    }

    /// Whether outputs of tools that stand in files of their own are to be looked at.
    pub fn takes_output(&self) -> bool {
        !self.paths && (self.places.is_empty() || self.places.contains(&TextKind::Result))
    }

    /// Whether what stands in no known place counts.
    pub fn takes_other(&self) -> bool {
        !self.paths && (self.places.is_empty() || self.places.contains(&TextKind::Other))
    }
}

/// What was found in one place of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextMatch {
    /// The place.
    pub place: TextKind,
    /// How often.
    pub count: u32,
    /// The first of them, with what stands around it.
    pub snippet: MatchSnippet,
}

/// Looks through lines, with buffers that are used again: one for each thread.
#[derive(Debug)]
pub struct TextFinder {
    query: Arc<TextQuery>,
    text: Vec<u8>,
}

/// So much is looked through at once for each of the things that matter, so that it is
/// still near the processor the second time.
const BLOCK: usize = 64 << 10;

impl TextFinder {
    /// A finder of its own for each thread.
    pub fn new(query: &TextQuery) -> TextFinder {
        TextFinder {
            query: Arc::new(query.clone()),
            text: Vec::new(),
        }
    }

    /// Calls `each` with the lines of `piece` that may hold a match, and where they begin.
    pub fn candidates(
        &mut self,
        piece: &[u8],
        mut each: impl FnMut(&mut TextFinder, usize, &[u8]),
    ) {
        let query = Arc::clone(&self.query);
        let step = if query.written.is_some() { BLOCK } else { 0 };
        let mut start = 0;
        while start < piece.len() {
            let near = piece.len().min(start + step);
            let end = memchr(b'\n', &piece[near..]).map_or(piece.len(), |found| near + found);
            let block = &piece[start..end];
            match &query.written {
                Some(written) => self.block(written, block, |finder, at, line| {
                    each(finder, start + at, line);
                }),
                None => each(self, start, block),
            }
            start = end + 1;
        }
    }

    fn block(
        &mut self,
        written: &Regex,
        block: &[u8],
        mut each: impl FnMut(&mut TextFinder, usize, &[u8]),
    ) {
        let unicode = memmem::Finder::new(b"\\u");
        let mut literal =
            NextMatch::new(|at| written.find_at(block, at).map(|found| found.start()));
        let mut escaped = NextMatch::new(|at| unicode.find(&block[at..]).map(|found| at + found));
        let mut colour = NextMatch::new(|at| memchr(ESCAPE, &block[at..]).map(|found| at + found));
        let mut at = 0;
        while at < block.len() {
            let sure = literal.from(at);
            let first = sure.min(escaped.from(at)).min(colour.from(at));
            if first == usize::MAX {
                return;
            }
            let start = memrchr(b'\n', &block[at..first]).map_or(at, |found| at + found + 1);
            let end = memchr(b'\n', &block[first..]).map_or(block.len(), |found| first + found);
            let line = &block[start..end];
            if sure < end || self.is_hidden(line) {
                each(self, start, line);
            }
            at = end + 1;
        }
    }

    /// Whether a string that holds `\u` or is coloured matches once it is decoded. Looks at
    /// nothing else, and does not care what the string is.
    fn is_hidden(&mut self, line: &[u8]) -> bool {
        let mut at = 0;
        while at < line.len() {
            let rest = &line[at..];
            let escaped = memmem::find(rest, b"\\u").unwrap_or(rest.len());
            let colour = memchr(ESCAPE, &rest[..escaped]).unwrap_or(escaped);
            if colour == rest.len() {
                return false;
            }
            let start = string_start(line, at, at + colour);
            let (end, simple) = decode_without_colours(line, start, &mut self.text);
            at = end;
            if simple && !self.query.colours {
                // What stands between colours is written as it is, or was seen before.
                if self.query.is_in(&self.text) {
                    return true;
                }
                continue;
            }
            decode_string(line, start, &mut self.text);
            if self.is_in_text() {
                return true;
            }
        }
        false
    }

    fn is_in_text(&self) -> bool {
        let text = match simdutf8::basic::from_utf8(&self.text) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(&self.text),
        };
        self.query.seen(text).is_some()
    }

    /// What matches on a line, place by place in the order of the line, with the entry it
    /// belongs to.
    pub fn matches(
        &self,
        line: &[u8],
        scope: &SearchScope,
        each: &mut dyn FnMut(Option<&Entry>, TextMatch),
    ) {
        // Several objects may stand on a line; an entry is known by where it begins.
        let mut found: Vec<(Option<usize>, TextMatch)> = Vec::new();
        let entries = text::objects(line, &mut |entry, text| {
            if !scope.takes(&text) || !self.is_possible(text.raw) {
                return;
            }
            let owner = entry.map(|entry| entry.span.start);
            let Some(seen) = self.query.seen(text.decode()) else {
                return;
            };
            let same =
                |one: &&mut (Option<usize>, TextMatch)| one.0 == owner && one.1.place == text.place;
            match found.iter_mut().find(same) {
                Some((_, known)) => known.count += self.query.matches(&seen).count() as u32,
                None => found.extend(self.first(&seen, text.place, scope).map(|one| (owner, one))),
            }
        });
        for (owner, one) in found {
            let entry = entries.iter().find(|entry| Some(entry.span.start) == owner);
            each(entry, one);
        }
    }

    fn first(&self, text: &str, place: TextKind, scope: &SearchScope) -> Option<TextMatch> {
        let mut ranges = self.query.matches(text);
        let first = ranges.next()?;
        Some(TextMatch {
            place,
            count: 1 + ranges.count() as u32,
            snippet: scope.shown(text, first),
        })
    }

    /// Whether a string may match, judged by how it is written.
    fn is_possible(&self, raw: &[u8]) -> bool {
        let Some(written) = &self.query.written else {
            return true;
        };
        memmem::find(raw, b"\\u").is_some()
            || memchr(ESCAPE, raw).is_some()
            || written.is_match(raw)
    }

    /// What matches in the output of a tool that stands in a file of its own: for each line
    /// of it, from 0, what begins there. Only what ends behind `from` counts, which is where
    /// a line begins.
    pub fn output(
        &self,
        text: &str,
        from: usize,
        scope: &SearchScope,
        each: &mut dyn FnMut(usize, TextMatch),
    ) {
        let (before, after) = (&text[..from], &text[from..]);
        // No sequence goes on behind the end of a line, so the halves can be taken alone.
        let plain = [text::plain(before), text::plain(after)];
        if plain.iter().any(|half| matches!(half, Cow::Owned(_))) {
            let found = self.lines(&plain.concat(), plain[0].len(), scope, each);
            if found {
                return;
            }
        }
        self.lines(text, from, scope, each);
    }

    fn lines(
        &self,
        text: &str,
        from: usize,
        scope: &SearchScope,
        each: &mut dyn FnMut(usize, TextMatch),
    ) -> bool {
        let (mut line, mut at) = (0, 0);
        let mut last: Option<(usize, TextMatch)> = None;
        for range in self.query.matches(text).filter(|range| range.end > from) {
            line += memchr::memchr_iter(b'\n', &text.as_bytes()[at..range.start]).count();
            at = range.start;
            match &mut last {
                Some((same, one)) if *same == line => one.count += 1,
                _ => {
                    let one = TextMatch {
                        place: TextKind::Result,
                        count: 1,
                        snippet: scope.shown(text, range),
                    };
                    if let Some((line, done)) = last.replace((line, one)) {
                        each(line, done);
                    }
                }
            }
        }
        last.map(|(line, one)| each(line, one)).is_some()
    }
}

/// Where something comes next, asked for only when the last answer has been passed.
struct NextMatch<F> {
    find: F,
    at: Option<usize>,
}

impl<F: Fn(usize) -> Option<usize>> NextMatch<F> {
    fn new(find: F) -> NextMatch<F> {
        NextMatch { find, at: None }
    }

    fn from(&mut self, at: usize) -> usize {
        match self.at {
            Some(known) if known >= at => known,
            _ => {
                let next = (self.find)(at).unwrap_or(usize::MAX);
                self.at = Some(next);
                next
            }
        }
    }
}

/// Where the string that holds the byte at `inside` begins: behind the last quote that is
/// not escaped, or at `least`.
fn string_start(line: &[u8], least: usize, inside: usize) -> usize {
    let mut end = inside;
    while let Some(found) = memrchr(b'"', &line[least..end]) {
        let quote = least + found;
        let slashes = line[least..quote].iter().rev();
        if slashes.take_while(|byte| **byte == b'\\').count() % 2 == 0 {
            return quote + 1;
        }
        end = quote;
    }
    least
}

/// Decodes from `start` up to a quote or an escape that makes no sense, where the strings of
/// a torn line are cut too; gives where to go on.
fn decode_string(line: &[u8], start: usize, out: &mut Vec<u8>) -> usize {
    out.clear();
    let mut at = start;
    loop {
        at = copy_run(line, at, out);
        let rest = &line[at..];
        if rest.first() != Some(&b'\\') || json::escape_len(rest).is_none() {
            return at + 1;
        }
        let (c, used) = json::escape(rest);
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        at += used;
    }
}

/// Like [`decode_string`], leaving colours out on the way, as nearly all strings that hold
/// `\u` need no more. Says whether that was all there is to it.
fn decode_without_colours(line: &[u8], start: usize, out: &mut Vec<u8>) -> (usize, bool) {
    out.clear();
    let mut at = start;
    loop {
        at = copy_run(line, at, out);
        let rest = &line[at..];
        match rest {
            [b'\\', b'u', ..] => match colour_len(rest) {
                Some(used) => at += used,
                None => return (decode_string(line, start, out), false),
            },
            [b'\\', ..] if json::escape_len(rest).is_some() => {
                let (c, used) = json::escape(rest);
                out.push(c as u8);
                at += used;
            }
            _ => {
                let simple =
                    memchr(ESCAPE, out).is_none() && simdutf8::basic::from_utf8(out).is_ok();
                return (at + 1, simple);
            }
        }
    }
}

/// Copies up to the next quote or backslash.
fn copy_run(line: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    let rest = &line[at..];
    let run = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
    out.extend_from_slice(&rest[..run]);
    at + run
}

/// The length of a colour that is written in the usual way and whole.
fn colour_len(rest: &[u8]) -> Option<usize> {
    let body = rest
        .strip_prefix(b"\\u001b[")
        .or_else(|| rest.strip_prefix(b"\\u001B["))?;
    let parameters = body
        .iter()
        .take_while(|byte| matches!(byte, b'0'..=b';' | b'?'));
    let parameters = parameters.count();
    let ends = body.get(parameters).is_some_and(u8::is_ascii_alphabetic);
    ends.then_some(b"\\u001b[".len() + parameters + 1)
}

#[cfg(test)]
mod tests;
