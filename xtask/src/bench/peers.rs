//! Other programs that do the same jobs, from the registries, each in a folder of its own
//! in the cache. One that cannot be installed here is named and left out.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::needs;
use crate::truth::expected::Tokens;

/// A program to compare with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Peer {
    /// Lists sessions with the client's own library.
    Sdk,
    /// Counts tokens by day; reads everything each time.
    Ccusage,
    /// The same with a cache of its own.
    Ccstats,
    /// Searches raw bytes.
    Ripgrep,
    /// The same with letters folded.
    RipgrepFolding,
    /// Searches the dialogue with an index of its own.
    FastResume,
}

const CCUSAGE: &str = "20.0.24";
const CCSTATS: &str = "0.11.1";
const RIPGREP: &str = "15.1.0";
const FAST_RESUME: &str = "2.14.0";

impl Peer {
    /// Its name, as printed.
    pub fn name(self) -> String {
        match self {
            Peer::Sdk => "Python SDK list_sessions".into(),
            Peer::Ccusage => format!("ccusage {CCUSAGE}"),
            Peer::Ccstats => format!("ccstats {CCSTATS}, its cache warm"),
            Peer::Ripgrep => format!("rg {RIPGREP} -F"),
            Peer::RipgrepFolding => format!("rg {RIPGREP} -F -i"),
            Peer::FastResume => format!("fast-resume {FAST_RESUME}, indexed"),
        }
    }

    /// Whether a run that is not measured comes first, to fill its cache.
    pub fn is_warm(self) -> bool {
        matches!(self, Peer::Ccstats | Peer::FastResume)
    }

    /// Where its program is, installed if it is not there yet.
    pub fn provide(self) -> Result<PathBuf, String> {
        let program = self.program();
        if program.exists() {
            return Ok(program);
        }
        eprintln!("installing {}", self.name());
        self.install()?;
        if program.exists() {
            Ok(program)
        } else {
            Err(format!("{} is not there", program.display()))
        }
    }

    fn folder(self) -> PathBuf {
        let name = match self {
            Peer::Sdk => "sdk".into(),
            Peer::Ccusage => format!("ccusage-{CCUSAGE}"),
            Peer::Ccstats => format!("ccstats-{CCSTATS}"),
            Peer::Ripgrep | Peer::RipgrepFolding => format!("ripgrep-{RIPGREP}"),
            Peer::FastResume => format!("fast-resume-{FAST_RESUME}"),
        };
        needs::cache_dir().join("peers").join(name)
    }

    fn program(self) -> PathBuf {
        let folder = self.folder();
        match self {
            Peer::Sdk => needs::sdk_python(),
            // Its own start script costs as much as the program; this is the program.
            Peer::Ccusage => folder.join(format!(
                "node_modules/@ccusage/ccusage-{}/bin/ccusage",
                node_platform()
            )),
            Peer::Ccstats => folder.join("bin/ccstats"),
            Peer::Ripgrep | Peer::RipgrepFolding => folder.join("bin/rg"),
            Peer::FastResume => folder.join("bin/fr"),
        }
    }

