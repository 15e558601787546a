//! The one sanitiser between transcript text and the terminal.
//!
//! Transcripts hold what programs printed and what web pages said. Sent to a terminal as it
//! is, such text can move the cursor, change the title, write the clipboard or hide itself.
//! What leaves here has no control character but newline and tab: escape sequences are
//! removed whole, other controls become visible, and so does what changes the order of text
//! or takes no space. Cleaning clean text changes nothing.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

/// Bytes that are looked at together.
const BLOCK: usize = 32;

/// Marks that may follow one another on a character; more only paint over other lines.
const MARKS: usize = 6;

/// The text, safe for a terminal; newlines and tabs stay.
pub fn text(text: &str) -> Cow<'_, str> {
    if is_clean(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut marks = 0;
    loop {
        // Colours stand here and there in text that is plain.
        let is_plain = |byte: &u8| matches!(byte, b'\n' | b'\t' | b' '..=b'~');
        let plain = rest.bytes().take_while(is_plain).count();
        if plain > 0 {
            out.push_str(&rest[..plain]);
            rest = &rest[plain..];
            marks = 0;
        }
        let Some(first) = rest.chars().next() else {
            break;
        };
        let used = match first {
            '\u{1b}' | '\u{80}'..='\u{9f}' => control(rest, &mut out),
            '\r' => carriage_return(rest, &mut out),
            _ => {
                let width = first.width();
                marks = if width == Some(0) { marks + 1 } else { 0 };
                if marks <= MARKS {
                    one(first, &rest[first.len_utf8()..], &mut out);
                }
                first.len_utf8()
            }
        };
        rest = &rest[used..];
    }
    Cow::Owned(out)
}

/// The text on one line: newlines become spaces, tabs too.
pub fn line(text: &str) -> Cow<'_, str> {
    let clean = self::text(text);
    if memchr::memchr2(b'\n', b'\t', clean.as_bytes()).is_some() {
        return Cow::Owned(clean.replace(['\n', '\t'], " "));
    }
    clean
}

/// Whether there is nothing to do. Most characters are known at a glance.
pub(crate) fn is_clean(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        at += plain(&bytes[at..]);
        let block = bytes.len().min(at + BLOCK);
        while at < block {
            at += match common(&bytes[at..]) {
                0 => match text[at..].chars().next() {
                    Some(c) if is_harmless(c) => c.len_utf8(),
                    _ => return false,
                },
                length => length,
            };
        }
    }
    true
}

/// How many bytes at the start are ASCII that needs no cleaning, counted in whole blocks:
/// a block is judged at once.
fn plain(bytes: &[u8]) -> usize {
    let is_odd = |byte: u8| !matches!(byte, b'\n' | b'\t' | b' '..=b'~');
    let is_plain = |block: &&[u8]| !block.iter().fold(false, |odd, byte| odd | is_odd(*byte));
    let blocks = bytes.chunks_exact(BLOCK);
    blocks.take_while(is_plain).count() * BLOCK
}

/// How many bytes the first character has, if it is a common one that is harmless: ASCII,
/// Latin, Cyrillic, arrows, boxes, dashes and quotation marks, Chinese and Japanese.
fn common(bytes: &[u8]) -> usize {
    match bytes {
        [b'\n' | b'\t' | b' '..=b'~', ..] => 1,
        [0xc3 | 0xd0 | 0xd1, _, ..] => 2,
        [0xe2, 0x86 | 0x94..=0x97, _, ..] => 3,
        [
            0xe2,
            0x80,
            0x93 | 0x94 | 0x98 | 0x99 | 0x9c | 0x9d | 0xa2 | 0xa6,
            ..,
        ] => 3,
        [0xe4..=0xe9, _, _, ..] => 3,
        _ => 0,
    }
}

/// Nothing to do for it, whatever stands around it.
fn is_harmless(c: char) -> bool {
    match c {
        '\n' | '\t' | ' '..='~' => true,
        '\u{a0}'.. => c.width().is_some_and(|width| width > 0) && !is_deceptive(c),
        _ => false,
    }
}

