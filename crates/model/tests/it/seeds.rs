//! Every example of the five documents this product grew from, completed to whole lines.
//!
//! The fixtures stand in `fixtures/seeds/<document>-<section>-<name>.jsonl`. A table says what
//! each line must be read as; tests below it check the fields that the documents name.
//! `docs/seeds.md` tells where we read them differently than the documents say, and why.

use std::collections::BTreeSet;
use std::path::PathBuf;

use unspool_model::entry::{Entry, LineDetail, LineKind, ParentId};
use unspool_model::id::Id;
use unspool_model::json;
use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::time::Time;
use unspool_model::usage::Usage;
use unspool_model::view::tool_outcome::{FileChange, ToolCallOutcome};
use unspool_model::view::transcript::{self, ItemBody};
use unspool_model::view::turn_selection::TurnSelection;
use unspool_model::view::turns;

use crate::make::{self, Read, block_names, kind_name, only};

/// Label, kind, what a user line is (empty for other lines), and its blocks.
type Line = (
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
);

const SNAPSHOT: Line = ("file-history-snapshot", "files", "", &[]);
const RESULT: Line = ("user", "user", "tool_result", &["tool_result"]);
const PROMPT: Line = ("user", "user", "prompt", &["text"]);
const SAYS: Line = ("assistant", "assistant", "", &["text"]);
const CALLS: Line = ("assistant", "assistant", "", &["tool_use"]);
const THINKS: Line = ("assistant", "assistant", "", &["thinking"]);
const SUMMARY: Line = ("summary", "summary", "", &[]);
const BOUNDARY: Line = ("system/compact_boundary", "compact", "", &[]);
const DURATION: Line = ("system/turn_duration", "duration", "", &[]);
const LOCAL: Line = ("system/local_command", "local", "", &[]);
const ENQUEUE: Line = ("queue-operation/enqueue", "queue", "", &[]);
const DEQUEUE: Line = ("queue-operation/dequeue", "queue", "", &[]);
const REMOVE: Line = ("queue-operation/remove", "queue", "", &[]);

