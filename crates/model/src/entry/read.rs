//! Reads one object into an entry: one pass over its bytes, each field once.

use std::borrow::Cow;
use std::num::NonZeroU64;

use compact_str::CompactString;

use super::failure::ApiFailure;
use super::{
    AgentClue, ClueSource, CompactBoundary, Entry, HEAD, LineDetail, LineKind, MessageHead,
    ParentId, QueueOperation, SummaryTitle, TaskNotice, TitleSource, agent_named_in, clip,
    media_note, text_of,
};
use crate::block::{self, Block, BlockKind};
use crate::hook_events;
use crate::id::Id;
use crate::json::{self, JsonCursor, JsonError, LONGEST_NAME, Span};
use crate::known_names::{self, NestedFieldNames, UnknownNames};
use crate::time::Time;
use crate::title;
use crate::usage::{PricingTerms, Usage};
use crate::user_input::{self, InputKinds, UserInput, UserLineFacts};

/// Everything read from the top of a line before its kind is known.
#[derive(Default)]
struct EntryFields<'a> {
    kind: Option<Cow<'a, str>>,
    subtype: Option<Cow<'a, str>>,
    uuid: Option<Id>,
    parent: ParentId,
    logical_parent: Option<Id>,
    session: Option<Id>,
    time: Option<Cow<'a, str>>,
    role: Option<Cow<'a, str>>,
    cwd: Option<Box<str>>,
    version: Option<CompactString>,
    branch: Option<CompactString>,
    slug: Option<CompactString>,
    permission_mode: Option<CompactString>,
    entrypoint: Option<CompactString>,
    agent: Option<CompactString>,
    forked_from: Option<Id>,
    asked_by: Option<Id>,
    team: Option<CompactString>,
    member: Option<CompactString>,
    process: Option<CompactString>,
    source_call: Option<Box<str>>,
    origin: Option<String>,
    operation: Option<Box<str>>,
    leaf: Option<Id>,
    title: Option<String>,
    url: Option<String>,
    duration: Option<u64>,
    stated: Option<NonZeroU64>,
    sidechain: bool,
    meta: bool,
    summary: bool,
    transcript_only: bool,
    api_error: bool,
    explicit: bool,
    plan: bool,
    trouble: bool,
    has_message: bool,
    message: MessageHead,
    blocks: Vec<Block>,
    content: Vec<Block>,
    boundary: CompactBoundary,
    nested: NestedFields<'a>,
    result_agent: Option<Box<str>>,
    result_status: Option<Box<str>>,
    result_task: Option<Box<str>>,
    tag: Option<String>,
    result_run: Option<Box<str>>,
    unknown: UnknownNames,
    unknown_inside: UnknownNames,
}

/// What `attachment` and `data` (of progress lines) say.
#[derive(Default)]
struct NestedFields<'a> {
    kind: Option<Cow<'a, str>>,
    human: bool,
    text: Option<String>,
    copy: Option<MessageHead>,
    agent: Option<Box<str>>,
    trouble: bool,
}

type FieldResult<T> = Result<T, JsonError>;

/// Reads the object at `at`: the entry (none if it is another value), where it ended, and
/// whether it held raw control characters.
pub(super) fn object(
    line: &[u8],
    text: Option<&str>,
    at: usize,
) -> FieldResult<(Option<Entry>, usize, bool)> {
    let mut cursor = JsonCursor::within(line, text, at);
    cursor.peek();
    let start = cursor.position();
    let mut parts = EntryFields::default();
    let is_object = cursor.object(|c, key| parts.field(c, line, key))?;
    let span = Span::new(start, cursor.position());
    let entry = is_object.then(|| parts.entry(span, line));
    Ok((entry, cursor.position(), cursor.control))
}

/// A text that names something: not if it is too long to be a name.
fn name<'a>(cursor: &mut JsonCursor<'a>) -> FieldResult<Option<Cow<'a, str>>> {
    Ok(cursor.text()?.filter(|text| text.len() <= LONGEST_NAME))
}

fn boxed(cursor: &mut JsonCursor<'_>) -> FieldResult<Option<Box<str>>> {
    Ok(name(cursor)?.map(Box::from))
}

