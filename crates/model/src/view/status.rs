//! What a session is doing, and how that is known.
//!
//! Four sources, in order of trust: what hooks told, what the client's registry says, the lines
//! of the transcript, and whether the process lives. What is newer beats what is older: a prompt
//! after a stop means work, a result after a request for permission means that it was given. A
//! session that waits for an answer waits until there is one, however long that takes; any other
//! is idle after five minutes without a sign.
//!
//! Nothing here looks around or at a clock: [`Signals`] are gathered elsewhere, `now` is given.

mod hooks;
mod transcript;
pub(in crate::view) mod work;

use crate::entry::failure::Reset;
use crate::hook::Event;
use crate::session::{Index, Role, Session};
use crate::time::Time;
use hooks::Heard;

pub use work::Crew;

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
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

impl Signals {
    /// Whether the client of the session lives, if that can be seen.
    pub fn alive(&self) -> Option<bool> {
        match &self.registry {
            Registry::Entry(entry) => entry.alive,
            Registry::Unknown | Registry::Missing => None,
        }
    }

    /// What is known about one of its sub-agents: what hooks told about that, and whether the
    /// client lives.
    pub fn of_agent(&self, id: &str) -> Signals {
        let own = self
            .hooks
            .iter()
            .filter(|signal| signal.event.agent.as_deref() == Some(id));
        let hooks = own.cloned().map(|mut signal| {
            signal.event.agent = None;
            signal
        });
        let registry = match &self.registry {
            Registry::Entry(entry) => Registry::Entry(Entry {
                says: None,
                ..entry.clone()
            }),
            other => other.clone(),
        };
        Signals {
            hooks: hooks.collect(),
            registry,
            zones: self.zones,
            job: None,
        }
    }
}

impl State {
    /// All of them, those first that need somebody.
    pub const ALL: [State; 7] = [
        State::WaitingForApproval,
        State::WaitingForInput,
        State::Error,
        State::Working,
        State::Compacting,
        State::Idle,
        State::Ended,
    ];

    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            State::Working => "working",
            State::WaitingForApproval => "waiting_for_approval",
            State::WaitingForInput => "waiting_for_input",
            State::Idle => "idle",
            State::Compacting => "compacting",
            State::Error => "error",
            State::Ended => "ended",
        }
    }

    /// The state with this name.
    pub fn named(name: &str) -> Option<State> {
        State::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// What a session wants from a person, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// It cannot go on without the person: a permission, a question, an error.
    You,
    /// It is done; the person's turn.
    Turn,
    /// Nothing: it is at work.
    Working,
    /// Nothing: it is at rest.
    Rest,
}

impl Need {
    /// What a session in this state wants; `asks` says whether it has asked a question, which
    /// holds everything up where a turn that is over does not.
    pub fn of(state: State, asks: bool) -> Need {
        match state {
            State::WaitingForApproval | State::Error => Need::You,
            State::WaitingForInput if asks => Need::You,
            State::WaitingForInput => Need::Turn,
            State::Working | State::Compacting => Need::Working,
            State::Idle | State::Ended => Need::Rest,
        }
    }

    /// The word in rows.
    pub fn word(self) -> &'static str {
        match self {
            Need::You => "you",
            Need::Turn => "waiting",
            Need::Working => "working",
            Need::Rest => "idle",
        }
    }

    /// In two words.
    pub fn name(self) -> &'static str {
        match self {
            Need::You => "needs you",
            Need::Turn => "your turn",
            Need::Working => "working",
            Need::Rest => "idle",
        }
    }

    /// How many sessions there are of it: `1 needs you`, `2 need you`.
    pub fn counted(self, count: usize) -> String {
        match (self, count) {
            (Need::You, 1) => "1 needs you".to_owned(),
            (Need::You, many) => format!("{many} need you"),
            (other, count) => format!("{count} {}", other.name()),
        }
    }
}

/// How a state is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A hook told it.
    Hook,
    /// The client's registry of running sessions says so.
    Registry,
    /// The lines of the transcript say so.
    Transcript,
    /// The process of the client lives, or does not.
    Process,
}

impl Source {
    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            Source::Hook => "hook",
            Source::Registry => "registry",
            Source::Transcript => "transcript",
            Source::Process => "process",
        }
    }
}

