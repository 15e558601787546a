//! Rows of `tree` and `agents`.

use schemars::JsonSchema;
use serde::Serialize;
use unspool_model::price::Cost;
use unspool_model::view::agents::AgentRow as Agent;
use unspool_model::view::tree::TreeRow as Node;

use crate::wire::session::UsageRow;

/// A node of the conversation's tree.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TreeRow {
    /// Its number, from 1.
    pub id: usize,
    /// The line, or the session for `session` and `fork`.
    pub uuid: String,
    /// `session`, `prompt`, `command`, `shell`, `memory`, `plan`, `compaction` or `fork`.
    pub kind: String,
    /// The number of the node it follows.
    pub parent: Option<usize>,
    /// On the branch that goes on.
    pub live: bool,
    /// When.
    pub at: Option<String>,
    /// What a person recognises it by.
    pub label: String,
    /// Its line, 0 for sessions.
    pub line: u32,
}

impl From<&Node> for TreeRow {
    fn from(node: &Node) -> TreeRow {
        TreeRow {
            id: node.id,
            uuid: node.uuid.clone(),
            kind: node.kind.to_owned(),
            parent: node.parent,
            live: node.live,
            at: node.at.map(|at| at.to_string()),
            label: node.label.clone(),
            line: node.line,
        }
    }
}

/// A sub-agent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgentRow {
    /// Its id; empty for the nameless ones of old versions.
    pub agent: String,
    /// What kind of agent.
    pub r#type: Option<String>,
    /// What it was sent for.
    pub description: Option<String>,
    /// The call that started it.
    pub call: Option<String>,
    /// The agent that made the call; null for the session itself.
    pub parent: Option<String>,
    /// How deep it is nested, from 1.
    pub depth: usize,
    /// `completed`, `failed`, `running`, `lost` or `unknown`.
    pub status: String,
    /// Its turns.
    pub turns: usize,
    /// Its calls.
    pub calls: usize,
    /// Its tokens.
    pub usage: UsageRow,
    /// What it cost; null where prices are not known.
    pub cost_usd: Option<f64>,
    /// The last thing it said.
    pub recent_output: Option<String>,
}

impl AgentRow {
    /// The row of a sub-agent.
    pub fn new(agent: &Agent, cost: Option<Cost>) -> AgentRow {
        AgentRow {
            agent: agent.agent.clone(),
            r#type: agent.kind.clone(),
            description: agent.description.clone(),
            call: agent.call.clone(),
            parent: agent.parent.clone(),
            depth: agent.depth,
            status: agent.status.to_owned(),
            turns: agent.turns,
            calls: agent.calls,
            usage: agent.usage.into(),
            cost_usd: cost.map(Cost::usd),
            recent_output: agent.recent_output.clone(),
        }
    }
}
