//! `cargo xtask fuzz TARGET [--seconds N]`: fuzzes one target and keeps count.
//!
//! Runs cargo-fuzz with the nightly compiler, or with the stable one told to
//! accept what only nightly accepts. Starts from sessions of our generators, so
//! that the fuzzer need not invent JSON first. Adds what was run to the totals
//! in `docs/fuzzing.md`. Kept out of the tests: it has no end.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use unspool_model::secrets::SecretFinder;
use unspool_testkit::graph;
use unspool_testkit::random::Random;

use crate::Outcome;

/// The targets, each with the sentence it tries to break.
const TARGETS: &[(&str, &str)] = &[
    (
        "line",
        "any bytes are a line, and every JSON object is an entry",
    ),
    ("splice", "editing a field touches that field alone"),
    (
        "fold",
        "any bytes are a session, the same one however they are cut",
    ),
    (
        "resume",
        "what would be sent on resume is something, and ours is valid",
    ),
    (
        "secrets",
        "in any text secrets are found in order, and none is left once masked",
    ),
];

const DOCUMENT: &str = "docs/fuzzing.md";

/// What has been run of one target.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Total {
    executions: u64,
    seconds: u64,
    crashes: u64,
}

/// Fuzzes a target.
pub fn run(args: &[String]) -> Outcome {
    let (target, seconds) = read(args)?;
    prepare(target)?;
    build(target)?;
    let mut command = compiler()?;
    command
        .args(["fuzz", "run", "--sanitizer", "none", target, "--"])
        .arg(format!("-max_total_time={seconds}"))
        // The promises: no input takes a second or half a gigabyte.
        .args([
            "-timeout=5",
            "-rss_limit_mb=512",
            "-max_len=4000",
            "-print_final_stats=1",
        ])
        .current_dir(crate::root().join("fuzz"));
    let start = Instant::now();
    let (executions, is_clean) = watch(&mut command)?;
    let crashes = u64::from(!is_clean);
    record(
        target,
        Total {
            executions,
            seconds: start.elapsed().as_secs(),
            crashes,
        },
    )?;
    println!("{target}: {executions} executions, {crashes} crashes");
    if is_clean {
        Ok(())
    } else {
        Err(format!("{target} crashed; see fuzz/artifacts/{target}"))
    }
}

/// Builds apart from running, because a target that does not build has not crashed.
fn build(target: &str) -> Outcome {
    let mut command = compiler()?;
    command.args(["fuzz", "build", "--sanitizer", "none", target]);
    let status = command.current_dir(crate::root().join("fuzz")).status();
    if status.is_ok_and(|status| status.success()) {
        Ok(())
    } else {
        Err(format!("{target} does not build"))
    }
}

fn read(args: &[String]) -> Result<(&'static str, u64), String> {
    let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    let usage = format!("usage: cargo xtask fuzz {} [--seconds N]", names.join("|"));
    let (name, rest) = args.split_first().ok_or(usage.as_str())?;
    let target = names
        .into_iter()
        .find(|target| target == name)
        .ok_or(usage.as_str())?;
    let seconds = match rest {
        [] => Some(60),
        [flag, value] if flag == "--seconds" => value.parse().ok(),
        _ => None,
    };
    Ok((target, seconds.ok_or(usage)?))
}

/// A cargo that can fuzz here.
fn compiler() -> Result<Command, String> {
    if !works(Command::new("cargo").args(["fuzz", "--version"])) {
        return Err("cargo-fuzz is missing; install it with `cargo install cargo-fuzz`".into());
    }
    let mut command = Command::new("cargo");
    if works(Command::new("cargo").args(["+nightly", "--version"])) {
        command.arg("+nightly");
    } else {
        eprintln!("no nightly compiler; asking the stable one to act as one");
        command.env("RUSTC_BOOTSTRAP", "1");
    }
    // Set by the cargo that started this task; they would choose its compiler again.
    command
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO")
        .env_remove("RUSTC");
    Ok(command)
}

