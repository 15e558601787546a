//! The system fails: full devices behind the standard streams, closed ones, and calls that
//! return errors. No command panics; it does its work, or says what failed and exits with 2.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use unspool_testkit::home::Home;

use crate::{ID, home_with_session};

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

/// Commands that say something on standard error, and how they end.
const TALKING: &[(&[&str], i32)] = &[
    (&["--verbose", "ls"], 0),
    (&["show", "nothing-like-this"], 1),
    (&["no-such-command"], 2),
    (&["rename", ID, "x"], 0),
    (&["undo"], 0),
    (&["archive", ID], 0),
    (&["prices", "update", "--from", "/none"], 2),
    (&["hook", "install"], 0),
    (&["hook", "status"], 0),
];

#[test]
fn a_full_standard_error_changes_nothing_about_how_a_command_ends() {
    let home = home_with_session();
    for (args, code) in TALKING {
        let mut command = home.command();
        let output = command.args(*args).stderr(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(*code), "{args:?}");
    }
}

#[test]
fn a_full_standard_output_is_an_error() {
    let home = home_with_session();
    home.output(&["rename", ID, "x"]);
    home.output(&["archive", ID]);
    for args in [
        &["ls"][..],
        &["ls", "--json"],
        &["show", ID],
        &["turns", ID],
        &["info", ID],
        &["usage"],
        &["export", ID, "--to", "md"],
        &["export", ID, "--to", "md", "-o", "/dev/stdout"],
        &["restore", "a.rs", "--at", "1", "--session", ID],
        &["log"],
        &["archive", "--list"],
        &["prices"],
        &["sql", "select 1"],
        &["search", "welcome"],
        &["schema"],
        &["status"],
        &["hook", "status"],
        &["--help"],
        &["--version"],
        &["ls", "--help"],
    ] {
        let mut command = home.command();
        command.args(args).stdout(full());
        let output = command.stderr(Stdio::piped()).output().unwrap();
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains("Error: "), "{args:?}: {said}");
        assert!(!said.contains("panicked"), "{args:?}: {said}");
        // Both at once: nobody can be told, and nothing else is different.
        let mut command = home.command();
        let status = command.args(args).stdout(full()).stderr(full()).status();
        assert_eq!(status.unwrap().code(), Some(2), "{args:?}");
    }
}

#[test]
fn closed_streams_are_no_panic() {
    let home = home_with_session();
    let given = home.command();
    for streams in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        for args in [
            "ls",
            "show nothing",
            "rename 5e55 x",
            "export 5e55 --to md",
            "hook",
        ] {
            let mut shell = Command::new("sh");
            shell.env_clear().current_dir(home.work_dir());
            shell.envs(
                given
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            );
            let script = format!("{} {args} {streams}", env!("CARGO_BIN_EXE_unspool"));
            let output = shell
                .args(["-c", &script])
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let code = output.status.code();
            assert!(matches!(code, Some(0..=2)), "{args} {streams}: {code:?}");
            assert!(!said(&output).contains("panicked"), "{}", said(&output));
        }
    }
}

