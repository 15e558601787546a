//! `cargo xtask test`: every test, on a machine with only Rust and a C compiler.
//!
//! Names what the tests need beyond Rust, installs it where that needs no
//! question, runs every step it can, and ends with what did not run. A step
//! that could not run is a failure: "all green" must mean "all run".

use std::path::Path;
use std::process::{Command, Stdio};

use crate::Outcome;
use crate::needs::{self, Need};

/// One program to run, and what it cannot do without.
struct Step {
    name: &'static str,
    needs: &'static [&'static Need],
    command: &'static [&'static str],
}

/// The steps, cheapest need first. A new suite is a new line, for example
/// `Step { name: "x", needs: &[&needs::SDK], command: &["cargo", "xtask", "x"] }`.
const STEPS: &[Step] = &[
    Step {
        name: "rust tests",
        needs: &[],
        command: &["cargo", "test", "--workspace", "--no-fail-fast"],
    },
    Step {
        name: "differential",
        needs: &[&needs::PYTHON, &needs::SDK],
        command: &["cargo", "xtask", "differential"],
    },
    Step {
        name: "collector",
        needs: &[&needs::PYTHON, &needs::ROTEL],
        command: &["cargo", "xtask", "collector"],
    },
    Step {
        name: "page",
        needs: &[&needs::NODE, &needs::CHROMIUM, &needs::PLAYWRIGHT],
        command: &["cargo", "xtask", "page"],
    },
    Step {
        name: "web",
        needs: &[&needs::NODE],
        command: &["cargo", "xtask", "web"],
    },
    Step {
        name: "dashboard",
        needs: &[&needs::NODE, &needs::CHROMIUM, &needs::PLAYWRIGHT],
        command: &["cargo", "xtask", "dashboard"],
    },
];

/// What tests use if it is there. Without it they pass, and say what they did not look at.
const WISHES: &[&Need] = &[&needs::STRACE];

/// How a step ended.
enum End {
    Passed,
    /// The second time; what was wrong the first.
    PassedLater(String),
    Failed(String),
    NotRun(String),
}

/// Runs every step.
pub fn run(_args: &[String]) -> Outcome {
    let available = prepare();
    let scratch = Scratch::new()?;
    let ends: Vec<(&Step, End)> = STEPS
        .iter()
        .map(|step| (step, tried(step, &available, &scratch.0)))
        .collect();
    report(&ends)
}

/// Names every need, and provides those that a step has. Returns what is there.
fn prepare() -> Vec<&'static str> {
    let mut available = Vec::new();
    eprintln!("beyond Rust:");
    for need in needs::ALL {
        let wished = WISHES.iter().any(|wish| wish.name == need.name);
        let wanted = wished
            || STEPS
                .iter()
                .any(|step| step.needs.iter().any(|n| n.name == need.name));
        let found = if wanted {
            need.provide()
        } else {
            need.found().ok_or_else(String::new)
        };
        match (&found, wanted) {
            (Ok(version), true) => eprintln!("  {} {version} ok", need.name),
            (Ok(version), false) => eprintln!("  {} {version} (no step needs it yet)", need.name),
            (Err(reason), true) if wished => {
                eprintln!(
                    "  {} not there, some tests look at less: {reason}",
                    need.name
                );
            }
            (Err(reason), true) => eprintln!("  {} MISSING: {reason}", need.name),
            (Err(_), false) => eprintln!("  {} not installed (no step needs it yet)", need.name),
        }
        if found.is_ok() {
            available.push(need.name);
        }
    }
    available
}

/// Runs a step, and once more if it fails: on a machine with other work a process is held up at any
/// point. `UNSPOOL_ONCE=1` shows what is not steady.
fn tried(step: &Step, available: &[&str], scratch: &Path) -> End {
    let once = std::env::var_os("UNSPOOL_ONCE").is_some();
    match run_step(step, available, scratch) {
        End::Failed(first) if !once => {
            eprintln!("\n== {} failed ({first}): once more", step.name);
            match run_step(step, available, scratch) {
                End::Passed => End::PassedLater(first),
                end => end,
            }
        }
        end => end,
    }
}

