//! "Yes, and do not ask again": which rules that would add.

use std::path::{Path, PathBuf};

use super::Policy;
use super::bash::{is_never, stripped};
use super::path::Place;
use super::shell::{Part, Word};
use super::written::{self, Failed};
use crate::settings::{Kind, Scope};

/// Programs whose second word says what they do.
const WITH_COMMANDS: &[&str] = &[
    "apt",
    "brew",
    "bun",
    "bundle",
    "cargo",
    "composer",
    "deno",
    "docker",
    "dotnet",
    "gh",
    "git",
    "go",
    "gradle",
    "helm",
    "just",
    "kubectl",
    "make",
    "mix",
    "mvn",
    "npm",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "poetry",
    "rustup",
    "systemctl",
    "terraform",
    "tox",
    "uv",
    "yarn",
];

/// Programs that run what they are given; only the exact command is offered.
const OPEN: &[&str] = &[
    "ash", "awk", "bash", "busybox", "chroot", "curl", "dash", "doas", "env", "eval", "exec",
    "fish", "ksh", "lua", "nc", "ncat", "node", "npx", "parallel", "perl", "php", "pkexec",
    "python", "python3", "rm", "rmdir", "rsync", "ruby", "scp", "sed", "sh", "socat", "source",
    "ssh", "su", "sudo", "tee", "wget", "xargs", "zsh", ".", "dd", "chmod", "chown", "kill",
    "pkill", "killall",
];

/// The rule that would allow a part, if one can.
pub(super) fn for_part(part: &Part) -> Option<String> {
    let words = &part.words[stripped(&part.words)?..];
    let first = words.first()?;
    let is_known = |word: &&Word| word.text().is_some_and(|text| is_plain(&text));
    let name = first.text().filter(|name| is_plain(name))?;
    let base = name.rsplit('/').next().unwrap_or_default();
    if is_never(words) || OPEN.contains(&base) || name.contains('/') {
        let exact: Vec<&str> = words.iter().map(|word| word.raw.as_str()).collect();
        let exact = exact.join(" ");
        // A rule is one line, and a star in it would be any text.
        let can_be = !exact.contains(['*', '\n', '\\']) && !exact.ends_with(":*");
        let assigns = part.assigns.is_empty() && words.iter().all(|word| !word.is_open());
        return (can_be && assigns).then(|| format!("Bash({exact})"));
    }
    let second = words.get(1).filter(is_known).and_then(Word::text);
    match second {
        Some(second) if WITH_COMMANDS.contains(&base) && !second.starts_with('-') => {
            let third = words.get(2).filter(is_known).and_then(Word::text);
            match third {
                Some(script) if second == "run" && !script.starts_with('-') => {
                    Some(format!("Bash({name} run {script}:*)"))
                }
                _ => Some(format!("Bash({name} {second}:*)")),
            }
        }
        _ if WITH_COMMANDS.contains(&base) => None,
        _ => Some(format!("Bash({name}:*)")),
    }
}

fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_./:@%+,-".contains(c))
}

impl Policy {
    /// The rule that would allow changing files in the same folder.
    pub(super) fn always_edit(&self, place: &Place) -> Vec<String> {
        self.always_path("Edit", place.written.parent().unwrap_or(Path::new("/")))
    }

    /// The rule that would allow reading files in the same folder.
    pub(super) fn always_read(&self, place: &Place) -> Vec<String> {
        let folder = match place.written.is_dir() {
            true => place.written.as_path(),
            false => place.written.parent().unwrap_or(Path::new("/")),
        };
        self.always_path("Read", folder)
    }

    fn always_path(&self, tool: &str, folder: &Path) -> Vec<String> {
        let Some(text) = folder.to_str() else {
            return Vec::new();
        };
        // What would be read as a pattern cannot be written as a path; nor is all of a system offered.
        if text.contains(['*', '?', '[', '\\', '!', '(', ')', '\n'])
            || folder.components().count() < 3
        {
            return Vec::new();
        }
        let path = match (
            folder.strip_prefix(&self.root),
            folder.strip_prefix(&self.home),
        ) {
            (Ok(below), _) if below.as_os_str().is_empty() => "/**".to_owned(),
            (Ok(below), _) => format!("/{}/**", below.display()),
            (_, Ok(below)) if below.as_os_str().is_empty() => return Vec::new(),
            (_, Ok(below)) => format!("~/{}/**", below.display()),
            _ => format!("/{text}/**"),
        };
        vec![format!("{tool}({path})")]
    }
}

/// Adds rules to `.claude/settings.local.json` at the top of the working tree, and keeps every
/// other byte of it. Returns the file.
pub fn store(rules: &[String], project: &Path) -> Result<PathBuf, Failed> {
    let path = written::file(Scope::Local, Path::new(""), project);
    let path = path.ok_or("there is no such file")?;
    written::change(&path, Scope::Local, |old| {
        written::added(old, Kind::Allow, rules)
    })?;
    Ok(path)
}
