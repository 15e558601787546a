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

use crate::disk::{self, Folder};
use crate::error::Error;
use crate::journal::work::{cut, finished, remove_if_empty};
use crate::journal::{self, Entry, Journal, Kept, PLACES, State, Step};
use crate::open;
use crate::own_file;
use crate::write::{Ground, Mark, Place};

/// Looks at one work and ends it if a crash left it open. Says in words what was done.
pub(super) fn recover(journal: &Journal, number: u64) -> Result<Vec<String>, Error> {
    let folder = journal.own(number)?;
    let Some(mut entry) = journal.entry(number)? else {
        // The crash came before the first note, so nothing was begun.
        clear(&folder)?;
        return Ok(Vec::new());
    };
    if entry.state == State::Done {
        return Ok(Vec::new());
    }
    journal.check(&entry)?;
    let ground = Ground::open(&entry.task.roots)?;
    if entry.state == State::Open {
        abandon(&folder, &ground, &entry)?;
        return Ok(vec![format!(
            "`{}` was interrupted before it changed anything; removed its temporary files",
            entry.task.words
        )]);
    }
    if entry.state == State::Ready && last_is_done(&ground, &mut entry)? {
        entry.state = State::Done;
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
pub(super) fn abandon(folder: &Folder, ground: &Ground, entry: &Entry) -> Result<(), Error> {
    sweep(folder, ground, entry)?;
    clear(folder)
}

/// Takes all steps back, the last one first, and forgets the work. Says what could not be taken
/// back because somebody else changed it.
pub(super) fn roll_back(
    folder: &Folder,
    ground: &Ground,
    entry: &Entry,
) -> Result<Vec<String>, Error> {
    let mut kept = Vec::new();
    for (at, step) in entry.steps.iter().enumerate().rev() {
        let back = Back {
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

struct Back<'a> {
    folder: &'a Folder,
    ground: &'a Ground,
    entry: &'a Entry,
    at: usize,
}

impl Back<'_> {
    /// Takes one step back; `false` if somebody else changed the file.
    fn step(&self, step: &Step) -> Result<bool, Error> {
        let Some(place) = self.place(step)? else {
            return Ok(true);
        };
        match step {
            Step::Created { temp, after, .. } => created(&place, temp, after),
            Step::Replaced {
                temp,
                after,
                before,
                ..
            } => self.replaced(&place, temp, after, before),
            Step::Removed { before, .. } => {
                if place.look()?.is_none() {
                    self.restore(&place, before, Over::Nothing)?;
                }
                Ok(true)
            }
            Step::Appended {
                text,
                before,
                otherwise,
                ..
            } => appended(&place, text, *before, otherwise.as_deref()),
            Step::Cut { after, before, .. } => self.uncut(&place, *after, before),
            Step::Moved { to, identity, .. } => self.moved(&place, to, *identity),
            Step::Emptied { .. } => {
                if place.look()?.is_none() {
                    let made = place.folder.make(&place.name);
                    made.map_err(|error| Error::unwritable("make", &place.path, error))?;
                }
                Ok(true)
            }
        }
    }

    /// Where the step was done. Its folder may be gone, if a later step removed it; a file that
    /// has to come back brings it back.
    fn place(&self, step: &Step) -> Result<Option<Place>, Error> {
        let path = step.path();
        match step {
            Step::Removed { .. } | Step::Emptied { .. } | Step::Moved { .. } => {
                self.ground.place_made(path, |_| Ok(())).map(Some)
            }
            _ => match self.ground.place(path) {
                Ok(place) => Ok(Some(place)),
                Err(Error::Unwritable { source, .. })
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
        place: &Place,
        temp: &str,
        after: &Mark,
        before: &Kept,
    ) -> Result<bool, Error> {
        if exists(place, temp)? {
            remove(place, temp)?;
            return Ok(true);
        }
        match place.mark()? {
            Some(now) if now == *after => self.restore(place, before, Over::Ours)?,
            Some(now) => return Ok(now == before.mark),
            None => self.restore(place, before, Over::Nothing)?,
        }
        Ok(true)
    }

    /// Brings a copy back to where it was.
    fn restore(&self, place: &Place, kept: &Kept, over: Over) -> Result<(), Error> {
        let part = format!("r{}", self.at);
        let temp = journal::temp_name(&self.entry.token, &part);
        let temp = OsStr::new(&temp);
        let failed = |error| Error::unwritable("restore", &place.path, error);
        let copy = self.folder.read(OsStr::new(&kept.file)).map_err(failed)?;
        let current = match over {
            Over::Ours => Some(place.read()?),
            Over::Nothing => None,
        };
        let finish = |file: &fs::File| {
            if let Some(current) = &current {
                disk::dress(file, current)?;
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
            Over::Ours => place.folder.rename(temp, &place.name).map_err(failed)?,
            Over::Nothing => place.publish(temp)?,
        }
        place.sync()
    }

    fn uncut(&self, place: &Place, after: u64, before: &Kept) -> Result<bool, Error> {
        let size = place.file()?.map(|look| look.stamp.size);
        if size != Some(after) || before.mark.size == 0 {
            return Ok(size == Some(after + before.mark.size));
        }
        let read = own_file::read(&self.folder.path().join(&before.file));
        let bytes = read.map_err(|error| Error::io(&place.path, error))?;
        place.append(&bytes)?;
        Ok(true)
    }

    fn moved(&self, place: &Place, to: &Path, identity: u64) -> Result<bool, Error> {
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
                renamed.map_err(|error| Error::unwritable("move", &place.path, error))?;
            }
        }
        place.sync()?;
        target.sync()?;
        Ok(true)
    }
}

/// What a restored file takes the place of.
#[derive(Clone, Copy)]
enum Over {
    Ours,
    Nothing,
}

fn created(place: &Place, temp: &str, after: &Mark) -> Result<bool, Error> {
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
    place: &Place,
    text: &str,
    before: u64,
    otherwise: Option<&str>,
) -> Result<bool, Error> {
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
struct Line {
    /// The end of what was there before it.
    start: u64,
    end: u64,
    /// Half a line at the end of the file is ours as well.
    whole: bool,
}

/// Finds a line of ours that was added when the file had this size.
fn find_line(place: &Place, text: &str, before: u64) -> Result<Option<Line>, Error> {
    let Some(look) = place.file()? else {
        return Ok(None);
    };
    let length = usize::try_from(look.stamp.size.saturating_sub(before)).unwrap_or(usize::MAX);
    let mut tail = vec![0; length];
    let file = place.read()?;
    let read = open::read_at(&file, &mut tail, before);
    tail.truncate(read.map_err(|error| Error::io(&place.path, error))?);
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
        Line {
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
fn last_is_done(ground: &Ground, entry: &mut Entry) -> Result<bool, Error> {
    let Some(step) = entry.steps.last_mut() else {
        return Ok(true);
    };
    let Ok(place) = ground.place(step.path()) else {
        // Only what was removed can be gone with its folder.
        return Ok(matches!(step, Step::Removed { .. } | Step::Emptied { .. }));
    };
    Ok(match step {
        Step::Created { temp, .. } => !exists(&place, temp)? && place.look()?.is_some(),
        Step::Replaced { temp, after, .. } => {
            !exists(&place, temp)? && place.mark()?.as_ref() == Some(after)
        }
        Step::Removed { .. } | Step::Emptied { .. } => place.look()?.is_none(),
        Step::Cut { after, .. } => place.file()?.is_some_and(|look| look.stamp.size == *after),
        Step::Moved { to, identity, .. } => {
            let there = ground.place(to)?.look()?;
            place.look()?.is_none() && there.is_some_and(|look| look.stamp.identity == *identity)
        }
        Step::Appended {
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

fn exists(place: &Place, temp: &str) -> Result<bool, Error> {
    let look = place.folder.look(OsStr::new(temp));
    look.map(|look| look.is_some())
        .map_err(|error| Error::unwritable("access", &place.path, error))
}

fn same_file(place: &Place, temp: &str) -> Result<bool, Error> {
    let temp = place.folder.look(OsStr::new(temp));
    let temp = temp.map_err(|error| Error::unwritable("access", &place.path, error))?;
    let file = place.look()?;
    Ok(match (temp, file) {
        (Some(temp), Some(file)) => temp.stamp.identity == file.stamp.identity,
        _ => false,
    })
}

fn remove(place: &Place, temp: &str) -> Result<(), Error> {
    let removed = place.folder.remove(OsStr::new(temp));
    removed.map_err(|error| Error::unwritable("remove", &place.path.with_file_name(temp), error))
}

/// Removes temporary files wherever they may lie, and folders that were made and are empty.
fn sweep(folder: &Folder, ground: &Ground, entry: &Entry) -> Result<(), Error> {
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
            Err(Error::Unwritable { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
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

fn sweep_folder(folder: &Folder, token: &str) -> Result<(), Error> {
    let failed = |error| Error::unwritable("clean", folder.path(), error);
    for name in folder.names().map_err(failed)? {
        if journal::is_temp(&name, token) {
            folder.remove(&name).map_err(failed)?;
        }
    }
    Ok(())
}

/// Folders that were used and made, as noted.
fn places(folder: &Folder) -> (Vec<PathBuf>, Vec<PathBuf>) {
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
fn clear(folder: &Folder) -> Result<(), Error> {
    let failed = |error| Error::unwritable("clean", folder.path(), error);
    let mut names = folder.names().map_err(failed)?;
    names.sort_by_key(|name| name == journal::ENTRY);
    for name in names {
        folder.remove(&name).map_err(failed)?;
    }
    let above = folder.path().parent().unwrap_or(folder.path());
    let name = folder.path().file_name().unwrap_or_default();
    let above = Folder::open(above).map_err(failed)?;
    above.remove_folder(name).map_err(failed)
}
