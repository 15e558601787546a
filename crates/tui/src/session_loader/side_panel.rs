//! What stands beside a conversation: context, tokens, files.

use unspool_model::price::Cost;
use unspool_model::usage::Usage;
use unspool_model::view::cost::CostSum;
use unspool_model::view::session_usage::{self, UsageTotal};
use unspool_model::view::{agents, context, files};
use unspool_show::layout::wrap_text;
use unspool_show::table::{TableColumn, TextTable};
use unspool_show::{StyledLine, TextStyle, format};
use unspool_store::session_with_agents::LoadedAgent;

use super::LoaderSession;
use crate::loader_protocol::{ConversationId, SidePanelKind};

/// How many of the largest pieces are named.
const LARGEST: usize = 12;

/// The lines of a side.
pub fn lines(
    shown: &mut LoaderSession<'_>,
    side: SidePanelKind,
    of: &ConversationId,
    width: usize,
) -> Vec<StyledLine> {
    if shown.family.main.is_partial() {
        return wrap_text(TextStyle::DIM, "the session is still loading …", width);
    }
    match side {
        SidePanelKind::Context => fill(shown, of, width),
        SidePanelKind::Usage => usage(shown, width),
        SidePanelKind::Files => touched(shown, of, width),
    }
}

fn fill(shown: &mut LoaderSession<'_>, of: &ConversationId, width: usize) -> Vec<StyledLine> {
    let Some(told) = shown.reading(of) else {
        return Vec::new();
    };
    let context = context::context(told.session, told.source, LARGEST);
    if context.categories.is_empty() {
        return wrap_text(TextStyle::DIM, "the session has no context", width);
    }
    let how = if context.measured {
        "measured at the last reply"
    } else {
        "estimated"
    };
    let total = format!("{} tokens, {how}", format::tokens(context.tokens));
    let mut lines = wrap_text(TextStyle::BOLD, &total, width);
    lines.push(StyledLine::new());
    let mut table = TextTable::new(vec![
        TableColumn::flexible("what", 10),
        TableColumn::number("tokens"),
        TableColumn::number("share"),
        TableColumn::fixed("").optional(),
    ]);
    for one in &context.categories {
        table.row([
            one.category.clone(),
            format::tokens(one.tokens),
            percent(one.share),
            bar(one.share),
        ]);
    }
    lines.extend(table.lines(width));
    if !context.largest.is_empty() {
        lines.push(StyledLine::new());
        lines.push(StyledLine::of(TextStyle::BOLD, "largest blocks"));
        let mut table = TextTable::new(vec![
            TableColumn::number("tokens"),
            TableColumn::flexible("what", 8),
            TableColumn::flexible("", 12),
        ]);
        for one in &context.largest {
            table.row([
                format::tokens(one.tokens),
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

fn usage(shown: &LoaderSession<'_>, width: usize) -> Vec<StyledLine> {
    let family = shown.family;
    let prices = &shown.book.library.prices;
    let session = &family.main.session;
    let used = family.used(|files| session_usage::session_usage(files, prices));
    let all = used.all();
    let total = format!(
        "{} tokens, {}",
        format::tokens(all.usage.total()),
        cost_told(all.cost)
    );
    let mut lines = wrap_text(TextStyle::BOLD, &total, width);
    lines.push(StyledLine::new());
    lines.extend(kinds(all.usage).lines(width));
    if used.client.messages > 0 {
        let client = format!(
            "of these, the client (compaction, suggestions, warm-up): {} tokens, {}",
            format::tokens(used.client.usage.total()),
            cost_told(used.client.cost)
        );
        lines.extend(wrap_text(TextStyle::DIM, &client, width));
    }
    lines.push(StyledLine::new());
    let by_model = family.used(|files| session_usage::usage_by_model(files, prices));
    lines.extend(models(by_model).lines(width));
    let files: Vec<_> = family.agents.iter().map(LoadedAgent::listed).collect();
    let rows = agents::agents(session, &family.main.source, &files, &family.runs);
    if !rows.is_empty() {
        lines.push(StyledLine::new());
        let mut table = TextTable::new(vec![
            TableColumn::flexible("sub-agent", 12),
            TableColumn::number("calls"),
            TableColumn::number("tokens"),
            TableColumn::number("cost").optional(),
        ]);
        let by_agent =
            family.used(|files| session_usage::usage_by_agent(files, &rows, |at| at, prices));
        for (one, used) in rows.iter().zip(by_agent) {
            let name = one.name.as_deref().or(one.description.as_deref());
            let name = name.unwrap_or(&one.agent);
            table.row([
                format!("{}{name}", "  ".repeat(one.depth - 1)),
                one.calls.to_string(),
                format::tokens(used.unwrap_or_default().usage.total()),
                used.map_or_else(|| "?".to_owned(), |used| format::cost_sum(used.cost)),
            ]);
        }
        lines.extend(table.lines(width));
    }
    lines
}

fn cost_told(cost: CostSum) -> String {
    let whole = cost.total().map(Cost::usd);
    format::cost_told(whole, Some(cost.known.usd()), cost.unpriced)
}

fn kinds(usage: Usage) -> TextTable {
    let mut table = TextTable::new(vec![TableColumn::fixed("tokens"), TableColumn::number("")]);
    for (what, count) in [
        ("input", usage.input),
        ("output", usage.output),
        ("cache read", usage.cache_read),
        ("cache write, 5 min", usage.cache_write_5m),
        ("cache write, 1 h", usage.cache_write_1h),
    ] {
        table.row([what.to_owned(), format::grouped(count)]);
    }
    table
}

/// Replies by model.
fn models(by_model: Vec<(String, UsageTotal)>) -> TextTable {
    let mut table = TextTable::new(vec![
        TableColumn::flexible("model", 12),
        TableColumn::number("replies"),
        TableColumn::number("tokens"),
        TableColumn::number("cost"),
    ]);
    for (model, used) in by_model {
        table.row([
            model,
            format::grouped(used.messages),
            format::tokens(used.usage.total()),
            format::cost_sum(used.cost),
        ]);
    }
    table
}

fn touched(shown: &mut LoaderSession<'_>, of: &ConversationId, width: usize) -> Vec<StyledLine> {
    let Some(told) = shown.reading(of) else {
        return Vec::new();
    };
    let rows = files::files(told.session, told.source);
    if rows.is_empty() {
        return wrap_text(TextStyle::DIM, "no files were touched", width);
    }
    let mut table = TextTable::new(vec![
        TableColumn::path("file", 16),
        TableColumn::number("read"),
        TableColumn::number("written"),
        TableColumn::number("+"),
        TableColumn::number("−"),
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
