//! From live lines to messages: which lines speak, and what of them is sent.

use std::collections::HashSet;

use crate::input::Input;
use crate::json;
use crate::log::Source;
use crate::session::{Index, Session};
use crate::view::messages::join::joined;
use crate::view::messages::speech::{
    NO_CONTENT, Origin, Speech, is_mark, result_piece, speeches, text_of, text_piece,
};
use crate::view::messages::{ApiMessage, Piece, PieceKind, Speaker, pair};
use crate::view::profile::{
    BlankThinking, Completes, ForeignThinking, OutputAnswer, Pairing, Rules,
};

/// What stands in for a result beside others that were written.
const STOPPED: &str = "[Request interrupted by user for tool use]";

/// What stands in for a result that was never written.
const INTERRUPTED: &str =
    "[Tool call interrupted: the session ended before this call's result was recorded]";

/// The messages a client would send.
pub(super) fn assemble(
    session: &Session,
    source: &dyn Source,
    lines: &[Index],
    rules: &Rules,
) -> Vec<ApiMessage> {
    let mut spoken = speeches(session, source, lines, rules);
    complete(&mut spoken, rules);
    drop_unanswered(&mut spoken, rules);
    let model = model(session, &spoken, rules);
    if rules.drops_thinking_alone {
        drop_silent(&mut spoken, rules);
    }
    drop_foreign_thinking(session, &mut spoken, model, rules);
    if !rules.fills_empty {
        spoken.retain(|speech| !speech.pieces.is_empty());
    }
    drop_empty_start(&mut spoken, rules);
    answer_before_output(session, &mut spoken, rules);
    let mut drafts = joined(hoisted(spoken), rules);
    if rules.blank_thinking == BlankThinking::LeavesGap {
        let thinks = |piece: &Piece| piece.kind == PieceKind::Thinking;
        drafts.retain(|draft| draft.content.is_empty() || !draft.content.iter().all(thinks));
    }
    for draft in &mut drafts {
        finish(draft, rules);
    }
    let mut messages = match rules.pairing {
        Pairing::None => drafts,
        _ => pair::paired(drafts, rules),
    };
    messages.retain_mut(without_marks);
    messages
}

/// The messages by our own rules, before the API's rules are applied.
pub(super) fn assemble_own(
    session: &Session,
    source: &dyn Source,
    lines: &[Index],
    rules: &Rules,
) -> Vec<ApiMessage> {
    let mut spoken = speeches(session, source, lines, rules);
    let model = model(session, &spoken, rules);
    drop_foreign_thinking(session, &mut spoken, model, rules);
    joined(spoken, rules)
}

/// The message without the places of reminders; false if it held nothing else.
fn without_marks(message: &mut ApiMessage) -> bool {
    let before = message.content.len();
    message.content.retain(|piece| !is_mark(piece));
    message.content.len() == before || !message.content.is_empty()
}

/// The model that the session goes on with: the last one of a family the client knows.
fn model<'a>(session: &'a Session, spoken: &[Speech], rules: &Rules) -> Option<&'a str> {
    let mut models = spoken.iter().rev().filter_map(|speech| speech.model);
    let last = models.find_map(|model| {
        let name = session.text(model);
        ["opus", "sonnet", "haiku", "fable"]
            .iter()
            .any(|family| name.contains(family))
            .then_some(name)
    })?;
    let (unknown, instead) = rules.unknown_models;
    let is_unknown = unknown.iter().any(|part| last.contains(part));
    Some(if is_unknown { instead } else { last })
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

