//! Values that are told by their name: `DB_PASSWORD=…`, `"apiKey": "…"`, `--token …`.
//!
//! The pass that looks for the anchors of rules stops at the words that names of secrets hold.
//! Here the whole name is read (`names`), then what joins it to a value, then the value up to
//! its end (`values`); and it is judged what that value is (`evidence`). The more the name says,
//! the less the value has to.

use std::ops::Range;

mod columns;
mod evidence;
mod joins;
mod secret_names;
mod value_end;

use evidence::ValueEvidence;
use joins::{NameJoiner, blanks, join, may_join};
pub(super) use secret_names::ANCHORS;
use secret_names::{LONGEST, NameClass};
use value_end::{NamedValue, ValueSurroundings};

use super::SecretCandidate;
use super::rule::RuleCertainty;

/// The rules that this code stands for: their ids, and in a few words what each finds.
pub(super) const RULES: [(&str, &str); 3] = [
    ("named-password", "Value of something called a password"),
    (
        "named-secret",
        "Value of something called a secret, key or token",
    ),
    ("cookie", "Value of a cookie"),
];

/// How far behind a name its value may stand in another field.
const PAIRED: usize = 160;

/// Finds the value of the name that an anchor stands in. `seen` is where the name ended that
/// was looked at last.
pub(super) fn find<'s>(
    order: usize,
    text: &str,
    anchor: Range<usize>,
    seen: &mut usize,
    found: &mut Vec<SecretCandidate<'s>>,
) {
    let bytes = text.as_bytes();
    if secret_names::is_foreign(&bytes[anchor.clone()]) {
        return foreign(order, text, anchor, found);
    }
    // The sign of `pw=` is no part of the name.
    let anchor = match bytes[anchor.end - 1] {
        b'=' | b':' => anchor.start..anchor.end - 1,
        _ => anchor,
    };
    if goes_on(bytes, &anchor) {
        return;
    }
    let end = anchor.end + name_bytes(bytes[anchor.end..].iter());
    if end == *seen || !may_join(bytes.get(end)) {
        return;
    }
    *seen = end;
    let end = trimmed_end(bytes, anchor.end, end);
    let Some((join, at)) = join(bytes, end) else {
        return;
    };
    let start = anchor.start - name_bytes(bytes[..anchor.start].iter().rev());
    if is_key_at_most(&bytes[start..end], bytes[anchor.start]) && !may_be_key(bytes, join, at) {
        return;
    }
    let dashes = bytes[start..anchor.start]
        .iter()
        .take_while(|byte| !byte.is_ascii_alphanumeric() && **byte != b'_');
    let name = start + dashes.count()..end;
    let is_flag = bytes[start] == b'-' && name.start > start;
    // A program asks in words: `AWS Secret Access Key [None]:`.
    let name = match join {
        NameJoiner::Dialog => words_before(bytes, name.start)..name.end,
        _ => name,
    };
    let name_text = &text[name.clone()];
    if is_cookie(name_text) {
        return cookies(order, text, at, join, found);
    }
    let Some((class, is_spoken)) = class_here(text, &name, join) else {
        return;
    };
    let place = NamedPlace {
        text,
        name: name.clone(),
        class,
        is_flag: is_flag || is_spoken,
    };
    let (range, rule) = match place.secret(join, at) {
        Some(one) => one,
        None => {
            let rule = place.rule();
            let below = columns::below(&place);
            found.extend(below.map(|range| named(order, rule, range)));
            return;
        }
    };
    found.push(named(order, rule, range));
}

/// What the name says, with the word before it if it says little: `API key:`; and whether that
/// word made it say more.
fn class_here(text: &str, name: &Range<usize>, join: NameJoiner) -> Option<(NameClass, bool)> {
    let class = secret_names::class_of(&text[name.clone()])?;
    let before = &text.as_bytes()[..name.start];
    let is_said = matches!(join, NameJoiner::Sign { .. } | NameJoiner::Is);
    if class != NameClass::Weak || !is_said || !before.ends_with(b" ") {
        return Some((class, false));
    }
    let word = before[..before.len() - 1].iter().rev();
    let word = word.take(16).take_while(|byte| byte.is_ascii_alphabetic());
    let start = name.start - 1 - word.count();
    let spoken = secret_names::class_of(&text[start..name.end])?;
    Some((spoken, spoken > class))
}

