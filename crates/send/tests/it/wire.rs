//! How traces go over the wire.

use std::collections::{BTreeMap, HashMap};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::{Value, json};
use unspool_send::otlp::{OtlpLimits, OtlpPacker, OtlpRequest, OtlpResource, TextAttributes};
use unspool_send::spans::{SessionTurnTraces, TraceOptions};
use unspool_testkit::{corpus, graph};

use crate::tell::Told;

/// All requests that a session gives.
fn pack(traces: &SessionTurnTraces<'_>, limits: OtlpLimits) -> Vec<OtlpRequest> {
    let mut packer = OtlpPacker::new(limits, &OtlpResource::default());
    let mut batches = Vec::new();
    for trace in traces.iter() {
        let mut full = |batch| -> Result<(), ()> {
            batches.push(batch);
            Ok(())
        };
        packer.add(traces, &trace, &mut full).unwrap();
    }
    batches.extend(packer.finish());
    batches
}

/// The spans of a request, as a receiver reads them.
fn received(batch: &OtlpRequest) -> Vec<Span> {
    let bytes = batch.encode();
    assert_eq!(bytes.len(), batch.bytes());
    let request = ExportTraceServiceRequest::decode(bytes.as_slice()).unwrap();
    let lists = request.resource_spans.into_iter();
    lists
        .flat_map(|list| list.scope_spans)
        .flat_map(|scope| scope.spans)
        .collect()
}

fn spans(told: &Told) -> Vec<Span> {
    let batches = pack(&told.traces(), OtlpLimits::default());
    batches.iter().flat_map(received).collect()
}

/// The attributes of a span; a name that stands twice would hide one of them.
fn attributes(span: &Span) -> BTreeMap<&str, Value> {
    let mut all = BTreeMap::new();
    for attribute in &span.attributes {
        let value = match attribute
            .value
            .as_ref()
            .and_then(|value| value.value.as_ref())
        {
            Some(Any::StringValue(text)) => json!(text),
            Some(Any::IntValue(number)) => json!(number),
            Some(Any::DoubleValue(number)) => json!(number),
            Some(Any::BoolValue(truth)) => json!(truth),
            Some(Any::ArrayValue(list)) => {
                let texts = list.values.iter().map(|value| match &value.value {
                    Some(Any::StringValue(text)) => json!(text),
                    other => panic!("{other:?}"),
                });
                texts.collect()
            }
            other => panic!("{}: {other:?}", attribute.key),
        };
        let twice = all.insert(&*attribute.key, value);
        assert!(twice.is_none(), "{} stands twice", attribute.key);
    }
    all
}

fn told() -> Told {
    let mut told = Told::script(
        "you: fix it
         (usage=1/2/3/4/5) claude: looking [Read a.rs]
         result: Read a.rs no such file!
         claude: done",
    );
    told.facts.user = Some("ada".to_owned());
    told.facts.host = Some("box".to_owned());
    told.facts.tags = vec!["a".to_owned(), "b".to_owned()];
    told.facts.environment = Some("test".to_owned());
    told
}

#[test]
fn every_span_tells_about_its_trace() {
    for span in spans(&told()) {
        let has = attributes(&span);
        assert_eq!(has["langfuse.trace.name"], "Turn 1");
        assert_eq!(has["session.id"], "the-session");
        assert_eq!(has["gen_ai.conversation.id"], "the-session");
        assert_eq!(has["user.id"], "ada");
        assert_eq!(has["langfuse.environment"], "test");
        assert_eq!(has["langfuse.trace.tags"], json!(["a", "b"]));
        assert_eq!(has["langfuse.trace.metadata.source"], "\"claude-code\"");
        assert_eq!(has["langfuse.trace.metadata.turn_number"], "1");
        assert_eq!(has["langfuse.trace.metadata.session_id"], "\"the-session\"");
        assert_eq!(has["langfuse.trace.metadata.host"], "\"box\"");
        assert_eq!(has["langfuse.trace.metadata.git_branch"], "\"main\"");
        assert_eq!((span.trace_id.len(), span.span_id.len()), (16, 8));
    }
}

#[test]
fn the_session_is_the_one_that_the_caller_set() {
    let told = told();
    let traces = told.traces();
    let mut trace = traces.turn(1).unwrap();
    trace.session = "the-oldest".to_owned();
    let mut packer = OtlpPacker::new(OtlpLimits::default(), &OtlpResource::default());
    packer
        .add(&traces, &trace, &mut |_| -> Result<(), ()> { Err(()) })
        .unwrap();
    let batch = packer.finish().unwrap();
    let span = &received(&batch)[0];
    let has = attributes(span);
    assert_eq!(has["session.id"], "the-oldest");
    assert_eq!(has["langfuse.trace.metadata.session_id"], "\"the-oldest\"");
}

