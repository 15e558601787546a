//! A conversation: heads of turns, what was said and done, and what stands beside it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unspool_show::layout::{cut, cut_path};
use unspool_show::{StyledLine, TextStyle, format};
use unspool_store::project::project_name;

use super::list::{cost, sign};
use super::{bar, header_area, hints};
use crate::app::{BrowserApp, SessionScreen, SidePanel};
use crate::conversation_view::{ConversationView, RowPosition};
use crate::keys::{KeyAction, KeyContext};
use crate::line_painting::{mark, put, put_all, put_both};
use crate::loader_protocol::TurnOutline;

/// Draws a session.
pub fn draw(app: &BrowserApp, session: &SessionScreen, buffer: &mut Buffer) {
    header(app, session, buffer);
    let (left, _) = app.halves();
    if let Some(why) = &session.failed {
        let text = format!("  cannot read the session: {why}");
        put(
            buffer,
            left,
            &StyledLine::of(TextStyle::ERROR, &text),
            app.color,
        );
    } else if let Some(level) = session.level() {
        conversation(app, session, level, left, buffer);
    }
    if let (Some(beside), Some(area)) = (&session.side, app.side_area()) {
        side(app, beside, area, buffer);
    }
}

fn header(app: &BrowserApp, session: &SessionScreen, buffer: &mut Buffer) {
    let row = app.list.session(&session.id);
    let facts = &session.facts;
    let mut left = StyledLine::new();
    let project = row.map(|row| row.project.as_str()).or(facts.cwd.as_deref());
    if let Some(project) = project {
        left.push(TextStyle::VERB, &cut_path(project_name(project), 18));
        left.push(TextStyle::PLAIN, " ");
    }
    let title = row.and_then(|row| row.title.as_deref());
    let title = title.or(facts.title.as_deref()).unwrap_or(&session.id);
    left.push(TextStyle::BOLD, title);
    for level in session.stack.iter().skip(1) {
        left = cut(&left, 40);
        left.push(TextStyle::WARN, &format!(" › {}", level.name));
    }
    let mut right = StyledLine::new();
    let wide = app.size.0 >= 100;
    if let Some(row) = row {
        right.push(
            TextStyle::BOLD,
            &format!("{} {}", sign(&row.status), row.doing()),
        );
    }
    if let Some((tokens, limit)) = facts.context {
        let share = limit.map_or(0.0, |limit| tokens as f64 / limit.max(1) as f64);
        let bar = if wide { bar(share, 8) } else { String::new() };
        right.push(
            TextStyle::DIM,
            &format!("  {bar} {}", format::fullness(tokens, limit)),
        );
    }
    if let Some(model) = facts.model.as_deref().filter(|_| wide) {
        right.push(
            TextStyle::DIM,
            &format!("  {}", model.trim_start_matches("claude-")),
        );
    }
    if let Some(row) = row {
        right.push(TextStyle::PLAIN, &format!("  {}", cost(row)));
    }
    put_both(buffer, header_area(app), &left, &right, app.color);
}

fn conversation(
    app: &BrowserApp,
    session: &SessionScreen,
    level: &ConversationView,
    area: Rect,
    buffer: &mut Buffer,
) {
    if !level.known {
        put(
            buffer,
            area,
            &StyledLine::of(TextStyle::DIM, "  reading …"),
            app.color,
        );
        return;
    }
    if level.turns.is_empty() {
        let text = "  no turns";
        put(
            buffer,
            area,
            &StyledLine::of(TextStyle::DIM, text),
            app.color,
        );
        return;
    }
    for (y, spot) in (area.y..area.bottom()).zip(level.shown()) {
        let row = Rect {
            y,
            height: 1,
            ..area
        };
        let line = line(app, level, spot);
        if level.is_at_cursor(spot) {
            put(
                buffer,
                row,
                &StyledLine::of(TextStyle::PROMPT, "▌"),
                app.color,
            );
        }
        let text = Rect {
            x: row.x + 2,
            width: row.width.saturating_sub(3).min(app.text_width() as u16),
            ..row
        };
        match line {
            DrawnRow::One(line) => put(buffer, text, &line, app.color),
            DrawnRow::Both(left, right) => put_both(buffer, text, &left, &right, app.color),
        }
        if !session.find.query.is_empty() {
            mark(buffer, text, &session.find.query);
        }
    }
}

