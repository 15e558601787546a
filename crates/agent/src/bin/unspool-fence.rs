//! The fence alone: for tests, and for programs that embed the client without being able to
//! become the fence themselves.

use std::process::ExitCode;

fn main() -> ExitCode {
    match unspool_agent::sandbox::run_as_wrapper() {
        Some(code) => code,
        None => {
            eprintln!("unspool-fence: not meant to be run by hand");
            ExitCode::FAILURE
        }
    }
}