const FIXTURES: &[(&str, &[Line])] = &[
    ("000-3.2-human-input", &[PROMPT]),
    ("000-3.2-tool-result", &[RESULT]),
    ("000-3.2-file-read-result", &[RESULT]),
    ("000-3.3-assistant", &[SAYS]),
    (
        "000-3.3-every-field",
        &[(
            "assistant",
            "assistant",
            "",
            &["text", "tool_use", "thinking"],
        )],
    ),
    ("000-3.4-compact-boundary", &[BOUNDARY]),
    ("000-3.4-local-command", &[LOCAL, LOCAL]),
    ("000-3.5-queue-operation", &[ENQUEUE, REMOVE]),
    ("000-3.6-file-history-snapshot", &[SNAPSHOT]),
    ("000-3.7-summary", &[SUMMARY]),
    ("000-6-streaming-pattern", &[THINKS, SAYS, CALLS]),
    ("000-7.1-synthetic", &[SAYS]),
    ("000-7.7-error-result", &[RESULT]),
    ("001-2-user", &[PROMPT]),
    ("001-2-user-without-session", &[PROMPT]),
    ("001-2-assistant", &[SAYS]),
    ("001-2-tool-result", &[RESULT]),
    ("001-2-meta-user", &[("user", "user", "meta", &["text"])]),
    ("001-2-meta-assistant", &[SAYS]),
    (
        "001-3-blocks",
        &[
            ("assistant", "assistant", "", &["text", "tool_use"]),
            RESULT,
        ],
    ),
    ("001-5-example", &[PROMPT, CALLS, RESULT, SAYS]),
    ("001-10-normal-first-line", &[SNAPSHOT]),
    (
        "001-10-continuation",
        &[
            ("user", "user", "interrupt", &["text"]),
            ("user", "user", "plan", &["text"]),
        ],
    ),
    ("002-3-envelope", &[PROMPT]),
    ("002-4.1.1-direct-input", &[PROMPT]),
    (
        "002-4.1.2-expansion",
        &[("user", "user", "meta", &["text"])],
    ),
    ("002-4.1.3-tool-result", &[RESULT]),
    ("002-4.2.1-text", &[SAYS]),
    ("002-4.2.2-tool-use", &[CALLS]),
    ("002-4.2.3-thinking", &[THINKS]),
    ("002-4.3.1-compact-boundary", &[BOUNDARY]),
    ("002-4.3.2-turn-duration", &[DURATION]),
    ("002-4.3.3-local-command", &[LOCAL]),
    ("002-4.4-summary", &[SUMMARY]),
    (
        "002-4.5-progress",
        &[
            ("progress/bash_progress", "progress", "", &[]),
            ("progress/agent_progress", "progress", "", &[]),
            ("progress/hook_progress", "progress", "", &[]),
            ("progress/query_update", "progress", "", &[]),
            ("progress/search_results_received", "progress", "", &[]),
            ("progress/waiting_for_task", "progress", "", &[]),
        ],
    ),
    ("002-4.6-file-history-snapshot", &[SNAPSHOT, SNAPSHOT]),
    ("002-4.7-queue-operation", &[DEQUEUE]),
    ("002-4.8-pr-link", &[("pr-link", "pr", "", &[])]),
    (
        "002-5-parent-chain",
        &[
            ("user", "user", "command", &["text"]),
            ("user", "user", "meta", &["text"]),
            CALLS,
            CALLS,
            RESULT,
            RESULT,
            SAYS,
        ],
    ),
    ("002-7.1-call-and-result", &[CALLS, RESULT]),
    (
        "002-7.3-tool-use-result",
        &[
            CALLS, RESULT, CALLS, RESULT, CALLS, RESULT, CALLS, RESULT, CALLS, RESULT, CALLS,
            RESULT, CALLS, RESULT,
        ],
    ),
    ("002-8-parent", &[PROMPT, CALLS, RESULT, SAYS]),
    (
        "002-8-agent-ab97f57",
        &[PROMPT, CALLS, RESULT, CALLS, RESULT, SAYS],
    ),
    (
        "002-9-compaction",
        &[PROMPT, SAYS, SUMMARY, BOUNDARY, PROMPT, SAYS],
    ),
    ("002-10-splitting", &[PROMPT, THINKS, SAYS, CALLS, CALLS]),
    (
        "002-11-full-conversation",
        &[SNAPSHOT, PROMPT, CALLS, RESULT, SAYS, DURATION],
    ),
    ("003-files-jsonl", &[DEQUEUE, SNAPSHOT, PROMPT, SAYS]),
    ("003-types.1-queue-operation", &[DEQUEUE]),
    ("003-types.2-file-history-snapshot", &[SNAPSHOT]),
    ("003-types.3.1-prompt", &[PROMPT]),
    ("003-types.3.2-tool-result", &[RESULT]),
    (
        "003-types.4-assistant",
        &[(
            "assistant",
            "assistant",
            "",
            &["thinking", "text", "tool_use"],
        )],
    ),
    ("003-chain-example", &[PROMPT, CALLS, RESULT, SAYS]),
    ("003-rounds-tool-loop", &[CALLS, RESULT]),
    (
        "003-inputs.1-ide-selection",
        &[("user", "user", "prompt", &["text", "text"])],
    ),
    (
        "003-inputs.2-ide-opened-file",
        &[("user", "user", "prompt", &["text", "text"])],
    ),
    ("003-inputs.3-tool-result", &[RESULT]),
    ("004-example-user", &[PROMPT]),
    (
        "004-example-assistant",
        &[(
            "assistant",
            "assistant",
            "",
            &["thinking", "text", "tool_use"],
        )],
    ),
    (
        "004-example-progress",
        &[("progress/hook_progress", "progress", "", &[])],
    ),
    ("004-example-summary", &[SUMMARY]),
    (
        "004-example-system",
        &[("system/stop_hook_summary", "hooks", "", &[])],
    ),
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/seeds")
}

