//! A notation for conversations, expanded to the lines a client would write.
//!
//! ```text
//! you:    fix it
//! claude: looking [Read a.rs] [Read b.rs]
//! result: Read a.rs ok
//! result: Read b.rs missing!
//! claude: done
//! ```
//!
//! Each line is `kind: text`; the kinds are in [`KINDS`]. Blank lines and lines
//! that start with `#` are skipped, `\n` in a text is a line break. Ids are
//! counted and times rise by a second, so that a test can name them: the n-th
//! line with a uuid has [`uuid`]`(n)`, messages are `msg_0001`, calls `toolu_0001`.
//!
//! Options stand before the kind, or alone on a line for all that follow:
//!
//! | option | meaning |
//! |---|---|
//! | `at=+5m`, `at=2026-01-05T11:00:00.000Z` | this much after the line before (`ms`, `s`, `m`, `h`, `d`); this very time |
//! | `version=2.0.50` | the client that wrote it (default 2.1.100); before 2.1.0 parallel results are a linear chain |
//! | `name=x`, `parent=x` | name the line, hang another below it; `parent=null` and `parent=<uuid>` too |
//! | `id=msg_x` | the message id: the same id on two lines makes them one message |
//! | `call=toolu_x` | the call that a result answers |
//! | `usage=1/2/3/4/5` | input, output, cache read, cache write 5 m, cache write 1 h |
//! | `model=m`, `session=s`, `cwd=/x` | as they say |
//! | `agent=a1` | a line of this sub-agent: a sidechain of its own |
//! | `keep=2` | at `compact:`, this many lines before it stay live |
//! | anything else | a top-level field of the line, JSON or else text |
//!
//! A script with a mistake panics: it is part of a test.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::moment;

type Expand = fn(&mut Writer, &Options, &str);

/// Every kind of line. A new one is a line here and a function below.
const KINDS: &[(&str, Expand)] = &[
    ("you", |w, o, text| {
        w.user(o, json!(text), &[("permissionMode", json!("default"))])
    }),
    ("claude", Writer::claude),
    ("think", Writer::think),
    ("result", Writer::result),
    ("meta", |w, o, text| {
        w.user(o, json!(text), &[("isMeta", json!(true))])
    }),
    ("command", Writer::command),
    ("shell", |w, o, text| {
        w.user(o, json!(format!("<bash-input>{text}</bash-input>")), &[])
    }),
    ("stdout", Writer::stdout),
    ("interrupt", Writer::interrupt),
    ("image", Writer::image),
    ("queued", Writer::queued),
    ("hook", Writer::hook),
    ("compact", Writer::compact),
    ("summary", Writer::summary),
    ("duration", Writer::duration),
    ("title", |w, o, text| {
        w.unlinked(o, "custom-title", "customTitle", text)
    }),
    ("ai-title", |w, o, text| {
        w.unlinked(o, "ai-title", "aiTitle", text)
    }),
    ("last-prompt", |w, o, text| {
        w.unlinked(o, "last-prompt", "lastPrompt", text)
    }),
    ("error", Writer::error),
    ("agent", |w, o, text| w.user(o, json!(text), &[])),
    ("raw", |w, _, text| w.lines.push(text.to_owned())),
    ("torn", Writer::torn),
];

/// The lines of a script, without line breaks.
pub fn lines(script: &str) -> Vec<String> {
    Writer::expand(script).lines
}

/// The bytes of the file a script describes; a `torn:` line at the end stays unfinished.
pub fn jsonl(script: &str) -> Vec<u8> {
    let writer = Writer::expand(script);
    let mut bytes = writer.lines.join("\n").into_bytes();
    if !writer.torn && !bytes.is_empty() {
        bytes.push(b'\n');
    }
    bytes
}

/// The uuid of the n-th line that has one, counted from 1.
pub fn uuid(n: usize) -> String {
    format!("00000000-0000-4000-8000-{n:012}")
}

/// The session id of a script that gives none.
pub const SESSION: &str = "5e551011-0000-4000-8000-000000000000";

