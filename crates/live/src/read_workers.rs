//! Reading files, on threads of their own, so that the loop never waits for a disk.
//!
//! The newest first, and ends before wholes: what somebody looks at is there long before
//! everything is.

use std::cmp::Ordering;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use unspool_model::file_usage::FileUsage;
use unspool_model::id::Id;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::time::Time;
use unspool_model::view::status::StatusSignals;
use unspool_show::wire::session::SessionJson;
use unspool_store::error::StoreError;
use unspool_store::find::{NonConversationFile, SessionFile, SubAgentFile};
use unspool_store::open::FileStamp;
use unspool_store::parallel;
use unspool_store::read::{LoadedSession, SessionReader, TrailingBytes};
use unspool_store::session_with_agents::{self, is_warm_up};

use crate::LiveSettings;
use crate::followed_session::{self, FollowedFile, FollowedSession};
use crate::live_loop::LoopMessage;
use crate::live_rows::SessionPath;
use crate::session_row::{self, SessionRowParts};
use crate::signal_cache::SignalCache;

/// How urgent a job is; the last comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadUrgency {
    /// Somebody will want it one day.
    Backlog,
    /// It changed.
    Changed,
    /// It is among the newest and nothing is known of it.
    First,
    /// It changed, and little needs to be read.
    Now,
}

/// How much of a session to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadExtent {
    /// Its start and its end.
    Ends,
    /// All of it.
    Whole,
}

/// Something to read.
#[derive(Clone, Debug)]
pub struct ReadJob {
    /// How urgent it is.
    pub urgency: ReadUrgency,
    /// Which session.
    pub name: SessionPath,
    /// Its file.
    pub file: SessionFile,
    /// Those of its sub-agents.
    pub agents: Vec<SubAgentFile>,
    /// Those of the client's own helpers.
    pub helpers: Vec<NonConversationFile>,
    /// How much of it.
    pub extent: ReadExtent,
    /// Whether it will be followed.
    pub hold: bool,
}

impl ReadJob {
    fn rank(&self) -> (ReadUrgency, i64) {
        (self.urgency, self.file.modified)
    }
}

