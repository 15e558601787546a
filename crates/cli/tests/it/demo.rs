//! A machine without sessions.

use std::process::Output;

use crate::home;

/// Runs the program on a machine where nobody named a folder.
fn run(args: &[&str]) -> Output {
    let home = home();
    home.command()
        .env_remove("CLAUDE_CONFIG_DIR")
        .args(args)
        .output()
        .unwrap()
}

#[test]
fn without_sessions_the_plain_program_shows_the_demo_and_says_so() {
    let output = run(&[]);
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("demo"), "{stderr}");
    assert!(stdout.lines().count() > 5, "{stdout}");
}

#[test]
fn without_sessions_every_reading_command_says_so_and_offers_the_demo() {
    for command in [
        "ls", "show", "turns", "info", "messages", "tree", "agents", "files", "context", "check",
    ] {
        let output = run(&[command]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command}: {stderr}");
        assert!(stderr.contains("--demo"), "{command}: {stderr}");
    }
}

#[test]
fn the_demo_has_something_for_every_command() {
    for command in [
        "ls", "show", "turns", "info", "messages", "tree", "files", "context", "check",
    ] {
        let output = run(&["--demo", command]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            matches!(output.status.code(), Some(0 | 1)),
            "{command}: {stderr}"
        );
        assert!(!output.stdout.is_empty(), "{command}: {stderr}");
    }
}
