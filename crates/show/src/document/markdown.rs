//! A session as Markdown: for GitHub, for Obsidian, for a model to read.
//!
//! What people and the model wrote is Markdown already and stays so, but for what would break
//! out of its place: raw HTML becomes text, headings go below those of the turns, open code
//! blocks are closed, images become links, links lead to the web or to mail, and blocks that
//! some readers run are only shown.
//! What programs printed stands in fences longer than any it holds. There is no HTML of ours.

mod sanitize;

use std::io;

use serde_json::Value;
use unspool_model::user_input::UserInput;
use unspool_model::view::tool_outcome::{
    FileChange, PatchSign, TodoItem, TodoState, ToolCallOutcome, UserQuestion,
};
use unspool_model::view::transcript::{
    FailedHook, ItemBody, LoadedMedia, TranscriptCall, TranscriptItem, TranscriptNote,
    TranscriptPrompt, TurnHead,
};
use unspool_model::view::turns::CallStatus as Status;

use self::sanitize::sanitize_markdown;
use super::{
    DocumentContext, DocumentDetail, DocumentOptions, DocumentSource, DocumentWriter, cut,
    cut_note, entries, index, is_told, shows,
};
use crate::diff::{self, DiffRow};
use crate::wire::session::SessionJson;
use crate::{clean, format, tool_call};

/// Writes a session as Markdown.
pub(super) fn write(
    out: &mut dyn io::Write,
    whole: &DocumentSource<'_>,
    options: &DocumentOptions,
) -> io::Result<()> {
    super::write_pages(out, whole, &MarkdownDocumentWriter(options), options)
}

/// Writes the index of a folder: a table.
pub(super) fn index(
    out: &mut dyn io::Write,
    rows: &[(String, SessionJson)],
    options: &DocumentOptions,
) -> io::Result<()> {
    writeln!(out, "# Sessions\n\n{}\n", index::sum(rows))?;
    writeln!(out, "| session | about |\n|---|---|")?;
    for (file, row) in rows {
        let facts = inline(&index::facts(row, options).join(" · "));
        // Names of files are ids, which need no escapes.
        writeln!(out, "| [{}]({file}) | {facts} |", inline(&title(row)))?;
    }
    Ok(())
}

fn title(row: &SessionJson) -> String {
    let title = row
        .title
        .as_deref()
        .filter(|title| !title.trim().is_empty());
    clean::line(title.unwrap_or(&row.id)).into_owned()
}

/// Text within a line, with nothing that means something in Markdown.
fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean::line(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '>' | '#' | '|' | '~' | '$' | '%' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

/// Code within a line.
fn code(text: &str) -> String {
    let text = clean::line(text);
    if text.trim().is_empty() {
        // Two ticks with nothing between them would open code instead.
        return "` `".to_owned();
    }
    let ticks = "`".repeat(longest(&text, b'`') + 1);
    // A space keeps a tick at the edge apart.
    let pad = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// A text in YAML, which is text in Markdown, too: not every reader knows that what stands
/// before a document is no part of it.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in clean::line(text).chars() {
        match c {
            c if c.is_ascii_punctuation() && !"/.,:;-_@'?()".contains(c) => {
                out.push_str(&format!("\\u{:04x}", c as u32));
            }
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The longest run of a character.
fn longest(text: &str, wanted: u8) -> usize {
    let (mut most, mut rest) = (0, text.as_bytes());
    while let Some(at) = memchr::memchr(wanted, rest) {
        rest = &rest[at..];
        let run = rest.iter().take_while(|byte| **byte == wanted).count();
        most = most.max(run);
        rest = &rest[run..];
    }
    most
}

struct MarkdownPage<'a> {
    out: &'a mut dyn io::Write,
    options: &'a DocumentOptions,
    /// Quotation marks of the sub-agents that are open.
    prefix: String,
    known: DocumentContext,
}

/// How Markdown looks.
struct MarkdownDocumentWriter<'a>(&'a DocumentOptions);

impl MarkdownDocumentWriter<'_> {
    fn sheet<'s>(&'s self, out: &'s mut dyn io::Write, known: DocumentContext) -> MarkdownPage<'s> {
        MarkdownPage {
            out,
            options: self.0,
            prefix: String::new(),
            known,
        }
    }
}

