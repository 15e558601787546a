//! `search`: finds text in all sessions.

use clap::Args;

use crate::failure::Failure;
use crate::world::World;

/// Arguments of `search`.
#[derive(Debug, Args)]
pub struct SearchArgs {}

/// Does it.
pub fn run(_world: &World, _args: &SearchArgs) -> Result<(), Failure> {
    Err(Failure::failed("under construction"))
}
