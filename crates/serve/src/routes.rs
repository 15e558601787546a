//! Which question is asked where, and how answers travel.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Path, Request, State as Shared};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use unspool_show::wire::detail::HealthRow;

use crate::credentials::LoginOutcome;
use crate::dashboard_api::{
    DashboardApi, DashboardError, DashboardResponse, ResponseKind, without_tokens,
};
use crate::listen::{ConnectedPeer, LocalAddress};
use crate::request_guard::{self, RequestRefusal};
use crate::{ServerState, event_broadcast, event_stream, openapi, page_files, peer_owner};

/// The largest body that is read.
const BODY: usize = 1 << 20;

/// The same for somebody who has not shown the token.
const LOGIN_BODY: usize = 4 << 10;

/// A body must arrive within this time.
const ARRIVAL: Duration = Duration::from_secs(10);

/// How long to wait for a turn to do heavy work.
const QUEUE: Duration = Duration::from_secs(30);

type SharedServerState = Arc<ServerState>;

/// Every address.
pub fn routes(state: SharedServerState, listeners: usize) -> Router {
    let listeners = Arc::new(Semaphore::new(listeners));
    let listen = move |state: Shared<SharedServerState>, headers: HeaderMap, uri: Uri| {
        let listeners = Arc::clone(&listeners);
        async move { listen(state, headers, uri, listeners).await }
    };
    let data = Router::new()
        .route("/api/health", get(health))
        .route("/api/openapi.json", get(described))
        .route("/api/logout", post(logout))
        .route("/api/sessions", get(sessions))
        .route("/api/sessions/{id}", get(session))
        .route("/api/sessions/{id}/turns", get(turns))
        .route("/api/sessions/{id}/turns/{n}", get(turn))
        .route("/api/sessions/{id}/items", get(items))
        .route("/api/sessions/{id}/items/{i}", get(item))
        .route("/api/sessions/{id}/raw/{line}", get(raw))
        .route("/api/sessions/{id}/images/{line}/{k}", get(image))
        .route("/api/sessions/{id}/find", get(find))
        .route("/api/sessions/{id}/timeline", get(timeline))
        .route("/api/sessions/{id}/context", get(context))
        .route("/api/sessions/{id}/tree", get(tree))
        .route("/api/sessions/{id}/trim", get(trim))
        .route("/api/sessions/{id}/export", get(export))
        .route("/api/search", get(search))
        .route("/api/usage", get(usage))
        .route("/api/hook", post(hook))
        .route("/api/events", get(listen))
        .method_not_allowed_fallback(not_allowed)
        .fallback(absent)
        .layer(middleware::from_fn_with_state(Arc::clone(&state), proven));
    Router::new()
        .route("/api/login", post(login))
        .method_not_allowed_fallback(not_allowed)
        .merge(data)
        .layer(middleware::from_fn_with_state(Arc::clone(&state), guarded))
        .with_state(state)
}

/// Refuses what was not meant for us, before anything else, and marks every answer.
async fn guarded(
    state: Shared<SharedServerState>,
    Extension(LocalAddress(local)): Extension<LocalAddress>,
    request: Request,
    next: Next,
) -> Response {
    // Who sends many requests at once waits for all others after each of them.
    tokio::task::yield_now().await;
    let allowed = state.guard.lets(request.headers(), request.uri(), local);
    let path = request.uri().path();
    let is_data = path == "/api" || path.starts_with("/api/");
    let mut answer = match allowed {
        Err(refusal) => refused(refusal),
        Ok(()) if is_data => next.run(request).await,
        Ok(()) if matches!(*request.method(), Method::GET | Method::HEAD) => page_files::page(path),
        Ok(()) => told(&DashboardError::new(405, "only GET and HEAD are allowed")),
    };
    let heads = answer.headers_mut();
    for (name, value) in request_guard::ALWAYS {
        heads.insert(name, HeaderValue::from_static(value));
    }
    heads
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(request_guard::DATA));
    heads
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    answer
}

/// Refuses who proves nothing.
async fn proven(
    state: Shared<SharedServerState>,
    Extension(peer): Extension<ConnectedPeer>,
    request: Request,
    next: Next,
) -> Response {
    match state.guard.proven(&state.keys, request.headers()) {
        Err(refusal) => refused(refusal),
        Ok(()) if !peer.connection.prove() => {
            told(&DashboardError::new(503, "too many connections"))
        }
        Ok(()) => next.run(request).await,
    }
}

#[derive(Serialize)]
struct ErrorJson<'a> {
    error: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

