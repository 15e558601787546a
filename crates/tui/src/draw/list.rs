//! The list: sessions by what they need, or what a search found.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use unspool_model::time::Time;
use unspool_model::view::status::AttentionNeed;
use unspool_show::layout::{cut, cut_path, pad, wrap_text};
use unspool_show::wire::hit::HitRow;
use unspool_show::wire::session::SessionJson;
use unspool_show::{StyledLine, TextStyle, format};
use unspool_store::project::project_name;

use super::{bar, header_area, hints};
use crate::app::BrowserApp;
use crate::keys::{KeyAction, KeyContext};
use crate::line_painting::{mark, put, put_all, put_both};
use crate::session_list::ListEntry;

/// Draws the list and, where there is room, what is chosen beside it.
pub fn draw(app: &BrowserApp, buffer: &mut Buffer) {
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
        if !matches!(entry, ListEntry::Title(..)) && !app.list.query.is_empty() {
            mark(buffer, row, app.list.query.trim());
        }
        if at == app.list.at() && !matches!(entry, ListEntry::Title(..)) {
            buffer.set_style(row, Style::new().add_modifier(Modifier::REVERSED));
        }
    }
    if let Some(right) = right {
        preview(app, right, buffer);
    }
}

fn header(app: &BrowserApp, buffer: &mut Buffer) {
    let list = &app.list;
    let mut left = StyledLine::of(TextStyle::PROMPT, "❯ ");
    if list.query.is_empty() && !list.typing {
        left.push(TextStyle::DIM, "type to search");
    } else {
        left.push(TextStyle::BOLD, &list.query);
        left.push(TextStyle::PROMPT, "▏");
    }
    let mut right = StyledLine::new();
    if list.searching {
        right.push(TextStyle::DIM, "searching … ");
    }
    for (need, count) in list.counts().into_iter().filter(|(_, count)| *count > 0) {
        right.push(paint(need), &format!("{} ", need.counted(count)));
        right.push(TextStyle::DIM, "· ");
    }
    let more = if list.scanned { "" } else { "+" };
    right.push(
        TextStyle::DIM,
        &format!("{}{more}", format::count(list.len() as u64, "session")),
    );
    put_both(buffer, header_area(app), &left, &right, app.color);
}

