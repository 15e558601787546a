//! What else the client keeps about a session.

use std::path::Path;

/// What the client noted about a sub-agent (2.1.100 and later).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentMeta {
    /// Its type, such as `Explore`.
    pub agent_type: Option<String>,
    /// What it was asked to do, in a few words.
    pub description: Option<String>,
    /// The call that started it.
    pub tool_use_id: Option<String>,
}

/// What stands in the `.meta.json` beside the file of a sub-agent.
pub fn agent_meta(agent: &Path) -> Option<AgentMeta> {
    let _ = agent;
    None
}
