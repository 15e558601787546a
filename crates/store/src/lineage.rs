//! The lineage file of an older cloner, kept up for those who have one.

use std::path::Path;

use crate::atomic_write::WriteRoots;
use crate::error::StoreError;

/// A clone as that file tells it.
#[derive(Clone, Debug)]
pub struct LineageClone<'a> {
    /// When, as RFC 3339.
    pub at: &'a str,
    /// The new session and its file.
    pub target: (&'a str, &'a Path),
    /// The session it was made of and its file.
    pub source: (&'a str, &'a Path),
    /// How many percent of the tool calls went.
    pub tools: u8,
    /// How many percent of the thinking went.
    pub thinking: u8,
}

/// The name of the file in a config folder.
pub const NAME: &str = "clone-lineage.log";

/// Adds a clone to the file if there is one; says whether there was.
pub fn add(config: &Path, clone: &LineageClone<'_>) -> Result<bool, StoreError> {
    let path = config.join(NAME);
    if !path.is_file() {
        return Ok(false);
    }
    let place = WriteRoots::open([config])?.place(&path)?;
    place.append(block(clone).as_bytes())?;
    Ok(true)
}

fn block(clone: &LineageClone<'_>) -> String {
    let named = |what: &str, (id, path): (&str, &Path)| {
        format!("  {what}: {id}\n    path: {}\n", path.display())
    };
    format!(
        "[{}]\n{}{}  OPTIONS: toolRemoval={}% thinkingRemoval={}%\n---\n",
        clone.at,
        named("TARGET", clone.target),
        named("SOURCE", clone.source),
        clone.tools,
        clone.thinking
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_file_is_added_to_only_if_it_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let clone = LineageClone {
            at: "2026-01-05T12:00:00.000Z",
            target: ("new", Path::new("/c/new.jsonl")),
            source: ("old", Path::new("/c/old.jsonl")),
            tools: 75,
            thinking: 100,
        };
        assert!(!add(dir.path(), &clone).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        let path = dir.path().join(NAME);
        fs::write(&path, "---\n").unwrap();
        assert!(add(dir.path(), &clone).unwrap());
        let expected = "---\n[2026-01-05T12:00:00.000Z]\n  TARGET: new\n    path: /c/new.jsonl\n  SOURCE: old\n    path: /c/old.jsonl\n  OPTIONS: toolRemoval=75% thinkingRemoval=100%\n---\n";
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    }
}
