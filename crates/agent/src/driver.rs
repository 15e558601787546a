//! A session at work: commands in, notices out, and in between the machine's effects done.
//!
//! Everything meets in one channel: what a person wants, what the model says, what calls
//! return. One thread reads it, asks the machine, and does what it says. A front end sends
//! [`Command`]s and is told [`Notice`]s; it never touches the transcript.

mod spent;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use unspool_model::rewind::files_before;
use unspool_model::write::Entry;
use unspool_store::error::Error;

use crate::api::client::{Client, Item, Running};
use crate::api::model;
use crate::call::Done;
use crate::commands::Commands;
use crate::compact;
use crate::definitions::Definitions;
use crate::history::History;
use crate::hooks::Hooks;
use crate::machine::{Effect, Ending, Event, Limits, Machine, Prompt, Why};
use crate::memory::{Memory, Roots};
use crate::more::More;
use crate::permission::{Mode, Policy};
use crate::record::{Record, Written, new_id};
use crate::request::Frame;
use crate::sandbox::Fence;
use crate::stop::Stop;
use crate::tool::{Call, Content, Outcome};
use crate::tools::{self, Kept};

pub use spent::Spent;

/// What somebody wants.
#[derive(Clone, Debug)]
pub enum Command {
    /// Says something: begins a turn, or waits until the model can hear it.
    Submit {
        /// A text, or a list of blocks.
        content: Value,
        /// Texts for the model alone, such as what a slash command stands for.
        context: Vec<String>,
    },
    /// Stops what is going on.
    Interrupt,
    /// Answers [`Notice::Ask`].
    Answer {
        /// Which question.
        ask: u64,
        /// What is answered.
        answer: Answer,
    },
    /// From now on in this mode.
    Mode(Mode),
    /// From now on with these rules, and those of the session.
    Rules(Box<Policy>),
    /// From now on with this model, or the newest of this family.
    Model(String),
    /// Makes a summary of the conversation and goes on from that.
    Compact {
        /// What it should be about.
        words: Option<String>,
    },
    /// Goes back to before a prompt.
    Rewind {
        /// The id of its line.
        prompt: String,
        /// Files become what they were.
        files: bool,
        /// The conversation goes on from there.
        conversation: bool,
    },
    /// Runs a command of the person's own, without the model.
    Shell(String),
    /// Names the session.
    Title(String),
    /// Writes down a command that the front end answered itself, and its answer.
    Local {
        /// Such as `/model`.
        command: String,
        /// What was printed.
        output: String,
    },
    /// Ends the session when nothing is on its way any more.
    Close,
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// This once.
    Yes,
    /// And whatever these rules match, in this session.
    Always(Vec<String>),
    /// Not, and why; without a reason the turn ends.
    No(Option<String>),
    /// Another input than the model gave, and yes.
    Changed(Value),
    /// What was asked for, such as the answers to a questionnaire.
    Value(Value),
}

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// Whether a call may run, why that is asked, and the rules that would save the question.
    Permission {
        /// Why.
        why: String,
        /// The rules.
        always: Vec<String>,
    },
    /// The questions of AskUserQuestion.
    Question,
    /// The plan of ExitPlanMode.
    Plan,
}

