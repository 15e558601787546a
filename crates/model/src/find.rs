//! Finding text: what was asked for, matched against the decoded texts of lines.
//!
//! Decoding a gigabyte takes seconds, finding bytes in it tenths of one. So a query has two
//! forms: one for decoded text, which decides, and one for lines as they stand in the file,
//! which only says where to look. The second is made from the first by writing every
//! character as JSON may write it, and can only find too much. What no such form can show,
//! because a string holds `\uXXXX` or is cut by colours, is decoded in any case.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use memchr::{memchr, memchr2, memmem, memrchr};
use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::hir::{
    Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Repetition,
};

use crate::entry::Entry;
use crate::json;
use crate::secrets::Secrets;
use crate::text::{self, ESCAPE, Text, Where};

/// Whether capitals matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Case {
    /// Only if the query has some.
    #[default]
    Smart,
    /// They do not.
    Ignore,
    /// They do.
    Exact,
}

/// Why a query cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bad {
    /// There is nothing to look for.
    Empty,
    /// A regular expression that makes no sense.
    Regex {
        /// The character where it goes wrong, from 0.
        at: usize,
        /// What is wrong there.
        why: String,
    },
    /// A regular expression that would take too much memory.
    TooLarge,
}

/// What somebody looks for.
#[derive(Clone, Debug)]
pub struct Query {
    /// For decoded text.
    exact: Regex,
    /// For lines as they are written; `None` where every line must be read.
    written: Option<Regex>,
    /// Whether the character that begins a colour can be part of a match.
    colours: bool,
}

impl Query {
    /// Looks for exactly this text.
    pub fn literal(text: &str, case: Case) -> Result<Query, Bad> {
        if text.is_empty() {
            return Err(Bad::Empty);
        }
        let capitals = text.chars().any(char::is_uppercase);
        Query::new(&regex_syntax::escape(text), case, capitals)
    }

    /// Looks for what a regular expression matches; `^` and `$` are the ends of a line of
    /// text.
    pub fn regex(pattern: &str, case: Case) -> Result<Query, Bad> {
        if pattern.is_empty() {
            return Err(Bad::Empty);
        }
        Query::new(pattern, case, has_capitals(pattern))
    }

    fn new(pattern: &str, case: Case, capitals: bool) -> Result<Query, Bad> {
        let fold = match case {
            Case::Smart => !capitals,
            Case::Ignore => true,
            Case::Exact => false,
        };
        let hir = regex_syntax::ParserBuilder::new()
            .case_insensitive(fold)
            .multi_line(true)
            .build()
            .parse(pattern)
            .map_err(|error| bad(pattern, &error))?;
        let exact = RegexBuilder::new(pattern)
            .case_insensitive(fold)
            .multi_line(true)
            .build()
            .map_err(|_| Bad::TooLarge)?;
        // What matches nothing at all is found on every line.
        let anywhere = hir.properties().minimum_len() == Some(0);
        let written = (!anywhere).then(|| Regex::new(&written(&hir).to_string()).ok());
        Ok(Query {
            exact,
            written: written.flatten(),
            colours: can_hold(&hir, char::from(ESCAPE)),
        })
    }

    /// Where it matches in a text; matches of nothing do not count.
    pub fn matches<'t>(&self, text: &'t str) -> impl Iterator<Item = Range<usize>> + use<'_, 't> {
        let all = self.exact.find_iter(text.as_bytes());
        all.map(|found| found.range())
            .filter(|range| !range.is_empty())
    }

    fn is_in(&self, text: &[u8]) -> bool {
        let mut all = self.exact.find_iter(text);
        all.any(|found| !found.is_empty())
    }

    /// The text in which it matches: without the sequences that colour it, else with them.
    fn seen<'t>(&self, text: Cow<'t, str>) -> Option<Cow<'t, str>> {
        if memchr(ESCAPE, text.as_bytes()).is_some() {
            let plain = text::plain(&text);
            if self.is_in(plain.as_bytes()) {
                return Some(Cow::Owned(plain.into_owned()));
            }
        }
        self.is_in(text.as_bytes()).then_some(text)
    }
}

