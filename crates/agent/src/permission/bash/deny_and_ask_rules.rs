//! What denies and what wants to be asked: it looks into strings, and at what a hole could become.

use std::path::PathBuf;

use super::command_texts::{CommandTexts, inner, known_text, program, replaced};
use super::git_command::GitCommand;
use super::hidden_commands::FedText;
use super::known_programs::{SHELLS, feeder};
use super::working_folder::follow;
use super::{
    DEEPEST, PermissionFindings, PermissionPolicy, PermissionReason, irreversible_commands,
};
use crate::permission::shell_parser::{
    self, ShellCommandPart, ShellScript, ShellWord, ShellWordPart,
};
use crate::settings::RuleKind;

impl PermissionPolicy {
    /// What denies, what wants to be asked, and what cannot be undone.
    pub(super) fn strict(
        &self,
        command: &str,
        script: &ShellScript,
        from: &[PathBuf],
        depth: usize,
        ruling: &mut PermissionFindings,
    ) {
        for (rule, pattern) in self.commands(RuleKind::Deny) {
            if pattern.fits(command.trim()) {
                ruling.deny(PermissionReason::of("denied by rule", rule));
            }
        }
        for (rule, pattern) in self.commands(RuleKind::Ask) {
            if pattern.fits(command.trim()) {
                ruling.firm(PermissionReason::of("an ask rule matches", rule));
            }
        }
        if script.functions.iter().any(|name| name == ":") {
            ruling.firm(PermissionReason::new("redefines `:`, as fork bombs do"));
        }
        self.strict_patterns(script, ruling);
        self.guard_fed(script, from, ruling);
        if let Some(name) = irreversible_commands::calls_itself_twice(command, script) {
            let text = format!("`{name}` starts itself again and again, which fills a machine");
            ruling.firm(PermissionReason::new(text));
        }
        let mut cwds = self.first_cwds(script, from);
        let input = FedText::of(script);
        for part in &script.parts {
            self.strict_part(part, ruling);
            self.strict_hidden(part, &input, ruling);
            self.guard(part, script, &input, &cwds, ruling);
            self.named_files(part, &cwds, ruling);
            self.named_input(part, &input, &cwds, ruling);
            self.strict_inside(part, cwds.as_deref().unwrap_or(from), depth, ruling);
            follow(part, &mut cwds, &self.home);
        }
        self.strict_read_by_shell(script, from, depth, ruling);
    }

    /// Options of the shell under which a pattern means other files than it seems to.
    fn strict_patterns(&self, script: &ShellScript, ruling: &mut PermissionFindings) {
        let changes = |part: &ShellCommandPart| {
            let called = part.words.iter().any(|word| program(word) == "shopt");
            called
                || part
                    .assigns
                    .iter()
                    .any(|assign| assign.name == "GLOBIGNORE")
        };
        if let Some(rule) = self.rules_of(RuleKind::Deny, "Read").next()
            && script.parts.iter().any(changes)
        {
            let text = "changes what globs match, and a deny rule may match the result";
            ruling.firm(PermissionReason::of(text, rule));
        }
    }

    /// Looks into what a shell reads: `echo 'rm -rf /' | sh`, and here-documents.
    fn strict_read_by_shell(
        &self,
        script: &ShellScript,
        from: &[PathBuf],
        depth: usize,
        ruling: &mut PermissionFindings,
    ) {
        let is_shell = |part: &ShellCommandPart| {
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
            if let Ok(script) = shell_parser::parse(&text) {
                self.strict(&text, &script, from, depth + 1, ruling);
            }
        }
    }

