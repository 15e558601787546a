//! What a word is, for the index and for the marks in its answers.
//!
//! SQLite's `unicode61` cuts text into words at everything that is neither letter nor digit,
//! folds case and drops diacritics. It takes a whole run of Chinese for one word, so such
//! characters are set apart before it sees them ([`split`]); a run is then found as a phrase
//! of single characters, which is exactly a search for the substring.

use std::ops::Range;

/// Longer words are not indexed: they are keys, hashes and encoded bytes, which nobody types
/// and which would make up most of the vocabulary.
pub const LONGEST: usize = 64;

/// Appends `text` as the index takes it: each CJK character a word, no word too long.
pub fn split(text: &str, out: &mut String) {
    let bytes = text.as_bytes();
    // What is not yet copied begins at `kept`, the word we are in at `word`.
    let (mut kept, mut word, mut at) = (0, 0, 0);
    while let Some(&byte) = bytes.get(at) {
        if byte.is_ascii() {
            at += 1;
            if byte.is_ascii_alphanumeric() {
                continue;
            }
            kept = end_word(text, kept, word..at - 1, out);
            word = at;
            continue;
        }
        let Some(char) = text[at..].chars().next() else {
            break;
        };
        let next = at + char.len_utf8();
        if is_cjk(char) {
            kept = end_word(text, kept, word..at, out);
            out.push_str(&text[kept..at]);
            out.push(' ');
            out.push(char);
            out.push(' ');
            kept = next;
            word = next;
        } else if !is_word(char) {
            kept = end_word(text, kept, word..at, out);
            word = next;
        }
        at = next;
    }
    kept = end_word(text, kept, word..at, out);
    out.push_str(&text[kept..]);
}

/// Leaves out a word that is too long; says from where on nothing is copied yet.
fn end_word(text: &str, kept: usize, word: Range<usize>, out: &mut String) -> usize {
    if word.len() <= LONGEST {
        return kept;
    }
    out.push_str(&text[kept..word.start]);
    out.push(' ');
    word.end
}

/// Calls `each` for every word with its place and its folded form.
///
/// Stops when `each` says so.
pub fn words(text: &str, mut each: impl FnMut(Range<usize>, &str) -> bool) {
    let mut folded = String::new();
    let mut start = None;
    for (at, char) in text.char_indices() {
        let apart = is_cjk(char);
        if is_word(char) && !apart {
            start.get_or_insert(at);
            fold(char, &mut folded);
            continue;
        }
        if let Some(start) = start.take() {
            if !each(start..at, &folded) {
                return;
            }
            folded.clear();
        }
        if apart {
            let mut single = [0; 4];
            if !each(at..at + char.len_utf8(), char.encode_utf8(&mut single)) {
                return;
            }
        }
    }
    if let Some(start) = start {
        each(start..text.len(), &folded);
    }
}

/// Whether a character is written without spaces around words.
pub fn is_cjk(char: char) -> bool {
    matches!(u32::from(char),
        0x3005..=0x3007 | 0x3021..=0x3029 | 0x3041..=0x3096 | 0x309D..=0x309F
        | 0x30A1..=0x30FA | 0x30FC..=0x30FF | 0x3105..=0x312F | 0x31A0..=0x31BF
        | 0x31F0..=0x31FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF | 0xFF66..=0xFF9F | 0x1B000..=0x1B16F | 0x20000..=0x323AF)
}

/// Whether a character is part of a word.
fn is_word(char: char) -> bool {
    char.is_alphanumeric() || is_mark(char)
}

/// The accents that combine with the letter before them.
fn is_mark(char: char) -> bool {
    matches!(char, '\u{300}'..='\u{36f}')
}

/// Latin letters with diacritics, from U+00C0 on, and what is left without them; `.` stands
/// for a letter that stays as it is.
const PLAIN: &str = concat!(
    "aaaaaa.ceeeeiiii.nooooo.ouuuuy..aaaaaa.ceeeeiiii.nooooo.ouuuuy.y",
    "aaaaaaccccccccdd..eeeeeeeeeegggggggghh..iiiiiiiiii..jjkk.llllll..",
    "..nnnnnn...oooooo..rrrrrrsssssssstttt..uuuuuuuuuuuuwwyyyzzzzzz.",
);

/// Appends a character as `unicode61` compares it, as far as Latin goes.
fn fold(char: char, out: &mut String) {
    if char.is_ascii() {
        return out.push(char.to_ascii_lowercase());
    }
    if is_mark(char) {
        return;
    }
    let place = u32::from(char).checked_sub(0xC0);
    let plain = place.and_then(|place| PLAIN.as_bytes().get(place as usize));
    match plain {
        Some(b'.') | None => out.extend(char.to_lowercase()),
        Some(&letter) => out.push(letter.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn as_split(text: &str) -> String {
        let mut out = String::new();
        split(text, &mut out);
        out
    }

    fn as_words(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        words(text, |place, folded| {
            assert!(text.is_char_boundary(place.start) && text.is_char_boundary(place.end));
            all.push(folded.to_owned());
            true
        });
        all
    }

    #[test]
    fn each_cjk_character_becomes_a_word() {
        assert_eq!(as_split("接口+测试"), " 接  口 + 测  试 ");
        assert_eq!(as_split("Rust语言 ok"), "Rust 语  言  ok");
        assert_eq!(as_split("テスト한국"), " テ  ス  ト  한  국 ");
        assert_eq!(as_words("Rust语言, ok"), ["rust", "语", "言", "ok"]);
    }

    #[test]
    fn text_without_cjk_stays_as_it_is() {
        for text in ["", "plain text", "Übung naïve \u{1f600} a-b_c", "é"] {
            assert_eq!(as_split(text), text);
        }
    }

    #[test]
    fn words_that_are_too_long_are_left_out() {
        let long = "a".repeat(LONGEST + 1);
        assert_eq!(as_split(&format!("x {long} y")), "x   y");
        assert_eq!(as_split(&long), " ");
        assert_eq!(as_split(&format!("{long}据{long}")), "  据  ");
        let fits = "b".repeat(LONGEST);
        assert_eq!(as_split(&fits), fits);
    }

    #[test]
    fn case_and_diacritics_do_not_count() {
        assert_eq!(as_words("Café ÜBER Łódź"), ["cafe", "uber", "łodz"]);
        assert_eq!(as_words("cafe\u{301}"), ["cafe"]);
        assert_eq!(as_words("snake_case-word"), ["snake", "case", "word"]);
    }

    #[test]
    fn the_table_of_latin_letters_has_one_entry_for_each() {
        assert_eq!(PLAIN.len(), 0x180 - 0xC0);
        let pairs = [('ÿ', "y"), ('Ā', "a"), ('ž', "z"), ('š', "s"), ('ű', "u")];
        for (from, to) in pairs {
            let mut out = String::new();
            fold(from, &mut out);
            assert_eq!(out, to, "{from}");
        }
    }
}
