//! The loop: everything that is told comes in here, one after the other, and rows go out.
//!
//! Files are looked at when somebody hints at them and all of them now and then; what counts is
//! what the file itself says. Only sessions that changed lately stay folded, so memory does not
//! grow with what lies on disk; one that wakes up later is read again.

mod changed_files;
mod first_scan;
mod periodic_scan;
mod shown_rows;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use unspool_model::time::Time;
use unspool_model::view::status::StatusSignals;
use unspool_model::view::usage::period;
use unspool_store::find::{FoundSessionFiles, NonConversationFile, SessionFile, SubAgentFile};
use unspool_store::open::FileStamp;
use unspool_store::watch::FolderWatch;

use crate::followed_session::FollowedSession;
use crate::live_rows::{LiveRows, SessionPath};
use crate::read_workers::{FinishedRead, ReadWorkers};
use crate::session_row::SessionRowParts;
use crate::signal_cache::SignalCache;
use crate::snapshot::SnapshotFile;
use crate::{LiveEvent, LiveSettings};

/// What the loop is told, by anybody.
#[derive(Debug)]
pub enum LoopMessage {
    /// From outside.
    Event(LiveEvent),
    /// Below a folder nothing is told of changes.
    Blind(PathBuf, String),
    /// A reader is done.
    Read(FinishedRead),
    /// All files were listed; how long that took.
    Found(FoundSessionFiles, Duration),
    /// To which sessions sub-agents belong.
    Owners(Vec<(SubAgentFile, Option<String>)>),
}

/// So many of the newest sessions are known from their ends before anything is read whole.
const NEWEST: usize = 48;
/// Somebody who joins waits for so many of them.
const AWAITED: usize = 12;
/// Smaller sessions are read whole at once.
const SMALL: u64 = 2 << 20;
/// More new bytes than this are not for the loop to read.
const MUCH: u64 = 1 << 20;
/// At most so many sessions stay folded,
const FOLDED: usize = 64;
/// of at most about so many bytes.
const WEIGHT: u64 = 256 << 20;
/// A session that was quiet for so long is folded no longer.
const QUIET: Duration = Duration::from_secs(15 * 60);
/// A file that was written to this recently, in milliseconds, will probably grow.
const LATELY: i64 = 10 * 60_000;
/// How often time is looked at.
const TICK: Duration = Duration::from_secs(1);
/// How often the registry is read.
const REGISTRY: Duration = Duration::from_secs(2);
/// How often rows are kept.
const SAVE: Duration = Duration::from_secs(5);
/// How often all files are looked at, at most and at least.
const SCAN: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(120)];
/// The same where nothing is told of changes.
const BLIND_SCAN: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(30)];
/// How often files that are followed are looked at where nothing is told.
const BLIND_POLL: Duration = Duration::from_millis(250);
/// Hints are taken in so many at a time.
const BATCH: usize = 4_096;

/// A session, its files, and what is known of it.
#[derive(Debug, Default)]
struct LiveSessionState {
    file: Option<SessionFile>,
    agents: BTreeMap<PathBuf, SubAgentFile>,
    /// The client's own helpers, which use tokens and say nothing.
    helpers: BTreeMap<PathBuf, NonConversationFile>,
    /// What the files were when they were last read.
    read: BTreeMap<PathBuf, FileStamp>,
    /// Whether all of it was read once.
    whole: bool,
    fold: Option<Box<FollowedSession>>,
    /// How many readers are at it.
    busy: usize,
    /// When time alone changes its state.
    changes: Option<Time>,
    /// What is known about it beside its files, as long as it holds.
    signals: Option<StatusSignals>,
    /// When it last changed.
    touched: Option<Instant>,
    /// Not shown again before.
    next: Option<Instant>,
    /// Lines were added that are not shown yet.
    grown: bool,
    /// Titles it gives to others.
    given: Vec<(u64, String)>,
    /// The title that another file gives it.
    title: Option<String>,
}