fn refused(refusal: RequestRefusal) -> Response {
    let (error, hint) = refusal.words();
    let mut answer = told(&DashboardError::new(403, error).hint(hint));
    if refusal == RequestRefusal::Token {
        let heads = answer.headers_mut();
        heads.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    answer
}

fn told(refused: &DashboardError) -> Response {
    let wrong = ErrorJson {
        error: &refused.error,
        hint: refused.hint.as_deref(),
    };
    let status = StatusCode::from_u16(refused.status);
    // Errors name paths, which may hold tokens.
    let body = without_tokens(serde_json::to_vec(&wrong).unwrap_or_default());
    let kind = [(header::CONTENT_TYPE, "application/json")];
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = (status, kind, body).into_response();
    if refused.status == 429 || refused.status == 503 {
        let heads = answer.headers_mut();
        heads.insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
    }
    if refused.status == 503 {
        // Whoever has to come back later need not keep a place until then.
        let heads = answer.headers_mut();
        heads.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

impl IntoResponse for DashboardError {
    fn into_response(self) -> Response {
        told(&self)
    }
}

impl IntoResponse for DashboardResponse {
    fn into_response(self) -> Response {
        let kind = match self.kind {
            ResponseKind::Json => "application/json",
            ResponseKind::Image(kind) => kind,
        };
        let mut answer = Response::new(Body::from(self.bytes));
        let heads = answer.headers_mut();
        heads.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        for (name, value) in self.remarks {
            if let Ok(value) = HeaderValue::from_str(&value) {
                heads.insert(HeaderName::from_static(name), value);
            }
        }
        answer
    }
}

/// Works an answer out on a thread that may wait.
async fn asked(
    state: &SharedServerState,
    job: impl FnOnce(&dyn DashboardApi) -> Result<DashboardResponse, DashboardError> + Send + 'static,
) -> Response {
    let answers = Arc::clone(&state.answers);
    match tokio::task::spawn_blocking(move || job(&*answers)).await {
        Ok(Ok(answer)) => answer.into_response(),
        Ok(Err(refused)) => told(&refused),
        Err(_) => told(&DashboardError::failed("internal error")),
    }
}

/// The same for what takes all there is: only some at a time.
async fn asked_much(
    state: &SharedServerState,
    job: impl FnOnce(&dyn DashboardApi) -> Result<DashboardResponse, DashboardError> + Send + 'static,
) -> Response {
    match timeout(QUEUE, state.heavy.acquire()).await {
        Ok(Ok(_turn)) => asked(state, job).await,
        _ => told(&DashboardError::new(
            503,
            "too many requests at the same time",
        )),
    }
}

/// What stands behind the question mark.
fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, DashboardError> {
    let query = axum::extract::Query::<T>::try_from_uri(uri);
    query
        .map(|query| query.0)
        .map_err(|why| DashboardError::bad(why.body_text()))
}

/// The longest id.
const LONGEST: usize = 100;

/// An id as names of sessions are; anything else is no id. It is looked up, never made a path.
fn id(text: &str) -> Result<&str, DashboardError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if text.is_empty() || text.len() > LONGEST || !text.bytes().all(plain) {
        return Err(DashboardError::absent("no such session"));
    }
    Ok(text)
}

fn number<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, DashboardError> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| plain);
    number.ok_or_else(|| DashboardError::absent(format!("no such {what}")))
}

async fn absent() -> Response {
    told(&DashboardError::absent("no such path").hint("`/api/openapi.json` lists all paths"))
}

async fn not_allowed() -> Response {
    told(&DashboardError::new(405, "method not allowed"))
}

async fn health(state: Shared<SharedServerState>) -> Response {
    let (sessions, scanned) = state.hub.count();
    let row = HealthRow {
        ok: true,
        version: state.version.clone(),
        pid: std::process::id(),
        sessions,
        scanned,
        uptime_ms: u64::try_from(state.began.elapsed().as_millis()).unwrap_or(u64::MAX),
    };
    match DashboardResponse::json(&row) {
        Ok(answer) => answer.into_response(),
        Err(refused) => told(&refused),
    }
}

async fn described(state: Shared<SharedServerState>) -> Response {
    match DashboardResponse::json(&openapi::document(&state.version)) {
        Ok(answer) => answer.into_response(),
        Err(refused) => told(&refused),
    }
}

#[derive(Deserialize)]
struct LoginRequest {
    token: String,
}

/// Reads a body that must not be large or late.
async fn body(request: Request, most: usize) -> Result<(HeaderMap, Bytes), DashboardError> {
    let (head, body) = request.into_parts();
    let said = head.headers.get(header::CONTENT_LENGTH);
    let said = said.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let too_large = || DashboardError::new(413, "the body is too large");
    if said.is_some_and(|length| length > most as u64) {
        return Err(too_large());
    }
    match timeout(ARRIVAL, to_bytes(body, most)).await {
        Ok(Ok(bytes)) => Ok((head.headers, bytes)),
        Ok(Err(_)) => Err(too_large()),
        Err(_) => Err(DashboardError::new(
            408,
            "timed out waiting for the request body",
        )),
    }
}

