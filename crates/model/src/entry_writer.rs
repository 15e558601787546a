//! Lines of a transcript, made: what happened and a stamp become the text of one line.
//!
//! The other direction of [`crate::entry`]. The shapes are those that clients from 2.1.29 on
//! write and all of them read; what only one version knows is left out. Nothing here has a
//! clock or chance: ids, times and the three words of a session come with the [`EntryStamp`].

mod session_slug;

use serde_json::{Map, Value, json};

use crate::time::Time;

pub use session_slug::slug;

/// What all lines of a chain carry beside what they say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryStamp {
    /// The id of the line.
    pub uuid: String,
    /// The line before it; `None` for the first.
    pub parent: Option<String>,
    /// When it is written.
    pub time: Time,
    /// The session.
    pub session: String,
    /// Where the conversation stands.
    pub cwd: String,
    /// The program that writes.
    pub version: String,
    /// How it was started, such as `cli`.
    pub entrypoint: String,
    /// The branch of git, if there is one.
    pub branch: Option<String>,
    /// The three words that name the session.
    pub slug: Option<String>,
    /// The sub-agent, in its own file.
    pub agent: Option<String>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum NewEntry {
    /// Somebody said something.
    Prompt {
        /// A text, or a list of blocks.
        content: Value,
        /// Shared by all that follows from it.
        id: String,
        /// The permission mode it was typed in.
        mode: Option<String>,
        /// `typed`, `sdk` or `queued`.
        source: Option<String>,
    },
    /// The program says something to the model.
    Meta {
        /// A text, or a list of blocks.
        content: Value,
        /// The prompt it follows from.
        id: Option<String>,
        /// The call it belongs to: what a skill says.
        call: Option<String>,
    },
    /// What came of a call.
    Result {
        /// The call.
        call: String,
        /// A text, or a list of blocks.
        content: Value,
        /// Whether it failed; most tools say nothing if not.
        is_error: Option<bool>,
        /// The same for programs; sub-agents' files have none.
        result: Value,
        /// The line that made the call.
        source: Option<String>,
        /// The prompt it follows from.
        id: Option<String>,
        /// Why it was not run, such as `user-rejected`.
        denial: Option<String>,
    },
    /// One block of a reply.
    Reply(ReplyBlock),
    /// The client speaks in the model's place, and the model never said it.
    Synthetic {
        /// What is said.
        text: String,
        /// Set for a failure of the API: what kind.
        error: Option<String>,
        /// The id of the message: any that is new.
        message: String,
        /// The request that failed.
        request: Option<String>,
    },
    /// Somebody stopped it.
    Interrupt {
        /// While a tool ran, or was asked for.
        tool: bool,
        /// The prompt it follows from.
        id: Option<String>,
    },
    /// A turn is over.
    TurnDuration {
        /// How long it took.
        ms: u64,
        /// How many messages the conversation has.
        messages: u64,
    },
    /// A command that the program itself answers, or its answer.
    LocalCommand(String),
    /// A try that failed and is repeated.
    Retry {
        /// The status of the answer, if there was one.
        status: Option<u16>,
        /// What was said.
        message: String,
        /// The request.
        request: Option<String>,
        /// When it is tried again.
        wait: u64,
        /// Which try failed, from 1.
        attempt: u32,
        /// How many there are at most.
        most: u32,
    },
    /// Everything before it is replaced by the summary that follows.
    Boundary {
        /// `manual` or `auto`.
        trigger: String,
        /// Tokens before.
        before: u64,
        /// Tokens after, as far as known.
        after: u64,
        /// How long it took.
        ms: u64,
        /// The line it follows.
        follows: Option<String>,
        /// The last lines before it that stay said.
        kept: Option<PreservedTail>,
    },
    /// The summary behind a boundary.
    Summary {
        /// What it says.
        text: String,
        /// The prompt it follows from.
        id: Option<String>,
        /// Its own id, where the boundary names it already.
        uuid: Option<String>,
    },
    /// Something goes on in a call. It has a parent and never is one: old versions cut there.
    Progress {
        /// What, as the tool has it.
        data: Value,
        /// The call.
        call: String,
        /// A name of its own.
        id: String,
    },
    /// What was typed while the model worked: `enqueue`, `dequeue`, `remove`, `popAll`.
    Queue {
        /// What is done with it.
        operation: &'static str,
        /// What was typed.
        content: Option<String>,
    },
    /// The name somebody gave the session.
    Title(String),
    /// A name for a session whose last line is `leaf`.
    Named {
        /// The name.
        summary: String,
        /// The line.
        leaf: String,
    },
    /// What was asked last, and the line to go on from.
    LastPrompt {
        /// What was asked.
        text: String,
        /// The line; `None` to begin anew.
        leaf: Option<String>,
        /// Whether somebody went back to that line.
        explicit: bool,
    },
    /// Which copies of files were kept.
    Snapshot {
        /// The line that changes files; the prompt itself, if it is no update.
        message: String,
        /// The prompt.
        prompt: String,
        /// When the prompt was.
        since: Time,
        /// By path: the copy if there was a file, its number, when it was made.
        files: Vec<NewFileBackup>,
        /// Whether the prompt's snapshot is extended.
        update: bool,
    },
}

