//! The loop over real folders: what happens to files is what rows say.

// Helpers outside of test functions may give up as well.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use unspool_live::{
    LiveChange, LiveChangeKind, LiveEvent, LiveSessions, LiveSettings, LiveSubscription,
};
use unspool_model::price::Prices;
use unspool_model::time::Time;
use unspool_show::wire::session::SessionJson;
use unspool_store::hook_events::{HookEventStore, RecordedHookEvent};
use unspool_testkit::random::Random;
use unspool_testkit::script;

const CWD: &str = "/home/dev/shop";
const LONG: Duration = Duration::from_secs(60);

/// A config folder, and our own.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        fs::create_dir_all(place.folder()).unwrap();
        place
    }

    fn config(&self) -> PathBuf {
        self.0.path().join("claude")
    }

    fn folder(&self) -> PathBuf {
        self.config().join("projects/-home-dev-shop")
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder().join(format!("{id}.jsonl"))
    }

    fn setting(&self, clock: fn() -> Time) -> LiveSettings {
        LiveSettings {
            dirs: vec![self.config()],
            events: HookEventStore::open(&self.0.path().join("own/events")),
            prices: Prices::bundled().clone(),
            mask: None,
            state: Some(self.0.path().join("own/live/rows.jsonl")),
            watch: true,
            clock,
            zone: TimeZone::UTC,
        }
    }

    fn start(&self) -> LiveSessions {
        LiveSessions::start(self.setting(clock)).unwrap()
    }
}

fn clock() -> Time {
    Time::parse("2026-01-05T12:00:00.000Z").unwrap()
}

fn jsonl(id: &str, text: &str) -> String {
    let bytes = script::jsonl(&format!("(cwd={CWD}, session={id})\n{text}"));
    String::from_utf8(bytes).unwrap()
}

fn append(path: &Path, text: &[u8]) {
    let mut file = File::options()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    file.write_all(text).unwrap();
}

/// Waits for a change.
fn wait<T>(joined: &LiveSubscription, mut wanted: impl FnMut(LiveChange) -> Option<T>) -> T {
    let end = Instant::now() + LONG;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let news = joined.news.recv_timeout(left).expect("it comes in time");
        if let Some(found) = wanted(news) {
            return found;
        }
    }
}

fn session(news: LiveChange, fits: impl Fn(&SessionJson) -> bool) -> Option<Arc<SessionJson>> {
    match news.what {
        LiveChangeKind::Session { row, .. } if fits(&row) => Some(row),
        _ => None,
    }
}

/// The rows when everything was looked at.
fn settled(live: &LiveSessions) -> LiveSubscription {
    let end = Instant::now() + LONG;
    while !live.counts().1 {
        assert!(Instant::now() < end);
        std::thread::sleep(Duration::from_millis(5));
    }
    live.join()
}

/// The row of a session as somebody sees it who starts now.
fn fresh(place: &Place, id: &str) -> Arc<SessionJson> {
    let setting = LiveSettings {
        state: None,
        ..place.setting(clock)
    };
    let live = LiveSessions::start(setting).unwrap();
    let joined = settled(&live);
    joined.rows.into_iter().find(|row| row.id == id).unwrap()
}

#[test]
fn a_session_that_grows_is_shown_as_it_grows_and_half_a_line_is_not() {
    let place = Place::new();
    fs::write(place.path("a"), jsonl("a", "you: one\nclaude: first")).unwrap();
    let live = place.start();
    let joined = settled(&live);
    assert_eq!(joined.rows.len(), 1);
    assert_eq!(joined.rows[0].turns, 1);
    let whole = jsonl("a", "you: one\nclaude: first\nyou: two\nclaude: second");
    let rest = &whole[jsonl("a", "you: one\nclaude: first").len()..];
    let (half, end) = rest.split_at(rest.len() - 20);
    append(&place.path("a"), half.as_bytes());
    wait(&joined, |news| session(news, |row| row.turns == 2));
    let shown = live.row("a").unwrap();
    assert_eq!(shown.recent_output.as_deref(), Some("first"));
    append(&place.path("a"), end.as_bytes());
    let row = wait(&joined, |news| {
        session(news, |row| row.recent_output.as_deref() == Some("second"))
    });
    assert_eq!(*row, *fresh(&place, "a"));
}

