//! Acts with somebody or something around the conversation: people on a terminal, hooks, servers,
//! sub-agents in the background.

use super::super::stage::{Key, Turn};
use super::{Draw, fixed};
use serde_json::{Value, json};
use unspool_testkit::model::{Answer, Step};

/// What a terminal shows when it waits for a prompt in the usual mode.
const READY: &str = "asks before edits";
const LEAVE: &str = "\x04";

/// Two prompts at once: the second waits until the model can hear it.
pub fn waits(draw: &mut Draw<'_>) -> Vec<Turn> {
    let step = draw.read("a.txt");
    let mut turn = draw.turn(vec![vec![step]]);
    let said = |words: &str| json!({"type": "user", "message": {"role": "user", "content": words}});
    turn.stream = vec![said("the first thing"), said("and another thing")];
    vec![turn]
}

pub fn servers(draw: &mut Draw<'_>) -> Vec<Turn> {
    let echo = draw.call("mcp__e__echo", json!({"text": "hello 🙂"}));
    let fails = draw.call("mcp__e__fails", json!({}));
    let other = draw.read("a.txt");
    let mut turn = draw.turn(vec![vec![echo.clone(), other], vec![fails]]);
    turn.args.extend(["--mcp-config", "servers.json"]);
    vec![turn]
}

/// Hooks that add words at every moment, and one that wants the turn to go on.
pub fn hooks(draw: &mut Draw<'_>) -> Vec<Turn> {
    let (one, two) = (draw.read("a.txt"), draw.bash("echo hooked"));
    let mut turn = draw.turn(vec![vec![one], vec![two]]);
    turn.args.extend(["--settings", "hooks.json"]);
    vec![turn]
}

/// A hook that forbids one call and lets the other through.
pub fn forbidden(draw: &mut Draw<'_>) -> Vec<Turn> {
    let (no, yes) = (draw.bash("echo forbidden"), draw.bash("echo allowed"));
    let mut turn = draw.turn(vec![vec![no, yes]]);
    turn.args.extend(["--settings", "hooks.json"]);
    vec![turn]
}

/// A turn on a terminal.
fn typed(draw: &mut Draw<'_>, answers: Vec<Answer>, keys: Vec<Key>) -> Vec<Turn> {
    let mut turn = draw.playing(answers.into_iter().map(fixed).collect());
    turn.args.clear();
    turn.typed = keys;
    vec![turn]
}

/// Two prompts, a permission given and one refused with a reason.
pub fn talk(draw: &mut Draw<'_>) -> Vec<Turn> {
    let mark = *draw.calls;
    let (one, two) = (
        draw.bash(&format!("touch typed{mark}")),
        draw.bash(&format!("touch refused{mark}")),
    );
    let answers = vec![
        Answer::blocks(&[one]),
        Answer::text("The first is made."),
        Answer::blocks(&[two]),
        Answer::text("Then not."),
    ];
    let keys = vec![
        Key::Shows(READY),
        Key::Press("make one\r"),
        Key::Shows("enter to select"),
        Key::Press("y"),
        Key::Shows("The first is made."),
        Key::Press("and another\r"),
        Key::Shows("enter to select"),
        Key::Press("n"),
        Key::Shows("enter to send"),
        Key::Press("not that one\r"),
        Key::Shows("Then not."),
        Key::Press(LEAVE),
    ];
    typed(draw, answers, keys)
}

/// An answer that somebody stops with Esc, and another prompt.
pub fn stopped(draw: &mut Draw<'_>) -> Vec<Turn> {
    let slow = Answer::text("This is not said to its end.").before(4, Step::Gate(draw.gate));
    let keys = vec![
        Key::Shows(READY),
        Key::Press("begin\r"),
        Key::Gate,
        Key::Shows("This is"),
        Key::Press("\x1b"),
        Key::Shows("interrupted; say"),
        Key::Press("go on\r"),
        Key::Shows("Gone on with."),
        Key::Press(LEAVE),
    ];
    typed(draw, vec![slow, Answer::text("Gone on with.")], keys)
}

pub fn question(draw: &mut Draw<'_>) -> Vec<Turn> {
    let option = |label: &str| json!({"label": label, "description": format!("take {label}")});
    let ask = |question: &str, header: &str, several: bool| -> Value {
        json!({"question": question, "header": header, "multiSelect": several,
               "options": [option("one"), option("two")]})
    };
    let input =
        json!({"questions": [ask("Which one?", "Which", false), ask("Which ones?", "All", true)]});
    let step = draw.call("AskUserQuestion", input);
    let answers = vec![Answer::blocks(&[step]), Answer::text("So be it then.")];
    let keys = vec![
        Key::Shows(READY),
        Key::Press("ask me\r"),
        Key::Shows("Which one?"),
        Key::Press("2"),
        Key::Shows("Which ones?"),
        Key::Press("12\r"),
        Key::Shows("So be it then."),
        Key::Press(LEAVE),
    ];
    typed(draw, answers, keys)
}

pub fn plan(draw: &mut Draw<'_>) -> Vec<Turn> {
    let path = draw.path(&format!("planned{}.txt", draw.calls));
    let plan = draw.call("ExitPlanMode", json!({"plan": "# Steps\n\n1. Write it."}));
    let write = draw.call(
        "Write",
        json!({"file_path": path, "content": "as planned\n"}),
    );
    let answers = vec![
        Answer::blocks(&[plan]),
        Answer::blocks(&[write]),
        Answer::text("Written as planned."),
    ];
    let keys = vec![
        Key::Shows("plan mode on"),
        Key::Press("plan it\r"),
        Key::Shows("The plan"),
        Key::Press("1"),
        Key::Shows("Written as planned."),
        Key::Press(LEAVE),
    ];
    let mut turns = typed(draw, answers, keys);
    turns[0].args = vec!["--permission-mode", "plan"];
    turns
}

/// Sub-agents whose report comes later.
pub fn agents(draw: &mut Draw<'_>) -> Vec<Turn> {
    let input = json!({"description": "look around", "prompt": "Look around and report.",
        "subagent_type": "general-purpose", "run_in_background": true});
    let (one, two) = (draw.call("Agent", input.clone()), draw.call("Agent", input));
    let wait = draw.bash("sleep 0.5");
    let calls = match draw.random.chance(50) {
        true => vec![one],
        false => vec![one, two],
    };
    vec![draw.turn(vec![calls, vec![wait]])]
}