fn bad(pattern: &str, error: &regex_syntax::Error) -> Bad {
    let (start, why) = match error {
        regex_syntax::Error::Parse(error) => (error.span().start.offset, error.kind().to_string()),
        regex_syntax::Error::Translate(error) => {
            (error.span().start.offset, error.kind().to_string())
        }
        _ => (0, error.to_string()),
    };
    let before = pattern.get(..start).unwrap_or_default();
    Bad::Regex {
        at: before.chars().count(),
        why,
    }
}

/// Whether a pattern has capitals that stand for themselves, unlike those of `\S` or
/// `\p{Greek}`.
fn has_capitals(pattern: &str) -> bool {
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\\' {
            let class = chars.next();
            if matches!(class, Some('p' | 'P' | 'x' | 'u' | 'U')) && chars.peek() == Some(&'{') {
                chars.by_ref().find(|c| *c == '}');
            }
        } else if c.is_uppercase() {
            return true;
        }
    }
    false
}

/// Whether a match can hold this character.
fn can_hold(hir: &Hir, c: char) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => false,
        HirKind::Literal(literal) => String::from_utf8_lossy(&literal.0).contains(c),
        HirKind::Class(Class::Unicode(class)) => holds(class, c),
        HirKind::Class(Class::Bytes(_)) => true,
        HirKind::Repetition(repeated) => can_hold(&repeated.sub, c),
        HirKind::Capture(capture) => can_hold(&capture.sub, c),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().any(|part| can_hold(part, c))
        }
    }
}

fn holds(class: &ClassUnicode, c: char) -> bool {
    let mut ranges = class.ranges().iter();
    ranges.any(|range| (range.start()..=range.end()).contains(&c))
}

/// The expression for text as it is written between the quotes of JSON. It matches wherever
/// the given one matches decoded text that was written without `\u`.
fn written(hir: &Hir) -> Hir {
    match hir.kind() {
        // What stands around a match looks different when it is written.
        HirKind::Empty | HirKind::Look(_) => Hir::empty(),
        HirKind::Literal(literal) => {
            let text = String::from_utf8_lossy(&literal.0);
            Hir::concat(text.chars().map(spellings).collect())
        }
        HirKind::Class(Class::Unicode(class)) => class_spellings(class.clone()),
        HirKind::Class(Class::Bytes(class)) => {
            let range = |range: &ClassBytesRange| {
                ClassUnicodeRange::new(char::from(range.start()), char::from(range.end()))
            };
            class_spellings(ClassUnicode::new(class.ranges().iter().map(range)))
        }
        HirKind::Repetition(repeated) => Hir::repetition(Repetition {
            sub: Box::new(written(&repeated.sub)),
            ..repeated.clone()
        }),
        HirKind::Capture(capture) => written(&capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(written).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(written).collect()),
    }
}

/// Characters that JSON may or must write in another way than as themselves.
const SPECIAL: [(char, &str, bool); 8] = [
    ('"', "\\\"", false),
    ('\\', "\\\\", false),
    ('\n', "\\n", false),
    ('\t', "\\t", true),
    ('\r', "\\r", true),
    ('\u{8}', "\\b", true),
    ('\u{c}', "\\f", true),
    ('/', "\\/", true),
];

fn spellings(c: char) -> Hir {
    let itself = |c: char| Hir::literal(c.encode_utf8(&mut [0; 4]).as_bytes());
    if c == char::REPLACEMENT_CHARACTER {
        return Hir::alternation(vec![itself(c), broken()]);
    }
    match SPECIAL.iter().find(|(special, _, _)| *special == c) {
        None => itself(c),
        Some((_, escape, false)) => Hir::literal(escape.as_bytes()),
        Some((_, escape, true)) => {
            Hir::alternation(vec![Hir::literal(escape.as_bytes()), itself(c)])
        }
    }
}

/// Bytes that are not UTF-8, which are read as one replacement character.
fn broken() -> Hir {
    let class = ClassBytes::new([ClassBytesRange::new(0x80, 0xff)]);
    Hir::repetition(Repetition {
        min: 1,
        max: Some(3),
        greedy: true,
        sub: Box::new(Hir::class(Class::Bytes(class))),
    })
}