fn bytes(fixture: &str) -> Vec<u8> {
    std::fs::read(folder().join(format!("{fixture}.jsonl"))).unwrap()
}

fn lines(fixture: &str) -> Vec<String> {
    let text = String::from_utf8(bytes(fixture)).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn entry(fixture: &str) -> Entry {
    only(&lines(fixture)[0])
}

fn session(fixture: &str) -> Read {
    make::read_bytes(bytes(fixture))
}

fn usage(fixture: &str) -> Usage {
    entry(fixture).message.usage.unwrap()
}

#[test]
fn every_example_is_read_as_what_its_document_says() {
    for (fixture, wanted) in FIXTURES {
        let lines = lines(fixture);
        assert_eq!(lines.len(), wanted.len(), "{fixture}");
        for (line, (label, kind, input, blocks)) in lines.iter().zip(*wanted) {
            let entry = only(line);
            let got_input = match entry.kind {
                LineKind::User => entry.input.name(),
                _ => "",
            };
            let got = (
                entry.label.as_ref(),
                kind_name(&entry.kind),
                got_input,
                block_names(&entry),
            );
            assert_eq!(got, (*label, *kind, *input, blocks.to_vec()), "{fixture}");
        }
    }
}

#[test]
fn every_fixture_stands_in_the_table() {
    let files = std::fs::read_dir(folder()).unwrap();
    let on_disk: BTreeSet<String> = files
        .map(|file| file.unwrap().path())
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    let in_table: BTreeSet<String> = FIXTURES
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    assert_eq!(on_disk, in_table);
}

#[test]
fn no_example_holds_a_fault_or_something_never_seen() {
    for (fixture, _) in FIXTURES {
        let read = session(fixture);
        assert_eq!(read.faults(), [], "{fixture}");
        assert!(
            read.session.unknown.is_empty(),
            "{fixture}: {:?}",
            read.session.unknown
        );
    }
}

#[test]
fn reading_an_example_changes_no_byte_of_it() {
    for (fixture, _) in FIXTURES {
        let log = Log::new(bytes(fixture));
        let same = log.edited(|line| Some(line.bytes.into()));
        assert_eq!(same.as_bytes(), bytes(fixture), "{fixture}");
    }
}

// --- 000 ---

#[test]
fn seed_000_3_2_a_prompt_has_its_envelope() {
    let entry = entry("000-3.2-human-input");
    assert_eq!(
        entry.uuid,
        Some(Id::new("1871e297-eb4f-4f4c-900b-428c744c92e1"))
    );
    assert_eq!(entry.parent, ParentId::Null);
    assert_eq!(
        entry.session,
        Some(Id::new("945090a1-2de6-48c4-8d29-840ab1014598"))
    );
    assert_eq!(entry.version.as_deref(), Some("2.0.50"));
    assert_eq!(
        entry.head.as_deref(),
        Some("Hello, please help me with the parser")
    );
}

#[test]
fn seed_000_3_2_a_result_names_its_call_and_opens_nothing() {
    let entry = entry("000-3.2-tool-result");
    assert_eq!(entry.blocks[0].id(), Some("toolu_01WezRSpdwzjzGUPH6KRAQEL"));
    assert!(!entry.input.opens_turn() && !entry.blocks[0].is_error);
}

#[test]
fn seed_000_3_1_the_envelope_is_kept_by_the_session() {
    let read = session("000-3.2-file-read-result");
    assert_eq!(read.session.cwds.texts(), ["/home/user/project"]);
    assert_eq!(read.session.versions.texts(), ["2.0.50"]);
    assert_eq!(read.session.branch.as_deref(), Some("main"));
    assert_eq!(read.session.first, Time::parse("2025-12-02T09:00:02.000Z"));
}

#[test]
fn seed_000_3_3_a_reply_has_its_message_id_model_stop_reason_and_tokens() {
    let head = entry("000-3.3-assistant").message;
    assert_eq!(head.id.as_deref(), Some("msg_01EndcwzueLA7JeV116WkdWL"));
    assert_eq!(head.model.as_deref(), Some("claude-sonnet-4-5-20250929"));
    assert_eq!(head.stop.as_deref(), Some("end_turn"));
    assert_eq!(
        head.usage,
        Some(Usage {
            input: 2,
            output: 649,
            cache_read: 12_392,
            cache_write_5m: 150_327,
            cache_write_1h: 0,
        })
    );
}

#[test]
fn seed_000_3_3_cache_writes_are_split_when_the_line_splits_them() {
    let usage = usage("000-3.3-every-field");
    assert_eq!((usage.cache_write_5m, usage.cache_write_1h), (10, 20));
}

#[test]
fn seed_000_3_4_a_boundary_says_its_trigger_tokens_and_logical_parent() {
    let entry = entry("000-3.4-compact-boundary");
    assert_eq!(
        entry.logical_parent,
        Some(Id::new("cdec4352-21af-4555-97f7-13c30944da82"))
    );
    assert_eq!(entry.kind, LineKind::CompactBoundary);
    let Some(LineDetail::Boundary(boundary)) = entry.detail else {
        panic!("not a boundary")
    };
    assert_eq!(
        (boundary.trigger.as_deref(), boundary.before),
        (Some("manual"), Some(166_503))
    );
}

#[test]
fn seed_000_3_5_a_queue_operation_keeps_what_was_typed() {
    for line in lines("000-3.5-queue-operation") {
        let Some(LineDetail::Queue { text, .. }) = only(&line).detail else {
            panic!("not a queue operation")
        };
        assert_eq!(text.unwrap().as_str(), "and the tests too");
    }
}

#[test]
fn seed_000_3_7_a_summary_titles_the_session_that_has_its_leaf() {
    let mut both = bytes("000-3.7-summary");
    both.extend(bytes("000-3.2-human-input"));
    let read = make::read_bytes(both);
    assert_eq!(
        read.session.title(&Default::default()).as_deref(),
        Some("Codebase Overview: TypeScript Codex Architecture")
    );
    let alone = session("000-3.7-summary");
    assert_eq!(alone.session.title(&Default::default()), None);
    assert_eq!(alone.session.foreign_titles().count(), 1);
}

#[test]
fn seed_000_6_lines_of_one_message_are_pieces_and_all_are_kept() {
    let read = session("000-6-streaming-pattern");
    let message = read.message("msg_streamed");
    assert_eq!(read.content(message), ["thinking", "text", "tool_use"]);
    let usage = read.session.usage_of(message);
    assert_eq!((usage.output, usage.input), (480, 2));
    assert_eq!(usage.cache_write_5m, 900);
    assert_eq!(
        message.stop().map(|stop| read.session.text(stop)),
        Some("tool_use")
    );
    assert_eq!(read.session.usage(), usage);
}

#[test]
fn seed_000_7_1_a_synthetic_reply_is_marked_and_counts_nothing() {
    let read = session("000-7.1-synthetic");
    assert!(read.message("msg_syn").synthetic);
    assert_eq!(read.session.recent_output, None);
    assert!(read.session.models.is_empty());
}

#[test]
fn seed_000_7_7_an_error_result_marks_its_call() {
    let mut both = bytes("000-6-streaming-pattern");
    both.extend(bytes("000-7.7-error-result"));
    let read = make::read_bytes(both);
    let result = read.call("toolu_01A").result.as_ref().unwrap();
    assert!(result.is_error);
}

// --- 001 ---

fn turn_rows(read: &Read) -> Vec<turns::TurnRow> {
    turns::turns(&read.session, &read.log, turns::TurnOptions::default())
}

#[test]
fn seed_001_2_lines_without_type_or_message_are_read_all_the_same() {
    let user = entry("001-2-user");
    assert_eq!(
        (user.session, user.at, user.head.as_deref()),
        (
            Some(Id::new("abc-123")),
            Time::parse("2025-01-15T10:00:00Z"),
            Some("hello")
        )
    );
    let assistant = entry("001-2-assistant");
    assert_eq!(assistant.at, Time::parse("2025-01-15T10:00:05Z"));
    assert_eq!(assistant.message.id.as_deref(), Some("m1"));
    let usage = assistant.message.usage.unwrap();
    assert_eq!((usage.input, usage.output, usage.cache_read), (100, 50, 20));
}

#[test]
fn seed_001_2_meta_lines_are_kept_and_marked() {
    assert!(entry("001-2-meta-user").meta);
    let assistant = entry("001-2-meta-assistant");
    assert!(assistant.meta);
    assert_eq!(assistant.head.as_deref(), Some("meta response"));
}

#[test]
fn seed_001_5_the_example_is_one_turn_with_two_messages_and_one_call() {
    let read = session("001-5-example");
    let session = &read.session;
    assert_eq!(
        (
            session.turns.len(),
            session.messages.len(),
            session.calls.len()
        ),
        (1, 2, 1)
    );
    assert_eq!(session.turns_by_record(), [Some(0); 4]);
    let rows = turn_rows(&read);
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].messages.len(), rows[0].calls.len()), (2, 1));
    assert_eq!(
        (rows[0].prompt.as_str(), rows[0].reply.as_deref()),
        ("read a file", Some("done"))
    );
    let call = read.call("t1");
    let result = call.result.as_ref().unwrap();
    assert_eq!(session.text(call.tool), "Read");
    assert_eq!(read.body(result.record, result.block), "\"file data\"");
    assert_eq!(read.texts(read.message("m2")), ["done"]);
    assert_eq!(session.goal.as_deref(), Some("read a file"));
    assert_eq!(session.recent_output.as_deref(), Some("done"));
}

