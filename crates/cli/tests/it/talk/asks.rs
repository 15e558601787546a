//! Questions: whether a call may run, what a person wants, whether a folder is trusted.

use super::*;

/// Longer than a question waits for another key behind a letter.
const MOMENT: Duration = Duration::from_millis(700);

fn touch(id: &str, name: &str) -> Answer {
    Answer::blocks(&[bash(id, &format!("touch {name}"))])
}

#[test]
fn a_no_with_a_reason_is_told_to_the_model_and_a_yes_holds_once() {
    let mut talk = Talk::with(vec![
        touch("toolu_1", "made"),
        Answer::text("fine then"),
        touch("toolu_2", "made"),
        Answer::text("made it"),
        touch("toolu_3", "made"),
        Answer::text("stopped asking"),
    ]);
    talk.say("make it");
    let screen = talk.asks("Bash wants to run");
    assert!(screen.contains("touch made"), "{screen}");
    talk.press("n");
    talk.shows("\n│ >");
    talk.say("not now");
    talk.answers("fine then");
    assert!(!talk.file("made").exists());
    assert!(talk.sent().to_string().contains("not now"));
    talk.say("do");
    talk.asks("Bash wants to run");
    talk.press("y");
    talk.answers("made it");
    assert!(talk.file("made").exists());
    talk.say("again");
    talk.asks("Bash wants to run");
    talk.press("\r");
    talk.answers("stopped asking");
    talk.leaves();
}

#[test]
fn an_always_is_kept_beside_the_project_and_heeded_now_and_later() {
    let mut talk = Talk::with(vec![
        touch("toolu_1", "one"),
        Answer::text("made one"),
        touch("toolu_2", "two"),
        Answer::text("made two"),
        touch("toolu_3", "three"),
        Answer::text("made three"),
        touch("toolu_4", "four"),
        Answer::text("made four"),
    ]);
    talk.say("make it");
    let screen = talk.asks("Bash wants to run");
    assert!(
        screen.contains("2 Yes, for this session: Bash(touch:*)"),
        "{screen}"
    );
    assert!(screen.contains("3 Yes, always: Bash(touch:*)"), "{screen}");
    assert!(screen.contains(".claude/settings.local.json"), "{screen}");
    talk.press("3");
    talk.shows("added to");
    talk.answers("made one");
    let kept = talk.file(".claude/settings.local.json");
    let kept: Value = serde_json::from_slice(&std::fs::read(kept).unwrap()).unwrap();
    assert_eq!(kept, json!({"permissions": {"allow": ["Bash(touch:*)"]}}));
    talk.say("one more");
    talk.answers("made two");
    let (home, model) = talk.leaves();
    // A new conversation, and one that nobody watches.
    let mut talk = Talk::at(home, model, &[]);
    talk.say("and again");
    talk.answers("made three");
    let (home, model) = talk.leaves();
    let alone = program(&home, &model)
        .args(["-p", "last"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&alone.stdout), "made four\n");
    for name in ["one", "two", "three", "four"] {
        assert!(home.work_dir().join(name).exists(), "{name}");
    }
}

#[test]
fn an_always_does_not_trust_what_else_a_folder_brings() {
    let home = home();
    let hook = json!({"hooks": [{"type": "command", "command": "touch hooked"}]});
    let settings = json!({"hooks": {"UserPromptSubmit": [hook]}});
    home.write("project/.claude/settings.json", settings.to_string());
    let model = Model::playing(vec![touch("toolu_1", "one"), Answer::text("made one")]).unwrap();
    let mut talk = Talk::starting(home, model, &[]);
    talk.shows("this folder has its own settings");
    talk.scrolls();
    talk.press("n");
    talk.shows("asks before edits");
    talk.say("make it");
    talk.asks("Bash wants to run");
    talk.press("3");
    talk.shows("once this folder is trusted");
    talk.answers("made one");
    let (home, model) = talk.leaves();
    let mut talk = Talk::starting(home, model, &[]);
    talk.shows("this folder has its own settings");
    talk.scrolls();
    talk.press("n");
    talk.shows("asks before edits");
    assert!(!talk.file("hooked").exists());
    talk.leaves();
}

