//! Development tasks.

mod conformance;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("conformance") => conformance::main(&arguments[1..]),
        _ => {
            eprintln!("usage: cargo xtask conformance");
            ExitCode::from(2)
        }
    }
}
