//! Turns: from a person's act to the answer.

use std::collections::HashSet;

use crate::block::BlockKind;
use crate::entry::{self, LineDetail, LineKind};
use crate::graph;
use crate::json;
use crate::log::TranscriptSource;
use crate::session::{EntryRecord, Index, Message, ParentLink, Session, ToolCall};
use crate::time::Time;
use crate::usage::Usage;
use crate::user_input::{self, UserInput};
use crate::view::prompt_queue;

/// How a turn came about (the third seed's words).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnOrigin {
    /// The first one, or one without a parent.
    NewSession,
    /// After a long pause.
    Resume,
    /// Any other.
    NewRound,
}

impl TurnOrigin {
    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            TurnOrigin::NewSession => "new_session",
            TurnOrigin::Resume => "resume",
            TurnOrigin::NewRound => "new_round",
        }
    }
}

/// What became of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallStatus {
    /// It has a result.
    #[default]
    Ok,
    /// Its result reports a failure.
    Error,
    /// The conversation went on without a result.
    Missing,
    /// The transcript ends while it runs.
    Running,
}

impl CallStatus {
    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            CallStatus::Ok => "ok",
            CallStatus::Error => "error",
            CallStatus::Missing => "missing",
            CallStatus::Running => "running",
        }
    }
}

/// One turn.
#[derive(Clone, Debug)]
pub struct TurnRow {
    /// Counts from 1; 0 is what was said before the first turn.
    pub n: usize,
    /// The line that opened it.
    pub record: Index,
    /// What opened it.
    pub kind: UserInput,
    /// How it came about.
    pub round: TurnOrigin,
    /// On the branch that goes on; `false` for what was rewound.
    pub live: bool,
    /// What was asked, as a person would read it.
    pub prompt: String,
    /// When it was asked.
    pub at: Option<Time>,
    /// When it was over; `None` while it goes on.
    pub ended: Option<Time>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// Its replies, as indices of messages.
    pub messages: Vec<Index>,
    /// Its calls, as indices of calls.
    pub calls: Vec<Index>,
    /// The last thing the model said.
    pub reply: Option<String>,
    /// The person stopped it.
    pub interrupted: bool,
    /// The context was compacted meanwhile.
    pub compacted: bool,
    /// What was typed while the model worked.
    pub queued: Vec<String>,
    /// Tokens of its replies.
    pub usage: Usage,
    /// Nothing more is to be expected. A command that the model may still answer is not over
    /// even though nothing of it runs.
    pub over: bool,
    closed: bool,
    /// A command printed what it did: it ran in the client.
    printed: bool,
}

/// What the caller may choose.
#[derive(Clone, Copy, Debug)]
pub struct TurnOptions {
    /// A pause longer than this many milliseconds makes a turn a `resume`.
    pub gap_ms: u64,
}

impl Default for TurnOptions {
    fn default() -> TurnOptions {
        TurnOptions {
            gap_ms: 5 * 60 * 1_000,
        }
    }
}

/// The turns of the file's own conversation, in file order; see [`outline`].
pub fn turns(
    session: &Session,
    source: &dyn TranscriptSource,
    options: TurnOptions,
) -> Vec<TurnRow> {
    let mut rows = outline(session, options);
    for row in &mut rows {
        read_turn_texts(session, source, row);
    }
    rows
}

/// Reads the texts of a turn of [`outline`].
pub fn read_turn_texts(session: &Session, source: &dyn TranscriptSource, row: &mut TurnRow) {
    // Before the first turn nobody asked anything.
    if row.n > 0 {
        row.prompt = prompt(session, source, &session.records[row.record as usize]);
    }
    row.reply = reply(session, source, &row.messages);
}

/// The turns without their texts, which need no look into the file.
///
/// What was said before the first turn is a turn with the number 0 in front of the others, see
/// [`work_before`].
pub fn outline(session: &Session, options: TurnOptions) -> Vec<TurnRow> {
    let live = graph::live(session, &graph::links(session));
    let places = places(session);
    let before = work_before(session, |at| places[at as usize].is_none());
    let mut rows: Vec<TurnRow> = Vec::new();
    rows.extend(before.map(|record| opened(session, record, 0, true)));
    let first = rows.len();
    let turns = session.turns.iter().filter(|turn| turn.thread == 0);
    for (n, turn) in (1..).zip(turns) {
        rows.push(opened(session, turn.record, n, live.contains(turn.record)));
    }
    let of = |record: Index| match places[record as usize] {
        Some(at) => Some(at as usize + first),
        None => (first > 0 && session.records[record as usize].thread == 0).then_some(0),
    };
    gather_lines(session, &mut rows, of, options);
    gather_messages(session, &mut rows, of);
    for (index, call) in session.calls.iter().enumerate() {
        if let Some(at) = of(call.record) {
            rows[at].calls.push(index as Index);
        }
    }
    for (record, text) in prompt_queue::typed_meanwhile(session) {
        // Typed before anything was said: the first turn is what comes of it.
        if let Some(row) = rows.get_mut(of(record).unwrap_or(0)) {
            row.queued.push(text);
        }
    }
    finish(session, &mut rows);
    rows
}

