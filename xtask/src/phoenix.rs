//! `cargo xtask conformance phoenix [--program PATH]`: does a real receiver have what we sent?
//!
//! Starts Phoenix on loopback, sends it sessions of real clients and one in Chinese, reads the
//! spans back over its API and compares them with what our own receiver got: ids, parents,
//! names, times and all attributes, with texts in any script.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use unspool_testkit::home::Home;
use unspool_testkit::sink::{Sink, Span};

use crate::{Outcome, bench, collector, needs};

/// How long it may take to start: the first time it makes its tables, one by one.
const START: Duration = Duration::from_secs(30 * 60);

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

/// Fails unless the page is there.
const LOOK: &str = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=5)";

/// Runs it.
pub fn run(args: &[String]) -> Outcome {
    needs::PHOENIX.provide()?;
    let program = match args {
        [] => bench::build()?,
        [flag, path] if flag == "--program" => PathBuf::from(path),
        _ => return Err("usage: cargo xtask conformance phoenix [--program PATH]".into()),
    };
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
    let attributes: usize = wanted.iter().map(|span| span.attributes.len()).sum();
    println!(
        "phoenix {}: {} of {} spans with {attributes} attributes read back, {} differ",
        needs::PHOENIX.found().unwrap_or_default(),
        came.len(),
        wanted.len(),
        differences.len()
    );
    for difference in differences.iter().take(20) {
        println!("{difference}");
    }
    match differences.len() + wanted.len().abs_diff(came.len()) {
        0 => Ok(()),
        _ => Err("not everything is as it was sent".into()),
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
    let pairs = [
        ("parent", span.parent.clone(), text(&other["parent_id"])),
        ("name", span.name.clone(), text(&other["name"])),
        ("start", moment(span.start), millis(&other["start_time"])),
        ("end", moment(span.end), millis(&other["end_time"])),
    ];
    let outside = pairs.into_iter().find(|(_, ours, theirs)| ours != theirs);
    let outside = outside.map(|(what, ours, theirs)| (what.to_owned(), ours, theirs));
    let attributes = span.attributes.iter().filter_map(|(name, ours)| {
        let theirs = theirs(other, name, ours);
        (theirs != *ours).then(|| (name.clone(), ours.to_string(), theirs.to_string()))
    });
    let (what, ours, theirs) = outside.into_iter().chain(attributes).next()?;
    Some(format!(
        "`{}` {}: {what} is `{theirs}`, not `{ours}`",
        span.name, span.id
    ))
}

/// What became of an attribute. The kind stands outside of the others, and a text that is an
/// object is told as its parts, which are put together again.
fn theirs(span: &Value, name: &str, ours: &Value) -> Value {
    if name == "openinference.span.kind" {
        return span["span_kind"].clone();
    }
    let attributes = &span["attributes"];
    if let Some(value) = attributes.get(name) {
        return value.clone();
    }
    let object = ours
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok());
    let Some(object @ Value::Object(_)) = object else {
        return Value::Null;
    };
    let mut parts = Vec::new();
    leaves(&object, name.to_owned(), &mut parts);
    let lost = parts.into_iter().find(|(path, leaf)| match leaf {
        // Nothing is told of what holds nothing.
        Value::Null => false,
        leaf => attributes.get(path) != Some(leaf),
    });
    match lost {
        None => ours.clone(),
        Some((path, _)) => attributes.get(&path).cloned().unwrap_or_default(),
    }
}

/// What an object holds, by path; lists of plain values and empty things stay whole.
fn leaves(value: &Value, path: String, all: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                leaves(value, format!("{path}.{name}"), all);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (at, value) in items.iter().enumerate() {
                leaves(value, format!("{path}.{at}"), all);
            }
        }
        _ => all.push((path, value.clone())),
    }
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
        let program = needs::phoenix_python().with_file_name("phoenix");
        let place = home.join("phoenix");
        let said = place.join("said");
        let failed = |error: std::io::Error| format!("phoenix: {error}");
        fs::create_dir_all(&place).map_err(failed)?;
        let out = File::create(&said).map_err(failed)?;
        let child = Command::new(program)
            .arg("serve")
            .current_dir(&place)
            .env("HOME", &place)
            .env("PHOENIX_HOST", "127.0.0.1")
            .env("PHOENIX_PORT", addr.port().to_string())
            .env("PHOENIX_GRPC_PORT", other.port().to_string())
            .env("PHOENIX_WORKING_DIR", &place)
            .env("PHOENIX_TELEMETRY_ENABLED", "false")
            .env("PHOENIX_ALLOW_EXTERNAL_RESOURCES", "false")
            .stdin(Stdio::null())
            .stdout(out.try_clone().map_err(failed)?)
            .stderr(out)
            .spawn()
            .map_err(failed)?;
        let mut server = Phoenix {
            url: format!("http://{addr}"),
            child,
        };
        let until = Instant::now() + START;
        while !server.is_well() {
            let ended = server.child.try_wait().map_err(failed)?;
            if ended.is_some() || Instant::now() > until {
                return Err(format!("phoenix does not start: {}", end(&said)));
            }
            std::thread::sleep(Duration::from_secs(1));
        }
        Ok(server)
    }

    /// Whether it says so itself: it listens before it can answer.
    fn is_well(&self) -> bool {
        let status = Command::new(needs::phoenix_python())
            .args(["-c", LOOK, &format!("{}/healthz", self.url)])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
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

/// The last of what it said.
fn end(said: &Path) -> String {
    let text = fs::read_to_string(said).unwrap_or_default();
    let lines: Vec<&str> = text.lines().rev().take(20).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}

impl Drop for Phoenix {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