/// What a front end is told.
#[derive(Clone, Debug)]
pub enum Notice {
    /// A line was written.
    Line {
        /// Its text.
        json: String,
        /// Its id.
        uuid: String,
        /// The sub-agent's call, if it is in the file of one.
        agent: Option<String>,
    },
    /// An event of the API, as it came.
    Raw(Value),
    /// More text of the model.
    Text(String),
    /// More thinking.
    Thinking(String),
    /// What was said since the last line does not count: it is asked again.
    Retry {
        /// How many tries failed.
        tries: u32,
        /// How many may.
        most: u32,
        /// When it is tried again.
        wait: Duration,
        /// The status, if there was an answer.
        status: Option<u16>,
        /// What kind of error.
        error: String,
        /// What was said.
        message: String,
    },
    /// A request goes out.
    Asking,
    /// An answer has ended: tokens in the context, and all that was spent.
    Usage {
        /// Tokens in the context.
        filled: u64,
        /// Tokens that fit.
        window: u64,
        /// What this run took.
        spent: Spent,
    },
    /// A call begins.
    CallBegan(Call),
    /// Something goes on in a call.
    Progress {
        /// The call.
        call: String,
        /// What.
        data: Value,
    },
    /// A call has ended.
    CallEnded {
        /// The call.
        call: Call,
        /// What came of it.
        outcome: Outcome,
    },
    /// A call was refused.
    Denied {
        /// The call.
        call: Call,
        /// Why.
        why: String,
    },
    /// Somebody has to answer.
    Ask {
        /// The number of the question.
        ask: u64,
        /// The call it is about.
        call: Call,
        /// What is asked.
        what: Asked,
    },
    /// How many prompts wait.
    Queued(usize),
    /// A summary is being made.
    Compacting {
        /// By itself, or because somebody wanted it.
        auto: bool,
    },
    /// The mode changed.
    Mode(Mode),
    /// The model changed.
    Model(String),
    /// Files, the conversation or both are as they were before a prompt.
    Rewound {
        /// What the prompt said.
        prompt: String,
        /// Files were brought back.
        files: bool,
        /// The conversation stands there now.
        conversation: bool,
    },
    /// Something to know.
    Warn(String),
    /// A turn is over.
    Ended {
        /// How.
        ending: Ending,
        /// How long it took.
        time: Duration,
    },
    /// The transcript cannot be written: the turn ended there.
    Unwritten {
        /// Why.
        why: String,
        /// What to do about it.
        hint: String,
    },
    /// The session is closed.
    Closed,
}

/// What a session needs.
pub struct Setup {
    /// The model's side.
    pub client: Client,
    /// The transcript.
    pub record: Record,
    /// What requests look like.
    pub frame: Frame,
    /// Who may do what.
    pub policy: Policy,
    /// What runs on events.
    pub hooks: Hooks,
    /// Where it works.
    pub place: Place,
    /// What is kept between calls.
    pub kept: Arc<Kept>,
    /// What people and the project wrote down.
    pub lore: Lore,
    /// Tools from elsewhere.
    pub more: Option<Arc<dyn More>>,
    /// What commands cannot leave.
    pub fence: Option<Fence>,
    /// How often the model is asked in one turn.
    pub turns: Option<u32>,
    /// Dollars that may be spent.
    pub budget: Option<f64>,
    /// Whether it makes room in the context by itself.
    pub compacts: bool,
    /// Whether somebody can be asked.
    pub asks: bool,
    /// Where prompts come from: `typed`, `sdk`.
    pub source: Option<String>,
    /// How it begins: `startup` or `resume`.
    pub begins: &'static str,
}

/// What people and the project wrote down for sessions.
#[derive(Clone, Debug)]
pub struct Lore {
    /// Slash commands and skills.
    pub commands: Commands,
    /// Kinds of sub-agents.
    pub agents: Definitions,
    /// Instructions.
    pub memory: Memory,
    /// Where they are looked for.
    pub roots: Roots,
    /// Whether somebody trusts the folder.
    pub trusted: bool,
}

/// Where a session works.
#[derive(Clone, Debug)]
pub struct Place {
    /// The folder it began in.
    pub project: PathBuf,
    /// More folders that belong to it.
    pub dirs: Vec<PathBuf>,
    /// The home folder.
    pub home: PathBuf,
    /// Where sessions are kept.
    pub config: PathBuf,
}

/// What comes in, from all sides.
pub(crate) enum Message {
    Command(Command),
    Item(u64, Item),
    Ran(u64, Call, Done),
    Ask(Call, Asked, Sender<Answer>),
    Tell(Notice),
    Deadline(u64),
    Compacted(u64, Result<compact::Summary, String>),
    MayStop(u64, Option<String>),
    Shell(Call, Outcome),
}