/// Finds a value behind a word for passwords in another language.
fn foreign<'s>(
    order: usize,
    text: &str,
    anchor: Range<usize>,
    found: &mut Vec<SecretCandidate<'s>>,
) {
    let bytes = text.as_bytes();
    let anchor = match bytes[anchor.end - 1] {
        b':' => anchor.start..anchor.end - 1,
        _ => anchor,
    };
    let Some((join, at)) =
        join(bytes, anchor.end).or_else(|| secret_names::foreign_is(bytes, anchor.end))
    else {
        return;
    };
    let place = NamedPlace {
        text,
        name: anchor,
        class: NameClass::Password,
        is_flag: false,
    };
    if matches!(
        join,
        NameJoiner::Sign { .. } | NameJoiner::Is | NameJoiner::Default
    ) && let Some(range) = place.valued(NameJoiner::Is, at)
    {
        found.push(named(order, place.rule(), range));
    }
}

/// A find of one of the [`RULES`].
fn named<'s>(order: usize, rule: usize, range: Range<usize>) -> SecretCandidate<'s> {
    SecretCandidate {
        size: range.len(),
        hidden: None,
        range,
        name: RULES[rule].0,
        level: RuleCertainty::Generic,
        order: order + rule,
    }
}

/// Whether the word of an anchor goes on to be another one: `keyboard`, `tokens`, `passed`.
/// Nearly all that are no names of secrets are told by this.
fn goes_on(bytes: &[u8], anchor: &Range<usize>) -> bool {
    let (Some(&next), last) = (bytes.get(anchor.end), bytes[anchor.end - 1]) else {
        return false;
    };
    let is_word =
        next.is_ascii_alphabetic() && next.is_ascii_lowercase() == last.is_ascii_lowercase();
    is_word
        && !match (anchor.len(), last | 32) {
            // pass-word, -wd, -wort, -phrase, -code, -ord
            (4, b's') => matches!(next | 32, b'w' | b'p' | b'c' | b'o'),
            // credential-s, contrase-na, cookie-s
            (10, b'l') | (6, b'e') => next | 32 == b's',
            (8, b'e') => true,
            _ => false,
        }
}

/// Whether a name can be that of a key or a token, but of nothing that says more.
fn is_key_at_most(name: &[u8], first: u8) -> bool {
    // `key` and `token`; the others are rare.
    let is_weak = matches!(first | 32, b'k' | b't');
    is_weak
        && !name.windows(4).any(|four| {
            let four = [four[0] | 32, four[1] | 32, four[2] | 32, four[3] | 32];
            matches!(&four, b"secr" | b"pass" | b"_pwd")
        })
        && !matches!(name.last(), Some(b'd' | b'D' | b'w' | b'W'))
}

/// A look at a value that is much cheaper than reading it: a key is long, and has digits.
fn may_be_key(bytes: &[u8], join: NameJoiner, at: usize) -> bool {
    if !matches!(
        join,
        NameJoiner::Sign { .. }
            | NameJoiner::Typed
            | NameJoiner::Flag
            | NameJoiner::Is
            | NameJoiner::Call
            | NameJoiner::Default
            | NameJoiner::Cell
            | NameJoiner::Word
    ) {
        return true;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    // A tag, or a block on the lines below.
    if rest.starts_with(b"!!") || matches!(rest, [b'|' | b'>', b'-' | b'+' | b'\n', ..]) {
        return true;
    }
    let marks = rest
        .iter()
        .take(4)
        .take_while(|byte| b"\"'`b@$|>".contains(byte));
    let rest = &rest[marks.count()..];
    let is_key = |byte: &&u8| byte.is_ascii_graphic() && !b"\"'`,;()<>".contains(byte);
    let (mut length, mut has_mark) = (0, false);
    for byte in rest.iter().take(24).take_while(is_key) {
        length += 1;
        has_mark |= !byte.is_ascii_alphabetic() && *byte != b'_';
    }
    // The text of a block, on the lines below.
    let is_block = length == 0 && rest.first() == Some(&b'\n');
    length >= 8 && has_mark || length >= 20 || is_block
}

/// How many bytes of a name stand there.
fn name_bytes<'b>(bytes: impl Iterator<Item = &'b u8>) -> usize {
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    bytes.take(LONGEST).take_while(is_name).count()
}

