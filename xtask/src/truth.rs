//! `cargo xtask truth`: `usage` and `search` against trees whose truth is known.
//!
//! Takes folders with `.claude` and `manifest.json` (of the outside generator) or
//! `truth.json` (of ours) in them; without any, runs the outside generator given by
//! `--generator`, which shares no line of code and no author's habit with ours. Not
//! part of the tests, because that generator is not part of the repository.
//!
//! `cargo xtask truth [DIR…] [--program PATH] [--generator PATH] [--seeds 1,2] [--sizes S,20]`;
//! a size is S, M, L or a number of megabytes.

pub mod check;
pub mod expected;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Outcome, bench};
use check::{Asked, Finding};
use expected::Expected;

/// What the arguments ask for.
struct Request {
    dirs: Vec<PathBuf>,
    program: Option<PathBuf>,
    generator: Option<PathBuf>,
    seeds: Vec<String>,
    sizes: Vec<String>,
}

/// Checks every tree and prints what differs.
pub fn run(args: &[String]) -> Outcome {
    let request = Request::read(args)?;
    let program = match &request.program {
        Some(program) => program.clone(),
        None => bench::build()?,
    };
    let mut wrong = 0;
    for dir in &request.dirs {
        wrong += check(&program, dir)?;
    }
    if request.dirs.is_empty() {
        let generator = request
            .generator
            .as_deref()
            .ok_or("name a folder, or a generator with `--generator PATH`")?;
        for seed in &request.seeds {
            for size in &request.sizes {
                let dir = Scratch::new(&format!("{size}-{seed}"))?;
                generate(generator, seed, size, &dir.0)?;
                wrong += check(&program, &dir.0)?;
            }
        }
    }
    if wrong == 0 {
        Ok(())
    } else {
        Err(format!("{wrong} answers are wrong"))
    }
}

impl Request {
    fn read(args: &[String]) -> Result<Request, String> {
        let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        let mut request = Request {
            dirs: Vec::new(),
            program: None,
            generator: None,
            seeds: list("20261115,7,99"),
            sizes: list("S,20"),
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("`{arg}` needs a value"));
            match arg.as_str() {
                "--program" => request.program = Some(value()?.into()),
                "--generator" => request.generator = Some(value()?.into()),
                "--seeds" => request.seeds = list(value()?),
                "--sizes" => request.sizes = list(value()?),
                _ if arg.starts_with("--") => return Err(format!("unknown option `{arg}`")),
                _ => request.dirs.push(arg.into()),
            }
        }
        Ok(request)
    }
}

/// Runs the outside generator.
fn generate(generator: &Path, seed: &str, size: &str, out: &Path) -> Outcome {
    let is_number = size.bytes().all(|byte| byte.is_ascii_digit());
    let options = if is_number {
        vec!["--size", "S", "--target-mb", size]
    } else {
        vec!["--size", size]
    };
    eprintln!("{}: seed {seed}, size {size}", generator.display());
    let status = Command::new("python3")
        .arg(generator)
        .args(options)
        .args(["--seed", seed, "--out"])
        .arg(out)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| format!("python3: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{} ended with {status}", generator.display()))
    }
}

/// Checks one tree and says how many answers are wrong.
fn check(program: &Path, home: &Path) -> Result<usize, String> {
    let expected = Expected::read(home)?;
    let own = Scratch::new("own")?;
    let asked = Asked {
        program,
        home,
        own: &own.0,
    };
    println!("\n{}", home.display());
    // The second time from what the first one left in the cache.
    let mut findings = asked.usage(&expected)?;
    let again = asked.total(&[])?;
    let scanned = asked.total(&["--no-cache"])?;
    findings.push(Finding {
        what: "with and without what is remembered".into(),
        detail: again.deviation(scanned),
        is_right: again == scanned,
    });
    findings.extend(asked.needles(&expected)?);
    for finding in &findings {
        let verdict = if finding.is_right { "ok   " } else { "WRONG" };
        println!("  {verdict} {:<52} {}", finding.what, finding.detail);
    }
    Ok(findings.iter().filter(|finding| !finding.is_right).count())
}

/// A folder that is gone afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Result<Scratch, String> {
        let name = format!("unspool-truth-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Left-overs in the temporary folder harm nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}
