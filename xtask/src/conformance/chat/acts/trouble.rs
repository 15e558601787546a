//! Acts in which something goes wrong, is stopped, or becomes too long.

use super::super::stage::{Meanwhile, Turn};
use super::{Draw, FREE, SIGNALS, fixed};
use serde_json::json;
use std::time::Duration;
use unspool_testkit::model::{Answer, Step, text, thinking};

fn failure(draw: &mut Draw<'_>) -> Answer {
    let (status, kind) = *draw.random.pick(&[
        ("529 Overloaded", "overloaded_error"),
        ("429 Too Many Requests", "rate_limit_error"),
        ("500 Internal Server Error", "api_error"),
    ]);
    Answer::fails(status, kind, "not now").header("retry-after-ms", "20")
}

pub fn busy(draw: &mut Draw<'_>) -> Vec<Turn> {
    let step = draw.read("a.txt");
    let answers = vec![
        failure(draw),
        failure(draw),
        Answer::blocks(&[step]),
        failure(draw),
        Answer::text("At last."),
    ];
    draw.answers(answers)
}

pub fn broken(draw: &mut Draw<'_>) -> Vec<Turn> {
    let answer = match draw.random.below(3) {
        0 => Answer::fails(
            "401 Unauthorized",
            "authentication_error",
            "invalid x-api-key",
        ),
        1 => Answer::fails("400 Bad Request", "invalid_request_error", "odd"),
        _ => Answer::fails("404 Not Found", "not_found_error", "model: x"),
    };
    let step = draw.read("a.txt");
    let mut answers = vec![answer];
    if draw.random.chance(50) {
        answers.insert(0, Answer::blocks(&[text("I look."), step]));
    }
    let mut turns = draw.answers(answers);
    turns[0].codes = &[1];
    turns
}

pub fn event(draw: &mut Draw<'_>) -> Vec<Turn> {
    let error =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let failing = Answer::text("never heard").without_last(4);
    let failing = failing.before(99, Step::Send(format!("event: error\ndata: {error}\n\n")));
    draw.answers(vec![failing, Answer::text("heard")])
}

pub fn cut_early(draw: &mut Draw<'_>) -> Vec<Turn> {
    let answer = Answer::text("The whole of it.");
    let bytes = 1 + draw.random.below(answer.len() as u64 / 2) as usize;
    draw.answers(vec![answer.clone().cut(bytes), answer])
}

pub fn cut_late(draw: &mut Draw<'_>) -> Vec<Turn> {
    let step = draw.read("a.txt");
    let blocks = [thinking("Hm."), text("A beginning."), step];
    let left = 2 + draw.random.below(6) as usize;
    let begun = Answer::blocks(&blocks).without_last(left);
    let begun = begun.before(99, Step::Wait(Duration::from_millis(20)));
    let mut turns = draw.answers(vec![begun, Answer::text("And an end.")]);
    turns[0].codes = &[0, 1];
    turns
}

pub fn cut_anywhere(draw: &mut Draw<'_>) -> Vec<Turn> {
    let (one, two) = (draw.read("a.txt"), draw.read("b.md"));
    let answer = Answer::blocks(&[thinking("Hm."), text("Both."), one, two]);
    let bytes = 1 + draw.random.below(answer.len() as u64 - 1) as usize;
    let mut turns = draw.answers(vec![answer.cut(bytes), Answer::text("Gone on.")]);
    turns[0].codes = &[0, 1];
    turns
}

pub fn pieces(draw: &mut Draw<'_>) -> Vec<Turn> {
    let size = 1 + draw.random.below(7) as usize;
    let step = draw.read("c d.txt");
    let words = Answer::blocks(&[thinking("ü"), text("日本 🙂"), step]);
    draw.answers(vec![
        words.pieces(size),
        Answer::text("Ende gut.").pieces(size),
    ])
}

pub fn gated(draw: &mut Draw<'_>, signal: &'static str, code: i32) -> Vec<Turn> {
    let (first, one, two) = (draw.read("a.txt"), draw.read("b.md"), draw.bash("echo hi"));
    let blocks = [
        thinking("Hm."),
        text("Part one."),
        one,
        two,
        text("Part two."),
    ];
    let answer = Answer::blocks(&blocks);
    let at = draw.random.below(answer.steps.len() as u64) as usize;
    let mut plays = vec![fixed(answer.before(at, Step::Gate(draw.gate)))];
    if draw.random.chance(50) {
        plays.insert(0, fixed(Answer::blocks(&[first])));
    }
    let mut turn = draw.playing(plays);
    turn.meanwhile = Meanwhile::AtGate(signal);
    turn.codes = SIGNALS(code);
    vec![turn]
}

pub fn marked(draw: &mut Draw<'_>, signal: &'static str, code: i32) -> Vec<Turn> {
    let step = draw.bash("echo said; touch mark; sleep 47.25");
    let mut turn = draw.turn(vec![vec![step]]);
    turn.meanwhile = Meanwhile::AtMark(signal);
    turn.codes = SIGNALS(code);
    vec![turn]
}

pub fn beside(draw: &mut Draw<'_>, signal: &'static str, code: i32) -> Vec<Turn> {
    let step = vec![
        draw.read("a.txt"),
        draw.read("b.md"),
        draw.bash("touch mark; sleep 47.25"),
        draw.read("c d.txt"),
        draw.bash("echo never"),
    ];
    let mut turn = draw.turn(vec![step]);
    turn.meanwhile = Meanwhile::AtMark(signal);
    turn.codes = SIGNALS(code);
    vec![turn]
}

pub fn compaction(draw: &mut Draw<'_>) -> Vec<Turn> {
    let mut turns = draw.answers(vec![Answer::counted(&[text("That was much.")], 195_000)]);
    let step = draw.read("b.md");
    turns.extend(draw.answers(vec![
        Answer::text("<summary>What was said so far.</summary>"),
        Answer::blocks(&[step]),
        Answer::text("Gone on after the summary."),
    ]));
    turns
}

pub fn full(draw: &mut Draw<'_>) -> Vec<Turn> {
    let (one, two) = (draw.read("a.txt"), draw.read("b.md"));
    draw.answers(vec![
        Answer::counted(&[text("Both."), one, two], 195_000),
        Answer::text("A summary in the middle of a turn."),
        Answer::text("Gone on in the same turn."),
    ])
}

pub fn fork(draw: &mut Draw<'_>) -> Vec<Turn> {
    let step = draw.read("a.txt");
    let mut first = draw.turn(vec![vec![step]]);
    let mut second = draw.turn(vec![]);
    first.args = FREE.to_vec();
    second.args.push("--fork-session");
    vec![first, second]
}
