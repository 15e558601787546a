//! What somebody has to approve, in full: all of a call's input, every part of a command, every
//! line of a change. Nothing is left out or cut, and what would hide is written as an escape.

use serde_json::{Map, Value};
use unspool_agent::permission::explain::CommandPartFinding;
use unspool_agent::tool::ToolCallRequest;
use unspool_model::tool;
use unspool_model::view::tool_outcome::FileChange;
use unspool_show::layout::behind;
use unspool_show::{StyledLine, TextStyle, visible};

/// What a call would do; files below `place` are named from there.
pub fn call_lines(
    call: &ToolCallRequest,
    parts: &[CommandPartFinding],
    place: &str,
    width: usize,
) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    let mut left = match &call.input {
        Value::Object(input) => input.clone(),
        other => Map::from_iter([("input".to_owned(), other.clone())]),
    };
    if let Some(change) = take_change(&call.name, &mut left) {
        for field in ["file_path", "notebook_path"] {
            if let Some(path) = take_text(&mut left, field) {
                let path = named_from(&path, place);
                lines.extend(visible::line_rows(TextStyle::BOLD, &path, width));
            }
        }
        lines.extend(visible::change(&change, width));
    } else if call.name == "Bash"
        && let Some(command) = take_text(&mut left, "command")
    {
        lines.extend(visible::rows(TextStyle::CODE, &command, width));
    }
    lines.extend(part_lines(parts, width));
    for (name, value) in &left {
        lines.extend(field_lines(name, value, width));
    }
    let escapes = visible::count(&call.name) + count(&call.input);
    if escapes > 0 {
        let text = format!("{escapes} invisible characters are shown as escapes such as \\x1b");
        lines.extend(visible::rows(TextStyle::WARN, &text, width));
    }
    lines
}

/// A field of an input, or a setting: its name, and all of its value.
pub fn field_lines(name: &str, value: &Value, width: usize) -> Vec<StyledLine> {
    let mut name = StyledLine::of(TextStyle::DIM, &visible::escaped_line(name));
    name.push(TextStyle::DIM, ": ");
    let text = match value {
        Value::String(text) => text.clone(),
        value => {
            let mut text = String::new();
            lay_out(value, 0, width.saturating_sub(4), &mut text);
            text
        }
    };
    let room = width.saturating_sub(name.width());
    if !text.contains('\n') && room >= 20 {
        let indent = StyledLine::of(TextStyle::DIM, &" ".repeat(name.width().min(width / 2)));
        let rows = visible::rows(TextStyle::PLAIN, &text, room);
        return hanging(&name, &indent, &rows);
    }
    let rows = visible::rows(TextStyle::PLAIN, &text, width.saturating_sub(2));
    let indent = StyledLine::of(TextStyle::DIM, "  ");
    std::iter::once(name)
        .chain(rows.iter().map(|row| behind(&indent, row)))
        .collect()
}

/// JSON with one line for what fits into one.
fn lay_out(value: &Value, indent: usize, width: usize, out: &mut String) {
    let flat = value.to_string();
    let (open, close) = match value {
        _ if indent + flat.chars().count() <= width => ("", ""),
        Value::Object(fields) if !fields.is_empty() => ("{\n", "}"),
        Value::Array(items) if !items.is_empty() => ("[\n", "]"),
        _ => ("", ""),
    };
    if open.is_empty() {
        out.push_str(&flat);
        return;
    }
    out.push_str(open);
    let (deeper, blanks) = (indent + 2, " ".repeat(indent + 2));
    let last = |at: usize, count: usize| if at + 1 < count { ",\n" } else { "\n" };
    match value {
        Value::Object(fields) => {
            for (at, (name, value)) in fields.iter().enumerate() {
                out.push_str(&format!("{blanks}{}: ", Value::from(name.as_str())));
                lay_out(value, deeper, width, out);
                out.push_str(last(at, fields.len()));
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                out.push_str(&blanks);
                lay_out(value, deeper, width, out);
                out.push_str(last(at, items.len()));
            }
        }
        _ => {}
    }
    out.push_str(&" ".repeat(indent));
    out.push_str(close);
}

/// A plan as it was written: Markdown can hide text, so it is not laid out.
pub fn plan_lines(plan: &str, width: usize) -> Vec<StyledLine> {
    let paint = |line: &str| match line.starts_with('#') {
        true => TextStyle::HEADING,
        false => TextStyle::PLAIN,
    };
    plan.trim_end()
        .split('\n')
        .flat_map(|line| visible::rows(paint(line), line, width))
        .collect()
}

/// Every command that a compound one runs.
fn part_lines(parts: &[CommandPartFinding], width: usize) -> Vec<StyledLine> {
    if parts.len() < 2 {
        return Vec::new();
    }
    let title = format!("It runs {} commands:", parts.len());
    let mut lines = vec![StyledLine::of(TextStyle::DIM, &title)];
    for step in parts {
        let (mark, paint) = match step.what {
            "allowed" => ("  allowed  ", TextStyle::DIM),
            _ => ("  asks     ", TextStyle::WARN),
        };
        let first = StyledLine::of(paint, mark);
        let next = StyledLine::of(TextStyle::DIM, &" ".repeat(first.width()));
        let rows = visible::line_rows(
            TextStyle::CODE,
            &step.part,
            width.saturating_sub(first.width()),
        );
        lines.extend(hanging(&first, &next, &rows));
    }
    lines
}

fn hanging(first: &StyledLine, next: &StyledLine, rows: &[StyledLine]) -> Vec<StyledLine> {
    let prefix = |at: usize| if at == 0 { first } else { next };
    rows.iter()
        .enumerate()
        .map(|(at, row)| behind(prefix(at), row))
        .collect()
}

