//! A session as traces, one per turn, made when they are asked for.
//!
//! A [`TurnTrace`] is light: ids, names, times, tokens, and where its texts are. The texts are
//! read when a span is written ([`SessionTurnTraces::read`]), one at a time, so neither a long session
//! nor a long turn has to fit into memory.
//!
//! Every rule about sessions is the model's; this is about how they are told: which span
//! stands under which, what it is called, what its id is made of.

mod media;
mod span_text_rules;
mod span_texts;
mod trace_builder;
mod trace_files;

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use serde_json::Value;
use unspool_model::edit::redact::Redactor;
use unspool_model::log::TranscriptSource;
use unspool_model::price::{CostShares, Prices};
use unspool_model::secrets::SecretFinder;
use unspool_model::session::{Index, Session};
use unspool_model::time::Time;
use unspool_model::usage::Usage;
use unspool_model::view::agents::{self, AgentRow, SubAgentSession};
use unspool_model::view::turns::{self, TurnRow};
use unspool_model::view::workflow::WorkflowRun;

use crate::trace_id::{SpanId, TraceDigest, TraceId};
pub use span_text_rules::SpanTextRules;
pub use span_texts::{SpanText, SpanTextContent, SpanTextLocation, SpanTextPart};
use trace_builder::TraceIdSource;
use trace_files::TraceFile;

/// A session with everything that tells about it.
#[derive(Clone)]
pub struct TraceInput<'a> {
    /// What its lines mean.
    pub session: &'a Session,
    /// Where its texts are.
    pub source: &'a dyn TranscriptSource,
    /// The files of its sub-agents.
    pub agents: Vec<TraceSubAgent<'a>>,
    /// Its workflow runs.
    pub runs: &'a [WorkflowRun],
    /// What models cost.
    pub prices: &'a Prices,
}

/// A sub-agent's own file.
#[derive(Clone)]
pub struct TraceSubAgent<'a> {
    /// Its lines and what its side file says.
    pub file: SubAgentSession<'a>,
    /// Where its texts are.
    pub source: &'a dyn TranscriptSource,
}

/// What the transcript does not know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceFacts {
    /// The id of the session. Of a turn that several files hold, that of the oldest one:
    /// see [`TurnTrace::session`].
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
pub struct TraceOptions<'a> {
    /// Send what the model thought.
    pub thinking: bool,
    /// Cut every text behind so many characters, with a note.
    pub max_chars: Option<usize>,
    /// What takes secrets out of texts; `None` to send them as they are.
    pub redact: Option<&'a Redactor>,
}

impl Default for TraceOptions<'_> {
    fn default() -> Self {
        static MASKER: OnceLock<Redactor> = OnceLock::new();
        let masker = MASKER.get_or_init(|| Redactor::masking(SecretFinder::standard().clone()));
        TraceOptions {
            thinking: false,
            max_chars: None,
            redact: Some(masker),
        }
    }
}

/// How far a turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceState {
    /// It goes on, or nobody has answered yet: it waits.
    Open,
    /// It is over.
    Complete,
}

/// One turn.
#[derive(Clone, Debug)]
pub struct TurnTrace {
    /// Its id.
    pub id: TraceId,
    /// The id it had before anybody answered, if that is another: see
    /// [`SessionTurnTraces::turn_unanswered`].
    pub unanswered: Option<TraceId>,
    /// The number of the turn in its file, from 1; 0 for what stands before the first.
    pub n: usize,
    /// Whether it may be sent.
    pub state: TraceState,
    /// What it holds: a turn that was sent under another digest has changed.
    pub digest: TraceDigest,
    /// The session it belongs to; to be set to that of the oldest file that holds the turn.
    pub session: String,
    /// The uuid of its prompt's line.
    pub prompt: Option<String>,
    /// When it was asked.
    pub start: Option<Time>,
    /// When it was over.
    pub end: Option<Time>,
    /// The last line of the file that belongs to it.
    pub last_line: u32,
    /// What the prompt's line tells, and what the caller knows.
    pub metadata: Vec<(&'static str, Value)>,
    /// Its spans: the root first, every parent before its children.
    pub spans: Vec<TraceSpan>,
}

impl TurnTrace {
    /// What it is called.
    pub fn name(&self) -> String {
        format!("Turn {}", self.n)
    }

    /// Leaves out spans that stand in another trace: a message that two files hold counts once.
    /// What stands below them goes up.
    pub fn leave_out(&mut self, elsewhere: &HashSet<SpanId>) {
        if elsewhere.is_empty() {
            return;
        }
        let mut gone: HashMap<SpanId, Option<SpanId>> = HashMap::new();
        self.spans.retain_mut(|span| {
            // Every parent stands before its children.
            if let Some(above) = span.parent.and_then(|parent| gone.get(&parent)) {
                span.parent = *above;
            }
            let leaves = span.parent.is_some() && elsewhere.contains(&span.id);
            if leaves {
                gone.insert(span.id, span.parent);
            }
            !leaves
        });
    }
}

/// What a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceSpanKind {
    /// A turn, or a sub-agent.
    Agent,
    /// One message of a model.
    Generation,
    /// A tool call.
    Tool,
    /// Something that happened at a point in time.
    Event,
}

