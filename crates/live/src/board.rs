//! What is known now, and who wants to hear of changes.
//!
//! The loop writes here, anybody reads. A change is numbered, remembered for a while and handed
//! to every listener; one that does not keep up is let go, so that nobody's slowness takes
//! memory or time from others.

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use unspool_show::wire::session::SessionRow;

use crate::{Joined, News, What};

/// How many changes are remembered.
const REMEMBERED: usize = 4_096;

/// How many changes a listener may be behind.
const BEHIND: usize = 4_096;

/// How long somebody who joins waits for the first rows.
const FIRST: Duration = Duration::from_millis(250);

/// What tells a session from all others: the path of its file.
pub type Name = Arc<str>;

/// The board.
#[derive(Debug, Default)]
pub struct Board {
    inner: Mutex<Inner>,
    ready: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    rows: HashMap<Name, Arc<SessionRow>>,
    news: VecDeque<News>,
    last: u64,
    listeners: Vec<SyncSender<News>>,
    scanned: bool,
    ready: bool,
    ended: bool,
    notes: Vec<String>,
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A listener that panicked has not hurt the rows.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first rows are here.
    pub fn set_ready(&self) {
        self.lock().ready = true;
        self.ready.notify_all();
    }

    /// The loop is over: all listeners hear the end.
    pub fn end(&self) {
        let mut inner = self.lock();
        inner.listeners.clear();
        inner.ended = true;
        inner.ready = true;
        self.ready.notify_all();
    }

    /// Whether the loop is over.
    pub fn is_over(&self) -> bool {
        self.lock().ended
    }

    /// Something that people should know about how we look.
    pub fn note(&self, note: String) {
        let mut inner = self.lock();
        if !inner.notes.contains(&note) {
            inner.notes.push(note);
        }
    }

    /// What people should know.
    pub fn notes(&self) -> Vec<String> {
        self.lock().notes.clone()
    }

    /// All rows and what comes after.
    pub fn join(&self) -> Joined {
        let guard = self.lock();
        let waited = self
            .ready
            .wait_timeout_while(guard, FIRST, |inner| !inner.ready);
        let (mut inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let (sender, news) = mpsc::sync_channel(BEHIND);
        if !inner.ended {
            inner.listeners.push(sender);
        }
        Joined {
            rows: inner.sorted(),
            at: inner.last,
            scanned: inner.scanned,
            news,
        }
    }

    /// The row of a session, by its id; of several with the same id, the latest.
    pub fn row(&self, id: &str) -> Option<Arc<SessionRow>> {
        let inner = self.lock();
        let same = inner.rows.values().filter(|row| row.id == id);
        same.max_by(|a, b| a.last.cmp(&b.last)).cloned()
    }

    /// The row with this name.
    pub fn get(&self, name: &Name) -> Option<Arc<SessionRow>> {
        self.lock().rows.get(name).cloned()
    }

    /// How many sessions there are, and whether all files were looked at.
    pub fn counts(&self) -> (usize, bool) {
        let inner = self.lock();
        (inner.rows.len(), inner.scanned)
    }

    /// Changes after a number, if all of them are still remembered.
    pub fn since(&self, id: u64) -> Option<Vec<News>> {
        let inner = self.lock();
        if id > inner.last {
            return None;
        }
        let first = inner.last - inner.news.len() as u64;
        if id < first {
            return None;
        }
        let skip = usize::try_from(id - first).ok()?;
        Some(inner.news.iter().skip(skip).cloned().collect())
    }

    /// Puts a row on the board. Nothing is told if it is as it was.
    pub fn put(&self, name: &Name, row: SessionRow, grown: bool) -> bool {
        let mut inner = self.lock();
        let old = inner.rows.get(name);
        if old.is_some_and(|old| **old == row) {
            return false;
        }
        let before = old.map(|old| old.status.clone());
        let before = before.filter(|before| *before != row.status);
        let row = Arc::new(row);
        inner.rows.insert(Arc::clone(name), Arc::clone(&row));
        inner.tell(What::Session { row, before, grown });
        true
    }

    /// Takes a row from the board.
    pub fn remove(&self, name: &Name) {
        let mut inner = self.lock();
        let Some(gone) = inner.rows.remove(name) else {
            return;
        };
        let id = gone.id.clone();
        let same = inner.rows.values().filter(|row| row.id == id);
        let rest = same.max_by(|a, b| a.last.cmp(&b.last)).cloned();
        // Copies in two folders have one id: what is left is what the id means now.
        inner.tell(match rest {
            Some(row) => What::Session {
                before: (row.status != gone.status).then(|| gone.status.clone()),
                row,
                grown: false,
            },
            None => What::Removed { id },
        });
    }

    /// All files were looked at.
    pub fn set_scanned(&self) {
        let mut inner = self.lock();
        if !inner.scanned {
            inner.scanned = true;
            inner.tell(What::Scanned);
        }
    }
}

impl Inner {
    fn sorted(&self) -> Vec<Arc<SessionRow>> {
        let mut rows: Vec<_> = self.rows.values().cloned().collect();
        rows.sort_by(|a, b| b.last.cmp(&a.last).then_with(|| a.id.cmp(&b.id)));
        rows
    }

    fn tell(&mut self, what: What) {
        self.last += 1;
        let news = News {
            id: self.last,
            what,
        };
        self.listeners
            .retain(|listener| listener.try_send(news.clone()).is_ok());
        if self.news.len() == REMEMBERED {
            self.news.pop_front();
        }
        self.news.push_back(news);
    }
}
