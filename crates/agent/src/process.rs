//! Commands in processes of their own.
//!
//! A command runs in a shell below a [`guard`], which sees to it that nothing stays alive
//! when it is ended or when we are. Its two outputs are one pipe, so that lines stand in the
//! order they were written.

#[cfg(unix)]
mod descendants;
pub mod git_environment;
pub mod guard;
#[cfg(unix)]
pub mod hook_guard;
mod output;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use output::{CommandOutput, FILE};

/// What to run.
#[derive(Clone, Debug)]
pub struct ShellJob<'a> {
    /// The text for the shell.
    pub command: &'a str,
    /// Where it begins.
    pub cwd: &'a Path,
    /// The program that becomes the guard.
    pub guard: &'a Path,
    /// What stands before the shell, such as a sandbox: a program and its arguments.
    pub before: &'a [OsString],
    /// Variables it gets on top of ours.
    pub env: &'a [(String, String)],
    /// The file for output that does not fit.
    pub file: PathBuf,
}

/// How a shell ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellExit {
    /// Its code; 128 and the number of the signal if one ended it.
    pub code: i32,
    /// Where it stood then.
    pub cwd: Option<PathBuf>,
    /// Whether something it started still runs.
    pub left: bool,
    /// Why it could not be started.
    pub fault: Option<String>,
}

/// A command that was started. Ends when nobody holds it any more.
#[derive(Debug)]
pub struct RunningCommand {
    shared: Arc<SharedProcess>,
    began: Instant,
    #[cfg(unix)]
    control: std::os::unix::net::UnixStream,
}

#[derive(Debug)]
struct SharedProcess {
    state: Mutex<ProcessState>,
    woken: Condvar,
}

#[derive(Debug)]
struct ProcessState {
    output: CommandOutput,
    ended: Option<ShellExit>,
    gone: bool,
}

impl SharedProcess {
    fn state(&self) -> MutexGuard<'_, ProcessState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunningCommand {
    /// Starts a command.
    #[cfg(unix)]
    pub fn start(job: &ShellJob<'_>) -> io::Result<RunningCommand> {
        unix::start(job)
    }

    /// There is no shell here that we know how to end.
    #[cfg(not(unix))]
    pub fn start(_: &ShellJob<'_>) -> io::Result<RunningCommand> {
        Err(io::Error::other("commands can only be run on Unix"))
    }

    /// Waits until the shell has ended and its output is here, at most so long.
    pub fn wait(&self, time: Duration) -> Option<ShellExit> {
        self.until(time, |state| state.ended.is_some());
        self.shared.state().ended.clone()
    }

    /// Waits until nothing of it runs any more, at most so long; whether that is so.
    pub fn wait_gone(&self, time: Duration) -> bool {
        self.until(time, |state| state.gone);
        self.shared.state().gone
    }

    fn until(&self, time: Duration, done: impl Fn(&ProcessState) -> bool) {
        let end = Instant::now() + time;
        let mut state = self.shared.state();
        while !done(&state) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = match self.shared.woken.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    /// How the shell ended, if it did.
    pub fn ended(&self) -> Option<ShellExit> {
        self.shared.state().ended.clone()
    }

    /// Looks at its output.
    pub fn output<T>(&self, look: impl FnOnce(&mut CommandOutput) -> T) -> T {
        look(&mut self.shared.state().output)
    }

    /// How long it has been running.
    pub fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// Ends it and all it started. Does not wait: the guard asks, and does not ask twice.
    pub fn end(&self) {
        #[cfg(unix)]
        let _ = self.control.shutdown(std::net::Shutdown::Write);
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(unix)]
mod unix {
    use std::ffi::OsStr;
    use std::io::{PipeReader, Read};
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::UnixStream;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    pub fn start(job: &ShellJob<'_>) -> io::Result<RunningCommand> {
        let (control, theirs) = UnixStream::pair()?;
        let (reader, writer) = io::pipe()?;
        let mut command = Command::new(job.guard);
        command
            // Whoever ends us by our name must not end the one who ends the rest.
            .arg0("shell-guard")
            .arg(guard::WORD)
            .arg(job.command)
            .args(job.before)
            .arg(shell());
        command
            .current_dir(job.cwd)
            // Editors cannot be answered here.
            .env("GIT_EDITOR", "true")
            .envs(job.env.iter().map(|(name, value)| (name, value)))
            .stdin(OwnedFd::from(theirs))
            .stdout(writer.try_clone()?)
            .stderr(writer);
        let child = command.spawn()?;
        // The command holds our copies of their ends.
        drop(command);
        let shared = Arc::new(SharedProcess {
            state: Mutex::new(ProcessState {
                output: CommandOutput::new(job.file.clone()),
                ended: None,
                gone: false,
            }),
            woken: Condvar::new(),
        });
        let reading = ProcessOutputReader {
            shared: Arc::clone(&shared),
            control: control.try_clone()?,
            pipe: Some(reader),
            heard: Vec::new(),
            open: true,
            ended: None,
            rest: 0,
        };
        std::thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || reading.run(child))?;
        Ok(RunningCommand {
            shared,
            began: Instant::now(),
            control,
        })
    }

    /// The shell commands are written for, if it is here.
    fn shell() -> &'static str {
        let known = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"];
        let found = known.into_iter().find(|path| Path::new(path).exists());
        found.unwrap_or("/bin/sh")
    }

