//! `cargo xtask dashboard`: the real program serves real sessions to a real browser.
//!
//! The home has a session that the test goes on writing, recordings with changes, helpers,
//! images and compactions, one of 100,000 lines, and one made of attacks. The script beside the
//! tests opens every page, light and dark, wide and narrow.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;
use unspool_testkit::home::slug;
use unspool_testkit::{attacks, script};

use crate::{Outcome, bench, needs, web};

/// Turns of the large session; each is four lines.
const TURNS: usize = 25_000;

/// The recordings that are shown.
const RECORDED: &[&str] = &[
    "s05_write_edit",
    "s08b_agent_two",
    "s09_compact",
    "s15_image",
    "i04_rewind",
];

/// Serves and looks. `--shots DIR` keeps pictures of every page, `--program FILE` takes a
/// program that is there already. `--first DIR` only says how long it takes until the largest
/// session of a config folder is on the screen.
pub fn run(args: &[String]) -> Outcome {
    let mut shots = None;
    let mut program = None;
    let mut first = None;
    for pair in args.chunks(2) {
        match pair {
            [flag, value] if flag == "--shots" => shots = Some(value.clone()),
            [flag, value] if flag == "--program" => program = Some(PathBuf::from(value)),
            [flag, value] if flag == "--first" => first = Some(PathBuf::from(value)),
            _ => {
                let usage =
                    "usage: cargo xtask dashboard [--shots DIR] [--program FILE] [--first DIR]";
                return Err(usage.into());
            }
        }
    }
    let program = match program {
        Some(program) => program,
        None => bench::build()?,
    };
    if let Some(config) = first {
        return paint(&program, &config);
    }
    // The rules of accessibility come with the packages of the page.
    web::packages()?;
    let scratch = std::env::temp_dir().join(format!("unspool-dashboard-{}", std::process::id()));
    let made = look(&program, &scratch, shots.as_deref());
    // Left-overs in the temporary folder harm nobody.
    let _ = std::fs::remove_dir_all(&scratch);
    made
}

fn look(program: &Path, scratch: &Path, shots: Option<&str>) -> Outcome {
    let home = furnish(scratch)?;
    let server = Server::start(program, &scratch.join("claude"), scratch)?;
    let chromium = needs::chromium().ok_or("no Chromium")?;
    let facts = json!({
        "link": server.link,
        "pid": server.child.id(),
        "live": { "id": LIVE, "path": home.live },
        "large": LARGE,
        "lines": TURNS * 4,
        "hostile": attacks::id(),
        "attacks": attacks::ATTACKS.len(),
        "recorded": home.recorded,
        "axe": web::folder().join("node_modules/axe-core/axe.min.js"),
        "shots": shots,
    });
    let status = Command::new("node")
        .arg(crate::root().join("tests/dashboard/check.cjs"))
        .env("FACTS", facts.to_string())
        .env("PLAYWRIGHT", needs::playwright())
        .env("CHROMIUM", chromium)
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("node: {error}"))?;
    if status.success() {
        return Ok(());
    }
    Err("the dashboard is not as it should be".into())
}

/// How often a session is opened, each time by a program that has just started.
const TIMES: usize = 5;

/// Opens the largest session of a config folder and says how long that took.
fn paint(program: &Path, config: &Path) -> Outcome {
    let session = largest(&config.join("projects"))?;
    let id = session.file_stem().unwrap_or_default().to_string_lossy();
    let chromium = needs::chromium().ok_or("no Chromium")?;
    for _ in 0..TIMES {
        let scratch = std::env::temp_dir().join(format!("unspool-first-{}", std::process::id()));
        let server = Server::start(program, config, &scratch)?;
        let facts = json!({ "link": server.link, "session": id });
        let opened = needs::succeed(
            Command::new("node")
                .arg(crate::root().join("tests/dashboard/first.cjs"))
                .env("FACTS", facts.to_string())
                .env("PLAYWRIGHT", needs::playwright())
                .env("CHROMIUM", &chromium),
        );
        drop(server);
        // Left-overs in the temporary folder harm nobody.
        let _ = std::fs::remove_dir_all(&scratch);
        opened?;
    }
    Ok(())
}

/// The largest session below a folder of projects.
fn largest(projects: &Path) -> Result<PathBuf, String> {
    let mut sessions = Vec::new();
    for project in entries(projects)? {
        sessions.extend(entries(&project)?);
    }
    largest_of(sessions).ok_or_else(|| format!("{}: no session", projects.display()))
}

