//! What options of known programs do besides what the program is for: write a file, run something.
//!
//! A rule such as `Bash(sort:*)` means reading. So a file that an option names is judged like the
//! target of a redirection, and an option that runs something needs a rule with its exact text.
//! Options are found as the programs find them: alone, in a cluster, glued to their value, cut short.

mod known_options;
mod scripts;

use super::command_texts::{known_text, program};
use super::git_command::GitCommand;
use super::known_programs::{LOOKS, READERS, WRITERS};
use crate::permission::shell_parser::{ShellWord, ShellWordPart};
use known_options::{GIT, GIT_RUNS, ProgramOptions, READING, RUNNING_WORDS, WRITING};

/// What an argument does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ArgumentEffect {
    /// It names a file that is written.
    Writes(ShellWord),
    /// It runs something, or could.
    Runs(String),
}

/// What the arguments of a program do besides what it is for. `words` begin with the program.
pub(super) fn effects(words: &[ShellWord]) -> Vec<ArgumentEffect> {
    let Some((first, arguments)) = words.split_first() else {
        return Vec::new();
    };
    let name = program(first);
    match name.as_str() {
        "git" => git(arguments),
        "xmllint" => {
            let arguments: Vec<ShellWord> = arguments.iter().map(with_two_dashes).collect();
            known(&name, &arguments)
        }
        "curl" => [curl(arguments), known(&name, arguments)].concat(),
        "sed" | "gsed" => scripts::sed(arguments),
        "awk" | "gawk" | "mawk" | "nawk" => scripts::awk(arguments),
        "dd" => dd(arguments),
        "tar" | "bsdtar" | "gtar" => tar(arguments),
        "sqlite3" => match arguments
            .iter()
            .any(|word| word.is_open() || commands_sqlite(word))
        {
            true => vec![ArgumentEffect::Runs(name)],
            false => Vec::new(),
        },
        name if reads_only(name) => Vec::new(),
        _ => known(&name, arguments),
    }
}

/// By the table of options, or by what options are mostly called.
fn known(name: &str, arguments: &[ShellWord]) -> Vec<ArgumentEffect> {
    let starts = RUNNING_WORDS
        .iter()
        .filter(|(programs, _)| programs.contains(&name));
    let starts: Vec<&str> = starts
        .flat_map(|(_, starts)| starts.iter().copied())
        .collect();
    let runs = |word: &&ShellWord| {
        let text = known_text(word);
        starts.iter().any(|start| text.starts_with(start))
    };
    let found = arguments.iter().filter(runs);
    let mut effects: Vec<ArgumentEffect> = found
        .map(|word| ArgumentEffect::Runs(format!("{name} {}", word.raw)))
        .collect();
    let mut known = READING.iter().chain(WRITING);
    effects.extend(match known.find(|(program, _)| *program == name) {
        Some((_, options)) => of(name, arguments, options),
        None => guessed(arguments),
    });
    effects
}

/// Some programs take long options behind one dash.
fn with_two_dashes(word: &ShellWord) -> ShellWord {
    let mut word = word.clone();
    if let Some(ShellWordPart::Text(text)) = word.pieces.first_mut()
        && text.starts_with('-')
        && !text.starts_with("--")
        && text.len() > 2
    {
        text.insert(0, '-');
        word.raw = format!("-{}", word.raw);
    }
    word
}

