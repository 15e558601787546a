//! What a session is doing, and how that is known.
//!
//! Four sources, in order of trust: what hooks told, what the client's registry says, the lines
//! of the transcript, and whether the process lives. What is newer beats what is older: a prompt
//! after a stop means work, a result after a request for permission means that it was given. A
//! session that waits for an answer waits until there is one, however long that takes; any other
//! is idle after five minutes without a sign.
//!
//! Nothing here looks around or at a clock: [`StatusSignals`] are gathered elsewhere, `now` is given.

pub(in crate::view) mod background_work;
mod hooks;
mod transcript;

use crate::entry::failure::LimitReset;
use crate::hook_events::HookEvent;
use crate::session::{Index, Session, TranscriptRole};
use crate::time::Time;
use hooks::HookFindings;

pub use background_work::RunningWork;

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SessionState {
    /// The model or a tool is at work.
    Working,
    /// A person must allow something.
    WaitingForApproval,
    /// The person's turn.
    WaitingForInput,
    /// Nothing happens.
    Idle,
    /// Its context is being summarised.
    Compacting,
    /// The API failed.
    Error,
    /// The client is gone.
    Ended,
}

impl StatusSignals {
    /// Whether the client of the session lives, if that can be seen.
    pub fn alive(&self) -> Option<bool> {
        match &self.registry {
            RegistryState::Entry(entry) => entry.alive,
            RegistryState::Unknown | RegistryState::Missing => None,
        }
    }

    /// What is known about one of its sub-agents: what hooks told about that, and whether the
    /// client lives.
    pub fn of_agent(&self, id: &str) -> StatusSignals {
        let own = self
            .hooks
            .iter()
            .filter(|signal| signal.event.agent.as_deref() == Some(id));
        let hooks = own.cloned().map(|mut signal| {
            signal.event.agent = None;
            signal
        });
        let registry = match &self.registry {
            RegistryState::Entry(entry) => RegistryState::Entry(RegistryEntry {
                says: None,
                ..entry.clone()
            }),
            other => other.clone(),
        };
        StatusSignals {
            hooks: hooks.collect(),
            registry,
            zones: self.zones,
            job: None,
        }
    }
}

impl SessionState {
    /// All of them, those first that need somebody.
    pub const ALL: [SessionState; 7] = [
        SessionState::WaitingForApproval,
        SessionState::WaitingForInput,
        SessionState::Error,
        SessionState::Working,
        SessionState::Compacting,
        SessionState::Idle,
        SessionState::Ended,
    ];

    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            SessionState::Working => "working",
            SessionState::WaitingForApproval => "waiting_for_approval",
            SessionState::WaitingForInput => "waiting_for_input",
            SessionState::Idle => "idle",
            SessionState::Compacting => "compacting",
            SessionState::Error => "error",
            SessionState::Ended => "ended",
        }
    }

    /// The state with this name.
    pub fn named(name: &str) -> Option<SessionState> {
        SessionState::ALL
            .into_iter()
            .find(|state| state.name() == name)
    }
}

/// What a session wants from a person, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttentionNeed {
    /// It cannot go on without the person: a permission, a question, an error.
    You,
    /// It is done; the person's turn.
    Turn,
    /// Nothing: it is at work.
    Working,
    /// Nothing: it is at rest.
    Rest,
}

impl AttentionNeed {
    /// What a session in this state wants; `asks` says whether it has asked a question, which
    /// holds everything up where a turn that is over does not.
    pub fn of(state: SessionState, asks: bool) -> AttentionNeed {
        match state {
            SessionState::WaitingForApproval | SessionState::Error => AttentionNeed::You,
            SessionState::WaitingForInput if asks => AttentionNeed::You,
            SessionState::WaitingForInput => AttentionNeed::Turn,
            SessionState::Working | SessionState::Compacting => AttentionNeed::Working,
            SessionState::Idle | SessionState::Ended => AttentionNeed::Rest,
        }
    }

