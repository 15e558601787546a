//! What was changed, so that it can be undone, and so that half a change never stays.
//!
//! An operation is a [`FileTransaction`]: new content is first written beside the files it is for, under
//! temporary names, and what is replaced or removed is first copied into our own folder. Only
//! [`FileTransaction::commit`] changes what others see: it notes every step on disk, does them in order,
//! the transcript last, and notes that it is done. Whoever comes next after a crash finds the
//! note and takes the steps back, or, if the last one was done, keeps them. Undoing is a work of
//! its own whose steps are the reverse ones, so it can be undone as well.
//!
//! In our folder each work has a folder with its number: `entry.json` (a [`JournalEntry`]), `places`
//! (where temporary files may lie) and copies of what was there before.

mod rollback;
mod transaction;
mod undo;

#[cfg(test)]
#[cfg(unix)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::atomic_write::{ContentHash, FileInFolder, WriteRoots};
use crate::disk::OpenFolder;
use crate::error::StoreError;
use crate::find::SessionFile;
use crate::own_file;
use crate::read_folder::{self, FolderEntry, FolderEntryKind};
use crate::side_files;

pub use transaction::{FileTransaction, StagedContent};
pub use undo::{UndoOptions, UndoPreview};

/// Where works are noted.
#[derive(Clone, Debug)]
pub struct Journal {
    dir: PathBuf,
    wait: Duration,
    /// What a note may make us write.
    allowed: fn(&JournalEntry, &JournalStep) -> bool,
}

/// What is asked, before anything is done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JournalTask {
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// The command, such as `clone`.
    pub operation: String,
    /// What was asked, in words for people.
    pub words: String,
    /// The options that were given, as they were typed.
    #[serde(default)]
    pub options: Vec<String>,
    /// The sessions it was done to.
    #[serde(default)]
    pub sources: Vec<String>,
    /// The session that came out, if it is a new one.
    #[serde(default)]
    pub session: Option<String>,
    /// The transcript that was written.
    #[serde(default)]
    pub path: Option<PathBuf>,
    /// Lines before and after.
    #[serde(default)]
    pub lines: Option<AmountChange>,
    /// Bytes before and after.
    #[serde(default)]
    pub bytes: Option<AmountChange>,
    /// Tokens before and after.
    #[serde(default)]
    pub tokens: Option<AmountChange>,
    /// The folders below which it may write: see [`roots`].
    pub roots: Vec<PathBuf>,
}

/// An amount before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AmountChange {
    /// Before.
    pub before: u64,
    /// After.
    pub after: u64,
}

/// A work as it is noted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JournalEntry {
    /// Its number, from 1.
    pub number: u64,
    /// What was asked.
    #[serde(flatten)]
    pub task: JournalTask,
    /// The work that this one undoes.
    #[serde(default)]
    pub undoes: Option<u64>,
    /// How far it is.
    pub state: JournalState,
    /// What is done, in order.
    #[serde(default)]
    pub steps: Vec<JournalStep>,
    /// Folders that were made for it.
    #[serde(default)]
    pub made: Vec<PathBuf>,
    /// Whether the copies of what was before are gone because they were old.
    #[serde(default)]
    pub pruned: bool,
    /// Whether they are gone because somebody asked for it.
    #[serde(default)]
    pub emptied: bool,
    /// What its temporary files are named by.
    token: String,
}

/// How far a work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalState {
    /// Temporary files are written; nothing that others see has changed.
    Open,
    /// Steps are being done.
    Ready,
    /// Steps are being taken back.
    Back,
    /// All steps are done.
    Done,
}

/// One change of what others see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum JournalStep {
    /// A file that was not there before.
    Created {
        /// The file.
        path: PathBuf,
        /// Its name until then.
        temp: String,
        /// As we left it.
        after: ContentHash,
    },
    /// Another content.
    Replaced {
        /// The file.
        path: PathBuf,
        /// The name of the new content until then.
        temp: String,
        /// As we left it.
        after: ContentHash,
        /// What was there.
        before: JournalBackup,
    },
    /// Whole lines at the end.
    Appended {
        /// The file.
        path: PathBuf,
        /// The lines, with their newline.
        text: String,
        /// The size before.
        before: u64,
        /// The size after.
        after: u64,
        /// The line that takes it back where the file has grown since.
        otherwise: Option<String>,
    },
    /// Bytes gone from the end.
    Cut {
        /// The file.
        path: PathBuf,
        /// The size after.
        after: u64,
        /// What was there.
        before: JournalBackup,
    },
    /// Another name.
    Moved {
        /// The file or folder as it was named.
        path: PathBuf,
        /// Its new name.
        to: PathBuf,
        /// Which one it is on its disk.
        identity: u64,
    },
    /// A file that is gone.
    Removed {
        /// The file.
        path: PathBuf,
        /// What was there.
        before: JournalBackup,
    },
    /// A folder that is gone, if it was empty by then.
    Emptied {
        /// The folder.
        path: PathBuf,
    },
}

