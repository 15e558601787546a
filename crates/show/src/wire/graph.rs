//! Rows of `tree` and `agents`.

use schemars::JsonSchema;
use serde::Serialize;
use unspool_model::price::Cost;
use unspool_model::view::agents::AgentRow as Agent;
use unspool_model::view::cost::CostSum;
use unspool_model::view::session_usage::UsageTotal;
use unspool_model::view::tree::TreeRow as Node;

use crate::wire::session::UsageRow;

/// A node of the conversation's tree.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TreeNodeJson {
    /// Its number, from 1.
    pub id: usize,
    /// The line, or the session for `session` and `fork`.
    pub uuid: String,
    /// `session`, `prompt`, `command`, `shell`, `memory`, `plan` or `compaction`; of other
    /// sessions `fork`, `origin` (what this one was forked from), `before` (what it continues)
    /// or `after` (what continues it).
    pub kind: String,
    /// The number of the node it follows.
    pub parent: Option<usize>,
    /// Whether it is on the live branch.
    pub live: bool,
    /// When.
    pub at: Option<String>,
    /// Its label.
    pub label: String,
    /// Its line, 0 for sessions.
    pub line: u32,
}

impl From<&Node> for TreeNodeJson {
    fn from(node: &Node) -> TreeNodeJson {
        TreeNodeJson {
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
pub struct AgentJson {
    /// Its id, or that of a workflow run; empty for the nameless ones of old versions.
    pub agent: String,
    /// What it is: `sub_agent`, `workflow_run`, `workflow_agent`, `teammate`, or what the client
    /// did for itself: `side_question`, `compaction`, `prompt_suggestion`, `warm_up`, `memory` or
    /// `digest`.
    pub kind: String,
    /// What its workflow or team calls it; the name of a workflow.
    pub name: Option<String>,
    /// Its phase in the workflow run; of a run, all of them.
    pub phase: Option<String>,
    /// Its state in the workflow run, or the state of the run.
    pub state: Option<String>,
    /// The team it belongs to.
    pub team: Option<String>,
    /// Type of agent.
    pub r#type: Option<String>,
    /// Description of its task.
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
    /// Its tokens, without those of messages that another file of the session has already.
    pub usage: UsageRow,
    /// Its cost; null if any message has no known price, or if its file is missing.
    pub cost_usd: Option<f64>,
    /// Cost of its messages that have a known price.
    pub cost_usd_known: Option<f64>,
    /// Number of its messages without a known price.
    pub unpriced_messages: u64,
    /// Its last reply.
    pub recent_output: Option<String>,
}

impl AgentJson {
    /// The row of a sub-agent.
    pub fn new(agent: &Agent, used: Option<UsageTotal>) -> AgentJson {
        let cost = used.map(|used| used.cost);
        AgentJson {
            agent: agent.agent.clone(),
            kind: agent.role.name().to_owned(),
            name: agent.name.clone(),
            phase: agent.phase.clone(),
            state: agent.state.clone(),
            team: agent.team.clone(),
            r#type: agent.kind.clone(),
            description: agent.description.clone(),
            call: agent.call.clone(),
            parent: agent.parent.clone(),
            depth: agent.depth,
            status: agent.status.to_owned(),
            turns: agent.turns,
            calls: agent.calls,
            usage: used.unwrap_or_default().usage.into(),
            cost_usd: cost.and_then(CostSum::total).map(Cost::usd),
            cost_usd_known: cost.map(|cost| cost.known.usd()),
            unpriced_messages: cost.map_or(0, |cost| cost.unpriced),
            recent_output: agent.recent_output.clone(),
        }
    }
}
