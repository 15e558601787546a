//! Goes on building the search index when the command is over.
//!
//! A process of its own, at the lowest priority, without a terminal. One at a time: it holds
//! a lock, and another one that finds it held ends at once.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::path::Path;
use std::process::{Command, Stdio};

use unspool_store::own_file;

use crate::command_context::CommandContext;

/// Starts it, unless the environment forbids. Whether it was started.
pub fn start(world: &CommandContext) -> bool {
    let forbidden = std::env::var_os("UNSPOOL_NO_BACKGROUND").is_some_and(|set| !set.is_empty());
    if forbidden || world.demo.is_some() {
        return false;
    }
    let Ok(program) = std::env::current_exe() else {
        return false;
    };
    let mut arguments: Vec<OsString> = Vec::new();
    for dir in &world.dirs {
        arguments.extend(["--claude-dir".into(), dir.into()]);
    }
    arguments.extend(["index", "build", "--background"].map(OsString::from));
    let polite = cfg!(unix) && {
        let mut command = Command::new("nice");
        command.args(["-n", "19"]).arg(&program).args(&arguments);
        spawn(&mut command)
    };
    polite || spawn(Command::new(&program).args(&arguments))
}

fn spawn(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Its own group, so that it does not die with the command of a person who types Ctrl-C.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let Ok(mut child) = command.spawn() else {
        return false;
    };
    // A command is over before its child is; who serves for days leaves no dead behind.
    std::thread::spawn(move || child.wait());
    true
}

/// The right to be the one in the background; `None` if somebody has it.
pub fn claim(folder: &Path) -> Option<File> {
    own_file::make_folder(folder).ok()?;
    let file = own_file::open_or_create(&folder.join("build.lock")).ok()?;
    match file.try_lock() {
        // Where the disk knows no locks, two at once are slow but do no harm.
        Ok(()) | Err(TryLockError::Error(_)) => Some(file),
        Err(TryLockError::WouldBlock) => None,
    }
}
