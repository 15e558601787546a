//! Commands: every part of one must be allowed, and one part that is denied is enough.
//!
//! What denies looks further than what allows: past variables and wrappers, into strings that a
//! shell will run, and at what a hole could become. What allows takes the words as they stand.

mod arriving_files;
mod builtin_assignments;
mod effects;
mod folder_readers;
mod git_command;
mod guard;
mod hidden_commands;
mod loose_words;
mod named_files;
mod programs;
mod strict;
mod texts;
mod working_folder;

use std::path::{Path, PathBuf};

use super::always::runs_its_input;
use super::explain::Step;
use super::glob::Pattern;
use super::path::Place;
use super::rule::{Rule, What};
use super::shell::{self, Part, Piece, Script, Word};
use super::{Mode, Policy, Reason, Ruling};
use crate::settings::Kind;
use effects::Effect;
use programs::{called, is_harmless, is_safe, only_reads};
use texts::{joined, program, raw, shown};
use working_folder::follow;

pub(super) use named_files::is_known;
pub(super) use programs::{RUNNERS, is_never, only_takes_data, stripped};
pub(super) use texts::{known_text, raw_path, shown_part};

/// Longer commands are not looked into.
pub const LONGEST: usize = 10_000;

/// Strings that a shell will run, in strings that a shell will run.
const DEEPEST: usize = 4;
/// Where a part may run: all folders that are possible, or nobody knows.
type Cwds = Option<Vec<PathBuf>>;

/// Why nothing allows a part.
struct NotAllowed {
    why: String,
    /// Whether a rule could.
    a_rule_helps: bool,
}

impl From<String> for NotAllowed {
    fn from(why: String) -> NotAllowed {
        NotAllowed {
            why,
            a_rule_helps: true,
        }
    }
}

impl Policy {
    /// Judges a command.
    pub(super) fn rule_bash(&self, command: &str, cwd: &Path) -> Ruling {
        let mut ruling = Ruling::default();
        if let Some(rule) = self.whole(Kind::Deny) {
            ruling.deny(Reason::of("denied by rule", rule));
            return ruling;
        }
        if command.trim().is_empty() {
            ruling.firm(Reason::new("the command is empty"));
            return ruling;
        }
        let script = match command.chars().count() > LONGEST {
            true => Err(format!("longer than {LONGEST} characters")),
            false => shell::parse(command),
        };
        match script {
            Ok(script) => self.rule_script(command, &script, cwd, &mut ruling),
            Err(why) => self.rule_unknown(command, &why, &mut ruling),
        }
        ruling
    }

    /// A rule about all commands.
    fn whole(&self, kind: Kind) -> Option<&Rule> {
        self.rules_of(kind, "Bash")
            .find(|rule| matches!(rule.what, What::All | What::Unknown))
    }

    fn commands(&self, kind: Kind) -> impl Iterator<Item = (&Rule, &Pattern)> {
        self.rules_of(kind, "Bash")
            .filter_map(|rule| match &rule.what {
                What::Command(pattern) => Some((rule, pattern)),
                _ => None,
            })
    }

    /// A command that is not understood: asked about, or denied if a rule that denies might apply.
    fn rule_unknown(&self, command: &str, why: &str, ruling: &mut Ruling) {
        let hides = command.contains(['$', '`', '\\', '\'', '"', '*', '?', '[', '{', '~']);
        for (rule, pattern) in self.commands(Kind::Deny) {
            let start = pattern.start();
            let program = start.split(' ').next().unwrap_or_default();
            if hides || program.is_empty() || command.contains(program) {
                let text =
                    format!("cannot parse the command ({why}), and a deny rule may match it");
                ruling.deny(Reason::of(text, rule));
                return;
            }
        }
        ruling.firm(Reason::new(format!("cannot parse the command: {why}")));
    }

