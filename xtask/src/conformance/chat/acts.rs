//! What happens in the conversations: one act is a turn or two.

mod around;
mod speech;
mod tools;
mod trouble;

use super::stage::{Meanwhile, Play, Turn};
use serde_json::{Value, json};
use std::path::Path;
use unspool_testkit::model::{Answer, call, text, thinking};
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
    act("words", speech::words),
    act("thinking", speech::thoughts),
    act("hidden thinking", speech::hidden),
    act("Read", tools::read),
    act("Read in parallel", tools::reads),
    act("Read of an image", tools::image),
    act("Read of a notebook and a PDF", tools::documents),
    act("image in the prompt", speech::shown),
    act("Write", tools::write),
    act("Edit", tools::edit),
    act("Edit that fails", tools::misfit),
    act("Glob and Grep", tools::search),
    act("Bash", tools::bash),
    act("Bash that fails", tools::fails),
    act("Bash with much output", tools::much),
    act("Bash in the background", tools::background),
    act("TaskCreate, TaskUpdate, TaskList", tools::tasks),
    act("TodoWrite", tools::todos),
    act("sub-agents in parallel", tools::agents),
    act("all kinds in parallel", tools::mixed),
    act("denied", tools::denied),
    act("plan mode", tools::plan),
    act("unknown tool", tools::unknown),
    act("bad input", tools::bad),
    act("server tool", speech::server),
    act("pause", speech::pause),
    act("refusal", speech::refusal),
    act("too few tokens", speech::short),
    act("limit of turns", speech::limit),
    act("busy API", trouble::busy),
    act("API error", trouble::broken),
    act("error in the stream", trouble::event),
    act("cut before a block", trouble::cut_early),
    act("cut after a block", trouble::cut_late),
    act("cut at any byte", trouble::cut_anywhere),
    act("byte by byte", trouble::pieces),
    act("interrupt in an answer", |draw| {
        trouble::gated(draw, "-INT", 130)
    }),
    act("interrupt in a tool", |draw| {
        trouble::marked(draw, "-INT", 130)
    }),
    act("interrupt with parallel tools", |draw| {
        trouble::beside(draw, "-INT", 130)
    }),
    act("TERM in an answer", |draw| {
        trouble::gated(draw, "-TERM", 143)
    }),
    act("kill in an answer", |draw| {
        trouble::gated(draw, "-KILL", 137)
    }),
    act("kill in a tool", |draw| trouble::marked(draw, "-KILL", 137)),
    act("kill with parallel tools", |draw| {
        trouble::beside(draw, "-KILL", 137)
    }),
    act("compaction", trouble::compaction),
    act("compaction in a turn", trouble::full),
    act("fork", trouble::fork),
    act("prompt that waits", around::waits),
    act("tools of a server", around::servers),
    act("hooks", around::hooks),
    act("hook that forbids", around::forbidden),
    act("talk on a terminal", around::talk),
    act("stopped on a terminal", around::stopped),
    act("question on a terminal", around::question),
    act("plan on a terminal", around::plan),
    act("sub-agents in the background", around::agents),
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
            stream: Vec::new(),
            typed: Vec::new(),
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
}