impl JournalStep {
    /// The file or folder it is about.
    pub fn path(&self) -> &Path {
        match self {
            JournalStep::Created { path, .. }
            | JournalStep::Replaced { path, .. }
            | JournalStep::Appended { path, .. }
            | JournalStep::Cut { path, .. }
            | JournalStep::Moved { path, .. }
            | JournalStep::Removed { path, .. }
            | JournalStep::Emptied { path } => path,
        }
    }

    /// What it did to it, as a verb in the past.
    pub fn verb(&self) -> &'static str {
        match self {
            JournalStep::Created { .. } => "created",
            JournalStep::Replaced { .. } => "replaced",
            JournalStep::Appended { .. } => "appended a line to",
            JournalStep::Cut { .. } => "truncated",
            JournalStep::Moved { .. } => "moved",
            JournalStep::Removed { .. } | JournalStep::Emptied { .. } => "removed",
        }
    }

    /// The copy it needs to be undone.
    fn kept(&self) -> Option<&JournalBackup> {
        match self {
            JournalStep::Replaced { before, .. }
            | JournalStep::Cut { before, .. }
            | JournalStep::Removed { before, .. } => Some(before),
            JournalStep::Created { .. }
            | JournalStep::Appended { .. }
            | JournalStep::Moved { .. }
            | JournalStep::Emptied { .. } => None,
        }
    }
}

/// A copy of what was there before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalBackup {
    /// The name of the copy in the folder of the work.
    file: String,
    /// What it holds.
    pub mark: ContentHash,
    /// The permissions of the original.
    mode: u32,
    /// When the original was last changed, in nanoseconds since 1970.
    modified: i64,
}

/// A work in the list of all, with what became of it.
#[derive(Clone, Debug)]
pub struct ListedJournalEntry {
    /// The work.
    pub entry: JournalEntry,
    /// The work that undid it, if that was not undone in turn.
    pub undone_by: Option<u64>,
}

/// The folders below which an edit of a session may write: its config folder and its own, both
/// as they are now, whatever links lead there.
pub fn roots(session: &SessionFile) -> Vec<PathBuf> {
    let mut roots = Vec::new();
    if !session.config.as_os_str().is_empty() {
        roots.push(session.config.to_path_buf());
        roots.push(session.config.join("projects"));
    }
    let folder = session.path.parent().unwrap_or(Path::new("."));
    let here = folder.as_os_str().is_empty();
    roots.push(if here { ".".into() } else { folder.into() });
    roots
}

const ENTRY: &str = "entry.json";
const PLACES: &str = "places";
const LOCK: &str = "lock";

/// How long copies are kept, in milliseconds.
const KEPT_FOR: i64 = 30 * 86_400_000;
/// The copies of so many works are kept in any case.
const KEPT_LAST: usize = 50;
/// Not more than so many old works are looked at each time.
const PRUNED_AT_ONCE: usize = 200;

impl Journal {
    /// The journal in a folder of ours, which is made when something is noted.
    pub fn open(dir: &Path) -> Journal {
        Journal {
            dir: dir.into(),
            wait: Duration::from_secs(10),
            allowed: |_, _| true,
        }
    }

    /// Undoes and takes back such steps only: a note may have been changed by somebody else.
    pub fn only(mut self, allowed: fn(&JournalEntry, &JournalStep) -> bool) -> Journal {
        self.allowed = allowed;
        self
    }

    /// Refuses a note that names what no edit of ours touches.
    fn check(&self, entry: &JournalEntry) -> Result<(), StoreError> {
        let Some(step) = entry.steps.iter().find(|step| !(self.allowed)(entry, step)) else {
            return Ok(());
        };
        let note = self.folder_of(entry.number);
        Err(StoreError::refused(
            format!(
                "edit {} names `{}`, which is not a session file: `{}` was modified",
                entry.number,
                step.path().display(),
                note.join(ENTRY).display()
            ),
            "move that edit's directory away; the session files are not affected",
        ))
    }