impl PartialEq for ReadJob {
    fn eq(&self, other: &ReadJob) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for ReadJob {}

impl PartialOrd for ReadJob {
    fn partial_cmp(&self, other: &ReadJob) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ReadJob {
    fn cmp(&self, other: &ReadJob) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

/// What reading gave.
#[derive(Debug)]
pub struct FinishedRead {
    /// Which session.
    pub name: SessionPath,
    /// How much of it was read.
    pub extent: ReadExtent,
    /// What came of it, or why nothing did.
    pub found: Result<Box<SessionReading>, String>,
}

/// What came of reading.
#[derive(Debug)]
pub struct SessionReading {
    /// The row; none if it is no conversation.
    pub row: Option<SessionJson>,
    /// When time alone changes its state.
    pub changes: Option<Time>,
    /// What the files were before they were read.
    pub stamps: BTreeMap<PathBuf, FileStamp>,
    /// The fold, to be followed.
    pub fold: Option<FollowedSession>,
    /// Titles that its lines give to other sessions, by hashes of ids.
    pub given: Vec<(u64, String)>,
    /// Hashes of its ids, if it has no title of its own.
    pub untitled: Vec<u64>,
}

/// Workers and what they are to do.
#[derive(Debug, Clone)]
pub struct ReadWorkers {
    queue: Arc<ReadQueue>,
}

#[derive(Debug, Default)]
struct ReadQueue {
    jobs: Mutex<ReadJobHeap>,
    soon: Condvar,
    later: Condvar,
}

#[derive(Debug, Default)]
struct ReadJobHeap {
    heap: BinaryHeap<ReadJob>,
    stopped: bool,
}

impl ReadWorkers {
    /// Starts them; they answer to the loop.
    pub fn start(
        setting: &LiveSettings,
        signs: &Arc<SignalCache>,
        tell: &Sender<LoopMessage>,
    ) -> std::io::Result<ReadWorkers> {
        let queue = Arc::new(ReadQueue::default());
        let each = 0..parallel::threads().clamp(1, 4);
        for (number, duty) in each.flat_map(|number| {
            [
                (number, WorkerPriority::Soon),
                (number, WorkerPriority::Later),
            ]
        }) {
            let (queue, tell) = (Arc::clone(&queue), tell.clone());
            let (setting, signs) = (setting.clone(), Arc::clone(signs));
            let thread = std::thread::Builder::new().name(format!("reader {number}"));
            thread.spawn(move || {
                if duty == WorkerPriority::Later {
                    step_back();
                }
                work(&queue, duty, &setting, &signs, &tell);
            })?;
        }
        Ok(ReadWorkers { queue })
    }

    /// Adds a job.
    pub fn add(&self, job: ReadJob) {
        let mut jobs = self.queue.lock();
        self.queue
            .more(WorkerPriority::of(job.urgency))
            .notify_one();
        jobs.heap.push(job);
    }

    /// Drops what was not begun; the threads end when they have finished.
    pub fn stop(&self) {
        let mut jobs = self.queue.lock();
        jobs.heap.clear();
        jobs.stopped = true;
        self.queue.soon.notify_all();
        self.queue.later.notify_all();
    }
}

impl ReadQueue {
    fn lock(&self) -> std::sync::MutexGuard<'_, ReadJobHeap> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where those with a duty wait.
    fn more(&self, duty: WorkerPriority) -> &Condvar {
        match duty {
            WorkerPriority::Soon => &self.soon,
            WorkerPriority::Later => &self.later,
        }
    }

    /// The next job for somebody with this duty, when it comes to the front; none at the end.
    fn next(&self, duty: WorkerPriority) -> Option<ReadJob> {
        let first =
            |jobs: &ReadJobHeap| jobs.heap.peek().map(|job| WorkerPriority::of(job.urgency));
        let more = self.more(duty);
        let waited = more.wait_while(self.lock(), |jobs| {
            !jobs.stopped && first(jobs) != Some(duty)
        });
        let mut jobs = waited.unwrap_or_else(PoisonError::into_inner);
        let job = jobs.heap.pop();
        // What comes to the front may be for others.
        if let Some(other) = first(&jobs).filter(|first| *first != duty) {
            self.more(other).notify_all();
        }
        job
    }
}

/// Who does a job: what nobody waits for is read by threads that step back for all others, so
/// that a first look at everything does not keep anybody from what is on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkerPriority {
    Soon,
    Later,
}

impl WorkerPriority {
    fn of(urgency: ReadUrgency) -> WorkerPriority {
        match urgency {
            ReadUrgency::Backlog => WorkerPriority::Later,
            ReadUrgency::Changed | ReadUrgency::First | ReadUrgency::Now => WorkerPriority::Soon,
        }
    }
}

/// How far: a third of what others get where all of them work.
#[cfg(target_os = "linux")]
const BACK: i32 = 5;

/// Lets other threads of the machine go first; elsewhere that would be the whole program.
fn step_back() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(BACK);
}

fn work(
    queue: &ReadQueue,
    duty: WorkerPriority,
    setting: &LiveSettings,
    signs: &SignalCache,
    tell: &Sender<LoopMessage>,
) {
    while let Some(job) = queue.next(duty) {
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            do_job(setting, signs, &job)
        }));
        // One file that cannot be read must not end the reading of all others.
        let found = done.unwrap_or_else(|_| Err("cannot read it".to_owned()));
        let read = FinishedRead {
            name: job.name,
            extent: job.extent,
            found: found.map(Box::new),
        };
        if tell.send(LoopMessage::Read(read)).is_err() {
            return;
        }
    }
}

