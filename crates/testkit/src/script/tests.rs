//! What the notation promises.

use serde_json::{Value, json};

use super::{jsonl, lines, uuid};

/// The lines of a script as values.
fn values(script: &str) -> Vec<Value> {
    lines(script)
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// `n < m` per line: the number of the line and of its parent.
fn links(script: &str) -> Vec<String> {
    let number = |value: &Value| {
        value.as_str().map_or("-".to_owned(), |text| {
            text[24..].trim_start_matches('0').into()
        })
    };
    values(script)
        .iter()
        .map(|line| {
            format!(
                "{} < {}",
                number(&line["uuid"]),
                number(&line["parentUuid"])
            )
        })
        .collect()
}

const PARALLEL: &str = "
    you:    fix it
    claude: looking [Read a.rs] [Read b.rs]
    result: Read b.rs missing!
    result: Read a.rs ok
    claude: done
";

#[test]
fn each_block_of_a_message_is_a_line_of_its_own() {
    let lines = values(PARALLEL);
    let blocks: Vec<&Value> = lines[1..4]
        .iter()
        .map(|line| &line["message"]["content"][0]["type"])
        .collect();
    assert_eq!(blocks, ["text", "tool_use", "tool_use"]);
    assert!(
        lines[1..4]
            .iter()
            .all(|line| line["message"]["id"] == "msg_0001")
    );
    assert_eq!(lines[6]["message"]["id"], "msg_0002");
}

#[test]
fn parallel_results_hang_on_their_own_calls() {
    assert_eq!(
        links(PARALLEL),
        [
            "1 < -", "2 < 1", "3 < 2", "4 < 3", "5 < 4", "6 < 3", "7 < 6"
        ]
    );
}

#[test]
fn older_clients_chain_parallel_results() {
    let script = format!("(version=2.0.76)\n{PARALLEL}");
    assert_eq!(
        links(&script),
        [
            "1 < -", "2 < 1", "3 < 2", "4 < 3", "5 < 4", "6 < 5", "7 < 6"
        ]
    );
}

#[test]
fn a_result_names_its_call_and_a_bang_makes_it_an_error() {
    let lines = values(PARALLEL);
    let block = |n: usize| lines[n]["message"]["content"][0].clone();
    assert_eq!(
        block(4),
        json!({"tool_use_id": "toolu_0002", "type": "tool_result", "content": "missing", "is_error": true})
    );
    assert_eq!(
        block(5),
        json!({"tool_use_id": "toolu_0001", "type": "tool_result", "content": "ok"})
    );
    assert_eq!(lines[4]["toolUseResult"], "Error: missing");
}

#[test]
fn thinking_opens_the_message_that_follows() {
    let lines = values("you: hi\nthink: hm\nclaude: hello\nclaude: again");
    let ids: Vec<&Value> = lines[1..]
        .iter()
        .map(|line| &line["message"]["id"])
        .collect();
    assert_eq!(ids, ["msg_0001", "msg_0001", "msg_0002"]);
}

#[test]
fn times_rise_and_may_be_set() {
    let lines = values("you: a\n(at=+5m) you: b\n(at=2027-01-01T00:00:00.000Z) you: c");
    let times: Vec<&Value> = lines.iter().map(|line| &line["timestamp"]).collect();
    assert_eq!(
        times,
        [
            "2026-01-05T10:00:00.000Z",
            "2026-01-05T10:05:00.000Z",
            "2027-01-01T00:00:00.000Z"
        ]
    );
}

#[test]
fn a_named_line_can_be_a_parent_again() {
    let script = "(name=fork) you: a\nclaude: b\n(parent=fork) you: c\n(parent=null) you: d";
    assert_eq!(links(script), ["1 < -", "2 < 1", "3 < 1", "4 < -"]);
}

#[test]
fn compaction_starts_a_new_root_and_may_keep_lines() {
    let lines =
        values("you: a\nclaude: b\n(keep=2) compact: 30000 -> 5000\nsummary: so far\nyou: c");
    assert_eq!(lines[2]["parentUuid"], Value::Null);
    assert_eq!(lines[2]["logicalParentUuid"], uuid(2));
    let metadata = &lines[2]["compactMetadata"];
    assert_eq!(
        (&metadata["preTokens"], &metadata["postTokens"]),
        (&json!(30000), &json!(5000))
    );
    assert_eq!(
        metadata["preservedMessages"]["uuids"],
        json!([uuid(1), uuid(2)])
    );
    assert_eq!(metadata["preservedSegment"]["anchorUuid"], lines[3]["uuid"]);
    assert_eq!(lines[3]["isCompactSummary"], true);
    assert_eq!(lines[3]["parentUuid"], uuid(3));
}

#[test]
fn an_agent_has_a_chain_of_its_own() {
    let script = "you: a\nagent a1: look\n(agent=a1) claude: found\nclaude: b";
    assert_eq!(links(script), ["1 < -", "2 < -", "3 < 2", "4 < 1"]);
    let lines = values(script);
    assert_eq!(
        (&lines[2]["isSidechain"], &lines[2]["agentId"]),
        (&json!(true), &json!("a1"))
    );
}

#[test]
fn prompts_typed_meanwhile_follow_the_version() {
    assert_eq!(values("queued: and this").len(), 2);
    let lines = values("(version=2.1.325) queued: and this");
    assert_eq!(lines[1]["attachment"]["prompt"], "and this");
}

#[test]
fn titles_have_no_uuid() {
    assert_eq!(
        values("title: Mine")[0],
        json!({"type": "custom-title", "customTitle": "Mine", "sessionId": super::SESSION})
    );
}

#[test]
fn usage_and_other_fields_can_be_given() {
    let lines = values("(usage=1/2/3/4/5, slug=a-b, isMeta=true) claude: x");
    assert_eq!(
        lines[0]["message"]["usage"]["cache_creation_input_tokens"],
        9
    );
    assert_eq!(
        (&lines[0]["slug"], &lines[0]["isMeta"]),
        (&json!("a-b"), &json!(true))
    );
}

#[test]
fn human_acts_have_the_marks_of_the_client() {
    let lines = values("command: /model opus\nshell: ls\ninterrupt:\ninterrupt: tool\nmeta: note");
    let content = |n: usize| lines[n]["message"]["content"].clone();
    assert!(
        content(0)
            .as_str()
            .unwrap()
            .starts_with("<command-name>/model</command-name>")
    );
    assert_eq!(content(1), "<bash-input>ls</bash-input>");
    assert_eq!(content(2)[0]["text"], "[Request interrupted by user]");
    assert_eq!(
        content(3)[0]["text"],
        "[Request interrupted by user for tool use]"
    );
    assert_eq!(lines[4]["isMeta"], true);
}

#[test]
fn raw_lines_are_verbatim_and_torn_ones_end_the_file() {
    assert_eq!(
        jsonl("raw: {\"a\": 1e3}\ntorn: {\"b\""),
        b"{\"a\": 1e3}\n{\"b\""
    );
    assert_eq!(jsonl("raw: {}"), b"{}\n");
}

#[test]
#[should_panic(expected = "unknown kind `yuo`")]
fn a_mistyped_kind_is_an_error() {
    lines("yuo: hi");
}
