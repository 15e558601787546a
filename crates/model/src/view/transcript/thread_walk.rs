//! Goes through the lines of a thread, turn by turn, and makes items of them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use super::call_progress::CallProgress;
use super::items::ItemCollector;
use super::line_text::{
    api_error, attached_hook, compaction, content, content_with, machine, media, meta_label,
    reminders, stop_hook, verb, without_reminders,
};
use super::{
    AgentTranscripts, ItemBody, LoadedMedia, TranscriptCall, TranscriptItem, TranscriptPrompt,
    TurnHead,
};
use crate::block::BlockKind;
use crate::entry::{LineDetail, LineKind};
use crate::fault::{Fault, FaultKind};
use crate::json;
use crate::log::TranscriptSource;
use crate::session::{self, EntryRecord, Index, Session};
use crate::tool;
use crate::user_input::{self, UserInput};
use crate::view::prompt_queue;
use crate::view::tool_outcome::{self, ToolCallFacts};
use crate::view::turn_selection::TurnSelection;
use crate::view::turns::{self, CallStatus, ThreadEnds, TurnRow};

/// A turn of the thread, or what stands before the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadPart {
    Before,
    Turn(usize),
}

/// A thread of a session on its way to items.
pub(super) struct ThreadWalk<'a> {
    pub(super) session: &'a Session,
    pub(super) source: &'a dyn TranscriptSource,
    pub(super) agents: &'a AgentTranscripts<'a>,
    pub(super) open_agents: bool,
    pub(super) depth: usize,
    /// With data of images and texts of notes.
    pub(super) whole: bool,
    /// Only which items there are: no text is read that does not decide that.
    pub(super) lean: bool,
    /// Lines of hooks that say what was said before in their turn, where that is known.
    pub(super) repeats: Option<&'a HashSet<u32>>,
    thread: Index,
    known: Arc<ConversationFacts>,
}

/// What is known of a session once, for all its threads.
pub(super) struct ConversationFacts {
    pub(super) course: ThreadEnds,
    typed: HashMap<Index, String>,
    pub(super) rows: Vec<TurnRow>,
    calls: HashMap<Index, Index>,
    orphans: HashSet<Index>,
    /// Blocks of replies that were said, not only written again.
    said: Vec<bool>,
    threads: Vec<ThreadLines>,
    progress: CallProgress,
}

/// The lines of a thread.
#[derive(Clone, Default)]
struct ThreadLines {
    before: Vec<Index>,
    turns: Vec<(Index, Vec<Index>)>,
}

impl ConversationFacts {
    pub(super) fn of(session: &Session) -> ConversationFacts {
        let calls = session.calls.iter().enumerate();
        ConversationFacts {
            course: ThreadEnds::of(session),
            typed: prompt_queue::typed_meanwhile(session).into_iter().collect(),
            rows: turns::outline(session, turns::TurnOptions::default()),
            calls: calls.map(|(at, call)| (call.block, at as Index)).collect(),
            orphans: session
                .orphan_results()
                .into_iter()
                .map(|(_, block)| block)
                .collect(),
            said: said(session),
            threads: sorted(session),
            progress: CallProgress::default(),
        }
    }
}