fn do_job(
    setting: &LiveSettings,
    signs: &SignalCache,
    job: &ReadJob,
) -> Result<SessionReading, String> {
    let stamps = stamps(job);
    let signals = signs.of(&job.file.config, &job.file.id);
    let got = match job.extent {
        ReadExtent::Ends => ends(setting, &signals, job),
        ReadExtent::Whole => whole(setting, &signals, job),
    };
    let got = got.map_err(|error| error.to_string())?;
    Ok(SessionReading { stamps, ..got })
}

/// What the files are before they are read: what is written later is seen as a change.
fn stamps(job: &ReadJob) -> BTreeMap<PathBuf, FileStamp> {
    let agents = job.agents.iter().map(|agent| &agent.path);
    let helpers = job.helpers.iter().map(|helper| &helper.path);
    std::iter::once(&job.file.path)
        .chain(agents)
        .chain(helpers)
        .filter_map(|path| Some((path.clone(), stamp(path)?)))
        .collect()
}

/// What a file is now.
pub fn stamp(path: &Path) -> Option<FileStamp> {
    let metadata = fs::metadata(path).ok()?;
    Some(FileStamp::of(&metadata))
}

/// How much of the end of a file tells what its session is doing.
const END: u64 = 4 << 20;

/// How much of the start tells where it began and what it is about.
const START: u64 = 64 << 10;

/// A sub-agent that was quiet for so long, in milliseconds, says nothing about the present.
const QUIET: i64 = 10 * 60_000;

fn ends(
    setting: &LiveSettings,
    signals: &StatusSignals,
    job: &ReadJob,
) -> Result<SessionReading, StoreError> {
    let reader = SessionReader {
        window: 256 << 10,
        ..followed_session::reader(setting.mask, TrailingBytes::Final, 1)
    };
    let file = current(&job.file);
    let now = (setting.clock)();
    let end = reader.read_end(&file.path, TranscriptRole::Main, 1, END)?;
    let recent = |agent: &&SubAgentFile| now.0 - agent.modified < QUIET;
    let agents = job.agents.iter().filter(recent);
    let agents: Vec<LoadedSession> = agents
        .filter_map(|agent| {
            reader
                .read_end(&agent.path, TranscriptRole::Agent, 1, END)
                .ok()
        })
        .collect();
    let agents: Vec<&Session> = agents.iter().map(|loaded| &loaded.session).collect();
    let parts = SessionRowParts {
        file: &file,
        session: &end.session,
        agents: &agents,
        helpers: &[],
        title: None,
        signals,
    };
    let row = session_row::row(&parts, setting, now);
    let changes = parts.changes(now);
    let mut is_conversation = end.session.is_used();
    let row = if end.is_partial() {
        let start = reader
            .read_start(&file.path, TranscriptRole::Main, START)?
            .session;
        is_conversation |= start.is_used();
        let titled = end.session.given_title().is_some();
        let parts = SessionRowParts {
            file: &file,
            session: &start,
            agents: &[],
            helpers: &[],
            title: None,
            signals,
        };
        session_row::row_from_ends(session_row::row(&parts, setting, now), row, titled)
    } else {
        let alone = job.agents.is_empty() && job.helpers.is_empty();
        SessionJson {
            cost_today_usd: row.cost_today_usd.filter(|_| alone),
            cost_today_usd_known: row.cost_today_usd_known.filter(|_| alone),
            partial: !alone,
            ..row
        }
    };
    Ok(SessionReading {
        row: is_conversation.then_some(row),
        changes,
        stamps: BTreeMap::new(),
        fold: None,
        given: Vec::new(),
        untitled: Vec::new(),
    })
}

/// The file as it is now: it may have grown since the job was given.
fn current(file: &SessionFile) -> SessionFile {
    let mut file = file.clone();
    if let Some(stamp) = stamp(&file.path) {
        (file.bytes, file.stamp) = (stamp.size, stamp);
    }
    file
}

/// A line that has not ended for so long, in milliseconds, will not.
pub const TORN: i64 = 5_000;

