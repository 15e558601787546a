//! A machine on which our client talks to a model that plays a script.

use super::super::Problem;
use super::super::run::Place;
use serde_json::Value;
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use unspool_testkit::api::Request;
use unspool_testkit::model::{Answer, Model, call};
use unspool_testkit::wait::{LONG, wait_for};

/// What the model says to one request.
pub type Play = Box<dyn Fn(&Request) -> Answer + Send>;

/// What is done while a turn runs.
#[derive(Clone, Copy, PartialEq)]
pub enum Meanwhile {
    /// Nothing.
    Nothing,
    /// This signal, once the model waits at the gate.
    AtGate(&'static str),
    /// This signal, once a command has made the file `mark`.
    AtMark(&'static str),
}

/// What somebody on a terminal does.
pub enum Key {
    /// Waits until this is shown, behind what was waited for last.
    Shows(&'static str),
    /// Waits until the model waits at the gate.
    Gate,
    /// Presses these keys.
    Press(&'static str),
}

/// One run of the client.
pub struct Turn {
    /// What is said.
    pub prompt: String,
    /// Prompts as a stream of objects, instead of words.
    pub stream: Vec<Value>,
    /// What somebody does on a terminal, instead.
    pub typed: Vec<Key>,
    /// More arguments.
    pub args: Vec<&'static str>,
    /// What the model says to each request.
    pub plays: Vec<Play>,
    /// What is done while it runs.
    pub meanwhile: Meanwhile,
    /// How it has to end.
    pub codes: &'static [i32],
}

impl Turn {
    /// It ends by itself, with an answer.
    pub fn is_whole(&self) -> bool {
        self.meanwhile == Meanwhile::Nothing && self.codes == [0]
    }
}

/// The machine, with everything on it.
pub struct Stage {
    /// Its folders.
    pub place: Place,
    program: PathBuf,
    model: Model,
    script: Arc<Mutex<VecDeque<Play>>>,
    session: Option<String>,
    first: String,
    runs: usize,
}

/// Gates have names that live for ever; a session has fewer turns than these.
const GATES: [&str; 16] = [
    "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p",
];

impl Stage {
    /// An empty machine; the first session gets this id.
    pub fn new(program: &Path, root: PathBuf, first: String) -> Result<Stage, Problem> {
        if root.exists() {
            std::fs::remove_dir_all(&root)?;
        }
        let (cwd, config) = (root.join("proj"), root.join("config"));
        std::fs::create_dir_all(&cwd)?;
        std::fs::create_dir_all(&config)?;
        let script: Arc<Mutex<VecDeque<Play>>> = Arc::default();
        let playing = Arc::clone(&script);
        let agents = AtomicUsize::new(0);
        let model = Model::start(move |_, request| {
            let system = request.body["system"].to_string();
            if system.contains("another assistant gave you") {
                return agent(request, agents.fetch_add(1, Ordering::Relaxed));
            }
            let play = playing
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop_front();
            play.map_or_else(|| Answer::text("That is all."), |play| play(request))
        })?;
        Ok(Stage {
            place: Place { root, cwd, config },
            program: program.to_owned(),
            model,
            script,
            session: None,
            first,
            runs: 0,
        })
    }

    /// The gate of the next turn.
    pub fn gate(&self) -> &'static str {
        GATES[self.runs % GATES.len()]
    }

    /// Runs one turn; what is wrong with it, if anything.
    pub fn play(&mut self, mut turn: Turn) -> Result<(), Problem> {
        let gate = self.gate();
        self.runs += 1;
        let forks = turn.args.contains(&"--fork-session");
        let before = self.sessions();
        *self.script.lock().unwrap_or_else(PoisonError::into_inner) =
            std::mem::take(&mut turn.plays).into();
        let _ = std::fs::remove_file(self.place.cwd.join("mark"));
        let child = if !turn.typed.is_empty() {
            self.typed(&turn, gate)
        } else if !turn.stream.is_empty() {
            self.streamed(&turn)
        } else {
            self.command(&["-p"], &turn.args)
                .and_then(|mut command| Ok(command.arg(&turn.prompt).spawn()?))
        };
        let ended = child.and_then(|child| self.end(child, turn.meanwhile, gate, turn.codes));
        self.session = match forks {
            true => self.sessions().difference(&before).next().cloned(),
            false => Some(self.session.clone().unwrap_or(self.first.clone())),
        };
        ended
    }

    /// The client with prompts as objects, all at once.
    fn streamed(&self, turn: &Turn) -> Result<Child, Problem> {
        let mut child = self
            .command(&["-p"], &turn.args)?
            .args(["--input-format", "stream-json"])
            .args(["--output-format", "stream-json", "--verbose"])
            .stdin(Stdio::piped())
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            for object in &turn.stream {
                writeln!(stdin, "{object}")?;
            }
        }
        Ok(child)
    }

    /// The client on a terminal, up to the last key.
    fn typed(&self, turn: &Turn, gate: &'static str) -> Result<Child, Problem> {
        let own = self.command(&[], &turn.args)?;
        let words = std::iter::once(own.get_program()).chain(own.get_args());
        let words: Vec<String> = words
            .map(|word| format!("'{}'", word.to_string_lossy()))
            .collect();
        let line = format!("stty rows 40 cols 120; exec {}", words.join(" "));
        let shown = self.place.root.join("stdout");
        let mut command = Command::new("script");
        command.env_clear();
        for (name, value) in own.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        let mut child = command
            .env("TERM", "xterm-256color")
            .env("SHELL", "/bin/sh")
            .current_dir(&self.place.cwd)
            .args(["-q", "-f", "-e", "-c", &line, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(File::create(&shown)?)
            .stderr(File::create(self.place.root.join("stderr"))?)
            .spawn()?;
        let pressed = self.press(&mut child, &turn.typed, gate, &shown);
        if pressed.is_err() {
            let _ = child.kill();
            let _ = child.wait();
        }
        pressed.map(|()| child)
    }

    fn press(
        &self,
        child: &mut Child,
        keys: &[Key],
        gate: &'static str,
        shown: &Path,
    ) -> Result<(), Problem> {
        let mut stdin = child.stdin.take().ok_or("no way to type")?;
        let mut seen = 0;
        for key in keys {
            match key {
                Key::Shows(text) => {
                    let found = wait_for(|| {
                        let all = std::fs::read(shown).ok()?;
                        let rest = String::from_utf8_lossy(all.get(seen..)?).into_owned();
                        rest.contains(text).then_some(all.len())
                    });
                    seen = found.ok_or_else(|| format!("`{text}` is not shown"))?;
                }
                Key::Gate => {
                    if !self.model.reached(gate, LONG) {
                        return Err("the gate was not reached".into());
                    }
                }
                Key::Press(keys) => {
                    stdin.write_all(keys.as_bytes())?;
                    stdin.flush()?;
                }
            }
        }
        // Its end would be a key, too.
        child.stdin = Some(stdin);
        Ok(())
    }

    fn command(&self, how: &[&str], args: &[&str]) -> Result<Command, Problem> {
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.place.root)
            .env("CLAUDE_CONFIG_DIR", &self.place.config)
            .env("UNSPOOL_HOME", self.place.root.join("unspool"))
            .env("UNSPOOL_NO_BACKGROUND", "1")
            .env("TZ", "UTC")
            .env("LANG", "C.UTF-8")
            .env("ANTHROPIC_API_KEY", "dummy")
            .env("ANTHROPIC_BASE_URL", self.model.url())
            .env("CLAUDE_CODE_MAX_RETRIES", "2")
            .current_dir(&self.place.cwd)
            .stdin(Stdio::null())
            .stdout(File::create(self.place.root.join("stdout"))?)
            .stderr(File::create(self.place.root.join("stderr"))?)
            .args(["chat", "--model", "claude-sonnet-4-5"])
            .args(how)
            .args(args);
        match &self.session {
            None => command.args(["--session-id", &self.first]),
            // Both ways to say the same.
            Some(_) if self.runs.is_multiple_of(2) => command.arg("--continue"),
            Some(id) => command.args(["--resume", id]),
        };
        Ok(command)
    }

    fn end(
        &self,
        mut child: Child,
        meanwhile: Meanwhile,
        gate: &'static str,
        codes: &[i32],
    ) -> Result<(), Problem> {
        match meanwhile {
            Meanwhile::Nothing => {}
            Meanwhile::AtGate(name) => {
                let reached = self.model.reached(gate, LONG);
                // What came before the gate is on its way.
                std::thread::sleep(Duration::from_millis(60));
                signal(&child, name)?;
                if !reached {
                    let _ = child.wait();
                    return Err("the gate was not reached".into());
                }
            }
            Meanwhile::AtMark(name) => {
                let mark = self.place.cwd.join("mark");
                let came = wait_for(|| mark.exists().then_some(()));
                signal(&child, name)?;
                if came.is_none() {
                    let _ = child.wait();
                    return Err("the command did not begin".into());
                }
            }
        }
        let status = wait_for(|| child.try_wait().ok().flatten());
        self.model.open(gate);
        let Some(status) = status else {
            let _ = child.kill();
            let _ = child.wait();
            return Err("the client did not end".into());
        };
        let refusals = self.model.refusals();
        if let Some(refusal) = refusals.first() {
            return Err(format!("it sent what the API refuses: {refusal}").into());
        }
        if !codes.contains(&code(status)) {
            let words = std::fs::read_to_string(self.place.root.join("stderr"))?;
            return Err(format!("it ended with {status}: {}", words.trim()).into());
        }
        Ok(())
    }

    /// The messages of the last request of the conversation itself.
    pub fn last_request(&self) -> Value {
        let requests = self.model.requests();
        let own = requests.iter().rev().find(|request| {
            let system = request.body["system"].to_string();
            !system.contains("another assistant gave you")
        });
        own.map(|request| request.body["messages"].clone())
            .unwrap_or_default()
    }

    /// The session that the next turn goes on with.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// The ids of all sessions.
    pub fn sessions(&self) -> BTreeSet<String> {
        transcripts(&self.place)
            .iter()
            .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
            .collect()
    }
}

/// All transcripts of conversations at a place.
pub fn transcripts(place: &Place) -> Vec<PathBuf> {
    let files = std::fs::read_dir(place.project()).into_iter().flatten();
    let paths = files.flatten().map(|file| file.path());
    let mut all: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    all.sort();
    all
}

/// What a sub-agent is told: first to look, then to report.
fn agent(request: &Request, number: usize) -> Answer {
    if request.body["messages"].to_string().contains("tool_result") {
        return Answer::text(&format!("The report has number {number}."));
    }
    let input = serde_json::json!({"command": "ls"});
    Answer::blocks(&[call(&format!("toolu_agent{number:04}"), "Bash", input)])
}

fn code(status: ExitStatus) -> i32 {
    // Whoever was killed has no code; 137 is what a shell would say.
    status.code().unwrap_or(137)
}

fn signal(child: &Child, name: &str) -> Result<(), Problem> {
    let id = child.id().to_string();
    let sent = Command::new("kill").args([name, &id]).status()?;
    match sent.success() {
        true => Ok(()),
        false => Err("the client had ended before it was stopped".into()),
    }
}
