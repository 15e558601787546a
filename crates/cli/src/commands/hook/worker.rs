//! The work behind an event, in a process of its own: wait for the transcript, find what belongs
//! to it, send.
//!
//! A job stands in a file until it is done, so that nothing is forgotten when the worker is
//! killed: whoever works next does it too. Of several workers for one session one works, one
//! waits and takes whatever has come by then, and the others have nothing to do.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File, TryLockError};
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use unspool_model::hook_events::HookEvent;
use unspool_send::ledger::ReceiverKey;
use unspool_send::receiver;
use unspool_send::target::TraceTarget;
use unspool_show::format;
use unspool_show::wire::hook::HookSendingRow;
use unspool_store::find::{self, SessionFile};
use unspool_store::resolve;
use unspool_store::wait_for_flush::{self, FlushOutcome, FlushWaitLimits};
use unspool_store::{open, own_file};

use super::detached_process;
use super::hook_files::{HookFiles, HookJob};
use super::hook_log::HookLog;
use crate::args::GlobalArgs;
use crate::command_context::CommandContext;
use crate::commands;
use crate::failure::CommandFailure;
use crate::sending::{self, ReceiverKind, SendOptions, SendSummary};

/// Who sends sessions.
pub trait SessionSender {
    /// Sends what the receiver does not have yet. `ended`: they are over, so that a turn without
    /// an end goes as it is. What was done in words, and how many turns are still open.
    fn send(&self, sessions: &[SessionFile], ended: bool) -> Result<(String, u64), String>;

    /// Sessions of earlier times that still have something to send.
    fn due(&self) -> Vec<SessionFile>;

    /// Stands for whoever gets them.
    fn receiver(&self) -> String;
}

/// Whether sessions are to be sent, and can be. What is missing is said in the log.
pub fn is_wanted(log: &HookLog) -> bool {
    let outlook = sending_status(&sending::environment);
    match (outlook.wanted, outlook.ready) {
        (false, _) => log.debug(&outlook.why),
        (true, false) => log.error(&format!("cannot send: {}", outlook.why)),
        (true, true) => {}
    }
    outlook.ready
}

/// Whether sessions would be sent, given these variables.
pub fn sending_status(variable: &dyn Fn(&str) -> Option<String>) -> HookSendingRow {
    let wanted = sending::hook_sending_enabled(variable);
    let target = sending::target(ReceiverKind::Langfuse, variable);
    HookSendingRow {
        wanted,
        ready: wanted && target.is_ok(),
        why: match target {
            _ if !wanted => "TRACE_TO_LANGFUSE is not `true`".to_owned(),
            Ok(target) => format!("to {}", receiver::address_without_login(&target.address)),
            Err(why) => told(why),
        },
    }
}

/// Sends to where the environment says.
struct LangfuseSender<'a> {
    world: CommandContext,
    target: TraceTarget,
    log: &'a HookLog,
}

impl<'a> LangfuseSender<'a> {
    fn new(desk: &'a HookFiles, global: &GlobalArgs) -> Result<LangfuseSender<'a>, String> {
        Ok(LangfuseSender {
            world: commands::build_context(global).map_err(told)?,
            target: sending::target(ReceiverKind::Langfuse, &sending::environment).map_err(told)?,
            log: &desk.log,
        })
    }
}

impl SessionSender for LangfuseSender<'_> {
    fn send(&self, sessions: &[SessionFile], ended: bool) -> Result<(String, u64), String> {
        let wishes = SendOptions {
            ended,
            patient: true,
            ..SendOptions::default()
        };
        let summary = sending::deliver(&self.world, &self.target, sessions, &wishes);
        let summary = summary.map_err(told)?;
        for why in summary.rejected.iter().chain(&summary.warnings) {
            self.log.warn(why);
        }
        Ok((words(&summary), summary.waiting))
    }

    fn receiver(&self) -> String {
        let ReceiverKey(key) = self.target.key();
        format!("{:016x}", u64::from_be_bytes(key))
    }

    fn due(&self) -> Vec<SessionFile> {
        sending::due(&self.world, &self.target).unwrap_or_else(|why| {
            self.log.warn(&told(why));
            Vec::new()
        })
    }
}

fn words(summary: &SendSummary) -> String {
    let turns = format::count(summary.turns, "turn");
    let spans = format::count(summary.spans, "span");
    let mut words = format!("{turns} and {spans} sent");
    for (count, what) in [
        (summary.already, "already sent"),
        (summary.elsewhere, "part of an older session"),
        (summary.waiting, "unfinished"),
        (summary.refused, "rejected"),
    ] {
        if count > 0 {
            words += &format!(", {} {what}", format::grouped(count));
        }
    }
    words
}

/// A failure on one line.
fn told(failure: CommandFailure) -> String {
    match failure {
        CommandFailure::Nothing(told) | CommandFailure::Failed(told) => match told.hint {
            Some(hint) => format!("{}; {hint}", told.message),
            None => told.message,
        },
        CommandFailure::Found | CommandFailure::Code(_) | CommandFailure::Closed => {
            "interrupted".to_owned()
        }
    }
}

