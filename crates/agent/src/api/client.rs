//! Asks the model and hands on what it says, as it says it.
//!
//! A request runs as a task of its own; dropping [`RunningRequest`] drops the connection at once. It
//! is repeated here, and only here, as [`super::retry`] says.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::runtime::Runtime;
use unspool_ask::{ApiCredential, ApiErrorBody, MessagesEndpoint};
use unspool_net::error_chain;
use unspool_net::reqwest::header::HeaderMap;
use unspool_net::reqwest::{self, Response};

use super::message::{MessageEvent, StreamedBlock, StreamedMessage};
use super::model::{self, ThinkingMode};
use super::retry::{ApiError, ApiErrorKind, MOST, RetryDecision};
use super::sse::SseParser;
use crate::stop::StopSignal;

/// What is asked, all of it.
#[derive(Clone, Debug)]
pub struct MessagesRequest {
    /// The model.
    pub model: String,
    /// Tokens of the answer, at most.
    pub most: u64,
    /// How much to think.
    pub thinking: ThinkingMode,
    /// How hard to try.
    pub effort: Option<String>,
    /// Texts before the conversation.
    pub system: Vec<Value>,
    /// What it may call.
    pub tools: Vec<Value>,
    /// The conversation, as JSON text.
    pub messages: String,
    /// More fields of the request.
    pub more: Map<String, Value>,
    /// Parts of the API that have to be asked for.
    pub betas: Vec<String>,
}

impl MessagesRequest {
    /// The body of the request, with room for `most` tokens of answer.
    pub fn body(&self, most: u64) -> String {
        let mut fields = self.fields(most);
        fields.insert("max_tokens".into(), most.into());
        fields.insert("stream".into(), true.into());
        if let Some(effort) = &self.effort
            && model::takes_effort(&self.model)
        {
            fields.insert(
                "output_config".into(),
                serde_json::json!({"effort": effort}),
            );
        }
        for (name, value) in &self.more {
            fields.insert(name.clone(), value.clone());
        }
        self.with_messages(fields)
    }

    /// The body of the question how many tokens it takes.
    fn body_to_count(&self) -> String {
        self.with_messages(self.fields(self.most))
    }

    fn fields(&self, most: u64) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("model".into(), model::plain(&self.model).into());
        if !self.system.is_empty() {
            fields.insert("system".into(), self.system.clone().into());
        }
        if !self.tools.is_empty() {
            fields.insert("tools".into(), self.tools.clone().into());
        }
        if let Some(thinking) = model::thinking(&self.model, self.thinking, most) {
            fields.insert("thinking".into(), thinking);
        }
        fields
    }

    fn with_messages(&self, fields: Map<String, Value>) -> String {
        let mut body = Value::Object(fields).to_string();
        // The conversation is text already and may be large: it is not read again.
        body.pop();
        body.push_str(",\"messages\":");
        body.push_str(&self.messages);
        body.push('}');
        body
    }
}

/// What is known of a message when one of its blocks ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamedHeader {
    /// Its id.
    pub id: String,
    /// The model that speaks.
    pub model: String,
    /// The request.
    pub request: Option<String>,
    /// Its tokens so far.
    pub usage: Value,
}

/// What comes back, bit by bit.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamItem {
    /// An event as the API sent it.
    Raw(Value),
    /// The message began.
    Began(StreamedHeader),
    /// More text.
    Text(String),
    /// More thinking.
    Thinking(String),
    /// A block has ended.
    Block(StreamedBlock, StreamedHeader),
    /// It failed and is tried again. What was said so far does not count.
    Retry {
        /// What happened.
        trouble: ApiError,
        /// How many tries failed.
        tries: u32,
        /// How many may.
        most: u32,
        /// When it is tried again.
        wait: Duration,
    },
    /// The message has ended: why it stopped and what it took.
    Ended(StreamedMessage, Option<String>),
    /// It broke off after blocks had ended, which stay.
    Cut(ApiError),
    /// There is no answer.
    Failed(ApiError),
}

/// How to ask.
#[derive(Clone, Debug)]
pub struct ApiRetryPolicy {
    /// How often a request is repeated.
    pub retries: u32,
    /// Nothing came for so long: it hangs.
    pub idle: Duration,
    /// No answer began for so long.
    pub begin: Duration,
}

impl Default for ApiRetryPolicy {
    fn default() -> ApiRetryPolicy {
        ApiRetryPolicy {
            retries: MOST,
            idle: Duration::from_secs(300),
            begin: Duration::from_secs(600),
        }
    }
}

