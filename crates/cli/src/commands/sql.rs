//! `sql`: SQL over all sessions.

use clap::Args;

use crate::failure::Failure;
use crate::world::World;

/// Arguments of `sql`.
#[derive(Debug, Args)]
pub struct SqlArgs {}

/// Does it.
pub fn run(_world: &World, _args: &SqlArgs) -> Result<(), Failure> {
    Err(Failure::failed("under construction"))
}