#[test]
fn a_root_is_an_agent_in_all_three_vocabularies() {
    let spans = spans(&told());
    let has = attributes(&spans[0]);
    let input = r#"{"role":"user","content":"fix it"}"#;
    let output = r#"{"role":"assistant","content":"done"}"#;
    assert_eq!(has["langfuse.observation.type"], "agent");
    assert_eq!(has["langfuse.internal.as_root"], true);
    assert_eq!(has["gen_ai.operation.name"], "invoke_agent");
    assert_eq!(has["openinference.span.kind"], "AGENT");
    for (key, value) in [("input", input), ("output", output)] {
        assert_eq!(has[&*format!("langfuse.observation.{key}")], value);
        assert_eq!(has[&*format!("langfuse.trace.{key}")], value);
    }
    assert_eq!(
        (&has["input.value"], &has["output.value"]),
        (&json!("fix it"), &json!("done"))
    );
    assert!(spans[0].parent_span_id.is_empty());
    assert!(
        spans[1..]
            .iter()
            .all(|span| !span.parent_span_id.is_empty())
    );
}

#[test]
fn a_generation_has_its_model_tokens_and_cost() {
    let spans = spans(&told());
    let has = attributes(&spans[1]);
    let model = "claude-sonnet-4-5-20250929";
    assert_eq!(spans[1].name, model);
    assert_eq!(has["langfuse.observation.type"], "generation");
    assert_eq!(has["langfuse.observation.model.name"], model);
    assert_eq!(has["gen_ai.operation.name"], "chat");
    assert_eq!(has["gen_ai.provider.name"], "anthropic");
    assert_eq!(has["gen_ai.request.model"], model);
    assert_eq!(has["gen_ai.response.id"], "msg_0001");
    assert_eq!(has["gen_ai.response.finish_reasons"], json!(["tool_use"]));
    assert_eq!(has["openinference.span.kind"], "LLM");
    assert_eq!(has["llm.model_name"], model);
    let usage: Value =
        serde_json::from_str(has["langfuse.observation.usage_details"].as_str().unwrap()).unwrap();
    assert_eq!(
        usage,
        json!({"input": 1, "output": 2, "total": 3, "cache_read_input_tokens": 3,
            "cache_creation_input_tokens": 9, "input_cache_creation_5m": 4, "input_cache_creation_1h": 5})
    );
    let cost: Value =
        serde_json::from_str(has["langfuse.observation.cost_details"].as_str().unwrap()).unwrap();
    assert_eq!(cost["total"], 0.0000789);
    // What came from the cache is part of the input here.
    assert_eq!(has["gen_ai.usage.input_tokens"], 13);
    assert_eq!(has["gen_ai.usage.cache_read.input_tokens"], 3);
    assert_eq!(has["gen_ai.usage.cache_creation.input_tokens"], 9);
    assert_eq!(has["llm.token_count.prompt"], 13);
    let said: Value =
        serde_json::from_str(has["gen_ai.output.messages"].as_str().unwrap()).unwrap();
    assert_eq!(
        said,
        json!([{"role": "assistant", "finish_reason": "tool_use", "parts": [
            {"type": "text", "content": "looking"},
            {"type": "tool_call", "id": "toolu_0001", "name": "Read"},
        ]}])
    );
    // Only the first one has an input.
    let second = attributes(&spans[3]);
    assert_eq!(second["langfuse.observation.type"], "generation");
    assert!(
        !second.contains_key("langfuse.observation.input")
            && !second.contains_key("gen_ai.input.messages")
    );
}

#[test]
fn a_line_without_usage_has_no_usage_details() {
    let told = Told::lines(&[
        r#"{"type":"user","content":"hi"}"#,
        r#"{"message":{"id":"m","role":"assistant","content":"yes"}}"#,
    ]);
    let spans = spans(&told);
    let has = attributes(&spans[1]);
    assert!(
        !has.keys()
            .any(|key| key.contains("usage") || key.contains("cost"))
    );
    assert_eq!(
        (spans[1].start_time_unix_nano, spans[1].end_time_unix_nano),
        (0, 0)
    );
}

