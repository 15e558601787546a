//! A temporary machine for the program: its home, its clock and its terminal.
//!
//! Everything the program may take from the world is fixed here, so that what
//! it prints can be compared word for word. The developer's own `~/.claude` is
//! out of reach: the environment is empty but for what is set below.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::script;

/// A home directory that is gone when the value is dropped.
pub struct Home {
    dir: TempDir,
    program: PathBuf,
    variables: Vec<(String, String)>,
}

impl Home {
    /// An empty home for this program, usually `env!("CARGO_BIN_EXE_unspool")`.
    pub fn new(program: impl Into<PathBuf>) -> Home {
        let home = Home {
            dir: must(TempDir::new()),
            program: program.into(),
            variables: Vec::new(),
        };
        must(std::fs::create_dir_all(home.work_dir()));
        home
    }

    /// Sets a variable of the environment for every run, such as `COLUMNS`.
    pub fn set(&mut self, name: &str, value: &str) -> &mut Home {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The home directory itself.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// `CLAUDE_CONFIG_DIR` of this home.
    pub fn claude_dir(&self) -> PathBuf {
        self.path().join(".claude")
    }

    /// `UNSPOOL_HOME` of this home.
    pub fn unspool_dir(&self) -> PathBuf {
        self.path().join(".unspool")
    }

    /// The directory the program is started in.
    pub fn work_dir(&self) -> PathBuf {
        self.path().join("project")
    }

    /// Writes a file below the home, with the folders on the way.
    pub fn write(&self, relative: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(relative);
        if let Some(folder) = path.parent() {
            must(std::fs::create_dir_all(folder));
        }
        must(std::fs::write(&path, content));
        path
    }

    /// Places a session of a project, written as a [`script`].
    pub fn session(&self, cwd: &str, id: &str, script: &str) -> PathBuf {
        let script = format!("(cwd={cwd}, session={id})\n{script}");
        self.transcript(cwd, id, script::jsonl(&script))
    }

    /// Places a session of a project, given as bytes.
    pub fn transcript(&self, cwd: &str, id: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        self.write(format!(".claude/projects/{}/{id}.jsonl", slug(cwd)), bytes)
    }

    /// Places a sub-agent of a session, as clients since 2.1.2 do.
    pub fn agent(&self, cwd: &str, session: &str, agent: &str, script: &str) -> PathBuf {
        let script = format!("(cwd={cwd}, session={session}, agent={agent})\n{script}");
        let folder = format!(".claude/projects/{}/{session}/subagents", slug(cwd));
        let meta = r#"{"agentType":"general-purpose","description":"look"}"#;
        self.write(format!("{folder}/agent-{agent}.meta.json"), meta);
        self.write(
            format!("{folder}/agent-{agent}.jsonl"),
            script::jsonl(&script),
        )
    }

    /// The program on this machine, ready to get arguments.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear();
        // Windows cannot start a program without this one.
        let inherited = ["PATH", "SystemRoot"];
        command.envs(
            inherited
                .iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        );
        command
            .env("HOME", self.path())
            .env("CLAUDE_CONFIG_DIR", self.claude_dir())
            .env("UNSPOOL_HOME", self.unspool_dir())
            .env("UNSPOOL_ACCOUNT_HOME", self.path().join("account"))
            .env("UNSPOOL_NOW", "2026-01-05T12:00:00.000Z")
            .env("TZ", "UTC")
            .env("COLUMNS", "100")
            .env("NO_COLOR", "1")
            .env("UNSPOOL_NO_BACKGROUND", "1")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(self.work_dir())
            .stdin(Stdio::null());
        command
    }

    /// Runs it and returns what came out, untouched.
    pub fn output(&self, args: &[impl AsRef<OsStr>]) -> Output {
        must(self.command().args(args).output())
    }

    /// Runs it and returns everything a user would see as one text, for
    /// snapshots. The path of the home is written `$HOME`.
    pub fn run(&self, args: &[impl AsRef<OsStr>]) -> String {
        let output = self.output(args);
        let mut text = self.neutral(&output.stdout);
        if !output.stderr.is_empty() {
            text.push_str("--- stderr\n");
            text.push_str(&self.neutral(&output.stderr));
        }
        if !output.status.success() {
            let code = output
                .status
                .code()
                .map_or("signal".to_owned(), |code| code.to_string());
            text.push_str(&format!("--- status {code}\n"));
        }
        text
    }

    fn neutral(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        let text = text.replace(&*self.path().to_string_lossy(), "$HOME");
        if text.is_empty() || text.ends_with('\n') {
            text
        } else {
            text + "\n"
        }
    }
}

/// The folder of a project: every UTF-16 unit that is no ASCII letter or digit
/// is a dash. (Paths of over 200 units get a hash, which tests here do not need.)
pub fn slug(cwd: &str) -> String {
    let keep = |unit: u16| char::from_u32(unit.into()).filter(char::is_ascii_alphanumeric);
    cwd.encode_utf16()
        .map(|unit| keep(unit).unwrap_or('-'))
        .collect()
}

fn must<T>(result: std::io::Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("the temporary home: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_keeps_only_letters_and_digits() {
        assert_eq!(slug("/home/dev/a_b.c"), "-home-dev-a-b-c");
        assert_eq!(slug("emoji😀x"), "emoji--x");
    }

    #[test]
    fn a_session_is_placed_in_the_folder_of_its_project() {
        let home = Home::new("unspool");
        let path = home.session("/home/dev/x", "5e55", "you: hi");
        assert!(path.ends_with(".claude/projects/-home-dev-x/5e55.jsonl"));
        let text = std::fs::read_to_string(path).unwrap();
        assert!(
            text.contains(r#""cwd":"/home/dev/x","sessionId":"5e55""#),
            "{text}"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_run_shows_output_errors_and_status_without_the_path_of_the_home() {
        let home = Home::new("/bin/sh");
        let text = home.run(&["-c", "echo $HOME; printf oops >&2; exit 3"]);
        assert_eq!(text, "$HOME\n--- stderr\noops\n--- status 3\n");
    }

    #[cfg(unix)]
    #[test]
    fn the_environment_of_the_developer_is_out_of_reach() {
        let home = Home::new("/bin/sh");
        assert_eq!(home.run(&["-c", "echo $USER $CARGO $TZ"]), "UTC\n");
    }
}