impl LiveSessionState {
    /// What somebody wants to know of it, if it is folded.
    fn look<T>(
        &mut self,
        signs: &SignalCache,
        ask: impl FnOnce(&SessionRowParts<'_>) -> T,
    ) -> Option<T> {
        let (fold, file) = (self.fold.as_ref()?, self.file.as_ref()?);
        let look = || signs.of(&file.config, &file.id);
        let signals = self.signals.get_or_insert_with(look);
        Some(fold.look(file, signals, ask))
    }

    fn stamps(&self) -> impl Iterator<Item = (&PathBuf, FileStamp)> {
        let main = self.file.iter().map(|file| (&file.path, file.stamp));
        let agents = self.agents.values();
        let helpers = self.helpers.values();
        main.chain(agents.map(|agent| (&agent.path, agent.stamp)))
            .chain(helpers.map(|helper| (&helper.path, helper.stamp)))
    }

    fn is_stale(&self) -> bool {
        self.stamps()
            .any(|(path, stamp)| self.read.get(path) != Some(&stamp))
    }

    fn bytes(&self) -> u64 {
        self.stamps().map(|(_, stamp)| stamp.size).sum()
    }

    fn modified(&self) -> i64 {
        let main = self.file.iter().map(|file| file.modified);
        let agents = self.agents.values().map(|agent| agent.modified);
        main.chain(agents).max().unwrap_or(0)
    }
}

/// The loop and all it knows.
pub struct LiveLoop {
    setting: LiveSettings,
    board: Arc<LiveRows>,
    heard: Receiver<LoopMessage>,
    tell: Sender<LoopMessage>,
    workers: ReadWorkers,
    signs: Arc<SignalCache>,
    watch: Option<FolderWatch>,
    configs: Vec<Arc<Path>>,
    families: HashMap<SessionPath, LiveSessionState>,
    /// Which session the file of a sub-agent belongs to.
    owners: HashMap<PathBuf, SessionPath>,
    /// Paths somebody hinted at.
    hinted: HashSet<PathBuf>,
    /// Sessions that are to be shown again, and when.
    late: BTreeSet<(Instant, SessionPath)>,
    /// Sessions whose state may change by time alone.
    restless: HashSet<SessionPath>,
    /// Sessions that stay folded.
    folded: HashSet<SessionPath>,
    /// Sessions that were not read whole since the start.
    backlog: HashSet<SessionPath>,
    /// Sessions that those who join wait for.
    awaited: HashSet<SessionPath>,
    /// Titles given to other sessions, by hashes of ids.
    titles: HashMap<u64, String>,
    /// Hashes of the ids of sessions without a title, until all files were looked at.
    untitled: HashMap<SessionPath, Vec<u64>>,
    shelf: Option<SnapshotFile>,
    /// Rows to keep.
    unsaved: HashSet<SessionPath>,
    /// The day that rows tell of.
    day: Range<Time>,
    blind: bool,
    scanning: bool,
    scanned: bool,
    asking: bool,
    times: LoopTimers,
}

/// When to do what next.
struct LoopTimers {
    tick: Instant,
    registry: Instant,
    save: Instant,
    scan: Instant,
    poll: Instant,
}

impl LiveLoop {
    /// A loop that has not begun.
    pub fn new(
        setting: LiveSettings,
        board: Arc<LiveRows>,
        heard: Receiver<LoopMessage>,
        tell: Sender<LoopMessage>,
    ) -> std::io::Result<LiveLoop> {
        let (dirs, events) = (setting.dirs.clone(), setting.events.clone());
        let signs = Arc::new(SignalCache::look(dirs, events, (setting.clock)().0));
        let workers = ReadWorkers::start(&setting, &signs, &tell)?;
        let shelf = setting.state.as_ref();
        let shelf = shelf.map(|path| SnapshotFile::new(path, terms(&setting)));
        let now = Instant::now();
        Ok(LiveLoop {
            configs: configs(&setting.dirs),
            day: period::around((setting.clock)(), &setting.zone),
            setting,
            board,
            heard,
            tell,
            workers,
            signs,
            watch: None,
            families: HashMap::new(),
            owners: HashMap::new(),
            hinted: HashSet::new(),
            late: BTreeSet::new(),
            restless: HashSet::new(),
            folded: HashSet::new(),
            backlog: HashSet::new(),
            awaited: HashSet::new(),
            titles: HashMap::new(),
            untitled: HashMap::new(),
            shelf,
            unsaved: HashSet::new(),
            blind: false,
            scanning: false,
            scanned: false,
            asking: false,
            times: LoopTimers {
                tick: now + TICK,
                registry: now + REGISTRY,
                save: now + SAVE,
                // Soon: what happened before anybody was told to hint at it.
                scan: now + TICK,
                poll: now,
            },
        })
    }

