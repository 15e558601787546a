//! Acts in which tools are called.

use super::super::stage::{Play, Turn};
use super::{Draw, fixed};
use serde_json::{Value, json};
use unspool_testkit::model::{Answer, call};

pub fn read(draw: &mut Draw<'_>) -> Vec<Turn> {
    let name = draw.file();
    let path = draw.path(name);
    let whole = draw.read(name);
    let part = draw.call("Read", json!({"file_path": path, "offset": 1, "limit": 1}));
    let missing = draw.read("missing.txt");
    vec![draw.turn(vec![vec![whole], vec![part], vec![missing]])]
}

pub fn reads(draw: &mut Draw<'_>) -> Vec<Turn> {
    let all = [
        draw.read("a.txt"),
        draw.read("b.md"),
        draw.read("missing.txt"),
        draw.read("sub/deep.rs"),
    ];
    let count = 2 + draw.random.below(3) as usize;
    vec![draw.turn(vec![all[..count].to_vec()])]
}

pub fn image(draw: &mut Draw<'_>) -> Vec<Turn> {
    let (picture, other) = (draw.read("pixel.png"), draw.read("a.txt"));
    let step = match draw.random.chance(50) {
        true => vec![picture],
        false => vec![picture, other],
    };
    vec![draw.turn(vec![step])]
}

pub fn documents(draw: &mut Draw<'_>) -> Vec<Turn> {
    let (notes, paper) = (draw.read("notes.ipynb"), draw.read("paper.pdf"));
    vec![draw.turn(vec![vec![notes], vec![paper]])]
}

pub fn write(draw: &mut Draw<'_>) -> Vec<Turn> {
    let path = draw.path(&format!("new{}.txt", draw.calls));
    let first = draw.call(
        "Write",
        json!({"file_path": path, "content": "new\nfile\n"}),
    );
    let again = draw.call(
        "Write",
        json!({"file_path": path, "content": "newer\nfile\n"}),
    );
    vec![draw.turn(vec![vec![first], vec![again]])]
}

pub fn edit(draw: &mut Draw<'_>) -> Vec<Turn> {
    let path = draw.path("edited.txt");
    let first = draw.read("edited.txt");
    let one =
        json!({"file_path": path, "old_string": "line", "new_string": "line", "replace_all": true});
    let word = format!("one{}", draw.calls);
    let two =
        json!({"file_path": path, "old_string": "begin", "new_string": format!("begin {word}")});
    let three = json!({"file_path": path, "old_string": format!(" {word}"), "new_string": ""});
    let (one, two, three) = (
        draw.call("Edit", one),
        draw.call("Edit", two),
        draw.call("Edit", three),
    );
    vec![draw.turn(vec![vec![first], vec![one, two], vec![three]])]
}

pub fn misfit(draw: &mut Draw<'_>) -> Vec<Turn> {
    let path = draw.path("edited.txt");
    let first = draw.read("edited.txt");
    let absent = json!({"file_path": path, "old_string": "not there", "new_string": "x"});
    let many = json!({"file_path": path, "old_string": "line", "new_string": "x"});
    let (absent, many) = (draw.call("Edit", absent), draw.call("Edit", many));
    vec![draw.turn(vec![vec![first], vec![absent, many]])]
}

pub fn search(draw: &mut Draw<'_>) -> Vec<Turn> {
    let glob = draw.call("Glob", json!({"pattern": "**/*.txt"}));
    let none = draw.call("Glob", json!({"pattern": "*.none"}));
    let mode = *draw
        .random
        .pick(&["content", "files_with_matches", "count"]);
    let grep = draw.call(
        "Grep",
        json!({"pattern": "line", "output_mode": mode, "path": "."}),
    );
    let wrong = draw.call("Grep", json!({"pattern": "("}));
    vec![draw.turn(vec![vec![glob, grep], vec![none, wrong]])]
}

pub fn bash(draw: &mut Draw<'_>) -> Vec<Turn> {
    let one = draw.bash("echo out; echo err >&2");
    let two = draw.bash("cd sub && pwd");
    let three = draw.bash("true");
    let back = draw.bash("cd ..; printf 'no newline'");
    vec![draw.turn(vec![vec![one], vec![two, three], vec![back]])]
}

pub fn fails(draw: &mut Draw<'_>) -> Vec<Turn> {
    let one = draw.bash("echo out; echo err >&2; exit 3");
    let two = draw.bash("no-such-command-here");
    let three = draw.call("Bash", json!({"command": "sleep 5", "timeout": 100}));
    let step = match draw.random.chance(30) {
        true => vec![three],
        false => vec![two],
    };
    vec![draw.turn(vec![vec![one], step])]
}

pub fn much(draw: &mut Draw<'_>) -> Vec<Turn> {
    let one = draw.bash("seq 1 20000");
    let odd = draw.bash("printf '\\033[31mred\\033[0m \\000 \\377 \\r\\n'");
    vec![draw.turn(vec![vec![one], vec![odd]])]
}

