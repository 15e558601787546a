//! Parts of a command as texts: for rules, and for people.

use super::git_command::GitCommand;
use super::known_programs::{RUNNERS, SHELLS, WRAPPERS, feeder, stripped};
use crate::permission::glob::{GlobPattern, GlobUnit};
use crate::permission::shell_parser::{ShellCommandPart, ShellWord, ShellWordPart};

/// The texts of a part, as rules that deny see them.
pub(super) struct CommandTexts {
    plain: Vec<String>,
    /// What it could mean, if a word is the value of an option before it.
    maybe: Vec<String>,
    units: Vec<Vec<GlobUnit>>,
    /// Commands to which words are added that nobody knows (`xargs`).
    fed: Vec<Vec<GlobUnit>>,
    /// The program itself is not known yet.
    open: bool,
    /// Any word may be the program that runs.
    anywhere: bool,
}

impl CommandTexts {
    pub(super) fn of(part: &ShellCommandPart) -> CommandTexts {
        let (words, anywhere) = inner(part);
        let mut plain = vec![joined(words), raw(words)];
        if words.len() < part.words.len() {
            plain.extend([joined(&part.words), raw(&part.words)]);
        }
        let mut units = units_of(words);
        let open = words.first().is_some_and(ShellWord::is_open);
        // A program may be called by its path.
        if let Some(first) = words.first()
            && !open
            && (first.raw.contains('/') || program(first).starts_with("git-"))
        {
            let name = program(first);
            let skip = shown(first).chars().count();
            plain.push(joined(words).replacen(&shown(first), &name, 1));
            // Commands of git are programs of their own elsewhere.
            if let Some(command) = name.strip_prefix("git-") {
                let whole = format!("git {command}");
                plain.push(joined(words).replacen(&shown(first), &whole, 1));
            }
            units.splice(..skip, name.chars().map(GlobUnit::Char));
        }
        let mut texts = CommandTexts {
            plain,
            maybe: Vec::new(),
            units: vec![units],
            fed: fed_commands(part),
            open,
            anywhere,
        };
        let last = if anywhere { words.len() } else { 1 };
        for index in 0..last.min(words.len()).min(PROGRAMS) {
            texts.without_options(&words[index..]);
        }
        texts
    }

    /// Adds the command without the options before its second word: `git -C . push` is `git push`.
    fn without_options(&mut self, words: &[ShellWord]) {
        let Some((first, arguments)) = words.split_first() else {
            return;
        };
        let name = program(first);
        let is_option = |word: &ShellWord| {
            let text = known_text(word);
            text.starts_with('-') || (name == "cargo" && text.starts_with('+'))
        };
        let (behind, could) = match name.as_str() {
            "git" => (GitCommand::read(arguments).command, None),
            _ => {
                let count = arguments.iter().take_while(|word| is_option(word)).count();
                // It may be the value of the last option.
                (&arguments[count..], arguments.get(count + 1..))
            }
        };
        if behind.len() == arguments.len() {
            return;
        }
        let whole = |words: &[ShellWord]| format!("{name} {}", joined(words));
        self.plain.push(whole(behind));
        self.maybe.extend(could.map(whole));
        let mut units: Vec<GlobUnit> = name.chars().map(GlobUnit::Char).collect();
        for word in behind {
            add_units(word, true, &mut units);
        }
        self.units.push(units);
    }

    pub(super) fn name(&self) -> &str {
        self.plain.first().map_or("", String::as_str)
    }

    pub(super) fn fit(&self, pattern: &GlobPattern) -> bool {
        self.plain
            .iter()
            .any(|text| pattern.fits(text) || (self.anywhere && pattern.fits_behind(text)))
    }

    /// Whether it could fit once holes are filled.
    pub(super) fn could_fit(&self, pattern: &GlobPattern) -> bool {
        let could = |units: &Vec<GlobUnit>| {
            units.contains(&GlobUnit::Any)
                && (pattern.could_fit(units)
                    || (self.open && pattern.could_fit_behind(units, '/'))
                    || (self.anywhere && pattern.could_fit_behind(units, ' ')))
        };
        let fed = |units: &Vec<GlobUnit>| pattern.could_fit(units);
        self.units.iter().any(could)
            || self.fed.iter().any(fed)
            || self.maybe.iter().any(|text| pattern.fits(text))
    }
}

