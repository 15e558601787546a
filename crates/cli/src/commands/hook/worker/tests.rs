//! What the worker sends and when, with a sender that only writes down what it is asked.

// Helpers outside of test functions may give up as well.
#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::thread;
use std::time::Duration;

use unspool_store::hook_events::RecordedHookEvent;

use super::*;
use crate::app_dirs::AppDirs;

const FAST: FlushWaitLimits = FlushWaitLimits {
    quiet: Duration::from_millis(20),
    limit: Duration::from_millis(400),
    step: Duration::from_millis(5),
};

/// Writes down what it is asked.
#[derive(Default)]
struct Fake {
    calls: RefCell<Vec<(Vec<String>, bool)>>,
    due: Vec<PathBuf>,
    down: bool,
    refuses: Option<&'static str>,
    open: u64,
}

impl SessionSender for Fake {
    fn send(&self, sessions: &[SessionFile], ended: bool) -> Result<(String, u64), String> {
        let ids: Vec<String> = sessions.iter().map(|file| file.id.clone()).collect();
        let refused = self.refuses.is_some_and(|id| ids.contains(&id.to_owned()));
        self.calls.borrow_mut().push((ids, ended));
        if self.down || refused {
            return Err("nobody answers".to_owned());
        }
        Ok(("sent".to_owned(), self.open))
    }

    fn receiver(&self) -> String {
        "somewhere".to_owned()
    }

    fn due(&self) -> Vec<SessionFile> {
        self.due.iter().filter_map(|path| session(path)).collect()
    }
}

impl Fake {
    fn sent(&self) -> Vec<(String, bool)> {
        let calls = self.calls.borrow();
        calls
            .iter()
            .map(|(ids, ended)| (ids.join(" "), *ended))
            .collect()
    }
}

struct Bench {
    dir: tempfile::TempDir,
    desk: HookFiles,
}

fn bench() -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("own").into_os_string();
    let own = AppDirs::places(|name| (name == "UNSPOOL_HOME").then(|| home.clone()), None).unwrap();
    Bench {
        desk: HookFiles::new(own),
        dir,
    }
}

impl Bench {
    fn path(&self, id: &str) -> PathBuf {
        self.dir.path().join(format!("{id}.jsonl"))
    }

    fn session(&self, id: &str, text: &str) -> PathBuf {
        fs::write(self.path(id), text).unwrap();
        self.path(id)
    }

    fn job(&self, event: &str, id: &str, said: Option<&str>) -> PathBuf {
        let job = HookJob {
            session: id.to_owned(),
            event: event.to_owned(),
            transcript: self.path(id),
            spoken_in: self.path(id),
            said: said.map(str::to_owned),
        };
        self.desk.add(&job).unwrap()
    }

    fn work(&self, file: &Path, sender: &Fake) -> Result<(), String> {
        work(&self.desk, file, &FAST, sender)
    }

    fn jobs(&self) -> usize {
        fs::read_dir(self.desk.place("jobs")).map_or(0, Iterator::count)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.desk.log.path()).unwrap_or_default()
    }
}

fn line(session: &str) -> String {
    format!(
        r#"{{"type":"assistant","sessionId":"{session}","message":{{"id":"m","role":"assistant","content":[{{"type":"text","text":"done"}}]}}}}"#
    ) + "\n"
}

fn owned(sent: &[(&str, bool)]) -> Vec<(String, bool)> {
    sent.iter()
        .map(|(ids, ended)| ((*ids).to_owned(), *ended))
        .collect()
}

#[test]
fn a_turn_that_is_over_is_sent_and_the_job_is_done() {
    let bench = bench();
    bench.session("s", &line("s"));
    let fake = Fake::default();
    let job = bench.job("Stop", "s", Some("done"));
    bench.work(&job, &fake).unwrap();
    assert_eq!(fake.sent(), owned(&[("s", false)]));
    assert_eq!(bench.jobs(), 0);
    assert!(
        bench.log().contains("[INFO] Stop of s: sent"),
        "{}",
        bench.log()
    );
}

#[test]
fn a_session_that_ended_is_sent_as_one_that_is_over() {
    let bench = bench();
    bench.session("s", &line("s"));
    let fake = Fake::default();
    bench.job("Stop", "s", Some("done"));
    let job = bench.job("SessionEnd", "s", None);
    bench.work(&job, &fake).unwrap();
    assert_eq!(fake.sent(), owned(&[("s", true)]), "both at once");
}

#[test]
fn sessions_before_are_sent_too_wherever_they_are_named() {
    let bench = bench();
    bench.session("old", &line("old"));
    bench.session("s", &(line("s") + &line("old") + &line("gone")));
    let fake = Fake::default();
    let job = bench.job("Stop", "s", Some("done"));
    bench.work(&job, &fake).unwrap();
    assert_eq!(fake.sent(), owned(&[("s", false), ("old", true)]));
}

