//! Goes through the lines of a thread, turn by turn, and makes items of them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{Agents, Body, Call, Hook, Item, Note, Prompt, TurnHead};
use crate::block::{Block, BlockKind};
use crate::entry::{Boundary, Kind};
use crate::fault::{Fault, FaultKind};
use crate::input::{self, Input};
use crate::json;
use crate::log::Source;
use crate::session::{self, Index, Record, Session};
use crate::tool;
use crate::view::outcome::{self, Facts};
use crate::view::pick::Pick;
use crate::view::queue;
use crate::view::turns::{self, CallStatus, Course, TurnRow};

/// A turn of the thread, or what stands before the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Before,
    Turn(usize),
}

/// A thread of a session on its way to items.
pub(super) struct Walk<'a> {
    pub(super) session: &'a Session,
    pub(super) source: &'a dyn Source,
    pub(super) agents: &'a Agents<'a>,
    pub(super) open_agents: bool,
    pub(super) depth: usize,
    thread: Index,
    course: Course,
    typed: HashMap<Index, String>,
    rows: Vec<TurnRow>,
    calls: HashMap<Index, Index>,
    orphans: HashSet<Index>,
    /// Blocks of replies that were said, not only written again.
    said: Vec<bool>,
    before: Vec<Index>,
    turns: Vec<(Index, Vec<Index>)>,
}

