//! What single lines say: their blocks, in the words the client would send.

use crate::block::BlockKind;
use crate::entry::{LineDetail, LineKind};
use crate::json;
use crate::log::TranscriptSource;
use crate::session::{BlockRecord, EntryRecord, Index, Session};
use crate::view::client_profile::{ClientRules, QueuedPromptRule, ToolReferencesRule};
use crate::view::messages::{ApiBlock, ApiBlockKind, MessageRole};

pub(super) const NO_CONTENT: &str = "(no content)";
const REMINDER: (&str, &str) = ("<system-reminder>", "</system-reminder>");

/// What a speech comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentOrigin {
    /// A prompt, results or a reply.
    Line,
    /// A system line.
    System,
    /// An attachment: it rises to the last reply or result before it.
    Attachment,
}

/// What one line says.
pub(super) struct LineContent {
    pub(super) role: MessageRole,
    pub(super) origin: ContentOrigin,
    /// The message id of a reply; lines without one share the empty id.
    pub(super) id: Option<Box<str>>,
    pub(super) model: Option<Index>,
    pub(super) pieces: Vec<ApiBlock>,
}

impl LineContent {
    pub(super) fn user(origin: ContentOrigin, pieces: Vec<ApiBlock>) -> LineContent {
        LineContent {
            role: MessageRole::User,
            origin,
            id: None,
            model: None,
            pieces,
        }
    }

    pub(super) fn has(&self, kind: ApiBlockKind) -> bool {
        self.pieces.iter().any(|piece| piece.kind == kind)
    }
}

pub(super) fn speeches(
    session: &Session,
    source: &dyn TranscriptSource,
    lines: &[Index],
    rules: &ClientRules,
) -> Vec<LineContent> {
    let mut rules = *rules;
    if rules.queued_by_model && !takes_system_messages(session, lines) {
        rules.queued = rules.queued.glued();
    }
    let rules = &rules;
    let spoken = lines.iter();
    let spoken = spoken.filter(|&&at| rules.sends_virtual || !is_virtual(session, source, at));
    spoken
        .filter_map(|&at| speech(session, source, at, rules))
        .collect()
}

/// Whether the model that the session goes on with takes messages of the system between others.
fn takes_system_messages(session: &Session, lines: &[Index]) -> bool {
    let models = lines.iter().rev();
    let model = models
        .filter_map(|&at| session.records[at as usize].model())
        .map(|model| session.text(model))
        .find(|model| model.starts_with("claude-"));
    let older = [
        "claude-3",
        "-4-0",
        "-4-1",
        "-4-2025",
        "-4-5",
        "-4-6",
        "opus-4-7",
        "sonnet-4-7",
    ];
    model.is_none_or(|model| !older.iter().any(|part| model.contains(part)))
}

/// Whether a line is there for the screen alone.
fn is_virtual(session: &Session, source: &dyn TranscriptSource, at: Index) -> bool {
    let record = &session.records[at as usize];
    if !record.is_conversation() {
        return false;
    }
    let bytes = session.bytes_of(source, record);
    let value = json::find(&bytes, &["isVirtual"]);
    value.is_some_and(|value| value.of(&bytes) == b"true")
}

