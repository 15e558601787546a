//! What stands in front of it all: help, choices, copies, lines of the file.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unspool_show::layout::{pad, wrap_text};
use unspool_show::wire::edit::{Amounts, EditResult};
use unspool_show::{Line, Paint, amount};

use crate::app::{App, Menu, Overlay, Stage, Trimming};
use crate::keys::{Binding, Place, TABLE};
use crate::paint::{put, put_all};

/// Draws it.
pub fn draw(app: &App, overlay: &Overlay, buffer: &mut Buffer) {
    match overlay {
        Overlay::Help { top } => help(app, *top, buffer),
        Overlay::Menu(menu) => choices(app, menu, buffer),
        Overlay::Trim(trimming) => trim(app, trimming, buffer),
        Overlay::Raw { line, lines, top } => {
            let title = format!("line {line} of the file");
            let waits = [Line::of(Paint::DIM, "reading …")];
            let lines = lines.as_deref().unwrap_or(&waits);
            let area = app.body();
            let shown = framed(app, buffer, area, &title, "Esc back");
            let last = lines.len().saturating_sub(usize::from(shown.height));
            put_all(
                buffer,
                shown,
                lines.iter().skip((*top).min(last)),
                app.color,
            );
        }
    }
}

/// A frame with a blank inside, which is returned.
fn framed(app: &App, buffer: &mut Buffer, area: Rect, title: &str, below: &str) -> Rect {
    let area = area.intersection(buffer.area);
    for y in area.y..area.bottom() {
        for x in area.x..area.right() {
            if let Some(cell) = buffer.cell_mut((x, y)) {
                cell.reset();
            }
        }
    }
    let width = usize::from(area.width);
    let edge = |left: &str, text: &str, right: &str| {
        let mut line = Line::of(Paint::DIM, left);
        if !text.is_empty() {
            line.push(Paint::BOLD, &format!(" {text} "));
        }
        let rest = width.saturating_sub(line.width() + 1);
        line.push(Paint::DIM, &"─".repeat(rest));
        line.push(Paint::DIM, right);
        line
    };
    put(buffer, area, &edge("╭─", title, "╮"), app.color);
    let bottom = Rect {
        y: area.bottom() - 1,
        height: 1,
        ..area
    };
    put(buffer, bottom, &edge("╰─", below, "╯"), app.color);
    for y in area.y + 1..area.bottom() - 1 {
        for x in [area.x, area.right() - 1] {
            let cell = Rect::new(x, y, 1, 1);
            put(buffer, cell, &Line::of(Paint::DIM, "│"), app.color);
        }
    }
    Rect {
        x: area.x + 2,
        y: area.y + 1,
        width: area.width.saturating_sub(4),
        height: area.height.saturating_sub(2),
    }
}

/// An area in the middle, as large as its lines need.
fn middle(app: &App, width: usize, height: usize) -> Rect {
    let body = app.body();
    let width = ((width + 4) as u16).min(body.width);
    let height = ((height + 2) as u16).min(body.height);
    Rect {
        x: body.x + (body.width - width) / 2,
        y: body.y + (body.height - height) / 2,
        width,
        height,
    }
}

fn widest(lines: &[Line]) -> usize {
    lines.iter().map(Line::width).max().unwrap_or(0)
}

fn boxed(app: &App, buffer: &mut Buffer, title: &str, below: &str, lines: &[Line]) {
    let width = widest(lines)
        .max(title.chars().count() + 4)
        .max(below.chars().count() + 4);
    let area = middle(app, width, lines.len());
    let inner = framed(app, buffer, area, title, below);
    put_all(buffer, inner, lines.iter(), app.color);
}

/// The keys, from the one table there is.
fn help(app: &App, top: usize, buffer: &mut Buffer) {
    let here = match app.session {
        Some(_) => Place::Session,
        None => Place::List,
    };
    let other = match here {
        Place::Session => (Place::List, "in the session list"),
        _ => (Place::Session, "in a session"),
    };
    let bound = |place: Place| -> Vec<Line> {
        let fits = move |binding: &&Binding| binding.place == place;
        TABLE.iter().filter(fits).map(key_line).collect()
    };
    let mut own = bound(here);
    own.extend(bound(Place::Any));
    let room = usize::from(app.size.0).saturating_sub(4);
    let mut lines = columns(&own, room);
    lines.push(Line::new());
    lines.push(Line::of(Paint::HEADING, other.1));
    lines.extend(columns(&bound(other.0), room));
    let area = middle(app, widest(&lines), lines.len());
    let inner = framed(
        app,
        buffer,
        area,
        "keys",
        "↑ ↓ scroll   any other key closes",
    );
    let last = lines.len().saturating_sub(usize::from(inner.height));
    put_all(buffer, inner, lines.iter().skip(top.min(last)), app.color);
}

