//! The arguments of the task.

use super::Problem;
use std::path::{Path, PathBuf};
use unspool_testkit::conformance::bases::PROFILES;

/// What to do, and where things are.
#[derive(Clone)]
pub struct Options {
    /// Client versions; all profiles unless named.
    pub versions: Vec<String>,
    /// Recorded sessions by version and scenario.
    pub corpus: PathBuf,
    /// Installed clients; outside the repository.
    pub cache: PathBuf,
    /// Observations, one file per case.
    pub record: PathBuf,
    /// Prints the messages of a file: `CMD FILE VERSION`.
    pub reader: Option<String>,
    /// Only cases whose names contain this.
    pub only: Option<String>,
    /// Try these files instead of the cases.
    pub files: Vec<PathBuf>,
    /// Clients at a time.
    pub jobs: usize,
    /// Seconds until a client counts as hanging.
    pub timeout: u64,
    /// Whether to run clients, or only to compare what is recorded.
    pub run: bool,
    /// Whether results are only made, and resumed by nobody.
    pub only_make: bool,
    /// Whether to write `docs/conformance.md`.
    pub write_docs: bool,
    /// Whether to write `tests/conformance/<version>.json`.
    pub write_fixtures: bool,
    /// Whether reminders take part in the comparison.
    pub with_reminders: bool,
    /// Whether to print each difference.
    pub verbose: bool,
    /// Whether to try what the program makes of sessions, instead of the cases.
    pub edited: bool,
    /// Whether to try sessions that our own client writes.
    pub chat: bool,
    /// Whether to put the probes to clients.
    pub probes: bool,
    /// Whether to find the versions in which the answers to probes change.
    pub bisect: bool,
    /// Whether to try the newest client there is.
    pub newest: bool,
    /// Only these probes.
    pub named: Vec<String>,
    /// Only between these versions.
    pub between: Option<(String, String)>,
    /// Bytes that installed clients may take.
    pub room: u64,
    /// How many of them are written.
    pub sessions: u64,
    /// Where their seeds begin.
    pub seed: u64,
    /// How many of them each real client resumes.
    pub real: usize,
    /// The program to try; built unless named.
    pub program: Option<PathBuf>,
    /// Set when running inside the namespace.
    pub inside: Option<String>,
}

const USAGE: &str = "usage: cargo xtask conformance [edited | chat | probes | bisect [PROBE…] [FROM..TO] | --newest] [VERSION…] [--corpus DIR] [--cache DIR] \
[--record DIR] [--reader CMD] [--program FILE] [--only TEXT] [--file FILE]… [--jobs N] [--timeout SECONDS] [--no-run] [--only-make] \
[--sessions N] [--seed N] [--real N] [--room GIGABYTES] [--verbose] [--with-reminders] [--write-docs] [--write-fixtures]";

impl Options {
    /// Reads the arguments; every path becomes absolute.
    pub fn parse(arguments: &[String]) -> Result<Options, Problem> {
        let mut options = Options::standard()?;
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().cloned().ok_or(USAGE);
            match argument.as_str() {
                "--corpus" => options.corpus = std::path::absolute(value()?)?,
                "--cache" => options.cache = std::path::absolute(value()?)?,
                "--record" => options.record = std::path::absolute(value()?)?,
                "--reader" => options.reader = Some(value()?),
                "--only" => options.only = Some(value()?),
                "--file" => options.files.push(std::path::absolute(value()?)?),
                "--jobs" => options.jobs = value()?.parse()?,
                "--timeout" => options.timeout = value()?.parse()?,
                "--inside" => options.inside = Some(value()?),
                "--program" => options.program = Some(std::path::absolute(value()?)?),
                "edited" => options.edited = true,
                "chat" => options.chat = true,
                "probes" => options.probes = true,
                "bisect" => options.bisect = true,
                "--newest" => options.newest = true,
                "--room" => options.room = value()?.parse::<u64>()? << 30,
                "--sessions" => options.sessions = value()?.parse()?,
                "--seed" => options.seed = value()?.parse()?,
                "--real" => options.real = value()?.parse()?,
                "--no-run" => options.run = false,
                "--only-make" => options.only_make = true,
                "--write-docs" => options.write_docs = true,
                "--write-fixtures" => options.write_fixtures = true,
                "--with-reminders" => options.with_reminders = true,
                "--verbose" => options.verbose = true,
                version if version.starts_with(|c: char| c.is_ascii_digit()) => {
                    match version.split_once("..") {
                        Some((from, to)) => options.between = Some((from.into(), to.into())),
                        None => options.versions.push(version.to_owned()),
                    }
                }
                probe if (options.bisect || options.probes) && !probe.starts_with('-') => {
                    options.named.push(probe.to_owned());
                }
                _ => return Err(USAGE.into()),
            }
        }
        if options.versions.is_empty() && !options.probes && !options.bisect {
            options.versions = PROFILES.map(str::to_owned).to_vec();
        }
        Ok(options)
    }

    fn standard() -> Result<Options, Problem> {
        let root = root();
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
        let cache = cache
            .or(home)
            .ok_or("neither XDG_CACHE_HOME nor HOME is set")?;
        let cache = cache.join("unspool-conformance");
        Ok(Options {
            versions: Vec::new(),
            corpus: standard_corpus(&root),
            record: cache.join("observations"),
            cache: cache.join("clients"),
            reader: None,
            only: None,
            files: Vec::new(),
            jobs: 2,
            timeout: 60,
            run: true,
            only_make: false,
            write_docs: false,
            write_fixtures: false,
            with_reminders: false,
            verbose: false,
            edited: false,
            chat: false,
            probes: false,
            bisect: false,
            newest: false,
            named: Vec::new(),
            between: None,
            room: 12 << 30,
            sessions: 500,
            seed: 0,
            real: 0,
            program: None,
            inside: None,
        })
    }

    /// The arguments that the run inside the namespace needs.
    pub fn for_inside(&self) -> Vec<std::ffi::OsString> {
        let mut arguments = vec![
            "--corpus".into(),
            self.corpus.clone().into(),
            "--cache".into(),
            self.cache.clone().into(),
            "--record".into(),
            self.record.clone().into(),
            "--jobs".into(),
            self.jobs.to_string().into(),
            "--timeout".into(),
            self.timeout.to_string().into(),
        ];
        if let Some(only) = &self.only {
            arguments.extend(["--only".into(), only.into()]);
        }
        if self.edited {
            arguments.push("edited".into());
        }
        if self.newest {
            arguments.push("--newest".into());
        }
        if self.chat {
            let real = self.real.to_string();
            arguments.extend(["chat".into(), "--real".into(), real.into()]);
        }
        if let Some(program) = &self.program {
            arguments.extend(["--program".into(), program.into()]);
        }
        for file in &self.files {
            arguments.extend(["--file".into(), file.into()]);
        }
        arguments
    }
}

/// The recordings of the repository.
fn standard_corpus(root: &Path) -> PathBuf {
    root.join("crates/testkit/corpus")
}

/// The root of the repository.
pub fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}
