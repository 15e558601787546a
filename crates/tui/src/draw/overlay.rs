//! What stands in front of it all: help, choices, copies, lines of the file.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unspool_show::layout::{pad, wrap_text};
use unspool_show::wire::edit::{Amounts, EditResult};
use unspool_show::{StyledLine, TextStyle, format};

use crate::app::{ActionMenu, BrowserApp, ScreenOverlay, TrimDialog, TrimStage};
use crate::keys::{KeyBinding, KeyContext, TABLE};
use crate::line_painting::{put, put_all};

/// Draws it.
pub fn draw(app: &BrowserApp, overlay: &ScreenOverlay, buffer: &mut Buffer) {
    match overlay {
        ScreenOverlay::Help { top } => help(app, *top, buffer),
        ScreenOverlay::Menu(menu) => choices(app, menu, buffer),
        ScreenOverlay::Trim(trimming) => trim(app, trimming, buffer),
        ScreenOverlay::Raw { line, lines, top } => {
            let title = format!("line {line} of the file");
            let waits = [StyledLine::of(TextStyle::DIM, "reading …")];
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
fn framed(app: &BrowserApp, buffer: &mut Buffer, area: Rect, title: &str, below: &str) -> Rect {
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
        let mut line = StyledLine::of(TextStyle::DIM, left);
        if !text.is_empty() {
            line.push(TextStyle::BOLD, &format!(" {text} "));
        }
        let rest = width.saturating_sub(line.width() + 1);
        line.push(TextStyle::DIM, &"─".repeat(rest));
        line.push(TextStyle::DIM, right);
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
            put(
                buffer,
                cell,
                &StyledLine::of(TextStyle::DIM, "│"),
                app.color,
            );
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
fn middle(app: &BrowserApp, width: usize, height: usize) -> Rect {
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

fn widest(lines: &[StyledLine]) -> usize {
    lines.iter().map(StyledLine::width).max().unwrap_or(0)
}

fn boxed(app: &BrowserApp, buffer: &mut Buffer, title: &str, below: &str, lines: &[StyledLine]) {
    let width = widest(lines)
        .max(title.chars().count() + 4)
        .max(below.chars().count() + 4);
    let area = middle(app, width, lines.len());
    let inner = framed(app, buffer, area, title, below);
    put_all(buffer, inner, lines.iter(), app.color);
}

/// The keys, from the one table there is.
fn help(app: &BrowserApp, top: usize, buffer: &mut Buffer) {
    let here = match app.session {
        Some(_) => KeyContext::Session,
        None => KeyContext::List,
    };
    let other = match here {
        KeyContext::Session => (KeyContext::List, "in the session list"),
        _ => (KeyContext::Session, "in a session"),
    };
    let bound = |place: KeyContext| -> Vec<StyledLine> {
        let fits = move |binding: &&KeyBinding| binding.place == place;
        TABLE.iter().filter(fits).map(key_line).collect()
    };
    let mut own = bound(here);
    own.extend(bound(KeyContext::Any));
    let room = usize::from(app.size.0).saturating_sub(4);
    let mut lines = columns(&own, room);
    lines.push(StyledLine::new());
    lines.push(StyledLine::of(TextStyle::HEADING, other.1));
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
fn columns(lines: &[StyledLine], room: usize) -> Vec<StyledLine> {
    let width = widest(lines) + 2;
    let count = (room + 2) / width.max(1);
    let rows = lines.len().div_ceil(count.clamp(1, 3));
    let line = |row: usize| {
        let mut out = StyledLine::new();
        for (at, line) in lines.iter().skip(row).step_by(rows.max(1)).enumerate() {
            pad(&mut out, at * width);
            out.append(line);
        }
        out
    };
    (0..rows).map(line).collect()
}

fn key_line(binding: &KeyBinding) -> StyledLine {
    let keys: Vec<String> = binding.keys.iter().map(|key| key.label()).collect();
    let mut line = StyledLine::of(TextStyle::BOLD, &keys.join(" "));
    pad(&mut line, 12);
    line.push(TextStyle::PLAIN, binding.words);
    line
}

fn choices(app: &BrowserApp, menu: &ActionMenu, buffer: &mut Buffer) {
    let line = |(at, (key, words, _)): (usize, &(char, String, crate::app::ActionMenuChoice))| {
        let mark = if at == menu.at { "▌ " } else { "  " };
        let mut line = StyledLine::of(TextStyle::PROMPT, mark);
        line.push(TextStyle::BOLD, &format!("{key}  "));
        line.push(TextStyle::PLAIN, words);
        line
    };
    let lines: Vec<StyledLine> = menu.choices.iter().enumerate().map(line).collect();
    boxed(
        app,
        buffer,
        menu.title,
        "Enter confirm   Esc cancel",
        &lines,
    );
}

fn trim(app: &BrowserApp, trimming: &TrimDialog, buffer: &mut Buffer) {
    let name = trimming.preset.unwrap_or("whole");
    let title = format!("a copy: {name}");
    let width = usize::from(app.size.0).saturating_sub(12).clamp(20, 72);
    match &trimming.stage {
        TrimStage::Planning => {
            let text = "calculating …";
            boxed(
                app,
                buffer,
                &title,
                "Esc cancel",
                &[StyledLine::of(TextStyle::DIM, text)],
            );
        }
        TrimStage::Writing => {
            boxed(
                app,
                buffer,
                &title,
                "",
                &[StyledLine::of(TextStyle::DIM, "writing …")],
            );
        }
        TrimStage::Planned(result) => {
            let lines = planned(result, width);
            boxed(app, buffer, &title, "Enter create   Esc cancel", &lines);
        }
        TrimStage::Done(result) => {
            let mut lines = planned(result, width);
            lines.push(StyledLine::new());
            lines.push(StyledLine::of(TextStyle::BOLD, &result.resume));
            if let Some(number) = result.undo {
                let text = format!("undo with `unspool undo {number}`");
                lines.push(StyledLine::of(TextStyle::DIM, &text));
            }
            boxed(app, buffer, &title, "r resume   Esc back", &lines);
        }
        TrimStage::Failed(why) => {
            let lines = wrap_text(TextStyle::ERROR, why, width);
            boxed(app, buffer, &title, "Esc back", &lines);
        }
    }
}

fn planned(result: &EditResult, width: usize) -> Vec<StyledLine> {
    let done = if result.dry_run {
        "would create"
    } else {
        "created"
    };
    let title = result.title.as_deref().unwrap_or_default();
    let mut lines = wrap_text(TextStyle::BOLD, &format!("{done} “{title}”"), width);
    let mut fact = |name: &str, text: String| {
        let mut line = StyledLine::of(TextStyle::DIM, &format!("{name:<9}"));
        line.push(TextStyle::PLAIN, &text);
        lines.push(line);
    };
    let lines_of = result.lines;
    fact(
        "lines",
        format!(
            "{} kept, {} changed, {} dropped",
            format::grouped(lines_of.kept),
            format::grouped(lines_of.changed),
            format::grouped(lines_of.dropped)
        ),
    );
    fact("bytes", change(result.bytes, format::bytes));
    fact("tokens", change(result.tokens, format::tokens));
    fact(
        "calls",
        format!(
            "{} removed, {} truncated",
            result.calls.removed, result.calls.truncated
        ),
    );
    for lost in result.lost.iter().take(6) {
        let tokens = format::tokens(lost.tokens);
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
