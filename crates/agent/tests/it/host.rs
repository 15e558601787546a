//! A session for tests: a folder, and whatever was asked of it written down.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tempfile::TempDir;
use unspool_agent::stop::StopSignal;
use unspool_agent::tool::{ToolCallRequest, ToolContent, ToolContext, ToolOutcome};
use unspool_agent::tool_host::ToolHost;
use unspool_agent::tools::{self, ToolState};

/// A session in a folder of its own.
pub struct Session {
    /// Holds the folder.
    _root: TempDir,
    pub project: PathBuf,
    home: PathBuf,
    beside: PathBuf,
    cwd: Mutex<PathBuf>,
    kept: Mutex<Arc<ToolState>>,
    pub changes: Mutex<Vec<PathBuf>>,
    pub progress: Mutex<Vec<Value>>,
    pub before: Mutex<Vec<OsString>>,
    /// Whether commands run as the person would type them.
    pub typed: Mutex<bool>,
    pub stop: StopSignal,
}

impl Session {
    pub fn new() -> Session {
        let root = tempfile::tempdir().unwrap();
        let at = root.path().canonicalize().unwrap();
        let make = |name: &str| {
            let path = at.join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let project = make("proj");
        Session {
            cwd: Mutex::new(project.clone()),
            project,
            home: make("home"),
            beside: at.join("beside"),
            kept: Mutex::new(fresh()),
            changes: Mutex::default(),
            progress: Mutex::default(),
            before: Mutex::default(),
            typed: Mutex::default(),
            stop: StopSignal::new(),
            _root: root,
        }
    }

    /// The same session in another run: what was kept is gone.
    pub fn again(&self) {
        *self.kept.lock().unwrap() = fresh();
    }

    pub fn path(&self, name: &str) -> String {
        self.project.join(name).display().to_string()
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.project.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self.path(name)
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.project.join(name)).unwrap()
    }

    pub fn cwd(&self) -> PathBuf {
        self.cwd.lock().unwrap().clone()
    }

    /// Calls a tool as a session does: its input is checked first.
    pub fn call(&self, name: &str, mut input: Value) -> ToolOutcome {
        let tool = match tools::check(name, &mut input) {
            Ok(tool) => tool,
            Err(refused) => return *refused,
        };
        let call = ToolCallRequest {
            id: "toolu_1".to_owned(),
            name: name.to_owned(),
            input,
        };
        let scene = ToolContext {
            cwd: self.cwd(),
            stop: &self.stop,
            host: self,
        };
        tool.run(&call, &scene)
    }

    pub fn bash(&self, command: &str) -> ToolOutcome {
        self.call("Bash", json!({"command": command}))
    }
}

fn fresh() -> Arc<ToolState> {
    Arc::new(ToolState::with_guard(
        env!("CARGO_BIN_EXE_unspool-guard").into(),
    ))
}

/// The text the model is told.
pub fn text(outcome: &ToolOutcome) -> &str {
    match &outcome.content {
        ToolContent::Text(text) => text,
        ToolContent::Blocks(blocks) => panic!("blocks: {blocks:?}"),
    }
}

impl ToolHost for Session {
    fn runs_as_typed(&self) -> bool {
        *self.typed.lock().unwrap()
    }

    fn project(&self) -> &Path {
        &self.project
    }

    fn dirs(&self) -> &[PathBuf] {
        &[]
    }

    fn home(&self) -> &Path {
        &self.home
    }

    fn beside(&self) -> &Path {
        &self.beside
    }

    fn session(&self) -> &str {
        "11111111-1111-4111-8111-111111111111"
    }

    fn kept(&self) -> Arc<ToolState> {
        Arc::clone(&self.kept.lock().unwrap())
    }

    fn set_cwd(&self, cwd: PathBuf) {
        *self.cwd.lock().unwrap() = cwd;
    }

    fn will_change(&self, path: &Path) -> std::io::Result<()> {
        self.changes.lock().unwrap().push(path.to_owned());
        Ok(())
    }

    fn progress(&self, _: &ToolCallRequest, data: Value) {
        self.progress.lock().unwrap().push(data);
    }

    fn before_shell(&self, _: &ToolCallRequest) -> Vec<OsString> {
        self.before.lock().unwrap().clone()
    }

    fn hides(&self, path: &Path) -> bool {
        path.ends_with("secret.txt")
    }

    fn agent(&self, call: &ToolCallRequest) -> ToolOutcome {
        ToolOutcome::done(format!("agent {}", call.input["prompt"]), Value::Null)
    }

    fn question(&self, _: &ToolCallRequest) -> ToolOutcome {
        ToolOutcome::done("answered", Value::Null)
    }

    fn plan(&self, _: &ToolCallRequest) -> ToolOutcome {
        ToolOutcome::done("agreed", Value::Null)
    }

    fn small_model(&self, prompt: &str) -> Result<String, String> {
        Ok(format!("{} characters", prompt.len()))
    }

    fn web_search(&self, _: &ToolCallRequest) -> Result<Vec<Value>, String> {
        Ok(vec![
            json!({"type": "text", "text": "I look."}),
            json!({"type": "server_tool_use", "id": "s1", "name": "web_search"}),
            json!({"type": "web_search_tool_result", "tool_use_id": "s1",
                   "content": [{"type": "web_search_result", "title": "T", "url": "https://t"}]}),
            json!({"type": "text", "text": "It is T."}),
        ])
    }

    fn skill(&self, name: &str, arguments: &str) -> Result<String, String> {
        match name {
            "labskill" => Ok(format!("# Lab skill\n{arguments}")),
            _ => Err(format!("Unknown skill: {name}")),
        }
    }
}
