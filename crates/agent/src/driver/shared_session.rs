//! What the threads of a session share, and how they reach it.

use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use unspool_model::entry_writer::NewEntry;
use unspool_store::error::StoreError;

use super::prompt_preparation::PreparedPrompt;
use super::{
    AskingAgent, QuestionAnswer, QuestionKind, RunUsage, SessionCommand, SessionCustomizations,
    SessionDirs, SessionNotice,
};
use crate::api::client::{MessagesClient, StreamItem};
use crate::compaction;
use crate::file_history::FileHistory;
use crate::hooks::SessionHooks;
use crate::mcp_tools::McpTools;
use crate::permission::PermissionPolicy;
use crate::request::RequestOptions;
use crate::sandbox::WriteSandbox;
use crate::state_machine::TurnContinueReason;
use crate::tool::{ToolCallRequest, ToolOutcome};
use crate::tool_call::FinishedCall;
use crate::tools::ToolState;
use crate::transcript_writer::{TranscriptWriter, WrittenLine};
use unspool_model::price::Prices;

/// What comes in, from all sides.
pub(crate) enum DriverMessage {
    Command(SessionCommand),
    Item(u64, StreamItem),
    Ran(u64, ToolCallRequest, FinishedCall),
    Ask {
        ask: u64,
        call: ToolCallRequest,
        what: QuestionKind,
        agent: Option<AskingAgent>,
        reply: Sender<QuestionAnswer>,
    },
    /// Nobody waits for the answer to a question any more.
    Withdraw(u64),
    Tell(SessionNotice),
    /// Something in the background has ended.
    News,
    Prepared(u64, Box<PreparedPrompt>),
    Deadline(u64),
    Compacted(u64, Result<compaction::CompactionSummary, String>),
    MayStop(u64, Option<TurnContinueReason>),
    Shell(ToolCallRequest, ToolOutcome),
}

/// What the threads of a session share.
pub(crate) struct SharedSession {
    pub(crate) record: Mutex<TranscriptWriter>,
    pub(crate) history: Mutex<FileHistory>,
    pub(crate) policy: Mutex<PermissionPolicy>,
    pub(crate) hooks: SessionHooks,
    pub(crate) place: SessionDirs,
    pub(crate) kept: Arc<ToolState>,
    pub(crate) lore: Mutex<SessionCustomizations>,
    pub(crate) more: Option<Arc<dyn McpTools>>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) fence: Option<WriteSandbox>,
    pub(crate) cwd: Mutex<PathBuf>,
    pub(crate) client: MessagesClient,
    pub(crate) frame: Mutex<RequestOptions>,
    pub(crate) events: Mutex<Sender<DriverMessage>>,
    pub(crate) asks: bool,
    pub(crate) session: String,
    pub(crate) beside: PathBuf,
    /// The session that a sub-agent works for.
    pub(crate) above: Option<Arc<SharedSession>>,
    /// Who that sub-agent is.
    pub(crate) agent: Option<AskingAgent>,
    pub(crate) spent: Mutex<RunUsage>,
    /// What models cost.
    pub(crate) prices: Arc<Prices>,
}

impl SharedSession {
    pub(crate) fn send(&self, message: DriverMessage) {
        // Nobody listens any more: the session is over.
        let _ = lock(&self.events).send(message);
    }

    pub(crate) fn add(&self, entry: NewEntry) -> Result<WrittenLine, StoreError> {
        lock(&self.record).add(entry)
    }

    /// The session itself, for its sub-agents.
    pub(crate) fn top(self: &Arc<SharedSession>) -> Arc<SharedSession> {
        let mut top = Arc::clone(self);
        while let Some(above) = top.above.clone() {
            top = above;
        }
        top
    }

    /// What hooks are told about every event.
    pub(crate) fn about(&self, event: &str) -> Value {
        let cwd = lock(&self.cwd).display().to_string();
        let path = lock(&self.record).path().display().to_string();
        let mode = lock(&self.policy).mode().name();
        json!({
            "session_id": self.session, "transcript_path": path, "cwd": cwd,
            "permission_mode": mode, "hook_event_name": event,
        })
    }
}

/// Does something that somebody waits for: `None` if it breaks down, instead of never an end.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).ok()
}

/// What a lock holds, also after somebody panicked with it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
