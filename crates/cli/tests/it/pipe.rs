//! A reader that goes away.
#![cfg(unix)]

use std::process::Command;

use crate::home_with_session;

#[test]
fn a_closed_pipe_is_quiet() {
    let home = home_with_session();
    let long: String = (0..3_000)
        .map(|n| format!("you: question {n}\nclaude: answer {n}\n"))
        .collect();
    let id = "10000000-0000-4000-8000-000000000001";
    home.session("/home/dev/x", id, &long);
    let program = env!("CARGO_BIN_EXE_unspool");
    for command in [
        "show",
        "show --json",
        "turns",
        "turns --json",
        "messages",
        "tree",
        "show --raw",
    ] {
        let line =
            format!("{program} {command} {id} | head -1 >/dev/null; echo ${{PIPESTATUS[0]}}");
        let mut bash = Command::new("bash");
        bash.args(["-c", &line])
            .env("CLAUDE_CONFIG_DIR", home.claude_dir())
            .env("HOME", home.path());
        let output = bash.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "0\n",
            "{command}: {told}"
        );
        assert_eq!(told, "", "{command}");
    }
}
