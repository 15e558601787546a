//! What cannot be undone, wherever it stands in a command: behind wrappers, in searches, fed by others.

use std::path::PathBuf;

use super::command_texts::{inner, known_text, program, replaced};
use super::deny_and_ask_rules::script_text;
use super::hidden_commands::{FedText, obeys_input, takes_words_as_data, words_in};
use super::known_programs::{FEEDERS, FINDS, feeder, stripped};
use super::option_effects::{self, ArgumentEffect};
use super::{Cwds, PermissionFindings, PermissionPolicy, PermissionReason};
use crate::permission::destructive::{changes_rights, is_grave};
use crate::permission::removal_guard::removes;
use crate::permission::shell_parser::{ShellCommandPart, ShellScript, ShellWord};

impl PermissionPolicy {
    /// `find / | xargs rm`: what a search finds is removed by another part.
    pub(super) fn guard_fed(
        &self,
        script: &ShellScript,
        from: &[PathBuf],
        ruling: &mut PermissionFindings,
    ) {
        let feeds = |part: &ShellCommandPart| {
            let names: Vec<String> = part.words.iter().map(program).collect();
            let feeds = names.iter().any(|name| FEEDERS.contains(&name.as_str()));
            feeds
                && names
                    .iter()
                    .any(|name| removes(name) || changes_rights(name))
        };
        if !script.parts.iter().any(feeds) {
            return;
        }
        let cwds = self.first_cwds(script, from);
        for part in &script.parts {
            let (words, _) = inner(part);
            let Some(place) = words.iter().position(|word| program(word) == "find") else {
                continue;
            };
            let starts = find_starts(&words[place + 1..]);
            if let Some(why) = self.guard_search(&starts, cwds.as_deref()) {
                ruling.firm(why);
            }
        }
    }

    /// Guards what cannot be undone, also behind wrappers.
    pub(super) fn guard(
        &self,
        part: &ShellCommandPart,
        script: &ShellScript,
        input: &FedText,
        cwds: &Cwds,
        ruling: &mut PermissionFindings,
    ) {
        let folders = cwds.as_deref();
        for redirect in part.redirects.iter().filter(|one| one.writes) {
            let text = known_text(&redirect.target);
            if let Some(why) = self.guard_device(&text, &redirect.target.raw, folders) {
                ruling.firm(why);
            }
        }
        let (words, runs) = inner(part);
        let Some(first) = words.first() else {
            return;
        };
        let name = program(first);
        let is_find = name == "find";
        // Their words are run where `"$@"` stands.
        let runs = runs || name == "set" || script.functions.contains(&name);
        let fed = feeder(&part.words);
        let replaced: Vec<ShellWord> = match &fed {
            Some((_, mark)) => words.iter().map(|word| replaced(word, mark)).collect(),
            None => words.to_vec(),
        };
        let words = &replaced[..];
        let added = match fed {
            Some(_) => input
                .texts
                .iter()
                .flat_map(|text| plain_words(text))
                .collect(),
            None => Vec::new(),
        };
        self.guard_code(part, input, folders, ruling);
        for (index, word) in words.iter().enumerate() {
            let is_command = match (index, is_find) {
                (0, _) => true,
                (_, true) => RUNNING.contains(&known_text(&words[index - 1]).as_str()),
                (_, false) => runs,
            };
            if is_command {
                let operands = [&words[index + 1..], &added].concat();
                self.guard_command(word, &operands, folders, ruling);
                self.guard_unseen(word, &operands, part, ruling);
            }
        }
        for effect in option_effects::effects(words) {
            if let ArgumentEffect::Writes(target) = effect
                && let Some(why) = self.guard_device(&known_text(&target), &target.raw, folders)
            {
                ruling.firm(why);
            }
        }
    }

    fn guard_command(
        &self,
        word: &ShellWord,
        operands: &[ShellWord],
        cwds: Option<&[PathBuf]>,
        ruling: &mut PermissionFindings,
    ) {
        let name = program(word);
        let recursive = is_recursive(operands);
        if removes(&name)
            && let Some(why) = self.guard_removal(operands, cwds)
        {
            ruling.firm(why);
        }
        // A program that is not known yet and gets what `rm` gets could be `rm`.
        if word.is_open() && recursive {
            let known: Vec<ShellWord> = operands
                .iter()
                .filter(|word| !word.is_open())
                .cloned()
                .collect();
            if let Some(why) = self.guard_removal(&known, cwds) {
                ruling.firm(why);
            }
        }
        if let Some(why) = self.guard_machine(&name, operands, cwds) {
            ruling.firm(why);
        }
        let acts = |word: &ShellWord| FINDS.contains(&known_text(word).as_str());
        if name == "find" && operands.iter().any(acts) {
            let starts = find_starts(operands);
            if let Some(why) = self.guard_search(&starts, cwds) {
                ruling.firm(why);
            }
        }
    }
}