/// Runs a command in which calls of one kind fail: the n-th alone, or with `+` all from there on.
/// `None` where there is no strace.
fn injected(home: &Home, args: &[&str], fault: &str) -> Option<Output> {
    let given = home.command();
    let mut traced = Command::new("strace");
    traced.args(["-f", "-qq", "-o", "/dev/null", "-e"]);
    traced
        .arg(format!("inject={fault}"))
        .arg(given.get_program());
    traced.args(args).env_clear().current_dir(home.work_dir());
    traced.envs(
        given
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    traced.stdin(Stdio::null()).output().ok()
}

fn can_inject(home: &Home) -> bool {
    let mut probe = Command::new("strace");
    probe.args([
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "inject=fsync:error=EIO",
        "true",
    ]);
    let can = probe.output().is_ok_and(|output| output.status.success());
    if !can {
        eprintln!("NOT RUN: strace is not there, or tracing is not allowed here");
    }
    can && home.path().exists()
}

/// Everything that is the person's: transcripts and what they asked to be written.
fn transcript(home: &Home) -> Vec<u8> {
    let folder = home.claude_dir().join("projects/-home-dev-x");
    fs::read(folder.join(format!("{ID}.jsonl"))).unwrap()
}

/// One row of the sweep: a command, and whether it may change the transcript.
const SWEPT: &[(&[&str], bool)] = &[
    (&["ls"], false),
    (&["usage"], false),
    (
        &["export", ID, "--to", "md", "--force", "-o", "out.md"],
        false,
    ),
    (&["rename", ID, "another"], true),
    (&["clone", ID], false),
    (&["archive", ID], false),
    (&["undo"], true),
    (&["index", "build"], false),
    (&["index", "drop"], false),
    (&["--demo", "ls"], false),
];

fn judge(args: &[&str], fault: &str, output: &Output) {
    let said = said(output);
    let told = || format!("{args:?} with {fault}: {:?}\n{said}", output.status);
    assert!(!said.contains("panicked"), "{}", told());
    // The loader failed, before anything of ours began.
    if said.contains("error while loading shared libraries") {
        return;
    }
    assert!(matches!(output.status.code(), Some(0..=2)), "{}", told());
    if output.status.code() == Some(2) {
        // Where nothing can be written nobody can be told.
        let mute = fault.starts_with("write");
        assert!(said.contains("Error: ") || mute, "{}", told());
    }
}

/// `UNSPOOL_FAULTS=all` tries every call of every kind, for some minutes.
#[test]
fn calls_that_fail_end_in_an_error_or_in_the_right_result_and_never_in_a_panic() {
    let home = home_with_session();
    if !can_inject(&home) {
        return;
    }
    let all = std::env::var("UNSPOOL_FAULTS").is_ok_and(|value| value == "all");
    let faults: &[(&str, &str)] = match all {
        true => &[
            ("close", "EIO"),
            ("openat", "EACCES"),
            ("openat", "EMFILE"),
            ("read", "EIO"),
            ("pread64", "EIO"),
            ("write", "ENOSPC"),
            ("write", "EINTR"),
            ("pwrite64", "ENOSPC"),
            ("fsync", "EIO"),
            ("fdatasync", "EIO"),
            ("rename", "EACCES"),
            ("renameat", "EACCES"),
            ("renameat2", "EINVAL"),
            ("linkat", "EPERM"),
            ("unlink", "EACCES"),
            ("unlinkat", "EACCES"),
            ("mkdir", "ENOSPC"),
            ("mkdirat", "ENOSPC"),
            ("statx", "EACCES"),
            ("newfstatat", "EIO"),
            ("getdents64", "EIO"),
            ("flock", "EINTR"),
        ],
        false => &[("close", "EIO"), ("fsync", "EIO"), ("write", "ENOSPC")],
    };
    let moments = |call: &str| -> Vec<String> {
        let each = (1..=60).flat_map(|at| [format!("{at}"), format!("{at}+")]);
        // The first files that are closed are those of the loader.
        let some: &[&str] = match call {
            "close" => &["12", "24", "30", "36", "48", "12+"],
            _ => &["1", "2", "1+"],
        };
        match all {
            true => each.collect(),
            false => some.iter().map(|at| (*at).to_owned()).collect(),
        }
    };
    for (args, edits) in SWEPT {
        for (call, error) in faults {
            for when in moments(call) {
                // A call that is interrupted is made again, for ever.
                if *error == "EINTR" && when.ends_with('+') {
                    continue;
                }
                let fault = format!("{call}:error={error}:when={when}");
                let before = transcript(&home);
                let Some(output) = injected(&home, args, &fault) else {
                    return;
                };
                judge(args, &fault, &output);
                if !edits {
                    assert_eq!(transcript(&home), before, "{args:?} with {fault}");
                }
            }
        }
        let out = home.work_dir().join("out.md");
        assert!(whole_or_absent(&out), "half of {}", out.display());
    }
    // Whatever was left, the next one cleans up, and the session is whole.
    let output = home.output(&["rename", ID, "last"]);
    assert!(output.status.success(), "{}", said(&output));
    let output = home.output(&["check", ID]);
    assert!(output.status.success(), "{}", said(&output));
}

fn whole_or_absent(path: &Path) -> bool {
    match fs::read_to_string(path) {
        Ok(text) => text.contains("welcome"),
        Err(_) => true,
    }
}
