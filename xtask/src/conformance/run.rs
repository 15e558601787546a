//! Resumes files with the real client, inside a namespace without a network.

use super::cases::{self, Case};
use super::options::Options;
use super::record::{self, Observation, Outcome};
use super::{Problem, client};
use serde_json::Value;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use unspool_testkit::api::{Api, Request};
use unspool_testkit::conformance::reduce::{self, PING, Texts};

/// Runs all cases of a version that have no observation yet.
pub fn version(options: &Options, version: &str) -> Result<(), Problem> {
    let up = Command::new("ip")
        .args(["link", "set", "lo", "up"])
        .status()?;
    if !up.success() {
        return Err("could not bring up the loopback device".into());
    }
    let cases = cases::of(options, version)?;
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for worker in 0..options.jobs {
            let (cases, next) = (&cases, &next);
            scope.spawn(move || work(options, version, cases, next, worker));
        }
    });
    Ok(())
}

fn work(options: &Options, version: &str, cases: &[Case], next: &AtomicUsize, worker: usize) {
    while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
        if record::load(options, version, case).is_some() {
            continue;
        }
        let started = Instant::now();
        match observe(options, version, case, worker) {
            Ok(outcome) => {
                let seconds = started.elapsed().as_secs_f32();
                let word = match outcome {
                    Outcome::Sent(messages) => format!("{} messages", messages.len()),
                    Outcome::None => "no conversation".to_owned(),
                    Outcome::Hang => "hangs".to_owned(),
                    Outcome::Failed(words) => format!("failed: {words}"),
                };
                eprintln!("{version} {} {word} ({seconds:.1} s)", case.name);
            }
            Err(problem) => eprintln!("{version} {}: {problem}", case.name),
        }
    }
}

fn observe(
    options: &Options,
    version: &str,
    case: &Case,
    worker: usize,
) -> Result<Outcome, Problem> {
    let place = Place::prepare(case, worker)?;
    let api = Api::start()?;
    let mut child = start(options, version, case, &place, &api)?;
    let (outcome, request) = wait(options, case, &place, &api, &mut child)?;
    stop(&mut child);
    let observation = Observation {
        case: case.name.clone(),
        input: reduce::hash(&case.text),
        outcome: outcome.clone(),
    };
    record::save(options, version, &observation, &request)?;
    std::fs::remove_dir_all(&place.root)?;
    Ok(outcome)
}

/// The folders of one run.
struct Place {
    root: PathBuf,
    cwd: PathBuf,
    config: PathBuf,
}

impl Place {
    fn prepare(case: &Case, worker: usize) -> Result<Place, Problem> {
        let name = format!("unspool-conformance-{}-{worker}", std::process::id());
        let root = std::env::temp_dir().canonicalize()?.join(name);
        if root.exists() {
            std::fs::remove_dir_all(&root)?;
        }
        let (cwd, config) = (root.join("proj"), root.join("config"));
        let project = config.join("projects").join(slug(&cwd));
        std::fs::create_dir_all(&cwd)?;
        std::fs::create_dir_all(&project)?;
        std::fs::write(project.join(format!("{}.jsonl", case.session)), &case.text)?;
        Ok(Place { root, cwd, config })
    }
}

/// The name of a project folder, for paths in ASCII.
fn slug(cwd: &Path) -> String {
    let path = cwd.to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    path.chars().map(plain).collect()
}

fn start(
    options: &Options,
    version: &str,
    case: &Case,
    place: &Place,
    api: &Api,
) -> Result<Child, Problem> {
    let words = client::command(options, version)?;
    let (program, rest) = words.split_first().ok_or("the client has no command")?;
    let child = Command::new(program)
        .args(rest)
        .args([
            "--resume",
            &case.session,
            "-p",
            PING,
            "--output-format",
            "json",
        ])
        .current_dir(&place.cwd)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", &place.root)
        .env("CLAUDE_CONFIG_DIR", &place.config)
        .env("TERM", "dumb")
        .env("LANG", "C.UTF-8")
        .env("TZ", "UTC")
        .env("ANTHROPIC_BASE_URL", api.url())
        .env("ANTHROPIC_API_KEY", "dummy")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("DISABLE_TELEMETRY", "1")
        .env("DISABLE_AUTOUPDATER", "1")
        .stdin(Stdio::null())
        .stdout(File::create(place.root.join("stdout"))?)
        .stderr(File::create(place.root.join("stderr"))?)
        .process_group(0)
        .spawn()?;
    Ok(child)
}

/// Waits for the request that carries the prompt, or for the end.
fn wait(
    options: &Options,
    case: &Case,
    place: &Place,
    api: &Api,
    child: &mut Child,
) -> Result<(Outcome, Value), Problem> {
    let deadline = Instant::now() + Duration::from_secs(options.timeout);
    while Instant::now() < deadline {
        if let Some(request) = api.wait_for(is_main, Duration::from_millis(100)) {
            let messages = &request.body["messages"];
            let history = reduce::history(messages, &Texts::of(&case.text));
            return Ok((Outcome::Sent(history), request.body));
        }
        // Looked at before the requests are, so that a last one is not missed.
        let ended = child.try_wait()?.is_some();
        if ended && !api.requests().iter().any(is_main) {
            return Ok((ending(place), Value::Null));
        }
    }
    Ok((Outcome::Hang, Value::Null))
}

/// The request of the conversation itself, not one for a title or a quota.
fn is_main(request: &Request) -> bool {
    let has_tools = request.body["tools"]
        .as_array()
        .is_some_and(|tools| !tools.is_empty());
    request.is_message() && has_tools && request.body["messages"].to_string().contains(PING)
}

fn ending(place: &Place) -> Outcome {
    let read = |name: &str| std::fs::read_to_string(place.root.join(name)).unwrap_or_default();
    let words = read("stderr") + &read("stdout");
    if words.contains("No conversation found") {
        return Outcome::None;
    }
    let first = words.lines().find(|line| !line.trim().is_empty());
    Outcome::Failed(first.unwrap_or("no words").chars().take(200).collect())
}

/// Ends the client and all it started.
fn stop(child: &mut Child) {
    let group = format!("-{}", child.id());
    let _ = Command::new("kill")
        .args(["-KILL", "--", &group])
        .stderr(Stdio::null())
        .status();
    let _ = child.wait();
}
