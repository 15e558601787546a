//! Several lines, one message: blocks are joined, tokens are not added.

use unspool_model::usage::Usage;

use crate::make::{call, read, reply, result, text, user};

/// A line of message `m` with one text and these tokens.
fn part(uuid: &str, says: &str, input: u64, output: u64, stop: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"{uuid}","parentUuid":null,"message":{{"id":"m","model":"claude-opus-4-5","role":"assistant","content":[{}],"stop_reason":{stop},"usage":{{"input_tokens":{input},"output_tokens":{output}}}}}}}"#,
        text(says)
    )
}

#[test]
fn lines_with_one_message_id_become_one_message_in_file_order() {
    let read = read(&[
        reply("a", "", "10:00:00", "m1", &format!("[{}]", text("one"))),
        reply("b", "a", "10:00:01", "m1", &format!("[{}]", text("two"))),
        reply("c", "b", "10:00:02", "m2", &format!("[{}]", text("three"))),
    ]);
    assert_eq!(read.session.messages.len(), 2);
    assert_eq!(read.texts(read.message("m1")), ["one", "two"]);
    assert_eq!(read.texts(read.message("m2")), ["three"]);
}

#[test]
fn a_tool_result_may_stand_between_the_lines_of_a_message() {
    let read = read(&[
        reply(
            "a",
            "",
            "10:00:00",
            "m",
            &format!("[{}]", call("t1", "Read", "{}")),
        ),
        user("b", "a", "10:00:01", &result("t1", r#""x""#)),
        reply(
            "c",
            "b",
            "10:00:02",
            "m",
            &format!("[{}]", call("t2", "Read", r#"{"a":1}"#)),
        ),
        user("d", "c", "10:00:03", &result("t2", r#""y""#)),
    ]);
    assert_eq!(read.session.messages.len(), 1);
    assert_eq!(read.content(read.message("m")), ["tool_use", "tool_use"]);
    assert_eq!(read.session.usage().input, 10);
}

#[test]
fn no_line_is_final_so_none_is_left_out() {
    // Only the second line has a stop reason; the first one holds text that must not go.
    let read = read(&[
        part("a", "said first", 3, 2, "null"),
        part("b", "said last", 3, 480, "\"end_turn\""),
    ]);
    assert_eq!(read.texts(read.message("m")), ["said first", "said last"]);
}

#[test]
fn usage_of_a_message_counts_once_and_is_the_largest_of_each_field() {
    let read = read(&[
        part("a", "1", 3, 480, "null"),
        part("b", "2", 3, 2, "null"),
        part("c", "3", 5, 90, "\"end_turn\""),
    ]);
    let usage = read.session.usage_of(read.message("m"));
    assert_eq!((usage.input, usage.output), (5, 480));
    assert_eq!(read.session.usage(), usage);
}

#[test]
fn usage_on_one_line_only_is_the_usage_of_the_message() {
    for (first, last) in [
        (r#","usage":{"input_tokens":7,"output_tokens":8}"#, ""),
        ("", r#","usage":{"input_tokens":7,"output_tokens":8}"#),
    ] {
        let line = |uuid: &str, usage: &str, says: &str| {
            format!(
                r#"{{"type":"assistant","uuid":"{uuid}","message":{{"id":"m","role":"assistant","content":"{says}"{usage}}}}}"#
            )
        };
        let read = read(&[line("a", first, "x"), line("b", last, "y")]);
        let message = read.message("m");
        assert!(message.has_usage());
        let usage = read.session.usage_of(message);
        assert_eq!((usage.input, usage.output), (7, 8));
    }
}

#[test]
fn a_message_without_usage_says_so() {
    let read =
        read(&[r#"{"type":"assistant","message":{"id":"m","role":"assistant","content":"x"}}"#]);
    assert!(!read.message("m").has_usage());
    assert_eq!(read.session.usage(), Usage::default());
}

#[test]
fn cache_keys_are_mapped_and_missing_ones_are_zero() {
    let usage = |json: &str| {
        read(&[format!(
            r#"{{"type":"assistant","message":{{"id":"m","role":"assistant","content":"x","usage":{json}}}}}"#
        )])
        .session
        .usage()
    };
    assert_eq!(
        usage(r#"{"input_tokens":1,"output_tokens":2}"#),
        Usage {
            input: 1,
            output: 2,
            ..Usage::default()
        }
    );
    let full = usage(
        r#"{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":3,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20}}"#,
    );
    assert_eq!(
        (full.cache_read, full.cache_write_5m, full.cache_write_1h),
        (3, 10, 20)
    );
    // The split is part of the writes, never on top of them.
    assert_eq!(full.total(), 36);
    assert_eq!(full.context(), 34);
}

#[test]
fn odd_token_counts_do_no_harm() {
    let read = read(&[
        r#"{"type":"assistant","message":{"id":"m","role":"assistant","content":"x","usage":{"input_tokens":null,"output_tokens":-5,"cache_read_input_tokens":"many"}}}"#,
    ]);
    assert_eq!(read.session.usage(), Usage::default());
}

#[test]
fn a_line_without_message_id_is_a_message_of_its_own() {
    let line = |says: &str| {
        format!(
            r#"{{"message":{{"role":"assistant","content":"{says}","usage":{{"output_tokens":1}}}}}}"#
        )
    };
    let read = read(&[line("a"), line("b")]);
    assert_eq!(read.session.messages.len(), 2);
    assert_eq!(read.session.usage().output, 2);
    assert!(
        read.session
            .messages
            .iter()
            .all(|message| read.session.message_id(message).is_none())
    );
}

#[test]
fn the_request_id_decides_nothing() {
    let line = |uuid: &str, id: &str, request: &str| {
        format!(
            r#"{{"type":"assistant","uuid":"{uuid}","requestId":"{request}","message":{{"id":"{id}","role":"assistant","content":[{}]}}}}"#,
            text(uuid)
        )
    };
    let split = read(&[line("a", "m1", "r"), line("b", "m2", "r")]);
    assert_eq!(split.session.messages.len(), 2);
    let joined = read(&[line("a", "m1", "r1"), line("b", "m1", "r2")]);
    assert_eq!(joined.session.messages.len(), 1);
}

#[test]
fn history_that_was_written_again_stands_once() {
    let block = format!("[{}]", call("t1", "Read", r#"{"file_path":"/a"}"#));
    let read = read(&[
        reply("a", "", "10:00:00", "m", &format!("[{}]", text("look"))),
        reply("b", "a", "10:00:01", "m", &block),
        reply("a2", "b", "10:00:02", "m", &format!("[{}]", text("look"))),
        reply("b2", "a2", "10:00:03", "m", &block),
    ]);
    assert_eq!(read.content(read.message("m")), ["text", "tool_use"]);
    assert_eq!(read.session.calls.len(), 1);
    assert_eq!(read.faults(), []);
}

#[test]
fn equal_blocks_on_one_line_are_both_kept() {
    let read = read(&[reply(
        "a",
        "",
        "10:00:00",
        "m",
        &format!("[{},{}]", text("ha"), text("ha")),
    )]);
    assert_eq!(read.texts(read.message("m")), ["ha", "ha"]);
}

#[test]
fn string_content_of_a_reply_is_one_text() {
    let read = read(&[
        r#"{"type":"assistant","message":{"id":"m","role":"assistant","content":"meta response"}}"#,
    ]);
    assert_eq!(read.texts(read.message("m")), ["meta response"]);
}

#[test]
fn a_stop_reason_is_remembered_and_nothing_depends_on_it() {
    let read = read(&[
        user("p", "", "10:00:00", r#""go""#),
        part("a", "x", 1, 1, "null"),
        part("b", "y", 1, 1, "null"),
    ]);
    assert_eq!(read.message("m").stop(), None);
    assert_eq!(
        (read.session.turns.len(), read.session.messages.len()),
        (1, 1)
    );
    assert_eq!(read.session.recent_output.as_deref(), Some("y"));
}

#[test]
fn what_the_client_wrote_itself_costs_nothing() {
    let read = read(&[
        r#"{"type":"assistant","uuid":"a","message":{"id":"m","model":"<synthetic>","role":"assistant","content":"No response requested.","usage":{"input_tokens":9,"output_tokens":9}}}"#,
    ]);
    assert_eq!(read.session.usage(), Usage::default());
    assert!(read.session.models.is_empty());
}

#[test]
fn the_same_uuid_twice_counts_once() {
    let line = reply("a", "", "10:00:00", "m", &format!("[{}]", text("x")));
    let read = read(&[line.clone(), line]);
    assert_eq!(read.session.messages.len(), 1);
    assert_eq!(read.texts(read.message("m")), ["x"]);
    assert_eq!(read.faults(), [(2, "duplicate_uuid")]);
}
