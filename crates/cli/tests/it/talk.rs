//! `chat` on a terminal: what it shows, what it obeys, what it writes down.
#![cfg(unix)]

use std::time::Duration;

use serde_json::json;
use unspool_testkit::home::Home;
use unspool_testkit::model::{Answer, Model, Step, call, text};

use crate::chat::{fine, kinds, lines, program};
use crate::home;
use crate::tty::Terminal;

const ENTER: &str = "\r";
const ESC: &str = "\x1b";

fn talk(home: &Home, model: &Model) -> Terminal {
    let terminal = Terminal::of(&program(home, model), 24, 80);
    terminal.shows("asks before changes");
    terminal
}

#[test]
fn a_prompt_is_answered_and_what_was_said_stays() {
    let home = home();
    let model =
        Model::playing(vec![Answer::text("hello **there**"), Answer::text("again")]).unwrap();
    let mut terminal = talk(&home, &model);
    terminal.press("hi");
    terminal.shows("> hi");
    terminal.press(ENTER);
    terminal.shows("hello there");
    terminal.press("more");
    terminal.press(ENTER);
    let screen = terminal.shows("again");
    assert!(
        screen.contains("hello there") && screen.contains("> more"),
        "{screen}"
    );
    terminal.press("\x04");
    assert_eq!(terminal.ends(), 0);
    terminal.is_as_before();
    fine(&model);
    let kinds = kinds(&lines(&home));
    assert_eq!(
        kinds.iter().filter(|kind| *kind == "user").count(),
        2,
        "{kinds:?}"
    );
}

#[test]
fn esc_stops_the_model_and_the_session_goes_on() {
    let home = home();
    let slow = Answer::text("never said").before(2, Step::Gate("slow"));
    let model = Model::playing(vec![slow, Answer::text("other")]).unwrap();
    let mut terminal = talk(&home, &model);
    terminal.press("hi\r");
    assert!(model.reached("slow", Duration::from_secs(30)));
    terminal.shows("esc to stop");
    terminal.press(ESC);
    terminal.shows("stopped");
    model.open("slow");
    terminal.press("go on\r");
    terminal.shows("other");
    terminal.press("\x04");
    assert_eq!(terminal.ends(), 0);
    fine(&model);
}

#[test]
fn a_command_is_asked_about_and_a_no_is_told_to_the_model() {
    let home = home();
    let run = call(
        "toolu_1",
        "Bash",
        json!({"command": "touch made", "description": "x"}),
    );
    let model = Model::playing(vec![
        Answer::stopping(&[run], "tool_use"),
        Answer::text("fine then"),
        Answer::stopping(
            &[call(
                "toolu_2",
                "Bash",
                json!({"command": "touch made", "description": "x"}),
            )],
            "tool_use",
        ),
        Answer::text("made it"),
    ])
    .unwrap();
    let mut terminal = talk(&home, &model);
    terminal.press("make it\r");
    let screen = terminal.shows("Bash wants to run");
    assert!(screen.contains("touch made"), "{screen}");
    terminal.press("n");
    terminal.press("not now\r");
    terminal.shows("fine then");
    assert!(!home.path().join("made").exists());
    terminal.press("do\r");
    terminal.shows("Bash wants to run");
    terminal.press("y");
    terminal.shows("made it");
    terminal.press("\x04");
    assert_eq!(terminal.ends(), 0);
    fine(&model);
    let told = model.requests()[1].body.to_string();
    assert!(told.contains("not now"), "{told}");
}

#[test]
fn what_is_typed_meanwhile_waits_and_is_said_next() {
    let home = home();
    let slow = Answer::text("first answer").before(2, Step::Gate("slow"));
    let model = Model::playing(vec![slow, Answer::text("second answer")]).unwrap();
    let mut terminal = talk(&home, &model);
    terminal.press("one\r");
    assert!(model.reached("slow", Duration::from_secs(30)));
    terminal.press("two\r");
    terminal.shows("next: two");
    model.open("slow");
    terminal.shows("second answer");
    let screen = terminal.until("an empty editor", |screen| {
        screen.trim_end().contains("\n>\n")
    });
    assert!(screen.contains("> two"), "{screen}");
    terminal.press("\x04");
    assert_eq!(terminal.ends(), 0);
    fine(&model);
}

#[test]
fn pasted_lines_are_one_prompt_and_resizing_loses_nothing() {
    let home = home();
    let model = Model::playing(vec![Answer::text("seen")]).unwrap();
    let mut terminal = talk(&home, &model);
    terminal.press("\x1b[200~one 日本語\ntwo\x1b[201~");
    terminal.shows("two");
    terminal.resize(30, 50);
    terminal.press(" end\r");
    terminal.shows("seen");
    terminal.press("\x04");
    assert_eq!(terminal.ends(), 0);
    fine(&model);
    let asked = model.requests()[0].body.to_string();
    assert!(asked.contains("one 日本語\\ntwo end"), "{asked}");
}

#[test]
fn commands_are_completed_and_answered_without_the_model() {
    let home = home();
    let model = Model::playing(vec![text_answer()]).unwrap();
    let mut terminal = talk(&home, &model);
    terminal.press("/cos");
    terminal.shows("what this session has cost");
    terminal.press("\t\r");
    terminal.shows("so far");
    terminal.press("/nonsense\r");
    terminal.shows("there is no command /nonsense");
    terminal.press("/exit\r");
    assert_eq!(terminal.ends(), 0);
    assert_eq!(model.requests().len(), 0);
}

fn text_answer() -> Answer {
    Answer::blocks(&[text("x")])
}

#[test]
fn a_wrong_key_is_one_message_and_the_prompt_comes_back() {
    let home = home();
    let bad = Answer::fails(
        "401 Unauthorized",
        "authentication_error",
        "invalid x-api-key",
    );
    let model = Model::playing(vec![bad, Answer::text("now it works")]).unwrap();
    let mut terminal = talk(&home, &model);
    terminal.press("hi\r");
    terminal.shows("invalid x-api-key");
    terminal.press("again\r");
    terminal.shows("now it works");
    terminal.press("\x04");
    assert_eq!(terminal.ends(), 0);
    fine(&model);
}
