//! `chat -p`: the real program against a model that plays a script and judges every request.

mod tools;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use unspool_testkit::corpus;
use unspool_testkit::home::Home;
use unspool_testkit::model::{Answer, Model, Step, call, text, thinking};

use crate::home;

const LONG: Duration = Duration::from_secs(60);

/// `chat` with access to a model that plays a script.
pub fn program(home: &Home, model: &Model) -> Command {
    let mut command = home.command();
    command
        .env("ANTHROPIC_API_KEY", "test-key")
        .env("ANTHROPIC_BASE_URL", model.url())
        .args(["chat", "--model", "claude-sonnet-4-5"]);
    command
}

pub fn command(home: &Home, model: &Model, args: &[&str]) -> Command {
    let mut command = program(home, model);
    command
        .env("CLAUDE_CODE_MAX_RETRIES", "2")
        .arg("-p")
        .args(args);
    command
}

fn chat(home: &Home, model: &Model, args: &[&str]) -> Output {
    command(home, model, args).output().unwrap()
}

pub fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// All transcripts of sessions.
pub fn transcripts(home: &Home) -> Vec<PathBuf> {
    let projects = home.claude_dir().join("projects");
    let mut all = Vec::new();
    for folder in std::fs::read_dir(projects).into_iter().flatten().flatten() {
        for file in std::fs::read_dir(folder.path())
            .into_iter()
            .flatten()
            .flatten()
        {
            if file.path().extension().is_some_and(|end| end == "jsonl") {
                all.push(file.path());
            }
        }
    }
    all.sort();
    all
}

