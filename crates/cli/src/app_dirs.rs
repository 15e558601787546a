//! Where our own files live: never inside Claude's folders.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use unspool_store::{StoreError, own_file};

use crate::failure::CommandFailure;

/// Where our files are for somebody without a home: nothing can be there, or be put there. Never
/// the working directory, whose files a stranger may have made.
pub const NOWHERE: &str = "/dev/null";

/// The folders of this program. They need not exist yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppDirs {
    /// What a person writes: settings, prices of their own.
    pub config: PathBuf,
    /// What must not be lost.
    pub data: PathBuf,
    /// What can be made again at any time.
    pub cache: PathBuf,
    /// What lasts as long as somebody is logged in.
    pub runtime: PathBuf,
}

impl AppDirs {
    /// `$UNSPOOL_HOME` for all of them, else the folders that the system has for such files.
    /// `variable` reads the environment; empty values count as not set. A relative UNSPOOL_HOME is
    /// refused: who is trusted would be read from wherever somebody stands.
    pub fn places(
        variable: impl Fn(&str) -> Option<OsString>,
        home: Option<&Path>,
    ) -> Result<AppDirs, CommandFailure> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        if let Some(all) = set("UNSPOOL_HOME").map(PathBuf::from) {
            if !all.is_absolute() {
                let what = format!(
                    "UNSPOOL_HOME is `{}`, which is not an absolute path",
                    all.display()
                );
                return Err(
                    CommandFailure::failed(what).hint("set UNSPOOL_HOME to an absolute path")
                );
            }
            return Ok(AppDirs {
                config: all.clone(),
                data: all.clone(),
                cache: all.clone(),
                runtime: all,
            });
        }
        Ok(AppDirs::usual(set, home.unwrap_or(Path::new(NOWHERE))))
    }

    fn usual(set: impl Fn(&str) -> Option<OsString>, home: &Path) -> AppDirs {
        // Relative values are void, says the specification of these variables.
        let folder = |name: &str, usual: &str| {
            let named = set(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
            named.unwrap_or_else(|| home.join(usual)).join("unspool")
        };
        if cfg!(target_os = "macos") {
            let support = home.join("Library/Application Support/unspool");
            return AppDirs {
                config: support.clone(),
                data: support.clone(),
                runtime: support,
                cache: home.join("Library/Caches/unspool"),
            };
        }
        if cfg!(windows) {
            return AppDirs {
                config: folder("APPDATA", "AppData/Roaming"),
                data: folder("LOCALAPPDATA", "AppData/Local"),
                cache: folder("LOCALAPPDATA", "AppData/Local").join("cache"),
                runtime: folder("LOCALAPPDATA", "AppData/Local"),
            };
        }
        AppDirs {
            config: folder("XDG_CONFIG_HOME", ".config"),
            data: folder("XDG_DATA_HOME", ".local/share"),
            cache: folder("XDG_CACHE_HOME", ".cache"),
            // Without a folder that goes with the session, one that stays.
            runtime: folder("XDG_RUNTIME_DIR", ".local/share"),
        }
    }

    /// Refuses folders of ours that others may write: what stands in them tells us what to do.
    pub fn check(&self) -> Result<(), StoreError> {
        let mut checked: Vec<&Path> = Vec::new();
        for folder in [&self.config, &self.data, &self.cache, &self.runtime] {
            if !checked.contains(&folder.as_path()) {
                own_file::check_folder(folder)?;
                checked.push(folder);
            }
        }
        Ok(())
    }

    /// Whether nothing of ours can be kept, because there is no home.
    pub fn is_nowhere(&self) -> bool {
        self.data.starts_with(NOWHERE)
    }

    /// Where hooks note what happens.
    pub fn events(&self) -> PathBuf {
        self.data.join("events")
    }

    /// Where a daemon listens.
    pub fn socket(&self) -> PathBuf {
        self.runtime.join("daemon.sock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_variable_moves_everything() {
        let own = AppDirs::places(
            |name| (name == "UNSPOOL_HOME").then(|| "/u".into()),
            Some(Path::new("/home/me")),
        )
        .unwrap();
        assert!(
            [own.config, own.data, own.cache, own.runtime]
                .iter()
                .all(|dir| dir == Path::new("/u"))
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn without_it_the_usual_folders_are_used() {
        let variable = |name: &str| match name {
            "UNSPOOL_HOME" => Some("".into()),
            "XDG_CACHE_HOME" => Some("/var/cache".into()),
            "XDG_DATA_HOME" => Some("relative".into()),
            "XDG_RUNTIME_DIR" => Some("/run/user/7".into()),
            _ => None,
        };
        let own = AppDirs::places(variable, Some(Path::new("/home/me"))).unwrap();
        assert_eq!(own.config, Path::new("/home/me/.config/unspool"));
        assert_eq!(own.data, Path::new("/home/me/.local/share/unspool"));
        assert_eq!(own.cache, Path::new("/var/cache/unspool"));
        assert_eq!(own.socket(), Path::new("/run/user/7/unspool/daemon.sock"));
    }

    #[test]
    fn our_files_are_never_in_the_working_directory() {
        for value in [".", "relative", "../x", "~/x"] {
            let own = AppDirs::places(|name| (name == "UNSPOOL_HOME").then(|| value.into()), None);
            assert!(own.is_err(), "{value}");
        }
        let relative = |name: &str| (name != "UNSPOOL_HOME").then(|| "relative".into());
        let own = AppDirs::places(relative, None).unwrap();
        assert!(own.is_nowhere());
        for folder in [own.config, own.data, own.cache, own.runtime] {
            assert!(folder.is_absolute(), "{}", folder.display());
            assert!(std::fs::write(folder.join("file"), b"").is_err());
        }
    }
}