/// The turn with this number.
pub fn numbered(rows: &[TurnRow], n: usize) -> Option<&TurnRow> {
    rows.get(n.checked_sub(rows.first()?.n)?)
}

/// How many turns [`outline`] has.
pub fn count(session: &Session) -> usize {
    let own = session.turns.iter().filter(|turn| turn.thread == 0).count();
    own + usize::from(has_work_before(session))
}

/// The number of the turn that each record belongs to, among those of the file's own
/// conversation; `None` for lines of sub-agents, and for those before the first turn where no
/// model said anything.
pub fn numbers(session: &Session) -> Vec<Option<u32>> {
    let places = places(session);
    let before = work_before(session, |at| places[at as usize].is_none()).map(|_| 0);
    let number = |(record, place): (&EntryRecord, Option<Index>)| match place {
        Some(place) => Some(place + 1),
        None => before.filter(|_| record.thread == 0),
    };
    session.records.iter().zip(places).map(number).collect()
}

/// Whether there is a turn 0: a model said something before the first turn.
pub fn has_work_before(session: &Session) -> bool {
    let finder = session.turn_finder();
    let is_before = |at: Index| {
        let turn = finder.of(&session.records[at as usize]);
        turn.is_none_or(|turn| session.turns[turn as usize].thread != 0)
    };
    work_before(session, is_before).is_some()
}

/// Whether a model said something before the first turn, and the line that such work begins
/// with: sessions that other programs speak to hold no act of a person, and a file may begin in
/// the middle of a turn. `is_before` says of a line whether it belongs to no turn.
fn work_before(session: &Session, is_before: impl Fn(Index) -> bool) -> Option<Index> {
    let is_own = |at: Index| session.records[at as usize].thread == 0 && is_before(at);
    let answers = |message: &Message| {
        let first = message.records.first().copied();
        !message.synthetic && message.thread == 0 && first.is_some_and(is_own)
    };
    if !session.messages.iter().any(answers) {
        return None;
    }
    let said = |record: &EntryRecord| record.is_conversation() && !record.is_duplicate();
    let mut lines = (0..).zip(&session.records);
    let first = lines.find(|(at, record)| said(record) && is_own(*at));
    first.map(|(at, _)| at)
}

/// A turn with the number 0 in which nobody said anything, for what has to stand somewhere: a
/// session may hold no turn at all, and have sub-agents.
pub fn silent(session: &Session) -> Option<TurnRow> {
    let mut row = (!session.records.is_empty()).then(|| opened(session, 0, 0, true))?;
    row.over = true;
    Some(row)
}

/// The place of the turn that each record belongs to, among those of the file's own
/// conversation; `None` for lines of sub-agents and those before the first turn.
pub fn places(session: &Session) -> Vec<Option<Index>> {
    let mut next = 0;
    let own: Vec<Option<Index>> = session
        .turns
        .iter()
        .map(|turn| {
            let place = (turn.thread == 0).then_some(next);
            next += Index::from(turn.thread == 0);
            place
        })
        .collect();
    let mut places = session.turns_by_record();
    for (place, record) in places.iter_mut().zip(&session.records) {
        *place = place
            .filter(|_| record.thread == 0)
            .and_then(|turn| own[turn as usize]);
    }
    places
}

fn opened(session: &Session, record: Index, n: usize, live: bool) -> TurnRow {
    let opener = &session.records[record as usize];
    TurnRow {
        n,
        record,
        kind: opener.input,
        round: TurnOrigin::NewRound,
        live,
        prompt: String::new(),
        at: opener.at(),
        ended: None,
        duration_ms: None,
        messages: Vec::new(),
        calls: Vec::new(),
        reply: None,
        interrupted: false,
        compacted: false,
        queued: Vec::new(),
        usage: Usage::default(),
        over: false,
        closed: false,
        printed: false,
    }
}

fn is_synthetic(session: &Session, record: &EntryRecord) -> bool {
    record.is_api_error()
        || record
            .message()
            .is_some_and(|at| session.messages[at as usize].synthetic)
}

