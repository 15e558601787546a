//! One thing that was said or done, as the dashboard shows it.
//!
//! Texts come twice: as they are, and as safe HTML made by the one renderer of pages. Long
//! ones are cut and say so; a whole item can be asked for by its number.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use unspool_model::block::BlockKind;
use unspool_model::session::{BlockRecord, Session};
use unspool_model::view::session_usage::SessionUsage;
use unspool_model::view::tool_outcome::{FileChange, PatchSign, TodoState, ToolCallOutcome};
use unspool_model::view::transcript::{
    FailedHook, ItemBody, TranscriptCall, TranscriptItem, TranscriptNote, TranscriptPrompt,
};
use unspool_model::view::turns::{self, CallStatus, ThreadEnds, TurnRow as Row};
use unspool_model::view::workflow::WorkflowRun;

use crate::document::html;
use crate::wire::cost::{self, UsageByOrigin};
use crate::wire::session::UsageRow;
use crate::{TextStyle, diff, format, tool_call};

/// Texts are cut after so many bytes, unless a whole item is asked for.
pub const CUT: usize = 20_000;

/// A text, raw and as HTML.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct TextRow {
    /// The raw text.
    pub text: String,
    /// As safe HTML.
    pub html: String,
    /// Images attached to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageRow>,
    /// Whether it was truncated.
    #[serde(skip_serializing_if = "is_false")]
    pub more: bool,
}

/// An image.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ImageRow {
    /// Its URL.
    pub url: String,
}

/// Calls of one tool in a turn.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ToolRow {
    /// The tool.
    pub name: String,
    /// Number of calls.
    pub count: usize,
    /// Number of failed calls.
    pub failed: usize,
    /// Their total duration.
    pub ms: u64,
}

/// A turn without its texts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TurnBrief {
    /// `prompt`, `command`, `shell`, `memory` or `plan`.
    pub kind: String,
    /// `new_session`, `resume` or `new_round`.
    pub round: String,
    /// Whether it is on the live branch; false if it was rewound.
    pub live: bool,
    /// Whether the user interrupted it.
    pub interrupted: bool,
    /// Whether the context was compacted during it.
    pub compacted: bool,
    /// When it ended; null while it is running.
    pub ended: Option<String>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// Its cost; null if any message has no known price.
    pub cost_usd: Option<f64>,
    /// Cost of its messages that have a known price.
    pub cost_usd_known: f64,
    /// Number of its messages without a known price.
    pub unpriced_messages: u64,
    /// Tokens of its replies, of the sub-agents it started, and of what the client did for itself
    /// meanwhile.
    pub usage: UsageRow,
    /// Who used these tokens.
    pub used_by: UsageByOrigin,
    /// Replies, each counted once.
    pub messages: usize,
    /// Tool calls.
    pub calls: usize,
    /// Its permission mode.
    pub permission_mode: Option<String>,
    /// Number of prompts queued while the model was working.
    pub queued: usize,
    /// Number of sub-agents it started.
    pub agents: usize,
}

/// The result of a call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ResultRow {
    /// Its text.
    pub text: String,
    /// The same as safe HTML: terminal colours are classes.
    pub html: String,
    /// Whether it reports a failure.
    pub is_error: bool,
}

/// A hunk of a file change.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HunkRow {
    /// The first line in the old file; null if unknown.
    pub old_start: Option<u64>,
    /// The first line in the new file; null if unknown.
    pub new_start: Option<u64>,
    /// Its lines.
    pub lines: Vec<DiffLine>,
}

/// A line of a hunk.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiffLine {
    /// `=`, `+` or `-`.
    pub op: &'static str,
    /// The line.
    pub text: String,
}

/// A todo.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TodoRow {
    /// What.
    pub text: String,
    /// `open`, `active` or `done`.
    pub state: &'static str,
}

/// A question to the user.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct QuestionRow {
    /// The question.
    pub text: String,
    /// The options.
    pub options: Vec<String>,
    /// The answer; null if there is none yet.
    pub answer: Option<String>,
}

