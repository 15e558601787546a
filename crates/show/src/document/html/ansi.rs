//! What programs printed, with its colours.
//!
//! Only colours and weights are understood; every other sequence is dropped as
//! [`crate::clean`] does. The sixteen colours are classes of our style, so they suit light and
//! dark; finer ones become the nearest of these.

use std::io;

use super::escape::HtmlWriter;
use crate::clean;

/// Writes what a program printed.
pub(crate) fn write(html: &mut HtmlWriter<'_>, text: &str) -> io::Result<()> {
    if !text.contains('\u{1b}') && !text.contains('\u{9b}') {
        return html.text(text);
    }
    let mut look = AnsiStyle::default();
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        piece(html, look, &rest[..at])?;
        let body = &rest[at + 2..];
        let length = body
            .bytes()
            .take_while(|byte| (0x30..0x40).contains(byte))
            .count();
        if body[length..].starts_with('m') {
            look.take(&body[..length]);
            rest = &body[length + 1..];
        } else {
            // Not about colours: dropped, with everything that belongs to it.
            let ends = body[length..]
                .bytes()
                .take_while(|byte| (0x20..0x30).contains(byte))
                .count();
            let end = length + ends;
            let last = body.as_bytes().get(end);
            rest = &body[end + usize::from(last.is_some_and(|byte| (0x40..0x7f).contains(byte)))..];
        }
    }
    piece(html, look, rest)
}

fn piece(html: &mut HtmlWriter<'_>, look: AnsiStyle, text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let text = clean::text(text);
    if look == AnsiStyle::default() {
        return html.text(&text);
    }
    html.raw("<span class=\"")?;
    for class in look.classes().into_iter().flatten() {
        html.raw(class)?;
        html.raw(" ")?;
    }
    html.raw("\">")?;
    html.text(&text)?;
    html.raw("</span>")
}

/// How text looks from here on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct AnsiStyle {
    front: Option<u8>,
    back: Option<u8>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
    strike: bool,
    inverse: bool,
}

const FRONT: [&str; 16] = [
    "f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11", "f12", "f13", "f14",
    "f15",
];
const BACK: [&str; 16] = [
    "b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9", "b10", "b11", "b12", "b13", "b14",
    "b15",
];

impl AnsiStyle {
    fn classes(self) -> [Option<&'static str>; 8] {
        let on = |set: bool, class: &'static str| set.then_some(class);
        [
            self.front.map(|color| FRONT[usize::from(color & 15)]),
            self.back.map(|color| BACK[usize::from(color & 15)]),
            on(self.bold, "bo"),
            on(self.dim, "di"),
            on(self.italic, "it"),
            on(self.underline, "un"),
            on(self.strike, "st"),
            on(self.inverse, "in"),
        ]
    }

    /// Takes in the parameters of a sequence.
    fn take(&mut self, parameters: &str) {
        let mut codes = parameters
            .split([';', ':'])
            .map(|code| code.parse::<u16>().unwrap_or(0));
        while let Some(code) = codes.next() {
            match code {
                0 => *self = AnsiStyle::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                3 => self.italic = true,
                4 => self.underline = true,
                7 => self.inverse = true,
                9 => self.strike = true,
                22 => (self.bold, self.dim) = (false, false),
                23 => self.italic = false,
                24 => self.underline = false,
                27 => self.inverse = false,
                29 => self.strike = false,
                30..=37 => self.front = Some((code - 30) as u8),
                38 => self.front = finer(&mut codes).or(self.front),
                39 => self.front = None,
                40..=47 => self.back = Some((code - 40) as u8),
                48 => self.back = finer(&mut codes).or(self.back),
                49 => self.back = None,
                90..=97 => self.front = Some((code - 90 + 8) as u8),
                100..=107 => self.back = Some((code - 100 + 8) as u8),
                _ => {}
            }
        }
    }
}

/// The nearest of the sixteen to one of 256, or to one of all colours.
fn finer(codes: &mut impl Iterator<Item = u16>) -> Option<u8> {
    match codes.next()? {
        5 => Some(of_256(codes.next()?.min(255) as u8)),
        2 => {
            let (red, green, blue) = (codes.next()?, codes.next()?, codes.next()?);
            Some(nearest(red, green, blue))
        }
        _ => None,
    }
}

fn of_256(color: u8) -> u8 {
    match color {
        0..=15 => color,
        16..=231 => {
            let color = u16::from(color - 16);
            let level = |part: u16| if part == 0 { 0 } else { 55 + 40 * part };
            nearest(level(color / 36), level(color / 6 % 6), level(color % 6))
        }
        232.. => {
            let grey = 8 + 10 * u16::from(color - 232);
            nearest(grey, grey, grey)
        }
    }
}

fn nearest(red: u16, green: u16, blue: u16) -> u8 {
    let (red, green, blue) = (red.min(255), green.min(255), blue.min(255));
    let most = red.max(green).max(blue);
    let least = red.min(green).min(blue);
    if most - least < 40 {
        return match most {
            0..60 => 0,
            60..140 => 8,
            140..220 => 7,
            220.. => 15,
        };
    }
    let half = (most + least) / 2;
    let bit = |part: u16, bit: u8| if part > half { bit } else { 0 };
    let color = bit(red, 1) | bit(green, 2) | bit(blue, 4);
    if most > 200 && least > 80 {
        color + 8
    } else {
        color
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(text: &str) -> String {
        let mut page = Vec::new();
        let mut html = HtmlWriter::new(&mut page);
        write(&mut html, text).unwrap();
        html.flush().unwrap();
        String::from_utf8(page).unwrap()
    }

    #[test]
    fn colours_become_classes_and_end_where_they_end() {
        assert_eq!(
            html("\u{1b}[1;32mok\u{1b}[0m done"),
            "<span class=\"f2 bo \">ok</span> done"
        );
        assert_eq!(
            html("\u{1b}[38;5;196mx\u{1b}[39my"),
            "<span class=\"f1 \">x</span>y"
        );
        assert_eq!(
            html("\u{1b}[38;2;255;255;255mx"),
            "<span class=\"f15 \">x</span>"
        );
        assert_eq!(html("\u{1b}[48;5;1;4mx"), "<span class=\"b1 un \">x</span>");
        assert_eq!(html("\u{1b}[mx\u{1b}[999mz"), "xz");
    }

    #[test]
    fn other_sequences_are_dropped_and_tags_stay_text() {
        assert_eq!(html("a\u{1b}[2Kb\u{1b}]0;title\u{7}c\u{1b}[?25ld"), "abcd");
        assert_eq!(
            html("\u{1b}[31m<b>\u{1b}[0m"),
            "<span class=\"f1 \">&lt;b&gt;</span>"
        );
        assert_eq!(html("\u{1b}["), "");
        assert_eq!(html("\u{1b}[31"), "");
        assert_eq!(html("\u{1b}[31\"><script>m"), "&gt;&lt;script&gt;m");
    }
}
