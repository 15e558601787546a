//! What lines say about sub-agents and tasks beside the structured results: which call started
//! which, and what became of them.

use super::is_over;
use crate::json;
use crate::user_input;

/// A line says that a call started a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentClue {
    /// The sub-agent.
    pub agent: Box<str>,
    /// The call.
    pub call: Box<str>,
    /// Where it says so.
    pub from: ClueSource,
}

/// Where a line names a sub-agent and its call, the most reliable place first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClueSource {
    /// A line of progress, which copies a line of the sub-agent (2.1.9 to 2.1.81).
    Progress,
    /// A notification that a task in the background is over.
    Notice,
    /// The text of the call's result.
    ResultText,
}

/// The sub-agent that the text of a result names, which the client puts behind what the sub-agent
/// said: the last one, since what it said may name others.
pub(super) fn agent_named_in(result: &[u8]) -> Option<&str> {
    const MARK: &[u8] = b"agentId: ";
    let at = memchr::memmem::rfind(result, MARK)?;
    // It begins a text or a line; in JSON a line break is written `\n`.
    let begins = result[..at].ends_with(b"\"") || result[..at].ends_with(b"\\n");
    let rest = &result[at + MARK.len()..];
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'@');
    let len = rest.iter().take_while(|byte| is_name(byte)).count();
    let name = std::str::from_utf8(&rest[..len]).ok()?;
    (begins && (1..=json::LONGEST_NAME).contains(&len)).then_some(name)
}

/// What the client tells about a task in the background.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskNotice {
    /// The task.
    pub task: Box<str>,
    /// The call that started it, if the text says.
    pub call: Option<Box<str>>,
    /// What became of it, if the text says.
    pub status: Option<Box<str>>,
}

/// The elements that tell of tasks.
const ELEMENTS: [&str; 2] = ["task-notification", "bash-notification"];

impl TaskNotice {
    /// Reads a text that begins with a notification. Several that came at once stand one behind
    /// the other, with words between such as where the output is.
    pub fn read_all(text: &str) -> Vec<TaskNotice> {
        let mut all = Vec::new();
        let mut rest = Some(user_input::stripped(text));
        while let Some((one, behind)) = rest.and_then(element) {
            all.extend(TaskNotice::of_element(one));
            rest = next_element(behind);
        }
        all
    }

    fn of_element(text: &str) -> Option<TaskNotice> {
        let tag = |name: &str| {
            let (_, behind) = text.split_once(&format!("<{name}>"))?;
            let (inside, _) = behind.split_once(&format!("</{name}>"))?;
            Some(inside.trim()).filter(|inside| !inside.is_empty())
        };
        let task = tag("task-id").or_else(|| tag("shell-id"))?;
        Some(TaskNotice {
            task: task.into(),
            call: tag("tool-use-id").map(Into::into),
            status: tag("status").map(Into::into),
        })
    }

    /// Whether the task is over.
    pub fn is_over(&self) -> bool {
        self.status.as_deref().is_some_and(is_over)
    }

    /// The call that started the task, if the text says.
    pub(super) fn clue(&self) -> Option<AgentClue> {
        Some(AgentClue {
            agent: self.task.clone(),
            call: self.call.clone()?,
            from: ClueSource::Notice,
        })
    }
}

/// The notification that a text begins with, and what stands behind it. What a sub-agent said may
/// quote others, so its end is the one that belongs to its beginning.
fn element(text: &str) -> Option<(&str, &str)> {
    let behind = text.strip_prefix('<')?;
    let name = ELEMENTS.iter().find(|name| behind.starts_with(**name))?;
    let mut depth = 0;
    for (at, _) in text.match_indices('<') {
        let tag = &text[at + 1..];
        if tag.starts_with(name) {
            depth += 1;
        } else if let Some(end) = tag.strip_prefix('/').and_then(|tag| tag.strip_prefix(name)) {
            depth -= 1;
            if depth == 0 {
                return Some((&text[..at], end.strip_prefix('>').unwrap_or(end)));
            }
        }
    }
    Some((text, ""))
}

/// Where the next notification begins: right behind the last one, or with a line.
fn next_element(text: &str) -> Option<&str> {
    let begins = |at: usize| {
        let before = text[..at].trim_end_matches([' ', '\t', '\r']);
        before.is_empty() || before.ends_with('\n')
    };
    let mut tags = text.match_indices('<').map(|(at, _)| at);
    let is_next = |at: &usize| {
        let tag = &text[at + 1..];
        ELEMENTS.iter().any(|name| tag.starts_with(name)) && begins(*at)
    };
    tags.find(is_next).map(|at| &text[at..])
}