/// Names that are nearly always short enough to need no memory of their own.
fn short(cursor: &mut JsonCursor<'_>) -> FieldResult<Option<CompactString>> {
    cursor.name()
}

fn id(cursor: &mut JsonCursor<'_>) -> FieldResult<Option<Id>> {
    Ok(name(cursor)?.map(|text| Id::new(&text)))
}

fn owned(cursor: &mut JsonCursor<'_>) -> FieldResult<Option<String>> {
    Ok(name(cursor)?.map(Cow::into_owned))
}

/// A title, as much of it as anybody shows.
fn title(cursor: &mut JsonCursor<'_>) -> FieldResult<Option<String>> {
    Ok(cursor.text()?.map(|text| clip(&text, LONGEST_NAME)))
}

impl<'a> EntryFields<'a> {
    fn field(&mut self, c: &mut JsonCursor<'a>, line: &[u8], key: &str) -> FieldResult<()> {
        match key {
            "type" => self.kind = name(c)?,
            // On nearly every line, and nothing to learn from.
            "userType"
            | "requestId"
            | "promptId"
            | "session_id"
            | "sourceToolAssistantUUID"
            | "requestRef"
            | "requestedModel"
            | "effort"
            | "perTurnEffort"
            | "madeBy" => drop(c.skip()?),
            "subtype" => self.subtype = name(c)?,
            "uuid" => self.uuid = id(c)?,
            "parentUuid" => self.parent = parent(c)?,
            "logicalParentUuid" => self.logical_parent = id(c)?,
            "sessionId" => self.session = id(c)?,
            "timestamp" => self.time = c.text()?,
            "cwd" => self.cwd = boxed(c)?,
            "version" => self.version = short(c)?,
            "gitBranch" => self.branch = short(c)?,
            "slug" => self.slug = short(c)?,
            "permissionMode" => self.permission_mode = short(c)?,
            "entrypoint" => self.entrypoint = short(c)?,
            "agentId" => self.agent = short(c)?,
            "sourceToolUseID" | "parentToolUseID" => self.source_call = boxed(c)?,
            "operation" => self.operation = boxed(c)?,
            "leafUuid" => self.leaf = id(c)?,
            "tag" => self.tag = title(c)?,
            "summary" | "customTitle" | "aiTitle" => self.title = title(c)?,
            // A title on a line of its own, and on others the name of a teammate.
            "agentName" => {
                self.title = title(c)?;
                self.member = self.title.as_deref().map(CompactString::from);
            }
            "teamName" => self.team = short(c)?,
            "sessionKind" => self.process = short(c)?,
            "requestSessionId" => self.asked_by = id(c)?,
            "prUrl" => self.url = owned(c)?,
            "durationMs" => self.duration = c.count()?,
            "costUSD" => self.stated = stated(c, line)?,
            "isSidechain" => self.sidechain = c.truth()?,
            "isMeta" => self.meta = c.truth()?,
            "isCompactSummary" => self.summary = c.truth()?,
            "isVisibleInTranscriptOnly" => self.transcript_only = c.truth()?,
            "isApiErrorMessage" => self.api_error = c.truth()?,
            "preventedContinuation" => self.trouble |= c.truth()?,
            "hookErrors" => {
                c.array(|c| {
                    self.trouble = true;
                    c.skip().map(drop)
                })?;
            }
            "explicit" => self.explicit = c.truth()?,
            "planContent" => self.plan = c.text()?.is_some(),
            "message" => {
                self.has_message = c.peek() == Some(b'{');
                let blocks = Some(&mut self.blocks);
                let (head, role) = message(c, line, blocks, &mut self.unknown_inside)?;
                (self.message, self.role) = (head.keep(), role);
            }
            "content" => self.content = block::read(c, line, &mut self.unknown_inside)?,
            "origin" => self.origin = nested_text(c, key, "kind", &mut self.unknown)?,
            "forkedFrom" => {
                let session = nested_text(c, key, "sessionId", &mut self.unknown)?;
                self.forked_from = session.map(|text| Id::new(&text));
            }
            "compactMetadata" | "microcompactMetadata" => {
                boundary(c, key, &mut self.boundary, &mut self.unknown)?;
            }
            "attachment" | "data" | "progressData" => {
                self.nested = nested(c, key, line, &mut self.unknown)?;
            }
            "snapshot" | "backup" | "thinkingMetadata" | "turnPosition" | "permissionDecision"
            | "commandRun" | "error" | "hookInfos" | "modelUsage" | "worktreeSession" => {
                fields(c, key, &mut self.unknown)?;
            }
            "toolUseResult" => self.tool_result(c)?,
            _ => {
                c.skip()?;
                if !known_names::is_field(key) {
                    self.unknown.add("field ", key);
                }
            }
        }
        Ok(())
    }

