//! The socket of the daemon: hooks tell it what happened, commands ask it what is going on.
//!
//! Only its owner can connect: the socket and the folder it is in are for nobody else. A
//! connection that says nothing, says too much or does not read is given up; one that says
//! nothing is also closed for another one that comes, the oldest first.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use unspool_live::{LiveEvent, LiveSessions};
use unspool_show::wire::live::DaemonRow;
use unspool_store::hook_events::RecordedHookEvent;
use unspool_store::own_file;

use super::daemon_protocol::{DaemonChange, DaemonRefusal, DaemonRequest, SnapshotEnd, is_active};
use crate::app_dirs::AppDirs;
use crate::failure::CommandFailure;

/// A request is not longer than this.
const LONGEST: u64 = 1 << 20;
/// So long a connection may take to say what it wants, or to take what it asked for.
const PATIENCE: Duration = Duration::from_secs(10);
/// So often somebody who watches hears something, so that both sides know the other is there.
const PULSE: Duration = Duration::from_secs(15);
/// More questions at once are not answered.
const MOST: usize = 128;
/// So many connections may be open that have not asked yet.
const SILENT: usize = 64;

/// The right to be the daemon of this person; it goes with the process.
pub struct DaemonLock {
    _lock: File,
}

/// Where the lock is.
pub fn lock_path(own: &AppDirs) -> PathBuf {
    own.runtime.join("daemon.lock")
}

/// Takes the right to be the daemon; refused while another process has it.
pub fn claim(own: &AppDirs) -> Result<DaemonLock, CommandFailure> {
    folder(&own.runtime)?;
    let path = lock_path(own);
    let mut lock = open_lock(&path)?;
    // Somebody who only looks has it for a moment.
    for again in (0..5).rev() {
        match lock.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if again > 0 => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(TryLockError::WouldBlock) => return Err(taken(holder(&path))),
            Err(TryLockError::Error(why)) => {
                let what = format!("cannot lock `{}`: {why}", path.display());
                return Err(CommandFailure::failed(what));
            }
        }
    }
    lock.set_len(0)?;
    writeln!(lock, "{}", std::process::id())?;
    Ok(DaemonLock { _lock: lock })
}

fn open_lock(path: &Path) -> Result<File, CommandFailure> {
    own_file::open_or_create(path)
        .map_err(|why| CommandFailure::failed(format!("cannot open `{}`: {why}", path.display())))
}

/// A daemon runs already.
pub fn taken(pid: Option<u32>) -> CommandFailure {
    let which = pid.map_or_else(String::new, |pid| format!(" (process {pid})"));
    CommandFailure::failed(format!("the daemon is already running{which}"))
        .hint("see `unspool daemon status`, or stop it with `unspool daemon stop`")
}