#[test]
fn seed_001_10_a_foreign_session_id_on_top_does_not_change_whose_file_it_is() {
    let read = session("001-10-continuation");
    // What the lines say is an attribute; the file is the identity.
    assert!(read.session.first_session_id.is_some());
    assert_eq!(read.session.turns.len(), 1);
    let opener = &read.session.records[read.session.turns[0].record as usize];
    assert_eq!(opener.line, 2);
}

// --- 002 ---

#[test]
fn seed_002_3_the_envelope_says_where_a_line_belongs() {
    let entry = entry("002-3-envelope");
    assert!(entry.sidechain && !entry.meta);
    assert_eq!(entry.agent.as_deref(), Some("a4c7249"));
    assert_eq!(entry.slug.as_deref(), Some("virtual-puzzling-nygaard"));
    assert_eq!(entry.branch.as_deref(), Some("main"));
    assert_eq!(entry.cwd.as_deref(), Some("/Users/me/work/tools"));
    assert_eq!(entry.version.as_deref(), Some("2.1.29"));
    assert!(entry.parent.id().is_some() && entry.uuid.is_some());
}

#[test]
fn seed_002_4_1_1_the_permission_mode_of_a_prompt_is_kept() {
    let entry = entry("002-4.1.1-direct-input");
    assert_eq!(entry.permission_mode.as_deref(), Some("default"));
}