    fn tool_result(&mut self, c: &mut JsonCursor<'_>) -> FieldResult<()> {
        c.object(|c, key| {
            match key {
                "agentId" => self.result_agent = boxed(c)?,
                "status" => self.result_status = boxed(c)?,
                "backgroundTaskId" => self.result_task = boxed(c)?,
                "runId" => self.result_run = boxed(c)?,
                // What `TaskOutput` read.
                "task" => {
                    let mut any = UnknownNames::default();
                    let status = nested_text(c, "task", "status", &mut any)?;
                    self.result_status = status.map(Into::into);
                }
                _ => drop(c.skip()?),
            }
            Ok(())
        })
        .map(drop)
    }

    fn entry(mut self, span: Span, line: &[u8]) -> Entry {
        let untyped = self.kind.is_none();
        // Lines without a type go by the role of their message (the second seed's shape).
        let kind_name = self
            .kind
            .take()
            .or_else(|| self.role.take())
            .unwrap_or_default();
        let content_on_top = !self.has_message && !self.content.is_empty();
        if !self.has_message && matches!(&*kind_name, "user" | "assistant") {
            self.blocks = std::mem::take(&mut self.content);
        }
        if !matches!(&*kind_name, "user" | "assistant") {
            // 2.1.325 repeats messages inside its bookkeeping; they are not said again.
            self.message = MessageHead::default();
            self.blocks.clear();
            self.unknown_inside = UnknownNames::default();
        }
        self.message.terms.stated = self.stated;
        let inside = std::mem::take(&mut self.unknown_inside);
        self.unknown.append("", inside);
        let label = self.label(&kind_name);
        if matches!(label, Cow::Owned(_)) {
            self.unknown.add("type ", &label);
        }
        let (at, bad_time) = self.times();
        let (input, input_kinds, head) = self.reading(&kind_name, line);
        let heading = self.heading(input, head.as_deref(), line);
        let kind = self.kind(&kind_name, &label);
        let detail = self.detail(kind, &kind_name, line);
        let notices = match &detail {
            None if kind == LineKind::User
                && matches!(input, UserInput::Machine | UserInput::Meta) =>
            {
                TaskNotice::read_all(&text_of(&self.blocks, line))
            }
            Some(LineDetail::Queued { text, .. }) => TaskNotice::read_all(text),
            Some(LineDetail::Queue {
                operation: QueueOperation::Enqueue,
                text: Some(text),
            }) => TaskNotice::read_all(text),
            _ => Vec::new(),
        };
        let clues = self.clues(&label, input, &notices, line);
        let failed = kind == LineKind::ApiError || self.api_error;
        let failure = failed.then(|| Box::new(ApiFailure::read(span.of(line), head.as_deref())));
        Entry {
            span,
            kind,
            detail,
            label,
            uuid: self.uuid,
            parent: self.parent,
            logical_parent: self.logical_parent,
            session: self.session,
            at,
            bad_time,
            cwd: self.cwd,
            version: self.version,
            branch: self.branch,
            slug: self.slug,
            permission_mode: self.permission_mode,
            entrypoint: self.entrypoint,
            agent: self.agent,
            forked_from: self.forked_from,
            asked_by: self.asked_by,
            team: self.team,
            member: self.member,
            process: self.process,
            source_call: self.source_call,
            sidechain: self.sidechain,
            meta: self.meta,
            api_error: self.api_error,
            trouble: self.trouble || self.nested.trouble,
            untyped,
            content_on_top,
            origin: self.origin.map(String::into_boxed_str),
            message: self.message,
            blocks: self.blocks,
            input,
            input_kinds,
            head,
            heading,
            result_agent: self.result_agent,
            result_status: self.result_status,
            result_task: self.result_task,
            result_run: self.result_run,
            clues,
            failure,
            notices,
            copy: self.nested.copy,
            unknown: self.unknown.names,
            unknown_others: self.unknown.others,
        }
    }

