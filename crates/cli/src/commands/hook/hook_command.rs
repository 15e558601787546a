//! The command of our hook: how it is written, and how it is known again.

use std::fs;
use std::path::{Path, PathBuf};

use unspool_show::shell_command;

/// The command that runs this program as a hook.
pub fn command(program: &Path) -> String {
    let text = program.display().to_string();
    // Clients on Windows run hooks by a shell that takes these for escapes.
    let text = if cfg!(windows) {
        text.replace('\\', "/")
    } else {
        text
    };
    format!("{} hook", shell_command::quote(&text))
}

/// Whether a command runs our hook, wherever the program was then.
pub fn is_ours(command: &str) -> bool {
    let words = words(command);
    let is_assignment = |word: &&String| {
        let name = word.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| !name.is_empty() && !name.contains(['/', '\\']))
    };
    let mut words = words.iter().skip_while(is_assignment);
    let Some(program) = words.next() else {
        return false;
    };
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.strip_suffix(".exe").unwrap_or(name);
    (name == "unspool" || is_this_program(Path::new(program)))
        && words
            .find(|word| !word.starts_with('-'))
            .map(String::as_str)
            == Some("hook")
}

/// Whether a path leads to the program that runs, whatever it is called there.
fn is_this_program(path: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    let this = || real(&std::env::current_exe().ok()?);
    path.is_absolute() && real(path).is_some_and(|path| Some(path) == this())
}

/// The program that a command of ours runs.
pub fn program(command: &str) -> Option<PathBuf> {
    let word = words(command)
        .into_iter()
        .find(|word| !word.contains('='))?;
    Some(PathBuf::from(word))
}

/// The words of a command as a shell sees them, up to the end of the first command.
fn words(command: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = command.chars();
    while let Some(char) = chars.next() {
        match char {
            ';' | '&' | '|' | '\n' | '>' | '<' => break,
            char if char.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                word.extend(chars.by_ref().take_while(|char| *char != '\''));
            }
            '"' => {
                let word = word.get_or_insert_default();
                while let Some(char) = chars.next() {
                    match char {
                        '"' => break,
                        '\\' => word.extend(chars.next()),
                        char => word.push(char),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(chars.next()),
            char => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_only_where_it_must_be_and_is_known_again() {
        for (path, expected) in [
            ("/usr/local/bin/unspool", "/usr/local/bin/unspool hook"),
            ("/home/a b/unspool", "'/home/a b/unspool' hook"),
            ("/it's/$HOME/unspool", r"'/it'\''s/$HOME/unspool' hook"),
            ("/x/ü;rm -rf/unspool", "'/x/ü;rm -rf/unspool' hook"),
        ] {
            let command = command(Path::new(path));
            assert_eq!(command, expected);
            assert!(is_ours(&command), "{command}");
            assert_eq!(program(&command), Some(PathBuf::from(path)));
        }
    }

    #[test]
    fn this_program_is_ours_under_any_name() {
        let this = std::env::current_exe().unwrap();
        assert_ne!(this.file_stem().unwrap(), "unspool");
        assert!(is_ours(&command(&this)));
        assert!(!is_ours(&shell_command::quote(&this.display().to_string())));
    }

    #[test]
    fn only_our_own_hook_is_ours() {
        for ours in [
            "unspool hook",
            "  unspool   hook --strict",
            "\"C:/Program Files/unspool.exe\" hook",
            "A=1 B=x unspool hook",
            "unspool --quiet hook 2>/dev/null",
            r"/x\ y/unspool hook || true",
        ] {
            assert!(is_ours(ours), "{ours}");
        }
        for other in [
            "",
            "unspool",
            "unspool ls hook",
            "echo unspool hook",
            "my-unspool hook",
            "unspooler hook",
            "unspool; hook",
            "'unspool hook'",
            "pnpm dlx github:elct9620/cc-langfuse",
        ] {
            assert!(!is_ours(other), "{other}");
        }
    }
}
