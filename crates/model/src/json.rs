//! JSON as it stands in the file: a scanner that yields spans, never a tree.
//!
//! Every other reader loses something: a tree of values refuses half an emoji, rounds long
//! numbers and forgets the order of keys. Here a value is the place where it stands
//! ([`Span`]); it is decoded when somebody looks, and edited by replacing those bytes
//! ([`splice`]). The scanner accepts what `JSON.parse` accepts, and two things more that are
//! reported rather than refused: raw control characters inside strings ([`JsonCursor::control`])
//! and bytes that are not UTF-8. Nesting is counted, not recursed into, so depth is free.

use std::borrow::Cow;

use compact_str::CompactString;

mod string_scan;

pub(crate) use string_scan::QuoteMarks;
use string_scan::{StringStop, plain};

/// The longest text that is kept as a name, in bytes. No id, version or path is longer, and a
/// session keeps every one of them.
pub(crate) const LONGEST_NAME: usize = 4096;

/// A place in a line: from `start`, `len` bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Number of bytes.
    pub len: usize,
}

impl Span {
    /// The span from `start` up to `end`.
    pub fn new(start: usize, end: usize) -> Span {
        Span {
            start,
            len: end.saturating_sub(start),
        }
    }

    /// Offset just behind the last byte.
    pub fn end(self) -> usize {
        self.start + self.len
    }

    /// The bytes it covers; empty where `bytes` is too short.
    pub fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.start..self.end()).unwrap_or_default()
    }
}

/// A [`Span`] in half the memory: no line that is decoded has four gigabytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShortSpan {
    start: u32,
    len: u32,
}

impl ShortSpan {
    /// The span, counted from `start` on.
    pub(crate) fn behind(span: Span, start: usize) -> ShortSpan {
        let fit = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        ShortSpan {
            start: fit(span.start - start.min(span.start)),
            len: fit(span.len),
        }
    }

    /// The span.
    pub(crate) fn span(self) -> Span {
        let start = self.start as usize;
        Span::new(start, start + self.len as usize)
    }
}

/// Why and where bytes are not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// Offset of the byte that does not fit.
    pub at: usize,
    /// What was wrong with it.
    pub why: &'static str,
}

type ScanResult<T> = Result<T, JsonError>;

/// Walks over JSON text, value by value.
pub struct JsonCursor<'a> {
    bytes: &'a [u8],
    /// The same as text, where it is known to be UTF-8: strings need not be checked again.
    text: Option<&'a str>,
    at: usize,
    /// Whether a string held a raw control character, which `JSON.parse` would refuse.
    pub control: bool,
    /// All of it was passed over before, and nothing was wrong.
    trusting: bool,
}

