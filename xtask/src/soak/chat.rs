//! `cargo xtask soak chat [--times N] [--cuts N] [--gigabytes N] [--rounds N] [--program PATH]
//! [--write-docs]`: the console client, stopped, flooded, killed and cut off.
//!
//! Four parts. The tests of interrupts and of beginnings of recordings, with larger numbers than
//! the ordinary ones; and the program itself with a command that writes gigabytes, and with
//! commands that have hundreds of grandchildren and are stopped or lose their client.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use unspool_testkit::home::Home;
use unspool_testkit::model::{Answer, Model, call};

use crate::{Outcome, bench, measure};

const USAGE: &str = "usage: cargo xtask soak chat [--times N] [--cuts N] [--gigabytes N] [--rounds N] [--program PATH] [--write-docs]";

/// The heading of the part of `docs/soak.md`.
const HEADING: &str = "## A client that is stopped, flooded, killed and cut off";

/// Nothing takes so long, on any machine.
const LONG: Duration = Duration::from_secs(120);

struct Plan {
    /// So often each phase is stopped.
    times: usize,
    /// So many beginnings of each recording are gone on with.
    cuts: usize,
    /// So much a command writes.
    gigabytes: u64,
    /// So often grandchildren are stopped, and lose their client.
    rounds: usize,
    program: Option<PathBuf>,
    write_docs: bool,
}

/// Runs all of it, or what the numbers leave of it: 0 leaves a part out.
pub fn run(args: &[String]) -> Outcome {
    let plan = plan(args)?;
    let program = match &plan.program {
        Some(program) => program.clone(),
        None if plan.gigabytes == 0 && plan.rounds == 0 => PathBuf::new(),
        None => bench::build()?,
    };
    let mut parts = Vec::new();
    if plan.times > 0 {
        parts.push(interrupts(plan.times)?);
    }
    if plan.cuts > 0 {
        parts.push(beginnings(plan.cuts)?);
    }
    if plan.gigabytes > 0 {
        parts.push(flood(&program, plan.gigabytes)?);
    }
    if plan.rounds > 0 {
        parts.push(grandchildren(&program, plan.rounds)?);
    }
    let text = parts.join("\n\n");
    println!("{text}");
    match plan.write_docs {
        true => write(&text),
        false => Ok(()),
    }
}

fn plan(args: &[String]) -> Result<Plan, String> {
    let mut plan = Plan {
        times: 100,
        cuts: 200,
        gigabytes: 5,
        rounds: 10,
        program: None,
        write_docs: false,
    };
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        if flag == "--write-docs" {
            plan.write_docs = true;
            continue;
        }
        let value = args.next().ok_or(USAGE)?;
        let number = || value.parse().map_err(|_| format!("`{value}` is no number"));
        match flag.as_str() {
            "--times" => plan.times = number()?,
            "--cuts" => plan.cuts = number()?,
            "--gigabytes" => plan.gigabytes = number()? as u64,
            "--rounds" => plan.rounds = number()?,
            "--program" => plan.program = Some(PathBuf::from(value)),
            _ => return Err(USAGE.into()),
        }
    }
    Ok(plan)
}

/// What a test of the client printed behind this word, with a number for it.
fn tested(
    test: &str,
    only: &str,
    variable: &str,
    number: usize,
    word: &str,
) -> Result<Vec<String>, String> {
    let output = Command::new("cargo")
        .args(["test", "--quiet", "--package", "unspool-agent"])
        .args(["--test", test, only, "--", "--nocapture"])
        .env(variable, number.to_string())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!("the test `{test}` failed:\n{text}"));
    }
    let lines = text.lines().filter_map(|line| line.split_once(word));
    let lines: Vec<String> = lines.map(|(_, rest)| rest.trim().to_owned()).collect();
    match lines.is_empty() {
        true => Err(format!("the test `{test}` told nothing")),
        false => Ok(lines),
    }
}

