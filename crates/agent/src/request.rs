//! A request, made of what is on disk and of nothing else.

use serde_json::{Map, Value, json};
use unspool_model::json::with_field;
use unspool_model::session::Session;
use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::messages::{self, ApiBlockKind, ApiMessage, MessageRole, ResumeResult};

use crate::api::client::MessagesRequest;
use crate::api::model::{self, ThinkingMode};
use crate::transcript_writer::TranscriptWriter;

/// What a request takes beside the conversation.
#[derive(Clone, Debug, Default)]
pub struct RequestOptions {
    /// The model.
    pub model: String,
    /// How much to think.
    pub thinking: ThinkingMode,
    /// How hard to try.
    pub effort: Option<String>,
    /// Tokens of the answer; what the model can if not given.
    pub most: Option<u64>,
    /// Texts before the conversation.
    pub system: Vec<String>,
    /// What the model may call. Never changes within a session: the cache begins with it.
    pub tools: Vec<Value>,
}

const CACHED: &str = r#"{"type":"ephemeral"}"#;

impl RequestOptions {
    /// The request for what comes next.
    pub fn ask(&self, record: &TranscriptWriter) -> Option<MessagesRequest> {
        let mut messages = conversation(record, &self.model)?;
        mark(&mut messages);
        Some(self.with(messages::to_json(&messages)))
    }

    /// A request with these messages.
    pub fn with(&self, messages: String) -> MessagesRequest {
        let mut system: Vec<Value> = self
            .system
            .iter()
            .filter(|text| !text.trim().is_empty())
            .map(|text| json!({"type": "text", "text": text}))
            .collect();
        let count = system.len();
        // The first text is the same for all sessions, the last for all of this one.
        for at in [0, count.saturating_sub(1)] {
            if let Some(block) = system.get_mut(at) {
                block["cache_control"] = json!({"type": "ephemeral"});
            }
        }
        let mut tools = self.tools.clone();
        if tools.is_empty() && messages.contains("\"tool_use\"") {
            // The API takes no calls without tools, and what was called stays said.
            tools.push(json!({
                "name": "none", "description": "No tools are available in this session.",
                "input_schema": {"type": "object", "properties": {}},
            }));
        }
        MessagesRequest {
            model: self.model.clone(),
            most: self.most.unwrap_or_else(|| model::most_output(&self.model)),
            thinking: self.thinking,
            effort: self.effort.clone(),
            system,
            tools,
            messages,
            more: Map::new(),
            betas: Vec::new(),
        }
    }
}

/// The conversation as the API accepts it from this model.
pub fn conversation(record: &TranscriptWriter, model: &str) -> Option<Vec<ApiMessage>> {
    let loaded = record.loaded()?;
    let (session, source) = (&loaded.session, &loaded.source);
    let ResumeResult::Messages(mut messages) =
        messages::messages(session, source, ClientProfile::Strict)
    else {
        return None;
    };
    forget_thoughts(session, &mut messages, model);
    if messages
        .last()
        .is_some_and(|last| last.role == MessageRole::Assistant)
    {
        // Nothing to answer: whoever asks anyway wants it to go on.
        messages.push(user_message("Continue."));
    }
    (!messages.is_empty()).then_some(messages)
}

/// A message of the person's side.
pub fn user_message(text: &str) -> ApiMessage {
    let json = json!({"type": "text", "text": text}).to_string();
    ApiMessage {
        role: MessageRole::User,
        content: vec![piece(json)],
    }
}

fn piece(json: String) -> messages::ApiBlock {
    messages::ApiBlock {
        kind: ApiBlockKind::Text,
        call: None,
        blank: false,
        empty: false,
        bare: false,
        is_error: false,
        json,
        record: None,
    }
}

/// Thinking is for the model that thought it.
fn forget_thoughts(session: &Session, messages: &mut [ApiMessage], asked: &str) {
    for message in messages {
        message.content.retain(|piece| {
            if piece.kind != ApiBlockKind::Thinking {
                return true;
            }
            let record = piece.record.map(|at| &session.records[at as usize]);
            let name = record.and_then(|record| record.model());
            name.is_some_and(|name| model::is_same(session.text(name), asked))
        });
    }
}

/// Marks how far the conversation can be read from the cache: up to its end, and up to the end
/// of the question before, because the cache looks back no further than twenty blocks.
fn mark(messages: &mut [ApiMessage]) {
    let ends: Vec<usize> = messages
        .iter()
        .enumerate()
        .filter(|(_, message)| message.role == MessageRole::User)
        .map(|(at, _)| at)
        .collect();
    for at in ends.iter().rev().take(2) {
        let last = messages[*at].content.last_mut();
        let Some(piece) = last.filter(|piece| piece.kind != ApiBlockKind::Thinking) else {
            continue;
        };
        let marked = with_field(piece.json.as_bytes(), "cache_control", CACHED);
        if let Some(marked) = marked.and_then(|bytes| String::from_utf8(bytes).ok()) {
            piece.json = marked;
        }
    }
}