    /// The word in rows.
    pub fn word(self) -> &'static str {
        match self {
            AttentionNeed::You => "you",
            AttentionNeed::Turn => "waiting",
            AttentionNeed::Working => "working",
            AttentionNeed::Rest => "idle",
        }
    }

    /// In two words.
    pub fn name(self) -> &'static str {
        match self {
            AttentionNeed::You => "needs you",
            AttentionNeed::Turn => "your turn",
            AttentionNeed::Working => "working",
            AttentionNeed::Rest => "idle",
        }
    }

    /// How many sessions there are of it: `1 needs you`, `2 need you`.
    pub fn counted(self, count: usize) -> String {
        match (self, count) {
            (AttentionNeed::You, 1) => "1 needs you".to_owned(),
            (AttentionNeed::You, many) => format!("{many} need you"),
            (other, count) => format!("{count} {}", other.name()),
        }
    }
}

/// How a state is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatusSource {
    /// A hook told it.
    Hook,
    /// The client's registry of running sessions says so.
    Registry,
    /// The lines of the transcript say so.
    Transcript,
    /// The process of the client lives, or does not.
    Process,
}

impl StatusSource {
    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            StatusSource::Hook => "hook",
            StatusSource::Registry => "registry",
            StatusSource::Transcript => "transcript",
            StatusSource::Process => "process",
        }
    }
}

/// What a session waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitReason {
    /// The tool that may or may not run.
    pub tool: Option<String>,
    /// What its call is about.
    pub subject: Option<String>,
    /// The id of the call.
    pub call: Option<String>,
    /// The sub-agent whose call it is.
    pub agent: Option<String>,
    /// What is asked.
    pub question: Option<String>,
}

/// A state, since when, how it is known and what it waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionStatus {
    /// The state.
    pub state: SessionState,
    /// Since when.
    pub since: Option<Time>,
    /// How that is known.
    pub from: StatusSource,
    /// Whether it is certain; if not, it is the likeliest.
    pub sure: bool,
    /// The last call without a result, as an index of calls, while it may run.
    pub pending: Option<Index>,
    /// What a person is asked for.
    pub waits: Option<WaitReason>,
    /// What the API said when it failed; at work, if the client tries again by itself.
    pub error: Option<String>,
    /// When the limit is over that it ran into.
    pub resets: Option<Time>,
    /// How many of its sub-agents are at work.
    pub agents: usize,
    /// How many commands of it run in the background.
    pub tasks: usize,
}

/// What is known beside the transcript.
#[derive(Clone, Debug, Default)]
pub struct StatusSignals {
    /// What hooks told, oldest first; those of sub-agents too.
    pub hooks: Vec<HookSignal>,
    /// What the client's registry says.
    pub registry: RegistryState,
    /// How far zones are ahead of UTC.
    pub zones: ZoneOffsets,
    /// What the client keeps about it as a session in the background.
    pub job: Option<BackgroundJob>,
}

/// A session in the background, which no terminal shows: what the client's daemon keeps of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackgroundJob {
    /// Its id: the start of the session's.
    pub id: String,
    /// What it is doing, in the client's word: `working`, `stopped`, `done` …
    pub state: String,
    /// What it is at, in a few words.
    pub detail: Option<String>,
    /// What it was asked to do.
    pub intent: Option<String>,
    /// The last thing it said.
    pub last: Option<String>,
    /// When the state was last written.
    pub since: Option<Time>,
    /// Whether the daemon lists it among those it runs.
    pub listed: bool,
}

impl BackgroundJob {
    /// What its state means, in the terms of the registry; none for a word nobody has described.
    pub fn entry(&self) -> Option<RegistryEntry> {
        let (says, alive) = match self.state.as_str() {
            "working" | "running" | "busy" | "starting" => (Some(RegistryStatus::Busy), None),
            "blocked" | "waiting" | "needs_input" | "needs-input" => {
                (Some(RegistryStatus::Waiting), None)
            }
            "idle" => (Some(RegistryStatus::Idle), None),
            "done" | "completed" | "stopped" | "failed" | "killed" | "crashed" => {
                (None, Some(false))
            }
            _ => return None,
        };
        Some(RegistryEntry {
            says,
            since: self.since,
            alive,
        })
    }
}

/// What a hook told, and when.
#[derive(Clone, Debug)]
pub struct HookSignal {
    /// When.
    pub at: Time,
    /// What.
    pub event: HookEvent,
}

/// What the client's registry of running sessions says about one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RegistryState {
    /// There is none that we could see.
    #[default]
    Unknown,
    /// There is one, and the session is not in it.
    Missing,
    /// It names the session.
    Entry(RegistryEntry),
}

