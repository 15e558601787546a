//! `cargo xtask conformance probes`: what clients of many versions make of small sessions.
//!
//! The sessions are `tests/conformance/probes`, what was seen is kept in
//! `tests/conformance/versions.json`. What a run saw counts before what the repository remembers.

use super::options::{self, Options};
use super::record::{self, Outcome};
use super::{Problem, bisect, client, compare, reenter, report};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::client_profile::{ClientProfile, ClientVersion};
use unspool_model::view::messages::{self, ResumeResult};
use unspool_testkit::conformance::cases::given;
use unspool_testkit::conformance::probes::{self, Seen, numbers};
use unspool_testkit::conformance::reduce::{self, Texts};

/// The heading of the part of the page.
pub const HEADING: &str = "## Single probes, version by version";

/// Probes by version.
pub type Wanted = BTreeMap<String, BTreeSet<String>>;

/// Puts probes to the versions that were named, or to all that were tried before; true if what
/// we say is right.
pub fn perform(options: &Options) -> Result<bool, Problem> {
    let probes = names(options)?;
    if options.run {
        let all = || (probes.iter().cloned()).collect::<BTreeSet<String>>();
        let versions = versions(options)?;
        let wanted = versions.into_iter().map(|version| (version, all()));
        observe(options, &wanted.collect())?;
    }
    finish(options, &known()?, &probes)
}

/// Compares, and writes what is asked for.
pub fn finish(options: &Options, known: &[Seen], probes: &[String]) -> Result<bool, Problem> {
    let seen = seen(options, known)?;
    if options.write_fixtures {
        std::fs::write(fixture(), probes::write(&seen))?;
    }
    let mut shown = seen.clone();
    shown.retain(|seen| {
        let version = &seen.version;
        let asked = options.versions.is_empty() || options.versions.contains(version);
        asked && probes.contains(&seen.probe)
    });
    let rows = rows(options, &shown)?;
    print!("{}", table(&rows));
    if options.write_docs {
        let rows = self::rows(options, &seen)?;
        let section = section(&rows, &plain(options, seen)?);
        report::put_section(HEADING, &section)?;
    }
    Ok(rows.iter().all(Row::passes))
}

/// The probes that were named, or all.
pub fn names(options: &Options) -> Result<Vec<String>, Problem> {
    let mut names = probes::names(&folder())?;
    if let Some(unknown) = options.named.iter().find(|name| !names.contains(name)) {
        return Err(format!("there is no probe `{unknown}`").into());
    }
    let only = options.only.as_deref().unwrap_or_default();
    names.retain(|name| {
        name.contains(only) && (options.named.is_empty() || options.named.contains(name))
    });
    Ok(names)
}

fn versions(options: &Options) -> Result<Vec<String>, Problem> {
    if !options.versions.is_empty() {
        return Ok(options.versions.clone());
    }
    let mut versions: Vec<String> = known()?.into_iter().map(|seen| seen.version).collect();
    versions.push(ClientVersion::NEWEST.to_string());
    versions.sort_by_key(|version| numbers(version));
    versions.dedup();
    Ok(versions)
}

/// Puts probes to clients, unless it was done before.
pub fn observe(options: &Options, wanted: &Wanted) -> Result<(), Problem> {
    for (version, probes) in wanted {
        let mut inside = options.clone();
        inside.only = None;
        for probe in probes {
            let path = probes::path(&folder(), probe);
            if record::load(options, version, &given(&path)?).is_none() {
                inside.files.push(path);
            }
        }
        if !inside.files.is_empty() {
            let tried = client::install(options, version).and_then(|()| reenter(&inside, version));
            if let Err(problem) = tried {
                eprintln!("{version} could not be tried: {problem}");
            }
        }
    }
    Ok(())
}

/// What the repository remembers, of the probes as they are.
pub fn known() -> Result<Vec<Seen>, Problem> {
    let mut inputs = BTreeMap::new();
    for probe in probes::names(&folder())? {
        let text = std::fs::read_to_string(probes::path(&folder(), &probe))?;
        inputs.insert(probe, reduce::input_hash(&text));
    }
    let mut seen = probes::read(&fixture())?;
    seen.retain(|seen| inputs.get(&seen.probe) == Some(&seen.input));
    Ok(seen)
}

/// What was seen in runs here, and what else the repository remembers.
pub fn seen(options: &Options, known: &[Seen]) -> Result<Vec<Seen>, Problem> {
    let mut cases = Vec::new();
    for probe in probes::names(&folder())? {
        let case = given(&probes::path(&folder(), &probe))?;
        cases.push((probe, case));
    }
    let mut all: BTreeMap<(String, String), Seen> = BTreeMap::new();
    for seen in known {
        all.insert((seen.version.clone(), seen.probe.clone()), seen.clone());
    }
    for entry in std::fs::read_dir(&options.record).into_iter().flatten() {
        let version = entry?.file_name().to_string_lossy().into_owned();
        for (probe, case) in &cases {
            if let Some(found) = record::load(options, &version, case) {
                let seen = Seen {
                    version: version.clone(),
                    probe: probe.clone(),
                    input: found.input,
                    outcome: found.outcome,
                };
                all.insert((version.clone(), probe.clone()), seen);
            }
        }
    }
    Ok(all.into_values().collect())
}

