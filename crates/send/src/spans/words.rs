//! Texts of spans: where they are, and what they say once they are read.

use std::borrow::Cow;

use serde_json::{Value, json};
use unspool_model::entry::decode;
use unspool_model::input;
use unspool_model::json::quoted;
use unspool_model::session::Index;
use unspool_model::view::events::{self, Event};
use unspool_model::view::pieces::{self, Piece};

use super::media;
use super::shape::Shape;
use super::{Traces, files::File};

/// Where a text is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
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
        event: Event,
    },
}

impl Place {
    /// The file that it is in.
    pub(super) fn file(&self) -> Option<usize> {
        match self {
            Place::None | Place::Null => None,
            Place::Prompt { file, .. }
            | Place::Reply { file, .. }
            | Place::Input { file, .. }
            | Place::Result { file, .. }
            | Place::Event { file, .. } => Some(*file),
        }
    }
}

/// A text that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Words {
    /// Who says it, if it is said by somebody.
    pub role: Option<&'static str>,
    /// What it is.
    pub content: Content,
}

/// What a text is.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Nothing.
    None,
    /// Nothing where something should be.
    Null,
    /// A text.
    Text(String),
    /// Texts, thinking and references.
    Parts(Vec<Part>),
    /// JSON.
    Json(String),
}

/// A piece of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Text.
    Text(String),
    /// What the model thought.
    Thinking(String),
    /// Anything else, as JSON; images by reference.
    Json(Value),
}

impl Words {
    const NONE: Words = Words {
        role: None,
        content: Content::None,
    };

    /// As Langfuse shows it: an object with role and content, a text, or JSON.
    pub fn object(&self) -> Option<Cow<'_, str>> {
        let content = match &self.content {
            Content::None => return None,
            Content::Null => return Some("null".into()),
            Content::Json(json) => return Some(json.into()),
            Content::Text(text) => match self.role {
                None => return Some(text.into()),
                Some(_) => quoted(text),
            },
            Content::Parts(parts) => Value::from_iter(parts.iter().map(Part::block)).to_string(),
        };
        Some(match self.role {
            Some(role) => format!(r#"{{"role":"{role}","content":{content}}}"#).into(),
            None => content.into(),
        })
    }

    /// The text alone, and whether it is JSON.
    pub fn plain(&self) -> Option<(Cow<'_, str>, bool)> {
        match &self.content {
            Content::None | Content::Null => None,
            Content::Text(text) => Some((text.into(), false)),
            Content::Json(json) => Some((json.into(), true)),
            Content::Parts(parts) => {
                let blocks = Value::from_iter(parts.iter().map(Part::block));
                Some((blocks.to_string().into(), true))
            }
        }
    }

    /// As the messages of OpenTelemetry's conventions for models; `calls` are those that the
    /// message makes.
    pub fn messages(&self, calls: &[(String, String)], stop: Option<&str>) -> Option<String> {
        let role = self.role?;
        let mut parts: Vec<String> = match &self.content {
            Content::None | Content::Null => Vec::new(),
            Content::Text(text) if text.is_empty() => Vec::new(),
            Content::Text(text) => vec![text_part("text", text)],
            Content::Json(json) => vec![text_part("text", json)],
            Content::Parts(parts) => parts.iter().map(Part::message).collect(),
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

impl Part {
    /// As a block of the Messages API.
    fn block(&self) -> Value {
        match self {
            Part::Text(text) => json!({"type": "text", "text": text}),
            Part::Thinking(text) => json!({"type": "thinking", "thinking": text}),
            Part::Json(value) => value.clone(),
        }
    }

    /// As a part of a message of OpenTelemetry's conventions.
    fn message(&self) -> String {
        match self {
            Part::Text(text) => text_part("text", text),
            Part::Thinking(text) => text_part("reasoning", text),
            Part::Json(value) => value.to_string(),
        }
    }
}

/// Reads the texts at a place.
pub(super) fn read(traces: &Traces<'_>, place: &Place, shape: &Shape<'_>) -> Words {
    let file = |at: &usize| &traces.files[*at];
    match place {
        Place::None => Words::NONE,
        Place::Null => Words {
            role: None,
            content: Content::Null,
        },
        Place::Prompt { file: at, record } => prompt(file(at), *record, shape),
        Place::Reply { file: at, message } => reply(file(at), *message, shape),
        Place::Input { file: at, call } => input_of(file(at), *call, shape),
        Place::Result { file: at, call } => result(file(at), *call, shape),
        Place::Event { file: at, event } => told(file(at), event, shape),
    }
}

fn prompt(file: &File<'_>, record: Index, shape: &Shape<'_>) -> Words {
    let record = &file.session.records[record as usize];
    let pieces = pieces::of_line(file.session, file.source, record);
    let mut texts = String::new();
    let mut rest = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => {
                if !texts.is_empty() {
                    texts.push('\n');
                }
                texts.push_str(&text);
            }
            other => rest.extend(part(other, shape)),
        }
    }
    let text = shape.text(input::readable(&texts).into_owned());
    let content = if rest.is_empty() {
        Content::Text(text)
    } else {
        let text = Some(Part::Text(text)).filter(|_| !texts.is_empty());
        Content::Parts(text.into_iter().chain(rest).collect())
    };
    Words {
        role: Some("user"),
        content,
    }
}

fn reply(file: &File<'_>, message: Index, shape: &Shape<'_>) -> Words {
    let message = &file.session.messages[message as usize];
    let pieces = pieces::of_message(file.session, file.source, message);
    let mut parts: Vec<Part> = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) if text.trim().is_empty() => {}
            other => parts.extend(part(other, shape)),
        }
    }
    Words {
        role: Some("assistant"),
        content: joined(parts),
    }
}