/// What a session waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
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
pub struct Status {
    /// The state.
    pub state: State,
    /// Since when.
    pub since: Option<Time>,
    /// How that is known.
    pub from: Source,
    /// Whether it is certain; if not, it is the likeliest.
    pub sure: bool,
    /// The last call without a result, as an index of calls, while it may run.
    pub pending: Option<Index>,
    /// What a person is asked for.
    pub waits: Option<Waits>,
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
pub struct Signals {
    /// What hooks told, oldest first; those of sub-agents too.
    pub hooks: Vec<Signal>,
    /// What the client's registry says.
    pub registry: Registry,
    /// How far zones are ahead of UTC.
    pub zones: Zones,
    /// What the client keeps about it as a session in the background.
    pub job: Option<Job>,
}

/// A session in the background, which no terminal shows: what the client's daemon keeps of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
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

impl Job {
    /// What its state means, in the terms of the registry; none for a word nobody has described.
    pub fn entry(&self) -> Option<Entry> {
        let (says, alive) = match self.state.as_str() {
            "working" | "running" | "busy" | "starting" => (Some(Says::Busy), None),
            "blocked" | "waiting" | "needs_input" | "needs-input" => (Some(Says::Waiting), None),
            "idle" => (Some(Says::Idle), None),
            "done" | "completed" | "stopped" | "failed" | "killed" | "crashed" => {
                (None, Some(false))
            }
            _ => return None,
        };
        Some(Entry {
            says,
            since: self.since,
            alive,
        })
    }
}

/// What a hook told, and when.
#[derive(Clone, Debug)]
pub struct Signal {
    /// When.
    pub at: Time,
    /// What.
    pub event: Event,
}

/// What the client's registry of running sessions says about one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Registry {
    /// There is none that we could see.
    #[default]
    Unknown,
    /// There is one, and the session is not in it.
    Missing,
    /// It names the session.
    Entry(Entry),
}

/// An entry in the client's registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What the client says it does.
    pub says: Option<Says>,
    /// Since when it says so.
    pub since: Option<Time>,
    /// Whether its process lives; none where that cannot be seen.
    pub alive: Option<bool>,
}

/// What a client says in the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// It waits at its prompt.
    Idle,
    /// It works.
    Busy,
    /// It asks something.
    Waiting,
}

impl Says {
    /// The word as the registry has it.
    pub fn named(name: &str) -> Option<Says> {
        match name {
            // At a shell, it waits as well.
            "idle" | "shell" => Some(Says::Idle),
            "busy" => Some(Says::Busy),
            "waiting" => Some(Says::Waiting),
            _ => None,
        }
    }
}

/// How many seconds a zone is ahead of UTC at a time; `None` is the zone of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Zones(pub fn(Option<&str>, Time) -> Option<i32>);

