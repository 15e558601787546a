//! TaskStop, and KillShell as older clients called it: the end of something in the background.

use std::time::Duration;

use serde_json::{Value, json};

use super::{object, str_of, text};
use crate::tool::{BuiltinTool, ToolCallRequest, ToolContext, ToolOutcome};

/// How long we wait to see it gone; it goes even if we do not.
const PATIENCE: Duration = Duration::from_millis(150);

/// The tool.
#[derive(Debug)]
pub struct TaskStopTool;

impl BuiltinTool for TaskStopTool {
    fn name(&self) -> &'static str {
        "TaskStop"
    }

    fn description(&self) -> String {
        "Ends a command or an agent that runs in the background, with everything it started."
            .to_owned()
    }

    fn schema(&self) -> Value {
        object([("task_id*", text("The id that was given when it began"))])
    }

    fn only_reads(&self, _: &Value) -> bool {
        false
    }

    fn run(&self, call: &ToolCallRequest, scene: &ToolContext<'_>) -> ToolOutcome {
        end(str_of(&call.input, "task_id"), "task", scene)
    }
}

/// The tool as it was.
#[derive(Debug)]
pub struct KillShellTool;

impl BuiltinTool for KillShellTool {
    fn name(&self) -> &'static str {
        "KillShell"
    }

    fn old_names(&self) -> &'static [&'static str] {
        &["KillBash"]
    }

    fn is_offered(&self) -> bool {
        false
    }

    fn description(&self) -> String {
        "Ends a shell that runs in the background, with everything it started.".to_owned()
    }

    fn schema(&self) -> Value {
        object([("shell_id*", text("The id of the shell"))])
    }

    fn only_reads(&self, _: &Value) -> bool {
        false
    }

    fn run(&self, call: &ToolCallRequest, scene: &ToolContext<'_>) -> ToolOutcome {
        end(str_of(&call.input, "shell_id"), "shell", scene)
    }
}

fn end(id: &str, what: &str, scene: &ToolContext<'_>) -> ToolOutcome {
    let Some(task) = scene.host.kept().find(id) else {
        return ToolOutcome::refused(format!("No {what} found with ID: {id}"));
    };
    if let Some(done) = task.done() {
        return ToolOutcome::refused(format!(
            "The {what} {id} is not running, so it cannot be stopped (status: {})",
            done.status
        ));
    }
    task.stop();
    task.wait(PATIENCE);
    // Whoever ended it knows.
    task.told();
    let command = task.command();
    let message = format!("Successfully stopped {what}: {id} ({command})");
    let mut result =
        json!({"message": message, "task_id": id, "task_type": task.kind(), "command": command});
    if what == "shell" {
        result["shell_id"] = json!(id);
    }
    ToolOutcome::done(message, result)
}
