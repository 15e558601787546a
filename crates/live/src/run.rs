//! The loop: everything that is told comes in here, one after the other, and rows go out.
//!
//! Files are looked at when somebody hints at them and all of them now and then; what counts is
//! what the file itself says. Only sessions that changed lately stay folded, so memory does not
//! grow with what lies on disk; one that wakes up later is read again.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use unspool_model::session::Session;
use unspool_show::wire::session::SessionRow;
use unspool_store::each;
use unspool_store::events::Noted;
use unspool_store::family;
use unspool_store::find::{self, AgentFile, Found, SessionFile};
use unspool_store::open::Stamp;
use unspool_store::resolve::Target;
use unspool_store::watch::{Kind, Root, Seen, Watch};

use crate::board::{Board, Name};
use crate::fold::Fold;
use crate::kept::{Kept, Mark, Shelf};
use crate::row::{self, Parts};
use crate::work::{self, Extent, Got, Job, Read, Urgency, Workers};
use crate::{Event, Setting};

/// What the loop is told, by anybody.
#[derive(Debug)]
pub enum Told {
    /// From outside.
    Event(Event),
    /// Below a folder nothing is told of changes.
    Blind(PathBuf, String),
    /// A reader is done.
    Read(Read),
    /// All files were listed; how long that took.
    Found(Found, Duration),
    /// To which sessions sub-agents belong.
    Owners(Vec<(AgentFile, Option<String>)>),
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
struct Family {
    file: Option<SessionFile>,
    agents: BTreeMap<PathBuf, AgentFile>,
    /// What the files were when they were last read.
    read: BTreeMap<PathBuf, Stamp>,
    /// Whether all of it was read once.
    whole: bool,
    fold: Option<Box<Fold>>,
    /// How many readers are at it.
    busy: usize,
    /// Whether time alone may change its state.
    restless: bool,
    /// When it last changed.
    touched: Option<Instant>,
    /// Not shown again before.
    next: Option<Instant>,
    /// Lines were added that are not shown yet.
    grown: bool,
    /// Not looked at again before, for the time alone.
    due: Option<Instant>,
    /// Titles it gives to others.
    given: Vec<(u64, String)>,
    /// The title that another file gives it.
    title: Option<String>,
}

impl Family {
    fn stamps(&self) -> impl Iterator<Item = (&PathBuf, Stamp)> {
        let main = self.file.iter().map(|file| (&file.path, file.stamp));
        let agents = self.agents.values();
        main.chain(agents.map(|agent| (&agent.path, agent.stamp)))
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
pub struct Loop {
    setting: Setting,
    board: Arc<Board>,
    heard: Receiver<Told>,
    tell: Sender<Told>,
    workers: Workers,
    watch: Option<Watch>,
    configs: Vec<Arc<Path>>,
    families: HashMap<Name, Family>,
    /// Which session the file of a sub-agent belongs to.
    owners: HashMap<PathBuf, Name>,
    /// Paths somebody hinted at.
    hinted: HashSet<PathBuf>,
    /// Sessions that are to be shown again, and when.
    late: BTreeSet<(Instant, Name)>,
    /// Sessions whose state may change by time alone.
    restless: HashSet<Name>,
    /// Sessions that stay folded.
    folded: HashSet<Name>,
    /// Sessions that were not read whole since the start.
    backlog: HashSet<Name>,
    /// Sessions that those who join wait for.
    awaited: HashSet<Name>,
    /// Titles given to other sessions, by hashes of ids.
    titles: HashMap<u64, String>,
    /// Hashes of the ids of sessions without a title, until all files were looked at.
    untitled: HashMap<Name, Vec<u64>>,
    shelf: Option<Shelf>,
    /// Rows to keep.
    unsaved: HashSet<Name>,
    blind: bool,
    scanning: bool,
    scanned: bool,
    asking: bool,
    times: Times,
}

/// When to do what next.
struct Times {
    tick: Instant,
    save: Instant,
    scan: Instant,
    poll: Instant,
}

impl Loop {
    /// A loop that has not begun.
    pub fn new(
        setting: Setting,
        board: Arc<Board>,
        heard: Receiver<Told>,
        tell: Sender<Told>,
    ) -> std::io::Result<Loop> {
        let workers = Workers::start(&setting, &tell)?;
        let shelf = setting.state.as_ref();
        let shelf = shelf.map(|path| Shelf::new(path, terms(&setting)));
        let now = Instant::now();
        Ok(Loop {
            configs: configs(&setting.dirs),
            setting,
            board,
            heard,
            tell,
            workers,
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
            times: Times {
                tick: now + TICK,
                save: now + SAVE,
                scan: now + SCAN[0],
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
        let mut wakes = times.scan;
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

    fn take(&mut self, told: Told) -> bool {
        match told {
            Told::Event(Event::Stop) => return false,
            Told::Event(Event::Hint(path)) => drop(self.hinted.insert(path)),
            Told::Event(Event::Rescan) => self.times.scan = Instant::now(),
            Told::Event(Event::Hook(noted)) => self.hook(&noted),
            Told::Event(Event::Tick) => self.times.tick = Instant::now(),
            Told::Blind(root, why) => {
                let root = root.display();
                self.board
                    .note(format!("`{root}` is looked at by the clock: {why}"));
                self.blind = true;
                self.times.scan = Instant::now();
            }
            Told::Read(read) => self.got(read),
            Told::Found(found, took) => self.found(found, took),
            Told::Owners(owners) => self.owned(owners),
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
        if now >= self.times.save {
            self.times.save = now + SAVE;
            self.save();
        }
        if now >= self.times.scan {
            self.scan();
        }
    }
}

// The first look.
impl Loop {
    fn begin(&mut self) {
        let mut shelf = self.shelf.take();
        let dirs = self.setting.dirs.clone();
        let (found, kept) = std::thread::scope(|scope| {
            let kept = scope.spawn(|| shelf.as_mut().map(Shelf::load).unwrap_or_default());
            let found = find::find(&dirs);
            (found, kept.join().unwrap_or_default())
        });
        self.shelf = shelf;
        let unknown = self.place(found, &kept);
        let stale = self.restore(kept);
        self.read_newest(stale);
        self.start_watch();
        match unknown.is_empty() {
            true => self.read_backlog(),
            false => self.ask_owners(unknown),
        }
        self.rest();
    }

    /// Puts files where they belong; gives sub-agents whose session only their lines know.
    fn place(&mut self, found: Found, kept: &HashMap<String, Kept>) -> Vec<AgentFile> {
        for (session, kept) in kept {
            let name: Name = session.as_str().into();
            for mark in &kept.files {
                let name = Arc::clone(&name);
                self.owners.insert(mark.0.clone(), name);
            }
        }
        for file in found.sessions {
            let name = name_of(&file.config, &file.folder, &file.id);
            self.owners.remove(&file.path);
            self.family(&name).file = Some(file);
        }
        let (mut unknown, mut known) = (Vec::new(), HashSet::new());
        for agent in found.agents {
            match self.owner(&agent) {
                Some(name) => {
                    known.insert(agent.path.clone());
                    self.adopt(name, agent);
                }
                None => unknown.push(agent),
            }
        }
        self.owners.retain(|path, _| known.contains(path));
        unknown
    }

    /// Puts rows on the board that are still right; gives the sessions to read, newest first.
    fn restore(&mut self, mut kept: HashMap<String, Kept>) -> Vec<Name> {
        let mut stale = Vec::new();
        for (name, family) in &mut self.families {
            if family.file.is_none() {
                continue;
            }
            let Some(kept) = kept.remove(&**name) else {
                stale.push(Arc::clone(name));
                continue;
            };
            for (leaf, title) in &kept.given {
                self.titles.insert(*leaf, title.clone());
            }
            let marks = kept.files.iter();
            let marks: BTreeMap<_, _> = marks.map(|mark| (mark.0.clone(), mark.stamp())).collect();
            family.given = kept.given;
            if marks.len() != family.agents.len() + 1
                || family
                    .stamps()
                    .any(|(path, stamp)| marks.get(path) != Some(&stamp))
            {
                stale.push(Arc::clone(name));
                continue;
            }
            (family.read, family.whole) = (marks, true);
            if let Some(row) = kept.row {
                self.board.put(name, row, false);
                family.restless = kept.restless;
                if kept.restless {
                    self.restless.insert(Arc::clone(name));
                }
            }
        }
        let modified = |name: &Name| self.families.get(name).map_or(0, Family::modified);
        stale.sort_by_cached_key(|name| std::cmp::Reverse(modified(name)));
        stale
    }

    fn read_newest(&mut self, stale: Vec<Name>) {
        for (at, name) in stale.iter().enumerate().take(NEWEST) {
            if at < AWAITED {
                self.awaited.insert(Arc::clone(name));
            }
            let small = self
                .families
                .get(name)
                .is_some_and(|family| family.bytes() <= SMALL);
            if small {
                self.read(name, Urgency::First, Extent::Whole);
            } else {
                self.read(name, Urgency::First, Extent::Ends);
            }
        }
        self.backlog = stale.into_iter().collect();
        if self.awaited.is_empty() {
            self.board.set_ready();
        }
    }

    fn read_backlog(&mut self) {
        for name in self.backlog.clone() {
            let begun = |family: &Family| family.busy > 0 && family.bytes() <= SMALL;
            if !self.families.get(&name).is_some_and(begun) {
                self.read(&name, Urgency::Backlog, Extent::Whole);
            }
        }
    }

    /// Looks into files of sub-agents for the session they belong to.
    fn ask_owners(&mut self, agents: Vec<AgentFile>) {
        self.asking = true;
        let tell = self.tell.clone();
        std::thread::spawn(move || {
            let owners = each::map(&agents, each::threads(), |_| 0, family::session_of);
            let _ = tell.send(Told::Owners(agents.into_iter().zip(owners).collect()));
        });
    }

    fn owned(&mut self, owners: Vec<(AgentFile, Option<String>)>) {
        let first = std::mem::take(&mut self.asking) && !self.scanned;
        for (agent, session) in owners {
            // A file whose session is not known is not asked again before it changes.
            let session = session.unwrap_or_default();
            let name = name_of(&agent.config, &agent.folder, &session);
            self.adopt(Arc::clone(&name), agent);
            if first {
                if self
                    .families
                    .get(&name)
                    .is_some_and(|family| family.file.is_some())
                {
                    self.backlog.insert(name);
                }
            } else {
                self.changed(&name, None);
            }
        }
        if first {
            self.read_backlog();
            self.rest();
        }
    }

    /// Says so when everything was looked at.
    fn rest(&mut self) {
        if self.scanned || self.asking || !self.backlog.is_empty() {
            return;
        }
        self.scanned = true;
        for (name, ids) in std::mem::take(&mut self.untitled) {
            self.entitle(&name, &ids);
        }
        self.board.set_ready();
        self.board.set_scanned();
    }

    /// Gives a session the title that another file has for it.
    fn entitle(&mut self, name: &Name, ids: &[u64]) {
        let title = ids.iter().find_map(|id| self.titles.get(id));
        let (Some(title), Some(family)) = (title.cloned(), self.families.get_mut(name)) else {
            return;
        };
        if let Some(fold) = &mut family.fold {
            fold.title = Some(title.clone());
        }
        family.title = Some(title.clone());
        if let Some(row) = self.board.get(name) {
            let title = Some(title);
            let row = SessionRow {
                title,
                ..(*row).clone()
            };
            self.put(name, row, false);
        }
    }

    fn start_watch(&mut self) {
        let mut roots = Vec::new();
        for config in &self.configs {
            let root = |name: &str, kind| Root {
                dir: config.join(name),
                kind,
            };
            roots.push(root("projects", Kind::Projects));
            roots.push(root("sessions", Kind::Flat));
        }
        let tell = self.tell.clone();
        let watch = Watch::start(roots, move |seen| {
            let _ = tell.send(match seen {
                Seen::At(path) => Told::Event(Event::Hint(path)),
                Seen::Lost => Told::Event(Event::Rescan),
                Seen::Blind { root, why } => Told::Blind(root, why),
            });
        });
        match watch {
            Ok(watch) => self.watch = Some(watch),
            Err(why) => {
                self.blind = true;
                self.board
                    .note(format!("files are looked at by the clock: {why}"));
            }
        }
    }
}

// Files that change.
impl Loop {
    fn family(&mut self, name: &Name) -> &mut Family {
        self.families.entry(Arc::clone(name)).or_default()
    }

    /// The session a sub-agent belongs to, if that is known without opening it.
    fn owner(&self, agent: &AgentFile) -> Option<Name> {
        match &agent.session {
            Some(session) => Some(name_of(&agent.config, &agent.folder, session)),
            None => self.owners.get(&agent.path).cloned(),
        }
    }

    fn adopt(&mut self, name: Name, agent: AgentFile) {
        self.owners.insert(agent.path.clone(), Arc::clone(&name));
        self.family(&name).agents.insert(agent.path.clone(), agent);
    }

    /// Looks at a path that somebody hinted at.
    fn look_at(&mut self, path: &Path) {
        let config = self.configs.iter().find(|config| path.starts_with(config));
        let Some(config) = config.cloned() else {
            return;
        };
        match find::at(&config, path) {
            Some(target) => self.met(target),
            None => self.gone(path),
        }
    }

    /// Takes note of a file as it is now.
    fn met(&mut self, target: Target) {
        match target {
            Target::Session(file) => {
                let name = name_of(&file.config, &file.folder, &file.id);
                self.family(&name).file = Some(file);
                self.changed(&name, None);
            }
            Target::Agent(file) => {
                let known = self.owner(&file);
                let name = known.unwrap_or_else(|| {
                    let session = family::session_of(&file).unwrap_or_default();
                    name_of(&file.config, &file.folder, &session)
                });
                self.adopt(Arc::clone(&name), file.clone());
                self.changed(&name, Some(&file));
            }
        }
    }

    /// Forgets a file that is not there.
    fn gone(&mut self, path: &Path) {
        if std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
            return;
        }
        if let Some(name) = self.owners.remove(path) {
            let family = self.family(&name);
            family.agents.remove(path);
            family.read.remove(path);
            if let Some(fold) = &mut family.fold {
                fold.agents.remove(path);
            }
            self.show(&name);
            return;
        }
        let name: Name = path.display().to_string().into();
        let is_session =
            |family: &Family| family.file.as_ref().is_some_and(|file| file.path == path);
        if self.families.get(&name).is_some_and(is_session) {
            self.drop_session(&name);
        } else if path.extension().is_none_or(|end| end != "jsonl") {
            self.gone_below(path);
        }
    }

    /// Forgets all files of a folder that is not there.
    fn gone_below(&mut self, dir: &Path) {
        if std::fs::symlink_metadata(dir).is_ok() {
            return;
        }
        let files = self.families.values().flat_map(Family::stamps);
        let below: Vec<PathBuf> = files
            .map(|(path, _)| path)
            .filter(|path| path.starts_with(dir))
            .cloned()
            .collect();
        for path in below {
            self.look_at(&path);
        }
    }

    fn drop_session(&mut self, name: &Name) {
        let family = self.family(name);
        if let Some(file) = family.file.take() {
            family.read.remove(&file.path);
        }
        (family.fold, family.restless, family.whole) = (None, false, false);
        if family.agents.is_empty() && family.busy == 0 {
            self.families.remove(name);
        }
        self.folded.remove(name);
        self.restless.remove(name);
        self.board.remove(name);
        self.done(name);
    }

    /// Reads on in a session of which a file may have changed.
    fn changed(&mut self, name: &Name, agent: Option<&AgentFile>) {
        let mask = self.setting.mask;
        let Some(family) = self.families.get_mut(name) else {
            return;
        };
        let Some(main) = &family.file else {
            return;
        };
        if !family.is_stale() {
            return;
        }
        family.touched = Some(Instant::now());
        let (path, stamp) = match agent {
            Some(agent) => (agent.path.clone(), agent.stamp),
            None => (main.path.clone(), main.stamp),
        };
        let Some(fold) = &mut family.fold else {
            return self.wake(name);
        };
        let follow = match agent {
            Some(agent) => fold.agents.get(&agent.path).map(|agent| &agent.follow),
            None => Some(&fold.main),
        };
        let offset = follow.map_or(0, |follow| follow.offset());
        if stamp.size.saturating_sub(offset) > MUCH || stamp.size < offset {
            self.unfold(name);
            return self.wake(name);
        }
        match fold.poll(agent, mask) {
            Ok(polled) => {
                family.read.insert(path, stamp);
                family.grown |= polled.lines > 0;
                if polled.lines > 0 || polled.restarted {
                    self.show(name);
                }
            }
            Err(_) => {
                self.unfold(name);
                self.wake(name);
            }
        }
    }

    /// Reads a session that was at rest and has changed.
    fn wake(&mut self, name: &Name) {
        let Some(family) = self.families.get(name).filter(|family| family.busy == 0) else {
            return;
        };
        if family.bytes() > SMALL {
            self.read(name, Urgency::Now, Extent::Ends);
            self.read(name, Urgency::Changed, Extent::Whole);
        } else {
            self.read(name, Urgency::Now, Extent::Whole);
        }
    }

    fn read(&mut self, name: &Name, urgency: Urgency, extent: Extent) {
        let now = (self.setting.clock)().0;
        let Some(family) = self.families.get_mut(name) else {
            return;
        };
        let Some(file) = &family.file else {
            return;
        };
        family.busy += 1;
        let lately = now - family.modified() < LATELY;
        self.workers.add(Job {
            urgency,
            name: Arc::clone(name),
            file: file.clone(),
            agents: family.agents.values().cloned().collect(),
            extent,
            hold: lately && extent == Extent::Whole,
        });
    }

    /// Takes in what a reader found.
    fn got(&mut self, read: Read) {
        let Read {
            name,
            extent,
            found,
        } = read;
        self.awaited.remove(&name);
        if self.awaited.is_empty() {
            self.board.set_ready();
        }
        let Some(family) = self.families.get_mut(&name) else {
            return self.done(&name);
        };
        family.busy = family.busy.saturating_sub(1);
        if family.file.is_none() {
            return self.done(&name);
        }
        match (found, extent) {
            (Ok(got), Extent::Ends) => self.got_ends(&name, *got),
            (Ok(got), Extent::Whole) => self.got_whole(&name, *got),
            (Err(why), _) => {
                // Not tried again before the file changes.
                family.read = family
                    .stamps()
                    .map(|(path, stamp)| (path.clone(), stamp))
                    .collect();
                self.board.note(why);
            }
        }
        if extent == Extent::Whole {
            self.done(&name);
        }
        self.catch_up(&name);
    }

    fn done(&mut self, name: &Name) {
        if self.backlog.remove(name) {
            self.rest();
        }
    }

    fn got_ends(&mut self, name: &Name, got: Got) {
        let Some(row) = got.row else {
            return;
        };
        let known = self.families.get(name).is_some_and(|family| family.whole);
        let row = match self.board.get(name).filter(|_| known) {
            Some(old) => row::renewed(&old, row),
            None => row,
        };
        self.set_restless(name, got.restless);
        // What was read whole meanwhile knows more.
        if self
            .families
            .get(name)
            .is_some_and(|family| family.fold.is_none())
        {
            self.put(name, row, true);
        }
    }

    fn got_whole(&mut self, name: &Name, got: Got) {
        for (leaf, title) in &got.given {
            self.titles.insert(*leaf, title.clone());
        }
        let Some(family) = self.families.get_mut(name) else {
            return;
        };
        (family.read, family.given, family.whole) = (got.stamps, got.given, true);
        family.fold = got.fold.map(Box::new);
        match &mut family.fold {
            Some(fold) => {
                fold.title = family.title.clone();
                family.touched.get_or_insert_with(Instant::now);
                self.folded.insert(Arc::clone(name));
            }
            None => drop(self.folded.remove(name)),
        }
        self.unsaved.insert(Arc::clone(name));
        let Some(row) = got.row else {
            self.set_restless(name, false);
            self.board.remove(name);
            return;
        };
        let given = family.title.clone().filter(|_| !got.untitled.is_empty());
        let title = given.or(row.title);
        let row = SessionRow { title, ..row };
        self.set_restless(name, got.restless);
        self.put(name, row, true);
        if !got.untitled.is_empty() {
            match self.scanned {
                true => self.entitle(name, &got.untitled),
                false => drop(self.untitled.insert(Arc::clone(name), got.untitled)),
            }
        }
        self.evict();
    }

    /// Reads on in files that changed while they were read.
    fn catch_up(&mut self, name: &Name) {
        let Some(family) = self.families.get(name) else {
            return;
        };
        if family.busy > 0 || self.backlog.contains(name) {
            return;
        }
        let stale = family.stamps();
        let stale = stale.filter(|(path, stamp)| family.read.get(*path) != Some(stamp));
        let stale: Vec<PathBuf> = stale.map(|(path, _)| path.clone()).collect();
        self.hinted.extend(stale);
    }
}

// What is shown.
impl Loop {
    fn put(&mut self, name: &Name, row: SessionRow, grown: bool) {
        if self.board.put(name, row, grown) {
            self.unsaved.insert(Arc::clone(name));
        }
    }

    fn set_restless(&mut self, name: &Name, restless: bool) {
        if let Some(family) = self.families.get_mut(name) {
            family.restless = restless;
        }
        match restless {
            true => drop(self.restless.insert(Arc::clone(name))),
            false => drop(self.restless.remove(name)),
        }
    }

    /// Shows a folded session as it is now, or soon: a large one takes its time, and lines come
    /// faster than anybody looks.
    fn show(&mut self, name: &Name) {
        let now = Instant::now();
        let Some(family) = self.families.get_mut(name) else {
            return;
        };
        if let Some(next) = family.next.filter(|next| *next > now) {
            self.late.insert((next, Arc::clone(name)));
            return;
        }
        let (Some(fold), Some(file)) = (&family.fold, &family.file) else {
            return;
        };
        let agents: Vec<&Session> = fold.agents().map(|agent| &agent.follow.session).collect();
        let parts = Parts {
            file,
            session: &fold.main.session,
            agents: &agents,
            title: fold.title.as_deref(),
        };
        let time = (self.setting.clock)();
        let row = row::row(&parts, &self.setting.prices, time);
        let restless = row::restless(&parts, &self.setting.prices, time);
        let is_conversation = parts.session.is_conversation();
        let took = now.elapsed();
        family.next = Some(now + (took * 5).clamp(Duration::from_millis(2), BLIND_POLL));
        let grown = std::mem::take(&mut family.grown);
        self.set_restless(name, restless);
        match is_conversation {
            true => self.put(name, row, grown),
            false => self.board.remove(name),
        }
    }

    /// What time alone changes.
    fn tick(&mut self, now: Instant) {
        for name in self.restless.clone() {
            let Some(family) = self.families.get_mut(&name) else {
                self.restless.remove(&name);
                continue;
            };
            if family.fold.is_some() {
                self.show(&name);
            } else if family.busy == 0 && family.due.is_none_or(|due| due <= now) {
                family.due = Some(now + TICK * 60);
                self.read(&name, Urgency::Now, Extent::Ends);
            }
        }
        self.settle(now);
    }

    /// Lets go of what has been quiet for long, and ends lines that nobody will end.
    fn settle(&mut self, now: Instant) {
        let time = (self.setting.clock)().0;
        let mut quiet = Vec::new();
        for name in &self.folded {
            let Some(family) = self.families.get(name) else {
                continue;
            };
            let since = family.touched.map_or(QUIET, |at| now.duration_since(at));
            let torn = family.fold.as_ref().zip(family.file.as_ref());
            let torn = torn.is_some_and(|(fold, file)| {
                fold.main.offset() < file.bytes && time - file.modified > work::TORN
            });
            if torn || since >= QUIET && !family.restless {
                quiet.push((Arc::clone(name), torn));
            }
        }
        for (name, torn) in quiet {
            self.unfold(&name);
            if torn {
                self.read(&name, Urgency::Changed, Extent::Whole);
            }
        }
    }

    fn unfold(&mut self, name: &Name) {
        self.folded.remove(name);
        if let Some(family) = self.families.get_mut(name) {
            family.fold = None;
        }
    }

    /// Keeps what is folded within bounds; the latest stays, whatever its size.
    fn evict(&mut self) {
        let mut held: Vec<_> = self
            .folded
            .iter()
            .filter_map(|name| {
                let family = self.families.get(name)?;
                let weight = family.fold.as_ref()?.weight();
                Some((family.touched, Arc::clone(name), weight))
            })
            .collect();
        held.sort();
        let mut weight: u64 = held.iter().map(|(_, _, weight)| weight).sum();
        let mut count = held.len();
        for (_, name, own) in held {
            if count <= 1 || (count <= FOLDED && weight <= WEIGHT) {
                break;
            }
            self.unfold(&name);
            (count, weight) = (count - 1, weight - own);
        }
    }

    fn poll_folded(&mut self) {
        for name in &self.folded {
            if let Some(family) = self.families.get(name) {
                let paths = family.stamps().map(|(path, _)| path.clone());
                self.hinted.extend(paths);
            }
        }
        for path in std::mem::take(&mut self.hinted) {
            self.look_at(&path);
        }
    }

    fn hook(&mut self, noted: &Noted) {
        let same = |family: &Family| {
            let file = family.file.as_ref();
            file.is_some_and(|file| file.id == noted.session)
        };
        let names = self.families.iter().filter(|(_, family)| same(family));
        let names: Vec<Name> = names.map(|(name, _)| Arc::clone(name)).collect();
        if let Some(path) = noted.transcript.clone() {
            self.hinted.insert(path);
        }
        for name in names {
            self.show(&name);
        }
    }
}

// All files, now and then.
impl Loop {
    fn scan(&mut self) {
        let limits = if self.blind { BLIND_SCAN } else { SCAN };
        // Set again when it is known how long it took.
        self.times.scan = Instant::now() + limits[1];
        if std::mem::replace(&mut self.scanning, true) {
            return;
        }
        if let Some(watch) = &self.watch {
            watch.again();
        }
        let (tell, dirs) = (self.tell.clone(), self.setting.dirs.clone());
        std::thread::spawn(move || {
            let began = Instant::now();
            let found = find::find(&dirs);
            let _ = tell.send(Told::Found(found, began.elapsed()));
        });
    }

    fn found(&mut self, found: Found, took: Duration) {
        self.scanning = false;
        let limits = if self.blind { BLIND_SCAN } else { SCAN };
        // Looking must not take more than a few thousandths of the time.
        self.times.scan = Instant::now() + (took * 400).clamp(limits[0], limits[1]);
        let mut seen: HashSet<&Path> = HashSet::new();
        let mut changed: Vec<&Path> = Vec::new();
        let mut unknown = Vec::new();
        for file in &found.sessions {
            seen.insert(&file.path);
            let name = name_of(&file.config, &file.folder, &file.id);
            let family = self.families.get(&name);
            let known = family.and_then(|family| family.file.as_ref());
            if known.is_none_or(|known| known.stamp != file.stamp) {
                changed.push(&file.path);
            }
        }
        for agent in &found.agents {
            seen.insert(&agent.path);
            let name = self.owners.get(&agent.path);
            let family = name.and_then(|name| self.families.get(name));
            let known = family.and_then(|family| family.agents.get(&agent.path));
            match known {
                Some(known) if known.stamp == agent.stamp => {}
                None if agent.session.is_none() => unknown.push(agent.clone()),
                _ => changed.push(&agent.path),
            }
        }
        let known = self.families.values().flat_map(Family::stamps);
        let lost = known
            .map(|(path, _)| path)
            .filter(|path| !seen.contains(path.as_path()));
        let lost: Vec<PathBuf> = lost.cloned().collect();
        self.hinted.extend(lost);
        self.hinted.extend(changed.into_iter().map(Path::to_owned));
        if !unknown.is_empty() && !self.asking {
            self.ask_owners(unknown);
        }
        for path in std::mem::take(&mut self.hinted) {
            self.look_at(&path);
        }
    }

    fn save(&mut self) {
        let Some(shelf) = &mut self.shelf else {
            self.unsaved.clear();
            return;
        };
        if self.unsaved.is_empty() {
            return;
        }
        let (families, board) = (&self.families, &self.board);
        let changed: Vec<Kept> = std::mem::take(&mut self.unsaved)
            .iter()
            .filter_map(|name| kept(name, families.get(name)?, board))
            .collect();
        let all = || {
            let all = families.iter();
            all.filter_map(|(name, family)| kept(name, family, board))
        };
        if let Err(why) = shelf.save(&changed, families.len(), all) {
            self.board.note(format!("rows cannot be kept: {why}"));
        }
    }
}

/// What is kept of a session; nothing while it was not read whole.
fn kept(name: &Name, family: &Family, board: &Board) -> Option<Kept> {
    if !family.whole {
        return None;
    }
    let row = board.get(name).map(|row| (*row).clone());
    if row.as_ref().is_some_and(|row| row.partial) {
        return None;
    }
    let files = family.read.iter();
    Some(Kept {
        path: name.to_string(),
        files: files.map(|(path, stamp)| Mark::new(path, *stamp)).collect(),
        row,
        restless: family.restless,
        given: family.given.clone(),
    })
}

/// The name of a session: where its file is, or would be.
fn name_of(config: &Path, folder: &str, id: &str) -> Name {
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
fn terms(setting: &Setting) -> u64 {
    let mut hasher = DefaultHasher::new();
    setting.prices.to_json().hash(&mut hasher);
    setting.mask.is_some().hash(&mut hasher);
    hasher.finish()
}
