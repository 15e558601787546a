//! `cargo xtask conformance phoenix`: does a real receiver have what we sent?
//!
//! Starts Phoenix on loopback, sends it sessions of real clients and one in Chinese, reads the
//! spans back over its API and compares them with what our own receiver got: ids, parents,
//! names, times, and the texts in which scripts could be lost.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use unspool_testkit::home::Home;
use unspool_testkit::sink::{Sink, Span};

use crate::{Outcome, bench, collector, needs};

/// How long it may take until everything can be read back.
const PATIENCE: Duration = Duration::from_secs(180);

/// The project that spans go to.
const PROJECT: &str = "unspool";

/// Prints every span of a project, one JSON object per line.
const SCRIPT: &str = r#"
import json, sys, urllib.request
base, cursor = sys.argv[1], None
while True:
    url = base + "/spans?limit=500" + ("&cursor=" + cursor if cursor else "")
    page = json.load(urllib.request.urlopen(url))
    for span in page["data"]:
        print(json.dumps(span))
    cursor = page.get("next_cursor")
    if not cursor:
        break
"#;

/// Runs it.
pub fn run() -> Outcome {
    needs::PHOENIX.provide()?;
    let program = bench::build()?;
    let mut home = Home::new(&program);
    home.set(
        "OTEL_RESOURCE_ATTRIBUTES",
        &format!("openinference.project.name={PROJECT}"),
    );
    collector::fill(&home)?;
    let straight = Sink::otlp();
    collector::send(&home, &straight.url())?;
    let wanted = straight.spans();
    let server = Phoenix::start(home.path())?;
    collector::send(&home, &server.url)?;
    let until = Instant::now() + PATIENCE;
    let came = loop {
        let came = server.spans().unwrap_or_default();
        if came.len() >= wanted.len() || Instant::now() > until {
            break came;
        }
        std::thread::sleep(Duration::from_secs(1));
    };
    let differences = compare(&wanted, &came);
    println!(
        "phoenix {}: {} of {} spans read back, {} differ",
        needs::PHOENIX.found().unwrap_or_default(),
        came.len(),
        wanted.len(),
        differences.len()
    );
    match differences.first() {
        None => Ok(()),
        Some(first) => Err(first.clone()),
    }
}

fn compare(wanted: &[Span], came: &[Value]) -> Vec<String> {
    let id = |span: &Value| {
        let part = |name: &str| {
            span["context"][name]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        (part("trace_id"), part("span_id"))
    };
    let came: HashMap<_, &Value> = came.iter().map(|span| (id(span), span)).collect();
    let mut differences = Vec::new();
    for span in wanted {
        match came.get(&(span.trace.clone(), span.id.clone())) {
            None => differences.push(format!("`{}` {} is not there", span.name, span.id)),
            Some(other) => differences.extend(difference(span, other)),
        }
    }
    differences
}

fn difference(span: &Span, other: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let attribute = |name: &str| text(&other["attributes"][name]);
    let pairs = [
        ("parent", span.parent.clone(), text(&other["parent_id"])),
        ("name", span.name.clone(), text(&other["name"])),
        ("start", moment(span.start), millis(&other["start_time"])),
        ("end", moment(span.end), millis(&other["end_time"])),
        (
            "session",
            span.text("session.id").to_owned(),
            attribute("session.id"),
        ),
        (
            "input",
            span.text("input.value").to_owned(),
            attribute("input.value"),
        ),
        (
            "output",
            span.text("output.value").to_owned(),
            attribute("output.value"),
        ),
    ];
    let differs = pairs.into_iter().find(|(_, ours, theirs)| ours != theirs);
    differs.map(|(what, ours, theirs)| {
        format!(
            "`{}` {}: {what} is `{theirs}`, not `{ours}`",
            span.name, span.id
        )
    })
}

/// Nanoseconds since 1970 to milliseconds, as text; nothing if there is no time.
fn moment(nanoseconds: u64) -> String {
    match nanoseconds {
        0 => String::new(),
        _ => (nanoseconds / 1_000_000).to_string(),
    }
}

/// A time of theirs to milliseconds since 1970; nothing for the year in which time began.
fn millis(value: &Value) -> String {
    let time = value.as_str().and_then(unspool_model::time::Time::parse);
    time.map_or_else(String::new, |time| match time.0 {
        0 => String::new(),
        time => time.to_string(),
    })
}

/// A running server; it is ended when dropped.
struct Phoenix {
    url: String,
    child: Child,
}

impl Phoenix {
    fn start(home: &Path) -> Result<Phoenix, String> {
        let (addr, other) = (collector::free_port()?, collector::free_port()?);
        let python = needs::phoenix_python();
        let program = python.with_file_name("phoenix");
        let child = Command::new(program)
            .arg("serve")
            .env("PHOENIX_HOST", "127.0.0.1")
            .env("PHOENIX_PORT", addr.port().to_string())
            .env("PHOENIX_GRPC_PORT", other.port().to_string())
            .env("PHOENIX_WORKING_DIR", home.join("phoenix"))
            .env("PHOENIX_TELEMETRY_ENABLED", "false")
            .env("PHOENIX_ALLOW_EXTERNAL_RESOURCES", "false")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("phoenix: {error}"))?;
        let server = Phoenix {
            url: format!("http://{addr}"),
            child,
        };
        let until = Instant::now() + PATIENCE;
        while collector::await_port(addr).is_err() {
            if Instant::now() > until {
                return Err("phoenix does not start".into());
            }
        }
        Ok(server)
    }

    /// Every span that can be read back.
    fn spans(&self) -> Result<Vec<Value>, String> {
        let output = Command::new(needs::phoenix_python())
            .args(["-c", SCRIPT, &format!("{}/v1/projects/{PROJECT}", self.url)])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let rows = text.lines().map(serde_json::from_str);
        rows.collect::<Result<_, _>>()
            .map_err(|error| error.to_string())
    }
}

impl Drop for Phoenix {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
