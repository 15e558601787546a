//! A session as plain text: what `show` prints, for a file.

use std::collections::HashSet;
use std::io;

use unspool_model::view::transcript::{Body, Call, Item};

use super::{Detail, Options, Turns, Whole, cut, cut_note, desk, index, shows};
use crate::layout::cut as cut_line;
use crate::style::{Line, Paint, Style, Tools};
use crate::text::Conversation;

/// Columns of a file.
const WIDTH: usize = 100;

/// Writes a session as text.
pub(super) fn write(
    out: &mut dyn io::Write,
    whole: &Whole<'_>,
    options: &Options,
) -> io::Result<()> {
    let style = Style {
        width: WIDTH,
        zone: options.zone.clone(),
        tools: match options.detail {
            Detail::Prompts | Detail::Minimal => Tools::None,
            Detail::Low => Tools::Short,
            Detail::High | Detail::Full => Tools::Full,
        },
        thinking: options.detail >= Detail::Full,
        ..Style::default()
    };
    let mut sheet = Sheet {
        out,
        options,
        style: &style,
        conversation: Conversation::new(&style),
    };
    sheet.begin(whole)?;
    let turns = Turns::of(whole);
    let mut shown = HashSet::new();
    // How far its lines stand apart depends on those before, so it is laid out in one piece.
    desk::in_order(&turns, turns.0.len(), (), |(items, agents)| {
        shown.extend(agents);
        sheet.part(&items)
    })?;
    whole.loose(options.detail, &shown, |name, items| {
        sheet.loose(name, items)
    })?;
    sheet.end()
}

struct Sheet<'a> {
    out: &'a mut dyn io::Write,
    options: &'a Options,
    style: &'a Style,
    conversation: Conversation<'a>,
}

impl Sheet<'_> {
    fn begin(&mut self, whole: &Whole<'_>) -> io::Result<()> {
        let title = whole.row.title.as_deref().unwrap_or(&whole.row.id);
        let facts = index::facts(whole.row, self.options);
        self.conversation.heading(self.out, title, &facts)
    }

    fn part(&mut self, items: &[Item]) -> io::Result<()> {
        let detail = self.options.detail;
        let shown = items.iter().filter(|item| shows(detail, item));
        let limit = self.options.max_chars;
        if limit.is_none() {
            return self.conversation.write(self.out, shown);
        }
        let shown: Vec<Item> = shown.map(|item| shortened(item.clone(), limit)).collect();
        self.conversation.write(self.out, &shown)
    }

    fn loose(&mut self, name: &str, items: &[Item]) -> io::Result<()> {
        let line = Line::of(Paint::BOLD, &format!("Sub-agent {name}"));
        Line::new().write(self.out, false)?;
        cut_line(&line, self.style.columns()).write(self.out, false)?;
        self.part(items)
    }

    fn end(&mut self) -> io::Result<()> {
        self.conversation.end(self.out)
    }
}

/// An item whose long texts are cut.
fn shortened(mut item: Item, limit: Option<usize>) -> Item {
    match &mut item.body {
        Body::Prompt(prompt) => shorten(&mut prompt.text, limit),
        Body::Reply { text, .. }
        | Body::Thinking { text, .. }
        | Body::Orphan { text, .. }
        | Body::Queued { text }
        | Body::Summary { text }
        | Body::ApiError { text, .. }
        | Body::Notice { text } => shorten(text, limit),
        Body::Command { output, .. } => shorten(output, limit),
        Body::Hook(hook) => shorten(&mut hook.output, limit),
        Body::Call(call) => shorten_call(call, limit),
        Body::Turn(_)
        | Body::Interrupt { .. }
        | Body::Compaction { .. }
        | Body::Notes(_)
        | Body::Unknown { .. }
        | Body::Fault { .. } => {}
    }
    item
}

fn shorten_call(call: &mut Call, limit: Option<usize>) {
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
