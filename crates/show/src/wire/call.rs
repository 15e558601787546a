//! A tool call, as part of a turn and as a row of `turns --calls`.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use unspool_model::json;
use unspool_model::log::TranscriptSource;
use unspool_model::session::{Index, Session};
use unspool_model::view::files;
use unspool_model::view::turns::{self, ThreadEnds};

/// A tool call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CallRow {
    /// Its id.
    pub id: String,
    /// Id of the line that made it.
    pub uuid: Option<String>,
    /// Id of the line with its result.
    pub result_uuid: Option<String>,
    /// The tool.
    pub name: String,
    /// Its subject (path, command, pattern), on one line.
    pub subject: Option<String>,
    /// `ok`, `error`, `missing` or `running`.
    pub status: String,
    /// Time from call to result.
    pub duration_ms: Option<u64>,
    /// Its input; absent where calls are only listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The content of its result; absent where calls are only listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Whether the result reports a failure; absent where calls are only listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// The client's metadata of the result; absent where calls are only listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_meta: Option<Value>,
}

impl CallRow {
    /// The call without its input and result.
    pub fn brief(session: &Session, course: &ThreadEnds, call: Index) -> CallRow {
        let call = &session.calls[call as usize];
        let id_of = |at: Index| {
            session.records[at as usize]
                .uuid
                .as_ref()
                .map(ToString::to_string)
        };
        CallRow {
            id: session.call_id(call).to_owned(),
            uuid: id_of(call.record),
            result_uuid: call.result.as_ref().and_then(|result| id_of(result.record)),
            name: session.text(call.tool).to_owned(),
            subject: session.subject(call).map(str::to_owned),
            status: course.status(session, call).name().to_owned(),
            duration_ms: turns::call_duration(session, call),
            input: None,
            result: None,
            is_error: None,
            result_meta: None,
        }
    }

    /// The call with its input, its result and what the client noted about it.
    pub fn whole(
        session: &Session,
        source: &dyn TranscriptSource,
        course: &ThreadEnds,
        index: Index,
    ) -> CallRow {
        let call = &session.calls[index as usize];
        let result = call.result.as_ref().map(|result| {
            let bytes = session.bytes_of(source, &session.records[result.record as usize]);
            json::value(session.blocks[result.block as usize].body().of(&bytes))
        });
        CallRow {
            input: Some(files::input(session, source, call)),
            result: Some(result.unwrap_or_default()),
            is_error: Some(call.result.as_ref().is_some_and(|result| result.is_error)),
            result_meta: Some(files::result_meta(session, source, call)),
            ..CallRow::brief(session, course, index)
        }
    }
}
