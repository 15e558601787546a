//! Commands: every part of one must be allowed, and one part that is denied is enough.
//!
//! What denies looks further than what allows: past variables and wrappers, into strings that a
//! shell will run, and at what a hole could become. What allows takes the words as they stand.

mod builtin_assignments;
mod effects;
mod git_command;
mod named_files;
mod programs;
mod texts;

use std::path::{Path, PathBuf};

use super::explain::Step;
use super::git_repository;
use super::glob::Pattern;
use super::path::{Place, real};
use super::rule::{Rule, What};
use super::shell::{self, Part, Piece, Script, Word};
use super::{Mode, Policy, Reason, Ruling};
use crate::settings::Kind;
use effects::Effect;
use git_command::GitCommand;
use programs::{FINDS, RUNNERS, SHELLS, called, is_harmless, is_safe, only_reads};
use texts::{Texts, inner, joined, program, raw, shown};

pub(super) use programs::{is_never, stripped};
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
            ruling.deny(Reason::of("a rule denies it", rule));
            return ruling;
        }
        if command.trim().is_empty() {
            ruling.firm(Reason::new("there is no command"));
            return ruling;
        }
        let script = match command.chars().count() > LONGEST {
            true => Err(format!("it is longer than {LONGEST} characters")),
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
                    format!("the command is not understood ({why}), and a rule might deny it");
                ruling.deny(Reason::of(text, rule));
                return;
            }
        }
        ruling.firm(Reason::new(format!("the command is not understood: {why}")));
    }

    fn rule_script(&self, command: &str, script: &Script, cwd: &Path, ruling: &mut Ruling) {
        self.strict(command, script, &[cwd.to_path_buf()], 0, ruling);
        if let Some(rule) = self.whole(Kind::Ask) {
            ruling.firm(Reason::of("a rule wants to be asked", rule));
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
            ruling.allow(Reason::new("it changes nothing but where it stands"));
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
                let by = Reason::new("it changes nothing by itself");
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

    /// What denies, what wants to be asked, and what cannot be undone.
    fn strict(
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

    /// `find / | xargs rm`: what a search finds is removed by another part.
    fn guard_fed(&self, script: &Script, from: &[PathBuf], ruling: &mut Ruling) {
        let feeds = |part: &Part| {
            let names: Vec<String> = part.words.iter().map(program).collect();
            names
                .iter()
                .any(|name| name == "xargs" || name == "parallel")
                && names.iter().any(|name| super::remove::removes(name))
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

    /// All folders a part may run in: the first, and in a loop those that any part goes to.
    fn first_cwds(&self, script: &Script, from: &[PathBuf]) -> Cwds {
        let mut cwds = Some(from.to_vec());
        if !script.repeats {
            return cwds;
        }
        // What still grows after some rounds grows for ever.
        for _ in 0..3 {
            let before = cwds.clone();
            for part in &script.parts {
                follow(part, &mut cwds, &self.home);
            }
            if cwds == before {
                return cwds;
            }
        }
        None
    }

    /// Whether a part goes to another folder than the one we stand in and the project's.
    fn moves(&self, part: &Part, cwd: &Path) -> bool {
        let start = stripped(&part.words).unwrap_or(0);
        let Some(name) = part.words.get(start).map(program) else {
            return false;
        };
        match (name.as_str(), &part.words[start + 1..]) {
            ("cd", [target]) if !target.is_open() => {
                let text = raw_path(target);
                let place = Place::of(&text, cwd, &self.home);
                let here = [real(cwd), real(&self.project)];
                text.is_empty() || text.starts_with('-') || !here.contains(&place.real)
            }
            ("cd" | "pushd" | "popd", _) => true,
            _ => false,
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

    /// Guards what cannot be undone, also behind wrappers.
    fn guard(&self, part: &Part, cwds: &Cwds, ruling: &mut Ruling) {
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
        if super::remove::removes(&name) {
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
                let text = format!("where {} leads is not known yet", target.raw);
                ruling.soft(Reason::new(text));
            }
            for cwd in cwds.iter().flatten() {
                let place = Place::of(&raw_path(&target), cwd, &self.home);
                let denies = |rule: &&Rule| rule.fits_file(&place);
                if let Some(rule) = self.rules_of(Kind::Deny, "Edit").find(denies) {
                    let shown = place.written.display();
                    let text = format!("a rule denies writing to {shown}");
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
                let text = format!("where {} leads is not known yet", target.raw);
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
                let why = format!("{} may change what programs do", assign.name);
                return Err(why.into());
            }
        }
        let Some(first) = part.words.first() else {
            return Ok(None);
        };
        if first.is_open() {
            return Err(format!("which program {} is, is not known yet", first.raw).into());
        }
        let not_clear = || Err(format!("what {} runs is not clear", first.raw).into());
        let Some(start) = stripped(&part.words) else {
            return not_clear();
        };
        let words = &part.words[start..];
        let Some(inner) = words.first() else {
            return not_clear();
        };
        if inner.is_open() {
            return Err(format!("which program {} is, is not known yet", inner.raw).into());
        }
        if let Some(name) = builtin_assignments::unsafe_assignment(words) {
            return Err(format!("{name} may change what programs do").into());
        }
        if let Some(word) = words[1..].iter().find(|word| is_option_pattern(word)) {
            let why = format!("{} could become an option that nobody sees", word.raw);
            return Err(no_rule_helps(why));
        }
        let called = called(&part.words, start);
        if runs_by_options(&program(inner))
            && let Some(word) = called[1..].iter().find(|word| begins_as_pattern(word))
        {
            let why = format!("{} could become an option that runs something", word.raw);
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
        if let Some(rule) = self.allowing(part, start, never) {
            return Ok(Some(Reason::of("a rule allows it", rule)));
        }
        if !is_own && self.mode == Mode::AcceptEdits && self.is_small_edit(&name, words, cwds) {
            return Ok(Some(Reason::new(
                "the mode acceptEdits, within the project",
            )));
        }
        match never {
            true => {
                let why =
                    format!("`{name}` can run anything, so only its exact text can be allowed");
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
            None => Ok(Some(Reason::of("a rule allows it", rule))),
        }
    }

    /// Why git here would use another repository than the project's, and run what that names.
    fn git_elsewhere(&self, words: &[Word], cwds: &Cwds, moved: bool) -> Option<String> {
        let runs = words
            .first()
            .is_some_and(|word| RUNNERS.contains(&program(word).as_str()));
        let last = if runs { words.len() } else { 1 };
        (0..last.min(words.len()))
            .filter(|index| program(&words[*index]) == "git")
            .find_map(|index| self.git_call_elsewhere(&words[index + 1..], cwds, moved))
    }

    fn git_call_elsewhere(&self, words: &[Word], cwds: &Cwds, moved: bool) -> Option<String> {
        let (folders, option) = GitCommand::read(words).elsewhere();
        if let Some(option) = option {
            return Some(format!(
                "`git {option}` can have git look elsewhere or run something else"
            ));
        }
        if moved {
            return Some(
                "git runs after a change of directory, where another repository may name programs"
                    .to_owned(),
            );
        }
        let Some(cwds) = cwds else {
            return Some("nobody knows in which folder git would run".to_owned());
        };
        let project = real(&self.project);
        cwds.iter().find_map(|cwd| {
            let mut at = real(cwd).unwrap_or_else(|| cwd.clone());
            let from = at.clone();
            for folder in &folders {
                if folder.is_open() {
                    return Some(format!("where `git -C {}` leads is not known", folder.raw));
                }
                let place = Place::of(&raw_path(folder), &at, &self.home);
                at = place.real.unwrap_or(place.written);
            }
            if at != from && Some(&at) != project.as_ref() {
                return Some(format!("git would run in {}", at.display()));
            }
            git_repository::foreign(&self.project, &at)
        })
    }

    fn allowing(&self, part: &Part, start: usize, never: bool) -> Option<&Rule> {
        let words = &part.words[start..];
        let texts = [joined(words), raw(words)];
        let whole = [joined(&part.words), raw(&part.words)];
        self.commands(Kind::Allow)
            .find(|(_, pattern)| match pattern.is_exact() {
                true => texts.iter().chain(&whole).any(|text| pattern.fits(text)),
                false => !never && texts.iter().any(|text| pattern.fits(text)),
            })
            .map(|(rule, _)| rule)
    }

    /// `cd` within the project needs no rule.
    fn allows_move(&self, name: &str, words: &[Word], cwds: &Cwds) -> bool {
        let (Some(cwds), [_, target], "cd") = (cwds, words, name) else {
            return false;
        };
        let text = raw_path(target);
        if target.is_open() || text.starts_with('-') || text.is_empty() {
            return false;
        }
        cwds.iter().all(|cwd| {
            let place = Place::of(&text, cwd, &self.home);
            self.work.iter().any(|folder| place.is_within(folder))
        })
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
        count > 0
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

/// Whether short options in one word hold one of these letters.
fn is_cluster_with(text: &str, letters: [char; 2]) -> bool {
    text.starts_with('-') && !text.starts_with("--") && text.contains(letters)
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

/// Whether options of a program can be programs.
fn runs_by_options(name: &str) -> bool {
    const MORE: &[&str] = &[
        "bun",
        "c++",
        "cargo",
        "cc",
        "clang",
        "clang++",
        "deno",
        "emacs",
        "ex",
        "g++",
        "gcc",
        "gdb",
        "go",
        "lua",
        "make",
        "node",
        "npm",
        "osascript",
        "perl",
        "php",
        "pip",
        "pnpm",
        "python",
        "ruby",
        "vi",
        "vim",
        "yarn",
    ];
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    MORE.contains(&bare) || RUNNERS.contains(&name)
}

/// What `cd` does to where the next parts run.
fn follow(part: &Part, cwds: &mut Cwds, home: &Path) {
    let start = stripped(&part.words).unwrap_or(0);
    let Some(name) = part.words.get(start).map(shown) else {
        return;
    };
    if ["pushd", "popd"].contains(&name.as_str()) {
        *cwds = None;
    }
    if name != "cd" {
        return;
    }
    let Some(known) = cwds else { return };
    let text = match &part.words[start + 1..] {
        [target] if !target.is_open() => raw_path(target),
        [] => "~".to_owned(),
        _ => String::new(),
    };
    // Two folders for each `cd`, because nobody knows whether it succeeded or stood in a subshell.
    if text.is_empty() || text.starts_with('-') || known.len() > 16 {
        *cwds = None;
        return;
    }
    // The shell goes by the text, the system by links; both are possible.
    let moved: Vec<PathBuf> = known
        .iter()
        .map(|cwd| Place::of(&text, cwd, home))
        .flat_map(|place| place.real.into_iter().chain([place.written]))
        .collect();
    for cwd in moved {
        if !known.contains(&cwd) {
            known.push(cwd);
        }
    }
}
