//! What is not there, not readable or not what it seems: a clear word, a hint, a code.

use std::ffi::OsStr;
use std::path::Path;

use unspool_testkit::home::Home;

use crate::{ID, home, home_with_session};

/// Every command that takes a session, and `ls`.
const COMMANDS: &[&[&str]] = &[
    &["ls"],
    &["show"],
    &["turns"],
    &["info"],
    &["messages"],
    &["tree"],
    &["agents"],
    &["files"],
    &["context"],
    &["check"],
];

/// Runs it: this code, a message, a hint, no panic, nothing on stdout.
fn check_fails(home: &Home, args: &[impl AsRef<OsStr>], code: i32, says: &str) {
    let stderr = check_refuses(home, args, code, says);
    assert!(stderr.contains("\nHint: "), "no hint: {stderr}");
}

/// The same for what is so plain that there is nothing more to say.
fn check_refuses(home: &Home, args: &[impl AsRef<OsStr>], code: i32, says: &str) -> String {
    let output = home.output(args);
    let args: Vec<_> = args
        .iter()
        .map(|arg| arg.as_ref().to_string_lossy())
        .collect();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let told = format!("`{}` said:\n{stderr}", args.join(" "));
    assert_eq!(output.status.code(), Some(code), "{told}");
    assert!(
        stderr.starts_with("Error: ") && stderr.contains(says),
        "{told}"
    );
    assert!(
        !stderr.contains("panicked") && output.stdout.is_empty(),
        "{told}"
    );
    stderr.into_owned()
}

#[test]
fn a_folder_that_is_not_there_is_named_by_every_command() {
    let home = home();
    for command in COMMANDS {
        let args = [command, &["--claude-dir", "/no/such/folder"][..]].concat();
        check_fails(&home, &args, 2, "/no/such/folder");
    }
}

#[test]
fn an_empty_folder_has_nothing_to_find_for_every_command() {
    let home = home();
    std::fs::create_dir_all(home.claude_dir()).unwrap();
    for command in COMMANDS {
        check_fails(&home, command, 1, "no sessions");
        std::fs::create_dir_all(home.claude_dir().join("projects")).unwrap();
    }
}

#[test]
fn a_session_that_is_not_there_is_simply_not_found() {
    let home = home_with_session();
    check_fails(&home, &["show", "0000aaaa"], 1, "0000aaaa");
    check_fails(&home, &["show", "./no.jsonl"], 2, "no.jsonl");
    check_fails(&home, &["show", "@9"], 1, "@9");
    check_fails(&home, &["show", "5e5"], 1, "5e5");
}

#[test]
fn an_ambiguous_start_lists_the_candidates() {
    let home = home_with_session();
    let other = ID.replace("01", "02");
    home.session("/home/dev/x", &other, "you: hi");
    check_fails(&home, &["show", "5e551"], 2, ID);
    check_fails(&home, &["show", "5e551"], 2, &other);
}

#[test]
fn a_folder_named_like_a_session_is_skipped_with_a_warning() {
    let home = home_with_session();
    std::fs::create_dir_all(projects(&home).join("dir.jsonl")).unwrap();
    check_warns(&home, "dir.jsonl");
    check_refuses(
        &home,
        &["show", "../.claude/projects/-home-dev-x/dir.jsonl"],
        2,
        "dir.jsonl",
    );
}

fn projects(home: &Home) -> std::path::PathBuf {
    home.claude_dir().join("projects/-home-dev-x")
}