fn class_spellings(mut class: ClassUnicode) -> Hir {
    let mut ways: Vec<Hir> = Vec::new();
    for (c, escape, _) in SPECIAL {
        if holds(&class, c) {
            ways.push(Hir::literal(escape.as_bytes()));
        }
    }
    if holds(&class, char::REPLACEMENT_CHARACTER) {
        ways.push(broken());
    }
    let never = SPECIAL.iter().filter(|(_, _, itself)| !itself);
    let never = never.map(|(c, _, _)| ClassUnicodeRange::new(*c, *c));
    class.difference(&ClassUnicode::new(never));
    ways.insert(0, Hir::class(Class::Unicode(class)));
    Hir::alternation(ways)
}

/// Which texts are looked at.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Only in these places; empty for all.
    pub places: Vec<Where>,
    /// Only paths of files that calls touched.
    pub paths: bool,
    /// How many lines of text to show around a match.
    pub around: usize,
    /// Show secrets as they are. Matching never minds them.
    pub reveal: bool,
}

impl Scope {
    /// Whether a text is to be looked at.
    pub fn takes(&self, text: &Text<'_>) -> bool {
        let here = self.places.is_empty() || self.places.contains(&text.place);
        here && (!self.paths || text.is_path())
    }

    /// What is shown of a match.
    fn shown(&self, text: &str, range: Range<usize>) -> Snippet {
        if self.reveal {
            return snippet(text, range, self.around);
        }
        match masked_near(text, &range, room(self.around)) {
            Some((text, range)) => snippet(&text, range, self.around),
            None => snippet(text, range, self.around),
        }
    }

    /// Whether outputs of tools that stand in files of their own are to be looked at.
    pub fn takes_output(&self) -> bool {
        !self.paths && (self.places.is_empty() || self.places.contains(&Where::Result))
    }
}

/// What was found in one place of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The place.
    pub place: Where,
    /// How often.
    pub count: u32,
    /// The first of them, with what stands around it.
    pub snippet: Snippet,
}

/// A match and the text around it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// What stands before it.
    pub before: String,
    /// What matched.
    pub hit: String,
    /// What stands behind it.
    pub after: String,
}

impl Snippet {
    /// All of it.
    pub fn whole(&self) -> String {
        format!("{}{}{}", self.before, self.hit, self.after)
    }
}

/// How many characters are shown before and behind a match.
const AROUND: usize = 100;

/// How many characters of a match are shown.
const LONGEST: usize = 400;

/// The match at `range` with the rest of its line and `lines` more on each side. Long lines
/// are cut. Every text that search shows is made here.
pub fn snippet(text: &str, range: Range<usize>, lines: usize) -> Snippet {
    let room = room(lines);
    let (before, hit, after) = (
        &text[..range.start],
        &text[range.clone()],
        &text[range.end..],
    );
    let start = memchr::memrchr_iter(b'\n', before.as_bytes()).nth(lines);
    let kept = &before[start.map_or(0, |at| at + 1)..];
    let first = kept.char_indices().rev().take(room).last();
    let first = first.map_or(0, |(at, _)| at);
    let cut = if first > 0 { "…" } else { "" };
    let end = memchr::memchr_iter(b'\n', after.as_bytes()).nth(lines);
    let rest = &after[..end.unwrap_or(after.len())];
    Snippet {
        before: format!("{cut}{}", &kept[first..]),
        hit: clipped(hit, LONGEST),
        after: clipped(rest.strip_suffix('\r').unwrap_or(rest), room),
    }
}

/// How many characters are shown on each side of a match.
fn room(lines: usize) -> usize {
    AROUND.saturating_mul(lines.saturating_add(1))
}

/// How far before what is shown a secret may begin, and how far behind it may end. Most are
/// shorter; looking through whole outputs for every match would take longer than the search.
const REACH: usize = 4096;

