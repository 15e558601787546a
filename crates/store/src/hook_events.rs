//! What hooks told us last about each session, kept in our own folder.
//!
//! One small file per session, a line per event, so that any number of hooks may note something
//! at the same time; sub-agents and calls that run side by side stay apart. Only the end of each
//! file is of interest, and only that is kept. Whoever wants to know what a session does reads
//! [`HookEventStore::last`], or [`HookEventStore::recent`] where one event is not enough.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_128;
use unspool_model::hook_events::{HookEvent, RunningTask};

use crate::append_log::AppendLog;
use crate::open;
use crate::read_folder;

/// An event with the time at which it was noted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedHookEvent {
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// The session.
    pub session: String,
    /// What happened, such as `Stop`.
    pub event: String,
    /// The tool it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The id of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// What the call is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What a notification says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What kind of notification it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notification: Option<String>,
    /// How a session began or ended, what made it compact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The sub-agent it happened in; none: in the session itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What kind of sub-agent that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    /// What kind of failure ended the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What still runs in the background, if the event says: ids, those of sub-agents first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<(Vec<String>, Vec<String>)>,
    /// How permissions are handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// The transcript of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript: Option<PathBuf>,
    /// The directory the client works in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
}

impl RecordedHookEvent {
    /// An event that is told at this time, in milliseconds since 1970.
    pub fn new(event: &HookEvent, at: i64) -> RecordedHookEvent {
        RecordedHookEvent {
            at,
            session: event.session.clone(),
            event: event.name.clone(),
            tool: event.tool.clone(),
            call: event.call.clone(),
            subject: event.subject.clone(),
            // What is said where a turn failed is the failure, not what the model said.
            message: {
                let failed = event.name == "StopFailure";
                let said = event.said.clone().filter(|_| failed);
                said.or_else(|| event.message.clone())
            },
            notification: event.notification.clone(),
            reason: event.reason.clone(),
            agent: event.agent.clone(),
            agent_type: event.agent_type.clone(),
            error: event.error.clone().filter(|_| event.name == "StopFailure"),
            running: event.running.as_ref().map(|running| {
                let ids = |agent: bool| {
                    let of = running.iter().filter(|one| one.agent == agent);
                    of.map(|one| one.id.clone()).collect()
                };
                (ids(true), ids(false))
            }),
            permission_mode: event.permission_mode.clone(),
            transcript: event.transcript.as_ref().map(PathBuf::from),
            cwd: event.cwd.as_ref().map(PathBuf::from),
        }
    }

    /// The event again, as far as it was noted.
    pub fn event(&self) -> HookEvent {
        let path = |path: &Option<PathBuf>| {
            let path = path.as_ref()?;
            Some(path.to_string_lossy().into_owned())
        };
        let running = |(agents, tasks): &(Vec<String>, Vec<String>)| {
            let one = |agent: bool| {
                move |id: &String| RunningTask {
                    id: id.clone(),
                    agent,
                }
            };
            let agents = agents.iter().map(one(true));
            agents.chain(tasks.iter().map(one(false))).collect()
        };
        HookEvent {
            name: self.event.clone(),
            session: self.session.clone(),
            transcript: path(&self.transcript),
            cwd: path(&self.cwd),
            permission_mode: self.permission_mode.clone(),
            tool: self.tool.clone(),
            call: self.call.clone(),
            subject: self.subject.clone(),
            message: self.message.clone(),
            notification: self.notification.clone(),
            reason: self.reason.clone(),
            agent: self.agent.clone(),
            agent_type: self.agent_type.clone(),
            error: self.error.clone(),
            running: self.running.as_ref().map(running),
            ..HookEvent::default()
        }
    }

