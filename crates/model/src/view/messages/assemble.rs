//! From live lines to messages: which lines speak, and which of them are one message.

use std::collections::HashSet;

use crate::block::{Block, BlockKind};
use crate::entry::Kind;
use crate::json;
use crate::log::Source;
use crate::session::{Index, Record, Session};
use crate::view::messages::{ApiMessage, Piece, PieceKind, Speaker, pair};
use crate::view::profile::{Join, Pairing, Rules};

/// What stands in for a result that was never written.
const INTERRUPTED: &str =
    "[Tool call interrupted: the session ended before this call's result was recorded]";
pub(super) const NO_CONTENT: &str = "(no content)";

/// The messages a client would send.
pub(super) fn assemble(
    session: &Session,
    source: &dyn Source,
    lines: &[Index],
    rules: &Rules,
) -> Vec<ApiMessage> {
    let mut spoken = speeches(session, source, lines, rules);
    if rules.completes {
        complete(&mut spoken);
    }
    drop_unanswered(&mut spoken);
    if rules.fills {
        drop_silent(&mut spoken, rules.pairing == Pairing::Full);
    }
    if rules.drops_foreign_thinking {
        drop_foreign_thinking(&mut spoken);
    }
    if !rules.fills {
        spoken.retain(|speech| !speech.pieces.is_empty());
    }
    let mut drafts = join(hoisted(spoken), rules);
    for draft in &mut drafts {
        finish(draft, rules);
    }
    match rules.pairing {
        Pairing::None => drafts,
        Pairing::Gentle | Pairing::Full => pair::paired(drafts, rules.pairing),
    }
}

/// The messages by our own rules, before the API's rules are applied.
pub(super) fn assemble_own(
    session: &Session,
    source: &dyn Source,
    lines: &[Index],
    rules: &Rules,
) -> Vec<ApiMessage> {
    let mut spoken = speeches(session, source, lines, rules);
    drop_foreign_thinking(&mut spoken);
    join(spoken, rules)
}

/// What one line says.
struct Speech {
    role: Speaker,
    /// The message id of a reply; lines without one share the empty id.
    id: Option<Box<str>>,
    model: Option<Index>,
    is_known_model: bool,
    /// A prompt that was queued: it joins the last answer before it.
    queued: bool,
    pieces: Vec<Piece>,
}

fn speeches(session: &Session, source: &dyn Source, lines: &[Index], rules: &Rules) -> Vec<Speech> {
    lines
        .iter()
        .filter_map(|&at| speech(session, source, at, rules))
        .collect()
}

fn speech(session: &Session, source: &dyn Source, at: Index, rules: &Rules) -> Option<Speech> {
    let record = &session.records[at as usize];
    let user = |pieces: Vec<Piece>, queued| Speech {
        role: Speaker::User,
        id: None,
        model: None,
        is_known_model: false,
        queued,
        pieces,
    };
    match &record.kind {
        Kind::Assistant if record.api_error => None,
        Kind::Assistant => {
            let message = record.message.map(|at| &session.messages[at as usize]);
            Some(Speech {
                role: Speaker::Assistant,
                id: message.and_then(|message| message.id.clone()),
                model: record.model,
                is_known_model: record
                    .model
                    .is_some_and(|model| is_known_model(session.text(model))),
                queued: false,
                pieces: pieces(session, source, at),
            })
        }
        Kind::User => {
            let mut pieces = pieces(session, source, at);
            if rules.pairing == Pairing::Full {
                pieces
                    .iter_mut()
                    .filter(|piece| piece.empty && !piece.bare)
                    .for_each(|piece| *piece = text_piece(NO_CONTENT, at));
            }
            if rules.wraps_notifications && record.notifies {
                pieces.iter_mut().for_each(wrap);
            }
            (!pieces.is_empty()).then(|| user(pieces, false))
        }
        Kind::LocalCommand if rules.local_commands => {
            Some(user(local_command(session, source, record, at), false))
        }
        Kind::QueuedCommand { human: true, text } if rules.queued => Some(user(
            vec![text_piece(&queued(session, source, record, text), at)],
            true,
        )),
        _ => None,
    }
}

