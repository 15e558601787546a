//! Rules in settings files: added and taken out, and every other byte kept.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use unspool_model::jsonc::{self, JsoncLayout};
use unspool_store::own_file;

use crate::settings::{self, RuleKind, SettingsLayer};

/// Why rules could not be written down.
pub type RuleWriteError = String;

/// The file that holds the rules of a person, of a project, or of a person in a project.
pub fn file(scope: SettingsLayer, user: &Path, project: &Path) -> Option<PathBuf> {
    let folder = || settings::root(project).join(".claude");
    match scope {
        SettingsLayer::User => Some(user.join("settings.json")),
        SettingsLayer::Project => Some(folder().join("settings.json")),
        SettingsLayer::Local => Some(folder().join("settings.local.json")),
        SettingsLayer::Managed
        | SettingsLayer::Given
        | SettingsLayer::Flag
        | SettingsLayer::Session => None,
    }
}

/// Changes a settings file; whether there was something to change.
pub fn change(
    path: &Path,
    scope: SettingsLayer,
    how: impl FnOnce(&str) -> Result<String, String>,
) -> Result<bool, RuleWriteError> {
    let told = |error: io::Error| format!("{}: {error}", path.display());
    // People keep their own settings elsewhere and link to them. Through a link of a folder,
    // another file than this would be changed.
    let real = match scope.is_of_folder() {
        true => path.to_path_buf(),
        false => fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()),
    };
    let folder = real.parent().unwrap_or(Path::new("/")).to_path_buf();
    if scope.is_of_folder() {
        for part in [&folder, &real] {
            let about = part.symlink_metadata();
            if about.is_ok_and(|about| about.is_symlink()) {
                return Err(format!(
                    "{}: refusing to write through a symlink",
                    part.display()
                ));
            }
        }
    }
    match fs::symlink_metadata(&real) {
        // Neither a pipe nor a device is replaced by a file, nor a link that leads nowhere.
        Ok(about) if !about.is_file() => {
            return Err(format!("{}: not a regular file", path.display()));
        }
        _ => {}
    }
    let old = match own_file::read_to_string(&real) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(told(error)),
    };
    let new = how(&old).map_err(|why| format!("{}: {why}", path.display()))?;
    if new == old {
        return Ok(false);
    }
    fs::create_dir_all(&folder).map_err(told)?;
    write(&folder, &real, &new).map_err(told)?;
    Ok(true)
}

/// A whole new file in the place of the old, with the rights the old one had.
fn write(folder: &Path, path: &Path, text: &str) -> io::Result<()> {
    let mode = fs::metadata(path).map_or(0o600, |about| about.permissions().mode() & 0o777);
    let temp = folder.join(format!(".settings.{}.tmp", std::process::id()));
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

fn wrong(wrong: jsonc::JsoncError) -> String {
    format!("line {}: {}", wrong.line, wrong.why)
}

/// The text of a settings file with more rules.
pub fn added(old: &str, kind: RuleKind, rules: &[String]) -> Result<String, String> {
    let mut text = match old.trim().is_empty() {
        true => "{}\n".to_owned(),
        false => old.to_owned(),
    };
    let start = text.clone();
    let key = kind.key();
    for rule in rules {
        let root = jsonc::parse(&text).map_err(wrong)?;
        let layout = JsoncLayout::of(&text, &root);
        if root.members().is_none() {
            return Err("settings must be an object".to_owned());
        }
        let value: Value = rule.as_str().into();
        let Some(permissions) = root.get("permissions") else {
            let all = json!({ key: [rule] });
            text = jsonc::insert(&text, &root, &layout, Some("permissions"), &all);
            continue;
        };
        if permissions.members().is_none() {
            return Err("permissions must be an object".to_owned());
        }
        let Some(list) = permissions.get(key) else {
            text = jsonc::insert(&text, permissions, &layout, Some(key), &json!([rule]));
            continue;
        };
        let Some(items) = list.items() else {
            return Err(format!("permissions.{key} must be a list"));
        };
        if !items.iter().any(|item| item.text() == Some(rule)) {
            text = jsonc::insert(&text, list, &layout, None, &value);
        }
    }
    // Nothing to add: nothing is written, not even an empty object.
    if text == start {
        return Ok(old.to_owned());
    }
    Ok(text)
}

/// The text of a settings file without a rule.
pub fn removed(old: &str, kind: RuleKind, rule: &str) -> Result<String, String> {
    let mut text = old.to_owned();
    loop {
        let root = jsonc::parse(&text).map_err(wrong)?;
        let list = root
            .get("permissions")
            .and_then(|permissions| permissions.get(kind.key()));
        let place = list.and_then(|list| {
            let mut items = list.items()?.iter();
            Some((list, items.position(|item| item.text() == Some(rule))?))
        });
        let Some((list, index)) = place else {
            return Ok(text);
        };
        text = jsonc::remove(&text, list, index);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, symlink};

    use super::*;

    #[test]
    fn settings_that_are_no_file_are_neither_waited_for_nor_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("settings.json");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let nowhere = folder.path().join("nowhere.json");
        symlink("missing", &nowhere).unwrap();
        for path in [&pipe, &nowhere] {
            let why = change(path, SettingsLayer::User, |_| Ok("{}".to_owned())).unwrap_err();
            assert!(why.contains("not a regular file"), "{why}");
        }
        let kind = fs::symlink_metadata(&pipe).unwrap().file_type();
        assert!(kind.is_fifo() && nowhere.is_symlink());
        assert!(!folder.path().join("missing").exists());
    }

    #[test]
    fn settings_of_a_person_that_are_a_link_stay_one() {
        let folder = tempfile::tempdir().unwrap();
        let (kept, link) = (folder.path().join("kept"), folder.path().join("link"));
        fs::write(&kept, "{}").unwrap();
        symlink("kept", &link).unwrap();
        assert!(change(&link, SettingsLayer::User, |_| Ok("{\"a\":1}".to_owned())).unwrap());
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&kept).unwrap(), "{\"a\":1}");
    }
}
