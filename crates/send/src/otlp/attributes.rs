//! The attributes of a span: what it is, in the words of three vocabularies at once.

use serde_json::{Map, Value, json};
use unspool_model::block::one_line;
use unspool_model::price::Shares;
use unspool_model::usage::Usage;
use unspool_model::view::outcome;

use super::buffer::Buffer;
use super::{Texts, names};
use crate::spans::{Content, Kind, Level, Shape, Span, Trace, Traces, Words};

/// What every span of a trace says about the trace.
pub(super) fn common(traces: &Traces<'_>, trace: &Trace) -> Buffer {
    let facts = traces.facts();
    let mut list = Buffer::default();
    list.text(names::TRACE_NAME, &trace.name());
    list.text(names::SESSION_ID, &trace.session);
    list.text(names::CONVERSATION, &trace.session);
    list.text(names::PROVIDER, "anthropic");
    let told = [
        (names::USER_ID, &facts.user),
        (names::ENVIRONMENT, &facts.environment),
        (names::RELEASE, &facts.release),
    ];
    for (key, value) in told {
        if let Some(value) = value {
            list.text(key, value);
        }
    }
    if !facts.tags.is_empty() {
        list.texts(names::TRACE_TAGS, facts.tags.iter().map(String::as_str));
    }
    let session = ("session_id", json!(trace.session));
    for (key, value) in trace.metadata.iter().chain([&session]) {
        metadata(&mut list, names::TRACE_METADATA, key, value);
    }
    list
}

/// Langfuse reads every value as JSON, texts too.
fn metadata(list: &mut Buffer, prefix: &str, key: &str, value: &Value) {
    list.text((prefix, key), &value.to_string());
}

/// Writes the attributes of one span, and says why it failed if it did.
pub(super) fn of(
    traces: &Traces<'_>,
    span: &Span,
    shape: &Shape<'_>,
    told: Texts,
    list: &mut Buffer,
) -> Option<String> {
    list.bytes.clear();
    let input = traces.read_as(&span.input, shape);
    let output = traces.read_as(&span.output, shape);
    let status = status(span, &output);
    kinds(list, span);
    if let Some(status) = &status {
        list.text(names::STATUS_MESSAGE, status);
    }
    if span.level != Level::Default {
        list.text(names::LEVEL, span.level.name());
    }
    for (key, value) in &span.metadata {
        metadata(list, names::METADATA, key, value);
    }
    match span.kind {
        Kind::Generation => generation(list, span),
        Kind::Tool => tool(list, span),
        Kind::Agent => agent(list, span),
        Kind::Event => {}
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
fn kinds(list: &mut Buffer, span: &Span) {
    let (operation, inference) = match span.kind {
        Kind::Agent => (Some("invoke_agent"), "AGENT"),
        Kind::Generation => (Some("chat"), "LLM"),
        Kind::Tool => (Some("execute_tool"), "TOOL"),
        Kind::Event => (None, "CHAIN"),
    };
    list.text(names::TYPE, span.kind.name());
    list.text(names::SPAN_KIND, inference);
    if let Some(operation) = operation {
        list.text(names::OPERATION, operation);
    }
    if span.parent.is_none() {
        list.truth(names::AS_ROOT, true);
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
        Content::Parts(_) | Content::Json(_) => output.plain()?.0.into_owned(),
        Content::None | Content::Null => return None,
    };
    Some(said.chars().take(STATUS).collect()).filter(|said: &String| !said.is_empty())
}

fn generation(list: &mut Buffer, span: &Span) {
    for key in [
        names::MODEL,
        names::REQUEST_MODEL,
        names::RESPONSE_MODEL,
        names::LLM_MODEL,
    ] {
        list.text(key, &span.name);
    }
    list.text(names::LLM_PROVIDER, "anthropic");
    if let Some(id) = &span.origin {
        list.text(names::RESPONSE_ID, id);
    }
    if let Some(stop) = &span.stop {
        list.texts(names::FINISH_REASONS, [&**stop].into_iter());
    }
    if let Some(usage) = span.usage {
        tokens(list, usage);
    }
    if let Some(cost) = &span.cost {
        list.text(names::COST_DETAILS, &cost_details(cost));
        list.float(names::COST_TOTAL, cost.total.usd());
    }
}

fn tokens(list: &mut Buffer, usage: Usage) {
    let writes = usage.cache_write_5m.saturating_add(usage.cache_write_1h);
    list.text(names::USAGE_DETAILS, &usage_details(usage));
    // Here, unlike in the transcript, what came from the cache is part of the input.
    list.number(names::INPUT_TOKENS, usage.context());
    list.number(names::OUTPUT_TOKENS, usage.output);
    list.number(names::PROMPT_TOKENS, usage.context());
    list.number(names::COMPLETION_TOKENS, usage.output);
    list.number(names::TOTAL_TOKENS, usage.total());
    let cached = [
        (
            names::CACHE_READ,
            names::PROMPT_CACHE_READ,
            usage.cache_read,
        ),
        (names::CACHE_CREATION, names::PROMPT_CACHE_WRITE, writes),
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

fn tool(list: &mut Buffer, span: &Span) {
    list.text(names::TOOL_NAME, &span.name);
    list.text(names::INFERENCE_TOOL, &span.name);
    list.text(names::TOOL_TYPE, "function");
    if let Some(id) = &span.origin {
        list.text(names::TOOL_CALL_ID, id);
    }
    if span.level == Level::Error {
        list.text(names::ERROR_TYPE, "tool_error");
    }
}

fn agent(list: &mut Buffer, span: &Span) {
    let name = match span.parent {
        None => "claude-code",
        Some(_) => &span.name,
    };
    list.text(names::AGENT_NAME, name);
    if let Some(id) = &span.origin {
        list.text(names::AGENT_ID, id);
    }
}

fn langfuse_texts(list: &mut Buffer, span: &Span, input: &Words, output: &Words) {
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
            list.text(trace, &object);
        }
        list.text(own, &object);
    }
}

fn gen_ai_texts(list: &mut Buffer, span: &Span, input: &Words, output: &Words) {
    match span.kind {
        Kind::Tool => {
            let pairs = [(names::TOOL_ARGUMENTS, input), (names::TOOL_RESULT, output)];
            for (key, words) in pairs {
                if let Some((plain, _)) = words.plain() {
                    list.text(key, &plain);
                }
            }
        }
        Kind::Agent | Kind::Generation => {
            if let Some(asked) = input.messages(&[], None) {
                list.text(names::INPUT_MESSAGES, &asked);
            }
            if let Some(said) = output.messages(&span.calls, span.stop.as_deref()) {
                list.text(names::OUTPUT_MESSAGES, &said);
            }
        }
        Kind::Event => {}
    }
}

fn inference_texts(list: &mut Buffer, input: &Words, output: &Words) {
    let pairs = [
        (names::INPUT_VALUE, names::INPUT_MIME, input),
        (names::OUTPUT_VALUE, names::OUTPUT_MIME, output),
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