fn said(session: &Session) -> Vec<bool> {
    let mut said = vec![false; session.blocks.len()];
    for message in &session.messages {
        for (_, block) in session.content(message) {
            said[block as usize] = true;
        }
    }
    said
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        session: &'a Session,
        source: &'a dyn Source,
        agents: &'a Agents<'a>,
        open_agents: bool,
    ) -> Walk<'a> {
        let calls = session.calls.iter().enumerate();
        let mut walk = Walk {
            session,
            source,
            agents,
            open_agents,
            depth: 0,
            thread: 0,
            course: Course::of(session),
            typed: queue::typed_meanwhile(session).into_iter().collect(),
            rows: turns::outline(session, turns::Options::default()),
            calls: calls.map(|(at, call)| (call.block, at as Index)).collect(),
            orphans: session
                .orphan_results()
                .into_iter()
                .map(|(_, block)| block)
                .collect(),
            said: said(session),
            before: Vec::new(),
            turns: Vec::new(),
        };
        walk.sort();
        walk
    }

    pub(super) fn below(mut self, depth: usize) -> Walk<'a> {
        self.depth = depth;
        self
    }

    pub(super) fn in_thread(mut self, thread: Index) -> Walk<'a> {
        self.thread = thread;
        self.sort();
        self
    }

    /// Puts every line of the thread into its turn.
    fn sort(&mut self) {
        (self.before, self.turns) = (Vec::new(), Vec::new());
        let session = self.session;
        let mut place: HashMap<Index, usize> = HashMap::new();
        for (at, turn) in session.turns.iter().enumerate() {
            if turn.thread == self.thread {
                place.insert(at as Index, self.turns.len());
                self.turns.push((turn.record, Vec::new()));
            }
        }
        let turn_of = session.turns_by_record();
        let mut last = None;
        for (at, record) in session.records.iter().enumerate() {
            let mine = record.thread == self.thread && !record.duplicate;
            if !mine {
                continue;
            }
            let turn = turn_of[at].and_then(|turn| place.get(&turn).copied());
            let lines = match turn.or(last) {
                Some(turn) => &mut self.turns[turn].1,
                None => &mut self.before,
            };
            lines.push(at as Index);
            last = turn.or(last);
        }
        for (opening, lines) in &mut self.turns {
            // 2.1.45 writes replies before their prompt.
            let at = lines.iter().position(|line| line == opening);
            lines[..at.map_or(0, |at| at + 1)].rotate_right(usize::from(at.is_some()));
        }
    }

    pub(super) fn picked(&self, pick: &Pick) -> Vec<Part> {
        let count = self.turns.len();
        let turns = (0..count).filter(|&at| pick.takes(at as u32 + 1, count as u32));
        let lost = || !self.faults(Part::Before).is_empty();
        let before = pick.takes_rest() && (!self.before.is_empty() || lost());
        let before = before.then_some(Part::Before).into_iter();
        before.chain(turns.map(Part::Turn)).collect()
    }

    /// Everything, without the heads of turns: a sub-agent has but one.
    pub(super) fn all(&self) -> Vec<Item> {
        let parts = self.picked(&Pick::default());
        let items = parts.into_iter().flat_map(|part| self.turn(part));
        items
            .filter(|item| !matches!(item.body, Body::Turn(_)))
            .collect()
    }

    pub(super) fn turn(&self, part: Part) -> Vec<Item> {
        let mut items = Items::default();
        let lines = match part {
            Part::Before => &self.before,
            Part::Turn(at) => {
                let (opening, lines) = &self.turns[at];
                let record = self.record(*opening);
                items.push(record, Body::Turn(self.head(at)));
                lines
            }
        };
        let mut faults = self.faults(part).into_iter().peekable();
        for &at in lines {
            let line = self.record(at).line;
            while let Some(fault) = faults.next_if(|fault| fault.line < line) {
                items.all.push(fault);
            }
            self.line(at, &mut items);
        }
        items.all.extend(faults);
        items.all
    }

    fn head(&self, at: usize) -> TurnHead {
        let row = self.rows.get(at).filter(|_| self.thread == 0);
        TurnHead {
            n: at as i64 + 1,
            kind: self.record(self.turns[at].0).input,
            duration_ms: row.and_then(|row| row.duration_ms),
            live: row.is_none_or(|row| row.live),
        }
    }

    fn record(&self, at: Index) -> &'a Record {
        &self.session.records[at as usize]
    }

    fn bytes(&self, record: &Record) -> Cow<'a, [u8]> {
        self.session.bytes_of(self.source, record)
    }

    /// Lines that could not be read, for the turn whose lines stand around them.
    fn faults(&self, part: Part) -> Vec<Item> {
        let start = |at: usize| {
            let turn = self.turns.get(at);
            turn.map_or(u32::MAX, |turn| self.record(turn.0).line)
        };
        let range = match part {
            Part::Before => 0..start(0),
            Part::Turn(at) => start(at)..start(at + 1),
        };
        let lost = |kind| {
            let kinds = [
                FaultKind::Unreadable,
                FaultKind::TornTail,
                FaultKind::NotAnObject,
            ];
            kinds.contains(&kind) && self.thread == 0
        };
        let faults = self.session.faults.iter();
        let shown = faults.filter(|fault| range.contains(&fault.line) && lost(fault.kind));
        let item = |fault: &Fault| Item {
            line: fault.line,
            at: None,
            body: Body::Fault {
                detail: format!("line {}: {}", fault.line, fault.detail),
            },
        };
        shown.map(item).collect()
    }

    fn line(&self, at: Index, items: &mut Items) {
        let record = self.record(at);
        if let Some(text) = self.typed.get(&at) {
            return items.push(record, Body::Queued { text: text.clone() });
        }
        match &record.kind {
            Kind::User => self.user(record, items),
            Kind::Assistant => self.reply(record, items),
            Kind::CompactBoundary(boundary) => items.push(record, compaction(boundary)),
            Kind::LocalCommand => self.local_command(record, items),
            Kind::ApiError => items.push(record, api_error(&self.bytes(record))),
            Kind::QueuedCommand { text, .. } => items.push(record, machine(text)),
            Kind::StopHookSummary | Kind::Attachment | Kind::System if record.trouble => {
                self.hook(record, items);
            }
            Kind::System => self.system(record, items),
            Kind::Unknown => items.push(
                record,
                Body::Unknown {
                    label: self.session.label_of(record).to_owned(),
                },
            ),
            Kind::TurnDuration(_) => {}
            Kind::Attachment | Kind::StopHookSummary => {
                items.note(record, self.label(record), true);
            }
            Kind::Progress
            | Kind::Queue { .. }
            | Kind::Summary { .. }
            | Kind::Title { .. }
            | Kind::LastPrompt { .. }
            | Kind::PermissionMode(_)
            | Kind::PrLink { .. }
            | Kind::FileHistory
            | Kind::Bookkeeping => items.note(record, self.label(record), false),
        }
    }

    /// The label of a line for people: `attachment/hook_success` is a `hook success`.
    fn label(&self, record: &Record) -> String {
        let label = self.session.label_of(record);
        let (kind, sub) = label.split_once('/').unwrap_or((label, ""));
        let text = match (kind, sub) {
            ("queue-operation", _) => "queue",
            (_, "") => kind,
            _ => sub,
        };
        text.replace(['_', '-'], " ")
    }

    fn user(&self, record: &Record, items: &mut Items) {
        if record.input == Input::Results {
            return self.results(record, items);
        }
        let bytes = self.bytes(record);
        let blocks = self.session.blocks_of(record);
        let text = crate::entry::text_of(blocks, &bytes);
        match record.input {
            Input::Prompt | Input::Command | Input::Shell | Input::Memory | Input::Plan => {
                items.push(record, self.prompt(record, blocks, &text));
            }
            Input::Interrupt => {
                let tool = text.contains("for tool use");
                items.push(record, Body::Interrupt { tool });
            }
            Input::Summary => items.push(record, Body::Summary { text }),
            Input::Meta => {
                let (label, matters) = meta_label(&text);
                items.note(record, label.to_owned(), matters);
            }
            Input::Machine | Input::Results => items.push(record, machine(&text)),
        }
    }

    fn prompt(&self, record: &Record, blocks: &[Block], text: &str) -> Body {
        let media = |block: &&Block| matches!(block.kind, BlockKind::Image | BlockKind::Document);
        Body::Prompt(Prompt {
            text: input::readable(text),
            kind: record.input,
            kinds: record.input_kinds,
            images: blocks.iter().filter(media).count(),
            permission_mode: record
                .permission_mode
                .map(|mode| self.session.text(mode).to_owned()),
        })
    }

    /// Results stand at their calls; what stands beside them or has no call is shown here.
    fn results(&self, record: &Record, items: &mut Items) {
        let bytes = self.bytes(record);
        for at in record.blocks.clone() {
            let block = &self.session.blocks[at as usize];
            if block.kind == BlockKind::Text && !block.blank {
                let text = json::string(block.body.of(&bytes));
                let interrupt = text.starts_with("[Request interrupted by user");
                let tool = text.contains("for tool use");
                items.push(
                    record,
                    if interrupt {
                        Body::Interrupt { tool }
                    } else {
                        machine(&text)
                    },
                );
            }
            if self.orphans.contains(&at) {
                let (text, _) = content(block.body.of(&bytes));
                let call = block.id.as_deref().unwrap_or_default().to_owned();
                let is_error = block.is_error;
                items.push(
                    record,
                    Body::Orphan {
                        call,
                        text,
                        is_error,
                    },
                );
            }
        }
    }

    fn reply(&self, record: &Record, items: &mut Items) {
        let Some(message) = record.message.map(|at| &self.session.messages[at as usize]) else {
            return;
        };
        let bytes = self.bytes(record);
        if record.api_error || message.synthetic {
            let text = crate::entry::text_of(self.session.blocks_of(record), &bytes);
            if record.api_error {
                items.push(
                    record,
                    Body::ApiError {
                        text,
                        attempt: None,
                    },
                );
            } else {
                items.note(record, "synthetic reply".to_owned(), false);
            }
            return;
        }
        let model = message
            .model
            .map(|model| self.session.text(model).to_owned());
        for block in record
            .blocks
            .clone()
            .filter(|&block| self.said[block as usize])
        {
            self.block(record, block, &bytes, model.as_deref(), items);
        }
    }

    fn block(
        &self,
        record: &Record,
        at: Index,
        bytes: &[u8],
        model: Option<&str>,
        items: &mut Items,
    ) {
        let block = &self.session.blocks[at as usize];
        match block.kind {
            BlockKind::Text if block.blank => {}
            BlockKind::Text => {
                let text = json::string(block.body.of(bytes)).trim().to_owned();
                let model = model.map(str::to_owned);
                items.push(record, Body::Reply { text, model });
            }
            BlockKind::Thinking | BlockKind::RedactedThinking => {
                let text = json::string(block.body.of(bytes)).trim().to_owned();
                items.think(record, text);
            }
            BlockKind::ToolUse | BlockKind::ServerToolUse => {
                if let Some(&call) = self.calls.get(&at) {
                    let call = &self.session.calls[call as usize];
                    let body = self.call(call, block, bytes);
                    items.push(record, Body::Call(Box::new(body)));
                }
            }
            BlockKind::ToolResult | BlockKind::Image | BlockKind::Document | BlockKind::Other => {
                items.note(record, block.name().replace('_', " "), true);
            }
        }
    }

    fn call(&self, call: &session::Call, block: &Block, bytes: &[u8]) -> Call {
        let name = self.session.text(call.tool).to_owned();
        let input = match block.body.len {
            0 => Value::Null,
            _ => json::value(block.body.of(bytes)),
        };
        let result = self.result(call);
        let is_error = call.result.as_ref().is_some_and(|result| result.is_error);
        let facts = Facts {
            name: &name,
            input: &input,
            meta: &result.meta,
            text: result.text.as_deref(),
            is_error,
        };
        let status = self.status(call, block.kind == BlockKind::ServerToolUse);
        Call {
            id: call.id.to_string(),
            verb: verb(&name),
            subject: call.subject.as_deref().map(|subject| self.short(subject)),
            status,
            duration_ms: result.duration_ms,
            images: result.images,
            outcome: outcome::outcome(&facts),
            change: outcome::change(&facts),
            agent: if tool::is_agent(&name) {
                self.agent(call, &input)
            } else {
                None
            },
            text: match result.text {
                Some(text) => without_reminders(&text),
                None if status == CallStatus::Running => self.progress(call),
                None => String::new(),
            },
            meta: result.meta,
            input,
            name,
        }
    }

    /// A path below the working directory, from there.
    fn short(&self, subject: &str) -> String {
        let cwd = self.session.cwds.iter().next().map(|(cwd, _)| cwd);
        let below = cwd
            .and_then(|cwd| subject.strip_prefix(cwd))
            .and_then(|rest| rest.strip_prefix(['/', '\\']))
            .filter(|rest| !rest.is_empty());
        below.unwrap_or(subject).to_owned()
    }

    fn status(&self, call: &session::Call, server: bool) -> CallStatus {
        // The API answers its own tools within the same message.
        match self.course.status(self.session, call) {
            CallStatus::Missing | CallStatus::Running if server => CallStatus::Ok,
            status => status,
        }
    }

    fn result(&self, call: &session::Call) -> ResultText {
        let Some(result) = &call.result else {
            return ResultText::default();
        };
        let record = self.record(result.record);
        let bytes = self.bytes(record);
        let block = &self.session.blocks[result.block as usize];
        let (text, images) = content(block.body.of(&bytes));
        let meta = json::find(&bytes, &["toolUseResult"]);
        ResultText {
            text: Some(text),
            images,
            meta: meta.map_or(Value::Null, |span| json::value(span.of(&bytes))),
            duration_ms: turns::call_duration(self.session, call),
        }
    }

    /// The last thing a call without a result printed.
    fn progress(&self, call: &session::Call) -> String {
        let later = self.session.records[call.record as usize..].iter();
        let mut last = String::new();
        for record in later.filter(|record| record.kind == Kind::Progress) {
            let bytes = self.bytes(record);
            let text = |path: &[&str]| {
                json::find(&bytes, path).map(|span| json::string(span.of(&bytes)).into_owned())
            };
            if text(&["parentToolUseID"]).as_deref() != Some(&call.id) {
                continue;
            }
            let output = text(&["data", "fullOutput"]).or_else(|| text(&["data", "output"]));
            last = output
                .filter(|output| !output.trim().is_empty())
                .unwrap_or(last);
        }
        last
    }

    fn local_command(&self, record: &Record, items: &mut Items) {
        let bytes = self.bytes(record);
        let text = json::find(&bytes, &["content"]).map(|span| json::string(span.of(&bytes)));
        let text = text.unwrap_or_default();
        if text.trim_start().starts_with("<command-") {
            items.push(
                record,
                Body::Command {
                    command: Some(input::readable(&text)),
                    output: String::new(),
                    is_error: false,
                },
            );
        } else {
            items.push(record, machine(&text));
        }
    }

    fn system(&self, record: &Record, items: &mut Items) {
        let bytes = self.bytes(record);
        let level = json::find(&bytes, &["level"]).map(|span| json::string(span.of(&bytes)));
        let grave = level.is_some_and(|level| matches!(&*level, "error" | "warning"));
        let text = json::find(&bytes, &["content"]).map(|span| json::string(span.of(&bytes)));
        match text {
            Some(text) if grave && !text.trim().is_empty() => items.push(
                record,
                Body::Notice {
                    text: text.trim().to_owned(),
                },
            ),
            _ => items.note(record, self.label(record), true),
        }
    }

    fn hook(&self, record: &Record, items: &mut Items) {
        let bytes = self.bytes(record);
        let hook = match record.kind {
            Kind::Attachment => attached_hook(&bytes),
            _ => stop_hook(&bytes),
        };
        // The summary at the end of a turn repeats what the hook's own line said.
        let said = |item: &Item| match &item.body {
            Body::Hook(other) => other.output == hook.output,
            _ => false,
        };
        if items.all.iter().any(said) {
            items.note(record, self.label(record), true);
        } else {
            items.push(record, Body::Hook(hook));
        }
    }
}

