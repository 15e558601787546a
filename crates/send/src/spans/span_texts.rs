//! Texts of spans: where they are, and what they say once they are read.

use std::borrow::Cow;

use serde_json::{Value, json};
use unspool_model::entry::decode;
use unspool_model::json::quoted;
use unspool_model::session::Index;
use unspool_model::user_input;
use unspool_model::view::content_pieces::{self, ContentPiece};
use unspool_model::view::events::{self, SessionEvent};

use super::media;
use super::span_text_rules::SpanTextRules;
use super::{SessionTurnTraces, trace_files::TraceFile};

/// Where a text is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanTextLocation {
    /// There is none.
    None,
    /// A result that never came.
    Null,
    /// What a person or another agent asked, on this line of this file.
    Prompt {
        /// The file: 0 is the session, then its sub-agents.
        file: usize,
        /// The line.
        record: Index,
    },
    /// What a model said in this message.
    Reply {
        /// The file.
        file: usize,
        /// The message.
        message: Index,
    },
    /// What a tool was given.
    Input {
        /// The file.
        file: usize,
        /// The call.
        call: Index,
    },
    /// What a tool gave back.
    Result {
        /// The file.
        file: usize,
        /// The call.
        call: Index,
    },
    /// What an event tells.
    Event {
        /// The file.
        file: usize,
        /// The event.
        event: SessionEvent,
    },
}

impl SpanTextLocation {
    /// The file that it is in.
    pub(super) fn file(&self) -> Option<usize> {
        match self {
            SpanTextLocation::None | SpanTextLocation::Null => None,
            SpanTextLocation::Prompt { file, .. }
            | SpanTextLocation::Reply { file, .. }
            | SpanTextLocation::Input { file, .. }
            | SpanTextLocation::Result { file, .. }
            | SpanTextLocation::Event { file, .. } => Some(*file),
        }
    }
}

/// A text that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanText {
    /// Who says it, if it is said by somebody.
    pub role: Option<&'static str>,
    /// What it is.
    pub content: SpanTextContent,
}

/// What a text is.
#[derive(Clone, Debug, PartialEq)]
pub enum SpanTextContent {
    /// Nothing.
    None,
    /// Nothing where something should be.
    Null,
    /// A text.
    Text(String),
    /// Texts, thinking and references.
    Parts(Vec<SpanTextPart>),
    /// JSON.
    Json(String),
}

/// A piece of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum SpanTextPart {
    /// Text.
    Text(String),
    /// What the model thought.
    Thinking(String),
    /// Anything else, as JSON; images by reference.
    Json(Value),
}

impl SpanText {
    const NONE: SpanText = SpanText {
        role: None,
        content: SpanTextContent::None,
    };

    /// As Langfuse shows it: an object with role and content, a text, or JSON.
    pub fn object(&self) -> Option<Cow<'_, str>> {
        let content = match &self.content {
            SpanTextContent::None => return None,
            SpanTextContent::Null => return Some("null".into()),
            SpanTextContent::Json(json) => return Some(json.into()),
            SpanTextContent::Text(text) => match self.role {
                None => return Some(text.into()),
                Some(_) => quoted(text),
            },
            SpanTextContent::Parts(parts) => {
                Value::from_iter(parts.iter().map(SpanTextPart::block)).to_string()
            }
        };
        Some(match self.role {
            Some(role) => format!(r#"{{"role":"{role}","content":{content}}}"#).into(),
            None => content.into(),
        })
    }

    /// The text alone, and whether it is JSON.
    pub fn plain(&self) -> Option<(Cow<'_, str>, bool)> {
        match &self.content {
            SpanTextContent::None | SpanTextContent::Null => None,
            SpanTextContent::Text(text) => Some((text.into(), false)),
            SpanTextContent::Json(json) => Some((json.into(), true)),
            SpanTextContent::Parts(parts) => {
                let blocks = Value::from_iter(parts.iter().map(SpanTextPart::block));
                Some((blocks.to_string().into(), true))
            }
        }
    }

