//! TodoWrite: the list of things to do, whole, as older clients had it.

use serde_json::{Value, json};

use super::{choice, object, text};
use crate::tool::{BuiltinTool, ToolCallRequest, ToolContext, ToolOutcome};

/// The tool.
#[derive(Debug)]
pub struct TodoWriteTool;

impl BuiltinTool for TodoWriteTool {
    fn name(&self) -> &'static str {
        "TodoWrite"
    }

    fn is_offered(&self) -> bool {
        false
    }

    fn description(&self) -> String {
        "Replaces the list of things to do in this session. Give all of them each time; one at a \
         time is in_progress, and what is done is marked at once."
            .to_owned()
    }

    fn schema(&self) -> Value {
        let mut content = text("What is to be done");
        content["minLength"] = json!(1);
        let mut active = text("The same while it is being done");
        active["minLength"] = json!(1);
        let todo = object([
            ("content*", content),
            (
                "status*",
                choice("How far it is", ["pending", "in_progress", "completed"]),
            ),
            ("activeForm*", active),
        ]);
        let todos = json!({"type": "array", "items": todo, "description": "All of them"});
        object([("todos*", todos)])
    }

    fn only_reads(&self, _: &Value) -> bool {
        false
    }

    fn run(&self, call: &ToolCallRequest, scene: &ToolContext<'_>) -> ToolOutcome {
        let new = call.input["todos"].as_array().cloned().unwrap_or_default();
        let old = scene.host.kept().set_todos(new.clone());
        ToolOutcome::done(
            "Todos have been modified successfully. Ensure that you continue to use the todo list to track your progress. Please proceed with the current tasks if applicable",
            json!({"oldTodos": old, "newTodos": new}),
        )
    }
}
