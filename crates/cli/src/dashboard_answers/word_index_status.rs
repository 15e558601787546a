//! How far the index of words is, and who goes on building it.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::DashboardBackend;
use crate::commands::search as searching;

/// How far the index of words is.
#[derive(Default)]
pub(super) struct WordIndexStatus {
    state: Mutex<WordIndexPhase>,
    ready: Condvar,
    /// When somebody was last sent to gather the rest.
    sent: Mutex<Option<Instant>>,
}

impl WordIndexStatus {
    /// Whether it is time to send somebody for the rest; asking is sending.
    pub(super) fn are_due(&self) -> bool {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let due = sent.is_none_or(|at| at.elapsed() >= AGAIN);
        if due {
            *sent = Some(Instant::now());
        }
        due
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum WordIndexPhase {
    #[default]
    Untouched,
    Building,
    Ready,
}

/// How long a search waits for the index to be there the first time.
const SOON: Duration = Duration::from_millis(800);
/// How long whoever gathers the rest is left alone.
const AGAIN: Duration = Duration::from_secs(30);

impl DashboardBackend {
    /// Whether words can be asked for. The first time, they are gathered behind.
    pub(super) fn has_words(&self) -> bool {
        let words = &self.inner.words;
        let mut state = words.state.lock().unwrap_or_else(PoisonError::into_inner);
        if *state == WordIndexPhase::Untouched {
            *state = WordIndexPhase::Building;
            let inner = Arc::clone(&self.inner);
            std::thread::spawn(move || {
                let args = searching::SearchArgs {
                    query: "a".to_owned(),
                    ranked: true,
                    limit: Some(1),
                    no_background: true,
                    ..searching::SearchArgs::default()
                };
                // Whatever goes wrong is told to whoever asks next.
                let _ = searching::ranked::rows(&inner.world, &args);
                let state = inner.words.state.lock();
                *state.unwrap_or_else(PoisonError::into_inner) = WordIndexPhase::Ready;
                inner.words.ready.notify_all();
            });
        }
        let building = |state: &mut WordIndexPhase| *state == WordIndexPhase::Building;
        let waited = words.ready.wait_timeout_while(state, SOON, building);
        *waited.unwrap_or_else(PoisonError::into_inner).0 == WordIndexPhase::Ready
    }
}
