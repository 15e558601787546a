//! Rows of `show --json`: one per block of content, empty ones included.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A block of content.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BlockRow {
    /// Number of the turn, from 1; null before the first.
    pub turn: Option<u32>,
    /// `main`, or the sub-agent it belongs to.
    pub thread: String,
    /// Line of the file, from 1.
    pub line: u32,
    /// Id of the line.
    pub uuid: Option<String>,
    /// Id of the line it follows.
    pub parent: Option<String>,
    /// `user` or `assistant`.
    pub role: String,
    /// Kind of block, as the transcript names it.
    pub r#type: String,
    /// When it was written.
    pub at: Option<String>,
    /// Text or thinking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Tool of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Input of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// Id of a call, also on its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<String>,
    /// Content of a result, an image or an unknown block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
    /// Whether a result reports a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
}
