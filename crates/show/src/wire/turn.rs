//! A turn on one line.

use schemars::JsonSchema;
use serde::Serialize;
use unspool_model::session::Session;
use unspool_model::view::session_usage::SessionUsage;
use unspool_model::view::turns::{self, ThreadEnds, TurnRow as Row};

use crate::wire::call::CallRow;
use crate::wire::cost::{self, UsageByOrigin};
use crate::wire::session::UsageRow;

/// A turn: from a prompt or command to the final reply.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TurnJson {
    /// Its number, from 1; 0 is everything before the first prompt.
    pub n: usize,
    /// The line that opened it.
    pub uuid: Option<String>,
    /// `prompt`, `command`, `shell`, `memory` or `plan`; for turn 0 the kind of its first line.
    pub kind: String,
    /// `new_session`, `resume` or `new_round`.
    pub round: String,
    /// Kinds of input: `text`, `ide_selection`, `ide_opened_file`, `image`, `command`.
    pub input_kinds: Vec<String>,
    /// Its permission mode.
    pub permission_mode: Option<String>,
    /// The prompt.
    pub prompt: String,
    /// When.
    pub at: Option<String>,
    /// When it ended; null while it is running.
    pub ended: Option<String>,
    /// Its duration.
    pub duration_ms: Option<u64>,
    /// Replies, each counted once.
    pub messages: usize,
    /// Their ids.
    pub message_ids: Vec<Option<String>>,
    /// Its calls.
    pub calls: Vec<CallRow>,
    /// Sub-agents it started.
    pub agents: Vec<String>,
    /// The last reply.
    pub reply: Option<String>,
    /// Whether the user interrupted it.
    pub interrupted: bool,
    /// Whether the context was compacted during it.
    pub compacted: bool,
    /// Prompts queued while the model was working.
    pub queued: Vec<String>,
    /// Whether it is on the live branch; false if it was rewound.
    pub live: bool,
    /// Tokens of its replies, of the sub-agents it started, and of what the client did for itself
    /// meanwhile.
    pub usage: UsageRow,
    /// Its cost; null if any message has no known price.
    pub cost_usd: Option<f64>,
    /// Cost of its messages that have a known price.
    pub cost_usd_known: f64,
    /// Number of its messages without a known price.
    pub unpriced_messages: u64,
    /// Who used these tokens.
    pub used_by: UsageByOrigin,
    /// The line number of the line that opened it.
    pub line: u32,
}

impl TurnJson {
    /// The row of a turn.
    pub fn new(session: &Session, course: &ThreadEnds, row: &Row, used: &SessionUsage) -> TurnJson {
        let all = used.all();
        let (cost_usd, cost_usd_known, unpriced_messages) = cost::cost_fields(all.cost);
        let opener = &session.records[row.record as usize];
        let time = |time: Option<unspool_model::time::Time>| time.map(|time| time.to_string());
        let ids = row.messages.iter().map(|&at| {
            let message = &session.messages[at as usize];
            session.message_id(message).map(str::to_owned)
        });
        TurnJson {
            n: row.n,
            uuid: opener.uuid.as_ref().map(ToString::to_string),
            kind: row.kind.name().to_owned(),
            round: row.round.name().to_owned(),
            input_kinds: opener
                .input_kinds()
                .names()
                .into_iter()
                .map(str::to_owned)
                .collect(),
            permission_mode: opener
                .permission_mode()
                .map(|mode| session.text(mode).to_owned()),
            prompt: row.prompt.clone(),
            at: time(row.at),
            ended: time(row.ended),
            duration_ms: row.duration_ms,
            messages: row.messages.len(),
            message_ids: ids.collect(),
            calls: row
                .calls
                .iter()
                .map(|&call| CallRow::brief(session, course, call))
                .collect(),
            agents: turns::agents(session, &row.calls),
            reply: row.reply.clone(),
            interrupted: row.interrupted,
            compacted: row.compacted,
            queued: row.queued.clone(),
            live: row.live,
            usage: all.usage.into(),
            cost_usd,
            cost_usd_known,
            unpriced_messages,
            used_by: UsageByOrigin::from(used),
            line: opener.line,
        }
    }
}
