//! A strict judge of requests: what the Messages API would refuse in `messages`.
//!
//! Written from the documented rules and on its own: it shares no code with
//! the program, so that both cannot be wrong in the same way. Neighbours of one
//! role count as one message, as they do for the API. It cannot see whether
//! thinking was altered, as it does not know what the model once said; and it
//! knows nothing about the rest of the request.

use std::collections::HashSet;

use serde_json::Value;

/// What the API would say about these messages, sent as they are.
///
/// `text` is the array as JSON text: a half surrogate pair can only be seen there.
pub fn refusals(text: &str) -> Vec<String> {
    let mut refusals = Vec::new();
    if has_half_pair(text) {
        refusals.push("no low surrogate in string".to_owned());
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(messages)) => judge(&messages, &mut refusals),
        Ok(_) => refusals.push("messages: not an array".to_owned()),
        Err(error) => refusals.push(format!("the body is not JSON: {error}")),
    }
    refusals
}

/// The same, for a history and a new prompt behind it: what resuming sends.
pub fn refusals_with_prompt(history: &str, prompt: &str) -> Vec<String> {
    let prompt = serde_json::json!({"role": "user", "content": prompt});
    let inside = history.trim().strip_suffix(']').unwrap_or(history);
    let comma = if inside.ends_with('[') { "" } else { "," };
    refusals(&format!("{inside}{comma}{prompt}]"))
}

type Blocks<'a> = Vec<&'a Value>;

fn judge(messages: &[Value], refusals: &mut Vec<String>) {
    let mut merged: Vec<(&str, Blocks<'_>)> = Vec::new();
    let strings: Vec<Value> = messages.iter().map(string_as_block).collect();
    for (at, message) in messages.iter().enumerate() {
        let role = text(message, "role");
        if !matches!(role, "user" | "assistant") {
            refusals.push(format!("messages.{at}.role: `{role}`"));
            continue;
        }
        let blocks: Blocks<'_> = match message.get("content") {
            Some(Value::String(_)) => vec![&strings[at]],
            Some(Value::Array(blocks)) => blocks.iter().collect(),
            _ => {
                refusals.push(format!("messages.{at}.content: neither text nor blocks"));
                continue;
            }
        };
        if blocks.is_empty() {
            refusals.push(format!("messages.{at}: must have non-empty content"));
        }
        match merged.last_mut() {
            Some((last, content)) if *last == role => content.extend(blocks),
            _ => merged.push((role, blocks)),
        }
    }
    match merged.first() {
        None => refusals.push("messages: at least one message is required".to_owned()),
        Some((role, _)) if *role != "user" => {
            refusals.push("messages: first message must use the user role".to_owned());
        }
        Some(_) => {}
    }
    if merged.last().is_some_and(|(role, _)| *role != "user") {
        refusals.push("this model does not support assistant message prefill".to_owned());
    }
    shapes(&merged, refusals);
    pairs(&merged, refusals);
    cache(messages, refusals);
}

fn string_as_block(message: &Value) -> Value {
    serde_json::json!({"type": "text", "text": text(message, "content")})
}

