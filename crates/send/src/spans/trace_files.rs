//! A transcript as the builder of traces needs it: who said what in which turn.

use std::collections::HashMap;

use unspool_model::log::TranscriptSource;
use unspool_model::session::{Index, Session};
use unspool_model::time::Time;
use unspool_model::view::events::{self, SessionEvent};
use unspool_model::view::{request_times, turns};

/// One file, looked over once.
pub(super) struct TraceFile<'a> {
    pub(super) session: &'a Session,
    pub(super) source: &'a dyn TranscriptSource,
    /// When each message was asked for.
    pub(super) asked: Vec<Option<Time>>,
    /// The turn of each record.
    pub(super) places: Vec<Option<Index>>,
    /// Messages and their calls, in order.
    calls: Vec<(Index, Index)>,
    /// Events by thread and number of turn; 0 before the first one, and for sub-agents.
    events: HashMap<(Index, Index), Vec<SessionEvent>>,
    /// Messages by thread, of sub-agents.
    messages: HashMap<Index, Vec<Index>>,
    reaches: Vec<ThreadExtent>,
}

/// How far a conversation goes.
#[derive(Clone, Copy, Default)]
pub(super) struct ThreadExtent {
    /// The first line that asks something.
    pub(super) prompt: Option<Index>,
    /// The time of its first line.
    pub(super) start: Option<Time>,
    /// The latest time of its lines.
    pub(super) end: Option<Time>,
}

fn reaches(session: &Session) -> Vec<ThreadExtent> {
    let mut all = vec![ThreadExtent::default(); session.threads.len()];
    for (at, record) in (0..).zip(&session.records) {
        if !record.is_conversation() || record.is_duplicate() {
            continue;
        }
        let reach = &mut all[record.thread as usize];
        if reach.prompt.is_none() && record.message().is_none() && record.input.opens_turn() {
            reach.prompt = Some(at);
        }
        reach.start = reach.start.or(record.at());
        reach.end = reach.end.max(record.at());
    }
    all
}

impl<'a> TraceFile<'a> {
    pub(super) fn new(session: &'a Session, source: &'a dyn TranscriptSource) -> TraceFile<'a> {
        let places = turns::places(session);
        let record = |at: Index| &session.records[at as usize];
        let mut calls: Vec<(Index, Index)> = (0..)
            .zip(&session.calls)
            .filter_map(|(at, call)| Some((record(call.record).message()?, at)))
            .collect();
        calls.sort_unstable();
        let mut by_turn: HashMap<(Index, Index), Vec<SessionEvent>> = HashMap::new();
        for event in events::events(session) {
            let thread = record(event.record).thread;
            let turn = places[event.record as usize].map_or(0, |place| place + 1);
            by_turn.entry((thread, turn)).or_default().push(event);
        }
        let mut messages: HashMap<Index, Vec<Index>> = HashMap::new();
        for (at, message) in (0..).zip(&session.messages) {
            messages.entry(message.thread).or_default().push(at);
        }
        TraceFile {
            session,
            source,
            asked: request_times::asked(session),
            places,
            calls,
            events: by_turn,
            messages,
            reaches: reaches(session),
        }
    }

    /// How far a thread goes.
    pub(super) fn reach(&self, thread: Index) -> ThreadExtent {
        self.reaches[thread as usize]
    }

    /// The calls of a message, in order.
    pub(super) fn calls_of(&self, message: Index) -> impl Iterator<Item = Index> + '_ {
        let start = self.calls.partition_point(|(of, _)| *of < message);
        let calls = self.calls[start..].iter();
        calls
            .take_while(move |(of, _)| *of == message)
            .map(|(_, call)| *call)
    }

    /// The events of a turn of the file's own conversation.
    pub(super) fn events_of_turn(&self, turn: Index) -> &[SessionEvent] {
        self.events.get(&(0, turn)).map_or(&[], Vec::as_slice)
    }

    /// All events of a sub-agent: of a thread, or of its own file.
    pub(super) fn events_of_thread(&self, thread: Index) -> Vec<SessionEvent> {
        if thread > 0 {
            return self.events.get(&(thread, 0)).cloned().unwrap_or_default();
        }
        let own = self.events.iter().filter(|((of, _), _)| *of == 0);
        let mut all: Vec<SessionEvent> =
            own.flat_map(|(_, events)| events.iter().cloned()).collect();
        all.sort_by_key(|event| event.record);
        all
    }

    /// All messages of a thread.
    pub(super) fn messages_of_thread(&self, thread: Index) -> &[Index] {
        self.messages.get(&thread).map_or(&[], Vec::as_slice)
    }
}
