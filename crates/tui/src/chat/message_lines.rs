//! What was said and done, as lines that stay.

use serde_json::Value;
use unspool_agent::tool::{ToolCallRequest, ToolContent, ToolOutcome};
use unspool_model::tool;
use unspool_model::view::tool_outcome::{FileChange, PatchHunk, PatchSign};
use unspool_show::layout::{behind, cut, wrap_text};
use unspool_show::{StyledLine, TextStyle, clean, diff, markdown, visible};

/// Lines of a result that are shown.
const FEW: usize = 5;
/// Lines of a change that are shown.
const CHANGE: usize = 40;

/// What a person typed.
pub fn prompt(text: &str, width: usize) -> Vec<StyledLine> {
    let text = clean::text(text);
    let mut lines = vec![StyledLine::new()];
    let (first, next) = (
        StyledLine::of(TextStyle::PROMPT, "> "),
        StyledLine::of(TextStyle::PROMPT, "  "),
    );
    for (at, row) in text.trim_end().lines().enumerate() {
        for (part, line) in wrap_text(TextStyle::BOLD, row, width.saturating_sub(2).max(8))
            .iter()
            .enumerate()
        {
            let mark = if at + part == 0 { &first } else { &next };
            lines.push(behind(mark, line));
        }
    }
    lines.push(StyledLine::new());
    lines
}

/// A text of the model.
pub fn text(text: &str, width: usize) -> Vec<StyledLine> {
    let mut lines = markdown::lines(text, width);
    if !lines.is_empty() {
        lines.push(StyledLine::new());
    }
    lines
}

/// Something to know.
pub fn note(paint: TextStyle, text: &str, width: usize) -> Vec<StyledLine> {
    clean::text(text)
        .lines()
        .flat_map(|line| wrap_text(paint, line, width))
        .collect()
}

/// What a call is about; files below `place` are named from there. It may stand above the question
/// whether it may run, so nothing of it is hidden.
pub fn subject(call: &ToolCallRequest, place: &str) -> String {
    let known = tool::known(&call.name);
    let fields = known.map_or(&[][..], |tool| tool.subject);
    let mut texts = fields
        .iter()
        .filter_map(|field| call.input.get(field)?.as_str());
    let first = || {
        let input = call.input.as_object()?;
        input.values().find_map(Value::as_str)
    };
    let text = texts.next().or_else(first).unwrap_or_default();
    let below = text.strip_prefix(place).filter(|_| !place.is_empty());
    let below = below.and_then(|below| below.strip_prefix('/'));
    visible::escaped_line(below.unwrap_or(text)).into_owned()
}

/// The one line of a call.
pub fn head(
    call: &ToolCallRequest,
    mark: (TextStyle, &str),
    place: &str,
    width: usize,
) -> StyledLine {
    let mut line = StyledLine::of(mark.0, mark.1);
    line.push(TextStyle::PLAIN, " ");
    line.push(TextStyle::BOLD, &visible::escaped_line(&call.name));
    let subject = subject(call, place);
    if !subject.is_empty() {
        line.push(TextStyle::PLAIN, " ");
        line.push(TextStyle::PLAIN, &subject);
    }
    cut(&line, width)
}

/// A call that has ended.
pub fn call(
    call: &ToolCallRequest,
    outcome: &ToolOutcome,
    place: &str,
    width: usize,
) -> Vec<StyledLine> {
    let failed = outcome.is_error == Some(true);
    let mark = match failed {
        true => (TextStyle::ERROR, "✗"),
        false => (TextStyle::ADDED, "●"),
    };
    let mut lines = vec![head(call, mark, place, width)];
    let indent = StyledLine::of(TextStyle::DIM, "  ");
    let inside = width.saturating_sub(2).max(8);
    let below = match (failed, patch(&outcome.result)) {
        (false, Some(change)) => diff::lines(&change, inside, CHANGE),
        _ => said(outcome, failed, inside),
    };
    lines.extend(below.iter().map(|line| behind(&indent, line)));
    lines
}

