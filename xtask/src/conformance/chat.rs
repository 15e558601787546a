//! `cargo xtask conformance chat`: are the sessions of our own client read alike by everyone?
//!
//! The program talks to a model that plays a script, in many conversations
//! that chance puts together from [`acts`]. Each transcript is then read by our
//! own reader, by the Python SDK and, with `--real N`, by real clients that
//! resume it in a namespace without a network.

mod acts;
mod alike;
mod judge;
mod real;
mod section;
mod stage;

pub use section::HEADING;

use super::options::{self, Options};
use super::run::{self, Place};
use super::{Problem, client, reenter};
use acts::{ALL, Draw};
use serde_json::{Value, json};
use stage::Stage;
use std::path::{Path, PathBuf};
use std::process::Command;
use unspool_testkit::conformance::reduce::{self, Texts};
use unspool_testkit::random::Random;

/// One conversation of a seed, with all files that came of it.
struct Written {
    root: PathBuf,
    acts: Vec<String>,
    wrong: Vec<String>,
}

impl Written {
    fn place(&self) -> Place {
        Place {
            root: self.root.clone(),
            cwd: self.root.join("proj"),
            config: self.root.join("config"),
        }
    }

    fn name(&self) -> String {
        let name = self.root.file_name().unwrap_or_default().to_string_lossy();
        format!("{name} ({})", self.acts.join(", "))
    }
}

/// Writes sessions and has them read; true if all agree.
pub fn perform(mut options: Options) -> Result<bool, Problem> {
    if options.program.is_none() {
        options.program = Some(build()?);
    }
    let program = options.program.clone().unwrap_or_default();
    if let Some(version) = &options.inside {
        real::version(&options, version)?;
        return Ok(true);
    }
    let folder = folder(&options);
    if options.run {
        std::fs::create_dir_all(&folder)?;
        let seeds: Vec<u64> = (options.seed..options.seed + options.sessions).collect();
        run::each(options.jobs, &seeds, |seed, _| {
            if let Err(problem) = write(&program, &folder, *seed) {
                eprintln!("seed {seed}: {problem}");
            }
        });
    }
    let written = written(&folder)?;
    let mut found = judge::all(&program, &written)?;
    if options.real > 0 {
        for version in &options.versions {
            if options.run {
                client::install(&options, version)?;
                reenter(&options, version)?;
            }
            let row = real::judge(&options, version)?;
            found.wrong.extend(row.misses.iter().cloned());
            found.rows.push(row);
        }
    }
    print!("{}", section::text(&found));
    for wrong in found
        .wrong
        .iter()
        .take(if options.verbose { 1000 } else { 20 })
    {
        eprintln!("{wrong}");
    }
    if options.write_docs {
        section::write(&found)?;
    }
    Ok(found.wrong.is_empty())
}

/// The program as it is now. Not the fast one: nothing is measured here.
fn build() -> Result<PathBuf, Problem> {
    let root = options::root();
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--bin", "unspool", "--bin", SERVER])
        .current_dir(&root)
        .status()?;
    if !built.success() {
        return Err("unspool could not be built".into());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    Ok(target.join("debug/unspool"))
}

/// Where the conversations are.
fn folder(options: &Options) -> PathBuf {
    options.record.join("chat")
}

/// All conversations that were written.
fn written(folder: &Path) -> Result<Vec<Written>, Problem> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let root = entry?.path();
        let Ok(text) = std::fs::read_to_string(root.join("story.json")) else {
            continue;
        };
        let story: Value = serde_json::from_str(&text)?;
        let words = |field: &str| -> Vec<String> {
            let all = story[field].as_array().into_iter().flatten();
            all.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        all.push(Written {
            acts: words("acts"),
            wrong: words("wrong"),
            root,
        });
    }
    all.sort_by(|one, other| one.root.cmp(&other.root));
    Ok(all)
}

/// Lets the client have the conversation of a seed.
fn write(program: &Path, folder: &Path, seed: u64) -> Result<(), Problem> {
    let mut random = Random::new(seed);
    let root = folder.join(format!("{seed:05}"));
    let id = format!("{seed:08x}-c4a7-4000-8000-{:012x}", random.below(1 << 48));
    let mut stage = Stage::new(program, root.clone(), id)?;
    furnish(&stage.place.cwd)?;
    around(&stage.place.cwd, &server(program))?;
    let (mut calls, mut told, mut wrong) = (0, Vec::new(), Vec::new());
    let count = 1 + random.below(5);
    for number in 0..count {
        // Everything comes first in some conversation.
        let act = match number {
            0 => &ALL[seed as usize % ALL.len()],
            _ => random.pick(ALL),
        };
        told.push(act.name);
        let cwd = stage.place.cwd.clone();
        let turns = (act.turns)(&mut Draw {
            random: &mut random,
            cwd: &cwd,
            gate: stage.gate(),
            calls: &mut calls,
        });
        for turn in turns {
            let whole = turn.is_whole();
            if let Err(problem) = stage.play(turn) {
                wrong.push(format!("{}: {problem}", act.name));
            } else if whole && !is_as_sent(&stage)? {
                wrong.push(format!(
                    "{}: the file says otherwise than it sent",
                    act.name
                ));
            }
        }
    }
    let story = json!({"acts": told, "wrong": wrong});
    Ok(std::fs::write(root.join("story.json"), story.to_string())?)
}

