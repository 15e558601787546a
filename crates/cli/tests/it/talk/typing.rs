//! What is typed and pasted, on screens of all sizes.

use super::*;

const PASTE: (&str, &str) = ("\x1b[200~", "\x1b[201~");

fn pasted(text: &str) -> String {
    format!("{}{text}{}", PASTE.0, PASTE.1)
}

/// The content of the prompt that was sent last.
fn prompt(talk: &Talk) -> String {
    let sent = talk.sent();
    let last = sent.as_array().unwrap().last().unwrap()["content"].clone();
    match last {
        Value::String(text) => text,
        blocks => {
            let texts = blocks.as_array().unwrap().iter();
            let texts: Vec<&str> = texts.filter_map(|block| block["text"].as_str()).collect();
            texts.join("\n")
        }
    }
}

#[test]
fn pasted_lines_are_one_prompt() {
    let mut talk = Talk::with(vec![Answer::text("seen")]);
    talk.press(&pasted("one 日本語\ntwo\r\nthree"));
    talk.shows("three");
    talk.say(" end");
    talk.answers("seen");
    assert_eq!(prompt(&talk), "one 日本語\ntwo\nthree end");
    talk.leaves();
}

#[test]
fn a_big_paste_is_a_short_note_and_is_sent_whole() {
    let mut talk = Talk::with(vec![Answer::text("seen")]);
    let lines: Vec<String> = (0..3000)
        .map(|line| format!("{line} {}", "x".repeat(60)))
        .collect();
    let big = lines.join("\n");
    talk.press("look: ");
    talk.press(&pasted(&big));
    talk.shows("look: [Pasted text #1 +2999 lines]");
    talk.say("");
    talk.answers("seen");
    assert_eq!(prompt(&talk), format!("look: {big}"));
    talk.leaves();
}

#[test]
fn a_paste_cannot_press_keys() {
    let mut talk = Talk::with(vec![Answer::text("seen")]);
    talk.press(&pasted("a\x1b[A\x03\x04b"));
    talk.shows("b");
    talk.say("");
    talk.answers("seen");
    let text = prompt(&talk);
    assert!(text.starts_with('a') && text.ends_with('b'), "{text:?}");
    assert!(!text.contains(['\x1b', '\x03', '\x04']), "{text:?}");
    talk.leaves();
}

#[test]
fn wide_characters_are_edited_as_they_are_seen() {
    let mut talk = Talk::with(vec![Answer::text("seen")]);
    talk.press("日本語x");
    talk.shows("> 日本語x");
    talk.press("\x1b[D\x1b[D");
    talk.terminal.until_cursor(2 + 4);
    talk.press("\x7f");
    talk.shows("> 日語x");
    talk.terminal.until_cursor(2 + 2);
    talk.press("\u{e9}");
    talk.shows("> 日é語x");
    talk.say("");
    talk.answers("seen");
    assert_eq!(prompt(&talk), "日é語x");
    talk.leaves();
}

#[test]
fn wide_characters_wrap_at_the_edge_and_not_in_the_middle() {
    let mut talk = Talk::with(vec![]);
    talk.press(&"語".repeat(50));
    let screen = talk.terminal.until("two rows", |screen| {
        screen
            .lines()
            .any(|line| line == format!("  {}", "語".repeat(12)))
    });
    let first = format!("> {}", "語".repeat(38));
    assert!(screen.lines().any(|line| line == first), "{screen}");
    talk.press("\x15");
    talk.leaves();
}

#[test]
fn resizing_while_it_works_loses_and_doubles_nothing() {
    let slow = Answer::text("the first half, and the second half").before(4, Step::Gate("slow"));
    let mut talk = Talk::with(vec![Answer::text("an earlier answer"), slow]);
    talk.say("hello");
    talk.answers("an earlier answer");
    talk.say("question");
    assert!(talk.model.reached("slow", PATIENCE));
    talk.shows("the first half");
    let types = |talk: &mut Talk| {
        talk.press("x");
        talk.terminal.until("a letter", |screen| {
            screen.lines().any(|line| line == "> x") && screen.contains("esc to interrupt")
        });
        talk.press("\x7f");
        let screen = talk.terminal.until("an empty editor", |screen| {
            screen.lines().any(|line| line.trim_end() == ">")
        });
        assert_eq!(screen.matches("the first half").count(), 1, "{screen}");
    };
    // Keys that come in the same moment as another size are heard with the next key only.
    talk.terminal.resize(30, 100);
    talk.shows("asks before edits  ·  ");
    types(&mut talk);
    // The screen gets narrower when the program has drawn for that: a frame that is on its way
    // would be wrapped, as nothing here can help.
    talk.terminal.tell_size(30, 40);
    talk.terminal.until("a narrow last row", |screen| {
        screen
            .lines()
            .any(|line| line.starts_with("asks before") && line.ends_with('…'))
    });
    talk.terminal.resize_screen(30, 40);
    types(&mut talk);
    talk.terminal.resize(40, 80);
    talk.terminal.until("a whole last row", |screen| {
        screen.contains("asks before edits · ") && screen.contains("cache 0 %")
    });
    types(&mut talk);
    talk.model.open("slow");
    let screen = talk.answers("second half");
    for once in [
        "an earlier answer",
        "the first half",
        "> question",
        "asks before",
    ] {
        assert_eq!(screen.matches(once).count(), 1, "{once}\n{screen}");
    }
    talk.leaves();
}

