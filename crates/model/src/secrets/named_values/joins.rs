//! What joins a name to its value: a sign, a blank, a call, a cell of a table.

/// What joins a name to its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameJoiner {
    /// `=`, `:`, `:=`, `=>`, with a blank before it or behind it, or not.
    Sign { is_tight: bool, is_colon: bool },
    /// `name: Type = `.
    Typed,
    /// A comma in a call, or a comparison.
    Beside,
    /// `--name value`.
    Flag,
    /// `PASSWORD 'value'`.
    Quote,
    /// `password is value`.
    Is,
    /// `<name>value</name>`.
    Tag,
    /// `name: NAME` and `value: …` on the next line.
    Pair,
    /// `Name [None]: value`, as a program asks for it.
    Dialog,
    /// `setName("value")`, `name{"value"}`.
    Call,
    /// `env("NAME") || "value"`, `${NAME:-value}`: what is taken where nothing is set.
    Default,
    /// `| name | value |`, a tab, several blanks: the next cell of a row.
    Cell,
    /// `name="password">value<`, `<td>name</td><td>value<`.
    TagBehind,
    /// `password 0 value`, as routers and some programs have it.
    Word,
}

/// Whether what follows a name can join it to a value. Most that follows is none of these.
pub(super) fn may_join(next: Option<&u8>) -> bool {
    matches!(
        next,
        Some(
            b'=' | b':'
                | b'"'
                | b'\''
                | b'`'
                | b' '
                | b'\t'
                | b'?'
                | b'>'
                | b']'
                | b')'
                | b'<'
                | b'\n'
                | b'\r'
                | b'|'
                | b'('
                | b'['
                | b'*'
                | b'{'
                // A colon of Chinese and Japanese.
                | 0xef
        )
    )
}

pub(super) fn blanks(bytes: &[u8], at: usize) -> usize {
    let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    at + bytes[at..].iter().take(40).take_while(is_blank).count()
}