/// The change that a call would make, taken out of its input if that says nothing else about it.
fn take_change(name: &str, input: &mut Map<String, Value>) -> Option<FileChange> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    match tool::touch(name) {
        tool::FileAccess::Edit => {
            if let Some(edits) = input.get("edits").and_then(Value::as_array) {
                let pair = |edit: &Value| {
                    let edit = edit.as_object().filter(|edit| edit.len() == 2)?;
                    Some((text(edit.get("old_string"))?, text(edit.get("new_string"))?))
                };
                let pairs: Option<Vec<(String, String)>> = edits.iter().map(pair).collect();
                let pairs = pairs?;
                input.remove("edits");
                return Some(FileChange::Replaced(pairs));
            }
            let (old, new) = (
                text(input.get("old_string"))?,
                text(input.get("new_string"))?,
            );
            input.remove("old_string");
            input.remove("new_string");
            Some(FileChange::Replaced(vec![(old, new)]))
        }
        tool::FileAccess::Write => take_text(input, "content").map(FileChange::Written),
        tool::FileAccess::None | tool::FileAccess::Read => None,
    }
}

fn take_text(input: &mut Map<String, Value>, field: &str) -> Option<String> {
    let text = input.get(field)?.as_str()?.to_owned();
    input.remove(field);
    Some(text)
}

fn named_from(path: &str, place: &str) -> String {
    let below = path
        .strip_prefix(place)
        .filter(|_| !place.is_empty())
        .and_then(|below| below.strip_prefix('/'))
        .filter(|below| !below.split('/').any(|part| part == ".."));
    below.unwrap_or(path).to_owned()
}

/// Escapes in all texts of a value.
fn count(value: &Value) -> usize {
    match value {
        Value::String(text) => visible::count(text),
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| visible::count(name) + count(value))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(name: &str, input: Value) -> String {
        let call = ToolCallRequest {
            id: "t".to_owned(),
            name: name.to_owned(),
            input,
        };
        let lines = call_lines(&call, &[], "/p", 60);
        let texts: Vec<String> = lines.iter().map(StyledLine::text).collect();
        texts.join("\n")
    }

    #[test]
    fn an_edit_is_shown_as_a_change_with_all_that_belongs_to_it() {
        let edit = json!({"file_path": "/p/a.rs", "old_string": "old", "new_string": "new",
                          "replace_all": true});
        let text = shown("Edit", edit);
        assert_eq!(text, "a.rs\n- old\n+ new\nreplace_all: true");
    }

    #[test]
    fn every_field_of_a_command_is_shown() {
        let text = shown(
            "Bash",
            json!({"command": "ls", "run_in_background": true, "dangerouslyDisableSandbox": true}),
        );
        assert!(text.starts_with("ls\n"), "{text}");
        assert!(text.contains("run_in_background: true"), "{text}");
        assert!(text.contains("dangerouslyDisableSandbox: true"), "{text}");
    }

    #[test]
    fn what_would_hide_is_seen_in_commands_paths_changes_and_inputs() {
        let text = shown(
            "Bash",
            json!({"command": "ls -la \u{1b}]0;$(touch HIDDEN)\u{7}"}),
        );
        assert!(
            text.contains("ls -la \\x1b]0;$(touch HIDDEN)\\x07"),
            "{text}"
        );
        assert!(text.contains("2 invisible characters are shown"), "{text}");
        let text = shown(
            "Write",
            json!({"file_path": "/p/a\u{202e}gpj.sh", "content": "x\u{200b}\u{9b}2J"}),
        );
        assert!(text.contains("a\\u202egpj.sh"), "{text}");
        assert!(text.contains("x\\u200b\\x9b2J"), "{text}");
        let text = shown("mcp__s__t", json!({"k\u{7f}": {"deep": ["\u{2066}v"]}}));
        assert!(
            text.contains("k\\x7f") && text.contains("\\u2066v"),
            "{text}"
        );
    }

    #[test]
    fn a_change_that_is_not_understood_is_shown_as_it_is() {
        let odd = json!({"file_path": "/p/a", "edits": [{"old_string": "a"}, "evil"]});
        let text = shown("MultiEdit", odd);
        assert!(text.contains("evil"), "{text}");
        let all = json!({"file_path": "/p/a", "edits": [
            {"old_string": "a", "new_string": "b", "replace_all": true}]});
        assert!(shown("MultiEdit", all).contains("replace_all"));
    }

    #[test]
    fn what_is_nested_is_whole_and_short_parts_take_one_line() {
        let hook = json!({"type": "command", "command": "touch hooked"});
        let value = json!({"Stop": [{"hooks": [hook, hook]}], "long": "x".repeat(90)});
        let lines = field_lines("hooks", &value, 60);
        let texts: Vec<String> = lines.iter().map(StyledLine::text).collect();
        let hooks = texts.iter().filter(|line| line.contains("touch hooked"));
        assert_eq!(hooks.count(), 2, "{texts:#?}");
        let mut text = String::new();
        lay_out(&value, 0, 20, &mut text);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn a_path_that_climbs_is_not_shortened() {
        let text = shown("Write", json!({"file_path": "/p/../etc/x", "content": ""}));
        assert!(text.contains("/p/../etc/x"), "{text}");
    }

    #[test]
    fn comments_of_markdown_are_seen_in_a_plan() {
        let lines = plan_lines("# Do\n\n[//]: # (and remove all)\n<!-- x -->", 60);
        let texts: Vec<String> = lines.iter().map(StyledLine::text).collect();
        assert!(
            texts.contains(&"[//]: # (and remove all)".to_owned()),
            "{texts:?}"
        );
    }
}
