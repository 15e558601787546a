//! What is done to a recorded session so that an operation finds work in it.
//!
//! Apart from these few, the changes that real clients are tried on serve as
//! damage: a name of [`mutations`] is good here too.

use super::mutations;
use super::transcript::{Transcript, blocks};
use serde_json::{Value, json};

/// A token of a public form that belongs to nobody; in two parts, so that no scanner of sources
/// takes it for one.
pub const TOKEN: &str = concat!("ghp", "_R7kQ2mXw9TzL4vNc8bYd3fHs6gJp1aEu5oZi");

/// Changes the session as the name says; no name changes nothing.
///
/// Fails for a name that nobody has.
pub fn apply(name: &str, transcript: &mut Transcript) -> Result<(), String> {
    match name {
        "" => {}
        "secrets" => put_secrets(transcript),
        "long-texts" => lengthen(transcript),
        _ => {
            let all = mutations::all();
            let found = all.iter().find(|mutation| mutation.name == name);
            let mutation = found.ok_or_else(|| format!("nothing is prepared by `{name}`"))?;
            (mutation.apply)(transcript);
        }
    }
    Ok(())
}

/// A token in every prompt, answer, call and result.
fn put_secrets(transcript: &mut Transcript) {
    for value in transcript.values_mut().filter(|value| speaks(value)) {
        let changed = blocks(value).into_iter().map(|mut block| {
            match block["type"].as_str() {
                Some("text") => append(&mut block["text"]),
                Some("tool_result") => append(&mut block["content"]),
                Some("tool_use") => block["input"]["description"] = TOKEN.into(),
                _ => {}
            }
            block
        });
        let changed: Vec<Value> = changed.collect();
        put(value, changed);
    }
}

fn append(text: &mut Value) {
    if let Value::String(text) = text {
        text.push_str(" with token ");
        text.push_str(TOKEN);
    }
}

/// Prompts and answers long enough to be worth shortening.
fn lengthen(transcript: &mut Transcript) {
    let more: Vec<String> = (0..60)
        .map(|n| format!("sentence {n} of a long text."))
        .collect();
    let more = more.join(" ");
    for value in transcript.values_mut().filter(|value| speaks(value)) {
        let mut changed = blocks(value);
        for block in &mut changed {
            if let Some(text) = block["text"].as_str() {
                block["text"] = format!("{text}: {more}").into();
            }
        }
        put(value, changed);
    }
}

fn speaks(value: &Value) -> bool {
    value["type"] == "user" || value["type"] == "assistant"
}

/// Puts blocks back; a single text of a prompt stays a string.
fn put(value: &mut Value, blocks: Vec<Value>) {
    let content = &mut value["message"]["content"];
    *content = match (&content, blocks.first()) {
        (Value::String(_), Some(block)) => block["text"].clone(),
        (Value::Array(_), _) => json!(blocks),
        _ => return,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_stands_in_every_text_and_strings_stay_strings() {
        let text = r#"{"type":"user","uuid":"a","message":{"content":"hello"}}
{"type":"assistant","uuid":"b","message":{"content":[{"type":"text","text":"hi"}]}}"#;
        let mut transcript = Transcript::parse(text);
        assert_eq!(apply("secrets", &mut transcript), Ok(()));
        assert_eq!(transcript.text().matches(TOKEN).count(), 2);
        let first = transcript.values().next();
        assert!(first.is_some_and(|line| line["message"]["content"].is_string()));
    }

    #[test]
    fn an_unknown_name_is_refused() {
        assert!(apply("no-such-change", &mut Transcript::default()).is_err());
    }
}
