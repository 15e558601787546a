//! Tools that come from elsewhere: from MCP servers.

use serde_json::Value;

use crate::stop::StopSignal;
use crate::tool::{ToolCallRequest, ToolOutcome};

/// A tool as it is offered to the model.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferedTool {
    /// Its full name: `mcp__<server>__<tool>`.
    pub name: String,
    /// What the server says about it.
    pub description: String,
    /// Its input as JSON schema.
    pub schema: Value,
    /// Whether the server says that it changes nothing.
    pub only_reads: bool,
}

/// How a server is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpServerHealth {
    /// It is being started.
    Starting,
    /// It answers.
    Connected,
    /// It wants somebody to log in first.
    NeedsLogin,
    /// Why it does not answer.
    Failed(String),
}

impl McpServerHealth {
    /// Its name, as `system/init` gives it.
    pub fn name(&self) -> &'static str {
        match self {
            McpServerHealth::Starting => "pending",
            McpServerHealth::Connected => "connected",
            McpServerHealth::NeedsLogin => "needs-auth",
            McpServerHealth::Failed(_) => "failed",
        }
    }
}

/// A server, for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServerStatus {
    /// Its name in the settings.
    pub name: String,
    /// How it is doing.
    pub health: McpServerHealth,
    /// How many tools it offers.
    pub tools: usize,
}

/// A source of tools.
pub trait McpTools: Send + Sync {
    /// What it offers now.
    fn offers(&self) -> Vec<OfferedTool>;

    /// Its servers.
    fn servers(&self) -> Vec<McpServerStatus>;

    /// Runs a call of a tool it offers. Ends soon after `stop` was told.
    fn run(&self, call: &ToolCallRequest, stop: &StopSignal) -> ToolOutcome;
}
