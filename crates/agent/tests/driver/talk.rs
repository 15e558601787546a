//! What a front end asks for and is told.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use unspool_agent::api::client::{ApiRetryPolicy, MessagesClient};
use unspool_agent::driver::{QuestionAnswer, SessionCommand, SessionNotice};
use unspool_agent::permission::PermissionMode;
use unspool_agent::state_machine::TurnEndReason;
use unspool_testkit::model::{Answer as Said, Model, Step, call, text};

use crate::desk::Desk;
use unspool_testkit::wait::LONG;

fn write(desk_file: &Path, id: &str, content: &str) -> Value {
    call(
        id,
        "Write",
        json!({"file_path": desk_file, "content": content}),
    )
}

/// A model whose answers are known only when the desk stands.
fn model_with(first: impl Fn(usize, &str) -> Said + Send + Sync + 'static) -> Model {
    Model::start(move |at, request| {
        let folder = request.body["system"].to_string();
        first(at, &folder)
    })
    .unwrap()
}

fn answer(desk: &Desk, notices: &[SessionNotice], answer: QuestionAnswer) {
    let Some(SessionNotice::Ask { ask, .. }) = notices.last() else {
        panic!("{notices:?}");
    };
    desk.handle
        .send(SessionCommand::Answer { ask: *ask, answer });
}

#[test]
fn somebody_is_asked_and_what_they_say_counts() {
    let said = Arc::new(std::sync::Mutex::new(Vec::<Said>::new()));
    let script = Arc::clone(&said);
    let model = model_with(move |at, _| {
        script
            .lock()
            .unwrap()
            .get(at)
            .cloned()
            .unwrap_or_else(|| Said::text("done"))
    });
    let desk = Desk::new(&model);
    let file = desk.file("new.txt");
    *said.lock().unwrap() = vec![
        Said::blocks(&[write(&file, "toolu_1", "one")]),
        Said::text("written"),
        Said::blocks(&[write(&file, "toolu_2", "two")]),
        Said::blocks(&[
            write(&file, "toolu_3", "three"),
            write(&file, "toolu_4", "four"),
        ]),
    ];
    desk.say("write it");
    let asked = desk.until(|notice| matches!(notice, SessionNotice::Ask { .. }));
    assert!(!file.exists());
    answer(&desk, &asked, QuestionAnswer::Yes);
    assert_eq!(desk.ended().text, "written");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one");
    // A no with a reason goes to the model; a bare one ends the turn, and nothing else runs.
    desk.say("again");
    let asked = desk.until(|notice| matches!(notice, SessionNotice::Ask { .. }));
    answer(
        &desk,
        &asked,
        QuestionAnswer::No(Some("use another name".into())),
    );
    let asked = desk.until(|notice| matches!(notice, SessionNotice::Ask { .. }));
    assert!(
        model.requests()[3].body["messages"]
            .to_string()
            .contains("use another name")
    );
    answer(&desk, &asked, QuestionAnswer::No(None));
    assert_eq!(desk.ended().why, TurnEndReason::Interrupted);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one");
    desk.say("and now");
    assert_eq!(desk.ended().text, "done");
    assert_eq!(model.refusals(), [""; 0]);
}

