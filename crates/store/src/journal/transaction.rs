//! A work: what is to be done is prepared step by step, then done at once.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use crate::atomic_write::{self, ContentHash, FileInFolder, ModifiedTimePolicy, WriteRoots};
use crate::disk::{self, DiskMetadata, FileKind, OpenFolder};
use crate::error::StoreError;
use crate::journal::{
    self, Journal, JournalBackup, JournalEntry, JournalState, JournalStep, JournalTask, PLACES,
    rollback,
};
use crate::open::{self, FileStamp};

/// An operation that is being prepared. Nothing that others see changes before
/// [`FileTransaction::commit`]; dropped before that, it leaves nothing behind.
///
/// A path may be used once, except that a file may be made where another was moved away from.
#[derive(Debug)]
pub struct FileTransaction {
    entry: JournalEntry,
    ground: WriteRoots,
    /// The folder of this work in the journal.
    folder: OpenFolder,
    places: TempFileLocations,
    /// Paths that a step is about.
    taken: HashSet<PathBuf>,
    /// Those from which something is moved away.
    moved: HashSet<PathBuf>,
    /// What the files that are replaced or removed were when they were read.
    expected: Vec<Option<ExpectedFile>>,
    notes: Vec<String>,
    ended: bool,
    // Held until the work is over; the last field, so that it is let go last.
    _lock: File,
}

#[derive(Debug)]
struct ExpectedFile {
    stamp: FileStamp,
    /// The file itself, to see what was still written to it.
    file: Option<File>,
}

/// New content that waits for its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedContent {
    /// Where it can be read until then.
    pub path: PathBuf,
    /// Its size and hash.
    pub mark: ContentHash,
}

/// More files than this are not held open to see what is written to them.
const HELD: usize = 200;

impl FileTransaction {
    pub(super) fn new(
        journal: &Journal,
        number: u64,
        task: JournalTask,
        undoes: Option<u64>,
        ground: WriteRoots,
        lock: File,
        notes: Vec<String>,
    ) -> Result<FileTransaction, StoreError> {
        let path = journal.folder_of(number);
        let failed = |error| StoreError::unwritable("make", &path, error);
        let dir = OpenFolder::open(&journal.dir).map_err(failed)?;
        let name = path.file_name().unwrap_or_default();
        dir.make(name).map_err(failed)?;
        dir.sync().map_err(failed)?;
        let folder = dir.below(name).map_err(failed)?;
        let mut entry = JournalEntry {
            number,
            task,
            undoes,
            state: JournalState::Open,
            steps: Vec::new(),
            made: Vec::new(),
            pruned: false,
            emptied: false,
            token: atomic_write::token(),
        };
        for root in &mut entry.task.roots {
            *root = std::path::absolute(&*root).unwrap_or_else(|_| root.clone());
        }
        let work = FileTransaction {
            places: TempFileLocations::default(),
            taken: HashSet::new(),
            moved: HashSet::new(),
            expected: Vec::new(),
            ended: false,
            _lock: lock,
            entry,
            ground,
            folder,
            notes,
        };
        journal::save(&work.folder, &work.entry)?;
        Ok(work)
    }

    /// The number under which it can be undone.
    pub fn number(&self) -> u64 {
        self.entry.number
    }

    /// What is noted about it; amounts may still be filled in.
    pub fn task(&mut self) -> &mut JournalTask {
        &mut self.entry.task
    }

