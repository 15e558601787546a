//! Commands: every part of one must be allowed, and one part that is denied is enough.
//!
//! What denies looks further than what allows: past variables and wrappers, into strings that a
//! shell will run, and at what a hole could become. What allows takes the words as they stand.

mod programs;
mod texts;

use std::path::{Path, PathBuf};

use super::explain::Step;
use super::glob::Pattern;
use super::path::{Place, protected};
use super::rule::{Rule, What};
use super::shell::{self, Part, Script, Word};
use super::{Mode, Policy, Reason, Ruling};
use crate::settings::Kind;
use programs::{FINDS, READERS, WRITERS, is_harmless, is_safe, only_reads};
use texts::{Texts, inner, joined, program, raw, raw_path, shown};

pub(super) use programs::{is_never, stripped};
pub(super) use texts::shown_part;

/// Longer commands are not looked into.
pub const LONGEST: usize = 10_000;

/// Strings that a shell will run, in strings that a shell will run.
const DEEPEST: usize = 4;
/// Where a part may run: all folders that are possible, or nobody knows.
type Cwds = Option<Vec<PathBuf>>;

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
        self.strict(command, script, cwd, 0, ruling);
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
        let mut cwds = Some(vec![cwd.to_path_buf()]);
        for part in &script.parts {
            self.open_files(part, &cwds, ruling);
            let found = match all {
                Some(rule) => Ok(Some(Reason::of("a rule allows it", rule))),
                None => self.allow(part, script, &cwds),
            };
            self.note(part, &found, ruling);
            follow(part, &mut cwds, &self.home);
        }
        if ruling.soft.is_none() && ruling.by.is_none() {
            ruling.allow(Reason::new("it changes nothing but where it stands"));
        }
    }

    fn note(&self, part: &Part, found: &Result<Option<Reason>, String>, ruling: &mut Ruling) {
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
            Err(why) => {
                let why = Reason::new(why.clone());
                ruling.soft(why.clone());
                ruling.steps.push(Step::new(text, "asks", why));
                if let Some(rule) = super::always::for_part(part)
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
        cwd: &Path,
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
        let mut cwds = Some(vec![cwd.to_path_buf()]);
        for part in &script.parts {
            self.strict_part(part, ruling);
            self.guard(part, &cwds, ruling);
            self.named_files(part, &cwds, ruling);
            self.strict_inside(part, cwd, depth, ruling);
            follow(part, &mut cwds, &self.home);
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
        for (rule, pattern) in self.commands(Kind::Ask) {
            if texts.fit(pattern) || texts.could_fit(pattern) {
                let text = format!("a rule wants to be asked about `{}`", texts.name());
                ruling.firm(Reason::of(text, rule));
            }
        }
    }

    /// Looks into the strings of programs that run strings.
    fn strict_inside(&self, part: &Part, cwd: &Path, depth: usize, ruling: &mut Ruling) {
        let (words, runs) = inner(part);
        if !runs {
            return;
        }
        for word in words {
            let Some(text) = word.text() else { continue };
            let is_script = text.contains(|c: char| c.is_whitespace() || ";&|<>$`(".contains(c));
            if !is_script {
                continue;
            }
            match shell::parse(&text) {
                Ok(script) if depth < DEEPEST => {
                    self.strict(&text, &script, cwd, depth + 1, ruling);
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

    /// Guards removal, also behind wrappers.
    fn guard(&self, part: &Part, cwds: &Cwds, ruling: &mut Ruling) {
        let (words, runs) = inner(part);
        let Some(first) = words.first().map(program) else {
            return;
        };
        for (index, word) in words.iter().enumerate() {
            if index > 0 && (!runs || first == "find") {
                break;
            }
            if super::remove::removes(&program(word))
                && let Some(why) = self.guard_removal(&words[index + 1..], cwds.as_deref())
            {
                ruling.firm(why);
            }
        }
        if first == "find"
            && words
                .iter()
                .any(|word| FINDS.contains(&shown(word).as_str()))
        {
            let starts: Vec<Word> = words[1..]
                .iter()
                .take_while(|word| !word.raw.starts_with(['-', '(', '!', '\\']))
                .cloned()
                .collect();
            if let Some(why) = self.guard_search(&starts) {
                ruling.firm(why);
            }
        }
    }

    /// Files that a known program would read or write, as far as rules deny them.
    fn named_files(&self, part: &Part, cwds: &Cwds, ruling: &mut Ruling) {
        let start = stripped(&part.words).unwrap_or(0);
        let Some(name) = part.words.get(start).map(program) else {
            return;
        };
        let reads = READERS.contains(&name.as_str());
        let writes = WRITERS.contains(&name.as_str());
        if !reads && !writes {
            return;
        }
        for word in &part.words[start + 1..] {
            if let Some(why) = self.hidden_by(word, reads, writes) {
                ruling.firm(why);
            }
            let mut text = raw_path(word);
            if let (Some((_, value)), true) = (text.split_once('='), !text.starts_with(['/', '.']))
            {
                text = value.to_owned();
            }
            if word.is_open() || text.is_empty() || text.starts_with('-') || text.contains('\0') {
                continue;
            }
            for cwd in cwds
                .as_deref()
                .unwrap_or(std::slice::from_ref(&self.project))
            {
                let place = Place::of(&text, cwd, &self.home);
                self.named_file(&place, reads, writes, ruling);
            }
        }
    }

    fn named_file(&self, place: &Place, reads: bool, writes: bool, ruling: &mut Ruling) {
        let shown = place.written.display();
        for (does, tool, verb) in [(reads, "Read", "reading"), (writes, "Edit", "writing to")] {
            if !does {
                continue;
            }
            let fits = |rule: &&Rule| matches!(rule.what, What::Paths(_)) && rule.fits_file(place);
            if let Some(rule) = self.rules_of(Kind::Deny, tool).find(fits) {
                ruling.deny(Reason::of(format!("a rule denies {verb} {shown}"), rule));
            }
            if let Some(rule) = self.rules_of(Kind::Ask, tool).find(fits) {
                let text = format!("a rule wants to be asked about {verb} {shown}");
                ruling.firm(Reason::of(text, rule));
            }
        }
        if writes && let Some(part) = protected(place, &self.work) {
            ruling.soft(Reason::new(format!(
                "{shown} is protected: other programs take orders from {part}"
            )));
        }
    }

    /// Whether a word that is not known yet could be a file that a rule denies.
    fn hidden_by(&self, word: &Word, reads: bool, writes: bool) -> Option<Reason> {
        if !word.is_open() {
            return None;
        }
        let rules = [(reads, "Read"), (writes, "Edit")]
            .into_iter()
            .filter(|(does, _)| *does)
            .flat_map(|(_, tool)| self.rules_of(Kind::Deny, tool));
        let mut could = rules.filter(|rule| match &rule.what {
            What::Paths(paths) => paths.could_be(word),
            _ => false,
        });
        let text = format!("a rule might deny {}, which is not known yet", word.raw);
        could.next().map(|rule| Reason::of(text, rule))
    }

    /// Files that redirections open.
    fn open_files(&self, part: &Part, cwds: &Cwds, ruling: &mut Ruling) {
        for redirect in &part.redirects {
            let target = &redirect.target;
            if matches!(
                target.raw.as_str(),
                "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/stdin"
            ) {
                continue;
            }
            let before = ruling.soft.is_some() || ruling.firm.is_some() || ruling.deny.is_some();
            match (target.is_open(), cwds) {
                (false, Some(cwds)) => {
                    for cwd in cwds {
                        let place = Place::of(&raw_path(target), cwd, &self.home);
                        match redirect.writes {
                            true => self.write("Edit", &place, ruling),
                            false => self.read("Read", &place, ruling),
                        }
                    }
                }
                _ => {
                    let text = format!("where {} leads is not known yet", target.raw);
                    let tool = if redirect.writes { "Edit" } else { "Read" };
                    match self.rules_of(Kind::Deny, tool).next() {
                        Some(rule) => ruling.firm(Reason::of(text, rule)),
                        None => ruling.soft(Reason::new(text)),
                    }
                }
            }
            let sign = if redirect.writes { ">" } else { "<" };
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
    }

    /// What allows a part: a rule, the mode, or that it does nothing by itself.
    fn allow(&self, part: &Part, script: &Script, cwds: &Cwds) -> Result<Option<Reason>, String> {
        for assign in &part.assigns {
            if !is_safe(&assign.name, assign.lasting) {
                return Err(format!("{} may change what programs do", assign.name));
            }
        }
        let Some(first) = part.words.first() else {
            return Ok(None);
        };
        if first.is_open() {
            return Err(format!("which program {} is, is not known yet", first.raw));
        }
        let start = match stripped(&part.words) {
            Some(start) => start,
            None => return Err(format!("what {} runs is not clear", first.raw)),
        };
        let words = &part.words[start..];
        let Some(inner) = words.first() else {
            return Err(format!("what {} runs is not clear", first.raw));
        };
        if inner.is_open() {
            return Err(format!("which program {} is, is not known yet", inner.raw));
        }
        let name = shown(inner);
        let is_own = script.functions.contains(&name);
        if !is_own && start == 0 {
            if let Some(found) = self.allow_move(&name, words, cwds) {
                return found;
            }
            if is_harmless(&name) && words.iter().all(|word| !word.is_open()) {
                return Ok(None);
            }
        }
        if let Some(rule) = self.allowing(part, start) {
            return Ok(Some(Reason::of("a rule allows it", rule)));
        }
        if !is_own && self.mode == Mode::AcceptEdits && self.is_small_edit(&name, words, cwds) {
            return Ok(Some(Reason::new(
                "the mode acceptEdits, within the project",
            )));
        }
        match is_never(words) {
            true => Err(format!(
                "`{name}` can run anything, so only its exact text can be allowed"
            )),
            false => Err(format!("no rule allows `{}`", joined(words))),
        }
    }

    fn allowing(&self, part: &Part, start: usize) -> Option<&Rule> {
        let words = &part.words[start..];
        let texts = [joined(words), raw(words)];
        let whole = [joined(&part.words), raw(&part.words)];
        let never = is_never(words);
        self.commands(Kind::Allow)
            .find(|(_, pattern)| match pattern.is_exact() {
                true => texts.iter().chain(&whole).any(|text| pattern.fits(text)),
                false => !never && texts.iter().any(|text| pattern.fits(text)),
            })
            .map(|(rule, _)| rule)
    }

    /// `cd` within the project needs no rule.
    fn allow_move(
        &self,
        name: &str,
        words: &[Word],
        cwds: &Cwds,
    ) -> Option<Result<Option<Reason>, String>> {
        if name != "cd" {
            return None;
        }
        let [_, target] = words else { return None };
        let (Some(cwds), false) = (cwds, target.is_open()) else {
            return None;
        };
        let text = raw_path(target);
        if text.starts_with('-') || text.is_empty() {
            return None;
        }
        let is_inside = cwds.iter().all(|cwd| {
            let place = Place::of(&text, cwd, &self.home);
            self.work.iter().any(|folder| place.is_within(folder))
        });
        is_inside.then_some(Ok(None))
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
    let moved: Vec<PathBuf> = known
        .iter()
        .map(|cwd| Place::of(&text, cwd, home))
        .map(|place| place.real.unwrap_or(place.written))
        .collect();
    for cwd in moved {
        if !known.contains(&cwd) {
            known.push(cwd);
        }
    }
}
