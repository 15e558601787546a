//! "Yes, and do not ask again": which rules that would add, and how they are written down.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use unspool_model::jsonc::{self, Layout};

use super::Policy;
use super::bash::{is_never, stripped};
use super::path::Place;
use super::shell::{Part, Word};
use crate::settings;

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

/// Why rules could not be written down.
pub type Failed = String;

/// Adds rules to `.claude/settings.local.json` at the top of the working tree, and keeps every
/// other byte of it. Returns the file.
pub fn store(rules: &[String], project: &Path) -> Result<PathBuf, Failed> {
    let folder = settings::root(project).join(".claude");
    let path = folder.join("settings.local.json");
    let told = |error: io::Error| format!("{}: {error}", path.display());
    // Through a link, another file than this would be changed.
    for part in [&folder, &path] {
        if part
            .symlink_metadata()
            .is_ok_and(|about| about.is_symlink())
        {
            return Err(format!(
                "{}: this is a link, and is not written through",
                part.display()
            ));
        }
    }
    let old = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(told(error)),
    };
    let new = added(&old, rules).map_err(|why| format!("{}: {why}", path.display()))?;
    if new == old {
        return Ok(path);
    }
    fs::create_dir_all(&folder).map_err(told)?;
    write(&folder, &path, &new).map_err(told)?;
    Ok(path)
}

/// A whole new file in the place of the old, with the rights the old one had.
fn write(folder: &Path, path: &Path, text: &str) -> io::Result<()> {
    let mode = fs::metadata(path).map_or(0o600, |about| about.permissions().mode() & 0o777);
    let temp = folder.join(format!(".settings.local.{}.tmp", std::process::id()));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&temp)?;
    let done = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&temp, path));
    if done.is_err() {
        let _ = fs::remove_file(&temp);
    }
    done
}

/// The text of a settings file with more rules that allow.
fn added(old: &str, rules: &[String]) -> Result<String, String> {
    let mut text = match old.trim().is_empty() {
        true => "{}\n".to_owned(),
        false => old.to_owned(),
    };
    let start = text.clone();
    for rule in rules {
        let wrong = |wrong: jsonc::Wrong| format!("line {}: {}", wrong.line, wrong.why);
        let root = jsonc::parse(&text).map_err(wrong)?;
        let layout = Layout::of(&text, &root);
        if root.members().is_none() {
            return Err("settings should be an object".to_owned());
        }
        let value: Value = rule.as_str().into();
        let Some(permissions) = root.get("permissions") else {
            let all = json!({ "allow": [rule] });
            text = jsonc::insert(&text, &root, &layout, Some("permissions"), &all);
            continue;
        };
        if permissions.members().is_none() {
            return Err("permissions should be an object".to_owned());
        }
        let Some(allow) = permissions.get("allow") else {
            text = jsonc::insert(&text, permissions, &layout, Some("allow"), &json!([rule]));
            continue;
        };
        let Some(items) = allow.items() else {
            return Err("permissions.allow should be a list".to_owned());
        };
        if !items.iter().any(|item| item.text() == Some(rule)) {
            text = jsonc::insert(&text, allow, &layout, None, &value);
        }
    }
    // Nothing to add: nothing is written, not even an empty object.
    if text == start {
        return Ok(old.to_owned());
    }
    Ok(text)
}