/// Lines before a boundary that are read again behind its summary. Old versions do not know
/// of them, so the summary covers what they say, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreservedTail {
    /// The line of the summary.
    pub anchor: String,
    /// The ids of the lines, in order.
    pub uuids: Vec<String>,
}

/// One block of a reply of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplyBlock {
    /// The id of the message, which all its blocks share.
    pub message: String,
    /// The request.
    pub request: Option<String>,
    /// The model that spoke.
    pub model: String,
    /// The block.
    pub block: Value,
    /// Why it stopped, if that is known.
    pub stop: Option<String>,
    /// The sequence it stopped at.
    pub sequence: Option<String>,
    /// Its tokens.
    pub usage: Value,
}

/// A copy of a file, or the note that there was none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFileBackup {
    /// The file.
    pub path: String,
    /// The copy; `None` if there was no file.
    pub name: Option<String>,
    /// Counts the copies of this file.
    pub version: u32,
    /// When it was made.
    pub time: Time,
}

/// What is written when somebody stops the model.
pub const INTERRUPTED: &str = "[Request interrupted by user]";
/// What is written when somebody stops a tool.
pub const INTERRUPTED_TOOL: &str = "[Request interrupted by user for tool use]";
/// What is written in the model's place where a prompt got no answer.
pub const NO_RESPONSE: &str = "No response requested.";
/// The line to begin anew from.
pub const NOWHERE: &str = "00000000-0000-0000-0000-000000000000";

impl NewEntry {
    /// Whether the line has an id and a parent.
    pub fn in_chain(&self) -> bool {
        !matches!(
            self,
            NewEntry::Queue { .. }
                | NewEntry::Title(_)
                | NewEntry::Named { .. }
                | NewEntry::LastPrompt { .. }
                | NewEntry::Snapshot { .. }
        )
    }

    /// The id it has to have, if there is one.
    pub fn uuid(&self) -> Option<&str> {
        match self {
            NewEntry::Summary { uuid, .. } => uuid.as_deref(),
            _ => None,
        }
    }

    /// Whether the next line may hang on it.
    pub fn is_parent(&self) -> bool {
        self.in_chain() && !matches!(self, NewEntry::Progress { .. })
    }
}

/// The text of a line, without its newline.
pub fn line(entry: &NewEntry, stamp: &EntryStamp) -> String {
    Value::Object(object(entry, stamp)).to_string()
}

fn object(entry: &NewEntry, stamp: &EntryStamp) -> Map<String, Value> {
    let mut line = LineBuilder::new(stamp);
    match entry {
        NewEntry::Prompt {
            content,
            id,
            mode,
            source,
        } => {
            line.chain();
            line.put("promptId", id.as_str());
            line.said(content);
            line.identity();
            line.maybe("permissionMode", mode.as_deref());
            line.maybe("promptSource", source.as_deref());
            line.envelope();
        }
        NewEntry::Meta { content, id, call } => {
            line.chain();
            line.maybe("promptId", id.as_deref());
            line.said(content);
            line.put("isMeta", true);
            line.identity();
            line.maybe("sourceToolUseID", call.as_deref());
            line.envelope();
        }
        NewEntry::Result { .. } => result(&mut line, entry),
        NewEntry::Reply(reply) => line.reply(reply),
        NewEntry::Synthetic {
            text,
            error,
            message,
            request,
        } => {
            line.chain();
            line.put("type", "assistant");
            line.identity();
            line.put("message", synthetic(text, message));
            line.maybe("requestId", request.as_deref());
            line.maybe("error", error.as_deref());
            line.put("isApiErrorMessage", error.is_some());
            line.envelope();
        }
        NewEntry::Interrupt { tool, id } => {
            let mark = if *tool { INTERRUPTED_TOOL } else { INTERRUPTED };
            line.chain();
            line.maybe("promptId", id.as_deref());
            line.said(&json!([{"type": "text", "text": mark}]));
            line.identity();
            line.envelope();
        }
        NewEntry::TurnDuration { ms, messages } => {
            line.system("turn_duration");
            line.put("durationMs", *ms);
            line.put("messageCount", *messages);
            line.put("isMeta", false);
            line.identity();
            line.envelope();
        }
        NewEntry::LocalCommand(content) => {
            line.system("local_command");
            line.put("content", content.as_str());
            line.put("level", "info");
            line.put("isMeta", false);
            line.identity();
            line.envelope();
        }
        NewEntry::Retry { .. } => retry(&mut line, entry),
        NewEntry::Boundary { .. } => boundary(&mut line, entry),
        NewEntry::Summary { text, id, .. } => {
            line.chain();
            line.maybe("promptId", id.as_deref());
            line.said(&Value::from(text.as_str()));
            line.put("isVisibleInTranscriptOnly", true);
            line.put("isCompactSummary", true);
            line.identity();
            line.envelope();
        }
        NewEntry::Progress { data, call, id } => {
            line.chain();
            line.put("type", "progress");
            line.put("data", data.clone());
            line.put("parentToolUseID", call.as_str());
            line.put("toolUseID", id.as_str());
            line.identity();
            line.envelope();
        }
        beside => line.beside(beside),
    }
    line.fields
}

