//! What a person is asked: whether a call may run, what they want, whether a plan is right,
//! whether a folder is trusted.
//!
//! Whatever approves something can be chosen only after all of the question has been on the
//! screen. When a key may choose at all is decided in [`super::dialogs`].

use ratatui::crossterm::event::{KeyCode, KeyEvent};
use serde_json::{Map, Value, json};
use unspool_agent::driver::{AskingAgent, QuestionAnswer, QuestionKind};
use unspool_agent::permission::explain::CommandPartFinding;
use unspool_agent::tool::ToolCallRequest;
use unspool_show::layout::{behind, cut};
use unspool_show::{StyledLine, TextStyle, format, visible};

use super::approval_text;
use super::editor::{EditorKeyResult, PromptEditor};

/// Columns that are needed so that no row of a text is cut at the edge.
const NARROWEST: usize = 30;

/// A question on the screen.
#[derive(Clone, Debug)]
pub struct QuestionDialog {
    /// Its number.
    pub ask: u64,
    /// Who asks, if it is not the conversation itself.
    agent: Option<AskingAgent>,
    /// Where the session works.
    place: String,
    /// Where "always" is stored.
    rules_file: String,
    body: QuestionBody,
    options: Vec<QuestionChoice>,
    at: usize,
    /// Somebody writes why not, or an answer of their own.
    writes: Option<PromptEditor>,
    page: ScrollableText,
}

#[derive(Clone, Debug)]
enum QuestionBody {
    Permission {
        call: ToolCallRequest,
        why: String,
        parts: Vec<CommandPartFinding>,
    },
    Plan(String),
    /// Several questions, one after the other, and the answers so far.
    Questions {
        all: Vec<Value>,
        at: usize,
        given: Map<String, Value>,
        marked: Vec<usize>,
    },
    Trust(FolderSettings),
}

