//! What happens in the conversations: one act is a turn or two.

use super::stage::{Meanwhile, Play, Turn};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use unspool_testkit::model::{Answer, Step, call, text, thinking};
use unspool_testkit::random::Random;

/// What an act may use.
pub struct Draw<'a> {
    /// Chance.
    pub random: &'a mut Random,
    /// Where the files are.
    pub cwd: &'a Path,
    /// The gate of the first turn.
    pub gate: &'static str,
    /// So many calls were made.
    pub calls: &'a mut usize,
}

/// One thing that can happen.
pub struct Act {
    /// A short name, for the table.
    pub name: &'static str,
    /// The turns of it.
    pub turns: fn(&mut Draw<'_>) -> Vec<Turn>,
}

const fn act(name: &'static str, turns: fn(&mut Draw<'_>) -> Vec<Turn>) -> Act {
    Act { name, turns }
}

/// Everything that can happen.
pub const ALL: &[Act] = &[
    act("words", words),
    act("thinking", thoughts),
    act("hidden thinking", hidden),
    act("Read", read),
    act("Read in parallel", reads),
    act("Read of an image", image),
    act("Read of a notebook and a PDF", documents),
    act("image in the prompt", shown),
    act("Write", write),
    act("Edit", edit),
    act("Edit that fails", misfit),
    act("Glob and Grep", search),
    act("Bash", bash),
    act("Bash that fails", fails),
    act("Bash with much output", much),
    act("Bash in the background", background),
    act("TaskCreate, TaskUpdate, TaskList", tasks),
    act("TodoWrite", todos),
    act("sub-agents in parallel", agents),
    act("all kinds in parallel", mixed),
    act("denied", denied),
    act("plan mode", plan),
    act("unknown tool", unknown),
    act("bad input", bad),
    act("server tool", server),
    act("pause", pause),
    act("refusal", refusal),
    act("too few tokens", short),
    act("limit of turns", limit),
    act("busy API", busy),
    act("API error", broken),
    act("error in the stream", event),
    act("cut before a block", cut_early),
    act("cut after a block", cut_late),
    act("cut at any byte", cut_anywhere),
    act("byte by byte", pieces),
    act("interrupt in an answer", |draw| gated(draw, "-INT", 130)),
    act("interrupt in a tool", |draw| marked(draw, "-INT", 130)),
    act("interrupt with parallel tools", |draw| {
        beside(draw, "-INT", 130)
    }),
    act("TERM in an answer", |draw| gated(draw, "-TERM", 143)),
    act("kill in an answer", |draw| gated(draw, "-KILL", 137)),
    act("kill in a tool", |draw| marked(draw, "-KILL", 137)),
    act("kill with parallel tools", |draw| {
        beside(draw, "-KILL", 137)
    }),
    act("compaction", compaction),
    act("compaction in a turn", full),
    act("fork", fork),
];

const FREE: &[&str] = &["--permission-mode", "bypassPermissions"];
const SIGNALS: fn(i32) -> &'static [i32] = |code| match code {
    130 => &[130],
    143 => &[143],
    _ => &[137],
};
/// The smallest picture there is: one pixel.
pub const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

