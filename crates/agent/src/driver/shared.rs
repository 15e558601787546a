//! What the threads of a session share, and how they reach it.

use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use unspool_model::write::Entry;
use unspool_store::error::Error;

use super::prepare::Prepared;
use super::{Answer, Asked, AskingAgent, Command, Lore, Notice, Place, Spent};
use crate::api::client::{Client, Item};
use crate::call::Done;
use crate::compact;
use crate::history::History;
use crate::hooks::Hooks;
use crate::machine::Reason;
use crate::more::More;
use crate::permission::Policy;
use crate::record::{Record, Written};
use crate::request::Frame;
use crate::sandbox::Fence;
use crate::tool::{Call, Outcome};
use crate::tools::Kept;
use unspool_model::price::Prices;

/// What comes in, from all sides.
pub(crate) enum Message {
    Command(Command),
    Item(u64, Item),
    Ran(u64, Call, Done),
    Ask {
        ask: u64,
        call: Call,
        what: Asked,
        agent: Option<AskingAgent>,
        reply: Sender<Answer>,
    },
    /// Nobody waits for the answer to a question any more.
    Withdraw(u64),
    Tell(Notice),
    /// Something in the background has ended.
    News,
    Prepared(u64, Box<Prepared>),
    Deadline(u64),
    Compacted(u64, Result<compact::Summary, String>),
    MayStop(u64, Option<Reason>),
    Shell(Call, Outcome),
}

/// What the threads of a session share.
pub(crate) struct Shared {
    pub(crate) record: Mutex<Record>,
    pub(crate) history: Mutex<History>,
    pub(crate) policy: Mutex<Policy>,
    pub(crate) hooks: Hooks,
    pub(crate) place: Place,
    pub(crate) kept: Arc<Kept>,
    pub(crate) lore: Mutex<Lore>,
    pub(crate) more: Option<Arc<dyn More>>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) fence: Option<Fence>,
    pub(crate) cwd: Mutex<PathBuf>,
    pub(crate) client: Client,
    pub(crate) frame: Mutex<Frame>,
    pub(crate) events: Mutex<Sender<Message>>,
    pub(crate) asks: bool,
    pub(crate) session: String,
    pub(crate) beside: PathBuf,
    /// The session that a sub-agent works for.
    pub(crate) above: Option<Arc<Shared>>,
    /// Who that sub-agent is.
    pub(crate) agent: Option<AskingAgent>,
    pub(crate) spent: Mutex<Spent>,
    /// What models cost.
    pub(crate) prices: Arc<Prices>,
}

impl Shared {
    pub(crate) fn send(&self, message: Message) {
        // Nobody listens any more: the session is over.
        let _ = lock(&self.events).send(message);
    }

    pub(crate) fn add(&self, entry: Entry) -> Result<Written, Error> {
        lock(&self.record).add(entry)
    }

    /// The session itself, for its sub-agents.
    pub(crate) fn top(self: &Arc<Shared>) -> Arc<Shared> {
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
pub(crate) fn whole<T>(work: impl FnOnce() -> T) -> Option<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).ok()
}

/// What a lock holds, also after somebody panicked with it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
