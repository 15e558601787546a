//! Every fault that was once in the model, as the smallest lines that showed it.

use unspool_model::entry::LineKind;
use unspool_model::fault::FaultKind;
use unspool_model::log::Log;
use unspool_model::price::Prices;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::time::Time;
use unspool_model::user_input::UserInput;
use unspool_model::view::agents::{self, SubAgentSession};
use unspool_model::view::status::{self, SessionState, StatusSignals};
use unspool_model::view::turns::{self, TurnOptions};

const PROMPT: &str = r#"{"type":"user","uuid":"a","parentUuid":null,"timestamp":"2026-01-03T10:00:00.000Z","message":{"role":"user","content":"go"}}"#;

fn log(lines: &[&str]) -> Log {
    Log::new(
        lines
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>(),
    )
}

fn session(lines: &[&str]) -> Session {
    Session::from_log(&log(lines), TranscriptRole::Main)
}

fn state(lines: &[&str]) -> SessionState {
    let now = Time::parse("2026-01-03T10:00:30.000Z").unwrap();
    status::status(&session(lines), &StatusSignals::default(), now).state
}

#[test]
fn a_result_that_stands_before_its_call_still_names_the_agent() {
    let read = session(&[
        r#"{"toolUseResult":{"agentId":"a1b2c3d"},"type":"user","uuid":"b","parentUuid":"a","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"done"}]}}"#,
        r#"{"type":"assistant","uuid":"a","parentUuid":null,"message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Task","input":{}}]}}"#,
    ]);
    assert_eq!(read.agent_of(&read.calls[0]), Some("a1b2c3d"));
}

#[test]
fn a_later_line_with_the_same_uuid_counts_in_the_place_of_the_earlier_one() {
    let read = session(&[
        r#"{"type":"assistant","uuid":"a","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"x"}],"usage":{"output_tokens":1}}}"#,
        r#"{"type":"assistant","uuid":"a","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"y"},{"type":"tool_use","id":"t","name":"Read","input":{}}],"usage":{"output_tokens":90}}}"#,
        r#"{"type":"user","uuid":"b","parentUuid":"a","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}}"#,
    ]);
    assert_eq!(read.content(&read.messages[0]).len(), 2);
    assert_eq!(read.usage_of(&read.messages[0]).output, 90);
    assert_eq!(
        (read.calls.len(), read.calls[0].result.is_some()),
        (1, true)
    );
    assert_eq!(read.recent_output.as_deref(), Some("y"));
}

