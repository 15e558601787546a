//! Sessions of a directory that has moved, and everything beside them.
//!
//! Which sessions belong to a directory is told by their lines, never by the name of their
//! folder. They keep their ids; their lines and the client's own lists name the new directory,
//! and they lie in the folder in which the client looks for them there.

mod client_lists;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use unspool_model::edit::check::ExpectedResult;
use unspool_model::edit::copy_identity::CopyIdentity;
use unspool_model::edit::{EditPlan, LineRewriter};
use unspool_model::session::{Session, TranscriptRole};

use crate::client_session_list;
use crate::copy_side_files::SessionCopyLocation;
use crate::error::{FileWarning, StoreError};
use crate::find::{FoundSessionFiles, SessionFile};
use crate::journal::FileTransaction;
use crate::open::FileStamp;
use crate::owned_files::{OwnedFile, OwnedFileKind, OwnedFiles};
use crate::parallel;
use crate::project::{path_comparison_key, slug};
use crate::read::{self, LoadedSession};
use crate::read_folder;
use crate::rewrite::rewrite;

/// A session that moves.
#[derive(Clone, Debug)]
pub struct SessionMove {
    /// Its file.
    pub file: SessionFile,
    /// The directory it was started in.
    pub from: String,
    /// The directory it goes on in.
    pub to: String,
    /// Which part of its directories becomes which.
    identity: CopyIdentity,
    home: SessionCopyLocation,
}

impl SessionMove {
    /// Its new file.
    pub fn target(&self) -> PathBuf {
        self.home.transcript()
    }
}

/// What was done to a session, or would be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionMoveResult {
    /// Lines that name another directory now, sub-agents' too.
    pub changed: u64,
    /// Lines that stay as they are.
    pub kept: u64,
    /// Files beside the transcript that move along.
    pub files: u64,
}

/// Where the directory of a session is told at the latest.
const START: u64 = 1 << 20;

/// The sessions that were started in one of these directories, which are names of one place,
/// or below it, and where they go.
pub fn session_moves(
    found: &FoundSessionFiles,
    from: &[String],
    to: &str,
) -> (Vec<SessionMove>, Vec<FileWarning>) {
    let begun = parallel::map(
        &found.sessions,
        parallel::threads(),
        |file| file.bytes.min(START),
        |file| read::read_start(&file.path, TranscriptRole::Main, START),
    );
    let (mut all, mut warnings) = (Vec::new(), Vec::new());
    for (file, begun) in found.sessions.iter().zip(begun) {
        match begun {
            Ok(begun) => all.extend(mover(file, &begun.session, from, to)),
            Err(error) => warnings.push(error.warning(&file.path)),
        }
    }
    all.sort_by(|one, other| (&one.from, &one.file.id).cmp(&(&other.from, &other.file.id)));
    (all, warnings)
}

fn mover(file: &SessionFile, begun: &Session, from: &[String], to: &str) -> Option<SessionMove> {
    let cwd = home_of(begun, &file.folder)?;
    from.iter().find_map(|from| {
        let identity = CopyIdentity::moved(path_comparison_key(from), to);
        let moved = identity.directory(&cwd)?;
        let home = SessionCopyLocation {
            folder: file.config.join("projects").join(slug(&moved)),
            ..SessionCopyLocation::of(file)
        };
        (!file.config.as_os_str().is_empty()).then(|| SessionMove {
            file: file.clone(),
            from: cwd.clone(),
            to: moved,
            identity,
            home,
        })
    })
}

/// The directory that a session belongs to: the one its folder is named after, else the first.
fn home_of(session: &Session, folder: &str) -> Option<String> {
    let all = || session.cwds.iter().map(|(cwd, _)| cwd);
    let named = all().find(|cwd| slug(cwd) == folder);
    named.or_else(|| all().next()).map(str::to_owned)
}

/// What moving a session would do, with nothing written.
pub fn preview_move(
    owned: &OwnedFiles,
    mover: &SessionMove,
) -> Result<SessionMoveResult, StoreError> {
    let mut moved = SessionMoveResult::default();
    let main = read::read(&mover.file.path, TranscriptRole::Main)?;
    moved.count(&main, &mover.identity);
    for (one, _) in beside(owned, mover) {
        moved.files += 1;
        if one.kind.is_transcript() {
            moved.count(
                &read::read(&one.path, TranscriptRole::Agent)?,
                &mover.identity,
            );
        }
    }
    Ok(moved)
}

