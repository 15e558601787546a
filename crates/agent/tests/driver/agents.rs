//! Sub-agents, in front and in the background.

use serde_json::{Value, json};
use unspool_agent::driver::{QuestionAnswer, QuestionKind, SessionCommand, SessionNotice};
use unspool_agent::state_machine::TurnEndReason;
use unspool_testkit::api::Request;
use unspool_testkit::model::{Answer as Said, Model, Step, call};

use unspool_testkit::wait::{LONG, wait_until};

use crate::desk::Desk;

fn said(request: &Request) -> String {
    request.body["messages"].to_string()
}

fn agent(background: bool) -> Value {
    call(
        "toolu_agent",
        "Agent",
        json!({"description": "a look", "prompt": "look around", "run_in_background": background}),
    )
}

/// A model whose sub-agents wait at a gate, and whose session says what it heard.
fn model(background: bool) -> Model {
    Model::start(move |_, request| {
        let words = said(request);
        let first = request.body["messages"][0].to_string();
        if first.contains("look around") {
            return match words.contains("tool_result") {
                true => Said::text("found it").before(3, Step::Gate("sub")),
                false => Said::blocks(&[call("toolu_s", "Glob", json!({"pattern": "*"}))]),
            };
        }
        match words {
            _ if words.contains("<task-notification>") => Said::text("thanks"),
            _ if words.contains("tool_result") => Said::text("started"),
            _ => Said::blocks(&[agent(background)]),
        }
    })
    .unwrap()
}

fn result(desk: &Desk, call: &str) -> Value {
    let lines = desk.lines();
    let line = lines
        .iter()
        .find(|line| line["message"]["content"][0]["tool_use_id"] == call);
    line.unwrap_or_else(|| panic!("{call}"))["toolUseResult"].clone()
}

#[test]
fn an_agent_in_the_background_reports_when_it_is_done() {
    let model = model(true);
    let desk = Desk::new(&model);
    desk.say("go");
    assert_eq!(desk.ended().text, "started");
    let launched = result(&desk, "toolu_agent");
    assert_eq!(launched["status"], "async_launched");
    assert_eq!(launched["isAsync"], true);
    let id = launched["agentId"].as_str().unwrap();
    assert!(model.reached("sub", LONG));
    model.open("sub");
    assert_eq!(desk.ended().text, "thanks");
    let last = said(model.requests().last().unwrap());
    assert!(last.contains("<result>found it</result>"), "{last}");
    assert!(last.contains("<status>completed</status>"), "{last}");
    let folder = desk
        .folder
        .path()
        .join("config/5e551000-0000-4000-8000-000000000009/subagents");
    assert!(folder.join(format!("agent-{id}.jsonl")).exists());
    let meta = std::fs::read_to_string(folder.join(format!("agent-{id}.meta.json"))).unwrap();
    assert!(meta.contains("toolu_agent"), "{meta}");
    assert_eq!(model.refusals(), [""; 0]);
}

#[test]
fn where_nobody_can_ask_later_the_turn_waits_for_its_agents() {
    let model = model(true);
    let desk = Desk::with(&model, "{}", |setup| setup.stays = true);
    desk.say("go");
    assert!(model.reached("sub", LONG));
    model.open("sub");
    assert_eq!(desk.ended().text, "thanks");
    assert_eq!(model.refusals(), [""; 0]);
}

