//! Rules about what is repaired before it is sent (`docs/rules.md`).

use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::messages::{self, ResumeResult};
use unspool_testkit::validator;

use crate::make::{call, read, reply, result, text, user};

/// What our own rules make of the lines, as JSON; the validator has seen it.
fn sent(lines: &[String]) -> String {
    let read = read(lines);
    let ResumeResult::Messages(all) =
        messages::messages(&read.session, &read.log, ClientProfile::Strict)
    else {
        panic!("no conversation")
    };
    let json = messages::to_json(&all);
    assert_eq!(
        validator::refusals_with_prompt(&json, "go on"),
        [""; 0],
        "{json}"
    );
    json
}

fn go() -> String {
    user("a", "", "10:00:00", "\"go\"")
}

#[test]
fn a_call_without_result_gets_one_that_says_so() {
    let calls = reply(
        "b",
        "a",
        "10:00:01",
        "m",
        &format!("[{}]", call("t1", "Read", "{}")),
    );
    let said = sent(&[go(), calls, user("c", "b", "10:00:02", "\"and\"")]);
    assert!(
        said.contains("\"tool_use_id\":\"t1\"") && said.contains("\"is_error\":true"),
        "{said}"
    );
}

#[test]
fn a_result_without_call_is_not_sent_as_a_result() {
    let said = sent(&[go(), user("c", "a", "10:00:02", &result("t9", "\"x\""))]);
    assert!(!said.contains("tool_result"), "{said}");
}

#[test]
fn an_empty_text_is_not_sent() {
    let said = sent(&[
        go(),
        reply(
            "b",
            "a",
            "10:00:01",
            "m",
            &format!("[{},{}]", text(""), text("yes")),
        ),
    ]);
    assert!(
        said.contains("yes") && !said.contains("\"text\":\"\""),
        "{said}"
    );
}

#[test]
fn half_a_surrogate_pair_is_not_sent() {
    let said = sent(&[user("a", "", "10:00:00", r#""go \ud83d!""#)]);
    assert!(
        said.contains('\u{fffd}') || said.contains("\\ufffd"),
        "{said}"
    );
}

#[test]
fn a_message_of_thinking_alone_is_not_sent() {
    let thinking = r#"[{"type":"thinking","thinking":"hm","signature":"c2ln"}]"#;
    let said = sent(&[
        go(),
        reply("b", "a", "10:00:01", "m", thinking),
        user("c", "b", "10:00:02", "\"and\""),
    ]);
    assert!(!said.contains("thinking"), "{said}");
}

#[test]
fn thinking_of_the_latest_reply_is_sent_as_it_was_written() {
    let thinking = r#"{"type":"thinking","thinking":"hm","signature":"c2ln"}"#;
    let said = sent(&[
        go(),
        reply(
            "b",
            "a",
            "10:00:01",
            "m",
            &format!("[{thinking},{}]", text("yes")),
        ),
    ]);
    assert!(said.contains(thinking), "{said}");
}

#[test]
fn what_the_client_wrote_for_the_model_is_sent() {
    let meta = user("b", "a", "10:00:01", "\"a skill\"").replace(
        "\"isSidechain\":false",
        "\"isSidechain\":false,\"isMeta\":true",
    );
    let said = sent(&[go(), meta]);
    assert!(said.contains("a skill"), "{said}");
}

#[test]
fn results_of_one_message_travel_together_and_first() {
    let calls = format!(
        "[{},{}]",
        call("t1", "Read", "{}"),
        call("t2", "Read", "{}")
    );
    let said = sent(&[
        go(),
        reply("b", "a", "10:00:01", "m", &calls),
        user("c", "b", "10:00:02", &result("t1", "\"one\"")),
        user("d", "c", "10:00:03", "\"meanwhile\""),
        user("e", "d", "10:00:04", &result("t2", "\"two\"")),
    ]);
    let places = ["\"one\"", "\"two\"", "meanwhile"].map(|word| said.find(word).unwrap());
    assert!(places.is_sorted(), "{said}");
}
