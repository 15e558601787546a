//! What is written down beside the conversation, and what is asked beside it.

use serde_json::{Value, json};
use unspool_agent::driver::SessionCommand;
use unspool_agent::permission::PermissionMode;
use unspool_testkit::model::{Answer as Said, Model, call};

use crate::desk::Desk;

fn kinds(desk: &Desk) -> Vec<String> {
    let lines = desk.lines();
    let progress = lines.iter().filter(|line| line["type"] == "progress");
    progress
        .map(|line| line["data"]["type"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn prompts_go_to_the_history_only_if_somebody_wants_that() {
    let model = Model::playing(vec![]).unwrap();
    let desk = Desk::new(&model);
    desk.say("not this");
    desk.ended();
    assert!(!desk.folder.path().join("config/history.jsonl").exists());
    let path = desk.folder.path().join("other/history.jsonl");
    let kept = path.clone();
    let desk = Desk::with(&model, "{}", move |setup| setup.history = Some(kept));
    desk.say("but this");
    desk.ended();
    let line: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(line["display"], "but this");
    assert_eq!(line["sessionId"], "5e551000-0000-4000-8000-000000000009");
    assert!(line["timestamp"].as_i64().is_some());
}

#[test]
fn a_history_that_cannot_be_written_is_no_reason_to_stop() {
    let model = Model::playing(vec![]).unwrap();
    let desk = Desk::with(&model, "{}", |setup| {
        setup.history = Some("/dev/null/h".into())
    });
    desk.say("one");
    assert_eq!(desk.ended().text, "done");
}

#[test]
fn a_search_is_noted_with_what_it_found() {
    let search = call("toolu_1", "WebSearch", json!({"query": "rust news"}));
    let found = [
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "rust news today"}}),
        json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
            {"type": "web_search_result", "title": "T", "url": "https://example.com", "encrypted_content": "x"}]}),
        json!({"type": "text", "text": "it says so"}),
    ];
    let model = Model::playing(vec![
        Said::blocks(&[search]),
        Said::stopping(&found, "end_turn"),
    ])
    .unwrap();
    let desk = Desk::new(&model);
    desk.handle
        .send(SessionCommand::Mode(PermissionMode::Bypass));
    desk.say("search");
    desk.ended();
    assert_eq!(kinds(&desk), ["query_update", "search_results_received"]);
    let lines = desk.lines();
    let last = lines
        .iter()
        .rfind(|line| line["type"] == "progress")
        .unwrap();
    assert_eq!(last["data"]["resultCount"], 1);
    assert_eq!(last["data"]["query"], "rust news today");
    assert_eq!(model.refusals(), [""; 0]);
}

#[test]
fn waiting_for_a_task_is_noted() {
    let model = Model::start(|at, request| match at {
        0 => Said::blocks(&[call(
            "toolu_1",
            "Bash",
            json!({"command": "while [ ! -e go ]; do sleep 0.01; done", "run_in_background": true}),
        )]),
        1 => {
            let words = request.body["messages"].to_string();
            let (_, rest) = words.split_once("with ID: ").unwrap();
            let id = rest.split('.').next().unwrap();
            Said::blocks(&[
                call(
                    "toolu_2",
                    "TaskOutput",
                    json!({"task_id": id, "timeout": 1}),
                ),
                call("toolu_3", "Bash", json!({"command": "touch go"})),
            ])
        }
        _ => Said::text("done"),
    })
    .unwrap();
    let desk = Desk::new(&model);
    desk.handle
        .send(SessionCommand::Mode(PermissionMode::Bypass));
    desk.say("wait");
    desk.ended();
    // A slow machine may note more.
    assert!(kinds(&desk).contains(&"waiting_for_task".to_owned()));
    assert_eq!(model.refusals(), [""; 0]);
}

fn read_of_much(counted: Option<u64>) -> (Value, usize) {
    let lines: String = (0..2_000)
        .map(|at| format!("line {at} of a file that is long\n"))
        .collect();
    let model = Model::start(|at, request| {
        let folder = request.body["system"].to_string();
        let (_, rest) = folder.split_once("FOLDER:").unwrap();
        let file = format!("{}/much.txt", rest.split('|').next().unwrap());
        match at {
            0 => Said::blocks(&[call("toolu_1", "Read", json!({"file_path": file}))]),
            1 => Said::blocks(&[call("toolu_2", "Read", json!({"file_path": file}))]),
            _ => Said::text("done"),
        }
    })
    .unwrap();
    if let Some(tokens) = counted {
        model.counts(tokens);
    }
    let desk = Desk::with(&model, "{}", |setup| {
        let folder = setup.place.project.display();
        setup.frame.system = vec![format!("FOLDER:{folder}|")];
    });
    std::fs::write(desk.file("much.txt"), lines).unwrap();
    desk.say("read it");
    desk.ended();
    let lines = desk.lines();
    let line = lines
        .iter()
        .find(|line| line["message"]["content"][0]["tool_use_id"] == "toolu_1");
    (
        line.unwrap()["toolUseResult"]["file"].clone(),
        model.counted(),
    )
}

#[test]
fn a_file_takes_as_many_tokens_as_the_api_counts() {
    let (file, counted) = read_of_much(Some(50_000));
    assert_eq!(file["truncatedByTokenCap"], true);
    let shown = file["numLines"].as_u64().unwrap();
    assert!((900..1_100).contains(&shown), "half of it: {shown}");
    assert_eq!(counted, 2);
}

#[test]
fn where_tokens_are_not_counted_they_are_guessed_and_nobody_asks_twice() {
    let (file, counted) = read_of_much(None);
    assert!(file.get("truncatedByTokenCap").is_none());
    assert_eq!(file["numLines"], 2_001);
    assert_eq!(counted, 1);
}
