//! The parser against bash itself: whatever bash runs, the parser must have seen.
//!
//! Programs `a`, `b` and `c` are stubs that note their name. A random text that the parser
//! accepts is given to bash, with a path that holds nothing else, and every program that was
//! noted must be among the parts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use unspool_agent::permission::shell::{self, Script};

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

fn seen_by_bash(text: &str, bin: &Path, work: &Path) -> Vec<String> {
    let log = work.join("seen");
    let _ = fs::remove_file(&log);
    let status = Command::new("/usr/bin/timeout")
        .args(["5", "/bin/bash", "--norc", "--noprofile", "-c"])
        .arg(format!("{text}\nwait"))
        .env_clear()
        .env("PATH", bin)
        .env("SEEN", &log)
        .current_dir(work)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.is_ok());
    let text = fs::read_to_string(&log).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn programs(script: &Script) -> Vec<String> {
    let words = script.parts.iter().filter_map(|part| part.words.first());
    words.filter_map(|word| word.text()).collect()
}

fn check(text: &str, bin: &Path, work: &Path) -> bool {
    let Ok(script) = shell::parse(text) else {
        return false;
    };
    // A program that is not known yet is asked about anyway.
    if script
        .parts
        .iter()
        .any(|part| part.words.first().is_some_and(|word| word.is_open()))
    {
        return false;
    }
    let known = programs(&script);
    for program in seen_by_bash(text, bin, work) {
        assert!(
            known.contains(&program),
            "bash ran {program} in {text:?}; the parser saw {known:?}"
        );
    }
    true
}

#[test]
fn whatever_bash_runs_the_parser_has_seen() {
    let temp = tempfile::tempdir().unwrap();
    let (bin, work) = (temp.path().join("bin"), temp.path().join("work"));
    fs::create_dir_all(&bin).unwrap();
    fs::create_dir_all(&work).unwrap();
    stubs(&bin);
    assert_eq!(seen_by_bash("a; b", &bin, &work), ["a", "b"]);
    let rounds: usize = std::env::var("UNSPOOL_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(150);
    let mut dice = Dice(0x5eed_1234_abcd_ef01);
    let mut ran = 0;
    let mut tried = 0usize;
    while ran < rounds {
        tried += 1;
        let len = 3 + dice.below(12);
        let text: String = (0..len).map(|_| PIECES[dice.below(PIECES.len())]).collect();
        // Texts in which nothing could hide are not worth a process.
        let is_plain = text
            .chars()
            .all(|c| c.is_alphanumeric() || " ;\n&|".contains(c));
        if !is_plain && check(&text, &bin, &work) {
            ran += 1;
        }
    }
    println!("{ran} texts of {tried} given to bash");
}

#[test]
fn texts_that_once_deceived_are_seen_or_refused() {
    let temp = tempfile::tempdir().unwrap();
    let (bin, work) = (temp.path().join("bin"), temp.path().join("work"));
    fs::create_dir_all(&bin).unwrap();
    fs::create_dir_all(&work).unwrap();
    stubs(&bin);
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
        "a $'x\\'y'; b",
        "a 'x'\"y\"z; b # c",
        "x=(a $(b)); c",
        "a $((1+2)); b",
    ] {
        check(text, &bin, &work);
    }
}