fn result(line: &mut LineBuilder<'_>, entry: &NewEntry) {
    let NewEntry::Result {
        call,
        content,
        is_error,
        result,
        source,
        id,
        denial,
    } = entry
    else {
        return;
    };
    let mut block = Map::new();
    block.insert("tool_use_id".into(), call.as_str().into());
    block.insert("type".into(), "tool_result".into());
    block.insert("content".into(), content.clone());
    if let Some(is_error) = is_error {
        block.insert("is_error".into(), (*is_error).into());
    }
    line.chain();
    line.maybe("promptId", id.as_deref());
    line.said(&json!([block]));
    line.identity();
    if line.stamp.agent.is_none() {
        line.put("toolUseResult", result.clone());
    }
    line.maybe("toolDenialKind", denial.as_deref());
    line.maybe("sourceToolAssistantUUID", source.as_deref());
    line.envelope();
}

fn retry(line: &mut LineBuilder<'_>, entry: &NewEntry) {
    let NewEntry::Retry {
        status,
        message,
        request,
        wait,
        attempt,
        most,
    } = entry
    else {
        return;
    };
    line.system("api_error");
    line.put("level", "error");
    let mut error = Map::new();
    error.insert("message".into(), message.as_str().into());
    if let Some(status) = status {
        error.insert("status".into(), (*status).into());
    }
    if let Some(request) = request {
        error.insert("requestId".into(), request.as_str().into());
    }
    line.put("error", error);
    line.put("retryInMs", *wait);
    line.put("retryAttempt", *attempt);
    line.put("maxRetries", *most);
    line.identity();
    line.envelope();
}

fn boundary(line: &mut LineBuilder<'_>, entry: &NewEntry) {
    let NewEntry::Boundary {
        trigger,
        before,
        after,
        ms,
        follows,
        kept,
    } = entry
    else {
        return;
    };
    // Old versions stop at a line without a parent, new ones at the boundary itself.
    line.put("parentUuid", Value::Null);
    line.put("logicalParentUuid", follows.as_deref().map(Value::from));
    line.put("isSidechain", line.stamp.agent.is_some());
    line.put("type", "system");
    line.put("subtype", "compact_boundary");
    line.put("content", "Conversation compacted");
    line.put("isMeta", false);
    line.identity();
    line.put("level", "info");
    let mut about =
        json!({"trigger": trigger, "preTokens": before, "postTokens": after, "durationMs": ms});
    if let Some(PreservedTail { anchor, uuids }) = kept {
        about["preservedSegment"] = json!({
            "headUuid": uuids.first(), "anchorUuid": anchor, "tailUuid": uuids.last(),
        });
        about["preservedMessages"] =
            json!({"anchorUuid": anchor, "uuids": uuids, "allUuids": uuids});
    }
    line.put("compactMetadata", about);
    line.envelope();
}

fn synthetic(text: &str, message: &str) -> Value {
    json!({
        "id": message, "container": null, "model": "<synthetic>", "role": "assistant",
        "stop_reason": "stop_sequence", "stop_sequence": "", "type": "message",
        "usage": {
            "input_tokens": 0, "output_tokens": 0,
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
            "service_tier": null,
            "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
        },
        "content": [{"type": "text", "text": text}],
        "context_management": null,
    })
}

