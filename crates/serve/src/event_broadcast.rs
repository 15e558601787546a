//! What changes, once for everybody who listens.
//!
//! One thread takes the news of the loop, makes an event of each and hands it to all who
//! listen. The last ones are kept, so that somebody who was away for a moment gets what they
//! missed. Joining, keeping and handing out happen under one lock: there is no gap and nothing
//! comes twice.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use axum::body::Bytes;
use serde::Serialize;
use tokio::sync::broadcast;
use unspool_live::{LiveChange, LiveChangeKind, LiveSessions, LiveSubscription};
use unspool_show::wire::session::SessionJson;

use crate::dashboard_api::without_tokens;

/// How many events are kept for those who come back.
const KEPT: usize = 8192;

/// Who is behind by more events than this is let go, and may come back. All share one list.
const BEHIND: usize = 8192;

/// How long to wait before joining a loop again that let us go.
const AGAIN: Duration = Duration::from_millis(200);

/// Who asks right after the start waits so long for the first look at all files to end.
const SOON: Duration = Duration::from_millis(400);

/// An event, ready to be sent.
#[derive(Clone, Debug)]
pub struct EventFrame {
    /// Its number.
    pub id: u64,
    /// The session it is about; `None` if about all.
    pub session: Option<Arc<str>>,
    /// As it is sent.
    pub bytes: Bytes,
}

/// Everything that is known now, and who wants to hear what comes.
pub struct EventBroadcast {
    known: Mutex<BroadcastState>,
    listeners: broadcast::Sender<EventFrame>,
    began: Instant,
    looked: Condvar,
}

struct BroadcastState {
    rows: HashMap<String, Arc<SessionJson>>,
    kept: VecDeque<EventFrame>,
    /// The number of the last event. The first one is taken from the clock, so that numbers of
    /// another process are not taken for ours.
    last: u64,
    scanned: bool,
}

/// What somebody gets who begins to listen.
pub struct EventSubscription {
    /// What they missed, or everything.
    pub first: Vec<Bytes>,
    /// The number of the last event they then know.
    pub at: u64,
    /// What comes.
    pub next: broadcast::Receiver<EventFrame>,
}

#[derive(Serialize)]
struct SessionChangedEvent<'a> {
    session: &'a SessionJson,
    previous_status: Option<&'a str>,
    grown: bool,
}

#[derive(Serialize)]
struct SessionRemovedEvent<'a> {
    id: &'a str,
}

impl EventBroadcast {
    /// Listens to the loop.
    pub fn start(live: &LiveSessions) -> io::Result<Arc<EventBroadcast>> {
        let hub = Arc::new(EventBroadcast::new());
        let (weak, live) = (Arc::downgrade(&hub), live.clone());
        std::thread::Builder::new()
            .name("hub".into())
            .spawn(move || follow(&weak, &live))?;
        Ok(hub)
    }

    pub(crate) fn new() -> EventBroadcast {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let base = since.map_or(0, |since| since.as_micros() as u64);
        EventBroadcast {
            known: Mutex::new(BroadcastState {
                rows: HashMap::new(),
                kept: VecDeque::new(),
                last: base,
                scanned: false,
            }),
            listeners: broadcast::Sender::new(BEHIND),
            began: Instant::now(),
            looked: Condvar::new(),
        }
    }

