//! Which lines are one message.

use std::collections::HashMap;

use crate::json;
use crate::view::client_profile::{ClientRules, MessageJoinRule};
use crate::view::messages::line_content::{
    ContentOrigin, LineContent, is_mark, is_reminder, spliced, text_of,
};
use crate::view::messages::{ApiBlock, ApiBlockKind, ApiMessage, MessageRole};

/// Puts lines into messages: consecutive user lines are one, replies go by their id.
pub(super) fn joined(spoken: Vec<LineContent>, rules: &ClientRules) -> Vec<ApiMessage> {
    let mut drafts = MessageDrafts {
        rules,
        all: Vec::new(),
        replies: HashMap::new(),
    };
    for speech in spoken {
        match speech.role {
            MessageRole::User => drafts.say(speech),
            MessageRole::Assistant => drafts.reply(speech),
        }
    }
    drafts.all.into_iter().map(MessageDraft::message).collect()
}

/// A message in the making.
struct MessageDraft {
    role: MessageRole,
    id: Option<Box<str>>,
    pieces: Vec<ApiBlock>,
    /// The last piece that is no result.
    last_other: Option<usize>,
    has_result: bool,
    /// It is made of several user lines: results go first.
    merged: bool,
}

impl MessageDraft {
    fn new(role: MessageRole, id: Option<Box<str>>, pieces: Vec<ApiBlock>) -> MessageDraft {
        let mut draft = MessageDraft {
            role,
            id,
            pieces: Vec::new(),
            last_other: None,
            has_result: false,
            merged: false,
        };
        draft.extend(pieces);
        draft
    }

    fn extend(&mut self, pieces: Vec<ApiBlock>) {
        let start = self.pieces.len();
        let other = pieces
            .iter()
            .rposition(|piece| piece.kind != ApiBlockKind::Result);
        self.last_other = other.map(|at| start + at).or(self.last_other);
        let is_result = |piece: &ApiBlock| piece.kind == ApiBlockKind::Result;
        self.has_result |= pieces.iter().any(is_result);
        self.pieces.extend(pieces);
    }

    /// The piece that would be sent last.
    fn last(&mut self) -> Option<&mut ApiBlock> {
        let end = self.pieces.len().checked_sub(1);
        let at = self.last_other.filter(|_| self.merged).or(end)?;
        self.pieces.get_mut(at)
    }

    fn message(mut self) -> ApiMessage {
        if self.merged {
            self.pieces
                .sort_by_key(|piece| piece.kind != ApiBlockKind::Result);
        }
        ApiMessage {
            role: self.role,
            content: self.pieces,
        }
    }
}

struct MessageDrafts<'a> {
    rules: &'a ClientRules,
    all: Vec<MessageDraft>,
    /// Replies since the last prompt, by id.
    replies: HashMap<Option<Box<str>>, usize>,
}

impl MessageDrafts<'_> {
    fn say(&mut self, speech: LineContent) {
        let attached = speech.origin == ContentOrigin::Attachment;
        let parts = self.rules.parts_texts && !attached;
        let Some(draft) = self
            .all
            .last_mut()
            .filter(|draft| draft.role == MessageRole::User)
        else {
            self.all
                .push(MessageDraft::new(MessageRole::User, None, speech.pieces));
            return;
        };
        let mut pieces = speech.pieces;
        if attached {
            pieces.retain(|piece| !glue(draft.last(), piece));
        }
        let is_text = |piece: &ApiBlock| piece.kind == ApiBlockKind::Text;
        if parts
            && pieces.first().is_some_and(is_text)
            && let Some(last) = draft.last().filter(|last| is_text(last))
        {
            end_line(last);
        }
        draft.extend(pieces);
        draft.merged = true;
    }

    fn reply(&mut self, speech: LineContent) {
        let join = self.rules.join;
        let parts = |draft: &MessageDraft| match draft.role {
            MessageRole::User => join == MessageJoinRule::Neighbours || !draft.has_result,
            MessageRole::Assistant => {
                join != MessageJoinRule::AcrossReplies && draft.id != speech.id
            }
        };
        if self.all.last().is_some_and(parts) {
            self.replies.clear();
        }
        if let Some(&at) = self.replies.get(&speech.id) {
            self.all[at].extend(speech.pieces);
            return;
        }
        self.replies.insert(speech.id.clone(), self.all.len());
        let draft = MessageDraft::new(MessageRole::Assistant, speech.id, speech.pieces);
        self.all.push(draft);
    }
}

/// Puts a reminder into the result before it; false if it has to stand by itself.
fn glue(last: Option<&mut ApiBlock>, reminder: &ApiBlock) -> bool {
    let Some(result) = last.filter(|last| last.kind == ApiBlockKind::Result) else {
        return false;
    };
    let content = json::find(result.json.as_bytes(), &["content"])
        .filter(|span| span.of(result.json.as_bytes()).starts_with(b"\""));
    let Some(content) = content.filter(|_| is_reminder(reminder)) else {
        return false;
    };
    if !is_mark(reminder) {
        let own = json::string(content.of(result.json.as_bytes())).into_owned();
        let words = text_of(reminder).unwrap_or_default();
        let both = format!("{}\n\n{}", own.trim(), words.trim());
        result.json = spliced(&result.json, (content, json::quoted(&both)));
    }
    true
}

/// Two prompts in one message are kept apart by a line end.
fn end_line(piece: &mut ApiBlock) {
    if let (Some(text), Some(span)) = (text_of(piece), json::find(piece.json.as_bytes(), &["text"]))
    {
        piece.json = spliced(&piece.json, (span, json::quoted(&(text + "\n"))));
    }
}
