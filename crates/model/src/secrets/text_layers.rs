//! What a text says once more of its wrapping is taken off.
//!
//! A secret can hide behind terminal codes or characters without width in the middle of it,
//! behind the escapes of JSON that stands inside a text, and in base64. Each of these is a layer: the text without it,
//! and where every place of that stands in the text with it ([`UnwrappedText`]). Only the lines that
//! have such wrapping are looked at again, so ordinary text costs two short searches more.

use std::ops::Range;

use memchr::{memchr, memchr3, memrchr};

use crate::json;
use crate::text::{self, ESCAPE};

use super::{SecretCandidate, SecretFinder};

/// How many layers are taken off, one after the other: a tool that prints a transcript of
/// a tool that prints JSON has three.
const DEEPEST: usize = 4;

/// Text in base64 is at least this long, or it holds no secret.
const RUN: usize = 40;

/// A text without its wrapping, and where it came from.
#[derive(Debug, Default)]
pub(crate) struct UnwrappedText {
    pub(crate) text: String,
    pieces: Vec<ShortenedPiece>,
    /// Nobody asks where things came from, only whether something was wrapped.
    hurried: bool,
    is_wrapped: bool,
}

/// Something that is shorter in the view than in the text.
#[derive(Debug)]
struct ShortenedPiece {
    /// Where it is in the view; nothing stands there if it was taken out.
    to: Range<usize>,
    /// Where it is in the text.
    from: Range<usize>,
}

impl UnwrappedText {
    /// The text with its JSON escapes decoded. What is no escape stays.
    pub(crate) fn unescaped(text: &str) -> UnwrappedText {
        UnwrappedText::default().without_escapes(text)
    }

    fn without_escapes(self, text: &str) -> UnwrappedText {
        let mut view = self;
        view.text.reserve(text.len());
        let mut done = 0;
        let mut at = 0;
        let bytes = text.as_bytes();
        while let Some(found) = memchr(b'\\', &bytes[at..]) {
            at += found;
            if json::escape_len(&bytes[at..]).is_none() {
                at += 1;
                continue;
            }
            let (character, used) = json::escape(&bytes[at..]);
            view.keep(&text[done..at]);
            view.replace(at..at + used, character.encode_utf8(&mut [0; 4]));
            at += used;
            done = at;
        }
        view.keep(&text[done..]);
        view
    }

    /// The text without the codes that colour it and move it around.
    fn without_codes(self, text: &str) -> UnwrappedText {
        let mut view = self;
        view.text.reserve(text.len());
        let mut done = 0;
        let mut at = 0;
        let bytes = text.as_bytes();
        while let Some(found) = memchr(ESCAPE, &bytes[at..]) {
            at += found;
            let used = text::sequence(&bytes[at..]);
            view.keep(&text[done..at]);
            view.replace(at..at + used, "");
            at += used;
            done = at;
        }
        view.keep(&text[done..]);
        view
    }

    /// The text without the characters that nobody sees.
    fn without_invisible(self, text: &str) -> UnwrappedText {
        let mut view = self;
        view.text.reserve(text.len());
        let mut done = 0;
        let mut at = 0;
        let bytes = text.as_bytes();
        while let Some((found, used)) = next_invisible(bytes, at) {
            view.keep(&text[done..found]);
            view.replace(found..found + used, "");
            at = found + used;
            done = at;
        }
        view.keep(&text[done..]);
        view
    }

    /// The text with the escapes of addresses decoded, as far as they stand for ASCII.
    fn without_percents(self, text: &str) -> UnwrappedText {
        let mut view = self;
        view.text.reserve(text.len());
        let (mut done, mut at) = (0, 0);
        let bytes = text.as_bytes();
        while let Some(found) = memchr(b'%', &bytes[at..]) {
            at += found;
            let Some(byte) = percent_escape(&bytes[at..]) else {
                at += 1;
                continue;
            };
            view.keep(&text[done..at]);
            view.replace(at..at + 3, char::from(byte).encode_utf8(&mut [0; 4]));
            at += 3;
            done = at;
        }
        view.keep(&text[done..]);
        view
    }

