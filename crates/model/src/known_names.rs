//! What has been seen in transcripts so far, so that something new is noticed the first day.
//!
//! Lists of names only, from recordings and published transcripts of 1.0.11 to 2.1.327.
//! Knowing a name is never required to read a line; see [`crate::entry`].

mod nested;

pub(crate) use nested::{NestedFieldNames, shape};

/// The kind of line with this label, such as `user` or `system/turn_duration`, if it was
/// seen before.
pub fn label(text: &str) -> Option<&'static str> {
    LABELS.find(text)
}

/// Whether a field of this name was seen at the top of a line.
pub fn is_field(name: &str) -> bool {
    FIELDS.find(name).is_some()
}

/// Whether a field of this name only says which, when or how: ids, times, names of kinds. What
/// it holds is not text that somebody wrote.
pub fn is_mark(name: &str) -> bool {
    MARKS.find(name).is_some()
}

/// Whether a field of this name was seen in `message`.
pub fn is_message_field(name: &str) -> bool {
    MESSAGE_FIELDS.find(name).is_some()
}

/// Whether a field of this name was seen in a content block.
pub fn is_block_field(name: &str) -> bool {
    BLOCK_FIELDS.find(name).is_some()
}

/// The type of content block with this name, if it was seen before.
pub fn block(name: &str) -> Option<&'static str> {
    BLOCKS.find(name)
}

/// What stands for all names behind the first [`MOST_UNKNOWN`].
pub const OTHERS: &str = "others";

/// How many distinct unknown names are kept, of a line and of a session. A new release of the
/// client brings some dozens.
pub const MOST_UNKNOWN: usize = 1000;

/// The longest unknown name that is kept whole, in characters.
const LONGEST_UNKNOWN: usize = 200;

/// Unknown names on a line, in the order they appear, one for each time. Of more than
/// [`MOST_UNKNOWN`], the rest is counted and not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnknownNames {
    pub(crate) names: Vec<String>,
    pub(crate) others: u32,
}

impl UnknownNames {
    /// Adds a name; `what` says what it is a name of.
    pub(crate) fn add(&mut self, what: &str, name: &str) {
        if self.names.len() >= MOST_UNKNOWN {
            self.others = self.others.saturating_add(1);
            return;
        }
        // A text that was spread into its characters has a field for each of them.
        let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        if is_number {
            let one = format!("{what}<number>");
            if !self.names.contains(&one) {
                self.names.push(one);
            }
            return;
        }
        let shown = match name.char_indices().nth(LONGEST_UNKNOWN) {
            Some((end, _)) => format!("{what}{}…", &name[..end]),
            None => format!("{what}{name}"),
        };
        self.names.push(shown);
    }

    /// Adds the names of others; `what` says what they are names of.
    pub(crate) fn append(&mut self, what: &str, others: UnknownNames) {
        for name in &others.names {
            self.add(what, name);
        }
        self.others = self.others.saturating_add(others.others);
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// Names, to be asked for hundreds of times in every line.
struct NameSet {
    list: &'static [&'static str],
    /// The number of a name, from 1, at its [`place`] or at the next one that was free.
    places: [u8; PLACES],
}

/// So many that most names have their place for themselves.
const PLACES: usize = 512;

impl NameSet {
    const fn new(list: &'static [&'static str]) -> NameSet {
        assert!(list.len() < 256);
        let mut places = [0; PLACES];
        let mut at = 0;
        while at < list.len() {
            let mut place = place(list[at].as_bytes());
            while places[place] != 0 {
                place = (place + 1) % PLACES;
            }
            at += 1;
            places[place] = at as u8;
        }
        NameSet { list, places }
    }

    fn find(&self, name: &str) -> Option<&'static str> {
        let mut place = place(name.as_bytes());
        loop {
            let number = usize::from(self.places[place]);
            let known = self.list[number.checked_sub(1)?];
            if known == name {
                return Some(known);
            }
            place = (place + 1) % PLACES;
        }
    }
}

