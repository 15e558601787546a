//! The parser against bash itself: whatever bash runs, the parser must have seen.
//!
//! Programs `a`, `b` and `c` are stubs that note their name. A random text that the parser
//! accepts is given to bash, with a path that holds nothing else, and every program that was
//! noted must be among the parts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use unspool_agent::permission::shell_parser;

const PIECES: &[&str] = &[
    "a",
    "b",
    "c",
    "a ",
    "b ",
    "c ",
    " ",
    " ",
    " ",
    ";",
    "; ",
    " && ",
    " || ",
    " | ",
    " & ",
    "\n",
    "(",
    ")",
    "{ ",
    "; }",
    "$(",
    ")",
    "`",
    "`",
    "'",
    "'",
    "\"",
    "\"",
    "\\",
    "\\\n",
    " <<E\n",
    " <<'E'\n",
    " <<-E\n",
    "\nE\n",
    "#",
    " #",
    "$x",
    "${x:-",
    "}",
    "if ",
    "; then ",
    "; fi",
    "else ",
    "for i in ",
    "; do ",
    "; done",
    "case x in ",
    "x) ",
    " ;; ",
    " esac",
    "f() ",
    "[[ ",
    " ]]",
    " >f",
    " <(",
    "! ",
    "time ",
    "=",
    "x=",
    "((",
    "))",
    "$((",
    "*",
    "~",
    "$",
    "{",
    "}",
    "[",
    "]",
    "${",
    "<",
    ">",
    "$'",
    "1",
    "2>&1",
    "|&",
    "&>",
    "x=(",
    "@",
    "!",
    "==",
    "\t",
    "<<<",
];

/// Notes programs that are not there, so that every try is seen.
const NOTE: &str = "() { printf '%s\\n' \"${1//$'\\n'/ }\" >> \"$SEEN\"; }";

struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap_or(0)
    }
}

fn stubs(folder: &Path) {
    for name in ["a", "b", "c"] {
        let path = folder.join(name);
        // Only builtins, for there is no other program on the path.
        fs::write(
            &path,
            format!("#!/bin/bash\nprintf '{name}\\n' >> \"$SEEN\"\n"),
        )
        .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// A place where bash runs, and what was given to it so far.
struct Bench {
    temp: tempfile::TempDir,
    given: Vec<(String, Vec<String>)>,
}

impl Bench {
    fn new() -> Bench {
        let temp = tempfile::tempdir().unwrap();
        for folder in ["bin", "work", "seen"] {
            fs::create_dir_all(temp.path().join(folder)).unwrap();
        }
        stubs(&temp.path().join("bin"));
        Bench {
            temp,
            given: Vec::new(),
        }
    }

    /// Each text has a file of its own: nobody waits for `<(…)`, which may write late.
    fn seen(&self, at: usize) -> PathBuf {
        self.temp.path().join("seen").join(at.to_string())
    }

    fn run(&self, text: &str, at: usize) {
        let status = Command::new("/usr/bin/timeout")
            .args(["5", "/bin/bash", "--norc", "--noprofile", "-c"])
            .arg(format!("{text}\nwait"))
            .env_clear()
            .env("PATH", self.temp.path().join("bin"))
            .env("SEEN", self.seen(at))
            .env("BASH_FUNC_command_not_found_handle%%", NOTE)
            .current_dir(self.temp.path().join("work"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(status.is_ok());
    }

    /// Gives a text to bash if the parser accepts it; whether it did.
    fn give(&mut self, text: &str) -> bool {
        let Ok(script) = shell_parser::parse(text) else {
            return false;
        };
        // A program that is not known yet is asked about anyway.
        let firsts = || script.parts.iter().filter_map(|part| part.words.first());
        if firsts().any(|word| word.is_open()) {
            return false;
        }
        self.run(text, self.given.len());
        let known = firsts().filter_map(|word| Some(word.text()?.replace('\n', " ")));
        let known = known.collect();
        self.given.push((text.to_owned(), known));
        true
    }

    /// Holds what ran against what the parser saw.
    fn compare(&self) -> usize {
        std::thread::sleep(std::time::Duration::from_millis(500));
        let mut ran = 0;
        for (at, (text, known)) in self.given.iter().enumerate() {
            let seen = fs::read_to_string(self.seen(at)).unwrap_or_default();
            for program in seen.lines() {
                ran += 1;
                assert!(
                    known.iter().any(|name| name == program),
                    "bash ran {program} in {text:?}; the parser saw {known:?}"
                );
            }
        }
        ran
    }
}

#[test]
fn whatever_bash_runs_the_parser_has_seen() {
    let mut bench = Bench::new();
    let rounds = std::env::var("UNSPOOL_ROUNDS").ok();
    let rounds: usize = rounds.and_then(|text| text.parse().ok()).unwrap_or(150);
    let mut dice = Dice(0x5eed_1234_abcd_ef01);
    let mut tried = 0usize;
    while bench.given.len() < rounds {
        tried += 1;
        let len = 3 + dice.below(12);
        let text: String = (0..len).map(|_| PIECES[dice.below(PIECES.len())]).collect();
        // Texts in which nothing could hide are not worth a process.
        let is_plain = |c: char| c.is_alphanumeric() || " ;\n&|".contains(c);
        if !text.chars().all(is_plain) {
            bench.give(&text);
        }
    }
    let ran = bench.compare();
    println!("{rounds} texts of {tried} given to bash, which ran {ran} programs");
    assert!(ran > rounds / 2, "{ran}");
}

#[test]
fn texts_that_once_deceived_are_seen_or_refused() {
    let mut bench = Bench::new();
    assert!(bench.give("a; b"));
    for text in [
        "a \\\n#b; c",
        "a\\\n#b; c",
        "a <<E\nfoo\\\nE\nb <<'F'\nE\nc\nF",
        "a \"$\\\n(b)\"",
        "(\\\n( a + '$(b)' ))",
        "a <<E \"\nE\n\"; b\nE",
        "a ${x:-'$(b)'}",
        "a \"${x:-'$(b)'}\"",
        "a \"${x:-\"$(b)\"}\"",
        "a <<E\n\"$(b)\" '$(c)'\nE",
        "a <<E\n\\$(b) \\\\$(c)\nE",
        "a `echo \\`b\\``",
        "a \"`echo \\\"$(b)\\\"`\"",
        "case b in b) a;; esac; c",
        "[[ a < b ]]; c",
        "[[ -n $(b) && ( x == $(c) ) ]]",
        "x=$(a) y=`b` c",
        "a 2>&1 >/dev/null | b &>/dev/null",
        "a > >(b) < <(c)",
        "f() { a; }; f; b",
        "if a; then b; else c; fi | a",
        "for i in $(a); do b; done; { c; }",
        "a {b,c} {}; b",
        "time a; ! b; time -p c",
        "a |& time b",
        "a | ! b",
        "a $'x\\'y'; b",
        "a 'x'\"y\"z; b # c",
        "x=(a $(b)); c",
        "a $((1+2)); b",
    ] {
        bench.give(text);
    }
    assert!(bench.compare() > 20);
}