    /// How long to wait while another process edits.
    pub fn wait(mut self, wait: Duration) -> Journal {
        self.wait = wait;
        self
    }

    /// Begins a work: waits for its turn, takes back what a crash left, and notes the task.
    pub fn begin(&self, task: JournalTask) -> Result<FileTransaction, StoreError> {
        self.begin_as(task, None)
    }

    fn begin_as(
        &self,
        task: JournalTask,
        undoes: Option<u64>,
    ) -> Result<FileTransaction, StoreError> {
        let ground = WriteRoots::open(&task.roots)?;
        let lock = self.lock()?;
        let notes = self.recover_locked()?;
        self.prune(task.at)?;
        let number = self.numbers()?.last().map_or(1, |last| last + 1);
        FileTransaction::new(self, number, task, undoes, ground, lock, notes)
    }

    /// Takes back what a crash left, or finishes what only lacked the note that it is done.
    /// Says in words what it did.
    pub fn recover(&self) -> Result<Vec<String>, StoreError> {
        if !self.dir.is_dir() {
            return Ok(Vec::new());
        }
        let _lock = self.lock()?;
        self.recover_locked()
    }

    fn recover_locked(&self) -> Result<Vec<String>, StoreError> {
        // Works are done one after the other, each after this: only the last can be unfinished.
        match self.numbers()?.last() {
            Some(&last) => rollback::recover(self, last),
            None => Ok(Vec::new()),
        }
    }

    /// All works that were done, the oldest first.
    pub fn list(&self) -> Result<Vec<ListedJournalEntry>, StoreError> {
        let mut all: Vec<ListedJournalEntry> = Vec::new();
        for number in self.numbers()? {
            let Some(entry) = self.entry(number)? else {
                continue;
            };
            if entry.state == JournalState::Done {
                all.push(ListedJournalEntry {
                    entry,
                    undone_by: None,
                });
            }
        }
        // From the end: whether an undoing still holds is known before what it undoes.
        for at in (0..all.len()).rev() {
            let (undoes, by) = (all[at].entry.undoes, all[at].entry.number);
            if all[at].undone_by.is_some() {
                continue;
            }
            let undone = all[..at]
                .iter_mut()
                .find(|one| Some(one.entry.number) == undoes);
            if let Some(one) = undone {
                one.undone_by = Some(by);
            }
        }
        Ok(all)
    }

    fn folder_of(&self, number: u64) -> PathBuf {
        self.dir.join(format!("{number:06}"))
    }

