//! Fields of objects within a line: each object that has a shape of its own, by where it stands.
//!
//! What tools, servers and settings gave is not among them, for they may give anything.

use super::NameSet;

/// The shape of the object that stands at this place of a line, such as `snapshot` or
/// `message.usage`, if it was seen before.
pub(crate) fn shape(path: &str) -> Option<&'static NestedFieldNames> {
    SHAPES.iter().find(|shape| shape.path == path).copied()
}

/// An object within a line, as it was seen so far.
pub(crate) struct NestedFieldNames {
    path: &'static str,
    names: NameSet,
    /// Objects within it that have shapes, by the fields that hold them.
    inner: &'static [(&'static str, &'static NestedFieldNames)],
    /// The shape of all its values, where the fields are names that somebody gave.
    each: Option<&'static NestedFieldNames>,
}

impl NestedFieldNames {
    const fn new(path: &'static str, names: &'static [&'static str]) -> NestedFieldNames {
        NestedFieldNames {
            path,
            names: NameSet::new(names),
            inner: &[],
            each: None,
        }
    }

    const fn holding(
        mut self,
        inner: &'static [(&'static str, &'static NestedFieldNames)],
    ) -> NestedFieldNames {
        self.inner = inner;
        self
    }

    const fn of_each(path: &'static str, each: &'static NestedFieldNames) -> NestedFieldNames {
        let mut shape = NestedFieldNames::new(path, &[]);
        shape.each = Some(each);
        shape
    }

    /// Where it stands in a line.
    pub(crate) fn path(&self) -> &'static str {
        self.path
    }

    /// Whether a field of this name was seen in it.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.each.is_some() || self.names.find(name).is_some()
    }

    /// The shape of what this field holds, if that is an object with a shape.
    pub(crate) fn inner(&self, name: &str) -> Option<&'static NestedFieldNames> {
        let known = self.inner.iter().find(|(field, _)| *field == name);
        known.map(|(_, shape)| *shape)
    }

    /// The shape of all its values, where its fields are names that somebody gave.
    pub(crate) fn each(&self) -> Option<&'static NestedFieldNames> {
        self.each
    }
}

/// All of them.
static SHAPES: [&NestedFieldNames; 34] = [
    &ATTACHMENT,
    &BLOCKING_ERROR,
    &IDENTITY,
    &FRAMING,
    &MACHINE,
    &TASK_USAGE,
    &BACKUP,
    &COMMAND_RUN,
    &COMPACTION,
    &PRESERVED_MESSAGES,
    &PRESERVED_SEGMENT,
    &PROGRESS,
    &ERROR,
    &CONNECTION,
    &FORK,
    &HOOK_INFO,
    &CONTAINER,
    &CONTEXT_MANAGEMENT,
    &STOP_DETAILS,
    &USAGE,
    &CACHE_CREATION,
    &ITERATIONS,
    &OUTPUT_DETAILS,
    &SERVER_TOOL_USE,
    &MICRO_COMPACTION,
    &MODEL_USAGE,
    &ONE_MODEL,
    &ORIGIN,
    &PERMISSION_DECISION,
    &SNAPSHOT,
    &BACKUPS,
    &THINKING,
    &TURN_POSITION,
    &WORKTREE,
];

static ATTACHMENT: NestedFieldNames = NestedFieldNames::new(
    "attachment",
    &[
        "addedBlocks",
        "addedLines",
        "addedNames",
        "addedTypes",
        "allowedTools",
        "attachments",
        "autoModeConsentFlow",
        "availableCommandCount",
        "availableCommandNames",
        "bashFirst",
        "bashFirstSteer",
        "blockingError",
        "budget",
        "builtInPluginTypes",
        "builtInTypes",
        "bypass",
        "cliPrefix",
        "command",
        "commandMode",
        "commandName",
        "commit",
        "condition",
        "content",
        "context",
        "contextRendering",
        "data",
        "date",
        "delivery_id",
        "deltaSummary",
        "description",
        "digests",
        "displayPath",
        "durationMs",
        "echoWireToolInputs",
        "entries",
        "exitCode",
        "failedMcpServers",
        "fileCount",
        "filename",
        "files",
        "finishExposedWork",
        "headers",
        "hookEvent",
        "hookName",
        "humanTurn",
        "ideName",
        "identity",
        "imagePasteIds",
        "inlineTools",
        "isInitial",
        "isMeta",
        "isNew",
        "isSubAgent",
        "itemCount",
        "keptReminders",
        "level",
        "lineEnd",
        "lineStart",
        "managedCommit",
        "managedPr",
        "message",
        "met",
        "model",
        "name",
        "names",
        "needsAuthMcpServers",
        "newDate",
        "origin",
        "outcome",
        "output",
        "outputFilePath",
        "pages",
        "path",
        "pendingMcpServers",
        "planContent",
        "planExists",
        "planFilePath",
        "pr",
        "processId",
        "prompt",
        "readdedNames",
        "reason",
        "remaining",
        "reminderFold",
        "reminderType",
        "removedNames",
        "removedTypes",
        "response",
        "runId",
        "savedCopyFraming",
        "selectedText",
        "sendUserFileHint",
        "sentinel",
        "server",
        "showConcurrencyNote",
        "skillCount",
        "skillDir",
        "skillNames",
        "skills",
        "snapshot",
        "snippet",
        "source_uuid",
        "species",
        "status",
        "stderr",
        "stdout",
        "steerOnly",
        "surfacedNames",
        "systemPrompt",
        "systemTurns",
        "taskId",
        "taskType",
        "text",
        "timestamp",
        "toolChangeHeader",
        "toolName",
        "toolUseID",
        "tools",
        "toolsUsedDelta",
        "total",
        "totalTokens",
        "truncated",
        "type",
        "uri",
        "url",
        "usage",
        "used",
        "wireHiddenNames",
    ],
)
.holding(&[
    ("blockingError", &BLOCKING_ERROR),
    ("identity", &IDENTITY),
    ("savedCopyFraming", &FRAMING),
    ("snapshot", &MACHINE),
    ("usage", &TASK_USAGE),
]);

