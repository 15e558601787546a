//! Lines, their numbers and places, whatever the bytes are.

use unspool_model::log::{LineSplitter, Log};
use unspool_model::session::{Session, TranscriptRole};

use crate::make::{Read, read, read_bytes};

const USER: &str = r#"{"type":"user","uuid":"a","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"hello"}}"#;
const REPLY: &str = r#"{"type":"assistant","uuid":"b","parentUuid":"a","sessionId":"s","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"hi"}],"usage":{"input_tokens":3,"output_tokens":4}}}"#;
const SUMMARY: &str = r#"{"type":"summary","summary":"S","leafUuid":"a"}"#;

/// Line number and offset of each record.
fn places(read: &Read) -> Vec<(u32, u64)> {
    let records = read.session.records.iter();
    records.map(|record| (record.line, record.offset)).collect()
}

#[test]
fn an_empty_file_is_an_empty_session() {
    let read = read_bytes("");
    assert!(read.session.records.is_empty() && read.session.faults.is_empty());
}

#[test]
fn line_numbers_count_from_one() {
    let read = read_bytes(format!("{USER}\n{REPLY}\n"));
    assert_eq!(places(&read), [(1, 0), (2, USER.len() as u64 + 1)]);
}

#[test]
fn bad_lines_are_counted_kept_and_reported() {
    let bad = "not json at all";
    let read = read_bytes(format!("{bad}\n{USER}\n{{\"cut\":\n{REPLY}\n"));
    let first = bad.len() as u64 + 1;
    let second = first + USER.len() as u64 + 1 + 8;
    assert_eq!(places(&read), [(2, first), (4, second)]);
    assert_eq!(read.faults(), [(1, "unreadable"), (3, "unreadable")]);
    assert_eq!(read.session.turns.len(), 1);
}

#[test]
fn every_record_can_be_read_again_at_its_place() {
    let read = read_bytes(format!("junk\n\n{USER}\r\n{SUMMARY}{REPLY}\n"));
    let again: Vec<_> = read
        .session
        .records
        .iter()
        .map(|record| read.session.bytes_of(&read.log, record).into_owned())
        .collect();
    assert_eq!(
        again,
        [USER.as_bytes(), SUMMARY.as_bytes(), REPLY.as_bytes()]
    );
    assert_eq!(read.texts(read.message("m")), ["hi"]);
}

#[test]
fn a_file_of_nothing_but_bad_lines_is_no_conversation() {
    let read = read_bytes("a\nb\nc\n");
    assert!(read.session.records.is_empty() && !read.session.is_conversation());
    assert_eq!(read.session.faults.len(), 3);
}

#[test]
fn a_bad_line_in_the_middle_costs_only_itself() {
    let with_bad = read_bytes(format!("{USER}\n<<<<\n{REPLY}\n"));
    let without = read_bytes(format!("{USER}\n{REPLY}\n"));
    assert_eq!(with_bad.session.usage(), without.session.usage());
    assert_eq!(with_bad.session.turns.len(), without.session.turns.len());
}

#[test]
fn reading_goes_on_where_it_stopped() {
    let whole = format!("{USER}\n{SUMMARY}\n{REPLY}\n");
    let mut session = Session::new(TranscriptRole::Main);
    let stop = USER.len() + 1;
    let mut first = LineSplitter::default();
    first.feed(&whole.as_bytes()[..stop], |line| {
        session.push(&line);
    });
    let mut rest = LineSplitter::starting_at(1, stop as u64);
    rest.feed(&whole.as_bytes()[stop..], |line| {
        session.push(&line);
    });
    let at_once = Session::from_log(&Log::new(whole), TranscriptRole::Main);
    let places = |session: &Session| -> Vec<(u32, u64)> {
        let records = session.records.iter();
        records.map(|record| (record.line, record.offset)).collect()
    };
    assert_eq!(places(&session), places(&at_once));
    assert_eq!(session.usage(), at_once.usage());
}

#[test]
fn lines_without_session_id_take_their_bytes_like_all_others() {
    // Leaving them out of the count makes a follower read earlier lines again.
    let snapshot = r#"{"type":"file-history-snapshot","messageId":"a","snapshot":{}}"#;
    let whole = format!("{snapshot}\n{USER}\n{SUMMARY}\n{REPLY}\n");
    let read = read_bytes(whole.clone());
    let last = read.session.records.last().unwrap();
    assert_eq!(last.offset as usize + last.len() + 1, whole.len());
    assert_eq!(read.session.records.len(), 4);
}

