//! One event: noted, told, and handed over.

use std::ffi::OsStr;
use std::io::Read;

use unspool_model::hook_events::{HookEvent, ParsedHookEvent};
use unspool_store::hook_events::RecordedHookEvent;

use super::detached_process;
use super::hook_files::{HookFiles, HookJob};
use super::notify_daemon;
use super::stdin_reader::{self, StdinEnd, StdinLimits};
use super::worker;
use crate::command_context;

/// Takes an event from a stream. What went wrong is said in words for the log.
pub fn take(desk: &HookFiles, source: impl Read + Send + 'static) -> Result<(), String> {
    let limits = StdinLimits::default();
    let (bytes, end) = stdin_reader::read(source, &limits);
    let ParsedHookEvent { event, bad } = HookEvent::read(&bytes);
    match (end, bad) {
        _ if bytes.trim_ascii().is_empty() => {
            return Err("standard input was empty".to_owned());
        }
        (StdinEnd::TooLarge, _) => desk.log.warn(&format!(
            "{} is larger than {} bytes; it was truncated",
            named(&event),
            limits.most
        )),
        (StdinEnd::TooSlow, _) => desk
            .log
            .warn("timed out waiting for the end of standard input; using what arrived"),
        (StdinEnd::Whole, Some(bad)) => desk.log.warn(&format!(
            "the event is not valid JSON at byte {}: {}",
            bad.at + 1,
            bad.why
        )),
        (StdinEnd::Whole, None) => {}
    }
    if event.name.is_empty() && event.session.is_empty() {
        return Err("standard input is not a hook event".to_owned());
    }
    desk.log.debug(&format!("{} received", named(&event)));
    if event.session.is_empty() {
        return Err(format!("{} has no session_id", event.name));
    }
    // Who cannot be remembered is sent all the same.
    let noted = note(desk, &event);
    let handed_over = hand_over(desk, &event);
    match (noted, handed_over) {
        (Err(why), Err(also)) => Err(format!("{why}; {also}")),
        (noted, handed_over) => noted.and(handed_over),
    }
}

fn named(event: &HookEvent) -> String {
    let name = match event.name.as_str() {
        "" => "an event",
        name => name,
    };
    format!("{name} of session `{}`", event.session)
}

fn note(desk: &HookFiles, event: &HookEvent) -> Result<(), String> {
    let now = command_context::now().0;
    let noted = RecordedHookEvent::new(event, now);
    let written = desk.events.note(&noted);
    if notify_daemon::tell(&desk.own, &noted) {
        desk.log.debug("notified the daemon");
    }
    if event.is_begin()
        && let Err(why) = desk.events.prune(now)
    {
        desk.log.warn(&format!("cannot prune old events: {why}"));
    }
    written.map_err(|why| format!("cannot record {}: {why}", named(event)))
}

fn hand_over(desk: &HookFiles, event: &HookEvent) -> Result<(), String> {
    if !event.is_sent() || !worker::is_wanted(&desk.log) {
        return Ok(());
    }
    let Some(job) = HookJob::of(event) else {
        return Err(format!("{} has no transcript_path: not sent", named(event)));
    };
    let failed = |why| format!("cannot start sending {}: {why}", named(event));
    let path = desk.add(&job).map_err(failed)?;
    let arguments = ["hook".as_ref(), "--worker".as_ref(), path.as_os_str()];
    detached_process::start(&arguments.map(OsStr::new)).map_err(failed)
}
