//! What a client did with a file, and the fixtures that keep it.
//!
//! A fixture holds each different message once, because edited copies of one
//! session have most of their messages in common.

use super::reduce;
use serde_json::{Value, json};
use std::path::Path;

/// What a client does, or what a reader says it would do.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It sends this history, reduced.
    Sent(Vec<Value>),
    /// It finds no conversation.
    None,
    /// It sends nothing in time.
    Hang,
    /// It stops in another way, with these words.
    Failed(String),
}

impl Outcome {
    /// Whether a reader is right about what was seen.
    pub fn agrees(&self, read: &Outcome) -> bool {
        match (self, read) {
            (Outcome::Sent(seen), Outcome::Sent(read)) => reduce::same(seen, read),
            // A client that gives up on a file shows no conversation either.
            (Outcome::Failed(_), read) => *read == Outcome::None,
            (seen, read) => seen == read,
        }
    }
}

/// One observation.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The name of the case.
    pub case: String,
    /// A hash of the file that was resumed.
    pub input: String,
    /// What the client did.
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
        let word = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
        let outcome = if let Some(messages) = value["sent"].as_array() {
            Outcome::Sent(messages.clone())
        } else if value["none"] == true {
            Outcome::None
        } else if value["hang"] == true {
            Outcome::Hang
        } else {
            Outcome::Failed(word("failed"))
        };
        Observation {
            case: word("case"),
            input: word("input"),
            outcome,
        }
    }
}

/// The text of a fixture: one message and one case per line.
pub fn write_fixture(version: &str, observations: &[Observation]) -> String {
    let mut messages: Vec<Value> = Vec::new();
    let mut cases = Vec::new();
    for observation in observations {
        let mut value = observation.to_json();
        if let Outcome::Sent(sent) = &observation.outcome {
            let places: Vec<usize> = sent.iter().map(|m| place(&mut messages, m)).collect();
            value["sent"] = places.into();
        }
        if let Outcome::Failed(words) = &observation.outcome {
            value["failed"] = format!("~{}", reduce::hash(words)).into();
        }
        cases.push(value.to_string());
    }
    let messages: Vec<String> = messages.iter().map(Value::to_string).collect();
    format!(
        "{{\"version\":{},\n\"messages\":[\n{}\n],\n\"cases\":[\n{}\n]}}\n",
        Value::from(version),
        messages.join(",\n"),
        cases.join(",\n")
    )
}

/// Where a message stands in the list; adds it if it is new.
fn place(messages: &mut Vec<Value>, message: &Value) -> usize {
    let known = messages.iter().position(|known| known == message);
    known.unwrap_or_else(|| {
        messages.push(message.clone());
        messages.len() - 1
    })
}

/// Reads a fixture.
pub fn read_fixture(path: &Path) -> std::io::Result<Vec<Observation>> {
    let fixture: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let whole = |case: &Value| {
        let mut case = case.clone();
        for place in case["sent"].as_array_mut().into_iter().flatten() {
            let at = place.as_u64().and_then(|at| usize::try_from(at).ok());
            *place = fixture["messages"][at.unwrap_or(usize::MAX)].clone();
        }
        Observation::from_json(&case)
    };
    let cases = fixture["cases"].as_array().into_iter().flatten();
    Ok(cases.map(whole).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixture_comes_back_as_it_was() -> std::io::Result<()> {
        let sent = |texts: &[&str]| {
            let message = |text: &&str| json!({"role": "user", "blocks": [text]});
            Outcome::Sent(texts.iter().map(message).collect())
        };
        let observation = |case: &str, outcome| Observation {
            case: case.to_owned(),
            input: "00000000".to_owned(),
            outcome,
        };
        let observations = [
            observation("one", sent(&["text a", "text b"])),
            observation("two", sent(&["text b"])),
            observation("three", Outcome::Hang),
            observation("four", Outcome::None),
        ];
        let path = std::env::temp_dir().join(format!("fixture-{}.json", std::process::id()));
        std::fs::write(&path, write_fixture("1.2.3", &observations))?;
        assert_eq!(read_fixture(&path)?, observations);
        std::fs::remove_file(&path)
    }
}
