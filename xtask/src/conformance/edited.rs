//! `cargo xtask conformance edited`: does what the program makes resume in the real client?
//!
//! Every operation is applied by the program itself to recorded sessions, in a
//! home of its own, and the result is resumed there. Three things are held
//! against what the client sends: that it sends a conversation at all, what
//! `unspool messages` says of the result, and what the client sent for the
//! source where the operation must not change it.

mod desk;
mod effect;
mod judge;
mod operations;
mod section;

pub use section::HEADING;

use super::options::Options;
use super::record::{self, Observation, Outcome};
use super::run::{self, Place};
use super::{Problem, compare};
use desk::Desk;
use operations::{ALL, Keeps, Operation, SOURCE};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use unspool_testkit::conformance::bases::{self, PROFILES};
use unspool_testkit::conformance::reduce::{self, Texts};

/// One operation on one recording.
struct Trial {
    name: String,
    scenario: &'static str,
    recording: PathBuf,
    operation: Operation,
}

impl Trial {
    /// What was done, to be read by people.
    fn what(&self) -> String {
        let steps: Vec<String> = self.operation.steps.iter().map(|s| s.join(" ")).collect();
        let mut what = self.scenario.to_owned();
        if !self.operation.prepared.is_empty() {
            what += &format!(" with {}", self.operation.prepared);
        }
        format!("{what}: {}", steps.join("; "))
    }
}

/// Compares every version that is asked for; true if all is as it should be.
pub fn compare(options: &Options) -> Result<bool, Problem> {
    // The page holds all versions, whichever of them were run now.
    let all = PROFILES.map(str::to_owned);
    let versions = if options.write_docs {
        &all
    } else {
        &options.versions[..]
    };
    let rows = versions
        .iter()
        .map(|version| judge::version(options, version));
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    print!("{}", section::text(&rows));
    if options.write_docs {
        section::write(&rows)?;
    }
    Ok(rows.iter().all(judge::Row::passes))
}

/// Runs all trials of a version whose results were not resumed yet.
pub fn version(options: &Options, version: &str) -> Result<(), Problem> {
    run::bring_up()?;
    let program = compare::program(options)?;
    let trials = trials(options, version)?;
    let effects = Effects::default();
    run::each(options.jobs, &trials, |trial, worker| {
        if let Err(problem) = attempt(options, version, &program, trial, worker, &effects) {
            eprintln!("{version} {}: {problem}", trial.name);
        }
    });
    match effects.never().as_slice() {
        [] => Ok(()),
        never => Err(format!("{version}: {}", never.join("; ")).into()),
    }
}

/// Which operations did what they promise. Not every session has something to do for each, but
/// one of those it is tried on must.
#[derive(Default)]
struct Effects(Mutex<BTreeMap<String, Result<(), String>>>);

impl Effects {
    fn note(&self, trial: &Trial, missing: Option<String>) {
        let Operation {
            prepared, steps, ..
        } = trial.operation;
        if trial.operation.idle {
            return;
        }
        let words: Vec<String> = steps.iter().map(|step| step.join(" ")).collect();
        let key = format!("{prepared} {}", words.join("; "));
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match missing {
            None => drop(all.insert(key, Ok(()))),
            Some(missing) => drop(all.entry(key).or_insert(Err(missing))),
        }
    }

    /// What was never done.
    fn never(self) -> Vec<String> {
        let all = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        all.into_values().filter_map(Result::err).collect()
    }
}

/// Makes every result without a client; true if each does what was asked.
pub fn only_make(options: &Options) -> Result<bool, Problem> {
    let program = compare::program(options)?;
    let wrong = AtomicUsize::new(0);
    for version in &options.versions {
        let trials = trials(options, version)?;
        let count = trials.len();
        let effects = Effects::default();
        run::each(options.jobs, &trials, |trial, worker| {
            let made = Place::empty(worker).and_then(|place| {
                let made = make(options, version, &program, trial, &place);
                std::fs::remove_dir_all(&place.root)?;
                made
            });
            match made {
                Ok(made) => effects.note(trial, made.missing),
                Err(problem) => {
                    wrong.fetch_add(1, Ordering::Relaxed);
                    println!("{version} {}: {problem}", trial.name);
                }
            }
        });
        for never in effects.never() {
            wrong.fetch_add(1, Ordering::Relaxed);
            println!("{version}: {never}");
        }
        println!("{version}: {count} tried");
    }
    Ok(wrong.into_inner() == 0)
}

/// Makes the result and resumes it, unless the same result was resumed before.
fn attempt(
    options: &Options,
    version: &str,
    program: &Path,
    trial: &Trial,
    worker: usize,
    effects: &Effects,
) -> Result<(), Problem> {
    let mut place = Place::empty(worker)?;
    let made = make(options, version, program, trial, &place);
    let text = made.as_ref().map_or("", |made| &made.text);
    if let Ok(made) = &made {
        effects.note(trial, made.missing.clone());
    }
    let root = place.root.to_string_lossy().into_owned();
    // The folders of a run have a new name each time.
    let plain = |text: &str| text.replace(&root, "/place");
    let input = identity(&plain(text));
    let known = record::load_made(options, version, &trial.name);
    if known.is_none_or(|known| known.input != input) || made.is_err() {
        record::save_made(options, version, &trial.name, &plain(text))?;
        if trial.operation.moved {
            place.cwd = desk::moved(&place);
        }
        run::say(version, &trial.name, || {
            let (outcome, request) = match &made {
                Ok(made) => run::resume(options, version, &place, &made.id, &Texts::of(text))?,
                Err(problem) => (Outcome::Failed(problem.to_string()), Value::Null),
            };
            let observation = Observation {
                case: trial.name.clone(),
                input,
                outcome: outcome.clone(),
            };
            let request = serde_json::from_str(&plain(&request.to_string()))?;
            record::save(options, version, &observation, &request)?;
            Ok(outcome)
        });
    }
    Ok(std::fs::remove_dir_all(&place.root)?)
}