#[derive(Default)]
struct ResultText {
    text: Option<String>,
    images: usize,
    meta: Value,
    duration_ms: Option<u64>,
}

/// Items as they are collected; bookkeeping next to bookkeeping becomes one item.
#[derive(Default)]
struct Items {
    all: Vec<Item>,
}

impl Items {
    fn push(&mut self, record: &Record, body: Body) {
        // An empty output is no news.
        let empty =
            matches!(&body, Body::Command { command: None, output, .. } if output.is_empty());
        if empty {
            return;
        }
        if let (
            Body::Command {
                command: None,
                output,
                is_error,
            },
            Some(Item {
                body:
                    Body::Command {
                        command: Some(_),
                        output: slot,
                        is_error: flag,
                    },
                ..
            }),
        ) = (&body, self.all.last_mut())
            && slot.is_empty()
        {
            (*slot, *flag) = (output.clone(), *is_error);
            return;
        }
        self.all.push(Item {
            line: record.line,
            at: record.at,
            body,
        });
    }

    fn note(&mut self, record: &Record, label: String, matters: bool) {
        let note = Note {
            label,
            count: 1,
            matters,
        };
        let Some(Item {
            body: Body::Notes(notes),
            ..
        }) = self.all.last_mut()
        else {
            return self.push(record, Body::Notes(vec![note]));
        };
        match notes.iter_mut().find(|other| other.label == note.label) {
            Some(other) => other.count += 1,
            None => notes.push(note),
        }
    }

