//! Changes to files as coloured lines with numbers.
//!
//! The client's own patch is shown where there is one; otherwise old and new text are
//! compared here, and line numbers are left out because nobody knows them.

use similar::{ChangeTag, TextDiff};
use unspool_model::view::tool_outcome::{FileChange, PatchHunk, PatchSign};

use crate::format;
use crate::layout::{cut, untabbed};
use crate::style::{StyledLine, TextStyle};

/// Unchanged lines kept around a change.
const CONTEXT: usize = 2;

/// How many lines were added and removed.
pub fn counts(change: &FileChange) -> (u64, u64) {
    let (mut added, mut removed) = (0, 0);
    for row in rows(change) {
        match row {
            DiffRow::Line {
                sign: PatchSign::Added,
                ..
            } => added += 1,
            DiffRow::Line {
                sign: PatchSign::Removed,
                ..
            } => removed += 1,
            DiffRow::Line { .. } | DiffRow::Gap => {}
        }
    }
    (added, removed)
}

/// The change in lines of at most `width` columns; at most `limit` lines, the rest counted.
pub fn lines(change: &FileChange, width: usize, limit: usize) -> Vec<StyledLine> {
    let rows = match change {
        // All of a new file is new: no signs needed to say so.
        FileChange::Written(text) => return written(text, width, limit),
        FileChange::Hunks(_) | FileChange::Replaced(_) => rows(change),
    };
    let last = rows.iter().filter_map(DiffRow::number).max();
    let digits = last.map_or(0, |last| last.to_string().len());
    let shown = if rows.len() > limit + 1 {
        limit
    } else {
        rows.len()
    };
    let mut out: Vec<StyledLine> = rows[..shown]
        .iter()
        .map(|row| row.line(digits, width))
        .collect();
    out.extend(more(rows.len() - shown));
    out
}

/// `… 14 more lines`.
pub fn more(count: usize) -> Option<StyledLine> {
    let text = format!("… {}", format::count(count as u64, "more line"));
    (count > 0).then(|| StyledLine::of(TextStyle::DIM, &text))
}

fn written(text: &str, width: usize, limit: usize) -> Vec<StyledLine> {
    let all: Vec<&str> = text.lines().collect();
    let shown = if all.len() > limit + 1 {
        limit
    } else {
        all.len()
    };
    let digits = all.len().to_string().len();
    let line = |(at, text): (usize, &&str)| {
        let mut line = StyledLine::of(TextStyle::DIM, &format!("{:>digits$} ", at + 1));
        line.push(TextStyle::ADDED, "+ ");
        line.push(TextStyle::PLAIN, &untabbed(&crate::clean::text(text)));
        cut(&line, width)
    };
    let mut out: Vec<StyledLine> = all[..shown].iter().enumerate().map(line).collect();
    out.extend(more(all.len() - shown));
    out
}

/// A line of a change, or lines left out between two.
pub(crate) enum DiffRow {
    Line {
        sign: PatchSign,
        number: Option<u64>,
        text: String,
    },
    Gap,
}

impl DiffRow {
    fn number(&self) -> Option<u64> {
        match self {
            DiffRow::Line { number, .. } => *number,
            DiffRow::Gap => None,
        }
    }

    fn line(&self, digits: usize, width: usize) -> StyledLine {
        let DiffRow::Line { sign, number, text } = self else {
            return StyledLine::of(TextStyle::DIM, "⋯");
        };
        let (mark, paint) = match sign {
            PatchSign::Same => (" ", TextStyle::DIM),
            PatchSign::Removed => ("-", TextStyle::REMOVED),
            PatchSign::Added => ("+", TextStyle::ADDED),
        };
        let mut line = StyledLine::new();
        if digits > 0 {
            let number = number.map(|number| number.to_string()).unwrap_or_default();
            line.push(TextStyle::DIM, &format!("{number:>digits$} "));
        }
        line.push(paint, mark);
        line.push(paint, " ");
        line.push(paint, &untabbed(&crate::clean::text(text)));
        cut(&line, width)
    }
}

/// A piece of a change, with its place in the file where that is known.
pub(crate) struct DiffHunk {
    pub(crate) old_start: Option<u64>,
    pub(crate) new_start: Option<u64>,
    pub(crate) lines: Vec<(PatchSign, String)>,
}

