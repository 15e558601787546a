use std::time::Duration;

use super::*;
use crate::api::retry::ApiErrorKind;
use crate::tool::ToolOutcome;

fn machine() -> TurnStateMachine {
    let limits = TurnLimits {
        turns: None,
        window: 200_000,
        compacts: true,
    };
    TurnStateMachine::new(limits, |call| call.name == "Read")
}

fn prompt(text: &str) -> TurnEvent {
    TurnEvent::Submit(SubmittedPrompt {
        content: text.into(),
        id: "p".into(),
        mode: None,
        source: None,
        context: Vec::new(),
    })
}

fn head() -> StreamedHeader {
    StreamedHeader {
        id: "msg".into(),
        model: "claude-x".into(),
        request: None,
        usage: json!({}),
    }
}

fn block(json: Value) -> TurnEvent {
    TurnEvent::Item(StreamItem::Block(
        StreamedBlock { json, broken: None },
        head(),
    ))
}

fn text(words: &str) -> TurnEvent {
    block(json!({"type": "text", "text": words}))
}

fn call(id: &str, name: &str) -> TurnEvent {
    block(json!({"type": "tool_use", "id": id, "name": name, "input": {}}))
}

fn ended(stop: &str) -> TurnEvent {
    ended_with(stop, 10)
}

fn ended_with(stop: &str, tokens: u64) -> TurnEvent {
    let mut message = StreamedMessage::default();
    let usage = json!({"input_tokens": tokens});
    for event in [
        json!({"type": "message_start", "message": {"id": "msg", "usage": usage}}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop}}),
        json!({"type": "message_stop"}),
    ] {
        message.take(&event);
    }
    TurnEvent::Item(StreamItem::Ended(message, None))
}

fn ran(id: &str) -> TurnEvent {
    TurnEvent::Ran {
        call: id.into(),
        outcome: ToolOutcome::done("ok", Value::Null),
        halt: TurnHalt::No,
    }
}