fn works(command: &mut Command) -> bool {
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// Gives the fuzzer sessions to start from.
fn prepare(target: &str) -> Outcome {
    let folder = crate::root().join("fuzz/corpus").join(target);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for seed in 0..100 {
        let lines = graph::session(seed);
        let text = match target {
            "line" => lines.last().cloned().unwrap_or_default(),
            "secrets" => dense(seed),
            _ => lines.join("\n"),
        };
        let path = folder.join(format!("seed-{seed}"));
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// Names of secrets, with something that could be one behind each.
fn dense(seed: u64) -> String {
    let names: Vec<_> = SecretFinder::standard().rules().collect();
    let mut random = Random::new(seed);
    let mut text = String::new();
    for _ in 0..4 {
        let (id, about) = random.pick(&names);
        let value = format!("{:016x}{:016X}", random.next(), random.next());
        text.push_str(&format!(
            "{about} {id}_key = \"{value}\"\nhttps://me:{value}@x "
        ));
    }
    text
}

/// Runs the fuzzer, shows what it says, and returns how often it ran the target.
fn watch(command: &mut Command) -> Result<(u64, bool), String> {
    let mut child = command
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut executions = 0;
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            eprintln!("{line}");
            executions = executions.max(count(&line).unwrap_or(0));
        }
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    Ok((executions, status.success()))
}

/// The executions that a line of the fuzzer's output tells: `#123 …` while it
/// runs (all we get if it crashes), the exact number at the end.
fn count(line: &str) -> Option<u64> {
    let number = match line.strip_prefix("stat::number_of_executed_units:") {
        Some(rest) => rest.trim(),
        None => line.strip_prefix('#')?.split_whitespace().next()?,
    };
    number.trim_end_matches(':').parse().ok()
}

/// Adds a run to the totals in the document.
fn record(target: &str, run: Total) -> Outcome {
    let path = crate::root().join(DOCUMENT);
    let text = fs::read_to_string(&path).unwrap_or_default();
    let totals: Vec<Total> = TARGETS
        .iter()
        .map(|(name, _)| {
            if *name == target {
                total(&text, name).plus(run)
            } else {
                total(&text, name)
            }
        })
        .collect();
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&path, document(&totals)))
        .map_err(|error| format!("{}: {error}", path.display()))
}

impl Total {
    fn plus(self, other: Total) -> Total {
        Total {
            executions: self.executions + other.executions,
            seconds: self.seconds + other.seconds,
            crashes: self.crashes + other.crashes,
        }
    }
}

/// What a document says about a target.
fn total(document: &str, name: &str) -> Total {
    let prefix = format!("| {name} |");
    let row = document
        .lines()
        .find(|line| line.starts_with(&prefix))
        .unwrap_or_default();
    let cells: Vec<u64> = row
        .split('|')
        .filter_map(|cell| cell.trim().replace(',', "").parse().ok())
        .collect();
    match cells[..] {
        [executions, seconds, crashes] => Total {
            executions,
            seconds,
            crashes,
        },
        _ => Total::default(),
    }
}

fn document(totals: &[Total]) -> String {
    let mut text = String::from(
        "# Fuzzing\n\n`cargo xtask fuzz TARGET --seconds N` runs a target and adds to this table. Any crash is a bug: \
         the input that caused it is kept in `fuzz/artifacts` and becomes a test.\n\n\
         | target | executions | seconds | crashes | tries to break |\n|---|---|---|---|---|\n",
    );
    for ((name, about), total) in TARGETS.iter().zip(totals) {
        let executions = grouped(total.executions);
        text.push_str(&format!(
            "| {name} | {executions} | {} | {} | {about} |\n",
            total.seconds, total.crashes
        ));
    }
    text
}

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_survive_being_written_and_read() {
        let run = Total {
            executions: 1_234_567,
            seconds: 60,
            crashes: 0,
        };
        let text = document(&[run; TARGETS.len()]);
        assert!(text.contains("| line | 1,234,567 | 60 | 0 |"), "{text}");
        assert_eq!(total(&text, "line").plus(run).executions, 2_469_134);
        assert_eq!(total(&text, "fold"), run);
        assert_eq!(total("", "line"), Total::default());
    }

    #[test]
    fn executions_are_read_from_the_fuzzer() {
        assert_eq!(count("stat::number_of_executed_units: 4711"), Some(4711));
        assert_eq!(count("#65536\tpulse  cov: 10 ft: 20"), Some(65536));
        assert_eq!(count("INFO: Seed: 1"), None);
    }
}
