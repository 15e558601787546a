//! One turn as a tree of spans.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Value, json};
use unspool_model::agent_kind::AgentKind;
use unspool_model::price::Prices;
use unspool_model::session::{Index, Message, Session, ToolCall};
use unspool_model::time::Time;
use unspool_model::view::agents::AgentRow;
use unspool_model::view::events::{self, SessionEvent, SessionEventKind};
use unspool_model::view::turns::{self, TurnRow};

use super::span_texts::prompt_metadata;
use super::trace_files::{ThreadExtent, TraceFile};
use super::{
    SessionTurnTraces, SpanTextLocation, TraceSpan, TraceSpanKind, TraceSpanLevel, TraceState,
    TurnTrace,
};
use crate::trace_id::{SpanId, TraceDigest, TraceId};

/// Sub-agents of sub-agents are nested so deep; beyond that they stand side by side.
const DEPTH: usize = 64;

/// What a turn is named by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TraceIdSource {
    /// Its first reply, if there is one.
    Reply,
    /// Its prompt, as long as nobody answered.
    Prompt,
}

/// Ids of calls that begin so are given once. Services that speak in its place may count theirs
/// anew in every session (`Read:0`), and receivers that keep one span per id would keep only the
/// last: such an id holds only within its message.
const OF_THE_API: &str = "toolu_";

/// The trace of a turn.
pub(super) fn trace(
    traces: &SessionTurnTraces<'_>,
    row: &TurnRow,
    name: TraceIdSource,
) -> TurnTrace {
    let file = &traces.files[0];
    let n = traces.number(row);
    let reply = reply_seed(file, row).filter(|_| name == TraceIdSource::Reply);
    let unanswered = reply
        .is_some()
        .then(|| TraceId::of(&prompt_seed(file, row, n)));
    let seed = reply.unwrap_or_else(|| prompt_seed(file, row, n));
    let mut build = TraceBuilder {
        traces,
        seed: &seed,
        spans: Vec::new(),
        seen: HashSet::new(),
        marks: blake3::Hasher::new(),
    };
    build.turn(row);
    // Told with the trace, and changed by lines that are not the turn's own.
    let told = [row.live, row.interrupted, row.compacted].map(u8::from);
    build.marks.update(&told);
    let digest = build.digest();
    let spans = build.spans;
    let prompt = &file.session.records[row.record as usize];
    TurnTrace {
        id: TraceId::of(&seed),
        unanswered,
        n,
        state: if row.over {
            TraceState::Complete
        } else {
            TraceState::Open
        },
        digest,
        session: traces.facts.session.clone(),
        prompt: prompt.uuid.as_ref().map(ToString::to_string),
        start: spans.first().and_then(|root| root.start),
        end: spans.first().and_then(|root| root.end),
        last_line: traces.last_lines[row.n],
        metadata: metadata(traces, row),
        spans,
    }
}

/// What the ids of a turn are made of: the id of its first reply.
fn reply_seed(file: &TraceFile<'_>, row: &TurnRow) -> Option<String> {
    let session = file.session;
    let reply = &session.messages[*row.messages.first()? as usize];
    session.message_id(reply).map(str::to_owned)
}

/// What they are made of while nobody answered: the uuid of its prompt.
fn prompt_seed(file: &TraceFile<'_>, row: &TurnRow, n: usize) -> String {
    let session = file.session;
    let prompt = &session.records[row.record as usize];
    let uuid = prompt.uuid.as_ref().map(ToString::to_string);
    uuid.unwrap_or_else(|| {
        // Not even that: what was asked, and when.
        let blocks = session.blocks_of(prompt).iter();
        let prints: Vec<String> = blocks.map(|block| block.print.to_string()).collect();
        let at = prompt.at().map_or(0, |at| at.0);
        format!("turn {n} {at} {}", prints.join(" "))
    })
}