impl<'a> JsonCursor<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> JsonCursor<'a> {
        JsonCursor::from(bytes, 0)
    }

    /// Starts at byte `at`.
    pub fn from(bytes: &'a [u8], at: usize) -> JsonCursor<'a> {
        JsonCursor {
            bytes,
            text: None,
            at,
            control: false,
            trusting: false,
        }
    }

    /// Starts at byte `at` of a line that is UTF-8 as a whole if `text` is given.
    pub fn within(bytes: &'a [u8], text: Option<&'a str>, at: usize) -> JsonCursor<'a> {
        JsonCursor {
            bytes,
            text,
            at,
            control: false,
            trusting: false,
        }
    }

    /// The same for text that was passed over before: strings are searched for their end only.
    pub(crate) fn trusting(mut self) -> JsonCursor<'a> {
        self.trusting = true;
        self
    }

    /// The text of a string that stands at `span`.
    fn string(&self, span: Span) -> Cow<'a, str> {
        let inner = Span {
            start: span.start + 1,
            len: span.len.saturating_sub(2),
        };
        let raw = inner.of(self.bytes);
        match self
            .text
            .and_then(|text| text.get(inner.start..inner.end()))
        {
            Some(text) if memchr::memchr(b'\\', raw).is_none() => Cow::Borrowed(text),
            _ => string(span.of(self.bytes)),
        }
    }

    /// Where the cursor stands.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Another one at the same place, to look ahead with.
    pub(crate) fn ahead(&self) -> JsonCursor<'a> {
        JsonCursor { ..*self }
    }

    /// The next byte that is not white space, without taking it.
    pub fn peek(&mut self) -> Option<u8> {
        while let Some(&byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    /// Passes over one value of any kind and says where it stood.
    pub fn skip(&mut self) -> ScanResult<Span> {
        let first = self.peek();
        let start = self.at;
        match first {
            Some(b'{' | b'[') => self.skip_nested()?,
            Some(_) => self.skip_scalar()?,
            None => return Err(self.bad("unexpected end: expected a value")),
        }
        Ok(Span::new(start, self.at))
    }

    /// Takes an object, calling `field` for each key; `field` must take the value.
    ///
    /// Any other value is passed over, and the answer is `false`.
    pub fn object(
        &mut self,
        mut field: impl FnMut(&mut Self, &str) -> ScanResult<()>,
    ) -> ScanResult<bool> {
        if self.peek() != Some(b'{') {
            self.skip()?;
            return Ok(false);
        }
        self.at += 1;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(true);
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.bad("expected a key"));
            }
            let key = self.quoted()?;
            self.expect(b':', "expected a colon")?;
            field(self, &key)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(self.bad("expected a comma or a closing brace")),
            }
        }
        self.at += 1;
        Ok(true)
    }

    /// Takes an array, calling `item` before each element; `item` must take it.
    ///
    /// Any other value is passed over, and the answer is `false`.
    pub fn array(&mut self, mut item: impl FnMut(&mut Self) -> ScanResult<()>) -> ScanResult<bool> {
        if self.peek() != Some(b'[') {
            self.skip()?;
            return Ok(false);
        }
        self.at += 1;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(true);
        }
        loop {
            item(self)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.bad("expected a comma or a closing bracket")),
            }
        }
        self.at += 1;
        Ok(true)
    }

    /// Takes a value; its text if it is a string.
    pub fn text(&mut self) -> ScanResult<Option<Cow<'a, str>>> {
        if self.peek() == Some(b'"') {
            return self.quoted().map(Some);
        }
        self.skip()?;
        Ok(None)
    }

    /// The text of a string that names something: an id, a kind, a folder. What is longer than
    /// [`LONGEST_NAME`] names nothing.
    pub(crate) fn name(&mut self) -> ScanResult<Option<CompactString>> {
        let text = self.text()?.filter(|text| text.len() <= LONGEST_NAME);
        Ok(text.map(CompactString::from))
    }

    /// Takes the string that begins here. Most are short and need no decoding.
    fn quoted(&mut self) -> ScanResult<Cow<'a, str>> {
        let start = self.at + 1;
        let end = start + plain(self.bytes.get(start..).unwrap_or_default());
        if self.bytes.get(end) == Some(&b'"') {
            let text = match self.text {
                Some(text) => text.get(start..end),
                None => simdutf8::basic::from_utf8(&self.bytes[start..end]).ok(),
            };
            if let Some(text) = text {
                self.at = end + 1;
                return Ok(Cow::Borrowed(text));
            }
        }
        let span = self.skip()?;
        Ok(self.string(span))
    }

    /// Takes a value; whether it is `true`.
    pub fn truth(&mut self) -> ScanResult<bool> {
        let span = self.skip()?;
        Ok(span.of(self.bytes) == b"true")
    }

    /// Takes a value; its number if it is a whole, non-negative one that fits.
    pub fn count(&mut self) -> ScanResult<Option<u64>> {
        let span = self.skip()?;
        Ok(count(span.of(self.bytes)))
    }

    fn bad(&self, why: &'static str) -> JsonError {
        JsonError { at: self.at, why }
    }

    fn expect(&mut self, byte: u8, why: &'static str) -> ScanResult<()> {
        if self.peek() != Some(byte) {
            return Err(self.bad(why));
        }
        self.at += 1;
        Ok(())
    }

    /// Passes over an array or object without recursion: the open brackets are a list.
    fn skip_nested(&mut self) -> ScanResult<()> {
        let mut open = BracketStack::default();
        loop {
            // Here a value is due (or the end of an empty container).
            match self.peek() {
                Some(b'{') => {
                    self.at += 1;
                    if self.peek() == Some(b'}') {
                        self.at += 1;
                    } else {
                        open.push(true);
                        self.key()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    if self.peek() == Some(b']') {
                        self.at += 1;
                    } else {
                        open.push(false);
                        continue;
                    }
                }
                Some(_) => self.skip_scalar()?,
                None => return Err(self.bad("unexpected end inside a value")),
            }
            // Here a value has ended.
            loop {
                let Some(is_object) = open.last() else {
                    return Ok(());
                };
                let close = if is_object { b'}' } else { b']' };
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        if is_object {
                            self.key()?;
                        }
                        break;
                    }
                    Some(byte) if byte == close => {
                        self.at += 1;
                        open.pop();
                    }
                    Some(_) => {
                        return Err(self.bad("expected a comma or a closing bracket"));
                    }
                    None => return Err(self.bad("unexpected end inside a value")),
                }
            }
        }
    }

    fn key(&mut self) -> ScanResult<()> {
        if self.peek() != Some(b'"') {
            return Err(self.bad("expected a key"));
        }
        self.skip_string()?;
        self.expect(b':', "expected a colon")
    }

    fn skip_scalar(&mut self) -> ScanResult<()> {
        match self.bytes.get(self.at) {
            Some(b'"') => self.skip_string(),
            Some(b't') => self.skip_word(b"true"),
            Some(b'f') => self.skip_word(b"false"),
            Some(b'n') => self.skip_word(b"null"),
            Some(b'-' | b'0'..=b'9') => self.skip_number(),
            _ => Err(self.bad("invalid value")),
        }
    }

    fn skip_word(&mut self, word: &[u8]) -> ScanResult<()> {
        if !self
            .bytes
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(word))
        {
            return Err(self.bad("invalid value"));
        }
        self.at += word.len();
        Ok(())
    }

    fn skip_number(&mut self) -> ScanResult<()> {
        self.at += usize::from(self.bytes.get(self.at) == Some(&b'-'));
        let first = self.bytes.get(self.at).copied();
        let digits = self.digits();
        if digits == 0 || (digits > 1 && first == Some(b'0')) {
            return Err(self.bad("not a number"));
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return Err(self.bad("not a number"));
            }
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            self.at += usize::from(matches!(self.bytes.get(self.at), Some(b'+' | b'-')));
            if self.digits() == 0 {
                return Err(self.bad("not a number"));
            }
        }
        Ok(())
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        self.at - start
    }

    fn skip_string(&mut self) -> ScanResult<()> {
        let mut at = self.at + 1;
        loop {
            let stop = match self.trusting {
                true => string_scan::pass::<true>(self.bytes, at, &mut self.control),
                false => string_scan::pass::<false>(self.bytes, at, &mut self.control),
            };
            at = match stop {
                StringStop::Quote(end) => {
                    self.at = end + 1;
                    return Ok(());
                }
                StringStop::Escape(escape) => self.skip_escape(escape)?,
                StringStop::Rest(rest) => return self.skip_rest(rest),
            }
        }
    }

    /// Passes over a string whose last bytes begin here.
    fn skip_rest(&mut self, mut at: usize) -> ScanResult<()> {
        loop {
            at += plain(self.bytes.get(at..).unwrap_or_default());
            match self.bytes.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok(());
                }
                Some(b'\\') => at = self.skip_escape(at)?,
                Some(_) => {
                    self.control = true;
                    at += 1;
                }
                None => return Err(self.bad("unexpected end inside a string")),
            }
        }
    }

    fn skip_escape(&self, at: usize) -> ScanResult<usize> {
        let rest = self.bytes.get(at..).unwrap_or_default();
        if let Some(len) = escape_len(rest) {
            return Ok(at + len);
        }
        match rest.get(1) {
            None => Err(JsonError {
                at,
                why: "unexpected end inside a string",
            }),
            Some(_) => Err(JsonError {
                at,
                why: "invalid escape",
            }),
        }
    }
}

