//! What a session is doing, as far as its lines tell.

use unspool_model::time::Time;
use unspool_model::view::status::{self, SessionState, SessionStatus, StatusSignals};

use crate::make::{Read, call, read, reply, result, system, text, time, user};

/// The status at this time of the day on which all this happens.
fn at(read: &Read, clock: &str) -> SessionStatus {
    status::status(
        &read.session,
        &StatusSignals::default(),
        Time::parse(&time(clock)).unwrap(),
    )
}

/// The state just after the last line.
fn now(lines: &[String]) -> SessionState {
    let read = read(lines);
    let last = read.session.last.unwrap();
    status::status(&read.session, &StatusSignals::default(), Time(last.0 + 1)).state
}

fn prompt() -> String {
    user("a", "", "10:00:00", r#""go""#)
}

fn says(uuid: &str, parent: &str, clock: &str) -> String {
    reply(uuid, parent, clock, uuid, &format!("[{}]", text("done")))
}

fn calls(tool: &str) -> String {
    reply(
        "b",
        "a",
        "10:00:01",
        "m",
        &format!("[{}]", call("t1", tool, "{}")),
    )
}

#[test]
fn a_session_without_lines_is_idle() {
    let read = read(&[""; 0]);
    assert_eq!(at(&read, "10:00:00").state, SessionState::Idle);
}

#[test]
fn a_new_prompt_means_working() {
    assert_eq!(now(&[prompt()]), SessionState::Working);
    assert_eq!(
        now(&[
            prompt(),
            says("b", "a", "10:00:01"),
            user("c", "b", "10:00:02", r#""more""#)
        ]),
        SessionState::Working
    );
}

#[test]
fn thinking_means_working() {
    let thinks = reply(
        "b",
        "a",
        "10:00:01",
        "m",
        r#"[{"type":"thinking","thinking":"hm","signature":""}]"#,
    );
    assert_eq!(now(&[prompt(), thinks]), SessionState::Working);
}

#[test]
fn a_call_on_disk_is_running_not_waiting_for_approval() {
    let read = read(&[prompt(), calls("Bash")]);
    let status = at(&read, "10:00:02");
    assert_eq!(status.state, SessionState::Working);
    let pending = &read.session.calls[status.pending.unwrap() as usize];
    assert_eq!(read.session.text(pending.tool), "Bash");
}

#[test]
fn a_text_beside_the_call_does_not_change_that() {
    let both = reply(
        "b",
        "a",
        "10:00:01",
        "m",
        &format!("[{},{}]", text("let me see"), call("t1", "Bash", "{}")),
    );
    assert_eq!(now(&[prompt(), both]), SessionState::Working);
    let lines = [
        prompt(),
        reply(
            "b",
            "a",
            "10:00:01",
            "m",
            &format!("[{}]", text("let me see")),
        ),
        reply(
            "c",
            "b",
            "10:00:02",
            "m",
            &format!("[{}]", call("t1", "Bash", "{}")),
        ),
    ];
    assert_eq!(now(&lines), SessionState::Working);
}

#[test]
fn a_question_waits_for_input_and_a_plan_for_approval() {
    assert_eq!(
        now(&[prompt(), calls("AskUserQuestion")]),
        SessionState::WaitingForInput
    );
    assert_eq!(
        now(&[prompt(), calls("ExitPlanMode")]),
        SessionState::WaitingForApproval
    );
}

#[test]
fn who_waits_for_a_person_still_waits_after_hours() {
    for (tool, state) in [
        ("AskUserQuestion", SessionState::WaitingForInput),
        ("ExitPlanMode", SessionState::WaitingForApproval),
    ] {
        let read = read(&[prompt(), calls(tool)]);
        for clock in ["10:04:00", "10:06:00", "16:00:00", "23:59:59"] {
            assert_eq!(at(&read, clock).state, state, "{tool} at {clock}");
        }
    }
}

#[test]
fn an_answered_question_means_working() {
    let lines = [
        prompt(),
        calls("AskUserQuestion"),
        user("c", "b", "10:00:02", &result("t1", r#""yes""#)),
    ];
    assert_eq!(now(&lines), SessionState::Working);
    let read = read(&lines);
    assert_eq!(at(&read, "10:00:03").pending, None);
}

#[test]
fn a_result_means_working() {
    let lines = [
        prompt(),
        calls("Bash"),
        user("c", "b", "10:00:02", &result("t1", r#""ok""#)),
    ];
    assert_eq!(now(&lines), SessionState::Working);
}

#[test]
fn the_result_of_one_call_leaves_the_other_pending() {
    let read = read(&[
        prompt(),
        reply(
            "b",
            "a",
            "10:00:01",
            "m",
            &format!(
                "[{},{}]",
                call("t1", "Read", "{}"),
                call("t2", "Bash", "{}")
            ),
        ),
        user("c", "b", "10:00:02", &result("t1", r#""ok""#)),
    ]);
    let status = at(&read, "10:00:03");
    let pending = &read.session.calls[status.pending.unwrap() as usize];
    assert_eq!(
        (read.session.call_id(pending), status.state),
        ("t2", SessionState::Working)
    );
}

#[test]
fn a_finished_turn_waits_for_input_whatever_its_stop_reason() {
    // Gateways and 2.1.11 to 2.1.58 leave it null on every line.
    assert_eq!(
        now(&[prompt(), says("b", "a", "10:00:01")]),
        SessionState::WaitingForInput
    );
    let stopped =
        says("b", "a", "10:00:01").replace("\"stop_reason\":null", "\"stop_reason\":\"end_turn\"");
    assert_eq!(now(&[prompt(), stopped]), SessionState::WaitingForInput);
}

#[test]
fn a_finished_turn_is_idle_after_five_minutes() {
    let read = read(&[prompt(), says("b", "a", "10:00:01")]);
    assert_eq!(at(&read, "10:05:00").state, SessionState::WaitingForInput);
    assert_eq!(at(&read, "10:05:01").state, SessionState::Idle);
    assert_eq!(at(&read, "11:00:00").since, Time::parse(&time("10:05:01")));
}

#[test]
fn a_turn_duration_says_the_turn_is_over() {
    let lines = [
        prompt(),
        says("b", "a", "10:00:01"),
        system(
            "c",
            "b",
            "10:00:02",
            "turn_duration",
            r#","durationMs":2000"#,
        ),
    ];
    assert_eq!(now(&lines), SessionState::WaitingForInput);
}

#[test]
fn bookkeeping_behind_the_last_line_is_neutral() {
    let neutral = [
        r#"{"type":"summary","summary":"S","leafUuid":"a"}"#,
        r#"{"type":"file-history-snapshot","messageId":"a","snapshot":{}}"#,
        r#"{"type":"progress","uuid":"x","parentUuid":"a","timestamp":"2026-01-03T10:00:02.000Z","data":{"type":"hook_progress"}}"#,
        r#"{"type":"queue-operation","operation":"dequeue","sessionId":"s","timestamp":"2026-01-03T10:00:02.000Z"}"#,
        r#"{"type":"last-prompt","lastPrompt":"go","sessionId":"s"}"#,
        r#"{"type":"ai-title","aiTitle":"T","sessionId":"s"}"#,
        r#"{"type":"hologram"}"#,
        "not json",
    ];
    for line in neutral {
        let working = [prompt(), calls("Bash"), line.to_owned()];
        assert_eq!(now(&working), SessionState::Working, "{line}");
        let finished = [prompt(), says("b", "a", "10:00:01"), line.to_owned()];
        assert_eq!(now(&finished), SessionState::WaitingForInput, "{line}");
    }
}

#[test]
fn an_api_error_at_the_end_is_an_error_until_the_next_prompt() {
    let failed = says("b", "a", "10:00:01").replacen('{', "{\"isApiErrorMessage\":true,", 1);
    assert_eq!(now(&[prompt(), failed.clone()]), SessionState::Error);
    let retry = system(
        "b",
        "a",
        "10:00:01",
        "api_error",
        r#","retryInMs":500,"level":"error""#,
    );
    assert_eq!(now(&[prompt(), retry]), SessionState::Error);
    assert_eq!(
        now(&[prompt(), failed, user("c", "b", "10:00:02", r#""again""#)]),
        SessionState::Working
    );
}

#[test]
fn an_interrupt_gives_the_turn_back_to_the_person() {
    let read = read(&[
        prompt(),
        calls("Bash"),
        user(
            "c",
            "b",
            "10:00:02",
            r#"[{"type":"text","text":"[Request interrupted by user for tool use]"}]"#,
        ),
    ]);
    let status = at(&read, "10:00:03");
    assert_eq!(
        (status.state, status.pending),
        (SessionState::WaitingForInput, None)
    );
}

#[test]
fn a_call_that_a_new_prompt_left_behind_is_not_pending() {
    let read = read(&[
        prompt(),
        calls("AskUserQuestion"),
        user("c", "b", "10:00:02", r#""never mind""#),
    ]);
    let status = at(&read, "10:00:03");
    assert_eq!(
        (status.state, status.pending),
        (SessionState::Working, None)
    );
}

#[test]
fn a_sub_agent_in_the_file_does_not_change_the_sessions_status() {
    let side = |line: String| line.replace("\"isSidechain\":false", "\"isSidechain\":true");
    let mut lines = vec![prompt(), says("b", "a", "10:00:01")];
    lines.push(side(user("s", "", "10:00:02", r#""sub""#)));
    assert_eq!(now(&lines), SessionState::WaitingForInput);
    lines.push(side(reply(
        "s2",
        "s",
        "10:00:03",
        "ms",
        &format!("[{}]", call("ts", "ExitPlanMode", "{}")),
    )));
    assert_eq!(now(&lines), SessionState::WaitingForInput);
}

#[test]
fn progress_keeps_a_working_session_from_becoming_idle() {
    let progress = r#"{"type":"progress","uuid":"x","parentUuid":"b","timestamp":"2026-01-03T10:20:00.000Z","data":{"type":"bash_progress","output":"…"}}"#;
    let read = read(&[prompt(), calls("Bash"), progress.to_owned()]);
    assert_eq!(at(&read, "10:21:00").state, SessionState::Working);
}

/// A command in the background, what a later call says about it, and whether it is over then.
#[test]
fn a_command_in_the_background_is_over_when_a_result_or_a_notification_says_so() {
    let with = |line: String, more: &str| line.replacen('{', &format!("{{{more},"), 1);
    let begun = [
        prompt(),
        calls("Bash"),
        with(
            user("c", "b", "10:00:02", &result("t1", r#""running""#)),
            r#""toolUseResult":{"backgroundTaskId":"b1"}"#,
        ),
    ];
    let over = |lines: &[String]| {
        let read = read(&[&begun[..], lines].concat());
        read.session.find_task("b1").unwrap().over
    };
    let asked = |tool: &str, input: &str, answer: &str| {
        let asks = reply(
            "d",
            "c",
            "10:00:03",
            "m2",
            &format!("[{}]", call("t2", tool, input)),
        );
        let said = user("e", "d", "10:00:04", &result("t2", r#""ok""#));
        over(&[asks, with(said, &format!(r#""toolUseResult":{answer}"#))])
    };
    assert!(!over(&[]));
    for (tool, input, answer, is_over) in [
        (
            "BashOutput",
            r#"{"bash_id":"b1"}"#,
            r#"{"shellId":"b1","status":"running"}"#,
            false,
        ),
        (
            "BashOutput",
            r#"{"bash_id":"b1"}"#,
            r#"{"shellId":"b1","status":"completed"}"#,
            true,
        ),
        (
            "BashOutput",
            r#"{"bash_id":"b1"}"#,
            r#"{"shellId":"b1"}"#,
            false,
        ),
        (
            "BashOutput",
            r#"{"bash_id":"b2"}"#,
            r#"{"shellId":"b2","status":"completed"}"#,
            false,
        ),
        (
            "TaskOutput",
            r#"{"task_id":"b1"}"#,
            r#"{"task":{"task_id":"b1","status":"running"}}"#,
            false,
        ),
        (
            "TaskOutput",
            r#"{"task_id":"b1"}"#,
            r#"{"task":{"task_id":"b1","status":"failed"}}"#,
            true,
        ),
        (
            "KillShell",
            r#"{"shell_id":"b1"}"#,
            r#"{"message":"killed"}"#,
            true,
        ),
        (
            "TaskStop",
            r#"{"task_id":"b1"}"#,
            r#"{"message":"stopped"}"#,
            true,
        ),
        (
            "TaskStop",
            r#"{"task_id":"b2"}"#,
            r#"{"message":"stopped"}"#,
            false,
        ),
    ] {
        assert_eq!(
            asked(tool, input, answer),
            is_over,
            "{tool} {input} {answer}"
        );
    }
    let notice = |tag: &str, status: &str| {
        let text = format!("<{tag}-notification><task-id>b1</task-id><status>{status}</status>");
        over(&[user("d", "c", "10:00:03", &format!("{text:?}"))])
    };
    assert!(notice("task", "completed") && notice("bash", "killed"));
    assert!(!notice("task", "running") && !notice("other", "completed"));
}

#[test]
fn the_last_prompt_is_the_one_that_was_typed_last() {
    let queued = r#"{"type":"attachment","uuid":"c","parentUuid":"b","timestamp":"2026-01-03T10:00:02.000Z","attachment":{"type":"queued_command","prompt":"and this","commandMode":"prompt"}}"#;
    let mut lines = vec![prompt(), says("b", "a", "10:00:01")];
    assert_eq!(read(&lines).session.recent_prompt.as_deref(), Some("go"));
    lines.push(queued.to_owned());
    assert_eq!(
        read(&lines).session.recent_prompt.as_deref(),
        Some("and this")
    );
    lines.push(user(
        "d",
        "c",
        "10:00:03",
        r#""<local-command-stdout>x</local-command-stdout>""#,
    ));
    assert_eq!(
        read(&lines).session.recent_prompt.as_deref(),
        Some("and this")
    );
}

#[test]
fn states_have_the_names_of_the_fifth_document() {
    for name in [
        "working",
        "waiting_for_approval",
        "waiting_for_input",
        "idle",
        "compacting",
        "error",
        "ended",
    ] {
        assert_eq!(
            SessionState::named(name).map(SessionState::name),
            Some(name)
        );
    }
}
