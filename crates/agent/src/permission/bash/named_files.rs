//! Files that the words of a command name, in whatever spelling, and what rules say about them.

use std::fs;
use std::path::{Path, PathBuf};

use super::arriving_files::arriving;
use super::command_texts::{known_text, program, raw_path};
use super::git_command::GitCommand;
use super::hidden_commands::{FedText, obeys_input};
use super::known_programs::{LOOKS, READERS, WRITERS, called, stripped};
use super::option_effects::is_reading;
use super::{Cwds, PermissionFindings, PermissionPolicy, PermissionReason};
use crate::permission::path::{ResolvedFolder, ResolvedPath, name_fits, protected};
use crate::permission::rule::{PermissionRule, RuleTarget};
use crate::permission::shell_parser::{ShellCommandPart, ShellWord, ShellWordPart};
use crate::settings::RuleKind;

/// Programs that do nothing with files their arguments are called like.
pub(super) const NO_FILES: &[&str] = &[
    "[", ":", "basename", "cd", "date", "declare", "dirname", "echo", "exit", "export", "expr",
    "false", "kill", "local", "printf", "pwd", "read", "return", "seq", "set", "shift", "sleep",
    "test", "true", "type", "typeset", "unset", "wait", "which",
];

/// Filters that only read, besides those that look and those that read.
pub(super) const FILTERS: &[&str] = &[
    "b2sum",
    "cksum",
    "column",
    "expand",
    "fmt",
    "iconv",
    "numfmt",
    "pr",
    "rev",
    "sha224sum",
    "sha384sum",
    "sha512sum",
    "sum",
    "tsort",
    "unexpand",
    "zgrep",
    "zless",
    "zmore",
    "ag",
    "ack",
    "man",
    "date",
];

/// Programs that write archives, and read what goes into them.
const ARCHIVERS: &[&str] = &[
    "7z", "ar", "bsdtar", "bzip2", "cpio", "gtar", "gunzip", "gzip", "tar", "xz", "zip", "zstd",
];

/// Programs whose arguments are programs, in which files are named.
const INTERPRETERS: &[&str] = &[
    "Rscript",
    "awk",
    "bun",
    "deno",
    "gawk",
    "lua",
    "mawk",
    "nawk",
    "node",
    "osascript",
    "perl",
    "php",
    "python",
    "ruby",
    "sed",
    "sqlite3",
    "tclsh",
];

/// Commands of git that change files of the work tree, and take names of other things as well.
const GIT_CHANGES: &[&str] = &[
    "am",
    "apply",
    "checkout",
    "clean",
    "merge-file",
    "mv",
    "restore",
    "rm",
    "switch",
];

/// Commands of git that write no file they are given. All others may write what they name.
const GIT_LOOKS: &[&str] = &[
    "add",
    "annotate",
    "archive",
    "bisect",
    "blame",
    "branch",
    "cat-file",
    "check-attr",
    "check-ignore",
    "cherry",
    "cherry-pick",
    "commit",
    "config",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "fetch",
    "for-each-ref",
    "format-patch",
    "fsck",
    "gc",
    "grep",
    "hash-object",
    "help",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge",
    "merge-base",
    "name-rev",
    "notes",
    "pull",
    "push",
    "range-diff",
    "rebase",
    "reflog",
    "remote",
    "reset",
    "rev-list",
    "rev-parse",
    "revert",
    "shortlog",
    "show",
    "show-branch",
    "show-ref",
    "stash",
    "status",
    "tag",
    "var",
    "verify-commit",
    "verify-tag",
    "version",
    "whatchanged",
];

/// Spellings of one word that are looked at.
const SPELLINGS: usize = 48;

/// Names in a text that are looked at.
const NAMES: usize = 1_000;

/// Whether it is known what a program does with the files it is given.
pub(in crate::permission) fn is_known(name: &str) -> bool {
    NO_FILES.contains(&name)
        || FILTERS.contains(&name)
        || READERS.contains(&name)
        || WRITERS.contains(&name)
        || ARCHIVERS.contains(&name)
        || LOOKS.iter().any(|(look, _)| *look == name)
        || is_reading(name)
}

/// What a program does with files that it is given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProgramFileUse {
    /// It reads them at most.
    Looks,
    /// It writes them.
    Writes,
    /// Nobody knows.
    Unknown,
}