impl PermissionPolicy {
    /// `cat list | xargs chmod -R 777`: what is taken away or changed is not known yet.
    fn guard_unseen(
        &self,
        word: &ShellWord,
        operands: &[ShellWord],
        part: &ShellCommandPart,
        ruling: &mut PermissionFindings,
    ) {
        let name = program(word);
        let Some((feeder, _)) = feeder(&part.words) else {
            return;
        };
        let whole = removes(&name) || changes_rights(&name);
        if (whole && is_recursive(operands)) || is_grave(&name) {
            let feeder = program(&part.words[feeder]);
            let text = format!("what `{feeder}` would give to `{name}` is not known yet");
            ruling.firm(PermissionReason::new(text));
        }
    }

    /// Looks for what destroys in code: in the words of a program and in what it reads and runs.
    fn guard_code(
        &self,
        part: &ShellCommandPart,
        input: &FedText,
        cwds: Option<&[PathBuf]>,
        ruling: &mut PermissionFindings,
    ) {
        let start = stripped(&part.words).unwrap_or(0);
        let mut texts = Vec::new();
        if !takes_words_as_data(&part.words[start..]) {
            let words = part.words[start..].iter().map(script_text);
            texts.extend(words.filter(|text| text.contains([' ', '(', '\n', '!'])));
        }
        let is_unknown = part.words.first().is_some_and(ShellWord::is_open);
        if obeys_input(part, start) || is_unknown || feeder(&part.words).is_some() {
            texts.extend(input.texts.iter().cloned());
        }
        for text in texts {
            let words = words_in(&text);
            for (at, word) in words.iter().enumerate() {
                let name = program(word);
                let rest = &words[at + 1..];
                let removes = removes(&name) && is_recursive(rest);
                if removes || changes_rights(&name) || is_grave(&name) {
                    self.guard_command(word, rest, cwds, ruling);
                }
            }
            if DELETING.iter().any(|name| text.contains(name))
                && let Some(taken) = words.iter().find_map(|word| self.names_machine(word))
            {
                let text = format!("its code would remove {taken}");
                ruling.firm(PermissionReason::new(text));
            }
        }
    }
}

/// Functions of languages that remove a folder with all that lies in it.
const DELETING: &[&str] = &[
    "deleteTree",
    "fs.rm",
    "removeSync",
    "remove_dir_all",
    "remove_entry",
    "remove_tree",
    "rm_r",
    "rmdirSync",
    "rmSync",
    "rmtree",
];

/// The name of a function that starts itself in a pipe or beside itself.
pub(super) fn calls_itself_twice(command: &str, script: &ShellScript) -> Option<String> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-' || c == ':';
    let starts = |name: &str| {
        let calls = |body: &str| body.split(|c| !is_name(c)).any(|word| word == name);
        command.match_indices(name).any(|(at, _)| {
            let rest = command[at + name.len()..].trim_start();
            let rest = rest.strip_prefix("()").unwrap_or(rest).trim_start();
            let Some((body, _)) = rest
                .strip_prefix(['{', '('])
                .and_then(|rest| rest.split_once(['}', ')']))
            else {
                return false;
            };
            body.contains(['|', '&']) && calls(body)
        })
    };
    script.functions.iter().find(|name| starts(name)).cloned()
}

/// The words of a text, as `xargs` takes them.
fn plain_words(text: &str) -> Vec<ShellWord> {
    let words = text
        .split_whitespace()
        .map(|word| word.trim_matches(['"', '\'']));
    words
        .map(|word| ShellWord {
            raw: word.to_owned(),
            pieces: vec![crate::permission::shell_parser::ShellWordPart::Text(
                word.to_owned(),
            )],
        })
        .collect()
}

fn is_recursive(operands: &[ShellWord]) -> bool {
    operands.iter().any(|word| {
        let text = known_text(word);
        text.starts_with("--rec") || is_cluster_with(&text, ['r', 'R'])
    })
}

/// Arguments of `find` behind which a command stands.
const RUNNING: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];

/// The folders that `find` begins in.
fn find_starts(operands: &[ShellWord]) -> Vec<ShellWord> {
    let is_option = |word: &&ShellWord| {
        let text = known_text(word);
        ["-H", "-L", "-P"].contains(&text.as_str()) || text.starts_with("-O")
    };
    let starts = operands.iter().skip_while(is_option);
    let starts = starts.take_while(|word| !known_text(word).starts_with(['-', '(', '!']));
    starts.cloned().collect()
}

/// Whether short options in one word hold one of these letters.
fn is_cluster_with(text: &str, letters: [char; 2]) -> bool {
    text.starts_with('-') && !text.starts_with("--") && text.contains(letters)
}
