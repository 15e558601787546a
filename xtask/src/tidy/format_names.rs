//! Only `model` knows the names of the transcript format, and `testkit`, which writes it.
//!
//! The names are those that no other vocabulary of ours has: `parentUuid`, not `type`.

use super::{SourceTree, Violation};

/// Names of fields and values that occur in transcripts and nowhere else.
const NAMES: &[&str] = &[
    "agentId",
    "agent_progress",
    "ai-title",
    "attributionSkill",
    "backupFileName",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "compactMetadata",
    "compact_boundary",
    "custom-title",
    "customTitle",
    "cutUuid",
    "file-history-snapshot",
    "forkedFrom",
    "gitBranch",
    "isApiErrorMessage",
    "isCompactSummary",
    "isMeta",
    "isSidechain",
    "isVisibleInTranscriptOnly",
    "last-prompt",
    "leafUuid",
    "local_command",
    "logicalParentUuid",
    "microcompact_boundary",
    "parentToolUseID",
    "parentUuid",
    "permissionMode",
    "planContent",
    "preservedMessages",
    "promptId",
    "queue-operation",
    "queued_command",
    "requestId",
    "sourceToolAssistantUUID",
    "sourceToolUseID",
    "stop_hook_summary",
    "structuredPatch",
    "toolUseID",
    "toolUseResult",
    "trackedFileBackups",
    "turn_duration",
    "userType",
];

/// Crates that may name them.
const KNOWS: &[&str] = &["model", "testkit"];

pub(super) fn check(tree: &SourceTree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.product_sources() {
        if file.crate_name().is_some_and(|name| KNOWS.contains(&name)) {
            continue;
        }
        for (line, code) in file.code_lines() {
            for name in NAMES.iter().filter(|name| is_quoted(code, name)) {
                found.push(Violation {
                    check: "format-names",
                    file: file.path.clone(),
                    line,
                    what: format!("`{name}` is a name of the transcript format"),
                });
            }
        }
    }
    found
}

/// Whether a line of code has the name as a string of its own, or as a key inside one.
fn is_quoted(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + name.len()..]);
        before.ends_with(['"', '/']) && after.starts_with(['"', '\\', '/'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_as_a_string_and_as_a_key_in_one() {
        assert!(is_quoted(r#"json::get(line, "parentUuid")"#, "parentUuid"));
        assert!(is_quoted(r#""{\"parentUuid\":null}""#, "parentUuid"));
        assert!(is_quoted(
            r#"value.pointer("/toolUseResult/x")"#,
            "toolUseResult"
        ));
        assert!(!is_quoted("let parentUuid = 1;", "parentUuid"));
        assert!(!is_quoted(r#""the parentUuid of a line""#, "parentUuid"));
    }
}
