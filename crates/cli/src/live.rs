//! What all sessions are doing, from the daemon if one runs, else from a loop of our own.

#[cfg(unix)]
pub mod daemon_client;
pub mod daemon_protocol;
#[cfg(unix)]
pub mod daemon_server;

use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use unspool_live::{LiveSessions, LiveSettings, LiveSubscription};
use unspool_show::wire::session::SessionJson;
use unspool_store::hook_events::HookEventStore;

use crate::command_context::{self, CommandContext};
use crate::failure::CommandFailure;
use crate::secrets;

/// How a loop looks at this world.
pub fn setting(world: &CommandContext) -> LiveSettings {
    LiveSettings {
        dirs: world.dirs.clone(),
        events: match &world.demo {
            // The recordings were not made here.
            Some(demo) => HookEventStore::open(&demo.path().join("events")),
            None => world.events(),
        },
        prices: world.prices().into_owned(),
        mask: (!world.reveal).then(secrets::masker),
        // What is kept has its secrets masked.
        state: (!world.reveal).then(|| world.shelf("live").join("rows.jsonl")),
        // Some disks only seem to tell of changes; people know which.
        watch: std::env::var_os("UNSPOOL_NO_WATCH").is_none_or(|set| set.is_empty()),
        clock: command_context::now,
        zone: world.ui.zone().clone(),
    }
}

/// Starts a loop of our own.
pub fn start(world: &CommandContext) -> Result<LiveSessions, CommandFailure> {
    LiveSessions::start(setting(world))
        .map_err(|why| CommandFailure::failed(format!("cannot follow sessions: {why}")))
}

/// All rows and what comes after, and the loop that must be kept if it is our own.
pub fn join(
    world: &CommandContext,
) -> Result<(LiveSubscription, Option<LiveSessions>), CommandFailure> {
    if let Some(joined) = from_daemon(world) {
        return Ok((joined, None));
    }
    let live = start(world)?;
    Ok((live.join(), Some(live)))
}

/// All rows of the daemon, if one runs that looks at the same folders and has seen all.
pub fn rows(world: &CommandContext) -> Option<Vec<SessionJson>> {
    let joined = from_daemon(world)?;
    let own = |row: &std::sync::Arc<SessionJson>| (**row).clone();
    joined
        .scanned
        .then(|| joined.rows.iter().map(own).collect())
}

/// Rows of sessions in which something goes on: from the daemon, else from the ends of the
/// files that were written to lately.
pub fn active(world: &CommandContext) -> Vec<SessionJson> {
    #[cfg(unix)]
    if is_asked(world)
        && let Some(rows) = daemon_client::active(world)
    {
        return rows;
    }
    unspool_live::recent(&setting(world))
}

/// The same as often as somebody asks: from the daemon as long as one runs, else from a loop of
/// our own, which is started when it is needed and then stays.
pub struct LiveFollower {
    world: Arc<CommandContext>,
    own: Mutex<Option<LiveSessions>>,
}

impl LiveFollower {
    /// One that has asked nobody yet.
    pub fn new(world: Arc<CommandContext>) -> LiveFollower {
        let own = Mutex::new(None);
        LiveFollower { world, own }
    }

    /// All rows and what comes after.
    pub fn join(&self) -> LiveSubscription {
        let own = self.own().clone();
        if let Some(live) = own {
            return live.join();
        }
        if let Some(joined) = from_daemon(&self.world) {
            return joined;
        }
        let Ok(live) = start(&self.world) else {
            // No thread could be started; that may pass.
            std::thread::sleep(AGAIN);
            return nothing();
        };
        *self.own() = Some(live.clone());
        live.join()
    }

    fn own(&self) -> MutexGuard<'_, Option<LiveSessions>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends our own loop, which keeps what it knows.
    pub fn stop(&self) {
        let own = self.own().take();
        if let Some(live) = own {
            live.stop();
        }
    }
}

/// How long to wait where nothing can be followed.
const AGAIN: Duration = Duration::from_secs(1);

/// No session, and nothing that comes.
fn nothing() -> LiveSubscription {
    LiveSubscription {
        rows: Vec::new(),
        at: 0,
        scanned: false,
        news: mpsc::channel().1,
    }
}

#[cfg(unix)]
fn from_daemon(world: &CommandContext) -> Option<LiveSubscription> {
    is_asked(world)
        .then(|| daemon_client::join(world))
        .flatten()
}

#[cfg(not(unix))]
fn from_daemon(_: &CommandContext) -> Option<LiveSubscription> {
    None
}

/// A daemon shows no secrets, and knows nothing of the demo.
#[cfg(unix)]
fn is_asked(world: &CommandContext) -> bool {
    !world.reveal && world.demo.is_none()
}
