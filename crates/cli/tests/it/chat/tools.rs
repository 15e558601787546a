//! Tools in a session: what they do, what is written, what is left when they are stopped.

use std::time::Instant;

use super::*;

fn file(home: &Home, name: &str) -> PathBuf {
    home.work_dir().join(name)
}

fn path(home: &Home, name: &str) -> Value {
    file(home, name)
        .canonicalize()
        .unwrap_or_else(|_| home.work_dir().canonicalize().unwrap().join(name))
        .to_string_lossy()
        .into()
}

fn results(lines: &[Value]) -> Vec<&Value> {
    lines
        .iter()
        .filter(|line| line.get("toolUseResult").is_some())
        .collect()
}

#[test]
fn files_are_read_written_and_commands_run() {
    let home = home();
    std::fs::write(file(&home, "old.txt"), "one\ntwo\n").unwrap();
    let model = Model::playing(vec![
        Answer::blocks(&[
            text("I look."),
            call("toolu_r", "Read", json!({"file_path": path(&home, "old.txt")})),
        ]),
        Answer::blocks(&[
            call("toolu_e", "Edit", json!({"file_path": path(&home, "old.txt"), "old_string": "two", "new_string": "three"})),
            call("toolu_w", "Write", json!({"file_path": path(&home, "new.txt"), "content": "new\n"})),
            call("toolu_b", "Bash", json!({"command": "cat old.txt"})),
        ]),
        Answer::text("all done"),
    ])
    .unwrap();
    let output = chat(
        &home,
        &model,
        &[
            "--permission-mode",
            "acceptEdits",
            "--allowedTools",
            "Bash(cat *)",
            "go",
        ],
    );
    assert_eq!(out(&output), "all done\n", "{}", err(&output));
    fine(&model);
    assert_eq!(
        std::fs::read_to_string(file(&home, "old.txt")).unwrap(),
        "one\nthree\n"
    );
    assert_eq!(
        std::fs::read_to_string(file(&home, "new.txt")).unwrap(),
        "new\n"
    );
    let lines = lines(&home);
    let results = results(&lines);
    assert_eq!(results.len(), 4);
    assert_eq!(results[3]["toolUseResult"]["stdout"], "one\nthree");
    // The old content is kept, and a line says where.
    let copies = home.claude_dir().join("file-history");
    let session = std::fs::read_dir(copies).unwrap().next().unwrap().unwrap();
    let kept = std::fs::read_dir(session.path())
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    assert_eq!(std::fs::read_to_string(kept.path()).unwrap(), "one\ntwo\n");
    let name = kept.file_name().to_string_lossy().into_owned();
    let noted = lines.iter().filter(|line| line["isSnapshotUpdate"] == true);
    assert!(
        noted
            .into_iter()
            .any(|line| line.to_string().contains(&name))
    );
}

#[test]
fn results_of_calls_made_together_are_one_chain() {
    let home = home();
    for name in ["a", "b", "c"] {
        std::fs::write(file(&home, name), name).unwrap();
    }
    let read = |name: &str| {
        call(
            &format!("toolu_{name}"),
            "Read",
            json!({"file_path": path(&home, name)}),
        )
    };
    let model = Model::playing(vec![
        Answer::blocks(&[read("a"), read("b"), read("c")]),
        Answer::text("ok"),
    ])
    .unwrap();
    assert_eq!(out(&chat(&home, &model, &["go"])), "ok\n");
    fine(&model);
    let lines = lines(&home);
    let chain: Vec<&Value> = lines
        .iter()
        .filter(|line| line.get("uuid").is_some())
        .collect();
    for pair in chain.windows(2) {
        assert_eq!(pair[1]["parentUuid"], pair[0]["uuid"]);
    }
    let last = model.requests()[1].body["messages"].clone();
    assert_eq!(last[2]["content"].as_array().unwrap().len(), 3, "{last}");
}

