//! Every path, command, flag and crate that the documents name exists.
//!
//! Looks at what stands between backticks, in code blocks of shell commands and behind Markdown
//! links: paths of the repository, `unspool COMMAND`, `cargo xtask TASK`, flags of both, and
//! `crate::module::name`.

use std::collections::BTreeSet;

use super::rule_tests::quoted;
use super::{SourceTree, Violation};

/// Documents that tell of the past name what is gone.
const HISTORY: &[&str] = &["CHANGELOG.md", "docs/decisions.md"];

/// Flags of other programs that documents name.
const FOREIGN_FLAGS: &[&str] = &[
    "--release",
    "--workspace",
    "--test",
    "--lib",
    "--path",
    "--ignored",
    "--no-run",
    "--output",
    "--no-index",
    "--no-pager",
    "--exec",
    "--pre",
    "--headless",
    "--continue",
    "--user",
    "--package",
];

/// Parts of paths that are made by tools or hold data.
const UNREAD: &[&str] = &["/dist", "/data/", "corpus", "fixtures", "fuzz/artifacts"];

pub(super) fn check(tree: &SourceTree) -> Vec<Violation> {
    let names = KnownNames::of(tree);
    let mut found = Vec::new();
    for document in &tree.files {
        let path = document.path.as_str();
        let is_read = path.ends_with(".md") && !path.contains("/src/");
        if !is_read || HISTORY.contains(&path) {
            continue;
        }
        let mut in_block = false;
        for (index, line) in document.text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                in_block = !in_block;
                continue;
            }
            let mut unknown: Vec<String> = Vec::new();
            match in_block {
                true => unknown.extend(names.unknown_in_command(line.trim_start())),
                false => {
                    for name in quoted(line) {
                        unknown.extend(names.unknown(name));
                    }
                    unknown.extend(links(line).filter_map(|link| names.dead_link(path, link)));
                }
            }
            found.extend(unknown.into_iter().map(|what| Violation {
                check: "document-names",
                file: document.path.clone(),
                line: index + 1,
                what,
            }));
        }
    }
    found
}

/// What the tree has: paths, words of each crate, commands and tasks.
struct KnownNames<'t> {
    tree: &'t SourceTree,
    /// Every path that git knows, files and folders.
    paths: BTreeSet<String>,
    /// Crate and word, for every word in its sources and every module.
    words: BTreeSet<(&'t str, &'t str)>,
    crates: BTreeSet<&'t str>,
    commands: BTreeSet<String>,
    tasks: BTreeSet<&'t str>,
}

