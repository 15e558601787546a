//! Commands: every part of one must be allowed, and one part that is denied is enough.
//!
//! What denies looks further than what allows: past variables and wrappers, into strings that a
//! shell will run, and at what a hole could become. What allows takes the words as they stand.

use std::path::{Path, PathBuf};

use super::explain::Step;
use super::glob::{Pattern, Unit};
use super::path::{Place, protected};
use super::rule::{Rule, What};
use super::shell::{self, Part, Piece, Script, Word};
use super::{Mode, Policy, Reason, Ruling};
use crate::settings::Kind;

/// Longer commands are not looked into.
pub const LONGEST: usize = 10_000;

/// Strings that a shell will run, in strings that a shell will run.
const DEEPEST: usize = 4;

/// Programs that run the command behind them and are taken off before rules are asked.
const WRAPPERS: &[&str] = &[
    "timeout", "time", "nice", "nohup", "stdbuf", "command", "builtin", "noglob", "xargs",
];

/// Programs that run what their arguments say. Rules that deny look at all of these.
const RUNNERS: &[&str] = &[
    "ash",
    "bash",
    "busybox",
    "chroot",
    "chrt",
    "dash",
    "doas",
    "env",
    "eval",
    "exec",
    "fd",
    "find",
    "fish",
    "flock",
    "ionice",
    "ksh",
    "nsenter",
    "parallel",
    "pkexec",
    "runuser",
    "script",
    "setpriv",
    "setsid",
    "sh",
    "ssh",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "trap",
    "unbuffer",
    "unshare",
    "watch",
    "zsh",
];

/// Programs that no rule with a star can allow, because anything can stand behind them.
const NEVER: &[&str] = &[
    "watch", "setsid", "ionice", "flock", "env", "eval", "alias", "trap", "hash", "enable",
];

/// Builtins that calculate an index, and so run what stands in `$(…)` inside plain quotes.
const INDEXING: &[&str] = &[
    "[",
    "declare",
    "export",
    "getopts",
    "let",
    "local",
    "mapfile",
    "printf",
    "read",
    "readarray",
    "readonly",
    "test",
    "typeset",
    "unset",
    "wait",
];

/// Arguments of `find` that run, remove or write.
const FINDS: &[&str] = &[
    "-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls",
];

/// Variables that make no program run anything else.
const SAFE: &[&str] = &[
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "FORCE_COLOR",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_NUMERIC",
    "LC_TIME",
    "LINES",
    "NODE_ENV",
    "NO_COLOR",
    "PYTHONUNBUFFERED",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "TERM",
    "TZ",
];

/// Programs whose arguments are files they read.
const READERS: &[&str] = &[
    "awk",
    "base32",
    "base64",
    "bat",
    "cat",
    "cmp",
    "comm",
    "cp",
    "cut",
    "diff",
    "egrep",
    "fgrep",
    "file",
    "fold",
    "gawk",
    "grep",
    "gzip",
    "head",
    "hexdump",
    "install",
    "jq",
    "join",
    "less",
    "ln",
    "md5sum",
    "more",
    "mv",
    "nl",
    "od",
    "paste",
    "rg",
    "rsync",
    "scp",
    "sed",
    "sha1sum",
    "sha256sum",
    "shuf",
    "sort",
    "source",
    "split",
    "strings",
    "tac",
    "tail",
    "tar",
    "tee",
    "uniq",
    "wc",
    "xxd",
    "yq",
    "zcat",
    "zip",
    ".",
];

/// Programs whose arguments are files they write.
const WRITERS: &[&str] = &[
    "chmod", "chown", "cp", "dd", "install", "ln", "mkdir", "mv", "patch", "rm", "rmdir", "rsync",
    "scp", "sed", "shred", "split", "tee", "touch", "truncate", "unlink", "unzip",
];

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

/// The texts of a part, as rules that deny see them.
struct Texts {
    plain: Vec<String>,
    units: Vec<Unit>,
    /// The program itself is not known yet.
    open: bool,
    /// Any word may be the program that runs.
    anywhere: bool,
}

