//! The daemon itself, and how it is started, asked and stopped.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use unspool_live::Live;
use unspool_model::time::Time;
use unspool_show::amount;
use unspool_show::wire::live::DaemonRow;
use unspool_store::own_file;
use unspool_store::trail::Trail;

use crate::commands::hook::detach;
use crate::commands::serve;
use crate::failure::Failure;
use crate::live::server::{self, Desk};
use crate::live::{self, client};
use crate::notify;
use crate::own::Own;
use crate::world::{self, World};

/// How long a daemon may take to answer for the first time.
const BEGINS: Duration = Duration::from_secs(20);
/// How long it may take to stop by itself.
const STOPS: Duration = Duration::from_secs(10);
/// How long it may take to stop when it is told to by the system.
const DIES: Duration = Duration::from_secs(3);
/// How often to look meanwhile.
const STEP: Duration = Duration::from_millis(20);
/// So large a log is put aside.
const LOG: u64 = 1 << 20;

fn log_path(own: &Own) -> PathBuf {
    own.data.join("daemon.log")
}

fn log(own: &Own, text: &str) {
    let now = jiff::Zoned::now().strftime("%Y-%m-%d %H:%M:%S");
    // Where nothing can be written, nobody can be told.
    let _ = Trail::new(log_path(own), LOG).add(&format!("{now} {text}"));
}

/// Starts a daemon and waits until it answers.
pub fn start(world: &World) -> Result<(), Failure> {
    if server::is_claimed(&world.own) {
        let known = client::health(&world.own).map(|row| row.pid);
        return Err(server::taken(
            known.or_else(|| server::holder(&server::lock_path(&world.own))),
        ));
    }
    let mut arguments: Vec<OsString> = Vec::new();
    for dir in &world.dirs {
        let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
        arguments.extend(["--claude-dir".into(), dir.into()]);
    }
    arguments.extend(["daemon", "run"].map(OsString::from));
    log(&world.own, "starting");
    let path = log_path(&world.own);
    // What it says when it cannot go on belongs to what it said before.
    let errors = own_file::append(&path);
    let child = detach::start_with(&arguments, errors.ok())?;
    let row = await_answer(world, child)?;
    say(world, &row)
}

fn await_answer(world: &World, mut child: std::process::Child) -> Result<DaemonRow, Failure> {
    let end = Instant::now() + BEGINS;
    let path = log_path(&world.own);
    let hint = format!("see the log `{}`", path.display());
    while Instant::now() < end {
        if let Some(row) = client::health(&world.own).filter(|row| row.pid == child.id()) {
            return Ok(row);
        }
        if child.try_wait()?.is_some() {
            let last = Trail::new(path, LOG).last(64 << 10).unwrap_or_default();
            let last = last.iter().rev().find(|line| line.starts_with("Error"));
            let why = last.map_or_else(String::new, |line| line.replacen("Error", "", 1));
            return Err(Failure::failed(format!("the daemon did not start{why}")).hint(hint));
        }
        std::thread::sleep(STEP);
    }
    Err(Failure::failed("the daemon does not respond").hint(hint))
}

/// Stops the daemon, and does not return before it is gone.
pub fn stop(world: &World) -> Result<(), Failure> {
    let own = &world.own;
    if !server::is_claimed(own) {
        return Err(Failure::nothing("the daemon is not running"));
    }
    let pid = server::holder(&server::lock_path(own));
    let told = client::stop(own) && gone(own, STOPS);
    if !told {
        for signal in [Signal::TERM, Signal::KILL] {
            if gone(own, Duration::ZERO) {
                break;
            }
            let pid = pid.and_then(|pid| i32::try_from(pid).ok());
            let Some(pid) = pid.and_then(Pid::from_raw) else {
                break;
            };
            world
                .ui
                .warn("the daemon does not respond: killing its process");
            // It may have gone by itself.
            let _ = rustix::process::kill_process(pid, signal);
            gone(own, DIES);
        }
    }
    if !gone(own, Duration::ZERO) {
        return Err(Failure::failed("the daemon cannot be stopped"));
    }
    // One that was killed leaves it behind.
    let _ = std::fs::remove_file(own.socket());
    let which = pid.map_or_else(String::new, |pid| format!(" (process {pid})"));
    world.ui.note(&format!("stopped{which}"));
    Ok(())
}

