//! Changes to files as coloured lines with numbers.
//!
//! The client's own patch is shown where there is one; otherwise old and new text are
//! compared here, and line numbers are left out because nobody knows them.

use similar::{ChangeTag, TextDiff};
use unspool_model::view::outcome::{Change, Hunk, Sign};

use crate::amount;
use crate::layout::{cut, untabbed};
use crate::style::{Line, Paint};

/// Unchanged lines kept around a change.
const CONTEXT: usize = 2;

/// How many lines were added and removed.
pub fn counts(change: &Change) -> (u64, u64) {
    let (mut added, mut removed) = (0, 0);
    for row in rows(change) {
        match row {
            Row::Line {
                sign: Sign::Added, ..
            } => added += 1,
            Row::Line {
                sign: Sign::Removed,
                ..
            } => removed += 1,
            Row::Line { .. } | Row::Gap => {}
        }
    }
    (added, removed)
}

/// The change in lines of at most `width` columns; at most `limit` lines, the rest counted.
pub fn lines(change: &Change, width: usize, limit: usize) -> Vec<Line> {
    let rows = match change {
        // All of a new file is new: no signs needed to say so.
        Change::Written(text) => return written(text, width, limit),
        Change::Hunks(_) | Change::Replaced(_) => rows(change),
    };
    let last = rows.iter().filter_map(Row::number).max();
    let digits = last.map_or(0, |last| last.to_string().len());
    let shown = if rows.len() > limit + 1 {
        limit
    } else {
        rows.len()
    };
    let mut out: Vec<Line> = rows[..shown]
        .iter()
        .map(|row| row.line(digits, width))
        .collect();
    out.extend(more(rows.len() - shown));
    out
}

/// `… 14 more lines`.
pub fn more(count: usize) -> Option<Line> {
    let text = format!("… {}", amount::count(count as u64, "more line"));
    (count > 0).then(|| Line::of(Paint::DIM, &text))
}

fn written(text: &str, width: usize, limit: usize) -> Vec<Line> {
    let all: Vec<&str> = text.lines().collect();
    let shown = if all.len() > limit + 1 {
        limit
    } else {
        all.len()
    };
    let digits = all.len().to_string().len();
    let line = |(at, text): (usize, &&str)| {
        let mut line = Line::of(Paint::DIM, &format!("{:>digits$} ", at + 1));
        line.push(Paint::ADDED, "+ ");
        line.push(Paint::PLAIN, &untabbed(&crate::clean::text(text)));
        cut(&line, width)
    };
    let mut out: Vec<Line> = all[..shown].iter().enumerate().map(line).collect();
    out.extend(more(all.len() - shown));
    out
}

/// A line of a change, or lines left out between two.
pub(crate) enum Row {
    Line {
        sign: Sign,
        number: Option<u64>,
        text: String,
    },
    Gap,
}

impl Row {
    fn number(&self) -> Option<u64> {
        match self {
            Row::Line { number, .. } => *number,
            Row::Gap => None,
        }
    }

    fn line(&self, digits: usize, width: usize) -> Line {
        let Row::Line { sign, number, text } = self else {
            return Line::of(Paint::DIM, "⋯");
        };
        let (mark, paint) = match sign {
            Sign::Same => (" ", Paint::DIM),
            Sign::Removed => ("-", Paint::REMOVED),
            Sign::Added => ("+", Paint::ADDED),
        };
        let mut line = Line::new();
        if digits > 0 {
            let number = number.map(|number| number.to_string()).unwrap_or_default();
            line.push(Paint::DIM, &format!("{number:>digits$} "));
        }
        line.push(paint, mark);
        line.push(paint, " ");
        line.push(paint, &untabbed(&crate::clean::text(text)));
        cut(&line, width)
    }
}

/// A piece of a change, with its place in the file where that is known.
pub(crate) struct Piece {
    pub(crate) old_start: Option<u64>,
    pub(crate) new_start: Option<u64>,
    pub(crate) lines: Vec<(Sign, String)>,
}

/// The pieces of a change: the client's own, else what comparing gives.
pub(crate) fn hunks(change: &Change) -> Vec<Piece> {
    if let Change::Hunks(hunks) = change {
        let piece = |hunk: &Hunk| Piece {
            old_start: Some(hunk.old_start),
            new_start: Some(hunk.new_start),
            lines: hunk.lines.clone(),
        };
        return hunks.iter().map(piece).collect();
    }
    let mut pieces: Vec<Piece> = Vec::new();
    let mut open = false;
    for row in rows(change) {
        let Row::Line { sign, text, .. } = row else {
            open = false;
            continue;
        };
        if !std::mem::replace(&mut open, true) {
            pieces.push(Piece {
                old_start: None,
                new_start: None,
                lines: Vec::new(),
            });
        }
        if let Some(piece) = pieces.last_mut() {
            piece.lines.push((sign, text));
        }
    }
    pieces
}

