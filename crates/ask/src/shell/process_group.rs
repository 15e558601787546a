//! Commands and all they started, ended together.
//!
//! A group of its own does not hear when a person interrupts us, so we pass it on.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// The groups that run.
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());

fn running() -> MutexGuard<'static, Vec<u32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A group that runs until its first process is over.
#[derive(Debug)]
pub struct CommandGroup(u32);

impl CommandGroup {
    /// The group of a process that leads one.
    pub fn enter(leader: u32) -> CommandGroup {
        running().push(leader);
        CommandGroup(leader)
    }

    /// How its leader ended, if it did.
    pub fn ended(&self, child: &mut Child) -> Option<ExitStatus> {
        // Nobody may signal a number that is free for others by now.
        let mut running = running();
        let status = child.try_wait().ok().flatten();
        if status.is_some() {
            running.retain(|one| *one != self.0);
        }
        status
    }

    /// Ends it.
    pub fn kill(&self, child: &mut Child) {
        end(self.0, TerminationForce::Kill);
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for CommandGroup {
    fn drop(&mut self) {
        running().retain(|one| *one != self.0);
    }
}

/// From now on, what interrupts us ends all groups first.
pub fn end_with_us() {
    static ONCE: Once = Once::new();
    ONCE.call_once(watch);
}

#[derive(Clone, Copy)]
enum TerminationForce {
    Ask,
    Kill,
}

#[cfg(not(unix))]
fn watch() {}

#[cfg(not(unix))]
fn end(_: u32, _: TerminationForce) {}

#[cfg(unix)]
fn end(leader: u32, force: TerminationForce) {
    use nix::sys::signal::{Signal, killpg};
    let signal = match force {
        TerminationForce::Ask => Signal::SIGTERM,
        TerminationForce::Kill => Signal::SIGKILL,
    };
    if let Ok(leader) = i32::try_from(leader) {
        // It may have ended by itself meanwhile.
        let _ = killpg(nix::unistd::Pid::from_raw(leader), signal);
    }
}

/// What ends a program from outside.
#[cfg(unix)]
fn signals() -> nix::sys::signal::SigSet {
    use nix::sys::signal::Signal;
    let all = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
    all.into_iter().collect()
}

/// Waits on a thread of its own for what a person or the system sends; all threads that are
/// started from now on leave it to that one.
#[cfg(unix)]
fn watch() {
    let signals = signals();
    if signals.thread_block().is_err() {
        return;
    }
    std::thread::spawn(move || {
        let Ok(signal) = signals.wait() else { return };
        for &leader in running().iter() {
            end(leader, TerminationForce::Ask);
        }
        // As if nobody had waited for it.
        let _ = signals.thread_unblock();
        let _ = nix::sys::signal::raise(signal);
    });
}

/// Starts a command that hears what it is sent: it would not if it were started by a thread
/// that leaves this to another one.
#[cfg(unix)]
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    use nix::sys::signal::SigmaskHow;
    let before = signals().thread_swap_mask(SigmaskHow::SIG_UNBLOCK)?;
    let child = command.spawn();
    before.thread_set_mask()?;
    child
}

/// Starts a command.
#[cfg(not(unix))]
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    command.spawn()
}