/// What a login gives.
#[derive(Serialize)]
struct LoginResponse {
    /// What to send as `Authorization: Bearer` from now on.
    token: String,
}

async fn login(
    state: Shared<SharedServerState>,
    Extension(LocalAddress(local)): Extension<LocalAddress>,
    Extension(peer): Extension<ConnectedPeer>,
    request: Request,
) -> Response {
    if let Err(refusal) = state.guard.is_own_page(request.headers()) {
        return refused(refusal);
    }
    let (headers, bytes) = match body(request, LOGIN_BODY).await {
        Ok(read) => read,
        Err(refused) => return told(&refused),
    };
    let asked: Option<LoginRequest> = serde_json::from_slice(&bytes).ok();
    let token = asked.as_ref().map(|asked| asked.token.as_bytes());
    let token = token
        .or_else(|| request_guard::bearer(&headers))
        .unwrap_or(b"");
    let is_owner = || !peer_owner::is_other_user(peer.address, local);
    match state.keys.login(token, peer.address.ip(), is_owner) {
        Ok(LoginOutcome::Access(token)) => {
            match DashboardResponse::json(&LoginResponse { token }) {
                Ok(answer) => answer.into_response(),
                Err(refused) => told(&refused),
            }
        }
        Ok(LoginOutcome::Wrong) => {
            let (error, hint) = RequestRefusal::Token.words();
            told(&DashboardError::new(403, error).hint(hint))
        }
        Ok(LoginOutcome::TooMany) => told(&DashboardError::new(429, "too many wrong tokens")),
        Err(error) => told(&DashboardError::failed(error)),
    }
}

async fn logout(state: Shared<SharedServerState>, headers: HeaderMap) -> Response {
    if let Some(key) = request_guard::bearer(&headers) {
        state.keys.logout(key);
    }
    StatusCode::NO_CONTENT.into_response()
}

async fn sessions(state: Shared<SharedServerState>, uri: Uri) -> Result<Response, DashboardError> {
    let ask = query(&uri)?;
    let hub = Arc::clone(&state.hub);
    Ok(asked(&state, move |answers| {
        let (rows, scanned) = hub.rows();
        answers.sessions(&ask, event_broadcast::sorted(rows), scanned)
    })
    .await)
}

async fn session(
    state: Shared<SharedServerState>,
    Path(text): Path<String>,
) -> Result<Response, DashboardError> {
    let id = id(&text)?.to_owned();
    let row = state.hub.row(&id);
    Ok(asked(&state, move |answers| answers.session(&id, row)).await)
}

/// A question about one session, with what stands behind the question mark.
macro_rules! about {
    ($name:ident, $how:ident) => {
        async fn $name(
            state: Shared<SharedServerState>,
            Path(text): Path<String>,
            uri: Uri,
        ) -> Result<Response, DashboardError> {
            let id = id(&text)?.to_owned();
            let ask = query(&uri)?;
            Ok($how(&state, move |answers| answers.$name(&id, &ask)).await)
        }
    };
}

about!(turns, asked);
about!(items, asked);
about!(find, asked);
about!(timeline, asked);
about!(context, asked);
about!(trim, asked_much);

async fn turn(
    state: Shared<SharedServerState>,
    Path((text, n)): Path<(String, String)>,
    uri: Uri,
) -> Result<Response, DashboardError> {
    let id = id(&text)?.to_owned();
    let (n, ask) = (number(&n, "turn")?, query(&uri)?);
    Ok(asked(&state, move |answers| answers.turn(&id, n, &ask)).await)
}

async fn item(
    state: Shared<SharedServerState>,
    Path((text, i)): Path<(String, String)>,
    uri: Uri,
) -> Result<Response, DashboardError> {
    let id = id(&text)?.to_owned();
    let (i, ask) = (number(&i, "item")?, query(&uri)?);
    Ok(asked(&state, move |answers| answers.item(&id, i, &ask)).await)
}

async fn raw(
    state: Shared<SharedServerState>,
    Path((text, line)): Path<(String, String)>,
    uri: Uri,
) -> Result<Response, DashboardError> {
    let id = id(&text)?.to_owned();
    let (line, thread) = (number(&line, "line")?, query(&uri)?);
    Ok(asked(&state, move |answers| answers.raw(&id, line, &thread)).await)
}

async fn image(
    state: Shared<SharedServerState>,
    Path((text, line, k)): Path<(String, String, String)>,
    uri: Uri,
) -> Result<Response, DashboardError> {
    let id = id(&text)?.to_owned();
    let (line, k, thread) = (number(&line, "line")?, number(&k, "image")?, query(&uri)?);
    Ok(asked(&state, move |answers| answers.image(&id, line, k, &thread)).await)
}

