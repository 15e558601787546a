//! Turns, sessions, agents and inventories as rows.

use std::collections::HashMap;

use unspool_model::log::Log;
use unspool_model::price::Prices;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::time::Time;
use unspool_model::view::agents::{self, SubAgentSession};
use unspool_model::view::session_row::{self, SessionRow};
use unspool_model::view::session_usage::{SessionFiles, UsageTotal, session_usage, usage_since};
use unspool_model::view::status::StatusSignals;
use unspool_model::view::turns::{self, CallStatus, ThreadEnds, TurnOptions, TurnRow};
use unspool_model::view::{check, info};

use crate::make::{Read, call, read, reply, result, system, text, time, user};

fn rows(read: &Read) -> Vec<TurnRow> {
    turns::turns(&read.session, &read.log, TurnOptions::default())
}

fn summed(read: &Read) -> SessionRow {
    let now = Time::parse(&time("23:00:00")).unwrap();
    session_row::row(
        &SessionFiles::alone(&read.session),
        &HashMap::new(),
        Prices::bundled(),
        &StatusSignals::default(),
        now,
    )
}

/// What a session and these sub-agents used.
fn used(session: &Session, agents: &[&Session]) -> UsageTotal {
    let files = SessionFiles {
        agents,
        ..SessionFiles::alone(session)
    };
    session_usage(&files, Prices::bundled()).all()
}

fn says(uuid: &str, parent: &str, clock: &str, words: &str) -> String {
    reply(uuid, parent, clock, uuid, &format!("[{}]", text(words)))
}