#[test]
fn what_stands_behind_the_last_newline_is_not_a_line_yet() {
    let mut splitter = LineSplitter::default();
    let mut lines = Vec::new();
    let half = &REPLY[..40];
    splitter.feed(format!("{USER}\n{half}").as_bytes(), |line| {
        lines.push(line.number)
    });
    assert_eq!(lines, [1]);
    let tail = splitter.tail().unwrap();
    assert_eq!(
        (tail.number, tail.offset as usize, tail.ended),
        (2, USER.len() + 1, false)
    );
    splitter.feed(format!("{}\n", &REPLY[40..]).as_bytes(), |line| {
        assert_eq!(line.bytes, REPLY.as_bytes());
        lines.push(line.number);
    });
    assert_eq!(lines, [1, 2]);
}

#[test]
fn a_torn_tail_is_a_fault_and_changes_nothing_else() {
    let read = read_bytes(format!("{USER}\n{}", &REPLY[..60]));
    assert_eq!(read.faults(), [(2, "torn_tail")]);
    assert_eq!(
        (read.session.records.len(), read.session.messages.len()),
        (1, 0)
    );
}

#[test]
fn a_whole_last_line_without_newline_is_read() {
    let read = read_bytes(format!("{USER}\n{REPLY}"));
    assert_eq!(read.faults(), [(2, "no_final_newline")]);
    assert_eq!(read.session.messages.len(), 1);
}

#[test]
fn a_tail_torn_inside_a_character_is_a_torn_tail() {
    let line = USER.replace("hello", "日本");
    let cut = line.find('本').unwrap() + 1;
    let read = read_bytes(line.as_bytes()[..cut].to_vec());
    assert_eq!(read.faults(), [(1, "torn_tail")]);
}

#[test]
fn a_line_of_two_megabytes_is_a_line() {
    let long = "x".repeat(2 << 20);
    let read = read_bytes(format!("{}\n{REPLY}\n", USER.replace("hello", &long)));
    assert_eq!(read.faults(), []);
    assert_eq!(
        (read.session.turns.len(), read.session.records.len()),
        (1, 2)
    );
}

#[test]
fn blank_lines_and_carriage_returns_are_harmless() {
    let read = read_bytes(format!("\n{USER}\r\n\r\n   \n{REPLY}\r\n"));
    assert_eq!(read.faults(), []);
    assert_eq!(read.session.records.len(), 2);
    assert_eq!(read.session.blank_lines, 3);
}

#[test]
fn a_byte_order_mark_is_reported_and_read_over() {
    let read = read_bytes(format!("\u{feff}{USER}\n"));
    assert_eq!(read.faults(), [(1, "byte_order_mark")]);
    assert_eq!(read.session.turns.len(), 1);
}

#[test]
fn two_objects_on_one_line_are_two_records() {
    let read = read_bytes(format!("{USER}{SUMMARY}\n{REPLY}\n"));
    assert_eq!(read.faults(), [(1, "glued")]);
    assert_eq!(read.session.records.len(), 3);
    assert_eq!(read.session.records[1].offset, USER.len() as u64);
}

#[test]
fn the_leftover_end_of_another_line_is_kept_as_unreadable() {
    let read = read_bytes(format!("{USER}\ned\":\"x\"}}}}\n{REPLY}\n"));
    assert_eq!(read.faults(), [(2, "unreadable")]);
    assert_eq!(read.session.records.len(), 2);
}

#[test]
fn unknown_types_and_fields_are_kept_counted_and_named() {
    let read = read_bytes("{\"type\":\"hologram\",\"version\":\"9.9.9\",\"uuid\":\"h\"}\n");
    assert_eq!(read.session.records.len(), 1);
    assert_eq!(read.session.unknown["type hologram"]["9.9.9"], 1);
    assert_eq!(read.faults(), []);
}

#[test]
fn lines_without_type_or_session_id_are_not_skipped() {
    let read = read_bytes("{\"foo\":1}\n{\"type\":\"user\",\"content\":\"x\"}\n");
    assert_eq!(read.session.records.len(), 2);
    assert_eq!(read.session.turns.len(), 1);
}

#[test]
fn half_an_emoji_does_not_make_a_line_unreadable() {
    let line = USER.replace("hello", r"cut \ud83d here");
    let read = read_bytes(format!("{line}\n"));
    assert_eq!(read.session.turns.len(), 1);
    assert!(read.session.goal.unwrap().starts_with("cut "));
}

