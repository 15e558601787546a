//! `index`: the search index.

use clap::Args;

use crate::failure::Failure;
use crate::world::World;

/// Arguments of `index`.
#[derive(Debug, Args)]
pub struct IndexArgs {}

/// Does it.
pub fn run(_world: &World, _args: &IndexArgs) -> Result<(), Failure> {
    Err(Failure::failed("under construction"))
}