    fn think(&mut self, record: &Record, text: String) {
        let chars = text.chars().count();
        if let Some(Item {
            body:
                Body::Thinking {
                    text: before,
                    chars: sum,
                },
            ..
        }) = self.all.last_mut()
        {
            if !before.is_empty() && !text.is_empty() {
                before.push_str("\n\n");
            }
            before.push_str(&text);
            *sum += chars;
            return;
        }
        self.push(record, Body::Thinking { text, chars });
    }
}

/// The text of a user line.
pub(super) fn text_of(session: &Session, source: &dyn Source, at: Index) -> String {
    let record = &session.records[at as usize];
    let bytes = session.bytes_of(source, record);
    crate::entry::text_of(session.blocks_of(record), &bytes)
}

/// The text of a result and the number of its images: a string, or a list of blocks.
pub(crate) fn content(raw: &[u8]) -> (String, usize) {
    if raw.first() == Some(&b'"') {
        return (json::string(raw).into_owned(), 0);
    }
    let value = match raw {
        [] => Value::Null,
        _ => json::value(raw),
    };
    let blocks = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut texts = Vec::new();
    let mut images = 0;
    for block in blocks {
        match block["type"].as_str() {
            Some("text") => texts.push(block["text"].as_str().unwrap_or_default().to_owned()),
            Some("image" | "document") => images += 1,
            _ => texts.push(
                block
                    .as_str()
                    .map_or_else(|| block.to_string(), str::to_owned),
            ),
        }
    }
    (texts.join("\n"), images)
}

