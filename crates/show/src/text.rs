//! A conversation as text: what people read.
//!
//! Items in, lines out, to any writer. What a call's result says in a few words is in
//! [`crate::tool_call`]; this file decides order, space and folding.

use std::io;

use unspool_model::time::Time;
use unspool_model::user_input::{InputKinds, UserInput};
use unspool_model::view::transcript::{
    FailedHook, ItemBody, TranscriptAgent, TranscriptCall, TranscriptItem, TranscriptNote,
    TranscriptPrompt, TurnHead,
};

use crate::layout::{behind, behind_own, cut, wrap_own, wrap_text};
use crate::style::{ConversationStyle, StyledLine, TextStyle, ToolDetail};
use crate::{diff, format, markdown, tool_call};

/// Lines of output shown before the rest is only counted.
const FEW: usize = 5;

/// Writes a conversation.
pub fn conversation(
    out: &mut dyn io::Write,
    items: &[TranscriptItem],
    style: &ConversationStyle,
) -> io::Result<()> {
    let mut conversation = ConversationWriter::new(style);
    conversation.write(out, items)?;
    conversation.end(out)
}

/// A conversation that is written piece by piece, for those too long to hold at once.
pub struct ConversationWriter<'a> {
    style: &'a ConversationStyle,
    prefix: StyledLine,
    last: LastWrittenKind,
    day: Option<String>,
    model: Option<String>,
    mode: Option<String>,
    notes: Vec<TranscriptNote>,
    nested: bool,
}

/// Where lines go.
trait StyledLineSink {
    /// Takes a line behind a prefix.
    fn take(&mut self, prefix: &StyledLine, line: &StyledLine) -> io::Result<()>;
}

impl StyledLineSink for Vec<StyledLine> {
    fn take(&mut self, prefix: &StyledLine, line: &StyledLine) -> io::Result<()> {
        self.push(behind(prefix, line));
        Ok(())
    }
}

/// Lines as bytes.
struct LineByteWriter<'w> {
    out: &'w mut dyn io::Write,
    color: bool,
}

impl StyledLineSink for LineByteWriter<'_> {
    fn take(&mut self, prefix: &StyledLine, line: &StyledLine) -> io::Result<()> {
        // Without colours, text stands behind its prefix as it is.
        if !self.color && !line.is_blank() {
            let pieces = prefix.pieces().iter();
            pieces
                .map(|(_, text)| text)
                .try_for_each(|text| self.out.write_all(text.as_bytes()))?;
            return line.write(self.out, self.color);
        }
        behind(prefix, line).write(self.out, self.color)
    }
}

/// What was written last; decides whether a blank line comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastWrittenKind {
    Nothing,
    Rule,
    Prose,
    Short,
}

impl<'a> ConversationWriter<'a> {
    /// Nothing written yet.
    pub fn new(style: &'a ConversationStyle) -> ConversationWriter<'a> {
        ConversationWriter {
            style,
            prefix: StyledLine::new(),
            last: LastWrittenKind::Nothing,
            day: None,
            model: None,
            mode: None,
            notes: Vec::new(),
            nested: false,
        }
    }

    /// Writes what the conversation is: a title, and facts about it on one line.
    pub fn heading(
        &mut self,
        out: &mut dyn io::Write,
        title: &str,
        facts: &[String],
    ) -> io::Result<()> {
        let out = &mut self.to(out);
        let title = cut(&StyledLine::of(TextStyle::BOLD, title), self.width());
        self.put(out, &title)?;
        let facts: Vec<&str> = facts
            .iter()
            .map(String::as_str)
            .filter(|fact| !fact.is_empty())
            .collect();
        if !facts.is_empty() {
            let line = cut(
                &StyledLine::of(TextStyle::DIM, &facts.join(" · ")),
                self.width(),
            );
            self.put(out, &line)?;
        }
        self.last = LastWrittenKind::Prose;
        Ok(())
    }

    /// Writes the next items.
    pub fn write<'i>(
        &mut self,
        out: &mut dyn io::Write,
        items: impl IntoIterator<Item = &'i TranscriptItem>,
    ) -> io::Result<()> {
        let out = &mut self.to(out);
        self.items(out, items)
    }

