//! Makes room: the conversation becomes a summary.
//!
//! There is always a way. The whole conversation is asked to be summed up; if that is too long,
//! the same without the bodies of results; then piece by piece; and if the model cannot help
//! at all, what was asked and said last is put together without it. What was said last stays
//! as it is behind the summary, which covers it all the same: old clients do not read it.

use std::collections::HashSet;
use std::time::Instant;

use serde_json::{Value, json};
use unspool_model::entry_writer::PreservedTail;
use unspool_model::id::Id;
use unspool_model::token_estimate;
use unspool_model::view::messages::{ApiBlockKind, ApiMessage, MessageRole, to_json};

use crate::api::client::{MessagesRequest, is_too_long};
use crate::api::model;
use crate::driver::{SharedSession, lock};
use crate::request::{conversation, user_message};
use crate::stop::StopSignal;
use crate::system_prompt;
use crate::transcript_writer::new_id;

/// A summary.
#[derive(Clone, Debug)]
pub(crate) struct CompactionSummary {
    /// What it says.
    pub(crate) text: String,
    /// Tokens before.
    pub(crate) before: u64,
    /// How long it took.
    pub(crate) ms: u64,
    /// What stays said behind it.
    pub(crate) kept: Option<PreservedTail>,
    /// Tokens of that.
    pub(crate) kept_tokens: u64,
}

/// So many tokens a summary may take.
const MOST: u64 = 20_000;
/// So many tokens of what was said last stay, at most.
const TAIL: u64 = 10_000;
/// So much of a result is kept when bodies go.
const KEPT: usize = 400;

/// Makes a summary of the conversation.
pub(crate) fn summarize_conversation(
    shared: &SharedSession,
    trigger: &str,
    about: Option<&str>,
    before: u64,
    stop: &StopSignal,
) -> Result<CompactionSummary, String> {
    let began = Instant::now();
    let mut input = shared.about("PreCompact");
    input["trigger"] = trigger.into();
    input["custom_instructions"] = about.unwrap_or_default().into();
    let hooks = shared.hooks.run("PreCompact", Some(trigger), &input, stop);
    if let Some(why) = hooks.block {
        return Err(why);
    }
    let (frame, messages, path, kept) = {
        let record = lock(&shared.record);
        let frame = lock(&shared.frame).clone();
        let messages = conversation(&record, &frame.model);
        let most = TAIL.min(model::window(&frame.model, 0, &shared.prices) / 20);
        // Of what is small, little stays: whoever wants a summary wants it to be short.
        let kept = record.tail(most.min(before / 4), most);
        (frame, messages, record.path().to_owned(), kept)
    };
    let messages = messages.ok_or("there is nothing to summarize")?;
    let mut wish = system_prompt::SUMMARY.to_owned();
    if let Some(about) = about.filter(|about| !about.trim().is_empty()) {
        wish += &format!("\n\nThe person wants it to be about this in particular: {about}");
    }
    let window = model::window(&frame.model, 0, &shared.prices);
    let mut maker = ConversationSummarizer {
        shared,
        stop,
        ask: MessagesRequest {
            most: MOST.min(model::most_output(&frame.model)),
            ..frame.with(String::new())
        },
        wish,
        window,
        refused: false,
    };
    let kept_tokens = kept_tokens(&messages, &kept, shared);
    let text = maker.sum_up(messages, before)?;
    // What the API refused for a reason we do not know must not come back.
    let kept = (!kept.is_empty() && !maker.refused).then(|| PreservedTail {
        anchor: new_id(),
        uuids: kept,
    });
    Ok(CompactionSummary {
        kept,
        kept_tokens,
        text: system_prompt::summary_message(&text, &path),
        before,
        ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}

struct ConversationSummarizer<'a> {
    shared: &'a SharedSession,
    stop: &'a StopSignal,
    ask: MessagesRequest,
    wish: String,
    window: u64,
    /// The API did not take the conversation, and not because it is long.
    refused: bool,
}

impl ConversationSummarizer<'_> {
    fn sum_up(&mut self, messages: Vec<ApiMessage>, tokens: u64) -> Result<String, String> {
        // What cannot fit is not tried.
        if tokens + MOST < self.window
            && let Some(text) = self.whole(&messages)?
        {
            return Ok(text);
        }
        let lean = lean(&messages);
        let size: usize = size(&lean);
        if size as u64 / 3 + MOST < self.window
            && let Some(text) = self.whole(&lean)?
        {
            return Ok(text);
        }
        match self.by_pieces(&lean)? {
            Some(text) => Ok(text),
            None => Ok(alone(&messages)),
        }
    }

    /// Asks once; `None` if it does not fit, or if there are no words.
    fn whole(&mut self, messages: &[ApiMessage]) -> Result<Option<String>, String> {
        let mut messages = messages.to_vec();
        messages.push(user_message(&self.wish));
        self.say(to_json(&messages))
    }

    fn say(&mut self, messages: String) -> Result<Option<String>, String> {
        let mut ask = self.ask.clone();
        ask.messages = messages;
        let answered = self.shared.client.collect(ask, self.stop);
        match answered {
            Ok((blocks, message)) => {
                lock(&self.shared.spent).add(&message.model, &message.usage, &self.shared.prices);
                let texts = blocks
                    .iter()
                    .filter_map(|block| block.json["text"].as_str());
                let text = texts.collect::<Vec<_>>().join("\n");
                Ok((!text.trim().is_empty()).then_some(text))
            }
            // What the API does not take as it is, it may take shorter or as plain text.
            Err(trouble) if is_too_long(&trouble) => Ok(None),
            Err(trouble) if trouble.status() == Some(400) => {
                self.refused = true;
                Ok(None)
            }
            Err(trouble) => Err(crate::state_machine::api_error(&trouble)),
        }
    }

    /// Sums up one piece after the other, each with the summary of what was before it.
    fn by_pieces(&mut self, messages: &[ApiMessage]) -> Result<Option<String>, String> {
        let room = usize::try_from(self.window)
            .unwrap_or(usize::MAX)
            .saturating_mul(3)
            / 2;
        let mut summary = String::new();
        let mut piece = String::new();
        let mut rest = messages.iter().map(told).peekable();
        while let Some(line) = rest.next() {
            piece += &line;
            let next = rest.peek().map_or(0, String::len);
            if rest.peek().is_some() && piece.len() + next < room {
                continue;
            }
            cut(&mut piece, room);
            let prompt = format!(
                "{}\n\nSummary of what went before:\n{}\n\nThe next part of the conversation:\n{}",
                self.wish,
                if summary.is_empty() {
                    "(this is the beginning)"
                } else {
                    &summary
                },
                piece
            );
            match self.say(to_json(&[user_message(&prompt)]))? {
                Some(text) => summary = text,
                None => return Ok(None),
            }
            piece.clear();
        }
        Ok((!summary.is_empty()).then_some(summary))
    }
}