/// Where the words begin that stand before a name on its line.
fn words_before(bytes: &[u8], name: usize) -> usize {
    let from = name.saturating_sub(40);
    let is_word = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b' ';
    let words = bytes[from..name].iter().rev().take_while(is_word).count();
    name - words
        + bytes[name - words..name]
            .iter()
            .take_while(|byte| **byte == b' ')
            .count()
}

/// The end of a name without the marks of a sentence.
fn trimmed_end(bytes: &[u8], from: usize, end: usize) -> usize {
    let marks = bytes[from..end].iter().rev();
    end - marks.take_while(|byte| matches!(byte, b'.' | b'-')).count()
}

/// A name that may have a value.
struct NamedPlace<'t> {
    text: &'t str,
    name: Range<usize>,
    class: NameClass,
    is_flag: bool,
}

impl NamedPlace<'_> {
    /// Where the value is, if it is a secret, and which rule says so.
    fn secret(&self, join: NameJoiner, at: usize) -> Option<(Range<usize>, usize)> {
        let rule = self.rule();
        let range = match join {
            NameJoiner::Tag => self.tagged(at),
            NameJoiner::TagBehind => self.until_tag(at).or_else(|| self.paired()),
            NameJoiner::Cell if self.is_flag || self.is_word_setting() => {
                self.valued(NameJoiner::Flag, at)
            }
            NameJoiner::Pair => self.paired(),
            NameJoiner::Flag | NameJoiner::Quote if self.is_flag || self.is_word_setting() => {
                self.valued(NameJoiner::Flag, at)
            }
            NameJoiner::Flag if self.is_worded(at) => self.valued(NameJoiner::Word, at),
            NameJoiner::Flag => None,
            // A part of a longer name: `arn:aws:secretsmanager:…:secret:Name`.
            NameJoiner::Sign {
                is_tight: true,
                is_colon: true,
            } if self.text.as_bytes()[..self.name.start].ends_with(b":") => None,
            NameJoiner::Quote if self.class < NameClass::Key => None,
            // A value in another field, if this is the name there.
            _ if self.is_named() => self.paired().or_else(|| self.valued(join, at)),
            _ => self.valued(join, at),
        };
        range.map(|range| (range, rule))
    }

    /// Which of the [`RULES`] names what is found.
    fn rule(&self) -> usize {
        let is_password = matches!(
            self.class,
            NameClass::Pass | NameClass::Password | NameClass::Phrase
        );
        usize::from(!is_password)
    }

    /// Whether a name in a sentence or a command may have the next word for its value: that is
    /// no word of a language, and the name is not that of a command.
    fn is_worded(&self, at: usize) -> bool {
        let name = self.name();
        let is_worded = match self.class {
            NameClass::Password => name != "passwd" && name != "pwd",
            NameClass::Secret | NameClass::Key => {
                name.len() > 8
                    || name.eq_ignore_ascii_case("bearer")
                    || name.contains(['_', '-', '.'])
            }
            _ => false,
        };
        let word = self.text.as_bytes()[at..].iter().take(64);
        let mut word = word.take_while(|byte| !byte.is_ascii_whitespace());
        is_worded && word.any(u8::is_ascii_digit)
    }

    /// Whether the name is that of a header: `X-Api-Key:`, `Authorization:`.
    fn is_header(&self, join: NameJoiner) -> bool {
        let is_sign = matches!(
            join,
            NameJoiner::Sign { is_colon: true, .. } | NameJoiner::Word | NameJoiner::Beside
        );
        let name = self.name();
        is_sign && (name.contains('-') || name.eq_ignore_ascii_case("authorization"))
    }

    /// Whether the place leaves no doubt that a secret stands there, if the name means one.
    fn is_outright(&self, join: NameJoiner) -> bool {
        let is_token = || self.name().to_ascii_lowercase().ends_with("token");
        let bytes = self.text.as_bytes();
        // `"token=value"`: a text that begins so.
        let is_text =
            bytes[..self.name.start].ends_with(b"\"") && bytes.get(self.name.end) == Some(&b'=');
        let is_query = is_text || is_query(bytes, self.name.start);
        let is_key = self.class == NameClass::Key || self.class == NameClass::Weak && is_token();
        let is_loose = matches!(
            join,
            NameJoiner::Call
                | NameJoiner::Default
                | NameJoiner::Cell
                | NameJoiner::Word
                | NameJoiner::Beside
                | NameJoiner::Quote
                | NameJoiner::TagBehind
        );
        is_key && (self.is_flag || is_query || self.is_header(join))
            || is_loose && self.class == NameClass::Key
    }

    /// Whether the value follows the name without a sign: `set -x NAME value`.
    fn is_word_setting(&self) -> bool {
        let before = &self.text.as_bytes()[..self.name.start];
        let name = self.name().to_ascii_lowercase();
        let starts = [
            &b"set -x "[..],
            b"set -gx ",
            b"set -Ux ",
            b"setenv ",
            b"setx ",
            b"ENV ",
        ];
        let is_first = before.is_empty() || before.ends_with(b"\n");
        starts.iter().any(|start| before.ends_with(start))
            || matches!(&*name, "requirepass" | "masterauth") && is_first
            || matches!(&*name, "config.requirepass")
    }

    fn name(&self) -> &str {
        &self.text[self.name.clone()]
    }

    /// The value that begins here.
    fn valued(&self, join: NameJoiner, at: usize) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        let mut around = ValueSurroundings::new(bytes, self.name.start);
        if matches!(bytes.get(self.name.end), Some(b'"' | b'\'' | b'`')) {
            around = around.with_quoted_name();
        }
        let mut value = value_end::value(bytes, at, &around)?;
        let name = self.name();
        if name.len() == "authorization".len() && name.eq_ignore_ascii_case("authorization") {
            value = value_end::without_scheme(bytes, value, &around)?;
        }
        // `${NAME:-value}`: the name itself stands in the brackets.
        let is_expansion = bytes[..self.name.start].ends_with(b"${");
        // `${NAME:?message}`, `${NAME:+other}`.
        if is_expansion && matches!(bytes[value.range.start], b'?' | b'+') {
            return None;
        }
        if is_expansion && !value.is_quoted {
            let end = memchr::memchr(b'}', &bytes[value.range.clone()]);
            value.range.end = end.map_or(value.range.end, |end| value.range.start + end);
        }
        let is_outright = self.is_outright(join);
        let is_upper = !name.bytes().any(|byte| byte.is_ascii_lowercase());
        let (is_tight, is_colon) = match join {
            NameJoiner::Sign { is_tight, is_colon } => (is_tight, is_colon),
            _ => (false, false),
        };
        let is_literal = match join {
            NameJoiner::Flag | NameJoiner::Dialog => true,
            NameJoiner::Default | NameJoiner::Cell => true,
            _ if is_expansion => true,
            // `enable secret 0 value`.
            NameJoiner::Word => name.eq_ignore_ascii_case("secret"),
            NameJoiner::Sign { .. } => {
                is_tight
                    && !is_colon
                    && (is_upper
                        || self.is_flag
                        || around.is_among_settings
                        || is_query(bytes, self.name.start))
                    || is_upper && around.is_line_start && value.is_line_end && is_colon
            }
            _ => false,
        };
        let is_loose = !matches!(
            join,
            NameJoiner::Sign { .. }
                | NameJoiner::Typed
                | NameJoiner::Flag
                | NameJoiner::Tag
                | NameJoiner::Pair
                | NameJoiner::Dialog
        );
        if is_loose && !self.is_told(join, &value) {
            return None;
        }
        if is_outright {
            return self.judged_as(value, is_literal, false, true);
        }
        let is_setting = matches!(join, NameJoiner::Sign { .. }) && around.is_line_start;
        let is_alone = is_setting && value.is_line_end;
        if value.is_quoted || value.is_line_end || !is_setting || is_upper && is_tight {
            return self.judged(value, is_literal, is_alone);
        }
        // Several words on a line of their own.
        let line = value_end::to_line_end(bytes, &value);
        let all = NamedValue {
            range: line,
            is_quoted: false,
            is_line_end: true,
        };
        let first = self.judged(value.clone(), is_literal, false);
        let is_comment = all.range == value.range;
        if is_comment {
            return self.judged(all, is_literal, true);
        }
        let is_short = all.range.len() <= 80;
        match first {
            Some(_) if is_short && is_spaced(&self.text[all.range.clone()]) => Some(all.range),
            Some(first) => Some(first),
            None => self.judged(all, false, true),
        }
    }

    /// Whether a value that is joined loosely is told well enough.
    fn is_told(&self, join: NameJoiner, value: &NamedValue) -> bool {
        let text = &self.text[value.range.clone()];
        let has_digit = text.bytes().any(|byte| byte.is_ascii_digit());
        let has_letter = text.bytes().any(|byte| byte.is_ascii_alphabetic());
        let has_mark = text.bytes().any(|byte| b"!@#$%^&*+~?".contains(&byte));
        let is_strong = (has_digit || has_mark) && has_letter && !text.contains(' ')
            || evidence::is_joined_phrase(text);
        match join {
            NameJoiner::Is => (value.is_quoted && text.len() >= 4) || is_strong && text.len() >= 6,
            NameJoiner::Beside => {
                let from = self.name.start.saturating_sub(2);
                let is_argument = self.text.as_bytes()[from..self.name.start].starts_with(b"(");
                let is_compared = self.text.as_bytes().get(self.name.end) != Some(&b',');
                let quote = self.text.as_bytes().get(self.name.end);
                let is_listed = matches!(quote, Some(b'"' | b'\'' | b'`'));
                let is_here = if is_listed { is_argument } else { is_compared };
                let is_constant =
                    is_listed && !self.name().bytes().any(|byte| byte.is_ascii_lowercase());
                // `'name', 'value'` alone, and not in a list of more.
                let before = &self.text.as_bytes()[..self.name.start.saturating_sub(1)];
                let is_first = before.iter().rev().find(|byte| **byte != b' ');
                let is_first = is_first.is_none_or(|byte| b"\n([{".contains(byte));
                let behind = self.text.as_bytes().get(value.range.end + 1);
                let is_pair = is_listed && is_first && is_strong && behind != Some(&b',');
                (is_here || is_pair)
                    && value.is_quoted
                    && (is_strong || is_constant)
                    && self.class >= NameClass::Key
                    && self.class != NameClass::Pass
            }
            NameJoiner::Quote if self.text.as_bytes()[value.range.start - 1] == b'\'' => {
                value.is_quoted && text.len() >= 4
            }
            // A list of names and their values: each is in quotes or none.
            NameJoiner::Call => value.is_quoted && is_strong && self.class != NameClass::Pass,
            // Names in programs and of files follow names as well.
            NameJoiner::Word if text.contains(['/', '(', ')']) && !has_mark => false,
            NameJoiner::Word if self.class < NameClass::Password => {
                let is_name = text.contains('.') || text.matches('_').count() > 1;
                is_strong && text.len() >= 6 && (has_mark || !is_name)
            }
            _ => is_strong && text.len() >= 6 && self.class != NameClass::Pass,
        }
    }

    fn judged(
        &self,
        value: NamedValue,
        is_literal: bool,
        is_setting: bool,
    ) -> Option<Range<usize>> {
        self.judged_as(value, is_literal, is_setting, false)
    }

    fn judged_as(
        &self,
        value: NamedValue,
        is_literal: bool,
        is_setting: bool,
        is_outright: bool,
    ) -> Option<Range<usize>> {
        let mut range = value.range;
        // `${NAME:-value}`: the value that is used without the variable.
        let text = &self.text[range.clone()];
        if text.starts_with("${")
            && let Some(at) = text.find(":-")
        {
            let inner = &text[at + 2..];
            let end = inner.find('}').unwrap_or(inner.len());
            range = range.start + at + 2..range.start + at + 2 + end;
        }
        let text = &self.text[range.clone()];
        let evidence = ValueEvidence {
            name: self.name(),
            class: self.class,
            value: text,
            is_quoted: value.is_quoted,
            is_literal,
            is_setting,
            is_outright,
        };
        evidence.is_secret().then_some(range)
    }

    /// What stands between `<name>` and `</`.
    fn tagged(&self, at: usize) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        let before = &bytes[self.name.start.saturating_sub(24)..self.name.start];
        let open = memchr::memrchr(b'<', before)?;
        let is_open = before[open + 1..]
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b':');
        let rest = &bytes[at..bytes.len().min(at + 500)];
        let end = memchr::memchr(b'<', rest)?;
        if !is_open || rest.get(end + 1) != Some(&b'/') {
            return self.paired();
        }
        self.until_tag(at)
    }

    /// What stands before the next `</`.
    fn until_tag(&self, at: usize) -> Option<Range<usize>> {
        let rest = &self.text.as_bytes()[at..];
        let rest = &rest[..rest.len().min(500)];
        let end = memchr::memchr(b'<', rest)?;
        if rest.get(end + 1) != Some(&b'/') {
            return None;
        }
        let inner = &rest[..end];
        let start = at + (inner.len() - inner.trim_ascii_start().len());
        let range = start..start + inner.trim_ascii().len();
        let value = NamedValue {
            range,
            is_quoted: true,
            is_line_end: false,
        };
        self.judged(value, false, false)
    }

    /// Whether the name is the value of a field for names: `name: DB_PASSWORD`.
    fn is_named(&self) -> bool {
        let bytes = self.text.as_bytes();
        let from = self.name.start.saturating_sub(16);
        let before = bytes[from..self.name.start].trim_ascii_end();
        let before = before
            .strip_suffix(b"\"")
            .or(before.strip_suffix(b"'"))
            .unwrap_or(before);
        let before = before.trim_ascii_end();
        if let Some(tag) = before.strip_suffix(b">") {
            return tag.ends_with(b"<key") || tag.ends_with(b"<name") || tag.ends_with(b"<Key");
        }
        let Some(before) = before.strip_suffix(b":").or(before.strip_suffix(b"=")) else {
            return false;
        };
        let before = before.trim_ascii_end();
        let before = before
            .strip_suffix(b"\"")
            .or(before.strip_suffix(b"'"))
            .unwrap_or(before);
        let ends = |word: &[u8]| {
            before.len() >= word.len()
                && before[before.len() - word.len()..].eq_ignore_ascii_case(word)
        };
        ends(b"name") || ends(b"key") || ends(b"id") || ends(b"variable")
    }

    /// The value in the field behind the one that holds the name.
    fn paired(&self) -> Option<Range<usize>> {
        if !self.is_named() {
            return None;
        }
        let bytes = self.text.as_bytes();
        let from = self.name.end;
        let rest = &bytes[from..bytes.len().min(from + PAIRED)];
        // Not beyond the object, or the item of a list.
        let stop = rest
            .iter()
            .position(|byte| matches!(byte, b'{' | b'}'))
            .unwrap_or(rest.len());
        let rest = &rest[..stop];
        let at = value_field(rest)?;
        let around = ValueSurroundings::default();
        let value = match at {
            ValueField::Key(at) => value_end::value(bytes, blanks(bytes, from + at), &around)?,
            ValueField::Tag(at) => {
                let end =
                    memchr::memchr(b'<', &bytes[from + at..bytes.len().min(from + at + 500)])?;
                let range = from + at..from + at + end;
                NamedValue {
                    range,
                    is_quoted: true,
                    is_line_end: false,
                }
            }
        };
        self.judged(value, true, true)
    }
}