/// An item of a conversation. Which fields there are depends on its kind.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ItemJson {
    /// Its place in the list that was asked for, from 0; negative from the end where only the
    /// end was read.
    pub i: i64,
    /// `turn`, `prompt`, `text`, `thinking`, `call`, `compaction` or `note`.
    pub kind: &'static str,
    /// The number of its turn, from 1; 0 before the first one, negative from the end.
    pub turn: i64,
    /// Its line in the file.
    pub line: u32,
    /// The id of that line.
    pub uuid: Option<String>,
    /// When.
    pub at: Option<String>,

    /// Its text; of a prompt, reply, thought, note or summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The same as safe HTML.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
    /// Whether something was truncated: fetch the item by its number to get all of it.
    #[serde(skip_serializing_if = "is_false")]
    pub more: bool,
    /// Images of a prompt or result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageRow>,
    /// The model that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Of a note, what it is: `queued`, `interrupt`, `hook`, `command`, `notice`, `api_error`,
    /// `orphan`, `unknown`, `fault` or `notes`; of a compaction, `boundary`, `micro` or
    /// `summary`; of a prompt, what was typed: `prompt`, `command`, `shell`, `memory`, `plan`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub: Option<&'static str>,
    /// Of a note, its label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Of a note: `info`, `warn` or `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<&'static str>,
    /// Of a note, whether it is informative; others are bookkeeping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matters: Option<bool>,
    /// Of a thought, how many characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chars: Option<usize>,

    /// Of a compaction: `manual` or `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    /// Of a compaction, tokens before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// Of a compaction, tokens after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,

    /// Of a turn, everything but its texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<TurnBrief>,
    /// Of a turn, its tools, the most used first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ToolRow>>,
    /// Of a turn, the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<TextRow>,
    /// Of a turn, the last reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<TextRow>,
    /// Of a turn, the index of its head in the list of all items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_item: Option<usize>,
    /// Of a turn, how many items it has in the list of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<usize>,

    /// Of a call, its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Of a call, the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Of a call, the verb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verb: Option<String>,
    /// Of a call, its subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Of a call: `ok`, `error`, `missing` or `running`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
    /// Of a call, how long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Of a call, a short summary of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Of a call, the severity of the summary: `err`, `warn` or empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paint: Option<&'static str>,
    /// Of a call, its input; long texts are truncated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// Of a call, its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<ResultRow>,
    /// Of a call, the diff of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<Vec<HunkRow>>,
    /// Of a call, the content of a file that it wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
    /// Of a call, the todo list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub todos: Option<Vec<TodoRow>>,
    /// Of a call, questions to the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub questions: Option<Vec<QuestionRow>>,
    /// Of a call, the plan that was proposed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<TextRow>,
    /// Of a call, the sub-agent it started: what `agent=` takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Of a call, what kind of sub-agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_kind: Option<String>,
    /// Of a call, how many calls the sub-agent made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_calls: Option<u64>,
    /// Of a call, the workflow run it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunRow>,
}

/// A workflow run under its call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunRow {
    /// Its id.
    pub id: String,
    /// The name of the workflow.
    pub name: Option<String>,
    /// `running`, `completed`, `failed` …, if it is known.
    pub status: Option<String>,
    /// The titles of its phases.
    pub phases: Vec<String>,
    /// Its sub-agents.
    pub agents: Vec<RunAgentRow>,
}

/// A sub-agent of a workflow run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunAgentRow {
    /// Its id.
    pub agent: String,
    /// Its label in the workflow.
    pub label: Option<String>,
    /// The title of its phase.
    pub phase: Option<String>,
    /// `queued`, `running`, `done`, `error` …
    pub state: Option<String>,
}

impl From<&WorkflowRun> for RunRow {
    fn from(run: &WorkflowRun) -> RunRow {
        let agents = run.agents.iter().map(|agent| RunAgentRow {
            agent: agent.agent.clone(),
            label: agent.label.clone(),
            phase: agent.phase.clone(),
            state: agent.state.clone(),
        });
        RunRow {
            id: run.id.clone(),
            name: run.name.clone(),
            status: run.status.clone(),
            phases: run.phases.clone(),
            agents: agents.collect(),
        }
    }
}