fn whole(
    setting: &LiveSettings,
    signals: &StatusSignals,
    job: &ReadJob,
) -> Result<SessionReading, StoreError> {
    let file = current(&job.file);
    let now = (setting.clock)();
    if job.hold
        && let Some(got) = followed(setting, signals, job, &file, now)?
    {
        return Ok(got);
    }
    let threads = if job.urgency == ReadUrgency::Backlog {
        1
    } else {
        parallel::threads()
    };
    let reader = followed_session::reader(setting.mask, TrailingBytes::Final, threads);
    let main = reader.read(&file.path, TranscriptRole::Main)?.session;
    let mut agents = Vec::new();
    for agent in &job.agents {
        // A sub-agent that cannot be read is no reason to lose its session.
        if let Ok(loaded) = reader.read(&agent.path, TranscriptRole::Agent) {
            agents.push((&agent.path, loaded.session));
        }
    }
    let all = || std::iter::once(&main).chain(agents.iter().map(|(_, session)| session));
    let (warm_ups, others): (Vec<_>, Vec<_>) = agents
        .iter()
        .partition(|(path, session)| is_warm_up(path, session, all()));
    let agents: Vec<&Session> = others.into_iter().map(|(_, session)| session).collect();
    let warm_ups = warm_ups.into_iter();
    let mut helpers: Vec<FileUsage> = warm_ups
        .map(|(_, session)| FileUsage::of(session))
        .collect();
    helpers.extend(helpers_of(job).into_values());
    let helpers: Vec<&FileUsage> = helpers.iter().collect();
    let parts = SessionRowParts {
        file: &file,
        session: &main,
        agents: &agents,
        helpers: &helpers,
        title: None,
        signals,
    };
    Ok(got(setting, &parts, now))
}

/// What the client's own helpers used.
fn helpers_of(job: &ReadJob) -> BTreeMap<PathBuf, FileUsage> {
    let files: Vec<&NonConversationFile> = job.helpers.iter().collect();
    let read = session_with_agents::read_helpers(&files, 1);
    read.into_iter()
        .map(|one| (one.file, one.spending))
        .collect()
}

fn got(setting: &LiveSettings, parts: &SessionRowParts<'_>, now: Time) -> SessionReading {
    let session = parts.session;
    let is_conversation = session.is_used();
    SessionReading {
        row: is_conversation.then(|| session_row::row(parts, setting, now)),
        changes: parts.changes(now),
        stamps: BTreeMap::new(),
        fold: None,
        given: given(session),
        untitled: untitled(session),
    }
}

/// Reads what is to be followed; nothing if a line of it was never ended.
fn followed(
    setting: &LiveSettings,
    signals: &StatusSignals,
    job: &ReadJob,
    file: &SessionFile,
    now: Time,
) -> Result<Option<SessionReading>, StoreError> {
    let reader =
        followed_session::reader(setting.mask, TrailingBytes::Growing, parallel::threads());
    let loaded = reader.read(&file.path, TranscriptRole::Main)?;
    if loaded.bytes < file.bytes && now.0 - file.modified > TORN {
        return Ok(None);
    }
    let mut fold = FollowedSession {
        main: FollowedFile::after(loaded)?,
        agents: BTreeMap::new(),
        helpers: helpers_of(job),
        title: None,
    };
    for file in &job.agents {
        if let Ok(loaded) = reader.read(&file.path, TranscriptRole::Agent)
            && let Ok(follow) = FollowedFile::after(loaded)
        {
            fold.agents.insert(file.path.clone(), follow);
        }
    }
    let mut got = fold.got(setting, signals, file, now);
    got.fold = Some(fold);
    Ok(Some(got))
}

impl FollowedSession {
    /// What a fold gives at `now`.
    fn got(
        &self,
        setting: &LiveSettings,
        signals: &StatusSignals,
        file: &SessionFile,
        now: Time,
    ) -> SessionReading {
        self.look(file, signals, |parts| got(setting, parts, now))
    }
}

