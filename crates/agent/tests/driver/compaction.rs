//! Summaries: what they leave standing, and that there is always a way to one.

use serde_json::json;
use unspool_agent::driver::SessionCommand;
use unspool_agent::state_machine::TurnEndReason;
use unspool_testkit::model::{Answer as Said, Model, Step, call};

use crate::desk::Desk;
use unspool_testkit::wait::LONG;

fn sent(model: &Model, at: usize) -> String {
    model.requests()[at].body["messages"].to_string()
}

#[test]
fn a_turn_that_fills_the_context_goes_on_behind_its_last_calls() {
    let glob = call("toolu_1", "Glob", json!({"pattern": "*"}));
    let model = Model::playing(vec![
        Said::text("hello"),
        Said::counted(&[glob], 190_000),
        Said::text("ALL IN SHORT"),
        Said::text("done with it"),
    ])
    .unwrap();
    let desk = Desk::new(&model);
    desk.say("old words");
    desk.ended();
    desk.say("look around");
    assert_eq!(desk.ended().text, "done with it");
    let last = sent(&model, 3);
    let place = |words: &str| {
        last.find(words)
            .unwrap_or_else(|| panic!("{words}: {last}"))
    };
    assert!(place("ALL IN SHORT") < place("\"tool_use\""));
    assert!(place("\"tool_use\"") < place("\"tool_result\""));
    assert!(!last.contains("old words"), "{last}");
    assert_eq!(model.refusals(), [""; 0]);
}

#[test]
fn a_kept_reply_does_not_make_the_next_prompt_wait_for_another_summary() {
    let model = Model::playing(vec![
        Said::counted(&[json!({"type": "text", "text": "hello"})], 190_000),
        Said::text("ALL IN SHORT"),
        Said::text("on"),
    ])
    .unwrap();
    let desk = Desk::new(&model);
    desk.say("old words");
    desk.ended();
    desk.say("new words");
    assert_eq!(desk.ended().text, "on");
    assert_eq!(model.requests().len(), 3);
    assert!(sent(&model, 2).contains("hello"));
    let path = desk.folder.path().join("config/session.jsonl");
    let face = unspool_agent::transcript_writer::SharedLineFields {
        session: "5e551000-0000-4000-8000-000000000009".into(),
        version: "unspool-test".into(),
        entrypoint: "cli".into(),
        slug: None,
        agent: None,
    };
    let record = unspool_agent::transcript_writer::TranscriptWriter::resume(
        &path,
        face,
        desk.folder.path(),
        false,
    )
    .unwrap();
    assert!(record.filled() < 10_000, "{}", record.filled());
    assert_eq!(model.refusals(), [""; 0]);
}

#[test]
fn a_conversation_that_the_api_refuses_is_gone_on_with_from_a_summary() {
    // A rule that nobody knows of: no calls of Glob.
    let model = Model::start(|at, request| {
        if request.body["messages"].to_string().contains("toolu_bad") {
            return Said::fails(
                "400 Bad Request",
                "invalid_request_error",
                "messages.1: a rule that is new",
            );
        }
        match at {
            0 => Said::blocks(&[call("toolu_bad", "Glob", json!({"pattern": "*"}))]),
            _ => Said::text(&format!("answer {at}")),
        }
    })
    .unwrap();
    let desk = Desk::new(&model);
    desk.say("look around");
    let TurnEndReason::Failed(trouble) = desk.ended().why else {
        panic!("it cannot work");
    };
    assert!(trouble.message.contains("a rule that is new"));
    desk.say("again");
    assert!(matches!(desk.ended().why, TurnEndReason::Failed(_)));
    // As a script would ask for it.
    desk.say("/compact");
    assert_eq!(desk.ended().why, TurnEndReason::Compacted);
    desk.say("and now");
    assert_eq!(desk.ended().why, TurnEndReason::Done);
    assert_eq!(model.refusals(), [""; 0]);
}

#[test]
fn a_summary_that_is_stopped_changes_nothing() {
    let model = Model::playing(vec![
        Said::text("hello"),
        Said::text("ALL IN SHORT").before(3, Step::Gate("never")),
        Said::text("on"),
    ])
    .unwrap();
    let desk = Desk::new(&model);
    desk.say("old words");
    desk.ended();
    desk.handle.send(SessionCommand::Compact { words: None });
    assert!(model.reached("never", LONG));
    desk.handle.send(SessionCommand::Interrupt);
    assert_eq!(desk.ended().why, TurnEndReason::Interrupted);
    desk.say("new words");
    assert_eq!(desk.ended().text, "on");
    let sent = sent(&model, 2);
    assert!(
        sent.contains("old words") && !sent.contains("SHORT"),
        "{sent}"
    );
    assert_eq!(model.refusals(), [""; 0]);
}

#[test]
fn tokens_are_counted_before_a_summary_that_only_a_guess_asks_for() {
    let model = Model::playing(vec![
        Said::counted(&[json!({"type": "text", "text": "hello"})], 190_000),
        Said::text("on"),
    ])
    .unwrap();
    model.counts(20_000);
    let desk = Desk::new(&model);
    desk.say("old words");
    desk.ended();
    desk.say("new words");
    assert_eq!(desk.ended().text, "on");
    assert_eq!(model.counted(), 1);
    assert!(sent(&model, 1).contains("old words"));
}