/// Takes no space, or changes the order in which text is read.
pub(crate) fn is_deceptive(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

fn one(c: char, behind: &str, out: &mut String) {
    match c {
        '\n' | '\t' => out.push(c),
        // Unicode has a picture for each of these.
        '\0'..='\u{1f}' => out.extend(char::from_u32(0x2400 + c as u32)),
        '\u{7f}' => out.push('\u{2421}'),
        '\u{2028}' | '\u{2029}' => out.push('\n'),
        '\u{200c}' | '\u{200d}' if joins(out, behind) => out.push(c),
        // Variants of characters of other scripts; behind ASCII they only carry messages.
        '\u{e0100}'..='\u{e01ef}' if out.chars().next_back().is_some_and(|c| !c.is_ascii()) => {
            out.push(c);
        }
        _ if is_deceptive(c) => name(c, out),
        _ => out.push(c),
    }
}

/// Joiners make one character of several in emoji and in some scripts; never in ASCII.
pub(crate) fn joins(before: &str, behind: &str) -> bool {
    let foreign = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !is_deceptive(c));
    foreign(before.chars().next_back()) && foreign(behind.chars().next())
}

fn name(c: char, out: &mut String) {
    out.push_str(&format!("<U+{:04X}>", c as u32));
}

/// `\r\n` is a newline. Alone it starts the line again, as progress bars do: a newline too,
/// so that nothing is hidden.
fn carriage_return(text: &str, out: &mut String) -> usize {
    if !text[1..].starts_with(['\n', '\r']) {
        out.push('\n');
    }
    1
}

/// Drops an escape sequence, or a control of the second set; gives its length in bytes.
fn control(text: &str, out: &mut String) -> usize {
    let mut chars = text.chars();
    let first = chars.next().unwrap_or_default();
    let (kind, start) = match first {
        '\u{1b}' => match chars.next() {
            Some(second) if second.is_ascii() && second >= ' ' && second != '\u{7f}' => (second, 2),
            _ => {
                out.push('\u{241b}');
                return 1;
            }
        },
        // The second set holds the same introducers as single characters.
        _ => (char::from((first as u32 as u8) - 0x40), first.len_utf8()),
    };
    let body = &text[start..];
    match kind {
        '[' => start + sequence(body),
        ']' | 'P' | 'X' | '^' | '_' => start + string(body),
        'E' if first == '\u{85}' => {
            out.push('\n');
            start
        }
        ' '..='/' if first == '\u{1b}' => start + designation(body),
        _ => start,
    }
}

/// The length of parameters, intermediates and the final byte behind `ESC [`.
fn sequence(body: &str) -> usize {
    let parameters = body
        .bytes()
        .take_while(|byte| (0x20..0x40).contains(byte))
        .count();
    let ends = body
        .as_bytes()
        .get(parameters)
        .is_some_and(|byte| (0x40..0x7f).contains(byte));
    parameters + usize::from(ends)
}

/// The length of a string such as a title or a link, with its end. A string that does not
/// end on its line only loses its introducer: nobody hides text by starting one.
fn string(body: &str) -> usize {
    for (at, c) in body.char_indices() {
        match c {
            '\u{7}' | '\u{9c}' => return at + c.len_utf8(),
            '\u{1b}' if body[at..].starts_with("\u{1b}\\") => return at + 2,
            '\u{1b}' | '\n' | '\u{18}' | '\u{1a}' => return 0,
            _ => {}
        }
    }
    0
}

