//! What the client tells a hook: one JSON object per event, on standard input.
//!
//! Names and fields differ between versions and grow with each, so nothing is required here: a
//! field that is missing or of another type is simply not there, and an event that we have never
//! heard of is an event like any other. Of an object that is cut off in the middle, what stood
//! before the cut counts.

use crate::block;
use crate::json::{self, JsonCursor, JsonError};

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookEvent {
    /// What happened, such as `Stop`.
    pub name: String,
    /// The session it happened in.
    pub session: String,
    /// The transcript of the session, as the client says.
    pub transcript: Option<String>,
    /// The directory the client works in.
    pub cwd: Option<String>,
    /// How permissions are handled.
    pub permission_mode: Option<String>,
    /// The tool it is about.
    pub tool: Option<String>,
    /// The id of the call.
    pub call: Option<String>,
    /// What the call is about, on one line.
    pub subject: Option<String>,
    /// What a notification says.
    pub message: Option<String>,
    /// What kind of notification it is.
    pub notification: Option<String>,
    /// Why it happened: how a session began or ended, what made it compact.
    pub reason: Option<String>,
    /// The sub-agent it happened in.
    pub agent: Option<String>,
    /// What kind of sub-agent that is.
    pub agent_type: Option<String>,
    /// The transcript of that sub-agent.
    pub agent_transcript: Option<String>,
    /// The beginning of the last thing the model said, up to [`SAID`] bytes.
    pub said: Option<String>,
    /// What kind of failure ended a turn, such as `rate_limit`.
    pub error: Option<String>,
    /// What still runs in the background, if the event says.
    pub running: Option<Vec<RunningTask>>,
}

/// Something that runs in the background.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunningTask {
    /// Its id.
    pub id: String,
    /// Whether it is a sub-agent.
    pub agent: bool,
}

/// So much of what the model said last is kept: enough to find it again.
pub const SAID: usize = 1000;
/// So much of a notification is kept.
const MESSAGE: usize = 500;
/// Names and ids are shorter; what is not is no name.
const NAME: usize = 200;
/// Paths may be longer.
const PATH: usize = 4096;

/// An event as far as it could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedHookEvent {
    /// What was understood.
    pub event: HookEvent,
    /// Why the rest was not.
    pub bad: Option<JsonError>,
}

impl HookEvent {
    /// Reads an event.
    pub fn read(bytes: &[u8]) -> ParsedHookEvent {
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        let mut event = HookEvent::default();
        let mut input = None;
        let mut cursor = JsonCursor::new(bytes);
        let read = cursor.object(|c, key| {
            c.peek();
            let start = c.position();
            let span = c.skip()?;
            match key {
                "tool_input" => input = Some(span),
                "background_tasks" => event.running = running(span.of(bytes)),
                _ => {}
            }
            if bytes.get(start) == Some(&b'"') {
                event.set(key, span.of(bytes));
            }
            Ok(())
        });
        event.subject = match (&event.tool, input) {
            (Some(tool), Some(input)) => block::subject(tool, input.of(bytes)).map(String::from),
            _ => None,
        };
        let bad = match read {
            Ok(true) => None,
            Ok(false) => Some(JsonError {
                at: 0,
                why: "expected an object",
            }),
            Err(bad) => Some(bad),
        };
        ParsedHookEvent { event, bad }
    }

    fn set(&mut self, key: &str, raw: &[u8]) {
        let text = |limit| Some(json::string_head(raw, limit)).filter(|text| !text.is_empty());
        match key {
            "hook_event_name" => self.name = text(NAME).unwrap_or_default(),
            "session_id" => self.session = text(NAME).unwrap_or_default(),
            "transcript_path" => self.transcript = text(PATH),
            "cwd" => self.cwd = text(PATH),
            "permission_mode" => self.permission_mode = text(NAME),
            "tool_name" => self.tool = text(NAME),
            "tool_use_id" => self.call = text(NAME),
            "message" | "error_details" => self.message = text(MESSAGE),
            "error" => self.error = text(NAME),
            "notification_type" => self.notification = text(NAME),
            "source" | "reason" | "trigger" => self.reason = text(NAME),
            "agent_id" => self.agent = text(NAME),
            "agent_type" => self.agent_type = text(NAME),
            "agent_transcript_path" => self.agent_transcript = text(PATH),
            "last_assistant_message" => self.said = text(SAID),
            _ => {}
        }
    }

    /// Whether something may have come to an end that is worth sending. Who does not say what
    /// happened may mean that.
    pub fn is_sent(&self) -> bool {
        self.name.is_empty() || self.is_begin() || SENT.contains(&self.name.as_str())
    }

