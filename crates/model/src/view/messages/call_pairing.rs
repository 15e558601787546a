//! Calls and results brought together, as clients from 2.0.77 on do before they send.

use std::collections::HashSet;

use crate::json;
use crate::view::client_profile::{ClientRules, PairingRule};
use crate::view::messages::line_content::{NO_CONTENT, result_piece, text_piece};
use crate::view::messages::{ApiBlock, ApiBlockKind, ApiMessage, MessageRole};

const MISSING: &str = "[Tool result missing due to internal error]";
const ORPHANED: &str = "[Orphaned tool result removed due to conversation resume]";
const DUPLICATE: &str = "[Tool use interrupted]";

/// The same messages with each call answered right behind it and nothing answered twice.
pub(super) fn paired(drafts: Vec<ApiMessage>, rules: &ClientRules) -> Vec<ApiMessage> {
    let full = rules.pairing == PairingRule::Full;
    let mut out: Vec<ApiMessage> = Vec::with_capacity(drafts.len());
    let mut used: HashSet<Box<str>> = HashSet::new();
    let mut rest = drafts.into_iter().peekable();
    while let Some(message) = rest.next() {
        match message.role {
            MessageRole::User if rules.drops_first_orphans => {
                let noted = rules.notes_first_orphans && out.is_empty();
                out.extend(unasked(message, noted, out.last()));
            }
            MessageRole::User => out.push(message),
            MessageRole::Assistant => {
                if !full {
                    used.clear();
                }
                let (message, calls) = unique(message, &mut used, rules);
                out.push(message);
                let next = rest.next_if(|next| next.role == MessageRole::User);
                let noted = full && (rules.notes_last_orphans || rest.peek().is_some());
                out.extend(answered(&calls, next, rules.pairing, noted));
            }
        }
    }
    out
}

/// A user message that no reply precedes holds no results.
fn unasked(
    mut message: ApiMessage,
    noted: bool,
    before: Option<&ApiMessage>,
) -> Option<ApiMessage> {
    if before.is_some_and(|before| before.role == MessageRole::Assistant) {
        return Some(message);
    }
    let had = message.content.len();
    message
        .content
        .retain(|piece| piece.kind != ApiBlockKind::Result);
    if message.content.is_empty() && had > 0 {
        if !noted {
            return None;
        }
        message.content.push(own(ORPHANED));
    }
    Some(message)
}

/// The reply without calls that were made before, and the ids of its calls.
fn unique(
    mut message: ApiMessage,
    used: &mut HashSet<Box<str>>,
    rules: &ClientRules,
) -> (ApiMessage, Vec<Box<str>>) {
    let full = rules.pairing == PairingRule::Full;
    let mut calls = Vec::new();
    if rules.needs_server_results {
        drop_open_server_calls(&mut message);
    }
    message.content.retain(|piece| {
        if piece.kind != ApiBlockKind::Call {
            return true;
        }
        let id = piece.call.clone().unwrap_or_default();
        let first = used.insert(id.clone());
        if first {
            calls.push(id);
        }
        first || !full
    });
    if message.content.is_empty() {
        message.content.push(own(DUPLICATE));
    }
    (message, calls)
}

/// What runs at the API is answered in the same message, or it is not sent.
fn drop_open_server_calls(message: &mut ApiMessage) {
    let field = |piece: &ApiBlock, field: &str| {
        let json = piece.json.as_bytes();
        let value = json::find(json, &[field])?;
        Some(json::string(value.of(json)).into_owned())
    };
    let is_call = |piece: &ApiBlock| {
        piece.kind == ApiBlockKind::Other
            && field(piece, "type").as_deref() == Some("server_tool_use")
    };
    if !message.content.iter().any(is_call) {
        return;
    }
    let answers = message.content.iter();
    let answered: HashSet<String> = answers
        .filter(|piece| piece.kind == ApiBlockKind::Other)
        .filter_map(|piece| field(piece, "tool_use_id"))
        .collect();
    message.content.retain(|piece| {
        !is_call(piece) || field(piece, "id").is_some_and(|id| answered.contains(&id))
    });
}

/// What follows a reply: its results, once each, and a note for those that are missing.
fn answered(
    calls: &[Box<str>],
    next: Option<ApiMessage>,
    pairing: PairingRule,
    noted: bool,
) -> Option<ApiMessage> {
    let asked: HashSet<&str> = calls.iter().map(|call| &**call).collect();
    let content = next.map(|next| next.content);
    let was_empty = content.as_ref().is_some_and(Vec::is_empty);
    let lost = noted && content.is_some() && !was_empty;
    let content = content.unwrap_or_default();
    let given: HashSet<&str> = content
        .iter()
        .filter(|piece| piece.kind == ApiBlockKind::Result)
        .filter_map(|piece| piece.call.as_deref())
        .collect();
    let mut pieces: Vec<ApiBlock> = calls
        .iter()
        .filter(|call| !given.contains(&***call))
        .map(|call| result_piece(call, MISSING))
        .collect();
    let mut seen: HashSet<Box<str>> = HashSet::new();
    pieces.extend(content.into_iter().filter(|piece| {
        let Some(call) = piece
            .call
            .as_ref()
            .filter(|_| piece.kind == ApiBlockKind::Result)
        else {
            return piece.kind != ApiBlockKind::Result;
        };
        let asked = asked.contains(&**call) || pairing < PairingRule::Gentle;
        asked && (seen.insert(call.clone()) || pairing < PairingRule::Strict)
    }));
    if pieces.is_empty() && lost {
        pieces.push(own(NO_CONTENT));
    }
    (was_empty || !pieces.is_empty()).then_some(ApiMessage {
        role: MessageRole::User,
        content: pieces,
    })
}

/// A text that stands in no line.
fn own(text: &str) -> ApiBlock {
    ApiBlock {
        record: None,
        ..text_piece(text, 0)
    }
}
