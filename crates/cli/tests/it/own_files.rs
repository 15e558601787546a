//! Our own folder: whatever stands in it, no command waits for it, follows it elsewhere, or uses
//! what others may have written.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use unspool_testkit::home::Home;

use crate::{ID, home_with_session};

/// Runs a command that must end by itself; `None` if it had to be killed.
fn ended(command: &mut Command) -> Option<Output> {
    let mut child: Child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Far longer than any of them takes.
    let end = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Some(child.wait_with_output().unwrap())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Commands that touch every kind of file of ours.
const COMMANDS: &[&[&str]] = &[
    &["ls"],
    &["usage"],
    &["search", "welcome"],
    &["search", "--ranked", "welcome"],
    &["sql", "select count(*) from sessions"],
    &["index", "build"],
    &["index"],
    &["prices"],
    &["rename", ID, "another"],
    &["clone", ID],
    &["clone", ID, "--preset", "mine"],
    &["redact", ID],
    &["archive", ID],
    &["archive", "--list"],
    &["archive", "--restore", ID],
    &["undo"],
    &["log"],
    &["status"],
    &["hook", "status"],
    &["hook", "install"],
    &["daemon", "status"],
    &["daemon", "stop"],
    &["send", ID, "--to", "otlp", "--dry-run"],
    &["export", ID, "--to", "md"],
    &["schema"],
];

/// A folder in which every file of ours stands once.
fn used() -> Home {
    let home = home_with_session();
    home.write(".unspool/config.toml", "[presets.mine]\nkeep = 1\n");
    home.write(".unspool/prices-override.json", r#"{"models":{}}"#);
    home.write(".unspool/prices.json", r#"{"models":{}}"#);
    close(&home.unspool_dir());
    for args in COMMANDS {
        home.output(args);
    }
    home.write(".unspool/daemon.lock", "");
    home.write(".unspool/daemon.sock", "");
    home.write(".unspool/daemon.log", "");
    home.write(".unspool/hook.log", "");
    home
}

fn close(folder: &Path) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
}

fn files(folder: &Path, all: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match fs::symlink_metadata(&path).unwrap().is_dir() {
            true => files(&path, all),
            false => all.push(path),
        }
    }
}

#[test]
fn a_pipe_in_place_of_any_file_of_ours_keeps_no_command_waiting() {
    let home = used();
    let mut all = Vec::new();
    files(&home.unspool_dir(), &mut all);
    assert!(all.len() > 10, "{all:?}");
    for path in &all {
        let _ = fs::remove_file(path);
        let made = Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    }
    for args in COMMANDS {
        let output = ended(home.command().args(*args));
        let output = output.unwrap_or_else(|| panic!("{args:?} waits for ever"));
        let said = said(&output);
        assert!(!said.contains("panicked"), "{args:?}: {said}");
        assert!(output.status.code().is_some(), "{args:?}: {said}");
    }
}

#[test]
fn a_link_in_place_of_any_file_of_ours_is_not_written_through() {
    let home = used();
    let mut all = Vec::new();
    files(&home.unspool_dir(), &mut all);
    let victims = home.path().join("victims");
    fs::create_dir(&victims).unwrap();
    for (at, path) in all.iter().enumerate() {
        let victim = victims.join(at.to_string());
        fs::rename(path, &victim).unwrap();
        symlink(&victim, path).unwrap();
    }
    let mut before = Vec::new();
    files(&victims, &mut before);
    let before: Vec<_> = before.iter().map(|path| fs::read(path).unwrap()).collect();
    for args in COMMANDS {
        let output = ended(home.command().args(*args));
        let output = output.unwrap_or_else(|| panic!("{args:?} waits for ever"));
        assert!(!said(&output).contains("panicked"), "{}", said(&output));
    }
    let mut after = Vec::new();
    files(&victims, &mut after);
    for (path, before) in after.iter().zip(&before) {
        let at: usize = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
        let same = &fs::read(path).unwrap() == before;
        assert!(same, "written through {}", all[at].display());
    }
    assert_eq!(after.len(), before.len());
}

#[test]
fn the_lock_of_edits_is_not_a_link_to_anything() {
    let home = home_with_session();
    home.output(&["rename", ID, "one"]);
    let lock = home.unspool_dir().join("undo/lock");
    let victim = home.write("victim", "mine");
    fs::remove_file(&lock).unwrap();
    symlink(&victim, &lock).unwrap();
    let output = home.output(&["rename", ID, "two"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("link"), "{}", said(&output));
    assert_eq!(fs::read(&victim).unwrap(), b"mine");
}

#[test]
fn a_folder_that_others_may_write_is_refused_by_every_command() {
    let home = used();
    let folders = ["", "undo", "archive"];
    for folder in folders {
        let folder = home.unspool_dir().join(folder);
        for mode in [0o777, 0o770, 0o1777] {
            if mode == 0o770 && group_is_its_user(&folder) {
                continue;
            }
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
            for args in COMMANDS {
                let output = home.output(args);
                let said = said(&output);
                assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
                assert!(said.contains("other users can write to it"), "{said}");
                assert!(said.contains("Hint: "), "{said}");
            }
            close(&folder);
        }
    }
    // A hook stops nobody, and takes nothing.
    let open = home.unspool_dir();
    fs::remove_dir_all(&open).unwrap();
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let mut hook = home.command();
    let event = home.write(
        "event.json",
        format!(r#"{{"hook_event_name":"Stop","session_id":"{ID}"}}"#),
    );
    let output = hook
        .arg("hook")
        .stdin(fs::File::open(event).unwrap())
        .output()
        .unwrap();
    assert!(output.status.success() && output.stderr.is_empty());
    assert_eq!(fs::read_dir(&open).unwrap().count(), 0);
}

/// Whether the group of a folder is its user alone, by its number.
fn group_is_its_user(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(folder).unwrap();
    metadata.uid() == metadata.gid() && metadata.uid() != 0
}

#[test]
fn a_folder_of_another_user_is_refused() {
    let home = used();
    let folder = home.unspool_dir();
    // Only the administrator may give folders away.
    if std::os::unix::fs::chown(&folder, Some(4242), Some(4242)).is_err() {
        return;
    }
    let output = home.output(&["ls"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("belongs to another user"),
        "{}",
        said(&output)
    );
}