/// The same without reminders.
pub fn plain(options: &Options, mut seen: Vec<Seen>) -> Result<Vec<Seen>, Problem> {
    let mut texts = BTreeMap::new();
    for probe in probes::names(&folder())? {
        let text = std::fs::read_to_string(probes::path(&folder(), &probe))?;
        texts.insert(probe, Texts::of(&text));
    }
    let nothing = Texts::default();
    for seen in &mut seen {
        let outcome = std::mem::replace(&mut seen.outcome, Outcome::None);
        let texts = texts.get(&seen.probe).unwrap_or(&nothing);
        seen.outcome = compare::plain(options, outcome, texts);
    }
    Ok(seen)
}

/// What our reader says that a version would send.
fn ours(text: &str, texts: &Texts, version: &str) -> Result<Outcome, Problem> {
    let profile = ClientProfile::for_version(version).ok_or("a version has numbers")?;
    let log = Log::new(text.as_bytes().to_vec());
    let session = Session::from_log(&log, TranscriptRole::Main);
    Ok(match messages::messages(&session, &log, profile) {
        ResumeResult::Messages(all) => {
            let all = serde_json::from_str(&messages::to_json(&all))?;
            Outcome::Sent(reduce::history(&all, texts))
        }
        ResumeResult::NoConversation => Outcome::None,
        ResumeResult::Hangs => Outcome::Hang,
    })
}

/// How one version fares.
struct Row {
    version: String,
    tried: usize,
    missed: Vec<String>,
}

impl Row {
    fn equal(&self) -> usize {
        self.tried - self.missed.len()
    }

    /// At least 98 of 100 are equal.
    fn passes(&self) -> bool {
        self.equal() * 100 >= self.tried * 98
    }
}

fn rows(options: &Options, seen: &[Seen]) -> Result<Vec<Row>, Problem> {
    let mut rows: BTreeMap<Vec<u32>, Row> = BTreeMap::new();
    for seen in seen {
        let text = std::fs::read_to_string(probes::path(&folder(), &seen.probe))?;
        let texts = Texts::of(&text);
        let row = rows.entry(numbers(&seen.version)).or_insert_with(|| Row {
            version: seen.version.clone(),
            tried: 0,
            missed: Vec::new(),
        });
        row.tried += 1;
        let sent = compare::plain(options, seen.outcome.clone(), &texts);
        let ours = ours(&text, &texts, &seen.version)?;
        if sent.agrees(&ours) {
            continue;
        }
        row.missed.push(seen.probe.clone());
        if options.verbose {
            let difference = compare::difference(&sent, &ours);
            println!("{} {}\n{difference}", seen.version, seen.probe);
        }
    }
    Ok(rows.into_values().collect())
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from("| version | probes | equal | not equal |\n|---|---|---|---|\n");
    for row in rows {
        let missed: Vec<String> = row.missed.iter().map(|name| format!("`{name}`")).collect();
        let (tried, equal) = (row.tried, row.equal());
        text += &format!(
            "| {} | {tried} | {equal} | {} |\n",
            row.version,
            missed.join(", ")
        );
    }
    let tried: usize = rows.iter().map(|row| row.tried).sum();
    let equal: usize = rows.iter().map(Row::equal).sum();
    let share = 100.0 * equal as f64 / tried.max(1) as f64;
    text += &format!(
        "| all {} | {tried} | {equal} | {share:.2} % |\n",
        rows.len()
    );
    text
}

fn section(rows: &[Row], seen: &[Seen]) -> String {
    let probes: BTreeSet<&str> = seen.iter().map(|seen| seen.probe.as_str()).collect();
    let changes = bisect::changes(seen);
    let count: usize = changes.iter().map(|(_, edges)| edges.len()).sum();
    let mut text = format!("{HEADING}\n\n{}\n", include_str!("probes/preamble.md"));
    text += &format!(
        "{} probes, {} versions, {count} changes of an answer.\n\n{}\n",
        probes.len(),
        rows.len(),
        table(rows)
    );
    text += "Where the answer to a probe changes: the first version with another answer, in brackets \
             the last one tried before it if versions lie between.\n\n\
             | probe | changes |\n|---|---|\n";
    for (probe, edges) in changes {
        text += &format!("| `{probe}` | {} |\n", edges.join(", "));
    }
    text
}

fn folder() -> PathBuf {
    options::root().join("tests/conformance")
}

fn fixture() -> PathBuf {
    folder().join("versions.json")
}
