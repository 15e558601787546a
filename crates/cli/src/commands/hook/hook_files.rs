//! Where the hook keeps what it works with, all of it below our own folders.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use unspool_model::hook_events::HookEvent;
use unspool_store::continued_from::ContinuationCache;
use unspool_store::hook_events::{self, HookEventStore};
use unspool_store::{own_file, read_folder};

use super::hook_log::HookLog;
use crate::app_dirs::AppDirs;

/// The folders of the hook.
pub struct HookFiles {
    /// Our folders.
    pub own: AppDirs,
    /// What went on.
    pub log: HookLog,
    /// The last events of each session.
    pub events: HookEventStore,
}

/// Something to be done after an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookJob {
    /// The session.
    pub session: String,
    /// What happened.
    pub event: String,
    /// The transcript of the session.
    pub transcript: PathBuf,
    /// The transcript in which `said` must appear.
    pub spoken_in: PathBuf,
    /// The beginning of what was said last.
    pub said: Option<String>,
}

impl HookJob {
    /// What is to be done after an event; nothing without a transcript.
    pub fn of(event: &HookEvent) -> Option<HookJob> {
        let transcript = event.transcript.as_ref()?;
        Some(HookJob {
            session: event.session.clone(),
            event: event.name.clone(),
            transcript: transcript.into(),
            spoken_in: event.spoken_in().unwrap_or(transcript).into(),
            said: event.said.clone(),
        })
    }

    /// Whether the session just begins: nothing new is said in it yet.
    pub fn is_begin(&self) -> bool {
        self.event == "SessionStart"
    }

    /// Whether the session is over.
    pub fn is_end(&self) -> bool {
        self.event == "SessionEnd"
    }
}

/// A job that nobody has done after so long was left by somebody who died.
const LEFT: Duration = Duration::from_secs(15 * 60);
/// What was read for a session is remembered for so long.
const KEPT_FOR: Duration = Duration::from_secs(30 * 86_400);
/// Not more than so many are looked at each time.
const PRUNED_AT_ONCE: usize = 5_000;
/// Not more than so many are taken over at once.
const TAKEN: usize = 200;

impl HookFiles {
    /// The desk in our folders.
    pub fn new(own: AppDirs) -> HookFiles {
        HookFiles {
            log: HookLog::new(&own),
            events: HookEventStore::open(&own.events()),
            own,
        }
    }

    /// Where something of the hook is.
    pub fn place(&self, name: &str) -> PathBuf {
        self.own.data.join("hook").join(name)
    }

    /// What was read of a session's transcript to find those before it.
    pub fn before(&self, session: &str) -> ContinuationCache {
        let bytes = own_file::read(&self.before_path(session)).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Remembers it for the next event.
    pub fn keep_before(&self, session: &str, memory: &ContinuationCache) -> io::Result<()> {
        own_file::replace(&self.before_path(session), &serde_json::to_vec(memory)?)
    }

    /// Forgets what was read for sessions that told nothing for a month.
    pub fn prune(&self) {
        let entries = read_folder::entries(self.place("before"))
            .into_iter()
            .flatten();
        for entry in entries.flatten().take(PRUNED_AT_ONCE) {
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            if modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > KEPT_FOR)) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn before_path(&self, session: &str) -> PathBuf {
        self.place("before")
            .join(format!("{}.json", hook_events::key(session)))
    }

    /// Writes down a job and says where.
    pub fn add(&self, job: &HookJob) -> io::Result<PathBuf> {
        let folder = self.place("jobs");
        let moment = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        // The names of one session sort by time.
        let name = format!(
            "{}~{:020}-{}.json",
            hook_events::key(&job.session),
            moment.as_nanos(),
            std::process::id()
        );
        // Whoever works at this moment must not find half of it.
        let half = folder.join(format!(".{:x}-{}", moment.as_nanos(), std::process::id()));
        let mut file = match own_file::create_new(&half) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                own_file::make_folder(&folder)?;
                own_file::create_new(&half)?
            }
            other => other?,
        };
        file.write_all(&serde_json::to_vec(job)?)?;
        let path = folder.join(name);
        fs::rename(half, &path)?;
        Ok(path)
    }

    /// The session that a job is about, as it stands in the name of the file.
    pub fn key(path: &Path) -> Option<String> {
        let name = path.file_name()?.to_str()?;
        Some(name.split_once('~')?.0.to_owned())
    }

    /// The jobs of a session, oldest first.
    pub fn jobs(&self, key: &str) -> Vec<(PathBuf, Option<HookJob>)> {
        let mut files = self.files();
        files.retain(|path| HookFiles::key(path).as_deref() == Some(key));
        files.sort();
        files
            .into_iter()
            .map(|path| (path.clone(), read(&path)))
            .collect()
    }

    /// The sessions that have jobs.
    pub fn keys(&self) -> Vec<String> {
        let files = self.files();
        let mut keys: Vec<String> = files
            .iter()
            .filter_map(|path| HookFiles::key(path))
            .collect();
        keys.sort();
        keys.dedup();
        keys
    }

    /// Jobs that nobody does any more, of the sessions that are asked for.
    pub fn left(&self, of: impl Fn(&str) -> bool) -> Vec<(PathBuf, Option<HookJob>)> {
        let is_old = |path: &PathBuf| {
            let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
            modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > LEFT))
        };
        let mut files = self.files();
        files.retain(|path| HookFiles::key(path).is_none_or(|key| of(&key)) && is_old(path));
        files.truncate(TAKEN);
        files
            .into_iter()
            .map(|path| (path.clone(), read(&path)))
            .collect()
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = read_folder::entries(self.place("jobs"))
            .into_iter()
            .flatten();
        entries.flatten().map(|entry| entry.path()).collect()
    }
}

fn read(path: &Path) -> Option<HookJob> {
    serde_json::from_slice(&own_file::read(path).ok()?).ok()
}