/// What joins the name that ends here to a value, and where that begins.
pub(super) fn join(bytes: &[u8], end: usize) -> Option<(NameJoiner, usize)> {
    let is_quoted = matches!(bytes.get(end), Some(b'"' | b'\'' | b'`'));
    let mut at = end + usize::from(is_quoted);
    // `env('NAME')`, `environ["NAME"]`.
    let closers = bytes[at..].iter().take(2);
    let closed =
        closers.take_while(|byte| matches!(byte, b']' | b')') && (is_quoted || **byte == b']'));
    let closed = closed.count();
    at += closed;
    at += array_len(&bytes[at..]);
    // `**Password:** value`, `**Password**: value`.
    while bytes.get(at) == Some(&b'*') {
        at += 1;
    }
    let sign = blanks(bytes, at);
    let rest = &bytes[sign..];
    let after = |length: usize| {
        let stars = bytes[sign + length..]
            .iter()
            .take_while(|byte| **byte == b'*')
            .count();
        blanks(bytes, sign + length + stars)
    };
    let joined = |length: usize| {
        let value = after(length);
        let is_tight = sign == at && value == sign + length;
        let is_colon = rest[0] == b':' && length == 1;
        (NameJoiner::Sign { is_tight, is_colon }, value)
    };
    if closed > 0
        && let Some(default) = default_behind(bytes, at)
    {
        return Some((NameJoiner::Default, default));
    }
    match rest {
        [b':', b':', b'=', ..] => Some(joined(3)),
        [b':', b'-', ..] if sign == at => Some((NameJoiner::Default, sign + 2)),
        [b':', b':', ..] | [b'=', b'~', ..] => None,
        // A symbol behind a word, not a setting.
        [b':', next, ..] if sign > at && !matches!(next, b' ' | b'=' | b'"' | b'\'') => None,
        [b'=', b'=', b'=', ..] => Some((NameJoiner::Beside, after(3))),
        [b'=', b'=', ..] => Some((NameJoiner::Beside, after(2))),
        [b':', b'=', ..] | [b'=', b'>', ..] | [b'?', b'=', ..] => Some(joined(2)),
        [b'|', b'|', b'=', ..] => Some(joined(3)),
        [b'|', b'|', ..] | [b'?', b'?', ..] => Some((NameJoiner::Default, after(2))),
        [b'?', b':', ..] if sign > at => Some((NameJoiner::Default, after(2))),
        [b'|', ..] => Some((NameJoiner::Cell, after(1))),
        [0xef, 0xbc, 0x9a, ..] => Some((
            NameJoiner::Sign {
                is_tight: false,
                is_colon: true,
            },
            after(3),
        )),
        [b'?', b':', ..] => Some(typed(bytes, after(2)).unwrap_or_else(|| joined(2))),
        [b':', ..] => Some(typed(bytes, after(1)).unwrap_or_else(|| joined(1))),
        [b'=', ..] => Some(joined(1)),
        [b',', ..] if is_quoted => Some((NameJoiner::Beside, argument(bytes, after(1)))),
        [b'>', ..] if sign == end => Some((NameJoiner::Tag, sign + 1)),
        [b'>', ..] if is_quoted => Some((NameJoiner::TagBehind, sign + 1)),
        [b'<', b'/', ..] => Some((NameJoiner::TagBehind, next_cell(bytes, sign)?)),
        [b'(' | b'{', b'"' | b'\'', ..] if sign == at => Some((NameJoiner::Call, sign + 1)),
        [b'{', ..] if is_quoted => Some((NameJoiner::Default, default_in(bytes, sign)?)),
        [b'{', ..] => None,
        [b'[' | b'(', ..] => {
            let close = rest
                .iter()
                .take(60)
                .position(|byte| matches!(byte, b']' | b')' | b'\n'))?;
            let behind = blanks(bytes, sign + close + 1);
            (rest[close] != b'\n' && bytes.get(behind) == Some(&b':'))
                .then(|| (NameJoiner::Dialog, blanks(bytes, behind + 1)))
        }
        _ if is_quoted || at != end => Some((NameJoiner::Pair, sign)),
        [b'\'' | b'"', ..] if sign > at => Some((NameJoiner::Quote, sign)),
        _ if let Some(length) = is_len(rest)
            && sign > at =>
        {
            Some((NameJoiner::Is, is_value(bytes, sign + length)))
        }
        [b'f', b'o', b'r', b' ', ..] | [b'F', b'O', b'R', b' ', ..] if sign > at => {
            let mut signs = rest.iter().enumerate().take(80);
            // The colon of an address joins nothing.
            let (colon, byte) = signs.find(|(at, byte)| match byte {
                b':' => !rest[at + 1..].starts_with(b"//"),
                b'\n' => true,
                b'=' => rest[0] == b'F',
                _ => false,
            })?;
            (*byte != b'\n').then(|| (NameJoiner::Dialog, blanks(bytes, sign + colon + 1)))
        }
        _ if sign > at
            && let Some(length) = type_len(rest) =>
        {
            Some((NameJoiner::Typed, blanks(bytes, sign + length)))
        }
        [b'0'..=b'9', b' ', ..] if sign > at => Some((NameJoiner::Word, blanks(bytes, sign + 2))),
        [b'-', b'-', ..] if sign > at => {
            let flags = [&b"--body "[..], b"--value ", b"--data "];
            let flag = flags.into_iter().find(|flag| rest.starts_with(flag))?;
            Some((NameJoiner::Word, blanks(bytes, sign + flag.len())))
        }
        _ if sign > at + 1 || bytes.get(at) == Some(&b'\t') => Some((NameJoiner::Cell, sign)),
        [b'\n' | b'\r', ..] => Some((NameJoiner::Pair, sign)),
        _ if sign > at => Some((NameJoiner::Flag, sign)),
        _ => None,
    }
}

/// Behind `is`: `now`, a colon, blanks.
fn is_value(bytes: &[u8], at: usize) -> usize {
    let at = blanks(bytes, at);
    let rest = &bytes[at..];
    let word = [&b"now "[..], b"currently ", b"still ", b"just ", b": "]
        .into_iter()
        .find(|word| rest.starts_with(word));
    blanks(bytes, at + word.map_or(0, <[u8]>::len))
}

