//! A model that plays a script: a streaming Messages API with gates, delays, cuts and failures.
//!
//! Three layers. A strict judge looks at every request and answers with the 400 that the real
//! API would give ([`crate::validator`] for the messages, here for the rest). A script says what
//! comes of each request that passes. A recorder keeps them all. A client that sends what would
//! be refused cannot pass a test by accident: [`Model::refusals`] tells.

use std::collections::HashMap;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::{Request, read_raw};
use crate::validator;

/// What comes of one request.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// `200 OK` unless it fails.
    pub status: String,
    /// More headers.
    pub headers: Vec<(String, String)>,
    /// What is sent, in order.
    pub steps: Vec<Step>,
    /// Hang up after so many bytes of the body.
    pub cut: Option<usize>,
    /// Send so many bytes at once; everything at once if zero.
    pub piece: usize,
}

/// A step of an answer.
#[derive(Clone, Debug)]
pub enum Step {
    /// These bytes.
    Send(String),
    /// Nothing, for so long.
    Wait(Duration),
    /// Nothing, until [`Model::open`] opens this gate.
    Gate(&'static str),
}

/// One block of an answer.
pub fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// A block that calls a tool.
pub fn call(id: &str, name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

/// A block of thinking.
pub fn thinking(text: &str) -> Value {
    json!({"type": "thinking", "thinking": text, "signature": "c2lnbmVk"})
}

impl Answer {
    /// A whole message: it stops for its calls, if it has any.
    pub fn blocks(blocks: &[Value]) -> Answer {
        let calls = blocks.iter().any(|block| block["type"] == "tool_use");
        Answer::stopping(blocks, if calls { "tool_use" } else { "end_turn" })
    }

    /// A message of one text.
    pub fn text(words: &str) -> Answer {
        Answer::blocks(&[text(words)])
    }

    /// A message that stops for this reason.
    pub fn stopping(blocks: &[Value], stop: &str) -> Answer {
        Answer::events(&events(blocks, stop, 100))
    }

    /// A message that took so many tokens of input.
    pub fn counted(blocks: &[Value], input: u64) -> Answer {
        let calls = blocks.iter().any(|block| block["type"] == "tool_use");
        let stop = if calls { "tool_use" } else { "end_turn" };
        Answer::events(&events(blocks, stop, input))
    }

    /// These events.
    pub fn events(events: &[Value]) -> Answer {
        Answer {
            steps: events.iter().map(|event| Step::Send(sse(event))).collect(),
            ..Answer::default()
        }
    }

    /// A failure with a status such as `529 Overloaded`.
    pub fn fails(status: &str, kind: &str, message: &str) -> Answer {
        let body = json!({"type": "error", "error": {"type": kind, "message": message}});
        Answer {
            status: status.to_owned(),
            steps: vec![Step::Send(body.to_string())],
            ..Answer::default()
        }
    }

    /// The same with a header.
    pub fn header(mut self, name: &str, value: &str) -> Answer {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same, cut off after so many bytes.
    pub fn cut(mut self, bytes: usize) -> Answer {
        self.cut = Some(bytes);
        self
    }

    /// The same, in pieces of so many bytes.
    pub fn pieces(mut self, bytes: usize) -> Answer {
        self.piece = bytes;
        self
    }

    /// The same with a step before the event of this number.
    pub fn before(mut self, event: usize, step: Step) -> Answer {
        self.steps.insert(event.min(self.steps.len()), step);
        self
    }

    /// The same without its last events.
    pub fn without_last(mut self, events: usize) -> Answer {
        let left = self.steps.len().saturating_sub(events);
        self.steps.truncate(left);
        self
    }

    /// How many bytes its body has.
    pub fn len(&self) -> usize {
        let sent = self.steps.iter().map(|step| match step {
            Step::Send(text) => text.len(),
            _ => 0,
        });
        sent.sum()
    }

    /// Whether it has no body.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn sse(event: &Value) -> String {
    let name = event["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {event}\n\n")
}

/// The events of a message.
pub fn events(blocks: &[Value], stop: &str, input: u64) -> Vec<Value> {
    let mut all = vec![json!({"type": "message_start", "message": {
        "id": "", "type": "message", "role": "assistant", "model": "", "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": input, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1},
    }})];
    all.push(json!({"type": "ping"}));
    for (at, block) in blocks.iter().enumerate() {
        let delta =
            |delta: Value| json!({"type": "content_block_delta", "index": at, "delta": delta});
        let mut start = block.clone();
        let mut deltas = Vec::new();
        match block["type"].as_str() {
            Some("text") => {
                start["text"] = "".into();
                for piece in halves(block["text"].as_str().unwrap_or_default()) {
                    deltas.push(delta(json!({"type": "text_delta", "text": piece})));
                }
            }
            Some("thinking") => {
                start["thinking"] = "".into();
                start["signature"] = "".into();
                for piece in halves(block["thinking"].as_str().unwrap_or_default()) {
                    deltas.push(delta(json!({"type": "thinking_delta", "thinking": piece})));
                }
                deltas.push(delta(
                    json!({"type": "signature_delta", "signature": block["signature"]}),
                ));
            }
            Some("tool_use" | "server_tool_use") => {
                start["input"] = json!({});
                // A text stands for input that is broken.
                let input = match &block["input"] {
                    Value::String(raw) => raw.clone(),
                    input => input.to_string(),
                };
                for piece in halves(&input) {
                    deltas.push(delta(
                        json!({"type": "input_json_delta", "partial_json": piece}),
                    ));
                }
            }
            _ => {}
        }
        all.push(json!({"type": "content_block_start", "index": at, "content_block": start}));
        all.append(&mut deltas);
        all.push(json!({"type": "content_block_stop", "index": at}));
    }
    all.push(
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
        "usage": {"output_tokens": 10 * blocks.len().max(1)}}),
    );
    all.push(json!({"type": "message_stop"}));
    all
}

