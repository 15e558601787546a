//! `chat --resume` on a terminal.
#![cfg(unix)]

use unspool_testkit::model::{Answer, Model};

use crate::chat::{command, fine, program};
use crate::home;
use crate::tty::Terminal;

#[test]
fn a_past_longer_than_the_screen_does_not_stand_in_the_way() {
    let home = home();
    let long: String = (0..200).map(|at| format!("line {at}\n\n")).collect();
    let model = Model::playing(vec![Answer::text(&long), Answer::text("gone on")]).unwrap();
    let output = command(&home, &model, &["tell me much"]).output().unwrap();
    assert!(output.status.success());
    let mut go_on = program(&home, &model);
    go_on.arg("--continue");
    let mut terminal = Terminal::of(&go_on, 24, 80);
    terminal.shows("asks before edits");
    terminal.press("and now\r");
    terminal.shows("gone on");
    terminal.press("\x04");
    assert_eq!(terminal.ends(), 0);
    fine(&model);
}