    fn items<'i>(
        &mut self,
        out: &mut dyn StyledLineSink,
        items: impl IntoIterator<Item = &'i TranscriptItem>,
    ) -> io::Result<()> {
        let items: Vec<&TranscriptItem> = items.into_iter().collect();
        for (at, item) in items.iter().enumerate() {
            if !is_repeated(item, &items[at + 1..]) {
                self.item(out, item)?;
            }
        }
        Ok(())
    }

    /// All of it as lines, each with the number of the item it belongs to: for screens.
    pub fn lines(
        mut self,
        items: &[TranscriptItem],
        style: impl Fn(usize) -> &'a ConversationStyle,
    ) -> Vec<(usize, StyledLine)> {
        let mut all = Vec::new();
        let items: Vec<&TranscriptItem> = items.iter().collect();
        for (at, &item) in items.iter().enumerate() {
            if is_repeated(item, &items[at + 1..]) {
                continue;
            }
            self.style = style(at);
            let mut lines: Vec<StyledLine> = Vec::new();
            // Nothing can go wrong in memory.
            let _ = self.item(&mut lines, item);
            all.extend(lines.into_iter().map(|line| (at, line)));
        }
        let mut lines: Vec<StyledLine> = Vec::new();
        let _ = self.flush_notes(&mut lines);
        let last = items.len().saturating_sub(1);
        all.extend(lines.into_iter().map(|line| (last, line)));
        all
    }

    fn to<'w>(&self, out: &'w mut dyn io::Write) -> LineByteWriter<'w> {
        LineByteWriter {
            out,
            color: self.style.color,
        }
    }

    /// Writes an item that somebody looks for: with a sign above it, and in another style,
    /// which hides less.
    pub fn marked(
        &mut self,
        out: &mut dyn io::Write,
        item: &TranscriptItem,
        sign: &str,
        style: &'a ConversationStyle,
    ) -> io::Result<()> {
        let out = &mut self.to(out);
        self.flush_notes(out)?;
        let quiet = std::mem::replace(&mut self.style, style);
        self.short(out, &[mark(TextStyle::HIT, "▶", sign)])?;
        let written = self.item(out, item);
        self.style = quiet;
        written
    }

    /// Writes what was held back.
    pub fn end(&mut self, out: &mut dyn io::Write) -> io::Result<()> {
        let out = &mut self.to(out);
        self.flush_notes(out)
    }

    fn item(&mut self, out: &mut dyn StyledLineSink, item: &TranscriptItem) -> io::Result<()> {
        match &item.body {
            ItemBody::Turn(head) => self.turn(out, head, item.at),
            ItemBody::Prompt(prompt) => self.prompt(out, prompt),
            ItemBody::Reply { text, model } => self.reply(out, text, model.as_deref()),
            ItemBody::Thinking { text, chars } => self.thinking(out, text, *chars),
            ItemBody::Call(call) => self.call(out, call),
            ItemBody::Orphan { text, is_error, .. } => self.orphan(out, text, *is_error),
            ItemBody::Queued { text } => self.queued(out, text),
            ItemBody::Interrupt { tool } => {
                let text = if *tool {
                    "interrupted at a tool call"
                } else {
                    "interrupted"
                };
                self.short(out, &[mark(TextStyle::WARN, "■", text)])
            }
            ItemBody::Compaction {
                micro,
                trigger,
                before,
                after,
            } => self.compaction(out, *micro, trigger.as_deref(), *before, *after),
            ItemBody::Summary { text } => self.summary(out, text),
            ItemBody::ApiError { text, attempt } => self.api_error(out, text, *attempt),
            ItemBody::Hook(hook) => self.hook(out, hook),
            ItemBody::Command {
                command,
                output,
                is_error,
            } => self.command(out, command.as_deref(), output, *is_error),
            ItemBody::Notice { text } => self.notice(out, text),
            ItemBody::Notes(notes) => {
                self.note(notes);
                if self.style.tools == ToolDetail::Full {
                    self.flush_notes(out)
                } else {
                    Ok(())
                }
            }
            ItemBody::Unknown { label } => {
                let text = format!("unknown kind of line: {label}");
                self.short(out, &[mark(TextStyle::DIM, "?", &text)])
            }
            ItemBody::Fault { detail } => self.short(out, &[mark(TextStyle::WARN, "!", detail)]),
        }
    }

    fn width(&self) -> usize {
        self.style
            .columns()
            .saturating_sub(self.prefix.width())
            .max(24)
    }

    fn put(&mut self, out: &mut dyn StyledLineSink, line: &StyledLine) -> io::Result<()> {
        out.take(&self.prefix, line)
    }

    /// A blank line if what comes next is not of the kind that stands close together.
    fn space(&mut self, out: &mut dyn StyledLineSink, next: LastWrittenKind) -> io::Result<()> {
        let close = match (self.last, next) {
            (LastWrittenKind::Nothing | LastWrittenKind::Rule, _)
            | (LastWrittenKind::Short, LastWrittenKind::Short) => true,
            (LastWrittenKind::Prose | LastWrittenKind::Short, _) => false,
        };
        if !close {
            self.put(out, &StyledLine::new())?;
        }
        self.last = next;
        Ok(())
    }

    fn short(&mut self, out: &mut dyn StyledLineSink, lines: &[StyledLine]) -> io::Result<()> {
        self.space(out, LastWrittenKind::Short)?;
        lines.iter().try_for_each(|line| self.put(out, line))
    }

    fn prose(
        &mut self,
        out: &mut dyn StyledLineSink,
        sign: &StyledLine,
        lines: &[StyledLine],
    ) -> io::Result<()> {
        self.space(out, LastWrittenKind::Prose)?;
        let indent = StyledLine::of(TextStyle::PLAIN, &" ".repeat(sign.width()));
        for (at, line) in lines.iter().enumerate() {
            let sign = if at == 0 { sign } else { &indent };
            self.put(out, &behind(sign, line))?;
        }
        Ok(())
    }

    fn turn(
        &mut self,
        out: &mut dyn StyledLineSink,
        head: &TurnHead,
        at: Option<Time>,
    ) -> io::Result<()> {
        self.flush_notes(out)?;
        self.space(out, LastWrittenKind::Rule)?;
        let mut left =
            StyledLine::of(TextStyle::DIM, "── ").with(TextStyle::BOLD, &head.n.to_string());
        if !head.live {
            left.push(TextStyle::WARN, " rewound");
        }
        left.push(TextStyle::DIM, " ");
        let right = StyledLine::of(TextStyle::DIM, &self.when(head, at));
        let gap = self.width().saturating_sub(left.width() + right.width());
        left.push(TextStyle::DIM, &"─".repeat(gap.max(1)));
        left.append(&right);
        self.put(out, &left)
    }

    /// ` 2026-11-15 14:02 · 1m 28s ──`; the day only where it changes.
    fn when(&mut self, head: &TurnHead, at: Option<Time>) -> String {
        let mut parts = Vec::new();
        if let Some(at) = at {
            let day = format::day(at, &self.style.zone);
            let clock = format::clock(at, &self.style.zone);
            let same = self.day.as_ref() == Some(&day);
            parts.push(if same {
                clock
            } else {
                format!("{day} {clock}")
            });
            self.day = Some(day);
        }
        parts.extend(head.duration_ms.filter(|ms| *ms > 0).map(format::duration));
        if parts.is_empty() {
            "──".to_owned()
        } else {
            format!(" {} ──", parts.join(" · "))
        }
    }

    fn prompt(
        &mut self,
        out: &mut dyn StyledLineSink,
        prompt: &TranscriptPrompt,
    ) -> io::Result<()> {
        let mut lines = wrap_text(TextStyle::BOLD, &prompt.text, self.width() - 2);
        let beside = self.beside(prompt);
        if prompt.text.trim().is_empty() {
            lines.clear();
        }
        // What an agent was told can be pages; what a person typed is never cut.
        if self.nested && self.style.tools != ToolDetail::Full {
            lines = limited(lines, FEW);
        }
        if !beside.is_empty() {
            lines.push(StyledLine::of(TextStyle::DIM, &beside.join(" · ")));
        }
        self.prose(out, &StyledLine::of(TextStyle::PROMPT, "❯ "), &lines)
    }

    /// What came with the text of a prompt.
    fn beside(&mut self, prompt: &TranscriptPrompt) -> Vec<String> {
        let mut beside = Vec::new();
        if prompt.images > 0 {
            beside.push(format!(
                "with {}",
                format::count(prompt.images as u64, "image")
            ));
        }
        beside.extend(came_with(prompt));
        beside.extend(new_mode(prompt, &mut self.mode, self.nested));
        beside
    }

    fn reply(
        &mut self,
        out: &mut dyn StyledLineSink,
        text: &str,
        model: Option<&str>,
    ) -> io::Result<()> {
        let mut sign = StyledLine::of(TextStyle::REPLY, "●");
        sign.push(TextStyle::PLAIN, " ");
        let mut lines = markdown::lines(text, self.width() - 2);
        // The model is named where it changes.
        if let Some(model) = model.filter(|model| self.model.as_deref() != Some(*model)) {
            let known = self.model.replace(model.to_owned());
            if known.is_some() {
                lines.insert(0, StyledLine::of(TextStyle::DIM, &format!("({model})")));
            }
        }
        self.prose(out, &sign, &lines)
    }

    fn thinking(
        &mut self,
        out: &mut dyn StyledLineSink,
        text: &str,
        chars: usize,
    ) -> io::Result<()> {
        if self.style.thinking && !text.is_empty() {
            let lines = wrap_text(TextStyle::THINKING, text, self.width() - 2);
            return self.prose(out, &StyledLine::of(TextStyle::THINKING, "✻ "), &lines);
        }
        let text = match chars {
            0 => "thought (text not recorded)".to_owned(),
            chars => format!("thought for {}", format::count(chars as u64, "character")),
        };
        self.short(out, &[mark(TextStyle::DIM, "✻", &text)])
    }

    fn call(&mut self, out: &mut dyn StyledLineSink, call: &TranscriptCall) -> io::Result<()> {
        if self.style.tools == ToolDetail::None {
            return Ok(());
        }
        let lines = tool_call::lines(call, self.style, self.width());
        self.short(out, &lines)?;
        if let Some(run) = call.agent.as_ref().and_then(|agent| agent.run.as_deref()) {
            let lines = tool_call::run_lines(run, self.width());
            self.short(out, &lines)?;
        }
        match &call.agent {
            Some(agent) if !agent.items.is_empty() => self.agent(out, agent),
            _ => Ok(()),
        }
    }

    fn agent(&mut self, out: &mut dyn StyledLineSink, agent: &TranscriptAgent) -> io::Result<()> {
        let mut inner = ConversationWriter::new(self.style);
        inner.prefix = behind(&self.prefix, &StyledLine::of(TextStyle::DIM, "    │ "));
        inner.nested = true;
        inner.items(out, &agent.items)?;
        inner.flush_notes(out)?;
        self.put(out, &StyledLine::of(TextStyle::DIM, "    └"))
    }

    fn orphan(
        &mut self,
        out: &mut dyn StyledLineSink,
        text: &str,
        is_error: bool,
    ) -> io::Result<()> {
        if self.style.tools == ToolDetail::None {
            return Ok(());
        }
        let what = if is_error { "a failure" } else { "a result" };
        let head = format!("{what} without its call");
        let mut lines = vec![mark(TextStyle::WARN, "?", &head)];
        lines.extend(self.output(text, TextStyle::DIM));
        self.short(out, &lines)
    }

    /// Text below a short line: a few lines, or all of them.
    fn output(&self, text: &str, paint: TextStyle) -> Vec<StyledLine> {
        let limit = if self.style.tools == ToolDetail::Full {
            usize::MAX
        } else {
            FEW
        };
        quoted(text, paint, self.width(), "    ", limit)
    }

    fn queued(&mut self, out: &mut dyn StyledLineSink, text: &str) -> io::Result<()> {
        let mut lines = wrap_text(TextStyle::BOLD, text, self.width() - 2);
        lines.push(StyledLine::of(
            TextStyle::DIM,
            "typed while the model was working",
        ));
        self.prose(out, &StyledLine::of(TextStyle::PROMPT, "❯ "), &lines)
    }

    fn compaction(
        &mut self,
        out: &mut dyn StyledLineSink,
        micro: bool,
        trigger: Option<&str>,
        before: Option<u64>,
        after: Option<u64>,
    ) -> io::Result<()> {
        self.space(out, LastWrittenKind::Prose)?;
        let what = if micro {
            "old results cleared"
        } else {
            "compacted"
        };
        let mut text = what.to_owned();
        match (before, after) {
            (Some(before), Some(after)) => {
                text += &format!(" {} → {}", format::tokens(before), format::tokens(after));
            }
            (Some(before), None) => text += &format!(" {} tokens", format::tokens(before)),
            (None, _) => {}
        }
        text += &trigger
            .map(|trigger| format!(" ({trigger})"))
            .unwrap_or_default();
        let line = StyledLine::of(TextStyle::DIM, "── ")
            .with(TextStyle::WARN, &text)
            .with(TextStyle::DIM, " ──");
        self.put(out, &line)?;
        self.last = LastWrittenKind::Rule;
        Ok(())
    }

    fn summary(&mut self, out: &mut dyn StyledLineSink, text: &str) -> io::Result<()> {
        let size = format::count(text.chars().count() as u64, "character");
        let mut lines = vec![mark(
            TextStyle::DIM,
            "≡",
            &format!("continued from a summary of {size}"),
        )];
        if self.style.tools == ToolDetail::Full {
            lines.extend(self.output(text, TextStyle::DIM));
        }
        self.short(out, &lines)
    }

    fn api_error(
        &mut self,
        out: &mut dyn StyledLineSink,
        text: &str,
        attempt: Option<(u64, u64)>,
    ) -> io::Result<()> {
        let again = attempt
            .map(|(n, of)| format!(" (attempt {n} of {of})"))
            .unwrap_or_default();
        let text = text
            .trim_start_matches("API Error: ")
            .trim_start_matches("API Error")
            .trim();
        let lines = wrap_text(
            TextStyle::ERROR,
            &format!("API error: {text}{again}"),
            self.width() - 2,
        );
        self.signed(out, &StyledLine::of(TextStyle::ERROR, "✗ "), &lines)
    }

    fn signed(
        &mut self,
        out: &mut dyn StyledLineSink,
        sign: &StyledLine,
        lines: &[StyledLine],
    ) -> io::Result<()> {
        let indent = StyledLine::of(TextStyle::PLAIN, &" ".repeat(sign.width()));
        let lines = lines.iter().enumerate();
        let lines: Vec<StyledLine> = lines
            .map(|(at, line)| behind(if at == 0 { sign } else { &indent }, line))
            .collect();
        self.short(out, &lines)
    }

    fn hook(&mut self, out: &mut dyn StyledLineSink, hook: &FailedHook) -> io::Result<()> {
        let did = if hook.blocked { "blocked" } else { "failed" };
        let mut lines = vec![mark(
            TextStyle::WARN,
            "!",
            &format!("hook {} {did}", hook.event),
        )];
        let command = hook.command.iter().map(|command| format!("$ {command}"));
        for command in command {
            lines.extend(self.output(&command, TextStyle::DIM));
        }
        lines.extend(self.output(&hook.output, TextStyle::PLAIN));
        self.short(out, &lines)
    }

    fn command(
        &mut self,
        out: &mut dyn StyledLineSink,
        command: Option<&str>,
        output: &str,
        is_error: bool,
    ) -> io::Result<()> {
        if let Some(command) = command {
            let lines = wrap_text(TextStyle::BOLD, command, self.width() - 2);
            self.prose(out, &StyledLine::of(TextStyle::PROMPT, "❯ "), &lines)?;
            self.last = LastWrittenKind::Short;
        }
        if output.trim().is_empty() {
            return Ok(());
        }
        // Output belongs to the command above it.
        self.last = if self.last == LastWrittenKind::Prose {
            LastWrittenKind::Short
        } else {
            self.last
        };
        let paint = if is_error {
            TextStyle::ERROR
        } else {
            TextStyle::PLAIN
        };
        let lines = self.output(output, paint);
        self.short(out, &lines)?;
        self.last = LastWrittenKind::Prose;
        Ok(())
    }

    fn notice(&mut self, out: &mut dyn StyledLineSink, text: &str) -> io::Result<()> {
        let lines = wrap_text(TextStyle::DIM, text, self.width() - 4);
        let limit = if self.style.tools == ToolDetail::Full {
            usize::MAX
        } else {
            FEW
        };
        let lines = limited(lines, limit);
        self.signed(out, &StyledLine::of(TextStyle::DIM, "  ◆ "), &lines)
    }

    fn note(&mut self, notes: &[TranscriptNote]) {
        let all = self.style.tools == ToolDetail::Full;
        for note in notes.iter().filter(|note| all || note.matters) {
            match self
                .notes
                .iter_mut()
                .find(|other| other.label == note.label)
            {
                Some(other) => other.count += note.count,
                None => self.notes.push(note.clone()),
            }
        }
    }

    /// What stands beside the conversation, in one line.
    fn flush_notes(&mut self, out: &mut dyn StyledLineSink) -> io::Result<()> {
        let notes = std::mem::take(&mut self.notes);
        if notes.is_empty() {
            return Ok(());
        }
        let total: u64 = notes.iter().map(|note| u64::from(note.count)).sum();
        let label = |note: &TranscriptNote| match note.count {
            1 => note.label.clone(),
            count => format!("{} ×{count}", note.label),
        };
        let labels: Vec<String> = notes.iter().map(label).collect();
        let text = format!("{}: {}", format::count(total, "note"), labels.join(", "));
        let line = mark(TextStyle::DIM, "·", &text);
        let line = match self.style.tools {
            ToolDetail::Full => line,
            ToolDetail::None | ToolDetail::Short => cut(&line, self.width()),
        };
        self.short(out, &[line])
    }
}

