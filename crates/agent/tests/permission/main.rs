//! Permission rules from outside: by sentences, by thousands of commands, and against bash.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod attacks;
mod combined;
mod corpus;
mod offered;
mod real;
mod rules;
mod settings;
mod shim;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use unspool_agent::permission::{
    PermissionDirs, PermissionMode, PermissionPolicy, PermissionVerdict,
};
use unspool_agent::settings::{SessionSettings, SettingsPaths};

/// A folder with settings, and everything around it.
struct World {
    temp: tempfile::TempDir,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Got {
    Allow,
    Ask,
    Deny,
}

impl World {
    fn new() -> World {
        let world = World {
            temp: tempfile::tempdir().unwrap(),
        };
        for folder in ["repo/.git", "repo/src", "config", "home", "other"] {
            fs::create_dir_all(world.path(folder)).unwrap();
        }
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.temp.path()).unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn places(&self) -> SettingsPaths {
        SettingsPaths {
            user: self.path("config"),
            managed: self.path("managed.json"),
            project: self.path("repo"),
            given: None,
        }
    }

    fn ground(&self) -> PermissionDirs {
        PermissionDirs {
            project: self.path("repo"),
            home: self.path("home"),
            steering: vec![self.path("config")],
            ..PermissionDirs::default()
        }
    }

    /// Rules of the user's own file.
    fn rules(&self, rules: Value) {
        let text = json!({ "permissions": rules }).to_string();
        self.write("config/settings.json", &text);
    }

    fn policy(&self, mode: PermissionMode) -> PermissionPolicy {
        let settings = SessionSettings::load(&self.places()).unwrap();
        PermissionPolicy::load(&settings, self.ground(), mode, &[], &[]).unwrap()
    }
}

fn got(verdict: &PermissionVerdict) -> Got {
    match verdict {
        PermissionVerdict::Allow { .. } => Got::Allow,
        PermissionVerdict::Ask { .. } => Got::Ask,
        PermissionVerdict::Deny { .. } => Got::Deny,
    }
}

fn bash(policy: &PermissionPolicy, command: &str, cwd: &Path) -> Got {
    got(&policy.judge("Bash", &json!({ "command": command }), cwd))
}
