//! Lines that are too long to be held, looked into through a window.
//!
//! Nothing decodes such a line. What looks for a text or for a secret takes it as plain text,
//! some megabytes at a time, cut where one value of JSON ends and the next begins.

use std::fs::File;
use std::io::{self, Write};

use memchr::{memrchr, memrchr2};
use unspool_model::edit::redact::Redactor;

use crate::line_buffers::{LineBuffer, LineBufferReader, NextLines, OversizedLine};
use crate::open;

/// How much of a line is looked at at once.
const WINDOW: usize = 4 << 20;

/// How far before its end a window may be cut.
const CUT: usize = 64 << 10;

/// Hands out the bytes of a line, one window behind the other, until `each` wants no more.
pub(crate) fn windows(
    file: &File,
    line: &OversizedLine,
    mut each: impl FnMut(&[u8]) -> io::Result<bool>,
) -> io::Result<()> {
    let end = line.offset + line.length;
    let mut at = line.offset;
    let mut window = vec![0; WINDOW];
    while at < end {
        let left = usize::try_from(end - at).unwrap_or(usize::MAX);
        let read = open::read_at(file, &mut window[..left.min(WINDOW)], at)?;
        if read == 0 {
            return Err(open::became_shorter());
        }
        let cut = if read < left {
            cut(&window[..read])
        } else {
            read
        };
        if !each(&window[..cut])? {
            return Ok(());
        }
        at += cut as u64;
    }
    Ok(())
}

/// Where to cut, so that no word is cut in two: behind a value, else behind a quote or a space.
fn cut(window: &[u8]) -> usize {
    let from = window.len().saturating_sub(CUT);
    let last = &window[from..];
    let mut end = last.len();
    while let Some(comma) = memrchr(b',', &last[..end]) {
        if comma > 0 && matches!(last[comma - 1], b'"' | b'}' | b']') {
            return from + comma + 1;
        }
        end = comma;
    }
    memrchr2(b'"', b' ', last).map_or(window.len(), |at| from + at + 1)
}

/// What was replaced in a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplacedWindows {
    /// How many windows were changed.
    pub windows: u64,
    /// How many bytes were written.
    pub bytes: u64,
}

/// Writes a line, without its newline, as `replace` makes it: gets one window after the other,
/// and gives what stands there instead.
pub(crate) fn rewrite(
    file: &File,
    line: &OversizedLine,
    mut replace: impl FnMut(&[u8]) -> Option<Vec<u8>>,
    out: &mut dyn Write,
) -> io::Result<ReplacedWindows> {
    let mut replaced = ReplacedWindows::default();
    windows(file, line, |window| {
        // Zeros hold nothing, and a file may have gigabytes of them.
        let new = is_anything(window).then(|| replace(window)).flatten();
        replaced.windows += u64::from(new.is_some());
        let now = new.as_deref().unwrap_or(window);
        replaced.bytes += now.len() as u64;
        out.write_all(now).map(|()| true)
    })?;
    Ok(replaced)
}

/// Whether a window holds anything but zeros.
fn is_anything(window: &[u8]) -> bool {
    const ZEROS: [u8; 4096] = [0; 4096];
    let mut pages = window.chunks(ZEROS.len());
    pages.any(|page| *page != ZEROS[..page.len()])
}

/// Hands out the windows of a line that hold anything, each with its place in the line.
pub(crate) fn filled_windows(
    file: &File,
    line: &OversizedLine,
    mut each: impl FnMut(u64, &[u8]) -> io::Result<bool>,
) -> io::Result<()> {
    let end = line.offset + line.length;
    let mut at = line.offset;
    let mut goes_on = true;
    while at < end && goes_on {
        at = open::behind_hole(file, at).min(end);
        let rest = OversizedLine {
            offset: at,
            length: (end - at).min(WINDOW as u64),
            ended: false,
        };
        let whole = at + rest.length == end;
        windows(file, &rest, |window| {
            let cut = if whole { window.len() } else { cut(window) };
            if is_anything(&window[..cut]) {
                goes_on = each(at - line.offset, &window[..cut])?;
            }
            at += cut as u64;
            Ok(false)
        })?;
    }
    Ok(())
}

/// Hands out the lines of a file, each with its newline if it has one, but for those that are
/// too long to be held.
pub fn each_line(file: &File, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let size = file.metadata()?.len();
    let mut pieces = LineBufferReader::new(file, 0, size, 1 << 18);
    let mut piece = LineBuffer::default();
    while let Some(next) = pieces.next(&mut piece)? {
        if let NextLines::Lines(_) = next {
            let lines = piece.bytes().split_inclusive(|byte| *byte == b'\n');
            lines.for_each(&mut each);
        }
    }
    Ok(())
}

/// Writes a file of lines without its secrets; all other bytes stay as they are.
pub fn mask_lines(file: &File, redactor: &Redactor, out: &mut dyn Write) -> io::Result<()> {
    let size = file.metadata()?.len();
    let mut pieces = LineBufferReader::new(file, 0, size, 1 << 18);
    let mut piece = LineBuffer::default();
    while let Some(next) = pieces.next(&mut piece)? {
        match next {
            NextLines::Lines(_) => {
                for line in piece.bytes().split_inclusive(|byte| *byte == b'\n') {
                    let masked = redactor.line(line);
                    out.write_all(masked.as_ref().map_or(line, |masked| &masked.bytes))?;
                }
            }
            NextLines::Passed(line) => {
                let mask = |window: &[u8]| redactor.file(window).map(|masked| masked.bytes);
                rewrite(file, &line, mask, out)?;
                if line.ended {
                    out.write_all(b"\n")?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8]) -> (Vec<Vec<u8>>, Vec<u8>) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        let line = OversizedLine {
            offset: 0,
            length: text.len() as u64,
            ended: false,
        };
        let mut windows_of = Vec::new();
        windows(&file, &line, |window| {
            windows_of.push(window.to_vec());
            Ok(true)
        })
        .unwrap();
        let whole = windows_of.concat();
        (windows_of, whole)
    }

    #[test]
    fn windows_of_zeros_are_left_out_and_all_else_is_handed_out_once() {
        let mut text = vec![0; 3 * WINDOW];
        text[WINDOW + 5..WINDOW + 9].copy_from_slice(b"here");
        text.extend_from_slice(b"and there");
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&text).unwrap();
        let line = OversizedLine {
            offset: 0,
            length: text.len() as u64,
            ended: false,
        };
        let mut found = Vec::new();
        filled_windows(&file, &line, |start, window| {
            let words = window.split(|byte| *byte == 0);
            let words = words.filter(|word| !word.is_empty());
            found.extend(words.map(|word| String::from_utf8_lossy(word).into_owned()));
            let start = usize::try_from(start).unwrap();
            assert_eq!(text[start..start + window.len()], *window);
            Ok(true)
        })
        .unwrap();
        assert_eq!(found, ["here", "and there"]);
    }

    #[test]
    fn windows_hold_every_byte_once_and_cut_no_word_in_two() {
        let words = "{\"k\":\"some words here\"},".repeat((WINDOW / 24) * 2 + 7);
        let (windows, whole) = all(words.as_bytes());
        assert_eq!(whole, words.as_bytes());
        assert_eq!(windows.len(), 3);
        assert!(windows.iter().all(|window| window.ends_with(b"},")));
        let (windows, whole) = all(&vec![b'x'; WINDOW + 1]);
        assert_eq!((windows.len(), whole.len()), (2, WINDOW + 1));
    }
}
