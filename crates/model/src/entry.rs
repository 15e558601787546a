//! A decoded line: the few things the fold needs, read in one pass over the bytes.
//!
//! This file and its neighbours `block`, `input` and `known` are the only ones that know the
//! names in the format. Unknown is normal: a type or field nobody has described is kept,
//! counted and shown; teaching the program a new kind is one variant and one arm here.
//! Payloads stay in the file; an entry says where.

use std::borrow::Cow;

use crate::block::{self, Block, BlockKind};
use crate::fault::{FaultKind, NULL_LINE};
use crate::id::Id;
use crate::input::{self, Facts, Input, InputKinds};
use crate::json::{self, Bad, Cursor, Span};
use crate::known;
use crate::time::Time;
use crate::usage::Usage;

/// What a line is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A prompt, a tool result, or something written for the model.
    User,
    /// A piece of a reply.
    Assistant,
    /// A compaction: what went before is no longer sent.
    CompactBoundary(Box<Boundary>),
    /// The turn before it is over, and took so long, if the line says.
    TurnDuration(Option<u64>),
    /// The turn before it is over; hooks ran.
    StopHookSummary,
    /// A slash command that ran in the client.
    LocalCommand,
    /// The API failed; the client may try again.
    ApiError,
    /// Any other system line.
    System,
    /// Something going on, such as the output of a running command. A link of the chain.
    Progress,
    /// Something given to the model beside the prompt. A link of the chain.
    Attachment,
    /// A prompt that was typed while the model worked (2.1.105 and later).
    QueuedCommand {
        /// Whether a person typed it.
        human: bool,
        /// What was typed.
        text: String,
    },
    /// The queue of prompts changed.
    Queue {
        /// `enqueue`, `dequeue`, `remove` or `popAll`.
        operation: Box<str>,
        /// What was typed, if the line says.
        text: Option<String>,
    },
    /// A title for the session whose leaf it names, usually another one.
    Summary {
        /// The title.
        text: String,
        /// A line of the session it titles.
        leaf: Option<Id>,
    },
    /// A title for this session.
    Title {
        /// Who gave it.
        source: TitleSource,
        /// The title.
        text: String,
    },
    /// Which line the conversation goes on from (2.1.200 and later).
    LastPrompt {
        /// That line.
        leaf: Option<Id>,
        /// Whether it counts even if the last line descends from it: a rewind.
        explicit: bool,
    },
    /// The permission mode from here on.
    PermissionMode(String),
    /// A pull request made in this session.
    PrLink {
        /// Its address.
        url: String,
    },
    /// Backups of files, for rewinding.
    FileHistory,
    /// Known bookkeeping that needs no more than counting.
    Bookkeeping,
    /// Never seen before.
    Unknown,
}

/// Who gave a title.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TitleSource {
    /// The name of the agent.
    AgentName,
    /// The model.
    Ai,
    /// The person.
    Custom,
}

/// What a compaction line says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Boundary {
    /// Only old tool results were cleared.
    pub micro: bool,
    /// `manual` or `auto`.
    pub trigger: Option<Box<str>>,
    /// Tokens before.
    pub before: Option<u64>,
    /// Tokens after.
    pub after: Option<u64>,
    /// Lines before the boundary that are still sent, in order.
    pub preserved: Vec<Id>,
    /// The first and last of those lines, where only these are named.
    pub segment: Option<(Id, Id)>,
    /// The line they follow.
    pub anchor: Option<Id>,
}

/// The parent a line names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Parent {
    /// The line has no such field.
    #[default]
    Absent,
    /// `null`: the line is a root.
    Null,
    /// The line with this id.
    Is(Id),
}

impl Parent {
    /// The id, if one is named.
    pub fn id(&self) -> Option<&Id> {
        match self {
            Parent::Is(id) => Some(id),
            Parent::Absent | Parent::Null => None,
        }
    }
}

