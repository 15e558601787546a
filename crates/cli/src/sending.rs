//! Sends sessions: what the receiver does not have yet, in order, each turn once.
//!
//! [`place`] reads from the environment where to; [`near`] knows which files repeat turns of
//! others; [`mark`] knows how far a long session was sent; [`choice`] decides what is to be sent; [`setting`] opens sessions for both [`sample`],
//! which only tells, and [`run`], which packs, sends and notes, several at once. What was taken is noted in the ledger, which is all that is remembered: a
//! receiver that was down for a day gets what it missed from the transcripts.

mod choice;
mod mark;
mod near;
mod place;
mod run;
mod sample;
mod setting;

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use unspool_model::time::Time;
use unspool_model::view::ready;
use unspool_send::before;
use unspool_send::deliver::Patience;
use unspool_send::ledger::{self, Ledger, Note};
use unspool_send::post::Stopped;
use unspool_send::target::Target;
use unspool_store::SessionFile;
use unspool_store::find;
use unspool_store::resolve;

use crate::failure::Failure;
use crate::world::World;
use choice::Choice;
use mark::Marks;

pub use near::oldest_first;
pub use place::{To, environment, target};
pub use place::{debug, wanted};
pub use sample::{Sample, sample};

/// How to send.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// Resend everything.
    pub full: bool,
    /// Include thinking.
    pub thinking: bool,
    /// Truncate texts after N characters.
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
    /// Turns of which it took nothing; they are sent again next time.
    pub refused: u64,
    /// Spans that the receiver does not take, and why.
    pub rejected: Vec<String>,
    /// Files that could not be read.
    pub warnings: Vec<String>,
}

impl Summary {
    fn count(&mut self, choice: &Choice) {
        self.sessions += u64::from(!choice.turns.is_empty());
        self.already += choice.already;
        self.elsewhere += choice.elsewhere;
        self.waiting += choice.waiting;
    }
}

/// Forgets what was kept to make sending faster and was not needed for long.
pub fn prune(data: &Path) {
    Marks::prune(&data.join("sent"), SystemTime::now());
}

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
    let now = world.now();
    let (mut all, mut gone) = (Vec::new(), Vec::new());
    for (path, open) in ledger.due() {
        match find::single(path) {
            Ok(resolve::Target::Session(file)) => {
                if ready::is_due(open, Time(file.modified), now) {
                    all.push(file);
                }
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
    let notes = older_notes(world, target, ledger);
    ledger.note(&notes).map_err(unusable)
}

/// What an older exporter noted, unless it was taken over. Without any there is nothing to
/// remember; one may still come.
fn older_notes(world: &World, target: &Target, ledger: &Ledger) -> Vec<Note> {
    let mut notes = Vec::new();
    if target.login.is_none() || ledger.adopted() {
        return notes;
    }
    for dir in &world.dirs {
        let Ok(bytes) = fs::read(dir.join(before::FILE)) else {
            continue;
        };
        let sessions = before::read(&bytes).into_iter();
        notes.extend(sessions.map(|(session, lines)| Note::Before { session, lines }));
    }
    if !notes.is_empty() {
        notes.push(Note::Adopted);
    }
    notes
}

fn patience(wishes: &Wishes) -> Patience {
    let set = environment("UNSPOOL_RETRY_SECONDS").and_then(|text| text.parse().ok());
    let long = set.unwrap_or(if wishes.patient { 600 } else { 60 });
    Patience {
        long: Duration::from_secs(long),
        ..Patience::default()
    }
}

fn unusable(error: ledger::Error) -> Failure {
    Failure::failed(&error).hint(error.hint())
}

fn stopped(stopped: Stopped) -> Failure {
    Failure::failed(stopped.why).hint(stopped.hint)
}
