//! `prices`: what models cost.

use clap::Args;

use crate::failure::Failure;
use crate::world::World;

/// Arguments of `prices`.
#[derive(Debug, Args)]
pub struct PricesArgs {}

/// Does it.
pub fn run(_world: &World, _args: &PricesArgs) -> Result<(), Failure> {
    Err(Failure::failed("under construction"))
}