/// The options in force at a line.
#[derive(Clone, Default)]
struct Options(BTreeMap<String, String>);

/// The options that have a meaning; every other one becomes a field.
const KNOWN: &[&str] = &[
    "at", "version", "name", "parent", "id", "call", "usage", "model", "session", "cwd", "agent",
    "keep",
];

impl Options {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    fn or<'a>(&'a self, key: &str, default: &'a str) -> &'a str {
        self.get(key).unwrap_or(default)
    }

    fn with(&self, more: &str) -> Options {
        let mut options = self.clone();
        for part in more.split(',') {
            let (key, value) = part.split_once('=').unwrap_or((part, "true"));
            options
                .0
                .insert(key.trim().to_owned(), value.trim().to_owned());
        }
        options
    }

    fn version(&self) -> &str {
        self.or("version", "2.1.100")
    }

    /// Whether the client that writes is at least this one.
    fn since(&self, version: &str) -> bool {
        let numbers = |text: &str| {
            text.split('.')
                .map(|n| n.parse().unwrap_or(0))
                .collect::<Vec<u32>>()
        };
        numbers(self.version()) >= numbers(version)
    }

    fn fields(&self) -> impl Iterator<Item = (&String, Value)> {
        let unknown = self
            .0
            .iter()
            .filter(|(key, _)| !KNOWN.contains(&key.as_str()));
        unknown.map(|(key, text)| {
            (
                key,
                serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
            )
        })
    }
}

/// A tool call that was written and may still get its result.
struct Call {
    id: String,
    /// `Name subject`, as results refer to it.
    label: String,
    uuid: String,
    name: String,
    subject: String,
}

/// What has been written so far.
#[derive(Default)]
struct Writer {
    lines: Vec<String>,
    /// The uuids of the chain, and where the next line of each thread hangs.
    uuids: Vec<String>,
    last: BTreeMap<String, String>,
    names: BTreeMap<String, String>,
    calls: Vec<Call>,
    call_count: usize,
    message_count: usize,
    /// The message a `think:` line opened, which the next `claude:` line continues.
    open_message: Option<String>,
    now: u64,
    torn: bool,
}

impl Writer {
    fn expand(script: &str) -> Writer {
        let mut writer = Writer {
            now: moment::START - 1000,
            ..Writer::default()
        };
        let mut defaults = Options::default();
        for line in script.lines().map(str::trim) {
            let (options, rest) = match line.strip_prefix('(').and_then(|line| line.split_once(')'))
            {
                Some((inside, rest)) => (defaults.with(inside), rest.trim_start()),
                None => (defaults.clone(), line),
            };
            match rest {
                "" => defaults = options,
                comment if comment.starts_with('#') => {}
                rest => writer.line(&options, rest),
            }
        }
        writer
    }

    fn line(&mut self, options: &Options, line: &str) {
        let Some((head, text)) = line.split_once(':') else {
            panic!("no `kind:` in the script line `{line}`");
        };
        let (kind, argument) = head.trim().split_once(' ').unwrap_or((head.trim(), ""));
        let Some((_, expand)) = KINDS.iter().find(|(name, _)| *name == kind) else {
            panic!("unknown kind `{kind}` in the script line `{line}`");
        };
        let text = text.trim();
        let text = if kind == "raw" || kind == "torn" {
            text.to_owned()
        } else {
            text.replace("\\n", "\n")
        };
        let of_agent = options.with(&format!("agent={argument}"));
        let options = if argument.is_empty() {
            options
        } else {
            &of_agent
        };
        self.now = at(options.or("at", "+1s"), self.now);
        if !matches!(kind, "claude" | "think") {
            self.open_message = None;
        }
        expand(self, options, &text);
    }