/// A line as it grows. The order of fields is that of 2.1.100.
struct LineBuilder<'a> {
    stamp: &'a EntryStamp,
    fields: Map<String, Value>,
}

impl<'a> LineBuilder<'a> {
    fn new(stamp: &'a EntryStamp) -> LineBuilder<'a> {
        LineBuilder {
            stamp,
            fields: Map::new(),
        }
    }

    fn put(&mut self, field: &str, value: impl Into<Value>) {
        self.fields.insert(field.to_owned(), value.into());
    }

    fn maybe(&mut self, field: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.put(field, value);
        }
    }

    fn chain(&mut self) {
        let parent = self.stamp.parent.as_deref().map(Value::from);
        self.put("parentUuid", parent);
        self.put("isSidechain", self.stamp.agent.is_some());
        self.maybe("agentId", self.stamp.agent.as_deref());
    }

    fn system(&mut self, subtype: &str) {
        self.chain();
        self.put("type", "system");
        self.put("subtype", subtype);
    }

    fn said(&mut self, content: &Value) {
        self.put("type", "user");
        self.put("message", json!({"role": "user", "content": content}));
    }

    fn identity(&mut self) {
        self.put("uuid", self.stamp.uuid.as_str());
        self.put("timestamp", self.stamp.time.to_string());
    }

    fn envelope(&mut self) {
        let stamp = self.stamp;
        self.put("userType", "external");
        self.put("entrypoint", stamp.entrypoint.as_str());
        self.put("cwd", stamp.cwd.as_str());
        self.put("sessionId", stamp.session.as_str());
        self.put("version", stamp.version.as_str());
        self.maybe("gitBranch", stamp.branch.as_deref());
        self.maybe("slug", stamp.slug.as_deref());
    }

    fn reply(&mut self, reply: &ReplyBlock) {
        self.chain();
        let message = json!({
            "id": reply.message, "type": "message", "role": "assistant", "model": reply.model,
            "content": [reply.block],
            "stop_reason": reply.stop, "stop_sequence": reply.sequence, "usage": reply.usage,
        });
        self.put("message", message);
        self.maybe("requestId", reply.request.as_deref());
        self.put("type", "assistant");
        self.identity();
        self.envelope();
    }

    /// Lines beside the chain.
    fn beside(&mut self, entry: &NewEntry) {
        let stamp = self.stamp;
        match entry {
            NewEntry::Queue { operation, content } => {
                self.put("type", "queue-operation");
                self.put("operation", *operation);
                self.put("timestamp", stamp.time.to_string());
                self.put("sessionId", stamp.session.as_str());
                self.maybe("content", content.as_deref());
            }
            NewEntry::Title(title) => {
                self.put("type", "custom-title");
                self.put("customTitle", title.as_str());
                self.put("sessionId", stamp.session.as_str());
            }
            NewEntry::Named { summary, leaf } => {
                self.put("type", "summary");
                self.put("summary", summary.as_str());
                self.put("leafUuid", leaf.as_str());
            }
            NewEntry::LastPrompt {
                text,
                leaf,
                explicit,
            } => {
                self.put("type", "last-prompt");
                self.put("lastPrompt", text.as_str());
                self.put("leafUuid", leaf.as_deref().unwrap_or(NOWHERE));
                if *explicit {
                    self.put("explicit", true);
                }
                self.put("sessionId", stamp.session.as_str());
            }
            NewEntry::Snapshot {
                message,
                prompt,
                since,
                files,
                update,
            } => {
                self.put("type", "file-history-snapshot");
                self.put("messageId", message.as_str());
                let kept: Map<String, Value> = files.iter().map(backup).collect();
                let snapshot = json!({
                    "messageId": prompt, "trackedFileBackups": kept,
                    "timestamp": since.to_string(),
                });
                self.put("snapshot", snapshot);
                self.put("isSnapshotUpdate", *update);
            }
            _ => {}
        }
    }
}

fn backup(backup: &NewFileBackup) -> (String, Value) {
    let kept = json!({
        "backupFileName": backup.name, "version": backup.version,
        "backupTime": backup.time.to_string(),
    });
    (backup.path.clone(), kept)
}

/// A time that is later than the last one, by a millisecond at least: on a tie old versions
/// lose the later line.
pub fn rising(now: Time, last: Option<Time>) -> Time {
    match last {
        Some(last) if now <= last => Time(last.0 + 1),
        _ => now,
    }
}

#[cfg(test)]
mod tests;
