//! The list: sessions by what they need, or what a search found.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use unspool_model::time::Time;
use unspool_model::view::status::Need;
use unspool_show::layout::{cut, cut_path, pad, wrap_text};
use unspool_show::wire::hit::HitRow;
use unspool_show::wire::session::SessionRow;
use unspool_show::{Line, Paint, amount};
use unspool_store::project::project_name;

use super::{bar, header_area, hints};
use crate::app::App;
use crate::keys::{Action, Place};
use crate::list::Entry;
use crate::paint::{mark, put, put_all, put_both};

/// Draws the list and, where there is room, what is chosen beside it.
pub fn draw(app: &App, buffer: &mut Buffer) {
    let (left, right) = app.halves();
    header(app, buffer);
    let entries = app.list.entries();
    if entries.is_empty() {
        put(buffer, left, &empty(app), app.color);
    }
    let shown = entries.iter().enumerate().skip(app.list.top);
    for (y, (at, entry)) in (left.y..left.bottom()).zip(shown) {
        let row = Rect {
            y,
            height: 1,
            width: left.width.saturating_sub(u16::from(right.is_some())),
            ..left
        };
        put(
            buffer,
            row,
            &line(app, entry, usize::from(row.width)),
            app.color,
        );
        if !matches!(entry, Entry::Title(..)) && !app.list.query.is_empty() {
            mark(buffer, row, app.list.query.trim());
        }
        if at == app.list.at() && !matches!(entry, Entry::Title(..)) {
            buffer.set_style(row, Style::new().add_modifier(Modifier::REVERSED));
        }
    }
    if let Some(right) = right {
        preview(app, right, buffer);
    }
}

fn header(app: &App, buffer: &mut Buffer) {
    let list = &app.list;
    let mut left = Line::of(Paint::PROMPT, "❯ ");
    if list.query.is_empty() && !list.typing {
        left.push(Paint::DIM, "type to search");
    } else {
        left.push(Paint::BOLD, &list.query);
        left.push(Paint::PROMPT, "▏");
    }
    let mut right = Line::new();
    if list.searching {
        right.push(Paint::DIM, "searching … ");
    }
    for (need, count) in list.counts().into_iter().filter(|(_, count)| *count > 0) {
        right.push(paint(need), &format!("{} ", need.counted(count)));
        right.push(Paint::DIM, "· ");
    }
    let more = if list.scanned { "" } else { "+" };
    right.push(
        Paint::DIM,
        &format!("{}{more}", amount::count(list.len() as u64, "session")),
    );
    put_both(buffer, header_area(app), &left, &right, app.color);
}

fn empty(app: &App) -> Line {
    let list = &app.list;
    let text = if let Some(trouble) = &list.trouble {
        return Line::of(Paint::WARN, &format!("  {trouble}"));
    } else if !list.query.trim().is_empty() {
        if list.searching {
            "  searching …"
        } else {
            "  no matches; Esc clears the search"
        }
    } else if list.scanned {
        "  no sessions"
    } else {
        "  reading …"
    };
    Line::of(Paint::DIM, text)
}

fn paint(need: Need) -> Paint {
    match need {
        Need::You => Paint {
            bold: true,
            ..Paint::WARN
        },
        Need::Working => Paint::ADDED,
        Need::Turn => Paint::CODE,
        Need::Rest => Paint::DIM,
    }
}

fn line(app: &App, entry: &Entry, width: usize) -> Line {
    match entry {
        Entry::Title(title, count) => {
            let mut line = Line::of(Paint::BOLD, title);
            line.push(Paint::DIM, &format!("  {count} "));
            let rest = width.saturating_sub(line.width());
            line.push(Paint::DIM, &"─".repeat(rest));
            line
        }
        Entry::Session(at) => match app.list.row(*at) {
            Some(row) => session(app, row, width),
            None => Line::new(),
        },
        Entry::Hit(at) => match app.list.hits.get(*at) {
            Some(hit) => hit_line(app, hit, width),
            None => Line::new(),
        },
    }
}