    /// Which call started which sub-agent, where the structured result does not say.
    fn clues(
        &mut self,
        label: &str,
        input: UserInput,
        notices: &[TaskNotice],
        line: &[u8],
    ) -> Vec<AgentClue> {
        if !notices.is_empty() {
            return notices.iter().filter_map(TaskNotice::clue).collect();
        }
        if label == "progress/agent_progress" {
            let both = self.nested.agent.take().zip(self.source_call.clone());
            let from = ClueSource::Progress;
            let clue = both.map(|(agent, call)| AgentClue { agent, call, from });
            return clue.into_iter().collect();
        }
        if input != UserInput::Results || self.result_agent.is_some() {
            return Vec::new();
        }
        let results = self.blocks.iter();
        let results = results.filter(|block| block.kind == BlockKind::ToolResult);
        let named = results.filter_map(|block| {
            Some(AgentClue {
                agent: agent_named_in(block.body().of(line))?.into(),
                call: block.id()?.into(),
                from: ClueSource::ResultText,
            })
        });
        named.collect()
    }

    fn label(&self, kind: &str) -> Cow<'static, str> {
        let sub = match kind {
            "system" => self.subtype.as_deref(),
            "attachment" | "progress" => self.nested.kind.as_deref(),
            "queue-operation" => self.operation.as_deref(),
            _ => None,
        };
        match sub {
            None => {
                known_names::label(kind).map_or_else(|| Cow::Owned(kind.to_owned()), Cow::Borrowed)
            }
            Some(sub) => {
                let whole = format!("{kind}/{sub}");
                known_names::label(&whole).map_or(Cow::Owned(whole), Cow::Borrowed)
            }
        }
    }

    /// The time at the top of the line counts before the one inside the message.
    fn times(&self) -> (Option<Time>, Option<String>) {
        let Some(text) = self.time.as_deref() else {
            return (self.message.time, None);
        };
        match Time::parse(text) {
            Some(time) => (Some(time), None),
            None => (None, Some(text.chars().take(60).collect())),
        }
    }

    fn reading(&self, kind: &str, line: &[u8]) -> (UserInput, InputKinds, Option<String>) {
        match kind {
            "user" => {
                let facts = self.facts();
                if facts.results {
                    return (UserInput::Results, InputKinds::TOOL_RESULT, None);
                }
                let text = text_of(&self.blocks, line);
                let input = user_input::classify(&text, facts);
                let head = input.opens_turn().then(|| self.prompt_head(&text));
                (input, user_input::kinds(&text, facts), head)
            }
            "assistant" => {
                let last = self
                    .blocks
                    .iter()
                    .rev()
                    .find(|block| block.kind == BlockKind::Text && !block.blank);
                let head = last
                    .map(|block| clip(&json::string_head(block.body().of(line), HEAD * 4), HEAD));
                (UserInput::Machine, InputKinds::default(), head)
            }
            _ => (UserInput::Machine, InputKinds::default(), None),
        }
    }

    /// The heading of a plan that was handed over, where it stands behind the first characters
    /// of the prompt.
    fn heading(&self, input: UserInput, head: Option<&str>, line: &[u8]) -> Option<Box<str>> {
        let head = head.filter(|head| input == UserInput::Plan && !title::has_heading(head))?;
        let text = text_of(&self.blocks, line);
        let heading = title::of_prompt(user_input::stripped(&text));
        let is_other = heading != title::of_prompt(head);
        is_other.then(|| clip(heading, HEAD).into_boxed_str())
    }

    fn prompt_head(&self, text: &str) -> String {
        let text = user_input::readable(text);
        if text.is_empty() {
            media_note(&self.blocks)
        } else {
            clip(&text, HEAD)
        }
    }

    fn facts(&self) -> UserLineFacts<'_> {
        let has = |kinds: &[BlockKind]| self.blocks.iter().any(|block| kinds.contains(&block.kind));
        UserLineFacts {
            results: has(&[BlockKind::ToolResult]),
            media: has(&[BlockKind::Image, BlockKind::Document]),
            meta: self.meta,
            summary: self.summary,
            transcript_only: self.transcript_only,
            plan: self.plan,
            origin: self.origin.as_deref(),
            teammate: self.team.is_some() && self.member.is_some(),
        }
    }

    fn kind(&self, kind: &str, label: &str) -> LineKind {
        match kind {
            "user" => LineKind::User,
            "assistant" => LineKind::Assistant,
            "system" => match self.subtype.as_deref() {
                Some("compact_boundary") => LineKind::CompactBoundary,
                Some("microcompact_boundary") => LineKind::MicroBoundary,
                Some("turn_duration") => LineKind::TurnDuration,
                Some("stop_hook_summary") => LineKind::StopHookSummary,
                Some("local_command") => LineKind::LocalCommand,
                Some("api_error") => LineKind::ApiError,
                _ => LineKind::System,
            },
            "progress" => LineKind::Progress,
            "attachment" if label == "attachment/queued_command" => LineKind::QueuedCommand,
            "attachment" => LineKind::Attachment,
            "queue-operation" => LineKind::Queue,
            "summary" => LineKind::Summary,
            "custom-title" | "ai-title" | "agent-name" => LineKind::Title,
            "last-prompt" => LineKind::LastPrompt,
            "permission-mode" => LineKind::PermissionMode,
            "pr-link" => LineKind::PrLink,
            "file-history-snapshot" | "file-history-delta" => LineKind::FileHistory,
            _ if known_names::label(kind).is_some() => LineKind::Bookkeeping,
            _ => LineKind::Unknown,
        }
    }

    fn detail(&mut self, kind: LineKind, name: &str, line: &[u8]) -> Option<LineDetail> {
        let text = |text: &mut Option<String>| text.take().unwrap_or_default();
        Some(match kind {
            LineKind::CompactBoundary | LineKind::MicroBoundary => {
                LineDetail::Boundary(Box::new(std::mem::take(&mut self.boundary)))
            }
            LineKind::TurnDuration => {
                LineDetail::Duration(u32::try_from(self.duration?).unwrap_or(u32::MAX))
            }
            LineKind::Bookkeeping if name == "tag" => LineDetail::Tag(self.tag.take()?.into()),
            LineKind::QueuedCommand => LineDetail::Queued {
                human: self.nested.human,
                text: text(&mut self.nested.text).into(),
            },
            LineKind::Queue => LineDetail::Queue {
                operation: QueueOperation::of(self.operation.as_deref().unwrap_or_default()),
                text: (!self.content.is_empty()).then(|| text_of(&self.content, line).into()),
            },
            LineKind::Summary => LineDetail::Summary(Box::new(SummaryTitle {
                text: text(&mut self.title),
                leaf: self.leaf.take(),
            })),
            LineKind::Title => LineDetail::Title {
                source: match name {
                    "custom-title" => TitleSource::Custom,
                    "ai-title" => TitleSource::Ai,
                    _ => TitleSource::AgentName,
                },
                text: text(&mut self.title).into(),
            },
            LineKind::LastPrompt => LineDetail::LastPrompt {
                leaf: self.leaf.take(),
                explicit: self.explicit,
            },
            LineKind::PrLink => LineDetail::PrLink(text(&mut self.url).into()),
            _ => return None,
        })
    }
}