fn halves(text: &str) -> Vec<&str> {
    let middle = (text.len() / 2..text.len()).find(|at| text.is_char_boundary(*at));
    match middle.map(|at| text.split_at(at)) {
        Some((a, b)) if !a.is_empty() => vec![a, b],
        _ => vec![text],
    }
}

/// What comes of a request; the number counts requests for messages from 0.
pub type Script = dyn Fn(usize, &Request) -> Answer + Send + Sync;

/// The running model; it stops when dropped.
pub struct Model {
    /// Where it listens.
    pub addr: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    stopped: AtomicBool,
    script: Box<Script>,
}

#[derive(Default)]
struct State {
    requests: Vec<Request>,
    refusals: Vec<String>,
    asked: usize,
    /// What it says when it is asked to count tokens, and how often it was.
    tokens: Option<u64>,
    counted: usize,
    open: HashMap<&'static str, bool>,
    waiting: Vec<&'static str>,
    /// What each message said, by its first call or text, to see whether thinking was altered.
    thoughts: Vec<String>,
}

impl Model {
    /// Starts a model that answers each request as the script says.
    pub fn start(
        script: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static,
    ) -> std::io::Result<Model> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            stopped: AtomicBool::new(false),
            script: Box::new(script),
        });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || accept(&listener, &accepting));
        Ok(Model { addr, shared })
    }

    /// Starts a model that gives these answers one after the other, then `done`.
    pub fn playing(answers: Vec<Answer>) -> std::io::Result<Model> {
        Model::start(move |at, _| {
            answers
                .get(at)
                .cloned()
                .unwrap_or_else(|| Answer::text("done"))
        })
    }

    /// The base address, for `ANTHROPIC_BASE_URL`.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// All requests for messages so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock().requests.clone()
    }

    /// What was wrong with requests: nothing, if the client is right.
    pub fn refusals(&self) -> Vec<String> {
        self.shared.lock().refusals.clone()
    }

    /// From now on it counts tokens, and always finds so many. Until then it does not offer that.
    pub fn counts(&self, tokens: u64) {
        self.shared.lock().tokens = Some(tokens);
    }

    /// How often it was asked to count.
    pub fn counted(&self) -> usize {
        self.shared.lock().counted
    }

    /// Opens a gate: whoever waits there goes on.
    pub fn open(&self, gate: &'static str) {
        self.shared.lock().open.insert(gate, true);
        self.shared.changed.notify_all();
    }

    /// Waits until an answer has come to a gate; whether it did in time.
    pub fn reached(&self, gate: &'static str, timeout: Duration) -> bool {
        self.shared
            .wait(timeout, |state| state.waiting.contains(&gate))
    }

    /// Waits until so many requests have come; whether they did in time.
    pub fn asked(&self, count: usize, timeout: Duration) -> bool {
        self.shared
            .wait(timeout, |state| state.requests.len() >= count)
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        self.shared.changed.notify_all();
        // Wakes the accepting thread, which then sees the flag.
        let _ = TcpStream::connect(self.addr);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, timeout: Duration, passes: impl Fn(&State) -> bool) -> bool {
        let deadline = Instant::now() + timeout;
        let mut state = self.lock();
        loop {
            if passes(&state) {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.stopped.load(Ordering::Relaxed) {
                return false;
            }
            let step = left.min(Duration::from_millis(200));
            state = self
                .changed
                .wait_timeout(state, step)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stopped.load(Ordering::Relaxed) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        // A client that hangs up in the middle is none of our business.
        std::thread::spawn(move || drop(serve(&stream, &shared)));
    }
}

fn serve(stream: &TcpStream, shared: &Shared) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while let Some((head, bytes)) = read_raw(&mut reader, &mut writer)? {
        let text = String::from_utf8_lossy(&bytes);
        let request = Request {
            body: serde_json::from_str(&text).unwrap_or(Value::Null),
            ..head
        };
        if request.path.ends_with("/count_tokens") {
            let tokens = {
                let mut state = shared.lock();
                state.counted += 1;
                state.tokens
            };
            if let Some(tokens) = tokens {
                let body = json!({"input_tokens": tokens}).to_string();
                write!(
                    writer,
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                )?;
                continue;
            }
        }
        if !request.is_message() {
            let body = json!({"type": "error", "error": {"type": "not_found_error", "message": request.path}});
            write!(
                writer,
                "HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.to_string().len()
            )?;
            continue;
        }
        let answer = answer(shared, &request, &text);
        if !play(shared, stream, &answer, &request)? {
            return stream.shutdown(std::net::Shutdown::Both);
        }
    }
    Ok(())
}

