//! Esc and Ctrl-C in every phase: what runs ends, the prompt comes back, the log is whole.

use std::path::PathBuf;

use unspool_testkit::model::{text, thinking};

use super::*;

/// A phase: what the model answers, what hooks there are, how it begins, what holds after it
/// was stopped.
struct Phase {
    answers: Vec<Answer>,
    settings: Option<Value>,
    begin: fn(&mut Talk),
    after: fn(&Talk),
}

impl Phase {
    fn of(answers: Vec<Answer>, begin: fn(&mut Talk)) -> Phase {
        Phase {
            answers,
            settings: None,
            begin,
            after: |_| {},
        }
    }

    /// Stops it by both keys, and goes on.
    fn stops(&self) {
        for key in [ESC, CTRL_C] {
            self.stops_by(key);
        }
    }

    fn stops_by(&self, key: &str) {
        let home = home();
        home.write("project/waits.sh", SCRIPT);
        if let Some(settings) = &self.settings {
            home.write(".claude/settings.json", settings.to_string());
        }
        let answers = self.answers.clone();
        let model = Model::start(move |at, request| {
            let goes_on = request.body.to_string().contains("go on now");
            match answers.get(at).filter(|_| !goes_on) {
                Some(answer) => answer.clone(),
                None => Answer::text("it goes on"),
            }
        });
        let mut talk = Talk::at(home, model.unwrap(), &["--allowedTools", "Bash"]);
        (self.begin)(&mut talk);
        talk.press(key);
        talk.rests();
        (self.after)(&talk);
        talk.say("go on now");
        talk.answers("it goes on");
        talk.leaves();
    }
}

/// A script that tells its id and then waits for ever, the first time.
const SCRIPT: &str = "test -e pid && exit; echo $$ > pid; exec sleep 1000";
const WAITS: &str = "sh waits.sh";

fn runs(talk: &Talk) {
    wait_until("command", || {
        std::fs::read_to_string(talk.file("pid")).is_ok_and(|text| text.ends_with('\n'))
    });
    talk.shows("esc to interrupt");
}

/// The command that told its id is gone.
fn gone(talk: &Talk) {
    let id = std::fs::read_to_string(talk.file("pid")).unwrap();
    let path = PathBuf::from(format!("/proc/{}", id.trim()));
    wait_until("end of the command", || !path.exists());
}

fn hook(event: &str) -> Value {
    let command = json!({"type": "command", "command": WAITS});
    json!({"hooks": {event: [{"matcher": "*", "hooks": [command]}]}})
}

#[test]
fn while_the_model_speaks() {
    let slow = Answer::text("half of it, other half").before(4, Step::Gate("slow"));
    Phase {
        after: |talk| drop(talk.shows("interrupted; say")),
        ..Phase::of(vec![slow], |talk| {
            talk.say("hi");
            assert!(talk.model.reached("slow", PATIENCE));
            talk.shows("half of it");
        })
    }
    .stops();
}

#[test]
fn while_the_model_thinks() {
    let slow = Answer::blocks(&[thinking("hm, so it is"), text("yes")]);
    Phase::of(vec![slow.before(4, Step::Gate("slow"))], |talk| {
        talk.say("hi");
        assert!(talk.model.reached("slow", PATIENCE));
        talk.shows("thinking");
    })
    .stops();
}

#[test]
fn before_the_first_word() {
    let slow = Answer::text("late").before(0, Step::Gate("slow"));
    Phase::of(vec![slow], |talk| {
        talk.say("hi");
        assert!(talk.model.reached("slow", PATIENCE));
        talk.shows("working");
    })
    .stops();
}

#[test]
fn while_a_tool_runs() {
    Phase {
        after: gone,
        ..Phase::of(vec![Answer::blocks(&[bash("toolu_1", WAITS)])], |talk| {
            talk.say("hi");
            runs(talk);
        })
    }
    .stops();
}

#[test]
fn while_a_permission_is_asked() {
    let write = call(
        "toolu_1",
        "Write",
        json!({"file_path": "/nowhere/x", "content": "x"}),
    );
    Phase::of(vec![Answer::blocks(&[write])], |talk| {
        talk.say("hi");
        talk.shows("Write wants to run");
    })
    .stops();
}

#[test]
fn while_a_command_of_the_person_runs() {
    Phase {
        after: gone,
        ..Phase::of(vec![], |talk| {
            talk.say(&format!("!{WAITS}"));
            runs(talk);
        })
    }
    .stops();
}

#[test]
fn while_a_hook_before_a_tool_runs() {
    Phase {
        settings: Some(hook("PreToolUse")),
        after: gone,
        ..Phase::of(vec![Answer::blocks(&[bash("toolu_1", "true")])], |talk| {
            talk.say("hi");
            runs(talk);
        })
    }
    .stops();
}

#[test]
fn while_a_hook_at_the_end_of_a_turn_runs() {
    Phase {
        settings: Some(hook("Stop")),
        after: gone,
        ..Phase::of(vec![Answer::text("hello there")], |talk| {
            talk.say("hi");
            talk.shows("hello there");
            runs(talk);
        })
    }
    .stops();
}

#[test]
fn while_a_retry_is_waited_for() {
    let busy = Answer::fails("429 Too Many Requests", "rate_limit_error", "slow down");
    Phase::of(vec![busy.header("retry-after", "50")], |talk| {
        talk.say("hi");
        talk.shows("retrying in");
    })
    .stops();
}

#[test]
fn while_a_summary_is_made() {
    let slow = Answer::text("all of it in short").before(2, Step::Gate("slow"));
    Phase::of(vec![Answer::text("hello there"), slow], |talk| {
        talk.say("hi");
        talk.answers("hello there");
        talk.say("/compact");
        assert!(talk.model.reached("slow", PATIENCE));
        talk.shows("compacting");
    })
    .stops();
}