/// Titles that a session's lines give to others.
fn given(session: &Session) -> Vec<(u64, String)> {
    let titles = session.foreign_titles();
    titles
        .map(|(leaf, title)| (hash(leaf), title.to_owned()))
        .collect()
}

fn untitled(session: &Session) -> Vec<u64> {
    match session.given_title() {
        None => session.ids().map(hash).collect(),
        Some(_) => Vec::new(),
    }
}

fn hash(id: &Id) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

/// How many of the newest sessions [`recent`] looks at.
const RECENT: usize = 64;

/// Sessions that were quiet for so long, in milliseconds, wait for nobody any more.
const DAY: i64 = 24 * 3_600_000;

/// Rows of the sessions that were written to within a day, from their ends alone: for those who
/// want to know what is going on and cannot wait.
pub fn recent(setting: &LiveSettings) -> Vec<SessionJson> {
    let now = (setting.clock)().0;
    let signs = SignalCache::look(setting.dirs.clone(), setting.events.clone(), now);
    let found = unspool_store::find(&setting.dirs);
    let mut agents: HashMap<(&Path, &str, &str), Vec<&SubAgentFile>> = HashMap::new();
    for agent in &found.agents {
        if let Some(session) = agent.session.as_deref()
            && now - agent.modified < QUIET
        {
            let key = (&*agent.config, &*agent.folder, session);
            agents.entry(key).or_default().push(agent);
        }
    }
    let mut jobs: Vec<ReadJob> = Vec::new();
    for file in &found.sessions {
        let key = (&*file.config, &*file.folder, file.id.as_str());
        let agents = agents.remove(&key).unwrap_or_default();
        let latest = agents.iter().map(|agent| agent.modified).max();
        if now - latest.unwrap_or(0).max(file.modified) < DAY {
            jobs.push(ReadJob {
                urgency: ReadUrgency::Now,
                name: file.path.display().to_string().into(),
                file: file.clone(),
                agents: agents.into_iter().cloned().collect(),
                helpers: Vec::new(),
                extent: ReadExtent::Ends,
                hold: false,
            });
        }
    }
    jobs.sort_by_key(|job| std::cmp::Reverse(job.file.modified));
    jobs.truncate(RECENT);
    let read = parallel::map(
        &jobs,
        parallel::threads(),
        |job| job.file.bytes,
        |job| {
            let signals = signs.of(&job.file.config, &job.file.id);
            ends(setting, &signals, job).ok().and_then(|got| got.row)
        },
    );
    read.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    // Helpers outside of test functions may give up as well.
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn job(urgency: ReadUrgency) -> ReadJob {
        let path = PathBuf::from("a.jsonl");
        ReadJob {
            urgency,
            name: "a".into(),
            file: SessionFile {
                path,
                id: "a".to_owned(),
                folder: "x".into(),
                config: Path::new("").into(),
                bytes: 0,
                modified: 0,
                stamp: FileStamp::default(),
                beside: None,
            },
            agents: Vec::new(),
            helpers: Vec::new(),
            extent: ReadExtent::Whole,
            hold: false,
        }
    }

    #[test]
    fn what_nobody_waits_for_is_read_by_others_than_what_somebody_does() {
        let workers = ReadWorkers {
            queue: Arc::default(),
        };
        for urgency in [ReadUrgency::Backlog, ReadUrgency::Now, ReadUrgency::Changed] {
            workers.add(job(urgency));
        }
        let next = |duty| workers.queue.next(duty).map(|job| job.urgency);
        std::thread::scope(|scope| {
            // It waits until those before it were taken.
            let later = scope.spawn(|| next(WorkerPriority::Later));
            assert_eq!(next(WorkerPriority::Soon), Some(ReadUrgency::Now));
            assert_eq!(next(WorkerPriority::Soon), Some(ReadUrgency::Changed));
            assert_eq!(later.join().unwrap(), Some(ReadUrgency::Backlog));
            let soon = scope.spawn(|| next(WorkerPriority::Soon));
            workers.stop();
            assert_eq!(soon.join().unwrap(), None);
        });
    }
}