    fn strict_part(&self, part: &ShellCommandPart, ruling: &mut PermissionFindings) {
        if part.words.is_empty() {
            return;
        }
        let texts = CommandTexts::of(part);
        for (rule, pattern) in self.commands(RuleKind::Deny) {
            if texts.fit(pattern) {
                ruling.deny(PermissionReason::of(
                    format!("`{}` is denied by rule", texts.name()),
                    rule,
                ));
            } else if texts.could_fit(pattern) || pattern.fits_loosely(inner(part).0) {
                let text = format!(
                    "cannot resolve `{}` in advance, and a deny rule may match it",
                    texts.name()
                );
                ruling.firm(PermissionReason::of(text, rule));
            }
        }
        self.strict_names(part, ruling);
        for (rule, pattern) in self.commands(RuleKind::Ask) {
            let loosely = || pattern.fits_loosely(inner(part).0);
            if texts.fit(pattern) || texts.could_fit(pattern) || loosely() {
                let text = format!("an ask rule matches `{}`", texts.name());
                ruling.firm(PermissionReason::of(text, rule));
            }
        }
    }

    /// `git -c alias.x=push x` has a name for a command that no rule knows.
    fn strict_names(&self, part: &ShellCommandPart, ruling: &mut PermissionFindings) {
        for (index, word) in part.words.iter().enumerate() {
            let call = GitCommand::read(&part.words[index + 1..]);
            let is_alias = |word: &ShellWord| known_text(word).to_lowercase().starts_with("alias.");
            let configures =
                call.name().as_deref() == Some("config") && call.command.iter().any(is_alias);
            if program(word) != "git" || !(call.names_commands() || configures) {
                continue;
            }
            let limits = self
                .commands(RuleKind::Deny)
                .chain(self.commands(RuleKind::Ask));
            let mut about_git = limits.filter(|(_, pattern)| pattern.start().starts_with("git"));
            if let Some((rule, _)) = about_git.next() {
                let text = "defines a git alias for a command that a rule may match";
                ruling.firm(PermissionReason::of(text, rule));
            }
        }
    }

    /// Looks into the strings of programs that run strings.
    fn strict_inside(
        &self,
        part: &ShellCommandPart,
        from: &[PathBuf],
        depth: usize,
        ruling: &mut PermissionFindings,
    ) {
        let (words, runs) = inner(part);
        let is_script = |c: char| c.is_whitespace() || ";&|<>$`(".contains(c);
        let mut texts = named_scripts(words);
        if runs {
            let mark = feeder(&part.words).map(|(_, mark)| mark);
            let known = |word: &&ShellWord| !word.is_open() || !known_text(word).is_empty();
            let scripts = words.iter().filter(known);
            let scripts = scripts.filter(|word| script_text(word).contains(is_script));
            texts.extend(scripts.map(|word| match &mark {
                Some(mark) => script_text(&replaced(word, mark)),
                None => script_text(word),
            }));
        }
        for text in texts.into_iter().filter(|text| text.contains(is_script)) {
            match shell_parser::parse(&text) {
                Ok(script) if depth < DEEPEST => {
                    self.strict(&text, &script, from, depth + 1, ruling);
                }
                Ok(_) => self.rule_unknown(&text, "nested too deeply", ruling),
                // A string that is no command is one only if it could deny something.
                Err(why) if self.commands(RuleKind::Deny).next().is_some() => {
                    self.rule_unknown(&text, &why, ruling);
                }
                Err(_) => {}
            }
        }
    }
}

/// Scripts that a command puts together of its words, or gives a name.
fn named_scripts(words: &[ShellWord]) -> Vec<String> {
    let Some(first) = words.first() else {
        return Vec::new();
    };
    let rest = words[1..].iter().map(script_text);
    match program(first).as_str() {
        "eval" | "ssh" | "watch" => vec![rest.collect::<Vec<_>>().join(" ")],
        "alias" => rest
            .filter_map(|text| Some(text.split_once('=')?.1.to_owned()))
            .collect(),
        "git" => rest
            .filter_map(|text| match text.strip_prefix('!') {
                Some(script) => Some(script.to_owned()),
                None => Some(text.split_once("=!")?.1.to_owned()),
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// A word as a shell would read it, with a variable for what is not known yet.
pub(super) fn script_text(word: &ShellWord) -> String {
    let mut text = String::new();
    for piece in &word.pieces {
        match piece {
            ShellWordPart::Text(part) => text.push_str(part),
            ShellWordPart::Home => text.push('~'),
            ShellWordPart::Glob(c) => text.push(*c),
            ShellWordPart::Hole { .. } => text.push_str("$unknown"),
        }
    }
    text
}
