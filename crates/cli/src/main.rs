//! The program: arguments in, one command, an exit code out.

mod args;
mod background;
mod commands;
mod costs;
mod demo;
mod failure;
mod own;
mod progress;
mod ui;
mod when;
mod world;

use std::process::ExitCode;

use unspool_show::clean;

use crate::failure::Failure;

fn main() -> ExitCode {
    let arguments = args::read();
    match commands::run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Failure::Nothing(told) | Failure::Failed(told) = &failure {
                // The message may quote a transcript or a file name.
                eprintln!("Error: {}", clean::text(&told.message));
                if let Some(hint) = &told.hint {
                    eprintln!("Hint: {}", clean::text(hint));
                }
            }
            ExitCode::from(failure.code())
        }
    }
}
