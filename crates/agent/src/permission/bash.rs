//! Commands: every part of one must be allowed, and one part that is denied is enough.
//!
//! What denies looks further than what allows: past variables and wrappers, into strings that a
//! shell will run, and at what a hole could become. What allows takes the words as they stand.

mod arriving_files;
mod builtin_assignments;
mod command_texts;
mod deny_and_ask_rules;
mod folder_readers;
mod git_command;
mod hidden_commands;
mod irreversible_commands;
mod known_programs;
mod loose_words;
mod named_files;
mod option_effects;
mod working_folder;

use std::path::{Path, PathBuf};

use super::explain::CommandPartFinding;
use super::glob::GlobPattern;
use super::offered_rules::runs_its_input;
use super::path::ResolvedPath;
use super::rule::{PermissionRule, RuleTarget};
use super::shell_parser::{self, ShellCommandPart, ShellScript, ShellWord, ShellWordPart};
use super::{PermissionFindings, PermissionMode, PermissionPolicy, PermissionReason};
use crate::settings::RuleKind;
use command_texts::{joined, program, raw, shown};
use known_programs::{called, is_harmless, is_safe, only_reads};
use option_effects::ArgumentEffect;
use working_folder::follow;

pub(super) use command_texts::{known_text, raw_path, shown_part};
pub(super) use known_programs::{RUNNERS, is_never, only_takes_data, stripped};
pub(super) use named_files::is_known;

/// Longer commands are not looked into.
pub const LONGEST: usize = 10_000;

/// Strings that a shell will run, in strings that a shell will run.
const DEEPEST: usize = 4;
/// Where a part may run: all folders that are possible, or nobody knows.
type Cwds = Option<Vec<PathBuf>>;

/// Why nothing allows a part.
struct NotAllowedReason {
    why: String,
    /// Whether a rule could.
    a_rule_helps: bool,
}

impl From<String> for NotAllowedReason {
    fn from(why: String) -> NotAllowedReason {
        NotAllowedReason {
            why,
            a_rule_helps: true,
        }
    }
}

impl PermissionPolicy {
    /// Judges a command.
    pub(super) fn rule_bash(&self, command: &str, cwd: &Path) -> PermissionFindings {
        let mut ruling = PermissionFindings::default();
        if let Some(rule) = self.whole(RuleKind::Deny) {
            ruling.deny(PermissionReason::of("denied by rule", rule));
            return ruling;
        }
        if command.trim().is_empty() {
            ruling.firm(PermissionReason::new("the command is empty"));
            return ruling;
        }
        let script = match command.chars().count() > LONGEST {
            true => Err(format!("longer than {LONGEST} characters")),
            false => shell_parser::parse(command),
        };
        match script {
            Ok(script) => self.rule_script(command, &script, cwd, &mut ruling),
            Err(why) => self.rule_unknown(command, &why, &mut ruling),
        }
        ruling
    }

    /// A rule about all commands.
    fn whole(&self, kind: RuleKind) -> Option<&PermissionRule> {
        self.rules_of(kind, "Bash")
            .find(|rule| matches!(rule.what, RuleTarget::All | RuleTarget::Unknown))
    }

    fn commands(&self, kind: RuleKind) -> impl Iterator<Item = (&PermissionRule, &GlobPattern)> {
        self.rules_of(kind, "Bash")
            .filter_map(|rule| match &rule.what {
                RuleTarget::Command(pattern) => Some((rule, pattern)),
                _ => None,
            })
    }

    /// A command that is not understood: asked about, or denied if a rule that denies might apply.
    fn rule_unknown(&self, command: &str, why: &str, ruling: &mut PermissionFindings) {
        let hides = command.contains(['$', '`', '\\', '\'', '"', '*', '?', '[', '{', '~']);
        for (rule, pattern) in self.commands(RuleKind::Deny) {
            let start = pattern.start();
            let program = start.split(' ').next().unwrap_or_default();
            if hides || program.is_empty() || command.contains(program) {
                let text =
                    format!("cannot parse the command ({why}), and a deny rule may match it");
                ruling.deny(PermissionReason::of(text, rule));
                return;
            }
        }
        ruling.firm(PermissionReason::new(format!(
            "cannot parse the command: {why}"
        )));
    }