fn interrupts(times: usize) -> Result<String, String> {
    let rows = tested("driver", "interrupts::", "UNSPOOL_TIMES", times, "phase |")?;
    let rows: Vec<String> = rows.iter().map(|row| format!("| {row}")).collect();
    Ok(format!(
        "Interrupts at {} points of the work, {times} times each, four sessions at a time. After each: the transcript has no fault, \
         every call has one result, the next request is taken by the strict model, no call ran twice, nothing runs on.\n\n\
         | stopped at | times | median, ms | longest, ms |\n|---|---|---|---|\n{}",
        rows.len(),
        rows.join("\n")
    ))
}

fn beginnings(cuts: usize) -> Result<String, String> {
    let told = tested("resume", "", "UNSPOOL_CUTS", cuts, "resumed |")?;
    Ok(format!("Beginnings of recordings: {}.", told.join("; ")))
}

/// A home with a model that makes one call of Bash and then is done.
fn home(program: &std::path::Path, command: &str) -> Result<(Home, Model), String> {
    let step = call(
        "toolu_1",
        "Bash",
        json!({"command": command, "timeout": 600_000}),
    );
    let model = Model::playing(vec![Answer::blocks(&[step])]).map_err(|error| error.to_string())?;
    let mut home = Home::new(program);
    home.set("ANTHROPIC_API_KEY", "test-key");
    home.set("ANTHROPIC_BASE_URL", &model.url());
    Ok((home, model))
}

const CHAT: [&str; 7] = [
    "chat",
    "-p",
    "--model",
    "claude-sonnet-4-5",
    "--permission-mode",
    "bypassPermissions",
    "go",
];

/// What the program needs when a command writes this much, and what is left of it on disk.
fn flooded(program: &std::path::Path, bytes: u64) -> Result<(measure::Cost, u64, String), String> {
    let (home, model) = home(program, &format!("head -c {bytes} /dev/zero"))?;
    let variables = [
        ("HOME", home.path().to_owned()),
        ("CLAUDE_CONFIG_DIR", home.claude_dir()),
        ("UNSPOOL_HOME", home.unspool_dir()),
        ("UNSPOOL_NO_BACKGROUND", "1".into()),
        ("ANTHROPIC_API_KEY", "test-key".into()),
        ("ANTHROPIC_BASE_URL", model.url().into()),
    ];
    let variables: Vec<(&str, &std::path::Path)> = variables
        .iter()
        .map(|(name, value)| (*name, value.as_path()))
        .collect();
    let cost = measure::cost_in(&home.work_dir(), program, &CHAT, &variables)?;
    if cost.status != 0 {
        return Err(format!("the client ended with {}", cost.status));
    }
    if let Some(refusal) = model.refusals().first() {
        return Err(format!("it sent what the API refuses: {refusal}"));
    }
    let sent = model.requests();
    let told = sent
        .last()
        .map(|request| request.body["messages"].to_string());
    let kept = spilled(&home.claude_dir());
    Ok((cost, kept, told.unwrap_or_default()))
}

/// The size of all files of output below a folder.
fn spilled(folder: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| {
        let path = entry.path();
        match entry.metadata() {
            Ok(meta) if meta.is_dir() => spilled(&path),
            Ok(meta)
                if path
                    .components()
                    .any(|part| part.as_os_str() == "tool-results") =>
            {
                meta.len()
            }
            _ => 0,
        }
    });
    sizes.sum()
}

/// Output of this size is kept in a file.
const KEPT: u64 = 100 << 20;

fn flood(program: &std::path::Path, gigabytes: u64) -> Result<String, String> {
    let (small, _, _) = flooded(program, 1_000)?;
    let (large, kept, told) = flooded(program, gigabytes << 30)?;
    let counted = format!("Output too large ({gigabytes}GB)");
    if !told.contains(&counted) {
        let end = told.len().saturating_sub(600);
        let end = told.get(end..).unwrap_or_default();
        return Err(format!("the model is not told `{counted}`: {end}"));
    }
    if kept != KEPT {
        return Err(format!("{kept} bytes are kept, not {KEPT}"));
    }
    Ok(format!(
        "A command that writes {gigabytes} GB: {} MB of it are kept in a file, the rest is counted, and the model is told `{counted}`. \
         Peak memory {:.1} MB, with a command that writes 1 kB {:.1} MB; {:.0} s, {:.1} s of processors.",
        kept >> 20,
        large.peak,
        small.peak,
        large.wall,
        large.cpu,
    ))
}