impl<'t> KnownNames<'t> {
    fn of(tree: &'t SourceTree) -> KnownNames<'t> {
        let mut names = KnownNames {
            tree,
            paths: BTreeSet::new(),
            words: BTreeSet::new(),
            crates: BTreeSet::new(),
            commands: BTreeSet::new(),
            tasks: BTreeSet::new(),
        };
        for file in &tree.files {
            for (at, _) in file.path.match_indices('/') {
                names.paths.insert(file.path[..at].to_owned());
            }
            names.paths.insert(file.path.clone());
            if !file.path.ends_with(".rs") {
                continue;
            }
            let owner = match file.crate_name() {
                Some(name) => {
                    names.crates.insert(name);
                    name
                }
                None => file.path.split('/').next().unwrap_or_default(),
            };
            let is_word = |char: char| char.is_alphanumeric() || char == '_';
            let words = file.text.split(|char| !is_word(char));
            names.words.extend(words.map(|word| (owner, word)));
            let modules = file
                .path
                .split('/')
                .map(|part| part.trim_end_matches(".rs"));
            names.words.extend(modules.map(|module| (owner, module)));
        }
        let commands = tree.file("crates/cli/src/args.rs");
        names.commands = commands
            .map(|file| variants(&file.text))
            .unwrap_or_default();
        let tasks = tree.file("xtask/src/main.rs").map(|file| &file.text);
        let tasks = tasks.into_iter().flat_map(|text| text.lines());
        let tasks = tasks.filter_map(|line| line.trim().strip_prefix("name: \""));
        names.tasks = tasks.filter_map(|line| line.split('"').next()).collect();
        names
    }

    /// What is unknown in a name between backticks.
    fn unknown(&self, name: &str) -> Vec<String> {
        if name.starts_with("unspool ") || name.starts_with("cargo xtask ") {
            return self.unknown_in_command(name);
        }
        if name.starts_with("--") {
            return self.unknown_flags(name);
        }
        if let Some(path) = self.missing_path(name) {
            return vec![format!("there is no file `{path}`")];
        }
        self.unknown_item(name).into_iter().collect()
    }

    /// Paths that begin with a folder of the repository or with the name of a crate.
    fn missing_path(&self, name: &str) -> Option<String> {
        let is_path = name
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || "/._-".contains(char));
        let first = name.split('/').next()?;
        if !is_path || !name.contains('/') || name.ends_with("/x") {
            return None;
        }
        let name = name.trim_end_matches('/');
        let full = match first {
            "crates" | "docs" | "xtask" | "web" | "tests" | "fuzz" => name.to_owned(),
            of if self.crates.contains(of) && name.contains("/src/") => format!("crates/{name}"),
            _ => return None,
        };
        // What a build or a tool makes is not tracked, and data is not read.
        let is_unread = UNREAD.iter().any(|part| full.contains(part));
        (!is_unread && !self.paths.contains(&full) && !full.ends_with(".png")).then_some(full)
    }

    /// `crate::module::name` whose words the crate does not have.
    fn unknown_item(&self, name: &str) -> Option<String> {
        let (first, rest) = name.split_once("::")?;
        let first = first.strip_prefix("unspool_").unwrap_or(first);
        if !self.crates.contains(first) {
            return None;
        }
        let is_path = |rest: &str| {
            rest.chars()
                .all(|char| char.is_alphanumeric() || "_:".contains(char))
        };
        let rest = rest
            .split(['(', '{', '<', '!'])
            .next()
            .filter(|rest| is_path(rest))?;
        let mut words = rest.split("::").filter(|word| !word.is_empty());
        let missing = words.find(|word| !self.words.contains(&(first, word)))?;
        Some(format!("`{name}`: there is no `{missing}` in `{first}`"))
    }

    /// `unspool COMMAND` and `cargo xtask TASK` with their flags.
    fn unknown_in_command(&self, line: &str) -> Vec<String> {
        let line = line.split(" #").next().unwrap_or(line);
        let line = line.split(['|', ';', '&']).next().unwrap_or(line);
        let (known, rest, what): (&dyn Fn(&str) -> bool, _, _) = match (
            line.strip_prefix("unspool "),
            line.strip_prefix("cargo xtask "),
        ) {
            (Some(rest), _) => (&|name| self.commands.contains(name), rest, "command"),
            (_, Some(rest)) => (&|name| self.tasks.contains(name), rest, "task"),
            _ => return Vec::new(),
        };
        let mut unknown = self.unknown_flags(rest);
        let name = rest.split_whitespace().next().unwrap_or_default();
        let is_name = !name.is_empty() && name.chars().all(|char| char.is_ascii_lowercase());
        if is_name && name != "help" && !known(name) {
            unknown.push(format!("there is no {what} `{name}`"));
        }
        unknown
    }

    /// Flags that neither the program nor a task has: no field and no text of that name.
    fn unknown_flags(&self, text: &str) -> Vec<String> {
        let words = text.split(|char: char| char.is_whitespace() || "=|,/[]()…".contains(char));
        let flags = words.filter(|word| word.len() > 3 && word.starts_with("--"));
        let unknown = flags.filter(|flag| {
            let field = flag.trim_start_matches('-').replace('-', "_");
            let is_field = ["cli", "xtask"]
                .iter()
                .any(|of| self.words.contains(&(of, &field)));
            let is_flag = flag
                .chars()
                .all(|char| char.is_ascii_lowercase() || char == '-');
            is_flag && !is_field && !FOREIGN_FLAGS.contains(flag) && !self.is_written(flag)
        });
        unknown
            .map(|flag| format!("there is no flag `{flag}`"))
            .collect()
    }

