//! Who descends from this process.

use rustix::process::Pid;

/// Calls it with every process below this one; those who left their group too. Does nothing
/// where the system does not tell.
#[cfg(target_os = "linux")]
pub fn each(mut act: impl FnMut(Pid)) {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let mut children = std::collections::HashMap::<i32, Vec<i32>>::new();
    for (pid, parent) in all() {
        children.entry(parent).or_default().push(pid);
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

/// Every process with its parent.
#[cfg(target_os = "linux")]
fn all() -> impl Iterator<Item = (i32, i32)> {
    let read = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    read.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read(entry.path().join("stat")).ok()?;
        // The name stands in brackets and may hold anything, brackets too.
        let after = stat.iter().rposition(|byte| *byte == b')')? + 1;
        let rest = std::str::from_utf8(stat.get(after..)?).ok()?;
        let parent = rest.split_ascii_whitespace().nth(1)?.parse().ok()?;
        Some((pid, parent))
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
        for _ in 0..100 {
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