#[test]
fn seed_002_4_2_tokens_of_a_block_line_are_read() {
    let usage = usage("002-4.2.1-text");
    assert_eq!(
        (
            usage.input,
            usage.output,
            usage.cache_read,
            usage.cache_write_5m
        ),
        (0, 1, 36_761, 857)
    );
}

#[test]
fn seed_002_4_2_2_a_call_has_its_tool_and_its_subject() {
    let entry = entry("002-4.2.2-tool-use");
    let block = &entry.blocks[0];
    assert_eq!(block.id(), Some("toolu_01DjYdxoudKLXxDoF7GwQWwB"));
    assert_eq!(block.tool(), Some("Read"));
    assert!(block.subject().unwrap().ends_with("implement_spec.md"));
}

#[test]
fn seed_002_4_3_2_a_turn_duration_is_read_in_milliseconds() {
    assert_eq!(
        entry("002-4.3.2-turn-duration").detail,
        Some(LineDetail::Duration(88_947))
    );
}

#[test]
fn seed_002_4_5_progress_lines_are_links_of_the_chain() {
    let read = session("002-4.5-progress");
    assert!(read.session.records.iter().all(|record| record.in_chain()));
}

#[test]
fn seed_002_4_8_a_pull_request_is_remembered() {
    let read = session("002-4.8-pr-link");
    assert_eq!(
        read.session.pr_links.texts(),
        ["https://github.com/example/hub/pull/3"]
    );
}