    fn rule_script(&self, command: &str, script: &Script, cwd: &Path, ruling: &mut Ruling) {
        self.strict(command, script, &[cwd.to_path_buf()], 0, ruling);
        if let Some(rule) = self.whole(Kind::Ask) {
            ruling.firm(Reason::of("an ask rule matches", rule));
        }
        ruling.reads = script.parts.iter().all(only_reads);
        let all = self
            .rules_of(Kind::Allow, "Bash")
            .find(|rule| match &rule.what {
                What::All => true,
                What::Command(pattern) => pattern.is_exact() && pattern.fits(command.trim()),
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
            ruling.allow(Reason::new("only changes the working directory"));
        }
    }

    fn note(&self, part: &Part, found: &Result<Option<Reason>, NotAllowed>, ruling: &mut Ruling) {
        let text = shown_part(part);
        if text.is_empty() {
            return;
        }
        match found {
            Ok(Some(by)) => {
                ruling.allow(by.clone());
                ruling.steps.push(Step::new(text, "allowed", by.clone()));
            }
            Ok(None) => {
                let by = Reason::new("no effect of its own");
                ruling.steps.push(Step::new(text, "allowed", by));
            }
            Err(not) => {
                let why = Reason::new(not.why.clone());
                ruling.soft(why.clone());
                ruling.steps.push(Step::new(text, "asks", why));
                if not.a_rule_helps
                    && let Some(rule) = super::always::for_part(part)
                    && !ruling.always.contains(&rule)
                {
                    ruling.always.push(rule);
                }
            }
        }
    }

    /// Files that options of a program write.
    fn output_files(&self, part: &Part, cwds: &Cwds, ruling: &mut Ruling) {
        let Some(start) = stripped(&part.words) else {
            return;
        };
        let words = called(&part.words, start);
        let name = words.first().map(program).unwrap_or_default();
        for effect in effects::effects(&words) {
            let Effect::Writes(target) = effect else {
                continue;
            };
            if target.raw == "-" {
                continue;
            }
            if effects::is_reading(&name) {
                self.open_file(&target, true, cwds, ruling);
                continue;
            }
            // What a program is for, its rule allows; not what rules deny, nor what nobody knows.
            if target.is_open() {
                let text = format!("cannot resolve the path {} in advance", target.raw);
                ruling.soft(Reason::new(text));
            }
            for cwd in cwds.iter().flatten() {
                let place = Place::of(&raw_path(&target), cwd, &self.home);
                let denies = |rule: &&Rule| rule.fits_file(&place);
                if let Some(rule) = self.rules_of(Kind::Deny, "Edit").find(denies) {
                    let shown = place.written.display();
                    let text = format!("writing to {shown} is denied by rule");
                    ruling.deny(Reason::of(text, rule));
                }
            }
        }
    }

    /// Files that redirections open.
    fn open_files(&self, part: &Part, cwds: &Cwds, ruling: &mut Ruling) {
        for redirect in &part.redirects {
            self.open_file(&redirect.target, redirect.writes, cwds, ruling);
        }
    }

    fn open_file(&self, target: &Word, writes: bool, cwds: &Cwds, ruling: &mut Ruling) {
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
                    let place = Place::of(&raw_path(target), cwd, &self.home);
                    match writes {
                        true => self.write("Edit", &place, ruling),
                        false => self.read("Read", &place, ruling),
                    }
                }
            }
            _ => {
                let text = format!("cannot resolve the path {} in advance", target.raw);
                let tool = if writes { "Edit" } else { "Read" };
                match self.rules_of(Kind::Deny, tool).next() {
                    Some(rule) => ruling.firm(Reason::of(text, rule)),
                    None => ruling.soft(Reason::new(text)),
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
            ruling.steps.push(Step::new(step, "asks", why.clone()));
        }
    }

    /// What allows a part: a rule, the mode, or that it does nothing by itself.
    fn allow(
        &self,
        part: &Part,
        script: &Script,
        cwds: &Cwds,
        moved: bool,
    ) -> Result<Option<Reason>, NotAllowed> {
        let no_rule_helps = |why: String| NotAllowed {
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
            return Ok(Some(Reason::of("allowed by rule", rule)));
        }
        if runs_input {
            let why = format!("`{name}` executes its input, which no rule can check");
            return Err(no_rule_helps(why));
        }
        if !is_own && self.mode == Mode::AcceptEdits && self.is_small_edit(&name, words, cwds) {
            return Ok(Some(Reason::new("mode acceptEdits, inside the project")));
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
        rule: &Rule,
        part: &Part,
        cwds: &Cwds,
    ) -> Result<Option<Reason>, NotAllowed> {
        let words = &part.words[stripped(&part.words).unwrap_or(0)..];
        let is_text = matches!(rule.what, What::Command(_));
        match self.git_elsewhere(words, cwds, false).filter(|_| is_text) {
            Some(why) => Err(NotAllowed {
                why,
                a_rule_helps: false,
            }),
            None => Ok(Some(Reason::of("allowed by rule", rule))),
        }
    }

    /// The rule that allows a part. Where code comes in, one with its exact words does not: who
    /// wrote it down saw none of that code. One with a star is meant to allow any.
    fn allowing(&self, part: &Part, start: usize, never: bool, runs_input: bool) -> Option<&Rule> {
        let words = &part.words[start..];
        let texts = [joined(words), raw(words)];
        let whole = [joined(&part.words), raw(&part.words)];
        self.commands(Kind::Allow)
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
    fn is_small_edit(&self, name: &str, words: &[Word], cwds: &Cwds) -> bool {
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
                let mut ruling = Ruling::default();
                self.write("Edit", &Place::of(&text, cwd, &self.home), &mut ruling);
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
fn is_option_pattern(word: &Word) -> bool {
    let text = known_text(word);
    let has_glob = word
        .pieces
        .iter()
        .any(|piece| matches!(piece, Piece::Glob(_)));
    has_glob && text.starts_with('-') && !text.contains('=')
}

/// A pattern whose names of files can begin with anything, also with `-`.
fn begins_as_pattern(word: &Word) -> bool {
    let first = word.pieces.first();
    matches!(first, Some(Piece::Glob(_)))
}

/// Whether options of a program may run something: of all but those known for reading or writing.
fn runs_by_options(words: &[Word]) -> bool {
    let name = words.first().map(program).unwrap_or_default();
    if name == "git" {
        let command = words.get(1).map(known_text).unwrap_or_default();
        return !["add", "rm", "mv"].contains(&command.as_str());
    }
    RUNNERS.contains(&name.as_str()) || !named_files::is_known(&name)
}