    /// Writes a line of the chain: the envelope around `fields`.
    fn chain(
        &mut self,
        options: &Options,
        kind: &str,
        parent: Option<String>,
        fields: Map<String, Value>,
    ) {
        let uuid = uuid(self.uuids.len() + 1);
        let agent = options.or("agent", "");
        let mut line = Map::new();
        line.insert(
            "parentUuid".into(),
            self.parent(options, parent)
                .map_or(Value::Null, Value::from),
        );
        if let Some(logical) = fields.get("logicalParentUuid") {
            line.insert("logicalParentUuid".into(), logical.clone());
        }
        line.insert("isSidechain".into(), json!(!agent.is_empty()));
        line.insert("userType".into(), json!("external"));
        line.insert("cwd".into(), json!(options.or("cwd", "/home/dev/project")));
        line.insert("sessionId".into(), json!(options.or("session", SESSION)));
        line.insert("version".into(), json!(options.version()));
        line.insert("gitBranch".into(), json!("main"));
        if !agent.is_empty() {
            line.insert("agentId".into(), json!(agent));
        }
        line.insert("type".into(), json!(kind));
        line.extend(fields);
        line.insert("uuid".into(), json!(uuid));
        line.insert("timestamp".into(), json!(moment::rfc3339(self.now)));
        line.extend(options.fields().map(|(key, value)| (key.clone(), value)));
        self.lines.push(Value::Object(line).to_string());
        if let Some(name) = options.get("name") {
            self.names.insert(name.to_owned(), uuid.clone());
        }
        self.last.insert(agent.to_owned(), uuid.clone());
        self.uuids.push(uuid);
    }

    /// Where a line hangs: where it was told to, else where its kind belongs, else last.
    fn parent(&self, options: &Options, natural: Option<String>) -> Option<String> {
        match options.get("parent") {
            Some("null") => None,
            Some(name) => Some(
                self.names
                    .get(name)
                    .cloned()
                    .unwrap_or_else(|| name.to_owned()),
            ),
            None => natural.or_else(|| self.last.get(options.or("agent", "")).cloned()),
        }
    }

    fn user(&mut self, options: &Options, content: Value, extra: &[(&str, Value)]) {
        let mut fields = object(json!({"message": {"role": "user", "content": content}}));
        fields.extend(
            extra
                .iter()
                .map(|(key, value)| ((*key).to_owned(), value.clone())),
        );
        self.chain(options, "user", None, fields);
    }

    /// A line without a uuid, which belongs to the file and not to the chain.
    fn unlinked(&mut self, options: &Options, kind: &str, field: &str, text: &str) {
        let mut line = object(json!({"type": kind, field: text}));
        line.insert("sessionId".into(), json!(options.or("session", SESSION)));
        line.extend(options.fields().map(|(key, value)| (key.clone(), value)));
        self.lines.push(Value::Object(line).to_string());
    }

    fn claude(&mut self, options: &Options, text: &str) {
        let message = self.message(options);
        self.open_message = None;
        let (text, tools) = split_tools(text);
        let stop = if tools.is_empty() {
            "end_turn"
        } else {
            "tool_use"
        };
        if !text.is_empty() || tools.is_empty() {
            self.block(
                options,
                &message,
                stop,
                json!({"type": "text", "text": text}),
            );
        }
        for (nth, (name, subject)) in tools.into_iter().enumerate() {
            // The blocks of one message are written within milliseconds.
            self.now += if nth > 0 || !text.is_empty() { 10 } else { 0 };
            self.call_count += 1;
            let id = format!("toolu_{:04}", self.call_count);
            let block =
                json!({"type": "tool_use", "id": id, "name": name, "input": input(name, subject)});
            self.block(options, &message, stop, block);
            let uuid = self.uuids.last().cloned().unwrap_or_default();
            let label = format!("{name} {subject}").trim().to_owned();
            self.calls.push(Call {
                id,
                label,
                uuid,
                name: name.into(),
                subject: subject.into(),
            });
        }
    }

    fn think(&mut self, options: &Options, text: &str) {
        let message = self.message(options);
        self.open_message = Some(message.clone());
        let block = json!({"type": "thinking", "thinking": text, "signature": "c2lnbmF0dXJl"});
        self.block(options, &message, "end_turn", block);
    }