/// What the program makes of a session.
struct Made {
    id: String,
    text: String,
    /// What was promised and not done.
    missing: Option<String>,
}

fn make(
    options: &Options,
    version: &str,
    program: &Path,
    trial: &Trial,
    place: &Place,
) -> Result<Made, Problem> {
    let others = |scenario: &str| bases::longest(&options.corpus, version, scenario);
    let prepared = trial.operation.prepared;
    let mut desk = Desk::lay(place, program, &trial.recording, prepared, others)?;
    let mut missing = None;
    for step in trial.operation.steps {
        missing = missing.or(desk.step(step)?);
    }
    let (id, text) = desk.result()?;
    Ok(Made { id, text, missing })
}

/// All trials of a version, the sources first.
fn trials(options: &Options, version: &str) -> Result<Vec<Trial>, Problem> {
    let mut trials = BTreeMap::new();
    for (number, operation) in ALL.iter().enumerate() {
        for &scenario in operation.on {
            let Some(recording) = bases::longest(&options.corpus, version, scenario) else {
                return Err(format!("{version}: no recording of {scenario}").into());
            };
            let mut add = |number: usize, operation: Operation| {
                let trial = Trial {
                    name: name(&operation, scenario),
                    scenario,
                    recording: recording.clone(),
                    operation,
                };
                trials.insert((number, trial.name.clone()), trial);
            };
            if operation.keeps != Keeps::Asked {
                add(0, operations::source(operation.on, operation.prepared));
            }
            add(number + 1, *operation);
        }
    }
    let mut trials: Vec<Trial> = trials.into_values().collect();
    if let Some(only) = &options.only {
        trials.retain(|trial| trial.name.contains(only.as_str()));
    }
    Ok(trials)
}

/// `edited/source/s20_base`, and so on; unique, and good for a file.
fn name(operation: &Operation, scenario: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let short: String = operation.name.chars().map(plain).collect();
    let mut name = format!("edited/{}/{scenario}", short.trim_matches('-'));
    if !operation.prepared.is_empty() {
        name += &format!("+{}", operation.prepared);
    }
    if operation.name != SOURCE {
        let words: Vec<String> = operation.steps.iter().map(|s| s.join(" ")).collect();
        name += &format!("/{}", reduce::hash(&words.join("\n")));
    }
    name
}

/// The name of the trial with the source of another one.
fn source_of(trial: &Trial) -> String {
    let source = operations::source(trial.operation.on, trial.operation.prepared);
    name(&source, trial.scenario)
}

/// A hash of a result that is the same for every run of the same program.
///
/// New ids are drawn each time, so every id counts by the order of its first appearance, and
/// the marks of redacted texts count without their hashes.
fn identity(text: &str) -> String {
    let mut ids: BTreeMap<&str, usize> = BTreeMap::new();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let count = ids.len();
        let (put, length) = if let Some(id) = rest.get(..36).filter(|id| is_uuid(id)) {
            (ids.entry(id).or_insert(count).to_string(), 36)
        } else if let Some((mark, length)) = redacted(rest) {
            (mark, length)
        } else {
            (first.to_string(), first.len_utf8())
        };
        out += &put;
        rest = &rest[length..];
    }
    reduce::hash(&out)
}

fn is_uuid(text: &str) -> bool {
    let mut bytes = text.bytes().enumerate();
    bytes.all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

/// `[REDACTED:rule:hash]` at the start of a text, without the hash, and its length.
fn redacted(text: &str) -> Option<(String, usize)> {
    let inner = text.strip_prefix("[REDACTED:")?;
    let inner = &inner[..inner.find(']')?];
    let (rule, _) = inner.rsplit_once(':')?;
    Some((
        format!("[REDACTED:{rule}]"),
        "[REDACTED:]".len() + inner.len(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_of_trials_are_unique() {
        let mut names = BTreeSet::new();
        for operation in ALL {
            for scenario in operation.on {
                let name = name(operation, scenario);
                assert!(names.insert(name.clone()), "{name} stands twice");
            }
        }
    }

    #[test]
    fn a_result_is_known_again_whatever_ids_were_drawn() {
        let one = "c0ffee00-0000-4000-8000-000000000001";
        let two = "c0ffee00-0000-4000-8000-000000000002";
        let text = |a: &str, b: &str| format!("{a} {b} {a} [REDACTED:jwt:{a}]");
        let first = identity(&text(one, two));
        assert_eq!(first, identity(&text(two, one)));
        assert_ne!(first, identity(&text(one, one)));
    }
}
