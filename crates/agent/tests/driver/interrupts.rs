//! A session that is stopped, at every point of its work and again and again.
//!
//! After each stop the transcript is one without faults, what is said next makes a request that
//! the strict model takes, nothing ran twice, and nothing runs on. How long a stop takes is
//! told, and judged by nobody: `cargo xtask soak chat` puts it into a table.

mod phases;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use unspool_agent::api::client::{ApiRetryPolicy, MessagesClient};
use unspool_agent::driver::{SessionCommand, SessionNotice};
use unspool_agent::permission::PermissionMode;
use unspool_agent::state_machine::TurnEndReason;
use unspool_ask::ApiCredential;
use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::check;
use unspool_testkit::model::{Answer as Said, Model, call};

use unspool_testkit::wait::{LONG, wait_until};

use crate::desk::Desk;
use phases::{ALL, Phase, Slow};

/// So often each phase is stopped, unless `UNSPOOL_TIMES` says otherwise.
const TIMES: usize = 10;

/// A session that is on its way to where it is stopped.
pub struct Trial {
    /// The other side.
    pub model: Model,
    /// The session.
    pub desk: Desk,
    script: Arc<Mutex<VecDeque<Said>>>,
    /// Stands among the arguments of everything that this trial starts.
    mark: String,
}

impl Trial {
    fn new(phase: &Phase) -> Trial {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        // A number of seconds that nobody else sleeps.
        let mark = format!("70{next:05}.{}", std::process::id());
        let script: Arc<Mutex<VecDeque<Said>>> = Arc::default();
        let playing = Arc::clone(&script);
        let model = Model::start(move |_, _| {
            let next = playing.lock().unwrap().pop_front();
            next.unwrap_or_else(|| Said::text("done"))
        });
        let model = model.unwrap();
        let settings = (phase.settings)(&mark);
        let desk = Desk::with(&model, &settings.to_string(), |setup| {
            let patience = ApiRetryPolicy {
                retries: 3,
                ..ApiRetryPolicy::default()
            };
            let access = ApiCredential::Key("k".into());
            setup.client = MessagesClient::new(&model.url(), &access, patience).unwrap();
            setup.more = Some(Arc::new(Slow));
            if phase.free {
                setup.policy.set_mode(PermissionMode::Bypass).unwrap();
            }
        });
        Trial {
            model,
            desk,
            script,
            mark,
        }
    }

    /// What the model says from now on.
    pub fn plays(&self, answers: impl IntoIterator<Item = Said>) {
        *self.script.lock().unwrap() = answers.into_iter().collect();
    }

    /// A call of Bash that notes that it ran and that it is where it is stopped.
    pub fn bash(&self, id: &str, command: &str) -> Value {
        let command = format!("echo {id} >> ran; {}", command.replace("MARK", &self.mark));
        call(id, "Bash", serde_json::json!({"command": command}))
    }

    /// Waits until a file is there that a command makes.
    pub fn made(&self, name: &str) {
        let path = self.desk.file(name);
        wait_until(name, || path.exists());
    }

    /// Waits until an answer waits at the gate.
    pub fn gate(&self) {
        assert!(self.model.reached("gate", LONG), "nobody came to the gate");
    }

    /// Waits for a notice.
    pub fn hears(&self, passes: impl Fn(&SessionNotice) -> bool) {
        drop(self.desk.until(passes));
    }
}

/// How many processes have this text among their arguments.
fn alive(mark: &str) -> usize {
    let read = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = read.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| String::from_utf8_lossy(line).contains(mark))
        .count()
}

/// Brings a session to the phase, stops it, and looks at what is left; how long it took to end.
fn stopped(phase: &Phase) -> Duration {
    let trial = Trial::new(phase);
    (phase.reach)(&trial);
    let desk = &trial.desk;
    let began = Instant::now();
    desk.handle.send(SessionCommand::Interrupt);
    let ending = desk.ended();
    let took = began.elapsed();
    assert_eq!(ending.why, TurnEndReason::Interrupted);
    trial.model.open("gate");
    // What a command was to do after it was stopped is never done.
    wait_until("all to end", || alive(&trial.mark) == 0);
    assert!(!desk.file("later").exists(), "it went on after the stop");
    let path = &transcripts(desk)[0].0;
    let before = std::fs::read(path).unwrap_or_default().len();
    trial.plays([]);
    desk.say("go on");
    let ending = desk.ended();
    assert_eq!(
        (ending.why, ending.text.as_str()),
        (TurnEndReason::Done, "done")
    );
    assert!(std::fs::read(path).unwrap().len() > before);
    assert_eq!(trial.model.refusals(), [""; 0]);
    ran_once(&desk.file("ran"));
    is_valid(desk, phase);
    took
}

