//! `cargo xtask differential [--graphs N] [--seed N]`: our reader and the Python SDK's.
//!
//! Both read the recordings and generated session graphs. The conversation
//! (`get_session_messages` and our lines of the newest client) is compared
//! uuid by uuid, the listing (`list_sessions` and `unspool ls --json`) field by
//! field. Where they differ, the file is altered step by step in ways that mean
//! nothing to the SDK but take away what we read otherwise ([`neutral`]); only
//! when we then read what the SDK read is the difference explained, and that
//! the steps mean nothing to the SDK is checked too. `docs/differential.md` has
//! the reasons; anything else is a failure.

mod listing;
mod neutral;
mod parallel;

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::messages;
use unspool_testkit::home::Home;
use unspool_testkit::{corpus, graph};

use crate::differential::neutral::Step;
use crate::{Outcome, bench, needs};

/// A session both sides read.
pub struct Case {
    /// Its id: the name of its file.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// The file.
    pub bytes: Vec<u8>,
}

/// What the SDK said.
#[derive(Default)]
struct Said {
    listed: HashMap<String, Value>,
    uuids: HashMap<String, Option<Vec<String>>>,
}

/// Counts of how comparisons ended, by reason.
pub type Counts = BTreeMap<&'static str, usize>;

/// Compares everything.
pub fn run(args: &[String]) -> Outcome {
    let (mut graphs, mut seed) = (10_000, 0);
    for pair in args.chunks(2) {
        let value = |text: &String| {
            text.parse::<u64>()
                .map_err(|_| format!("`{text}` is no number"))
        };
        match pair {
            [flag, text] if flag == "--graphs" => graphs = value(text)?,
            [flag, text] if flag == "--seed" => seed = value(text)?,
            _ => return Err("usage: cargo xtask differential [--graphs N] [--seed N]".into()),
        }
    }
    let program = bench::build()?;
    let mut unexplained = Vec::new();
    for (name, cases) in [
        ("recordings", recordings()),
        ("graphs", drawn(seed, graphs)),
    ] {
        let home = Home::new(&program);
        place(&home, &cases);
        let said = ask(&home, &cases)?;
        let (counts, strange) = conversations(&program, &cases, &said)?;
        report(name, "conversation", cases.len(), &counts);
        unexplained.extend(strange);
        let (counts, strange) = listing::compare(&home, &cases, &said)?;
        report(name, "listing", cases.len(), &counts);
        unexplained.extend(strange);
    }
    for difference in unexplained.iter().take(10) {
        eprintln!("{difference}\n");
    }
    match unexplained.len() {
        0 => Ok(()),
        some => Err(format!("{some} differences that nothing explains")),
    }
}

/// Compares the conversations of sessions; counts by reason, and what nothing explains.
pub fn of_sessions(program: &Path, cases: &[Case]) -> Result<(Counts, Vec<String>), String> {
    let home = Home::new(program);
    place(&home, cases);
    let said = ask(&home, cases)?;
    conversations(program, cases, &said)
}

fn report(what: &str, part: &str, all: usize, counts: &Counts) {
    let alike = counts.get("").copied().unwrap_or_default();
    println!("{what}, {part}: {alike} of {all} alike");
    for (reason, count) in counts.iter().filter(|(reason, _)| !reason.is_empty()) {
        println!("  {count:>6}  {reason}");
    }
}

/// Sessions of the recordings. Their ids repeat between versions, so each gets its own; the
/// name of the file is the identity.
fn recordings() -> Vec<Case> {
    let mains = corpus::files()
        .into_iter()
        .filter(|file| file.role == corpus::Role::Main);
    let case = |(at, file): (usize, corpus::File)| Case {
        id: format!("{at:08x}-0000-4000-8000-00000000c0de"),
        name: file.name(),
        bytes: file.bytes(),
    };
    mains.enumerate().map(case).collect()
}

fn drawn(first: u64, count: u64) -> Vec<Case> {
    let case = |seed: u64| Case {
        id: format!("{seed:08x}-0000-4000-8000-000000000000"),
        name: format!("seed {seed}"),
        bytes: (graph::session(seed).join("\n") + "\n").into_bytes(),
    };
    (first..first + count).map(case).collect()
}

fn place(home: &Home, cases: &[Case]) {
    for case in cases {
        home.transcript("/home/dev/x", &case.id, &case.bytes);
    }
}

