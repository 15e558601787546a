//! What is told of a turn.

use serde_json::{Value, json};
use unspool_model::time::Time;
use unspool_send::spans::{
    SpanTextLocation, TraceOptions, TraceSpanKind, TraceSpanLevel, TraceState,
};
use unspool_testkit::graph;
use unspool_testkit::script;

use crate::tell::{Told, said, span, tree};

/// Seconds from the first line of a script to a time.
fn second(told: &Told, at: Option<Time>) -> f64 {
    let first = told.session.first.unwrap();
    (at.unwrap().0 - first.0) as f64 / 1000.0
}

fn key<'a>(list: &'a [(&'static str, Value)], key: &str) -> Option<&'a Value> {
    list.iter()
        .find(|(name, _)| *name == key)
        .map(|(_, value)| value)
}

#[test]
fn a_turn_is_a_tree_of_generations_and_tools() {
    let told = Told::script(
        "you: fix it
         claude: looking [Read a.rs] [Read b.rs]
         result: Read a.rs ok
         result: Read b.rs missing!
         claude: done",
    );
    assert_eq!(
        told.tree(),
        r#"agent Turn 1 < {"role":"user","content":"fix it"} > {"role":"assistant","content":"done"}
  generation claude-sonnet-4-5-20250929 < {"role":"user","content":"fix it"} > {"role":"assistant","content":"looking"}
    tool Read < {"file_path":"a.rs"} > "ok"
    tool Read ERROR < {"file_path":"b.rs"} > "missing"
  generation claude-sonnet-4-5-20250929 > {"role":"assistant","content":"done"}
"#
    );
}

#[test]
fn two_prompts_are_two_turns_numbered_in_order() {
    let told = Told::script("you: one\nclaude: 1\nyou: two\nclaude: 2");
    let names: Vec<String> = told.all().iter().map(|trace| trace.name()).collect();
    assert_eq!(names, ["Turn 1", "Turn 2"]);
}

#[test]
fn a_call_without_a_result_has_a_null_output() {
    let told = Told::script("you: go\nclaude: [Bash ls]\nyou: never mind\nclaude: ok");
    let traces = told.traces();
    let trace = traces.turn(1).unwrap();
    let tool = span(&trace, "Bash");
    assert_eq!(said(&traces, &tool.output), Some(Value::Null));
    assert_eq!(
        (tool.level, tool.start),
        (TraceSpanLevel::Default, tool.end)
    );
}

#[test]
fn lines_with_one_id_are_one_generation_with_the_usage_of_all_of_them() {
    let told = Told::script(
        "you: go
         (id=m,usage=10/1/5/0/0) claude: first
         (id=m,usage=10/42/5/0/0) claude: second",
    );
    let trace = told.only();
    let generations = trace
        .spans
        .iter()
        .filter(|span| span.kind == TraceSpanKind::Generation);
    let generations: Vec<_> = generations.collect();
    assert_eq!(generations.len(), 1);
    assert_eq!(generations[0].usage.unwrap().output, 42);
    let output = said(&told.traces(), &generations[0].output);
    assert_eq!(
        output,
        Some(json!({"role": "assistant", "content": "first\nsecond"}))
    );
}

#[test]
fn lines_of_every_shape_are_told_for_what_they_are() {
    let reply = |content: &str| {
        format!(r#"{{"message":{{"id":"m","role":"assistant","content":{content}}}}}"#)
    };
    for (user, asked) in [
        (r#"{"type":"user","content":"hi"}"#, json!("hi")),
        (
            r#"{"type":"user","message":{"role":"user","content":"hi"}}"#,
            json!("hi"),
        ),
        (
            r#"{"message":{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}"#,
            json!("a\nb"),
        ),
        // What stands in the message counts before what stands on the line.
        (
            r#"{"type":"user","content":"top","message":{"role":"user","content":"inner"}}"#,
            json!("inner"),
        ),
    ] {
        let told = Told::lines(&[user, &reply(r#""yes""#)]);
        let traces = told.traces();
        let trace = told.only();
        let input = said(&traces, &trace.spans[0].input);
        assert_eq!(
            input,
            Some(json!({"role": "user", "content": asked})),
            "{user}"
        );
        assert_eq!(trace.spans[1].name, "unknown");
        assert_eq!(trace.spans[1].usage, None);
    }
}

#[test]
fn what_the_program_wrote_for_the_model_opens_no_turn_and_says_nothing() {
    let told = Told::lines(&[
        r#"{"type":"user","isMeta":true,"content":"skill text"}"#,
        r#"{"type":"user","content":"hi"}"#,
        r#"{"type":"user","isMeta":true,"content":"reminder"}"#,
        r#"{"type":"holiday","content":"unknown"}"#,
        r#"{"type":"system","content":"note"}"#,
        "not json",
        r#"{"message":{"id":"m","role":"assistant","content":"yes"}}"#,
    ]);
    let trace = told.only();
    assert_eq!(trace.spans.len(), 2);
    let input = said(&told.traces(), &trace.spans[0].input);
    assert_eq!(input, Some(json!({"role": "user", "content": "hi"})));
}

#[test]
fn nothing_and_results_alone_are_no_turns() {
    assert!(Told::lines(&[]).all().is_empty());
    assert!(Told::lines(&["garbage", "[]"]).all().is_empty());
    let result =
        r#"{"type":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}"#;
    assert!(Told::lines(&[result]).all().is_empty());
}

#[test]
fn commands_interrupts_and_outputs_are_not_told_as_prompts() {
    let told = Told::script(
        "command: /fix it now
         claude: fixed
         you: more
         claude: working [Bash sleep]
         interrupt: [Request interrupted by user]
         you: again
         claude: ok",
    );
    let traces = told.traces();
    let asked: Vec<Value> = traces
        .iter()
        .filter_map(|trace| said(&traces, &trace.spans[0].input))
        .map(|input| input["content"].clone())
        .collect();
    assert_eq!(asked, ["/fix it now", "more", "again"]);
}

#[test]
fn what_was_said_before_the_first_prompt_is_told_too() {
    // Another program speaks to the model; no person ever does.
    let notice = r#"raw: {"type":"user","uuid":"t","parentUuid":null,"origin":{"kind":"peer"},"message":{"role":"user","content":"<teammate-message>look at it</teammate-message>"}}"#;
    let alone = Told::script(&format!("{notice}\nclaude: looked"));
    let trace = alone.only();
    assert_eq!(
        (trace.n, trace.name().as_str(), trace.state),
        (0, "Turn 0", TraceState::Complete)
    );
    assert_eq!(trace.spans.len(), 2);
    let followed = Told::script(&format!(
        "{notice}\nclaude: [Bash ls]\nyou: stop\nclaude: ok"
    ));
    let all = followed.all();
    assert_eq!(all.iter().map(|trace| trace.n).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(followed.traces().turn(1).unwrap().id, all[1].id);
    assert_eq!(all[0].last_line, 2);
}

// When.

#[test]
fn a_turn_begins_with_its_prompt_and_ends_with_its_last_line() {
    let told = Told::script(
        "you: go\n(at=+5s) claude: [Bash ls]\n(at=+7s) result: ok\n(at=+3s) claude: done",
    );
    let trace = told.only();
    assert_eq!(
        (second(&told, trace.start), second(&told, trace.end)),
        (0.0, 15.0)
    );
}

#[test]
fn the_duration_belongs_to_the_turn_before_it() {
    // It is written behind the last line of its turn, when an exporter that runs at the end
    // of the turn has already read the file.
    let told = Told::script(
        "you: one
         claude: 1
         duration: 90602
         you: two
         (at=+4s) claude: 2",
    );
    let all = told.all();
    let took = |at: usize| all[at].end.unwrap().since(all[at].start.unwrap());
    assert_eq!((took(0), took(1)), (90602, 4000));
}

#[test]
fn a_generation_lasts_from_the_line_before_it_to_its_last_line() {
    let told = Told::script(
        "you: go
         (at=+5s,id=a) claude: thinking about it
         (at=+1s,id=a) claude: [Bash ls]
         (at=+7s) result: ok
         (at=+3s) claude: done",
    );
    let trace = told.only();
    let generations = trace
        .spans
        .iter()
        .filter(|span| span.kind == TraceSpanKind::Generation);
    let times: Vec<(f64, f64)> = generations
        .map(|span| (second(&told, span.start), second(&told, span.end)))
        .collect();
    assert_eq!(times, [(0.0, 6.0), (13.0, 16.0)]);
}

#[test]
fn tools_that_ran_together_are_told_together() {
    let told = Told::script(
        "you: go
         claude: [Read a] [Read b]
         (at=+5s) result: Read a 1
         (at=+5s) result: Read b 2
         claude: done",
    );
    let trace = told.only();
    let tools = trace
        .spans
        .iter()
        .filter(|span| span.kind == TraceSpanKind::Tool);
    let times: Vec<(f64, f64)> = tools
        .map(|span| (second(&told, span.start), second(&told, span.end)))
        .collect();
    assert_eq!(times, [(1.0, 6.01), (1.01, 11.01)]);
}

#[test]
fn without_times_there_are_none_and_nothing_is_now() {
    let told = Told::lines(&[
        r#"{"type":"user","content":"hi"}"#,
        r#"{"message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t","name":"Read","input":{}}]}}"#,
        r#"{"type":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}"#,
        r#"{"message":{"id":"n","role":"assistant","content":"yes"}}"#,
    ]);
    let trace = told.only();
    assert_eq!(trace.spans.len(), 4);
    assert!(
        trace
            .spans
            .iter()
            .all(|span| span.start.is_none() && span.end.is_none())
    );
    assert_eq!(trace.state, TraceState::Complete);
}

#[test]
fn a_time_before_1970_is_none() {
    let told = Told::lines(&[
        r#"{"type":"user","timestamp":"1969-12-31T23:00:00.000Z","content":"hi"}"#,
        r#"{"timestamp":"2026-01-03T10:00:00.000Z","message":{"id":"m","role":"assistant","content":"yes"}}"#,
    ]);
    let start = told.only().spans[0].start;
    assert_eq!(start, Time::parse("2026-01-03T10:00:00.000Z"));
}

#[test]
fn the_time_on_the_line_counts_before_that_in_the_message() {
    let told = Told::lines(&[
        r#"{"type":"user","timestamp":"2026-01-01T00:00:01.000Z","content":"hi"}"#,
        r#"{"timestamp":"2026-01-01T00:00:03.000Z","message":{"id":"m","role":"assistant","timestamp":"2026-01-01T00:00:09.000Z","content":"yes"}}"#,
        r#"{"message":{"id":"n","role":"assistant","timestamp":"2026-01-01T00:00:10.000Z","content":"yes"}}"#,
    ]);
    let trace = told.only();
    assert_eq!(second(&told, trace.spans[1].end), 2.0);
    assert_eq!(second(&told, trace.spans[2].end), 9.0);
}

// How far.

#[test]
fn a_turn_waits_until_somebody_answered() {
    let state = |script: &str| Told::script(script).all().last().unwrap().state;
    assert_eq!(state("you: go"), TraceState::Open);
    assert_eq!(state("you: go\nclaude: [Bash ls]"), TraceState::Open);
    assert_eq!(
        state("you: go\nclaude: [Bash ls]\nresult: ok"),
        TraceState::Open
    );
    assert_eq!(
        state("you: go\nclaude: [Bash ls]\nresult: ok\nclaude: done"),
        TraceState::Complete
    );
    assert_eq!(
        state("you: go\ninterrupt: [Request interrupted by user]"),
        TraceState::Complete
    );
    assert_eq!(
        state("you: go\nclaude: [Bash ls]\nduration: 9"),
        TraceState::Complete
    );
}

#[test]
fn a_command_waits_until_it_printed_or_the_model_answered() {
    let state = |script: &str| Told::script(script).all().last().unwrap().state;
    assert_eq!(state("command: /fix it"), TraceState::Open);
    assert_eq!(state("command: /fix it\nclaude: ok"), TraceState::Complete);
    assert_eq!(state("command: /cost\nstdout: $1"), TraceState::Complete);
}

#[test]
fn a_turn_that_others_follow_is_over_however_it_ended() {
    let told = Told::script("you: one\nyou: two\nclaude: 2");
    assert!(
        told.all()
            .iter()
            .all(|trace| trace.state == TraceState::Complete)
    );
    // A command that the client did alone is of little interest.
    let told = Told::script("command: /clear\nyou: two\nclaude: 2");
    assert_eq!(told.all()[0].spans[0].level, TraceSpanLevel::Debug);
}

// What else.

#[test]
fn usage_has_what_the_line_says_and_a_price() {
    let told = Told::script("you: go\n(usage=1/2/3/4/5) claude: done");
    let trace = told.only();
    let generation = &trace.spans[1];
    let usage = generation.usage.unwrap();
    assert_eq!((usage.input, usage.output, usage.cache_read), (1, 2, 3));
    assert_eq!((usage.cache_write_5m, usage.cache_write_1h), (4, 5));
    let cost = generation.cost.unwrap();
    // Sonnet 4.5: 3 and 15 dollars a million, 0.30 read, 3.75 and 6 written.
    assert_eq!(
        cost.total.0,
        3_000_000 + 30_000_000 + 900_000 + 15_000_000 + 30_000_000
    );
    assert_eq!(
        cost.total,
        cost.input + cost.output + cost.cache_read + cost.cache_write_5m + cost.cache_write_1h
    );
    let unknown = Told::script("you: go\n(model=who-knows) claude: done").only();
    assert!(unknown.spans[1].usage.is_some() && unknown.spans[1].cost.is_none());
}

#[test]
fn the_prompt_tells_about_its_own_turn() {
    let told = Told::script(
        "(version=2.1.100,slug=red-green-blue) you: one
         claude: 1
         (version=2.1.325,cwd=/elsewhere) you: two
         claude: 2",
    );
    let all = told.all();
    let of = |at: usize, name: &str| key(&all[at].metadata, name).cloned();
    assert_eq!(of(0, "source"), Some(json!("claude-code")));
    assert_eq!(
        (of(0, "turn_number"), of(1, "turn_number")),
        (Some(json!(1)), Some(json!(2)))
    );
    assert_eq!(
        (of(0, "version"), of(1, "version")),
        (Some(json!("2.1.100")), Some(json!("2.1.325")))
    );
    assert_eq!(
        (of(0, "slug"), of(1, "slug")),
        (Some(json!("red-green-blue")), None)
    );
    assert_eq!(
        (of(0, "git_branch"), of(1, "cwd")),
        (Some(json!("main")), Some(json!("/elsewhere")))
    );
    assert_eq!(of(0, "permission_mode"), Some(json!("default")));
    let bare = Told::lines(&[r#"{"type":"user","content":"hi"}"#]).only();
    assert!(key(&bare.metadata, "version").is_none() && key(&bare.metadata, "cwd").is_none());
}

#[test]
fn calls_and_generations_keep_the_keys_of_the_older_exporter() {
    let trace = Told::script("you: go\nclaude: [Bash ls] [Read a]\nresult: ok").only();
    assert_eq!(key(&trace.spans[1].metadata, "tool_count"), Some(&json!(2)));
    let bash = span(&trace, "Bash");
    assert_eq!(key(&bash.metadata, "tool_name"), Some(&json!("Bash")));
    assert_eq!(key(&bash.metadata, "tool_id"), Some(&json!("toolu_0001")));
}

#[test]
fn compactions_interrupts_errors_and_queued_prompts_are_events() {
    let told = Told::script(
        "you: go
         claude: [Bash ls]
         queued: and this too
         result: ok
         compact: 9000->100
         summary: it was about ls
         claude: more
         interrupt: [Request interrupted by user]",
    );
    let traces = told.traces();
    let trace = told.only();
    let events: Vec<(&str, &str)> = trace
        .spans
        .iter()
        .filter(|span| span.kind == TraceSpanKind::Event)
        .map(|span| (&*span.name, span.level.name()))
        .collect();
    let all = [
        ("queued prompt", "DEFAULT"),
        ("compaction", "DEFAULT"),
        ("interrupt", "WARNING"),
    ];
    assert_eq!(events, all);
    let queued = said(&traces, &span(&trace, "queued prompt").input);
    assert_eq!(
        queued,
        Some(json!({"role": "user", "content": "and this too"}))
    );
    assert_eq!(trace.spans[0].level, TraceSpanLevel::Warning);
    let compaction = span(&trace, "compaction");
    assert_eq!(key(&compaction.metadata, "trigger"), Some(&json!("auto")));
}

#[test]
fn a_turn_that_the_api_failed_is_an_error_and_a_retry_a_warning() {
    let told = Told::lines(&[
        r#"{"type":"user","uuid":"a","parentUuid":null,"message":{"role":"user","content":"hi"}}"#,
        r#"{"type":"system","subtype":"api_error","uuid":"b","parentUuid":"a","error":{"message":"overloaded"},"retryAttempt":1,"maxRetries":10}"#,
        r#"{"type":"assistant","uuid":"c","parentUuid":"b","isApiErrorMessage":true,"message":{"id":"m","model":"<synthetic>","role":"assistant","content":[{"type":"text","text":"API Error: 529"}]}}"#,
    ]);
    let trace = told.only();
    assert_eq!(trace.state, TraceState::Complete);
    assert_eq!(
        told.tree(),
        r#"agent Turn 1 ERROR < {"role":"user","content":"hi"}
  event api error WARNING > "overloaded"
  event api failure ERROR > "API Error: 529"
"#
    );
    let retry = span(&trace, "api error");
    assert_eq!(key(&retry.metadata, "attempt"), Some(&json!(1)));
    assert_eq!(key(&retry.metadata, "max_attempts"), Some(&json!(10)));
}

#[test]
fn an_error_that_was_overcome_leaves_the_turn_as_it_is() {
    let told = Told::lines(&[
        r#"{"type":"user","uuid":"a","parentUuid":null,"message":{"role":"user","content":"hi"}}"#,
        r#"{"type":"system","subtype":"api_error","uuid":"b","parentUuid":"a","error":{"message":"overloaded"},"retryAttempt":1,"maxRetries":10}"#,
        r#"{"type":"assistant","uuid":"c","parentUuid":"b","message":{"id":"m","model":"x","role":"assistant","content":[{"type":"text","text":"hello"}]}}"#,
    ]);
    assert_eq!(told.only().spans[0].level, TraceSpanLevel::Default);
}

#[test]
fn images_are_told_by_reference() {
    let told = Told::lines(&[
        r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"look"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}]}}"#,
        r#"{"message":{"id":"m","role":"assistant","content":"a picture"}}"#,
    ]);
    let input = said(&told.traces(), &told.only().spans[0].input).unwrap();
    let hash = blake3::hash(b"ABC").to_hex().to_string();
    let image = json!({"type": "image", "media_type": "image/png", "bytes": 3, "blake3": hash});
    assert_eq!(
        input["content"],
        json!([{"type": "text", "text": "look"}, image])
    );
}

#[test]
fn thinking_is_told_only_if_asked_for() {
    let told = Told::script("you: go\nthink: hmm, secret plan\nclaude: done");
    assert!(!told.tree().contains("secret plan"));
    let traces = told.traces_by(TraceOptions {
        thinking: true,
        ..TraceOptions::default()
    });
    let trace = traces.turn(1).unwrap();
    assert!(tree(&traces, &trace).contains(r#"{"type":"thinking","thinking":"hmm, secret plan"}"#));
}

#[test]
fn secrets_are_masked_unless_they_are_asked_for() {
    let token = format!("ghp{}{}", "_0aZ9bY8cX7dW6eV5", "fU4gT3hS2iR1jQ0kP9lO8");
    let told = Told::script(&format!(
        "you: use {token}
         claude: ok {token} [Bash echo {token}]
         result: {token}
         claude: done",
    ));
    let masked = told.tree();
    assert!(!masked.contains(&token));
    assert_eq!(masked.matches("[REDACTED:github-pat]").count(), 5);
    let traces = told.traces_by(TraceOptions {
        redact: None,
        ..TraceOptions::default()
    });
    assert!(tree(&traces, &traces.turn(1).unwrap()).contains(&token));
}

// Sub-agents.

fn agent_lines(id: &str) -> Vec<u8> {
    script::jsonl(&format!(
        "(agent={id})
         agent: search for it
         (id=msg_agent_{id}) claude: searching [Grep it]
         result: found
         (id=msg_agent_{id}_2) claude: it is there",
    ))
    .to_vec()
}

#[test]
fn a_sub_agent_stands_under_its_call_with_its_own_generations_and_tools() {
    let told = Told::script("you: find it\nclaude: [Task explore]\nresult: there\nclaude: found")
        .agent("a1", Some("toolu_0001"), agent_lines("a1").as_slice());
    assert_eq!(
        told.tree(),
        r#"agent Turn 1 < {"role":"user","content":"find it"} > {"role":"assistant","content":"found"}
  generation claude-sonnet-4-5-20250929 < {"role":"user","content":"find it"} > {"role":"assistant","content":""}
    tool Task < {"description":"explore","prompt":"explore","subagent_type":"general-purpose"} > "there"
      agent Explore < {"role":"user","content":"search for it"} > {"role":"assistant","content":"it is there"}
        generation claude-sonnet-4-5-20250929 < {"role":"user","content":"search for it"} > {"role":"assistant","content":"searching"}
          tool Grep < {"pattern":"it"} > "found"
        generation claude-sonnet-4-5-20250929 > {"role":"assistant","content":"it is there"}
  generation claude-sonnet-4-5-20250929 > {"role":"assistant","content":"found"}
"#
    );
}

#[test]
fn a_sub_agent_inside_the_file_stands_under_its_call_too() {
    let told = Told::script(
        "you: find it
         claude: [Task explore]
         (agent=a1) agent: search for it
         (agent=a1) claude: it is there
         result: there
         claude: found",
    );
    let trace = told.only();
    let agent = trace
        .spans
        .iter()
        .find(|span| span.kind == TraceSpanKind::Agent && span.parent.is_some());
    let agent = agent.unwrap();
    assert_eq!(agent.parent, Some(span(&trace, "Task").id));
    let below: Vec<TraceSpanKind> = trace
        .spans
        .iter()
        .filter(|span| span.parent == Some(agent.id))
        .map(|span| span.kind)
        .collect();
    assert_eq!(below, [TraceSpanKind::Generation]);
}

#[test]
fn a_sub_agent_nobody_started_stands_in_the_turn_it_began_in() {
    let told = Told::script("(at=2026-01-05T09:00:00.000Z) you: one\nclaude: 1\n(at=2026-01-05T12:00:00.000Z) you: two\nclaude: 2")
        .agent("a1", None, agent_lines("a1").as_slice());
    let all = told.all();
    let holds = |at: usize| {
        all[at]
            .spans
            .iter()
            .any(|span| span.origin.as_deref() == Some("a1"))
    };
    let began = told.agents[0].session.first.unwrap();
    let second = all[1].start.unwrap() <= began;
    assert_eq!((holds(0), holds(1)), (!second, second));
}

#[test]
fn a_sub_agent_whose_file_is_gone_is_told_from_the_copies_in_its_session() {
    let copy = |id: &str, output: u32| {
        format!(
            r#"raw: {{"type":"progress","uuid":"p-{id}-{output}","parentToolUseID":"toolu_0001","timestamp":"2026-01-05T10:00:03.000Z","data":{{"type":"agent_progress","agentId":"a1","message":{{"type":"assistant","message":{{"id":"{id}","role":"assistant","model":"claude-haiku-4-5","content":[],"usage":{{"input_tokens":7,"output_tokens":{output}}}}}}}}}}}"#
        )
    };
    let script = format!(
        "you: find it\nclaude: [Task explore]\n{}\n{}\n{}\nresult: there\nclaude: found",
        copy("msg_a", 1),
        copy("msg_a", 9),
        copy("msg_b", 5),
    );
    let trace = Told::script(&script).only();
    let agent = span(&trace, "general-purpose");
    assert_eq!(
        (agent.kind, agent.parent),
        (TraceSpanKind::Agent, Some(span(&trace, "Task").id))
    );
    let below = trace
        .spans
        .iter()
        .filter(|span| span.parent == Some(agent.id));
    let outputs: Vec<u64> = below.map(|span| span.usage.unwrap().output).collect();
    assert_eq!(outputs, [9, 5]);
    // With its file, that is told instead.
    let told = Told::script(&script).agent("a1", Some("toolu_0001"), agent_lines("a1").as_slice());
    assert!(
        told.only()
            .spans
            .iter()
            .all(|span| span.origin.as_deref() != Some("msg_b"))
    );
}

#[test]
fn what_a_forked_sub_agent_repeats_of_its_session_is_told_once() {
    let main = "you: find it\nclaude: [Task explore]\nresult: there\nclaude: found";
    let repeated = script::jsonl(
        "(agent=a1)
         agent: find it
         (id=msg_0001) claude: as before
         agent: search for it
         (id=msg_agent) claude: it is there",
    );
    let told = Told::script(main).agent("a1", Some("toolu_0001"), repeated.as_slice());
    let trace = told.only();
    let generations = trace
        .spans
        .iter()
        .filter(|span| span.kind == TraceSpanKind::Generation);
    let ids: Vec<&str> = generations
        .filter_map(|span| span.origin.as_deref())
        .collect();
    assert_eq!(ids, ["msg_0001", "msg_agent", "msg_0002"]);
}

#[test]
fn sub_agents_that_name_each_other_in_a_circle_end() {
    let calls = |id: &str, other: &str| {
        script::jsonl(&format!(
            "(agent={id})\nagent: go\n(id=m_{id}) claude: [Task {other}]"
        ))
        .iter()
        .map(|byte| *byte as char)
        .collect::<String>()
        .replace("toolu_0001", &format!("call_{id}"))
        .into_bytes()
    };
    let told = Told::script("you: go\nclaude: [Task x]\nresult: there\nclaude: found")
        .agent("a", Some("call_b"), calls("a", "b").as_slice())
        .agent("b", Some("call_a"), calls("b", "a").as_slice());
    assert_eq!(told.all().len(), 1);
}

// Always.

#[test]
fn whatever_the_lines_are_a_trace_is_a_tree_whose_times_do_not_run_backwards() {
    for seed in 0..600 {
        let bytes = graph::session(seed).join("\n") + "\n";
        let told = Told::bytes(bytes);
        for trace in told.all() {
            let mut seen = std::collections::HashSet::new();
            for (at, span) in trace.spans.iter().enumerate() {
                match span.parent {
                    None => assert_eq!(at, 0, "{seed}"),
                    Some(parent) => assert!(seen.contains(&parent), "{seed}"),
                }
                assert!(seen.insert(span.id), "{seed}");
                assert!(span.end >= span.start, "{seed}");
                let first = matches!(span.input, SpanTextLocation::Prompt { .. });
                assert!(
                    first || span.kind != TraceSpanKind::Agent || span.parent.is_some(),
                    "{seed}"
                );
            }
        }
    }
}
