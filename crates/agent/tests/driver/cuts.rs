//! Answers that are cut off, anywhere.

use serde_json::json;
use unspool_agent::permission::PermissionMode;
use unspool_testkit::model::{Answer as Said, Model, call, text};

use crate::desk::Desk;

#[test]
fn cut_at_any_byte_no_call_runs_twice_and_the_session_goes_on() {
    let blocks = || {
        let input = json!({"command": "echo ran >> ran"});
        [text("I do it."), call("toolu_1", "Bash", input)]
    };
    let length = Said::blocks(&blocks()).len();
    // `api.rs` cuts at every byte; here some of them are enough.
    for cut in (1..length).step_by(7) {
        let answers = vec![Said::blocks(&blocks()).cut(cut), Said::text("done")];
        let model = Model::playing(answers).unwrap();
        let desk = Desk::with(&model, "{}", |setup| {
            setup.policy.set_mode(PermissionMode::Bypass).unwrap();
        });
        desk.say("do it");
        desk.ended();
        desk.say("and now");
        assert_eq!(desk.ended().text, "done", "cut at {cut}");
        assert_eq!(model.refusals(), [""; 0], "cut at {cut}");
        let ran = std::fs::read_to_string(desk.file("ran")).unwrap_or_default();
        assert!(ran.lines().count() <= 1, "cut at {cut}: {ran}");
    }
}
