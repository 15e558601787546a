//! A session as one page that needs nothing else: no server, no network, no script to be read.
//!
//! A prompt, a line for the work that followed, and the answer: that is a turn. The work is
//! folded behind its line, so a long session reads like a conversation. Everything is in the
//! page from the start, in elements that browsers leave alone until somebody opens them.

mod ansi;
mod call;
mod code;
mod csp;
mod escape;
mod markdown_html;
mod page;

pub(crate) use markdown_html::is_safe;

use std::io;

use unspool_model::view::tool_outcome::ToolCallOutcome;
use unspool_model::view::transcript::{
    FailedHook, ItemBody, TranscriptItem, TranscriptNote, TranscriptPrompt, TurnHead,
};
use unspool_model::view::turns::CallStatus;

use self::escape::HtmlWriter;
use super::{
    DocumentContext, DocumentOptions, DocumentSource, DocumentWriter, cut_note, is_told, shows,
};
use crate::format;
use crate::text;
use crate::wire::session::SessionJson;

/// Writes a session as a page.
pub fn write(
    out: &mut dyn io::Write,
    whole: &DocumentSource<'_>,
    options: &DocumentOptions,
) -> io::Result<()> {
    super::write_pages(out, whole, &HtmlDocumentWriter(options), options)
}

/// Markdown as safe HTML, to stand in a page of ours.
pub fn prose(text: &str) -> String {
    fragment(|html| markdown_html::markdown(html, text))
}

/// Text as it was typed as safe HTML, its addresses as links.
pub fn typed(text: &str) -> String {
    fragment(|html| markdown_html::typed(html, text))
}

/// What a program printed as safe HTML, its colours as classes.
pub fn printed(text: &str) -> String {
    fragment(|html| ansi::write(html, text))
}

fn fragment(write: impl FnOnce(&mut HtmlWriter<'_>) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    let mut html = HtmlWriter::new(&mut out);
    // Writing to memory cannot fail.
    let _ = write(&mut html).and_then(|()| html.flush());
    String::from_utf8(out).unwrap_or_default()
}

/// Writes the index of a folder of pages.
pub(super) fn index(
    out: &mut dyn io::Write,
    rows: &[(String, SessionJson)],
    options: &DocumentOptions,
) -> io::Result<()> {
    HtmlDocumentWriter(options).page(out, |page| page.index(rows))
}

/// A page while it is written, or a part of one.
struct HtmlPage<'a> {
    html: HtmlWriter<'a>,
    options: &'a DocumentOptions,
    known: DocumentContext,
    nested: bool,
}

/// How pages look.
struct HtmlDocumentWriter<'a>(&'a DocumentOptions);

impl HtmlDocumentWriter<'_> {
    /// Writes a page or a part of one.
    fn page(
        &self,
        out: &mut dyn io::Write,
        write: impl FnOnce(&mut HtmlPage<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.knowing(out, &mut DocumentContext::default(), write)
    }

    /// The same, given what the parts before it said.
    fn knowing(
        &self,
        out: &mut dyn io::Write,
        known: &mut DocumentContext,
        write: impl FnOnce(&mut HtmlPage<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut page = HtmlPage {
            html: HtmlWriter::new(out),
            options: self.0,
            known: std::mem::take(known),
            nested: false,
        };
        write(&mut page)?;
        *known = std::mem::take(&mut page.known);
        page.html.flush()
    }
}

impl DocumentWriter for HtmlDocumentWriter<'_> {
    fn begin(&self, out: &mut dyn io::Write, whole: &DocumentSource<'_>) -> io::Result<()> {
        self.page(out, |page| page.head(whole))
    }

    fn part(
        &self,
        out: &mut dyn io::Write,
        items: &[TranscriptItem],
        mut known: DocumentContext,
    ) -> io::Result<()> {
        self.knowing(out, &mut known, |page| page.part(items))
    }

    fn loose(
        &self,
        out: &mut dyn io::Write,
        name: &str,
        items: &[TranscriptItem],
        known: &mut DocumentContext,
    ) -> io::Result<()> {
        self.knowing(out, known, |page| page.loose(name, items))
    }

    fn end(&self, out: &mut dyn io::Write) -> io::Result<()> {
        self.page(out, |page| page.foot())
    }
}

/// Where an item stands in a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemPlacement {
    /// Always to be seen.
    Open,
    /// Seen if it is the last word.
    Word,
    /// Behind the line of the work.
    Work,
}