    fn rule_script(
        &self,
        command: &str,
        script: &ShellScript,
        cwd: &Path,
        ruling: &mut PermissionFindings,
    ) {
        self.strict(command, script, &[cwd.to_path_buf()], 0, ruling);
        if let Some(rule) = self.whole(RuleKind::Ask) {
            ruling.firm(PermissionReason::of("an ask rule matches", rule));
        }
        ruling.reads = script.parts.iter().all(only_reads);
        let all = self
            .rules_of(RuleKind::Allow, "Bash")
            .find(|rule| match &rule.what {
                RuleTarget::All => true,
                RuleTarget::Command(pattern) => pattern.is_exact() && pattern.fits(command.trim()),
                _ => false,
            });
        let mut cwds = self.first_cwds(script, &[cwd.to_path_buf()]);
        // In a loop the folder that a later part goes to is where an earlier one runs next.
        let mut moved = script.repeats && script.parts.iter().any(|part| self.moves(part, cwd));
        for part in &script.parts {
            self.open_files(part, &cwds, ruling);
            self.output_files(part, &cwds, ruling);
            let found = match all {
                Some(rule) => self.allow_whole(rule, part, &cwds),
                None => self.allow(part, script, &cwds, moved),
            };
            self.note(part, &found, ruling);
            follow(part, &mut cwds, &self.home);
            moved |= self.moves(part, cwd);
        }
        if ruling.soft.is_none() && ruling.by.is_none() {
            ruling.allow(PermissionReason::new("only changes the working directory"));
        }
    }

    fn note(
        &self,
        part: &ShellCommandPart,
        found: &Result<Option<PermissionReason>, NotAllowedReason>,
        ruling: &mut PermissionFindings,
    ) {
        let text = shown_part(part);
        if text.is_empty() {
            return;
        }
        match found {
            Ok(Some(by)) => {
                ruling.allow(by.clone());
                ruling
                    .steps
                    .push(CommandPartFinding::new(text, "allowed", by.clone()));
            }
            Ok(None) => {
                let by = PermissionReason::new("no effect of its own");
                ruling
                    .steps
                    .push(CommandPartFinding::new(text, "allowed", by));
            }
            Err(not) => {
                let why = PermissionReason::new(not.why.clone());
                ruling.soft(why.clone());
                ruling
                    .steps
                    .push(CommandPartFinding::new(text, "asks", why));
                if not.a_rule_helps
                    && let Some(rule) = super::offered_rules::for_part(part)
                    && !ruling.always.contains(&rule)
                {
                    ruling.always.push(rule);
                }
            }
        }
    }

    /// Files that options of a program write.
    fn output_files(&self, part: &ShellCommandPart, cwds: &Cwds, ruling: &mut PermissionFindings) {
        let Some(start) = stripped(&part.words) else {
            return;
        };
        let words = called(&part.words, start);
        let name = words.first().map(program).unwrap_or_default();
        for effect in option_effects::effects(&words) {
            let ArgumentEffect::Writes(target) = effect else {
                continue;
            };
            if target.raw == "-" {
                continue;
            }
            if option_effects::is_reading(&name) {
                self.open_file(&target, true, cwds, ruling);
                continue;
            }
            // What a program is for, its rule allows; not what rules deny, nor what nobody knows.
            if target.is_open() {
                let text = format!("cannot resolve the path {} in advance", target.raw);
                ruling.soft(PermissionReason::new(text));
            }
            for cwd in cwds.iter().flatten() {
                let place = ResolvedPath::of(&raw_path(&target), cwd, &self.home);
                let denies = |rule: &&PermissionRule| rule.fits_file(&place);
                if let Some(rule) = self.rules_of(RuleKind::Deny, "Edit").find(denies) {
                    let shown = place.written.display();
                    let text = format!("writing to {shown} is denied by rule");
                    ruling.deny(PermissionReason::of(text, rule));
                }
            }
        }
    }

