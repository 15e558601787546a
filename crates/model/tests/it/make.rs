//! Short ways to write transcripts and to read them back.

use unspool_model::block::BlockKind;
use unspool_model::entry::{self, Entry, LineKind};
use unspool_model::json;
use unspool_model::log::Log;
use unspool_model::session::{Message, Session, ToolCall, TranscriptRole};

/// A transcript in memory and what it means.
pub struct Read {
    pub log: Log,
    pub session: Session,
}

/// Reads lines as a main session.
pub fn read(lines: &[impl AsRef<str>]) -> Read {
    let mut text = String::new();
    for line in lines {
        text.push_str(line.as_ref());
        text.push('\n');
    }
    read_bytes(text)
}

/// Reads the bytes of a main session.
pub fn read_bytes(bytes: impl Into<Vec<u8>>) -> Read {
    let log = Log::new(bytes);
    let session = Session::from_log(&log, TranscriptRole::Main);
    Read { log, session }
}

/// The only entry on a line.
pub fn only(line: &str) -> Entry {
    let mut decoded = entry::decode(line.as_bytes());
    assert_eq!(decoded.entries.len(), 1, "{line}: {:?}", decoded.faults);
    decoded.entries.remove(0)
}

/// The name of a kind, for tables.
pub fn kind_name(kind: &LineKind) -> &'static str {
    match kind {
        LineKind::User => "user",
        LineKind::Assistant => "assistant",
        LineKind::CompactBoundary | LineKind::MicroBoundary => "compact",
        LineKind::TurnDuration => "duration",
        LineKind::StopHookSummary => "hooks",
        LineKind::LocalCommand => "local",
        LineKind::ApiError => "api-error",
        LineKind::System => "system",
        LineKind::Progress => "progress",
        LineKind::Attachment => "attachment",
        LineKind::QueuedCommand => "queued",
        LineKind::Queue => "queue",
        LineKind::Summary => "summary",
        LineKind::Title => "title",
        LineKind::LastPrompt => "last-prompt",
        LineKind::PermissionMode => "mode",
        LineKind::PrLink => "pr",
        LineKind::FileHistory => "files",
        LineKind::Bookkeeping => "bookkeeping",
        LineKind::Unknown => "unknown",
    }
}

/// The kinds of the blocks of an entry.
pub fn block_names(entry: &Entry) -> Vec<&str> {
    entry.blocks.iter().map(|block| block.name()).collect()
}

impl Read {
    /// The call with this id.
    pub fn call(&self, id: &str) -> &ToolCall {
        let at = self.session.find_call(id).expect("the call is there");
        &self.session.calls[at as usize]
    }

    /// The message with this id.
    pub fn message(&self, id: &str) -> &Message {
        let at = self.session.find_message(id).expect("the message is there");
        &self.session.messages[at as usize]
    }

    /// What stands inside a block, as JSON text.
    pub fn body(&self, record: u32, block: u32) -> String {
        let record = &self.session.records[record as usize];
        let bytes = self.session.bytes_of(&self.log, record);
        let body = self.session.blocks[block as usize].body();
        String::from_utf8(body.of(&bytes).to_vec()).unwrap()
    }

    /// The visible texts of a message, in order.
    pub fn texts(&self, message: &Message) -> Vec<String> {
        let content = self.session.content(message);
        let texts = content
            .iter()
            .filter(|(_, block)| self.session.blocks[*block as usize].kind == BlockKind::Text);
        texts
            .map(|&(record, block)| json::string(self.body(record, block).as_bytes()).into_owned())
            .collect()
    }

    /// The kinds of block of a message, in order.
    pub fn content(&self, message: &Message) -> Vec<&str> {
        let content = self.session.content(message);
        content
            .iter()
            .map(|(_, block)| self.session.type_of(&self.session.blocks[*block as usize]))
            .collect()
    }

    /// Names of the faults, in order.
    pub fn faults(&self) -> Vec<(u32, &'static str)> {
        let faults = self.session.faults.iter();
        faults
            .map(|fault| (fault.line, fault.kind.name()))
            .collect()
    }
}

/// A user line with this content (JSON), as part of the chain.
pub fn user(uuid: &str, parent: &str, at: &str, content: &str) -> String {
    let parent = parent_json(parent);
    format!(
        r#"{{"type":"user","uuid":"{uuid}","parentUuid":{parent},"sessionId":"s","timestamp":"{}","isSidechain":false,"message":{{"role":"user","content":{content}}}}}"#,
        time(at)
    )
}

/// A line of a reply with this content (JSON, an array).
pub fn reply(uuid: &str, parent: &str, at: &str, message: &str, content: &str) -> String {
    let parent = parent_json(parent);
    format!(
        r#"{{"type":"assistant","uuid":"{uuid}","parentUuid":{parent},"sessionId":"s","timestamp":"{}","isSidechain":false,"message":{{"id":"{message}","model":"claude-opus-4-5","type":"message","role":"assistant","content":{content},"stop_reason":null,"usage":{{"input_tokens":10,"output_tokens":5}}}}}}"#,
        time(at)
    )
}

/// A system line.
pub fn system(uuid: &str, parent: &str, at: &str, subtype: &str, rest: &str) -> String {
    let parent = parent_json(parent);
    format!(
        r#"{{"type":"system","subtype":"{subtype}","uuid":"{uuid}","parentUuid":{parent},"sessionId":"s","timestamp":"{}","isSidechain":false{rest}}}"#,
        time(at)
    )
}

/// A call as a block.
pub fn call(id: &str, tool: &str, input: &str) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":"{tool}","input":{input}}}"#)
}

/// The content of a result line.
pub fn result(id: &str, content: &str) -> String {
    format!(r#"[{{"type":"tool_result","tool_use_id":"{id}","content":{content}}}]"#)
}

/// A text as a block.
pub fn text(text: &str) -> String {
    format!(r#"{{"type":"text","text":"{text}"}}"#)
}

/// `10:00:05` of the day on which all this happens.
pub fn time(clock: &str) -> String {
    format!("2026-01-03T{clock}.000Z")
}

fn parent_json(parent: &str) -> String {
    if parent.is_empty() {
        "null".to_owned()
    } else {
        format!("\"{parent}\"")
    }
}
