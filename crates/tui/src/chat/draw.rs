//! The rows at the bottom: what goes on, what is asked, the editor, and how things stand.

use std::time::Instant;

use unicode_width::UnicodeWidthStr;
use unspool_agent::permission::PermissionMode;
use unspool_show::layout::cut;
use unspool_show::{StyledLine, TextStyle, clean, format, markdown};

use super::chat_painter::CursorPosition;
use super::chat_screen::ChatScreen;
use super::message_lines;

/// Rows of the editor.
const EDITOR: usize = 10;
/// Rows of calls that run.
const CALLS: usize = 8;
/// Between parts of the last row, where there is room and where there is not.
const WIDE: &str = "  ·  ";
const NARROW: &str = " · ";
const TURNING: [&str; 8] = ["⠋", "⠙", "⠸", "⠴", "⠦", "⠇", "⠏", "⠹"];

/// The live rows of a state.
pub fn live(chat: &mut ChatScreen) -> (Vec<StyledLine>, CursorPosition) {
    let (width, height) = (chat.size.0.max(10), chat.size.1.max(4));
    if let Some(pick) = &chat.pick {
        return (pick.draw(width, height.saturating_sub(2).min(20)), None);
    }
    if !chat.dialogs.is_empty() {
        return asking(chat, width, height);
    }
    let mut foot = vec![standing(chat, width)];
    let (middle, cursor) = typing(chat, width, EDITOR);
    let mut lines = going(
        chat,
        width,
        height.saturating_sub(middle.len() + foot.len() + 1),
    );
    if !lines.is_empty() {
        lines.push(StyledLine::new());
    }
    let above = lines.len();
    lines.extend(middle);
    if let Some(menu) = &chat.menu {
        foot = menu.draw(width);
    }
    lines.extend(foot);
    (lines, cursor.map(|(row, column)| (above + row, column)))
}

/// The question that is asked, with the editor below it: all that is typed can be seen.
fn asking(chat: &mut ChatScreen, width: usize, height: usize) -> (Vec<StyledLine>, CursorPosition) {
    // The painter leaves one row free; what does not fit would be lost at the top.
    let height = height.saturating_sub(1);
    let (mut below, typed) = match chat.dialogs.is_writing() {
        true => (Vec::new(), None),
        false => typing(chat, width, 3),
    };
    below.push(standing(chat, width));
    let around = chat
        .dialogs
        .around(chat.now, !chat.editor.text().trim().is_empty());
    let room = height.saturating_sub(below.len());
    let Some(question) = chat.dialogs.first() else {
        return (below, typed);
    };
    let (question, written) = question.draw(width, room, around);
    let left = room.saturating_sub(question.len() + 1);
    let mut lines = match left {
        0 => Vec::new(),
        left => going(chat, width, left),
    };
    if !lines.is_empty() {
        lines.push(StyledLine::new());
    }
    let above = lines.len();
    lines.extend(question);
    let behind = lines.len();
    lines.extend(below);
    let cursor = match (written, typed) {
        (Some((row, column)), _) => Some((above + row, column)),
        (None, Some((row, column))) => Some((behind + row, column)),
        (None, None) => None,
    };
    (lines, cursor)
}

/// What goes on, in at most `room` rows.
fn going(chat: &ChatScreen, width: usize, room: usize) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    let rest = chat.stream.rest();
    if !rest.trim().is_empty() {
        lines.extend(markdown::lines(rest, chat.width()));
    }
    let turning = turning(chat);
    for running in chat.calls.iter().take(CALLS) {
        let mut line = message_lines::head(
            &running.call,
            (TextStyle::WARN, turning),
            &chat.place,
            width,
        );
        let seconds = chat.now.saturating_duration_since(running.since).as_secs();
        if seconds > 1 {
            line.push(TextStyle::DIM, &format!("  {seconds}s"));
        }
        lines.push(cut(&line, width));
        if !running.last.is_empty() {
            let last = StyledLine::of(TextStyle::DIM, &format!("  {}", running.last));
            lines.push(cut(&last, width));
        }
    }
    lines.extend(busy(chat, turning).map(|line| cut(&line, width)));
    for text in &chat.queue {
        let text = format!("  next: {}", clean::line(text));
        lines.push(cut(&StyledLine::of(TextStyle::DIM, &text), width));
    }
    let over = lines.len().saturating_sub(room.max(1));
    lines.split_off(over)
}

fn turning(chat: &ChatScreen) -> &'static str {
    let since = chat.working().unwrap_or(chat.now);
    let step = chat.now.saturating_duration_since(since).as_millis() / 125;
    TURNING[usize::try_from(step).unwrap_or(0) % TURNING.len()]
}

