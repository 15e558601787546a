//! What was seen, one file per case, so that a run can go on where it stopped.

use super::Problem;
use super::cases::Case;
use super::options::{self, Options};
use serde_json::Value;
use std::path::{Path, PathBuf};
pub use unspool_testkit::conformance::observation::{Observation, Outcome};
use unspool_testkit::conformance::reduce::{self, Texts};

/// The observation of a case, if it was made with this very input.
///
/// The history is reduced again from the whole request, so that a change of
/// the reduced form needs no new run.
pub fn load(options: &Options, version: &str, case: &Case) -> Option<Observation> {
    let path = path(options, version, &case.name);
    let mut observation = Observation::from_json(&read(&path)?);
    if let (Outcome::Sent(history), Some(request)) = (
        &mut observation.outcome,
        read(&path.with_extension("request")),
    ) {
        *history = reduce::history(&request["messages"], &Texts::of(&case.text));
    }
    (observation.input == reduce::hash(&case.text)).then_some(observation)
}

/// Keeps an observation, and beside it the whole request.
pub fn save(
    options: &Options,
    version: &str,
    observation: &Observation,
    request: &Value,
) -> Result<(), Problem> {
    let path = path(options, version, &observation.case);
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    std::fs::write(path.with_extension("request"), request.to_string())?;
    std::fs::write(&path, format!("{:#}\n", observation.to_json()))?;
    Ok(())
}

/// Where the repository keeps the observations of a version.
pub fn fixture_path(version: &str) -> PathBuf {
    let dir = options::root().join("tests/conformance");
    dir.join(format!("{version}.json"))
}

fn path(options: &Options, version: &str, case: &str) -> PathBuf {
    let name = case.replace('/', "_");
    options.record.join(version).join(format!("{name}.json"))
}

fn read(path: &Path) -> Option<Value> {
    serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
}