impl TraceSpanKind {
    /// `langfuse.observation.type`.
    pub fn name(self) -> &'static str {
        match self {
            TraceSpanKind::Agent => "agent",
            TraceSpanKind::Generation => "generation",
            TraceSpanKind::Tool => "tool",
            TraceSpanKind::Event => "event",
        }
    }
}

/// How well it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TraceSpanLevel {
    /// Of little interest.
    Debug,
    /// As usual.
    Default,
    /// Something to look at.
    Warning,
    /// It failed.
    Error,
}

impl TraceSpanLevel {
    /// `langfuse.observation.level`.
    pub fn name(self) -> &'static str {
        match self {
            TraceSpanLevel::Debug => "DEBUG",
            TraceSpanLevel::Default => "DEFAULT",
            TraceSpanLevel::Warning => "WARNING",
            TraceSpanLevel::Error => "ERROR",
        }
    }
}

/// One span.
#[derive(Clone, Debug)]
pub struct TraceSpan {
    /// Its id.
    pub id: SpanId,
    /// The span it stands under; `None` for the root.
    pub parent: Option<SpanId>,
    /// What it is.
    pub kind: TraceSpanKind,
    /// `Turn N`, a model, a tool, a kind of agent, or what happened.
    pub name: String,
    /// When it began.
    pub start: Option<Time>,
    /// When it was over, never before it began.
    pub end: Option<Time>,
    /// How well it went.
    pub level: TraceSpanLevel,
    /// Why, where that needs no look into the file.
    pub status: Option<&'static str>,
    /// What it was given.
    pub input: SpanTextLocation,
    /// What came of it.
    pub output: SpanTextLocation,
    /// The id that the transcript gives it: of the message, the call or the agent.
    pub origin: Option<String>,
    /// Tokens, if a line said.
    pub usage: Option<Usage>,
    /// What they cost, if that is known.
    pub cost: Option<CostShares>,
    /// Why the model stopped.
    pub stop: Option<String>,
    /// The ids and tools of the calls of a generation.
    pub calls: Vec<(String, String)>,
    /// What else there is to know.
    pub metadata: Vec<(&'static str, Value)>,
}

/// The traces of a session.
pub struct SessionTurnTraces<'a> {
    files: Vec<TraceFile<'a>>,
    /// How many turns stand before those of the session as it was read.
    before: usize,
    prices: &'a Prices,
    facts: &'a TraceFacts,
    options: TraceOptions<'a>,
    rows: Vec<TurnRow>,
    last_lines: Vec<u32>,
    agents: Vec<AgentRow>,
    /// The sub-agents that a call started.
    started: HashMap<String, Vec<usize>>,
    /// Sub-agents nobody is known to have started, by the turn in which they began.
    stray: HashMap<usize, Vec<usize>>,
    /// Copies of messages of sub-agents whose files are gone, by the call that started them.
    copies: HashMap<&'a str, Vec<Index>>,
}