fn answer(shared: &Shared, request: &Request, text: &str) -> Answer {
    let mut state = shared.lock();
    let mut refusals = refusals(request, text);
    refusals.extend(altered(&state.thoughts, &request.body));
    let at = state.requests.len();
    state.requests.push(request.clone());
    let first = refusals.first().cloned();
    state.refusals.extend(
        refusals
            .into_iter()
            .map(|why| format!("request {at}: {why}")),
    );
    drop(state);
    shared.changed.notify_all();
    if let Some(why) = first {
        return Answer::fails("400 Bad Request", "invalid_request_error", &why);
    }
    let number = {
        let mut state = shared.lock();
        state.asked += 1;
        state.asked - 1
    };
    let answer = (shared.script)(number, request);
    remember(&mut shared.lock().thoughts, &answer);
    answer
}

/// Keeps the thinking that goes out, word for word.
fn remember(thoughts: &mut Vec<String>, answer: &Answer) {
    let mut thought = String::new();
    for step in &answer.steps {
        let Step::Send(text) = step else { continue };
        let data = text.lines().find_map(|line| line.strip_prefix("data: "));
        let event: Value = data
            .and_then(|data| serde_json::from_str(data).ok())
            .unwrap_or_default();
        match event["delta"]["type"].as_str() {
            Some("thinking_delta") => {
                thought += event["delta"]["thinking"].as_str().unwrap_or_default()
            }
            Some("signature_delta") => thoughts.push(std::mem::take(&mut thought)),
            _ => {}
        }
    }
}

/// Whether thinking of the latest reply was altered.
fn altered(thoughts: &[String], body: &Value) -> Option<String> {
    let messages = body["messages"].as_array()?;
    let latest = messages
        .iter()
        .rev()
        .find(|message| message["role"] == "assistant")?;
    let blocks = latest["content"].as_array()?;
    let signed = blocks
        .iter()
        .filter(|block| block["signature"] == "c2lnbmVk");
    let mut changed = signed.filter(|block| {
        let said = block["thinking"].as_str().unwrap_or_default();
        !thoughts.is_empty() && !thoughts.iter().any(|thought| thought == said)
    });
    changed.next().map(|_| {
        "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified".to_owned()
    })
}