/// The files beside a transcript, and where they go: all in its own folder, and files of
/// sub-agents that old clients kept among the sessions.
fn beside(owned: &OwnedFiles, mover: &SessionMove) -> Vec<(OwnedFile, PathBuf)> {
    let folder = mover.file.path.with_extension("");
    let project = mover.file.path.parent();
    let all = owned.of(&mover.file).into_iter();
    let all = all.filter(|one| one.kind != OwnedFileKind::Transcript);
    all.filter_map(|one| {
        let to = match one.path.strip_prefix(&folder) {
            Ok(within) => mover.home.beside().join(within),
            Err(_) if one.path.parent() == project => mover.home.folder.join(one.path.file_name()?),
            Err(_) => return None,
        };
        Some((one, to))
    })
    .collect()
}

impl SessionMoveResult {
    fn count(&mut self, loaded: &LoadedSession, identity: &CopyIdentity) {
        let cwds = loaded.session.cwds.iter();
        let named = cwds.filter(|(cwd, _)| identity.directory(cwd).is_some());
        let changed = named.map(|(_, count)| u64::from(count)).sum();
        self.changed += changed;
        self.kept += u64::from(loaded.session.lines()).saturating_sub(changed);
    }
}

/// Prepares everything. What became of the sessions is in their order; what could not be taken
/// along is said in words.
pub fn stage_moves(
    work: &mut FileTransaction,
    found: &FoundSessionFiles,
    movers: &[SessionMove],
) -> Result<(Vec<SessionMoveResult>, Vec<String>), StoreError> {
    let mut stage = MoveStaging {
        work,
        old: Vec::new(),
        folders: BTreeSet::new(),
    };
    let mut all = vec![SessionMoveResult::default(); movers.len()];
    let mut known = BTreeSet::new();
    let owned = OwnedFiles::new(found);
    for (mover, moved) in movers.iter().zip(&mut all) {
        for (from, to) in beside(&owned, mover) {
            stage.one(&from, &to, mover, moved)?;
            known.insert(from.path);
        }
        known.insert(mover.file.path.with_extension(""));
        known.insert(mover.file.path.clone());
    }
    let emptied = emptied(found, movers);
    let rest = leftovers(&emptied, &known);
    let mut notes = Vec::new();
    for (from, to) in &rest {
        if to.symlink_metadata().is_ok() {
            let (from, to) = (from.display(), to.display());
            notes.push(format!(
                "not moved: `{from}`, because `{to}` already exists"
            ));
        } else {
            stage.work.rename(from, to)?;
        }
    }
    notes.extend(client_lists::lists(stage.work, movers, &emptied)?);
    client_lists::histories(stage.work, movers)?;
    client_lists::jobs(stage.work, &owned, movers)?;
    // Transcripts come last: before them, nothing has moved for the client.
    for (mover, moved) in movers.iter().zip(&mut all) {
        stage.note_folders(&mover.file.path, mover);
        let to = mover.home.transcript();
        stage.transcript(&mover.file.path, &to, TranscriptRole::Main, mover, moved)?;
    }
    stage.clear()?;
    Ok((all, notes))
}

struct MoveStaging<'a> {
    work: &'a mut FileTransaction,
    /// Files whose new form is elsewhere, as they were when they were read.
    old: Vec<(PathBuf, FileStamp)>,
    /// Folders that may be empty then.
    folders: BTreeSet<PathBuf>,
}