/// One text where there is nothing else.
fn joined(parts: Vec<Part>) -> Content {
    if !parts.iter().all(|part| matches!(part, Part::Text(_))) {
        return Content::Parts(parts);
    }
    let mut out = String::new();
    for part in parts {
        let Part::Text(text) = part else { continue };
        if out.is_empty() {
            out = text;
        } else {
            out.push('\n');
            out.push_str(&text);
        }
    }
    Content::Text(out)
}

fn part(piece: Piece, shape: &Shape<'_>) -> Option<Part> {
    match piece {
        Piece::Text(text) => Some(Part::Text(shape.text(text))),
        Piece::Thinking(text) => {
            let told = shape.thinking && !text.is_empty();
            told.then(|| Part::Thinking(shape.text(text)))
        }
        Piece::Media(media) => Some(Part::Json(media::reference(&media))),
        Piece::Other(json) => {
            let shaped = shape.json(json.as_bytes());
            Some(Part::Json(
                serde_json::from_str(&shaped).unwrap_or_default(),
            ))
        }
    }
}

fn input_of(file: &File<'_>, call: Index, shape: &Shape<'_>) -> Words {
    let call = &file.session.calls[call as usize];
    let record = &file.session.records[call.record as usize];
    let bytes = file.session.bytes_of(file.source, record);
    let raw = file.session.blocks[call.block as usize].body().of(&bytes);
    Words {
        role: None,
        content: Content::Json(shape.json(raw)),
    }
}

fn result(file: &File<'_>, call: Index, shape: &Shape<'_>) -> Words {
    let call = &file.session.calls[call as usize];
    let content = match pieces::of_result(file.session, file.source, call) {
        None | Some(pieces::Content::Empty) => Content::Null,
        Some(pieces::Content::Text(text)) => Content::Text(shape.text(text)),
        Some(pieces::Content::Pieces(pieces)) => {
            let parts = pieces.into_iter().filter_map(|piece| part(piece, shape));
            Content::Parts(parts.collect())
        }
        Some(pieces::Content::Other(json)) => Content::Json(shape.json(json.as_bytes())),
    };
    Words {
        role: None,
        content,
    }
}

fn told(file: &File<'_>, event: &Event, shape: &Shape<'_>) -> Words {
    let detail = events::detail(file.session, file.source, event);
    if detail.text.is_empty() {
        return Words::NONE;
    }
    let role = match event.what {
        events::What::Queued(_) | events::What::Compaction { .. } => Some("user"),
        _ => None,
    };
    Words {
        role,
        content: Content::Text(shape.text(detail.text)),
    }
}

/// What the line of a prompt tells about its turn.
pub(super) fn about(
    file: &File<'_>,
    record: Index,
    shape: &Shape<'_>,
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
