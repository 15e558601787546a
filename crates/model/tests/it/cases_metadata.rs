//! What a session knows of itself: goal, output, model, branch, titles.

use std::collections::HashMap;

use unspool_model::id::Id;

use crate::make::{read, reply, text, user};

fn says(uuid: &str, words: &str) -> String {
    reply(
        uuid,
        "",
        "10:00:00",
        &format!("m-{uuid}"),
        &format!("[{}]", text(words)),
    )
}

/// Adds a field in front of a line.
fn with(line: String, field: &str) -> String {
    line.replacen('{', &format!("{{{field},"), 1)
}

#[test]
fn the_goal_is_the_first_prompt_and_stays() {
    let read = read(&[
        user("a", "", "10:00:00", r#""first""#),
        user("b", "a", "10:00:01", r#""second""#),
    ]);
    assert_eq!(read.session.goal.as_deref(), Some("first"));
}

#[test]
fn the_goal_may_stand_in_an_array() {
    let read = read(&[user(
        "a",
        "",
        "10:00:00",
        r#"[{"type":"text","text":"first"}]"#,
    )]);
    assert_eq!(read.session.goal.as_deref(), Some("first"));
}

#[test]
fn a_result_or_a_machine_text_is_no_goal() {
    let read = read(&[
        user(
            "a",
            "",
            "10:00:00",
            r#"[{"type":"tool_result","tool_use_id":"t","content":"x"}]"#,
        ),
        user(
            "b",
            "a",
            "10:00:01",
            r#""<local-command-stdout>x</local-command-stdout>""#,
        ),
        user("c", "b", "10:00:02", r#""real""#),
    ]);
    assert_eq!(read.session.goal.as_deref(), Some("real"));
}

#[test]
fn a_prompt_says_more_about_a_session_than_the_command_before_it() {
    let read = read(&[
        user(
            "a",
            "",
            "10:00:00",
            r#""<command-name>/clear</command-name>""#,
        ),
        user("b", "a", "10:00:01", r#""fix the parser""#),
        user("c", "b", "10:00:02", r#""thanks""#),
    ]);
    assert_eq!(read.session.goal.as_deref(), Some("fix the parser"));
}

#[test]
fn the_last_text_is_the_recent_output() {
    let read = read(&[says("a", "one"), says("b", "two")]);
    assert_eq!(read.session.recent_output.as_deref(), Some("two"));
}

#[test]
fn the_recent_output_is_cut_at_500_characters_not_bytes() {
    let long = "界".repeat(600);
    let read = read(&[says("a", &long)]);
    assert_eq!(
        read.session
            .recent_output
            .map(|output| output.chars().count()),
        Some(500)
    );
}

#[test]
fn a_text_of_exactly_500_characters_is_whole() {
    let exact = "x".repeat(500);
    let read = read(&[says("a", &exact)]);
    assert_eq!(read.session.recent_output.as_deref(), Some(exact.as_str()));
}

#[test]
fn calls_and_thinking_leave_the_recent_output_alone() {
    let read = read(&[
        says("a", "said"),
        reply(
            "b",
            "a",
            "10:00:01",
            "m2",
            r#"[{"type":"thinking","thinking":"hm","signature":""}]"#,
        ),
        reply(
            "c",
            "b",
            "10:00:02",
            "m2",
            r#"[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}]"#,
        ),
    ]);
    assert_eq!(read.session.recent_output.as_deref(), Some("said"));
}

#[test]
fn models_and_branches_follow_the_lines() {
    let other = says("b", "two").replace("claude-opus-4-5", "claude-sonnet-4-5");
    let read = read(&[
        with(says("a", "one"), r#""gitBranch":"main""#),
        with(other, r#""gitBranch":"feature""#),
    ]);
    assert_eq!(read.session.branch.as_deref(), Some("feature"));
    assert_eq!(
        read.session.models.texts(),
        ["claude-opus-4-5", "claude-sonnet-4-5"]
    );
}

#[test]
fn metadata_may_be_full_partial_or_absent() {
    let full = read(&[with(
        user("a", "", "10:00:00", r#""x""#),
        r#""version":"2.1.29","slug":"a-b-c","cwd":"/p","gitBranch":"main","entrypoint":"cli""#,
    )]);
    assert_eq!(full.session.slug.as_deref(), Some("a-b-c"));
    assert_eq!(full.session.entrypoint.as_deref(), Some("cli"));
    assert_eq!(full.session.versions.texts(), ["2.1.29"]);
    let partial = read(&[with(user("a", "", "10:00:00", r#""x""#), r#""cwd":"/p""#)]);
    assert_eq!(partial.session.cwds.texts(), ["/p"]);
    assert!(partial.session.versions.is_empty());
    let none = read(&[r#"{"type":"user","content":"x"}"#]);
    assert_eq!((none.session.branch, none.session.slug), (None, None));
    assert!(none.session.first.is_none());
}

#[test]
fn a_session_may_be_written_by_several_versions() {
    let read = read(&[
        with(says("a", "one"), r#""version":"2.0.37""#),
        with(says("b", "two"), r#""version":"2.0.42""#),
        with(says("c", "three"), r#""version":"2.0.42""#),
    ]);
    assert_eq!(
        read.session.versions.iter().collect::<Vec<_>>(),
        [("2.0.37", 1), ("2.0.42", 2)]
    );
}

#[test]
fn a_sub_agent_does_not_speak_for_its_session() {
    let side = |line: String| {
        with(
            line.replace("\"isSidechain\":false", "\"isSidechain\":true"),
            r#""agentId":"a1b2c3d","gitBranch":"elsewhere","permissionMode":"plan""#,
        )
    };
    let read = read(&[
        with(
            user("a", "", "10:00:00", r#""go""#),
            r#""gitBranch":"main""#,
        ),
        says("b", "mine"),
        side(user("c", "", "10:00:02", r#""sub prompt""#)),
        side(says("d", "sub output")),
    ]);
    let session = &read.session;
    assert_eq!(session.goal.as_deref(), Some("go"));
    assert_eq!(session.recent_output.as_deref(), Some("mine"));
    assert_eq!(session.branch.as_deref(), Some("main"));
    assert_eq!(session.permission_mode, None);
    assert_eq!(session.threads[1].agent.as_deref(), Some("a1b2c3d"));
}

#[test]
fn the_permission_mode_is_the_last_one_written() {
    let read = read(&[
        with(
            user("a", "", "10:00:00", r#""x""#),
            r#""permissionMode":"default""#,
        ),
        with(
            user("b", "a", "10:00:01", r#""y""#),
            r#""permissionMode":"acceptEdits""#,
        ),
        r#"{"type":"permission-mode","permissionMode":"plan","sessionId":"s"}"#.to_owned(),
    ]);
    assert_eq!(read.session.permission_mode.as_deref(), Some("plan"));
}

#[test]
fn titles_have_an_order_and_the_last_of_a_kind_counts() {
    let mut lines = vec![user("a", "", "10:00:00", r#""the first prompt""#)];
    let mut expect = |line: &str, wanted: &str| {
        if !line.is_empty() {
            lines.push(line.to_owned());
        }
        let title = read(&lines).session.title(&HashMap::new());
        assert_eq!(title.as_deref(), Some(wanted), "{line}");
    };
    expect("", "the first prompt");
    expect(
        r#"{"type":"summary","summary":"Other","leafUuid":"zz"}"#,
        "the first prompt",
    );
    expect(
        r#"{"type":"summary","summary":"Ours","leafUuid":"a"}"#,
        "Ours",
    );
    expect(
        r#"{"type":"agent-name","agentName":"named","sessionId":"s"}"#,
        "named",
    );
    expect(
        r#"{"type":"ai-title","aiTitle":"By the model","sessionId":"s"}"#,
        "By the model",
    );
    expect(
        r#"{"type":"custom-title","customTitle":"By me","sessionId":"s"}"#,
        "By me",
    );
    expect(
        r#"{"type":"custom-title","customTitle":"By me again","sessionId":"s"}"#,
        "By me again",
    );
    expect(
        r#"{"type":"ai-title","aiTitle":"Later","sessionId":"s"}"#,
        "By me again",
    );
}

#[test]
fn a_title_may_come_from_another_file() {
    let read = read(&[user("a", "", "10:00:00", r#""the first prompt""#)]);
    let foreign = HashMap::from([(Id::new("a"), "From elsewhere".to_owned())]);
    assert_eq!(
        read.session.title(&foreign).as_deref(),
        Some("From elsewhere")
    );
}

#[test]
fn a_summary_with_a_malformed_leaf_does_no_harm() {
    let read = read(&[
        r#"{"type":"summary","summary":"S"}"#,
        r#"{"type":"summary","summary":"S","leafUuid":null}"#,
        r#"{"type":"summary","leafUuid":"zz"}"#,
    ]);
    assert_eq!(read.session.title(&HashMap::new()), None);
    assert_eq!(read.faults(), []);
}

#[test]
fn lines_with_another_session_id_belong_to_the_file_all_the_same() {
    let foreign = user("a", "", "10:00:00", r#""one""#)
        .replace("\"sessionId\":\"s\"", "\"sessionId\":\"old\"");
    let read = read(&[foreign, user("b", "a", "10:00:01", r#""two""#)]);
    assert_eq!(read.session.turns.len(), 2);
    assert_eq!(read.session.goal.as_deref(), Some("one"));
}

fn titled(lines: &[&str]) -> Option<String> {
    let read = read(lines);
    let none = std::collections::HashMap::new();
    read.session.title(&none)
}

const PROMPT: &str = r#"{"type":"user","uuid":"a","parentUuid":null,"message":{"role":"user","content":"fix the parser"}}"#;

#[test]
fn an_empty_title_takes_back_the_one_before_it() {
    let custom =
        |text: &str| format!(r#"{{"type":"custom-title","customTitle":"{text}","sessionId":"s"}}"#);
    let ai = |text: &str| format!(r#"{{"type":"ai-title","aiTitle":"{text}","sessionId":"s"}}"#);
    let (mine, none, made) = (custom("mine"), custom(""), ai("Made up"));
    assert_eq!(titled(&[PROMPT, &made, &mine]).as_deref(), Some("mine"));
    assert_eq!(
        titled(&[PROMPT, &mine, &made, &none]).as_deref(),
        Some("Made up")
    );
    assert_eq!(
        titled(&[PROMPT, &mine, &none]).as_deref(),
        Some("fix the parser")
    );
    assert_eq!(titled(&[PROMPT, &none, &mine]).as_deref(), Some("mine"));
}

#[test]
fn what_a_failed_request_said_is_no_title_of_a_session() {
    let ai = |text: &str| format!(r#"{{"type":"ai-title","aiTitle":"{text}","sessionId":"s"}}"#);
    let summary = |text: &str| format!(r#"{{"type":"summary","summary":"{text}","leafUuid":"a"}}"#);
    let failed = "API Error: 403 forbidden";
    assert_eq!(
        titled(&[PROMPT, &summary(failed)]).as_deref(),
        Some("fix the parser")
    );
    assert_eq!(
        titled(&[PROMPT, &ai("Parser"), &ai(failed)]).as_deref(),
        Some("Parser")
    );
    assert_eq!(
        titled(&[
            PROMPT,
            &summary("Parser"),
            &summary("Invalid API key · Please run /login")
        ])
        .as_deref(),
        Some("Parser")
    );
    // What a person chose stays.
    let custom = r#"{"type":"custom-title","customTitle":"API Error: the hunt","sessionId":"s"}"#;
    assert_eq!(
        titled(&[PROMPT, custom]).as_deref(),
        Some("API Error: the hunt")
    );
    // A title for another session neither.
    let other = read(&[r#"{"type":"summary","summary":"API Error: 500","leafUuid":"elsewhere"}"#]);
    assert_eq!(other.session.foreign_titles().count(), 0);
}

#[test]
fn a_session_that_begins_with_clear_is_named_by_what_comes_then() {
    let command = |uuid: &str, name: &str| {
        format!(
            r#"{{"type":"user","uuid":"{uuid}","parentUuid":null,"message":{{"role":"user","content":"<command-name>{name}</command-name>\n<command-message>x</command-message>\n<command-args>the tests</command-args>"}}}}"#
        )
    };
    let (clear, review) = (command("a", "/clear"), command("b", "/review"));
    assert_eq!(
        titled(&[&clear, &review]).as_deref(),
        Some("/review the tests")
    );
    assert_eq!(
        titled(&[&review, &clear]).as_deref(),
        Some("/review the tests")
    );
    assert_eq!(
        titled(&[&clear, &review, PROMPT]).as_deref(),
        Some("fix the parser")
    );
    assert_eq!(titled(&[&clear]).as_deref(), Some("/clear the tests"));
}

#[test]
fn a_session_that_carries_out_a_plan_is_named_by_its_heading() {
    let plan = r##"{"type":"user","uuid":"a","parentUuid":null,"planContent":"# Move it","message":{"role":"user","content":"Implement the following plan:\n\n# Move the parser\n\n1. x"}}"##;
    assert_eq!(titled(&[plan]).as_deref(), Some("Move the parser"));
}

#[test]
fn a_file_in_which_nobody_typed_and_nobody_answered_is_not_used() {
    let is_used = |lines: &[&str]| read(lines).session.is_used();
    let title = r#"{"type":"custom-title","customTitle":"x","sessionId":"s"}"#;
    let caveat = r#"{"type":"user","uuid":"a","parentUuid":null,"isMeta":true,"message":{"role":"user","content":"Caveat: x"}}"#;
    let silent = r#"{"type":"assistant","uuid":"b","parentUuid":"a","message":{"id":"m","model":"<synthetic>","role":"assistant","content":[{"type":"text","text":"No response requested."}]}}"#;
    let answer = r#"{"type":"assistant","uuid":"b","parentUuid":"a","message":{"id":"m","model":"m","role":"assistant","content":[{"type":"text","text":"hi"}]}}"#;
    assert!(!is_used(&[]) && !is_used(&[title]) && !is_used(&[caveat, silent]));
    assert!(is_used(&[PROMPT]) && is_used(&[caveat, answer]));
}

#[test]
fn a_title_that_repeats_an_error_of_the_file_is_none() {
    let ai = |title: &str| format!(r#"{{"type":"ai-title","aiTitle":"{title}"}}"#);
    let error = "There's an issue with the selected model (x). It may not exist or you may not have access to it. Run /model to pick a different model.";
    let failed = |kind: &str| {
        format!(
            r#"{{"type":"assistant","uuid":"b","parentUuid":"a",{kind}"message":{{"id":"m","role":"assistant","model":"<synthetic>","content":[{{"type":"text","text":"{error}"}}]}}}}"#
        )
    };
    let asked = user("a", "", "10:00:00", r#""hi there""#);
    let sentence = "There's an issue with the selected model (x). It may not exist or you may not have access to it.";
    for kind in [r#""isApiErrorMessage":true,"#, ""] {
        let line = failed(kind);
        // The title may stand before the line that it repeats.
        let lines = [&*asked, &ai("Say hello"), &ai(sentence), &line, &ai(error)];
        assert_eq!(titled(&lines).as_deref(), Some("Say hello"));
    }
    let unlike = [&*asked, &failed(""), &ai("There's an issue")];
    assert_eq!(titled(&unlike).as_deref(), Some("There's an issue"));
    // What a person typed is a title, whatever it says.
    let own = format!(r#"{{"type":"custom-title","customTitle":"{error}"}}"#);
    assert_eq!(
        titled(&[&*asked, &failed(""), &own]).as_deref(),
        Some(error)
    );
    let retried = r#"{"type":"system","subtype":"api_error","uuid":"c","parentUuid":"a","error":{"formatted":"The gateway said no","status":502}}"#;
    let lines = [&*asked, retried, &ai("The gateway said no")];
    assert_eq!(titled(&lines).as_deref(), Some("hi there"));
}

#[test]
fn a_heading_far_down_in_a_plan_is_its_title() {
    let words = "Some words first. ".repeat(60);
    let plan = format!("Implement the following plan:\\n\\n{words}\\n\\n# Move the parser\\n\\nx");
    let read = read(&[user("a", "", "10:00:00", &format!("\"{plan}\""))]);
    assert_eq!(read.session.own_title(), Some("Move the parser"));
    let goal = read.session.goal.as_deref().unwrap();
    assert!(goal.starts_with("Implement the following plan:") && goal.chars().count() == 500);
}
