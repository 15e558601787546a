//! What runs for us ends when we are interrupted.
//!
//! Without the usual harness, whose threads would be interrupted first: this program starts
//! itself, lets that ask, and interrupts it.
#![allow(clippy::unwrap_used)]

#[cfg(not(unix))]
fn main() {}

#[cfg(unix)]
fn main() {
    use nix::sys::signal::Signal;
    match std::env::var(unix::NOTE) {
        Ok(note) => unix::ask(&note),
        Err(_) => {
            for signal in [Signal::SIGINT, Signal::SIGTERM] {
                if unix::is_ignored(signal) {
                    println!(
                        "{signal} is ignored where this runs, and so by all it starts: left out"
                    );
                    continue;
                }
                unix::a_command_ends_with_all_it_started_when_we_are_interrupted(signal);
            }
        }
    }
}

#[cfg(unix)]
mod unix {
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;
    use std::process::Command;
    use std::time::Duration;

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use unspool_ask::{AnswerProvider, ModelQuestion, ShellProvider};
    use unspool_testkit::wait::wait_until;

    /// Set for the one that asks: where to note which process to look for.
    pub const NOTE: &str = "ASK_TEST_NOTE";

    /// Asks a shell that starts another process and waits for it.
    pub fn ask(note: &str) {
        let line = format!("sleep 60 & echo $! > {note}.tmp; mv {note}.tmp {note}; wait");
        let question = ModelQuestion {
            tokens: 1,
            limit: 1,
            ..ModelQuestion::default()
        };
        let _ = ShellProvider::new(line).ask(&question, Duration::from_secs(60));
    }

    /// Whether whoever started us wants us to ignore a signal, as shells do for what they start
    /// in the background.
    pub fn is_ignored(signal: Signal) -> bool {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
        ignored.unwrap_or(0) >> (signal as u32 - 1) & 1 == 1
    }

    fn lives(pid: i32) -> bool {
        if !Path::new("/proc/self/stat").exists() {
            return kill(Pid::from_raw(pid), None).is_ok();
        }
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // A dead process that nobody has asked about yet is dead.
        let state = stat.rsplit(") ").next().unwrap_or_default();
        !state.is_empty() && !state.starts_with('Z')
    }

    pub fn a_command_ends_with_all_it_started_when_we_are_interrupted(signal: Signal) {
        let name = format!("ask-{}-{}", std::process::id(), signal as i32);
        let note = std::env::temp_dir().join(name);
        let mut us = Command::new(std::env::current_exe().unwrap())
            .env(NOTE, &note)
            .spawn()
            .unwrap();
        wait_until("it starts", || note.exists());
        let noted = std::fs::read_to_string(&note).unwrap();
        let pid: i32 = noted.trim().parse().unwrap();
        assert!(lives(pid));
        kill(Pid::from_raw(us.id() as i32), signal).unwrap();
        let status = us.wait().unwrap();
        let _ = std::fs::remove_file(&note);
        assert_eq!(status.signal(), Some(signal as i32));
        wait_until(signal.as_str(), || !lives(pid));
    }
}
