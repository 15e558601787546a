//! Text for somebody who has to approve it: nothing is removed, and nothing hides.
//!
//! [`crate::clean`] removes escape sequences, because a reader does not want them. Whoever
//! approves a command must see them: the shell runs what stands inside. Here every character
//! that a terminal would obey, hide or use to reorder text is written as an escape (`\x1b`,
//! `\u202e`), long lines are wrapped at the edge and never cut, and all blanks stay.

use std::borrow::Cow;

use similar::{ChangeTag, TextDiff};
use unicode_width::UnicodeWidthChar;
use unspool_model::view::tool_outcome::{FileChange, PatchSign};

use crate::layout::behind;
use crate::style::{StyledLine, TextStyle};

/// How escapes look, so that they differ from the same letters in the text where there is colour.
pub const ESCAPE: TextStyle = TextStyle {
    bold: true,
    ..TextStyle::ERROR
};

/// Combining marks on one character; more paint over other rows.
const MARKS: usize = 4;

/// Columns of a tab.
const TAB: &str = "    ";

/// A piece of a text: shown as it is, or written as an escape.
enum VisiblePiece {
    Plain(char),
    Escape(String),
}

/// The text with escapes; newlines and tabs stay.
pub fn escaped(text: &str) -> Cow<'_, str> {
    written(text, false)
}

/// The text on one line: newlines and tabs are written as escapes, too.
pub fn escaped_line(text: &str) -> Cow<'_, str> {
    written(text, true)
}

/// How many characters of a text are written as escapes.
pub fn count(text: &str) -> usize {
    let escape = |piece: &VisiblePiece| matches!(piece, VisiblePiece::Escape(_));
    pieces(text, false).filter(escape).count()
}

fn written(text: &str, one_line: bool) -> Cow<'_, str> {
    let plain =
        |byte: u8| matches!(byte, b' '..=b'~') || !one_line && matches!(byte, b'\n' | b'\t');
    if text.bytes().all(plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text, one_line) {
        match piece {
            VisiblePiece::Plain(c) => out.push(c),
            VisiblePiece::Escape(escape) => out.push_str(&escape),
        }
    }
    Cow::Owned(out)
}

fn pieces(text: &str, one_line: bool) -> impl Iterator<Item = VisiblePiece> + '_ {
    // A mark at the start of a line has nothing to stand on.
    let mut marks = MARKS;
    text.chars().map(move |c| {
        let is_blank = matches!(c, '\n' | '\t');
        if is_blank && !one_line {
            marks = MARKS;
            return VisiblePiece::Plain(c);
        }
        let is_mark = c.width() == Some(0) && !is_hidden(c);
        marks = if is_mark { marks + 1 } else { 0 };
        match is_hidden(c) || marks > MARKS {
            true => VisiblePiece::Escape(escape(c)),
            false => VisiblePiece::Plain(c),
        }
    })
}

/// Whether a character is obeyed, takes no space, looks like a blank and is none, or changes the
/// order in which text is read.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || crate::clean::is_deceptive(c)
        || matches!(c,
            '\u{a0}' | '\u{34f}' | '\u{1680}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{2800}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}')
}

fn escape(c: char) -> String {
    match c as u32 {
        code @ 0..=0xff => format!("\\x{code:02x}"),
        code @ 0x100..=0xffff => format!("\\u{code:04x}"),
        code => format!("\\U{code:08x}"),
    }
}

/// The text in rows of at most `width` columns, cut at the edge as a terminal would: all of it.
pub fn rows(paint: TextStyle, text: &str, width: usize) -> Vec<StyledLine> {
    text.split('\n')
        .flat_map(|line| VisibleRows::of(paint, line, width))
        .collect()
}

/// The same on one line: newlines and tabs are escapes, too.
pub fn line_rows(paint: TextStyle, text: &str, width: usize) -> Vec<StyledLine> {
    let text = text.replace('\t', "\\x09").replace('\n', "\\x0a");
    rows(paint, &text, width)
}