/// A match in a conversation.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ItemHitRow {
    /// Index of the item in the list of all items.
    pub i: usize,
    /// Its turn.
    pub turn: usize,
    /// The line of the file.
    pub line: u64,
    /// `prompt`, `reply`, `thinking`, `tool`, `result` and so on.
    pub r#where: String,
    /// The text around it.
    pub snippet: String,
}

/// Consecutive turns, for a timeline of the session.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct TimelineRow {
    /// The number of the first turn.
    pub turn: usize,
    /// How many turns.
    pub turns: usize,
    /// Index of the first turn in the list of turns.
    pub i: usize,
    /// When the first one began.
    pub at: Option<String>,
    /// Their total duration.
    pub ms: u64,
    /// Their calls.
    pub calls: usize,
    /// Their calls that failed.
    pub failed: usize,
    /// Output tokens.
    pub output: u64,
    /// Their cost; null if any message has no known price.
    pub cost_usd: Option<f64>,
    /// Cost of their messages that have a known price.
    pub cost_usd_known: f64,
    /// Number of their messages without a known price.
    pub unpriced_messages: u64,
    /// Tokens in the context of their last reply.
    pub context_tokens: Option<u64>,
    /// Whether the context was compacted in one of them.
    pub compacted: bool,
    /// Whether one of them is on the live branch.
    pub live: bool,
}

/// A text as it stands in an address.
fn quoted(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn is_false(value: &bool) -> bool {
    !value
}

/// What all items of an answer have in common.
#[derive(Clone, Copy)]
pub struct ItemContext<'a> {
    /// The session they are of.
    pub session: &'a Session,
    /// Where the session is asked about, such as `/api/sessions/ID`.
    pub base: &'a str,
    /// The sub-agent they are of.
    pub agent: Option<&'a str>,
    /// Longer texts are cut.
    pub cut: Option<usize>,
}

