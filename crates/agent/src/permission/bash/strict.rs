//! What denies and what wants to be asked: it looks into strings, and at what a hole could become.

use std::path::PathBuf;

use super::git_command::GitCommand;
use super::programs::SHELLS;
use super::texts::{Texts, inner, known_text, program};
use super::working_folder::follow;
use super::{DEEPEST, Policy, Reason, Ruling};
use crate::permission::shell::{self, Part, Piece, Script, Word};
use crate::settings::Kind;

impl Policy {
    /// What denies, what wants to be asked, and what cannot be undone.
    pub(super) fn strict(
        &self,
        command: &str,
        script: &Script,
        from: &[PathBuf],
        depth: usize,
        ruling: &mut Ruling,
    ) {
        for (rule, pattern) in self.commands(Kind::Deny) {
            if pattern.fits(command.trim()) {
                ruling.deny(Reason::of("a rule denies it", rule));
            }
        }
        for (rule, pattern) in self.commands(Kind::Ask) {
            if pattern.fits(command.trim()) {
                ruling.firm(Reason::of("a rule wants to be asked", rule));
            }
        }
        if script.functions.iter().any(|name| name == ":") {
            ruling.firm(Reason::new(
                "it defines `:` anew, which nobody does but to fill a machine",
            ));
        }
        self.strict_patterns(script, ruling);
        self.guard_fed(script, from, ruling);
        let mut cwds = self.first_cwds(script, from);
        for part in &script.parts {
            self.strict_part(part, ruling);
            self.guard(part, &cwds, ruling);
            self.named_files(part, &cwds, ruling);
            self.strict_inside(part, cwds.as_deref().unwrap_or(from), depth, ruling);
            follow(part, &mut cwds, &self.home);
        }
        self.strict_read_by_shell(script, from, depth, ruling);
    }

    /// Options of the shell under which a pattern means other files than it seems to.
    fn strict_patterns(&self, script: &Script, ruling: &mut Ruling) {
        let changes = |part: &Part| {
            let called = part.words.iter().any(|word| program(word) == "shopt");
            called
                || part
                    .assigns
                    .iter()
                    .any(|assign| assign.name == "GLOBIGNORE")
        };
        if let Some(rule) = self.rules_of(Kind::Deny, "Read").next()
            && script.parts.iter().any(changes)
        {
            let text = "a rule might deny what patterns mean after this";
            ruling.firm(Reason::of(text, rule));
        }
    }

    /// Looks into what a shell reads: `echo 'rm -rf /' | sh`, and here-documents.
    fn strict_read_by_shell(
        &self,
        script: &Script,
        from: &[PathBuf],
        depth: usize,
        ruling: &mut Ruling,
    ) {
        let is_shell = |part: &Part| {
            let (words, runs) = inner(part);
            let mut words = words.iter().take(if runs { 24 } else { 1 });
            words.any(|word| SHELLS.contains(&program(word).as_str()))
        };
        if depth >= DEEPEST || !script.parts.iter().any(is_shell) {
            return;
        }
        let mut texts = script.documents.clone();
        for part in &script.parts {
            let name = part.words.first().map(program).unwrap_or_default();
            if ["echo", "printf"].contains(&name.as_str()) {
                let words: Vec<String> = part.words[1..].iter().map(script_text).collect();
                texts.push(words.join(" "));
            }
            texts.extend(part.values.iter().map(script_text));
        }
        for text in texts {
            // What is no command is text for something else.
            if let Ok(script) = shell::parse(&text) {
                self.strict(&text, &script, from, depth + 1, ruling);
            }
        }
    }

    fn strict_part(&self, part: &Part, ruling: &mut Ruling) {
        if part.words.is_empty() {
            return;
        }
        let texts = Texts::of(part);
        for (rule, pattern) in self.commands(Kind::Deny) {
            if texts.fit(pattern) {
                ruling.deny(Reason::of(
                    format!("a rule denies `{}`", texts.name()),
                    rule,
                ));
            } else if texts.could_fit(pattern) {
                let text = format!(
                    "a rule might deny `{}`, which is not known yet",
                    texts.name()
                );
                ruling.firm(Reason::of(text, rule));
            }
        }
        self.strict_names(part, ruling);
        for (rule, pattern) in self.commands(Kind::Ask) {
            if texts.fit(pattern) || texts.could_fit(pattern) {
                let text = format!("a rule wants to be asked about `{}`", texts.name());
                ruling.firm(Reason::of(text, rule));
            }
        }
    }

    /// `git -c alias.x=push x` has a name for a command that no rule knows.
    fn strict_names(&self, part: &Part, ruling: &mut Ruling) {
        for (index, word) in part.words.iter().enumerate() {
            if program(word) != "git"
                || !GitCommand::read(&part.words[index + 1..]).names_commands()
            {
                continue;
            }
            let limits = self.commands(Kind::Deny).chain(self.commands(Kind::Ask));
            let mut about_git = limits.filter(|(_, pattern)| pattern.start().starts_with("git"));
            if let Some((rule, _)) = about_git.next() {
                let text = "a rule might mean the command that git is given a name for";
                ruling.firm(Reason::of(text, rule));
            }
        }
    }

    /// Looks into the strings of programs that run strings.
    fn strict_inside(&self, part: &Part, from: &[PathBuf], depth: usize, ruling: &mut Ruling) {
        let (words, runs) = inner(part);
        if !runs {
            return;
        }
        for word in words {
            let text = script_text(word);
            if word.is_open() && known_text(word).is_empty() {
                continue;
            }
            let is_script = text.contains(|c: char| c.is_whitespace() || ";&|<>$`(".contains(c));
            if !is_script {
                continue;
            }
            match shell::parse(&text) {
                Ok(script) if depth < DEEPEST => {
                    self.strict(&text, &script, from, depth + 1, ruling);
                }
                Ok(_) => self.rule_unknown(&text, "it is nested too deeply", ruling),
                // A string that is no command is one only if it could deny something.
                Err(why) if self.commands(Kind::Deny).next().is_some() => {
                    self.rule_unknown(&text, &why, ruling);
                }
                Err(_) => {}
            }
        }
    }
}

/// A word as a shell would read it, with a variable for what is not known yet.
fn script_text(word: &Word) -> String {
    let mut text = String::new();
    for piece in &word.pieces {
        match piece {
            Piece::Text(part) => text.push_str(part),
            Piece::Home => text.push('~'),
            Piece::Glob(c) => text.push(*c),
            Piece::Hole { .. } => text.push_str("$unknown"),
        }
    }
    text
}