fn largest_of(paths: Vec<PathBuf>) -> Option<PathBuf> {
    let files = paths.into_iter().filter(|path| path.is_file());
    files.max_by_key(|path| path.metadata().map_or(0, |metadata| metadata.len()))
}

const LIVE: &str = "11111111-0000-4000-8000-000000000001";
const LARGE: &str = "99999999-0000-4000-8000-000000000001";

/// What the script has to know.
struct Furnished {
    live: PathBuf,
    /// Ids by the name of the recording.
    recorded: serde_json::Map<String, serde_json::Value>,
}

/// Writes all sessions.
fn furnish(scratch: &Path) -> Result<Furnished, String> {
    let projects = scratch.join("claude/projects");
    let session = |cwd: &str, id: &str| projects.join(slug(cwd)).join(format!("{id}.jsonl"));
    let live = session("/home/dev/live", LIVE);
    write(&live, &script::jsonl(&format!("(session={LIVE})\n{BEGUN}")))?;
    write(&session("/home/dev/large", LARGE), &large())?;
    let hostile = session("/home/dev/x", attacks::id());
    write(&hostile, &attacks::transcript())?;
    let mut recorded = serde_json::Map::new();
    for name in RECORDED {
        let from = crate::root().join(format!("crates/testkit/corpus/2.1.325/{name}/projects"));
        let id = copy(&from, &projects, name)?;
        recorded.insert((*name).to_owned(), id.into());
    }
    Ok(Furnished { live, recorded })
}

/// How the session begins that the script goes on with.
const BEGUN: &str = "
title: Teach the parrot to count
you: teach the parrot to count
claude: It says one.
you: and two
claude: listening [Bash parrot --say two]
result: Bash parrot --say two two
claude: It says two.
";

/// A session of 100,000 lines, every kind of row in it.
fn large() -> Vec<u8> {
    let mut text = format!("(session={LARGE})\ntitle: A very long one\n");
    for n in 1..=TURNS {
        // Rows of differing heights, as real ones are.
        let reply = "A line of the reply, as long as lines are in replies.\\n\\n".repeat(n % 7 + 1);
        text.push_str(&format!(
            "you: question number {n}\nclaude: looking at {n} [Read file-{n}.rs]\n\
             result: Read file-{n}.rs contents of {n}\nclaude: answer number {n}. {reply}\n"
        ));
    }
    script::jsonl(&text)
}

/// Copies a recording into a project of its own, and says the id of its largest session.
fn copy(from: &Path, projects: &Path, name: &str) -> Result<String, String> {
    let gone = || format!("{}: the recording is gone", from.display());
    let project = entries(from)?.into_iter().next().ok_or_else(gone)?;
    let to = projects.join(slug(&format!("/home/dev/{name}")));
    copy_all(&project, &to)?;
    let largest = largest_of(entries(&to)?).ok_or_else(gone)?;
    let id = largest.file_stem().ok_or_else(gone)?;
    Ok(id.to_string_lossy().into_owned())
}

fn copy_all(from: &Path, to: &Path) -> Outcome {
    for path in entries(from)? {
        let into = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_all(&path, &into)?;
        } else {
            let told = |error: std::io::Error| format!("{}: {error}", path.display());
            write(&into, &std::fs::read(&path).map_err(told)?)?;
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let told = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(told)?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

fn write(path: &Path, bytes: &[u8]) -> Outcome {
    let told = |error: std::io::Error| format!("{}: {error}", path.display());
    let folder = path.parent().ok_or("no folder")?;
    std::fs::create_dir_all(folder).map_err(told)?;
    std::fs::write(path, bytes).map_err(told)
}

/// The program that serves, stopped when the value is dropped.
struct Server {
    child: Child,
    link: String,
}

impl Server {
    fn start(program: &Path, config: &Path, scratch: &Path) -> Result<Server, String> {
        let mut child = Command::new(program)
            .args(["serve", "--port", "0"])
            .env("HOME", scratch)
            .env("CLAUDE_CONFIG_DIR", config)
            .env("UNSPOOL_HOME", scratch.join("unspool"))
            .env("TZ", "UTC")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let mut link = String::new();
        if let Some(out) = child.stdout.take() {
            let read = BufReader::new(out).read_line(&mut link);
            read.map_err(|error| format!("{}: {error}", program.display()))?;
        }
        let server = Server {
            child,
            link: link.trim().to_owned(),
        };
        if server.link.contains("#token=") {
            return Ok(server);
        }
        Err(format!("`serve` printed no link but {:?}", server.link))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
