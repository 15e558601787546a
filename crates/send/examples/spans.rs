//! Tells all sessions of a config folder as spans, encodes them and throws them away: what
//! `cargo xtask bench` measures.
//!
//! `spans DIR [--raw] [--once]`: secrets are masked unless `--raw`; `--once` tells texts under
//! one name instead of three. Prints one object: spans, bytes, and seconds of processor.

use std::path::PathBuf;

use nix::sys::resource::{UsageWho, getrusage};
use unspool_model::price::Prices;
use unspool_send::otlp::{OtlpLimits, OtlpPacker, OtlpRequest, OtlpResource, TextAttributes};
use unspool_send::spans::{SessionTurnTraces, TraceFacts, TraceInput, TraceOptions, TraceSubAgent};
use unspool_store::find;
use unspool_store::read::SessionReader;
use unspool_store::session_with_agents::{self, SessionWithAgents};

fn main() {
    let mut options = TraceOptions::default();
    let mut limits = OtlpLimits::default();
    let mut dirs = Vec::new();
    for arg in std::env::args().skip(1) {
        match arg.as_str() {
            "--raw" => options.redact = None,
            "--once" => {
                limits.texts = TextAttributes {
                    langfuse: true,
                    gen_ai: false,
                    open_inference: false,
                };
            }
            dir => dirs.push(PathBuf::from(dir)),
        }
    }
    let mut found = find::find(&dirs);
    found.identify_agents();
    let mut count = Count::default();
    let mut packer = OtlpPacker::new(limits, &OtlpResource::default());
    for file in &found.sessions {
        let start = cpu();
        let family = session_with_agents::read_session_with_agents_by(
            &SessionReader::default(),
            &found,
            file,
        );
        count.read += cpu() - start;
        let Ok(family) = family else { continue };
        let start = cpu();
        tell(&family, &file.id, options, &mut packer, &mut count);
        count.tell += cpu() - start;
    }
    if let Some(batch) = packer.finish() {
        count.take(&batch);
    }
    println!(
        r#"{{"sessions":{},"traces":{},"spans":{},"requests":{},"bytes":{},"read_seconds":{:.3},"tell_seconds":{:.3},"spans_per_second":{:.0}}}"#,
        found.sessions.len(),
        count.traces,
        count.spans,
        count.requests,
        count.bytes,
        count.read,
        count.tell,
        count.spans as f64 / count.tell,
    );
}

#[derive(Default)]
struct Count {
    traces: usize,
    spans: usize,
    requests: usize,
    bytes: usize,
    read: f64,
    tell: f64,
}

impl Count {
    fn take(&mut self, batch: &OtlpRequest) {
        self.requests += 1;
        self.spans += batch.spans().len();
        self.bytes += batch.encode().len();
    }
}

fn tell(
    family: &SessionWithAgents,
    id: &str,
    options: TraceOptions<'_>,
    packer: &mut OtlpPacker,
    count: &mut Count,
) {
    let facts = TraceFacts {
        session: id.to_owned(),
        ..TraceFacts::default()
    };
    let agents = family.agents.iter().map(|agent| TraceSubAgent {
        file: agent.listed(),
        source: &agent.loaded.source,
    });
    let material = TraceInput {
        session: &family.main.session,
        source: &family.main.source,
        agents: agents.collect(),
        runs: &family.runs,
        prices: Prices::bundled(),
    };
    let traces = SessionTurnTraces::new(material, &facts, options);
    for trace in traces.iter() {
        count.traces += 1;
        let mut full = |batch: OtlpRequest| -> Result<(), std::convert::Infallible> {
            count.take(&batch);
            Ok(())
        };
        let Ok(()) = packer.add(&traces, &trace, &mut full);
    }
}

/// Seconds of processor so far, of all threads.
fn cpu() -> f64 {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else {
        return 0.0;
    };
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}