/// Everything the API would refuse in a request.
pub fn refusals(request: &Request, text: &str) -> Vec<String> {
    let body = &request.body;
    let mut all = Vec::new();
    if !body.is_object() {
        all.push("the request body is not valid JSON".to_owned());
        return all;
    }
    let has = |name: &str| request.header(name).is_some_and(|value| !value.is_empty());
    if !has("x-api-key") && !has("authorization") {
        all.push("x-api-key header is required".to_owned());
    }
    if request.header("anthropic-version") != Some("2023-06-01") {
        all.push("anthropic-version: header is required".to_owned());
    }
    if text.len() > 32 << 20 {
        all.push("request exceeds the maximum size".to_owned());
    }
    if let Some(at) = text.find("\"messages\":") {
        let rest = &text[at + "\"messages\":".len()..];
        let mut stream =
            serde_json::Deserializer::from_str(rest).into_iter::<&serde_json::value::RawValue>();
        match stream.next() {
            Some(Ok(raw)) => all.extend(validator::refusals(raw.get())),
            _ => all.push("messages: field required".to_owned()),
        }
    } else {
        all.push("messages: field required".to_owned());
    }
    fields(body, request, &mut all);
    caches(body, &mut all);
    tools(body, &mut all);
    all
}

const KNOWN: [&str; 15] = [
    "model",
    "messages",
    "max_tokens",
    "system",
    "tools",
    "tool_choice",
    "stream",
    "thinking",
    "metadata",
    "stop_sequences",
    "temperature",
    "top_p",
    "top_k",
    "service_tier",
    "output_config",
];

fn fields(body: &Value, request: &Request, all: &mut Vec<String>) {
    for name in body.as_object().into_iter().flatten().map(|(name, _)| name) {
        let beta = request.header("anthropic-beta").unwrap_or_default();
        let asked = name == "context_management" && beta.contains("context-management");
        if !KNOWN.contains(&name.as_str()) && !asked {
            all.push(format!("{name}: Extra inputs are not permitted"));
        }
    }
    let model = body["model"].as_str().unwrap_or_default();
    if model.is_empty() || model.contains('[') {
        all.push(format!("model: `{model}`"));
    }
    let most = body["max_tokens"].as_u64().unwrap_or(0);
    if most == 0 {
        all.push("max_tokens: field required".to_owned());
    }
    let thinking = &body["thinking"];
    let newer = [
        "4-7", "4-8", "opus-5", "sonnet-5", "haiku-5", "fable", "mythos",
    ];
    let newer = newer.iter().any(|part| model.contains(part));
    let older = ["3-", "4-5", "4-1", "4-2"]
        .iter()
        .any(|part| model.contains(part));
    match thinking["type"].as_str() {
        Some("enabled") if newer => {
            all.push("thinking.type: `enabled` is not supported by this model".to_owned())
        }
        Some("adaptive") if older => {
            all.push("adaptive thinking is not supported on this model".to_owned())
        }
        Some("disabled") if model.contains("fable") || model.contains("mythos") => {
            all.push("thinking.type: `disabled` is not supported by this model".to_owned());
        }
        Some("enabled") => {
            let budget = thinking["budget_tokens"].as_u64().unwrap_or(0);
            if budget < 1024 {
                all.push("thinking.budget_tokens: must be at least 1024".to_owned());
            }
            if budget >= most {
                all.push("`max_tokens` must be greater than `thinking.budget_tokens`".to_owned());
            }
        }
        _ => {}
    }
}