fn pieces(session: &Session, source: &dyn Source, at: Index) -> Vec<Piece> {
    let record = &session.records[at as usize];
    let bytes = session.bytes_of(source, record);
    session
        .blocks_of(record)
        .iter()
        .filter_map(|block| piece(block, &bytes, at))
        .collect()
}

fn piece(block: &Block, bytes: &[u8], at: Index) -> Option<Piece> {
    let raw = block.span.of(bytes);
    let bare = *raw.first()? == b'"';
    let json = if bare {
        format!("{{\"type\":\"text\",\"text\":{}}}", json::mended(raw))
    } else {
        json::mended(raw)
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
    let is_text = block.kind == BlockKind::Text;
    Some(Piece {
        kind,
        call: matches!(kind, PieceKind::Call | PieceKind::Result)
            .then(|| block.id.clone())
            .flatten(),
        blank: is_text && block.blank,
        empty: is_text && block.body.len <= 2,
        bare,
        is_error: block.is_error,
        json,
        record: Some(at),
    })
}

/// Notifications go out as reminders.
fn wrap(piece: &mut Piece) {
    let Some(span) = json::find(piece.json.as_bytes(), &["text"]) else {
        return;
    };
    let text = json::string(span.of(piece.json.as_bytes())).into_owned();
    let wrapped = format!("<system-reminder>\n{text}\n</system-reminder>");
    *piece = text_piece(&wrapped, piece.record.unwrap_or_default());
}

/// A text of the client's or of ours.
pub(crate) fn text_piece(text: &str, at: Index) -> Piece {
    Piece {
        kind: PieceKind::Text,
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
pub(crate) fn result_piece(call: &str, text: &str) -> Piece {
    let json = format!(
        "{{\"type\":\"tool_result\",\"content\":{},\"is_error\":true,\"tool_use_id\":{}}}",
        json::quoted(text),
        json::quoted(call)
    );
    let base = text_piece(text, 0);
    Piece {
        kind: PieceKind::Result,
        call: Some(call.into()),
        is_error: true,
        json,
        record: None,
        ..base
    }
}

fn local_command(session: &Session, source: &dyn Source, record: &Record, at: Index) -> Vec<Piece> {
    let bytes = session.bytes_of(source, record);
    let text =
        json::find(&bytes, &["content"]).map(|span| json::string(span.of(&bytes)).into_owned());
    let text = text
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| NO_CONTENT.to_owned());
    vec![text_piece(&text, at)]
}

/// A queued prompt goes out as the client rendered it, without the wrapper.
fn queued(session: &Session, source: &dyn Source, record: &Record, prompt: &str) -> String {
    let bytes = session.bytes_of(source, record);
    let rendered = json::find(&bytes, &["rendered", "0", "content"]);
    let Some(rendered) = rendered.map(|span| json::string(span.of(&bytes)).into_owned()) else {
        return format!("The user sent a new message while you were working:\n{prompt}");
    };
    let text = rendered.trim();
    let inner = text
        .strip_prefix("<system-reminder>")
        .and_then(|text| text.strip_suffix("</system-reminder>"));
    inner
        .map_or(text, |inner| inner.trim_matches('\n'))
        .to_owned()
}

/// Families of models; a session goes on with the last of these.
fn is_known_model(model: &str) -> bool {
    ["opus", "sonnet", "haiku"]
        .iter()
        .any(|family| model.contains(family))
}

fn answers(spoken: &[Speech]) -> HashSet<Box<str>> {
    let pieces = spoken
        .iter()
        .filter(|speech| speech.role == Speaker::User)
        .flat_map(|speech| &speech.pieces);
    pieces
        .filter(|piece| piece.kind == PieceKind::Result)
        .filter_map(|piece| piece.call.clone())
        .collect()
}

fn has(speech: &Speech, kind: PieceKind) -> bool {
    speech.pieces.iter().any(|piece| piece.kind == kind)
}

/// Gives calls at the very end a result that says what happened.
fn complete(spoken: &mut Vec<Speech>) {
    let conversation = |speech: &Speech| !speech.queued;
    let Some(last) = spoken
        .iter()
        .rposition(|speech| speech.role == Speaker::Assistant)
    else {
        return;
    };
    let only_results = spoken[last + 1..]
        .iter()
        .filter(|speech| conversation(speech))
        .all(|speech| has(speech, PieceKind::Result));
    if !only_results {
        return;
    }
    let answered = answers(spoken);
    let id = spoken[last].id.clone();
    let same = spoken.iter().enumerate().filter(|(at, speech)| {
        speech.role == Speaker::Assistant && (*at == last || (id.is_some() && speech.id == id))
    });
    let calls = same
        .flat_map(|(_, speech)| &speech.pieces)
        .filter(|piece| piece.kind == PieceKind::Call);
    let open = calls
        .filter_map(|piece| piece.call.as_deref())
        .filter(|call| !answered.contains(*call));
    let pieces: Vec<Piece> = open.map(|call| result_piece(call, INTERRUPTED)).collect();
    if !pieces.is_empty() {
        spoken.push(Speech {
            role: Speaker::User,
            id: None,
            model: None,
            is_known_model: false,
            queued: false,
            pieces,
        });
    }
}

/// Drops lines whose calls all got no result.
fn drop_unanswered(spoken: &mut Vec<Speech>) {
    let answered = answers(spoken);
    spoken.retain(|speech| {
        let mut calls = speech
            .pieces
            .iter()
            .filter(|piece| piece.kind == PieceKind::Call)
            .peekable();
        let lost = |piece: &Piece| {
            piece
                .call
                .as_ref()
                .is_none_or(|call| !answered.contains(call))
        };
        speech.role == Speaker::User || calls.peek().is_none() || !calls.all(lost)
    });
}

/// Drops lines of thinking whose message says nothing else, and lines of blank text.
fn drop_silent(spoken: &mut Vec<Speech>, placeholders_too: bool) {
    let thinks = |piece: &Piece| piece.kind == PieceKind::Thinking;
    let speaking: HashSet<Box<str>> = spoken
        .iter()
        .filter(|speech| speech.pieces.iter().any(|piece| !thinks(piece)))
        .filter_map(|speech| speech.id.clone())
        .collect();
    let silent = |piece: &Piece| {
        piece.kind == PieceKind::Text && (piece.blank || (placeholders_too && is_no_content(piece)))
    };
    spoken.retain(|speech| {
        let (reply, some) = (speech.role == Speaker::Assistant, !speech.pieces.is_empty());
        let lone = speech.pieces.iter().all(thinks)
            && speech.id.as_ref().is_none_or(|id| !speaking.contains(id));
        !(reply && some && (lone || speech.pieces.iter().all(silent)))
    });
}

fn is_no_content(piece: &Piece) -> bool {
    json::find(piece.json.as_bytes(), &["text"])
        .is_some_and(|span| json::string(span.of(piece.json.as_bytes())).trim() == NO_CONTENT)
}

fn drop_foreign_thinking(spoken: &mut Vec<Speech>) {
    let last = spoken
        .iter()
        .rev()
        .find(|speech| speech.is_known_model)
        .and_then(|speech| speech.model);
    spoken.retain_mut(|speech| {
        let had = !speech.pieces.is_empty();
        if speech.role == Speaker::Assistant && (speech.model != last || last.is_none()) {
            speech
                .pieces
                .retain(|piece| piece.kind != PieceKind::Thinking);
        }
        !had || !speech.pieces.is_empty()
    });
}

/// Moves queued prompts up to the last answer or result before them.
fn hoisted(spoken: Vec<Speech>) -> Vec<Speech> {
    let mut out = Vec::with_capacity(spoken.len());
    let mut rising = Vec::new();
    for speech in spoken.into_iter().rev() {
        let starts_with_result = speech
            .pieces
            .first()
            .is_some_and(|piece| piece.kind == PieceKind::Result);
        if speech.queued {
            rising.push(speech);
        } else {
            if speech.role == Speaker::Assistant || starts_with_result {
                out.append(&mut rising);
            }
            out.push(speech);
        }
    }
    out.append(&mut rising);
    out.reverse();
    out
}

struct Draft {
    id: Option<Box<str>>,
    message: ApiMessage,
}

/// Puts lines into messages: consecutive user lines are one, replies go by their id.
fn join(spoken: Vec<Speech>, rules: &Rules) -> Vec<ApiMessage> {
    let mut drafts: Vec<Draft> = Vec::new();
    for speech in spoken {
        match speech.role {
            Speaker::User => say(&mut drafts, speech, rules),
            Speaker::Assistant => reply(&mut drafts, speech, rules),
        }
    }
    drafts.into_iter().map(|draft| draft.message).collect()
}

fn say(drafts: &mut Vec<Draft>, speech: Speech, rules: &Rules) {
    let Some(last) = drafts
        .last_mut()
        .filter(|draft| draft.message.role == Speaker::User)
    else {
        let mut content = speech.pieces;
        if rules.pairing != Pairing::Full {
            results_first(&mut content);
        }
        drafts.push(Draft {
            id: None,
            message: ApiMessage {
                role: Speaker::User,
                content,
            },
        });
        return;
    };
    let content = &mut last.message.content;
    let texts = |piece: Option<&Piece>| piece.is_some_and(|piece| piece.kind == PieceKind::Text);
    if rules.parts_texts && !speech.queued && texts(content.last()) && texts(speech.pieces.first())
    {
        content.last_mut().into_iter().for_each(end_line);
    }
    content.extend(speech.pieces);
    results_first(content);
}

fn results_first(content: &mut [Piece]) {
    content.sort_by_key(|piece| piece.kind != PieceKind::Result);
}

/// Two prompts in one message are kept apart by a line end.
fn end_line(piece: &mut Piece) {
    let Some(span) = json::find(piece.json.as_bytes(), &["text"]) else {
        return;
    };
    let text = json::string(span.of(piece.json.as_bytes())).into_owned() + "\n";
    let edited = json::splice(
        piece.json.as_bytes(),
        &[(span, json::quoted(&text).into_bytes())],
    );
    piece.json = String::from_utf8_lossy(&edited).into_owned();
}

fn reply(drafts: &mut Vec<Draft>, speech: Speech, rules: &Rules) {
    for draft in drafts.iter_mut().rev() {
        let message = &mut draft.message;
        match message.role {
            Speaker::Assistant if draft.id == speech.id => {
                message.content.extend(speech.pieces);
                return;
            }
            Speaker::Assistant if rules.join == Join::AcrossResults => {}
            Speaker::User
                if rules.join == Join::AcrossResults
                    && message
                        .content
                        .iter()
                        .any(|piece| piece.kind == PieceKind::Result) => {}
            _ => break,
        }
    }
    drafts.push(Draft {
        id: speech.id,
        message: ApiMessage {
            role: Speaker::Assistant,
            content: speech.pieces,
        },
    });
}

fn finish(message: &mut ApiMessage, rules: &Rules) {
    match message.role {
        Speaker::Assistant => {
            if rules.calls_last {
                message
                    .content
                    .sort_by_key(|piece| piece.kind == PieceKind::Call);
            }
            if rules.fills && message.content.is_empty() {
                message.content.push(text_piece(NO_CONTENT, 0));
            }
        }
        Speaker::User if rules.errors_are_text => {
            message.content.iter_mut().for_each(text_of_error)
        }
        Speaker::User => {}
    }
}

/// A failed result with a list of contents keeps only its texts.
fn text_of_error(piece: &mut Piece) {
    if piece.kind != PieceKind::Result || !piece.is_error {
        return;
    }
    let mut value = json::value(piece.json.as_bytes());
    if let Some(items) = value
        .get_mut("content")
        .and_then(|content| content.as_array_mut())
    {
        let before = items.len();
        items.retain(|item| item.get("type").is_some_and(|kind| kind == "text"));
        if items.len() < before {
            piece.json = value.to_string();
        }
    }
}