    /// What was found from a crash and what was done about it, in words.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// A new file, with the folders on the way.
    pub fn create(
        &mut self,
        path: &Path,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<StagedContent, StoreError> {
        self.create_like(path, fill, |_| Ok(()))
    }

    /// A new file that was last changed at this time, in nanoseconds since 1970.
    pub fn create_at(
        &mut self,
        path: &Path,
        modified: i64,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<StagedContent, StoreError> {
        self.create_like(path, fill, |file| disk::set_modified(file, modified))
    }

    fn create_like(
        &mut self,
        path: &Path,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
        finish: impl FnOnce(&File) -> io::Result<()>,
    ) -> Result<StagedContent, StoreError> {
        let place = self.place_made(path)?;
        if place.look()?.is_some() && !self.moves_away(&place.path) {
            return Err(atomic_write::exists(&place.path));
        }
        let temp = self.temp();
        let mark = place.stage(OsStr::new(&temp), fill, finish)?;
        let staged = place.folder.path().join(&temp);
        self.step(JournalStep::Created {
            path: place.path,
            temp,
            after: mark.clone(),
        });
        Ok(StagedContent { path: staged, mark })
    }

    /// Another content for a file that is still as `stamp` says, now and at the end.
    pub fn replace(
        &mut self,
        path: &Path,
        stamp: FileStamp,
        times: ModifiedTimePolicy,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<StagedContent, StoreError> {
        let modified = (times == ModifiedTimePolicy::Keep).then_some(stamp.modified);
        self.replace_as(path, stamp, fill, None, modified)
    }

    fn replace_as(
        &mut self,
        path: &Path,
        stamp: FileStamp,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
        mode: Option<u32>,
        modified: Option<i64>,
    ) -> Result<StagedContent, StoreError> {
        let place = self.place(path)?;
        self.note_used(&place)?;
        let (original, before) = self.keep(&place, stamp, 0)?;
        let temp = self.temp();
        let finish = |file: &File| {
            disk::copy_file_attributes(file, &original)?;
            finished(file, mode, modified)
        };
        let mark = place.stage(OsStr::new(&temp), fill, finish)?;
        let staged = place.folder.path().join(&temp);
        let step = JournalStep::Replaced {
            path: place.path,
            temp,
            after: mark.clone(),
            before,
        };
        self.step_on(step, stamp, original);
        Ok(StagedContent { path: staged, mark })
    }

    /// One more line at the end of a file. Safe while others add lines too. `otherwise` is the
    /// line that takes it back when lines were added behind it.
    pub fn append_line(
        &mut self,
        path: &Path,
        line: &str,
        otherwise: Option<String>,
    ) -> Result<(), StoreError> {
        let ended = |line: &str| format!("{}\n", line.trim_end_matches('\n'));
        self.append(path, ended(line), otherwise.map(|line| ended(&line)))
    }

    fn append(
        &mut self,
        path: &Path,
        text: String,
        otherwise: Option<String>,
    ) -> Result<(), StoreError> {
        let place = self.place(path)?;
        let look = found(&place)?;
        self.step(JournalStep::Appended {
            path: place.path,
            before: look.stamp.size,
            after: look.stamp.size + text.len() as u64,
            text,
            otherwise,
        });
        Ok(())
    }

    /// A copy of a file, wherever that is, under a new name.
    pub fn copy(&mut self, from: &Path, to: &Path) -> Result<StagedContent, StoreError> {
        let (mut file, _) = open::open(from)?;
        self.create(to, |out| io::copy(&mut file, out).map(drop))
    }

    /// Removes a file.
    pub fn remove(&mut self, path: &Path) -> Result<(), StoreError> {
        let place = self.place(path)?;
        let stamp = found(&place)?.stamp;
        let (original, before) = self.keep(&place, stamp, 0)?;
        let path = place.path;
        self.step_on(JournalStep::Removed { path, before }, stamp, original);
        Ok(())
    }

    /// Removes a folder, if it is there and empty by then.
    pub fn remove_folder(&mut self, path: &Path) -> Result<(), StoreError> {
        let place = match self.place(path) {
            Err(StoreError::Unwritable { source, .. })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                return Ok(());
            }
            other => other?,
        };
        self.step(JournalStep::Emptied { path: place.path });
        Ok(())
    }

    /// Gives a file or folder another name, on the same file system.
    pub fn rename(&mut self, from: &Path, to: &Path) -> Result<(), StoreError> {
        let from = self.place(from)?;
        let to = self.place_made(to)?;
        let look = from.look()?.ok_or_else(|| missing(&from.path))?;
        if look.kind == FileKind::Link {
            from.file()?;
        }
        if to.look()?.is_some() {
            return Err(atomic_write::exists(&to.path));
        }
        self.step(JournalStep::Moved {
            path: from.path,
            to: to.path,
            identity: look.stamp.identity,
        });
        Ok(())
    }

    /// Cuts the end off a file that is still as `stamp` says.
    pub(super) fn cut(
        &mut self,
        path: &Path,
        stamp: FileStamp,
        after: u64,
    ) -> Result<(), StoreError> {
        let place = self.place(path)?;
        let (original, before) = self.keep(&place, stamp, after)?;
        let path = place.path;
        let step = JournalStep::Cut {
            path,
            after,
            before,
        };
        self.step_on(step, stamp, original);
        Ok(())
    }

    /// A file that was kept, where it was.
    pub(super) fn restore(
        &mut self,
        path: &Path,
        from: File,
        kept: &JournalBackup,
    ) -> Result<(), StoreError> {
        let (mode, modified) = (Some(kept.mode), Some(kept.modified));
        let fill = |out: &mut dyn Write| io::copy(&mut &from, out).map(drop);
        self.create_like(path, fill, |file| finished(file, mode, modified))
            .map(drop)
    }

    /// A file that was kept, in place of another content.
    pub(super) fn restore_over(
        &mut self,
        path: &Path,
        stamp: FileStamp,
        from: File,
        kept: &JournalBackup,
    ) -> Result<(), StoreError> {
        let (mode, modified) = (Some(kept.mode), Some(kept.modified));
        let fill = |out: &mut dyn Write| io::copy(&mut &from, out).map(drop);
        self.replace_as(path, stamp, fill, mode, modified).map(drop)
    }

    /// What was cut off, at the end again.
    pub(super) fn restore_end(&mut self, path: &Path, text: String) -> Result<(), StoreError> {
        self.append(path, text, None)
    }

    /// Does everything that was prepared, in the order in which it was: the transcript should
    /// come last. Either all of it is done, or nothing.
    pub fn commit(mut self) -> Result<u64, StoreError> {
        // What can be refused is refused while nothing has changed.
        for at in 0..self.entry.steps.len() {
            self.check(at)?;
        }
        self.entry.made.clone_from(&self.places.made);
        self.entry.state = JournalState::Ready;
        journal::save(&self.folder, &self.entry)?;
        match self.perform() {
            Ok(()) => {
                self.ended = true;
                Ok(self.entry.number)
            }
            Err(error) => Err(self.take_back(error)),
        }
    }

    fn perform(&mut self) -> Result<(), StoreError> {
        let last = self.entry.steps.len().saturating_sub(1);
        for at in 0..self.entry.steps.len() {
            if at == last {
                // Whoever sees the last step on disk may rely on the others.
                self.sync(..at)?;
            }
            self.apply(at)?;
        }
        self.sync(last..)?;
        self.nothing_lost()?;
        self.entry.state = JournalState::Done;
        journal::save(&self.folder, &self.entry)
    }

    fn take_back(&mut self, error: StoreError) -> StoreError {
        self.entry.state = JournalState::Back;
        // If even this cannot be noted, the state on disk leads to the same.
        let _ = journal::save(&self.folder, &self.entry);
        self.ended = rollback::roll_back(&self.folder, &self.ground, &self.entry).is_ok();
        error
    }

    fn check(&self, at: usize) -> Result<(), StoreError> {
        let step = &self.entry.steps[at];
        match step {
            JournalStep::Created { path, .. } => {
                let place = self.ground.place(path)?;
                if place.look()?.is_some() && !self.moves_away(path) {
                    return Err(atomic_write::exists(path));
                }
            }
            JournalStep::Replaced { path, .. }
            | JournalStep::Removed { path, .. }
            | JournalStep::Cut { path, .. } => {
                if let Some(expected) = &self.expected[at] {
                    self.ground.place(path)?.unchanged(expected.stamp)?;
                }
            }
            JournalStep::Appended { path, .. } => {
                found(&self.ground.place(path)?)?;
            }
            JournalStep::Moved { .. } | JournalStep::Emptied { .. } => {}
        }
        Ok(())
    }

    fn apply(&mut self, at: usize) -> Result<(), StoreError> {
        let stamp = self.expected[at].as_ref().map(|expected| expected.stamp);
        let place = self.ground.place(self.entry.steps[at].path())?;
        match &mut self.entry.steps[at] {
            JournalStep::Created { temp, .. } => place.publish(OsStr::new(temp)),
            JournalStep::Replaced { temp, .. } => {
                place.swap(OsStr::new(temp), stamp.unwrap_or_default())
            }
            JournalStep::Appended {
                text,
                before,
                after,
                ..
            } => {
                let added = place.append(text.as_bytes())?;
                (*before, *after) = (added.before, added.after);
                Ok(())
            }
            JournalStep::Cut { after, .. } => {
                place.unchanged(stamp.unwrap_or_default())?;
                cut(&place, *after)
            }
            JournalStep::Moved { to, .. } => {
                let target = self.ground.place(to)?;
                let renamed = place
                    .folder
                    .rename_new(&place.name, &target.folder, &target.name);
                renamed.map_err(|error| StoreError::unwritable("move", &place.path, error))
            }
            JournalStep::Removed { .. } => {
                place.unchanged(stamp.unwrap_or_default())?;
                place.remove()
            }
            JournalStep::Emptied { .. } => remove_if_empty(&place),
        }
    }

    fn sync(
        &self,
        steps: impl std::slice::SliceIndex<[JournalStep], Output = [JournalStep]>,
    ) -> Result<(), StoreError> {
        let mut synced: HashSet<PathBuf> = HashSet::new();
        for step in &self.entry.steps[steps] {
            let to = match step {
                JournalStep::Moved { to, .. } => Some(to.as_path()),
                _ => None,
            };
            for path in [Some(step.path()), to].into_iter().flatten() {
                let folder = path.parent().unwrap_or(path).to_owned();
                if !synced.contains(&folder) {
                    match self.ground.place(path) {
                        Ok(place) => place.sync()?,
                        // A later step removed the folder itself.
                        Err(StoreError::Unwritable { source, .. })
                            if source.kind() == io::ErrorKind::NotFound => {}
                        Err(error) => return Err(error),
                    }
                    synced.insert(folder);
                }
            }
        }
        Ok(())
    }

    /// Between the last look and the renaming somebody may have written to the old file. Then
    /// the copy gets what was written, and is put back.
    fn nothing_lost(&mut self) -> Result<(), StoreError> {
        for at in 0..self.entry.steps.len() {
            let Some(ExpectedFile {
                stamp,
                file: Some(file),
            }) = &self.expected[at]
            else {
                continue;
            };
            let step = &mut self.entry.steps[at];
            let (path, before) = match step {
                JournalStep::Replaced { path, before, .. }
                | JournalStep::Removed { path, before } => (path.clone(), before),
                _ => continue,
            };
            let metadata = file
                .metadata()
                .map_err(|error| StoreError::io(&path, error))?;
            let now = FileStamp::of(&metadata);
            if (now.size, now.modified) != (stamp.size, stamp.modified) {
                let name = format!("{}+", before.file);
                before.mark = copy_to(&self.folder, &name, file, 0)?;
                before.file = name;
                return Err(atomic_write::changed(&path));
            }
        }
        Ok(())
    }

    /// Copies a file from a place on into our folder before it is replaced, cut or removed.
    fn keep(
        &mut self,
        place: &FileInFolder,
        stamp: FileStamp,
        from: u64,
    ) -> Result<(File, JournalBackup), StoreError> {
        self.once(&place.path)?;
        place.unchanged(stamp)?;
        let original = place.read()?;
        let name = self.entry.steps.len().to_string();
        let mark = copy_to(&self.folder, &name, &original, from)?;
        place.unchanged(stamp)?;
        let look = found(place)?;
        let kept = JournalBackup {
            file: name,
            mark,
            mode: look.mode,
            modified: stamp.modified,
        };
        Ok((original, kept))
    }

    fn place(&self, path: &Path) -> Result<FileInFolder, StoreError> {
        let place = self.ground.place(path)?;
        self.once(&place.path)?;
        Ok(place)
    }

    fn place_made(&mut self, path: &Path) -> Result<FileInFolder, StoreError> {
        let (folder, places) = (&self.folder, &mut self.places);
        let place = self
            .ground
            .place_made(path, |made| places.note_made(folder, made))?;
        self.note_used(&place)?;
        if !self.moves_away(&place.path) {
            self.once(&place.path)?;
        }
        Ok(place)
    }

    /// Notes where a temporary file will lie.
    fn note_used(&mut self, place: &FileInFolder) -> Result<(), StoreError> {
        let noted = self.places.note_used(&self.folder, place.folder.path());
        noted.map_err(|error| StoreError::unwritable("write", self.folder.path(), error))
    }

    fn once(&self, path: &Path) -> Result<(), StoreError> {
        if !self.taken.contains(path) {
            return Ok(());
        }
        Err(StoreError::refused(
            format!("`{}` would be changed twice in one edit", path.display()),
            "use two edits",
        ))
    }

    fn moves_away(&self, path: &Path) -> bool {
        self.moved.contains(path)
    }

    fn temp(&self) -> String {
        let part = self.entry.steps.len().to_string();
        journal::temp_name(&self.entry.token, &part)
    }

    fn step(&mut self, step: JournalStep) {
        self.push(step, None);
    }

    fn step_on(&mut self, step: JournalStep, stamp: FileStamp, file: File) {
        let held = self.expected.len() < HELD;
        let file = held.then_some(file);
        self.push(step, Some(ExpectedFile { stamp, file }));
    }

    fn push(&mut self, step: JournalStep, expected: Option<ExpectedFile>) {
        self.taken.insert(step.path().to_owned());
        if let JournalStep::Moved { path, .. } = &step {
            self.moved.insert(path.clone());
        }
        self.entry.steps.push(step);
        self.expected.push(expected);
    }
}

impl Drop for FileTransaction {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // What cannot be cleaned now is cleaned by whoever comes next.
        let _ = match self.entry.state {
            JournalState::Open => rollback::abandon(&self.folder, &self.ground, &self.entry),
            JournalState::Ready | JournalState::Back => {
                rollback::roll_back(&self.folder, &self.ground, &self.entry).map(drop)
            }
            JournalState::Done => Ok(()),
        };
    }
}

/// Where temporary files may lie after a crash, noted before the first one does.
#[derive(Debug, Default)]
pub(super) struct TempFileLocations {
    file: Option<File>,
    used: HashSet<PathBuf>,
    pub made: Vec<PathBuf>,
}

impl TempFileLocations {
    fn note_made(&mut self, folder: &OpenFolder, path: &Path) -> io::Result<()> {
        self.note(folder, "made", path)?;
        self.made.push(path.to_owned());
        Ok(())
    }