/// The sign of a state: it says the same without colour.
pub fn sign(status: &str) -> &'static str {
    match status {
        "waiting_for_approval" => "!",
        "error" => "✗",
        "working" => "●",
        "compacting" => "◌",
        "waiting_for_input" => "◆",
        _ => "·",
    }
}

/// What works for a session beside its model.
fn busy(row: &SessionRow) -> Option<String> {
    let count = |number: usize, one| (number > 0).then(|| amount::count(number as u64, one));
    let parts = [
        count(row.agents_working, "sub-agent"),
        count(row.tasks_running, "background task"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("{} running", parts.join(" and ")))
}

/// What a session cost; of one that was not read whole nobody knows yet.
pub fn cost(row: &SessionRow) -> String {
    if row.partial {
        return "…".to_owned();
    }
    amount::cost_at_least(row.cost_usd, row.cost_usd_known)
}

fn age(app: &App, row: &SessionRow) -> String {
    let last = row.last.as_deref().and_then(Time::parse);
    last.map_or_else(String::new, |last| amount::age(app.now.since(last)))
}

fn session(app: &App, row: &SessionRow, width: usize) -> Line {
    let need = row.need();
    let mut right = Line::new();
    if width >= 70 {
        let full = row.context_tokens.map_or_else(String::new, |tokens| {
            amount::fullness(tokens, row.context_limit)
        });
        right.push(Paint::DIM, &format!("{full:>11}"));
        right.push(
            Paint::PLAIN,
            &format!(
                "{:>9}",
                amount::cost_at_least(row.cost_usd, row.cost_usd_known)
            ),
        );
        right.push(Paint::PLAIN, "  ");
    }
    right.push(paint(need), &format!("{:<9}", row.doing()));
    let mut line = Line::of(paint(need), &format!(" {} ", sign(&row.status)));
    line.push(Paint::DIM, &format!("{:>4}  ", age(app, row)));
    let project = cut_path(
        project_name(&row.project),
        if width >= 100 { 18 } else { 12 },
    );
    let mut named = Line::of(Paint::VERB, &project);
    pad(&mut named, if width >= 100 { 19 } else { 13 });
    line.append(&named);
    let room = width.saturating_sub(line.width() + right.width() + 2);
    let title = row.title.as_deref().unwrap_or("(no title)");
    let mut titled = Line::of(Paint::PLAIN, title);
    if let Some(tag) = &row.tag {
        titled.push(Paint::DIM, &format!("  #{tag}"));
    }
    line.append(&cut(&titled, room));
    pad(&mut line, width.saturating_sub(right.width() + 1));
    line.push(Paint::PLAIN, " ");
    line.append(&right);
    line
}

fn hit_line(app: &App, hit: &HitRow, width: usize) -> Line {
    let at = hit.at.as_deref().and_then(Time::parse);
    let age = at.map_or_else(String::new, |at| amount::age(app.now.since(at)));
    let row = app.list.session(&hit.session);
    let title = row.and_then(|row| row.title.as_deref()).unwrap_or_default();
    let mut line = Line::of(Paint::DIM, &format!("   {age:>4}  "));
    let mut named = Line::of(Paint::VERB, &cut_path(project_name(&hit.project), 12));
    pad(&mut named, 13);
    line.append(&named);
    if width >= 90 {
        let mut title = cut(&Line::of(Paint::DIM, title), 24);
        pad(&mut title, 25);
        line.append(&title);
    }
    line.push(Paint::DIM, &format!("{:<9}", hit.r#where));
    // The match must be in view.
    let text = hit.snippet.replace(['\n', '\t'], " ");
    let room = width.saturating_sub(line.width());
    line.push(Paint::PLAIN, &near(&text, app.list.query.trim(), room / 3));
    line
}

/// The text from a little before the match on.
fn near(text: &str, query: &str, before: usize) -> String {
    let lower = text.to_lowercase();
    let at = lower.find(&query.to_lowercase()).unwrap_or(0);
    let start: usize = lower[..at].chars().count().saturating_sub(before);
    let cut: String = text.chars().skip(start).collect();
    match start {
        0 => cut,
        _ => format!("…{cut}"),
    }
}

/// What is known about the chosen session.
fn preview(app: &App, area: Rect, buffer: &mut Buffer) {
    for y in area.y..area.bottom() {
        let cell = Rect::new(area.x, y, 1, 1);
        put(buffer, cell, &Line::of(Paint::DIM, "│"), app.color);
    }
    let Some(row) = app.list.chosen() else {
        return;
    };
    let inner = Rect {
        x: area.x + 2,
        width: area.width.saturating_sub(3),
        ..area
    };
    let width = usize::from(inner.width);
    let mut lines = wrap_text(
        Paint::BOLD,
        row.title.as_deref().unwrap_or("(no title)"),
        width,
    );
    lines.truncate(3);
    lines.push(Line::of(Paint::VERB, &cut_path(&row.project, width)));
    let facts = [
        row.git_branch.clone(),
        row.model.clone(),
        (!row.partial).then(|| amount::count(row.turns as u64, "turn")),
        (!row.partial).then(|| amount::count(row.calls as u64, "call")),
        (row.agents > 0).then(|| amount::count(row.agents as u64, "sub-agent")),
        Some(cost(row)),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    lines.extend(wrap_text(Paint::DIM, &facts.join(" · "), width));
    if let (Some(tokens), Some(limit)) = (row.context_tokens, row.context_limit) {
        let share = tokens as f64 / limit.max(1) as f64;
        let text = format!(
            "{} {}",
            bar(share, 16),
            amount::fullness(tokens, Some(limit))
        );
        lines.push(Line::of(Paint::CODE, &text));
    }
    lines.push(Line::new());
    let need = row.need();
    let since = row.status_since.as_deref().and_then(Time::parse);
    let since = since.map_or_else(String::new, |since| {
        format!(" for {}", amount::duration(app.now.since(since)))
    });
    let sure = if row.status_sure {
        "says"
    } else {
        "probably, says"
    };
    let state = format!(
        "{} {}{since}, {sure} the {}",
        sign(&row.status),
        row.doing(),
        row.status_from
    );
    lines.extend(wrap_text(paint(need), &state, width));
    for text in [&row.question, &row.error].into_iter().flatten() {
        lines.extend(wrap_text(Paint::WARN, text, width).into_iter().take(6));
    }
    if let Some(resets) = row.resets.as_deref().and_then(Time::parse) {
        let text = format!("limit resets at {}", amount::moment(resets, &app.zone));
        lines.extend(wrap_text(Paint::WARN, &text, width));
    }
    if let Some(busy) = busy(row) {
        lines.extend(wrap_text(Paint::ADDED, &busy, width));
    }
    if let Some(pending) = &row.pending_tool {
        let subject = pending.subject.as_deref().unwrap_or_default();
        lines.extend(wrap_text(
            Paint::WARN,
            &format!("{} {subject}", pending.name),
            width,
        ));
    }
    let again = row
        .last_prompt
        .as_ref()
        .filter(|_| row.last_prompt != row.goal);
    let again = again.cloned();
    for (title, text) in [
        ("first prompt", &row.goal),
        ("last prompt", &again),
        ("last reply", &row.recent_output),
    ] {
        let Some(text) = text.as_deref().filter(|text| !text.trim().is_empty()) else {
            continue;
        };
        lines.push(Line::new());
        lines.push(Line::of(Paint::DIM, title));
        lines.extend(wrap_text(Paint::PLAIN, text, width).into_iter().take(12));
    }
    lines.push(Line::new());
    lines.push(Line::of(Paint::DIM, &row.id));
    put_all(buffer, inner, lines.iter(), app.color);
}

/// What keys do here.
pub fn footer(app: &App) -> (Line, Line) {
    let left = if app.list.query.is_empty() {
        hints(
            Place::List,
            &[
                (Action::Open, "open"),
                (Action::Resume, "resume"),
                (Action::Trim, "trim"),
                (Action::Export, "export"),
                (Action::Copy, "copy"),
                (Action::Quit, "quit"),
                (Action::Help, "help"),
            ],
        )
    } else {
        hints(
            Place::List,
            &[
                (Action::Open, "open"),
                (Action::Down, "next"),
                (Action::Resume, "resume"),
                (Action::Back, "clear"),
            ],
        )
    };
    (left, Line::new())
}
