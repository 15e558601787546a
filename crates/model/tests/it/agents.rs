//! Which call started which sub-agent, and what is no sub-agent.

use unspool_model::agent_kind::AgentKind;
use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::agents::{self, AgentRow, SubAgentSession};
use unspool_model::view::workflow::WorkflowRun;
use unspool_testkit::script;

/// A file of a sub-agent, or of a helper of the client.
struct File {
    id: &'static str,
    log: Log,
    session: Session,
    call: Option<&'static str>,
    run: Option<&'static str>,
}

fn file(id: &'static str, text: &str) -> File {
    let log = Log::new(script::jsonl(text));
    let session = Session::from_log(&log, TranscriptRole::Agent);
    File {
        id,
        log,
        session,
        call: None,
        run: None,
    }
}

fn rows_of(main: &str, files: &[File], runs: &[WorkflowRun]) -> Vec<AgentRow> {
    let log = Log::new(script::jsonl(main));
    let session = Session::from_log(&log, TranscriptRole::Main);
    let files: Vec<SubAgentSession<'_>> = files
        .iter()
        .map(|file| SubAgentSession {
            source: Some(&file.log),
            call: file.call,
            run: file.run,
            ..SubAgentSession::new(file.id, &file.session)
        })
        .collect();
    agents::agents(&session, &log, &files, runs)
}

/// Each row as `agent < call below parent`.
fn links(main: &str, files: &[File]) -> Vec<String> {
    let shown = |row: AgentRow| {
        let call = row.call.unwrap_or_else(|| "?".to_owned());
        let below = row.parent.map(|parent| format!(" of {parent}"));
        format!("{} < {call}{}", row.agent, below.unwrap_or_default())
    };
    rows_of(main, files, &[]).into_iter().map(shown).collect()
}

const ASKS: &str = "(isSidechain=true) you: look\n(isSidechain=true) claude: seen\n";
const TWO: &str = "you: go\nclaude: [Task one] [Task two]\n";

fn progress(call: &str, agent: &str) -> String {
    format!(
        r#"raw: {{"type":"progress","uuid":"p-{agent}","parentUuid":null,"parentToolUseID":"{call}","toolUseID":"x","data":{{"type":"agent_progress","prompt":"p","agentId":"{agent}","message":{{"type":"user","message":{{"role":"user","content":"p"}}}}}},"timestamp":"2026-01-05T11:00:00.000Z"}}"#
    ) + "\n"
}

fn notice(call: &str, agent: &str) -> String {
    format!(
        r#"raw: {{"type":"user","uuid":"n-{agent}","parentUuid":null,"origin":{{"kind":"task-notification"}},"message":{{"role":"user","content":"<task-notification>\n<task-id>{agent}</task-id>\n<tool-use-id>{call}</tool-use-id>\n<status>completed</status>\n</task-notification>"}},"timestamp":"2026-01-05T11:00:00.000Z"}}"#
    ) + "\n"
}

#[test]
fn lines_of_progress_name_the_call_of_a_sub_agent() {
    let main = TWO.to_owned() + &progress("toolu_0002", "a1") + &progress("toolu_0001", "a2");
    let files = [file("a1", ASKS), file("a2", ASKS)];
    assert_eq!(links(&main, &files), ["a1 < toolu_0002", "a2 < toolu_0001"]);
}

#[test]
fn a_notification_names_the_call_of_its_task() {
    let main = TWO.to_owned() + &notice("toolu_0002", "a1");
    let rows = links(&main, &[file("a1", ASKS)]);
    assert_eq!(rows[0], "a1 < toolu_0002");
    assert_eq!(rows.len(), 2, "of the other call nothing is left");
}

#[test]
fn a_notification_that_the_program_marked_as_its_own_names_the_call_too() {
    let own = notice("toolu_0002", "a1").replace("\"uuid\"", "\"isMeta\":true,\"uuid\"");
    let rows = links(&(TWO.to_owned() + &own), &[file("a1", ASKS)]);
    assert_eq!(rows[0], "a1 < toolu_0002");
}

