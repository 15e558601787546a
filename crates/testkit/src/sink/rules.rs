//! What a request must be like: who sends it, and how its spans are written.

use serde_json::Value;

use super::{Door, Span};
use crate::api::Request;

/// The status with which a request is turned away at the door, if it is.
pub(super) fn door(door: &Door, request: &Request) -> Option<&'static str> {
    if matches!(door, Door::Blind) {
        return None;
    }
    let path = match door {
        Door::Langfuse(..) => "/api/public/otel/v1/traces",
        Door::Otlp(_) | Door::Blind => "/v1/traces",
    };
    if request.path != path {
        return Some("404 Not Found");
    }
    if request.method != "POST" {
        return Some("405 Method Not Allowed");
    }
    let has = |name: &str, value: &str| request.header(name) == Some(value);
    let open = match door {
        Door::Langfuse(public, secret) => {
            has(
                "authorization",
                &format!("Basic {}", base64(&format!("{public}:{secret}"))),
            ) && has("x-langfuse-public-key", public)
                && has("x-langfuse-ingestion-version", "4")
                && has("x-langfuse-sdk-name", "unspool")
                && request.header("x-langfuse-sdk-version").is_some()
        }
        Door::Otlp(None) | Door::Blind => true,
        Door::Otlp(Some((name, value))) => has(name, value),
    };
    (!open).then_some("401 Unauthorized")
}

/// What is wrong with a span.
pub(super) fn span(span: &Span) -> Option<String> {
    let about = format!("span {} `{}`", span.id, span.name);
    let id = |id: &str, length| id.len() == length && id.bytes().any(|digit| digit != b'0');
    if !id(&span.trace, 32)
        || !id(&span.id, 16)
        || !(span.parent.is_empty() || id(&span.parent, 16))
    {
        return Some(format!("{about}: an id is wrong"));
    }
    if span.parent == span.id || span.name.is_empty() {
        return Some(format!("{about}: has no name, or itself as parent"));
    }
    if span.end < span.start {
        return Some(format!("{about}: ends before it begins"));
    }
    for (name, value) in &span.attributes {
        if let Some(why) = attribute(name, value) {
            return Some(format!("{about}: `{name}` {why}: {value}"));
        }
    }
    for name in [
        "langfuse.trace.name",
        "session.id",
        "langfuse.observation.type",
    ] {
        if span.text(name).is_empty() {
            return Some(format!("{about}: has no `{name}`"));
        }
    }
    None
}

/// What kind of value each attribute has. One that is not listed is not known to anybody.
const KINDS: &[(&str, Kind)] = &[
    ("langfuse.trace.name", Kind::Text),
    ("langfuse.trace.tags", Kind::Texts),
    ("langfuse.trace.public", Kind::Bool),
    ("langfuse.trace.input", Kind::Text),
    ("langfuse.trace.output", Kind::Text),
    ("langfuse.trace.metadata.*", Kind::Json),
    ("langfuse.environment", Kind::Text),
    ("langfuse.release", Kind::Text),
    ("langfuse.version", Kind::Text),
    ("langfuse.internal.as_root", Kind::Bool),
    ("user.id", Kind::Text),
    ("session.id", Kind::Text),
    (
        "langfuse.observation.type",
        Kind::OneOf(&["span", "generation", "event", "agent", "tool"]),
    ),
    ("langfuse.observation.input", Kind::Text),
    ("langfuse.observation.output", Kind::Text),
    ("langfuse.observation.metadata.*", Kind::Json),
    (
        "langfuse.observation.level",
        Kind::OneOf(&["DEBUG", "DEFAULT", "WARNING", "ERROR"]),
    ),
    ("langfuse.observation.status_message", Kind::Text),
    ("langfuse.observation.model.name", Kind::Text),
    ("langfuse.observation.usage_details", Kind::Counts),
    ("langfuse.observation.cost_details", Kind::Amounts),
    (
        "gen_ai.operation.name",
        Kind::OneOf(&["chat", "invoke_agent", "execute_tool"]),
    ),
    ("gen_ai.provider.name", Kind::Text),
    ("gen_ai.conversation.id", Kind::Text),
    ("gen_ai.request.model", Kind::Text),
    ("gen_ai.response.model", Kind::Text),
    ("gen_ai.response.id", Kind::Text),
    ("gen_ai.response.finish_reasons", Kind::Texts),
    ("gen_ai.usage.*", Kind::Count),
    ("gen_ai.input.messages", Kind::Json),
    ("gen_ai.output.messages", Kind::Json),
    ("gen_ai.agent.*", Kind::Text),
    ("gen_ai.tool.*", Kind::Text),
    ("error.type", Kind::Text),
    (
        "openinference.span.kind",
        Kind::OneOf(&["AGENT", "LLM", "TOOL", "CHAIN"]),
    ),
    ("input.*", Kind::Text),
    ("output.*", Kind::Text),
    ("llm.model_name", Kind::Text),
    ("llm.provider", Kind::Text),
    ("llm.token_count.*", Kind::Count),
    ("llm.cost.total", Kind::Amount),
    ("tool.name", Kind::Text),
];

