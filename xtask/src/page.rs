//! `cargo xtask page`: exported pages in a real browser.
//!
//! A session made of attacks and a recorded one are exported and opened in Chromium: nothing but
//! our own script runs, nothing is requested, no key or fold does harm, and the page can be
//! read without any script. `cargo xtask page --first SESSION` says how long a reader waits for
//! the first prompt of a session.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use unspool_testkit::attacks;
use unspool_testkit::home::slug;

use crate::{Outcome, bench, needs};

/// Exports and looks.
pub fn run(args: &[String]) -> Outcome {
    let program = bench::build()?;
    let scratch = std::env::temp_dir().join(format!("unspool-page-{}", std::process::id()));
    let made = match args {
        [] => hostile_and_plain(&program, &scratch),
        [flag, session] if flag == "--first" => first(&program, &scratch, Path::new(session)),
        _ => Err("usage: cargo xtask page [--first SESSION.jsonl]".into()),
    };
    // Left-overs in the temporary folder harm nobody.
    let _ = std::fs::remove_dir_all(&scratch);
    made
}

fn hostile_and_plain(program: &Path, scratch: &Path) -> Outcome {
    let session = scratch.join(format!(
        "claude/projects/{}/{}.jsonl",
        slug("/home/dev/x"),
        attacks::id()
    ));
    write(&session, &attacks::transcript())?;
    let hostile = scratch.join("hostile.html");
    export(program, scratch, &session, &hostile, &[])?;
    let short = scratch.join("short.html");
    export(
        program,
        scratch,
        &session,
        &short,
        &["--detail", "low", "--max-chars", "20"],
    )?;
    let corpus = crate::root().join("crates/testkit/corpus/2.1.325/s06_errors/projects");
    let recorded = largest(&corpus).ok_or("the recording is gone")?;
    let plain = scratch.join("plain.html");
    export(program, scratch, &recorded, &plain, &[])?;
    browse("check", &[&hostile, &short, &plain])?;
    browse("use", &[&plain])?;
    println!(
        "{} attacks in every place of a session: none works",
        attacks::ATTACKS.len()
    );
    Ok(())
}

fn first(program: &Path, scratch: &Path, session: &Path) -> Outcome {
    let page = scratch.join("page.html");
    export(program, scratch, session, &page, &["--no-redact"])?;
    browse("first", &[&page])
}

fn write(path: &Path, bytes: &[u8]) -> Outcome {
    let told = |error: std::io::Error| format!("{}: {error}", path.display());
    let folder = path.parent().ok_or("no folder")?;
    std::fs::create_dir_all(folder).map_err(told)?;
    std::fs::write(path, bytes).map_err(told)
}

fn export(program: &Path, scratch: &Path, session: &Path, page: &Path, more: &[&str]) -> Outcome {
    std::fs::create_dir_all(scratch.join("claude"))
        .map_err(|error| format!("{}: {error}", scratch.display()))?;
    let mut command = Command::new(program);
    command
        .arg("export")
        .arg(session)
        .arg("-o")
        .arg(page)
        .args(more)
        .args(["--quiet", "--force"])
        .env("HOME", scratch)
        .env("CLAUDE_CONFIG_DIR", scratch.join("claude"))
        .env("UNSPOOL_HOME", scratch.join("unspool"));
    needs::succeed(&mut command)
}

/// Opens pages with the script beside the tests.
fn browse(what: &str, pages: &[&PathBuf]) -> Outcome {
    let chromium = needs::chromium().ok_or("no Chromium")?;
    let status = Command::new("node")
        .arg(crate::root().join("tests/page/check.cjs"))
        .arg(what)
        .args(pages)
        .env("PLAYWRIGHT", needs::playwright())
        .env("CHROMIUM", chromium)
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("node: {error}"))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("a page did what it should not ({what})"))
}

/// The largest transcript below a folder.
fn largest(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let below = entries.filter_map(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return largest(&path);
        }
        path.extension()
            .is_some_and(|it| it == "jsonl")
            .then_some(path)
    });
    below.max_by_key(|path| path.metadata().map_or(0, |metadata| metadata.len()))
}