/// What the settings of a folder would do, for somebody who is asked to trust it.
#[derive(Clone, Debug, Default)]
pub struct FolderSettings {
    /// The folder.
    pub folder: String,
    /// Each setting that acts: what it is and where it stands, and all of its value.
    pub settings: Vec<(String, Value)>,
    /// Somebody trusted the folder before, and its settings have changed.
    pub changed: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum QuestionChoice {
    Once(&'static str),
    Session(Vec<String>),
    Always(Vec<String>),
    Value(&'static str, Value),
    /// No, and why.
    No(&'static str),
    /// No, without a word.
    Refuse(&'static str),
    Option(String, String),
    Own,
}

impl QuestionChoice {
    /// Whether it lets something happen.
    fn approves(&self) -> bool {
        !matches!(
            self,
            QuestionChoice::No(_) | QuestionChoice::Refuse(_) | QuestionChoice::Own
        )
    }
}

/// What a person answered.
#[derive(Clone, Debug, PartialEq)]
pub struct DialogAnswer {
    /// The answer.
    pub answer: QuestionAnswer,
    /// Rules to store for later sessions.
    pub store: Vec<String>,
}

impl From<QuestionAnswer> for DialogAnswer {
    fn from(answer: QuestionAnswer) -> DialogAnswer {
        let store = Vec::new();
        DialogAnswer { answer, store }
    }
}

/// How things stand around a question.
#[derive(Clone, Copy, Debug, Default)]
pub struct DialogContext {
    /// Keys may answer it now.
    pub live: bool,
    /// Something stands in the editor below.
    pub typed: bool,
    /// A letter was pressed that chooses, if nothing follows it.
    pub chosen: bool,
    /// How many questions wait behind it.
    pub waiting: usize,
}

impl QuestionDialog {
    /// A question as it is asked. "Always" is stored in `rules_file`.
    pub fn new(
        ask: u64,
        call: ToolCallRequest,
        what: QuestionKind,
        agent: Option<AskingAgent>,
        place: &str,
        rules_file: &str,
    ) -> QuestionDialog {
        let (body, options) = match what {
            QuestionKind::Permission { why, always, parts } => {
                let mut options = vec![QuestionChoice::Once("Yes, once")];
                if !always.is_empty() {
                    options.push(QuestionChoice::Session(always.clone()));
                    options.push(QuestionChoice::Always(always));
                }
                options.push(QuestionChoice::No("No, and say why"));
                (QuestionBody::Permission { call, why, parts }, options)
            }
            QuestionKind::Plan => {
                let yes = |label: &'static str, mode: &str| {
                    QuestionChoice::Value(label, json!({"approved": true, "mode": mode}))
                };
                let options = vec![
                    yes("Yes, and auto-accept edits", "acceptEdits"),
                    yes("Yes, and manually approve edits", "default"),
                    QuestionChoice::No("No, keep planning, and say why"),
                ];
                let plan = call.input.get("plan").and_then(Value::as_str);
                (
                    QuestionBody::Plan(plan.unwrap_or_default().to_owned()),
                    options,
                )
            }
            QuestionKind::Question => {
                let all = call.input.get("questions").and_then(Value::as_array);
                let body = QuestionBody::Questions {
                    all: all.cloned().unwrap_or_default(),
                    at: 0,
                    given: Map::new(),
                    marked: Vec::new(),
                };
                (body, Vec::new())
            }
        };
        let mut question = QuestionDialog {
            ask,
            agent,
            place: place.to_owned(),
            rules_file: rules_file.to_owned(),
            body,
            options,
            at: 0,
            writes: None,
            page: ScrollableText::default(),
        };
        question.load();
        question
    }

    /// Whether a folder is trusted.
    pub fn trust(settings: FolderSettings) -> QuestionDialog {
        QuestionDialog {
            ask: 0,
            agent: None,
            place: String::new(),
            rules_file: String::new(),
            body: QuestionBody::Trust(settings),
            options: vec![
                QuestionChoice::Refuse("No, ignore these settings"),
                QuestionChoice::Once("Yes, trust this folder"),
            ],
            at: 0,
            writes: None,
            page: ScrollableText::default(),
        }
    }

    /// Whether the conversation itself asks.
    pub fn is_of_main(&self) -> bool {
        self.agent.is_none()
    }

    fn asked(&self) -> Option<&Value> {
        match &self.body {
            QuestionBody::Questions { all, at, .. } => all.get(*at),
            _ => None,
        }
    }

    /// The options of the question that is next.
    fn load(&mut self) {
        if !matches!(self.body, QuestionBody::Questions { .. }) {
            return;
        }
        let text = |value: &Value, field: &str| {
            let text = value.get(field).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let asked = self.asked();
        let options = asked.and_then(|asked| asked.get("options")?.as_array());
        let mut all: Vec<QuestionChoice> = options
            .into_iter()
            .flatten()
            .map(|option| {
                QuestionChoice::Option(text(option, "label"), text(option, "description"))
            })
            .collect();
        all.push(QuestionChoice::Own);
        self.options = all;
        self.at = 0;
        self.page = ScrollableText::default();
    }

    /// Whether several options can be marked.
    pub fn takes_several(&self) -> bool {
        let several = self.asked().and_then(|asked| asked.get("multiSelect"));
        several.and_then(Value::as_bool).unwrap_or(false)
    }

    /// Whether nothing of it has been drawn.
    pub fn is_new(&self) -> bool {
        self.page.key.is_none()
    }

    /// Whether all of it has been on the screen.
    pub fn is_seen(&self) -> bool {
        self.page.whole
    }

    /// Whether somebody writes a reason or an answer of their own.
    pub fn is_writing(&self) -> bool {
        self.writes.is_some()
    }

    /// What was written so far, if somebody did.
    pub fn unsent(&self) -> Option<String> {
        let text = self.writes.as_ref()?.text();
        Some(text.to_owned()).filter(|text| !text.is_empty())
    }

    /// No longer writes.
    pub fn stop_writing(&mut self) {
        self.writes = None;
    }

    /// A key for what is being written: the answer, when it was sent.
    pub fn write(&mut self, key: KeyEvent, width: usize) -> Option<DialogAnswer> {
        match self.writes.as_mut()?.key(key, width) {
            EditorKeyResult::Sent(text) => {
                self.writes = None;
                self.written(text)
            }
            EditorKeyResult::Nothing | EditorKeyResult::Changed => None,
        }
    }

    /// Takes what was pasted into what is being written.
    pub fn paste(&mut self, text: &str) {
        if let Some(editor) = &mut self.writes {
            editor.paste(text);
        }
    }

    /// The option that a letter or digit stands for, if it can be chosen now.
    pub fn shortcut(&self, letter: char) -> Option<usize> {
        let yes_or_no = matches!(
            self.body,
            QuestionBody::Permission { .. } | QuestionBody::Trust(_)
        );
        let find = |wanted: fn(&QuestionChoice) -> bool| self.options.iter().position(wanted);
        let at = match letter {
            'y' if yes_or_no => find(|choice| matches!(choice, QuestionChoice::Once(_)))?,
            'n' if yes_or_no => {
                find(|choice| matches!(choice, QuestionChoice::No(_) | QuestionChoice::Refuse(_)))?
            }
            '1'..='9' => letter as usize - '1' as usize,
            _ => return None,
        };
        let choice = self.options.get(at)?;
        (self.is_seen() || !choice.approves()).then_some(at)
    }

    /// Goes to an option.
    pub fn select(&mut self, at: usize) {
        self.at = at.min(self.options.len().saturating_sub(1));
    }

    /// Keys that move, scroll and mark; false if it is none of them.
    pub fn moves(&mut self, code: KeyCode) -> bool {
        match code {
            KeyCode::PageDown => self.page.scroll(true, self.page.rows),
            KeyCode::PageUp => self.page.scroll(false, self.page.rows),
            KeyCode::Char(' ') if !self.is_seen() => self.page.scroll(true, self.page.rows),
            KeyCode::Char(' ') if self.takes_several() => self.mark(self.at),
            // Whoever pages on at the end does not begin a prompt.
            KeyCode::Char(' ') if self.page.lines.len() > self.page.shown => {}
            KeyCode::Down if !self.is_seen() => self.page.scroll(true, 1),
            KeyCode::Up if self.at == 0 => self.page.scroll(false, 1),
            KeyCode::Up => self.at -= 1,
            KeyCode::Down | KeyCode::Tab => self.select(self.at + 1),
            _ => return false,
        }
        true
    }

    /// Marks an option, or takes the mark away.
    pub fn mark(&mut self, at: usize) {
        self.select(at);
        let is_option = matches!(self.options.get(at), Some(QuestionChoice::Option(..)));
        if let (true, QuestionBody::Questions { marked, .. }) = (is_option, &mut self.body) {
            match marked.iter().position(|&it| it == at) {
                Some(place) => drop(marked.remove(place)),
                None => marked.push(at),
            }
        }
    }

    /// Whether the option that is selected can be chosen now.
    pub fn can_choose(&self) -> bool {
        let choice = self.options.get(self.at);
        choice.is_some_and(|choice| self.is_seen() || !choice.approves())
    }

    /// Chooses the option that is selected: the answer, when that is one.
    pub fn choose(&mut self) -> Option<DialogAnswer> {
        if !self.can_choose() {
            return None;
        }
        let choice = self.options.get(self.at)?.clone();
        match choice {
            QuestionChoice::Once(_) => Some(QuestionAnswer::Yes.into()),
            QuestionChoice::Session(rules) => Some(QuestionAnswer::Always(rules).into()),
            QuestionChoice::Always(rules) => Some(DialogAnswer {
                answer: QuestionAnswer::Always(rules.clone()),
                store: rules,
            }),
            QuestionChoice::Value(_, value) => Some(QuestionAnswer::Value(value).into()),
            QuestionChoice::Refuse(_) => Some(QuestionAnswer::No(None).into()),
            QuestionChoice::No(_) | QuestionChoice::Own => {
                self.writes = Some(PromptEditor::new(Vec::new()));
                None
            }
            QuestionChoice::Option(label, _) => {
                let text = match &self.body {
                    QuestionBody::Questions { marked, .. } if !marked.is_empty() => {
                        let mut marked = marked.clone();
                        marked.sort_unstable();
                        let label = |at: &usize| match self.options.get(*at) {
                            Some(QuestionChoice::Option(label, _)) => Some(label.as_str()),
                            _ => None,
                        };
                        let labels = marked.iter().filter_map(label);
                        labels.collect::<Vec<_>>().join(", ")
                    }
                    _ => label,
                };
                self.answered(text)
            }
        }
    }

    fn written(&mut self, text: String) -> Option<DialogAnswer> {
        match self.body {
            QuestionBody::Questions { .. } => self.answered(text),
            _ => Some(QuestionAnswer::No(Some(text)).into()),
        }
    }

    /// Keeps an answer; all of them, when it was the last.
    fn answered(&mut self, text: String) -> Option<DialogAnswer> {
        let asked = self.asked()?.get("question")?.as_str()?.to_owned();
        let QuestionBody::Questions {
            all,
            at,
            given,
            marked,
        } = &mut self.body
        else {
            return None;
        };
        given.insert(asked, Value::String(text));
        marked.clear();
        *at += 1;
        if *at >= all.len() {
            return Some(QuestionAnswer::Value(Value::Object(std::mem::take(given))).into());
        }
        self.load();
        None
    }

    /// All of it, to be printed above.
    pub fn print(&mut self, width: usize) -> Vec<StyledLine> {
        self.page.whole = true;
        self.text(width, true)
    }

    /// The question in at most `height` rows, and where the cursor stands.
    pub fn draw(
        &mut self,
        width: usize,
        height: usize,
        around: DialogContext,
    ) -> (Vec<StyledLine>, Option<(usize, usize)>) {
        let edge = StyledLine::of(TextStyle::WARN, "│ ");
        let inside = width.saturating_sub(2).max(12);
        let mut bottom = self.option_lines(inside, false, Some(self.at));
        // Options that take too many rows stand with the text, and here by their first words.
        let short = bottom.len() > height / 2;
        if short {
            bottom = self.option_lines(inside, true, Some(self.at));
        }
        let mut cursor = None;
        if let Some(editor) = &mut self.writes {
            let laid = editor.lay(inside.saturating_sub(2));
            let first = (laid.cursor.0 + 1).saturating_sub(3);
            cursor = Some((bottom.len() + laid.cursor.0 - first, laid.cursor.1 + 4));
            let rows = laid.rows.iter().skip(first).take(3);
            bottom.extend(rows.map(|row| StyledLine::of(TextStyle::PLAIN, &format!("> {row}"))));
        }
        let room = match width < NARROWEST {
            true => 0,
            false => height.saturating_sub(bottom.len() + 2),
        };
        if self.page.key != Some((inside, short)) {
            let text = self.text(inside, short);
            self.page.lay((inside, short), text);
        }
        let mut top = vec![cut(&self.who(around.waiting), inside)];
        top.extend(self.page.show(room));
        if top.len() <= room {
            top.push(StyledLine::new());
        }
        let above = top.len();
        top.extend(bottom);
        top.push(cut(
            &StyledLine::of(TextStyle::DIM, self.hint(around, room)),
            inside,
        ));
        let lines = top.iter().map(|line| behind(&edge, line)).collect();
        (lines, cursor.map(|(row, column)| (above + row, column)))
    }

    /// Who asks, and how many questions wait behind it.
    fn who(&self, waiting: usize) -> StyledLine {
        let mut line = StyledLine::new();
        if waiting > 0 {
            let text = format!("{} · ", format::count(waiting as u64, "more question"));
            line.push(TextStyle::WARN, &text);
        }
        match &self.agent {
            Some(agent) => {
                let text = format!(
                    "agent {} asks: {}",
                    visible::escaped_line(&agent.kind),
                    visible::escaped_line(&agent.description)
                );
                line.push(TextStyle::VERB, &text);
            }
            None if matches!(self.body, QuestionBody::Trust(_)) => {
                line.push(TextStyle::DIM, "this folder has its own settings");
            }
            None => line.push(TextStyle::DIM, "the main conversation asks"),
        }
        line
    }

    fn hint(&self, around: DialogContext, room: usize) -> &'static str {
        match self {
            _ if self.is_writing() => "enter to send, esc to go back, ctrl-c to interrupt",
            _ if around.typed => "enter to send what you typed, ctrl-u to clear; esc to interrupt",
            _ if !self.is_seen() && room < 2 => "enlarge the window; esc to interrupt",
            _ if !around.live => "one moment; esc to interrupt",
            _ if around.chosen => "selected, keep typing to change; esc to interrupt",
            _ if !self.is_seen() => "space to scroll, ctrl-o to print all; esc to interrupt",
            _ => "enter to select, esc to interrupt",
        }
    }

    /// All that is to be seen; with the options, if they are shortened below.
    fn text(&self, width: usize, with_options: bool) -> Vec<StyledLine> {
        let bold = |text: &str| visible::rows(TextStyle::BOLD, text, width);
        let mut lines = match &self.body {
            QuestionBody::Permission { call, why, parts } => {
                let title = format!("{} wants to run", visible::escaped_line(&call.name));
                let mut lines = bold(&title);
                lines.extend(visible::line_rows(TextStyle::DIM, why, width));
                lines.extend(approval_text::call_lines(call, parts, &self.place, width));
                lines
            }
            QuestionBody::Plan(plan) => {
                let mut lines = bold("The plan");
                lines.extend(approval_text::plan_lines(plan, width));
                lines
            }
            QuestionBody::Questions { .. } => {
                let asked = self.asked().and_then(|asked| asked.get("question"));
                bold(asked.and_then(Value::as_str).unwrap_or_default())
            }
            QuestionBody::Trust(trust) => trust.lines(width),
        };
        if with_options {
            lines.extend(self.option_lines(width, false, None));
        }
        lines
    }

    /// The words of an option, and what stands in rows below them.
    fn label(&self, choice: &QuestionChoice) -> (String, String) {
        let file = visible::escaped_line(&self.rules_file);
        let text = match choice {
            QuestionChoice::Once(label)
            | QuestionChoice::No(label)
            | QuestionChoice::Refuse(label) => (*label).to_owned(),
            QuestionChoice::Value(label, _) => (*label).to_owned(),
            QuestionChoice::Session(rules) => match rules.as_slice() {
                [rule] => format!("Yes, for this session: {}", visible::escaped_line(rule)),
                rules => return ("Yes, for this session:".to_owned(), listed(rules)),
            },
            QuestionChoice::Always(rules) => match rules.as_slice() {
                [rule] => {
                    let rule = visible::escaped_line(rule);
                    format!("Yes, always: {rule} (stored in {file})")
                }
                rules => return (format!("Yes, always (stored in {file}):"), listed(rules)),
            },
            QuestionChoice::Option(label, detail) => {
                let [label, detail] = [label, detail].map(|text| visible::escaped_line(text));
                return (label.into_owned(), detail.into_owned());
            }
            QuestionChoice::Own => "other (type your answer)".to_owned(),
        };
        (text, String::new())
    }

    /// The options: in full, or one row each; `selected` has a sign.
    fn option_lines(&self, width: usize, short: bool, selected: Option<usize>) -> Vec<StyledLine> {
        let marked = match &self.body {
            QuestionBody::Questions { marked, .. } if self.takes_several() => Some(marked),
            _ => None,
        };
        let mut lines = Vec::new();
        for (at, choice) in self.options.iter().enumerate() {
            let (label, detail) = self.label(choice);
            let (sign, paint) = match selected {
                Some(_) if choice.approves() && !self.is_seen() => (" ", TextStyle::DIM),
                Some(selected) if selected == at => ("❯", TextStyle::PROMPT),
                _ => (" ", TextStyle::PLAIN),
            };
            let tick = match marked {
                Some(marked) if marked.contains(&at) => "[x] ",
                Some(_) if matches!(choice, QuestionChoice::Option(..)) => "[ ] ",
                _ => "",
            };
            let text = format!("{sign} {} {tick}{label}", at + 1);
            if short {
                lines.push(cut(&StyledLine::of(paint, &text), width));
                continue;
            }
            lines.extend(visible::rows(paint, &text, width));
            if !detail.is_empty() {
                let indent = StyledLine::of(TextStyle::DIM, "    ");
                let rows = visible::rows(TextStyle::DIM, &detail, width.saturating_sub(4));
                lines.extend(rows.iter().map(|row| behind(&indent, row)));
            }
        }
        lines
    }
}

/// One rule per row.
fn listed(rules: &[String]) -> String {
    let rules = rules.iter().map(|rule| visible::escaped_line(rule));
    rules.collect::<Vec<_>>().join("\n")
}

impl FolderSettings {
    fn lines(&self, width: usize) -> Vec<StyledLine> {
        let folder = visible::escaped_line(&self.folder);
        let told = match self.changed {
            true => format!("Settings of this folder that need trust have changed: {folder}"),
            false => format!("This folder has settings that need trust: {folder}"),
        };
        let mut lines = visible::rows(TextStyle::BOLD, &told, width);
        for (name, value) in &self.settings {
            lines.extend(approval_text::field_lines(name, value, width));
        }
        let asks = "Trust this folder and apply these settings?";
        lines.extend(visible::rows(TextStyle::BOLD, asks, width));
        lines
    }
}

/// A text that may be longer than the screen, and how much of it has been seen.
#[derive(Clone, Debug, Default)]
struct ScrollableText {
    /// The width it is laid out for, and whether the options stand in it.
    key: Option<(usize, bool)>,
    lines: Vec<StyledLine>,
    top: usize,
    /// Rows that fit, where not all do.
    rows: usize,
    /// Lines on the screen.
    shown: usize,
    /// Lines from the start that have all been on the screen.
    seen: usize,
    whole: bool,
}

impl ScrollableText {
    fn lay(&mut self, key: (usize, bool), lines: Vec<StyledLine>) {
        *self = ScrollableText {
            key: Some(key),
            lines,
            whole: self.whole,
            ..ScrollableText::default()
        };
    }

    fn scroll(&mut self, down: bool, rows: usize) {
        self.top = match down {
            // Keys may come faster than pictures: nothing is jumped over that was not seen.
            true if !self.whole => (self.top + rows).min(self.seen.max(self.top)),
            true => self.top + rows,
            false => self.top.saturating_sub(rows),
        };
    }

    /// The part that fits in `room` rows, with a row that says which it is.
    fn show(&mut self, room: usize) -> Vec<StyledLine> {
        let total = self.lines.len();
        if total <= room {
            self.whole = true;
            self.shown = total;
            return self.lines.clone();
        }
        self.rows = room.saturating_sub(1);
        self.shown = self.rows;
        if self.rows == 0 {
            return Vec::new();
        }
        self.top = self.top.min(total - self.rows);
        let end = self.top + self.rows;
        if self.top <= self.seen {
            self.seen = self.seen.max(end);
        }
        self.whole |= self.seen >= total;
        let mut lines = self.lines[self.top..end].to_vec();
        let text = match total - end {
            0 => format!("lines {} to {end} of {total}: the end", self.top + 1),
            more => format!("… {more} more of {total} lines: space or page down to scroll"),
        };
        lines.push(StyledLine::of(TextStyle::WARN, &text));
        lines
    }
}

#[cfg(test)]
#[path = "question_tests.rs"]
mod tests;
