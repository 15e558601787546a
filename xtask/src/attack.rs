//! `cargo xtask attack`: hostile inputs against the release program, one table at the end.
//!
//! Every chapter attacks one surface of the real program in a throwaway home: what it prints on a
//! terminal, what it opens, what it writes over, what it allows, whom it answers. A chapter that
//! cannot run on this machine says why, and counts as skipped, never as held.
//!
//! `cargo xtask attack [CHAPTER…] [--program FILE]`

mod clock;
mod devices;
mod disk;
mod many_files;
mod memory;
mod permissions;
mod readable;
mod repository;
mod server;
mod terminal;

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::{Outcome, bench, dashboard, page, secrets};

/// One surface and how it is attacked.
struct Chapter {
    name: &'static str,
    about: &'static str,
    run: fn(&Path, &mut AttackLog) -> Result<(), String>,
}

const CHAPTERS: &[Chapter] = &[
    Chapter {
        name: "terminal",
        about: "control codes in every text, every command on a terminal",
        run: terminal::run,
    },
    Chapter {
        name: "repository",
        about: "an untrusted repository, with and without a home",
        run: repository::run,
    },
    Chapter {
        name: "permissions",
        about: "the permission corpus, in real shells",
        run: permissions::run,
    },
    Chapter {
        name: "devices",
        about: "links, FIFOs and devices as targets; an edited archive",
        run: devices::run,
    },
    Chapter {
        name: "faults",
        about: "failing system calls at every moment",
        run: |_, log| tests(log, "unspool", "it", "faults::"),
    },
    Chapter {
        name: "disk",
        about: "a small disk that fills up",
        run: disk::run,
    },
    Chapter {
        name: "memory",
        about: "lines without end and without number of keys",
        run: memory::run,
    },
    Chapter {
        name: "files",
        about: "100,000 sessions",
        run: many_files::run,
    },
    Chapter {
        name: "clock",
        about: "the clock set back and forth between commands",
        run: clock::run,
    },
    Chapter {
        name: "readable",
        about: "permissions lost while sessions are followed",
        run: readable::run,
    },
    Chapter {
        name: "server",
        about: "foreign hosts, wrong tokens, half-open connections",
        run: server::run,
    },
    Chapter {
        name: "secrets",
        about: "planted keys and passwords",
        run: |_, log| log.task("recall and precision", || secrets::run(&[])),
    },
    Chapter {
        name: "page",
        about: "exported pages and Markdown in Chromium",
        run: |_, log| log.task("exported pages", || page::run(&[])),
    },
    Chapter {
        name: "dashboard",
        about: "the dashboard in Chromium, beside a second server",
        run: |program, log| {
            let program = program.display().to_string();
            log.task("dashboard", || {
                dashboard::run(&["--program".into(), program.clone()])
            })
        },
    },
];

/// What was tried in a chapter, and what did not hold.
#[derive(Default)]
pub struct AttackLog {
    tried: usize,
    failed: Vec<String>,
    skipped: Vec<String>,
}

impl AttackLog {
    /// Notes one attack: whether the program held, and what it did if not.
    pub fn held(&mut self, held: bool, told: impl FnOnce() -> String) {
        self.tried += 1;
        if !held {
            let told = told();
            eprintln!("  DID NOT HOLD {told}");
            self.failed.push(told);
        }
    }

    /// Notes what could not be tried here.
    pub fn skip(&mut self, why: impl Into<String>) {
        let why = why.into();
        eprintln!("  skipped: {why}");
        self.skipped.push(why);
    }

    /// A task of its own, as one attack.
    fn task(&mut self, name: &str, run: impl FnOnce() -> Outcome) -> Result<(), String> {
        let done = run();
        self.held(done.is_ok(), || {
            format!("{name}: {}", done.err().unwrap_or_default())
        });
        Ok(())
    }
}

/// Attacks the program and prints the table.
pub fn run(args: &[String]) -> Outcome {
    let (mut program, mut names) = (None, Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--program" => {
                let path = args.next().ok_or("`--program` needs a file")?;
                program = Some(PathBuf::from(path));
            }
            name if CHAPTERS.iter().any(|chapter| chapter.name == name) => names.push(name),
            other => return Err(usage(other)),
        }
    }
    let program = match program {
        Some(program) => program,
        None => bench::build()?,
    };
    let program = std::path::absolute(&program).map_err(|error| error.to_string())?;
    let mut rows = Vec::new();
    for chapter in CHAPTERS {
        if !names.is_empty() && !names.contains(&chapter.name) {
            continue;
        }
        eprintln!("== {}: {}", chapter.name, chapter.about);
        let start = Instant::now();
        let mut log = AttackLog::default();
        if let Err(reason) = (chapter.run)(&program, &mut log) {
            log.held(false, || format!("the chapter ended early: {reason}"));
        }
        rows.push((chapter, log, start.elapsed().as_secs_f64()));
    }
    report(&rows)
}

fn usage(wrong: &str) -> String {
    let mut text =
        format!("no chapter `{wrong}`; usage: cargo xtask attack [CHAPTER…] [--program FILE]");
    for chapter in CHAPTERS {
        text.push_str(&format!("\n  {:<12} {}", chapter.name, chapter.about));
    }
    text
}

fn report(rows: &[(&Chapter, AttackLog, f64)]) -> Outcome {
    println!("\n| chapter | attack | tried | held | skipped | seconds |");
    println!("|---|---|---|---|---|---|");
    let (mut failed, mut skipped) = (0, 0);
    for (chapter, log, seconds) in rows {
        failed += log.failed.len();
        skipped += log.skipped.len();
        println!(
            "| {} | {} | {} | {} | {} | {seconds:.0} |",
            chapter.name,
            chapter.about,
            log.tried,
            log.tried - log.failed.len(),
            log.skipped.len(),
        );
    }
    for (chapter, log, _) in rows {
        for told in &log.failed {
            println!("did not hold: {}: {told}", chapter.name);
        }
        for why in &log.skipped {
            println!("skipped: {}: {why}", chapter.name);
        }
    }
    match (failed, skipped) {
        (0, 0) => Ok(()),
        (0, _) => Err(format!("{skipped} attacks could not be tried here")),
        _ => Err(format!("{failed} attacks did not hold")),
    }
}

/// Runs tests of a crate as one attack each, by the counts that the test runner prints.
fn tests(log: &mut AttackLog, package: &str, target: &str, filter: &str) -> Result<(), String> {
    let output = std::process::Command::new("cargo")
        .args(["test", "--package", package, "--test", target, "--", filter])
        .current_dir(crate::root())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let counts = |word: &str| -> usize {
        let line = text.lines().rfind(|line| line.starts_with("test result:"));
        let number = line.and_then(|line| line.split(word).next()?.split_whitespace().next_back());
        number.and_then(|number| number.parse().ok()).unwrap_or(0)
    };
    let passed = counts(" passed");
    if passed == 0 {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    log.tried += passed;
    for line in text.lines().filter(|line| line.ends_with("... FAILED")) {
        log.held(false, || line.to_owned());
    }
    Ok(())
}
