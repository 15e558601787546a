//! What programs do: which run others, which only look, which files they name.

use super::command_texts::{known_text, program, shown};
use super::option_effects::{self, could_be_option};
use crate::permission::shell_parser::{ShellCommandPart, ShellWord, ShellWordPart};

/// Programs that run the command behind them and are taken off before rules are asked.
pub(super) const WRAPPERS: &[&str] = &[
    "timeout", "time", "nice", "nohup", "stdbuf", "command", "builtin", "noglob", "xargs",
];

/// Programs that run what their arguments say. Rules that deny look at all of these.
pub(in crate::permission) const RUNNERS: &[&str] = &[
    "ash",
    "at",
    "bash",
    "batch",
    "bunx",
    "busybox",
    "caffeinate",
    "catchsegv",
    "chroot",
    "chronic",
    "chrt",
    "dash",
    "dbus-run-session",
    "doas",
    "entr",
    "env",
    "eval",
    "exec",
    "fakeroot",
    "faketime",
    "fd",
    "find",
    "firejail",
    "fish",
    "flock",
    "gosu",
    "hyperfine",
    "ionice",
    "ksh",
    "ltrace",
    "npx",
    "nsenter",
    "numactl",
    "parallel",
    "perf",
    "pkexec",
    "prlimit",
    "proot",
    "proxychains",
    "proxychains4",
    "runuser",
    "screen",
    "script",
    "setpriv",
    "setsid",
    "sh",
    "ssh",
    "strace",
    "su",
    "su-exec",
    "sudo",
    "systemd-run",
    "taskset",
    "tmux",
    "toybox",
    "torsocks",
    "trap",
    "unbuffer",
    "unshare",
    "valgrind",
    "watch",
    "zsh",
];

/// Shells, which run what they read.
pub(super) const SHELLS: &[&str] = &["ash", "bash", "dash", "fish", "ksh", "sh", "zsh"];

/// Programs that no rule with a star can allow, because anything can stand behind them.
pub(super) const NEVER: &[&str] = &[
    "watch", "setsid", "ionice", "flock", "env", "eval", "alias", "trap", "hash", "enable", "exec",
    "bind", "compgen", "complete", "fc", "history",
];