fn lines_of(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub fn lines(home: &Home) -> Vec<Value> {
    let all = transcripts(home);
    assert_eq!(all.len(), 1, "{all:?}");
    lines_of(&all[0])
}

/// What each line is, in a word.
pub fn kinds(lines: &[Value]) -> Vec<String> {
    let kind = |line: &Value| {
        let kind = line["type"].as_str().unwrap_or_default();
        let block = line["message"]["content"]
            .get(0)
            .map(|block| &block["type"]);
        match (kind, block.and_then(Value::as_str)) {
            ("user" | "assistant", Some(block)) => format!("{kind}:{block}"),
            ("system", _) => format!("system:{}", line["subtype"].as_str().unwrap_or_default()),
            _ => kind.to_owned(),
        }
    };
    lines.iter().map(kind).collect()
}

pub fn fine(model: &Model) {
    assert_eq!(model.refusals(), [""; 0]);
}

#[test]
fn a_prompt_becomes_a_session_and_the_answer_is_printed() {
    let home = home();
    let model =
        Model::playing(vec![Answer::blocks(&[thinking("hm"), text("hello there")])]).unwrap();
    let output = chat(&home, &model, &["hi"]);
    assert_eq!(
        (out(&output).as_str(), err(&output).as_str()),
        ("hello there\n", "")
    );
    assert!(output.status.success());
    fine(&model);
    let lines = lines(&home);
    assert_eq!(
        kinds(&lines),
        [
            "user",
            "file-history-snapshot",
            "assistant:thinking",
            "assistant:text",
            "system:turn_duration",
            "last-prompt"
        ]
    );
    assert_eq!(lines[3]["message"]["stop_reason"], "end_turn");
    assert_eq!(lines[3]["message"]["usage"]["output_tokens"], 20);
    assert_eq!(lines[3]["requestId"], "req_test_0001");
    assert_eq!(lines[0]["version"], "unspool-0.1");
    assert_eq!(lines[0]["permissionMode"], "default");
    assert_eq!(lines[0]["slug"].as_str().unwrap().split('-').count(), 3);
    let request = &model.requests()[0];
    assert!(
        request
            .header("user-agent")
            .unwrap()
            .starts_with("unspool/")
    );
    assert_eq!(request.header("x-api-key"), Some("test-key"));
    assert_eq!(request.body["stream"], true);
}

#[test]
fn parents_are_a_chain_and_times_rise() {
    let home = home();
    let model = Model::playing(vec![Answer::blocks(&[thinking("a"), text("b")])]).unwrap();
    chat(&home, &model, &["hi"]);
    chat(&home, &model, &["--continue", "more"]);
    let lines = lines(&home);
    let chain: Vec<&Value> = lines
        .iter()
        .filter(|line| line.get("uuid").is_some())
        .collect();
    assert_eq!(chain[0]["parentUuid"], Value::Null);
    for pair in chain.windows(2) {
        assert_eq!(pair[1]["parentUuid"], pair[0]["uuid"]);
        assert!(pair[0]["timestamp"].as_str() < pair[1]["timestamp"].as_str());
    }
}

#[test]
fn a_session_is_gone_on_with_and_the_model_sees_what_was_said() {
    let home = home();
    let model = Model::playing(vec![
        Answer::text("first answer"),
        Answer::text("second answer"),
    ])
    .unwrap();
    chat(&home, &model, &["one"]);
    let output = chat(&home, &model, &["--continue", "two"]);
    assert_eq!(out(&output), "second answer\n");
    fine(&model);
    let sent = model.requests()[1].body["messages"].to_string();
    for said in ["one", "first answer", "two"] {
        assert!(sent.contains(said), "{sent}");
    }
    assert_eq!(transcripts(&home).len(), 1);
}

#[test]
fn a_fork_leaves_the_session_as_it_is() {
    let home = home();
    let model = Model::playing(vec![]).unwrap();
    chat(&home, &model, &["one"]);
    let first = transcripts(&home).remove(0);
    let before = std::fs::read(&first).unwrap();
    let output = chat(&home, &model, &["--continue", "--fork-session", "two"]);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(std::fs::read(&first).unwrap(), before);
    let all = transcripts(&home);
    assert_eq!(all.len(), 2);
    let copy = all.iter().find(|path| **path != first).unwrap();
    let id = copy.file_stem().unwrap().to_string_lossy().into_owned();
    let copied = lines_of(copy);
    let named = copied.iter().filter_map(|line| line["sessionId"].as_str());
    assert!(named.into_iter().all(|session| session == id));
    fine(&model);
    assert!(
        model.requests()[1].body["messages"]
            .to_string()
            .contains("one")
    );
}

#[test]
fn a_prompt_can_be_piped_in() {
    let home = home();
    let model = Model::playing(vec![]).unwrap();
    let mut child = command(&home, &model, &["look:"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"the content")
        .unwrap();
    assert_eq!(out(&child.wait_with_output().unwrap()), "done\n");
    let sent = model.requests()[0].body["messages"].to_string();
    assert!(
        sent.contains("the content") && sent.contains("look:"),
        "{sent}"
    );
}

#[test]
fn one_byte_at_a_time_gives_the_same() {
    let home = home();
    let said = "héllo 日本 \\\"quoted\\\"";
    let model =
        Model::playing(vec![Answer::blocks(&[thinking("ü"), text(said)]).pieces(1)]).unwrap();
    assert_eq!(out(&chat(&home, &model, &["hi"])), format!("{said}\n"));
}

#[test]
fn a_busy_api_is_asked_again_and_that_is_told() {
    let home = home();
    let model = Model::playing(vec![
        Answer::fails("529 Overloaded", "overloaded_error", "busy"),
        Answer::fails("429 Too Many Requests", "rate_limit_error", "slow")
            .header("retry-after-ms", "40"),
        Answer::text("at last"),
    ])
    .unwrap();
    let output = chat(&home, &model, &["hi"]);
    assert_eq!(out(&output), "at last\n");
    assert!(
        err(&output).contains("529") && err(&output).contains("1 of 2"),
        "{}",
        err(&output)
    );
    let lines = lines(&home);
    let retries: Vec<&Value> = lines
        .iter()
        .filter(|line| line["subtype"] == "api_error")
        .collect();
    assert_eq!((retries.len(), &retries[1]["retryInMs"]), (2, &json!(40)));
}

#[test]
fn a_stream_that_breaks_before_a_block_is_asked_again() {
    let home = home();
    let answer = Answer::text("whole");
    for bytes in [1, 200, answer.len() / 2] {
        let model = Model::playing(vec![answer.clone().cut(bytes), answer.clone()]).unwrap();
        let output = chat(&home, &model, &["hi"]);
        assert_eq!(out(&output), "whole\n", "cut at {bytes}: {}", err(&output));
        fine(&model);
    }
}

#[test]
fn a_stream_that_breaks_after_a_block_goes_on_from_there() {
    let home = home();
    let model = Model::playing(vec![
        Answer::blocks(&[text("begun")])
            .without_last(2)
            .before(99, Step::Wait(Duration::from_millis(20))),
        Answer::text("ended"),
    ])
    .unwrap();
    let output = chat(&home, &model, &["hi"]);
    assert_eq!(out(&output), "ended\n", "{}", err(&output));
    fine(&model);
    let lines = lines(&home);
    assert!(lines.iter().any(|line| line["isApiErrorMessage"] == true));
    assert!(
        model.requests()[1].body["messages"]
            .to_string()
            .contains("begun")
    );
}

#[test]
fn a_spent_budget_is_not_asked_again() {
    let home = home();
    let model = Model::playing(vec![Answer::fails(
        "429 Too Many Requests",
        "rate_limit_error",
        "monthly spend limit reached",
    )])
    .unwrap();
    assert_eq!(chat(&home, &model, &["hi"]).status.code(), Some(1));
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn without_access_or_prompt_nothing_begins() {
    let home = home();
    let model = Model::playing(vec![]).unwrap();
    let output = command(&home, &model, &["hi"])
        .env_remove("ANTHROPIC_API_KEY")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("ANTHROPIC_API_KEY"));
    let output = chat(&home, &model, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("no prompt"));
    assert_eq!(transcripts(&home).len(), 0);
}

#[test]
fn a_transcript_that_cannot_be_written_is_told_and_nothing_is_asked() {
    let home = home();
    home.write(".claude/projects", "a file in the way");
    let model = Model::playing(vec![]).unwrap();
    let output = chat(&home, &model, &["hi"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("projects"), "{}", err(&output));
    assert_eq!(model.requests().len(), 0);
}

#[test]
fn scripts_get_one_object_with_the_answer_and_its_costs() {
    let home = home();
    let model = Model::playing(vec![Answer::text("42")]).unwrap();
    let output = chat(&home, &model, &["--output-format", "json", "hi"]);
    let result: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(result["type"], "result");
    assert_eq!(result["subtype"], "success");
    assert_eq!(result["is_error"], false);
    assert_eq!(result["result"], "42");
    assert_eq!(result["num_turns"], 1);
    assert_eq!(result["usage"]["output_tokens"], 10);
    assert!(result["total_cost_usd"].as_f64().unwrap() > 0.0);
    assert_eq!(
        result["modelUsage"]["claude-sonnet-4-5"]["inputTokens"],
        100
    );
    assert_eq!(result["permission_denials"], json!([]));
    let id = transcripts(&home)[0]
        .file_stem()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    assert_eq!(result["session_id"], id);
}

#[test]
fn a_failure_is_an_object_too() {
    let home = home();
    let model = Model::playing(vec![Answer::fails(
        "401 Unauthorized",
        "authentication_error",
        "no",
    )])
    .unwrap();
    let output = chat(&home, &model, &["--output-format", "json", "hi"]);
    assert_eq!(output.status.code(), Some(1));
    let result: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(result["is_error"], true);
    assert_eq!(result["result"], "API Error: 401 no");
}

fn stream(output: &Output) -> Vec<Value> {
    out(output)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn the_stream_tells_each_thing_as_it_happens() {
    let home = home();
    let model = Model::playing(vec![
        Answer::fails("529 Overloaded", "overloaded_error", "busy"),
        Answer::blocks(&[thinking("hm"), text("said")]),
    ])
    .unwrap();
    let output = chat(
        &home,
        &model,
        &[
            "--output-format",
            "stream-json",
            "--verbose",
            "--include-partial-messages",
            "hi",
        ],
    );
    let all = stream(&output);
    let mut kinds: Vec<String> = all
        .iter()
        .map(|line| match line["subtype"].as_str() {
            Some(subtype) => format!("{}/{subtype}", line["type"].as_str().unwrap()),
            None => line["type"].as_str().unwrap().to_owned(),
        })
        .collect();
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            "system/init",
            "system/api_retry",
            "stream_event",
            "assistant",
            "stream_event",
            "assistant",
            "result/success"
        ]
        .into_iter()
        .collect::<Vec<_>>(),
        "{}",
        out(&output)
    );
    assert_eq!(all[0]["model"], "claude-sonnet-4-5");
    assert_eq!(all[1]["error_status"], 529);
    assert!(
        all.iter()
            .all(|line| line["session_id"] == all[0]["session_id"])
    );
}

fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args([name, &id])
            .status()
            .unwrap()
            .success()
    );
}