fn speech(
    session: &Session,
    source: &dyn TranscriptSource,
    at: Index,
    rules: &ClientRules,
) -> Option<LineContent> {
    let record = &session.records[at as usize];
    match &record.kind {
        LineKind::Assistant if is_failure(session, record) => None,
        LineKind::Assistant => {
            let message = record.message().map(|at| &session.messages[at as usize]);
            let mut pieces = pieces(session, source, at);
            if pieces.is_empty() && has_no_message(session, source, record) {
                return None;
            }
            if rules.drops_fallbacks {
                pieces.retain(|piece| !is_of(piece, "fallback"));
            }
            pieces.iter_mut().for_each(|piece| recall(piece, rules));
            Some(LineContent {
                role: MessageRole::Assistant,
                origin: ContentOrigin::Line,
                id: message
                    .and_then(|message| session.message_id(message))
                    .map(Box::from)
                    .or_else(|| own_id(session, source, at, rules)),
                model: record.model(),
                pieces,
            })
        }
        LineKind::User => {
            let pieces = prompt(session, source, at, rules);
            let speaks = !pieces.is_empty() || rules.sends_empty;
            speaks.then(|| LineContent::user(ContentOrigin::Line, pieces))
        }
        LineKind::LocalCommand if rules.local_commands => Some(LineContent::user(
            ContentOrigin::System,
            local_command(session, source, record, at),
        )),
        LineKind::QueuedCommand => {
            let Some(LineDetail::Queued { human, text }) = session.detail_of(record) else {
                return None;
            };
            let piece = queued(session, source, at, (*human, text), rules)?;
            Some(LineContent::user(ContentOrigin::Attachment, vec![piece]))
        }
        LineKind::Attachment => {
            let piece = reminder(session, source, at, rules)?;
            Some(LineContent::user(ContentOrigin::Attachment, vec![piece]))
        }
        _ => None,
    }
}

fn prompt(
    session: &Session,
    source: &dyn TranscriptSource,
    at: Index,
    rules: &ClientRules,
) -> Vec<ApiBlock> {
    let mut pieces = pieces(session, source, at);
    for piece in &mut pieces {
        if rules.marks_empty && piece.blank && !piece.bare {
            *piece = text_piece(NO_CONTENT, at);
        }
        if rules.wraps_notifications && session.records[at as usize].notifies() {
            wrap(piece);
        }
        if rules.images_as_text && is_of(piece, "image") {
            *piece = text_piece("[image]", at);
        }
    }
    if rules.results_first {
        pieces.sort_by_key(|piece| piece.kind != ApiBlockKind::Result);
    }
    let mut found = false;
    for piece in &mut pieces {
        found |= refer(piece, rules);
    }
    let told = |piece: &ApiBlock| text_of(piece).as_deref() == Some(LOADED);
    if found && !pieces.iter().any(told) {
        pieces.push(text_piece(LOADED, at));
    }
    pieces
}

/// What a client adds to the results of a search for tools.
const LOADED: &str = "Tool loaded.";
/// What stands in place of a result that held nothing but tools that were found.
const UNLOADED: &str = "[Tool references removed - tool search not enabled]";

/// Takes the tools that a search has found out of its result; whether some are left to be told
/// of.
fn refer(piece: &mut ApiBlock, rules: &ClientRules) -> bool {
    let refers = |item: &serde_json::Value| {
        item.get("type")
            .is_some_and(|kind| kind == "tool_reference")
    };
    let name = |item: &serde_json::Value| Some(item.get("tool_name")?.as_str()?.to_owned());
    let goes = |item: &serde_json::Value| {
        let of_server = || name(item).is_some_and(|name| name.starts_with("mcp__"));
        refers(item) && (rules.tool_references == ToolReferencesRule::Removed || of_server())
    };
    if piece.kind != ApiBlockKind::Result
        || rules.tool_references == ToolReferencesRule::Kept
        || !piece.json.contains("tool_reference")
    {
        return false;
    }
    let mut value = json::value(piece.json.as_bytes());
    let content = value.get_mut("content");
    let Some(items) = content.and_then(|content| content.as_array_mut()) else {
        return false;
    };
    let before = items.len();
    items.retain(|item| !goes(item));
    let left = items.iter().any(refers);
    if items.len() < before {
        if items.is_empty() {
            items.push(serde_json::json!({"type": "text", "text": UNLOADED}));
        }
        piece.json = value.to_string();
    }
    left
}

/// A failed request, in the client's words; what a model said is sent, however it is marked.
fn is_failure(session: &Session, record: &EntryRecord) -> bool {
    let message = record.message().map(|at| &session.messages[at as usize]);
    record.is_api_error() && message.is_none_or(|message| message.synthetic)
}

fn has_no_message(session: &Session, source: &dyn TranscriptSource, record: &EntryRecord) -> bool {
    json::find(&session.bytes_of(source, record), &["message"]).is_none()
}

