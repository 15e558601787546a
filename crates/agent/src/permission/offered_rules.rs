//! "For this session" and "always": which rules an approval offers to add.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::bash::{RUNNERS, is_known, is_never, only_takes_data, stripped};
use super::path::ResolvedPath;
use super::rule_editing::{self, RuleWriteError};
use super::shell_parser::{ShellCommandPart, ShellWord};
use super::{PermissionPolicy, PermissionVerdict};
use crate::settings::{RuleKind, SettingsLayer};

/// Programs whose second word says what they do.
pub(super) const WITH_COMMANDS: &[&str] = &[
    "apt",
    "brew",
    "bun",
    "bundle",
    "cargo",
    "composer",
    "deno",
    "docker",
    "dotnet",
    "gh",
    "git",
    "go",
    "gradle",
    "helm",
    "just",
    "kubectl",
    "make",
    "mix",
    "mvn",
    "npm",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "poetry",
    "rustup",
    "systemctl",
    "terraform",
    "tox",
    "uv",
    "yarn",
];

/// Programs that run what they are given, or cannot be undone; only the exact command is offered.
/// A version at the end of a name (`python3.12`) does not count.
const OPEN: &[&str] = &[
    ".",
    "awk",
    "bunx",
    "busybox",
    "chmod",
    "chown",
    "chroot",
    "chrt",
    "curl",
    "dd",
    "doas",
    "entr",
    "env",
    "eval",
    "exec",
    "fd",
    "flock",
    "gawk",
    "hyperfine",
    "ionice",
    "java",
    "kill",
    "killall",
    "ltrace",
    "mawk",
    "nawk",
    "npx",
    "nsenter",
    "pipx",
    "pkexec",
    "pkill",
    "pnpx",
    "rm",
    "rmdir",
    "rsync",
    "runuser",
    "scp",
    "script",
    "sed",
    "setpriv",
    "setsid",
    "source",
    "strace",
    "sudo",
    "systemd-run",
    "taskset",
    "tee",
    "trap",
    "unbuffer",
    "unshare",
    "uvx",
    "valgrind",
    "watch",
    "wget",
];

/// Programs that run a file or a text of code, and what comes in where they are given none.
const INTERPRETERS: &[&str] = &[
    "R",
    "Rscript",
    "ash",
    "bash",
    "bb",
    "clisp",
    "clojure",
    "crystal",
    "csh",
    "dart",
    "dash",
    "elixir",
    "elvish",
    "erl",
    "expect",
    "fish",
    "ghci",
    "groovy",
    "guile",
    "iex",
    "irb",
    "jshell",
    "julia",
    "kotlin",
    "kotlinc",
    "ksh",
    "lua",
    "luajit",
    "mksh",
    "nim",
    "node",
    "nodejs",
    "nu",
    "ocaml",
    "octave",
    "osascript",
    "perl",
    "php",
    "powershell",
    "pwsh",
    "pypy",
    "python",
    "racket",
    "raku",
    "ruby",
    "runghc",
    "runhaskell",
    "rust-script",
    "sbcl",
    "scala",
    "sh",
    "swift",
    "tclsh",
    "tcsh",
    "ts-node",
    "tsx",
    "wish",
    "xonsh",
    "zsh",
];

/// Programs that do what comes in, whatever else they are given.
const OBEDIENT: &[&str] = &[
    "at",
    "batch",
    "bc",
    "crontab",
    "dc",
    "duckdb",
    "ed",
    "emacs",
    "ex",
    "ftp",
    "gdb",
    "gnuplot",
    "lftp",
    "lldb",
    "m4",
    "mariadb",
    "mongo",
    "mongosh",
    "mysql",
    "nc",
    "ncat",
    "nvim",
    "parallel",
    "psql",
    "redis-cli",
    "screen",
    "sftp",
    "socat",
    "sqlite",
    "sqlite3",
    "ssh",
    "su",
    "telnet",
    "tmux",
    "vi",
    "vim",
    "xargs",
];

/// Options behind which code stands, for many programs.
const WITH_CODE: &[&str] = &[
    "-c",
    "-e",
    "-E",
    "--command",
    "--eval",
    "--exec",
    "--execute",
    "--run",
    "--filter",
    "-P",
];

/// Options of interpreters that say what is run, so that nothing that comes in is: letters, which
/// may stand behind others (`-lc`), and long ones. The same letter means else for another.
const SAYS_WHAT: &[(&[&str], &str, &[&str])] = &[
    (SHELLS, "c", &["--command", "--commands"]),
    (&["python", "pypy"], "cm", &[]),
    (&["perl"], "eE", &[]),
    (&["ruby"], "e", &[]),
    (
        &["node", "nodejs", "tsx", "ts-node"],
        "ep",
        &["--eval", "--print"],
    ),
    (&["php"], "r", &["--run"]),
];