#[test]
fn going_back_takes_files_and_words_back() {
    let said = Arc::new(std::sync::Mutex::new(Vec::<Said>::new()));
    let script = Arc::clone(&said);
    let model = model_with(move |at, _| {
        script
            .lock()
            .unwrap()
            .get(at)
            .cloned()
            .unwrap_or_else(|| Said::text("done"))
    });
    let desk = Desk::new(&model);
    desk.handle
        .send(SessionCommand::Mode(PermissionMode::AcceptEdits));
    let (old, new) = (desk.file("old.txt"), desk.file("new.txt"));
    std::fs::write(&old, "before").unwrap();
    *said.lock().unwrap() = vec![
        Said::text("hello"),
        Said::blocks(&[call("toolu_r", "Read", json!({"file_path": old}))]),
        Said::blocks(&[
            write(&old, "toolu_1", "after"),
            write(&new, "toolu_2", "new"),
        ]),
        Said::text("changed"),
    ];
    desk.say("first words");
    desk.ended();
    desk.say("second words");
    assert_eq!(desk.ended().text, "changed");
    assert!(new.exists());
    let lines = desk.lines();
    let prompt = lines
        .iter()
        .find(|line| line["message"]["content"] == "second words")
        .unwrap();
    desk.handle.send(SessionCommand::Rewind {
        prompt: prompt["uuid"].as_str().unwrap().to_owned(),
        files: true,
        conversation: true,
    });
    let told = desk.until(|notice| matches!(notice, SessionNotice::Rewound { .. }));
    assert!(
        !told
            .iter()
            .any(|notice| matches!(notice, SessionNotice::Warn(_))),
        "{told:?}"
    );
    assert_eq!(std::fs::read_to_string(&old).unwrap(), "before");
    assert!(!new.exists());
    desk.say("third words");
    desk.ended();
    let sent = model.requests().last().unwrap().body["messages"].to_string();
    assert!(
        sent.contains("first words") && sent.contains("third words"),
        "{sent}"
    );
    assert!(!sent.contains("second words"), "{sent}");
    assert_eq!(model.refusals(), [""; 0]);
    let before = desk.lines().len();
    assert!(before > lines.len(), "nothing is taken out of the file");
}

#[test]
fn a_command_of_ones_own_runs_without_the_model_which_hears_of_it_later() {
    let model = Model::playing(vec![]).unwrap();
    let desk = Desk::new(&model);
    desk.handle
        .send(SessionCommand::Shell("echo out; echo again".into()));
    desk.until(|notice| matches!(notice, SessionNotice::CallEnded { .. }));
    assert_eq!(model.requests().len(), 0);
    desk.say("what was that");
    desk.ended();
    let sent = model.requests()[0].body["messages"].to_string();
    assert!(
        sent.contains("<bash-input>echo out; echo again</bash-input>"),
        "{sent}"
    );
    assert!(
        sent.contains("<bash-stdout>out\\\\nagain</bash-stdout>")
            || sent.contains("<bash-stdout>out\\nagain</bash-stdout>"),
        "{sent}"
    );
    assert_eq!(model.refusals(), [""; 0]);
}

#[test]
fn what_is_typed_while_it_works_is_said_when_it_can_be_heard() {
    let model = Model::playing(vec![
        Said::blocks(&[
            text("working"),
            call("toolu_1", "Glob", json!({"pattern": "*"})),
        ])
        .before(4, Step::Gate("first")),
        Said::text("heard both"),
    ])
    .unwrap();
    let desk = Desk::new(&model);
    desk.say("one");
    assert!(model.reached("first", LONG));
    desk.say("two");
    desk.until(|notice| matches!(notice, SessionNotice::Queued(1)));
    model.open("first");
    assert_eq!(desk.ended().text, "heard both");
    let sent = model.requests()[1].body["messages"].to_string();
    assert!(sent.contains("two"), "{sent}");
    assert_eq!(model.refusals(), [""; 0]);
}

#[test]
fn stopping_leaves_a_conversation_that_goes_on() {
    let model = Model::playing(vec![
        Said::text("slow").before(3, Step::Gate("never")),
        Said::blocks(&[call(
            "toolu_1",
            "Bash",
            json!({"command": "touch began; sleep 47.25"}),
        )]),
    ])
    .unwrap();
    let desk = Desk::new(&model);
    desk.say("one");
    assert!(model.reached("never", LONG));
    desk.handle.send(SessionCommand::Interrupt);
    assert_eq!(desk.ended().why, TurnEndReason::Interrupted);
    desk.handle
        .send(SessionCommand::Mode(PermissionMode::Bypass));
    desk.say("two");
    let began = desk.file("began");
    unspool_testkit::wait::wait_until("the command runs", || began.exists());
    desk.handle.send(SessionCommand::Interrupt);
    assert_eq!(desk.ended().why, TurnEndReason::Interrupted);
    desk.say("three");
    assert_eq!(desk.ended().text, "done");
    assert_eq!(model.refusals(), [""; 0]);
}

