//! `chat` on a terminal: what it shows, what it obeys, what it writes down.
#![cfg(unix)]

mod asks;
mod back;
mod commands;
mod sessions;
mod stops;
mod typing;

use std::time::Duration;

use serde_json::{Value, json};
use unspool_testkit::home::Home;
use unspool_testkit::model::{Answer, Model, Step, call};
use unspool_testkit::wait::wait_until;

use crate::chat::{fine, kinds, lines, program, transcripts};
use crate::home;
use crate::tty::{PATIENCE, Terminal};

const ESC: &str = "\x1b";
const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const UP: &str = "\x1b[A";
const DOWN: &str = "\x1b[B";

/// A conversation: a machine, a model that plays a script, and the program on a terminal.
struct Talk {
    home: Home,
    model: Model,
    terminal: Terminal,
}

impl Talk {
    fn with(answers: Vec<Answer>) -> Talk {
        Talk::at(home(), Model::playing(answers).unwrap(), &[])
    }

    /// On this machine, with more arguments.
    fn at(home: Home, model: Model, args: &[&str]) -> Talk {
        let talk = Talk::starting(home, model, args);
        talk.shows("asks before edits");
        talk
    }

    /// Without waiting for the prompt.
    fn starting(home: Home, model: Model, args: &[&str]) -> Talk {
        let mut command = program(&home, &model);
        command.args(args);
        let terminal = Terminal::of(&command, 24, 80);
        Talk {
            home,
            model,
            terminal,
        }
    }

    fn press(&mut self, keys: &str) {
        self.terminal.press(keys);
    }

    fn say(&mut self, text: &str) {
        self.press(&format!("{text}\r"));
    }

    fn shows(&self, text: &str) -> String {
        self.terminal.shows(text)
    }

    /// Waits until a turn is over, and nothing is asked.
    fn rests(&self) -> String {
        self.terminal.until("prompt", |screen| {
            let busy = ["esc to interrupt", "enter to select"];
            let editor = screen.lines().any(|line| line.starts_with('>'));
            editor && !busy.iter().any(|word| screen.contains(word))
        })
    }

    /// Waits until an answer stands on the screen and the turn is over.
    fn answers(&self, text: &str) -> String {
        self.shows(text);
        self.rests()
    }

    /// Waits until a question stands on the screen and a key may answer it.
    fn asks(&self, text: &str) -> String {
        self.terminal.until(text, |screen| {
            screen.contains(text) && screen.contains("enter to select")
        })
    }

    /// Scrolls through a question until all of it was seen and a key may answer it.
    fn scrolls(&mut self) -> String {
        for _ in 0..2_000 {
            let screen = self.terminal.screen();
            if screen.contains("enter to select") {
                return screen;
            }
            self.press("\x1b[6~");
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("there is no end: {}", self.terminal.screen());
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.home.work_dir().join(name)
    }

    fn is(&self, name: &str, text: &str) {
        assert_eq!(std::fs::read_to_string(self.file(name)).unwrap(), text);
    }

    /// Leaves: the terminal is as it was, no request was refused, and every transcript is whole.
    fn leaves(mut self) -> (Home, Model) {
        self.rests();
        self.press(CTRL_D);
        assert_eq!(self.terminal.ends(), 0, "{}", self.terminal.screen());
        self.terminal.is_as_before();
        let Talk { home, model, .. } = self;
        fine(&model);
        if !transcripts(&home).is_empty() {
            let checked = home.output(&["check", "--all"]);
            let told = String::from_utf8_lossy(&checked.stdout);
            assert!(checked.status.success(), "{told}");
        }
        (home, model)
    }

    /// What was sent last.
    fn sent(&self) -> Value {
        self.model.requests().last().unwrap().body["messages"].clone()
    }
}

fn bash(id: &str, command: &str) -> Value {
    call(id, "Bash", json!({"command": command, "description": "x"}))
}

#[test]
fn a_prompt_is_answered_and_what_was_said_stays() {
    let mut talk = Talk::with(vec![Answer::text("hello **there**"), Answer::text("again")]);
    talk.press("hi");
    talk.shows("> hi");
    talk.press("\r");
    talk.answers("hello there");
    talk.say("more");
    let screen = talk.answers("again");
    assert!(
        screen.contains("hello there") && screen.contains("> more"),
        "{screen}"
    );
    let (home, _) = talk.leaves();
    let kinds = kinds(&lines(&home));
    assert_eq!(
        kinds.iter().filter(|kind| *kind == "user").count(),
        2,
        "{kinds:?}"
    );
}

#[test]
fn what_is_typed_meanwhile_waits_and_is_said_next() {
    let slow = Answer::text("first answer").before(2, Step::Gate("slow"));
    let mut talk = Talk::with(vec![slow, Answer::text("second answer")]);
    talk.say("one");
    assert!(talk.model.reached("slow", PATIENCE));
    talk.say("two");
    talk.shows("next: two");
    talk.model.open("slow");
    let screen = talk.answers("second answer");
    assert!(screen.contains("> two"), "{screen}");
    talk.leaves();
}

#[test]
fn several_things_typed_meanwhile_are_said_in_order() {
    let slow = Answer::text("first answer").before(2, Step::Gate("slow"));
    let rest = ["second answer", "third answer", "fourth answer"];
    let answers = std::iter::once(slow).chain(rest.map(Answer::text));
    let mut talk = Talk::with(answers.collect());
    talk.say("one");
    assert!(talk.model.reached("slow", PATIENCE));
    for text in ["two", "three", "four"] {
        talk.say(text);
    }
    talk.shows("next: four");
    talk.model.open("slow");
    talk.answers("fourth answer");
    let sent = talk.sent().to_string();
    let at = |text: &str| sent.find(text).unwrap();
    assert!(
        at("two") < at("three") && at("three") < at("four"),
        "{sent}"
    );
    talk.leaves();
}

#[test]
fn a_wrong_key_is_one_message_and_the_prompt_comes_back() {
    let bad = Answer::fails(
        "401 Unauthorized",
        "authentication_error",
        "invalid x-api-key",
    );
    let mut talk = Talk::with(vec![bad, Answer::text("now it works")]);
    talk.say("hi");
    talk.answers("invalid x-api-key");
    talk.say("again");
    talk.answers("now it works");
    talk.leaves();
}
