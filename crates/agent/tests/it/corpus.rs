//! Calls that were recorded with the real client, made again: the same is told and the same is
//! written down.

use std::collections::HashMap;

use serde_json::{Value, json};
use unspool_agent::tool::{ToolContent, ToolOutcome};
use unspool_agent::tool_host::ToolHost;
use unspool_testkit::corpus;

use crate::host::Session;

/// The newest client of the recordings, whose texts we keep to.
const VERSION: &str = "2.1.325";

/// The files that stood in the project of every recording.
fn project() -> Session {
    let session = Session::new();
    session.write("README.md", "# Demo project\n\nalpha line\nbeta line\n");
    session.write("a.txt", "one\ntwo\nthree\n");
    session.write("src/main.py", "def main():\n    print('hello')\n");
    session
}

struct Recorded {
    name: String,
    input: Value,
    block: Value,
    result: Option<Value>,
}

/// The calls of a file with what came of them, in order of their results.
fn recorded(file: &corpus::File) -> Vec<Recorded> {
    let mut calls = HashMap::new();
    let mut all = Vec::new();
    for line in String::from_utf8_lossy(&file.bytes()).lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let blocks = line["message"]["content"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        for block in blocks {
            match block["type"].as_str() {
                Some("tool_use") => {
                    calls.insert(block["id"].to_string(), block);
                }
                Some("tool_result") => {
                    let Some(call) = calls.get(&block["tool_use_id"].to_string()) else {
                        continue;
                    };
                    all.push(Recorded {
                        name: call["name"].as_str().unwrap_or_default().to_owned(),
                        input: call["input"].clone(),
                        block: block.clone(),
                        result: line.get("toolUseResult").cloned(),
                    });
                }
                _ => {}
            }
        }
    }
    all
}

/// The same text about our folders.
fn moved(value: &Value, from: &str, to: &str) -> Value {
    let text = value.to_string().replace(from, to);
    serde_json::from_str(&text).unwrap()
}

fn content(outcome: &ToolOutcome) -> Value {
    match &outcome.content {
        ToolContent::Text(text) => json!(text),
        ToolContent::Blocks(blocks) => json!(blocks),
    }
}

/// What differs from run to run.
fn settled(mut result: Value) -> Value {
    if result.get("durationMs").is_some() {
        result["durationMs"] = json!(0);
    }
    result
}

/// Why a recorded call cannot be made again.
fn is_elsewhere(call: &Recorded) -> bool {
    let said = call.block["content"].to_string();
    let other = ["Agent", "ExitPlanMode", "TodoWrite"].contains(&&*call.name);
    let by_session = [
        "doesn't want to proceed",
        "haven't granted",
        "lorem ipsum",
        "interrupted:",
    ];
    let by_program = [
        "gh pr create",
        "sleep 3",
        "sleep 15",
        "sleep 20",
        "sleep 1;",
    ];
    let command = call.input["command"].as_str().unwrap_or_default();
    other
        || by_session.iter().any(|words| said.contains(words))
        || said.contains("<system-reminder>")
        || by_program.iter().any(|words| command.contains(words))
        || call.input["file_path"]
            .as_str()
            .is_some_and(|path| path.contains("/.claude/"))
}

