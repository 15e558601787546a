//! `/rewind`: files, the conversation, or both.

use super::*;

/// A conversation in which a file was written by one prompt and changed by the next.
fn changed() -> Talk {
    let home = home();
    let path = home.work_dir().join("a.txt").display().to_string();
    let write = |id: &str, text: &str| {
        Answer::blocks(&[call(
            id,
            "Write",
            json!({"file_path": path, "content": text}),
        )])
    };
    let model = Model::playing(vec![
        write("toolu_1", "old\n"),
        Answer::text("wrote it"),
        write("toolu_2", "new\n"),
        Answer::text("changed it"),
        Answer::text("answer after"),
    ])
    .unwrap();
    let talk = Talk::starting(home, model, &["--permission-mode", "acceptEdits"]);
    talk.shows("accept edits on");
    let mut talk = talk;
    talk.say("write the file");
    talk.answers("wrote it");
    talk.say("change the file");
    talk.answers("changed it");
    talk.is("a.txt", "new\n");
    talk
}

/// Opens the list of prompts, takes the last one and then this choice.
fn go_back(talk: &mut Talk, downs: usize) {
    talk.say("/rewind");
    talk.shows("Rewind to before which prompt?");
    talk.press("\r");
    talk.shows("Rewind what?");
    talk.press(&DOWN.repeat(downs));
    talk.press("\r");
}

fn after(mut talk: Talk) -> String {
    talk.say("say this instead");
    talk.answers("answer after");
    let sent = talk.sent().to_string();
    assert!(sent.contains("write the file") && sent.contains("say this instead"));
    talk.leaves();
    sent
}

#[test]
fn both_go_back_and_the_prompt_is_there_to_be_changed() {
    let mut talk = changed();
    go_back(&mut talk, 0);
    talk.shows("rewound the conversation and the files to before this prompt");
    talk.shows("> change the file");
    talk.is("a.txt", "old\n");
    talk.press("\x15");
    let sent = after(talk);
    assert!(!sent.contains("change the file"), "{sent}");
}

#[test]
fn the_conversation_alone_goes_back() {
    let mut talk = changed();
    go_back(&mut talk, 1);
    talk.shows("rewound the conversation to before this prompt");
    talk.shows("> change the file");
    talk.is("a.txt", "new\n");
    talk.press("\x15");
    let sent = after(talk);
    assert!(!sent.contains("change the file"), "{sent}");
}

#[test]
fn the_files_alone_go_back() {
    let mut talk = changed();
    go_back(&mut talk, 2);
    talk.shows("rewound the files to before this prompt");
    talk.is("a.txt", "old\n");
    let sent = after(talk);
    assert!(sent.contains("change the file"), "{sent}");
}

#[test]
fn esc_twice_asks_where_to_and_esc_stays() {
    let mut talk = changed();
    talk.press(ESC);
    talk.shows("esc again to rewind");
    talk.press(ESC);
    let screen = talk.shows("Rewind to before which prompt?");
    assert!(screen.contains("write the file"), "{screen}");
    talk.press(ESC);
    talk.shows("accept edits on");
    talk.is("a.txt", "new\n");
    talk.leaves();
}

#[test]
fn a_file_that_was_not_there_is_gone_again() {
    let mut talk = changed();
    talk.say("/rewind");
    talk.shows("Rewind to before which prompt?");
    talk.press(DOWN);
    talk.press("\r");
    talk.shows("Rewind what?");
    talk.press("\r");
    talk.shows("rewound the conversation and the files to before this prompt");
    assert!(!talk.file("a.txt").exists());
    talk.press("\x15");
    talk.leaves();
}
