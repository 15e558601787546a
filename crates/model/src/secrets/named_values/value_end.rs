//! Where a value ends: at its closing quote, or where the syntax around it says so.

use std::ops::Range;

/// How far a value reaches at most.
const REACH: usize = 1024;

/// How much of the line before a value is looked at.
const BEFORE: usize = 300;

/// A value, and how it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedValue {
    /// Where it is, without its quotes.
    pub(super) range: Range<usize>,
    /// Whether quotes or tags say where it begins and ends.
    pub(super) is_quoted: bool,
    /// Whether nothing but the end of the line follows.
    pub(super) is_line_end: bool,
}

/// What stands before a name on its line, as far as it says where a value ends.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ValueSurroundings {
    /// The quote that is open there.
    quote: Option<u8>,
    /// Whether a bracket is.
    is_bracketed: bool,
    /// The name is one of an address: `?name=` or `&name=`.
    is_query: bool,
    /// The name stands in a list with semicolons, as in a connection string.
    is_list: bool,
    /// The name is the first thing on its line.
    pub(super) is_line_start: bool,
    /// The line is one of a shell, where a semicolon ends a command.
    is_shell: bool,
    /// Other settings or flags stand before it, as in commands and logs.
    pub(super) is_among_settings: bool,
}

impl ValueSurroundings {
    /// The name stands between quotes of its own.
    pub(super) fn with_quoted_name(self) -> ValueSurroundings {
        ValueSurroundings {
            quote: None,
            ..self
        }
    }

    /// What stands before the name that begins here.
    pub(super) fn new(bytes: &[u8], name: usize) -> ValueSurroundings {
        let from = name.saturating_sub(BEFORE);
        let line = &bytes[from..name];
        let line = &line[memchr::memrchr(b'\n', line).map_or(0, |at| at + 1)..];
        let mut around = ValueSurroundings::default();
        let mut open = 0_i32;
        let mut at = 0;
        while at < line.len() {
            match line[at] {
                b'\\' => at += 1,
                byte @ (b'"' | b'\'' | b'`') => match around.quote {
                    Some(quote) if quote == byte => around.quote = None,
                    None if byte != b'\'' || at == 0 || !line[at - 1].is_ascii_alphanumeric() => {
                        around.quote = Some(byte);
                    }
                    _ => {}
                },
                b'(' | b'{' | b'[' => open += 1,
                b')' | b'}' | b']' => open -= 1,
                _ => {}
            }
            at += 1;
        }
        around.is_bracketed = open > 0;
        let last = line.trim_ascii_end().last();
        around.is_query = matches!(line.last(), Some(b'?' | b'&'));
        around.is_list = last == Some(&b';');
        let marks = |byte: &u8| b" \t-+>#*|\"'/;0123456789".contains(byte);
        let line = line.trim_ascii_start();
        around.is_shell = line.starts_with(b"export ") || line.starts_with(b"$ ");
        let line = ["export ", "set ", "ENV ", "ARG "]
            .iter()
            .fold(line, |line, word| {
                line.strip_prefix(word.as_bytes()).unwrap_or(line)
            });
        around.is_line_start = line.iter().all(marks);
        let is_flags = memchr::memmem::find(line, b" -").is_some();
        around.is_among_settings =
            !around.is_bracketed && (is_flags || memchr::memchr(b'=', line).is_some());
        around
    }
}

/// The value that begins here; `None` where there is none, or one that another layer shows.
pub(super) fn value(bytes: &[u8], at: usize, around: &ValueSurroundings) -> Option<NamedValue> {
    let at = prefix(bytes, at);
    let rest = bytes.get(at..bytes.len().min(at + REACH))?;
    match *rest.first()? {
        quote @ (b'"' | b'\'' | b'`') if around.quote != Some(quote) => quoted(rest, at, quote),
        // This quote may close what is open; but where escapes were taken off, it may not.
        quote @ (b'"' | b'\'') => {
            let value = quoted(rest, at, quote)?;
            let inner = &bytes[value.range.clone()];
            let is_plain = |byte: &u8| !byte.is_ascii_whitespace() && !b",;()+\\".contains(byte);
            (!inner.is_empty() && inner.iter().all(is_plain)).then_some(value)
        }
        0xe2 if rest.starts_with("“".as_bytes()) => {
            let start = "“".len();
            let end = memchr::memmem::find(rest, "”".as_bytes())?;
            Some(value_of(rest, at, start..end, true))
        }
        b'|' | b'>' => block(rest, at),
        b'\r' | b'\n' | b'\\' => None,
        _ => bare(rest, at, around),
    }
}

/// A value without the scheme before it: `Bearer`, `Basic`, `Token`.
pub(super) fn without_scheme(
    bytes: &[u8],
    value: NamedValue,
    around: &ValueSurroundings,
) -> Option<NamedValue> {
    const SCHEMES: [&[u8]; 7] = [
        b"bearer",
        b"basic",
        b"token",
        b"apikey",
        b"api-key",
        b"digest",
        b"negotiate",
    ];
    let text = &bytes[value.range.clone()];
    let is_scheme = |scheme: &&[u8]| {
        let head = text.get(..scheme.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(scheme))
    };
    let Some(scheme) = SCHEMES.into_iter().find(is_scheme) else {
        return Some(value);
    };
    let end = value.range.start + scheme.len();
    let blank = |at: usize| bytes.get(at) == Some(&b' ');
    if !blank(end) {
        return Some(value);
    }
    if value.is_quoted {
        let range = end + 1..value.range.end;
        return Some(NamedValue { range, ..value });
    }
    bare(
        &bytes[end + 1..bytes.len().min(end + REACH)],
        end + 1,
        around,
    )
}