fn file_use(words: &[ShellWord]) -> ProgramFileUse {
    let Some(first) = words.first() else {
        return ProgramFileUse::Looks;
    };
    let name = program(first);
    let name = name.as_str();
    if name == "git" {
        let call = GitCommand::read(&words[1..]);
        let command = call.name().unwrap_or_default();
        return match command.is_empty() || GIT_LOOKS.contains(&command.as_str()) {
            true => ProgramFileUse::Looks,
            false if GIT_CHANGES.contains(&command.as_str()) => ProgramFileUse::Unknown,
            false => ProgramFileUse::Writes,
        };
    }
    if ARCHIVERS.contains(&name) {
        return ProgramFileUse::Unknown;
    }
    let looks = NO_FILES.contains(&name)
        || FILTERS.contains(&name)
        || READERS.contains(&name)
        || LOOKS.iter().any(|(look, _)| *look == name);
    match (WRITERS.contains(&name), looks) {
        (true, _) => ProgramFileUse::Writes,
        (false, true) => ProgramFileUse::Looks,
        (false, false) => ProgramFileUse::Unknown,
    }
}

impl PermissionPolicy {
    /// Files that a command names, as far as rules deny them or programs take orders from them.
    pub(super) fn named_files(
        &self,
        part: &ShellCommandPart,
        cwds: &Cwds,
        ruling: &mut PermissionFindings,
    ) {
        let start = stripped(&part.words).unwrap_or(0);
        let words = &called(&part.words, start);
        let usage = file_use(words);
        if usage == ProgramFileUse::Looks && !self.has_file_rules() {
            return;
        }
        let name = words.first().map(program).unwrap_or_default();
        let here = std::slice::from_ref(&self.project);
        let mut folders = cwds.as_deref().unwrap_or(here).to_vec();
        self.add_entered(words, &mut folders);
        // The program itself may lie among files, too.
        let path = words.first().filter(|word| word.raw.contains('/'));
        for word in path.into_iter().chain(&part.values) {
            self.named_word(word, &name, ProgramFileUse::Looks, &folders, ruling);
        }
        for word in words.get(1..).unwrap_or_default() {
            self.named_word(word, &name, usage, &folders, ruling);
            self.named_pieces(word, &name, &folders, ruling);
            if name == "git" {
                self.named_by_git(word, &folders, ruling);
            }
            if cwds.is_none() {
                self.named_somewhere(word, &name, usage, ruling);
            }
        }
        if usage != ProgramFileUse::Looks {
            self.arriving(words, &folders, ruling);
        }
        self.folders_read(words, &folders, ruling);
    }

    /// Files that arrive in a folder, under the links that lie there.
    fn arriving(&self, words: &[ShellWord], folders: &[PathBuf], ruling: &mut PermissionFindings) {
        let found = arriving(words, folders, &self.home);
        for path in found.paths {
            let place = ResolvedPath::of(&path.to_string_lossy(), &self.project, &self.home);
            let name = words.first().map(program).unwrap_or_default();
            self.named_file(&place, &name, ProgramFileUse::Writes, ruling);
            let is_own = |folder: &ResolvedFolder| place.is_within(folder);
            let is_link = place
                .written
                .symlink_metadata()
                .is_ok_and(|about| about.is_symlink());
            if is_link && !self.work.iter().any(is_own) {
                let shown = place.written.display();
                let text = format!("{shown} is a link that leads out of the project");
                ruling.soft(PermissionReason::new(text));
            }
        }
        if found.unknown {
            let text = "nobody sees what would be written over, and there are links";
            ruling.soft(PermissionReason::new(text));
        }
    }

    /// Whether files that a program puts into folders may be written, too.
    pub(super) fn may_arrive(&self, words: &[ShellWord], cwds: &[PathBuf]) -> bool {
        let found = arriving(words, cwds, &self.home);
        let may = |path: &PathBuf| {
            let mut ruling = PermissionFindings::default();
            let place = ResolvedPath::of(&path.to_string_lossy(), &self.project, &self.home);
            self.write("Edit", &place, &mut ruling);
            ruling.deny.is_none() && ruling.firm.is_none() && ruling.soft.is_none()
        };
        !found.unknown && found.paths.iter().all(may)
    }

    pub(super) fn denies_reading(&self) -> bool {
        self.rules_of(RuleKind::Deny, "Read").next().is_some()
    }