/// The text around a match with its secrets masked, and where the match is in it; `None` if
/// there are none. A match inside a secret becomes the mask.
fn masked_near(text: &str, range: &Range<usize>, room: usize) -> Option<(String, Range<usize>)> {
    let reach = REACH.saturating_add(room.saturating_mul(4));
    let start = text.floor_char_boundary(range.start.saturating_sub(reach));
    let end = text.ceil_char_boundary(range.end.saturating_add(reach).min(text.len()));
    let near = &text[start..end];
    let secrets = Secrets::standard().find(near);
    if secrets.is_empty() {
        return None;
    }
    let (from, to) = (range.start - start, range.end - start);
    let mut out = String::with_capacity(near.len());
    let mut shown = 0..0;
    let mut at = 0;
    for secret in &secrets {
        let plain = &near[at..secret.range.start];
        if (at..secret.range.start).contains(&from) {
            shown.start = out.len() + from - at;
        }
        if (at + 1..=secret.range.start).contains(&to) {
            shown.end = out.len() + to - at;
        }
        out.push_str(plain);
        if secret.range.contains(&from) {
            shown.start = out.len();
        }
        out.push_str("[REDACTED:");
        out.push_str(secret.rule);
        out.push(']');
        if secret.range.contains(&to.saturating_sub(1)) {
            shown.end = out.len();
        }
        at = secret.range.end;
    }
    if from >= at {
        shown.start = out.len() + from - at;
    }
    if to > at {
        shown.end = out.len() + to - at;
    }
    out.push_str(&near[at..]);
    Some((out, shown))
}