#[test]
fn trust_is_asked_for_once_and_kept_outside_the_folder() {
    let home = home();
    let hook = json!({"hooks": [{"type": "command", "command": "touch hooked"}]});
    let settings = json!({"hooks": {"UserPromptSubmit": [hook]}});
    home.write("project/.claude/settings.json", settings.to_string());
    let model = Model::playing(vec![Answer::text("one"), Answer::text("two")]).unwrap();
    let mut talk = Talk::starting(home, model, &[]);
    let screen = talk.asks("Trust this folder and apply these settings?");
    assert!(screen.contains("touch hooked"), "{screen}");
    talk.press("y");
    talk.shows("asks before edits");
    talk.say("hi");
    talk.answers("one");
    assert!(talk.file("hooked").exists());
    std::fs::remove_file(talk.file("hooked")).unwrap();
    let (home, model) = talk.leaves();
    let mut talk = Talk::at(home, model, &[]);
    talk.say("hi");
    let screen = talk.answers("two");
    assert!(!screen.contains("Trust this folder"), "{screen}");
    assert!(talk.file("hooked").exists());
    talk.leaves();
}

#[test]
fn an_edit_is_shown_before_it_is_done() {
    let home = home();
    let file = home.write("project/a.txt", "first\nsecond\nthird\n");
    let path = file.display().to_string();
    let edit = json!({"file_path": path, "old_string": "second", "new_string": "other"});
    let read = call("toolu_1", "Read", json!({"file_path": path}));
    let model = Model::playing(vec![
        Answer::blocks(&[read]),
        Answer::blocks(&[call("toolu_2", "Edit", edit)]),
        Answer::text("changed"),
    ])
    .unwrap();
    let mut talk = Talk::at(home, model, &[]);
    talk.say("change it");
    let screen = talk.asks("Edit wants to run");
    assert!(
        screen.contains("second") && screen.contains("other"),
        "{screen}"
    );
    talk.is("a.txt", "first\nsecond\nthird\n");
    talk.press("y");
    talk.answers("changed");
    talk.is("a.txt", "first\nother\nthird\n");
    talk.leaves();
}