/// The API at an address.
#[derive(Clone)]
pub struct MessagesClient {
    http: reqwest::Client,
    address: String,
    patience: ApiRetryPolicy,
    runtime: &'static Runtime,
    /// Whether the API counts tokens; gateways may not.
    counts: Arc<AtomicBool>,
}

/// One for the whole program: it is never dropped, least of all by one of its own tasks.
fn runtime() -> Result<&'static Runtime, String> {
    static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| {
        let builder = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("api")
            .enable_all()
            .build();
        builder.map_err(|error| error.to_string())
    });
    made.as_ref().map_err(Clone::clone)
}

/// A request on its way. Dropped, it is over.
#[derive(Debug)]
pub struct RunningRequest(tokio::task::JoinHandle<()>);

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl MessagesClient {
    /// A client for the API at `base`.
    pub fn new(
        base: &str,
        access: &ApiCredential,
        patience: ApiRetryPolicy,
    ) -> Result<MessagesClient, ApiError> {
        let broken = |message: String| ApiError::new(ApiErrorKind::Connect, message);
        let endpoint = MessagesEndpoint::new(base, access);
        let endpoint = endpoint.map_err(|error| broken(error.to_string()))?;
        let http = unspool_net::streaming().default_headers(endpoint.headers);
        let http = http.build().map_err(|error| broken(error_chain(&error)))?;
        let runtime = runtime().map_err(broken)?;
        Ok(MessagesClient {
            http,
            address: endpoint.address,
            patience,
            runtime,
            counts: Arc::new(AtomicBool::new(true)),
        })
    }

    /// Asks, and hands each bit to `sink` on a thread of its own.
    pub fn start(
        &self,
        ask: MessagesRequest,
        sink: impl Fn(StreamItem) + Send + Sync + 'static,
    ) -> RunningRequest {
        let client = self.clone();
        RunningRequest(
            self.runtime
                .spawn(async move { client.run(&ask, &sink).await }),
        )
    }

    /// Asks and waits for all of the answer.
    pub fn collect(
        &self,
        ask: MessagesRequest,
        stop: &StopSignal,
    ) -> Result<(Vec<StreamedBlock>, StreamedMessage), ApiError> {
        let (sender, items) = channel();
        let _running = self.start(ask, move |item| drop(sender.send(item)));
        let mut blocks = Vec::new();
        let step = Duration::from_millis(50);
        loop {
            match items.recv_timeout(step) {
                Ok(StreamItem::Block(block, _)) => blocks.push(block),
                Ok(StreamItem::Retry { .. }) => blocks.clear(),
                Ok(StreamItem::Ended(message, _)) => return Ok((blocks, message)),
                Ok(StreamItem::Cut(trouble) | StreamItem::Failed(trouble)) => return Err(trouble),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) if stop.is_told() => {
                    return Err(ApiError::new(ApiErrorKind::Cut, "interrupted"));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(ApiError::new(
                        ApiErrorKind::Cut,
                        "the request ended without a response",
                    ));
                }
            }
        }
    }

    /// Whether the API counts tokens, as far as known.
    pub fn counts(&self) -> bool {
        self.counts.load(Ordering::Relaxed)
    }

    /// How many tokens a request takes, as the API counts them. `None` where it does not say;
    /// such an API is not asked again.
    pub fn count(&self, ask: &MessagesRequest, stop: &StopSignal) -> Option<u64> {
        if !self.counts() {
            return None;
        }
        let address = format!("{}/count_tokens", self.address);
        let request = self.http.post(address).body(ask.body_to_count());
        let (sender, answers) = channel();
        let running = RunningRequest(self.runtime.spawn(async move {
            let told = tokio::time::timeout(COUNTING, counted(request)).await;
            let _ = sender.send(told.ok().flatten());
        }));
        let answer = loop {
            match answers.recv_timeout(Duration::from_millis(20)) {
                Ok(answer) => break answer,
                Err(RecvTimeoutError::Timeout) if stop.is_told() => return None,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break None,
            }
        };
        drop(running);
        if answer.is_none() {
            self.counts.store(false, Ordering::Relaxed);
        }
        answer
    }

    async fn run(&self, ask: &MessagesRequest, sink: &(impl Fn(StreamItem) + Sync)) {
        let mut most = ask.most;
        let mut tries = 0;
        loop {
            let trouble = match self.once(ask, most, sink).await {
                Ok((message, request)) => return sink(StreamItem::Ended(message, request)),
                Err(trouble) => trouble,
            };
            // Too little room is no reason to fail, as long as some is left.
            if let Some(room) = room(&trouble).filter(|room| *room < most) {
                most = room;
                continue;
            }
            tries += 1;
            match trouble.next(tries, self.patience.retries, chance()) {
                RetryDecision::Wait(wait) => {
                    sink(StreamItem::Retry {
                        trouble,
                        tries,
                        most: self.patience.retries,
                        wait,
                    });
                    tokio::time::sleep(wait).await;
                }
                RetryDecision::Keep => return sink(StreamItem::Cut(trouble)),
                RetryDecision::GiveUp => return sink(StreamItem::Failed(trouble)),
            }
        }
    }

    async fn once(
        &self,
        ask: &MessagesRequest,
        most: u64,
        sink: &(impl Fn(StreamItem) + Sync),
    ) -> Result<(StreamedMessage, Option<String>), ApiError> {
        let mut request = self.http.post(&self.address).body(ask.body(most));
        if !ask.betas.is_empty() {
            request = request.header("anthropic-beta", ask.betas.join(","));
        }
        let sent = tokio::time::timeout(self.patience.begin, request.send()).await;
        let silent = || {
            let seconds = self.patience.begin.as_secs();
            ApiError::new(ApiErrorKind::Silent, format!("timed out after {seconds} s"))
        };
        let response = sent.map_err(|_| silent())?.map_err(unconnected)?;
        if response.status() != reqwest::StatusCode::OK {
            return Err(refused(response).await);
        }
        self.listen(response, sink).await
    }

    async fn listen(
        &self,
        mut response: Response,
        sink: &(impl Fn(StreamItem) + Sync),
    ) -> Result<(StreamedMessage, Option<String>), ApiError> {
        let request = request_id(response.headers());
        let mut ear = ResponseReader {
            parser: SseParser::default(),
            message: StreamedMessage::default(),
            request: request.clone(),
            failed: None,
        };
        let trouble = loop {
            // Every byte counts, also those of pings.
            match tokio::time::timeout(self.patience.idle, response.chunk()).await {
                Err(_) => {
                    let seconds = self.patience.idle.as_secs();
                    break ApiError::new(
                        ApiErrorKind::Silent,
                        format!("timed out: no data for {seconds} s"),
                    );
                }
                Ok(Err(error)) => {
                    break ApiError::new(ApiErrorKind::Cut, error_chain(&error.without_url()));
                }
                Ok(Ok(None)) => break ApiError::new(ApiErrorKind::Cut, "the response was cut off"),
                Ok(Ok(Some(bytes))) => ear.hear(&bytes, sink),
            }
            if let Some(trouble) = ear.failed.take() {
                break trouble;
            }
            if ear.message.ended {
                return Ok((ear.message, request));
            }
        };
        Err(ApiError {
            request: request.map(Into::into),
            finished: ear.message.finished,
            ..trouble
        })
    }
}

