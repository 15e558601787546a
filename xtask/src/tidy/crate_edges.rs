//! Crates depend only on the crates below them.

use super::{SourceTree, Violation};

/// Each crate with the crates of ours that it may depend on. `testkit` may be used by the tests of
/// every crate.
const ALLOWED: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("net", &[]),
    ("testkit", &[]),
    ("store", &["model"]),
    ("show", &["model"]),
    ("ask", &["net"]),
    ("index", &["model", "store"]),
    ("send", &["model", "net", "store"]),
    ("live", &["model", "show", "store"]),
    ("serve", &["live", "model", "show"]),
    ("agent", &["ask", "model", "net", "show", "store"]),
    ("mcp", &["agent", "net"]),
    ("tui", &["agent", "live", "model", "show", "store"]),
    (
        "cli",
        &[
            "agent", "ask", "index", "live", "mcp", "model", "net", "send", "serve", "show",
            "store", "tui",
        ],
    ),
];

pub(super) fn check(tree: &SourceTree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in &tree.files {
        let name = file.path.strip_prefix("crates/");
        let Some(name) = name.and_then(|path| path.strip_suffix("/Cargo.toml")) else {
            continue;
        };
        for (line, used) in dependencies(&file.text) {
            let allowed = ALLOWED.iter().find(|(of, _)| *of == name);
            if !allowed.is_some_and(|(_, below)| below.contains(&used)) {
                found.push(Violation {
                    check: "crate-edges",
                    file: file.path.clone(),
                    line,
                    what: format!("`{name}` may not depend on `{used}`"),
                });
            }
        }
    }
    found
}

/// The crates of ours below `[dependencies]`, with their lines.
fn dependencies(manifest: &str) -> Vec<(usize, &str)> {
    let mut section = "";
    let mut found = Vec::new();
    for (index, line) in manifest.lines().enumerate() {
        if line.starts_with('[') {
            section = line;
        }
        // Sections of a platform count as well; those of tests do not.
        if section.ends_with("dependencies]") && !section.contains("dev-") {
            let name = line.strip_prefix("unspool-");
            let end = |name: &str| name.find(['.', ' ', '=']).unwrap_or(name.len());
            found.extend(name.map(|name| (index + 1, &name[..end(name)])));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::source_files::SourceFile;
    use super::*;

    #[test]
    fn an_arrow_that_points_up_is_found() {
        let manifest = "[dependencies]\nunspool-cli.workspace = true\nunspool-model.workspace = true\n\
                        [dev-dependencies]\nunspool-testkit.workspace = true\n";
        let tree = SourceTree {
            files: vec![SourceFile {
                path: "crates/store/Cargo.toml".into(),
                text: manifest.into(),
            }],
        };
        let found = check(&tree);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].what, "`store` may not depend on `cli`");
    }
}