/// The length behind `ESC (` and the like: further intermediates and one final.
fn designation(body: &str) -> usize {
    let between = body
        .bytes()
        .take_while(|byte| (0x20..0x30).contains(byte))
        .count();
    let ends = body
        .as_bytes()
        .get(between)
        .is_some_and(|byte| (0x30..0x7f).contains(byte));
    between + usize::from(ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(dirty: &str) {
        let clean = text(dirty);
        let bad = clean
            .chars()
            .find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
        assert_eq!(bad, None, "{dirty:?} became {clean:?}");
        assert_eq!(
            text(&clean),
            clean,
            "{dirty:?} is cleaned twice differently"
        );
        assert!(!line(dirty).contains(['\n', '\t']));
    }

    #[test]
    fn what_is_common_is_harmless() {
        for c in '\0'..=char::MAX {
            let mut bytes = [0; 4];
            let length = common(c.encode_utf8(&mut bytes).as_bytes());
            assert!(
                length == 0 || (length == c.len_utf8() && is_harmless(c)),
                "{c:?}"
            );
        }
    }

    #[test]
    fn every_byte_alone_and_in_pairs_comes_out_harmless() {
        for first in 0..=255u8 {
            check(&String::from_utf8_lossy(&[first]));
            check(&char::from(first).to_string());
            for second in 0..=255u8 {
                check(&String::from_utf8_lossy(&[first, second]));
                check(&format!("{}{}x", char::from(first), char::from(second)));
                check(&format!(
                    "\u{1b}{}{}x",
                    char::from(first),
                    char::from(second)
                ));
            }
        }
    }

    #[test]
    fn escape_sequences_of_all_families_disappear() {
        let families = [
            "\u{1b}[31m",
            "\u{1b}[1;2;3H",
            "\u{1b}[?1049h",
            "\u{1b}[>c",
            "\u{1b}[0 q",
            "\u{9b}2J",
            "\u{1b}]0;title\u{7}",
            "\u{1b}]8;;http://x\u{1b}\\",
            "\u{1b}]52;c;aGk=\u{7}",
            "\u{1b}]1337;File=:x\u{9c}",
            "\u{9d}0;t\u{9c}",
            "\u{1b}Pq#0\u{1b}\\",
            "\u{90}q\u{9c}",
            "\u{1b}_Gx\u{1b}\\",
            "\u{1b}^x\u{1b}\\",
            "\u{1b}Xx\u{1b}\\",
            "\u{9f}x\u{9c}",
            "\u{1b}(B",
            "\u{1b}c",
            "\u{1b}7",
            "\u{1b}#8",
            "\u{1b}=",
            "\u{84}",
        ];
        for family in families {
            assert_eq!(text(&format!("a{family}b")), "ab", "{family:?}");
            check(family);
        }
        for byte in 0x20..0x7f {
            let byte = char::from(byte);
            check(&format!("\u{1b}[{byte}x\u{1b}]{byte}\u{1b}{byte}"));
        }
    }

    #[test]
    fn a_sequence_that_does_not_end_hides_nothing() {
        assert_eq!(text("\u{1b}]0;rm -rf\nnext"), "0;rm -rf\nnext");
        assert_eq!(text("\u{1b}P important"), " important");
        assert_eq!(text("\u{1b}[31"), "");
        assert_eq!(text("end\u{1b}"), "end␛");
    }

    #[test]
    fn what_hides_or_turns_text_becomes_visible() {
        assert_eq!(text("a\u{202e}b\u{2066}c"), "a<U+202E>b<U+2066>c");
        assert_eq!(text("pass\u{200b}word\u{feff}"), "pass<U+200B>word<U+FEFF>");
        assert_eq!(text("x\u{e0041}"), "x<U+E0041>");
        assert_eq!(text("a\u{200d}b"), "a<U+200D>b");
        assert_eq!(text("\u{7}\u{8}\u{0}\u{7f}"), "␇␈␀␡");
        assert_eq!(text("one\u{2028}two\u{85}three"), "one\ntwo\nthree");
    }

    #[test]
    fn what_people_write_stays() {
        let plain = "naïve 日本語 👩‍👩‍👧 ⚠️ नमस्ते می‌خواهم e\u{301}\n\tx";
        assert_eq!(text(plain), plain);
        assert!(matches!(text("plain\n\ttext 日本"), Cow::Borrowed(_)));
    }

    #[test]
    fn carriage_returns_never_overwrite() {
        assert_eq!(text("a\r\nb"), "a\nb");
        assert_eq!(text("10%\r20%\r"), "10%\n20%\n");
        assert_eq!(text("a\r\r\nb"), "a\nb");
    }

    #[test]
    fn towers_of_marks_are_cut() {
        let tower = format!("a{}b", "\u{301}".repeat(100));
        assert_eq!(text(&tower).chars().count(), MARKS + 2);
        check(&tower);
    }

    proptest! {
        #[test]
        fn blocks_are_judged_as_their_characters_are(text in "[ -~\n\t]{0,80}(\\PC|\\pC|[ -~]){0,3}[ -~\n]{0,80}\\PC{0,3}") {
            prop_assert_eq!(is_clean(&text), text.chars().all(is_harmless));
        }

        #[test]
        fn any_text_comes_out_harmless(dirty in "(\\PC|\\pC|\u{1b}[\\[\\]P_^X(]|[0-9;?]|[a-zA-Z]|\u{7}|\r|\n){0,40}") {
            check(&dirty);
        }

        #[test]
        fn any_bytes_come_out_harmless(dirty in proptest::collection::vec(any::<u8>(), 0..60)) {
            check(&String::from_utf8_lossy(&dirty));
        }
    }
}
