//! The hook: how long a client waits for it, with sending switched on.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::Request;
use super::rounds::Own;
use super::table::{Row, seconds};

const NAME: &str = "hook, until the client goes on";

/// How often it is run.
const RUNS: usize = 200;
/// Seconds that a client may wait.
const WALL: f64 = 0.05;

/// The row, if it is wanted.
pub fn rows(request: &Request, program: &Path) -> Result<Vec<Row>, String> {
    if !request.wants_name(NAME) {
        return Ok(Vec::new());
    }
    let own = Own::new("hook")?;
    let mut walls = Vec::new();
    for _ in 0..RUNS {
        walls.push(once(program, own.path()).map_err(|error| error.to_string())?);
    }
    // Those in the background end by themselves; their folder goes with us.
    let jobs = own.path().join("hook/jobs");
    let is_busy = || fs::read_dir(&jobs).is_ok_and(|mut files| files.next().is_some());
    for _ in (0..600).take_while(|_| is_busy()) {
        thread::sleep(Duration::from_millis(50));
    }
    walls.sort_by(f64::total_cmp);
    let at = |percent: usize| walls[(RUNS - 1) * percent / 100];
    Ok(vec![Row {
        name: NAME.into(),
        cost: None,
        targets: vec![(
            format!("≤ {} at the median of {RUNS} runs", seconds(WALL)),
            at(50) <= WALL,
        )],
        against: format!(
            "p50 {}, p99 {}, longest {}",
            seconds(at(50)),
            seconds(at(99)),
            seconds(at(100))
        ),
    }])
}

/// One event, with all that a client has to wait for. The transcript does not exist, so that the
/// worker which is started has nothing to send and ends by itself.
fn once(program: &Path, own: &Path) -> std::io::Result<f64> {
    let event = format!(
        r#"{{"session_id":"bench","transcript_path":"{}","cwd":"/","hook_event_name":"Stop","last_assistant_message":"done"}}"#,
        own.join("bench.jsonl").display()
    );
    let began = Instant::now();
    let mut child = Command::new(program)
        .arg("hook")
        .env("HOME", own)
        .env("CLAUDE_CONFIG_DIR", own)
        .env("UNSPOOL_HOME", own)
        .env("TRACE_TO_LANGFUSE", "true")
        .env("LANGFUSE_PUBLIC_KEY", "pk")
        .env("LANGFUSE_SECRET_KEY", "sk")
        .env("LANGFUSE_BASE_URL", "http://127.0.0.1:9")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(event.as_bytes())?;
    }
    // Until its output is closed, which a worker that inherited it would hold open.
    child.wait_with_output()?;
    Ok(began.elapsed().as_secs_f64())
}