fn busy(chat: &ChatScreen, turning: &str) -> Option<StyledLine> {
    let since = chat.working()?;
    if !chat.dialogs.is_empty() {
        return None;
    }
    let seconds = |since: Instant| chat.now.saturating_duration_since(since).as_secs();
    if let Some(waiting) = &chat.waiting {
        let left = waiting.until.saturating_duration_since(chat.now);
        let text = format!(
            "{}; retrying in {}s, esc to interrupt",
            waiting.why,
            left.as_millis().div_ceil(1000)
        );
        return Some(StyledLine::of(TextStyle::WARN, &text));
    }
    let doing = match (chat.compacting, chat.thought) {
        _ if chat.busy.is_none() => "running your command".to_owned(),
        (true, _) => "compacting".to_owned(),
        (_, 0) => "working".to_owned(),
        (_, thought) => format!("thinking, {}", format::count(thought as u64, "character")),
    };
    let line = StyledLine::of(TextStyle::WARN, turning);
    let text = format!(" {doing}  {}s, esc to interrupt", seconds(since));
    Some(line.with(TextStyle::DIM, &text))
}

/// The editor in at most `most` rows, and its cursor.
fn typing(chat: &mut ChatScreen, width: usize, most: usize) -> (Vec<StyledLine>, CursorPosition) {
    let laid = chat.editor.lay(width.saturating_sub(2));
    let (row, column) = laid.cursor;
    let first = (row + 1).saturating_sub(most);
    let paint = match chat.editor.text().chars().next() {
        Some('!') => TextStyle::WARN,
        Some('#') => TextStyle::ADDED,
        _ => TextStyle::PROMPT,
    };
    let rows = laid.rows.iter().enumerate().skip(first).take(most);
    let line = |(at, row): (usize, &String)| {
        let mark = if at == first { "> " } else { "  " };
        StyledLine::of(paint, mark).with(TextStyle::PLAIN, row)
    };
    (rows.map(line).collect(), Some((row - first, column + 2)))
}

/// How things stand.
fn standing(chat: &ChatScreen, width: usize) -> StyledLine {
    if let Some((code, _)) = chat.again {
        let text = match code {
            ratatui::crossterm::event::KeyCode::Esc if chat.editor.is_empty() => {
                "esc again to rewind"
            }
            ratatui::crossterm::event::KeyCode::Esc => "esc again to clear",
            _ => "ctrl-c again to quit",
        };
        return StyledLine::of(TextStyle::DIM, text);
    }
    let mut line = match chat.mode {
        PermissionMode::Default => StyledLine::of(TextStyle::DIM, "asks before edits"),
        PermissionMode::AcceptEdits => StyledLine::of(TextStyle::ADDED, "accept edits on"),
        PermissionMode::Plan => StyledLine::of(TextStyle::VERB, "plan mode on"),
        PermissionMode::DontAsk => StyledLine::of(TextStyle::DIM, "denies without asking"),
        PermissionMode::Bypass => StyledLine::of(TextStyle::ERROR, "bypass permissions on"),
    };
    let model = clean::line(&chat.model).into_owned();
    let mut parts = vec![model.clone()];
    let (filled, window) = chat.filled;
    if let Some(percent) = (filled * 100).checked_div(window) {
        parts.push(format!("context {percent} % {}", format::tokens(filled)));
    }
    if chat.spent.usd > 0.0 {
        let (cost, known) = (chat.spent.cost(), Some(chat.spent.usd));
        parts.push(format::cost_at_least(cost, known));
    }
    let usage = chat.spent.usage;
    let input = usage.input + usage.cache_read + usage.cache_write_5m + usage.cache_write_1h;
    if let Some(percent) = (usage.cache_read * 100).checked_div(input) {
        parts.push(format!("cache {percent} %"));
    }
    parts.retain(|part| !part.is_empty());
    let long = |parts: &[String], gap: &str| {
        let parts: usize = parts.iter().map(|part| part.width() + gap.width()).sum();
        line.width() + parts
    };
    // What is spent matters more than all of a name.
    let gap = match long(&parts, WIDE) <= width {
        true => WIDE,
        false => NARROW,
    };
    if long(&parts, gap) > width
        && let Some(first) = parts.first_mut()
    {
        *first = model.trim_start_matches("claude-").to_owned();
    }
    for part in &parts {
        line.push(TextStyle::DIM, gap);
        line.push(TextStyle::DIM, part);
    }
    cut(&line, width)
}
