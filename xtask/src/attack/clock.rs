//! The clock set back and forth between commands: edits keep their order, rows stay the same.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use unspool_testkit::home::Home;

use super::AttackLog;

const ID: &str = "c10c0000-0000-4000-8000-000000000001";

pub fn run(program: &Path, log: &mut AttackLog) -> Result<(), String> {
    let home = Home::new(program);
    let path = home.session(
        "/home/dev/x",
        ID,
        "you: first\nclaude: one\nyou: second\nclaude: two",
    );
    let original = std::fs::read(&path).map_err(|error| error.to_string())?;
    let now = "2026-01-05T12:00:00.000Z";
    let past = "2019-01-01T00:00:00.000Z";
    let future = "2031-01-01T00:00:00.000Z";

    // Titles given while the clock jumps are taken back in the order in which they were given.
    for (at, title) in [
        (now, "title one"),
        (past, "title two"),
        (future, "title three"),
        (past, "title four"),
    ] {
        let output = at_time(&home, at, &["rename", ID, title])?;
        log.held(output.status.success(), || {
            format!("`rename` at {at}: {}", told(&output))
        });
    }
    for (at, left) in [
        (future, "title three"),
        (past, "title two"),
        (now, "title one"),
    ] {
        let output = at_time(&home, at, &["undo"])?;
        log.held(output.status.success(), || {
            format!("`undo` at {at}: {}", told(&output))
        });
        let listed = at_time(&home, now, &["ls", "--json", "--all"])?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        log.held(listed.contains(left), || {
            format!("after `undo` at {at} the title is not `{left}`")
        });
    }
    at_time(&home, past, &["undo"])?;
    let is_same = std::fs::read(&path).is_ok_and(|bytes| bytes == original);
    log.held(is_same, || {
        "after all is undone the session is not as it was".into()
    });

    // Reading is the same whatever the clock says.
    for command in [
        &["turns", ID, "--json"][..],
        &["usage", "--json"],
        &["show", ID],
        &["messages", ID],
        &["search", "second", "--json"],
    ] {
        let expected = at_time(&home, now, command)?.stdout;
        for at in [
            past,
            future,
            "1970-01-01T00:00:00.000Z",
            "9999-12-31T23:59:59.999Z",
        ] {
            let output = at_time(&home, at, command)?;
            log.held(output.stdout == expected, || {
                format!("`{}` differs at {at}: {}", command.join(" "), told(&output))
            });
        }
    }
    // Files from the future, and from before the epoch.
    for mtime in ["2031-01-01", "1969-01-01"] {
        let touched = Command::new("touch")
            .args(["-d", mtime])
            .arg(&path)
            .status()
            .is_ok_and(|status| status.success());
        if !touched {
            log.skip("`touch -d` is not here");
            continue;
        }
        for command in [
            &["ls", "--all"][..],
            &["usage"],
            &["status"],
            &["sql", "SELECT count(*) FROM turns"],
        ] {
            let output = at_time(&home, now, command)?;
            log.held(matches!(output.status.code(), Some(0 | 1)), || {
                format!(
                    "`{}` of a file of {mtime}: {}",
                    command.join(" "),
                    told(&output)
                )
            });
        }
    }
    Ok(())
}

fn at_time(home: &Home, now: &str, args: &[&str]) -> Result<Output, String> {
    home.command()
        .args(args)
        .env("UNSPOOL_NOW", now)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())
}

fn told(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    format!("{} {}", output.status, error.trim())
}
