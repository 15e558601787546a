//! A check of the sources: no program and no test reads outside the repository.
//!
//! Tests that find more data in one checkout than in another pass here and fail there. This
//! looks at what is written in the sources; `.ci/run` proves it by running the tests in a clone
//! that has nothing beside it.

use std::path::{Component, Path, PathBuf};

/// A path in a source file that leads out of the repository.
#[derive(Debug, PartialEq, Eq)]
struct OutsidePath {
    line: usize,
    path: String,
}

/// Calls whose first argument is a path below the folder of the crate.
const JOINS: &[&str] = &[".join(\"", "Path::new(\"", "PathBuf::from(\""];

/// Places whose path is relative to the file it is written in.
const INCLUDES: &[&str] = &[
    "include_str!(\"",
    "include_bytes!(\"",
    "#[path = \"",
    "from \"",
    "from '",
    "import(\"",
    "import('",
    "new URL(\"",
    "new URL('",
];

/// The paths in `text` that leave the repository. `file` is relative to its root.
fn outside_paths(file: &Path, text: &str) -> Vec<OutsidePath> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let crate_folder = crate_folder(file);
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for (starts, base) in [(JOINS, crate_folder.as_path()), (INCLUDES, folder)] {
            for path in starts.iter().flat_map(|start| literals(line, start)) {
                // `root()` is the repository itself: one step up is outside.
                let base = if line.contains("root()") || line.contains("root.join") {
                    Path::new("")
                } else {
                    base
                };
                if leaves(base, &path) {
                    let line = index + 1;
                    found.push(OutsidePath { line, path });
                }
            }
        }
    }
    found
}

/// `crates/x`, `xtask`, `web` or `tests`: what relative paths of a program start from.
fn crate_folder(file: &Path) -> PathBuf {
    let depth = if file.starts_with("crates") { 2 } else { 1 };
    file.components().take(depth).collect()
}

/// The quoted texts that follow `start` in a line.
fn literals(line: &str, start: &str) -> Vec<String> {
    let quote = if start.ends_with('\'') { '\'' } else { '"' };
    line.match_indices(start)
        .filter_map(|(at, _)| line[at + start.len()..].split(quote).next())
        .map(str::to_owned)
        .collect()
}

/// Whether `path`, seen from `base` in the repository, is outside of it.
fn leaves(base: &Path, path: &str) -> bool {
    let mut depth = base.components().count() as isize;
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => depth += 1,
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
        if depth < 0 {
            return true;
        }
    }
    false
}

/// Every source file below `folder`, relative to `root`.
fn sources(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) {
    const LEFT_OUT: &[&str] = &[
        "target",
        "node_modules",
        "dist",
        "corpus",
        "fixtures",
        ".git",
    ];
    const ENDINGS: &[&str] = &["rs", "py", "js", "mjs", "ts", "svelte", "toml", "sh"];
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if !LEFT_OUT.contains(&&*name) {
                sources(root, &path, found);
            }
        } else if path
            .extension()
            .is_some_and(|end| ENDINGS.iter().any(|known| end == *known))
        {
            found.push(path.strip_prefix(root).unwrap_or(&path).to_owned());
        }
    }
}

#[test]
fn no_source_names_a_path_outside_the_repository() {
    let root = crate::root();
    let mut files = Vec::new();
    sources(&root, &root, &mut files);
    assert!(files.len() > 500, "{} files", files.len());
    let mut wrong = Vec::new();
    for file in files {
        // The folder of facts beside some checkouts; spelled so that this file passes.
        let beside = ["..", "shared"].join("/");
        let text = std::fs::read_to_string(root.join(&file)).unwrap();
        for outside in outside_paths(&file, &text) {
            wrong.push(format!(
                "{}:{}: {}",
                file.display(),
                outside.line,
                outside.path
            ));
        }
        if text.contains(&beside) {
            wrong.push(format!("{}: {beside}", file.display()));
        }
    }
    // The examples below.
    wrong.retain(|place| !place.starts_with("xtask/src/standalone.rs:"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_path_that_leaves_its_crate_but_not_the_repository_is_fine() {
    let file = Path::new("crates/show/tests/corpus.rs");
    let text = r#"here.join("../testkit/corpus")"#;
    assert_eq!(outside_paths(file, text), []);
    let text = r#"include_str!("../../../docs/sql.md")"#;
    assert_eq!(outside_paths(file, text), []);
}

#[test]
fn a_path_that_leaves_the_repository_is_found() {
    let outside = |file: &str, text: &str| {
        let found = outside_paths(Path::new(file), text);
        found
            .into_iter()
            .map(|found| found.path)
            .collect::<Vec<_>>()
    };
    let corpus = r#"let beside = here.join("../../../facts/corpus");"#;
    assert_eq!(
        outside("crates/testkit/src/corpus.rs", corpus),
        ["../../../facts/corpus"]
    );
    let task = r#"crate::root().join("../facts/bench.py")"#;
    assert_eq!(outside("xtask/src/truth.rs", task), ["../facts/bench.py"]);
    let import = r#"import x from "../../../facts/x.mjs";"#;
    assert_eq!(
        outside("tests/page/run.mjs", import),
        ["../../../facts/x.mjs"]
    );
}
