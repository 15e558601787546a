//! The index: what building it costs, how large it is, how fast it answers.

use std::fs;
use std::path::Path;

use unspool_model::text::{self, TextKind};

use super::Request;
use super::peers::Peer;
use super::rounds::{self, Entrant, Own, Place, start};
use super::run::describe;
use super::table::{Row, seconds};
use super::trees::{self, Tree};
use crate::measure::Cost;
use crate::truth::expected::Expected;

/// A first question takes in what people said; nothing goes on in the background here.
const FIRST: &[&str] = &["search", "--ranked", "error"];
/// Takes in everything.
const ALL: &[&str] = &["index", "build"];

const DIALOGUE_NAME: &str = "index of the dialogue, 1 GB";
const REST_NAME: &str = "rest of the index, 1 GB";
const QUERY_NAME: &str = "ranked query, 1 GB";

/// Seconds of processor for the dialogue of a gigabyte.
const DIALOGUE_CPU: f64 = 5.0;
/// Megabytes of text that the rest takes in per second of processor.
const REST_SPEED: f64 = 15.0;
/// The index in parts of its text.
const SIZE: f64 = 0.45;
/// Seconds for an answer.
const QUERY_WALL: f64 = 0.025;

/// Bytes of text, decoded.
#[derive(Clone, Copy, Default)]
struct Amount {
    dialogue: u64,
    rest: u64,
}

/// The three rows, if any of them is wanted.
pub fn rows(request: &Request, program: &Path) -> Result<Vec<Row>, String> {
    if ![DIALOGUE_NAME, REST_NAME, QUERY_NAME]
        .iter()
        .any(|name| request.wants_name(name))
    {
        return Ok(Vec::new());
    }
    let home = request.home(Tree::Medium)?;
    let bytes: u64 = trees::bytes(&home.join(".claude"));
    let amount = amount(&home)?;
    let own = Own::new("index")?;
    let run = |args: &[&str]| {
        eprintln!("unspool {}", args.join(" "));
        let place = Place {
            tree: &home,
            home: own.path(),
            own: own.path(),
        };
        start(program, args, &place).and_then(done)
    };
    let dialogue = run(FIRST);
    let rest = run(ALL);
    let size = databases(own.path());
    let rows = vec![
        dialogue_row(dialogue, bytes, amount),
        rest_row(rest, size, amount),
        query_row(request, program, &home, &own)?,
    ];
    Ok(rows)
}

fn done(cost: Cost) -> Result<Cost, String> {
    match cost.status {
        0 => Ok(cost),
        status => Err(format!("status {status}")),
    }
}

fn dialogue_row(cost: Result<Cost, String>, bytes: u64, amount: Amount) -> Row {
    let limit = DIALOGUE_CPU * bytes as f64 / 1e9;
    let is_met = cost.as_ref().is_ok_and(|cost| cost.cpu <= limit);
    Row {
        name: DIALOGUE_NAME.into(),
        cost: Some(cost),
        targets: vec![(format!("processor ≤ {}", seconds(limit)), is_met)],
        against: format!("{:.1} MB of text", megabytes(amount.dialogue)),
    }
}

fn rest_row(cost: Result<Cost, String>, size: u64, amount: Amount) -> Row {
    let text = amount.dialogue + amount.rest;
    let part = size as f64 / text.max(1) as f64;
    let speed = cost
        .as_ref()
        .map_or(0.0, |cost| megabytes(amount.rest) / cost.cpu);
    Row {
        name: REST_NAME.into(),
        cost: Some(cost),
        targets: vec![
            (
                format!("≥ {REST_SPEED} MB of text per second of processor"),
                speed >= REST_SPEED,
            ),
            (format!("≤ {SIZE}× of the text"), size > 0 && part <= SIZE),
        ],
        against: format!(
            "{:.0} MB of text, {speed:.1} MB/s; index {:.0} MB, {part:.2}× of all text",
            megabytes(amount.rest),
            megabytes(size)
        ),
    }
}

fn query_row(request: &Request, program: &Path, home: &Path, own: &Own) -> Result<Row, String> {
    let expected = Expected::read(home)?;
    let needle = expected.plain_needle().map(|needle| needle.text.clone());
    let needle = needle.unwrap_or_default();
    let ours = Place {
        tree: home,
        home: own.path(),
        own: own.path(),
    };
    let other_own = Own::new("fast-resume")?;
    let peer = Peer::FastResume;
    let other = request.peers.then(|| peer.provide());
    let other_place = Place {
        tree: home,
        home: peer.home(home, other_own.path()),
        own: other_own.path(),
    };
    let mut entrants: Vec<Entrant<'_>> = vec![Box::new(|| {
        start(program, &["search", "--ranked", &needle], &ours).and_then(done)
    })];
    let words = |args: Vec<String>, program: &Path| {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        start(program, &args, &other_place).and_then(done)
    };
    if let Some(Ok(program)) = &other {
        // A failure shows again in the rounds.
        let _ = words(peer.warm_args(home, &needle), program);
        entrants.push(Box::new(|| words(peer.args(home, &needle), program)));
    }
    let costs = rounds::rounds(request.runs, &mut entrants);
    drop(entrants);
    let ours = costs[0].clone();
    let against = match (costs.get(1), other) {
        (Some(cost), _) => describe(peer, cost, ours.as_ref().ok()),
        (None, Some(Err(reason))) => format!("{}: {reason}", peer.name()),
        (None, _) => String::new(),
    };
    let is_met = ours.as_ref().is_ok_and(|cost| cost.wall <= QUERY_WALL);
    Ok(Row {
        name: QUERY_NAME.into(),
        cost: Some(ours),
        targets: vec![(format!("≤ {}", seconds(QUERY_WALL)), is_met)],
        against,
    })
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// The size of the index: every database that was kept with its log.
fn databases(own: &Path) -> u64 {
    trees::bytes_where(own, |name| name.contains("text"))
}

/// How much text the tree holds. What a line says twice counts once.
fn amount(home: &Path) -> Result<Amount, String> {
    let files = trees::transcripts(&home.join(".claude"))?;
    let mut amount = Amount::default();
    for path in files {
        let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        for line in bytes.split(|byte| *byte == b'\n') {
            let mut seen: Vec<&[u8]> = Vec::new();
            text::texts(line, &mut |text| {
                if seen.contains(&text.raw) {
                    return;
                }
                seen.push(text.raw);
                let length = text.decode().len() as u64;
                match text.place {
                    TextKind::Prompt | TextKind::Reply | TextKind::Title => {
                        amount.dialogue += length
                    }
                    TextKind::Thinking | TextKind::Tool | TextKind::Result => amount.rest += length,
                    TextKind::Progress | TextKind::Other => {}
                }
            });
        }
    }
    Ok(amount)
}
