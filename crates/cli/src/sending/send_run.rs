//! Reads, packs, sends and notes, several sessions at once.
//!
//! Every worker takes the next session: reads it, waits until all sessions before it have said
//! which turns are theirs, and packs its own. A worker has one packer, so that small sessions
//! share requests, and sends its requests one after the other: what a session holds arrives in
//! order. No more is in memory than a session and a request per worker.
//!
//! A session that another process is sending at this moment comes last, when nothing is held
//! that somebody else could wait for.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use unspool_send::deliver::{RejectedSpans, TraceDelivery};
use unspool_send::ledger::{LedgerNote, ReceiverKey, SendClaim, SendLedger};
use unspool_send::otlp::{OtlpLimits, OtlpPacker, OtlpRequest, OtlpResource, TextAttributes};
use unspool_send::receiver::{DeliveryStop, HttpReceiver};
use unspool_send::target::TraceTarget;
use unspool_send::trace_id::{SpanId, TraceId};
use unspool_store::parallel;
use unspool_store::{SessionFile, StoreError};

use super::resume_point::{self, ResumePoint, ResumePointStore};
use super::send_context::{SendContext, SessionReadToSend, SessionWithTraces};
use super::send_env::{self, environment};
use super::turns_to_send::{self, TraceOwners, TurnTraceSummary, TurnsToSend};
use super::{SendOptions, SendSummary, patience, stopped, unusable};
use crate::command_context::CommandContext;
use crate::failure::CommandFailure;
use crate::progress_bar::ProgressBar;

/// Above so many bytes more than one worker is worth it.
const SMALL: u64 = 8 << 20;

/// A worker holds no more sessions than this before it sends what it has.
const HELD: usize = 64;

/// More workers than this only wait for the receiver.
const WORKERS: usize = 4;

/// Sends these sessions, in this order.
pub(super) fn run(
    world: &CommandContext,
    target: &TraceTarget,
    ledger: SendLedger,
    files: &[SessionFile],
    wishes: &SendOptions,
) -> Result<SendSummary, CommandFailure> {
    let http = HttpReceiver::new(target.clone()).map_err(stopped)?;
    let courier = TraceDelivery::new(&http, patience(wishes));
    let setting = SendContext::new(world, wishes, files);
    let bar = ProgressBar::new(&world.ui, "sending");
    let run = SendRun {
        setting: &setting,
        wishes,
        files,
        key: target.key(),
        marks: marks_from(wishes)
            .map(|from| ResumePointStore::new(&world.data("sent"), target.key(), from)),
        locks: world.data("sent"),
        limits: limits(target),
        resource: send_env::resource(&environment, setting.facts.host.clone()),
        courier: &courier,
        bar: wishes.bar.then(|| Mutex::new(bar)),
        all: files.iter().map(|file| file.bytes).sum(),
        next: AtomicUsize::new(0),
        shared: Mutex::new(SendRunState {
            summary: SendSummary {
                warnings: damage(&ledger),
                ..SendSummary::default()
            },
            ledger,
            owners: TraceOwners::default(),
            turn: 0,
            claims: HashMap::new(),
            later: Vec::new(),
            left: vec![true; files.len()],
            failure: None,
        }),
        done: AtomicU64::new(0),
        turned: Condvar::new(),
    };
    run.all()
}

/// From how many bytes on a session is read from its mark; `None`: all of it, always. Who ends
/// a session, and who is asked by a person, looks at everything; a variable changes that for
/// trials.
fn marks_from(wishes: &SendOptions) -> Option<u64> {
    let trial = environment("UNSPOOL_MARKS").and_then(|bytes| bytes.parse().ok());
    let hurried = wishes.patient && !wishes.ended && !wishes.full;
    trial.or(hurried.then_some(resume_point::LARGE))
}