/// Whether the transcript begins with all that the model was last told.
fn is_as_sent(stage: &Stage) -> Result<bool, Problem> {
    let id = stage.session().unwrap_or_default();
    let path = stage.place.project().join(format!("{id}.jsonl"));
    let text = std::fs::read_to_string(path)?;
    let texts = Texts::of(&text);
    let now: Value = serde_json::from_str(&judge::own(text.as_bytes()).unwrap_or_default())?;
    let sent = reduce::history(&stage.last_request(), &texts);
    let now = reduce::history(&now, &texts);
    Ok(now.len() > sent.len() && reduce::same(&now[..sent.len()], &sent))
}

/// The files that the conversations are about.
fn furnish(cwd: &Path) -> Result<(), Problem> {
    std::fs::create_dir_all(cwd.join("sub"))?;
    let lines: String = (1..40).map(|n| format!("line {n} of it\n")).collect();
    let cell = json!({"cell_type": "code", "source": ["print(1)"], "outputs": [], "metadata": {}, "execution_count": 1, "id": "c1"});
    let notes = json!({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    for (name, text) in [
        ("a.txt", "one\ntwo\nthree\n"),
        ("b.md", "# Title\n\nWörter 日本 🙂\n"),
        ("c d.txt", "no newline at the end"),
        ("sub/deep.rs", "fn deep() {}\n"),
        ("edited.txt", &format!("begin\n{lines}")),
        ("notes.ipynb", &notes.to_string()),
        (
            "paper.pdf",
            "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n",
        ),
    ] {
        std::fs::write(cwd.join(name), text)?;
    }
    std::fs::write(cwd.join("pixel.png"), PIXEL)?;
    Ok(())
}

/// The settings that some of them need: a server, and hooks.
fn around(cwd: &Path, server: &Path) -> Result<(), Problem> {
    let servers = json!({"mcpServers": {"e": {"command": server}}});
    let hook = |command: &str| json!({"type": "command", "command": command});
    let says = |event: &str, words: &str| {
        let said =
            json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": words}});
        hook(&format!("echo '{said}'"))
    };
    let once = "\"$CLAUDE_PROJECT_DIR/once\"";
    let not_yet = format!(
        "[ -e {once} ] && exit 0; : > {once}; echo '{{\"decision\": \"block\", \"reason\": \"not yet\"}}'"
    );
    let forbids = "grep -q forbidden && { echo 'not that' >&2; exit 2; }; exit 0";
    let hooks = json!({"hooks": {
        "SessionStart": [{"hooks": [hook("echo the session begins")]}],
        "UserPromptSubmit": [{"hooks": [hook(&format!("rm -f {once}; echo mind the gap"))]}],
        "PreToolUse": [
            {"matcher": "Read", "hooks": [says("PreToolUse", "before it is read")]},
            {"matcher": "Bash", "hooks": [hook(forbids)]},
        ],
        "PostToolUse": [{"hooks": [says("PostToolUse", "after it was done")]}],
        "Stop": [{"hooks": [hook(&not_yet)]}],
    }});
    std::fs::write(cwd.join("servers.json"), servers.to_string())?;
    Ok(std::fs::write(cwd.join("hooks.json"), hooks.to_string())?)
}

/// The small server of the tests, beside the program or where it is built.
fn server(program: &Path) -> PathBuf {
    let beside = program.with_file_name(SERVER);
    match beside.exists() {
        true => beside,
        false => options::root().join("target/debug").join(SERVER),
    }
}

const SERVER: &str = "mcp-echo";

/// A picture of one pixel: [`acts::PNG`] as bytes.
const PIXEL: &[u8] = &[
    137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 1, 0, 0, 0, 1, 8, 6, 0,
    0, 0, 31, 21, 196, 137, 0, 0, 0, 13, 73, 68, 65, 84, 120, 218, 99, 100, 248, 207, 80, 15, 0, 3,
    134, 1, 128, 90, 52, 125, 107, 0, 0, 0, 0, 73, 69, 78, 68, 174, 66, 96, 130,
];
