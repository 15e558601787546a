//! Skill: instructions from a file, or a command somebody wrote down. The session knows them.

use serde_json::{Value, json};

use super::{object, str_of, text};
use crate::tool::{BuiltinTool, ToolCallRequest, ToolContext, ToolOutcome};

/// The tool.
#[derive(Debug)]
pub struct SkillTool;

impl BuiltinTool for SkillTool {
    fn name(&self) -> &'static str {
        "Skill"
    }

    fn description(&self) -> String {
        "Loads a skill or a slash command by its name: its text comes as a message after the \
         result, and you follow it. Use it when the task is what a skill is for, before anything \
         else; only names that were listed."
            .to_owned()
    }

    fn schema(&self) -> Value {
        object([
            ("skill*", text("Its name, without a slash")),
            ("args", text("What stands behind the name")),
        ])
    }

    fn only_reads(&self, _: &Value) -> bool {
        false
    }

    fn run(&self, call: &ToolCallRequest, scene: &ToolContext<'_>) -> ToolOutcome {
        let name = str_of(&call.input, "skill").trim().trim_start_matches('/');
        match scene.host.skill(name, str_of(&call.input, "args")) {
            Ok(text) => ToolOutcome {
                also: vec![text],
                ..ToolOutcome::done(
                    format!("Launching skill: {name}"),
                    json!({"success": true, "commandName": name}),
                )
            },
            Err(why) => ToolOutcome::refused(why),
        }
    }
}