/// A model that stops in the middle of an answer, at the event of this number.
fn waiting(blocks: &[Value], event: usize) -> Model {
    let slow = Answer::blocks(blocks).before(event, Step::Gate("middle"));
    Model::playing(vec![slow]).unwrap()
}

#[test]
fn stopping_an_answer_keeps_what_was_said_and_the_next_request_is_right() {
    let home = home();
    let blocks = [text("first part"), text("second part")];
    // At every event of the answer.
    for event in 0..9 {
        let model = waiting(&blocks, event);
        let child = command(&home, &model, &["hi"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        assert!(model.reached("middle", LONG));
        std::thread::sleep(Duration::from_millis(60));
        signal(&child, "-INT");
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", err(&output));
        let output = chat(&home, &model, &["--continue", "and now"]);
        assert_eq!(out(&output), "done\n", "event {event}: {}", err(&output));
        fine(&model);
        let sent = model.requests()[1].body["messages"].to_string();
        assert!(sent.contains("[Request interrupted by user]"), "{sent}");
        std::fs::remove_dir_all(home.claude_dir()).unwrap();
    }
}

#[test]
fn whoever_is_killed_can_go_on() {
    let home = home();
    let blocks = [
        text("first part"),
        call("toolu_1", "NoSuchTool", json!({})),
        text("second part"),
    ];
    for event in [1, 4, 8, 11] {
        let model = waiting(&blocks, event);
        let mut child = command(&home, &model, &["hi"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        assert!(model.reached("middle", LONG));
        std::thread::sleep(Duration::from_millis(60));
        signal(&child, "-KILL");
        child.wait().unwrap();
        let output = chat(&home, &model, &["--continue", "and now"]);
        assert_eq!(out(&output), "done\n", "event {event}: {}", err(&output));
        fine(&model);
        std::fs::remove_dir_all(home.claude_dir()).unwrap();
    }
}

#[test]
fn a_call_of_nothing_is_answered_and_the_model_goes_on() {
    let home = home();
    let model = Model::playing(vec![
        Answer::blocks(&[
            call("toolu_a", "NoSuchTool", json!({})),
            call("toolu_b", "Read", json!("{\"file_path\":")),
        ]),
        Answer::text("sorry"),
    ])
    .unwrap();
    let output = chat(&home, &model, &["hi"]);
    assert_eq!(out(&output), "sorry\n", "{}", err(&output));
    fine(&model);
    let lines = lines(&home);
    let results: Vec<&Value> = lines
        .iter()
        .filter(|line| line.get("toolUseResult").is_some())
        .collect();
    assert_eq!(results.len(), 2);
    assert_eq!(
        results[0]["toolUseResult"],
        "Error: No such tool available: NoSuchTool"
    );
    assert!(
        results[1]["message"]["content"][0]["content"]
            .to_string()
            .contains("INVALID_JSON")
    );
    for result in &results {
        let made = lines
            .iter()
            .find(|line| line["uuid"] == result["sourceToolAssistantUUID"])
            .unwrap();
        assert_eq!(
            made["message"]["content"][0]["id"],
            result["message"]["content"][0]["tool_use_id"]
        );
    }
}

#[test]
fn turns_and_dollars_can_be_limited() {
    let home = home();
    let again = |_: usize| Answer::blocks(&[call("toolu_x", "NoSuchTool", json!({}))]);
    let model = Model::start(move |at, _| {
        let mut answer = again(at);
        for step in &mut answer.steps {
            if let Step::Send(text) = step {
                *text = text.replace("toolu_x", &format!("toolu_{at}"));
            }
        }
        answer
    })
    .unwrap();
    let output = chat(
        &home,
        &model,
        &["--max-turns", "3", "--output-format", "json", "hi"],
    );
    let result: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(
        (output.status.code(), &result["subtype"]),
        (Some(1), &json!("error_max_turns"))
    );
    assert_eq!(model.requests().len(), 3);
    let output = chat(
        &home,
        &model,
        &[
            "--max-budget-usd",
            "0.0000001",
            "--output-format",
            "json",
            "hi",
        ],
    );
    let result: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(result["subtype"], "error_max_budget_usd");
    assert_eq!(model.requests().len(), 4);
    fine(&model);
}

#[test]
fn costs_and_budgets_go_by_the_prices_in_use() {
    let home = home();
    let model = Model::start(|_, _| Answer::text("done")).unwrap();
    let ask = |more: &[&str]| {
        let output = chat(
            &home,
            &model,
            &[&["--output-format", "json"], more, &["hi"]].concat(),
        );
        let result: Value = serde_json::from_str(&out(&output)).unwrap();
        result
    };
    let bundled = ask(&[]);
    let used = bundled["modelUsage"].as_object().unwrap();
    let name = used.keys().next().unwrap();
    home.write(
        ".unspool/prices-override.json",
        format!(
            r#"{{"models": {{"{name}": {{"input": 100000, "output": 100000, "cache_read": 100000,
                "cache_write_5m": 100000, "cache_write_1h": 100000}}}}}}"#
        ),
    );
    let own = ask(&[]);
    let usd = |result: &Value| result["total_cost_usd"].as_f64().unwrap();
    assert!(usd(&own) > 1_000.0 * usd(&bundled), "{own} {bundled}");
    assert!(own["unpriced_messages"].is_null(), "{own}");
    let asked = model.requests().len();
    let mut command = home.command();
    command
        .env("ANTHROPIC_API_KEY", "test-key")
        .env("ANTHROPIC_BASE_URL", model.url())
        .args(["chat", "-p", "--model", "nobody-knows-1"])
        .args(["--max-budget-usd", "1", "hi"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("no known price"), "{}", err(&output));
    assert_eq!(model.requests().len(), asked, "nothing was asked");
    fine(&model);
}

