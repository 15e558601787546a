//! Files that the words of a command name, in whatever spelling, and what rules say about them.

use std::fs;
use std::path::{Path, PathBuf};

use super::git_command::GitCommand;
use super::programs::{LOOKS, READERS, WRITERS, called, stripped};
use super::texts::{known_text, program, raw_path};
use super::{Cwds, Policy, Reason, Ruling};
use crate::permission::path::{Place, name_fits, protected};
use crate::permission::rule::{Rule, What};
use crate::permission::shell::{Part, Piece, Word};
use crate::settings::Kind;

/// Programs that do nothing with files their arguments are called like.
const NO_FILES: &[&str] = &[
    "[", ":", "basename", "cd", "date", "declare", "dirname", "echo", "exit", "export", "expr",
    "false", "kill", "local", "printf", "pwd", "read", "return", "seq", "set", "shift", "sleep",
    "test", "true", "type", "typeset", "unset", "wait", "which",
];

/// Filters that only read, besides those that look and those that read.
const FILTERS: &[&str] = &[
    "b2sum",
    "cksum",
    "column",
    "expand",
    "fmt",
    "iconv",
    "numfmt",
    "pr",
    "ptx",
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

/// Commands of git that change files of the work tree.
const GIT_WRITES: &[&str] = &[
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

/// Spellings of one word that are looked at.
const SPELLINGS: usize = 48;

/// What a program does with files that it is given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileUse {
    /// It reads them at most.
    Looks,
    /// It writes them.
    Writes,
    /// Nobody knows.
    Unknown,
}

fn file_use(words: &[Word]) -> FileUse {
    let Some(first) = words.first() else {
        return FileUse::Looks;
    };
    let name = program(first);
    let name = name.as_str();
    if name == "git" {
        let call = GitCommand::read(&words[1..]);
        let command = call.name().unwrap_or_default();
        return match GIT_WRITES.contains(&command.as_str()) {
            true => FileUse::Unknown,
            false => FileUse::Looks,
        };
    }
    if ARCHIVERS.contains(&name) {
        return FileUse::Unknown;
    }
    let looks = NO_FILES.contains(&name)
        || FILTERS.contains(&name)
        || READERS.contains(&name)
        || LOOKS.iter().any(|(look, _)| *look == name);
    match (WRITERS.contains(&name), looks) {
        (true, _) => FileUse::Writes,
        (false, true) => FileUse::Looks,
        (false, false) => FileUse::Unknown,
    }
}

impl Policy {
    /// Files that a command names, as far as rules deny them or programs take orders from them.
    pub(super) fn named_files(&self, part: &Part, cwds: &Cwds, ruling: &mut Ruling) {
        let start = stripped(&part.words).unwrap_or(0);
        let words = &called(&part.words, start);
        let usage = file_use(words);
        if usage == FileUse::Looks && !self.has_file_rules() {
            return;
        }
        let name = words.first().map(program).unwrap_or_default();
        let here = std::slice::from_ref(&self.project);
        let mut folders = cwds.as_deref().unwrap_or(here).to_vec();
        self.add_entered(words, &mut folders);
        // The program itself may lie among files, too.
        let path = words.first().filter(|word| word.raw.contains('/'));
        for word in path.into_iter().chain(&part.values) {
            self.named_word(word, &name, FileUse::Looks, &folders, ruling);
        }
        for word in words.get(1..).unwrap_or_default() {
            self.named_word(word, &name, usage, &folders, ruling);
        }
    }

    /// Adds folders that a program goes to by itself: `git -C src`, `tar --directory=src`.
    fn add_entered(&self, words: &[Word], folders: &mut Vec<PathBuf>) {
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
                let place = Place::of(&folder, cwd, &self.home);
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
        limits(Kind::Deny) || limits(Kind::Ask)
    }

    fn named_word(
        &self,
        word: &Word,
        name: &str,
        usage: FileUse,
        cwds: &[PathBuf],
        ruling: &mut Ruling,
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
            if usage == FileUse::Writes || ARCHIVERS.contains(&name) {
                let text = format!("which file {} is, is not known yet", word.raw);
                ruling.soft(Reason::new(text));
            }
            for path in matches(word, cwds, &self.home) {
                let place = Place::of(&path.to_string_lossy(), &self.project, &self.home);
                if let Some(rule) = self.denying("Read", &place).filter(|_| !harmless) {
                    let text = format!("a rule denies reading a file that {} means", word.raw);
                    ruling.firm(Reason::of(text, rule));
                }
            }
        }
        for text in texts {
            for cwd in cwds {
                let place = Place::of(&text, cwd, &self.home);
                self.named_file(&place, name, usage, ruling);
            }
        }
    }

    fn denying(&self, tool: &'static str, place: &Place) -> Option<&Rule> {
        let fits = |rule: &&Rule| matches!(rule.what, What::Paths(_)) && rule.fits_file(place);
        self.rules_of(Kind::Deny, tool).find(fits)
    }

    fn named_file(&self, place: &Place, name: &str, usage: FileUse, ruling: &mut Ruling) {
        let shown = place.written.display();
        let fits = |rule: &&Rule| matches!(rule.what, What::Paths(_)) && rule.fits_file(place);
        if let Some(rule) = self.denying("Read", place) {
            ruling.deny(Reason::of(format!("a rule denies reading {shown}"), rule));
        }
        if let Some(rule) = self.rules_of(Kind::Ask, "Read").find(fits) {
            let text = format!("a rule wants to be asked about reading {shown}");
            ruling.firm(Reason::of(text, rule));
        }
        // A folder whose content is denied, to a program that may go through it.
        let inside = || Place {
            written: place.written.join("x"),
            real: place.real.as_ref().map(|real| real.join("x")),
        };
        let edits = usage != FileUse::Looks;
        if !NO_FILES.contains(&name) && place.written.is_dir() {
            let read = self.denying("Read", &inside());
            let edit = self.denying("Edit", &inside()).filter(|_| edits);
            if let Some(rule) = read.or(edit) {
                let text = format!("a rule denies what lies in {shown}");
                ruling.firm(Reason::of(text, rule));
            }
        }
        if !edits {
            return;
        }
        match (self.denying("Edit", place), usage) {
            (Some(rule), FileUse::Writes) => {
                let text = format!("a rule denies writing to {shown}");
                ruling.deny(Reason::of(text, rule));
            }
            (Some(rule), _) => {
                let text = format!("a rule denies writing to {shown}, which `{name}` might do");
                ruling.firm(Reason::of(text, rule));
            }
            (None, _) => {}
        }
        if let Some(rule) = self.rules_of(Kind::Ask, "Edit").find(fits)
            && usage == FileUse::Writes
        {
            let text = format!("a rule wants to be asked about writing to {shown}");
            ruling.firm(Reason::of(text, rule));
        }
        if let Some(part) = protected(place, &self.work) {
            ruling.soft(Reason::new(format!(
                "{shown} is protected: other programs take orders from {part}"
            )));
        }
    }

    /// Whether a word that is not known yet could be a file that a rule denies.
    fn hidden_by(&self, word: &Word, usage: FileUse, cwds: &[PathBuf]) -> Option<Reason> {
        let edits = usage != FileUse::Looks;
        let rules = [(true, "Read"), (edits, "Edit")]
            .into_iter()
            .filter(|(does, _)| *does)
            .flat_map(|(_, tool)| self.rules_of(Kind::Deny, tool));
        let mut could = rules.filter(|rule| match &rule.what {
            What::Paths(paths) => paths.could_be(word, cwds, &self.home),
            _ => false,
        });
        let text = format!("a rule might deny {}, which is not known yet", word.raw);
        could.next().map(|rule| Reason::of(text, rule))
    }
}