#[test]
fn a_failed_call_is_an_error_that_says_why() {
    let spans = spans(&told());
    let has = attributes(&spans[2]);
    assert_eq!(spans[2].name, "Read");
    assert_eq!(has["langfuse.observation.type"], "tool");
    assert_eq!(has["langfuse.observation.level"], "ERROR");
    assert_eq!(has["langfuse.observation.status_message"], "no such file");
    assert_eq!(has["langfuse.observation.input"], r#"{"file_path":"a.rs"}"#);
    assert_eq!(has["langfuse.observation.output"], "no such file");
    assert_eq!(has["langfuse.observation.metadata.tool_name"], "\"Read\"");
    assert_eq!(
        has["langfuse.observation.metadata.tool_id"],
        "\"toolu_0001\""
    );
    assert_eq!(has["gen_ai.tool.name"], "Read");
    assert_eq!(has["gen_ai.tool.call.id"], "toolu_0001");
    assert_eq!(has["gen_ai.tool.call.arguments"], r#"{"file_path":"a.rs"}"#);
    assert_eq!(has["gen_ai.tool.call.result"], "no such file");
    let status = spans[2].status.as_ref().unwrap();
    assert_eq!((status.code, &*status.message), (2, "no such file"));
}

#[test]
fn a_missing_result_is_null() {
    let told = Told::script("you: go\nclaude: [Bash ls]\nyou: stop\nclaude: ok");
    let spans = spans(&told);
    assert_eq!(attributes(&spans[2])["langfuse.observation.output"], "null");
}

#[test]
fn texts_can_be_told_under_fewer_names() {
    let told = told();
    let limits = OtlpLimits {
        texts: TextAttributes {
            langfuse: true,
            gen_ai: false,
            open_inference: false,
        },
        ..OtlpLimits::default()
    };
    let batch = &pack(&told.traces(), limits)[0];
    let spans = received(batch);
    let has = attributes(&spans[1]);
    assert!(
        has.contains_key("langfuse.observation.output") && has.contains_key("gen_ai.request.model")
    );
    assert!(!has.contains_key("output.value") && !has.contains_key("gen_ai.output.messages"));
}

#[test]
fn times_are_nanoseconds() {
    let told = told();
    let first = told.session.first.unwrap().0 as u64 * 1_000_000;
    let spans = spans(&told);
    assert_eq!(spans[0].start_time_unix_nano, first);
    assert_eq!(spans[2].start_time_unix_nano, first + 1_010_000_000);
}

#[test]
fn requests_stay_below_the_limit_and_keep_the_order() {
    let turns: Vec<String> = (0..200)
        .map(|n| {
            format!(
                "you: question {n} {}\nclaude: answer {n}",
                "x".repeat(n * 7)
            )
        })
        .collect();
    let told = Told::script(&turns.join("\n"));
    let traces = told.traces();
    let limits = OtlpLimits {
        bytes: 20_000,
        ..OtlpLimits::default()
    };
    let batches = pack(&traces, limits);
    assert!(batches.len() > 10);
    assert!(batches.iter().all(|batch| batch.bytes() <= 20_000));
    let sent: Vec<_> = batches
        .iter()
        .flat_map(|batch| batch.spans().to_vec())
        .collect();
    let wanted: Vec<_> = traces
        .iter()
        .flat_map(|trace| {
            trace
                .spans
                .iter()
                .map(|span| (trace.id, span.id))
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(sent, wanted);
    let ends: Vec<_> = batches
        .iter()
        .flat_map(|batch| batch.ends().to_vec())
        .collect();
    let all: Vec<_> = traces.iter().map(|trace| trace.id).collect();
    assert_eq!(ends, all);
}

#[test]
fn a_trace_ends_in_the_request_that_holds_its_last_span() {
    let told = Told::script(&format!(
        "you: go\n{}claude: done",
        "claude: [Bash ls]\nresult: ok\n".repeat(50)
    ));
    let limits = OtlpLimits {
        bytes: 10_000,
        ..OtlpLimits::default()
    };
    let batches = pack(&told.traces(), limits);
    let (last, before) = batches.split_last().unwrap();
    assert!(before.len() > 5 && before.iter().all(|batch| batch.ends().is_empty()));
    assert_eq!(last.ends().len(), 1);
}

#[test]
fn a_span_larger_than_a_request_is_told_with_shorter_texts() {
    let told = Told::script(&format!(
        "you: go {}\nclaude: [Bash echo {}]\nresult: {}",
        "日".repeat(50_000),
        "y".repeat(90_000),
        "z".repeat(500_000)
    ));
    let limits = OtlpLimits {
        bytes: 30_000,
        ..OtlpLimits::default()
    };
    let batches = pack(&told.traces(), limits);
    assert!(batches.iter().all(|batch| batch.bytes() <= 30_000));
    let spans: Vec<Span> = batches.iter().flat_map(received).collect();
    assert_eq!(spans.len(), 3);
    for span in &spans {
        let has = attributes(span);
        assert!(has["langfuse.observation.input"].as_str().unwrap().len() > 100);
        assert!(
            has.values()
                .any(|value| value.to_string().contains("more characters]"))
        );
    }
    let input = &attributes(&spans[2])["langfuse.observation.input"];
    assert!(serde_json::from_str::<Value>(input.as_str().unwrap()).is_ok());
}

#[test]
fn thousands_of_short_texts_do_not_make_a_request_too_large() {
    let items: Vec<String> = (0..5000).map(|n| format!("\"{n}\"")).collect();
    let told = Told::lines(&[
        r#"{"type":"user","content":"hi"}"#,
        &format!(
            r#"{{"message":{{"id":"m","role":"assistant","content":[{{"type":"tool_use","id":"t","name":"X","input":{{"all":[{}]}}}}]}}}}"#,
            items.join(",")
        ),
    ]);
    let limits = OtlpLimits {
        bytes: 8_000,
        ..OtlpLimits::default()
    };
    let batches = pack(&told.traces(), limits);
    assert!(batches.iter().all(|batch| batch.bytes() <= 8_000));
    let spans: Vec<Span> = batches.iter().flat_map(received).collect();
    assert!(
        attributes(&spans[2])["langfuse.observation.status_message"]
            .as_str()
            .unwrap()
            .contains("omitted")
    );
}

#[test]
fn texts_are_cut_where_somebody_asked_for_it() {
    let told = Told::script("you: a long question\nclaude: a long answer");
    let traces = told.traces_by(TraceOptions {
        max_chars: Some(6),
        ..TraceOptions::default()
    });
    let span = &received(&pack(&traces, OtlpLimits::default())[0])[0];
    let has = attributes(span);
    assert_eq!(has["input.value"], "a long… [9 more characters]");
}

#[test]
fn a_request_falls_into_halves_until_one_span_is_left() {
    let told = told();
    let batch = pack(&told.traces(), OtlpLimits::default()).remove(0);
    let whole = received(&batch);
    let mut parts = vec![batch];
    let mut singles = Vec::new();
    while let Some(part) = parts.pop() {
        match part.split() {
            Ok((first, second)) => parts.extend([second, first]),
            Err(one) => singles.push(*one),
        }
    }
    assert_eq!(singles.len(), 4);
    let spans: Vec<Span> = singles.iter().flat_map(received).collect();
    assert_eq!(spans, whole);
    let ends: Vec<usize> = singles.iter().map(|single| single.ends().len()).collect();
    assert_eq!(ends, [0, 0, 0, 1]);
}

#[test]
fn the_resource_says_who_sends() {
    let resource = OtlpResource {
        host: Some("box".to_owned()),
        more: vec![
            ("service.name".to_owned(), "mine".to_owned()),
            ("team".to_owned(), "x".to_owned()),
        ],
        ..OtlpResource::default()
    };
    let told = told();
    let traces = told.traces();
    let mut packer = OtlpPacker::new(OtlpLimits::default(), &resource);
    packer
        .add(&traces, &traces.turn(1).unwrap(), &mut |_| -> Result<
            (),
            (),
        > {
            Err(())
        })
        .unwrap();
    let batch = packer.finish().unwrap();
    let request = batch.request();
    let list = &request.resource_spans[0];
    let names: HashMap<&str, String> = list
        .resource
        .as_ref()
        .unwrap()
        .attributes
        .iter()
        .map(|attribute| {
            let Some(Any::StringValue(text)) =
                attribute.value.clone().and_then(|value| value.value)
            else {
                panic!()
            };
            (&*attribute.key, text)
        })
        .collect();
    assert_eq!(names["service.name"], "mine");
    assert_eq!((&*names["host.name"], &*names["team"]), ("box", "x"));
    assert_eq!(list.scope_spans[0].scope.as_ref().unwrap().name, "unspool");
}

#[test]
fn whatever_the_lines_are_requests_are_valid() {
    let check = |told: &Told, name: &str| {
        for span in spans(told) {
            assert!(
                span.end_time_unix_nano >= span.start_time_unix_nano,
                "{name}"
            );
            assert!(
                !span.name.is_empty() || told.session.faults.is_empty(),
                "{name}"
            );
            for (key, value) in attributes(&span) {
                let json = ["usage_details", "cost_details", ".metadata.", ".messages"];
                if json.iter().any(|part| key.contains(part)) {
                    let text = value.as_str().unwrap();
                    assert!(
                        serde_json::from_str::<Value>(text).is_ok(),
                        "{name} {key}: {text}"
                    );
                }
                assert!(
                    !value.as_str().is_some_and(|text| text.contains('\0')),
                    "{name} {key}"
                );
            }
        }
    };
    for seed in 0..300 {
        check(
            &Told::bytes(graph::session(seed).join("\n") + "\n"),
            &format!("graph {seed}"),
        );
    }
    for file in corpus::files() {
        // The larger copies of the same recordings take long.
        if !file.path.to_string_lossy().contains("testkit") {
            continue;
        }
        check(&Told::bytes(file.bytes()), &file.name());
    }
}