static BLOCKING_ERROR: NestedFieldNames =
    NestedFieldNames::new("attachment.blockingError", &["blockingError", "command"]);

static IDENTITY: NestedFieldNames = NestedFieldNames::new(
    "attachment.identity",
    &["knowledgeCutoff", "marketingName", "modelId"],
);

static FRAMING: NestedFieldNames =
    NestedFieldNames::new("attachment.savedCopyFraming", &["enveloped"]);

static MACHINE: NestedFieldNames = NestedFieldNames::new(
    "attachment.snapshot",
    &[
        "additionalWorkingDirectories",
        "isGitRepo",
        "isWorktree",
        "osVersion",
        "platform",
        "shell",
        "workingDirectory",
    ],
);

static TASK_USAGE: NestedFieldNames = NestedFieldNames::new(
    "attachment.usage",
    &["durationMs", "toolUses", "totalTokens"],
);

static BACKUP: NestedFieldNames = NestedFieldNames::new(
    "backup",
    &["backupFileName", "backupTime", "realParentDir", "version"],
);

static COMMAND_RUN: NestedFieldNames = NestedFieldNames::new("commandRun", &["args", "command"]);

static COMPACTION: NestedFieldNames = NestedFieldNames::new(
    "compactMetadata",
    &[
        "cumulativeDroppedTokens",
        "durationMs",
        "messagesSummarized",
        "postTokens",
        "preCompactDiscoveredTools",
        "preTokens",
        "preservedMessages",
        "preservedSegment",
        "trigger",
        "userContext",
    ],
)
.holding(&[
    ("preservedMessages", &PRESERVED_MESSAGES),
    ("preservedSegment", &PRESERVED_SEGMENT),
]);

static PRESERVED_MESSAGES: NestedFieldNames = NestedFieldNames::new(
    "compactMetadata.preservedMessages",
    &["allUuids", "anchorUuid", "uuids"],
);

static PRESERVED_SEGMENT: NestedFieldNames = NestedFieldNames::new(
    "compactMetadata.preservedSegment",
    &["anchorUuid", "headUuid", "tailUuid"],
);

static PROGRESS: NestedFieldNames = NestedFieldNames::new(
    "data",
    &[
        "agentId",
        "command",
        "elapsedTimeMs",
        "elapsedTimeSeconds",
        "fullOutput",
        "hookEvent",
        "hookName",
        "message",
        "normalizedMessages",
        "output",
        "progress",
        "progressMessage",
        "prompt",
        "promptText",
        "query",
        "resultCount",
        "resume",
        "serverName",
        "status",
        "statusMessage",
        "taskDescription",
        "taskId",
        "taskType",
        "timeoutMs",
        "toolName",
        "total",
        "totalBytes",
        "totalLines",
        "type",
    ],
);

static ERROR: NestedFieldNames = NestedFieldNames::new(
    "error",
    &[
        "cause",
        "code",
        "connection",
        "errno",
        "error",
        "formatted",
        "headers",
        "isNetworkDown",
        "message",
        "name",
        "noResponse",
        "path",
        "rateLimits",
        "requestID",
        "requestId",
        "stack",
        "status",
        "type",
    ],
)
.holding(&[("connection", &CONNECTION)]);

static CONNECTION: NestedFieldNames =
    NestedFieldNames::new("error.connection", &["code", "isSSLError", "message"]);

static FORK: NestedFieldNames = NestedFieldNames::new("forkedFrom", &["messageUuid", "sessionId"]);

