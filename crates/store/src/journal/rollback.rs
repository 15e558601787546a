//! Taking back what was begun: after an error at once, after a crash by whoever comes next.
//!
//! Every step looks at what is there, so that taking back can itself be cut short and begun
//! again. A file that somebody else changed in the meantime is never touched.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use memchr::memmem;

use crate::atomic_write::{ContentHash, FileInFolder, WriteRoots};
use crate::disk::{self, OpenFolder};
use crate::error::StoreError;
use crate::journal::transaction::{cut, finished, remove_if_empty};
use crate::journal::{
    self, Journal, JournalBackup, JournalEntry, JournalState, JournalStep, PLACES,
};
use crate::open;
use crate::own_file;

/// Looks at one work and ends it if a crash left it open. Says in words what was done.
pub(super) fn recover(journal: &Journal, number: u64) -> Result<Vec<String>, StoreError> {
    let folder = journal.own(number)?;
    let Some(mut entry) = journal.entry(number)? else {
        // The crash came before the first note, so nothing was begun.
        clear(&folder)?;
        return Ok(Vec::new());
    };
    if entry.state == JournalState::Done {
        return Ok(Vec::new());
    }
    journal.check(&entry)?;
    let ground = WriteRoots::open(&entry.task.roots)?;
    if entry.state == JournalState::Open {
        abandon(&folder, &ground, &entry)?;
        return Ok(vec![format!(
            "`{}` was interrupted before it changed anything; removed its temporary files",
            entry.task.words
        )]);
    }
    if entry.state == JournalState::Ready && last_is_done(&ground, &mut entry)? {
        entry.state = JournalState::Done;
        journal::save(&folder, &entry)?;
        return Ok(vec![format!(
            "`{}` was interrupted after it was complete; recorded as edit {number}",
            entry.task.words
        )]);
    }
    let mut notes = vec![format!(
        "`{}` was interrupted; its changes were rolled back",
        entry.task.words
    )];
    notes.extend(roll_back(&folder, &ground, &entry)?);
    Ok(notes)
}

/// Removes what was prepared and never used.
pub(super) fn abandon(
    folder: &OpenFolder,
    ground: &WriteRoots,
    entry: &JournalEntry,
) -> Result<(), StoreError> {
    sweep(folder, ground, entry)?;
    clear(folder)
}

/// Takes all steps back, the last one first, and forgets the work. Says what could not be taken
/// back because somebody else changed it.
pub(super) fn roll_back(
    folder: &OpenFolder,
    ground: &WriteRoots,
    entry: &JournalEntry,
) -> Result<Vec<String>, StoreError> {
    let mut kept = Vec::new();
    for (at, step) in entry.steps.iter().enumerate().rev() {
        let back = StepRollback {
            folder,
            ground,
            entry,
            at,
        };
        if !back.step(step)? {
            kept.push(format!(
                "not rolled back: `{}` was changed by another program",
                step.path().display()
            ));
        }
    }
    sweep(folder, ground, entry)?;
    clear(folder)?;
    Ok(kept)
}

struct StepRollback<'a> {
    folder: &'a OpenFolder,
    ground: &'a WriteRoots,
    entry: &'a JournalEntry,
    at: usize,
}

