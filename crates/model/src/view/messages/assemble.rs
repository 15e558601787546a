//! From live lines to messages: merge, pair, leave out.

use std::collections::{HashMap, HashSet};

use crate::block::{Block, BlockKind};
use crate::entry::Kind;
use crate::input::Input;
use crate::json;
use crate::log::Source;
use crate::session::{Index, Record, Session};
use crate::view::messages::{ApiMessage, Piece, PieceKind, Speaker};
use crate::view::profile::{Orphan, Rules};

/// What stands in for a result that was never written.
const INTERRUPTED: &str =
    "[Tool call interrupted: the session ended before this call's result was recorded]";
const MISSING: &str = "[Tool result missing due to internal error]";
const NO_CONTENT: &str = "(no content)";

pub(super) fn assemble(
    session: &Session,
    source: &dyn Source,
    lines: &[Index],
    rules: &Rules,
) -> Vec<ApiMessage> {
    let mut drafts = draft(session, source, lines, rules);
    if rules.strict {
        return crate::view::strict::accepted(drafts);
    }
    if rules.completes {
        complete(&mut drafts);
    }
    pair(&mut drafts, rules);
    finish(drafts, rules)
}

/// Puts the lines into messages without judging them.
fn draft(
    session: &Session,
    source: &dyn Source,
    lines: &[Index],
    rules: &Rules,
) -> Vec<ApiMessage> {
    let mut drafts: Vec<ApiMessage> = Vec::new();
    // Messages that later lines may still be added to; a prompt closes them all.
    let mut open: HashMap<Index, usize> = HashMap::new();
    let model = lines.iter().rev().find_map(|&at| real_model(session, at));
    for &at in lines {
        let record = &session.records[at as usize];
        let content = record.replaced_by.unwrap_or(at);
        match &record.kind {
            Kind::Assistant if record.api_error => {}
            Kind::Assistant => {
                let foreign = rules.drops_foreign_thinking && real_model(session, at) != model;
                let pieces = pieces(session, source, content);
                let pieces = pieces
                    .into_iter()
                    .filter(|piece| !(foreign && piece.kind == PieceKind::Thinking));
                let known = record
                    .message
                    .and_then(|message| open.get(&message).copied());
                match known {
                    Some(draft) => drafts[draft].content.extend(pieces),
                    None => {
                        drafts.push(ApiMessage {
                            role: Speaker::Assistant,
                            content: pieces.collect(),
                        });
                        open.extend(record.message.map(|message| (message, drafts.len() - 1)));
                    }
                }
            }
            Kind::User => {
                if record.input != Input::Results {
                    open.clear();
                }
                say(&mut drafts, pieces(session, source, content));
            }
            Kind::LocalCommand if rules.local_commands => {
                say(&mut drafts, local_command(session, source, record, at));
            }
            Kind::QueuedCommand { text, .. } if rules.queued => {
                say(
                    &mut drafts,
                    vec![text_piece(&queued(session, source, record, text), at)],
                );
            }
            _ => {}
        }
    }
    drafts
}

fn real_model(session: &Session, at: Index) -> Option<Index> {
    let message = &session.messages[session.records[at as usize].message? as usize];
    message.model.filter(|_| !message.synthetic)
}

/// Adds a user line: consecutive ones are one message.
fn say(drafts: &mut Vec<ApiMessage>, pieces: Vec<Piece>) {
    match drafts.last_mut() {
        Some(last) if last.role == Speaker::User => last.content.extend(pieces),
        _ => drafts.push(ApiMessage {
            role: Speaker::User,
            content: pieces,
        }),
    }
}

fn pieces(session: &Session, source: &dyn Source, at: Index) -> Vec<Piece> {
    let record = &session.records[at as usize];
    let bytes = session.bytes_of(source, record);
    let blocks = session.blocks_of(record).iter();
    blocks
        .filter_map(|block| piece(block, &bytes, at))
        .collect()
}

