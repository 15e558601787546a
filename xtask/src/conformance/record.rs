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
    let same = observation.input == reduce::hash(&case.text);
    observation.input = reduce::input_hash(&case.text);
    same.then_some(observation)
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

/// What the program made, and what the client did with it.
pub struct Made {
    /// Tells results of the same program apart, not the ids in them.
    pub input: String,
    /// The session that was resumed.
    pub text: String,
    /// What the client did.
    pub outcome: Outcome,
    /// The whole request, if there was one.
    pub request: Option<Value>,
}

/// The observation of a result, with the result itself: it has ids that are drawn by chance, so
/// that it cannot be made again.
pub fn load_made(options: &Options, version: &str, name: &str) -> Option<Made> {
    let path = path(options, version, name);
    let observation = Observation::from_json(&read(&path)?);
    let request = read(&path.with_extension("request")).filter(|request| !request.is_null());
    Some(Made {
        input: observation.input,
        text: std::fs::read_to_string(path.with_extension("jsonl")).ok()?,
        outcome: observation.outcome,
        request,
    })
}

/// Keeps a result beside its observation.
pub fn save_made(options: &Options, version: &str, name: &str, text: &str) -> Result<(), Problem> {
    let path = path(options, version, name).with_extension("jsonl");
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    Ok(std::fs::write(path, text)?)
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
