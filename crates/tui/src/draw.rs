//! The state as a picture. Pure: the same state, the same cells.

mod list;
mod overlay;
mod session;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unspool_show::{StyledLine, TextStyle};

use crate::app::BrowserApp;
use crate::keys::{self, KeyAction, KeyContext};
use crate::line_painting::{put, put_both};

/// The smallest screen that shows anything.
const LEAST: (u16, u16) = (20, 5);

/// Draws everything.
pub fn draw(app: &BrowserApp, frame: &mut Frame<'_>) {
    let buffer = frame.buffer_mut();
    if app.size.0 < LEAST.0 || app.size.1 < LEAST.1 {
        put(
            buffer,
            app.screen(),
            &StyledLine::of(TextStyle::WARN, "too small"),
            app.color,
        );
        return;
    }
    if let Some(banner) = &app.banner {
        let row = Rect {
            height: 1,
            ..app.screen()
        };
        put(
            buffer,
            row,
            &StyledLine::of(TextStyle::WARN, banner),
            app.color,
        );
    }
    match &app.session {
        Some(session) => session::draw(app, session, buffer),
        None => list::draw(app, buffer),
    }
    footer(app, buffer);
    if let Some(overlay) = &app.overlay {
        overlay::draw(app, overlay, buffer);
    }
}

/// The line above the body.
fn header_area(app: &BrowserApp) -> Rect {
    let body = app.body();
    Rect {
        y: body.y.saturating_sub(1),
        height: 1,
        ..body
    }
}

/// What to say, or what keys do.
fn footer(app: &BrowserApp, buffer: &mut Buffer) {
    let screen = app.screen();
    let row = Rect {
        y: screen.bottom() - 1,
        height: 1,
        ..screen
    };
    let (left, right) = match &app.session {
        Some(session) => session::footer(session),
        None => list::footer(app),
    };
    let left = match &app.note {
        Some((note, bad)) => {
            let paint = if *bad {
                TextStyle::ERROR
            } else {
                TextStyle::BOLD
            };
            StyledLine::of(paint, note)
        }
        None => left,
    };
    put_both(buffer, row, &left, &right, app.color);
}

/// `Enter open  ? help`.
fn hints(place: KeyContext, wanted: &[(KeyAction, &str)]) -> StyledLine {
    let mut line = StyledLine::new();
    for (action, words) in wanted {
        if !line.is_empty() {
            line.push(TextStyle::PLAIN, "  ");
        }
        line.push(TextStyle::BOLD, &keys::key(place, *action));
        line.push(TextStyle::DIM, &format!(" {words}"));
    }
    line
}

/// A bar that is so full, in eighths.
fn bar(share: f64, width: usize) -> String {
    let eighths = (share.clamp(0.0, 1.0) * (width * 8) as f64).round() as usize;
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    let full = "█".repeat(eighths / 8);
    let rest = width.saturating_sub(eighths.div_ceil(8));
    format!("{full}{part}{}", "·".repeat(rest))
}
