//! One test per rule by which clients read a file, for the clients that differ in it.
//!
//! What is expected was seen with the real clients (`docs/conformance.md`).

use unspool_model::view::client_profile::ClientProfile::{self, Strict};
use unspool_model::view::messages::{self, ApiMessage, ResumeResult};

use crate::make::{call, read, reply, result, system, text, user};

pub(crate) const V2_0_50: ClientProfile = ClientProfile::client("2.0.50");
pub(crate) const V2_1_45: ClientProfile = ClientProfile::client("2.1.45");
const V2_1_100: ClientProfile = ClientProfile::client("2.1.100");
pub(crate) const V2_1_200: ClientProfile = ClientProfile::client("2.1.200");
pub(crate) const V2_1_325: ClientProfile = ClientProfile::client("2.1.325");
pub(crate) const CLIENTS: [ClientProfile; 5] = [V2_0_50, V2_1_45, V2_1_100, V2_1_200, V2_1_325];

fn word(json: &str) -> String {
    let block: serde_json::Value = serde_json::from_str(json).unwrap();
    let field = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
    match field("type").as_str() {
        "text" => field("text"),
        "thinking" => format!("({})", field("thinking")),
        "tool_use" => format!("{}?", field("id")),
        "tool_result" => format!("{}={}", field("tool_use_id"), field("content")),
        other => other.to_owned(),
    }
}

fn line(message: &ApiMessage) -> String {
    let words: Vec<String> = message.content.iter().map(|b| word(&b.json)).collect();
    format!("{}: {}", &message.role.name()[..1], words.join(", "))
}

/// What the client would send: `u: go` for a prompt, `a: t?` for a call, `u: t=x` for its result.
pub(crate) fn sent(lines: &[String], profile: ClientProfile) -> String {
    let read = read(lines);
    match messages::messages(&read.session, &read.log, profile) {
        ResumeResult::Messages(all) => all.iter().map(line).collect::<Vec<_>>().join(" | "),
        ResumeResult::NoConversation => "none".to_owned(),
        ResumeResult::Hangs => "hangs".to_owned(),
    }
}

#[track_caller]
pub(crate) fn expect(lines: &[String], profiles: &[ClientProfile], expected: &str) {
    for &profile in profiles {
        assert_eq!(sent(lines, profile), expected, "{}", profile.name());
    }
}

pub(crate) fn asks(uuid: &str, parent: &str, clock: &str) -> String {
    user(uuid, parent, clock, &format!("\"{uuid}\""))
}

pub(crate) fn says(uuid: &str, parent: &str, clock: &str) -> String {
    reply(uuid, parent, clock, uuid, &format!("[{}]", text(uuid)))
}

pub(crate) fn calls(uuid: &str, parent: &str, clock: &str, message: &str, id: &str) -> String {
    reply(
        uuid,
        parent,
        clock,
        message,
        &format!("[{}]", call(id, "Read", "{}")),
    )
}

pub(crate) fn answers(uuid: &str, parent: &str, clock: &str, id: &str) -> String {
    user(uuid, parent, clock, &result(id, "\"x\""))
}

fn thinks(uuid: &str, parent: &str, clock: &str, message: &str) -> String {
    let thinking = r#"[{"type":"thinking","thinking":"hm","signature":"s"}]"#;
    reply(uuid, parent, clock, message, thinking)
}

fn without(line: &str, field: &str) -> String {
    let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
    value.as_object_mut().unwrap().remove(field);
    value.to_string()
}