/// Gives calls at the very end a result that says what happened.
fn complete(spoken: &mut Vec<Speech>, rules: &Rules) {
    if rules.completes == Completes::Never {
        return;
    }
    let conversation = |speech: &Speech| speech.origin == Origin::Line;
    let Some(last) = spoken
        .iter()
        .rposition(|speech| speech.role == Speaker::Assistant)
    else {
        return;
    };
    let only_results = spoken[last + 1..]
        .iter()
        .filter(|speech| conversation(speech))
        .all(|speech| speech.has(PieceKind::Result));
    if !only_results {
        return;
    }
    let answered = answers(spoken);
    let id = spoken[last].id.clone();
    // Lines without an id share one, up to the prompt that they answer.
    let is_prompt = |speech: &Speech| {
        speech.role == Speaker::User && conversation(speech) && !speech.has(PieceKind::Result)
    };
    let first = match id {
        Some(_) => 0,
        None => spoken[..last].iter().rposition(is_prompt).unwrap_or(0),
    };
    let same = spoken[first..]
        .iter()
        .filter(|speech| speech.role == Speaker::Assistant && speech.id == id);
    let calls = same
        .flat_map(|speech| &speech.pieces)
        .filter(|piece| piece.kind == PieceKind::Call)
        .filter_map(|piece| piece.call.as_deref());
    let (had, open): (Vec<&str>, Vec<&str>) = calls.partition(|call| answered.contains(*call));
    let words = match rules.completes {
        Completes::Always => INTERRUPTED,
        Completes::BesideResults if id.is_some() && !had.is_empty() => STOPPED,
        Completes::BesideResults | Completes::Never => return,
    };
    let pieces: Vec<Piece> = open.iter().map(|call| result_piece(call, words)).collect();
    if !pieces.is_empty() {
        spoken.push(Speech::user(Origin::Line, pieces));
    }
}