#[test]
fn bytes_that_are_not_utf_8_are_reported_and_the_line_is_read() {
    let mut bytes = USER.replace("hello", "h?llo").into_bytes();
    let at = bytes.iter().position(|&byte| byte == b'?').unwrap();
    bytes[at] = 0xff;
    bytes.push(b'\n');
    let read = read_bytes(bytes);
    assert_eq!(read.faults(), [(1, "not_utf8")]);
    assert_eq!(read.session.turns.len(), 1);
}

#[test]
fn unknown_fields_within_known_objects_are_named_with_their_place() {
    let unknown = |fields: &str| {
        let line = format!(
            r#"{{"type":"system","uuid":"a","parentUuid":null,"version":"9.9.9",{fields}}}"#
        );
        let names = read(&[line]).session.unknown.into_keys();
        names.collect::<Vec<String>>()
    };
    for (fields, name) in [
        (
            r#""turnPosition":{"promptIndex":1,"new":1}"#,
            "turnPosition.new",
        ),
        (
            r#""permissionDecision":{"decision":"allow","new":{}}"#,
            "permissionDecision.new",
        ),
        (r#""commandRun":{"command":"x","new":[]}"#, "commandRun.new"),
        (
            r#""hookInfos":[{"command":"x"},{"command":"x","new":1}]"#,
            "hookInfos.new",
        ),
        (
            r#""error":{"status":529,"connection":{"code":"x","new":1}}"#,
            "error.connection.new",
        ),
        (
            r#""worktreeSession":{"worktreePath":"/x","new":1}"#,
            "worktreeSession.new",
        ),
        (
            r#""modelUsage":{"claude-x":{"inputTokens":1,"new":1}}"#,
            "modelUsage.<model>.new",
        ),
        (
            r#""compactMetadata":{"preservedSegment":{"headUuid":"a","tailUuid":"b","new":1}}"#,
            "compactMetadata.preservedSegment.new",
        ),
        (
            r#""compactMetadata":{"preservedMessages":{"uuids":["a"],"new":1}}"#,
            "compactMetadata.preservedMessages.new",
        ),
        (
            r#""snapshot":{"messageId":"a","trackedFileBackups":{"a.txt":{"version":1,"new":1}}}"#,
            "backup.new",
        ),
        (
            r#""attachment":{"type":"file","identity":{"modelId":"x","new":1}}"#,
            "attachment.identity.new",
        ),
    ] {
        assert_eq!(unknown(fields), [format!("field {name}")], "{fields}");
    }
    let nothing = unknown(r#""error":"rate_limit","hookInfos":[[{"new":1}],7],"modelUsage":null"#);
    assert_eq!(
        nothing, [""; 0],
        "what is no object of this shape tells nothing"
    );
}

#[test]
fn unknown_fields_within_objects_of_a_message_are_named_with_their_place() {
    let message = r#""container":{"id":"c","new":1},"context_management":{"applied_edits":[],"new":1},"stop_details":{"type":"refusal","new":1},"usage":{"input_tokens":1,"iterations":[{"type":"message","new":1}],"output_tokens_details":{"thinking_tokens":1,"new":1},"server_tool_use":{"new":1},"new":1}"#;
    let line = format!(
        r#"{{"type":"assistant","uuid":"a","parentUuid":null,"message":{{"id":"m","role":"assistant","content":[],{message}}}}}"#
    );
    let unknown: Vec<String> = read(&[line]).session.unknown.into_keys().collect();
    let places = [
        "container",
        "context_management",
        "stop_details",
        "usage",
        "usage.iterations",
        "usage.output_tokens_details",
        "usage.server_tool_use",
    ];
    let mut expected = places.map(|place| format!("field message.{place}.new"));
    expected.sort();
    let mut unknown = unknown;
    unknown.sort();
    assert_eq!(unknown, expected);
}

#[test]
fn a_hook_event_that_no_client_had_is_noticed() {
    let line = |event: &str| {
        format!(
            r#"{{"type":"attachment","uuid":"a","parentUuid":null,"attachment":{{"type":"hook_success","hookEvent":"{event}"}}}}"#
        )
    };
    for event in ["TeammateIdle", "PostModelSwitch", "StatusLine"] {
        assert!(read(&[line(event)]).session.unknown.is_empty(), "{event}");
    }
    let unknown = read(&[line("BrandNew")]).session.unknown;
    assert!(unknown.contains_key("hook event BrandNew"), "{unknown:?}");
}
