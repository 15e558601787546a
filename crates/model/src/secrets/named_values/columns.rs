//! Values below their name: in the column of a table that a database prints, or of a list with
//! commas.

use std::ops::Range;

use super::NamedPlace;
use super::secret_names::NameClass;
use super::value_end::NamedValue;

/// How long a line of a table is at most.
const LONGEST: usize = 400;

/// How many rows are looked at.
const ROWS: usize = 50;

/// The values in the column that a name heads.
pub(super) fn below(place: &NamedPlace<'_>) -> impl Iterator<Item = Range<usize>> {
    let found = column(place).unwrap_or_default();
    found.into_iter()
}

fn column(place: &NamedPlace<'_>) -> Option<Vec<Range<usize>>> {
    if matches!(place.class, NameClass::Weak | NameClass::Pass) {
        return None;
    }
    let bytes = place.text.as_bytes();
    let from = place.name.start.saturating_sub(LONGEST);
    let start =
        from + memchr::memrchr(b'\n', &bytes[from..place.name.start]).map_or(0, |at| at + 1);
    let until = bytes.len().min(place.name.end + LONGEST);
    let end = place.name.end + memchr::memchr(b'\n', &bytes[place.name.end..until])?;
    let head = &bytes[start..end];
    let mut rows = end + 1;
    let next = line(bytes, rows);
    let is_ruled = is_rule(&bytes[next.clone()]);
    let mark = match is_ruled {
        true if head.contains(&b'|') => b'|',
        true => b'\n',
        false if is_list(head) => b',',
        false => return None,
    };
    let count = |line: &[u8]| line.iter().filter(|byte| **byte == mark).count();
    let (cell, cells) = (count(&bytes[start..place.name.start]), count(head));
    if is_ruled {
        rows = next.end + 1;
    }
    let mut found = Vec::new();
    for _ in 0..ROWS {
        let row = line(bytes, rows);
        if row.is_empty() || count(&bytes[row.clone()]) != cells {
            break;
        }
        found.extend(cell_of(place, row.clone(), mark, cell));
        rows = row.end + 1;
        if mark == b'\n' {
            break;
        }
    }
    Some(found)
}

/// The line that begins here, without its end; empty behind the last one.
fn line(bytes: &[u8], at: usize) -> Range<usize> {
    let rest = bytes.get(at..).unwrap_or_default();
    let rest = &rest[..rest.len().min(LONGEST)];
    let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    at..at + end
}

/// A line between the head of a table and its rows.
fn is_rule(line: &[u8]) -> bool {
    let dashes = line.iter().filter(|byte| matches!(byte, b'-' | b'='));
    line.iter().all(|byte| b"-+|:= \r".contains(byte)) && dashes.count() >= 3
}

/// The head of a list with commas: names of one word.
fn is_list(head: &[u8]) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-\"\r".contains(byte);
    let mut names = head.split(|byte| *byte == b',');
    head.contains(&b',') && names.all(|name| !name.is_empty() && name.iter().all(is_name))
}

/// The value in a cell, if it is a secret.
fn cell_of(
    place: &NamedPlace<'_>,
    row: Range<usize>,
    mark: u8,
    cell: usize,
) -> Option<Range<usize>> {
    let bytes = &place.text.as_bytes()[row.clone()];
    let mut cells = bytes.split(|byte| *byte == mark);
    let before: usize = cells.by_ref().take(cell).map(|cell| cell.len() + 1).sum();
    let text = cells.next()?;
    let is_frame = |byte: &u8| b" \t\r\"'`".contains(byte);
    let first = text.iter().position(|byte| !is_frame(byte))?;
    let last = text.iter().rposition(|byte| !is_frame(byte))?;
    let start = row.start + before + first;
    let value = NamedValue {
        range: super::super::whole(place.text, start..start + last + 1 - first),
        is_quoted: true,
        is_line_end: false,
    };
    if !place.is_told(super::NameJoiner::Cell, &value) {
        return None;
    }
    place.judged_as(value, true, false, place.class == NameClass::Key)
}