/// An entry in the client's registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryEntry {
    /// What the client says it does.
    pub says: Option<RegistryStatus>,
    /// Since when it says so.
    pub since: Option<Time>,
    /// Whether its process lives; none where that cannot be seen.
    pub alive: Option<bool>,
}

/// What a client says in the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistryStatus {
    /// It waits at its prompt.
    Idle,
    /// It works.
    Busy,
    /// It asks something.
    Waiting,
}

impl RegistryStatus {
    /// The word as the registry has it.
    pub fn named(name: &str) -> Option<RegistryStatus> {
        match name {
            // At a shell, it waits as well.
            "idle" | "shell" => Some(RegistryStatus::Idle),
            "busy" => Some(RegistryStatus::Busy),
            "waiting" => Some(RegistryStatus::Waiting),
            _ => None,
        }
    }
}

/// How many seconds a zone is ahead of UTC at a time; `None` is the zone of the machine.
#[derive(Clone, Copy, Debug)]
pub struct ZoneOffsets(pub fn(Option<&str>, Time) -> Option<i32>);

impl Default for ZoneOffsets {
    fn default() -> ZoneOffsets {
        ZoneOffsets(|_, _| None)
    }
}

/// A session without a sign for this long is idle.
pub const IDLE_MS: u64 = 5 * 60 * 1_000;

/// From this version on, clients that run are in the registry.
const REGISTRY: [u32; 3] = [2, 1, 139];

/// A client may still write while it tells its hooks that it ends, in milliseconds.
const LAST_WORDS: i64 = 1_000;

/// A missing entry says nothing about a client that wrote so recently, in milliseconds.
const JUST_NOW: u64 = 60_000;

/// What the session is doing at `now`.
pub fn status(session: &Session, signals: &StatusSignals, now: Time) -> SessionStatus {
    family(session, &[], signals, now)
}

/// What the session is doing at `now`, given the files of its sub-agents.
pub fn family(
    session: &Session,
    agents: &[&Session],
    signals: &StatusSignals,
    now: Time,
) -> SessionStatus {
    let heard = hooks::hear(session, agents, signals);
    let mut found = merge(session, &heard, signals);
    if let Some(wait) = heard.agent_wait.clone().filter(|_| !found.sticks) {
        // What a sub-agent must be allowed is asked where its session runs.
        found.sticks = true;
        (found.state, found.since) = (wait.state, Some(wait.at));
        (found.from, found.sure) = (StatusSource::Hook, true);
        found.waits = Some(wait.waits);
    }
    let agents_last = agents.iter().filter_map(|agent| agent.last).max();
    let last = session.last.max(heard.last).max(agents_last);
    found.age(session, signals, heard.alive, last, now);
    let crew = background_work::RunningWork::from(session, agents, &heard, now);
    let mut status = found.status(session);
    if status.state != SessionState::Ended {
        let rests = matches!(status.state, SessionState::Idle | SessionState::Error);
        status.agents = crew.background() + if rests { 0 } else { crew.foreground() };
        status.tasks = crew.tasks();
    }
    if session.role() == TranscriptRole::Agent
        && status.state == SessionState::WaitingForInput
        && status.waits.is_none()
    {
        // Nobody types to an agent: when it has answered, it is done.
        status.state = SessionState::Idle;
    }
    status
}

/// What one source says, and then all of them together.
#[derive(Clone, Debug)]
struct StatusFinding {
    state: SessionState,
    since: Option<Time>,
    from: StatusSource,
    sure: bool,
    /// It waits for an answer: time changes nothing.
    sticks: bool,
    pending: Option<Index>,
    waits: Option<WaitReason>,
    error: Option<String>,
    resets: Option<Time>,
}

impl StatusFinding {
    fn new(state: SessionState, since: Option<Time>, from: StatusSource) -> StatusFinding {
        StatusFinding {
            state,
            since,
            from,
            sure: true,
            sticks: false,
            pending: None,
            waits: None,
            error: None,
            resets: None,
        }
    }

    /// Whether the turn is over, whichever way.
    fn is_rest(&self) -> bool {
        matches!(
            self.state,
            SessionState::WaitingForInput | SessionState::Idle
        ) && !self.sticks
    }