/// What a format, a variable or a pattern in the address lets `curl` write.
fn curl(arguments: &[ShellWord]) -> Vec<ArgumentEffect> {
    let mut effects = Vec::new();
    for (index, word) in arguments.iter().enumerate() {
        let text = known_text(word);
        let before = index
            .checked_sub(1)
            .map(|before| known_text(&arguments[before]));
        let is_behind = |letter: char, long: &str| {
            let glued = text.starts_with('-') && text.contains(letter) || text.starts_with(long);
            let alone = |before: &String| {
                before.starts_with('-')
                    && (before.ends_with(letter)
                        || (before.len() > 4 && long.starts_with(before.as_str())))
            };
            glued || before.as_ref().is_some_and(alone)
        };
        let formats = text.contains("%output{") || text.contains('@') || word.is_open();
        let names = text.contains('#');
        if text.starts_with("--expand-")
            || text.starts_with("--variable")
            || (formats && is_behind('w', "--write-out") && !text.contains("://"))
            || (names && is_behind('o', "--output"))
        {
            effects.push(ArgumentEffect::Runs(format!("curl {}", word.raw)));
        }
    }
    effects
}

/// Whether a program reads and has no option that does more.
fn reads_only(name: &str) -> bool {
    let has_options = READING
        .iter()
        .chain(WRITING)
        .any(|(known, _)| *known == name);
    let reads = LOOKS.iter().any(|(look, _)| *look == name)
        || (READERS.contains(&name) && !WRITERS.contains(&name));
    reads && !has_options
}

/// Whether something would run.
pub(super) fn runs(words: &[ShellWord]) -> bool {
    let effects = effects(words);
    effects
        .iter()
        .any(|effect| matches!(effect, ArgumentEffect::Runs(_)))
}

/// Whether a program only reads as far as its name tells, so that a file its options name is no
/// part of what a rule for it means.
pub(super) fn is_reading(name: &str) -> bool {
    name == "git"
        || ["sed", "gsed", "awk", "gawk", "mawk", "nawk", "dd"].contains(&name)
        || READING.iter().any(|(program, _)| *program == name)
}

fn git(arguments: &[ShellWord]) -> Vec<ArgumentEffect> {
    let call = GitCommand::read(arguments);
    let Some(name) = call.name() else {
        return Vec::new();
    };
    let rest = &call.command[1..];
    if call.command[0].is_open() {
        return vec![ArgumentEffect::Runs("git".to_owned())];
    }
    let texts: Vec<String> = rest.iter().map(known_text).collect();
    let full = format!("git {name}");
    let is_address = |text: &String| text.contains("ext::") || text.contains("fd::");
    if GIT_RUNS.contains(&name.as_str())
        || ["remote-", "credential", "difftool", "mergetool", "submodule--"]
            .iter()
            .any(|start| name.starts_with(start))
        // Behind `git-` that is a path of its own: `git docs/run` is `git-docs/run`.
        || name.contains('/')
        || (MERGING.contains(&name.as_str()) && names_strategy(rest))
        || texts.iter().any(is_address)
    {
        return vec![ArgumentEffect::Runs(full)];
    }
    let first = texts.iter().find(|text| !text.starts_with('-'));
    match (name.as_str(), first.map(String::as_str)) {
        ("bisect", Some("run" | "view" | "visualize"))
        | ("submodule", Some("foreach" | "add" | "update")) => {
            return vec![ArgumentEffect::Runs(full)];
        }
        ("config", _) => return git_config(&texts),
        _ => {}
    }
    match GIT.iter().find(|(command, _)| *command == name) {
        Some((_, options)) => of(&full, rest, options),
        None => {
            let mut effects = guessed(rest);
            // `-o` has other meanings: others, only, push options.
            let has_output = texts.iter().any(|text| text.starts_with("--out"));
            effects.retain(|_| has_output || !OTHER_O.contains(&name.as_str()));
            effects.extend(outputs(rest));
            effects
        }
    }
}

/// Commands of git that merge, by a strategy that is a program.
const MERGING: &[&str] = &[
    "am",
    "cherry-pick",
    "merge",
    "pull",
    "rebase",
    "revert",
    "stash",
];

/// Commands of git whose `-o` names no file.
const OTHER_O: &[&str] = &["commit", "fetch", "ls-files", "pull", "push"];

