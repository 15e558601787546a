//! Which folders of Claude Code to look into.
//!
//! The environment is an argument: only the program itself reads it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::read_folder;

/// The folders that hold `projects`, in the order they were given, each once.
///
/// Flags win over `$CLAUDE_CONFIG_DIR` (a list with commas), which wins over `~/.claude` and,
/// if it exists, `~/.config/claude`.
pub fn config_dirs(
    flags: &[PathBuf],
    variable: Option<&OsStr>,
    home: Option<&Path>,
) -> Vec<PathBuf> {
    let mut dirs = flags.to_vec();
    if dirs.is_empty() {
        dirs = variable.map_or_else(Vec::new, |value| listed(value, home));
    }
    if dirs.is_empty() {
        dirs = home.map_or_else(Vec::new, usual);
    }
    let mut once = Vec::new();
    for dir in dirs {
        if !once.contains(&dir) {
            once.push(dir);
        }
    }
    once
}

/// Whether a folder that somebody named can be looked into.
pub fn check(dir: &Path) -> Result<(), Error> {
    match read_folder::entries(dir) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(Error::io(dir, error))
        }
        Err(_) => Err(Error::MissingDir { path: dir.into() }),
    }
}

fn usual(home: &Path) -> Vec<PathBuf> {
    let second = home.join(".config").join("claude");
    let mut dirs = vec![home.join(".claude")];
    dirs.extend(second.is_dir().then_some(second));
    dirs
}

fn listed(value: &OsStr, home: Option<&Path>) -> Vec<PathBuf> {
    let Some(text) = value.to_str() else {
        return vec![value.into()];
    };
    // A folder may have a comma in its name.
    if text.contains(',') && Path::new(text).is_dir() {
        return vec![text.into()];
    }
    let parts = text.split(',').map(str::trim);
    parts
        .filter(|part| !part.is_empty())
        .map(|part| expanded(part, home))
        .collect()
}

/// The shell expands `~` only at the start of a list.
fn expanded(part: &str, home: Option<&Path>) -> PathBuf {
    match (part.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => part.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_win_over_the_variable_and_that_over_home() {
        let flags = [PathBuf::from("/a"), PathBuf::from("/b"), "/a".into()];
        let variable = OsStr::new("/c, /d,,~/e");
        let home = Path::new("/nowhere/home");
        assert_eq!(
            config_dirs(&flags, Some(variable), Some(home)),
            [PathBuf::from("/a"), "/b".into()]
        );
        assert_eq!(
            config_dirs(&[], Some(variable), Some(home)),
            [PathBuf::from("/c"), "/d".into(), "/nowhere/home/e".into()]
        );
        assert_eq!(
            config_dirs(&[], Some(OsStr::new("")), Some(home)),
            [PathBuf::from("/nowhere/home/.claude")]
        );
        assert_eq!(config_dirs(&[], None, None), Vec::<PathBuf>::new());
    }

    #[test]
    fn the_second_usual_folder_counts_if_it_exists() {
        let home = tempfile::tempdir().unwrap();
        let second = home.path().join(".config/claude");
        std::fs::create_dir_all(&second).unwrap();
        assert_eq!(
            config_dirs(&[], None, Some(home.path())),
            [home.path().join(".claude"), second]
        );
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = check(Path::new("/nowhere/at/all")).unwrap_err();
        assert_eq!(error.to_string(), "there is no folder `/nowhere/at/all`");
    }
}
