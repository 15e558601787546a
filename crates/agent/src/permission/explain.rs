//! Why a command would be allowed, asked about or denied: each part, the rule, its file and line.

use std::path::Path;

use serde_json::json;

use super::bash;
use super::{Policy, Reason, Verdict};

/// What was found about one part of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The part.
    pub part: String,
    /// `allowed` or `asks`.
    pub what: &'static str,
    /// Why.
    pub why: Reason,
}

impl Step {
    pub(super) fn new(part: impl Into<String>, what: &'static str, why: Reason) -> Step {
        Step {
            part: part.into(),
            what,
            why,
        }
    }
}

/// A verdict with how it came about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The mode it was judged in.
    pub mode: &'static str,
    /// What would happen.
    pub verdict: Verdict,
    /// What was found about each part.
    pub steps: Vec<Step>,
}

impl Policy {
    /// Explains what would happen to a command.
    pub fn explain(&self, command: &str, cwd: &Path) -> Explanation {
        let mut ruling = self.rule_bash(command, cwd);
        let steps = std::mem::take(&mut ruling.steps);
        Explanation {
            mode: self.mode().name(),
            verdict: self.finish(ruling, "Bash", &json!({ "command": command })),
            steps,
        }
    }
}

/// The longest command that is looked into.
pub const LONGEST: usize = bash::LONGEST;