#[test]
fn several_notifications_on_one_line_each_name_a_call() {
    let element = |call: &str, agent: &str| {
        format!(
            r"<task-notification>\n<task-id>{agent}</task-id>\n<tool-use-id>{call}</tool-use-id>\n<status>completed</status>\n<result>x</result>\n</task-notification>"
        )
    };
    let both = format!(
        r"{}\nFull transcript available at: /tmp/a2\n{}",
        element("toolu_0002", "a1"),
        element("toolu_0001", "a2")
    );
    let said = |text: &str| {
        let line = format!(
            r#"raw: {{"type":"user","uuid":"n","parentUuid":null,"origin":{{"kind":"task-notification"}},"message":{{"role":"user","content":"{text}"}},"timestamp":"2026-01-05T11:00:00.000Z"}}"#
        );
        TWO.to_owned() + &line + "\n"
    };
    let files = || [file("a1", ASKS), file("a2", ASKS)];
    assert_eq!(
        links(&said(&both), &files()),
        ["a1 < toolu_0002", "a2 < toolu_0001"]
    );
    // What a sub-agent quotes is no notification.
    let quoting = element("toolu_0002", "a1")
        .replace(">x<", &format!(r">\n{}\n<", element("toolu_0001", "a2")));
    let rows = links(&said(&quoting), &files());
    assert_eq!(rows[..2], ["a1 < toolu_0002", "a2 < ?"]);
}

#[test]
fn a_line_of_the_session_names_the_call_that_a_sub_agent_made() {
    let script = "(isSidechain=true) you: look\n(isSidechain=true) claude: [Task deeper]\n";
    for clue in [progress("toolu_deep", "a2"), notice("toolu_deep", "a2")] {
        let text = String::from_utf8(script::jsonl(script)).unwrap();
        let log = Log::new(text.replace("toolu_0001", "toolu_deep"));
        let maker = File {
            id: "a1",
            session: Session::from_log(&log, TranscriptRole::Agent),
            log,
            call: Some("toolu_0001"),
            run: None,
        };
        let main = "you: go\nclaude: [Task one]\n".to_owned() + &clue;
        assert_eq!(
            links(&main, &[maker, file("a2", ASKS)]),
            ["a1 < toolu_0001", "a2 < toolu_deep of a1"]
        );
    }
}

#[test]
fn the_text_of_a_result_names_its_sub_agent() {
    let said = "result: Task two done. It said agentId: zzz somewhere\\nagentId: a1 (use SendMessage to continue)\n";
    let main = TWO.to_owned() + said;
    let rows = links(
        &main,
        &[
            file("a1", ASKS),
            file(
                "zzz",
                "(isSidechain=true) you: other\n(isSidechain=true) claude: x\n",
            ),
        ],
    );
    assert!(rows.contains(&"a1 < toolu_0002".to_owned()), "{rows:?}");
    assert!(rows.contains(&"zzz < ?".to_owned()), "{rows:?}");
}

#[test]
fn words_of_any_other_tool_name_no_sub_agent() {
    let main = "you: go\nclaude: [Bash cat]\nresult: Bash cat agentId: a1 (x)\n";
    assert_eq!(links(main, &[file("a1", ASKS)]), ["a1 < ?"]);
}