impl Texts {
    fn of(part: &Part) -> Texts {
        let (words, anywhere) = inner(part);
        let mut plain = vec![joined(words), raw(words)];
        if words.len() < part.words.len() {
            plain.extend([joined(&part.words), raw(&part.words)]);
        }
        let mut units = Vec::new();
        for (index, word) in words.iter().enumerate() {
            add_units(word, index > 0, &mut units);
        }
        let open = words.first().is_some_and(Word::is_open);
        // A program may be called by its path.
        if let Some(first) = words.first()
            && !open
            && first.raw.contains('/')
        {
            let name = program(first);
            let skip = shown(first).chars().count();
            plain.push(joined(words).replacen(&shown(first), &name, 1));
            units.splice(..skip, name.chars().map(Unit::Char));
        }
        Texts {
            plain,
            units,
            open,
            anywhere,
        }
    }

    fn name(&self) -> &str {
        self.plain.first().map_or("", String::as_str)
    }

    fn fit(&self, pattern: &Pattern) -> bool {
        self.plain
            .iter()
            .any(|text| pattern.fits(text) || (self.anywhere && pattern.fits_behind(text)))
    }

    /// Whether it could fit once holes are filled.
    fn could_fit(&self, pattern: &Pattern) -> bool {
        self.units.contains(&Unit::Any)
            && (pattern.could_fit(&self.units)
                || (self.open && pattern.could_fit_behind(&self.units, '/'))
                || (self.anywhere && pattern.could_fit_behind(&self.units, ' ')))
    }
}

/// The command behind wrappers, and whether any word of it may be a program.
fn inner(part: &Part) -> (&[Word], bool) {
    let Some(start) = stripped(&part.words) else {
        return (&part.words, true);
    };
    let words = &part.words[start..];
    let runs = words
        .first()
        .is_some_and(|word| RUNNERS.contains(&program(word).as_str()) || word.is_open());
    (words, runs)
}

fn add_units(word: &Word, is_later: bool, units: &mut Vec<Unit>) {
    let vanishes = matches!(word.pieces.as_slice(), [Piece::Hole { quoted: false }]);
    if is_later && !vanishes {
        units.push(Unit::Char(' '));
    }
    if !word.is_open() {
        units.extend(shown(word).chars().map(Unit::Char));
        return;
    }
    for piece in &word.pieces {
        match piece {
            Piece::Text(text) => units.extend(text.chars().map(Unit::Char)),
            Piece::Home => units.push(Unit::Char('~')),
            Piece::Hole { .. } | Piece::Glob(_) => units.push(Unit::Any),
        }
    }
}

/// A word without needless quotes; with them where they matter.
fn shown(word: &Word) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_./:=@%+,~-{}^".contains(c);
    let text = match word.pieces.as_slice() {
        [Piece::Home] => Some("~".to_owned()),
        [Piece::Home, Piece::Text(rest)] => Some(format!("~{rest}")),
        _ => word.text(),
    };
    match text {
        Some(text) if !text.is_empty() && text.chars().all(is_plain) => text,
        _ => word.raw.clone(),
    }
}

/// The path a word names, with `~` for the home folder.
fn raw_path(word: &Word) -> String {
    match word.pieces.as_slice() {
        [Piece::Home] => "~".to_owned(),
        [Piece::Home, Piece::Text(rest)] => format!("~{rest}"),
        // A tilde that was quoted is a name.
        _ => match word.text() {
            Some(text) if text.starts_with('~') => format!("./{text}"),
            Some(text) => text,
            None => String::new(),
        },
    }
}

fn joined(words: &[Word]) -> String {
    let words: Vec<String> = words.iter().map(shown).collect();
    words.join(" ")
}

fn raw(words: &[Word]) -> String {
    let words: Vec<&str> = words.iter().map(|word| word.raw.as_str()).collect();
    words.join(" ")
}