/// A failed attempt that is followed by another one with the same words says nothing new.
fn is_repeated(item: &TranscriptItem, behind: &[&TranscriptItem]) -> bool {
    let ItemBody::ApiError {
        text,
        attempt: Some(_),
    } = &item.body
    else {
        return false;
    };
    let next = behind
        .iter()
        .find(|item| !matches!(item.body, ItemBody::Notes(_)));
    matches!(next.map(|item| &item.body), Some(ItemBody::ApiError { text: other, attempt: Some(_) }) if other == text)
}

/// A short line behind a sign.
fn mark(paint: TextStyle, sign: &str, text: &str) -> StyledLine {
    StyledLine::of(paint, &format!("  {sign} ")).with(paint, text)
}

/// Text in a frame: all of it, or `limit` lines, each cut to the width.
pub(crate) fn quoted(
    text: &str,
    paint: TextStyle,
    width: usize,
    indent: &str,
    limit: usize,
) -> Vec<StyledLine> {
    let bar = StyledLine::of(TextStyle::PLAIN, indent).with(TextStyle::DIM, "│ ");
    let room = width.saturating_sub(bar.width()).max(10);
    let fit = |line: StyledLine| match limit {
        usize::MAX => wrap_own(line, room),
        _ => vec![cut(&line, room)],
    };
    let lines = few(text, paint, limit, fit).into_iter();
    lines.map(|line| behind_own(&bar, line)).collect()
}

