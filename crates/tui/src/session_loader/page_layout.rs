//! Lays out parts of a conversation.

use std::ops::Range;

use jiff::tz::TimeZone;
use unspool_model::block::one_line;
use unspool_model::view::transcript::{ItemBody, TranscriptCall, TranscriptItem, TranscriptReader};
use unspool_model::view::turns;
use unspool_show::layout::{behind, untabbed, wrap, wrap_text};
use unspool_show::{ConversationStyle, ConversationWriter, StyledLine, TextStyle, ToolDetail};

use super::LoaderConversation;
use crate::loader_protocol::{PART, PageBlock, PageOptions, TurnExcerpt, TurnPage};

/// Longest texts of a head; more does not fit on any screen.
const HEAD: usize = 400;
/// Rows of a block that is not opened; a result of a million lines is still one result.
const MOST: usize = 2_000;
/// The same for a block that was opened.
const MOST_OPEN: usize = 20_000;

/// What was asked and answered in a turn.
pub fn head(told: &LoaderConversation<'_>, turn: usize) -> TurnExcerpt {
    let records = told.reading.records(turn);
    let number = told
        .reading
        .turn_extents()
        .nth(turn)
        .map_or(0, |one| one.turn);
    let row = turns::numbered(&told.rows, number);
    let prompt = match (row, records.first()) {
        (Some(row), _) if number > 0 => {
            let record = &told.session.records[row.record as usize];
            turns::prompt(told.session, told.source, record)
        }
        (None, Some(&first)) if number > 0 => {
            let record = &told.session.records[first as usize];
            turns::prompt(told.session, told.source, record)
        }
        _ => "before the first turn".to_owned(),
    };
    let said = row.and_then(|row| turns::last_said(told.session, &row.messages));
    let reply = said.map(|at| {
        let message = &told.session.messages[at as usize];
        turns::said(told.session, told.source, message)
    });
    TurnExcerpt {
        prompt: brief(&prompt),
        reply: plain(&brief(&reply.unwrap_or_default())),
    }
}

fn brief(text: &str) -> String {
    let text: String = text.trim().chars().take(HEAD).collect();
    one_line(&text)
}

/// Markdown without the marks that mean nothing on one line.
fn plain(text: &str) -> String {
    let text = text.replace("**", "").replace('`', "");
    text.trim_start_matches(['#', ' ']).to_owned()
}

/// The lines of the file that make a part.
fn lines_of(reading: &TranscriptReader<'_>, turn: usize, part: usize) -> Range<usize> {
    let count = reading.records(turn).len();
    let start = (part * PART).min(count);
    start..(start + PART).min(count)
}

fn items(told: &LoaderConversation<'_>, turn: usize, part: usize) -> Vec<TranscriptItem> {
    let lines = lines_of(&told.reading, turn, part);
    let mut items = told.reading.items(turn, lines);
    // The screen has a head of its own.
    items.retain(|item| !matches!(item.body, ItemBody::Turn(_)));
    items
}

/// A part, laid out.
pub fn page(
    told: &LoaderConversation<'_>,
    turn: usize,
    part: usize,
    look: &PageOptions,
    zone: TimeZone,
) -> TurnPage {
    let items = items(told, turn, part);
    let quiet = ConversationStyle {
        color: true,
        width: look.width,
        zone,
        tools: look.tools,
        thinking: look.thinking,
    };
    let loud = ConversationStyle {
        tools: ToolDetail::Full,
        thinking: true,
        ..quiet.clone()
    };
    let is_open = |item: &TranscriptItem| look.open.contains(&item.line);
    let style = |at: usize| match items.get(at) {
        Some(item) if is_open(item) => &loud,
        _ => &quiet,
    };
    let lines = ConversationWriter::new(&quiet).lines(&items, style);
    let mut page = TurnPage::default();
    let mut lines = lines.into_iter().peekable();
    while let Some((at, first)) = lines.next() {
        let item = &items[at];
        let most = if is_open(item) { MOST_OPEN } else { MOST };
        let mut own = vec![first];
        while let Some((_, line)) = lines.next_if(|(next, _)| *next == at) {
            own.push(line);
        }
        let start = page.rows.len();
        let gap = own.iter().take_while(|line| line.is_empty()).count();
        let rows = own.len();
        for line in own.into_iter().take(most) {
            page.rows.extend(hung(&line, look.width));
        }
        if rows > most {
            let text = format!(
                "    … {} more rows: press `o` for the raw line",
                rows - most
            );
            page.rows.push(StyledLine::of(TextStyle::DIM, &text));
        }
        page.blocks.push(PageBlock {
            rows: start + gap..page.rows.len(),
            line: item.line,
            item: at,
            opens: opens(item),
            agent: agent(told, item),
        });
    }
    page.blocks.retain(|block| !block.rows.is_empty());
    page
}