/// A part as a person reads it.
pub(super) fn shown_part(part: &Part) -> String {
    let names: Vec<String> = part
        .assigns
        .iter()
        .map(|assign| format!("{}=…", assign.name))
        .collect();
    let text = joined(&part.words);
    match (names.is_empty(), text.is_empty()) {
        (true, _) => text,
        (false, true) => names.join(" "),
        (false, false) => format!("{} {text}", names.join(" ")),
    }
}

/// The name of a program without its folder.
fn program(word: &Word) -> String {
    let text = shown(word);
    match text.rsplit_once('/') {
        Some((_, name)) => name.to_owned(),
        None => text,
    }
}

/// Where the command behind wrappers begins; `None` if that is not clear.
pub(super) fn stripped(words: &[Word]) -> Option<usize> {
    let mut at = 0;
    // Each step takes off one wrapper.
    while let Some(word) = words.get(at) {
        let name = shown(word);
        if !WRAPPERS.contains(&name.as_str()) {
            return Some(at);
        }
        let texts: Vec<String> = words[at + 1..].iter().map(shown).collect();
        let is_open = |index: usize| words.get(at + 1 + index).is_none_or(Word::is_open);
        let skip = match name.as_str() {
            "nohup" | "builtin" | "noglob" | "time" => Some(0),
            // `command -v` only looks for something.
            "command"
                if texts
                    .first()
                    .is_some_and(|text| text == "-v" || text == "-V") =>
            {
                return Some(at);
            }
            "command" => Some(usize::from(texts.first().is_some_and(|text| text == "-p"))),
            "timeout" => timeout(&texts),
            "nice" => nice(&texts),
            "stdbuf" => Some(texts.iter().take_while(|text| is_buffer(text)).count()),
            _ if texts.is_empty() => return Some(at),
            _ => Some(0),
        };
        let skip = skip?;
        if (0..skip).any(is_open) {
            return None;
        }
        match texts.get(skip) {
            Some(text) if text.starts_with('-') => return None,
            None => return None,
            Some(_) => at += 1 + skip,
        }
    }
    None
}

fn timeout(texts: &[String]) -> Option<usize> {
    let mut at = 0;
    loop {
        let text = texts.get(at)?;
        match text.as_str() {
            "-k" | "-s" => at += 2,
            "--foreground" | "--preserve-status" | "-v" | "--verbose" => at += 1,
            text if text.starts_with("--kill-after=") || text.starts_with("--signal=") => at += 1,
            text if text.starts_with('-') => return None,
            text => {
                let number = text.trim_end_matches(['s', 'm', 'h', 'd']);
                let is_time =
                    !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.');
                return is_time.then_some(at + 1);
            }
        }
    }
}

fn nice(texts: &[String]) -> Option<usize> {
    let is_number = |text: &str| {
        let digits = text.trim_start_matches(['-', '+']);
        !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
    };
    match texts.first()?.as_str() {
        "-n" => is_number(texts.get(1)?).then_some(2),
        text if text.starts_with('-') => {
            is_number(text.strip_prefix("-n").unwrap_or(text)).then_some(1)
        }
        _ => Some(0),
    }
}

fn is_buffer(text: &str) -> bool {
    let rest = ["-i", "-o", "-e"]
        .iter()
        .find_map(|start| text.strip_prefix(start));
    rest.is_some_and(|size| !size.is_empty() && size.chars().all(|c| c.is_ascii_alphanumeric()))
}

/// Whether only an exact rule can allow this.
pub(super) fn is_never(words: &[Word]) -> bool {
    let Some(first) = words.first() else {
        return true;
    };
    let name = program(first);
    let name = name.as_str();
    if NEVER.contains(&name) || WRAPPERS.contains(&name) && words.len() > 1 && !is_lookup(words) {
        return true;
    }
    if name == "find" {
        // An argument that is not known yet could be any of them.
        return words[1..].iter().any(|word| {
            let could = word
                .pieces
                .iter()
                .any(|piece| matches!(piece, Piece::Hole { .. }));
            could || FINDS.contains(&shown(word).as_str())
        });
    }
    INDEXING.contains(&name)
        && words[1..].iter().any(|word| {
            let text = word.text().unwrap_or_default();
            text.contains('[') && (text.contains("$(") || text.contains('`')) || is_mixed(word)
        })
}

