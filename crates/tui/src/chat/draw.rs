//! The rows at the bottom: what goes on, what is asked, the editor, and how things stand.

use std::time::Instant;

use unicode_width::UnicodeWidthStr;
use unspool_agent::permission::Mode;
use unspool_show::layout::cut;
use unspool_show::{Line, Paint, amount, clean, markdown};

use super::paint::Cursor;
use super::spoken;
use super::state::Chat;

/// Rows of the editor.
const EDITOR: usize = 10;
/// Rows of calls that run.
const CALLS: usize = 8;
/// Between parts of the last row, where there is room and where there is not.
const WIDE: &str = "  ·  ";
const NARROW: &str = " · ";
const TURNING: [&str; 8] = ["⠋", "⠙", "⠸", "⠴", "⠦", "⠇", "⠏", "⠹"];

/// The live rows of a state.
pub fn live(chat: &mut Chat) -> (Vec<Line>, Cursor) {
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
        lines.push(Line::new());
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
fn asking(chat: &mut Chat, width: usize, height: usize) -> (Vec<Line>, Cursor) {
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
        lines.push(Line::new());
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
fn going(chat: &Chat, width: usize, room: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let rest = chat.stream.rest();
    if !rest.trim().is_empty() {
        lines.extend(markdown::lines(rest, chat.width()));
    }
    let turning = turning(chat);
    for running in chat.calls.iter().take(CALLS) {
        let mut line = spoken::head(&running.call, (Paint::WARN, turning), &chat.place, width);
        let seconds = chat.now.saturating_duration_since(running.since).as_secs();
        if seconds > 1 {
            line.push(Paint::DIM, &format!("  {seconds}s"));
        }
        lines.push(cut(&line, width));
        if !running.last.is_empty() {
            let last = Line::of(Paint::DIM, &format!("  {}", running.last));
            lines.push(cut(&last, width));
        }
    }
    lines.extend(busy(chat, turning).map(|line| cut(&line, width)));
    for text in &chat.queue {
        let text = format!("  next: {}", clean::line(text));
        lines.push(cut(&Line::of(Paint::DIM, &text), width));
    }
    let over = lines.len().saturating_sub(room.max(1));
    lines.split_off(over)
}

fn turning(chat: &Chat) -> &'static str {
    let since = chat.working().unwrap_or(chat.now);
    let step = chat.now.saturating_duration_since(since).as_millis() / 125;
    TURNING[usize::try_from(step).unwrap_or(0) % TURNING.len()]
}

fn busy(chat: &Chat, turning: &str) -> Option<Line> {
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
        return Some(Line::of(Paint::WARN, &text));
    }
    let doing = match (chat.compacting, chat.thought) {
        _ if chat.busy.is_none() => "running your command".to_owned(),
        (true, _) => "compacting".to_owned(),
        (_, 0) => "working".to_owned(),
        (_, thought) => format!("thinking, {}", amount::count(thought as u64, "character")),
    };
    let line = Line::of(Paint::WARN, turning);
    let text = format!(" {doing}  {}s, esc to interrupt", seconds(since));
    Some(line.with(Paint::DIM, &text))
}

/// The editor in at most `most` rows, and its cursor.
fn typing(chat: &mut Chat, width: usize, most: usize) -> (Vec<Line>, Cursor) {
    let laid = chat.editor.lay(width.saturating_sub(2));
    let (row, column) = laid.cursor;
    let first = (row + 1).saturating_sub(most);
    let paint = match chat.editor.text().chars().next() {
        Some('!') => Paint::WARN,
        Some('#') => Paint::ADDED,
        _ => Paint::PROMPT,
    };
    let rows = laid.rows.iter().enumerate().skip(first).take(most);
    let line = |(at, row): (usize, &String)| {
        let mark = if at == first { "> " } else { "  " };
        Line::of(paint, mark).with(Paint::PLAIN, row)
    };
    (rows.map(line).collect(), Some((row - first, column + 2)))
}

/// How things stand.
fn standing(chat: &Chat, width: usize) -> Line {
    if let Some((code, _)) = chat.again {
        let text = match code {
            ratatui::crossterm::event::KeyCode::Esc if chat.editor.is_empty() => {
                "esc again to rewind"
            }
            ratatui::crossterm::event::KeyCode::Esc => "esc again to clear",
            _ => "ctrl-c again to quit",
        };
        return Line::of(Paint::DIM, text);
    }
    let mut line = match chat.mode {
        Mode::Default => Line::of(Paint::DIM, "asks before edits"),
        Mode::AcceptEdits => Line::of(Paint::ADDED, "accept edits on"),
        Mode::Plan => Line::of(Paint::VERB, "plan mode on"),
        Mode::DontAsk => Line::of(Paint::DIM, "denies without asking"),
        Mode::Bypass => Line::of(Paint::ERROR, "bypass permissions on"),
    };
    let model = clean::line(&chat.model).into_owned();
    let mut parts = vec![model.clone()];
    let (filled, window) = chat.filled;
    if let Some(percent) = (filled * 100).checked_div(window) {
        parts.push(format!("context {percent} % {}", amount::tokens(filled)));
    }
    if chat.spent.usd > 0.0 {
        let (cost, known) = (chat.spent.cost(), Some(chat.spent.usd));
        parts.push(amount::cost_at_least(cost, known));
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
        line.push(Paint::DIM, gap);
        line.push(Paint::DIM, part);
    }
    cut(&line, width)
}