/// No call ran twice.
fn ran_once(path: &Path) {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut ran: Vec<&str> = text.lines().collect();
    ran.sort_unstable();
    let all = ran.len();
    ran.dedup();
    assert_eq!(ran.len(), all, "{text}");
}

/// All transcripts: of the conversation, and of its sub-agents.
fn transcripts(desk: &Desk) -> Vec<(PathBuf, TranscriptRole)> {
    let config = desk.folder.path().join("config");
    let mut all = vec![(config.join("session.jsonl"), TranscriptRole::Main)];
    for beside in std::fs::read_dir(&config).into_iter().flatten().flatten() {
        let agents = std::fs::read_dir(beside.path().join("subagents"));
        let agents = agents.into_iter().flatten().flatten();
        let agents = agents.map(|entry| entry.path());
        let agents = agents.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
        all.extend(agents.map(|path| (path, TranscriptRole::Agent)));
    }
    all
}

/// The transcripts have no fault, and each call in them one result.
fn is_valid(desk: &Desk, phase: &Phase) {
    for (path, role) in transcripts(desk) {
        let bytes = std::fs::read(&path).unwrap();
        let log = Log::new(&*bytes);
        let session = Session::from_log(&log, role);
        let faults = check::faults(&session);
        assert!(faults.is_empty(), "{}: {faults:?}", path.display());
        let mut calls = BTreeMap::<String, (usize, usize)>::new();
        for line in String::from_utf8(bytes).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let blocks = line["message"]["content"].as_array();
            for block in blocks.into_iter().flatten() {
                let id = |field: &str| block[field].as_str().unwrap_or_default().to_owned();
                match block["type"].as_str() {
                    Some("tool_use") => calls.entry(id("id")).or_default().0 += 1,
                    Some("tool_result") => calls.entry(id("tool_use_id")).or_default().1 += 1,
                    _ => {}
                }
            }
        }
        assert!(calls.values().all(|one| *one == (1, 1)), "{calls:?}");
        let told = desk.lines().iter().any(|line| {
            line["message"]["content"]
                .to_string()
                .contains("[Request interrupted by user")
        });
        assert!(
            role != TranscriptRole::Main || told == phase.told,
            "whether the model is told of the stop"
        );
    }
}

#[test]
fn wherever_it_is_stopped_it_can_be_gone_on_with_and_nothing_runs_on() {
    let times = std::env::var("UNSPOOL_TIMES").ok();
    let times: usize = times.map_or(TIMES, |times| times.parse().unwrap());
    let only = std::env::var("UNSPOOL_PHASE").unwrap_or_default();
    let phases: Vec<&Phase> = ALL
        .iter()
        .filter(|phase| phase.name.contains(&only))
        .collect();
    let all: Vec<&Phase> = phases
        .iter()
        .flat_map(|phase| std::iter::repeat_n(*phase, times))
        .collect();
    let next = AtomicUsize::new(0);
    let took = Mutex::new(BTreeMap::<&str, Vec<Duration>>::new());
    let wrong = Mutex::new(Vec::<String>::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(phase) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match std::panic::catch_unwind(|| stopped(phase)) {
                        Ok(time) => took
                            .lock()
                            .unwrap()
                            .entry(phase.name)
                            .or_default()
                            .push(time),
                        // What was wrong is printed where it happened.
                        Err(_) => wrong.lock().unwrap().push(phase.name.to_owned()),
                    }
                }
            });
        }
    });
    let mut took = took.into_inner().unwrap();
    for phase in &phases {
        let times = took.entry(phase.name).or_default();
        times.sort_unstable();
        let ms = |time: Option<&Duration>| time.map_or(0, Duration::as_millis);
        let (median, longest) = (ms(times.get(times.len() / 2)), ms(times.last()));
        println!(
            "phase | {} | {} | {median} | {longest} |",
            phase.name,
            times.len()
        );
    }
    assert_eq!(wrong.into_inner().unwrap(), [""; 0]);
}
