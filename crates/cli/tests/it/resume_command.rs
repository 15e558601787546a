//! The command that resumes a session: pasted into a shell, it goes to the directory of the
//! session and runs the client, whatever directory and id are called.
#![cfg(unix)]

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::home;

const HOSTILE: &[&str] = &[
    "$(touch pwned)",
    "`touch pwned`",
    "a'; touch pwned; '",
    "a\ntouch pwned\n",
    "-x",
    "a b\"c",
    "\u{202e}\u{1b}[31mé",
];

/// A client that only says where it is and what it was given. A function of the shell: a file
/// that was just written cannot always be run beside other tests.
const CLIENT: &str = "claude() { { pwd; printf '\\0'; printf '%s ' \"$@\"; } >\"$TOLD\"; }";

/// Where the client was run by a shell, and what it was given.
fn told(shell: &str, place: &Path, command: &str) -> (String, String) {
    let status = Command::new(shell)
        .args(["-c", &format!("{CLIENT}\n{command}")])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("TOLD", place.join("told"))
        .current_dir(place)
        .status()
        .unwrap();
    assert!(status.success(), "{command}");
    let told = std::fs::read_to_string(place.join("told")).unwrap();
    let (directory, arguments) = told.rsplit_once('\u{0}').unwrap();
    (directory.to_owned(), arguments.to_owned())
}

#[test]
fn a_resume_command_goes_there_and_runs_nothing_else() {
    for name in HOSTILE {
        let home = home();
        let place = home.path().canonicalize().unwrap();
        let directory = place.join(name);
        std::fs::create_dir(&directory).unwrap();
        let id = "5e551000-0000-4000-8000-000000000009";
        let line = json!({
            "type": "user", "uuid": "00000000-0000-4000-8000-000000000001", "parentUuid": null,
            "sessionId": id, "isSidechain": false, "cwd": directory, "version": "2.1.45",
            "timestamp": "2026-01-05T10:00:01.000Z", "message": {"role": "user", "content": "hi"},
        });
        home.transcript("/home/dev/x", id, format!("{line}\n"));
        let output = home.output(&["clone", id, "--json"]);
        let row: Value = serde_json::from_slice(&output.stdout).unwrap();
        let new = row["session"].as_str().unwrap();
        let command = row["resume"].as_str().unwrap();
        let printed = home.run(&["clone", id, "--dry-run"]);
        assert!(printed.contains("would create"), "{printed}");
        for shell in ["sh", "bash"] {
            let (there, arguments) = told(shell, &place, command);
            let there = there.strip_suffix('\n').unwrap();
            assert_eq!(Path::new(there), directory, "{shell}: {command}");
            assert!(arguments.contains(new), "{shell}: {command}: {arguments}");
        }
        for folder in [&place, &directory] {
            assert!(!folder.join("pwned").exists(), "{command}");
        }
    }
}

#[test]
fn an_id_is_no_option_of_the_client() {
    let home = home();
    let id = "--dangerously-skip-permissions";
    let line = json!({
        "type": "user", "uuid": "00000000-0000-4000-8000-000000000001", "parentUuid": null,
        "sessionId": id, "isSidechain": false, "cwd": "/home/dev/x", "version": "2.1.45",
        "timestamp": "2026-01-05T10:00:01.000Z", "message": {"role": "user", "content": "my key is AKIAIOSFODNN7EXAMPLQ"},
    });
    let path = home.transcript("/home/dev/x", id, format!("{line}\n"));
    let path = path.to_str().unwrap();
    let output = home.output(&["redact", path, "--in-place", "--json"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let row: Value = serde_json::from_str(text.trim()).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!(row["resume"], format!("claude --resume={id}"));
}