fn empty(app: &BrowserApp) -> StyledLine {
    let list = &app.list;
    let text = if let Some(trouble) = &list.trouble {
        return StyledLine::of(TextStyle::WARN, &format!("  {trouble}"));
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
    StyledLine::of(TextStyle::DIM, text)
}

fn paint(need: AttentionNeed) -> TextStyle {
    match need {
        AttentionNeed::You => TextStyle {
            bold: true,
            ..TextStyle::WARN
        },
        AttentionNeed::Working => TextStyle::ADDED,
        AttentionNeed::Turn => TextStyle::CODE,
        AttentionNeed::Rest => TextStyle::DIM,
    }
}

fn line(app: &BrowserApp, entry: &ListEntry, width: usize) -> StyledLine {
    match entry {
        ListEntry::Title(title, count) => {
            let mut line = StyledLine::of(TextStyle::BOLD, title);
            line.push(TextStyle::DIM, &format!("  {count} "));
            let rest = width.saturating_sub(line.width());
            line.push(TextStyle::DIM, &"─".repeat(rest));
            line
        }
        ListEntry::Session(at) => match app.list.row(*at) {
            Some(row) => session(app, row, width),
            None => StyledLine::new(),
        },
        ListEntry::Hit(at) => match app.list.hits.get(*at) {
            Some(hit) => hit_line(app, hit, width),
            None => StyledLine::new(),
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
fn busy(row: &SessionJson) -> Option<String> {
    let count = |number: usize, one| (number > 0).then(|| format::count(number as u64, one));
    let parts = [
        count(row.agents_working, "sub-agent"),
        count(row.tasks_running, "background task"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("{} running", parts.join(" and ")))
}

/// What a session cost; of one that was not read whole nobody knows yet.
pub fn cost(row: &SessionJson) -> String {
    if row.partial {
        return "…".to_owned();
    }
    format::cost_at_least(row.cost_usd, row.cost_usd_known)
}

fn age(app: &BrowserApp, row: &SessionJson) -> String {
    let last = row.last.as_deref().and_then(Time::parse);
    last.map_or_else(String::new, |last| format::age(app.now.since(last)))
}

fn session(app: &BrowserApp, row: &SessionJson, width: usize) -> StyledLine {
    let need = row.need();
    let mut right = StyledLine::new();
    if width >= 70 {
        let full = row.context_tokens.map_or_else(String::new, |tokens| {
            format::fullness(tokens, row.context_limit)
        });
        right.push(TextStyle::DIM, &format!("{full:>11}"));
        right.push(
            TextStyle::PLAIN,
            &format!(
                "{:>9}",
                format::cost_at_least(row.cost_usd, row.cost_usd_known)
            ),
        );
        right.push(TextStyle::PLAIN, "  ");
    }
    right.push(paint(need), &format!("{:<9}", row.doing()));
    let mut line = StyledLine::of(paint(need), &format!(" {} ", sign(&row.status)));
    line.push(TextStyle::DIM, &format!("{:>4}  ", age(app, row)));
    let project = cut_path(
        project_name(&row.project),
        if width >= 100 { 18 } else { 12 },
    );
    let mut named = StyledLine::of(TextStyle::VERB, &project);
    pad(&mut named, if width >= 100 { 19 } else { 13 });
    line.append(&named);
    let room = width.saturating_sub(line.width() + right.width() + 2);
    let title = row.title.as_deref().unwrap_or("(no title)");
    let mut titled = StyledLine::of(TextStyle::PLAIN, title);
    if let Some(tag) = &row.tag {
        titled.push(TextStyle::DIM, &format!("  #{tag}"));
    }
    line.append(&cut(&titled, room));
    pad(&mut line, width.saturating_sub(right.width() + 1));
    line.push(TextStyle::PLAIN, " ");
    line.append(&right);
    line
}

fn hit_line(app: &BrowserApp, hit: &HitRow, width: usize) -> StyledLine {
    let at = hit.at.as_deref().and_then(Time::parse);
    let age = at.map_or_else(String::new, |at| format::age(app.now.since(at)));
    let row = app.list.session(&hit.session);
    let title = row.and_then(|row| row.title.as_deref()).unwrap_or_default();
    let mut line = StyledLine::of(TextStyle::DIM, &format!("   {age:>4}  "));
    let mut named = StyledLine::of(TextStyle::VERB, &cut_path(project_name(&hit.project), 12));
    pad(&mut named, 13);
    line.append(&named);
    if width >= 90 {
        let mut title = cut(&StyledLine::of(TextStyle::DIM, title), 24);
        pad(&mut title, 25);
        line.append(&title);
    }
    line.push(TextStyle::DIM, &format!("{:<9}", hit.r#where));
    // The match must be in view.
    let text = hit.snippet.replace(['\n', '\t'], " ");
    let room = width.saturating_sub(line.width());
    line.push(
        TextStyle::PLAIN,
        &near(&text, app.list.query.trim(), room / 3),
    );
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
fn preview(app: &BrowserApp, area: Rect, buffer: &mut Buffer) {
    for y in area.y..area.bottom() {
        let cell = Rect::new(area.x, y, 1, 1);
        put(
            buffer,
            cell,
            &StyledLine::of(TextStyle::DIM, "│"),
            app.color,
        );
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
        TextStyle::BOLD,
        row.title.as_deref().unwrap_or("(no title)"),
        width,
    );
    lines.truncate(3);
    lines.push(StyledLine::of(
        TextStyle::VERB,
        &cut_path(&row.project, width),
    ));
    let facts = [
        row.git_branch.clone(),
        row.model.clone(),
        (!row.partial).then(|| format::count(row.turns as u64, "turn")),
        (!row.partial).then(|| format::count(row.calls as u64, "call")),
        (row.agents > 0).then(|| format::count(row.agents as u64, "sub-agent")),
        Some(cost(row)),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    lines.extend(wrap_text(TextStyle::DIM, &facts.join(" · "), width));
    if let (Some(tokens), Some(limit)) = (row.context_tokens, row.context_limit) {
        let share = tokens as f64 / limit.max(1) as f64;
        let text = format!(
            "{} {}",
            bar(share, 16),
            format::fullness(tokens, Some(limit))
        );
        lines.push(StyledLine::of(TextStyle::CODE, &text));
    }
    lines.push(StyledLine::new());
    let need = row.need();
    let since = row.status_since.as_deref().and_then(Time::parse);
    let since = since.map_or_else(String::new, |since| {
        format!(" for {}", format::duration(app.now.since(since)))
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
        lines.extend(wrap_text(TextStyle::WARN, text, width).into_iter().take(6));
    }
    if let Some(resets) = row.resets.as_deref().and_then(Time::parse) {
        let text = format!("limit resets at {}", format::moment(resets, &app.zone));
        lines.extend(wrap_text(TextStyle::WARN, &text, width));
    }
    if let Some(busy) = busy(row) {
        lines.extend(wrap_text(TextStyle::ADDED, &busy, width));
    }
    if let Some(pending) = &row.pending_tool {
        let subject = pending.subject.as_deref().unwrap_or_default();
        lines.extend(wrap_text(
            TextStyle::WARN,
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
        lines.push(StyledLine::new());
        lines.push(StyledLine::of(TextStyle::DIM, title));
        lines.extend(
            wrap_text(TextStyle::PLAIN, text, width)
                .into_iter()
                .take(12),
        );
    }
    lines.push(StyledLine::new());
    lines.push(StyledLine::of(TextStyle::DIM, &row.id));
    put_all(buffer, inner, lines.iter(), app.color);
}

/// What keys do here.
pub fn footer(app: &BrowserApp) -> (StyledLine, StyledLine) {
    let left = if app.list.query.is_empty() {
        hints(
            KeyContext::List,
            &[
                (KeyAction::Open, "open"),
                (KeyAction::Resume, "resume"),
                (KeyAction::Trim, "trim"),
                (KeyAction::Export, "export"),
                (KeyAction::Copy, "copy"),
                (KeyAction::Quit, "quit"),
                (KeyAction::Help, "help"),
            ],
        )
    } else {
        hints(
            KeyContext::List,
            &[
                (KeyAction::Open, "open"),
                (KeyAction::Down, "next"),
                (KeyAction::Resume, "resume"),
                (KeyAction::Back, "clear"),
            ],
        )
    };
    (left, StyledLine::new())
}