/// What the threads of a session share.
pub(crate) struct Shared {
    pub(crate) record: Mutex<Record>,
    pub(crate) history: Mutex<History>,
    pub(crate) policy: Mutex<Policy>,
    pub(crate) hooks: Hooks,
    pub(crate) place: Place,
    pub(crate) kept: Arc<Kept>,
    pub(crate) lore: Mutex<Lore>,
    pub(crate) more: Option<Arc<dyn More>>,
    pub(crate) fence: Option<Fence>,
    pub(crate) cwd: Mutex<PathBuf>,
    pub(crate) client: Client,
    pub(crate) frame: Mutex<Frame>,
    pub(crate) events: Mutex<Sender<Message>>,
    pub(crate) asks: bool,
    pub(crate) session: String,
    pub(crate) beside: PathBuf,
    /// The session that a sub-agent works for.
    pub(crate) above: Option<Arc<Shared>>,
    pub(crate) spent: Mutex<Spent>,
}

impl Shared {
    pub(crate) fn send(&self, message: Message) {
        // Nobody listens any more: the session is over.
        let _ = lock(&self.events).send(message);
    }

    pub(crate) fn add(&self, entry: Entry) -> Result<Written, Error> {
        lock(&self.record).add(entry)
    }

    /// The session itself, for its sub-agents.
    pub(crate) fn top(self: &Arc<Shared>) -> Arc<Shared> {
        let mut top = Arc::clone(self);
        while let Some(above) = top.above.clone() {
            top = above;
        }
        top
    }

    /// What hooks are told about every event.
    pub(crate) fn about(&self, event: &str) -> Value {
        let cwd = lock(&self.cwd).display().to_string();
        let path = lock(&self.record).path().display().to_string();
        let mode = lock(&self.policy).mode().name();
        json!({
            "session_id": self.session, "transcript_path": path, "cwd": cwd,
            "permission_mode": mode, "hook_event_name": event,
        })
    }
}

/// What a lock holds, also after somebody panicked with it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A session that runs on a thread of its own.
pub struct Handle {
    events: Sender<Message>,
    thread: Option<thread::JoinHandle<Spent>>,
}

/// Tells a session what somebody wants, from any thread.
#[derive(Clone)]
pub struct Remote(Sender<Message>);

impl Remote {
    /// Tells it. False if the session is over.
    pub fn send(&self, command: Command) -> bool {
        self.0.send(Message::Command(command)).is_ok()
    }
}

impl Handle {
    /// Tells it what somebody wants. False if it is over.
    pub fn send(&self, command: Command) -> bool {
        self.events.send(Message::Command(command)).is_ok()
    }

    /// Something to tell it from other threads with.
    pub fn remote(&self) -> Remote {
        Remote(self.events.clone())
    }

    /// Waits for its end: what was spent.
    pub fn join(mut self) -> Spent {
        let thread = self.thread.take();
        let _ = self.events.send(Message::Command(Command::Close));
        thread
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Nobody can tell it anything any more.
        let _ = self.events.send(Message::Command(Command::Interrupt));
        let _ = self.events.send(Message::Command(Command::Close));
    }
}

/// Starts a session. `notices` is called on its thread.
pub fn start(setup: Setup, notices: impl FnMut(Notice) + Send + 'static) -> Handle {
    let (sender, events) = channel();
    let remote = sender.clone();
    let thread = thread::spawn(move || {
        let mut driver = Driver::new(setup, None, sender, events, Box::new(notices));
        driver.run(None);
        let spent = lock(&driver.shared.spent).clone();
        (driver.notices)(Notice::Closed);
        spent
    });
    Handle {
        events: remote,
        thread: Some(thread),
    }
}

/// A session at work.
pub(crate) struct Driver {
    pub(crate) shared: Arc<Shared>,
    machine: Machine,
    events: Receiver<Message>,
    notices: Box<dyn FnMut(Notice) + Send>,
    asking: Option<Running>,
    /// Counts what was begun, so that late words of what was stopped are not heard.
    round: u64,
    stop: Stop,
    questions: HashMap<u64, Sender<Answer>>,
    began: Instant,
    closing: bool,
    budget: Option<f64>,
    source: Option<String>,
    begins: &'static str,
    /// Texts that go with the next prompt.
    context: Vec<String>,
    active: Arc<AtomicU64>,
    broken: bool,
    agent: Option<String>,
    /// What is allowed when the command that widened it is over.
    narrow: Option<Policy>,
    /// A command of the person's own that runs, and its id.
    own: Option<(Stop, String)>,
    /// How the last turn ended.
    pub(crate) ending: Option<Ending>,
}

