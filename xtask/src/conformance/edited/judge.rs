//! Whether what the client sent for a result is what it should be.

use super::super::compare::{self, Reader};
use super::super::record::{self, Outcome};
use super::super::{Problem, options::Options};
use super::operations::{Keeps, SOURCE};
use super::{Trial, source_of, trials};
use serde_json::Value;
use std::collections::BTreeMap;
use unspool_testkit::conformance::misses;
use unspool_testkit::conformance::reduce::{self, Texts};

/// What one version did with all results.
pub struct Row {
    /// The client version.
    pub version: String,
    /// By operation: tried, good.
    pub counts: BTreeMap<&'static str, (usize, usize)>,
    /// Results with which something is wrong.
    pub misses: Vec<Miss>,
}

/// A result with which something is wrong.
pub struct Miss {
    /// The name of the trial.
    pub trial: String,
    /// What was done.
    pub what: String,
    /// What is wrong.
    pub wrong: String,
}

impl Row {
    /// Everything is as it should be, or known and explained.
    pub fn passes(&self) -> bool {
        let known = |miss: &Miss| misses::reason(&self.version, &miss.trial).is_some();
        self.misses.iter().all(known)
    }

    /// All results: tried, good.
    pub fn total(&self) -> (usize, usize) {
        let add = |sum: (usize, usize), one: &(usize, usize)| (sum.0 + one.0, sum.1 + one.1);
        self.counts.values().fold((0, 0), add)
    }
}

/// Judges all trials of a version that were run.
pub fn version(options: &Options, version: &str) -> Result<Row, Problem> {
    let mut row = Row {
        version: version.to_owned(),
        counts: BTreeMap::new(),
        misses: Vec::new(),
    };
    let reader = compare::reader(options)?;
    for trial in trials(options, version)? {
        let Some(seen) = Seen::load(options, version, &trial.name) else {
            continue;
        };
        let counts = row.counts.entry(trial.operation.name).or_default();
        counts.0 += 1;
        match judge(options, version, &reader, &trial, &seen)? {
            None => counts.1 += 1,
            Some(wrong) => row.misses.push(Miss {
                what: trial.what(),
                trial: trial.name,
                wrong,
            }),
        }
    }
    Ok(row)
}

/// What was resumed and what the client did with it.
struct Seen {
    text: String,
    texts: Texts,
    outcome: Outcome,
}

impl Seen {
    fn load(options: &Options, version: &str, name: &str) -> Option<Seen> {
        let known = record::load_made(options, version, name)?;
        let texts = Texts::of(&known.text);
        let outcome = match known.request {
            Some(request) => Outcome::Sent(reduce::history(&request["messages"], &texts)),
            None => known.outcome,
        };
        Some(Seen {
            outcome: compare::plain(options, outcome, &texts),
            text: known.text,
            texts,
        })
    }
}

/// What is wrong, in words.
fn judge(
    options: &Options,
    version: &str,
    reader: &Reader,
    trial: &Trial,
    seen: &Seen,
) -> Result<Option<String>, Problem> {
    let file = std::env::temp_dir().join(format!("unspool-edited-{}.jsonl", std::process::id()));
    std::fs::write(&file, &seen.text)?;
    let read = compare::read(reader, &file, version, &seen.texts);
    let _ = std::fs::remove_file(&file);
    let read = read?;
    let wrong = match &seen.outcome {
        Outcome::Sent(history) if !history.is_empty() => None,
        // A damaged source need not resume; what is made of it must.
        _ if trial.operation.name == SOURCE => None,
        Outcome::Sent(_) | Outcome::None => Some("it has no conversation".to_owned()),
        Outcome::Hang => Some("it hangs".to_owned()),
        Outcome::Failed(words) => Some(format!("it was not made or not resumed: {words}")),
    };
    if wrong.is_some() {
        return Ok(wrong);
    }
    if !seen.outcome.agrees(&read) {
        explain(options, version, trial, &seen.outcome, &read);
        return Ok(Some("the reader says something else".to_owned()));
    }
    if trial.operation.keeps == Keeps::Asked {
        return Ok(None);
    }
    let Some(source) = Seen::load(options, version, &source_of(trial)) else {
        return Ok(Some("its source was not resumed".to_owned()));
    };
    let kept = match trial.operation.keeps {
        Keeps::All => holds(version, &seen.outcome, &source.outcome),
        _ => seen.outcome.agrees(&source.outcome),
    };
    if !kept {
        explain(options, version, trial, &seen.outcome, &source.outcome);
    }
    Ok((!kept).then(|| "the client sent something else for the source".to_owned()))
}

fn explain(options: &Options, version: &str, trial: &Trial, seen: &Outcome, other: &Outcome) {
    if options.verbose {
        let difference = compare::difference(seen, other);
        println!("{version} {} ({})\n{difference}", trial.name, trial.what());
    }
}

/// Clients that lose calls and results which stand beside each other.
const LOSING: [&str; 2] = ["2.0.50", "2.1.45"];

/// Whether all that was sent for the source was sent again, in order.
///
/// Results of one message may change places, which means nothing to the model. For clients that
/// lose parallel calls, calls and results may come on top.
fn holds(version: &str, seen: &Outcome, source: &Outcome) -> bool {
    let (Outcome::Sent(seen), Outcome::Sent(source)) = (seen, source) else {
        return false;
    };
    let (seen, source) = (ordered(seen), ordered(source));
    if reduce::same(&seen, &source) {
        return true;
    }
    let mut left = blocks(&source).into_iter().peekable();
    for block in blocks(&seen) {
        if left.peek() == Some(&block) {
            left.next();
        } else if !block.starts_with("tool_") {
            return false;
        }
    }
    left.next().is_none() && LOSING.contains(&version)
}

/// The same messages, with the results in each of them in the order of their names.
fn ordered(history: &[Value]) -> Vec<Value> {
    let mut history = history.to_vec();
    for message in &mut history {
        if let Some(blocks) = message["blocks"].as_array_mut() {
            let is_result =
                |block: &Value| block.as_str().is_some_and(|b| b.starts_with("tool_result"));
            for run in blocks.chunk_by_mut(|one, other| is_result(one) && is_result(other)) {
                run.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
            }
        }
    }
    history
}

fn blocks(history: &[Value]) -> Vec<&str> {
    let all = history
        .iter()
        .filter_map(|message| message["blocks"].as_array());
    all.flatten().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sent(messages: &[&[&str]]) -> Outcome {
        let message = |blocks: &&[&str]| json!({"role": "user", "blocks": blocks});
        Outcome::Sent(messages.iter().map(message).collect())
    }

    #[test]
    fn results_of_one_message_may_change_places_but_none_may_be_missing() {
        let source = sent(&[&["text a"], &["tool_result 1 x", "tool_result 2 y"]]);
        let turned = sent(&[&["text a"], &["tool_result 2 y", "tool_result 1 x"]]);
        let less = sent(&[&["text a"], &["tool_result 2 y"]]);
        assert!(holds("2.1.325", &turned, &source));
        assert!(!holds("2.1.325", &less, &source));
        assert!(!holds("2.0.50", &less, &source));
    }

    #[test]
    fn only_clients_that_lose_calls_may_send_more_of_them() {
        let source = sent(&[&["text a"], &["tool_result 2 y"]]);
        let more = sent(&[&["text a"], &["tool_result 1 x", "tool_result 2 y"]]);
        let other = sent(&[&["text a", "text b"], &["tool_result 2 y"]]);
        assert!(holds("2.1.45", &more, &source));
        assert!(!holds("2.1.200", &more, &source));
        assert!(!holds("2.1.45", &other, &source));
    }
}
