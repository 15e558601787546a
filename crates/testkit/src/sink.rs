//! A receiver of traces on a local port: as strict as Langfuse should be, and as unreliable as
//! a script wants it.
//!
//! Keeps one span per id, as a real one does, with how often it came. What is not as it should
//! be (headers, keys, names and types of attributes, ids, times) is refused with 400 and noted
//! as a fault, so that a test can say that there was none.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flate2::read::GzDecoder;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::Span as WireSpan;
use prost::Message;
use serde_json::Value;

use crate::api::{self, Request};

mod rules;

/// One span as it was received.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The id of its trace, in hexadecimal.
    pub trace: String,
    /// Its id.
    pub id: String,
    /// The id of the span it stands under; empty for a root.
    pub parent: String,
    /// Its name.
    pub name: String,
    /// When it began, in nanoseconds since 1970; 0 if it does not say.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// Its attributes.
    pub attributes: BTreeMap<String, Value>,
    /// Those of whoever sent it.
    pub resource: BTreeMap<String, Value>,
    /// Stands for all of the above.
    pub print: u64,
    /// How often it came.
    pub times: usize,
    /// Its place in the order in which spans came first.
    pub order: usize,
    /// The request that it is from, by the order in which they arrived. An older one that is
    /// worked on for longer does not take the place of a newer one.
    arrival: usize,
}

impl Span {
    /// An attribute as text.
    pub fn text(&self, name: &str) -> &str {
        self.attributes
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or("")
    }
}

/// What becomes of a request that is as it should be.
#[derive(Clone, Debug)]
pub enum Answer {
    /// 200: it is kept.
    Take,
    /// 200, but so many spans from the end are not kept, and why.
    TakeWithout(usize, String),
    /// 207 with one error, as older endpoints of Langfuse answer; the last span is not kept.
    TakeMost(String),
    /// A status such as `429 Too Many Requests`, headers and a reason; nothing is kept.
    Fail(&'static str, Vec<(&'static str, String)>, String),
    /// A web page with status 200; nothing is kept.
    Page,
    /// Nothing for so long, then the other answer.
    Late(Duration, Box<Answer>),
    /// It is kept, but the answer never arrives.
    TakeAndHangUp,
    /// Nothing is kept and nothing is answered.
    HangUp,
}

/// A request, as a script sees it.
#[derive(Debug)]
pub struct Incoming<'a> {
    /// Its number, from 0, of all that were as they should be.
    pub number: usize,
    /// The spans in it.
    pub spans: &'a [Span],
    /// Its size before it was compressed.
    pub bytes: usize,
}

