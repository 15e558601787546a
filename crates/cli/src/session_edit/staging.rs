//! Where an edit is prepared: beside the files that it makes, or nowhere at all if it is only
//! asked what it would be.
//!
//! Every edit goes the same way over it: files are put down, the transcript is put down and
//! read again as if for the first time, what was read is proved by who knows what was wanted,
//! and only then all of it becomes visible. A dry run goes that way too, so that what it says
//! is what will be.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use unspool_model::session::{Session, TranscriptRole};
use unspool_store::atomic_write::ModifiedTimePolicy;
use unspool_store::journal::{FileTransaction, JournalTask};
use unspool_store::open::{self, FileStamp};
use unspool_store::read::SessionReader;

use super::edit_verification::TranscriptFold;
use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// Where an edit is prepared.
pub enum EditStaging {
    /// Nowhere: nothing is written.
    Dry,
    /// Beside its targets.
    Work(Box<FileTransaction>),
}

/// Where something is put.
#[derive(Clone, Copy, Debug)]
pub enum StagingTarget<'a> {
    /// A new file.
    New(&'a Path),
    /// Over a file that is still as it was.
    Over(&'a Path, FileStamp),
}

/// A transcript that was put down and read again.
pub struct WrittenTranscript {
    /// What it says.
    pub session: Session,
    /// Its bytes.
    pub bytes: u64,
}

/// A transcript that was put down. Whoever can let go of the old one reads it after that: two
/// sessions at once take twice the memory.
#[must_use]
pub enum StagedTranscript {
    /// It stands nowhere and was read meanwhile.
    Read(Box<WrittenTranscript>),
    /// It stands here.
    At(PathBuf, TranscriptRole),
}

impl StagedTranscript {
    /// Reads it as if for the first time.
    pub fn read(self) -> Result<WrittenTranscript, CommandFailure> {
        match self {
            StagedTranscript::Read(made) => Ok(*made),
            StagedTranscript::At(path, role) => {
                let read = SessionReader::to_edit().read(&path, role)?;
                let (session, bytes) = (read.session, read.bytes);
                Ok(WrittenTranscript { session, bytes })
            }
        }
    }
}

impl EditStaging {
    /// A place for this task.
    pub fn new(
        world: &CommandContext,
        task: JournalTask,
        dry_run: bool,
    ) -> Result<EditStaging, CommandFailure> {
        Ok(match dry_run {
            true => EditStaging::Dry,
            false => EditStaging::Work(Box::new(world.begin(task)?)),
        })
    }

    /// Puts a file down.
    pub fn put(
        &mut self,
        spot: StagingTarget<'_>,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), CommandFailure> {
        match (self, spot) {
            (EditStaging::Dry, StagingTarget::New(path) | StagingTarget::Over(path, _)) => {
                fill(&mut io::sink()).map_err(|why| unwritten(path, why))
            }
            (EditStaging::Work(work), StagingTarget::New(path)) => {
                Ok(work.create(path, fill).map(drop)?)
            }
            (EditStaging::Work(work), StagingTarget::Over(path, stamp)) => Ok(work
                .replace(path, stamp, ModifiedTimePolicy::Keep, fill)
                .map(drop)?),
        }
    }

    /// Puts a copy of a file down.
    pub fn copy(&mut self, from: &Path, to: &Path) -> Result<(), CommandFailure> {
        match self {
            EditStaging::Dry => open::open(from).map(drop)?,
            EditStaging::Work(work) => drop(work.copy(from, to)?),
        }
        Ok(())
    }

    /// Puts another content in place of a small file, which is new from then on.
    pub fn renew(
        &mut self,
        path: &Path,
        stamp: FileStamp,
        text: &str,
    ) -> Result<(), CommandFailure> {
        if let EditStaging::Work(work) = self {
            work.replace(path, stamp, ModifiedTimePolicy::Now, |out| {
                out.write_all(text.as_bytes())
            })?;
        }
        Ok(())
    }

    /// Puts a transcript down, to be read again. Others see nothing of it before
    /// [`EditStaging::commit`].
    pub fn transcript<T>(
        &mut self,
        spot: StagingTarget<'_>,
        role: TranscriptRole,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    ) -> Result<(T, StagedTranscript), CommandFailure> {
        let mut said = None;
        let fill = |out: &mut dyn Write| {
            said = Some(fill(out)?);
            Ok(())
        };
        let (path, draft) = match (self, spot) {
            (EditStaging::Dry, StagingTarget::New(path) | StagingTarget::Over(path, _)) => {
                let mut fold = TranscriptFold::new(role);
                fill(&mut fold).map_err(|why| unwritten(path, why))?;
                (path, StagedTranscript::Read(Box::new(fold.made())))
            }
            (EditStaging::Work(work), spot) => {
                let (path, staged) = match spot {
                    StagingTarget::New(path) => (path, work.create(path, fill)?),
                    StagingTarget::Over(path, stamp) => (
                        path,
                        work.replace(path, stamp, ModifiedTimePolicy::Keep, fill)?,
                    ),
                };
                (path, StagedTranscript::At(staged.path, role))
            }
        };
        let said = said.ok_or_else(|| unwritten(path, io::ErrorKind::WriteZero.into()))?;
        Ok((said, draft))
    }

    /// Makes everything visible that was put down, and says by which number it is undone. What
    /// is known by then can be noted.
    pub fn commit(
        self,
        note: impl FnOnce(&mut JournalTask),
    ) -> Result<Option<u64>, CommandFailure> {
        match self {
            EditStaging::Dry => Ok(None),
            EditStaging::Work(mut work) => {
                note(work.task());
                Ok(Some(work.commit()?))
            }
        }
    }
}

fn unwritten(path: &Path, why: io::Error) -> CommandFailure {
    unspool_store::StoreError::io(path, why).into()
}
