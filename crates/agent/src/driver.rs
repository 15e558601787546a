//! A session at work: commands in, notices out, and in between the machine's effects done.
//!
//! Everything meets in one channel: what a person wants, what the model says, what calls
//! return. One thread reads it, asks the machine, and does what it says. A front end sends
//! [`SessionCommand`]s and is told [`SessionNotice`]s; it never touches the transcript.

mod handle;
mod prompt_preparation;
mod run_usage;
mod session_commands;
mod session_protocol;
mod setup;
mod shared_session;

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::json;
use unspool_model::entry_writer::NewEntry;
use unspool_model::time::Time;
use unspool_store::error::StoreError;

use crate::api::client::{RunningRequest, StreamItem};
use crate::api::model;
use crate::compaction;
use crate::file_history::FileHistory;
use crate::permission::PermissionPolicy;
use crate::state_machine::{
    SubmittedPrompt, TurnContinueReason, TurnEffect, TurnEnding, TurnEvent, TurnLimits,
    TurnStateMachine,
};
use crate::stop::StopSignal;
use crate::tool::ToolCallRequest;
use crate::tool_call::FinishedCall;
use crate::tools;
use crate::transcript_writer::{TranscriptWriter, new_id};

use prompt_preparation::{PromptPreparation, WaitingPrompt};

pub use handle::{SessionCommandSender, SessionHandle, start};
pub use run_usage::RunUsage;
pub use session_protocol::{
    AskingAgent, QuestionAnswer, QuestionKind, SessionCommand, SessionNotice,
};
pub use setup::{SessionCustomizations, SessionDirs, SessionSetup};
pub(crate) use shared_session::{DriverMessage, SharedSession, catch_panic, lock};

/// What a sub-agent works for, and who it is.
pub(crate) struct SubAgentParent {
    pub(crate) shared: Arc<SharedSession>,
    /// The call that started it.
    pub(crate) call: String,
    pub(crate) agent: AskingAgent,
}

/// A session at work.
pub(crate) struct SessionDriver {
    pub(crate) shared: Arc<SharedSession>,
    machine: TurnStateMachine,
    events: Receiver<DriverMessage>,
    notices: Box<dyn FnMut(SessionNotice) + Send>,
    asking: Option<RunningRequest>,
    /// Counts what was begun, so that late words of what was stopped are not heard.
    round: u64,
    stop: StopSignal,
    questions: HashMap<u64, Sender<QuestionAnswer>>,
    began: Instant,
    closing: bool,
    budget: Option<f64>,
    source: Option<String>,
    history: Option<PathBuf>,
    begins: &'static str,
    stays: bool,
    /// Texts that go with the next prompt.
    context: Vec<String>,
    /// What is done before something can be said, and how often that was.
    preparing: Option<PromptPreparation>,
    prepared: u64,
    /// What was said in the meantime.
    waiting: VecDeque<WaitingPrompt>,
    /// What was not said, for whoever hears of the end.
    unsaid: Vec<SubmittedPrompt>,
    active: Arc<AtomicU64>,
    broken: bool,
    agent: Option<String>,
    /// What is allowed when the command that widened it is over.
    narrow: Option<PermissionPolicy>,
    /// The model of the session, while a command uses another.
    own_model: Option<String>,
    /// A command of the person's own that runs, and its id.
    own: Option<(StopSignal, String)>,
    /// How the last turn ended.
    pub(crate) ending: Option<TurnEnding>,
}

