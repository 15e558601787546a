//! A scripted Messages API on a local port.
//!
//! Records every request and answers each with what a script says; without
//! one, with a short text. Plain threads and HTTP/1.1, so that it starts in a
//! millisecond. It checks nothing: what is sent is for the test to judge.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One request as it arrived.
#[derive(Clone, Debug)]
pub struct Request {
    /// Such as `POST`.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body, or null when it was no JSON.
    pub body: Value,
}

impl Request {
    /// Whether this asks for a message (and not, say, for a token count).
    pub fn is_message(&self) -> bool {
        self.method == "POST" && self.path.split('?').next() == Some("/v1/messages")
    }

    /// The value of a header, given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// What the server does with a request for a message.
#[derive(Clone, Debug)]
pub enum Reply {
    /// The model says this.
    Text(String),
    /// It fails with a status such as `429 Too Many Requests`, headers and a message.
    Fails(&'static str, Vec<(&'static str, String)>, String),
    /// It says nothing for so long, then the text.
    Late(Duration, String),
    /// It hangs up.
    HangsUp,
}

/// What becomes of a request.
pub type Script = dyn Fn(&Request) -> Reply + Send + Sync;

/// A running server; it stops when dropped.
pub struct Api {
    /// Where it listens.
    pub addr: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    requests: Mutex<Vec<Request>>,
    arrived: Condvar,
    stopped: AtomicBool,
    script: Box<Script>,
}

impl Api {
    /// Starts a server that answers every message with `pong`.
    pub fn start() -> std::io::Result<Api> {
        Api::scripted(|_| "pong".to_owned())
    }

    /// Starts a server that answers with the text the script returns.
    pub fn scripted(
        script: impl Fn(&Request) -> String + Send + Sync + 'static,
    ) -> std::io::Result<Api> {
        Api::replying(move |request| Reply::Text(script(request)))
    }

    /// Starts a server that does what the script returns.
    pub fn replying(
        script: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> std::io::Result<Api> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared {
            requests: Mutex::default(),
            arrived: Condvar::new(),
            stopped: AtomicBool::new(false),
            script: Box::new(script),
        });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || accept(&listener, &accepting));
        Ok(Api { addr, shared })
    }

    /// The base address, for `ANTHROPIC_BASE_URL`.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock().clone()
    }

    /// The first request that passes the test, waiting for it until the time is up.
    pub fn wait_for(
        &self,
        passes: impl Fn(&Request) -> bool,
        timeout: Duration,
    ) -> Option<Request> {
        let deadline = Instant::now() + timeout;
        let mut requests = self.shared.lock();
        loop {
            if let Some(found) = requests.iter().find(|request| passes(request)) {
                return Some(found.clone());
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            requests = self
                .shared
                .arrived
                .wait_timeout(requests, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        // Wakes the accepting thread, which then sees the flag.
        let _ = TcpStream::connect(self.addr);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Vec<Request>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, request: Request) {
        self.lock().push(request);
        self.arrived.notify_all();
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
        std::thread::spawn(move || {
            let _ = serve(&stream, &shared);
        });
    }
}

fn serve(stream: &TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while let Some(request) = read_request(&mut reader, &mut writer)? {
        shared.record(request.clone());
        let Some(response) = respond(&request, &*shared.script) else {
            return stream.shutdown(std::net::Shutdown::Both);
        };
        response.write(&mut writer, request.method == "HEAD")?;
    }
    Ok(())
}

fn read_request(
    reader: &mut impl BufRead,
    writer: &mut impl Write,
) -> std::io::Result<Option<Request>> {
    let raw = read_raw(reader, writer)?;
    Ok(raw.map(|(request, bytes)| Request {
        body: parse_body(&bytes),
        ..request
    }))
}

/// A request without its body, and the body as it came.
pub(crate) fn read_raw(
    reader: &mut impl BufRead,
    writer: &mut impl Write,
) -> std::io::Result<Option<(Request, Vec<u8>)>> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let mut words = first.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let path = words.next().unwrap_or_default().to_owned();
    let headers = read_headers(reader)?;
    if headers.continues {
        writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let bytes = if headers.chunked {
        read_chunks(reader)?
    } else {
        read_exactly(reader, headers.length)?
    };
    let request = Request {
        method,
        path,
        headers: headers.all,
        body: Value::Null,
    };
    Ok(Some((request, bytes)))
}

/// Reads a body even if it holds half a surrogate pair, as old clients send it.
fn parse_body(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes)
        .or_else(|_| serde_json::from_str(&whole_surrogates(&String::from_utf8_lossy(bytes))))
        .unwrap_or(Value::Null)
}

/// Replaces each half of a surrogate pair that has no partner.
fn whole_surrogates(json: &str) -> String {
    let unit = |at: usize| {
        let escape = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(escape, 16).ok()
    };
    let mut whole = String::with_capacity(json.len());
    let mut at = 0;
    while let Some(rest) = json.get(at..).filter(|rest| !rest.is_empty()) {
        let (text, next) = match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (&rest[..12], 12),
            (Some(0xd800..=0xdfff), _) => ("\u{fffd}", 6),
            _ if rest.starts_with('\\') => (rest.get(..2).unwrap_or(rest), 2.min(rest.len())),
            _ => {
                let size = rest.chars().next().map_or(1, char::len_utf8);
                (&rest[..size], size)
            }
        };
        whole.push_str(text);
        at += next;
    }
    whole
}