    /// Files that redirections open.
    fn open_files(&self, part: &ShellCommandPart, cwds: &Cwds, ruling: &mut PermissionFindings) {
        for redirect in &part.redirects {
            self.open_file(&redirect.target, redirect.writes, cwds, ruling);
        }
    }

    fn open_file(
        &self,
        target: &ShellWord,
        writes: bool,
        cwds: &Cwds,
        ruling: &mut PermissionFindings,
    ) {
        if matches!(
            target.raw.as_str(),
            "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/stdin"
        ) {
            return;
        }
        let before = ruling.soft.is_some() || ruling.firm.is_some() || ruling.deny.is_some();
        match (target.is_open(), cwds) {
            (false, Some(cwds)) => {
                for cwd in cwds {
                    let place = ResolvedPath::of(&raw_path(target), cwd, &self.home);
                    match writes {
                        true => self.write("Edit", &place, ruling),
                        false => self.read("Read", &place, ruling),
                    }
                }
            }
            _ => {
                let text = format!("cannot resolve the path {} in advance", target.raw);
                let tool = if writes { "Edit" } else { "Read" };
                match self.rules_of(RuleKind::Deny, tool).next() {
                    Some(rule) => ruling.firm(PermissionReason::of(text, rule)),
                    None => ruling.soft(PermissionReason::new(text)),
                }
            }
        }
        let sign = if writes { ">" } else { "<" };
        let step = format!("{sign} {}", target.raw);
        let after = ruling
            .deny
            .as_ref()
            .or(ruling.firm.as_ref())
            .or(ruling.soft.as_ref());
        if let (false, Some(why)) = (before, after) {
            ruling
                .steps
                .push(CommandPartFinding::new(step, "asks", why.clone()));
        }
    }

    /// What allows a part: a rule, the mode, or that it does nothing by itself.
    fn allow(
        &self,
        part: &ShellCommandPart,
        script: &ShellScript,
        cwds: &Cwds,
        moved: bool,
    ) -> Result<Option<PermissionReason>, NotAllowedReason> {
        let no_rule_helps = |why: String| NotAllowedReason {
            why,
            a_rule_helps: false,
        };
        for assign in &part.assigns {
            if !is_safe(&assign.name, assign.lasting) {
                let why = format!("setting {} may change what programs do", assign.name);
                return Err(why.into());
            }
        }
        let Some(first) = part.words.first() else {
            return Ok(None);
        };
        if first.is_open() {
            return Err(format!("cannot resolve the program {} in advance", first.raw).into());
        }
        let not_clear = || Err(format!("cannot tell what {} runs", first.raw).into());
        let Some(start) = stripped(&part.words) else {
            return not_clear();
        };
        let words = &part.words[start..];
        let Some(inner) = words.first() else {
            return not_clear();
        };
        if inner.is_open() {
            return Err(format!("cannot resolve the program {} in advance", inner.raw).into());
        }
        if let Some(name) = builtin_assignments::unsafe_assignment(words) {
            return Err(format!("setting {name} may change what programs do").into());
        }
        if let Some(word) = words[1..].iter().find(|word| is_option_pattern(word)) {
            let why = format!("{} could expand to a hidden option", word.raw);
            return Err(no_rule_helps(why));
        }
        let called = called(&part.words, start);
        if runs_by_options(&called)
            && let Some(word) = called[1..].iter().find(|word| begins_as_pattern(word))
        {
            let why = format!("{} could expand to an option that runs a command", word.raw);
            return Err(no_rule_helps(why));
        }
        if let Some(why) = self.git_elsewhere(&called, cwds, moved) {
            return Err(no_rule_helps(why));
        }
        let never = is_never(&called);
        let name = shown(inner);
        let is_own = script.functions.contains(&name);
        if !is_own && start == 0 {
            if self.allows_move(&name, words, cwds) {
                return Ok(None);
            }
            if is_harmless(&name) && words.iter().all(|word| !word.is_open()) {
                return Ok(None);
            }
        }
        let runs_input = part.fed && runs_its_input(words);
        if let Some(rule) = self.allowing(part, start, never, runs_input) {
            return Ok(Some(PermissionReason::of("allowed by rule", rule)));
        }
        if runs_input {
            let why = format!("`{name}` executes its input, which no rule can check");
            return Err(no_rule_helps(why));
        }
        if !is_own
            && self.mode == PermissionMode::AcceptEdits
            && self.is_small_edit(&name, words, cwds)
        {
            return Ok(Some(PermissionReason::new(
                "mode acceptEdits, inside the project",
            )));
        }
        match never {
            true => {
                let why =
                    format!("`{name}` can run any command, so only an exact rule can allow it");
                Err(why.into())
            }
            false => Err(format!("no rule allows `{}`", joined(words)).into()),
        }
    }