    /// Runs until it is told to stop.
    pub fn run(mut self) {
        self.begin();
        while self.listen() {
            self.act();
        }
        self.workers.stop();
        self.watch = None;
        self.save();
        self.board.end();
    }

    /// Takes in what is told, until something is to be done; `false`: the end.
    fn listen(&mut self) -> bool {
        let wait = self.wakes().saturating_duration_since(Instant::now());
        match self.heard.recv_timeout(wait) {
            Ok(told) => {
                if !self.take(told) {
                    return false;
                }
                for _ in 0..BATCH {
                    let Ok(told) = self.heard.try_recv() else {
                        break;
                    };
                    if !self.take(told) {
                        return false;
                    }
                }
                true
            }
            Err(RecvTimeoutError::Timeout) => true,
            Err(RecvTimeoutError::Disconnected) => false,
        }
    }

    fn wakes(&self) -> Instant {
        let times = &self.times;
        let mut wakes = times.scan.min(times.registry);
        // With nothing that time could change there is nothing to look at.
        if !self.restless.is_empty() || !self.folded.is_empty() {
            wakes = wakes.min(times.tick);
        }
        if !self.unsaved.is_empty() {
            wakes = wakes.min(times.save);
        }
        if self.blind {
            wakes = wakes.min(times.poll);
        }
        match self.late.first() {
            Some((at, _)) => wakes.min(*at),
            None => wakes,
        }
    }

    fn take(&mut self, told: LoopMessage) -> bool {
        match told {
            LoopMessage::Event(LiveEvent::Stop) => return false,
            LoopMessage::Event(LiveEvent::Hint(path)) => drop(self.hinted.insert(path)),
            LoopMessage::Event(LiveEvent::Rescan) => self.times.scan = Instant::now(),
            LoopMessage::Event(LiveEvent::Hook(noted)) => self.hook(&noted),
            LoopMessage::Event(LiveEvent::Tick) => self.times.tick = Instant::now(),
            LoopMessage::Blind(root, why) => {
                let root = root.display();
                self.board
                    .note(format!("polling `{root}` instead of watching it: {why}"));
                self.blind = true;
                self.times.scan = Instant::now();
            }
            LoopMessage::Read(read) => self.got(read),
            LoopMessage::Found(found, took) => self.found(found, took),
            LoopMessage::Owners(owners) => self.owned(owners),
        }
        true
    }

    /// Does what is due.
    fn act(&mut self) {
        for path in std::mem::take(&mut self.hinted) {
            self.look_at(&path);
        }
        let now = Instant::now();
        while let Some((at, name)) = self.late.first().cloned() {
            if at > now {
                break;
            }
            self.late.remove(&(at, Arc::clone(&name)));
            self.show(&name);
        }
        if self.blind && now >= self.times.poll {
            self.times.poll = now + BLIND_POLL;
            self.poll_folded();
        }
        if now >= self.times.tick {
            self.times.tick = now + TICK;
            self.tick(now);
        }
        if now >= self.times.registry {
            self.times.registry = now + REGISTRY;
            self.ask_registry();
        }
        if now >= self.times.save {
            self.times.save = now + SAVE;
            self.save();
        }
        if now >= self.times.scan {
            self.scan();
        }
    }
}

/// The name of a session: where its file is, or would be.
fn name_of(config: &Path, folder: &str, id: &str) -> SessionPath {
    let path = config.join("projects").join(folder);
    path.join(format!("{id}.jsonl"))
        .display()
        .to_string()
        .into()
}

/// Config folders, each once, as a walk takes them.
fn configs(dirs: &[PathBuf]) -> Vec<Arc<Path>> {
    let mut roots = Vec::new();
    let mut configs = Vec::new();
    for dir in dirs {
        let projects = dir.join("projects");
        let root = std::fs::canonicalize(&projects).unwrap_or(projects);
        if !roots.contains(&root) {
            configs.push(dir.as_path().into());
            roots.push(root);
        }
    }
    configs
}

/// What rows depend on besides their files.
fn terms(setting: &LiveSettings) -> u64 {
    let mut hasher = DefaultHasher::new();
    setting.prices.to_json().hash(&mut hasher);
    setting.mask.is_some().hash(&mut hasher);
    setting.zone.iana_name().hash(&mut hasher);
    hasher.finish()
}