/// The lines of a change, with a little of what stands around them.
pub(crate) fn rows(change: &Change) -> Vec<Row> {
    let hunks: Vec<Vec<Row>> = match change {
        Change::Hunks(hunks) => hunks.iter().map(|hunk| trimmed(numbered(hunk))).collect(),
        Change::Replaced(pairs) => pairs
            .iter()
            .map(|(old, new)| trimmed(compared(old, new)))
            .collect(),
        Change::Written(text) => vec![compared("", text)],
    };
    let mut out = Vec::new();
    for hunk in hunks {
        if !out.is_empty() {
            out.push(Row::Gap);
        }
        out.extend(hunk);
    }
    out
}

/// Old lines carry their old number, all others the new one.
fn numbered(hunk: &Hunk) -> Vec<Row> {
    let (mut old, mut new) = (hunk.old_start, hunk.new_start);
    let row = |(sign, text): &(Sign, String)| {
        let number = if *sign == Sign::Removed { old } else { new };
        old += u64::from(*sign != Sign::Added);
        new += u64::from(*sign != Sign::Removed);
        Row::Line {
            sign: *sign,
            number: Some(number),
            text: text.clone(),
        }
    };
    hunk.lines.iter().map(row).collect()
}

fn compared(old: &str, new: &str) -> Vec<Row> {
    let diff = TextDiff::from_lines(old, new);
    let row = |change: similar::Change<&str>| Row::Line {
        sign: match change.tag() {
            ChangeTag::Equal => Sign::Same,
            ChangeTag::Delete => Sign::Removed,
            ChangeTag::Insert => Sign::Added,
        },
        number: None,
        text: change.value().trim_end_matches(['\n', '\r']).to_owned(),
    };
    diff.iter_all_changes().map(row).collect()
}

/// Unchanged lines far from any change become a gap.
fn trimmed(rows: Vec<Row>) -> Vec<Row> {
    let changed = |row: &Row| {
        matches!(
            row,
            Row::Line {
                sign: Sign::Added | Sign::Removed,
                ..
            }
        )
    };
    let changes: Vec<usize> = (0..rows.len()).filter(|&at| changed(&rows[at])).collect();
    let near = |at: usize| {
        let next = changes.partition_point(|&change| change < at);
        let ahead = changes
            .get(next)
            .is_some_and(|&change| change - at <= CONTEXT);
        let back = next
            .checked_sub(1)
            .is_some_and(|last| at - changes[last] <= CONTEXT);
        ahead || back
    };
    let (first, last) = (changes.first().copied(), changes.last().copied());
    let mut out: Vec<Row> = Vec::new();
    for (at, row) in rows.into_iter().enumerate() {
        let inside = first.is_some_and(|first| at > first) && last.is_some_and(|last| at < last);
        if near(at) {
            out.push(row);
        } else if inside && !matches!(out.last(), Some(Row::Gap)) {
            out.push(Row::Gap);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(change: &Change, limit: usize) -> Vec<String> {
        lines(change, 40, limit).iter().map(Line::text).collect()
    }

    fn hunk(lines: &[&str]) -> Change {
        let line = |line: &&str| match line.split_at(1) {
            ("+", text) => (Sign::Added, text.to_owned()),
            ("-", text) => (Sign::Removed, text.to_owned()),
            (_, text) => (Sign::Same, text.to_owned()),
        };
        Change::Hunks(vec![Hunk {
            old_start: 8,
            new_start: 8,
            lines: lines.iter().map(line).collect(),
        }])
    }

    #[test]
    fn a_patch_has_numbers_and_little_context() {
        let change = hunk(&[" a", " b", " c", "-old", "+new", " d", " e", " f"]);
        assert_eq!(counts(&change), (1, 1));
        assert_eq!(
            texts(&change, 20),
            [
                " 9   b", "10   c", "11 - old", "11 + new", "12   d", "13   e"
            ]
        );
    }

    #[test]
    fn texts_without_a_patch_are_compared_here() {
        let change = Change::Replaced(vec![
            ("a\nb\n".into(), "a\nB\n".into()),
            ("x".into(), "".into()),
        ]);
        assert_eq!(counts(&change), (1, 2));
        assert_eq!(texts(&change, 20), ["  a", "- b", "+ B", "⋯", "- x"]);
    }

    #[test]
    fn what_is_cut_is_counted_and_one_line_is_never_cut() {
        let text: String = (1..=6).map(|n| format!("{n}\n")).collect();
        assert_eq!(texts(&Change::Written(text.clone()), 5).len(), 6);
        let cut = texts(&Change::Written(text), 4);
        assert_eq!(cut.last().map(String::as_str), Some("… 2 more lines"));
    }
}
