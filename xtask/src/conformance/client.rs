//! Installs the real client from npm, into a cache outside the repository.

use super::Problem;
use super::options::Options;
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGE: &str = "@anthropic-ai/claude-code";

/// Installs a version unless it is there.
pub fn install(options: &Options, version: &str) -> Result<(), Problem> {
    if command(options, version).is_ok() {
        return Ok(());
    }
    eprintln!("installing {PACKAGE}@{version}");
    make_room(options)?;
    let dir = options.cache.join(version);
    std::fs::create_dir_all(&dir)?;
    let downloads = options
        .cache
        .join(format!("downloads-{}", std::process::id()));
    let status = Command::new("npm")
        .args([
            "install",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
            "--prefix",
        ])
        .arg(&dir)
        .arg("--cache")
        .arg(&downloads)
        .arg(format!("{PACKAGE}@{version}"))
        .status()?;
    // What was unpacked is kept; the packed form would take the same room again.
    let _ = std::fs::remove_dir_all(&downloads);
    if !status.success() {
        return Err(format!("npm could not install {PACKAGE}@{version}").into());
    }
    command(options, version).map(|_| ())
}

/// All versions that can still be installed, oldest first.
pub fn versions() -> Result<Vec<String>, Problem> {
    let answer = Command::new("npm")
        .args(["view", PACKAGE, "versions", "--json"])
        .output()?;
    let all: Vec<serde_json::Value> = serde_json::from_slice(&answer.stdout)?;
    let all = all.iter().filter_map(serde_json::Value::as_str);
    Ok(all.map(str::to_owned).collect())
}

/// Removes clients until the rest takes no more room than is given, the longest unused first.
fn make_room(options: &Options) -> Result<(), Problem> {
    let mut clients = Vec::new();
    for entry in std::fs::read_dir(&options.cache).into_iter().flatten() {
        let entry = entry?;
        let used = entry.metadata()?.modified()?;
        clients.push((used, size(&entry.path())?, entry.path()));
    }
    clients.sort();
    let mut taken: u64 = clients.iter().map(|(_, size, _)| size).sum();
    for (_, size, client) in clients {
        if taken <= options.room {
            break;
        }
        std::fs::remove_dir_all(client)?;
        taken -= size;
    }
    Ok(())
}

/// The bytes of all files below a folder.
fn size(folder: &Path) -> Result<u64, Problem> {
    let mut total = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        total += match about.is_dir() {
            true => size(&entry.path())?,
            false => about.len(),
        };
    }
    Ok(total)
}

/// The words that start a version: a native program, or a script for node.
pub fn command(options: &Options, version: &str) -> Result<Vec<PathBuf>, Problem> {
    let modules = options
        .cache
        .join(version)
        .join("node_modules/@anthropic-ai");
    let native = modules.join(format!("claude-code-linux-{}/claude", architecture()));
    let script = modules.join("claude-code/cli.js");
    if native.is_file() {
        Ok(vec![native])
    } else if script.is_file() {
        Ok(vec![PathBuf::from("node"), script])
    } else {
        Err(format!(
            "version {version} is not installed in {}",
            options.cache.display()
        )
        .into())
    }
}

fn architecture() -> &'static str {
    if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        "x64"
    }
}