fn gone(own: &Own, within: Duration) -> bool {
    let end = Instant::now() + within;
    loop {
        if !server::is_claimed(own) {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(STEP);
    }
}

/// Says whether a daemon runs, and how it is.
pub fn status(world: &World) -> Result<(), Failure> {
    if !server::is_claimed(&world.own) {
        return Err(Failure::nothing("the daemon is not running")
            .hint("start it with `unspool daemon start`"));
    }
    let Some(row) = client::health(&world.own) else {
        let pid = server::holder(&server::lock_path(&world.own));
        let which = pid.map_or_else(String::new, |pid| format!(" (process {pid})"));
        return Err(
            Failure::failed(format!("the daemon is running{which} but does not respond"))
                .hint("stop it with `unspool daemon stop`"),
        );
    };
    say(world, &row)
}

fn say(world: &World, row: &DaemonRow) -> Result<(), Failure> {
    let mut out = world.ui.out();
    if world.ui.json {
        world.ui.row(&mut out, row)?;
        return Ok(out.flush()?);
    }
    let since = Time::parse(&row.since).map(|since| amount::moment(since, world.ui.zone()));
    writeln!(
        out,
        "running since {} as process {} (version {})",
        since.unwrap_or_default(),
        row.pid,
        row.version
    )?;
    let seen = if row.scanned { "" } else { ", still scanning" };
    writeln!(
        out,
        "{}{seen}",
        amount::count(row.sessions as u64, "session")
    )?;
    if let Some(link) = &row.link {
        writeln!(out, "dashboard: {link}")?;
    }
    for note in &row.notes {
        writeln!(out, "{}", unspool_show::clean::line(note))?;
    }
    Ok(out.flush()?)
}

/// Serves the dashboard, and hears when the system wants an end; the link to it. A daemon
/// without one is still of use.
fn dashboard(world: World, live: &Live, stop: &Sender<()>) -> Option<String> {
    let own = world.own.clone();
    let running = match serve::beside(world, live.clone()) {
        Ok(running) => running,
        Err(why) => {
            log(&own, &format!("no dashboard: {why}"));
            return None;
        }
    };
    let (link, stop) = (running.link.clone(), stop.clone());
    let wait = move || {
        let _ = running.wait();
        let _ = stop.send(());
    };
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(wait).ok().map(|_| link)
}

/// Is the daemon until it is told to stop.
pub fn be(world: World) -> Result<(), Failure> {
    // Whatever is made here is for nobody else.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let claim = server::claim(&world.own)?;
    let _ = std::env::set_current_dir("/");
    let own = world.own.clone();
    let live = live::start(&world)?;
    let dirs = client::folders(&world.dirs);
    let _notifier = notify::start(&world, &live)?;
    let (stop, stopped) = mpsc::channel();
    let link = dashboard(world, &live, &stop);
    let desk = Arc::new(Desk {
        live: live.clone(),
        dirs,
        link,
        since: world::now().to_string(),
        log: log_path(&own),
        stop,
        open: AtomicUsize::new(0),
        silent: Mutex::default(),
    });
    // Last, so that whoever finds it finds everything.
    let socket = server::open(&own, &claim)?;
    server::serve(&socket, &desk)?;
    log(&own, &format!("running as process {}", std::process::id()));
    let _ = stopped.recv();
    // Nobody is to find a daemon that is about to go.
    drop(socket);
    live.stop();
    log(&own, "stopped");
    Ok(())
}
