//! Which folders of Claude Code to look into.
//!
//! The environment is an argument: only the program itself reads it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::error::StoreError;
use crate::read_folder;

/// The home folder: what `$HOME` names, or else the account's own. Only an absolute path is one:
/// anything else would be another folder in each working directory, chosen by whoever filled that.
pub fn home(
    variable: Option<&OsStr>,
    account: impl FnOnce() -> Option<PathBuf>,
) -> Option<PathBuf> {
    let named = variable
        .map(PathBuf::from)
        .filter(|home| home.is_absolute());
    named.or_else(|| account().filter(|home| home.is_absolute()))
}

/// The folders that hold `projects`, in the order they were given, each once.
///
/// Flags win over `$CLAUDE_CONFIG_DIR` (a list with commas), which wins over `~/.claude` and,
/// if it exists, `~/.config/claude`. Who names the `projects` in such a folder means the folder. A relative folder in the variable is refused: settings would
/// come from wherever somebody stands.
pub fn config_dirs(
    flags: &[PathBuf],
    variable: Option<&OsStr>,
    home: Option<&Path>,
) -> Result<Vec<PathBuf>, StoreError> {
    let mut dirs = flags.to_vec();
    if dirs.is_empty() {
        dirs = variable.map_or_else(Vec::new, |value| listed(value, home));
        if let Some(relative) = dirs.iter().find(|dir| !dir.is_absolute()) {
            return Err(StoreError::Refused {
                what: format!(
                    "CLAUDE_CONFIG_DIR is `{}`, which is not an absolute path",
                    relative.display()
                ),
                hint: "set CLAUDE_CONFIG_DIR to an absolute path, or use `--claude-dir DIR`",
            });
        }
    }
    if dirs.is_empty() {
        dirs = home.map_or_else(Vec::new, usual);
    }
    let mut once = Vec::new();
    for dir in dirs.into_iter().map(above_projects) {
        if !once.contains(&dir) {
            once.push(dir);
        }
    }
    Ok(once)
}

/// The config folder, where somebody named the `projects` in it.
fn above_projects(dir: PathBuf) -> PathBuf {
    let is_inner = dir.file_name() == Some(OsStr::new("projects"))
        // A config folder may be called so, too.
        && !dir.join("projects").is_dir();
    let above = dir.parent().filter(|above| *above != Path::new(""));
    match above {
        Some(above) if is_inner => above.to_owned(),
        None if is_inner => PathBuf::from("."),
        _ => dir,
    }
}

/// Whether a folder that somebody named can be looked into.
pub fn check(dir: &Path) -> Result<(), StoreError> {
    match read_folder::entries(dir) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(StoreError::io(dir, error))
        }
        Err(_) => Err(StoreError::MissingDir { path: dir.into() }),
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
    fn a_home_is_absolute_or_the_accounts_or_there_is_none() {
        let account = || Some(PathBuf::from("/home/me"));
        let of = |value: Option<&str>| home(value.map(OsStr::new), account);
        assert_eq!(of(Some("/elsewhere")), Some("/elsewhere".into()));
        for none in [
            None,
            Some(""),
            Some("."),
            Some("../x"),
            Some("relative/dir"),
            Some("~"),
        ] {
            assert_eq!(of(none), Some("/home/me".into()), "{none:?}");
        }
        assert_eq!(home(None, || None), None);
        assert_eq!(home(Some(OsStr::new(".")), || Some("".into())), None);
        assert_eq!(home(None, || Some("x".into())), None);
    }

    #[test]
    fn a_relative_folder_in_the_variable_is_refused_and_one_on_the_command_line_is_not() {
        for value in [".claude", ".", "/a,b", "/a,~/b", "~", "../x,/a"] {
            let refused = config_dirs(&[], Some(OsStr::new(value)), None);
            let told = refused.unwrap_err().to_string();
            assert!(told.contains("CLAUDE_CONFIG_DIR"), "{told}");
        }
        let flags = [PathBuf::from("x")];
        assert_eq!(config_dirs(&flags, None, None).unwrap(), flags);
    }

    #[test]
    fn flags_win_over_the_variable_and_that_over_home() {
        let flags = [PathBuf::from("/a"), PathBuf::from("/b"), "/a".into()];
        let variable = OsStr::new("/c, /d,,~/e");
        let home = Path::new("/nowhere/home");
        assert_eq!(
            config_dirs(&flags, Some(variable), Some(home)).unwrap(),
            [PathBuf::from("/a"), "/b".into()]
        );
        assert_eq!(
            config_dirs(&[], Some(variable), Some(home)).unwrap(),
            [PathBuf::from("/c"), "/d".into(), "/nowhere/home/e".into()]
        );
        assert_eq!(
            config_dirs(&[], Some(OsStr::new("")), Some(home)).unwrap(),
            [PathBuf::from("/nowhere/home/.claude")]
        );
        assert_eq!(config_dirs(&[], None, None).unwrap(), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_folder_may_be_named_by_the_projects_in_it() {
        let home = tempfile::tempdir().unwrap();
        let config = home.path().join("config");
        std::fs::create_dir_all(config.join("projects")).unwrap();
        let odd = home.path().join("projects");
        std::fs::create_dir_all(odd.join("projects")).unwrap();
        let named = config.join("projects");
        let list = format!(
            "{}/,{},{}",
            named.display(),
            odd.display(),
            config.display()
        );
        let dirs = config_dirs(&[], Some(OsStr::new(&list)), None).unwrap();
        assert_eq!(dirs, [config.clone(), odd]);
        assert_eq!(config_dirs(&[named], None, None).unwrap(), [config]);
        let relative = [PathBuf::from("projects")];
        assert_eq!(
            config_dirs(&relative, None, None).unwrap(),
            [PathBuf::from(".")]
        );
    }

    #[test]
    fn the_second_usual_folder_counts_if_it_exists() {
        let home = tempfile::tempdir().unwrap();
        let second = home.path().join(".config/claude");
        std::fs::create_dir_all(&second).unwrap();
        assert_eq!(
            config_dirs(&[], None, Some(home.path())).unwrap(),
            [home.path().join(".claude"), second]
        );
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = check(Path::new("/nowhere/at/all")).unwrap_err();
        assert_eq!(error.to_string(), "no such directory: `/nowhere/at/all`");
    }
}