enum DrawnRow {
    One(StyledLine),
    Both(StyledLine, StyledLine),
}

fn line(app: &BrowserApp, level: &ConversationView, spot: RowPosition) -> DrawnRow {
    let Some(turn) = level.turns.get(spot.turn) else {
        return DrawnRow::One(StyledLine::new());
    };
    let Some(part) = spot.unit.checked_sub(1) else {
        return head(app, level, spot, turn);
    };
    let page = level.page(spot.turn, part);
    DrawnRow::One(match page {
        Some(page) => page.rows.get(spot.row).cloned().unwrap_or_default(),
        None if spot.row == 0 => StyledLine::of(TextStyle::DIM, "…"),
        None => StyledLine::new(),
    })
}

fn head(
    app: &BrowserApp,
    level: &ConversationView,
    spot: RowPosition,
    turn: &TurnOutline,
) -> DrawnRow {
    let Some(row) = spot.row.checked_sub(level.gap(spot.turn)) else {
        return DrawnRow::One(StyledLine::new());
    };
    let unfolded = level.is_unfolded(spot.turn);
    let head = level.head(spot.turn);
    let number = match turn.n {
        0 => "··".to_owned(),
        n => n.to_string(),
    };
    if row == 1 {
        let mut line = StyledLine::of(TextStyle::PLAIN, &" ".repeat(digits(level) + 2));
        line.append(&pills(turn));
        if let Some(reply) = head
            .map(|head| &head.reply)
            .filter(|reply| !reply.is_empty())
        {
            line.push(TextStyle::REPLY, "● ");
            line.push(TextStyle::DIM, reply);
        }
        return DrawnRow::One(line);
    }
    let right = StyledLine::of(TextStyle::DIM, &when(app, level, spot.turn, turn));
    let sign = if unfolded { "▾" } else { "▸" };
    let mut left = StyledLine::of(TextStyle::DIM, sign);
    let digits = digits(level);
    left.push(TextStyle::BOLD, &format!("{number:>digits$} "));
    if !turn.live {
        left.push(TextStyle::WARN, "rewound ");
    }
    if unfolded {
        left.append(&pills(turn));
        let width = app.text_width();
        let rest = width.saturating_sub(left.width() + right.width() + 1);
        left.push(TextStyle::DIM, &"─".repeat(rest));
        return DrawnRow::Both(left, right);
    }
    let prompt = head.map_or("…", |head| head.prompt.as_str());
    left.push(TextStyle::BOLD, prompt);
    DrawnRow::Both(left, right)
}

/// Columns for the numbers of turns.
fn digits(level: &ConversationView) -> usize {
    level.turns.len().to_string().len().max(2) + 1
}

/// Tools of a turn and how often each was called, and what else happened.
fn pills(turn: &TurnOutline) -> StyledLine {
    const MOST: usize = 4;
    let mut line = StyledLine::new();
    for (tool, count) in turn.tools.iter().take(MOST) {
        line.push(TextStyle::VERB, tool);
        if *count > 1 {
            line.push(TextStyle::DIM, &format!("×{count}"));
        }
        line.push(TextStyle::PLAIN, " ");
    }
    let more: u32 = turn.tools.iter().skip(MOST).map(|(_, count)| count).sum();
    if more > 0 {
        line.push(TextStyle::DIM, &format!("+{more} "));
    }
    if turn.failed > 0 {
        line.push(TextStyle::ERROR, &format!("✗{} ", turn.failed));
    }
    if turn.agents > 0 {
        let agents = format::count(turn.agents.into(), "agent");
        line.push(TextStyle::WARN, &format!("{agents} "));
    }
    if turn.compacted {
        line.push(TextStyle::WARN, "compacted ");
    }
    if turn.interrupted {
        line.push(TextStyle::WARN, "interrupted ");
    }
    if !turn.over {
        line.push(TextStyle::ADDED, "running ");
    }
    line
}