#[test]
fn seed_002_5_the_parent_chain_is_one_turn_opened_by_a_command() {
    let read = session("002-5-parent-chain");
    let session = &read.session;
    assert_eq!((session.turns.len(), session.calls.len()), (1, 2));
    assert!(session.calls.iter().all(|call| call.result.is_some()));
    assert_eq!(session.goal.as_deref(), Some("/implement-spec"));
    let links = unspool_model::graph::links(session);
    let depth = links.ancestors(6).count();
    assert_eq!(depth, 7);
    assert!(links.missing.is_empty() && links.cycles.is_empty());
}

#[test]
fn seed_002_7_3_structured_results_do_not_disturb_their_calls() {
    let read = session("002-7.3-tool-use-result");
    let session = &read.session;
    let subject = |id: &str| session.subject(read.call(id)).unwrap_or_default();
    assert_eq!(session.calls.len(), 7);
    assert!(session.calls.iter().all(|call| call.result.is_some()));
    assert_eq!(subject("toolu_Read"), "/path/to/file.md");
    assert_eq!(subject("toolu_Glob"), "**/*.cpp");
    assert_eq!(subject("toolu_Bash"), "git status --short");
    assert_eq!(subject("toolu_Write"), "/path/to/new-file.md");
    assert_eq!(subject("toolu_Edit"), "/path/to/file.md");
    assert_eq!(subject("toolu_TodoWrite"), "2 items");
    assert_eq!(subject("toolu_Task"), "Implement feature");
    assert_eq!(
        read.session.agent_of(read.call("toolu_Task")),
        Some("ab97f57")
    );
}

#[test]
fn seed_002_7_3_structured_results_say_what_came_of_a_call() {
    let read = session("002-7.3-tool-use-result");
    let items = transcript::transcript(
        &read.session,
        &read.log,
        &transcript::AgentTranscripts::new(),
        &TurnSelection::default(),
    );
    let outcomes: Vec<_> = items
        .into_iter()
        .filter_map(|item| match item.body {
            ItemBody::Call(call) => Some((call.outcome, call.change)),
            _ => None,
        })
        .collect();
    assert_eq!(
        outcomes[0].0,
        ToolCallOutcome::Read {
            lines: 473,
            of: Some(473)
        }
    );
    assert_eq!(
        outcomes[1].0,
        ToolCallOutcome::Found {
            files: Some(2),
            lines: None,
            cut: false
        }
    );
    assert_eq!(
        outcomes[2].0,
        ToolCallOutcome::Ran {
            exit: Some(0),
            background: false,
            interrupted: false
        }
    );
    assert_eq!(
        outcomes[3].0,
        ToolCallOutcome::Wrote {
            created: true,
            lines: 1
        }
    );
    let Some(FileChange::Hunks(hunks)) = &outcomes[4].1 else {
        panic!("the edit has no patch")
    };
    assert_eq!((hunks[0].old_start, hunks[0].lines.len()), (4, 4));
    let ToolCallOutcome::Todos(todos) = &outcomes[5].0 else {
        panic!("no list of things to do")
    };
    assert_eq!(todos.len(), 2);
    let ToolCallOutcome::Agent(agent) = &outcomes[6].0 else {
        panic!("no sub-agent")
    };
    assert_eq!(
        (agent.calls, agent.tokens, agent.duration_ms),
        (Some(77), Some(126_186), Some(785_728))
    );
    assert_eq!(agent.report.as_deref(), Some("There are still 114 errors."));
}

