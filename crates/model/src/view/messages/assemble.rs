//! From live lines to messages: which lines speak, and what of them is sent.

use std::collections::HashSet;

use crate::json;
use crate::log::TranscriptSource;
use crate::session::{Index, Session};
use crate::user_input::UserInput;
use crate::view::client_profile::{
    BlankThinkingRule, ClientRules, ForeignThinkingRule, OpenCallRule, OutputAnswerRule,
    PairingRule,
};
use crate::view::messages::line_content::{
    ContentOrigin, LineContent, NO_CONTENT, is_mark, result_piece, speeches, text_of, text_piece,
};
use crate::view::messages::message_joining::joined;
use crate::view::messages::{ApiBlock, ApiBlockKind, ApiMessage, MessageRole, call_pairing};

/// What stands in for a result beside others that were written.
const STOPPED: &str = "[Request interrupted by user for tool use]";

/// What stands in for a result that was never written.
const INTERRUPTED: &str =
    "[Tool call interrupted: the session ended before this call's result was recorded]";

/// The messages a client would send.
pub(super) fn assemble(
    session: &Session,
    source: &dyn TranscriptSource,
    lines: &[Index],
    rules: &ClientRules,
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
    if rules.blank_thinking == BlankThinkingRule::LeavesGap {
        let thinks = |piece: &ApiBlock| piece.kind == ApiBlockKind::Thinking;
        drafts.retain(|draft| draft.content.is_empty() || !draft.content.iter().all(thinks));
    }
    for draft in &mut drafts {
        finish(draft, rules);
    }
    let mut messages = match rules.pairing {
        PairingRule::None => drafts,
        _ => call_pairing::paired(drafts, rules),
    };
    messages.retain_mut(without_marks);
    messages
}

/// The messages by our own rules, before the API's rules are applied.
pub(super) fn assemble_own(
    session: &Session,
    source: &dyn TranscriptSource,
    lines: &[Index],
    rules: &ClientRules,
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
fn model<'a>(session: &'a Session, spoken: &[LineContent], rules: &ClientRules) -> Option<&'a str> {
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

fn answers(spoken: &[LineContent]) -> HashSet<Box<str>> {
    let pieces = spoken
        .iter()
        .filter(|speech| speech.role == MessageRole::User)
        .flat_map(|speech| &speech.pieces);
    pieces
        .filter(|piece| piece.kind == ApiBlockKind::Result)
        .filter_map(|piece| piece.call.clone())
        .collect()
}

/// Gives calls at the very end a result that says what happened.
fn complete(spoken: &mut Vec<LineContent>, rules: &ClientRules) {
    if rules.completes == OpenCallRule::Never {
        return;
    }
    let conversation = |speech: &LineContent| speech.origin == ContentOrigin::Line;
    let Some(last) = spoken
        .iter()
        .rposition(|speech| speech.role == MessageRole::Assistant)
    else {
        return;
    };
    let only_results = spoken[last + 1..]
        .iter()
        .filter(|speech| conversation(speech))
        .all(|speech| speech.has(ApiBlockKind::Result));
    if !only_results {
        return;
    }
    let answered = answers(spoken);
    let id = spoken[last].id.clone();
    // Lines without an id share one, up to the prompt that they answer.
    let is_prompt = |speech: &LineContent| {
        speech.role == MessageRole::User
            && conversation(speech)
            && !speech.has(ApiBlockKind::Result)
    };
    let first = match id {
        Some(_) => 0,
        None => spoken[..last].iter().rposition(is_prompt).unwrap_or(0),
    };
    let same = spoken[first..]
        .iter()
        .filter(|speech| speech.role == MessageRole::Assistant && speech.id == id);
    let calls = same
        .flat_map(|speech| &speech.pieces)
        .filter(|piece| piece.kind == ApiBlockKind::Call)
        .filter_map(|piece| piece.call.as_deref());
    let (had, open): (Vec<&str>, Vec<&str>) = calls.partition(|call| answered.contains(*call));
    let words = match rules.completes {
        OpenCallRule::Always => INTERRUPTED,
        OpenCallRule::BesideResults if id.is_some() && !had.is_empty() => STOPPED,
        OpenCallRule::BesideResults | OpenCallRule::Never => return,
    };
    let pieces: Vec<ApiBlock> = open.iter().map(|call| result_piece(call, words)).collect();
    if !pieces.is_empty() {
        spoken.push(LineContent::user(ContentOrigin::Line, pieces));
    }
}