/// The `message` of a line, without its content.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessageHead {
    /// The id that the lines of one message share.
    pub id: Option<Box<str>>,
    /// The model, `<synthetic>` when the client wrote it.
    pub model: Option<Box<str>>,
    /// Tokens, if the line says.
    pub usage: Option<Usage>,
    /// Why the model stopped; a hint at most.
    pub stop: Option<Box<str>>,
    time: Option<Time>,
}

/// A decoded line, or one of several objects on a line.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The object in its line.
    pub span: Span,
    /// What it is.
    pub kind: Kind,
    /// `type`, with its subtype behind a slash.
    pub label: Cow<'static, str>,
    /// The id of the line.
    pub uuid: Option<Id>,
    /// The line it follows.
    pub parent: Parent,
    /// The line a compaction follows.
    pub logical_parent: Option<Id>,
    /// The session the line says it belongs to; the file knows better.
    pub session: Option<Id>,
    /// When it was written.
    pub at: Option<Time>,
    /// A time that could not be read.
    pub bad_time: Option<String>,
    /// Working directory.
    pub cwd: Option<Box<str>>,
    /// Version of the client.
    pub version: Option<Box<str>>,
    /// Branch of git.
    pub branch: Option<Box<str>>,
    /// Three words that name the session.
    pub slug: Option<Box<str>>,
    /// Permission mode of a prompt.
    pub permission_mode: Option<Box<str>>,
    /// How the client was started.
    pub entrypoint: Option<Box<str>>,
    /// The sub-agent the line belongs to.
    pub agent: Option<Box<str>>,
    /// The session this one was forked from.
    pub forked_from: Option<Id>,
    /// The call that an inserted line belongs to.
    pub source_call: Option<Box<str>>,
    /// Belongs to a sub-agent.
    pub sidechain: bool,
    /// Written by the program for the model.
    pub meta: bool,
    /// Reports an API error in the form of a reply.
    pub api_error: bool,
    /// Hooks failed or blocked on this line.
    pub trouble: bool,
    /// The line has no `type`; it goes by the role of its message.
    pub untyped: bool,
    /// Where the line comes from, if it says: `human`, `task-notification`, `peer` …
    pub origin: Option<Box<str>>,
    /// The message head.
    pub message: MessageHead,
    /// Pieces of content.
    pub blocks: Vec<Block>,
    /// What a user line is.
    pub input: Input,
    /// Kinds of input on a user line.
    pub input_kinds: InputKinds,
    /// The first 500 characters of visible text of a reply or prompt.
    pub head: Option<String>,
    /// The sub-agent that a tool result names.
    pub result_agent: Option<Box<str>>,
    /// The status that a tool result names.
    pub result_status: Option<Box<str>>,
    /// A copy of a sub-agent's message inside a progress line.
    pub copy: Option<MessageHead>,
    /// Types and fields never seen before.
    pub unknown: Vec<String>,
}

/// What a line holds: usually one entry and no fault.
#[derive(Clone, Debug, Default)]
pub struct Decoded {
    /// The objects on the line.
    pub entries: Vec<Entry>,
    /// What was wrong with it.
    pub faults: Vec<(FaultKind, String)>,
}

/// How much visible text of a reply or prompt is kept.
pub const HEAD: usize = 500;