/// Whether somebody is the daemon now: the lock says so, whatever files were left behind.
pub fn is_claimed(own: &AppDirs) -> bool {
    let lock = own_file::open(&lock_path(own));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// The process that has, or had, the lock.
pub fn holder(path: &Path) -> Option<u32> {
    own_file::read_to_string(path).ok()?.trim().parse().ok()
}

/// The folder of the socket, which must be ours and nobody else's to change.
fn folder(dir: &Path) -> Result<(), CommandFailure> {
    own_file::make_folder(dir).map_err(|why| {
        CommandFailure::failed(format!("cannot create `{}`: {why}", dir.display()))
    })?;
    Ok(own_file::check_folder(dir)?)
}

/// The open socket; its file goes with it.
pub struct DaemonSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl Drop for DaemonSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Opens the socket. Whoever holds the claim may put one that was left behind away.
pub fn open(own: &AppDirs, _claim: &DaemonLock) -> Result<DaemonSocket, CommandFailure> {
    let path = own.socket();
    let _ = fs::remove_file(&path);
    let failed = |why: io::Error| {
        CommandFailure::failed(format!("cannot listen on `{}`: {why}", path.display()))
    };
    let listener = UnixListener::bind(&path).map_err(failed)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(DaemonSocket { listener, path })
}

/// What connections are answered from.
pub struct DaemonState {
    /// The loop.
    pub live: LiveSessions,
    /// The config folders it looks at, as they really are.
    pub dirs: Vec<PathBuf>,
    /// Where the dashboard is.
    pub link: Option<String>,
    /// Since when.
    pub since: String,
    /// Its log.
    pub log: PathBuf,
    /// Ends the daemon.
    pub stop: Sender<()>,
    /// How many questions are being answered.
    pub open: AtomicUsize,
    /// Connections that have not asked yet.
    pub silent: Mutex<SilentConnections>,
}

impl DaemonState {
    fn silent(&self) -> MutexGuard<'_, SilentConnections> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connections that have not asked yet, by when they came.
#[derive(Default)]
pub struct SilentConnections {
    came: u64,
    streams: BTreeMap<u64, UnixStream>,
}

impl SilentConnections {
    /// Notes one, and ends the oldest if there are too many.
    fn enter(&mut self, stream: UnixStream) -> u64 {
        if self.streams.len() >= SILENT
            && let Some((_, oldest)) = self.streams.pop_first()
        {
            // Its thread reads the end.
            let _ = oldest.shutdown(std::net::Shutdown::Both);
        }
        self.came += 1;
        self.streams.insert(self.came, stream);
        self.came
    }
}

/// Answers whoever connects, until the process ends.
pub fn serve(socket: &DaemonSocket, desk: &Arc<DaemonState>) -> io::Result<()> {
    let listener = socket.listener.try_clone()?;
    let desk = Arc::clone(desk);
    let thread = std::thread::Builder::new().name("socket".into());
    thread.spawn(move || {
        for stream in listener.incoming() {
            match stream {
                Ok(stream) => attend(stream, &desk),
                // No more files may be open, or the like.
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    })?;
    Ok(())
}

fn attend(stream: UnixStream, desk: &Arc<DaemonState>) {
    let Ok(second) = stream.try_clone() else {
        return;
    };
    let number = desk.silent().enter(second);
    let here = Arc::clone(desk);
    let thread = std::thread::Builder::new().name("connection".into());
    let talk = move || {
        let asked = heard(&stream, &here);
        here.silent().streams.remove(&number);
        // Whoever is gone is not answered.
        if let Ok(Some(asked)) = asked {
            let _ = reply(stream, &here, asked);
        }
    };
    if thread.spawn(talk).is_err() {
        desk.silent().streams.remove(&number);
    }
}

/// What somebody who connects wants in the end.
enum ConnectionRequest {
    Answer(DaemonRequest),
    Refusal(&'static str),
}

/// Takes in events up to a question; `None` if there is none.
fn heard(stream: &UnixStream, desk: &DaemonState) -> io::Result<Option<ConnectionRequest>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(stream).take(LONGEST);
    let mut line = String::new();
    while lines.read_line(&mut line)? > 0 {
        let ask: DaemonRequest = serde_json::from_str(&line).unwrap_or_default();
        if !ask.ask.is_empty() {
            return Ok(Some(ConnectionRequest::Answer(ask)));
        }
        match serde_json::from_str::<RecordedHookEvent>(&line) {
            Ok(noted) if !noted.session.is_empty() => {
                desk.live.tell(LiveEvent::Hook(Box::new(noted)));
            }
            _ => {
                return Ok(Some(ConnectionRequest::Refusal(
                    "neither an event nor a request",
                )));
            }
        }
        line.clear();
    }
    Ok(None)
}

fn reply(stream: UnixStream, desk: &DaemonState, wanted: ConnectionRequest) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(64 << 10, stream);
    let full = desk.open.fetch_add(1, Ordering::SeqCst) >= MOST;
    let done = match wanted {
        // The owner can always ask how it is, and end it.
        ConnectionRequest::Answer(ask)
            if full && !matches!(ask.ask.as_str(), "health" | "stop") =>
        {
            refuse(&mut out, "too many connections")
        }
        ConnectionRequest::Answer(ask) => answer(&mut out, desk, &ask),
        ConnectionRequest::Refusal(why) => refuse(&mut out, why),
    };
    desk.open.fetch_sub(1, Ordering::SeqCst);
    done
}

fn answer(out: &mut impl Write, desk: &DaemonState, ask: &DaemonRequest) -> io::Result<()> {
    if !ask.dirs.is_empty() && ask.dirs != desk.dirs {
        return refuse(out, "the daemon follows other config directories");
    }
    match ask.ask.as_str() {
        "health" => {
            put(out, &health(desk))?;
            out.flush()
        }
        "stop" => {
            put(out, &health(desk))?;
            out.flush()?;
            let _ = desk.stop.send(());
            Ok(())
        }
        "sessions" => {
            for row in desk.live.join().rows {
                if !ask.active || is_active(&row) {
                    put(out, &*row)?;
                }
            }
            out.flush()
        }
        "watch" => watch(out, desk, ask.active),
        other => refuse(out, &format!("unknown request `{other}`")),
    }
}

fn watch(out: &mut impl Write, desk: &DaemonState, active: bool) -> io::Result<()> {
    let joined = desk.live.join();
    for row in joined.rows {
        if !active || is_active(&row) {
            put(out, &*row)?;
        }
    }
    let mark = SnapshotEnd {
        at: joined.at,
        scanned: joined.scanned,
    };
    put(out, &mark)?;
    out.flush()?;
    loop {
        match joined.news.recv_timeout(PULSE) {
            Ok(news) => {
                put(out, &DaemonChange::from(&news))?;
                // What came meanwhile goes with it.
                while let Ok(news) = joined.news.try_recv() {
                    put(out, &DaemonChange::from(&news))?;
                }
            }
            Err(RecvTimeoutError::Timeout) => out.write_all(b"\n")?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        out.flush()?;
    }
}

fn health(desk: &DaemonState) -> DaemonRow {
    let (sessions, scanned) = desk.live.counts();
    DaemonRow {
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        link: desk.link.clone(),
        since: desk.since.clone(),
        sessions,
        scanned,
        dirs: desk.dirs.clone(),
        log: desk.log.clone(),
        notes: desk.live.notes(),
    }
}

fn refuse(out: &mut impl Write, why: &str) -> io::Result<()> {
    let error = why.to_owned();
    put(out, &DaemonRefusal { error })?;
    out.flush()
}

fn put(out: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}
