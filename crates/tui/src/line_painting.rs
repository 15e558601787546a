//! Lines of ours on the cells of a screen.
//!
//! Only [`StyledLine`]s are put on the screen, and they hold clean text, so nothing from a
//! transcript reaches the terminal unclean.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use unspool_show::layout::cut;
use unspool_show::{StyledLine, TextStyle};

/// How a paint looks.
pub fn style(paint: TextStyle, color: bool) -> Style {
    let mut style = Style::new();
    if let Some(number) = paint.color.filter(|_| color) {
        style = style.fg(match number {
            0 => Color::Black,
            1 => Color::Red,
            2 => Color::Green,
            3 => Color::Yellow,
            4 => Color::Blue,
            5 => Color::Magenta,
            6 => Color::Cyan,
            _ => Color::Gray,
        });
    }
    for (on, modifier) in [
        (paint.bold, Modifier::BOLD),
        (paint.dim, Modifier::DIM),
        (paint.italic, Modifier::ITALIC),
        (paint.underline, Modifier::UNDERLINED),
        (paint.strike, Modifier::CROSSED_OUT),
    ] {
        if on {
            style = style.add_modifier(modifier);
        }
    }
    style
}

/// Puts a line into the first row of an area, cut to its width.
pub fn put(buffer: &mut Buffer, area: Rect, line: &StyledLine, color: bool) {
    let area = area.intersection(buffer.area);
    if area.is_empty() {
        return;
    }
    let line = cut(line, usize::from(area.width));
    let mut x = area.x;
    for (paint, text) in line.pieces() {
        let room = usize::from(area.right().saturating_sub(x));
        (x, _) = buffer.set_stringn(x, area.y, text, room, style(*paint, color));
    }
}

/// Two lines in one row: one at the left, one at the right, which is shown whole.
pub fn put_both(
    buffer: &mut Buffer,
    area: Rect,
    left: &StyledLine,
    right: &StyledLine,
    color: bool,
) {
    let width = (right.width() as u16).min(area.width);
    let room = area.width.saturating_sub(width + u16::from(width > 0));
    let first = Rect {
        width: room,
        ..area
    };
    put(buffer, first, left, color);
    let last = Rect {
        x: area.right() - width,
        width,
        ..area
    };
    put(buffer, last, right, color);
}

/// Puts lines one below the other.
pub fn put_all<'a>(
    buffer: &mut Buffer,
    area: Rect,
    lines: impl Iterator<Item = &'a StyledLine>,
    color: bool,
) {
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        let row = Rect {
            y,
            height: 1,
            ..area
        };
        put(buffer, row, line, color);
    }
}

/// Marks what somebody looks for in a row.
pub fn mark(buffer: &mut Buffer, area: Rect, query: &str) {
    let wanted: Vec<String> = query.chars().map(|c| c.to_lowercase().collect()).collect();
    if wanted.is_empty() || area.is_empty() {
        return;
    }
    let smart = query.chars().any(char::is_uppercase);
    // Wide characters take a second cell, which is blank.
    let cells: Vec<(u16, String)> = (area.x..area.right())
        .filter_map(|x| {
            let cell = buffer.cell((x, area.y))?;
            let symbol = cell.symbol();
            let symbol = if smart {
                symbol.to_owned()
            } else {
                symbol.to_lowercase()
            };
            Some((x, symbol))
        })
        .collect();
    let wanted: Vec<String> = if smart {
        query.chars().map(String::from).collect()
    } else {
        wanted
    };
    let mut at = 0;
    while at < cells.len() {
        match fits(&cells[at..], &wanted) {
            Some(end) => {
                for (x, _) in &cells[at..at + end] {
                    if let Some(cell) = buffer.cell_mut((*x, area.y)) {
                        cell.set_style(Style::new().add_modifier(Modifier::REVERSED));
                    }
                }
                at += end;
            }
            None => at += 1,
        }
    }
}

/// How many cells the wanted characters take from here on.
fn fits(cells: &[(u16, String)], wanted: &[String]) -> Option<usize> {
    let mut at = 0;
    for char in wanted {
        let (_, symbol) = cells.get(at)?;
        if symbol != char {
            return None;
        }
        at += unicode_width::UnicodeWidthStr::width(symbol.as_str()).max(1);
    }
    Some(at)
}
