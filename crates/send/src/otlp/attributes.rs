//! The attributes of a span: what it is, in the words of three vocabularies at once.

use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue};
use serde_json::{Map, Value, json};
use unspool_model::block::one_line;
use unspool_model::price::Shares;
use unspool_model::usage::Usage;
use unspool_model::view::outcome;

use super::{Texts, names};
use crate::spans::{Content, Kind, Level, Shape, Span, Trace, Traces, Words};

/// The attributes of a span, and what to say if it failed.
pub(super) struct Attributes {
    pub(super) list: Vec<KeyValue>,
    pub(super) status: Option<String>,
}

/// A text under a name.
pub(super) fn text(key: impl Into<String>, value: impl Into<String>) -> KeyValue {
    attribute(key, Any::StringValue(value.into()))
}

fn attribute(key: impl Into<String>, value: Any) -> KeyValue {
    KeyValue {
        key: key.into(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

fn number(key: &str, value: u64) -> KeyValue {
    let value = i64::try_from(value).unwrap_or(i64::MAX);
    attribute(key, Any::IntValue(value))
}

fn texts<'a>(key: &str, values: impl IntoIterator<Item = &'a str>) -> KeyValue {
    let values = values.into_iter().map(|value| AnyValue {
        value: Some(Any::StringValue(value.to_owned())),
    });
    let values = values.collect();
    attribute(key, Any::ArrayValue(ArrayValue { values }))
}

/// What every span of a trace says about the trace.
pub(super) fn common(traces: &Traces<'_>, trace: &Trace) -> Vec<KeyValue> {
    let facts = traces.facts();
    let mut list = vec![
        text(names::TRACE_NAME, trace.name()),
        text(names::SESSION_ID, &*trace.session),
        text(names::CONVERSATION, &*trace.session),
    ];
    let told = [
        (names::USER_ID, &facts.user),
        (names::ENVIRONMENT, &facts.environment),
        (names::RELEASE, &facts.release),
    ];
    for (key, value) in told {
        list.extend(value.as_deref().map(|value| text(key, value)));
    }
    if !facts.tags.is_empty() {
        list.push(texts(
            names::TRACE_TAGS,
            facts.tags.iter().map(|tag| &**tag),
        ));
    }
    let session = ("session_id", json!(trace.session));
    for (key, value) in trace.metadata.iter().chain([&session]) {
        list.push(metadata(names::TRACE_METADATA, key, value));
    }
    list
}

/// Langfuse reads every value as JSON, texts too.
fn metadata(prefix: &str, key: &str, value: &Value) -> KeyValue {
    text(format!("{prefix}{key}"), value.to_string())
}

/// The attributes of one span.
pub(super) fn of(
    traces: &Traces<'_>,
    span: &Span,
    common: &[KeyValue],
    shape: &Shape<'_>,
    told: Texts,
) -> Attributes {
    let mut list = Vec::with_capacity(common.len() + 24);
    list.extend_from_slice(common);
    let input = traces.read_as(&span.input, shape);
    let output = traces.read_as(&span.output, shape);
    let status = status(span, &output);
    kinds(&mut list, span);
    if let Some(status) = &status {
        list.push(text(names::STATUS_MESSAGE, &**status));
    }
    if span.level != Level::Default {
        list.push(text(names::LEVEL, span.level.name()));
    }
    for (key, value) in &span.metadata {
        list.push(metadata(names::METADATA, key, value));
    }
    match span.kind {
        Kind::Generation => generation(&mut list, span),
        Kind::Tool => tool(&mut list, span),
        Kind::Agent => agent(&mut list, span),
        Kind::Event => {}
    }
    if told.langfuse {
        langfuse_texts(&mut list, span, &input, &output);
    }
    if told.gen_ai {
        gen_ai_texts(&mut list, span, &input, &output);
    }
    if told.open_inference {
        inference_texts(&mut list, &input, &output);
    }
    Attributes { list, status }
}

/// What a span is, in each vocabulary.
fn kinds(list: &mut Vec<KeyValue>, span: &Span) {
    let (operation, inference) = match span.kind {
        Kind::Agent => (Some("invoke_agent"), "AGENT"),
        Kind::Generation => (Some("chat"), "LLM"),
        Kind::Tool => (Some("execute_tool"), "TOOL"),
        Kind::Event => (None, "CHAIN"),
    };
    list.push(text(names::TYPE, span.kind.name()));
    list.push(text(names::SPAN_KIND, inference));
    list.extend(operation.map(|operation| text(names::OPERATION, operation)));
    list.push(text(names::PROVIDER, "anthropic"));
    if span.parent.is_none() {
        list.push(attribute(names::AS_ROOT, Any::BoolValue(true)));
    }
}

/// Most characters of why something failed.
const STATUS: usize = 300;

/// Why a span failed, or what else there is to say about how it went.
fn status(span: &Span, output: &Words) -> Option<String> {
    if let Some(status) = span.status {
        return Some(status.to_owned());
    }
    let troubled = span.level >= Level::Warning && matches!(span.kind, Kind::Tool | Kind::Event);
    if !troubled {
        return None;
    }
    let said = match &output.content {
        Content::Text(said) => one_line(outcome::failure(said)),
        Content::Parts(_) | Content::Json(_) => output.plain()?.0,
        Content::None | Content::Null => return None,
    };
    Some(said.chars().take(STATUS).collect()).filter(|said: &String| !said.is_empty())
}

fn generation(list: &mut Vec<KeyValue>, span: &Span) {
    list.push(text(names::MODEL, &*span.name));
    list.push(text(names::REQUEST_MODEL, &*span.name));
    list.push(text(names::RESPONSE_MODEL, &*span.name));
    list.push(text(names::LLM_MODEL, &*span.name));
    list.push(text(names::LLM_PROVIDER, "anthropic"));
    list.extend(
        span.origin
            .as_deref()
            .map(|id| text(names::RESPONSE_ID, id)),
    );
    list.extend(
        span.stop
            .as_deref()
            .map(|stop| texts(names::FINISH_REASONS, [stop])),
    );
    if let Some(usage) = span.usage {
        tokens(list, usage);
    }
    if let Some(cost) = &span.cost {
        list.push(text(names::COST_DETAILS, cost_details(cost)));
        list.push(attribute(
            names::COST_TOTAL,
            Any::DoubleValue(cost.total.usd()),
        ));
    }
}

fn tokens(list: &mut Vec<KeyValue>, usage: Usage) {
    let writes = usage.cache_write_5m.saturating_add(usage.cache_write_1h);
    list.push(text(names::USAGE_DETAILS, usage_details(usage)));
    // Here, unlike in the transcript, what came from the cache is part of the input.
    list.push(number(names::INPUT_TOKENS, usage.context()));
    list.push(number(names::OUTPUT_TOKENS, usage.output));
    list.push(number(names::PROMPT_TOKENS, usage.context()));
    list.push(number(names::COMPLETION_TOKENS, usage.output));
    list.push(number(names::TOTAL_TOKENS, usage.total()));
    let cached = [
        (
            names::CACHE_READ,
            names::PROMPT_CACHE_READ,
            usage.cache_read,
        ),
        (names::CACHE_CREATION, names::PROMPT_CACHE_WRITE, writes),
    ];
    for (gen_ai, inference, count) in cached.into_iter().filter(|cached| cached.2 > 0) {
        list.push(number(gen_ai, count));
        list.push(number(inference, count));
    }
}

/// Tokens by kind; kinds of cache only where there are any.
fn usage_details(usage: Usage) -> String {
    let writes = usage.cache_write_5m.saturating_add(usage.cache_write_1h);
    let counts = [
        ("cache_read_input_tokens", usage.cache_read),
        ("cache_creation_input_tokens", writes),
        ("input_cache_creation_5m", usage.cache_write_5m),
        ("input_cache_creation_1h", usage.cache_write_1h),
    ];
    let mut out = Map::new();
    out.insert("input".to_owned(), json!(usage.input));
    out.insert("output".to_owned(), json!(usage.output));
    let total = usage.input.saturating_add(usage.output);
    out.insert("total".to_owned(), json!(total));
    for (key, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        out.insert(key.to_owned(), json!(count));
    }
    Value::Object(out).to_string()
}

/// Dollars by kind of token, and together.
fn cost_details(cost: &Shares) -> String {
    let writes = cost.cache_write_5m + cost.cache_write_1h;
    let parts = [
        ("input", cost.input),
        ("output", cost.output),
        ("cache_read_input_tokens", cost.cache_read),
        ("cache_creation_input_tokens", writes),
        ("web_search", cost.searches),
    ];
    let mut out = Map::new();
    for (key, part) in parts.into_iter().filter(|(_, part)| part.0 > 0) {
        out.insert(key.to_owned(), json!(part.usd()));
    }
    out.insert("total".to_owned(), json!(cost.total.usd()));
    Value::Object(out).to_string()
}

fn tool(list: &mut Vec<KeyValue>, span: &Span) {
    list.push(text(names::TOOL_NAME, &*span.name));
    list.push(text(names::INFERENCE_TOOL, &*span.name));
    list.push(text(names::TOOL_TYPE, "function"));
    list.extend(
        span.origin
            .as_deref()
            .map(|id| text(names::TOOL_CALL_ID, id)),
    );
    if span.level == Level::Error {
        list.push(text(names::ERROR_TYPE, "tool_error"));
    }
}

fn agent(list: &mut Vec<KeyValue>, span: &Span) {
    let name = match span.parent {
        None => "claude-code",
        Some(_) => &span.name,
    };
    list.push(text(names::AGENT_NAME, name));
    list.extend(span.origin.as_deref().map(|id| text(names::AGENT_ID, id)));
}

fn langfuse_texts(list: &mut Vec<KeyValue>, span: &Span, input: &Words, output: &Words) {
    let root = span.parent.is_none();
    let pairs = [
        (names::INPUT, names::TRACE_INPUT, input),
        (names::OUTPUT, names::TRACE_OUTPUT, output),
    ];
    for (own, trace, words) in pairs {
        let Some(object) = words.object() else {
            continue;
        };
        // Older servers show what the trace says, not its root.
        if root {
            list.push(text(trace, &*object));
        }
        list.push(text(own, object));
    }
}

fn gen_ai_texts(list: &mut Vec<KeyValue>, span: &Span, input: &Words, output: &Words) {
    match span.kind {
        Kind::Tool => {
            let plain = |words: &Words| words.plain().map(|(plain, _)| plain);
            list.extend(plain(input).map(|said| text(names::TOOL_ARGUMENTS, said)));
            list.extend(plain(output).map(|said| text(names::TOOL_RESULT, said)));
        }
        Kind::Agent | Kind::Generation => {
            let asked = input.messages(&[], None);
            let said = output.messages(&span.calls, span.stop.as_deref());
            list.extend(asked.map(|asked| text(names::INPUT_MESSAGES, asked)));
            list.extend(said.map(|said| text(names::OUTPUT_MESSAGES, said)));
        }
        Kind::Event => {}
    }
}

fn inference_texts(list: &mut Vec<KeyValue>, input: &Words, output: &Words) {
    let pairs = [
        (names::INPUT_VALUE, names::INPUT_MIME, input),
        (names::OUTPUT_VALUE, names::OUTPUT_MIME, output),
    ];
    for (value, mime, words) in pairs {
        if let Some((plain, is_json)) = words.plain() {
            let kind = if is_json {
                "application/json"
            } else {
                "text/plain"
            };
            list.push(text(mime, kind));
            list.push(text(value, plain));
        }
    }
}