impl Default for Zones {
    fn default() -> Zones {
        Zones(|_, _| None)
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
pub fn status(session: &Session, signals: &Signals, now: Time) -> Status {
    family(session, &[], signals, now)
}

/// What the session is doing at `now`, given the files of its sub-agents.
pub fn family(session: &Session, agents: &[&Session], signals: &Signals, now: Time) -> Status {
    let heard = hooks::hear(session, agents, signals);
    let mut found = merge(session, &heard, signals);
    if let Some(wait) = heard.agent_wait.clone().filter(|_| !found.sticks) {
        // What a sub-agent must be allowed is asked where its session runs.
        found.sticks = true;
        (found.state, found.since) = (wait.state, Some(wait.at));
        (found.from, found.sure) = (Source::Hook, true);
        found.waits = Some(wait.waits);
    }
    let agents_last = agents.iter().filter_map(|agent| agent.last).max();
    let last = session.last.max(heard.last).max(agents_last);
    found.age(session, signals, heard.alive, last, now);
    let crew = work::Crew::from(session, agents, &heard, now);
    let mut status = found.status(session);
    if status.state != State::Ended {
        let rests = matches!(status.state, State::Idle | State::Error);
        status.agents = crew.background() + if rests { 0 } else { crew.foreground() };
        status.tasks = crew.tasks();
    }
    if session.role() == Role::Agent
        && status.state == State::WaitingForInput
        && status.waits.is_none()
    {
        // Nobody types to an agent: when it has answered, it is done.
        status.state = State::Idle;
    }
    status
}

/// What one source says, and then all of them together.
#[derive(Clone, Debug)]
struct Found {
    state: State,
    since: Option<Time>,
    from: Source,
    sure: bool,
    /// It waits for an answer: time changes nothing.
    sticks: bool,
    pending: Option<Index>,
    waits: Option<Waits>,
    error: Option<String>,
    resets: Option<Time>,
}

impl Found {
    fn new(state: State, since: Option<Time>, from: Source) -> Found {
        Found {
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
        matches!(self.state, State::WaitingForInput | State::Idle) && !self.sticks
    }

    /// What no sign for a while, and the process, make of it.
    fn age(
        &mut self,
        session: &Session,
        signals: &Signals,
        alive: Option<bool>,
        last: Option<Time>,
        now: Time,
    ) {
        let quiet = last
            .or(self.since)
            .is_none_or(|last| now.since(last) >= IDLE_MS);
        if self.state == State::Ended {
            return;
        }
        // What was stopped in the background has ended, however its last turn did.
        let stopped = signals.job.as_ref().and_then(Job::entry);
        let stopped = stopped.is_some_and(|entry| entry.alive == Some(false));
        let entry =
            matches!(&signals.registry, Registry::Entry(entry) if entry.alive == Some(true));
        if stopped && !entry {
            return self.end(Source::Registry, true, last);
        }
        if alive == Some(false) && self.state != State::Idle {
            return self.end(Source::Process, true, last);
        }
        let unfinished = self.sticks
            || !matches!(
                self.state,
                State::Idle | State::WaitingForInput | State::Error
            );
        let silent = last.is_none_or(|last| now.since(last) >= JUST_NOW);
        let missing = signals.registry == Registry::Missing && is_from(session, REGISTRY);
        if missing && unfinished && silent {
            return self.end(Source::Registry, false, last);
        }
        let limited = self.resets.is_some_and(|resets| resets > now);
        if !quiet || self.sticks || limited || self.state == State::Idle {
            return;
        }
        let busy =
            matches!(&signals.registry, Registry::Entry(entry) if entry.says == Some(Says::Busy));
        let works = matches!(self.state, State::Working | State::Compacting);
        if works && alive == Some(true) {
            // A build may be quiet for an hour; who interrupts it leaves a line.
            if !busy {
                (self.from, self.sure) = (Source::Process, false);
            }
            return;
        }
        self.sure &= !works;
        self.state = State::Idle;
        self.since = last.map(|last| Time(last.0.saturating_add(IDLE_MS as i64)));
    }

    fn end(&mut self, from: Source, sure: bool, last: Option<Time>) {
        self.state = State::Ended;
        (self.from, self.sure) = (from, sure);
        self.since = last.or(self.since);
        self.sticks = false;
        (self.pending, self.waits) = (None, None);
    }

    fn status(self, session: &Session) -> Status {
        let mut waits = self.waits;
        if let Some(waits) = &mut waits
            && waits.question.is_none()
            && waits.tool.as_deref() == Some(QUESTION)
        {
            waits.question.clone_from(&waits.subject);
        }
        let waiting = matches!(
            self.state,
            State::WaitingForApproval | State::WaitingForInput
        );
        // While the client tries again it works, and says what failed.
        let failed = matches!(self.state, State::Error | State::Working);
        let named = waits.as_ref().and_then(|waits| waits.call.as_deref());
        Status {
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
fn asks(tool: &str) -> Option<State> {
    match tool {
        QUESTION => Some(State::WaitingForInput),
        PLAN => Some(State::WaitingForApproval),
        _ => None,
    }
}

/// What hooks, transcript and registry say together.
fn merge(session: &Session, heard: &Heard, signals: &Signals) -> Found {
    let read = transcript::found(session, signals);
    let mut found = newer(session, heard, read);
    if let Registry::Entry(entry) = &signals.registry
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
fn newer(session: &Session, heard: &Heard, read: Found) -> Found {
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
    let slack = if told.state == State::Ended {
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
    if later || told.state == State::Compacting && transcript::compacted_since(session, told.since)
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
fn registered(session: &Session, entry: &Entry, says: Says, found: &mut Found) {
    let sure = entry.alive == Some(true);
    let ahead = found.since > entry.since;
    let by_registry = |found: &mut Found| {
        if found.from != Source::Hook {
            (found.from, found.sure) = (Source::Registry, sure || found.sure);
        }
    };
    if found.state == State::Ended {
        if ahead {
            return;
        }
        // Somebody opened it again.
        let state = if says == Says::Busy {
            State::Working
        } else {
            State::WaitingForInput
        };
        *found = Found {
            sure,
            ..Found::new(state, entry.since, Source::Registry)
        };
        return;
    }
    match says {
        Says::Busy if found.sticks || found.state == State::Error => {
            if !ahead {
                *found = Found {
                    sure,
                    pending: found.pending,
                    ..Found::new(State::Working, entry.since, Source::Registry)
                };
            }
        }
        Says::Busy if found.is_rest() => {
            // A text alone may be followed by a call; that a turn is over is said otherwise.
            if !(ahead && found.sure) {
                let since = found.since.max(entry.since);
                *found = Found {
                    sure,
                    ..Found::new(State::Working, since, Source::Registry)
                };
            }
        }
        Says::Busy => by_registry(found),
        Says::Idle if found.is_rest() => by_registry(found),
        Says::Idle if found.state == State::Error => {}
        Says::Idle => {
            if !ahead {
                *found = Found {
                    sure,
                    ..Found::new(State::WaitingForInput, entry.since, Source::Registry)
                };
            }
        }
        Says::Waiting if found.sticks => by_registry(found),
        Says::Waiting => {
            let call = found.pending.map(|at| &session.calls[at as usize]);
            if ahead && call.is_none() {
                return;
            }
            let waits = call.map(|call| Waits {
                tool: Some(session.text(call.tool).to_owned()),
                subject: session.subject(call).map(str::to_owned),
                call: Some(session.call_id(call).to_owned()),
                ..Waits::default()
            });
            *found = Found {
                sure,
                sticks: true,
                pending: found.pending,
                waits,
                ..Found::new(State::WaitingForApproval, entry.since, Source::Registry)
            };
        }
    }
}

/// When the limit of a failure at this time is over.
fn resets(reset: Option<&Reset>, at: Option<Time>, signals: &Signals) -> Option<Time> {
    reset?.after(at?, signals.zones.0)
}