/// What the client tells the model beside a result is not part of the result.
fn without_reminders(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("<system-reminder>") {
        let Some((_, after)) = behind.split_once("</system-reminder>") else {
            break;
        };
        out.push_str(before);
        rest = after;
    }
    out.push_str(rest);
    out.trim_end().to_owned()
}

/// Tools of MCP servers are named `mcp__server__tool`.
fn verb(name: &str) -> String {
    match name
        .strip_prefix("mcp__")
        .and_then(|rest| rest.split_once("__"))
    {
        Some((server, tool)) => format!("{server} {tool}"),
        None => tool::verb(name).to_owned(),
    }
}

fn compaction(boundary: &Boundary) -> Body {
    Body::Compaction {
        micro: boundary.micro,
        trigger: boundary.trigger.as_deref().map(str::to_owned),
        before: boundary.before,
        after: boundary.after,
    }
}

fn api_error(bytes: &[u8]) -> Body {
    let text = |path: &[&str]| json::find(bytes, path).map(|span| json::string(span.of(bytes)));
    let number =
        |path: &[&str]| json::find(bytes, path).and_then(|span| json::count(span.of(bytes)));
    let said = text(&["error", "formatted"])
        .or_else(|| text(&["error", "message"]))
        .or_else(|| text(&["content"]));
    Body::ApiError {
        text: said.unwrap_or_default().into_owned(),
        attempt: number(&["retryAttempt"]).zip(number(&["maxRetries"])),
    }
}