pub fn background(draw: &mut Draw<'_>) -> Vec<Turn> {
    let command = *draw
        .random
        .pick(&["echo done", "sleep 0.2; echo late", "sleep 30"]);
    let begin = draw.call(
        "Bash",
        json!({"command": command, "run_in_background": true}),
    );
    let (output, stop) = (draw.id(), draw.id());
    let looks = move |request: &unspool_testkit::api::Request| {
        let input = json!({"task_id": task(&request.body), "block": false});
        Answer::blocks(&[call(&output, "TaskOutput", input)])
    };
    let stops = move |request: &unspool_testkit::api::Request| {
        let input = json!({"task_id": task(&request.body)});
        Answer::blocks(&[call(&stop, "TaskStop", input)])
    };
    let end = Answer::text(draw.say());
    let plays: Vec<Play> = vec![
        fixed(Answer::blocks(&[begin])),
        Box::new(looks),
        Box::new(stops),
        fixed(end),
    ];
    vec![draw.playing(plays)]
}

fn task(body: &Value) -> String {
    let told = body["messages"].to_string();
    let mark = "background with ID: ";
    let rest = told.rfind(mark).map(|at| &told[at + mark.len()..]);
    let id = rest.and_then(|rest| {
        rest.split(|c: char| !c.is_alphanumeric() && c != '_')
            .next()
    });
    id.unwrap_or("unknown").to_owned()
}

pub fn tasks(draw: &mut Draw<'_>) -> Vec<Turn> {
    let create = |draw: &mut Draw<'_>, what: &str| {
        draw.call("TaskCreate", json!({"subject": what, "description": what}))
    };
    let (one, two) = (create(draw, "Do it"), create(draw, "Test it"));
    let update = draw.call(
        "TaskUpdate",
        json!({"taskId": "1", "status": "in_progress"}),
    );
    let absent = draw.call("TaskUpdate", json!({"taskId": "99", "status": "completed"}));
    let list = draw.call("TaskList", json!({}));
    vec![draw.turn(vec![vec![one, two], vec![update, absent], vec![list]])]
}

pub fn todos(draw: &mut Draw<'_>) -> Vec<Turn> {
    let todo = json!({"content": "Do it", "status": "in_progress", "activeForm": "Doing it"});
    let step = draw.call("TodoWrite", json!({"todos": [todo]}));
    vec![draw.turn(vec![vec![step]])]
}

pub fn agent(draw: &mut Draw<'_>, name: &str) -> Value {
    draw.call(
        name,
        json!({"description": "look around", "prompt": "Look around and report.", "subagent_type": "general-purpose"}),
    )
}

pub fn agents(draw: &mut Draw<'_>) -> Vec<Turn> {
    let all = [
        agent(draw, "Agent"),
        agent(draw, "Task"),
        agent(draw, "Agent"),
    ];
    let count = 1 + draw.random.below(3) as usize;
    vec![draw.turn(vec![all[..count].to_vec()])]
}

pub fn mixed(draw: &mut Draw<'_>) -> Vec<Turn> {
    let path = draw.path(&format!("mixed{}.txt", draw.calls));
    let mut step = vec![
        draw.read("a.txt"),
        draw.call("Write", json!({"file_path": path, "content": "mixed\n"})),
        draw.bash("echo one; exit 1"),
        agent(draw, "Agent"),
        draw.call("Glob", json!({"pattern": "*"})),
        draw.call("NoSuchTool", json!({})),
    ];
    let first = draw.random.below(step.len() as u64) as usize;
    step.rotate_left(first);
    vec![draw.turn(vec![step])]
}

pub fn denied(draw: &mut Draw<'_>) -> Vec<Turn> {
    let path = draw.path("denied.txt");
    let one = draw.call("Write", json!({"file_path": path, "content": "x"}));
    let two = draw.bash("touch denied");
    let ok = draw.read("a.txt");
    let mut turn = draw.turn(vec![vec![ok, one, two]]);
    turn.args = match draw.random.below(3) {
        0 => vec![],
        1 => vec!["--permission-mode", "dontAsk"],
        _ => vec![
            "--disallowedTools",
            "Bash(touch *)",
            "--disallowedTools",
            "Write",
        ],
    };
    vec![turn]
}

pub fn plan(draw: &mut Draw<'_>) -> Vec<Turn> {
    let path = draw.path("planned.txt");
    let one = draw.call("Write", json!({"file_path": path, "content": "x"}));
    let out = draw.call("ExitPlanMode", json!({"plan": "Do it at once."}));
    let mut turn = draw.turn(vec![vec![one], vec![out]]);
    turn.args = vec!["--permission-mode", "plan"];
    vec![turn]
}

pub fn unknown(draw: &mut Draw<'_>) -> Vec<Turn> {
    let one = draw.call("NoSuchTool", json!({"a": 1}));
    let two = draw.call("mcp__none__tool", json!({}));
    vec![draw.turn(vec![vec![one], vec![two]])]
}

pub fn bad(draw: &mut Draw<'_>) -> Vec<Turn> {
    let one = draw.call("Read", json!({"path": "a.txt"}));
    let two = draw.call("Read", json!("{\"file_path\":"));
    let three = draw.call("Bash", json!({"command": 7, "timeout": "long"}));
    vec![draw.turn(vec![vec![one, two], vec![three]])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_task_is_the_one_that_was_begun_last() {
        let told = |id: &str| format!("Command running in background with ID: {id}. Output is");
        let body = json!({"messages": [told("b1"), told("b2x")]});
        assert_eq!(task(&body), "b2x");
        assert_eq!(task(&json!({})), "unknown");
    }
}