/// Drops calls that got no result, or lines whose calls all got none.
fn drop_unanswered(spoken: &mut Vec<LineContent>, rules: &ClientRules) {
    let answered = answers(spoken);
    if rules.open_calls_alone {
        let stays = |piece: &ApiBlock| {
            let call = piece
                .call
                .as_ref()
                .filter(|_| piece.kind == ApiBlockKind::Call);
            piece.kind != ApiBlockKind::Call || call.is_some_and(|call| answered.contains(call))
        };
        spoken.retain_mut(|speech| {
            let had = speech.has(ApiBlockKind::Call);
            speech.pieces.retain(stays);
            !had || !speech.pieces.is_empty()
        });
        return;
    }
    spoken.retain(|speech| {
        let mut calls = speech
            .pieces
            .iter()
            .filter(|piece| piece.kind == ApiBlockKind::Call)
            .peekable();
        let lost = |piece: &ApiBlock| {
            piece
                .call
                .as_ref()
                .is_none_or(|call| !answered.contains(call))
        };
        speech.role == MessageRole::User || calls.peek().is_none() || !calls.all(lost)
    });
}

/// Drops lines of thinking whose message says nothing else, and lines of blank text.
fn drop_silent(spoken: &mut Vec<LineContent>, rules: &ClientRules) {
    let thinks = |piece: &ApiBlock| piece.kind == ApiBlockKind::Thinking;
    let silent = |piece: &ApiBlock| {
        piece.kind == ApiBlockKind::Text
            && (piece.blank || (rules.drops_no_content && is_no_content(piece)))
    };
    let ids = |spoken: &[LineContent], says: &dyn Fn(&LineContent) -> bool| -> HashSet<Box<str>> {
        let speaking = spoken.iter().filter(|speech| says(speech));
        speaking.filter_map(|speech| speech.id.clone()).collect()
    };
    let gone = rules.blank_thinking == BlankThinkingRule::Dropped;
    let with_words = |speech: &LineContent| {
        let line = rules.drops_blank_thought && speech.has(ApiBlockKind::Thinking);
        let mute = |piece: &ApiBlock| thinks(piece) || ((gone || line) && silent(piece));
        !speech.pieces.iter().all(mute)
    };
    let is_among = |speech: &LineContent, ids: &HashSet<Box<str>>| {
        speech.id.as_ref().is_some_and(|id| ids.contains(id))
    };
    let is_reply =
        |speech: &LineContent| speech.role == MessageRole::Assistant && !speech.pieces.is_empty();
    let speaking = ids(spoken, &with_words);
    spoken.retain(|speech| !is_reply(speech) || with_words(speech) || is_among(speech, &speaking));
    if !rules.drops_blank {
        return;
    }
    let is_silent = |speech: &LineContent| speech.pieces.iter().all(silent);
    let solid = ids(spoken, &|speech| {
        rules.keeps_blank && with_words(speech) && !is_silent(speech)
    });
    let is_empty = |speech: &LineContent| speech.pieces.iter().all(|piece| piece.empty);
    spoken.retain(|speech| {
        let kept = is_empty(speech) && is_among(speech, &solid);
        !is_reply(speech) || !is_silent(speech) || kept
    });
}

/// Drops a first prompt without words: with reminders in its message it need not say so.
fn drop_empty_start(spoken: &mut Vec<LineContent>, rules: &ClientRules) {
    let says_nothing = |speech: &LineContent| {
        let nothing = |piece: &ApiBlock| {
            rules.drops_empty_start
                && piece.kind == ApiBlockKind::Text
                && (piece.blank || is_no_content(piece))
        };
        speech.role == MessageRole::User && speech.pieces.iter().all(nothing)
    };
    if spoken.first().is_some_and(says_nothing) {
        spoken.remove(0);
    }
}

