//! What somebody looks for: one expression for decoded text, which decides, and one for lines
//! as they are written, which can only find too much.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr;
use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::hir::{
    Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Repetition,
};

use crate::text::{self, ESCAPE};

/// Whether capitals matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaseMode {
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
pub enum QueryError {
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
pub struct TextQuery {
    /// For decoded text.
    pub(super) exact: Regex,
    /// For lines as they are written; `None` where every line must be read.
    pub(super) written: Option<Regex>,
    /// Whether the character that begins a colour can be part of a match.
    pub(super) colours: bool,
}

impl TextQuery {
    /// Looks for exactly this text.
    pub fn literal(text: &str, case: CaseMode) -> Result<TextQuery, QueryError> {
        if text.is_empty() {
            return Err(QueryError::Empty);
        }
        let capitals = text.chars().any(char::is_uppercase);
        TextQuery::new(&regex_syntax::escape(text), case, capitals)
    }

    /// Looks for what a regular expression matches; `^` and `$` are the ends of a line of
    /// text.
    pub fn regex(pattern: &str, case: CaseMode) -> Result<TextQuery, QueryError> {
        if pattern.is_empty() {
            return Err(QueryError::Empty);
        }
        TextQuery::new(pattern, case, has_capitals(pattern))
    }

    fn new(pattern: &str, case: CaseMode, capitals: bool) -> Result<TextQuery, QueryError> {
        let fold = match case {
            CaseMode::Smart => !capitals,
            CaseMode::Ignore => true,
            CaseMode::Exact => false,
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
            .map_err(|_| QueryError::TooLarge)?;
        // What matches nothing at all is found on every line.
        let anywhere = hir.properties().minimum_len() == Some(0);
        let written = (!anywhere).then(|| Regex::new(&written(&hir).to_string()).ok());
        Ok(TextQuery {
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

    pub(super) fn is_in(&self, text: &[u8]) -> bool {
        let mut all = self.exact.find_iter(text);
        all.any(|found| !found.is_empty())
    }

    /// The text in which it matches: without the sequences that colour it, else with them.
    pub(super) fn seen<'t>(&self, text: Cow<'t, str>) -> Option<Cow<'t, str>> {
        if memchr(ESCAPE, text.as_bytes()).is_some() {
            let plain = text::plain(&text);
            if self.is_in(plain.as_bytes()) {
                return Some(Cow::Owned(plain.into_owned()));
            }
        }
        self.is_in(text.as_bytes()).then_some(text)
    }
}

fn bad(pattern: &str, error: &regex_syntax::Error) -> QueryError {
    let (start, why) = match error {
        regex_syntax::Error::Parse(error) => (error.span().start.offset, error.kind().to_string()),
        regex_syntax::Error::Translate(error) => {
            (error.span().start.offset, error.kind().to_string())
        }
        _ => (0, error.to_string()),
    };
    let before = pattern.get(..start).unwrap_or_default();
    QueryError::Regex {
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
