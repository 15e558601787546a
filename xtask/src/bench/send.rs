//! Spans: how many are made and encoded per second of processor.
//!
//! The example `spans` of `unspool-send` does it on one thread, without a receiver, and says
//! what it took beside reading. Masking is told beside it: it depends on how much text there
//! is, not on how many spans.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::Request;
use super::table::Row;
use super::trees::Tree;
use crate::measure::{self, Cost};

const NAME: &str = "send: spans of a session, 100 MB";

/// Spans per second of processor, encoded.
const SPEED: f64 = 50_000.0;

/// The row, if it is wanted.
pub fn rows(request: &Request) -> Result<Vec<Row>, String> {
    if !request.wants_name(NAME) {
        return Ok(Vec::new());
    }
    let program = build()?;
    let folder = request.home(Tree::Tenth)?.join(".claude");
    let best = |more: &[&str]| {
        let runs = (0..request.runs).map(|_| speed(&program, &folder, more));
        runs.collect::<Result<Vec<f64>, String>>()
            .map(|runs| runs.into_iter().fold(0.0, f64::max))
    };
    let (raw, masked) = (best(&["--raw"])?, best(&[])?);
    let once = best(&["--raw", "--once"])?;
    Ok(vec![Row {
        name: NAME.into(),
        cost: Some(cost(&program, &folder)),
        targets: vec![(
            format!("≥ {SPEED} spans a second of processor"),
            raw >= SPEED,
        )],
        against: format!(
            "{raw:.0} spans/s; texts under one name instead of three {once:.0}; with secrets masked {masked:.0}"
        ),
    }])
}

fn build() -> Result<PathBuf, String> {
    let status = Command::new("cargo")
        .args([
            "build",
            "--release",
            "--package",
            "unspool-send",
            "--example",
            "spans",
        ])
        .current_dir(crate::root())
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if !status.success() {
        return Err("the example does not build".into());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| crate::root().join("target"), PathBuf::from);
    Ok(target.join("release/examples/spans"))
}

fn cost(program: &Path, folder: &Path) -> Result<Cost, String> {
    let folder = folder.to_string_lossy();
    measure::cost(program, &[&folder, "--raw"], &[])
}

/// What the example says of itself.
fn speed(program: &Path, folder: &Path, more: &[&str]) -> Result<f64, String> {
    let output = Command::new(program)
        .arg(folder)
        .args(more)
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let said: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{}: {error}", program.display()))?;
    said["spans_per_second"]
        .as_f64()
        .ok_or_else(|| "no `spans_per_second`".to_owned())
}
