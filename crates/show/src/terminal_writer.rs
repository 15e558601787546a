//! A writer in front of a terminal: nothing that is written through it can control the terminal.
//!
//! Text for people was cleaned before (see [`crate::clean`]). JSON rows, raw lines and restored
//! files were not: programs get them byte for byte. When a terminal takes the place of the
//! program, every character that a terminal obeys or that hides text is written as JSON escapes
//! it, `\u009b`. JSON stays valid and means the same; in other text the escape can be seen.

use std::io::{self, Write};

use crate::clean;

/// What a writer lets through unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowedOutput {
    /// Every byte: nobody looks, a program reads.
    Bytes,
    /// Text, without any escape sequence.
    Text,
    /// Text, and the sequences that [`crate::style::TextStyle`] writes.
    ColoredText,
}

/// Writes to a terminal, or to whatever stands in its place.
#[derive(Debug)]
pub struct TerminalWriter<W: Write> {
    inner: W,
    passes: AllowedOutput,
    /// The start of a character or a sequence whose rest was not written yet.
    held: Vec<u8>,
    /// The character before, which decides about joiners.
    before: char,
}

impl<W: Write> TerminalWriter<W> {
    /// Writes to `inner` what `passes` lets through, and the rest escaped.
    pub fn new(inner: W, passes: AllowedOutput) -> TerminalWriter<W> {
        TerminalWriter {
            inner,
            passes,
            held: Vec::new(),
            before: '\n',
        }
    }

    /// Writes what was held back with what follows it; nothing more follows at the end.
    fn pass(&mut self, bytes: &[u8], end: bool) -> io::Result<()> {
        if self.held.is_empty()
            && let Ok(text) = std::str::from_utf8(bytes)
            && clean::is_clean(text)
        {
            self.before = text.chars().next_back().unwrap_or(self.before);
            return self.inner.write_all(bytes);
        }
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        let (text, unfinished) = decoded(&all, end);
        let mut escaping = ControlEscaper {
            text: &text,
            at: 0,
            before: self.before,
            colors: self.passes == AllowedOutput::ColoredText,
            end,
            out: String::with_capacity(text.len() + 64),
        };
        escaping.run();
        self.before = escaping.before;
        self.held.extend_from_slice(&text.as_bytes()[escaping.at..]);
        self.held.extend_from_slice(unfinished);
        self.inner.write_all(escaping.out.as_bytes())
    }
}

