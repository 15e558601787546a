//! The files that git knows, read as text, and which of them are tests.

use std::path::Path;
use std::process::Command;

/// One file of the repository.
pub(super) struct SourceFile {
    /// Relative to the repository, with `/`.
    pub path: String,
    pub text: String,
}

/// Endings of files that the checks read.
const ENDINGS: &[&str] = &[
    "rs", "toml", "md", "txt", "svelte", "ts", "mjs", "cjs", "py",
];

/// Folders that hold data instead of sources.
const DATA_FOLDERS: &[&str] = &["/corpus/", "/fixtures/", "/dist/", "/data/"];

/// Reads every source and document that git tracks.
pub(super) fn read(root: &Path) -> Result<Vec<SourceFile>, String> {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root)
        .output()
        .map_err(|error| format!("git: {error}"))?;
    if !listed.status.success() {
        return Err("git ls-files failed: tidy reads the files that git tracks".into());
    }
    let listed = String::from_utf8_lossy(&listed.stdout);
    let paths = listed.split('\0').filter(|path| is_read(path));
    // A file that is deleted in the working tree is still listed.
    let existing = paths.filter_map(|path| {
        let text = std::fs::read_to_string(root.join(path)).ok()?;
        let path = path.to_owned();
        Some(SourceFile { path, text })
    });
    Ok(existing.collect())
}

fn is_read(path: &str) -> bool {
    let ending = path.rsplit('.').next().unwrap_or_default();
    ENDINGS.contains(&ending) && !DATA_FOLDERS.iter().any(|folder| path.contains(folder))
}

impl SourceFile {
    /// The crate below `crates/` that the file belongs to.
    pub fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// Whether this is a Rust source of a crate, and no test, benchmark or example.
    pub fn is_product_source(&self) -> bool {
        let is_source = self.path.starts_with("crates/") && self.path.ends_with(".rs");
        let name = self.path.rsplit('/').next().unwrap_or_default();
        let is_test_file = name == "tests.rs" || name.ends_with("_tests.rs");
        is_source && self.path.contains("/src/") && !self.path.contains("/tests/") && !is_test_file
    }

    /// The lines of code with their numbers, up to the module of tests: without comments and
    /// attributes.
    pub fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate();
        let code = lines.take_while(|(_, line)| line.trim_end() != "#[cfg(test)]");
        code.map(|(index, line)| (index + 1, line.trim()))
            .filter(|(_, line)| !line.starts_with("//") && !line.starts_with("#["))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_ends_where_the_tests_of_a_file_begin_and_has_no_comments() {
        let text = "//! About.\nuse a;\n// Why.\nfn x() {}\n#[cfg(test)]\nmod tests {}\n";
        let file = SourceFile {
            path: "crates/a/src/b.rs".into(),
            text: text.into(),
        };
        let lines: Vec<_> = file.code_lines().collect();
        assert_eq!(lines, [(2, "use a;"), (4, "fn x() {}")]);
        assert_eq!(file.crate_name(), Some("a"));
    }
}
