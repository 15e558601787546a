//! Installs the real client from npm, into a cache outside the repository.

use super::Problem;
use super::options::Options;
use std::path::PathBuf;
use std::process::Command;

const PACKAGE: &str = "@anthropic-ai/claude-code";

/// Installs a version unless it is there.
pub fn install(options: &Options, version: &str) -> Result<(), Problem> {
    if command(options, version).is_ok() {
        return Ok(());
    }
    eprintln!("installing {PACKAGE}@{version}");
    let dir = options.cache.join(version);
    std::fs::create_dir_all(&dir)?;
    let status = Command::new("npm")
        .args([
            "install",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
            "--prefix",
        ])
        .arg(&dir)
        .arg(format!("{PACKAGE}@{version}"))
        .status()?;
    if !status.success() {
        return Err(format!("npm could not install {PACKAGE}@{version}").into());
    }
    command(options, version).map(|_| ())
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