/// A conversation that is open before the output of local commands at its end is answered
/// there, as every resume answers an open one.
fn answer_before_output(session: &Session, spoken: &mut Vec<LineContent>, rules: &ClientRules) {
    let output = |speech: &LineContent| speech.origin == ContentOrigin::System;
    let end = spoken.iter().rposition(|speech| !output(speech));
    let Some(last) = end.filter(|&last| last + 1 < spoken.len()) else {
        return;
    };
    let speech = &spoken[last];
    let is_command = || {
        let line = speech.pieces.last().and_then(|piece| piece.record);
        line.is_some_and(|at| session.records[at as usize].input == UserInput::Command)
    };
    let open = match rules.answers_before_output {
        OutputAnswerRule::Never => false,
        OutputAnswerRule::ToPrompts => !speech.has(ApiBlockKind::Result),
        OutputAnswerRule::ToAllButCommands => !is_command(),
    };
    if open && speech.role == MessageRole::User && speech.origin == ContentOrigin::Line {
        let answer = ApiBlock {
            record: None,
            ..text_piece(NO_RESPONSE, 0)
        };
        let answer = LineContent {
            role: MessageRole::Assistant,
            ..LineContent::user(ContentOrigin::Line, vec![answer])
        };
        spoken.insert(last + 1, answer);
    }
}

/// What a client answers for the model where a conversation is open.
const NO_RESPONSE: &str = "No response requested.";

fn is_no_content(piece: &ApiBlock) -> bool {
    text_of(piece).is_some_and(|text| text.trim() == NO_CONTENT)
}

fn drop_foreign_thinking(
    session: &Session,
    spoken: &mut Vec<LineContent>,
    model: Option<&str>,
    rules: &ClientRules,
) {
    let goes = |piece: &ApiBlock| match rules.foreign_thinking {
        ForeignThinkingRule::Kept => false,
        ForeignThinkingRule::DroppedIfSigned => is_signed(piece),
    };
    spoken.retain_mut(|speech| {
        let had = !speech.pieces.is_empty();
        let own = model.is_some() && speech.model.map(|own| session.text(own)) == model;
        if speech.role == MessageRole::Assistant && !own {
            speech
                .pieces
                .retain(|piece| piece.kind != ApiBlockKind::Thinking || !goes(piece));
        }
        !had || !speech.pieces.is_empty()
    });
}

fn is_signed(piece: &ApiBlock) -> bool {
    let bytes = piece.json.as_bytes();
    let filled = |field| json::find(bytes, &[field]).is_some_and(|span| span.len > 2);
    filled("signature") || filled("data")
}

/// Moves attachments up to the last reply or result before them.
fn hoisted(spoken: Vec<LineContent>) -> Vec<LineContent> {
    let mut out = Vec::with_capacity(spoken.len());
    let mut rising = Vec::new();
    for speech in spoken.into_iter().rev() {
        let starts_with_result = speech
            .pieces
            .first()
            .is_some_and(|piece| piece.kind == ApiBlockKind::Result);
        if speech.origin == ContentOrigin::Attachment {
            rising.push(speech);
        } else {
            if speech.role == MessageRole::Assistant || starts_with_result {
                out.append(&mut rising);
            }
            out.push(speech);
        }
    }
    out.append(&mut rising);
    out.reverse();
    out
}

fn finish(message: &mut ApiMessage, rules: &ClientRules) {
    match message.role {
        MessageRole::Assistant => {
            if rules.calls_last {
                message
                    .content
                    .sort_by_key(|piece| piece.kind == ApiBlockKind::Call);
            }
            if rules.fills_empty && message.content.is_empty() {
                message.content.push(text_piece(NO_CONTENT, 0));
            }
        }
        MessageRole::User if rules.errors_are_text => {
            message.content.iter_mut().for_each(text_of_error)
        }
        MessageRole::User => {}
    }
}

/// A failed result with a list of contents keeps only its texts.
fn text_of_error(piece: &mut ApiBlock) {
    if piece.kind != ApiBlockKind::Result || !piece.is_error {
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