/// The same for all others.
const SAYS_WHAT_ELSE: &[&str] = &[
    "-c",
    "-e",
    "-E",
    "-m",
    "-r",
    "--command",
    "--eval",
    "--print",
];

/// Interpreters with the options of a shell.
const SHELLS: &[&str] = &[
    "ash", "bash", "csh", "dash", "elvish", "fish", "ksh", "mksh", "nu", "sh", "tcsh", "xonsh",
    "zsh",
];

/// Options of shells behind which a value stands.
const SHELL_VALUES: &[&str] = &["-o", "+o", "-O", "+O", "--rcfile", "--init-file"];

/// Programs that take their orders from a file, which may be what comes in.
const FILES_OF_ORDERS: &[&str] = &["gmake", "just", "make", "ninja"];

/// Whether a word names what comes in.
fn is_stdin(text: &str) -> bool {
    ["-", "/dev/stdin", "@-"].contains(&text)
        || text.starts_with("/dev/fd/")
        || text.starts_with("/proc/self/fd/")
}

/// Second words behind which a program or code stands.
const RUNS: &[&str] = &[
    "console", "debug", "dlx", "eval", "exec", "generate", "repl", "run", "runner", "shell", "ssh",
    "task", "tool", "x",
];

/// Those that mean this to every program that has commands.
const RUNS_ANYWHERE: &[&str] = &[
    "console", "eval", "exec", "repl", "run", "runner", "shell", "ssh",
];

/// Second words behind which the command stands.
const PLACES: &[&str] = &["compose", "compute", "container", "env", "machine", "pod"];

/// Programs whose `run` names a script of the project, or the project itself.
const RUNS_A_SCRIPT: &[&str] = &["cargo", "npm", "pnpm", "yarn"];

/// The rule that would allow a part, if one can. It is never wider than the words that are
/// shown: who takes code from elsewhere gets none, who is given code gets its exact words.
pub(super) fn for_part(part: &ShellCommandPart) -> Option<String> {
    let start = stripped(&part.words)?;
    let words = &part.words[start..];
    let name = words.first()?.text().filter(|name| is_plain(name))?;
    let base = name.rsplit('/').next().unwrap_or_default();
    let texts: Vec<Option<String>> = words.iter().map(ShellWord::text).collect();
    let text = |at: usize| texts.get(at).and_then(Option::as_deref);
    let known = |at: usize| text(at).filter(|text| is_plain(text));
    let is_open = is_open(&name);
    // A rule shows nothing of what comes in, and a program that nobody knows may obey it.
    if part.fed && !only_takes_data(base) {
        return None;
    }
    let fed = part.words[..start].iter().any(|word| word.raw == "xargs");
    let runs_another = runs_another(words, &texts);
    if takes_code_from_elsewhere(&texts, runs_another) || (fed && is_open) {
        return None;
    }
    let given_code = || {
        let mut texts = texts.iter().skip(1).flatten();
        texts.any(|text| WITH_CODE.iter().any(|option| is_option(text, option)))
    };
    // `rails runner x`, `docker compose exec app x`, `mvn exec:java`.
    let runs_a_script = known(1) == Some("run") && RUNS_A_SCRIPT.contains(&base);
    let is_run = |text: &str| {
        let text = text.split(':').next().unwrap_or_default();
        match WITH_COMMANDS.contains(&base) {
            true => RUNS.contains(&text),
            false => RUNS_ANYWHERE.contains(&text) && !is_known(base),
        }
    };
    let place = known(1).filter(|text| PLACES.contains(text));
    let command = if place.is_some() { known(2) } else { known(1) };
    if !runs_a_script && command.is_some_and(is_run) {
        return exact(part, words);
    }
    if !WITH_COMMANDS.contains(&base) {
        return match is_never(words) || is_open || given_code() {
            true => exact(part, words),
            false => Some(format!("Bash({name}:*)")),
        };
    }
    match known(1) {
        Some("run") => match known(2) {
            Some(script) if !script.starts_with('-') => {
                Some(format!("Bash({name} run {script}:*)"))
            }
            _ => Some(format!("Bash({name} run:*)")),
        },
        Some(second) if !second.starts_with('-') => Some(format!("Bash({name} {second}:*)")),
        _ => None,
    }
}

