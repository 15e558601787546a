//! Says that something may have changed below some folders, soon after it did.
//!
//! A hint is never proof, and hints get lost: whoever takes them looks at the file itself, and
//! looks at everything now and then. Each folder is watched on its own, because a watch of a
//! whole tree misses what is made in a new folder before the watch reaches it: here a new folder
//! is watched first and walked afterwards, so whatever stands in it is told.
//!
//! Where nothing can be watched (a disk of another machine, too many folders) that is said once,
//! with the reason, and the taker has to look by itself.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use crate::read_folder;

/// What a watch tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// Something may have changed at this path.
    At(PathBuf),
    /// Hints were lost: anything may have changed.
    Lost,
    /// Below this folder nothing, or not everything, is told from now on.
    Blind {
        /// The folder that was to be watched.
        root: PathBuf,
        /// Why.
        why: String,
    },
}

/// A folder to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchRoot {
    /// Where it is; it need not exist yet.
    pub dir: PathBuf,
    /// What stands in it.
    pub kind: WatchRootKind,
}

/// What stands in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchRootKind {
    /// Projects with their sessions and sub-agents.
    Projects,
    /// Files only.
    Flat,
}

/// Why a folder is not watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchError {
    /// It is not there.
    Gone,
    /// The system does not let us watch as many.
    Limit,
    /// Something else.
    Other(String),
}

/// Where hints come from: the system, or a test.
pub trait WatchBackend: Send {
    /// Begins to watch a folder, and only the folder itself unless [`WatchBackend::is_deep`].
    fn watch(&mut self, dir: &Path) -> Result<(), WatchError>;
    /// No longer watches it.
    fn forget(&mut self, dir: &Path);
    /// Whether a watch reaches everything below a folder by itself.
    fn is_deep(&self) -> bool;
    /// Why a folder is on a disk that tells nothing, if it is.
    fn deaf(&self, dir: &Path) -> Option<String>;
}

/// What comes from the system, before it is understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawWatchEvent {
    /// Something at this path is new, has grown, or is another one.
    Changed(PathBuf),
    /// A folder or file is no longer at this path.
    Left(PathBuf),
    /// Hints were lost.
    Lost,
    /// Look again for folders that were not there.
    Again,
    /// The end.
    Stop,
}

/// A running watch; it ends when this is dropped.
#[derive(Debug)]
pub struct FolderWatch {
    raw: Sender<RawWatchEvent>,
    thread: Option<JoinHandle<()>>,
}

impl FolderWatch {
    /// Watches folders with what the system offers.
    pub fn start(
        roots: Vec<WatchRoot>,
        tell: impl Fn(WatchEvent) + Send + 'static,
    ) -> std::io::Result<FolderWatch> {
        let make = |raw| system::hints(raw).map(|hints| Box::new(hints) as Box<dyn WatchBackend>);
        FolderWatch::by(make, roots, tell)
    }

    /// Watches folders with hints from anywhere: `make` gets where to put what it hears.
    pub fn by(
        make: impl FnOnce(Sender<RawWatchEvent>) -> Result<Box<dyn WatchBackend>, String>
        + Send
        + 'static,
        roots: Vec<WatchRoot>,
        tell: impl Fn(WatchEvent) + Send + 'static,
    ) -> std::io::Result<FolderWatch> {
        let (raw, heard) = mpsc::channel();
        let sender = raw.clone();
        let thread = std::thread::Builder::new().name("watch".into());
        let thread = thread.spawn(move || match make(sender) {
            Ok(hints) => FolderWatchLoop::new(hints, roots, tell).run(heard),
            Err(why) => {
                for root in roots {
                    let why = why.clone();
                    tell(WatchEvent::Blind {
                        root: root.dir,
                        why,
                    });
                }
            }
        })?;
        Ok(FolderWatch {
            raw,
            thread: Some(thread),
        })
    }

    /// Looks again for folders that were not there when they were to be watched.
    pub fn again(&self) {
        let _ = self.raw.send(RawWatchEvent::Again);
    }
}