    /// The numbers of all works, rising.
    fn numbers(&self) -> Result<Vec<u64>, StoreError> {
        let entries = match read_folder::entries(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StoreError::io(&self.dir, error)),
        };
        let name = |entry: io::Result<FolderEntry>| {
            let entry = entry.ok()?;
            let is_folder = entry.file_type().is_ok_and(FolderEntryKind::is_dir);
            is_folder.then(|| entry.file_name().into_string().ok())?
        };
        let mut numbers: Vec<u64> = entries
            .filter_map(name)
            .filter(|name| name.len() >= 6)
            .filter_map(|name| name.parse().ok())
            .collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// What is noted under a number; nothing if a crash came before the note.
    fn entry(&self, number: u64) -> Result<Option<JournalEntry>, StoreError> {
        let path = self.folder_of(number).join(ENTRY);
        let bytes = match own_file::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io(&path, error)),
            Ok(bytes) => bytes,
        };
        let entry: Result<JournalEntry, _> = serde_json::from_slice(&bytes);
        let strange = |why: &dyn std::fmt::Display| {
            StoreError::refused(
                format!("`{}` is not a valid undo record: {why}", path.display()),
                "move its directory away; the session files are not affected",
            )
        };
        let entry = entry.map_err(|error| strange(&error))?;
        let mut copies = entry.steps.iter().filter_map(JournalStep::kept);
        if let Some(kept) = copies.find(|kept| !side_files::is_plain_file_name(&kept.file)) {
            return Err(strange(&format!(
                "`{}` is not one of its copies",
                kept.file
            )));
        }
        if entry.number != number {
            return Err(strange(&format!("it has number {}", entry.number)));
        }
        Ok(Some(entry))
    }

    fn lock(&self) -> Result<File, StoreError> {
        let failed = |error| StoreError::unwritable("make", &self.dir, error);
        own_file::make_folder(&self.dir).map_err(failed)?;
        let path = self.dir.join(LOCK);
        let opened = own_file::open_or_create(&path);
        let mut file = opened.map_err(|error| StoreError::unwritable("open", &path, error))?;
        self.await_lock(&path, &mut file)?;
        // Who has it is only told to others: failing to say so is no failure.
        let _ = file.set_len(0);
        let _ = write!(file, "{}", std::process::id());
        Ok(file)
    }

    fn await_lock(&self, path: &Path, file: &mut File) -> Result<(), StoreError> {
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::Error(error)) => {
                    return Err(StoreError::unwritable("lock", path, error));
                }
                Err(TryLockError::WouldBlock) if began.elapsed() >= self.wait => {
                    return Err(busy(path));
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Drops the copies of old works; what was done stays known.
    fn prune(&self, now: i64) -> Result<(), StoreError> {
        let numbers = self.numbers()?;
        let old = numbers.len().saturating_sub(KEPT_LAST);
        for &number in numbers[..old].iter().rev().take(PRUNED_AT_ONCE) {
            let Some(mut entry) = self.entry(number)? else {
                continue;
            };
            match entry.pruned {
                // One alone; those before it are as they were.
                true if entry.emptied => continue,
                true => break,
                false => {}
            }
            let is_old = entry.task.at < now.saturating_sub(KEPT_FOR);
            let has_copies = entry.steps.iter().any(|step| step.kept().is_some());
            if entry.state != JournalState::Done || !is_old || !has_copies {
                continue;
            }
            entry.pruned = true;
            self.drop_copies(&entry)?;
        }
        Ok(())
    }

    /// Removes the copies of what was there before these works, which can then no longer be
    /// undone.
    pub fn forget(&self, numbers: &[u64]) -> Result<(), StoreError> {
        let _lock = self.lock()?;
        self.recover_locked()?;
        for &number in numbers {
            let Some(mut entry) = self.entry(number)? else {
                continue;
            };
            if entry.state == JournalState::Done && !entry.pruned {
                (entry.pruned, entry.emptied) = (true, true);
                self.drop_copies(&entry)?;
            }
        }
        Ok(())
    }

    /// Notes that the copies of a work are gone, and removes them.
    fn drop_copies(&self, entry: &JournalEntry) -> Result<(), StoreError> {
        let folder = self.own(entry.number)?;
        save(&folder, entry)?;
        for step in &entry.steps {
            if let Some(kept) = step.kept() {
                let _ = folder.remove(OsStr::new(&kept.file));
            }
        }
        Ok(())
    }

    /// Opens the folder of a work.
    fn own(&self, number: u64) -> Result<OpenFolder, StoreError> {
        let path = self.folder_of(number);
        OpenFolder::open(&path).map_err(|error| StoreError::unwritable("open", &path, error))
    }
}

fn busy(path: &Path) -> StoreError {
    let holder = own_file::read_to_string(path).unwrap_or_default();
    let holder = match holder.trim() {
        "" => String::new(),
        pid => format!(" (process {pid})"),
    };
    StoreError::refused(
        format!("another unspool{holder} is editing"),
        "wait until it is done, then retry",
    )
}

/// Notes a work in its folder, whole or not at all.
fn save(folder: &OpenFolder, entry: &JournalEntry) -> Result<(), StoreError> {
    let place = FileInFolder {
        folder: folder
            .again()
            .map_err(|error| StoreError::unwritable("open", folder.path(), error))?,
        name: ENTRY.into(),
        path: folder.path().join(ENTRY),
    };
    let bytes = serde_json::to_vec(entry)
        .map_err(|error| StoreError::unwritable("write", &place.path, error.into()))?;
    let temp = OsString::from(format!("{ENTRY}.tmp"));
    // Left behind by a crash.
    let _ = folder.remove(&temp);
    place.stage(&temp, |out| out.write_all(&bytes), |_| Ok(()))?;
    folder
        .rename(&temp, &place.name)
        .map_err(|error| StoreError::unwritable("write", &place.path, error))?;
    place.sync()
}

/// Whether a name is that of a temporary file of this work.
fn is_temp(name: &OsStr, token: &str) -> bool {
    let name = name.as_encoded_bytes();
    let start = format!(".unspool-{token}-");
    name.starts_with(start.as_bytes()) && name.ends_with(b".tmp")
}

fn temp_name(token: &str, part: &str) -> String {
    format!(".unspool-{token}-{part}.tmp")
}
