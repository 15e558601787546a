//! Tells people that a session needs them: on the desktop, or by a message to an address.
//!
//! Each wait is told once. What is sure is told at once; what may be over in a moment is told
//! when it has lasted some seconds.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use unspool_live::{LiveChangeKind, LiveSessions, LiveSubscription};
use unspool_model::view::status::AttentionNeed;
use unspool_show::clean;
use unspool_show::wire::session::SessionJson;
use unspool_store::own_file;
use unspool_store::project;

use crate::command_context::CommandContext;
use crate::commands::status;
use crate::config::{Notify, UserConfig};
use crate::failure::CommandFailure;

/// How many waits are remembered that were told.
const TOLD: usize = 512;
/// How many messages may wait to be sent.
const WAITING: usize = 64;
/// How long an address may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a message is tried.
const TRIES: u32 = 3;

/// Begins to tell, if anybody wants to be told. It ends with the loop.
pub fn start(
    world: &CommandContext,
    live: &LiveSessions,
) -> Result<Option<thread::JoinHandle<()>>, CommandFailure> {
    let wanted = UserConfig::read(&world.own.config)?.notify;
    if !wanted.desktop && wanted.webhook.is_none() {
        return Ok(None);
    }
    let memory = world.own.data.join("notified");
    let (post, posts) = mpsc::sync_channel(WAITING);
    let settings = wanted.clone();
    thread::Builder::new()
        .name("messages".into())
        .spawn(move || deliver(&settings, &posts))?;
    let live = live.clone();
    let thread = thread::Builder::new().name("notify".into());
    Ok(Some(thread.spawn(move || {
        let mut teller = NotificationSchedule::new(wanted, remembered(&memory));
        while !live.is_over() {
            listen(live.join(), &mut teller, &post, &memory);
        }
    })?))
}