#[test]
fn the_same_prompt_is_the_last_way_and_only_if_nobody_else_has_it() {
    let call = |id: &str, prompt: &str| {
        format!(
            r#"raw: {{"type":"assistant","uuid":"u-{id}","parentUuid":null,"message":{{"id":"m-{id}","role":"assistant","content":[{{"type":"tool_use","id":"{id}","name":"Agent","input":{{"description":"d","prompt":"{prompt}"}}}}]}},"timestamp":"2026-01-05T11:00:00.000Z"}}"#
        ) + "\n"
    };
    let asks =
        |what: &str| format!("(isSidechain=true) you: {what}\n(isSidechain=true) claude: x\n");
    let main = call("t1", "look here") + &call("t2", "look there");
    let files = || {
        [
            file("a1", &asks("look there")),
            file("a2", &asks("look here")),
        ]
    };
    assert_eq!(links(&main, &files()), ["a1 < t2", "a2 < t1"]);
    // Two calls with one prompt: nobody knows which was which.
    let twice = call("t1", "look here") + &call("t2", "look here");
    let rows = links(&twice, &[file("a1", &asks("look here"))]);
    assert_eq!(rows, ["a1 < ?", " < t1", " < t2"]);
    let two = [
        file("a1", &asks("look here")),
        file("a2", &asks("look here")),
    ];
    let rows = links(&call("t1", "look here"), &two);
    assert_eq!(rows, ["a1 < ?", "a2 < ?", " < t1"]);
}

#[test]
fn a_result_is_believed_before_a_side_file_and_that_before_a_hint() {
    let named = |call: &str, agent: &str| {
        format!(
            r#"raw: {{"type":"user","uuid":"r-{call}","parentUuid":null,"toolUseResult":{{"status":"completed","agentId":"{agent}"}},"message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{call}","content":"done"}}]}},"timestamp":"2026-01-05T11:00:00.000Z"}}"#
        ) + "\n"
    };
    let noted = || File {
        call: Some("toolu_0002"),
        ..file("a1", ASKS)
    };
    let main = TWO.to_owned() + &named("toolu_0001", "a1");
    assert_eq!(links(&main, &[noted()])[0], "a1 < toolu_0001");
    let main = TWO.to_owned() + &progress("toolu_0001", "a1");
    assert_eq!(links(&main, &[noted()])[0], "a1 < toolu_0002");
    // A call that names its sub-agent has started no other, whatever a line of progress says.
    let main = TWO.to_owned() + &named("toolu_0001", "a1") + &progress("toolu_0001", "a2");
    let rows = links(
        &main,
        &[file("a1", ASKS), file("a2", "(isSidechain=true) you: x\n")],
    );
    assert!(rows.contains(&"a2 < ?".to_owned()), "{rows:?}");
}

#[test]
fn a_sub_agent_that_was_sent_on_is_one_row_and_no_call_of_it_is_lost() {
    let named = |call: &str| {
        format!(
            r#"raw: {{"type":"user","uuid":"r-{call}","parentUuid":null,"toolUseResult":{{"agentId":"a1"}},"message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{call}","content":"done"}}]}},"timestamp":"2026-01-05T11:00:00.000Z"}}"#
        ) + "\n"
    };
    let main = TWO.to_owned() + &named("toolu_0001") + &named("toolu_0002");
    assert_eq!(links(&main, &[file("a1", ASKS)]), ["a1 < toolu_0001"]);
}

#[test]
fn helpers_of_the_client_are_told_apart_and_are_nobodys_sub_agents() {
    let main = "you: go\nclaude: [Task look]\n";
    let files = [
        file("acompact-1a", ASKS),
        file("aside_question-2b", ASKS),
        file("aprompt_suggestion-3c", ASKS),
        file(
            "a4",
            "(isSidechain=true) you: Warmup\n(isSidechain=true) claude: ok\n",
        ),
        file("a5", ASKS),
    ];
    let rows = rows_of(main, &files, &[]);
    let roles: Vec<_> = rows
        .iter()
        .map(|row| (&*row.agent, row.role.name()))
        .collect();
    assert_eq!(
        roles,
        [
            ("acompact-1a", "compaction"),
            ("aside_question-2b", "side_question"),
            ("aprompt_suggestion-3c", "prompt_suggestion"),
            ("a4", "warm_up"),
            ("a5", "sub_agent"),
        ]
    );
}

