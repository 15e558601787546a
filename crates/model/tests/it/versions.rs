//! Small sessions that were put to real clients of many versions, and what each sent.
//!
//! `tests/conformance/probes` holds the sessions, `tests/conformance/versions.json` what was
//! sent, by version and session.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use unspool_model::view::messages::{self, Resume};
use unspool_model::view::profile::{Profile, RuleChange, Rules};
use unspool_testkit::conformance::observation::{self, Outcome};
use unspool_testkit::conformance::reduce::{self, Texts};

use crate::make::read_bytes;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(text: &str, texts: &Texts, profile: Profile) -> Outcome {
    let read = read_bytes(text);
    match messages::messages(&read.session, &read.log, profile) {
        Resume::Messages(all) => {
            let all = serde_json::from_str(&messages::to_json(&all)).unwrap();
            Outcome::Sent(reduce::history(&all, texts))
        }
        Resume::NoConversation => Outcome::None,
        Resume::Hangs => Outcome::Hang,
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
    let seen = observation::read_fixture(&folder.join("versions.json")).unwrap();
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut missed = Vec::new();
    for observation in &seen {
        let (version, probe) = observation.case.split_once('/').unwrap();
        let text = std::fs::read_to_string(folder.join(format!("probes/{probe}.jsonl"))).unwrap();
        let texts = Texts::of(&text);
        let ours = read(&text, &texts, Profile::for_version(version).unwrap());
        let (tried, equal) = counts.entry(version.to_owned()).or_default();
        *tried += 1;
        if plain(&observation.outcome, &texts).agrees(&ours) {
            *equal += 1;
        } else {
            missed.push(observation.case.clone());
        }
    }
    let tried: usize = counts.values().map(|count| count.0).sum();
    let equal = tried - missed.len();
    println!("{equal} of {tried} equal; missed: {missed:#?}\n{counts:#?}");
    assert!(
        equal * 1_000 >= tried * 966,
        "{equal} of {tried}: {missed:#?}"
    );
}

/// One row for each rule: what the oldest client does, then each change.
fn table() -> String {
    let mut out = String::from("| rule | about | oldest | from then on |\n|---|---|---|---|\n");
    let history = Rules::history();
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