#[test]
fn news_are_numbered_without_gaps_and_remembered() {
    let place = Place::new();
    let live = place.start();
    let joined = settled(&live);
    assert!(joined.rows.is_empty() && joined.scanned);
    fs::write(place.path("a"), jsonl("a", "you: one\nclaude: first")).unwrap();
    fs::write(place.path("b"), jsonl("b", "you: one\nclaude: first")).unwrap();
    let mut heard = Vec::new();
    wait(&joined, |news| {
        heard.push(news.id);
        (live.counts().0 == 2 && heard.len() >= 2).then_some(())
    });
    let wanted: Vec<u64> = (joined.at + 1..).take(heard.len()).collect();
    assert_eq!(heard, wanted);
    let since = live.since(joined.at).unwrap();
    let since: Vec<u64> = since.iter().map(|news| news.id).collect();
    assert!(since.starts_with(&heard));
    assert!(live.since(1_000_000).is_none());
    assert_eq!(live.since(live.join().at).map(|news| news.len()), Some(0));
}

#[test]
fn a_sub_agent_in_a_new_nested_folder_counts_for_its_session() {
    let place = Place::new();
    let text = jsonl("a", "you: one\nclaude: first [Task look]");
    fs::write(place.path("a"), text).unwrap();
    let live = place.start();
    let joined = settled(&live);
    let before = joined.rows[0].agents;
    let folder = place.folder().join("a/subagents/deep");
    fs::create_dir_all(&folder).unwrap();
    let agent = script::jsonl(&format!(
        "(cwd={CWD}, session=a, agent=x1)\nyou: look\nclaude: found"
    ));
    fs::write(folder.join("agent-x1.jsonl"), &agent).unwrap();
    wait(&joined, |news| {
        session(news, |row| row.id == "a" && row.agents == before + 1)
    });
    assert_eq!(live.join().rows.len(), 1, "an agent is no session");
    let wanted = fresh(&place, "a");
    let end = Instant::now() + LONG;
    while *live.row("a").unwrap() != *wanted {
        assert!(Instant::now() < end, "{:?}\n{wanted:?}", live.row("a"));
        std::thread::sleep(Duration::from_millis(5));
    }
    fs::remove_file(folder.join("agent-x1.jsonl")).unwrap();
    wait(&joined, |news| session(news, |row| row.agents == before));
}

#[test]
fn files_that_go_are_renamed_cut_or_replaced_are_seen() {
    let place = Place::new();
    for id in ["a", "b", "c"] {
        fs::write(place.path(id), jsonl(id, "you: one\nclaude: first")).unwrap();
    }
    let live = place.start();
    let joined = settled(&live);
    let removed = |wanted: &'static str| {
        move |news: LiveChange| {
            matches!(&news.what, LiveChangeKind::Removed { id } if id == wanted).then_some(())
        }
    };
    fs::remove_file(place.path("a")).unwrap();
    wait(&joined, removed("a"));
    fs::rename(place.path("b"), place.path("d")).unwrap();
    wait(&joined, removed("b"));
    if live.row("d").is_none() {
        wait(&joined, |news| session(news, |row| row.id == "d"));
    }
    // Cut and written anew in place, shorter than before.
    fs::write(place.path("c"), jsonl("c", "you: new")).unwrap();
    wait(&joined, |news| {
        session(news, |row| row.goal.as_deref() == Some("new"))
    });
    // Another file in its place.
    let other = place.folder().join("other");
    fs::write(&other, jsonl("c", "you: newer\nclaude: yes\nyou: more")).unwrap();
    fs::rename(&other, place.path("c")).unwrap();
    wait(&joined, |news| {
        session(news, |row| {
            row.goal.as_deref() == Some("newer") && row.turns == 2
        })
    });
    assert_eq!(*live.row("c").unwrap(), *fresh(&place, "c"));
    // The whole folder.
    fs::rename(place.folder(), place.config().join("projects/-else")).unwrap();
    let end = Instant::now() + LONG;
    loop {
        let rows = live.join().rows;
        if rows.len() == 2 && rows.iter().all(|row| row.path.contains("-else")) {
            break;
        }
        assert!(Instant::now() < end, "{rows:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_is_known_survives_a_restart_and_is_not_read_again() {
    let place = Place::new();
    let path = place.path("a");
    fs::write(&path, jsonl("a", "you: one\nclaude: first")).unwrap();
    let live = place.start();
    settled(&live);
    live.stop();
    assert!(live.is_over() && live.join().news.recv().is_err());
    let state = place.0.path().join("own/live/rows.jsonl");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&state), 0o600);
        assert_eq!(mode(state.parent().unwrap()), 0o700);
    }
    // The same size and time: nobody can tell without reading it, and nobody is to.
    let before = fs::metadata(&path).unwrap();
    let text = fs::read_to_string(&path).unwrap().replace("first", "other");
    let mut file = File::options().write(true).open(&path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.set_modified(before.modified().unwrap()).unwrap();
    drop(file);
    let live = place.start();
    let shown = settled(&live).rows[0].recent_output.clone();
    assert_eq!(shown.as_deref(), Some("first"));
    live.stop();
    // A line that makes no sense is passed over, and what follows is kept.
    append(&state, b"{\"torn\": ");
    let whole = jsonl("a", "you: one\nclaude: first\nyou: two");
    append(&path, &whole.as_bytes()[before.len() as usize..]);
    for _ in 0..2 {
        let live = place.start();
        assert_eq!(settled(&live).rows[0].turns, 2);
        live.stop();
    }
}