impl StepRollback<'_> {
    /// Takes one step back; `false` if somebody else changed the file.
    fn step(&self, step: &JournalStep) -> Result<bool, StoreError> {
        let Some(place) = self.place(step)? else {
            return Ok(true);
        };
        match step {
            JournalStep::Created { temp, after, .. } => created(&place, temp, after),
            JournalStep::Replaced {
                temp,
                after,
                before,
                ..
            } => self.replaced(&place, temp, after, before),
            JournalStep::Removed { before, .. } => {
                if place.look()?.is_none() {
                    self.restore(&place, before, RestoreTarget::Nothing)?;
                }
                Ok(true)
            }
            JournalStep::Appended {
                text,
                before,
                otherwise,
                ..
            } => appended(&place, text, *before, otherwise.as_deref()),
            JournalStep::Cut { after, before, .. } => self.uncut(&place, *after, before),
            JournalStep::Moved { to, identity, .. } => self.moved(&place, to, *identity),
            JournalStep::Emptied { .. } => {
                if place.look()?.is_none() {
                    let made = place.folder.make(&place.name);
                    made.map_err(|error| StoreError::unwritable("make", &place.path, error))?;
                }
                Ok(true)
            }
        }
    }

    /// Where the step was done. Its folder may be gone, if a later step removed it; a file that
    /// has to come back brings it back.
    fn place(&self, step: &JournalStep) -> Result<Option<FileInFolder>, StoreError> {
        let path = step.path();
        match step {
            JournalStep::Removed { .. }
            | JournalStep::Emptied { .. }
            | JournalStep::Moved { .. } => self.ground.place_made(path, |_| Ok(())).map(Some),
            _ => match self.ground.place(path) {
                Ok(place) => Ok(Some(place)),
                Err(StoreError::Unwritable { source, .. })
                    if source.kind() == io::ErrorKind::NotFound =>
                {
                    Ok(None)
                }
                Err(error) => Err(error),
            },
        }
    }

    fn replaced(
        &self,
        place: &FileInFolder,
        temp: &str,
        after: &ContentHash,
        before: &JournalBackup,
    ) -> Result<bool, StoreError> {
        if exists(place, temp)? {
            remove(place, temp)?;
            return Ok(true);
        }
        match place.mark()? {
            Some(now) if now == *after => self.restore(place, before, RestoreTarget::Ours)?,
            Some(now) => return Ok(now == before.mark),
            None => self.restore(place, before, RestoreTarget::Nothing)?,
        }
        Ok(true)
    }

    /// Brings a copy back to where it was.
    fn restore(
        &self,
        place: &FileInFolder,
        kept: &JournalBackup,
        over: RestoreTarget,
    ) -> Result<(), StoreError> {
        let part = format!("r{}", self.at);
        let temp = journal::temp_name(&self.entry.token, &part);
        let temp = OsStr::new(&temp);
        let failed = |error| StoreError::unwritable("restore", &place.path, error);
        let copy = self.folder.read(OsStr::new(&kept.file)).map_err(failed)?;
        let current = match over {
            RestoreTarget::Ours => Some(place.read()?),
            RestoreTarget::Nothing => None,
        };
        let finish = |file: &fs::File| {
            if let Some(current) = &current {
                disk::copy_file_attributes(file, current)?;
            }
            finished(file, Some(kept.mode), Some(kept.modified))
        };
        // Left behind when taking back was cut short.
        let _ = place.folder.remove(temp);
        place.stage(
            temp,
            |out: &mut dyn Write| io::copy(&mut &copy, out).map(drop),
            finish,
        )?;
        match over {
            RestoreTarget::Ours => place.folder.rename(temp, &place.name).map_err(failed)?,
            RestoreTarget::Nothing => place.publish(temp)?,
        }
        place.sync()
    }

    fn uncut(
        &self,
        place: &FileInFolder,
        after: u64,
        before: &JournalBackup,
    ) -> Result<bool, StoreError> {
        let size = place.file()?.map(|look| look.stamp.size);
        if size != Some(after) || before.mark.size == 0 {
            return Ok(size == Some(after + before.mark.size));
        }
        let read = own_file::read(&self.folder.path().join(&before.file));
        let bytes = read.map_err(|error| StoreError::io(&place.path, error))?;
        place.append(&bytes)?;
        Ok(true)
    }

    fn moved(&self, place: &FileInFolder, to: &Path, identity: u64) -> Result<bool, StoreError> {
        let target = match self.ground.place(to) {
            Ok(target) => target,
            Err(_) => return Ok(true),
        };
        let there = target.look()?.map(|look| look.stamp.identity);
        if there != Some(identity) {
            return Ok(true);
        }
        match place.look()? {
            // A link in place of a rename was cut short: both names are the same file.
            Some(look) if look.stamp.identity == identity => target.remove()?,
            Some(_) => return Ok(false),
            None => {
                let renamed = target
                    .folder
                    .rename_new(&target.name, &place.folder, &place.name);
                renamed.map_err(|error| StoreError::unwritable("move", &place.path, error))?;
            }
        }
        place.sync()?;
        target.sync()?;
        Ok(true)
    }
}

