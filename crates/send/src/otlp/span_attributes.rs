//! The attributes of a span: what it is, in the words of three vocabularies at once.

use serde_json::{Map, Value, json};
use unspool_model::block::one_line;
use unspool_model::price::CostShares;
use unspool_model::usage::Usage;
use unspool_model::view::tool_outcome;

use super::attribute_buffer::AttributeBuffer;
use super::{TextAttributes, attribute_names};
use crate::spans::{
    SessionTurnTraces, SpanText, SpanTextContent, SpanTextRules, TraceSpan, TraceSpanKind,
    TraceSpanLevel, TurnTrace,
};

/// What every span of a trace says about the trace.
pub(super) fn common(traces: &SessionTurnTraces<'_>, trace: &TurnTrace) -> AttributeBuffer {
    let facts = traces.facts();
    let mut list = AttributeBuffer::default();
    list.text(attribute_names::TRACE_NAME, &trace.name());
    list.text(attribute_names::SESSION_ID, &trace.session);
    list.text(attribute_names::CONVERSATION, &trace.session);
    list.text(attribute_names::PROVIDER, "anthropic");
    let told = [
        (attribute_names::USER_ID, &facts.user),
        (attribute_names::ENVIRONMENT, &facts.environment),
        (attribute_names::RELEASE, &facts.release),
    ];
    for (key, value) in told {
        if let Some(value) = value {
            list.text(key, value);
        }
    }
    if !facts.tags.is_empty() {
        list.texts(
            attribute_names::TRACE_TAGS,
            facts.tags.iter().map(String::as_str),
        );
    }
    let session = ("session_id", json!(trace.session));
    for (key, value) in trace.metadata.iter().chain([&session]) {
        metadata(&mut list, attribute_names::TRACE_METADATA, key, value);
    }
    list
}

/// Langfuse reads every value as JSON, texts too.
fn metadata(list: &mut AttributeBuffer, prefix: &str, key: &str, value: &Value) {
    list.text((prefix, key), &value.to_string());
}

/// Writes the attributes of one span, and says why it failed if it did.
pub(super) fn of(
    traces: &SessionTurnTraces<'_>,
    span: &TraceSpan,
    shape: &SpanTextRules<'_>,
    told: TextAttributes,
    list: &mut AttributeBuffer,
) -> Option<String> {
    list.bytes.clear();
    let input = traces.read_as(&span.input, shape);
    let output = traces.read_as(&span.output, shape);
    let status = status(span, &output);
    kinds(list, span);
    if let Some(status) = &status {
        list.text(attribute_names::STATUS_MESSAGE, status);
    }
    if span.level != TraceSpanLevel::Default {
        list.text(attribute_names::LEVEL, span.level.name());
    }
    for (key, value) in &span.metadata {
        metadata(list, attribute_names::METADATA, key, value);
    }
    match span.kind {
        TraceSpanKind::Generation => generation(list, span),
        TraceSpanKind::Tool => tool(list, span),
        TraceSpanKind::Agent => agent(list, span),
        TraceSpanKind::Event => {}
    }
    if told.langfuse {
        langfuse_texts(list, span, &input, &output);
    }
    if told.gen_ai {
        gen_ai_texts(list, span, &input, &output);
    }
    if told.open_inference {
        inference_texts(list, &input, &output);
    }
    status
}

/// What a span is, in each vocabulary.
fn kinds(list: &mut AttributeBuffer, span: &TraceSpan) {
    let (operation, inference) = match span.kind {
        TraceSpanKind::Agent => (Some("invoke_agent"), "AGENT"),
        TraceSpanKind::Generation => (Some("chat"), "LLM"),
        TraceSpanKind::Tool => (Some("execute_tool"), "TOOL"),
        TraceSpanKind::Event => (None, "CHAIN"),
    };
    list.text(attribute_names::TYPE, span.kind.name());
    list.text(attribute_names::SPAN_KIND, inference);
    if let Some(operation) = operation {
        list.text(attribute_names::OPERATION, operation);
    }
    if span.parent.is_none() {
        list.truth(attribute_names::AS_ROOT, true);
    }
}

/// Most characters of why something failed.
const STATUS: usize = 300;

/// Why a span failed, or what else there is to say about how it went.
fn status(span: &TraceSpan, output: &SpanText) -> Option<String> {
    if let Some(status) = span.status {
        return Some(status.to_owned());
    }
    let troubled = span.level >= TraceSpanLevel::Warning
        && matches!(span.kind, TraceSpanKind::Tool | TraceSpanKind::Event);
    if !troubled {
        return None;
    }
    let said = match &output.content {
        SpanTextContent::Text(said) => one_line(tool_outcome::failure(said)),
        SpanTextContent::Parts(_) | SpanTextContent::Json(_) => output.plain()?.0.into_owned(),
        SpanTextContent::None | SpanTextContent::Null => return None,
    };
    Some(said.chars().take(STATUS).collect()).filter(|said: &String| !said.is_empty())
}

