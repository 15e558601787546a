//! Lines that want to break the reader, and graphs that want to lose it.
//!
//! No panic, no endless loop; each line is kept and stands in exactly one place.

use std::collections::HashMap;

use unspool_model::graph;
use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::transcript::{ItemBody, transcript};
use unspool_model::view::turn_selection::TurnSelection;
use unspool_model::view::{check, messages, tree, turns};

use crate::make::{Read, read, read_bytes, reply, system, text, user};

/// Every view, so that none of them can panic or loop.
fn all_views(read: &Read) {
    let (session, log) = (&read.session, &read.log);
    for profile in ClientProfile::eras_and_strict() {
        messages::messages(session, log, profile);
    }
    check::faults(session);
    check::resumable(session);
    turns::turns(session, log, turns::TurnOptions::default());
    tree::tree(session, log, "s", &[]);
    transcript(session, log, &HashMap::new(), &TurnSelection::default());
    unspool_model::view::files::files(session, log);
    unspool_model::view::context::context(session, log, 5);
}

/// How often each of these texts is shown, as a prompt, a reply or a notice.
fn shown(read: &Read, texts: &[&str]) -> Vec<usize> {
    let items = transcript(
        &read.session,
        &read.log,
        &HashMap::new(),
        &TurnSelection::default(),
    );
    let said: Vec<String> = items
        .iter()
        .filter(|item| !matches!(item.body, ItemBody::Turn(_)))
        .map(|item| format!("{:?}", item.body))
        .collect();
    let count = |text: &&str| {
        said.iter()
            .filter(|said| said.contains(&format!("{text:?}")))
            .count()
    };
    texts.iter().map(count).collect()
}

/// Checks that each of the lines (each with a text of its own) stands in one place.
fn check_graph(lines: &[String], texts: &[&str]) -> Read {
    let read = read(lines);
    all_views(&read);
    let links = graph::links(&read.session);
    assert!(!graph::has_cycle(&links));
    let mut order = links.order.to_vec();
    order.sort_unstable();
    order.dedup();
    assert_eq!(order.len(), links.order.len(), "a line has two places");
    assert_eq!(shown(&read, texts), vec![1; texts.len()], "{texts:?}");
    read
}

fn say(uuid: &str, parent: &str, at: &str, words: &str) -> String {
    user(uuid, parent, at, &format!("{words:?}"))
}

fn answer(uuid: &str, parent: &str, at: &str, words: &str) -> String {
    reply(
        uuid,
        parent,
        at,
        &format!("m-{uuid}"),
        &format!("[{}]", text(words)),
    )
}

#[test]
fn a_circle_of_parents_ends_and_loses_no_line() {
    let read = check_graph(
        &[
            say("a", "c", "10:00:00", "first word"),
            answer("b", "a", "10:00:01", "second word"),
            say("c", "b", "10:00:02", "third word"),
        ],
        &["first word", "second word", "third word"],
    );
    assert!(
        check::faults(&read.session)
            .iter()
            .any(|fault| fault.kind.name() == "cycle")
    );
}

#[test]
fn a_line_that_is_its_own_parent_ends_and_loses_no_line() {
    check_graph(
        &[
            say("a", "", "10:00:00", "first word"),
            answer("b", "b", "10:00:01", "second word"),
            say("c", "b", "10:00:02", "third word"),
        ],
        &["first word", "second word", "third word"],
    );
}

#[test]
fn of_two_lines_with_one_uuid_the_later_one_is_shown_once() {
    let read = check_graph(
        &[
            say("a", "", "10:00:00", "first word"),
            answer("b", "a", "10:00:01", "old word"),
            answer("b", "a", "10:00:02", "new word"),
            say("c", "b", "10:00:03", "third word"),
        ],
        &["first word", "new word", "third word"],
    );
    assert!(shown(&read, &["old word"])[0] <= 1);
    assert_eq!(read.faults(), [(3, "duplicate_uuid")]);
}

#[test]
fn a_parent_may_stand_after_its_child() {
    let read = check_graph(
        &[
            answer("b", "a", "10:00:01", "second word"),
            say("a", "", "10:00:00", "first word"),
            say("c", "b", "10:00:02", "third word"),
        ],
        &["first word", "second word", "third word"],
    );
    let live = messages::live_lines(&read.session, ClientProfile::Strict);
    assert_eq!(live, [1, 0, 2]);
}

