//! `cargo xtask tidy`: checks of the sources that keep the architecture true.
//!
//! Each check reads files as text and reports violations as `check`, file and line. Violations that
//! are known stand in `xtask/src/tidy/known_violations.txt`, counted per check and file, each with a
//! reason. The list only shrinks: more violations than listed fail, and so does a listed one that is
//! gone. `cargo xtask tidy --list` prints every violation, listed or not; `--write` lowers the
//! counts of the list to what is there, and never raises one.

mod crate_edges;
mod document_names;
mod forbidden_calls;
mod format_names;
mod known_violations;
mod retired_words;
mod rule_tests;
mod source_files;

use std::collections::BTreeMap;
use std::path::Path;

use crate::Outcome;
use known_violations::KnownViolations;
use source_files::SourceFile;

/// Something in a file that the architecture forbids.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Violation {
    /// The check that found it.
    check: &'static str,
    /// Relative to the repository.
    file: String,
    /// Its line, from 1.
    line: usize,
    /// What is wrong.
    what: String,
}

/// One thing that must hold for the whole tree.
struct TidyCheck {
    name: &'static str,
    about: &'static str,
    run: fn(&SourceTree) -> Vec<Violation>,
}

/// Every check. A new one is a new file, a `mod` line above and a line here.
const CHECKS: &[TidyCheck] = &[
    TidyCheck {
        name: "crate-edges",
        about: "crates depend only on the crates below them",
        run: crate_edges::check,
    },
    TidyCheck {
        name: "format-names",
        about: "only `model` and `testkit` name fields of the transcript format",
        run: format_names::check,
    },
    TidyCheck {
        name: "forbidden-calls",
        about: "files, environment, clock and printing only where the architecture allows them",
        run: forbidden_calls::check,
    },
    TidyCheck {
        name: "rule-tests",
        about: "every test that docs/rules.md names exists",
        run: rule_tests::check,
    },
    TidyCheck {
        name: "document-names",
        about: "every path, command, flag and crate that the documents name exists",
        run: document_names::check,
    },
    TidyCheck {
        name: "retired-words",
        about: "names that were replaced do not come back",
        run: retired_words::check,
    },
];

/// The files of the repository that git knows, as text.
struct SourceTree {
    files: Vec<SourceFile>,
}

impl SourceTree {
    /// The file with this path, relative to the repository.
    fn file(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Rust sources of the program and its libraries, without tests.
    fn product_sources(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|file| file.is_product_source())
    }
}

/// Runs every check and compares with the known violations.
pub fn run(args: &[String]) -> Outcome {
    let root = crate::root();
    let tree = SourceTree {
        files: source_files::read(&root)?,
    };
    let mut violations: Vec<Violation> = Vec::new();
    for check in CHECKS {
        let mut found = (check.run)(&tree);
        found.sort();
        eprintln!("{:<16} {:>4}  {}", check.name, found.len(), check.about);
        violations.append(&mut found);
    }
    match args.first().map(String::as_str) {
        None => judge(&root, &violations),
        Some("--list") => {
            for violation in &violations {
                println!("{}", told(violation));
            }
            Ok(())
        }
        Some("--write") => {
            let path = root.join(known_violations::PATH);
            let known = KnownViolations::read(&path)?;
            known.shrunk_to(&counts(&violations)).write(&path)
        }
        Some(other) => Err(format!(
            "no argument `{other}`; usage: cargo xtask tidy [--list|--write]"
        )),
    }
}

fn judge(root: &Path, violations: &[Violation]) -> Outcome {
    let known = KnownViolations::read(&root.join(known_violations::PATH))?;
    let counts = counts(violations);
    let mut wrong = 0;
    for ((check, file), count) in &counts {
        let allowed = known.allowed(check, file);
        if *count > allowed {
            wrong += 1;
            println!("{check}: {file}: {count} violations, {allowed} are known:");
            for violation in violations {
                if violation.check == check && violation.file == *file {
                    println!("  {}", told(violation));
                }
            }
        }
    }
    for (check, file, allowed) in known.entries() {
        let count = counts
            .get(&(check.to_owned(), file.to_owned()))
            .copied()
            .unwrap_or(0);
        if count < allowed {
            wrong += 1;
            println!(
                "{check}: {file}: {allowed} violations are listed, {count} are there; run `cargo xtask tidy --write`"
            );
        }
    }
    match wrong {
        0 => Ok(()),
        _ => Err(format!("{wrong} files are not tidy")),
    }
}

/// How many violations there are per check and file.
fn counts(violations: &[Violation]) -> BTreeMap<(String, String), usize> {
    let mut counts = BTreeMap::new();
    for violation in violations {
        let key = (violation.check.to_owned(), violation.file.clone());
        *counts.entry(key).or_insert(0) += 1;
    }
    counts
}

fn told(violation: &Violation) -> String {
    format!(
        "{}:{}: {} ({})",
        violation.file, violation.line, violation.what, violation.check
    )
}
