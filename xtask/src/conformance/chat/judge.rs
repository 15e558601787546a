//! Whether our reader and the SDK read a conversation alike, and the API would take it.

use super::super::Problem;
use super::super::run::Place;
use super::{Written, real, stage};
use crate::differential::{self, Case};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::messages::{self, ResumeResult};
use unspool_testkit::validator;

/// What was found out about all conversations.
#[derive(Default)]
pub struct Found {
    /// Conversations, and transcripts of them: forks make two of one.
    pub conversations: usize,
    /// Transcripts of conversations.
    pub transcripts: usize,
    /// Transcripts of sub-agents.
    pub agents: usize,
    /// Lines in all of them.
    pub lines: usize,
    /// Conversations in which an act took place.
    pub acts: BTreeMap<String, usize>,
    /// Conversations that the client had as it should.
    pub played: usize,
    /// Conversations without a fault in any file.
    pub faultless: usize,
    /// Transcripts of which the API would take what we send.
    pub valid: usize,
    /// Transcripts that each client finds a conversation in.
    pub profiles: BTreeMap<&'static str, usize>,
    /// Transcripts the SDK reads as we do.
    pub sdk: usize,
    /// Those it reads otherwise, by reason.
    pub otherwise: differential::Counts,
    /// What real clients did.
    pub rows: Vec<real::Row>,
    /// All that is wrong.
    pub wrong: Vec<String>,
}

/// The clients, as the program names them.
pub const CLIENTS: [(ClientProfile, &str); 5] = [
    (ClientProfile::client("2.0.50"), "2.0.50"),
    (ClientProfile::client("2.1.45"), "2.1.45"),
    (ClientProfile::client("2.1.100"), "2.1.100"),
    (ClientProfile::client("2.1.200"), "2.1.200"),
    (ClientProfile::client("2.1.325"), "2.1.325"),
];

/// Reads all conversations.
pub fn all(program: &Path, written: &[Written]) -> Result<Found, Problem> {
    let mut found = Found::default();
    let mut cases = Vec::new();
    for one in written {
        conversation(program, one, &mut found, &mut cases)?;
    }
    let (counts, strange) = differential::of_sessions(program, &cases)?;
    for (reason, count) in counts {
        match reason {
            "" => found.sdk = count,
            _ => *found.otherwise.entry(reason).or_default() += count,
        }
    }
    let strange = strange.into_iter().map(|what| format!("the SDK, {what}"));
    found.wrong.extend(strange);
    Ok(found)
}

fn conversation(
    program: &Path,
    one: &Written,
    found: &mut Found,
    cases: &mut Vec<Case>,
) -> Result<(), Problem> {
    let (place, name) = (one.place(), one.name());
    found.conversations += 1;
    found.played += usize::from(one.wrong.is_empty());
    let played = one.wrong.iter().map(|wrong| format!("{name}: {wrong}"));
    found.wrong.extend(played);
    let mut acts = one.acts.clone();
    acts.sort();
    acts.dedup();
    for act in acts {
        *found.acts.entry(act).or_default() += 1;
    }
    match faults(program, &place)? {
        None => found.faultless += 1,
        Some(faults) => found.wrong.push(format!("{name}: check says\n{faults}")),
    }
    for path in stage::transcripts(&place) {
        let bytes = std::fs::read(&path)?;
        let id = path.file_stem().unwrap_or_default().to_string_lossy();
        found.transcripts += 1;
        found.lines += bytes.iter().filter(|byte| **byte == b'\n').count();
        found.agents += agents(&path);
        read(&bytes, &format!("{name} {id}"), found);
        cases.push(Case {
            id: id.into_owned(),
            name: name.clone(),
            bytes,
        });
    }
    Ok(())
}

fn agents(path: &Path) -> usize {
    let files = std::fs::read_dir(path.with_extension("").join("subagents"));
    let files = files.into_iter().flatten().flatten();
    files
        .filter(|file| file.path().extension().is_some_and(|end| end == "jsonl"))
        .count()
}

/// What `unspool check` has to say against any file here.
fn faults(program: &Path, place: &Place) -> Result<Option<String>, Problem> {
    let output = Command::new(program)
        .args(["check", "--all"])
        .env("HOME", &place.root)
        .env("CLAUDE_CONFIG_DIR", &place.config)
        .env("UNSPOOL_HOME", place.root.join("unspool"))
        .env("UNSPOOL_NO_BACKGROUND", "1")
        .env("NO_COLOR", "1")
        .current_dir(&place.cwd)
        .output()?;
    let words = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    Ok((!output.status.success()).then(|| words.into_owned()))
}

/// What we would send, as JSON.
pub fn own(bytes: &[u8]) -> Option<String> {
    let log = Log::new(bytes);
    sent(
        &log,
        &Session::from_log(&log, TranscriptRole::Main),
        ClientProfile::Strict,
    )
}

fn sent(log: &Log, session: &Session, profile: ClientProfile) -> Option<String> {
    match messages::messages(session, log, profile) {
        ResumeResult::Messages(all) if !all.is_empty() => Some(messages::to_json(&all)),
        _ => None,
    }
}

/// What we and, by our rules, each client would send.
fn read(bytes: &[u8], name: &str, found: &mut Found) {
    let log = Log::new(bytes);
    let session = Session::from_log(&log, TranscriptRole::Main);
    let sent = |profile| sent(&log, &session, profile);
    match sent(ClientProfile::Strict) {
        None => found.wrong.push(format!("{name}: no conversation")),
        Some(text) => match validator::refusals_with_prompt(&text, "go on").first() {
            None => found.valid += 1,
            Some(why) => found.wrong.push(format!("{name}: the API refuses: {why}")),
        },
    }
    for (profile, client) in CLIENTS {
        match sent(profile) {
            Some(_) => *found.profiles.entry(client).or_default() += 1,
            None => found.wrong.push(format!("{name}: {client} finds nothing")),
        }
    }
}
