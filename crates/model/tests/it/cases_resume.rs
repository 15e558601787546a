//! What a client would send: the second and third documents' recipes, corrected.

use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::messages::{self, ResumeResult};

use crate::make::{Read, call, read, reply, result, system, text, user};

/// The messages the newest client would send: role, then each block's `type`.
fn sent(read: &Read) -> Vec<String> {
    sent_by(read, ClientProfile::client("2.1.325"))
}

fn sent_by(read: &Read, profile: ClientProfile) -> Vec<String> {
    let ResumeResult::Messages(all) = messages::messages(&read.session, &read.log, profile) else {
        panic!("no conversation")
    };
    let kind = |json: &str| {
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        let kind = value["type"].as_str().unwrap().to_owned();
        match value["text"].as_str() {
            // 2.1.325 parts neighbouring texts by a line end.
            Some(text) => format!("{kind}={}", text.trim_end()),
            None => kind,
        }
    };
    all.iter()
        .map(|message| {
            let blocks: Vec<_> = message
                .content
                .iter()
                .map(|piece| kind(&piece.json))
                .collect();
            format!("{}: {}", message.role.name(), blocks.join(" "))
        })
        .collect()
}

fn says(uuid: &str, parent: &str, clock: &str, words: &str) -> String {
    reply(uuid, parent, clock, uuid, &format!("[{}]", text(words)))
}

