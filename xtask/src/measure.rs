//! What one run of a program costs: wall time, processor time, peak memory.
//!
//! The system tells these sums only for all children of a process together, so
//! each measured program gets a parent of its own: [`cost`] starts this task
//! runner again as `measure PROGRAM ARGUMENT…`, which has exactly one child.
//! The parent is small, because a child starts with the peak of its parent.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::Outcome;

/// What a run cost.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Seconds on the clock.
    pub wall: f64,
    /// Seconds of processors, user and system.
    pub cpu: f64,
    /// The largest resident set, in megabytes.
    pub peak: f64,
    /// The exit status; -1 if a signal ended it.
    pub status: i32,
}

/// Runs a program with these variables set, its output thrown away.
pub fn cost(program: &Path, args: &[&str], variables: &[(&str, &Path)]) -> Result<Cost, String> {
    cost_in(Path::new("."), program, args, variables)
}

/// The same, in a folder.
pub fn cost_in(
    folder: &Path,
    program: &Path,
    args: &[&str],
    variables: &[(&str, &Path)],
) -> Result<Cost, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(own)
        .arg("measure")
        .arg(program)
        .args(args)
        .current_dir(folder)
        .envs(variables.iter().copied())
        .env("TZ", "UTC")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    parse(&text).ok_or_else(|| String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

/// `cargo xtask measure PROGRAM ARGUMENT…`: wall, processor, peak and status on one line.
pub fn run(args: &[String]) -> Outcome {
    let (program, args) = args.split_first().ok_or("which program?")?;
    let mut command = Command::new(program);
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let start = Instant::now();
    let status = command
        .status()
        .map_err(|error| format!("{program}: {error}"))?;
    let wall = start.elapsed().as_secs_f64();
    let (cpu, peak) = children()?;
    println!(
        "{wall:.6} {cpu:.6} {peak:.3} {}",
        status.code().unwrap_or(-1)
    );
    Ok(())
}

fn parse(line: &str) -> Option<Cost> {
    let mut words = line.split_whitespace();
    Some(Cost {
        wall: words.next()?.parse().ok()?,
        cpu: words.next()?.parse().ok()?,
        peak: words.next()?.parse().ok()?,
        status: words.next()?.parse().ok()?,
    })
}

/// Processor seconds and peak megabytes of the children that have ended.
#[cfg(unix)]
fn children() -> Result<(f64, f64), String> {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| error.to_string())?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    // Linux counts in kilobytes, macOS in bytes.
    let unit = if cfg!(target_os = "macos") {
        1.0
    } else {
        1024.0
    };
    Ok((micros as f64 / 1e6, usage.max_rss() as f64 * unit / 1e6))
}

#[cfg(not(unix))]
fn children() -> Result<(f64, f64), String> {
    Err("measuring needs a Unix system".into())
}

/// A cost for tests, of which only some numbers matter.
#[cfg(test)]
pub fn made_up(wall: f64, peak: f64) -> Cost {
    Cost {
        wall,
        cpu: wall,
        peak,
        status: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_figures_is_read_back() {
        let cost = parse("0.5 0.25 12.5 1\n").unwrap();
        assert_eq!(
            (cost.wall, cost.cpu, cost.peak, cost.status),
            (0.5, 0.25, 12.5, 1)
        );
        assert!(parse("0.5 oops").is_none());
    }
}