/// The pieces of a change: the client's own, else what comparing gives.
pub(crate) fn hunks(change: &FileChange) -> Vec<DiffHunk> {
    if let FileChange::Hunks(hunks) = change {
        let piece = |hunk: &PatchHunk| DiffHunk {
            old_start: Some(hunk.old_start),
            new_start: Some(hunk.new_start),
            lines: hunk.lines.clone(),
        };
        return hunks.iter().map(piece).collect();
    }
    let mut pieces: Vec<DiffHunk> = Vec::new();
    let mut open = false;
    for row in rows(change) {
        let DiffRow::Line { sign, text, .. } = row else {
            open = false;
            continue;
        };
        if !std::mem::replace(&mut open, true) {
            pieces.push(DiffHunk {
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
pub(crate) fn rows(change: &FileChange) -> Vec<DiffRow> {
    let hunks: Vec<Vec<DiffRow>> = match change {
        FileChange::Hunks(hunks) => hunks.iter().map(|hunk| trimmed(numbered(hunk))).collect(),
        FileChange::Replaced(pairs) => pairs
            .iter()
            .map(|(old, new)| trimmed(compared(old, new)))
            .collect(),
        FileChange::Written(text) => vec![compared("", text)],
    };
    let mut out = Vec::new();
    for hunk in hunks {
        if !out.is_empty() {
            out.push(DiffRow::Gap);
        }
        out.extend(hunk);
    }
    out
}

/// Old lines carry their old number, all others the new one.
fn numbered(hunk: &PatchHunk) -> Vec<DiffRow> {
    let (mut old, mut new) = (hunk.old_start, hunk.new_start);
    let row = |(sign, text): &(PatchSign, String)| {
        let number = if *sign == PatchSign::Removed {
            old
        } else {
            new
        };
        old += u64::from(*sign != PatchSign::Added);
        new += u64::from(*sign != PatchSign::Removed);
        DiffRow::Line {
            sign: *sign,
            number: Some(number),
            text: text.clone(),
        }
    };
    hunk.lines.iter().map(row).collect()
}

fn compared(old: &str, new: &str) -> Vec<DiffRow> {
    let diff = TextDiff::from_lines(old, new);
    let row = |change: similar::Change<&str>| DiffRow::Line {
        sign: match change.tag() {
            ChangeTag::Equal => PatchSign::Same,
            ChangeTag::Delete => PatchSign::Removed,
            ChangeTag::Insert => PatchSign::Added,
        },
        number: None,
        text: change.value().trim_end_matches(['\n', '\r']).to_owned(),
    };
    diff.iter_all_changes().map(row).collect()
}

/// Unchanged lines far from any change become a gap.
fn trimmed(rows: Vec<DiffRow>) -> Vec<DiffRow> {
    let changed = |row: &DiffRow| {
        matches!(
            row,
            DiffRow::Line {
                sign: PatchSign::Added | PatchSign::Removed,
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
    let mut out: Vec<DiffRow> = Vec::new();
    for (at, row) in rows.into_iter().enumerate() {
        let inside = first.is_some_and(|first| at > first) && last.is_some_and(|last| at < last);
        if near(at) {
            out.push(row);
        } else if inside && !matches!(out.last(), Some(DiffRow::Gap)) {
            out.push(DiffRow::Gap);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(change: &FileChange, limit: usize) -> Vec<String> {
        lines(change, 40, limit)
            .iter()
            .map(StyledLine::text)
            .collect()
    }

    fn hunk(lines: &[&str]) -> FileChange {
        let line = |line: &&str| match line.split_at(1) {
            ("+", text) => (PatchSign::Added, text.to_owned()),
            ("-", text) => (PatchSign::Removed, text.to_owned()),
            (_, text) => (PatchSign::Same, text.to_owned()),
        };
        FileChange::Hunks(vec![PatchHunk {
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
        let change = FileChange::Replaced(vec![
            ("a\nb\n".into(), "a\nB\n".into()),
            ("x".into(), "".into()),
        ]);
        assert_eq!(counts(&change), (1, 2));
        assert_eq!(texts(&change, 20), ["  a", "- b", "+ B", "⋯", "- x"]);
    }

    #[test]
    fn what_is_cut_is_counted_and_one_line_is_never_cut() {
        let text: String = (1..=6).map(|n| format!("{n}\n")).collect();
        assert_eq!(texts(&FileChange::Written(text.clone()), 5).len(), 6);
        let cut = texts(&FileChange::Written(text), 4);
        assert_eq!(cut.last().map(String::as_str), Some("… 2 more lines"));
    }
}
