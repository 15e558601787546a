//! The daemon itself, and how it is started, asked and stopped.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use unspool_live::LiveSessions;
use unspool_model::time::Time;
use unspool_show::format;
use unspool_show::wire::live::DaemonRow;
use unspool_store::append_log::AppendLog;
use unspool_store::own_file;

use crate::app_dirs::AppDirs;
use crate::command_context::{self, CommandContext};
use crate::commands::hook::detached_process;
use crate::commands::serve;
use crate::failure::CommandFailure;
use crate::live::daemon_server::{self, DaemonState};
use crate::live::{self, daemon_client};
use crate::notify;

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

fn log_path(own: &AppDirs) -> PathBuf {
    own.data.join("daemon.log")
}

fn log(own: &AppDirs, text: &str) {
    let now = jiff::Zoned::now().strftime("%Y-%m-%d %H:%M:%S");
    // Where nothing can be written, nobody can be told.
    let _ = AppendLog::new(log_path(own), LOG).add(&format!("{now} {text}"));
}

/// Starts a daemon and waits until it answers.
pub fn start(world: &CommandContext) -> Result<(), CommandFailure> {
    if daemon_server::is_claimed(&world.own) {
        let known = daemon_client::health(&world.own).map(|row| row.pid);
        return Err(daemon_server::taken(known.or_else(|| {
            daemon_server::holder(&daemon_server::lock_path(&world.own))
        })));
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
    let child = detached_process::start_with(&arguments, errors.ok())?;
    let row = await_answer(world, child)?;
    say(world, &row)
}

fn await_answer(
    world: &CommandContext,
    mut child: std::process::Child,
) -> Result<DaemonRow, CommandFailure> {
    let end = Instant::now() + BEGINS;
    let path = log_path(&world.own);
    let hint = format!("see the log `{}`", path.display());
    while Instant::now() < end {
        if let Some(row) = daemon_client::health(&world.own).filter(|row| row.pid == child.id()) {
            return Ok(row);
        }
        if child.try_wait()?.is_some() {
            let last = AppendLog::new(path, LOG).last(64 << 10).unwrap_or_default();
            let last = last.iter().rev().find(|line| line.starts_with("Error"));
            let why = last.map_or_else(String::new, |line| line.replacen("Error", "", 1));
            return Err(
                CommandFailure::failed(format!("the daemon did not start{why}")).hint(hint),
            );
        }
        std::thread::sleep(STEP);
    }
    Err(CommandFailure::failed("the daemon does not respond").hint(hint))
}

/// Stops the daemon, and does not return before it is gone.
pub fn stop(world: &CommandContext) -> Result<(), CommandFailure> {
    let own = &world.own;
    if !daemon_server::is_claimed(own) {
        return Err(CommandFailure::nothing("the daemon is not running"));
    }
    let pid = daemon_server::holder(&daemon_server::lock_path(own));
    let told = daemon_client::stop(own) && gone(own, STOPS);
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
        return Err(CommandFailure::failed("the daemon cannot be stopped"));
    }
    // One that was killed leaves it behind.
    let _ = std::fs::remove_file(own.socket());
    let which = pid.map_or_else(String::new, |pid| format!(" (process {pid})"));
    world.ui.note(&format!("stopped{which}"));
    Ok(())
}

fn gone(own: &AppDirs, within: Duration) -> bool {
    let end = Instant::now() + within;
    loop {
        if !daemon_server::is_claimed(own) {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(STEP);
    }
}

/// Says whether a daemon runs, and how it is.
pub fn status(world: &CommandContext) -> Result<(), CommandFailure> {
    if !daemon_server::is_claimed(&world.own) {
        return Err(CommandFailure::nothing("the daemon is not running")
            .hint("start it with `unspool daemon start`"));
    }
    let Some(row) = daemon_client::health(&world.own) else {
        let pid = daemon_server::holder(&daemon_server::lock_path(&world.own));
        let which = pid.map_or_else(String::new, |pid| format!(" (process {pid})"));
        return Err(CommandFailure::failed(format!(
            "the daemon is running{which} but does not respond"
        ))
        .hint("stop it with `unspool daemon stop`"));
    };
    say(world, &row)
}

fn say(world: &CommandContext, row: &DaemonRow) -> Result<(), CommandFailure> {
    let mut out = world.ui.out();
    if world.ui.json {
        world.ui.row(&mut out, row)?;
        return Ok(out.flush()?);
    }
    let since = Time::parse(&row.since).map(|since| format::moment(since, world.ui.zone()));
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
        format::count(row.sessions as u64, "session")
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
fn dashboard(world: CommandContext, live: &LiveSessions, stop: &Sender<()>) -> Option<String> {
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
pub fn run_foreground(world: CommandContext) -> Result<(), CommandFailure> {
    // Whatever is made here is for nobody else.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let claim = daemon_server::claim(&world.own)?;
    let _ = std::env::set_current_dir("/");
    let own = world.own.clone();
    let live = live::start(&world)?;
    let dirs = daemon_client::folders(&world.dirs);
    let _notifier = notify::start(&world, &live)?;
    let (stop, stopped) = mpsc::channel();
    let link = dashboard(world, &live, &stop);
    let desk = Arc::new(DaemonState {
        live: live.clone(),
        dirs,
        link,
        since: command_context::now().to_string(),
        log: log_path(&own),
        stop,
        open: AtomicUsize::new(0),
        silent: Mutex::default(),
    });
    // Last, so that whoever finds it finds everything.
    let socket = daemon_server::open(&own, &claim)?;
    daemon_server::serve(&socket, &desk)?;
    log(&own, &format!("running as process {}", std::process::id()));
    let _ = stopped.recv();
    // Nobody is to find a daemon that is about to go.
    drop(socket);
    live.stop();
    log(&own, "stopped");
    Ok(())
}