impl ItemContext<'_> {
    /// The item as a row; `i` is its place.
    pub fn row(&self, item: &TranscriptItem, i: i64, turn: i64) -> ItemJson {
        let mut row = ItemJson {
            i,
            turn,
            line: item.line,
            uuid: self.uuid(item.line),
            at: item.at.map(|at| at.to_string()),
            ..ItemJson::default()
        };
        self.fill(&mut row, &item.body);
        row
    }

    fn uuid(&self, line: u32) -> Option<String> {
        let records = &self.session.records;
        let from = records.partition_point(|record| record.line < line);
        let mut on_line = records[from..].iter().take_while(|one| one.line == line);
        on_line.find_map(|record| record.uuid.as_ref().map(ToString::to_string))
    }

    fn fill(&self, row: &mut ItemJson, body: &ItemBody) {
        match body {
            ItemBody::Turn(_) => row.kind = "turn",
            ItemBody::Prompt(prompt) => self.prompt(row, prompt),
            ItemBody::Reply { text, model } => {
                row.kind = "text";
                row.model.clone_from(model);
                self.say(row, text, html::prose);
            }
            ItemBody::Thinking { text, chars } => {
                row.kind = "thinking";
                row.chars = Some(*chars);
                self.say(row, text, html::prose);
            }
            ItemBody::Call(call) => self.call(row, call),
            ItemBody::Compaction {
                micro,
                trigger,
                before,
                after,
            } => {
                row.kind = "compaction";
                row.sub = Some(if *micro { "micro" } else { "boundary" });
                (row.before, row.after) = (*before, *after);
                row.trigger.clone_from(trigger);
            }
            ItemBody::Summary { text } => {
                row.kind = "compaction";
                row.sub = Some("summary");
                self.say(row, text, html::prose);
            }
            _ => self.note(row, body),
        }
    }

    fn prompt(&self, row: &mut ItemJson, prompt: &TranscriptPrompt) {
        row.kind = "prompt";
        row.sub = Some(prompt.kind.name());
        row.images = self.images(row.line, 0, prompt.images);
        self.say(row, &prompt.text, html::typed);
    }

    fn images(&self, line: u32, first: usize, count: usize) -> Vec<ImageRow> {
        let agent = self.agent.map(|agent| format!("?agent={}", quoted(agent)));
        let agent = agent.unwrap_or_default();
        let url = |k: usize| format!("{}/images/{line}/{k}{agent}", self.base);
        let images = (first..first + count).map(|k| ImageRow { url: url(k) });
        images.collect()
    }

    /// A text that is no item of its own.
    pub fn text(&self, text: &str, render: fn(&str) -> String) -> TextRow {
        let (text, more) = self.clip(text);
        TextRow {
            html: render(text),
            text: text.to_owned(),
            images: Vec::new(),
            more,
        }
    }

    fn say(&self, row: &mut ItemJson, text: &str, render: fn(&str) -> String) {
        let said = self.text(text, render);
        row.more |= said.more;
        (row.text, row.html) = (Some(said.text), Some(said.html));
    }

    fn clip<'t>(&self, text: &'t str) -> (&'t str, bool) {
        let Some(limit) = self.cut.filter(|limit| text.len() > *limit) else {
            return (text, false);
        };
        (&text[..text.floor_char_boundary(limit)], true)
    }

    fn call(&self, row: &mut ItemJson, call: &TranscriptCall) {
        row.kind = "call";
        row.id = Some(call.id.clone());
        row.name = Some(call.name.clone());
        row.verb = Some(call.verb.clone());
        row.subject.clone_from(&call.subject);
        row.status = Some(call.status.name());
        row.duration_ms = call.duration_ms;
        let (paint, summary) = tool_call::result(call);
        row.summary = Some(summary).filter(|text| !text.is_empty());
        row.paint = Some(match paint {
            TextStyle::ERROR => "err",
            TextStyle::WARN => "warn",
            _ => "",
        });
        let mut more = false;
        row.input = Some(self.shortened(&call.input, &mut more));
        self.outcome(row, call);
        if let Some(change) = &call.change {
            self.change(row, change);
        }
        let told = !call.text.is_empty() || call.status != CallStatus::Running;
        row.result = told.then(|| {
            let (text, cut) = self.clip(&call.text);
            more |= cut;
            ResultRow {
                text: text.to_owned(),
                html: self.result_html(call, text),
                is_error: call.status == CallStatus::Error,
            }
        });
        if let Some((line, first)) = call.pictures {
            row.images = self.images(line, first, call.images);
        }
        if let Some(agent) = &call.agent {
            match &agent.run {
                Some(run) => row.run = Some(RunRow::from(&**run)),
                None => row.agent = Some(agent.key.clone()),
            }
            row.agent_calls = Some(agent.calls);
        }
        row.more |= more;
    }

    /// What agents and pages say is Markdown; everything else is as it was printed.
    fn result_html(&self, call: &TranscriptCall, text: &str) -> String {
        let prose = matches!(
            call.outcome,
            ToolCallOutcome::Agent(_)
                | ToolCallOutcome::Searched { .. }
                | ToolCallOutcome::Fetched { .. }
        );
        match prose && call.status != CallStatus::Error {
            true => html::prose(text),
            false => html::printed(text),
        }
    }

    fn outcome(&self, row: &mut ItemJson, call: &TranscriptCall) {
        match &call.outcome {
            ToolCallOutcome::Todos(todos) => {
                let todo = |todo: &unspool_model::view::tool_outcome::TodoItem| TodoRow {
                    text: todo.text.clone(),
                    state: match todo.state {
                        TodoState::Open => "open",
                        TodoState::Active => "active",
                        TodoState::Done => "done",
                    },
                };
                row.todos = Some(todos.iter().map(todo).collect());
            }
            ToolCallOutcome::Asked(questions) => {
                let question =
                    |one: &unspool_model::view::tool_outcome::UserQuestion| QuestionRow {
                        text: one.text.clone(),
                        options: one.options.clone(),
                        answer: one.answer.clone(),
                    };
                row.questions = Some(questions.iter().map(question).collect());
            }
            ToolCallOutcome::Plan(plan) => row.plan = Some(self.text(plan, html::prose)),
            ToolCallOutcome::Agent(agent) => row.agent_kind.clone_from(&agent.kind),
            ToolCallOutcome::Refused { said: Some(said) } => {
                let said = self.text(said, html::typed);
                (row.text, row.html) = (Some(said.text), Some(said.html));
            }
            _ => {}
        }
    }

    fn change(&self, row: &mut ItemJson, change: &FileChange) {
        if let FileChange::Written(text) = change {
            let (text, more) = self.clip(text);
            row.written = Some(text.to_owned());
            row.more |= more;
            return;
        }
        let mut room = self.cut.unwrap_or(usize::MAX);
        let mut hunks = Vec::new();
        for hunk in diff::hunks(change) {
            let mut lines = Vec::new();
            for (sign, text) in hunk.lines {
                let Some(left) = room.checked_sub(text.len() + 1) else {
                    row.more = true;
                    break;
                };
                room = left;
                let op = match sign {
                    PatchSign::Same => "=",
                    PatchSign::Added => "+",
                    PatchSign::Removed => "-",
                };
                lines.push(DiffLine { op, text });
            }
            if !lines.is_empty() {
                hunks.push(HunkRow {
                    old_start: hunk.old_start,
                    new_start: hunk.new_start,
                    lines,
                });
            }
        }
        row.diff = Some(hunks);
    }

    /// A value whose long texts are cut.
    fn shortened(&self, value: &Value, more: &mut bool) -> Value {
        match value {
            Value::String(text) => {
                let (text, cut) = self.clip(text);
                *more |= cut;
                Value::String(text.to_owned())
            }
            Value::Array(all) => all.iter().map(|one| self.shortened(one, more)).collect(),
            Value::Object(fields) => {
                let fields = fields.iter();
                let fields =
                    fields.map(|(name, value)| (name.clone(), self.shortened(value, more)));
                Value::Object(fields.collect())
            }
            other => other.clone(),
        }
    }

    fn note(&self, row: &mut ItemJson, body: &ItemBody) {
        row.kind = "note";
        let mut say = |sub, label: &str, level, text: &str, render: fn(&str) -> String| {
            row.sub = Some(sub);
            row.label = Some(label.to_owned()).filter(|label| !label.is_empty());
            row.level = Some(level);
            row.matters = Some(true);
            if !text.is_empty() {
                self.say(row, text, render);
            }
        };
        match body {
            ItemBody::Queued { text } => {
                say(
                    "queued",
                    "typed while the model was working",
                    "info",
                    text,
                    html::typed,
                );
            }
            ItemBody::Interrupt { tool: true } => {
                say(
                    "interrupt",
                    "Interrupted at a tool call",
                    "warn",
                    "",
                    html::typed,
                );
            }
            ItemBody::Interrupt { tool: false } => {
                say("interrupt", "Interrupted", "warn", "", html::typed);
            }
            ItemBody::ApiError { text, attempt } => {
                let label = match attempt {
                    Some((nth, of)) => format!("API error, attempt {nth} of {of}"),
                    None => "API error".to_owned(),
                };
                say("api_error", &label, "error", text, html::typed);
            }
            ItemBody::Hook(hook) => {
                let (label, level) = hook_label(hook);
                say("hook", &label, level, &hook.output, html::printed);
            }
            ItemBody::Command {
                command,
                output,
                is_error,
            } => {
                let level = if *is_error { "error" } else { "info" };
                let label = command.as_deref().unwrap_or("output");
                say("command", label, level, output, html::printed);
            }
            ItemBody::Notice { text } => say("notice", "", "info", text, html::typed),
            ItemBody::Orphan {
                call,
                text,
                is_error,
            } => {
                let level = if *is_error { "error" } else { "warn" };
                let label = format!("Result without its call: {call}");
                say("orphan", &label, level, text, html::printed);
            }
            ItemBody::Unknown { label } => {
                say("unknown", label, "info", "", html::typed);
            }
            ItemBody::Fault { detail } => say("fault", detail, "error", "", html::typed),
            ItemBody::Notes(notes) => {
                say("notes", &listed(notes), "info", "", html::typed);
                row.matters = Some(notes.iter().any(|note| note.matters));
            }
            ItemBody::Turn(_)
            | ItemBody::Prompt(_)
            | ItemBody::Reply { .. }
            | ItemBody::Thinking { .. }
            | ItemBody::Call(_)
            | ItemBody::Compaction { .. }
            | ItemBody::Summary { .. } => {}
        }
    }

    /// The head of a turn, with its first and last words.
    pub fn head(&self, row: &mut ItemJson, turn: &Row, course: &ThreadEnds, used: &SessionUsage) {
        let all = used.all();
        let (cost_usd, cost_usd_known, unpriced_messages) = cost::cost_fields(all.cost);
        let session = self.session;
        let opener = &session.records[turn.record as usize];
        row.row = Some(TurnBrief {
            kind: turn.kind.name().to_owned(),
            round: turn.round.name().to_owned(),
            live: turn.live,
            interrupted: turn.interrupted,
            compacted: turn.compacted,
            ended: turn.ended.map(|at| at.to_string()),
            duration_ms: turn.duration_ms,
            cost_usd,
            cost_usd_known,
            unpriced_messages,
            usage: all.usage.into(),
            used_by: UsageByOrigin::from(used),
            messages: turn.messages.len(),
            calls: turn.calls.len(),
            permission_mode: opener
                .permission_mode()
                .map(|mode| session.text(mode).to_owned()),
            queued: turn.queued.len(),
            agents: turns::agents(session, &turn.calls).len(),
        });
        row.tools = Some(tools(session, course, &turn.calls));
        let prompt = &turn.prompt;
        let is_media =
            |block: &&BlockRecord| matches!(block.kind, BlockKind::Image | BlockKind::Document);
        let pictures = session.blocks_of(opener).iter();
        let pictures = pictures.filter(is_media).count();
        if !prompt.is_empty() || pictures > 0 {
            let mut said = self.text(prompt, html::typed);
            said.images = self.images(opener.line, 0, pictures);
            row.prompt = Some(said);
        }
        row.reply = turn
            .reply
            .as_ref()
            .map(|reply| self.text(reply, html::prose));
    }
}