/// What a restored file takes the place of.
#[derive(Clone, Copy)]
enum RestoreTarget {
    Ours,
    Nothing,
}

fn created(place: &FileInFolder, temp: &str, after: &ContentHash) -> Result<bool, StoreError> {
    if exists(place, temp)? {
        // Both names exist where linking took the place of renaming.
        let same = same_file(place, temp)?;
        remove(place, temp)?;
        if !same {
            return Ok(true);
        }
    }
    match place.mark()? {
        None => Ok(true),
        Some(now) if now == *after => {
            place.remove()?;
            place.sync()?;
            Ok(true)
        }
        Some(_) => Ok(false),
    }
}

fn appended(
    place: &FileInFolder,
    text: &str,
    before: u64,
    otherwise: Option<&str>,
) -> Result<bool, StoreError> {
    let Some(line) = find_line(place, text, before)? else {
        return Ok(true);
    };
    let size = place.file()?.map_or(0, |look| look.stamp.size);
    if line.end == size {
        cut(place, line.start)?;
        return Ok(true);
    }
    match otherwise {
        Some(line) => place.append(line.as_bytes()).map(|_| true),
        None => Ok(false),
    }
}

/// Where a line of ours stands.
struct AppendedLineRange {
    /// The end of what was there before it.
    start: u64,
    end: u64,
    /// Half a line at the end of the file is ours as well.
    whole: bool,
}

/// Finds a line of ours that was added when the file had this size.
fn find_line(
    place: &FileInFolder,
    text: &str,
    before: u64,
) -> Result<Option<AppendedLineRange>, StoreError> {
    let Some(look) = place.file()? else {
        return Ok(None);
    };
    let length = usize::try_from(look.stamp.size.saturating_sub(before)).unwrap_or(usize::MAX);
    let mut tail = vec![0; length];
    let file = place.read()?;
    let read = open::read_at(&file, &mut tail, before);
    tail.truncate(read.map_err(|error| StoreError::io(&place.path, error))?);
    let text = text.as_bytes();
    let whole = memmem::find(&tail, text);
    let found = whole.map(|at| (at, at + text.len()));
    Ok(found.or_else(|| torn(&tail, text)).map(|(start, end)| {
        // The newline in front may be ours as well.
        let start = if start == 1 && tail.first() == Some(&b'\n') {
            0
        } else {
            start
        };
        AppendedLineRange {
            start: before + start as u64,
            end: before + end as u64,
            whole: whole.is_some(),
        }
    }))
}

/// The start of a text at the end of a file.
fn torn(tail: &[u8], text: &[u8]) -> Option<(usize, usize)> {
    let from = usize::from(tail.first() == Some(&b'\n') && text.first() != Some(&b'\n'));
    let rest = &tail[from.min(tail.len())..];
    let half = !tail.is_empty() && rest.len() < text.len() && text.starts_with(rest);
    half.then_some((from, tail.len()))
}

/// Whether the last step was done: then all were. Learns where an added line went.
fn last_is_done(ground: &WriteRoots, entry: &mut JournalEntry) -> Result<bool, StoreError> {
    let Some(step) = entry.steps.last_mut() else {
        return Ok(true);
    };
    let Ok(place) = ground.place(step.path()) else {
        // Only what was removed can be gone with its folder.
        return Ok(matches!(
            step,
            JournalStep::Removed { .. } | JournalStep::Emptied { .. }
        ));
    };
    Ok(match step {
        JournalStep::Created { temp, .. } => !exists(&place, temp)? && place.look()?.is_some(),
        JournalStep::Replaced { temp, after, .. } => {
            !exists(&place, temp)? && place.mark()?.as_ref() == Some(after)
        }
        JournalStep::Removed { .. } | JournalStep::Emptied { .. } => place.look()?.is_none(),
        JournalStep::Cut { after, .. } => {
            place.file()?.is_some_and(|look| look.stamp.size == *after)
        }
        JournalStep::Moved { to, identity, .. } => {
            let there = ground.place(to)?.look()?;
            place.look()?.is_none() && there.is_some_and(|look| look.stamp.identity == *identity)
        }
        JournalStep::Appended {
            text,
            before,
            after,
            ..
        } => match find_line(&place, text, *before)? {
            Some(line) if line.whole => {
                (*before, *after) = (line.start, line.end);
                true
            }
            _ => false,
        },
    })
}

