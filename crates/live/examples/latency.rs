//! How soon an appended line is told: `latency [LINES PER SECOND] [SECONDS] [FILES]`.
//!
//! Lines go to a few sessions in turn, in a folder with so many others. Each names itself, and
//! the first row that shows it, or a later one of its session, ends its time.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use unspool_live::{LiveChangeKind, LiveSessions, LiveSettings};
use unspool_model::price::Prices;
use unspool_model::time::Time;
use unspool_store::hook_events::HookEventStore;

/// How many sessions grow.
const WRITERS: usize = 8;

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Time(since.map_or(0, |since| since.as_millis() as i64))
}

fn line(session: &str, number: usize) -> String {
    let (at, text) = (now(), "x".repeat(600));
    format!(
        r#"{{"type":"assistant","uuid":"a-{session}-{number}","parentUuid":null,"sessionId":"{session}","cwd":"/p","version":"2.1.100","timestamp":"{at}","message":{{"id":"m-{number}","role":"assistant","model":"claude-sonnet-4-5","content":[{{"type":"text","text":"{number} {text}"}}],"usage":{{"input_tokens":3,"output_tokens":7}}}}}}"#
    ) + "\n"
}

/// What was written to each session, and when, and not shown yet.
type Sent = HashMap<String, Vec<(usize, Instant)>>;

fn main() -> std::io::Result<()> {
    let mut numbers = std::env::args()
        .skip(1)
        .filter_map(|text| text.parse().ok());
    let mut number = |usual: usize| numbers.next().unwrap_or(usual);
    let (rate, seconds, files) = (number(1_000), number(10), number(1_000));
    let dir = tempfile::tempdir()?;
    let folder = dir.path().join("projects/-p");
    for at in 0..files {
        let folder = dir.path().join(format!("projects/-p{}", at % 100));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(format!("s{at}.jsonl")), line("s", at))?;
    }
    fs::create_dir_all(&folder)?;
    let mut writers = Vec::new();
    for at in 0..WRITERS {
        let path = folder.join(format!("w{at}.jsonl"));
        writers.push(File::options().append(true).create(true).open(&path)?);
    }
    let live = LiveSessions::start(LiveSettings {
        dirs: vec![dir.path().to_owned()],
        events: HookEventStore::open(Path::new("/nonexistent")),
        prices: Prices::bundled().clone(),
        mask: None,
        state: None,
        watch: true,
        clock: now,
        zone: jiff::tz::TimeZone::UTC,
    })?;
    while !live.counts().1 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let joined = live.join();
    let sent: Arc<Mutex<Sent>> = Arc::default();
    let waiting = Arc::clone(&sent);
    let listener = std::thread::spawn(move || {
        let mut took: Vec<Duration> = Vec::new();
        while let Ok(news) = joined.news.recv_timeout(Duration::from_secs(3)) {
            let LiveChangeKind::Session { row, .. } = news.what else {
                continue;
            };
            let shown = row.recent_output.as_deref().unwrap_or_default();
            let shown = shown.split(' ').next().and_then(|text| text.parse().ok());
            let Some(shown): Option<usize> = shown else {
                continue;
            };
            let now = Instant::now();
            let mut waiting = waiting.lock().unwrap_or_else(|it| it.into_inner());
            let lines = waiting.entry(row.id.clone()).or_default();
            lines.retain(|(number, at)| {
                let later = *number > shown;
                if !later {
                    took.push(now - *at);
                }
                later
            });
        }
        took
    });
    let (before, began) = (cpu(), Instant::now());
    let all = rate * seconds;
    for number in 0..all {
        let due = began + Duration::from_secs_f64(number as f64 / rate as f64);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let id = format!("w{}", number % WRITERS);
        let text = line(&id, number);
        let mut sent = sent.lock().unwrap_or_else(|it| it.into_inner());
        sent.entry(id).or_default().push((number, Instant::now()));
        drop(sent);
        writers[number % WRITERS].write_all(text.as_bytes())?;
    }
    let (spent, wall) = (cpu() - before, began.elapsed());
    let mut took = listener.join().unwrap_or_default();
    took.sort();
    let at = |share: f64| took.get((took.len() as f64 * share) as usize).copied();
    println!(
        "{} of {all} lines told; p50 {:?}, p90 {:?}, p99 {:?}, most {:?}; {:.0} lines/s; CPU with the writer {:.1} %",
        took.len(),
        at(0.5).unwrap_or_default(),
        at(0.9).unwrap_or_default(),
        at(0.99).unwrap_or_default(),
        took.last().copied().unwrap_or_default(),
        all as f64 / wall.as_secs_f64(),
        spent * 100.0 / wall.as_secs_f64(),
    );
    Ok(())
}

/// Seconds of processor time that this process took.
fn cpu() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let fields: Vec<f64> = after
        .split_whitespace()
        .filter_map(|field| field.parse().ok())
        .collect();
    // The first field is a letter.
    fields
        .get(10)
        .zip(fields.get(11))
        .map_or(0.0, |(user, system)| (user + system) / 100.0)
}