#[test]
fn blocks_that_differ_only_in_their_middle_are_two_blocks() {
    let line = |uuid: &str, middle: &str| {
        let text = format!("{}{middle}{}", "x".repeat(60), "y".repeat(60));
        format!(
            r#"{{"type":"assistant","uuid":"{uuid}","message":{{"id":"m","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    let read = session(&[&line("a", "AAAAAAAAAA"), &line("b", "BBBBBBBBBB")]);
    assert_eq!(read.content(&read.messages[0]).len(), 2);
}

#[test]
fn equal_blocks_on_one_line_were_said_twice() {
    let read = session(&[
        r#"{"type":"assistant","uuid":"a","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"ok"},{"type":"text","text":"ok"}]}}"#,
        r#"{"type":"assistant","uuid":"b","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"z"}]}}"#,
    ]);
    assert_eq!(read.content(&read.messages[0]).len(), 3);
}

#[test]
fn equal_blocks_on_two_lines_were_written_twice() {
    let line = |uuid: &str| {
        format!(
            r#"{{"type":"assistant","uuid":"{uuid}","message":{{"id":"m","role":"assistant","content":[{{"type":"text","text":"ok"}}]}}}}"#
        )
    };
    let read = session(&[&line("a"), &line("b")]);
    assert_eq!(read.content(&read.messages[0]).len(), 1);
}

#[test]
fn calls_and_results_without_an_id_are_not_paired() {
    let read = session(&[
        r#"{"type":"assistant","uuid":"a","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","name":"Read","input":{}},{"type":"tool_use","name":"Bash","input":{}}]}}"#,
        r#"{"type":"user","uuid":"b","parentUuid":"a","message":{"role":"user","content":[{"type":"tool_result","content":"x"}]}}"#,
    ]);
    assert_eq!(read.calls.len(), 2);
    assert!(read.calls.iter().all(|call| call.result.is_none()));
    assert!(
        !read
            .faults
            .iter()
            .any(|fault| fault.kind == FaultKind::DuplicateCall)
    );
    assert_eq!(read.orphan_results().len(), 1);
}

#[test]
fn a_prompt_of_an_image_alone_has_a_goal_that_can_be_read() {
    let read = session(&[
        r#"{"type":"user","uuid":"a","parentUuid":null,"message":{"role":"user","content":[{"type":"image","source":{}}]}}"#,
    ]);
    assert_eq!(read.goal.as_deref(), Some("[image]"));
    let read = session(&[
        r#"{"type":"user","uuid":"a","parentUuid":null,"message":{"role":"user","content":[{"type":"document","source":{}}]}}"#,
    ]);
    assert_eq!(read.goal.as_deref(), Some("[document]"));
}

#[test]
fn a_turn_that_ends_with_an_api_error_is_over() {
    let lines = [
        PROMPT,
        r#"{"type":"assistant","uuid":"b","parentUuid":"a","isApiErrorMessage":true,"timestamp":"2026-01-03T10:00:02.000Z","message":{"id":"m","model":"<synthetic>","role":"assistant","content":[{"type":"text","text":"API Error"}]}}"#,
    ];
    let row = &turns::turns(&session(&lines), &log(&lines), TurnOptions::default())[0];
    assert_eq!((row.duration_ms, row.ended.is_some()), (Some(2_000), true));
    assert_eq!(row.reply, None);
}

#[test]
fn an_agent_that_was_only_launched_is_running() {
    let main = session(&[
        PROMPT,
        r#"{"type":"assistant","uuid":"b","parentUuid":"a","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Agent","input":{"description":"look"}}]}}"#,
        r#"{"type":"user","uuid":"c","parentUuid":"b","toolUseResult":{"isAsync":true,"status":"async_launched","agentId":"aaa"},"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"started"}]}}"#,
    ]);
    let status = |lines: &[&str]| {
        let agent = Session::from_log(&log(lines), TranscriptRole::Agent);
        let file = SubAgentSession::new("aaa", &agent);
        agents::agents(&main, &log(&[]), &[file], &[])[0].status
    };
    let asked = r#"{"type":"user","uuid":"x","parentUuid":null,"isSidechain":true,"message":{"role":"user","content":"look"}}"#;
    let answered = r#"{"type":"assistant","uuid":"y","parentUuid":"x","isSidechain":true,"message":{"id":"n","role":"assistant","content":[{"type":"text","text":"seen"}]}}"#;
    assert_eq!(status(&[asked]), "running");
    assert_eq!(status(&[asked, answered]), "completed");
}

#[test]
fn after_an_automatic_compaction_the_turn_goes_on() {
    let boundary = |trigger: &str| {
        format!(
            r#"{{"type":"system","subtype":"compact_boundary","uuid":"b","parentUuid":null,"logicalParentUuid":"a","timestamp":"2026-01-03T10:00:01.000Z","compactMetadata":{{"trigger":"{trigger}"}}}}"#
        )
    };
    let summary = r#"{"type":"user","uuid":"c","parentUuid":"b","isCompactSummary":true,"timestamp":"2026-01-03T10:00:02.000Z","message":{"role":"user","content":"so far"}}"#;
    assert_eq!(
        state(&[PROMPT, &boundary("auto"), summary]),
        SessionState::Working
    );
    assert_eq!(
        state(&[PROMPT, &boundary("manual"), summary]),
        SessionState::WaitingForInput
    );
}

#[test]
fn after_a_task_notification_the_model_is_at_work() {
    let lines = [
        PROMPT,
        r#"{"type":"assistant","uuid":"b","parentUuid":"a","timestamp":"2026-01-03T10:00:01.000Z","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"started"}]}}"#,
        r#"{"type":"user","uuid":"c","parentUuid":"b","timestamp":"2026-01-03T10:00:09.000Z","origin":{"kind":"task-notification"},"message":{"role":"user","content":"<task-notification>done</task-notification>"}}"#,
    ];
    assert_eq!(state(&lines), SessionState::Working);
}

#[test]
fn a_text_line_whose_message_goes_on_to_call_a_tool_is_work() {
    let line = |stop: &str| {
        format!(
            r#"{{"type":"assistant","uuid":"b","parentUuid":"a","timestamp":"2026-01-03T10:00:01.000Z","message":{{"id":"m","role":"assistant","content":[{{"type":"text","text":"look"}}],"stop_reason":"{stop}"}}}}"#
        )
    };
    assert_eq!(state(&[PROMPT, &line("tool_use")]), SessionState::Working);
    assert_eq!(
        state(&[PROMPT, &line("end_turn")]),
        SessionState::WaitingForInput
    );
}

#[test]
fn an_answer_that_is_written_before_its_prompt_answers_it() {
    let answer = r#"{"type":"assistant","uuid":"b","parentUuid":"a","timestamp":"2026-01-03T10:00:01.000Z","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"answer"}]}}"#;
    assert_eq!(state(&[answer, PROMPT]), SessionState::WaitingForInput);
    let lines = [answer, PROMPT];
    let rows = turns::turns(&session(&lines), &log(&lines), TurnOptions::default());
    assert_eq!((rows.len(), rows[0].reply.as_deref()), (1, Some("answer")));
}

#[test]
fn removing_what_was_never_queued_takes_nothing() {
    let lines = [
        PROMPT,
        r#"{"type":"queue-operation","operation":"enqueue","content":"A","sessionId":"s","timestamp":"2026-01-03T10:00:01.000Z"}"#,
        r#"{"type":"queue-operation","operation":"remove","content":"B","sessionId":"s","timestamp":"2026-01-03T10:00:02.000Z"}"#,
    ];
    assert!(
        turns::turns(&session(&lines), &log(&lines), TurnOptions::default())[0]
            .queued
            .is_empty()
    );
}

#[test]
fn a_plan_that_goes_on_by_itself_opens_a_turn() {
    let read = session(&[
        r#"{"type":"user","uuid":"u","parentUuid":null,"origin":{"kind":"auto-continuation"},"planContent":"1. x","message":{"role":"user","content":"Implement the following plan:\n\n1. x"}}"#,
    ]);
    assert_eq!(
        (read.records[0].input, read.turns.len()),
        (UserInput::Plan, 1)
    );
}

#[test]
fn a_skill_that_the_model_called_opens_no_turn() {
    let read = session(&[
        PROMPT,
        r#"{"type":"assistant","uuid":"b","parentUuid":"a","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t","name":"Skill","input":{"skill":"x"}}]}}"#,
        r#"{"type":"user","uuid":"c","parentUuid":"b","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]}}"#,
        r#"{"type":"user","uuid":"d","parentUuid":"c","message":{"role":"user","content":"<command-message>The \"x\" skill is running</command-message>\n<command-name>x</command-name>"}}"#,
    ]);
    assert_eq!(
        (read.turns.len(), read.records[3].input),
        (1, UserInput::Meta)
    );
}

#[test]
fn what_the_client_says_about_an_unknown_command_is_no_prompt() {
    for text in [
        "Unknown slash command: rename",
        "Unknown skill: rename",
        "This slash command can only be invoked by Claude, not directly by users. Ask",
    ] {
        let line = format!(
            r#"{{"type":"user","uuid":"a","message":{{"role":"user","content":"{text}"}}}}"#
        );
        assert_eq!(
            session(&[&line]).records[0].input,
            UserInput::Machine,
            "{text}"
        );
    }
}

#[test]
fn token_counts_of_any_size_add_up_without_overflow() {
    let read = session(&[
        r#"{"type":"assistant","message":{"id":"m","model":"claude-x","role":"assistant","content":"x","usage":{"input_tokens":18446744073709551615,"cache_read_input_tokens":18446744073709551615,"output_tokens":1e3}}}"#,
    ]);
    assert_eq!(
        (read.usage().total(), read.usage().output),
        (u64::MAX, 1_000)
    );
}

#[test]
fn a_turn_duration_without_a_number_leaves_the_measured_one() {
    let lines = [
        PROMPT,
        r#"{"type":"system","subtype":"turn_duration","uuid":"z","parentUuid":"a","timestamp":"2026-01-03T10:00:05.000Z"}"#,
    ];
    let read = session(&lines);
    assert_eq!(read.records[1].kind, LineKind::TurnDuration);
    assert_eq!(read.detail_of(&read.records[1]), None);
    assert_eq!(
        turns::turns(&read, &log(&lines), TurnOptions::default())[0].duration_ms,
        Some(5_000)
    );
}

#[test]
fn sub_agents_inside_the_file_are_known_by_the_call_that_sent_them() {
    let read = session(&[
        PROMPT,
        r#"{"type":"assistant","uuid":"b","parentUuid":"a","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Task","input":{"description":"find it","prompt":"find"}}]}}"#,
        r#"{"type":"user","uuid":"s1","parentUuid":null,"isSidechain":true,"message":{"role":"user","content":"find"}}"#,
        r#"{"type":"assistant","uuid":"s2","parentUuid":"s1","isSidechain":true,"message":{"id":"n","role":"assistant","content":[{"type":"text","text":"found"}]}}"#,
        r#"{"type":"user","uuid":"c","parentUuid":"b","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"found"}]}}"#,
    ]);
    let rows = agents::agents(&read, &log(&[]), &[], &[]);
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (
            rows[0].call.as_deref(),
            rows[0].description.as_deref(),
            rows[0].status
        ),
        (Some("t1"), Some("find it"), "completed")
    );
}

#[test]
fn models_of_cloud_providers_have_a_context_limit_too() {
    assert_eq!(
        Prices::bundled().limit("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 0),
        Some(200_000)
    );
    assert_eq!(
        Prices::bundled().limit("claude-opus-4-6[1m]", 0),
        Some(1_000_000)
    );
    assert_eq!(Prices::bundled().limit("nobody-knows-1", 0), None);
}

#[test]
fn messages_inside_bookkeeping_are_not_said_again() {
    let read = session(&[
        r#"{"type":"api-request-blob","sessionId":"s","hash":"h","message":{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Read","input":{}}]}}"#,
    ]);
    assert_eq!(
        (
            read.calls.len(),
            read.messages.len(),
            read.is_conversation()
        ),
        (0, 0, false)
    );
}

#[test]
fn two_messages_under_one_uuid_are_both_paid_for() {
    let line = |id: &str| {
        format!(
            r#"{{"type":"assistant","uuid":"a","message":{{"id":"{id}","role":"assistant","content":[{{"type":"text","text":"{id}"}}],"usage":{{"output_tokens":5}}}}}}"#
        )
    };
    let read = session(&[&line("m1"), &line("m2")]);
    assert_eq!((read.messages.len(), read.usage().output), (2, 10));
    assert_eq!(read.recent_output.as_deref(), Some("m2"));
}

#[test]
fn a_compaction_without_a_summary_hides_nothing_from_a_strict_reader() {
    use unspool_model::view::client_profile::ClientProfile;
    use unspool_model::view::messages::{self, ResumeResult};
    let lines = [
        PROMPT,
        r#"{"type":"system","subtype":"compact_boundary","uuid":"b","parentUuid":null,"logicalParentUuid":"a","timestamp":"2026-01-03T10:00:01.000Z"}"#,
    ];
    let ResumeResult::Messages(sent) =
        messages::messages(&session(&lines), &log(&lines), ClientProfile::Strict)
    else {
        panic!("no conversation");
    };
    assert_eq!(sent.len(), 1);
}

#[test]
fn a_file_comes_back_from_a_backup_and_the_changes_since() {
    use unspool_model::view::files::{self, FileRestore};
    let lines = [
        PROMPT,
        r#"{"type":"file-history-snapshot","messageId":"a","snapshot":{"messageId":"a","trackedFileBackups":{"f.txt":{"backupFileName":"x@v1","version":1}}},"isSnapshotUpdate":false}"#,
        r#"{"type":"assistant","uuid":"b","parentUuid":"a","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t","name":"Edit","input":{"file_path":"/w/f.txt","old_string":"A","new_string":"B"}}]}}"#,
        r#"{"type":"user","uuid":"c","parentUuid":"b","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]}}"#,
    ];
    let plans = files::restore(&session(&lines), &log(&lines), "f.txt", 1);
    let FileRestore::BackupAndReplay {
        file,
        before_turn,
        steps,
    } = &plans[0]
    else {
        panic!("{plans:?}");
    };
    assert_eq!((file.as_str(), *before_turn), ("x@v1", 1));
    assert_eq!(files::replay_on("A line", steps).as_deref(), Some("B line"));
    assert_eq!(files::replay_on("other", steps), None);
}