/// What is known of the turn as a whole.
fn metadata(traces: &SessionTurnTraces<'_>, row: &TurnRow) -> Vec<(&'static str, Value)> {
    let facts = traces.facts;
    let shape = traces.shape();
    let mut all = vec![
        ("source", json!("claude-code")),
        ("turn_number", json!(traces.number(row))),
    ];
    all.extend(prompt_metadata(&traces.files[0], row.record, &shape));
    all.push(("kind", json!(row.kind.name())));
    let told = [
        ("host", &facts.host),
        ("user", &facts.user),
        ("title", &facts.title),
    ];
    for (key, text) in told {
        all.extend(text.as_deref().map(|text| (key, json!(shape.note(text)))));
    }
    let marks = [
        ("interrupted", row.interrupted),
        ("compacted", row.compacted),
        ("rewound", !row.live),
    ];
    all.extend(
        marks
            .into_iter()
            .filter(|mark| mark.1)
            .map(|(key, _)| (key, json!(true))),
    );
    all
}

/// A trace while it is made.
struct TraceBuilder<'t, 'a> {
    traces: &'t SessionTurnTraces<'a>,
    seed: &'t str,
    spans: Vec<TraceSpan>,
    seen: HashSet<SpanId>,
    /// What the texts are, without reading them.
    marks: blake3::Hasher,
}

/// A conversation to be told under a span.
struct SpanConversation<'m> {
    file: usize,
    messages: &'m [Index],
    events: &'m [SessionEvent],
    /// The line that opened it.
    prompt: Option<Index>,
    depth: usize,
}

impl<'t, 'a> TraceBuilder<'t, 'a> {
    fn file(&self, at: usize) -> &'t TraceFile<'a> {
        &self.traces.files[at]
    }

    /// The root and everything under it.
    fn turn(&mut self, row: &TurnRow) {
        let file = self.file(0);
        let session = file.session;
        let mut events = Vec::new();
        // What stands before the first turn goes with it, unless it is told by itself.
        if row.n == 1 && self.traces.rows[0].n == 1 {
            events.extend_from_slice(file.events_of_turn(0));
        }
        events.extend_from_slice(file.events_of_turn(row.n as Index));
        let (level, status) = how(session, row, &events);
        let end = match (row.at, row.duration_ms) {
            (Some(at), Some(took)) => Some(after(at, took)),
            _ => row.ended,
        };
        let last = turns::last_said(session, &row.messages);
        let root = SpanId::of(&format!("turn:{}", self.seed));
        self.add(TraceSpan {
            level,
            status,
            start: row.at,
            end,
            input: SpanTextLocation::Prompt {
                file: 0,
                record: row.record,
            },
            output: last.map_or(SpanTextLocation::None, |message| SpanTextLocation::Reply {
                file: 0,
                message,
            }),
            ..TraceSpan::new(
                root,
                None,
                TraceSpanKind::Agent,
                format!("Turn {}", self.traces.number(row)),
            )
        });
        self.talk(
            root,
            &SpanConversation {
                file: 0,
                messages: &row.messages,
                events: &events,
                prompt: Some(row.record),
                depth: 0,
            },
        );
        let stray = self.traces.stray.get(&row.n);
        for &agent in stray.into_iter().flatten() {
            self.agent(root, agent, 1);
        }
    }

    /// Generations with their calls, and events, in the order of the file.
    fn talk(&mut self, parent: SpanId, talk: &SpanConversation<'_>) {
        let session = self.file(talk.file).session;
        let mut events = talk.events.iter().peekable();
        let mut first = talk.prompt;
        for &message in talk.messages {
            let said = &session.messages[message as usize];
            let begins = said.records.first().copied().unwrap_or_default();
            while let Some(event) = events.next_if(|event| event.record < begins) {
                self.event(parent, talk.file, event);
            }
            // A sub-agent that was forked repeats what its session said before.
            if said.synthetic || (talk.file > 0 && self.is_said_by_session(talk.file, said)) {
                continue;
            }
            self.generation(parent, talk, message, first.take());
        }
        for event in events {
            self.event(parent, talk.file, event);
        }
    }

    fn is_said_by_session(&self, file: usize, message: &Message) -> bool {
        let session = self.file(0).session;
        let id = self.file(file).session.message_id(message);
        let twin = id.and_then(|id| session.find_message(id));
        twin.is_some_and(|twin| session.messages[twin as usize].thread == 0)
    }