    /// What no sign for a while, and the process, make of it.
    fn age(
        &mut self,
        session: &Session,
        signals: &StatusSignals,
        alive: Option<bool>,
        last: Option<Time>,
        now: Time,
    ) {
        let quiet = last
            .or(self.since)
            .is_none_or(|last| now.since(last) >= IDLE_MS);
        if self.state == SessionState::Ended {
            return;
        }
        // What was stopped in the background has ended, however its last turn did.
        let stopped = signals.job.as_ref().and_then(BackgroundJob::entry);
        let stopped = stopped.is_some_and(|entry| entry.alive == Some(false));
        let entry =
            matches!(&signals.registry, RegistryState::Entry(entry) if entry.alive == Some(true));
        if stopped && !entry {
            return self.end(StatusSource::Registry, true, last);
        }
        if alive == Some(false) && self.state != SessionState::Idle {
            return self.end(StatusSource::Process, true, last);
        }
        let unfinished = self.sticks
            || !matches!(
                self.state,
                SessionState::Idle | SessionState::WaitingForInput | SessionState::Error
            );
        let silent = last.is_none_or(|last| now.since(last) >= JUST_NOW);
        let missing = signals.registry == RegistryState::Missing && is_from(session, REGISTRY);
        if missing && unfinished && silent {
            return self.end(StatusSource::Registry, false, last);
        }
        let limited = self.resets.is_some_and(|resets| resets > now);
        if !quiet || self.sticks || limited || self.state == SessionState::Idle {
            return;
        }
        let busy = matches!(&signals.registry, RegistryState::Entry(entry) if entry.says == Some(RegistryStatus::Busy));
        let works = matches!(self.state, SessionState::Working | SessionState::Compacting);
        if works && alive == Some(true) {
            // A build may be quiet for an hour; who interrupts it leaves a line.
            if !busy {
                (self.from, self.sure) = (StatusSource::Process, false);
            }
            return;
        }
        self.sure &= !works;
        self.state = SessionState::Idle;
        self.since = last.map(|last| Time(last.0.saturating_add(IDLE_MS as i64)));
    }

    fn end(&mut self, from: StatusSource, sure: bool, last: Option<Time>) {
        self.state = SessionState::Ended;
        (self.from, self.sure) = (from, sure);
        self.since = last.or(self.since);
        self.sticks = false;
        (self.pending, self.waits) = (None, None);
    }

    fn status(self, session: &Session) -> SessionStatus {
        let mut waits = self.waits;
        if let Some(waits) = &mut waits
            && waits.question.is_none()
            && waits.tool.as_deref() == Some(QUESTION)
        {
            waits.question.clone_from(&waits.subject);
        }
        let waiting = matches!(
            self.state,
            SessionState::WaitingForApproval | SessionState::WaitingForInput
        );
        // While the client tries again it works, and says what failed.
        let failed = matches!(self.state, SessionState::Error | SessionState::Working);
        let named = waits.as_ref().and_then(|waits| waits.call.as_deref());
        SessionStatus {
            state: self.state,
            since: self.since,
            from: self.from,
            sure: self.sure,
            pending: named
                .and_then(|call| session.find_call(call))
                .or(self.pending),
            waits: waits.filter(|_| waiting),
            error: self.error.filter(|_| failed),
            resets: self.resets.filter(|_| failed),
            agents: 0,
            tasks: 0,
        }
    }
}

/// The tool that asks a person something.
const QUESTION: &str = "AskUserQuestion";
/// The tool that asks a person to accept a plan.
const PLAN: &str = "ExitPlanMode";

/// What a call of the tool waits for by itself, whatever is allowed.
fn asks(tool: &str) -> Option<SessionState> {
    match tool {
        QUESTION => Some(SessionState::WaitingForInput),
        PLAN => Some(SessionState::WaitingForApproval),
        _ => None,
    }
}

/// What hooks, transcript and registry say together.
fn merge(session: &Session, heard: &HookFindings, signals: &StatusSignals) -> StatusFinding {
    let read = transcript::found(session, signals);
    let mut found = newer(session, heard, read);
    if let RegistryState::Entry(entry) = &signals.registry
        && entry.alive != Some(false)
        && let Some(says) = entry.says
    {
        registered(session, entry, says, &mut found);
    }
    found
}

/// Whether the client that wrote last is of this version or a later one.
fn is_from(session: &Session, first: [u32; 3]) -> bool {
    let last = session.versions.iter().next_back();
    last.is_some_and(|(version, _)| {
        let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
        let version = [(); 3].map(|()| parts.next().unwrap_or(0));
        version >= first
    })
}