/// Lines of a text, each laid out by `fit`: up to `limit` of them; of more, one less and the
/// number of the rest. What is not shown is not laid out either.
pub(crate) fn few(
    text: &str,
    paint: TextStyle,
    limit: usize,
    fit: impl Fn(StyledLine) -> Vec<StyledLine>,
) -> Vec<StyledLine> {
    let text = crate::clean::text(text);
    let text = text.trim_end().trim_start_matches('\n');
    if text.is_empty() {
        return Vec::new();
    }
    let total = text.lines().count();
    let mut out = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let more = fit(StyledLine::of_clean(paint, line));
        let last = at + 1 == total;
        let fits = out.len() + more.len() < limit || (last && out.len() + more.len() <= limit);
        if !fits {
            let room = limit.saturating_sub(1);
            // A long line is cut rather than left out, unless others already stand there.
            let taken = room.saturating_sub(out.len()).min(more.len());
            let whole = taken == more.len();
            out.extend(more.into_iter().take(taken));
            let rest = total - at - usize::from(whole);
            out.extend(diff::more(rest.max(1)));
            break;
        }
        out.extend(more);
    }
    out
}

/// Up to `limit` lines as they are; of more, one line less and the number of the rest.
pub(crate) fn limited(mut lines: Vec<StyledLine>, limit: usize) -> Vec<StyledLine> {
    if lines.len() > limit {
        let rest = lines.len() + 1 - limit;
        lines.truncate(limit.saturating_sub(1));
        lines.extend(diff::more(rest));
    }
    lines
}
/// What the client sent along with a prompt, in words.
pub(crate) fn came_with(prompt: &TranscriptPrompt) -> Vec<String> {
    let kinds = prompt.kinds;
    let said = [
        (
            kinds.contains(InputKinds::IDE_SELECTION),
            "with a selection in the editor",
        ),
        (
            kinds.contains(InputKinds::IDE_OPENED_FILE),
            "with a file open in the editor",
        ),
        (
            prompt.kind == UserInput::Plan,
            "a plan from another session",
        ),
    ];
    let said = said.into_iter().filter(|(is, _)| *is);
    said.map(|(_, words)| words.to_owned()).collect()
}

/// The permission mode of a prompt, in words, if it is another than the last one.
pub(crate) fn new_mode(
    prompt: &TranscriptPrompt,
    last: &mut Option<String>,
    nested: bool,
) -> Option<String> {
    let mode = prompt.permission_mode.as_deref().unwrap_or("default");
    if nested || mode == last.as_deref().unwrap_or("default") {
        return None;
    }
    *last = Some(mode.to_owned());
    Some(format!("permission mode: {mode}"))
}
