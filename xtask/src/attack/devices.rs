//! What stands where a file should be written: links, FIFOs, devices, folders of others.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use unspool_testkit::home::Home;

use super::AttackLog;

const ID: &str = "de510000-0000-4000-8000-000000000001";

/// Nothing here takes long; a command that still runs waits for something.
const PATIENCE: Duration = Duration::from_secs(20);

pub fn run(program: &Path, log: &mut AttackLog) -> Result<(), String> {
    let home = Home::new(program);
    home.session("/home/dev/x", ID, "you: hello\nclaude: an answer");
    targets(&home, log)?;
    own_files(&home, log)?;
    open_folder(&home, log);
    full_outputs(&home, log)
}

/// `export -o` onto everything that is no file.
fn targets(home: &Home, log: &mut AttackLog) -> Result<(), String> {
    let outside = home.write("outside.txt", "precious");
    let at = |name: &str| home.path().join(name);
    shell(
        home,
        "mkfifo fifo; ln -s outside.txt link; ln -s nowhere dangling; ln -s loop loop; ln -s /dev/null null",
    )?;
    let made_device = shell(home, "mknod device c 1 3").is_ok();
    if !made_device {
        log.skip("a device needs root");
    }
    for force in [false, true] {
        for name in [
            "fifo", "link", "dangling", "loop", "null", "device", "project",
        ] {
            let path = at(name);
            let Ok(before) = std::fs::symlink_metadata(&path) else {
                continue;
            };
            let target = path.display().to_string();
            let mut args = vec!["export", ID, "--to", "md", "-o", &target];
            if force {
                args.push("--force");
            }
            let ended = timed(home, &args);
            let after = std::fs::symlink_metadata(&path);
            let is_same = after.is_ok_and(|after| after.file_type() == before.file_type());
            log.held(is_same && ended.is_some(), || {
                let how = if ended.is_none() {
                    "waits for ever"
                } else {
                    "is replaced"
                };
                format!("`export -o` onto {name} (force: {force}): {how}")
            });
        }
    }
    let is_kept = std::fs::read(&outside).is_ok_and(|bytes| {
        bytes == b"precious" || bytes.starts_with(b"#") || bytes.starts_with(b"---")
    });
    log.held(is_kept, || "the file behind a link is damaged".into());
    Ok(())
}

/// A FIFO or a link in place of each file of ours.
fn own_files(home: &Home, log: &mut AttackLog) -> Result<(), String> {
    let outside = home.write("outside-2.txt", "precious");
    // Makes them all.
    for args in [
        &["usage"][..],
        &["sql", "SELECT 1"],
        &["index", "build"],
        &["clone", ID],
        &["archive", ID],
    ] {
        timed(home, args);
    }
    let mut own = Vec::new();
    files_below(&home.unspool_dir(), &mut own);
    own.push(home.unspool_dir().join("config.toml"));
    own.push(home.unspool_dir().join("undo/lock"));
    for path in own {
        let name = path
            .strip_prefix(home.path())
            .unwrap_or(&path)
            .display()
            .to_string();
        let kept = path.with_extension("put-aside");
        let was_there = std::fs::rename(&path, &kept).is_ok();
        for kind in ["fifo", "link"] {
            let made = match kind {
                "fifo" => Command::new("mkfifo")
                    .arg(&path)
                    .status()
                    .is_ok_and(|it| it.success()),
                _ => std::os::unix::fs::symlink(&outside, &path).is_ok(),
            };
            if !made {
                continue;
            }
            for args in [
                &["usage"][..],
                &["ls"],
                &["sql", "SELECT count(*) FROM sessions"],
                &["clone", ID],
                &["undo"],
                &["log"],
            ] {
                let ended = timed(home, args);
                log.held(ended.is_some(), || {
                    format!("`{}` hangs: {name} is a {kind}", args[0])
                });
                log.held(ended.is_none_or(|code| code != 101), || {
                    format!("`{}` panics: {name} is a {kind}", args[0])
                });
            }
            let is_kept = std::fs::read(&outside).is_ok_and(|bytes| bytes == b"precious");
            log.held(is_kept, || {
                format!("{name} as a link: the file behind it was written")
            });
            let _ = std::fs::write(&outside, "precious");
            let _ = std::fs::remove_file(&path);
        }
        if was_there {
            let _ = std::fs::rename(&kept, &path);
        }
    }
    Ok(())
}

/// A data folder that others can write is refused.
fn open_folder(home: &Home, log: &mut AttackLog) {
    use std::os::unix::fs::PermissionsExt;
    let folder = home.unspool_dir();
    let _ = std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777));
    for args in [
        &["ls"][..],
        &["usage"],
        &["clone", ID],
        &["undo"],
        &["search", "hello"],
    ] {
        let code = timed(home, args);
        log.held(code == Some(2), || {
            format!(
                "`{}` trusts a data folder that others can write ({code:?})",
                args[0]
            )
        });
    }
    let _ = std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700));
}

/// Outputs that take nothing.
fn full_outputs(home: &Home, log: &mut AttackLog) -> Result<(), String> {
    let program = home.command().get_program().to_owned();
    let program = program.to_string_lossy();
    for redirect in [
        "2>/dev/full",
        ">/dev/full",
        ">/dev/full 2>&1",
        ">&- 2>&-",
        "<&- >&- 2>&-",
        "| true",
    ] {
        for args in [
            "ls",
            "show nothing",
            "usage",
            "check --all",
            "--nonsense",
            &format!("export {ID} --to md"),
        ] {
            let mut command = Command::new("bash");
            command.arg("-c").arg(format!(
                "'{program}' {args} {redirect}; exit ${{PIPESTATUS[0]}}"
            ));
            for (name, value) in home.command().get_envs() {
                command.env(name, value.unwrap_or_default());
            }
            let status = command
                .current_dir(home.work_dir())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .map_err(|error| error.to_string())?;
            // 101 is a panic, and a signal has no code.
            log.held(matches!(status.code(), Some(0..=2 | 141)), || {
                format!("`{args} {redirect}` ended with {status}")
            });
        }
    }
    Ok(())
}

/// The exit code of a command; nothing if it had to be stopped.
fn timed(home: &Home, args: &[&str]) -> Option<i32> {
    let mut child = home
        .command()
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let start = Instant::now();
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status.code().unwrap_or(-1));
        }
        if start.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn shell(home: &Home, script: &str) -> Result<(), String> {
    let status = Command::new("sh")
        .args(["-c", script])
        .current_dir(home.path())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| error.to_string())?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("`{script}` failed")),
    }
}

fn files_below(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files_below(&path, found),
            Ok(kind) if kind.is_file() => found.push(path),
            _ => {}
        }
    }
}