    fn generation(
        &mut self,
        parent: SpanId,
        talk: &SpanConversation<'_>,
        message: Index,
        prompt: Option<Index>,
    ) {
        let file = self.file(talk.file);
        let session = file.session;
        let said = &session.messages[message as usize];
        let id = match session.message_id(said) {
            Some(id) => SpanId::of(id),
            None => self.own_id("message", line_id(session, said.records.first())),
        };
        let calls: Vec<Index> = file.calls_of(message).collect();
        let tool = |call: &ToolCall| session.text(call.tool).to_owned();
        let called = calls.iter().map(|&at| &session.calls[at as usize]);
        let failed = said
            .records
            .iter()
            .any(|&at| session.records[at as usize].is_api_error());
        let model = said.model().map(|model| session.text(model));
        let start = file.asked[message as usize];
        let added = self.add(TraceSpan {
            start,
            end: said.last(),
            level: if failed {
                TraceSpanLevel::Error
            } else {
                TraceSpanLevel::Default
            },
            input: prompt.map_or(SpanTextLocation::None, |record| SpanTextLocation::Prompt {
                file: talk.file,
                record,
            }),
            output: SpanTextLocation::Reply {
                file: talk.file,
                message,
            },
            origin: session.message_id(said).map(str::to_owned),
            usage: said.has_usage().then(|| session.usage_of(said)),
            cost: shares(self.traces.prices, model, session, said),
            stop: said.stop().map(|stop| session.text(stop).to_owned()),
            calls: called
                .map(|call| (session.call_id(call).to_owned(), tool(call)))
                .collect(),
            metadata: vec![("tool_count", json!(calls.len()))],
            ..TraceSpan::new(
                id,
                Some(parent),
                TraceSpanKind::Generation,
                model.unwrap_or("unknown").to_owned(),
            )
        });
        if !added {
            return;
        }
        self.mark_reply(session, said);
        let message = session.message_id(said);
        for call in calls {
            self.call(id, talk, message, call);
        }
    }

    fn call(
        &mut self,
        parent: SpanId,
        talk: &SpanConversation<'_>,
        message: Option<&str>,
        at: Index,
    ) {
        let session = self.file(talk.file).session;
        let call = &session.calls[at as usize];
        let id = match session.call_id(call) {
            "" => self.own_id("call", None),
            id if id.starts_with(OF_THE_API) => SpanId::of(id),
            id => SpanId::of(&format!("{id} in {}", message.unwrap_or(self.seed))),
        };
        let id = self.unused(id);
        let made = &session.records[call.record as usize];
        let result = call.result.as_ref();
        let answered = result.and_then(|result| session.records[result.record as usize].at());
        let tool = session.text(call.tool);
        let failed = result.is_some_and(|result| result.is_error);
        let mut metadata = vec![
            ("tool_name", json!(tool)),
            ("tool_id", json!(session.call_id(call))),
        ];
        if result.is_none() {
            metadata.push(("result", json!("missing")));
        }
        if call.launched {
            metadata.push(("background", json!(true)));
        }
        let file = talk.file;
        self.add(TraceSpan {
            start: made.at(),
            end: answered.or(made.at()),
            level: if failed {
                TraceSpanLevel::Error
            } else {
                TraceSpanLevel::Default
            },
            input: SpanTextLocation::Input { file, call: at },
            output: match result {
                Some(_) => SpanTextLocation::Result { file, call: at },
                None => SpanTextLocation::Null,
            },
            origin: Some(session.call_id(call).to_owned()),
            metadata,
            ..TraceSpan::new(id, Some(parent), TraceSpanKind::Tool, tool.to_owned())
        });
        self.mark(session.blocks[call.block as usize].print);
        if let Some(result) = result {
            self.mark(session.blocks[result.block as usize].span().len as u64);
        }
        let started = self.traces.started.get(session.call_id(call));
        for &agent in started.into_iter().flatten() {
            self.agent(id, agent, talk.depth + 1);
        }
    }

