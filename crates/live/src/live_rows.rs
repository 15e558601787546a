//! What is known now, and who wants to hear of changes.
//!
//! The loop writes here, anybody reads. A change is numbered, remembered for a while and handed
//! to every listener; one that does not keep up is let go, so that nobody's slowness takes
//! memory or time from others.

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use unspool_show::wire::session::SessionJson;

use crate::{LiveChange, LiveChangeKind, LiveSubscription};

/// How many changes are remembered.
const REMEMBERED: usize = 4_096;

/// How many changes a listener may be behind.
const BEHIND: usize = 4_096;

/// How long somebody who joins waits for the first rows.
const FIRST: Duration = Duration::from_secs(1);

/// What tells a session from all others: the path of its file.
pub type SessionPath = Arc<str>;

/// The board.
#[derive(Debug, Default)]
pub struct LiveRows {
    inner: Mutex<LiveRowsState>,
    ready: Condvar,
}

#[derive(Debug, Default)]
struct LiveRowsState {
    rows: HashMap<SessionPath, Arc<SessionJson>>,
    news: VecDeque<LiveChange>,
    last: u64,
    listeners: Vec<SyncSender<LiveChange>>,
    scanned: bool,
    ready: bool,
    ended: bool,
    notes: Vec<String>,
}

impl LiveRows {
    fn lock(&self) -> MutexGuard<'_, LiveRowsState> {
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
    pub fn join(&self) -> LiveSubscription {
        let guard = self.lock();
        let waited = self
            .ready
            .wait_timeout_while(guard, FIRST, |inner| !inner.ready);
        let (mut inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let (sender, news) = mpsc::sync_channel(BEHIND);
        if !inner.ended {
            inner.listeners.push(sender);
        }
        LiveSubscription {
            rows: inner.sorted(),
            at: inner.last,
            scanned: inner.scanned,
            news,
        }
    }

    /// The row of a session, by its id; of several with the same id, the latest.
    pub fn row(&self, id: &str) -> Option<Arc<SessionJson>> {
        let inner = self.lock();
        let same = inner.rows.values().filter(|row| row.id == id);
        same.max_by(|a, b| a.last.cmp(&b.last)).cloned()
    }

    /// The row with this name.
    pub fn get(&self, name: &SessionPath) -> Option<Arc<SessionJson>> {
        self.lock().rows.get(name).cloned()
    }

    /// All rows with their names.
    pub fn all(&self) -> Vec<(SessionPath, Arc<SessionJson>)> {
        let inner = self.lock();
        let rows = inner.rows.iter();
        rows.map(|(name, row)| (Arc::clone(name), Arc::clone(row)))
            .collect()
    }

    /// How many sessions there are, and whether all files were looked at.
    pub fn counts(&self) -> (usize, bool) {
        let inner = self.lock();
        (inner.rows.len(), inner.scanned)
    }

    /// Changes after a number, if all of them are still remembered.
    pub fn since(&self, id: u64) -> Option<Vec<LiveChange>> {
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
    pub fn put(&self, name: &SessionPath, row: SessionJson, grown: bool) -> bool {
        let mut inner = self.lock();
        let old = inner.rows.get(name);
        if old.is_some_and(|old| **old == row) {
            return false;
        }
        let before = old.map(|old| old.status.clone());
        let before = before.filter(|before| *before != row.status);
        let row = Arc::new(row);
        inner.rows.insert(Arc::clone(name), Arc::clone(&row));
        inner.tell(LiveChangeKind::Session { row, before, grown });
        true
    }

    /// Takes a row from the board.
    pub fn remove(&self, name: &SessionPath) {
        let mut inner = self.lock();
        let Some(gone) = inner.rows.remove(name) else {
            return;
        };
        let id = gone.id.clone();
        let same = inner.rows.values().filter(|row| row.id == id);
        let rest = same.max_by(|a, b| a.last.cmp(&b.last)).cloned();
        // Copies in two folders have one id: what is left is what the id means now.
        inner.tell(match rest {
            Some(row) => LiveChangeKind::Session {
                before: (row.status != gone.status).then(|| gone.status.clone()),
                row,
                grown: false,
            },
            None => LiveChangeKind::Removed { id },
        });
    }

    /// All files were looked at.
    pub fn set_scanned(&self) {
        let mut inner = self.lock();
        if !inner.scanned {
            inner.scanned = true;
            inner.tell(LiveChangeKind::Scanned);
        }
    }
}

impl LiveRowsState {
    fn sorted(&self) -> Vec<Arc<SessionJson>> {
        let mut rows: Vec<_> = self.rows.values().cloned().collect();
        rows.sort_by(|a, b| b.last.cmp(&a.last).then_with(|| a.id.cmp(&b.id)));
        rows
    }

    fn tell(&mut self, what: LiveChangeKind) {
        self.last += 1;
        let news = LiveChange {
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

#[cfg(test)]
mod tests {
    // Helpers outside of test functions may give up as well.
    #![allow(clippy::unwrap_used)]

    use super::*;
    use unspool_model::price::Prices;
    use unspool_model::session::{Session, TranscriptRole};
    use unspool_model::time::Time;
    use unspool_model::view::session_row;
    use unspool_model::view::session_usage::SessionFiles;
    use unspool_show::wire::session::SessionFileInfo;

    fn row(id: &str, turns: usize) -> SessionJson {
        let session = Session::new(TranscriptRole::Main);
        let (none, signals) = (HashMap::new(), Default::default());
        let files = SessionFiles::alone(&session);
        let view = session_row::row(&files, &none, Prices::bundled(), &signals, Time(0));
        let place = SessionFileInfo {
            id: id.to_owned(),
            ..SessionFileInfo::default()
        };
        SessionJson {
            turns,
            ..SessionJson::new(&session, view, place)
        }
    }

    fn ready() -> LiveRows {
        let board = LiveRows::default();
        board.set_ready();
        board
    }

    #[test]
    fn who_does_not_keep_up_is_let_go_and_others_are_not() {
        let board = ready();
        let (slow, quick) = (board.join(), board.join());
        let name: SessionPath = "a".into();
        for turns in 0..BEHIND * 2 {
            assert!(board.put(&name, row("a", turns), true));
            assert_eq!(quick.news.recv().unwrap().id, turns as u64 + 1);
        }
        assert_eq!(slow.news.iter().count(), BEHIND);
        assert_eq!(board.lock().listeners.len(), 1);
    }

    #[test]
    fn what_is_forgotten_cannot_be_told_again() {
        let board = ready();
        let name: SessionPath = "a".into();
        for turns in 0..REMEMBERED + 10 {
            board.put(&name, row("a", turns), true);
        }
        let last = (REMEMBERED + 10) as u64;
        assert!(board.since(9).is_none());
        assert_eq!(board.since(10).unwrap().len(), REMEMBERED);
        let ids: Vec<u64> = board
            .since(last - 2)
            .unwrap()
            .iter()
            .map(|it| it.id)
            .collect();
        assert_eq!(ids, [last - 1, last]);
        assert!(board.since(last).unwrap().is_empty() && board.since(last + 1).is_none());
    }

    #[test]
    fn what_is_as_it_was_is_not_told() {
        let board = ready();
        let name: SessionPath = "a".into();
        assert!(board.put(&name, row("a", 1), true));
        assert!(!board.put(&name, row("a", 1), true));
        assert_eq!(board.since(0).unwrap().len(), 1);
    }

    #[test]
    fn of_two_files_with_one_id_the_other_one_is_left() {
        let board = ready();
        let (one, two): (SessionPath, SessionPath) = ("1".into(), "2".into());
        board.put(&one, row("a", 1), true);
        board.put(&two, row("a", 2), true);
        board.remove(&one);
        board.remove(&one);
        board.remove(&two);
        let news = board.since(2).unwrap();
        assert!(matches!(&news[0].what, LiveChangeKind::Session { row, .. } if row.turns == 2));
        assert!(matches!(&news[1].what, LiveChangeKind::Removed { id } if id == "a"));
        assert_eq!(news.len(), 2);
    }

    #[test]
    fn the_end_is_heard_by_all() {
        let board = ready();
        let joined = board.join();
        board.end();
        assert!(joined.news.recv().is_err() && board.join().news.recv().is_err());
    }
}
