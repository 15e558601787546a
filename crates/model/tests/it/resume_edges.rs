//! Rules that change in versions that lie close together, each seen with the clients on both
//! sides (`docs/conformance.md`).

use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::messages::{self, ResumeResult};

use crate::make::{call, read, reply, result, text, user};
use crate::resume_rules::{
    CLIENTS, V2_0_50, V2_1_45, V2_1_200, V2_1_325, answers, asks, calls, expect, says, sent,
};

#[test]
fn a_line_without_content_breaks_clients_until_2_1_274() {
    let lines = [
        asks("a", "", "10:00:00"),
        user("b", "a", "10:00:01", "null"),
        says("c", "b", "10:00:02"),
    ];
    expect(&lines, &CLIENTS[..4], "none");
    for profile in [ClientProfile::client("2.1.275"), V2_1_325] {
        assert!(sent(&lines, profile).ends_with("a: c"));
    }
}

#[test]
fn a_text_before_a_result_stays_there_from_2_1_30_on() {
    let blocks = result("t", "\"x\"").replacen('[', &format!("[{},", text("c")), 1);
    let lines = [
        asks("a", "", "10:00:00"),
        calls("b", "a", "10:00:01", "m", "t"),
        user("c", "b", "10:00:02", &blocks),
        says("d", "c", "10:00:03"),
    ];
    let older = ClientProfile::client("2.1.21");
    expect(&lines, &[V2_0_50, older], "u: a | a: t? | u: t=x, c | a: d");
    expect(
        &lines,
        &[ClientProfile::client("2.1.33"), V2_1_45],
        "u: a | a: t? | u: c, t=x | a: d",
    );
}

#[test]
fn a_call_beside_one_that_was_answered_gets_a_result_earlier_than_one_alone() {
    let lines = [
        asks("a", "", "10:00:00"),
        calls("b", "a", "10:00:01", "m", "t"),
        calls("c", "b", "10:00:02", "m", "s"),
        answers("d", "b", "10:00:03", "t"),
    ];
    expect(&lines, &[V2_1_200], "u: a | a: t? | u: t=x");
    let stopped = "u: a | a: t?, s? | u: t=x, s=[Request interrupted by user for tool use]";
    expect(&lines, &[ClientProfile::client("2.1.267")], stopped);
    let newest = sent(&lines, V2_1_325);
    assert!(newest.contains("s=[Tool call interrupted"), "{newest}");
}

#[test]
fn what_is_left_of_a_plan_keeps_its_order() {
    let input = r#"{"plan":"P","planFilePath":"/x.md","allowedPrompts":[]}"#;
    let plan = format!("[{}]", call("t", "ExitPlanMode", input));
    let lines = [
        asks("a", "", "10:00:00"),
        reply("b", "a", "10:00:01", "m", &plan),
        answers("c", "b", "10:00:02", "t"),
        says("d", "c", "10:00:03"),
    ];
    let read = read(&lines);
    let ResumeResult::Messages(all) = messages::messages(&read.session, &read.log, V2_1_45) else {
        panic!("there is a conversation");
    };
    let json = messages::to_json(&all);
    assert!(
        json.contains(r#"{"planFilePath":"/x.md","allowedPrompts":[]}"#),
        "{json}"
    );
}

#[test]
fn a_found_tool_of_a_server_is_taken_out_by_the_newest_client_too() {
    let found = r#"[{"type":"tool_reference","tool_name":"mcp__x__y"}]"#;
    let both = found.replace('[', r#"[{"type":"tool_reference","tool_name":"CronList"},"#);
    let sent = |found: &str| {
        let lines = [
            asks("a", "", "10:00:00"),
            calls("b", "a", "10:00:01", "m", "t"),
            user("c", "b", "10:00:02", &result("t", found)),
            says("d", "c", "10:00:03"),
        ];
        let read = read(&lines);
        match messages::messages(&read.session, &read.log, V2_1_325) {
            ResumeResult::Messages(all) => messages::to_json(&all),
            _ => String::new(),
        }
    };
    let only = sent(found);
    assert!(only.contains("[Tool references removed"), "{only}");
    assert!(!only.contains("Tool loaded."), "{only}");
    let beside = sent(&both);
    assert!(
        beside.contains("CronList") && !beside.contains("mcp__"),
        "{beside}"
    );
    assert!(beside.contains("Tool loaded."), "{beside}");
}

#[test]
fn thinking_and_blank_text_on_one_line_are_as_if_the_line_were_not_there() {
    let thinking = r#"[{"type":"thinking","thinking":"hm","signature":"s"},"#;
    let blocks = format!("{thinking}{}]", text(" "));
    let lines = [
        asks("a", "", "10:00:00"),
        reply("b", "a", "10:00:01", "m", &blocks),
        asks("d", "b", "10:00:03"),
        says("e", "d", "10:00:04"),
    ];
    for version in ["2.1.33", "2.1.200", "2.1.250"] {
        let client = ClientProfile::client(version);
        expect(&lines, &[client], "u: a | a: (hm),   | u: d | a: e");
    }
    expect(
        &lines,
        &[ClientProfile::client("2.1.267"), V2_1_325],
        "u: a\n, d | a: e",
    );
}