/// Drops calls that got no result, or lines whose calls all got none.
fn drop_unanswered(spoken: &mut Vec<Speech>, rules: &Rules) {
    let answered = answers(spoken);
    if rules.open_calls_alone {
        let stays = |piece: &Piece| {
            let call = piece
                .call
                .as_ref()
                .filter(|_| piece.kind == PieceKind::Call);
            piece.kind != PieceKind::Call || call.is_some_and(|call| answered.contains(call))
        };
        spoken.retain_mut(|speech| {
            let had = speech.has(PieceKind::Call);
            speech.pieces.retain(stays);
            !had || !speech.pieces.is_empty()
        });
        return;
    }
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
fn drop_silent(spoken: &mut Vec<Speech>, rules: &Rules) {
    let thinks = |piece: &Piece| piece.kind == PieceKind::Thinking;
    let silent = |piece: &Piece| {
        piece.kind == PieceKind::Text
            && (piece.blank || (rules.drops_no_content && is_no_content(piece)))
    };
    let ids = |spoken: &[Speech], says: &dyn Fn(&Speech) -> bool| -> HashSet<Box<str>> {
        let speaking = spoken.iter().filter(|speech| says(speech));
        speaking.filter_map(|speech| speech.id.clone()).collect()
    };
    let gone = rules.blank_thinking == BlankThinking::Dropped;
    let with_words = |speech: &Speech| {
        let line = rules.drops_blank_thought && speech.has(PieceKind::Thinking);
        let mute = |piece: &Piece| thinks(piece) || ((gone || line) && silent(piece));
        !speech.pieces.iter().all(mute)
    };
    let is_among = |speech: &Speech, ids: &HashSet<Box<str>>| {
        speech.id.as_ref().is_some_and(|id| ids.contains(id))
    };
    let is_reply = |speech: &Speech| speech.role == Speaker::Assistant && !speech.pieces.is_empty();
    let speaking = ids(spoken, &with_words);
    spoken.retain(|speech| !is_reply(speech) || with_words(speech) || is_among(speech, &speaking));
    if !rules.drops_blank {
        return;
    }
    let is_silent = |speech: &Speech| speech.pieces.iter().all(silent);
    let solid = ids(spoken, &|speech| {
        rules.keeps_blank && with_words(speech) && !is_silent(speech)
    });
    let is_empty = |speech: &Speech| speech.pieces.iter().all(|piece| piece.empty);
    spoken.retain(|speech| {
        let kept = is_empty(speech) && is_among(speech, &solid);
        !is_reply(speech) || !is_silent(speech) || kept
    });
}

/// Drops a first prompt without words: with reminders in its message it need not say so.
fn drop_empty_start(spoken: &mut Vec<Speech>, rules: &Rules) {
    let says_nothing = |speech: &Speech| {
        let nothing = |piece: &Piece| {
            rules.drops_empty_start
                && piece.kind == PieceKind::Text
                && (piece.blank || is_no_content(piece))
        };
        speech.role == Speaker::User && speech.pieces.iter().all(nothing)
    };
    if spoken.first().is_some_and(says_nothing) {
        spoken.remove(0);
    }
}

/// A conversation that is open before the output of local commands at its end is answered
/// there, as every resume answers an open one.
fn answer_before_output(session: &Session, spoken: &mut Vec<Speech>, rules: &Rules) {
    let output = |speech: &Speech| speech.origin == Origin::System;
    let end = spoken.iter().rposition(|speech| !output(speech));
    let Some(last) = end.filter(|&last| last + 1 < spoken.len()) else {
        return;
    };
    let speech = &spoken[last];
    let is_command = || {
        let line = speech.pieces.last().and_then(|piece| piece.record);
        line.is_some_and(|at| session.records[at as usize].input == Input::Command)
    };
    let open = match rules.answers_before_output {
        OutputAnswer::Never => false,
        OutputAnswer::ToPrompts => !speech.has(PieceKind::Result),
        OutputAnswer::ToAllButCommands => !is_command(),
    };
    if open && speech.role == Speaker::User && speech.origin == Origin::Line {
        let answer = Piece {
            record: None,
            ..text_piece(NO_RESPONSE, 0)
        };
        let answer = Speech {
            role: Speaker::Assistant,
            ..Speech::user(Origin::Line, vec![answer])
        };
        spoken.insert(last + 1, answer);
    }
}

/// What a client answers for the model where a conversation is open.
const NO_RESPONSE: &str = "No response requested.";

fn is_no_content(piece: &Piece) -> bool {
    text_of(piece).is_some_and(|text| text.trim() == NO_CONTENT)
}

fn drop_foreign_thinking(
    session: &Session,
    spoken: &mut Vec<Speech>,
    model: Option<&str>,
    rules: &Rules,
) {
    let goes = |piece: &Piece| match rules.foreign_thinking {
        ForeignThinking::Kept => false,
        ForeignThinking::DroppedIfSigned => is_signed(piece),
    };
    spoken.retain_mut(|speech| {
        let had = !speech.pieces.is_empty();
        let own = model.is_some() && speech.model.map(|own| session.text(own)) == model;
        if speech.role == Speaker::Assistant && !own {
            speech
                .pieces
                .retain(|piece| piece.kind != PieceKind::Thinking || !goes(piece));
        }
        !had || !speech.pieces.is_empty()
    });
}

fn is_signed(piece: &Piece) -> bool {
    let bytes = piece.json.as_bytes();
    let filled = |field| json::find(bytes, &[field]).is_some_and(|span| span.len > 2);
    filled("signature") || filled("data")
}

/// Moves attachments up to the last reply or result before them.
fn hoisted(spoken: Vec<Speech>) -> Vec<Speech> {
    let mut out = Vec::with_capacity(spoken.len());
    let mut rising = Vec::new();
    for speech in spoken.into_iter().rev() {
        let starts_with_result = speech
            .pieces
            .first()
            .is_some_and(|piece| piece.kind == PieceKind::Result);
        if speech.origin == Origin::Attachment {
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

fn finish(message: &mut ApiMessage, rules: &Rules) {
    match message.role {
        Speaker::Assistant => {
            if rules.calls_last {
                message
                    .content
                    .sort_by_key(|piece| piece.kind == PieceKind::Call);
            }
            if rules.fills_empty && message.content.is_empty() {
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