#[test]
fn a_form_is_answered_and_a_plan_approved() {
    let form = json!({"questions": [
        {"question": "Which one?", "header": "Which", "multiSelect": false,
         "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]},
        {"question": "Which else?", "header": "Else", "multiSelect": true,
         "options": [{"label": "One", "description": "1"}, {"label": "Two", "description": "2"}]},
    ]});
    let plan = json!({"plan": "# Do it\n\n1. first\n2. second"});
    let model = Model::playing(vec![
        Answer::blocks(&[call("toolu_1", "AskUserQuestion", form)]),
        Answer::text("good choice"),
        Answer::blocks(&[call("toolu_2", "ExitPlanMode", plan)]),
        Answer::text("off it goes"),
    ])
    .unwrap();
    let mut talk = Talk::at(home(), model, &[]);
    talk.say("ask me");
    talk.asks("Which one?");
    talk.press(DOWN);
    talk.press("\r");
    talk.asks("Which else?");
    talk.press("12");
    talk.shows("[x] Two");
    // Enter right behind a digit could be the end of a text.
    std::thread::sleep(MOMENT);
    talk.press("\r");
    talk.answers("good choice");
    let sent = talk.sent().to_string();
    assert!(sent.contains("Blue") && sent.contains("One, Two"), "{sent}");
    talk.press("\x1b[Z\x1b[Z");
    talk.shows("plan mode on");
    talk.say("plan it");
    let screen = talk.asks("The plan");
    assert!(screen.contains("second"), "{screen}");
    talk.press("2");
    talk.answers("off it goes");
    talk.shows("asks before edits");
    talk.leaves();
}

#[test]
fn a_prompt_that_is_typed_while_a_command_is_asked_about_runs_nothing() {
    for text in ["yes maybe later", "hello 2 you", "3 more"] {
        let gated = touch("toolu_1", "made").before(2, Step::Gate("slow"));
        let answers = vec![gated, Answer::text("not made"), Answer::text("heard you")];
        let mut talk = Talk::with(answers);
        talk.say("make it");
        assert!(talk.model.reached("slow", PATIENCE));
        let (before, after) = text.split_at(2);
        talk.press(before);
        talk.shows(format!("> {before}").trim_end());
        talk.model.open("slow");
        talk.shows("Bash wants to run");
        talk.press(after);
        talk.shows(&format!("> {text}"));
        std::thread::sleep(MOMENT);
        assert!(!talk.file("made").exists(), "{text}");
        talk.press("\r");
        talk.shows(&format!("next: {text}"));
        talk.asks("Bash wants to run");
        talk.press("n");
        talk.shows("\n│ >");
        talk.say("no");
        talk.rests();
        assert!(!talk.file("made").exists(), "{text}");
        assert!(!talk.file(".claude/settings.local.json").exists(), "{text}");
        talk.leaves();
    }
}

#[test]
fn what_a_terminal_would_hide_is_shown_and_a_long_command_is_seen_to_its_end() {
    let hidden = "ls -la \u{1b}]0;$(touch HIDDEN)\u{7}";
    let lines: Vec<String> = (0..90).map(|at| format!("true number{at}")).collect();
    let long = format!("{}\ntouch LAST", lines.join("\n"));
    let mut talk = Talk::with(vec![
        Answer::blocks(&[bash("toolu_1", hidden)]),
        Answer::text("first over"),
        Answer::blocks(&[bash("toolu_2", &long)]),
        Answer::text("second over"),
    ]);
    talk.say("one");
    let screen = talk.asks("Bash wants to run");
    assert!(screen.contains("\\x1b]0;$(touch HIDDEN)\\x07"), "{screen}");
    talk.press("n");
    talk.shows("\n│ >");
    talk.say("no");
    talk.answers("first over");
    talk.say("two");
    talk.shows("space to scroll");
    std::thread::sleep(MOMENT);
    talk.press("\r");
    let screen = talk.scrolls();
    assert!(screen.contains("touch LAST"), "{screen}");
    assert!(!talk.file("LAST").exists());
    talk.press("\r");
    talk.answers("second over");
    assert!(talk.file("LAST").exists());
    talk.leaves();
}

#[test]
fn for_this_session_is_heeded_and_stored_nowhere() {
    let mut talk = Talk::with(vec![
        touch("toolu_1", "one"),
        Answer::text("made one"),
        touch("toolu_2", "two"),
        Answer::text("made two"),
    ]);
    talk.say("make it");
    talk.asks("Bash wants to run");
    talk.press("2");
    talk.answers("made one");
    talk.say("more");
    talk.answers("made two");
    assert!(talk.file("two").exists());
    assert!(!talk.file(".claude/settings.local.json").exists());
    talk.leaves();
}

#[test]
fn what_is_typed_before_the_question_of_trust_does_not_answer_it() {
    let home = home();
    let hooks: Vec<Value> = (0..60)
        .map(|at| json!({"hooks": [{"type": "command", "command": format!("touch hooked{at}")}]}))
        .collect();
    let settings = json!({"hooks": {"UserPromptSubmit": hooks}, "env": {"A": "x\u{202e}y"}});
    home.write("project/.claude/settings.json", settings.to_string());
    let model = Model::playing(vec![Answer::text("heard it")]).unwrap();
    let mut talk = Talk::starting(home, model, &[]);
    talk.shows("this folder has its own settings");
    talk.press("yes");
    talk.shows("> yes");
    talk.press("\x15");
    // All of it has to be seen, also by who means it.
    talk.shows("space to scroll");
    talk.press("y");
    talk.shows("> y");
    talk.press("\x15");
    let screen = talk.scrolls();
    assert!(
        screen.contains("Trust this folder and apply these settings?"),
        "{screen}"
    );
    assert!(screen.contains("x\\u202ey"), "{screen}");
    talk.press("keep this");
    talk.shows("> keep this");
    std::thread::sleep(MOMENT);
    talk.press(ESC);
    // What was typed goes to the conversation.
    talk.shows("asks before edits");
    talk.shows("> keep this");
    talk.press("\r");
    talk.answers("heard it");
    assert!(!talk.file("hooked0").exists());
    talk.leaves();
}

#[test]
fn two_agents_that_ask_at_once_wait_for_their_turn_and_each_is_answered() {
    let model = Model::start(|_, request| {
        let first = request.body["messages"][0].to_string();
        let over = request.body["messages"].to_string().contains("tool_result");
        for name in ["red", "blue"] {
            if first.contains(&format!("be {name}")) {
                return match over {
                    true => Answer::text(name),
                    false => touch(&format!("toolu_{name}"), name),
                };
            }
        }
        let agent = |name: &str| {
            let input = json!({"description": format!("the {name} one"),
                               "prompt": format!("be {name}")});
            call(&format!("toolu_agent_{name}"), "Agent", input)
        };
        match over {
            true => Answer::text("both are over"),
            false => Answer::blocks(&[agent("red"), agent("blue")]),
        }
    });
    let mut talk = Talk::at(home(), model.unwrap(), &[]);
    talk.say("go");
    let screen = talk.asks("1 more question");
    let first = match screen.contains("asks: the red one") {
        true => "red",
        false => "blue",
    };
    assert!(screen.contains(&format!("│ touch {first}")), "{screen}");
    talk.press("\r");
    let second = if first == "red" { "blue" } else { "red" };
    let screen = talk.asks(&format!("asks: the {second} one"));
    assert!(!screen.contains("more question"), "{screen}");
    wait_until("first file", || talk.file(first).exists());
    assert!(!talk.file(second).exists());
    talk.press("n");
    talk.shows("\n│ >");
    talk.say("no");
    talk.answers("both are over");
    assert!(!talk.file(second).exists());
    talk.leaves();
}
