//! What a model said, if it said it in the form it was asked for.

use serde_json::Value;

/// The text of an answer: a JSON object with a `text`, alone, fenced, or behind other words.
/// Anything else is no answer: an error message must not become a reply.
pub fn answer(said: &str) -> Option<String> {
    let opened = said.char_indices().filter(|(_, it)| *it == '{');
    opened
        .take(TRIES)
        .find_map(|(at, _)| object_at(&said[at..]))
}

/// How many braces are tried: words in front of an answer are few.
const TRIES: usize = 200;

/// The text of an object with which everything ends.
fn object_at(said: &str) -> Option<String> {
    let mut values = serde_json::Deserializer::from_str(said).into_iter::<Value>();
    let value = values.next()?.ok()?;
    let rest = said[values.byte_offset()..].trim();
    let ends = rest.is_empty() || rest == "```";
    let text = value.get("text")?.as_str()?;
    ends.then(|| text.trim().to_owned())
        .filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_taken_alone_fenced_or_behind_a_preamble() {
        for said in [
            r#"{"text": "short"}"#,
            "\n {\"note\":1,\"text\":\" short \"}\n",
            "```json\n{\"text\":\"short\"}\n```",
            "```\n{\"text\":\"short\"}\n```\n",
            "Here it is:\n\n{\"text\":\"short\"}",
            "I kept {the braces}. Here:\n```json\n{\"text\":\"short\"}\n```",
        ] {
            assert_eq!(answer(said).as_deref(), Some("short"), "{said}");
        }
        assert_eq!(
            answer("{\"text\":\"a {b} \\\"c\\\"\\n```\\nd\"}").as_deref(),
            Some("a {b} \"c\"\n```\nd")
        );
    }

    #[test]
    fn everything_else_is_no_answer() {
        for said in [
            "",
            "short",
            "Credit balance is too low",
            r#"{"text": 3}"#,
            r#"{"text": ""}"#,
            r#"{"text": "  "}"#,
            r#"{"other": "short"}"#,
            r#"{"a": {"text": "short"}}"#,
            r#"[{"text": "short"}]"#,
            r#"{"text": "cut of"#,
            r#"{"text": "short"} and some more"#,
            "\"short\"",
        ] {
            assert_eq!(answer(said), None, "{said}");
        }
    }
}