fn exists(place: &FileInFolder, temp: &str) -> Result<bool, StoreError> {
    let look = place.folder.look(OsStr::new(temp));
    look.map(|look| look.is_some())
        .map_err(|error| StoreError::unwritable("access", &place.path, error))
}

fn same_file(place: &FileInFolder, temp: &str) -> Result<bool, StoreError> {
    let temp = place.folder.look(OsStr::new(temp));
    let temp = temp.map_err(|error| StoreError::unwritable("access", &place.path, error))?;
    let file = place.look()?;
    Ok(match (temp, file) {
        (Some(temp), Some(file)) => temp.stamp.identity == file.stamp.identity,
        _ => false,
    })
}

fn remove(place: &FileInFolder, temp: &str) -> Result<(), StoreError> {
    let removed = place.folder.remove(OsStr::new(temp));
    removed
        .map_err(|error| StoreError::unwritable("remove", &place.path.with_file_name(temp), error))
}

/// Removes temporary files wherever they may lie, and folders that were made and are empty.
fn sweep(folder: &OpenFolder, ground: &WriteRoots, entry: &JournalEntry) -> Result<(), StoreError> {
    let (used, made) = places(folder);
    let moved = entry.steps.iter().map(|step| step.path().parent());
    let used = used.iter().map(PathBuf::as_path).chain(moved.flatten());
    let mut swept: HashSet<&Path> = HashSet::new();
    for dir in used {
        if !swept.insert(dir) {
            continue;
        }
        // The file is not there; its folder is what is wanted.
        match ground.place(&dir.join("_")) {
            Ok(place) => sweep_folder(&place.folder, &entry.token)?,
            Err(StoreError::Unwritable { source, .. })
                if source.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    for dir in made.iter().rev() {
        if let Ok(place) = ground.place(dir) {
            remove_if_empty(&place)?;
        }
    }
    Ok(())
}

fn sweep_folder(folder: &OpenFolder, token: &str) -> Result<(), StoreError> {
    let failed = |error| StoreError::unwritable("clean", folder.path(), error);
    for name in folder.names().map_err(failed)? {
        if journal::is_temp(&name, token) {
            folder.remove(&name).map_err(failed)?;
        }
    }
    Ok(())
}

/// Folders that were used and made, as noted.
fn places(folder: &OpenFolder) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut used, mut made) = (Vec::new(), Vec::new());
    let text = own_file::read_to_string(&folder.path().join(PLACES)).unwrap_or_default();
    for line in text.lines() {
        // Half a line at the end was never acted upon.
        match serde_json::from_str::<(String, PathBuf)>(line) {
            Ok((what, path)) if what == "made" => made.push(path),
            Ok((_, path)) => used.push(path),
            Err(_) => {}
        }
    }
    (used, made)
}

/// Removes the folder of a work that never was. The note goes last: without it nothing would
/// tell what else is to be cleaned.
fn clear(folder: &OpenFolder) -> Result<(), StoreError> {
    let failed = |error| StoreError::unwritable("clean", folder.path(), error);
    let mut names = folder.names().map_err(failed)?;
    names.sort_by_key(|name| name == journal::ENTRY);
    for name in names {
        folder.remove(&name).map_err(failed)?;
    }
    let above = folder.path().parent().unwrap_or(folder.path());
    let name = folder.path().file_name().unwrap_or_default();
    let above = OpenFolder::open(above).map_err(failed)?;
    above.remove_folder(name).map_err(failed)
}
