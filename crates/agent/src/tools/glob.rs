//! Glob: files by their names.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use globset::{GlobBuilder, GlobMatcher};
use ignore::WalkBuilder;
use serde_json::{Value, json};

use super::{object, str_of, text};
use crate::file;
use crate::tool::{BuiltinTool, ToolCallRequest, ToolContext, ToolOutcome};

/// Files that are listed.
const MOST: usize = 100;

/// Files of a folder by their names from there, without those that git ignores; at most so many.
pub fn listed(root: &Path, most: usize) -> Vec<String> {
    let end = Instant::now() + PATIENCE;
    let files = WalkBuilder::new(root).build().flatten().filter(|entry| {
        let kind = entry.file_type();
        kind.is_some_and(|kind| kind.is_file())
    });
    let mut names: Vec<String> = files
        .take_while(|_| Instant::now() < end)
        .take(most)
        .filter_map(|entry| {
            let inside = entry.path().strip_prefix(root).ok()?;
            inside.to_str().map(str::to_owned)
        })
        .collect();
    names.sort();
    names
}

/// A folder may be the whole disk.
const PATIENCE: Duration = Duration::from_secs(30);

/// The tool.
#[derive(Debug)]
pub struct GlobTool;

impl BuiltinTool for GlobTool {
    fn name(&self) -> &'static str {
        "Glob"
    }

    fn description(&self) -> String {
        format!(
            "Finds files by a pattern of their path, such as `**/*.rs` or `src/**/*.{{ts,tsx}}`. \
             Gives at most {MOST} paths, those changed longest ago first; files that git ignores \
             are found too. To look inside files use Grep."
        )
    }

    fn schema(&self) -> Value {
        object([
            ("pattern*", text("The pattern")),
            (
                "path",
                text("The folder to look in; the working directory unless given"),
            ),
        ])
    }

    fn only_reads(&self, _: &Value) -> bool {
        true
    }

    fn run(&self, call: &ToolCallRequest, scene: &ToolContext<'_>) -> ToolOutcome {
        let began = Instant::now();
        let (root, pattern) = place(&call.input, &scene.cwd, scene.host.home());
        if !root.is_dir() {
            let what = if root.exists() {
                format!("Path is not a directory: {}", root.display())
            } else {
                format!(
                    "Directory does not exist: {}. Note: your current working directory is {}.",
                    root.display(),
                    scene.cwd.display()
                )
            };
            return ToolOutcome::refused(what);
        }
        let matcher = GlobBuilder::new(&pattern)
            .literal_separator(true)
            .empty_alternates(true)
            .build();
        let matcher = match matcher {
            Ok(glob) => glob.compile_matcher(),
            Err(error) => return ToolOutcome::refused(format!("Invalid glob pattern: {error}")),
        };
        let found = look(&root, &matcher, began + PATIENCE, scene);
        tell(found, began, scene)
    }
}

/// The folder that a call looks into, whether its path or its pattern says so; what is left of
/// the pattern.
pub fn place(input: &Value, cwd: &Path, home: &Path) -> (PathBuf, String) {
    let root = match input.get("path").and_then(Value::as_str) {
        Some(path) => file::absolute(path, cwd, home),
        None => cwd.to_owned(),
    };
    parted(root, str_of(input, "pattern"))
}

/// The folder of an absolute pattern, and what is left of it; a pattern without a slash means
/// any depth, as it does to `rg`.
fn parted(root: PathBuf, pattern: &str) -> (PathBuf, String) {
    let special = |part: &str| part.contains(['*', '?', '[', '{']);
    let (mut folder, mut rest) = match pattern.starts_with('/') {
        true => (PathBuf::from("/"), Vec::new()),
        false => (root, Vec::new()),
    };
    let parts: Vec<&str> = pattern
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    let last = parts.len().saturating_sub(1);
    for (at, part) in parts.iter().enumerate() {
        match *part {
            ".." if rest.is_empty() => drop(folder.pop()),
            part if rest.is_empty() && at < last && !special(part) => folder.push(part),
            part => rest.push(part),
        }
    }
    let rest = rest.join("/");
    match parts.len() {
        1 => (folder, format!("**/{rest}")),
        _ => (folder, rest),
    }
}

#[derive(Default)]
struct GlobMatches {
    /// Those changed longest ago; the newest of them on top.
    oldest: BinaryHeap<(SystemTime, Reverse<PathBuf>)>,
    total: usize,
    is_complete: bool,
}

fn look(root: &Path, matcher: &GlobMatcher, end: Instant, scene: &ToolContext<'_>) -> GlobMatches {
    let mut found = GlobMatches {
        is_complete: true,
        ..GlobMatches::default()
    };
    let walk = WalkBuilder::new(root).standard_filters(false).build();
    for entry in walk {
        if scene.stop.is_told() || Instant::now() > end {
            found.is_complete = false;
            break;
        }
        // Folders that cannot be read are not there for us.
        let Ok(entry) = entry else { continue };
        if entry.file_type().is_none_or(|kind| kind.is_dir()) {
            continue;
        }
        let inside = entry.path().strip_prefix(root).unwrap_or(entry.path());
        if !matcher.is_match(inside) || scene.host.hides(entry.path()) {
            continue;
        }
        let changed = entry.metadata().ok().and_then(|it| it.modified().ok());
        let changed = changed.unwrap_or(SystemTime::UNIX_EPOCH);
        found.total += 1;
        found.oldest.push((changed, Reverse(entry.into_path())));
        if found.oldest.len() > MOST {
            found.oldest.pop();
        }
    }
    found
}

fn tell(found: GlobMatches, began: Instant, scene: &ToolContext<'_>) -> ToolOutcome {
    let mut files: Vec<(SystemTime, PathBuf)> = found
        .oldest
        .into_iter()
        .map(|(changed, Reverse(path))| (changed, path))
        .collect();
    files.sort();
    let names: Vec<String> = files
        .iter()
        .map(|(_, path)| file::relative(path, &scene.cwd))
        .collect();
    let truncated = found.total > names.len() || !found.is_complete;
    let mut text = match names.is_empty() {
        true => "No files found".to_owned(),
        false => names.join("\n"),
    };
    if truncated {
        text += &match found.is_complete {
            true => format!(
                "\n(Results are truncated: {} of {} files. Consider using a more specific path or pattern.)",
                names.len(),
                found.total
            ),
            false => "\n(The search took too long and was ended. Consider using a more specific path or pattern.)".to_owned(),
        };
    }
    let result = json!({
        "filenames": names, "durationMs": began.elapsed().as_millis() as u64,
        "numFiles": names.len(), "truncated": truncated, "totalMatches": found.total,
        "countIsComplete": found.is_complete,
    });
    ToolOutcome::done(text, result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_may_name_its_folder() {
        let part = |pattern| {
            let (root, rest) = parted(PathBuf::from("/r"), pattern);
            format!("{} {rest}", root.display())
        };
        assert_eq!(part("*.rs"), "/r **/*.rs");
        assert_eq!(part("src/*.rs"), "/r/src *.rs");
        assert_eq!(part("/a/b/**/*.rs"), "/a/b **/*.rs");
        assert_eq!(part("./a/{b,c}/d"), "/r/a {b,c}/d");
        assert_eq!(part("../x/y"), "/x y");
    }
}