    /// As the messages of OpenTelemetry's conventions for models; `calls` are those that the
    /// message makes.
    pub fn messages(&self, calls: &[(String, String)], stop: Option<&str>) -> Option<String> {
        let role = self.role?;
        let mut parts: Vec<String> = match &self.content {
            SpanTextContent::None | SpanTextContent::Null => Vec::new(),
            SpanTextContent::Text(text) if text.is_empty() => Vec::new(),
            SpanTextContent::Text(text) => vec![text_part("text", text)],
            SpanTextContent::Json(json) => vec![text_part("text", json)],
            SpanTextContent::Parts(parts) => parts.iter().map(SpanTextPart::message).collect(),
        };
        parts.extend(calls.iter().map(|(id, name)| {
            let (id, name) = (quoted(id), quoted(name));
            format!(r#"{{"type":"tool_call","id":{id},"name":{name}}}"#)
        }));
        let stop = stop.map(|stop| format!(r#","finish_reason":{}"#, quoted(stop)));
        Some(format!(
            r#"[{{"role":"{role}","parts":[{}]{}}}]"#,
            parts.join(","),
            stop.unwrap_or_default()
        ))
    }
}

fn text_part(kind: &str, text: &str) -> String {
    format!(r#"{{"type":"{kind}","content":{}}}"#, quoted(text))
}

impl SpanTextPart {
    /// As a block of the Messages API.
    fn block(&self) -> Value {
        match self {
            SpanTextPart::Text(text) => json!({"type": "text", "text": text}),
            SpanTextPart::Thinking(text) => json!({"type": "thinking", "thinking": text}),
            SpanTextPart::Json(value) => value.clone(),
        }
    }

    /// As a part of a message of OpenTelemetry's conventions.
    fn message(&self) -> String {
        match self {
            SpanTextPart::Text(text) => text_part("text", text),
            SpanTextPart::Thinking(text) => text_part("reasoning", text),
            SpanTextPart::Json(value) => value.to_string(),
        }
    }
}

/// Reads the texts at a place.
pub(super) fn read(
    traces: &SessionTurnTraces<'_>,
    place: &SpanTextLocation,
    shape: &SpanTextRules<'_>,
) -> SpanText {
    let file = |at: &usize| &traces.files[*at];
    match place {
        SpanTextLocation::None => SpanText::NONE,
        SpanTextLocation::Null => SpanText {
            role: None,
            content: SpanTextContent::Null,
        },
        SpanTextLocation::Prompt { file: at, record } => prompt(file(at), *record, shape),
        SpanTextLocation::Reply { file: at, message } => reply(file(at), *message, shape),
        SpanTextLocation::Input { file: at, call } => input_of(file(at), *call, shape),
        SpanTextLocation::Result { file: at, call } => result(file(at), *call, shape),
        SpanTextLocation::Event { file: at, event } => told(file(at), event, shape),
    }
}

fn prompt(file: &TraceFile<'_>, record: Index, shape: &SpanTextRules<'_>) -> SpanText {
    let record = &file.session.records[record as usize];
    let pieces = content_pieces::of_line(file.session, file.source, record);
    let mut texts = String::new();
    let mut rest = Vec::new();
    for piece in pieces {
        match piece {
            ContentPiece::Text(text) => {
                if !texts.is_empty() {
                    texts.push('\n');
                }
                texts.push_str(&text);
            }
            other => rest.extend(part(other, shape)),
        }
    }
    let text = shape.text(user_input::readable(&texts).into_owned());
    let content = if rest.is_empty() {
        SpanTextContent::Text(text)
    } else {
        let text = Some(SpanTextPart::Text(text)).filter(|_| !texts.is_empty());
        SpanTextContent::Parts(text.into_iter().chain(rest).collect())
    };
    SpanText {
        role: Some("user"),
        content,
    }
}

fn reply(file: &TraceFile<'_>, message: Index, shape: &SpanTextRules<'_>) -> SpanText {
    let message = &file.session.messages[message as usize];
    let pieces = content_pieces::of_message(file.session, file.source, message);
    let mut parts: Vec<SpanTextPart> = Vec::new();
    for piece in pieces {
        match piece {
            ContentPiece::Text(text) if text.trim().is_empty() => {}
            other => parts.extend(part(other, shape)),
        }
    }
    SpanText {
        role: Some("assistant"),
        content: joined(parts),
    }
}

/// One text where there is nothing else.
fn joined(parts: Vec<SpanTextPart>) -> SpanTextContent {
    if !parts
        .iter()
        .all(|part| matches!(part, SpanTextPart::Text(_)))
    {
        return SpanTextContent::Parts(parts);
    }
    let mut out = String::new();
    for part in parts {
        let SpanTextPart::Text(text) = part else {
            continue;
        };
        if out.is_empty() {
            out = text;
        } else {
            out.push('\n');
            out.push_str(&text);
        }
    }
    SpanTextContent::Text(out)
}

fn part(piece: ContentPiece, shape: &SpanTextRules<'_>) -> Option<SpanTextPart> {
    match piece {
        ContentPiece::Text(text) => Some(SpanTextPart::Text(shape.text(text))),
        ContentPiece::Thinking(text) => {
            let told = shape.thinking && !text.is_empty();
            told.then(|| SpanTextPart::Thinking(shape.text(text)))
        }
        ContentPiece::Media(media) => Some(SpanTextPart::Json(media::reference(&media))),
        ContentPiece::Other(json) => {
            let shaped = shape.json(json.as_bytes());
            Some(SpanTextPart::Json(
                serde_json::from_str(&shaped).unwrap_or_default(),
            ))
        }
    }
}

fn input_of(file: &TraceFile<'_>, call: Index, shape: &SpanTextRules<'_>) -> SpanText {
    let call = &file.session.calls[call as usize];
    let record = &file.session.records[call.record as usize];
    let bytes = file.session.bytes_of(file.source, record);
    let raw = file.session.blocks[call.block as usize].body().of(&bytes);
    SpanText {
        role: None,
        content: SpanTextContent::Json(shape.json(raw)),
    }
}

fn result(file: &TraceFile<'_>, call: Index, shape: &SpanTextRules<'_>) -> SpanText {
    let call = &file.session.calls[call as usize];
    let content = match content_pieces::of_result(file.session, file.source, call) {
        None | Some(content_pieces::ResultContent::Empty) => SpanTextContent::Null,
        Some(content_pieces::ResultContent::Text(text)) => SpanTextContent::Text(shape.text(text)),
        Some(content_pieces::ResultContent::Pieces(pieces)) => {
            let parts = pieces.into_iter().filter_map(|piece| part(piece, shape));
            SpanTextContent::Parts(parts.collect())
        }
        Some(content_pieces::ResultContent::Other(json)) => {
            SpanTextContent::Json(shape.json(json.as_bytes()))
        }
    };
    SpanText {
        role: None,
        content,
    }
}

fn told(file: &TraceFile<'_>, event: &SessionEvent, shape: &SpanTextRules<'_>) -> SpanText {
    let detail = events::detail(file.session, file.source, event);
    if detail.text.is_empty() {
        return SpanText::NONE;
    }
    let role = match event.what {
        events::SessionEventKind::Queued(_) | events::SessionEventKind::Compaction { .. } => {
            Some("user")
        }
        _ => None,
    };
    SpanText {
        role,
        content: SpanTextContent::Text(shape.text(detail.text)),
    }
}

/// What the line of a prompt tells about its turn.
pub(super) fn prompt_metadata(
    file: &TraceFile<'_>,
    record: Index,
    shape: &SpanTextRules<'_>,
) -> Vec<(&'static str, Value)> {
    let record = &file.session.records[record as usize];
    let bytes = file.session.bytes_of(file.source, record);
    let Some(entry) = decode(&bytes).entries.into_iter().next() else {
        return Vec::new();
    };
    let texts = [
        ("version", entry.version.as_deref()),
        ("slug", entry.slug.as_deref()),
        ("cwd", entry.cwd.as_deref()),
        ("git_branch", entry.branch.as_deref()),
        ("permission_mode", entry.permission_mode.as_deref()),
        ("entrypoint", entry.entrypoint.as_deref()),
    ];
    let told = texts.into_iter().filter_map(|(key, text)| {
        let text = text.filter(|text| !text.is_empty())?;
        Some((key, Value::from(shape.note(text))))
    });
    told.collect()
}
