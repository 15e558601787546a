//! Messages that the API accepts, whatever the transcript looks like.
//!
//! The rules are those that earn a 400: results right behind their calls, first in the
//! message and all together; no id twice; no empty text; no thinking on its own, without its
//! signature or of another model; no half surrogate pair; nothing the API does not know.
//! What can be said otherwise is kept: a call without a result gets one that says so.

use std::collections::{HashMap, HashSet};

use crate::accepted_names;
use crate::json;
use crate::refused_content::{self, RefusalReason};
use crate::view::messages::line_content::{result_piece, text_piece};
use crate::view::messages::{ApiBlock, ApiBlockKind, ApiMessage, MessageRole};

const LOST: &str = "[The result of this call is not in the transcript]";
const EARLIER: &str = "[Earlier conversation is not in this transcript]";

/// Blocks that need nothing else of a request, beside text, thinking, calls and results. The API
/// takes more, but only from those who ask it for what they belong to.
const KNOWN: &[&str] = &["image", "document"];

/// Repairs drafted messages until the API accepts them.
pub(super) fn accepted(drafts: Vec<ApiMessage>) -> Vec<ApiMessage> {
    let mut results: HashMap<Box<str>, ApiBlock> = HashMap::new();
    let mut plain = Vec::new();
    let mut searched: HashSet<String> = HashSet::new();
    for mut message in drafts {
        let whole = searches(&message, &mut searched);
        message.content = message
            .content
            .into_iter()
            .enumerate()
            .filter_map(|(at, piece)| match whole.contains(&at) {
                true => Some(piece),
                false => known(piece, message.role),
            })
            .collect();
        take_results(&mut message, &mut results);
        plain.push(message);
    }
    let mut called: HashSet<Box<str>> = HashSet::new();
    let mut out: Vec<ApiMessage> = Vec::new();
    for mut message in plain {
        if message.role == MessageRole::User {
            add(&mut out, message);
            continue;
        }
        message.content.retain(|piece| {
            piece.kind != ApiBlockKind::Call
                || piece
                    .call
                    .as_ref()
                    .is_some_and(|call| called.insert(call.clone()))
        });
        if message
            .content
            .iter()
            .all(|piece| piece.kind == ApiBlockKind::Thinking)
        {
            continue;
        }
        let calls = message
            .content
            .iter()
            .filter(|piece| piece.kind == ApiBlockKind::Call);
        let answers: Vec<ApiBlock> = calls
            .filter_map(|piece| piece.call.as_ref())
            .map(|call| answer(call, &mut results))
            .collect();
        add(&mut out, message);
        if !answers.is_empty() {
            out.push(ApiMessage {
                role: MessageRole::User,
                content: answers,
            });
        }
    }
    if out
        .first()
        .is_some_and(|first| first.role == MessageRole::Assistant)
    {
        let content = vec![ApiBlock {
            record: None,
            ..text_piece(EARLIER, 0)
        }];
        out.insert(
            0,
            ApiMessage {
                role: MessageRole::User,
                content,
            },
        );
    }
    out
}

/// Searches that the API made itself: places of calls and of their results, where both are in
/// the message and no other message has them. They are sent back as they came; one without
/// the other would be refused.
fn searches(message: &ApiMessage, known: &mut HashSet<String>) -> HashSet<usize> {
    let mut whole = HashSet::new();
    let mut open: HashMap<String, usize> = HashMap::new();
    if message.role != MessageRole::Assistant {
        return whole;
    }
    for (at, piece) in message.content.iter().enumerate() {
        if piece.kind != ApiBlockKind::Other {
            continue;
        }
        let value = json::value(piece.json.as_bytes());
        let text = |field: &str| value[field].as_str().unwrap_or_default();
        let id = match text("type") {
            "server_tool_use" => "id",
            "web_search_tool_result" => "tool_use_id",
            _ => continue,
        };
        let id = text(id).to_owned();
        let content = &value["content"];
        if text("type") == "server_tool_use" {
            let complete = text("name") == "web_search" && value["input"].is_object();
            if complete && accepted_names::is_name(&id) && !known.contains(&id) {
                open.insert(id, at);
            }
        } else if (content.is_array() || content.is_object())
            && let Some(call) = open.remove(&id)
        {
            whole.extend([call, at]);
            known.insert(id);
        }
    }
    whole
}