#[test]
fn an_agent_in_the_background_can_be_stopped_and_looked_at() {
    let model = Model::start(move |_, request| {
        let words = said(request);
        let first = request.body["messages"][0].to_string();
        if first.contains("look around") {
            return Said::text("found it").before(3, Step::Gate("never"));
        }
        let id = || {
            let (_, rest) = words.split_once("agentId: ").unwrap();
            rest.split(' ').next().unwrap().to_owned()
        };
        match words.matches("tool_result").count() {
            0 => Said::blocks(&[agent(true)]),
            1 => Said::blocks(&[call(
                "toolu_look",
                "TaskOutput",
                json!({"task_id": id(), "block": false}),
            )]),
            2 => Said::blocks(&[call("toolu_stop", "TaskStop", json!({"task_id": id()}))]),
            _ => Said::text("over"),
        }
    })
    .unwrap();
    let desk = Desk::new(&model);
    desk.say("go");
    assert_eq!(desk.ended().text, "over");
    let looked = result(&desk, "toolu_look");
    assert_eq!(looked["task"]["status"], "running");
    assert_eq!(looked["task"]["task_type"], "local_agent");
    let stopped = result(&desk, "toolu_stop");
    assert_eq!(stopped["task_type"], "local_agent");
    let folder = desk
        .folder
        .path()
        .join("config/5e551000-0000-4000-8000-000000000009/subagents");
    let transcript = || -> Option<String> {
        let files = std::fs::read_dir(&folder).ok()?.flatten();
        let mut files = files.map(|file| file.path());
        let file = files.find(|file| file.extension().is_some_and(|end| end == "jsonl"))?;
        std::fs::read_to_string(file).ok()
    };
    wait_until("the agent notes that it was stopped", || {
        transcript().is_some_and(|text| text.contains("[Request interrupted by user]"))
    });
    assert_eq!(model.refusals(), [""; 0]);
}

#[test]
fn stopping_stops_an_agent_that_is_waited_for() {
    let model = model(false);
    let desk = Desk::new(&model);
    desk.say("go");
    assert!(model.reached("sub", LONG));
    desk.handle
        .send(unspool_agent::driver::SessionCommand::Interrupt);
    assert_eq!(desk.ended().why, TurnEndReason::Interrupted);
    assert_eq!(model.refusals(), [""; 0]);
}

#[test]
fn what_an_agent_says_is_noted_beside_its_call_and_nothing_hangs_on_that() {
    let model = model(false);
    model.open("sub");
    let desk = Desk::new(&model);
    desk.say("go");
    let notices = desk.until(|notice| matches!(notice, SessionNotice::Ended { .. }));
    assert!(notices.iter().any(|notice| matches!(
        notice,
        SessionNotice::Progress { data, .. } if data["type"] == "agent_progress"
    )));
    let lines = desk.lines();
    let progress: Vec<&Value> = lines
        .iter()
        .filter(|line| line["type"] == "progress")
        .collect();
    let said: Vec<&str> = progress
        .iter()
        .filter_map(|line| {
            let block = &line["data"]["message"]["message"]["content"][0];
            block["text"].as_str().or(block["name"].as_str())
        })
        .collect();
    assert_eq!(said, ["Glob", "found it"]);
    for line in &progress {
        assert_eq!(line["data"]["type"], "agent_progress");
        assert_eq!(line["parentToolUseID"], "toolu_agent");
        assert!(line["parentUuid"].is_string());
        assert!(
            !lines
                .iter()
                .any(|other| other["parentUuid"] == line["uuid"])
        );
    }
    assert_eq!(model.refusals(), [""; 0]);
}

/// A model whose session starts two sub-agents at once, each of which wants to run a command.
fn two_that_ask(background: bool) -> Model {
    Model::start(move |_, request| {
        let words = said(request);
        let first = request.body["messages"][0].to_string();
        for name in ["red", "blue"] {
            if first.contains(&format!("be {name}")) {
                return match words.contains("tool_result") {
                    true => Said::text(name),
                    false => Said::blocks(&[call(
                        &format!("toolu_{name}"),
                        "Bash",
                        json!({"command": format!("touch {name}"), "description": "x"}),
                    )]),
                };
            }
        }
        if words.contains("tool_result") {
            return Said::text("both are over");
        }
        let agent = |name: &str| {
            call(
                &format!("toolu_agent_{name}"),
                "Agent",
                json!({"description": format!("the {name} one"), "prompt": format!("be {name}"),
                       "run_in_background": background}),
            )
        };
        Said::blocks(&[agent("red"), agent("blue")])
    })
    .unwrap()
}

/// Questions that are open: their number, the command, and who asks.
fn two_questions(desk: &Desk) -> Vec<(u64, String, String)> {
    let mut open = Vec::new();
    while open.len() < 2 {
        let told = desk.until(|notice| matches!(notice, SessionNotice::Ask { .. }));
        if let Some(SessionNotice::Ask {
            ask, call, agent, ..
        }) = told.into_iter().next_back()
        {
            let command = call.input["command"].as_str().unwrap_or_default();
            let who = agent.map_or_else(String::new, |agent| agent.description);
            open.push((ask, command.to_owned(), who));
        }
    }
    open
}