impl Draw<'_> {
    fn id(&mut self) -> String {
        *self.calls += 1;
        format!("toolu_{:04}", self.calls)
    }

    fn call(&mut self, name: &str, input: Value) -> Value {
        let id = self.id();
        call(&id, name, input)
    }

    fn path(&self, name: &str) -> String {
        self.cwd.join(name).to_string_lossy().into_owned()
    }

    fn read(&mut self, name: &str) -> Value {
        let path = self.path(name);
        self.call("Read", json!({"file_path": path}))
    }

    fn bash(&mut self, command: &str) -> Value {
        let input = json!({"command": command, "description": "Runs a command"});
        self.call("Bash", input)
    }

    fn file(&mut self) -> &'static str {
        let names = ["a.txt", "b.md", "c d.txt", "sub/deep.rs"];
        names[self.random.below(4) as usize]
    }

    fn say(&mut self) -> &'static str {
        let all = [
            "Well, that is how it is.",
            "日本語で答えます 🙂",
            "A \"quoted\" answer with \\ and\ttabs\nand lines.\n",
            "```rust\nfn main() {}\n```",
            " leading space and trailing space ",
            "<b>not markup</b> & more",
        ];
        all[self.random.below(all.len() as u64) as usize]
    }

    fn prompt(&mut self) -> String {
        let say = self.random.pick(&[
            "please look at it",
            "und weiter? 🙂",
            "several\nlines\n\nof words",
            "what about \"quotes\" and \\ ?",
            "<angle> & ampersand",
            "a rather long prompt: ",
        ]);
        let more = match say.ends_with(": ") {
            true => "words and ".repeat(300) + "an end",
            false => String::new(),
        };
        format!("{say}{more}")
    }

    /// Blocks, now and then with thinking or words ahead.
    fn with_words(&mut self, mut blocks: Vec<Value>) -> Vec<Value> {
        if self.random.chance(40) {
            blocks.insert(0, text("First I look."));
        }
        if self.random.chance(40) {
            blocks.insert(0, thinking("Let me see."));
        }
        blocks
    }

    /// A turn in which the model makes these calls, step by step, and then answers.
    fn turn(&mut self, steps: Vec<Vec<Value>>) -> Turn {
        let mut plays: Vec<Play> = Vec::new();
        for step in steps {
            let blocks = self.with_words(step);
            plays.push(fixed(Answer::blocks(&blocks)));
        }
        plays.push(fixed(Answer::text(self.say())));
        self.playing(plays)
    }

    fn playing(&mut self, plays: Vec<Play>) -> Turn {
        Turn {
            prompt: self.prompt(),
            stream: None,
            args: FREE.to_vec(),
            plays,
            meanwhile: Meanwhile::Nothing,
            codes: &[0],
        }
    }

    fn answers(&mut self, answers: Vec<Answer>) -> Vec<Turn> {
        vec![self.playing(answers.into_iter().map(fixed).collect())]
    }
}

fn fixed(answer: Answer) -> Play {
    Box::new(move |_| answer.clone())
}

fn words(draw: &mut Draw<'_>) -> Vec<Turn> {
    let blocks = [text(draw.say()), text("And another thing.")];
    let some = 1 + draw.random.below(2) as usize;
    draw.answers(vec![Answer::blocks(&blocks[..some])])
}

fn thoughts(draw: &mut Draw<'_>) -> Vec<Turn> {
    let blocks = [thinking("First this."), text(draw.say())];
    draw.answers(vec![Answer::blocks(&blocks)])
}

fn hidden(draw: &mut Draw<'_>) -> Vec<Turn> {
    let hidden = json!({"type": "redacted_thinking", "data": "aGlkZGVu"});
    let calls = draw.read("a.txt");
    draw.answers(vec![
        Answer::blocks(&[hidden.clone(), thinking("Then this."), calls]),
        Answer::blocks(&[hidden, text("I thought about it.")]),
    ])
}

fn read(draw: &mut Draw<'_>) -> Vec<Turn> {
    let name = draw.file();
    let path = draw.path(name);
    let whole = draw.read(name);
    let part = draw.call("Read", json!({"file_path": path, "offset": 1, "limit": 1}));
    let missing = draw.read("missing.txt");
    vec![draw.turn(vec![vec![whole], vec![part], vec![missing]])]
}

fn reads(draw: &mut Draw<'_>) -> Vec<Turn> {
    let all = [
        draw.read("a.txt"),
        draw.read("b.md"),
        draw.read("missing.txt"),
        draw.read("sub/deep.rs"),
    ];
    let count = 2 + draw.random.below(3) as usize;
    vec![draw.turn(vec![all[..count].to_vec()])]
}

