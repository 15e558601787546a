//! What cannot be undone, wherever it stands in a command: behind wrappers, in searches, fed by others.

use std::path::PathBuf;

use super::effects::{self, Effect};
use super::programs::FINDS;
use super::texts::{inner, known_text, program};
use super::{Cwds, Policy, Reason, Ruling};
use crate::permission::remove::removes;
use crate::permission::shell::{Part, Script, Word};

impl Policy {
    /// `find / | xargs rm`: what a search finds is removed by another part.
    pub(super) fn guard_fed(&self, script: &Script, from: &[PathBuf], ruling: &mut Ruling) {
        let feeds = |part: &Part| {
            let names: Vec<String> = part.words.iter().map(program).collect();
            names
                .iter()
                .any(|name| name == "xargs" || name == "parallel")
                && names.iter().any(|name| removes(name))
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
    pub(super) fn guard(&self, part: &Part, cwds: &Cwds, ruling: &mut Ruling) {
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
        let is_find = program(first) == "find";
        for (index, word) in words.iter().enumerate() {
            let is_command = match (index, is_find) {
                (0, _) => true,
                (_, true) => RUNNING.contains(&known_text(&words[index - 1]).as_str()),
                (_, false) => runs,
            };
            if is_command {
                self.guard_command(word, &words[index + 1..], part, folders, ruling);
            }
        }
        for effect in effects::effects(words) {
            if let Effect::Writes(target) = effect
                && let Some(why) = self.guard_device(&known_text(&target), &target.raw, folders)
            {
                ruling.firm(why);
            }
        }
    }

    fn guard_command(
        &self,
        word: &Word,
        operands: &[Word],
        part: &Part,
        cwds: Option<&[PathBuf]>,
        ruling: &mut Ruling,
    ) {
        let name = program(word);
        let recursive = operands.iter().any(|word| {
            let text = known_text(word);
            text.starts_with("--rec") || is_cluster_with(&text, ['r', 'R'])
        });
        if removes(&name) {
            if let Some(why) = self.guard_removal(operands, cwds) {
                ruling.firm(why);
            }
            let fed = part.words.iter().map(program);
            let mut fed = fed.filter(|name| ["xargs", "parallel"].contains(&name.as_str()));
            if recursive && let Some(feeder) = fed.next() {
                let text = format!("what `{feeder}` would have removed is not known yet");
                ruling.firm(Reason::new(text));
            }
        }
        // A program that is not known yet and gets what `rm` gets could be `rm`.
        if word.is_open() && recursive {
            let known: Vec<Word> = operands
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
        let acts = |word: &Word| FINDS.contains(&known_text(word).as_str());
        if name == "find" && operands.iter().any(acts) {
            let starts = find_starts(operands);
            if let Some(why) = self.guard_search(&starts, cwds) {
                ruling.firm(why);
            }
        }
    }
}

/// Arguments of `find` behind which a command stands.
const RUNNING: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];

/// The folders that `find` begins in.
fn find_starts(operands: &[Word]) -> Vec<Word> {
    let is_option = |word: &&Word| {
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