/// Behind the colon of `name: Type = value`: where the value begins.
fn typed(bytes: &[u8], at: usize) -> Option<(NameJoiner, usize)> {
    let is_type = |byte: &&u8| byte.is_ascii_alphanumeric() || b"&'_<>[]:| .?".contains(byte);
    let rest = bytes.get(at..)?;
    rest.first()
        .filter(|byte| byte.is_ascii_alphabetic() || **byte == b'&')?;
    let length = rest.iter().take(50).take_while(is_type).count();
    let is_sign =
        rest.get(length) == Some(&b'=') && rest.get(length.checked_sub(1)?) == Some(&b' ');
    let is_word = |byte: &u8| *byte == b' ';
    let words = rest[..length]
        .trim_ascii()
        .iter()
        .filter(|byte| is_word(byte))
        .count();
    (is_sign && words <= 2 && !matches!(rest.get(length + 1), Some(b'=' | b'>')))
        .then(|| (NameJoiner::Typed, blanks(bytes, at + length + 1)))
}

/// `[]` and `[32]` behind a name in C.
fn array_len(rest: &[u8]) -> usize {
    if rest.first() != Some(&b'[') {
        return 0;
    }
    let digits = rest[1..].iter().take_while(|byte| byte.is_ascii_digit());
    let end = 1 + digits.count();
    if rest.get(end) == Some(&b']') {
        end + 1
    } else {
        0
    }
}

/// `is `, and what other languages say for it.
fn is_len(rest: &[u8]) -> Option<usize> {
    let words = [
        &b"is "[..],
        b"ist ",
        b"est ",
        b"es ",
        b"was changed to",
        b"was set to",
        b"was reset to",
        b"has been changed to",
        b"has been set to",
        b"will be ",
        b"-> ",
        "→ ".as_bytes(),
        b"value=",
    ];
    let word = words.into_iter().find(|word| rest.starts_with(word))?;
    Some(word.len())
}

/// `As String =`, `string =`: a type between a name and its value.
fn type_len(rest: &[u8]) -> Option<usize> {
    let types = [&b"As String ="[..], b"string =", b"String ="];
    let word = types.into_iter().find(|word| rest.starts_with(word))?;
    Some(word.len())
}

/// Where the value begins that is taken if a variable that was asked for is not set.
fn default_behind(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..bytes.len().min(at + 40)];
    if rest.starts_with(b".unwrap_or") || rest.starts_with(b".orElse") {
        return memchr::memchr(b'"', rest).map(|quote| at + quote);
    }
    rest.starts_with(b" or ").then(|| blanks(bytes, at + 4))
}

/// `default = "value"` in the block of a variable.
fn default_in(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..bytes.len().min(at + 240)];
    let block = &rest[..memchr::memchr(b'}', rest)?];
    let word = memchr::memmem::find(block, b"default")?;
    let sign = blanks(bytes, at + word + b"default".len());
    (bytes.get(sign) == Some(&b'=')).then(|| blanks(bytes, sign + 1))
}

/// An argument without its name: `default="value"`.
fn argument(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let names = [&b"default="[..], b"default: ", b"fallback=", b"default = "];
    let name = names.into_iter().find(|name| rest.starts_with(name));
    at + name.map_or(0, <[u8]>::len)
}

/// Where the next cell of a table of HTML begins, behind the end of this one.
fn next_cell(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..bytes.len().min(at + 80)];
    if !(rest.starts_with(b"</td>") || rest.starts_with(b"</th>") || rest.starts_with(b"</dt>")) {
        return None;
    }
    let behind = &rest[5..];
    let open = behind.len() - behind.trim_ascii_start().len();
    let is_cell = behind[open..].starts_with(b"<td") || behind[open..].starts_with(b"<dd");
    let end = memchr::memchr(b'>', &behind[open..]).filter(|_| is_cell)?;
    Some(at + 5 + open + end + 1)
}
