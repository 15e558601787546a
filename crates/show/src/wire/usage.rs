//! Tokens and cost of a group of messages.

use schemars::JsonSchema;
use serde::Serialize;

/// A row of `usage`: the group keys of its messages, and their sum. Each message counts
/// once, even if several files and lines repeat it.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct UsageSum {
    /// The local day, as `2026-01-31`; `unknown` if no line says when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// The first day of the week: Monday, or the day of `--start-of-week`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub week: Option<String>,
    /// The month, as `2026-01`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub month: Option<String>,
    /// The start of the five-hour window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<String>,
    /// The end of that window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_end: Option<String>,
    /// Whether that window is still open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<bool>,
    /// The session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The file of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The sub-agent; empty for those inside the session's own file, absent for the session
    /// itself and if sub-agents are not listed separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Whether these are messages of sub-agents, if those are listed separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_subagent: Option<bool>,
    /// `fast` or `standard`, if these are listed separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<String>,
    /// The model, if all messages are of one.
    pub model: Option<String>,
    /// All models.
    pub models: Vec<String>,
    /// How many messages.
    pub messages: u64,
    /// Uncached input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input read from the cache.
    pub cache_read: u64,
    /// Input written to the five-minute cache.
    pub cache_write_5m: u64,
    /// Input written to the one-hour cache.
    pub cache_write_1h: u64,
    /// Sum of all tokens.
    pub total: u64,
    /// Cost in US dollars; null if any model has no known price.
    pub cost_usd: Option<f64>,
    /// Cost of the messages that have a known price.
    pub cost_usd_known: f64,
    /// Number of messages without a known price.
    pub unpriced_messages: u64,
    /// Number of messages in fast mode (included in the totals).
    pub fast_messages: u64,
    /// Cost of the fast-mode messages; null if any has no known price.
    pub fast_cost_usd: Option<f64>,
    /// Cost of the fast-mode messages that have a known price.
    pub fast_cost_usd_known: f64,
    /// Number of messages whose output is a lower bound.
    pub floor_messages: u64,
    /// Time of the first message.
    pub first: Option<String>,
    /// Time of the last message.
    pub last: Option<String>,
    /// Tokens in the session's context at its last reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// Size of the context window in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_limit: Option<u64>,
}

/// A row of `usage --explain`: one message in one file, and whether it counts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct UsageTrace {
    /// The id of the message.
    pub message: String,
    /// `counted`, or why not.
    pub fate: String,
    /// The file.
    pub path: String,
    /// The line it begins with.
    pub line: u32,
    /// Number of lines of the file that repeat its tokens.
    pub lines: u32,
    /// The session.
    pub session: Option<String>,
    /// The sub-agent.
    pub agent: Option<String>,
    /// When.
    pub at: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The client that wrote it.
    pub version: Option<String>,
    /// Uncached input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input read from the cache.
    pub cache_read: u64,
    /// Input written to the five-minute cache.
    pub cache_write_5m: u64,
    /// Input written to the one-hour cache.
    pub cache_write_1h: u64,
    /// Whether its output is a lower bound.
    pub floor: bool,
    /// The row of the price table.
    pub price: Option<String>,
    /// Its cost in US dollars, if it counts.
    pub cost_usd: Option<f64>,
}
