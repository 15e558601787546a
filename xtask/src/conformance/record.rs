//! What was seen, one file per case, so that a run can go on where it stopped.

use super::Problem;
use super::cases::Case;
use super::options::Options;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use unspool_testkit::conformance::reduce::{self, Texts};

/// What the client did with a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It sent this history, reduced.
    Sent(Vec<Value>),
    /// It found no conversation.
    None,
    /// It sent nothing in time.
    Hang,
    /// It stopped in another way, with these words.
    Failed(String),
}

/// One observation.
pub struct Observation {
    /// The name of the case.
    pub case: String,
    /// A hash of the file it was given.
    pub input: String,
    /// What it did.
    pub outcome: Outcome,
}

impl Observation {
    /// The form kept on disk.
    pub fn to_json(&self) -> Value {
        let mut value = json!({"case": self.case, "input": self.input});
        match &self.outcome {
            Outcome::Sent(messages) => value["sent"] = messages.clone().into(),
            Outcome::None => value["none"] = true.into(),
            Outcome::Hang => value["hang"] = true.into(),
            Outcome::Failed(words) => value["failed"] = words.clone().into(),
        }
        value
    }

    /// Reads the form kept on disk.
    pub fn from_json(value: &Value) -> Observation {
        let outcome = if let Some(messages) = value["sent"].as_array() {
            Outcome::Sent(messages.clone())
        } else if value["none"] == true {
            Outcome::None
        } else if value["hang"] == true {
            Outcome::Hang
        } else {
            Outcome::Failed(value["failed"].as_str().unwrap_or_default().to_owned())
        };
        let word = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
        Observation {
            case: word("case"),
            input: word("input"),
            outcome,
        }
    }
}

/// Where the observation of a case is kept.
pub fn path(options: &Options, version: &str, case: &str) -> PathBuf {
    let name = case.replace('/', "_");
    options.record.join(version).join(format!("{name}.json"))
}

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

fn read(path: &Path) -> Option<Value> {
    serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
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
