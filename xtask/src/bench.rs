//! `cargo xtask bench`: the program against its targets, on generated trees.
//!
//! Builds the release program, generates the trees once (outside the
//! repository), and runs each case several times with the files in the page
//! cache and with no cache of ours. What counts is the best run: the machine
//! may be busy, but it is never faster than it can be. Peers run in between,
//! in the same minute, and are compared as ratios. Never part of the tests: a
//! busy machine must not make a change look wrong.
//!
//! `--runs N` (default 5), `--only WORD` (cases whose name has it), `--tree DIR`
//! (a tree with `.claude` in it instead of our own of 1 GB), `--program PATH`
//! (another build), `--write FILE` (the table as Markdown).

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use unspool_testkit::tree;

use crate::measure::{self, Cost};
use crate::{Outcome, generate, needs};

/// What to run it on.
#[derive(Clone, Copy, PartialEq)]
enum Tree {
    /// No sessions at all.
    Empty,
    /// 1 GB in about 1,100 files.
    Medium,
    /// 10,000 small sessions.
    Many,
    /// One session of 100 MB.
    Tenth,
    /// One session of 1 GB.
    Single,
}

/// A command and what it may cost. `FILE` in its arguments is the one session of its tree.
struct Case {
    name: &'static str,
    tree: Tree,
    args: &'static [&'static str],
    /// Seconds on the clock.
    wall: Option<f64>,
    /// Megabytes at the peak.
    peak: Option<f64>,
}

const TURNS: &str = "all turns, one session of 1 GB";
const TURNS_TENTH: &str = "all turns, one session of 100 MB";

/// 10 times the bytes may cost this much more processor time.
const GROWTH: f64 = 11.0;

const CASES: &[Case] = &[
    Case {
        name: "start",
        tree: Tree::Empty,
        args: &["--version"],
        wall: Some(0.005),
        peak: None,
    },
    Case {
        name: "list, 1 GB",
        tree: Tree::Medium,
        args: &["ls"],
        wall: Some(1.0),
        peak: Some(60.0),
    },
    Case {
        name: "check, 1 GB",
        tree: Tree::Medium,
        args: &["check", "--all"],
        wall: Some(2.5),
        peak: None,
    },
    Case {
        name: "list, 10,000 sessions",
        tree: Tree::Many,
        args: &["ls"],
        wall: Some(0.5),
        peak: None,
    },
    Case {
        name: "last turn, one session of 1 GB",
        tree: Tree::Single,
        args: &["show", "FILE", "--turn=-1"],
        wall: Some(1.0),
        peak: Some(300.0),
    },
    Case {
        name: TURNS,
        tree: Tree::Single,
        args: &["turns", "FILE", "--json"],
        wall: Some(3.0),
        peak: Some(300.0),
    },
    Case {
        name: TURNS_TENTH,
        tree: Tree::Tenth,
        args: &["turns", "FILE", "--json"],
        wall: None,
        peak: None,
    },
];

/// What the arguments ask for.
struct Request {
    runs: usize,
    only: Option<String>,
    tree: Option<PathBuf>,
    program: Option<PathBuf>,
    write: Option<PathBuf>,
}

/// A line of the table.
struct Row {
    name: String,
    /// What it cost, or why it did not run; nothing for a comparison of others.
    cost: Option<Result<Cost, String>>,
    /// The target in words and whether it is met.
    target: Option<(String, bool)>,
    /// The peer in words.
    against: String,
}