    /// A path from a folder that nobody knows.
    fn named_somewhere(
        &self,
        word: &ShellWord,
        name: &str,
        usage: ProgramFileUse,
        ruling: &mut PermissionFindings,
    ) {
        let text = raw_path(word);
        let is_relative = !text.is_empty() && !text.starts_with(['/', '~', '-']);
        if !is_relative || word.is_open() || NO_FILES.contains(&name) {
            return;
        }
        let somewhere = ShellWord {
            raw: word.raw.clone(),
            pieces: vec![
                ShellWordPart::Hole { quoted: true },
                ShellWordPart::Text(format!("/{text}")),
            ],
        };
        if let Some(why) = self.hidden_by(&somewhere, usage, &[]) {
            ruling.firm(why);
        }
        if usage == ProgramFileUse::Writes || (usage == ProgramFileUse::Unknown && name != "git") {
            let text = format!("nobody knows in which folder {} lies", word.raw);
            ruling.soft(PermissionReason::new(text));
        }
    }

    /// Names inside a word, between marks: `x=<.env`, `{.env,a}`, `r .env|p`. Where blanks stand
    /// between them they may be names or only text.
    fn named_pieces(
        &self,
        word: &ShellWord,
        name: &str,
        folders: &[PathBuf],
        ruling: &mut PermissionFindings,
    ) {
        let text = word.text().unwrap_or_default();
        let is_mark = |c: char| c.is_whitespace() || "<>;{}|&\"'`()[],=@:!".contains(c);
        let says = NO_FILES.contains(&name) || name == "git" || name == "gh";
        if !self.denies_reading() || says || !text.contains(is_mark) {
            return;
        }
        // Addresses have spellings and patterns of their own.
        if text.to_lowercase().contains("file:")
            && text.contains(['%', '[', '{', '*', '?'])
            && let Some(rule) = self.rules_of(RuleKind::Deny, "Read").next()
        {
            let text = format!("a rule might deny the file that {} means", word.raw);
            ruling.firm(PermissionReason::of(text, rule));
        }
        let is_text = text.contains(char::is_whitespace) || text.contains('(');
        for piece in text
            .split(is_mark)
            .filter(|piece| !piece.is_empty())
            .take(NAMES)
        {
            for piece in [Some(piece), piece.strip_prefix("//localhost")]
                .into_iter()
                .flatten()
            {
                self.named_piece(piece, is_text, folders, ruling);
            }
        }
    }

    fn named_piece(
        &self,
        piece: &str,
        is_text: bool,
        folders: &[PathBuf],
        ruling: &mut PermissionFindings,
    ) {
        if piece.contains('\0') {
            return;
        }
        for cwd in folders {
            let place = ResolvedPath::of(piece, cwd, &self.home);
            if let Some(rule) = self.denying("Read", &place) {
                let shown = place.written.display();
                let text = format!("a rule denies reading {shown}, which is named here");
                match is_text {
                    true => ruling.firm(PermissionReason::of(text, rule)),
                    false => ruling.deny(PermissionReason::of(text, rule)),
                }
            }
        }
    }

    /// Git has patterns of its own, which stand in quotes: `'.e*'`, `':(glob).e*'`.
    fn named_by_git(&self, word: &ShellWord, folders: &[PathBuf], ruling: &mut PermissionFindings) {
        let text = word.text().unwrap_or_default();
        let path = match text
            .strip_prefix(":(")
            .and_then(|rest| rest.split_once(')'))
        {
            Some((_, path)) => path,
            None => text.trim_start_matches([':', '/', '!', '^']),
        };
        if path.starts_with('-') || !(path.contains(['*', '?', '[']) || path != text) {
            return;
        }
        let mut pieces = Vec::new();
        for c in path.chars() {
            match (c, pieces.last_mut()) {
                ('*' | '?' | '[', _) => pieces.push(ShellWordPart::Glob(c)),
                (c, Some(ShellWordPart::Text(text))) => text.push(c),
                (c, _) => pieces.push(ShellWordPart::Text(c.to_string())),
            }
        }
        let word = ShellWord {
            raw: word.raw.clone(),
            pieces,
        };
        // Its star means hidden files, too, and goes through folders.
        let known = path.split(['*', '?', '[']).next().unwrap_or_default();
        let (folder, name) = match (known.rfind('/'), path.rfind('/')) {
            (Some(slash), Some(last)) => (&path[..=slash], &path[last + 1..]),
            (_, last) => ("", &path[last.map_or(0, |last| last + 1)..]),
        };
        let denied = self
            .rules_of(RuleKind::Deny, "Read")
            .find(|rule| match &rule.what {
                RuleTarget::Paths(paths) => {
                    let fits = paths.last_name().is_none_or(|last| name_fits(name, last));
                    let mut folders = folders.iter().map(|cwd| cwd.join(folder));
                    // From the top of the work tree it may start elsewhere.
                    fits && (text.starts_with(':') || folders.any(|at| paths.could_lie_in(&at)))
                }
                _ => false,
            });
        if let Some(why) = self.hidden_by(&word, ProgramFileUse::Looks, folders) {
            ruling.firm(why);
        } else if let Some(rule) = denied {
            let text = format!("a rule might deny what git finds by {}", word.raw);
            ruling.firm(PermissionReason::of(text, rule));
        }
    }

