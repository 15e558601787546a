//! What all sessions are doing, as it changes.
//!
//! One thread, one loop over one enum ([`LiveEvent`]), no async. Whoever wants to know takes a
//! [`LiveSessions`]: the rows as they are now, and every change as it comes. The loop has no rule about
//! sessions: rows and states are views of the model.

mod followed_session;
mod live_loop;
mod live_rows;
mod read_workers;
mod session_row;
mod signal_cache;
mod snapshot;

use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use jiff::tz::TimeZone;
use unspool_model::edit::redact::Redactor;
use unspool_model::price::Prices;
use unspool_model::time::Time;
use unspool_show::wire::session::SessionJson;
use unspool_store::hook_events::{HookEventStore, RecordedHookEvent};

pub use read_workers::recent;

use crate::live_loop::{LiveLoop, LoopMessage};
use crate::live_rows::LiveRows;

/// What the loop is told.
#[derive(Debug)]
pub enum LiveEvent {
    /// A file or folder may have changed.
    Hint(PathBuf),
    /// Anything may have changed: hints were lost, or it is time to look.
    Rescan,
    /// A hook told something.
    Hook(Box<RecordedHookEvent>),
    /// Time passed.
    Tick,
    /// The end.
    Stop,
}

/// Where to look and how to read.
#[derive(Clone)]
pub struct LiveSettings {
    /// Where sessions live.
    pub dirs: Vec<PathBuf>,
    /// What hooks told.
    pub events: HookEventStore,
    /// What models cost.
    pub prices: Prices,
    /// What takes secrets out of what is shown.
    pub mask: Option<&'static Redactor>,
    /// Where positions and rows are kept over restarts.
    pub state: Option<PathBuf>,
    /// Whether the system is asked to tell of changes; if not, files are looked at by the clock.
    pub watch: bool,
    /// The clock.
    pub clock: fn() -> Time,
    /// The zone that days are of.
    pub zone: TimeZone,
}

/// A change, numbered without gaps since the loop began.
#[derive(Clone, Debug)]
pub struct LiveChange {
    /// Its number.
    pub id: u64,
    /// What changed.
    pub what: LiveChangeKind,
}

/// What changed.
#[derive(Clone, Debug)]
pub enum LiveChangeKind {
    /// A session is new, has grown, or its state is another one.
    Session {
        /// As it is now.
        row: Arc<SessionJson>,
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

/// The running loop; clones are the same loop, which ends with the last of them.
#[derive(Clone, Debug)]
pub struct LiveSessions {
    inner: Arc<LiveSessionsInner>,
}

#[derive(Debug)]
struct LiveSessionsInner {
    board: Arc<LiveRows>,
    tell: Sender<LoopMessage>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// All sessions at one moment, and what comes after.
#[derive(Debug)]
pub struct LiveSubscription {
    /// All rows, the latest first.
    pub rows: Vec<Arc<SessionJson>>,
    /// The number of the last change they contain.
    pub at: u64,
    /// Whether all files were looked at.
    pub scanned: bool,
    /// Every later change; ends when the loop does, or when the receiver is too slow.
    pub news: Receiver<LiveChange>,
}

impl LiveSessions {
    /// Starts the loop on threads of its own; rows of the newest sessions come first.
    pub fn start(setting: LiveSettings) -> std::io::Result<LiveSessions> {
        let (tell, heard) = mpsc::channel();
        let board = Arc::new(LiveRows::default());
        let run = LiveLoop::new(setting, Arc::clone(&board), heard, tell.clone())?;
        let thread = std::thread::Builder::new().name("live".into());
        let thread = thread.spawn(move || run.run())?;
        let inner = LiveSessionsInner {
            board,
            tell,
            thread: Mutex::new(Some(thread)),
        };
        Ok(LiveSessions {
            inner: Arc::new(inner),
        })
    }

    /// All rows now, and every change from now on, without a gap. Right after the start it
    /// waits for the newest rows, a second at most.
    pub fn join(&self) -> LiveSubscription {
        self.inner.board.join()
    }

    /// The row of a session, by its id.
    pub fn row(&self, id: &str) -> Option<Arc<SessionJson>> {
        self.inner.board.row(id)
    }

    /// How many sessions there are, and whether all files were looked at.
    pub fn counts(&self) -> (usize, bool) {
        self.inner.board.counts()
    }

    /// What people should know about how files are looked at, such as that nothing tells of
    /// changes; mostly nothing.
    pub fn notes(&self) -> Vec<String> {
        self.inner.board.notes()
    }

    /// Changes after this number, if they are still remembered.
    pub fn since(&self, id: u64) -> Option<Vec<LiveChange>> {
        self.inner.board.since(id)
    }

    /// Tells the loop something.
    pub fn tell(&self, event: LiveEvent) {
        let _ = self.inner.tell.send(LoopMessage::Event(event));
    }

    /// Ends the loop and waits until it has kept what it knows.
    pub fn stop(&self) {
        self.inner.stop();
    }

    /// Whether the loop is over.
    pub fn is_over(&self) -> bool {
        self.inner.board.is_over()
    }
}

impl LiveSessionsInner {
    fn stop(&self) {
        let _ = self.tell.send(LoopMessage::Event(LiveEvent::Stop));
        let thread = self.thread.lock();
        let thread = thread.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Drop for LiveSessionsInner {
    fn drop(&mut self) {
        self.stop();
    }
}