/// Rows of before had names as they were, tokens and all.
#[test]
fn rows_from_before_names_were_masked_are_not_used_and_not_left() {
    let place = Place::new();
    let path = place.path("a");
    fs::write(&path, jsonl("a", "you: one\nclaude: first")).unwrap();
    let live = place.start();
    settled(&live);
    live.stop();
    let state = place.0.path().join("own/live/rows.jsonl");
    let text = fs::read_to_string(&state).unwrap();
    let old = text.replace("first", "walrus");
    let kept = |text: &str| {
        fs::write(&state, text).unwrap();
        let live = place.start();
        let shown = settled(&live).rows[0].recent_output.clone();
        live.stop();
        (shown.unwrap(), fs::read_to_string(&state).unwrap())
    };
    assert_eq!(kept(&old).0, "walrus", "what is kept is used");
    let head = format!("\"unspool\":\"{}/", env!("CARGO_PKG_VERSION"));
    let (before, after) = old.split_once(&head).unwrap();
    let (_, after) = after.split_once('"').unwrap();
    let (shown, text) = kept(&format!("{before}{head}3\"{after}"));
    assert_eq!(shown, "first");
    assert!(!text.contains("walrus"), "{text}");
}

static LATER: AtomicI64 = AtomicI64::new(0);

fn later() -> Time {
    Time(clock().0 + LATER.load(Ordering::SeqCst))
}

#[test]
fn time_alone_makes_a_session_idle() {
    let place = Place::new();
    let text = jsonl("a", "you: one\nclaude: first [Bash make]");
    let at = text.find("\"timestamp\":\"").unwrap() + 13;
    let began = Time::parse(&text[at..at + 24]).unwrap();
    fs::write(place.path("a"), &text).unwrap();
    LATER.store(began.0 + 10_000 - clock().0, Ordering::SeqCst);
    let live = LiveSessions::start(place.setting(later)).unwrap();
    let joined = settled(&live);
    assert_eq!(joined.rows[0].status, "working");
    LATER.fetch_add(20 * 60_000, Ordering::SeqCst);
    live.tell(LiveEvent::Tick);
    let (row, before) = wait(&joined, |news| match news.what {
        LiveChangeKind::Session { row, before, .. } => before.map(|before| (row, before)),
        _ => None,
    });
    assert_eq!((row.status.as_str(), before.as_str()), ("idle", "working"));
}

static TONIGHT: AtomicI64 = AtomicI64::new(0);

/// Ten to midnight, two hours east of Greenwich, and later.
fn tonight() -> Time {
    let time = Time::parse("2026-01-05T21:50:00.000Z").unwrap();
    Time(time.0 + TONIGHT.load(Ordering::SeqCst))
}