/// The rule for these very words.
fn exact(part: &ShellCommandPart, words: &[ShellWord]) -> Option<String> {
    let exact: Vec<&str> = words.iter().map(|word| word.raw.as_str()).collect();
    let exact = exact.join(" ");
    // A rule is one line, and a star in it would be any text.
    let can_be = !exact.contains(['*', '\\']) && !exact.contains(char::is_control);
    let known = part.assigns.is_empty() && words.iter().all(|word| !word.is_open());
    (can_be && known).then(|| format!("Bash({exact})"))
}

/// Whether the command behind wrappers runs what comes in.
pub(super) fn runs_its_input(words: &[ShellWord]) -> bool {
    let texts: Vec<Option<String>> = words.iter().map(ShellWord::text).collect();
    let Some(name) = texts.first().and_then(Option::as_deref) else {
        return true;
    };
    let base = name.rsplit('/').next().unwrap_or_default();
    if only_takes_data(base) {
        return false;
    }
    let runs_another = runs_another(words, &texts);
    let takes_orders = runs_another || is_one_of(FILES_OF_ORDERS, base);
    (takes_orders && names_stdin(&texts)) || runs_stdin(&texts, runs_another)
}

/// Whether any of the words may be a program (`sudo bash`).
fn runs_another(words: &[ShellWord], texts: &[Option<String>]) -> bool {
    let text = |at: usize| texts.get(at).and_then(Option::as_deref).unwrap_or_default();
    let base = text(0).rsplit('/').next().unwrap_or_default();
    match WITH_COMMANDS.contains(&base) {
        true => text(1) == "run" || RUNS.contains(&text(1)),
        false => is_open(text(0)) || is_never(words),
    }
}

fn is_open(name: &str) -> bool {
    let base = name.rsplit('/').next().unwrap_or_default();
    let runs = RUNNERS.contains(&base);
    runs || is_one_of(OPEN, base) || is_interpreter(base) || name.contains('/')
}

fn names_stdin(texts: &[Option<String>]) -> bool {
    let mut texts = texts.iter().skip(1).flatten();
    texts.any(|text| is_stdin(text))
}

/// Whether a program takes what comes in: from a pipe, a file or a here-document, none of which a
/// rule tells apart.
fn takes_code_from_elsewhere(texts: &[Option<String>], runs_another: bool) -> bool {
    names_stdin(texts) || runs_stdin(texts, runs_another)
}

/// Whether an interpreter with these words behind it is told what to run; else it runs what
/// comes in.
fn is_told_what(base: &str, words: &[Option<String>]) -> bool {
    let family = SAYS_WHAT.iter().find(|(names, ..)| is_one_of(names, base));
    let says = |text: &str| match family {
        None => SAYS_WHAT_ELSE.contains(&text),
        Some((_, letters, long)) => {
            let short = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
            let last = short.and_then(|rest| rest.chars().next_back());
            last.is_some_and(|last| letters.contains(last)) || long.contains(&text)
        }
    };
    let is_shell = is_one_of(SHELLS, base);
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let Some(text) = word.as_deref() else {
            return at == 0;
        };
        if is_stdin(text) {
            return false;
        }
        if says(text) {
            return words.len() > at + 1;
        }
        let is_option = text.starts_with('-') || (is_shell && text.starts_with('+'));
        if !is_option {
            // Only of shells it is known which options have no value, so that this is a file.
            return is_shell || at == 0;
        }
        if is_shell && !text.starts_with("--") && text.contains('s') {
            return false;
        }
        at += 1 + usize::from(is_shell && SHELL_VALUES.contains(&text));
        // Others have options with values, among which a later one may still say it.
        if !is_shell {
            at = (at..words.len())
                .find(|at| {
                    let text = words[*at].as_deref();
                    text.is_some_and(|text| text.starts_with('-'))
                })
                .unwrap_or(words.len());
        }
    }
    false
}

/// Whether a program runs what comes in. `runs_another`: any of the words may be a program.
fn runs_stdin(texts: &[Option<String>], runs_another: bool) -> bool {
    let text = |at: usize| texts.get(at).and_then(Option::as_deref);
    let programs = if runs_another { texts.len() } else { 1 };
    (0..programs).any(|at| {
        let Some(name) = text(at) else { return false };
        let base = name.rsplit('/').next().unwrap_or_default();
        let given = |wanted: &[&str]| {
            let mut rest = texts[at + 1..].iter();
            let place =
                rest.position(|text| text.as_deref().is_some_and(|it| wanted.contains(&it)));
            place.is_some_and(|place| texts.len() > at + place + 2)
        };
        if is_one_of(INTERPRETERS, base) {
            return !is_told_what(base, &texts[at + 1..]);
        }
        match base {
            // Among the words of another program these are more often names than programs.
            "xargs" | "parallel" => true,
            _ if at > 0 => false,
            "ssh" => {
                let words = texts[1..].iter();
                let mut words = words.map(|text| text.as_deref().unwrap_or("?"));
                words.len() < 2 || words.any(|text| text.starts_with('-'))
            }
            "psql" | "su" | "vim" | "nvim" | "vi" => !given(&["-c", "--command"]),
            "mysql" | "mariadb" => !given(&["-e", "--execute"]),
            _ => is_one_of(OBEDIENT, base),
        }
    })
}

