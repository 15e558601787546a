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
use unspool_agent::permission::{Ground, Mode, Policy, Verdict};
use unspool_agent::settings::{Places, Settings};

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

    fn places(&self) -> Places {
        Places {
            user: self.path("config"),
            managed: self.path("managed.json"),
            project: self.path("repo"),
            given: None,
        }
    }

    fn ground(&self) -> Ground {
        Ground {
            project: self.path("repo"),
            home: self.path("home"),
            steering: vec![self.path("config")],
            ..Ground::default()
        }
    }

    /// Rules of the user's own file.
    fn rules(&self, rules: Value) {
        let text = json!({ "permissions": rules }).to_string();
        self.write("config/settings.json", &text);
    }

    fn policy(&self, mode: Mode) -> Policy {
        let settings = Settings::load(&self.places()).unwrap();
        Policy::load(&settings, self.ground(), mode, &[], &[]).unwrap()
    }
}

fn got(verdict: &Verdict) -> Got {
    match verdict {
        Verdict::Allow { .. } => Got::Allow,
        Verdict::Ask { .. } => Got::Ask,
        Verdict::Deny { .. } => Got::Deny,
    }
}

fn bash(policy: &Policy, command: &str, cwd: &Path) -> Got {
    got(&policy.judge("Bash", &json!({ "command": command }), cwd))
}
