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
    bring_up()?;
    let cases = cases::of(options, version)?;
    each(options.jobs, &cases, |case, worker| {
        if record::load(options, version, case).is_none() {
            say(version, &case.name, || {
                observe(options, version, case, worker)
            });
        }
    });
    Ok(())
}

/// Makes the only device of the namespace work.
pub fn bring_up() -> Result<(), Problem> {
    let up = Command::new("ip")
        .args(["link", "set", "lo", "up"])
        .status()?;
    if !up.success() {
        return Err("could not bring up the loopback device".into());
    }
    Ok(())
}

/// Does something with each item, some at a time; each worker has a number.
pub fn each<T: Sync>(jobs: usize, items: &[T], work: impl Fn(&T, usize) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for worker in 0..jobs {
            let (next, work) = (&next, &work);
            scope.spawn(move || {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(item, worker);
                }
            });
        }
    });
}

/// Tells what came of one run and how long it took.
pub fn say(version: &str, name: &str, run: impl FnOnce() -> Result<Outcome, Problem>) {
    let started = Instant::now();
    let word = match run() {
        Ok(Outcome::Sent(messages)) => format!("{} messages", messages.len()),
        Ok(Outcome::None) => "no conversation".to_owned(),
        Ok(Outcome::Hang) => "hangs".to_owned(),
        Ok(Outcome::Failed(words)) => format!("failed: {words}"),
        Err(problem) => format!("could not be run: {problem}"),
    };
    let seconds = started.elapsed().as_secs_f32();
    eprintln!("{version} {name} {word} ({seconds:.1} s)");
}

fn observe(
    options: &Options,
    version: &str,
    case: &Case,
    worker: usize,
) -> Result<Outcome, Problem> {
    let place = Place::prepare(case, worker)?;
    let texts = Texts::of(&case.text);
    let (outcome, request) = resume(options, version, &place, &case.session, &texts)?;
    let observation = Observation {
        case: case.name.clone(),
        input: reduce::hash(&case.text),
        outcome: outcome.clone(),
    };
    record::save(options, version, &observation, &request)?;
    std::fs::remove_dir_all(&place.root)?;
    Ok(outcome)
}

/// Resumes a session that is in its place, until the client has asked or given up.
pub fn resume(
    options: &Options,
    version: &str,
    place: &Place,
    session: &str,
    texts: &Texts,
) -> Result<(Outcome, Value), Problem> {
    let api = Api::start()?;
    let mut child = start(options, version, session, place, &api)?;
    let seen = wait(options, texts, place, &api, &mut child);
    stop(&mut child);
    seen
}

/// The folders of one run.
pub struct Place {
    /// The home.
    pub root: PathBuf,
    /// Where the client is started.
    pub cwd: PathBuf,
    /// The client's own folder.
    pub config: PathBuf,
}

impl Place {
    fn prepare(case: &Case, worker: usize) -> Result<Place, Problem> {
        let place = Place::empty(worker)?;
        let file = place.project().join(format!("{}.jsonl", case.session));
        std::fs::write(file, &case.text)?;
        Ok(place)
    }

    /// New folders without a session.
    pub fn empty(worker: usize) -> Result<Place, Problem> {
        let name = format!("unspool-conformance-{}-{worker}", std::process::id());
        let root = std::env::temp_dir().canonicalize()?.join(name);
        if root.exists() {
            std::fs::remove_dir_all(&root)?;
        }
        let (cwd, config) = (root.join("proj"), root.join("config"));
        let place = Place { root, cwd, config };
        std::fs::create_dir_all(&place.cwd)?;
        std::fs::create_dir_all(place.project())?;
        Ok(place)
    }

    /// Where the client looks for the sessions of its directory.
    pub fn project(&self) -> PathBuf {
        self.config.join("projects").join(slug(&self.cwd))
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
    session: &str,
    place: &Place,
    api: &Api,
) -> Result<Child, Problem> {
    let child = command(options, version, place, &api.url())?
        .args(["--resume", session, "-p", PING, "--output-format", "json"])
        .spawn()?;
    Ok(child)
}

/// The client in its place, without arguments: it knows nothing but our API.
pub fn command(
    options: &Options,
    version: &str,
    place: &Place,
    api: &str,
) -> Result<Command, Problem> {
    let words = client::command(options, version)?;
    let (program, rest) = words.split_first().ok_or("the client has no command")?;
    let mut command = Command::new(program);
    command
        .args(rest)
        .current_dir(&place.cwd)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", &place.root)
        .env("CLAUDE_CONFIG_DIR", &place.config)
        .env("TERM", "dumb")
        .env("LANG", "C.UTF-8")
        .env("TZ", "UTC")
        .env("ANTHROPIC_BASE_URL", api)
        .env("ANTHROPIC_API_KEY", "dummy")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("DISABLE_TELEMETRY", "1")
        .env("DISABLE_AUTOUPDATER", "1")
        .stdin(Stdio::null())
        .stdout(File::create(place.root.join("stdout"))?)
        .stderr(File::create(place.root.join("stderr"))?)
        .process_group(0);
    Ok(command)
}

/// Waits for the request that carries the prompt, or for the end.
fn wait(
    options: &Options,
    texts: &Texts,
    place: &Place,
    api: &Api,
    child: &mut Child,
) -> Result<(Outcome, Value), Problem> {
    let deadline = Instant::now() + Duration::from_secs(options.timeout);
    while Instant::now() < deadline {
        if let Some(request) = api.wait_for(is_main, Duration::from_millis(100)) {
            let messages = &request.body["messages"];
            let history = reduce::history(messages, texts);
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
pub fn stop(child: &mut Child) {
    let group = format!("-{}", child.id());
    let _ = Command::new("kill")
        .args(["-KILL", "--", &group])
        .stderr(Stdio::null())
        .status();
    let _ = child.wait();
}