fn is_option(text: &str, option: &str) -> bool {
    let rest = text.strip_prefix(option);
    rest.is_some_and(|rest| rest.is_empty() || (option.starts_with("--") && rest.starts_with('=')))
}

fn is_interpreter(base: &str) -> bool {
    is_one_of(INTERPRETERS, base) || is_one_of(OBEDIENT, base)
}

/// Whether a name is in a list, also with a version behind it.
fn is_one_of(list: &[&str], base: &str) -> bool {
    let bare = base.trim_end_matches(|c: char| c.is_ascii_digit() || ".-".contains(c));
    list.contains(&base) || (!bare.is_empty() && list.contains(&bare))
}

fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_./:@%+,-".contains(c))
}

impl PermissionPolicy {
    /// These rules, if they save the question about a call; none otherwise, for somebody who adds
    /// one does not expect to be asked again.
    pub fn sufficient(
        &self,
        tool: &str,
        input: &Value,
        cwd: &Path,
        rules: Vec<String>,
    ) -> Vec<String> {
        let allowed = || self.with(&rules).judge(tool, input, cwd);
        match rules.is_empty() || matches!(allowed(), PermissionVerdict::Allow { .. }) {
            true => rules,
            false => Vec::new(),
        }
    }

    /// The rule that would allow changing files in the same folder, or the file alone.
    pub(super) fn always_edit(&self, place: &ResolvedPath) -> Vec<String> {
        self.always_file("Edit", &place.written)
    }

    /// The rule that would allow reading files in the same folder, or the file alone.
    pub(super) fn always_read(&self, place: &ResolvedPath) -> Vec<String> {
        match place.written.is_dir() {
            true => self.always_path("Read", &place.written, "/**"),
            false => self.always_file("Read", &place.written),
        }
    }

    fn always_file(&self, tool: &str, file: &Path) -> Vec<String> {
        let folder = file.parent().unwrap_or(Path::new("/"));
        // A folder that holds a whole project is far more than the file that is shown.
        let works = self.work.iter().map(|folder| folder.written.as_path());
        let mut wholes = works.chain([&*self.root, &*self.project, &*self.home]);
        match wholes.any(|whole| whole.starts_with(folder)) {
            true => self.always_path(tool, file, ""),
            false => self.always_path(tool, folder, "/**"),
        }
    }

    /// A rule for a file, or with `/**` behind it for a folder.
    fn always_path(&self, tool: &str, path: &Path, behind: &str) -> Vec<String> {
        let Some(text) = path.to_str() else {
            return Vec::new();
        };
        // What would be read as a pattern, or not be seen, cannot be written as a path; nor is all
        // of a system offered.
        let odd = |c: char| "*?[\\!()#".contains(c) || c.is_control() || !is_seen(c);
        let short = path.components().count() < 3;
        if text.contains(odd) || short || text.trim() != text {
            return Vec::new();
        }
        let below = |base: &Path| path.strip_prefix(base).ok().map(Path::to_path_buf);
        let path = match (below(&self.root), below(&self.home)) {
            (Some(below), _) if below.as_os_str().is_empty() => return Vec::new(),
            (Some(below), _) => format!("/{}", below.display()),
            (_, Some(below)) if below.as_os_str().is_empty() => return Vec::new(),
            (_, Some(below)) => format!("~/{}", below.display()),
            _ => format!("/{text}"),
        };
        vec![format!("{tool}({path}{behind})")]
    }
}

/// Whether a character of a path is seen as what it is.
fn is_seen(c: char) -> bool {
    c == ' ' || c.is_alphanumeric() || c.is_ascii_punctuation() || !c.is_ascii() && !hides(c)
}

/// Changes the direction of text, or takes no space.
fn hides(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Adds rules to `.claude/settings.local.json` at the top of the working tree, and keeps every
/// other byte of it. Returns the file.
pub fn store(rules: &[String], project: &Path) -> Result<PathBuf, RuleWriteError> {
    let path = rule_editing::file(SettingsLayer::Local, Path::new(""), project);
    let path = path.ok_or("no such file")?;
    rule_editing::change(&path, SettingsLayer::Local, |old| {
        rule_editing::added(old, RuleKind::Allow, rules)
    })?;
    Ok(path)
}
