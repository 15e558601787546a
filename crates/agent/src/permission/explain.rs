//! Why a command would be allowed, asked about or denied: each part, the rule, its file and line.

use std::path::Path;

use serde_json::json;

use super::bash;
use super::{PermissionPolicy, PermissionReason, PermissionVerdict};

/// What was found about one part of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandPartFinding {
    /// The part.
    pub part: String,
    /// `allowed` or `asks`.
    pub what: &'static str,
    /// Why.
    pub why: PermissionReason,
}

impl CommandPartFinding {
    pub(super) fn new(
        part: impl Into<String>,
        what: &'static str,
        why: PermissionReason,
    ) -> CommandPartFinding {
        CommandPartFinding {
            part: part.into(),
            what,
            why,
        }
    }
}

/// A verdict with how it came about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionExplanation {
    /// The mode it was judged in.
    pub mode: &'static str,
    /// What would happen.
    pub verdict: PermissionVerdict,
    /// What was found about each part.
    pub steps: Vec<CommandPartFinding>,
}

impl PermissionPolicy {
    /// Explains what would happen to a command.
    pub fn explain(&self, command: &str, cwd: &Path) -> PermissionExplanation {
        let mut ruling = self.rule_bash(command, cwd);
        let steps = std::mem::take(&mut ruling.steps);
        PermissionExplanation {
            mode: self.mode().name(),
            verdict: self.finish(ruling, "Bash", &json!({ "command": command })),
            steps,
        }
    }
}

/// The longest command that is looked into.
pub const LONGEST: usize = bash::LONGEST;