/// Where a value begins in another field.
enum ValueField {
    Key(usize),
    Tag(usize),
}

/// Where the value of the next field called `value` begins.
fn value_field(rest: &[u8]) -> Option<ValueField> {
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'v', b'V', &rest[at..]).map(|found| at + found) {
        at = found + 1;
        let word = rest.get(found..found + 5)?;
        let before = found.checked_sub(1).map(|before| rest[before]);
        if !word.eq_ignore_ascii_case(b"value")
            || before.is_some_and(|byte| byte.is_ascii_alphanumeric())
        {
            continue;
        }
        let mut sign = found + 5;
        if matches!(rest.get(sign), Some(b'"' | b'\'')) {
            sign += 1;
        }
        let sign = blanks(rest, sign.min(rest.len()));
        match rest.get(sign) {
            Some(b':' | b'=') => return Some(ValueField::Key(sign + 1)),
            Some(b'>') => return Some(ValueField::Tag(sign + 1)),
            _ => {}
        }
    }
    let string = memchr::memmem::find(rest, b"<string>")?;
    Some(ValueField::Tag(string + 8))
}

/// Whether nothing but blanks and words follow: no program, no other setting.
fn is_spaced(line: &str) -> bool {
    !line.contains(['{', '(', ';', '='])
}

fn is_query(bytes: &[u8], name: usize) -> bool {
    matches!(
        name.checked_sub(1).map(|at| bytes[at]),
        Some(b'?' | b'&' | b';' | b':' | b'/' | b'#')
    )
}

