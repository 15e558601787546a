//! What a person may set in `config.toml` of our config folder.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::failure::Failure;

/// The settings.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Presets of `clone`, by name.
    pub presets: BTreeMap<String, Preset>,
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

impl Config {
    /// Reads `config.toml`; without one everything is as it comes.
    pub fn read(folder: &Path) -> Result<Config, Failure> {
        let path = folder.join("config.toml");
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(Config::default()),
            Err(why) => {
                let what = format!("cannot read `{}`: {why}", path.display());
                return Err(Failure::failed(what));
            }
        };
        let config: Config = toml::from_str(&text).map_err(|why| {
            let what = format!("`{}` is not as it should be: {why}", path.display());
            Failure::failed(what.trim_end())
                .hint("known settings: [presets.NAME] with keep and truncate")
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
            return Err(Failure::failed(what));
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_makes_no_sense_is_named_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            std::fs::write(dir.path().join("config.toml"), text).unwrap();
            Config::read(dir.path())
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
        assert_eq!(Config::read(dir.path()).unwrap(), Config::default());
    }
}