impl MoveStaging<'_> {
    /// A file beside a transcript.
    fn one(
        &mut self,
        one: &OwnedFile,
        to: &Path,
        mover: &SessionMove,
        moved: &mut SessionMoveResult,
    ) -> Result<(), StoreError> {
        moved.files += 1;
        self.note_folders(&one.path, mover);
        if one.kind.is_transcript() {
            return self.transcript(&one.path, to, TranscriptRole::Agent, mover, moved);
        }
        self.work.rename(&one.path, to)
    }

    /// Writes a transcript anew, and reads it again as if for the first time.
    fn transcript(
        &mut self,
        path: &Path,
        to: &Path,
        role: TranscriptRole,
        mover: &SessionMove,
        moved: &mut SessionMoveResult,
    ) -> Result<(), StoreError> {
        let loaded = &read::read(path, role)?;
        let metadata = fs::metadata(path).map_err(|error| StoreError::io(path, error))?;
        let stamp = FileStamp::of(&metadata);
        if stamp.size != loaded.bytes {
            return Err(crate::atomic_write::changed(path));
        }
        let session = &loaded.session;
        let plan = EditPlan::new(session);
        let staged = self.work.create_at(to, stamp.modified, |out| {
            let pen = LineRewriter::new(session, &plan, Some(&mover.identity));
            rewrite(loaded, pen, &|_| None, out).map(drop)
        })?;
        let after = read::read(&staged.path, role)?;
        let wanted = ExpectedResult::of(session, &plan, Some(&mover.identity));
        if let Some(problem) = wanted.compare(&after.session).first() {
            let what = format!("`{}` would change: {}", path.display(), problem.what);
            return Err(StoreError::refused(what, "check it with `unspool check`"));
        }
        moved.count(loaded, &mover.identity);
        self.old.push((path.to_owned(), stamp));
        Ok(())
    }

    fn note_folders(&mut self, path: &Path, mover: &SessionMove) {
        let projects = mover.file.config.join("projects");
        let above = path.ancestors().skip(1);
        let inside =
            above.take_while(|folder| folder.starts_with(&projects) && **folder != projects);
        self.folders.extend(inside.map(Path::to_owned));
    }

    /// Takes away what is elsewhere now, and folders in which nothing is left, deepest first.
    fn clear(&mut self) -> Result<(), StoreError> {
        for (path, stamp) in &self.old {
            // What was added since would be lost.
            if fs::metadata(path).ok().map(|now| FileStamp::of(&now)) != Some(*stamp) {
                return Err(crate::atomic_write::changed(path));
            }
            self.work.remove(path)?;
        }
        for folder in self.folders.iter().rev() {
            self.work.remove_folder(folder)?;
        }
        Ok(())
    }
}

/// Folders all of whose sessions move to one other place, and that place.
fn emptied(found: &FoundSessionFiles, movers: &[SessionMove]) -> Vec<(PathBuf, PathBuf)> {
    let mut goals: BTreeMap<&Path, BTreeSet<&Path>> = BTreeMap::new();
    for mover in movers {
        let folder = mover.file.path.parent().unwrap_or(Path::new("."));
        goals.entry(folder).or_default().insert(&mover.home.folder);
    }
    let moving: BTreeSet<&Path> = movers.iter().map(|it| it.file.path.as_path()).collect();
    let is_goal = |folder: &Path| movers.iter().any(|mover| mover.home.folder == folder);
    let mut all = Vec::new();
    for (folder, goal) in goals {
        let stays = |file: &&SessionFile| {
            file.path.parent() == Some(folder) && !moving.contains(file.path.as_path())
        };
        let one = goal.iter().next().filter(|_| goal.len() == 1);
        if let Some(goal) = one.filter(|_| !is_goal(folder))
            && !found.sessions.iter().filter(stays).any(speaks)
        {
            all.push((folder.to_owned(), goal.to_path_buf()));
        }
    }
    all
}

/// What else lies in such folders: memories, files that are no conversations. They move along.
fn leftovers(emptied: &[(PathBuf, PathBuf)], known: &BTreeSet<PathBuf>) -> Vec<(PathBuf, PathBuf)> {
    let mut all = Vec::new();
    for (folder, goal) in emptied {
        for entry in read_folder::entries(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let plain = entry.file_type().is_ok_and(|kind| !kind.is_symlink());
            if plain && !known.contains(&path) && entry.file_name() != client_session_list::NAME {
                all.push((path, goal.join(entry.file_name())));
            }
        }
    }
    all.sort();
    all
}

/// Whether a session that stays belongs to a directory of its own.
fn speaks(file: &SessionFile) -> bool {
    let begun = read::read_start(&file.path, TranscriptRole::Main, START);
    begun.is_ok_and(|begun| !begun.session.cwds.is_empty())
}
