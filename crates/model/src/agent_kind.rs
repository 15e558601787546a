//! What the file of a sub-agent holds: one that a call started, or work that the client does for
//! itself and writes down in the same form.
//!
//! The client's own helpers cost tokens like any sub-agent, so they count wherever costs do; but
//! nobody sent them, and they are never counted as sub-agents.

use crate::entry::LineKind;
use crate::session::Session;

/// What the file of a sub-agent holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AgentKind {
    /// A sub-agent that a call started.
    #[default]
    SubAgent,
    /// A workflow run, which has sub-agents of its own.
    Run,
    /// A sub-agent of a workflow run.
    Workflow,
    /// A member of a team.
    Teammate,
    /// A question on the side: `/btw`.
    SideQuestion,
    /// A compaction: the conversation, and the request to summarise it.
    Compaction,
    /// A guess at what the person types next.
    Suggestion,
    /// The client warming up: 2.0 and early 2.1 ask each agent for a word at start.
    WarmUp,
    /// Notes that the client keeps about sessions.
    Memory,
    /// A summary for lists, of a sub-agent or of what happened while the person was away.
    Digest,
}

/// What the names of the client's own helpers begin with.
const NAMES: &[(&str, AgentKind)] = &[
    ("aside_question-", AgentKind::SideQuestion),
    ("acompact-", AgentKind::Compaction),
    ("aprompt_suggestion-", AgentKind::Suggestion),
    ("aspeculation-", AgentKind::Suggestion),
    ("asession_memory-", AgentKind::Memory),
    ("aextract_memories-", AgentKind::Memory),
    ("aauto_dream-", AgentKind::Memory),
    ("aagent_summary-", AgentKind::Digest),
    ("aaway_summary-", AgentKind::Digest),
];

impl AgentKind {
    /// All of them.
    pub const ALL: [AgentKind; 10] = [
        AgentKind::SubAgent,
        AgentKind::Run,
        AgentKind::Workflow,
        AgentKind::Teammate,
        AgentKind::SideQuestion,
        AgentKind::Compaction,
        AgentKind::Suggestion,
        AgentKind::WarmUp,
        AgentKind::Memory,
        AgentKind::Digest,
    ];

    /// What an id says; most say nothing but that it is a sub-agent.
    pub fn of_id(id: &str) -> AgentKind {
        let mut names = NAMES.iter();
        let known = names.find(|(start, _)| id.starts_with(start));
        known.map_or(AgentKind::SubAgent, |(_, kind)| *kind)
    }

    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            AgentKind::SubAgent => "sub_agent",
            AgentKind::Run => "workflow_run",
            AgentKind::Workflow => "workflow_agent",
            AgentKind::Teammate => "teammate",
            AgentKind::SideQuestion => "side_question",
            AgentKind::Compaction => "compaction",
            AgentKind::Suggestion => "prompt_suggestion",
            AgentKind::WarmUp => "warm_up",
            AgentKind::Memory => "memory",
            AgentKind::Digest => "digest",
        }
    }

    /// What it is, in words.
    pub fn words(self) -> &'static str {
        match self {
            AgentKind::SubAgent => "a sub-agent",
            AgentKind::Run => "a workflow run",
            AgentKind::Workflow => "an agent of a workflow run",
            AgentKind::Teammate => "a teammate",
            AgentKind::SideQuestion => "a side question (/btw)",
            AgentKind::Compaction => "a compaction",
            AgentKind::Suggestion => "a prompt suggestion",
            AgentKind::WarmUp => "a warm-up",
            AgentKind::Memory => "the client's notes",
            AgentKind::Digest => "a summary for lists",
        }
    }

    /// Why its file is not listed among sub-agents.
    pub fn why(self) -> &'static str {
        match self {
            AgentKind::SubAgent | AgentKind::Run | AgentKind::Workflow | AgentKind::Teammate => "",
            AgentKind::SideQuestion => "a side question (/btw), not a sub-agent",
            AgentKind::Compaction => "a compaction, not a sub-agent",
            AgentKind::Suggestion => "a prompt suggestion, not a sub-agent",
            AgentKind::WarmUp => "a warm-up, not a sub-agent",
            AgentKind::Memory => "the client's notes, not a sub-agent",
            AgentKind::Digest => "a summary for lists, not a sub-agent",
        }
    }

    /// Whether the client made it for itself: no call started it, and it is no sub-agent.
    pub fn is_helper(self) -> bool {
        match self {
            AgentKind::SubAgent | AgentKind::Run | AgentKind::Workflow | AgentKind::Teammate => {
                false
            }
            AgentKind::SideQuestion
            | AgentKind::Compaction
            | AgentKind::Suggestion
            | AgentKind::WarmUp
            | AgentKind::Memory
            | AgentKind::Digest => true,
        }
    }
}

impl Session {
    /// What the file of a sub-agent holds, as its id and its lines say. A session is a sub-agent
    /// to nobody.
    pub fn agent_kind(&self) -> AgentKind {
        let id = self.agent.as_deref().unwrap_or_default();
        match AgentKind::of_id(id) {
            AgentKind::SubAgent if asks_to_warm_up(self) || is_reply_alone(self) => {
                AgentKind::WarmUp
            }
            AgentKind::SubAgent if self.team.is_some() && self.member.is_some() => {
                AgentKind::Teammate
            }
            kind => kind,
        }
    }
}

/// Whether a sub-agent's file begins with the request by which the client warms up.
pub fn asks_to_warm_up(session: &Session) -> bool {
    session.goal.as_deref() == Some("Warmup")
}

/// Whether a sub-agent's file holds one reply and nothing else. Some warm-ups left no more, and so
/// did sub-agents that were cut short: those are named by a call.
pub fn is_reply_alone(session: &Session) -> bool {
    matches!(&session.records[..], [only] if only.kind == LineKind::Assistant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_the_clients_own_helpers_from_sub_agents() {
        for (id, kind) in [
            ("a1b2c3d4e5f60718", AgentKind::SubAgent),
            ("acompact-1a2b3c", AgentKind::Compaction),
            ("aprompt_suggestion-46c62b", AgentKind::Suggestion),
            ("aside_question-94d26433f3755c77", AgentKind::SideQuestion),
            ("acompactor-1a2b", AgentKind::SubAgent),
            ("areviewer-1a2b3c4d5e6f7081", AgentKind::SubAgent),
        ] {
            assert_eq!(AgentKind::of_id(id), kind, "{id}");
        }
        let mut names: Vec<_> = AgentKind::ALL.iter().map(|kind| kind.name()).collect();
        names.dedup();
        assert_eq!(names.len(), AgentKind::ALL.len());
    }
}
