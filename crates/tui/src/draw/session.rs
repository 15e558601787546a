//! A conversation: heads of turns, what was said and done, and what stands beside it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unspool_show::layout::{cut, cut_path};
use unspool_show::{Line, Paint, amount};
use unspool_store::project::project_name;

use super::list::{cost, sign};
use super::{bar, header_area, hints};
use crate::app::{App, Beside, Opened};
use crate::keys::{Action, Place};
use crate::level::{Level, Spot};
use crate::page::Turn;
use crate::paint::{mark, put, put_all, put_both};

/// Draws a session.
pub fn draw(app: &App, session: &Opened, buffer: &mut Buffer) {
    header(app, session, buffer);
    let (left, _) = app.halves();
    if let Some(why) = &session.failed {
        let text = format!("  cannot read the session: {why}");
        put(buffer, left, &Line::of(Paint::ERROR, &text), app.color);
    } else if let Some(level) = session.level() {
        conversation(app, session, level, left, buffer);
    }
    if let (Some(beside), Some(area)) = (&session.side, app.side_area()) {
        side(app, beside, area, buffer);
    }
}

fn header(app: &App, session: &Opened, buffer: &mut Buffer) {
    let row = app.list.session(&session.id);
    let facts = &session.facts;
    let mut left = Line::new();
    let project = row.map(|row| row.project.as_str()).or(facts.cwd.as_deref());
    if let Some(project) = project {
        left.push(Paint::VERB, &cut_path(project_name(project), 18));
        left.push(Paint::PLAIN, " ");
    }
    let title = row.and_then(|row| row.title.as_deref());
    let title = title.or(facts.title.as_deref()).unwrap_or(&session.id);
    left.push(Paint::BOLD, title);
    for level in session.stack.iter().skip(1) {
        left = cut(&left, 40);
        left.push(Paint::WARN, &format!(" › {}", level.name));
    }
    let mut right = Line::new();
    let wide = app.size.0 >= 100;
    if let Some(row) = row {
        right.push(
            Paint::BOLD,
            &format!("{} {}", sign(&row.status), row.doing()),
        );
    }
    if let Some((tokens, limit)) = facts.context {
        let share = limit.map_or(0.0, |limit| tokens as f64 / limit.max(1) as f64);
        let bar = if wide { bar(share, 8) } else { String::new() };
        right.push(
            Paint::DIM,
            &format!("  {bar} {}", amount::fullness(tokens, limit)),
        );
    }
    if let Some(model) = facts.model.as_deref().filter(|_| wide) {
        right.push(
            Paint::DIM,
            &format!("  {}", model.trim_start_matches("claude-")),
        );
    }
    if let Some(row) = row {
        right.push(Paint::PLAIN, &format!("  {}", cost(row)));
    }
    put_both(buffer, header_area(app), &left, &right, app.color);
}

fn conversation(app: &App, session: &Opened, level: &Level, area: Rect, buffer: &mut Buffer) {
    if !level.known {
        put(
            buffer,
            area,
            &Line::of(Paint::DIM, "  reading …"),
            app.color,
        );
        return;
    }
    if level.turns.is_empty() {
        let text = "  no turns";
        put(buffer, area, &Line::of(Paint::DIM, text), app.color);
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
            put(buffer, row, &Line::of(Paint::PROMPT, "▌"), app.color);
        }
        let text = Rect {
            x: row.x + 2,
            width: row.width.saturating_sub(3).min(app.text_width() as u16),
            ..row
        };
        match line {
            Drawn::One(line) => put(buffer, text, &line, app.color),
            Drawn::Both(left, right) => put_both(buffer, text, &left, &right, app.color),
        }
        if !session.find.query.is_empty() {
            mark(buffer, text, &session.find.query);
        }
    }
}

enum Drawn {
    One(Line),
    Both(Line, Line),
}

fn line(app: &App, level: &Level, spot: Spot) -> Drawn {
    let Some(turn) = level.turns.get(spot.turn) else {
        return Drawn::One(Line::new());
    };
    let Some(part) = spot.unit.checked_sub(1) else {
        return head(app, level, spot, turn);
    };
    let page = level.page(spot.turn, part);
    Drawn::One(match page {
        Some(page) => page.rows.get(spot.row).cloned().unwrap_or_default(),
        None if spot.row == 0 => Line::of(Paint::DIM, "…"),
        None => Line::new(),
    })
}

fn head(app: &App, level: &Level, spot: Spot, turn: &Turn) -> Drawn {
    let Some(row) = spot.row.checked_sub(level.gap(spot.turn)) else {
        return Drawn::One(Line::new());
    };
    let unfolded = level.is_unfolded(spot.turn);
    let head = level.head(spot.turn);
    let number = match turn.n {
        0 => "··".to_owned(),
        n => n.to_string(),
    };
    if row == 1 {
        let mut line = Line::of(Paint::PLAIN, &" ".repeat(digits(level) + 2));
        line.append(&pills(turn));
        if let Some(reply) = head
            .map(|head| &head.reply)
            .filter(|reply| !reply.is_empty())
        {
            line.push(Paint::REPLY, "● ");
            line.push(Paint::DIM, reply);
        }
        return Drawn::One(line);
    }
    let right = Line::of(Paint::DIM, &when(app, level, spot.turn, turn));
    let sign = if unfolded { "▾" } else { "▸" };
    let mut left = Line::of(Paint::DIM, sign);
    let digits = digits(level);
    left.push(Paint::BOLD, &format!("{number:>digits$} "));
    if !turn.live {
        left.push(Paint::WARN, "rewound ");
    }
    if unfolded {
        left.append(&pills(turn));
        let width = app.text_width();
        let rest = width.saturating_sub(left.width() + right.width() + 1);
        left.push(Paint::DIM, &"─".repeat(rest));
        return Drawn::Both(left, right);
    }
    let prompt = head.map_or("…", |head| head.prompt.as_str());
    left.push(Paint::BOLD, prompt);
    Drawn::Both(left, right)
}