#[test]
fn what_a_session_cost_today_is_right_before_and_after_midnight() {
    let place = Place::new();
    let said = "(usage=1000/1000/0/0/0, model=claude-opus-4-5)\n";
    let days = format!(
        "{said}(at=2026-01-04T21:00:00.000Z) you: one\nclaude: yesterday\n\
         (at=2026-01-05T21:30:00.000Z) you: two\nclaude: today\n"
    );
    for id in ["awake", "asleep"] {
        fs::write(place.path(id), jsonl(id, &days)).unwrap();
    }
    // One is followed, of the other only its row is kept.
    let long_ago = std::time::UNIX_EPOCH + Duration::from_millis(tonight().0 as u64 - 3_600_000);
    let asleep = File::options().write(true).open(place.path("asleep"));
    asleep.unwrap().set_modified(long_ago).unwrap();
    let setting = LiveSettings {
        zone: TimeZone::fixed(jiff::tz::offset(2)),
        ..place.setting(tonight)
    };
    let live = LiveSessions::start(setting.clone()).unwrap();
    let joined = settled(&live);
    assert_eq!(joined.rows.len(), 2);
    for row in &joined.rows {
        let (today, all) = (row.cost_today_usd.unwrap(), row.cost_usd.unwrap());
        assert!(today > 0.0 && (today * 2.0 - all).abs() < 1e-9, "{row:?}");
    }
    TONIGHT.fetch_add(15 * 60_000, Ordering::SeqCst);
    live.tell(LiveEvent::Tick);
    let mut left = vec!["asleep", "awake"];
    wait(&joined, |news| {
        let row = session(news, |row| row.cost_today_usd == Some(0.0))?;
        left.retain(|id| *id != row.id);
        left.is_empty().then_some(())
    });
    let more = format!("{days}(at=2026-01-05T22:03:00.000Z) you: three\nclaude: a new day\n");
    let before = fs::metadata(place.path("awake")).unwrap().len() as usize;
    append(
        &place.path("awake"),
        &jsonl("awake", &more).as_bytes()[before..],
    );
    let row = wait(&joined, |news| {
        session(news, |row| {
            row.cost_today_usd.is_some_and(|cost| cost > 0.0)
        })
    });
    let (today, all) = (row.cost_today_usd.unwrap(), row.cost_usd.unwrap());
    assert!((today * 3.0 - all).abs() < 1e-9, "{row:?}");
    live.stop();
    // What was kept on one day is right on the next.
    TONIGHT.fetch_add(86_400_000, Ordering::SeqCst);
    let live = LiveSessions::start(setting).unwrap();
    let rows = settled(&live).rows;
    assert!(rows.iter().all(|row| row.cost_today_usd == Some(0.0)));
}

#[test]
fn a_hook_changes_the_state_whether_it_is_told_or_noted() {
    let place = Place::new();
    let text = jsonl("a", "you: one\nclaude: first [Bash make]");
    fs::write(place.path("a"), text).unwrap();
    let live = place.start();
    let joined = settled(&live);
    let noted = |event: &str, at: i64| RecordedHookEvent {
        at: clock().0 + at,
        session: "a".into(),
        event: event.into(),
        tool: Some("Bash".into()),
        transcript: Some(place.path("a")),
        ..RecordedHookEvent::default()
    };
    let asks = noted("PermissionRequest", -5_000);
    live.tell(LiveEvent::Hook(Box::new(asks.clone())));
    let row = wait(&joined, |news| {
        session(news, |row| row.status == "waiting_for_approval")
    });
    assert_eq!(row.status_from, "hook");
    let events = HookEventStore::open(&place.0.path().join("own/events"));
    events.note(&asks).unwrap();
    events.note(&noted("Stop", -1_000)).unwrap();
    // The folder was not there to be watched.
    live.tell(LiveEvent::Hint(place.0.path().join("own/events/a.jsonl")));
    wait(&joined, |news| {
        session(news, |row| row.status == "waiting_for_input")
    });
}

#[test]
fn a_line_that_was_never_ended_is_shown_as_by_a_look_at_the_file() {
    let place = Place::new();
    let text = jsonl("a", "you: one\nclaude: first\nyou: two");
    fs::write(place.path("a"), text.trim_end()).unwrap();
    let file = File::options().write(true).open(place.path("a")).unwrap();
    let long_ago = Duration::from_millis(clock().0 as u64 - 3_600_000);
    file.set_modified(std::time::UNIX_EPOCH + long_ago).unwrap();
    let live = place.start();
    assert_eq!(settled(&live).rows[0].turns, 2);
}

