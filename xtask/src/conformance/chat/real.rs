//! Real clients that resume what ours wrote.

use super::super::Problem;
use super::super::compare::{self, Reader};
use super::super::options::Options;
use super::super::record::{self, Observation, Outcome};
use super::super::run::{self, Place};
use super::{Written, alike, folder, judge, stage, written};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use unspool_testkit::conformance::reduce::{self, Texts};

/// What one client did.
pub struct Row {
    /// The client version.
    pub version: String,
    /// Transcripts that were resumed.
    pub tried: usize,
    /// Those for which it sent a conversation.
    pub resumed: usize,
    /// Those for which it sent what we say that it would.
    pub foretold: usize,
    /// Those for which it sent the conversation that we would send.
    pub same: usize,
    /// Those for which it sent something else for a known reason.
    pub otherwise: BTreeMap<&'static str, usize>,
    /// What nothing explains, in words.
    pub misses: Vec<String>,
}

/// Resumes the chosen transcripts that were not resumed yet.
pub fn version(options: &Options, version: &str) -> Result<(), Problem> {
    run::bring_up()?;
    let chosen = chosen(options)?;
    run::each(options.jobs, &chosen, |(one, path), worker| {
        let name = name(path);
        let Ok(text) = std::fs::read_to_string(path) else {
            return;
        };
        let input = reduce::hash(&text);
        let known = record::load_made(options, version, &name);
        if known.is_some_and(|known| known.input == input) {
            return;
        }
        run::say(version, &name, || {
            let place = copy(one, version, worker)?;
            let id = path.file_stem().unwrap_or_default().to_string_lossy();
            let texts = Texts::of(&text);
            let (outcome, request) = run::resume(options, version, &place, &id, &texts)?;
            std::fs::remove_dir_all(&place.root)?;
            let observation = Observation {
                case: name.clone(),
                input,
                outcome: outcome.clone(),
            };
            record::save_made(options, version, &name, &text)?;
            record::save(options, version, &observation, &request)?;
            Ok(outcome)
        });
    });
    Ok(())
}

/// Transcripts from everywhere among all of them, as many as are asked for.
fn chosen(options: &Options) -> Result<Vec<(Written, PathBuf)>, Problem> {
    let mut all = Vec::new();
    for one in written(&folder(options))? {
        if let Some(path) = stage::transcripts(&one.place()).pop() {
            all.push((one, path));
        }
    }
    let step = (all.len() / options.real.max(1)).max(1);
    Ok(all.into_iter().step_by(step).take(options.real).collect())
}

fn name(path: &Path) -> String {
    let id = path.file_stem().unwrap_or_default().to_string_lossy();
    format!("chat/{id}")
}

/// The same conversation in a home that the client may change. The directory stays: it is
/// where the session belongs.
fn copy(one: &Written, version: &str, worker: usize) -> Result<Place, Problem> {
    let place = one.place();
    let root = one.root.join(format!("real-{version}-{worker}"));
    std::fs::create_dir_all(&root)?;
    let config = root.join("config");
    let copied = Command::new("cp")
        .arg("-r")
        .args([&place.config, &config])
        .status()?;
    if !copied.success() {
        return Err("the home could not be copied".into());
    }
    Ok(Place {
        root,
        cwd: place.cwd,
        config,
    })
}

/// Holds what a client sent against what we say.
pub fn judge(options: &Options, version: &str) -> Result<Row, Problem> {
    let mut row = Row {
        version: version.to_owned(),
        tried: 0,
        resumed: 0,
        foretold: 0,
        same: 0,
        otherwise: BTreeMap::new(),
        misses: Vec::new(),
    };
    let reader = Reader::Ours(options.program.clone().unwrap_or_default());
    for (one, path) in chosen(options)? {
        let Some(known) = record::load_made(options, version, &name(&path)) else {
            continue;
        };
        let texts = Texts::of(&known.text);
        let seen = match &known.request {
            Some(request) => Outcome::Sent(reduce::history(&request["messages"], &texts)),
            None => known.outcome,
        };
        let seen = compare::plain(options, seen, &texts);
        row.tried += 1;
        if !matches!(&seen, Outcome::Sent(history) if !history.is_empty()) {
            let miss = format!("{version} {}: no conversation was sent", one.name());
            row.misses.push(miss);
            continue;
        }
        row.resumed += 1;
        let foretold = compare::read(&reader, &path, version, &texts)?;
        let mut miss = |what: &str, seen: &Outcome, read: &Outcome| {
            let difference = compare::difference(seen, read);
            let name = one.name();
            row.misses
                .push(format!("{version} {name}: not {what}\n{difference}"));
        };
        match seen.agrees(&foretold) {
            true => row.foretold += 1,
            false => miss("as foretold", &seen, &foretold),
        }
        let request = known.request.unwrap_or_default();
        let seen = Outcome::Sent(alike::history(&request["messages"], &texts));
        let seen = compare::plain(options, seen, &texts);
        let reasons = alike::reasons(&seen, known.text.as_bytes(), version, &texts)?;
        match reasons {
            Some(reasons) if reasons.is_empty() => row.same += 1,
            Some(reasons) => {
                for reason in reasons {
                    *row.otherwise.entry(reason).or_default() += 1;
                }
            }
            None => {
                let own = judge::own(known.text.as_bytes()).unwrap_or_default();
                let own = Outcome::Sent(alike::history(&serde_json::from_str(&own)?, &texts));
                miss("as we send it", &seen, &own);
            }
        }
    }
    Ok(row)
}
