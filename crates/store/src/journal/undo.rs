//! Undoing a work: the reverse of its steps, the last one first, as a work of its own.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::atomic_write::{ContentHash, FileInFolder, WriteRoots};
use crate::error::StoreError;
use crate::journal::{
    FileTransaction, Journal, JournalBackup, JournalEntry, JournalStep, JournalTask,
    ListedJournalEntry,
};
use crate::open::FileStamp;
use crate::own_file;

/// How to undo.
pub struct UndoOptions<'a> {
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// Moves files that changed since out of the way instead of refusing.
    pub force: bool,
    /// Says why a file may not be touched now: a session that is in use.
    pub in_use: &'a dyn Fn(&Path) -> Option<String>,
}

/// What undoing would do.
#[derive(Clone, Debug)]
pub struct UndoPreview {
    /// The work that is undone.
    pub entry: JournalEntry,
    /// What happens, in words, in order.
    pub words: Vec<String>,
    /// Why not, in words; empty if it can be done.
    pub refused: Vec<String>,
    acts: Vec<UndoStep>,
}

/// One step of undoing.
#[derive(Clone, Debug)]
enum UndoStep {
    Remove(PathBuf),
    RemoveFolder(PathBuf),
    Restore(PathBuf, JournalBackup),
    RestoreOver(PathBuf, FileStamp, JournalBackup),
    RestoreEnd(PathBuf, JournalBackup),
    Cut(PathBuf, FileStamp, u64),
    Append(PathBuf, String, String),
    Move(PathBuf, PathBuf),
}

impl Journal {
    /// What undoing a work would do; without a number the latest that is not undone.
    pub fn preview_undo(
        &self,
        number: Option<u64>,
        how: &UndoOptions<'_>,
    ) -> Result<UndoPreview, StoreError> {
        let entry = self.undoable(number)?;
        self.check(&entry)?;
        let ground = WriteRoots::open(&entry.task.roots)?;
        let mut plan = UndoPlanner {
            ground: &ground,
            how,
            outlook: UndoPreview {
                words: Vec::new(),
                refused: Vec::new(),
                acts: Vec::new(),
                entry: entry.clone(),
            },
        };
        if entry.pruned {
            let why = "the previous versions were pruned";
            plan.outlook.refused.push(why.to_owned());
            return Ok(plan.outlook);
        }
        for step in entry.steps.iter().rev() {
            plan.step(step)?;
        }
        for folder in entry.made.iter().rev() {
            plan.outlook
                .acts
                .push(UndoStep::RemoveFolder(folder.clone()));
        }
        Ok(plan.outlook)
    }

    /// Undoes a work; says under which number that can be undone in turn, and what was done.
    pub fn undo(
        &self,
        number: Option<u64>,
        how: &UndoOptions<'_>,
    ) -> Result<(u64, UndoPreview), StoreError> {
        self.recover()?;
        let entry = self.undoable(number)?;
        self.check(&entry)?;
        let number = entry.number;
        let task = JournalTask {
            at: how.at,
            operation: "undo".to_owned(),
            words: format!("undo {number}: {}", entry.task.words),
            options: Vec::new(),
            lines: entry.task.lines.map(turned),
            bytes: entry.task.bytes.map(turned),
            tokens: entry.task.tokens.map(turned),
            ..entry.task
        };
        let mut work = self.begin_as(task, Some(number))?;
        // Looked at again now that nobody else edits.
        let outlook = self.preview_undo(Some(number), how)?;
        if let Some(first) = outlook.refused.first() {
            return Err(StoreError::refused(
                format!("cannot undo {number}: {first}"),
                if how.force {
                    "see what would be done with `unspool undo --dry-run`"
                } else {
                    "use `--force` to move changed files aside and continue"
                },
            ));
        }
        for act in &outlook.acts {
            self.prepare(&mut work, number, act)?;
        }
        Ok((work.commit()?, outlook))
    }

    fn undoable(&self, number: Option<u64>) -> Result<JournalEntry, StoreError> {
        let mut list = self.list()?;
        let Some(number) = number else {
            let open =
                |one: &ListedJournalEntry| one.undone_by.is_none() && one.entry.undoes.is_none();
            let latest = list.into_iter().rev().find(open);
            return latest.map(|one| one.entry).ok_or(StoreError::NotFound {
                what: "there is nothing to undo".to_owned(),
            });
        };
        let at = list.iter().position(|one| one.entry.number == number);
        let listed = at.map(|at| list.swap_remove(at));
        match listed {
            None => Err(StoreError::NotFound {
                what: format!("there is no edit {number}"),
            }),
            Some(ListedJournalEntry {
                undone_by: Some(by),
                ..
            }) => Err(StoreError::refused(
                format!("edit {number} was already undone by edit {by}"),
                "undo that edit to redo this one",
            )),
            Some(listed) => Ok(listed.entry),
        }
    }

