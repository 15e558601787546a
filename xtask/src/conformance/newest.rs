//! `cargo xtask conformance --newest`: what the newest client there is does that we do not know.
//!
//! It is given all probes and all recorded sessions, as the others are, and it holds some
//! conversations of its own with a model that plays a script, so that it writes what it writes.
//! Names in that which the model does not know are told.

use super::options::Options;
use super::run::{self, Place};
use super::{Problem, client, compare, probes, reenter, report};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::client_profile::ClientVersion;
use unspool_testkit::model::{Answer, Model, call, text, thinking};

/// Tries the newest client; true if it does nothing that we do not know.
pub fn perform(mut options: Options) -> Result<bool, Problem> {
    let newest = client::versions()?.pop().ok_or("npm knows no version")?;
    options.versions = vec![newest.clone()];
    if options.run {
        client::install(&options, &newest)?;
        let names = probes::names(&options)?.into_iter().collect();
        probes::observe(&options, &probes::Wanted::from([(newest.clone(), names)]))?;
        reenter(&options, &newest)?;
    }
    println!(
        "newest: {newest}; newest that the rules know: {}",
        ClientVersion::NEWEST
    );
    let unknown = unknown_names(&folder(&options, &newest))?;
    for (name, count) in &unknown {
        println!("unknown {name} ({count} times)");
    }
    if unknown.is_empty() {
        println!("no unknown names");
    }
    let names = probes::names(&options)?;
    let good = probes::finish(&options, &probes::known()?, &names)?;
    let row = compare::version(&options, &newest)?;
    let passes = row.passes();
    report::print(&[row]);
    Ok(good && passes && unknown.is_empty())
}

/// Inside the namespace: resumes the recorded sessions, and has new conversations.
pub fn version(options: &Options, version: &str) -> Result<(), Problem> {
    run::version(options, version)?;
    let folder = folder(options, version);
    for talk in talks() {
        let root = folder.join(talk.name);
        if root.join("whole").exists() {
            continue;
        }
        match have(options, version, &root, talk) {
            Ok(()) => std::fs::write(root.join("whole"), "")?,
            Err(problem) => eprintln!("{version} {}: {problem}", root.display()),
        }
    }
    Ok(())
}

fn folder(options: &Options, version: &str) -> PathBuf {
    options.record.join("talks").join(version)
}