    fn message(&mut self, options: &Options) -> String {
        if let Some(id) = options
            .get("id")
            .map(str::to_owned)
            .or_else(|| self.open_message.clone())
        {
            return id;
        }
        self.message_count += 1;
        format!("msg_{:04}", self.message_count)
    }

    fn block(&mut self, options: &Options, id: &str, stop: &str, block: Value) {
        // 2.0.50 to 2.1.99 write a block while the rest still streams.
        let stop = if options.since("2.0.50") && !options.since("2.1.100") {
            Value::Null
        } else {
            json!(stop)
        };
        let message = json!({
            "id": id, "type": "message", "role": "assistant",
            "model": options.or("model", "claude-sonnet-4-5-20250929"), "content": [block],
            "stop_reason": stop, "stop_sequence": null,
            "usage": usage(options.or("usage", "10/20/1000/0/0")),
        });
        let request = id.replacen("msg_", "req_", 1);
        self.chain(
            options,
            "assistant",
            None,
            object(json!({"message": message, "requestId": request})),
        );
    }

    fn result(&mut self, options: &Options, text: &str) {
        let (text, is_error) = match text.strip_suffix('!') {
            Some(text) => (text, true),
            None => (text, false),
        };
        let Some(call) = self.answered(options, text) else {
            let id = options.or("call", "toolu_none").to_owned();
            let block = json!({"tool_use_id": id, "type": "tool_result", "content": text});
            return self.user(options, json!([block]), &[]);
        };
        let content = text
            .strip_prefix(call.label.as_str())
            .unwrap_or(text)
            .trim();
        let mut block = json!({"tool_use_id": call.id, "type": "tool_result", "content": content});
        if is_error || call.name == "Bash" {
            block["is_error"] = json!(is_error);
        }
        let mut fields = object(json!({"message": {"role": "user", "content": [block]}}));
        if options.get("agent").is_none() {
            fields.insert(
                "toolUseResult".into(),
                tool_use_result(&call, content, is_error),
            );
        }
        let is_tree = options.since("2.1.0");
        if is_tree {
            fields.insert("sourceToolAssistantUUID".into(), json!(call.uuid));
        }
        self.chain(options, "user", is_tree.then_some(call.uuid), fields);
    }

    /// The call that a result names, by id, by label, or by being the oldest.
    fn answered(&mut self, options: &Options, text: &str) -> Option<Call> {
        let index = if let Some(id) = options.get("call") {
            self.calls.iter().position(|call| call.id == id)?
        } else {
            let named = self
                .calls
                .iter()
                .position(|call| text.starts_with(&call.label));
            named.or((!self.calls.is_empty()).then_some(0))?
        };
        Some(self.calls.remove(index))
    }

    fn command(&mut self, options: &Options, text: &str) {
        let (name, args) = text.split_once(' ').unwrap_or((text, ""));
        let bare = name.trim_start_matches('/');
        let gap = "\n            ";
        let content = format!(
            "<command-name>{name}</command-name>{gap}<command-message>{bare}</command-message>{gap}<command-args>{args}</command-args>"
        );
        self.user(options, json!(content), &[]);
    }

    fn stdout(&mut self, options: &Options, text: &str) {
        let content = format!("<bash-stdout>{text}</bash-stdout><bash-stderr></bash-stderr>");
        self.user(options, json!(content), &[]);
    }

    fn interrupt(&mut self, options: &Options, text: &str) {
        let text = if text.is_empty() {
            String::new()
        } else {
            " for tool use".to_owned()
        };
        let text = format!("[Request interrupted by user{text}]");
        self.user(options, json!([{"type": "text", "text": text}]), &[]);
    }

    fn image(&mut self, options: &Options, text: &str) {
        let source = json!({"type": "base64", "media_type": "image/png", "data": PIXEL});
        let image = json!({"type": "image", "source": source});
        let content = if text.is_empty() {
            json!([image])
        } else {
            json!([{"type": "text", "text": text}, image])
        };
        self.user(options, content, &[("permissionMode", json!("default"))]);
    }