struct VisibleRows {
    width: usize,
    done: Vec<StyledLine>,
    line: StyledLine,
    columns: usize,
}

impl VisibleRows {
    fn of(paint: TextStyle, text: &str, width: usize) -> Vec<StyledLine> {
        let mut rows = VisibleRows {
            width: width.max(12),
            done: Vec::new(),
            line: StyledLine::new(),
            columns: 0,
        };
        let mut plain = String::new();
        let mut columns = 0;
        for piece in pieces(text, false) {
            let (text, wide) = match &piece {
                VisiblePiece::Plain('\t') => (TAB, TAB.len()),
                VisiblePiece::Plain(c) => {
                    let wide = c.width().unwrap_or(0);
                    if rows.columns + columns + wide > rows.width {
                        rows.line.push(paint, &std::mem::take(&mut plain));
                        rows.end();
                        columns = 0;
                    }
                    plain.push(*c);
                    columns += wide;
                    continue;
                }
                VisiblePiece::Escape(escape) => (escape.as_str(), escape.len()),
            };
            rows.line.push(paint, &std::mem::take(&mut plain));
            rows.columns += std::mem::take(&mut columns);
            if rows.columns + wide > rows.width {
                rows.end();
            }
            let paint = match piece {
                VisiblePiece::Escape(_) => ESCAPE,
                VisiblePiece::Plain(_) => paint,
            };
            rows.line.push(paint, text);
            rows.columns += wide;
        }
        rows.line.push(paint, &plain);
        rows.end();
        rows.done
    }

    fn end(&mut self) {
        self.done.push(std::mem::take(&mut self.line));
        self.columns = 0;
    }
}

/// A change in full: every line of it, none of them cut.
pub fn change(change: &FileChange, width: usize) -> Vec<StyledLine> {
    match change {
        FileChange::Written(text) => {
            let count = text.split('\n').count();
            let digits = count.to_string().len();
            let mut out = Vec::new();
            for (at, line) in lines(text).into_iter().enumerate() {
                let mark = StyledLine::of(TextStyle::DIM, &format!("{:>digits$} ", at + 1));
                out.extend(signed(PatchSign::Added, line, &mark, width));
            }
            out.extend(unended(text));
            out
        }
        FileChange::Replaced(pairs) => {
            let mut out = Vec::new();
            for (at, (old, new)) in pairs.iter().enumerate() {
                if at > 0 {
                    out.push(StyledLine::of(TextStyle::DIM, "⋯"));
                }
                for change in TextDiff::from_lines(old, new).iter_all_changes() {
                    let sign = match change.tag() {
                        ChangeTag::Equal => PatchSign::Same,
                        ChangeTag::Delete => PatchSign::Removed,
                        ChangeTag::Insert => PatchSign::Added,
                    };
                    let text = change.value();
                    let line = text.strip_suffix('\n').unwrap_or(text);
                    out.extend(signed(sign, line, &StyledLine::new(), width));
                }
            }
            out
        }
        FileChange::Hunks(hunks) => {
            let all = hunks.iter().flat_map(|hunk| &hunk.lines);
            all.flat_map(|(sign, text)| signed(*sign, text, &StyledLine::new(), width))
                .collect()
        }
    }
}

/// Lines without their ends; an empty text has none.
fn lines(text: &str) -> Vec<&str> {
    match text.strip_suffix('\n').unwrap_or(text) {
        "" if text.is_empty() => Vec::new(),
        text => text.split('\n').collect(),
    }
}

fn unended(text: &str) -> Option<StyledLine> {
    let note = match text {
        "" => "the file will be empty",
        text if !text.ends_with('\n') => "no newline at its end",
        _ => return None,
    };
    Some(StyledLine::of(TextStyle::DIM, note))
}

