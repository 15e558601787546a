//! Rules about which line follows which, and which is live (`docs/rules.md`).

use unspool_model::graph;
use unspool_model::log::Log;
use unspool_model::price::Prices;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::check;
use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::messages::{self, LiveLines};
use unspool_model::view::session_usage::{SessionFiles, session_usage};

use crate::make::{Read, read, reply, system, text, user};

fn say(uuid: &str, parent: &str, at: &str) -> String {
    user(uuid, parent, at, &format!("\"{uuid}\""))
}

fn answer(uuid: &str, parent: &str, at: &str) -> String {
    reply(uuid, parent, at, uuid, &format!("[{}]", text(uuid)))
}

fn last_prompt(leaf: &str, explicit: bool) -> String {
    format!(
        r#"{{"type":"last-prompt","lastPrompt":"x","leafUuid":"{leaf}","explicit":{explicit},"sessionId":"s"}}"#
    )
}

/// The uuids of the lines that a client reads.
fn live(read: &Read, profile: ClientProfile) -> Vec<String> {
    let lines = messages::live_lines(&read.session, profile);
    let uuid = |at: &u32| read.session.records[*at as usize].uuid.as_ref();
    lines
        .iter()
        .filter_map(uuid)
        .map(ToString::to_string)
        .collect()
}

#[test]
fn the_last_line_in_the_file_is_live_since_2_1_200_and_the_newest_before() {
    let read = read(&[
        say("a", "", "10:00:00"),
        answer("b", "a", "10:00:09"),
        answer("c", "a", "10:00:05"),
    ]);
    for profile in [
        ClientProfile::client("2.1.200"),
        ClientProfile::client("2.1.325"),
        ClientProfile::Strict,
    ] {
        assert_eq!(live(&read, profile), ["a", "c"], "{}", profile.name());
    }
    for profile in [
        ClientProfile::client("2.0.50"),
        ClientProfile::client("2.1.45"),
        ClientProfile::client("2.1.100"),
    ] {
        assert_eq!(live(&read, profile), ["a", "b"], "{}", profile.name());
    }
}

#[test]
fn on_a_tie_of_times_older_clients_lose_the_later_line() {
    let read = read(&[
        say("a", "", "10:00:00"),
        answer("b", "a", "10:00:05"),
        say("c", "b", "10:00:05"),
    ]);
    assert_eq!(live(&read, ClientProfile::client("2.1.45")), ["a", "b"]);
    assert_eq!(
        live(&read, ClientProfile::client("2.1.325")),
        ["a", "b", "c"]
    );
    assert_eq!(live(&read, ClientProfile::Strict), ["a", "b", "c"]);
}

#[test]
fn a_last_prompt_names_the_live_branch_unless_it_is_an_ancestor() {
    let lines = [
        say("a", "", "10:00:00"),
        answer("b", "a", "10:00:01"),
        say("c", "b", "10:00:02"),
        say("d", "b", "10:00:03"),
    ];
    let with = |leaf: &str, explicit: bool| {
        let mut lines = lines.to_vec();
        lines.push(last_prompt(leaf, explicit));
        live(&read(&lines), ClientProfile::client("2.1.325"))
    };
    assert_eq!(with("c", false), ["a", "b", "c"]);
    assert_eq!(with("b", false), ["a", "b", "d"], "an ancestor");
    assert_eq!(with("b", true), ["a", "b"], "said expressly");
    assert_eq!(with("nowhere", false), ["a", "b", "d"], "unknown");
    let zero = "00000000-0000-0000-0000-000000000000";
    assert_eq!(with(zero, true), ["a", "b", "d"], "zero");
}

#[test]
fn an_unknown_parent_cuts_for_older_clients_and_is_healed_and_reported_by_us() {
    let read = read(&[
        say("a", "", "10:00:00"),
        answer("b", "gone", "10:00:01"),
        say("c", "b", "10:00:02"),
    ]);
    for profile in [
        ClientProfile::client("2.0.50"),
        ClientProfile::client("2.1.45"),
    ] {
        assert_eq!(live(&read, profile), ["b", "c"], "{}", profile.name());
    }
    for profile in [
        ClientProfile::client("2.1.100"),
        ClientProfile::client("2.1.325"),
        ClientProfile::Strict,
    ] {
        assert_eq!(live(&read, profile), ["a", "b", "c"], "{}", profile.name());
    }
    let faults = check::faults(&read.session);
    let kinds: Vec<_> = faults
        .iter()
        .map(|fault| (fault.line, fault.kind.name()))
        .collect();
    assert_eq!(kinds, [(2, "missing_parent")]);
}