    fn note_used(&mut self, folder: &OpenFolder, path: &Path) -> io::Result<()> {
        if !self.used.contains(path) {
            self.note(folder, "used", path)?;
            self.used.insert(path.to_owned());
        }
        Ok(())
    }

    fn note(&mut self, folder: &OpenFolder, what: &str, path: &Path) -> io::Result<()> {
        if self.file.is_none() {
            self.file = Some(folder.create(OsStr::new(PLACES))?);
            folder.sync()?;
        }
        let Some(file) = &self.file else {
            return Ok(());
        };
        let text = path
            .to_str()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "its path is not UTF-8"))?;
        let mut line = serde_json::to_vec(&(what, text))?;
        line.push(b'\n');
        let mut rest = &line[..];
        while !rest.is_empty() {
            rest = &rest[disk::write_once(file, rest)?..];
        }
        disk::sync(file)
    }
}

/// Copies a file from a place on into a folder of ours.
fn copy_to(
    folder: &OpenFolder,
    name: &str,
    mut from: &File,
    at: u64,
) -> Result<ContentHash, StoreError> {
    let place = FileInFolder {
        folder: folder
            .again()
            .map_err(|error| StoreError::unwritable("open", folder.path(), error))?,
        name: name.into(),
        path: folder.path().join(name),
    };
    let copy = |out: &mut dyn Write| {
        from.seek(io::SeekFrom::Start(at))?;
        io::copy(&mut from, out).map(drop)
    };
    let mark = place.stage(OsStr::new(name), copy, |_| Ok(()))?;
    place.sync()?;
    Ok(mark)
}