/// Where a name should stand, going by some of its bytes.
const fn place(name: &[u8]) -> usize {
    let [first, .., last] = name else {
        return name.len();
    };
    let inner = name[name.len() / 2] as usize * 37 + name[name.len() / 3] as usize * 101;
    (*first as usize * 7 + *last as usize * 59 + name.len() * 23 + inner) % PLACES
}

/// Types of line, and their subtypes.
static LABELS: NameSet = NameSet::new(&[
    "agent-name",
    "agent-setting",
    "ai-title",
    "api-request",
    "api-request-blob",
    "api-request-shape",
    "assistant",
    "atis-latch",
    "attachment",
    "attachment/agent_listing_delta",
    "attachment/async_hook_response",
    "attachment/auto_mode",
    "attachment/auto_mode_exit",
    "attachment/command_permissions",
    "attachment/compact_file_reference",
    "attachment/companion_intro",
    "attachment/date",
    "attachment/date_change",
    "attachment/deferred_tools_delta",
    "attachment/deferred_tools_record",
    "attachment/diagnostics",
    "attachment/directory",
    "attachment/dynamic_skill",
    "attachment/edited_text_file",
    "attachment/environment",
    "attachment/file",
    "attachment/goal_status",
    "attachment/hook_additional_context",
    "attachment/hook_blocking_error",
    "attachment/hook_cancelled",
    "attachment/hook_non_blocking_error",
    "attachment/hook_success",
    "attachment/hook_system_message",
    "attachment/instructions",
    "attachment/invoked_skills",
    "attachment/mcp_instructions_delta",
    "attachment/model",
    "attachment/nested_memory",
    "attachment/opened_file_in_ide",
    "attachment/plan_file_reference",
    "attachment/plan_mode",
    "attachment/plan_mode_exit",
    "attachment/plan_mode_reentry",
    "attachment/prompt_snapshot",
    "attachment/queued_command",
    "attachment/read_truncation_notice",
    "attachment/remote_session_change",
    "attachment/selected_lines_in_ide",
    "attachment/session_context",
    "attachment/silent_turn_reminder",
    "attachment/skill_listing",
    "attachment/task_reminder",
    "attachment/todo_reminder",
    "attachment/total_tokens_reminder",
    "attachment/ultra_effort_enter",
    "attachment/ultrathink_effort",
    "attachment/unknown_command_fallback",
    "bridge-session",
    "content-replacement",
    "continued-in",
    "cost-state",
    "custom-title",
    "data-flow-records",
    "derived-from",
    "dev-mods",
    "ended-by-model",
    "file-history-delta",
    "file-history-snapshot",
    "fork-context-ref",
    "frame-link",
    "history-suppression",
    "isolation-latch",
    "last-prompt",
    "memory-mode",
    "mode",
    "observer-ref",
    "permission-mode",
    "pr-link",
    "progress",
    "progress/agent_progress",
    "progress/bash_progress",
    "progress/hook_progress",
    "progress/mcp_progress",
    "progress/query_update",
    "progress/search_results_received",
    "progress/waiting_for_task",
    "queue-operation",
    "queue-operation/dequeue",
    "queue-operation/enqueue",
    "queue-operation/popAll",
    "queue-operation/remove",
    "relocated",
    "repl-mode",
    "resume-head-vouch",
    "saved_hook_context",
    "session-owner",
    "summary",
    "system",
    "system/api_error",
    "system/away_summary",
    "system/bridge_status",
    "system/compact_boundary",
    "system/informational",
    "system/local_command",
    "system/microcompact_boundary",
    "system/model_refusal_fallback",
    "system/scheduled_task_fire",
    "system/stop_hook_summary",
    "system/turn_duration",
    "tag",
    "tools-used",
    "user",
    "worktree-state",
]);