fn caches(body: &Value, all: &mut Vec<String>) {
    let mut marked = Vec::new();
    let mut note = |block: &Value| {
        if let Some(control) = block.get("cache_control") {
            marked.push((
                block["type"].clone(),
                block["text"].clone(),
                control.clone(),
            ));
        }
    };
    body["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .for_each(&mut note);
    body["system"]
        .as_array()
        .into_iter()
        .flatten()
        .for_each(&mut note);
    for message in body["messages"].as_array().into_iter().flatten() {
        message["content"]
            .as_array()
            .into_iter()
            .flatten()
            .for_each(&mut note);
    }
    if marked.len() > 4 {
        all.push(format!(
            "A maximum of 4 blocks with cache_control may be provided. Found {}.",
            marked.len()
        ));
    }
    for (kind, text, control) in &marked {
        if text == "" {
            all.push("cache_control cannot be set for empty text blocks".to_owned());
        }
        if kind == "thinking" || kind == "redacted_thinking" {
            all.push(format!("cache_control cannot be set for {kind} blocks"));
        }
        if control["type"] != "ephemeral" {
            all.push("cache_control.type".to_owned());
        }
    }
    for block in body["system"].as_array().into_iter().flatten() {
        if block["text"]
            .as_str()
            .is_none_or(|text| text.trim().is_empty())
        {
            all.push("system: text content blocks must be non-empty".to_owned());
        }
    }
}

fn tools(body: &Value, all: &mut Vec<String>) {
    let mut names = std::collections::HashSet::new();
    for tool in body["tools"].as_array().into_iter().flatten() {
        let name = tool["name"].as_str().unwrap_or_default();
        if name.is_empty() || name.len() > 128 {
            all.push(format!("tools: name `{name}`"));
        }
        if !names.insert(name) {
            all.push(format!("tools: Tool names must be unique: {name}"));
        }
        let own = tool
            .get("type")
            .and_then(Value::as_str)
            .is_some_and(|kind| kind != "custom");
        if !own && tool["input_schema"]["type"] != "object" {
            all.push(format!("tools.{name}.input_schema.type: field required"));
        }
    }
    let calls = body["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|message| {
            let blocks = message["content"].as_array().into_iter().flatten();
            blocks.into_iter().any(|block| block["type"] == "tool_use")
        });
    if calls && names.is_empty() {
        all.push(
            "Requests which include `tool_use` or `tool_result` blocks must define tools"
                .to_owned(),
        );
    }
}

/// A gate that nobody opens opens by itself after so long.
const GATE: Duration = Duration::from_secs(300);

/// Plays an answer; false to hang up.
fn play(
    shared: &Shared,
    stream: &TcpStream,
    answer: &Answer,
    request: &Request,
) -> std::io::Result<bool> {
    let mut writer = stream;
    let ok = answer.status.is_empty() || answer.status.starts_with("200");
    let status = if answer.status.is_empty() {
        "200 OK"
    } else {
        &answer.status
    };
    let kind = if ok {
        "text/event-stream"
    } else {
        "application/json"
    };
    let number = shared.lock().requests.len();
    let mut head =
        format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n");
    if !answer.headers.iter().any(|(name, _)| name == "request-id") {
        head += &format!("request-id: req_test_{number:04}\r\n");
    }
    for (name, value) in &answer.headers {
        head += &format!("{name}: {value}\r\n");
    }
    let sends = |step: &Step| matches!(step, Step::Send(_));
    let first = answer.steps.iter().position(sends);
    let mut left = answer.cut.unwrap_or(usize::MAX);
    for (at, step) in answer.steps.iter().enumerate() {
        // What stands before the first bytes stands before the head, too.
        if Some(at) == first {
            writer.write_all(format!("{head}\r\n").as_bytes())?;
        }
        match step {
            Step::Wait(time) => std::thread::sleep(*time),
            Step::Gate(gate) => {
                shared.lock().waiting.push(gate);
                shared.changed.notify_all();
                shared.wait(GATE, |state| state.open.contains_key(gate));
            }
            Step::Send(text) => {
                let text = named(text, number, request);
                let bytes = &text.as_bytes()[..text.len().min(left)];
                left -= bytes.len();
                let size = if answer.piece == 0 {
                    bytes.len().max(1)
                } else {
                    answer.piece
                };
                for piece in bytes.chunks(size) {
                    write!(writer, "{:x}\r\n", piece.len())?;
                    writer.write_all(piece)?;
                    writer.write_all(b"\r\n")?;
                    writer.flush()?;
                }
                if left == 0 {
                    return Ok(false);
                }
            }
        }
    }
    if first.is_none() {
        writer.write_all(format!("{head}\r\n").as_bytes())?;
    }
    writer.write_all(b"0\r\n\r\n")?;
    Ok(true)
}