/// Columns for the numbers of turns.
fn digits(level: &Level) -> usize {
    level.turns.len().to_string().len().max(2) + 1
}

/// Tools of a turn and how often each was called, and what else happened.
fn pills(turn: &Turn) -> Line {
    const MOST: usize = 4;
    let mut line = Line::new();
    for (tool, count) in turn.tools.iter().take(MOST) {
        line.push(Paint::VERB, tool);
        if *count > 1 {
            line.push(Paint::DIM, &format!("×{count}"));
        }
        line.push(Paint::PLAIN, " ");
    }
    let more: u32 = turn.tools.iter().skip(MOST).map(|(_, count)| count).sum();
    if more > 0 {
        line.push(Paint::DIM, &format!("+{more} "));
    }
    if turn.failed > 0 {
        line.push(Paint::ERROR, &format!("✗{} ", turn.failed));
    }
    if turn.agents > 0 {
        let agents = amount::count(turn.agents.into(), "agent");
        line.push(Paint::WARN, &format!("{agents} "));
    }
    if turn.compacted {
        line.push(Paint::WARN, "compacted ");
    }
    if turn.interrupted {
        line.push(Paint::WARN, "interrupted ");
    }
    if !turn.over {
        line.push(Paint::ADDED, "running ");
    }
    line
}

/// When a turn began and how long it took; the day only where it changes.
fn when(app: &App, level: &Level, at: usize, turn: &Turn) -> String {
    let Some(time) = turn.at else {
        return String::new();
    };
    let day = amount::day(time, &app.zone);
    let before = at.checked_sub(1).and_then(|at| level.turns.get(at)?.at);
    let same = before.is_some_and(|before| amount::day(before, &app.zone) == day);
    let clock = amount::clock(time, &app.zone);
    let mut text = match same {
        true => clock,
        false => format!("{day} {clock}"),
    };
    if let Some(ms) = turn.duration_ms.filter(|ms| *ms > 0) {
        text.push_str(&format!(" · {}", amount::duration(ms)));
    }
    text
}

fn side(app: &App, beside: &Beside, area: Rect, buffer: &mut Buffer) {
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
        put(buffer, row, &Line::of(Paint::DIM, "│"), app.color);
    }
    let inner = Rect {
        x: area.x + 2,
        width: area.width.saturating_sub(3),
        ..area
    };
    put(
        buffer,
        inner,
        &Line::of(Paint::HEADING, beside.side.title()),
        app.color,
    );
    let below = Rect {
        y: inner.y + 2,
        height: inner.height.saturating_sub(2),
        ..inner
    };
    match &beside.lines {
        Some(lines) => put_all(buffer, below, lines.iter().skip(beside.top), app.color),
        None => put(buffer, below, &Line::of(Paint::DIM, "reading …"), app.color),
    }
}

/// What is typed, or what keys do here; and where one is.
pub fn footer(session: &Opened) -> (Line, Line) {
    let find = &session.find;
    let left = if find.typing {
        let mut line = Line::of(Paint::PROMPT, "/");
        line.push(Paint::BOLD, &find.query);
        line.push(Paint::PROMPT, "▏");
        line
    } else if !find.query.is_empty() {
        let mut line = Line::of(Paint::PROMPT, &format!("/{}  ", find.query));
        let more = if find.searching { "+" } else { "" };
        let told = match find.at {
            Some(at) => format!("{} of {}{more}", at + 1, find.hits.len()),
            None if find.searching => "searching …".to_owned(),
            None if find.hits.is_empty() && find.number > 0 => "no matches".to_owned(),
            None => String::new(),
        };
        line.push(Paint::DIM, &told);
        line
    } else {
        hints(
            Place::Session,
            &[
                (Action::Help, "help"),
                (Action::Back, "back"),
                (Action::NextTurn, "turn"),
                (Action::Open, "open"),
                (Action::Fold, "fold"),
                (Action::Find, "find"),
                (Action::Resume, "resume"),
                (Action::Tools, "tools"),
                (Action::Context, "context"),
                (Action::Usage, "cost"),
                (Action::Export, "export"),
            ],
        )
    };
    let mut right = Line::new();
    if let Some(level) = session.level().filter(|level| level.known) {
        if level.partial {
            right.push(Paint::DIM, "loading … ");
        }
        if session.facts.faults > 0 && !level.partial {
            let faults = amount::count(session.facts.faults as u64, "fault");
            right.push(Paint::WARN, &format!("{faults}  "));
        }
        if level.follow {
            right.push(Paint::ADDED, "following ");
        }
        right.push(
            Paint::DIM,
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