/// How many processes have this text among their arguments.
fn alive(mark: &str) -> usize {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| String::from_utf8_lossy(line).contains(mark))
        .count()
}

fn until(so: impl Fn() -> bool) -> Result<Duration, String> {
    let began = Instant::now();
    while !so() {
        if began.elapsed() > LONG {
            return Err("waited in vain".to_owned());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(began.elapsed())
}

fn signal(child: &Child, name: &str) -> Outcome {
    let sent = Command::new("kill")
        .args([name, &child.id().to_string()])
        .status();
    match sent {
        Ok(status) if status.success() => Ok(()),
        _ => Err("the client had ended before it was stopped".to_owned()),
    }
}

/// Stops a client, or kills it, while 200 grandchildren of its command sleep.
fn grandchildren(program: &std::path::Path, rounds: usize) -> Result<String, String> {
    let mut rows = Vec::new();
    for name in ["-INT", "-TERM", "-KILL"] {
        let mut times = Vec::new();
        for round in 0..rounds {
            let mark = format!("9{round:03}.{}{}", std::process::id(), name.len());
            let command = format!(
                "trap '' TERM; for i in $(seq 200); do (sleep {mark} & wait) & done; setsid sleep {mark} & sleep {mark}; sleep {mark}"
            );
            let (home, model) = home(program, &command)?;
            let mut child = home
                .command()
                .args(CHAT)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .map_err(|error| error.to_string())?;
            // The command itself stands among the arguments of its guard and its shell, too.
            let ready = until(|| alive(&mark) > 202);
            let sent = ready.and_then(|_| signal(&child, name));
            let ended = child.wait();
            let gone = until(|| alive(&mark) == 0);
            sent?;
            ended.map_err(|error| error.to_string())?;
            times.push(gone.map_err(|_| format!("{name}: {} still run", alive(&mark)))?);
            if let Some(refusal) = model.refusals().first() {
                return Err(format!("it sent what the API refuses: {refusal}"));
            }
        }
        times.sort_unstable();
        let ms = |time: Option<&Duration>| time.map_or(0, Duration::as_millis);
        rows.push(format!(
            "| {} | {} | {} | {} |",
            name.trim_start_matches('-'),
            times.len(),
            ms(times.get(times.len() / 2)),
            ms(times.last())
        ));
    }
    Ok(format!(
        "A command with 200 grandchildren, one in a session of its own, all deaf to TERM; its client is stopped by a signal. \
         Afterwards nothing of it runs; how long after the client's own end, in ms:\n\n\
         | signal | times | median | longest |\n|---|---|---|---|\n{}",
        rows.join("\n")
    ))
}

/// Puts the part into the page.
fn write(text: &str) -> Outcome {
    let path = crate::root().join("docs/soak.md");
    let page = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
    let before = match page.find(HEADING) {
        Some(at) => &page[..at],
        None => &page,
    };
    let after = page
        .find(HEADING)
        .and_then(|at| Some(at + HEADING.len() + page[at + HEADING.len()..].find("\n## ")?))
        .map_or("", |at| &page[at + 1..]);
    let about = "`cargo xtask soak chat [--times N] [--cuts N] [--gigabytes N] [--rounds N] [--program PATH] [--write-docs]`; 0 leaves a part out. \
                 The ordinary tests stop each point ten times and go on with 24 beginnings of each recording.";
    let page = format!(
        "{}\n\n{HEADING}\n\n{about}\n\n{text}\n\n{after}",
        before.trim_end()
    );
    std::fs::write(path, format!("{}\n", page.trim_end())).map_err(|error| error.to_string())
}