/// Reads a line. Never fails: what cannot be read becomes a fault.
pub fn decode(line: &[u8]) -> Decoded {
    let mut decoded = Decoded::default();
    let mut at = 0;
    if line.starts_with(b"\xef\xbb\xbf") {
        at = 3;
        decoded.faults.push((
            FaultKind::ByteOrderMark,
            "the file begins with a byte order mark".into(),
        ));
    }
    let text = simdutf8::basic::from_utf8(line).ok();
    let blank = |rest: &[u8]| rest.iter().all(|byte| byte.is_ascii_whitespace());
    if !blank(&line[at..])
        && line[at..]
            .iter()
            .all(|&byte| byte == 0 || byte.is_ascii_whitespace())
    {
        decoded
            .faults
            .push((FaultKind::Unreadable, "nothing but NUL bytes".into()));
        return decoded;
    }
    while !blank(&line[at..]) {
        match object(line, text, at) {
            Ok((entry, end, control)) => {
                // Room for one: growing by itself, a list begins with room for four.
                decoded.entries.reserve_exact(1);
                decoded.entries.extend(entry);
                at = end;
                if control {
                    let why = "a raw control character inside a string; clients refuse this line";
                    decoded
                        .faults
                        .push((FaultKind::ControlCharacter, why.into()));
                }
            }
            Err(bad) => {
                decoded.faults.push((
                    FaultKind::Unreadable,
                    format!("{} (byte {})", bad.why, bad.at + 1),
                ));
                break;
            }
        }
    }
    judge(line, text.is_some(), &mut decoded);
    decoded
}

fn judge(line: &[u8], is_utf8: bool, decoded: &mut Decoded) {
    if decoded.entries.len() > 1 {
        let why = format!("{} objects on one line", decoded.entries.len());
        decoded.faults.push((FaultKind::Glued, why));
    }
    if !is_utf8 && !decoded.entries.is_empty() {
        decoded
            .faults
            .push((FaultKind::NotUtf8, "bytes that are not UTF-8".into()));
    }
    let nothing_read = decoded.entries.is_empty()
        && decoded
            .faults
            .iter()
            .all(|(kind, _)| *kind == FaultKind::ByteOrderMark);
    if nothing_read && !line.iter().all(u8::is_ascii_whitespace) {
        let why = match line.trim_ascii() {
            b"null" => NULL_LINE,
            _ => "JSON, but not an object",
        };
        decoded.faults.push((FaultKind::NotAnObject, why.into()));
    }
    for entry in &mut decoded.entries {
        if let Some(text) = entry.bad_time.take() {
            decoded
                .faults
                .push((FaultKind::BadTime, format!("`{text}` is no time")));
        }
    }
}

/// Everything read from the top of a line before its kind is known.
#[derive(Default)]
struct Parts<'a> {
    kind: Option<Cow<'a, str>>,
    subtype: Option<Cow<'a, str>>,
    uuid: Option<Id>,
    parent: Parent,
    logical_parent: Option<Id>,
    session: Option<Id>,
    time: Option<Cow<'a, str>>,
    role: Option<Cow<'a, str>>,
    cwd: Option<Box<str>>,
    version: Option<Box<str>>,
    branch: Option<Box<str>>,
    slug: Option<Box<str>>,
    permission_mode: Option<Box<str>>,
    entrypoint: Option<Box<str>>,
    agent: Option<Box<str>>,
    forked_from: Option<Id>,
    source_call: Option<Box<str>>,
    origin: Option<String>,
    operation: Option<Box<str>>,
    leaf: Option<Id>,
    title: Option<String>,
    url: Option<String>,
    duration: Option<u64>,
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
    boundary: Boundary,
    nested: Nested<'a>,
    result_agent: Option<Box<str>>,
    result_status: Option<Box<str>>,
    unknown: Vec<String>,
    unknown_inside: Vec<String>,
}

/// What `attachment` and `data` (of progress lines) say.
#[derive(Default)]
struct Nested<'a> {
    kind: Option<Cow<'a, str>>,
    human: bool,
    text: Option<String>,
    copy: Option<MessageHead>,
    trouble: bool,
}

type Read<T> = Result<T, Bad>;

/// Reads the object at `at`: the entry (none if it is another value), where it ended, and
/// whether it held raw control characters.
fn object(line: &[u8], text: Option<&str>, at: usize) -> Read<(Option<Entry>, usize, bool)> {
    let mut cursor = Cursor::within(line, text, at);
    cursor.peek();
    let start = cursor.position();
    let mut parts = Parts::default();
    let is_object = cursor.object(|c, key| parts.field(c, line, key))?;
    let span = Span::new(start, cursor.position());
    let entry = is_object.then(|| parts.entry(span, line));
    Ok((entry, cursor.position(), cursor.control))
}