#[test]
fn a_tiny_terminal_is_enough() {
    let home = home();
    let model = Model::playing(vec![Answer::text("seen")]).unwrap();
    let mut terminal = Terminal::of(&program(&home, &model), 4, 12);
    terminal.shows(">");
    terminal.press("hi\r");
    let wrote = || String::from_utf8_lossy(&terminal.bytes()).contains("seen");
    wait_until("answer", wrote);
    terminal.until("prompt", |screen| !screen.contains("esc"));
    terminal.press(CTRL_D);
    assert_eq!(terminal.ends(), 0);
    fine(&model);
}

#[test]
fn files_are_completed_and_go_along() {
    let home = home();
    home.write("project/src/main.rs", "fn main() {}\n");
    home.write("project/my notes.txt", "remember the milk\n");
    let model = Model::playing(vec![Answer::text("seen"), Answer::text("seen too")]).unwrap();
    let mut talk = Talk::at(home, model, &[]);
    talk.press("look at @mai");
    talk.shows("@src/main.rs");
    talk.press("\t");
    talk.shows("> look at @src/main.rs");
    talk.say("please");
    talk.answers("seen");
    assert!(prompt(&talk).contains("fn main() {}"), "{}", prompt(&talk));
    talk.press("and @note");
    talk.shows("my notes.txt");
    talk.press("\t");
    talk.shows("> and @\"my notes.txt\"");
    talk.say("");
    talk.answers("seen too");
    assert!(
        prompt(&talk).contains("remember the milk"),
        "{}",
        prompt(&talk)
    );
    talk.leaves();
}

#[test]
fn a_picture_is_sent_by_its_path() {
    const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let home = home();
    let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, DOT).unwrap();
    home.write("project/pic.png", &bytes);
    home.write("project/my pic.png", &bytes);
    let model = Model::playing(vec![
        Answer::text("a dot"),
        Answer::text("two dots"),
        Answer::text("three"),
    ])
    .unwrap();
    let mut talk = Talk::at(home, model, &[]);
    let shown = [
        "what is pic.png",
        "and 'my pic.png' too",
        "and my\\ pic.png",
    ];
    for (text, said) in shown.iter().zip(["a dot", "two dots", "three"]) {
        talk.say(text);
        talk.answers(said);
        let sent = talk.sent();
        let last = sent.as_array().unwrap().last().unwrap()["content"].clone();
        let pictures = last.as_array().unwrap().iter();
        let mut pictures = pictures.filter(|block| block["type"] == "image");
        assert_eq!(pictures.next().unwrap()["source"]["data"], DOT, "{text}");
        assert!(pictures.next().is_none());
        assert_eq!(prompt(&talk), *text);
    }
    talk.leaves();
}

#[test]
fn what_was_typed_before_comes_back_after_a_restart() {
    let mut talk = Talk::with(vec![Answer::text("seen")]);
    talk.say("the first words");
    talk.answers("seen");
    let (home, model) = talk.leaves();
    let mut talk = Talk::at(home, model, &[]);
    talk.press(UP);
    talk.shows("> the first words");
    talk.press("\x15");
    talk.leaves();
}

#[test]
fn what_is_typed_stands_in_the_other_clients_list_only_if_that_is_asked_for() {
    let mut talk = Talk::with(vec![Answer::text("one"), Answer::text("two")]);
    talk.say("not noted");
    talk.answers("one");
    let (home, model) = talk.leaves();
    let file = home.claude_dir().join("history.jsonl");
    assert!(!file.exists());
    let mut talk = Talk::at(home, model, &["--history"]);
    talk.say("noted");
    talk.answers("two");
    let text = std::fs::read_to_string(&file).unwrap();
    let line: Value = serde_json::from_str(text.trim_end()).unwrap();
    assert_eq!(line["display"], "noted");
    assert_eq!(line["pastedContents"], json!({}));
    assert_eq!(line["project"], talk.home.work_dir().display().to_string());
    assert!(line["timestamp"].is_u64() && line["sessionId"].is_string());
    talk.leaves();
}