#[test]
fn a_circle_is_cut_at_the_line_whose_parent_comes_later() {
    let read = read(&[
        say("a", "", "10:00:00"),
        answer("b", "d", "10:00:01"),
        say("c", "b", "10:00:02"),
        answer("d", "c", "10:00:03"),
    ]);
    let links = graph::links(&read.session);
    assert_eq!(links.cycles, [1]);
    assert_eq!([links.above(2), links.above(3)], [Some(1), Some(2)]);
    let hangs = |profile| messages::outcome(&read.session, profile) == LiveLines::Hangs;
    assert!(hangs(ClientProfile::client("2.0.50")) && !hangs(ClientProfile::client("2.1.325")));
}

#[test]
fn what_a_compaction_preserved_stays_live_behind_its_summary() {
    let boundary = system(
        "k",
        "",
        "10:00:04",
        "compact_boundary",
        r#","logicalParentUuid":"d","content":"Conversation compacted","compactMetadata":{"trigger":"auto","preTokens":9,"preservedMessages":{"anchorUuid":"s","uuids":["c","d"],"allUuids":["c","d"]},"preservedSegment":{"headUuid":"c","anchorUuid":"s","tailUuid":"d"}}"#,
    );
    let summary = user("s", "k", "10:00:05", "\"so far\"").replace(
        "\"isSidechain\":false",
        "\"isSidechain\":false,\"isCompactSummary\":true,\"isVisibleInTranscriptOnly\":true",
    );
    let read = read(&[
        say("a", "", "10:00:00"),
        answer("b", "a", "10:00:01"),
        say("c", "b", "10:00:02"),
        answer("d", "c", "10:00:03"),
        boundary,
        summary,
        say("e", "s", "10:00:06"),
    ]);
    for profile in [ClientProfile::client("2.1.325"), ClientProfile::Strict] {
        let said: Vec<_> = live(&read, profile)
            .into_iter()
            .filter(|id| id != "k")
            .collect();
        assert_eq!(said, ["s", "c", "d", "e"], "{}", profile.name());
    }
    let said: Vec<_> = live(&read, ClientProfile::client("2.1.45"))
        .into_iter()
        .filter(|id| id != "k")
        .collect();
    assert_eq!(said, ["s", "e"]);
}

#[test]
fn a_small_compaction_is_a_compaction_and_ends_nothing() {
    let small = system(
        "k",
        "b",
        "10:00:02",
        "microcompact_boundary",
        r#","content":"Context microcompacted","microcompactMetadata":{"trigger":"auto","preTokens":9}"#,
    );
    let read = read(&[
        say("a", "", "10:00:00"),
        answer("b", "a", "10:00:01"),
        small,
        say("c", "k", "10:00:03"),
    ]);
    let said: Vec<_> = live(&read, ClientProfile::Strict)
        .into_iter()
        .filter(|id| id != "k")
        .collect();
    assert_eq!(said, ["a", "b", "c"]);
    assert_eq!(read.session.unknown.len(), 0, "{:?}", read.session.unknown);
}

#[test]
fn a_message_in_two_files_counts_once() {
    let text = unspool_testkit::script::jsonl("you: hi\nclaude: hello");
    let log = Log::new(text);
    let (main, agent) = (
        Session::from_log(&log, TranscriptRole::Main),
        Session::from_log(&log, TranscriptRole::Agent),
    );
    assert!(main.usage().output > 0);
    let agents = [&agent];
    let files = SessionFiles {
        agents: &agents,
        ..SessionFiles::alone(&main)
    };
    assert_eq!(
        session_usage(&files, Prices::bundled()).all().usage,
        main.usage()
    );
}

#[test]
fn a_leaf_named_before_a_compaction_does_not_take_the_conversation_back() {
    let boundary = r#","logicalParentUuid":"b","content":"Conversation compacted","compactMetadata":{"trigger":"auto","preTokens":9}"#;
    let read = read(&[
        say("a", "", "10:00:00"),
        answer("b", "a", "10:00:01"),
        last_prompt("b", false),
        system("c", "", "10:00:02", "compact_boundary", boundary),
        say("d", "c", "10:00:03"),
    ]);
    for profile in [
        ClientProfile::client("2.1.200"),
        ClientProfile::client("2.1.325"),
        ClientProfile::Strict,
    ] {
        assert_eq!(live(&read, profile), ["c", "d"], "{profile:?}");
    }
}

#[test]
fn a_call_that_runs_at_the_api_needs_no_result_of_a_tool() {
    let searched = r#"[{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}]"#;
    let read = read(&[
        say("a", "", "10:00:00"),
        reply("b", "a", "10:00:01", "m", searched),
        say("c", "b", "10:00:02"),
    ]);
    assert_eq!(check::faults(&read.session), []);
}
