//! What a tool may ask of the session it runs in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::tool::{ToolCallRequest, ToolOutcome};

/// The session around a call. The driver is one; tests make their own.
pub trait ToolHost: Sync {
    /// The folder the session began in.
    fn project(&self) -> &Path;

    /// More folders that belong to it (`--add-dir`).
    fn dirs(&self) -> &[PathBuf];

    /// The home folder of whoever runs it.
    fn home(&self) -> &Path;

    /// Where files beside the transcript go: `<projects>/<slug>/<session>/`.
    fn beside(&self) -> &Path;

    /// The id of the session.
    fn session(&self) -> &str;

    /// What is kept between calls: files that were read, shells, tasks.
    fn kept(&self) -> Arc<crate::tools::ToolState>;

    /// From now on Bash stands here.
    fn set_cwd(&self, cwd: PathBuf);

    /// Called before a file is changed or made, so that its old content can be kept for undo.
    fn will_change(&self, path: &Path) -> std::io::Result<()>;

    /// Something to show and to write down while a call runs: `data` of a `progress` line.
    fn progress(&self, call: &ToolCallRequest, data: Value);

    /// What stands before the shell of a command, such as a sandbox: a program and its arguments.
    fn before_shell(&self, call: &ToolCallRequest) -> Vec<std::ffi::OsString> {
        let _ = call;
        Vec::new()
    }

    /// Whether a command runs as the person would type it: they typed it, said yes to it, or chose
    /// the mode that asks nothing. Otherwise git runs none of the programs a repository names.
    fn runs_as_typed(&self) -> bool {
        false
    }

    /// Variables that commands get on top of ours.
    fn env(&self) -> &[(String, String)] {
        &[]
    }

    /// Whether a file is none of the model's business: Glob and Grep leave it out.
    fn hides(&self, path: &Path) -> bool {
        let _ = path;
        false
    }

    /// Runs a sub-agent to its end: the input of the Agent tool.
    fn agent(&self, call: &ToolCallRequest) -> ToolOutcome;

    /// Asks the person (AskUserQuestion): the answers, or why there are none.
    fn question(&self, call: &ToolCallRequest) -> ToolOutcome;

    /// Shows a plan and asks whether to go on (ExitPlanMode).
    fn plan(&self, call: &ToolCallRequest) -> ToolOutcome;

    /// Asks a small, fast model one thing (WebFetch): its text.
    fn small_model(&self, prompt: &str) -> Result<String, String>;

    /// How many tokens a text takes, if the API says so.
    fn count(&self, text: &str) -> Option<u64> {
        let _ = text;
        None
    }

    /// Runs a search at the model's side (WebSearch): the content blocks of the reply.
    fn web_search(&self, call: &ToolCallRequest) -> Result<Vec<Value>, String>;

    /// Expands a skill or slash command (Skill).
    fn skill(&self, name: &str, arguments: &str) -> Result<String, String>;
}
