//! The command line of git: its options, its command, and what stands behind that.

use super::command_texts::known_text;
use crate::permission::shell_parser::ShellWord;

/// Options before the command that take the next word as their value.
const WITH_VALUE: &[&str] = &[
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--config-env",
    "--attr-source",
    "--super-prefix",
    "--shallow-file",
];

/// Options before the command that change neither where git looks nor what it runs.
const HARMLESS: &[&str] = &[
    "-P",
    "--no-pager",
    "--no-replace-objects",
    "--no-lazy-fetch",
    "--no-optional-locks",
    "--no-advice",
    "--literal-pathspecs",
    "--glob-pathspecs",
    "--noglob-pathspecs",
    "--icase-pathspecs",
    "-v",
    "--version",
    "-h",
    "--help",
];

/// A call of git, taken apart.
pub(super) struct GitCommand<'a> {
    /// What stands between `git` and its command.
    pub options: &'a [ShellWord],
    /// The command and its arguments; empty if there is none.
    pub command: &'a [ShellWord],
}

impl<'a> GitCommand<'a> {
    /// Takes the words behind `git` apart.
    pub(super) fn read(words: &'a [ShellWord]) -> GitCommand<'a> {
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let text = known_text(word);
            // An option that is not known yet is none: what follows cannot be told.
            if !text.starts_with('-') || word.is_open() {
                break;
            }
            at += match WITH_VALUE.contains(&text.as_str()) {
                true => 2,
                false => 1,
            };
        }
        let at = at.min(words.len());
        GitCommand {
            options: &words[..at],
            command: &words[at..],
        }
    }

    /// Its command, such as `status`.
    pub(super) fn name(&self) -> Option<String> {
        self.command.first().map(known_text)
    }

    /// The folders that `-C` names, in their order, and the first option that lets git look
    /// elsewhere or run something else.
    pub(super) fn elsewhere(&self) -> (Vec<&'a ShellWord>, Option<String>) {
        let mut folders = Vec::new();
        let mut words = self.options.iter();
        while let Some(word) = words.next() {
            let text = known_text(word);
            if text == "-C" {
                match words.next() {
                    Some(folder) => folders.push(folder),
                    None => return (folders, Some(text)),
                }
                continue;
            }
            if !HARMLESS.contains(&text.as_str()) {
                return (folders, Some(text));
            }
        }
        (folders, None)
    }

    /// Whether it makes names of commands of its own.
    pub(super) fn names_commands(&self) -> bool {
        self.options.iter().any(|word| {
            let text = known_text(word).to_lowercase();
            text.contains("alias.") || text.starts_with("--config-env")
        })
    }
}
