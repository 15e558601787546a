//! What fills the context: the live conversation by category and by its largest pieces.
//!
//! The API says how many tokens the last reply was given, not what they were. Pieces are
//! estimated from their text; what the estimate does not explain is the system prompt and the
//! tool descriptions, which no transcript holds.

use std::collections::BTreeMap;

use crate::entry::{self, LineKind};
use crate::json;
use crate::log::TranscriptSource;
use crate::session::{Index, Session};
use crate::token_estimate;
use crate::user_input::UserInput;
use crate::view::client_profile::ClientProfile;
use crate::view::messages::{self, ApiBlock, ApiBlockKind, ResumeResult};
use crate::view::session_row;

/// A kind of content and its part of the context.
#[derive(Clone, Debug, PartialEq)]
pub struct CategoryRow {
    /// What it is, such as `prompts` or `results Read`.
    pub category: String,
    /// Tokens.
    pub tokens: u64,
    /// Part of the whole, from 0 to 1.
    pub share: f64,
    /// The option of `clone` that would free it.
    pub freed_by: Option<&'static str>,
}

/// One large piece.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextItemRow {
    /// Its category.
    pub category: String,
    /// Tokens.
    pub tokens: u64,
    /// Part of the whole.
    pub share: f64,
    /// What a person recognises it by.
    pub label: String,
    /// Its line.
    pub line: u32,
    /// The id of that line.
    pub uuid: String,
}

/// What fills the context.
#[derive(Clone, Debug, Default)]
pub struct ContextUsage {
    /// Tokens in all: as the last reply was given, else the sum of the estimates.
    pub tokens: u64,
    /// Whether the API said so.
    pub measured: bool,
    /// Categories, largest first.
    pub categories: Vec<CategoryRow>,
    /// The largest pieces, largest first.
    pub largest: Vec<ContextItemRow>,
}

struct ContextItem {
    category: String,
    tokens: u64,
    record: Index,
}

/// Attributes the live context. `most` pieces are named.
pub fn context(session: &Session, source: &dyn TranscriptSource, most: usize) -> ContextUsage {
    let mut items = said(session, source);
    items.extend(attached(session, source));
    let estimated: u64 = items.iter().map(|item| item.tokens).sum();
    let measured = session_row::context_tokens(session);
    let total = measured.unwrap_or(estimated).max(1);
    // Never claim more than there is: an estimate that overshoots is scaled down.
    let scale = if estimated > total {
        total as f64 / estimated as f64
    } else {
        1.0
    };
    for item in &mut items {
        item.tokens = (item.tokens as f64 * scale).floor() as u64;
    }
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for item in &items {
        *sums.entry(item.category.clone()).or_default() += item.tokens;
    }
    let explained: u64 = sums.values().sum();
    if measured.is_some() && explained < total {
        *sums.entry("system".to_owned()).or_default() += total - explained;
    }
    let share = |tokens: u64| tokens as f64 / total as f64;
    let mut categories: Vec<CategoryRow> = sums
        .into_iter()
        .map(|(category, tokens)| CategoryRow {
            freed_by: freed_by(&category),
            share: share(tokens),
            tokens,
            category,
        })
        .collect();
    categories.sort_by(|a, b| b.tokens.cmp(&a.tokens).then(a.category.cmp(&b.category)));
    items.sort_by(|a, b| b.tokens.cmp(&a.tokens).then(a.record.cmp(&b.record)));
    let largest = items
        .iter()
        .take(most)
        .map(|item| item_row(session, source, item, share(item.tokens)))
        .collect();
    ContextUsage {
        tokens: measured.unwrap_or(explained),
        measured: measured.is_some(),
        categories,
        largest,
    }
}

fn freed_by(category: &str) -> Option<&'static str> {
    match category {
        "thinking" => Some("--strip-thinking"),
        "tool inputs" => Some("--keep-tools"),
        _ if category.starts_with("results ") => Some("--results-over"),
        _ => None,
    }
}