/// A conversation: each turn is a prompt with its arguments, and what the model says to it.
struct Talk {
    name: &'static str,
    turns: Vec<(Vec<&'static str>, Vec<Answer>)>,
}

/// Tools that may run without a question.
const ALLOWED: [&str; 2] = [
    "--allowedTools",
    "Bash,Read,Write,Edit,Glob,Grep,TodoWrite,TaskCreate,TaskUpdate,Agent,Task,NotebookEdit,ToolSearch",
];

fn talks() -> Vec<Talk> {
    let talk = |name, turns| Talk { name, turns };
    let said = |words: &str| Answer::text(words);
    let calls = |all: &[(&str, &str, Value)]| {
        let blocks = all
            .iter()
            .map(|(id, tool, input)| call(id, tool, input.clone()));
        Answer::blocks(&blocks.collect::<Vec<_>>())
    };
    let bash = |id, command: &str| (id, "Bash", json!({"command": command, "description": "it"}));
    vec![
        talk(
            "words",
            vec![
                (
                    vec!["hello"],
                    vec![Answer::blocks(&[thinking("hm"), text("hi")])],
                ),
                (vec!["--continue", "again"], vec![said("yes")]),
                (
                    vec!["--continue", "--fork-session", "fork"],
                    vec![said("yes")],
                ),
                (
                    vec!["--continue", "/compact"],
                    vec![said("<summary>all of it</summary>")],
                ),
                (vec!["--continue", "and on"], vec![said("yes")]),
                (vec!["--continue", "/cost"], vec![]),
                (vec!["--continue", "/no-such-command"], vec![]),
            ],
        ),
        talk(
            "tools",
            vec![(
                vec!["use them"],
                vec![
                    calls(&[(
                        "toolu_1",
                        "Write",
                        json!({"file_path": "new.txt", "content": "one\n"}),
                    )]),
                    calls(&[("toolu_2", "Read", json!({"file_path": "new.txt"}))]),
                    calls(&[(
                        "toolu_3",
                        "Edit",
                        json!({"file_path": "new.txt", "old_string": "one", "new_string": "two"}),
                    )]),
                    calls(&[
                        bash("toolu_4", "echo a; echo b >&2"),
                        bash("toolu_5", "exit 3"),
                        ("toolu_6", "Glob", json!({"pattern": "*.txt"})),
                        ("toolu_7", "Grep", json!({"pattern": "two"})),
                        ("toolu_8", "Read", json!({"file_path": "missing.txt"})),
                        ("toolu_9", "NoSuchTool", json!({})),
                    ]),
                    calls(&[(
                        "toolu_10",
                        "TodoWrite",
                        json!({"todos": [{"content": "x", "status": "pending", "activeForm": "x"}]}),
                    )]),
                    calls(&[(
                        "toolu_11",
                        "TaskCreate",
                        json!({"subject": "x", "description": "y", "activeForm": "z"}),
                    )]),
                    calls(&[(
                        "toolu_12",
                        "Bash",
                        json!({"command": "sleep 1; echo later", "run_in_background": true}),
                    )]),
                    said("done"),
                ],
            )],
        ),
        talk(
            "agents",
            vec![(
                vec!["delegate"],
                vec![
                    calls(&[(
                        "toolu_1",
                        "Agent",
                        json!({"description": "look", "prompt": "look around", "subagent_type": "general-purpose"}),
                    )]),
                    said("I looked."),
                    said("done"),
                ],
            )],
        ),
        talk(
            "hooks",
            vec![(
                vec!["--settings", "hooks.json", "work"],
                vec![calls(&[bash("toolu_1", "echo a")]), said("done")],
            )],
        ),
        talk(
            "failures",
            vec![
                (
                    vec!["refused"],
                    vec![Answer::fails(
                        "400 Bad Request",
                        "invalid_request_error",
                        "no",
                    )],
                ),
                (
                    vec!["--continue", "again"],
                    vec![Answer::stopping(&[text("I will not.")], "refusal")],
                ),
                (
                    vec!["--continue", "once more"],
                    vec![Answer::stopping(&[], "end_turn")],
                ),
            ],
        ),
    ]
}

/// Has a conversation, in folders of its own.
fn have(options: &Options, version: &str, root: &Path, talk: Talk) -> Result<(), Problem> {
    if root.exists() {
        std::fs::remove_dir_all(root)?;
    }
    let place = Place {
        root: root.to_owned(),
        cwd: root.join("proj"),
        config: root.join("config"),
    };
    std::fs::create_dir_all(&place.cwd)?;
    std::fs::create_dir_all(&place.config)?;
    std::fs::write(place.cwd.join("hooks.json"), hooks().to_string())?;
    for (arguments, answers) in talk.turns {
        let answers = Mutex::new(VecDeque::from(answers));
        let model = Model::start(move |_, request| {
            // Titles and the like are asked for without tools.
            let main = request.body["tools"]
                .as_array()
                .is_some_and(|tools| !tools.is_empty());
            let compacts = request.body["messages"].to_string().contains("<summary>");
            let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
            let answer = if main || compacts {
                answers.pop_front()
            } else {
                None
            };
            answer.unwrap_or_else(|| Answer::text("That is all."))
        })?;
        let mut child = run::command(options, version, &place, &model.url())?
            .args(ALLOWED)
            .args(["--output-format", "json", "-p"])
            .args(arguments)
            .spawn()?;
        let deadline = Instant::now() + Duration::from_secs(options.timeout);
        while Instant::now() < deadline && child.try_wait()?.is_none() {
            std::thread::sleep(Duration::from_millis(50));
        }
        run::stop(&mut child);
    }
    Ok(())
}

/// Something at every moment that a hook can hear of.
fn hooks() -> Value {
    let events = [
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "Stop",
        "SessionEnd",
    ];
    let one = json!([{"hooks": [{"type": "command", "command": "echo heard"}]}]);
    let all = events
        .iter()
        .map(|event| ((*event).to_owned(), one.clone()));
    json!({"hooks": all.collect::<serde_json::Map<_, _>>()})
}

/// The names in all transcripts below a folder that our model does not know, and how often.
fn unknown_names(folder: &Path) -> Result<BTreeMap<String, u32>, Problem> {
    let mut unknown = BTreeMap::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry?.path();
        if path.is_dir() {
            for (name, count) in unknown_names(&path)? {
                *unknown.entry(name).or_default() += count;
            }
        } else if path.extension().is_some_and(|ending| ending == "jsonl") {
            let agent = path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("agent-"));
            let role = if agent {
                TranscriptRole::Agent
            } else {
                TranscriptRole::Main
            };
            let session = Session::from_log(&Log::new(std::fs::read(&path)?), role);
            for (name, versions) in &session.unknown {
                *unknown.entry(name.clone()).or_default() += versions.values().sum::<u32>();
            }
        }
    }
    Ok(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_nobody_knows_is_found_however_deep_the_file_lies() -> Result<(), Problem> {
        let folder = tempfile::tempdir()?;
        let deep = folder.path().join("a/b");
        std::fs::create_dir_all(&deep)?;
        std::fs::write(deep.join("s.jsonl"), "{\"type\":\"song\",\"uuid\":\"a\"}\n")?;
        let unknown = unknown_names(folder.path())?;
        assert_eq!(unknown.keys().collect::<Vec<_>>(), ["type song"]);
        Ok(())
    }
}
