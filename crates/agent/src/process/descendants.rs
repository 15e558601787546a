//! Who descends from a process, and who belongs to it.

use rustix::process::Pid;

/// Calls it with every process below this one; those who left their group too. Does nothing
/// where the system does not tell.
#[cfg(target_os = "linux")]
pub fn each(mut act: impl FnMut(Pid)) {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let mut children = std::collections::HashMap::<i32, Vec<i32>>::new();
    for found in all() {
        children.entry(found.parent).or_default().push(found.pid);
    }
    let mut next = vec![own];
    while let Some(parent) = next.pop() {
        for pid in children.remove(&parent).unwrap_or_default() {
            next.push(pid);
            if let Some(pid) = Pid::from_raw(pid) {
                act(pid);
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub fn each(_: impl FnMut(Pid)) {}

/// Ends everybody in the session that a child of ours led until it was killed. Nobody else can
/// have its number before we have waited for it.
#[cfg(target_os = "linux")]
pub fn end_session(leader: &std::process::Child) {
    let Ok(leader) = i32::try_from(leader.id()) else {
        return;
    };
    // Those who are being started are found the next time.
    for _ in 0..20 {
        let alive =
            |found: &FoundProcess| found.session == leader && found.pid != leader && found.lives;
        let members: Vec<FoundProcess> = all().filter(alive).collect();
        if members.is_empty() {
            return;
        }
        for pid in members.iter().filter_map(|found| Pid::from_raw(found.pid)) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub fn end_session(_: &std::process::Child) {}

#[cfg(target_os = "linux")]
struct FoundProcess {
    pid: i32,
    parent: i32,
    session: i32,
    lives: bool,
}

/// Every process.
#[cfg(target_os = "linux")]
fn all() -> impl Iterator<Item = FoundProcess> {
    let read = unspool_store::read_folder::entries("/proc")
        .into_iter()
        .flatten()
        .flatten();
    read.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read(entry.path().join("stat")).ok()?;
        // The name stands in brackets and may hold anything, brackets too.
        let after = stat.iter().rposition(|byte| *byte == b')')? + 1;
        let rest = std::str::from_utf8(stat.get(after..)?).ok()?;
        let mut words = rest.split_ascii_whitespace();
        let state = words.next()?;
        let parent = words.next()?.parse().ok()?;
        let session = words.nth(1)?.parse().ok()?;
        Some(FoundProcess {
            pid,
            parent,
            session,
            lives: !matches!(state, "Z" | "X"),
        })
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_child_and_its_child_are_below() {
        use std::os::unix::process::CommandExt;
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "sleep 30 & wait"]).process_group(0);
        let mut child = command.spawn().unwrap();
        let mut found = 0;
        for _ in 0..6_000 {
            found = 0;
            each(|_| found += 1);
            if found >= 2 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let group = Pid::from_child(&child);
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
        child.wait().unwrap();
        assert!(found >= 2, "{found}");
    }
}
