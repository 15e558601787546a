//! `cargo xtask soak [--seconds N] [--seed N]`: the program on strange sessions, for long.
//! `cargo xtask soak send [--kills N] [--lines N] [--seed N] [--program PATH]`: a sender that is
//! killed.
//! `cargo xtask soak tail [--actions N] [--kills N] [--seed N]`: files that are followed.
//! `cargo xtask soak chat […]`: the console client, see [`chat`].
//!
//! Fills homes with generated session graphs, one seed after the other, and
//! runs reading commands on them. It does not know what they should print, only
//! what must never happen: a panic, a signal, a hang. A failure names its seed,
//! and `--seed` repeats it. Kept out of the tests: it has no end.

mod chat;

use std::path::PathBuf;
use std::process::Output;
use std::time::{Duration, Instant};

use unspool_testkit::graph;
use unspool_testkit::home::Home;
use unspool_testkit::soak::Plan;

use crate::{Outcome, bench};

/// What is run in each home; `ID` is each of its sessions in turn.
const COMMANDS: &[&[&str]] = &[
    &["ls", "--json"],
    &["check", "--all", "--json"],
    &["show", "ID", "--json"],
    &["turns", "ID", "--json"],
    &["check", "ID"],
];

/// Sessions per home: starting the program costs more than reading one of them.
const SESSIONS: u64 = 10;

/// No command on a session of a few lines may take this long.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs until the time is up or something breaks.
pub fn run(args: &[String]) -> Outcome {
    if let Some((word, rest)) = args.split_first() {
        match word.as_str() {
            "send" => return send(rest),
            "tail" => return tail(rest),
            "chat" => return chat::run(rest),
            _ => {}
        }
    }
    let (mut seconds, mut seed) = (60, 0);
    for pair in args.chunks(2) {
        let value = |text: &String| {
            text.parse::<u64>()
                .map_err(|_| format!("`{text}` is no number"))
        };
        match pair {
            [flag, text] if flag == "--seconds" => seconds = value(text)?,
            [flag, text] if flag == "--seed" => seed = value(text)?,
            _ => return Err("usage: cargo xtask soak [--seconds N] [--seed N]".into()),
        }
    }
    let program = bench::build()?;
    let (start, first) = (Instant::now(), seed);
    while start.elapsed() < Duration::from_secs(seconds) {
        soak(&Home::new(&program), seed)?;
        seed += SESSIONS;
    }
    println!(
        "{} sessions, seeds {first} to {}: nothing broke",
        seed - first,
        seed.saturating_sub(1)
    );
    Ok(())
}

/// Kills a sender while its sessions grow and its receiver fails.
fn send(args: &[String]) -> Outcome {
    let mut plan = Plan {
        kills: 1_000,
        lines: 100_000,
        sessions: 20,
        seed: 1,
    };
    let mut program = None;
    for pair in args.chunks(2) {
        let number = |text: &String| {
            text.parse::<usize>()
                .map_err(|_| format!("`{text}` is no number"))
        };
        match pair {
            [flag, text] if flag == "--kills" => plan.kills = number(text)?,
            [flag, text] if flag == "--lines" => plan.lines = number(text)?,
            [flag, text] if flag == "--seed" => plan.seed = number(text)? as u64,
            [flag, path] if flag == "--program" => program = Some(PathBuf::from(path)),
            _ => {
                return Err(
                    "usage: cargo xtask soak send [--kills N] [--lines N] [--seed N] [--program PATH]"
                        .into(),
                );
            }
        }
    }
    let program = program.map_or_else(bench::build, Ok)?;
    let start = Instant::now();
    let report = unspool_testkit::soak::run(&program, plan)?;
    println!(
        "{} kills, {} lines, {} turns, {} spans in {} requests ({} spans more than once), {} s: every turn once by id, whole, in order",
        report.kills,
        report.lines,
        report.turns,
        report.spans,
        report.requests,
        report.repeated,
        start.elapsed().as_secs()
    );
    Ok(())
}

/// Does anything to files that are followed: the tests of the store, for long.
fn tail(args: &[String]) -> Outcome {
    let (mut actions, mut kills, mut seed) = (1_000_000, 200, 1);
    for pair in args.chunks(2) {
        let number = |text: &String| {
            text.parse::<usize>()
                .map_err(|_| format!("`{text}` is no number"))
        };
        match pair {
            [flag, text] if flag == "--actions" => actions = number(text)?,
            [flag, text] if flag == "--kills" => kills = number(text)?,
            [flag, text] if flag == "--seed" => seed = number(text)?,
            _ => {
                return Err(
                    "usage: cargo xtask soak tail [--actions N] [--kills N] [--seed N]".into(),
                );
            }
        }
    }
    let start = Instant::now();
    let status = std::process::Command::new("cargo")
        .args([
            "test",
            "--quiet",
            "--package",
            "unspool-store",
            "--test",
            "store",
        ])
        .args(["--", "follower::", "--nocapture"])
        .env("UNSPOOL_ACTIONS", actions.to_string())
        .env("UNSPOOL_KILLS", kills.to_string())
        .env("UNSPOOL_SEED", seed.to_string())
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if !status.success() {
        return Err(format!("the tail and its model differ, with --seed {seed}"));
    }
    println!(
        "{actions} actions, {kills} kills, seed {seed}, {} s: every line once",
        start.elapsed().as_secs()
    );
    Ok(())
}

fn soak(home: &Home, seed: u64) -> Outcome {
    let ids: Vec<String> = (seed..seed + SESSIONS)
        .map(|seed| format!("{seed:08x}-0000-4000-8000-000000000000"))
        .collect();
    for (id, seed) in ids.iter().zip(seed..) {
        home.transcript(
            "/home/dev/graph",
            id,
            graph::session(seed).join("\n") + "\n",
        );
    }
    for command in COMMANDS {
        let sessions = if command.contains(&"ID") {
            &ids[..]
        } else {
            &ids[..1]
        };
        for id in sessions {
            let args: Vec<&str> = command
                .iter()
                .map(|arg| if *arg == "ID" { id } else { *arg })
                .collect();
            let start = Instant::now();
            let output = home.output(&args);
            if let Some(reason) = fault(&output, start.elapsed()) {
                return Err(format!(
                    "`unspool {}` with --seed {seed}: {reason}",
                    args.join(" ")
                ));
            }
        }
    }
    Ok(())
}

/// What must never happen, if it did.
fn fault(output: &Output, took: Duration) -> Option<String> {
    let stderr = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        // 1: found nothing, or found faults; here every session may be a broken one.
        Some(0 | 1) if took < PATIENCE => None,
        Some(0 | 1) => Some(format!("took {took:?}")),
        Some(code) => Some(format!("status {code}\n{stderr}")),
        None => Some(format!("ended by a signal\n{stderr}")),
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    #[test]
    fn a_panic_a_signal_and_a_hang_are_faults() {
        let output = |raw| Output {
            status: ExitStatus::from_raw(raw),
            stdout: Vec::new(),
            stderr: Vec::new(),
        };
        let moment = Duration::from_millis(3);
        assert!(fault(&output(0), moment).is_none() && fault(&output(1 << 8), moment).is_none());
        assert!(fault(&output(101 << 8), moment).is_some() && fault(&output(9), moment).is_some());
        assert!(fault(&output(2 << 8), moment).is_some() && fault(&output(0), PATIENCE).is_some());
    }
}