/// What was done, in a few letters each.
fn short(effects: &[TurnEffect]) -> String {
    let words = effects.iter().map(|effect| match effect {
        TurnEffect::Append(NewEntry::Prompt { .. }) => "prompt".to_owned(),
        TurnEffect::Append(NewEntry::Reply(reply)) => {
            let stop = if reply.stop.is_some() { "!" } else { "" };
            format!(
                "reply:{}{stop}",
                reply.block["type"].as_str().unwrap_or_default()
            )
        }
        TurnEffect::Append(NewEntry::Result { call, is_error, .. }) => {
            let failed = if *is_error == Some(true) { "-" } else { "+" };
            format!("{failed}{call}")
        }
        TurnEffect::Append(NewEntry::Interrupt { tool, .. }) => format!("interrupt:{tool}"),
        TurnEffect::Append(NewEntry::Meta { .. }) => "meta".to_owned(),
        TurnEffect::Append(NewEntry::Synthetic { .. }) => "error".to_owned(),
        TurnEffect::Append(NewEntry::Boundary { .. }) => "boundary".to_owned(),
        TurnEffect::Append(NewEntry::Summary { .. }) => "summary".to_owned(),
        TurnEffect::Append(NewEntry::Queue { operation, .. }) => (*operation).to_owned(),
        TurnEffect::Append(_) => "line".to_owned(),
        TurnEffect::Ask => "ask".to_owned(),
        TurnEffect::Hush => "hush".to_owned(),
        TurnEffect::Run(call) => format!("run:{}", call.id),
        TurnEffect::StopCalls => "stop".to_owned(),
        TurnEffect::Soon => "soon".to_owned(),
        TurnEffect::Compact { trigger, .. } => format!("compact:{trigger}"),
        TurnEffect::Closing { .. } => "closing".to_owned(),
        TurnEffect::End(ending) => format!(
            "end:{}",
            format!("{:?}", ending.why)
                .split(['(', ' '])
                .next()
                .unwrap_or_default()
        ),
        TurnEffect::Queued(count) => format!("queued:{count}"),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn play(machine: &mut TurnStateMachine, events: Vec<TurnEvent>) -> Vec<String> {
    events
        .into_iter()
        .map(|event| short(&machine.step(event)))
        .collect()
}

#[test]
fn a_prompt_is_written_before_it_is_asked_and_the_last_block_knows_why_it_stopped() {
    let mut machine = machine();
    let done = play(
        &mut machine,
        vec![
            prompt("hi"),
            block(json!({"type": "thinking", "thinking": "", "signature": "s"})),
            text("hello"),
            ended("end_turn"),
            TurnEvent::MayStop(None),
        ],
    );
    assert_eq!(
        done,
        [
            "prompt ask",
            "",
            "reply:thinking",
            "reply:text! closing",
            "end:Done"
        ]
    );
    assert!(machine.is_idle());
}

#[test]
fn calls_that_read_run_side_by_side_and_others_alone_and_in_order() {
    let mut machine = machine();
    let done = play(
        &mut machine,
        vec![
            prompt("go"),
            call("a", "Read"),
            call("b", "Read"),
            call("c", "Write"),
            call("d", "Read"),
            ended("tool_use"),
            ran("b"),
            ran("a"),
            ran("c"),
            ran("d"),
        ],
    );
    assert_eq!(
        done[5..],
        [
            "reply:tool_use! run:a run:b",
            "+b",
            "+a run:c",
            "+c run:d",
            "+d ask"
        ]
    );
}

#[test]
fn no_more_than_ten_run_at_once() {
    let mut machine = machine();
    let mut events = vec![prompt("go")];
    events.extend((0..12).map(|at| call(&format!("c{at}"), "Read")));
    events.push(ended("tool_use"));
    let done = play(&mut machine, events);
    let last = done.last().map(String::as_str).unwrap_or_default();
    assert_eq!(last.matches("run:").count(), AT_ONCE);
    assert!(short(&machine.step(ran("c0"))).contains("run:c10"));
}

#[test]
fn a_call_is_never_run_twice_and_answered_once() {
    let mut machine = machine();
    let done = play(
        &mut machine,
        vec![
            prompt("go"),
            call("a", "Write"),
            call("a", "Write"),
            ended("tool_use"),
            ran("a"),
            ran("a"),
        ],
    );
    assert_eq!(done.join(" ").matches("run:a").count(), 1);
    assert_eq!(done.join(" ").matches("+a").count(), 1);
}

#[test]
fn input_that_is_no_json_is_answered_without_running() {
    let mut machine = machine();
    let broken = TurnEvent::Item(StreamItem::Block(
        StreamedBlock {
            json: json!({"type": "tool_use", "id": "a", "name": "Read", "input": {}}),
            broken: Some("{\"file".into()),
        },
        head(),
    ));
    let done = play(&mut machine, vec![prompt("go"), broken, ended("tool_use")]);
    assert_eq!(done[2], "reply:tool_use! -a ask");
}

#[test]
fn a_call_that_was_cut_is_neither_written_nor_run() {
    let mut machine = machine();
    let done = play(
        &mut machine,
        vec![
            prompt("go"),
            text("I will"),
            call("a", "Write"),
            ended("max_tokens"),
        ],
    );
    assert_eq!(done[2..], ["reply:text", "meta ask"]);
    let mut machine = self::machine();
    let done = play(
        &mut machine,
        vec![
            prompt("go"),
            call("a", "Read"),
            call("b", "Write"),
            ended("max_tokens"),
        ],
    );
    assert_eq!(
        done[2..],
        ["reply:tool_use", "run:a"],
        "what was whole is run"
    );
}

#[test]
fn an_answer_that_is_cut_again_and_again_ends() {
    let mut machine = machine();
    let mut done = play(&mut machine, vec![prompt("go")]);
    for _ in 0..10 {
        done.extend(play(&mut machine, vec![text("x"), ended("max_tokens")]));
        if machine.is_idle() {
            break;
        }
    }
    assert_eq!(
        done.iter().filter(|step| step.contains("ask")).count(),
        1 + CONTINUES as usize
    );
    assert!(
        done.last()
            .is_some_and(|last| last.ends_with("error end:TooLong")),
        "{done:?}"
    );
}

#[test]
fn stopping_while_the_model_speaks_keeps_what_was_seen() {
    let mut machine = machine();
    let done = play(
        &mut machine,
        vec![
            prompt("go"),
            TurnEvent::Item(StreamItem::Began(head())),
            TurnEvent::Item(StreamItem::Text("half".into())),
            TurnEvent::Interrupt,
        ],
    );
    assert_eq!(done[3], "hush reply:text interrupt:false end:Interrupted");
    assert_eq!(
        short(&machine.step(text("late"))),
        "",
        "what comes late is not heard"
    );
}

#[test]
fn stopping_after_a_call_was_said_answers_it() {
    let mut machine = machine();
    let done = play(
        &mut machine,
        vec![
            prompt("go"),
            call("a", "Write"),
            text("x"),
            TurnEvent::Interrupt,
        ],
    );
    assert_eq!(done[3], "hush reply:text -a interrupt:true end:Interrupted");
    let mut machine = self::machine();
    let done = play(
        &mut machine,
        vec![prompt("go"), call("a", "Write"), TurnEvent::Interrupt],
    );
    assert_eq!(
        done[2],
        "hush reply:tool_use -a interrupt:true end:Interrupted"
    );
}

#[test]
fn stopping_while_calls_run_waits_for_them_a_little() {
    let mut machine = machine();
    let done = play(
        &mut machine,
        vec![
            prompt("go"),
            call("a", "Read"),
            call("b", "Read"),
            call("c", "Write"),
            ended("tool_use"),
            TurnEvent::Interrupt,
            ran("a"),
            TurnEvent::Deadline,
            ran("b"),
        ],
    );
    assert_eq!(
        done[5..],
        [
            "stop soon",
            "+a",
            "-b -c interrupt:true end:Interrupted",
            ""
        ]
    );
}

#[test]
fn a_plain_no_ends_the_turn_and_a_reason_does_not() {
    let mut machine = machine();
    let no = |halt| TurnEvent::Ran {
        call: "a".into(),
        outcome: ToolOutcome::failed("no"),
        halt,
    };
    let done = play(
        &mut machine,
        vec![
            prompt("go"),
            call("a", "Write"),
            call("b", "Write"),
            ended("tool_use"),
            no(TurnHalt::Rejected),
        ],
    );
    assert_eq!(done[4], "-a stop soon -b interrupt:true end:Interrupted");
    let mut machine = self::machine();
    let done = play(
        &mut machine,
        vec![
            prompt("go"),
            call("a", "Write"),
            ended("tool_use"),
            no(TurnHalt::No),
        ],
    );
    assert_eq!(done[3], "-a ask");
}

#[test]
fn what_is_typed_in_the_meantime_is_said_behind_the_results() {
    let mut machine = machine();
    let done = play(
        &mut machine,
        vec![
            prompt("go"),
            call("a", "Write"),
            ended("tool_use"),
            prompt("wait"),
            ran("a"),
        ],
    );
    assert_eq!(
        done[3..],
        ["enqueue queued:1", "+a dequeue prompt queued:0 ask"]
    );
    let done = play(
        &mut machine,
        vec![
            prompt("next"),
            text("ok"),
            ended("end_turn"),
            TurnEvent::MayStop(None),
        ],
    );
    assert_eq!(done[3], "end:Done dequeue queued:0 prompt ask");
}

#[test]
fn what_waits_is_given_back_when_somebody_stops_it() {
    let mut machine = machine();
    machine.step(prompt("go"));
    machine.step(prompt("later"));
    let effects = machine.step(TurnEvent::Interrupt);
    let Some(TurnEffect::End(ending)) = effects.last() else {
        panic!("{effects:?}");
    };
    assert_eq!(ending.unsaid.len(), 1);
    assert!(machine.is_idle());
}

#[test]
fn a_cut_after_a_call_runs_it_and_a_cut_after_words_goes_on() {
    let cut = || {
        let mut trouble = ApiError::new(ApiErrorKind::Cut, "gone");
        trouble.finished = 1;
        TurnEvent::Item(StreamItem::Cut(trouble))
    };
    let mut machine = machine();
    let done = play(&mut machine, vec![prompt("go"), call("a", "Read"), cut()]);
    assert_eq!(done[2], "reply:tool_use error run:a");
    let mut machine = self::machine();
    let done = play(&mut machine, vec![prompt("go"), text("so"), cut()]);
    assert_eq!(done[2], "reply:text error meta ask");
}

#[test]
fn failures_end_the_turn_and_leave_the_prompt() {
    let mut machine = machine();
    let failed = TurnEvent::Item(StreamItem::Failed(ApiError::new(
        ApiErrorKind::Status(401),
        "no",
    )));
    let done = play(&mut machine, vec![prompt("go"), failed, prompt("again")]);
    assert_eq!(done, ["prompt ask", "error end:Failed", "prompt ask"]);
}

#[test]
fn a_full_context_is_summed_up_before_the_next_question_and_no_more_than_twice() {
    let mut machine = machine();
    let compacted = || TurnEvent::Compacted {
        text: "so far".into(),
        before: 190_000,
        ms: 1,
        kept: None,
    };
    play(&mut machine, vec![prompt("go"), call("a", "Read")]);
    let done = play(
        &mut machine,
        vec![ended_with("tool_use", 190_000), ran("a"), compacted()],
    );
    assert_eq!(done[1..], ["+a compact:auto", "boundary summary meta ask"]);
    // However full it stays, it ends.
    let mut asked = 0;
    for at in 0..50 {
        let id = format!("x{at}");
        let mut effects = machine.step(call(&id, "Read"));
        effects.extend(machine.step(ended_with("tool_use", 199_000)));
        effects.extend(machine.step(ran(&id)));
        if short(&effects).contains("compact") {
            effects.extend(machine.step(compacted()));
            asked += 1;
        }
    }
    assert!(asked <= 1, "summed up {asked} times more");
}

#[test]
fn a_long_turn_is_summed_up_as_often_as_it_takes_as_long_as_that_helps() {
    let mut machine = machine();
    let mut summaries = 0;
    machine.step(prompt("go"));
    for at in 0..100 {
        let id = format!("x{at}");
        let tokens = if at % 10 == 9 { 190_000 } else { 20_000 };
        let mut effects = machine.step(call(&id, "Read"));
        effects.extend(machine.step(ended_with("tool_use", tokens)));
        effects.extend(machine.step(ran(&id)));
        if short(&effects).contains("compact") {
            summaries += 1;
            machine.step(TurnEvent::Compacted {
                text: "so far".into(),
                before: 190_000,
                ms: 1,
                kept: None,
            });
        }
    }
    assert_eq!(summaries, 10);
}

#[test]
fn the_summary_has_the_name_that_its_boundary_gives_it() {
    let mut machine = machine();
    machine.filled = 190_000;
    machine.step(prompt("more"));
    let tail = PreservedTail {
        anchor: "here".into(),
        uuids: vec!["a".into()],
    };
    let effects = machine.step(TurnEvent::Compacted {
        text: "so far".into(),
        before: 190_000,
        ms: 1,
        kept: Some((tail.clone(), 500)),
    });
    assert!(
        matches!(
            &effects[..2],
            [TurnEffect::Append(NewEntry::Boundary { kept: Some(kept), after, .. }), TurnEffect::Append(NewEntry::Summary { uuid: Some(uuid), .. })]
                if *kept == tail && *after > 500 && uuid == "here"
        ),
        "{effects:?}"
    );
}

#[test]
fn a_prompt_that_does_not_fit_any_more_comes_behind_the_summary() {
    let mut machine = machine();
    machine.filled = 190_000;
    assert_eq!(short(&machine.step(prompt("more"))), "compact:auto");
    let compacted = TurnEvent::Compacted {
        text: "so far".into(),
        before: 190_000,
        ms: 1,
        kept: None,
    };
    assert_eq!(
        short(&machine.step(compacted)),
        "boundary summary prompt ask"
    );
}

#[test]
fn too_long_for_the_api_is_summed_up_and_failing_at_that_ends_the_turn() {
    let too_long = || {
        TurnEvent::Item(StreamItem::Failed(ApiError::new(
            ApiErrorKind::Status(400),
            "prompt is too long: 2 > 1",
        )))
    };
    let mut machine = machine();
    let done = play(
        &mut machine,
        vec![
            prompt("go"),
            too_long(),
            TurnEvent::NotCompacted("no".into()),
        ],
    );
    assert_eq!(done[1..], ["compact:auto", "error end:NotCompacted"]);
}

#[test]
fn the_model_is_asked_no_more_often_than_it_may_be() {
    let mut machine = machine();
    machine.limits.turns = Some(1);
    let done = play(
        &mut machine,
        vec![prompt("go"), call("a", "Read"), ended("tool_use"), ran("a")],
    );
    assert_eq!(done[3], "+a end:MaxTurns");
    let mut machine = self::machine();
    let mut done = play(
        &mut machine,
        vec![prompt("go"), call("a", "Read"), ended("tool_use")],
    );
    machine.spent = true;
    done.extend(play(&mut machine, vec![ran("a")]));
    assert_eq!(done[3], "+a end:Budget");
}

#[test]
fn a_hook_can_keep_it_going() {
    let mut machine = machine();
    let done = play(
        &mut machine,
        vec![
            prompt("go"),
            text("done"),
            ended("end_turn"),
            TurnEvent::MayStop(Some(TurnContinueReason::Hook("tests fail".into()))),
        ],
    );
    assert_eq!(done[3], "meta ask");
}

#[test]
fn empty_words_are_not_written() {
    let mut machine = machine();
    let done = play(
        &mut machine,
        vec![prompt("go"), text(" \n"), ended("end_turn")],
    );
    assert_eq!(done[2], "closing");
}

/// Whatever happens in whatever order, each call gets one result, behind it, before the next
/// question, and the model is never asked while calls are open.
#[test]
fn every_order_of_events_leaves_a_conversation_that_can_be_sent() {
    let mut seed = 7_u64;
    let mut chance = move |most: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % most
    };
    for _ in 0..3_000 {
        let mut machine = machine();
        let mut open: Vec<String> = Vec::new();
        let mut answered = std::collections::HashSet::new();
        let mut running: Vec<String> = Vec::new();
        let mut next = 0;
        for _ in 0..40 {
            let event = match chance(14) {
                0 => prompt("x"),
                1 => text("words"),
                2 | 3 => {
                    next += 1;
                    call(
                        &format!("t{next}"),
                        if chance(2) == 0 { "Read" } else { "Write" },
                    )
                }
                4 | 5 => ended("tool_use"),
                6 => ended("end_turn"),
                7 => ended("max_tokens"),
                8 => TurnEvent::Interrupt,
                9 => TurnEvent::Deadline,
                10 => TurnEvent::MayStop(None),
                11 => TurnEvent::Item(StreamItem::Cut(ApiError::new(ApiErrorKind::Cut, ""))),
                12 => TurnEvent::Item(StreamItem::Retry {
                    trouble: ApiError::new(ApiErrorKind::Cut, ""),
                    tries: 1,
                    most: 10,
                    wait: Duration::ZERO,
                }),
                _ => match running.pop() {
                    Some(id) => ran(&id),
                    None => TurnEvent::Item(StreamItem::Failed(ApiError::new(
                        ApiErrorKind::Connect,
                        "",
                    ))),
                },
            };
            for effect in machine.step(event) {
                match effect {
                    TurnEffect::Append(NewEntry::Reply(reply))
                        if reply.block["type"] == "tool_use" =>
                    {
                        open.push(reply.block["id"].as_str().unwrap_or_default().to_owned());
                    }
                    TurnEffect::Append(NewEntry::Result { call, .. }) => {
                        assert!(answered.insert(call.clone()), "{call} twice");
                        open.retain(|id| *id != call);
                    }
                    TurnEffect::Append(
                        NewEntry::Prompt { .. }
                        | NewEntry::Meta { .. }
                        | NewEntry::Interrupt { .. },
                    )
                    | TurnEffect::Ask
                    | TurnEffect::End(_) => {
                        assert!(open.is_empty(), "{open:?} without results");
                    }
                    TurnEffect::Run(call) => {
                        assert!(open.contains(&call.id), "run before it was written");
                        running.push(call.id);
                    }
                    TurnEffect::Hush | TurnEffect::StopCalls => {}
                    _ => {}
                }
            }
        }
    }
}