fn last_prompt(leaf: &str) -> String {
    format!(r#"{{"type":"last-prompt","lastPrompt":"p","leafUuid":"{leaf}","sessionId":"s"}}"#)
}

#[test]
fn older_clients_go_on_from_the_newest_line_and_newer_ones_from_the_last() {
    let lines = [
        asks("a", "", "10:00:00"),
        says("b", "a", "10:00:09"),
        says("c", "a", "10:00:01"),
    ];
    expect(&lines, &CLIENTS[..3], "u: a | a: b");
    expect(&lines, &CLIENTS[3..], "u: a | a: c");
}

#[test]
fn of_two_lines_of_one_time_older_clients_take_the_earlier() {
    let lines = [
        asks("a", "", "10:00:00"),
        says("b", "a", "10:00:01"),
        says("c", "a", "10:00:01"),
    ];
    expect(&lines, &CLIENTS[..3], "u: a | a: b");
    expect(&lines, &CLIENTS[3..], "u: a | a: c");
}

#[test]
fn the_newest_client_follows_the_last_line_down_to_its_newest_descendant() {
    let lines = [says("b", "a", "10:00:01"), asks("a", "", "10:00:00")];
    expect(&lines, &[V2_1_200], "u: a");
    expect(
        &lines,
        &[V2_0_50, V2_1_45, V2_1_100, V2_1_325],
        "u: a | a: b",
    );
}

#[test]
fn last_prompt_names_the_leaf_unless_the_last_line_descends_from_it() {
    let mut lines = vec![
        asks("a", "", "10:00:00"),
        says("b", "a", "10:00:01"),
        says("c", "a", "10:00:02"),
        last_prompt("b"),
    ];
    expect(&lines, &CLIENTS[..3], "u: a | a: c");
    expect(&lines, &CLIENTS[3..], "u: a | a: b");
    lines[3] = last_prompt("a");
    expect(&lines, &CLIENTS, "u: a | a: c");
    lines[3] = lines[3].replacen('{', r#"{"explicit":true,"#, 1);
    expect(&lines, &CLIENTS[3..], "u: a");
    lines[3] = last_prompt("nowhere");
    expect(&lines, &CLIENTS, "u: a | a: c");
}

#[test]
fn a_lost_parent_is_healed_within_five_seconds_and_not_beyond() {
    let lines = |clock| {
        [
            asks("a", "", "10:00:00"),
            says("b", "a", "10:00:01"),
            asks("c", "lost", clock),
            says("d", "c", "10:00:09"),
        ]
    };
    expect(&lines("10:00:06"), &CLIENTS[..2], "u: c | a: d");
    expect(
        &lines("10:00:06"),
        &CLIENTS[2..],
        "u: a | a: b | u: c | a: d",
    );
    expect(&lines("10:00:07"), &CLIENTS, "u: c | a: d");
    expect(&lines("10:00:07"), &[Strict], "u: a | a: b | u: c | a: d");
}

#[test]
fn a_null_parent_cuts_the_history_for_every_client() {
    let lines = [
        asks("a", "", "10:00:00"),
        says("b", "a", "10:00:01"),
        asks("c", "", "10:00:02"),
        says("d", "c", "10:00:03"),
    ];
    expect(&lines, &CLIENTS, "u: c | a: d");
}

#[test]
fn a_circle_hangs_stops_or_is_healed() {
    let lines = [
        asks("a", "", "10:00:00"),
        says("b", "a", "10:00:01"),
        asks("c", "d", "10:00:02"),
        says("d", "c", "10:00:03"),
    ];
    expect(&lines, &[V2_0_50], "hangs");
    expect(&lines, &[V2_1_45, V2_1_100], "u: c | a: d");
    expect(&lines, &[V2_1_200, V2_1_325], "u: a | a: b | u: c | a: d");
}

#[test]
fn a_line_of_unknown_type_is_a_lost_parent_and_progress_is_passed_through() {
    let strange = asks("b", "a", "10:00:01").replace("\"type\":\"user\"", "\"type\":\"strange\"");
    let progress = strange.replace("strange", "progress");
    let lines = |between| {
        [
            asks("a", "", "10:00:00"),
            between,
            says("c", "b", "10:00:20"),
        ]
    };
    expect(&lines(strange.clone()), &CLIENTS, "a: c");
    expect(&lines(strange), &[Strict], "u: a | a: c");
    expect(&lines(progress.clone()), &CLIENTS[..1], "a: c");
    expect(&lines(progress), &CLIENTS[1..], "u: a | a: c");
}

fn compacted(metadata: &str) -> Vec<String> {
    let rest =
        format!(r#","logicalParentUuid":"d","compactMetadata":{{"trigger":"auto"{metadata}}}"#);
    vec![
        asks("a", "", "10:00:00"),
        says("b", "a", "10:00:01"),
        asks("c", "b", "10:00:02"),
        says("d", "c", "10:00:03"),
        system("e", "", "10:00:04", "compact_boundary", &rest),
        asks("sum", "e", "10:00:05"),
        says("f", "sum", "10:00:06"),
    ]
}

#[test]
fn a_compaction_forgets_where_an_earlier_last_prompt_said_to_go_on() {
    let mut lines = compacted("");
    lines.insert(2, last_prompt("a"));
    expect(&lines, &CLIENTS, "u: sum | a: f");
    lines[2] = last_prompt("a").replacen('{', r#"{"explicit":true,"#, 1);
    expect(&lines, &CLIENTS, "u: sum | a: f");
    // One that comes later leads back behind it, although the line before the boundary was its
    // logical parent.
    let said = lines.remove(2).replace(r#""explicit":true,"#, "");
    lines.push(said.replace(r#""leafUuid":"a""#, r#""leafUuid":"d""#));
    expect(&lines, &[V2_1_200, V2_1_325], "u: a | a: b | u: c | a: d");
}

#[test]
fn the_tail_that_a_compaction_lists_comes_back() {
    let lines = compacted(r#","preservedMessages":{"anchorUuid":"sum","uuids":["c","d"]}"#);
    expect(&lines, &CLIENTS[..3], "u: sum | a: f");
    expect(&lines, &CLIENTS[3..], "u: sum\n, c | a: d | a: f");
}

#[test]
fn the_tail_between_the_named_ends_comes_back() {
    let lines =
        compacted(r#","preservedSegment":{"headUuid":"c","anchorUuid":"sum","tailUuid":"d"}"#);
    expect(&lines, &CLIENTS[..2], "u: sum | a: f");
    expect(&lines, &CLIENTS[2..], "u: sum\n, c | a: d | a: f");
}

#[test]
fn a_tail_with_an_unknown_line_is_lost_whole() {
    let lines = compacted(r#","preservedMessages":{"anchorUuid":"sum","uuids":["c","gone"]}"#);
    expect(&lines, &CLIENTS, "u: sum | a: f");
}

#[test]
fn parallel_calls_beside_the_chain_come_back_in_newer_clients() {
    let lines = [
        asks("a", "", "10:00:00"),
        calls("b", "a", "10:00:01", "m", "t1"),
        calls("c", "b", "10:00:02", "m", "t2"),
        answers("d", "b", "10:00:03", "t1"),
        answers("e", "c", "10:00:04", "t2"),
        says("f", "d", "10:00:05"),
    ];
    expect(&lines, &CLIENTS[..2], "u: a | a: t1? | u: t1=x | a: f");
    let after_message = "u: a | a: t1?, t2? | u: t2=x, t1=x | a: f";
    expect(&lines, &[V2_1_100, V2_1_200], after_message);
    let in_file_order = "u: a | a: t1?, t2? | u: t1=x, t2=x | a: f";
    expect(&lines, &[V2_1_325], in_file_order);
}

#[test]
fn a_result_without_a_call_is_sent_dropped_or_replaced() {
    let middle = [
        asks("a", "", "10:00:00"),
        says("b", "a", "10:00:01"),
        answers("c", "b", "10:00:02", "t"),
        says("d", "c", "10:00:03"),
    ];
    expect(&middle, &[V2_0_50], "u: a | a: b | u: t=x | a: d");
    expect(&middle, &[V2_1_45], "u: a | a: b | a: d");
    expect(
        &middle,
        &CLIENTS[2..],
        "u: a | a: b | u: (no content) | a: d",
    );
    let first = [
        answers("a", "", "10:00:00", "t"),
        says("b", "a", "10:00:01"),
    ];
    expect(&first, &CLIENTS[..2], "u: t=x | a: b");
    expect(&first, &[V2_1_100, V2_1_200], "a: b");
    let note = "u: [Orphaned tool result removed due to conversation resume] | a: b";
    expect(&first, &[V2_1_325], note);
}

#[test]
fn a_call_made_twice_is_sent_once_from_2_1_100_on() {
    let lines = [
        asks("a", "", "10:00:00"),
        calls("b", "a", "10:00:01", "m", "t"),
        answers("c", "b", "10:00:02", "t"),
        calls("d", "c", "10:00:03", "n", "t"),
        answers("e", "d", "10:00:04", "t"),
        says("f", "e", "10:00:05"),
    ];
    expect(
        &lines,
        &CLIENTS[..2],
        "u: a | a: t? | u: t=x | a: t? | u: t=x | a: f",
    );
    let once = "u: a | a: t? | u: t=x | a: [Tool use interrupted] | u: (no content) | a: f";
    expect(&lines, &CLIENTS[2..], once);
    expect(&lines, &[Strict], "u: a | a: t? | u: t=x | a: f");
}

#[test]
fn a_call_at_the_end_is_dropped_or_gets_a_result_that_says_so() {
    let lines = [
        asks("a", "", "10:00:00"),
        calls("b", "a", "10:00:01", "m", "t"),
    ];
    expect(&lines, &CLIENTS[..4], "u: a");
    let interrupted = "u: a | a: t? | u: t=[Tool call interrupted: \
                       the session ended before this call's result was recorded]";
    expect(&lines, &[V2_1_325], interrupted);
}

#[test]
fn a_result_that_comes_too_late_is_replaced() {
    let lines = [
        asks("a", "", "10:00:00"),
        calls("b", "a", "10:00:01", "m", "t"),
        says("c", "b", "10:00:02"),
        answers("d", "c", "10:00:03", "t"),
        says("e", "d", "10:00:04"),
    ];
    expect(&lines, &[V2_0_50], "u: a | a: t? | a: c | u: t=x | a: e");
    let missing = "u: a | a: t? | u: t=[Tool result missing due to internal error] | a: c";
    expect(&lines, &[V2_1_45], &format!("{missing} | a: e"));
    expect(
        &lines,
        &CLIENTS[2..],
        &format!("{missing} | u: (no content) | a: e"),
    );
}

#[test]
fn thinking_of_another_model_is_dropped_by_newer_clients() {
    let lines = [
        asks("a", "", "10:00:00"),
        thinks("b", "a", "10:00:01", "m").replace("opus-4-5", "haiku-4-5"),
        reply("c", "b", "10:00:02", "m", &format!("[{}]", text("c"))),
    ];
    expect(&lines, &CLIENTS[..3], "u: a | a: (hm), c");
    expect(&lines, &CLIENTS[3..], "u: a | a: c");
    let unsigned = lines.map(|line| line.replace(r#","signature":"s""#, ""));
    expect(&unsigned, &[V2_1_200], "u: a | a: (hm), c");
    expect(&unsigned, &[V2_1_325], "u: a | a: (hm), c");
}

#[test]
fn a_client_that_does_not_know_the_model_drops_all_its_thinking() {
    let lines = [
        asks("a", "", "10:00:00"),
        thinks("b", "a", "10:00:01", "m").replace("opus-4-5", "opus-5-5"),
        reply("c", "b", "10:00:02", "m", &format!("[{}]", text("c")))
            .replace("opus-4-5", "opus-5-5"),
    ];
    expect(&lines, &[V2_1_200], "u: a | a: c");
    expect(&lines, &[V2_1_325], "u: a | a: (hm), c");
}

#[test]
fn thinking_alone_is_sent_by_the_oldest_client_only() {
    let lines = [
        asks("a", "", "10:00:00"),
        thinks("b", "a", "10:00:01", "m"),
        says("c", "b", "10:00:02"),
    ];
    expect(&lines, &[V2_0_50], "u: a | a: (hm) | a: c");
    expect(&lines, &CLIENTS[1..], "u: a | a: c");
}

#[test]
fn empty_text_is_dropped_from_replies_and_marked_in_prompts() {
    let reply_ = [
        asks("a", "", "10:00:00"),
        reply("b", "a", "10:00:01", "m", &format!("[{}]", text(""))),
        asks("c", "b", "10:00:02"),
    ];
    expect(&reply_, &[V2_0_50], "u: a | a:  | u: c");
    expect(&reply_, &[V2_1_45], "u: a, c");
    expect(&reply_, &CLIENTS[2..], "u: a\n, c");
    let prompt = [
        user("a", "", "10:00:00", &format!("[{}]", text(""))),
        says("b", "a", "10:00:01"),
    ];
    expect(&prompt, &CLIENTS[..3], "u:  | a: b");
    expect(&prompt, &[V2_1_200], "a: b");
    expect(&prompt, &[V2_1_325], "u: (no content) | a: b");
    let [prompt, answer] = prompt;
    let first = [asks("x", "", "09:00:00"), says("y", "x", "09:00:01")];
    let later = prompt.replace("\"parentUuid\":null", "\"parentUuid\":\"y\"");
    let lines = [first.to_vec(), vec![later, answer]].concat();
    expect(&lines, &CLIENTS[..3], "u: x | a: y | u:  | a: b");
    expect(
        &lines,
        &CLIENTS[3..],
        "u: x | a: y | u: (no content) | a: b",
    );
}

#[test]
fn the_output_of_a_local_command_is_sent_from_2_1_100_on() {
    let lines = [
        asks("a", "", "10:00:00"),
        says("b", "a", "10:00:01"),
        system("c", "b", "10:00:02", "local_command", r#","content":"out""#),
        asks("d", "c", "10:00:03"),
        says("e", "d", "10:00:04"),
    ];
    expect(&lines, &CLIENTS[..2], "u: a | a: b | u: d | a: e");
    expect(&lines, &CLIENTS[2..], "u: a | a: b | u: out\n, d | a: e");
}

#[test]
fn a_queued_prompt_stands_behind_the_result_or_inside_it() {
    let queued = asks("d", "c", "10:00:03").replacen(
        r#""type":"user""#,
        r#""type":"attachment","attachment":{"type":"queued_command","prompt":"typed","humanTurn":true,"origin":{"kind":"human"}}"#,
        1,
    );
    let lines = [
        asks("a", "", "10:00:00"),
        calls("b", "a", "10:00:01", "m", "t"),
        answers("c", "b", "10:00:02", "t"),
        without(&queued, "message"),
        says("e", "d", "10:00:04"),
    ];
    for profile in CLIENTS {
        let all = sent(&lines, profile);
        assert!(
            all.starts_with("u: a | a: t? | u: t=x\n\n<system-reminder>\nThe user sent"),
            "{all}"
        );
        assert!(
            all.contains("\ntyped\n") && all.ends_with("</system-reminder> | a: e"),
            "{all}"
        );
    }
    // Newer clients take the words that are stored with it.
    let stored = r#""rendered":[{"type":"text","content":"<system-reminder>\nas stored\n</system-reminder>"}],"type":"attachment""#;
    let mut with = lines.clone();
    with[3] = with[3].replacen(r#""type":"attachment""#, stored, 1);
    for (version, words) in [("2.1.267", "The user sent"), ("2.1.276", "as stored")] {
        let all = sent(&with, ClientProfile::client(version));
        let start = format!("u: a | a: t? | u: t=x\n\n<system-reminder>\n{words}");
        assert!(all.starts_with(&start), "{version}: {all}");
    }
    // Newer models take messages of the system between others.
    let lines = lines.map(|line| line.replace("opus-4-5", "opus-4-8"));
    expect(&lines, &[V2_1_200], "u: a | a: t? | u: t=x | a: e");
    let newest = sent(&lines, V2_1_325);
    let text =
        "u: a | a: t? | u: t=x, The user sent a new message while you were working:\ntyped\n";
    assert!(newest.starts_with(text), "{newest}");
}

#[test]
fn of_two_objects_on_one_line_older_clients_read_none_and_newer_ones_the_first() {
    let both = asks("a", "", "10:00:00") + &says("b", "a", "10:00:01");
    let lines = [both.clone(), asks("c", "b", "10:00:20")];
    expect(&lines, &CLIENTS, "u: c");
    let lines = [both, asks("c", "a", "10:00:20")];
    expect(&lines, &CLIENTS[..3], "u: c");
    expect(&lines, &CLIENTS[3..], "u: a\n, c");
    expect(&lines, &[Strict], "u: a\n, c");
}

#[test]
fn a_null_line_is_skipped_or_ends_the_file_or_fails() {
    let lines = |odd: &str| {
        [
            asks("a", "", "10:00:00"),
            odd.to_owned(),
            says("b", "a", "10:00:01"),
        ]
    };
    expect(&lines("null"), &[V2_0_50, V2_1_325, Strict], "u: a | a: b");
    expect(&lines("null"), &[V2_1_45, V2_1_100], "u: a");
    expect(&lines("null"), &[V2_1_200], "none");
    expect(&lines("[1]"), &CLIENTS, "u: a | a: b");
}

#[test]
fn a_line_without_an_id_still_takes_part() {
    let lines = [
        asks("a", "", "10:00:00"),
        without(&says("b", "a", "10:00:01"), "uuid"),
    ];
    expect(&lines, &CLIENTS, "u: a | a: b");
}

#[test]
fn without_a_time_a_line_is_no_leaf_or_there_is_no_conversation() {
    let lines = [
        asks("a", "", "10:00:00"),
        without(&says("b", "a", "10:00:01"), "timestamp"),
    ];
    expect(&lines, &CLIENTS[..3], "u: a");
    expect(&lines, &CLIENTS[3..], "none");
    let result = [
        asks("a", "", "10:00:00"),
        calls("b", "a", "10:00:01", "m", "t"),
        without(&answers("c", "b", "10:00:02", "t"), "timestamp"),
        says("d", "c", "10:00:03"),
    ];
    expect(&result, &CLIENTS, "u: a | a: t? | u: t=x | a: d");
    // Two beside the chain are put in order by their times.
    let parallel = [
        asks("a", "", "10:00:00"),
        calls("b", "a", "10:00:01", "m", "t1"),
        calls("c", "b", "10:00:02", "m", "t2"),
        calls("d", "c", "10:00:02", "m", "t3"),
        without(&answers("e", "b", "10:00:03", "t1"), "timestamp"),
        without(&answers("f", "c", "10:00:04", "t2"), "timestamp"),
        answers("g", "d", "10:00:05", "t3"),
    ];
    expect(&parallel, &[V2_1_100, V2_1_200], "none");
    let all = "u: a | a: t1?, t2?, t3? | u: t1=x, t2=x, t3=x";
    expect(&parallel, &[V2_1_325], all);
}

#[test]
fn nothing_to_go_on_from_is_an_empty_conversation_for_the_oldest_client() {
    let lines = [last_prompt("a")];
    expect(&lines, &[V2_0_50], "");
    expect(&lines, &CLIENTS[1..], "none");
}

#[test]
fn a_later_line_with_the_same_id_counts_in_the_first_ones_place() {
    let lines = [
        asks("a", "", "10:00:00"),
        says("b", "a", "10:00:01"),
        user("a", "", "10:00:00", "\"again\""),
    ];
    expect(&lines, &CLIENTS[..3], "u: again | a: b");
    // The last line of the file is the one that was written again.
    expect(&lines, &[V2_1_200], "u: again");
    expect(&lines, &[V2_1_325, Strict], "u: again | a: b");
}

#[test]
fn a_reply_that_is_one_string_breaks_all_clients_but_the_newest() {
    let lines = [
        asks("a", "", "10:00:00"),
        reply("b", "a", "10:00:01", "m", "\"plain\""),
    ];
    expect(&lines, &CLIENTS[..4], "none");
    expect(&lines, &[ClientProfile::client("2.1.276")], "none");
    expect(
        &lines,
        &[ClientProfile::client("2.1.277"), V2_1_325, Strict],
        "u: a | a: plain",
    );
}

#[test]
fn lines_of_one_message_are_joined_across_results_but_not_across_prompts() {
    let says_m = |uuid: &str, parent: &str, clock: &str| {
        reply(uuid, parent, clock, "m", &format!("[{}]", text(uuid)))
    };
    let results = [
        asks("a", "", "10:00:00"),
        calls("b", "a", "10:00:01", "m", "t"),
        answers("c", "b", "10:00:02", "t"),
        says_m("d", "c", "10:00:03"),
    ];
    expect(&results, &[V2_0_50], "u: a | a: t? | u: t=x | a: d");
    expect(&results, &[V2_1_45, V2_1_100], "u: a | a: t?, d | u: t=x");
    expect(&results, &[V2_1_200, V2_1_325], "u: a | a: d, t? | u: t=x");
    let prompts = [
        asks("a", "", "10:00:00"),
        says_m("b", "a", "10:00:01"),
        asks("c", "b", "10:00:02"),
        says_m("d", "c", "10:00:03"),
    ];
    expect(&prompts, &CLIENTS, "u: a | a: b | u: c | a: d");
}

#[test]
fn an_explicit_last_prompt_counts_until_the_next_line_of_the_chain() {
    let explicit = last_prompt("b").replacen('{', r#"{"explicit":true,"#, 1);
    let mut lines = vec![
        asks("a", "", "10:00:00"),
        says("b", "a", "10:00:01"),
        asks("c", "b", "10:00:02"),
        says("d", "c", "10:00:03"),
        explicit,
    ];
    expect(&lines, &[V2_1_200, V2_1_325, Strict], "u: a | a: b");
    lines.push(
        asks("e", "b", "10:00:04").replace(r#""isSidechain":false"#, r#""isSidechain":true"#),
    );
    expect(&lines, &[V2_1_200, V2_1_325, Strict], "u: a | a: b");
    lines.push(asks("f", "b", "10:00:05"));
    lines.push(says("g", "f", "10:00:06"));
    expect(
        &lines,
        &[V2_1_200, V2_1_325, Strict],
        "u: a | a: b | u: f | a: g",
    );
    lines[6] = asks("f", "d", "10:00:05");
    let all = "u: a | a: b | u: c | a: d | u: f | a: g";
    expect(&lines, &[V2_1_200, V2_1_325, Strict], all);
}

#[test]
fn an_explicit_last_prompt_that_names_no_line_leaves_nothing() {
    let nowhere = r#"{"type":"last-prompt","leafUuid":null,"explicit":true,"sessionId":"s"}"#;
    let mut lines = vec![
        asks("a", "", "10:00:00"),
        says("b", "a", "10:00:01"),
        nowhere.to_owned(),
    ];
    expect(&lines, &CLIENTS[..3], "u: a | a: b");
    expect(&lines, &CLIENTS[3..], "");
    expect(&lines, &[ClientProfile::client("2.1.186")], "u: a | a: b");
    expect(&lines, &[Strict], "none");
    lines.push(asks("c", "", "10:00:02"));
    lines.push(says("d", "c", "10:00:03"));
    expect(&lines, &[V2_1_200, V2_1_325, Strict], "u: c | a: d");
    lines[2] = nowhere.replace(r#""explicit":true,"#, "");
    lines.truncate(3);
    expect(&lines, &CLIENTS, "u: a | a: b");
}

#[test]
fn parallel_results_are_one_point_to_go_on_from() {
    let lines = [
        asks("a", "", "10:00:00"),
        calls("b", "a", "10:00:01", "m", "t1"),
        calls("c", "b", "10:00:02", "m", "t2"),
        answers("d", "b", "10:00:03", "t1"),
        answers("e", "c", "10:00:04", "t2"),
        says("f", "e", "10:00:05"),
        asks("g", "f", "10:00:06"),
        last_prompt("d"),
    ];
    let all = "u: a | a: t1?, t2? | u: t1=x, t2=x | a: f | u: g";
    expect(&lines, &[V2_1_100, V2_1_325, Strict], all);
    expect(&lines, &[V2_1_200], "u: a | a: t1?, t2? | u: t2=x, t1=x");
    expect(
        &lines,
        &[ClientProfile::client("2.1.281")],
        "u: a | a: t1?, t2? | u: t1=x, t2=x",
    );
}

#[test]
fn a_last_line_that_leads_to_no_prompt_is_not_gone_on_from() {
    let lines = |parent| {
        [
            asks("a", "", "10:00:00"),
            says("b", "a", "10:00:01"),
            system(
                "c",
                parent,
                "10:00:40",
                "informational",
                r#","content":"note""#,
            ),
        ]
    };
    for parent in ["lost", ""] {
        expect(&lines(parent), &CLIENTS[3..], "u: a | a: b");
        expect(
            &lines(parent),
            &[Strict, ClientProfile::client("2.1.108")],
            "u: a | a: b",
        );
        expect(&lines(parent), &CLIENTS[..3], "");
    }
}

#[test]
fn lines_without_ids_are_one_message_or_each_its_own() {
    let says_ = |uuid: &str, parent: &str, clock: &str, request: &str| {
        let line = reply(uuid, parent, clock, "m", &format!("[{}]", text(uuid)));
        line.replace(r#""id":"m","#, "")
            .replacen('{', &format!("{{{request}"), 1)
    };
    let lines = |request| {
        [
            asks("a", "", "10:00:00"),
            says_("b", "a", "10:00:01", request),
            says_("c", "b", "10:00:02", request),
        ]
    };
    expect(&lines(""), &CLIENTS[..4], "u: a | a: b, c");
    expect(&lines(""), &[V2_1_325], "u: a | a: b | a: c");
    let request = r#""requestId":"r","#;
    expect(&lines(request), &CLIENTS, "u: a | a: b, c");
}

#[test]
fn thinking_beside_blank_text_is_dropped_with_it() {
    let lines = [
        asks("a", "", "10:00:00"),
        thinks("b", "a", "10:00:01", "m"),
        reply("c", "b", "10:00:02", "m", &format!("[{}]", text("  "))),
        asks("d", "c", "10:00:03"),
        says("e", "d", "10:00:04"),
    ];
    expect(
        &lines,
        &[V2_0_50, ClientProfile::client("2.1.31")],
        "u: a | a: (hm),    | u: d | a: e",
    );
    expect(
        &lines,
        &[ClientProfile::client("2.1.32")],
        "u: a | a: (hm) | u: d | a: e",
    );
    let gap = [ClientProfile::client("2.1.33"), V2_1_45, V2_1_100, V2_1_200];
    expect(&lines, &gap, "u: a | u: d | a: e");
    expect(&lines, &[V2_1_325], "u: a\n, d | a: e");
}

#[test]
fn lines_for_the_screen_and_notes_of_fallbacks_are_not_sent() {
    let hidden = asks("c", "b", "10:00:02").replacen('{', r#"{"isVirtual":true,"#, 1);
    let lines = [
        asks("a", "", "10:00:00"),
        says("b", "a", "10:00:01"),
        hidden,
        says("d", "c", "10:00:03"),
    ];
    expect(&lines, &CLIENTS[..2], "u: a | a: b | u: c | a: d");
    expect(&lines, &CLIENTS[2..], "u: a | a: b | a: d");
    let note = format!(
        r#"[{{"type":"fallback","from":{{}},"to":{{}}}},{}]"#,
        text("b")
    );
    let lines = [
        asks("a", "", "10:00:00"),
        reply("b", "a", "10:00:01", "m", &note),
    ];
    expect(&lines, &CLIENTS[..3], "u: a | a: fallback, b");
    expect(&lines, &CLIENTS[3..], "u: a | a: b");
}

#[test]
fn tools_that_were_found_are_sent_taken_out_or_told_to_be_loaded() {
    let found = r#"[{"type":"tool_reference","tool_name":"TaskList"}]"#;
    let lines = [
        asks("a", "", "10:00:00"),
        calls("b", "a", "10:00:01", "m", "t"),
        user("c", "b", "10:00:02", &result("t", found)),
        says("d", "c", "10:00:03"),
    ];
    expect(&lines, &[V2_0_50], "u: a | a: t? | u: t= | a: d");
    expect(
        &lines,
        &[V2_1_325],
        "u: a | a: t? | u: t=, Tool loaded. | a: d",
    );
    let read = read(&lines);
    let sent = |profile| match messages::messages(&read.session, &read.log, profile) {
        ResumeResult::Messages(all) => messages::to_json(&all),
        _ => String::new(),
    };
    for version in ["2.0.65", "2.1.45", "2.1.303"] {
        let sent = sent(ClientProfile::client(version));
        assert!(sent.contains("[Tool references removed"), "{sent}");
        assert!(!sent.contains("Tool loaded."), "{sent}");
    }
    assert!(sent(V2_1_325).contains("tool_reference"));
}

#[test]
fn a_session_that_the_model_ended_is_not_resumed() {
    let lines = [
        asks("a", "", "10:00:00"),
        says("b", "a", "10:00:01"),
        r#"{"type":"ended-by-model","sessionId":"s","timestamp":"2026-01-01T10:00:05.000Z"}"#
            .to_owned(),
    ];
    expect(&lines, &CLIENTS[..4], "u: a | a: b");
    expect(
        &lines,
        &[ClientProfile::client("2.1.250"), V2_1_325],
        "none",
    );
    expect(&lines, &[Strict], "u: a | a: b");
}

#[test]
fn output_of_a_command_behind_an_open_conversation_follows_its_answer() {
    let lines = [
        asks("a", "", "10:00:00"),
        system("b", "a", "10:00:01", "local_command", r#","content":"out""#),
    ];
    let answered = "u: a | a: No response requested. | u: out";
    expect(
        &lines,
        &[ClientProfile::client("2.1.150"), V2_1_200, V2_1_325],
        answered,
    );
    expect(&lines, &[Strict], "u: a\n, out");
}