/// Tokens of what stays.
fn kept_tokens(messages: &[ApiMessage], kept: &[String], shared: &SharedSession) -> u64 {
    let record = lock(&shared.record);
    let Some(session) = record.session() else {
        return 0;
    };
    let lines: HashSet<u32> = kept
        .iter()
        .filter_map(|id| session.find(&Id::new(id)))
        .collect();
    let pieces = messages.iter().flat_map(|message| &message.content);
    let of_tail = pieces.filter(|piece| piece.record.is_some_and(|at| lines.contains(&at)));
    of_tail
        .map(|piece| token_estimate::of_text(&piece.json))
        .sum()
}

fn size(messages: &[ApiMessage]) -> usize {
    let pieces = messages.iter().flat_map(|message| &message.content);
    pieces.map(|piece| piece.json.len()).sum()
}

/// The same without the bodies of results, and without images.
fn lean(messages: &[ApiMessage]) -> Vec<ApiMessage> {
    let mut lean = messages.to_vec();
    let pieces = lean.iter_mut().flat_map(|message| {
        let role = message.role;
        message.content.iter_mut().map(move |piece| (role, piece))
    });
    for (role, piece) in pieces {
        let shorter = match piece.kind {
            // A search of the API's own is sent whole or not at all.
            ApiBlockKind::Other if role == MessageRole::Assistant => {
                json!({"type": "text", "text": "[a search]"})
            }
            ApiBlockKind::Result if piece.json.len() > 2 * KEPT => {
                let mut block: Value = serde_json::from_str(&piece.json).unwrap_or_default();
                let mut text = match &block["content"] {
                    Value::String(text) => text.clone(),
                    other => {
                        let blocks = other.as_array().into_iter().flatten();
                        let texts = blocks.filter_map(|block| block["text"].as_str());
                        texts.collect::<Vec<_>>().join("\n")
                    }
                };
                cut(&mut text, KEPT);
                block["content"] = format!("{text} [shortened]").into();
                block
            }
            ApiBlockKind::Other if piece.json.len() > 2 * KEPT => {
                json!({"type": "text", "text": "[an image or document]"})
            }
            _ => continue,
        };
        if piece.kind == ApiBlockKind::Other {
            piece.kind = ApiBlockKind::Text;
        }
        piece.json = shorter.to_string();
    }
    lean
}

/// A message as plain text.
fn told(message: &ApiMessage) -> String {
    let mut text = format!("\n[{}]\n", message.role.name());
    for piece in &message.content {
        let block: Value = serde_json::from_str(&piece.json).unwrap_or_default();
        let said = match piece.kind {
            ApiBlockKind::Thinking => continue,
            ApiBlockKind::Text => block["text"].as_str().unwrap_or_default().to_owned(),
            ApiBlockKind::Call => format!("(calls {} with {})", block["name"], block["input"]),
            ApiBlockKind::Result => format!("(result: {})", block["content"]),
            ApiBlockKind::Other => continue,
        };
        text += &said;
        text.push('\n');
    }
    text
}

fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        let end = (0..=most).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
    }
}

/// What can be said without the model: what was asked, and what was said last.
fn alone(messages: &[ApiMessage]) -> String {
    let texts = |role: MessageRole| {
        let of_role = messages.iter().filter(move |message| message.role == role);
        let pieces = of_role.flat_map(|message| &message.content);
        let spoken = pieces.filter(|piece| piece.kind == ApiBlockKind::Text);
        spoken.filter_map(|piece| {
            let block: Value = serde_json::from_str(&piece.json).ok()?;
            let mut text = block["text"].as_str()?.trim().to_owned();
            cut(&mut text, 2_000);
            Some(text)
        })
    };
    let asked: Vec<String> = texts(MessageRole::User).collect();
    let answered: Vec<String> = texts(MessageRole::Assistant).collect();
    let last = |list: &[String], count: usize| {
        let from = list.len().saturating_sub(count);
        list[from..].join("\n---\n")
    };
    format!(
        "No summary could be made by the model. What was asked, the last twenty times:\n{}\n\nWhat was answered, the last five times:\n{}",
        last(&asked, 20),
        last(&answered, 5)
    )
}
