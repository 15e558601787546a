//! `chat`: talk to the model; what is said becomes a session that Claude Code can resume.

mod args;
mod desk;
mod explain;
mod ground;
mod input;
mod open;
mod output;
mod print;
mod rules;
mod servers;
mod talk;
mod transcript;

use std::sync::Arc;

use crate::failure::Failure;
use crate::world::World;
pub use args::{ChatArgs, InputForm};
use input::Input;
use open::open;
use output::Form;
use print::print;

/// Runs `chat`.
pub fn run(world: World, args: &ChatArgs) -> Result<(), Failure> {
    if let Some(command) = &args.explain_permission {
        return explain::run(&world, args, command);
    }
    if !args.is_alone() {
        return talk::run(world, args.clone());
    }
    if args.input_format == InputForm::StreamJson && args.output_format != Form::StreamJson {
        return Err(Failure::failed(
            "`--input-format stream-json` needs `--output-format stream-json`",
        ));
    }
    let input = Input::read(args)?;
    let opened = open(&world, args)?;
    print(Arc::new(world), args, opened, input)
}