/// Letters before a quote that belong to it: `b"…"`, `r'…'`, `@"…"`; and tags of YAML.
fn prefix(bytes: &[u8], at: usize) -> usize {
    if bytes.get(at) == Some(&b'!') {
        let rest = &bytes[at..];
        let tags = [&b"!!str "[..], b"!!binary ", b"!unsafe ", b"! "];
        let tag = tags.into_iter().find(|tag| rest.starts_with(tag));
        return at + tag.map_or(0, <[u8]>::len);
    }
    let is_letter = |byte: &u8| b"bBrRuUL@$".contains(byte);
    match bytes.get(at..) {
        Some([first, b'"' | b'\'', ..]) if is_letter(first) => at + 1,
        _ => at,
    }
}

fn value_of(rest: &[u8], at: usize, inner: Range<usize>, is_quoted: bool) -> NamedValue {
    let behind = rest.get(inner.end..).unwrap_or_default();
    let behind = behind
        .iter()
        .position(|byte| !b" \t\r\"'`,;)".contains(byte));
    let is_line_end = match behind {
        Some(more) => rest[inner.end + more] == b'\n',
        None => true,
    };
    NamedValue {
        range: at + inner.start..at + inner.end,
        is_quoted,
        is_line_end,
    }
}

fn quoted(rest: &[u8], at: usize, quote: u8) -> Option<NamedValue> {
    let triple = [quote; 3];
    let is_triple = rest.starts_with(&triple) && quote != b'`';
    let start = if is_triple { 3 } else { 1 };
    let mut end = start;
    loop {
        match *rest.get(end)? {
            b'\\' => end += 2,
            b'\n' if !is_triple => return None,
            _ if is_triple && rest[end..].starts_with(&triple) => break,
            byte if byte == quote && !is_triple => break,
            _ => end += 1,
        }
    }
    Some(value_of(rest, at, start..end, true))
}

/// A text of YAML on the lines below.
fn block(rest: &[u8], at: usize) -> Option<NamedValue> {
    let head = rest
        .iter()
        .position(|byte| !b"|>+-123456789 \t\r".contains(byte))?;
    if rest[head] != b'\n' {
        return None;
    }
    let body = &rest[head + 1..];
    let indent = body.iter().take_while(|byte| **byte == b' ').count();
    if indent == 0 {
        return None;
    }
    let start = head + 1 + indent;
    let mut end = start;
    for line in body.split(|byte| *byte == b'\n') {
        if line.iter().take_while(|byte| **byte == b' ').count() < indent {
            break;
        }
        end += line.len() + 1;
    }
    let end = (end - indent - 1).min(rest.len());
    (end > start).then(|| value_of(rest, at, start..end, true))
}

fn bare(rest: &[u8], at: usize, around: &ValueSurroundings) -> Option<NamedValue> {
    let mut end = 0;
    while let Some(&byte) = rest.get(end) {
        let is_end = match byte {
            b' ' | b'\t' | b'\r' | b'\n' | 0x1b => true,
            _ if around.quote == Some(byte) => true,
            b'&' => around.is_query || is_list_item(&rest[end + 1..]),
            b'#' | b'"' | b'\'' | b'<' | b'>' | b')' => around.is_query,
            b';' if around.is_shell && rest.get(end + 1).is_none_or(u8::is_ascii_whitespace) => {
                true
            }
            b';' => around.is_list || is_list_item(&rest[end + 1..]),
            b',' => around.is_bracketed || is_list_item(&rest[end + 1..]),
            b'}' => around.is_bracketed,
            b'\\' => {
                let next = rest.get(end + 1);
                next.is_none_or(|next| b"nrt\"'\\/u".contains(next))
            }
            // Marks of Chinese and Japanese, and quotes that close.
            0xe3 | 0xef => {
                let here = &rest[end..];
                here.starts_with(b"\xe3\x80") || here.starts_with(b"\xef\xbc")
            }
            0xe2 => rest[end..].starts_with("”".as_bytes()),
            _ => false,
        };
        if is_end {
            break;
        }
        end += 1;
    }
    (end > 0).then(|| value_of(rest, at, 0..end, false))
}

/// Whether the next `name=` of a connection string follows.
fn is_list_item(rest: &[u8]) -> bool {
    let rest = rest.trim_ascii_start();
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_ -".contains(byte);
    let name = rest.iter().take(40).take_while(is_name).count();
    name > 0 && rest.get(name) == Some(&b'=') && rest[0].is_ascii_alphabetic()
}

/// The rest of the line, as far as it belongs to a value that begins it.
pub(super) fn to_line_end(bytes: &[u8], value: &NamedValue) -> Range<usize> {
    let start = value.range.start;
    let rest = &bytes[start..bytes.len().min(start + REACH)];
    let line = &rest[..memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len())];
    let comment = [" #", " //", "\t#", " ;"].iter();
    let comment = comment.filter_map(|mark| memchr::memmem::find(line, mark.as_bytes()));
    let line = &line[..comment.min().unwrap_or(line.len())];
    start..start + line.trim_ascii_end().len()
}