fn piece(block: &Block, bytes: &[u8], at: Index) -> Option<Piece> {
    let raw = block.span.of(bytes);
    let json = match raw.first()? {
        b'"' => format!("{{\"type\":\"text\",\"text\":{}}}", json::mended(raw)),
        _ => json::mended(raw),
    };
    let kind = match block.kind {
        BlockKind::Text => PieceKind::Text,
        BlockKind::Thinking | BlockKind::RedactedThinking => PieceKind::Thinking,
        BlockKind::ToolUse => PieceKind::Call,
        BlockKind::ToolResult => PieceKind::Result,
        BlockKind::ServerToolUse | BlockKind::Image | BlockKind::Document | BlockKind::Other => {
            PieceKind::Other
        }
    };
    let call = matches!(kind, PieceKind::Call | PieceKind::Result)
        .then(|| block.id.clone())
        .flatten();
    let blank = block.kind == BlockKind::Text && block.blank;
    Some(Piece {
        kind,
        call,
        blank,
        json,
        record: Some(at),
    })
}

pub(crate) fn text_piece(text: &str, at: Index) -> Piece {
    Piece {
        kind: PieceKind::Text,
        call: None,
        blank: text.trim().is_empty(),
        json: format!("{{\"type\":\"text\",\"text\":{}}}", json::quoted(text)),
        record: Some(at),
    }
}

pub(crate) fn result_piece(call: &str, text: &str) -> Piece {
    let json = format!(
        "{{\"type\":\"tool_result\",\"content\":{},\"is_error\":true,\"tool_use_id\":{}}}",
        json::quoted(text),
        json::quoted(call)
    );
    Piece {
        kind: PieceKind::Result,
        call: Some(call.into()),
        blank: false,
        json,
        record: None,
    }
}

fn local_command(session: &Session, source: &dyn Source, record: &Record, at: Index) -> Vec<Piece> {
    let bytes = session.bytes_of(source, record);
    let text =
        json::find(&bytes, &["content"]).map(|span| json::string(span.of(&bytes)).into_owned());
    text.map(|text| text_piece(&text, at)).into_iter().collect()
}

/// A queued prompt goes out as the client rendered it, without the wrapper.
fn queued(session: &Session, source: &dyn Source, record: &Record, prompt: &str) -> String {
    let bytes = session.bytes_of(source, record);
    let rendered = json::find(&bytes, &["rendered", "0", "content"]);
    let Some(rendered) = rendered.map(|span| json::string(span.of(&bytes)).into_owned()) else {
        return prompt.to_owned();
    };
    let inner = rendered
        .strip_prefix("<system-reminder>\n")
        .unwrap_or(&rendered);
    inner
        .strip_suffix("\n</system-reminder>")
        .unwrap_or(inner)
        .to_owned()
}

/// Gives calls at the very end a result that says what happened.
fn complete(drafts: &mut Vec<ApiMessage>) {
    let Some(last) = drafts
        .iter()
        .rposition(|message| message.role == Speaker::Assistant)
    else {
        return;
    };
    let only_results = |message: &ApiMessage| {
        message
            .content
            .iter()
            .all(|piece| piece.kind == PieceKind::Result)
    };
    if !drafts[last + 1..].iter().all(only_results) {
        return;
    }
    let answered: HashSet<&str> = answers(drafts).collect();
    let open: Vec<Piece> = drafts[last]
        .content
        .iter()
        .filter(|piece| piece.kind == PieceKind::Call)
        .filter_map(|piece| piece.call.as_deref())
        .filter(|call| !answered.contains(call))
        .map(|call| result_piece(call, INTERRUPTED))
        .collect();
    if !open.is_empty() {
        say(drafts, open);
    }
}

fn answers(drafts: &[ApiMessage]) -> impl Iterator<Item = &str> {
    let pieces = drafts.iter().flat_map(|message| &message.content);
    pieces
        .filter(|piece| piece.kind == PieceKind::Result)
        .filter_map(|piece| piece.call.as_deref())
}