    fn keep(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn replace(&mut self, from: Range<usize>, new: &str) {
        let start = self.text.len();
        self.text.push_str(new);
        self.is_wrapped = true;
        if !self.hurried {
            let to = start..self.text.len();
            self.pieces.push(ShortenedPiece { to, from });
        }
    }

    /// Where a place of the view stands in the text. What was taken out at its two ends is
    /// no part of it.
    pub(crate) fn source(&self, range: Range<usize>) -> Range<usize> {
        let before = self
            .pieces
            .partition_point(|piece| piece.to.end <= range.start);
        let start = match self.pieces.get(before) {
            Some(piece) if piece.to.start < range.start => piece.from.start,
            _ => self.behind(before, range.start),
        };
        let before = self.pieces.partition_point(|piece| {
            piece.to.end < range.end || (piece.to.end == range.end && !piece.to.is_empty())
        });
        let end = match self.pieces.get(before) {
            Some(piece) if piece.to.start < range.end => piece.from.end,
            _ => self.behind(before, range.end),
        };
        start..end.max(start)
    }

    /// A place behind the first `count` pieces and before the next.
    fn behind(&self, count: usize, at: usize) -> usize {
        match count.checked_sub(1).and_then(|last| self.pieces.get(last)) {
            Some(piece) => piece.from.end + (at - piece.to.end),
            None => at,
        }
    }
}

/// What all layers of a text hold, beyond the text as it stands.
pub(super) fn find<'s>(
    secrets: &'s SecretFinder,
    text: &str,
    found: &mut Vec<SecretCandidate<'s>>,
) {
    below(secrets, text, DEEPEST, true, found);
}

fn below<'s>(
    secrets: &'s SecretFinder,
    text: &str,
    depth: usize,
    packed: bool,
    found: &mut Vec<SecretCandidate<'s>>,
) {
    if packed {
        in_base64(secrets, text, depth, found);
    }
    if depth == 0 {
        return;
    }
    // Whether there was anything to take off.
    let mut look = |lines: Range<usize>, layer: WrappingKind| -> bool {
        let part = &text[lines.clone()];
        let unwrapped = |view: UnwrappedText| match layer {
            WrappingKind::Invisible => view.without_invisible(part),
            WrappingKind::Percents => view.without_percents(part),
            WrappingKind::Codes => view.without_codes(part),
            WrappingKind::Escapes => view.without_escapes(part),
        };
        // Most hold nothing, and need no list of places.
        let quick = unwrapped(UnwrappedText {
            hurried: true,
            ..UnwrappedText::default()
        });
        if !quick.is_wrapped {
            return false;
        }
        let mut inner = secrets.flat(&quick.text);
        below(secrets, &quick.text, depth - 1, packed, &mut inner);
        if inner.is_empty() {
            return true;
        }
        let view = unwrapped(UnwrappedText::default());
        found.extend(inner.into_iter().map(|one| {
            let source = view.source(one.range.clone());
            let source = lines.start + source.start..lines.start + source.end;
            let clean = &view.text[super::whole(&view.text, one.range.clone())];
            let is_hidden = text.get(source.clone()) != Some(clean);
            SecretCandidate {
                hidden: one.hidden.or_else(|| is_hidden.then(|| clean.into())),
                range: source,
                ..one
            }
        }));
        true
    };
    // What nobody sees goes first, so that the other layers need not know of it.
    if !text.is_ascii() {
        invisible_lines(text.as_bytes(), |lines| {
            look(lines, WrappingKind::Invisible);
        });
    }
    wrapped_lines(text.as_bytes(), |lines| {
        let has = |byte: u8| memchr(byte, &text.as_bytes()[lines.clone()]).is_some();
        if has(ESCAPE) {
            look(lines, WrappingKind::Codes);
        } else if !has(b'\\') || !look(lines.clone(), WrappingKind::Escapes) {
            look(lines, WrappingKind::Percents);
        }
    });
}

/// What can be taken off a text.
#[derive(Clone, Copy, Debug)]
enum WrappingKind {
    Invisible,
    Percents,
    Codes,
    Escapes,
}

