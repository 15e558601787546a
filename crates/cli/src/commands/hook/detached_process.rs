//! Starts this program once more, so that it outlives whoever started it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::process::{Child, Command, Stdio};

/// Starts this program with these arguments, in no session and no group of anybody else, with
/// nothing to read from and nothing to print to.
pub fn start(arguments: &[&OsStr]) -> io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    leave(&mut command);
    command.spawn().map(drop)
}

/// The same, with a place for what it says when it cannot go on.
pub fn start_with(arguments: &[OsString], errors: Option<File>) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors.map_or_else(Stdio::null, Stdio::from));
    leave(&mut command);
    command.spawn()
}

/// We leave first and take it along, which leaves no moment in which it could be caught with
/// us. Who leads a group cannot leave it; then it gets a group of its own.
#[cfg(unix)]
fn leave(command: &mut Command) {
    if rustix::process::setsid().is_err() {
        std::os::unix::process::CommandExt::process_group(command, 0);
    }
}

#[cfg(windows)]
fn leave(command: &mut Command) {
    const DETACHED: u32 = 0x8;
    const NEW_GROUP: u32 = 0x200;
    std::os::windows::process::CommandExt::creation_flags(command, DETACHED | NEW_GROUP);
}

#[cfg(not(any(unix, windows)))]
fn leave(_: &mut Command) {}

/// Lets everybody else go first: nobody waits for us.
#[cfg(unix)]
pub fn lower_priority() {
    let _ = rustix::process::nice(10);
}

/// Lets everybody else go first, where that can be said.
#[cfg(not(unix))]
pub fn lower_priority() {}