fn listen(
    joined: LiveSubscription,
    teller: &mut NotificationSchedule,
    post: &SyncSender<Arc<SessionJson>>,
    memory: &std::path::Path,
) {
    for row in joined.rows {
        // What waits already when we come has been seen, or will be by a look at the board.
        teller.see(row, false, Instant::now());
    }
    loop {
        let wait = teller.next().map_or(Duration::from_secs(60), |at| {
            at.saturating_duration_since(Instant::now())
        });
        match joined.news.recv_timeout(wait) {
            Ok(news) => match news.what {
                LiveChangeKind::Session { row, .. } => teller.see(row, true, Instant::now()),
                LiveChangeKind::Removed { id } => teller.lose(&id),
                LiveChangeKind::Scanned => {}
            },
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let due = teller.due(Instant::now());
        if !due.is_empty() {
            let text: Vec<String> = teller.told.iter().map(u64::to_string).collect();
            let _ = own_file::replace(memory, text.join("\n").as_bytes());
        }
        for row in due {
            // Whoever does not take messages loses them; nothing waits for that.
            let _ = post.try_send(row);
        }
    }
}

fn remembered(path: &std::path::Path) -> VecDeque<u64> {
    let text = own_file::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Decides what is told and when.
struct NotificationSchedule {
    wanted: Notify,
    /// Waits by the paths of their sessions.
    waits: HashMap<String, SessionWait>,
    /// Waits that were told, the oldest first.
    told: VecDeque<u64>,
}

struct SessionWait {
    row: Arc<SessionJson>,
    /// What is waited for.
    what: u64,
    /// When to tell it; `None`: it was told, or need not be.
    at: Option<Instant>,
}

impl NotificationSchedule {
    fn new(wanted: Notify, told: VecDeque<u64>) -> NotificationSchedule {
        NotificationSchedule {
            wanted,
            waits: HashMap::new(),
            told,
        }
    }

    /// Takes in how a session is now.
    fn see(&mut self, row: Arc<SessionJson>, tell: bool, now: Instant) {
        if !self.is_wanted(&row) {
            self.waits.remove(&row.path);
            return;
        }
        let what = wait(&row);
        let sure = row.status_sure;
        let later = now + Duration::from_secs(self.wanted.after_seconds);
        match self.waits.get_mut(&row.path) {
            Some(wait) if wait.what == what => {
                if let (Some(at), true) = (&mut wait.at, sure) {
                    *at = (*at).min(now);
                }
                wait.row = row;
            }
            _ => {
                let at = tell.then_some(if sure { now } else { later });
                self.waits
                    .insert(row.path.clone(), SessionWait { row, what, at });
            }
        }
    }

    fn lose(&mut self, id: &str) {
        self.waits.retain(|_, wait| wait.row.id != id);
    }

    /// When something is to be told next.
    fn next(&self) -> Option<Instant> {
        self.waits.values().filter_map(|wait| wait.at).min()
    }

    /// What is to be told now; it counts as told.
    fn due(&mut self, now: Instant) -> Vec<Arc<SessionJson>> {
        let mut due = Vec::new();
        for wait in self.waits.values_mut() {
            if wait.at.is_some_and(|at| at <= now) {
                wait.at = None;
                let key = key(&wait.row, wait.what);
                if !self.told.contains(&key) {
                    self.told.push_back(key);
                    due.push(Arc::clone(&wait.row));
                }
            }
        }
        let over = self.told.len().saturating_sub(TOLD);
        self.told.drain(..over);
        due
    }

    fn is_wanted(&self, row: &SessionJson) -> bool {
        let Notify { on, projects, .. } = &self.wanted;
        let state = match on.is_empty() {
            true => row.need() == AttentionNeed::You,
            false => on.contains(&row.status),
        };
        let meant = |wanted: &String| project::project_matches(&row.project, wanted);
        state && (projects.is_empty() || projects.iter().any(meant))
    }
}

/// What a session waits for; the same number as long as it is the same wait.
fn wait(row: &SessionJson) -> u64 {
    let mut hasher = DefaultHasher::new();
    row.status.hash(&mut hasher);
    status::what(row).hash(&mut hasher);
    // The next turn is another wait, though it looks the same.
    row.turns.hash(&mut hasher);
    hasher.finish()
}

/// A wait over restarts.
fn key(row: &SessionJson, what: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&row.path, what, &row.status_since).hash(&mut hasher);
    hasher.finish()
}

fn deliver(wanted: &Notify, posts: &Receiver<Arc<SessionJson>>) {
    for row in posts {
        if wanted.desktop {
            desktop(&headline(&row), &body(&row));
        }
        if let Some(address) = &wanted.webhook {
            webhook(address, &row);
        }
    }
}

fn headline(row: &SessionJson) -> String {
    let project = project::project_name(&row.project);
    let text = match row.status.as_str() {
        "waiting_for_approval" => format!("{project} needs permission"),
        "waiting_for_input" if row.question.is_some() => format!("{project} has a question"),
        "waiting_for_input" => format!("{project}: your turn"),
        "error" => format!("{project} stopped with an error"),
        other => format!("{project} is {other}"),
    };
    clean::line(&text).into_owned()
}

fn body(row: &SessionJson) -> String {
    let text = status::what(row).or_else(|| row.title.clone());
    clean::line(&text.unwrap_or_default()).into_owned()
}

/// Shows it on the desktop. Words go as arguments, never through a shell.
fn desktop(headline: &str, body: &str) {
    let mut command = if cfg!(target_os = "macos") {
        let mut command = Command::new("osascript");
        command.args([
            "-e",
            "on run argv",
            "-e",
            "display notification (item 2 of argv) with title (item 1 of argv)",
            "-e",
            "end run",
            "--",
            headline,
            body,
        ]);
        command
    } else {
        let mut command = Command::new("notify-send");
        command.args(["--app-name=unspool", "--", headline, &plain(body)]);
        command
    };
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Where there is no desktop nobody looks at it.
    let _ = command.status();
}

/// Desktops take the text for markup.
fn plain(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// What an address gets.
#[derive(Serialize)]
struct WebhookMessage<'a> {
    event: &'static str,
    text: String,
    session: &'a SessionJson,
}

fn webhook(address: &str, row: &SessionJson) {
    let message = WebhookMessage {
        event: "session",
        text: format!("{}: {}", headline(row), body(row)),
        session: row,
    };
    let Ok(client) = unspool_net::client().timeout(PATIENCE).build() else {
        return;
    };
    for again in 0..TRIES {
        let sent = client.post(address).json(&message).send();
        match sent {
            // Whatever it says to a message it does not like, it will say again.
            Ok(answer) if !answer.status().is_server_error() => return,
            _ => thread::sleep(Duration::from_secs(1 << again)),
        }
    }
}

#[cfg(test)]
mod tests {
    // Helpers outside of test functions may give up as well.
    #![allow(clippy::unwrap_used)]

    use super::*;
    use serde_json::json;

    fn row(id: &str, status: &str, sure: bool, question: Option<&str>) -> Arc<SessionJson> {
        let mut all = json!({
            "id": id, "path": format!("/{id}"), "project": "/home/me/shop",
            "status": status, "status_from": "transcript", "status_sure": sure,
            "status_since": "2026-01-05T12:00:00.000Z", "question": question,
            "agents_working": 0, "tasks_running": 0, "turns": 1, "messages": 1, "calls": 0,
            "agents": 0, "is_subagent": false, "models": [], "versions": [], "pr_links": [],
            "compactions": 0, "bytes": 1,
        });
        all["usage"] = json!({"input": 0, "output": 0, "cache_read": 0, "cache_write_5m": 0, "cache_write_1h": 0});
        Arc::new(serde_json::from_value(all).unwrap())
    }

    fn teller() -> NotificationSchedule {
        let wanted = Notify {
            desktop: true,
            ..Notify::default()
        };
        NotificationSchedule::new(wanted, VecDeque::new())
    }

    fn ids(rows: Vec<Arc<SessionJson>>) -> Vec<String> {
        rows.iter().map(|row| row.id.clone()).collect()
    }

    #[test]
    fn a_wait_is_told_once_however_often_it_is_seen() {
        let (mut teller, now) = (teller(), Instant::now());
        for _ in 0..3 {
            teller.see(row("a", "waiting_for_approval", true, None), true, now);
            teller.see(
                row("b", "waiting_for_input", true, Some("which?")),
                true,
                now,
            );
            teller.see(row("c", "waiting_for_input", true, None), true, now);
        }
        let mut told = ids(teller.due(now));
        told.sort();
        assert_eq!(told, ["a", "b"]);
        teller.see(row("a", "waiting_for_approval", true, None), true, now);
        assert!(teller.due(now).is_empty());
        // The same wait, seen by somebody who was started again.
        let mut again = NotificationSchedule::new(teller.wanted.clone(), teller.told.clone());
        again.see(row("a", "working", true, None), true, now);
        again.see(row("a", "waiting_for_approval", true, None), true, now);
        assert!(again.due(now).is_empty());
        again.see(
            row("b", "waiting_for_input", true, Some("and now?")),
            true,
            now,
        );
        assert_eq!(ids(again.due(now)), ["b"]);
    }

    #[test]
    fn what_may_be_over_in_a_moment_is_told_when_it_lasts() {
        let (mut teller, now) = (teller(), Instant::now());
        let later = now + Duration::from_secs(teller.wanted.after_seconds);
        teller.see(row("a", "waiting_for_approval", false, None), true, now);
        assert!(teller.due(now).is_empty());
        teller.see(row("a", "working", true, None), true, now);
        assert!(teller.due(later).is_empty());
        teller.see(row("a", "waiting_for_approval", false, None), true, now);
        assert_eq!(ids(teller.due(later)), ["a"]);
    }

    #[test]
    fn what_waits_already_at_the_start_is_not_told() {
        let (mut teller, now) = (teller(), Instant::now());
        teller.see(row("a", "error", true, None), false, now);
        teller.see(row("a", "error", true, None), true, now);
        assert!(teller.due(now).is_empty());
    }

    #[test]
    fn filters_hold() {
        let now = Instant::now();
        let wanted = Notify {
            on: vec!["ended".into()],
            projects: vec!["shop".into()],
            ..Notify::default()
        };
        let mut teller = NotificationSchedule::new(wanted, VecDeque::new());
        let mut other = (*row("c", "ended", true, None)).clone();
        other.project = "/home/me/else".into();
        teller.see(row("a", "ended", true, None), true, now);
        teller.see(row("b", "waiting_for_approval", true, None), true, now);
        teller.see(Arc::new(other), true, now);
        assert_eq!(ids(teller.due(now)), ["a"]);
    }
}