fn generation(list: &mut AttributeBuffer, span: &TraceSpan) {
    for key in [
        attribute_names::MODEL,
        attribute_names::REQUEST_MODEL,
        attribute_names::RESPONSE_MODEL,
        attribute_names::LLM_MODEL,
    ] {
        list.text(key, &span.name);
    }
    list.text(attribute_names::LLM_PROVIDER, "anthropic");
    if let Some(id) = &span.origin {
        list.text(attribute_names::RESPONSE_ID, id);
    }
    if let Some(stop) = &span.stop {
        list.texts(attribute_names::FINISH_REASONS, [&**stop].into_iter());
    }
    if let Some(usage) = span.usage {
        tokens(list, usage);
    }
    if let Some(cost) = &span.cost {
        list.text(attribute_names::COST_DETAILS, &cost_details(cost));
        list.float(attribute_names::COST_TOTAL, cost.total.usd());
    }
}

fn tokens(list: &mut AttributeBuffer, usage: Usage) {
    let writes = usage.cache_write_5m.saturating_add(usage.cache_write_1h);
    list.text(attribute_names::USAGE_DETAILS, &usage_details(usage));
    // Here, unlike in the transcript, what came from the cache is part of the input.
    list.number(attribute_names::INPUT_TOKENS, usage.context());
    list.number(attribute_names::OUTPUT_TOKENS, usage.output);
    list.number(attribute_names::PROMPT_TOKENS, usage.context());
    list.number(attribute_names::COMPLETION_TOKENS, usage.output);
    list.number(attribute_names::TOTAL_TOKENS, usage.total());
    let cached = [
        (
            attribute_names::CACHE_READ,
            attribute_names::PROMPT_CACHE_READ,
            usage.cache_read,
        ),
        (
            attribute_names::CACHE_CREATION,
            attribute_names::PROMPT_CACHE_WRITE,
            writes,
        ),
    ];
    for (gen_ai, inference, count) in cached.into_iter().filter(|cached| cached.2 > 0) {
        list.number(gen_ai, count);
        list.number(inference, count);
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
fn cost_details(cost: &CostShares) -> String {
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

fn tool(list: &mut AttributeBuffer, span: &TraceSpan) {
    list.text(attribute_names::TOOL_NAME, &span.name);
    list.text(attribute_names::INFERENCE_TOOL, &span.name);
    list.text(attribute_names::TOOL_TYPE, "function");
    if let Some(id) = &span.origin {
        list.text(attribute_names::TOOL_CALL_ID, id);
    }
    if span.level == TraceSpanLevel::Error {
        list.text(attribute_names::ERROR_TYPE, "tool_error");
    }
}

fn agent(list: &mut AttributeBuffer, span: &TraceSpan) {
    let name = match span.parent {
        None => "claude-code",
        Some(_) => &span.name,
    };
    list.text(attribute_names::AGENT_NAME, name);
    if let Some(id) = &span.origin {
        list.text(attribute_names::AGENT_ID, id);
    }
}

fn langfuse_texts(
    list: &mut AttributeBuffer,
    span: &TraceSpan,
    input: &SpanText,
    output: &SpanText,
) {
    let root = span.parent.is_none();
    let pairs = [
        (attribute_names::INPUT, attribute_names::TRACE_INPUT, input),
        (
            attribute_names::OUTPUT,
            attribute_names::TRACE_OUTPUT,
            output,
        ),
    ];
    for (own, trace, words) in pairs {
        let Some(object) = words.object() else {
            continue;
        };
        // Older servers show what the trace says, not its root.
        if root {
            list.text(trace, &object);
        }
        list.text(own, &object);
    }
}

fn gen_ai_texts(list: &mut AttributeBuffer, span: &TraceSpan, input: &SpanText, output: &SpanText) {
    match span.kind {
        TraceSpanKind::Tool => {
            let pairs = [
                (attribute_names::TOOL_ARGUMENTS, input),
                (attribute_names::TOOL_RESULT, output),
            ];
            for (key, words) in pairs {
                if let Some((plain, _)) = words.plain() {
                    list.text(key, &plain);
                }
            }
        }
        TraceSpanKind::Agent | TraceSpanKind::Generation => {
            if let Some(asked) = input.messages(&[], None) {
                list.text(attribute_names::INPUT_MESSAGES, &asked);
            }
            if let Some(said) = output.messages(&span.calls, span.stop.as_deref()) {
                list.text(attribute_names::OUTPUT_MESSAGES, &said);
            }
        }
        TraceSpanKind::Event => {}
    }
}

fn inference_texts(list: &mut AttributeBuffer, input: &SpanText, output: &SpanText) {
    let pairs = [
        (
            attribute_names::INPUT_VALUE,
            attribute_names::INPUT_MIME,
            input,
        ),
        (
            attribute_names::OUTPUT_VALUE,
            attribute_names::OUTPUT_MIME,
            output,
        ),
    ];
    for (value, mime, words) in pairs {
        if let Some((plain, is_json)) = words.plain() {
            let kind = match is_json {
                true => "application/json",
                false => "text/plain",
            };
            list.text(mime, kind);
            list.text(value, &plain);
        }
    }
}
