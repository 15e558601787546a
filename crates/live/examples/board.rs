//! Starts a loop over a config folder and tells how fast rows come:
//! `board DIR [STATE] [SECONDS]`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use unspool_live::{LiveChangeKind, LiveSessions, LiveSettings};
use unspool_model::price::Prices;
use unspool_model::time::Time;
use unspool_store::hook_events::HookEventStore;

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Time(since.map_or(0, |since| since.as_millis() as i64))
}

fn main() -> std::io::Result<()> {
    let mut args = std::env::args_os().skip(1);
    let dir = args.next().map(PathBuf::from).unwrap_or_default();
    let state = args.next().map(PathBuf::from);
    let seconds = args.next().and_then(|text| text.to_str()?.parse().ok());
    let began = Instant::now();
    let live = LiveSessions::start(LiveSettings {
        dirs: vec![dir],
        events: HookEventStore::open(Path::new("/nonexistent")),
        prices: Prices::bundled().clone(),
        mask: None,
        state,
        watch: true,
        clock: now,
        zone: jiff::tz::TimeZone::UTC,
    })?;
    let joined = live.join();
    println!("{} rows after {:?}", joined.rows.len(), began.elapsed());
    let end = began + Duration::from_secs(seconds.unwrap_or(20));
    let mut news = 0;
    let mut scanned = joined.scanned;
    while let Ok(one) = joined
        .news
        .recv_timeout(end.saturating_duration_since(Instant::now()))
    {
        news += 1;
        if matches!(one.what, LiveChangeKind::Scanned) {
            scanned = true;
            println!("scanned after {:?}, {news} news", began.elapsed());
        }
    }
    println!(
        "{news} news, scanned {scanned}, {} rows, notes {:?}",
        live.join().rows.len(),
        live.notes()
    );
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status
        .lines()
        .filter(|line| line.starts_with("VmHWM") || line.starts_with("VmRSS"))
    {
        println!("{line}");
    }
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.split_whitespace().collect();
    println!("user {} system {} (hundredths)", fields[13], fields[14]);
    Ok(())
}