/// Does the job in this file, with all others of its session.
pub fn run(desk: &HookFiles, global: &GlobalArgs, file: &Path) -> Result<(), String> {
    detached_process::lower_priority();
    let sender = LangfuseSender::new(desk, global)?;
    work(desk, file, &FlushWaitLimits::default(), &sender)
}

fn work(
    desk: &HookFiles,
    file: &Path,
    patience: &FlushWaitLimits,
    sender: &dyn SessionSender,
) -> Result<(), String> {
    let Some(own) = HookFiles::key(file) else {
        return Err(format!("`{}` is not a hook job", file.display()));
    };
    let slot = slot(&own);
    let Some(_turn) =
        SessionWorkLock::take(desk, slot).map_err(|why| format!("cannot lock: {why}"))?
    else {
        desk.log
            .debug(&format!("another worker waits to send {own}"));
        return Ok(());
    };
    let mut keys = desk.keys();
    keys.retain(|key| self::slot(key) == slot);
    let mut done = Ok(());
    for key in &keys {
        let sent = finish(desk, key, patience, sender);
        done = done.and(sent);
    }
    // Nothing of ours is left where the one before has done it.
    if done.is_ok() && keys.contains(&own) {
        done = take_over(desk, slot, sender);
    }
    done
}

/// Does all jobs of one session. One stays where they could not be done.
fn finish(
    desk: &HookFiles,
    key: &str,
    patience: &FlushWaitLimits,
    sender: &dyn SessionSender,
) -> Result<(), String> {
    let began = Instant::now();
    let files = desk.jobs(key);
    let jobs: Vec<&HookJob> = files.iter().filter_map(|(_, job)| job.as_ref()).collect();
    let sent = match jobs.last() {
        Some(last) => attend(desk, &jobs, last, patience, sender),
        // Written by somebody who died over it.
        None => Ok(()),
    };
    clear(&files[..files.len() - usize::from(sent.is_err())]);
    let seconds = began.elapsed().as_secs();
    if seconds > SLOW {
        desk.log.warn(&format!("sending {key} took {seconds} s"));
    }
    sent
}

/// A run that took longer, in seconds, is worth a word.
const SLOW: u64 = 180;

fn clear(files: &[(PathBuf, Option<HookJob>)]) {
    for (path, _) in files {
        let _ = fs::remove_file(path);
    }
}

/// Sends a session after what was told of it, and the sessions it went on from.
fn attend(
    desk: &HookFiles,
    jobs: &[&HookJob],
    last: &HookJob,
    patience: &FlushWaitLimits,
    sender: &dyn SessionSender,
) -> Result<(), String> {
    let settled = wait(desk, jobs, patience);
    let name = format!("{} of {}", last.event, last.session);
    let own: Vec<SessionFile> = session(&last.transcript).into_iter().collect();
    if own.is_empty() && !last.is_begin() {
        desk.log.warn(&format!(
            "{name}: no such transcript: `{}`",
            last.transcript.display()
        ));
    }
    let open = send(desk, &name, &own, last.is_end(), sender)?;
    if open > 0 && settled == FlushOutcome::Impatient {
        wait(desk, jobs, patience);
        send(desk, &name, &own, last.is_end(), sender)?;
    }
    earlier(desk, last, sender)?;
    if last.is_begin() {
        desk.prune();
        sending::prune(&desk.own.data);
        let left = left_without_a_word(desk, last);
        let name = format!("{} that ended without an event", sessions(&left));
        send(desk, &name, &left, false, sender)?;
    }
    Ok(())
}

/// Sends the sessions that this one went on from, unless that was done and they are as they
/// were then. They ended without a word.
fn earlier(desk: &HookFiles, job: &HookJob, sender: &dyn SessionSender) -> Result<(), String> {
    let kept = desk.before(&job.session);
    let mut memory = kept.clone();
    let receiver = sender.receiver();
    let mut chain = memory.chain(&job.transcript);
    chain.retain(|path| !memory.is_processed(path, &receiver));
    // What is written while they are sent is not sent.
    let then: Vec<_> = chain
        .iter()
        .map(|path| open::stat_regular_file(path))
        .collect();
    let before: Vec<SessionFile> = chain.iter().filter_map(|path| session(path)).collect();
    let name = format!("{} before {}", sessions(&before), job.session);
    let sent = send(desk, &name, &before, true, sender);
    if sent.is_ok() {
        for (path, then) in chain.iter().zip(&then) {
            if let Ok(then) = then {
                memory.mark_processed(path, then, &receiver);
            }
        }
    }
    if memory != kept
        && memory.is_worth_keeping()
        && let Err(why) = desk.keep_before(&job.session, &memory)
    {
        // It is only slower without.
        desk.log
            .warn(&format!("cannot save the cache of earlier sessions: {why}"));
    }
    sent.map(drop)
}

