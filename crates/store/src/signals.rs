//! What is known about sessions beside their transcripts: what hooks told, what the client's
//! registry says, and whether its process lives.
//!
//! Looked up once for all sessions, so that a list of thousands asks no more of the system than
//! a list of ten.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use unspool_model::time::Time;
use unspool_model::view::status::{
    self, HookSignal, RegistryEntry, RegistryState, RegistryStatus, ZoneOffsets,
};

use crate::hook_events::{self, HookEventStore, RecordedHookEvent};
use crate::session_in_use;
use crate::side_files::{self, RunningClient};

/// All that is known, as it was at one moment.
#[derive(Clone, Debug, Default)]
pub struct KnownSignals {
    /// What the registry says, by session.
    entries: HashMap<String, RegistryEntry>,
    /// Sessions in the background, by session.
    jobs: HashMap<String, status::BackgroundJob>,
    /// Folders whose clients keep a registry.
    registries: HashSet<PathBuf>,
    events: Option<HookEventStore>,
    /// Which sessions told something, and when last.
    told: HashMap<String, i64>,
    now: i64,
}

/// Of sessions that told nothing for a day, only so much of the end is read.
const OLD: u64 = 8 << 10;
/// Of all others, so much.
const NEW: u64 = 128 << 10;
/// A day, in milliseconds.
const DAY: i64 = 86_400_000;

impl KnownSignals {
    /// Looks around once; `now` is in milliseconds since 1970.
    pub fn look<P: AsRef<Path>>(
        configs: impl IntoIterator<Item = P>,
        events: Option<&HookEventStore>,
        now: i64,
    ) -> KnownSignals {
        let mut signals = KnownSignals {
            told: events.map(HookEventStore::told).unwrap_or_default(),
            events: events.cloned(),
            now,
            ..KnownSignals::default()
        };
        for config in configs {
            signals.registry(config.as_ref());
        }
        signals
    }

    /// Reads the registry of a config folder, again if it was read before.
    fn registry(&mut self, config: &Path) {
        if config.join("sessions").is_dir() {
            self.registries.insert(config.to_owned());
        }
        for job in side_files::jobs(config) {
            let (session, job) = background(job);
            self.jobs.insert(session, job);
        }
        for running in side_files::registry(config) {
            let Some(id) = running.session.clone() else {
                continue;
            };
            let entry = entry(&running);
            // Who was killed leaves its note behind; who lives counts, then who spoke last.
            let rank = |entry: &RegistryEntry| (entry.alive, entry.since);
            let known = self.entries.get(&id);
            if known.is_none_or(|known| rank(known) < rank(&entry)) {
                self.entries.insert(id, entry);
            }
        }
    }

    /// The sessions that the registry knows.
    pub fn sessions(&self) -> impl Iterator<Item = &str> {
        let entries = self.entries.keys().chain(self.jobs.keys());
        entries.map(String::as_str)
    }

    /// The sessions in the background.
    pub fn jobs(&self) -> impl Iterator<Item = (&str, &status::BackgroundJob)> {
        self.jobs.iter().map(|(session, job)| (&**session, job))
    }

    /// What is known about a session in this config folder.
    pub fn of(&self, config: &Path, session: &str) -> status::StatusSignals {
        let job = self.jobs.get(session);
        let entry = self.entries.get(session).cloned();
        status::StatusSignals {
            hooks: self.hooks(session),
            registry: match entry.or_else(|| job.and_then(status::BackgroundJob::entry)) {
                Some(entry) => RegistryState::Entry(entry),
                None if self.registries.contains(config) => RegistryState::Missing,
                None => RegistryState::Unknown,
            },
            zones: zones(),
            job: job.cloned(),
        }
    }

    fn hooks(&self, session: &str) -> Vec<HookSignal> {
        let at = self.told.get(&hook_events::key(session));
        let Some((events, at)) = self.events.as_ref().zip(at) else {
            return Vec::new();
        };
        let bytes = if self.now - at > DAY { OLD } else { NEW };
        let noted = events.newest(session, bytes);
        noted.iter().map(signal).collect()
    }
}

/// A session in the background, with the id by which it is known.
fn background(job: side_files::BackgroundJobState) -> (String, status::BackgroundJob) {
    let time = |text: Option<String>| text.as_deref().and_then(Time::parse);
    // Of a session that has no id yet, the job has one.
    let session = job.session.unwrap_or_else(|| job.id.clone());
    let job = status::BackgroundJob {
        id: job.id,
        state: job.state.unwrap_or_default(),
        detail: job.detail,
        intent: job.intent,
        last: job.last,
        since: time(job.updated).or(time(job.created)),
        listed: job.listed,
    };
    (session, job)
}

/// An event that was noted, as the model takes it.
pub fn signal(noted: &RecordedHookEvent) -> HookSignal {
    HookSignal {
        at: Time(noted.at),
        event: noted.event(),
    }
}