/// What `xargs` and `parallel` may make of their words: each could be the program, what is replaced
/// is not known yet, and more comes behind.
fn fed_commands(part: &ShellCommandPart) -> Vec<Vec<GlobUnit>> {
    let Some((at, mark)) = feeder(&part.words) else {
        return Vec::new();
    };
    let is_list = |word: &ShellWord| {
        program(&part.words[at]) == "parallel" && known_text(word).starts_with(":::")
    };
    let words = part.words[at + 1..]
        .iter()
        .take_while(|word| !is_list(word));
    let words: Vec<ShellWord> = words.cloned().collect();
    let starts = fed_starts(&words, program(&part.words[at]) == "parallel");
    let words: Vec<ShellWord> = words.iter().map(|word| replaced(word, &mark)).collect();
    let runs = |start: &usize| {
        let name = program(&words[*start]);
        [RUNNERS, WRAPPERS, SHELLS]
            .iter()
            .any(|list| list.contains(&name.as_str()))
    };
    // Alone, `parallel` runs the lines it reads. What runs others may be given any of them.
    let is_bare = starts.is_empty() && program(&part.words[at]) == "parallel";
    if is_bare || starts.iter().any(runs) {
        return vec![vec![GlobUnit::Any]];
    }
    let unit = |index: usize| {
        let words = &words[index..];
        let command = match program(&words[0]).as_str() {
            "git" => GitCommand::read(&words[1..]).command,
            _ => &words[1..],
        };
        let mut units = Vec::new();
        add_units(&words[0], false, &mut units);
        if let Some((_, name)) = words[0].raw.rsplit_once('/') {
            units = name.chars().map(GlobUnit::Char).collect();
        }
        command
            .iter()
            .for_each(|word| add_units(word, true, &mut units));
        units.extend([GlobUnit::Char(' '), GlobUnit::Any]);
        units
    };
    starts.into_iter().map(unit).collect()
}

/// Where the command of `xargs` and `parallel` may begin. Of `parallel`, what stands behind an option
/// may be its value or the command.
fn fed_starts(words: &[ShellWord], is_parallel: bool) -> Vec<usize> {
    const WITH_VALUE: &[&str] = &[
        "-n", "-P", "-L", "-s", "-d", "-a", "-E", "-I", "-J", "-R", "-S",
    ];
    let mut starts = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let text = known_text(word);
        let is_option = text.starts_with('-');
        if is_option {
            at += 1 + usize::from(!is_parallel && WITH_VALUE.contains(&text.as_str()));
            continue;
        }
        let behind_option = at > 0 && known_text(&words[at - 1]).starts_with('-');
        if !is_parallel {
            return vec![at];
        }
        let is_number = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        if !is_number && (starts.is_empty() || !word.is_open()) {
            starts.push(at);
        }
        if !behind_option {
            break;
        }
        at += 1;
    }
    starts
}

/// A word in which `xargs` replaces a mark, with a hole for it.
pub(super) fn replaced(word: &ShellWord, mark: &str) -> ShellWord {
    let has = |text: &str| {
        text.contains(mark) || (mark == "{}" && text.contains('{') && text.contains('}'))
    };
    if !has(&word.raw) {
        return word.clone();
    }
    let mut pieces = Vec::new();
    for piece in &word.pieces {
        match piece {
            ShellWordPart::Text(text) if text.contains(mark) => {
                for (index, part) in text.split(mark).enumerate() {
                    if index > 0 {
                        pieces.push(ShellWordPart::Hole { quoted: true });
                    }
                    pieces.push(ShellWordPart::Text(part.to_owned()));
                }
            }
            ShellWordPart::Text(text) if has(text) => {
                pieces.push(ShellWordPart::Hole { quoted: true })
            }
            piece => pieces.push(piece.clone()),
        }
    }
    ShellWord {
        raw: word.raw.clone(),
        pieces,
    }
}

/// So many words of a command are looked at as programs.
const PROGRAMS: usize = 24;

fn units_of(words: &[ShellWord]) -> Vec<GlobUnit> {
    let mut units = Vec::new();
    for (index, word) in words.iter().enumerate() {
        add_units(word, index > 0, &mut units);
    }
    units
}

/// The command behind wrappers, and whether any word of it may be a program.
pub(in crate::permission) fn inner(part: &ShellCommandPart) -> (&[ShellWord], bool) {
    let Some(start) = stripped(&part.words) else {
        return (&part.words, true);
    };
    let words = &part.words[start..];
    let runs = words
        .first()
        .is_some_and(|word| RUNNERS.contains(&program(word).as_str()) || word.is_open());
    (words, runs || runs_by_git(words))
}