    /// A sub-agent with its own conversation.
    fn agent(&mut self, parent: SpanId, at: usize, depth: usize) {
        let row = &self.traces.agents[at];
        let (file, thread) = match (row.file, row.thread) {
            (Some(file), _) => (file + 1, 0),
            (None, Some(thread)) => (0, thread),
            (None, None) => return self.copied_agent(parent, row),
        };
        let id = match &*row.agent {
            "" => self.own_id("agent", row.call.clone()),
            id => SpanId::of(id),
        };
        let traced = self.file(file);
        let messages = traced.messages_of_thread(thread);
        let events = traced.events_of_thread(thread);
        let ThreadExtent { prompt, start, end } = traced.reach(thread);
        let last = turns::last_said(traced.session, messages);
        let added = self.add(TraceSpan {
            start,
            end,
            level: if row.status == "failed" {
                TraceSpanLevel::Error
            } else {
                TraceSpanLevel::Default
            },
            input: prompt.map_or(SpanTextLocation::None, |record| SpanTextLocation::Prompt {
                file,
                record,
            }),
            output: last.map_or(SpanTextLocation::None, |message| SpanTextLocation::Reply {
                file,
                message,
            }),
            origin: Some(row.agent.clone()),
            metadata: self.agent_metadata(row),
            ..TraceSpan::new(id, Some(parent), TraceSpanKind::Agent, agent_name(row))
        });
        // Deeper than anybody nests: they name each other in a circle, or nearly so.
        if added && depth <= DEPTH {
            let talk = SpanConversation {
                file,
                messages,
                events: &events,
                prompt,
                depth,
            };
            self.talk(id, &talk);
        }
    }

    /// A sub-agent whose file is gone, of which the session holds copies: no texts, but what
    /// it took.
    fn copied_agent(&mut self, parent: SpanId, row: &AgentRow) {
        let session = self.file(0).session;
        let call = row.call.as_deref().unwrap_or_default();
        let copies = self.traces.copies.get(call);
        let copies: Vec<&Message> = copies
            .into_iter()
            .flatten()
            .map(|&at| &session.copies[at as usize])
            .filter(|copy| !copy.synthetic && !self.is_said_by_session(0, copy))
            .collect();
        let id = match &*row.agent {
            "" => self.own_id("agent", Some(format!("agent:{call}"))),
            id => SpanId::of(id),
        };
        let added = self.add(TraceSpan {
            start: copies.iter().filter_map(|copy| copy.first()).min(),
            end: copies.iter().filter_map(|copy| copy.last()).max(),
            origin: Some(row.agent.clone()).filter(|id| !id.is_empty()),
            metadata: self.agent_metadata(row),
            ..TraceSpan::new(id, Some(parent), TraceSpanKind::Agent, agent_name(row))
        });
        for copy in copies.into_iter().filter(|_| added) {
            let model = copy.model().map(|model| session.text(model));
            let copied = match session.message_id(copy) {
                Some(id) => SpanId::of(id),
                None => self.own_id("copy", None),
            };
            self.add(TraceSpan {
                start: copy.first(),
                end: copy.last(),
                origin: session.message_id(copy).map(str::to_owned),
                usage: copy.has_usage().then(|| session.usage_of(copy)),
                cost: shares(self.traces.prices, model, session, copy),
                metadata: vec![("copy", json!(true))],
                ..TraceSpan::new(
                    copied,
                    Some(id),
                    TraceSpanKind::Generation,
                    model.unwrap_or("unknown").to_owned(),
                )
            });
        }
    }

    fn agent_metadata(&self, row: &AgentRow) -> Vec<(&'static str, Value)> {
        let shape = self.traces.shape();
        let texts = [
            ("agent_id", Some(&row.agent)),
            ("agent_type", row.kind.as_ref()),
            ("agent_kind", Some(&row.role.name().to_owned())),
            ("name", row.name.as_ref()),
            ("phase", row.phase.as_ref()),
            ("team", row.team.as_ref()),
            ("description", row.description.as_ref()),
            ("status", Some(&row.status.to_owned())),
        ];
        let told = texts.into_iter().filter_map(|(key, text)| {
            let text = text.filter(|text| !text.is_empty())?;
            Some((key, json!(shape.note(text))))
        });
        told.collect()
    }

