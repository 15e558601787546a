//! From one session to another: `/clear`, `/resume`.

use super::*;

#[test]
fn keys_right_behind_clear_are_for_the_new_session() {
    let mut talk = Talk::with(vec![Answer::text("one"), Answer::text("two")]);
    talk.say("first session");
    talk.answers("one");
    talk.press("/clear\rsecond session");
    talk.shows("> second session");
    talk.say("");
    talk.answers("two");
    let sent = talk.sent().to_string();
    assert!(!sent.contains("first session"), "{sent}");
    let (home, _) = talk.leaves();
    assert_eq!(transcripts(&home).len(), 2);
}

#[test]
fn no_key_is_lost_however_often_it_is_cleared() {
    let mut talk = Talk::with(vec![]);
    for round in 0..5 {
        talk.press(&format!("/clear\rround{round}"));
        talk.shows(&format!("> round{round}"));
        talk.press("\x15");
    }
    // A whole prompt behind it is said there.
    talk.press("/clear\rsay it\r");
    talk.answers("done");
    assert_eq!(talk.model.requests().len(), 1);
    talk.leaves();
}

fn with_others() -> Talk {
    let home = home();
    let ids = [
        "5e551000-0000-4000-8000-000000000001",
        "5e551000-0000-4000-8000-000000000002",
    ];
    home.session(
        "/home/dev/x",
        ids[0],
        "you: mend the roof\nclaude: the velvet hammer is in the shed",
    );
    home.session(
        "/home/dev/y",
        ids[1],
        "you: paint the wall\nclaude: in blue",
    );
    Talk::at(
        home,
        Model::playing(vec![Answer::text("gone on")]).unwrap(),
        &[],
    )
}

#[test]
fn a_session_is_found_by_what_was_said_in_it_and_gone_on_with() {
    let mut talk = with_others();
    talk.say("/resume");
    let screen = talk.shows("Resume which session?");
    assert!(screen.contains("mend the roof") && screen.contains("paint the wall"));
    talk.press("velvet hammer");
    let screen = talk.terminal.until("the session alone", |screen| {
        screen.contains("mend the roof")
            && !screen.contains("paint the wall")
            && !screen.contains("searching conversations")
    });
    assert!(
        screen.contains("the velvet hammer is in the shed"),
        "{screen}"
    );
    talk.press("\r");
    talk.shows("asks before edits");
    talk.say("where is it");
    talk.answers("gone on");
    let sent = talk.sent().to_string();
    assert!(sent.contains("velvet hammer"), "{sent}");
    talk.leaves();
}

#[test]
fn a_session_is_found_by_its_title_and_esc_stays_here() {
    let mut talk = with_others();
    talk.say("/resume");
    talk.shows("Resume which session?");
    talk.press("paint");
    talk.terminal.until("one session", |screen| {
        screen.contains("paint the wall") && !screen.contains("mend the roof")
    });
    talk.press(ESC);
    talk.shows("asks before edits");
    talk.say("here");
    talk.answers("gone on");
    assert!(!talk.sent().to_string().contains("paint"));
    talk.leaves();
}
