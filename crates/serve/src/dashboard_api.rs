//! What is asked and what is answered, without a word about HTTP.
//!
//! Whoever knows sessions implements [`DashboardApi`]; its methods may take their time and are
//! called on threads that may.

use std::io;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use unspool_model::edit::redact::Redactor;
use unspool_model::secrets::SecretFinder;
use unspool_show::wire::session::SessionJson;

/// Knows sessions.
pub trait DashboardApi: Send + Sync + 'static {
    /// The rows that fit, the latest first, of all that are known; `scanned` says whether all
    /// files were looked at.
    fn sessions(
        &self,
        ask: &SessionsQuery,
        rows: Vec<Arc<SessionJson>>,
        scanned: bool,
    ) -> Result<DashboardResponse, DashboardError>;
    /// One session; its row, if it is known.
    fn session(
        &self,
        id: &str,
        row: Option<Arc<SessionJson>>,
    ) -> Result<DashboardResponse, DashboardError>;
    /// Its turns.
    fn turns(&self, id: &str, ask: &TurnsQuery) -> Result<DashboardResponse, DashboardError>;
    /// One turn with its items.
    fn turn(
        &self,
        id: &str,
        n: usize,
        ask: &TurnsQuery,
    ) -> Result<DashboardResponse, DashboardError>;
    /// A range of its items.
    fn items(&self, id: &str, ask: &ItemsQuery) -> Result<DashboardResponse, DashboardError>;
    /// One item, whole.
    fn item(
        &self,
        id: &str,
        i: usize,
        ask: &ItemsQuery,
    ) -> Result<DashboardResponse, DashboardError>;
    /// A line of its file.
    fn raw(
        &self,
        id: &str,
        line: u32,
        thread: &ThreadQuery,
    ) -> Result<DashboardResponse, DashboardError>;
    /// An image on a line.
    fn image(
        &self,
        id: &str,
        line: u32,
        k: usize,
        thread: &ThreadQuery,
    ) -> Result<DashboardResponse, DashboardError>;
    /// Where a text stands in it.
    fn find(&self, id: &str, ask: &FindQuery) -> Result<DashboardResponse, DashboardError>;
    /// Its turns, summed up for a strip.
    fn timeline(&self, id: &str, ask: &TimelineQuery) -> Result<DashboardResponse, DashboardError>;
    /// What fills its context.
    fn context(&self, id: &str, ask: &ContextQuery) -> Result<DashboardResponse, DashboardError>;
    /// Its branches.
    fn tree(&self, id: &str) -> Result<DashboardResponse, DashboardError>;
    /// What a trimmed copy would be.
    fn trim(&self, id: &str, ask: &TrimQuery) -> Result<DashboardResponse, DashboardError>;
    /// Writes it as a document.
    fn export(
        &self,
        id: &str,
        ask: &ExportQuery,
        out: &mut dyn io::Write,
    ) -> Result<(), DashboardError>;
    /// Text in all sessions.
    fn search(&self, ask: &SearchSessionsQuery) -> Result<DashboardResponse, DashboardError>;
    /// Tokens and cost.
    fn usage(&self, ask: &UsageQuery) -> Result<DashboardResponse, DashboardError>;
    /// Takes in what a hook was told.
    fn hook(&self, event: &[u8]) -> Result<(), DashboardError>;
}

/// What is answered.
#[derive(Debug)]
pub struct DashboardResponse {
    /// What it is.
    pub kind: ResponseKind,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Remarks beside it: names and values of headers.
    pub remarks: Vec<(&'static str, String)>,
}

/// What an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseKind {
    /// JSON.
    Json,
    /// An image of this type.
    Image(&'static str),
}

/// Names of files, branches and tools may hold tokens; nothing of the kind leaves.
pub(crate) fn without_tokens(json: Vec<u8>) -> Vec<u8> {
    static MASKER: OnceLock<Redactor> = OnceLock::new();
    let masker = MASKER.get_or_init(|| Redactor::masking(SecretFinder::forms().clone()));
    masker.value(&json).map_or(json, |masked| masked.bytes)
}

impl DashboardResponse {
    /// Something as JSON.
    pub fn json(value: &impl Serialize) -> Result<DashboardResponse, DashboardError> {
        let bytes = serde_json::to_vec(value).map_err(DashboardError::failed)?;
        let bytes = without_tokens(bytes);
        Ok(DashboardResponse {
            kind: ResponseKind::Json,
            bytes,
            remarks: Vec::new(),
        })
    }