/// How long the character is that begins here, if nobody sees it: 0 if somebody does. These are
/// the default ignorable code points of Unicode, and marks of annotation.
fn invisible_len(rest: &[u8]) -> usize {
    match rest {
        [0xc2, 0xad, ..] | [0xcd, 0x8f, ..] | [0xd8, 0x9c, ..] => 2,
        [0xe1, 0x85, 0x9f | 0xa0, ..]
        | [0xe1, 0x9e, 0xb4 | 0xb5, ..]
        | [0xe1, 0xa0, 0x8b..=0x8f, ..]
        | [0xe2, 0x80, 0x8b..=0x8f | 0xaa..=0xae, ..]
        | [0xe2, 0x81, 0xa0..=0xaf, ..]
        | [0xe3, 0x85, 0xa4, ..]
        | [0xef, 0xb8, 0x80..=0x8f, ..]
        | [0xef, 0xbb, 0xbf, ..]
        | [0xef, 0xbe, 0xa0, ..]
        | [0xef, 0xbf, 0xb0..=0xbb, ..] => 3,
        [0xf0, 0x9b, 0xb2, 0xa0..=0xa3, ..]
        | [0xf0, 0x9d, 0x85, 0xb3..=0xba, ..]
        | [0xf3, 0xa0, _, _, ..] => 4,
        _ => 0,
    }
}

/// Where the next character is that nobody sees, and how long it is.
fn next_invisible(bytes: &[u8], from: usize) -> Option<(usize, usize)> {
    /// Nearly all of most texts is ASCII, and so much of it is told at once.
    const BLOCK: usize = 64;
    let mut at = from;
    loop {
        while let Some(block) = bytes[at..].first_chunk::<BLOCK>()
            && block.is_ascii()
        {
            at += BLOCK;
        }
        at += bytes[at..].iter().position(|byte| !byte.is_ascii())?;
        match invisible_len(&bytes[at..]) {
            0 => at += 1,
            length => return Some((at, length)),
        }
    }
}

/// Calls with each line in which a character that nobody sees stands behind one of ASCII. Others
/// split no token: they choose the look of an emoji, or join the letters of a script.
fn invisible_lines(bytes: &[u8], mut call: impl FnMut(Range<usize>)) {
    let mut at = 0;
    let mut from = 0;
    while let Some((here, length)) = next_invisible(bytes, from) {
        from = here + length;
        if here == 0 || !bytes[here - 1].is_ascii_graphic() {
            continue;
        }
        let start = memrchr(b'\n', &bytes[at..here]).map_or(at, |line| at + line + 1);
        let end = memchr(b'\n', &bytes[here..]).map_or(bytes.len(), |line| here + line + 1);
        call(start..end);
        at = end;
        from = end;
    }
}

/// What the escape of an address that begins here stands for, if that can be part of a token or
/// joins a name to its value.
fn percent_escape(rest: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*rest.get(at)?).to_digit(16);
    let byte = u8::try_from(digit(1)? * 16 + digit(2)?).ok()?;
    byte.is_ascii_graphic().then_some(byte)
}

/// Calls with each stretch of lines that hold a terminal code, a backslash or an escape of
/// addresses.
fn wrapped_lines(bytes: &[u8], mut call: impl FnMut(Range<usize>)) {
    let mut stretch: Option<Range<usize>> = None;
    let mut at = 0;
    let mut from = 0;
    while let Some(found) = memchr3(ESCAPE, b'\\', b'%', &bytes[from..]) {
        let here = from + found;
        if bytes[here] == b'%' && percent_escape(&bytes[here..]).is_none() {
            from = here + 1;
            continue;
        }
        let start = memrchr(b'\n', &bytes[at..here]).map_or(at, |line| at + line + 1);
        let end = memchr(b'\n', &bytes[here..]).map_or(bytes.len(), |line| here + line + 1);
        stretch = match stretch {
            Some(last) if last.end == start => Some(last.start..end),
            Some(last) => {
                call(last);
                Some(start..end)
            }
            None => Some(start..end),
        };
        at = end;
        from = end;
    }
    stretch.into_iter().for_each(call);
}

/// Looks into what is base64 of text: all of it is a secret if it holds one.
fn in_base64<'s>(
    secrets: &'s SecretFinder,
    text: &str,
    depth: usize,
    found: &mut Vec<SecretCandidate<'s>>,
) {
    each_run(text.as_bytes(), |run| {
        let Some(decoded) = decoded(&text.as_bytes()[run.clone()]) else {
            return;
        };
        let mut inner = secrets.flat(&decoded);
        below(secrets, &decoded, depth.min(1), false, &mut inner);
        inner.retain(|one| !super::is_masked(&decoded, &one.range));
        let Some(one) = inner.into_iter().max_by_key(SecretCandidate::rank) else {
            return;
        };
        let clean = decoded[super::whole(&decoded, one.range.clone())].into();
        found.push(SecretCandidate {
            hidden: one.hidden.or(Some(clean)),
            size: run.len(),
            range: run,
            ..one
        });
    });
}