#[test]
fn what_nobody_allowed_is_not_done_and_listed() {
    let home = home();
    let model = Model::playing(vec![
        Answer::blocks(&[call(
            "toolu_w",
            "Write",
            json!({"file_path": path(&home, "new.txt"), "content": "x"}),
        )]),
        Answer::text("could not"),
    ])
    .unwrap();
    let output = chat(&home, &model, &["--output-format", "json", "go"]);
    let result: Value = serde_json::from_str(&out(&output)).unwrap();
    assert!(!file(&home, "new.txt").exists());
    assert_eq!(result["permission_denials"][0]["tool_name"], "Write");
    assert_eq!(result["is_error"], false);
    let lines = lines(&home);
    let told = results(&lines)[0]["message"]["content"][0]["content"].to_string();
    assert!(
        told.contains("requested permissions to write to")
            && told.contains("haven't granted it yet"),
        "{told}"
    );
    fine(&model);
}

#[test]
fn a_tool_that_is_denied_is_not_offered() {
    let home = home();
    let model = Model::playing(vec![]).unwrap();
    chat(&home, &model, &["--disallowedTools", "Bash", "go"]);
    let tools = model.requests()[0].body["tools"].to_string();
    assert!(
        tools.contains("\"Read\"") && !tools.contains("\"name\":\"Bash\""),
        "{tools}"
    );
}

