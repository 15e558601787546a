//! What a tool is: a name, a schema, and something that runs.
//!
//! Tools are plain and blocking; the driver runs each call on a thread of its own. A tool
//! never asks for permission and writes no line of the transcript: the driver asks before, and
//! writes what the tool returns.

use std::path::PathBuf;

use serde_json::Value;

use crate::stop::StopSignal;
use crate::tool_host::ToolHost;

/// One call, as the model made it. Its input has passed the tool's schema.
#[derive(Clone, Debug)]
pub struct ToolCallRequest {
    /// The id of the `tool_use` block.
    pub id: String,
    /// The name the model used, which may be an old one.
    pub name: String,
    /// The input: always an object.
    pub input: Value,
}

/// What the model is told.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolContent {
    /// Text.
    Text(String),
    /// Content blocks, such as images.
    Blocks(Vec<Value>),
}

/// What came of a call: the two halves of its line.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutcome {
    /// `content` of the `tool_result` block.
    pub content: ToolContent,
    /// `is_error` of the block; most tools leave it out on success.
    pub is_error: Option<bool>,
    /// `toolUseResult` of the line.
    pub result: Value,
    /// Texts for the model that are lines of their own after it (`isMeta`), such as the text of
    /// a skill.
    pub also: Vec<String>,
}

impl ToolOutcome {
    /// It worked.
    pub fn done(text: impl Into<String>, result: Value) -> ToolOutcome {
        ToolOutcome {
            content: ToolContent::Text(text.into()),
            is_error: None,
            result,
            also: Vec::new(),
        }
    }

    /// It worked, and the model gets blocks.
    pub fn blocks(blocks: Vec<Value>, result: Value) -> ToolOutcome {
        ToolOutcome {
            content: ToolContent::Blocks(blocks),
            is_error: None,
            result,
            also: Vec::new(),
        }
    }

    /// It failed while it ran.
    pub fn failed(text: impl Into<String>) -> ToolOutcome {
        let text = text.into();
        ToolOutcome {
            result: Value::String(format!("Error: {text}")),
            content: ToolContent::Text(text),
            is_error: Some(true),
            also: Vec::new(),
        }
    }

    /// It was not run: the input could not be taken.
    pub fn refused(text: impl Into<String>) -> ToolOutcome {
        let text = text.into();
        ToolOutcome {
            result: Value::String(format!("Error: {text}")),
            content: ToolContent::Text(format!("<tool_use_error>{text}</tool_use_error>")),
            is_error: Some(true),
            also: Vec::new(),
        }
    }
}

/// Where and for whom a call runs.
pub struct ToolContext<'a> {
    /// Where Bash stands now; relative paths mean from here.
    pub cwd: PathBuf,
    /// Set by whoever wants the call to end.
    pub stop: &'a StopSignal,
    /// The session around it.
    pub host: &'a dyn ToolHost,
}

/// Something the model can call.
pub trait BuiltinTool: Sync {
    /// Its name, as offered to the model.
    fn name(&self) -> &'static str;

    /// Names it had in older clients, which are accepted.
    fn old_names(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether the model is told of it. What only older clients had is run when it is called.
    fn is_offered(&self) -> bool {
        true
    }

    /// What the model is told about it, in our own words.
    fn description(&self) -> String;

    /// Its input as JSON schema.
    fn schema(&self) -> Value;

    /// Whether such a call changes nothing, so that several may run at once.
    fn only_reads(&self, input: &Value) -> bool;

    /// Runs a call. Ends soon after `scene.stop` was told.
    fn run(&self, call: &ToolCallRequest, scene: &ToolContext<'_>) -> ToolOutcome;
}