fn parent(c: &mut JsonCursor<'_>) -> FieldResult<ParentId> {
    // An empty text names nothing.
    Ok(match c.text()?.filter(|text| !text.is_empty()) {
        Some(text) => ParentId::Is(Id::new(&text)),
        None => ParentId::Null,
    })
}

/// Passes over the object at this place of a line, or a list of them, and notes names within that
/// were never seen.
fn fields(c: &mut JsonCursor<'_>, path: &str, unknown: &mut UnknownNames) -> FieldResult<()> {
    match known_names::shape(path) {
        Some(shape) => shaped(c, shape, unknown),
        None => c.skip().map(drop),
    }
}

/// The fields of a map are names that somebody gave; more of its values tell nothing new.
const VALUES: usize = 8;

fn shaped(
    c: &mut JsonCursor<'_>,
    shape: &NestedFieldNames,
    unknown: &mut UnknownNames,
) -> FieldResult<()> {
    if c.peek() == Some(b'[') {
        // A list within the list is passed over, so that nothing nests without end.
        return c.array(|c| shaped_object(c, shape, unknown)).map(drop);
    }
    shaped_object(c, shape, unknown)
}

fn shaped_object(
    c: &mut JsonCursor<'_>,
    shape: &NestedFieldNames,
    unknown: &mut UnknownNames,
) -> FieldResult<()> {
    if let Some(each) = shape.each() {
        first_values(c.ahead(), each, unknown);
        return c.skip().map(drop);
    }
    c.object(|c, key| {
        note_in(shape, key, unknown);
        match shape.inner(key) {
            Some(inner) => shaped(c, inner, unknown),
            None => c.skip().map(drop),
        }
    })
    .map(drop)
}

