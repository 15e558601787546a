//! Many who listen at the same time.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use unspool_show::wire::session::SessionJson;

use crate::dashboard_api::*;
use crate::event_broadcast::EventBroadcast;
use crate::{RunningServer, ServerSettings};

/// Knows nothing.
struct Nobody;

macro_rules! nothing {
    ($($name:ident($($what:ty),*);)*) => {
        $(fn $name(&self, $(_: $what),*) -> Result<DashboardResponse, DashboardError> {
            Err(DashboardError::absent("nothing"))
        })*
    };
}

impl DashboardApi for Nobody {
    nothing! {
        sessions(&SessionsQuery, Vec<Arc<SessionJson>>, bool);
        session(&str, Option<Arc<SessionJson>>);
        turns(&str, &TurnsQuery);
        turn(&str, usize, &TurnsQuery);
        items(&str, &ItemsQuery);
        item(&str, usize, &ItemsQuery);
        raw(&str, u32, &ThreadQuery);
        image(&str, u32, usize, &ThreadQuery);
        find(&str, &FindQuery);
        timeline(&str, &TimelineQuery);
        context(&str, &ContextQuery);
        tree(&str);
        trim(&str, &TrimQuery);
        search(&SearchSessionsQuery);
        usage(&UsageQuery);
    }

    fn export(&self, _: &str, _: &ExportQuery, _: &mut dyn Write) -> Result<(), DashboardError> {
        Err(DashboardError::absent("nothing"))
    }

    fn hook(&self, _: &[u8]) -> Result<(), DashboardError> {
        Ok(())
    }
}

pub(crate) fn server() -> (RunningServer, Arc<EventBroadcast>) {
    server_on(0)
}

/// A server on this port, or on the next one that is free.
pub(crate) fn server_on(port: u16) -> (RunningServer, Arc<EventBroadcast>) {
    let setting = ServerSettings {
        address: None,
        port,
        any_port: true,
        names: Vec::new(),
        tls: None,
        version: "0".into(),
    };
    let hub = Arc::new(EventBroadcast::new());
    let running = crate::begin(&setting, Arc::new(Nobody), Arc::clone(&hub)).unwrap();
    (running, hub)
}

pub(crate) fn row(id: &str, turns: usize) -> Arc<SessionJson> {
    Arc::new(SessionJson {
        id: id.to_owned(),
        turns,
        recent_output: Some("words ".repeat(60)),
        ..blank()
    })
}

fn blank() -> SessionJson {
    use unspool_model::session::{Session, TranscriptRole};
    use unspool_model::view::{session_row, status};
    let session = Session::new(TranscriptRole::Main);
    let prices = unspool_model::price::Prices::bundled();
    let now = unspool_model::time::Time(0);
    let signals = status::StatusSignals::default();
    let files = unspool_model::view::session_usage::SessionFiles::alone(&session);
    let row = session_row::row(&files, &Default::default(), prices, &signals, now);
    SessionJson::new(&session, row, Default::default())
}

pub(crate) fn listen(running: &RunningServer) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", running.port)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let head = format!(
        "GET /api/events HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nauthorization: Bearer {}\r\n\r\n",
        running.port,
        running.keys.token()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream);
    // The snapshot is there: from now on nothing may be missing.
    until(&mut lines, "event: snapshot").unwrap();
    lines
}

/// Reads until a line begins so; `None` at the end.
pub(crate) fn until(lines: &mut BufReader<TcpStream>, start: &str) -> Option<String> {
    loop {
        let mut line = String::new();
        match lines.read_line(&mut line) {
            Ok(0) | Err(_) => return None,
            Ok(_) if line.starts_with(start) => return Some(line),
            Ok(_) => {}
        }
    }
}

/// Tells `count` events at `rate` a second while `listeners` read; how many each got, and how
/// long the slowest was behind at the end.
fn run(listeners: usize, count: u64, rate: u64) -> (Vec<u64>, Duration) {
    let (running, hub) = server();
    let readers: Vec<_> = (0..listeners).map(|_| listen(&running)).collect();
    let (done, all) = std::sync::mpsc::channel();
    for mut lines in readers {
        let done = done.clone();
        std::thread::spawn(move || {
            let mut got = 0;
            let mut last = None;
            while got < count {
                let Some(line) = until(&mut lines, "id: ") else {
                    break;
                };
                let id: u64 = line["id: ".len()..].trim().parse().unwrap();
                assert!(last.is_none_or(|last| id == last + 1), "a gap");
                last = Some(id);
                got += 1;
            }
            let _ = done.send((got, Instant::now()));
        });
    }
    let began = Instant::now();
    for n in 0..count {
        let due = Duration::from_micros(n * 1_000_000 / rate);
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        hub.changed(&row(&format!("s{}", n % 50), n as usize), None, true);
    }
    let told = Instant::now();
    let ends: Vec<_> = (0..listeners).map(|_| all.recv().unwrap()).collect();
    let late = ends
        .iter()
        .map(|(_, at)| at.saturating_duration_since(told));
    (
        ends.iter().map(|(got, _)| *got).collect(),
        late.max().unwrap_or_default(),
    )
}

#[test]
fn those_who_keep_up_get_every_event_in_order() {
    let (got, _) = run(10, 500, 500);
    assert_eq!(got, [500; 10]);
}

#[test]
fn somebody_who_does_not_read_is_let_go_and_the_others_miss_nothing() {
    let (running, hub) = server();
    let mut idle = listen(&running);
    let mut awake = listen(&running);
    let count = 40_000;
    let reader = std::thread::spawn(move || {
        (0..count)
            .take_while(|_| until(&mut awake, "id: ").is_some())
            .count()
    });
    for n in 0..count {
        hub.changed(&row("s", n), None, true);
        if n % 100 == 0 {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    assert_eq!(reader.join().unwrap(), count);
    // What was under way arrives; then the stream ends, short of everything.
    let mut got = 0;
    while until(&mut idle, "id: ").is_some() {
        got += 1;
    }
    assert!(got < count, "{got}");
}

/// Run by hand: `cargo test --release -p unspool-serve -- --ignored --nocapture load`.
#[test]
#[ignore = "takes some seconds of all cores"]
fn two_hundred_listeners_at_a_thousand_events_a_second() {
    let (got, late) = run(200, 10_000, 1_000);
    let whole = got.iter().filter(|got| **got == 10_000).count();
    println!("{whole} of 200 got all of 10,000 events; the last one {late:?} after it was told");
    assert_eq!(whole, 200);
}
