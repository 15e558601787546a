//! The mouse.

use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::list::open_chosen;
use super::session::enter;
use crate::app::{BrowserApp, ScreenOverlay};
use crate::message::AppEffect;

/// Rows that a turn of the wheel moves.
const WHEEL: isize = 3;

/// Two clicks within so many milliseconds are one.
const DOUBLE: u64 = 400;

pub(super) fn mouse(app: &mut BrowserApp, event: &MouseEvent) -> Vec<AppEffect> {
    let at = Position::new(event.column, event.row);
    match event.kind {
        MouseEventKind::ScrollDown => wheel(app, at, WHEEL),
        MouseEventKind::ScrollUp => wheel(app, at, -WHEEL),
        MouseEventKind::Down(MouseButton::Left) => return click(app, at),
        _ => {}
    }
    Vec::new()
}

fn wheel(app: &mut BrowserApp, at: Position, rows: isize) {
    let page = usize::from(app.body().height).saturating_sub(2).max(1);
    let beside = app.side_area().is_some_and(|area| area.contains(at));
    match (&mut app.overlay, &mut app.session) {
        (Some(ScreenOverlay::Help { top }), _) => *top = top.saturating_add_signed(rows),
        (Some(ScreenOverlay::Raw { lines, top, .. }), _) => {
            let last = lines.as_ref().map_or(0, Vec::len).saturating_sub(page);
            *top = top.saturating_add_signed(rows).min(last);
        }
        (Some(_), _) => {}
        (None, Some(session)) => match &mut session.side {
            Some(open) if beside => {
                let last = open.lines.as_ref().map_or(0, Vec::len).saturating_sub(page);
                open.top = open.top.saturating_add_signed(rows).min(last);
            }
            _ => {
                if let Some(level) = session.level_mut() {
                    level.scroll(rows);
                }
            }
        },
        (None, None) => app.list.step(rows.signum()),
    }
}

fn click(app: &mut BrowserApp, at: Position) -> Vec<AppEffect> {
    if app.overlay.is_some() {
        app.overlay = None;
        return Vec::new();
    }
    let twice = app
        .click
        .is_some_and(|(x, y, when)| (x, y) == (at.x, at.y) && app.now.since(when) <= DOUBLE);
    app.click = Some((at.x, at.y, app.now));
    let (left, _) = app.halves();
    if !left.contains(at) {
        return Vec::new();
    }
    let row = usize::from(at.y - left.y);
    let Some(session) = &mut app.session else {
        let before = app.list.at();
        let line = app.list.top + row;
        app.list.choose(line);
        return match before == line && app.list.at() == line {
            true => open_chosen(app),
            false => Vec::new(),
        };
    };
    let Some(level) = session.level_mut() else {
        return Vec::new();
    };
    let again = level.point(row);
    let head = level.cursor.unit == 0;
    if (again && head) || twice {
        return enter(app);
    }
    Vec::new()
}
