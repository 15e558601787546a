//! Any command: the text on its standard input, the answer on its standard output. What is
//! wanted of the text stands in a variable, for commands that ask a model.

use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::{AnswerProvider, AskError, AskStop, ModelAnswer, ModelQuestion};

mod process_group;

/// A command line for the shell.
#[derive(Clone, Debug)]
pub struct ShellProvider {
    line: String,
}

/// Whoever says more than this does not answer.
const MOST: u64 = 16 << 20;

/// How long to pause when a command failed: it may have asked somebody far away.
const PAUSE: Duration = Duration::from_millis(100);

/// The variable that says what is wanted.
const WISH: &str = "UNSPOOL_PROMPT";

/// How often to look whether a command is over.
const STEP: Duration = Duration::from_millis(5);

impl ShellProvider {
    /// A provider that runs this line. Call it before any thread is started: from now on the
    /// commands that run end when a person interrupts the program.
    pub fn new(line: impl Into<String>) -> ShellProvider {
        process_group::end_with_us();
        ShellProvider { line: line.into() }
    }

    fn command(&self, question: &ModelQuestion) -> Command {
        let (shell, flag) = if cfg!(windows) {
            ("cmd", "/C")
        } else {
            ("sh", "-c")
        };
        let mut command = Command::new(shell);
        command.arg(flag).arg(&self.line);
        command.env(WISH, &question.wish);
        // In a group of its own, so that all it starts can be ended with it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// What the end of a command means.
    fn judge(
        &self,
        status: ExitStatus,
        said: Vec<u8>,
        noise: &[u8],
    ) -> Result<ModelAnswer, AskError> {
        if status.success() {
            return match String::from_utf8(said) {
                Ok(text) => Ok(ModelAnswer {
                    text,
                    ..ModelAnswer::default()
                }),
                Err(_) => Err(later("the command's output is not UTF-8".to_owned())),
            };
        }
        let noise = String::from_utf8_lossy(noise);
        let last = noise.lines().rev().find(|line| !line.trim().is_empty());
        let last = last.map_or_else(String::new, |line| format!(": {}", line.trim()));
        match status.code() {
            // What shells say of a command that is not there or cannot be run.
            Some(126 | 127) => Err(AskError::Stop(AskStop {
                why: format!("cannot run the command `{}`{last}", self.line),
                hint: "try it in a shell; it reads the text from standard input".to_owned(),
            })),
            Some(code) => Err(later(format!("the command exited with {code}{last}"))),
            None => Err(later(format!("the command was killed{last}"))),
        }
    }
}

impl AnswerProvider for ShellProvider {
    fn ask(&self, question: &ModelQuestion, timeout: Duration) -> Result<ModelAnswer, AskError> {
        let until = Instant::now() + timeout;
        let child = process_group::spawn(&mut self.command(question));
        let mut child = child.map_err(|error| {
            AskError::Stop(AskStop {
                why: format!("cannot start the shell: {error}"),
                hint: "check that `sh` is installed".to_owned(),
            })
        })?;
        let group = process_group::CommandGroup::enter(child.id());
        write(&mut child, question.material.clone());
        let said = read(child.stdout.take());
        let noise = read(child.stderr.take());
        let ended = await_end(&group, &mut child, &said, until);
        let Some((status, said)) = ended else {
            group.kill(&mut child);
            let why = format!("timed out after {:.0} s", timeout.as_secs_f64());
            return Err(later(why));
        };
        // Something it left behind may hold its standard error open.
        let noise = noise.recv_timeout(PAUSE).unwrap_or_default();
        self.judge(status, said, &noise)
    }
}

fn later(why: String) -> AskError {
    AskError::Later {
        why,
        after: Some(PAUSE),
    }
}

/// Waits until the command has said all it has to say and is over.
fn await_end(
    group: &process_group::CommandGroup,
    child: &mut Child,
    said: &Receiver<Vec<u8>>,
    until: Instant,
) -> Option<(ExitStatus, Vec<u8>)> {
    let left = || until.checked_duration_since(Instant::now());
    let said = said.recv_timeout(left()?).ok()?;
    loop {
        if let Some(status) = group.ended(child) {
            return Some((status, said));
        }
        thread::sleep(left()?.min(STEP));
    }
}

/// Writes on a thread of its own: a command may answer before it has read everything, or
/// read nothing.
fn write(child: &mut Child, text: String) {
    if let Some(mut stdin) = child.stdin.take() {
        thread::spawn(move || drop(stdin.write_all(text.as_bytes())));
    }
}

/// Reads on a thread of its own, to the end.
fn read(from: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    if let Some(from) = from {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = from.take(MOST).read_to_end(&mut bytes);
            let _ = sender.send(bytes);
        });
    }
    receiver
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn question(text: &str) -> ModelQuestion {
        ModelQuestion {
            material: text.to_owned(),
            wish: "make it shorter".to_owned(),
            tokens: 1,
            limit: 1,
            ..ModelQuestion::default()
        }
    }

    fn asked(line: &str, text: &str) -> Result<ModelAnswer, AskError> {
        ShellProvider::new(line).ask(&question(text), Duration::from_secs(20))
    }

    fn text(line: &str, asked_for: &str) -> String {
        asked(line, asked_for).unwrap().text
    }

    #[test]
    fn a_command_reads_the_question_and_its_output_is_the_answer() {
        assert_eq!(text("tr a-z A-Z", "hällo"), "HäLLO");
        assert_eq!(text("cat | wc -c", &"x".repeat(300_000)).trim(), "300000");
        assert_eq!(
            text("echo $UNSPOOL_PROMPT: $(cat)", "x"),
            "make it shorter: x\n"
        );
        // Not even one that does not read is in the way.
        assert_eq!(text("echo hi", &"x".repeat(300_000)), "hi\n");
    }

    #[test]
    fn a_command_that_fails_is_tried_again_and_its_last_words_are_told() {
        let refused = asked("echo one >&2; echo two >&2; exit 3", "");
        let Err(AskError::Later { why, .. }) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(why, "the command exited with 3: two");
    }

    #[test]
    fn a_command_that_is_not_there_ends_everything() {
        let refused = asked("no-such-command-here", "");
        let Err(AskError::Stop(stopped)) = refused else {
            panic!("{refused:?}")
        };
        assert!(
            stopped.why.contains("`no-such-command-here`"),
            "{}",
            stopped.why
        );
    }

    #[test]
    fn a_command_that_takes_too_long_is_killed_with_all_it_started() {
        let mark = format!("sleep 5400.{}", std::process::id());
        let line = format!("{mark} & {mark}; echo never");
        let refused = ShellProvider::new(line).ask(&question(""), Duration::from_millis(150));
        assert!(
            matches!(refused, Err(AskError::Later { .. })),
            "{refused:?}"
        );
        let runs = || {
            let mut search = Command::new("pgrep");
            search.args(["-f", &format!("^{mark}")]);
            search.stdout(Stdio::null()).status().unwrap().success()
        };
        let end = Instant::now() + Duration::from_secs(60);
        while runs() {
            assert!(Instant::now() < end, "something runs on");
            thread::sleep(Duration::from_millis(20));
        }
    }
}
