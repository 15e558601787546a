//! Every test that `docs/rules.md` and `docs/security.md` name exists.

use std::collections::BTreeSet;

use super::{SourceTree, Violation};

const DOCUMENTS: &[&str] = &["docs/rules.md", "docs/security.md"];

pub(super) fn check(tree: &SourceTree) -> Vec<Violation> {
    let functions = functions(tree);
    let mut found = Vec::new();
    for document in DOCUMENTS.iter().filter_map(|path| tree.file(path)) {
        for (index, line) in document.text.lines().enumerate() {
            for name in quoted(line).filter(|name| is_sentence(name)) {
                if !functions.contains(name) {
                    found.push(Violation {
                        check: "rule-tests",
                        file: document.path.clone(),
                        line: index + 1,
                        what: format!("there is no test `{name}`"),
                    });
                }
            }
        }
    }
    found
}

/// The names of all functions in Rust sources.
fn functions(tree: &SourceTree) -> BTreeSet<&str> {
    let sources = tree.files.iter().filter(|file| file.path.ends_with(".rs"));
    let lines = sources.flat_map(|file| file.text.lines());
    lines
        .filter_map(|line| {
            let (_, name) = line.split_once("fn ")?;
            name.split(['(', '<']).next()
        })
        .collect()
}

/// What stands between backticks.
pub(super) fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Whether this is a name of several words, as tests have.
fn is_sentence(name: &str) -> bool {
    let is_word = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_';
    name.matches('_').count() >= 3 && name.chars().all(is_word)
}

#[cfg(test)]
mod tests {
    use super::super::source_files::SourceFile;
    use super::*;

    #[test]
    fn a_test_that_does_not_exist_is_found() {
        let file = |path: &str, text: &str| SourceFile {
            path: path.into(),
            text: text.into(),
        };
        let tree = SourceTree {
            files: vec![
                file(
                    "docs/rules.md",
                    "`a_rule_that_holds_well`, `a_rule_that_is_gone`",
                ),
                file("crates/a/tests/it.rs", "fn a_rule_that_holds_well() {}"),
            ],
        };
        let found = check(&tree);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].what, "there is no test `a_rule_that_is_gone`");
    }
}
