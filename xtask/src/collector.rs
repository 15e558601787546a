//! `cargo xtask collector`: our spans through a real collector of OTLP, unchanged.
//!
//! Sends the same sessions twice: straight to our own strict receiver, and to another one
//! behind the collector. What the collector hands on must be what we sent: ids, parents, times,
//! attributes and texts in any script.

use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use unspool_testkit::corpus;
use unspool_testkit::home::Home;
use unspool_testkit::sink::{Sink, Span};

use crate::{Outcome, bench, needs};

/// How long the collector may take to start, and to hand on what it has.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs it.
pub fn run(_args: &[String]) -> Outcome {
    let collector = needs::rotel()?;
    let program = bench::build()?;
    let home = Home::new(&program);
    fill(&home)?;
    let straight = Sink::otlp();
    send(&home, &straight.url())?;
    let behind = Sink::otlp();
    let between = Collector::start(&collector, &behind.url(), home.path())?;
    send(&home, &format!("http://{}", between.addr))?;
    let wanted = straight.spans();
    let until = Instant::now() + PATIENCE;
    while behind.spans().len() < wanted.len() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
    let came = behind.spans();
    let faults = [straight.faults(), behind.faults()].concat();
    if let Some(fault) = faults.first() {
        return Err(format!("{} requests were wrong: {fault}", faults.len()));
    }
    compare(&wanted, &came)?;
    println!("{} spans went through the collector unchanged", came.len());
    Ok(())
}

/// Sessions of real clients, and one in Chinese.
pub fn fill(home: &Home) -> Outcome {
    let text = "you: 请修复这个错误 🐛\nclaude: 好的 [Read 文件.rs]\nresult: Read 文件.rs 内容\nclaude: 完成了\n";
    home.session("/home/dev/x", "c0000000-0000-4000-8000-000000000001", text);
    let sessions = corpus::files().into_iter();
    let sessions = sessions.filter(|file| file.role == corpus::Role::Main);
    for (number, file) in sessions.enumerate() {
        let id = format!("{number:08x}-0000-4000-8000-00000000c0de");
        // The scripted API counted its calls anew in each of them; a real one never does, and
        // there are receivers that keep one span per id.
        let text =
            String::from_utf8_lossy(&file.bytes()).replace("toolu_", &format!("toolu_{number}_"));
        home.transcript("/home/dev/x", &id, text);
    }
    Ok(())
}

/// Sends everything to a receiver.
pub fn send(home: &Home, endpoint: &str) -> Outcome {
    let output = home
        .command()
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        .args(["send", "--all", "--to", "otlp"])
        .output()
        .map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

fn compare(wanted: &[Span], came: &[Span]) -> Outcome {
    let key = |span: &Span| (span.trace.clone(), span.id.clone());
    let came: HashMap<_, &Span> = came.iter().map(|span| (key(span), span)).collect();
    if wanted.is_empty() {
        return Err("nothing was sent".into());
    }
    for span in wanted {
        let about = format!("span {} `{}`", span.id, span.name);
        let Some(other) = came.get(&key(span)) else {
            return Err(format!("{about} did not come through"));
        };
        let same = span.parent == other.parent
            && span.name == other.name
            && (span.start, span.end) == (other.start, other.end)
            && span.attributes == other.attributes;
        if !same {
            return Err(format!("{about} came through as {other:?}"));
        }
    }
    match came.len() == wanted.len() {
        true => Ok(()),
        false => Err(format!("{} spans came of {}", came.len(), wanted.len())),
    }
}

/// A running collector; it is ended when dropped.
struct Collector {
    addr: SocketAddr,
    child: Child,
}

impl Collector {
    fn start(program: &Path, to: &str, home: &Path) -> Result<Collector, String> {
        let (addr, other) = (free_port()?, free_port()?);
        let child = Command::new(program)
            .args(["start", "--exporter", "otlp"])
            .args(["--otlp-http-endpoint", &addr.to_string()])
            .args(["--otlp-grpc-endpoint", &other.to_string()])
            .args(["--otlp-exporter-endpoint", to])
            .args(["--otlp-exporter-protocol", "http"])
            .arg("--pid-file")
            .arg(home.join("collector.pid"))
            .arg("--log-file")
            .arg(home.join("collector.log"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("the collector: {error}"))?;
        let collector = Collector { addr, child };
        await_port(addr)?;
        Ok(collector)
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that nobody has at this moment.
pub fn free_port() -> Result<SocketAddr, String> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.map_err(|error| format!("no free port: {error}"))
}

/// Waits until somebody listens.
pub fn await_port(addr: SocketAddr) -> Outcome {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if TcpStream::connect(addr).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(format!("nobody listens on {addr}"))
}