#[test]
fn a_full_context_becomes_a_summary_by_itself() {
    let home = home();
    let model = Model::playing(vec![
        Answer::counted(&[text("much")], 195_000),
        Answer::text("SUMMARY OF ALL"),
        Answer::text("gone on"),
    ])
    .unwrap();
    chat(&home, &model, &["first words"]);
    let output = chat(&home, &model, &["--continue", "second words"]);
    assert_eq!(out(&output), "gone on\n", "{}", err(&output));
    fine(&model);
    let last = model.requests()[2].body["messages"].to_string();
    assert!(
        last.contains("SUMMARY OF ALL") && last.contains("second words"),
        "{last}"
    );
    assert!(!last.contains("first words"), "{last}");
    let lines = lines(&home);
    let boundary = lines
        .iter()
        .find(|line| line["subtype"] == "compact_boundary")
        .unwrap();
    assert_eq!(boundary["compactMetadata"]["trigger"], "auto");
    assert!(lines.iter().any(|line| line["isCompactSummary"] == true));
    // And it is all there for whoever goes on later.
    let output = chat(&home, &model, &["--continue", "third words"]);
    assert_eq!(out(&output), "done\n");
    fine(&model);
}

#[test]
fn a_conversation_too_long_for_any_summary_still_goes_on() {
    let home = home();
    let model = Model::start(|at, request| {
        let size = request.body["messages"].to_string().len();
        match at {
            0 => Answer::counted(&[text("much")], 100),
            _ if size > 3_000 => Answer::fails(
                "400 Bad Request",
                "invalid_request_error",
                "prompt is too long: 300000 tokens > 200000 maximum",
            ),
            _ => Answer::text("fits"),
        }
    })
    .unwrap();
    chat(&home, &model, &[&"word ".repeat(2_000)]);
    let output = chat(&home, &model, &["--continue", "and?"]);
    assert_eq!(out(&output), "fits\n", "{}", err(&output));
    fine(&model);
}

#[test]
fn every_recording_of_the_real_client_is_gone_on_with() {
    let home = home();
    let model = Model::playing(vec![]).unwrap();
    let files = corpus::files();
    let mains: Vec<_> = files
        .iter()
        .filter(|file| file.role == corpus::Role::Main)
        .collect();
    assert!(mains.len() > 50);
    let mut resumed = 0;
    for file in mains {
        let bytes = file.bytes();
        let name = file
            .path
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let path = home.write(format!(".claude/projects/-x/{name}"), &bytes);
        let output = chat(
            &home,
            &model,
            &["--resume", path.to_str().unwrap(), "go on please"],
        );
        assert_eq!(out(&output), "done\n", "{}: {}", file.name(), err(&output));
        assert_eq!(model.refusals(), [""; 0], "{}", file.name());
        let now = std::fs::read(&path).unwrap();
        assert!(
            now.starts_with(&bytes),
            "{}: nothing before was changed",
            file.name()
        );
        resumed += 1;
        std::fs::remove_file(path).unwrap();
    }
    assert!(resumed > 50);
}
