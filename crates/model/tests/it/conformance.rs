//! What the real clients sent, and what we say they would have sent.
//!
//! The observations were made by `cargo xtask conformance`; the files they were made with are
//! made again from the recordings in this repository.

use std::collections::BTreeSet;
use std::path::Path;

use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::messages::{self, ResumeResult};
use unspool_testkit::conformance::cases::{self, Case};
use unspool_testkit::conformance::observation::{self, Outcome};
use unspool_testkit::conformance::reduce::{self, Texts};
use unspool_testkit::conformance::{misses, mutations};

use crate::make::read_bytes;

fn read(case: &Case, texts: &Texts, profile: ClientProfile) -> Outcome {
    let read = read_bytes(case.text.clone());
    match messages::messages(&read.session, &read.log, profile) {
        ResumeResult::Messages(all) => {
            let all = serde_json::from_str(&messages::to_json(&all)).unwrap();
            Outcome::Sent(reduce::history(&all, texts))
        }
        ResumeResult::NoConversation => Outcome::None,
        ResumeResult::Hangs => Outcome::Hang,
    }
}

fn plain(seen: &Outcome, texts: &Texts) -> Outcome {
    match seen {
        Outcome::Sent(history) => Outcome::Sent(reduce::without_reminders(history, texts)),
        other => other.clone(),
    }
}

/// Compares everything that was seen of a version; misses must be exactly the known ones.
fn compare(version: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let fixture = root.join(format!("tests/conformance/{version}.json"));
    let mut seen: Vec<_> = observation::read_fixture(&fixture).unwrap();
    seen.sort_by(|one, other| one.case.cmp(&other.case));
    let profile = ClientProfile::for_version(version).unwrap();
    let (mut compared, mut edits, mut missed) = (0, 0, BTreeSet::new());
    let mut tried = BTreeSet::new();
    for case in cases::of(&root.join("crates/testkit/corpus"), version).unwrap() {
        let Ok(at) = seen.binary_search_by(|seen| seen.case.as_str().cmp(&case.name)) else {
            continue;
        };
        // A recording whose copy here was shortened is not what the client was given.
        if seen[at].input != reduce::input_hash(&case.text) {
            assert!(!case.name.starts_with("edit/"), "{} has changed", case.name);
            continue;
        }
        compared += 1;
        edits += usize::from(case.name.starts_with("edit/"));
        tried.insert(case.name.clone());
        let texts = Texts::of(&case.text);
        let outcome = plain(&seen[at].outcome, &texts);
        if !outcome.agrees(&read(&case, &texts, profile)) {
            missed.insert(case.name);
        }
    }
    assert_eq!(edits, mutations::all().len(), "every edit was observed");
    let known = misses::of(version).filter(|case| tried.contains(*case));
    let known: BTreeSet<String> = known.map(str::to_owned).collect();
    assert_eq!(missed, known, "{version}: misses, and those we know of");
    assert!(missed.len() * 100 <= compared, "{version}: 99 of 100");
}

#[test]
fn messages_are_those_that_2_0_50_sends() {
    compare("2.0.50");
}

#[test]
fn messages_are_those_that_2_1_45_sends() {
    compare("2.1.45");
}

#[test]
fn messages_are_those_that_2_1_100_sends() {
    compare("2.1.100");
}

#[test]
fn messages_are_those_that_2_1_200_sends() {
    compare("2.1.200");
}

#[test]
fn messages_are_those_that_2_1_325_sends() {
    compare("2.1.325");
}

#[test]
fn messages_are_those_that_2_1_327_sends() {
    compare("2.1.327");
}