#[test]
fn an_orphan_follows_the_line_before_it() {
    let read = check_graph(
        &[
            say("a", "", "10:00:00", "first word"),
            answer("b", "gone", "10:00:01", "second word"),
        ],
        &["first word", "second word"],
    );
    assert_eq!(graph::links(&read.session).above(1), Some(0));
}

#[test]
fn two_roots_are_both_shown() {
    check_graph(
        &[
            say("a", "", "10:00:00", "first word"),
            answer("b", "a", "10:00:01", "second word"),
            say("c", "", "10:00:02", "third word"),
            answer("d", "c", "10:00:03", "fourth word"),
        ],
        &["first word", "second word", "third word", "fourth word"],
    );
}

#[test]
fn a_compaction_that_follows_a_line_from_nowhere_loses_nothing() {
    let boundary = system(
        "b",
        "",
        "10:00:01",
        "compact_boundary",
        r#","logicalParentUuid":"gone","content":"Conversation compacted","compactMetadata":{"trigger":"auto","preTokens":9}"#,
    );
    check_graph(
        &[
            say("a", "", "10:00:00", "first word"),
            boundary,
            say("c", "b", "10:00:02", "third word"),
        ],
        &["first word", "third word"],
    );
}

#[test]
fn a_hundred_thousand_levels_of_nesting_are_a_line_like_any_other() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let objects = "{\"a\":".repeat(100_000) + "1" + &"}".repeat(100_000);
    for value in [deep, objects] {
        let line = format!(
            r#"{{"type":"user","uuid":"a","parentUuid":null,"timestamp":"2026-01-03T10:00:00.000Z","extra":{value},"message":{{"role":"user","content":"hi"}}}}"#
        );
        let input = format!(
            r#"{{"type":"assistant","uuid":"b","parentUuid":"a","timestamp":"2026-01-03T10:00:01.000Z","message":{{"id":"m","role":"assistant","content":[{{"type":"tool_use","id":"t","name":"X","input":{value}}}]}}}}"#
        );
        let read = read(&[&line, &input]);
        all_views(&read);
        assert_eq!(read.session.records.len(), 2, "{:?}", read.faults());
        assert_eq!(read.session.records[0].len(), line.len());
        assert_eq!(shown(&read, &["hi"]), [1]);
    }
}

