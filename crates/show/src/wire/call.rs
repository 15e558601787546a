//! A tool call, as part of a turn and as a row of `turns --calls`.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A tool call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CallRow {
    /// Its id.
    pub id: String,
    /// Id of the line that made it.
    pub uuid: Option<String>,
    /// Id of the line that holds its result.
    pub result_uuid: Option<String>,
    /// The tool.
    pub name: String,
    /// What it is about, on one line.
    pub subject: Option<String>,
    /// `ok`, `error`, `missing` or `running`.
    pub status: String,
    /// From call to result.
    pub duration_ms: Option<u64>,
    /// Its input; left out where calls are only listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The content of its result; left out where calls are only listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Whether the result reports a failure; left out where calls are only listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// What the client noted about the result; left out where calls are only listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_meta: Option<Value>,
}