/// Lets the SDK read a machine.
fn ask(home: &Home, cases: &[Case]) -> Result<Said, String> {
    let script = crate::root().join("tests/differential/sdk.py");
    let mut command = Command::new(needs::sdk_python());
    command
        .arg(script)
        .env("CLAUDE_CONFIG_DIR", home.claude_dir())
        .env("HOME", home.path())
        .current_dir(home.work_dir())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let failed = |error: std::io::Error| format!("the SDK: {error}");
    let mut child = command.spawn().map_err(failed)?;
    let ids: String = cases.iter().map(|case| format!("{}\n", case.id)).collect();
    if let Some(mut stdin) = child.stdin.take() {
        // It reads everything before it answers, so this cannot block for ever.
        stdin.write_all(ids.as_bytes()).map_err(failed)?;
    }
    let output = child.wait_with_output().map_err(failed)?;
    if !output.status.success() {
        return Err(format!("the SDK ended with {}", output.status));
    }
    let mut said = Said::default();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let row: Value = serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?;
        if let Some(info) = row.get("listed") {
            said.listed.insert(text(info, "session_id"), info.clone());
        } else {
            let uuids = row.get("uuids").and_then(Value::as_array).map(|uuids| {
                let each = uuids.iter().filter_map(Value::as_str);
                each.map(str::to_owned).collect()
            });
            said.uuids.insert(text(&row, "session"), uuids);
        }
    }
    Ok(said)
}

fn text(value: &Value, field: &str) -> String {
    let text = value.get(field).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

fn conversations(
    program: &Path,
    cases: &[Case],
    said: &Said,
) -> Result<(Counts, Vec<String>), String> {
    let mut counts = Counts::new();
    let mut strange = Vec::new();
    let mut altered = Vec::new();
    for case in cases {
        let Some(theirs) = said.uuids.get(&case.id).and_then(Option::as_ref) else {
            // Reading the file as UTF-8 failed, and with it the whole call.
            let reason = if std::str::from_utf8(&case.bytes).is_err() {
                "not_utf8"
            } else {
                strange.push(format!("{}: the SDK raised an error", case.name));
                continue;
            };
            *counts.entry(reason).or_default() += 1;
            continue;
        };
        if read(&case.bytes) == *theirs {
            *counts.entry("").or_default() += 1;
            continue;
        }
        match explain(&case.bytes, theirs) {
            Some((reasons, bytes)) => {
                for reason in reasons {
                    *counts.entry(reason).or_default() += 1;
                }
                altered.push(Case {
                    id: case.id.clone(),
                    name: case.name.clone(),
                    bytes,
                });
            }
            None => strange.push(format!(
                "{}\n  theirs {theirs:?}\n  ours   {:?}\n  at last {:?}",
                case.name,
                read(&case.bytes),
                read(&neutral::all(&case.bytes))
            )),
        }
    }
    let home = Home::new(program);
    place(&home, &altered);
    let again = ask(&home, &altered)?;
    for case in &altered {
        // Cut parents and filled-in times may change which parallel results are put back.
        let uuids = |said: &Said| {
            said.uuids
                .get(&case.id)
                .cloned()
                .flatten()
                .unwrap_or_default()
        };
        let facts = parallel::Facts::of(&case.bytes);
        if facts.compare(&uuids(&again), &uuids(said)).is_none() {
            strange.push(format!("{}: a step meant something to the SDK", case.name));
        }
    }
    Ok((counts, strange))
}

/// The uuids of the conversation as the newest client reads it, without what the SDK hides.
fn read(bytes: &[u8]) -> Vec<String> {
    let log = Log::new(bytes);
    let session = Session::from_log(&log, TranscriptRole::Main);
    let lines = messages::live_lines(&session, ClientProfile::NEWEST);
    let records = lines.iter().map(|at| &session.records[*at as usize]);
    let shown = records.filter(|record| {
        record.is_conversation()
            && !record.is_meta()
            && !record.is_sidechain()
            && record.uuid.is_some()
    });
    shown
        .filter_map(|record| record.uuid.as_ref())
        .map(ToString::to_string)
        .collect()
}

/// The fewest of the steps, in their order, after which we read what the SDK read; and how
/// the two still differ in parallel calls.
fn explain(bytes: &[u8], theirs: &[String]) -> Option<(Vec<&'static str>, Vec<u8>)> {
    if theirs.is_empty() && neutral::has_no_end(bytes) {
        return Some((vec!["no_end"], bytes.to_vec()));
    }
    let facts = parallel::Facts::of(bytes);
    let fits = |steps: &[&Step]| facts.compare(&read(&neutral::apply(bytes, steps)), theirs);
    let mut steps = neutral::useful(bytes);
    let mut rest = fits(&steps)?;
    // Leave out each step that is not needed.
    for step in steps.clone() {
        let without: Vec<&Step> = steps
            .iter()
            .copied()
            .filter(|other| other.name != step.name)
            .collect();
        if let Some(less) = fits(&without) {
            (steps, rest) = (without, less);
        }
    }
    let altered = neutral::apply(bytes, &steps);
    let mut reasons: Vec<&'static str> = steps.iter().map(|step| step.name).collect();
    reasons.extend(rest);
    Some((reasons, altered))
}
