//! What all sessions are doing, as it changes.
//!
//! One thread, one loop over one enum ([`Event`]), no async. Whoever wants to know takes a
//! [`Live`]: the rows as they are now, and every change as it comes. The loop has no rule about
//! sessions: rows and states are views of the model.

mod board;
mod fold;
mod kept;
mod row;
mod run;
mod signs;
mod work;

use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use jiff::tz::TimeZone;
use unspool_model::edit::redact::Redactor;
use unspool_model::price::Prices;
use unspool_model::time::Time;
use unspool_show::wire::session::SessionRow;
use unspool_store::events::{Events, Noted};

pub use work::recent;

use crate::board::Board;
use crate::run::{Loop, Told};

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
    /// Whether the system is asked to tell of changes; if not, files are looked at by the clock.
    pub watch: bool,
    /// The clock.
    pub clock: fn() -> Time,
    /// The zone that days are of.
    pub zone: TimeZone,
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

/// The running loop; clones are the same loop, which ends with the last of them.
#[derive(Clone, Debug)]
pub struct Live {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    board: Arc<Board>,
    tell: Sender<Told>,
    thread: Mutex<Option<JoinHandle<()>>>,
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
    pub fn start(setting: Setting) -> std::io::Result<Live> {
        let (tell, heard) = mpsc::channel();
        let board = Arc::new(Board::default());
        let run = Loop::new(setting, Arc::clone(&board), heard, tell.clone())?;
        let thread = std::thread::Builder::new().name("live".into());
        let thread = thread.spawn(move || run.run())?;
        let inner = Inner {
            board,
            tell,
            thread: Mutex::new(Some(thread)),
        };
        Ok(Live {
            inner: Arc::new(inner),
        })
    }

    /// All rows now, and every change from now on, without a gap. Right after the start it
    /// waits for the newest rows, a second at most.
    pub fn join(&self) -> Joined {
        self.inner.board.join()
    }

    /// The row of a session, by its id.
    pub fn row(&self, id: &str) -> Option<Arc<SessionRow>> {
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
    pub fn since(&self, id: u64) -> Option<Vec<News>> {
        self.inner.board.since(id)
    }

    /// Tells the loop something.
    pub fn tell(&self, event: Event) {
        let _ = self.inner.tell.send(Told::Event(event));
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

impl Inner {
    fn stop(&self) {
        let _ = self.tell.send(Told::Event(Event::Stop));
        let thread = self.thread.lock();
        let thread = thread.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop();
    }
}