/// Measures everything and prints the table.
pub fn run(args: &[String]) -> Outcome {
    let request = Request::read(args)?;
    let program = match &request.program {
        Some(program) => program.clone(),
        None => build()?,
    };
    let mut rows = Vec::new();
    for case in CASES.iter().filter(|case| request.wants(case)) {
        let home = home(&request, case.tree)?;
        eprintln!(
            "{}: {} {}",
            case.name,
            program.display(),
            case.args.join(" ")
        );
        let floor = read_all(&home)?;
        let cost = best(request.runs, || run_case(&program, case, &home));
        let against = peers(&request, case, &home, floor, cost.as_ref().ok());
        rows.push(Row {
            name: case.name.to_owned(),
            target: judge(case, cost.as_ref().ok()),
            cost: Some(cost),
            against,
        });
    }
    rows.extend(growth(&rows));
    let table = table(&rows);
    println!("{table}");
    if let Some(path) = &request.write {
        let path = crate::root().join(path);
        fs::write(&path, document(&table))
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let missed = rows
        .iter()
        .filter(|row| row.target.as_ref().is_some_and(|(_, is_met)| !is_met))
        .count();
    if missed == 0 {
        Ok(())
    } else {
        Err(format!("{missed} targets missed"))
    }
}

impl Request {
    fn read(args: &[String]) -> Result<Request, String> {
        let mut request = Request {
            runs: 5,
            only: None,
            tree: None,
            program: None,
            write: None,
        };
        for pair in args.chunks(2) {
            let [flag, value] = pair else {
                return Err(format!("`{}` needs a value", pair.concat()));
            };
            match flag.as_str() {
                "--runs" => {
                    request.runs = value
                        .parse()
                        .map_err(|_| format!("`{value}` is no number"))?
                }
                "--only" => request.only = Some(value.clone()),
                "--tree" => request.tree = Some(value.into()),
                "--program" => request.program = Some(value.into()),
                "--write" => request.write = Some(value.into()),
                _ => return Err(format!("unknown option `{flag}`")),
            }
        }
        Ok(request)
    }

    fn wants(&self, case: &Case) -> bool {
        self.only
            .as_ref()
            .is_none_or(|word| case.name.contains(word.as_str()))
    }
}

/// Builds the release program and says where it is.
pub fn build() -> Result<PathBuf, String> {
    let status = Command::new("cargo")
        .args(["build", "--release", "--package", "unspool"])
        .current_dir(crate::root())
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if !status.success() {
        return Err("the program does not build".into());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| crate::root().join("target"), PathBuf::from);
    Ok(target
        .join("release")
        .join(format!("unspool{}", std::env::consts::EXE_SUFFIX)))
}

/// The folder with `.claude` in it for a tree, generated if it is not there yet.
fn home(request: &Request, which: Tree) -> Result<PathBuf, String> {
    if let (Tree::Medium, Some(tree)) = (which, &request.tree) {
        return Ok(tree.clone());
    }
    let name = match which {
        Tree::Empty => "empty",
        Tree::Medium => "m",
        Tree::Many => "many",
        Tree::Tenth => "single:100M",
        Tree::Single => "single:1G",
    };
    let edition = tree::EDITION;
    let home = needs::cache_dir().join(format!("tree-{edition}-{}", name.replace(':', "-")));
    if which == Tree::Empty {
        return fs::create_dir_all(home.join(".claude"))
            .map(|()| home)
            .map_err(|error| error.to_string());
    }
    if !home.join("truth.json").exists() {
        // Without its truth it was not finished.
        let _ = fs::remove_dir_all(&home);
        generate::write(&home, &generate::size(name)?)?;
    }
    Ok(home)
}

fn run_case(program: &Path, case: &Case, home: &Path) -> Result<Cost, String> {
    let file = if case.args.contains(&"FILE") {
        Some(largest(home)?)
    } else {
        None
    };
    let file = file
        .as_deref()
        .map(Path::to_string_lossy)
        .unwrap_or_default();
    let args: Vec<&str> = case
        .args
        .iter()
        .map(|arg| if *arg == "FILE" { &file } else { *arg })
        .collect();
    let cost = start(program, &args, home)?;
    // `check` is a test: 1 says that it found something.
    let is_done = cost.status == 0 || cost.status == 1 && case.args[0] == "check";
    if is_done {
        Ok(cost)
    } else {
        Err(format!("status {}", cost.status))
    }
}

/// Runs a program at home there, with an empty folder for what it would keep.
fn start(program: &Path, args: &[&str], home: &Path) -> Result<Cost, String> {
    let own = std::env::temp_dir().join(format!("unspool-bench-{}", std::process::id()));
    fs::create_dir_all(&own).map_err(|error| error.to_string())?;
    let claude = home.join(".claude");
    let variables = [
        ("HOME", own.as_path()),
        ("CLAUDE_CONFIG_DIR", &claude),
        ("UNSPOOL_HOME", &own),
    ];
    let cost = measure::cost(program, args, &variables);
    fs::remove_dir_all(&own).map_err(|error| error.to_string())?;
    cost
}

/// The least time of several runs, and the most memory.
fn best(runs: usize, mut run: impl FnMut() -> Result<Cost, String>) -> Result<Cost, String> {
    let mut best = run()?;
    for _ in 1..runs {
        let cost = run()?;
        best.wall = best.wall.min(cost.wall);
        best.cpu = best.cpu.min(cost.cpu);
        best.peak = best.peak.max(cost.peak);
    }
    Ok(best)
}

fn judge(case: &Case, cost: Option<&Cost>) -> Option<(String, bool)> {
    let wall = case.wall.map(|limit| {
        (
            format!("≤ {}", seconds(limit)),
            cost.is_some_and(|cost| cost.wall <= limit),
        )
    });
    let peak = case.peak.map(|limit| {
        (
            format!("≤ {limit:.0} MB"),
            cost.is_some_and(|cost| cost.peak <= limit),
        )
    });
    match (wall, peak) {
        (Some((a, first)), Some((b, second))) => Some((format!("{a}, {b}"), first && second)),
        (one, other) => one.or(other),
    }
}

/// What others need for the same files, as ratios to our wall time.
fn peers(request: &Request, case: &Case, home: &Path, floor: f64, cost: Option<&Cost>) -> String {
    let Some(cost) = cost.filter(|_| case.tree != Tree::Empty) else {
        return String::new();
    };
    let mut words = vec![format!(
        "counting newlines {} (we take {:.1}×)",
        seconds(floor),
        cost.wall / floor
    )];
    let python = needs::sdk_python();
    if case.args[0] == "ls" && python.exists() {
        let script = "import claude_agent_sdk as sdk; sdk.list_sessions()";
        // Twice is enough for a peer that takes seconds.
        if let Ok(peer) = best(request.runs.min(2), || {
            start(&python, &["-c", script], home)
        }) {
            let ratio = peer.wall / cost.wall;
            words.push(format!(
                "Python SDK list_sessions {}, {:.0} MB ({ratio:.1}× ours)",
                seconds(peer.wall),
                peer.peak
            ));
        }
    }
    words.join("; ")
}

/// How the cost of reading one session grows with its size.
fn growth(rows: &[Row]) -> Option<Row> {
    let cost = |name: &str| {
        rows.iter()
            .find(|row| row.name == name)?
            .cost
            .as_ref()?
            .as_ref()
            .ok()
            .copied()
    };
    let (whole, tenth) = (cost(TURNS)?, cost(TURNS_TENTH)?);
    let ratio = whole.cpu / tenth.cpu;
    Some(Row {
        name: "10× the bytes".into(),
        cost: None,
        target: Some((format!("≤ {GROWTH}× the processor time"), ratio <= GROWTH)),
        against: format!("{ratio:.1}×"),
    })
}

/// Reads every transcript once, which puts it into the page cache, and then
/// says how long counting its newlines takes: nobody can be much faster.
fn read_all(home: &Path) -> Result<f64, String> {
    let files = transcripts(&home.join(".claude"))?;
    let mut buffer = vec![0; 1 << 20];
    let mut seconds = f64::MAX;
    for _ in 0..2 {
        let start = Instant::now();
        let mut newlines = 0;
        for path in &files {
            newlines +=
                count(path, &mut buffer).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        // Without a use the count would be optimised away.
        std::hint::black_box(newlines);
        seconds = seconds.min(start.elapsed().as_secs_f64());
    }
    Ok(seconds)
}

fn count(path: &Path, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut file = File::open(path)?;
    let mut newlines = 0;
    loop {
        let length = file.read(buffer)?;
        if length == 0 {
            return Ok(newlines);
        }
        newlines += memchr::memchr_iter(b'\n', &buffer[..length]).count();
    }
}

fn transcripts(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))? {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.is_dir() {
            found.extend(transcripts(&path)?);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "jsonl")
        {
            found.push(path);
        }
    }
    Ok(found)
}