#[test]
fn a_session_before_is_sent_again_only_if_it_changed_or_was_not_taken() {
    let bench = bench();
    bench.session("old", &line("old"));
    bench.session("s", &(line("s") + &line("old")));
    let once = |fake: &Fake| {
        let job = bench.job("Stop", "s", Some("done"));
        let _ = bench.work(&job, fake);
        let sent = fake.sent().into_iter().map(|(ids, _)| ids);
        sent.filter(|ids| ids == "old").count()
    };
    let refused = Fake {
        refuses: Some("old"),
        ..Fake::default()
    };
    assert_eq!(once(&refused), 1);
    assert_eq!(once(&Fake::default()), 1, "it was not taken");
    assert_eq!(once(&Fake::default()), 0, "it is as it was");
    bench.session("old", &(line("old") + &line("old")));
    assert_eq!(once(&Fake::default()), 1, "it grew");
    // Without what was remembered it is only slower.
    fs::write(bench.desk.place("before").join("s.json"), "{torn").unwrap();
    assert_eq!(once(&Fake::default()), 1);
    assert_eq!(once(&Fake::default()), 0);
}

#[test]
fn a_session_whose_client_was_killed_is_sent_when_the_next_one_begins() {
    let bench = bench();
    let note = |id: &str, event: &str, at: i64| {
        let noted = RecordedHookEvent {
            at,
            session: id.to_owned(),
            event: event.to_owned(),
            transcript: Some(bench.path(id)),
            ..RecordedHookEvent::default()
        };
        bench.desk.events.note(&noted).unwrap();
    };
    for id in ["killed", "ended"] {
        bench.session(id, &line(id));
    }
    let now = open::modified(&fs::metadata(bench.path("ended")).unwrap());
    note("killed", "Stop", now - 60_000);
    note("killed", "UserPromptSubmit", now - 30_000);
    note("ended", "SessionEnd", now);
    note("new", "SessionStart", now);
    let fake = Fake::default();
    // Its own transcript is not there yet.
    let job = bench.job("SessionStart", "new", None);
    bench.work(&job, &fake).unwrap();
    assert_eq!(fake.sent(), owned(&[("killed", false)]));
    assert!(!bench.log().contains("WARN"), "{}", bench.log());
}

#[test]
fn what_cannot_be_sent_stays_to_be_done_and_does_not_pile_up() {
    let bench = bench();
    bench.session("s", &line("s"));
    let down = Fake {
        down: true,
        ..Fake::default()
    };
    for _ in 0..5 {
        let job = bench.job("Stop", "s", Some("done"));
        let why = bench.work(&job, &down).unwrap_err();
        assert_eq!(why, "Stop of s: nobody answers");
        assert_eq!(bench.jobs(), 1);
    }
    let up = Fake::default();
    let job = bench.job("Stop", "s", Some("done"));
    bench.work(&job, &up).unwrap();
    assert_eq!(bench.jobs(), 0);
}

#[test]
fn jobs_that_a_killed_worker_left_are_done_by_another_session() {
    let bench = bench();
    bench.session("s", &line("s"));
    bench.session("due", &line("due"));
    for n in 0..20 {
        bench.session(&format!("left{n}"), &line("x"));
        let path = bench.job("Stop", &format!("left{n}"), None);
        let file = File::options().append(true).open(path).unwrap();
        let old = std::time::SystemTime::now() - Duration::from_secs(3600);
        file.set_modified(old).unwrap();
    }
    fs::write(bench.desk.place("jobs").join("s~0.json"), "{torn").unwrap();
    let fake = Fake {
        due: vec![bench.path("due")],
        ..Fake::default()
    };
    let job = bench.job("Stop", "s", Some("done"));
    bench.work(&job, &fake).unwrap();
    assert_eq!(bench.jobs(), 0);
    let mut all: Vec<String> = fake
        .calls
        .borrow()
        .iter()
        .flat_map(|(ids, _)| ids.clone())
        .collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 22);
}

#[test]
fn a_transcript_that_is_missing_is_a_line_in_the_log() {
    let bench = bench();
    let fake = Fake::default();
    let job = bench.job("Stop", "none", Some("x"));
    bench.work(&job, &fake).unwrap();
    assert_eq!(fake.sent(), []);
    assert_eq!(bench.jobs(), 0);
    assert!(
        bench
            .log()
            .contains("[WARN] Stop of none: no such transcript")
    );
}

#[test]
fn of_many_workers_one_works_one_waits_and_nothing_is_forgotten() {
    let bench = bench();
    bench.session("s", &line("s"));
    let running = SessionWorkLock::take(&bench.desk, slot("s"))
        .unwrap()
        .unwrap();
    let jobs: Vec<PathBuf> = (0..6)
        .map(|_| bench.job("Stop", "s", Some("done")))
        .collect();
    let sent = thread::scope(|scope| {
        let workers: Vec<_> = jobs
            .iter()
            .map(|job| {
                let bench = &bench.desk;
                scope.spawn(move || {
                    let fake = Fake::default();
                    work(bench, job, &FAST, &fake).unwrap();
                    fake.sent().len()
                })
            })
            .collect();
        // All but one have found that somebody waits.
        let began = Instant::now();
        while workers.iter().filter(|worker| worker.is_finished()).count() < 5 {
            assert!(began.elapsed() < Duration::from_secs(60));
            thread::sleep(Duration::from_millis(5));
        }
        drop(running);
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .sum::<usize>()
    });
    assert_eq!(sent, 1);
    assert_eq!(bench.jobs(), 0);
}

#[test]
fn a_turn_that_is_still_open_because_it_was_not_written_is_tried_once_more() {
    let bench = bench();
    bench.session("s", &line("s"));
    let fake = Fake {
        open: 1,
        ..Fake::default()
    };
    let job = bench.job("Stop", "s", Some("never written"));
    bench.work(&job, &fake).unwrap();
    assert_eq!(fake.sent(), owned(&[("s", false), ("s", false)]));
}