/// Every path that a word may mean to the program that gets it: the word itself, and what stands
/// in it behind an option (`-f.env`, `--file=.env`), an `@`, or a revision (`HEAD:.env`).
fn spellings(word: &Word, cwds: &[PathBuf], home: &Path) -> Vec<String> {
    if word.is_open() {
        return expanded(word, cwds, home);
    }
    let whole = raw_path(word);
    let text = word.text().unwrap_or_default();
    let mut found = vec![whole];
    let marks = text.char_indices().filter(|(_, c)| "=:@,)".contains(*c));
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
    }
    found.retain(|text| !text.is_empty() && !text.contains('\0') && !text.starts_with('-'));
    found.truncate(SPELLINGS);
    found.dedup();
    found
}

/// What looks like a path in the text of a program.
fn named_in_text(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_alphanumeric() || "_./~-".contains(c);
    let names = text.split(|c: char| !is_part(c));
    let names = names.filter(|name| !name.is_empty() && *name != text);
    names.map(str::to_owned).take(SPELLINGS).collect()
}

/// `$PWD/x`, `"$HOME/x"` and `$(pwd)/x`, whose text is known all the same.
fn expanded(word: &Word, cwds: &[PathBuf], home: &Path) -> Vec<String> {
    // An opening quote is a piece without text.
    let is_quote = |piece: &&Piece| matches!(piece, Piece::Text(text) if text.is_empty());
    let mut rest = word.pieces.iter().skip_while(is_quote);
    let Some(Piece::Hole { .. }) = rest.next() else {
        return Vec::new();
    };
    let mut behind = String::new();
    for piece in rest {
        match piece {
            Piece::Text(text) => behind.push_str(text),
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

/// Files that a pattern in the last name of a word means now; links among them may lead elsewhere.
fn matches(word: &Word, cwds: &[PathBuf], home: &Path) -> Vec<PathBuf> {
    let mut text = String::new();
    for piece in &word.pieces {
        match piece {
            Piece::Text(part) => text.push_str(part),
            Piece::Home => text.push_str(&home.to_string_lossy()),
            Piece::Glob(c) => text.push(*c),
            Piece::Hole { .. } => return Vec::new(),
        }
    }
    let (folder, pattern) = match text.rfind('/') {
        Some(slash) => (&text[..=slash], &text[slash + 1..]),
        None => ("", text.as_str()),
    };
    let mut found = Vec::new();
    for cwd in cwds {
        let Ok(entries) = fs::read_dir(cwd.join(folder)) else {
            continue;
        };
        for entry in entries.flatten().take(10_000) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_hidden = name.starts_with('.') && !pattern.starts_with('.');
            if !is_hidden && name_fits(pattern, &name) {
                found.push(entry.path());
            }
        }
    }
    found
}
