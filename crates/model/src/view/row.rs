//! A session on one line: what lists show.

use std::collections::{HashMap, HashSet};

use crate::entry;
use crate::id::Id;
use crate::session::{Message, Session};
use crate::time::Time;
use crate::usage::{self, Usage};
use crate::view::status::{self, Status};

/// Most characters of a goal.
pub const GOAL: usize = 200;

/// What lists show of a session.
#[derive(Clone, Debug)]
pub struct SessionRow {
    /// Its title; its first prompt where nobody gave it one.
    pub title: Option<String>,
    /// The first prompt.
    pub goal: Option<String>,
    /// The last thing the model said.
    pub recent_output: Option<String>,
    /// What it is doing.
    pub status: Status,
    /// Turns of its own conversation.
    pub turns: usize,
    /// Replies, each counted once.
    pub messages: usize,
    /// Tool calls.
    pub calls: usize,
    /// Sub-agents, in the file and beside it.
    pub agents: usize,
    /// Compactions.
    pub compactions: usize,
    /// Tokens, those of sub-agents included.
    pub usage: Usage,
    /// Tokens in the context of the last reply.
    pub context_tokens: Option<u64>,
    /// Tokens that fit.
    pub context_limit: Option<u64>,
    /// The model of the last reply.
    pub model: Option<String>,
}

/// Sums a session up. `agents` are its sub-agents' files, `foreign` the titles that other
/// files give.
pub fn row(
    session: &Session,
    agents: &[&Session],
    foreign: &HashMap<Id, String>,
    now: Time,
) -> SessionRow {
    let last = last_reply(session);
    let context_tokens = last
        .map(|message| message.usage.context())
        .filter(|&tokens| tokens > 0);
    let model = last
        .and_then(|message| message.model)
        .map(|model| session.text(model).to_owned());
    let real = |message: &&Message| !message.synthetic && message.thread == 0;
    SessionRow {
        title: session
            .title(foreign)
            .map(|title| entry::clip(&crate::block::one_line(&title), GOAL)),
        goal: session.goal.as_deref().map(|goal| entry::clip(goal, GOAL)),
        recent_output: session.recent_output.clone(),
        status: status::status(session, now),
        turns: session.turns.iter().filter(|turn| turn.thread == 0).count(),
        messages: session.messages.iter().filter(real).count(),
        calls: session
            .calls
            .iter()
            .filter(|call| session.records[call.record as usize].thread == 0)
            .count(),
        agents: session.threads.len() - 1 + agents.len(),
        compactions: compactions(session),
        usage: usage(session, agents),
        context_tokens,
        context_limit: model
            .as_deref()
            .and_then(|model| usage::context_limit(model, context_tokens.unwrap_or(0))),
        model,
    }
}

/// How often the context was compacted.
pub fn compactions(session: &Session) -> usize {
    let boundary = |kind: &entry::Kind| matches!(kind, entry::Kind::CompactBoundary(boundary) if !boundary.micro);
    session
        .records
        .iter()
        .filter(|record| boundary(&record.kind))
        .count()
}

/// The last reply of the model itself that says how many tokens it was given.
fn last_reply(session: &Session) -> Option<&Message> {
    let real =
        |message: &&Message| !message.synthetic && message.thread == 0 && message.model.is_some();
    let counted = session
        .messages
        .iter()
        .rev()
        .filter(real)
        .find(|message| message.usage.context() > 0);
    counted.or_else(|| session.messages.iter().rev().find(real))
}

/// Tokens of a session and its sub-agents, each message once.
///
/// A sub-agent's own file counts before the copy of its messages in the parent's progress
/// lines, which may be a placeholder.
pub fn usage(session: &Session, agents: &[&Session]) -> Usage {
    let mut seen: HashSet<&str> = HashSet::new();
    let mut total = Usage::default();
    let all = std::iter::once(session).chain(agents.iter().copied());
    for message in all.flat_map(|session| &session.messages) {
        let first = message.id.as_deref().is_none_or(|id| seen.insert(id));
        if first && !message.synthetic {
            total += message.usage;
        }
    }
    for copy in &session.copies {
        if copy.id.as_deref().is_none_or(|id| seen.insert(id)) {
            total += copy.usage;
        }
    }
    total
}
