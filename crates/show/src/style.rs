//! How text looks: colours and weights by name, and lines that carry them.
//!
//! A [`StyledLine`] can only be filled with clean text (see [`crate::clean`]), and only a line can
//! be written, so nothing from a transcript reaches a terminal unclean. Without colour a
//! line is its text: nothing may be said by colour alone.

use std::fmt::Write as _;
use std::io;

use jiff::tz::TimeZone;
use unicode_width::UnicodeWidthStr;

use crate::clean;
use crate::layout::untabbed;

/// How much of tool calls is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolDetail {
    /// Nothing.
    None,
    /// A line each, with a few lines of failures and changes.
    #[default]
    Short,
    /// All of input and result.
    Full,
}

/// How a conversation is to look.
#[derive(Clone, Debug)]
pub struct ConversationStyle {
    /// Use colours.
    pub color: bool,
    /// Columns there are.
    pub width: usize,
    /// The zone that times are shown in.
    pub zone: TimeZone,
    /// How much of tool calls.
    pub tools: ToolDetail,
    /// Show what the model thought, not only that it did.
    pub thinking: bool,
}

impl Default for ConversationStyle {
    fn default() -> ConversationStyle {
        ConversationStyle {
            color: false,
            width: 80,
            zone: TimeZone::UTC,
            tools: ToolDetail::Short,
            thinking: false,
        }
    }
}

impl ConversationStyle {
    /// Columns to use: long lines are hard to read, very short ones cannot hold a call.
    pub fn columns(&self) -> usize {
        self.width.clamp(30, 160)
    }
}

/// The look of a piece of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextStyle {
    /// Foreground: a number of the terminal's own sixteen colours, so that themes hold.
    pub color: Option<u8>,
    /// Strong.
    pub bold: bool,
    /// Faint.
    pub dim: bool,
    /// Slanted.
    pub italic: bool,
    /// Underlined.
    pub underline: bool,
    /// Struck out.
    pub strike: bool,
}

const PLAIN: TextStyle = TextStyle {
    color: None,
    bold: false,
    dim: false,
    italic: false,
    underline: false,
    strike: false,
};

const fn color(color: u8) -> TextStyle {
    TextStyle {
        color: Some(color),
        ..PLAIN
    }
}

/// The looks by name.
impl TextStyle {
    /// Ordinary text.
    pub const PLAIN: TextStyle = PLAIN;
    /// Strong text.
    pub const BOLD: TextStyle = TextStyle {
        bold: true,
        ..PLAIN
    };
    /// What can be skipped.
    pub const DIM: TextStyle = TextStyle { dim: true, ..PLAIN };
    /// What a person typed.
    pub const PROMPT: TextStyle = TextStyle {
        bold: true,
        ..color(6)
    };
    /// The mark of a reply.
    pub const REPLY: TextStyle = color(5);
    /// What a call did.
    pub const VERB: TextStyle = color(4);
    /// A failure.
    pub const ERROR: TextStyle = color(1);
    /// Something to notice.
    pub const WARN: TextStyle = color(3);
    /// An added line.
    pub const ADDED: TextStyle = color(2);
    /// A removed line.
    pub const REMOVED: TextStyle = color(1);
    /// What somebody looked for.
    pub const HIT: TextStyle = TextStyle {
        bold: true,
        ..color(1)
    };
    /// Code within text.
    pub const CODE: TextStyle = color(6);
    /// A heading.
    pub const HEADING: TextStyle = TextStyle {
        bold: true,
        ..PLAIN
    };
    /// An address.
    pub const LINK: TextStyle = TextStyle {
        underline: true,
        ..PLAIN
    };
    /// What the model thought.
    pub const THINKING: TextStyle = TextStyle {
        dim: true,
        italic: true,
        ..PLAIN
    };

    /// Writes text that looks like this, if there is colour.
    fn write(self, out: &mut dyn io::Write, text: &str, color: bool) -> io::Result<()> {
        let code = if color { self.sgr() } else { String::new() };
        if code.is_empty() {
            return out.write_all(text.as_bytes());
        }
        write!(out, "{code}{text}\u{1b}[0m")
    }

    /// The sequence that switches it on; empty for ordinary text.
    fn sgr(self) -> String {
        let mut codes = String::new();
        let flags = [
            (self.bold, 1),
            (self.dim, 2),
            (self.italic, 3),
            (self.underline, 4),
            (self.strike, 9),
        ];
        let colors = self.color.map(|color| (true, 30 + u16::from(color)));
        for (on, code) in flags.into_iter().chain(colors) {
            if on {
                let separator = if codes.is_empty() { "" } else { ";" };
                let _ = write!(codes, "{separator}{code}");
            }
        }
        if codes.is_empty() {
            codes
        } else {
            format!("\u{1b}[{codes}m")
        }
    }
}

/// One line of output.
// Invariant: the pieces hold clean text without newlines and tabs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StyledLine {
    pieces: Vec<(TextStyle, String)>,
}

