//! ExitPlanMode: a plan for the person to agree to. The session shows it.

use serde_json::Value;

use super::{object, text};
use crate::tool::{BuiltinTool, ToolCallRequest, ToolContext, ToolOutcome};

/// The tool.
#[derive(Debug)]
pub struct ExitPlanModeTool;

impl BuiltinTool for ExitPlanModeTool {
    fn name(&self) -> &'static str {
        "ExitPlanMode"
    }

    fn description(&self) -> String {
        "In plan mode: shows your plan to the person and asks whether to go ahead. Use it when the \
         plan is done and its steps can be carried out; not for questions, which AskUserQuestion \
         asks, and not when nothing is to be changed."
            .to_owned()
    }

    fn schema(&self) -> Value {
        object([(
            "plan",
            text("The plan, in Markdown, short enough to be read"),
        )])
    }

    fn only_reads(&self, _: &Value) -> bool {
        false
    }

    fn run(&self, call: &ToolCallRequest, scene: &ToolContext<'_>) -> ToolOutcome {
        scene.host.plan(call)
    }
}