/// Fields that hold no text.
static MARKS: NameSet = NameSet::new(&[
    "agentId",
    "bridgeSessionId",
    "commandUuid",
    "cutUuid",
    "cwd",
    "deliveryId",
    "effort",
    "entrypoint",
    "forkedFrom",
    "gitBranch",
    "hash",
    "id",
    "interruptedMessageId",
    "leafUuid",
    "level",
    "logicalParentUuid",
    "madeBy",
    "messageId",
    "mode",
    "model",
    "operation",
    "origin",
    "ownerAccountUuid",
    "ownerOrganizationUuid",
    "parentLastUuid",
    "parentSessionId",
    "parentToolUseID",
    "parentUuid",
    "perTurnEffort",
    "permissionMode",
    "promptId",
    "promptSource",
    "querySource",
    "refusedMessageId",
    "refusedUserMessageUuid",
    "renderedRole",
    "requestDigest",
    "requestId",
    "requestRef",
    "requestSessionId",
    "requestedModel",
    "role",
    "sessionId",
    "sessionKind",
    "session_id",
    "shapeHash",
    "signature",
    "slug",
    "snapshotMessageId",
    "sourceToolAssistantUUID",
    "sourceToolUseID",
    "startTime",
    "stop_reason",
    "subtype",
    "timestamp",
    "toolUseID",
    "toolUseId",
    "tool_use_id",
    "turnAttributionKey",
    "turnOrigin",
    "type",
    "usage",
    "userType",
    "uuid",
    "version",
]);

/// Types of content block.
static BLOCKS: NameSet = NameSet::new(&[
    "document",
    "fallback",
    "image",
    "redacted_thinking",
    "server_tool_use",
    "text",
    "thinking",
    "tool_addition",
    "tool_reference",
    "tool_result",
    "tool_use",
    "web_fetch_tool_result",
    "web_search_tool_result",
]);

/// Fields of `message`.
static MESSAGE_FIELDS: NameSet = NameSet::new(&[
    "container",
    "content",
    "context_management",
    "diagnostics",
    "id",
    "model",
    "provider",
    "role",
    "service_tier",
    "stop_details",
    "stop_reason",
    "stop_sequence",
    "timestamp",
    "type",
    "usage",
]);

/// Fields of content blocks.
static BLOCK_FIELDS: NameSet = NameSet::new(&[
    "cache_control",
    "caller",
    "citations",
    "content",
    "context",
    "data",
    "from",
    "id",
    "input",
    "is_error",
    "name",
    "signature",
    "source",
    "text",
    "thinking",
    "title",
    "to",
    "tool_use_id",
    "type",
]);

