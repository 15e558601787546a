//! A tool call in a page: one line, and behind it everything.

use std::io;

use serde_json::Value;
use unspool_model::view::tool_outcome::{
    FileChange, PatchSign, TodoItem, TodoState, ToolCallOutcome, UserQuestion,
};
use unspool_model::view::transcript::{LoadedMedia, TranscriptCall};
use unspool_model::view::turns::CallStatus as Status;

use super::{HtmlPage, ansi, markdown_html};
use crate::diff::{self, DiffRow};
use crate::document::DocumentDetail;
use crate::{format, tool_call};

/// A change of up to so many lines is open.
const OPEN: usize = 24;

impl HtmlPage<'_> {
    /// Writes a call.
    pub(super) fn call(&mut self, call: &TranscriptCall) -> io::Result<()> {
        if self.options.detail < DocumentDetail::High && !tool_call::has_news(call) {
            self.html.raw("<div class=\"call flat\">")?;
            self.call_line(call)?;
            return self.html.raw("</div>\n");
        }
        let failed = matches!(call.status, Status::Error | Status::Missing);
        let rows = match &call.change {
            Some(FileChange::Written(_)) | None => None,
            Some(change) => Some(diff::rows(change)),
        };
        let few = rows.as_ref().is_some_and(|rows| rows.len() <= OPEN);
        let told = tool_call::is_told(&call.outcome);
        self.html.raw("<details class=\"call")?;
        if failed {
            self.html.raw(" bad")?;
        }
        if call.agent.is_some() {
            self.html.raw(" agent")?;
        }
        self.html.raw("\" id=\"c-")?;
        self.html.text(&call.id)?;
        self.html.raw("\"")?;
        if told || failed || few {
            self.html.raw(" open")?;
        }
        self.html.raw("><summary>")?;
        self.call_line(call)?;
        self.html.raw("</summary>\n<div class=\"body\">")?;
        self.call_body(call, rows.as_deref())?;
        self.html.raw("</div></details>\n")
    }

    fn call_line(&mut self, call: &TranscriptCall) -> io::Result<()> {
        self.html.raw("<span class=\"verb\">")?;
        self.html.text(&call.verb)?;
        self.html.raw("</span> ")?;
        let subject = call.subject.as_deref().unwrap_or_default();
        let told = matches!(
            call.outcome,
            ToolCallOutcome::Plan(_) | ToolCallOutcome::Asked(_)
        );
        if !subject.is_empty() && !told {
            self.html.raw("<span class=\"about\"")?;
            if let Some(whole) = tool_call::whole_subject(call) {
                self.html.raw(" title=\"")?;
                self.html.text(whole)?;
                self.html.raw("\"")?;
            }
            self.html.raw(">")?;
            if let ToolCallOutcome::Agent(agent) = &call.outcome
                && let Some(kind) = agent.kind.as_deref().filter(|kind| *kind != subject)
            {
                self.html.raw("<b>")?;
                self.html.text(kind)?;
                self.html.raw("</b> ")?;
            }
            self.html.text(subject)?;
            self.html.raw("</span> ")?;
        }
        self.came(call)?;
        if let Some(ms) = call.duration_ms {
            self.html.raw(" <span class=\"took\">")?;
            self.html.text(&format::duration(ms))?;
            self.html.raw("</span>")?;
        }
        Ok(())
    }

    /// What came of it, in a few words.
    fn came(&mut self, call: &TranscriptCall) -> io::Result<()> {
        let (paint, text) = tool_call::result(call);
        if text.is_empty() {
            return Ok(());
        }
        self.html.raw(match paint {
            crate::TextStyle::ERROR => "<span class=\"came err\">",
            crate::TextStyle::WARN => "<span class=\"came warn\">",
            _ => "<span class=\"came\">",
        })?;
        self.html.text(&text)?;
        self.html.raw("</span>")
    }

    fn call_body(&mut self, call: &TranscriptCall, rows: Option<&[DiffRow]>) -> io::Result<()> {
        let brief = self.options.detail < DocumentDetail::High;
        match (&call.change, rows) {
            (Some(FileChange::Written(text)), _) => self.written(text)?,
            (Some(_), Some(rows)) => self.diff(rows)?,
            _ => {}
        }
        match &call.outcome {
            ToolCallOutcome::Todos(todos) => self.todos(todos)?,
            ToolCallOutcome::Asked(questions) => self.questions(questions)?,
            ToolCallOutcome::Plan(plan) => self.prose_block("plan", plan)?,
            ToolCallOutcome::Refused { said: Some(said) } => {
                self.html.raw("<blockquote>")?;
                self.typed(said)?;
                self.html.raw("</blockquote>")?;
            }
            _ => {}
        }
        if !brief {
            self.input(call)?;
        }
        if let Some(agent) = call.agent.as_ref().filter(|agent| !agent.items.is_empty()) {
            self.html.raw("<div class=\"inner\">\n")?;
            self.steps(&agent.items)?;
            self.html.raw("</div>\n")?;
        }
        if !brief || call.status == Status::Error {
            self.result(call)?;
        }
        self.media(&call.media)
    }

    /// The input, but for what was shown already.
    fn input(&mut self, call: &TranscriptCall) -> io::Result<()> {
        let Some(fields) = call.input.as_object() else {
            return match &call.input {
                Value::Null => Ok(()),
                other => self.block("input", &other.to_string()),
            };
        };
        let shown = tool_call::shown_fields(call);
        let mut open = false;
        let whole = tool_call::whole_subject(call);
        for (name, value) in fields {
            if shown.contains(&name.as_str()) || (whole.is_some() && value.as_str() == whole) {
                continue;
            }
            if name == "command" && value.is_string() {
                if std::mem::take(&mut open) {
                    self.html.raw("</dl>")?;
                }
                self.block("cmd", value.as_str().unwrap_or_default())?;
                continue;
            }
            if !std::mem::replace(&mut open, true) {
                self.html.raw("<dl>")?;
            }
            self.html.raw("<dt>")?;
            self.html.text(name)?;
            self.html.raw("</dt><dd>")?;
            self.field(call, name, value)?;
            self.html.raw("</dd>")?;
        }
        if open {
            self.html.raw("</dl>\n")?;
        }
        Ok(())
    }

    fn field(&mut self, call: &TranscriptCall, name: &str, value: &Value) -> io::Result<()> {
        match value {
            Value::String(text) if name == "prompt" && call.agent.is_some() => {
                self.prose_block("md", text)
            }
            Value::String(text) if text.contains('\n') => self.block("", text),
            Value::String(text) => self.cut_text(text),
            Value::Object(_) | Value::Array(_) => {
                let text = serde_json::to_string_pretty(value).unwrap_or_default();
                self.block("", &text)
            }
            other => self.html.text(&other.to_string()),
        }
    }

    fn result(&mut self, call: &TranscriptCall) -> io::Result<()> {
        let text = call.text.trim_end();
        if text.is_empty() {
            return Ok(());
        }
        if call.change.is_some()
            || matches!(
                call.outcome,
                ToolCallOutcome::Todos(_) | ToolCallOutcome::Plan(_)
            )
        {
            // It says that it is done; that was shown.
            self.html
                .raw("<details class=\"more\"><summary>result</summary>")?;
            self.block("out", text)?;
            return self.html.raw("</details>");
        }
        let prose = match (&call.outcome, call.status) {
            (_, Status::Error) => false,
            (
                ToolCallOutcome::Agent(_)
                | ToolCallOutcome::Searched { .. }
                | ToolCallOutcome::Fetched { .. },
                _,
            ) => true,
            _ => false,
        };
        if prose {
            return self.prose_block("md out", text);
        }
        self.block(
            if call.status == Status::Error {
                "out err"
            } else {
                "out"
            },
            text,
        )
    }

    /// Text as it is, in a frame.
    pub(super) fn block(&mut self, class: &'static str, text: &str) -> io::Result<()> {
        let (text, left) = self.cut(text);
        self.html.raw("<pre class=\"")?;
        self.html.raw(class)?;
        self.html.raw("\">")?;
        // The first newline behind the tag would be swallowed.
        if text.starts_with('\n') {
            self.html.raw("\n")?;
        }
        ansi::write(&mut self.html, text)?;
        self.html.raw("</pre>\n")?;
        self.left_out(left)
    }

    pub(super) fn prose_block(&mut self, class: &'static str, text: &str) -> io::Result<()> {
        let (text, left) = self.cut(text);
        self.html.raw("<div class=\"")?;
        self.html.raw(class)?;
        self.html.raw("\">")?;
        markdown_html::markdown(&mut self.html, text)?;
        self.html.raw("</div>\n")?;
        self.left_out(left)
    }

    fn written(&mut self, text: &str) -> io::Result<()> {
        self.block("new", text)
    }

    fn diff(&mut self, rows: &[DiffRow]) -> io::Result<()> {
        self.html.raw("<pre class=\"diff\">")?;
        let mut room = self.options.max_chars.unwrap_or(usize::MAX);
        let mut left = 0;
        for row in rows {
            let DiffRow::Line { sign, number, text } = row else {
                self.html.raw("<span class=\"gap\">⋯</span>")?;
                continue;
            };
            let chars = match self.options.max_chars {
                Some(_) => text.chars().count(),
                None => 0,
            };
            if chars > room {
                left += chars;
                room = 0;
                continue;
            }
            room -= chars;
            self.html.raw(match sign {
                PatchSign::Same => "<span>",
                PatchSign::Added => "<span class=\"add\">",
                PatchSign::Removed => "<span class=\"del\">",
            })?;
            if let Some(number) = number {
                self.html.raw("<i>")?;
                self.html.text(&number.to_string())?;
                self.html.raw("</i>")?;
            }
            self.html.raw(match sign {
                PatchSign::Same => "  ",
                PatchSign::Added => "+ ",
                PatchSign::Removed => "- ",
            })?;
            self.html.text(text)?;
            self.html.raw("\n</span>")?;
        }
        self.html.raw("</pre>\n")?;
        self.left_out(left)
    }

    fn todos(&mut self, todos: &[TodoItem]) -> io::Result<()> {
        self.html.raw("<ul class=\"todos\">\n")?;
        for todo in todos {
            self.html.raw(match todo.state {
                TodoState::Open => "<li class=\"todo\">☐ ",
                TodoState::Active => "<li class=\"doing\">▶ ",
                TodoState::Done => "<li class=\"done\">☑ ",
            })?;
            self.html.text(&todo.text)?;
            self.html.raw("</li>\n")?;
        }
        self.html.raw("</ul>\n")
    }

    fn questions(&mut self, questions: &[UserQuestion]) -> io::Result<()> {
        for question in questions {
            self.html.raw("<div class=\"question\"><p>")?;
            self.typed(&question.text)?;
            self.html.raw("</p>")?;
            if !question.options.is_empty() {
                self.html.raw("<p class=\"options\">")?;
                self.html.text(&question.options.join(" · "))?;
                self.html.raw("</p>")?;
            }
            match &question.answer {
                Some(answer) => {
                    self.html.raw("<p class=\"answer\">✓ ")?;
                    self.typed(answer)?;
                    self.html.raw("</p></div>\n")?;
                }
                None => self
                    .html
                    .raw("<p class=\"answer none\">no answer</p></div>\n")?,
            }
        }
        Ok(())
    }

    /// Images as they are, other things in a few words.
    pub(super) fn media(&mut self, media: &[LoadedMedia]) -> io::Result<()> {
        for one in media {
            match image_type(&one.media_type).filter(|_| !one.data.is_empty()) {
                Some(start) => {
                    self.html
                        .raw("<img alt=\"image\" decoding=\"async\" src=\"data:")?;
                    self.html.raw(start)?;
                    self.html.raw(";base64,")?;
                    self.html.base64(&one.data)?;
                    self.html.raw("\">\n")?;
                }
                None => self.other_media(one)?,
            }
        }
        Ok(())
    }

    fn other_media(&mut self, media: &LoadedMedia) -> io::Result<()> {
        self.html.raw("<p class=\"file\">")?;
        let bytes = media.data.len() as u64 / 4 * 3;
        let mut facts = vec![media.kind.clone(), media.media_type.clone()];
        if bytes > 0 {
            facts.push(format::bytes(bytes));
            facts.push("not shown".to_owned());
        }
        facts.retain(|fact| !fact.is_empty());
        self.html.text(&facts.join(" · "))?;
        self.html.raw("</p>\n")?;
        match &media.place {
            Some(place) => self.block("", place),
            None => Ok(()),
        }
    }
}

/// Types of images that are nothing but pixels, as our own words.
fn image_type(name: &str) -> Option<&'static str> {
    ["image/png", "image/jpeg", "image/gif", "image/webp"]
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(name))
}
