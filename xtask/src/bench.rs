//! `cargo xtask bench`: the program against its targets and its peers, on generated trees.
//!
//! Builds the release program, generates the trees once (outside the
//! repository), installs the peers into the cache, and runs each case several
//! times with the files in the page cache, ours and the peers' in turn. What
//! counts is the best run: the machine may be busy, but it is never faster than
//! it can be. Answers are held against the truth of the tree. Never part of the
//! tests: a busy machine must not make a change look wrong.
//!
//! `--runs N` (default 5), `--only WORD` (cases whose name has it), `--tree DIR`
//! (a tree with `.claude` in it instead of our own of 1 GB), `--program PATH`
//! (another build), `--write FILE` (the table as Markdown, in place of the one
//! that stands there between its marks), `--large` (also 5 GB),
//! `--no-peers`.

mod cases;
mod hook;
mod index;
mod peers;
mod rounds;
mod run;
mod send;
mod table;
mod trees;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::Outcome;
use cases::{CASES, Case, GROWTHS, Growth};
use run::measure;
use table::Row;
use trees::Tree;

/// What the arguments ask for.
struct Request {
    runs: usize,
    only: Option<String>,
    tree: Option<PathBuf>,
    program: Option<PathBuf>,
    write: Option<PathBuf>,
    large: bool,
    peers: bool,
}

/// Measures everything and prints the table.
pub fn run(args: &[String]) -> Outcome {
    let request = Request::read(args)?;
    let program = match &request.program {
        Some(program) => program.clone(),
        None => build()?,
    };
    let mut rows = Vec::new();
    for case in CASES.iter().filter(|case| request.wants(case)) {
        eprintln!("{}: unspool {}", case.name, case.args.join(" "));
        rows.push(measure(&request, &program, case)?);
    }
    rows.extend(index::rows(&request, &program)?);
    rows.extend(hook::rows(&request, &program)?);
    rows.extend(send::rows(&request)?);
    let grown: Vec<Row> = GROWTHS.iter().filter_map(|it| growth(it, &rows)).collect();
    rows.extend(grown);
    let table = table::table(&rows);
    println!("{table}");
    if let Some(path) = &request.write {
        let path = crate::root().join(path);
        let before = fs::read_to_string(&path).unwrap_or_default();
        fs::write(&path, table::document(&before, &table))
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    match rows.iter().filter(|row| !row.is_met()).count() {
        0 => Ok(()),
        missed => Err(format!("{missed} targets missed")),
    }
}

impl Request {
    fn read(args: &[String]) -> Result<Request, String> {
        let mut request = Request {
            runs: 5,
            only: None,
            tree: None,
            program: None,
            write: None,
            large: false,
            peers: true,
        };
        let mut args = args.iter();
        while let Some(flag) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("`{flag}` needs a value"));
            match flag.as_str() {
                "--runs" => {
                    let value = value()?;
                    request.runs = value
                        .parse()
                        .map_err(|_| format!("`{value}` is no number"))?;
                }
                "--only" => request.only = Some(value()?.clone()),
                "--tree" => request.tree = Some(value()?.into()),
                "--program" => request.program = Some(value()?.into()),
                "--write" => request.write = Some(value()?.into()),
                "--large" => request.large = true,
                "--no-peers" => request.peers = false,
                _ => return Err(format!("unknown option `{flag}`")),
            }
        }
        Ok(request)
    }

    fn wants(&self, case: &Case) -> bool {
        self.wants_name(case.name) && (self.large || case.tree != Tree::Large)
    }

    fn wants_name(&self, name: &str) -> bool {
        let word = self.only.as_ref();
        word.is_none_or(|word| name.contains(word.as_str()))
    }

    fn home(&self, which: Tree) -> Result<PathBuf, String> {
        match (which, &self.tree) {
            (Tree::Medium, Some(tree)) => Ok(tree.clone()),
            _ => trees::home(which),
        }
    }
}

/// Builds the release program and says where it is.
pub fn build() -> Result<PathBuf, String> {
    let status = Command::new("cargo")
        .args(["build", "--release", "--package", "unspool"])
        .current_dir(crate::root())
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if !status.success() {
        return Err("the program does not build".into());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| crate::root().join("target"), PathBuf::from);
    Ok(target
        .join("release")
        .join(format!("unspool{}", std::env::consts::EXE_SUFFIX)))
}

/// How the cost grows with the bytes.
fn growth(growth: &Growth, rows: &[Row]) -> Option<Row> {
    let cost = |name: &str| {
        let row = rows.iter().find(|row| row.name == name)?;
        row.cost.as_ref()?.as_ref().ok().copied()
    };
    let (large, small) = (cost(growth.large)?, cost(growth.small)?);
    let ratio = large.cpu / small.cpu;
    let limit = growth.cpu;
    let mut targets = vec![(format!("≤ {limit}× the processor time"), ratio <= limit)];
    let mut against = format!("{ratio:.1}×");
    if let Some(more) = growth.more_peak {
        let grown = large.peak - small.peak;
        targets.push((format!("≤ {more:.0} MB more"), grown <= more));
        against.push_str(&format!(", {grown:+.0} MB"));
    }
    Some(Row {
        name: growth.name.into(),
        cost: None,
        targets,
        against,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::made_up as cost;

    #[test]
    fn growth_compares_processor_time_and_memory() {
        let row = |name: &str, cost| Row {
            name: name.into(),
            cost: Some(Ok(cost)),
            targets: Vec::new(),
            against: String::new(),
        };
        let usage = GROWTHS.iter().find(|it| it.more_peak.is_some()).unwrap();
        let is_met = |large| {
            let rows = [row(usage.large, large), row(usage.small, cost(0.1, 20.0))];
            growth(usage, &rows).map(|row| row.is_met())
        };
        assert_eq!(is_met(cost(0.5, 25.0)), Some(true));
        assert_eq!(is_met(cost(0.6, 25.0)), Some(false));
        assert_eq!(is_met(cost(0.5, 45.0)), Some(false));
    }
}