fn is_cookie(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower == "cookie" || lower == "set-cookie" || lower == "cookies" || lower.ends_with(".cookie")
}

/// Cookies that say nothing about who somebody is.
const PLAIN_COOKIES: &[&str] = &[
    "path", "domain", "expires", "max-age", "samesite", "secure", "httponly", "lang", "locale",
    "theme", "consent", "version", "priority", "timezone", "tz", "_ga", "_gid", "_fbp",
];

/// Finds the values of all cookies of a header, or of a flag.
fn cookies<'s>(
    order: usize,
    text: &str,
    at: usize,
    join: NameJoiner,
    found: &mut Vec<SecretCandidate<'s>>,
) {
    if !matches!(
        join,
        NameJoiner::Sign { .. } | NameJoiner::Flag | NameJoiner::Quote
    ) {
        return;
    }
    let bytes = text.as_bytes();
    let quote = bytes
        .get(at)
        .filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    let start = at + usize::from(quote.is_some());
    let rest = &bytes[start..bytes.len().min(start + 4096)];
    let is_end = |byte: &u8| {
        matches!(
            byte,
            b'\n' | b'\r' | b'"' | b'\'' | b'`' | b'\\' | b'{' | b'('
        ) || *byte == 0x1b
    };
    let line = &rest[..rest.iter().position(is_end).unwrap_or(rest.len())];
    let mut from = start;
    for pair in line.split(|byte| *byte == b';') {
        let begin = from;
        from += pair.len() + 1;
        let Some(sign) = memchr::memchr(b'=', pair) else {
            continue;
        };
        let name = pair[..sign].trim_ascii();
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.:%@[]".contains(byte);
        let lower = String::from_utf8_lossy(name).to_ascii_lowercase();
        let value = &pair[sign + 1..];
        let value = &value[..value
            .iter()
            .position(u8::is_ascii_whitespace)
            .unwrap_or(value.len())];
        let range = begin + sign + 1..begin + sign + 1 + value.len();
        if name.is_empty()
            || !name.iter().all(is_name)
            || PLAIN_COOKIES.contains(&&*lower)
            || value.len() < 6
        {
            continue;
        }
        let Some(value) = text.get(range.clone()) else {
            continue;
        };
        let class = secret_names::class_of(&lower).unwrap_or(NameClass::Weak);
        let is_session = [
            "sess", "sid", "auth", "token", "jwt", "csrf", "xsrf", "remember", "login",
        ]
        .iter()
        .any(|word| lower.contains(word));
        let class = if is_session {
            class.max(NameClass::Secret)
        } else {
            class.max(NameClass::Key)
        };
        let evidence = ValueEvidence {
            name: &lower,
            class,
            value,
            is_quoted: true,
            is_literal: true,
            is_setting: false,
            is_outright: false,
        };
        if evidence.is_secret() {
            found.push(named(order, 2, range));
        }
    }
}