/// Calls with each long run of the digits of base64: with the lines that go on with it,
/// and its padding.
fn each_run(bytes: &[u8], mut call: impl FnMut(Range<usize>)) {
    let digits = |from: usize| {
        bytes[from..]
            .iter()
            .take_while(|byte| is_digit(**byte))
            .count()
    };
    let mut done = 0;
    let mut at = RUN - 1;
    while at < bytes.len() {
        // From behind: what ends a run is never far in ordinary text, and no run begins before it.
        let ends = |byte: &u8| !is_digit(*byte);
        if let Some(last) = bytes[done..=at].iter().rposition(ends) {
            done += last + 1;
            at = done + RUN - 1;
            continue;
        }
        let start = done;
        let mut end = at + digits(at);
        let width = end - start;
        while let Some(next) = next_line(bytes, end) {
            let more = digits(next);
            if more == 0 || more > width {
                break;
            }
            end = next + more;
            if more < width {
                break;
            }
        }
        let padding = bytes[end..]
            .iter()
            .take(2)
            .take_while(|byte| **byte == b'=');
        end += padding.count();
        call(start..end);
        done = end;
        at = end + RUN;
    }
}

/// Where the next line begins, if this one ends here.
fn next_line(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let rest = rest.strip_prefix(b"\r").unwrap_or(rest);
    let rest = rest.strip_prefix(b"\n")?;
    let indent = rest.iter().take_while(|byte| **byte == b' ').count();
    Some(bytes.len() - rest.len() + indent)
}

fn is_digit(byte: u8) -> bool {
    VALUES[usize::from(byte)] < 64
}

/// What each digit of base64 stands for, in both alphabets.
const VALUES: [u8; 256] = {
    let mut values = [255; 256];
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut at = 0;
    while at < digits.len() {
        values[digits[at] as usize] = at as u8;
        at += 1;
    }
    values[b'-' as usize] = 62;
    values[b'_' as usize] = 63;
    values
};

/// The text in a run, if it is text. Most runs are hashes, images and long names, and the
/// first bytes tell.
fn decoded(run: &[u8]) -> Option<String> {
    let digits = run.iter().map(|byte| VALUES[usize::from(*byte)]);
    let mut digits = digits.filter(|value| *value < 64);
    let mut bytes = Vec::new();
    let mut wide = false;
    loop {
        let mut four = [0; 4];
        let got = four
            .iter_mut()
            .map_while(|place| digits.next().map(|digit| *place = digit));
        let got = got.count();
        let word = four
            .iter()
            .fold(0, |word, digit| word << 6 | u32::from(*digit));
        let [_, three @ ..] = word.to_be_bytes();
        let new = &three[..got.saturating_sub(1)];
        let is_text = |byte: &u8| *byte >= b' ' || matches!(byte, b'\t' | b'\n' | b'\r' | &ESCAPE);
        let early = bytes.len() + new.len() < 6 && new.contains(&0);
        // Most are told by their first bytes, and need no memory.
        if bytes.is_empty() && !early && !new.iter().all(is_text) {
            return None;
        }
        bytes.extend_from_slice(new);
        // The first four tell whether it is written in two bytes for each character.
        wide |= bytes.len() == 6 && bytes[1] == 0 && bytes[3] == 0;
        let is_wide = |byte: &u8| wide && *byte == 0;
        if !early && !new.iter().all(|byte| is_text(byte) || is_wide(byte)) {
            return None;
        }
        if bytes.len() == 48 && !wide && !begins_as_text(&bytes) {
            return None;
        }
        if got < 4 {
            break;
        }
    }
    if wide {
        bytes.retain(|byte| *byte != 0);
    }
    match String::from_utf8(bytes) {
        Ok(text) => Some(text),
        // A run that was cut off may end in the middle of a character.
        Err(error) if error.utf8_error().error_len().is_none() => {
            Some(String::from_utf8_lossy(error.as_bytes()).into_owned())
        }
        Err(_) => None,
    }
}