/// Notes what is new in the first values of a map; there may be hundreds on each line.
fn first_values(mut c: JsonCursor<'_>, each: &NestedFieldNames, unknown: &mut UnknownNames) {
    let mut values = 0;
    // What is wrong with the line is told by whoever passes over all of it.
    let _ = c.object(|c, _| {
        values += 1;
        match values <= VALUES {
            true => shaped_object(c, each, unknown),
            false => Err(JsonError {
                at: 0,
                why: "enough was seen",
            }),
        }
    });
}

/// Passes over a field of the object at this place of a line.
fn other(
    c: &mut JsonCursor<'_>,
    path: &str,
    key: &str,
    unknown: &mut UnknownNames,
) -> FieldResult<()> {
    let Some(shape) = known_names::shape(path) else {
        return c.skip().map(drop);
    };
    note_in(shape, key, unknown);
    match shape.inner(key) {
        Some(inner) => shaped(c, inner, unknown),
        None => c.skip().map(drop),
    }
}

/// Notes a name within an object of a line if it was never seen there.
fn note_in(shape: &NestedFieldNames, key: &str, unknown: &mut UnknownNames) {
    if !shape.has(key) {
        unknown.add(&format!("field {}.", shape.path()), key);
    }
}

fn nested_text(
    c: &mut JsonCursor<'_>,
    parent: &str,
    wanted: &str,
    unknown: &mut UnknownNames,
) -> FieldResult<Option<String>> {
    let mut found = None;
    c.object(|c, key| {
        if key == wanted {
            found = owned(c)?;
        } else {
            other(c, parent, key, unknown)?;
        }
        Ok(())
    })?;
    Ok(found)
}

/// A [`MessageHead`] where it stands in the line.
#[derive(Clone, Debug, Default)]
pub struct MessageHeadRef<'a> {
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) model: Option<Cow<'a, str>>,
    pub(super) usage: Option<Usage>,
    pub(super) terms: PricingTerms,
    pub(super) stop: Option<Cow<'a, str>>,
    pub(super) time: Option<Time>,
}

impl MessageHeadRef<'_> {
    fn keep(self) -> MessageHead {
        MessageHead {
            id: self.id.map(Box::from),
            model: self.model.map(Box::from),
            usage: self.usage,
            terms: self.terms,
            stop: self.stop.map(CompactString::from),
            time: self.time,
        }
    }
}