fn run_step(step: &Step, available: &[&str], scratch: &Path) -> End {
    let missing: Vec<&str> = step
        .needs
        .iter()
        .map(|need| need.name)
        .filter(|name| !available.contains(name))
        .collect();
    if !missing.is_empty() {
        return End::NotRun(format!("needs {}", missing.join(", ")));
    }
    eprintln!("\n== {}: {}", step.name, step.command.join(" "));
    let Some((program, args)) = step.command.split_first() else {
        return End::Failed("has no command".into());
    };
    // Point both homes at nothing, so that no test can see the developer's own sessions.
    let status = Command::new(program)
        .args(args)
        .current_dir(crate::root())
        .env("CLAUDE_CONFIG_DIR", scratch.join("claude"))
        .env("UNSPOOL_HOME", scratch.join("unspool"))
        .stdin(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => End::Passed,
        Ok(status) => End::Failed(status.to_string()),
        Err(error) => End::Failed(error.to_string()),
    }
}

fn report(ends: &[(&Step, End)]) -> Outcome {
    println!();
    for (step, end) in ends {
        match end {
            End::Passed => println!("passed   {}", step.name),
            End::PassedLater(first) => {
                println!("passed   {}, the second time (first: {first})", step.name);
            }
            End::Failed(reason) => println!("FAILED   {} ({reason})", step.name),
            End::NotRun(reason) => println!("NOT RUN  {} ({reason})", step.name),
        }
    }
    let (summary, is_green) = summary(ends.iter().map(|(_, end)| end));
    println!("{summary}");
    if is_green {
        Ok(())
    } else {
        Err("not everything passed".into())
    }
}

/// The last line, which scripts read, and whether everything ran and passed.
fn summary<'a>(ends: impl Iterator<Item = &'a End>) -> (String, bool) {
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for end in ends {
        match end {
            End::Passed | End::PassedLater(_) => passed += 1,
            End::Failed(_) => failed += 1,
            End::NotRun(_) => skipped += 1,
        }
    }
    let skips = if skipped > 0 {
        format!(", {skipped} skipped")
    } else {
        String::new()
    };
    (
        format!("{passed} passed, {failed} failed{skips}"),
        failed + skipped == 0,
    )
}

/// A folder that is gone when the run is over.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new() -> Result<Scratch, String> {
        let path = std::env::temp_dir().join(format!("unspool-xtask-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Left-overs in the temporary folder harm nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Step = Step {
        name: "pages",
        needs: &[&needs::CHROMIUM],
        command: &["false"],
    };

    #[test]
    fn a_step_without_its_needs_does_not_run_and_is_no_success() {
        let end = run_step(&STEP, &["python3"], Path::new("."));
        assert!(matches!(&end, End::NotRun(reason) if reason == "needs chromium"));
        let summary = summary([End::Passed, end].iter());
        assert_eq!(summary, ("1 passed, 0 failed, 1 skipped".to_owned(), false));
    }

    #[test]
    fn a_green_run_ends_with_a_plain_line() {
        let summary = summary([End::Passed, End::Passed].iter());
        assert_eq!(summary, ("2 passed, 0 failed".to_owned(), true));
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_fails_twice_fails_its_step_and_one_that_fails_once_is_told() {
        let end = tried(&STEP, &["chromium"], Path::new("."));
        assert!(matches!(end, End::Failed(_)));
        let unsteady = Step {
            command: &["sh", "-c", "test -e $UNSPOOL_HOME || ! mkdir $UNSPOOL_HOME"],
            ..STEP
        };
        let scratch = std::env::temp_dir().join(format!("unspool-tried-{}", std::process::id()));
        std::fs::create_dir(&scratch).unwrap();
        let end = tried(&unsteady, &["chromium"], &scratch);
        std::fs::remove_dir_all(&scratch).unwrap();
        let is_told = match std::env::var_os("UNSPOOL_ONCE") {
            None => matches!(end, End::PassedLater(_)),
            Some(_) => matches!(end, End::Failed(_)),
        };
        assert!(is_told);
    }
}