impl StyledLine {
    /// An empty line.
    pub fn new() -> StyledLine {
        StyledLine::default()
    }

    /// A line of one look.
    pub fn of(paint: TextStyle, text: &str) -> StyledLine {
        StyledLine::new().with(paint, text)
    }

    /// A line of one look from text that was cleaned already; tabs become blanks.
    pub(crate) fn of_clean(paint: TextStyle, text: &str) -> StyledLine {
        let mut line = StyledLine::new();
        line.push_clean(paint, &untabbed(text));
        line
    }

    /// Adds text, cleaned.
    pub fn push(&mut self, paint: TextStyle, text: &str) {
        if text.is_empty() {
            return;
        }
        self.push_clean(paint, &clean::line(text));
    }

    /// Adds text of another line, which is clean.
    pub(crate) fn push_clean(&mut self, paint: TextStyle, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.pieces.last_mut() {
            Some((last, before)) if *last == paint => before.push_str(text),
            _ => self.pieces.push((paint, text.to_owned())),
        }
    }

    /// The line with more text behind it.
    pub fn with(mut self, paint: TextStyle, text: &str) -> StyledLine {
        self.push(paint, text);
        self
    }

    /// Adds all of another line.
    pub fn append(&mut self, other: &StyledLine) {
        for (paint, text) in &other.pieces {
            self.push_clean(*paint, text);
        }
    }

    /// The same, of one that nobody needs any more.
    pub(crate) fn join(&mut self, other: StyledLine) {
        let mut pieces = other.pieces.into_iter();
        if let Some((paint, text)) = pieces.next() {
            match self.pieces.last_mut() {
                Some((last, before)) if *last == paint => before.push_str(&text),
                _ => self.pieces.push((paint, text)),
            }
        }
        self.pieces.extend(pieces);
    }

    /// Its pieces.
    pub fn pieces(&self) -> &[(TextStyle, String)] {
        &self.pieces
    }

    /// Columns it takes.
    pub fn width(&self) -> usize {
        // What was cleaned holds no control characters, so plain text is as wide as it is long.
        let width = |text: &str| {
            if text.is_ascii() {
                text.len()
            } else {
                text.width()
            }
        };
        self.pieces.iter().map(|(_, text)| width(text)).sum()
    }

    /// Whether nothing on it can be seen.
    pub(crate) fn is_blank(&self) -> bool {
        let mut texts = self.pieces.iter().map(|(_, text)| text);
        texts.all(|text| text.trim_end().is_empty())
    }

    /// Whether nothing is on it.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Its text alone.
    pub fn text(&self) -> String {
        self.pieces.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// The same with another look underneath: what it leaves open, `base` decides.
    pub fn over(mut self, base: TextStyle) -> StyledLine {
        for (paint, _) in &mut self.pieces {
            paint.color = paint.color.or(base.color);
            paint.bold |= base.bold;
            paint.dim |= base.dim;
            paint.italic |= base.italic;
        }
        self
    }

    /// Writes it with its newline. Trailing blanks are not written.
    pub fn write(&self, out: &mut dyn io::Write, color: bool) -> io::Result<()> {
        self.put(out, color)?;
        out.write_all(b"\n")
    }

    /// Writes it without a newline. Trailing blanks are not written.
    pub fn put(&self, out: &mut dyn io::Write, color: bool) -> io::Result<()> {
        let is_blank = |(_, piece): &&(TextStyle, String)| piece.trim_end().is_empty();
        let blank = self.pieces.iter().rev().take_while(is_blank).count();
        let (pieces, blank) = self.pieces.split_at(self.pieces.len() - blank);
        let last = pieces.len().saturating_sub(1);
        for (at, (paint, piece)) in pieces.iter().enumerate() {
            let piece = match at == last {
                true => piece.trim_end(),
                false => piece.as_str(),
            };
            paint.write(out, piece, color)?;
        }
        // The looks of what is not written are, as they always were.
        for (paint, _) in blank {
            paint.write(out, "", color)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(line: &StyledLine, color: bool) -> String {
        let mut out = Vec::new();
        line.write(&mut out, color).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_our_own_colours_are_written() {
        let line =
            StyledLine::of(TextStyle::ERROR, "a\u{1b}[2Jb\nc").with(TextStyle::PLAIN, " d  ");
        assert_eq!(written(&line, false), "ab c d\n");
        assert_eq!(written(&line, true), "\u{1b}[31mab c\u{1b}[0m d\n");
        assert_eq!(
            written(&StyledLine::of(TextStyle::PROMPT, "x"), true),
            "\u{1b}[1;36mx\u{1b}[0m\n"
        );
    }

    #[test]
    fn a_look_underneath_fills_what_is_open() {
        let line = StyledLine::of(TextStyle::CODE, "x").over(TextStyle::THINKING);
        assert_eq!(written(&line, true), "\u{1b}[2;3;36mx\u{1b}[0m\n");
    }
}
