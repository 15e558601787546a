//! A session as traces, one per turn, made when they are asked for.
//!
//! A [`Trace`] is light: ids, names, times, tokens, and where its texts are. The texts are
//! read when a span is written ([`Traces::read`]), one at a time.

use unspool_model::edit::redact::Redactor;
use unspool_model::log::Source;
use unspool_model::price::Prices;
use unspool_model::session::Session;
use unspool_model::time::Time;
use unspool_model::usage::Usage;
use unspool_model::view::agents::AgentFile;

use crate::id::{Digest, SpanId, TraceId};

/// A session with everything that tells about it.
#[derive(Clone)]
pub struct Material<'a> {
    /// What its lines mean.
    pub session: &'a Session,
    /// Where its texts are.
    pub source: &'a dyn Source,
    /// The files of its sub-agents.
    pub agents: Vec<SubAgent<'a>>,
    /// What models cost.
    pub prices: &'a Prices,
}

/// A sub-agent's own file.
#[derive(Clone)]
pub struct SubAgent<'a> {
    /// Its lines and what its side file says.
    pub file: AgentFile<'a>,
    /// Where its texts are.
    pub source: &'a dyn Source,
}

/// What the transcript does not know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The id of the session. Of a turn that several files hold, that of the oldest one:
    /// see [`Trace::session`].
    pub session: String,
    /// The machine.
    pub host: Option<String>,
    /// The person.
    pub user: Option<String>,
    /// `langfuse.environment`.
    pub environment: Option<String>,
    /// `langfuse.release`.
    pub release: Option<String>,
    /// `langfuse.trace.tags`.
    pub tags: Vec<String>,
    /// The title of the session.
    pub title: Option<String>,
}

/// What the caller may choose.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Send what the model thought.
    pub thinking: bool,
    /// Cut every text behind so many characters, with a note.
    pub max_chars: Option<usize>,
    /// What takes secrets out of texts; `None` to send them as they are.
    pub redact: Option<&'a Redactor>,
}

/// How far a turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It goes on, or nobody has answered yet: it waits.
    Open,
    /// It is over.
    Complete,
}

/// One turn.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Its id.
    pub id: TraceId,
    /// The number of the turn in its file, from 1.
    pub n: usize,
    /// Whether it may be sent.
    pub state: State,
    /// What it holds: a turn that was sent under another digest has changed.
    pub digest: Digest,
    /// The session it belongs to; to be set to that of the oldest file that holds the turn.
    pub session: String,
    /// When it was asked.
    pub start: Option<Time>,
    /// When it was over.
    pub end: Option<Time>,
    /// What the prompt's line tells, and what the caller knows.
    pub metadata: Vec<(&'static str, String)>,
    /// Its spans: the root first, every parent before its children.
    pub spans: Vec<Span>,
}

/// What a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A turn, or a sub-agent.
    Agent,
    /// One message of a model.
    Generation,
    /// A tool call.
    Tool,
    /// Something that happened at a point in time.
    Event,
}

/// How well it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Of little interest.
    Debug,
    /// As usual.
    Default,
    /// Something to look at.
    Warning,
    /// It failed.
    Error,
}

/// One span.
#[derive(Clone, Debug)]
pub struct Span {
    /// Its id.
    pub id: SpanId,
    /// The span it stands under; `None` for the root.
    pub parent: Option<SpanId>,
    /// What it is.
    pub kind: Kind,
    /// `Turn N`, a model, a tool, a kind of agent, or what happened.
    pub name: String,
    /// When it began.
    pub start: Option<Time>,
    /// When it was over, never before it began.
    pub end: Option<Time>,
    /// How well it went.
    pub level: Level,
    /// Tokens, if a line said.
    pub usage: Option<Usage>,
    /// What they cost, if that is known.
    pub cost: Option<()>,
}

/// The traces of a session.
pub struct Traces<'a> {
    material: Material<'a>,
}

impl<'a> Traces<'a> {
    /// Looks over the session once.
    pub fn new(material: Material<'a>, facts: &'a Facts, options: Options<'a>) -> Traces<'a> {
        let _ = (facts, options);
        Traces { material }
    }

    /// How many turns there are.
    pub fn len(&self) -> usize {
        self.material.session.turns.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
