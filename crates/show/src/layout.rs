//! Fits lines into columns: wrapping and cutting by display width, never inside a character.
//!
//! A character is what a person would call one (a grapheme); wide scripts take two columns
//! and may be broken anywhere.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::style::{StyledLine, TextStyle};

/// Columns between tab stops.
const TAB: usize = 4;

/// Tabs as spaces up to the next stop.
pub fn untabbed(text: &str) -> Cow<'_, str> {
    if memchr::memchr(b'\t', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut column = 0;
    for piece in text.split_inclusive('\t') {
        let (words, tab) = match piece.strip_suffix('\t') {
            Some(words) => (words, true),
            None => (piece, false),
        };
        out.push_str(words);
        column += words.width();
        if tab {
            let gap = TAB - column % TAB;
            out.extend(std::iter::repeat_n(' ', gap));
            column += gap;
        }
    }
    Cow::Owned(out)
}

/// The line cut into lines of at most `width` columns, at blanks where there are any.
pub fn wrap(line: &StyledLine, width: usize) -> Vec<StyledLine> {
    wrap_own(line.clone(), width)
}

/// The same, for one that nobody else needs.
pub(crate) fn wrap_own(line: StyledLine, width: usize) -> Vec<StyledLine> {
    let width = width.max(1);
    if line.width() <= width {
        return vec![line];
    }
    let mut wrapper = LineWrapper::new(width);
    for (paint, text) in line.pieces() {
        wrapper.take_text(*paint, text);
    }
    wrapper.finish()
}

/// Text of one look, wrapped; its own newlines stay.
pub fn wrap_text(paint: TextStyle, text: &str, width: usize) -> Vec<StyledLine> {
    let text = crate::clean::text(text);
    let lines = text
        .split('\n')
        .map(|line| StyledLine::of_clean(paint, line));
    lines.flat_map(|line| wrap_own(line, width)).collect()
}

/// The line cut at `width` columns, with `…` for what is missing.
pub fn cut(line: &StyledLine, width: usize) -> StyledLine {
    if line.width() <= width {
        return line.clone();
    }
    let mut out = StyledLine::new();
    let mut left = width.saturating_sub(1);
    let mut last = TextStyle::PLAIN;
    'pieces: for (paint, text) in line.pieces() {
        for grapheme in text.graphemes(true) {
            let columns = grapheme.width();
            if columns > left {
                break 'pieces;
            }
            left -= columns;
            out.push_clean(*paint, grapheme);
            last = *paint;
        }
    }
    if width > 0 {
        out.push(last, "…");
    }
    out
}

/// Text cut at `width` columns; where it is a path, the start goes, not the file name.
pub fn cut_path(text: &str, width: usize) -> String {
    let text = crate::clean::line(text);
    if text.width() <= width {
        return text.into_owned();
    }
    let graphemes: Vec<&str> = text.graphemes(true).collect();
    let mut left = width.saturating_sub(1);
    let mut start = graphemes.len();
    while start > 0 && graphemes[start - 1].width() <= left {
        start -= 1;
        left -= graphemes[start].width();
    }
    // Begin at a whole name if one begins near.
    let slash = graphemes[start..]
        .iter()
        .take(24)
        .position(|part| *part == "/");
    let start = start
        + slash
            .filter(|at| start + at + 1 < graphemes.len())
            .unwrap_or(0);
    format!("…{}", graphemes[start..].concat())
}

/// Blanks that make the line `width` columns wide.
pub fn pad(line: &mut StyledLine, width: usize) {
    let gap = width.saturating_sub(line.width());
    line.push(TextStyle::PLAIN, &" ".repeat(gap));
}

/// The line behind a prefix.
pub fn behind(prefix: &StyledLine, line: &StyledLine) -> StyledLine {
    let mut out = prefix.clone();
    out.append(line);
    out
}

/// The same, for one that nobody else needs.
pub(crate) fn behind_own(prefix: &StyledLine, line: StyledLine) -> StyledLine {
    let mut out = prefix.clone();
    out.join(line);
    out
}