async fn tree(
    state: Shared<SharedServerState>,
    Path(text): Path<String>,
) -> Result<Response, DashboardError> {
    let id = id(&text)?.to_owned();
    Ok(asked_much(&state, move |answers| answers.tree(&id)).await)
}

async fn search(state: Shared<SharedServerState>, uri: Uri) -> Result<Response, DashboardError> {
    let ask = query(&uri)?;
    Ok(asked_much(&state, move |answers| answers.search(&ask)).await)
}

async fn usage(state: Shared<SharedServerState>, uri: Uri) -> Result<Response, DashboardError> {
    let ask = query(&uri)?;
    Ok(asked_much(&state, move |answers| answers.usage(&ask)).await)
}

async fn hook(
    state: Shared<SharedServerState>,
    request: Request,
) -> Result<Response, DashboardError> {
    let (_, bytes) = body(request, BODY).await?;
    let answers = Arc::clone(&state.answers);
    let done = tokio::task::spawn_blocking(move || answers.hook(&bytes)).await;
    match done {
        Ok(done) => done.map(|()| StatusCode::NO_CONTENT.into_response()),
        Err(_) => Err(DashboardError::failed("internal error")),
    }
}

async fn listen(
    state: Shared<SharedServerState>,
    headers: HeaderMap,
    uri: Uri,
    listeners: Arc<Semaphore>,
) -> Result<Response, DashboardError> {
    let ask = query(&uri)?;
    let Ok(place) = listeners.try_acquire_owned() else {
        return Err(DashboardError::new(503, "too many event streams"));
    };
    Ok(event_stream::stream(&state, &headers, ask, place))
}

/// What documents are, by the format that was asked for.
fn document(to: &str) -> Result<(&'static str, &'static str), DashboardError> {
    Ok(match to {
        "html" => ("text/html; charset=utf-8", "html"),
        "md" => ("text/markdown; charset=utf-8", "md"),
        "txt" => ("text/plain; charset=utf-8", "txt"),
        "json" => ("application/json", "json"),
        "jsonl" => ("application/jsonl", "jsonl"),
        "messages" => ("application/json", "messages.json"),
        _ => {
            return Err(DashboardError::bad(format!("`{to}` is not a format"))
                .hint("use html, md, txt, json, jsonl or messages"));
        }
    })
}

/// A document as it is written, however large it is.
async fn export(
    state: Shared<SharedServerState>,
    Path(text): Path<String>,
    uri: Uri,
) -> Result<Response, DashboardError> {
    let id = id(&text)?.to_owned();
    let ask: crate::ExportQuery = query(&uri)?;
    let (kind, ending) = document(ask.to.as_deref().unwrap_or("html"))?;
    let Ok(Ok(turn)) = timeout(QUEUE, state.heavy.acquire()).await else {
        return Err(DashboardError::new(
            503,
            "too many requests at the same time",
        ));
    };
    let name = format!("attachment; filename=\"{id}.{ending}\"");
    let (sender, mut receiver) = mpsc::channel::<Result<Bytes, DashboardError>>(4);
    let answers = Arc::clone(&state.answers);
    tokio::task::spawn_blocking(move || {
        let mut out = ResponseBodyWriter::new(sender.clone());
        let written = answers.export(&id, &ask, &mut out);
        let written = written.and_then(|()| out.flush().map_err(DashboardError::failed));
        if let Err(refused) = written {
            let _ = sender.blocking_send(Err(refused));
        }
    });
    // What went wrong before the first byte can still be said.
    let first = match receiver.recv().await {
        Some(Err(refused)) => return Err(refused),
        Some(Ok(bytes)) => bytes,
        None => Bytes::new(),
    };
    drop(turn);
    let rest = ReceiverStream::new(receiver);
    let rest = rest.map(|part| part.map_err(|refused| io::Error::other(refused.error)));
    let all = tokio_stream::once(Ok(first)).chain(rest);
    let mut answer = Response::new(Body::from_stream(all));
    let heads = answer.headers_mut();
    heads.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    if let Ok(name) = HeaderValue::from_str(&name) {
        heads.insert(header::CONTENT_DISPOSITION, name);
    }
    Ok(answer)
}

/// A writer whose bytes go out as they come, and which waits for whoever reads them.
struct ResponseBodyWriter {
    sender: mpsc::Sender<Result<Bytes, DashboardError>>,
    buffer: Vec<u8>,
}

/// How much goes out at once.
const PART: usize = 64 << 10;

impl ResponseBodyWriter {
    fn new(sender: mpsc::Sender<Result<Bytes, DashboardError>>) -> ResponseBodyWriter {
        ResponseBodyWriter {
            sender,
            buffer: Vec::new(),
        }
    }
}

impl Write for ResponseBodyWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PART {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let bytes = Bytes::from(std::mem::take(&mut self.buffer));
        let sent = self.sender.blocking_send(Ok(bytes));
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