fn place(item: &TranscriptItem) -> ItemPlacement {
    match &item.body {
        ItemBody::Reply { .. } => ItemPlacement::Word,
        ItemBody::Call(call) => match call.outcome {
            ToolCallOutcome::Asked(_) | ToolCallOutcome::Plan(_) => ItemPlacement::Open,
            _ => ItemPlacement::Work,
        },
        ItemBody::Thinking { .. }
        | ItemBody::Orphan { .. }
        | ItemBody::Hook(_)
        | ItemBody::Notes(_)
        | ItemBody::Unknown { .. } => ItemPlacement::Work,
        ItemBody::Turn(_)
        | ItemBody::Prompt(_)
        | ItemBody::Queued { .. }
        | ItemBody::Interrupt { .. }
        | ItemBody::Compaction { .. }
        | ItemBody::Summary { .. }
        | ItemBody::ApiError { .. }
        | ItemBody::Command { .. }
        | ItemBody::Notice { .. }
        | ItemBody::Fault { .. } => ItemPlacement::Open,
    }
}

impl HtmlPage<'_> {
    /// A turn, or what stands before the first one.
    fn part(&mut self, items: &[TranscriptItem]) -> io::Result<()> {
        let head = items.first().and_then(|item| match &item.body {
            ItemBody::Turn(head) => Some((head, item)),
            _ => None,
        });
        match head {
            Some((head, item)) => self.open_turn(head, item)?,
            None => {
                if !items.iter().any(|item| shows(self.options.detail, item)) {
                    return Ok(());
                }
                self.html.raw("<section class=\"turn\" id=\"t0\">\n")?;
            }
        }
        self.turn(items, head.and_then(|(head, _)| head.duration_ms))?;
        self.html.raw("</section>\n")
    }

    /// A sub-agent that stands under no call.
    fn loose(&mut self, name: &str, items: &[TranscriptItem]) -> io::Result<()> {
        self.html
            .raw("<section class=\"turn loose\"><h2 class=\"head\">Sub-agent ")?;
        self.html.text(name)?;
        self.html.raw("</h2>\n")?;
        self.fold(&items.iter().collect::<Vec<_>>(), None)?;
        self.html.raw("</section>\n")
    }

    fn open_turn(&mut self, head: &TurnHead, item: &TranscriptItem) -> io::Result<()> {
        self.html.raw("<section class=\"turn")?;
        if !head.live {
            self.html.raw(" rewound")?;
        }
        self.html.raw("\" id=\"t")?;
        self.html.number(head.n)?;
        self.html.raw("\"><h2 class=\"head\"><a href=\"#t")?;
        self.html.number(head.n)?;
        self.html.raw("\">")?;
        self.html.number(head.n)?;
        self.html.raw("</a>")?;
        if let Some(at) = item.at {
            let day = format::day(at, &self.options.zone);
            self.html.raw(" <time datetime=\"")?;
            self.html.text(&at.to_string())?;
            self.html.raw("\">")?;
            if self.known.is_new_day(&day) {
                self.html.text(&day)?;
                self.html.raw(" ")?;
            }
            self.html.text(&format::clock(at, &self.options.zone))?;
            self.html.raw("</time>")?;
        }
        if !head.live {
            self.html.raw(" <span class=\"tag\">rewound</span>")?;
        }
        self.html.raw("</h2>\n")
    }

    /// The items of a turn: what is always seen, and between that the work, folded.
    fn turn(&mut self, items: &[TranscriptItem], duration: Option<u64>) -> io::Result<()> {
        let detail = self.options.detail;
        let mut run: Vec<&TranscriptItem> = Vec::new();
        let mut duration = duration.filter(|ms| *ms > 0);
        for item in items.iter().filter(|item| shows(detail, item)) {
            if place(item) != ItemPlacement::Open {
                run.push(item);
                continue;
            }
            self.run(&mut run, &mut duration)?;
            self.step(item)?;
        }
        self.run(&mut run, &mut duration)
    }

    /// Work, and the words behind it.
    fn run(
        &mut self,
        run: &mut Vec<&TranscriptItem>,
        duration: &mut Option<u64>,
    ) -> io::Result<()> {
        let is_work = |item: &&TranscriptItem| match &item.body {
            ItemBody::Notes(_) => false,
            _ => place(item) == ItemPlacement::Work,
        };
        let end = run.iter().rposition(is_work).map_or(0, |at| at + 1);
        let (mut folded, rest) = run.split_at(end);
        let notes: Vec<&TranscriptItem> = rest
            .iter()
            .copied()
            .filter(|item| place(item) == ItemPlacement::Work)
            .collect();
        let all: Vec<&TranscriptItem>;
        if !notes.is_empty() {
            all = folded.iter().copied().chain(notes).collect();
            folded = &all;
        }
        if !folded.is_empty() {
            self.fold(folded, duration.take())?;
        }
        for item in rest
            .iter()
            .filter(|item| place(item) == ItemPlacement::Word)
        {
            self.step(item)?;
        }
        run.clear();
        Ok(())
    }

    /// Work behind one line that says what it was.
    fn fold(&mut self, items: &[&TranscriptItem], duration: Option<u64>) -> io::Result<()> {
        self.html.raw("<details class=\"work\"><summary>")?;
        self.pills(items)?;
        if let Some(ms) = duration {
            self.html.raw("<span class=\"took\">")?;
            self.html.text(&format::duration(ms))?;
            self.html.raw("</span>")?;
        }
        self.html.raw("</summary>\n<div class=\"steps\">\n")?;
        for item in items {
            self.step(item)?;
        }
        self.html.raw("</div></details>\n")
    }

    /// How many calls of which tool, how many failed, and what else there was.
    fn pills(&mut self, items: &[&TranscriptItem]) -> io::Result<()> {
        let mut tools: Vec<(&str, u64)> = Vec::new();
        let (mut failed, mut thoughts, mut others) = (0, 0, 0);
        for item in items {
            match &item.body {
                ItemBody::Call(call) => {
                    failed += u64::from(call.status == CallStatus::Error);
                    match tools.iter_mut().find(|(name, _)| *name == call.name) {
                        Some((_, count)) => *count += 1,
                        None => tools.push((&call.name, 1)),
                    }
                }
                ItemBody::Thinking { .. } => thoughts += 1,
                ItemBody::Notes(notes) => {
                    others += notes.iter().filter(|note| is_told(note)).count()
                }
                _ => {}
            }
        }
        tools.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (name, count) in &tools {
            self.html.raw("<span class=\"pill\"><b>")?;
            self.html.text(&count.to_string())?;
            self.html.raw("</b> ")?;
            self.html.text(&tool_name(name))?;
            self.html.raw("</span>")?;
        }
        if failed > 0 {
            self.html.raw("<span class=\"pill err\">")?;
            self.html.text(&format!("{failed} failed"))?;
            self.html.raw("</span>")?;
        }
        if tools.is_empty() || thoughts > 0 {
            let what = match (thoughts, others) {
                (0, 0) => "details".to_owned(),
                (0, notes) => format::count(notes as u64, "note"),
                (thoughts, _) => format::count(thoughts, "thought"),
            };
            self.html.raw("<span class=\"pill dim\">")?;
            self.html.text(&what)?;
            self.html.raw("</span>")?;
        }
        Ok(())
    }

    /// Items one after the other, as they stand in a sub-agent.
    fn steps(&mut self, items: &[TranscriptItem]) -> io::Result<()> {
        let outer = std::mem::replace(&mut self.nested, true);
        let known = self.known.inside();
        let detail = self.options.detail;
        for item in items.iter().filter(|item| shows(detail, item)) {
            self.step(item)?;
        }
        self.nested = outer;
        self.known.outside(known);
        Ok(())
    }

    fn step(&mut self, item: &TranscriptItem) -> io::Result<()> {
        match &item.body {
            ItemBody::Turn(_) => Ok(()),
            ItemBody::Prompt(prompt) => self.prompt(prompt),
            ItemBody::Queued { text } => self.queued(text),
            ItemBody::Reply { text, model } => self.reply(text, model.as_deref()),
            ItemBody::Thinking { text, chars } => self.thinking(text, *chars),
            ItemBody::Call(call) => self.call(call),
            ItemBody::Orphan {
                call,
                text,
                is_error,
            } => self.orphan(call, text, *is_error),
            ItemBody::Interrupt { tool } => self.mark(
                "mark warn",
                if *tool {
                    "Interrupted at a tool call"
                } else {
                    "Interrupted"
                },
            ),
            ItemBody::Compaction {
                micro,
                trigger,
                before,
                after,
            } => self.compaction(*micro, trigger.as_deref(), *before, *after),
            ItemBody::Summary { text } => {
                let size = format::count(text.chars().count() as u64, "character");
                self.folded("sum", &format!("Continued from a summary of {size}"), text)
            }
            ItemBody::ApiError { text, attempt } => self.api_error(text, *attempt),
            ItemBody::Hook(hook) => self.hook(hook),
            ItemBody::Command {
                command,
                output,
                is_error,
            } => self.command(command.as_deref(), output, *is_error),
            ItemBody::Notice { text } => {
                self.html.raw("<div class=\"notice\">")?;
                self.typed(text)?;
                self.html.raw("</div>\n")
            }
            ItemBody::Notes(notes) => self.notes(notes),
            ItemBody::Unknown { label } => {
                self.mark("mark", &format!("Unknown kind of line: {label}"))
            }
            ItemBody::Fault { detail } => self.mark("mark warn", detail),
        }
    }

    fn prompt(&mut self, prompt: &TranscriptPrompt) -> io::Result<()> {
        self.html.raw(if self.nested {
            "<div class=\"prompt told\">"
        } else {
            "<div class=\"prompt\">"
        })?;
        if !prompt.text.trim().is_empty() {
            self.long_text(&prompt.text)?;
        }
        self.media(&prompt.media)?;
        let mut beside = text::came_with(prompt);
        beside.extend(self.known.new_mode(prompt, self.nested));
        if !beside.is_empty() {
            self.html.raw("<p class=\"beside\">")?;
            self.html.text(&beside.join(" · "))?;
            self.html.raw("</p>")?;
        }
        self.html.raw("</div>\n")
    }

    fn queued(&mut self, text: &str) -> io::Result<()> {
        self.html.raw("<div class=\"prompt\">")?;
        self.long_text(text)?;
        self.html
            .raw("<p class=\"beside\">typed while the model was working</p></div>\n")
    }

    /// A prompt; of a very long one, the start, and the rest on demand.
    fn long_text(&mut self, text: &str) -> io::Result<()> {
        let (text, left) = self.cut(text);
        let (start, rest) = long(text, if self.nested { 12 } else { 40 });
        self.html.raw("<div class=\"text\">")?;
        markdown_html::typed(&mut self.html, start)?;
        self.html.raw("</div>")?;
        if !rest.is_empty() {
            self.html.raw("<details class=\"more\"><summary>")?;
            let lines = format::count(rest.lines().count() as u64, "more line");
            self.html.text(&lines)?;
            self.html.raw("</summary><div class=\"text\">")?;
            markdown_html::typed(&mut self.html, rest)?;
            self.html.raw("</div></details>")?;
        }
        self.left_out(left)
    }

    fn reply(&mut self, text: &str, model: Option<&str>) -> io::Result<()> {
        if let Some(model) = self.known.new_model(model) {
            self.html.raw("<p class=\"model\">")?;
            self.html.text(model)?;
            self.html.raw("</p>\n")?;
        }
        self.prose_block("reply md", text)
    }

    fn thinking(&mut self, text: &str, chars: usize) -> io::Result<()> {
        if text.is_empty() {
            return self.mark("mark think", "Thought (text not recorded)");
        }
        let size = format::count(chars as u64, "character");
        self.folded("think", &format!("Thought for {size}"), text)
    }

    /// Prose behind a line.
    fn folded(&mut self, class: &'static str, head: &str, text: &str) -> io::Result<()> {
        self.html.raw("<details class=\"")?;
        self.html.raw(class)?;
        self.html.raw("\"><summary>")?;
        self.html.text(head)?;
        self.html.raw("</summary>\n")?;
        self.prose_block("md", text)?;
        self.html.raw("</details>\n")
    }

    fn orphan(&mut self, call: &str, text: &str, is_error: bool) -> io::Result<()> {
        let what = if is_error { "A failure" } else { "A result" };
        self.html.raw("<details class=\"call bad\"><summary>")?;
        self.html
            .text(&format!("{what} without its call: {call}"))?;
        self.html.raw("</summary><div class=\"body\">")?;
        self.block("out", text)?;
        self.html.raw("</div></details>\n")
    }

    fn compaction(
        &mut self,
        micro: bool,
        trigger: Option<&str>,
        before: Option<u64>,
        after: Option<u64>,
    ) -> io::Result<()> {
        let mut text = if micro {
            "Old results cleared"
        } else {
            "Compacted"
        }
        .to_owned();
        match (before, after) {
            (Some(before), Some(after)) => {
                let (from, to) = (format::tokens(before), format::tokens(after));
                let freed = format::tokens(before.saturating_sub(after));
                text += &format!(" {from} → {to} tokens, {freed} freed");
            }
            (Some(before), None) => text += &format!(" at {} tokens", format::tokens(before)),
            (None, _) => {}
        }
        if let Some(trigger) = trigger {
            text += &format!(" ({trigger})");
        }
        self.html.raw("<div class=\"compacted\"><span>")?;
        self.html.text(&text)?;
        self.html.raw("</span></div>\n")
    }

    fn api_error(&mut self, text: &str, attempt: Option<(u64, u64)>) -> io::Result<()> {
        let again = attempt
            .map(|(n, of)| format!(" (attempt {n} of {of})"))
            .unwrap_or_default();
        let text = text
            .trim_start_matches("API Error")
            .trim_start_matches(": ");
        self.html.raw("<div class=\"mark err\"><b>API error")?;
        self.html.text(&again)?;
        self.html.raw("</b> ")?;
        self.typed(text.trim())?;
        self.html.raw("</div>\n")
    }

    fn hook(&mut self, hook: &FailedHook) -> io::Result<()> {
        self.html.raw(if hook.blocked {
            "<details class=\"call bad\" open><summary>"
        } else {
            "<details class=\"call\"><summary>"
        })?;
        self.html.raw("<span class=\"verb\">")?;
        self.html.text(&format!("hook {}", hook.event))?;
        self.html.raw("</span> <span class=\"about\">")?;
        self.html
            .text(hook.command.as_deref().unwrap_or_default())?;
        self.html.raw("</span> <span class=\"came warn\">")?;
        self.html
            .raw(if hook.blocked { "blocked" } else { "failed" })?;
        self.html.raw("</span></summary><div class=\"body\">")?;
        self.block("out", &hook.output)?;
        self.html.raw("</div></details>\n")
    }

    fn command(&mut self, command: Option<&str>, output: &str, is_error: bool) -> io::Result<()> {
        if let Some(command) = command {
            self.html
                .raw("<div class=\"prompt\"><div class=\"text\">")?;
            self.typed(command)?;
            self.html.raw("</div></div>\n")?;
        }
        if output.is_empty() {
            return Ok(());
        }
        self.block(if is_error { "out err" } else { "out" }, output)
    }

    fn notes(&mut self, notes: &[TranscriptNote]) -> io::Result<()> {
        for note in notes.iter().filter(|note| is_told(note)) {
            let mut label = note.label.clone();
            if note.count > 1 {
                label += &format!(" × {}", note.count);
            }
            if note.text.is_empty() {
                self.mark("mark", &label)?;
                continue;
            }
            self.html.raw("<details class=\"note\"><summary>")?;
            self.html.text(&label)?;
            self.html.raw("</summary>")?;
            self.block("out", &note.text)?;
            self.html.raw("</details>\n")?;
        }
        Ok(())
    }

    fn mark(&mut self, class: &'static str, text: &str) -> io::Result<()> {
        self.html.raw("<div class=\"")?;
        self.html.raw(class)?;
        self.html.raw("\">")?;
        self.html.text(text)?;
        self.html.raw("</div>\n")
    }

    /// Text as it was typed.
    fn typed(&mut self, text: &str) -> io::Result<()> {
        let (text, left) = self.cut(text);
        markdown_html::typed(&mut self.html, text)?;
        self.left_out(left)
    }

    /// Text on one line.
    fn cut_text(&mut self, text: &str) -> io::Result<()> {
        let (text, left) = self.cut(text);
        self.html.text(text)?;
        self.left_out(left)
    }

    fn cut<'t>(&self, text: &'t str) -> (&'t str, usize) {
        super::cut(text, self.options.max_chars)
    }

    fn left_out(&mut self, left: usize) -> io::Result<()> {
        if left == 0 {
            return Ok(());
        }
        self.html.raw("<span class=\"cut\">")?;
        self.html.text(&cut_note(left))?;
        self.html.raw("</span>\n")
    }
}

/// `mcp__server__tool` reads better without its marks.
fn tool_name(name: &str) -> String {
    match name
        .strip_prefix("mcp__")
        .and_then(|rest| rest.split_once("__"))
    {
        Some((server, tool)) => format!("{server} {tool}"),
        None => name.to_owned(),
    }
}

/// The first lines of a text and the rest; a rest of a few lines is not worth a fold.
fn long(text: &str, lines: usize) -> (&str, &str) {
    let mut ends = text.match_indices('\n').map(|(at, _)| at + 1);
    let Some(end) = ends.nth(lines - 1) else {
        return (text, "");
    };
    if ends.nth(5).is_none() {
        return (text, "");
    }
    text.split_at(end)
}