    fn event(&mut self, parent: SpanId, file: usize, event: &SessionEvent) {
        let session = self.file(file).session;
        let record = &session.records[event.record as usize];
        let (name, mut level, mut metadata) = describe(&event.what);
        if matches!(
            event.what,
            SessionEventKind::ApiError | SessionEventKind::Hook
        ) {
            let detail = events::detail(session, self.file(file).source, event);
            if let Some((attempt, of)) = detail.attempt {
                metadata.extend([("attempt", json!(attempt)), ("max_attempts", json!(of))]);
            }
            metadata.extend(detail.hook.map(|hook| ("hook", json!(hook))));
            if detail.blocked {
                metadata.push(("blocked", json!(true)));
                level = TraceSpanLevel::Error;
            }
        }
        let uuid = record.uuid.as_ref().map(ToString::to_string);
        let id = self.unused(self.own_id(name, uuid));
        let place = SpanTextLocation::Event {
            file,
            event: event.clone(),
        };
        let (input, output) = match event.what {
            SessionEventKind::Queued(_) => (place, SpanTextLocation::None),
            _ => (SpanTextLocation::None, place),
        };
        self.mark(record.len() as u64);
        self.add(TraceSpan {
            start: record.at(),
            end: record.at(),
            level,
            input,
            output,
            metadata,
            ..TraceSpan::new(id, Some(parent), TraceSpanKind::Event, name.to_owned())
        });
    }

    /// The id of something whose own may be missing.
    fn own_id(&self, kind: &str, id: Option<String>) -> SpanId {
        match id {
            Some(id) => SpanId::of(&id),
            None => SpanId::of(&format!("{kind}:{}:{}", self.spans.len(), self.seed)),
        }
    }

    /// An id that no span has yet: files that were made by hand name two calls alike.
    fn unused(&self, mut id: SpanId) -> SpanId {
        let wanted = id;
        for nth in 2.. {
            if !self.seen.contains(&id) {
                break;
            }
            id = SpanId::of(&format!("{wanted} {nth}"));
        }
        id
    }

    /// Adds a span, unless it is there already: two files may hold one message, and one agent
    /// may be named twice. Its end is never before its start.
    fn add(&mut self, mut span: TraceSpan) -> bool {
        if !self.seen.insert(span.id) {
            return false;
        }
        // Nobody receives a time before 1970: a clock was wrong.
        let told = |time: Option<Time>| time.filter(|time| time.0 >= 0);
        (span.start, span.end) = match (told(span.start), told(span.end)) {
            (Some(start), Some(end)) => (Some(start), Some(end.max(start))),
            (start, end) => (start.or(end), end.or(start)),
        };
        self.mask(&mut span);
        self.spans.push(span);
        true
    }

    /// Names may be anything, too.
    fn mask(&self, span: &mut TraceSpan) {
        let shape = self.traces.shape();
        let mask = |text: &mut String| {
            if let Cow::Owned(masked) = shape.note(text) {
                *text = masked;
            }
        };
        mask(&mut span.name);
        span.stop.iter_mut().for_each(mask);
        span.calls.iter_mut().for_each(|(_, tool)| mask(tool));
        for (_, value) in &mut span.metadata {
            if let Value::String(text) = value {
                mask(text);
            }
        }
    }

    fn mark(&mut self, mark: u64) {
        self.marks.update(&mark.to_le_bytes());
    }

    fn mark_reply(&mut self, session: &Session, message: &Message) {
        for (_, block) in session.content(message) {
            self.mark(session.blocks[block as usize].print);
        }
    }

    /// What the trace holds. Prices and what the caller knows are no part of it: a new table
    /// of prices is no reason to send everything again.
    fn digest(&self) -> TraceDigest {
        let mut hasher = self.marks.clone();
        for span in &self.spans {
            hasher.update(&span.id.0);
            hasher.update(&span.parent.map_or([0; 8], |parent| parent.0));
            hasher.update(span.name.as_bytes());
            hasher.update(&[span.level as u8]);
            for time in [span.start, span.end] {
                hasher.update(&time.map_or(i64::MIN, |time| time.0).to_le_bytes());
            }
            if let Some(usage) = span.usage {
                let counts = [
                    usage.input,
                    usage.output,
                    usage.cache_read,
                    usage.cache_write_5m,
                    usage.cache_write_1h,
                ];
                counts.iter().for_each(|count| {
                    hasher.update(&count.to_le_bytes());
                });
            }
        }
        let mut digest = [0; 16];
        digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        TraceDigest(digest)
    }
}