/// Each block for itself: known here, complete, not empty.
fn shapes(messages: &[(&str, Blocks<'_>)], refusals: &mut Vec<String>) {
    for (at, (role, blocks)) in messages.iter().enumerate() {
        for block in blocks {
            if let Some(reason) = shape(role, block) {
                refusals.push(format!("message {at} ({role}): {reason}"));
            }
        }
        let is_thought = |block: &&Value| is_thinking(block);
        if *role == "assistant" && !blocks.is_empty() && blocks.iter().all(is_thought) {
            refusals.push(format!("message {at}: thinking alone"));
        }
    }
}

fn is_thinking(block: &Value) -> bool {
    matches!(text(block, "type"), "thinking" | "redacted_thinking")
}

fn shape(role: &str, block: &Value) -> Option<String> {
    let kind = text(block, "type");
    let refuse = |reason: &str| Some(format!("{kind}: {reason}"));
    match (kind, role) {
        ("text", _) => match block.get("text") {
            Some(Value::String(text)) if text.trim().is_empty() => {
                refuse("text content blocks must be non-empty and not only whitespace")
            }
            Some(Value::String(_)) => None,
            _ => refuse("without text"),
        },
        ("thinking", "assistant") => {
            let complete = block.get("thinking").is_some_and(Value::is_string)
                && !text(block, "signature").is_empty();
            (!complete).then(|| "thinking: without text or signature".to_owned())
        }
        ("redacted_thinking", "assistant") if text(block, "data").is_empty() => {
            refuse("without data")
        }
        ("redacted_thinking", "assistant") => None,
        ("tool_use", "assistant") if !is_id(text(block, "id")) => refuse("id"),
        ("tool_use", "assistant") if !is_id(text(block, "name")) => refuse("name"),
        ("tool_use", "assistant") if text(block, "name").len() > 200 => refuse("long name"),
        ("tool_use", "assistant") if !block.get("input").is_some_and(Value::is_object) => {
            refuse("input is no object")
        }
        ("tool_use", "assistant") => None,
        ("server_tool_use", "assistant") => None,
        (other, "assistant") if other.ends_with("_tool_result") => None,
        ("tool_result", "user") => result_shape(block),
        ("image" | "document", "user") if block.get("source").is_some_and(Value::is_object) => None,
        ("image" | "document", "user") => refuse("without a source"),
        _ => refuse("not expected from this role"),
    }
}

fn result_shape(block: &Value) -> Option<String> {
    if !is_id(text(block, "tool_use_id")) {
        return Some("tool_result: tool_use_id".to_owned());
    }
    if !matches!(block.get("is_error"), None | Some(Value::Bool(_))) {
        return Some("tool_result: is_error is no boolean".to_owned());
    }
    match block.get("content") {
        None | Some(Value::String(_)) => None,
        Some(Value::Array(items)) => items
            .iter()
            .find(|item| !matches!(text(item, "type"), "text" | "image" | "document"))
            .map(|item| format!("tool_result: holds a `{}`", text(item, "type")))
            .or_else(|| items.iter().find_map(|item| shape("user", item))),
        Some(_) => Some("tool_result: content is neither text nor blocks".to_owned()),
    }
}

/// Calls and results: each call answered once, in the next message, first and all together.
fn pairs(messages: &[(&str, Blocks<'_>)], refusals: &mut Vec<String>) {
    let mut called = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (at, (role, blocks)) in messages.iter().enumerate() {
        if *role == "assistant" {
            let calls = blocks
                .iter()
                .filter(|block| text(block, "type") == "tool_use");
            open = calls.map(|block| text(block, "id")).collect();
            for id in &open {
                if !called.insert(*id) {
                    refusals.push(format!("`tool_use` ids must be unique: {id}"));
                }
            }
            let waits = waiting(blocks);
            let next = messages.get(at + 1).map(|(_, next)| next);
            let speaks = |blocks: &Blocks<'_>| {
                blocks
                    .iter()
                    .any(|block| text(block, "type") != "tool_result")
            };
            if let Some(server) = waits.filter(|_| next.is_some_and(speaks)) {
                refusals.push(format!("message {at}: {server} awaits its result"));
            }
            if !open.is_empty() && at + 1 == messages.len() {
                refusals.push(format!("message {at}: calls without results: {open:?}"));
            }
            continue;
        }
        let is_result = |block: &&&Value| text(block, "type") == "tool_result";
        let leading = blocks.iter().take_while(is_result).count();
        let answers = blocks.iter().filter(is_result);
        let answers: Vec<&str> = answers.map(|block| text(block, "tool_use_id")).collect();
        if leading != answers.len() {
            refusals.push(format!("message {at}: results must come first"));
        }
        let mut left = open.clone();
        for id in answers {
            match left.iter().position(|call| *call == id) {
                Some(found) => drop(left.swap_remove(found)),
                None => refusals.push(format!("message {at}: unexpected `tool_result` {id}")),
            }
        }
        if !left.is_empty() {
            refusals.push(format!("message {at}: `tool_use` without result: {left:?}"));
        }
        open.clear();
    }
}

/// A call of a tool of the API itself whose result is not in the same message.
fn waiting<'a>(blocks: &Blocks<'a>) -> Option<&'a str> {
    let calls = blocks
        .iter()
        .filter(|block| text(block, "type") == "server_tool_use");
    calls.map(|block| text(block, "id")).find(|id| {
        !blocks.iter().any(|block| {
            text(block, "type").ends_with("_tool_result") && text(block, "tool_use_id") == *id
        })
    })
}

fn cache(messages: &[Value], refusals: &mut Vec<String>) {
    let blocks = messages
        .iter()
        .filter_map(|message| message.get("content")?.as_array())
        .flatten();
    let marked = blocks.filter(|block| block.get("cache_control").is_some());
    if marked.count() > 4 {
        refusals.push("a maximum of 4 blocks with cache_control may be provided".to_owned());
    }
}

fn is_id(id: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !id.is_empty() && id.bytes().all(fits)
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Whether an escape such as `\ud83d` stands without its other half.
fn has_half_pair(text: &str) -> bool {
    let bytes = text.as_bytes();
    let unit = |at: usize| {
        let digits = text.get(at + 2..at + 6)?;
        (bytes.get(at) == Some(&b'\\') && bytes.get(at + 1) == Some(&b'u'))
            .then(|| u16::from_str_radix(digits, 16).ok())?
    };
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match unit(at) {
            Some(0xd800..0xdc00) => {
                if !unit(at + 6).is_some_and(|low| (0xdc00..0xe000).contains(&low)) {
                    return true;
                }
                at += 12;
            }
            Some(0xdc00..0xe000) => return true,
            Some(_) => at += 6,
            None => at += 2,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = r#"{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Read","input":{}},{"type":"tool_use","id":"b","name":"Read","input":{}}]}"#;

    fn refused(messages: &str) -> String {
        refusals(&format!("[{messages}]")).join("; ")
    }

    fn result(id: &str) -> String {
        format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"ok"}}"#)
    }

    #[test]
    fn a_whole_conversation_is_accepted() {
        let results = format!("{},{}", result("b"), result("a"));
        let text = format!(
            r#"{CALL},{{"role":"user","content":[{results},{{"type":"text","text":"and"}}]}}"#
        );
        assert_eq!(refused(&text), "");
        assert_eq!(refusals_with_prompt("[]", "hi"), [""; 0]);
        assert_eq!(refusals_with_prompt(&format!("[{text}]"), "go on"), [""; 0]);
    }

    #[test]
    fn each_broken_rule_of_calls_and_results_is_named() {
        let user = |content: &str| format!(r#"{CALL},{{"role":"user","content":[{content}]}}"#);
        let (a, b) = (result("a"), result("b"));
        let said = r#"{"type":"text","text":"x"}"#;
        for (content, reason) in [
            (a.clone(), "`tool_use` without result"),
            (format!("{a},{b},{a}"), "unexpected `tool_result` a"),
            (format!("{a},{said},{b}"), "results must come first"),
            (
                format!("{a},{b},{}", result("c")),
                "unexpected `tool_result` c",
            ),
        ] {
            assert!(refused(&user(&content)).contains(reason), "{content}");
        }
        assert!(refused(CALL).contains("prefill"));
        let twice = format!("{},{CALL}", user(&format!("{a},{b}")));
        assert!(refused(&twice).contains("ids must be unique"));
        let split = format!(
            r#"{},{{"role":"assistant","content":"x"}},{{"role":"user","content":[{b}]}}"#,
            user(&a)
        );
        assert!(refused(&split).contains("unexpected `tool_result` b"));
    }

    #[test]
    fn each_broken_block_is_named() {
        let said = |role: &str, block: &str| {
            let first = r#"{"role":"user","content":"hi"}"#;
            let last = r#"{"role":"user","content":"go on"}"#;
            refused(&format!(
                r#"{first},{{"role":"{role}","content":[{block}]}},{last}"#
            ))
        };
        for (role, block, reason) in [
            ("user", r#"{"type":"text","text":" \n"}"#, "non-empty"),
            ("user", r#"{"type":"text"}"#, "without text"),
            ("user", r#"{"type":"image"}"#, "without a source"),
            (
                "user",
                r#"{"type":"tool_use","id":"a","name":"b","input":{}}"#,
                "not expected",
            ),
            (
                "assistant",
                r#"{"type":"thinking","thinking":"x"}"#,
                "signature",
            ),
            (
                "assistant",
                r#"{"type":"thinking","thinking":"x","signature":"s"}"#,
                "alone",
            ),
            (
                "assistant",
                r#"{"type":"redacted_thinking","data":""}"#,
                "without data",
            ),
            (
                "assistant",
                r#"{"type":"tool_use","id":"","name":"b","input":{}}"#,
                "id",
            ),
            (
                "assistant",
                r#"{"type":"tool_use","id":"a","name":"b","input":1}"#,
                "no object",
            ),
            (
                "assistant",
                r#"{"type":"server_tool_use","id":"s"}"#,
                "awaits its result",
            ),
            (
                "assistant",
                r#"{"type":"image","source":{}}"#,
                "not expected",
            ),
            (
                "assistant",
                r#"{"type":"text","text":"a\ud83d"}"#,
                "surrogate",
            ),
            ("system", r#"{"type":"text","text":"a"}"#, "role"),
            ("user", "", "non-empty content"),
        ] {
            assert!(
                said(role, block).contains(reason),
                "{role} {block}: {}",
                said(role, block)
            );
        }
        assert_eq!(
            said("user", r#"{"type":"text","text":"\ud83d\ude00 \\ud83d"}"#),
            ""
        );
    }

    #[test]
    fn a_reply_at_either_end_is_refused() {
        let reply = r#"{"role":"assistant","content":"x"}"#;
        assert!(refused(reply).contains("first message"));
        assert!(
            refused(&format!(r#"{{"role":"user","content":"x"}},{reply}"#)).contains("prefill")
        );
        assert!(refused("").contains("at least one"));
    }
}