impl Driver {
    pub(crate) fn new(
        setup: Setup,
        above: Option<(Arc<Shared>, String)>,
        sender: Sender<Message>,
        events: Receiver<Message>,
        notices: Box<dyn FnMut(Notice) + Send>,
    ) -> Driver {
        let window = model::window(&setup.frame.model, 0);
        let limits = Limits {
            turns: setup.turns,
            window,
            compacts: setup.compacts,
        };
        let mut machine = Machine::new(limits, reads);
        machine.filled = setup.record.filled();
        let session = setup.record.face().session.clone();
        let beside = beside(&setup.place.config, &setup.record, &session);
        let copies = setup.place.config.join("file-history").join(&session);
        let (above, agent) = match above {
            Some((above, call)) => (Some(above), Some(call)),
            None => (None, None),
        };
        let shared = Shared {
            history: Mutex::new(History::new(copies, &setup.place.project)),
            cwd: Mutex::new(setup.record.cwd.clone()),
            record: Mutex::new(setup.record),
            policy: Mutex::new(setup.policy),
            hooks: setup.hooks,
            place: setup.place,
            kept: setup.kept,
            lore: Mutex::new(setup.lore),
            more: setup.more,
            fence: setup.fence,
            client: setup.client,
            frame: Mutex::new(setup.frame),
            events: Mutex::new(sender),
            asks: setup.asks,
            session,
            beside,
            above,
            spent: Mutex::default(),
        };
        Driver {
            shared: Arc::new(shared),
            machine,
            events,
            notices,
            asking: None,
            round: 0,
            stop: Stop::new(),
            questions: HashMap::new(),
            began: Instant::now(),
            closing: false,
            budget: setup.budget,
            source: setup.source,
            begins: setup.begins,
            context: Vec::new(),
            active: Arc::default(),
            broken: false,
            agent,
            narrow: None,
            own: None,
            ending: None,
        }
    }

    /// Hooks of the session's beginning: what they say goes with the first prompt.
    fn open(&mut self) {
        if self.agent.is_some() {
            return;
        }
        let mut input = self.shared.about("SessionStart");
        input["source"] = self.begins.into();
        let said = self
            .shared
            .hooks
            .run("SessionStart", Some(self.begins), &input, &self.stop);
        for text in said.errors.into_iter().chain(said.system_message) {
            self.tell(Notice::Warn(text));
        }
        let texts = said.context.into_iter();
        self.context = texts
            .map(|text| format!("<system-reminder>\nSessionStart hook: {text}\n</system-reminder>"))
            .collect();
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
            .run("SessionEnd", Some("other"), &input, &Stop::new());
        for text in said.errors {
            self.tell(Notice::Warn(text));
        }
    }

    /// Works until it is closed; `outer` stops it from outside.
    pub(crate) fn run(&mut self, outer: Option<&Stop>) {
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
            if !told && outer.is_some_and(Stop::is_told) {
                told = true;
                self.closing = true;
                self.step(Event::Interrupt);
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
            self.step(Event::Submit(Prompt {
                content: news.join("\n").into(),
                id: new_id(),
                mode: None,
                source: Some("system".to_owned()),
                context: Vec::new(),
            }));
        }
    }

    fn tell(&mut self, notice: Notice) {
        (self.notices)(notice);
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Command(command) => self.command(command),
            Message::Item(round, item) if round == self.round => {
                self.hear(&item);
                self.step(Event::Item(item));
            }
            Message::Ran(round, call, done) if round == self.round => {
                let Done {
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
                self.tell(Notice::CallEnded {
                    call: call.clone(),
                    outcome: outcome.clone(),
                });
                let call = call.id;
                self.step(Event::Ran {
                    call,
                    outcome,
                    halt,
                });
            }
            Message::Deadline(round) if round == self.round => self.step(Event::Deadline),
            Message::Compacted(round, made) if round == self.round => self.step(match made {
                Ok(summary) => Event::Compacted {
                    text: summary.text,
                    before: summary.before,
                    ms: summary.ms,
                },
                Err(why) => Event::NotCompacted(why),
            }),
            Message::MayStop(round, reason) if round == self.round => {
                self.step(Event::MayStop(reason));
            }
            Message::Ask(call, what, reply) => self.question(call, what, reply),
            Message::Tell(notice) => self.tell(notice),
            Message::Shell(call, outcome) => self.shell_done(call, outcome),
            // Late words of something that was stopped.
            Message::Item(..)
            | Message::Ran(..)
            | Message::Deadline(_)
            | Message::Compacted(..)
            | Message::MayStop(..) => {}
        }
    }