impl<W: Write> Write for TerminalWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.passes {
            AllowedOutput::Bytes => self.inner.write(bytes),
            AllowedOutput::Text | AllowedOutput::ColoredText => {
                self.pass(bytes, false)?;
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<W: Write> Drop for TerminalWriter<W> {
    fn drop(&mut self) {
        if !self.held.is_empty() {
            // Whoever wants to know whether it was written has asked before.
            let _ = self.pass(&[], true);
            let _ = self.inner.flush();
        }
    }
}

/// The text with everything a terminal might obey escaped as JSON does it.
pub fn escaped(text: &str) -> String {
    let mut escaping = ControlEscaper {
        text,
        at: 0,
        before: '\n',
        colors: false,
        end: true,
        out: String::with_capacity(text.len()),
    };
    escaping.run();
    escaping.out
}

/// Text of bytes, and the start of a character at their end whose rest is still to come.
fn decoded(bytes: &[u8], end: bool) -> (String, &[u8]) {
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;
    loop {
        match std::str::from_utf8(rest) {
            Ok(valid) => {
                text.push_str(valid);
                return (text, &[]);
            }
            Err(error) => {
                let (valid, behind) = rest.split_at(error.valid_up_to());
                text.push_str(&String::from_utf8_lossy(valid));
                match error.error_len() {
                    None if !end => return (text, behind),
                    None => rest = &[],
                    Some(length) => rest = &behind[length..],
                }
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }
}

/// Goes through a text, as far as can be decided yet.
struct ControlEscaper<'a> {
    text: &'a str,
    at: usize,
    before: char,
    colors: bool,
    end: bool,
    out: String,
}

/// What becomes of the next characters.
enum EscapeStep {
    /// So many bytes are written as they are.
    Keep(usize),
    Escape,
    /// What follows decides.
    Wait,
}

impl ControlEscaper<'_> {
    fn run(&mut self) {
        while let Some(c) = self.text[self.at..].chars().next() {
            match self.next(c) {
                EscapeStep::Keep(length) => {
                    self.out.push_str(&self.text[self.at..self.at + length]);
                    self.at += length;
                    if c != '\u{1b}' {
                        self.before = c;
                    }
                }
                EscapeStep::Escape => {
                    let mut units = [0; 2];
                    for unit in c.encode_utf16(&mut units) {
                        self.out.push_str(&format!("\\u{unit:04x}"));
                    }
                    self.at += c.len_utf8();
                    self.before = '0';
                }
                EscapeStep::Wait => return,
            }
        }
    }

    fn next(&self, c: char) -> EscapeStep {
        let behind = &self.text[self.at + c.len_utf8()..];
        let keep = EscapeStep::Keep(c.len_utf8());
        match c {
            '\n' | '\t' => keep,
            // Alone it would let the rest of the line write over its start.
            '\r' if behind.starts_with('\n') => keep,
            '\r' if behind.is_empty() && !self.end => EscapeStep::Wait,
            '\u{1b}' if self.colors => self.color(behind),
            '\u{200c}' | '\u{200d}' if behind.is_empty() && !self.end => EscapeStep::Wait,
            '\u{200c}' | '\u{200d}' => {
                let mut before = [0; 4];
                match clean::joins(self.before.encode_utf8(&mut before), behind) {
                    true => keep,
                    false => EscapeStep::Escape,
                }
            }
            '\u{e0100}'..='\u{e01ef}' if !self.before.is_ascii() => keep,
            _ if c.is_control() || clean::is_deceptive(c) => EscapeStep::Escape,
            _ => keep,
        }
    }

    /// Whether a sequence of ours follows the escape character.
    fn color(&self, behind: &str) -> EscapeStep {
        let Some(codes) = behind.strip_prefix('[') else {
            return match behind.is_empty() && !self.end {
                true => EscapeStep::Wait,
                false => EscapeStep::Escape,
            };
        };
        let length = codes
            .bytes()
            .take_while(|byte| byte.is_ascii_digit() || *byte == b';')
            .count();
        match codes.as_bytes().get(length) {
            Some(b'm') if codes[..length].split(';').all(is_own_color) => {
                EscapeStep::Keep(length + 3)
            }
            None if length < LONGEST_COLOR && !self.end => EscapeStep::Wait,
            _ => EscapeStep::Escape,
        }
    }
}

/// No sequence of ours has more digits and semicolons.
const LONGEST_COLOR: usize = 24;

/// Whether `Paint` writes this code: weights, the terminal's own sixteen colours, and plain.
/// Hidden and blinking text are not among them.
fn is_own_color(code: &str) -> bool {
    matches!(code, "" | "0" | "1" | "2" | "3" | "4" | "9")
        || (code.len() == 2
            && code.starts_with(['3', '9'])
            && code.ends_with(|digit: char| matches!(digit, '0'..='7')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(passes: AllowedOutput, pieces: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = TerminalWriter::new(&mut out, passes);
        for piece in pieces {
            writer.write_all(piece).unwrap();
        }
        drop(writer);
        out
    }

    fn text(passes: AllowedOutput, bytes: &[u8]) -> String {
        String::from_utf8(written(passes, &[bytes])).unwrap()
    }

    fn is_obeyed(c: char) -> bool {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || (clean::is_deceptive(c) && !matches!(c, '\u{200c}' | '\u{200d}'))
                && !matches!(c, '\u{e0100}'..='\u{e01ef}')
    }

    #[test]
    fn a_program_gets_every_byte() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(written(AllowedOutput::Bytes, &[&all]), all);
    }

    #[test]
    fn a_terminal_gets_escapes() {
        let plain = |dirty: &str| text(AllowedOutput::Text, dirty.as_bytes());
        assert_eq!(plain("a\u{9b}2Jb\u{7f}"), "a\\u009b2Jb\\u007f");
        assert_eq!(plain("\u{1b}]0;x\u{7}"), "\\u001b]0;x\\u0007");
        assert_eq!(plain("\u{202e}\u{2066}"), "\\u202e\\u2066");
        assert_eq!(plain("x\u{e0041}"), "x\\udb40\\udc41");
        assert_eq!(plain("a\rb\r\nc\r"), "a\\u000db\r\nc\\u000d");
        assert_eq!(
            text(AllowedOutput::Text, b"a\xffb\x9bc\xe2\x82"),
            "a\u{fffd}b\u{fffd}c\u{fffd}"
        );
    }

    #[test]
    fn json_stays_json_and_means_the_same() {
        let dirty: String = ('\0'..='\u{ffff}')
            .filter(|c| is_obeyed(*c))
            .chain(['\u{e0041}', '\n', 'x', '\u{200d}'])
            .collect();
        let json = serde_json::to_string(&dirty).unwrap();
        let shown = text(AllowedOutput::Text, json.as_bytes());
        assert!(!shown.contains(is_obeyed), "{shown:?}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), dirty);
    }

    #[test]
    fn only_colours_of_ours_pass_where_colours_may() {
        let colored = |dirty: &str| text(AllowedOutput::ColoredText, dirty.as_bytes());
        for own in [
            "\u{1b}[1;36mx\u{1b}[0m",
            "\u{1b}[31m",
            "\u{1b}[m",
            "\u{1b}[97m",
        ] {
            assert_eq!(colored(own), own);
            assert!(!text(AllowedOutput::Text, own.as_bytes()).contains('\u{1b}'));
        }
        for foreign in [
            "\u{1b}[8m",
            "\u{1b}[5;31m",
            "\u{1b}[38;5;1m",
            "\u{1b}[2J",
            "\u{1b}[1",
            "\u{1b}",
            "\u{1b}c",
            "\u{1b}[?1m",
        ] {
            assert!(!colored(foreign).contains('\u{1b}'), "{foreign:?}");
        }
    }

    #[test]
    fn what_people_write_stays() {
        let plain = "naïve 日本語 👩‍👩‍👧 ⚠️ नमस्ते می‌خواهم e\u{301}\n\tx";
        assert_eq!(text(AllowedOutput::Text, plain.as_bytes()), plain);
    }

    proptest! {
        #[test]
        fn however_it_is_cut_the_same_is_written(
            dirty in "(\\PC|\\pC|\u{1b}\\[1m|\u{1b}\\[[0-9;]*|\r\n|\r|👩\u{200d}👩|\u{9b}|[ -~]){0,30}",
            cuts in proptest::collection::vec(0usize..200, 0..8),
        ) {
            for passes in [AllowedOutput::Text, AllowedOutput::ColoredText] {
                let bytes = dirty.as_bytes();
                let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.min(&bytes.len()).to_owned()).collect();
                cuts.extend([0, bytes.len()]);
                cuts.sort_unstable();
                let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
                let cut = written(passes, &pieces);
                prop_assert_eq!(&cut, &written(passes, &[bytes]));
                if passes == AllowedOutput::Text {
                    let shown = String::from_utf8(cut).unwrap().replace("\r\n", "\n");
                    prop_assert!(!shown.contains(is_obeyed), "{:?}", shown);
                }
            }
        }

        #[test]
        fn any_bytes_come_out_harmless(dirty in proptest::collection::vec(any::<u8>(), 0..60)) {
            let shown = text(AllowedOutput::Text, &dirty).replace("\r\n", "\n");
            prop_assert!(!shown.contains(is_obeyed), "{:?}", shown);
        }

        #[test]
        fn what_was_cleaned_is_not_changed(dirty in "(\\PC|\\pC|👩\u{200d}👩|[ -~]){0,30}") {
            let clean = clean::text(&dirty);
            prop_assert_eq!(text(AllowedOutput::Text, clean.as_bytes()), clean.as_ref());
        }
    }
}