fn boxed(cursor: &mut Cursor<'_>) -> Read<Option<Box<str>>> {
    Ok(cursor.text()?.map(Box::from))
}

fn id(cursor: &mut Cursor<'_>) -> Read<Option<Id>> {
    Ok(cursor.text()?.map(|text| Id::new(&text)))
}

fn owned(cursor: &mut Cursor<'_>) -> Read<Option<String>> {
    Ok(cursor.text()?.map(Cow::into_owned))
}

impl<'a> Parts<'a> {
    fn field(&mut self, c: &mut Cursor<'a>, line: &[u8], key: &str) -> Read<()> {
        match key {
            "type" => self.kind = c.text()?,
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
            "subtype" => self.subtype = c.text()?,
            "uuid" => self.uuid = id(c)?,
            "parentUuid" => self.parent = parent(c)?,
            "logicalParentUuid" => self.logical_parent = id(c)?,
            "sessionId" => self.session = id(c)?,
            "timestamp" => self.time = c.text()?,
            "cwd" => self.cwd = boxed(c)?,
            "version" => self.version = boxed(c)?,
            "gitBranch" => self.branch = boxed(c)?,
            "slug" => self.slug = boxed(c)?,
            "permissionMode" => self.permission_mode = boxed(c)?,
            "entrypoint" => self.entrypoint = boxed(c)?,
            "agentId" => self.agent = boxed(c)?,
            "sourceToolUseID" | "parentToolUseID" => self.source_call = boxed(c)?,
            "operation" => self.operation = boxed(c)?,
            "leafUuid" => self.leaf = id(c)?,
            "summary" | "customTitle" | "aiTitle" | "agentName" => self.title = owned(c)?,
            "prUrl" => self.url = owned(c)?,
            "durationMs" => self.duration = c.count()?,
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
                (self.message, self.role) =
                    message(c, line, Some(&mut self.blocks), &mut self.unknown_inside)?;
            }
            "content" => self.content = block::read(c, line, &mut self.unknown_inside)?,
            "origin" => self.origin = nested_text(c, "kind")?,
            "forkedFrom" => {
                self.forked_from = nested_text(c, "sessionId")?.map(|text| Id::new(&text))
            }
            "compactMetadata" | "microcompactMetadata" => boundary(c, &mut self.boundary)?,
            "attachment" | "data" | "progressData" => self.nested = nested(c, line)?,
            "toolUseResult" => self.tool_result(c)?,
            _ => {
                c.skip()?;
                if !known::is_field(key) {
                    self.unknown.push(format!("field {key}"));
                }
            }
        }
        Ok(())
    }

    fn tool_result(&mut self, c: &mut Cursor<'_>) -> Read<()> {
        c.object(|c, key| {
            match key {
                "agentId" => self.result_agent = boxed(c)?,
                "status" => self.result_status = boxed(c)?,
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
        if !self.has_message && matches!(&*kind_name, "user" | "assistant") {
            self.blocks = std::mem::take(&mut self.content);
        }
        if !matches!(&*kind_name, "user" | "assistant") {
            // 2.1.325 repeats messages inside its bookkeeping; they are not said again.
            self.message = MessageHead::default();
            self.blocks.clear();
            self.unknown_inside.clear();
        }
        self.unknown.append(&mut self.unknown_inside);
        let label = self.label(&kind_name);
        if matches!(label, Cow::Owned(_)) {
            self.unknown.push(format!("type {label}"));
        }
        let (at, bad_time) = self.times();
        let (input, input_kinds, head) = self.reading(&kind_name, line);
        let kind = self.kind(&kind_name, &label, line);
        Entry {
            span,
            kind,
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
            source_call: self.source_call,
            sidechain: self.sidechain,
            meta: self.meta,
            api_error: self.api_error,
            trouble: self.trouble || self.nested.trouble,
            untyped,
            origin: self.origin.map(String::into_boxed_str),
            message: self.message,
            blocks: self.blocks,
            input,
            input_kinds,
            head,
            result_agent: self.result_agent,
            result_status: self.result_status,
            copy: self.nested.copy,
            unknown: self.unknown,
        }
    }

    fn label(&self, kind: &str) -> Cow<'static, str> {
        let sub = match kind {
            "system" => self.subtype.as_deref(),
            "attachment" | "progress" => self.nested.kind.as_deref(),
            "queue-operation" => self.operation.as_deref(),
            _ => None,
        };
        match sub {
            None => known::label(kind).map_or_else(|| Cow::Owned(kind.to_owned()), Cow::Borrowed),
            Some(sub) => {
                let whole = format!("{kind}/{sub}");
                known::label(&whole).map_or(Cow::Owned(whole), Cow::Borrowed)
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

    fn reading(&self, kind: &str, line: &[u8]) -> (Input, InputKinds, Option<String>) {
        match kind {
            "user" => {
                let facts = self.facts();
                if facts.results {
                    return (Input::Results, InputKinds::TOOL_RESULT, None);
                }
                let text = text_of(&self.blocks, line);
                let input = input::classify(&text, facts);
                let head = input.opens_turn().then(|| self.prompt_head(&text));
                (input, input::kinds(&text, facts), head)
            }
            "assistant" => {
                let last = self
                    .blocks
                    .iter()
                    .rev()
                    .find(|block| block.kind == BlockKind::Text && !block.blank);
                let head =
                    last.map(|block| clip(&json::string_head(block.body.of(line), HEAD * 4), HEAD));
                (Input::Machine, InputKinds::default(), head)
            }
            _ => (Input::Machine, InputKinds::default(), None),
        }
    }

    fn prompt_head(&self, text: &str) -> String {
        let text = input::readable(text);
        if text.is_empty() {
            media_note(&self.blocks)
        } else {
            clip(&text, HEAD)
        }
    }

    fn facts(&self) -> Facts<'_> {
        let has = |kinds: &[BlockKind]| self.blocks.iter().any(|block| kinds.contains(&block.kind));
        Facts {
            results: has(&[BlockKind::ToolResult]),
            media: has(&[BlockKind::Image, BlockKind::Document]),
            meta: self.meta,
            summary: self.summary,
            transcript_only: self.transcript_only,
            plan: self.plan,
            origin: self.origin.as_deref(),
        }
    }

    fn kind(&mut self, kind: &str, label: &str, line: &[u8]) -> Kind {
        let title = |source, text: &mut Option<String>| Kind::Title {
            source,
            text: text.take().unwrap_or_default(),
        };
        match kind {
            "user" => Kind::User,
            "assistant" => Kind::Assistant,
            "system" => self.system(),
            "progress" => Kind::Progress,
            "attachment" if label == "attachment/queued_command" => Kind::QueuedCommand {
                human: self.nested.human,
                text: self.nested.text.take().unwrap_or_default(),
            },
            "attachment" => Kind::Attachment,
            "queue-operation" => Kind::Queue {
                operation: self.operation.take().unwrap_or_default(),
                text: (!self.content.is_empty()).then(|| text_of(&self.content, line)),
            },
            "summary" => Kind::Summary {
                text: self.title.take().unwrap_or_default(),
                leaf: self.leaf.take(),
            },
            "custom-title" => title(TitleSource::Custom, &mut self.title),
            "ai-title" => title(TitleSource::Ai, &mut self.title),
            "agent-name" => title(TitleSource::AgentName, &mut self.title),
            "last-prompt" => Kind::LastPrompt {
                leaf: self.leaf.take(),
                explicit: self.explicit,
            },
            "permission-mode" => Kind::PermissionMode(
                self.permission_mode
                    .as_deref()
                    .unwrap_or_default()
                    .to_owned(),
            ),
            "pr-link" => Kind::PrLink {
                url: self.url.take().unwrap_or_default(),
            },
            "file-history-snapshot" | "file-history-delta" => Kind::FileHistory,
            _ if known::label(kind).is_some() => Kind::Bookkeeping,
            _ => Kind::Unknown,
        }
    }

    fn system(&mut self) -> Kind {
        match self.subtype.as_deref() {
            Some("compact_boundary") => {
                Kind::CompactBoundary(Box::new(std::mem::take(&mut self.boundary)))
            }
            Some("microcompact_boundary") => Kind::CompactBoundary(Box::new(Boundary {
                micro: true,
                ..std::mem::take(&mut self.boundary)
            })),
            Some("turn_duration") => Kind::TurnDuration(self.duration),
            Some("stop_hook_summary") => Kind::StopHookSummary,
            Some("local_command") => Kind::LocalCommand,
            Some("api_error") => Kind::ApiError,
            _ => Kind::System,
        }
    }
}

fn parent(c: &mut Cursor<'_>) -> Read<Parent> {
    // An empty text names nothing.
    Ok(match c.text()?.filter(|text| !text.is_empty()) {
        Some(text) => Parent::Is(Id::new(&text)),
        None => Parent::Null,
    })
}

/// The text blocks, one below the other.
pub(crate) fn text_of(blocks: &[Block], line: &[u8]) -> String {
    let mut out = String::new();
    for block in blocks.iter().filter(|block| block.kind == BlockKind::Text) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&json::string(block.body.of(line)));
    }
    out
}

/// What stands for a prompt without words.
pub(crate) fn media_note(blocks: &[Block]) -> String {
    let count = |kind| blocks.iter().filter(|block| block.kind == kind).count();
    match (count(BlockKind::Image), count(BlockKind::Document)) {
        (0, 0) => String::new(),
        (1, 0) => "[image]".to_owned(),
        (0, 1) => "[document]".to_owned(),
        (images, 0) => format!("[{images} images]"),
        (0, documents) => format!("[{documents} documents]"),
        (images, documents) => format!("[{} attachments]", images + documents),
    }
}

/// At most `limit` characters.
pub fn clip(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    match text.char_indices().nth(limit) {
        Some((end, _)) => text[..end].to_owned(),
        None => text.to_owned(),
    }
}

fn nested_text(c: &mut Cursor<'_>, wanted: &str) -> Read<Option<String>> {
    let mut found = None;
    c.object(|c, key| {
        if key == wanted {
            found = owned(c)?;
        } else {
            c.skip()?;
        }
        Ok(())
    })?;
    Ok(found)
}

/// The message head, and the role it names.
fn message<'a>(
    c: &mut Cursor<'a>,
    line: &[u8],
    blocks: Option<&mut Vec<Block>>,
    unknown: &mut Vec<String>,
) -> Read<(MessageHead, Option<Cow<'a, str>>)> {
    let mut head = MessageHead::default();
    let mut role = None;
    let mut content = Vec::new();
    let wants_content = blocks.is_some();
    c.object(|c, key| {
        match key {
            "id" => head.id = boxed(c)?,
            "model" => head.model = boxed(c)?,
            "role" => role = c.text()?,
            "stop_reason" => head.stop = boxed(c)?,
            "usage" => head.usage = usage(c)?,
            "timestamp" => head.time = c.text()?.and_then(|text| Time::parse(&text)),
            "content" if wants_content => content = block::read(c, line, unknown)?,
            _ => {
                c.skip()?;
                if !known::is_message_field(key) {
                    unknown.push(format!("field message.{key}"));
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

fn usage(c: &mut Cursor<'_>) -> Read<Option<Usage>> {
    let mut usage = Usage::default();
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
                        _ => drop(c.skip()?),
                    }
                    Ok(())
                })?;
            }
            _ => drop(c.skip()?),
        }
        Ok(())
    })?;
    // Writes that the split does not explain went to the five-minute cache.
    let split = usage.cache_write_5m.saturating_add(usage.cache_write_1h);
    usage.cache_write_5m = usage
        .cache_write_5m
        .saturating_add(writes.saturating_sub(split));
    Ok(is_object.then_some(usage))
}