/// One pass over the lines: ends, durations, interrupts, compactions and rounds.
fn gather_lines(
    session: &Session,
    rows: &mut [TurnRow],
    of: impl Fn(Index) -> Option<usize>,
    options: TurnOptions,
) {
    let mut last_said: Option<Time> = None;
    let mut opens: Vec<(usize, Index)> = rows.iter().map(|row| row.record).enumerate().collect();
    // Work that belongs to no turn may begin behind the first one.
    opens.sort_by_key(|(_, record)| *record);
    let mut opens = opens.into_iter().peekable();
    for (index, record) in session.records.iter().enumerate() {
        if record.thread != 0 || record.is_duplicate() {
            continue;
        }
        if let Some((at, _)) = opens.next_if(|(_, opener)| *opener == index as Index) {
            rows[at].round = round(record, last_said, at == 0, options);
        }
        if record.is_conversation() {
            last_said = record.at().or(last_said);
        }
        let Some(at) = of(index as Index) else {
            continue;
        };
        let row = &mut rows[at];
        match record.kind {
            LineKind::TurnDuration => {
                row.duration_ms = match session.detail_of(record) {
                    Some(LineDetail::Duration(duration)) => Some(u64::from(*duration)),
                    _ => None,
                };
                row.closed = true;
            }
            LineKind::StopHookSummary => row.closed = true,
            LineKind::CompactBoundary => row.compacted = true,
            LineKind::User => {
                row.interrupted |= record.input == UserInput::Interrupt;
                row.printed |= record.input == UserInput::Machine;
            }
            LineKind::LocalCommand => row.printed = true,
            // The client's own last word: an API error, or that nothing was asked.
            LineKind::Assistant => row.closed = is_synthetic(session, record),
            _ => {}
        }
        // Who has the conversation summarised later does not make the turn before it longer.
        let counts = record.is_conversation() && record.input != UserInput::Summary
            || matches!(
                record.kind,
                LineKind::TurnDuration | LineKind::StopHookSummary
            );
        if counts {
            row.ended = row.ended.max(record.at());
        }
    }
}

fn round(
    record: &EntryRecord,
    last_said: Option<Time>,
    first: bool,
    options: TurnOptions,
) -> TurnOrigin {
    if first || record.parent() == ParentLink::Null {
        return TurnOrigin::NewSession;
    }
    match (record.at(), last_said) {
        (Some(at), Some(last)) if at.since(last) > options.gap_ms => TurnOrigin::Resume,
        _ => TurnOrigin::NewRound,
    }
}

fn gather_messages(session: &Session, rows: &mut [TurnRow], of: impl Fn(Index) -> Option<usize>) {
    for (index, message) in session.messages.iter().enumerate() {
        let Some(at) = message
            .records
            .first()
            .copied()
            .and_then(&of)
            .filter(|_| !message.synthetic)
        else {
            continue;
        };
        rows[at].messages.push(index as Index);
        rows[at].usage += session.usage_of(message);
    }
}

/// Ends and durations that no line gives.
fn finish(session: &Session, rows: &mut [TurnRow]) {
    let last = rows.len().wrapping_sub(1);
    for (at, row) in rows.iter_mut().enumerate() {
        let open = at == last
            && row.duration_ms.is_none()
            && !row.interrupted
            && !row.closed
            && !is_answered(session, row);
        let waits = at == last
            && row.messages.is_empty()
            && row.duration_ms.is_none()
            && !(row.interrupted || row.closed || row.printed);
        row.over = !open && !waits;
        if open {
            row.ended = None;
        }
        if row.duration_ms.is_none() {
            row.duration_ms = row.at.zip(row.ended).map(|(at, ended)| ended.since(at));
        }
    }
}

/// Whether the last thing in the turn is an answer: words, and no call that still runs.
fn is_answered(session: &Session, row: &TurnRow) -> bool {
    let running = row
        .calls
        .iter()
        .any(|&call| session.calls[call as usize].result.is_none());
    let last = row
        .messages
        .last()
        .map(|&at| &session.messages[at as usize]);
    let last_line = last.and_then(|message| message.records.last());
    let says = |&line: &Index| {
        let blocks = session.blocks_of(&session.records[line as usize]);
        blocks
            .iter()
            .any(|block| block.kind == BlockKind::Text && !block.blank)
    };
    let own_command = matches!(
        row.kind,
        UserInput::Command | UserInput::Shell | UserInput::Memory
    ) && row.messages.is_empty();
    own_command || (!running && last_line.is_some_and(says))
}