    /// Files named in what a program reads and runs: `python3 - <<E`, `echo … | node`.
    pub(super) fn named_input(
        &self,
        part: &ShellCommandPart,
        input: &FedText,
        cwds: &Cwds,
        ruling: &mut PermissionFindings,
    ) {
        let start = stripped(&part.words).unwrap_or(0);
        if !self.denies_reading() || !obeys_input(part, start) {
            return;
        }
        let here = std::slice::from_ref(&self.project);
        let folders = cwds.as_deref().unwrap_or(here);
        for text in &input.texts {
            let names = text.split(|c: char| !is_part_of_name(c));
            for name in names.filter(|name| !name.is_empty()).take(NAMES) {
                self.named_piece(name, true, folders, ruling);
            }
        }
    }

    /// Adds folders that a program goes to by itself: `git -C src`, `tar --directory=src`.
    fn add_entered(&self, words: &[ShellWord], folders: &mut Vec<PathBuf>) {
        const LONG: &[&str] = &["--directory", "--chdir", "--cwd", "--working-directory"];
        for (index, word) in words.iter().enumerate().skip(1) {
            let text = known_text(word);
            let next = || words.get(index + 1).map(raw_path);
            let folder = match text.split_once('=') {
                Some((option, folder)) if LONG.contains(&option) => Some(folder.to_owned()),
                None if text == "-C" || LONG.contains(&text.as_str()) => next(),
                _ => text.strip_prefix("-C").map(str::to_owned),
            };
            let Some(folder) = folder.filter(|folder| !folder.is_empty()) else {
                continue;
            };
            // One behind the other: the second starts where the first leads.
            for cwd in folders.clone().iter().take(SPELLINGS) {
                let place = ResolvedPath::of(&folder, cwd, &self.home);
                let entered = place.real.unwrap_or(place.written);
                if !folders.contains(&entered) {
                    folders.push(entered);
                }
            }
        }
    }

    fn has_file_rules(&self) -> bool {
        let limits = |kind| {
            ["Read", "Edit"]
                .into_iter()
                .any(|tool| self.rules_of(kind, tool).next().is_some())
        };
        limits(RuleKind::Deny) || limits(RuleKind::Ask)
    }

    fn named_word(
        &self,
        word: &ShellWord,
        name: &str,
        usage: ProgramFileUse,
        cwds: &[PathBuf],
        ruling: &mut PermissionFindings,
    ) {
        let mut texts = spellings(word, cwds, &self.home);
        if INTERPRETERS.iter().any(|start| name.starts_with(start)) {
            texts.extend(named_in_text(&word.text().unwrap_or_default()));
        }
        if texts.is_empty() && word.is_open() {
            let harmless = NO_FILES.contains(&name);
            if !harmless && let Some(why) = self.hidden_by(word, usage, cwds) {
                ruling.firm(why);
            }
            if usage == ProgramFileUse::Writes || ARCHIVERS.contains(&name) {
                let text = format!("cannot resolve the file {} in advance", word.raw);
                ruling.soft(PermissionReason::new(text));
            }
            for path in matches(word, cwds, &self.home) {
                let place = ResolvedPath::of(&path.to_string_lossy(), &self.project, &self.home);
                if let Some(rule) = self.denying("Read", &place).filter(|_| !harmless) {
                    let text =
                        format!("reading a file that {} matches is denied by rule", word.raw);
                    ruling.firm(PermissionReason::of(text, rule));
                }
            }
        }
        for text in texts {
            for cwd in cwds {
                let place = ResolvedPath::of(&text, cwd, &self.home);
                self.named_file(&place, name, usage, ruling);
            }
        }
    }