impl Drop for FolderWatch {
    fn drop(&mut self) {
        let _ = self.raw.send(RawWatchEvent::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Below the folder of a session sub-agents may start others, this deep.
const DEPTH: usize = 9;

struct FolderWatchLoop<T> {
    hints: Box<dyn WatchBackend>,
    roots: Vec<WatchRoot>,
    tell: T,
    watched: HashSet<PathBuf>,
    blind: HashSet<PathBuf>,
}

impl<T: Fn(WatchEvent)> FolderWatchLoop<T> {
    fn new(hints: Box<dyn WatchBackend>, roots: Vec<WatchRoot>, tell: T) -> FolderWatchLoop<T> {
        FolderWatchLoop {
            hints,
            roots,
            tell,
            watched: HashSet::new(),
            blind: HashSet::new(),
        }
    }

    fn run(mut self, heard: Receiver<RawWatchEvent>) {
        self.cover(false);
        for raw in heard {
            match raw {
                RawWatchEvent::Stop => return,
                RawWatchEvent::Again => self.cover(true),
                RawWatchEvent::Lost => {
                    // Folders may have been made that nobody told us of.
                    for root in self.roots.clone() {
                        self.walk(&root, &root.dir, false);
                    }
                    (self.tell)(WatchEvent::Lost);
                }
                RawWatchEvent::Changed(path) => self.changed(path),
                RawWatchEvent::Left(path) => {
                    self.left(&path);
                    (self.tell)(WatchEvent::At(path));
                }
            }
        }
    }

    /// Watches all roots that are there and are not watched.
    fn cover(&mut self, tell: bool) {
        for root in self.roots.clone() {
            if !self.watched.contains(&root.dir) && root.dir.is_dir() {
                match self.hints.deaf(&root.dir) {
                    Some(why) => self.blinded(&root, why),
                    None => self.walk(&root, &root.dir, tell),
                }
            }
        }
    }

    fn blinded(&mut self, root: &WatchRoot, why: String) {
        if self.blind.insert(root.dir.clone()) {
            (self.tell)(WatchEvent::Blind {
                root: root.dir.clone(),
                why,
            });
        }
    }

    fn changed(&mut self, path: PathBuf) {
        let root = self.roots.iter().find(|root| path.starts_with(&root.dir));
        let Some(root) = root.cloned() else {
            return;
        };
        let inner = root.kind == WatchRootKind::Projects && path != root.dir;
        // Most hints are about transcripts that grow, which need not be asked what they are.
        let is_transcript = path.extension().is_some_and(|end| end == "jsonl");
        if inner && !is_transcript && path.is_dir() {
            self.walk(&root, &path, true);
        }
        (self.tell)(WatchEvent::At(path));
    }

    /// Watches a folder and those in it. What stands in it may be older than the watch, so it
    /// is told.
    fn walk(&mut self, root: &WatchRoot, dir: &Path, tell: bool) {
        let deep = self.hints.is_deep();
        let reached = self.watched.contains(dir) || deep && self.watched.contains(&root.dir);
        if !reached {
            match self.hints.watch(dir) {
                Ok(()) => drop(self.watched.insert(dir.into())),
                Err(WatchError::Gone) => return,
                Err(WatchError::Limit) => {
                    let why = "the system's limit of watched directories is reached".to_owned();
                    return self.blinded(root, why);
                }
                Err(WatchError::Other(why)) => return self.blinded(root, why),
            }
        }
        if !tell && (deep || root.kind == WatchRootKind::Flat) {
            return;
        }
        let entries = read_folder::entries(dir).into_iter().flatten().flatten();
        if root.kind == WatchRootKind::Flat {
            return entries.for_each(|entry| (self.tell)(WatchEvent::At(entry.path())));
        }
        for entry in entries {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let is_transcript = path.extension().is_some_and(|end| end == "jsonl");
            if is_transcript {
                if tell {
                    (self.tell)(WatchEvent::At(path));
                }
            } else if holds_sessions(&root.dir, &path)
                && (kind.is_dir() || (kind.is_symlink() && leads_out(&path, &root.dir)))
            {
                self.walk(root, &path, tell);
            }
        }
    }

    /// Watches stay with a folder that is moved, and would tell its old name.
    fn left(&mut self, path: &Path) {
        if !self.watched.contains(path) {
            return;
        }
        let below: Vec<PathBuf> = self
            .watched
            .iter()
            .filter(|dir| dir.starts_with(path))
            .cloned()
            .collect();
        for dir in below {
            self.hints.forget(&dir);
            self.watched.remove(&dir);
        }
    }
}

/// Whether a link leads to a folder outside of the root; others are met where they are.
fn leads_out(path: &Path, root: &Path) -> bool {
    let real = fs::canonicalize(path);
    let root = fs::canonicalize(root).unwrap_or_else(|_| root.into());
    real.is_ok_and(|real| real.is_dir() && !real.starts_with(&root) && !root.starts_with(&real))
}

/// Whether a folder may hold transcripts, by where it is: projects, sessions, and what is below
/// `subagents`.
fn holds_sessions(root: &Path, dir: &Path) -> bool {
    let Ok(inner) = dir.strip_prefix(root) else {
        return false;
    };
    let parts: Vec<_> = inner.components().map(|part| part.as_os_str()).collect();
    let agents = parts.iter().position(|part| *part == "subagents");
    parts.len() <= DEPTH && (parts.len() <= 2 || matches!(agents, Some(1 | 2)))
}

/// Hints from the system.
mod system {
    use super::{Path, PathBuf, RawWatchEvent, Sender, WatchError};
    use notify::event::{EventKind, ModifyKind, RenameMode};
    use notify::{ErrorKind, Event, RecommendedWatcher, RecursiveMode, Watcher};

    pub struct SystemWatchBackend(RecommendedWatcher);

    pub fn hints(raw: Sender<RawWatchEvent>) -> Result<SystemWatchBackend, String> {
        let handler = move |event: notify::Result<Event>| match event {
            Ok(event) => understand(event, &raw),
            Err(_) => drop(raw.send(RawWatchEvent::Lost)),
        };
        let watcher = notify::recommended_watcher(handler);
        watcher
            .map(SystemWatchBackend)
            .map_err(|why| why.to_string())
    }

    fn understand(event: Event, raw: &Sender<RawWatchEvent>) {
        if event.need_rescan() {
            let _ = raw.send(RawWatchEvent::Lost);
            return;
        }
        let left = match event.kind {
            // What we do ourselves, and half of all events.
            EventKind::Access(_) => return,
            // Both ends were told one by one.
            EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => return,
            EventKind::Modify(ModifyKind::Name(RenameMode::From)) | EventKind::Remove(_) => true,
            _ => false,
        };
        let make: fn(PathBuf) -> RawWatchEvent = if left {
            RawWatchEvent::Left
        } else {
            RawWatchEvent::Changed
        };
        for path in event.paths {
            let _ = raw.send(make(path));
        }
    }

    impl super::WatchBackend for SystemWatchBackend {
        fn watch(&mut self, dir: &Path) -> Result<(), WatchError> {
            let mode = match self.is_deep() {
                true => RecursiveMode::Recursive,
                false => RecursiveMode::NonRecursive,
            };
            self.0.watch(dir, mode).map_err(|error| match error.kind {
                ErrorKind::PathNotFound => WatchError::Gone,
                ErrorKind::MaxFilesWatch => WatchError::Limit,
                ErrorKind::Io(why) if why.kind() == std::io::ErrorKind::NotFound => {
                    WatchError::Gone
                }
                ErrorKind::Io(why) if why.kind() == std::io::ErrorKind::NotADirectory => {
                    WatchError::Gone
                }
                other => WatchError::Other(notify::Error::new(other).to_string()),
            })
        }

        fn forget(&mut self, dir: &Path) {
            // It may have gone with its folder.
            let _ = self.0.unwatch(dir);
        }

        fn is_deep(&self) -> bool {
            // Elsewhere each watch is costly and one reaches everything.
            !cfg!(any(target_os = "linux", target_os = "android"))
        }

        fn deaf(&self, dir: &Path) -> Option<String> {
            super::deaf(dir)
        }
    }
}

/// The name of a file system that does not tell what other machines do, if a folder is on one.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn deaf(dir: &Path) -> Option<String> {
    const DEAF: [(u32, &str); 11] = [
        (0x6969, "NFS"),
        (0x517B, "SMB"),
        (0xFF53_4D42, "CIFS"),
        (0xFE53_4D42, "SMB"),
        (0x0102_1997, "9p"),
        (0x6573_5546, "FUSE"),
        (0x5346_414F, "AFS"),
        (0x00C3_6400, "Ceph"),
        (0x7375_7245, "Coda"),
        (0x786F_4256, "a VirtualBox shared folder"),
        (0x0BD0_0BD0, "Lustre"),
    ];
    let kind = rustix::fs::statfs(dir).ok()?.f_type;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let kind = kind as u32;
    let (_, name) = DEAF.iter().find(|(magic, _)| *magic == kind)?;
    Some(format!("it is on {name}, which does not report changes"))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn deaf(_: &Path) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    // Helpers outside of test functions may give up as well.
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    /// Hints of a test: what is watched, and how many may be.
    #[derive(Clone, Default)]
    struct Fake {
        watched: Arc<Mutex<Vec<PathBuf>>>,
        most: usize,
        deaf: Option<String>,
    }

    impl WatchBackend for Fake {
        fn watch(&mut self, dir: &Path) -> Result<(), WatchError> {
            let mut watched = self.watched.lock().unwrap();
            if watched.len() >= self.most {
                return Err(WatchError::Limit);
            }
            watched.push(dir.into());
            Ok(())
        }

        fn forget(&mut self, dir: &Path) {
            self.watched.lock().unwrap().retain(|one| one != dir);
        }

        fn is_deep(&self) -> bool {
            false
        }

        fn deaf(&self, _: &Path) -> Option<String> {
            self.deaf.clone()
        }
    }

    struct Stage {
        watch: FolderWatch,
        seen: Receiver<WatchEvent>,
        fake: Fake,
    }

    impl Stage {
        fn new(fake: Fake, dir: &Path) -> Stage {
            let (tell, seen) = mpsc::channel();
            let root = WatchRoot {
                dir: dir.into(),
                kind: WatchRootKind::Projects,
            };
            let hints = fake.clone();
            let watch = FolderWatch::by(
                move |_| Ok(Box::new(hints) as Box<dyn WatchBackend>),
                vec![root],
                move |one| drop(tell.send(one)),
            )
            .unwrap();
            Stage { watch, seen, fake }
        }

        /// What was told, when all that was heard so far is understood.
        fn after(self, raw: &[RawWatchEvent]) -> (Vec<WatchEvent>, Vec<PathBuf>) {
            for one in raw {
                self.watch.raw.send(one.clone()).unwrap();
            }
            drop(self.watch);
            let mut watched = self.fake.watched.lock().unwrap().clone();
            watched.sort();
            (self.seen.iter().collect(), watched)
        }
    }

    fn free() -> Fake {
        Fake {
            most: usize::MAX,
            ..Fake::default()
        }
    }

    fn tree(dir: &Path, folders: &[&str]) {
        for folder in folders {
            fs::create_dir_all(dir.join(folder)).unwrap();
        }
    }

    #[test]
    fn folders_that_may_hold_transcripts_are_watched_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        tree(
            root,
            &["p/s/subagents/x", "p/s/tool-results", "q", "p/s/a/b"],
        );
        let (seen, watched) = Stage::new(free(), root).after(&[]);
        let names = ["", "p", "p/s", "p/s/subagents", "p/s/subagents/x", "q"];
        let wanted: Vec<PathBuf> = names
            .iter()
            .map(|name| root.join(name).components().collect())
            .collect();
        assert_eq!(watched, wanted);
        assert_eq!(seen, []);
    }

    #[test]
    fn a_new_folder_is_walked_at_once_and_what_stands_in_it_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        tree(root, &["p"]);
        let stage = Stage::new(free(), root);
        // As the first raw event is understood, the folders are there already.
        tree(root, &["p/s/subagents/deep"]);
        let file = root.join("p/s/subagents/deep/agent-1.jsonl");
        fs::write(&file, "{}\n").unwrap();
        let (seen, watched) = stage.after(&[RawWatchEvent::Changed(root.join("p/s"))]);
        assert!(seen.contains(&WatchEvent::At(file)), "{seen:?}");
        assert!(watched.contains(&root.join("p/s/subagents/deep")));
    }