fn clipped(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Looks through lines, with buffers that are used again: one for each thread.
#[derive(Debug)]
pub struct Finder {
    query: Arc<Query>,
    text: Vec<u8>,
}

/// So much is looked through at once for each of the things that matter, so that it is
/// still near the processor the second time.
const BLOCK: usize = 64 << 10;

impl Finder {
    /// A finder of its own for each thread.
    pub fn new(query: &Query) -> Finder {
        Finder {
            query: Arc::new(query.clone()),
            text: Vec::new(),
        }
    }

    /// Calls `each` with the lines of `piece` that may hold a match, and where they begin.
    pub fn candidates(&mut self, piece: &[u8], mut each: impl FnMut(&mut Finder, usize, &[u8])) {
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
        mut each: impl FnMut(&mut Finder, usize, &[u8]),
    ) {
        let unicode = memmem::Finder::new(b"\\u");
        let mut literal = Next::new(|at| written.find_at(block, at).map(|found| found.start()));
        let mut escaped = Next::new(|at| unicode.find(&block[at..]).map(|found| at + found));
        let mut colour = Next::new(|at| memchr(ESCAPE, &block[at..]).map(|found| at + found));
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
    pub fn matches(&self, line: &[u8], scope: &Scope, each: &mut dyn FnMut(Option<&Entry>, Match)) {
        // Several objects may stand on a line; an entry is known by where it begins.
        let mut found: Vec<(Option<usize>, Match)> = Vec::new();
        let entries = text::objects(line, &mut |entry, text| {
            if !scope.takes(&text) || !self.is_possible(text.raw) {
                return;
            }
            let owner = entry.map(|entry| entry.span.start);
            let Some(seen) = self.query.seen(text.decode()) else {
                return;
            };
            let same =
                |one: &&mut (Option<usize>, Match)| one.0 == owner && one.1.place == text.place;
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

    fn first(&self, text: &str, place: Where, scope: &Scope) -> Option<Match> {
        let mut ranges = self.query.matches(text);
        let first = ranges.next()?;
        Some(Match {
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
        scope: &Scope,
        each: &mut dyn FnMut(usize, Match),
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
        scope: &Scope,
        each: &mut dyn FnMut(usize, Match),
    ) -> bool {
        let (mut line, mut at) = (0, 0);
        let mut last: Option<(usize, Match)> = None;
        for range in self.query.matches(text).filter(|range| range.end > from) {
            line += memchr::memchr_iter(b'\n', &text.as_bytes()[at..range.start]).count();
            at = range.start;
            match &mut last {
                Some((same, one)) if *same == line => one.count += 1,
                _ => {
                    let one = Match {
                        place: Where::Result,
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
struct Next<F> {
    find: F,
    at: Option<usize>,
}

impl<F: Fn(usize) -> Option<usize>> Next<F> {
    fn new(find: F) -> Next<F> {
        Next { find, at: None }
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
mod tests {
    use super::*;

    /// A line for each place, with `@` where the text stands.
    const PLACES: [(Where, &str); 9] = [
        (
            Where::Prompt,
            r#"{"type":"user","uuid":"u","message":{"role":"user","content":"@"}}"#,
        ),
        (
            Where::Reply,
            r#"{"type":"assistant","uuid":"u","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"@"}]}}"#,
        ),
        (
            Where::Thinking,
            r#"{"type":"assistant","uuid":"u","message":{"id":"m","role":"assistant","content":[{"type":"thinking","thinking":"@","signature":"s"}]}}"#,
        ),
        (
            Where::Tool,
            r#"{"type":"assistant","uuid":"u","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"@"}}]}}"#,
        ),
        (
            Where::Result,
            r#"{"type":"user","uuid":"u","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"@"}]}]}}"#,
        ),
        (
            Where::Result,
            r#"{"type":"user","uuid":"u","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"-"}]},"toolUseResult":{"stdout":"@"}}"#,
        ),
        (
            Where::Progress,
            r#"{"type":"progress","uuid":"u","data":{"type":"bash_progress","output":"@"}}"#,
        ),
        (
            Where::Title,
            r#"{"type":"summary","summary":"@","leafUuid":"l"}"#,
        ),
        (
            Where::Other,
            r#"{"type":"never-seen","uuid":"u","x":["@"]}"#,
        ),
    ];

    /// Queries and how the text may be written in the file.
    const SPELLINGS: [(&str, &str); 18] = [
        (
            "the \"velvet hammer\" clause",
            r#"in the \"velvet hammer\" clause, "#,
        ),
        (r"C:\Users\petra\q.txt", r"at C:\\Users\\petra\\q.txt now"),
        ("src/main.rs", r"in src\/main.rs"),
        ("src/main.rs", r"in src/main.rs"),
        ("amber\nviolet", r"amber\nviolet"),
        ("a\tb", r"a\tb"),
        ("a\tb", "a\tb"),
        ("a\tb", r"a\u0009b"),
        ("größe", r"gr\u00f6\u00DFe"),
        ("x😀y", r"x\ud83d\ude00y"),
        ("x😀y", "x😀y"),
        ("x\u{fffd}y", r"x\ud83dy"),
        ("plain", r"pl\u0061in"),
        ("crimsonfalcon", r"crimson\u001b[31mfal\u001b[0mcon"),
        ("crimsonfalcon", "crimson\u{1b}[31mfal\u{1b}]0;t\u{7}con"),
        ("[31mfal", r"crimson\u001b[31mfal"),
        ("\u{1b}[31m", r"crimson\u001b[31mfal"),
        ("猫头鹰", "琥珀色的猫头鹰。"),
    ];

    fn found(query: &Query, line: &[u8]) -> Vec<(Where, u32, String)> {
        let mut finder = Finder::new(query);
        let mut all = Vec::new();
        finder.candidates(line, |finder, _, line| {
            finder.matches(line, &Scope::default(), &mut |_, one| {
                all.push((one.place, one.count, one.snippet.hit));
            });
        });
        all
    }

    #[test]
    fn every_spelling_is_found_in_every_place() {
        for (place, template) in PLACES {
            for (query, written) in SPELLINGS {
                let line = template.replace('@', written);
                for case in [Case::Smart, Case::Exact, Case::Ignore] {
                    let query = Query::literal(query, case).unwrap();
                    let all = found(&query, line.as_bytes());
                    assert_eq!(all.len(), 1, "{query:?} in {line}: {all:?}");
                    assert_eq!((all[0].0, all[0].1), (place, 1), "{line}");
                }
                let none = Query::literal("absent", Case::Smart).unwrap();
                assert_eq!(found(&none, line.as_bytes()), []);
            }
        }
    }

    #[test]
    fn capitals_matter_only_if_the_query_has_some() {
        let line = |text: &str| PLACES[0].1.replace('@', text);
        let finds = |query: &str, case, text: &str| {
            let query = Query::literal(query, case).unwrap();
            !found(&query, line(text).as_bytes()).is_empty()
        };
        assert!(finds("kelvin", Case::Smart, "KELVIN"));
        assert!(!finds("Kelvin", Case::Smart, "KELVIN"));
        assert!(finds("Kelvin", Case::Ignore, "KELVIN"));
        assert!(!finds("kelvin", Case::Exact, "KELVIN"));
        // One character for one: ß is ẞ but never ss, İ is only itself, all three sigmas
        // are one.
        assert!(finds("straße", Case::Smart, "STRAẞE"));
        assert!(!finds("straße", Case::Smart, "strasse"));
        assert!(finds("σοφος", Case::Smart, "ΣΟΦΟΣ") && finds("σοφος", Case::Smart, "σοφος"));
        assert!(finds("σοφοσ", Case::Smart, r"\u03a3ΟΦΟς"));
        assert!(!finds("i", Case::Smart, "İ"));
        assert!(finds("İ", Case::Smart, "İ"));
        let regex = |pattern: &str| {
            let query = Query::regex(pattern, Case::Smart).unwrap();
            !found(&query, line("some WORDS").as_bytes()).is_empty()
        };
        assert!(regex(r"\S\swords") && regex(r"\p{Lu}ords") && !regex(r"Words"));
    }

    #[test]
    fn a_match_does_not_cross_from_one_string_into_another() {
        let line = r#"{"type":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}"#;
        for query in ["onetwo", r#"one"}"#, "one\n", "\"two"] {
            let query = Query::literal(query, Case::Exact).unwrap();
            assert_eq!(found(&query, line.as_bytes()), []);
        }
        let any = Query::regex("(?s)one.*two", Case::Exact).unwrap();
        assert_eq!(found(&any, line.as_bytes()), []);
    }

    #[test]
    fn names_and_ids_of_the_format_are_not_found() {
        let line = PLACES[1].1.replace('@', "hello");
        for query in ["assistant", "text", "uuid", "message"] {
            let query = Query::literal(query, Case::Smart).unwrap();
            assert_eq!(found(&query, line.as_bytes()), []);
        }
    }

    #[test]
    fn matches_in_one_place_of_a_line_are_counted_together() {
        let line = r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"x yx x"}]},"toolUseResult":{"stdout":"ax"}}"#;
        let query = Query::literal("x", Case::Smart).unwrap();
        assert_eq!(
            found(&query, line.as_bytes()),
            [(Where::Result, 4, "x".into())]
        );
    }

    #[test]
    fn expressions_match_decoded_text_line_by_line() {
        let line = PLACES[4]
            .1
            .replace('@', r#"one \"two\"\nthree\t4\n\u0035 C:\\x"#);
        let finds = |pattern: &str| {
            let query = Query::regex(pattern, Case::Smart).unwrap();
            let all = found(&query, line.as_bytes());
            all.into_iter().next().map(|(_, _, hit)| hit)
        };
        assert_eq!(finds(r#"^one "\w+"$"#).as_deref(), Some("one \"two\""));
        assert_eq!(finds(r"^three\s\d$").as_deref(), Some("three\t4"));
        assert_eq!(finds(r"\d\n\d").as_deref(), Some("4\n5"));
        assert_eq!(finds(r"[A-Z]:\\."), Some("C:\\x".into()));
        assert_eq!(finds(r"\bthree\b").as_deref(), Some("three"));
        assert_eq!(finds(r"(?s)one.*x$").map(|hit| hit.len()), Some(24));
        assert_eq!(finds(r"z*"), None, "a match of nothing is no match");
        assert_eq!(finds(r"one.*three"), None);
    }

    #[test]
    fn a_query_that_makes_no_sense_says_where() {
        assert_eq!(Query::literal("", Case::Smart).unwrap_err(), Bad::Empty);
        assert_eq!(Query::regex("", Case::Smart).unwrap_err(), Bad::Empty);
        let Err(Bad::Regex { at, why }) = Query::regex("日本(x", Case::Smart) else {
            panic!("accepted");
        };
        assert_eq!((at, why.as_str()), (2, "unclosed group"));
        let large = Query::regex(r"(\w{200}){200}", Case::Smart).unwrap_err();
        assert_eq!(large, Bad::TooLarge);
    }

    #[test]
    fn torn_and_glued_lines_are_searched_too() {
        let torn = br#"{"type":"user","message":{"content":"the \"velvet\" h\u00e4mmer C:\Users"#;
        for text in ["\"velvet\" hämmer", "users", "content"] {
            let query = Query::literal(text, Case::Smart).unwrap();
            assert_eq!(found(&query, torn).len(), 1, "{text}");
        }
        let glued = PLACES[0].1.replace('@', "needle").repeat(2);
        let query = Query::literal("needle", Case::Smart).unwrap();
        assert_eq!(found(&query, glued.as_bytes()).len(), 2);
        let broken =
            [b"{\"type\":\"user\",\"content\":\"a\xff\xfeb \\u0041\"}".as_slice()].concat();
        let query = Query::literal("a\u{fffd}\u{fffd}b A", Case::Exact).unwrap();
        assert_eq!(found(&query, &broken).len(), 1);
    }

    #[test]
    fn only_the_places_that_were_asked_for_are_looked_at() {
        let line = r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"main.rs"},{"type":"tool_use","id":"t","name":"Edit","input":{"file_path":"/x/main.rs","old_string":"main.rs"}}]}}"#;
        let query = Query::literal("main.rs", Case::Smart).unwrap();
        let count = |scope: Scope| {
            let mut all = Vec::new();
            Finder::new(&query).matches(line.as_bytes(), &scope, &mut |_, one| {
                all.push((one.place, one.count));
            });
            all
        };
        let only = |place| Scope {
            places: vec![place],
            ..Scope::default()
        };
        assert_eq!(count(only(Where::Reply)), [(Where::Reply, 1)]);
        assert_eq!(count(only(Where::Tool)), [(Where::Tool, 2)]);
        assert_eq!(count(only(Where::Result)), []);
        let paths = Scope {
            paths: true,
            ..Scope::default()
        };
        assert_eq!(count(paths), [(Where::Tool, 1)]);
    }

    #[test]
    fn what_is_shown_is_masked_and_what_matches_is_not() {
        let token = ["ghp_", "x7Qa9ZpLm2", "Rt4VbN8cKd", "3Wf6HsJy1T", "g5Ue0i"].concat();
        let text = format!("before {token} behind {token} end");
        let shown = |needle: &str, reveal: bool| {
            let query = Query::literal(needle, Case::Exact).unwrap();
            let scope = Scope {
                reveal,
                ..Scope::default()
            };
            let range = query.matches(&text).next().unwrap();
            let one = scope.shown(&text, range);
            (one.hit.clone(), one.whole())
        };
        let mask = "[REDACTED:github-pat]";
        let masked = format!("before {mask} behind {mask} end");
        for (needle, hit) in [
            ("before", "before"),
            ("behind", "behind"),
            ("end", "end"),
            ("Rt4V", mask),
            (&token, mask),
            (" ghp_x7", &format!(" {mask}")),
            ("0i behind", &format!("{mask} behind")),
        ] {
            assert_eq!(
                shown(needle, false),
                (hit.to_owned(), masked.clone()),
                "{needle}"
            );
            assert_eq!(shown(needle, true), (needle.to_owned(), text.clone()));
        }
    }

    #[test]
    fn a_snippet_is_the_line_of_the_match_cut_where_it_is_long() {
        let cut = |text: &str, range, lines| {
            let one = snippet(text, range, lines);
            (one.before, one.hit, one.after)
        };
        let own = |parts: (&str, &str, &str)| {
            (parts.0.to_owned(), parts.1.to_owned(), parts.2.to_owned())
        };
        assert_eq!(cut("a\nb hit c\r\nd", 4..7, 0), own(("b ", "hit", " c")));
        assert_eq!(
            cut("a\nb hit c\nd\ne", 4..7, 1),
            own(("a\nb ", "hit", " c\nd"))
        );
        let long = format!("{}日{}", "é".repeat(500), "ü".repeat(500));
        let one = snippet(&long, 1000..1003, 0);
        assert_eq!(
            (one.before.chars().count(), one.after.chars().count()),
            (101, 101)
        );
        assert!(one.whole().starts_with("…é") && one.whole().ends_with("ü…"));
        assert_eq!(snippet(&long, 0..long.len(), 0).hit.chars().count(), 401);
    }

    #[test]
    fn output_in_a_file_of_its_own_is_searched_across_lines() {
        let query = Query::literal("red\nball", Case::Smart).unwrap();
        let finder = Finder::new(&query);
        let mut all = Vec::new();
        let text = "x\n\u{1b}[31mred\u{1b}[0m\nball\nred\nball red\nball";
        finder.output(text, 0, &Scope::default(), &mut |line, one| {
            all.push((line, one.count));
        });
        assert_eq!(all, [(1, 1), (3, 1), (4, 1)]);
        all.clear();
        let from = text.rfind("red\nball red").unwrap();
        finder.output(text, from, &Scope::default(), &mut |line, one| {
            all.push((line, one.count));
        });
        assert_eq!(all, [(3, 1), (4, 1)]);
    }
}