impl SessionDriver {
    pub(crate) fn new(
        setup: SessionSetup,
        above: Option<SubAgentParent>,
        sender: Sender<DriverMessage>,
        events: Receiver<DriverMessage>,
        notices: Box<dyn FnMut(SessionNotice) + Send>,
    ) -> SessionDriver {
        let window = model::window(&setup.frame.model, 0, &setup.prices);
        let limits = TurnLimits {
            turns: setup.turns,
            window,
            compacts: setup.compacts,
        };
        let mut machine = TurnStateMachine::new(limits, reads);
        machine.filled = setup.record.filled();
        let session = setup.record.face().session.clone();
        let beside = beside(&setup.place.config, &setup.record, &session);
        let copies = setup.place.config.join("file-history").join(&session);
        let (above, asking, agent) = match above {
            Some(above) => (Some(above.shared), Some(above.agent), Some(above.call)),
            None => (None, None, None),
        };
        let shared = SharedSession {
            history: Mutex::new(FileHistory::new(copies, &setup.place.project)),
            cwd: Mutex::new(setup.record.cwd.clone()),
            record: Mutex::new(setup.record),
            policy: Mutex::new(setup.policy),
            hooks: setup.hooks,
            place: setup.place,
            kept: setup.kept,
            lore: Mutex::new(setup.lore),
            more: setup.more,
            env: setup.env,
            fence: setup.fence,
            client: setup.client,
            frame: Mutex::new(setup.frame),
            events: Mutex::new(sender),
            asks: setup.asks,
            session,
            beside,
            above,
            agent: asking,
            spent: Mutex::default(),
            prices: setup.prices,
        };
        SessionDriver {
            shared: Arc::new(shared),
            machine,
            events,
            notices,
            asking: None,
            round: 0,
            stop: StopSignal::new(),
            questions: HashMap::new(),
            began: Instant::now(),
            closing: false,
            budget: setup.budget,
            source: setup.source,
            history: setup.history,
            begins: setup.begins,
            stays: setup.stays,
            context: Vec::new(),
            preparing: None,
            prepared: 0,
            waiting: VecDeque::new(),
            unsaid: Vec::new(),
            own_model: None,
            active: Arc::default(),
            broken: false,
            agent,
            narrow: None,
            own: None,
            ending: None,
        }
    }

    /// Hooks of its end.
    fn close(&mut self) {
        if self.agent.is_some() {
            return;
        }
        let mut input = self.shared.about("SessionEnd");
        input["reason"] = "other".into();
        let said = self
            .shared
            .hooks
            .run("SessionEnd", Some("other"), &input, &StopSignal::new());
        for text in said.errors {
            self.tell(SessionNotice::Warn(text));
        }
    }

