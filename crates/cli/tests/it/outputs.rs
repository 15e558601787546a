//! What `-o` writes to: files are replaced whole, everything else is written into or refused.
#![cfg(unix)]

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use unspool_testkit::home::Home;

use crate::{ID, home_with_session};

fn mkfifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

fn export(home: &Home, to: &Path, more: &[&str]) -> Output {
    let mut command = home.command();
    command.args(["export", ID, "--to", "md", "-o"]).arg(to);
    command.args(more).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A null device of our own, where this machine lets us make one.
fn null_device(folder: &Path) -> Option<PathBuf> {
    let path = folder.join("null");
    let mut made = Command::new("mknod");
    let made = made.arg(&path).args(["c", "1", "3"]).output().unwrap();
    let opens = || File::options().write(true).open(&path).is_ok();
    let usable = made.status.success() && opens();
    if !usable {
        eprintln!("NOT RUN: no devices can be made here");
    }
    usable.then_some(path)
}

#[test]
fn a_device_is_written_into_and_never_replaced() {
    let home = home_with_session();
    let Some(device) = null_device(home.path()) else {
        return;
    };
    let link = home.path().join("page.md");
    symlink(&device, &link).unwrap();
    let before = fs::symlink_metadata(&device).unwrap().ino();
    for to in [&device, &link] {
        for more in [&[][..], &["--force"]] {
            let output = export(&home, to, more);
            assert!(output.status.success(), "{}", said(&output));
            let after = fs::symlink_metadata(&device).unwrap();
            assert!(after.file_type().is_char_device() && after.ino() == before);
            assert!(link.is_symlink());
        }
    }
    let mut restore = home.command();
    restore.args(["restore", "a.rs", "--at", "1", "--session", ID, "-o"]);
    let output = restore.arg(&device).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let after = fs::symlink_metadata(&device).unwrap();
    assert!(after.file_type().is_char_device() && after.ino() == before);
}

#[test]
fn a_pipe_is_written_into_and_stays_a_pipe() {
    let home = home_with_session();
    let pipe = home.path().join("pipe");
    mkfifo(&pipe);
    for more in [&[][..], &["--force"]] {
        let reader = {
            let pipe = pipe.clone();
            std::thread::spawn(move || {
                let mut text = String::new();
                File::open(pipe).unwrap().read_to_string(&mut text).unwrap();
                text
            })
        };
        let output = export(&home, &pipe, more);
        assert!(output.status.success(), "{}", said(&output));
        assert!(reader.join().unwrap().contains("welcome"));
        let kind = fs::symlink_metadata(&pipe).unwrap().file_type();
        assert!(kind.is_fifo());
    }
}

#[test]
fn a_pipe_that_nobody_reads_is_an_error_and_not_a_wait() {
    let home = home_with_session();
    let pipe = home.path().join("pipe");
    mkfifo(&pipe);
    let output = export(&home, &pipe, &["--force"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("no process reads"),
        "{}",
        said(&output)
    );
    assert!(!said(&output).contains("--force"), "{}", said(&output));
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
}

#[test]
fn links_to_files_are_refused_and_the_hint_does_not_say_force() {
    let home = home_with_session();
    let at = |name: &str| home.path().join(name);
    fs::write(at("mine"), "mine").unwrap();
    for (link, to) in [
        ("file.md", "mine"),
        ("none.md", "missing"),
        ("loop.md", "loop.md"),
    ] {
        symlink(to, at(link)).unwrap();
        for more in [&[][..], &["--force"]] {
            let output = export(&home, &at(link), more);
            assert_eq!(output.status.code(), Some(2), "{link}");
            let said = said(&output);
            assert!(said.contains("link") && !said.contains("--force"), "{said}");
            assert!(at(link).is_symlink());
        }
    }
    assert_eq!(fs::read(at("mine")).unwrap(), b"mine");
    assert!(!at("missing").exists());
    // Each file of a folder likewise.
    fs::create_dir(at("pages")).unwrap();
    symlink("../mine", at("pages").join(format!("{ID}.md"))).unwrap();
    let output = export(&home, &at("pages"), &["--force"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read(at("mine")).unwrap(), b"mine");
}

#[test]
fn the_names_of_standard_output_are_standard_output() {
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        if cfg!(not(target_os = "linux")) && name.starts_with("/proc") {
            continue;
        }
        let home = home_with_session();
        let output = export(&home, Path::new(name), &[]);
        assert!(output.status.success(), "{name}: {}", said(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("welcome"));
        // A file that the shell opened is added to where the shell is.
        let log = home.path().join("log");
        let mut file = File::create(&log).unwrap();
        std::io::Write::write_all(&mut file, b"before\n").unwrap();
        let mut command = home.command();
        command.args(["export", ID, "--to", "md", "--force", "-o", name]);
        let status = command.stdout(file.try_clone().unwrap()).status().unwrap();
        assert!(status.success());
        std::io::Write::write_all(&mut file, b"after\n").unwrap();
        let text = fs::read_to_string(&log).unwrap();
        assert!(text.starts_with("before\n"), "{text}");
        assert!(
            text.contains("welcome") && text.ends_with("after\n"),
            "{text}"
        );
    }
}

#[test]
fn what_the_shell_substitutes_is_written_into() {
    let home = home_with_session();
    let shell = ["/bin/bash", "/usr/bin/bash"].map(Path::new);
    let Some(shell) = shell.into_iter().find(|path| path.exists()) else {
        return;
    };
    let given = home.command();
    let mut command = Command::new(shell);
    command.env_clear();
    command.envs(
        given
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let program = env!("CARGO_BIN_EXE_unspool");
    // The substituted command ends after the program; a pipe tells when.
    let script = format!("{program} export {ID} --to md -o >(cat) | cat");
    let output = command
        .args(["-c", &script])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("welcome"), "{text}{}", said(&output));
}

#[test]
fn settings_that_are_a_link_stay_one_when_the_hook_is_installed() {
    let home = home_with_session();
    let kept = home.write("dotfiles/settings.json", "{}\n");
    let settings = home.claude_dir().join("settings.json");
    symlink(&kept, &settings).unwrap();
    let output = home.output(&["hook", "install"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(settings.is_symlink());
    assert!(fs::read_to_string(&kept).unwrap().contains("hook"));
}

#[test]
fn settings_that_are_no_file_are_not_replaced() {
    let home = home_with_session();
    let settings = home.claude_dir().join("settings.json");
    mkfifo(&settings);
    let output = home.output(&["hook", "install"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(
        fs::symlink_metadata(&settings)
            .unwrap()
            .file_type()
            .is_fifo()
    );
}
