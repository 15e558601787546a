//! What a person may set in `config.toml` of our config folder.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use unspool_model::view::status::SessionState;
use unspool_store::own_file;

use crate::failure::CommandFailure;

/// The settings.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UserConfig {
    /// Presets of `clone`, by name.
    pub presets: BTreeMap<String, Preset>,
    /// What people are told of.
    pub notify: Notify,
}

/// What people are told of, and how: `[notify]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Notify {
    /// On the desktop.
    pub desktop: bool,
    /// By the bell of the terminal, while `watch` runs.
    pub bell: bool,
    /// By a message to this address.
    pub webhook: Option<String>,
    /// In which states; none: when a session cannot go on without a person.
    pub on: Vec<String>,
    /// Of which projects; none: all.
    pub projects: Vec<String>,
    /// How long a state must last that is not certain.
    pub after_seconds: u64,
}

impl Default for Notify {
    fn default() -> Notify {
        Notify {
            desktop: false,
            bell: false,
            webhook: None,
            on: Vec::new(),
            projects: Vec::new(),
            after_seconds: 5,
        }
    }
}

/// How a preset trims tool calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// How many turns with tools are kept.
    pub keep: usize,
    /// What share of these is cut short, in percent, oldest first.
    #[serde(default)]
    pub truncate: u8,
}

impl UserConfig {
    /// Reads `config.toml`; without one everything is as it comes.
    pub fn read(folder: &Path) -> Result<UserConfig, CommandFailure> {
        let path = folder.join("config.toml");
        let text = match own_file::read_settings(&path) {
            Ok(text) => text,
            Err(why)
                if matches!(
                    why.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(UserConfig::default());
            }
            Err(why) => {
                let what = format!("cannot read `{}`: {why}", path.display());
                return Err(CommandFailure::failed(what));
            }
        };
        let config: UserConfig = toml::from_str(&text).map_err(|why| {
            let what = format!("`{}` is invalid: {why}", path.display());
            CommandFailure::failed(what.trim_end())
                .hint("known settings: [presets.NAME] with keep and truncate; [notify] with desktop, bell, webhook, on, projects and after_seconds")
        })?;
        let wrong = config
            .presets
            .iter()
            .find(|(_, preset)| preset.truncate > 100);
        if let Some((name, preset)) = wrong {
            let what = format!(
                "`{}`: truncate of the preset `{name}` is {}, more than 100 percent",
                path.display(),
                preset.truncate
            );
            return Err(CommandFailure::failed(what));
        }
        config.notify.check(&path)?;
        Ok(config)
    }
}

impl Notify {
    fn check(&self, path: &Path) -> Result<(), CommandFailure> {
        let wrong = |what: String| {
            Err(CommandFailure::failed(format!(
                "`{}`: {what}",
                path.display()
            )))
        };
        if let Some(name) = self
            .on
            .iter()
            .find(|name| SessionState::named(name).is_none())
        {
            let names = SessionState::ALL.map(SessionState::name).join(", ");
            return wrong(format!(
                "`{name}` in notify.on is not a status: use {names}"
            ));
        }
        match &self.webhook {
            Some(address) if !unspool_net::is_address(address) => {
                wrong(format!("notify.webhook `{address}` is not a URL"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_to_be_told_is_checked() {
        let dir = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            std::fs::write(dir.path().join("config.toml"), text).unwrap();
            UserConfig::read(dir.path()).map(|config| config.notify)
        };
        assert_eq!(read("").unwrap(), Notify::default());
        let fine = read("[notify]\ndesktop = true\non = [\"error\"]\nwebhook = \"http://x/y\"\n");
        assert!(fine.is_ok_and(|fine| fine.desktop && fine.on == ["error"]));
        assert!(read("[notify]\non = [\"sad\"]\n").is_err());
        assert!(read("[notify]\nwebhook = \"not an address\"\n").is_err());
        assert!(read("[notify]\nloud = true\n").is_err());
    }

    #[test]
    fn a_setting_that_makes_no_sense_is_named_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            std::fs::write(dir.path().join("config.toml"), text).unwrap();
            UserConfig::read(dir.path())
        };
        let fine = read("[presets.mine]\nkeep = 15\ntruncate = 30\n").unwrap();
        assert_eq!(
            fine.presets["mine"],
            Preset {
                keep: 15,
                truncate: 30
            }
        );
        assert!(read("[presets.mine]\nkeep = \"many\"\n").is_err());
        assert!(read("[preset]\n").is_err());
        assert!(read("[presets.mine]\nkeep = 1\ntruncate = 101\n").is_err());
        std::fs::remove_file(dir.path().join("config.toml")).unwrap();
        assert_eq!(UserConfig::read(dir.path()).unwrap(), UserConfig::default());
    }
}