/// Open brackets: whether each is that of an object. The innermost ones are bits of a number,
/// so that passing over ordinary values takes no memory.
#[derive(Default)]
struct BracketStack {
    outer: Vec<u64>,
    inner: u64,
    depth: u32,
}

impl BracketStack {
    fn push(&mut self, is_object: bool) {
        if self.depth == u64::BITS {
            self.outer.push(self.inner);
            self.depth = 0;
        }
        self.inner = self.inner << 1 | u64::from(is_object);
        self.depth += 1;
    }

    fn last(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.inner & 1 == 1)
    }

    fn pop(&mut self) {
        self.inner >>= 1;
        self.depth -= 1;
        if self.depth == 0
            && let Some(outer) = self.outer.pop()
        {
            self.inner = outer;
            self.depth = u64::BITS;
        }
    }
}

fn hex4(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 4)?;
    digits.iter().try_fold(0, |sum, &digit| {
        Some(sum * 16 + char::from(digit).to_digit(16)?)
    })
}

/// The text of a JSON string, given with its quotes.
///
/// Half a surrogate pair and bytes that are not UTF-8 become U+FFFD; nothing fails.
pub fn string(raw: &[u8]) -> Cow<'_, str> {
    let start = raw.strip_prefix(b"\"").unwrap_or(raw);
    inner(start.strip_suffix(b"\"").unwrap_or(start))
}