    fn prepare(
        &self,
        work: &mut FileTransaction,
        number: u64,
        act: &UndoStep,
    ) -> Result<(), StoreError> {
        let copy = |kept: &JournalBackup| {
            let folder = self.own(number)?;
            let read = folder.read(OsStr::new(&kept.file));
            read.map_err(|error| {
                StoreError::unwritable("read", &folder.path().join(&kept.file), error)
            })
        };
        match act {
            UndoStep::Remove(path) => work.remove(path),
            UndoStep::RemoveFolder(path) => work.remove_folder(path),
            UndoStep::Restore(path, kept) => work.restore(path, copy(kept)?, kept),
            UndoStep::RestoreOver(path, stamp, kept) => {
                work.restore_over(path, *stamp, copy(kept)?, kept)
            }
            UndoStep::RestoreEnd(path, kept) => {
                let from = self.folder_of(number).join(&kept.file);
                let text = own_file::read_to_string(&from)
                    .map_err(|error| StoreError::io(&from, error))?;
                work.restore_end(path, text)
            }
            UndoStep::Cut(path, stamp, after) => work.cut(path, *stamp, *after),
            UndoStep::Append(path, line, otherwise) => {
                work.append_line(path, line, Some(otherwise.clone()))
            }
            UndoStep::Move(from, to) => work.rename(from, to),
        }
    }
}

fn turned(change: super::AmountChange) -> super::AmountChange {
    super::AmountChange {
        before: change.after,
        after: change.before,
    }
}

struct UndoPlanner<'a> {
    ground: &'a WriteRoots,
    how: &'a UndoOptions<'a>,
    outlook: UndoPreview,
}