struct LineWrapper<'a> {
    width: usize,
    done: Vec<StyledLine>,
    line: StyledLine,
    columns: usize,
    word: Vec<(TextStyle, &'a str, usize)>,
    word_columns: usize,
    indent: usize,
    in_indent: bool,
}

impl<'a> LineWrapper<'a> {
    fn new(width: usize) -> LineWrapper<'a> {
        LineWrapper {
            width,
            done: Vec::new(),
            line: StyledLine::new(),
            columns: 0,
            word: Vec::new(),
            word_columns: 0,
            indent: 0,
            in_indent: true,
        }
    }

    /// Takes text that is clean. Where it is ASCII each byte is a character, but for the last one
    /// before others, to which marks may belong, and the first one behind them.
    fn take_text(&mut self, paint: TextStyle, text: &'a str) {
        let bytes = text.as_bytes();
        let next = |from: usize, is_ascii: bool| {
            let rest = bytes[from..].iter();
            let found = rest.clone().position(|byte| byte.is_ascii() == is_ascii);
            from + found.unwrap_or(rest.len())
        };
        let mut at = 0;
        while at < text.len() {
            let other = next(at, false);
            let plain = match other == text.len() {
                true => other,
                false => other.saturating_sub(1).max(at),
            };
            self.take_ascii(paint, &text[at..plain]);
            at = next(other, true);
            while bytes.get(at + 1).is_some_and(|byte| !byte.is_ascii()) {
                at = next(at + 1, true);
            }
            at = text.len().min(at + 1);
            for grapheme in text[plain..at].graphemes(true) {
                self.take(paint, grapheme);
            }
        }
    }

    /// Takes words and the blanks between them as they are.
    fn take_ascii(&mut self, paint: TextStyle, text: &'a str) {
        for piece in text.split_inclusive(' ') {
            let word = piece.strip_suffix(' ').unwrap_or(piece);
            if !word.is_empty() {
                self.in_indent = false;
                self.word.push((paint, word, word.len()));
                self.word_columns += word.len();
            }
            if word.len() < piece.len() {
                self.end_word();
                self.blank(paint);
            }
        }
    }

    fn take(&mut self, paint: TextStyle, grapheme: &'a str) {
        let columns = grapheme.width();
        if grapheme == " " {
            self.end_word();
            self.blank(paint);
            return;
        }
        self.in_indent = false;
        // Wide scripts have no blanks between words.
        if columns > 1 && grapheme.chars().next().is_some_and(|c| c > '\u{2e7f}') {
            self.end_word();
        }
        self.word.push((paint, grapheme, columns));
        self.word_columns += columns;
    }

    fn blank(&mut self, paint: TextStyle) {
        if self.in_indent {
            // What was indented stays so, within reason, on the lines it is cut into.
            self.indent = (self.indent + 1).min(self.width / 3);
        }
        if self.columns < self.width {
            self.line.push_clean(paint, " ");
            self.columns += 1;
        }
    }

    fn end_word(&mut self) {
        let mut word = std::mem::take(&mut self.word);
        let columns = std::mem::take(&mut self.word_columns);
        let has_text = self.columns > self.indent;
        if self.columns + columns > self.width && has_text && columns <= self.width - self.indent {
            self.end_line();
        }
        for (paint, text, columns) in word.drain(..) {
            self.piece(paint, text, columns);
        }
        // Its memory is used again.
        self.word = word;
    }

    /// A character, or ASCII that may be cut anywhere.
    fn piece(&mut self, paint: TextStyle, mut text: &str, mut columns: usize) {
        while self.columns + columns > self.width && columns > 1 && text.is_ascii() {
            if self.columns >= self.width && self.columns > self.indent {
                self.end_line();
            }
            let room = self.width.saturating_sub(self.columns).max(1);
            let (now, later) = text.split_at(room.min(columns));
            self.line.push_clean(paint, now);
            self.columns += now.len();
            (text, columns) = (later, later.len());
        }
        if text.is_empty() {
            return;
        }
        if self.columns + columns > self.width && self.columns > self.indent {
            self.end_line();
        }
        self.line.push_clean(paint, text);
        self.columns += columns;
    }

    fn end_line(&mut self) {
        self.done.push(std::mem::take(&mut self.line));
        self.line
            .push_clean(TextStyle::PLAIN, &" ".repeat(self.indent));
        self.columns = self.indent;
    }

    fn finish(mut self) -> Vec<StyledLine> {
        self.end_word();
        if self.columns > self.indent || self.done.is_empty() {
            self.done.push(self.line);
        }
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wrapped(text: &str, width: usize) -> Vec<String> {
        let lines = wrap_text(TextStyle::PLAIN, text, width);
        lines
            .iter()
            .map(|line| line.text().trim_end().to_owned())
            .collect()
    }

    #[test]
    fn lines_break_at_blanks_and_keep_their_indent() {
        assert_eq!(
            wrapped("the quick brown fox", 10),
            ["the quick", "brown fox"]
        );
        assert_eq!(
            wrapped("  - one two three", 10),
            ["  - one", "  two", "  three"]
        );
        assert_eq!(wrapped("a\n\nb", 10), ["a", "", "b"]);
    }

    #[test]
    fn long_words_and_wide_scripts_break_anywhere_but_inside_a_character() {
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("日本語テキスト", 6), ["日本語", "テキス", "ト"]);
        assert_eq!(wrapped("👩‍👩‍👧👩‍👩‍👧", 2), ["👩‍👩‍👧", "👩‍👩‍👧"]);
    }

    #[test]
    fn cutting_says_that_something_is_missing() {
        let line = StyledLine::of(TextStyle::PLAIN, "abcdef");
        assert_eq!(cut(&line, 6).text(), "abcdef");
        assert_eq!(cut(&line, 5).text(), "abcd…");
        assert_eq!(
            cut(&StyledLine::of(TextStyle::PLAIN, "日本語"), 4).text(),
            "日…"
        );
        assert_eq!(cut_path("/very/long/path/to/main.rs", 14), "…/to/main.rs");
    }

    #[test]
    fn tabs_reach_to_the_next_stop() {
        assert_eq!(untabbed("a\tb\tc"), "a   b   c");
        assert_eq!(untabbed("\tx"), "    x");
    }

    fn wrapped_by_character(line: &StyledLine, width: usize) -> Vec<StyledLine> {
        if line.width() <= width {
            return vec![line.clone()];
        }
        let mut wrapper = LineWrapper::new(width);
        for (paint, text) in line.pieces() {
            for grapheme in text.graphemes(true) {
                wrapper.take(*paint, grapheme);
            }
        }
        wrapper.finish()
    }

    proptest! {
        #[test]
        fn text_is_wrapped_by_words_as_it_is_by_characters(
            one in "[ab ]{0,40}", two in "([a-z]{1,30} {0,3}){0,4}",
            mixed in "([a-z ]{1,9}|[ aé\u{301}\u{600}\u{fe0f}日👩]{1,4}|👩\u{200d}👧){0,9}", width in 1usize..25
        ) {
            let line = StyledLine::of(TextStyle::PLAIN, &one).with(TextStyle::BOLD, &two).with(TextStyle::PLAIN, &mixed);
            prop_assert_eq!(wrap(&line, width), wrapped_by_character(&line, width));
        }

        #[test]
        fn no_line_is_wider_than_asked_and_no_character_is_lost(text in "[a-z日本 é👍]{0,60}", width in 2usize..30) {
            let lines = wrap_text(TextStyle::PLAIN, &text, width);
            for line in &lines {
                prop_assert!(line.text().trim_end().width() <= width, "{:?}", line.text());
            }
            let solid = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
            let all: String = lines.iter().map(StyledLine::text).collect();
            prop_assert_eq!(solid(&all), solid(&text));
        }
    }
}