    /// The event on one line, as it is kept and as it is told to others.
    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The events of all sessions.
#[derive(Clone, Debug)]
pub struct HookEventStore {
    dir: PathBuf,
}

/// A file of events is put aside when it is larger.
const MOST: u64 = 64 << 10;
/// So much of the end is read: both parts of a file.
const READ: u64 = 128 << 10;
/// Events of sessions that told nothing for so long are dropped, in milliseconds.
const KEPT_FOR: i64 = 30 * 86_400_000;
/// How often old ones are looked for, in milliseconds.
const PRUNED_EVERY: i64 = 86_400_000;
/// Not more than so many files are looked at each time.
const PRUNED_AT_ONCE: usize = 5_000;
/// The file whose time says when old ones were last looked for.
const PRUNED: &str = ".pruned";

impl HookEventStore {
    /// The events in a folder of ours, which is made when something is noted.
    pub fn open(dir: &Path) -> HookEventStore {
        HookEventStore { dir: dir.into() }
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Notes an event.
    pub fn note(&self, noted: &RecordedHookEvent) -> io::Result<()> {
        self.trail(&noted.session).add(&noted.line())
    }

    /// The last event of a session or of one of its sub-agents.
    pub fn last(&self, session: &str) -> Option<RecordedHookEvent> {
        self.recent(session).pop()
    }

    /// The last events of a session, oldest first: some hundreds.
    pub fn recent(&self, session: &str) -> Vec<RecordedHookEvent> {
        self.newest(session, READ)
    }

    /// The last events of a session as far as they fit into so many bytes, oldest first.
    pub fn newest(&self, session: &str, bytes: u64) -> Vec<RecordedHookEvent> {
        read(&self.trail(session), bytes.min(READ))
            .into_iter()
            .filter(|noted| noted.session == session)
            .collect()
    }

    /// Which sessions have told something, by [`key`], and when that was last, in milliseconds
    /// since 1970.
    pub fn told(&self) -> HashMap<String, i64> {
        let entries = read_folder::entries(&self.dir)
            .into_iter()
            .flatten()
            .flatten();
        let told = entries.filter_map(|entry| {
            let name = entry.file_name();
            let key = name.to_str()?.strip_suffix(".jsonl")?;
            let at = entry
                .metadata()
                .map_or(0, |metadata| open::modified(&metadata));
            Some((key.to_owned(), at))
        });
        told.collect()
    }

    /// The last event of every session, the latest first.
    pub fn all(&self) -> Vec<RecordedHookEvent> {
        let entries = read_folder::entries(&self.dir)
            .into_iter()
            .flatten()
            .flatten();
        let files = entries.map(|entry| entry.path());
        let files = files.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
        let mut all: Vec<RecordedHookEvent> = files
            .filter_map(|path| read(&AppendLog::new(path, MOST), READ).pop())
            .collect();
        all.sort_by_key(|noted| std::cmp::Reverse(noted.at));
        all
    }

    /// Drops the events of sessions that told nothing for a month; looks once a day.
    pub fn prune(&self, now: i64) -> io::Result<()> {
        let marker = self.dir.join(PRUNED);
        let time = |path: &Path| fs::metadata(path).map(|metadata| open::modified(&metadata));
        // A clock that was set back is no reason never to look again.
        if time(&marker).is_ok_and(|at| (0..PRUNED_EVERY).contains(&(now - at))) {
            return Ok(());
        }
        for entry in read_folder::entries(&self.dir)?
            .flatten()
            .take(PRUNED_AT_ONCE)
        {
            let path = entry.path();
            if time(&path).is_ok_and(|at| at < now - KEPT_FOR) {
                let _ = fs::remove_file(&path);
            }
        }
        let _ = fs::remove_file(&marker);
        AppendLog::new(marker, MOST).add(&now.to_string())
    }

    fn trail(&self, session: &str) -> AppendLog {
        AppendLog::new(self.dir.join(format!("{}.jsonl", key(session))), MOST)
    }
}

fn read(trail: &AppendLog, bytes: u64) -> Vec<RecordedHookEvent> {
    let lines = trail.last(bytes).unwrap_or_default();
    let noted = |line: &String| serde_json::from_str::<RecordedHookEvent>(line).ok();
    lines.iter().filter_map(noted).collect()
}

/// The id of a session as the name of a file: ids come from outside and may be anything.
pub fn key(session: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !session.is_empty() && session.len() <= 64 && session.bytes().all(plain) {
        // On some disks large and small letters are the same.
        if !session.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return session.to_owned();
        }
    }
    format!("other.{:032x}", XxHash3_128::oneshot(session.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(session: &str, event: &str, at: i64) -> RecordedHookEvent {
        RecordedHookEvent {
            at,
            session: session.to_owned(),
            event: event.to_owned(),
            ..RecordedHookEvent::default()
        }
    }

    #[test]
    fn the_last_event_of_each_session_is_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let events = HookEventStore::open(&dir.path().join("events"));
        assert_eq!(events.last("a"), None);
        assert_eq!(events.all(), []);
        let call = RecordedHookEvent {
            tool: Some("Bash".into()),
            subject: Some("rm -rf \"x\"\ny".into()),
            cwd: Some("/w".into()),
            ..noted("a", "PermissionRequest", 2)
        };
        events.note(&noted("a", "SessionStart", 1)).unwrap();
        events.note(&call).unwrap();
        events.note(&noted("b", "Stop", 3)).unwrap();
        assert_eq!(events.last("a").as_ref(), Some(&call));
        assert_eq!(events.recent("a").len(), 2);
        assert_eq!(events.all(), [noted("b", "Stop", 3), call]);
    }

    #[test]
    fn an_id_cannot_lead_out_of_the_folder_or_into_another_session() {
        let dir = tempfile::tempdir().unwrap();
        let events = HookEventStore::open(&dir.path().join("events"));
        let long = "x".repeat(5000);
        let ids = [
            "../../up",
            "",
            "/etc/passwd",
            ".",
            "a\0b",
            "AbC",
            "abc",
            &long,
        ];
        for (at, id) in ids.iter().enumerate() {
            events.note(&noted(id, "Stop", at as i64)).unwrap();
        }
        for (at, id) in ids.iter().enumerate() {
            assert_eq!(events.last(id).unwrap().at, at as i64, "{id}");
        }
        assert_eq!(
            fs::read_dir(dir.path().join("events")).unwrap().count(),
            ids.len()
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn thousands_of_events_of_one_session_stay_small() {
        let dir = tempfile::tempdir().unwrap();
        let events = HookEventStore::open(dir.path());
        for at in 0..5_000 {
            events.note(&noted("s", "PreToolUse", at)).unwrap();
        }
        assert_eq!(events.last("s").unwrap().at, 4_999);
        let sizes = fs::read_dir(dir.path()).unwrap();
        let sum: u64 = sizes
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum();
        assert!(sum < 2 * MOST + 1000, "{sum}");
    }

    #[test]
    fn a_line_that_makes_no_sense_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let events = HookEventStore::open(dir.path());
        events.note(&noted("s", "Stop", 1)).unwrap();
        let path = dir.path().join("s.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text + "{\"at\":tru\n\u{0}\n[]\n").unwrap();
        assert_eq!(events.last("s").unwrap().at, 1);
    }

    #[test]
    fn sessions_that_told_nothing_for_a_month_are_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let events = HookEventStore::open(dir.path());
        events.note(&noted("old", "Stop", 1)).unwrap();
        events.note(&noted("new", "Stop", 1)).unwrap();
        let file = fs::File::options()
            .append(true)
            .open(dir.path().join("old.jsonl"));
        file.unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        let now = open::modified(&fs::metadata(dir.path().join("new.jsonl")).unwrap());
        events.prune(now).unwrap();
        assert_eq!(events.last("old"), None);
        assert!(events.last("new").is_some());
        // Looked at once a day.
        let file = fs::File::options()
            .append(true)
            .open(dir.path().join("new.jsonl"));
        file.unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        events.prune(now + 1000).unwrap();
        assert!(events.last("new").is_some());
        events.prune(now + 2 * PRUNED_EVERY).unwrap();
        assert_eq!(events.last("new"), None);
    }
}
