//! Small sessions that were put to real clients of many versions, and what each sent.
//!
//! `tests/conformance/probes` holds the sessions, `tests/conformance/versions.json` what was
//! sent, by version and session.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use unspool_model::view::client_profile::{ClientProfile, ClientRules, RuleChange};
use unspool_model::view::messages::{self, ResumeResult};
use unspool_testkit::conformance::observation::Outcome;
use unspool_testkit::conformance::probes::{self, numbers};
use unspool_testkit::conformance::reduce::{self, Texts};

use crate::make::read_bytes;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(text: &str, texts: &Texts, profile: ClientProfile) -> Outcome {
    let read = read_bytes(text);
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

#[test]
fn clients_of_all_versions_sent_what_we_say() {
    let folder = root().join("tests/conformance");
    let mut seen = probes::read(&folder.join("versions.json")).unwrap();
    seen.sort_by_cached_key(|seen| numbers(&seen.version));
    let mut inputs: BTreeMap<String, (String, Texts, String)> = BTreeMap::new();
    for probe in probes::names(&folder).unwrap() {
        let text = std::fs::read_to_string(probes::path(&folder, &probe)).unwrap();
        let (texts, input) = (Texts::of(&text), reduce::input_hash(&text));
        inputs.insert(probe, (text, texts, input));
    }
    let mut missed = Vec::new();
    for of_version in seen.chunk_by(|one, other| one.version == other.version) {
        let version = &of_version[0].version;
        let profile = ClientProfile::for_version(version).unwrap();
        let before = missed.len();
        for seen in of_version {
            let (text, texts, input) = &inputs[&seen.probe];
            assert_eq!(&seen.input, input, "{} has changed", seen.probe);
            if !plain(&seen.outcome, texts).agrees(&read(text, texts, profile)) {
                missed.push(format!("{version} {}", seen.probe));
            }
        }
        let (tried, new) = (of_version.len(), &missed[before..]);
        assert!(new.len() * 50 <= tried, "{version}, of {tried}: {new:#?}");
    }
    let (tried, equal) = (seen.len(), seen.len() - missed.len());
    println!("{equal} of {tried} equal; missed: {missed:#?}");
    assert!(equal * 100 >= tried * 99, "{equal} of {tried}: {missed:#?}");
}

/// One row for each rule: what the oldest client does, then each change.
fn table() -> String {
    let mut out = String::from("| rule | about | oldest | from then on |\n|---|---|---|---|\n");
    let history = ClientRules::history();
    for rule in history.chunk_by(|one, other| one.rule == other.rule) {
        let value = |change: &RuleChange| {
            let short: String = change.value.chars().take(60).collect();
            let more = if short == change.value { "" } else { "…" };
            format!("`{}{more}`", short.replace('|', "\\|"))
        };
        let changes = rule[1..].iter().filter_map(|change| {
            let first = change.first?;
            Some(format!("{first} {}", value(change)))
        });
        let changes: Vec<String> = changes.collect();
        let (name, about) = (rule[0].rule, rule[0].about.trim());
        let row = format!(
            "| `{name}` | {about} | {} | {} |\n",
            value(&rule[0]),
            changes.join(", ")
        );
        out.push_str(&row);
    }
    out
}

#[test]
fn the_table_of_rules_is_in_the_docs() {
    let path = root().join("docs/rules.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once("<!-- rules by version -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end of rules by version -->").unwrap();
    let wanted = format!(
        "{before}<!-- rules by version -->\n{}<!-- end of rules by version -->{after}",
        table()
    );
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, wanted).unwrap();
    } else {
        assert!(page == wanted, "docs/rules.md: run with UPDATE_EXPECT=1");
    }
}