fn attached_hook(bytes: &[u8]) -> Hook {
    let value =
        json::find(bytes, &["attachment"]).map_or(Value::Null, |span| json::value(span.of(bytes)));
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let error = &value["blockingError"];
    let output = text(&error["blockingError"])
        .or_else(|| text(error))
        .or_else(|| text(&value["stderr"]))
        .or_else(|| text(&value["content"]))
        .or_else(|| text(&value["message"]));
    Hook {
        event: text(&value["hookName"])
            .or_else(|| text(&value["hookEvent"]))
            .unwrap_or_default(),
        command: text(&error["command"]).or_else(|| text(&value["command"])),
        blocked: value["type"] != "hook_non_blocking_error",
        output: output.unwrap_or_default().trim().to_owned(),
    }
}

fn stop_hook(bytes: &[u8]) -> Hook {
    let value = json::value(bytes);
    let errors = value["hookErrors"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let errors: Vec<&str> = errors.iter().filter_map(Value::as_str).collect();
    let stopped = value["preventedContinuation"] == true;
    let reason = value["stopReason"]
        .as_str()
        .filter(|reason| !reason.is_empty());
    Hook {
        event: "Stop".to_owned(),
        command: value["hookInfos"][0]["command"].as_str().map(str::to_owned),
        blocked: stopped,
        output: match reason.filter(|_| errors.is_empty()) {
            Some(reason) => reason.to_owned(),
            None => errors.join("\n").trim().to_owned(),
        },
    }
}

/// What a line written by the program for the model is about, and whether that matters.
fn meta_label(text: &str) -> (&'static str, bool) {
    let known = [
        ("Stop hook feedback", "hook feedback", true),
        ("<local-command-caveat>", "caveat", false),
        ("Caveat:", "caveat", false),
        ("Base directory for this skill", "skill", true),
        ("[Image: ", "image source", false),
        ("Continue from where you left off", "continue", false),
    ];
    let found = known.iter().find(|(start, ..)| text.starts_with(start));
    found.map_or(("note for the model", true), |(_, label, matters)| {
        (label, *matters)
    })
}

/// What a program wrote into a user line.
fn machine(text: &str) -> Body {
    let outputs = [
        ("local-command-stdout", false),
        ("local-command-stderr", true),
        ("bash-stdout", false),
        ("bash-stderr", true),
    ];
    let found: Vec<(&str, bool)> = outputs
        .iter()
        .filter_map(|&(tag, is_error)| Some((input::tagged(text, tag)?.trim(), is_error)))
        .collect();
    if !found.is_empty() {
        let texts: Vec<&str> = found
            .iter()
            .map(|(text, _)| *text)
            .filter(|text| !text.is_empty())
            .collect();
        let silent = found
            .iter()
            .all(|(text, is_error)| *is_error || text.is_empty());
        return Body::Command {
            command: None,
            is_error: silent
                && found
                    .iter()
                    .any(|(text, is_error)| *is_error && !text.is_empty()),
            output: texts.join("\n"),
        };
    }
    let summary = input::tagged(text, "summary").or_else(|| input::tagged(text, "status"));
    let text = summary.unwrap_or(text).trim();
    if text.is_empty() || text == "(no content)" {
        return Body::Notes(vec![Note {
            label: "empty line".to_owned(),
            count: 1,
            matters: false,
        }]);
    }
    Body::Notice {
        text: text.to_owned(),
    }
}