/// Whether the strategy of a merge is a program in a folder, or not known yet.
fn names_strategy(arguments: &[ShellWord]) -> bool {
    let is_open = |word: &ShellWord| known_text(word).contains('/') || word.is_open();
    arguments.iter().enumerate().any(|(index, word)| {
        let text = known_text(word);
        let long = text.split_once('=').map_or(&*text, |(long, _)| long);
        let is_long = long.starts_with("--s") && "--strategy".starts_with(long);
        let is_short = text.starts_with('-') && !text.starts_with("--") && text.contains('s');
        let next = arguments.get(index + 1);
        let is_alone = is_long && !text.contains('=') || is_short && text.ends_with('s');
        ((is_long || is_short) && is_open(word)) || (is_alone && next.is_some_and(is_open))
    })
}

/// Files that options of any command of git write, cut short or not.
fn outputs(arguments: &[ShellWord]) -> Vec<ArgumentEffect> {
    const LONG: &[&str] = &["output", "output-directory", "index-output"];
    let mut effects = Vec::new();
    for (index, word) in arguments.iter().enumerate() {
        let text = known_text(word);
        let Some(long) = text.strip_prefix("--") else {
            continue;
        };
        let (name, has_value) = match long.split_once('=') {
            Some((name, _)) => (name, true),
            None => (long, false),
        };
        if name.len() < 2 || !LONG.iter().any(|option| means(name, option)) {
            continue;
        }
        match has_value {
            true => effects.push(ArgumentEffect::Writes(behind(
                word,
                name.chars().count() + 3,
            ))),
            false => effects.extend(
                arguments
                    .get(index + 1)
                    .cloned()
                    .map(ArgumentEffect::Writes),
            ),
        }
    }
    effects
}

/// `git config` writes a file that git takes orders from, unless it only looks something up.
fn git_config(texts: &[String]) -> Vec<ArgumentEffect> {
    const LOOKS: &[&str] = &[
        "--get",
        "--get-all",
        "--get-regexp",
        "--get-urlmatch",
        "--get-color",
        "--get-colorbool",
        "--list",
        "-l",
        "get",
        "list",
    ];
    const SCOPES: &[&str] = &[
        "--global",
        "--local",
        "--system",
        "--worktree",
        "--show-origin",
        "--show-scope",
        "--name-only",
        "-z",
        "--null",
    ];
    let left: Vec<&String> = texts
        .iter()
        .filter(|text| !SCOPES.contains(&text.as_str()))
        .collect();
    let looks = match left.as_slice() {
        [] => true,
        [one] if !one.starts_with('-') && *one != "edit" => true,
        [first, ..] => LOOKS.contains(&first.as_str()),
    };
    match looks {
        true => Vec::new(),
        false => vec![ArgumentEffect::Writes(word(".git/config"))],
    }
}

fn word(text: &str) -> ShellWord {
    ShellWord {
        raw: text.to_owned(),
        pieces: vec![ShellWordPart::Text(text.to_owned())],
    }
}

fn dd(arguments: &[ShellWord]) -> Vec<ArgumentEffect> {
    let mut effects = Vec::new();
    for argument in arguments {
        if known_text(argument).starts_with("of=") {
            effects.push(ArgumentEffect::Writes(behind(argument, 3)));
        } else if could_be_option(argument) && !known_text(argument).contains('=') {
            effects.push(ArgumentEffect::Runs("dd".to_owned()));
        }
    }
    effects
}

/// The first word of `tar` is a cluster of letters, also without a dash.
fn tar(arguments: &[ShellWord]) -> Vec<ArgumentEffect> {
    let Some((_, options)) = WRITING.iter().find(|(program, _)| *program == "tar") else {
        return Vec::new();
    };
    let mut effects = of("tar", arguments, options);
    let bundle = arguments.first().map(known_text).unwrap_or_default();
    if !bundle.starts_with('-') && bundle.contains(['I', 'F']) {
        effects.push(ArgumentEffect::Runs(format!("tar {bundle}")));
    }
    effects
}

