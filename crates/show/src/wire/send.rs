//! Rows of `send`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::wire::session::UsageRow;

/// What was sent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SentRow {
    /// Sessions that had something to send.
    pub sessions: u64,
    /// Turns that were accepted.
    pub turns: u64,
    /// Spans that were accepted.
    pub spans: u64,
    /// Bytes sent, compressed if so configured.
    pub bytes: u64,
    /// Requests that were made.
    pub requests: u64,
    /// Turns that were already sent.
    pub already: u64,
    /// Turns copied from an older session, which are sent with that session.
    pub elsewhere: u64,
    /// Turns that are unfinished.
    pub waiting: u64,
    /// Turns that the receiver rejected; they are sent again next time.
    pub refused: u64,
    /// Spans that the receiver rejected, and why.
    pub rejected: Vec<String>,
}

/// A span that would be sent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SpanRow {
    /// The session it is sent under.
    pub session: String,
    /// The number of its turn.
    pub turn: usize,
    /// The id of its trace.
    pub trace: String,
    /// Its id.
    pub span: String,
    /// Its parent span; null for a turn.
    pub parent: Option<String>,
    /// `agent`, `generation`, `tool` or `event`.
    pub kind: String,
    /// `Turn N`, a model, a tool, a kind of agent, or what happened.
    pub name: String,
    /// When it began.
    pub start: Option<String>,
    /// When it ended.
    pub end: Option<String>,
    /// `DEBUG`, `DEFAULT`, `WARNING` or `ERROR`.
    pub level: String,
    /// Its tokens, if a line says.
    pub usage: Option<UsageRow>,
    /// What they cost; null where that is not known.
    pub cost_usd: Option<f64>,
}