enum Kind {
    Text,
    Texts,
    Bool,
    Count,
    Amount,
    /// Any JSON in a text.
    Json,
    /// An object of whole numbers in a text.
    Counts,
    /// An object of numbers in a text.
    Amounts,
    OneOf(&'static [&'static str]),
}

fn attribute(name: &str, value: &Value) -> Option<&'static str> {
    let fits = |(known, _): &&(&str, Kind)| match known.strip_suffix('*') {
        Some(start) => name.len() > start.len() && name.starts_with(start),
        None => *known == name,
    };
    let Some((_, kind)) = KINDS.iter().find(fits) else {
        return Some("is not known to anybody");
    };
    let text = value.as_str();
    let json = || text.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let object = |good: fn(&Value) -> bool| {
        json().is_some_and(|json| json.as_object().is_some_and(|all| all.values().all(good)))
    };
    let right = match kind {
        Kind::Text => text.is_some(),
        Kind::Texts => value
            .as_array()
            .is_some_and(|all| all.iter().all(Value::is_string)),
        Kind::Bool => value.is_boolean(),
        Kind::Count => value.is_u64(),
        Kind::Amount => value.as_f64().is_some_and(|amount| amount >= 0.0),
        Kind::Json => json().is_some(),
        Kind::Counts => object(Value::is_u64),
        Kind::Amounts => object(Value::is_number),
        Kind::OneOf(known) => text.is_some_and(|text| known.contains(&text)),
    };
    (!right).then_some("has the wrong type")
}

/// Base64 of a text, to compare with.
fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            out.push(if at <= chunk.len() {
                char::from(letter)
            } else {
                '='
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn base64_is_as_everybody_has_it() {
        for (text, coded) in [
            ("", ""),
            ("a", "YQ=="),
            ("ab", "YWI="),
            ("abc", "YWJj"),
            ("pk:sk", "cGs6c2s="),
        ] {
            assert_eq!(base64(text), coded);
        }
    }

    #[test]
    fn attributes_have_known_names_and_the_right_types() {
        let wrong = |name, value: Value| attribute(name, &value).is_some();
        assert!(!wrong("session.id", json!("x")) && wrong("session.id", json!(1)));
        assert!(wrong("session.ids", json!("x")) && wrong("llm.token_count.", json!(1)));
        assert!(!wrong("gen_ai.usage.input_tokens", json!(3)));
        assert!(wrong("gen_ai.usage.input_tokens", json!("3")));
        assert!(!wrong(
            "langfuse.observation.usage_details",
            json!(r#"{"input":3}"#)
        ));
        assert!(wrong(
            "langfuse.observation.usage_details",
            json!(r#"{"input":3.5}"#)
        ));
        assert!(wrong("langfuse.observation.metadata.x", json!("not json")));
    }
}
