//! The guard alone: for tests, and for programs that embed the tools without being able to
//! become the guard themselves.

use std::process::ExitCode;

fn main() -> ExitCode {
    match unspool_agent::process::guard::run_as_guard() {
        Some(code) => code,
        None => {
            eprintln!("unspool-guard: not meant to be run by hand");
            ExitCode::FAILURE
        }
    }
}