fn boundary(c: &mut Cursor<'_>, boundary: &mut Boundary) -> Read<()> {
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
                        _ => drop(c.skip()?),
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
                            boundary.preserved.extend(id(c)?);
                            Ok(())
                        })?),
                        _ => drop(c.skip()?),
                    }
                    Ok(())
                })?;
            }
            _ => drop(c.skip()?),
        }
        Ok(())
    })
    .map(drop)
}

fn nested<'a>(c: &mut Cursor<'a>, line: &[u8]) -> Read<Nested<'a>> {
    let mut nested = Nested {
        human: true,
        ..Nested::default()
    };
    c.object(|c, key| {
        match key {
            "type" => nested.kind = c.text()?,
            "humanTurn" => nested.human &= c.truth()?,
            "origin" => nested.human &= nested_text(c, "kind")?.is_none_or(|kind| kind == "human"),
            "commandMode" => nested.human &= c.text()?.is_none_or(|mode| mode == "prompt"),
            "prompt" => {
                let blocks = block::read(c, line, &mut Vec::new())?;
                nested.text = Some(text_of(&blocks, line));
            }
            "message" => nested.copy = copied(c, line)?,
            "blockingError" => {
                nested.trouble = true;
                c.skip()?;
            }
            _ => drop(c.skip()?),
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
fn copied(c: &mut Cursor<'_>, line: &[u8]) -> Read<Option<MessageHead>> {
    let mut copy = None;
    c.object(|c, key| {
        match key {
            "message" => copy = Some(message(c, line, None, &mut Vec::new())?),
            _ => drop(c.skip()?),
        }
        Ok(())
    })?;
    let by_model = |(head, role): (MessageHead, Option<Cow<'_, str>>)| {
        (role.as_deref() == Some("assistant")).then_some(head)
    };
    Ok(copy.and_then(by_model))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(line: &str) -> Entry {
        let mut decoded = decode(line.as_bytes());
        assert_eq!(decoded.entries.len(), 1, "{:?}", decoded.faults);
        decoded.entries.remove(0)
    }

    fn faults(line: &[u8]) -> Vec<&'static str> {
        decode(line)
            .faults
            .iter()
            .map(|(kind, _)| kind.name())
            .collect()
    }

    #[test]
    fn a_line_without_a_type_goes_by_the_role_of_its_message() {
        let entry = only(
            r#"{"message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"hi"}],"timestamp":"2025-01-15T10:00:05Z"}}"#,
        );
        assert_eq!(
            (entry.kind, entry.head.as_deref()),
            (Kind::Assistant, Some("hi"))
        );
        assert_eq!(entry.at, Time::parse("2025-01-15T10:00:05Z"));
    }

    #[test]
    fn content_at_the_top_of_a_line_is_read() {
        let entry = only(
            r#"{"sessionId":"abc-123","type":"user","timestamp":"2025-01-15T10:00:00Z","content":"hello"}"#,
        );
        assert_eq!(
            (entry.input, entry.head.as_deref()),
            (Input::Prompt, Some("hello"))
        );
        let result = only(
            r#"{"type":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}"#,
        );
        assert_eq!(result.input, Input::Results);
    }

    #[test]
    fn content_inside_the_message_counts_before_content_at_the_top() {
        let entry = only(
            r#"{"type":"user","content":"outer","message":{"role":"user","content":"inner"}}"#,
        );
        assert_eq!(entry.head.as_deref(), Some("inner"));
    }

    #[test]
    fn the_last_of_two_equal_keys_counts() {
        let entry = only(
            r#"{"type":"user","uuid":"a","uuid":"b","message":{"role":"user","content":"x"}}"#,
        );
        assert_eq!(entry.uuid, Some(Id::new("b")));
    }

    #[test]
    fn a_field_of_the_wrong_type_is_no_reason_to_lose_the_line() {
        let entry = only(
            r#"{"type":"assistant","uuid":5,"timestamp":1e999,"message":{"id":[],"content":{"a":1},"usage":"x"}}"#,
        );
        assert_eq!(
            (entry.uuid, entry.at, entry.message.usage),
            (None, None, None)
        );
    }

    #[test]
    fn unreadable_lines_are_faults_with_a_reason() {
        assert_eq!(faults(b"{\"a\":"), ["unreadable"]);
        assert_eq!(faults(b"// comment"), ["unreadable"]);
        assert_eq!(faults(b"\0\0\0"), ["unreadable"]);
        assert_eq!(faults(b"[1]"), ["not_an_object"]);
        assert_eq!(faults(b"  \r"), Vec::<&str>::new());
        assert_eq!(
            faults(b"{\"type\":\"user\",\"x\":\"\x01\"}"),
            ["control_character"]
        );
        assert_eq!(
            faults(b"{\"type\":\"user\",\"cwd\":\"\xff\"}"),
            ["not_utf8"]
        );
        assert_eq!(
            faults(b"{\"type\":\"mode\",\"timestamp\":\"soon\"}"),
            ["bad_time"]
        );
    }

    #[test]
    fn two_objects_on_one_line_are_both_read() {
        let decoded = decode(br#"{"type":"user","message":{"role":"user","content":"x"}}{"type":"summary","summary":"S","leafUuid":"l"}"#);
        assert_eq!(decoded.entries.len(), 2);
        assert_eq!(decoded.faults[0].0, FaultKind::Glued);
        assert!(matches!(&decoded.entries[1].kind, Kind::Summary { text, .. } if text == "S"));
    }

    #[test]
    fn a_byte_order_mark_and_a_carriage_return_do_not_hide_the_line() {
        let decoded = decode("\u{feff}{\"type\":\"mode\"}\r".as_bytes());
        assert_eq!((decoded.entries.len(), decoded.faults.len()), (1, 1));
    }

    #[test]
    fn cache_writes_without_a_split_count_as_five_minutes() {
        let usage = |json: &str| {
            only(&format!(
                r#"{{"type":"assistant","message":{{"role":"assistant","usage":{json}}}}}"#
            ))
            .message
            .usage
            .unwrap()
        };
        assert_eq!(
            usage(r#"{"cache_creation_input_tokens":7}"#).cache_write_5m,
            7
        );
        let split = usage(
            r#"{"cache_creation_input_tokens":7,"cache_creation":{"ephemeral_1h_input_tokens":5,"ephemeral_5m_input_tokens":2}}"#,
        );
        assert_eq!((split.cache_write_5m, split.cache_write_1h), (2, 5));
    }

    #[test]
    fn what_was_never_seen_is_named() {
        let entry = only(r#"{"type":"hologram","beam":1}"#);
        assert_eq!(
            (entry.kind, entry.unknown),
            (
                Kind::Unknown,
                vec!["field beam".to_owned(), "type hologram".to_owned()]
            )
        );
        let entry = only(r#"{"type":"system","subtype":"new_thing"}"#);
        assert_eq!(entry.unknown, ["type system/new_thing"]);
        let entry = only(
            r#"{"type":"assistant","message":{"content":[{"type":"song","x":1},{"type":"text","text":"a","tune":2}]}}"#,
        );
        assert_eq!(entry.unknown, ["block song", "block text.tune"]);
    }
}
