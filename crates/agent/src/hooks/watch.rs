//! Sees a hook to its end: its input, its outputs, its time.

use std::io::{Read, Write};
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::Ended;
use crate::stop::Stop;

/// What is read of a hook's output; the rest is passed over.
const READ: u64 = 1 << 20;

/// How long a hook that was asked to end may take.
const GRACE: Duration = Duration::from_millis(500);
/// The same when a person wants all of it to stop.
const AT_ONCE: Duration = Duration::from_millis(100);

/// Sees a hook to its end.
pub(super) fn watch(
    mut child: Child,
    text: &str,
    patience: Duration,
    stop: &Stop,
    ended: &mut Ended,
) {
    let (mut input, stdout, stderr) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let text = text.to_owned();
    // A hook that reads nothing must not hold us up.
    thread::spawn(move || {
        if let Some(input) = &mut input {
            let _ = input.write_all(text.as_bytes());
        }
    });
    let (stdout, stderr) = (read(stdout), read(stderr));
    let end = Instant::now() + patience;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) => {}
            Err(_) => break None,
        }
        let left = end.saturating_duration_since(Instant::now());
        if stop.is_told() || left.is_zero() {
            finish(&mut child, if stop.is_told() { AT_ONCE } else { GRACE });
            ended.fault = Some(match stop.is_told() {
                true => "it was ended, because all work was".to_owned(),
                false => format!(
                    "it took longer than {} s and was ended",
                    patience.as_secs_f64()
                ),
            });
            break None;
        }
        stop.wait(left.min(Duration::from_millis(5)));
    };
    ended.exit = status.and_then(|status| status.code());
    ended.stdout = heard(&stdout);
    ended.stderr = heard(&stderr);
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

/// Reads in a thread, so that two full pipes do not wait for each other.
fn read(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (send, receive) = channel();
    if let Some(pipe) = pipe {
        thread::spawn(move || {
            let mut pipe = pipe;
            let mut buffer = vec![0; 16 << 10];
            let mut left = READ;
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                let keep = count.min(usize::try_from(left).unwrap_or(usize::MAX));
                left -= keep as u64;
                if keep > 0 && send.send(buffer[..keep].to_vec()).is_err() {
                    return;
                }
            }
        });
    }
    receive
}

/// What was read. Something a hook left running may hold its output open; nobody waits for that.
fn heard(pipe: &Receiver<Vec<u8>>) -> String {
    let mut bytes = Vec::new();
    while let Ok(more) = pipe.recv_timeout(Duration::from_millis(200)) {
        bytes.extend(more);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