impl<'a> SessionTurnTraces<'a> {
    /// Looks over the session once.
    pub fn new(
        material: TraceInput<'a>,
        facts: &'a TraceFacts,
        options: TraceOptions<'a>,
    ) -> SessionTurnTraces<'a> {
        let TraceInput {
            session,
            source,
            agents,
            runs,
            prices,
        } = material;
        let rows = turns::outline(session, turns::TurnOptions::default());
        let listed: Vec<SubAgentSession<'_>> =
            agents.iter().map(|agent| agent.file.clone()).collect();
        let agent_rows = agents::agents(session, source, &listed, runs);
        let mut files = vec![TraceFile::new(session, source)];
        files.extend(
            agents
                .iter()
                .map(|agent| TraceFile::new(agent.file.session, agent.source)),
        );
        let mut traces = SessionTurnTraces {
            last_lines: last_lines(session, &files[0]),
            files,
            before: 0,
            prices,
            facts,
            options,
            rows,
            agents: agent_rows,
            started: HashMap::new(),
            stray: HashMap::new(),
            copies: copies(session),
        };
        traces.place_agents();
        if traces.rows.is_empty() && !traces.stray.is_empty() {
            traces.rows.extend(turns::silent(session));
        }
        traces
    }

    /// The same of a session that was read from behind so many turns on.
    pub fn behind(self, turns: usize) -> SessionTurnTraces<'a> {
        SessionTurnTraces {
            before: turns,
            ..self
        }
    }

    /// How many turns there are, and what stands before the first if a model spoke there.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The trace of turn `n`, from 1; 0 is what stands before the first.
    pub fn turn(&self, n: usize) -> Option<TurnTrace> {
        Some(trace_builder::trace(
            self,
            self.row(n)?,
            TraceIdSource::Reply,
        ))
    }

    /// The same under the id it had before anybody answered: whoever sent it then goes on
    /// under that id, or there would be two of them.
    pub fn turn_unanswered(&self, n: usize) -> Option<TurnTrace> {
        Some(trace_builder::trace(
            self,
            self.row(n)?,
            TraceIdSource::Prompt,
        ))
    }

    fn row(&self, n: usize) -> Option<&TurnRow> {
        let first = self.number(self.rows.first()?);
        self.rows.get(n.checked_sub(first)?)
    }

    /// The number of a turn in its file.
    fn number(&self, row: &TurnRow) -> usize {
        self.before + row.n
    }

    /// All traces in order, each made when it is asked for.
    pub fn iter(&self) -> impl Iterator<Item = TurnTrace> + '_ {
        self.rows
            .iter()
            .map(|row| trace_builder::trace(self, row, TraceIdSource::Reply))
    }

    /// The texts at a place, as they may leave the machine.
    pub fn read(&self, place: &SpanTextLocation) -> SpanText {
        self.read_as(place, &self.shape())
    }

    /// The same, shaped otherwise.
    pub fn read_as(&self, place: &SpanTextLocation, shape: &SpanTextRules<'_>) -> SpanText {
        span_texts::read(self, place, shape)
    }

    /// How texts are shaped before they leave.
    pub fn shape(&self) -> SpanTextRules<'a> {
        SpanTextRules {
            redact: self.options.redact,
            max_chars: self.options.max_chars,
            thinking: self.options.thinking,
        }
    }

    /// What the caller knows.
    pub fn facts(&self) -> &'a TraceFacts {
        self.facts
    }

    /// Whether the sub-agents belong to the session as it was read, and not to what stands
    /// before: each was started by one of its calls, and says nothing older than the first turn.
    pub fn has_own_agents(&self) -> bool {
        let start = self.rows.first().and_then(|row| row.at);
        let mut files = self.files[1..].iter();
        let is_new = |file: &TraceFile<'_>| match (start, file.session.first) {
            (Some(start), Some(first)) => start <= first,
            _ => false,
        };
        self.stray.is_empty() && files.all(is_new)
    }

    /// The sub-agents that stand in a turn, as places in the list of files.
    pub fn agents_in(&self, n: usize) -> Vec<usize> {
        let trace = self.turn(n);
        let spans = trace.iter().flat_map(|trace| &trace.spans);
        let places = spans.flat_map(|span| [&span.input, &span.output]);
        let mut files: Vec<usize> = places
            .filter_map(|place| place.file()?.checked_sub(1))
            .collect();
        files.sort_unstable();
        files.dedup();
        files
    }

    /// Notes which sub-agents stand under which call, and which under none.
    fn place_agents(&mut self) {
        // A sub-agent that started this one is named only if it made the call.
        let known = |row: &AgentRow, call: &str| {
            row.parent.is_some() || self.files[0].session.find_call(call).is_some()
        };
        for (at, row) in self.agents.iter().enumerate() {
            let copied = |call: &str| self.copies.contains_key(call);
            let gone = row.file.is_none() && row.thread.is_none();
            if gone && !row.call.as_deref().is_some_and(copied) {
                continue;
            }
            match row.call.as_deref().filter(|call| known(row, call)) {
                Some(call) => self.started.entry(call.to_owned()).or_default().push(at),
                None => {
                    let turn = self.turn_at(self.began(row));
                    self.stray.entry(turn).or_default().push(at);
                }
            }
        }
    }

    /// The first time that a sub-agent's lines have.
    fn began(&self, row: &AgentRow) -> Option<Time> {
        match (row.file, row.thread) {
            (Some(file), _) => self.files[file + 1].session.first,
            (None, Some(thread)) => {
                let session = self.files[0].session;
                let root = session.threads[thread as usize].root?;
                session.records[root as usize].at()
            }
            (None, None) => None,
        }
    }

    /// The number of the turn that was going on then; the last one if that is not known.
    fn turn_at(&self, at: Option<Time>) -> usize {
        let begun = |row: &&TurnRow| match (row.at, at) {
            (Some(turn), Some(at)) => turn <= at,
            _ => true,
        };
        let row = self.rows.iter().rev().find(begun);
        row.or(self.rows.first()).map_or(0, |row| row.n)
    }
}

/// Copies of messages by the call during which they were written.
fn copies(session: &Session) -> HashMap<&str, Vec<Index>> {
    let mut all: HashMap<&str, Vec<Index>> = HashMap::new();
    for (at, call) in (0..).zip(&session.copy_calls) {
        if let Some(call) = call {
            all.entry(call).or_default().push(at);
        }
    }
    all
}

/// The last line of each turn, by its number.
fn last_lines(session: &Session, file: &TraceFile<'_>) -> Vec<u32> {
    let mut last = vec![0; session.turns.len() + 1];
    for (record, place) in session.records.iter().zip(&file.places) {
        if record.thread == 0 {
            let line = &mut last[place.map_or(0, |place| place as usize + 1)];
            *line = record.line.max(*line);
        }
    }
    last
}