    fn queued(&mut self, options: &Options, text: &str) {
        let operation = |operation: &str, now| {
            json!({"type": "queue-operation", "operation": operation, "timestamp": moment::rfc3339(now),
                "sessionId": options.or("session", SESSION), "content": text})
        };
        self.lines.push(operation("enqueue", self.now).to_string());
        if options.since("2.1.105") {
            let attachment = json!({"type": "queued_command", "prompt": text, "commandMode": "prompt",
                "origin": {"kind": "human"}, "humanTurn": true});
            self.chain(
                options,
                "attachment",
                None,
                object(json!({"attachment": attachment})),
            );
        }
        self.lines.push(operation("remove", self.now).to_string());
    }

    fn hook(&mut self, options: &Options, text: &str) {
        let event = text.split([' ', ':']).next().unwrap_or_default();
        let (kind, fields) = if options.since("2.1.100") {
            let attachment = json!({"type": "hook_success", "hookName": text, "toolUseID": "hook_0001",
                "hookEvent": event, "content": "", "stdout": "", "stderr": "", "exitCode": 0});
            ("attachment", json!({"attachment": attachment}))
        } else {
            let data = json!({"type": "hook_progress", "hookEvent": event, "hookName": text, "command": "callback"});
            (
                "progress",
                json!({"data": data, "toolUseID": "hook_0001", "parentToolUseID": "hook_0001"}),
            )
        };
        self.chain(options, kind, None, object(fields));
    }

    /// `compact: 30000 -> 5000`; the arrow and what follows may be left out.
    fn compact(&mut self, options: &Options, text: &str) {
        let (before, after) = text.split_once("->").unwrap_or((text, ""));
        let mut metadata = json!({"trigger": "auto", "preTokens": number(before).unwrap_or(0)});
        if let Some(after) = number(after) {
            metadata["postTokens"] = json!(after);
        }
        if let Some(kept) = options.get("keep").and_then(number) {
            self.preserve(&mut metadata, kept as usize);
        }
        let fields = object(json!({
            "logicalParentUuid": self.last.get(options.or("agent", "")),
            "subtype": "compact_boundary", "content": "Conversation compacted", "isMeta": false,
            "level": "info", "compactMetadata": metadata,
        }));
        let is_placed = options.get("parent").is_some();
        let root = options.with("parent=null");
        self.chain(
            if is_placed { options } else { &root },
            "system",
            None,
            fields,
        );
    }

    fn preserve(&self, metadata: &mut Value, kept: usize) {
        let kept = &self.uuids[self.uuids.len().saturating_sub(kept)..];
        // The anchor is the summary, which follows the boundary.
        let anchor = uuid(self.uuids.len() + 2);
        metadata["preservedSegment"] =
            json!({"headUuid": kept.first(), "anchorUuid": anchor, "tailUuid": kept.last()});
        metadata["preservedMessages"] =
            json!({"anchorUuid": anchor, "uuids": kept, "allUuids": kept});
    }

    fn summary(&mut self, options: &Options, text: &str) {
        let text = format!(
            "This session is being continued from a previous conversation that ran out of context.\n\n{text}"
        );
        let marks = [
            ("isVisibleInTranscriptOnly", json!(true)),
            ("isCompactSummary", json!(true)),
        ];
        self.user(options, json!(text), &marks);
    }

    fn duration(&mut self, options: &Options, text: &str) {
        let fields = json!({"subtype": "turn_duration", "durationMs": number(text).unwrap_or(0), "isMeta": false});
        self.chain(options, "system", None, object(fields));
    }

    /// What the client writes in the model's place when the API failed.
    fn error(&mut self, options: &Options, text: &str) {
        let message = json!({
            "id": uuid(900_000 + self.uuids.len()), "model": "<synthetic>", "role": "assistant",
            "type": "message", "stop_reason": "stop_sequence", "stop_sequence": "",
            "usage": usage("0/0/0/0/0"), "content": [{"type": "text", "text": text}],
        });
        let fields = json!({"message": message, "error": "unknown", "isApiErrorMessage": true});
        self.chain(options, "assistant", None, object(fields));
    }

