//! A session on one line: what lists show.

use std::collections::{HashMap, HashSet};

use crate::entry;
use crate::id::Id;
use crate::price::{Cost, Prices};
use crate::session::{Message, Session};
use crate::time::Time;
use crate::usage::Usage;
use crate::view::cost::Bill;
use crate::view::status::{self, Signals, Status};

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
    /// What a person typed last.
    pub last_prompt: Option<String>,
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
    /// What they cost; `None` if a model has no price.
    pub cost: Option<Cost>,
    /// Tokens in the context of the last reply.
    pub context_tokens: Option<u64>,
    /// Tokens that fit.
    pub context_limit: Option<u64>,
    /// The model of the last reply.
    pub model: Option<String>,
}

/// Sums a session up. `agents` are its sub-agents' files, `foreign` the titles that other
/// files give, `signals` what is known beside the transcript.
pub fn row(
    session: &Session,
    agents: &[&Session],
    foreign: &HashMap<Id, String>,
    prices: &Prices,
    signals: &Signals,
    now: Time,
) -> SessionRow {
    let last = last_reply(session);
    let context_tokens = context_tokens(session);
    let model = last
        .and_then(|message| message.model())
        .map(|model| session.text(model).to_owned());
    let real = |message: &&Message| !message.synthetic && message.thread == 0;
    let (usage, cost) = totals(session, agents, prices);
    SessionRow {
        title: session
            .title(foreign)
            .map(|title| entry::clip(&crate::block::one_line(&title), GOAL)),
        goal: session.goal.as_deref().map(|goal| entry::clip(goal, GOAL)),
        recent_output: session.recent_output.clone(),
        last_prompt: session
            .recent_prompt
            .as_deref()
            .map(|prompt| entry::clip(prompt, GOAL)),
        status: status::family(session, agents, signals, now),
        turns: session.turns.iter().filter(|turn| turn.thread == 0).count(),
        messages: session.messages.iter().filter(real).count(),
        calls: session
            .calls
            .iter()
            .filter(|call| session.records[call.record as usize].thread == 0)
            .count(),
        agents: session.threads.len() - 1 + agents.len(),
        compactions: compactions(session),
        usage,
        cost,
        context_tokens,
        context_limit: model
            .as_deref()
            .and_then(|model| prices.limit(model, context_tokens.unwrap_or(0))),
        model,
    }
}

/// Tokens in the context of the last reply that says so.
pub fn context_tokens(session: &Session) -> Option<u64> {
    let tokens = session.usage_of(last_reply(session)?).context();
    Some(tokens).filter(|&tokens| tokens > 0)
}

/// The model of the last reply.
pub fn model(session: &Session) -> Option<String> {
    let model = last_reply(session)?.model()?;
    Some(session.text(model).to_owned())
}

/// How often the context was compacted.
pub fn compactions(session: &Session) -> usize {
    let records = session.records.iter();
    records.filter(|record| record.kind.is_boundary()).count()
}

/// The last reply of the model itself that says how many tokens it was given.
fn last_reply(session: &Session) -> Option<&Message> {
    let real =
        |message: &&Message| !message.synthetic && message.thread == 0 && message.model().is_some();
    let counted = session
        .messages
        .iter()
        .rev()
        .filter(real)
        .find(|message| session.usage_of(message).context() > 0);
    counted.or_else(|| session.messages.iter().rev().find(real))
}

/// Tokens of a session and its sub-agents and what they cost, each message once.
///
/// A sub-agent's own file counts before the copy of its messages in the parent's progress
/// lines, which may be a placeholder.
pub fn totals(session: &Session, agents: &[&Session], prices: &Prices) -> (Usage, Option<Cost>) {
    let mut usage = Usage::default();
    let mut bill = Bill::new(prices);
    for (session, message) in counted(session, agents) {
        usage += session.usage_of(message);
        bill.add(session, message);
    }
    (usage, bill.total())
}

/// What messages cost that began at `since` or later; `None` if a model of them has no price.
pub fn cost_since(
    session: &Session,
    agents: &[&Session],
    prices: &Prices,
    since: Time,
) -> Option<Cost> {
    let mut bill = Bill::new(prices);
    let is_late = |time: Option<Time>| time.is_some_and(|time| time >= since);
    // Most sessions were quiet for long.
    if is_late(session.last) || agents.iter().any(|agent| is_late(agent.last)) {
        for (session, message) in counted(session, agents) {
            if is_late(message.first()) {
                bill.add(session, message);
            }
        }
    }
    bill.total()
}

/// The messages that count, each once.
fn counted<'a>(
    session: &'a Session,
    agents: &'a [&'a Session],
) -> impl Iterator<Item = (&'a Session, &'a Message)> {
    let mut seen: HashSet<&str> = HashSet::new();
    let all = std::iter::once(session).chain(agents.iter().copied());
    let files = all.flat_map(|session| session.messages.iter().map(move |one| (session, one)));
    let copies = session.copies.iter().map(move |copy| (session, copy));
    files.chain(copies).filter(move |(session, message)| {
        let first = session.message_id(message).is_none_or(|id| seen.insert(id));
        first && !message.synthetic
    })
}