/// Nobody waits longer for a number that can be guessed.
const COUNTING: Duration = Duration::from_secs(10);

async fn counted(request: reqwest::RequestBuilder) -> Option<u64> {
    let response = request.send().await.ok()?;
    if response.status() != reqwest::StatusCode::OK {
        return None;
    }
    let bytes = response.bytes().await.ok()?;
    let said: Value = serde_json::from_slice(&bytes).ok()?;
    said["input_tokens"].as_u64()
}

/// What one answer has said so far.
struct ResponseReader {
    parser: SseParser,
    message: StreamedMessage,
    request: Option<String>,
    failed: Option<ApiError>,
}

impl ResponseReader {
    fn hear(&mut self, bytes: &[u8], sink: &(impl Fn(StreamItem) + Sync)) {
        let (message, request, failed) = (&mut self.message, &self.request, &mut self.failed);
        self.parser.feed(bytes, |data| {
            // Half a surrogate pair makes no event worthless; what is no JSON at all is none.
            let event = unspool_model::json::value(data.as_bytes());
            if !event.is_object() {
                return;
            }
            let told = message.take(&event);
            let head = || StreamedHeader {
                id: message.id.clone(),
                model: message.model.clone(),
                request: request.clone(),
                usage: Value::Object(message.usage.clone()),
            };
            match told {
                Some(MessageEvent::Began) => sink(StreamItem::Began(head())),
                Some(MessageEvent::Text(text)) => sink(StreamItem::Text(text)),
                Some(MessageEvent::Thinking(text)) => sink(StreamItem::Thinking(text)),
                Some(MessageEvent::Block(block)) => sink(StreamItem::Block(block, head())),
                Some(MessageEvent::Failed(kind, why)) => {
                    let trouble = ApiError::new(ApiErrorKind::Event(kind.clone()), why);
                    *failed = Some(ApiError {
                        error: kind,
                        ..trouble
                    });
                }
                Some(MessageEvent::Stopped | MessageEvent::Ended) | None => {}
            }
            sink(StreamItem::Raw(event));
        });
    }
}

fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get("request-id")?.to_str().ok()?;
    Some(id.to_owned())
}

async fn refused(response: Response) -> ApiError {
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let header = |name: &str| headers.get(name)?.to_str().ok();
    let again = match header("x-should-retry") {
        Some("true") => Some(true),
        Some("false") => Some(false),
        _ => None,
    };
    let bytes = response.bytes().await.unwrap_or_default();
    let body = ApiErrorBody::read(&bytes);
    let raw = || {
        String::from_utf8_lossy(&bytes[..bytes.len().min(300)])
            .trim()
            .to_owned()
    };
    let message = body.message.unwrap_or_else(raw);
    ApiError {
        error: body.kind,
        request: request_id(&headers).map(Into::into),
        after: unspool_net::retry_after(&headers),
        again,
        ..ApiError::new(ApiErrorKind::Status(status), message)
    }
}

fn unconnected(error: reqwest::Error) -> ApiError {
    let words = error_chain(&error.without_url());
    let lower = words.to_ascii_lowercase();
    let unsafe_side = ["certificate", "tls", "handshake"];
    let kind = if unsafe_side.iter().any(|mark| lower.contains(mark)) {
        ApiErrorKind::Certificate
    } else {
        ApiErrorKind::Connect
    };
    ApiError::new(kind, words)
}

/// How much room for an answer the API says there is, if that was too little.
///
/// It says `188240 + 21333 > 200000`: what is asked, what was wanted, what fits.
fn room(trouble: &ApiError) -> Option<u64> {
    if trouble.status() != Some(400) || !trouble.message.contains("max_tokens") {
        return None;
    }
    let (sum, limit) = trouble.message.split_once('>')?;
    let number = |text: &str| -> Option<u64> {
        let digits: String = text.chars().filter(|c| *c != ',').collect();
        digits.parse().ok()
    };
    let limit = number(limit.split_whitespace().next()?.trim_end_matches(','))?;
    let input = number(sum.split('+').next()?.split_whitespace().next_back()?)?;
    let left = limit.checked_sub(input)?.checked_sub(SPARE)?;
    (left >= LEAST).then_some(left)
}

/// Counts differ a little from one request to the next.
const SPARE: u64 = 1_000;
/// Less room than this makes no answer.
const LEAST: u64 = 3_000;

/// Whether the API says that the conversation is too long to be answered at all.
pub fn is_too_long(trouble: &ApiError) -> bool {
    let said = trouble.message.to_ascii_lowercase();
    match trouble.status() {
        Some(413) => true,
        Some(400) => {
            said.contains("prompt is too long")
                || said.contains("exceed context limit")
                || said.contains("context window")
        }
        _ => false,
    }
}

fn chance() -> f64 {
    let mut byte = [0];
    match getrandom::fill(&mut byte) {
        Ok(()) => f64::from(byte[0]) / 255.0,
        Err(_) => 0.5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(message: &str) -> ApiError {
        ApiError::new(ApiErrorKind::Status(400), message)
    }

    #[test]
    fn the_room_that_is_left_is_read_from_the_refusal() {
        let told = "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again";
        assert_eq!(room(&refused(told)), Some(10_760));
        assert_eq!(room(&refused("max_tokens: 199000 + 1 > 200000")), None);
        assert_eq!(
            room(&refused(
                "prompt is too long: 208310 tokens > 200000 maximum"
            )),
            None
        );
        assert!(is_too_long(&refused(
            "prompt is too long: 208310 tokens > 200000 maximum"
        )));
        assert!(is_too_long(&ApiError::new(ApiErrorKind::Status(413), "")));
        assert!(!is_too_long(&refused(
            "messages: text content blocks must be non-empty"
        )));
    }

    #[test]
    fn the_body_holds_the_conversation_as_it_was_given() {
        let ask = MessagesRequest {
            model: "claude-opus-4-7[1m]".into(),
            most: 10,
            thinking: ThinkingMode::Auto,
            effort: Some("low".into()),
            system: vec![],
            tools: vec![],
            messages: r#"[{"role":"user","content":"hi"}]"#.into(),
            more: Map::new(),
            betas: vec![],
        };
        let body: Value = serde_json::from_str(&ask.body(5)).unwrap();
        assert_eq!(body["model"], "claude-opus-4-7");
        assert_eq!(body["max_tokens"], 5);
        assert_eq!(body["messages"][0]["content"], "hi");
        assert_eq!(body["thinking"]["type"], "adaptive");
        assert_eq!(body["output_config"]["effort"], "low");
    }
}
