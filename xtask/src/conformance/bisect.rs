//! `cargo xtask conformance bisect`: in which versions the answers to probes change.
//!
//! Between two versions that answer differently one in the middle is tried, until they are
//! neighbours. A change that is taken back between two tried versions is not found.

use super::options::Options;
use super::probes::{self, Wanted};
use super::record::Outcome;
use super::{Problem, client};
use std::collections::{BTreeMap, BTreeSet};
use unspool_testkit::conformance::observation::Outcome::{Hang, Sent};
use unspool_testkit::conformance::probes::{Seen, numbers};
use unspool_testkit::conformance::reduce;

/// Bisects the probes that were named, or all; prints every change.
pub fn perform(options: &Options) -> Result<bool, Problem> {
    let names = probes::names(options)?;
    let versions = within(options, client::versions()?);
    let known = probes::known()?;
    if options.run {
        search(options, &known, &names, &versions)?;
    }
    let seen = answers(options, &known, &names, &versions)?;
    for (probe, edges) in changes_among(&seen, &versions) {
        println!("{probe}: {}", edges.join(", "));
    }
    if options.write_fixtures || options.write_docs {
        return probes::finish(options, &known, &names);
    }
    Ok(true)
}

/// Tries versions until those around each change are neighbours.
fn search(
    options: &Options,
    known: &[Seen],
    names: &[String],
    versions: &[String],
) -> Result<(), Problem> {
    let mut tried: BTreeSet<(String, String)> = BTreeSet::new();
    probes::observe(options, &ends(options, names, versions))?;
    loop {
        let seen = answers(options, known, names, versions)?;
        let mut wanted = middles(&seen, versions, &tried);
        // A client that gives no answer is asked once.
        wanted.retain(|version, probes| {
            probes.retain(|probe| tried.insert((version.clone(), probe.clone())));
            !probes.is_empty()
        });
        if wanted.is_empty() {
            return Ok(());
        }
        probes::observe(options, &wanted)?;
    }
}

/// What these versions made of these probes, without reminders.
fn answers(
    options: &Options,
    known: &[Seen],
    names: &[String],
    versions: &[String],
) -> Result<Vec<Seen>, Problem> {
    let mut seen = probes::seen(options, known)?;
    seen.retain(|seen| names.contains(&seen.probe) && versions.contains(&seen.version));
    probes::plain(options, seen)
}

fn within(options: &Options, mut versions: Vec<String>) -> Vec<String> {
    if let Some((from, to)) = &options.between {
        let range = numbers(from)..=numbers(to);
        versions.retain(|version| range.contains(&numbers(version)));
    }
    versions
}

/// Both ends of what was asked for; without that what was seen before is enough.
fn ends(options: &Options, names: &[String], versions: &[String]) -> Wanted {
    let ends = match &options.between {
        Some(_) => [versions.first(), versions.last()],
        None => [None, None],
    };
    let all: BTreeSet<String> = names.iter().cloned().collect();
    let ends = ends.into_iter().flatten().cloned();
    ends.map(|version| (version, all.clone())).collect()
}

/// A version between each two that answer differently; the same for many probes, where it can be.
fn middles(seen: &[Seen], versions: &[String], tried: &BTreeSet<(String, String)>) -> Wanted {
    let mut wanted = Wanted::new();
    let mut stretches = Vec::new();
    for (probe, edges) in edges(seen) {
        for (before, after) in edges {
            let place = |wanted: &str| versions.iter().position(|version| version == wanted);
            let (Some(from), Some(to)) = (place(before), place(after)) else {
                continue;
            };
            let open = versions[from + 1..to].iter();
            let open: Vec<&String> = open
                .filter(|version| !tried.contains(&((*version).clone(), probe.to_owned())))
                .collect();
            if !open.is_empty() {
                stretches.push((open, probe));
            }
        }
    }
    // The shortest first: what they need is good enough for the longer ones around them.
    stretches.sort();
    stretches.sort_by_key(|(open, _)| open.len());
    for (open, probe) in stretches {
        let half = &open[open.len() / 4..open.len() - open.len() / 4];
        let shared = half.iter().find(|version| wanted.contains_key(**version));
        let version = shared.map_or(open[open.len() / 2], |version| *version);
        let probes = wanted.entry(version.clone()).or_default();
        probes.insert(probe.to_owned());
    }
    wanted
}