/// Commands of git whose arguments are commands.
fn runs_by_git(words: &[ShellWord]) -> bool {
    const RUNNING: &[&str] = &[
        "bisect",
        "difftool",
        "filter-branch",
        "for-each-repo",
        "rebase",
        "submodule",
    ];
    let is_git = words.first().is_some_and(|word| program(word) == "git");
    let command = || GitCommand::read(&words[1..]).name().unwrap_or_default();
    is_git && RUNNING.contains(&command().as_str())
}

pub(in crate::permission) fn add_units(
    word: &ShellWord,
    is_later: bool,
    units: &mut Vec<GlobUnit>,
) {
    let vanishes = matches!(
        word.pieces.as_slice(),
        [ShellWordPart::Hole { quoted: false }]
    );
    if is_later && !vanishes {
        units.push(GlobUnit::Char(' '));
    }
    if !word.is_open() {
        units.extend(shown(word).chars().map(GlobUnit::Char));
        return;
    }
    for piece in &word.pieces {
        match piece {
            ShellWordPart::Text(text) => units.extend(text.chars().map(GlobUnit::Char)),
            ShellWordPart::Home => units.push(GlobUnit::Char('~')),
            ShellWordPart::Hole { .. } | ShellWordPart::Glob(_) => units.push(GlobUnit::Any),
        }
    }
}

/// A word without needless quotes; with them where they matter.
pub(in crate::permission) fn shown(word: &ShellWord) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_./:=@%+,~-{}^".contains(c);
    let text = match word.pieces.as_slice() {
        [ShellWordPart::Home] => Some("~".to_owned()),
        [ShellWordPart::Home, ShellWordPart::Text(rest)] => Some(format!("~{rest}")),
        _ => word.text(),
    };
    match text {
        Some(text) if !text.is_empty() && text.chars().all(is_plain) => text,
        _ => word.raw.clone(),
    }
}

/// The path a word names, with `~` for the home folder.
pub(in crate::permission) fn raw_path(word: &ShellWord) -> String {
    match word.pieces.as_slice() {
        [ShellWordPart::Home] => "~".to_owned(),
        [ShellWordPart::Home, ShellWordPart::Text(rest)] => format!("~{rest}"),
        // A tilde that was quoted is a name.
        _ => match word.text() {
            Some(text) if text.starts_with('~') => format!("./{text}"),
            Some(text) => text,
            None => String::new(),
        },
    }
}

pub(in crate::permission) fn joined(words: &[ShellWord]) -> String {
    let words: Vec<String> = words.iter().map(shown).collect();
    words.join(" ")
}

pub(in crate::permission) fn raw(words: &[ShellWord]) -> String {
    let words: Vec<&str> = words.iter().map(|word| word.raw.as_str()).collect();
    words.join(" ")
}

/// A part as a person reads it.
pub(in crate::permission) fn shown_part(part: &ShellCommandPart) -> String {
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

/// The name of a program without its folder, and the one it has everywhere: some systems put a
/// letter before GNU's programs or call others differently.
pub(in crate::permission) fn program(word: &ShellWord) -> String {
    const OTHERS: &[(&str, &str)] = &[
        ("ack-grep", "ack"),
        ("batcat", "bat"),
        ("fdfind", "fd"),
        ("gmake", "make"),
        ("nodejs", "node"),
        ("rgrep", "grep"),
    ];
    const GNU: &[&str] = &[
        "awk", "base64", "cat", "chgrp", "chmod", "chown", "chroot", "cp", "cut", "date", "dd",
        "diff", "env", "find", "grep", "head", "install", "ln", "mkdir", "mv", "nice", "nohup",
        "rm", "rmdir", "sed", "shred", "shuf", "sort", "split", "stdbuf", "tail", "tar", "tee",
        "timeout", "touch", "truncate", "uniq", "unlink", "xargs",
    ];
    let text = shown(word);
    let name = text.rsplit_once('/').map_or(&*text, |(_, name)| name);
    if let Some((_, other)) = OTHERS.iter().find(|(own, _)| *own == name) {
        return (*other).to_owned();
    }
    match name.strip_prefix('g') {
        // This one is a program with options of its own.
        Some("awk") => name.to_owned(),
        Some(plain) if GNU.contains(&plain) => plain.to_owned(),
        _ => name.to_owned(),
    }
}

/// What a program gets of a word, up to what is not known yet.
pub(in crate::permission) fn known_text(word: &ShellWord) -> String {
    let mut text = String::new();
    for piece in &word.pieces {
        match piece {
            ShellWordPart::Text(part) => text.push_str(part),
            _ => break,
        }
    }
    text
}