fn calls(uuid: &str, parent: &str, clock: &str, id: &str) -> String {
    reply(
        uuid,
        parent,
        clock,
        uuid,
        &format!("[{}]", call(id, "Bash", r#"{"command":"ls"}"#)),
    )
}

fn rounds(read: &Read, gap_ms: u64) -> Vec<&'static str> {
    let rows = turns::outline(&read.session, TurnOptions { gap_ms });
    rows.iter().map(|row| row.round.name()).collect()
}

#[test]
fn rounds_are_new_session_new_round_and_resume() {
    let read = read(&[
        user("a", "", "10:00:00", r#""first""#),
        says("b", "a", "10:00:10", "x"),
        user("c", "b", "10:05:10", r#""exactly five minutes later""#),
        says("d", "c", "10:05:20", "x"),
        user("e", "d", "10:10:21", r#""a second more""#),
        says("f", "e", "10:10:30", "x"),
        user("g", "", "10:10:40", r#""without a parent""#),
    ]);
    assert_eq!(
        rounds(&read, 5 * 60_000),
        ["new_session", "new_round", "resume", "new_session"]
    );
    assert_eq!(
        rounds(&read, 60_000),
        ["new_session", "resume", "resume", "new_session"]
    );
}

#[test]
fn a_tool_result_continues_and_opens_no_round() {
    let read = read(&[
        user("a", "", "10:00:00", r#""go""#),
        calls("b", "a", "10:00:01", "t1"),
        user("c", "b", "11:00:00", &result("t1", r#""slow""#)),
        says("d", "c", "11:00:01", "x"),
        user("e", "d", "11:00:05", r#""next""#),
    ]);
    // An hour of waiting for a tool is no pause of the person.
    assert_eq!(rounds(&read, 5 * 60_000), ["new_session", "new_round"]);
}

#[test]
fn a_permission_mode_decides_no_round() {
    let mode = |line: String| line.replacen('{', "{\"permissionMode\":\"acceptEdits\",", 1);
    let read = read(&[
        mode(user("a", "", "10:00:00", r#""go""#)),
        says("b", "a", "10:00:01", "x"),
        mode(user("c", "b", "10:00:02", r#""on""#)),
    ]);
    assert_eq!(rounds(&read, 5 * 60_000), ["new_session", "new_round"]);
}

#[test]
fn the_first_prompt_is_a_new_session_whatever_its_parent() {
    let read = read(&[user("a", "elsewhere", "10:00:00", r#""go""#)]);
    assert_eq!(rounds(&read, 5 * 60_000), ["new_session"]);
}

#[test]
fn a_turn_tells_what_was_asked_and_what_was_answered() {
    let read = read(&[
        user(
            "a",
            "",
            "10:00:00",
            r#"[{"type":"text","text":"<ide_opened_file>x</ide_opened_file>"},{"type":"text","text":"go on"}]"#,
        ),
        says("b", "a", "10:00:01", "first words"),
        calls("c", "b", "10:00:02", "t1"),
        user("d", "c", "10:00:03", &result("t1", r#""ok""#)),
        says("e", "d", "10:00:04", "last words"),
    ]);
    let rows = rows(&read);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].prompt, "go on");
    assert_eq!(rows[0].reply.as_deref(), Some("last words"));
    assert_eq!((rows[0].messages.len(), rows[0].calls.len()), (3, 1));
    assert_eq!(rows[0].usage.input, 30);
}

#[test]
fn the_duration_a_line_gives_belongs_to_the_turn_before_it() {
    let read = read(&[
        user("a", "", "10:00:00", r#""one""#),
        says("b", "a", "10:00:01", "x"),
        system(
            "c",
            "b",
            "10:01:31",
            "turn_duration",
            r#","durationMs":90602"#,
        ),
        user("d", "c", "10:05:00", r#""two""#),
        says("e", "d", "10:05:07", "x"),
    ]);
    let durations: Vec<_> = rows(&read).iter().map(|row| row.duration_ms).collect();
    assert_eq!(durations, [Some(90_602), Some(7_000)]);
}

#[test]
fn without_times_there_is_no_duration() {
    let read = read(&[
        r#"{"type":"user","content":"x"}"#,
        r#"{"message":{"id":"m","role":"assistant","content":"y"}}"#,
    ]);
    let rows = rows(&read);
    assert_eq!(
        (rows[0].at, rows[0].ended, rows[0].duration_ms),
        (None, None, None)
    );
    assert_eq!(rows[0].reply.as_deref(), Some("y"));
}

#[test]
fn a_turn_that_still_goes_on_has_no_end() {
    let read = read(&[
        user("a", "", "10:00:00", r#""go""#),
        calls("b", "a", "10:00:01", "t1"),
    ]);
    let rows = rows(&read);
    assert_eq!((rows[0].ended, rows[0].duration_ms), (None, None));
}

#[test]
fn calls_are_ok_failed_missing_or_running() {
    let failed = r#"[{"type":"tool_result","tool_use_id":"t2","content":"no","is_error":true}]"#;
    let read = read(&[
        user("a", "", "10:00:00", r#""go""#),
        calls("b", "a", "10:00:01", "t1"),
        user("c", "b", "10:00:05", &result("t1", r#""ok""#)),
        calls("d", "c", "10:00:06", "t2"),
        user("e", "d", "10:00:07", failed),
        calls("f", "e", "10:00:08", "t3"),
        user("g", "f", "10:00:09", r#""never mind""#),
        calls("h", "g", "10:00:10", "t4"),
    ]);
    let course = ThreadEnds::of(&read.session);
    let status = |id: &str| course.status(&read.session, read.call(id));
    assert_eq!(
        [status("t1"), status("t2"), status("t3"), status("t4")],
        [
            CallStatus::Ok,
            CallStatus::Error,
            CallStatus::Missing,
            CallStatus::Running
        ]
    );
    assert_eq!(
        turns::call_duration(&read.session, read.call("t1")),
        Some(4_000)
    );
    assert_eq!(turns::call_duration(&read.session, read.call("t4")), None);
}

#[test]
fn an_interrupt_marks_the_turn_it_ended() {
    let read = read(&[
        user("a", "", "10:00:00", r#""go""#),
        says("b", "a", "10:00:01", "half an"),
        user(
            "c",
            "b",
            "10:00:02",
            r#"[{"type":"text","text":"[Request interrupted by user]"}]"#,
        ),
        user("d", "c", "10:00:03", r#""other way""#),
    ]);
    let rows = rows(&read);
    let marks: Vec<_> = rows.iter().map(|row| row.interrupted).collect();
    assert_eq!(marks, [true, false]);
    assert_eq!(rows[0].duration_ms, Some(2_000));
}

#[test]
fn what_the_client_wrote_itself_is_never_the_reply() {
    let synthetic = says("c", "b", "10:00:02", "No response requested.")
        .replace("claude-opus-4-5", "<synthetic>");
    let read = read(&[
        user("a", "", "10:00:00", r#""go""#),
        says("b", "a", "10:00:01", "real"),
        synthetic,
    ]);
    assert_eq!(rows(&read)[0].reply.as_deref(), Some("real"));
    assert_eq!(summed(&read).messages, 1);
}

#[test]
fn a_prompt_typed_meanwhile_belongs_to_the_running_turn() {
    let queue = |operation: &str, content: &str| {
        format!(
            r#"{{"type":"queue-operation","operation":"{operation}","sessionId":"s","timestamp":"2026-01-03T10:00:02.000Z"{content}}}"#
        )
    };
    let typed = r#","content":"and the tests""#;
    let taken = read(&[
        user("a", "", "10:00:00", r#""go""#),
        calls("b", "a", "10:00:01", "t1"),
        queue("enqueue", typed),
        queue("remove", ""),
        user("c", "b", "10:00:05", &result("t1", r#""ok""#)),
        says("d", "c", "10:00:06", "x"),
    ]);
    let all = rows(&taken);
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].queued, ["and the tests"]);
    let dequeued = read(&[
        user("a", "", "10:00:00", r#""go""#),
        queue("enqueue", typed),
        says("b", "a", "10:00:03", "x"),
        queue("dequeue", ""),
        user("c", "b", "10:00:05", r#""and the tests""#),
    ]);
    let all = rows(&dequeued);
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|row| row.queued.is_empty()));
}

#[test]
fn rewound_turns_stay_in_file_order_and_are_marked() {
    let read = read(&[
        user("a", "", "10:00:00", r#""one""#),
        says("b", "a", "10:00:01", "x"),
        user("c", "b", "10:00:02", r#""wrong""#),
        says("d", "c", "10:00:03", "x"),
        user("e", "b", "10:00:04", r#""right""#),
        says("f", "e", "10:00:05", "x"),
    ]);
    let rows = rows(&read);
    let seen: Vec<_> = rows
        .iter()
        .map(|row| (row.prompt.as_str(), row.live))
        .collect();
    assert_eq!(seen, [("one", true), ("wrong", false), ("right", true)]);
}

#[test]
fn the_goal_of_a_row_has_200_characters_at_most_and_the_output_500() {
    let long = "字".repeat(700);
    let read = read(&[
        user("a", "", "10:00:00", &format!("\"{long}\"")),
        says("b", "a", "10:00:01", &long),
    ]);
    let row = summed(&read);
    assert_eq!(row.goal.map(|goal| goal.chars().count()), Some(200));
    assert_eq!(
        row.recent_output.map(|output| output.chars().count()),
        Some(500)
    );
    let exact = "x".repeat(200);
    let read = self::read(&[user("a", "", "10:00:00", &format!("\"{exact}\""))]);
    assert_eq!(summed(&read).goal.as_deref(), Some(exact.as_str()));
}

#[test]
fn a_row_counts_a_reply_on_three_lines_once() {
    let part = |uuid: &str, says: &str| {
        reply(uuid, "", "10:00:00", "m", &format!("[{}]", text(says)))
            .replace("\"output_tokens\":5", "\"output_tokens\":5,\"cache_creation_input_tokens\":150000,\"cache_read_input_tokens\":12000")
    };
    let read = read(&[part("a", "1"), part("b", "2"), part("c", "3")]);
    let row = summed(&read);
    assert_eq!(row.messages, 1);
    assert_eq!(row.used.all().usage.cache_write_5m, 150_000);
    assert_eq!(row.context_tokens, Some(162_010));
    assert_eq!(row.context_limit, Some(200_000));
}

#[test]
fn the_model_of_a_row_is_that_of_the_sessions_last_reply() {
    let sonnet = says("b", "a", "10:00:01", "x").replace("claude-opus-4-5", "claude-sonnet-4-5");
    let agent = says("c", "", "10:00:02", "x")
        .replace("claude-opus-4-5", "claude-haiku-4-5")
        .replace(
            "\"isSidechain\":false",
            "\"isSidechain\":true,\"agentId\":\"q\"",
        );
    let read = read(&[says("a", "", "10:00:00", "x"), sonnet, agent]);
    assert_eq!(summed(&read).model.as_deref(), Some("claude-sonnet-4-5"));
}

#[test]
fn compactions_are_counted_by_boundaries_not_by_summaries() {
    let read = read(&[
        r#"{"type":"summary","summary":"S","leafUuid":"zz"}"#.to_owned(),
        user("a", "", "10:00:00", r#""go""#),
        system(
            "b",
            "",
            "10:00:01",
            "compact_boundary",
            r#","logicalParentUuid":"a""#,
        ),
        system("c", "b", "10:00:02", "microcompact_boundary", ""),
    ]);
    assert_eq!(summed(&read).compactions, 1);
}

#[test]
fn a_sub_agents_file_counts_before_the_copies_in_progress_lines() {
    let copy = |output: u64| {
        format!(
            r#"{{"type":"progress","uuid":"p{output}","parentUuid":"b","timestamp":"2026-01-03T10:00:02.000Z","parentToolUseID":"t1","data":{{"type":"agent_progress","agentId":"ab97f57","message":{{"type":"assistant","message":{{"id":"sub","role":"assistant","model":"m","content":[],"usage":{{"input_tokens":1,"output_tokens":{output}}}}}}}}}}}"#
        )
    };
    let parent = read(&[
        user("a", "", "10:00:00", r#""go""#),
        reply(
            "b",
            "a",
            "10:00:01",
            "m",
            &format!("[{}]", call("t1", "Task", r#"{"description":"Find"}"#)),
        ),
        copy(1),
        copy(2),
    ]);
    assert_eq!(used(&parent.session, &[]).usage.output, 5 + 2);
    let own = r#"{"type":"assistant","uuid":"s","isSidechain":true,"agentId":"ab97f57","message":{"id":"sub","role":"assistant","content":"x","usage":{"input_tokens":1,"output_tokens":300}}}"#;
    let log = Log::new(format!("{own}\n"));
    let agent = Session::from_log(&log, TranscriptRole::Agent);
    assert_eq!(used(&parent.session, &[&agent]).usage.output, 5 + 300);
}

#[test]
fn what_was_spent_since_a_moment_is_what_began_then_or_later() {
    let parent = read(&[
        user("a", "", "23:59:00", r#""go""#),
        says("b", "a", "23:59:58", "x"),
        user("c", "b", "23:59:59", r#""on""#),
        says("d", "c", "23:59:59", "x"),
    ]);
    let helper = read(&[
        says("e", "", "23:59:59", "x"),
        says("f", "e", "23:59:57", "x"),
    ]);
    let prices = Prices::bundled();
    let both = used(&helper.session, &[]).cost.total();
    let one = both.unwrap().usd() / 2.0;
    assert!(one > 0.0);
    let midnight = Time::parse("2026-01-04T00:00:00.000Z").unwrap();
    let spent = |before: i64, agents: &[&Session]| {
        let since = Time(midnight.0 - before * 1_000);
        let files = SessionFiles {
            agents,
            ..SessionFiles::alone(&parent.session)
        };
        let cost = usage_since(&files, prices, since).all().cost.total();
        (cost.unwrap().usd() / one).round()
    };
    let helpers = [&helper.session];
    assert_eq!(spent(60, &[]), 2.0);
    assert_eq!(spent(1, &[]), 1.0);
    assert_eq!(spent(1, &helpers), 2.0);
    assert_eq!(spent(60, &helpers), 4.0);
    assert_eq!(
        spent(0, &helpers),
        0.0,
        "nothing was said, nothing was spent"
    );
}

#[test]
fn an_agent_row_knows_the_call_that_started_it() {
    let line = user(
        "c",
        "b",
        "10:00:02",
        &result("t1", r#"[{"type":"text","text":"done"}]"#),
    )
    .replacen(
        '{',
        r#"{"toolUseResult":{"status":"completed","agentId":"ab97f57"},"#,
        1,
    );
    let parent = read(&[
        user("a", "", "10:00:00", r#""go""#),
        reply(
            "b",
            "a",
            "10:00:01",
            "m",
            &format!("[{}]", call("t1", "Task", r#"{"description":"Find it"}"#)),
        ),
        line,
    ]);
    let log = Log::new(user("s", "", "10:00:01", r#""find""#) + "\n");
    let agent = Session::from_log(&log, TranscriptRole::Agent);
    let file = SubAgentSession::new("ab97f57", &agent);
    let rows = agents::agents(
        &parent.session,
        &unspool_model::log::Log::default(),
        &[file],
        &[],
    );
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].call.as_deref(), Some("t1"));
    assert_eq!(rows[0].description.as_deref(), Some("Find it"));
    assert_eq!((rows[0].status, rows[0].turns), ("completed", 1));
}

#[test]
fn the_inventory_counts_types_blocks_tools_and_versions() {
    let with = |line: String| line.replacen('{', "{\"version\":\"2.0.37\",", 1);
    let read = read(&[
        with(user("a", "", "10:00:00", r#""go""#)),
        calls("b", "a", "10:00:01", "t1"),
        user("c", "b", "10:00:02", &result("t1", r#""ok""#)),
        system("d", "c", "10:00:03", "turn_duration", r#","durationMs":1"#),
        "bad".to_owned(),
    ]);
    let info = info::info(&read.session);
    assert_eq!(info.types["user"], 2);
    assert_eq!(info.types["system/turn_duration"], 1);
    assert_eq!(info.blocks["tool_use"], 1);
    assert_eq!(info.blocks["tool_result"], 1);
    assert_eq!(info.tools["Bash"], 1);
    assert_eq!(info.versions, [("2.0.37".to_owned(), 1)]);
    assert_eq!(info.lines, 5);
}

#[test]
fn a_check_names_what_is_broken_and_where() {
    let read = read(&[
        user("a", "nowhere", "10:00:00", r#""go""#),
        calls("b", "a", "10:00:01", "t1"),
        user("c", "b", "10:00:02", &result("t9", r#""ok""#)),
        says("d", "c", "10:00:03", "x"),
        "bad".to_owned(),
    ]);
    let faults: Vec<_> = check::faults(&read.session)
        .iter()
        .map(|fault| (fault.line, fault.kind.name()))
        .collect();
    assert_eq!(
        faults,
        [
            (1, "missing_parent"),
            (2, "call_without_result"),
            (3, "result_without_call"),
            (5, "unreadable")
        ]
    );
}