    fn torn(&mut self, _: &Options, text: &str) {
        self.lines.push(text.to_owned());
        self.torn = true;
    }
}

/// One transparent pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg==";

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("not an object: {other}"),
    }
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// `+5m` after `now`, or an absolute time.
fn at(text: &str, now: u64) -> u64 {
    let Some(step) = text.strip_prefix('+') else {
        return absolute(text).unwrap_or_else(|| panic!("`at={text}` is no time"));
    };
    let unit = step.trim_start_matches(|c: char| c.is_ascii_digit());
    let millis = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => panic!("`at={text}` has no unit"),
    };
    now + number(step.trim_end_matches(unit)).unwrap_or(0) * millis
}

/// The inverse of [`moment::rfc3339`], by halving: tests need no parser.
fn absolute(text: &str) -> Option<u64> {
    let (mut low, mut high) = (0, 253_402_300_800_000);
    while low < high {
        let middle = (low + high) / 2;
        if moment::rfc3339(middle).as_str() < text {
            low = middle + 1
        } else {
            high = middle
        }
    }
    (moment::rfc3339(low) == text).then_some(low)
}

/// `looking [Read a.rs] [Bash ls -l]` is a text and two calls.
fn split_tools(text: &str) -> (&str, Vec<(&str, &str)>) {
    let is_call = |inside: &str| {
        inside.starts_with(|c: char| {
            c.is_ascii_uppercase() || inside.starts_with("mcp__") && c == 'm'
        })
    };
    let mut tools = Vec::new();
    let mut text = text;
    while let Some((rest, inside)) = text
        .strip_suffix(']')
        .and_then(|text| text.rsplit_once('['))
    {
        if !is_call(inside) {
            break;
        }
        tools.insert(0, inside.split_once(' ').unwrap_or((inside, "")));
        text = rest.trim_end();
    }
    (text, tools)
}

/// The input a tool would be given for a subject.
fn input(name: &str, subject: &str) -> Value {
    match name {
        "Read" => json!({"file_path": subject}),
        "Write" => json!({"file_path": subject, "content": "new\n"}),
        "Edit" => json!({"file_path": subject, "old_string": "old", "new_string": "new"}),
        "Bash" => json!({"command": subject, "description": "run it"}),
        "Grep" | "Glob" => json!({"pattern": subject}),
        "WebFetch" => json!({"url": subject, "prompt": "read it"}),
        "WebSearch" => json!({"query": subject}),
        "Skill" => json!({"skill": subject}),
        "Task" | "Agent" => {
            json!({"description": subject, "prompt": subject, "subagent_type": "general-purpose"})
        }
        _ => json!({"input": subject}),
    }
}

fn tool_use_result(call: &Call, content: &str, is_error: bool) -> Value {
    if is_error {
        return json!(format!("Error: {content}"));
    }
    let lines = content.lines().count();
    match call.name.as_str() {
        "Bash" => json!({"stdout": content, "stderr": "", "interrupted": false, "isImage": false}),
        "Read" => json!({"type": "text", "file": {"filePath": call.subject, "content": content,
            "numLines": lines, "startLine": 1, "totalLines": lines}}),
        _ => json!({"content": content}),
    }
}

fn usage(numbers: &str) -> Value {
    let numbers: Vec<u64> = numbers
        .split('/')
        .map(|text| number(text).unwrap_or(0))
        .collect();
    let get = |index: usize| numbers.get(index).copied().unwrap_or(0);
    json!({
        "input_tokens": get(0), "cache_creation_input_tokens": get(3) + get(4),
        "cache_read_input_tokens": get(2),
        "cache_creation": {"ephemeral_5m_input_tokens": get(3), "ephemeral_1h_input_tokens": get(4)},
        "output_tokens": get(1), "service_tier": "standard",
    })
}

#[cfg(test)]
mod tests;