/// What a note in the registry says.
pub fn entry(running: &RunningClient) -> RegistryEntry {
    let number = |name: &str| running.all[name].as_i64();
    let since = number("statusUpdatedAt").or_else(|| number("updatedAt"));
    RegistryEntry {
        says: running.status.as_deref().and_then(RegistryStatus::named),
        since: Some(Time(since.unwrap_or(running.modified))),
        alive: session_in_use::alive(running),
    }
}

/// What the system knows about zones.
pub fn zones() -> ZoneOffsets {
    ZoneOffsets(|name, at| {
        let zone = match name {
            Some(name) => jiff::tz::TimeZone::get(name).ok()?,
            None => jiff::tz::TimeZone::system(),
        };
        Some(zone.to_offset(at.timestamp()).seconds())
    })
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    // Helpers outside of test functions may give up as well.
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::fs;

    const NOW: i64 = 1_767_434_400_000;

    fn note(root: &Path, name: &str, text: &str) {
        fs::create_dir_all(root.join("sessions")).unwrap();
        fs::write(root.join("sessions").join(name), text).unwrap();
    }

    fn registered(root: &Path, session: &str) -> RegistryState {
        let signals = KnownSignals::look([root], None, NOW);
        signals.of(root, session).registry
    }

    #[test]
    fn without_a_registry_nothing_is_known() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(registered(dir.path(), "s"), RegistryState::Unknown);
        fs::create_dir(dir.path().join("sessions")).unwrap();
        assert_eq!(registered(dir.path(), "s"), RegistryState::Missing);
    }

    #[test]
    fn a_process_that_lives_is_told_from_one_that_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let pid = std::process::id();
        let text = format!(
            r#"{{"pid":{pid},"sessionId":"a","status":"waiting","updatedAt":5,"statusUpdatedAt":7}}"#
        );
        note(dir.path(), &format!("{pid}.json"), &text);
        let dead = r#"{"pid":4000000,"sessionId":"b","status":"busy","updatedAt":5}"#;
        note(dir.path(), "4000000.json", dead);
        let away = format!(
            r#"{{"pid":{pid},"sessionId":"c","status":"shell","updatedAt":5,"pidDomain":"linux:x:pid:[1]"}}"#
        );
        note(dir.path(), "1.json", &away);
        let entry = |says, since, alive| {
            RegistryState::Entry(RegistryEntry {
                says: Some(says),
                since: Some(Time(since)),
                alive,
            })
        };
        let of = |session| registered(dir.path(), session);
        assert_eq!(of("a"), entry(RegistryStatus::Waiting, 7, Some(true)));
        assert_eq!(of("b"), entry(RegistryStatus::Busy, 5, Some(false)));
        assert_eq!(of("c"), entry(RegistryStatus::Idle, 5, None));
        assert_eq!(of("d"), RegistryState::Missing);
    }

    #[test]
    fn a_session_that_was_opened_again_is_the_living_one() {
        let dir = tempfile::tempdir().unwrap();
        let pid = std::process::id();
        let dead = r#"{"pid":4000000,"sessionId":"a","status":"busy","updatedAt":9}"#;
        note(dir.path(), "4000000.json", dead);
        let text = format!(r#"{{"pid":{pid},"sessionId":"a","status":"idle","updatedAt":5}}"#);
        note(dir.path(), &format!("{pid}.json"), &text);
        let RegistryState::Entry(entry) = registered(dir.path(), "a") else {
            panic!("it is there");
        };
        assert_eq!(
            (entry.says, entry.alive),
            (Some(RegistryStatus::Idle), Some(true))
        );
    }

    #[test]
    fn what_hooks_told_is_found_by_session() {
        let dir = tempfile::tempdir().unwrap();
        let events = HookEventStore::open(&dir.path().join("events"));
        for (at, name) in [(1, "UserPromptSubmit"), (2, "Stop")] {
            let noted = RecordedHookEvent {
                at,
                session: "a".into(),
                event: name.into(),
                running: Some((vec!["x".into()], vec![])),
                ..RecordedHookEvent::default()
            };
            events.note(&noted).unwrap();
        }
        let signals = KnownSignals::look([dir.path()], Some(&events), NOW);
        let hooks = signals.of(dir.path(), "a").hooks;
        let names: Vec<_> = hooks
            .iter()
            .map(|signal| (signal.at.0, signal.event.name.as_str()))
            .collect();
        assert_eq!(names, [(1, "UserPromptSubmit"), (2, "Stop")]);
        let running = hooks[1].event.running.as_ref().unwrap();
        assert!(running[0].agent && running[0].id == "x");
        assert!(signals.of(dir.path(), "b").hooks.is_empty());
    }

    #[test]
    fn zones_are_asked_of_the_system() {
        let at = Time(NOW);
        assert_eq!(zones().0(Some("UTC"), at), Some(0));
        assert_eq!(zones().0(Some("No/Where"), at), None);
        assert!(zones().0(None, at).is_some());
    }
}