#[test]
fn seed_002_8_the_parent_names_the_agent_whose_file_is_one_conversation() {
    let parent = session("002-8-parent");
    assert_eq!(
        parent.session.agent_of(parent.call("toolu_01Task")),
        Some("ab97f57")
    );
    let log = Log::new(bytes("002-8-agent-ab97f57"));
    let agent = Session::from_log(&log, TranscriptRole::Agent);
    assert_eq!((agent.threads.len(), agent.turns.len()), (1, 1));
    assert_eq!((agent.messages.len(), agent.calls.len()), (3, 2));
    assert_eq!(agent.recent_output.as_deref(), Some("All done."));
}

#[test]
fn seed_002_9_a_summary_line_is_a_title_and_the_boundary_is_the_compaction() {
    let read = session("002-9-compaction");
    assert_eq!(
        read.session.title(&Default::default()).as_deref(),
        Some("Code audit fixes")
    );
    let compactions = read
        .session
        .records
        .iter()
        .filter(|record| matches!(record.kind, LineKind::CompactBoundary));
    assert_eq!(compactions.count(), 1);
    assert_eq!(read.session.turns.len(), 2);
}

#[test]
fn seed_002_10_a_reply_on_four_lines_is_one_message() {
    let read = session("002-10-splitting");
    assert_eq!(read.session.messages.len(), 1);
    let message = read.message("msg_X");
    assert_eq!(
        read.content(message),
        ["thinking", "text", "tool_use", "tool_use"]
    );
    assert_eq!(read.session.usage_of(message).cache_read, 1_000);
}

#[test]
fn seed_002_11_the_full_conversation_is_one_turn_with_one_call_and_its_duration() {
    let read = session("002-11-full-conversation");
    let session = &read.session;
    assert_eq!(
        (
            session.turns.len(),
            session.messages.len(),
            session.calls.len()
        ),
        (1, 2, 1)
    );
    assert_eq!(session.turns_by_record()[5], Some(0));
    let rows = turn_rows(&read);
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].calls.len(), rows[0].duration_ms), (1, Some(5_500)));
    assert_eq!(
        session.usage(),
        Usage {
            input: 1_100,
            output: 70,
            ..Usage::default()
        }
    );
    assert_eq!(session.branch.as_deref(), Some("main"));
    assert_eq!(session.models.texts(), ["claude-opus-4-5-20251101"]);
}

// --- 003 ---

#[test]
fn seed_003_a_prompt_in_an_array_opens_a_turn() {
    let read = session("003-types.3.1-prompt");
    assert_eq!(read.session.turns.len(), 1);
    assert_eq!(read.session.permission_mode.as_deref(), Some("acceptEdits"));
    assert_eq!(read.session.goal.as_deref(), Some("帮我分析这个项目的结构"));
    assert_eq!(
        read.session.cwds.texts(),
        ["e:\\workspaces_2026_python\\claude-code-runner"]
    );
}

#[test]
fn seed_003_several_blocks_on_one_line_are_all_read() {
    let read = session("003-types.4-assistant");
    assert_eq!(read.session.calls.len(), 1);
    assert_eq!(
        read.session.recent_output.as_deref(),
        Some("我来帮你分析这个项目")
    );
    assert_eq!(
        read.session.usage(),
        Usage {
            input: 1_500,
            output: 300,
            ..Usage::default()
        }
    );
}

