//! What all sessions are doing, from the daemon if one runs, else from a loop of our own.

#[cfg(unix)]
pub mod client;
pub mod lines;
#[cfg(unix)]
pub mod server;

use unspool_live::{Joined, Live, Setting};
use unspool_show::wire::session::SessionRow;
use unspool_store::events::Events;

use crate::failure::Failure;
use crate::secrets;
use crate::world::{self, World};

/// How a loop looks at this world.
pub fn setting(world: &World) -> Setting {
    Setting {
        dirs: world.dirs.clone(),
        events: match &world.demo {
            // The recordings were not made here.
            Some(demo) => Events::open(&demo.path().join("events")),
            None => world.events(),
        },
        prices: world.prices().into_owned(),
        mask: (!world.reveal).then(secrets::masker),
        // What is kept has its secrets masked.
        state: (!world.reveal).then(|| world.shelf("live").join("rows.jsonl")),
        clock: world::now,
    }
}

/// Starts a loop of our own.
pub fn start(world: &World) -> Result<Live, Failure> {
    Live::start(setting(world))
        .map_err(|why| Failure::failed(format!("sessions cannot be followed: {why}")))
}

/// All rows and what comes after, and the loop that must be kept if it is our own.
pub fn join(world: &World) -> Result<(Joined, Option<Live>), Failure> {
    if let Some(joined) = from_daemon(world) {
        return Ok((joined, None));
    }
    let live = start(world)?;
    Ok((live.join(), Some(live)))
}

/// All rows of the daemon, if one runs that looks at the same folders and has seen all.
pub fn rows(world: &World) -> Option<Vec<SessionRow>> {
    let joined = from_daemon(world)?;
    let own = |row: &std::sync::Arc<SessionRow>| (**row).clone();
    joined
        .scanned
        .then(|| joined.rows.iter().map(own).collect())
}

/// Rows of sessions in which something goes on: from the daemon, else from the ends of the
/// files that were written to lately.
pub fn active(world: &World) -> Vec<SessionRow> {
    #[cfg(unix)]
    if is_asked(world)
        && let Some(rows) = client::active(world)
    {
        return rows;
    }
    unspool_live::recent(&setting(world))
}

#[cfg(unix)]
fn from_daemon(world: &World) -> Option<Joined> {
    is_asked(world).then(|| client::join(world)).flatten()
}

#[cfg(not(unix))]
fn from_daemon(_: &World) -> Option<Joined> {
    None
}

/// A daemon shows no secrets, and knows nothing of the demo.
#[cfg(unix)]
fn is_asked(world: &World) -> bool {
    !world.reveal && world.demo.is_none()
}
