//! What changed in a file, as the original writes it down: hunks with three lines around.

use std::time::Duration;

use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

const AROUND: usize = 3;

/// Files that differ everywhere are compared only so well.
const PATIENCE: Duration = Duration::from_millis(500);

/// The hunks from one text to another.
pub fn hunks(old: &str, new: &str) -> Value {
    if old == new {
        return json!([]);
    }
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
    let groups = diff.grouped_ops(AROUND);
    let hunks = groups.iter().map(|group| {
        let mut lines = Vec::new();
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            let text = change.value();
            let line = text.strip_suffix('\n').unwrap_or(text);
            lines.push(format!("{sign}{}", line.strip_suffix('\r').unwrap_or(line)));
            if change.missing_newline() {
                lines.push("\\ No newline at end of file".to_owned());
            }
        }
        let (old, new) = match (group.first(), group.last()) {
            (Some(first), Some(last)) => (
                first.old_range().start..last.old_range().end,
                first.new_range().start..last.new_range().end,
            ),
            _ => (0..0, 0..0),
        };
        // An empty side begins at line 0, as in every patch.
        let start = |range: &std::ops::Range<usize>| {
            range.start + usize::from(!range.is_empty() || range.start > 0)
        };
        json!({
            "oldStart": start(&old),
            "oldLines": old.len(),
            "newStart": start(&new),
            "newLines": new.len(),
            "lines": lines,
        })
    });
    hunks.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_stands_between_the_lines_around_it() {
        assert_eq!(
            hunks("one\ntwo\nthree\n", "one\nTWO\nthree\n"),
            json!([{"oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 3,
                    "lines": [" one", "-two", "+TWO", " three"]}])
        );
    }

    #[test]
    fn changes_far_apart_are_hunks_of_their_own() {
        let old: String = (0..40).map(|at| format!("{at}\n")).collect();
        let new = old.replace("\n5\n", "\nfive\n").replace("\n30\n", "\n");
        let hunks = hunks(&old, &new);
        assert_eq!(hunks.as_array().unwrap().len(), 2);
        assert_eq!(hunks[1]["oldStart"], 28);
        assert_eq!(
            (&hunks[1]["oldLines"], &hunks[1]["newLines"]),
            (&json!(7), &json!(6))
        );
    }

    #[test]
    fn a_last_line_without_an_end_is_told() {
        let hunks = hunks("a", "a\nb\n");
        let lines: Vec<&str> = hunks[0]["lines"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        assert_eq!(lines, ["-a", "\\ No newline at end of file", "+a", "+b"]);
    }

    #[test]
    fn texts_that_differ_everywhere_have_hunks_too() {
        let old: String = (0..60_000)
            .map(|at| format!("old {}\n", at * 7 % 1000))
            .collect();
        let new: String = (0..60_000)
            .map(|at| format!("new {}\n", at * 11 % 1000))
            .collect();
        assert!(
            hunks(&old, &new)
                .as_array()
                .is_some_and(|it| !it.is_empty())
        );
    }
}
