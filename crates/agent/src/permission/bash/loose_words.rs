//! Whether a command is what a rule means once its options stand elsewhere or are spelled otherwise.

use super::command_texts::{known_text, program};
use crate::permission::glob::GlobPattern;
use crate::permission::shell_parser::ShellWord;

impl GlobPattern {
    /// Whether the words of a rule stand in a command in their order, with options between them and
    /// values of those, and its options in any spelling: `rm -rf` is `rm x --recursive -f`.
    pub(in crate::permission) fn fits_loosely(&self, words: &[ShellWord]) -> bool {
        let start = self.start();
        let wanted: Vec<&str> = start.split(' ').filter(|word| !word.is_empty()).collect();
        let Some((name, wanted)) = wanted.split_first() else {
            return false;
        };
        let is_it = words.first().is_some_and(|word| program(word) == *name);
        if wanted.is_empty() || !is_it || !self.is_start() {
            return false;
        }
        let texts: Vec<String> = words[1..].iter().map(known_text).collect();
        let (options, commands): (Vec<&str>, Vec<&str>) =
            wanted.iter().partition(|word| word.starts_with('-'));
        has_commands(&commands, &texts) && options.iter().all(|option| has_option(option, &texts))
    }
}

fn is_option(text: &str) -> bool {
    text.starts_with(['-', '+'])
}

fn has_commands(wanted: &[&str], texts: &[String]) -> bool {
    let mut at = 0;
    for command in wanted {
        loop {
            let Some(text) = texts.get(at) else {
                return false;
            };
            at += 1;
            if text == command {
                break;
            }
            if !is_option(text) {
                return false;
            }
            // What stands behind an option may be its value.
            let value = texts
                .get(at)
                .filter(|text| !is_option(text) && text != command);
            at += usize::from(value.is_some());
        }
    }
    true
}

fn has_option(wanted: &str, texts: &[String]) -> bool {
    if texts.iter().any(|text| text == wanted) {
        return true;
    }
    let has_letter = |letter: char| {
        let same = |c: char| {
            c == letter || (letter.eq_ignore_ascii_case(&'r') && c.eq_ignore_ascii_case(&'r'))
        };
        texts.iter().any(|text| match text.strip_prefix("--") {
            Some(long) => LETTERS
                .iter()
                .any(|(name, own)| same(*own) && !long.is_empty() && name.starts_with(long)),
            None => text.starts_with('-') && text.chars().skip(1).any(same),
        })
    };
    match wanted.strip_prefix("--") {
        Some(long) => {
            let is_short = |text: &String| {
                let text = text.split('=').next().unwrap_or_default();
                text.len() > 3 && text.starts_with("--") && wanted.starts_with(text)
            };
            let letter = LETTERS.iter().find(|(name, _)| *name == long);
            texts.iter().any(is_short) || letter.is_some_and(|(_, letter)| has_letter(*letter))
        }
        None => {
            let letters = wanted.trim_start_matches('-');
            let is_cluster = !letters.is_empty() && letters.chars().all(char::is_alphabetic);
            is_cluster && letters.chars().all(has_letter)
        }
    }
}

/// Long options and their letters, the same for most programs.
const LETTERS: &[(&str, char)] = &[("force", 'f'), ("recursive", 'r')];