    /// Whether a client begins with a session, new or old.
    pub fn is_begin(&self) -> bool {
        self.name == "SessionStart"
    }

    /// The transcript whose last reply [`HookEvent::said`] is: that of the sub-agent where one
    /// came to its end.
    pub fn spoken_in(&self) -> Option<&str> {
        let agent = self.agent_transcript.as_deref();
        agent
            .filter(|_| self.name == "SubagentStop")
            .or(self.transcript.as_deref())
    }
}

/// Not more than so many of them are kept.
const RUNNING: usize = 100;

/// What a list of tasks says still runs.
fn running(raw: &[u8]) -> Option<Vec<RunningTask>> {
    let tasks = json::value(raw);
    let tasks = tasks.as_array()?.iter().filter(|task| {
        let status = task["status"].as_str();
        status.is_none_or(|status| status == "running" || status == "pending")
    });
    let running = tasks.filter_map(|task| {
        let id = task["id"].as_str().filter(|id| id.len() <= NAME)?;
        let agent = task["type"]
            .as_str()
            .is_some_and(|kind| kind.contains("agent"));
        Some(RunningTask {
            id: id.to_owned(),
            agent,
        })
    });
    Some(running.take(RUNNING).collect())
}

/// Events after which there may be something new to send, besides `SessionStart`.
const SENT: [&str; 5] = [
    "Stop",
    "StopFailure",
    "SubagentStop",
    "SessionEnd",
    "PreCompact",
];

/// Events that are needed to send what was said; every client that has hooks knows them.
pub const EXPORT: [&str; 5] = [
    "SessionStart",
    "Stop",
    "SubagentStop",
    "PreCompact",
    "SessionEnd",
];

/// Events that tell what a session does at this moment, each with the client that brought it.
///
/// A client that does not know an event ignores the whole settings file it stands in, so the
/// version matters.
pub const LIVE: [(&str, [u32; 3]); 9] = [
    ("UserPromptSubmit", [0, 0, 0]),
    ("PreToolUse", [0, 0, 0]),
    ("PostToolUse", [0, 0, 0]),
    ("Notification", [0, 0, 0]),
    ("SubagentStart", [2, 0, 45]),
    ("PermissionRequest", [2, 0, 45]),
    ("PostToolUseFailure", [2, 1, 78]),
    ("PostCompact", [2, 1, 78]),
    ("StopFailure", [2, 1, 78]),
];

/// All events that clients are known to have, up to 2.1.327.
const EVENTS: [&str; 33] = [
    "ConfigChange",
    "CwdChanged",
    "DirectoryAdded",
    "Elicitation",
    "ElicitationResult",
    "FileChanged",
    "InstructionsLoaded",
    "MessageDisplay",
    "Notification",
    "PermissionDenied",
    "PermissionRequest",
    "PostCompact",
    "PostModelSwitch",
    "PostToolBatch",
    "PostToolUse",
    "PostToolUseFailure",
    "PreCompact",
    "PreModelSwitch",
    "PreToolUse",
    "SessionEnd",
    "SessionStart",
    "Setup",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "TaskCompleted",
    "TaskCreated",
    "TeammateIdle",
    "UserPromptExpansion",
    "UserPromptSubmit",
    "WorktreeCreate",
    "WorktreeRemove",
];

/// Whether some client has an event of this name.
pub fn is_event(name: &str) -> bool {
    // The lines of a status bar are made by a command in the form of a hook.
    EVENTS.binary_search(&name).is_ok() || matches!(name, "StatusLine" | "FileSuggestion")
}

/// What a hook may be, as settings name it.
pub const TYPES: [&str; 5] = ["agent", "command", "http", "mcp_tool", "prompt"];

