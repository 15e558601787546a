//! What is known about sessions beside their transcripts, kept up to date.
//!
//! The registry of the client is small and read again every few seconds, because a process that
//! dies tells nobody. Events of hooks are read once for each session that is looked at, and
//! again when more were told.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use unspool_model::view::status::{self, HookSignal};
use unspool_store::hook_events::{self, HookEventStore, RecordedHookEvent};
use unspool_store::signals::{self, KnownSignals};

/// How many events of a session are remembered.
const MOST: usize = 256;

/// How many bytes of events are read.
const BYTES: u64 = 128 << 10;

/// Events of so many sessions are remembered.
const SESSIONS: usize = 512;

/// A day, in milliseconds.
const DAY: i64 = 86_400_000;

/// What is known.
#[derive(Debug)]
pub struct SignalCache {
    configs: Vec<PathBuf>,
    events: HookEventStore,
    inner: Mutex<SignalCacheState>,
}

#[derive(Debug, Default)]
struct SignalCacheState {
    registry: Arc<KnownSignals>,
    /// Keys of sessions that have told something, and when last.
    told: HashMap<String, i64>,
    /// Events that were read, by session.
    hooks: HashMap<String, Vec<HookSignal>>,
}

impl SignalCache {
    /// Looks around for the first time.
    pub fn look(configs: Vec<PathBuf>, events: HookEventStore, now: i64) -> SignalCache {
        let inner = SignalCacheState {
            registry: Arc::new(KnownSignals::look(&configs, None, now)),
            told: events.told(),
            hooks: HashMap::new(),
        };
        SignalCache {
            configs,
            events,
            inner: Mutex::new(inner),
        }
    }

    fn lock(&self) -> MutexGuard<'_, SignalCacheState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known about a session.
    pub fn of(&self, config: &Path, session: &str) -> status::StatusSignals {
        let registry = Arc::clone(&self.lock().registry);
        status::StatusSignals {
            hooks: self.hooks(session),
            ..registry.of(config, session)
        }
    }

    fn hooks(&self, session: &str) -> Vec<HookSignal> {
        {
            let inner = self.lock();
            if !inner.told.contains_key(&hook_events::key(session)) {
                return Vec::new();
            }
            if let Some(hooks) = inner.hooks.get(session) {
                return hooks.clone();
            }
        }
        let hooks: Vec<HookSignal> = self.read(session);
        let mut inner = self.lock();
        if inner.hooks.len() >= SESSIONS {
            inner.hooks.clear();
        }
        inner.hooks.insert(session.to_owned(), hooks.clone());
        hooks
    }

    fn read(&self, session: &str) -> Vec<HookSignal> {
        let noted = self.events.newest(session, BYTES);
        let skip = noted.len().saturating_sub(MOST);
        noted.iter().skip(skip).map(signals::signal).collect()
    }

    /// Takes in an event that was just told.
    pub fn hear(&self, noted: &RecordedHookEvent) {
        // What is on disk counts, and may not have been read before.
        let mut hooks = self.hooks(&noted.session);
        let signal = signals::signal(noted);
        let same = |one: &HookSignal| {
            one.at == signal.at
                && one.event.name == signal.event.name
                && one.event.call == signal.event.call
        };
        if !hooks.iter().any(same) {
            hooks.push(signal);
            hooks.sort_by_key(|signal| signal.at);
        }
        let over = hooks.len().saturating_sub(MOST);
        hooks.drain(..over);
        let mut inner = self.lock();
        inner
            .told
            .entry(hook_events::key(&noted.session))
            .or_default();
        inner.hooks.insert(noted.session.clone(), hooks);
    }

    /// The events of a session with this key have changed on disk.
    pub fn forget(&self, key: &str) {
        let mut inner = self.lock();
        inner.told.entry(key.to_owned()).or_default();
        inner
            .hooks
            .retain(|session, _| hook_events::key(session) != key);
    }

    /// Looks which sessions have told something that nobody hinted at; their keys.
    pub fn retell(&self) -> HashSet<String> {
        let told = self.events.told();
        let mut inner = self.lock();
        let old = std::mem::replace(&mut inner.told, told);
        let told = inner.told.iter();
        let news = told.filter(|(key, at)| old.get(*key) != Some(at));
        let news: HashSet<String> = news.map(|(key, _)| key.clone()).collect();
        inner
            .hooks
            .retain(|session, _| !news.contains(&hook_events::key(session)));
        news
    }

    /// Whether something may be known about a session that nobody has seen who was not here.
    pub fn is_news(&self, session: &str, now: i64) -> bool {
        let inner = self.lock();
        let told = inner.told.get(&hook_events::key(session));
        let registered = inner.registry.sessions().any(|id| id == session);
        registered || told.is_some_and(|at| now - at < DAY)
    }

    /// Reads the registry again; the sessions about which it says something else now.
    pub fn renew(&self, now: i64) -> Vec<String> {
        let new = Arc::new(KnownSignals::look(&self.configs, None, now));
        let old = std::mem::replace(&mut self.lock().registry, Arc::clone(&new));
        let ids: HashSet<&str> = old.sessions().chain(new.sessions()).collect();
        let none = Path::new("");
        let differs = |id: &&str| {
            let (old, new) = (old.of(none, id), new.of(none, id));
            old.registry != new.registry || old.job != new.job
        };
        ids.into_iter().filter(differs).map(str::to_owned).collect()
    }
}
