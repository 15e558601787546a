use super::*;
use crate::log::Log;
use crate::session::{Role, Session};
use crate::view::messages::{Resume, messages, to_json};
use crate::view::profile::Profile;

fn stamp(uuid: &str, parent: Option<&str>, ms: i64) -> Stamp {
    Stamp {
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

fn prompt(text: &str) -> Entry {
    Entry::Prompt {
        content: text.into(),
        id: "p1".into(),
        mode: Some("default".into()),
        source: None,
    }
}

fn reply(block: Value, stop: Option<&str>) -> Entry {
    Entry::Reply(Reply {
        message: "msg_1".into(),
        request: Some("req_1".into()),
        model: "claude-sonnet-4-5".into(),
        block,
        stop: stop.map(str::to_owned),
        sequence: None,
        usage: json!({"input_tokens": 3, "output_tokens": 5}),
    })
}

fn result(call: &str, source: &str) -> Entry {
    Entry::Result {
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
fn chain(entries: &[Entry]) -> Log {
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

fn sent(log: &Log, profile: Profile) -> String {
    let session = Session::from_log(log, Role::Main);
    assert_eq!(session.faults, [], "what we write is whole");
    assert!(session.unknown.is_empty(), "{:?}", session.unknown);
    match messages(&session, log, profile) {
        Resume::Messages(messages) => to_json(&messages),
        other => format!("{other:?}"),
    }
}

#[test]
fn every_kind_of_line_is_read_back_without_a_fault_and_without_an_unknown_field() {
    let all = [
        prompt("hi"),
        Entry::Snapshot {
            message: "m".into(),
            prompt: "m".into(),
            since: Time(0),
            files: vec![Backup {
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
        Entry::Progress {
            data: json!({"type": "bash_progress", "output": "x"}),
            call: "toolu_1".into(),
            id: "bash-progress-1".into(),
        },
        result("toolu_1", "00000000-0000-4000-8000-000000000003"),
        Entry::Meta {
            content: json!([{"type": "text", "text": "note"}]),
            id: Some("p1".into()),
            call: None,
        },
        Entry::Retry {
            status: Some(529),
            message: "busy".into(),
            request: None,
            wait: 500,
            attempt: 1,
            most: 10,
        },
        Entry::Synthetic {
            text: "API Error: busy".into(),
            error: Some("overloaded".into()),
            message: "x".into(),
            request: None,
        },
        Entry::Interrupt {
            tool: true,
            id: None,
        },
        Entry::TurnDuration { ms: 5, messages: 4 },
        Entry::LocalCommand("<command-name>/model</command-name>".into()),
        Entry::Boundary {
            trigger: "manual".into(),
            before: 9,
            after: 1,
            ms: 4,
            follows: None,
        },
        Entry::Summary {
            text: "so far".into(),
            id: None,
        },
        Entry::Queue {
            operation: "enqueue",
            content: Some("later".into()),
        },
        Entry::Title("mine".into()),
        Entry::Named {
            summary: "its".into(),
            leaf: "l".into(),
        },
        Entry::LastPrompt {
            text: "hi".into(),
            leaf: Some("l".into()),
            explicit: true,
        },
    ];
    let log = chain(&all);
    let session = Session::from_log(&log, Role::Main);
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
    let strict = sent(&log, Profile::Strict);
    for id in ["toolu_a", "toolu_b"] {
        assert_eq!(strict.matches(id).count(), 2, "{strict}");
    }
    for version in ["2.0.50", "2.1.29", "2.1.45", "2.1.100", "2.1.325"] {
        let profile = Profile::for_version(version).unwrap();
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
        Entry::Progress {
            data: json!({"type": "bash_progress"}),
            call: "toolu_a".into(),
            id: "b".into(),
        },
        result("toolu_a", "00000000-0000-4000-8000-000000000001"),
    ]);
    let old = sent(&log, Profile::for_version("2.0.50").unwrap());
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
        Entry::Boundary {
            trigger: "auto".into(),
            before: 100,
            after: 10,
            ms: 1,
            follows: Some("00000000-0000-4000-8000-000000000001".into()),
        },
        Entry::Summary {
            text: "what was said".into(),
            id: None,
        },
    ]);
    for profile in [Profile::Strict, Profile::NEWEST] {
        let sent = sent(&log, profile);
        assert!(
            sent.contains("what was said") && !sent.contains("old"),
            "{sent}"
        );
    }
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