/// How often calls used each tool, the most used first.
pub fn tools(session: &Session, course: &ThreadEnds, calls: &[u32]) -> Vec<ToolRow> {
    let mut places = std::collections::HashMap::new();
    let mut all: Vec<ToolRow> = Vec::new();
    for call in calls.iter().map(|&at| &session.calls[at as usize]) {
        let at = *places.entry(call.tool).or_insert_with(|| {
            all.push(ToolRow {
                name: session.text(call.tool).to_owned(),
                count: 0,
                failed: 0,
                ms: 0,
            });
            all.len() - 1
        });
        all[at].count += 1;
        all[at].failed += usize::from(course.status(session, call) == CallStatus::Error);
        all[at].ms += turns::call_duration(session, call).unwrap_or(0);
    }
    all.sort_by_key(|tool| std::cmp::Reverse(tool.count));
    all
}

fn hook_label(hook: &FailedHook) -> (String, &'static str) {
    let did = if hook.blocked { "blocked" } else { "failed" };
    let level = if hook.blocked { "warn" } else { "error" };
    let command = hook.command.as_deref().unwrap_or_default();
    let label = format!("Hook {} {did} {command}", hook.event);
    (label.trim_end().to_owned(), level)
}

/// `hook success, 3 × file history`.
fn listed(notes: &[TranscriptNote]) -> String {
    let label = |note: &TranscriptNote| match note.count {
        1 => note.label.clone(),
        count => format!("{} × {}", format::grouped(u64::from(count)), note.label),
    };
    let labels: Vec<String> = notes.iter().map(label).collect();
    labels.join(", ")
}