    /// With a remark beside it.
    pub fn with(mut self, name: &'static str, value: impl ToString) -> DashboardResponse {
        self.remarks.push((name, value.to_string()));
        self
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub struct DashboardError {
    /// The status of HTTP.
    pub status: u16,
    /// What is wrong.
    pub error: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl DashboardError {
    /// There is no such thing.
    pub fn absent(error: impl ToString) -> DashboardError {
        DashboardError::new(404, error)
    }

    /// The question makes no sense.
    pub fn bad(error: impl ToString) -> DashboardError {
        DashboardError::new(400, error)
    }

    /// Something failed here.
    pub fn failed(error: impl ToString) -> DashboardError {
        DashboardError::new(500, error)
    }

    /// Any other reason.
    pub fn new(status: u16, error: impl ToString) -> DashboardError {
        DashboardError {
            status,
            error: error.to_string(),
            hint: None,
        }
    }

    /// Says what to do about it.
    pub fn hint(mut self, hint: impl ToString) -> DashboardError {
        self.hint = Some(hint.to_string());
        self
    }
}

/// Which sessions.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct SessionsQuery {
    /// Only those of this project.
    pub project: Option<String>,
    /// Only those with something since then.
    pub since: Option<String>,
    /// Only those in this state.
    pub status: Option<String>,
    /// At most so many.
    pub limit: Option<usize>,
}

/// Which conversation of a session.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ThreadQuery {
    /// That of this sub-agent.
    pub agent: Option<String>,
    /// Only this branch, given by its last line.
    pub branch: Option<String>,
}

/// Which turns.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct TurnsQuery {
    /// From this one on, counted from 0.
    pub from: Option<usize>,
    /// At most so many.
    pub limit: Option<usize>,
    /// The last ones.
    pub last: Option<usize>,
    /// Of this sub-agent.
    pub agent: Option<String>,
}

/// Which items.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ItemsQuery {
    /// From this one on, counted from 0.
    pub from: Option<usize>,
    /// At most so many.
    pub limit: Option<usize>,
    /// The last ones.
    pub last: Option<usize>,
    /// From the head of this turn on.
    pub turn: Option<usize>,
    /// From the item on that holds this line.
    pub line: Option<u32>,
    /// `turns`, `replies` or `all`.
    pub level: Option<String>,
    /// Of this sub-agent.
    pub agent: Option<String>,
    /// Only this branch, given by its last line.
    pub branch: Option<String>,
    /// The end is enough if all of it would take long.
    pub quick: Option<u8>,
}

/// A text to find in a session.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct FindQuery {
    /// The text.
    pub q: String,
    /// At most so many hits.
    pub limit: Option<usize>,
    /// Of this sub-agent.
    pub agent: Option<String>,
    /// Only this branch, given by its last line.
    pub branch: Option<String>,
}

/// How fine a strip.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct TimelineQuery {
    /// At most so many parts.
    pub buckets: Option<usize>,
    /// Of this sub-agent.
    pub agent: Option<String>,
    /// Only this branch, given by its last line.
    pub branch: Option<String>,
}

/// How much of a context.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ContextQuery {
    /// How many of the largest pieces.
    pub most: Option<usize>,
}

/// How to trim.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct TrimQuery {
    /// As this preset says.
    pub preset: Option<String>,
}

/// How to write a document.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ExportQuery {
    /// `html`, `md`, `txt`, `json`, `jsonl` or `messages`.
    pub to: Option<String>,
    /// `full`, `high`, `low`, `minimal` or `prompts`.
    pub detail: Option<String>,
}

/// What to search for.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct SearchSessionsQuery {
    /// The text or the words.
    pub q: String,
    /// Words, the best hits first, if not 0.
    pub ranked: Option<u8>,
    /// A regular expression, if not 0.
    pub regex: Option<u8>,
    /// Only in this project.
    pub project: Option<String>,
    /// Only what was written since then.
    pub since: Option<String>,
    /// Only what was written until then.
    pub until: Option<String>,
    /// At most so many.
    pub limit: Option<usize>,
    /// Only in these places.
    pub r#in: Option<String>,
}

/// What to sum up.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct UsageQuery {
    /// `day`, `week`, `month`, `session`, `project`, `model` or `block`.
    pub by: Option<String>,
    /// Also told apart by these.
    pub split: Option<String>,
    /// Only messages since then.
    pub since: Option<String>,
    /// Only messages until then.
    pub until: Option<String>,
    /// Only this project.
    pub project: Option<String>,
}