#[test]
fn two_agents_that_ask_at_once_are_told_apart_and_each_gets_its_own_answer() {
    let model = two_that_ask(false);
    let desk = Desk::new(&model);
    desk.say("go");
    let open = two_questions(&desk);
    for (ask, command, who) in open.iter().rev() {
        let name = command.trim_start_matches("touch ");
        assert_eq!(*who, format!("the {name} one"));
        let answer = match name {
            "red" => QuestionAnswer::Yes,
            _ => QuestionAnswer::No(Some("not blue".to_owned())),
        };
        let ask = *ask;
        assert!(desk.handle.send(SessionCommand::Answer { ask, answer }));
    }
    assert_eq!(desk.ended().text, "both are over");
    assert!(desk.file("red").exists());
    assert!(!desk.file("blue").exists());
}

#[test]
fn an_interrupt_withdraws_every_question_and_leaves_no_call_hanging() {
    let model = two_that_ask(false);
    let desk = Desk::new(&model);
    desk.say("go");
    let open = two_questions(&desk);
    assert!(desk.handle.send(SessionCommand::Interrupt));
    let mut asks: Vec<u64> = open.iter().map(|(ask, ..)| *ask).collect();
    let mut ended = false;
    while !asks.is_empty() || !ended {
        match desk.notices.recv_timeout(LONG).unwrap() {
            SessionNotice::Withdrawn { ask } => asks.retain(|open| *open != ask),
            SessionNotice::Ended { ending, .. } => {
                assert_eq!(ending.why, TurnEndReason::Interrupted);
                ended = true;
            }
            _ => {}
        }
    }
    // An answer that comes late runs nothing.
    for (ask, ..) in open {
        let answer = QuestionAnswer::Yes;
        assert!(desk.handle.send(SessionCommand::Answer { ask, answer }));
    }
    desk.handle.send(SessionCommand::Close);
    desk.handle.join();
    assert!(!desk.folder.path().join("project/red").exists());
    assert!(!desk.folder.path().join("project/blue").exists());
}

#[test]
fn an_interrupt_does_not_withdraw_what_an_agent_in_the_background_asks() {
    let model = two_that_ask(true);
    let desk = Desk::new(&model);
    desk.say("go");
    let open = two_questions(&desk);
    assert!(desk.handle.send(SessionCommand::Interrupt));
    for (ask, ..) in open {
        let answer = QuestionAnswer::Yes;
        assert!(desk.handle.send(SessionCommand::Answer { ask, answer }));
    }
    wait_until("both files", || {
        desk.file("red").exists() && desk.file("blue").exists()
    });
}

#[test]
fn a_rule_for_this_session_that_an_agent_was_given_counts_for_the_session() {
    let model = two_that_ask(false);
    let desk = Desk::new(&model);
    desk.say("go");
    let told = desk.until(|notice| matches!(notice, SessionNotice::Ask { .. }));
    let Some(SessionNotice::Ask { ask, what, .. }) = told.into_iter().next_back() else {
        panic!("nothing is asked");
    };
    let QuestionKind::Permission { always, parts, .. } = what else {
        panic!("{what:?}");
    };
    assert_eq!(always, ["Bash(touch:*)"]);
    assert_eq!(parts.len(), 1);
    let answer = QuestionAnswer::Always(always);
    assert!(desk.handle.send(SessionCommand::Answer { ask, answer }));
    // The other one asked before it, or is allowed by it.
    let mut over = false;
    while !over {
        match desk.notices.recv_timeout(LONG).unwrap() {
            SessionNotice::Ask { ask, .. } => {
                let answer = QuestionAnswer::Yes;
                assert!(desk.handle.send(SessionCommand::Answer { ask, answer }));
            }
            SessionNotice::Ended { .. } => over = true,
            _ => {}
        }
    }
    desk.say("go");
    let told = desk.until(|notice| {
        matches!(
            notice,
            SessionNotice::Ended { .. } | SessionNotice::Ask { .. }
        )
    });
    assert!(
        !told
            .iter()
            .any(|notice| matches!(notice, SessionNotice::Ask { .. })),
        "{told:?}"
    );
}
