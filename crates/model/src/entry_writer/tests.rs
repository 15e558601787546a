use super::*;
use crate::log::Log;
use crate::session::{Session, TranscriptRole};
use crate::view::client_profile::ClientProfile;
use crate::view::messages::{ResumeResult, messages, to_json};

fn stamp(uuid: &str, parent: Option<&str>, ms: i64) -> EntryStamp {
    EntryStamp {
        uuid: uuid.into(),
        parent: parent.map(str::to_owned),
        time: Time(1_767_600_000_000 + ms),
        session: "s".into(),
        cwd: "/p".into(),
        version: "unspool-0.1".into(),
        entrypoint: "cli".into(),
        branch: Some("main".into()),
        slug: Some(slug(7)),
        agent: None,
    }
}

fn prompt(text: &str) -> NewEntry {
    NewEntry::Prompt {
        content: text.into(),
        id: "p1".into(),
        mode: Some("default".into()),
        source: None,
    }
}

fn reply(block: Value, stop: Option<&str>) -> NewEntry {
    NewEntry::Reply(ReplyBlock {
        message: "msg_1".into(),
        request: Some("req_1".into()),
        model: "claude-sonnet-4-5".into(),
        block,
        stop: stop.map(str::to_owned),
        sequence: None,
        usage: json!({"input_tokens": 3, "output_tokens": 5}),
    })
}

fn result(call: &str, source: &str) -> NewEntry {
    NewEntry::Result {
        call: call.into(),
        content: "ok".into(),
        is_error: None,
        result: json!({"stdout": "ok"}),
        source: Some(source.into()),
        id: Some("p1".into()),
        denial: None,
    }
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": "/p/a"}})
}

/// Lines in one chain, as the driver would stamp them.
fn chain(entries: &[NewEntry]) -> Log {
    let mut parent: Option<String> = None;
    let mut text = String::new();
    for (at, entry) in entries.iter().enumerate() {
        let uuid = format!("00000000-0000-4000-8000-{at:012}");
        let line = line(entry, &stamp(&uuid, parent.as_deref(), at as i64));
        assert!(!line.contains('\n'));
        text += &line;
        text.push('\n');
        if entry.is_parent() {
            parent = Some(uuid);
        }
    }
    Log::new(text)
}

fn sent(log: &Log, profile: ClientProfile) -> String {
    let session = Session::from_log(log, TranscriptRole::Main);
    assert_eq!(session.faults, [], "what we write is whole");
    assert!(session.unknown.is_empty(), "{:?}", session.unknown);
    match messages(&session, log, profile) {
        ResumeResult::Messages(messages) => to_json(&messages),
        other => format!("{other:?}"),
    }
}

#[test]
fn every_kind_of_line_is_read_back_without_a_fault_and_without_an_unknown_field() {
    let all = [
        prompt("hi"),
        NewEntry::Snapshot {
            message: "m".into(),
            prompt: "m".into(),
            since: Time(0),
            files: vec![NewFileBackup {
                path: "a.txt".into(),
                name: None,
                version: 1,
                time: Time(0),
            }],
            update: false,
        },
        reply(
            json!({"type": "text", "text": "line\nbreak \u{2028}"}),
            None,
        ),
        reply(call("toolu_1"), Some("tool_use")),
        NewEntry::Progress {
            data: json!({"type": "bash_progress", "output": "x"}),
            call: "toolu_1".into(),
            id: "bash-progress-1".into(),
        },
        result("toolu_1", "00000000-0000-4000-8000-000000000003"),
        NewEntry::Meta {
            content: json!([{"type": "text", "text": "note"}]),
            id: Some("p1".into()),
            call: None,
        },
        NewEntry::Retry {
            status: Some(529),
            message: "busy".into(),
            request: None,
            wait: 500,
            attempt: 1,
            most: 10,
        },
        NewEntry::Synthetic {
            text: "API Error: busy".into(),
            error: Some("overloaded".into()),
            message: "x".into(),
            request: None,
        },
        NewEntry::Interrupt {
            tool: true,
            id: None,
        },
        NewEntry::TurnDuration { ms: 5, messages: 4 },
        NewEntry::LocalCommand("<command-name>/model</command-name>".into()),
        NewEntry::Boundary {
            trigger: "manual".into(),
            before: 9,
            after: 1,
            ms: 4,
            follows: None,
            kept: None,
        },
        NewEntry::Summary {
            text: "so far".into(),
            id: None,
            uuid: None,
        },
        NewEntry::Queue {
            operation: "enqueue",
            content: Some("later".into()),
        },
        NewEntry::Title("mine".into()),
        NewEntry::Named {
            summary: "its".into(),
            leaf: "l".into(),
        },
        NewEntry::LastPrompt {
            text: "hi".into(),
            leaf: Some("l".into()),
            explicit: true,
        },
    ];
    let log = chain(&all);
    let session = Session::from_log(&log, TranscriptRole::Main);
    assert_eq!(session.faults, []);
    assert!(session.unknown.is_empty(), "{:?}", session.unknown);
    assert_eq!(session.records.len(), all.len());
    assert_eq!(session.given_title(), Some("mine"));
}