fn slow(home: &Home, model: &Model) -> Child {
    let child = command(
        home,
        model,
        &[
            "--permission-mode",
            "acceptEdits",
            "--allowedTools",
            "Bash",
            "go",
        ],
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let began = Instant::now();
    while !file(home, "count").exists() {
        assert!(began.elapsed() < LONG);
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

/// A command that nobody else on this machine runs.
fn sleeps() -> String {
    format!("sleep 4700.{}", std::process::id())
}

fn still_there() -> bool {
    let all = Command::new("ps").args(["-eo", "args"]).output().unwrap();
    let sleeps = sleeps();
    String::from_utf8_lossy(&all.stdout)
        .lines()
        .any(|line| line.trim() == sleeps)
}

#[test]
fn a_call_that_is_stopped_or_killed_never_runs_again() {
    for name in ["-INT", "-TERM", "-KILL"] {
        let home = home();
        let model = Model::playing(vec![Answer::blocks(&[call(
            "toolu_b",
            "Bash",
            json!({"command": format!("echo ran >> count; {}", sleeps())}),
        )])])
        .unwrap();
        let child = slow(&home, &model);
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        let code = match name {
            "-INT" => Some(130),
            "-TERM" => Some(143),
            _ => None,
        };
        assert_eq!(output.status.code(), code, "{name}: {}", err(&output));
        let output = chat(&home, &model, &["--continue", "and now"]);
        assert_eq!(out(&output), "done\n", "{name}: {}", err(&output));
        fine(&model);
        let sent = model.requests()[1].body["messages"].to_string();
        let mark = if name == "-KILL" {
            "[Tool call interrupted"
        } else {
            "[Request interrupted by user for tool use]"
        };
        assert!(sent.contains(mark), "{name}: {sent}");
        assert_eq!(
            std::fs::read_to_string(file(&home, "count")).unwrap(),
            "ran\n"
        );
        let began = Instant::now();
        while still_there() {
            assert!(began.elapsed() < LONG, "{name} left a process");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// A model that answers sub-agents by themselves.
fn with_agents(first: Answer) -> Model {
    Model::start(move |at, request| {
        let system = request.body["system"].to_string();
        if at == 0 {
            return first.clone();
        }
        if system.contains("another assistant gave you") {
            let asked = request.body["messages"].to_string();
            let which = if asked.contains("task one") {
                "report one"
            } else {
                "report two"
            };
            return match asked.contains("tool_result") {
                true => Answer::text(which),
                false => Answer::blocks(&[call(
                    &format!("toolu_in_{}", which.len() + which.find("two").unwrap_or(0)),
                    "Bash",
                    json!({"command": "pwd"}),
                )]),
            };
        }
        Answer::text("both are back")
    })
    .unwrap()
}

#[test]
fn sub_agents_work_side_by_side_in_files_of_their_own() {
    let home = home();
    let task = |id: &str, words: &str| {
        call(
            id,
            "Agent",
            json!({"description": words, "prompt": words, "subagent_type": "general-purpose"}),
        )
    };
    let model = with_agents(Answer::blocks(&[
        task("toolu_1", "task one"),
        task("toolu_2", "task two"),
    ]));
    let output = chat(&home, &model, &["--allowedTools", "Bash", "go"]);
    assert_eq!(out(&output), "both are back\n", "{}", err(&output));
    fine(&model);
    let transcript = transcripts(&home).remove(0);
    let lines = lines_of(&transcript);
    let results = results(&lines);
    assert_eq!(results.len(), 2);
    let folder = transcript.with_extension("").join("subagents");
    for result in results {
        let about = &result["toolUseResult"];
        let id = about["agentId"].as_str().unwrap();
        assert_eq!(about["status"], "completed");
        assert_eq!(about["totalToolUseCount"], 1);
        assert!(about["totalTokens"].as_u64().unwrap() > 0);
        assert!(
            about["content"][0]["text"]
                .as_str()
                .unwrap()
                .starts_with("report")
        );
        let own = lines_of(&folder.join(format!("agent-{id}.jsonl")));
        assert!(
            own.iter()
                .all(|line| line.get("uuid").is_none() || line["isSidechain"] == true)
        );
        assert_eq!(own[0]["agentId"], id);
        let meta: Value = serde_json::from_slice(
            &std::fs::read(folder.join(format!("agent-{id}.meta.json"))).unwrap(),
        )
        .unwrap();
        assert_eq!(meta["agentType"], "general-purpose");
        assert_eq!(
            meta["toolUseId"],
            result["message"]["content"][0]["tool_use_id"]
        );
    }
    // Our own reader finds them.
    let listed = home.output(&["agents", transcript.to_str().unwrap(), "--json"]);
    assert_eq!(out(&listed).lines().count(), 2, "{}", err(&listed));
}

#[test]
fn questions_can_be_answered_over_the_stream() {
    let home = home();
    let model = Model::playing(vec![
        Answer::blocks(&[call(
            "toolu_w",
            "Write",
            json!({"file_path": path(&home, "new.txt"), "content": "x"}),
        )]),
        Answer::text("written"),
    ])
    .unwrap();
    let mut child = command(
        &home,
        &model,
        &[
            "--output-format",
            "stream-json",
            "--input-format",
            "stream-json",
            "--permission-prompt-tool",
            "stdio",
        ],
    )
    .stdin(Stdio::piped())
    .stdout(Stdio::piped())
    .spawn()
    .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    writeln!(
        stdin,
        "{}",
        json!({"type": "user", "message": {"role": "user", "content": "go"}})
    )
    .unwrap();
    let mut last = Value::Null;
    while let Some(Ok(line)) = lines.next() {
        let value: Value = serde_json::from_str(&line).unwrap();
        if value["request"]["subtype"] == "can_use_tool" {
            let answer = json!({"behavior": "allow", "updatedInput": value["request"]["input"]});
            let response = json!({"subtype": "success", "request_id": value["request_id"], "response": answer});
            writeln!(
                stdin,
                "{}",
                json!({"type": "control_response", "response": response})
            )
            .unwrap();
        }
        if value["type"] == "result" {
            last = value;
            break;
        }
    }
    drop(stdin);
    child.wait().unwrap();
    assert_eq!(last["result"], "written");
    assert_eq!(
        std::fs::read_to_string(file(&home, "new.txt")).unwrap(),
        "x"
    );
}
