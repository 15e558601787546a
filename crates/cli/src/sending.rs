//! Sends sessions: what the receiver does not have yet, in order, each turn once.
//!
//! [`place`] reads from the environment where to; [`near`] knows which files repeat turns of
//! others; [`choice`] decides what is to be sent; [`run`] reads, packs, sends and notes, several
//! sessions at once. What was taken is noted in the ledger, which is all that is remembered: a
//! receiver that was down for a day gets what it missed from the transcripts.

mod choice;
mod near;
mod place;
mod run;

use std::fs;
use std::time::Duration;

use unspool_send::before;
use unspool_send::deliver::Patience;
use unspool_send::ledger::{self, Ledger, Note};
use unspool_send::post::Stopped;
use unspool_send::target::Target;
use unspool_store::SessionFile;
use unspool_store::find;
use unspool_store::live::Live;
use unspool_store::resolve;

use crate::failure::Failure;
use crate::world::World;

pub use near::oldest_first;
pub use place::{To, environment, target};
pub use place::{debug, wanted};
pub use run::{Sample, sample};

/// How to send.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// Also what was sent before.
    pub full: bool,
    /// Also what the model thought.
    pub thinking: bool,
    /// Cut every text behind so many characters.
    pub max_chars: Option<usize>,
    /// Leave secrets in.
    pub no_redact: bool,
    /// The sessions are over: an open last turn goes as it is.
    pub ended: bool,
    /// Try for long, and remember sessions with something left to send: nobody waits, and
    /// nobody calls again on their behalf.
    pub patient: bool,
    /// Show a bar if a person looks.
    pub bar: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Sessions that had something to send.
    pub sessions: u64,
    /// Turns that were taken.
    pub turns: u64,
    /// Spans that were taken.
    pub spans: u64,
    /// Bytes that went out.
    pub bytes: u64,
    /// Requests that were made.
    pub requests: u64,
    /// Turns that were taken before.
    pub already: u64,
    /// Turns that stand in an older file too, and belong to that.
    pub elsewhere: u64,
    /// Turns that are not over yet.
    pub waiting: u64,
    /// Spans that the receiver does not take, and why.
    pub rejected: Vec<String>,
    /// Files that could not be read.
    pub warnings: Vec<String>,
}

/// A turn that was left without an end is over when its session was quiet for so long.
const QUIET: i64 = 60 * 60 * 1_000;

/// Sends what the receiver does not have yet of these sessions, which come in this order.
pub fn deliver(
    world: &World,
    target: &Target,
    sessions: &[SessionFile],
    wishes: &Wishes,
) -> Result<Summary, Failure> {
    let mut ledger = open(world, target)?;
    adopt(world, target, &mut ledger)?;
    run::run(world, target, ledger, sessions, wishes)
}

/// Sessions of earlier calls that still have something to send.
pub fn due(world: &World, target: &Target) -> Result<Vec<SessionFile>, Failure> {
    let ledger = open(world, target)?;
    let now = world.now().0;
    let (mut all, mut gone) = (Vec::new(), Vec::new());
    for (path, open) in ledger.due() {
        match find::single(path) {
            Ok(resolve::Target::Session(file)) if !open || now - file.modified > QUIET => {
                all.push(file);
            }
            Ok(_) => {}
            Err(_) => gone.push(Note::Paid {
                path: path.to_owned(),
            }),
        }
    }
    // What is not there any more cannot be sent.
    let mut ledger = ledger;
    ledger.note(&gone).map_err(unusable)?;
    Ok(all)
}

fn open(world: &World, target: &Target) -> Result<Ledger, Failure> {
    Ledger::open(&world.data("sent"), target.key()).map_err(unusable)
}

/// Takes over what an older exporter noted, once.
fn adopt(world: &World, target: &Target, ledger: &mut Ledger) -> Result<(), Failure> {
    if target.login.is_none() || ledger.adopted() {
        return Ok(());
    }
    let mut notes = Vec::new();
    for dir in &world.dirs {
        let Ok(bytes) = fs::read(dir.join(before::FILE)) else {
            continue;
        };
        let sessions = before::read(&bytes).into_iter();
        notes.extend(sessions.map(|(session, lines)| Note::Before { session, lines }));
    }
    // Without any there is nothing to remember; one may still come.
    if notes.is_empty() {
        return Ok(());
    }
    notes.push(Note::Adopted);
    ledger.note(&notes).map_err(unusable)
}

fn patience(wishes: &Wishes) -> Patience {
    let set = environment("UNSPOOL_RETRY_SECONDS").and_then(|text| text.parse().ok());
    let long = set.unwrap_or(if wishes.patient { 600 } else { 60 });
    Patience {
        long: Duration::from_secs(long),
        ..Patience::default()
    }
}

/// Which of the sessions are in use, looked at once and only if somebody asks.
#[derive(Default)]
struct Watch(std::sync::OnceLock<Live>);

impl Watch {
    /// Whether an open last turn of this session may still go on.
    fn may_go_on(&self, world: &World, file: &SessionFile) -> bool {
        let now = world.now().0;
        if now - file.modified <= QUIET {
            return true;
        }
        let live = self.0.get_or_init(|| Live::look(&world.dirs, now));
        live.why(file).is_some()
    }
}

fn unusable(error: ledger::Error) -> Failure {
    Failure::failed(&error).hint(error.hint())
}

fn stopped(stopped: Stopped) -> Failure {
    Failure::failed(stopped.why).hint(stopped.hint)
}