fn damage(ledger: &SendLedger) -> Vec<String> {
    let lines = ledger.damaged();
    let told = format!("skipped {lines} damaged lines of the ledger");
    (lines > 0).then_some(told).into_iter().collect()
}

fn limits(target: &TraceTarget) -> OtlpLimits {
    let texts = if target.login.is_some() {
        // Who knows Langfuse's names needs the long texts under no others.
        TextAttributes {
            langfuse: true,
            gen_ai: false,
            open_inference: false,
        }
    } else {
        TextAttributes::default()
    };
    OtlpLimits {
        texts,
        ..OtlpLimits::default()
    }
}

struct SendRun<'a> {
    setting: &'a SendContext<'a>,
    wishes: &'a SendOptions,
    files: &'a [SessionFile],
    key: ReceiverKey,
    /// How far sessions were sent, if that is to be believed.
    marks: Option<ResumePointStore>,
    locks: PathBuf,
    limits: OtlpLimits,
    resource: OtlpResource,
    courier: &'a TraceDelivery<'a>,
    bar: Option<Mutex<ProgressBar>>,
    all: u64,
    /// Bytes of transcripts that are done, of all.
    done: AtomicU64,
    next: AtomicUsize,
    shared: Mutex<SendRunState>,
    turned: Condvar,
}

struct SendRunState {
    ledger: SendLedger,
    owners: TraceOwners,
    /// The session whose turn it is to say what is its own.
    turn: usize,
    /// Locks that this process holds, and for how many sessions.
    claims: HashMap<u8, (SendClaim, usize)>,
    summary: SendSummary,
    /// Sessions that somebody else is sending.
    later: Vec<usize>,
    /// Sessions that are not done.
    left: Vec<bool>,
    failure: Option<CommandFailure>,
}

/// Nothing more is to be done; why is known.
struct SendStopped;

/// What a worker has not been told of as taken.
struct UnconfirmedSends {
    packer: OtlpPacker,
    pending: PendingTurns,
    sessions: Vec<PackedSession>,
}

/// Turns of which something is still to be sent.
#[derive(Default)]
struct PendingTurns {
    turns: HashMap<TraceId, PendingTurn>,
    /// Sessions with a turn of which nothing was taken.
    refused: HashSet<usize>,
}

/// A turn that is being sent.
struct PendingTurn {
    /// What to note when it is taken: what it holds before that it was sent, or a writer who is
    /// killed between the two would leave a turn of which that is not known.
    notes: [LedgerNote; 2],
    /// The session it is sent for.
    at: usize,
    /// Something of it was taken.
    taken: bool,
}

impl PendingTurns {
    /// Some spans were sent, and some of them were not taken.
    fn sent(&mut self, spans: &[(TraceId, SpanId)], rejected: &[RejectedSpans]) {
        let lost = rejected.iter().flat_map(|one| &one.spans);
        let lost: HashSet<&(TraceId, SpanId)> = lost.collect();
        for (trace, _) in spans.iter().filter(|span| !lost.contains(span)) {
            if let Some(turn) = self.turns.get_mut(trace) {
                turn.taken = true;
            }
        }
    }

    /// What to note of traces that were sent whole, how many were taken, and how many nobody took.
    /// Those are sent again next time: a receiver that was set up wrong has lost nothing.
    fn whole(&mut self, ends: &[TraceId]) -> (Vec<LedgerNote>, u64, u64) {
        let (mut notes, mut taken, mut refused) = (Vec::new(), 0, 0);
        for turn in ends.iter().filter_map(|id| self.turns.remove(id)) {
            if turn.taken {
                notes.extend(turn.notes);
                taken += 1;
            } else {
                self.refused.insert(turn.at);
                refused += 1;
            }
        }
        (notes, taken, refused)
    }
}

/// A session whose last span is packed.
struct PackedSession {
    at: usize,
    /// Its lock.
    slot: u8,
    /// Something waits in it.
    owed: bool,
    /// How far it was sent, once all of it is taken.
    mark: Option<ResumePoint>,
}

