//! Commands that stand where no shell would read them: as words of a program that runs others, in
//! code, in what comes in. Rules that deny and want to be asked look for them there, too.

use super::command_texts::{CommandTexts, known_text, program};
use super::deny_and_ask_rules::script_text;
use super::git_command::GitCommand;
use super::known_programs::{FEEDERS, LOOKS, READERS, WRITERS, stripped};
use super::named_files::{FILTERS, NO_FILES};
use super::{PermissionFindings, PermissionPolicy, PermissionReason};
use crate::permission::glob::GlobPattern;
use crate::permission::offered_rules::{WITH_COMMANDS, runs_its_input};
use crate::permission::shell_parser::{ShellCommandPart, ShellScript, ShellWord, ShellWordPart};
use crate::settings::RuleKind;

/// So many words of a command found somewhere are looked at.
const WORDS: usize = 40;

impl PermissionPolicy {
    /// What rules might mean that stands in the words of a part or comes into it.
    pub(super) fn strict_hidden(
        &self,
        part: &ShellCommandPart,
        input: &FedText,
        ruling: &mut PermissionFindings,
    ) {
        let kinds = [RuleKind::Deny, RuleKind::Ask];
        let mut rules = kinds.into_iter().flat_map(|kind| self.commands(kind));
        if part.words.is_empty() || rules.next().is_none() {
            return;
        }
        let start = stripped(&part.words).unwrap_or(0);
        let mut places: Vec<Vec<ShellWord>> = Vec::new();
        if !takes_words_as_data(&part.words[start..]) {
            places.push(own_commands(&part.words[start..]).to_vec());
            places.extend(part.words.iter().flat_map(code_in));
        }
        let obeys = obeys_input(part, start);
        if obeys {
            places.extend(input.texts.iter().map(|text| words_in(text)));
        }
        for (rule, pattern) in kinds.into_iter().flat_map(|kind| self.commands(kind)) {
            if places.iter().any(|words| is_mentioned(pattern, words)) {
                let text = "a rule might mean a command that stands among its words";
                ruling.firm(PermissionReason::of(text, rule));
            }
            if obeys && input.unknown {
                let text = "a rule might mean what comes in here and is run";
                ruling.firm(PermissionReason::of(text, rule));
            }
        }
    }
}

/// Whether a part runs what comes in, as far as it is not a command for each line of it.
pub(super) fn obeys_input(part: &ShellCommandPart, start: usize) -> bool {
    let words = &part.words[start..];
    let feeds = part
        .words
        .iter()
        .any(|word| FEEDERS.contains(&program(word).as_str()));
    (part.fed && !feeds && runs_its_input(words)) || evaluates(words)
}

/// `eval "$(…)"` and `source <(…)`, which run what others say.
fn evaluates(words: &[ShellWord]) -> bool {
    let name = words.first().map(program).unwrap_or_default();
    ["eval", "source", "."].contains(&name.as_str()) && words[1..].iter().any(ShellWord::is_open)
}

/// What comes into parts of a script from others, as far as it stands there.
#[derive(Default)]
pub(super) struct FedText {
    pub(super) texts: Vec<String>,
    /// Whether there is more.
    pub(super) unknown: bool,
}

impl FedText {
    pub(super) fn of(script: &ShellScript) -> FedText {
        let mut texts = script.documents.clone();
        let mut unknown = false;
        for part in &script.parts {
            texts.extend(part.values.iter().map(script_text));
            unknown |= part.values.iter().any(ShellWord::is_open);
            unknown |= part
                .redirects
                .iter()
                .any(|one| !one.writes && one.target.raw != "/dev/null");
            let Some(first) = part.words.first() else {
                continue;
            };
            match program(first).as_str() {
                "echo" | "printf" => {
                    let words: Vec<String> = part.words[1..].iter().map(script_text).collect();
                    let text = words.join(" ");
                    // Characters that are written as numbers.
                    unknown |= text.match_indices('\\').any(|(at, _)| {
                        let next = text[at + 1..].chars().next();
                        next.is_some_and(|c| c.is_ascii_digit() || "xuUc".contains(c))
                    });
                    texts.push(text.replace("\\n", " ").replace("\\t", " "));
                    texts.push(text);
                    unknown |= part.words.iter().any(ShellWord::is_open);
                }
                "cat" if part.words.len() == 1 => {}
                ":" | "cd" | "true" | "set" => {}
                _ if obeys_input(part, stripped(&part.words).unwrap_or(0)) => {}
                _ => unknown = true,
            }
        }
        FedText { texts, unknown }
    }
}