    /// What a pipe holds.
    const PIPE: usize = 64 << 10;

    /// The thread that reads all a guard and those below it write.
    struct ProcessOutputReader {
        shared: Arc<SharedProcess>,
        control: UnixStream,
        pipe: Option<PipeReader>,
        heard: Vec<u8>,
        /// Whether the guard may say more.
        open: bool,
        /// How the shell ended, until that is told.
        ended: Option<ShellExit>,
        /// So many bytes of what comes may still be the shell's: what was in the pipe when it
        /// ended. Others may go on writing for ever.
        rest: usize,
    }

    impl ProcessOutputReader {
        fn run(mut self, mut guard: Child) {
            let mut buffer = vec![0; PIPE];
            while self.open || self.pipe.is_some() {
                let (pipe, control) = self.ready();
                if pipe {
                    self.read(&mut buffer);
                }
                if !pipe || self.rest == 0 {
                    self.tell();
                }
                if control {
                    self.hear(&mut buffer, &guard);
                }
            }
            self.tell();
            let _ = guard.wait();
            self.shared.state().gone = true;
            self.shared.woken.notify_all();
        }

        /// Waits for something to read: from the pipe, from the guard. Once the shell has ended it
        /// does not wait.
        fn ready(&self) -> (bool, bool) {
            let mut places = Vec::with_capacity(2);
            if let Some(pipe) = &self.pipe {
                places.push(PollFd::new(pipe, PollFlags::IN));
            }
            if self.open {
                let control = self.control.as_fd();
                places.push(PollFd::from_borrowed_fd(control, PollFlags::IN));
            }
            let at_once = Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            if poll(&mut places, self.ended.is_some().then_some(&at_once)).is_err() {
                return (false, false);
            }
            let ready = |at: usize| places.get(at).is_some_and(|it| !it.revents().is_empty());
            match self.pipe.is_some() {
                true => (ready(0), self.open && ready(1)),
                false => (false, ready(0)),
            }
        }

        fn read(&mut self, buffer: &mut [u8]) {
            let Some(pipe) = &mut self.pipe else { return };
            match pipe.read(buffer) {
                Ok(0) => self.pipe = None,
                Ok(read) => {
                    self.rest = self.rest.saturating_sub(read);
                    self.shared.state().output.push(&buffer[..read]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.pipe = None,
            }
        }

        fn hear(&mut self, buffer: &mut [u8], guard: &Child) {
            match self.control.read(buffer) {
                Ok(0) | Err(_) => self.open = false,
                Ok(read) => self.heard.extend(&buffer[..read]),
            }
            let mut said = self.said();
            let known = self.ended.is_some() || self.shared.state().ended.is_some();
            if said.is_none() && !self.open && !known {
                // Its shell has nobody else who would end it.
                descendants::end_session(guard);
                said = Some(lost());
            }
            if let Some(said) = said {
                self.ended = Some(said);
                self.rest = PIPE;
            }
        }

        /// Tells that the shell has ended, if it has and was not told.
        fn tell(&mut self) {
            if let Some(ended) = self.ended.take() {
                self.shared.state().ended = Some(ended);
                self.shared.woken.notify_all();
            }
        }

        /// What the guard said, once all of it is here.
        fn said(&mut self) -> Option<ShellExit> {
            let end = self.heard.iter().position(|byte| *byte == 0)?;
            let heard = std::mem::take(&mut self.heard);
            let said = &heard[..end];
            if let [b'!', fault @ ..] = said {
                let fault = String::from_utf8_lossy(fault).into_owned();
                return Some(ShellExit {
                    code: 126,
                    fault: Some(fault),
                    ..lost()
                });
            }
            let line = said.iter().position(|byte| *byte == b'\n')?;
            let words = std::str::from_utf8(&said[..line]).ok()?;
            let (code, left) = words.split_once(' ')?;
            let cwd = &said[line + 1..];
            Some(ShellExit {
                code: code.parse().ok()?,
                cwd: (!cwd.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(cwd))),
                left: left == "1",
                fault: None,
            })
        }
    }

    /// The guard ended without a word: somebody killed it.
    fn lost() -> ShellExit {
        ShellExit {
            code: 137,
            cwd: None,
            left: false,
            fault: None,
        }
    }
}