#[test]
fn the_lines_of_one_message_travel_as_one() {
    let read = read(&[
        user("a", "", "10:00:00", r#""go""#),
        reply("b", "a", "10:00:01", "m", &format!("[{}]", text("look"))),
        reply(
            "c",
            "b",
            "10:00:02",
            "m",
            &format!("[{}]", call("t1", "Read", "{}")),
        ),
        user("d", "c", "10:00:03", &result("t1", r#""x""#)),
        says("e", "d", "10:00:04", "done"),
    ]);
    assert_eq!(
        sent(&read),
        [
            "user: text=go",
            "assistant: text=look tool_use",
            "user: tool_result",
            "assistant: text=done"
        ]
    );
}

#[test]
fn skill_bodies_are_sent_though_they_open_no_turn() {
    let meta = user(
        "b",
        "a",
        "10:00:01",
        r#"[{"type":"text","text":"skill body"}]"#,
    )
    .replacen('{', "{\"isMeta\":true,", 1);
    let read = read(&[
        user("a", "", "10:00:00", r#""fix it""#),
        meta,
        says("c", "b", "10:00:02", "done"),
    ]);
    assert_eq!(
        sent(&read),
        ["user: text=fix it text=skill body", "assistant: text=done"]
    );
}

#[test]
fn a_summary_line_resets_nothing() {
    let read = read(&[
        user("a", "", "10:00:00", r#""go""#),
        says("b", "a", "10:00:01", "done"),
        r#"{"type":"summary","summary":"S","leafUuid":"b"}"#.to_owned(),
    ]);
    assert_eq!(sent(&read), ["user: text=go", "assistant: text=done"]);
}

#[test]
fn a_compaction_sends_its_summary_and_what_follows() {
    let boundary = system(
        "c",
        "",
        "10:00:02",
        "compact_boundary",
        r#","logicalParentUuid":"b","compactMetadata":{"trigger":"auto","preTokens":9}"#,
    );
    let summary = user("d", "c", "10:00:03", r#""So far: all well""#).replacen(
        '{',
        "{\"isCompactSummary\":true,",
        1,
    );
    let read = read(&[
        user("a", "", "10:00:00", r#""long ago""#),
        says("b", "a", "10:00:01", "long story"),
        boundary,
        summary,
        says("e", "d", "10:00:04", "going on"),
    ]);
    assert_eq!(
        sent(&read),
        ["user: text=So far: all well", "assistant: text=going on"]
    );
}

#[test]
fn parallel_results_travel_together_and_only_2_1_45_loses_one() {
    let read = read(&[
        user("p", "", "10:00:00", r#""go""#),
        reply(
            "a",
            "p",
            "10:00:01",
            "m",
            &format!("[{}]", call("t1", "Read", "{}")),
        ),
        reply(
            "b",
            "a",
            "10:00:02",
            "m",
            &format!("[{}]", call("t2", "Read", r#"{"x":1}"#)),
        ),
        user("ra", "a", "10:00:03", &result("t1", r#""1""#)),
        user("rb", "b", "10:00:04", &result("t2", r#""2""#)),
        says("c", "rb", "10:00:05", "done"),
    ]);
    let whole = [
        "user: text=go",
        "assistant: tool_use tool_use",
        "user: tool_result tool_result",
        "assistant: text=done",
    ];
    assert_eq!(sent(&read), whole);
    assert_eq!(sent_by(&read, ClientProfile::Strict), whole);
    let lossy = sent_by(&read, ClientProfile::client("2.1.45")).join("\n");
    assert_eq!(lossy.matches("tool_result").count(), 1);
}

#[test]
fn a_rewound_branch_is_not_sent() {
    let read = read(&[
        user("a", "", "10:00:00", r#""one""#),
        says("b", "a", "10:00:01", "1"),
        user("c", "b", "10:00:02", r#""wrong""#),
        says("d", "c", "10:00:03", "2"),
        user("e", "b", "10:00:04", r#""right""#),
        says("f", "e", "10:00:05", "3"),
    ]);
    let sent = sent(&read).join(" ");
    assert!(sent.contains("right") && !sent.contains("wrong"));
}

#[test]
fn sub_agents_in_the_file_are_not_sent() {
    let side = |line: String| line.replace("\"isSidechain\":false", "\"isSidechain\":true");
    let read = read(&[
        user("a", "", "10:00:00", r#""go""#),
        side(user("s", "", "10:00:01", r#""sub""#)),
        side(says("s2", "s", "10:00:02", "sub reply")),
        says("b", "a", "10:00:03", "done"),
    ]);
    assert_eq!(sent(&read), ["user: text=go", "assistant: text=done"]);
}

#[test]
fn an_api_error_is_not_sent_but_a_reply_marked_as_one_is() {
    let marked = says("b", "a", "10:00:01", "API Error: 500").replacen(
        '{',
        "{\"isApiErrorMessage\":true,",
        1,
    );
    let failed = marked.replace("claude-opus-4-5", "<synthetic>");
    assert_ne!(failed, marked);
    let sends = |line: String| {
        let read = read(&[
            user("a", "", "10:00:00", r#""go""#),
            line,
            user("c", "b", "10:00:02", r#""again""#),
            says("d", "c", "10:00:03", "done"),
        ]);
        sent(&read).join(" ").contains("API Error")
    };
    assert!(!sends(failed));
    assert!(sends(marked));
}

#[test]
fn messages_of_other_shapes_are_read_by_our_own_rules() {
    let read = read(&[
        r#"{"sessionId":"sess1","type":"user","content":"read a file"}"#,
        r#"{"message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"path":"/"}}]}}"#,
        r#"{"type":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"file data"}]}"#,
        r#"{"message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"done"}]}}"#,
    ]);
    assert_eq!(
        sent_by(&read, ClientProfile::Strict),
        [
            "user: text=read a file",
            "assistant: tool_use",
            "user: tool_result",
            "assistant: text=done"
        ]
    );
}

#[test]
fn the_plan_of_a_call_is_hidden_by_2_1_45_and_2_1_100_alone() {
    let plan = call("t", "ExitPlanMode", r#"{"plan":"the way"}"#);
    let read = read(&[
        user("a", "", "10:00:00", r#""go""#),
        reply("b", "a", "10:00:01", "m", &format!("[{plan}]")),
        user("c", "b", "10:00:02", &result("t", r#""ok""#)),
        says("d", "c", "10:00:03", "done"),
    ]);
    let tells = |profile: ClientProfile| match messages::messages(&read.session, &read.log, profile)
    {
        ResumeResult::Messages(all) => messages::to_json(&all).contains("the way"),
        _ => panic!("no conversation"),
    };
    let profiles = [
        ClientProfile::client("2.0.50"),
        ClientProfile::client("2.1.45"),
        ClientProfile::client("2.1.100"),
        ClientProfile::client("2.1.200"),
        ClientProfile::client("2.1.325"),
    ];
    assert_eq!(profiles.map(tells), [true, false, false, true, true]);
}
