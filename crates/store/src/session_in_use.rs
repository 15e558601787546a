//! Whether somebody works on a session at this moment.
//!
//! Three signs, in order of trust: the client's own registry names a process that lives; a
//! process has the transcript open for writing; it was written to within the last minute. What
//! the system does not let us see is not there for us.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::find::SessionFile;
use crate::open;
use crate::read_folder;
use crate::side_files::{self, RunningClient};

/// A file that was written to so recently, in milliseconds, is in use.
const RECENT: i64 = 60_000;

/// Who works on what, as it was at one moment.
#[derive(Clone, Debug, Default)]
pub struct InUseSessions {
    now: i64,
    running: Vec<RunningClient>,
    /// Which process has which transcript open for writing.
    writers: HashMap<PathBuf, u32>,
}

impl InUseSessions {
    /// Looks around once; `now` is in milliseconds since 1970.
    pub fn look<P: AsRef<Path>>(configs: impl IntoIterator<Item = P>, now: i64) -> InUseSessions {
        let running = configs
            .into_iter()
            .flat_map(|config| side_files::registry(config.as_ref()));
        InUseSessions {
            now,
            running: running.filter(lives).collect(),
            writers: writers(),
        }
    }

    /// Why a session is in use, in words that say how we know; nothing if it is not.
    pub fn why(&self, session: &SessionFile) -> Option<String> {
        self.registered(&session.id)
            .or_else(|| self.path(&session.path))
            .or_else(|| {
                let agents = session.beside.as_ref()?.join("subagents");
                let written = |path: PathBuf| self.recent(&path);
                let files = read_folder::entries(agents).ok()?.flatten();
                let why = files.map(|entry| entry.path()).find_map(written)?;
                Some(format!("one of its sub-agents is running: {why}"))
            })
    }

    /// Why a file is in use, by what is known of the file alone.
    pub fn path(&self, path: &Path) -> Option<String> {
        self.holder(path).or_else(|| self.recent(path))
    }

    /// Which process has a file, not counting that it was written to a moment ago: for those
    /// who know that they wrote it themselves.
    pub fn holder(&self, path: &Path) -> Option<String> {
        let id = path.file_stem().and_then(|stem| stem.to_str());
        let is_transcript = path.extension().is_some_and(|end| end == "jsonl");
        id.filter(|_| is_transcript)
            .and_then(|id| self.registered(id))
            .or_else(|| self.open(path))
    }

    fn registered(&self, id: &str) -> Option<String> {
        let mut running = self.running.iter();
        let one = running.find(|one| one.session.as_deref() == Some(id))?;
        let status = match &one.status {
            Some(status) => format!(", status {status}"),
            None => String::new(),
        };
        Some(format!(
            "Claude Code is running it (process {}{status})",
            one.pid
        ))
    }

    fn open(&self, path: &Path) -> Option<String> {
        let real = fs::canonicalize(path).ok()?;
        let pid = self.writers.get(&real)?;
        Some(format!("process {pid} has the file open for writing"))
    }

    fn recent(&self, path: &Path) -> Option<String> {
        let modified = open::modified(&fs::metadata(path).ok()?);
        let ago = self.now - modified;
        // A clock may be a little wrong, not more.
        if !(-RECENT..RECENT).contains(&ago) {
            return None;
        }
        Some(match ago.max(0) / 1000 {
            1 => "written 1 second ago".to_owned(),
            seconds => format!("written {seconds} seconds ago"),
        })
    }
}

/// Whether the process that a note names still runs, and is the one that wrote it.
fn lives(running: &RunningClient) -> bool {
    alive(running) == Some(true)
}

/// The same, where it can be seen at all.
pub fn alive(running: &RunningClient) -> Option<bool> {
    here(running).then(|| process_lives(running.pid) && began_then(running))
}

/// Whether its number means anything among our processes: a container has its own.
fn here(running: &RunningClient) -> bool {
    let Some(domain) = running.all["pidDomain"].as_str() else {
        return true;
    };
    let ours = fs::read_link("/proc/self/ns/pid");
    let ours = ours.ok().and_then(|link| link.to_str().map(str::to_owned));
    ours.is_none_or(|ours| !domain.starts_with("linux:") || domain.ends_with(&ours))
}

#[cfg(unix)]
fn process_lives(pid: u32) -> bool {
    use rustix::process::{Pid, test_kill_process};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| match test_kill_process(pid) {
        Ok(()) => true,
        // It runs, but is not ours.
        Err(error) => error == rustix::io::Errno::PERM,
    })
}

#[cfg(not(unix))]
fn process_lives(_: u32) -> bool {
    // Cannot be asked without more of the system; the note is believed.
    true
}

/// Numbers of processes are used again; when it began tells them apart.
fn began_then(running: &RunningClient) -> bool {
    let noted = match &running.all["procStart"] {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Number(number) => number.to_string(),
        _ => return true,
    };
    let Ok(stat) = fs::read_to_string(format!("/proc/{}/stat", running.pid)) else {
        return true;
    };
    // The name of the program stands in brackets and may hold anything.
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let began = after.split_whitespace().nth(19);
    began.is_none_or(|began| began == noted)
}