fn commands_sqlite(word: &ShellWord) -> bool {
    let text = word.text().unwrap_or_default().to_lowercase();
    let words = [
        "writefile",
        "load_extension",
        "edit(",
        "attach",
        "-cmd",
        "-init",
        "\n.",
    ];
    text.trim_start().starts_with('.') || words.iter().any(|word| text.contains(word))
}

/// Whether a word could become an option, or several words: what expands to names of files, and
/// what is not known yet.
pub(super) fn could_be_option(word: &ShellWord) -> bool {
    if !word.is_open() {
        return false;
    }
    let starts_with_dash = match word.pieces.first() {
        Some(ShellWordPart::Text(text)) if !text.is_empty() => text.starts_with('-'),
        Some(ShellWordPart::Home) => false,
        _ => true,
    };
    starts_with_dash || splits(word)
}

/// Whether more words than one can come of it, each of which could be anything.
fn splits(word: &ShellWord) -> bool {
    // Braces keep what stands before them.
    let mut at = 0;
    for piece in &word.pieces {
        if matches!(piece, ShellWordPart::Hole { quoted: false }) {
            let brace = word.raw[at.min(word.raw.len())..].find('{');
            let dollar = word.raw[at.min(word.raw.len())..].find(['$', '`']);
            match (brace, dollar) {
                (Some(brace), Some(dollar)) if brace < dollar => at += brace + 1,
                (Some(brace), None) => at += brace + 1,
                _ => return true,
            }
        }
    }
    false
}

/// Whether it can become several words.
fn multiplies(word: &ShellWord) -> bool {
    let has_glob = word
        .pieces
        .iter()
        .any(|piece| matches!(piece, ShellWordPart::Glob(_)));
    has_glob || splits(word)
}

/// A word without its first characters.
fn behind(word: &ShellWord, count: usize) -> ShellWord {
    let mut pieces = word.pieces.clone();
    let mut left = count;
    while let (true, Some(ShellWordPart::Text(text))) = (left > 0, pieces.first_mut()) {
        let cut: usize = text.chars().take(left).map(char::len_utf8).sum();
        left -= text.chars().count().min(left);
        text.drain(..cut);
        if text.is_empty() {
            pieces.remove(0);
        } else {
            break;
        }
    }
    ShellWord {
        raw: word.raw.chars().skip(count).collect(),
        pieces,
    }
}

/// Whether `text` is the name of an option or a short form of it.
fn means(text: &str, option: &str) -> bool {
    !text.is_empty() && option.starts_with(text)
}

fn of(program: &str, arguments: &[ShellWord], options: &ProgramOptions) -> Vec<ArgumentEffect> {
    let mut effects = Vec::new();
    let mut operands = 0;
    let mut at = 0;
    let mut only_operands = false;
    let runs = |option: &str| ArgumentEffect::Runs(format!("{program} {option}"));
    while let Some(word) = arguments.get(at) {
        at += 1;
        // The text as far as it is known: an option before a value that is not.
        let text = known_text(word);
        if !only_operands && text == "--" && !word.is_open() {
            only_operands = true;
            continue;
        }
        // A variable outside quotes can hold an option behind a blank.
        if !only_operands && splits(word) {
            effects.push(runs(&word.raw));
            continue;
        }
        if !only_operands && let Some(long) = text.strip_prefix("--") {
            let (name, has_value) = match long.split_once('=') {
                Some((name, _)) => (name, true),
                None => (long, false),
            };
            if word.is_open() && !has_value {
                effects.push(runs(&word.raw));
                continue;
            }
            if options.known.contains(&name) {
                continue;
            }
            if options.long_runs.iter().any(|option| means(name, option)) {
                effects.push(runs(&format!("--{name}")));
            } else if options.long_writes.iter().any(|option| means(name, option)) {
                match has_value {
                    true => effects.push(ArgumentEffect::Writes(behind(
                        word,
                        name.chars().count() + 3,
                    ))),
                    false => {
                        effects.extend(arguments.get(at).cloned().map(ArgumentEffect::Writes));
                        at += 1;
                    }
                }
            } else if !has_value && options.long_values.iter().any(|option| means(name, option)) {
                at += usize::from(!arguments.get(at).is_some_and(is_option));
            }
            continue;
        }
        if !only_operands && text.len() > 1 && text.starts_with('-') {
            let next = arguments.get(at);
            let taken = cluster(word, &text, options, next, &runs, &mut effects);
            at += if next.is_some_and(is_option) {
                0
            } else {
                taken
            };
            continue;
        }
        if !only_operands && could_be_option(word) {
            effects.push(runs(&word.raw));
            continue;
        }
        if ["less", "zless"].contains(&program) && text.starts_with('+') {
            effects.push(runs(&text));
        }
        if options.output.is_some_and(|output| operands >= output) {
            effects.push(ArgumentEffect::Writes(word.clone()));
        }
        operands += 1;
    }
    effects
}