    /// Whether the text of a Rust source has it, as tasks that read their own arguments do.
    fn is_written(&self, flag: &str) -> bool {
        let quoted = format!("\"{flag}\"");
        let long = format!("long = \"{}\"", flag.trim_start_matches('-'));
        let sources = self
            .tree
            .files
            .iter()
            .filter(|file| file.path.ends_with(".rs"));
        sources
            .into_iter()
            .any(|file| file.text.contains(&quoted) || file.text.contains(&long))
    }

    /// A link to a file that is not there.
    fn dead_link(&self, document: &str, link: &str) -> Option<String> {
        let link = link.split('#').next().unwrap_or_default();
        if link.is_empty() || link.contains(':') {
            return None;
        }
        let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
        for part in link.split('/') {
            match part {
                ".." => drop(parts.pop()),
                "." => {}
                part => parts.push(part),
            }
        }
        let path = parts.join("/");
        let is_picture = path.ends_with(".png") || path.ends_with(".svg");
        let is_licence = path.starts_with("LICENSE");
        (!is_picture && !is_licence && !self.paths.contains(&path))
            .then(|| format!("the link leads to `{path}`, which is not there"))
    }
}

/// The variants of `enum Command` as they are typed.
fn variants(text: &str) -> BTreeSet<String> {
    let body = text.split("enum Command").nth(1).unwrap_or_default();
    let body = body.split("\n}").next().unwrap_or_default();
    let lines = body.lines().map(str::trim);
    let variants = lines.filter(|line| line.starts_with(|char: char| char.is_ascii_uppercase()));
    let names = variants.filter_map(|line| line.split(['(', ',', ' ', '{']).next());
    names.map(str::to_ascii_lowercase).collect()
}

/// The targets of Markdown links.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
}

#[cfg(test)]
mod tests {
    use super::super::source_files::SourceFile;
    use super::*;

    fn tree(document: &str) -> SourceTree {
        let file = |path: &str, text: &str| SourceFile {
            path: path.into(),
            text: text.into(),
        };
        SourceTree {
            files: vec![
                file("README.md", document),
                file(
                    "crates/cli/src/args.rs",
                    "enum Command {\n    /// List\n    Ls(LsArgs),\n}\nstruct LsArgs { since: u8 }",
                ),
                file("crates/model/src/log.rs", "pub struct Line;"),
                file("xtask/src/main.rs", "    name: \"test\","),
            ],
        }
    }

    fn told(document: &str) -> Vec<String> {
        let found = check(&tree(document)).into_iter();
        found.map(|violation| violation.what).collect()
    }

    #[test]
    fn what_exists_is_fine() {
        let fine = "`unspool ls --since 7d`, `cargo xtask test`, `model::log::Line`, \
                    `crates/model/src/log.rs`, `model/src/log.rs`, [x](crates/model/src/log.rs)";
        assert_eq!(told(fine), Vec::<String>::new());
    }

    #[test]
    fn what_does_not_exist_is_found() {
        assert_eq!(told("`unspool fly`"), ["there is no command `fly`"]);
        assert_eq!(told("`cargo xtask fly`"), ["there is no task `fly`"]);
        assert_eq!(told("`unspool ls --fly`"), ["there is no flag `--fly`"]);
        assert_eq!(
            told("`model/src/fly.rs`"),
            ["there is no file `crates/model/src/fly.rs`"]
        );
        assert_eq!(told("`model::fly`").len(), 1);
        assert_eq!(told("[x](docs/fly.md)").len(), 1);
        assert_eq!(
            told("```sh\nunspool fly # up\n```"),
            ["there is no command `fly`"]
        );
    }
}