/// Puts every line into its turn, in each thread.
fn sorted(session: &Session) -> Vec<ThreadLines> {
    let mut threads = vec![ThreadLines::default(); session.threads.len()];
    let mut place = Vec::with_capacity(session.turns.len());
    for turn in &session.turns {
        let turns = &mut threads[turn.thread as usize].turns;
        place.push(turns.len());
        turns.push((turn.record, Vec::new()));
    }
    let turn_of = session.turns_by_record();
    let mut last = vec![None; session.threads.len()];
    for (at, record) in session.records.iter().enumerate() {
        if record.is_duplicate() {
            continue;
        }
        let thread = record.thread as usize;
        let own = turn_of[at].filter(|&turn| session.turns[turn as usize].thread == record.thread);
        let turn = own.map(|turn| place[turn as usize]).or(last[thread]);
        let lines = match turn {
            Some(turn) => &mut threads[thread].turns[turn].1,
            None => &mut threads[thread].before,
        };
        lines.push(at as Index);
        last[thread] = turn;
    }
    for (opening, lines) in threads.iter_mut().flat_map(|lines| &mut lines.turns) {
        // 2.1.45 writes replies before their prompt.
        let at = lines.iter().position(|line| line == opening);
        lines[..at.map_or(0, |at| at + 1)].rotate_right(usize::from(at.is_some()));
    }
    threads
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

impl<'a> ThreadWalk<'a> {
    pub(super) fn new(
        session: &'a Session,
        source: &'a dyn TranscriptSource,
        agents: &'a AgentTranscripts<'a>,
        open_agents: bool,
    ) -> ThreadWalk<'a> {
        ThreadWalk {
            session,
            source,
            agents,
            open_agents,
            depth: 0,
            whole: false,
            lean: false,
            repeats: None,
            thread: 0,
            known: Arc::new(ConversationFacts::of(session)),
        }
    }

    /// A thread of a session of which everything is known already.
    pub(super) fn again(
        session: &'a Session,
        source: &'a dyn TranscriptSource,
        agents: &'a AgentTranscripts<'a>,
        thread: Index,
        known: &Arc<ConversationFacts>,
    ) -> ThreadWalk<'a> {
        ThreadWalk {
            session,
            source,
            agents,
            open_agents: false,
            depth: 0,
            whole: false,
            lean: false,
            repeats: None,
            thread,
            known: Arc::clone(known),
        }
    }

    fn lines(&self) -> &ThreadLines {
        &self.known.threads[self.thread as usize]
    }

    pub(super) fn whole(mut self) -> ThreadWalk<'a> {
        self.whole = true;
        self
    }

    /// A text for those who want everything.
    fn if_whole(&self, text: impl FnOnce() -> String) -> String {
        if self.whole { text() } else { String::new() }
    }

    /// The whole line, for those who want everything.
    fn raw(&self, record: &EntryRecord) -> String {
        self.if_whole(|| pretty(&self.bytes(record)))
    }

    pub(super) fn below(mut self, depth: usize) -> ThreadWalk<'a> {
        self.depth = depth;
        self
    }

    /// Another thread of the same file.
    pub(super) fn in_thread(&self, thread: Index) -> ThreadWalk<'a> {
        ThreadWalk {
            session: self.session,
            source: self.source,
            agents: self.agents,
            open_agents: self.open_agents,
            depth: self.depth,
            whole: self.whole,
            lean: self.lean,
            repeats: None,
            thread,
            known: Arc::clone(&self.known),
        }
    }

    pub(super) fn picked(&self, pick: &TurnSelection) -> Vec<ThreadPart> {
        let count = self.lines().turns.len();
        let turns = (0..count).filter(|&at| pick.takes(at as u32 + 1, count as u32));
        let lost = || !self.faults(ThreadPart::Before).is_empty();
        let before = pick.takes(0, count as u32) && (!self.lines().before.is_empty() || lost());
        let before = before.then_some(ThreadPart::Before).into_iter();
        before.chain(turns.map(ThreadPart::Turn)).collect()
    }

    /// Everything, without the heads of turns: a sub-agent has but one.
    pub(super) fn all(&self) -> Vec<TranscriptItem> {
        let parts = self.picked(&TurnSelection::default());
        let items = parts.into_iter().flat_map(|part| self.turn(part));
        items
            .filter(|item| !matches!(item.body, ItemBody::Turn(_)))
            .collect()
    }

    pub(super) fn turn(&self, part: ThreadPart) -> Vec<TranscriptItem> {
        self.slice(part, 0..usize::MAX, |_, _, _| ())
    }

    /// Whether anybody said something in a part, or lines of it are lost.
    pub(super) fn says_something(&self, part: ThreadPart) -> bool {
        let mut lines = self.lines_of(part).iter();
        lines.any(|&at| self.record(at).is_conversation()) || !self.faults(part).is_empty()
    }

    /// The lines of a part, in the order in which they are shown.
    pub(super) fn lines_of(&self, part: ThreadPart) -> &[Index] {
        match part {
            ThreadPart::Before => &self.lines().before,
            ThreadPart::Turn(at) => &self.lines().turns[at].1,
        }
    }

    /// The items that some lines of a turn make, given by their places in it; the head of the
    /// turn belongs to the first. `each` is told about every line: its place, how many items
    /// there were before it, and the items since.
    pub(super) fn slice(
        &self,
        part: ThreadPart,
        places: Range<usize>,
        mut each: impl FnMut(usize, usize, &ItemCollector),
    ) -> Vec<TranscriptItem> {
        let mut items = ItemCollector::default();
        if let (Some((opening, head)), 0) = (self.head(part), places.start) {
            items.push(self.record(opening), ItemBody::Turn(head));
        }
        let lines = self.lines_of(part);
        let end = places.end.min(lines.len());
        let start = places.start.min(end);
        let passed = lines[..start].iter().map(|&at| self.record(at).line).max();
        let mut faults = self.faults(part);
        faults.retain(|fault| passed.is_none_or(|passed| fault.line >= passed));
        let mut faults = faults.into_iter().peekable();
        for (place, &at) in (start..).zip(&lines[start..end]) {
            let before = items.all.len();
            items.joined = false;
            let line = self.record(at).line;
            while let Some(fault) = faults.next_if(|fault| fault.line < line) {
                items.all.push(fault);
            }
            self.line(at, &mut items);
            each(place, before, &items);
        }
        if end == lines.len() {
            let before = items.all.len();
            items.joined = false;
            items.all.extend(faults);
            each(end, before, &items);
        }
        items.all
    }

    /// The head of a part and the line that opens it. What stands before the first turn has one
    /// if it is a turn itself.
    fn head(&self, part: ThreadPart) -> Option<(Index, TurnHead)> {
        let n = match part {
            ThreadPart::Before => 0,
            ThreadPart::Turn(at) => at + 1,
        };
        let row = turns::numbered(&self.known.rows, n).filter(|_| self.thread == 0);
        let opening = match part {
            ThreadPart::Before => row?.record,
            ThreadPart::Turn(at) => self.lines().turns[at].0,
        };
        let head = TurnHead {
            n: n as i64,
            kind: self.record(opening).input,
            duration_ms: row.and_then(|row| row.duration_ms),
            live: row.is_none_or(|row| row.live),
        };
        Some((opening, head))
    }

    fn record(&self, at: Index) -> &'a EntryRecord {
        &self.session.records[at as usize]
    }

    fn bytes(&self, record: &EntryRecord) -> Cow<'a, [u8]> {
        self.session.bytes_of(self.source, record)
    }

    /// The bytes of a line whose text does not decide which items there are.
    fn read(&self, record: &EntryRecord) -> Cow<'a, [u8]> {
        if self.lean {
            return Cow::Borrowed(&[]);
        }
        self.bytes(record)
    }

    /// Lines that could not be read, for the turn whose lines stand around them.
    fn faults(&self, part: ThreadPart) -> Vec<TranscriptItem> {
        let start = |at: usize| {
            let turn = self.lines().turns.get(at);
            turn.map_or(u32::MAX, |turn| self.record(turn.0).line)
        };
        let range = match part {
            ThreadPart::Before => 0..start(0),
            ThreadPart::Turn(at) => start(at)..start(at + 1),
        };
        let lost = |kind| {
            let kinds = [
                FaultKind::Unreadable,
                FaultKind::TornTail,
                FaultKind::TooLong,
                FaultKind::NotAnObject,
            ];
            kinds.contains(&kind) && self.thread == 0
        };
        let faults = self.session.faults.iter();
        let shown = faults.filter(|fault| range.contains(&fault.line) && lost(fault.kind));
        let all = &self.session.faults;
        let mut more: Vec<(u32, FaultKind, usize)> = Vec::new();
        for (kind, count) in all.all_left_out() {
            let last = all.iter().rfind(|fault| fault.kind == kind);
            more.extend(last.map(|last| (last.line, kind, count)));
        }
        let item = |fault: &Fault| {
            let mut detail = format!("line {}: {}", fault.line, fault.detail);
            let last = more
                .iter()
                .find(|more| (more.0, more.1) == (fault.line, fault.kind));
            if let Some((_, kind, count)) = last {
                detail += &format!("; and {count} more such lines after it ({})", kind.name());
            }
            TranscriptItem {
                line: fault.line,
                at: None,
                body: ItemBody::Fault { detail },
            }
        };
        shown.map(item).collect()
    }

    fn line(&self, at: Index, items: &mut ItemCollector) {
        let record = self.record(at);
        if let Some(text) = self.known.typed.get(&at) {
            return items.push(record, ItemBody::Queued { text: text.clone() });
        }
        match record.kind {
            LineKind::User => self.user(record, items),
            LineKind::Assistant => self.reply(record, items),
            LineKind::CompactBoundary | LineKind::MicroBoundary => {
                items.push(record, compaction(self.session, record));
            }
            LineKind::LocalCommand => self.local_command(record, items),
            LineKind::ApiError => items.push(record, api_error(&self.read(record))),
            LineKind::QueuedCommand => {
                let text = match self.session.detail_of(record) {
                    Some(LineDetail::Queued { text, .. }) => text,
                    _ => "",
                };
                self.machine(record, text, items);
            }
            LineKind::StopHookSummary | LineKind::Attachment | LineKind::System
                if record.is_trouble() =>
            {
                self.hook(record, items);
            }
            LineKind::System => self.system(record, items),
            LineKind::Unknown => {
                let label = self.session.label_of(record).to_owned();
                items.push(record, ItemBody::Unknown { label });
                if self.whole {
                    items.note(record, "raw line".to_owned(), true, self.raw(record));
                }
            }
            LineKind::TurnDuration => {}
            LineKind::Attachment | LineKind::StopHookSummary => {
                items.note(record, self.label(record), true, self.attached(record));
            }
            LineKind::Progress
            | LineKind::Queue
            | LineKind::Summary
            | LineKind::Title
            | LineKind::LastPrompt
            | LineKind::PermissionMode
            | LineKind::PrLink
            | LineKind::FileHistory
            | LineKind::Bookkeeping => {
                items.note(record, self.label(record), false, String::new());
            }
        }
    }

    /// What an attachment holds, for those who want everything.
    fn attached(&self, record: &EntryRecord) -> String {
        self.if_whole(|| {
            let bytes = self.bytes(record);
            let span = json::find(&bytes, &["attachment"]);
            span.map_or_else(String::new, |span| pretty(span.of(&bytes)))
        })
    }

    /// What a program wrote into a user line; where that is said in fewer words, also all of it.
    fn machine(&self, record: &EntryRecord, text: &str, items: &mut ItemCollector) {
        let body = machine(text);
        let short = matches!(&body, ItemBody::Notice { text: said } if said != text.trim());
        items.push(record, body);
        if short && self.whole {
            items.note(record, "as it was sent".to_owned(), true, text.to_owned());
        }
    }

    /// The label of a line for people: `attachment/hook_success` is a `hook success`.
    fn label(&self, record: &EntryRecord) -> String {
        let label = self.session.label_of(record);
        let (kind, sub) = label.split_once('/').unwrap_or((label, ""));
        let text = match (kind, sub) {
            ("queue-operation", _) => "queue",
            (_, "") => kind,
            _ => sub,
        };
        text.replace(['_', '-'], " ")
    }

    fn user(&self, record: &EntryRecord, items: &mut ItemCollector) {
        if record.input == UserInput::Results {
            return self.results(record, items);
        }
        let blocks = self.session.blocks_of(record);
        let (bytes, text) = match record.input {
            UserInput::Machine => self.text(record, blocks),
            _ if self.lean => (Cow::Borrowed(&[][..]), String::new()),
            _ => self.text(record, blocks),
        };
        match record.input {
            UserInput::Prompt
            | UserInput::Command
            | UserInput::Shell
            | UserInput::Memory
            | UserInput::Plan => {
                items.push(record, self.prompt(record, blocks, &text, &bytes));
                // Editors and the client add to what was typed.
                if self.whole
                    && text.contains('<')
                    && user_input::readable(&text) != text.trim_end()
                {
                    items.note(record, "as it was sent".to_owned(), true, text);
                }
            }
            UserInput::Interrupt => {
                let tool = text.contains("for tool use");
                items.push(record, ItemBody::Interrupt { tool });
            }
            UserInput::Summary => items.push(record, ItemBody::Summary { text }),
            UserInput::Meta => {
                let (label, matters) = meta_label(&text);
                items.note(record, label.to_owned(), matters, self.if_whole(|| text));
            }
            UserInput::Machine | UserInput::Results => self.machine(record, &text, items),
        }
    }

    fn text(
        &self,
        record: &EntryRecord,
        blocks: &[session::BlockRecord],
    ) -> (Cow<'a, [u8]>, String) {
        let bytes = self.bytes(record);
        let text = crate::entry::text_of(blocks, &bytes).into_owned();
        (bytes, text)
    }

    fn prompt(
        &self,
        record: &EntryRecord,
        blocks: &[session::BlockRecord],
        text: &str,
        bytes: &[u8],
    ) -> ItemBody {
        let is_media = |block: &&session::BlockRecord| {
            matches!(block.kind, BlockKind::Image | BlockKind::Document)
        };
        let shown = blocks.iter().filter(is_media);
        let whole = shown.clone().filter(|_| self.whole);
        ItemBody::Prompt(TranscriptPrompt {
            text: user_input::readable(text).into_owned(),
            kind: record.input,
            kinds: record.input_kinds(),
            images: shown.count(),
            media: whole
                .map(|block| media(&json::value(block.span().of(bytes))))
                .collect(),
            permission_mode: record
                .permission_mode()
                .map(|mode| self.session.text(mode).to_owned()),
        })
    }

    /// Results stand at their calls; what stands beside them or has no call is shown here.
    fn results(&self, record: &EntryRecord, items: &mut ItemCollector) {
        let is_text = |block: &session::BlockRecord| block.kind == BlockKind::Text && !block.blank;
        let shown = |at: Index| {
            self.known.orphans.contains(&at) || is_text(&self.session.blocks[at as usize])
        };
        // Nearly all results stand at their calls, and are not read here.
        if !record.blocks.clone().any(shown) {
            return;
        }
        let bytes = self.bytes(record);
        for at in record.blocks.clone() {
            let block = &self.session.blocks[at as usize];
            if is_text(block) {
                let text = json::string(block.body().of(&bytes));
                let interrupt = text.starts_with("[Request interrupted by user");
                let tool = text.contains("for tool use");
                if interrupt {
                    items.push(record, ItemBody::Interrupt { tool });
                } else {
                    self.machine(record, &text, items);
                }
            }
            if self.known.orphans.contains(&at) {
                let (text, _) = content(block.body().of(&bytes));
                let call = self.session.id_of(block).unwrap_or_default().to_owned();
                let is_error = block.is_error;
                items.push(
                    record,
                    ItemBody::Orphan {
                        call,
                        text,
                        is_error,
                    },
                );
            }
        }
    }

    fn reply(&self, record: &EntryRecord, items: &mut ItemCollector) {
        let Some(message) = record
            .message()
            .map(|at| &self.session.messages[at as usize])
        else {
            return;
        };
        let bytes = self.read(record);
        if record.is_api_error() || message.synthetic {
            let text = match self.lean {
                true => String::new(),
                false => {
                    let blocks = self.session.blocks_of(record);
                    crate::entry::text_of(blocks, &bytes).into_owned()
                }
            };
            if record.is_api_error() {
                items.push(
                    record,
                    ItemBody::ApiError {
                        text,
                        attempt: None,
                    },
                );
            } else {
                items.note(
                    record,
                    "synthetic reply".to_owned(),
                    false,
                    self.if_whole(|| text),
                );
            }
            return;
        }
        let model = message
            .model()
            .map(|model| self.session.text(model).to_owned());
        for block in record
            .blocks
            .clone()
            .filter(|&block| self.known.said[block as usize])
        {
            self.block(record, block, &bytes, model.as_deref(), items);
        }
    }

    fn block(
        &self,
        record: &EntryRecord,
        at: Index,
        bytes: &[u8],
        model: Option<&str>,
        items: &mut ItemCollector,
    ) {
        let block = &self.session.blocks[at as usize];
        match block.kind {
            BlockKind::Text if block.blank => {}
            BlockKind::Text => {
                let text = self.said(block, bytes);
                let model = model.map(str::to_owned);
                items.push(record, ItemBody::Reply { text, model });
            }
            BlockKind::Thinking | BlockKind::RedactedThinking => {
                let text = self.said(block, bytes);
                items.think(record, text);
            }
            BlockKind::ToolUse | BlockKind::ServerToolUse if self.lean => {
                if self.known.calls.contains_key(&at) {
                    items.push(record, ItemBody::Call(Box::default()));
                }
            }
            BlockKind::ToolUse | BlockKind::ServerToolUse => {
                if let Some(&call) = self.known.calls.get(&at) {
                    let call = &self.session.calls[call as usize];
                    let (body, reminders) = self.call(call, block, bytes);
                    items.push(record, ItemBody::Call(Box::new(body)));
                    if !reminders.is_empty() {
                        items.note(record, "reminder".to_owned(), true, reminders);
                    }
                }
            }
            BlockKind::ToolResult | BlockKind::Image | BlockKind::Document | BlockKind::Other => {
                let text = self.if_whole(|| pretty(block.span().of(bytes)));
                items.note(
                    record,
                    self.session.type_of(block).replace('_', " "),
                    true,
                    text,
                );
            }
        }
    }

    /// What a block of a reply says.
    fn said(&self, block: &session::BlockRecord, bytes: &[u8]) -> String {
        if self.lean {
            return String::new();
        }
        json::string(block.body().of(bytes)).trim().to_owned()
    }

    /// A call with its result, and what the client told the model beside that.
    fn call(
        &self,
        call: &session::ToolCall,
        block: &session::BlockRecord,
        bytes: &[u8],
    ) -> (TranscriptCall, String) {
        let name = self.session.text(call.tool).to_owned();
        let input = match block.body().len {
            0 => Value::Null,
            _ => json::value(block.body().of(bytes)),
        };
        let result = self.result(call);
        let is_error = call.result.as_ref().is_some_and(|result| result.is_error);
        let facts = ToolCallFacts {
            name: &name,
            input: &input,
            meta: &result.meta,
            text: result.text.as_deref(),
            is_error,
        };
        let status = self.status(call, block.kind == BlockKind::ServerToolUse);
        let beside = match &result.text {
            Some(text) if self.whole => reminders(text),
            _ => String::new(),
        };
        let call = TranscriptCall {
            id: self.session.call_id(call).to_owned(),
            verb: verb(&name),
            subject: self
                .session
                .subject(call)
                .map(|subject| self.short(subject)),
            status,
            duration_ms: result.duration_ms,
            images: result.images,
            pictures: result.pictures,
            media: result.media,
            outcome: tool_outcome::outcome(&facts),
            change: tool_outcome::change(&facts),
            agent: if tool::is_agent(&name) {
                self.agent(call, &input)
            } else if tool::is_workflow(&name) {
                self.run(call)
            } else {
                None
            },
            text: match result.text {
                Some(text) => without_reminders(&text),
                None if status == CallStatus::Running => {
                    self.known.progress.of(self.session, self.source, call)
                }
                None => String::new(),
            },
            meta: result.meta,
            input,
            name,
        };
        (call, beside)
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

    fn status(&self, call: &session::ToolCall, server: bool) -> CallStatus {
        // The API answers its own tools within the same message.
        match self.known.course.status(self.session, call) {
            CallStatus::Missing | CallStatus::Running if server => CallStatus::Ok,
            status => status,
        }
    }

    fn result(&self, call: &session::ToolCall) -> ResultText {
        let Some(result) = &call.result else {
            return ResultText::default();
        };
        let record = self.record(result.record);
        let bytes = self.bytes(record);
        let block = &self.session.blocks[result.block as usize];
        let body = block.body().of(&bytes);
        let (text, images, media) = if self.whole {
            let (text, media) = content_with(body, media);
            (text, media.len(), media)
        } else {
            let (text, images) = content(body);
            (text, images, Vec::new())
        };
        let pictures = (images > 0).then(|| {
            let first = self.pictures_before(record, result.block, &bytes);
            (record.line, first)
        });
        let meta = json::find_again(&bytes, &["toolUseResult"]);
        ResultText {
            pictures,
            text: Some(text),
            images,
            media,
            meta: match meta {
                Some(span) if self.whole => tool_outcome::lean(span.of(&bytes)),
                Some(span) => json::value(span.of(&bytes)),
                None => Value::Null,
            },
            duration_ms: turns::call_duration(self.session, call),
        }
    }

    /// How many images other results on the line hold, before those of this one.
    fn pictures_before(&self, record: &EntryRecord, block: Index, bytes: &[u8]) -> usize {
        let before = record.blocks.clone().take_while(|&at| at < block);
        let bodies = before.map(|at| self.session.blocks[at as usize].body().of(bytes));
        bodies.map(|body| content(body).1).sum()
    }

    fn local_command(&self, record: &EntryRecord, items: &mut ItemCollector) {
        let bytes = self.bytes(record);
        let text = json::find(&bytes, &["content"]).map(|span| json::string(span.of(&bytes)));
        let text = text.unwrap_or_default();
        if text.trim_start().starts_with("<command-") {
            items.push(
                record,
                ItemBody::Command {
                    command: Some(user_input::readable(&text).into_owned()),
                    output: String::new(),
                    is_error: false,
                },
            );
        } else {
            self.machine(record, &text, items);
        }
    }

    fn system(&self, record: &EntryRecord, items: &mut ItemCollector) {
        let bytes = self.bytes(record);
        let level = json::find(&bytes, &["level"]).map(|span| json::string(span.of(&bytes)));
        let grave = level.is_some_and(|level| matches!(&*level, "error" | "warning"));
        let text = json::find(&bytes, &["content"]).map(|span| json::string(span.of(&bytes)));
        match text {
            Some(text) if grave && !text.trim().is_empty() => items.push(
                record,
                ItemBody::Notice {
                    text: text.trim().to_owned(),
                },
            ),
            text => {
                let text = self.if_whole(|| text.unwrap_or_default().into_owned());
                items.note(record, self.label(record), true, text);
            }
        }
    }

    fn hook(&self, record: &EntryRecord, items: &mut ItemCollector) {
        let bytes = self.bytes(record);
        let hook = match record.kind {
            LineKind::Attachment => attached_hook(&bytes),
            _ => stop_hook(&bytes),
        };
        // The summary at the end of a turn repeats what the hook's own line said.
        let said = |item: &TranscriptItem| match &item.body {
            ItemBody::Hook(other) => other.output == hook.output,
            _ => false,
        };
        let repeats = match self.repeats {
            Some(lines) => lines.contains(&record.line),
            None => items.all.iter().any(said),
        };
        if repeats {
            items.repeats.push(record.line);
            items.note(record, self.label(record), true, String::new());
        } else {
            items.push(record, ItemBody::Hook(hook));
        }
    }
}

#[derive(Default)]
struct ResultText {
    text: Option<String>,
    images: usize,
    pictures: Option<(u32, usize)>,
    media: Vec<LoadedMedia>,
    meta: Value,
    duration_ms: Option<u64>,
}

/// JSON for people.
fn pretty(raw: &[u8]) -> String {
    serde_json::to_string_pretty(&json::value(raw)).unwrap_or_default()
}