/// Drops calls without results and results without calls, as the client would.
fn pair(drafts: &mut Vec<ApiMessage>, rules: &Rules) {
    let answered: HashSet<String> = answers(drafts).map(str::to_owned).collect();
    let mut called: HashSet<String> = HashSet::new();
    for message in drafts
        .iter_mut()
        .filter(|message| message.role == Speaker::Assistant)
    {
        message.content.retain(|piece| {
            let Some(call) = piece
                .call
                .as_deref()
                .filter(|_| piece.kind == PieceKind::Call)
            else {
                return true;
            };
            let first = called.insert(call.to_owned());
            answered.contains(call) && (first || !rules.unique_calls)
        });
    }
    if rules.orphan == Orphan::Sent {
        return;
    }
    let mut seen: HashSet<String> = HashSet::new();
    for message in drafts
        .iter_mut()
        .filter(|message| message.role == Speaker::User)
    {
        let before = message.content.len();
        message.content.retain(|piece| {
            let Some(call) = piece
                .call
                .as_deref()
                .filter(|_| piece.kind == PieceKind::Result)
            else {
                return true;
            };
            called.contains(call) && (seen.insert(call.to_owned()) || !rules.unique_calls)
        });
        let emptied = message.content.is_empty() && before > 0;
        if emptied && rules.orphan == Orphan::Placeholder {
            message.content.push(Piece {
                record: None,
                ..text_piece(NO_CONTENT, 0)
            });
        }
    }
    if rules.unique_calls {
        place_results(drafts);
    }
}

/// Results stand first in the message behind their call; a result that comes too late is
/// replaced by a note.
fn place_results(drafts: &mut Vec<ApiMessage>) {
    let mut at = 0;
    while at < drafts.len() {
        let calls: Vec<Box<str>> = drafts[at]
            .content
            .iter()
            .filter(|piece| piece.kind == PieceKind::Call)
            .filter_map(|piece| piece.call.clone())
            .collect();
        if !calls.is_empty() {
            let has_next = drafts
                .get(at + 1)
                .is_some_and(|next| next.role == Speaker::User);
            if !has_next {
                drafts.insert(
                    at + 1,
                    ApiMessage {
                        role: Speaker::User,
                        content: Vec::new(),
                    },
                );
            }
            let next = &mut drafts[at + 1].content;
            let here: HashSet<Box<str>> = next
                .iter()
                .filter(|piece| piece.kind == PieceKind::Result)
                .filter_map(|piece| piece.call.clone())
                .collect();
            next.extend(
                calls
                    .iter()
                    .filter(|call| !here.contains(*call))
                    .map(|call| result_piece(call, MISSING)),
            );
            next.retain(|piece| {
                piece.kind != PieceKind::Result
                    || piece.call.as_ref().is_some_and(|call| calls.contains(call))
            });
            next.sort_by_key(|piece| piece.kind != PieceKind::Result);
        } else if drafts[at].role == Speaker::User && !follows_calls(drafts, at) {
            drafts[at]
                .content
                .retain(|piece| piece.kind != PieceKind::Result);
        }
        at += 1;
    }
}

fn follows_calls(drafts: &[ApiMessage], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| &drafts[before].content);
    before.is_some_and(|content| content.iter().any(|piece| piece.kind == PieceKind::Call))
}

/// Leaves out messages that are empty, and joins what then stands side by side.
fn finish(drafts: Vec<ApiMessage>, rules: &Rules) -> Vec<ApiMessage> {
    let mut out: Vec<ApiMessage> = Vec::new();
    for mut message in drafts {
        if message.role == Speaker::Assistant && rules.drops_thinking_only {
            let says_nothing = |piece: &Piece| piece.kind == PieceKind::Thinking || piece.blank;
            if message.content.iter().all(says_nothing) {
                continue;
            }
        }
        if message.content.is_empty() {
            continue;
        }
        match out.last_mut() {
            Some(last) if last.role == Speaker::User && message.role == Speaker::User => {
                last.content.append(&mut message.content);
            }
            _ => out.push(message),
        }
    }
    out
}