/// The message head, and the role it names.
pub(super) fn message<'a>(
    c: &mut JsonCursor<'a>,
    line: &[u8],
    blocks: Option<&mut Vec<Block>>,
    unknown: &mut UnknownNames,
) -> FieldResult<(MessageHeadRef<'a>, Option<Cow<'a, str>>)> {
    let mut head = MessageHeadRef::default();
    let mut role = None;
    let mut content = Vec::new();
    let wants_content = blocks.is_some();
    c.object(|c, key| {
        match key {
            // An empty one names nothing.
            "id" => head.id = name(c)?.filter(|id| !id.is_empty()),
            "model" => head.model = name(c)?,
            "role" => role = name(c)?,
            "stop_reason" => head.stop = name(c)?,
            "usage" => {
                let noted = wants_content.then_some(&mut *unknown);
                (head.usage, head.terms) = usage(c, noted)?;
            }
            "timestamp" => head.time = c.text()?.and_then(|text| Time::parse(&text)),
            "content" if wants_content => content = block::read(c, line, unknown)?,
            "container" if wants_content => fields(c, "message.container", unknown)?,
            "context_management" if wants_content => {
                fields(c, "message.context_management", unknown)?;
            }
            "stop_details" if wants_content => fields(c, "message.stop_details", unknown)?,
            _ => {
                c.skip()?;
                if wants_content && !known_names::is_message_field(key) {
                    unknown.add("field message.", key);
                }
            }
        }
        Ok(())
    })?;
    if let Some(blocks) = blocks {
        *blocks = content;
    }
    Ok((head, role))
}

/// What a line of an old client says its message cost, in picodollars. Nothing is what it says
/// where it did not know.
pub(super) fn stated(c: &mut JsonCursor<'_>, line: &[u8]) -> FieldResult<Option<NonZeroU64>> {
    let span = c.skip()?;
    let text = std::str::from_utf8(span.of(line)).unwrap_or_default();
    let dollars = text.parse().unwrap_or(0.0_f64);
    // More than a thousand dollars for one message is a mistake.
    let likely = (0.0..1e3).contains(&dollars);
    Ok(NonZeroU64::new(if likely {
        (dollars * 1e12).round() as u64
    } else {
        0
    }))
}

/// The `usage` of a message: tokens, and what else decides the price.
/// Names in it that were never seen are noted if somebody wants them.
fn usage(
    c: &mut JsonCursor<'_>,
    mut unknown: Option<&mut UnknownNames>,
) -> FieldResult<(Option<Usage>, PricingTerms)> {
    let mut other = |c: &mut JsonCursor<'_>, path: &str, key: &str| match &mut unknown {
        Some(unknown) => other(c, path, key, unknown),
        None => c.skip().map(drop),
    };
    let mut usage = Usage::default();
    let mut terms = PricingTerms::default();
    let mut writes = 0;
    let is_object = c.object(|c, key| {
        match key {
            "input_tokens" => usage.input = c.count()?.unwrap_or(0),
            "output_tokens" => usage.output = c.count()?.unwrap_or(0),
            "cache_read_input_tokens" => usage.cache_read = c.count()?.unwrap_or(0),
            "cache_creation_input_tokens" => writes = c.count()?.unwrap_or(0),
            "cache_creation" => {
                c.object(|c, key| {
                    match key {
                        "ephemeral_5m_input_tokens" => {
                            usage.cache_write_5m = c.count()?.unwrap_or(0)
                        }
                        "ephemeral_1h_input_tokens" => {
                            usage.cache_write_1h = c.count()?.unwrap_or(0)
                        }
                        _ => other(c, "message.usage.cache_creation", key)?,
                    }
                    Ok(())
                })?;
            }
            "service_tier" => terms.batch = c.text()?.as_deref() == Some("batch"),
            "speed" => terms.fast = c.text()?.as_deref() == Some("fast"),
            "inference_geo" => terms.us = c.text()?.as_deref() == Some("us"),
            "server_tool_use" => {
                c.object(|c, key| {
                    if key == "web_search_requests" {
                        let count = c.count()?.unwrap_or(0);
                        terms.web_searches = u32::try_from(count).unwrap_or(u32::MAX);
                    } else {
                        other(c, "message.usage.server_tool_use", key)?;
                    }
                    Ok(())
                })?;
            }
            _ => other(c, "message.usage", key)?,
        }
        Ok(())
    })?;
    // Writes that the split does not explain went to the five-minute cache.
    let split = usage.cache_write_5m.saturating_add(usage.cache_write_1h);
    usage.cache_write_5m = usage
        .cache_write_5m
        .saturating_add(writes.saturating_sub(split));
    Ok((is_object.then_some(usage), terms))
}

