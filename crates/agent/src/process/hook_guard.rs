//! Keeps a hook to whoever started it: when they are gone, `kill -9` included, it ends, and so
//! does all it started. What a hook leaves running when it ends itself stays.
//!
//! It is our own program, started again with [`WORD`] as its first argument. It leads a session
//! of its own, without a terminal, so that signals to its group reach the hook directly.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

/// The first argument that makes our program start the command behind it, and stay with it.
pub const WORD: &str = "__alone";

/// Starts a command and ends with it.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    // Whoever leads a group already cannot, and has no terminal to leave.
    let _ = rustix::process::setsid();
    match kept(arguments) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "alone: {error}");
            ExitCode::from(126)
        }
    }
}

#[cfg(target_os = "linux")]
fn kept(mut arguments: impl Iterator<Item = OsString>) -> io::Result<ExitCode> {
    use nix::sys::signal::{SigSet, Signal};
    use rustix::process::{Pid, WaitOptions, wait};

    let program = arguments.next();
    let program = program.ok_or_else(|| io::Error::other("no command given"))?;
    // Waited for, not acted on: whoever ends the group asks the command as well. A command starts
    // with none of them held back.
    let mut heard = SigSet::empty();
    for signal in [
        Signal::SIGCHLD,
        Signal::SIGUSR1,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGINT,
    ] {
        heard.add(signal);
    }
    heard.thread_block()?;
    let parent = rustix::process::getppid();
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::USR1))?;
    if rustix::process::getppid() != parent {
        return Ok(ExitCode::FAILURE);
    }
    let child = std::process::Command::new(program)
        .args(arguments)
        .spawn()?;
    let command = Pid::from_child(&child);
    // Its streams end when it ends, not when we do.
    let nowhere = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nowhere)?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    rustix::stdio::dup2_stderr(&nowhere)?;
    loop {
        match heard.wait()? {
            Signal::SIGCHLD => {
                while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
                    if pid == command {
                        let signal = status.terminating_signal().map(|signal| 128 + signal);
                        let code = status.exit_status().or(signal).unwrap_or(1);
                        return Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)));
                    }
                }
            }
            Signal::SIGUSR1 => {
                end();
                return Ok(ExitCode::FAILURE);
            }
            _ => {}
        }
    }
}

/// Ends everybody below, and whoever they start meanwhile.
#[cfg(target_os = "linux")]
fn end() {
    use rustix::process::{Signal, WaitOptions, kill_process, wait};
    loop {
        super::descendants::each(|pid| {
            let _ = kill_process(pid, Signal::KILL);
        });
        // Nobody is left when there is nobody to wait for.
        while let Ok(found) = wait(WaitOptions::NOHANG) {
            if found.is_none() {
                std::thread::sleep(std::time::Duration::from_millis(2));
                break;
            }
        }
        if wait(WaitOptions::NOHANG).is_err() {
            return;
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn kept(mut arguments: impl Iterator<Item = OsString>) -> io::Result<ExitCode> {
    use std::os::unix::process::CommandExt;
    let program = arguments.next();
    let program = program.ok_or_else(|| io::Error::other("no command given"))?;
    Err(std::process::Command::new(program).args(arguments).exec())
}