    /// What a rule about all commands, or with the text of this one, allows. Who wrote down
    /// `git status` meant the project's repository.
    fn allow_whole(
        &self,
        rule: &PermissionRule,
        part: &ShellCommandPart,
        cwds: &Cwds,
    ) -> Result<Option<PermissionReason>, NotAllowedReason> {
        let words = &part.words[stripped(&part.words).unwrap_or(0)..];
        let is_text = matches!(rule.what, RuleTarget::Command(_));
        match self.git_elsewhere(words, cwds, false).filter(|_| is_text) {
            Some(why) => Err(NotAllowedReason {
                why,
                a_rule_helps: false,
            }),
            None => Ok(Some(PermissionReason::of("allowed by rule", rule))),
        }
    }

    /// The rule that allows a part. Where code comes in, one with its exact words does not: who
    /// wrote it down saw none of that code. One with a star is meant to allow any.
    fn allowing(
        &self,
        part: &ShellCommandPart,
        start: usize,
        never: bool,
        runs_input: bool,
    ) -> Option<&PermissionRule> {
        let words = &part.words[start..];
        let texts = [joined(words), raw(words)];
        let whole = [joined(&part.words), raw(&part.words)];
        self.commands(RuleKind::Allow)
            .find(|(_, pattern)| match pattern.is_exact() {
                true => {
                    let mut texts = texts.iter().chain(&whole);
                    !runs_input && texts.any(|text| pattern.fits(text))
                }
                false => !never && texts.iter().any(|text| pattern.fits(text)),
            })
            .map(|(rule, _)| rule)
    }

    /// Making and moving plain files in the project, while edits are accepted.
    fn is_small_edit(&self, name: &str, words: &[ShellWord], cwds: &Cwds) -> bool {
        if !["mkdir", "touch", "cp", "mv"].contains(&name) {
            return false;
        }
        let Some(cwds) = cwds else { return false };
        let mut count = 0;
        for word in &words[1..] {
            let text = raw_path(word);
            if name == "mkdir" && text == "-p" {
                continue;
            }
            if word.is_open() || text.is_empty() || text.starts_with('-') {
                return false;
            }
            count += 1;
            let is_fine = cwds.iter().all(|cwd| {
                let mut ruling = PermissionFindings::default();
                self.write(
                    "Edit",
                    &ResolvedPath::of(&text, cwd, &self.home),
                    &mut ruling,
                );
                ruling.deny.is_none() && ruling.firm.is_none() && ruling.soft.is_none()
            });
            if !is_fine {
                return false;
            }
        }
        count > 0 && self.may_arrive(words, cwds)
    }
}

/// A pattern of files that begins like an option: a file can be called so.
fn is_option_pattern(word: &ShellWord) -> bool {
    let text = known_text(word);
    let has_glob = word
        .pieces
        .iter()
        .any(|piece| matches!(piece, ShellWordPart::Glob(_)));
    has_glob && text.starts_with('-') && !text.contains('=')
}

/// A pattern whose names of files can begin with anything, also with `-`.
fn begins_as_pattern(word: &ShellWord) -> bool {
    let first = word.pieces.first();
    matches!(first, Some(ShellWordPart::Glob(_)))
}

/// Whether options of a program may run something: of all but those known for reading or writing.
fn runs_by_options(words: &[ShellWord]) -> bool {
    let name = words.first().map(program).unwrap_or_default();
    if name == "git" {
        let command = words.get(1).map(known_text).unwrap_or_default();
        return !["add", "rm", "mv"].contains(&command.as_str());
    }
    RUNNERS.contains(&name.as_str()) || !named_files::is_known(&name)
}