fn image(draw: &mut Draw<'_>) -> Vec<Turn> {
    let (picture, other) = (draw.read("pixel.png"), draw.read("a.txt"));
    let step = match draw.random.chance(50) {
        true => vec![picture],
        false => vec![picture, other],
    };
    vec![draw.turn(vec![step])]
}

fn documents(draw: &mut Draw<'_>) -> Vec<Turn> {
    let (notes, paper) = (draw.read("notes.ipynb"), draw.read("paper.pdf"));
    vec![draw.turn(vec![vec![notes], vec![paper]])]
}

fn shown(draw: &mut Draw<'_>) -> Vec<Turn> {
    let source = json!({"type": "base64", "media_type": "image/png", "data": PNG});
    let content =
        json!([{"type": "text", "text": "what is this?"}, {"type": "image", "source": source}]);
    let mut turn = draw.turn(vec![]);
    turn.stream = Some(json!({"type": "user", "message": {"role": "user", "content": content}}));
    vec![turn]
}

fn write(draw: &mut Draw<'_>) -> Vec<Turn> {
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

fn edit(draw: &mut Draw<'_>) -> Vec<Turn> {
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

fn misfit(draw: &mut Draw<'_>) -> Vec<Turn> {
    let path = draw.path("edited.txt");
    let first = draw.read("edited.txt");
    let absent = json!({"file_path": path, "old_string": "not there", "new_string": "x"});
    let many = json!({"file_path": path, "old_string": "line", "new_string": "x"});
    let (absent, many) = (draw.call("Edit", absent), draw.call("Edit", many));
    vec![draw.turn(vec![vec![first], vec![absent, many]])]
}

fn search(draw: &mut Draw<'_>) -> Vec<Turn> {
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

fn bash(draw: &mut Draw<'_>) -> Vec<Turn> {
    let one = draw.bash("echo out; echo err >&2");
    let two = draw.bash("cd sub && pwd");
    let three = draw.bash("true");
    let back = draw.bash("cd ..; printf 'no newline'");
    vec![draw.turn(vec![vec![one], vec![two, three], vec![back]])]
}

fn fails(draw: &mut Draw<'_>) -> Vec<Turn> {
    let one = draw.bash("echo out; echo err >&2; exit 3");
    let two = draw.bash("no-such-command-here");
    let three = draw.call("Bash", json!({"command": "sleep 5", "timeout": 100}));
    let step = match draw.random.chance(30) {
        true => vec![three],
        false => vec![two],
    };
    vec![draw.turn(vec![vec![one], step])]
}

fn much(draw: &mut Draw<'_>) -> Vec<Turn> {
    let one = draw.bash("seq 1 20000");
    let odd = draw.bash("printf '\\033[31mred\\033[0m \\000 \\377 \\r\\n'");
    vec![draw.turn(vec![vec![one], vec![odd]])]
}

fn background(draw: &mut Draw<'_>) -> Vec<Turn> {
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

/// The id of the last task that was begun, as the model was told.
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

fn tasks(draw: &mut Draw<'_>) -> Vec<Turn> {
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

fn todos(draw: &mut Draw<'_>) -> Vec<Turn> {
    let todo = json!({"content": "Do it", "status": "in_progress", "activeForm": "Doing it"});
    let step = draw.call("TodoWrite", json!({"todos": [todo]}));
    vec![draw.turn(vec![vec![step]])]
}

fn agent(draw: &mut Draw<'_>, name: &str) -> Value {
    draw.call(
        name,
        json!({"description": "look around", "prompt": "Look around and report.", "subagent_type": "general-purpose"}),
    )
}

fn agents(draw: &mut Draw<'_>) -> Vec<Turn> {
    let all = [
        agent(draw, "Agent"),
        agent(draw, "Task"),
        agent(draw, "Agent"),
    ];
    let count = 1 + draw.random.below(3) as usize;
    vec![draw.turn(vec![all[..count].to_vec()])]
}

fn mixed(draw: &mut Draw<'_>) -> Vec<Turn> {
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

fn denied(draw: &mut Draw<'_>) -> Vec<Turn> {
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

fn plan(draw: &mut Draw<'_>) -> Vec<Turn> {
    let path = draw.path("planned.txt");
    let one = draw.call("Write", json!({"file_path": path, "content": "x"}));
    let out = draw.call("ExitPlanMode", json!({"plan": "Do it at once."}));
    let mut turn = draw.turn(vec![vec![one], vec![out]]);
    turn.args = vec!["--permission-mode", "plan"];
    vec![turn]
}

fn unknown(draw: &mut Draw<'_>) -> Vec<Turn> {
    let one = draw.call("NoSuchTool", json!({"a": 1}));
    let two = draw.call("mcp__none__tool", json!({}));
    vec![draw.turn(vec![vec![one], vec![two]])]
}

fn bad(draw: &mut Draw<'_>) -> Vec<Turn> {
    let one = draw.call("Read", json!({"path": "a.txt"}));
    let two = draw.call("Read", json!("{\"file_path\":"));
    let three = draw.call("Bash", json!({"command": 7, "timeout": "long"}));
    vec![draw.turn(vec![vec![one, two], vec![three]])]
}

fn server(draw: &mut Draw<'_>) -> Vec<Turn> {
    let id = draw.id().replace("toolu", "srvtoolu");
    let asked = json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "weather"}});
    let found = json!({"type": "web_search_result", "url": "https://example.com/", "title": "Weather", "encrypted_content": "ZW5j", "page_age": null});
    let result = json!({"type": "web_search_tool_result", "tool_use_id": id, "content": [found]});
    draw.answers(vec![Answer::blocks(&[
        text("I search."),
        asked,
        result,
        text("It rains."),
    ])])
}

fn pause(draw: &mut Draw<'_>) -> Vec<Turn> {
    draw.answers(vec![
        Answer::stopping(&[text("A first part.")], "pause_turn"),
        Answer::text("The rest of it."),
    ])
}

fn refusal(draw: &mut Draw<'_>) -> Vec<Turn> {
    let mut turns = draw.answers(vec![Answer::stopping(&[text("I would")], "refusal")]);
    turns[0].codes = &[0, 1];
    turns
}

fn short(draw: &mut Draw<'_>) -> Vec<Turn> {
    let mut turns = draw.answers(vec![
        Answer::stopping(&[text("This goes on and")], "max_tokens"),
        Answer::text("and ends."),
    ]);
    turns[0].codes = &[0, 1];
    turns
}

fn limit(draw: &mut Draw<'_>) -> Vec<Turn> {
    let (one, two) = (draw.read("a.txt"), draw.read("b.md"));
    let mut turn = draw.turn(vec![vec![one], vec![two]]);
    turn.args.extend(["--max-turns", "1"]);
    turn.codes = &[1];
    vec![turn]
}

fn failure(draw: &mut Draw<'_>) -> Answer {
    let (status, kind) = *draw.random.pick(&[
        ("529 Overloaded", "overloaded_error"),
        ("429 Too Many Requests", "rate_limit_error"),
        ("500 Internal Server Error", "api_error"),
    ]);
    Answer::fails(status, kind, "not now").header("retry-after-ms", "20")
}

fn busy(draw: &mut Draw<'_>) -> Vec<Turn> {
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

fn broken(draw: &mut Draw<'_>) -> Vec<Turn> {
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

fn event(draw: &mut Draw<'_>) -> Vec<Turn> {
    let error =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let failing = Answer::text("never heard").without_last(4);
    let failing = failing.before(99, Step::Send(format!("event: error\ndata: {error}\n\n")));
    draw.answers(vec![failing, Answer::text("heard")])
}

fn cut_early(draw: &mut Draw<'_>) -> Vec<Turn> {
    let answer = Answer::text("The whole of it.");
    let bytes = 1 + draw.random.below(answer.len() as u64 / 2) as usize;
    draw.answers(vec![answer.clone().cut(bytes), answer])
}

fn cut_late(draw: &mut Draw<'_>) -> Vec<Turn> {
    let step = draw.read("a.txt");
    let blocks = [thinking("Hm."), text("A beginning."), step];
    let left = 2 + draw.random.below(6) as usize;
    let begun = Answer::blocks(&blocks).without_last(left);
    let begun = begun.before(99, Step::Wait(Duration::from_millis(20)));
    let mut turns = draw.answers(vec![begun, Answer::text("And an end.")]);
    turns[0].codes = &[0, 1];
    turns
}

fn cut_anywhere(draw: &mut Draw<'_>) -> Vec<Turn> {
    let (one, two) = (draw.read("a.txt"), draw.read("b.md"));
    let answer = Answer::blocks(&[thinking("Hm."), text("Both."), one, two]);
    let bytes = 1 + draw.random.below(answer.len() as u64 - 1) as usize;
    let mut turns = draw.answers(vec![answer.cut(bytes), Answer::text("Gone on.")]);
    turns[0].codes = &[0, 1];
    turns
}

fn pieces(draw: &mut Draw<'_>) -> Vec<Turn> {
    let size = 1 + draw.random.below(7) as usize;
    let step = draw.read("c d.txt");
    let words = Answer::blocks(&[thinking("ü"), text("日本 🙂"), step]);
    draw.answers(vec![
        words.pieces(size),
        Answer::text("Ende gut.").pieces(size),
    ])
}

fn gated(draw: &mut Draw<'_>, signal: &'static str, code: i32) -> Vec<Turn> {
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

fn marked(draw: &mut Draw<'_>, signal: &'static str, code: i32) -> Vec<Turn> {
    let step = draw.bash("echo said; touch mark; sleep 47.25");
    let mut turn = draw.turn(vec![vec![step]]);
    turn.meanwhile = Meanwhile::AtMark(signal);
    turn.codes = SIGNALS(code);
    vec![turn]
}

fn beside(draw: &mut Draw<'_>, signal: &'static str, code: i32) -> Vec<Turn> {
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

fn compaction(draw: &mut Draw<'_>) -> Vec<Turn> {
    let mut turns = draw.answers(vec![Answer::counted(&[text("That was much.")], 195_000)]);
    let step = draw.read("b.md");
    turns.extend(draw.answers(vec![
        Answer::text("<summary>What was said so far.</summary>"),
        Answer::blocks(&[step]),
        Answer::text("Gone on after the summary."),
    ]));
    turns
}

fn full(draw: &mut Draw<'_>) -> Vec<Turn> {
    let (one, two) = (draw.read("a.txt"), draw.read("b.md"));
    draw.answers(vec![
        Answer::counted(&[text("Both."), one, two], 195_000),
        Answer::text("A summary in the middle of a turn."),
        Answer::text("Gone on in the same turn."),
    ])
}

fn fork(draw: &mut Draw<'_>) -> Vec<Turn> {
    let step = draw.read("a.txt");
    let mut first = draw.turn(vec![vec![step]]);
    let mut second = draw.turn(vec![]);
    first.args = FREE.to_vec();
    second.args.push("--fork-session");
    vec![first, second]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_act_stands_twice_and_each_has_a_turn() {
        let mut names = BTreeSet::new();
        let (mut random, mut calls) = (Random::new(1), 0);
        for act in ALL {
            assert!(names.insert(act.name), "{} stands twice", act.name);
            let turns = (act.turns)(&mut Draw {
                random: &mut random,
                cwd: Path::new("/p"),
                gate: "a",
                calls: &mut calls,
            });
            assert!(!turns.is_empty(), "{}", act.name);
        }
    }

    #[test]
    fn the_task_is_the_one_that_was_begun_last() {
        let told = |id: &str| format!("Command running in background with ID: {id}. Output is");
        let body = json!({"messages": [told("b1"), told("b2x")]});
        assert_eq!(task(&body), "b2x");
        assert_eq!(task(&json!({})), "unknown");
    }
}