    fn question(&mut self, call: Call, what: Asked, reply: Sender<Answer>) {
        if let Some(above) = &self.shared.above {
            above.send(Message::Ask(call, what, reply));
            return;
        }
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let ask = NEXT.fetch_add(1, Ordering::Relaxed);
        self.questions.insert(ask, reply);
        self.tell(Notice::Ask { ask, call, what });
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Submit { content, context } => self.submit(content, context),
            Command::Interrupt => {
                self.questions.clear();
                if let Some((stop, _)) = &self.own {
                    stop.tell();
                }
                self.step(Event::Interrupt);
            }
            Command::Answer { ask, answer } => {
                if let Some(reply) = self.questions.remove(&ask) {
                    let _ = reply.send(answer);
                }
            }
            Command::Mode(mode) => {
                let set = lock(&self.shared.policy).set_mode(mode);
                match set {
                    Ok(()) => self.tell(Notice::Mode(mode)),
                    Err(why) => self.tell(Notice::Warn(why)),
                }
            }
            Command::Rules(fresh) => {
                lock(&self.shared.policy).renew(&fresh);
                if let Some(narrow) = &mut self.narrow {
                    narrow.renew(&fresh);
                }
            }
            Command::Model(name) => {
                let name = model::named(&name);
                lock(&self.shared.frame).model.clone_from(&name);
                self.machine.limits.window = model::window(&name, 0);
                self.tell(Notice::Model(name));
            }
            Command::Compact { words } => {
                self.began = Instant::now();
                self.step(Event::Compact { words });
            }
            Command::Rewind {
                prompt,
                files,
                conversation,
            } => self.rewind(&prompt, files, conversation),
            Command::Shell(command) => self.shell(command),
            Command::Title(title) => drop(self.append(Entry::Title(title))),
            Command::Local { command, output } => {
                let name = command.trim_start_matches('/');
                let called = format!(
                    "<command-name>/{name}</command-name>\n            <command-message>{name}</command-message>\n            <command-args></command-args>"
                );
                let output = format!("<local-command-stdout>{output}</local-command-stdout>");
                for text in [called, output] {
                    if !self.append(Entry::LocalCommand(text)) {
                        break;
                    }
                }
            }
            Command::Close => self.closing = true,
        }
    }

    fn submit(&mut self, content: Value, mut context: Vec<String>) {
        if self.machine.is_idle() {
            self.began = Instant::now();
            self.broken = false;
            self.stop = Stop::new();
            lock(&self.shared.record).look_around();
        }
        context.append(&mut self.context);
        let content = match self.expanded(&content, &mut context) {
            Ok(expanded) => expanded.unwrap_or(content),
            Err(why) => {
                self.tell(Notice::Warn(why.clone()));
                if self.machine.is_idle() {
                    self.finish(Ending {
                        why: Why::Hook(why),
                        text: String::new(),
                        turns: 0,
                        unsaid: Vec::new(),
                    });
                }
                return;
            }
        };
        let mode = lock(&self.shared.policy).mode().name().to_owned();
        let mut prompt = Prompt {
            content,
            id: new_id(),
            mode: Some(mode),
            source: self.source.clone(),
            context: Vec::new(),
        };
        if self.agent.is_some() {
            prompt.mode = None;
        } else {
            let mut input = self.shared.about("UserPromptSubmit");
            input["prompt"] = prompt.text().into();
            let said = self
                .shared
                .hooks
                .run("UserPromptSubmit", None, &input, &self.stop);
            said.errors
                .into_iter()
                .for_each(|error| self.tell(Notice::Warn(error)));
            if let Some(message) = said.system_message {
                self.tell(Notice::Warn(message));
            }
            if let Some(why) = said.block.or(said.stop) {
                self.tell(Notice::Warn(format!("a hook refused the prompt: {why}")));
                if self.machine.is_idle() {
                    self.finish(Ending {
                        why: Why::Hook(why),
                        text: String::new(),
                        turns: 0,
                        unsaid: vec![prompt],
                    });
                }
                return;
            }
            let said = said.context.into_iter();
            context.extend(said.map(|text| {
                format!("<system-reminder>\nUserPromptSubmit hook: {text}\n</system-reminder>")
            }));
        }
        prompt.context = context;
        self.step(Event::Submit(prompt));
    }

    /// A slash command that somebody wrote: what stands in the line, and what the model reads.
    fn expanded(
        &mut self,
        content: &Value,
        context: &mut Vec<String>,
    ) -> Result<Option<Value>, String> {
        let Some(typed) = content.as_str().and_then(|text| text.strip_prefix('/')) else {
            return Ok(None);
        };
        if self.agent.is_some() {
            return Ok(None);
        }
        let (name, arguments) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
        let found = {
            let lore = lock(&self.shared.lore);
            let found = lore
                .commands
                .named(name)
                .filter(|command| command.for_person);
            found.cloned()
        };
        let Some(template) = found else {
            return Ok(None);
        };
        let done = crate::call::expand(&self.shared, &template, arguments, &self.stop)?;
        if !done.allowed_tools.is_empty() {
            let mut policy = lock(&self.shared.policy);
            let wider = policy.with(&done.allowed_tools);
            self.narrow
                .get_or_insert(std::mem::replace(&mut policy, wider));
        }
        if let Some(name) = done.model {
            lock(&self.shared.frame).model = model::named(&name);
        }
        context.insert(0, done.text);
        let line = format!(
            "<command-message>{0}</command-message>\n<command-name>/{0}</command-name>\n<command-args>{1}</command-args>",
            template.name,
            arguments.trim()
        );
        Ok(Some(line.into()))
    }

    fn rewind(&mut self, prompt: &str, files: bool, conversation: bool) {
        if !self.is_idle() {
            return self.tell(Notice::Warn(
                "nothing is taken back while something is going on".to_owned(),
            ));
        }
        let (before, kept, said) = {
            let record = lock(&self.shared.record);
            let loaded = record.loaded();
            let kept =
                loaded.and_then(|loaded| files_before(&loaded.session, &loaded.source, prompt));
            (record.before(prompt), kept, record.said(prompt))
        };
        let Some(parent) = before else {
            return self.tell(Notice::Warn(format!("there is no prompt `{prompt}`")));
        };
        if files {
            match kept {
                Some(kept) => {
                    let failed = lock(&self.shared.history).restore(&kept);
                    for why in failed {
                        self.tell(Notice::Warn(format!("not brought back: {why}")));
                    }
                }
                None => self.tell(Notice::Warn(
                    "no copies of files are known from then".to_owned(),
                )),
            }
        }
        if conversation {
            let written = self.append(Entry::LastPrompt {
                text: String::new(),
                leaf: parent.clone(),
                explicit: true,
            });
            if !written {
                return;
            }
            let mut record = lock(&self.shared.record);
            record.go_to(parent);
            self.machine.filled = record.filled();
        }
        self.tell(Notice::Rewound {
            prompt: said.unwrap_or_default(),
            files,
            conversation,
        });
    }

    fn is_idle(&self) -> bool {
        self.machine.is_idle() && self.own.is_none()
    }

    /// Runs a command of the person's own. What it says is there for the model's next answer.
    fn shell(&mut self, command: String) {
        if !self.is_idle() {
            return self.tell(Notice::Warn("wait until it is done, or stop it".to_owned()));
        }
        let id = new_id();
        let typed = format!("<bash-input>{command}</bash-input>");
        if !self.append(spoken(typed, &id)) {
            return;
        }
        let call = Call {
            id: format!("shell-{id}"),
            name: "Bash".to_owned(),
            input: json!({"command": command}),
        };
        self.tell(Notice::CallBegan(call.clone()));
        let stop = Stop::new();
        self.own = Some((stop.clone(), id));
        let shared = Arc::clone(&self.shared);
        thread::spawn(move || {
            let outcome = crate::call::own(&shared, &call, &stop);
            shared.send(Message::Shell(call, outcome));
        });
    }

    fn shell_done(&mut self, call: Call, outcome: Outcome) {
        let Some((_, id)) = self.own.take() else {
            return;
        };
        let field = |name: &str| outcome.result[name].as_str().map(str::to_owned);
        let (out, error) = match (&outcome.content, field("stdout")) {
            (_, Some(out)) => (out, field("stderr").unwrap_or_default()),
            (Content::Text(text), None) => (String::new(), text.clone()),
            (Content::Blocks(_), None) => Default::default(),
        };
        let text = format!("<bash-stdout>{out}</bash-stdout><bash-stderr>{error}</bash-stderr>");
        self.append(spoken(text, &id));
        self.tell(Notice::CallEnded { call, outcome });
    }

    /// What the front end is told while the model speaks.
    fn hear(&mut self, item: &Item) {
        match item {
            Item::Raw(event) => self.tell(Notice::Raw(event.clone())),
            Item::Text(text) => self.tell(Notice::Text(text.clone())),
            Item::Thinking(text) => self.tell(Notice::Thinking(text.clone())),
            Item::Retry {
                trouble,
                tries,
                most,
                wait,
            } => self.tell(Notice::Retry {
                tries: *tries,
                most: *most,
                wait: *wait,
                status: trouble.status(),
                error: trouble.error.clone(),
                message: trouble.message.clone(),
            }),
            Item::Ended(message, _) => {
                let spent = {
                    let mut spent = lock(&self.shared.spent);
                    spent.add(&message.model, &message.usage);
                    spent.clone()
                };
                if let Some(above) = &self.shared.above {
                    lock(&above.top().spent).add(&message.model, &message.usage);
                }
                self.machine.spent = self.budget.is_some_and(|most| spent.usd >= most);
                let filled = crate::machine::context(&message.usage);
                let window = self.machine.limits.window;
                self.tell(Notice::Usage {
                    filled,
                    window,
                    spent,
                });
            }
            Item::Began(_) | Item::Block(..) | Item::Cut(_) | Item::Failed(_) => {}
        }
    }

    fn step(&mut self, event: Event) {
        for effect in self.machine.step(event) {
            if self.broken {
                return;
            }
            self.act(effect);
        }
    }

    /// Does one thing.
    fn act(&mut self, effect: Effect) {
        match effect {
            Effect::Append(entry) => drop(self.append(entry)),
            Effect::Ask => self.ask(),
            Effect::Hush => {
                self.round += 1;
                self.asking = None;
                self.stop.tell();
            }
            Effect::Run(call) => self.call(call),
            Effect::StopCalls => self.stop.tell(),
            Effect::Soon => {
                let (shared, round) = (Arc::clone(&self.shared), self.round);
                thread::spawn(move || {
                    thread::sleep(GRACE);
                    shared.send(Message::Deadline(round));
                });
            }
            Effect::Compact { trigger, words } => self.compact(trigger, words),
            Effect::Closing { text, again } => self.ask_to_close(text, again),
            Effect::End(ending) => self.finish(ending),
            Effect::Queued(count) => self.tell(Notice::Queued(count)),
        }
    }

    /// Writes a line; false if that is not possible, which ends the turn.
    fn append(&mut self, entry: Entry) -> bool {
        let prompts = matches!(entry, Entry::Prompt { .. });
        let written = self.shared.add(entry);
        let written = match written {
            Ok(written) => written,
            Err(error) => {
                self.unwritten(&error);
                return false;
            }
        };
        let (uuid, time) = (written.uuid.clone(), written.time);
        self.tell(Notice::Line {
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
    fn unwritten(&mut self, error: &Error) {
        self.broken = true;
        self.round += 1;
        self.asking = None;
        self.stop.tell();
        let limits = self.machine.limits.clone();
        let filled = self.machine.filled;
        self.machine = Machine::new(limits, reads);
        self.machine.filled = filled;
        self.tell(Notice::Unwritten {
            why: error.to_string(),
            hint: error
                .hint()
                .unwrap_or("make room or name another folder with CLAUDE_CONFIG_DIR, then go on with `--continue`")
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
                let entry = Entry::Meta {
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
        self.stop = Stop::new();
        let ask = {
            let record = lock(&self.shared.record);
            lock(&self.shared.frame).ask(&record)
        };
        let Some(ask) = ask else {
            let trouble = crate::api::Trouble::new(
                crate::api::retry::Kind::Cut,
                "the transcript holds nothing that could be sent",
            );
            return self.step(Event::Item(Item::Failed(trouble)));
        };
        self.tell(Notice::Asking);
        let (shared, round) = (Arc::clone(&self.shared), self.round);
        let sink = move |item| shared.send(Message::Item(round, item));
        self.asking = Some(self.shared.client.start(ask, sink));
    }

    fn call(&mut self, call: Call) {
        self.tell(Notice::CallBegan(call.clone()));
        let (shared, stop, round) = (Arc::clone(&self.shared), self.stop.clone(), self.round);
        let active = Arc::clone(&self.active);
        active.fetch_add(1, Ordering::AcqRel);
        thread::spawn(move || {
            let made = std::panic::AssertUnwindSafe(|| crate::call::make(&shared, &call, &stop));
            // A tool that breaks must not leave its call without an answer.
            let done = std::panic::catch_unwind(made).unwrap_or_else(|_| Done::broken());
            active.fetch_sub(1, Ordering::AcqRel);
            shared.send(Message::Ran(round, call, done));
        });
    }

    fn compact(&mut self, trigger: &'static str, words: Option<String>) {
        self.round += 1;
        self.stop = Stop::new();
        self.tell(Notice::Compacting {
            auto: trigger == "auto",
        });
        let (shared, stop, round) = (Arc::clone(&self.shared), self.stop.clone(), self.round);
        let filled = self.machine.filled;
        thread::spawn(move || {
            let made = compact::make(&shared, trigger, words.as_deref(), filled, &stop);
            shared.send(Message::Compacted(round, made));
        });
    }

    /// Asks hooks whether the turn may end.
    fn ask_to_close(&mut self, text: String, again: bool) {
        let (shared, stop, round) = (Arc::clone(&self.shared), self.stop.clone(), self.round);
        let agent = self.agent.is_some();
        thread::spawn(move || {
            let event = if agent { "SubagentStop" } else { "Stop" };
            let mut input = shared.about(event);
            input["stop_hook_active"] = again.into();
            input["last_assistant_message"] = text.into();
            let said = shared.hooks.run(event, None, &input, &stop);
            for error in said.errors {
                shared.send(Message::Tell(Notice::Warn(error)));
            }
            // A hook that never lets go would never end: once is enough.
            let block = said.block.filter(|_| said.stop.is_none());
            shared.send(Message::MayStop(round, block));
        });
    }

    fn finish(&mut self, ending: Ending) {
        if let Some(mut narrow) = self.narrow.take() {
            let mut policy = lock(&self.shared.policy);
            // Only rules go; what somebody set in the meantime stays.
            let _ = narrow.set_mode(policy.mode());
            *policy = narrow;
        }
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
            let written = self.append(Entry::TurnDuration { ms, messages })
                && self.append(Entry::LastPrompt {
                    text,
                    leaf: None,
                    explicit: false,
                });
            if !written {
                return;
            }
        }
        self.ending = Some(ending.clone());
        self.tell(Notice::Ended { ending, time });
    }
}

/// A line that somebody typed, or that was printed for them.
fn spoken(text: String, id: &str) -> Entry {
    Entry::Prompt {
        content: text.into(),
        id: id.to_owned(),
        mode: None,
        source: None,
    }
}

/// How often somebody looks whether something ended in the background.
const LOOK: Duration = Duration::from_secs(1);

/// How long calls that were told to stop are waited for.
const GRACE: Duration = Duration::from_millis(150);

/// Calls that change nothing may run side by side; sub-agents, too: each has its own file.
fn reads(call: &Call) -> bool {
    if matches!(call.name.as_str(), "Agent" | "Task") {
        return true;
    }
    tools::named(&call.name).is_some_and(|tool| tool.only_reads(&call.input))
}

/// The folder beside the transcript.
fn beside(_config: &Path, record: &Record, session: &str) -> PathBuf {
    let folder = record.path().parent().unwrap_or(Path::new("."));
    match &record.face().agent {
        // Sub-agents share the folder of their session.
        Some(_) => folder.parent().unwrap_or(folder).to_owned(),
        None => folder.join(session),
    }
}
