//! A process that edits is killed at some moment, again and again.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::journal::tests::kit::{self, Home, relative};

const ROOT: &str = "UNSPOOL_TEST_KILLED_HOME";

/// Not a test: what the other process does until it is killed.
#[test]
#[ignore = "runs until it is killed; started by the other tests here"]
fn editing_without_end() {
    let Some(root) = std::env::var_os(ROOT) else {
        return;
    };
    let home = Home::of(Path::new(&root));
    println!("begun");
    loop {
        kit::edit(&home).unwrap();
        kit::undo(&home).unwrap();
    }
}

#[test]
fn a_killed_process_leaves_old_or_new_files() {
    killed(40);
}

#[test]
#[ignore = "a minute: the same a thousand times"]
fn a_process_killed_a_thousand_times_leaves_old_or_new_files() {
    killed(1_000);
}

fn killed(times: u64) {
    let (old, new) = {
        let home = Home::new();
        let old = relative(&home);
        kit::edit(&home).unwrap();
        (old, relative(&home))
    };
    let (mut olds, mut news) = (0, 0);
    for turn in 0..times {
        let home = Home::new();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", "--nocapture"])
            .arg("journal::tests::kill::editing_without_end")
            .env(ROOT, home.root())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut begun = [0; 64];
        let mut out = child.stdout.take().unwrap();
        while !String::from_utf8_lossy(&begun).contains("begun") {
            let read = std::io::Read::read(&mut out, &mut begun).unwrap();
            assert_ne!(read, 0, "it ended by itself");
        }
        std::thread::sleep(Duration::from_micros(turn * 7_919 % 15_000));
        child.kill().unwrap();
        child.wait().unwrap();
        home.journal().recover().unwrap();
        let now = relative(&home);
        assert!(now == old || now == new, "{turn}: {now:?}");
        if now == new {
            news += 1;
            kit::undo(&home).unwrap();
            assert_eq!(relative(&home), old);
        } else {
            olds += 1;
        }
    }
    println!("{olds} times old, {news} times new");
    assert!(olds > 0 && news > 0, "{olds} {news}");
}