/// Fields at the top of a line.
static FIELDS: NameSet = NameSet::new(&[
    "agentId",
    "agentName",
    "agentSetting",
    "aiTitle",
    "apiBlockIndex",
    "apiError",
    "apiErrorStatus",
    "apiErrorType",
    "apiRefusalCategory",
    "apiRefusalExplanation",
    "atis",
    "attachment",
    "attributionAgent",
    "attributionMcpServer",
    "attributionMcpTool",
    "attributionPlugin",
    "attributionSkill",
    "backup",
    "base",
    "bridgeSessionId",
    "cacheControl",
    "cause",
    "classifierMetaLines",
    "commandOutcome",
    "commandRun",
    "commandUuid",
    "compactMetadata",
    "content",
    "contextLength",
    "costUSD",
    "customTitle",
    "cutUuid",
    "cwd",
    "data",
    "deliveryId",
    "direction",
    "durationMs",
    "effort",
    "entrypoint",
    "error",
    "errorDetails",
    "explicit",
    "failedHookErrorIndexes",
    "failedResponseHadNoToolCall",
    "fallbackModel",
    "forkedFrom",
    "frameUrl",
    "gitBranch",
    "hasOutput",
    "hasUnknownModelCost",
    "hash",
    "hookAdditionalContext",
    "hookCount",
    "hookErrors",
    "hookEvent",
    "hookInfos",
    "hookName",
    "humanTurn",
    "id",
    "imagePasteIds",
    "interruptedMessageId",
    "isAbortedMidStream",
    "isApiErrorMessage",
    "isCompactSummary",
    "isMeta",
    "isSidechain",
    "isSnapshotUpdate",
    "isVirtual",
    "isVisibleInTranscriptOnly",
    "keep",
    "lastPrompt",
    "lastSequenceNum",
    "leafUuid",
    "level",
    "logicalParentUuid",
    "madeBy",
    "maxRetries",
    "mcpMeta",
    "message",
    "messageCount",
    "messageId",
    "microcompactMetadata",
    "mode",
    "modelUsage",
    "operation",
    "origin",
    "originalModel",
    "ownerAccountUuid",
    "ownerOrganizationUuid",
    "params",
    "parentLastUuid",
    "parentSessionId",
    "parentToolUseID",
    "parentUuid",
    "path",
    "pendingBackgroundAgentCount",
    "perTurnEffort",
    "permissionDecision",
    "permissionMode",
    "planContent",
    "prNumber",
    "prRepository",
    "prUrl",
    "preventedContinuation",
    "progressData",
    "promptCacheRequested",
    "promptId",
    "promptSource",
    "querySource",
    "queuePriority",
    "queueSkipAttachments",
    "reason",
    "refusedMessageId",
    "refusedUserMessageUuid",
    "rendered",
    "renderedBesideToolResult",
    "renderedInHumanTurn",
    "renderedRole",
    "replacements",
    "requestDigest",
    "requestId",
    "requestRef",
    "requestSessionId",
    "requestedModel",
    "retryAttempt",
    "retryInMs",
    "rewound",
    "sandboxed",
    "serverClassifierRequest",
    "sessionId",
    "sessionKind",
    "session_id",
    "shape",
    "shapeHash",
    "slug",
    "snapshot",
    "snapshotMessageId",
    "source",
    "sourceToolAssistantUUID",
    "sourceToolUseID",
    "startTime",
    "stopReason",
    "subtype",
    "summary",
    "tag",
    "tail",
    "teamName",
    "thinkingDisplay",
    "thinkingDurationMs",
    "thinkingMetadata",
    "timestamp",
    "title",
    "todos",
    "tokenCount",
    "toolDenialBeforeRun",
    "toolDenialKind",
    "toolInputStreamMs",
    "toolUseID",
    "toolUseResult",
    "tools",
    "totalAPIDuration",
    "totalAPIDurationWithoutRetries",
    "totalCostUSD",
    "totalDuration",
    "totalLinesAdded",
    "totalLinesRemoved",
    "totalToolDuration",
    "trackingPath",
    "trigger",
    "turnAttributionKey",
    "turnCompanion",
    "turnOrigin",
    "turnPosition",
    "type",
    "unspool",
    "upgradeNudge",
    "url",
    "userFeedback",
    "userType",
    "uuid",
    "version",
    "worktreeSession",
]);

#[cfg(test)]
mod tests {
    use super::*;

    /// Every name is found soon, and no other is.
    pub(super) fn every_name_is_found_soon(names: &NameSet) {
        assert!(names.list.is_sorted_by(|one, next| one < next));
        let mut steps = 0;
        for name in names.list {
            assert_eq!(names.find(name), Some(*name));
            let from = place(name.as_bytes());
            let at = |step: &usize| {
                let number = names.places[(from + step) % PLACES];
                number > 0 && names.list[usize::from(number) - 1] == *name
            };
            steps += 1 + (0..PLACES).find(at).unwrap();
        }
        assert!(steps <= 2 * names.list.len(), "{steps}");
        for other in ["", "x", "neverSeen", "parentUUID"] {
            assert_eq!(names.find(other), None);
        }
    }

    #[test]
    fn every_name_is_found_soon_and_no_other_is() {
        for names in [
            &LABELS,
            &MARKS,
            &BLOCKS,
            &MESSAGE_FIELDS,
            &BLOCK_FIELDS,
            &FIELDS,
        ] {
            every_name_is_found_soon(names);
        }
        assert!(is_field("parentUuid") && !is_field("neverSeen"));
    }
}
