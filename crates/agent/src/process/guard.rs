//! The guard: a process between us and a shell, which ends everything the shell started.
//!
//! It is our own program, started again with [`WORD`] as its first argument. It leads a session
//! of its own, without a terminal, and adopts every orphan below it. Its standard input is a
//! socket to whoever started it: what comes out of that is how the shell ended, and when the
//! other end closes, for whatever reason, `kill -9` included, nothing stays alive.

use std::process::ExitCode;

/// The first argument of a guard.
pub const WORD: &str = "__guard";

/// Does the work of a guard if this program was started as one. To be called before anything
/// else: a guard reads no configuration and has no other threads.
pub fn run_as_guard() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != WORD {
        return None;
    }
    Some(unix::run(&arguments.collect::<Vec<_>>()))
}

#[cfg(not(unix))]
mod unix {
    use std::ffi::OsString;
    use std::process::ExitCode;

    pub fn run(_: &[OsString]) -> ExitCode {
        ExitCode::FAILURE
    }
}

#[cfg(unix)]
mod unix {
    use std::ffi::OsString;
    use std::fs::{File, OpenOptions};
    use std::io::{self, Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::OpenOptionsExt;
    use std::os::unix::net::UnixStream;
    use std::os::unix::process::CommandExt;
    use std::path::{Path, PathBuf};
    use std::process::{Command, ExitCode, Stdio};
    use std::thread;
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

    /// How long somebody who was asked to end may take.
    const GRACE: Duration = Duration::from_secs(2);

    /// Between two looks at who is left.
    const LOOK: Duration = Duration::from_millis(5);

    /// The command is evaluated, so that `exit` and syntax errors still leave the shell its trap;
    /// it sees no arguments. Where it ends up goes to a file: the next command begins there.
    const SCRIPT: &str = r#"__unspool_cwd=$2; __unspool_run=$1; set --
trap 'pwd -P >|"$__unspool_cwd"' EXIT
eval "$__unspool_run""#;

    /// `arguments`: the command, then the shell with whatever stands before it.
    pub fn run(arguments: &[OsString]) -> ExitCode {
        let Ok(mut told) = socket() else {
            return ExitCode::FAILURE;
        };
        match guard(arguments, &mut told) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                let _ = told.write_all(format!("!{error}\0").as_bytes());
                ExitCode::FAILURE
            }
        }
    }

    fn socket() -> io::Result<UnixStream> {
        let owned = io::stdin().as_fd().try_clone_to_owned()?;
        Ok(UnixStream::from(owned))
    }

    fn guard(arguments: &[OsString], told: &mut UnixStream) -> io::Result<()> {
        alone();
        let [command, program, rest @ ..] = arguments else {
            return Err(io::Error::other("a guard needs a command and a shell"));
        };
        let note = WorkingDirFile::new();
        let mut start = Command::new(program);
        start
            .args(rest)
            .arg("-c")
            .arg(SCRIPT)
            .arg("bash")
            .arg(command)
            .arg(note.path());
        start.stdin(Stdio::null()).process_group(0);
        let child = start.spawn()?;
        let shell = Pid::from_child(&child);
        drop(start);
        // Only those below still write.
        let nowhere = File::options().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdout(&nowhere)?;
        rustix::stdio::dup2_stderr(&nowhere)?;
        let mut heard = told.try_clone()?;
        thread::Builder::new().spawn(move || {
            // Whatever comes, and nothing more, means the end.
            let _ = heard.read(&mut [0; 1]);
            end(shell);
        })?;
        reap(shell, &note, told);
        Ok(())
    }

    /// Away from the terminal and from the name of the program, so that neither Ctrl-C nor
    /// somebody who ends the program by its name ends the guard; and the one who adopts.
    fn alone() {
        let _ = rustix::process::setsid();
        let _ = nix::sys::signal::SigSet::all().thread_unblock();
        #[cfg(target_os = "linux")]
        {
            let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
            let _ = std::fs::write("/proc/self/comm", "shell-guard");
        }
    }

    /// Waits for all below; tells how the shell ended as soon as it did.
    fn reap(shell: Pid, note: &WorkingDirFile, told: &mut UnixStream) {
        let mut ended: Option<i32> = None;
        loop {
            let options = match ended {
                // Whether somebody is left belongs to what is told.
                Some(_) => WaitOptions::NOHANG,
                None => WaitOptions::empty(),
            };
            match rustix::process::wait(options) {
                Ok(Some((pid, status))) => {
                    if pid == shell {
                        ended = Some(code(status));
                    }
                }
                Ok(None) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => {
                    let left = is_left(shell);
                    tell(told, ended, left, note);
                    while is_left(shell) {
                        thread::sleep(10 * LOOK);
                    }
                    return;
                }
            }
        }
        tell(told, ended, true, note);
        loop {
            match rustix::process::wait(WaitOptions::empty()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    /// Whether somebody is left whom we did not adopt, where nobody is adopted.
    fn is_left(shell: Pid) -> bool {
        cfg!(not(target_os = "linux")) && rustix::process::test_kill_process_group(shell).is_ok()
    }

    fn tell(told: &mut UnixStream, ended: Option<i32>, left: bool, note: &WorkingDirFile) {
        let mut text = format!("{} {}\n", ended.unwrap_or(137), u8::from(left)).into_bytes();
        text.extend(note.read());
        text.push(0);
        let _ = told.write_all(&text);
    }

    /// As shells say it: a signal is 128 and its number.
    fn code(status: WaitStatus) -> i32 {
        let signal = status.terminating_signal().map(|signal| 128 + signal);
        status.exit_status().or(signal).unwrap_or(1)
    }

    /// Asks everybody to end, then ends them.
    fn end(shell: Pid) {
        let asked = Instant::now();
        let group = |signal| {
            let _ = rustix::process::kill_process_group(shell, signal);
        };
        group(Signal::TERM);
        group(Signal::CONT);
        super::super::descendants::each(|pid| {
            let _ = rustix::process::kill_process(pid, Signal::TERM);
            let _ = rustix::process::kill_process(pid, Signal::CONT);
        });
        // The other thread ends the process when nobody is left.
        while asked.elapsed() < GRACE {
            thread::sleep(LOOK);
        }
        loop {
            group(Signal::KILL);
            super::super::descendants::each(|pid| {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            });
            thread::sleep(LOOK);
        }
    }

    /// The file a shell writes its folder to.
    struct WorkingDirFile(Option<PathBuf>);

    impl WorkingDirFile {
        fn new() -> WorkingDirFile {
            let mut name = [0; 8];
            if getrandom::fill(&mut name).is_err() {
                return WorkingDirFile(None);
            }
            let name = format!("unspool-cwd-{:016x}", u64::from_ne_bytes(name));
            let path = std::env::temp_dir().join(name);
            let mut options = OpenOptions::new();
            let made = options.write(true).create_new(true).mode(0o600).open(&path);
            WorkingDirFile(made.ok().map(|_| path))
        }

        fn path(&self) -> &Path {
            self.0.as_deref().unwrap_or(Path::new("/dev/null"))
        }

        /// The folder, without the newline behind it.
        fn read(&self) -> Vec<u8> {
            let mut bytes = match &self.0 {
                Some(path) => std::fs::read(path).unwrap_or_default(),
                None => Vec::new(),
            };
            if bytes.last() == Some(&b'\n') {
                bytes.pop();
            }
            if bytes.contains(&0) || !Path::new(std::ffi::OsStr::from_bytes(&bytes)).is_absolute() {
                bytes.clear();
            }
            bytes
        }
    }

    impl Drop for WorkingDirFile {
        fn drop(&mut self) {
            if let Some(path) = &self.0 {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}
