//! Sees a hook to its end: its input, its outputs, its time.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::HookExit;
use crate::stop::StopSignal;

/// What is kept of a hook's output; the rest is passed over.
const READ: usize = 1 << 20;

/// How long a hook that was asked to end may take.
const GRACE: Duration = Duration::from_millis(500);
/// The same when a person wants all of it to stop.
const AT_ONCE: Duration = Duration::from_millis(100);

/// Between two looks at whether it should end.
const LOOK: Duration = Duration::from_millis(5);

/// Sees a hook to its end.
pub(super) fn watch(
    mut child: Child,
    text: &str,
    patience: Duration,
    stop: &StopSignal,
    ended: &mut HookExit,
) {
    let mut input = child.stdin.take();
    let mut heard = [
        HookOutput::of(child.stdout.take()),
        HookOutput::of(child.stderr.take()),
    ];
    let text = text.to_owned();
    // A hook that reads nothing must not hold us up.
    thread::spawn(move || {
        if let Some(input) = &mut input {
            let _ = input.write_all(text.as_bytes());
        }
    });
    let end = Instant::now() + patience;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) => {}
            Err(_) => break None,
        }
        if stop.is_told() || Instant::now() >= end {
            finish(&mut child, if stop.is_told() { AT_ONCE } else { GRACE });
            ended.fault = Some(match stop.is_told() {
                true => "interrupted".to_owned(),
                false => format!("timed out after {} s", patience.as_secs_f64()),
            });
            break None;
        }
        hear(&mut heard, LOOK);
    };
    // What it wrote is there by now. What it left running may write for ever; nobody waits for that.
    let mut rest = 0;
    while rest < READ {
        match hear(&mut heard, Duration::ZERO) {
            0 => break,
            more => rest += more,
        }
    }
    ended.exit = status.and_then(|status| status.code());
    [ended.stdout, ended.stderr] =
        heard.map(|heard| String::from_utf8_lossy(&heard.bytes).into_owned());
}

/// One output of a hook.
struct HookOutput {
    pipe: Option<File>,
    bytes: Vec<u8>,
}

impl HookOutput {
    fn of(pipe: Option<impl Into<OwnedFd>>) -> HookOutput {
        HookOutput {
            pipe: pipe.map(|pipe| File::from(pipe.into())),
            bytes: Vec::new(),
        }
    }

    /// Takes what is there; how much it was.
    fn read(&mut self) -> usize {
        let mut buffer = [0; 16 << 10];
        match self.pipe.as_mut().map(|pipe| pipe.read(&mut buffer)) {
            Some(Ok(count @ 1..)) => {
                let room = READ.saturating_sub(self.bytes.len());
                self.bytes.extend_from_slice(&buffer[..count.min(room)]);
                count
            }
            Some(Err(error)) if error.kind() == std::io::ErrorKind::Interrupted => 0,
            _ => {
                self.pipe = None;
                0
            }
        }
    }
}

/// Waits for output, at most so long, and takes it; how much it was.
fn hear(heard: &mut [HookOutput], time: Duration) -> usize {
    let time = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(time.subsec_nanos()),
    };
    let ready: Vec<bool> = {
        let open = heard.iter().filter_map(|heard| heard.pipe.as_ref());
        let mut places: Vec<PollFd<'_>> =
            open.map(|pipe| PollFd::new(pipe, PollFlags::IN)).collect();
        if poll(&mut places, Some(&time)).is_err() {
            return 0;
        }
        places
            .iter()
            .map(|place| !place.revents().is_empty())
            .collect()
    };
    let open = heard.iter_mut().filter(|heard| heard.pipe.is_some());
    let ready = open.zip(ready).filter(|(_, ready)| *ready);
    ready.map(|(heard, _)| heard.read()).sum()
}

/// Ends a hook and its group: first it is asked.
fn finish(child: &mut Child, grace: Duration) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let group = Pid::from_child(child);
    let _ = kill_process_group(group, Signal::TERM);
    let asked = Instant::now();
    while asked.elapsed() < grace {
        if matches!(child.try_wait(), Ok(Some(_))) {
            break;
        }
        thread::sleep(Duration::from_millis(5));
    }
    // Whoever stayed in the group is ended with it.
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.kill();
    let _ = child.wait();
}