/// When a turn began and how long it took; the day only where it changes.
fn when(app: &BrowserApp, level: &ConversationView, at: usize, turn: &TurnOutline) -> String {
    let Some(time) = turn.at else {
        return String::new();
    };
    let day = format::day(time, &app.zone);
    let before = at.checked_sub(1).and_then(|at| level.turns.get(at)?.at);
    let same = before.is_some_and(|before| format::day(before, &app.zone) == day);
    let clock = format::clock(time, &app.zone);
    let mut text = match same {
        true => clock,
        false => format!("{day} {clock}"),
    };
    if let Some(ms) = turn.duration_ms.filter(|ms| *ms > 0) {
        text.push_str(&format!(" · {}", format::duration(ms)));
    }
    text
}

fn side(app: &BrowserApp, beside: &SidePanel, area: Rect, buffer: &mut Buffer) {
    for y in area.y..area.bottom() {
        let row = Rect {
            y,
            height: 1,
            ..area
        };
        // It may stand over the conversation.
        for x in row.x..row.right() {
            if let Some(cell) = buffer.cell_mut((x, y)) {
                cell.reset();
            }
        }
        put(buffer, row, &StyledLine::of(TextStyle::DIM, "│"), app.color);
    }
    let inner = Rect {
        x: area.x + 2,
        width: area.width.saturating_sub(3),
        ..area
    };
    put(
        buffer,
        inner,
        &StyledLine::of(TextStyle::HEADING, beside.side.title()),
        app.color,
    );
    let below = Rect {
        y: inner.y + 2,
        height: inner.height.saturating_sub(2),
        ..inner
    };
    match &beside.lines {
        Some(lines) => put_all(buffer, below, lines.iter().skip(beside.top), app.color),
        None => put(
            buffer,
            below,
            &StyledLine::of(TextStyle::DIM, "reading …"),
            app.color,
        ),
    }
}

/// What is typed, or what keys do here; and where one is.
pub fn footer(session: &SessionScreen) -> (StyledLine, StyledLine) {
    let find = &session.find;
    let left = if find.typing {
        let mut line = StyledLine::of(TextStyle::PROMPT, "/");
        line.push(TextStyle::BOLD, &find.query);
        line.push(TextStyle::PROMPT, "▏");
        line
    } else if !find.query.is_empty() {
        let mut line = StyledLine::of(TextStyle::PROMPT, &format!("/{}  ", find.query));
        let more = if find.searching { "+" } else { "" };
        let told = match find.at {
            Some(at) => format!("{} of {}{more}", at + 1, find.hits.len()),
            None if find.searching => "searching …".to_owned(),
            None if find.hits.is_empty() && find.number > 0 => "no matches".to_owned(),
            None => String::new(),
        };
        line.push(TextStyle::DIM, &told);
        line
    } else {
        hints(
            KeyContext::Session,
            &[
                (KeyAction::Help, "help"),
                (KeyAction::Back, "back"),
                (KeyAction::NextTurn, "turn"),
                (KeyAction::Open, "open"),
                (KeyAction::Fold, "fold"),
                (KeyAction::Find, "find"),
                (KeyAction::Resume, "resume"),
                (KeyAction::Tools, "tools"),
                (KeyAction::Context, "context"),
                (KeyAction::Usage, "cost"),
                (KeyAction::Export, "export"),
            ],
        )
    };
    let mut right = StyledLine::new();
    if let Some(level) = session.level().filter(|level| level.known) {
        if level.partial {
            right.push(TextStyle::DIM, "loading … ");
        }
        if session.facts.faults > 0 && !level.partial {
            let faults = format::count(session.facts.faults as u64, "fault");
            right.push(TextStyle::WARN, &format!("{faults}  "));
        }
        if level.follow {
            right.push(TextStyle::ADDED, "following ");
        }
        right.push(
            TextStyle::DIM,
            &format!(
                "{}/{} {:>3.0}%",
                level.cursor.turn + 1,
                level.turns.len(),
                level.share() * 100.0
            ),
        );
    }
    (left, right)
}