/// What becomes of requests.
pub type Script = dyn Fn(&Incoming<'_>) -> Answer + Send + Sync;

/// Who may send, and to where.
#[derive(Clone, Debug)]
pub enum Door {
    /// Langfuse, for this public and this secret key.
    Langfuse(String, String),
    /// Any receiver of OTLP, with a header that must be there.
    Otlp(Option<(String, String)>),
    /// Takes everything unseen, for those who measure the sender.
    Blind,
}

/// A running receiver; it stops when dropped.
pub struct Sink {
    /// Where it listens.
    pub addr: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    door: Door,
    lean: AtomicBool,
    script: Box<Script>,
    state: Mutex<State>,
    stopped: AtomicBool,
}

#[derive(Default)]
struct State {
    spans: HashMap<(String, String), Span>,
    faults: Vec<String>,
    requests: usize,
    number: usize,
    bytes: usize,
    largest: usize,
}

/// The keys of [`Sink::langfuse`].
pub const PUBLIC: &str = "pk-lf-0123456789";
/// The keys of [`Sink::langfuse`].
pub const SECRET: &str = "sk-lf-9876543210";

impl Sink {
    /// Langfuse, which takes everything.
    pub fn langfuse() -> Sink {
        Sink::scripted(|_| Answer::Take)
    }

    /// Langfuse, which does what the script says.
    pub fn scripted(script: impl Fn(&Incoming<'_>) -> Answer + Send + Sync + 'static) -> Sink {
        Sink::start(Door::Langfuse(PUBLIC.into(), SECRET.into()), script)
    }

    /// Any receiver of OTLP, which takes everything.
    pub fn otlp() -> Sink {
        Sink::start(Door::Otlp(None), |_| Answer::Take)
    }

    /// A receiver behind this door.
    pub fn start(
        door: Door,
        script: impl Fn(&Incoming<'_>) -> Answer + Send + Sync + 'static,
    ) -> Sink {
        let listening = TcpListener::bind("127.0.0.1:0");
        let listener = listening.unwrap_or_else(|error| panic!("no port for the sink: {error}"));
        let addr = listener
            .local_addr()
            .unwrap_or_else(|error| panic!("no port for the sink: {error}"));
        let shared = Arc::new(Shared {
            door,
            lean: AtomicBool::new(false),
            script: Box::new(script),
            state: Mutex::default(),
            stopped: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || accept(&listener, &accepting));
        Sink { addr, shared }
    }

    /// From now on keeps only what tells spans apart, so that many fit into memory.
    pub fn lean(self) -> Sink {
        self.shared.lean.store(true, Ordering::Relaxed);
        self
    }

    /// The base address, for `LANGFUSE_BASE_URL` or `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The spans that are kept, in the order in which they came first.
    pub fn spans(&self) -> Vec<Span> {
        let mut spans: Vec<Span> = self.shared.lock().spans.values().cloned().collect();
        spans.sort_unstable_by_key(|span| span.order);
        spans
    }

    /// The roots among them: one per turn.
    pub fn roots(&self) -> Vec<Span> {
        let mut spans = self.spans();
        spans.retain(|span| span.parent.is_empty());
        spans
    }

    /// Everything that was not as it should be.
    pub fn faults(&self) -> Vec<String> {
        self.shared.lock().faults.clone()
    }

    /// How many requests came.
    pub fn requests(&self) -> usize {
        self.shared.lock().requests
    }

    /// Bytes of all requests, and of the largest, before they were compressed.
    pub fn bytes(&self) -> (usize, usize) {
        let state = self.shared.lock();
        (state.bytes, state.largest)
    }

    /// Forgets the spans.
    pub fn clear(&self) {
        self.shared.lock().spans.clear();
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        // Wakes the accepting thread, which then sees the flag.
        let _ = TcpStream::connect(self.addr);
    }
}

/// What is kept of a span's attributes when little is.
const LEAN: [&str; 2] = ["session.id", "langfuse.trace.name"];

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, spans: &[Span]) {
        let lean = self.lean.load(Ordering::Relaxed);
        let mut state = self.lock();
        for span in spans {
            let order = state.spans.len();
            let key = (span.trace.clone(), span.id.clone());
            let kept = state.spans.entry(key).or_insert_with(|| Span {
                times: 0,
                order,
                ..span.clone()
            });
            let (times, order) = (kept.times + 1, kept.order);
            if span.arrival < kept.arrival {
                kept.times = times;
                continue;
            }
            *kept = Span {
                times,
                order,
                ..span.clone()
            };
            if lean {
                kept.attributes
                    .retain(|name, _| LEAN.contains(&name.as_str()));
                kept.resource.clear();
            }
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
        // A sender that is killed in the middle is what this is for.
        std::thread::spawn(move || drop(serve(&stream, &shared)));
    }
}

fn serve(stream: &TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while let Some((request, body)) = api::read_raw(&mut reader, &mut writer)? {
        if shared.stopped.load(Ordering::Relaxed) {
            break;
        }
        let arrival = {
            let mut state = shared.lock();
            state.requests += 1;
            state.requests
        };
        match respond(shared, &request, &body, arrival) {
            Some(response) => writer.write_all(&response)?,
            None => break,
        }
    }
    stream.shutdown(Shutdown::Both)
}

/// The answer; `None` to hang up.
fn respond(shared: &Shared, request: &Request, body: &[u8], arrival: usize) -> Option<Vec<u8>> {
    if let Some(refusal) = rules::door(&shared.door, request) {
        return Some(failure(refusal, &[], "not for you"));
    }
    if matches!(shared.door, Door::Blind) {
        shared.lock().bytes += body.len();
        return Some(taken(0, ""));
    }
    let (mut spans, bytes) = match read(request, body) {
        Ok(read) => read,
        Err(why) => return Some(fault(shared, why)),
    };
    spans.iter_mut().for_each(|span| span.arrival = arrival);
    if let Some(why) = spans.iter().find_map(rules::span) {
        return Some(fault(shared, why));
    }
    let number = {
        let mut state = shared.lock();
        state.bytes += bytes;
        state.largest = state.largest.max(bytes);
        state.number += 1;
        state.number - 1
    };
    let incoming = Incoming {
        number,
        spans: &spans,
        bytes,
    };
    let answer = (shared.script)(&incoming);
    give(shared, &spans, answer)
}

fn give(shared: &Shared, spans: &[Span], answer: Answer) -> Option<Vec<u8>> {
    match answer {
        Answer::Take => {
            shared.keep(spans);
            Some(taken(0, ""))
        }
        Answer::TakeWithout(lost, why) => {
            shared.keep(&spans[..spans.len().saturating_sub(lost)]);
            Some(taken(lost, &why))
        }
        Answer::TakeMost(why) => {
            shared.keep(&spans[..spans.len().saturating_sub(1)]);
            let body = serde_json::json!({
                "successes": [],
                "errors": [{"id": "x", "status": 400, "message": why}],
            });
            Some(response(
                "207 Multi-Status",
                "application/json",
                &[],
                body.to_string().as_bytes(),
            ))
        }
        Answer::Fail(status, headers, why) => Some(failure(status, &headers, &why)),
        Answer::Page => Some(response(
            "200 OK",
            "text/html",
            &[],
            b"<html>Welcome</html>",
        )),
        Answer::Late(wait, answer) => {
            std::thread::sleep(wait);
            give(shared, spans, *answer)
        }
        Answer::TakeAndHangUp => {
            shared.keep(spans);
            None
        }
        Answer::HangUp => None,
    }
}

fn fault(shared: &Shared, why: String) -> Vec<u8> {
    let answer = failure("400 Bad Request", &[], &why);
    shared.lock().faults.push(why);
    answer
}

fn taken(lost: usize, why: &str) -> Vec<u8> {
    let partial_success = (lost > 0).then(|| ExportTracePartialSuccess {
        rejected_spans: i64::try_from(lost).unwrap_or(i64::MAX),
        error_message: why.to_owned(),
    });
    let body = ExportTraceServiceResponse { partial_success }.encode_to_vec();
    response("200 OK", "application/x-protobuf", &[], &body)
}

fn failure(status: &str, headers: &[(&'static str, String)], why: &str) -> Vec<u8> {
    let body = serde_json::json!({ "message": why }).to_string();
    response(status, "application/json", headers, body.as_bytes())
}

fn response(status: &str, kind: &str, headers: &[(&'static str, String)], body: &[u8]) -> Vec<u8> {
    let mut head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    [head.as_bytes(), body].concat()
}

/// The spans of a request, and its size before it was compressed.
fn read(request: &Request, body: &[u8]) -> Result<(Vec<Span>, usize), String> {
    let kind = request.header("content-type").unwrap_or_default();
    if kind != "application/x-protobuf" {
        return Err(format!("content-type is `{kind}`"));
    }
    let mut plain = Vec::new();
    match request.header("content-encoding") {
        None => plain.extend_from_slice(body),
        Some("gzip") => {
            let read = GzDecoder::new(body).read_to_end(&mut plain);
            read.map_err(|error| format!("the body is no gzip: {error}"))?;
        }
        Some(other) => return Err(format!("content-encoding is `{other}`")),
    }
    let request = ExportTraceServiceRequest::decode(&*plain)
        .map_err(|error| format!("the body is no request: {error}"))?;
    let mut spans = Vec::new();
    for group in request.resource_spans {
        let resource = group
            .resource
            .map(|resource| attributes(&resource.attributes));
        let resource = resource.transpose()?.unwrap_or_default();
        for list in group.scope_spans {
            for span in list.spans {
                spans.push(span_of(&span, &resource)?);
            }
        }
    }
    Ok((spans, plain.len()))
}

fn span_of(span: &WireSpan, resource: &BTreeMap<String, Value>) -> Result<Span, String> {
    let mut hasher = DefaultHasher::new();
    span.encode_to_vec().hash(&mut hasher);
    Ok(Span {
        print: hasher.finish(),
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        name: span.name.clone(),
        start: span.start_time_unix_nano,
        end: span.end_time_unix_nano,
        attributes: attributes(&span.attributes)?,
        resource: resource.clone(),
        times: 1,
        order: 0,
        arrival: 0,
    })
}

fn attributes(list: &[KeyValue]) -> Result<BTreeMap<String, Value>, String> {
    let mut all = BTreeMap::new();
    for KeyValue { key, value, .. } in list {
        let value = value.as_ref().and_then(|value| value.value.as_ref());
        let value = plain(value).ok_or_else(|| format!("`{key}` has no value"))?;
        if all.insert(key.clone(), value).is_some() {
            return Err(format!("`{key}` stands there twice"));
        }
    }
    Ok(all)
}

fn plain(value: Option<&Any>) -> Option<Value> {
    Some(match value? {
        Any::StringValue(text) => Value::from(text.as_str()),
        Any::BoolValue(is) => Value::from(*is),
        Any::IntValue(number) => Value::from(*number),
        Any::DoubleValue(number) => Value::from(*number),
        Any::ArrayValue(list) => {
            let items = list.values.iter().map(|item| plain(item.value.as_ref()));
            Value::Array(items.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