impl SendRun<'_> {
    fn all(self) -> Result<SendSummary, CommandFailure> {
        let workers = match self.all {
            0..=SMALL => 1,
            _ => parallel::threads()
                .clamp(2, WORKERS)
                .min(self.files.len().max(1)),
        };
        std::thread::scope(|scope| {
            for _ in 1..workers {
                scope.spawn(|| self.work());
            }
            self.work();
        });
        self.late();
        self.finish()
    }

    fn work(&self) {
        let mut hold = self.hold();
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            if at >= self.files.len() {
                break;
            }
            let claimed = self.claim(at);
            let sent = self.session(at, Some(at), claimed, &mut hold);
            self.pass(at);
            if sent.is_err() {
                return;
            }
        }
        let _ = self.flush(&mut hold);
    }

    /// Sessions that another process was sending, one after the other.
    fn late(&self) {
        let later = std::mem::take(&mut self.lock().later);
        for at in later {
            let mut hold = self.hold();
            let slot = SendClaim::slot(self.key, &self.files[at].id);
            match SendClaim::wait(&self.locks, slot) {
                Ok(claim) => drop(self.lock().claims.insert(slot, (claim, 1))),
                Err(error) => return drop(self.fail(unusable(error))),
            }
            let sent = self.session(at, None, Some(slot), &mut hold);
            if sent.and_then(|()| self.flush(&mut hold)).is_err() {
                return;
            }
        }
    }

    fn hold(&self) -> UnconfirmedSends {
        UnconfirmedSends {
            packer: OtlpPacker::new(self.limits, &self.resource),
            pending: PendingTurns::default(),
            sessions: Vec::new(),
        }
    }

    /// The lock of a session, unless another process has it.
    fn claim(&self, at: usize) -> Option<u8> {
        let slot = SendClaim::slot(self.key, &self.files[at].id);
        let mut shared = self.lock();
        if let Some((_, times)) = shared.claims.get_mut(&slot) {
            *times += 1;
            return Some(slot);
        }
        match SendClaim::attempt(&self.locks, slot) {
            Ok(Some(claim)) => {
                shared.claims.insert(slot, (claim, 1));
                Some(slot)
            }
            Ok(None) => None,
            Err(error) => {
                drop(shared);
                let _ = self.fail(unusable(error));
                None
            }
        }
    }

    fn release(shared: &mut SendRunState, slot: u8) {
        if let Some((_, times)) = shared.claims.get_mut(&slot) {
            *times -= 1;
            if *times == 0 {
                shared.claims.remove(&slot);
            }
        }
    }

    /// One session, as far as it has something to send. `order` is its place in the row of
    /// those who say what is theirs.
    fn session(
        &self,
        at: usize,
        order: Option<usize>,
        claimed: Option<u8>,
        hold: &mut UnconfirmedSends,
    ) -> Result<(), SendStopped> {
        let file = &self.files[at];
        let read = match self.read(file) {
            Ok(read) => read,
            Err(error) => {
                let mut shared = self.lock();
                shared.summary.warnings.push(error.to_string());
                if let Some(slot) = claimed {
                    Self::release(&mut shared, slot);
                }
                shared.left[at] = false;
                return self.check(&shared);
            }
        };
        let mut opened = self.setting.open(file, &read);
        let known =
            |heads: &[TurnTraceSummary]| turns_to_send::are_known(heads, &self.lock().ledger);
        let older = self.setting.older(&opened, known);
        let mut shared = self.wait(order);
        self.check(&shared)?;
        if let Err(error) = shared.ledger.refresh() {
            drop(shared);
            return self.fail(unusable(error));
        }
        let SendRunState { ledger, owners, .. } = &mut *shared;
        let skip = claimed.is_none();
        let choice = self
            .setting
            .choose(&mut opened, &older, skip, ledger, owners);
        let warnings = read.family.warnings.iter().map(ToString::to_string);
        shared.summary.warnings.extend(warnings);
        let Some(slot) = claimed else {
            shared.later.push(at);
            return Ok(());
        };
        shared.summary.count(&choice);
        drop(shared);
        if let Some(order) = order {
            self.pass(order);
        }
        self.pack(at, &opened, &choice, hold)?;
        let marks = self.marks.as_ref();
        let mark = marks.and_then(|marks| marks.next(&opened, self.setting.settled(&opened)));
        hold.sessions.push(PackedSession {
            at,
            slot,
            owed: choice.owed,
            mark,
        });
        if hold.sessions.len() >= HELD || order.is_none() {
            self.flush(hold)?;
        }
        Ok(())
    }

    /// Reads a session: what stands behind its mark, or all of it.
    fn read(&self, file: &SessionFile) -> Result<SessionReadToSend, StoreError> {
        let mark = self.marks.as_ref();
        let mark = mark.and_then(|marks| marks.find(file, &self.lock().ledger));
        match mark.and_then(|mark| self.setting.read_rest(file, mark)) {
            Some(read) => Ok(read),
            None => self.setting.read(file),
        }
    }

    fn pack(
        &self,
        at: usize,
        opened: &SessionWithTraces<'_>,
        choice: &TurnsToSend,
        hold: &mut UnconfirmedSends,
    ) -> Result<(), SendStopped> {
        let bytes = self.files[at].bytes;
        let share = bytes / (choice.turns.len() as u64 + 1);
        for (head, trace) in opened.chosen(choice) {
            let held = LedgerNote::Held {
                trace: head.id,
                spans: turns_to_send::below(&trace).map(|(span, _)| span).collect(),
            };
            let sent = LedgerNote::Sent {
                trace: head.id,
                digest: head.digest,
                spans: head.spans,
                session: trace.session.as_str().into(),
            };
            let turn = PendingTurn {
                notes: [held, sent],
                at,
                taken: false,
            };
            hold.pending.turns.insert(head.id, turn);
            let UnconfirmedSends {
                packer, pending, ..
            } = hold;
            packer.add(&opened.traces, &trace, &mut |batch| {
                self.post(batch, pending)
            })?;
            self.progress(share);
        }
        self.progress(bytes - share * choice.turns.len() as u64);
        Ok(())
    }

    /// Sends one request and notes what is whole with it.
    fn post(&self, batch: OtlpRequest, pending: &mut PendingTurns) -> Result<(), SendStopped> {
        let ends = batch.ends().to_vec();
        let spans = batch.spans().to_vec();
        let rejected = match self.courier.deliver(batch) {
            Ok(rejected) => rejected,
            Err(why) => return self.fail(stopped(why)),
        };
        pending.sent(&spans, &rejected);
        let (notes, taken, refused) = pending.whole(&ends);
        let mut shared = self.lock();
        if let Err(error) = shared.ledger.note(&notes) {
            drop(shared);
            return self.fail(unusable(error));
        }
        let lost: u64 = rejected.iter().map(|one| one.count).sum();
        shared.summary.turns += taken;
        shared.summary.refused += refused;
        shared.summary.spans += (spans.len() as u64).saturating_sub(lost);
        let told = rejected.iter().map(refusal);
        shared.summary.rejected.extend(told);
        Ok(())
    }

    /// Sends what is packed. Then the sessions in it are done.
    fn flush(&self, hold: &mut UnconfirmedSends) -> Result<(), SendStopped> {
        if let Some(batch) = hold.packer.finish() {
            self.post(batch, &mut hold.pending)?;
        }
        // All that was taken is in the ledger now, and nobody else is at these sessions.
        let refused = std::mem::take(&mut hold.pending.refused);
        for PackedSession { at, mark, .. } in &hold.sessions {
            if refused.contains(at) {
                continue;
            }
            if let (Some(marks), Some(mark)) = (&self.marks, mark) {
                marks.keep(&self.files[*at], mark);
            }
        }
        let mut notes = Vec::new();
        let mut shared = self.lock();
        let due: HashMap<PathBuf, bool> = match hold.sessions.is_empty() {
            true => HashMap::new(),
            false => shared
                .ledger
                .due()
                .map(|(path, open)| (path.to_owned(), open))
                .collect(),
        };
        for PackedSession { at, slot, owed, .. } in hold.sessions.drain(..) {
            let path = &self.files[at].path;
            let known = due.get(path);
            let refused = refused.contains(&at);
            if refused && self.wishes.patient && known != Some(&false) {
                notes.push(LedgerNote::Due {
                    path: path.clone(),
                    open: false,
                });
            } else if owed && self.wishes.patient && known != Some(&true) {
                notes.push(LedgerNote::Due {
                    path: path.clone(),
                    open: true,
                });
            } else if !owed && !refused && known.is_some() {
                notes.push(LedgerNote::Paid { path: path.clone() });
            }
            Self::release(&mut shared, slot);
            shared.left[at] = false;
        }
        let noted = shared.ledger.note(&notes);
        drop(shared);
        match noted {
            Ok(()) => Ok(()),
            Err(error) => self.fail(unusable(error)),
        }
    }

    /// So many bytes more are done.
    fn progress(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // Who finds somebody else drawing need not draw.
        if let Some(Ok(mut bar)) = self.bar.as_ref().map(Mutex::try_lock) {
            bar.show(done, self.all);
        }
    }

    /// Waits until all before have said what is theirs.
    fn wait(&self, order: Option<usize>) -> MutexGuard<'_, SendRunState> {
        let mut shared = self.lock();
        while let Some(order) = order
            && shared.turn < order
            && shared.failure.is_none()
        {
            let waited = self.turned.wait(shared);
            shared = waited.unwrap_or_else(PoisonError::into_inner);
        }
        shared
    }

    /// The next one may say what is its own.
    fn pass(&self, order: usize) {
        let mut shared = self.lock();
        shared.turn = shared.turn.max(order + 1);
        drop(shared);
        self.turned.notify_all();
    }

    fn check(&self, shared: &SendRunState) -> Result<(), SendStopped> {
        match shared.failure {
            Some(_) => Err(SendStopped),
            None => Ok(()),
        }
    }

    /// Ends everything. The first reason is the one that is told.
    fn fail(&self, failure: CommandFailure) -> Result<(), SendStopped> {
        self.lock().failure.get_or_insert(failure);
        self.courier.halt(DeliveryStop {
            why: "stopped".to_owned(),
            hint: String::new(),
        });
        self.turned.notify_all();
        Err(SendStopped)
    }

    fn lock(&self) -> MutexGuard<'_, SendRunState> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(self) -> Result<SendSummary, CommandFailure> {
        let (bytes, requests) = self.courier.counts();
        let shared = self.shared.into_inner();
        let mut shared = shared.unwrap_or_else(PoisonError::into_inner);
        (shared.summary.bytes, shared.summary.requests) = (bytes, requests);
        let Some(failure) = shared.failure else {
            return Ok(shared.summary);
        };
        if self.wishes.patient {
            let files = self.files.iter().zip(&shared.left);
            let due = files
                .filter(|(_, left)| **left)
                .map(|(file, _)| LedgerNote::Due {
                    path: file.path.clone(),
                    open: false,
                });
            // If this fails too, the next event of the session brings it back.
            let _ = shared.ledger.note(&due.collect::<Vec<_>>());
        }
        Err(failure)
    }
}

fn refusal(rejected: &RejectedSpans) -> String {
    let what = match &rejected.spans[..] {
        [(trace, span)] => format!("span {span} of trace {trace}"),
        _ => format!("{} spans", rejected.count),
    };
    format!("{what}: {}", rejected.why)
}
