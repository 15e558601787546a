//! Small sessions that are put to clients of many versions, and what each made of them.
//!
//! Most versions answer like their neighbours, so the fixture holds each answer once, with the
//! versions that gave it.

use super::observation::Outcome;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};

/// What one version made of one probe.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The client.
    pub version: String,
    /// The name of the file, without its ending.
    pub probe: String,
    /// A hash of the file.
    pub input: String,
    /// What the client did. The words of a failure are not kept: they differ from run to run.
    pub outcome: Outcome,
}

/// The file that holds a probe; `folder` is `tests/conformance`.
pub fn path(folder: &Path, probe: &str) -> PathBuf {
    folder.join(format!("probes/{probe}.jsonl"))
}

/// The names of all probes.
pub fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder.join("probes"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(".jsonl").map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// The numbers of a version, by which versions are ordered.
pub fn numbers(version: &str) -> Vec<u32> {
    let numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    numbers.collect()
}

/// The text of the fixture: one message and one answer per line.
pub fn write(seen: &[Seen]) -> String {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut messages = Vec::new();
    let mut answers: BTreeMap<(&str, &str, String), Vec<&str>> = BTreeMap::new();
    let mut sorted: Vec<&Seen> = seen.iter().collect();
    sorted.sort_by_cached_key(|seen| (seen.probe.clone(), numbers(&seen.version)));
    for seen in sorted {
        let outcome = match &seen.outcome {
            Outcome::Sent(sent) => {
                let place = |message: &Value| {
                    let text = message.to_string();
                    *places.entry(text.clone()).or_insert_with(|| {
                        messages.push(text);
                        messages.len() - 1
                    })
                };
                json!({"sent": sent.iter().map(place).collect::<Vec<_>>()})
            }
            Outcome::None => json!({"none": true}),
            Outcome::Hang => json!({"hang": true}),
            Outcome::Failed(_) => json!({"failed": true}),
        };
        let answer = (
            seen.probe.as_str(),
            seen.input.as_str(),
            outcome.to_string(),
        );
        answers.entry(answer).or_default().push(&seen.version);
    }
    let answers = answers.iter().map(|((probe, input, outcome), versions)| {
        let outcome = outcome.trim_start_matches('{');
        let start = json!({"probe": probe, "input": input, "versions": versions}).to_string();
        format!("{},{outcome}", start.trim_end_matches('}'))
    });
    format!(
        "{{\"messages\":[\n{}\n],\n\"answers\":[\n{}\n]}}\n",
        messages.join(",\n"),
        answers.collect::<Vec<_>>().join(",\n")
    )
}

/// Reads the fixture.
pub fn read(path: &Path) -> io::Result<Vec<Seen>> {
    let fixture: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let mut all = Vec::new();
    for answer in fixture["answers"].as_array().into_iter().flatten() {
        let word = |field: &str| answer[field].as_str().unwrap_or_default().to_owned();
        let message = |place: &Value| {
            let at = place.as_u64().and_then(|at| usize::try_from(at).ok());
            fixture["messages"][at.unwrap_or(usize::MAX)].clone()
        };
        let outcome = if let Some(sent) = answer["sent"].as_array() {
            Outcome::Sent(sent.iter().map(message).collect())
        } else if answer["none"] == true {
            Outcome::None
        } else if answer["hang"] == true {
            Outcome::Hang
        } else {
            Outcome::Failed(String::new())
        };
        for version in answer["versions"].as_array().into_iter().flatten() {
            all.push(Seen {
                version: version.as_str().unwrap_or_default().to_owned(),
                probe: word("probe"),
                input: word("input"),
                outcome: outcome.clone(),
            });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_comes_back_and_equal_answers_stand_once() -> io::Result<()> {
        let sent = |text: &str| Outcome::Sent(vec![json!({"role": "user", "blocks": [text]})]);
        let seen = |version: &str, probe: &str, outcome| Seen {
            version: version.to_owned(),
            probe: probe.to_owned(),
            input: "00000000".to_owned(),
            outcome,
        };
        let all = [
            seen("2.1.9", "one", sent("text a")),
            seen("2.1.10", "one", sent("text a")),
            seen("2.1.10", "three", Outcome::None),
            seen("2.1.9", "two", Outcome::Hang),
            seen("2.1.10", "two", Outcome::Failed(String::new())),
        ];
        let text = write(&all);
        assert!(text.contains(r#""versions":["2.1.9","2.1.10"]"#), "{text}");
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("versions.json");
        std::fs::write(&path, text)?;
        let mut back = read(&path)?;
        back.sort_by_key(|seen| (seen.probe.clone(), numbers(&seen.version)));
        assert_eq!(back, all);
        Ok(())
    }
}
