//! AskUserQuestion: choices for the person. The session asks.

use serde_json::{Value, json};

use super::{object, text, truth};
use crate::tool::{BuiltinTool, ToolCallRequest, ToolContext, ToolOutcome};

/// The tool.
#[derive(Debug)]
pub struct AskUserQuestionTool;

impl BuiltinTool for AskUserQuestionTool {
    fn name(&self) -> &'static str {
        "AskUserQuestion"
    }

    fn description(&self) -> String {
        "Asks the person one to four questions with two to four answers each, when you cannot go on \
         without a decision that is theirs. They can always answer something else. Put the answer \
         you would choose first."
            .to_owned()
    }

    fn schema(&self) -> Value {
        let option = object([
            ("label*", text("The answer, in one to five words")),
            (
                "description*",
                text("What it means, and what follows from it"),
            ),
        ]);
        let options = list(option, 2, 4, "The answers to choose from");
        let question = object([
            ("question*", text("The question, with a question mark")),
            (
                "header*",
                text("What it is about, in at most twelve characters"),
            ),
            ("options*", options),
            (
                "multiSelect*",
                truth("Whether several answers may be chosen"),
            ),
        ]);
        object([("questions*", list(question, 1, 4, "The questions"))])
    }

    fn only_reads(&self, _: &Value) -> bool {
        // One question at a time.
        false
    }

    fn run(&self, call: &ToolCallRequest, scene: &ToolContext<'_>) -> ToolOutcome {
        scene.host.question(call)
    }
}

fn list(items: Value, least: u64, most: u64, about: &str) -> Value {
    json!({"type": "array", "items": items, "minItems": least, "maxItems": most,
           "description": about})
}