/// Whether an event is about a tool, so that its hooks are chosen by the name of that.
pub fn is_by_tool(event: &str) -> bool {
    event.contains("ToolUse") || event.starts_with("Permission")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_read_as_the_client_writes_it() {
        let told = HookEvent::read(
            br#"{"session_id":"10","transcript_path":"/p/10.jsonl","cwd":"/w","effort":{"level":"medium"},"hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"first \"stop\"","background_tasks":[]}"#,
        );
        assert_eq!(told.bad, None);
        let event = told.event;
        assert_eq!(
            (event.name.as_str(), event.session.as_str()),
            ("Stop", "10")
        );
        assert_eq!(event.said.as_deref(), Some("first \"stop\""));
        assert_eq!(event.spoken_in(), Some("/p/10.jsonl"));
        assert!(event.is_sent() && !event.is_begin());
    }

    #[test]
    fn a_stop_names_what_still_runs_and_a_failure_says_why() {
        let event = HookEvent::read(
            br#"{"hook_event_name":"Stop","background_tasks":[{"id":"a1","type":"subagent","status":"running"},{"id":"b1","type":"bash","status":"completed"},{"id":"b2","type":"shell","status":"running"}]}"#,
        )
        .event;
        let running = event.running.unwrap();
        let running: Vec<_> = running.iter().map(|one| (&*one.id, one.agent)).collect();
        assert_eq!(running, [("a1", true), ("b2", false)]);
        let event = HookEvent::read(
            br#"{"hook_event_name":"StopFailure","error":"rate_limit","error_details":"429"}"#,
        )
        .event;
        assert_eq!(event.error.as_deref(), Some("rate_limit"));
        assert_eq!(event.message.as_deref(), Some("429"));
        assert_eq!(event.running, None);
    }

    #[test]
    fn a_call_has_the_subject_that_every_list_shows() {
        let read = |text: &str| HookEvent::read(text.as_bytes()).event;
        // The input may stand before the name.
        let event = read(
            r#"{"hook_event_name":"PreToolUse","tool_input":{"command":"cargo test","description":"d"},"tool_name":"Bash","tool_use_id":"t1"}"#,
        );
        assert_eq!(event.subject.as_deref(), Some("cargo test"));
        assert_eq!(event.call.as_deref(), Some("t1"));
        assert!(!event.is_sent());
    }

    #[test]
    fn a_sub_agent_that_ends_speaks_in_its_own_file() {
        let event = HookEvent::read(
            br#"{"hook_event_name":"SubagentStop","transcript_path":"/p/s.jsonl","agent_transcript_path":"/p/s/a.jsonl","agent_id":"a1","last_assistant_message":"sub done"}"#,
        )
        .event;
        assert_eq!(event.spoken_in(), Some("/p/s/a.jsonl"));
        assert_eq!(event.agent.as_deref(), Some("a1"));
    }

    #[test]
    fn what_is_missing_of_another_type_or_unknown_does_no_harm() {
        let told = HookEvent::read(
            br#"{"hook_event_name":"Brand_New","session_id":7,"cwd":null,"transcript_path":"","x":{"y":[1]}}"#,
        );
        assert_eq!(told.bad, None);
        assert_eq!(told.event.name, "Brand_New");
        assert_eq!(told.event.session, "");
        assert_eq!(told.event.transcript, None);
        assert!(!told.event.is_sent());
        let told = HookEvent::read(br#"{"session_id":"s","transcript_path":"/t.jsonl"}"#);
        assert!(told.event.is_sent(), "an event without a name");
    }

    #[test]
    fn of_a_cut_object_counts_what_stands_before_the_cut() {
        let told = HookEvent::read(
            br#"{"hook_event_name":"PostToolUse","session_id":"s","tool_name":"Read","tool_response":{"content":"aaaa"#,
        );
        assert!(told.bad.is_some());
        assert_eq!(told.event.tool.as_deref(), Some("Read"));
        for wrong in [
            "", "  ", "null", "[1]", "\"Stop\"", "\0\0", "{", "{\"a\"", "\u{feff}",
        ] {
            let told = HookEvent::read(wrong.as_bytes());
            assert!(told.bad.is_some(), "{wrong:?}");
            assert_eq!(told.event, HookEvent::default(), "{wrong:?}");
        }
    }

    #[test]
    fn long_texts_are_kept_only_as_far_as_they_are_needed() {
        let long = "ä".repeat(100_000);
        let text = format!(r#"{{"last_assistant_message":"{long}","message":"{long}"}}"#);
        let event = HookEvent::read(text.as_bytes()).event;
        let length = |text: Option<String>| text.unwrap_or_default().len();
        assert_eq!(length(event.said), SAID);
        assert_eq!(length(event.message), MESSAGE);
    }

    #[test]
    fn every_event_that_we_ask_for_is_one_that_clients_have() {
        assert!(EVENTS.is_sorted());
        let live = LIVE.iter().map(|(name, _)| name);
        for name in EXPORT.iter().chain(&SENT).chain(live) {
            assert!(is_event(name), "{name}");
        }
        assert!(!is_event("BrandNew") && !is_event(""));
    }

    #[test]
    fn tools_choose_the_hooks_of_their_events_only() {
        assert!(is_by_tool("PreToolUse") && is_by_tool("PostToolUseFailure"));
        assert!(is_by_tool("PermissionRequest"));
        assert!(EXPORT.iter().all(|event| !is_by_tool(event)));
    }
}
