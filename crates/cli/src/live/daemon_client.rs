//! Asks the daemon, if one runs.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use unspool_live::LiveSubscription;
use unspool_show::wire::live::DaemonRow;
use unspool_show::wire::session::SessionJson;

use super::daemon_protocol::{DaemonChange, DaemonRequest, SnapshotEnd};
use crate::app_dirs::AppDirs;
use crate::command_context::CommandContext;

/// A daemon that does not answer for so long is none.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many changes may wait for whoever reads them.
const BEHIND: usize = 4_096;

/// Asks, and gives where the answer comes from.
fn ask(own: &AppDirs, ask: &DaemonRequest) -> Option<BufReader<UnixStream>> {
    let mut stream = UnixStream::connect(own.socket()).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    let mut line = serde_json::to_vec(ask).ok()?;
    line.push(b'\n');
    stream.write_all(&line).ok()?;
    Some(BufReader::with_capacity(64 << 10, stream))
}

/// How the daemon is; nothing if none runs.
pub fn health(own: &AppDirs) -> Option<DaemonRow> {
    let wanted = DaemonRequest {
        ask: "health".into(),
        ..DaemonRequest::default()
    };
    let mut line = String::new();
    ask(own, &wanted)?.read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

/// Tells the daemon to stop; whether it said that it will.
pub fn stop(own: &AppDirs) -> bool {
    let wanted = DaemonRequest {
        ask: "stop".into(),
        ..DaemonRequest::default()
    };
    let mut line = String::new();
    let answer = ask(own, &wanted).and_then(|mut answer| answer.read_line(&mut line).ok());
    answer.is_some_and(|read| read > 0)
}

/// The folders of this world as the daemon compares them.
pub fn folders(dirs: &[PathBuf]) -> Vec<PathBuf> {
    let real = |dir: &PathBuf| std::fs::canonicalize(dir).unwrap_or_else(|_| dir.clone());
    dirs.iter().map(real).collect()
}

/// Rows of sessions in which something goes on.
pub fn active(world: &CommandContext) -> Option<Vec<SessionJson>> {
    let wanted = DaemonRequest {
        ask: "watch".into(),
        dirs: folders(&world.dirs),
        active: true,
    };
    let (rows, mark, _) = rows(ask(&world.own, &wanted)?)?;
    // Before that a session that waits may not be known.
    mark.scanned.then_some(rows)
}

/// All rows, and every change from then on.
pub fn join(world: &CommandContext) -> Option<LiveSubscription> {
    let wanted = DaemonRequest {
        ask: "watch".into(),
        dirs: folders(&world.dirs),
        active: false,
    };
    let (rows, mark, mut lines) = rows(ask(&world.own, &wanted)?)?;
    // It says something at least each quarter of a minute.
    let patience = Some(PATIENCE * 30);
    lines.get_ref().set_read_timeout(patience).ok()?;
    let (sender, news) = mpsc::sync_channel(BEHIND);
    let thread = std::thread::Builder::new().name("daemon".into());
    let read = move || {
        let mut line = String::new();
        while lines.read_line(&mut line).is_ok_and(|read| read > 0) {
            let change = serde_json::from_str::<DaemonChange<SessionJson>>(&line).ok();
            if let Some(one) = change.and_then(DaemonChange::news)
                && sender.send(one).is_err()
            {
                return;
            }
            line.clear();
        }
    };
    thread.spawn(read).ok()?;
    Some(LiveSubscription {
        rows: rows.into_iter().map(Arc::new).collect(),
        at: mark.at,
        scanned: mark.scanned,
        news,
    })
}

/// Rows up to the mark behind them; nothing if the daemon refuses.
fn rows(
    mut lines: BufReader<UnixStream>,
) -> Option<(Vec<SessionJson>, SnapshotEnd, BufReader<UnixStream>)> {
    let mut rows = Vec::new();
    let mut line = String::new();
    loop {
        line.clear();
        if lines.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match serde_json::from_str::<SessionJson>(&line) {
            Ok(row) => rows.push(row),
            Err(_) => {
                let mark = serde_json::from_str(&line).ok()?;
                return Some((rows, mark, lines));
            }
        }
    }
}
