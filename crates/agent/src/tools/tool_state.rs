//! What is kept between the calls of one session: files the model has seen, commands in the
//! background, lists of tasks, pages from the web.

use std::collections::HashMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::task_list::SessionTasks;
use super::web_fetch::WebPageCache;
use crate::process::RunningCommand;

/// What is kept between calls of one session.
#[derive(Debug)]
pub struct ToolState {
    guard: PathBuf,
    seen: Mutex<HashMap<PathBuf, SeenFile>>,
    background: Mutex<Vec<Arc<dyn BackgroundTask>>>,
    left: Mutex<Vec<RunningCommand>>,
    todos: Mutex<Vec<Value>>,
    tasks: Mutex<SessionTasks>,
    pub(crate) pages: WebPageCache,
}

/// What the model knows of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeenFile {
    /// The content with this hash, or a part of it.
    Now(u128),
    /// Something, in a part of the conversation that was before this run.
    Before,
}

/// Something that runs while the conversation goes on: a command, or a sub-agent.
pub trait BackgroundTask: Send + Sync + Debug {
    /// Its id, which the model knows.
    fn id(&self) -> &str;
    /// The call that started it.
    fn call(&self) -> &str;
    /// `local_bash` or `local_agent`.
    fn kind(&self) -> &'static str;
    /// What it is about.
    fn description(&self) -> &str;
    /// The command or the prompt.
    fn command(&self) -> &str;
    /// How it ended, if it did.
    fn done(&self) -> Option<BackgroundExit>;
    /// Waits for its end, at most so long.
    fn wait(&self, time: Duration);
    /// What it has written since it was asked last; all of it if `again`.
    fn output(&self, again: bool) -> String;
    /// The file all of that goes to.
    fn file(&self) -> PathBuf;
    /// Ends it.
    fn stop(&self);
    /// Whether its end was told, and from now on it is.
    fn told(&self) -> bool;
    /// What it found out, where that is told with its end.
    fn report(&self) -> Option<String> {
        None
    }
}

/// How something in the background ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackgroundExit {
    /// `completed`, `failed` or `killed`.
    pub status: &'static str,
    /// The code of a command.
    pub code: Option<i32>,
}

impl Default for ToolState {
    /// The program itself is the guard.
    fn default() -> ToolState {
        // The file we were started from, even if a newer one has taken its place.
        let own = PathBuf::from("/proc/self/exe");
        if own.exists() {
            return ToolState::with_guard(own);
        }
        // Without it every command says why it cannot start.
        ToolState::with_guard(std::env::current_exe().unwrap_or_else(|_| PathBuf::from("unspool")))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ToolState {
    /// Nothing yet; commands are guarded by this program.
    pub fn with_guard(guard: PathBuf) -> ToolState {
        ToolState {
            guard,
            seen: Mutex::default(),
            background: Mutex::default(),
            left: Mutex::default(),
            todos: Mutex::default(),
            tasks: Mutex::default(),
            pages: WebPageCache::default(),
        }
    }

    /// The program that guards commands.
    pub fn guard(&self) -> &Path {
        &self.guard
    }

    /// The model read or wrote the file in an earlier run of this conversation: for each such
    /// file when a session is resumed.
    pub fn saw_before(&self, path: &Path) {
        let path = crate::file::real(path);
        lock(&self.seen).entry(path).or_insert(SeenFile::Before);
    }

    /// The model has seen this content of a file.
    pub(crate) fn saw(&self, path: &Path, content: &[u8]) {
        self.saw_hash(path, crate::file::hash(content));
    }

    /// The model has seen the content with this hash.
    pub(crate) fn saw_hash(&self, path: &Path, hash: u128) {
        lock(&self.seen).insert(crate::file::real(path), SeenFile::Now(hash));
    }

    /// What the model has seen of a file.
    pub(crate) fn seen(&self, path: &Path) -> Option<SeenFile> {
        lock(&self.seen).get(&crate::file::real(path)).copied()
    }

    /// Something runs in the background from now on.
    pub fn put(&self, background: Arc<dyn BackgroundTask>) {
        lock(&self.background).push(background);
    }

    /// What runs or ran in the background under this id.
    pub fn find(&self, id: &str) -> Option<Arc<dyn BackgroundTask>> {
        let all = lock(&self.background);
        all.iter().find(|one| one.id() == id).cloned()
    }

    /// Everything that runs or ran in the background.
    pub fn background(&self) -> Vec<Arc<dyn BackgroundTask>> {
        lock(&self.background).clone()
    }

    /// What has ended and was not told yet, as the text the model gets.
    pub fn news(&self) -> Vec<String> {
        let all = self.background();
        let ended = all.iter().filter_map(|one| Some((one, one.done()?)));
        let untold = ended.filter(|(one, _)| !one.told());
        untold
            .map(|(one, done)| notification(&**one, &done))
            .collect()
    }

    /// Whether there are agents in the background, at work or not.
    pub(crate) fn has_agents(&self) -> bool {
        let all = self.background();
        all.iter().any(|one| one.kind() == "local_agent")
    }

    /// Whether an agent works in the background.
    pub(crate) fn agents_work(&self) -> bool {
        let all = self.background();
        let mut agents = all.iter().filter(|one| one.kind() == "local_agent");
        agents.any(|one| one.done().is_none())
    }

    /// Ends everything that still runs: the session is over.
    pub fn end(&self) {
        let all = self.background();
        all.iter().for_each(|one| one.stop());
        // Agents have a transcript of their own to bring to an end.
        for one in all.iter().filter(|one| one.kind() == "local_agent") {
            one.wait(Duration::from_secs(1));
        }
        lock(&self.left).clear();
    }

    /// Holds a command whose shell has ended, but not all it started.
    pub(crate) fn leave(&self, running: RunningCommand) {
        let mut left = lock(&self.left);
        left.retain(|one| !one.wait_gone(Duration::ZERO));
        left.push(running);
    }

    /// Replaces the list of things to do; what it was before.
    pub(crate) fn set_todos(&self, todos: Vec<Value>) -> Vec<Value> {
        std::mem::replace(&mut *lock(&self.todos), todos)
    }

    /// The list of things to do.
    pub fn todos(&self) -> Vec<Value> {
        lock(&self.todos).clone()
    }

    /// The list of tasks.
    pub fn tasks<T>(&self, look: impl FnOnce(&mut SessionTasks) -> T) -> T {
        look(&mut lock(&self.tasks))
    }
}

impl Drop for ToolState {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the model is told when something ended by itself.
fn notification(one: &dyn BackgroundTask, done: &BackgroundExit) -> String {
    let how = match (done.status, done.code) {
        ("completed", Some(code)) => format!("completed (exit code {code})"),
        ("failed", Some(code)) => format!("failed with exit code {code}"),
        ("killed", _) => "was stopped".to_owned(),
        ("completed", None) => "finished".to_owned(),
        (other, _) => other.to_owned(),
    };
    let what = match one.kind() {
        "local_bash" => "Background command",
        _ => "Agent",
    };
    let (id, call, file) = (one.id(), one.call(), one.file());
    let (status, about) = (done.status, one.description());
    let report = one.report().unwrap_or_default();
    format!(
        "<task-notification>\n<task-id>{id}</task-id>\n<tool-use-id>{call}</tool-use-id>\n<output-file>{}</output-file>\n<status>{status}</status>\n<summary>{what} \"{about}\" {how}</summary>\n{report}</task-notification>",
        file.display(),
    )
}
