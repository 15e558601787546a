//! What all sessions are doing, as it changes.
//!
//! One thread, one loop over one enum ([`Event`]), no async. Whoever wants to know takes a
//! [`Live`]: the rows as they are now, and every change as it comes. The loop has no rule about
//! sessions: rows and states are views of the model.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use unspool_model::edit::redact::Redactor;
use unspool_model::price::Prices;
use unspool_model::time::Time;
use unspool_show::wire::session::SessionRow;
use unspool_store::events::{Events, Noted};

/// What the loop is told.
#[derive(Debug)]
pub enum Event {
    /// A file or folder may have changed.
    Hint(PathBuf),
    /// Anything may have changed: hints were lost, or it is time to look.
    Rescan,
    /// A hook told something.
    Hook(Box<Noted>),
    /// Time passed.
    Tick,
    /// The end.
    Stop,
}

/// Where to look and how to read.
#[derive(Clone)]
pub struct Setting {
    /// Where sessions live.
    pub dirs: Vec<PathBuf>,
    /// What hooks told.
    pub events: Events,
    /// What models cost.
    pub prices: Prices,
    /// What takes secrets out of what is shown.
    pub mask: Option<&'static Redactor>,
    /// Where positions and rows are kept over restarts.
    pub state: Option<PathBuf>,
    /// The clock.
    pub clock: fn() -> Time,
}

/// A change, numbered without gaps since the loop began.
#[derive(Clone, Debug)]
pub struct News {
    /// Its number.
    pub id: u64,
    /// What changed.
    pub what: What,
}

/// What changed.
#[derive(Clone, Debug)]
pub enum What {
    /// A session is new, has grown, or its state is another one.
    Session {
        /// As it is now.
        row: Arc<SessionRow>,
        /// The state it was in, if that is another one; none for a new session.
        before: Option<String>,
        /// Whether lines were added, not only time passed.
        grown: bool,
    },
    /// A session is gone.
    Removed {
        /// Its id.
        id: String,
    },
    /// The first look at all files is done.
    Scanned,
}

/// The running loop; clones are the same loop.
#[derive(Clone, Debug)]
pub struct Live {
    _private: (),
}

/// All sessions at one moment, and what comes after.
#[derive(Debug)]
pub struct Joined {
    /// All rows, the latest first.
    pub rows: Vec<Arc<SessionRow>>,
    /// The number of the last change they contain.
    pub at: u64,
    /// Whether all files were looked at.
    pub scanned: bool,
    /// Every later change; ends when the loop does, or when the receiver is too slow.
    pub news: Receiver<News>,
}

impl Live {
    /// Starts the loop on threads of its own; rows of the newest sessions come first.
    pub fn start(_setting: Setting) -> std::io::Result<Live> {
        Ok(Live { _private: () })
    }

    /// All rows now, and every change from now on, without a gap.
    pub fn join(&self) -> Joined {
        let (_, news) = std::sync::mpsc::channel();
        Joined {
            rows: Vec::new(),
            at: 0,
            scanned: false,
            news,
        }
    }

    /// Changes after this number, if they are still remembered.
    pub fn since(&self, _id: u64) -> Option<Vec<News>> {
        None
    }

    /// Tells the loop something.
    pub fn tell(&self, _event: Event) {}
}