/// How many lines a compaction may name that are still sent. It sends a few, so that little is
/// left to send.
const MOST_PRESERVED: usize = 100_000;

fn boundary(
    c: &mut JsonCursor<'_>,
    parent: &str,
    boundary: &mut CompactBoundary,
    unknown: &mut UnknownNames,
) -> FieldResult<()> {
    c.object(|c, key| {
        match key {
            "trigger" => boundary.trigger = boxed(c)?,
            "preTokens" => boundary.before = c.count()?,
            "postTokens" => boundary.after = c.count()?,
            "preservedSegment" => {
                let (mut head, mut tail) = (None, None);
                c.object(|c, key| {
                    match key {
                        "headUuid" => head = id(c)?,
                        "tailUuid" => tail = id(c)?,
                        "anchorUuid" => boundary.anchor = id(c)?,
                        _ => other(c, "compactMetadata.preservedSegment", key, unknown)?,
                    }
                    Ok(())
                })?;
                boundary.segment = head.zip(tail);
            }
            "preservedMessages" => {
                c.object(|c, key| {
                    match key {
                        "anchorUuid" => boundary.anchor = id(c)?,
                        "uuids" => drop(c.array(|c| {
                            let line = id(c)?;
                            if boundary.preserved.len() < MOST_PRESERVED {
                                boundary.preserved.extend(line);
                            }
                            Ok(())
                        })?),
                        _ => other(c, "compactMetadata.preservedMessages", key, unknown)?,
                    }
                    Ok(())
                })?;
            }
            _ => other(c, parent, key, unknown)?,
        }
        Ok(())
    })
    .map(drop)
}

fn nested<'a>(
    c: &mut JsonCursor<'a>,
    parent: &str,
    line: &[u8],
    unknown: &mut UnknownNames,
) -> FieldResult<NestedFields<'a>> {
    let mut nested = NestedFields {
        human: true,
        ..NestedFields::default()
    };
    c.object(|c, key| {
        match key {
            "type" => nested.kind = name(c)?,
            "humanTurn" => nested.human &= c.truth()?,
            "origin" => {
                let kind = nested_text(c, key, "kind", unknown)?;
                nested.human &= kind.is_none_or(|kind| kind == "human");
            }
            "commandMode" => nested.human &= c.text()?.is_none_or(|mode| mode == "prompt"),
            "prompt" => {
                let blocks = block::read(c, line, &mut UnknownNames::default())?;
                nested.text = Some(text_of(&blocks, line).into_owned());
            }
            "message" => nested.copy = copied(c, line)?.map(MessageHeadRef::keep),
            "agentId" => nested.agent = boxed(c)?,
            "blockingError" => {
                nested.trouble = true;
                other(c, parent, key, unknown)?;
            }
            "hookEvent" => {
                if let Some(event) = name(c)?.filter(|event| !hook_events::is_event(event)) {
                    unknown.add("hook event ", &event);
                }
            }
            _ => other(c, parent, key, unknown)?,
        }
        Ok(())
    })?;
    nested.trouble |= matches!(
        nested.kind.as_deref(),
        Some("hook_blocking_error" | "hook_non_blocking_error" | "hook_stopped_continuation")
    );
    Ok(nested)
}

/// `data.message` of an `agent_progress` line is a whole line of the sub-agent.
pub(super) fn copied<'a>(
    c: &mut JsonCursor<'a>,
    line: &[u8],
) -> FieldResult<Option<MessageHeadRef<'a>>> {
    let mut copy = None;
    c.object(|c, key| {
        match key {
            "message" => copy = Some(message(c, line, None, &mut UnknownNames::default())?),
            _ => drop(c.skip()?),
        }
        Ok(())
    })?;
    let by_model = |(head, role): (MessageHeadRef<'a>, Option<Cow<'_, str>>)| {
        (role.as_deref() == Some("assistant")).then_some(head)
    };
    Ok(copy.and_then(by_model))
}
