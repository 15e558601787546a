//! A session as plain text: what `show` prints, for a file.

use std::collections::HashSet;
use std::io;

use unspool_model::view::transcript::{ItemBody, TranscriptCall, TranscriptItem};

use super::{
    DocumentDetail, DocumentOptions, DocumentSource, DocumentTurns, cut, cut_note, index,
    ordered_work, shows,
};
use crate::layout::cut as cut_line;
use crate::style::{ConversationStyle, StyledLine, TextStyle, ToolDetail};
use crate::text::ConversationWriter;

/// Columns of a file.
const WIDTH: usize = 100;

/// Writes a session as text.
pub(super) fn write(
    out: &mut dyn io::Write,
    whole: &DocumentSource<'_>,
    options: &DocumentOptions,
) -> io::Result<()> {
    let style = ConversationStyle {
        width: WIDTH,
        zone: options.zone.clone(),
        tools: match options.detail {
            DocumentDetail::Prompts | DocumentDetail::Minimal => ToolDetail::None,
            DocumentDetail::Low => ToolDetail::Short,
            DocumentDetail::High | DocumentDetail::Full => ToolDetail::Full,
        },
        thinking: options.detail >= DocumentDetail::Full,
        ..ConversationStyle::default()
    };
    let mut sheet = PlainTextWriter {
        out,
        options,
        style: &style,
        conversation: ConversationWriter::new(&style),
    };
    sheet.begin(whole)?;
    let turns = DocumentTurns::of(whole);
    let mut shown = HashSet::new();
    // How far its lines stand apart depends on those before, so it is laid out in one piece.
    ordered_work::in_order(&turns, turns.0.len(), (), |(items, agents)| {
        shown.extend(agents);
        sheet.part(&items)
    })?;
    whole.loose(options.detail, &shown, |name, items| {
        sheet.loose(name, items)
    })?;
    sheet.end()
}

struct PlainTextWriter<'a> {
    out: &'a mut dyn io::Write,
    options: &'a DocumentOptions,
    style: &'a ConversationStyle,
    conversation: ConversationWriter<'a>,
}

impl PlainTextWriter<'_> {
    fn begin(&mut self, whole: &DocumentSource<'_>) -> io::Result<()> {
        let title = whole.row.title.as_deref().unwrap_or(&whole.row.id);
        let facts = index::facts(whole.row, self.options);
        self.conversation.heading(self.out, title, &facts)
    }

    fn part(&mut self, items: &[TranscriptItem]) -> io::Result<()> {
        let detail = self.options.detail;
        let shown = items.iter().filter(|item| shows(detail, item));
        let limit = self.options.max_chars;
        if limit.is_none() {
            return self.conversation.write(self.out, shown);
        }
        let shown: Vec<TranscriptItem> = shown.map(|item| shortened(item.clone(), limit)).collect();
        self.conversation.write(self.out, &shown)
    }

    fn loose(&mut self, name: &str, items: &[TranscriptItem]) -> io::Result<()> {
        let line = StyledLine::of(TextStyle::BOLD, &format!("Sub-agent {name}"));
        StyledLine::new().write(self.out, false)?;
        cut_line(&line, self.style.columns()).write(self.out, false)?;
        self.part(items)
    }

    fn end(&mut self) -> io::Result<()> {
        self.conversation.end(self.out)
    }
}

/// An item whose long texts are cut.
fn shortened(mut item: TranscriptItem, limit: Option<usize>) -> TranscriptItem {
    match &mut item.body {
        ItemBody::Prompt(prompt) => shorten(&mut prompt.text, limit),
        ItemBody::Reply { text, .. }
        | ItemBody::Thinking { text, .. }
        | ItemBody::Orphan { text, .. }
        | ItemBody::Queued { text }
        | ItemBody::Summary { text }
        | ItemBody::ApiError { text, .. }
        | ItemBody::Notice { text } => shorten(text, limit),
        ItemBody::Command { output, .. } => shorten(output, limit),
        ItemBody::Hook(hook) => shorten(&mut hook.output, limit),
        ItemBody::Call(call) => shorten_call(call, limit),
        ItemBody::Turn(_)
        | ItemBody::Interrupt { .. }
        | ItemBody::Compaction { .. }
        | ItemBody::Notes(_)
        | ItemBody::Unknown { .. }
        | ItemBody::Fault { .. } => {}
    }
    item
}

fn shorten_call(call: &mut TranscriptCall, limit: Option<usize>) {
    shorten(&mut call.text, limit);
    if let Some(fields) = call.input.as_object_mut() {
        for value in fields.values_mut() {
            if let serde_json::Value::String(text) = value {
                shorten(text, limit);
            }
        }
    }
    if let Some(agent) = &mut call.agent {
        let items = std::mem::take(&mut agent.items).into_iter();
        agent.items = items.map(|item| shortened(item, limit)).collect();
    }
}

fn shorten(text: &mut String, limit: Option<usize>) {
    let (kept, left) = cut(text, limit);
    if left > 0 {
        *text = format!("{kept}\n{}", cut_note(left));
    }
}