    fn install(self) -> Result<(), String> {
        let folder = self.folder();
        let crate_of = |name: &str, lock: &[&str]| {
            let mut command = Command::new("cargo");
            command.args(["install", "--quiet"]).args(lock);
            needs::succeed(command.arg("--root").arg(&folder).arg(name))
        };
        match self {
            Peer::Sdk => Err("comes with `cargo xtask needs --install`".into()),
            Peer::Ccusage => {
                std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
                let package = format!("ccusage@{CCUSAGE}");
                let options = ["install", "--no-audit", "--no-fund", "--ignore-scripts"];
                let mut npm = Command::new("npm");
                needs::succeed(npm.args(options).arg(package).arg("--prefix").arg(&folder))?;
                make_executable(&self.program())
            }
            // Its lock file names releases that not every mirror has.
            Peer::Ccstats => {
                let package = format!("ccstats@{CCSTATS}");
                crate_of(&package, &["--locked"]).or_else(|_| crate_of(&package, &[]))
            }
            Peer::Ripgrep | Peer::RipgrepFolding => {
                crate_of(&format!("ripgrep@{RIPGREP}"), &["--locked"])
            }
            Peer::FastResume => {
                needs::succeed(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
                let package = format!("fast-resume=={FAST_RESUME}");
                let mut pip = Command::new(folder.join("bin/python"));
                needs::succeed(pip.args(["-m", "pip", "install", "--quiet", &package]))
            }
        }
    }

    /// What to give it; `needle` is what to search for.
    pub fn args(self, home: &Path, needle: &str) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let claude = home.join(".claude").to_string_lossy().into_owned();
        let rg = [
            "--no-ignore",
            "--hidden",
            "--no-config",
            "-F",
            "--",
            needle,
            &claude,
        ];
        match self {
            Peer::Sdk => words(&["-c", "import claude_agent_sdk as sdk; sdk.list_sessions()"]),
            Peer::Ccusage => words(&["claude", "daily", "--json", "--offline"]),
            Peer::Ccstats => words(&["daily", "--breakdown", "--json", "--offline"]),
            Peer::Ripgrep => words(&rg),
            Peer::RipgrepFolding => words(&[&["-i"], &rg[..]].concat()),
            Peer::FastResume => words(&["--list", "--no-refresh", "--limit", "20", needle]),
        }
    }

    /// The same for the run that fills its cache.
    pub fn warm_args(self, home: &Path, needle: &str) -> Vec<String> {
        let mut args = self.args(home, needle);
        args.retain(|arg| arg != "--no-refresh");
        args
    }

    /// The home it is shown: most take the config directory from the environment.
    pub fn home<'a>(self, home: &'a Path, own: &'a Path) -> &'a Path {
        if self == Peer::FastResume { home } else { own }
    }

    /// The tokens of everything that it reports, if it reports any.
    pub fn tokens(self, output: &str) -> Option<Tokens> {
        let value: Value = serde_json::from_str(output).ok()?;
        let number = |row: &Value, name: &str| row[name].as_u64().unwrap_or(0);
        let mut total = Tokens::default();
        match self {
            Peer::Ccusage => {
                let row = value.get("totals")?;
                total = Tokens {
                    input: number(row, "inputTokens"),
                    output: number(row, "outputTokens"),
                    cache_read: number(row, "cacheReadTokens"),
                    cache_write: number(row, "cacheCreationTokens"),
                };
            }
            Peer::Ccstats => {
                for row in value.as_array()? {
                    total += Tokens {
                        input: number(row, "input_tokens"),
                        output: number(row, "output_tokens"),
                        cache_read: number(row, "cache_read_tokens"),
                        cache_write: number(row, "cache_creation_tokens"),
                    };
                }
            }
            _ => return None,
        }
        Some(total)
    }
}

/// This machine as npm packages name it.
fn node_platform() -> String {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    };
    let processor = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{system}-{processor}")
}

#[cfg(unix)]
fn make_executable(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
        .map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<(), String> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_peers_are_summed_up() {
        let ccusage = r#"{"daily":[],"totals":{"inputTokens":1,"outputTokens":2,"cacheReadTokens":3,"cacheCreationTokens":4}}"#;
        let ccstats = r#"[{"input_tokens":1,"output_tokens":1,"cache_read_tokens":3,"cache_creation_tokens":4},{"output_tokens":1}]"#;
        let expected = Tokens {
            input: 1,
            output: 2,
            cache_read: 3,
            cache_write: 4,
        };
        assert_eq!(Peer::Ccusage.tokens(ccusage), Some(expected));
        assert_eq!(Peer::Ccstats.tokens(ccstats), Some(expected));
        assert_eq!(Peer::Ccusage.tokens("no JSON"), None);
    }
}