    /// Works until it is closed; `outer` stops it from outside.
    pub(crate) fn run(&mut self, outer: Option<&StopSignal>) {
        if self.agent.is_none() {
            let now = Time(Timestamp::now().as_millisecond());
            let cold = lock(&self.shared.record).cold(now);
            cold.into_iter()
                .for_each(|cold| self.tell(SessionNotice::Cold(cold)));
        }
        self.open();
        let step = Duration::from_millis(50);
        let mut told = false;
        while !(self.closing && self.is_idle()) {
            let step = if outer.is_some() { step } else { LOOK };
            match self.events.recv_timeout(step) {
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) if outer.is_none() => self.look(),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if !told && outer.is_some_and(StopSignal::is_told) {
                told = true;
                self.closing = true;
                self.step(TurnEvent::Interrupt);
            }
        }
        self.stop.tell();
        self.asking = None;
        self.close();
        if self.agent.is_none() {
            self.shared.kept.end();
        }
        // Calls that were told to stop are waited for, but not for ever.
        let end = Instant::now() + Duration::from_secs(2);
        while self.active.load(Ordering::Acquire) > 0 && Instant::now() < end {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Something in the background may have ended while nothing else goes on.
    fn look(&mut self) {
        if !self.is_idle() || self.broken {
            return;
        }
        let news = self.shared.kept.news();
        if !news.is_empty() {
            self.began = Instant::now();
            self.step(TurnEvent::Submit(SubmittedPrompt {
                content: news.join("\n").into(),
                id: new_id(),
                mode: None,
                source: Some("system".to_owned()),
                context: Vec::new(),
            }));
        }
    }

    /// A turn begins now.
    fn begin_turn(&mut self) {
        self.began = Instant::now();
        self.broken = false;
        self.stop = StopSignal::new();
        lock(&self.shared.record).look_around();
    }

    fn tell(&mut self, notice: SessionNotice) {
        (self.notices)(notice);
    }

    fn take(&mut self, message: DriverMessage) {
        match message {
            DriverMessage::Command(command) => self.command(command),
            DriverMessage::Item(round, item) if round == self.round => {
                self.hear(&item);
                self.step(TurnEvent::Item(item));
            }
            DriverMessage::Ran(round, call, done) if round == self.round => {
                let FinishedCall {
                    outcome,
                    halt,
                    later,
                } = done;
                for text in later {
                    self.machine.say_later(text, None);
                }
                for text in outcome.also.clone() {
                    self.machine.say_later(text, Some(call.id.clone()));
                }
                self.tell(SessionNotice::CallEnded {
                    call: call.clone(),
                    outcome: outcome.clone(),
                });
                let call = call.id;
                self.step(TurnEvent::Ran {
                    call,
                    outcome,
                    halt,
                });
            }
            DriverMessage::Deadline(round) if round == self.round => self.step(TurnEvent::Deadline),
            DriverMessage::Compacted(round, made) if round == self.round => self.step(match made {
                Ok(summary) => TurnEvent::Compacted {
                    text: summary.text,
                    before: summary.before,
                    ms: summary.ms,
                    kept: summary.kept.map(|kept| (kept, summary.kept_tokens)),
                },
                Err(why) => TurnEvent::NotCompacted(why),
            }),
            DriverMessage::MayStop(round, reason) if round == self.round => {
                self.step(TurnEvent::MayStop(reason));
            }
            DriverMessage::Prepared(number, prepared) => self.take_prepared(number, *prepared),
            DriverMessage::Ask {
                ask,
                call,
                what,
                agent,
                reply,
            } => {
                self.questions.insert(ask, reply);
                self.notify(&call, &what);
                self.tell(SessionNotice::Ask {
                    ask,
                    call,
                    what,
                    agent,
                });
            }
            DriverMessage::Withdraw(ask) => {
                if self.questions.remove(&ask).is_some() {
                    self.tell(SessionNotice::Withdrawn { ask });
                }
            }
            DriverMessage::Tell(notice) => self.tell(notice),
            DriverMessage::News => self.look(),
            DriverMessage::Shell(call, outcome) => self.shell_done(call, outcome),
            // Late words of something that was stopped.
            DriverMessage::Item(..)
            | DriverMessage::Ran(..)
            | DriverMessage::Deadline(_)
            | DriverMessage::Compacted(..)
            | DriverMessage::MayStop(..) => {}
        }
    }

    /// Hooks hear that somebody is waited for; nobody waits for the hooks.
    fn notify(&self, call: &ToolCallRequest, what: &QuestionKind) {
        if !self.shared.hooks.has("Notification") {
            return;
        }
        let (kind, message) = match what {
            QuestionKind::Permission { .. } => (
                "permission_prompt",
                format!("Permission is needed to use {}", call.name),
            ),
            QuestionKind::Question => (
                "elicitation_dialog",
                "A question waits for an answer".into(),
            ),
            QuestionKind::Plan => ("permission_prompt", "A plan waits for approval".to_owned()),
        };
        let mut input = self.shared.about("Notification");
        input["message"] = message.into();
        input["notification_type"] = kind.into();
        let (shared, stop) = (Arc::clone(&self.shared), self.stop.clone());
        thread::spawn(move || {
            let said = shared.hooks.run("Notification", Some(kind), &input, &stop);
            for error in said.errors {
                shared.send(DriverMessage::Tell(SessionNotice::Warn(error)));
            }
        });
    }

    /// What the front end is told while the model speaks.
    fn hear(&mut self, item: &StreamItem) {
        match item {
            StreamItem::Raw(event) => self.tell(SessionNotice::Raw(event.clone())),
            StreamItem::Text(text) => self.tell(SessionNotice::Text(text.clone())),
            StreamItem::Thinking(text) => self.tell(SessionNotice::Thinking(text.clone())),
            StreamItem::Retry {
                trouble,
                tries,
                most,
                wait,
            } => self.tell(SessionNotice::Retry {
                tries: *tries,
                most: *most,
                wait: *wait,
                status: trouble.status(),
                error: trouble.error.clone(),
                message: trouble.message.clone(),
            }),
            StreamItem::Ended(message, _) => {
                let spent = {
                    let mut spent = lock(&self.shared.spent);
                    spent.add(&message.model, &message.usage, &self.shared.prices);
                    spent.clone()
                };
                if let Some(above) = &self.shared.above {
                    lock(&above.top().spent).add(
                        &message.model,
                        &message.usage,
                        &self.shared.prices,
                    );
                }
                self.machine.spent = self.budget.is_some_and(|most| spent.reaches(most));
                let filled = crate::state_machine::context(&message.usage);
                let window = self.machine.limits.window;
                self.tell(SessionNotice::Usage {
                    filled,
                    window,
                    spent,
                });
            }
            StreamItem::Began(_)
            | StreamItem::Block(..)
            | StreamItem::Cut(_)
            | StreamItem::Failed(_) => {}
        }
    }

    fn step(&mut self, event: TurnEvent) {
        for effect in self.machine.step(event) {
            if self.broken {
                return;
            }
            self.act(effect);
        }
    }

    /// Does one thing.
    fn act(&mut self, effect: TurnEffect) {
        match effect {
            TurnEffect::Append(entry) => drop(self.append(entry)),
            TurnEffect::Ask => self.ask(),
            TurnEffect::Hush => {
                self.round += 1;
                self.asking = None;
                self.stop.tell();
            }
            TurnEffect::Run(call) => self.call(call),
            TurnEffect::StopCalls => self.stop.tell(),
            TurnEffect::Soon => {
                let (shared, round) = (Arc::clone(&self.shared), self.round);
                thread::spawn(move || {
                    thread::sleep(GRACE);
                    shared.send(DriverMessage::Deadline(round));
                });
            }
            TurnEffect::Compact { trigger, words } => self.compact(trigger, words),
            TurnEffect::Closing { text, again } => self.ask_to_close(text, again),
            TurnEffect::End(ending) => self.finish(ending),
            TurnEffect::Queued(count) => self.tell(SessionNotice::Queued(count)),
        }
    }

    /// Writes a line; false if that is not possible, which ends the turn.
    fn append(&mut self, entry: NewEntry) -> bool {
        let prompts = matches!(entry, NewEntry::Prompt { .. });
        let written = self.shared.add(entry);
        let written = match written {
            Ok(written) => written,
            Err(error) => {
                self.unwritten(&error);
                return false;
            }
        };
        let (uuid, time) = (written.uuid.clone(), written.time);
        self.tell(SessionNotice::Line {
            json: written.line,
            uuid: written.uuid,
            agent: self.agent.clone(),
        });
        if prompts && self.own.is_none() && self.shared.above.is_none() {
            let entry = lock(&self.shared.history).begin(&uuid, time);
            return self.append(entry);
        }
        true
    }

    /// The transcript cannot be written. Nothing goes on that would not be remembered.
    fn unwritten(&mut self, error: &StoreError) {
        self.broken = true;
        self.round += 1;
        self.asking = None;
        self.stop.tell();
        let limits = self.machine.limits.clone();
        let filled = self.machine.filled;
        self.machine = TurnStateMachine::new(limits, reads);
        self.machine.filled = filled;
        self.tell(SessionNotice::Unwritten {
            why: error.to_string(),
            hint: error
                .hint()
                .unwrap_or("free disk space or set CLAUDE_CONFIG_DIR to another directory, then resume with `--continue`")
                .to_owned(),
        });
    }

    /// Tools from elsewhere that are there now. They stand behind the others and in the order
    /// they came, so that what the API remembers of the request stays of use. A sub-agent has
    /// what it was given.
    fn offer_more(&self) {
        let Some(more) = self.shared.more.as_ref().filter(|_| self.agent.is_none()) else {
            return;
        };
        let mut offers = more.offers();
        offers.sort_by(|one, other| one.name.cmp(&other.name));
        let policy = lock(&self.shared.policy);
        let mut frame = lock(&self.shared.frame);
        for offer in offers {
            let known = frame.tools.iter().any(|tool| tool["name"] == offer.name);
            if !known && policy.offers(&offer.name) {
                frame.tools.push(json!({
                    "name": offer.name, "description": offer.description, "input_schema": offer.schema,
                }));
            }
        }
    }

    fn ask(&mut self) {
        if self.agent.is_none() {
            for text in self.shared.kept.news() {
                let entry = NewEntry::Meta {
                    content: text.into(),
                    id: None,
                    call: None,
                };
                if !self.append(entry) {
                    return;
                }
            }
        }
        self.offer_more();
        self.round += 1;
        self.stop = StopSignal::new();
        let ask = {
            let record = lock(&self.shared.record);
            lock(&self.shared.frame).ask(&record)
        };
        let Some(ask) = ask else {
            let trouble = crate::api::ApiError::new(
                crate::api::retry::ApiErrorKind::Cut,
                "the transcript contains no messages to send",
            );
            return self.step(TurnEvent::Item(StreamItem::Failed(trouble)));
        };
        self.tell(SessionNotice::Asking);
        let (shared, round) = (Arc::clone(&self.shared), self.round);
        let sink = move |item| shared.send(DriverMessage::Item(round, item));
        self.asking = Some(self.shared.client.start(ask, sink));
    }

    fn call(&mut self, call: ToolCallRequest) {
        self.tell(SessionNotice::CallBegan(call.clone()));
        let (shared, stop, round) = (Arc::clone(&self.shared), self.stop.clone(), self.round);
        let active = Arc::clone(&self.active);
        active.fetch_add(1, Ordering::AcqRel);
        thread::spawn(move || {
            let made = catch_panic(|| crate::tool_call::run_call(&shared, &call, &stop));
            // A tool that breaks must not leave its call without an answer.
            let done = made.unwrap_or_else(FinishedCall::broken);
            active.fetch_sub(1, Ordering::AcqRel);
            shared.send(DriverMessage::Ran(round, call, done));
        });
    }

    fn compact(&mut self, trigger: &'static str, words: Option<String>) {
        self.round += 1;
        self.stop = StopSignal::new();
        self.tell(SessionNotice::Compacting {
            auto: trigger == "auto",
        });
        let (shared, stop, round) = (Arc::clone(&self.shared), self.stop.clone(), self.round);
        let filled = self.machine.filled;
        thread::spawn(move || {
            let made = catch_panic(|| {
                compaction::summarize_conversation(
                    &shared,
                    trigger,
                    words.as_deref(),
                    filled,
                    &stop,
                )
            })
            .unwrap_or_else(|| Err("internal error".to_owned()));
            shared.send(DriverMessage::Compacted(round, made));
        });
    }

    /// Asks hooks whether the turn may end.
    fn ask_to_close(&mut self, text: String, again: bool) {
        let (shared, stop, round) = (Arc::clone(&self.shared), self.stop.clone(), self.round);
        let (agent, stays) = (self.agent.is_some(), self.stays);
        thread::spawn(move || {
            let news = match stays {
                true => when_agents_are_done(&shared, &stop),
                false => Vec::new(),
            };
            if !news.is_empty() {
                let reason = Some(TurnContinueReason::News(news));
                return shared.send(DriverMessage::MayStop(round, reason));
            }
            let event = if agent { "SubagentStop" } else { "Stop" };
            let mut input = shared.about(event);
            input["stop_hook_active"] = again.into();
            input["last_assistant_message"] = text.into();
            let said = shared.hooks.run(event, None, &input, &stop);
            if !stop.is_told() {
                crate::tool_call::note_hooks(&shared, event, None, &said.ran);
            }
            for error in said.errors {
                shared.send(DriverMessage::Tell(SessionNotice::Warn(error)));
            }
            // A hook that never lets go would never end: once is enough.
            let block = said.block.filter(|_| said.stop.is_none());
            shared.send(DriverMessage::MayStop(
                round,
                block.map(TurnContinueReason::Hook),
            ));
        });
    }

    fn finish(&mut self, mut ending: TurnEnding) {
        if let Some(mut narrow) = self.narrow.take() {
            let mut policy = lock(&self.shared.policy);
            // Only rules go; what somebody set in the meantime stays.
            let _ = narrow.set_mode(policy.mode());
            *policy = narrow;
        }
        if let Some(before) = self.own_model.take() {
            lock(&self.shared.frame).model = before;
        }
        ending.unsaid.append(&mut self.unsaid);
        let time = self.began.elapsed();
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        if ending.turns > 0 && self.agent.is_none() {
            let messages = lock(&self.shared.record).session().map_or(0, |session| {
                session
                    .records
                    .iter()
                    .filter(|record| record.is_conversation())
                    .count()
            });
            let messages = messages as u64;
            let text = self.machine.asked().to_owned();
            let written = self.append(NewEntry::TurnDuration { ms, messages })
                && self.append(NewEntry::LastPrompt {
                    text,
                    leaf: None,
                    explicit: false,
                });
            if !written {
                return;
            }
        }
        self.ending = Some(ending.clone());
        self.tell(SessionNotice::Ended { ending, time });
    }
}

/// How often somebody looks whether something ended in the background.
const LOOK: Duration = Duration::from_secs(1);

/// What sub-agents in the background found out, when all of them have ended.
fn when_agents_are_done(shared: &SharedSession, stop: &StopSignal) -> Vec<String> {
    if !shared.kept.has_agents() {
        return Vec::new();
    }
    while shared.kept.agents_work() {
        if stop.wait(Duration::from_millis(20)) {
            return Vec::new();
        }
    }
    shared.kept.news()
}

/// How long calls that were told to stop are waited for.
const GRACE: Duration = Duration::from_millis(150);

/// Calls that change nothing may run side by side; sub-agents, too: each has its own file.
fn reads(call: &ToolCallRequest) -> bool {
    if matches!(call.name.as_str(), "Agent" | "Task") {
        return true;
    }
    tools::named(&call.name).is_some_and(|tool| tool.only_reads(&call.input))
}

/// The folder beside the transcript.
fn beside(_config: &Path, record: &TranscriptWriter, session: &str) -> PathBuf {
    let folder = record.path().parent().unwrap_or(Path::new("."));
    match &record.face().agent {
        // Sub-agents share the folder of their session.
        Some(_) => folder.parent().unwrap_or(folder).to_owned(),
        None => folder.join(session),
    }
}