fn begins_as_text(bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn places_in_a_view_are_places_in_the_text() {
        let text = r#"a\n\u0062c\"d\\"#;
        let view = UnwrappedText::unescaped(text);
        assert_eq!(view.text, "a\nbc\"d\\");
        let at = |part: &str| {
            let start = view.text.find(part).unwrap();
            &text[view.source(start..start + part.len())]
        };
        assert_eq!(at("a"), "a");
        assert_eq!(at("\n"), r"\n");
        assert_eq!(at("bc"), r"\u0062c");
        assert_eq!(at("c\"d"), r#"c\"d"#);
        assert_eq!(at("\\"), r"\\");
        assert_eq!(&text[view.source(0..view.text.len())], text);
    }

    #[test]
    fn codes_at_the_ends_of_a_place_are_no_part_of_it() {
        let text = "x\u{1b}[1mab\u{1b}[31mcd\u{1b}[0m y";
        let view = UnwrappedText::default().without_codes(text);
        assert_eq!(view.text, "xabcd y");
        assert_eq!(&text[view.source(1..5)], "ab\u{1b}[31mcd");
        assert_eq!(&text[view.source(0..1)], "x");
        assert_eq!(&text[view.source(5..7)], " y");
    }

    #[test]
    fn lines_with_wrapping_are_taken_together_and_others_left_out() {
        let mut found = Vec::new();
        let text = "plain\na\\b\nc\u{1b}d\n\nplain\n\\";
        wrapped_lines(text.as_bytes(), |lines| found.push(&text[lines]));
        assert_eq!(found, ["a\\b\nc\u{1b}d\n", "\\"]);
    }

    fn runs(text: &str) -> Vec<&str> {
        let mut found = Vec::new();
        each_run(text.as_bytes(), |run| found.push(&text[run]));
        found
    }

    #[test]
    fn runs_are_found_whole_with_their_lines_and_padding() {
        let (short, long, line) = ("a".repeat(39), "b".repeat(41), "c".repeat(64));
        assert_eq!(runs(&short), [""; 0]);
        assert_eq!(
            runs(&format!("x {long}== y {short}")),
            [format!("{long}==")]
        );
        let lines = format!("{line}\n{line}\r\n  {line}\nend=");
        assert_eq!(runs(&format!(": {lines}\nnext")), [lines.as_str()]);
        assert_eq!(
            runs(&format!("{long}\n{line}")),
            [long.as_str(), line.as_str()]
        );
    }

    /// Each run without any step further than one byte.
    fn runs_slowly(text: &str) -> Vec<&str> {
        let bytes = text.as_bytes();
        let digits = |from: usize| bytes[from..].iter().take_while(|byte| is_digit(**byte));
        let mut found = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let (start, width) = (at, digits(at).count());
            let mut end = at + width;
            if width < RUN {
                at = end + 1;
                continue;
            }
            while let Some(next) = next_line(bytes, end) {
                let more = digits(next).count();
                if more == 0 || more > width {
                    break;
                }
                end = next + more;
                if more < width {
                    break;
                }
            }
            let padding = bytes[end..].iter().take(2);
            end += padding.take_while(|byte| **byte == b'=').count();
            found.push(&text[start..end]);
            at = end + 1;
        }
        found
    }

    proptest! {
        #[test]
        fn runs_are_those_that_a_slow_search_finds(parts in prop::collection::vec("[a-zA-Z/_-]{0,9}|[A-Z]{30,50}|[ .é\n]|={1,2} |\r\n {0,3}", 0..24)) {
            let text = parts.concat();
            prop_assert_eq!(runs(&text), runs_slowly(&text));
        }

        #[test]
        fn every_long_run_is_found_wherever_it_stands(before in "[ a]{0,90}", length in 40usize..130, after in "[ a]{0,90}") {
            let run = "Z".repeat(length);
            let text = format!("{before} {run} {after}");
            prop_assert!(runs(&text).contains(&run.as_str()));
        }

        #[test]
        fn a_view_shows_what_decoding_gives(text in r#"([a-z"\\n]|\\\\|\\u00e4|\\ud83d\\ude00|é){0,30}"#) {
            let view = UnwrappedText::unescaped(&text);
            let full = view.source(0..view.text.len());
            prop_assert_eq!(full, 0..text.len());
            for (at, character) in view.text.char_indices() {
                let source = view.source(at..at + character.len_utf8());
                prop_assert_eq!(UnwrappedText::unescaped(&text[source]).text, character.to_string());
            }
        }
    }

    #[test]
    fn only_text_is_decoded() {
        assert_eq!(decoded(b"aGVsbG8gd29ybGQ=").as_deref(), Some("hello world"));
        assert_eq!(decoded(b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAA"), None);
        assert_eq!(decoded(b"aABlAGwAbABvAA==").as_deref(), Some("hello"));
        assert_eq!(decoded(b"3f786850e387550fdab836ed7e6dc881de23001b"), None);
    }
}
