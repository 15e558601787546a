//! `cargo xtask page`: exported pages in a real browser.
//!
//! A session made of attacks and a recorded one are exported and opened in Chromium: nothing but
//! our own script runs, nothing is requested, no key or fold does harm, and the page can be
//! read without any script. The same session as Markdown goes through two engines that let HTML
//! through: what they make of it runs nothing, requests nothing and holds only elements of ours. `cargo xtask page --first SESSION` says how long a reader waits for
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
    markdown(program, scratch, &session, &recorded)?;
    println!(
        "{} attacks in every place of a session: none works",
        attacks::ATTACKS.len()
    );
    Ok(())
}

/// The same sessions as Markdown, through engines that let everything through.
fn markdown(program: &Path, scratch: &Path, hostile: &Path, recorded: &Path) -> Outcome {
    needs::MARKDOWN.provide()?;
    let mixed = scratch.join(format!(
        "claude/projects/{}/{}.jsonl",
        slug("/home/dev/x"),
        attacks::mixed_id()
    ));
    write(&mixed, &attacks::mixed(MIXTURES))?;
    let sessions = [
        (hostile, "hostile.md", &[][..]),
        (
            hostile,
            "short.md",
            &["--detail", "low", "--max-chars", "20"],
        ),
        (&mixed, "mixed.md", &[]),
        (recorded, "plain.md", &[]),
    ];
    let mut files = Vec::new();
    for (session, name, more) in sessions {
        let file = scratch.join(name);
        export(program, scratch, session, &file, more)?;
        files.push(file);
    }
    let script = crate::root().join("tests/page/markdown.cjs");
    let status = node(&script)?
        .args(&files)
        .env("MARKDOWN", needs::markdown())
        .status()
        .map_err(|error| format!("node: {error}"))?;
    if status.success() {
        return Ok(());
    }
    Err("Markdown became what it should not".into())
}

/// How many texts are mixed from pieces of attacks and of Markdown.
const MIXTURES: usize = 3000;

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
    let script = crate::root().join("tests/page/check.cjs");
    let status = node(&script)?
        .arg(what)
        .args(pages)
        .status()
        .map_err(|error| format!("node: {error}"))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("a page did what it should not ({what})"))
}

/// A script with a browser at hand.
fn node(script: &Path) -> Result<Command, String> {
    let chromium = needs::chromium().ok_or("no Chromium")?;
    let mut node = Command::new("node");
    node.arg(script)
        .env("PLAYWRIGHT", needs::playwright())
        .env("CHROMIUM", chromium)
        .stdin(Stdio::null());
    Ok(node)
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
