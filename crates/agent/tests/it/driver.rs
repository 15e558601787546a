//! A process of its own that runs a command, and is killed.

use std::process::{Command, Stdio};

use unspool_testkit::wait::wait_until;

use crate::bash::{alive, mark};
use crate::host::Session;

const COMMAND: &str = "UNSPOOL_TEST_DRIVE";

/// Not a test: what the test below starts and kills.
#[test]
#[ignore = "started by another test"]
fn drive() {
    if let Ok(command) = std::env::var(COMMAND) {
        let session = Session::new();
        session.bash(&command);
    }
}

#[test]
fn killing_us_leaves_nothing_running() {
    let mark = mark();
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let command = format!(
        "trap '' TERM; for i in $(seq 20); do (sleep {mark} & wait) & done; setsid sleep {mark} & touch {}; sleep {mark}; sleep {mark}",
        ready.display()
    );
    let mut driver = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "driver::drive", "--ignored", "--nocapture"])
        .env(COMMAND, command)
        .env("TMPDIR", folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("all run", || ready.exists() && alive(&mark) > 20);
    driver.kill().unwrap();
    driver.wait().unwrap();
    wait_until("all to end", || alive(&mark) == 0);
}