/// For each probe the versions between which its answer changes.
fn edges(seen: &[Seen]) -> BTreeMap<&str, Vec<(&str, &str)>> {
    let mut sorted: Vec<&Seen> = seen.iter().collect();
    sorted.sort_by_cached_key(|seen| (seen.probe.clone(), numbers(&seen.version)));
    let mut edges: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for pair in sorted.windows(2) {
        let [one, other] = pair else { continue };
        if one.probe == other.probe && !alike(&one.outcome, &other.outcome) {
            let edges = edges.entry(&one.probe).or_default();
            edges.push((&one.version, &other.version));
        }
    }
    edges
}

/// Whether two clients answer alike; whatever the words of a failure.
fn alike(one: &Outcome, other: &Outcome) -> bool {
    match (one, other) {
        (Sent(one), Sent(other)) => reduce::same(one, other),
        (Sent(_), _) | (_, Sent(_)) => false,
        (one, other) => (*one == Hang) == (*other == Hang),
    }
}

/// Every change, in words; versions that lie between are not known.
pub fn changes(seen: &[Seen]) -> Vec<(String, Vec<String>)> {
    let words = |(before, after): &(&str, &str)| format!("{after} ({before})");
    let edges = edges(seen).into_iter();
    edges
        .map(|(probe, edges)| (probe.to_owned(), edges.iter().map(words).collect()))
        .collect()
}

/// The same, without the version before where nothing lies between.
fn changes_among(seen: &[Seen], versions: &[String]) -> Vec<(String, Vec<String>)> {
    let place = |wanted: &str| versions.iter().position(|version| version == wanted);
    let words = |(before, after): &(&str, &str)| {
        let open = match (place(before), place(after)) {
            (Some(from), Some(to)) => to - from - 1,
            _ => 0,
        };
        match open {
            0 => after.to_string(),
            open => format!("{after} ({open} untried after {before})"),
        }
    };
    let edges = edges(seen).into_iter();
    edges
        .map(|(probe, edges)| (probe.to_owned(), edges.iter().map(words).collect()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seen(version: &str, probe: &str, text: &str) -> Seen {
        Seen {
            version: version.to_owned(),
            probe: probe.to_owned(),
            input: String::new(),
            outcome: Sent(vec![json!({"role": "user", "blocks": [text]})]),
        }
    }

    fn versions() -> Vec<String> {
        (0..100).map(|patch| format!("2.1.{patch}")).collect()
    }

    /// How many versions are tried until the change is between neighbours.
    fn steps(change: usize) -> usize {
        let versions = versions();
        let answer = |at: usize| seen(&versions[at], "p", if at < change { "a" } else { "b" });
        let mut all = vec![answer(0), answer(99)];
        let mut tried = BTreeSet::new();
        loop {
            let wanted = middles(&all, &versions, &tried);
            let Some(version) = wanted.keys().next() else {
                break;
            };
            let at = versions.iter().position(|known| known == version);
            all.push(answer(at.unwrap_or_default()));
            tried.insert((version.clone(), "p".to_owned()));
        }
        let changes = changes_among(&all, &versions);
        assert_eq!(changes, [("p".to_owned(), vec![format!("2.1.{change}")])]);
        all.len() - 2
    }

    #[test]
    fn a_change_is_found_with_few_versions() {
        for change in [1, 2, 37, 50, 98, 99] {
            assert!(steps(change) <= 7, "{change}: {}", steps(change));
        }
    }

    #[test]
    fn stretches_that_overlap_are_tried_with_the_same_version() {
        let all = [
            seen("2.1.0", "p", "a"),
            seen("2.1.90", "p", "b"),
            seen("2.1.10", "q", "a"),
            seen("2.1.80", "q", "b"),
        ];
        let wanted = middles(&all, &versions(), &BTreeSet::new());
        assert_eq!(wanted.len(), 1, "{wanted:?}");
    }

    #[test]
    fn clients_that_give_up_and_those_that_find_nothing_are_alike() {
        assert!(alike(&Outcome::None, &Outcome::Failed("x".to_owned())));
        assert!(!alike(&Outcome::None, &Hang));
    }
}