/// What hooks told or what the lines say, whichever is newer.
fn newer(session: &Session, heard: &HookFindings, read: StatusFinding) -> StatusFinding {
    let Some(mut told) = heard.found.clone() else {
        return read;
    };
    let id = |at: Index| session.call_id(&session.calls[at as usize]);
    let answered = read
        .pending
        .is_some_and(|at| heard.answered.contains(id(at)));
    if told.sticks {
        told.pending = told.pending.or(read.pending);
        return told;
    }
    if read.sticks {
        let left = heard.turn > read.since;
        if !answered && !left {
            return read;
        }
    }
    let slack = if told.state == SessionState::Ended {
        LAST_WORDS
    } else {
        0
    };
    // Bookkeeping behind a stop says the same as the stop.
    let same = read.state == told.state;
    let slack = if same { LAST_WORDS } else { slack };
    let later = match (read.since, told.since) {
        (Some(read), Some(told)) => read.0 > told.0.saturating_add(slack),
        (read, told) => read > told,
    };
    if later
        || told.state == SessionState::Compacting
            && transcript::compacted_since(session, told.since)
    {
        return read;
    }
    if read.state == told.state {
        told.pending = read.pending.filter(|_| !answered);
        told.error = told.error.or(read.error);
        told.resets = told.resets.or(read.resets);
    }
    told
}

/// What the registry adds: it holds now, but a line or an event may be a moment ahead of it.
fn registered(
    session: &Session,
    entry: &RegistryEntry,
    says: RegistryStatus,
    found: &mut StatusFinding,
) {
    let sure = entry.alive == Some(true);
    let ahead = found.since > entry.since;
    let by_registry = |found: &mut StatusFinding| {
        if found.from != StatusSource::Hook {
            (found.from, found.sure) = (StatusSource::Registry, sure || found.sure);
        }
    };
    if found.state == SessionState::Ended {
        if ahead {
            return;
        }
        // Somebody opened it again.
        let state = if says == RegistryStatus::Busy {
            SessionState::Working
        } else {
            SessionState::WaitingForInput
        };
        *found = StatusFinding {
            sure,
            ..StatusFinding::new(state, entry.since, StatusSource::Registry)
        };
        return;
    }
    match says {
        RegistryStatus::Busy if found.sticks || found.state == SessionState::Error => {
            if !ahead {
                *found = StatusFinding {
                    sure,
                    pending: found.pending,
                    ..StatusFinding::new(SessionState::Working, entry.since, StatusSource::Registry)
                };
            }
        }
        RegistryStatus::Busy if found.is_rest() => {
            // A text alone may be followed by a call; that a turn is over is said otherwise.
            if !(ahead && found.sure) {
                let since = found.since.max(entry.since);
                *found = StatusFinding {
                    sure,
                    ..StatusFinding::new(SessionState::Working, since, StatusSource::Registry)
                };
            }
        }
        RegistryStatus::Busy => by_registry(found),
        RegistryStatus::Idle if found.is_rest() => by_registry(found),
        RegistryStatus::Idle if found.state == SessionState::Error => {}
        RegistryStatus::Idle => {
            if !ahead {
                *found = StatusFinding {
                    sure,
                    ..StatusFinding::new(
                        SessionState::WaitingForInput,
                        entry.since,
                        StatusSource::Registry,
                    )
                };
            }
        }
        RegistryStatus::Waiting if found.sticks => by_registry(found),
        RegistryStatus::Waiting => {
            let call = found.pending.map(|at| &session.calls[at as usize]);
            if ahead && call.is_none() {
                return;
            }
            let waits = call.map(|call| WaitReason {
                tool: Some(session.text(call.tool).to_owned()),
                subject: session.subject(call).map(str::to_owned),
                call: Some(session.call_id(call).to_owned()),
                ..WaitReason::default()
            });
            *found = StatusFinding {
                sure,
                sticks: true,
                pending: found.pending,
                waits,
                ..StatusFinding::new(
                    SessionState::WaitingForApproval,
                    entry.since,
                    StatusSource::Registry,
                )
            };
        }
    }
}

/// When the limit of a failure at this time is over.
fn resets(reset: Option<&LimitReset>, at: Option<Time>, signals: &StatusSignals) -> Option<Time> {
    reset?.after(at?, signals.zones.0)
}
