//! The row of `chat --explain-permission`.

use schemars::JsonSchema;
use serde::Serialize;

/// What would happen to a command, and why.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PermissionRow {
    /// The command.
    pub command: String,
    /// The permission mode it was judged in.
    pub mode: String,
    /// allow, ask or deny.
    pub verdict: String,
    /// Why, in words.
    pub reason: String,
    /// The rule that decided.
    pub rule: Option<String>,
    /// The file the rule stands in; null for a flag.
    pub path: Option<String>,
    /// The line of the rule in that file.
    pub line: Option<usize>,
    /// Every simple command and every redirection that was looked at.
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
    /// Why, in words.
    pub reason: String,
    /// The rule behind it.
    pub rule: Option<String>,
    /// The file the rule stands in.
    pub path: Option<String>,
    /// The line of the rule in that file.
    pub line: Option<usize>,
}