#[test]
fn parallel_results_are_a_chain_that_every_version_reads_the_same() {
    let log = chain(&[
        prompt("two"),
        reply(call("toolu_a"), None),
        reply(call("toolu_b"), Some("tool_use")),
        result("toolu_b", "00000000-0000-4000-8000-000000000002"),
        result("toolu_a", "00000000-0000-4000-8000-000000000001"),
        prompt("go on"),
    ]);
    let strict = sent(&log, ClientProfile::Strict);
    for id in ["toolu_a", "toolu_b"] {
        assert_eq!(strict.matches(id).count(), 2, "{strict}");
    }
    for version in ["2.0.50", "2.1.29", "2.1.45", "2.1.100", "2.1.325"] {
        let profile = ClientProfile::for_version(version).unwrap();
        let other = sent(&log, profile);
        for id in ["toolu_a", "toolu_b"] {
            assert_eq!(other.matches(id).count(), 2, "{version}: {other}");
        }
    }
}

#[test]
fn a_progress_line_is_no_link_so_that_old_versions_do_not_cut_there() {
    let log = chain(&[
        prompt("run"),
        reply(call("toolu_a"), Some("tool_use")),
        NewEntry::Progress {
            data: json!({"type": "bash_progress"}),
            call: "toolu_a".into(),
            id: "b".into(),
        },
        result("toolu_a", "00000000-0000-4000-8000-000000000001"),
    ]);
    let old = sent(&log, ClientProfile::for_version("2.0.50").unwrap());
    assert!(old.contains("run") && old.contains("tool_result"), "{old}");
}

#[test]
fn nothing_before_a_boundary_is_sent_and_the_summary_is() {
    let log = chain(&[
        prompt("old words"),
        reply(
            json!({"type": "text", "text": "old answer"}),
            Some("end_turn"),
        ),
        NewEntry::Boundary {
            trigger: "auto".into(),
            before: 100,
            after: 10,
            ms: 1,
            follows: Some("00000000-0000-4000-8000-000000000001".into()),
            kept: None,
        },
        NewEntry::Summary {
            text: "what was said".into(),
            id: None,
            uuid: None,
        },
    ]);
    for profile in [ClientProfile::Strict, ClientProfile::NEWEST] {
        let sent = sent(&log, profile);
        assert!(
            sent.contains("what was said") && !sent.contains("old"),
            "{sent}"
        );
    }
}

fn said(message: &str, words: &str, tokens: u64) -> NewEntry {
    NewEntry::Reply(ReplyBlock {
        message: message.into(),
        request: None,
        model: "claude-sonnet-4-5".into(),
        block: json!({"type": "text", "text": words}),
        stop: Some("end_turn".into()),
        sequence: None,
        usage: json!({"input_tokens": tokens, "output_tokens": 5}),
    })
}

fn id(at: usize) -> String {
    format!("00000000-0000-4000-8000-{at:012}")
}

/// A conversation whose last lines a summary leaves standing.
fn with_tail() -> Vec<NewEntry> {
    vec![
        prompt("old words"),
        said("msg_1", "old answer", 50_000),
        prompt("newer words"),
        said("msg_2", "newest answer", 60_000),
        NewEntry::TurnDuration { ms: 5, messages: 4 },
        NewEntry::Boundary {
            trigger: "auto".into(),
            before: 60_000,
            after: 10,
            ms: 1,
            follows: Some(id(4)),
            kept: Some(PreservedTail {
                anchor: id(6),
                uuids: vec![id(3), id(4)],
            }),
        },
        NewEntry::Summary {
            text: "what was said".into(),
            id: None,
            uuid: Some(id(6)),
        },
        prompt("and now"),
    ]
}

#[test]
fn what_a_summary_keeps_is_said_behind_it_and_old_versions_go_on_without_it() {
    let log = chain(&with_tail());
    for version in [
        "2.0.50", "2.1.29", "2.1.45", "2.1.100", "2.1.200", "2.1.325",
    ] {
        let sent = sent(&log, ClientProfile::for_version(version).unwrap());
        let found = ["what was said", "newest answer", "and now"].map(|words| sent.find(words));
        assert!(found[0] < found[2], "{version}: {sent}");
        assert!(!sent.contains("old answer"), "{version}: {sent}");
        if found[1].is_some() {
            assert!(found[0] < found[1] && found[1] < found[2], "{version}");
        }
    }
    for profile in [ClientProfile::Strict, ClientProfile::NEWEST] {
        let sent = sent(&log, profile);
        let roles: Vec<&str> = sent.matches("\"role\":\"assistant\"").collect();
        assert_eq!(roles.len(), 1, "{sent}");
        assert!(sent.contains("newest answer"), "{sent}");
    }
}