impl UndoPlanner<'_> {
    fn step(&mut self, step: &JournalStep) -> Result<(), StoreError> {
        let path = step.path();
        let Some(place) = self.place(path)? else {
            return self.without_folder(step);
        };
        match step {
            JournalStep::Created { after, .. } => self.created(path, &place, after),
            JournalStep::Replaced { after, before, .. } => {
                self.replaced(path, &place, after, before)
            }
            JournalStep::Removed { before, .. } => self.removed(path, &place, before),
            JournalStep::Appended {
                text,
                before,
                after,
                otherwise,
                ..
            } => self.appended(path, &place, (text, *before, *after), otherwise.as_deref()),
            JournalStep::Cut { after, before, .. } => self.uncut(path, &place, *after, before),
            JournalStep::Moved { to, .. } => self.moved(path, &place, to),
            JournalStep::Emptied { .. } => Ok(()),
        }
    }

    /// The place of a file, if its folder is there.
    fn place(&self, path: &Path) -> Result<Option<FileInFolder>, StoreError> {
        match self.ground.place(path) {
            Ok(place) => Ok(Some(place)),
            Err(StoreError::Unwritable { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn without_folder(&mut self, step: &JournalStep) -> Result<(), StoreError> {
        let path = step.path();
        match step {
            JournalStep::Replaced { before, .. } | JournalStep::Removed { before, .. } => {
                self.restore(path, before);
            }
            JournalStep::Moved { to, .. } => self.move_back(path, to),
            JournalStep::Created { .. } => {
                self.say(format!("`{}` is already removed", path.display()))
            }
            JournalStep::Appended { .. } | JournalStep::Cut { .. } => self.gone(path),
            JournalStep::Emptied { .. } => {}
        }
        Ok(())
    }

    fn created(
        &mut self,
        path: &Path,
        place: &FileInFolder,
        after: &ContentHash,
    ) -> Result<(), StoreError> {
        let Some(now) = place.mark()? else {
            self.say(format!("`{}` is already removed", path.display()));
            return Ok(());
        };
        if self.busy(path) {
            return Ok(());
        }
        if now == *after {
            self.act(
                format!("remove `{}`", path.display()),
                UndoStep::Remove(path.into()),
            );
        } else if self.allowed(path, &now, after) {
            self.aside(path, place)?;
        }
        Ok(())
    }

    fn replaced(
        &mut self,
        path: &Path,
        place: &FileInFolder,
        after: &ContentHash,
        before: &JournalBackup,
    ) -> Result<(), StoreError> {
        let Some(look) = place.file()? else {
            self.restore(path, before);
            return Ok(());
        };
        if self.busy(path) {
            return Ok(());
        }
        let now = place.mark()?.unwrap_or_default();
        if now == *after {
            self.act(
                format!("restore `{}` to its previous version", path.display()),
                UndoStep::RestoreOver(path.into(), look.stamp, before.clone()),
            );
        } else if now == before.mark {
            self.say(format!(
                "`{}` already has its previous version",
                path.display()
            ));
        } else if self.allowed(path, &now, after) {
            self.aside(path, place)?;
            self.restore(path, before);
        }
        Ok(())
    }

    fn removed(
        &mut self,
        path: &Path,
        place: &FileInFolder,
        before: &JournalBackup,
    ) -> Result<(), StoreError> {
        match place.mark()? {
            None => self.restore(path, before),
            Some(now) if now == before.mark => {
                self.say(format!("`{}` already exists", path.display()));
            }
            Some(now) => {
                if !self.busy(path) && self.allowed(path, &now, &before.mark) {
                    self.aside(path, place)?;
                    self.restore(path, before);
                }
            }
        }
        Ok(())
    }

    fn appended(
        &mut self,
        path: &Path,
        place: &FileInFolder,
        (text, before, after): (&str, u64, u64),
        otherwise: Option<&str>,
    ) -> Result<(), StoreError> {
        let Some(look) = place.file()? else {
            self.gone(path);
            return Ok(());
        };
        // Cutting would race with a client that adds a line at this moment.
        let used = (self.how.in_use)(path);
        let is_last = look.stamp.size == after && used.is_none() && ends_with(place, text)?;
        if is_last {
            self.act(
                format!("remove the last line of `{}`", path.display()),
                UndoStep::Cut(path.into(), look.stamp, before),
            );
        } else if let Some(line) = otherwise {
            let act = UndoStep::Append(path.into(), line.to_owned(), text.to_owned());
            self.act(
                format!("append a line to `{}` that reverts it", path.display()),
                act,
            );
        } else {
            let why = used.unwrap_or_else(|| "lines were appended since".to_owned());
            self.refuse(format!("`{}`: {why}", path.display()));
        }
        Ok(())
    }

    fn uncut(
        &mut self,
        path: &Path,
        place: &FileInFolder,
        after: u64,
        before: &JournalBackup,
    ) -> Result<(), StoreError> {
        match place.file()? {
            None => self.gone(path),
            Some(look) if look.stamp.size >= after => self.act(
                format!("restore the truncated end of `{}`", path.display()),
                UndoStep::RestoreEnd(path.into(), before.clone()),
            ),
            Some(_) => self.refuse(format!("`{}` was truncated since", path.display())),
        }
        Ok(())
    }

    fn moved(&mut self, path: &Path, place: &FileInFolder, to: &Path) -> Result<(), StoreError> {
        if place.look()?.is_some() {
            let moved = format!("`{}` exists and is another file", path.display());
            self.refuse(moved);
            return Ok(());
        }
        self.move_back(path, to);
        Ok(())
    }

    fn move_back(&mut self, path: &Path, to: &Path) {
        let there = self.place(to).ok().flatten();
        let there = there.and_then(|place| place.look().ok().flatten());
        if there.is_none() {
            return self.gone(to);
        }
        if !self.busy(to) {
            self.act(
                format!("move `{}` back to `{}`", to.display(), path.display()),
                UndoStep::Move(to.into(), path.into()),
            );
        }
    }

    fn restore(&mut self, path: &Path, kept: &JournalBackup) {
        self.act(
            format!("restore `{}`", path.display()),
            UndoStep::Restore(path.into(), kept.clone()),
        );
    }

    /// Moves a file that changed out of the way, under a name that no client takes for a
    /// transcript.
    fn aside(&mut self, path: &Path, place: &FileInFolder) -> Result<(), StoreError> {
        let number = self.outlook.entry.number;
        for attempt in 0.. {
            let mut name = OsString::from(&place.name);
            name.push(format!(".changed-{number}"));
            if attempt > 0 {
                name.push(format!("-{attempt}"));
            }
            let look = place.folder.look(&name);
            let look = look.map_err(|error| StoreError::unwritable("access", path, error))?;
            if look.is_none() {
                let to = path.with_file_name(&name);
                self.act(
                    format!("move `{}` aside to `{}`", path.display(), to.display()),
                    UndoStep::Move(path.into(), to),
                );
                break;
            }
        }
        Ok(())
    }

    /// Whether a file that changed may be moved aside.
    fn allowed(&mut self, path: &Path, now: &ContentHash, then: &ContentHash) -> bool {
        if !self.how.force {
            let sizes = if now.size == then.size {
                "same size, different content".to_owned()
            } else {
                format!("{} bytes now, {} bytes then", now.size, then.size)
            };
            self.refuse(format!("`{}` changed since: {sizes}", path.display()));
        }
        self.how.force
    }

    fn busy(&mut self, path: &Path) -> bool {
        let why = (self.how.in_use)(path);
        if let Some(why) = &why {
            self.refuse(format!("`{}` is in use: {why}", path.display()));
        }
        why.is_some()
    }

    fn gone(&mut self, path: &Path) {
        self.refuse(format!("`{}` no longer exists", path.display()));
    }

    fn act(&mut self, words: String, act: UndoStep) {
        self.say(words);
        self.outlook.acts.push(act);
    }

    fn say(&mut self, words: String) {
        self.outlook.words.push(words);
    }

    fn refuse(&mut self, why: String) {
        self.outlook.refused.push(why);
    }
}

fn ends_with(place: &FileInFolder, text: &str) -> Result<bool, StoreError> {
    let file = place.read()?;
    let size = file.metadata().map_or(0, |metadata| metadata.len());
    let mut tail = vec![0; text.len()];
    let start = size.saturating_sub(text.len() as u64);
    let read = crate::open::read_at(&file, &mut tail, start);
    read.map_err(|error| StoreError::io(&place.path, error))?;
    Ok(tail == text.as_bytes())
}