/// How far each thread went, which tells calls that still run from calls that got lost.
#[derive(Clone, Debug)]
pub struct ThreadEnds {
    threads: Vec<ThreadEnd>,
}

/// Where a thread last moved on.
#[derive(Clone, Copy, Debug, Default)]
struct ThreadEnd {
    act: Option<usize>,
    reply: Option<(usize, Option<Index>)>,
    other_reply: Option<usize>,
}

impl ThreadEnds {
    /// Looks over the whole session once.
    pub fn of(session: &Session) -> ThreadEnds {
        let mut threads = vec![ThreadEnd::default(); session.threads.len()];
        for (at, record) in session
            .records
            .iter()
            .enumerate()
            .filter(|(_, record)| !record.is_duplicate())
        {
            let reach = &mut threads[record.thread as usize];
            match record.kind {
                LineKind::User if !matches!(record.input, UserInput::Results | UserInput::Meta) => {
                    reach.act = Some(at)
                }
                LineKind::Assistant => {
                    if let Some((before, message)) = reach.reply
                        && message != record.message()
                    {
                        reach.other_reply = Some(before);
                    }
                    reach.reply = Some((at, record.message()));
                }
                _ => {}
            }
        }
        ThreadEnds { threads }
    }

    /// What became of a call.
    pub fn status(&self, session: &Session, call: &ToolCall) -> CallStatus {
        match &call.result {
            Some(result) if result.is_error => CallStatus::Error,
            Some(_) => CallStatus::Ok,
            None if self.went_on(session, call) => CallStatus::Missing,
            None => CallStatus::Running,
        }
    }

    /// Whether the conversation went on after the call, other than with results.
    fn went_on(&self, session: &Session, call: &ToolCall) -> bool {
        let made = &session.records[call.record as usize];
        let reach = &self.threads[made.thread as usize];
        let after = |at: usize| at > call.record as usize;
        let replied = match reach.reply {
            Some((at, message)) if message != made.message() => after(at),
            _ => reach.other_reply.is_some_and(after),
        };
        replied || reach.act.is_some_and(after)
    }
}

/// How long a call took.
pub fn call_duration(session: &Session, call: &ToolCall) -> Option<u64> {
    let result = call.result.as_ref()?;
    let (start, end) = (
        session.records[call.record as usize].at()?,
        session.records[result.record as usize].at()?,
    );
    Some(end.since(start))
}

/// What a person typed on this line.
pub fn prompt(session: &Session, source: &dyn TranscriptSource, record: &EntryRecord) -> String {
    let bytes = session.bytes_of(source, record);
    let blocks = session.blocks_of(record);
    let text = entry::text_of(blocks, &bytes);
    let text = user_input::readable(&text);
    if text.is_empty() {
        entry::media_note(blocks)
    } else {
        text.into_owned()
    }
}

/// The last thing the model said in these messages.
fn reply(session: &Session, source: &dyn TranscriptSource, messages: &[Index]) -> Option<String> {
    let last = last_said(session, messages)?;
    Some(said(session, source, &session.messages[last as usize]))
}

/// The last of these messages that says something.
pub fn last_said(session: &Session, messages: &[Index]) -> Option<Index> {
    let speaks = |record: Index| {
        let record = &session.records[record as usize];
        let blocks = session.blocks_of(record);
        !record.is_api_error()
            && blocks
                .iter()
                .any(|block| block.kind == BlockKind::Text && !block.blank)
    };
    let mut latest = messages.iter().rev().copied();
    latest.find(|&at| {
        let message = &session.messages[at as usize];
        !message.synthetic && message.records.iter().any(|&record| speaks(record))
    })
}

/// The visible text of a message.
pub fn said(session: &Session, source: &dyn TranscriptSource, message: &Message) -> String {
    if message.synthetic {
        return String::new();
    }
    let mut out = String::new();
    for (record, block) in session.content(message) {
        let record = &session.records[record as usize];
        let block = &session.blocks[block as usize];
        if block.kind != BlockKind::Text || block.blank || record.is_api_error() {
            continue;
        }
        if !out.is_empty() {
            out.push('\n');
        }
        let bytes = session.bytes_of(source, record);
        out.push_str(&json::string(block.body().of(&bytes)));
    }
    out
}

/// Sub-agents that the calls started.
pub fn agents(session: &Session, calls: &[Index]) -> Vec<String> {
    let mut seen = HashSet::new();
    let named = calls
        .iter()
        .filter_map(|&call| session.agent_of(&session.calls[call as usize]));
    named
        .filter(|agent| seen.insert(*agent))
        .map(str::to_owned)
        .collect()
}