/// Whether no word of a command is another: programs that read or write files, or say something.
pub(super) fn takes_words_as_data(words: &[ShellWord]) -> bool {
    const RUNNING: &[&str] = &[
        ".", "awk", "find", "gawk", "less", "man", "more", "rg", "rsync", "scp", "sed", "set",
        "source", "tar", "zip", "zless", "zmore", "declare", "typeset", "local", "export",
    ];
    let Some(first) = words.first() else {
        return true;
    };
    let name = program(first);
    let name = name.as_str();
    if name == "git" {
        let options = GitCommand::read(&words[1..]).options.iter().map(known_text);
        return !options
            .into_iter()
            .any(|text| text.starts_with("-c") || text.starts_with("--conf"));
    }
    let known = NO_FILES.contains(&name)
        || FILTERS.contains(&name)
        || READERS.contains(&name)
        || WRITERS.contains(&name)
        || LOOKS.iter().any(|(look, _)| *look == name);
    known && !RUNNING.contains(&name)
}

/// The words that could be a command: not a program's own second word (`docker rm`).
fn own_commands(words: &[ShellWord]) -> &[ShellWord] {
    let name = words.first().map(program).unwrap_or_default();
    let skip = match words.get(1) {
        Some(second) if WITH_COMMANDS.contains(&name.as_str()) => {
            1 + usize::from(!known_text(second).starts_with('-'))
        }
        _ => 1,
    };
    words.get(skip..).unwrap_or_default()
}

/// The words in a word that may be code: also behind a letter (`-S'git push'`), and between the
/// slashes of `sed`.
fn code_in(word: &ShellWord) -> Vec<Vec<ShellWord>> {
    let text = script_text(word);
    if !text.contains(|c: char| !is_part(c)) {
        return Vec::new();
    }
    let glued = text
        .strip_prefix('-')
        .map(|rest| rest.chars().skip(1).collect());
    let split = text.replace('/', " ");
    let texts = [Some(text), glued, Some(split)].into_iter().flatten();
    texts.map(|text: String| words_in(&text)).collect()
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || "_-./~*$%+".contains(c)
}

/// What could be words of a command in a text, whatever quotes and separates them.
pub(super) fn words_in(text: &str) -> Vec<ShellWord> {
    let words = text
        .split(|c: char| !is_part(c))
        .filter(|word| !word.is_empty());
    words
        .map(|word| ShellWord {
            raw: word.to_owned(),
            pieces: vec![ShellWordPart::Text(word.to_owned())],
        })
        .collect()
}

/// Whether a command that a rule means begins at one of the words.
fn is_mentioned(pattern: &GlobPattern, words: &[ShellWord]) -> bool {
    let start = pattern.start();
    let wanted = start.split(' ').next().unwrap_or_default();
    let is_git = wanted == "git";
    (0..words.len()).any(|at| {
        let name = program(&words[at]);
        let is_it = match start.contains(' ') || pattern.is_exact() {
            true => name == wanted || (is_git && name.starts_with("git-")),
            false => name.starts_with(wanted),
        };
        if !is_it {
            return false;
        }
        let words = &words[at..words.len().min(at + WORDS)];
        let part = |words: &[ShellWord]| ShellCommandPart {
            words: words.to_vec(),
            ..ShellCommandPart::default()
        };
        let texts = CommandTexts::of(&part(words));
        let short = start.split(' ').count().min(words.len());
        texts.fit(pattern)
            || texts.could_fit(pattern)
            || pattern.fits_loosely(words)
            || (pattern.is_exact() && CommandTexts::of(&part(&words[..short])).fit(pattern))
    })
}
