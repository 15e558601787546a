//! What is asked and what is answered, without a word about HTTP.
//!
//! Whoever knows sessions implements [`Answers`]; its methods may take their time and are
//! called on threads that may.

use std::io;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use unspool_model::edit::redact::Redactor;
use unspool_model::secrets::Secrets;
use unspool_show::wire::session::SessionRow;

/// Knows sessions.
pub trait Answers: Send + Sync + 'static {
    /// The rows that fit, the latest first, of all that are known; `scanned` says whether all
    /// files were looked at.
    fn sessions(
        &self,
        ask: &SessionsAsk,
        rows: Vec<Arc<SessionRow>>,
        scanned: bool,
    ) -> Result<Answer, Refused>;
    /// One session; its row, if it is known.
    fn session(&self, id: &str, row: Option<Arc<SessionRow>>) -> Result<Answer, Refused>;
    /// Its turns.
    fn turns(&self, id: &str, ask: &TurnsAsk) -> Result<Answer, Refused>;
    /// One turn with its items.
    fn turn(&self, id: &str, n: usize, ask: &TurnsAsk) -> Result<Answer, Refused>;
    /// A range of its items.
    fn items(&self, id: &str, ask: &ItemsAsk) -> Result<Answer, Refused>;
    /// One item, whole.
    fn item(&self, id: &str, i: usize, ask: &ItemsAsk) -> Result<Answer, Refused>;
    /// A line of its file.
    fn raw(&self, id: &str, line: u32, thread: &Thread) -> Result<Answer, Refused>;
    /// An image on a line.
    fn image(&self, id: &str, line: u32, k: usize, thread: &Thread) -> Result<Answer, Refused>;
    /// Where a text stands in it.
    fn find(&self, id: &str, ask: &FindAsk) -> Result<Answer, Refused>;
    /// Its turns, summed up for a strip.
    fn timeline(&self, id: &str, ask: &TimelineAsk) -> Result<Answer, Refused>;
    /// What fills its context.
    fn context(&self, id: &str, ask: &ContextAsk) -> Result<Answer, Refused>;
    /// Its branches.
    fn tree(&self, id: &str) -> Result<Answer, Refused>;
    /// What a trimmed copy would be.
    fn trim(&self, id: &str, ask: &TrimAsk) -> Result<Answer, Refused>;
    /// Writes it as a document.
    fn export(&self, id: &str, ask: &ExportAsk, out: &mut dyn io::Write) -> Result<(), Refused>;
    /// Text in all sessions.
    fn search(&self, ask: &SearchAsk) -> Result<Answer, Refused>;
    /// Tokens and cost.
    fn usage(&self, ask: &UsageAsk) -> Result<Answer, Refused>;
    /// Takes in what a hook was told.
    fn hook(&self, event: &[u8]) -> Result<(), Refused>;
}

/// What is answered.
#[derive(Debug)]
pub struct Answer {
    /// What it is.
    pub kind: Kind,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Remarks beside it: names and values of headers.
    pub remarks: Vec<(&'static str, String)>,
}

/// What an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// JSON.
    Json,
    /// An image of this type.
    Image(&'static str),
}

/// Names of files, branches and tools may hold tokens; nothing of the kind leaves.
pub(crate) fn without_tokens(json: Vec<u8>) -> Vec<u8> {
    static MASKER: OnceLock<Redactor> = OnceLock::new();
    let masker = MASKER.get_or_init(|| Redactor::masking(Secrets::forms().clone()));
    masker.value(&json).map_or(json, |masked| masked.bytes)
}

impl Answer {
    /// Something as JSON.
    pub fn json(value: &impl Serialize) -> Result<Answer, Refused> {
        let bytes = serde_json::to_vec(value).map_err(Refused::failed)?;
        let bytes = without_tokens(bytes);
        Ok(Answer {
            kind: Kind::Json,
            bytes,
            remarks: Vec::new(),
        })
    }

    /// With a remark beside it.
    pub fn with(mut self, name: &'static str, value: impl ToString) -> Answer {
        self.remarks.push((name, value.to_string()));
        self
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub struct Refused {
    /// The status of HTTP.
    pub status: u16,
    /// What is wrong.
    pub error: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Refused {
    /// There is no such thing.
    pub fn absent(error: impl ToString) -> Refused {
        Refused::new(404, error)
    }

    /// The question makes no sense.
    pub fn bad(error: impl ToString) -> Refused {
        Refused::new(400, error)
    }

    /// Something failed here.
    pub fn failed(error: impl ToString) -> Refused {
        Refused::new(500, error)
    }

    /// Any other reason.
    pub fn new(status: u16, error: impl ToString) -> Refused {
        Refused {
            status,
            error: error.to_string(),
            hint: None,
        }
    }

    /// Says what to do about it.
    pub fn hint(mut self, hint: impl ToString) -> Refused {
        self.hint = Some(hint.to_string());
        self
    }
}

/// Which sessions.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct SessionsAsk {
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
pub struct Thread {
    /// That of this sub-agent.
    pub agent: Option<String>,
    /// Only this branch, given by its last line.
    pub branch: Option<String>,
}

/// Which turns.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct TurnsAsk {
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
pub struct ItemsAsk {
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
pub struct FindAsk {
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
pub struct TimelineAsk {
    /// At most so many parts.
    pub buckets: Option<usize>,
    /// Of this sub-agent.
    pub agent: Option<String>,
    /// Only this branch, given by its last line.
    pub branch: Option<String>,
}

/// How much of a context.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ContextAsk {
    /// How many of the largest pieces.
    pub most: Option<usize>,
}

/// How to trim.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct TrimAsk {
    /// As this preset says.
    pub preset: Option<String>,
}

/// How to write a document.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ExportAsk {
    /// `html`, `md`, `txt`, `json`, `jsonl` or `messages`.
    pub to: Option<String>,
    /// `full`, `high`, `low`, `minimal` or `prompts`.
    pub detail: Option<String>,
}

/// What to search for.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct SearchAsk {
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
pub struct UsageAsk {
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
