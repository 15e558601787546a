//! Sends sessions: what the receiver does not have yet, in order, each turn once.
//!
//! [`place`] reads from the environment where to; [`near`] knows which files repeat turns of
//! others; [`mark`] knows how far a long session was sent; [`choice`] decides what is to be sent; [`setting`] opens sessions for both [`sample`],
//! which only tells, and [`run`], which packs, sends and notes, several at once. What was taken is noted in the ledger, which is all that is remembered: a
//! receiver that was down for a day gets what it missed from the transcripts.

mod resume_point;
mod send_context;
mod send_env;
mod send_preview;
mod send_run;
mod session_copies;
mod turns_to_send;

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use unspool_model::time::Time;
use unspool_model::view::turn_completion;
use unspool_send::deliver::RetryLimits;
use unspool_send::ledger::{self, LedgerNote, SendLedger};
use unspool_send::older_exporter;
use unspool_send::receiver::DeliveryStop;
use unspool_send::target::TraceTarget;
use unspool_store::SessionFile;
use unspool_store::find;
use unspool_store::resolve;

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;
use resume_point::ResumePointStore;
use turns_to_send::TurnsToSend;

pub use send_env::{ReceiverKind, environment, target};
pub use send_env::{hook_debug_enabled, hook_sending_enabled};
pub use send_preview::{SendPreview, preview_send};
pub use session_copies::oldest_first;

/// How to send.
#[derive(Clone, Debug, Default)]
pub struct SendOptions {
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
pub struct SendSummary {
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

impl SendSummary {
    fn count(&mut self, choice: &TurnsToSend) {
        self.sessions += u64::from(!choice.turns.is_empty());
        self.already += choice.already;
        self.elsewhere += choice.elsewhere;
        self.waiting += choice.waiting;
    }
}

/// Forgets what was kept to make sending faster and was not needed for long.
pub fn prune(data: &Path) {
    ResumePointStore::prune(&data.join("sent"), SystemTime::now());
}

/// Sends what the receiver does not have yet of these sessions, which come in this order.
pub fn deliver(
    world: &CommandContext,
    target: &TraceTarget,
    sessions: &[SessionFile],
    wishes: &SendOptions,
) -> Result<SendSummary, CommandFailure> {
    let mut ledger = open(world, target)?;
    adopt(world, target, &mut ledger)?;
    send_run::run(world, target, ledger, sessions, wishes)
}

/// Sessions of earlier calls that still have something to send.
pub fn due(
    world: &CommandContext,
    target: &TraceTarget,
) -> Result<Vec<SessionFile>, CommandFailure> {
    let ledger = open(world, target)?;
    let now = world.now();
    let (mut all, mut gone) = (Vec::new(), Vec::new());
    for (path, open) in ledger.due() {
        match find::find_named_file(path) {
            Ok(resolve::SessionTarget::Session(file)) => {
                if turn_completion::is_due(open, Time(file.modified), now) {
                    all.push(file);
                }
            }
            Ok(_) => {}
            Err(_) => gone.push(LedgerNote::Paid {
                path: path.to_owned(),
            }),
        }
    }
    // What is not there any more cannot be sent.
    let mut ledger = ledger;
    ledger.note(&gone).map_err(unusable)?;
    Ok(all)
}

fn open(world: &CommandContext, target: &TraceTarget) -> Result<SendLedger, CommandFailure> {
    SendLedger::open(&world.data("sent"), target.key()).map_err(unusable)
}

/// Takes over what an older exporter noted, once.
fn adopt(
    world: &CommandContext,
    target: &TraceTarget,
    ledger: &mut SendLedger,
) -> Result<(), CommandFailure> {
    let notes = older_notes(world, target, ledger);
    ledger.note(&notes).map_err(unusable)
}

/// What an older exporter noted, unless it was taken over. Without any there is nothing to
/// remember; one may still come.
fn older_notes(
    world: &CommandContext,
    target: &TraceTarget,
    ledger: &SendLedger,
) -> Vec<LedgerNote> {
    let mut notes = Vec::new();
    if target.login.is_none() || ledger.adopted() {
        return notes;
    }
    for dir in &world.dirs {
        let Ok(bytes) = fs::read(dir.join(older_exporter::FILE)) else {
            continue;
        };
        let sessions = older_exporter::read(&bytes).into_iter();
        notes.extend(sessions.map(|(session, lines)| LedgerNote::Before { session, lines }));
    }
    if !notes.is_empty() {
        notes.push(LedgerNote::Adopted);
    }
    notes
}

fn patience(wishes: &SendOptions) -> RetryLimits {
    let set = environment("UNSPOOL_RETRY_SECONDS").and_then(|text| text.parse().ok());
    let long = set.unwrap_or(if wishes.patient { 600 } else { 60 });
    RetryLimits {
        long: Duration::from_secs(long),
        ..RetryLimits::default()
    }
}

fn unusable(error: ledger::LedgerError) -> CommandFailure {
    CommandFailure::failed(&error).hint(error.hint())
}

fn stopped(stopped: DeliveryStop) -> CommandFailure {
    CommandFailure::failed(stopped.why).hint(stopped.hint)
}