/// An id for a line that says of no message and of no request that it is part of it.
fn own_id(
    session: &Session,
    source: &dyn TranscriptSource,
    at: Index,
    rules: &ClientRules,
) -> Option<Box<str>> {
    if !rules.parts_nameless {
        return None;
    }
    let bytes = session.bytes_of(source, &session.records[at as usize]);
    let request = text_at(&bytes, &["requestId"]).filter(|id| !id.is_empty());
    request.is_none().then(|| format!("line {at}").into())
}

/// A block of a kind that the rules know only by name.
fn is_of(piece: &ApiBlock, kind: &str) -> bool {
    piece.kind == ApiBlockKind::Other
        && text_at(piece.json.as_bytes(), &["type"]).as_deref() == Some(kind)
}

/// A call as this client would make it.
fn recall(piece: &mut ApiBlock, rules: &ClientRules) {
    if piece.kind != ApiBlockKind::Call
        || (rules.renamed_tools.is_empty() && rules.hides_of_plans.is_empty())
    {
        return;
    }
    let json = piece.json.as_bytes();
    let Some(name) = json::find(json, &["name"]) else {
        return;
    };
    let tool = json::string(name.of(json)).into_owned();
    let edit = match json::find(json, &["input"]) {
        Some(input) if !rules.hides_of_plans.is_empty() && tool == "ExitPlanMode" => {
            let mut value = json::value(input.of(json));
            if let Some(fields) = value.as_object_mut() {
                for field in rules.hides_of_plans {
                    fields.shift_remove(*field);
                }
            }
            (input, value.to_string())
        }
        _ => match rules.renamed_tools.iter().find(|(old, _)| *old == tool) {
            Some((_, new)) => (name, json::quoted(new)),
            None => return,
        },
    };
    piece.json = spliced(&piece.json, edit);
}

/// The JSON text with one value replaced.
pub(super) fn spliced(json: &str, (span, new): (json::Span, String)) -> String {
    let edited = json::splice(json.as_bytes(), &[(span, new.into_bytes())]);
    String::from_utf8_lossy(&edited).into_owned()
}

fn text_at(bytes: &[u8], path: &[&str]) -> Option<String> {
    json::find(bytes, path).map(|span| json::string(span.of(bytes)).into_owned())
}

/// The text of a text piece.
pub(super) fn text_of(piece: &ApiBlock) -> Option<String> {
    text_at(piece.json.as_bytes(), &["text"])
}

fn pieces(session: &Session, source: &dyn TranscriptSource, at: Index) -> Vec<ApiBlock> {
    let record = &session.records[at as usize];
    let bytes = session.bytes_of(source, record);
    session
        .blocks_of(record)
        .iter()
        .filter_map(|block| piece(session, block, &bytes, at))
        .collect()
}

fn piece(session: &Session, block: &BlockRecord, bytes: &[u8], at: Index) -> Option<ApiBlock> {
    let raw = block.span().of(bytes);
    let bare = *raw.first()? == b'"';
    let json = if bare {
        format!("{{\"type\":\"text\",\"text\":{}}}", json::mended(raw))
    } else {
        json::mended(raw)
    };
    let kind = match block.kind {
        BlockKind::Text => ApiBlockKind::Text,
        BlockKind::Thinking | BlockKind::RedactedThinking => ApiBlockKind::Thinking,
        BlockKind::ToolUse => ApiBlockKind::Call,
        BlockKind::ToolResult => ApiBlockKind::Result,
        BlockKind::ServerToolUse | BlockKind::Image | BlockKind::Document | BlockKind::Other => {
            ApiBlockKind::Other
        }
    };
    let is_text = block.kind == BlockKind::Text;
    Some(ApiBlock {
        kind,
        call: matches!(kind, ApiBlockKind::Call | ApiBlockKind::Result)
            .then(|| session.id_of(block).map(Box::from))
            .flatten(),
        blank: is_text && block.blank,
        empty: is_text && block.body().len <= 2,
        bare,
        is_error: block.is_error,
        json,
        record: Some(at),
    })
}

