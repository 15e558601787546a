//! Development tasks, run as `cargo xtask TASK`.
//!
//! One file per task. Nothing here is part of the program: a task prepares
//! the machine, starts other programs, and says what came of it. A task may
//! print and fail; it knows no rules about sessions.

#[cfg(unix)]
mod attack;
mod backfill;
mod bench;
mod collector;
mod conformance;
mod dashboard;
mod differential;
mod fuzz;
mod generate;
mod measure;
mod needs;
mod page;
mod phoenix;
mod prices;
mod secrets;
mod soak;
#[cfg(test)]
mod standalone;
mod test;
mod tidy;
mod truth;
mod web;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What a task returns: nothing, or the sentence to print before failing.
type Outcome = Result<(), String>;

/// A task: its name on the command line, what it does, and its code.
struct Task {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Outcome,
}

/// Every task. A new one is a new file, a `mod` line above and a line here.
const TASKS: &[Task] = &[
    #[cfg(unix)]
    Task {
        name: "attack",
        about: "run hostile inputs against the release program",
        run: attack::run,
    },
    Task {
        name: "test",
        about: "prepare the machine and run every test",
        run: test::run,
    },
    Task {
        name: "tidy",
        about: "check that layers, documents and names are kept",
        run: tidy::run,
    },
    Task {
        name: "needs",
        about: "show (or --install) what tests use beyond Rust",
        run: needs::run,
    },
    Task {
        name: "generate",
        about: "write a made-up config directory and its truth",
        run: generate::run,
    },
    Task {
        name: "bench",
        about: "measure the program against its targets and its peers",
        run: bench::run,
    },
    Task {
        name: "conformance",
        about: "compare with what real clients send on resume",
        run: conformance::run,
    },
    Task {
        name: "fuzz",
        about: "fuzz one target and add to docs/fuzzing.md",
        run: fuzz::run,
    },
    Task {
        name: "soak",
        about: "run the program on strange sessions until something breaks",
        run: soak::run,
    },
    Task {
        name: "differential",
        about: "compare our reader with the Python SDK's",
        run: differential::run,
    },
    Task {
        name: "collector",
        about: "send traces through a real collector of OTLP",
        run: collector::run,
    },
    Task {
        name: "page",
        about: "open exported pages in a browser",
        run: page::run,
    },
    Task {
        name: "web",
        about: "hold the committed page of the dashboard against its sources",
        run: web::run,
    },
    Task {
        name: "dashboard",
        about: "open the dashboard in a browser, over the real program",
        run: dashboard::run,
    },
    Task {
        name: "backfill",
        about: "say what it costs to send everything in a config folder",
        run: backfill::run,
    },
    Task {
        name: "truth",
        about: "hold usage and search against trees whose truth is known",
        run: truth::run,
    },
    Task {
        name: "prices",
        about: "make the table of prices that comes with the program",
        run: prices::run,
    },
    Task {
        name: "secrets",
        about: "say how many secrets of many makers are found",
        run: secrets::run,
    },
    Task {
        name: "measure",
        about: "run one program and print what it cost (used by bench)",
        run: measure::run,
    },
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = args.split_first() else {
        return usage();
    };
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        return usage();
    };
    match (task.run)(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("xtask {name}: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// The folder of the workspace, wherever the task was started from.
fn root() -> PathBuf {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let parent = xtask.as_deref().and_then(Path::parent).map(PathBuf::from);
    parent.unwrap_or_else(|| PathBuf::from("."))
}

fn usage() -> ExitCode {
    eprintln!("usage: cargo xtask TASK [ARGUMENT…]\n");
    for task in TASKS {
        eprintln!("  {:<12} {}", task.name, task.about);
    }
    ExitCode::from(2)
}