/// A line that is too long goes on below, behind the bar it stands behind.
fn hung(line: &StyledLine, width: usize) -> Vec<StyledLine> {
    if line.width() <= width {
        return vec![line.clone()];
    }
    let text = line.text();
    let blank = text.len() - text.trim_start_matches(' ').len();
    let Some(bar) = ["│ ", "├ "]
        .iter()
        .find(|bar| text[blank..].starts_with(**bar))
    else {
        return wrap(line, width);
    };
    let (prefix, rest) = split(line, blank + bar.len());
    let room = width.saturating_sub(prefix.width()).max(8);
    let rows = wrap(&rest, room);
    rows.iter().map(|row| behind(&prefix, row)).collect()
}

/// A line in two, at a byte.
fn split(line: &StyledLine, at: usize) -> (StyledLine, StyledLine) {
    let (mut first, mut second) = (StyledLine::new(), StyledLine::new());
    let mut passed = 0;
    for (paint, text) in line.pieces() {
        let here = at.saturating_sub(passed).min(text.len());
        first.push(*paint, &text[..here]);
        second.push(*paint, &text[here..]);
        passed += text.len();
    }
    (first, second)
}

/// Whether there is more of an item than a short look shows.
fn opens(item: &TranscriptItem) -> bool {
    matches!(
        item.body,
        ItemBody::Call(_)
            | ItemBody::Thinking { .. }
            | ItemBody::Summary { .. }
            | ItemBody::Notice { .. }
            | ItemBody::Orphan { .. }
            | ItemBody::Command { .. }
            | ItemBody::Hook(_)
            | ItemBody::Notes(_)
    )
}

/// The sub-agent that a call started, and what that is called.
fn agent(
    told: &LoaderConversation<'_>,
    item: &TranscriptItem,
) -> Option<(unspool_model::view::transcript::AgentLocation, String)> {
    let ItemBody::Call(call) = &item.body else {
        return None;
    };
    let started = told.reading.started(call.agent.as_ref()?)?;
    let name = call.subject.clone().unwrap_or_else(|| call.name.clone());
    Some((started, name))
}

/// The text of an item, to be copied.
pub fn text(
    told: &LoaderConversation<'_>,
    turn: usize,
    part: usize,
    item: usize,
) -> Option<String> {
    let items = items(told, turn, part);
    let text = match &items.get(item)?.body {
        ItemBody::Prompt(prompt) => prompt.text.clone(),
        ItemBody::Reply { text, .. }
        | ItemBody::Thinking { text, .. }
        | ItemBody::Queued { text }
        | ItemBody::Summary { text }
        | ItemBody::ApiError { text, .. }
        | ItemBody::Notice { text }
        | ItemBody::Orphan { text, .. } => text.clone(),
        ItemBody::Call(call) => call_text(call),
        ItemBody::Hook(hook) => hook.output.clone(),
        ItemBody::Command {
            command, output, ..
        } => [command.as_deref().unwrap_or_default(), output].join("\n"),
        ItemBody::Fault { detail } => detail.clone(),
        ItemBody::Turn(_)
        | ItemBody::Interrupt { .. }
        | ItemBody::Compaction { .. }
        | ItemBody::Notes(_)
        | ItemBody::Unknown { .. } => return None,
    };
    Some(text.trim().to_owned())
}

/// What was given to a tool and what it said.
fn call_text(call: &TranscriptCall) -> String {
    let given = match call
        .input
        .get("command")
        .and_then(|command| command.as_str())
    {
        Some(command) => format!("$ {command}"),
        None => format!(
            "{} {}",
            call.name,
            call.subject.as_deref().unwrap_or_default()
        ),
    };
    format!("{given}\n{}", call.text)
}

/// The line of the file, as JSON that can be read.
pub fn raw(told: &LoaderConversation<'_>, line: u32, width: usize) -> Vec<StyledLine> {
    let records = told.session.records.iter();
    let here = records.filter(|record| record.line == line);
    let mut lines = Vec::new();
    for record in here {
        let bytes = told.session.bytes_of(told.source, record);
        let text = String::from_utf8_lossy(&bytes);
        let value = unspool_model::json::value(&bytes);
        let pretty = pretty(&value).filter(|pretty| pretty.len() < 1 << 20);
        let text = pretty.as_deref().unwrap_or(&text);
        for line in unspool_show::clean::text(text).lines().take(MOST_OPEN) {
            lines.extend(wrap(
                &StyledLine::of(TextStyle::PLAIN, &untabbed(line)),
                width,
            ));
        }
    }
    if lines.is_empty() {
        lines = wrap_text(TextStyle::WARN, "the line can no longer be read", width);
    }
    lines
}

fn pretty(value: &serde_json::Value) -> Option<String> {
    (!value.is_null())
        .then(|| serde_json::to_string_pretty(value).ok())
        .flatten()
}