/// Notifications go out as reminders.
fn wrap(piece: &mut ApiBlock) {
    if let Some(text) = text_of(piece) {
        *piece = text_piece(&as_reminder(&text), piece.record.unwrap_or_default());
    }
}

fn as_reminder(text: &str) -> String {
    format!("{}\n{text}\n{}", REMINDER.0, REMINDER.1)
}

/// The words inside a reminder.
fn unwrapped(text: &str) -> &str {
    let text = text.trim();
    let inner = text
        .strip_prefix(REMINDER.0)
        .and_then(|text| text.strip_suffix(REMINDER.1));
    inner.map_or(text, |inner| inner.trim_matches('\n'))
}

/// A text of the client's or of ours.
pub(crate) fn text_piece(text: &str, at: Index) -> ApiBlock {
    ApiBlock {
        kind: ApiBlockKind::Text,
        call: None,
        blank: text.trim().is_empty(),
        empty: text.is_empty(),
        bare: false,
        is_error: false,
        json: format!("{{\"type\":\"text\",\"text\":{}}}", json::quoted(text)),
        record: Some(at),
    }
}

/// A failed result that no tool wrote.
pub(crate) fn result_piece(call: &str, text: &str) -> ApiBlock {
    let json = format!(
        "{{\"type\":\"tool_result\",\"content\":{},\"is_error\":true,\"tool_use_id\":{}}}",
        json::quoted(text),
        json::quoted(call)
    );
    let base = text_piece(text, 0);
    ApiBlock {
        kind: ApiBlockKind::Result,
        call: Some(call.into()),
        is_error: true,
        json,
        record: None,
        ..base
    }
}

fn local_command(
    session: &Session,
    source: &dyn TranscriptSource,
    record: &EntryRecord,
    at: Index,
) -> Vec<ApiBlock> {
    let text = text_at(&session.bytes_of(source, record), &["content"]);
    let text = text
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| NO_CONTENT.to_owned());
    vec![text_piece(&text, at)]
}

/// A prompt that was typed while the model worked.
fn queued(
    session: &Session,
    source: &dyn TranscriptSource,
    at: Index,
    (human, prompt): (bool, &str),
    rules: &ClientRules,
) -> Option<ApiBlock> {
    match rules.queued {
        QueuedPromptRule::LeftOut => None,
        QueuedPromptRule::Glued(before, after) => {
            let bytes = session.bytes_of(source, &session.records[at as usize]);
            let rendered = text_at(&bytes, &["rendered", "0", "content"]);
            let words = rendered
                .filter(|_| rules.queued_as_stored)
                .map(|text| unwrapped(&text).to_owned());
            let words = words.unwrap_or_else(|| format!("{before}{prompt}{after}"));
            Some(text_piece(&as_reminder(&words), at))
        }
        QueuedPromptRule::Text(before, after) => human.then(|| {
            let bytes = session.bytes_of(source, &session.records[at as usize]);
            match text_at(&bytes, &["rendered", "0", "content"]) {
                Some(rendered) => text_piece(unwrapped(&rendered), at),
                None => text_piece(&format!("{before}{prompt}{after}"), at),
            }
        }),
    }
}

/// The place of a reminder that the client words afresh: it parts texts, and is not sent.
fn reminder(
    session: &Session,
    source: &dyn TranscriptSource,
    at: Index,
    rules: &ClientRules,
) -> Option<ApiBlock> {
    if rules.reminders.is_empty() {
        return None;
    }
    let bytes = session.bytes_of(source, &session.records[at as usize]);
    let kind = text_at(&bytes, &["attachment", "type"])?;
    rules.reminders.contains(&kind.as_str()).then(|| ApiBlock {
        json: String::new(),
        ..text_piece("", at)
    })
}

/// Whether the piece only marks the place of a reminder.
pub(super) fn is_mark(piece: &ApiBlock) -> bool {
    piece.json.is_empty()
}

/// Whether the text is a reminder, or marks the place of one.
pub(super) fn is_reminder(piece: &ApiBlock) -> bool {
    is_mark(piece) || text_of(piece).is_some_and(|text| text.starts_with(REMINDER.0))
}