/// Like [`string`], for what stands between the quotes.
pub fn inner(raw: &[u8]) -> Cow<'_, str> {
    if memchr::memchr(b'\\', raw).is_none() {
        return lossy(raw);
    }
    Cow::Owned(unescape(raw))
}

/// The length of the escape that begins here, if it is one that JSON knows.
#[inline]
pub(crate) fn escape_len(rest: &[u8]) -> Option<usize> {
    match rest.get(1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => hex4(rest, 2).map(|_| 6),
        _ => None,
    }
}

/// Like [`string`], but stops after about `limit` bytes of text.
pub fn string_head(raw: &[u8], limit: usize) -> String {
    let inner = raw.strip_prefix(b"\"").unwrap_or(raw);
    let inner = inner.strip_suffix(b"\"").unwrap_or(inner);
    // An escape is at most six times longer than what it stands for.
    let mut end = inner.len().min(limit.saturating_mul(6));
    let mut text = unescape(&inner[..end]);
    if end < inner.len() {
        // The cut may have split an escape or a character: leave out what it touched.
        end = limit.min(text.len().saturating_sub(8));
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
    text
}

/// The quick check first: nearly all text is UTF-8.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    let text = simdutf8::basic::from_utf8(bytes);
    text.map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

fn unescape(inner: &[u8]) -> String {
    // Checked once: output of tools is many short runs between escapes.
    let Ok(whole) = simdutf8::basic::from_utf8(inner) else {
        return unescape_bytes(inner);
    };
    let mut text = String::with_capacity(inner.len());
    let mut marks = QuoteMarks::from(inner, 0);
    let mut done = 0;
    let mut at = 0;
    while let Some(mark) = marks.next(at) {
        if inner[mark] == b'"' {
            at = mark + 1;
            continue;
        }
        let (character, used) = escape(&inner[mark..]);
        text.push_str(&whole[done..mark]);
        text.push(character);
        at = inner.len().min(mark + used);
        done = at;
    }
    text.push_str(&whole[done..]);
    text
}

/// The same for what is not UTF-8.
fn unescape_bytes(inner: &[u8]) -> String {
    let mut text = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(found) = memchr::memchr(b'\\', rest) {
        text.extend_from_slice(&rest[..found]);
        rest = &rest[found..];
        let (character, used) = escape(rest);
        text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        rest = &rest[used.min(rest.len())..];
    }
    text.extend_from_slice(rest);
    String::from_utf8_lossy(&text).into_owned()
}

/// The character that `rest`, which begins with a backslash, stands for, and its length.
pub(crate) fn escape(rest: &[u8]) -> (char, usize) {
    match rest.get(1) {
        Some(b'n') => ('\n', 2),
        Some(b't') => ('\t', 2),
        Some(b'r') => ('\r', 2),
        Some(b'b') => ('\u{8}', 2),
        Some(b'f') => ('\u{c}', 2),
        Some(b'u') => unicode_escape(rest),
        Some(&other) if other.is_ascii() => (char::from(other), 2),
        _ => (char::REPLACEMENT_CHARACTER, 1),
    }
}

fn unicode_escape(rest: &[u8]) -> (char, usize) {
    let Some(unit) = hex4(rest, 2) else {
        return (char::REPLACEMENT_CHARACTER, rest.len());
    };
    if let Some(character) = char::from_u32(unit) {
        return (character, 6);
    }
    let low = (rest.get(6..8) == Some(b"\\u"))
        .then(|| hex4(rest, 8))
        .flatten();
    match low {
        Some(low @ 0xDC00..=0xDFFF) if unit < 0xDC00 => {
            let code = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
            (
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
                12,
            )
        }
        _ => (char::REPLACEMENT_CHARACTER, 6),
    }
}

/// Whether a JSON string holds half a surrogate pair, which the API refuses.
pub fn has_lone_surrogate(raw: &[u8]) -> bool {
    let mut rest = raw;
    while let Some(found) = memchr::memchr(b'\\', rest) {
        rest = &rest[found..];
        let (_, used) = escape(rest);
        let unit = (rest.get(1) == Some(&b'u'))
            .then(|| hex4(rest, 2))
            .flatten();
        if used == 6 && matches!(unit, Some(0xD800..=0xDFFF)) {
            return true;
        }
        rest = &rest[used.min(rest.len())..];
    }
    false
}

/// A copy that any parser reads: half surrogate pairs become `\ufffd`, bytes that are not
/// UTF-8 the replacement character, raw control characters in strings a space.
pub fn mended(raw: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(raw).into_owned();
    if has_lone_surrogate(text.as_bytes()) {
        text = mend_surrogates(&text);
    }
    if text.bytes().any(|byte| byte < 0x20) {
        text = text
            .chars()
            .map(|c| if c < ' ' { ' ' } else { c })
            .collect();
    }
    text
}

fn mend_surrogates(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(found) = rest.find('\\') {
        let (before, from) = rest.split_at(found);
        out.push_str(before);
        let (character, used) = escape(from.as_bytes());
        let used = used.clamp(1, from.len());
        let lone = used == 6 && character == char::REPLACEMENT_CHARACTER;
        out.push_str(if lone { "\\ufffd" } else { &from[..used] });
        rest = &from[used..];
    }
    out.push_str(rest);
    out
}

/// The value as a tree, for payloads that somebody looks into.
///
/// What the tree cannot hold (nesting beyond its limit, numbers out of range) comes back as
/// a string with the raw text, so nothing disappears.
pub fn value(raw: &[u8]) -> serde_json::Value {
    let parsed = serde_json::from_slice(raw).or_else(|_| serde_json::from_str(&mended(raw)));
    parsed.unwrap_or_else(|_| serde_json::Value::String(String::from_utf8_lossy(raw).into_owned()))
}

/// A whole, non-negative number that fits into 64 bits.
pub fn count(raw: &[u8]) -> Option<u64> {
    // Nearly all of them are a few digits.
    if (1..=18).contains(&raw.len()) && raw.iter().all(u8::is_ascii_digit) {
        let add = |sum: u64, digit: &u8| sum * 10 + u64::from(digit - b'0');
        return Some(raw.iter().fold(0, add));
    }
    let text = std::str::from_utf8(raw).ok()?;
    // `1e3` and `7.0` are whole numbers too.
    let float = || {
        text.parse()
            .ok()
            .filter(|number: &f64| number.fract() == 0.0 && (0.0..1e15).contains(number))
    };
    text.parse()
        .ok()
        .or_else(|| float().map(|number| number as u64))
}

/// Text as a JSON string, with quotes.
pub fn quoted(text: &str) -> String {
    // A text always has a form in JSON.
    serde_json::to_string(text).unwrap_or_default()
}

/// Where the value at `path` stands: keys select in objects (the last of equal keys counts,
/// as in `JSON.parse`), numbers in arrays.
pub fn find(bytes: &[u8], path: &[&str]) -> Option<Span> {
    find_from(JsonCursor::new(bytes), path)
}

/// The same in text that was passed over before, and in which nothing was wrong.
pub(crate) fn find_again(bytes: &[u8], path: &[&str]) -> Option<Span> {
    find_from(JsonCursor::new(bytes).trusting(), path)
}

fn find_from(mut cursor: JsonCursor<'_>, path: &[&str]) -> Option<Span> {
    let Some((step, rest)) = path.split_first() else {
        return cursor.skip().ok();
    };
    let mut found = None;
    let mut index = 0usize;
    let scanned = match cursor.peek()? {
        b'[' => cursor.array(|c| {
            let span = c.skip()?;
            if step.parse() == Ok(index) {
                found = Some(span);
            }
            index += 1;
            Ok(())
        }),
        _ => cursor.object(|c, key| {
            let span = c.skip()?;
            if key == *step {
                found = Some(span);
            }
            Ok(())
        }),
    };
    scanned.ok()?;
    let found = found?;
    if rest.is_empty() {
        return Some(found);
    }
    cursor.at = found.start;
    find_from(cursor, rest)
}

/// Replaces each span by its new bytes; all other bytes stay as they are.
///
/// Spans that overlap an earlier one are left out, so the result never mixes two edits.
pub fn splice(bytes: &[u8], edits: &[(Span, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    splice_into(&mut out, bytes, edits);
    out
}

/// The same, behind what stands in `out`.
pub(crate) fn splice_into(out: &mut Vec<u8>, bytes: &[u8], edits: &[(Span, Vec<u8>)]) {
    let mut order: Vec<_> = edits.iter().collect();
    order.sort_by_key(|(span, _)| span.start);
    let mut at = 0;
    for (span, new) in order {
        if span.start < at || span.end() > bytes.len() {
            continue;
        }
        out.extend_from_slice(&bytes[at..span.start]);
        out.extend_from_slice(new);
        at = span.end();
    }
    out.extend_from_slice(&bytes[at..]);
}

/// A copy of the object in which the top-level field `key` has the value `new`.
///
/// A field that was not there is added at the end. `None` if `bytes` is not an object.
pub fn with_field(bytes: &[u8], key: &str, new: &str) -> Option<Vec<u8>> {
    if let Some(span) = find(bytes, &[key]) {
        return Some(splice(bytes, &[(span, new.as_bytes().to_vec())]));
    }
    let mut cursor = JsonCursor::new(bytes);
    let mut empty = true;
    let is_object = cursor.object(|c, _| {
        empty = false;
        c.skip().map(drop)
    });
    if !is_object.ok()? {
        return None;
    }
    let comma = if empty { "" } else { "," };
    let close = Span {
        start: cursor.position() - 1,
        len: 0,
    };
    let field = format!("{comma}{}:{new}", quoted(key));
    Some(splice(bytes, &[(close, field.into_bytes())]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_surrogate_is_read_and_marked() {
        let raw = br#""a\ud83d b""#;
        assert_eq!(string(raw), "a\u{fffd} b");
        assert!(has_lone_surrogate(raw));
        assert!(!has_lone_surrogate(br#""\ud83d\ude00 \\ud83d""#));
        assert_eq!(string(br#""\ud83d\ude00""#), "😀");
        assert_eq!(mended(raw), r#""a\ufffd b""#);
    }

    #[test]
    fn splicing_one_field_keeps_all_other_bytes() {
        let line =
            br#"{"n":123456789012345678901234567890,"a":1.0 , "a":"\ud83d","z":{"q":[1,2]}}"#;
        let edited = with_field(line, "a", "7").unwrap();
        assert_eq!(
            String::from_utf8_lossy(&edited),
            r#"{"n":123456789012345678901234567890,"a":1.0 , "a":7,"z":{"q":[1,2]}}"#
        );
        assert_eq!(find(line, &["z", "q", "1"]).unwrap().of(line), b"2");
        assert_eq!(with_field(b"{}", "x", "1").unwrap(), br#"{"x":1}"#);
        assert_eq!(
            with_field(br#"{"a":1}"#, "x", "2").unwrap(),
            br#"{"a":1,"x":2}"#
        );
        assert_eq!(splice(line, &[]), line);
    }

    #[test]
    fn nesting_of_any_depth_is_passed_over() {
        let deep = [vec![b'['; 200_000], vec![b']'; 200_000]].concat();
        assert_eq!(JsonCursor::new(&deep).skip().unwrap().len, deep.len());
        assert!(JsonCursor::new(&deep[..deep.len() - 1]).skip().is_err());
    }

    #[test]
    fn the_scanner_accepts_what_a_strict_parser_accepts() {
        let good = [
            "{}",
            "[]",
            "[1,-0,1.5e-3,1E400]",
            r#"{"a":[{"b":null}],"c":"\u0000\/"}"#,
            " true ",
        ];
        let bad = [
            "{",
            "[1,]",
            "{,}",
            r#"{"a"}"#,
            "01",
            "1.",
            "-",
            "tru",
            r#""\x""#,
            r#""\u12g4""#,
            "\"a",
            "{\"a\":1]",
        ];
        for text in good {
            assert!(JsonCursor::new(text.as_bytes()).skip().is_ok(), "{text}");
        }
        for text in bad {
            let mut cursor = JsonCursor::new(text.as_bytes());
            let read_all = cursor.skip().is_ok() && cursor.peek().is_none();
            assert!(!read_all, "{text}");
        }
    }

    #[test]
    fn a_head_of_a_string_never_splits_a_character() {
        let raw = quoted(&"日本\n".repeat(100));
        let head = string_head(raw.as_bytes(), 50);
        assert!("日本\n".repeat(100).starts_with(&head) && head.len() <= 50 && head.len() > 30);
        assert_eq!(string_head(b"\"short\"", 50), "short");
    }
}