fn signed(sign: PatchSign, text: &str, number: &StyledLine, width: usize) -> Vec<StyledLine> {
    let (mark, paint) = match sign {
        PatchSign::Same => ("  ", TextStyle::DIM),
        PatchSign::Removed => ("- ", TextStyle::REMOVED),
        PatchSign::Added => ("+ ", TextStyle::ADDED),
    };
    let first = number.clone().with(paint, mark);
    let next = StyledLine::of(TextStyle::DIM, &" ".repeat(first.width()));
    let body = rows(paint, text, width.saturating_sub(first.width()));
    let prefix = |at: usize| if at == 0 { &first } else { &next };
    body.iter()
        .enumerate()
        .map(|(at, line)| behind(prefix(at), line))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(lines: &[StyledLine]) -> Vec<String> {
        lines.iter().map(StyledLine::text).collect()
    }

    #[test]
    fn a_title_that_holds_a_command_is_seen() {
        let command = "ls -la \u{1b}]0;$(touch HIDDEN)\u{7}";
        assert_eq!(escaped(command), "ls -la \\x1b]0;$(touch HIDDEN)\\x07");
        let shown = texts(&rows(TextStyle::CODE, command, 80)).join("");
        assert_eq!(shown, "ls -la \\x1b]0;$(touch HIDDEN)\\x07");
    }

    #[test]
    fn controls_directions_and_what_takes_no_space_are_escapes() {
        for (text, wanted) in [
            ("a\rb", "a\\x0db"),
            ("a\u{7f}", "a\\x7f"),
            ("a\u{9b}2J", "a\\x9b2J"),
            ("a\u{202e}b\u{2066}", "a\\u202eb\\u2066"),
            ("rm\u{200b}x\u{feff}", "rm\\u200bx\\ufeff"),
            ("👩\u{200d}👧", "👩\\u200d👧"),
            ("a\u{a0}b\u{2003}c", "a\\xa0b\\u2003c"),
            ("x\u{e0041}", "x\\U000e0041"),
            ("x\u{fe0f}", "x\\ufe0f"),
            ("\u{301}x", "\\u0301x"),
        ] {
            assert_eq!(escaped(text), wanted, "{text:?}");
        }
        assert_eq!(
            escaped("naïve e\u{301} 日本\n\tx"),
            "naïve e\u{301} 日本\n\tx"
        );
        assert_eq!(escaped_line("a\n\tb"), "a\\x0a\\x09b");
        assert_eq!(count("a\u{1b}[2J\u{202e}\n"), 2);
    }

    #[test]
    fn a_long_line_is_wrapped_and_blanks_hide_nothing() {
        let command = format!("ls{}; rm -rf x", " ".repeat(300));
        let shown = texts(&rows(TextStyle::CODE, &command, 40));
        assert_eq!(shown.concat(), command);
        assert!(shown.iter().all(|row| row.len() <= 40));
    }

    #[test]
    fn a_change_is_whole_and_its_line_ends_are_seen() {
        let long = "x".repeat(100);
        let written = texts(&change(&FileChange::Written(format!("a\n{long}\n")), 30)).join("\n");
        assert_eq!(written.matches('x').count(), 100, "{written}");
        let ends = FileChange::Replaced(vec![("a\r\nb\n".into(), "a\nb\n".into())]);
        let shown = texts(&change(&ends, 30));
        assert_eq!(shown, ["- a\\x0d", "+ a", "  b"]);
        let many = "line\n".repeat(500);
        assert_eq!(change(&FileChange::Written(many), 30).len(), 500);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_is_obeyed(text in "(\\PC|\\pC|[ -~]|\u{1b}[\\[\\]]|\n|\t){0,60}") {
            let shown = escaped(&text);
            prop_assert!(!shown.chars().any(|c| is_hidden(c) && !matches!(c, '\n' | '\t')));
            // What is clean already is not changed on its way to the terminal.
            prop_assert_eq!(crate::clean::text(&shown), shown.as_ref());
            let rows = texts(&rows(TextStyle::PLAIN, &text, 20)).concat();
            let wanted = shown.replace('\n', "").replace('\t', TAB);
            prop_assert_eq!(rows, wanted);
        }
    }
}
