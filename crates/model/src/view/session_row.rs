//! A session on one line: what lists show.

use std::collections::HashMap;

use crate::entry;
use crate::id::Id;
use crate::price::Prices;
use crate::session::{Message, Session};
use crate::time::Time;
use crate::view::session_usage::{self, SessionFiles, SessionUsage};
use crate::view::status::{self, BackgroundJob, SessionStatus, StatusSignals};
use crate::view::turns;

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
    pub status: SessionStatus,
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
    /// Tokens and cost, by whose they are.
    pub used: SessionUsage,
    /// Tokens in the context of the last reply.
    pub context_tokens: Option<u64>,
    /// Tokens that fit.
    pub context_limit: Option<u64>,
    /// The model of the last reply.
    pub model: Option<String>,
    /// What the client keeps about it as a session in the background.
    pub job: Option<BackgroundJob>,
}

/// Sums a session up. `foreign` are the titles that other files give, `signals` what is known
/// beside the transcript.
pub fn row(
    files: &SessionFiles<'_>,
    foreign: &HashMap<Id, String>,
    prices: &Prices,
    signals: &StatusSignals,
    now: Time,
) -> SessionRow {
    let SessionFiles {
        session, agents, ..
    } = *files;
    let last = last_reply(session);
    let context_tokens = context_tokens(session);
    let model = last
        .and_then(|message| message.model())
        .map(|model| session.text(model).to_owned());
    let real = |message: &&Message| !message.synthetic && message.thread == 0;
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
        turns: turns::count(session),
        messages: session.messages.iter().filter(real).count(),
        calls: session
            .calls
            .iter()
            .filter(|call| session.records[call.record as usize].thread == 0)
            .count(),
        agents: session.threads.len() - 1 + agents.len(),
        compactions: compactions(session),
        used: session_usage::session_usage(files, prices),
        context_tokens,
        context_limit: model
            .as_deref()
            .and_then(|model| prices.limit(model, context_tokens.unwrap_or(0))),
        model,
        job: signals.job.clone(),
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
