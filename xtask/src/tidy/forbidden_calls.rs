//! Files, environment, clock and printing only where the architecture allows them.

use super::{SourceTree, Violation};

/// A kind of call, how it looks in code, and the crates that may make it.
struct ForbiddenCall {
    what: &'static str,
    patterns: &'static [&'static str],
    allowed: &'static [&'static str],
}

const CALLS: &[ForbiddenCall] = &[
    ForbiddenCall {
        what: "opens or changes files",
        patterns: &[
            "std::fs",
            " fs::",
            "(fs::",
            "!fs::",
            "File::open",
            "File::create",
            "OpenOptions::new",
        ],
        allowed: &["store", "testkit"],
    },
    ForbiddenCall {
        what: "reads the environment",
        patterns: &[
            "env::var",
            "env::current_dir",
            "env::temp_dir",
            "env::home_dir",
        ],
        allowed: &["testkit"],
    },
    ForbiddenCall {
        what: "asks the clock",
        patterns: &["SystemTime::now", "Timestamp::now", "Zoned::now"],
        allowed: &["cli", "testkit"],
    },
    ForbiddenCall {
        what: "prints",
        patterns: &["println!", "print!(", "eprint!("],
        allowed: &[],
    },
    ForbiddenCall {
        what: "decides for itself which turns belong to the main thread",
        patterns: &[".thread == 0", ".thread != 0"],
        allowed: &["model"],
    },
    ForbiddenCall {
        what: "ends the process",
        patterns: &["process::exit", "process::abort"],
        allowed: &[],
    },
];

pub(super) fn check(tree: &SourceTree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.product_sources() {
        let Some(name) = file.crate_name() else {
            continue;
        };
        let calls = CALLS.iter().filter(|call| !call.allowed.contains(&name));
        let calls: Vec<&ForbiddenCall> = calls.collect();
        for (line, code) in file.code_lines() {
            for call in &calls {
                if call.patterns.iter().any(|pattern| code.contains(pattern)) {
                    found.push(Violation {
                        check: "forbidden-calls",
                        file: file.path.clone(),
                        line,
                        what: format!("`{name}` {}", call.what),
                    });
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::source_files::SourceFile;
    use super::*;

    #[test]
    fn a_file_opened_outside_store_is_found_and_inside_it_is_not() {
        let file = |path: &str| SourceFile {
            path: path.into(),
            text: "fn x() { fs::read(path) }\n".into(),
        };
        let tree = SourceTree {
            files: vec![file("crates/show/src/a.rs"), file("crates/store/src/a.rs")],
        };
        let found = check(&tree);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].file, "crates/show/src/a.rs");
    }
}