fn largest(home: &Path) -> Result<PathBuf, String> {
    let files = transcripts(&home.join(".claude"))?;
    let size = |path: &PathBuf| fs::metadata(path).map_or(0, |data| data.len());
    files
        .into_iter()
        .max_by_key(size)
        .ok_or_else(|| format!("no session in {}", home.display()))
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| what | wall | processor | peak | target | | beside it |\n|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let (wall, cpu, peak) = match &row.cost {
            Some(Ok(cost)) => (
                seconds(cost.wall),
                seconds(cost.cpu),
                format!("{:.0} MB", cost.peak),
            ),
            Some(Err(reason)) => (reason.clone(), String::new(), String::new()),
            None => Default::default(),
        };
        let (target, verdict) = match &row.target {
            Some((target, is_met)) => (target.as_str(), if *is_met { "ok" } else { "MISS" }),
            None => ("", ""),
        };
        text.push_str(&format!(
            "| {} | {wall} | {cpu} | {peak} | {target} | {verdict} | {} |\n",
            row.name, row.against
        ));
    }
    text
}

fn document(table: &str) -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let system = std::env::consts::OS;
    format!(
        "# Performance\n\nMeasured by `cargo xtask bench`, which writes this page with \
         `--write docs/performance.md`.\n\nGenerated trees, files in the page cache, no cache of ours; best of \
         several runs (memory: the largest). {cores} cores, {system}, {}. Compare the ratios: the seconds \
         belong to that machine.\n\n{table}",
        processor()
    )
}

fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or("processor unknown", |(_, name)| name)
        .to_owned()
}

fn seconds(value: f64) -> String {
    if value < 0.1 {
        format!("{:.1} ms", value * 1000.0)
    } else {
        format!("{value:.2} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(wall: f64, peak: f64) -> Cost {
        Cost {
            wall,
            cpu: wall,
            peak,
            status: 0,
        }
    }

    #[test]
    fn a_target_is_missed_by_time_or_by_memory() {
        let case = &CASES[1];
        assert_eq!(
            judge(case, Some(&cost(0.9, 50.0))),
            Some(("≤ 1.00 s, ≤ 60 MB".into(), true))
        );
        assert!(judge(case, Some(&cost(1.1, 50.0))).is_some_and(|(_, is_met)| !is_met));
        assert!(judge(case, Some(&cost(0.9, 70.0))).is_some_and(|(_, is_met)| !is_met));
        assert!(judge(case, None).is_some_and(|(_, is_met)| !is_met));
    }

    #[test]
    fn growth_compares_processor_time() {
        let row = |name: &str, wall| Row {
            name: name.into(),
            cost: Some(Ok(cost(wall, 1.0))),
            target: None,
            against: String::new(),
        };
        let is_met = |whole| {
            growth(&[row(TURNS, whole), row(TURNS_TENTH, 0.1)])
                .and_then(|row| row.target)
                .map(|(_, is_met)| is_met)
        };
        assert_eq!(is_met(1.0), Some(true));
        assert_eq!(is_met(1.2), Some(false));
    }
}