#[test]
fn a_row_says_how_large_the_file_is_also_while_a_line_is_unfinished() {
    let place = Place::new();
    let path = place.path("a");
    append(&path, jsonl("a", "you: one\nclaude: first").as_bytes());
    let live = place.start();
    let end = Instant::now() + LONG;
    let sized = |size: u64| live.row("a").is_some_and(|row| row.bytes == size);
    let mut size = fs::metadata(&path).unwrap().len();
    for half in ["", "{\"type\":\"us", "er\""] {
        append(&path, half.as_bytes());
        size += half.len() as u64;
        while !sized(size) {
            assert!(
                Instant::now() < end,
                "{:?}",
                live.row("a").map(|row| row.bytes)
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// However bytes arrive, and whatever happens in between, the row is that of one look at the
/// file in the end.
#[test]
fn any_chunking_gives_the_row_of_one_pass() {
    let mut text = String::new();
    for turn in 0..40 {
        text += &format!("you: prompt {turn} äöü\nclaude: reply {turn} [Bash ls {turn}]\n");
        text += &format!("result: Bash ls {turn} fine 日本\nclaude: done {turn}\n");
    }
    let bytes = jsonl("a", &text).into_bytes();
    for seed in 0..4 {
        let place = Place::new();
        let path = place.path("a");
        let mut random = Random::new(seed);
        let mut live = place.start();
        let mut done = 0;
        while done < bytes.len() {
            let next = (done + 1 + random.below(3_000) as usize).min(bytes.len());
            append(&path, &bytes[done..next]);
            done = next;
            match random.below(30) {
                0 => {
                    live.stop();
                    live = place.start();
                }
                // Replaced by what it was so far.
                1 => {
                    let other = place.folder().join("new");
                    fs::write(&other, &bytes[..done]).unwrap();
                    fs::rename(&other, &path).unwrap();
                }
                2 => {
                    fs::write(&path, &bytes[..done / 2]).unwrap();
                    append(&path, &bytes[done / 2..done]);
                }
                3 => drop(fs::copy(&path, place.path(&format!("fork{done}"))).unwrap()),
                4..=12 => std::thread::sleep(Duration::from_millis(random.below(15))),
                _ => {}
            }
        }
        let wanted = fresh(&place, "a");
        let end = Instant::now() + LONG;
        while live.row("a").is_none_or(|row| row != wanted) {
            let shown = live.row("a");
            assert!(Instant::now() < end, "seed {seed}:\n{shown:?}\n{wanted:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        let files = fs::read_dir(place.folder()).unwrap().count();
        while live.counts().0 != files {
            assert!(Instant::now() < end, "{} of {files}", live.counts().0);
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// As on disks of other machines, which tell nobody when files change.
#[test]
fn where_nothing_is_told_files_are_looked_at_by_the_clock() {
    let place = Place::new();
    let begun = "you: one\nclaude: first";
    fs::write(place.path("a"), jsonl("a", begun)).unwrap();
    let setting = LiveSettings {
        watch: false,
        ..place.setting(clock)
    };
    let live = LiveSessions::start(setting).unwrap();
    let joined = settled(&live);
    assert_eq!(joined.rows.len(), 1);

    // A session that is followed grows, half a line first.
    let whole = jsonl("a", "you: one\nclaude: first\nyou: two\nclaude: second");
    let rest = &whole.as_bytes()[jsonl("a", begun).len()..];
    let (half, end) = rest.split_at(rest.len() - 20);
    append(&place.path("a"), half);
    wait(&joined, |news| session(news, |row| row.turns == 2));
    append(&place.path("a"), end);
    let row = wait(&joined, |news| {
        session(news, |row| row.recent_output.as_deref() == Some("second"))
    });
    assert_eq!(row, fresh(&place, "a"));

    // A new one, in a folder that is new as well, and its sub-agent below it.
    let other = place.config().join("projects/-home-dev-new");
    fs::create_dir_all(other.join("b/subagents")).unwrap();
    fs::write(other.join("b.jsonl"), jsonl("b", "you: hello\nclaude: yes")).unwrap();
    wait(&joined, |news| session(news, |row| row.id == "b"));
    let helper = script::jsonl(&format!(
        "(cwd={CWD}, session=b, agent=a1)\nyou: help\nclaude: helped"
    ));
    fs::write(other.join("b/subagents/agent-a1.jsonl"), helper).unwrap();
    wait(&joined, |news| {
        session(news, |row| row.id == "b" && row.agents == 1)
    });

    // Cut short, and gone.
    fs::write(place.path("a"), jsonl("a", "you: anew\nclaude: again")).unwrap();
    wait(&joined, |news| {
        session(news, |row| row.recent_output.as_deref() == Some("again"))
    });
    fs::remove_file(other.join("b.jsonl")).unwrap();
    wait(&joined, |news| match news.what {
        LiveChangeKind::Removed { id } => (id == "b").then_some(()),
        _ => None,
    });
}