impl DocumentWriter for MarkdownDocumentWriter<'_> {
    fn begin(&self, out: &mut dyn io::Write, whole: &DocumentSource<'_>) -> io::Result<()> {
        self.sheet(out, DocumentContext::default()).begin(whole)
    }

    fn part(
        &self,
        out: &mut dyn io::Write,
        items: &[TranscriptItem],
        known: DocumentContext,
    ) -> io::Result<()> {
        self.sheet(out, known).items(items)
    }

    fn loose(
        &self,
        out: &mut dyn io::Write,
        name: &str,
        items: &[TranscriptItem],
        known: &mut DocumentContext,
    ) -> io::Result<()> {
        let mut sheet = self.sheet(out, std::mem::take(known));
        sheet.line(&format!("\n## Sub-agent {}", inline(name)))?;
        sheet.items(items)?;
        *known = sheet.known;
        Ok(())
    }

    fn end(&self, _: &mut dyn io::Write) -> io::Result<()> {
        Ok(())
    }
}

impl MarkdownPage<'_> {
    /// What stands before the conversation.
    fn begin(&mut self, whole: &DocumentSource<'_>) -> io::Result<()> {
        self.front(whole)?;
        writeln!(self.out, "\n# {}", inline(&title(whole.row)))?;
        let commits: Vec<_> = entries(whole.session, whole.source)
            .into_iter()
            .flat_map(|entry| entry.commits)
            .collect();
        if !commits.is_empty() {
            writeln!(self.out, "\nCommits:\n")?;
            for commit in commits {
                let (hash, title) = (code(&commit.hash), inline(&commit.title));
                writeln!(self.out, "- {hash} {title} (turn {})", commit.turn)?;
            }
        }
        Ok(())
    }

    /// What programs ask about a document: YAML, every text a quoted one.
    fn front(&mut self, whole: &DocumentSource<'_>) -> io::Result<()> {
        let row = whole.row;
        writeln!(self.out, "---\ntitle: {}", quoted(&title(row)))?;
        let texts = [
            ("session", Some(row.id.as_str())),
            ("date", row.first.as_deref()),
            ("ended", row.last.as_deref()),
            ("project", row.cwd.as_deref().or(Some(&row.project))),
            ("branch", row.git_branch.as_deref()),
            ("model", row.model.as_deref()),
            ("client", row.version.as_deref()),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                writeln!(self.out, "{name}: {}", quoted(text))?;
            }
        }
        writeln!(self.out, "turns: {}\ncalls: {}", row.turns, row.calls)?;
        if let Some(cost) = row.cost_usd {
            writeln!(self.out, "cost_usd: {cost:.4}")?;
        } else if let Some(known) = row.cost_usd_known.filter(|_| row.unpriced_messages > 0) {
            writeln!(self.out, "cost_usd_known: {known:.4}")?;
            writeln!(self.out, "unpriced_messages: {}", row.unpriced_messages)?;
        }
        writeln!(self.out, "tags: [claude-code]\n---")
    }

    /// A line within the quotations that are open.
    fn line(&mut self, text: &str) -> io::Result<()> {
        if self.prefix.is_empty() {
            self.out.write_all(text.as_bytes())?;
            return self.out.write_all(b"\n");
        }
        for line in text.split('\n') {
            let prefix = match line {
                "" => self.prefix.trim_end(),
                _ => &self.prefix,
            };
            self.out.write_all(prefix.as_bytes())?;
            self.out.write_all(line.as_bytes())?;
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }

    /// A paragraph: text with a blank line before it.
    fn paragraph(&mut self, text: &str) -> io::Result<()> {
        self.line("")?;
        self.line(text)
    }

    /// Markdown of others.
    fn prose(&mut self, text: &str) -> io::Result<()> {
        let (text, left) = cut(text, self.options.max_chars);
        let text = clean::text(text);
        self.paragraph(sanitize_markdown(text.trim()).trim_end())?;
        self.left_out(left)
    }

    /// The same, quoted.
    fn quoted(&mut self, text: &str) -> io::Result<()> {
        self.line("")?;
        self.prefix.push_str("> ");
        let (text, left) = cut(text, self.options.max_chars);
        let text = clean::text(text);
        let written = self.line(sanitize_markdown(text.trim()).trim_end());
        self.prefix.truncate(self.prefix.len() - 2);
        written?;
        self.left_out(left)
    }

    /// Text as it is.
    fn fenced(&mut self, language: &str, text: &str) -> io::Result<()> {
        let (text, left) = cut(text, self.options.max_chars);
        let text = clean::text(text);
        let text = text.trim_end();
        if text.is_empty() && left == 0 {
            return Ok(());
        }
        let fence = "`".repeat(longest(text, b'`').max(2) + 1);
        self.line("")?;
        self.line(&format!("{fence}{language}"))?;
        self.line(text)?;
        self.line(&fence)?;
        self.left_out(left)
    }

    fn left_out(&mut self, left: usize) -> io::Result<()> {
        match left {
            0 => Ok(()),
            left => self.paragraph(&format!("*{}*", cut_note(left))),
        }
    }

    fn items(&mut self, items: &[TranscriptItem]) -> io::Result<()> {
        let detail = self.options.detail;
        let shown: Vec<&TranscriptItem> = items.iter().filter(|item| shows(detail, item)).collect();
        let mut before_was_line = false;
        for item in shown {
            // Calls in a line each stand close together.
            let is_line = detail < DocumentDetail::High
                && matches!(&item.body, ItemBody::Call(call) if !tool_call::has_news(call));
            if is_line && !before_was_line {
                self.line("")?;
            }
            before_was_line = is_line;
            self.item(item)?;
        }
        Ok(())
    }

    fn item(&mut self, item: &TranscriptItem) -> io::Result<()> {
        match &item.body {
            ItemBody::Turn(head) => self.turn(head, item),
            ItemBody::Prompt(prompt) => self.prompt(prompt),
            ItemBody::Queued { text } => {
                self.paragraph("*Typed while the model was working:*")?;
                self.quoted(text)
            }
            ItemBody::Reply { text, model } => self.reply(text, model.as_deref()),
            ItemBody::Thinking { text, .. } if text.is_empty() => {
                self.paragraph("*Thought (text not recorded).*")
            }
            ItemBody::Thinking { text, .. } => {
                self.paragraph("*Thought:*")?;
                self.quoted(text)
            }
            ItemBody::Call(call) => self.call(call),
            ItemBody::Orphan { call, text, .. } => {
                self.paragraph(&format!("*A result without its call {}:*", code(call)))?;
                self.fenced("text", text)
            }
            ItemBody::Interrupt { tool: true } => self.paragraph("*Interrupted at a tool call.*"),
            ItemBody::Interrupt { tool: false } => self.paragraph("*Interrupted.*"),
            ItemBody::Compaction {
                micro,
                before,
                after,
                ..
            } => self.compaction(*micro, *before, *after),
            ItemBody::Summary { text } => {
                self.paragraph("*Continued from a summary:*")?;
                self.quoted(text)
            }
            ItemBody::ApiError { text, .. } => {
                self.paragraph("**API error**")?;
                self.fenced("text", text)
            }
            ItemBody::Hook(hook) => self.hook(hook),
            ItemBody::Command {
                command, output, ..
            } => {
                if let Some(command) = command {
                    self.paragraph(&format!("**{}**", code(command)))?;
                }
                self.fenced("text", output)
            }
            ItemBody::Notice { text } => self.quoted(text),
            ItemBody::Notes(notes) => self.notes(notes),
            ItemBody::Unknown { label } => {
                self.paragraph(&format!("*Unknown kind of line: {}*", code(label)))
            }
            ItemBody::Fault { detail } => self.paragraph(&format!("*{}*", inline(detail))),
        }
    }

    fn turn(&mut self, head: &TurnHead, item: &TranscriptItem) -> io::Result<()> {
        let mut parts = vec![format!("Turn {}", head.n)];
        parts.extend(item.at.map(|at| format::moment(at, &self.options.zone)));
        parts.extend(head.duration_ms.filter(|ms| *ms > 0).map(format::duration));
        if !head.live {
            parts.push("rewound".to_owned());
        }
        self.paragraph(&format!("## {}", parts.join(" · ")))
    }

    fn prompt(&mut self, prompt: &TranscriptPrompt) -> io::Result<()> {
        if !prompt.text.trim().is_empty() {
            self.quoted(&prompt.text)?;
        }
        if prompt.kind == UserInput::Plan {
            self.paragraph("*A plan from another session.*")?;
        }
        self.media(&prompt.media)
    }

    /// Data of images would fill a page of text; what they were is said.
    fn media(&mut self, media: &[LoadedMedia]) -> io::Result<()> {
        for one in media {
            let bytes = one.data.len() as u64 / 4 * 3;
            let kind = inline(&format!("{} {}", one.kind, one.media_type));
            self.paragraph(&format!("*{}, {}*", kind.trim(), format::bytes(bytes)))?;
            if let Some(place) = &one.place {
                self.fenced("text", place)?;
            }
        }
        Ok(())
    }

    fn reply(&mut self, text: &str, model: Option<&str>) -> io::Result<()> {
        if let Some(model) = self.known.new_model(model) {
            self.paragraph(&format!("*{}*", inline(model)))?;
        }
        self.prose(text)
    }

    fn call(&mut self, call: &TranscriptCall) -> io::Result<()> {
        let high = self.options.detail >= DocumentDetail::High;
        let line = call_line(call);
        if !high && !tool_call::has_news(call) {
            return self.line(&format!("- {line}"));
        }
        self.paragraph(&line)?;
        let rows = call.change.as_ref().map(diff::rows);
        match (&call.change, rows) {
            (Some(FileChange::Written(text)), _) if high => self.fenced("text", text)?,
            (Some(FileChange::Written(_)), _) => {}
            (Some(_), Some(rows)) => self.diff(&rows)?,
            _ => {}
        }
        match &call.outcome {
            ToolCallOutcome::Todos(todos) => self.todos(todos)?,
            ToolCallOutcome::Asked(questions) => self.questions(questions)?,
            ToolCallOutcome::Plan(plan) => self.quoted(plan)?,
            ToolCallOutcome::Refused { said: Some(said) } => self.quoted(said)?,
            _ => {}
        }
        if high {
            self.input(call)?;
        }
        if let Some(agent) = call.agent.as_ref().filter(|agent| !agent.items.is_empty()) {
            self.line("")?;
            self.prefix.push_str("> ");
            let known = self.known.inside();
            let written = self.items(&agent.items);
            self.known.outside(known);
            self.prefix.truncate(self.prefix.len() - 2);
            written?;
        }
        let done = call.change.is_some()
            || matches!(
                call.outcome,
                ToolCallOutcome::Todos(_) | ToolCallOutcome::Plan(_)
            );
        if call.status == Status::Error
            || (high && !(done && self.options.detail < DocumentDetail::Full))
        {
            match call.outcome {
                ToolCallOutcome::Agent(_) if call.status != Status::Error => {
                    self.quoted(&call.text)?
                }
                _ => self.fenced("text", &call.text)?,
            }
        }
        self.media(&call.media)
    }

    fn input(&mut self, call: &TranscriptCall) -> io::Result<()> {
        let Some(fields) = call.input.as_object() else {
            return match &call.input {
                Value::Null => Ok(()),
                other => self.fenced("json", &other.to_string()),
            };
        };
        let shown = tool_call::shown_fields(call);
        let whole = tool_call::whole_subject(call);
        let rest = fields.iter().filter(|(name, value)| {
            let said = whole.is_some() && value.as_str() == whole;
            !said && !shown.contains(&name.as_str())
        });
        let mut short = Vec::new();
        for (name, value) in rest {
            match value {
                Value::String(text) if name == "command" => self.fenced("sh", text)?,
                Value::String(text) if text.contains('\n') || text.len() > 200 => {
                    self.paragraph(&format!("{}:", code(name)))?;
                    self.fenced("text", text)?;
                }
                Value::String(text) => short.push((name, code(text))),
                Value::Object(_) | Value::Array(_) => {
                    self.paragraph(&format!("{}:", code(name)))?;
                    self.fenced("json", &serde_json::to_string_pretty(value)?)?;
                }
                other => short.push((name, code(&other.to_string()))),
            }
        }
        if !short.is_empty() {
            self.line("")?;
        }
        for (name, value) in short {
            self.line(&format!("- {}: {value}", code(name)))?;
        }
        Ok(())
    }

    fn diff(&mut self, rows: &[DiffRow]) -> io::Result<()> {
        let mut text = String::new();
        for row in rows {
            match row {
                DiffRow::Gap => text.push_str("@@\n"),
                DiffRow::Line {
                    sign, text: line, ..
                } => {
                    text.push(match sign {
                        PatchSign::Same => ' ',
                        PatchSign::Added => '+',
                        PatchSign::Removed => '-',
                    });
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
        self.fenced("diff", &text)
    }

    fn todos(&mut self, todos: &[TodoItem]) -> io::Result<()> {
        self.line("")?;
        for todo in todos {
            let mark = if todo.state == TodoState::Done {
                'x'
            } else {
                ' '
            };
            let (text, strong) = (inline(&todo.text), todo.state == TodoState::Active);
            let text = if strong { format!("**{text}**") } else { text };
            self.line(&format!("- [{mark}] {text}"))?;
        }
        Ok(())
    }

    fn questions(&mut self, questions: &[UserQuestion]) -> io::Result<()> {
        for question in questions {
            self.paragraph(&format!("**{}**", inline(&question.text)))?;
            self.line("")?;
            for option in &question.options {
                self.line(&format!("- {}", inline(option)))?;
            }
            match &question.answer {
                Some(answer) => self.quoted(answer)?,
                None => self.paragraph("*No answer.*")?,
            }
        }
        Ok(())
    }

    fn compaction(
        &mut self,
        micro: bool,
        before: Option<u64>,
        after: Option<u64>,
    ) -> io::Result<()> {
        let what = if micro {
            "Old results cleared"
        } else {
            "Compacted"
        };
        let size = match (before, after) {
            (Some(before), Some(after)) => {
                format!(
                    " {} → {} tokens",
                    format::tokens(before),
                    format::tokens(after)
                )
            }
            (Some(before), None) => format!(" at {} tokens", format::tokens(before)),
            (None, _) => String::new(),
        };
        self.paragraph(&format!("---\n\n*{what}{size}*"))
    }

    fn hook(&mut self, hook: &FailedHook) -> io::Result<()> {
        let did = if hook.blocked { "blocked" } else { "failed" };
        let command = hook.command.as_deref().map(code).unwrap_or_default();
        self.paragraph(&format!("**hook {}** {did} {command}", inline(&hook.event)))?;
        self.fenced("text", &hook.output)
    }

    fn notes(&mut self, notes: &[TranscriptNote]) -> io::Result<()> {
        for note in notes.iter().filter(|note| is_told(note)) {
            let times = match note.count {
                1 => String::new(),
                count => format!(" × {count}"),
            };
            self.paragraph(&format!("*{}{times}*", inline(&note.label)))?;
            self.fenced("text", &note.text)?;
        }
        Ok(())
    }
}

/// `**ran** \`cargo test\` · exit 1 · 3.2s`.
fn call_line(call: &TranscriptCall) -> String {
    let mut line = format!("**{}**", inline(&call.verb));
    let told = matches!(
        call.outcome,
        ToolCallOutcome::Plan(_) | ToolCallOutcome::Asked(_)
    );
    if let Some(subject) = call.subject.as_deref().filter(|_| !told) {
        line += &format!(" {}", code(subject));
    }
    let (_, came) = tool_call::result(call);
    if !came.is_empty() {
        line += &format!(" · {}", inline(&came));
    }
    line + &call
        .duration_ms
        .map(|ms| format!(" · {}", format::duration(ms)))
        .unwrap_or_default()
}
