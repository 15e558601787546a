//! Rows of `show --json`: one per block of content, empty ones included.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use unspool_model::block::BlockKind;
use unspool_model::json;
use unspool_model::log::TranscriptSource;
use unspool_model::session::{BlockRecord, EntryRecord, Session};
use unspool_model::view::turn_selection::TurnSelection;
use unspool_model::view::{agents, turns};

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

impl BlockRow {
    /// The blocks of a session in file order; `thread` names its own conversation.
    pub fn all(
        session: &Session,
        source: &dyn TranscriptSource,
        thread: &str,
        pick: &TurnSelection,
    ) -> Vec<BlockRow> {
        let mut rows = Vec::new();
        let each = BlockRow::each(session, source, thread, pick, |row| {
            rows.push(row);
            Ok::<(), std::convert::Infallible>(())
        });
        match each {
            Ok(()) => rows,
        }
    }

    /// The same, one after the other: for sessions too large to hold all of them.
    pub fn each<E>(
        session: &Session,
        source: &dyn TranscriptSource,
        thread: &str,
        pick: &TurnSelection,
        mut take: impl FnMut(BlockRow) -> Result<(), E>,
    ) -> Result<(), E> {
        let numbers = turns::numbers(session);
        let count = session.turns.iter().filter(|turn| turn.thread == 0).count() as u32;
        for (at, record) in session.records.iter().enumerate() {
            let Some(role) = record.role().filter(|_| !record.is_duplicate()) else {
                continue;
            };
            let turn = numbers[at];
            let wanted = turn.map_or(pick.takes_rest(), |turn| pick.takes(turn, count));
            if !wanted || (record.thread != 0 && !pick.agents) {
                continue;
            }
            let inner = (record.thread != 0).then(|| agents::thread_name(session, record.thread));
            let thread = inner.as_deref().unwrap_or(thread);
            let bytes = session.bytes_of(source, record);
            let row = BlockRow::of_line(session, record, role, turn, thread);
            let blocks = session.blocks_of(record);
            if blocks.is_empty() {
                take(BlockRow {
                    r#type: "empty".to_owned(),
                    ..row
                })?;
                continue;
            }
            for block in blocks {
                take(row.clone().with(session, block, &bytes))?;
            }
        }
        Ok(())
    }

    fn of_line(
        session: &Session,
        record: &EntryRecord,
        role: &str,
        turn: Option<u32>,
        thread: &str,
    ) -> BlockRow {
        BlockRow {
            turn,
            thread: thread.to_owned(),
            line: record.line,
            uuid: record.uuid.as_ref().map(ToString::to_string),
            parent: session.parent_of(record).map(ToString::to_string),
            role: role.to_owned(),
            r#type: String::new(),
            at: record.at().map(|at| at.to_string()),
            text: None,
            name: None,
            input: None,
            tool_use_id: None,
            content: None,
            is_error: None,
        }
    }

    fn with(mut self, session: &Session, block: &BlockRecord, bytes: &[u8]) -> BlockRow {
        self.r#type = session.type_of(block).to_owned();
        let body = block.body().of(bytes);
        match block.kind {
            BlockKind::Text | BlockKind::Thinking => {
                self.text = Some(json::string(body).into_owned())
            }
            BlockKind::ToolUse | BlockKind::ServerToolUse => {
                self.name = session.tool_of(block).map(str::to_owned);
                self.input = Some(json::value(body));
                self.tool_use_id = session.id_of(block).map(str::to_owned);
            }
            BlockKind::ToolResult => {
                self.tool_use_id = session.id_of(block).map(str::to_owned);
                self.content = Some(json::value(if body.is_empty() { b"null" } else { body }));
                self.is_error = Some(block.is_error);
            }
            BlockKind::RedactedThinking
            | BlockKind::Image
            | BlockKind::Document
            | BlockKind::Other => {
                self.content = Some(json::value(block.span().of(bytes)));
            }
        }
        self
    }
}