/// Lines in as many columns as there is room for, read from top to bottom.
fn columns(lines: &[Line], room: usize) -> Vec<Line> {
    let width = widest(lines) + 2;
    let count = (room + 2) / width.max(1);
    let rows = lines.len().div_ceil(count.clamp(1, 3));
    let line = |row: usize| {
        let mut out = Line::new();
        for (at, line) in lines.iter().skip(row).step_by(rows.max(1)).enumerate() {
            pad(&mut out, at * width);
            out.append(line);
        }
        out
    };
    (0..rows).map(line).collect()
}

fn key_line(binding: &Binding) -> Line {
    let keys: Vec<String> = binding.keys.iter().map(|key| key.label()).collect();
    let mut line = Line::of(Paint::BOLD, &keys.join(" "));
    pad(&mut line, 12);
    line.push(Paint::PLAIN, binding.words);
    line
}

fn choices(app: &App, menu: &Menu, buffer: &mut Buffer) {
    let line = |(at, (key, words, _)): (usize, &(char, String, crate::app::Choice))| {
        let mark = if at == menu.at { "▌ " } else { "  " };
        let mut line = Line::of(Paint::PROMPT, mark);
        line.push(Paint::BOLD, &format!("{key}  "));
        line.push(Paint::PLAIN, words);
        line
    };
    let lines: Vec<Line> = menu.choices.iter().enumerate().map(line).collect();
    boxed(
        app,
        buffer,
        menu.title,
        "Enter confirm   Esc cancel",
        &lines,
    );
}

fn trim(app: &App, trimming: &Trimming, buffer: &mut Buffer) {
    let name = trimming.preset.unwrap_or("whole");
    let title = format!("a copy: {name}");
    let width = usize::from(app.size.0).saturating_sub(12).clamp(20, 72);
    match &trimming.stage {
        Stage::Planning => {
            let text = "calculating …";
            boxed(
                app,
                buffer,
                &title,
                "Esc cancel",
                &[Line::of(Paint::DIM, text)],
            );
        }
        Stage::Writing => {
            boxed(
                app,
                buffer,
                &title,
                "",
                &[Line::of(Paint::DIM, "writing …")],
            );
        }
        Stage::Planned(result) => {
            let lines = planned(result, width);
            boxed(app, buffer, &title, "Enter create   Esc cancel", &lines);
        }
        Stage::Done(result) => {
            let mut lines = planned(result, width);
            lines.push(Line::new());
            lines.push(Line::of(Paint::BOLD, &result.resume));
            if let Some(number) = result.undo {
                let text = format!("undo with `unspool undo {number}`");
                lines.push(Line::of(Paint::DIM, &text));
            }
            boxed(app, buffer, &title, "r resume   Esc back", &lines);
        }
        Stage::Failed(why) => {
            let lines = wrap_text(Paint::ERROR, why, width);
            boxed(app, buffer, &title, "Esc back", &lines);
        }
    }
}

fn planned(result: &EditResult, width: usize) -> Vec<Line> {
    let done = if result.dry_run {
        "would create"
    } else {
        "created"
    };
    let title = result.title.as_deref().unwrap_or_default();
    let mut lines = wrap_text(Paint::BOLD, &format!("{done} “{title}”"), width);
    let mut fact = |name: &str, text: String| {
        let mut line = Line::of(Paint::DIM, &format!("{name:<9}"));
        line.push(Paint::PLAIN, &text);
        lines.push(line);
    };
    let lines_of = result.lines;
    fact(
        "lines",
        format!(
            "{} kept, {} changed, {} dropped",
            amount::grouped(lines_of.kept),
            amount::grouped(lines_of.changed),
            amount::grouped(lines_of.dropped)
        ),
    );
    fact("bytes", change(result.bytes, amount::bytes));
    fact("tokens", change(result.tokens, amount::tokens));
    fact(
        "calls",
        format!(
            "{} removed, {} truncated",
            result.calls.removed, result.calls.truncated
        ),
    );
    for lost in result.lost.iter().take(6) {
        let tokens = amount::tokens(lost.tokens);
        fact("lost", format!("{}, about {tokens} tokens", lost.what));
    }
    let clients = result.checks.iter();
    let clients: Vec<&str> = clients
        .filter(|check| check.ok && check.detail.starts_with("resumes"))
        .map(|check| check.name.as_str())
        .collect();
    if !clients.is_empty() {
        fact("resumes", format!("in {}", clients.join(", ")));
    }
    lines
}

fn change(amounts: Amounts, words: impl Fn(u64) -> String) -> String {
    let Amounts { before, after } = amounts;
    let mut text = format!("{} → {}", words(before), words(after));
    if before > 0 && before != after {
        let percent = (after as f64 - before as f64) / before as f64 * 100.0;
        let sign = if percent < 0.0 { "−" } else { "+" };
        text.push_str(&format!(" ({sign}{:.0} %)", percent.abs()));
    }
    text
}