impl TraceSpan {
    fn new(id: SpanId, parent: Option<SpanId>, kind: TraceSpanKind, name: String) -> TraceSpan {
        TraceSpan {
            id,
            parent,
            kind,
            name,
            start: None,
            end: None,
            level: TraceSpanLevel::Default,
            status: None,
            input: SpanTextLocation::None,
            output: SpanTextLocation::None,
            origin: None,
            usage: None,
            cost: None,
            stop: None,
            calls: Vec::new(),
            metadata: Vec::new(),
        }
    }
}

fn agent_name(row: &AgentRow) -> String {
    let plain = || match row.role {
        AgentKind::SubAgent => "agent".to_owned(),
        role => role.name().replace('_', " "),
    };
    row.kind.clone().unwrap_or_else(plain)
}

/// How well a turn went, and why.
fn how(
    session: &Session,
    row: &TurnRow,
    events: &[SessionEvent],
) -> (TraceSpanLevel, Option<&'static str>) {
    let last = row
        .messages
        .last()
        .map(|&at| &session.messages[at as usize]);
    let said = last.and_then(|message| message.records.last());
    let failed = |event: &&SessionEvent| {
        event.what == SessionEventKind::Failure && said.is_none_or(|&said| event.record > said)
    };
    if events.iter().any(|event| failed(&event)) {
        return (TraceSpanLevel::Error, Some("the API failed"));
    }
    if row.interrupted {
        return (TraceSpanLevel::Warning, Some("interrupted by the user"));
    }
    // A command that the client did itself.
    match row.messages.is_empty() && row.over {
        true => (TraceSpanLevel::Debug, None),
        false => (TraceSpanLevel::Default, None),
    }
}

/// What an event is called, how grave it is, and what is known of it.
fn describe(what: &SessionEventKind) -> (&'static str, TraceSpanLevel, Vec<(&'static str, Value)>) {
    match what {
        SessionEventKind::Compaction {
            micro,
            trigger,
            before,
            after,
            ..
        } => {
            let mut metadata = Vec::new();
            metadata.extend(
                trigger
                    .as_deref()
                    .map(|trigger| ("trigger", json!(trigger))),
            );
            metadata.extend(before.map(|tokens| ("tokens_before", json!(tokens))));
            metadata.extend(after.map(|tokens| ("tokens_after", json!(tokens))));
            let name = if *micro {
                "microcompaction"
            } else {
                "compaction"
            };
            (name, TraceSpanLevel::Default, metadata)
        }
        SessionEventKind::Interrupt => ("interrupt", TraceSpanLevel::Warning, Vec::new()),
        SessionEventKind::ApiError => ("api error", TraceSpanLevel::Warning, Vec::new()),
        SessionEventKind::Failure => ("api failure", TraceSpanLevel::Error, Vec::new()),
        SessionEventKind::Queued(_) => ("queued prompt", TraceSpanLevel::Default, Vec::new()),
        SessionEventKind::Hook => ("hook", TraceSpanLevel::Warning, Vec::new()),
    }
}

fn line_id(session: &Session, record: Option<&Index>) -> Option<String> {
    let uuid = session.records[*record? as usize].uuid.as_ref();
    uuid.map(ToString::to_string)
}

fn after(at: Time, milliseconds: u64) -> Time {
    let took = i64::try_from(milliseconds).unwrap_or(i64::MAX);
    Time(at.0.saturating_add(took))
}

/// What a message cost, by what it was paid for.
fn shares(
    prices: &Prices,
    model: Option<&str>,
    session: &Session,
    message: &Message,
) -> Option<unspool_model::price::CostShares> {
    let price = prices.find(model?)?;
    let counted = message.has_usage();
    counted.then(|| {
        price
            .shares(session.usage_of(message), session.terms_of(message))
            .ok()
    })?
}