#[test]
fn a_workflow_run_stands_below_its_call_and_its_sub_agents_below_it() {
    let main = r#"
you: go
claude: [Workflow review]
raw: {"type":"user","uuid":"r","parentUuid":null,"toolUseResult":{"status":"async_launched","taskId":"t9","runId":"wf_1","workflowName":"review"},"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0001","content":"started"}]},"timestamp":"2026-01-05T11:00:00.000Z"}
"#;
    let told = br#"{"runId":"wf_1","taskId":"t9","workflowName":"review","status":"completed","phases":[{"title":"Map"}],"workflowProgress":[{"type":"workflow_agent","agentId":"a1","label":"one","phaseTitle":"Map","state":"done"},{"type":"workflow_agent","agentId":"a2","label":"two","phaseTitle":"Map","state":"error"}]}"#;
    let runs = [WorkflowRun::read("wf_1", Some(told), None)];
    let of_run = |id| File {
        run: Some("wf_1"),
        ..file(id, ASKS)
    };
    let files = [of_run("a1"), of_run("a2")];
    let rows = rows_of(main, &files, &runs);
    assert_eq!(rows.len(), 3);
    let run = &rows[0];
    assert_eq!((run.role, run.status), (AgentKind::Run, "completed"));
    assert_eq!(run.call.as_deref(), Some("toolu_0001"));
    assert_eq!(
        (run.name.as_deref(), run.phase.as_deref()),
        (Some("review"), Some("Map"))
    );
    for (row, (label, state, status)) in rows[1..]
        .iter()
        .zip([("one", "done", "completed"), ("two", "error", "failed")])
    {
        assert_eq!(row.role, AgentKind::Workflow);
        assert_eq!((row.depth, row.parent.as_deref()), (2, Some("wf_1")));
        assert_eq!(row.name.as_deref(), Some(label));
        assert_eq!((row.state.as_deref(), row.status), (Some(state), status));
        assert_eq!(row.call.as_deref(), Some("toolu_0001"));
        assert_eq!(row.phase.as_deref(), Some("Map"));
    }
    // Without the structured result, a notification about its task tells which call it was.
    let lost = "you: go\nclaude: [Workflow review]\n".to_owned() + &notice("toolu_0001", "t9");
    assert_eq!(
        rows_of(&lost, &files, &runs)[0].call.as_deref(),
        Some("toolu_0001")
    );
}

#[test]
fn a_teammate_has_turns_a_goal_and_a_name() {
    let text = r#"
(teamName=crew, agentName=reviewer, origin={"kind":"peer"}) you: <teammate-message teammate_id="team-lead" summary="Look">\nlook at it\n</teammate-message>
(teamName=crew, agentName=reviewer) claude: looked
"#;
    let mate = file("reviewer@crew", text);
    assert_eq!(mate.session.turns.len(), 1);
    assert_eq!(mate.session.goal.as_deref(), Some("look at it"));
    let rows = rows_of("(teamName=crew) you: go\n", &[mate], &[]);
    assert_eq!(rows[0].role, AgentKind::Teammate);
    assert_eq!(rows[0].name.as_deref(), Some("reviewer"));
    assert_eq!((rows[0].team.as_deref(), rows[0].turns), (Some("crew"), 1));
}

#[test]
fn a_copied_reply_tells_which_session_it_was_asked_in() {
    let lines = |more: &str| {
        let text = format!("(session=new{more}) you: go\n(session=new{more}) claude: done\n");
        Session::from_log(&Log::new(script::jsonl(&text)), TranscriptRole::Main)
    };
    let from = |session: Session| session.forked_from.map(|id| id.to_string());
    assert_eq!(from(lines("")), None);
    assert_eq!(
        from(lines(", requestSessionId=old")).as_deref(),
        Some("old")
    );
    assert_eq!(from(lines(", requestSessionId=new")), None);
    let both = lines(r#", requestSessionId=older, forkedFrom={"sessionId":"old"}"#);
    assert_eq!(from(both).as_deref(), Some("old"));
}