/// Transcripts that processes have open for writing, as far as we may see.
fn writers() -> HashMap<PathBuf, u32> {
    let mut writers = HashMap::new();
    let own = std::process::id();
    let processes = read_folder::entries("/proc")
        .into_iter()
        .flatten()
        .flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    for pid in pids.filter(|pid| *pid != own) {
        let handles = read_folder::entries(format!("/proc/{pid}/fd"));
        for handle in handles.into_iter().flatten().flatten() {
            let Ok(target) = fs::read_link(handle.path()) else {
                continue;
            };
            let is_transcript = target.extension().is_some_and(|end| end == "jsonl");
            if is_transcript && is_for_writing(pid, &handle.file_name().to_string_lossy()) {
                writers.insert(target, pid);
            }
        }
    }
    writers
}

fn is_for_writing(pid: u32, handle: &str) -> bool {
    let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{handle}")).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|text| u32::from_str_radix(text.trim(), 8).ok());
    flags.is_some_and(|flags| flags & 3 != 0)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    // Helpers outside of test functions may give up as well.
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::process::{Child, Command, Stdio};

    const HOUR: i64 = 3_600_000;

    struct Kill(Child);

    impl Drop for Kill {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn session(root: &Path) -> SessionFile {
        let path = root.join("projects/-p/s1.jsonl");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "{}\n").unwrap();
        crate::find(&[root.to_owned()]).sessions.remove(0)
    }

    fn note(root: &Path, pid: u32, rest: &str) {
        fs::create_dir_all(root.join("sessions")).unwrap();
        let text = format!(r#"{{"pid":{pid},"sessionId":"s1","status":"busy"{rest}}}"#);
        fs::write(root.join(format!("sessions/{pid}.json")), text).unwrap();
    }

    #[test]
    fn a_session_that_nobody_touches_is_free() {
        let dir = tempfile::tempdir().unwrap();
        let session = session(dir.path());
        let live = InUseSessions::look([dir.path()], session.modified + HOUR);
        assert_eq!(live.why(&session), None);
    }

    #[test]
    fn a_session_that_was_written_to_a_moment_ago_is_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let session = session(dir.path());
        let why =
            |later: i64| InUseSessions::look([dir.path()], session.modified + later).why(&session);
        assert_eq!(why(12_000).as_deref(), Some("written 12 seconds ago"));
        assert!(why(59_999).is_some());
        assert_eq!(why(60_000), None);
    }

    #[test]
    fn the_registry_counts_only_while_its_process_lives() {
        let dir = tempfile::tempdir().unwrap();
        let session = session(dir.path());
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        let child = Kill(child);
        let why = || InUseSessions::look([dir.path()], session.modified + HOUR).why(&session);
        note(dir.path(), child.0.id(), "");
        let expected = format!(
            "Claude Code is running it (process {}, status busy)",
            child.0.id()
        );
        assert_eq!(why(), Some(expected));
        note(dir.path(), child.0.id(), r#","procStart":"1""#);
        assert_eq!(why(), None, "another process has its number now");
        note(
            dir.path(),
            child.0.id(),
            r#","pidDomain":"linux:x:pid:[1]""#,
        );
        assert_eq!(why(), None, "a number of another container");
        note(dir.path(), child.0.id(), "");
        drop(child);
        assert_eq!(why(), None);
    }

    #[test]
    fn a_process_that_holds_the_file_for_writing_is_named_and_a_reader_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let session = session(dir.path());
        let held = |how: &str| {
            let script = format!("exec 3{how}{}; echo; exec sleep 60", session.path.display());
            let mut shell = Command::new("sh");
            shell.args(["-c", &script]).stdout(Stdio::piped());
            let mut child = Kill(shell.spawn().unwrap());
            let mut line = [0];
            std::io::Read::read_exact(child.0.stdout.as_mut().unwrap(), &mut line).unwrap();
            let why = InUseSessions::look([dir.path()], session.modified + HOUR).why(&session);
            (child.0.id(), why)
        };
        let (_, why) = held("<");
        assert_eq!(why, None);
        let (pid, why) = held(">>");
        let expected = format!("process {pid} has the file open for writing");
        assert_eq!(why, Some(expected));
    }

    #[test]
    fn a_sub_agent_at_work_keeps_its_session_in_use() {
        let dir = tempfile::tempdir().unwrap();
        session(dir.path());
        let agent = dir.path().join("projects/-p/s1/subagents/agent-a1.jsonl");
        fs::create_dir_all(agent.parent().unwrap()).unwrap();
        fs::write(&agent, "{}\n").unwrap();
        let now = open::modified(&fs::metadata(&agent).unwrap()) + 5_000;
        let mut session = crate::find(&[dir.path().to_owned()]).sessions.remove(0);
        let old = std::time::SystemTime::UNIX_EPOCH;
        let file = fs::File::options()
            .append(true)
            .open(&session.path)
            .unwrap();
        file.set_modified(old).unwrap();
        session.beside = Some(dir.path().join("projects/-p/s1"));
        let why = InUseSessions::look([dir.path()], now)
            .why(&session)
            .unwrap();
        assert_eq!(
            why,
            "one of its sub-agents is running: written 5 seconds ago"
        );
    }
}