#[test]
fn a_line_that_never_closes_its_hundred_thousand_brackets_is_a_fault() {
    let read = read(&[r#"{"a":"#.repeat(100_000), say("a", "", "10:00:00", "hi")]);
    all_views(&read);
    assert_eq!(read.faults().len(), 1);
    assert_eq!(shown(&read, &["hi"]), [1]);
}

#[test]
fn a_line_of_64_megabytes_is_read_whole() {
    let long = "x".repeat(64 << 20);
    let line = say("a", "", "10:00:00", &long);
    let read = read(&[line.as_str(), &answer("b", "a", "10:00:01", "short")]);
    assert_eq!(read.session.records.len(), 2);
    assert_eq!(read.session.records[0].len(), line.len());
    assert_eq!(read.session.faults, []);
    let resumed = messages::messages(&read.session, &read.log, ClientProfile::Strict);
    let messages::ResumeResult::Messages(all) = resumed else {
        panic!("no messages")
    };
    assert!(all[0].content[0].json.len() > 64 << 20);
}

#[test]
fn a_hundred_thousand_keys_are_read() {
    let keys: String = (0..100_000).map(|n| format!(r#","key{n}":{n}"#)).collect();
    let line = format!(
        r#"{{"type":"user","uuid":"a","parentUuid":null,"timestamp":"2026-01-03T10:00:00.000Z"{keys},"message":{{"role":"user","content":"hi"}}}}"#
    );
    let read = read(&[line.as_str(), &answer("b", "a", "10:00:01", "short")]);
    all_views(&read);
    assert_eq!(read.session.records[0].len(), line.len());
    assert_eq!(shown(&read, &["hi", "short"]), [1, 1]);
}

#[test]
fn bytes_that_are_not_utf8_are_kept_and_shown_with_replacements() {
    let (before, behind) = (
        &br#"{"type":"user","uuid":"a","parentUuid":null,"timestamp":"2026-01-03T10:00:00.000Z","message":{"role":"user","content":"x"#[..],
        &br#"y"}}"#[..],
    );
    // A broken byte, a torn character, an overlong slash, a surrogate in UTF-8.
    for bad in [&b"\xff"[..], b"\xe6\x97", b"\xc0\xaf", b"\xed\xa0\x80"] {
        let line = [before, bad, behind, b"\n"].concat();
        let read = read_bytes(line.clone());
        all_views(&read);
        let record = &read.session.records[0];
        assert_eq!(
            read.session.bytes_of(&read.log, record)[..],
            line[..line.len() - 1]
        );
        assert_eq!(read.faults(), [(1, "not_utf8")], "{bad:?}");
        let replaced = format!("x{}y", String::from_utf8_lossy(bad));
        assert_eq!(shown(&read, &[&replaced]), [1], "{bad:?}");
    }
}

#[test]
fn bytes_that_are_not_utf8_in_a_key_do_not_hide_the_line() {
    let line = b"{\"type\":\"user\",\"k\xff\":1,\"uuid\":\"a\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n";
    let read = read_bytes(&line[..]);
    all_views(&read);
    assert_eq!(
        (read.session.records.len(), shown(&read, &["hi"])),
        (1, vec![1])
    );
}

#[test]
fn half_surrogate_pairs_and_numbers_beyond_any_range_are_read() {
    let line = r#"{"type":"user","uuid":"a","parentUuid":null,"timestamp":"2026-01-03T10:00:00.000Z","n":1e999,"m":-1e999,"o":123456789012345678901234567890,"message":{"role":"user","content":"a\ud83d b"}}"#;
    let reply = r#"{"type":"assistant","uuid":"b","parentUuid":"a","timestamp":"2026-01-03T10:00:01.000Z","message":{"id":"m","role":"assistant","model":"claude-opus-4-5","content":[{"type":"tool_use","id":"t","name":"X","input":{"n":1e999,"\udc00":1}}],"usage":{"input_tokens":1e999,"output_tokens":5}}}"#;
    let read = read(&[line, reply]);
    all_views(&read);
    assert_eq!(read.session.records.len(), 2, "{:?}", read.faults());
    assert_eq!(shown(&read, &["a\u{fffd} b"]), [1]);
    let messages::ResumeResult::Messages(all) =
        messages::messages(&read.session, &read.log, ClientProfile::Strict)
    else {
        panic!("no messages")
    };
    let refusals =
        unspool_testkit::validator::refusals_with_prompt(&messages::to_json(&all), "go on");
    assert_eq!(refusals, [""; 0]);
}

#[test]
fn clocks_that_jump_give_no_negative_duration_and_keep_the_order() {
    let times = [
        "2026-01-03T10:00:05.000Z",
        "2026-01-03T10:00:01.000Z",
        "9999-12-31T23:59:59.999Z",
        "2026-01-03T10:00:01.000Z",
        "+10000-01-01T00:00:00.000Z",
        "not a time",
    ];
    let mut lines = Vec::new();
    for (n, time) in times.iter().enumerate() {
        let parent = if n == 0 {
            String::new()
        } else {
            format!("u{}", n - 1)
        };
        let words = format!("word {n}");
        let line = if n % 2 == 0 {
            say(&format!("u{n}"), &parent, "10:00:00", &words)
        } else {
            answer(&format!("u{n}"), &parent, "10:00:00", &words)
        };
        lines.push(line.replace("2026-01-03T10:00:00.000Z", time));
    }
    let read = check_graph(
        &lines,
        &["word 0", "word 1", "word 2", "word 3", "word 4", "word 5"],
    );
    let rows = turns::turns(&read.session, &read.log, turns::TurnOptions::default());
    assert_eq!(rows.iter().map(|row| row.n).collect::<Vec<_>>(), [1, 2, 3]);
    for row in rows {
        assert!(
            row.duration_ms
                .is_none_or(|ms| ms < 400 * 365 * 24 * 3_600_000 * 30),
            "{row:?}"
        );
        let ends_early = row
            .ended
            .zip(row.at)
            .is_some_and(|(end, start)| end < start);
        assert!(!ends_early, "{row:?}");
    }
    let live = messages::live_lines(&read.session, ClientProfile::Strict);
    assert_eq!(live, [0, 1, 2, 3, 4, 5]);
}
