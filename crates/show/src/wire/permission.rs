//! The row of `chat --explain-permission`.

use schemars::JsonSchema;
use serde::Serialize;

/// Whether a command would be allowed, and why.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PermissionRow {
    /// The command.
    pub command: String,
    /// The permission mode.
    pub mode: String,
    /// allow, ask or deny.
    pub verdict: String,
    /// The reason.
    pub reason: String,
    /// The rule that decided.
    pub rule: Option<String>,
    /// The file of the rule; null for a command-line option.
    pub path: Option<String>,
    /// The line of the rule in that file.
    pub line: Option<usize>,
    /// Every simple command and redirection that was checked.
    pub parts: Vec<PermissionPart>,
    /// The rules that "always" would add.
    pub always: Vec<String>,
}

/// One part of a command.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PermissionPart {
    /// The part.
    pub part: String,
    /// allow or ask.
    pub verdict: String,
    /// The reason.
    pub reason: String,
    /// The rule that decided.
    pub rule: Option<String>,
    /// The file of the rule.
    pub path: Option<String>,
    /// The line of the rule in that file.
    pub line: Option<usize>,
}
