//! What a server answered, as the model is told it.

use rmcp::model::CallToolResult;
use serde_json::{Value, json};
use unspool_agent::tool::{ToolContent, ToolOutcome};

/// Images that the API takes.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The longest text of an answer: about 25,000 tokens.
const LONGEST: usize = 100_000;

/// The outcome of a call.
pub fn outcome(answer: CallToolResult) -> ToolOutcome {
    let failed = answer.is_error == Some(true);
    let content = serde_json::to_value(&answer.content).unwrap_or_default();
    let mut blocks = blocks(&content);
    if blocks.is_empty() {
        let said = answer.structured_content.map(|value| value.to_string());
        blocks.push(text(said.as_deref().unwrap_or("(no output)")));
    }
    if failed {
        let words: Vec<&str> = blocks.iter().filter_map(|it| it["text"].as_str()).collect();
        return ToolOutcome::failed(words.join("\n"));
    }
    let mut outcome = ToolOutcome::done("", Value::Array(blocks.clone()));
    outcome.content = ToolContent::Blocks(blocks);
    outcome
}

/// Blocks of the API for those of the protocol.
fn blocks(content: &Value) -> Vec<Value> {
    let mut left = LONGEST;
    let mut out = Vec::new();
    for block in content.as_array().into_iter().flatten() {
        let field = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
        let kind = field("mimeType");
        match field("type") {
            "image" if IMAGES.contains(&kind) => out.push(json!({
                "type": "image",
                "source": {"type": "base64", "media_type": kind, "data": field("data")},
            })),
            "text" => said(field("text"), &mut left, &mut out),
            "resource" => {
                let inner = block.get("resource").unwrap_or(&Value::Null);
                let uri = inner["uri"].as_str().unwrap_or_default();
                match inner["text"].as_str() {
                    Some(body) => said(&format!("[{uri}]\n{body}"), &mut left, &mut out),
                    None => said(&format!("[{uri}: not text]"), &mut left, &mut out),
                }
            }
            "resource_link" => {
                let line = format!("[{}: {}]", field("name"), field("uri"));
                said(&line, &mut left, &mut out);
            }
            other => said(
                &format!("[{other} {kind}: cannot be shown]"),
                &mut left,
                &mut out,
            ),
        }
    }
    out
}

/// Adds a text as long as there is room; the API refuses empty ones.
fn said(words: &str, left: &mut usize, out: &mut Vec<Value>) {
    if words.is_empty() || *left == 0 {
        return;
    }
    if words.len() <= *left {
        *left -= words.len();
        out.push(text(words));
        return;
    }
    let end = words.floor_char_boundary(*left);
    let over = words.len() - end;
    *left = 0;
    let note = format!("\n[{over} more bytes of the answer were left out; ask for less at once]");
    out.push(text(&(words[..end].to_owned() + &note)));
}

fn text(words: &str) -> Value {
    json!({"type": "text", "text": words})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_content_becomes_something_the_api_takes() {
        let content = json!([
            {"type": "text", "text": "hello"},
            {"type": "text", "text": ""},
            {"type": "image", "mimeType": "image/png", "data": "AA=="},
            {"type": "image", "mimeType": "image/svg+xml", "data": "AA=="},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "body"}},
            {"type": "resource", "resource": {"uri": "file:///b", "blob": "AA=="}},
            {"type": "resource_link", "name": "n", "uri": "u:x"},
            {"type": "audio", "mimeType": "audio/wav", "data": "AA=="},
        ]);
        let blocks = blocks(&content);
        let texts: Vec<&str> = blocks.iter().filter_map(|it| it["text"].as_str()).collect();
        assert_eq!(
            texts,
            [
                "hello",
                "[image image/svg+xml: cannot be shown]",
                "[file:///a]\nbody",
                "[file:///b: not text]",
                "[n: u:x]",
                "[audio audio/wav: cannot be shown]",
            ]
        );
        assert_eq!(blocks[1]["source"]["media_type"], "image/png");
    }

    #[test]
    fn a_long_answer_is_cut_and_says_by_how_much() {
        let content = json!([{"type": "text", "text": "ä".repeat(LONGEST)}, {"type": "text", "text": "later"}]);
        let blocks = blocks(&content);
        assert_eq!(blocks.len(), 1);
        let text = blocks[0]["text"].as_str().unwrap_or_default();
        assert!(
            text.contains("[100000 more bytes"),
            "{}",
            &text[text.len() - 99..]
        );
    }
}
