//! What stands beside a conversation: context, tokens, files.

use unspool_model::price::Cost;
use unspool_model::usage::Usage;
use unspool_model::view::cost::CostSum;
use unspool_model::view::session_usage::{self, Used};
use unspool_model::view::{agents, context, files};
use unspool_show::layout::wrap_text;
use unspool_show::table::{Column, Table};
use unspool_show::{Line, Paint, amount};
use unspool_store::family::Agent;

use super::Shown;
use crate::page::{Conversation, Side};

/// How many of the largest pieces are named.
const LARGEST: usize = 12;

/// The lines of a side.
pub fn lines(shown: &mut Shown<'_>, side: Side, of: &Conversation, width: usize) -> Vec<Line> {
    if shown.family.main.is_partial() {
        return wrap_text(Paint::DIM, "the session is still loading …", width);
    }
    match side {
        Side::Context => fill(shown, of, width),
        Side::Usage => usage(shown, width),
        Side::Files => touched(shown, of, width),
    }
}

fn fill(shown: &mut Shown<'_>, of: &Conversation, width: usize) -> Vec<Line> {
    let Some(told) = shown.reading(of) else {
        return Vec::new();
    };
    let context = context::context(told.session, told.source, LARGEST);
    if context.categories.is_empty() {
        return wrap_text(Paint::DIM, "the session has no context", width);
    }
    let how = if context.measured {
        "measured at the last reply"
    } else {
        "estimated"
    };
    let total = format!("{} tokens, {how}", amount::tokens(context.tokens));
    let mut lines = wrap_text(Paint::BOLD, &total, width);
    lines.push(Line::new());
    let mut table = Table::new(vec![
        Column::flexible("what", 10),
        Column::number("tokens"),
        Column::number("share"),
        Column::fixed("").optional(),
    ]);
    for one in &context.categories {
        table.row([
            one.category.clone(),
            amount::tokens(one.tokens),
            percent(one.share),
            bar(one.share),
        ]);
    }
    lines.extend(table.lines(width));
    if !context.largest.is_empty() {
        lines.push(Line::new());
        lines.push(Line::of(Paint::BOLD, "largest blocks"));
        let mut table = Table::new(vec![
            Column::number("tokens"),
            Column::flexible("what", 8),
            Column::flexible("", 12),
        ]);
        for one in &context.largest {
            table.row([
                amount::tokens(one.tokens),
                one.category.clone(),
                one.label.clone(),
            ]);
        }
        lines.extend(table.lines(width));
    }
    lines
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

fn bar(share: f64) -> String {
    let eighths = (share * 12.0 * 8.0).round() as usize;
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    format!("{}{part}", "█".repeat(eighths / 8))
}

fn usage(shown: &Shown<'_>, width: usize) -> Vec<Line> {
    let family = shown.family;
    let prices = &shown.book.library.prices;
    let session = &family.main.session;
    let used = family.used(|files| session_usage::session_usage(files, prices));
    let all = used.all();
    let total = format!(
        "{} tokens, {}",
        amount::tokens(all.usage.total()),
        cost_told(all.cost)
    );
    let mut lines = wrap_text(Paint::BOLD, &total, width);
    lines.push(Line::new());
    lines.extend(kinds(all.usage).lines(width));
    if used.client.messages > 0 {
        let client = format!(
            "of these, the client (compaction, suggestions, warm-up): {} tokens, {}",
            amount::tokens(used.client.usage.total()),
            cost_told(used.client.cost)
        );
        lines.extend(wrap_text(Paint::DIM, &client, width));
    }
    lines.push(Line::new());
    let by_model = family.used(|files| session_usage::usage_by_model(files, prices));
    lines.extend(models(by_model).lines(width));
    let files: Vec<_> = family.agents.iter().map(Agent::listed).collect();
    let rows = agents::agents(session, &family.main.source, &files, &family.runs);
    if !rows.is_empty() {
        lines.push(Line::new());
        let mut table = Table::new(vec![
            Column::flexible("sub-agent", 12),
            Column::number("calls"),
            Column::number("tokens"),
            Column::number("cost").optional(),
        ]);
        let by_agent =
            family.used(|files| session_usage::usage_by_agent(files, &rows, |at| at, prices));
        for (one, used) in rows.iter().zip(by_agent) {
            let name = one.name.as_deref().or(one.description.as_deref());
            let name = name.unwrap_or(&one.agent);
            table.row([
                format!("{}{name}", "  ".repeat(one.depth - 1)),
                one.calls.to_string(),
                amount::tokens(used.unwrap_or_default().usage.total()),
                used.map_or_else(|| "?".to_owned(), |used| amount::cost_sum(used.cost)),
            ]);
        }
        lines.extend(table.lines(width));
    }
    lines
}

fn cost_told(cost: CostSum) -> String {
    let whole = cost.total().map(Cost::usd);
    amount::cost_told(whole, Some(cost.known.usd()), cost.unpriced)
}

fn kinds(usage: Usage) -> Table {
    let mut table = Table::new(vec![Column::fixed("tokens"), Column::number("")]);
    for (what, count) in [
        ("input", usage.input),
        ("output", usage.output),
        ("cache read", usage.cache_read),
        ("cache write, 5 min", usage.cache_write_5m),
        ("cache write, 1 h", usage.cache_write_1h),
    ] {
        table.row([what.to_owned(), amount::grouped(count)]);
    }
    table
}

/// Replies by model.
fn models(by_model: Vec<(String, Used)>) -> Table {
    let mut table = Table::new(vec![
        Column::flexible("model", 12),
        Column::number("replies"),
        Column::number("tokens"),
        Column::number("cost"),
    ]);
    for (model, used) in by_model {
        table.row([
            model,
            amount::grouped(used.messages),
            amount::tokens(used.usage.total()),
            amount::cost_sum(used.cost),
        ]);
    }
    table
}

fn touched(shown: &mut Shown<'_>, of: &Conversation, width: usize) -> Vec<Line> {
    let Some(told) = shown.reading(of) else {
        return Vec::new();
    };
    let rows = files::files(told.session, told.source);
    if rows.is_empty() {
        return wrap_text(Paint::DIM, "no files were touched", width);
    }
    let mut table = Table::new(vec![
        Column::path("file", 16),
        Column::number("read"),
        Column::number("written"),
        Column::number("+"),
        Column::number("−"),
    ]);
    let cell = |count: usize| match count {
        0 => "·".to_owned(),
        count => count.to_string(),
    };
    for one in &rows {
        table.row([
            one.path.clone(),
            cell(one.reads),
            cell(one.writes + one.edits),
            cell(one.added),
            cell(one.removed),
        ]);
    }
    table.lines(width)
}