    pub(super) fn denying(
        &self,
        tool: &'static str,
        place: &ResolvedPath,
    ) -> Option<&PermissionRule> {
        let fits = |rule: &&PermissionRule| {
            matches!(rule.what, RuleTarget::Paths(_)) && rule.fits_file(place)
        };
        self.rules_of(RuleKind::Deny, tool).find(fits)
    }

    fn named_file(
        &self,
        place: &ResolvedPath,
        name: &str,
        usage: ProgramFileUse,
        ruling: &mut PermissionFindings,
    ) {
        let shown = place.written.display();
        let fits = |rule: &&PermissionRule| {
            matches!(rule.what, RuleTarget::Paths(_)) && rule.fits_file(place)
        };
        if let Some(rule) = self.denying("Read", place) {
            ruling.deny(PermissionReason::of(
                format!("a rule denies reading {shown}"),
                rule,
            ));
        }
        if let Some(rule) = self.rules_of(RuleKind::Ask, "Read").find(fits) {
            let text = format!("an ask rule matches reading {shown}");
            ruling.firm(PermissionReason::of(text, rule));
        }
        // A folder whose content is denied, to a program that may go through it.
        let inside = || ResolvedPath {
            written: place.written.join("x"),
            real: place.real.as_ref().map(|real| real.join("x")),
        };
        let edits = usage != ProgramFileUse::Looks;
        if !NO_FILES.contains(&name) && place.written.is_dir() {
            let read = self.denying("Read", &inside());
            let edit = self.denying("Edit", &inside()).filter(|_| edits);
            if let Some(rule) = read.or(edit) {
                let text = format!("files in {shown} are denied by rule");
                ruling.firm(PermissionReason::of(text, rule));
            }
        }
        if !edits {
            return;
        }
        match (self.denying("Edit", place), usage) {
            (Some(rule), ProgramFileUse::Writes) => {
                let text = format!("writing to {shown} is denied by rule");
                ruling.deny(PermissionReason::of(text, rule));
            }
            (Some(rule), _) => {
                let text = format!("`{name}` may write to {shown}, which is denied by rule");
                ruling.firm(PermissionReason::of(text, rule));
            }
            (None, _) => {}
        }
        if let Some(rule) = self.rules_of(RuleKind::Ask, "Edit").find(fits)
            && usage == ProgramFileUse::Writes
        {
            let text = format!("an ask rule matches writing to {shown}");
            ruling.firm(PermissionReason::of(text, rule));
        }
        if let Some(part) = protected(place, &self.work) {
            ruling.soft(PermissionReason::new(format!(
                "{shown} is protected: {part} can make other programs run commands"
            )));
        }
    }

    /// Whether a word that is not known yet could be a file that a rule denies.
    fn hidden_by(
        &self,
        word: &ShellWord,
        usage: ProgramFileUse,
        cwds: &[PathBuf],
    ) -> Option<PermissionReason> {
        let edits = usage != ProgramFileUse::Looks;
        let rules = [(true, "Read"), (edits, "Edit")]
            .into_iter()
            .filter(|(does, _)| *does)
            .flat_map(|(_, tool)| self.rules_of(RuleKind::Deny, tool));
        let mut could = rules.filter(|rule| match &rule.what {
            RuleTarget::Paths(paths) => paths.could_be(word, cwds, &self.home),
            _ => false,
        });
        let text = format!(
            "cannot resolve {} in advance, and a deny rule may match it",
            word.raw
        );
        could.next().map(|rule| PermissionReason::of(text, rule))
    }
}

