//! `usage`: tokens and cost.

use clap::Args;

use crate::failure::Failure;
use crate::world::World;

/// Arguments of `usage`.
#[derive(Debug, Args)]
pub struct UsageArgs {}

/// Does it.
pub fn run(_world: &World, _args: &UsageArgs) -> Result<(), Failure> {
    Err(Failure::failed("under construction"))
}