/// Builtins that calculate an index, and so run what stands in `$(…)` inside plain quotes.
pub(super) const INDEXING: &[&str] = &[
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
pub(super) const FINDS: &[&str] = &[
    "-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls",
];

/// Variables that make no program run anything else.
pub(super) const SAFE: &[&str] = &[
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
pub(super) const READERS: &[&str] = &[
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
pub(super) const WRITERS: &[&str] = &[
    "chmod", "chown", "cp", "dd", "install", "ln", "mkdir", "mv", "patch", "rm", "rmdir", "rsync",
    "scp", "sed", "shred", "split", "tee", "touch", "truncate", "unlink", "unzip",
];

/// Where the command behind wrappers begins; `None` if that is not clear.
pub(in crate::permission) fn stripped(words: &[ShellWord]) -> Option<usize> {
    let mut at = 0;
    // Each step takes off one wrapper.
    while let Some(word) = words.get(at) {
        let name = shown(word);
        if !WRAPPERS.contains(&name.as_str()) {
            return Some(at);
        }
        let texts: Vec<String> = words[at + 1..].iter().map(shown).collect();
        let is_open = |index: usize| words.get(at + 1 + index).is_none_or(ShellWord::is_open);
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

/// Programs that build commands of what comes in.
pub(super) const FEEDERS: &[&str] = &["xargs", "parallel"];

/// Where a program stands that builds commands of what comes in, and what it replaces in them.
pub(super) fn feeder(words: &[ShellWord]) -> Option<(usize, String)> {
    let at = words
        .iter()
        .position(|word| FEEDERS.contains(&program(word).as_str()))?;
    let runs = |word: &ShellWord| {
        let name = program(word);
        RUNNERS.contains(&name.as_str()) || WRAPPERS.contains(&name.as_str())
    };
    // Behind others its name is only a word.
    if at > 0 && !words.first().is_some_and(runs) {
        return None;
    }
    let mut options = words[at + 1..].iter().map(known_text);
    while let Some(option) = options.next().filter(|text| text.starts_with('-')) {
        let mark = match option.as_str() {
            "-I" | "-J" => options.next(),
            _ => option
                .strip_prefix("-I")
                .or_else(|| option.strip_prefix("-i"))
                .or_else(|| option.strip_prefix("--replace="))
                .map(str::to_owned),
        };
        if let Some(mark) = mark.filter(|mark| !mark.is_empty()) {
            return Some((at, mark));
        }
        // A value of an option is no mark.
        if ["-n", "-P", "-L", "-s", "-d", "-a", "-E", "-j"].contains(&option.as_str()) {
            options.next();
        }
    }
    Some((at, "{}".to_owned()))
}

/// The command behind wrappers as it will be called: `xargs` adds words that nobody knows.
pub(super) fn called(words: &[ShellWord], start: usize) -> Vec<ShellWord> {
    let mut called = words[start..].to_vec();
    let name = words.first().map(program).unwrap_or_default();
    let hides = RUNNERS.contains(&name.as_str()) || WRAPPERS.contains(&name.as_str());
    let last = if hides { words.len() } else { start };
    if words[..last].iter().any(|word| program(word) == "xargs") {
        called.push(ShellWord {
            raw: "…".to_owned(),
            pieces: vec![ShellWordPart::Hole { quoted: false }],
        });
    }
    called
}

pub(in crate::permission) fn timeout(texts: &[String]) -> Option<usize> {
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

pub(in crate::permission) fn nice(texts: &[String]) -> Option<usize> {
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

pub(in crate::permission) fn is_buffer(text: &str) -> bool {
    let rest = ["-i", "-o", "-e"]
        .iter()
        .find_map(|start| text.strip_prefix(start));
    rest.is_some_and(|size| !size.is_empty() && size.chars().all(|c| c.is_ascii_alphanumeric()))
}

/// Whether only an exact rule can allow this.
pub(in crate::permission) fn is_never(words: &[ShellWord]) -> bool {
    let Some(first) = words.first() else {
        return true;
    };
    let name = program(first);
    let name = name.as_str();
    if NEVER.contains(&name) || WRAPPERS.contains(&name) && words.len() > 1 && !is_lookup(words) {
        return true;
    }
    if name == "find" {
        // An argument that is not known yet could be any of them, and so could a name of a file.
        return words[1..].iter().any(|word| {
            let could = word
                .pieces
                .iter()
                .any(|piece| matches!(piece, ShellWordPart::Hole { .. }));
            could || could_be_option(word) || FINDS.contains(&known_text(word).as_str())
        });
    }
    if option_effects::runs(words) {
        return true;
    }
    INDEXING.contains(&name)
        && words[1..].iter().any(|word| {
            let text = word.text().unwrap_or_default();
            text.contains('[') && (text.contains("$(") || text.contains('`')) || is_mixed(word)
        })
}

/// `command -v NAME`.
pub(in crate::permission) fn is_lookup(words: &[ShellWord]) -> bool {
    words.len() > 1
        && shown(&words[0]) == "command"
        && ["-v", "-V"].contains(&shown(&words[1]).as_str())
}

/// Whether an index is put together of text and holes.
pub(in crate::permission) fn is_mixed(word: &ShellWord) -> bool {
    word.is_open()
        && word.pieces.iter().any(|piece| match piece {
            ShellWordPart::Text(text) => text.contains('['),
            ShellWordPart::Glob(c) => *c == '[',
            _ => false,
        })
}

pub(in crate::permission) fn is_safe(name: &str, lasting: bool) -> bool {
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
pub(in crate::permission) fn is_harmless(name: &str) -> bool {
    [":", "true", "false", "exit", "return", "break", "continue"].contains(&name)
}

/// Programs that read and do nothing else, with the arguments that would change that.
pub(super) const LOOKS: &[(&str, &[&str])] = &[
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

/// More programs that take what comes in as data, whatever stands in it.
const TAKES_DATA: &[&str] = &[
    "base32",
    "base64",
    "fold",
    "join",
    "md5sum",
    "od",
    "paste",
    "sha1sum",
    "sha256sum",
    "shuf",
    "sort",
    "uniq",
    "xxd",
    "yq",
];

/// Whether a program takes what comes in as data, so that nothing of it can be an order.
pub(in crate::permission) fn only_takes_data(name: &str) -> bool {
    TAKES_DATA.contains(&name) || LOOKS.iter().any(|(look, _)| *look == name)
}

/// Commands of git that only look.
pub(super) const GIT: &[&str] = &[
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
pub(in crate::permission) fn only_reads(part: &ShellCommandPart) -> bool {
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
    let has_hole = |word: &ShellWord| {
        word.pieces
            .iter()
            .any(|piece| matches!(piece, ShellWordPart::Hole { .. }))
    };
    let called = called(&part.words, start);
    if words.iter().any(has_hole) || is_never(&called) {
        return false;
    }
    let name = shown(first);
    if name == "cd" || is_harmless(&name) {
        return true;
    }
    if !option_effects::effects(&called).is_empty() {
        return false;
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