/// Whether a word looks like an option. As the value of another it is judged all the same: not every
/// program takes it for one.
fn is_option(word: &ShellWord) -> bool {
    known_text(word).starts_with('-')
}

/// Short options in one word. Returns how many words more it took.
fn cluster(
    word: &ShellWord,
    text: &str,
    options: &ProgramOptions,
    next: Option<&ShellWord>,
    runs: &dyn Fn(&str) -> ArgumentEffect,
    effects: &mut Vec<ArgumentEffect>,
) -> usize {
    let letters: Vec<char> = text.chars().skip(1).collect();
    for (index, letter) in letters.iter().enumerate() {
        if options.runs.contains(*letter) {
            effects.push(runs(&format!("-{letter}")));
        }
        let is_last = index + 1 == letters.len();
        if options.writes.contains(*letter) {
            match (is_last && !word.is_open(), next) {
                (true, Some(next)) => effects.push(ArgumentEffect::Writes(next.clone())),
                (true, None) => {}
                (false, _) => effects.push(ArgumentEffect::Writes(behind(word, index + 2))),
            }
        }
        if options.values.contains(*letter) {
            let takes = is_last && !word.is_open();
            if let Some(next) = next.filter(|next| takes && multiplies(next)) {
                effects.push(runs(&next.raw));
            }
            return usize::from(takes);
        }
    }
    if word.is_open() {
        effects.push(runs(&word.raw));
    }
    0
}

/// Options of a program nobody knows that are called like an output.
fn guessed(arguments: &[ShellWord]) -> Vec<ArgumentEffect> {
    const LONG: &[&str] = &[
        "output",
        "out",
        "outfile",
        "out-file",
        "output-file",
        "out-dir",
        "outdir",
        "output-dir",
        "output-directory",
        "log-file",
        "logfile",
        "dest",
        "destination",
        "target-directory",
        "write",
        "write-to",
        "save",
        "save-to",
    ];
    let mut effects = Vec::new();
    for (index, argument) in arguments.iter().enumerate() {
        let text = known_text(argument);
        let Some(option) = text.strip_prefix('-') else {
            if text.starts_with("of=") {
                effects.push(ArgumentEffect::Writes(behind(argument, 3)));
            }
            continue;
        };
        let name = option.strip_prefix('-').unwrap_or(option);
        let next = arguments.get(index + 1);
        match name.split_once('=') {
            Some((name, _)) if LONG.contains(&name) => {
                let skip = text.chars().take_while(|c| *c != '=').count() + 1;
                effects.push(ArgumentEffect::Writes(behind(argument, skip)));
            }
            None if !argument.is_open() && (LONG.contains(&name) || option == "o") => {
                effects.extend(next.cloned().map(ArgumentEffect::Writes));
            }
            _ if option.starts_with('o') => {
                effects.push(ArgumentEffect::Writes(behind(argument, 2)))
            }
            _ => {}
        }
    }
    effects
}