#[test]
fn waiting_for_another_try_can_be_stopped() {
    let busy =
        Said::fails("529 Overloaded", "overloaded_error", "busy").header("retry-after", "600");
    let model = Model::playing(vec![busy]).unwrap();
    let url = model.url();
    let desk = Desk::with(&model, "{}", |setup| {
        let key = unspool_ask::ApiCredential::Key("k".into());
        setup.client = MessagesClient::new(&url, &key, ApiRetryPolicy::default()).unwrap();
    });
    desk.say("one");
    desk.until(|notice| matches!(notice, SessionNotice::Retry { .. }));
    desk.handle.send(SessionCommand::Interrupt);
    assert_eq!(desk.ended().why, TurnEndReason::Interrupted);
    desk.say("two");
    assert_eq!(desk.ended().text, "done");
    assert_eq!(model.refusals(), [""; 0]);
}

#[test]
fn a_question_can_be_left_without_an_answer() {
    for (name, input) in [
        ("Bash", json!({"command": "touch x"})),
        ("ExitPlanMode", json!({"plan": "all of it"})),
        (
            "AskUserQuestion",
            json!({"questions": [{"question": "Which?", "header": "Which", "multiSelect": false,
                "options": [{"label": "a", "description": "the first"}, {"label": "b", "description": "the second"}]}]}),
        ),
    ] {
        let model = Model::playing(vec![Said::blocks(&[call("toolu_1", name, input)])]).unwrap();
        let desk = Desk::new(&model);
        desk.say("one");
        desk.until(|notice| matches!(notice, SessionNotice::Ask { .. }));
        desk.handle.send(SessionCommand::Interrupt);
        assert_eq!(desk.ended().why, TurnEndReason::Interrupted, "{name}");
        desk.say("two");
        assert_eq!(desk.ended().text, "done", "{name}");
        assert_eq!(model.refusals(), [""; 0], "{name}");
    }
}

#[test]
fn a_summary_can_be_asked_for() {
    let model = Model::playing(vec![
        Said::text("hello"),
        Said::text("ALL IN SHORT"),
        Said::text("on"),
    ])
    .unwrap();
    let desk = Desk::new(&model);
    desk.say("old words");
    desk.ended();
    desk.handle.send(SessionCommand::Compact {
        words: Some("the names".into()),
    });
    assert_eq!(desk.ended().why, TurnEndReason::Compacted);
    assert!(
        model.requests()[1].body["messages"]
            .to_string()
            .contains("the names")
    );
    desk.say("new words");
    assert_eq!(desk.ended().text, "on");
    let sent = model.requests()[2].body["messages"].to_string();
    assert!(
        sent.contains("ALL IN SHORT") && !sent.contains("old words"),
        "{sent}"
    );
    assert!(sent.contains("hello"), "what was said last stays: {sent}");
    assert_eq!(model.refusals(), [""; 0]);
    let lines = desk.lines();
    let boundary = lines
        .iter()
        .find(|line| line["subtype"] == "compact_boundary")
        .unwrap();
    let about = &boundary["compactMetadata"];
    let summary = lines
        .iter()
        .find(|line| line["isCompactSummary"] == true)
        .unwrap();
    let reply = lines
        .iter()
        .find(|line| line["type"] == "assistant")
        .unwrap();
    assert_eq!(about["trigger"], "manual");
    assert_eq!(about["preservedMessages"]["uuids"][0], reply["uuid"]);
    assert_eq!(about["preservedMessages"]["anchorUuid"], summary["uuid"]);
    assert_eq!(about["preservedSegment"]["headUuid"], reply["uuid"]);
    assert_eq!(
        about["preservedSegment"]["tailUuid"],
        boundary["logicalParentUuid"]
    );
    assert_eq!(summary["parentUuid"], boundary["uuid"]);
}