/// Gives a new file the permissions and time of an old one.
pub(super) fn finished(file: &File, mode: Option<u32>, modified: Option<i64>) -> io::Result<()> {
    #[cfg(unix)]
    if let Some(mode) = mode {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(std::fs::Permissions::from_mode(mode))?;
    }
    #[cfg(not(unix))]
    let _ = mode;
    modified.map_or(Ok(()), |time| disk::set_modified(file, time))
}

pub(super) fn cut(place: &FileInFolder, after: u64) -> Result<(), StoreError> {
    let done = place.folder.change(&place.name).and_then(|file| {
        disk::cut(&file, after)?;
        disk::sync(&file)
    });
    done.map_err(|error| StoreError::unwritable("cut", &place.path, error))
}

/// Removes a folder; what others put into it stays, and so does the folder.
pub(super) fn remove_if_empty(place: &FileInFolder) -> Result<(), StoreError> {
    match place.folder.remove_folder(&place.name) {
        Err(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::DirectoryNotEmpty
                    | io::ErrorKind::AlreadyExists
                    | io::ErrorKind::NotFound
            ) =>
        {
            Err(StoreError::unwritable("remove", &place.path, error))
        }
        _ => Ok(()),
    }
}

fn found(place: &FileInFolder) -> Result<DiskMetadata, StoreError> {
    place.file()?.ok_or_else(|| missing(&place.path))
}

fn missing(path: &Path) -> StoreError {
    StoreError::MissingFile { path: path.into() }
}
