//! Rows of `send`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::wire::session::UsageRow;

/// What was sent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SentRow {
    /// Sessions that had something to send.
    pub sessions: u64,
    /// Turns that were taken.
    pub turns: u64,
    /// Spans that were taken.
    pub spans: u64,
    /// Bytes that went out, as they went.
    pub bytes: u64,
    /// Requests that were made.
    pub requests: u64,
    /// Turns that were taken before.
    pub already: u64,
    /// Turns that stand in an older session too, and belong to that.
    pub elsewhere: u64,
    /// Turns that are not over yet.
    pub waiting: u64,
    /// Turns of which it took nothing; they are sent again next time.
    pub refused: u64,
    /// Spans that the receiver does not take, and why.
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
    /// The span it stands under; null for a turn.
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