fn answer(call: &str, results: &mut HashMap<Box<str>, ApiBlock>) -> ApiBlock {
    results
        .remove(call)
        .unwrap_or_else(|| result_piece(call, LOST))
}

fn take_results(message: &mut ApiMessage, results: &mut HashMap<Box<str>, ApiBlock>) {
    let (answers, rest): (Vec<ApiBlock>, Vec<ApiBlock>) = std::mem::take(&mut message.content)
        .into_iter()
        .partition(|piece| piece.kind == ApiBlockKind::Result);
    message.content = rest;
    for piece in answers {
        if let (MessageRole::User, Some(call)) = (message.role, piece.call.clone()) {
            results.entry(call).or_insert(piece);
        }
    }
}

/// Adds a message; neighbours of one role are one message, unless calls lie between.
fn add(out: &mut Vec<ApiMessage>, mut message: ApiMessage) {
    if message.content.is_empty() {
        return;
    }
    match out.last_mut() {
        Some(last) if last.role == message.role => last.content.append(&mut message.content),
        _ => out.push(message),
    }
}

/// The piece in a form the API knows, if there is one.
fn known(mut piece: ApiBlock, role: MessageRole) -> Option<ApiBlock> {
    let value = json::value(piece.json.as_bytes());
    let text = |field: &str| {
        let value = value.get(field).and_then(|value| value.as_str());
        value.unwrap_or_default()
    };
    let refusal = refused_content::of_json(piece.json.as_bytes());
    match (piece.kind, role) {
        (ApiBlockKind::Text, _) => refusal.is_none().then(|| {
            piece.json = text_piece(text("text"), 0).json;
            piece
        }),
        (ApiBlockKind::Thinking, MessageRole::Assistant) => refusal.is_none().then_some(piece),
        (ApiBlockKind::Call, MessageRole::Assistant) => (!text("id").is_empty()).then(|| {
            let input =
                refused_content::accepted_form(piece.json.as_bytes(), RefusalReason::BadCall);
            if let (false, Some(form)) = (value["input"].is_object(), input) {
                piece.json = String::from_utf8_lossy(&form).into_owned();
            }
            if let Some(name) = accepted_names::tool_name(text("name")) {
                set(&mut piece, "name", &name);
            }
            if let Some(id) = accepted_names::call_id(text("id")) {
                set(&mut piece, "id", &id);
                piece.call = Some(id.into());
            }
            piece
        }),
        (ApiBlockKind::Result, MessageRole::User) => (!text("tool_use_id").is_empty()).then(|| {
            piece.json = refused_content::result(&value);
            if let Some(id) = accepted_names::call_id(text("tool_use_id")) {
                set(&mut piece, "tool_use_id", &id);
                piece.call = Some(id.into());
            }
            piece
        }),
        (ApiBlockKind::Other, MessageRole::User)
            if KNOWN.contains(&text("type")) && refusal.is_none() =>
        {
            Some(piece)
        }
        // Not something this speaker can send: say what it was.
        _ => Some(ApiBlock {
            record: piece.record,
            ..text_piece(&refused_content::note_of(piece.json.as_bytes()), 0)
        }),
    }
}

/// Gives a block another name.
fn set(piece: &mut ApiBlock, key: &str, name: &str) {
    if let Some(new) = json::with_field(piece.json.as_bytes(), key, &json::quoted(name)) {
        piece.json = String::from_utf8_lossy(&new).into_owned();
    }
}