/// Prompts, replies, thinking, calls and results.
fn said(session: &Session, source: &dyn TranscriptSource) -> Vec<ContextItem> {
    let ResumeResult::Messages(messages) =
        messages::messages(session, source, ClientProfile::Strict)
    else {
        return Vec::new();
    };
    let pieces = messages.iter().flat_map(|message| &message.content);
    pieces
        .filter_map(|piece| {
            Some(ContextItem {
                category: category(session, piece),
                tokens: estimate(&piece.json),
                record: piece.record?,
            })
        })
        .collect()
}

fn category(session: &Session, piece: &ApiBlock) -> String {
    let record = piece.record.map(|at| &session.records[at as usize]);
    match piece.kind {
        ApiBlockKind::Thinking => "thinking".to_owned(),
        ApiBlockKind::Call => "tool inputs".to_owned(),
        ApiBlockKind::Result => {
            let call = piece.call.as_deref().and_then(|id| session.find_call(id));
            let tool = call.map_or("?", |call| session.text(session.calls[call as usize].tool));
            format!("results {tool}")
        }
        ApiBlockKind::Text | ApiBlockKind::Other => {
            match record.map(|record| (&record.kind, record.input)) {
                Some((LineKind::Assistant, _)) => "replies".to_owned(),
                Some((LineKind::User, UserInput::Summary)) => "compaction summary".to_owned(),
                Some((LineKind::User, UserInput::Meta | UserInput::Machine)) => {
                    "commands and skills".to_owned()
                }
                _ => "prompts".to_owned(),
            }
        }
    }
}

/// Texts that the client attached to prompts.
fn attached(session: &Session, source: &dyn TranscriptSource) -> Vec<ContextItem> {
    let mut items = Vec::new();
    for at in messages::live_lines(session, ClientProfile::Strict) {
        let record = &session.records[at as usize];
        if record.kind != LineKind::Attachment {
            continue;
        }
        let bytes = session.bytes_of(source, record);
        let Some(rendered) = json::find(&bytes, &["rendered"]) else {
            continue;
        };
        let label = session.label_of(record);
        let memory = label.ends_with("/instructions") || label.ends_with("/nested_memory");
        let category = if memory {
            "memory files"
        } else {
            "attachments"
        };
        let text = String::from_utf8_lossy(rendered.of(&bytes));
        items.push(ContextItem {
            category: category.to_owned(),
            tokens: estimate(&text),
            record: at,
        });
    }
    items
}

/// About how many tokens something takes that is sent.
fn estimate(json: &str) -> u64 {
    match json.contains("\"type\":\"image\"") || json.contains("\"type\":\"base64\"") {
        true => token_estimate::IMAGE,
        false => token_estimate::of_text(json).max(1),
    }
}

fn item_row(
    session: &Session,
    source: &dyn TranscriptSource,
    item: &ContextItem,
    share: f64,
) -> ContextItemRow {
    let record = &session.records[item.record as usize];
    let blocks = session.blocks_of(record);
    let call_of = |id: &str| {
        session
            .find_call(id)
            .and_then(|call| session.subject(&session.calls[call as usize]))
    };
    let subject = blocks.iter().find_map(|block| {
        let own = session.subject_of(block);
        own.or_else(|| session.id_of(block).and_then(call_of))
            .map(String::from)
    });
    let label = subject.unwrap_or_else(|| {
        let bytes = session.bytes_of(source, record);
        let text = entry::text_of(blocks, &bytes);
        if text.is_empty() {
            session.label_of(record).to_owned()
        } else {
            text.into_owned()
        }
    });
    ContextItemRow {
        category: item.category.clone(),
        tokens: item.tokens,
        share,
        label: entry::clip(&crate::block::one_line(&label), 100),
        line: record.line,
        uuid: record
            .uuid
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
    }
}