fn said(outcome: &ToolOutcome, failed: bool, width: usize) -> Vec<StyledLine> {
    let text = match &outcome.content {
        ToolContent::Text(text) => text.clone(),
        ToolContent::Blocks(blocks) => {
            let texts = blocks.iter().map(|block| match block["text"].as_str() {
                Some(text) => text.to_owned(),
                None => format!("[{}]", block["type"].as_str().unwrap_or("block")),
            });
            texts.collect::<Vec<_>>().join("\n")
        }
    };
    let text = text
        .replace("<tool_use_error>", "")
        .replace("</tool_use_error>", "");
    let text = clean::text(&text);
    let paint = if failed {
        TextStyle::ERROR
    } else {
        TextStyle::DIM
    };
    let all: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let shown = all.iter().take(FEW);
    let mut lines: Vec<StyledLine> = shown
        .map(|line| cut(&StyledLine::of(paint, line), width))
        .collect();
    lines.extend(diff::more(all.len().saturating_sub(FEW)));
    lines
}

/// The change that a result tells of.
fn patch(result: &Value) -> Option<FileChange> {
    let hunks = result.get("structuredPatch")?.as_array()?;
    if hunks.is_empty() {
        let content = result.get("content")?.as_str()?;
        return Some(FileChange::Written(content.to_owned()));
    }
    let number = |hunk: &Value, field: &str| hunk.get(field).and_then(Value::as_u64);
    let hunks = hunks.iter().map(|hunk| PatchHunk {
        old_start: number(hunk, "oldStart").unwrap_or(0),
        new_start: number(hunk, "newStart").unwrap_or(0),
        lines: hunk["lines"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|line| signed(line.as_str()?))
            .collect(),
    });
    Some(FileChange::Hunks(hunks.collect()))
}

fn signed(line: &str) -> Option<(PatchSign, String)> {
    let sign = match line.chars().next()? {
        '+' => PatchSign::Added,
        '-' => PatchSign::Removed,
        ' ' => PatchSign::Same,
        _ => return None,
    };
    Some((sign, line[1..].to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn words(lines: &[StyledLine]) -> String {
        let texts: Vec<String> = lines.iter().map(StyledLine::text).collect();
        texts.join("\n")
    }

    fn called(name: &str, input: Value) -> ToolCallRequest {
        ToolCallRequest {
            id: "t".to_owned(),
            name: name.to_owned(),
            input,
        }
    }

    #[test]
    fn a_result_shows_its_first_lines_and_how_many_follow() {
        let read = called("Read", json!({"file_path": "a.rs"}));
        let text: Vec<String> = (1..=20).map(|line| format!("{line}\tx")).collect();
        let shown = words(&call(
            &read,
            &ToolOutcome::done(text.join("\n"), json!({})),
            "",
            60,
        ));
        assert!(shown.starts_with("● Read a.rs"), "{shown}");
        assert!(shown.contains("15 more lines"), "{shown}");
    }

    #[test]
    fn what_a_call_is_about_hides_nothing() {
        let bash = called("Bash", json!({"command": "ls \u{1b}]0;$(touch x)\u{7}"}));
        let line = head(&bash, (TextStyle::WARN, "*"), "", 60).text();
        assert_eq!(line, "* Bash ls \\x1b]0;$(touch x)\\x07");
    }

    #[test]
    fn what_a_call_says_cannot_write_control_codes() {
        let bash = called("Bash", json!({"command": "x\u{1b}[2J\ny"}));
        let outcome = ToolOutcome::failed("bad\u{1b}]0;t\u{7}");
        let mut lines = call(&bash, &outcome, "", 60);
        lines.extend(prompt("a\u{1b}[31m", 60));
        assert!(!words(&lines).contains('\u{1b}'));
    }
}