    fn known(&self) -> MutexGuard<'_, BroadcastState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All rows, and whether all files were looked at. Right after the start it waits a moment
    /// for that.
    pub fn rows(&self) -> (Vec<Arc<SessionJson>>, bool) {
        let mut known = self.known();
        while !known.scanned {
            let Some(left) = SOON.checked_sub(self.began.elapsed()) else {
                break;
            };
            let waited = self.looked.wait_timeout(known, left);
            known = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        (known.rows.values().cloned().collect(), known.scanned)
    }

    /// How many sessions there are, and whether all files were looked at.
    pub fn count(&self) -> (usize, bool) {
        let known = self.known();
        (known.rows.len(), known.scanned)
    }

    /// The row of one session.
    pub fn row(&self, id: &str) -> Option<Arc<SessionJson>> {
        self.known().rows.get(id).cloned()
    }

    /// Begins to listen: after an event that is still kept, else with everything. Only about
    /// one session, if `session` names it.
    pub fn listen(&self, after: Option<u64>, session: Option<&str>) -> EventSubscription {
        let known = self.known();
        let next = self.listeners.subscribe();
        let oldest = known.kept.front().map_or(known.last + 1, |frame| frame.id);
        let missed = after.filter(|id| (oldest - 1..=known.last).contains(id));
        let at = known.last;
        if let Some(id) = missed {
            let kept = known.kept.iter().filter(|frame| frame.id > id);
            let kept = kept.filter(|frame| frame.is_for(session));
            let first = kept.map(|frame| frame.bytes.clone()).collect();
            return EventSubscription { first, at, next };
        }
        let rows: Vec<Arc<SessionJson>> = match session {
            Some(id) => known.rows.get(id).cloned().into_iter().collect(),
            None => known.rows.values().cloned().collect(),
        };
        let scanned = known.scanned;
        // Making text of ten thousand rows takes a moment; others need not wait for it.
        drop(known);
        let mut first = vec![event(at, "snapshot", &sorted(rows))];
        first.extend(scanned.then(|| event(at, "scanned", &EmptyEvent {})));
        EventSubscription { first, at, next }
    }

    /// Everything as the loop has it, told as changes to those who listen.
    fn take_over(&self, joined: &LiveSubscription) {
        let mut gone: HashMap<String, Arc<SessionJson>> = self.known().rows.clone();
        for row in &joined.rows {
            let before = gone.remove(&row.id);
            let same = before
                .as_ref()
                .is_some_and(|before| Arc::ptr_eq(before, row) || text(&**before) == text(&**row));
            if !same {
                let grown = before
                    .as_ref()
                    .is_none_or(|before| before.bytes != row.bytes);
                let status = before.map(|before| before.status.clone());
                let status = status.filter(|status| *status != row.status);
                self.changed(row, status.as_deref(), grown);
            }
        }
        for id in gone.keys() {
            self.removed(id);
        }
        if joined.scanned {
            self.scanned();
        }
    }

    fn take(&self, news: &LiveChange) {
        match &news.what {
            LiveChangeKind::Session { row, before, grown } => {
                self.changed(row, before.as_deref(), *grown)
            }
            LiveChangeKind::Removed { id } => self.removed(id),
            LiveChangeKind::Scanned => self.scanned(),
        }
    }

    pub(crate) fn changed(&self, row: &Arc<SessionJson>, before: Option<&str>, grown: bool) {
        let data = SessionChangedEvent {
            session: row,
            previous_status: before,
            grown,
        };
        // Text is made before anybody has to wait.
        let data = text(&data);
        let mut known = self.known();
        known.rows.insert(row.id.clone(), Arc::clone(row));
        self.hand_out(known, "session", Some(&row.id), &data);
    }

    fn removed(&self, id: &str) {
        let mut known = self.known();
        if known.rows.remove(id).is_some() {
            self.hand_out(
                known,
                "removed",
                Some(id),
                &text(&SessionRemovedEvent { id }),
            );
        }
    }

    fn scanned(&self) {
        let mut known = self.known();
        if !std::mem::replace(&mut known.scanned, true) {
            self.hand_out(known, "scanned", None, "{}");
            self.looked.notify_all();
        }
    }

    fn hand_out(
        &self,
        mut known: MutexGuard<'_, BroadcastState>,
        name: &str,
        session: Option<&str>,
        data: &str,
    ) {
        known.last += 1;
        let frame = EventFrame {
            id: known.last,
            session: session.map(Arc::from),
            bytes: written(known.last, name, data),
        };
        if known.kept.len() == KEPT {
            known.kept.pop_front();
        }
        known.kept.push_back(frame.clone());
        // Nobody may be listening.
        let _ = self.listeners.send(frame);
    }
}

impl EventFrame {
    /// Whether somebody who wants to hear about one session, or about all, wants this.
    pub fn is_for(&self, session: Option<&str>) -> bool {
        match (session, &self.session) {
            (Some(wanted), Some(own)) => **own == *wanted,
            _ => true,
        }
    }
}

fn follow(hub: &Weak<EventBroadcast>, live: &LiveSessions) {
    loop {
        let joined = live.join();
        match hub.upgrade() {
            Some(hub) => hub.take_over(&joined),
            None => return,
        }
        for news in &joined.news {
            let Some(hub) = hub.upgrade() else { return };
            hub.take(&news);
        }
        // The loop ended, or we were too slow for it.
        std::thread::sleep(AGAIN);
    }
}

#[derive(Serialize)]
struct EmptyEvent {}

/// The latest first.
pub fn sorted(mut rows: Vec<Arc<SessionJson>>) -> Vec<Arc<SessionJson>> {
    rows.sort_by(|a, b| b.last.cmp(&a.last).then_with(|| a.id.cmp(&b.id)));
    rows
}

fn text(value: &impl Serialize) -> String {
    let json = serde_json::to_vec(value).unwrap_or_default();
    String::from_utf8(without_tokens(json)).unwrap_or_default()
}

fn event(id: u64, name: &str, data: &impl EventData) -> Bytes {
    written(id, name, &data.text())
}

/// JSON never holds a newline, so an event is one line of data.
fn written(id: u64, name: &str, data: &str) -> Bytes {
    format!("id: {id}\nevent: {name}\ndata: {data}\n\n").into()
}

/// What an event may say beside changes.
trait EventData {
    fn text(&self) -> String;
}

impl EventData for EmptyEvent {
    fn text(&self) -> String {
        text(self)
    }
}

impl EventData for Vec<Arc<SessionJson>> {
    fn text(&self) -> String {
        let rows: Vec<&SessionJson> = self.iter().map(|row| &**row).collect();
        text(&rows)
    }
}