#[derive(Default)]
struct Headers {
    length: usize,
    chunked: bool,
    continues: bool,
    all: Vec<(String, String)>,
}

fn read_headers(reader: &mut impl BufRead) -> std::io::Result<Headers> {
    let mut headers = Headers::default();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            return Ok(headers);
        }
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        let name = name.to_ascii_lowercase();
        headers.all.push((name.clone(), value.to_owned()));
        match name.as_str() {
            "content-length" => headers.length = value.parse().unwrap_or(0),
            "transfer-encoding" => headers.chunked = value.eq_ignore_ascii_case("chunked"),
            "expect" => headers.continues = true,
            _ => {}
        }
    }
}

fn read_exactly(reader: &mut impl Read, length: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_chunks(reader: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let mut size = String::new();
        reader.read_line(&mut size)?;
        let digits = size.trim().split(';').next().unwrap_or_default();
        let size = usize::from_str_radix(digits, 16).unwrap_or(0);
        bytes.append(&mut read_exactly(reader, size)?);
        read_exactly(reader, 2)?;
        if size == 0 {
            return Ok(bytes);
        }
    }
}

struct Response {
    status: &'static str,
    kind: &'static str,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl Response {
    fn json(status: &'static str, body: &Value) -> Response {
        Response {
            status,
            kind: "application/json",
            headers: Vec::new(),
            body: body.to_string(),
        }
    }

    fn write(&self, writer: &mut impl Write, head_only: bool) -> std::io::Result<()> {
        let mut head = format!(
            "HTTP/1.1 {}\r\ncontent-type: {}\r\ncontent-length: {}\r\nrequest-id: req_test\r\n",
            self.status,
            self.kind,
            self.body.len()
        );
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        writer.write_all(head.as_bytes())?;
        if !head_only {
            writer.write_all(self.body.as_bytes())?;
        }
        writer.flush()
    }
}

/// The answer; `None` to hang up.
fn respond(request: &Request, script: &Script) -> Option<Response> {
    let path = request.path.split('?').next().unwrap_or_default();
    Some(match path {
        "/v1/messages" => return reply(request, script(request)),
        "/v1/messages/count_tokens" => Response::json("200 OK", &json!({"input_tokens": 100})),
        "/" => Response::json("200 OK", &json!({})),
        _ => Response::json(
            "404 Not Found",
            &json!({"type": "error", "error": {"type": "not_found_error", "message": path}}),
        ),
    })
}

fn reply(request: &Request, reply: Reply) -> Option<Response> {
    let model = &request.body["model"];
    let text = match reply {
        Reply::Text(text) => text,
        Reply::Late(wait, text) => {
            std::thread::sleep(wait);
            text
        }
        Reply::HangsUp => return None,
        Reply::Fails(status, headers, why) => {
            let body = json!({"type": "error", "error": {"type": "test_error", "message": why}});
            return Some(Response {
                headers,
                ..Response::json(status, &body)
            });
        }
    };
    Some(if request.body["stream"] == true {
        Response {
            status: "200 OK",
            kind: "text/event-stream",
            headers: Vec::new(),
            body: stream(model, &text),
        }
    } else {
        Response::json("200 OK", &message(model, &text, "end_turn"))
    })
}

fn message(model: &Value, text: &str, stop: &str) -> Value {
    json!({
        "id": "msg_test", "type": "message", "role": "assistant", "model": model,
        "content": [{"type": "text", "text": text}],
        "stop_reason": stop, "stop_sequence": null,
        "usage": {"input_tokens": 10, "output_tokens": 1},
    })
}

/// The events of a message that holds one text.
fn stream(model: &Value, text: &str) -> String {
    let mut start = message(model, text, "end_turn");
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    let events = [
        json!({"type": "message_start", "message": start}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null},
               "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ];
    events
        .iter()
        .map(|event| {
            let name = event["type"].as_str().unwrap_or_default();
            format!("event: {name}\ndata: {event}\n\n")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(api: &Api, path: &str, body: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(api.addr)?;
        let length = body.len();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{body}"
        )?;
        stream.shutdown(std::net::Shutdown::Write)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    #[test]
    fn a_streamed_message_ends_with_message_stop() -> std::io::Result<()> {
        let api = Api::start()?;
        let answer = post(&api, "/v1/messages?beta=true", r#"{"stream":true}"#)?;
        assert!(answer.contains("pong"));
        assert!(answer.ends_with("data: {\"type\":\"message_stop\"}\n\n"));
        Ok(())
    }

    #[test]
    fn half_a_surrogate_pair_is_replaced() {
        let body = parse_body(br#"{"a":"x \ud83d y","b":"\ud83d\ude00 \\ud83d"}"#);
        assert_eq!(body["a"], "x \u{fffd} y");
        assert_eq!(body["b"], "\u{1f600} \\ud83d");
    }

    #[test]
    fn requests_are_kept_in_order() -> std::io::Result<()> {
        let api = Api::start()?;
        post(&api, "/v1/messages/count_tokens", "{}")?;
        post(&api, "/v1/messages", r#"{"n":2}"#)?;
        let second = api.wait_for(Request::is_message, Duration::from_secs(60));
        assert_eq!(
            second.map(|request| request.body["n"].clone()),
            Some(json!(2))
        );
        assert_eq!(api.requests().len(), 2);
        Ok(())
    }
}