    #[test]
    fn a_limit_is_said_once() {
        let dir = tempfile::tempdir().unwrap();
        tree(dir.path(), &["a", "b", "c", "d"]);
        let fake = Fake {
            most: 3,
            ..Fake::default()
        };
        let (seen, watched) =
            Stage::new(fake, dir.path()).after(&[RawWatchEvent::Again, RawWatchEvent::Lost]);
        assert_eq!(watched.len(), 3);
        let blind = seen
            .iter()
            .filter(|one| matches!(one, WatchEvent::Blind { .. }));
        assert_eq!(blind.count(), 1, "{seen:?}");
        assert!(seen.contains(&WatchEvent::Lost));
    }

    #[test]
    fn a_disk_that_tells_nothing_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let fake = Fake {
            deaf: Some("it is on NFS".into()),
            ..free()
        };
        let (seen, watched) = Stage::new(fake, dir.path()).after(&[RawWatchEvent::Again]);
        let (root, why) = (dir.path().to_owned(), "it is on NFS".to_owned());
        assert_eq!(seen, [WatchEvent::Blind { root, why }]);
        assert_eq!(watched, Vec::<PathBuf>::new());
    }

    #[test]
    fn a_folder_that_was_moved_is_watched_under_its_new_name_only() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        tree(root, &["old/s/subagents"]);
        let stage = Stage::new(free(), root);
        while stage.fake.watched.lock().unwrap().len() < 4 {
            std::thread::yield_now();
        }
        fs::rename(root.join("old"), root.join("new")).unwrap();
        let raw = [
            RawWatchEvent::Left(root.join("old")),
            RawWatchEvent::Changed(root.join("new")),
        ];
        let (_, watched) = stage.after(&raw);
        assert!(watched.iter().all(|dir| !dir.starts_with(root.join("old"))));
        assert!(watched.contains(&root.join("new/s/subagents")));
    }

    #[test]
    fn a_root_that_appears_later_is_found_when_looked_for_again() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("projects");
        let stage = Stage::new(free(), &root);
        tree(&root, &["p"]);
        fs::write(root.join("p/a.jsonl"), "{}\n").unwrap();
        let (seen, watched) = stage.after(&[RawWatchEvent::Again]);
        assert_eq!(watched.len(), 2);
        // Whether it was there in time for the first look is for the scheduler to say.
        let told = seen.contains(&WatchEvent::At(root.join("p/a.jsonl")));
        assert!(told || seen.is_empty());
    }

    #[test]
    fn the_system_tells_of_lines_and_of_files_in_new_nested_folders() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        tree(&root, &["p"]);
        let grown = root.join("p/a.jsonl");
        fs::write(&grown, "one\n").unwrap();
        let (tell, seen) = mpsc::channel();
        let roots = vec![WatchRoot {
            dir: root.clone(),
            kind: WatchRootKind::Projects,
        }];
        let _watch = FolderWatch::start(roots, move |one| drop(tell.send(one))).unwrap();
        let wait = |wanted: &Path, change: &dyn Fn()| {
            let end = std::time::Instant::now() + Duration::from_secs(20);
            while std::time::Instant::now() < end {
                change();
                let next = seen.recv_timeout(Duration::from_millis(200));
                if next == Ok(WatchEvent::At(wanted.into())) {
                    return true;
                }
            }
            false
        };
        assert!(wait(&grown, &|| fs::write(&grown, "one\ntwo\n").unwrap()));
        let nested = root.join("p/s/subagents/x/agent-1.jsonl");
        tree(&root, &["p/s/subagents/x"]);
        fs::write(&nested, "{}\n").unwrap();
        assert!(wait(&nested, &|| ()));
    }
}
