//! Permissions lost and found again while sessions are listed and followed.
//!
//! Root may read everything, so the program runs as another user where this task is root.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use unspool_testkit::home::slug;
use unspool_testkit::script;

use super::AttackLog;

const ID: &str = "4ead0000-0000-4000-8000-000000000001";
const OTHER: &str = "4ead0000-0000-4000-8000-000000000002";

/// The user `nobody` of most systems.
const NOBODY: u32 = 65_534;

pub fn run(program: &Path, log: &mut AttackLog) -> Result<(), String> {
    let told = |error: std::io::Error| error.to_string();
    let folder = tempfile::tempdir().map_err(told)?;
    let project = folder
        .path()
        .join("claude/projects")
        .join(slug("/home/dev/x"));
    std::fs::create_dir_all(&project).map_err(told)?;
    std::fs::create_dir(folder.path().join("unspool")).map_err(told)?;
    let copy = folder.path().join("program");
    std::fs::copy(program, &copy).map_err(told)?;
    let session = project.join(format!("{ID}.jsonl"));
    let other = project.join(format!("{OTHER}.jsonl"));
    std::fs::write(&session, talk(ID, "hello")).map_err(told)?;
    std::fs::write(&other, talk(OTHER, "elsewhere")).map_err(told)?;
    let is_root = folder.path().metadata().map_err(told)?.uid() == 0;
    if is_root {
        let owned = Command::new("chown")
            .args(["-R", "65534:65534"])
            .arg(folder.path())
            .status();
        if !owned.is_ok_and(|status| status.success()) {
            log.skip("`chown` failed");
            return Ok(());
        }
    }
    let command = |args: &[&str]| {
        let mut command = Command::new(&copy);
        command
            .args(args)
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .env("CLAUDE_CONFIG_DIR", folder.path().join("claude"))
            .env("UNSPOOL_HOME", folder.path().join("unspool"))
            .env("UNSPOOL_NO_BACKGROUND", "1")
            .stdin(Stdio::null());
        if is_root {
            std::os::unix::process::CommandExt::uid(&mut command, NOBODY);
            std::os::unix::process::CommandExt::gid(&mut command, NOBODY);
        }
        command
    };

    // One unreadable file is one warning; the other session is still shown.
    set_mode(&session, 0o000)?;
    for args in [
        &["ls", "--all"][..],
        &["search", "elsewhere"],
        &["usage"],
        &["check", "--all"],
    ] {
        let output = command(args).output().map_err(told)?;
        log.held(matches!(output.status.code(), Some(0 | 1)), || {
            let error = String::from_utf8_lossy(&output.stderr);
            format!(
                "`{}` with an unreadable session: {} {error}",
                args.join(" "),
                output.status
            )
        });
    }
    set_mode(&session, 0o600)?;

    // A watcher outlives the loss of the folder, and tells what is written after it is back.
    let mut watcher = command(&["watch", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(told)?;
    let out = watcher.stdout.take().ok_or("no output")?;
    let (said, heard) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if said.send(line).is_err() {
                break;
            }
        }
    });
    let hears = |word: &str| loop {
        match heard.recv_timeout(Duration::from_secs(30)) {
            Ok(line) if line.contains(word) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    };
    log.held(hears(ID), || "`watch` does not show the session".into());
    set_mode(&project, 0o000)?;
    std::thread::sleep(Duration::from_millis(300));
    set_mode(&project, 0o700)?;
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(&session)
        .map_err(told)?;
    file.write_all(&talk(ID, "after the loss")).map_err(told)?;
    log.held(hears("after the loss"), || {
        "`watch` is deaf after the folder was lost".into()
    });
    log.held(matches!(watcher.try_wait(), Ok(None)), || {
        "`watch` ended".into()
    });
    let _ = watcher.kill();
    let _ = watcher.wait();

    // A folder that cannot be written: a message, nothing half-written.
    set_mode(&project, 0o500)?;
    let output = command(&["clone", ID]).output().map_err(told)?;
    log.held(
        output.status.code() == Some(2) && !output.stderr.is_empty(),
        || format!("`clone` into a read-only folder: {}", output.status),
    );
    set_mode(&project, 0o700)?;
    let left = std::fs::read_dir(&project).map_err(told)?.count();
    log.held(left == 2, || {
        format!("`clone` into a read-only folder left {left} files")
    });
    Ok(())
}

fn talk(id: &str, prompt: &str) -> Vec<u8> {
    script::jsonl(&format!(
        "(cwd=/home/dev/x, session={id})\nyou: {prompt}\nclaude: yes"
    ))
}

fn set_mode(path: &Path, mode: u32) -> Result<(), String> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
        .map_err(|error| format!("{}: {error}", path.display()))
}