/// `command -v NAME`.
fn is_lookup(words: &[Word]) -> bool {
    words.len() > 1
        && shown(&words[0]) == "command"
        && ["-v", "-V"].contains(&shown(&words[1]).as_str())
}

/// Whether an index is put together of text and holes.
fn is_mixed(word: &Word) -> bool {
    word.is_open()
        && word.pieces.iter().any(|piece| match piece {
            Piece::Text(text) => text.contains('['),
            Piece::Glob(c) => *c == '[',
            _ => false,
        })
}

fn is_safe(name: &str, lasting: bool) -> bool {
    if SAFE.contains(&name) {
        return true;
    }
    // The shell's own variables of small letters reach no program, but these two kinds might.
    let is_small = name
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    lasting && is_small && !name.ends_with("_proxy") && !name.starts_with("npm_")
}

/// Builtins that do nothing to anything outside the shell.
fn is_harmless(name: &str) -> bool {
    [":", "true", "false", "exit", "return", "break", "continue"].contains(&name)
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

/// Programs that read and do nothing else, with the arguments that would change that.
const LOOKS: &[(&str, &[&str])] = &[
    ("[", &[]),
    ("basename", &[]),
    ("cat", &[]),
    ("cmp", &[]),
    ("comm", &[]),
    ("cut", &[]),
    ("df", &[]),
    ("diff", &["--output"]),
    ("dirname", &[]),
    ("du", &[]),
    ("echo", &[]),
    ("egrep", &[]),
    ("fgrep", &[]),
    ("file", &["-C", "--compile"]),
    ("find", FINDS),
    ("grep", &[]),
    ("head", &[]),
    ("jq", &[]),
    ("ls", &[]),
    ("nl", &[]),
    ("pwd", &[]),
    ("readlink", &[]),
    ("realpath", &[]),
    ("rg", &["--pre", "--hostname-bin", "-z", "--search-zip"]),
    ("stat", &[]),
    ("tac", &[]),
    ("tail", &[]),
    ("test", &[]),
    ("tr", &[]),
    ("tree", &["-o"]),
    ("type", &[]),
    ("wc", &[]),
    ("which", &[]),
];

/// Commands of git that only look.
const GIT: &[&str] = &[
    "status",
    "log",
    "diff",
    "show",
    "rev-parse",
    "ls-files",
    "blame",
    "shortlog",
    "describe",
];

/// Whether a part changes nothing, as far as it can be told.
fn only_reads(part: &Part) -> bool {
    if part
        .redirects
        .iter()
        .any(|one| one.writes && one.target.raw != "/dev/null")
    {
        return false;
    }
    if part
        .assigns
        .iter()
        .any(|assign| !is_safe(&assign.name, assign.lasting))
    {
        return false;
    }
    let Some(start) = stripped(&part.words) else {
        return part.words.is_empty();
    };
    let words = &part.words[start..];
    let Some(first) = words.first() else {
        return true;
    };
    let has_hole = |word: &Word| {
        word.pieces
            .iter()
            .any(|piece| matches!(piece, Piece::Hole { .. }))
    };
    if words.iter().any(has_hole) || is_never(words) {
        return false;
    }
    let name = shown(first);
    if name == "cd" || is_harmless(&name) {
        return true;
    }
    let texts: Vec<String> = words[1..].iter().map(shown).collect();
    let has = |bad: &&str| {
        texts.iter().any(|text| {
            text == bad || (bad.starts_with("--") && text.starts_with(&format!("{bad}=")))
        })
    };
    if name == "git" {
        let bad = [
            "--output",
            "-O",
            "--ext-diff",
            "--textconv",
            "--open-files-in-pager",
        ];
        let looks = texts
            .first()
            .is_some_and(|text| GIT.contains(&text.as_str()));
        return looks && !bad.iter().any(has) && !texts.iter().any(|text| text.starts_with("-O"));
    }
    LOOKS
        .iter()
        .find(|(look, _)| *look == name)
        .is_some_and(|(_, bad)| !bad.iter().any(has))
}