#[test]
fn seed_003_ids_of_other_gateways_pair_calls_too() {
    let mut both = bytes("003-types.4-assistant");
    both.extend(bytes("003-types.3.2-tool-result"));
    let read = make::read_bytes(both);
    let result = read
        .call("call_33f4a566fb7e425a9f6327b4")
        .result
        .as_ref()
        .unwrap();
    assert!(!result.is_error);
    assert_eq!(read.session.slug.as_deref(), Some("deep-dazzling-harbor"));
}

#[test]
fn seed_003_input_kinds_tell_what_came_with_a_prompt() {
    let kinds = |fixture| entry(fixture).input_kinds.names();
    assert_eq!(
        kinds("003-inputs.1-ide-selection"),
        ["text", "ide_selection"]
    );
    assert_eq!(
        kinds("003-inputs.2-ide-opened-file"),
        ["text", "ide_opened_file"]
    );
    assert_eq!(kinds("003-inputs.3-tool-result"), ["tool_result"]);
    assert_eq!(kinds("003-types.3.1-prompt"), ["text"]);
    assert_eq!(
        entry("003-inputs.2-ide-opened-file").head.as_deref(),
        Some("继续")
    );
}

#[test]
fn seed_003_a_message_without_id_model_or_role_is_still_a_reply() {
    let read = session("003-rounds-tool-loop");
    assert_eq!(read.session.messages.len(), 1);
    assert!(read.call("call_xxx").result.is_some());
}

// --- 004 ---

#[test]
fn seed_004_the_goal_the_branch_and_the_project_come_from_the_prompt() {
    let read = session("004-example-user");
    assert_eq!(
        read.session.goal.as_deref(),
        Some("Fix the authentication bug in login.ts")
    );
    assert_eq!(read.session.branch.as_deref(), Some("main"));
    assert_eq!(read.session.cwds.texts(), ["/Users/me/project"]);
}

#[test]
fn seed_004_a_reply_gives_output_model_tokens_and_an_open_call() {
    let read = session("004-example-assistant");
    assert_eq!(
        read.session.recent_output.as_deref(),
        Some("I'll read the login.ts file first.")
    );
    assert_eq!(read.session.models.texts(), ["claude-sonnet-4-20250514"]);
    assert_eq!(
        read.session.usage(),
        Usage {
            input: 1_500,
            output: 200,
            cache_read: 500,
            cache_write_5m: 100,
            cache_write_1h: 50,
        }
    );
    assert!(read.call("tu_123").result.is_none());
}

#[test]
fn seed_004_progress_data_under_either_key_is_progress() {
    let line = &lines("004-example-progress")[0];
    let other = line.replace("progressData", "data");
    assert_eq!(only(line).label, only(&other).label);
}

#[test]
fn seed_004_a_summary_with_an_envelope_is_a_title_too() {
    let mut both = bytes("004-example-assistant");
    both.extend(bytes("004-example-summary"));
    let read = make::read_bytes(both);
    assert!(
        read.session
            .title(&Default::default())
            .unwrap()
            .starts_with("Fixed authentication bug")
    );
}

#[test]
fn seed_004_hooks_without_errors_are_no_trouble() {
    assert!(!entry("004-example-system").trouble);
    let failed =
        lines("004-example-system")[0].replace("\"hookErrors\":[]", "\"hookErrors\":[\"no\"]");
    assert!(only(&failed).trouble);
}

#[test]
fn texts_of_the_examples_come_back_character_by_character() {
    let line = &lines("003-types.4-assistant")[0];
    let entry = only(line);
    let texts: Vec<_> = entry.blocks[..2]
        .iter()
        .map(|block| json::string(block.body().of(line.as_bytes())).into_owned())
        .collect();
    assert_eq!(texts, ["让我分析一下这个问题", "我来帮你分析这个项目"]);
}
