//! Compares observations with what a reader prints for the same files.

use super::Problem;
use super::cases::{self, Case};
use super::options::{self, Options};
use super::record::{self, Observation, Outcome};
use std::path::{Path, PathBuf};
use std::process::Command;
use unspool_testkit::conformance::observation;
use unspool_testkit::conformance::reduce::{self, Texts};

/// The result for one version.
pub struct Row {
    /// The client version.
    pub version: String,
    /// Recorded sessions: compared, equal.
    pub sessions: (usize, usize),
    /// Edited copies: compared, equal.
    pub edits: (usize, usize),
    /// Cases that differ.
    pub misses: Vec<Miss>,
}

/// A case in which the reader is wrong.
pub struct Miss {
    /// The name of the case.
    pub case: String,
    /// What was changed, as a sentence.
    pub what: String,
}

impl Row {
    /// All cases: compared, equal.
    pub fn total(&self) -> (usize, usize) {
        let compared = self.sessions.0 + self.edits.0;
        (compared, self.sessions.1 + self.edits.1)
    }

    /// At least 99 of 100 are equal.
    pub fn passes(&self) -> bool {
        let (compared, equal) = self.total();
        equal * 100 >= compared * 99
    }
}

/// Compares all cases of a version that have an observation.
pub fn version(options: &Options, version: &str) -> Result<Row, Problem> {
    let mut row = Row {
        version: version.to_owned(),
        sessions: (0, 0),
        edits: (0, 0),
        misses: Vec::new(),
    };
    let file =
        std::env::temp_dir().join(format!("unspool-conformance-{}.jsonl", std::process::id()));
    let reader = reader(options)?;
    let fixture = observation::read_fixture(&record::fixture_path(version)).unwrap_or_default();
    for case in cases::of(options, version)? {
        let Some(seen) = seen(options, version, &case, &fixture) else {
            continue;
        };
        std::fs::write(&file, &case.text)?;
        let texts = Texts::of(&case.text);
        let read = read(&reader, &file, version, &texts)?;
        let seen = plain(options, seen.outcome, &texts);
        count(options, &mut row, &case, &seen, &read);
    }
    let _ = std::fs::remove_file(&file);
    Ok(row)
}

/// What was seen in a run here, or else what the repository remembers.
fn seen(
    options: &Options,
    version: &str,
    case: &Case,
    fixture: &[Observation],
) -> Option<Observation> {
    let input = reduce::input_hash(&case.text);
    let remembered = || {
        let same = |known: &&Observation| known.case == case.name && known.input == input;
        fixture.iter().find(same).cloned()
    };
    record::load(options, version, case).or_else(remembered)
}

fn count(options: &Options, row: &mut Row, case: &Case, seen: &Outcome, read: &Outcome) {
    let counts = if case.name.starts_with("session/") {
        &mut row.sessions
    } else {
        &mut row.edits
    };
    counts.0 += 1;
    if seen.agrees(read) {
        counts.1 += 1;
        return;
    }
    if options.verbose {
        let difference = difference(seen, read);
        println!("{} {}\n{difference}", row.version, case.name);
    }
    row.misses.push(Miss {
        case: case.name.clone(),
        what: case.what.trim_end_matches('.').to_owned(),
    });
}

/// What the client sent, without reminders unless they are asked for.
///
/// Only this side is stripped: a reader that prints a reminder is wrong.
pub fn plain(options: &Options, seen: Outcome, texts: &Texts) -> Outcome {
    match seen {
        Outcome::Sent(history) if !options.with_reminders => {
            Outcome::Sent(reduce::without_reminders(&history, texts))
        }
        other => other,
    }
}

/// How to start the reader: the words before the file.
pub enum Reader {
    /// Our program.
    Ours(PathBuf),
    /// A command for a shell.
    Other(String),
}

/// The reader that was asked for, or our own.
pub fn reader(options: &Options) -> Result<Reader, Problem> {
    match &options.reader {
        Some(command) => Ok(Reader::Other(command.clone())),
        None => Ok(Reader::Ours(program(options)?)),
    }
}

/// Our program: the one that was named, or else as it is now.
pub fn program(options: &Options) -> Result<PathBuf, Problem> {
    if let Some(program) = &options.program {
        return Ok(program.clone());
    }
    let root = options::root();
    let status = Command::new("cargo")
        .args(["build", "--quiet", "--release", "--bin", "unspool"])
        .current_dir(&root)
        .status()?;
    if !status.success() {
        return Err("unspool could not be built".into());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    Ok(target.join("release/unspool"))
}

/// What the reader says of a file.
pub fn read(
    reader: &Reader,
    file: &Path,
    version: &str,
    texts: &Texts,
) -> Result<Outcome, Problem> {
    let output = match reader {
        Reader::Ours(program) => Command::new(program)
            .arg("messages")
            .arg(file)
            .args(["--reveal", "--claude-version", version])
            .output()?,
        Reader::Other(command) => Command::new("sh")
            .args(["-c", &format!("{command} \"$1\" \"$2\""), "sh"])
            .arg(file)
            .arg(version)
            .output()?,
    };
    Ok(match output.status.code() {
        Some(0) => match serde_json::from_slice(&output.stdout)? {
            serde_json::Value::Null => Outcome::None,
            messages => Outcome::Sent(reduce::history(&messages, texts)),
        },
        Some(1) if output.stdout.is_empty() && output.stderr.len() < 300 => Outcome::None,
        Some(2) => Outcome::Hang,
        _ => {
            let words = String::from_utf8_lossy(&output.stderr);
            Outcome::Failed(words.lines().last().unwrap_or_default().to_owned())
        }
    })
}

/// Both sides, line by line, where they differ.
pub fn difference(seen: &Outcome, read: &Outcome) -> String {
    let from = match (seen, read) {
        (Outcome::Sent(seen), Outcome::Sent(read)) => {
            let same = |(one, other): &(&_, &_)| {
                reduce::same(std::slice::from_ref(*one), std::slice::from_ref(*other))
            };
            seen.iter().zip(read).take_while(same).count()
        }
        _ => 0,
    };
    let (seen, read) = (lines(seen), lines(read));
    let mut text = String::new();
    for line in seen.iter().skip(from).take(8) {
        text += &format!("  client: {line}\n");
    }
    for line in read.iter().skip(from).take(8) {
        text += &format!("  reader: {line}\n");
    }
    text
}

fn lines(outcome: &Outcome) -> Vec<String> {
    match outcome {
        Outcome::Sent(messages) => messages.iter().map(ToString::to_string).collect(),
        Outcome::None => vec!["no conversation".to_owned()],
        Outcome::Hang => vec!["hangs".to_owned()],
        Outcome::Failed(words) => vec![format!("failed: {words}")],
    }
}
