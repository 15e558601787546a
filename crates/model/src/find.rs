//! Finding text: what was asked for, matched against the decoded texts of lines.
//!
//! Decoding a gigabyte takes seconds, finding bytes in it tenths of one. So a query has two
//! forms: one for decoded text, which decides, and one for lines as they stand in the file,
//! which only says where to look. The second is made from the first by writing every
//! character as JSON may write it, and can only find too much. What no such form can show,
//! because a string holds `\uXXXX` or is cut by colours, is decoded in any case.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr2, memmem, memrchr};
use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::hir::{
    Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Repetition,
};

use crate::entry::Entry;
use crate::json;
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
    let holds = |class: &ClassUnicode, c: char| {
        let ranges = class.ranges();
        ranges
            .iter()
            .any(|range| (range.start()..=range.end()).contains(&c))
    };
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
}

impl Scope {
    /// Whether a text is to be looked at.
    pub fn takes(&self, text: &Text<'_>) -> bool {
        let here = self.places.is_empty() || self.places.contains(&text.place);
        here && (!self.paths || text.is_path())
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
    let room = AROUND * (lines + 1);
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

fn clipped(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Looks through lines, with buffers that are used again: one for each thread.
#[derive(Debug)]
pub struct Finder {
    query: Query,
    text: Vec<u8>,
}

impl Finder {
    /// A finder of its own for each thread.
    pub fn new(query: &Query) -> Finder {
        Finder {
            query: query.clone(),
            text: Vec::new(),
        }
    }

    /// Calls `each` with the lines of `piece` that may hold a match, and where they begin.
    pub fn candidates(&mut self, piece: &[u8], mut each: impl FnMut(&mut Finder, usize, &[u8])) {
        let Some(written) = self.query.written.clone() else {
            let mut start = 0;
            for line in piece.split(|byte| *byte == b'\n') {
                each(self, start, line);
                start += line.len() + 1;
            }
            return;
        };
        let unicode = memmem::Finder::new(b"\\u");
        let mut literal = Next::new(|at| written.find_at(piece, at).map(|found| found.start()));
        let mut escaped = Next::new(|at| unicode.find(&piece[at..]).map(|found| at + found));
        let mut colour = Next::new(|at| memchr(ESCAPE, &piece[at..]).map(|found| at + found));
        let mut at = 0;
        while at < piece.len() {
            let sure = literal.from(at);
            let first = sure.min(escaped.from(at)).min(colour.from(at));
            if first == usize::MAX {
                return;
            }
            let start = memrchr(b'\n', &piece[at..first]).map_or(at, |found| at + found + 1);
            let end = memchr(b'\n', &piece[first..]).map_or(piece.len(), |found| first + found);
            let line = &piece[start..end];
            if sure < end || self.is_hidden(line) {
                each(self, start, line);
            }
            at = end + 1;
        }
    }

    /// Whether a string that holds `\u` or is coloured matches once it is decoded. Looks at
    /// nothing else, and does not care what the string is.
    fn is_hidden(&mut self, line: &[u8]) -> bool {
        let unicode = memmem::Finder::new(b"\\u");
        let mut at = 0;
        while at < line.len() {
            let rest = &line[at..];
            let escaped = unicode.find(rest).unwrap_or(rest.len());
            let colour = memchr(ESCAPE, &rest[..escaped]).unwrap_or(escaped);
            if colour == rest.len() {
                return false;
            }
            let start = string_start(line, at, at + colour);
            at = decode_string(line, start, &mut self.text);
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
            snippet: snippet(text, first, scope.around),
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
                        snippet: snippet(text, range, scope.around),
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
        let rest = &line[at..];
        let run = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
        out.extend_from_slice(&rest[..run]);
        at += run;
        let rest = &line[at..];
        if rest.first() != Some(&b'\\') || json::escape_len(rest).is_none() {
            return at + 1;
        }
        let (c, used) = json::escape(rest);
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        at += used;
    }
}
