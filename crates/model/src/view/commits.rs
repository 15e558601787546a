//! Commits that were made in a session: calls that ran `git commit`, and what git said.

use memchr::memmem;

use crate::json;
use crate::log::TranscriptSource;
use crate::session::{Session, ToolCall};
use crate::time::Time;
use crate::view::transcript;
use crate::view::turns::{self, TurnOptions};

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitCommit {
    /// The turn it was made in, from 1.
    pub turn: usize,
    /// The call that made it.
    pub call: String,
    /// When.
    pub at: Option<Time>,
    /// Its hash, as short as git printed it.
    pub hash: String,
    /// The branch; empty if git did not say.
    pub branch: String,
    /// The first line of its message.
    pub title: String,
}

/// The commits of the session's own conversation, in order.
pub fn commits(session: &Session, source: &dyn TranscriptSource) -> Vec<GitCommit> {
    let rows = turns::outline(session, TurnOptions::default());
    let mut all = Vec::new();
    for row in &rows {
        for &call in &row.calls {
            let call = &session.calls[call as usize];
            for (hash, branch, title) in made_by(session, source, call) {
                all.push(GitCommit {
                    turn: row.n,
                    call: session.call_id(call).to_owned(),
                    at: session.records[call.record as usize].at(),
                    hash,
                    branch,
                    title,
                });
            }
        }
    }
    all
}

type CommitFields = (String, String, String);

fn made_by(session: &Session, source: &dyn TranscriptSource, call: &ToolCall) -> Vec<CommitFields> {
    let shell = matches!(session.text(call.tool), "Bash" | "PowerShell");
    let Some(result) = call.result.as_ref().filter(|_| shell) else {
        return Vec::new();
    };
    let bytes = session.bytes_of(source, &session.records[call.record as usize]);
    // Nearly all calls are something else; those are not decoded.
    let (git, commit) = (
        memmem::find(&bytes, b"git"),
        memmem::find(&bytes, b"commit"),
    );
    if git.is_none() || commit.is_none() {
        return Vec::new();
    }
    let input = json::value(session.blocks[call.block as usize].body().of(&bytes));
    if !input["command"].as_str().is_some_and(commits_something) {
        return Vec::new();
    }
    let bytes = session.bytes_of(source, &session.records[result.record as usize]);
    let body = session.blocks[result.block as usize].body().of(&bytes);
    let text = match json::find(&bytes, &["toolUseResult", "stdout"]) {
        Some(span) => json::string(span.of(&bytes)).into_owned(),
        None => transcript::result_text(body),
    };
    text.lines().filter_map(said).collect()
}

/// Whether a command line runs `git commit`, with whatever stands between the two words.
fn commits_something(command: &str) -> bool {
    let mut words = command
        .split(|c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')' | '`'))
        .filter(|word| !word.is_empty())
        .peekable();
    while let Some(word) = words.next() {
        if word != "git" && !word.ends_with("/git") {
            continue;
        }
        // Options of git itself, some with a value: `git -C dir -c a=b commit`.
        while let Some(option) = words.next_if(|word| word.starts_with('-')) {
            if matches!(option, "-C" | "-c" | "--git-dir" | "--work-tree") {
                words.next();
            }
        }
        if matches!(
            words.peek(),
            Some(&("commit" | "merge" | "revert" | "cherry-pick"))
        ) {
            return true;
        }
    }
    false
}

/// `[main 1a2b3c4] Say what`, also `[main (root-commit) 1a2b3c4] …` and `[detached HEAD …] …`.
fn said(line: &str) -> Option<CommitFields> {
    let (inside, title) = line.trim_end().strip_prefix('[')?.split_once("] ")?;
    let (branch, hash) = inside.rsplit_once(' ')?;
    let hexadecimal = hash
        .bytes()
        .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if !hexadecimal || !(7..=64).contains(&hash.len()) || title.is_empty() {
        return None;
    }
    let branch = branch.trim_end_matches("(root-commit)").trim();
    Some((hash.to_owned(), branch.to_owned(), title.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_says_about_a_commit_is_read() {
        let read = |line: &str| {
            said(line).map(|(hash, branch, title)| format!("{hash} {branch}: {title}"))
        };
        assert_eq!(
            read("[main 1a2b3c4] Say what").as_deref(),
            Some("1a2b3c4 main: Say what")
        );
        assert_eq!(
            read("[feat/x (root-commit) 0123456789] a] b").as_deref(),
            Some("0123456789 feat/x: a] b")
        );
        assert_eq!(
            read("[detached HEAD abcdef1] x").as_deref(),
            Some("abcdef1 detached HEAD: x")
        );
        for other in [
            "[INFO] 1234567",
            "[main] x",
            "[a zzzzzzz] x",
            "[a 123] x",
            "main 1a2b3c4",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn only_commands_that_commit_are_looked_at() {
        for yes in [
            "git commit -m x",
            "cd a && git -C b -c user.name=x commit --amend",
            "git add . ; /usr/bin/git commit",
            "(git commit)",
        ] {
            assert!(commits_something(yes), "{yes}");
        }
        for no in [
            "git log --grep commit",
            "echo commit",
            "git status && commit",
            "legit commit",
        ] {
            assert!(!commits_something(no), "{no}");
        }
    }
}
