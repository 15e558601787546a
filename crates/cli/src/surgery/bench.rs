//! Where an edit is prepared: beside the files that it makes, or nowhere at all if it is only
//! asked what it would be.
//!
//! Every edit goes the same way over it: files are put down, the transcript is put down and
//! read again as if for the first time, what was read is proved by who knows what was wanted,
//! and only then all of it becomes visible. A dry run goes that way too, so that what it says
//! is what will be.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use unspool_model::session::{Role, Session};
use unspool_store::journal::{Task, Work};
use unspool_store::open::{self, Stamp};
use unspool_store::read::Reader;
use unspool_store::write::Times;

use super::proof::Fold;
use crate::failure::Failure;
use crate::world::World;

/// Where an edit is prepared.
pub enum Bench {
    /// Nowhere: nothing is written.
    Dry,
    /// Beside its targets.
    Work(Box<Work>),
}

/// Where something is put.
#[derive(Clone, Copy, Debug)]
pub enum Spot<'a> {
    /// A new file.
    New(&'a Path),
    /// Over a file that is still as it was.
    Over(&'a Path, Stamp),
}

/// A transcript that was put down and read again.
pub struct Made {
    /// What it says.
    pub session: Session,
    /// Its bytes.
    pub bytes: u64,
}

/// A transcript that was put down. Whoever can let go of the old one reads it after that: two
/// sessions at once take twice the memory.
#[must_use]
pub enum Draft {
    /// It stands nowhere and was read meanwhile.
    Read(Box<Made>),
    /// It stands here.
    At(PathBuf, Role),
}

impl Draft {
    /// Reads it as if for the first time.
    pub fn read(self) -> Result<Made, Failure> {
        match self {
            Draft::Read(made) => Ok(*made),
            Draft::At(path, role) => {
                let read = Reader::to_edit().read(&path, role)?;
                let (session, bytes) = (read.session, read.bytes);
                Ok(Made { session, bytes })
            }
        }
    }
}

impl Bench {
    /// A place for this task.
    pub fn new(world: &World, task: Task, dry_run: bool) -> Result<Bench, Failure> {
        Ok(match dry_run {
            true => Bench::Dry,
            false => Bench::Work(Box::new(world.begin(task)?)),
        })
    }

    /// Puts a file down.
    pub fn put(
        &mut self,
        spot: Spot<'_>,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        match (self, spot) {
            (Bench::Dry, Spot::New(path) | Spot::Over(path, _)) => {
                fill(&mut io::sink()).map_err(|why| unwritten(path, why))
            }
            (Bench::Work(work), Spot::New(path)) => Ok(work.create(path, fill).map(drop)?),
            (Bench::Work(work), Spot::Over(path, stamp)) => {
                Ok(work.replace(path, stamp, Times::Keep, fill).map(drop)?)
            }
        }
    }

    /// Puts a copy of a file down.
    pub fn copy(&mut self, from: &Path, to: &Path) -> Result<(), Failure> {
        match self {
            Bench::Dry => open::open(from).map(drop)?,
            Bench::Work(work) => drop(work.copy(from, to)?),
        }
        Ok(())
    }

    /// Puts another content in place of a small file, which is new from then on.
    pub fn renew(&mut self, path: &Path, stamp: Stamp, text: &str) -> Result<(), Failure> {
        if let Bench::Work(work) = self {
            work.replace(path, stamp, Times::Now, |out| {
                out.write_all(text.as_bytes())
            })?;
        }
        Ok(())
    }

    /// Puts a transcript down, to be read again. Others see nothing of it before
    /// [`Bench::commit`].
    pub fn transcript<T>(
        &mut self,
        spot: Spot<'_>,
        role: Role,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    ) -> Result<(T, Draft), Failure> {
        let mut said = None;
        let fill = |out: &mut dyn Write| {
            said = Some(fill(out)?);
            Ok(())
        };
        let (path, draft) = match (self, spot) {
            (Bench::Dry, Spot::New(path) | Spot::Over(path, _)) => {
                let mut fold = Fold::new(role);
                fill(&mut fold).map_err(|why| unwritten(path, why))?;
                (path, Draft::Read(Box::new(fold.made())))
            }
            (Bench::Work(work), spot) => {
                let (path, staged) = match spot {
                    Spot::New(path) => (path, work.create(path, fill)?),
                    Spot::Over(path, stamp) => {
                        (path, work.replace(path, stamp, Times::Keep, fill)?)
                    }
                };
                (path, Draft::At(staged.path, role))
            }
        };
        let said = said.ok_or_else(|| unwritten(path, io::ErrorKind::WriteZero.into()))?;
        Ok((said, draft))
    }

    /// Makes everything visible that was put down, and says by which number it is undone. What
    /// is known by then can be noted.
    pub fn commit(self, note: impl FnOnce(&mut Task)) -> Result<Option<u64>, Failure> {
        match self {
            Bench::Dry => Ok(None),
            Bench::Work(mut work) => {
                note(work.task());
                Ok(Some(work.commit()?))
            }
        }
    }
}

fn unwritten(path: &Path, why: io::Error) -> Failure {
    unspool_store::Error::io(path, why).into()
}