/// `ls` lists the one session and says one thing, which names the file.
fn check_warns(home: &Home, name: &str) {
    let output = home.output(&["ls", "--json"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let rows = String::from_utf8_lossy(&output.stdout).lines().count();
    assert_eq!(rows, 1, "{stderr}");
    let told: Vec<&str> = stderr.lines().filter(|line| line.contains(name)).collect();
    assert_eq!(told.len(), 1, "{name}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{name}: {stderr}");
}

#[cfg(unix)]
#[test]
fn a_pipe_a_socket_and_a_loop_of_links_are_skipped_with_a_warning_each() {
    let place = |home: &Home| projects(home).join("x.jsonl");
    let home = home_with_session();
    let made = std::process::Command::new("mkfifo")
        .arg(place(&home))
        .status()
        .unwrap();
    assert!(made.success());
    check_warns(&home, "x.jsonl");

    let home = home_with_session();
    let _socket = std::os::unix::net::UnixListener::bind(place(&home)).unwrap();
    check_warns(&home, "x.jsonl");

    let home = home_with_session();
    std::os::unix::fs::symlink("x.jsonl", place(&home)).unwrap();
    check_warns(&home, "x.jsonl");

    let home = home_with_session();
    std::os::unix::fs::symlink("..", projects(&home).join("loop")).unwrap();
    let output = home.output(&["ls", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 1);
}

#[cfg(unix)]
#[test]
fn a_pipe_that_is_named_is_refused_and_not_waited_for() {
    let home = home_with_session();
    let place = projects(&home).join("x.jsonl");
    let made = std::process::Command::new("mkfifo")
        .arg(&place)
        .status()
        .unwrap();
    assert!(made.success());
    check_refuses(
        &home,
        &[OsStr::new("show"), place.as_os_str()],
        2,
        "x.jsonl",
    );
}

/// Root reads what nobody may read: then there is nothing to test.
#[cfg(unix)]
fn permissions_hold(probe: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(probe, std::fs::Permissions::from_mode(0o000)).unwrap();
    let hold = std::fs::File::open(probe).is_err();
    if !hold {
        eprintln!("not tested: this user may read everything");
    }
    hold
}

#[cfg(unix)]
#[test]
fn a_session_that_may_not_be_read_is_refused_or_skipped() {
    let home = home_with_session();
    let secret = home.session(
        "/home/dev/x",
        "aaaa1000-0000-4000-8000-000000000001",
        "you: hi",
    );
    if !permissions_hold(&secret) {
        return;
    }
    check_warns(&home, "aaaa1000");
    check_fails(&home, &["show", "aaaa1000"], 2, "aaaa1000");
}

#[cfg(unix)]
#[test]
fn a_folder_that_may_not_be_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let home = home_with_session();
    let dir = home.claude_dir();
    let holds = permissions_hold(&dir);
    if holds {
        check_fails(&home, &["ls"], 2, "ermission");
    }
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o700)).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_utf8_are_read_and_refused_like_others() {
    use std::os::unix::ffi::OsStrExt;
    let home = home_with_session();
    let odd = home.path().join(OsStr::from_bytes(b"odd-\xff"));
    std::fs::rename(home.claude_dir(), &odd).unwrap();
    let args = [
        OsStr::new("--claude-dir"),
        odd.as_os_str(),
        OsStr::new("show"),
        OsStr::new(ID),
    ];
    let output = home.output(&args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let missing = home.path().join(OsStr::from_bytes(b"no-\xff"));
    check_fails(
        &home,
        &[
            OsStr::new("--claude-dir"),
            missing.as_os_str(),
            OsStr::new("ls"),
        ],
        2,
        "no-",
    );
    let argument = [OsStr::new("show"), OsStr::from_bytes(b"./x-\xff.jsonl")];
    let output = home.output(&argument);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        matches!(output.status.code(), Some(1 | 2)) && !stderr.contains("panicked"),
        "{stderr}"
    );
}

#[test]
fn a_version_or_a_zone_that_is_none_is_refused() {
    let home = home_with_session();
    check_fails(
        &home,
        &["messages", ID, "--claude-version", "new"],
        2,
        "new",
    );
    check_fails(
        &home,
        &["ls", "--timezone", "Mars/Olympus"],
        2,
        "Mars/Olympus",
    );
}

#[test]
fn any_version_may_be_given() {
    let home = home_with_session();
    for version in [
        "1.0.0", "2.0.42", "2.1.45", "2.1.99", "2.1.325", "99.0.0", "strict",
    ] {
        let output = home.output(&["messages", ID, "--claude-version", version]);
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{version}");
        assert!(
            stdout.starts_with("[{\"role\":\"user\""),
            "{version}: {stdout}"
        );
    }
}

#[test]
fn a_session_of_garbage_is_no_conversation_and_no_panic() {
    let home = home();
    let id = "bad01000-0000-4000-8000-000000000001";
    home.transcript("/home/dev/x", id, b"\x00\xff{{{\n[1,2\n\"type\"\n{}\n");
    let path = projects(&home).join(format!("{id}.jsonl"));
    for command in COMMANDS {
        let mut named: Vec<&OsStr> = command.iter().map(OsStr::new).collect();
        if *command != ["ls"] {
            named.push(path.as_os_str());
        }
        let output = home.output(&named);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!stderr.contains("panicked"), "{command:?}: {stderr}");
        assert!(
            matches!(output.status.code(), Some(0 | 1)),
            "{command:?}: {stderr}"
        );
    }
}