/// Every path that a word may mean to the program that gets it: the word itself, and what stands
/// in it behind an option (`-f.env`, `--file=.env`), an `@`, or a revision (`HEAD:.env`).
pub(super) fn spellings(word: &ShellWord, cwds: &[PathBuf], home: &Path) -> Vec<String> {
    if word.is_open() {
        return expanded(word, cwds, home);
    }
    let whole = raw_path(word);
    let text = word.text().unwrap_or_default();
    let mut found = vec![whole];
    let marks = text.char_indices().filter(|(_, c)| "=:@,)<".contains(*c));
    found.extend(marks.map(|(at, c)| text[at + c.len_utf8()..].to_owned()));
    // A cluster of options may end in a value anywhere.
    if text.starts_with('-') && !text.starts_with("--") {
        let starts = text.char_indices().skip(2).take(SPELLINGS);
        found.extend(starts.map(|(at, _)| text[at..].to_owned()));
    }
    // Git takes a path from the top of its work tree behind `:/`.
    if let Some(at) = text.find(":/") {
        found.push(text[at + 2..].to_owned());
    }
    // The folder of a process, by another way.
    if let Some(rest) = text.strip_prefix("/proc/") {
        match rest.splitn(3, '/').collect::<Vec<_>>().as_slice() {
            [_, "cwd", below] => found.push((*below).to_owned()),
            [_, "root", below] => found.push(format!("/{below}")),
            _ => {}
        }
        if let Some((_, below)) = rest.rsplit_once("/cwd/") {
            found.push(below.to_owned());
        }
    }
    found.retain(|text| !text.is_empty() && !text.contains('\0') && !text.starts_with('-'));
    found.truncate(SPELLINGS);
    found.dedup();
    found
}

/// What looks like a path in the text of a program.
fn named_in_text(text: &str) -> Vec<String> {
    let names = text.split(|c: char| !is_part_of_name(c));
    let names = names.filter(|name| !name.is_empty() && *name != text);
    names.map(str::to_owned).take(NAMES).collect()
}

fn is_part_of_name(c: char) -> bool {
    c.is_alphanumeric() || "_./~-".contains(c)
}

/// `$PWD/x`, `"$HOME/x"` and `$(pwd)/x`, whose text is known all the same.
fn expanded(word: &ShellWord, cwds: &[PathBuf], home: &Path) -> Vec<String> {
    // An opening quote is a piece without text.
    let is_quote =
        |piece: &&ShellWordPart| matches!(piece, ShellWordPart::Text(text) if text.is_empty());
    let mut rest = word.pieces.iter().skip_while(is_quote);
    let Some(ShellWordPart::Hole { .. }) = rest.next() else {
        return Vec::new();
    };
    let mut behind = String::new();
    for piece in rest {
        match piece {
            ShellWordPart::Text(text) => behind.push_str(text),
            _ => return Vec::new(),
        }
    }
    let raw = word.raw.trim_start_matches('"');
    let is = |names: &[&str]| {
        names.iter().any(|name| {
            let left = raw.strip_prefix(name);
            left.is_some_and(|left| left.is_empty() || left.starts_with(['/', '"']))
        })
    };
    let whole = |folder: &Path| format!("{}{behind}", folder.display());
    match () {
        () if is(&["$PWD", "${PWD}", "$(pwd)", "`pwd`"]) => {
            cwds.iter().map(|cwd| whole(cwd)).collect()
        }
        () if is(&["$HOME", "${HOME}"]) => vec![whole(home)],
        () => Vec::new(),
    }
}

/// What lies in a folder; nothing if it cannot be read.
pub(super) fn entries(folder: &Path) -> impl Iterator<Item = fs::DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

/// Files that a pattern in the last name of a word means now; links among them may lead elsewhere.
fn matches(word: &ShellWord, cwds: &[PathBuf], home: &Path) -> Vec<PathBuf> {
    let mut text = String::new();
    for piece in &word.pieces {
        match piece {
            ShellWordPart::Text(part) => text.push_str(part),
            ShellWordPart::Home => text.push_str(&home.to_string_lossy()),
            ShellWordPart::Glob(c) => text.push(*c),
            ShellWordPart::Hole { .. } => return Vec::new(),
        }
    }
    let (folder, pattern) = match text.rfind('/') {
        Some(slash) => (&text[..=slash], &text[slash + 1..]),
        None => ("", text.as_str()),
    };
    let mut found = Vec::new();
    for cwd in cwds {
        for entry in entries(&cwd.join(folder)).take(10_000) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_hidden = name.starts_with('.') && !pattern.starts_with('.');
            if !is_hidden && name_fits(pattern, &name) {
                found.push(entry.path());
            }
        }
    }
    found
}