#[test]
fn inputs_that_were_ever_recorded_can_be_taken() {
    let mut taken = std::collections::BTreeMap::<String, usize>::new();
    for file in corpus::files() {
        for call in recorded(&file) {
            let mut input = call.input.clone();
            let about = format!("{} {} {input}", file.name(), call.name);
            // We show the model all tools at once, so it has none to search for.
            let not_ours = ["NoSuchTool", "ToolSearch"].contains(&call.name.as_str());
            let unfit = not_ours || input.get("wrong_arg").is_some();
            match unspool_agent::tools::check(&call.name, &mut input) {
                Ok(_) => assert!(!unfit, "{about}"),
                Err(refused) => assert!(unfit, "{about}: {refused:?}"),
            }
            *taken.entry(call.name).or_default() += 1;
        }
    }
    let names: Vec<&str> = taken.keys().map(String::as_str).collect();
    for name in [
        "Agent",
        "Task",
        "TodoWrite",
        "ExitPlanMode",
        "Bash",
        "Skill",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
}

#[test]
fn lists_of_older_clients_are_told_as_they_told_them() {
    let mut made = 0;
    for file in corpus::files()
        .into_iter()
        .filter(|file| file.version == "2.1.29")
    {
        let session = Session::new();
        for call in recorded(&file)
            .into_iter()
            .filter(|call| call.name == "TodoWrite")
        {
            let outcome = session.call(&call.name, call.input.clone());
            assert_eq!(content(&outcome), call.block["content"], "{}", file.name());
            assert_eq!(Some(outcome.result), call.result, "{}", file.name());
            made += 1;
        }
    }
    assert!(made >= 2);
}

#[test]
fn recorded_calls_give_what_they_gave() {
    let mut made: HashMap<String, usize> = HashMap::new();
    for file in corpus::files()
        .into_iter()
        .filter(|file| file.version == VERSION)
    {
        let session = project();
        let theirs = format!("/home/dev/{VERSION}/{}/proj", file.scenario);
        let ours = session.project.display().to_string();
        for call in recorded(&file) {
            if is_elsewhere(&call) {
                continue;
            }
            let input = moved(&call.input, &theirs, &ours);
            if let Some(path) = input["file_path"]
                .as_str()
                .filter(|path| path.ends_with("pic.png"))
            {
                let data = call.block["content"][0]["source"]["data"].as_str().unwrap();
                let picture = unspool_show::image_type::decode(data).unwrap().1;
                std::fs::write(path, picture).unwrap();
            }
            // The second edit of that recording is in a later run.
            if input["new_string"] == "THREE" {
                session.again();
                session
                    .kept()
                    .saw_before(std::path::Path::new(input["file_path"].as_str().unwrap()));
            }
            let outcome = session.call(&call.name, input.clone());
            let said = moved(&call.block["content"], &theirs, &ours);
            let about = format!("{} {} {input}", file.name(), call.name);
            match (&said, content(&outcome)) {
                // The copy of the recordings beside the code has less filling text.
                (Value::String(said), Value::String(told)) if said.contains("persisted") => {
                    let filled = |text: &str| text.replace('x', "");
                    let (_, theirs) = said.split_once("Preview").unwrap();
                    let (head, told) = told.split_once("Preview").unwrap();
                    assert_eq!(filled(told), filled(theirs), "{about}");
                    let begins =
                        "<persisted-output>\nOutput too large (58.6KB). Full output saved to: /";
                    assert!(
                        said.starts_with(begins) && head.starts_with(begins),
                        "{about}"
                    );
                    let keys = |result: &Value| -> Vec<String> {
                        result.as_object().unwrap().keys().cloned().collect()
                    };
                    assert_eq!(keys(&outcome.result), keys(call.result.as_ref().unwrap()));
                    continue;
                }
                (said, told) => assert_eq!(&told, said, "{about}"),
            }
            let is_error = call.block.get("is_error").and_then(Value::as_bool);
            assert_eq!(outcome.is_error, is_error, "{about}");
            if let Some(result) = &call.result {
                let result = settled(moved(result, &theirs, &ours));
                assert_eq!(settled(outcome.result), result, "{about}");
            }
            *made.entry(call.name).or_default() += 1;
        }
    }
    for name in [
        "Bash",
        "Read",
        "Write",
        "Edit",
        "Glob",
        "Grep",
        "Skill",
        "TaskCreate",
        "TaskUpdate",
        "NoSuchTool",
    ] {
        assert!(made.contains_key(name), "{name} was not made again");
    }
    assert!(made.values().sum::<usize>() > 30, "{made:?}");
    println!("{made:?}");
}