fn sessions(all: &[SessionFile]) -> String {
    format::count(all.len() as u64, "session")
}

/// Waits until what was told is in the transcripts.
fn wait(desk: &HookFiles, jobs: &[&HookJob], patience: &FlushWaitLimits) -> FlushOutcome {
    let began = Instant::now();
    let mut worst = FlushOutcome::Said;
    // The newest is the last to be written, so the others are there by then.
    let mut seen = HashSet::new();
    for job in jobs.iter().rev().filter(|job| !job.is_begin()) {
        // A file that is quiet is quiet for all who only ask for that.
        if !seen.insert((&job.spoken_in, &job.said)) {
            continue;
        }
        let left = patience.limit.saturating_sub(began.elapsed());
        let patience = FlushWaitLimits {
            limit: left,
            ..*patience
        };
        let settled = wait_for_flush::wait(&job.spoken_in, job.said.as_deref(), &patience);
        desk.log.debug(&format!(
            "{} of {}: {settled:?} after {} ms",
            job.event,
            job.session,
            began.elapsed().as_millis()
        ));
        if settled == FlushOutcome::Impatient {
            worst = settled;
        }
        if left.is_zero() {
            break;
        }
    }
    worst
}

fn send(
    desk: &HookFiles,
    name: &str,
    sessions: &[SessionFile],
    ended: bool,
    sender: &dyn SessionSender,
) -> Result<u64, String> {
    if sessions.is_empty() {
        return Ok(0);
    }
    match sender.send(sessions, ended) {
        Ok((words, open)) => {
            desk.log.info(&format!("{name}: {words}"));
            Ok(open)
        }
        Err(why) => Err(format!("{name}: {why}")),
    }
}

/// What others left undone: jobs of workers that were killed, and what could not be sent then.
fn take_over(desk: &HookFiles, slot: u64, sender: &dyn SessionSender) -> Result<(), String> {
    let left = desk.left(|key| self::slot(key) != slot);
    let jobs = left.iter().filter_map(|(_, job)| job.as_ref());
    let mut sessions: Vec<SessionFile> = Vec::new();
    let found = jobs.filter_map(|job| session(&job.transcript));
    for file in found.chain(sender.due()) {
        if !sessions.iter().any(|known| known.path == file.path) {
            sessions.push(file);
        }
    }
    let name = format!("{} left over", self::sessions(&sessions));
    send(desk, &name, &sessions, false, sender)?;
    clear(&left);
    Ok(())
}

/// Sessions beside this one that were written to after they last told us anything: their client
/// was killed.
fn left_without_a_word(desk: &HookFiles, job: &HookJob) -> Vec<SessionFile> {
    /// Clients write a little after each event, in milliseconds.
    const AFTER: i64 = 10_000;
    /// Not more than so many are looked at.
    const MOST: usize = 20;
    let beside = |path: &Path| path.parent() == job.transcript.parent();
    let mut left = Vec::new();
    for noted in desk.events.all() {
        let Some(path) = noted.transcript.filter(|path| beside(path)) else {
            continue;
        };
        if noted.session == job.session || left.len() >= MOST {
            continue;
        }
        let recent = desk.events.recent(&noted.session);
        let is_sent = |name: &str| {
            let name = name.to_owned();
            HookEvent {
                name,
                ..HookEvent::default()
            }
            .is_sent()
        };
        let sent = recent.iter().rev().find(|one| is_sent(&one.event));
        let sent = sent.map_or(i64::MIN, |one| one.at);
        let written = open::stat_regular_file(&path).map(|metadata| open::modified(&metadata));
        if written.is_ok_and(|written| written > sent.saturating_add(AFTER)) {
            left.extend(session(&path));
        }
    }
    left
}

fn session(path: &Path) -> Option<SessionFile> {
    match find::find_named_file(path) {
        Ok(resolve::SessionTarget::Session(file)) => Some(file),
        _ => None,
    }
}

/// The right to work for a session.
struct SessionWorkLock {
    _run: File,
}

/// Sessions share locks, so that there are only so many; who has one works for all that share it.
const LOCKS: u64 = 64;

fn slot(key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish() % LOCKS
}

impl SessionWorkLock {
    /// Waits for it; nothing if somebody waits already, who will see what we have seen.
    fn take(desk: &HookFiles, slot: u64) -> io::Result<Option<SessionWorkLock>> {
        let folder = desk.place("locks");
        own_file::make_folder(&folder)?;
        let lock = |name: &str| own_file::open_or_create(&folder.join(format!("{slot:02}.{name}")));
        let (next, run) = (lock("next")?, lock("run")?);
        if let Err(TryLockError::WouldBlock) = next.try_lock() {
            return Ok(None);
        }
        // Where the disk knows no locks, two at once are slow but do no harm.
        let _ = run.lock();
        Ok(Some(SessionWorkLock { _run: run }))
    }
}
