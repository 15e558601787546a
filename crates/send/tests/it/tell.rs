//! Reads a transcript and hands its traces to a test.

use serde_json::Value;
use unspool_model::log::Log;
use unspool_model::price::Prices;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::agents::SubAgentSession;
use unspool_send::spans::{
    SessionTurnTraces, SpanTextLocation, TraceFacts, TraceInput, TraceOptions, TraceSpan,
    TraceSubAgent, TurnTrace,
};
use unspool_testkit::script;

/// A transcript in memory, with those of its sub-agents.
pub struct Told {
    pub log: Log,
    pub session: Session,
    pub agents: Vec<Agent>,
    pub facts: TraceFacts,
}

/// A sub-agent's file.
pub struct Agent {
    pub id: String,
    pub log: Log,
    pub session: Session,
    pub kind: Option<String>,
    pub call: Option<String>,
}

impl Told {
    /// The session of a script.
    pub fn script(text: &str) -> Told {
        Told::bytes(script::jsonl(text))
    }

    /// The session of these lines.
    pub fn lines(lines: &[&str]) -> Told {
        Told::bytes(lines.join("\n") + "\n")
    }

    /// The session of these bytes.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Told {
        let log = Log::new(bytes);
        Told {
            session: Session::from_log(&log, TranscriptRole::Main),
            log,
            agents: Vec::new(),
            facts: TraceFacts {
                session: "the-session".to_owned(),
                ..TraceFacts::default()
            },
        }
    }

    /// With a sub-agent's file.
    pub fn agent(mut self, id: &str, call: Option<&str>, bytes: impl Into<Vec<u8>>) -> Told {
        let log = Log::new(bytes);
        self.agents.push(Agent {
            id: id.to_owned(),
            session: Session::from_log(&log, TranscriptRole::Agent),
            log,
            kind: Some("Explore".to_owned()),
            call: call.map(str::to_owned),
        });
        self
    }

    /// Its traces.
    pub fn traces(&self) -> SessionTurnTraces<'_> {
        self.traces_by(TraceOptions::default())
    }

    /// Its traces, told in this way.
    pub fn traces_by<'a>(&'a self, options: TraceOptions<'a>) -> SessionTurnTraces<'a> {
        let agents = self.agents.iter().map(|agent| TraceSubAgent {
            file: SubAgentSession {
                id: &agent.id,
                session: &agent.session,
                kind: agent.kind.as_deref(),
                description: None,
                call: agent.call.as_deref(),
                source: Some(&agent.log),
                run: None,
            },
            source: &agent.log,
        });
        let material = TraceInput {
            session: &self.session,
            source: &self.log,
            agents: agents.collect(),
            runs: &[],
            prices: Prices::bundled(),
        };
        SessionTurnTraces::new(material, &self.facts, options)
    }

    /// All traces at once.
    pub fn all(&self) -> Vec<TurnTrace> {
        self.traces().iter().collect()
    }

    /// The only trace.
    pub fn only(&self) -> TurnTrace {
        let mut all = self.all();
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    /// The trees of all turns, a span a line: kind, name, level, input and output.
    pub fn tree(&self) -> String {
        let traces = self.traces();
        traces.iter().map(|trace| tree(&traces, &trace)).collect()
    }
}

/// A place as JSON, or as a text.
pub fn said(traces: &SessionTurnTraces<'_>, place: &SpanTextLocation) -> Option<Value> {
    let words = traces.read(place);
    let object = words.object()?;
    Some(serde_json::from_str(&object).unwrap_or_else(|_| Value::from(&*object)))
}

/// The tree of a trace, a span a line.
pub fn tree(traces: &SessionTurnTraces<'_>, trace: &TurnTrace) -> String {
    let mut out = String::new();
    let mut stack = vec![(&trace.spans[0], 0)];
    while let Some((span, depth)) = stack.pop() {
        out.push_str(&format!(
            "{}{} {}",
            "  ".repeat(depth),
            span.kind.name(),
            span.name
        ));
        if span.level.name() != "DEFAULT" {
            out.push_str(&format!(" {}", span.level.name()));
        }
        let text = |place: &SpanTextLocation| said(traces, place).map(|said| said.to_string());
        out.extend(text(&span.input).map(|input| format!(" < {input}")));
        out.extend(text(&span.output).map(|output| format!(" > {output}")));
        out.push('\n');
        let below = trace
            .spans
            .iter()
            .filter(|other| other.parent == Some(span.id));
        let below: Vec<&TraceSpan> = below.collect();
        stack.extend(below.into_iter().rev().map(|span| (span, depth + 1)));
    }
    out
}

/// The first span with this name.
pub fn span<'a>(trace: &'a TurnTrace, name: &str) -> &'a TraceSpan {
    let found = trace.spans.iter().find(|span| span.name == name);
    found.unwrap_or_else(|| panic!("no span {name}"))
}