static HOOK_INFO: NestedFieldNames =
    NestedFieldNames::new("hookInfos", &["command", "durationMs", "promptText"]);

static CONTAINER: NestedFieldNames =
    NestedFieldNames::new("message.container", &["expires_at", "id", "skills"]);

static CONTEXT_MANAGEMENT: NestedFieldNames =
    NestedFieldNames::new("message.context_management", &["applied_edits"]);

static STOP_DETAILS: NestedFieldNames =
    NestedFieldNames::new("message.stop_details", &["category", "explanation", "type"]);

static USAGE: NestedFieldNames = NestedFieldNames::new(
    "message.usage",
    &[
        "cache_creation",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
        "fallback_credit",
        "inference_geo",
        "input_tokens",
        "iterations",
        "output_tokens",
        "output_tokens_details",
        "server_tool_use",
        "service_tier",
        "speed",
    ],
)
.holding(&[
    ("iterations", &ITERATIONS),
    ("output_tokens_details", &OUTPUT_DETAILS),
]);

static CACHE_CREATION: NestedFieldNames = NestedFieldNames::new(
    "message.usage.cache_creation",
    &["ephemeral_1h_input_tokens", "ephemeral_5m_input_tokens"],
);

static ITERATIONS: NestedFieldNames = NestedFieldNames::new(
    "message.usage.iterations",
    &[
        "cache_creation",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
        "input_tokens",
        "model",
        "output_tokens",
        "type",
    ],
);

static OUTPUT_DETAILS: NestedFieldNames =
    NestedFieldNames::new("message.usage.output_tokens_details", &["thinking_tokens"]);

static SERVER_TOOL_USE: NestedFieldNames = NestedFieldNames::new(
    "message.usage.server_tool_use",
    &["web_fetch_requests", "web_search_requests"],
);

static MICRO_COMPACTION: NestedFieldNames = NestedFieldNames::new(
    "microcompactMetadata",
    &[
        "clearedAttachmentUUIDs",
        "compactedToolIds",
        "preTokens",
        "tokensSaved",
        "trigger",
    ],
);

static MODEL_USAGE: NestedFieldNames = NestedFieldNames::of_each("modelUsage", &ONE_MODEL);

static ONE_MODEL: NestedFieldNames = NestedFieldNames::new(
    "modelUsage.<model>",
    &[
        "cacheCreationEphemeral1hInputTokens",
        "cacheCreationEphemeral5mInputTokens",
        "cacheCreationInputTokens",
        "cacheReadInputTokens",
        "contextWindow",
        "costUSD",
        "inputTokens",
        "maxOutputTokens",
        "outputTokens",
        "thinkingTokens",
        "webSearchRequests",
    ],
);

static ORIGIN: NestedFieldNames = NestedFieldNames::new(
    "origin",
    &["from", "kind", "name", "producer", "runId", "server"],
);

static PERMISSION_DECISION: NestedFieldNames = NestedFieldNames::new(
    "permissionDecision",
    &[
        "decision",
        "grantScope",
        "reasonCode",
        "reasonType",
        "ruleSource",
        "source",
    ],
);

static SNAPSHOT: NestedFieldNames = NestedFieldNames::new(
    "snapshot",
    &[
        "hasUntrackedChanges",
        "messageId",
        "timestamp",
        "trackedFileBackups",
    ],
)
.holding(&[("trackedFileBackups", &BACKUPS)]);

static BACKUPS: NestedFieldNames =
    NestedFieldNames::of_each("snapshot.trackedFileBackups", &BACKUP);

static THINKING: NestedFieldNames = NestedFieldNames::new(
    "thinkingMetadata",
    &["disabled", "level", "maxThinkingTokens", "triggers"],
);

static TURN_POSITION: NestedFieldNames =
    NestedFieldNames::new("turnPosition", &["promptIndex", "turnIndex"]);

static WORKTREE: NestedFieldNames = NestedFieldNames::new(
    "worktreeSession",
    &[
        "hookBased",
        "originalBranch",
        "originalCwd",
        "originalHeadCommit",
        "preEnterOriginalCwd",
        "sessionId",
        "tmuxSessionName",
        "worktreeBranch",
        "worktreeName",
        "worktreePath",
    ],
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_stands_where_its_parent_holds_it() {
        assert!(SHAPES.is_sorted_by(|one, next| one.path < next.path));
        for shape in SHAPES {
            super::super::tests::every_name_is_found_soon(&shape.names);
            for (field, inner) in shape.inner {
                assert!(shape.has(field), "{}.{field}", shape.path);
                assert_eq!(inner.path, format!("{}.{field}", shape.path));
            }
        }
        let snapshot = shape("snapshot").unwrap();
        assert!(snapshot.has("messageId") && !snapshot.has("neverSeen"));
        assert!(shape("neverSeen").is_none());
    }
}
