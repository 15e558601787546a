//! Tokens and cost of a group of messages.

use schemars::JsonSchema;
use serde::Serialize;

/// A row of `usage`: what its messages have in common, and their sum. Each message counts
/// once, whatever number of files and lines repeat it.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct UsageSum {
    /// The local day, as `2026-01-31`; `unknown` if no line says when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// The day that the week begins with: Monday, or as `--start-of-week` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub week: Option<String>,
    /// The month, as `2026-01`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub month: Option<String>,
    /// The start of the window of five hours.
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
    /// itself and where sub-agents are not told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Whether these are messages of sub-agents, where those are told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_subagent: Option<bool>,
    /// `fast` or `standard`, where these are told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<String>,
    /// The model, if all messages are of one.
    pub model: Option<String>,
    /// All models.
    pub models: Vec<String>,
    /// How many messages.
    pub messages: u64,
    /// Input that was neither read from nor written to the cache.
    pub input: u64,
    /// What the model wrote.
    pub output: u64,
    /// Input read from the cache.
    pub cache_read: u64,
    /// Input written to the five-minute cache.
    pub cache_write_5m: u64,
    /// Input written to the one-hour cache.
    pub cache_write_1h: u64,
    /// All of these.
    pub total: u64,
    /// What they cost in US dollars; null if any model has no known price.
    pub cost_usd: Option<f64>,
    /// What those messages cost that have a known price.
    pub cost_usd_known: f64,
    /// How many messages have no known price.
    pub unpriced_messages: u64,
    /// How many messages were answered in the fast mode; they are among the others.
    pub fast_messages: u64,
    /// What these cost; null if any has no known price.
    pub fast_cost_usd: Option<f64>,
    /// What those of them cost that have a known price.
    pub fast_cost_usd_known: f64,
    /// How many messages have an output that may be more than was ever written down.
    pub floor_messages: u64,
    /// Time of the first message.
    pub first: Option<String>,
    /// Time of the last message.
    pub last: Option<String>,
    /// What fills the context of the session: what its last reply was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// How much fits into it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_limit: Option<u64>,
}

/// A row of `usage --explain`: one message in one file, and what became of it.
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
    /// How many lines of the file repeat its tokens.
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
    /// Input that was neither read from nor written to the cache.
    pub input: u64,
    /// What the model wrote.
    pub output: u64,
    /// Input read from the cache.
    pub cache_read: u64,
    /// Input written to the five-minute cache.
    pub cache_write_5m: u64,
    /// Input written to the one-hour cache.
    pub cache_write_1h: u64,
    /// The output may be more than was ever written down.
    pub floor: bool,
    /// The row of the price table.
    pub price: Option<String>,
    /// What it cost in US dollars, where it counts.
    pub cost_usd: Option<f64>,
}