#[test]
fn a_kept_reply_does_not_fill_the_context_as_it_did_before_the_summary() {
    let session = Session::from_log(&chain(&with_tail()), TranscriptRole::Main);
    let filled = crate::view::context_window::used_tokens(&session);
    assert!(filled < 2_000, "{filled}");
}

#[test]
fn a_tail_begins_with_a_reply_and_holds_the_calls_of_its_results() {
    let log = chain(&[
        prompt("one"),
        said("msg_0", "first", 5),
        prompt("two"),
        reply(call("toolu_a"), None),
        reply(call("toolu_b"), Some("tool_use")),
        result("toolu_b", "x"),
        result("toolu_a", "x"),
        said("msg_9", "done", 5),
    ]);
    let session = Session::from_log(&log, TranscriptRole::Main);
    let tail = |most, alone| crate::view::context_window::tail(&session, most, alone);
    assert_eq!(tail(100_000, 0), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(tail(0, 100_000), [7], "the last reply alone");
    assert_eq!(tail(0, 1), [0; 0]);
    let two: u64 = session.records[3..]
        .iter()
        .map(|record| record.len() as u64 / 4)
        .sum();
    assert_eq!(tail(two, 0), [3, 4, 5, 6, 7]);
    assert_eq!(tail(two - 1, 0), [7]);
    // What was kept once is not kept again.
    let session = Session::from_log(&chain(&with_tail()), TranscriptRole::Main);
    assert_eq!(
        crate::view::context_window::tail(&session, 100_000, 0),
        [0; 0]
    );
}

#[test]
fn a_search_of_the_api_is_sent_back_whole_or_in_words() {
    let asked = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
        {"type": "web_search_result", "url": "https://example.com", "title": "T", "encrypted_content": "sealed"}]});
    let said = json!({"type": "text", "text": "so it is"});
    let log = chain(&[
        prompt("search"),
        reply(asked.clone(), None),
        reply(found.clone(), None),
        reply(said.clone(), Some("end_turn")),
        prompt("go on"),
    ]);
    let whole = sent(&log, ClientProfile::Strict);
    assert!(
        whole.contains("\"server_tool_use\"") && whole.contains("sealed"),
        "{whole}"
    );
    for half in [&asked, &found] {
        let log = chain(&[
            prompt("search"),
            reply(half.clone(), None),
            reply(said.clone(), Some("end_turn")),
            prompt("go on"),
        ]);
        let sent = sent(&log, ClientProfile::Strict);
        assert!(
            sent.contains("so it is") && !sent.contains("srvtoolu"),
            "{sent}"
        );
    }
    // Said twice, it is a search once.
    let again = |block: &Value| match reply(block.clone(), None) {
        NewEntry::Reply(reply) => NewEntry::Reply(ReplyBlock {
            message: "msg_2".into(),
            ..reply
        }),
        other => other,
    };
    let log = chain(&[
        prompt("search"),
        reply(asked.clone(), None),
        reply(found.clone(), None),
        prompt("again"),
        again(&asked),
        again(&found),
        prompt("go on"),
    ]);
    let session = Session::from_log(&log, TranscriptRole::Main);
    let ResumeResult::Messages(messages) = messages(&session, &log, ClientProfile::Strict) else {
        panic!("there is a conversation");
    };
    let sent = to_json(&messages);
    assert_eq!(sent.matches("\"server_tool_use\"").count(), 1, "{sent}");
}

#[test]
fn a_sub_agents_result_has_no_second_half() {
    let mut stamp = stamp("u", None, 0);
    stamp.agent = Some("a1".into());
    let line = line(&result("toolu_a", "x"), &stamp);
    assert!(line.contains("\"agentId\":\"a1\"") && line.contains("\"isSidechain\":true"));
    assert!(!line.contains("toolUseResult"));
}

#[test]
fn times_rise_even_if_the_clock_does_not() {
    assert_eq!(rising(Time(5), None), Time(5));
    assert_eq!(rising(Time(5), Some(Time(4))), Time(5));
    assert_eq!(rising(Time(5), Some(Time(5))), Time(6));
    assert_eq!(rising(Time(5), Some(Time(9))), Time(10));
}

#[test]
fn a_session_is_named_by_three_words() {
    let names: std::collections::HashSet<String> = (0..32768).map(slug).collect();
    assert_eq!(names.len(), 32768);
    assert!(names.iter().all(|name| name.split('-').count() == 3));
}
