//! A disk of one megabyte that fills up: edits fail with a message, and originals stay whole.

use std::path::Path;
use std::process::{Command, Stdio};

use unspool_testkit::home::slug;
use unspool_testkit::script;

use super::AttackLog;

const ID: &str = "d15c0000-0000-4000-8000-000000000001";

/// Commands that write something larger than what is left.
const COMMANDS: &[&str] = &[
    "clone ID",
    "clone ID --preset default",
    "redact ID --in-place",
    "repair ID --in-place",
    "export ID --to html -o $DISK/page.html",
    "export ID --to jsonl -o $DISK/copy.jsonl",
    "archive ID",
    "index build",
    "sql 'SELECT count(*) FROM turns'",
    "usage",
    "rename ID 'a new title'",
];

pub fn run(program: &Path, log: &mut AttackLog) -> Result<(), String> {
    let can_mount = Command::new("unshare")
        .args(["-rm", "sh", "-c", "mount -t tmpfs tmpfs /mnt"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !can_mount {
        log.skip("a small disk needs user namespaces");
        return Ok(());
    }
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let session = folder.path().join("session.jsonl");
    std::fs::write(&session, large_session()).map_err(|error| error.to_string())?;
    for command in COMMANDS {
        let command = command.replace("ID", ID);
        let output = Command::new("unshare")
            .args(["-rm", "sh", "-c", SCRIPT, "sh", &command])
            .env("PROGRAM", program)
            .env("SESSION", &session)
            .env("PROJECT", slug("/home/dev/x"))
            .env("ID", ID)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stdout);
        let code = output.status.code();
        // A command that needs no room may succeed; none may panic or change the original.
        log.held(
            matches!(code, Some(0..=2)) && said.contains("original whole"),
            || {
                let error = String::from_utf8_lossy(&output.stderr);
                format!("`{command}` on a full disk: {code:?} {said} {error}")
            },
        );
        log.held(code != Some(2) || !output.stderr.is_empty(), || {
            format!("`{command}` on a full disk fails without a word")
        });
    }
    Ok(())
}

/// Fills a small disk but for a few kilobytes and runs `$1` on it.
const SCRIPT: &str = r#"
set -e
export DISK=/mnt HOME=/mnt CLAUDE_CONFIG_DIR=/mnt/claude UNSPOOL_HOME=/mnt/unspool UNSPOOL_NO_BACKGROUND=1
mount -t tmpfs -o size=1500k,mode=0700 tmpfs /mnt
mkdir -p -m 0700 "$CLAUDE_CONFIG_DIR/projects/$PROJECT" "$UNSPOOL_HOME"
file="$CLAUDE_CONFIG_DIR/projects/$PROJECT/$ID.jsonl"
cp "$SESSION" "$file"
cd /mnt
dd if=/dev/zero of=/mnt/filling bs=1k count=10000 2>/dev/null || true
truncate -s -20k /mnt/filling
code=0
eval "\"$PROGRAM\" $1" >/dev/null || code=$?
if head -c "$(stat -c %s "$SESSION")" "$file" | cmp -s - "$SESSION"; then echo original whole; else echo original changed; fi
exit $code
"#;

/// Half a megabyte of conversation.
fn large_session() -> Vec<u8> {
    let mut talk = format!("(cwd=/home/dev/x, session={ID})\n");
    for turn in 0..200 {
        talk.push_str(&format!(
            "you: question {turn} {}\nclaude: answer {turn}\n",
            "words ".repeat(150)
        ));
    }
    script::jsonl(&talk)
}
