//! What a command's end means, as far as its words tell.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

/// What a code says that is no error: `grep` found nothing, files differ.
pub fn of(command: &str, code: i32) -> Option<&'static str> {
    if code != 1 {
        return None;
    }
    let last = parts(command).pop()?;
    let words: Vec<&str> = last.split_whitespace().collect();
    match *words.first()? {
        "grep" | "egrep" | "fgrep" | "rg" => Some("No matches found"),
        "find" => Some("Some directories were inaccessible"),
        "diff" => Some("Files differ"),
        "test" | "[" => Some("Condition is false"),
        "git" => match words.get(1) {
            Some(&"diff") => Some("Files differ"),
            Some(&"grep") => Some("No matches found"),
            _ => None,
        },
        _ => None,
    }
}

/// Whether nothing is written by such a command when it works.
pub fn is_silent(command: &str) -> bool {
    let silent = |part: &String| {
        let word = part.split_whitespace().next();
        word.is_some_and(|word| {
            matches!(
                word,
                "mv" | "cp"
                    | "rm"
                    | "mkdir"
                    | "rmdir"
                    | "chmod"
                    | "chown"
                    | "chgrp"
                    | "touch"
                    | "ln"
                    | "cd"
                    | "export"
                    | "unset"
                    | "wait"
            )
        })
    };
    let parts = parts(command);
    !parts.is_empty() && parts.iter().all(silent)
}

/// Whether it is ended when its time is over: waiting is no work that could go on in the
/// background, and what changes a repository must not do so unseen.
pub fn ends_with_its_time(command: &str) -> bool {
    static GIT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\bgit\b").ok());
    let first = command.split_whitespace().next();
    first == Some("sleep") || GIT.as_ref().is_none_or(|git| git.is_match(command))
}

/// The pull request a command made, as the line of its result tells it.
pub fn pull_request(command: &str, output: &str) -> Option<Value> {
    static URL: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"https://[^\s/]+/[^\s/]+/[^\s/]+/pull/(\d+)").ok());
    if !parts(command)
        .iter()
        .any(|part| part.starts_with("gh pr create"))
    {
        return None;
    }
    let found = URL.as_ref()?.captures(output)?;
    let number: u64 = found[1].parse().ok()?;
    Some(json!({"pr": {"number": number, "url": &found[0], "action": "created"}}))
}

/// The parts of a command between `&&`, `||`, `;`, `|`, `&` and newlines, outside of quotes.
/// Good enough to tell a word; whoever decides what may run parses properly.
fn parts(command: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quote = None;
    let mut chars = command.chars();
    while let Some(char) = chars.next() {
        match (quote, char) {
            (None | Some('"'), '\\') => {
                push(&mut parts, char);
                if let Some(next) = chars.next() {
                    push(&mut parts, next);
                }
                continue;
            }
            (None, '\'' | '"') => quote = Some(char),
            (Some(open), close) if open == close => quote = None,
            (None, '&' | '|' | ';' | '\n') => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        push(&mut parts, char);
    }
    let trimmed = parts.iter().map(|part| part.trim().to_owned());
    trimmed.filter(|part| !part.is_empty()).collect()
}

fn push(parts: &mut [String], char: char) {
    if let Some(part) = parts.last_mut() {
        part.push(char);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finding_nothing_is_no_error() {
        assert_eq!(of("grep x y", 1), Some("No matches found"));
        assert_eq!(of("cat y | grep 'a;b'", 1), Some("No matches found"));
        assert_eq!(of("[ -f x ]", 1), Some("Condition is false"));
        assert_eq!(of("git diff --quiet", 1), Some("Files differ"));
        assert_eq!(of("grep x y && cargo test", 1), None);
        assert_eq!((of("grep x y", 2), of("git push", 1)), (None, None));
    }

    #[test]
    fn waiting_and_git_end_with_their_time() {
        assert!(ends_with_its_time("sleep 5; echo x") && ends_with_its_time("cd x && git pull"));
        assert!(!ends_with_its_time("cargo build") && !ends_with_its_time("ls digit"));
    }

    #[test]
    fn a_pull_request_that_was_made_is_found() {
        let url = "https://github.com/acme/widgets/pull/42";
        assert_eq!(
            pull_request("gh pr create --title x --body y", url),
            Some(json!({"pr": {"number": 42, "url": url, "action": "created"}}))
        );
        assert_eq!(pull_request("echo x", url), None);
    }

    #[test]
    fn some_commands_say_nothing() {
        assert!(is_silent("mkdir -p a && touch 'a/b;c'") && !is_silent("mkdir a && ls"));
    }
}