/// Gives a message an id of its own and the model that was asked.
fn named(text: &str, number: usize, request: &Request) -> String {
    if !text.starts_with("event: message_start") {
        return text.to_owned();
    }
    let model = request.body["model"].as_str().unwrap_or_default();
    let id = format!("\"id\":\"msg_test_{}_{number:04}\"", request.headers.len());
    text.replacen("\"id\":\"\"", &id, 1).replacen(
        "\"model\":\"\"",
        &format!("\"model\":\"{model}\""),
        1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: Value) -> Request {
        Request {
            method: "POST".into(),
            path: "/v1/messages".into(),
            headers: vec![
                ("x-api-key".into(), "k".into()),
                ("anthropic-version".into(), "2023-06-01".into()),
            ],
            body,
        }
    }

    fn refused(change: impl Fn(&mut Value)) -> String {
        let mut body = json!({"model": "claude-opus-4-6", "max_tokens": 100, "stream": true,
            "messages": [{"role": "user", "content": "hi"}]});
        change(&mut body);
        refusals(&request(body.clone()), &body.to_string()).join("; ")
    }

    #[test]
    fn a_plain_request_passes() {
        assert_eq!(refused(|_| {}), "");
    }

    #[test]
    fn each_broken_rule_of_a_request_is_named() {
        let cached = json!({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}});
        type Change = Box<dyn Fn(&mut Value)>;
        let cases: Vec<(Change, &str)> = vec![
            (Box::new(|body| body["max_tokens"] = 0.into()), "max_tokens"),
            (Box::new(|body| body["nonsense"] = 1.into()), "Extra inputs"),
            (
                Box::new(|body| {
                    body["thinking"] = json!({"type": "enabled", "budget_tokens": 100})
                }),
                "at least 1024",
            ),
            (
                Box::new(|body| {
                    body["thinking"] = json!({"type": "enabled", "budget_tokens": 2000})
                }),
                "greater than",
            ),
            (
                Box::new(|body| {
                    body["model"] = "claude-opus-5-5".into();
                    body["thinking"] = json!({"type": "enabled", "budget_tokens": 2000});
                }),
                "not supported",
            ),
            (
                Box::new(|body| {
                    body["model"] = "claude-sonnet-4-5".into();
                    body["thinking"] = json!({"type": "adaptive"});
                }),
                "not supported",
            ),
            (
                Box::new(|body| {
                    body["model"] = "claude-mythos-5".into();
                    body["thinking"] = json!({"type": "disabled"});
                }),
                "not supported",
            ),
            (
                Box::new(move |body| {
                    body["system"] = json!([cached, cached, cached, cached, cached])
                }),
                "maximum of 4",
            ),
            (
                Box::new(|body| body["system"] = json!([{"type": "text", "text": ""}])),
                "non-empty",
            ),
            (
                Box::new(
                    |body| body["tools"] = json!([{"name": "A", "input_schema": {"type": "object"}}, {"name": "A", "input_schema": {"type": "object"}}]),
                ),
                "unique",
            ),
            (
                Box::new(|body| body["tools"] = json!([{"name": "A"}])),
                "input_schema",
            ),
            (
                Box::new(|body| body["messages"] = json!([])),
                "at least one",
            ),
        ];
        for (change, reason) in cases {
            let said = refused(&change);
            assert!(said.contains(reason), "{reason}: {said}");
        }
    }

    #[test]
    fn events_of_a_message_hold_each_block() {
        let all = events(
            &[
                thinking("hm"),
                text("ab"),
                call("t", "Read", json!({"a": 1})),
            ],
            "tool_use",
            5,
        );
        let kinds: Vec<&str> = all
            .iter()
            .filter_map(|event| event["type"].as_str())
            .collect();
        assert_eq!(
            kinds
                .iter()
                .filter(|kind| **kind == "content_block_stop")
                .count(),
            3
        );
        assert_eq!(kinds.last(), Some(&"message_stop"));
    }
}
